/* Brief tasks that a task spawns run before al_spawn returns, and are tasks like others all the
 * same, whatever they come to do. */
#include "check.h"

#define CHAIN 20000
/* More brief tasks than it takes to be known as brief, also after one that was not. */
#define MANY 8000
#define TRIES_MAX 1000
#define DEPTH 5000
#define CELLS 8
#define SPAWNERS 6
#define TASKS 4000

static uint64_t chain;
static int began, file;

/* With one worker: what has begun when al_spawn returns is undeferred. */
static void link_of_chain(void *argument)
{
    SAME(chain, *(uint64_t *)argument);
    chain++;
    began = 1;
}

static void spawns_chain(void *argument)
{
    uint64_t undeferred = 0;
    al_access uses = al_inout(&chain);
    (void)argument;
    chain = 0;
    for (uint64_t step = 0; step < CHAIN; step++) {
        began = 0;
        spawn_copy(link_of_chain, &step, sizeof step, &uses, 1);
        undeferred += began && chain == step + 1;
    }
    SAME(al_taskwait(), 0);
    SAME(chain, CHAIN);
    CHECK(undeferred > 0);
}

/* What a task may do that is brief as a rule. */
enum odd { BRIEF, READS, READS_ASYNC, WAITS, SPAWNS, SPAWNS_AND_WAITS, EVENT, PAUSES, RELEASES,
           WAITS_ON, ASKS, ODD };

struct odd_task {
    enum odd what;
    /* Beyond what a task keeps without memory of its own. */
    uint64_t filling[8];
};

static _Atomic al_task_id told;
static int ended, children, followed;
static char byte;
static ssize_t got;

static void child(void *argument)
{
    (void)argument;
    children++;
}

static void nothing(void *argument)
{
    (void)argument;
}

static void odd_body(void *argument)
{
    const struct odd_task *task = argument;
    SAME(task->filling[7], 7);
    began = 1;
    switch (task->what) {
    case READS: SAME(al_pread(file, &byte, 1, 0), 1); break;
    case READS_ASYNC: SAME(al_pread_async(file, &byte, 1, 0, &got), 0); break;
    case WAITS: SAME(al_taskwait(), 0); break;
    case SPAWNS: spawn(child, NULL); break;
    case SPAWNS_AND_WAITS:
        spawn(child, NULL);
        SAME(al_taskwait(), 0);
        SAME(children, 1);
        break;
    case EVENT:
        SAME(al_events_add(1), 0);
        told = al_current_task();
        break;
    case PAUSES:
        told = al_current_task();
        SAME(al_pause(), 0);
        break;
    case RELEASES: SAME(al_release(0), 0); break;
    case WAITS_ON: SAME(al_wait_on(&chain), 0); break;
    case ASKS: CHECK(al_current_task() != 0 && al_worker() == 0); break;
    default: break;
    }
    SAME(task->filling[7], 7);
    ended = 1;
}

static void follows(void *argument)
{
    enum odd what = *(enum odd *)argument;
    SAME(ended, 1);
    SAME(children, what == SPAWNS || what == SPAWNS_AND_WAITS);
    SAME(byte, what == READS || what == READS_ASYNC ? 'x' : 0);
    followed = 1;
}

/* Whether it was undeferred; if not, the machine was too busy for its kind to be known as brief. */
static int does_something_odd(enum odd what)
{
    struct odd_task task = {BRIEF, {0, 0, 0, 0, 0, 0, 0, 7}};
    al_access uses = al_inout(&ended);
    for (int i = 0; i < MANY; i++) {
        spawn_copy(odd_body, &task, sizeof task, &uses, 1);
    }
    SAME(al_taskwait(), 0);
    began = ended = children = followed = byte = 0;
    told = 0;
    task.what = what;
    spawn_copy(odd_body, &task, sizeof task, &uses, 1);
    int undeferred = began;
    memset(&task, 0, sizeof task);
    spawn_copy(follows, &what, sizeof what, &uses, 1);
    if (what == EVENT || what == PAUSES) {
        while (told == 0) {
            spawn(nothing, NULL);
        }
        SAME(followed, 0);
        SAME(what == EVENT ? al_events_fulfil(told, 1) : al_resume(told), 0);
    }
    SAME(al_taskwait(), 0);
    SAME(followed, 1);
    return undeferred;
}

static void does_all(void *argument)
{
    (void)argument;
    for (enum odd what = BRIEF; what < ODD; what++) {
        int tries = 1;
        while (!does_something_odd(what)) {
            CHECK(tries++ < TRIES_MAX);
        }
    }
}

/* What is wrong is refused, however brief the task would be; what is right is dropped once. */
static int drops, runs;

static void counted(void *argument)
{
    SAME(*(int *)argument, 3);
    runs++;
}

static void dropped(void *argument)
{
    SAME(*(int *)argument, 3);
    SAME(al_current_task(), 0);
    drops++;
}

