/* A seeded random program: `random SEED FOLDER late|plain|failing`. Threads of it write and read
 * files of their own and one that they share, with all kinds of operations. What it read on the
 * way goes into a sum that it prints; what it leaves in the files is compared by content.
 *
 * late: writes of other threads than the first are delayed at random (the connector's; HDF5 itself
 * writes on the threads of the program, which are then delayed too). failing: some of the large ones
 * fail; then only that it ends, and ends in order, is looked at.
 */

#define _GNU_SOURCE
#include "watched.h"

#include <errno.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, STEPS = 60, DATASETS = 5, ROWS_MAX = 48, COLUMNS_MAX = 4000, KINDS = 5 };

/* Writes of this size are of data. Where metadata cannot be written, HDF5's own assertions end the
 * process, also natively. */
enum { RAW_BYTES_MIN = 16 << 10 };

static bool is_late, is_failing;
static atomic_ullong device_state;

static uint64_t next_of(uint64_t *state) {
    uint64_t value = *state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* What stands in for the system's write: late, or failing, as the seed gives. */
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    uint64_t state = atomic_fetch_add(&device_state, 1), chance = next_of(&state);
    if (is_late && gettid() != getpid() && chance % 3 == 0) {
        struct timespec pause = {0, (long)(chance / 3 % 300000)};
        nanosleep(&pause, NULL);
    }
    if (is_failing && size >= RAW_BYTES_MIN && chance % 3 == 0) {
        errno = chance % 2 == 0 ? EIO : ENOSPC;
        return -1;
    }
    READS(bytes, size);
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    return pwrite64(fd, bytes, size, offset);
}

/* One thread's program. */
struct run {
    uint64_t random, sum;
    hid_t own, shared, events;
    char folder[32];
    hid_t datasets[DATASETS];
    hsize_t rows[DATASETS], columns[DATASETS];
    int kinds[DATASETS], made;
    int *buffer;
};

static unsigned below(struct run *run, unsigned limit) {
    return (unsigned)(next_of(&run->random) % limit);
}

static void must(struct run *run, bool holds, const char *what) {
    if (!holds && !is_failing) {
        fprintf(stderr, "%s: %s failed\n", run->folder, what);
        H5Eprint2(H5E_DEFAULT, stderr);
        _exit(1);
    }
}

static void add(struct run *run, const void *bytes, size_t size) {
    const unsigned char *each = bytes;
    for (size_t at = 0; at < size; at++)
        run->sum = (run->sum ^ each[at]) * 0x100000001b3u;
}

static hid_t place(struct run *run, int which) {
    return which % 2 == 0 ? run->own : run->shared;
}

/* Contiguous, early or late; chunked, filtered or not; compact ones are in the attributes. */
static hid_t creation_of(struct run *run, int kind, hsize_t rows, hsize_t columns) {
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[2] = {rows > 4 ? rows / 4 : 1, columns > 3 ? columns / 3 : 1};
    int fill = -7;
    H5Pset_fill_value(list, H5T_NATIVE_INT, &fill);
    if (kind == 1)
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    if (kind >= 2)
        must(run, H5Pset_chunk(list, 2, chunk) >= 0, "chunks");
    if (kind == 3)
        H5Pset_shuffle(list), H5Pset_fletcher32(list);
    return list;
}

static void make_dataset(struct run *run) {
    if (run->made == DATASETS)
        return;
    int which = run->made, kind = (int)below(run, KINDS);
    hsize_t dims[2] = {1 + below(run, ROWS_MAX), 1 + below(run, COLUMNS_MAX)};
    hsize_t most[2] = {H5S_UNLIMITED, dims[1]};
    char name[64];
    snprintf(name, sizeof name, "%s/data-%d", run->folder, which);
    hid_t space = H5Screate_simple(2, dims, kind >= 2 ? most : NULL);
    hid_t list = creation_of(run, kind, dims[0], dims[1]);
    hid_t type = kind == 4 ? H5T_STD_I32BE : H5T_NATIVE_INT;
    hid_t made =
        H5Dcreate2(place(run, which), name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    must(run, made >= 0, "H5Dcreate2");
    H5Pclose(list), H5Sclose(space);
    if (made < 0)
        return;
    run->datasets[which] = made, run->kinds[which] = kind;
    run->rows[which] = dims[0], run->columns[which] = dims[1];
    run->made++;
}

/* A hyperslab of a dataset, with strides now and then; how many elements it has. */
static hid_t slab(struct run *run, int which, hsize_t *count) {
    hsize_t dims[2] = {run->rows[which], run->columns[which]}, start[2], size[2], stride[2];
    for (int at = 0; at < 2; at++) {
        start[at] = below(run, (unsigned)dims[at]);
        stride[at] = below(run, 4) == 0 ? 2 : 1;
        size[at] = 1 + below(run, (unsigned)((dims[at] - start[at] + stride[at] - 1) / stride[at]));
        if (start[at] + (size[at] - 1) * stride[at] >= dims[at])
            size[at] = 1;
    }
    hid_t space = H5Screate_simple(2, dims, NULL);
    must(run, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, size, NULL) >= 0, "slab");
    *count = size[0] * size[1];
    return space;
}

