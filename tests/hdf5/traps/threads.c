/* Threads of the program, with the thread-safe library. */

#include "trap.h"

#include <pthread.h>
#include <stdio.h>

enum { COUNT = 1 << 16, THREADS_COUNT = 6, DATASETS = 12 };

struct work {
    hid_t file;
    int seed;
};

static void *write_and_read(void *argument) {
    struct work *work = argument;
    for (int at = 0; at < DATASETS; at++) {
        char name[32];
        snprintf(name, sizeof name, "%d-%d", work->seed, at);
        hid_t dataset = new_dataset(work->file, name, COUNT);
        write_numbers(dataset, work->seed * 100 + at, COUNT);
        CHECK(H5Dclose(dataset) >= 0);
        if (at % 3 == 2)
            CHECK(H5Fflush(work->file, H5F_SCOPE_LOCAL) >= 0);
        check_numbers(work->file, name, work->seed * 100 + at, COUNT);
    }
    return NULL;
}

static void run(bool is_one_file) {
    hbool_t is_threadsafe = false;
    CHECK(H5is_library_threadsafe(&is_threadsafe) >= 0);
    if (!is_threadsafe)
        trap_skip("this HDF5 is not thread-safe");
    pthread_t threads[THREADS_COUNT];
    struct work work[THREADS_COUNT];
    for (int at = 0; at < THREADS_COUNT; at++) {
        char name[32];
        snprintf(name, sizeof name, "%d.h5", is_one_file ? 0 : at);
        hid_t file = is_one_file && at > 0 ? work[0].file : new_file(name);
        work[at] = (struct work){file, at};
    }
    for (int at = 0; at < THREADS_COUNT; at++)
        CHECK(pthread_create(&threads[at], NULL, write_and_read, &work[at]) == 0);
    for (int at = 0; at < THREADS_COUNT; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    for (int at = 0; at < THREADS_COUNT; at++)
        CHECK((is_one_file && at > 0) || H5Fclose(work[at].file) >= 0);
    for (int at = 0; at < THREADS_COUNT * DATASETS; at++) {
        char file[32], name[32];
        int seed = at / DATASETS, which = at % DATASETS;
        snprintf(file, sizeof file, "%d.h5", is_one_file ? 0 : seed);
        snprintf(name, sizeof name, "%d-%d", seed, which);
        check_file(file, name, seed * 100 + which, COUNT);
    }
}

static void threads_write_files_of_their_own(void) {
    run(false);
}

static void threads_write_one_file(void) {
    run(true);
}

const struct trap THREADS[] = {
    {"threads_write_files_of_their_own", threads_write_files_of_their_own},
    {"threads_write_one_file", threads_write_one_file},
    {NULL, NULL},
};
