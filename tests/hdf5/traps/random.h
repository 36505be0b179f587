/* What the files of the random program share: one thread's program, and its operations. */

#ifndef ALONGSIDE_RANDOM_H
#define ALONGSIDE_RANDOM_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATASETS = 6, ROWS_MAX = 48, COLUMNS_MAX = 4000, NAME_BYTES = 64 };

/* How a dataset is stored. Those before CHUNKED keep their extent. */
enum { LATE, EARLY, COMPACT, OUTSIDE, CHUNKED, CHECKED, SWAPPED, DEFLATED, SCALED, KINDS };

/* One thread's program. */
struct run {
    uint64_t random, sum;
    int index;
    hid_t own, shared, events;
    char folder[32];
    hid_t datasets[DATASETS];
    hsize_t rows[DATASETS], columns[DATASETS];
    int kinds[DATASETS], made;
    /* The file that is mounted, and where; none: -1. */
    hid_t mounted, host;
    int *buffer;
    /* Numbers in it that a read with an event set will have brought; 0: none. */
    hsize_t unread;
};

/* Some of the large writes fail: then nothing has to hold but that the program ends. */
extern bool is_failing;

uint64_t next_of(uint64_t *state);
unsigned below(struct run *run, unsigned limit);

/* A value for a dataset. Where they are further apart than an `int` is wide, HDF5's filter for
 * integers (scale and offset) cannot read what it wrote. */
int number(struct run *run);

void must(struct run *run, bool holds, const char *what);
void add(struct run *run, const void *bytes, size_t size);

/* The file of a number: the thread's own, or the shared one. */
hid_t place(struct run *run, int which);

/* A path in the thread's group: `path(run, name, "data", 3)` is "/0/data-3". */
const char *path(struct run *run, char name[NAME_BYTES], const char *word, int which);
bool is_there(hid_t file, const char *name);

/* A hyperslab of an extent, with strides now and then; how many elements it has. */
hid_t slab_of(struct run *run, const hsize_t dims[2], hsize_t *count);

/* Writes numbers to a hyperslab of a dataset (two dimensions), or reads it into the sum. */
bool try_transfer(struct run *run, hid_t dataset, bool is_write);
void transfer(struct run *run, hid_t dataset, bool is_write);

/* On the thread's datasets. */
void make_dataset(struct run *run);
void write_slab(struct run *run, bool is_async);
void read_slab(struct run *run);
void read_later(struct run *run);
void extend(struct run *run);
void reopen(struct run *run);
void copy(struct run *run);
void many(struct run *run, bool is_write);

/* Has some bytes of a file read ahead, whatever they are; natively nothing. */
void find_plugin(void);
void read_ahead(struct run *run);

/* On what else is in a file. */
void attribute(struct run *run);
void links(struct run *run);
void other_links(struct run *run);
void text(struct run *run);
hid_t committed_type(struct run *run, hid_t file);

/* On what reaches from one file into another. */
void virtual_dataset(struct run *run);
void references(struct run *run);
void old_references(struct run *run);
void mount(struct run *run);
void unmount(struct run *run);

#endif
