/* Polling services: called by workers, one at a time, until they are done or taken back. */
#include "check.h"

static _Atomic int calls, inside, busy_calls;
static _Atomic al_task_id waiting;
static int limit = 100;

static int counts_down(void *data)
{
    SAME(atomic_fetch_add(&inside, 1), 0);
    CHECK(data == &limit);
    CHECK(al_worker() >= 0);
    SAME(al_current_task(), 0);
    SAME(al_taskwait(), -EDEADLK);
    SAME(al_wait_on(&limit), -EDEADLK);
    SAME(al_stop(), -EDEADLK);
    int count = atomic_fetch_add(&calls, 1) + 1;
    CHECK(count <= limit);
    SAME(atomic_fetch_sub(&inside, 1), 1);
    return count == limit;
}

/* Like a library of messages: its event comes when it is polled often enough. */
static int brings_the_event(void *data)
{
    int *left = data;
    al_task_id task = waiting;
    if (task == 0 || --*left > 0) {
        return 0;
    }
    SAME(al_events_fulfil(task, 1), 0);
    return 1;
}

static void waits(void *argument)
{
    (void)argument;
    SAME(al_events_add(1), 0);
    waiting = al_current_task();
}

static int resumes(void *data)
{
    al_task_id task = waiting;
    if (task == 0) {
        return 0;
    }
    *(int *)data = 1;
    SAME(al_resume(task), 0);
    return 1;
}

static void pauses(void *argument)
{
    (void)argument;
    waiting = al_current_task();
    SAME(al_pause(), 0);
}

static int is_busy(void *data)
{
    (void)data;
    busy_calls++;
    return 0;
}

/* A service that takes itself back, and then gives 0. */
static int takes_itself_back(void *data)
{
    SAME(al_polling_unregister(takes_itself_back, data), 0);
    *(_Atomic int *)data += 1;
    return 0;
}

static void nothing(void *argument)
{
    (void)argument;
}

int main(void)
{
    int left = 50, resumed = 0;
    _Atomic int taken_back = 0;
    SAME(al_polling_register(is_busy, NULL), -EINVAL);
    start_workers(2);
    SAME(al_polling_register(NULL, NULL), -EINVAL);
    SAME(al_polling_unregister(counts_down, &limit), -EINVAL);
    SAME(al_polling_register(counts_down, &limit), 0);
    /* no task is there: idle workers call it too; it is done after `limit` calls */
    while (calls < limit) {
    }
    SAME(al_polling_register(brings_the_event, &left), 0);
    spawn(waits, NULL);
    SAME(al_taskwait(), 0);
    SAME(left, 0);
    waiting = 0;
    SAME(al_polling_register(resumes, &resumed), 0);
    spawn(pauses, NULL);
    SAME(al_taskwait(), 0);
    SAME(resumed, 1);
    SAME(al_polling_register(takes_itself_back, &taken_back), 0);
    SAME(al_polling_register(is_busy, NULL), 0);
    SAME(al_polling_register(is_busy, NULL), -EALREADY);
    SAME(al_polling_register(is_busy, &left), 0);
    while (busy_calls < 10 || taken_back == 0) {
        spawn(nothing, NULL);
    }
    SAME(al_polling_unregister(is_busy, NULL), 0);
    SAME(al_polling_unregister(is_busy, &left), 0);
    SAME(al_polling_unregister(is_busy, &left), -EINVAL);
    int before = busy_calls;
    for (int i = 0; i < 1000; i++) {
        spawn(nothing, NULL);
    }
    SAME(al_stop(), 0);
    SAME(busy_calls, before);
    SAME(taken_back, 1);
    SAME(calls, limit);
    return 0;
}
