/* An idle runtime costs nothing, also while something is outstanding: less than 1 % of a core. */
#include "check.h"

#include <pthread.h>
#include <time.h>

/* How long it is watched: the one wait on a clock in these tests, as time is what is measured. */
#define WATCHED_NS 1000000000LL

static _Atomic al_task_id waiting[2];

static long long clock_ns(clockid_t clock)
{
    struct timespec time;
    SAME(clock_gettime(clock, &time), 0);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void waits_for_an_event(void *argument)
{
    SAME(al_events_add(1), 0);
    *(_Atomic al_task_id *)argument = al_current_task();
}

static void pauses(void *argument)
{
    *(_Atomic al_task_id *)argument = al_current_task();
    SAME(al_pause(), 0);
}

/* Waits on a condition that never comes, so that the main thread costs nothing either. */
static void watch_the_clock(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    SAME(clock_gettime(CLOCK_REALTIME, &until), 0);
    until.tv_sec += WATCHED_NS / 1000000000LL;
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&never, &mutex, &until) == 0) {
    }
    pthread_mutex_unlock(&mutex);
}

static void costs_nothing(const char *when)
{
    watch_the_clock();
    long long wall = clock_ns(CLOCK_MONOTONIC), used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    watch_the_clock();
    wall = clock_ns(CLOCK_MONOTONIC) - wall;
    used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
    printf("%s: %.3f %% of a core\n", when, 100.0 * (double)used / (double)wall);
    CHECK(used * 100 < wall);
}

static void fulfilled(uintptr_t event)
{
    *(_Atomic int *)event = 1;
}

static int file;

static void reads(void *argument)
{
    SAME(al_pread_async(file, argument, 4096, 0, NULL), 0);
}

int main(void)
{
    _Atomic int event = 0;
    static char blocks[100][4096];
    file = scratch(0);
    SAME(pwrite(file, blocks[0], sizeof blocks[0], 0), sizeof blocks[0]);
    start_workers(2);
    /* the completion thread for OpenMP exists as well */
    SAME(al_detach_fsync((uintptr_t)&event, fulfilled, file, NULL), 0);
    SAME(al_detach_done((uintptr_t)&event, fulfilled), 0);
    for (int i = 0; i < 100; i++) {
        spawn(reads, blocks[i]);
    }
    SAME(al_taskwait(), 0);
    costs_nothing("no task");
    spawn(waits_for_an_event, (void *)&waiting[0]);
    spawn(pauses, (void *)&waiting[1]);
    while (waiting[0] == 0 || waiting[1] == 0) {
    }
    costs_nothing("a task that waits for an event and one that pauses");
    SAME(al_events_fulfil(waiting[0], 1), 0);
    SAME(al_resume(waiting[1]), 0);
    SAME(al_stop(), 0);
    return 0;
}
