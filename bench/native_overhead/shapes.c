/* Timing and checking of graphs of empty tasks. */
#define _GNU_SOURCE
#include "shapes.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MAX 99

static const char *const NAMES[] = {"independent", "chain", "stencil"};

char shapes_cells[SIDE + 2][SIDE + 2];
char shapes_chain;

static atomic_uint counted;
static atomic_uint disordered;
static unsigned chain_step;
static unsigned stencil_steps[SIDE + 2][SIDE + 2];

struct shapes shapes_options(int argc, char **argv)
{
    struct shapes shapes = {SHAPE_INDEPENDENT, 0, 0};
    bool is_known = false;
    for (unsigned shape = 0; argc == 4 && shape < sizeof NAMES / sizeof NAMES[0]; shape++) {
        if (strcmp(argv[1], NAMES[shape]) == 0) {
            shapes.shape = (enum shape)shape;
            is_known = true;
        }
    }
    if (is_known) {
        shapes.workers = (unsigned)strtoul(argv[2], NULL, 10);
        shapes.rounds = (unsigned)strtoul(argv[3], NULL, 10);
    }
    if (shapes.workers == 0 || shapes.rounds == 0 || shapes.rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: %s independent|chain|stencil WORKERS ROUNDS\n", argv[0]);
        exit(2);
    }
    return shapes;
}

void shapes_nothing(void)
{
}

void shapes_count(void)
{
    atomic_fetch_add(&counted, 1);
}

void shapes_check_chain(struct point point)
{
    if (chain_step != point.step) {
        atomic_fetch_add(&disordered, 1);
    }
    chain_step = point.step + 1;
    shapes_count();
}

/* Tasks are spawned line by line: those above and on the left have done this step already, those
 * below and on the right have not. */
void shapes_check_stencil(struct point point)
{
    unsigned line = point.line;
    unsigned column = point.column;
    bool is_wrong = stencil_steps[line][column] != point.step;
    is_wrong |= line > 1 && stencil_steps[line - 1][column] != point.step + 1;
    is_wrong |= column > 1 && stencil_steps[line][column - 1] != point.step + 1;
    is_wrong |= line < SIDE && stencil_steps[line + 1][column] != point.step;
    is_wrong |= column < SIDE && stencil_steps[line][column + 1] != point.step;
    if (is_wrong) {
        atomic_fetch_add(&disordered, 1);
    }
    stencil_steps[line][column] = point.step + 1;
    shapes_count();
}

static unsigned tasks_of(enum shape shape)
{
    return shape == SHAPE_STENCIL ? SIDE * SIDE * STEPS : CHAIN_TASKS;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *one, const void *other)
{
    double first = *(const double *)one;
    double second = *(const double *)other;
    return (first > second) - (first < second);
}

int shapes_measure(const struct shapes *shapes, void (*run)(enum shape shape, bool is_checked))
{
    double times_ns[ROUNDS_MAX];
    unsigned tasks = tasks_of(shapes->shape);
    run(shapes->shape, false);
    for (unsigned round = 0; round < shapes->rounds; round++) {
        double begun_ns = now_ns();
        run(shapes->shape, false);
        times_ns[round] = (now_ns() - begun_ns) / tasks;
    }
    qsort(times_ns, shapes->rounds, sizeof times_ns[0], compare);
    run(shapes->shape, true);
    if (atomic_load(&counted) != tasks || atomic_load(&disordered) != 0) {
        fprintf(stderr, "%u of %u tasks ran, %u of them out of order\n", atomic_load(&counted),
                tasks, atomic_load(&disordered));
        return 1;
    }
    printf("{\"ns\": %.2f}\n", times_ns[shapes->rounds / 2]);
    return 0;
}
