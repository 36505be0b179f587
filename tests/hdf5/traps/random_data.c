/* The datasets of the random program: made, written, read, extended, copied. */

#define _GNU_SOURCE
#include "random.h"

#include <alongside_hdf5.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static __typeof__(alongside_hdf5_fetch) *fetch;

/* How a dataset of a kind is stored. */
static hid_t creation_of(struct run *run, int which, int kind, const hsize_t dims[2]) {
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[2] = {dims[0] > 4 ? dims[0] / 4 : 1, dims[1] > 3 ? dims[1] / 3 : 1};
    int fill = -7;
    H5Pset_fill_value(list, H5T_NATIVE_INT, &fill);
    if (kind == EARLY)
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    if (kind == COMPACT)
        must(run, H5Pset_layout(list, H5D_COMPACT) >= 0, "a compact layout");
    if (kind == OUTSIDE) {
        char name[32];
        snprintf(name, sizeof name, "%d-%d.raw", run->index, which);
        FILE *raw = fopen(name, "w");
        must(run, raw != NULL && fclose(raw) == 0, name);
        must(run, H5Pset_external(list, name, 0, H5F_UNLIMITED) >= 0, "H5Pset_external");
    }
    if (kind >= CHUNKED)
        must(run, H5Pset_chunk(list, 2, chunk) >= 0, "chunks");
    if (kind == CHECKED)
        H5Pset_shuffle(list), H5Pset_fletcher32(list);
    if (kind == DEFLATED && H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0)
        H5Pset_shuffle(list), H5Pset_deflate(list, 1);
    if (kind == SCALED)
        H5Pset_scaleoffset(list, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
    return list;
}

/* The extent of a new one. A compact one is in an object header, which has to be small. */
static void extent_of(struct run *run, int kind, hsize_t dims[2]) {
    bool is_small = kind == COMPACT;
    dims[0] = 1 + below(run, is_small ? 16 : ROWS_MAX);
    dims[1] = 1 + below(run, is_small ? 100 : COLUMNS_MAX);
}

void make_dataset(struct run *run) {
    if (run->made == DATASETS)
        return;
    int which = run->made, kind = (int)below(run, KINDS);
    char name[NAME_BYTES];
    hsize_t dims[2];
    extent_of(run, kind, dims);
    hsize_t most[2] = {H5S_UNLIMITED, dims[1]};
    hid_t space = H5Screate_simple(2, dims, kind >= CHUNKED ? most : NULL);
    hid_t list = creation_of(run, which, kind, dims), file = place(run, which);
    hid_t type = kind == SWAPPED ? committed_type(run, file) : H5Tcopy(H5T_NATIVE_INT);
    hid_t made = H5Dcreate2(file, path(run, name, "data", which), type, space, H5P_DEFAULT, list,
                            H5P_DEFAULT);
    must(run, made >= 0, "H5Dcreate2");
    H5Pclose(list), H5Sclose(space), H5Tclose(type);
    if (made < 0)
        return;
    run->datasets[which] = made, run->kinds[which] = kind;
    run->rows[which] = dims[0], run->columns[which] = dims[1];
    run->made++;
}

hid_t slab_of(struct run *run, const hsize_t dims[2], hsize_t *count) {
    hsize_t start[2], size[2], stride[2];
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

static hid_t slab(struct run *run, int which, hsize_t *count) {
    hsize_t dims[2] = {run->rows[which], run->columns[which]};
    return slab_of(run, dims, count);
}

bool try_transfer(struct run *run, hid_t dataset, bool is_write) {
    hsize_t dims[2] = {1, 1}, count;
    hid_t whole = H5Dget_space(dataset);
    H5Sget_simple_extent_dims(whole, dims, NULL);
    H5Sclose(whole);
    hid_t space = slab_of(run, dims, &count), memory = H5Screate_simple(1, &count, NULL);
    herr_t status;
    for (hsize_t at = 0; at < count; at++)
        run->buffer[at] = is_write ? number(run) : 0;
    if (is_write)
        status = H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, run->buffer);
    else
        status = H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, run->buffer);
    if (!is_write)
        add(run, run->buffer, count * sizeof(int));
    H5Sclose(memory), H5Sclose(space);
    return status >= 0;
}

void transfer(struct run *run, hid_t dataset, bool is_write) {
    must(run, try_transfer(run, dataset, is_write), is_write ? "H5Dwrite" : "H5Dread");
}

