/* Transfers that HDF5 filters or converts: with a thread-safe library they are done behind the
 * program, and nothing but time tells that they were. */

#define _GNU_SOURCE
#include "trap.h"

#include <alongside_hdf5.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 20, CHUNK = COUNT / 4, FILTER = 40000 };

static __typeof__(alongside_hdf5_wait) *wait_for;
static __typeof__(alongside_hdf5_test) *test;

/* How often our filter ran, on which thread, and whether it fails. */
static atomic_uint filtered_here, filtered_elsewhere;
static atomic_bool filter_fails;

static void find_plugin(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libalongside_hdf5.so", getenv("HDF5_PLUGIN_PATH"));
    void *plugin = dlopen(path, RTLD_NOW);
    CHECK(plugin != NULL);
    *(void **)&wait_for = dlsym(plugin, "alongside_hdf5_wait");
    *(void **)&test = dlsym(plugin, "alongside_hdf5_test");
    CHECK(wait_for != NULL && test != NULL);
}

static void need_threads(void) {
    hbool_t is_threadsafe = false;
    CHECK(H5is_library_threadsafe(&is_threadsafe) >= 0);
    if (!is_threadsafe)
        trap_skip("this HDF5 is not thread-safe");
}

/* Turns all bits. */
static size_t turn(unsigned flags, size_t count, const unsigned values[], size_t size,
                   size_t *room, void **buffer) {
    (void)flags, (void)count, (void)values, (void)room;
    if (gettid() == getpid())
        filtered_here++;
    else
        filtered_elsewhere++;
    if (filter_fails && (flags & H5Z_FLAG_REVERSE) == 0)
        return 0;
    for (size_t at = 0; at < size; at++)
        ((unsigned char *)*buffer)[at] ^= 0xff;
    return size;
}

/* A dataset of chunks that our filter turns, and that no cache holds. */
static hid_t turned(hid_t file, const char *name) {
    static const H5Z_class2_t filter = {
        .version = H5Z_CLASS_T_VERS,
        .id = FILTER,
        .encoder_present = 1,
        .decoder_present = 1,
        .name = "turn",
        .filter = turn,
    };
    CHECK(H5Zregister(&filter) >= 0);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), access = H5Pcreate(H5P_DATASET_ACCESS);
    hsize_t count = COUNT, chunk = CHUNK;
    CHECK(H5Pset_chunk(list, 1, &chunk) >= 0);
    CHECK(H5Pset_filter(list, FILTER, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    CHECK(H5Pset_chunk_cache(access, 0, 0, 1) >= 0);
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, access);
    CHECK(dataset >= 0 && H5Sclose(space) >= 0 && H5Pclose(list) >= 0 && H5Pclose(access) >= 0);
    return dataset;
}

static void until_all_is_written(void) {
    while (test(0, 0, NULL, 0) == 0)
        sched_yield();
}

static void a_filtered_write_is_done_behind_the_program(void) {
    need_threads();
    find_plugin();
    hid_t file = new_file("a.h5"), dataset = turned(file, "a");
    gate_close();
    write_numbers(dataset, 1, COUNT);
    CHECK(test(0, 0, NULL, 0) == 0);
    gate_open();
    until_all_is_written();
    CHECK(filtered_here == 0 && filtered_elsewhere == 4);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    CHECK(filtered_here == 0);
    check_file("a.h5", "a", 1, COUNT);
}

static void a_converted_write_is_done_behind_the_program(void) {
    need_threads();
    find_plugin();
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    double *made = malloc(COUNT * sizeof *made);
    int *found = malloc(COUNT * sizeof *found);
    for (int at = 0; at < COUNT; at++)
        made[at] = 3 * at;
    CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) >= 0);
    memset(made, 0x55, COUNT * sizeof *made);
    until_all_is_written();
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    for (int at = 0; at < COUNT; at++)
        CHECK(found[at] == 3 * at);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void what_comes_at_once_sees_a_noted_write(void) {
    hid_t file = new_file("a.h5"), dataset = turned(file, "a"), other = turned(file, "b");
    for (int turn = 0; turn < 20; turn++) {
        write_numbers(dataset, turn, COUNT);
        write_numbers(other, turn + 1, COUNT);
        write_numbers(dataset, turn + 2, COUNT);
        hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        CHECK(group >= 0 && H5Gclose(group) >= 0);
        CHECK(H5Ldelete(file, "g", H5P_DEFAULT) >= 0);
        compute();
        check_numbers(file, "a", turn + 2, COUNT);
        check_numbers(file, "b", turn + 1, COUNT);
    }
    CHECK(H5Dget_storage_size(dataset) == COUNT * sizeof(int));
    CHECK(H5Dclose(dataset) >= 0 && H5Dclose(other) >= 0 && H5Fclose(file) >= 0);
}

