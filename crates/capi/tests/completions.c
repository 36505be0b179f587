/* Completions are taken while a worker computes without end, if another worker is idle; an
 * operation is begun although its task goes on computing; and tasks are not left behind one that
 * paused and then computes, while another worker is idle. */
#include "check.h"

static int file;
static _Atomic int others_done;
static unsigned char *memory;

static void reads(void *argument)
{
    char byte;
    (void)argument;
    SAME(al_pread(file, &byte, 1, 0), 1);
    others_done++;
}

/* The result comes while the task that asked for it still computes. */
static void computes_until_it_is_there(void *argument)
{
    ssize_t result = 4321;
    (void)argument;
    SAME(al_pread_async(file, memory, 4096, 0, &result), 0);
    while (__atomic_load_n(&result, __ATOMIC_ACQUIRE) == 4321) {
    }
    SAME(result, 4096);
}

/* Computes until tasks that were spawned before, and read, are done, by other workers. */
static void computes_until_others_are_done(void *argument)
{
    (void)argument;
    while (others_done < 50) {
    }
}

/* Pauses, goes on, and computes until a task is done that was spawned later: before this one went
 * on, or after; by the program, or by itself. */
static _Atomic int goes_on, later_done;

static void later(void *argument)
{
    (void)argument;
    later_done = 1;
}

static void pauses_and_computes(void *argument)
{
    char byte;
    SAME(al_pread(file, &byte, 1, 0), 1);
    goes_on = 1;
    if (argument != NULL) {
        spawn(later, NULL);
    }
    while (!later_done) {
    }
}

static void computes_after_a_pause(int round)
{
    int own = 0;
    goes_on = later_done = 0;
    spawn(pauses_and_computes, round % 3 == 0 ? &own : NULL);
    while (round % 3 == 1 && !goes_on) {
    }
    if (round % 3 != 0) {
        spawn(later, NULL);
    }
    SAME(al_taskwait(), 0);
    SAME(later_done, 1);
}

int main(void)
{
    static unsigned char block[4096];
    SAME(posix_memalign((void **)&memory, 4096, 4096), 0);
    file = scratch(O_DIRECT);
    if (file < 0) {
        file = scratch(0);
    }
    memcpy(memory, block, sizeof block);
    SAME(pwrite(file, memory, 4096, 0), 4096);
    close(file);
    file = scratch(0);
    SAME(pwrite(file, memory, 4096, 0), 4096);
    start_workers(2);
    for (int i = 0; i < 50; i++) {
        spawn(computes_until_it_is_there, NULL);
        SAME(al_taskwait(), 0);
    }
    for (int i = 0; i < 300; i++) {
        computes_after_a_pause(i);
    }
    spawn(computes_until_others_are_done, NULL);
    for (int i = 0; i < 50; i++) {
        spawn(reads, NULL);
    }
    SAME(al_stop(), 0);
    SAME(others_done, 50);
    free(memory);
    return 0;
}
