/* Tasks that spawn tasks: taskwait waits for the children, a parent is not over before they are,
 * and accesses order siblings. */
#include "check.h"

#define WIDTH 50

static void leaf(void *argument)
{
    *(uint64_t *)argument += 1;
}

struct sum {
    int n;
    uint64_t *result;
};

/* Fibonacci numbers the long way: every call is a task that waits for two. */
static void fibonacci(void *argument)
{
    struct sum *sum = argument;
    uint64_t one = 0, other = 0;
    if (sum->n < 2) {
        *sum->result = (uint64_t)sum->n;
        return;
    }
    struct sum first = {sum->n - 1, &one}, second = {sum->n - 2, &other};
    al_task task = {.body = fibonacci, .argument = &first, .argument_bytes = sizeof first};
    SAME(al_spawn(&task), 0);
    task.argument = &second;
    SAME(al_spawn(&task), 0);
    SAME(al_taskwait(), 0);
    *sum->result = one + other;
}

/* Children that use one datum run one after the other, in the order of their spawning. */
static void chain(void *argument)
{
    uint64_t *value = argument;
    al_access uses = al_inout(value);
    for (int i = 0; i < WIDTH; i++) {
        spawn_whole(leaf, value, &uses, 1);
    }
    SAME(al_taskwait(), 0);
    SAME(*value, WIDTH);
    for (int i = 0; i < WIDTH; i++) {
        spawn_whole(leaf, value, &uses, 1);
    }
}

static void after_chain(void *argument)
{
    SAME(*(uint64_t *)argument, 2 * WIDTH);
    *(uint64_t *)argument = 7;
}

/* A task that waits for nothing and ends: its grandchildren still hold back its dependents. */
static void grandchild(void *argument)
{
    char byte;
    int *ends = argument;
    SAME(al_pread(ends[0], &byte, 1, 0), 1);
    __atomic_fetch_add(&ends[1], 1, __ATOMIC_RELAXED);
}

static void child(void *argument)
{
    for (int i = 0; i < 10; i++) {
        spawn(grandchild, argument);
    }
}

static void grandparent(void *argument)
{
    for (int i = 0; i < 10; i++) {
        spawn(child, argument);
    }
}

static void heir(void *argument)
{
    SAME(((int *)argument)[1], 100);
}

static void waits_for_nothing(void *argument)
{
    (void)argument;
    SAME(al_taskwait(), 0);
}

int main(void)
{
    uint64_t result = 0, value = 0;
    struct sum sum = {16, &result};
    al_access uses = al_inout(&value);
    start_workers(2);
    spawn(fibonacci, &sum);
    SAME(al_taskwait(), 0);
    SAME(result, 987);
    spawn_whole(chain, &value, &uses, 1);
    spawn_whole(after_chain, &value, &uses, 1);
    SAME(al_taskwait(), 0);
    SAME(value, 7);
    int ends[2] = {scratch(0), 0};
    SAME(pwrite(ends[0], "x", 1, 0), 1);
    for (int round = 1; round <= 20; round++) {
        al_access whole = al_inout(ends);
        ends[1] = 0;
        spawn_whole(grandparent, ends, &whole, 1);
        spawn_whole(heir, ends, &whole, 1);
        SAME(al_taskwait(), 0);
    }
    spawn(waits_for_nothing, NULL);
    SAME(al_stop(), 0);
    return 0;
}
