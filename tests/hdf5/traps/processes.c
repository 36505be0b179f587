/* The ends of a process, and its children: nothing queued is lost, nothing is written twice. */

#define _GNU_SOURCE
#include "trap.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 20, ROWS = 5, WIDTH = 1 << 15 };

static void ended_well(pid_t child) {
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_child_sees_what_was_queued_and_writes_itself(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, 1, COUNT);
    pid_t child = fork();
    if (child == 0) {
        check_numbers(file, "a", 1, COUNT);
        hid_t own = new_file("child.h5"), inside = new_dataset(own, "c", COUNT);
        write_numbers(inside, 2, COUNT);
        check_numbers(own, "c", 2, COUNT);
        CHECK(H5Dclose(inside) >= 0 && H5Fclose(own) >= 0);
        check_file("child.h5", "c", 2, COUNT);
        _exit(0);
    }
    ended_well(child);
    write_numbers(dataset, 3, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 3, COUNT);
    check_file("child.h5", "c", 2, COUNT);
}

/* A child that ends by itself, and who looks at its file afterwards. */
static void leaves_a_file(void (*leave)(void)) {
    pid_t child = fork();
    if (child == 0) {
        hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
        write_numbers(dataset, 1, COUNT);
        leave();
        _exit(1);
    }
    ended_well(child);
    check_file("a.h5", "a", 1, COUNT);
}

static void leaves_a_cache_full(void) {
    enum { CHUNK = 1 << 16 };
    pid_t child = fork();
    if (child == 0) {
        hsize_t count = CHUNK;
        hid_t file = new_file("a.h5"), space = H5Screate_simple(1, &count, NULL);
        hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        CHECK(H5Pset_chunk(list, 1, &count) >= 0);
        hid_t dataset =
            H5Dcreate2(file, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
        write_numbers(dataset, 1, CHUNK);
        exit(0);
    }
    ended_well(child);
    check_file("a.h5", "a", 1, CHUNK);
}

/* Nothing goes behind the program before HDF5 empties its chunk cache, in its exit handler: the
 * threads that write begin while HDF5 unloads its plugins. How far they are by then is chance. */
static void a_cache_is_emptied_at_exit(void) {
    for (int turn = 0; turn < 50; turn++)
        leaves_a_cache_full();
}

static void by_exit(void) {
    exit(0);
}

static void by_close(void) {
    CHECK(H5close() >= 0);
    _exit(0);
}

static void an_exit_without_a_close_writes_all(void) {
    leaves_a_file(by_exit);
}

/* Some programs end HDF5 by themselves, or not at all (`main` has called H5dont_atexit). */
static void an_exit_without_the_handler_of_hdf5_writes_all(void) {
    pid_t child = fork();
    if (child == 0) {
        hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
        write_numbers(dataset, 1, COUNT);
        compute();
        CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
        write_numbers(dataset, 2, COUNT);
        exit(0);
    }
    ended_well(child);
    check_file("a.h5", "a", 2, COUNT);
}

static void a_close_of_the_library_writes_all(void) {
    leaves_a_file(by_close);
}

/* The runner looks for the line on standard error. */
static void an_exit_with_a_failed_write_says_so(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    gate_fail(ENOSPC, 1 << 16);
    write_numbers(dataset, 1, COUNT);
    exit(0);
}

/* Reads the rows that are there, in a process of its own, once for every byte from the pipe. */
static void read_rows(int from, int to) {
    char turn;
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    CHECK(read(from, &turn, 1) == 1);
    hid_t file = H5Fopen("a.h5", H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, list);
    hid_t dataset = H5Dopen2(file, "a", H5P_DEFAULT);
    CHECK(file >= 0 && dataset >= 0);
    static int found[ROWS][WIDTH];
    for (int row = 0; row < ROWS; row++) {
        CHECK(H5Drefresh(dataset) >= 0);
        hid_t space = H5Dget_space(dataset);
        hsize_t dims[2];
        CHECK(H5Sget_simple_extent_dims(space, dims, NULL) == 2 && dims[0] == (hsize_t)row + 1);
        CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
        for (int at = 0; at < (row + 1) * WIDTH; at++)
            CHECK(found[at / WIDTH][at % WIDTH] == at / WIDTH * 1000000 + at % WIDTH);
        CHECK(H5Sclose(space) >= 0);
        CHECK(write(to, "x", 1) == 1);
        CHECK(row == ROWS - 1 || read(from, &turn, 1) == 1);
    }
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    _exit(0);
}

static hid_t rows_of(hid_t file) {
    hsize_t dims[2] = {0, WIDTH}, most[2] = {H5S_UNLIMITED, WIDTH}, chunk[2] = {1, WIDTH};
    hid_t space = H5Screate_simple(2, dims, most), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_chunk(list, 2, chunk) >= 0);
    return H5Dcreate2(file, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
}

static void append_row(hid_t dataset, int row) {
    static int values[WIDTH];
    for (int at = 0; at < WIDTH; at++)
        values[at] = row * 1000000 + at;
    hsize_t dims[2] = {(hsize_t)row + 1, WIDTH}, start[2] = {(hsize_t)row, 0};
    hsize_t count[2] = {1, WIDTH};
    CHECK(H5Dset_extent(dataset, dims) >= 0);
    hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(2, count, NULL);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0);
    CHECK(H5Dflush(dataset) >= 0 && H5Sclose(space) >= 0 && H5Sclose(memory) >= 0);
}