static void a_dataset_is_closed_after_its_writes(void) {
    hid_t file = new_file("a.h5");
    for (int turn = 0; turn < 20; turn++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", turn);
        hid_t dataset = turned(file, name);
        write_numbers(dataset, turn, COUNT);
        write_numbers(dataset, turn + 1, COUNT);
        CHECK(H5Dclose(dataset) >= 0);
        if (turn % 3 == 0)
            compute();
    }
    CHECK(H5Fget_obj_count(file, H5F_OBJ_DATASET) == 0);
    CHECK(H5Fclose(file) >= 0);
    for (int turn = 0; turn < 20; turn++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", turn);
        check_file("a.h5", name, turn + 1, COUNT);
    }
}

static void a_part_of_a_buffer_is_all_that_is_touched(void) {
    enum { PART = COUNT / 2, BEFORE = COUNT / 4 };
    hid_t file = new_file("a.h5"), dataset = turned(file, "a");
    write_numbers(dataset, 1, COUNT);
    /* The memory before the selection is not ours to read. */
    int *made = numbers(7, PART), *found = malloc(COUNT * sizeof *found);
    hsize_t count = COUNT, start = BEFORE, part = PART;
    hid_t space = H5Screate_simple(1, &count, NULL);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &part, NULL) >= 0);
    uintptr_t begin = (uintptr_t)made - BEFORE * sizeof *made;
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, space, space, H5P_DEFAULT, (void *)begin) >= 0);
    memset(made, 0x55, PART * sizeof *made);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    for (int at = 0; at < COUNT; at++) {
        bool is_in = at >= BEFORE && at < BEFORE + PART;
        CHECK(found[at] == (is_in ? 7 * 1000003 + at - BEFORE : 1000003 + at));
    }
    CHECK(H5Sclose(space) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void a_filter_that_fails_behind_the_program_is_told_once(void) {
    need_threads();
    find_plugin();
    hid_t file = new_file("a.h5"), dataset = turned(file, "a"), good = turned(file, "b");
    int *found = malloc(COUNT * sizeof *found);
    filter_fails = true;
    write_numbers(dataset, 1, COUNT);
    while (filtered_elsewhere == 0)
        sched_yield();
    CHECK(H5Fget_intent(file, &(unsigned){0}) >= 0);
    filter_fails = false;
    write_numbers(good, 2, COUNT);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "what is to be read is lost: a.h5: ") != NULL);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "(write of a dataset /a)") != NULL);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Dclose(good) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "b", 2, COUNT);
}

static void a_wait_outside_of_hdf5_tells_of_a_filter_that_fails(void) {
    need_threads();
    find_plugin();
    char text[4096] = "";
    hid_t file = new_file("a.h5"), dataset = turned(file, "a");
    filter_fails = true;
    write_numbers(dataset, 1, COUNT);
    CHECK(wait_for(0, 0, NULL, 0, text, sizeof text) != 0);
    CHECK(strstr(text, "(write of a dataset /a)") != NULL);
    filter_fails = false;
    CHECK(wait_for(0, 0, NULL, 0, text, sizeof text) == 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void a_read_with_an_event_set_is_done_behind_the_program(void) {
    need_threads();
    find_plugin();
    hid_t file = new_file("a.h5"), dataset = turned(file, "a"), events = H5EScreate();
    int *made = numbers(1, COUNT), *found = calloc(COUNT, sizeof *found);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    unsigned before = filtered_here;
    CHECK(H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found, events) >=
          0);
    CHECK(H5Dclose_async(dataset, events) >= 0);
    until_all_is_written();
    CHECK(filtered_here == before);
    size_t left = 99;
    hbool_t has_failed = true;
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &left, &has_failed) >= 0);
    CHECK(left == 0 && !has_failed);
    CHECK(memcmp(made, found, COUNT * sizeof *made) == 0);
    CHECK(H5ESclose(events) >= 0 && H5Fclose(file) >= 0);
    memset(found, 0, COUNT * sizeof *found);
    file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT), events = H5EScreate();
    dataset = H5Dopen2(file, "a", H5P_DEFAULT);
    before = filtered_here;
    CHECK(H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found, events) >=
          0);
    until_all_is_written();
    CHECK(filtered_here == before && memcmp(made, found, COUNT * sizeof *made) == 0);
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &left, &has_failed) >= 0 && left == 0);
    CHECK(H5ESclose(events) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void a_close_that_waits_has_what_was_read(void) {
    hid_t file = new_file("a.h5"), dataset = turned(file, "a"), events = H5EScreate();
    int *made = numbers(1, COUNT), *found = calloc(COUNT, sizeof *found);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found, events) >=
          0);
    CHECK(H5Dclose(dataset) >= 0);
    CHECK(memcmp(made, found, COUNT * sizeof *made) == 0);
    size_t left = 99;
    hbool_t has_failed = true;
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &left, &has_failed) >= 0);
    CHECK(left == 0 && !has_failed);
    CHECK(H5ESclose(events) >= 0 && H5Fclose(file) >= 0);
}

