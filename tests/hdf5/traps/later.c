/* Closes that leave what is not written to the end of the task that promised the file. */

#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { COUNT = 1 << 16, BYTES = COUNT * sizeof(int) };

static uint64_t (*close_later)(const char *paths);
static int (*settle)(uint64_t number, char *text, size_t size);

/* The connector's own functions: from the same file that HDF5 has loaded. */
static void find_plugin(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libalongside_hdf5.so", getenv("HDF5_PLUGIN_PATH"));
    void *plugin = dlopen(path, RTLD_NOW);
    CHECK(plugin != NULL);
    *(void **)&close_later = dlsym(plugin, "alongside_hdf5_close_later");
    *(void **)&settle = dlsym(plugin, "alongside_hdf5_settle");
    CHECK(close_later != NULL && settle != NULL);
}

/* A file whose bytes do not come to the device before the gate is open; HDF5 flushes the first of
 * them when it makes the file. */
static void make_file(const char *name) {
    hid_t file = new_file(name);
    gate_close();
    hid_t dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

/* Whether nobody has a lock on a file. */
static bool is_free(const char *name) {
    int fd = open(name, O_RDWR);
    CHECK(fd != -1);
    bool is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    CHECK(close(fd) == 0);
    return is_free;
}

static void *open_gate_when_begun(void *begun) {
    while (gate_begun() == *(unsigned *)begun)
        sched_yield();
    gate_open();
    return begun;
}

static void a_promised_file_is_closed_before_it_is_written(void) {
    find_plugin();
    uint64_t number = close_later("other.h5\0a.h5\0");
    make_file("a.h5");
    CHECK(close_later(NULL) == 0);
    CHECK(!is_free("a.h5"));
    gate_open();
    CHECK(settle(number, NULL, 0) == 0);
    CHECK(is_free("a.h5"));
    CHECK(settle(number, NULL, 0) == 0);
    check_file("a.h5", "a", 1, COUNT);
}

static void a_promised_file_is_whole_for_who_opens_it_again(void) {
    find_plugin();
    uint64_t number = close_later("a.h5\0");
    unsigned begun = gate_begun();
    make_file("a.h5");
    pthread_t opener;
    CHECK(pthread_create(&opener, NULL, open_gate_when_begun, &begun) == 0);
    check_file("a.h5", "a", 1, COUNT);
    hid_t file = H5Fopen("a.h5", H5F_ACC_RDWR, H5P_DEFAULT), dataset;
    CHECK((dataset = H5Dopen2(file, "a", H5P_DEFAULT)) >= 0);
    write_numbers(dataset, 2, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    CHECK(pthread_join(opener, NULL) == 0);
    CHECK(settle(number, NULL, 0) == 0);
    check_file("a.h5", "a", 2, COUNT);
}

static void a_promised_file_that_fails_says_so_when_it_is_settled(void) {
    find_plugin();
    uint64_t number = close_later("a.h5\0");
    make_file("a.h5");
    gate_fail(ENOSPC, BYTES);
    char text[512];
    CHECK(settle(number, text, sizeof text) == ENOSPC);
    CHECK(strstr(text, "a.h5") != NULL && strstr(text, "write of a dataset /a") != NULL);
    CHECK(settle(number, NULL, 0) == 0);
    gate_open();
    hid_t file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(file >= 0 && H5Lexists(file, "a", H5P_DEFAULT) > 0 && H5Fclose(file) >= 0);
}

static void a_file_that_nobody_promised_is_written_when_it_is_closed(void) {
    find_plugin();
    uint64_t number = close_later("other.h5\0");
    hid_t file = new_file("a.h5");
    gate_close();
    unsigned begun = gate_begun();
    pthread_t opener;
    CHECK(pthread_create(&opener, NULL, open_gate_when_begun, &begun) == 0);
    hid_t dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    CHECK(is_free("a.h5"));
    CHECK(pthread_join(opener, NULL) == 0);
    CHECK(settle(number, NULL, 0) == 0);
    check_file("a.h5", "a", 1, COUNT);
}

const struct trap LATER[] = {
    {"a_promised_file_is_closed_before_it_is_written",
     a_promised_file_is_closed_before_it_is_written},
    {"a_promised_file_is_whole_for_who_opens_it_again",
     a_promised_file_is_whole_for_who_opens_it_again},
    {"a_promised_file_that_fails_says_so_when_it_is_settled",
     a_promised_file_that_fails_says_so_when_it_is_settled},
    {"a_file_that_nobody_promised_is_written_when_it_is_closed",
     a_file_that_nobody_promised_is_written_when_it_is_closed},
    {NULL, NULL},
};
