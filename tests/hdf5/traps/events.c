/* Event sets: a wait lasts as long as it says, and what fails is told there. */

#include "trap.h"

#include <H5ESdevelop.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1 << 18 };

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void wait_all(hid_t events, bool has_failed_wanted) {
    size_t left = 99;
    hbool_t has_failed = false;
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &left, &has_failed) >= 0);
    CHECK(left == 0 || has_failed_wanted);
    CHECK(has_failed == has_failed_wanted);
}

static void a_timed_wait_lasts_that_long(void) {
    hid_t file = new_file("a.h5"), events = H5EScreate();
    hid_t dataset = new_dataset(file, "a", COUNT);
    int *made = numbers(7, COUNT);
    gate_close();
    CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made, events) >=
          0);
    size_t left = 0;
    hbool_t has_failed = true;
    double before_s = now_s();
    CHECK(H5ESwait(events, 200000000, &left, &has_failed) >= 0);
    double waited_s = now_s() - before_s;
    CHECK(left == 1 && !has_failed);
    CHECK(waited_s >= 0.2 && waited_s < 30);
    before_s = now_s();
    CHECK(H5ESwait(events, H5ES_WAIT_NONE, &left, &has_failed) >= 0);
    CHECK(left == 1 && !has_failed && now_s() - before_s < 10);
    gate_open();
    wait_all(events, false);
    CHECK(H5ESclose(events) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 7, COUNT);
}

static void what_is_under_way_cannot_be_cancelled(void) {
    hid_t file = new_file("a.h5"), events = H5EScreate();
    hid_t dataset = new_dataset(file, "a", COUNT);
    int *made = numbers(3, COUNT);
    gate_close();
    CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made, events) >=
          0);
    size_t not_cancelled = 0;
    hbool_t has_failed = true;
    CHECK(H5EScancel(events, &not_cancelled, &has_failed) >= 0);
    CHECK(not_cancelled == 1 && !has_failed);
    gate_open();
    wait_all(events, false);
    CHECK(H5ESclose(events) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 3, COUNT);
}

static void a_failure_is_told_by_the_event_set_and_once(void) {
    hid_t file = new_file("a.h5"), events = H5EScreate();
    hid_t good = new_dataset(file, "good", COUNT), dataset = new_dataset(file, "bad", COUNT);
    write_numbers(good, 5, COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    int *made = numbers(7, COUNT);
    gate_fail(ENOSPC, 1 << 16);
    CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made, events) >=
          0);
    wait_all(events, true);
    size_t count = 0, cleared = 0;
    CHECK(H5ESget_err_count(events, &count) >= 0 && count == 1);
    H5ES_err_info_t error;
    memset(&error, 0, sizeof error);
    CHECK(H5ESget_err_info(events, 1, &error, &cleared) >= 0 && cleared == 1);
    CHECK(strcmp(error.api_name, "H5Dwrite_async") == 0);
    const char *said = stack_text(error.err_stack_id);
    CHECK(strstr(said, "a.h5") && strstr(said, "/bad") && strstr(said, "write of a dataset"));
    CHECK(strstr(said, strerror(ENOSPC)) != NULL);
    H5free_memory(error.api_name);
    H5free_memory(error.api_args);
    H5free_memory(error.app_file_name);
    H5free_memory(error.app_func_name);
    CHECK(H5Eclose_stack(error.err_stack_id) >= 0);
    gate_open();
    CHECK(H5ESclose(events) >= 0 && H5Dclose(dataset) >= 0 && H5Dclose(good) >= 0);
    CHECK(H5Fclose(file) >= 0);
    check_file("a.h5", "good", 5, COUNT);
}

static void many_writes_of_many_files_end_in_one_set(void) {
    enum { FILES = 3, DATASETS = 8 };
    hid_t events = H5EScreate(), files[FILES], datasets[FILES][DATASETS];
    const char *names[] = {"a.h5", "b.h5", "c.h5"};
    const char *inside[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    int *made[FILES][DATASETS];
    for (int f = 0; f < FILES; f++) {
        files[f] = new_file(names[f]);
        for (int d = 0; d < DATASETS; d++) {
            datasets[f][d] = new_dataset(files[f], inside[d], COUNT);
            made[f][d] = numbers(f * 10 + d, COUNT);
            CHECK(H5Dwrite_async(datasets[f][d], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                 made[f][d], events) >= 0);
            CHECK(H5Dclose_async(datasets[f][d], events) >= 0);
        }
        CHECK(H5Fclose_async(files[f], events) >= 0);
    }
    wait_all(events, false);
    CHECK(H5ESclose(events) >= 0);
    for (int f = 0; f < FILES; f++)
        for (int d = 0; d < DATASETS; d++)
            check_file(names[f], inside[d], f * 10 + d, COUNT);
}

static int note_end(const H5ES_op_info_t *what, H5ES_status_t how, hid_t stack, void *count) {
    CHECK(how == H5ES_STATUS_SUCCEED && what->op_exec_time < 100000000000u);
    *(int *)count += 1;
    return (void)stack, 0;
}

static void what_ends_may_be_told_to_a_function(void) {
    int *made = numbers(7, COUNT), ended = 0;
    hid_t file = new_file("a.h5"), events = H5EScreate();
    hid_t dataset = new_dataset(file, "a", COUNT);
    CHECK(H5ESregister_complete_func(events, note_end, &ended) >= 0);
    for (int turn = 0; turn < 3; turn++)
        CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made,
                             events) >= 0);
    wait_all(events, false);
    CHECK(ended == 3 && H5ESclose(events) >= 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 7, COUNT);
    free(made);
}

const struct trap EVENTS[] = {
    {"a_timed_wait_lasts_that_long", a_timed_wait_lasts_that_long},
    {"what_is_under_way_cannot_be_cancelled", what_is_under_way_cannot_be_cancelled},
    {"a_failure_is_told_by_the_event_set_and_once", a_failure_is_told_by_the_event_set_and_once},
    {"many_writes_of_many_files_end_in_one_set", many_writes_of_many_files_end_in_one_set},
    {"what_ends_may_be_told_to_a_function", what_ends_may_be_told_to_a_function},
    {NULL, NULL},
};