static void transfers_with_an_event_set_keep_their_order(void) {
    hid_t file = new_file("a.h5"), dataset = turned(file, "a"), events = H5EScreate();
    int *one = numbers(1, COUNT), *two = numbers(2, COUNT), *found = calloc(COUNT, sizeof *found);
    hid_t kind = H5T_NATIVE_INT;
    for (int turn = 0; turn < 10; turn++) {
        CHECK(H5Dwrite_async(dataset, kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, one, events) >= 0);
        CHECK(H5Dread_async(dataset, kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, found, events) >= 0);
        CHECK(H5Dwrite_async(dataset, kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, two, events) >= 0);
        if (turn % 2 == 0)
            compute();
        size_t left = 99;
        hbool_t has_failed = true;
        CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &left, &has_failed) >= 0);
        CHECK(left == 0 && !has_failed);
        CHECK(memcmp(one, found, COUNT * sizeof *one) == 0);
        check_numbers(file, "a", 2, COUNT);
    }
    CHECK(H5ESclose(events) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

/* A child that ends by itself, with all its ids closed but the file's. */
static void leaves_a_file(void (*leave)(void)) {
    pid_t child = fork();
    if (child == 0) {
        hid_t file = new_file("a.h5"), dataset = turned(file, "a");
        write_numbers(dataset, 1, COUNT);
        CHECK(H5Dclose(dataset) >= 0);
        leave();
        _exit(1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    hid_t file = new_file("b.h5"); /* The filter is known. */
    CHECK(H5Dclose(turned(file, "b")) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, COUNT);
}

static void by_exit(void) {
    exit(0);
}

static void by_close(void) {
    CHECK(H5close() >= 0);
    _exit(0);
}

static void an_exit_does_what_is_noted(void) {
    leaves_a_file(by_exit);
}

static void a_close_of_the_library_does_what_is_noted(void) {
    leaves_a_file(by_close);
}

static void a_fork_does_what_is_noted(void) {
    hid_t file = new_file("a.h5"), dataset = turned(file, "a");
    for (int turn = 0; turn < 10; turn++) {
        write_numbers(dataset, turn, COUNT);
        if (turn % 2 == 0)
            compute();
        pid_t child = fork();
        if (child == 0) {
            check_numbers(file, "a", turn, COUNT);
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        check_numbers(file, "a", turn, COUNT);
    }
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void a_write_that_hdf5_refuses_is_refused_by_the_call(void) {
    hid_t file = new_file("a.h5"), dataset = turned(file, "a");
    int *made = numbers(1, COUNT);
    hsize_t half = COUNT / 2;
    hid_t space = H5Screate_simple(1, &half, NULL);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, space, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, file, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(H5Dwrite(dataset, space, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, space, made) < 0);
    CHECK(H5Sclose(space) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "a", H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void a_write_to_a_linked_file_is_refused_by_the_call(void) {
    hid_t file = new_file("b.h5"), dataset = turned(file, "b");
    write_numbers(dataset, 1, COUNT);
    compute();
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    file = new_file("a.h5");
    CHECK(H5Lcreate_external("b.h5", "b", file, "b", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    CHECK(H5Pset_elink_acc_flags(access, H5F_ACC_RDONLY) >= 0);
    int *made = numbers(2, COUNT);
    dataset = H5Dopen2(file, "b", access);
    hid_t kind = H5Dget_type(dataset);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(H5Tclose(kind) >= 0 && H5Pclose(access) >= 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("b.h5", "b", 1, COUNT);
}

#define TRAP(name) {#name, name}
const struct trap POSTPONED[] = {
    TRAP(a_filtered_write_is_done_behind_the_program),
    TRAP(a_converted_write_is_done_behind_the_program),
    TRAP(what_comes_at_once_sees_a_noted_write),
    TRAP(a_dataset_is_closed_after_its_writes),
    TRAP(a_part_of_a_buffer_is_all_that_is_touched),
    TRAP(a_filter_that_fails_behind_the_program_is_told_once),
    TRAP(a_wait_outside_of_hdf5_tells_of_a_filter_that_fails),
    TRAP(a_read_with_an_event_set_is_done_behind_the_program),
    TRAP(a_close_that_waits_has_what_was_read),
    TRAP(transfers_with_an_event_set_keep_their_order),
    TRAP(an_exit_does_what_is_noted),
    TRAP(a_close_of_the_library_does_what_is_noted),
    TRAP(a_fork_does_what_is_noted),
    TRAP(a_write_that_hdf5_refuses_is_refused_by_the_call),
    TRAP(a_write_to_a_linked_file_is_refused_by_the_call),
    {NULL, NULL},
};
