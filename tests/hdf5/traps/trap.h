/* What the traps share: checks, small files, and a gate before every write to the device. */

#ifndef ALONGSIDE_TRAP_H
#define ALONGSIDE_TRAP_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

/* Ends the process with code 1 and says where, unless the condition holds. */
#define CHECK(condition) trap_check((condition), #condition, __FILE__, __LINE__)
void trap_check(bool holds, const char *condition, const char *file, int line);

/* Ends the process with code 77 and says why: this machine cannot show the trap. */
void trap_skip(const char *why);

/* Writes of other threads than the first wait from now on, until they may go on. */
void gate_close(void);
void gate_open(void);

/* Writes of at least so many bytes fail from now on, of all threads; 0: none does. */
void gate_fail(int error, size_t bytes_min);

/* How many writes of at least so many bytes other threads than the first have begun. */
unsigned gate_begun(void);

/* What a program does between its writes and a flush, so that copies of them buy it something: the
 * next ones go behind it. */
void compute(void);

/* All that a stack of errors says, one description a line. Valid until the next call. */
const char *stack_text(hid_t stack);

/* A new file, and a new one-dimensional dataset of `int` in it. */
hid_t new_file(const char *name);
hid_t new_dataset(hid_t file, const char *name, hsize_t count);

/* `count` numbers that a seed gives; to be freed. */
int *numbers(int seed, size_t count);

/* Writes the numbers of a seed to a dataset, and checks that a file has them, by a new open. */
void write_numbers(hid_t dataset, int seed, size_t count);
void check_numbers(hid_t file, const char *name, int seed, size_t count);
void check_file(const char *file, const char *name, int seed, size_t count);

/* The traps of a file, and its name. */
struct trap {
    const char *name;
    void (*run)(void);
};
extern const struct trap ERRORS[], EVENTS[], FULL[], BUFFERS[], BESIDE[], LATER[], PROCESSES[],
    THREADS[], WAIT[], POSTPONED[];

/* No trap, but a race: the thread sanitizer has to see it. */
void a_lent_buffer_is_changed_too_early(void);

#endif
