/* Alongside from C: tasks whose storage I/O does not hold up the processor.
 *
 * A program starts the runtime, spawns tasks with accesses, and waits. A task runs when everything
 * that it needs is there. Inside a task
 *
 *   - a blocking operation (al_pread ...) pauses the task; its worker runs other tasks meanwhile;
 *   - a non-blocking operation (al_pread_async ...) returns at once; the task may end before the
 *     operation does, and the tasks that depend on it wait for both.
 *
 * Outside a task a blocking operation is the ordinary system call.
 *
 * Every function that can fail gives -errno; no function changes errno's meaning or needs it. What
 * went wrong is also told in words through the message hook (standard error unless replaced).
 * All functions may be called from any thread, unless they say otherwise.
 *
 * Link with -lalongside (pkg-config alongside). A paused task goes on on the thread that it began
 * on, so errno and thread-local variables stay usable; other tasks may have used them meanwhile.
 */
#ifndef ALONGSIDE_H
#define ALONGSIDE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AL_VERSION_MAJOR 0
#define AL_VERSION_MINOR 1

/* ---- The runtime ----------------------------------------------------------------------------- */

/* How the runtime is set up. Fill it with al_options_init, then change what you need. */
typedef struct al_options {
    /* sizeof(al_options), set by al_options_init: newer libraries know older programs */
    size_t size;
    /* worker threads; 0: one for each processor that the process may use */
    unsigned workers;
    /* 1: each worker stays on one processor */
    int pinned;
    /* of each paused task, guard page not counted; 0: 65536 */
    size_t stack_bytes;
    /* tasks that may be paused at once; further tasks wait to begin; 0: 131072 */
    unsigned stacks_max;
    /* operations that each worker keeps in the kernel at once; 0: 256 */
    unsigned depth;
    /* "auto", "io_uring" or "threads"; NULL: $ALONGSIDE_ENGINE, else auto */
    const char *engine;
    /* I/O tasks (see al_io) that run at once; 0: four for each processor, at least eight, and up to
     * 256 where the bandwidth of their layers limits them */
    unsigned io_executors;
    /* a file that describes the storage layers (docs/storage.md); NULL: there is one layer,
     * "default", the working directory; it is measured when the first task asks for a bandwidth,
     * which takes five seconds at most, and has no limits before */
    const char *storage;
    /* a file with what "auto" has learned, as Python's Session(learned=) has it: read by al_start,
     * if it is there, and written by al_stop; NULL: nothing is kept */
    const char *learned;
    /* in which order ready I/O tasks get their grants: "fcfs", "priority" or "backfilling"
     * (docs/layers.md); NULL: fcfs */
    const char *io_policy;
    /* 1: a file that no task will use moves to its own path while no I/O goes on */
    int flush;
    /* 1: a file that a task is about to read is copied to a faster layer while no I/O goes on */
    int prefetch;
} al_options;

/* Sets the defaults. A program keeps working with newer libraries, whose options are more: it tells
 * how large its own are. */
void al_options_init(al_options *options);
void al_options_init_size(al_options *options, size_t size);
#define al_options_init(options) al_options_init_size((options), sizeof(al_options))

/* Starts the runtime; NULL: the defaults. -EALREADY: it runs; -EINVAL: an option (or
 * $ALONGSIDE_ENGINE) makes no sense, or a file that it names (told with file and line); -ENOSYS:
 * io_uring was asked for and is not available; -EPERM: after a fork, in the child of a program
 * whose runtime runs; else what the system gave. */
int al_start(const al_options *options);

/* Waits for all tasks, keeps what was learned (that it cannot is told by the message hook, and no
 * failure), brings files to their own paths, then ends the workers. 0, or the first error of a
 * non-blocking operation that nobody asked about, or of a task that failed. -EIO: a file could not
 * be brought to its own path; the message hook is told where it is. -EDEADLK: called by a worker;
 * -EINVAL: it does not run. */