static void refused_and_dropped(void *argument)
{
    int three = 3;
    al_access twice[] = {al_in(&three), al_inout(&three)};
    al_access nothing = al_in(NULL), no_direction = al_whole((al_direction)9, &three);
    al_access reversed = {&three, AL_IN, 1, {4, 2}, NULL};
    al_task task = {.body = counted, .argument = &three, .argument_bytes = sizeof three,
                    .drop = dropped};
    (void)argument;
    for (int i = 0; i < MANY; i++) {
        SAME(al_spawn(&task), 0);
    }
    SAME(al_taskwait(), 0);
    SAME(runs, MANY);
    SAME(drops, MANY);
    task.accesses = twice;
    task.accesses_count = 2;
    SAME(al_spawn(&task), -EINVAL);
    task.accesses_count = 1;
    task.accesses = &nothing;
    SAME(al_spawn(&task), -EINVAL);
    task.accesses = &no_direction;
    SAME(al_spawn(&task), -EINVAL);
    task.accesses = &reversed;
    SAME(al_spawn(&task), -EINVAL);
    SAME(al_taskwait(), 0);
    SAME(runs, MANY);
    SAME(drops, MANY);
}

/* Each spawns the next one, and its parent is over when all are. */
static _Atomic unsigned depth;

static void descends(void *argument)
{
    unsigned left = *(unsigned *)argument;
    depth++;
    if (left-- > 0) {
        spawn_copy(descends, &left, sizeof left, NULL, 0);
    }
}

static void spawns_one_that_descends(void *argument)
{
    unsigned none = 0, some = DEPTH;
    (void)argument;
    for (int i = 0; i < MANY; i++) {
        spawn_copy(descends, &none, sizeof none, NULL, 0);
    }
    SAME(al_taskwait(), 0);
    SAME(depth, MANY);
    spawn_copy(descends, &some, sizeof some, NULL, 0);
    SAME(al_taskwait(), 0);
    SAME(depth, MANY + DEPTH + 1);
}

/* Random tasks of several spawners on two workers, with what only some of them do: each finds its
 * cells as the tasks before it left them. */
struct random_task {
    uint64_t seed;
    unsigned expected[2];
    unsigned *cells[2];
};

static void random_child(void *argument)
{
    __atomic_fetch_add((unsigned *)argument, 1, __ATOMIC_RELAXED);
}

static void random_body(void *argument)
{
    struct random_task *task = argument;
    uint64_t rare = next_random(&task->seed) % 1000;
    unsigned sum = 0;
    char read = 0;
    for (int i = 0; i < 2; i++) {
        SAME(*task->cells[i], task->expected[i]);
    }
    if (rare == 0) {
        SAME(al_pread(file, &read, 1, 0), 1);
        SAME(read, 'x');
    } else if (rare == 1) {
        for (int i = 0; i < 5; i++) {
            spawn(random_child, &sum);
        }
        SAME(al_taskwait(), 0);
        SAME(sum, 5);
    } else if (rare == 2) {
        SAME(al_resume(al_current_task()), 0);
        SAME(al_pause(), 0);
    } else if (rare == 3) {
        for (volatile int i = 0; i < 100000; i++) {
        }
    }
    *task->cells[0] += 1;
    SAME(*task->cells[1], task->expected[1]);
}

static void random_spawner(void *argument)
{
    uint64_t state = (uintptr_t)argument;
    unsigned cells[CELLS] = {0}, expected[CELLS] = {0};
    for (int i = 0; i < TASKS; i++) {
        unsigned one = next_random(&state) % CELLS;
        unsigned other = (one + 1 + next_random(&state) % (CELLS - 1)) % CELLS;
        al_access uses[] = {al_inout(&cells[one]), al_in(&cells[other])};
        struct random_task task = {
            next_random(&state), {expected[one], expected[other]}, {&cells[one], &cells[other]}};
        expected[one]++;
        spawn_copy(random_body, &task, sizeof task, uses, 2);
    }
    SAME(al_taskwait(), 0);
    for (int i = 0; i < CELLS; i++) {
        SAME(cells[i], expected[i]);
    }
}

int main(void)
{
    file = scratch(0);
    SAME(pwrite(file, "x", 1, 0), 1);
    start_workers(1);
    spawn(spawns_chain, NULL);
    SAME(al_taskwait(), 0);
    spawn(does_all, NULL);
    SAME(al_taskwait(), 0);
    al_set_message_hook(keep_message, NULL);
    spawn(refused_and_dropped, NULL);
    SAME(al_stop(), 0);
    SAME(messages_count, 4);
    start_workers(2);
    spawn(spawns_one_that_descends, NULL);
    SAME(al_taskwait(), 0);
    for (uintptr_t seed = 1; seed <= SPAWNERS; seed++) {
        spawn(random_spawner, (void *)seed);
    }
    SAME(al_stop(), 0);
    return 0;
}
