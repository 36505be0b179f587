/* The emulated bandwidth of a layer slows the operations of I/O tasks, and no worker. */
#include "layers.h"

#include <time.h>

enum { PIECE = 1 << 20, PIECES = 8, RATE = 40000000 };

/* What is paid for by mistake on the first layer takes hours. */
static const char *const STORAGE = "[[layer]]\nname = \"crawl\"\npath = \".\"\n"
                                   "limit = \"1kB/s\"\n"
                                   "[[layer]]\nname = \"slow\"\npath = \".\"\n"
                                   "limit = \"40MB/s\"\n"
                                   "[[layer]]\nname = \"free\"\npath = \".\"\n";

static unsigned char buffer[PIECES][PIECE];
static int file;
static _Atomic int computed, is_over;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void writes(void *argument)
{
    int piece = (int)(uintptr_t)argument;
    SAME(al_pwrite(file, buffer[piece], PIECE, (off_t)piece * PIECE), PIECE);
}

static void writes_later(void *argument)
{
    int piece = (int)(uintptr_t)argument;
    SAME(al_pwrite_async(file, buffer[piece], PIECE, (off_t)piece * PIECE, NULL), 0);
}

static void reads(void *argument)
{
    int piece = (int)(uintptr_t)argument;
    SAME(al_pread(file, buffer[piece], PIECE, (off_t)piece * PIECE), PIECE);
}

/* Neither moves anything, and so waits for nothing. */
static void reads_nothing(void *argument)
{
    (void)argument;
    SAME(al_pread(file, buffer[0], PIECE, (off_t)PIECES * PIECE), 0);
    SAME(al_fsync(file), 0);
}

static void run(al_body body, const char *layer)
{
    for (int piece = 0; piece < PIECES; piece++) {
        al_io asked = {.layer = layer};
        SAME(spawn_io("moves", body, (void *)(uintptr_t)piece, asked), 0);
    }
    SAME(al_taskwait(), 0);
}

/* All pieces together take no less than their layer gives; an idle one gives a little at once. */
static void takes_its_time(al_body body)
{
    uint64_t least = ((uint64_t)PIECE * PIECES * 1000000000 / RATE) - 5000000;
    uint64_t start = now_ns();
    run(body, "slow");
    CHECK(now_ns() - start >= least);
}

static void computes(void *argument)
{
    (void)argument;
    SAME(is_over, 0);
    computed++;
}

/* Its children are there before it waits: the one worker can have begun none of them. */
static void writes_much(void *argument)
{
    for (int i = 0; i < *(const int *)argument; i++) {
        spawn(computes, NULL);
    }
    SAME(al_pwrite(file, buffer, sizeof buffer, 0), (ssize_t)sizeof buffer);
    is_over = 1;
    SAME(computed, *(const int *)argument);
}

/* The only worker computes while the I/O task waits for the bandwidth of its layer. */
static void a_task_that_waits_holds_up_no_worker(void)
{
    int expected = 10;
    SAME(spawn_io("writes much", writes_much, &expected, (al_io){.layer = "slow"}), 0);
    SAME(al_taskwait(), 0);
    SAME(is_over, 1);
}

int main(void)
{
    file = scratch(0);
    CHECK(file >= 0);
    describe(STORAGE);
    start_on_layers(1, 8, 0);
    a_task_that_waits_holds_up_no_worker();
    takes_its_time(writes);
    takes_its_time(writes_later);
    takes_its_time(reads);
    run(reads_nothing, "crawl");
    run(writes, "free");
    SAME(al_stop(), 0);
    return 0;
}