int al_stop(void);

/* How many workers there are; 0: the runtime does not run. */
int al_workers(void);

/* The worker that the caller is on, from 0; -1: the caller is none. */
int al_worker(void);

/* The version of the library, such as "0.1.0". */
const char *al_version(void);

/* Which engine does the I/O, and why it was chosen, in words. NULL: the runtime does not run.
 * The text stays as it is until al_stop. */
const char *al_engine(void);

/* Called with a text for people when something goes wrong. NULL: standard error again. */
typedef void (*al_message_hook)(const char *text, void *data);
void al_set_message_hook(al_message_hook hook, void *data);

/* ---- Tasks ----------------------------------------------------------------------------------- */

/* What a task does with a datum. */
typedef enum al_direction {
    AL_IN = 0,          /* reads it */
    AL_OUT = 1,         /* writes it without looking at it */
    AL_INOUT = 2,       /* reads and writes it */
    AL_CONCURRENT = 3,  /* updates it at the same time as its neighbours of this direction */
    AL_COMMUTATIVE = 4  /* updates it in any order among its neighbours, one at a time */
} al_direction;

/* What a task does with a directory and all that is in it; for al_file only. */
#define AL_DIR_IN ((al_direction)5)    /* reads it */
#define AL_DIR_OUT ((al_direction)6)   /* fills it: it is there, and empty */
#define AL_DIR_INOUT ((al_direction)7) /* changes it where it is */

/* A half-open interval in one dimension, in units of the caller's choice (bytes, elements). */
typedef struct al_span {
    uint64_t start;
    uint64_t end;
} al_span;

#define AL_DIMENSIONS_MAX 8

/* One use of a datum. A datum is known by its base address, which is never followed: any address
 * that the program uses for one thing at a time will do. Regions of one datum have the same number
 * of dimensions, or are the whole, until no task is left. */
typedef struct al_access {
    const void *base;
    al_direction direction;
    /* 0: the whole datum; 1: `span`; more: `spans`, slowest dimension first */
    unsigned dimensions;
    al_span span;
    /* read during the call that takes the access only */
    const al_span *spans;
} al_access;

static inline al_access al_whole(al_direction direction, const void *base)
{
    al_access access = {base, direction, 0, {0, 0}, NULL};
    return access;
}

static inline al_access al_range(al_direction direction, const void *base, uint64_t offset,
                                 uint64_t length)
{
    al_access access = {base, direction, 1, {offset, offset + length}, NULL};
    return access;
}

static inline al_access al_box(al_direction direction, const void *base, unsigned dimensions,
                               const al_span *spans)
{
    al_access access = {base, direction, dimensions, {0, 0}, spans};
    if (dimensions == 1 && spans != NULL) {
        access.span = spans[0];
    }
    return access;
}

#define al_in(base) al_whole(AL_IN, (base))
#define al_out(base) al_whole(AL_OUT, (base))
#define al_inout(base) al_whole(AL_INOUT, (base))
#define al_concurrent(base) al_whole(AL_CONCURRENT, (base))
#define al_commutative(base) al_whole(AL_COMMUTATIVE, (base))

/* A file that an I/O task uses whole: AL_IN, AL_OUT (it writes the file anew) or AL_INOUT (it
 * changes what is there); or a directory: AL_DIR_IN, AL_DIR_OUT or AL_DIR_INOUT. What lies in a
 * directory that tasks make is read with AL_IN after them; it is written as a part of it. Tasks are
 * ordered by their files as by other data. See al_path. */
typedef struct al_file {
    const char *path;
    al_direction direction;
} al_file;

/* What an I/O task asks for. It takes no processor: it runs while its layer has a grant for it. Its
 * operations (al_pread, al_pwrite_async ...) are counted, and are slowed down where the description
 * of the layer has a `limit`. Fill what you need and leave the rest zero. */
