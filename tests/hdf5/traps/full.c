/* A device that takes no more in the middle of queued writes: told once, at the right place. */

#define _GNU_SOURCE
#include "trap.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { COUNT = 1 << 18 };

/* A file whose dataset `a` is flushed, and one whose `b` is queued and will fail. */
static hid_t with_a_failed_write(int error, size_t bytes_min) {
    hid_t file = new_file("a.h5");
    hid_t good = new_dataset(file, "a", COUNT), bad = new_dataset(file, "b", COUNT);
    write_numbers(good, 1, COUNT);
    compute();
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    gate_fail(error, bytes_min);
    write_numbers(bad, 2, COUNT);
    CHECK(H5Dclose(good) >= 0 && H5Dclose(bad) >= 0);
    return file;
}

static bool is_said(int error) {
    const char *said = stack_text(H5E_DEFAULT);
    return strstr(said, "a.h5") && strstr(said, "/b") && strstr(said, "write of a dataset") &&
           strstr(said, strerror(error));
}

static void a_flush_tells_once_what_failed(void) {
    hid_t file = with_a_failed_write(ENOSPC, 1 << 16);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) < 0);
    CHECK(is_said(ENOSPC));
    gate_open();
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    CHECK(H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, COUNT);
}

static void a_flush_of_a_dataset_tells_it_too(void) {
    hid_t file = with_a_failed_write(EIO, 1 << 16);
    hid_t dataset = H5Dopen2(file, "b", H5P_DEFAULT);
    CHECK(H5Dflush(dataset) < 0);
    CHECK(is_said(EIO));
    gate_open();
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, COUNT);
}

/* More failures than HDF5's stack of errors has entries, and those of another dataset. */
static void a_flush_tells_of_every_dataset_that_lost_something(void) {
    enum { PART = 1 << 14, PARTS = 40 };
    hid_t file = new_file("a.h5");
    hid_t many = new_dataset(file, "many", PART * PARTS), one = new_dataset(file, "one", COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    hsize_t count = PART;
    hid_t memory = H5Screate_simple(1, &count, NULL), space = H5Dget_space(many);
    int *made = numbers(1, PART);
    gate_fail(ENOSPC, 1 << 15);
    for (hsize_t part = 0; part < PARTS; part++) {
        hsize_t start = part * PART;
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0);
        CHECK(H5Dwrite(many, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, made) >= 0);
    }
    write_numbers(one, 2, COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) < 0);
    const char *said = stack_text(H5E_DEFAULT);
    CHECK(strstr(said, "(write of a dataset /many)") && strstr(said, " more places: "));
    CHECK(strstr(said, "(write of a dataset /one)") && strstr(said, "a.h5"));
    gate_open();
    free(made);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && H5Sclose(memory) >= 0 && H5Sclose(space) >= 0);
    CHECK(H5Dclose(many) >= 0 && H5Dclose(one) >= 0 && H5Fclose(file) >= 0);
}

/* Which of them a range of the file belongs to is not known: all are named. */
static void a_write_of_many_datasets_names_them(void) {
    hid_t file = new_file("a.h5");
    hid_t both[2] = {new_dataset(file, "a", COUNT), new_dataset(file, "b", COUNT)};
    hid_t types[2] = {H5T_NATIVE_INT, H5T_NATIVE_INT}, spaces[2] = {H5S_ALL, H5S_ALL};
    int *first = numbers(1, COUNT), *second = numbers(2, COUNT);
    const void *values[2] = {first, second};
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    gate_fail(EIO, 1 << 16);
    CHECK(H5Dwrite_multi(2, both, types, spaces, spaces, H5P_DEFAULT, values) >= 0);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "(write of a dataset one of /a, /b)"));
    gate_open();
    free(first);
    free(second);
    CHECK(H5Dclose(both[0]) >= 0 && H5Dclose(both[1]) >= 0 && H5Fclose(file) >= 0);
}

static void a_close_tells_what_failed(void) {
    hid_t file = with_a_failed_write(ENOSPC, 1 << 16);
    CHECK(H5Fclose(file) < 0);
    CHECK(is_said(ENOSPC));
    gate_open();
    check_file("a.h5", "a", 1, COUNT);
}

static void a_close_on_a_device_that_takes_nothing_ends(void) {
    hid_t file = with_a_failed_write(ENOSPC, 0);
    CHECK(H5Fclose(file) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), strerror(ENOSPC)) != NULL);
}

