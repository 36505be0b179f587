/* Non-blocking operations: a task starts its writes and ends; the task that depends on it waits for
 * them, and no stack is held meanwhile.
 *
 *     cc nonblocking.c $(pkg-config --cflags --libs alongside) && ./a.out
 */
#define _GNU_SOURCE
#include <alongside.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 32, BYTES = 65536 };

struct block {
    int file;
    int number;
    ssize_t written, got;
    char out[BYTES], in[BYTES];
};

static void write_block(void *argument)
{
    struct block *block = argument;
    off_t at = (off_t)block->number * BYTES;
    memset(block->out, 'a' + block->number % 26, BYTES);
    /* the buffer belongs to the operation until it is complete; `written` is set then */
    al_pwrite_async(block->file, block->out, BYTES, at, &block->written);
}

static void read_block(void *argument)
{
    struct block *block = argument;
    off_t at = (off_t)block->number * BYTES;
    if (block->written == BYTES) {
        al_pread_async(block->file, block->in, BYTES, at, &block->got);
    }
}

static void compare(void *argument)
{
    struct block *block = argument;
    if (block->got != BYTES || memcmp(block->out, block->in, BYTES) != 0) {
        printf("block %d is wrong\n", block->number);
        exit(1);
    }
}

static int spawn(al_body body, struct block *block, const char *name)
{
    al_access uses = al_inout(block);
    al_task task = {.body = body, .argument = block, .name = name};
    task.accesses = &uses;
    task.accesses_count = 1;
    return al_spawn(&task);
}

int main(void)
{
    struct block *blocks = calloc(BLOCKS, sizeof *blocks);
    int file = open(".", O_TMPFILE | O_RDWR, 0600);
    if (blocks == NULL || file < 0 || al_start(NULL) != 0) {
        perror("start");
        return 1;
    }
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].file = file;
        blocks[i].number = i;
        if (spawn(write_block, &blocks[i], "write") != 0 ||
            spawn(read_block, &blocks[i], "read") != 0 ||
            spawn(compare, &blocks[i], "compare") != 0) {
            return 1;
        }
    }
    if (al_stop() != 0) {
        return 1;
    }
    free(blocks);
    printf("%d blocks: right\n", BLOCKS);
    return 0;
}
