/* Random programs over data, byte ranges and boxes, in all five directions: what they leave behind
 * is what a run of the same tasks, one after the other, leaves behind. Some tasks pause for I/O
 * between reading and writing. */
#include "check.h"

#define DATA 6
#define SIDE 8
#define CELLS (SIDE * SIDE)
#define USES_MAX 3
#define TASKS 400
#define PROGRAMS 30

/* One use: rows and columns of a datum. Ranges and the whole are special cases. */
struct use {
    int datum;
    al_direction direction;
    unsigned dimensions;
    al_span rows, columns;
};

struct job {
    struct use uses[USES_MAX];
    int count;
    uint64_t seed;
    int pauses;
    struct state *state;
};

struct state {
    uint64_t cells[DATA][CELLS];
    /* tasks that are in a commutative access of a datum: one at a time */
    _Atomic int inside[DATA];
};

static struct state sequential, parallel;
static struct job jobs[TASKS];
static int file;

/* Datum 0 and 1 are used as a whole, 2 and 3 as ranges, 4 and 5 as boxes. */
static struct use some_use(uint64_t *random, int datum)
{
    struct use use = {.datum = datum, .rows = {0, SIDE}, .columns = {0, SIDE}};
    use.direction = (al_direction)(next_random(random) % 5);
    if (datum >= 2 && next_random(random) % 8 != 0) {
        use.dimensions = datum < 4 ? 1 : 2;
        use.rows.start = next_random(random) % SIDE;
        use.rows.end = use.rows.start + 1 + next_random(random) % (SIDE - use.rows.start);
    }
    if (use.dimensions == 2) {
        use.columns.start = next_random(random) % SIDE;
        use.columns.end = use.columns.start + 1 + next_random(random) % (SIDE - use.columns.start);
    }
    return use;
}

static void make_jobs(uint64_t seed)
{
    uint64_t random = seed;
    for (int i = 0; i < TASKS; i++) {
        struct job *job = &jobs[i];
        int first = (int)(next_random(&random) % DATA);
        job->count = 1 + (int)(next_random(&random) % USES_MAX);
        for (int use = 0; use < job->count; use++) {
            job->uses[use] = some_use(&random, (first + use) % DATA);
        }
        job->seed = next_random(&random);
        job->pauses = next_random(&random) % 8 == 0;
    }
}

/* What the job reads, mixed into one number. */
static uint64_t look(const struct job *job)
{
    uint64_t seen = job->seed;
    for (int i = 0; i < job->count; i++) {
        const struct use *use = &job->uses[i];
        if (use->direction != AL_IN && use->direction != AL_INOUT) {
            continue;
        }
        for (uint64_t row = use->rows.start; row < use->rows.end; row++) {
            for (uint64_t column = use->columns.start; column < use->columns.end; column++) {
                seen += job->state->cells[use->datum][row * SIDE + column];
                next_random(&seen);
            }
        }
    }
    return seen;
}

/* Changes one cell. Updates of neighbours that may come in any order are sums, by the job's seed
 * alone; those that may come at the same time are atomic. */
static void change(struct job *job, const struct use *use, uint64_t *cell, uint64_t seen)
{
    switch (use->direction) {
    case AL_IN:
        break;
    case AL_OUT:
        *cell = seen;
        break;
    case AL_INOUT:
        *cell = *cell * 3 + seen;
        break;
    case AL_CONCURRENT:
        __atomic_fetch_add(cell, job->seed, __ATOMIC_RELAXED);
        break;
    case AL_COMMUTATIVE:
        *cell += job->seed;
        break;
    }
}

static void run(void *argument)
{
    struct job *job = argument;
    uint64_t seen = look(job);
    if (job->pauses && job->state == &parallel) {
        char byte;
        SAME(al_pread(file, &byte, 1, 0), 1);
    }
    for (int i = 0; i < job->count; i++) {
        const struct use *use = &job->uses[i];
        int alone = use->direction == AL_COMMUTATIVE && use->dimensions == 0;
        if (alone) {
            SAME(atomic_fetch_add(&job->state->inside[use->datum], 1), 0);
        }
        for (uint64_t row = use->rows.start; row < use->rows.end; row++) {
            for (uint64_t column = use->columns.start; column < use->columns.end; column++) {
                change(job, use, &job->state->cells[use->datum][row * SIDE + column], seen);
            }
        }
        if (alone) {
            SAME(atomic_fetch_sub(&job->state->inside[use->datum], 1), 1);
        }
    }
}

static void spawn_job(struct job *job)
{
    al_access uses[USES_MAX];
    al_span boxes[USES_MAX][2];
    for (int i = 0; i < job->count; i++) {
        const struct use *use = &job->uses[i];
        const void *base = parallel.cells[use->datum];
        boxes[i][0] = use->rows;
        boxes[i][1] = use->columns;
        if (use->dimensions == 0) {
            uses[i] = al_whole(use->direction, base);
        } else if (use->dimensions == 1) {
            uint64_t row_bytes = SIDE * sizeof(uint64_t);
            uses[i] = al_range(use->direction, base, use->rows.start * row_bytes,
                               (use->rows.end - use->rows.start) * row_bytes);
        } else {
            uses[i] = al_box(use->direction, base, 2, boxes[i]);
        }
    }
    spawn_whole(run, job, uses, (size_t)job->count);
}

int main(void)
{
    start_workers(3);
    file = scratch(0);
    CHECK(file >= 0);
    SAME(pwrite(file, "x", 1, 0), 1);
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        make_jobs(seed);
        memset(sequential.cells, 0, sizeof sequential.cells);
        memset(parallel.cells, 0, sizeof parallel.cells);
        for (int i = 0; i < TASKS; i++) {
            jobs[i].state = &sequential;
            run(&jobs[i]);
        }
        for (int i = 0; i < TASKS; i++) {
            jobs[i].state = &parallel;
            spawn_job(&jobs[i]);
        }
        SAME(al_taskwait(), 0);
        if (memcmp(sequential.cells, parallel.cells, sizeof parallel.cells) != 0) {
            fprintf(stderr, "the program of seed %llu differs\n", (unsigned long long)seed);
            return 1;
        }
    }
    SAME(al_stop(), 0);
    return 0;
}
