/* Data that a task hands over before its end: readers run, writers wait. */
#include "check.h"

#define HALF 512

static int values[2 * HALF];
static int over, read_early, written_after;
static _Atomic al_task_id producing;

static void set_half(int from, int value)
{
    for (int i = from; i < from + HALF; i++) {
        values[i] = value;
    }
}

/* Nothing but a reader of the first half lets it go on. */
static void produces(void *nothing)
{
    (void)nothing;
    SAME(al_release(2), -EINVAL);
    SAME(al_release(3), -EINVAL);
    atomic_store(&producing, al_current_task());
    set_half(0, 1);
    SAME(al_release(0), 0);
    SAME(al_release(0), 0);
    SAME(al_pause(), 0);
    SAME(read_early, 1);
    SAME(written_after, 0);
    set_half(HALF, 2);
    over = 1;
}

static void reads_the_first(void *nothing)
{
    (void)nothing;
    SAME(over, 0);
    for (int i = 0; i < HALF; i++) {
        SAME(values[i], 1);
    }
    read_early = 1;
    SAME(al_resume(atomic_load(&producing)), 0);
}

static void writes_the_first(void *nothing)
{
    (void)nothing;
    SAME(over, 1);
    written_after = 1;
    set_half(0, 3);
}

static void reads_the_second(void *nothing)
{
    (void)nothing;
    SAME(over, 1);
    for (int i = HALF; i < 2 * HALF; i++) {
        SAME(values[i], 2);
    }
}

static void once(void)
{
    over = read_early = written_after = 0;
    al_access writes[] = {al_range(AL_OUT, values, 0, HALF),
                          al_range(AL_OUT, values, HALF, HALF), al_in(&over)};
    spawn_whole(produces, NULL, writes, 3);
    al_access first = al_range(AL_IN, values, 0, HALF);
    spawn_whole(reads_the_first, NULL, &first, 1);
    al_access changed = al_range(AL_INOUT, values, 0, HALF);
    spawn_whole(writes_the_first, NULL, &changed, 1);
    al_access second = al_range(AL_IN, values, HALF, HALF);
    spawn_whole(reads_the_second, NULL, &second, 1);
    SAME(al_taskwait(), 0);
    SAME(written_after, 1);
    SAME(values[0], 3);
}

int main(void)
{
    SAME(al_release(0), -EINVAL);
    for (unsigned workers = 1; workers <= 3; workers++) {
        start_workers(workers);
        SAME(al_release(0), -EINVAL);
        for (int i = 0; i < 100; i++) {
            once();
        }
        SAME(al_stop(), 0);
    }
    return 0;
}
