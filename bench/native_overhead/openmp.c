/* Empty tasks of OpenMP: independent, a chain, a 4-point stencil; spawned by one of its threads. */
#include <omp.h>

#include "shapes.h"

static void run_independent(bool is_checked)
{
    for (unsigned task = 0; task < CHAIN_TASKS; task++) {
        if (is_checked) {
#pragma omp task
            shapes_count();
        } else {
#pragma omp task
            shapes_nothing();
        }
    }
}

static void run_chain(bool is_checked)
{
    for (unsigned step = 0; step < CHAIN_TASKS; step++) {
        struct point point = {.step = step};
        if (is_checked) {
#pragma omp task depend(inout : shapes_chain) firstprivate(point)
            shapes_check_chain(point);
        } else {
#pragma omp task depend(inout : shapes_chain)
            shapes_nothing();
        }
    }
}

static void spawn_point(struct point point, bool is_checked)
{
    unsigned line = point.line;
    unsigned column = point.column;
    if (is_checked) {
#pragma omp task firstprivate(point) depend(inout : shapes_cells[line][column])                    \
    depend(in : shapes_cells[line - 1][column], shapes_cells[line][column - 1])                    \
    depend(in : shapes_cells[line][column + 1], shapes_cells[line + 1][column])
        shapes_check_stencil(point);
    } else {
#pragma omp task depend(inout : shapes_cells[line][column])                                        \
    depend(in : shapes_cells[line - 1][column], shapes_cells[line][column - 1])                    \
    depend(in : shapes_cells[line][column + 1], shapes_cells[line + 1][column])
        shapes_nothing();
    }
}

static void run_stencil(bool is_checked)
{
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned line = 1; line <= SIDE; line++) {
            for (unsigned column = 1; column <= SIDE; column++) {
                spawn_point((struct point){step, line, column}, is_checked);
            }
        }
    }
}

static void run(enum shape shape, bool is_checked)
{
    switch (shape) {
    case SHAPE_INDEPENDENT: run_independent(is_checked); break;
    case SHAPE_CHAIN: run_chain(is_checked); break;
    case SHAPE_STENCIL: run_stencil(is_checked); break;
    }
#pragma omp taskwait
}

int main(int argc, char **argv)
{
    struct shapes shapes = shapes_options(argc, argv);
    int code = 1;
#pragma omp parallel num_threads((int)shapes.workers)
#pragma omp single
    code = shapes_measure(&shapes, run);
    return code;
}
