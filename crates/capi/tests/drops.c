/* Arguments: copied when asked for, and dropped once each when their task is over, before anybody
 * who waited for the task goes on. */
#include "check.h"

#define TASKS 2000

struct small {
    _Atomic int *dropped;
    int value;
};

struct large {
    struct small head;
    unsigned char body[300];
};

static _Atomic int ran;
static int file;

static void small_body(void *argument)
{
    struct small *small = argument;
    SAME(small->value, 17);
    small->value = 18;
    ran++;
}

static void large_body(void *argument)
{
    char byte;
    struct large *large = argument;
    CHECK(is_filled(large->body, sizeof large->body, 0, 6));
    CHECK((uintptr_t)argument % 8 == 0);
    SAME(al_pread(file, &byte, 1, 0), 1);
    SAME(al_fdatasync_async(file, NULL), 0);
    large->head.value = 18;
    ran++;
}

static void drop(void *argument)
{
    struct small *small = argument;
    SAME(small->value, 18);
    small->value = 19;
    atomic_fetch_add(small->dropped, 1);
}

static void spawn_copied(al_body body, const void *argument, size_t bytes)
{
    al_task task = {.body = body, .argument = (void *)(uintptr_t)argument,
                    .argument_bytes = bytes, .drop = drop};
    SAME(al_spawn(&task), 0);
}

static void spawns_children(void *argument)
{
    _Atomic int *dropped = argument;
    for (int i = 0; i < TASKS / 10; i++) {
        struct small small = {dropped, 17};
        int before = *dropped;
        spawn_copied(small_body, &small, sizeof small);
        SAME(al_taskwait(), 0);
        SAME(*dropped, before + 1);
    }
}

/* A parent that ends before its children is dropped after them. */
static void drop_parent(void *argument)
{
    _Atomic int **dropped = argument;
    SAME(**dropped, 10);
    atomic_fetch_add(*dropped, 1);
}

static void leaves_children(void *argument)
{
    _Atomic int **dropped = argument;
    for (int i = 0; i < 10; i++) {
        struct small small = {*dropped, 17};
        spawn_copied(small_body, &small, sizeof small);
    }
}

/* On whatever task's stack it is called, a `drop` is in no task: it does plain I/O. */
static void drop_with_io(void *argument)
{
    struct small *small = argument;
    SAME(al_current_task(), 0);
    SAME(al_pause(), -EINVAL);
    SAME(al_fsync(file), 0);
    SAME(fsync(file), 0);
    atomic_fetch_add(small->dropped, 1);
}

static void nothing(void *argument)
{
    (void)argument;
}

static void ends_before_its_child(void *argument)
{
    (void)argument;
    spawn(nothing, NULL);
}

static void reads(void *argument)
{
    char byte;
    al_task_id own = al_current_task();
    (void)argument;
    SAME(al_pread(file, &byte, 1, 0), 1);
    SAME(al_current_task(), own);
}

static void drops_beside_tasks_that_pause(void)
{
    _Atomic int dropped = 0;
    struct small small = {&dropped, 17};
    al_task task = {.body = ends_before_its_child, .argument = &small,
                    .argument_bytes = sizeof small, .drop = drop_with_io};
    for (int i = 0; i < TASKS; i++) {
        SAME(al_spawn(&task), 0);
        spawn(reads, NULL);
    }
    SAME(al_taskwait(), 0);
    SAME(dropped, TASKS);
}

int main(void)
{
    _Atomic int dropped = 0, *place = &dropped;
    struct large large = {{&dropped, 17}, {0}};
    struct small small = {&dropped, 17};
    file = scratch(0);
    SAME(pwrite(file, "x", 1, 0), 1);
    fill(large.body, sizeof large.body, 0, 6);
    start_workers(2);
    drops_beside_tasks_that_pause();
    for (int round = 0; round < 20; round++) {
        dropped = ran = 0;
        for (int i = 0; i < TASKS / 2; i++) {
            spawn_copied(small_body, &small, sizeof small);
            spawn_copied(large_body, &large, sizeof large);
        }
        SAME(al_taskwait(), 0);
        SAME(ran, TASKS);
        SAME(dropped, TASKS);
    }
    for (int i = 0; i < TASKS; i++) {
        dropped = 0;
        spawn_copied(small_body, &small, sizeof small);
        SAME(al_taskwait(), 0);
        SAME(dropped, 1);
    }
    dropped = 0;
    spawn(spawns_children, (void *)place);
    SAME(al_taskwait(), 0);
    for (int i = 0; i < 200; i++) {
        al_task task = {.body = leaves_children, .argument = &place,
                        .argument_bytes = sizeof place, .drop = drop_parent};
        dropped = 0;
        SAME(al_spawn(&task), 0);
        SAME(al_taskwait(), 0);
        SAME(dropped, 11);
    }
    /* not copied: the program's own */
    dropped = 0;
    al_task task = {.body = small_body, .argument = &small, .drop = drop};
    SAME(al_spawn(&task), 0);
    SAME(al_stop(), 0);
    SAME(small.value, 19);
    SAME(dropped, 1);
    return 0;
}
