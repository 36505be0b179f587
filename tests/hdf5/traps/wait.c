/* The plugin's own functions for C: waiting for a dataset or a file, asking, reading ahead. */

#define _GNU_SOURCE
#include "trap.h"

#include <alongside_hdf5.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COUNT = 1 << 16, BYTES = COUNT * sizeof(int), TEXT = 4096 };

static __typeof__(alongside_hdf5_wait) *wait_for;
static __typeof__(alongside_hdf5_test) *test;
static __typeof__(alongside_hdf5_fetch) *fetch;

struct place {
    uint64_t device, inode, range[1][2];
};

static void find_plugin(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libalongside_hdf5.so", getenv("HDF5_PLUGIN_PATH"));
    void *plugin = dlopen(path, RTLD_NOW);
    CHECK(plugin != NULL);
    *(void **)&wait_for = dlsym(plugin, "alongside_hdf5_wait");
    *(void **)&test = dlsym(plugin, "alongside_hdf5_test");
    *(void **)&fetch = dlsym(plugin, "alongside_hdf5_fetch");
    CHECK(wait_for != NULL && test != NULL && fetch != NULL);
}

/* A dataset that has its place in the file already. */
static hid_t placed(hid_t file, const char *name, struct place *place) {
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0);
    CHECK(H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0);
    hsize_t count = COUNT;
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(dataset >= 0 && H5Sclose(space) >= 0 && H5Pclose(list) >= 0);
    struct stat found;
    CHECK(stat("a.h5", &found) == 0);
    place->device = found.st_dev;
    place->inode = found.st_ino;
    place->range[0][0] = H5Dget_offset(dataset);
    place->range[0][1] = H5Dget_storage_size(dataset);
    CHECK(place->range[0][0] != HADDR_UNDEF && place->range[0][1] == BYTES);
    return dataset;
}

static int test_of(const struct place *place) {
    return test(place->device, place->inode, place->range, 1);
}

static int wait_of(const struct place *place, char *text) {
    return wait_for(place->device, place->inode, place->range, 1, text, text == NULL ? 0 : TEXT);
}

static void a_dataset_is_waited_for_by_itself(void) {
    find_plugin();
    struct place one, other;
    hid_t file = new_file("a.h5");
    hid_t first = placed(file, "a", &one), second = placed(file, "b", &other);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    write_numbers(first, 1, COUNT);
    CHECK(wait_of(&one, NULL) == 0 && test_of(&one) == 1);
    gate_close();
    write_numbers(second, 2, COUNT);
    CHECK(test_of(&one) == 1 && test_of(&other) == 0);
    CHECK(test(one.device, one.inode, NULL, 0) == 0 && test(0, 0, NULL, 0) == 0);
    CHECK(wait_of(&one, NULL) == 0);
    gate_open();
    CHECK(wait_of(&other, NULL) == 0 && test_of(&other) == 1 && test(0, 0, NULL, 0) == 1);
    CHECK(fetch(one.device, one.inode, one.range[0][0], BYTES) == BYTES);
    check_numbers(file, "a", 1, COUNT);
    CHECK(H5Dclose(first) >= 0 && H5Dclose(second) >= 0 && H5Fclose(file) >= 0);
    CHECK(fetch(one.device, one.inode, one.range[0][0], BYTES) == 0);
    check_file("a.h5", "a", 1, COUNT);
    check_file("a.h5", "b", 2, COUNT);
}

static void a_failure_is_told_to_who_waits_for_its_dataset(void) {
    find_plugin();
    struct place one, other;
    hid_t file = new_file("a.h5");
    hid_t first = placed(file, "a", &one), second = placed(file, "b", &other);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    write_numbers(first, 1, COUNT);
    CHECK(wait_of(&one, NULL) == 0);
    gate_fail(ENOSPC, BYTES);
    write_numbers(second, 2, COUNT);
    char text[TEXT] = "";
    CHECK(wait_of(&one, text) == 0 && text[0] == '\0');
    CHECK(wait_of(&other, text) == ENOSPC);
    CHECK(strstr(text, "a.h5") != NULL && strstr(text, "write of a dataset /b") != NULL);
    CHECK(wait_of(&other, NULL) == 0 && wait_for(0, 0, NULL, 0, NULL, 0) == 0);
    gate_open();
    write_numbers(second, 3, COUNT);
    CHECK(H5Dclose(first) >= 0 && H5Dclose(second) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, COUNT);
    check_file("a.h5", "b", 3, COUNT);
}

const struct trap WAIT[] = {
    {"a_dataset_is_waited_for_by_itself", a_dataset_is_waited_for_by_itself},
    {"a_failure_is_told_to_who_waits_for_its_dataset",
     a_failure_is_told_to_who_waits_for_its_dataset},
    {NULL, NULL},
};