static void write_slab(struct run *run, bool is_async) {
    if (run->made == 0)
        return;
    int which = (int)below(run, (unsigned)run->made);
    hsize_t count;
    hid_t space = slab(run, which, &count), memory = H5Screate_simple(1, &count, NULL);
    /* An event set is waited for before the next call here, so the buffer is not changed under it. */
    for (hsize_t at = 0; at < count; at++)
        run->buffer[at] = (int)next_of(&run->random);
    hid_t dataset = run->datasets[which];
    herr_t status;
    if (is_async)
        status = H5Dwrite_async(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, run->buffer,
                                run->events);
    else
        status = H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, run->buffer);
    must(run, status >= 0, "H5Dwrite");
    if (is_async && below(run, 2) == 0) {
        size_t left;
        hbool_t has_failed;
        must(run, H5ESwait(run->events, H5ES_WAIT_FOREVER, &left, &has_failed) >= 0, "H5ESwait");
        must(run, !has_failed, "an asynchronous write");
    }
    H5Sclose(memory), H5Sclose(space);
}

static void read_slab(struct run *run) {
    if (run->made == 0)
        return;
    int which = (int)below(run, (unsigned)run->made);
    hsize_t count;
    hid_t space = slab(run, which, &count), memory = H5Screate_simple(1, &count, NULL);
    memset(run->buffer, 0, count * sizeof(int));
    herr_t status = H5Dread(run->datasets[which], H5T_NATIVE_INT, memory, space, H5P_DEFAULT,
                            run->buffer);
    must(run, status >= 0, "H5Dread");
    add(run, run->buffer, count * sizeof(int));
    H5Sclose(memory), H5Sclose(space);
}

static void extend(struct run *run) {
    for (int which = 0; which < run->made; which++)
        if (run->kinds[which] >= 2 && run->rows[which] < ROWS_MAX && below(run, 2) == 0) {
            hsize_t dims[2] = {1 + below(run, ROWS_MAX), run->columns[which]};
            bool is_done = H5Dset_extent(run->datasets[which], dims) >= 0;
            must(run, is_done, "H5Dset_extent");
            if (is_done)
                run->rows[which] = dims[0];
        }
}

static void reopen(struct run *run) {
    if (run->made == 0)
        return;
    int which = (int)below(run, (unsigned)run->made);
    char name[64];
    snprintf(name, sizeof name, "%s/data-%d", run->folder, which);
    must(run, H5Dclose(run->datasets[which]) >= 0, "H5Dclose");
    run->datasets[which] = H5Dopen2(place(run, which), name, H5P_DEFAULT);
    must(run, run->datasets[which] >= 0, "H5Dopen2");
}

static void attribute(struct run *run) {
    char name[32];
    snprintf(name, sizeof name, "a%u", below(run, 6));
    int values[16], found[16] = {0};
    hsize_t count = 16;
    for (int at = 0; at < 16; at++)
        values[at] = (int)next_of(&run->random);
    hid_t group = H5Gopen2(place(run, (int)below(run, 2)), run->folder, H5P_DEFAULT);
    if (below(run, 4) == 0 && H5Aexists(group, name) > 0)
        must(run, H5Adelete(group, name) >= 0, "H5Adelete");
    bool is_there = H5Aexists(group, name) > 0;
    hid_t space = H5Screate_simple(1, &count, NULL), attribute;
    if (is_there)
        attribute = H5Aopen(group, name, H5P_DEFAULT);
    else
        attribute = H5Acreate2(group, name, H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT);
    must(run, attribute >= 0, "an attribute");
    if (is_there && H5Aread(attribute, H5T_NATIVE_INT, found) >= 0)
        add(run, found, sizeof found);
    must(run, H5Awrite(attribute, H5T_NATIVE_INT, values) >= 0, "H5Awrite");
    must(run, H5Aclose(attribute) >= 0, "H5Aclose");
    H5Sclose(space), H5Gclose(group);
}