typedef struct al_io {
    /* bytes a second that it holds of its layer while it runs: "20MB/s"; or how they are found:
     * "auto" or "auto(2MB/s,256MB/s,2)" learns them in epochs (bounds: from, to, step),
     * "adaptive" follows what the layer serves best. NULL: none, and it is never held back.
     * What is found is kept by the name of the task, which such a task has to have. */
    const char *bandwidth;
    /* bytes that it holds of the layer's capacity while it runs */
    uint64_t size;
    /* the name of the only layer that will do; NULL: the fastest with room */
    const char *layer;
    /* files that the task uses, read during al_spawn only; it opens them at al_path */
    const al_file *files;
    size_t files_count;
} al_io;

/* What a task runs. */
typedef void (*al_body)(void *argument);

/* A task to spawn. Fill what you need and leave the rest zero. */
typedef struct al_task {
    al_body body;
    void *argument;
    size_t argument_bytes;     /* more than 0: the argument is copied, and the body gets the copy */
    const al_access *accesses; /* read during al_spawn only */
    size_t accesses_count;
    const char *name;          /* for messages; has to stay until the task is over; NULL: none */
    int priority;              /* ready tasks of higher priority run first */
    /* called with the (copied) argument when the task is over, on any thread and in no task, before
     * anybody who waits for the task goes on; not if al_spawn fails; NULL: nothing */
    void (*drop)(void *argument);
    /* an I/O task, with what it asks for; read during al_spawn only; NULL: it takes a processor */
    const al_io *io;
} al_task;

/* Spawns a task. From inside a task: a child, without which its parent does not end; while more than
 * 1,024 tasks are not over, it runs some of those that wait for this thread before it returns, and
 * a task whose kind takes less than a microsecond may be run before it returns: hold no lock that
 * they take, and leave nothing to the caller that their bodies wait for in other ways than by calls
 * of this library. From outside of tasks: while 1,048,576 tasks are not over, it waits
 * until half of them are; what those wait for must not be left to the caller. -EINVAL: no body, a
 * NULL base, a reversed or empty span, too many dimensions, regions of one datum that
 * differ in dimensions, a task that uses overlapping regions twice with a write among them, what an
 * I/O task asks for makes no sense or is more than any layer has, it is inside another I/O task, it
 * uses files and is inside a task, a file that it reads is not there and no task writes it, it has
 * a file as a directory or the other way round, it fills a directory (AL_DIR_OUT) that has
 * something in it that no task made, or the runtime does not run (or is being stopped). */
int al_spawn(const al_task *task);

/* The calling task is done with what it writes at its access of this position in al_task.accesses:
 * tasks that read it run from now on, beside the rest of the task, which does not write it any
 * more. Tasks that write it wait for the end. A second time does nothing. -EINVAL: in no task, it
 * has no such access, or it only reads there. */
int al_release(unsigned access);

/* Waits for every task that was spawned by the caller: in a task its children (the task pauses),
 * else all tasks. 0, or the first error of a non-blocking operation that nobody asked about, or of
 * a task that failed (al_fail), once. -EDEADLK: in a polling service or a `drop` that a worker
 * runs. */
int al_taskwait(void);

/* Waits until nobody that was spawned before uses this datum any more: in a task none of its
 * children (the task pauses), else no task that was spawned outside of tasks. -EDEADLK: as for
 * al_taskwait. */
int al_wait_on(const void *base);

/* ---- Layers, and what was found out about them ----------------------------------------------- */

/* The name, and the folder, of the layer that the calling I/O task has its grant on; NULL: the
 * caller is in no I/O task. The texts stay as they are until al_stop. */
const char *al_layer(void);
const char *al_layer_path(void);

/* How tuning goes for the tasks of one name on one layer. Texts and all are there for the call of
 * the hook only; newer libraries add to the end. */
