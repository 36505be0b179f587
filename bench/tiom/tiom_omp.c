/* The task-I/O meter on tasks of OpenMP: omp-standalone, and omp-nonblocking by way of `detach`.
 *
 * The series and their dependences are those of tiom.c. Two things of gcc's library decide how
 * tasks are spawned here. When 64 tasks a thread wait, it runs a new one at once in the thread that
 * spawns it; and it forgets the event of a detached task that it runs while it waits for a
 * dependence (there, or in `taskwait depend`). So a thread of its own spawns, and sleeps when it is
 * so many steps ahead.
 */
#include <errno.h>
#include <omp.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alongside_omp.h"
#include "common.h"

#define TASKS_WAITING_MAX 60 /* for each thread of the team */

/* What the thread that spawns knows of a series. */
struct chain {
    char datum; /* its address is what the dependences are about */
    sem_t begun; /* a step, after all that came before it */
};

/* What a task finds out about its place. */
struct place {
    struct run *run;
    struct chain *chain;
    uint64_t step;
    unsigned series;
    unsigned number;
};

static void begin(struct place place, omp_event_handle_t event)
{
    struct run *run = place.run;
    struct lane *lane = meter_prepare(run, place.series, place.number, place.step);
    size_t bytes = run->settings.block_bytes;
    off_t offset = (off_t)lane->offset;
    int refused = run->settings.is_write
                      ? al_omp_pwrite(event, run->fd, lane->buffer, bytes, offset, &lane->result)
                      : al_omp_pread(event, run->fd, lane->buffer, bytes, offset, &lane->result);
    if (refused != 0) {
        lane->is_pending = false;
        meter_fail(run, "cannot begin a transfer: %s", strerror(-refused));
    }
}

static void transfer(struct place place)
{
    if (!meter_is_over(place.run)) {
        struct run *run = place.run;
        meter_transfer(run, meter_prepare(run, place.series, place.number, place.step));
    }
}

static void transfer_detached(struct place place, omp_event_handle_t event)
{
    if (!meter_is_over(place.run)) {
        begin(place, event);
    }
    al_omp_done(event);
}

static void compute(struct place place)
{
    if (place.number == 0) {
        meter_check_series(place.run, place.series);
        sem_post(&place.chain->begun);
    }
    if (!meter_is_over(place.run)) {
        meter_compute(place.run);
    }
}

static void spawn_mix(struct place place, bool is_detached)
{
    char *datum = &place.chain->datum;
    (void)datum; /* gcc does not see that a dependence uses it */
    if (is_detached) {
        omp_event_handle_t event;
#pragma omp task depend(inout : datum[0]) detach(event) firstprivate(place)
        {
            compute(place);
            transfer_detached(place, event);
        }
    } else {
#pragma omp task depend(inout : datum[0]) firstprivate(place)
        {
            compute(place);
            transfer(place);
        }
    }
}

static void spawn_compute(struct place place)
{
    char *datum = &place.chain->datum;
    (void)datum;
    if (place.run->computes > 1) {
#pragma omp task depend(in : datum[0]) firstprivate(place)
        compute(place);
    } else {
#pragma omp task depend(inout : datum[0]) firstprivate(place)
        compute(place);
    }
}

static void spawn_transfer(struct place place)
{
    char *datum = &place.chain->datum;
    (void)datum;
    if (place.run->lanes > 1) {
#pragma omp task depend(in : datum[0]) firstprivate(place)
        transfer(place);
    } else {
#pragma omp task depend(inout : datum[0]) firstprivate(place)
        transfer(place);
    }
}

static void spawn_detached(struct place place)
{
    char *datum = &place.chain->datum;
    omp_event_handle_t event;
    (void)datum;
    if (place.run->lanes > 1) {
#pragma omp task depend(in : datum[0]) detach(event) firstprivate(place)
        transfer_detached(place, event);
    } else {
#pragma omp task depend(inout : datum[0]) detach(event) firstprivate(place)
        transfer_detached(place, event);
    }
}

static void spawn_step(struct place place, bool is_detached)
{
    struct run *run = place.run;
    if (run->settings.mode == MODE_MIX) {
        spawn_mix(place, is_detached);
        return;
    }
    for (place.number = 0; place.number < run->computes; place.number++) {
        spawn_compute(place);
    }
    for (place.number = 0; place.number < run->lanes; place.number++) {
        if (is_detached) {
            spawn_detached(place);
        } else {
            spawn_transfer(place);
        }
    }
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

/* How many steps of each series may wait behind the one that runs. */
static uint64_t steps_ahead(const struct run *run)
{
    uint64_t tasks = run->settings.mode == MODE_MIX ? 1 : run->computes + run->lanes;
    uint64_t room = (uint64_t)TASKS_WAITING_MAX * (run->settings.workers + 1);
    uint64_t steps = room / (tasks * run->settings.series);
    return steps > 2 ? steps - 1 : 1;
}

static void spawn_all(struct run *run, bool is_detached, struct chain *chains)
{
    uint64_t ahead = steps_ahead(run);
    for (uint64_t step = 0; step < run->steps; step++) {
        for (unsigned series = 0; series < run->settings.series; series++) {
            if (step >= ahead) {
                wait_for(&chains[series].begun);
            }
            struct place place = {run, &chains[series], step, series, 0};
            spawn_step(place, is_detached);
        }
    }
    uint64_t left = run->steps < ahead ? run->steps : ahead;
    for (unsigned series = 0; series < run->settings.series; series++) {
        for (uint64_t step = 0; step < left; step++) {
            wait_for(&chains[series].begun);
        }
        struct chain *chain = &chains[series];
        char *datum = &chain->datum;
        (void)datum;
#pragma omp task depend(inout : datum[0]) firstprivate(chain)
        sem_post(&chain->begun);
    }
    for (unsigned series = 0; series < run->settings.series; series++) {
        wait_for(&chains[series].begun);
    }
}

int main(int argc, char **argv)
{
    struct run run;
    meter_open(&run, argc, argv);
    bool is_detached = meter_is(&run, "omp-nonblocking");
    if (!is_detached && !meter_is(&run, "omp-standalone")) {
        fprintf(stderr, "tiom_omp: there is no version \"%s\"\n", run.settings.version);
        return 2;
    }
    struct chain *chains = calloc(run.settings.series, sizeof *chains);
    if (chains == NULL) {
        fputs("tiom_omp: no memory\n", stderr);
        return 2;
    }
    for (unsigned series = 0; series < run.settings.series; series++) {
        sem_init(&chains[series].begun, 0, 0);
    }
#pragma omp parallel num_threads((int)run.settings.workers + 1)
    {
#pragma omp barrier
#pragma omp single
        {
            meter_begin(&run);
            spawn_all(&run, is_detached, chains);
            meter_end(&run);
        }
    }
    free(chains);
    return meter_finish(&run, "OpenMP");
}
