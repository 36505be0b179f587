/* Checkpoints beside a simulation: the steps take processors, the checkpoints are I/O tasks that
 * take bandwidth. How many of them write at once is followed by "adaptive"; with the name of a
 * storage description as argument, they go where it says.
 *
 *     cc checkpoints.c $(pkg-config --cflags --libs alongside) && ./a.out [storage.toml]
 */
#define _GNU_SOURCE
#include <alongside.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 50, CELLS = 1 << 16 };

struct checkpoint {
    int step;
    double *state; /* a copy of its own */
};

static double *state;

static void simulate(void *argument)
{
    (void)argument;
    for (int i = 1; i < CELLS; i++) {
        state[i] = 0.5 * (state[i] + state[i - 1]) + 1.0;
    }
}

/* Takes the state as it is now, so that the next step need not wait for the disk. */
static void take(void *argument)
{
    struct checkpoint *checkpoint = argument;
    memcpy(checkpoint->state, state, CELLS * sizeof *state);
}

static void save(void *argument)
{
    struct checkpoint *checkpoint = argument;
    size_t bytes = CELLS * sizeof *checkpoint->state;
    int file = open(al_layer_path(), O_TMPFILE | O_RDWR, 0600);
    ssize_t written = al_pwrite(file, checkpoint->state, bytes, 0); /* pauses this task alone */
    if (file < 0 || written != (ssize_t)bytes || al_fdatasync(file) != 0) {
        fprintf(stderr, "step %d could not be saved\n", checkpoint->step);
        exit(1);
    }
    double last;
    if (al_pread(file, &last, sizeof last, (off_t)(bytes - sizeof last)) != sizeof last ||
        last != checkpoint->state[CELLS - 1]) {
        fprintf(stderr, "step %d was saved wrong\n", checkpoint->step);
        exit(1);
    }
    close(file);
    free(checkpoint->state);
}

static void spawn(al_body body, void *argument, const al_access *uses, size_t count,
                  const al_io *io)
{
    al_task task = {.body = body, .accesses = uses, .accesses_count = count, .io = io};
    task.name = io != NULL ? "save" : "step";
    task.argument = argument;
    task.argument_bytes = argument != NULL ? sizeof(struct checkpoint) : 0;
    if (al_spawn(&task) != 0) {
        exit(1);
    }
}

static void show(const al_tuned *tuned, void *data)
{
    (void)data;
    printf("\"%s\" on %s: %u at once, %.0f MB/s\n", tuned->function, tuned->layer, tuned->window,
           (double)tuned->rate / 1e6);
}

int main(int count, char **words)
{
    al_options options;
    al_options_init(&options);
    options.storage = count > 1 ? words[1] : NULL;
    state = calloc(CELLS, sizeof *state);
    if (state == NULL || al_start(&options) != 0) {
        return 1;
    }
    for (int step = 0; step < STEPS; step++) {
        struct checkpoint checkpoint = {step, malloc(CELLS * sizeof *state)};
        if (checkpoint.state == NULL) {
            return 1;
        }
        al_access steps[] = {al_inout(state)};
        al_access takes[] = {al_in(state), al_out(checkpoint.state)};
        al_access saves[] = {al_in(checkpoint.state)};
        al_io asked = {.bandwidth = "adaptive", .size = CELLS * sizeof *state};
        spawn(simulate, NULL, steps, 1, NULL);
        spawn(take, &checkpoint, takes, 2, NULL);
        spawn(save, &checkpoint, saves, 1, &asked);
    }
    int is_right = al_taskwait() == 0;
    al_each_tuned(show, NULL);
    is_right = al_stop() == 0 && is_right;
    free(state);
    printf(is_right ? "right\n" : "wrong\n");
    return !is_right;
}
