/* Graphs of empty tasks, and how a round of them is timed and checked; shared by all contenders. */
#ifndef SHAPES_H
#define SHAPES_H

#include <stdbool.h>

#define CHAIN_TASKS 200000
#define SIDE 32
#define STEPS 100

enum shape { SHAPE_INDEPENDENT, SHAPE_CHAIN, SHAPE_STENCIL };

struct shapes {
    enum shape shape;
    unsigned workers;
    unsigned rounds;
};

/* Where a task is in its graph. */
struct point {
    unsigned step; /* of the chain, or of the stencil */
    unsigned line;
    unsigned column;
};

/* What dependences are about: a border of cells that nobody writes around those of the stencil. */
extern char shapes_cells[SIDE + 2][SIDE + 2];
extern char shapes_chain;

/* Reads the options; ends the program when they make no sense. */
struct shapes shapes_options(int argc, char **argv);

/* Runs the shape in rounds and prints the median time of a task; then a round whose tasks check
 * that they run in the order of their dependences. `run` spawns all tasks and waits for them. Gives
 * the exit code. */
int shapes_measure(const struct shapes *shapes, void (*run)(enum shape shape, bool is_checked));

/* The body of the rounds that are timed; a call that the compiler leaves in. */
void shapes_nothing(void);

/* The bodies of the round that checks. */
void shapes_count(void);
void shapes_check_chain(struct point point);
void shapes_check_stencil(struct point point);

#endif