void write_slab(struct run *run, bool is_async) {
    if (run->made == 0)
        return;
    int which = (int)below(run, (unsigned)run->made);
    hsize_t count;
    hid_t space = slab(run, which, &count), memory = H5Screate_simple(1, &count, NULL);
    /* An event set is waited for before the next call here, so the buffer stays as it is. */
    for (hsize_t at = 0; at < count; at++)
        run->buffer[at] = number(run);
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

void read_slab(struct run *run) {
    if (run->made > 0)
        transfer(run, run->datasets[below(run, (unsigned)run->made)], false);
}

/* The next step waits for it, and adds what it brought. */
void read_later(struct run *run) {
    if (run->made == 0)
        return;
    int which = (int)below(run, (unsigned)run->made);
    hsize_t count;
    hid_t space = slab(run, which, &count), memory = H5Screate_simple(1, &count, NULL);
    herr_t status = H5Dread_async(run->datasets[which], H5T_NATIVE_INT, memory, space, H5P_DEFAULT,
                                  run->buffer, run->events);
    must(run, status >= 0, "H5Dread_async");
    run->unread = status >= 0 ? count : 0;
    H5Sclose(memory), H5Sclose(space);
}

void extend(struct run *run) {
    for (int which = 0; which < run->made; which++)
        if (run->kinds[which] >= CHUNKED && run->rows[which] < ROWS_MAX && below(run, 2) == 0) {
            hsize_t dims[2] = {1 + below(run, ROWS_MAX), run->columns[which]};
            bool is_done = H5Dset_extent(run->datasets[which], dims) >= 0;
            must(run, is_done, "H5Dset_extent");
            if (is_done)
                run->rows[which] = dims[0];
        }
}

static void close_one(struct run *run, int which) {
    must(run, H5Dclose(run->datasets[which]) >= 0, "H5Dclose");
    run->datasets[which] = -1;
}

static void open_one(struct run *run, int which) {
    char name[NAME_BYTES];
    run->datasets[which] = H5Dopen2(place(run, which), path(run, name, "data", which), H5P_DEFAULT);
    must(run, run->datasets[which] >= 0, "H5Dopen2");
}

void reopen(struct run *run) {
    if (run->made == 0)
        return;
    int which = (int)below(run, (unsigned)run->made);
    close_one(run, which), open_one(run, which);
}

/* A copy of a dataset into the other file. */
void copy(struct run *run) {
    char from[NAME_BYTES], to[NAME_BYTES];
    /* After a failed write HDF5 1.14 frees the memory of such a copy twice, natively too. */
    if (run->made == 0 || is_failing)
        return;
    int which = (int)below(run, (unsigned)run->made);
    hid_t there = place(run, which + 1);
    path(run, from, "data", which), path(run, to, "copy", which);
    if (is_there(there, to))
        must(run, H5Ldelete(there, to, H5P_DEFAULT) >= 0, "H5Ldelete");
    /* What HDF5 has of it in its sieve buffer is not copied, natively neither. */
    must(run, H5Dflush(run->datasets[which]) >= 0, "H5Dflush");
    /* Where a chunk in its cache is larger than on disk, HDF5 copies it over the end of memory. */
    bool is_smaller = run->kinds[which] >= DEFLATED;
    if (is_smaller)
        close_one(run, which);
    herr_t status = H5Ocopy(place(run, which), from, there, to, H5P_DEFAULT, H5P_DEFAULT);
    must(run, status >= 0, "H5Ocopy");
    if (is_smaller)
        open_one(run, which);
}

/* Points of all datasets of a file, in one call: written, or read. */
void many(struct run *run, bool is_write) {
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
            values[count][at] = is_write ? number(run) : 0;
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


void find_plugin(void) {
    char name[4096];
    const char *folder = getenv("HDF5_PLUGIN_PATH");
    snprintf(name, sizeof name, "%s/libalongside_hdf5.so", folder == NULL ? "" : folder);
    void *plugin = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (plugin != NULL)
        *(void **)&fetch = dlsym(plugin, "alongside_hdf5_fetch");
}

void read_ahead(struct run *run) {
    char name[32] = "shared.h5";
    struct stat found;
    bool is_own = below(run, 2) == 0, pauses = below(run, 3) == 0;
    uint64_t start = below(run, 100), hundredths = 1 + below(run, 100);
    if (is_own)
        snprintf(name, sizeof name, "%d.h5", run->index);
    if (fetch == NULL || stat(name, &found) != 0)
        return;
    uint64_t size = (uint64_t)found.st_size;
    fetch(found.st_dev, found.st_ino, size * start / 100, 1 + size * hundredths / 100);
    /* It begins when the program does something else. */
    struct timespec pause = {0, 2000000};
    if (pauses)
        nanosleep(&pause, NULL);
}
