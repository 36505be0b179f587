/* A ring of four places and thousands of operations, and few stacks: whatever finds no place waits
 * by letting others run, and all of it ends. */
#include "check.h"

#define TASKS 2000
#define EACH 8
#define BYTES 512

static int file;
static unsigned char *memory;
static _Atomic int blocking_done;

static void promises(void *argument)
{
    size_t task = (size_t)(uintptr_t)argument;
    for (size_t i = 0; i < EACH; i++) {
        size_t at = (task * EACH + i) * BYTES;
        SAME(al_pread_async(file, memory + at, BYTES, (off_t)at, NULL), 0);
    }
}

static void blocks(void *argument)
{
    size_t task = (size_t)(uintptr_t)argument;
    unsigned char own[BYTES];
    off_t at = (off_t)(task * BYTES);
    SAME(al_pread(file, own, BYTES, at), BYTES);
    CHECK(is_filled(own, BYTES, (uint64_t)at, 3));
    blocking_done++;
}

static void start(unsigned depth, unsigned stacks_max)
{
    al_options options;
    limit_time();
    al_options_init(&options);
    options.workers = 2;
    options.depth = depth;
    options.stacks_max = stacks_max;
    SAME(al_start(&options), 0);
}

static void promises_and_blocks(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < TASKS / 2; i++) {
        spawn(i % 2 ? promises : blocks, (void *)(uintptr_t)i);
    }
    SAME(al_taskwait(), 0);
}

int main(void)
{
    size_t bytes = (size_t)TASKS * EACH * BYTES;
    file = scratch(0);
    memory = malloc(bytes);
    fill(memory, bytes, 0, 3);
    SAME(pwrite(file, memory, bytes, 0), bytes);
    start(4, 0);
    memset(memory, 0, bytes);
    for (size_t i = 0; i < TASKS; i++) {
        spawn(promises, (void *)(uintptr_t)i);
        spawn(blocks, (void *)(uintptr_t)i);
    }
    SAME(al_taskwait(), 0);
    CHECK(is_filled(memory, bytes, 0, 3));
    SAME(blocking_done, TASKS);
    spawn(promises_and_blocks, NULL);
    SAME(al_stop(), 0);
    SAME(blocking_done, TASKS + TASKS / 4);

    blocking_done = 0;
    start(1, 3);
    for (size_t i = 0; i < TASKS; i++) {
        spawn(blocks, (void *)(uintptr_t)i);
    }
    SAME(al_taskwait(), 0);
    SAME(blocking_done, TASKS);
    for (size_t i = 0; i < TASKS; i++) {
        spawn(i % 2 ? promises : blocks, (void *)(uintptr_t)i);
    }
    SAME(al_stop(), 0);
    SAME(blocking_done, TASKS + TASKS / 2);
    free(memory);
    return 0;
}
