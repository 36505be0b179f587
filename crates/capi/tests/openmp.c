/* OpenMP tasks with detach: the operations of an event are counted, dependences wait for all. */
#include "check.h"

#include "alongside_omp.h"

#define BLOCKS 64
#define BYTES ((size_t)64 << 10)
#define HALF (BYTES / 2)

static unsigned char *out[BLOCKS], *in[BLOCKS];
static ssize_t results[BLOCKS][8];

static void write_block(int file, int i)
{
    off_t at = (off_t)((size_t)i * BYTES);
    unsigned char *from = out[i];
    (void)from;
    omp_event_handle_t event;
#pragma omp task depend(inout : out[i][0]) detach(event) firstprivate(i, at)
    {
        struct iovec half = {out[i] + HALF, HALF};
        SAME(al_omp_pwrite(event, file, out[i], HALF, at, &results[i][0]), 0);
        SAME(al_omp_pwritev(event, file, &half, 1, at + (off_t)HALF, &results[i][1]), 0);
        SAME(al_omp_done(event), 0);
    }
#pragma omp task depend(inout : out[i][0]) detach(event) firstprivate(i)
    {
        SAME(results[i][0], HALF);
        SAME(results[i][1], HALF);
        SAME(al_omp_fsync(event, file, &results[i][2]), 0);
        SAME(al_omp_fdatasync(event, file, &results[i][3]), 0);
        SAME(al_omp_done(event), 0);
    }
}

static void read_block(int file, int i)
{
    off_t at = (off_t)((size_t)i * BYTES);
    omp_event_handle_t event;
#pragma omp task depend(in : out[i][0]) depend(out : in[i][0]) detach(event) firstprivate(i, at)
    {
        struct iovec pieces[2] = {{in[i], 100}, {in[i] + 100, HALF - 100}};
        SAME(results[i][2], 0);
        SAME(results[i][3], 0);
        SAME(al_omp_preadv(event, file, pieces, 2, at, &results[i][4]), 0);
        SAME(al_omp_pread(event, file, in[i] + HALF, HALF, at + (off_t)HALF, &results[i][5]), 0);
        /* two that only the system can answer: they count as well */
        SAME(al_omp_pread(event, file, in[i], 1, -1, &results[i][6]), 0);
        SAME(al_omp_preadv(event, file, NULL, -1, 0, &results[i][7]), 0);
        SAME(al_omp_done(event), 0);
    }
#pragma omp task depend(in : in[i][0]) firstprivate(i, at)
    {
        SAME(results[i][4], HALF);
        SAME(results[i][5], HALF);
        SAME(results[i][6], -EINVAL);
        SAME(results[i][7], -EINVAL);
        CHECK(is_filled(in[i], BYTES, (uint64_t)at, 5));
        memset(in[i], 0, BYTES);
    }
}

/* Tasks whose event has no operation, or only one that is refused. */
static void few_operations(int file)
{
    static ssize_t refused;
    int done = 0;
    omp_event_handle_t event;
#pragma omp task depend(inout : done) detach(event)
    SAME(al_omp_done(event), 0);
#pragma omp task depend(inout : done) detach(event)
    {
        SAME(al_omp_pread(event, file, NULL, 10, -5, &refused), 0);
        SAME(al_omp_done(event), 0);
    }
#pragma omp task depend(inout : done) shared(done)
    {
        SAME(refused, -EINVAL);
        done = 1;
    }
#pragma omp taskwait
    SAME(done, 1);
}

int main(void)
{
    int file = scratch(0);
    limit_time();
    for (int i = 0; i < BLOCKS; i++) {
        out[i] = malloc(BYTES);
        in[i] = calloc(1, BYTES);
        fill(out[i], BYTES, (size_t)i * BYTES, 5);
    }
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < BLOCKS; i++) {
                write_block(file, i);
            }
            for (int i = 0; i < BLOCKS; i++) {
                read_block(file, i);
            }
        }
#pragma omp taskwait
        few_operations(file);
    }
    SAME(al_detach_done(1, NULL), -EINVAL);
    SAME(al_detach_fsync(1, NULL, file, NULL), -EINVAL);
    for (int i = 0; i < BLOCKS; i++) {
        free(out[i]);
        free(in[i]);
    }
    return 0;
}
