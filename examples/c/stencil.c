/* A stencil in blocks: each task reads its block and its four neighbours of the last step. Nobody
 * says in which order the tasks run; their accesses do.
 *
 *     cc stencil.c $(pkg-config --cflags --libs alongside) && ./a.out
 */
#include <alongside.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 8, CELLS = 32, SIDE = BLOCKS * CELLS + 2, STEPS = 20 };

static double grids[2][SIDE][SIDE], alone[2][SIDE][SIDE];

struct place {
    int step, row, column;
};

static void smooth(double (*from)[SIDE], double (*to)[SIDE], int row, int column)
{
    for (int i = row * CELLS + 1; i <= (row + 1) * CELLS; i++) {
        for (int j = column * CELLS + 1; j <= (column + 1) * CELLS; j++) {
            to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
        }
    }
}

static void body(void *argument)
{
    struct place *place = argument;
    smooth(grids[place->step % 2], grids[1 - place->step % 2], place->row, place->column);
}

static int spawn_block(int step, int row, int column)
{
    struct place place = {step, row, column};
    double (*from)[SIDE] = grids[step % 2], (*to)[SIDE] = grids[1 - step % 2];
    uint64_t top = (uint64_t)row * CELLS, left = (uint64_t)column * CELLS;
    /* boxes in cells: the block with its rim is read, the block itself is written */
    al_span rim[2] = {{top, top + CELLS + 2}, {left, left + CELLS + 2}};
    al_span block[2] = {{top + 1, top + CELLS + 1}, {left + 1, left + CELLS + 1}};
    al_access uses[2] = {al_box(AL_IN, from, 2, rim), al_box(AL_OUT, to, 2, block)};
    al_task task = {.body = body, .argument = &place, .argument_bytes = sizeof place};
    task.accesses = uses;
    task.accesses_count = 2;
    task.name = "block";
    return al_spawn(&task);
}

int main(void)
{
    for (int i = 0; i < SIDE; i++) {
        grids[0][i][0] = grids[1][i][0] = alone[0][i][0] = alone[1][i][0] = i;
    }
    if (al_start(NULL) != 0) {
        return 1;
    }
    for (int step = 0; step < STEPS; step++) {
        for (int row = 0; row < BLOCKS; row++) {
            for (int column = 0; column < BLOCKS; column++) {
                if (spawn_block(step, row, column) != 0) {
                    return 1;
                }
                smooth(alone[step % 2], alone[1 - step % 2], row, column);
            }
        }
    }
    if (al_stop() != 0) {
        return 1;
    }
    int same = memcmp(grids, alone, sizeof grids) == 0;
    printf("%d tasks: %s\n", STEPS * BLOCKS * BLOCKS, same ? "right" : "wrong");
    return same ? 0 : 1;
}
