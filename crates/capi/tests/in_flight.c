/* 100,000 tasks, each paused in an operation of 4 KiB at the same time, on two workers: what their
 * stacks take is bounded. Prints the most memory that the process had. */
#include "check.h"

#define TASKS 100000
#define BYTES 4096
#define FILE_BYTES ((size_t)64 << 20)
/* What a task may take, its stack's touched pages and all that is kept of it included. */
#define BYTES_A_TASK_MAX ((size_t)20 << 10)

static int file;
static _Atomic int begun, done;

/* Nobody goes on before all have begun: each waits for its turn, then for its bytes. */
static al_task_id tasks[TASKS];

static void reads(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    unsigned char buffer[BYTES];
    off_t at = (off_t)((number * BYTES) % FILE_BYTES);
    tasks[number] = al_current_task();
    begun++;
    SAME(al_pause(), 0);
    SAME(al_pread(file, buffer, BYTES, at), BYTES);
    CHECK(is_filled(buffer, 64, (uint64_t)at, 4));
    done++;
}

/* Starts an operation in each task at once, with the buffers of all of them. */
static unsigned char *buffers;

static void promises(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    off_t at = (off_t)((number * BYTES) % FILE_BYTES);
    SAME(al_events_add(1), 0);
    tasks[number] = al_current_task();
    SAME(al_pread_async(file, buffers + number * BYTES, BYTES, at, NULL), 0);
    begun++;
}

static size_t most_memory(void)
{
    char line[256];
    size_t kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL) {
        sscanf(line, "VmHWM: %zu", &kilobytes);
    }
    fclose(status);
    return kilobytes << 10;
}

int main(void)
{
    unsigned char *all = malloc(FILE_BYTES);
    file = scratch(0);
    fill(all, FILE_BYTES, 0, 4);
    SAME(pwrite(file, all, FILE_BYTES, 0), FILE_BYTES);
    free(all);
    start_workers(2);
    size_t before = most_memory();
    for (size_t i = 0; i < TASKS; i++) {
        spawn(reads, (void *)(uintptr_t)i);
    }
    while (begun < TASKS) {
    }
    for (size_t i = 0; i < TASKS; i++) {
        SAME(al_resume(tasks[i]), 0);
    }
    SAME(al_taskwait(), 0);
    SAME(done, TASKS);
    size_t after = most_memory();
    printf("100000 tasks paused in operations: %zu MiB more, %zu bytes a task\n",
           (after - before) >> 20, (after - before) / TASKS);
    CHECK((after - before) / TASKS <= BYTES_A_TASK_MAX);

    buffers = malloc((size_t)TASKS * BYTES);
    CHECK(buffers != NULL);
    begun = 0;
    for (size_t i = 0; i < TASKS; i++) {
        spawn(promises, (void *)(uintptr_t)i);
    }
    while (begun < TASKS) {
    }
    for (size_t i = 0; i < TASKS; i++) {
        SAME(al_events_fulfil(tasks[i], 1), 0);
    }
    SAME(al_stop(), 0);
    for (size_t i = 0; i < TASKS; i++) {
        CHECK(is_filled(buffers + i * BYTES, 16, (i * BYTES) % FILE_BYTES, 4));
    }
    free(buffers);
    return 0;
}