static void a_read_of_what_is_lost_says_so_and_others_go_on(void) {
    hid_t file = with_a_failed_write(EIO, 1 << 16);
    hid_t dataset = H5Dopen2(file, "b", H5P_DEFAULT);
    int *found = numbers(0, COUNT);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) < 0);
    CHECK(is_said(EIO));
    check_numbers(file, "a", 1, COUNT);
    gate_open();
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) < 0);
    write_numbers(dataset, 3, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "b", 3, COUNT);
}

static void what_is_longer_than_files_may_be_is_refused_by_the_call(void) {
    signal(SIGXFSZ, SIG_IGN);
    hid_t file = new_file("a.h5");
    hid_t good = new_dataset(file, "a", COUNT), bad = new_dataset(file, "b", COUNT);
    write_numbers(good, 1, COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    struct rlimit limit = {(3 * COUNT * sizeof(int)) / 2, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int *made = numbers(2, COUNT);
    CHECK(H5Dwrite(bad, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), strerror(EFBIG)) != NULL);
    free(made);
    limit.rlim_cur = RLIM_INFINITY;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(H5Dclose(good) >= 0 && H5Dclose(bad) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, COUNT);
}

static void a_small_file_system_runs_full(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        trap_skip("mounting needs root");
    CHECK(mkdir("small", 0700) == 0);
    if (mount("none", "small", "tmpfs", 0, "size=6m") != 0)
        trap_skip("no tmpfs can be mounted");
    hid_t file = new_file("small/a.h5");
    hid_t good = new_dataset(file, "a", COUNT), bad = new_dataset(file, "b", 16 * COUNT);
    write_numbers(good, 1, COUNT);
    compute();
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    write_numbers(bad, 2, 16 * COUNT);
    CHECK(H5Dclose(good) >= 0 && H5Dclose(bad) >= 0);
    CHECK(H5Fclose(file) < 0);
    CHECK(is_said(ENOSPC));
    check_file("small/a.h5", "a", 1, COUNT);
}

/* Who flushes right after its writes does the next ones itself. What fails is told as of others: by
 * the flush, with its name, and nothing is left of it. */
static void a_write_that_no_copy_is_made_of_is_told_like_others(void) {
    enum { ROUNDS = 20 };
    hid_t file = new_file("a.h5");
    hid_t good = new_dataset(file, "a", COUNT), bad = new_dataset(file, "b", COUNT);
    int *made = numbers(2, COUNT);
    for (int round = 0; round < ROUNDS; round++) {
        write_numbers(good, round, COUNT);
        CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
        gate_fail(ENOSPC, 1 << 16);
        CHECK(H5Dwrite(bad, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) >= 0);
        CHECK(H5Eget_num(H5E_DEFAULT) == 0);
        CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) < 0);
        CHECK(is_said(ENOSPC));
        gate_open();
        CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    }
    free(made);
    write_numbers(bad, 3, COUNT);
    CHECK(H5Dclose(good) >= 0 && H5Dclose(bad) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", ROUNDS - 1, COUNT);
    check_file("a.h5", "b", 3, COUNT);
}

const struct trap FULL[] = {
    {"a_flush_tells_once_what_failed", a_flush_tells_once_what_failed},
    {"a_flush_of_a_dataset_tells_it_too", a_flush_of_a_dataset_tells_it_too},
    {"a_flush_tells_of_every_dataset_that_lost_something",
     a_flush_tells_of_every_dataset_that_lost_something},
    {"a_write_of_many_datasets_names_them", a_write_of_many_datasets_names_them},
    {"a_close_tells_what_failed", a_close_tells_what_failed},
    {"a_close_on_a_device_that_takes_nothing_ends", a_close_on_a_device_that_takes_nothing_ends},
    {"a_read_of_what_is_lost_says_so_and_others_go_on",
     a_read_of_what_is_lost_says_so_and_others_go_on},
    {"what_is_longer_than_files_may_be_is_refused_by_the_call",
     what_is_longer_than_files_may_be_is_refused_by_the_call},
    {"a_write_that_no_copy_is_made_of_is_told_like_others",
     a_write_that_no_copy_is_made_of_is_told_like_others},
    {"a_small_file_system_runs_full", a_small_file_system_runs_full},
    {NULL, NULL},
};
