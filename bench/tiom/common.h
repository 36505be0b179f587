/* What the programs of the task-I/O meter share: settings, computation, stamped blocks, the answer.
 *
 * A run has `series` independent chains of steps. A step computes and transfers blocks; how, the
 * mode says. A series owns its blocks of the file and its buffers, one a lane: as many lanes as it
 * has transfers at once. Nothing here knows of tasks: the order of the calls for one lane is what
 * the dependences of a program guarantee.
 */
#ifndef TIOM_COMMON_H
#define TIOM_COMMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LANES_MAX 4
#define COMPUTES_MAX 4
#define PAGE_BYTES 4096

enum mode { MODE_MIX, MODE_ONE_TO_ONE, MODE_FJIO, MODE_FJC };

struct settings {
    const char *version;
    const char *file;
    enum mode mode;
    bool is_write;
    bool is_random;
    bool is_direct;
    unsigned workers;
    unsigned series;
    uint64_t block_bytes;
    uint64_t file_bytes;
    uint64_t total_bytes;  /* of all transfers; rounded down to whole steps of all series */
    uint64_t verify_bytes; /* so much of what was written is read again after the run */
    double compute_ms;     /* of one computation */
    double loops_per_ms;
    double seconds_max; /* what has not begun by then is left out; 0: no limit */
    uint32_t seed;      /* in the stamps: tells this run's bytes from those of the one before */
};

/* One place of a series for a transfer in flight. */
struct lane {
    char *buffer;
    ssize_t result; /* bytes, or -errno; set when the transfer is complete */
    uint64_t offset;
    uint64_t operations;
    bool is_pending;
};

struct series {
    _Alignas(128) struct lane lanes[LANES_MAX];
    uint64_t slots;      /* blocks of the file that belong to this series */
    uint32_t *order;     /* the slots in the order of use */
    uint32_t *rounds;    /* by slot: in which round it was written last; 0: not by this run */
    uint64_t *positions; /* by slot: where in the file */
};

struct run {
    struct settings settings;
    int fd;
    unsigned lanes;    /* transfers of a step */
    unsigned computes; /* computations of a step */
    uint64_t steps;    /* of each series */
    uint64_t loops;    /* of one computation */
    struct series *series;
    char *page;     /* what a page holds behind its stamp */
    char *readback; /* one block, for verification */
    uint64_t begun_ns;
    double wall_s;
    double cpu_s;
    _Atomic uint64_t computed;
    atomic_bool is_failed;
    atomic_bool is_cut; /* the time was over before the work was */
};

/* Reads the options, opens the file and makes the series. Ends the program when something is wrong
 * with them. */
void meter_open(struct run *run, int argc, char **argv);

/* Whether this is the version to run. */
bool meter_is(const struct run *run, const char *version);

/* Starts and stops the clocks. */
void meter_begin(struct run *run);
void meter_end(struct run *run);

/* Checks what is pending, reads back what was written, prints the answer; the exit code.
 * `engine` is put into the answer. */
int meter_finish(struct run *run, const char *engine);

/* Says what went wrong; the first of several counts. The run fails. */
__attribute__((format(printf, 2, 3))) void meter_fail(struct run *run, const char *format, ...);

/* Whether nothing more is to be begun: the time is over, or something failed. */
bool meter_is_over(struct run *run);

/* Calculates for the time asked for. */
void meter_compute(struct run *run);

/* Calculates `loops` times; what comes out must be used. */
uint64_t meter_loops(uint64_t loops);

/* Chooses the block for this step and lane, and stamps the buffer if it is to be written. */
struct lane *meter_prepare(struct run *run, unsigned series, unsigned lane, uint64_t step);

/* Transfers the lane's block with a plain system call. */
void meter_transfer(struct run *run, struct lane *lane);

/* Looks at the result of the lane's transfer, if it had one, and at the bytes if they were read. */
void meter_check(struct run *run, struct lane *lane);

/* As meter_check, for all lanes of a series. */
void meter_check_series(struct run *run, unsigned series);

/* Time of a clock, in nanoseconds. */
uint64_t meter_clock_ns(int clock);

/* In blocks.c: the bytes. */
void blocks_make_page(struct run *run);
void blocks_stamp(struct run *run, char *buffer, uint64_t offset, uint64_t round);
bool blocks_are_there(const struct run *run, const char *buffer, uint64_t offset);
void blocks_write_file(struct run *run);
uint64_t blocks_verify(struct run *run);

#endif
