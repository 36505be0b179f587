/* A seeded random program: `random SEED FOLDER late|plain|failing`. Threads of it write and read
 * files of their own and one that they share, with all kinds of operations. What it read on the
 * way goes into a sum that it prints; what it leaves in the files is compared by content.
 *
 * late: writes of other threads than the first are delayed at random (the connector's; HDF5 itself
 * writes on the threads of the program, which are then delayed too). failing: some of the large
 * ones fail; then only that it ends, and ends in order, is looked at.
 */

#define _GNU_SOURCE
#include "random.h"
#include "watched.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, STEPS = 80, BUFFER_INTS = 2 * ROWS_MAX * COLUMNS_MAX };

/* Writes of this size are of data; what HDF5 gathers of metadata is smaller. Where metadata cannot
 * be written, HDF5's own assertions end the process, also natively. */
enum { RAW_BYTES_MIN = 64 << 10 };

bool is_failing;
static bool is_late;
static atomic_ullong device_state;

uint64_t next_of(uint64_t *state) {
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

unsigned below(struct run *run, unsigned limit) {
    return (unsigned)(next_of(&run->random) % limit);
}

int number(struct run *run) {
    return (int)(next_of(&run->random) >> 44);
}

void must(struct run *run, bool holds, const char *what) {
    if (!holds && !is_failing) {
        fprintf(stderr, "%s: %s failed\n", run->folder, what);
        H5Eprint2(H5E_DEFAULT, stderr);
        _exit(1);
    }
}

void add(struct run *run, const void *bytes, size_t size) {
    const unsigned char *each = bytes;
    for (size_t at = 0; at < size; at++)
        run->sum = (run->sum ^ each[at]) * 0x100000001b3u;
}

hid_t place(struct run *run, int which) {
    return which % 2 == 0 ? run->own : run->shared;
}

const char *path(struct run *run, char name[NAME_BYTES], const char *word, int which) {
    snprintf(name, NAME_BYTES, "%s/%s-%d", run->folder, word, which);
    return name;
}

bool is_there(hid_t file, const char *name) {
    return H5Lexists(file, name, H5P_DEFAULT) > 0;
}

static void flush(struct run *run) {
    hid_t file = place(run, (int)below(run, 2));
    must(run, H5Fflush(file, H5F_SCOPE_LOCAL) >= 0, "H5Fflush");
}

static void write_now(struct run *run) {
    write_slab(run, false);
}

static void write_later(struct run *run) {
    write_slab(run, true);
}

static void write_many(struct run *run) {
    many(run, true);
}

static void read_many(struct run *run) {
    many(run, false);
}

/* The program does something else: what was left to be done is done meanwhile. */
static void pause_a_while(struct run *run) {
    struct timespec while_ns = {0, 1000000 + (long)below(run, 1000000)};
    nanosleep(&while_ns, NULL);
}

/* Waits for what has an event set; what was read is there then. */
static void wait_for_events(struct run *run) {
    size_t left;
    hbool_t has_failed;
    H5ESwait(run->events, H5ES_WAIT_FOREVER, &left, &has_failed);
    must(run, !has_failed, "an asynchronous call");
    add(run, run->buffer, run->unread * sizeof(int));
    run->unread = 0;
}

/* Every operation, as often as its weight says. */
static const struct {
    unsigned weight;
    void (*act)(struct run *run);
} OPERATIONS[] = {
    {3, make_dataset}, {5, write_now},       {3, write_later}, {3, read_slab},
    {1, extend},       {1, reopen},          {2, attribute},   {1, links},
    {2, other_links},  {1, text},            {1, copy},        {2, write_many},
    {1, read_many},    {3, virtual_dataset}, {2, references},  {1, old_references},
    {3, mount},        {1, flush},           {3, read_ahead},  {2, read_later},
    {2, pause_a_while},
};

static void step(struct run *run) {
    enum { COUNT = sizeof OPERATIONS / sizeof OPERATIONS[0] };
    unsigned total = 0, at = 0;
    /* The buffer is about to be used again. */
    wait_for_events(run);
    for (unsigned each = 0; each < COUNT; each++)
        total += OPERATIONS[each].weight;
    for (unsigned chosen = below(run, total); chosen >= OPERATIONS[at].weight; at++)
        chosen -= OPERATIONS[at].weight;
    OPERATIONS[at].act(run);
}

static void *run_thread(void *argument) {
    struct run *run = argument;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    run->buffer = malloc(sizeof(int) * BUFFER_INTS);
    run->events = H5EScreate();
    for (int at = 0; at < STEPS; at++)
        step(run);
    wait_for_events(run);
    H5ESclose(run->events);
    unmount(run);
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
        run->index = at, run->mounted = run->host = -1;
        run->shared = shared;
        snprintf(run->folder, sizeof run->folder, "/%d", at);
        snprintf(name, sizeof name, "%d.h5", at);
        run->own = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        must(run, run->own >= 0 && shared >= 0, "H5Fcreate");
        make_group(run, run->own);
        make_group(run, shared);
    }
    find_plugin();
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
