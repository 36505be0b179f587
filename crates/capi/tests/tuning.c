/* Bandwidth that is found: learned in epochs, kept for the next run, followed by a window. */
#include "layers.h"

#include <sched.h>

enum { BYTES = 1 << 20, SLOTS = 8, TASKS = 60 };

static const char *const STORAGE = "[[layer]]\nname = \"disk\"\npath = \".\"\n"
                                   "limit = \"100MB/s\"\n";
static const char *const BOUNDS = "auto(12.5MB/s,100MB/s,2)";

static unsigned char buffer[BYTES];
static int file;
static _Atomic int inside, most_inside;
static _Atomic al_task_id holder;

static void enter(void)
{
    int now = atomic_fetch_add(&inside, 1) + 1, most = most_inside;
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now)) {
    }
}

static void writes(void *argument)
{
    enter();
    SAME(al_pwrite(file, buffer, BYTES, (off_t)(uintptr_t)argument * BYTES), BYTES);
    atomic_fetch_sub(&inside, 1);
}

/* Ends before its operation does: its time, and what it moved, are known at the end of both. */
static void writes_and_ends(void *argument)
{
    SAME(al_pwrite_async(file, buffer, BYTES, (off_t)(uintptr_t)argument * BYTES, NULL), 0);
}

static void holds(void *argument)
{
    (void)argument;
    SAME(al_events_add(1), 0);
    atomic_store(&holder, al_current_task());
}

/* All tasks wait until the last of them is there, so that an epoch has as many as it wants. */
static struct tuned run(const char *name, al_body body, al_io asked, int tasks)
{
    static int gate;
    al_access written = al_out(&gate), read = al_in(&gate);
    al_task first = {.body = holds, .accesses = &written, .accesses_count = 1};
    holder = most_inside = 0;
    SAME(al_spawn(&first), 0);
    for (int i = 0; i < tasks; i++) {
        al_task task = {.body = body, .argument = (void *)(uintptr_t)i, .name = name, .io = &asked};
        task.accesses = &read;
        task.accesses_count = 1;
        SAME(al_spawn(&task), 0);
    }
    al_task_id held;
    while ((held = atomic_load(&holder)) == 0) {
        sched_yield();
    }
    SAME(al_events_fulfil(held, 1), 0);
    SAME(al_taskwait(), 0);
    struct tuned tuned = tuned_of(name);
    SAME(tuned.count, 1);
    CHECK(strcmp(tuned.layer, "disk") == 0);
    return tuned;
}

static void is_learned_once(void)
{
    al_io asked = {.bandwidth = BOUNDS, .size = BYTES};
    start_on_layers(2, SLOTS, 1);
    struct tuned first = run("save", writes, asked, TASKS);
    CHECK(strcmp(first.mode, "auto") == 0 && strcmp(first.state, "chosen") == 0);
    /* One for each constraint; one that found too few tasks counts besides. */
    CHECK(first.last.epochs >= 4);
    SAME(first.last.window, 0);
    CHECK(first.last.constraint >= 12500000 && first.last.constraint <= 100000000);
    CHECK(most_inside <= SLOTS);
    SAME(al_stop(), 0);

    start_on_layers(2, SLOTS, 1);
    struct tuned second = run("save", writes, asked, TASKS);
    CHECK(strcmp(second.state, "chosen") == 0);
    SAME(second.last.epochs, 0);
    struct tuned other = run("save otherwise", writes, asked, TASKS);
    CHECK(other.last.epochs >= 4);
    SAME(al_stop(), 0);
}

static void is_learned_without_bounds(void)
{
    start_on_layers(2, SLOTS, 0);
    al_io asked = {.bandwidth = "auto"};
    struct tuned tuned = run("save", writes, asked, TASKS);
    CHECK(tuned.last.epochs >= 2);
    CHECK(strcmp(tuned.state, "chosen") == 0);
    SAME(al_stop(), 0);
}

static void is_followed(al_body body)
{
    start_on_layers(2, SLOTS, 0);
    al_io asked = {.bandwidth = "adaptive"};
    struct tuned tuned = run("follow", body, asked, TASKS);
    CHECK(strcmp(tuned.mode, "adaptive") == 0 && strcmp(tuned.state, "window") == 0);
    CHECK(tuned.last.window >= 1 && tuned.last.window <= SLOTS);
    SAME(tuned.last.constraint, 0);
    /* Bytes, and not tasks in a thousand seconds, which are a thousandth of these. */
    CHECK(tuned.last.rate > 4000000);
    SAME(al_stop(), 0);
}

static void writes_much_or_little(void *argument)
{
    size_t bytes = (uintptr_t)argument % 2 == 0 ? BYTES : BYTES / 1024;
    SAME(al_pwrite(file, buffer, bytes, 0), (ssize_t)bytes);
}

static void sizes_that_vary_are_told_once(void)
{
    al_io asked = {.bandwidth = BOUNDS};
    int before = messages_count;
    al_set_message_hook(keep_message, NULL);
    start_on_layers(2, SLOTS, 0);
    SAME(run("same", writes, asked, TASKS).last.varies, 0);
    SAME(run("vary", writes_much_or_little, asked, TASKS).last.varies, 1);
    SAME(messages_count, before);
    SAME(al_stop(), 0);
    SAME(messages_count, before + 1);
    CHECK(strstr(message_last, "\"vary\"") != NULL && strstr(message_last, "adaptive") != NULL);
    al_set_message_hook(NULL, NULL);
}

int main(void)
{
    file = scratch(0);
    CHECK(file >= 0);
    describe(STORAGE);
    is_learned_once();
    is_learned_without_bounds();
    is_followed(writes);
    is_followed(writes_and_ends);
    sizes_that_vary_are_told_once();
    return 0;
}
