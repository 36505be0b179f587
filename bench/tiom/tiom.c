/* The task-I/O meter on tasks of Alongside: standalone, blocking (preloaded), nonblocking.
 *
 * A series is a chain on one datum, the series itself:
 *
 *   mix    one task a step, inout(series): computes, then transfers
 *   1to1   two tasks a step, both inout(series): one computes, the other transfers
 *   fjio   one computes, inout(series); four transfer, in(series): the next computation waits for
 *          all four, each of them for one computation
 *   fjc    four compute, in(series); one transfers, inout(series)
 *
 * `standalone` and `blocking` are the same calls of pread and pwrite; for `blocking` the program
 * is started with libalongside_preload.so. `nonblocking` begins the transfer and ends the task.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alongside.h"
#include "common.h"

/* What the bodies find out about their place. */
struct place {
    struct run *run;
    uint64_t step;
    unsigned series;
    unsigned number; /* of the transfer or of the computation in its step */
};

static bool is_nonblocking;

static void transfer(const struct place *place)
{
    struct run *run = place->run;
    struct lane *lane = meter_prepare(run, place->series, place->number, place->step);
    if (!is_nonblocking) {
        meter_transfer(run, lane);
        return;
    }
    size_t bytes = run->settings.block_bytes;
    off_t offset = (off_t)lane->offset;
    int refused = run->settings.is_write
                      ? al_pwrite_async(run->fd, lane->buffer, bytes, offset, &lane->result)
                      : al_pread_async(run->fd, lane->buffer, bytes, offset, &lane->result);
    if (refused != 0) {
        lane->is_pending = false;
        meter_fail(run, "cannot begin a transfer: %s", strerror(-refused));
    }
}

static void compute_body(void *argument)
{
    const struct place *place = argument;
    if (place->number == 0) {
        meter_check_series(place->run, place->series);
    }
    if (!meter_is_over(place->run)) {
        meter_compute(place->run);
    }
}

static void transfer_body(void *argument)
{
    const struct place *place = argument;
    if (!meter_is_over(place->run)) {
        transfer(place);
    }
}

static void mix_body(void *argument)
{
    const struct place *place = argument;
    meter_check_series(place->run, place->series);
    if (!meter_is_over(place->run)) {
        meter_compute(place->run);
        transfer(place);
    }
}

static void spawn(struct place place, al_body body, al_direction direction)
{
    al_access access = al_whole(direction, &place.run->series[place.series]);
    al_task task = {
        .body = body,
        .argument = &place,
        .argument_bytes = sizeof place,
        .accesses = &access,
        .accesses_count = 1,
        .name = "step",
    };
    int refused = al_spawn(&task);
    if (refused != 0) {
        meter_fail(place.run, "cannot spawn a task: %s", strerror(-refused));
    }
}

static void spawn_step(struct run *run, unsigned series, uint64_t step)
{
    struct place place = {.run = run, .series = series, .step = step};
    if (run->settings.mode == MODE_MIX) {
        spawn(place, mix_body, AL_INOUT);
        return;
    }
    for (place.number = 0; place.number < run->computes; place.number++) {
        spawn(place, compute_body, run->computes > 1 ? AL_IN : AL_INOUT);
    }
    for (place.number = 0; place.number < run->lanes; place.number++) {
        spawn(place, transfer_body, run->lanes > 1 ? AL_IN : AL_INOUT);
    }
}

static void nothing(void *argument)
{
    (void)argument;
}

/* Has the workers run a few tasks before the clock does. */
static void warm_up(const struct run *run)
{
    for (unsigned place = 0; place < 4 * run->settings.workers; place++) {
        al_task task = {.body = nothing};
        al_spawn(&task);
    }
    al_taskwait();
}

/* Whether pwrite is the one of the library that makes calls pause their task. */
static bool is_preloaded(void)
{
    Dl_info found;
    void *function = dlsym(RTLD_DEFAULT, "pwrite64");
    return function != NULL && dladdr(function, &found) != 0 &&
           strstr(found.dli_fname, "libalongside_preload") != NULL;
}

static void choose(const struct run *run)
{
    is_nonblocking = meter_is(run, "nonblocking");
    bool is_blocking = meter_is(run, "blocking");
    if (!is_nonblocking && !is_blocking && !meter_is(run, "standalone")) {
        fprintf(stderr, "tiom: there is no version \"%s\"\n", run->settings.version);
        exit(2);
    }
    if (is_blocking != is_preloaded()) {
        fprintf(stderr, "tiom: version %s %s libalongside_preload.so\n", run->settings.version,
                is_blocking ? "needs LD_PRELOAD with" : "must run without");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct run run;
    meter_open(&run, argc, argv);
    choose(&run);
    al_options options;
    al_options_init(&options);
    options.workers = run.settings.workers;
    int refused = al_start(&options);
    if (refused != 0) {
        fprintf(stderr, "tiom: cannot start the runtime: %s\n", strerror(-refused));
        return 2;
    }
    warm_up(&run);
    meter_begin(&run);
    for (uint64_t step = 0; step < run.steps; step++) {
        for (unsigned series = 0; series < run.settings.series; series++) {
            spawn_step(&run, series, step);
        }
    }
    int waited = al_taskwait();
    meter_end(&run);
    if (waited != 0) {
        meter_fail(&run, "a transfer failed: %s", strerror(-waited));
    }
    const char *engine = al_engine();
    int code = meter_finish(&run, engine ? engine : "none");
    int stopped = al_stop();
    if (stopped != 0) {
        fprintf(stderr, "tiom: the runtime stopped with an error: %s\n", strerror(-stopped));
        return 1;
    }
    return code;
}