typedef struct al_tuned {
    const char *function;   /* the name of the tasks */
    const char *layer;      /* the name of the layer */
    const char *mode;       /* "auto" or "adaptive" */
    const char *state;      /* "learning", "chosen" (auto) or "window" (adaptive) */
    uint64_t constraint;    /* what a task is granted now, bytes a second; 0 for a window */
    /* of a window: bytes a second that were last seen, or tasks in a thousand seconds where no
     * bytes are known; 0: nothing yet */
    uint64_t rate;
    unsigned window;        /* tasks that may run at once; 0 where there is no window */
    unsigned epochs;        /* of learning, that ended */
    unsigned abandoned;     /* of learning, that were given up */
    int varies;             /* 1: the tasks move very different amounts, a mean says little */
} al_tuned;
typedef void (*al_tuned_hook)(const al_tuned *tuned, void *data);

/* Calls the hook for each. How many there were; -EINVAL: no hook, or the runtime does not run. */
int al_each_tuned(al_tuned_hook hook, void *data);

/* ---- Files on layers (docs/layers.md) -------------------------------------------------------- */

/* Tasks name files; the runtime chooses the layer. A task that writes a file whole gets a place on
 * the layer of its grant, the fastest with room. When it is over, that is what the tasks after it
 * read, and al_stop brings it to the path that was named: complete, with the mode of the file that
 * it replaces. Until then an older file there is as it was. A program that is killed leaves a
 * catalog in .alongside below its working directory, and `alongside recover` brings home every file
 * whose task was over. With one layer, or for an absolute path outside all layers, a file is
 * written at its own path at once. */

/* Where the calling task has its file of this number (from 0, as in al_io): the path to open. The
 * text stays as it is until the task is over. NULL: the caller is in no task with such a file. */
const char *al_path(size_t file);

/* The calling task fails of an error (an errno, positive); its body returns as it likes afterwards.
 * With ENOSPC, EDQUOT, EIO or EROFS its layer may be to blame: if there is another, the body is
 * called again, with the same argument and new places. Else the task failed: the files that it was
 * to write whole are as before, the tasks that depend on it do not run (their `drop` is called), and
 * the next al_taskwait gives the error. After one that was called outside of tasks everything can
 * be used again. -EINVAL: the caller is in no task with files, or that is no error. */
int al_fail(int error);

/* Opens a file for reading, at its best copy (or a directory, for openat). In a task: one of its
 * own files, or one in a directory of its own. Outside of tasks: after all tasks that write it. A
 * descriptor; -ECANCELED: such a task failed; -EINVAL: the file is none of the task's, or the
 * runtime does not run; -EDEADLK: called by a worker between tasks; else what the system gave. */
int al_open(const char *path);

/* Brings a file to its own path, after all tasks that write it, and waits until it is there.
 * -ENOENT: there is no such file; -ECANCELED: a task that writes it failed; -EDEADLK: in a task, or
 * called by a worker; -EINVAL: no path, or the runtime does not run; else what the system gave,
 * and the file stays where it is. */
int al_persist(const char *path);

/* Gives a path for a file or directory that only tasks need: they write and read it as any other,
 * but it is never brought home. It is deleted when the program has called al_forget and no task
 * uses it, at the latest by al_stop. `name` (NULL: "scratch") is the end of the file's name,
 * without folders; `path` gets the path, with its zero at most `bytes` long (PATH_MAX will do).
 * -EINVAL: no such name, no path, or the runtime does not run; -ENAMETOOLONG: the path needs more
 * bytes; -ENOSPC: no layer takes files of tasks; -EIO: there cannot be a catalog. */
int al_scratch(const char *name, char *path, size_t bytes);

/* The program will not name a scratch file any more: it is deleted after the tasks that were
 * spawned with it. Other files are not forgotten. -EINVAL: no path, or the runtime does not run. */
int al_forget(const char *path);

/* ---- I/O: blocking in form, pausing the task ------------------------------------------------- */

