/* The non-blocking operations: the task ends at once, its dependents wait for every byte. */
#include "check.h"

#define BYTES ((size_t)256 << 10)
#define ROUNDS 40

/* What a chain of tasks works on; each waits for the one before. */
struct chain {
    int file;
    uint64_t round;
    unsigned char *memory, *other;
    ssize_t results[6];
};

static void writes(void *argument)
{
    struct chain *chain = argument;
    struct iovec second = {chain->memory + BYTES / 2, BYTES / 2};
    fill(chain->memory, BYTES, 0, chain->round);
    memset(chain->results, 0x55, sizeof chain->results);
    SAME(al_pwrite_async(chain->file, chain->memory, BYTES / 2, 0, &chain->results[0]), 0);
    SAME(al_pwritev_async(chain->file, &second, 1, BYTES / 2, &chain->results[1]), 0);
    second.iov_base = NULL;
}

static void syncs(void *argument)
{
    struct chain *chain = argument;
    SAME(chain->results[0], BYTES / 2);
    SAME(chain->results[1], BYTES / 2);
    SAME(al_fsync_async(chain->file, &chain->results[2]), 0);
    SAME(al_fdatasync_async(chain->file, &chain->results[3]), 0);
}

static void reads(void *argument)
{
    struct chain *chain = argument;
    struct iovec pieces[2] = {{chain->other, 1000}, {chain->other + 1000, BYTES / 2 - 1000}};
    SAME(chain->results[2], 0);
    SAME(chain->results[3], 0);
    memset(chain->other, 0, BYTES);
    SAME(al_preadv_async(chain->file, pieces, 2, 0, &chain->results[4]), 0);
    SAME(al_pread_async(chain->file, chain->other + BYTES / 2, BYTES, BYTES / 2,
                        &chain->results[5]),
         0);
}

static void compares(void *argument)
{
    struct chain *chain = argument;
    SAME(chain->results[4], BYTES / 2);
    SAME(chain->results[5], BYTES / 2);
    CHECK(is_filled(chain->other, BYTES, 0, chain->round));
}

static void run_chains(int flags)
{
    struct chain chains[4];
    al_access uses[4];
    for (int i = 0; i < 4; i++) {
        chains[i].file = scratch(flags);
        if (chains[i].file < 0) {
            fprintf(stderr, "no O_DIRECT here; the rest is tested\n");
            return;
        }
        SAME(posix_memalign((void **)&chains[i].memory, 4096, BYTES), 0);
        SAME(posix_memalign((void **)&chains[i].other, 4096, BYTES + BYTES / 2), 0);
        uses[i] = (al_access)al_inout(&chains[i]);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 4; i++) {
            chains[i].round = round * 4 + (uint64_t)i;
            spawn_whole(writes, &chains[i], &uses[i], 1);
            spawn_whole(syncs, &chains[i], &uses[i], 1);
            spawn_whole(reads, &chains[i], &uses[i], 1);
            spawn_whole(compares, &chains[i], &uses[i], 1);
        }
        SAME(al_taskwait(), 0);
    }
    for (int i = 0; i < 4; i++) {
        close(chains[i].file);
        free(chains[i].memory);
        free(chains[i].other);
    }
}

/* Many operations of one task; its dependent sees all of them. */
static void many(void *argument)
{
    struct chain *chain = argument;
    for (size_t at = 0; at < BYTES; at += 512) {
        SAME(al_pread_async(chain->file, chain->other + at, 512, (off_t)at, NULL), 0);
    }
}

static void sees_all(void *argument)
{
    struct chain *chain = argument;
    CHECK(is_filled(chain->other, BYTES, 0, 9));
    memset(chain->other, 0, BYTES);
}

static void many_without_results(void)
{
    struct chain chain = {.file = scratch(0)};
    al_access uses = al_inout(&chain);
    chain.memory = malloc(BYTES);
    chain.other = malloc(BYTES);
    fill(chain.memory, BYTES, 0, 9);
    SAME(pwrite(chain.file, chain.memory, BYTES, 0), BYTES);
    for (int round = 0; round < 20; round++) {
        spawn_whole(many, &chain, &uses, 1);
        spawn_whole(sees_all, &chain, &uses, 1);
    }
    SAME(al_taskwait(), 0);
    close(chain.file);
    free(chain.memory);
    free(chain.other);
}

/* A short read and a failure that nobody asked about are told once, by the next wait. */
static void reads_past_the_end(void *argument)
{
    static char buffer[100];
    SAME(al_pread_async(*(int *)argument, buffer, sizeof buffer, 0, NULL), 0);
}

static void reads_nothing(void *argument)
{
    static char buffer[100];
    (void)argument;
    SAME(al_pread_async(-1, buffer, sizeof buffer, 0, NULL), 0);
}

static void failures_are_told(void)
{
    int file = scratch(0);
    al_task task = {.body = reads_past_the_end, .argument = &file, .name = "short one"};
    SAME(pwrite(file, "abc", 3, 0), 3);
    al_set_message_hook(keep_message, NULL);
    messages_count = 0;
    SAME(al_spawn(&task), 0);
    SAME(al_taskwait(), -EIO);
    SAME(messages_count, 1);
    CHECK(strstr(message_last, "short one") != NULL);
    SAME(al_taskwait(), 0);
    spawn(reads_nothing, NULL);
    SAME(al_taskwait(), -EBADF);
    SAME(messages_count, 2);
    spawn(reads_nothing, NULL);
    SAME(al_stop(), -EBADF);
    al_set_message_hook(NULL, NULL);
    close(file);
}

int main(void)
{
    char byte;
    ssize_t result = 5;
    start_workers(2);
    SAME(al_pread_async(0, &byte, 1, 0, &result), -EINVAL);
    SAME(al_fsync_async(0, NULL), -EINVAL);
    SAME(result, 5);
    run_chains(0);
    run_chains(O_DIRECT);
    many_without_results();
    failures_are_told();
    return 0;
}
