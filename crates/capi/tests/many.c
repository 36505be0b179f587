/* A task that spawns far more tasks than fit into a cache: it lets others run meanwhile, comes back
 * when nothing else is left to run, and every task runs once. */
#include "check.h"

#define MANY 100000
/* What the header says of al_spawn, and as much again for a machine that is busy otherwise. */
#define LIVE_MAX 2048
#define WAITING 3000
/* 10 + 100 + ... + 100,000 tasks, and the first */
#define BREADTH 10
#define DEPTH 6
#define DESCENDANTS 111111
/* Those that stepped back, and the one that runs. */
#define BEGUN_MAX 17

static ATOMIC_INT ended;
static ATOMIC_INT come_back;
static int live_most;
static int begun;
static int begun_most;

static void small(void *argument)
{
    (void)argument;
    ended++;
}

static void nothing(void *argument)
{
    (void)argument;
}

/* On one worker: whatever is not over waits in its line, or is the one that spawns. */
static void spawns_many(void *argument)
{
    (void)argument;
    ended = 0;
    for (int i = 0; i < MANY; i++) {
        spawn(small, NULL);
        int live = i + 1 - ended;
        live_most = live > live_most ? live : live_most;
    }
    SAME(al_taskwait(), 0);
    SAME(ended, MANY);
}

/* Two that spawn at once, on one worker: none waits for the end of the other. */
static void spawns_beside(void *argument)
{
    (void)argument;
    for (int i = 0; i < MANY; i++) {
        spawn(small, NULL);
    }
    come_back++;
}

/* Tasks that are paused until the one that spawned them goes on do not hold it up. */
static void paused(void *argument)
{
    static int next;
    al_task_id *paused_tasks = argument;
    paused_tasks[next++] = al_current_task();
    SAME(al_pause(), 0);
    ended++;
}

/* Children that spawn children, none of which waits: those that step back have a stack each, of
 * which there are few. */
static void spawns_spawners(void *argument)
{
    int depth = *(int *)argument - 1;
    al_task task = {.body = spawns_spawners, .argument = &depth, .argument_bytes = sizeof depth};
    begun++;
    begun_most = begun > begun_most ? begun : begun_most;
    for (int i = 0; i < BREADTH && depth > 0; i++) {
        SAME(al_spawn(&task), 0);
    }
    begun--;
    ended++;
}

static void reads(void *argument)
{
    char byte;
    SAME(al_pread(*(int *)argument, &byte, 1, 0), 1);
    ended++;
}

static void spawns_waiting(void *argument)
{
    static al_task_id paused_tasks[WAITING];
    ended = 0;
    for (int i = 0; i < WAITING; i++) {
        spawn(paused, paused_tasks);
        spawn(reads, argument);
    }
    for (int i = 0; i < WAITING; i++) {
        while (paused_tasks[i] == 0) {
            spawn(nothing, NULL);
        }
        SAME(al_resume(paused_tasks[i]), 0);
    }
    SAME(al_taskwait(), 0);
    SAME(ended, 2 * WAITING);
}

int main(void)
{
    int file = scratch(0);
    start_workers(1);
    SAME(pwrite(file, "x", 1, 0), 1);
    spawn(spawns_many, NULL);
    SAME(al_taskwait(), 0);
    CHECK(live_most > 0 && live_most <= LIVE_MAX);
    ended = 0;
    spawn(spawns_beside, NULL);
    spawn(spawns_beside, NULL);
    SAME(al_taskwait(), 0);
    SAME(ended, 2 * MANY);
    SAME(come_back, 2);
    int depth = DEPTH;
    ended = 0;
    spawn(spawns_spawners, &depth);
    SAME(al_taskwait(), 0);
    SAME(ended, DESCENDANTS);
    CHECK(begun_most > 1 && begun_most <= BEGUN_MAX);
    spawn(spawns_waiting, &file);
    SAME(al_taskwait(), 0);
    SAME(al_stop(), 0);
    return 0;
}
