/* What a program does beside its writes: other files that they reach, forks, descriptors. */

#define _GNU_SOURCE
#include "trap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 18, LARGE = 1 << 21, OWN = 8 };

/* A dataset of `a.h5` that shows all of one in `source.h5`, which has its place already. */
static hid_t virtual_over_a_source(hid_t file, haddr_t *offset) {
    hsize_t count = COUNT;
    hid_t space = H5Screate_simple(1, &count, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0);
    hid_t other = new_file("source.h5");
    hid_t source =
        H5Dcreate2(other, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(source >= 0 && (*offset = H5Dget_offset(source)) != HADDR_UNDEF);
    CHECK(H5Dclose(source) >= 0 && H5Fclose(other) >= 0 && H5Pclose(list) >= 0);
    list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_virtual(list, space, "source.h5", "x", space) >= 0);
    hid_t made = H5Dcreate2(file, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(made >= 0 && H5Pclose(list) >= 0 && H5Sclose(space) >= 0);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    return made;
}

static void check_bytes(const char *name, haddr_t offset, int seed) {
    int *made = numbers(seed, COUNT), *found = calloc(COUNT, sizeof *found);
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0 && pread(fd, found, COUNT * sizeof *found, (off_t)offset) == COUNT * 4);
    CHECK(memcmp(made, found, COUNT * sizeof *found) == 0 && close(fd) == 0);
    free(made);
    free(found);
}

static void a_flush_of_a_virtual_dataset_reaches_its_source(void) {
    haddr_t offset;
    hid_t file = new_file("a.h5"), dataset = virtual_over_a_source(file, &offset);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dflush(dataset) >= 0);
    check_bytes("source.h5", offset, 1);
    write_numbers(dataset, 2, COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    check_bytes("source.h5", offset, 2);
    hid_t other = H5Fopen("source.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    write_numbers(dataset, 3, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_bytes("source.h5", offset, 3);
    CHECK(H5Fclose(other) >= 0);
}

static void a_flush_of_a_virtual_dataset_tells_what_its_source_lost(void) {
    haddr_t offset;
    hid_t file = new_file("a.h5"), dataset = virtual_over_a_source(file, &offset);
    gate_fail(EIO, 1 << 16);
    write_numbers(dataset, 1, COUNT);
    compute();
    CHECK(H5Dflush(dataset) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "source.h5") != NULL);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) < 0);
    gate_open();
    write_numbers(dataset, 2, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_bytes("source.h5", offset, 2);
}

/* The close of the file waits; what went wrong tells the source, which stays open. */
static void what_an_open_source_lost_is_told_by_it(void) {
    haddr_t offset;
    hid_t file = new_file("a.h5"), dataset = virtual_over_a_source(file, &offset);
    hid_t other = H5Fopen("source.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    gate_fail(EIO, 1 << 16);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    CHECK(H5Fclose(file) < 0);
    CHECK(H5Fflush(other, H5F_SCOPE_LOCAL) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "source.h5") != NULL);
    gate_open();
    CHECK(H5Fflush(other, H5F_SCOPE_LOCAL) >= 0 && H5Fclose(other) >= 0);
}

static atomic_bool has_forked;

static void *write_until_the_fork(void *dataset) {
    int *made = numbers(1, LARGE);
    while (!atomic_load(&has_forked))
        CHECK(H5Dwrite(*(hid_t *)dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) >=
              0);
    free(made);
    return NULL;
}

static void a_fork_ends_although_a_thread_goes_on_writing(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", LARGE);
    write_numbers(dataset, 2, LARGE);
    unsigned begun = gate_begun();
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, write_until_the_fork, &dataset) == 0);
    /* Until it is well under way. */
    while (gate_begun() < begun + 20)
        sched_yield();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int status = -1;
    atomic_store(&has_forked, true);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_join(writer, NULL) == 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, LARGE);
}

static void whole_file(const char *name, int seed) {
    hid_t file = new_file(name), dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, seed, COUNT);
    compute();
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    write_numbers(dataset, seed + 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

/* The numbers are given to files of the program, and nobody else writes to those. */
static void a_program_may_close_all_descriptors(void) {
    whole_file("a.h5", 1);
    CHECK(syscall(SYS_close_range, 3, ~0U, 0) == 0);
    int own[OWN];
    for (int at = 0; at < OWN; at++) {
        char name[16];
        snprintf(name, sizeof name, "own%d", at);
        own[at] = open(name, O_CREAT | O_RDWR, 0600);
        CHECK(own[at] >= 0);
    }
    whole_file("b.h5", 3);
    check_file("a.h5", "a", 2, COUNT);
    check_file("b.h5", "a", 4, COUNT);
    for (int at = 0; at < OWN; at++) {
        struct stat found;
        CHECK(fstat(own[at], &found) == 0 && found.st_size == 0);
        CHECK(lseek(own[at], 0, SEEK_CUR) == 0 && close(own[at]) == 0);
    }
}

const struct trap BESIDE[] = {
    {"a_flush_of_a_virtual_dataset_reaches_its_source",
     a_flush_of_a_virtual_dataset_reaches_its_source},
    {"a_flush_of_a_virtual_dataset_tells_what_its_source_lost",
     a_flush_of_a_virtual_dataset_tells_what_its_source_lost},
    {"what_an_open_source_lost_is_told_by_it", what_an_open_source_lost_is_told_by_it},
    {"a_fork_ends_although_a_thread_goes_on_writing",
     a_fork_ends_although_a_thread_goes_on_writing},
    {"a_program_may_close_all_descriptors", a_program_may_close_all_descriptors},
    {NULL, NULL},
};