static bool is_watching_the_end;

static int count_ours(struct dl_phdr_info *loaded, size_t size, void *count) {
    *(int *)count += strstr(loaded->dlpi_name, "libalongside_hdf5.so") != NULL;
    return (void)size, 0;
}

/* Runs after HDF5's own exit handler, which closes plugins. */
__attribute__((destructor)) static void look_at_the_end(void) {
    int count = 0;
    dl_iterate_phdr(count_ours, &count);
    if (is_watching_the_end && count != 1)
        _exit(1);
}

/* A thread of the connector may be about to run when the process exits. One that runs holds it by
 * itself; without a file there is none. */
static void the_connector_stays_loaded_to_the_end(void) {
    is_watching_the_end = true;
}

/* Rows are queued before and after the start; the reader sees each after its flush. */
static void readers_beside_a_writer_see_every_flush(void) {
    int there[2], back[2];
    char turn;
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    if (child == 0)
        read_rows(there[0], back[1]);
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, list), dataset = rows_of(file);
    CHECK(file >= 0 && dataset >= 0);
    append_row(dataset, 0);
    CHECK(H5Fstart_swmr_write(file) >= 0);
    for (int row = 0; row < ROWS; row++) {
        if (row > 0)
            append_row(dataset, row);
        CHECK(write(there[1], "x", 1) == 1);
        CHECK(read(back[0], &turn, 1) == 1);
    }
    ended_well(child);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

const struct trap PROCESSES[] = {
    {"a_child_sees_what_was_queued_and_writes_itself",
     a_child_sees_what_was_queued_and_writes_itself},
    {"a_cache_is_emptied_at_exit", a_cache_is_emptied_at_exit},
    {"an_exit_without_a_close_writes_all", an_exit_without_a_close_writes_all},
    {"an_exit_without_the_handler_of_hdf5_writes_all",
     an_exit_without_the_handler_of_hdf5_writes_all},
    {"a_close_of_the_library_writes_all", a_close_of_the_library_writes_all},
    {"an_exit_with_a_failed_write_says_so", an_exit_with_a_failed_write_says_so},
    {"the_connector_stays_loaded_to_the_end", the_connector_stays_loaded_to_the_end},
    {"readers_beside_a_writer_see_every_flush", readers_beside_a_writer_see_every_flush},
    {NULL, NULL},
};
