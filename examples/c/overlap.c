/* Overlap with blocking calls: tasks compute, then write what they found. While one waits for the
 * disk its worker computes for another.
 *
 *     cc overlap.c $(pkg-config --cflags --libs alongside) && ./a.out
 */
#define _GNU_SOURCE
#include <alongside.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TASKS = 64, NUMBERS = 32768 };

struct work {
    int file;
    int number;
};

static unsigned next(unsigned value)
{
    return value * 1664525u + 1013904223u;
}

static void compute_and_write(void *argument)
{
    struct work *work = argument;
    size_t bytes = NUMBERS * sizeof(unsigned);
    unsigned *numbers = malloc(bytes), value = (unsigned)work->number;
    if (numbers == NULL) {
        exit(1);
    }
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = value = next(value);
    }
    /* the task pauses here, twice; its worker goes on with another */
    ssize_t written = al_pwrite(work->file, numbers, bytes, (off_t)(work->number * bytes));
    if (written != (ssize_t)bytes || al_fdatasync(work->file) != 0) {
        fprintf(stderr, "task %d could not write\n", work->number);
        exit(1);
    }
    free(numbers);
}

int main(void)
{
    int file = open(".", O_TMPFILE | O_RDWR, 0600);
    if (file < 0 || al_start(NULL) != 0) {
        perror("start");
        return 1;
    }
    printf("%d workers, %s\n", al_workers(), al_engine());
    for (int i = 0; i < TASKS; i++) {
        struct work work = {file, i};
        al_task task = {.body = compute_and_write, .name = "compute and write"};
        task.argument = &work;
        task.argument_bytes = sizeof work; /* copied into the task */
        if (al_spawn(&task) != 0) {
            return 1;
        }
    }
    if (al_stop() != 0) {
        return 1;
    }
    unsigned first[2];
    for (int i = 0; i < TASKS; i++) {
        off_t at = (off_t)i * NUMBERS * (off_t)sizeof(unsigned);
        if (pread(file, first, sizeof first, at) != sizeof first || first[0] != next(i) ||
            first[1] != next(first[0])) {
            printf("wrong\n");
            return 1;
        }
    }
    printf("right\n");
    return 0;
}
