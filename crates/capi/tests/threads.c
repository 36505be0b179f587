/* Tasks are spawned and waited for by several threads of the program at once; addresses are used
 * again for other things when their tasks are over. */
#include "check.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 50
#define TASKS 100

static void adds(void *argument)
{
    *(uint64_t *)argument += 1;
}

static void *spawns(void *nothing)
{
    uint64_t value = 0;
    al_access uses = al_inout(&value);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < TASKS; i++) {
            spawn_whole(adds, &value, &uses, 1);
        }
        SAME(al_wait_on(&value), 0);
        SAME(value, round * TASKS);
        if (round % 10 == 0) {
            SAME(al_taskwait(), 0);
        }
    }
    return nothing;
}

/* The same address as a range, then as a box, then as a whole. */
static void used_again(void)
{
    static uint64_t datum[8];
    al_span spans[3] = {{0, 2}, {0, 2}, {0, 2}};
    al_access kinds[4] = {al_range(AL_INOUT, datum, 0, 8), al_box(AL_INOUT, datum, 2, spans),
                          al_inout(datum), al_box(AL_INOUT, datum, 3, spans)};
    for (int i = 0; i < 8; i++) {
        spawn_whole(adds, datum, &kinds[i % 4], 1);
        SAME(al_taskwait(), 0);
    }
    SAME(datum[0], 8);
}

int main(void)
{
    pthread_t threads[THREADS];
    start_workers(2);
    for (int i = 0; i < THREADS; i++) {
        SAME(pthread_create(&threads[i], NULL, spawns, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        SAME(pthread_join(threads[i], NULL), 0);
    }
    used_again();
    SAME(al_stop(), 0);
    return 0;
}
