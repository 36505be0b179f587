/* Runs one trap: `traps NAME`. Every trap has a process and a folder of its own. `traps` lists
 * them; `traps no_file_is_made` is for connector strings that cannot be used. */

#define _GNU_SOURCE
#include "trap.h"
#include "watched.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_is_closed;
static int gate_error;
static size_t gate_bytes_min;
static unsigned gate_count;

void trap_check(bool holds, const char *condition, const char *file, int line) {
    if (!holds) {
        fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
        H5Eprint2(H5E_DEFAULT, stderr);
        _exit(1);
    }
}

void trap_skip(const char *why) {
    printf("skipped: %s\n", why);
    fflush(stdout);
    _exit(77);
}

static void gate_set(bool is_closed, int error, size_t bytes_min) {
    pthread_mutex_lock(&gate);
    gate_is_closed = is_closed;
    gate_error = error;
    gate_bytes_min = bytes_min;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate);
}

void gate_close(void) {
    gate_set(true, 0, 0);
}

void gate_open(void) {
    gate_set(false, 0, 0);
}

void gate_fail(int error, size_t bytes_min) {
    gate_set(false, error, bytes_min);
}

unsigned gate_begun(void) {
    pthread_mutex_lock(&gate);
    unsigned count = gate_count;
    pthread_mutex_unlock(&gate);
    return count;
}

/* What stands in for the system's: HDF5 and the connector both come through here. */
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    pthread_mutex_lock(&gate);
    if (gettid() != getpid()) {
        gate_count++;
        while (gate_is_closed)
            pthread_cond_wait(&gate_changed, &gate);
    }
    int error = size >= gate_bytes_min ? gate_error : 0;
    pthread_mutex_unlock(&gate);
    if (error != 0) {
        errno = error;
        return -1;
    }
    READS(bytes, size);
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    return pwrite64(fd, bytes, size, offset);
}

struct text {
    char bytes[1 << 14];
    size_t used;
};

static herr_t add_to_text(unsigned at, const H5E_error2_t *error, void *context) {
    struct text *text = context;
    size_t room = sizeof text->bytes - text->used;
    int added = snprintf(text->bytes + text->used, room, "%s\n", error->desc);
    if (added > 0 && (size_t)added < room)
        text->used += (size_t)added;
    return (void)at, 0;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void compute(void) {
    for (double until = seconds() + 0.002; seconds() < until;)
        continue;
}

const char *stack_text(hid_t stack) {
    static struct text text;
    text.used = 0;
    text.bytes[0] = '\0';
    H5Ewalk2(stack, H5E_WALK_DOWNWARD, add_to_text, &text);
    return text.bytes;
}

hid_t new_file(const char *name) {
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(file >= 0);
    return file;
}

hid_t new_dataset(hid_t file, const char *name, hsize_t count) {
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t dataset =
        H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(dataset >= 0);
    H5Sclose(space);
    return dataset;
}

int *numbers(int seed, size_t count) {
    int *made = malloc(count * sizeof *made);
    for (size_t at = 0; at < count; at++)
        made[at] = seed * 1000003 + (int)at;
    return made;
}

void write_numbers(hid_t dataset, int seed, size_t count) {
    int *made = numbers(seed, count);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) >= 0);
    memset(made, 0x55, count * sizeof *made);
    free(made);
}

void check_numbers(hid_t file, const char *name, int seed, size_t count) {
    int *made = numbers(seed, count), *found = calloc(count, sizeof *found);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    CHECK(dataset >= 0);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    CHECK(memcmp(made, found, count * sizeof *made) == 0);
    CHECK(H5Dclose(dataset) >= 0);
    free(made);
    free(found);
}

void check_file(const char *name, const char *dataset, int seed, size_t count) {
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(file >= 0);
    check_numbers(file, dataset, seed, count);
    CHECK(H5Fclose(file) >= 0);
}

int main(int count, char **words) {
    const struct trap *all[] = {ERRORS, EVENTS,    FULL,    BUFFERS, BESIDE,
                                LATER,  PROCESSES, THREADS, WAIT,    POSTPONED};
    if (count > 1) {
        /* To be said before anything else is called. */
        if (strcmp(words[1], "an_exit_without_the_handler_of_hdf5_writes_all") == 0)
            CHECK(H5dont_atexit() >= 0);
        CHECK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0);
        if (strcmp(words[1], "no_file_is_made") == 0) {
            for (int turn = 0; turn < 2; turn++)
                CHECK(H5Fcreate("refused.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT) < 0);
            return access("refused.h5", F_OK) == 0 ? 1 : 0;
        }
        if (strcmp(words[1], "a_lent_buffer_is_changed_too_early") == 0)
            return a_lent_buffer_is_changed_too_early(), 0;
    }
    for (size_t at = 0; at < sizeof all / sizeof all[0]; at++)
        for (const struct trap *trap = all[at]; trap->name != NULL; trap++) {
            if (count < 2)
                puts(trap->name);
            else if (strcmp(words[1], trap->name) == 0)
                return trap->run(), 0;
        }
    return count < 2 ? 0 : 2;
}
