/* The parts of a cell without tasks: the I/O alone, the computation alone; filling, calibration.
 *
 *     tiom_alone --version io        every lane of every series by a thread, with no computation
 *     tiom_alone --version compute   all computations, by as many threads as there are workers
 *     tiom_alone --version prepare   fills the file
 *     tiom_alone --version calibrate prints how many loops one millisecond of a processor is
 */
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALIBRATION_LOOPS UINT64_C(40000000)
#define CALIBRATION_ROUNDS 5
#define STACK_BYTES (UINT64_C(128) << 10)

/* What one thread does. */
struct part {
    struct run *run;
    pthread_t thread;
    pthread_barrier_t *start;
    unsigned index;
    double loops_per_ms;
};

static void *transfer_lane(void *argument)
{
    struct part *part = argument;
    struct run *run = part->run;
    pthread_barrier_wait(part->start);
    for (uint64_t step = 0; step < run->steps && !meter_is_over(run); step++) {
        unsigned series = part->index / run->lanes;
        meter_transfer(run, meter_prepare(run, series, part->index % run->lanes, step));
    }
    return NULL;
}

static void *compute_part(void *argument)
{
    struct part *part = argument;
    struct run *run = part->run;
    uint64_t all = run->steps * run->computes * run->settings.series;
    pthread_barrier_wait(part->start);
    for (uint64_t place = part->index; place < all && !meter_is_over(run);
         place += run->settings.workers) {
        meter_compute(run);
    }
    return NULL;
}

static void *calibrate_part(void *argument)
{
    struct part *part = argument;
    pthread_barrier_wait(part->start);
    for (unsigned round = 0; round < CALIBRATION_ROUNDS; round++) {
        uint64_t begun_ns = meter_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        meter_loops(CALIBRATION_LOOPS);
        uint64_t taken_ns = meter_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
        double speed = (double)CALIBRATION_LOOPS * 1e6 / (double)taken_ns;
        part->loops_per_ms = speed > part->loops_per_ms ? speed : part->loops_per_ms;
    }
    return NULL;
}

/* Runs `body` in `count` threads, which begin together with the clock. */
static struct part *run_threads(struct run *run, unsigned count, void *(*body)(void *))
{
    struct part *parts = calloc(count, sizeof *parts);
    pthread_barrier_t start;
    pthread_attr_t attributes;
    if (parts == NULL || pthread_barrier_init(&start, NULL, count + 1) != 0 ||
        pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0) {
        fputs("tiom: no memory for threads\n", stderr);
        exit(2);
    }
    for (unsigned index = 0; index < count; index++) {
        parts[index] = (struct part){.run = run, .start = &start, .index = index};
        if (pthread_create(&parts[index].thread, &attributes, body, &parts[index]) != 0) {
            fprintf(stderr, "tiom: cannot start thread %u of %u\n", index + 1, count);
            exit(2);
        }
    }
    meter_begin(run);
    pthread_barrier_wait(&start);
    for (unsigned index = 0; index < count; index++) {
        pthread_join(parts[index].thread, NULL);
    }
    meter_end(run);
    pthread_attr_destroy(&attributes);
    pthread_barrier_destroy(&start);
    return parts;
}

/* The mean over all threads, all of which computed at once. */
static int calibrate(struct run *run)
{
    struct part *parts = run_threads(run, run->settings.workers, calibrate_part);
    double sum = 0;
    for (unsigned index = 0; index < run->settings.workers; index++) {
        sum += parts[index].loops_per_ms;
    }
    printf("{\"loops_per_ms\": %.1f}\n", sum / run->settings.workers);
    free(parts);
    return 0;
}

int main(int argc, char **argv)
{
    struct run run;
    meter_open(&run, argc, argv);
    if (meter_is(&run, "calibrate")) {
        return calibrate(&run);
    }
    if (meter_is(&run, "prepare")) {
        blocks_write_file(&run);
        printf("{\"filled\": %llu}\n", (unsigned long long)run.settings.file_bytes);
        return atomic_load(&run.is_failed) ? 1 : 0;
    }
    if (meter_is(&run, "io")) {
        free(run_threads(&run, run.settings.series * run.lanes, transfer_lane));
    } else if (meter_is(&run, "compute")) {
        free(run_threads(&run, run.settings.workers, compute_part));
    } else {
        fprintf(stderr, "tiom_alone: there is no version \"%s\"\n", run.settings.version);
        return 2;
    }
    return meter_finish(&run, "threads");
}
