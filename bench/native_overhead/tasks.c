/* Empty tasks of Alongside: independent, a chain, a 4-point stencil; spawned by a task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alongside.h"
#include "shapes.h"

/* What the task that spawns is given, and leaves. */
struct root {
    struct shapes shapes;
    int code;
};

static void nothing(void *argument)
{
    (void)argument;
    shapes_nothing();
}

static void count(void *argument)
{
    (void)argument;
    shapes_count();
}

static void check_chain(void *argument)
{
    shapes_check_chain(*(const struct point *)argument);
}

static void check_stencil(void *argument)
{
    shapes_check_stencil(*(const struct point *)argument);
}

/* Spawns a task; one that checks gets a copy of its place. */
static void spawn(al_body body, const struct point *point, const al_access *accesses, size_t uses)
{
    al_task task = {.body = body, .accesses = accesses, .accesses_count = uses};
    if (point != NULL) {
        task.argument = (void *)(uintptr_t)point;
        task.argument_bytes = sizeof *point;
    }
    int refused = al_spawn(&task);
    if (refused != 0) {
        fprintf(stderr, "cannot spawn a task: %s\n", strerror(-refused));
        exit(1);
    }
}

static void run_chain(bool is_checked)
{
    al_access access = al_inout(&shapes_chain);
    for (unsigned step = 0; step < CHAIN_TASKS; step++) {
        struct point point = {.step = step};
        spawn(is_checked ? check_chain : nothing, is_checked ? &point : NULL, &access, 1);
    }
}

static void run_stencil(bool is_checked)
{
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned line = 1; line <= SIDE; line++) {
            for (unsigned column = 1; column <= SIDE; column++) {
                struct point point = {step, line, column};
                al_access accesses[] = {
                    al_inout(&shapes_cells[line][column]),
                    al_in(&shapes_cells[line - 1][column]),
                    al_in(&shapes_cells[line][column - 1]),
                    al_in(&shapes_cells[line][column + 1]),
                    al_in(&shapes_cells[line + 1][column]),
                };
                spawn(is_checked ? check_stencil : nothing, is_checked ? &point : NULL, accesses,
                      sizeof accesses / sizeof accesses[0]);
            }
        }
    }
}

static void run(enum shape shape, bool is_checked)
{
    switch (shape) {
    case SHAPE_INDEPENDENT:
        for (unsigned task = 0; task < CHAIN_TASKS; task++) {
            spawn(is_checked ? count : nothing, NULL, NULL, 0);
        }
        break;
    case SHAPE_CHAIN: run_chain(is_checked); break;
    case SHAPE_STENCIL: run_stencil(is_checked); break;
    }
    al_taskwait();
}

static void measure(void *argument)
{
    struct root *root = argument;
    root->code = shapes_measure(&root->shapes, run);
}

int main(int argc, char **argv)
{
    struct root root = {shapes_options(argc, argv), 1};
    al_options options;
    al_options_init(&options);
    options.workers = root.shapes.workers;
    int refused = al_start(&options);
    if (refused != 0) {
        fprintf(stderr, "cannot start the runtime: %s\n", strerror(-refused));
        return 2;
    }
    al_task task = {.body = measure, .argument = &root, .name = "measure"};
    refused = al_spawn(&task);
    int stopped = al_stop();
    return refused != 0 || stopped != 0 ? 2 : root.code;
}