/* Links: one to a group is made, moved, and taken away. */
static void links(struct run *run) {
    char from[64], to[64];
    hid_t file = place(run, (int)below(run, 2));
    snprintf(from, sizeof from, "%s/link-%u", run->folder, below(run, 5));
    snprintf(to, sizeof to, "%s/link-%u", run->folder, below(run, 5));
    bool is_from = H5Lexists(file, from, H5P_DEFAULT) > 0;
    bool is_to = H5Lexists(file, to, H5P_DEFAULT) > 0;
    if (!is_from) {
        hid_t group = H5Gcreate2(file, from, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        must(run, group >= 0, "H5Gcreate2");
        H5Gclose(group);
    } else if (!is_to)
        must(run, H5Lmove(file, from, file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0, "H5Lmove");
    else
        must(run, H5Ldelete(file, from, H5P_DEFAULT) >= 0, "H5Ldelete");
}

/* Text of any length: it lies in the file's heaps. */
static void text(struct run *run) {
    char name[64], *value = malloc(9000), *found = NULL;
    snprintf(name, sizeof name, "%s/text", run->folder);
    size_t length = below(run, 8999);
    memset(value, 'a' + (int)below(run, 26), length);
    value[length] = '\0';
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    hid_t dataset = -1;
    if (H5Lexists(run->own, name, H5P_DEFAULT) > 0)
        dataset = H5Dopen2(run->own, name, H5P_DEFAULT);
    else
        dataset =
            H5Dcreate2(run->own, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    must(run, dataset >= 0, "text");
    must(run, H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0, "text");
    must(run, H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &found) >= 0, "text");
    if (found != NULL)
        add(run, found, strlen(found));
    H5free_memory(found);
    H5Dclose(dataset), H5Tclose(type), H5Sclose(space);
    free(value);
}

/* A copy of a dataset into the other file. */
static void copy(struct run *run) {
    char from[64], to[64];
    /* After a failed write HDF5 1.14 frees the memory of such a copy twice, natively too. */
    if (run->made == 0 || is_failing)
        return;
    int which = (int)below(run, (unsigned)run->made);
    hid_t there = place(run, which + 1);
    snprintf(from, sizeof from, "%s/data-%d", run->folder, which);
    snprintf(to, sizeof to, "%s/copy-%d", run->folder, which);
    if (H5Lexists(there, to, H5P_DEFAULT) > 0)
        must(run, H5Ldelete(there, to, H5P_DEFAULT) >= 0, "H5Ldelete");
    /* What HDF5 has of it in its sieve buffer is not copied, natively neither. */
    must(run, H5Dflush(run->datasets[which]) >= 0, "H5Dflush");
    herr_t status = H5Ocopy(place(run, which), from, there, to, H5P_DEFAULT, H5P_DEFAULT);
    must(run, status >= 0, "H5Ocopy");
}

/* Points of all datasets of a file, in one call: written, or read. */
static void many(struct run *run, bool is_write) {
    enum { POINTS = 40 };
    hid_t datasets[DATASETS], types[DATASETS], memory[DATASETS], spaces[DATASETS];
    int values[DATASETS][POINTS], parity = (int)below(run, 2);
    const void *sources[DATASETS];
    void *targets[DATASETS];
    size_t count = 0;
    hsize_t points = POINTS, coordinates[POINTS][2];
    for (int which = parity; which < run->made; which += 2) {
        hsize_t dims[2] = {run->rows[which], run->columns[which]};
        /* Each point once: the order of writes to one place is not HDF5's promise. */
        hsize_t total = dims[0] * dims[1], first = below(run, (unsigned)total);
        if (total < POINTS)
            continue;
        for (hsize_t at = 0; at < POINTS; at++) {
            hsize_t place = (first + at * (total / POINTS)) % total;
            coordinates[at][0] = place / dims[1], coordinates[at][1] = place % dims[1];
            values[count][at] = is_write ? (int)next_of(&run->random) : 0;
        }
        datasets[count] = run->datasets[which], types[count] = H5T_NATIVE_INT;
        memory[count] = H5Screate_simple(1, &points, NULL);
        spaces[count] = H5Screate_simple(2, dims, NULL);
        H5Sselect_elements(spaces[count], H5S_SELECT_SET, POINTS, &coordinates[0][0]);
        sources[count] = targets[count] = values[count];
        count++;
    }
    if (count == 0)
        return;
    herr_t status;
    if (is_write)
        status = H5Dwrite_multi(count, datasets, types, memory, spaces, H5P_DEFAULT, sources);
    else
        status = H5Dread_multi(count, datasets, types, memory, spaces, H5P_DEFAULT, targets);
    must(run, status >= 0, "a transfer of many datasets");
    for (size_t at = 0; at < count; at++) {
        if (!is_write)
            add(run, values[at], sizeof values[at]);
        H5Sclose(memory[at]), H5Sclose(spaces[at]);
    }
}

static void flush(struct run *run) {
    hid_t file = place(run, (int)below(run, 2));
    must(run, H5Fflush(file, H5F_SCOPE_LOCAL) >= 0, "H5Fflush");
}

static void step(struct run *run) {
    unsigned which = below(run, 24);
    size_t left;
    hbool_t has_failed;
    /* The buffer is about to be used again. */
    H5ESwait(run->events, H5ES_WAIT_FOREVER, &left, &has_failed);
    must(run, !has_failed, "an asynchronous write");
    if (which < 2)
        make_dataset(run);
    else if (which < 7)
        write_slab(run, false);
    else if (which < 10)
        write_slab(run, true);
    else if (which < 13)
        read_slab(run);
    else if (which < 14)
        extend(run);
    else if (which < 15)
        reopen(run);
    else if (which < 17)
        attribute(run);
    else if (which < 18)
        links(run);
    else if (which < 19)
        text(run);
    else if (which < 20)
        copy(run);
    else if (which < 23)
        many(run, which < 22);
    else
        flush(run);
}

static void *run_thread(void *argument) {
    struct run *run = argument;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    run->buffer = malloc(sizeof(int) * ROWS_MAX * COLUMNS_MAX);
    run->events = H5EScreate();
    for (int at = 0; at < STEPS; at++)
        step(run);
    size_t left;
    hbool_t has_failed;
    H5ESwait(run->events, H5ES_WAIT_FOREVER, &left, &has_failed);
    H5ESclose(run->events);
    for (int at = 0; at < run->made; at++)
        must(run, H5Dclose(run->datasets[at]) >= 0, "H5Dclose");
    must(run, H5Fclose(run->own) >= 0, "H5Fclose");
    free(run->buffer);
    return NULL;
}

static void make_group(struct run *run, hid_t file) {
    hid_t group = H5Gcreate2(file, run->folder, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    must(run, group >= 0, "H5Gcreate2");
    H5Gclose(group);
}

int main(int count, char **words) {
    if (count != 4 || chdir(words[2]) != 0)
        return 2;
    uint64_t seed = strtoull(words[1], NULL, 10), state = seed;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    pthread_t threads[THREADS];
    struct run runs[THREADS];
    memset(runs, 0, sizeof runs);
    hid_t shared = H5Fcreate("shared.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int at = 0; at < THREADS; at++) {
        char name[32];
        struct run *run = &runs[at];
        run->random = next_of(&state);
        run->shared = shared;
        snprintf(run->folder, sizeof run->folder, "/%d", at);
        snprintf(name, sizeof name, "%d.h5", at);
        run->own = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        must(run, run->own >= 0 && shared >= 0, "H5Fcreate");
        make_group(run, run->own);
        make_group(run, shared);
    }
    is_late = strcmp(words[3], "plain") != 0;
    is_failing = strcmp(words[3], "failing") == 0;
    atomic_store(&device_state, seed * 7919);
    for (int at = 0; at < THREADS; at++)
        if (pthread_create(&threads[at], NULL, run_thread, &runs[at]) != 0)
            return 3;
    for (int at = 0; at < THREADS; at++)
        pthread_join(threads[at], NULL);
    must(&runs[0], H5Fclose(shared) >= 0, "H5Fclose");
    for (int at = 0; at < THREADS; at++)
        printf("%016llx\n", (unsigned long long)runs[at].sum);
    return 0;
}
