/* al_wait_on: everybody that was spawned before and uses the datum is over; others may go on. */
#include "check.h"

#define ROUNDS 200

static uint64_t value, other;
static _Atomic al_task_id held;
static int file;

static void adds(void *argument)
{
    char byte;
    (void)argument;
    SAME(al_pread(file, &byte, 1, 0), 1);
    value += 1;
}

/* Stays until main has fulfilled its event. */
static void holds(void *argument)
{
    (void)argument;
    SAME(al_events_add(1), 0);
    atomic_store(&held, al_current_task());
}

static void adds_to_sum(void *argument)
{
    *(uint64_t *)argument += 1;
}

static void waits_inside(void *argument)
{
    uint64_t *sum = argument;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        al_access uses = al_inout(sum);
        spawn_whole(adds_to_sum, sum, &uses, 1);
        SAME(al_wait_on(sum), 0);
        SAME(*sum, round);
    }
}

int main(void)
{
    uint64_t sum = 0;
    al_access uses = al_inout(&value), holding = al_inout(&other);
    start_workers(2);
    file = scratch(0);
    SAME(pwrite(file, "x", 1, 0), 1);
    spawn_whole(holds, NULL, &holding, 1);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        spawn_whole(adds, NULL, &uses, 1);
        SAME(al_wait_on(&value), 0);
        SAME(value, round);
    }
    SAME(al_wait_on(&sum), 0);
    spawn(waits_inside, &sum);
    /* that task waits, and the one that holds another datum is still there */
    while (held == 0) {
        SAME(al_wait_on(&sum), 0);
    }
    SAME(al_events_fulfil(held, 1), 0);
    SAME(al_wait_on(&other), 0);
    SAME(al_events_fulfil(held, 1), -EINVAL);
    SAME(al_taskwait(), 0);
    SAME(sum, ROUNDS);
    SAME(al_stop(), 0);
    return 0;
}
