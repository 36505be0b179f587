/* Asynchronous I/O in an OpenMP program: a task with `detach` is over when its operations are, and
 * its dependences wait for that. No runtime of ours is started.
 *
 *     cc -fopenmp openmp.c $(pkg-config --cflags --libs alongside) && ./a.out
 */
#define _GNU_SOURCE
#include <alongside_omp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 32, BYTES = 65536 };

static char out[BLOCKS][BYTES], in[BLOCKS][BYTES];
static ssize_t written[BLOCKS], got[BLOCKS];

int main(void)
{
    int file = open(".", O_TMPFILE | O_RDWR, 0600), wrong = 0;
    if (file < 0) {
        perror("open");
        return 1;
    }
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < BLOCKS; i++) {
        off_t at = (off_t)i * BYTES;
        omp_event_handle_t event;
#pragma omp task depend(out : out[i][0]) detach(event)
        {
            memset(out[i], 'a' + i % 26, BYTES);
            al_omp_pwrite(event, file, out[i], BYTES, at, &written[i]);
            al_omp_done(event); /* once, when all operations were started */
        }
#pragma omp task depend(in : out[i][0]) depend(out : in[i][0]) detach(event)
        {
            /* two operations that one event waits for */
            al_omp_pread(event, file, in[i], BYTES / 2, at, &got[i]);
            al_omp_pread(event, file, in[i] + BYTES / 2, BYTES / 2, at + BYTES / 2, NULL);
            al_omp_done(event);
        }
#pragma omp task depend(in : in[i][0]) shared(wrong)
        if (written[i] != BYTES || got[i] != BYTES / 2 || memcmp(in[i], out[i], BYTES) != 0) {
#pragma omp atomic
            wrong++;
        }
    }
    printf("%d blocks: %s\n", BLOCKS, wrong ? "wrong" : "right");
    return wrong ? 1 : 0;
}
