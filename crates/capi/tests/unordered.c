/* A race, which the thread sanitizer has to see: two tasks that nothing orders count in a plain
 * variable. Not a test of its own, but what sanitize.sh tests the sanitizer with. */
#include "check.h"

enum { TASKS = 2 };

static int numbers[TASKS] = {0, 1};
static atomic_int steps;
static long counted;

/* They meet, so both run; then they count in turns, as the sanitizer may miss what happens in the
 * very same moment. All of that is relaxed, which orders nothing else. */
static void counts(void *number)
{
    atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
    while (atomic_load_explicit(&steps, memory_order_relaxed) < TASKS + *(int *)number) {
    }
    counted++;
    atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
}

int main(void)
{
    start_workers(TASKS);
    for (int i = 0; i < TASKS; i++) {
        spawn(counts, &numbers[i]);
    }
    SAME(al_taskwait(), 0);
    SAME(al_stop(), 0);
    return 0;
}
