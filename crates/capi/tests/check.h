/* What every test program uses: checks, a limit of time, scratch files, and the calls under test.
 *
 * A program exits with 0 (all is well), 1 (a check failed, told on standard error) or 77 (cannot be
 * tested here, with the reason). With PLAIN_CALLS defined, the blocking operations are the ordinary
 * system calls, which libalongside_preload has to make task-aware.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#ifdef __cplusplus
#include <atomic>
#define ATOMIC_INT std::atomic<int>
#else
#include <stdatomic.h>
#define ATOMIC_INT _Atomic int
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alongside.h"

/* Seconds that a program may take before it counts as hanging. */
#define LIMIT_S 120

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Two whole numbers that have to be equal; both are told. */
#define SAME(one, other)                                                                           \
    do {                                                                                           \
        long long one_ = (long long)(one), other_ = (long long)(other);                            \
        if (one_ != other_) {                                                                      \
            fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", __FILE__, __LINE__, #one, one_,     \
                    #other, other_);                                                               \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        fprintf(stderr, "skipped: %s\n", reason);                                                  \
        _exit(77);                                                                                 \
    } while (0)

/* Messages of the library, counted; the last one is kept. */
static ATOMIC_INT messages_count;
static char message_last[1024];

__attribute__((unused)) static void keep_message(const char *text, void *data)
{
    (void)data;
    snprintf(message_last, sizeof message_last, "%s", text);
    messages_count++;
}

static void time_is_up(int number)
{
    static const char text[] = "the time is up: the program hangs\n";
    (void)number;
    (void)!write(2, text, sizeof text - 1);
    _exit(1);
}

__attribute__((unused)) static void limit_time(void)
{
    signal(SIGALRM, time_is_up);
    alarm(LIMIT_S);
}

/* Starts the runtime with so many workers (0: as many as there are processors). */
__attribute__((unused)) static void start_workers(unsigned workers)
{
    al_options options;
    limit_time();
    al_options_init(&options);
    options.workers = workers;
    SAME(al_start(&options), 0);
}

/* Spawns a task with a copy of so many bytes of its argument; none: with the argument itself. */
__attribute__((unused)) static void spawn_copy(al_body body, void *argument, size_t bytes,
                                               const al_access *uses, size_t count)
{
    al_task task;
    memset(&task, 0, sizeof task);
    task.body = body;
    task.argument = argument;
    task.argument_bytes = bytes;
    task.accesses = uses;
    task.accesses_count = count;
    SAME(al_spawn(&task), 0);
}

__attribute__((unused)) static void spawn_whole(al_body body, void *argument, const al_access *uses,
                                                size_t count)
{
    spawn_copy(body, argument, 0, uses, count);
}

__attribute__((unused)) static void spawn(al_body body, void *argument)
{
    spawn_whole(body, argument, NULL, 0);
}

/* A file that goes away with its descriptor, in the current folder. -1: not with these flags. */
__attribute__((unused)) static int scratch(int flags)
{
    return open(".", O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
}

/* A byte that depends on where it is in the file and on the file's seed. */
__attribute__((unused)) static unsigned char pattern(uint64_t place, uint64_t seed)
{
    uint64_t mixed = (place + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u;
    return (unsigned char)(mixed >> 56);
}

__attribute__((unused)) static void fill(unsigned char *at, size_t bytes, uint64_t place,
                                         uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = pattern(place + i, seed);
    }
}

__attribute__((unused)) static int is_filled(const unsigned char *at, size_t bytes, uint64_t place,
                                             uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != pattern(place + i, seed)) {
            return 0;
        }
    }
    return 1;
}

/* Random numbers that are the same in every run. */
__attribute__((unused)) static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = (*state += 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

#ifdef PLAIN_CALLS
#define PLAIN(call)                                                                                \
    __extension__({                                                                                \
        ssize_t given_ = (call);                                                                   \
        given_ < 0 ? -(ssize_t)errno : given_;                                                     \
    })
#define do_pread(...) PLAIN(pread(__VA_ARGS__))
#define do_pwrite(...) PLAIN(pwrite(__VA_ARGS__))
#define do_preadv(...) PLAIN(preadv(__VA_ARGS__))
#define do_pwritev(...) PLAIN(pwritev(__VA_ARGS__))
#define do_fsync(...) PLAIN(fsync(__VA_ARGS__))
#define do_fdatasync(...) PLAIN(fdatasync(__VA_ARGS__))
#else
#define do_pread al_pread
#define do_pwrite al_pwrite
#define do_preadv al_preadv
#define do_pwritev al_pwritev
#define do_fsync al_fsync
#define do_fdatasync al_fdatasync
#endif

#endif
