/* Of the tasks that are ready, those of higher priority begin first, and equals in their order. */
#include "check.h"

#define TASKS 30

static int order[TASKS], count;

static void notes(void *argument)
{
    order[count++] = (int)(intptr_t)argument;
}

/* With one worker nothing begins before this task, which spawns all of them, has ended or waits:
 * but some may be on their way to the worker already. They wait for a datum that it holds. */
static void spawns(void *argument)
{
    static int gate;
    al_access holds = al_out(&gate), needs = al_in(&gate);
    (void)argument;
    al_task first = {.body = notes, .argument = (void *)(intptr_t)-1};
    first.accesses = &holds;
    first.accesses_count = 1;
    SAME(al_spawn(&first), 0);
    for (int i = 0; i < TASKS - 1; i++) {
        al_task task = {.body = notes, .argument = (void *)(intptr_t)i, .priority = i % 3 - 1};
        task.accesses = &needs;
        task.accesses_count = 1;
        SAME(al_spawn(&task), 0);
    }
}

int main(void)
{
    start_workers(1);
    spawn(spawns, NULL);
    SAME(al_stop(), 0);
    SAME(count, TASKS);
    SAME(order[0], -1);
    for (int i = 2; i < TASKS; i++) {
        int one = order[i - 1] % 3, other = order[i] % 3;
        CHECK(one > other || (one == other && order[i - 1] < order[i]));
    }
    return 0;
}
