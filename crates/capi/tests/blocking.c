/* The blocking operations, in tasks and outside: every byte arrives, aligned or not, past the page
 * cache or not; and while a task waits for its operation its worker runs another. */
#include "check.h"

#define BLOCK ((size_t)96 << 10)
#define TASKS 24

struct block {
    int file;
    uint64_t number;
    int shift;
};

/* Writes and reads one block of the file in several ways and compares. */
static void exercise(void *argument)
{
    struct block *block = argument;
    off_t at = (off_t)(block->number * BLOCK) + block->shift;
    size_t bytes = BLOCK - (size_t)block->shift * 2;
    unsigned char *memory, *other;
    SAME(posix_memalign((void **)&memory, 4096, BLOCK), 0);
    SAME(posix_memalign((void **)&other, 4096, BLOCK), 0);
    memory += block->shift;
    fill(memory, bytes, (uint64_t)at, 1);
    SAME(do_pwrite(block->file, memory, bytes, at), bytes);
    memset(other, 0, BLOCK);
    SAME(do_pread(block->file, other, bytes, at), bytes);
    CHECK(memcmp(memory, other, bytes) == 0);

    fill(memory, bytes, (uint64_t)at, 2);
    size_t third = block->shift ? 777 : 32768;
    struct iovec out[3] = {{memory, third}, {memory + third, third},
                           {memory + 2 * third, bytes - 2 * third}};
    SAME(do_pwritev(block->file, out, 3, at), bytes);
    SAME(do_fdatasync(block->file), 0);
    memset(other, 0, BLOCK);
    struct iovec in[2] = {{other, 2 * third}, {other + 2 * third, bytes - 2 * third}};
    SAME(do_preadv(block->file, in, 2, at), bytes);
    CHECK(is_filled(other, bytes, (uint64_t)at, 2));
    SAME(do_fsync(block->file), 0);
    free(memory - block->shift);
    free(other);
}

static void whole_file(int flags, int shift)
{
    struct block blocks[TASKS];
    int file = scratch(flags);
    if (file < 0) {
        CHECK(flags != 0);
        fprintf(stderr, "no O_DIRECT here; the rest is tested\n");
        return;
    }
    for (int i = 0; i < TASKS; i++) {
        blocks[i] = (struct block){file, (uint64_t)i, shift};
        spawn(exercise, &blocks[i]);
    }
    SAME(al_taskwait(), 0);
    unsigned char *all;
    SAME(posix_memalign((void **)&all, 4096, TASKS * BLOCK), 0);
    ssize_t length = do_pread(file, all, TASKS * BLOCK, 0);
    SAME(length, (ssize_t)(TASKS * BLOCK) - shift);
    for (size_t i = 0; i < TASKS; i++) {
        size_t at = i * BLOCK + (size_t)shift;
        CHECK(is_filled(all + at, BLOCK - (size_t)shift * 2, at, 2));
    }
    free(all);
    close(file);
}

/* How many tasks are between the beginning and the end of their read. */
static int inside, inside_most;

static void reads(void *argument)
{
    unsigned char *memory;
    SAME(posix_memalign((void **)&memory, 4096, BLOCK), 0);
    inside++;
    if (inside > inside_most) {
        inside_most = inside;
    }
    SAME(do_pread(*(int *)argument, memory, BLOCK, 0), BLOCK);
    inside--;
    free(memory);
}

static void spawns_readers(void *argument)
{
    for (int i = 0; i < TASKS; i++) {
        spawn(reads, argument);
    }
}

/* One worker: while a task waits for its bytes, others begin. A read may be over at once, so this is
 * tried again; with a call that holds up the worker it never happens. */
static void the_worker_goes_on(void)
{
    int file = scratch(O_DIRECT);
    void *memory;
    if (file < 0) {
        fprintf(stderr, "no O_DIRECT here: reads from memory are over at once\n");
        return;
    }
    SAME(posix_memalign(&memory, 4096, BLOCK), 0);
    memset(memory, 1, BLOCK);
    SAME(pwrite(file, memory, BLOCK, 0), BLOCK);
    free(memory);
    start_workers(1);
    for (int i = 0; i < 50 && inside_most < 2; i++) {
        spawn(spawns_readers, &file);
        SAME(al_taskwait(), 0);
    }
    SAME(al_stop(), 0);
    if (inside_most < 2) {
        fprintf(stderr, "the tasks read one after the other\n");
        _exit(1);
    }
    close(file);
}

int main(void)
{
    the_worker_goes_on();
    start_workers(2);
    struct block outside = {scratch(0), 0, 0};
    exercise(&outside);
    whole_file(0, 0);
    whole_file(0, 100);
    whole_file(O_DIRECT, 0);
    whole_file(O_DIRECT, 100);
    SAME(al_stop(), 0);
    outside.number = 1;
    exercise(&outside);
    return 0;
}
