/* Events hold back the end of a task, whoever fulfils them; pausing and resuming in both orders. */
#include "check.h"

#include <pthread.h>

#define TASKS 200
#define EVENTS 3

static _Atomic al_task_id waiting[TASKS];
static int ended[TASKS], seen;

static void waits(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    SAME(al_events_add(0), 0);
    SAME(al_events_add(EVENTS), 0);
    ended[number] = 1;
    atomic_store(&waiting[number], al_current_task());
}

static void follows(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    SAME(ended[number], 2);
    __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
}

/* A thread that knows nothing of tasks: another library. */
static void *fulfils(void *nothing)
{
    for (size_t done = 0; done < TASKS;) {
        for (size_t i = 0; i < TASKS; i++) {
            al_task_id task = atomic_exchange(&waiting[i], 0);
            if (task == 0) {
                continue;
            }
            SAME(al_events_fulfil(task, EVENTS + 1), -EINVAL);
            SAME(al_events_fulfil(task, EVENTS - 1), 0);
            SAME(al_events_fulfil(task, 0), 0);
            ended[i] = 2;
            SAME(al_events_fulfil(task, 1), 0);
            SAME(al_events_fulfil(task, 1), -EINVAL);
            done++;
        }
    }
    return nothing;
}

static void events_from_another_thread(void)
{
    pthread_t other;
    SAME(pthread_create(&other, NULL, fulfils, NULL), 0);
    for (size_t i = 0; i < TASKS; i++) {
        al_access uses = al_inout(&ended[i]);
        spawn_whole(waits, (void *)(uintptr_t)i, &uses, 1);
        spawn_whole(follows, (void *)(uintptr_t)i, &uses, 1);
    }
    SAME(al_taskwait(), 0);
    SAME(seen, TASKS);
    SAME(pthread_join(other, NULL), 0);
}

/* Fulfilled before the body ends, by the task itself. */
static void fulfils_itself(void *argument)
{
    (void)argument;
    SAME(al_events_add(2), 0);
    SAME(al_events_fulfil(al_current_task(), 2), 0);
    SAME(al_events_add(1u << 30), 0);
    SAME(al_events_add(1u << 30), -EINVAL);
    SAME(al_events_add(UINT32_MAX), -EINVAL);
    SAME(al_events_fulfil(al_current_task(), 1u << 30), 0);
}

static _Atomic al_task_id pausing;
static _Atomic int steps;

static void resumed_before(void *argument)
{
    (void)argument;
    SAME(al_resume(al_current_task()), 0);
    SAME(al_resume(al_current_task()), 0);
    SAME(al_pause(), 0);
    steps++;
}

static void pauses(void *argument)
{
    int rounds = *(int *)argument;
    for (int i = 0; i < rounds; i++) {
        atomic_store(&pausing, al_current_task());
        SAME(al_pause(), 0);
        steps++;
    }
}

static void pausing_in_both_orders(void)
{
    int rounds = 1000;
    spawn(resumed_before, NULL);
    SAME(al_taskwait(), 0);
    SAME(steps, 1);
    spawn(pauses, &rounds);
    for (int i = 0; i < rounds; i++) {
        al_task_id task;
        while ((task = atomic_exchange(&pausing, 0)) == 0) {
        }
        SAME(al_resume(task), 0);
    }
    SAME(al_taskwait(), 0);
    SAME(steps, 1 + rounds);
}

/* While a task pauses its worker runs others: with one worker, they resume each other. */
static _Atomic al_task_id partners[2];
static _Atomic int turns[2];

static void plays(void *argument)
{
    size_t me = (size_t)(uintptr_t)argument, other = 1 - me;
    partners[me] = al_current_task();
    for (turns[me] = 0; turns[me] < 1000; turns[me]++) {
        /* the other one may not have begun, or be over */
        al_resume(partners[other]);
        SAME(al_pause(), 0);
    }
    al_resume(partners[other]);
}

static void judge_of_none(void)
{
    SAME(al_resume(0), -EINVAL);
    SAME(al_resume(UINT64_MAX), -EINVAL);
    SAME(al_resume(1ull << 40), -EINVAL);
    SAME(al_events_fulfil(0, 1), -EINVAL);
    SAME(al_events_fulfil(UINT64_MAX, 1), -EINVAL);
    SAME(al_pause(), -EINVAL);
    SAME(al_events_add(1), -EINVAL);
}

static void is_known_until_it_is_over(void *argument)
{
    *(al_task_id *)argument = al_current_task();
    CHECK(al_current_task() != 0);
}

/* No event at all is none of those that a task waits for, and not its end. */
static _Atomic int drops;
static _Atomic al_task_id waits_for_one;

static void waits_for_an_event(void *argument)
{
    (void)argument;
    SAME(al_events_add(1), 0);
    waits_for_one = al_current_task();
}

static void count_drop(void *argument)
{
    (void)argument;
    drops++;
}

static void no_event_ends_nothing(void)
{
    for (int i = 0; i < 1000; i++) {
        al_task task = {.body = waits_for_an_event, .drop = count_drop};
        waits_for_one = 0;
        drops = 0;
        SAME(al_spawn(&task), 0);
        while (waits_for_one == 0) {
        }
        SAME(al_events_fulfil(waits_for_one, 0), 0);
        SAME(drops, 0);
        SAME(al_events_fulfil(waits_for_one, 1), 0);
        for (int late = 0; late < 3; late++) {
            int found = al_events_fulfil(waits_for_one, 0);
            CHECK(found == 0 || found == -EINVAL);
        }
        SAME(al_taskwait(), 0);
        SAME(drops, 1);
    }
}

int main(void)
{
    al_task_id task = 0;
    start_workers(2);
    events_from_another_thread();
    spawn(fulfils_itself, NULL);
    SAME(al_taskwait(), 0);
    pausing_in_both_orders();
    no_event_ends_nothing();
    judge_of_none();
    spawn(is_known_until_it_is_over, &task);
    SAME(al_taskwait(), 0);
    SAME(al_resume(task), -EINVAL);
    SAME(al_events_fulfil(task, 1), -EINVAL);
    SAME(al_stop(), 0);
    start_workers(1);
    spawn(plays, (void *)0);
    spawn(plays, (void *)1);
    /* whoever ends first may leave the other one pausing */
    while (turns[0] < 1000 || turns[1] < 1000) {
        al_resume(partners[0]);
        al_resume(partners[1]);
    }
    SAME(al_stop(), 0);
    return 0;
}