/* As the system calls of the same names, but -errno on failure. */
ssize_t al_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t al_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
ssize_t al_preadv(int fd, const struct iovec *pieces, int count, off_t offset);
ssize_t al_pwritev(int fd, const struct iovec *pieces, int count, off_t offset);
int al_fsync(int fd);
int al_fdatasync(int fd);

/* ---- I/O: non-blocking, holding back the dependents ------------------------------------------ */

/* Inside a task: start the operation and return. The buffer belongs to the operation until it is
 * complete (the pieces of a vector may go at once). `*result` gets what the system call would have
 * given, or -errno, before the task counts as over; `result` may lie in what a dependent reads.
 * It is stored in release order: a task that goes on may watch it with an acquiring load.
 * With NULL, a failure or a short transfer is told by the message hook and by the next al_taskwait
 * or al_stop. Give 0, or -EINVAL outside a task. */
int al_pread_async(int fd, void *buffer, size_t bytes, off_t offset, ssize_t *result);
int al_pwrite_async(int fd, const void *buffer, size_t bytes, off_t offset, ssize_t *result);
int al_preadv_async(int fd, const struct iovec *pieces, int count, off_t offset, ssize_t *result);
int al_pwritev_async(int fd, const struct iovec *pieces, int count, off_t offset, ssize_t *result);
int al_fsync_async(int fd, ssize_t *result);
int al_fdatasync_async(int fd, ssize_t *result);

/* ---- Events, pausing, polling: for other libraries ------------------------------------------- */

/* A task; 0 is none. Valid until the task is over. */
typedef uint64_t al_task_id;

/* The task that calls; 0: the caller is in none. */
al_task_id al_current_task(void);

/* The calling task is not over before `count` more events are fulfilled. -EINVAL: in no task, or
 * it would wait for more than 2^30. */
int al_events_add(unsigned count);

/* From anywhere: `count` events of a task have come. -EINVAL: it does not wait for so many. */
int al_events_fulfil(al_task_id task, unsigned count);

/* Pauses the calling task until somebody resumes it; at once if somebody has already.
 * -EINVAL: in no task. */
int al_pause(void);

/* Resumes a task that pauses, or lets its next al_pause pass. From anywhere.
 * -EINVAL: no such task. */
int al_resume(al_task_id task);

/* Called by the workers between tasks and, while nothing else is to be done, every millisecond;
 * never by two at a time. Gives 1 when it is done and must not be called again, else 0. May call
 * al_events_fulfil and al_resume. */
typedef int (*al_poll)(void *data);

/* Registers, or takes back (afterwards it does not run any more). -EINVAL: no such service;
 * -EALREADY: registered. */
int al_polling_register(al_poll service, void *data);
int al_polling_unregister(al_poll service, void *data);

/* ---- OpenMP: operations that hold back a detached task --------------------------------------- */

/* Used through alongside_omp.h. Operations on one event are counted; the event is fulfilled, by
 * calling `fulfil(event)`, when all have completed and al_detach_done was called. No runtime has to
 * be started. */
typedef void (*al_fulfil)(uintptr_t event);
int al_detach_pread(uintptr_t event, al_fulfil fulfil, int fd, void *buffer, size_t bytes,
                    off_t offset, ssize_t *result);
int al_detach_pwrite(uintptr_t event, al_fulfil fulfil, int fd, const void *buffer, size_t bytes,
                     off_t offset, ssize_t *result);
int al_detach_preadv(uintptr_t event, al_fulfil fulfil, int fd, const struct iovec *pieces,
                     int count, off_t offset, ssize_t *result);
int al_detach_pwritev(uintptr_t event, al_fulfil fulfil, int fd, const struct iovec *pieces,
                      int count, off_t offset, ssize_t *result);
int al_detach_fsync(uintptr_t event, al_fulfil fulfil, int fd, ssize_t *result);
int al_detach_fdatasync(uintptr_t event, al_fulfil fulfil, int fd, ssize_t *result);
int al_detach_done(uintptr_t event, al_fulfil fulfil);

#ifdef __cplusplus
}
#endif

#endif
