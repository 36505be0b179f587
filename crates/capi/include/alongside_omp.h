/* Asynchronous I/O in OpenMP tasks: operations that hold back a task with a `detach` clause.
 *
 *     #pragma omp task depend(out: buffer[0]) detach(event)
 *     {
 *         al_omp_pread(event, fd, buffer, bytes, offset, &result);
 *         al_omp_pread(event, fd, buffer + bytes, bytes, offset + bytes, &other);
 *         al_omp_done(event);
 *     }
 *
 * The task is over, and its dependents run, when all of its operations are complete. Needs OpenMP
 * 5.0 (gcc 11 or newer, -fopenmp). No runtime of ours has to be started; one thread, which sleeps
 * in the kernel, sees to completions.
 *
 * gcc 12's libgomp takes a detached task for complete when its body ends, if a thread runs it while
 * it waits in `taskwait depend(...)`: leave that out beside detached tasks (`taskwait` is fine).
 */
#ifndef ALONGSIDE_OMP_H
#define ALONGSIDE_OMP_H

#include <omp.h>

#include "alongside.h"

static inline void al_omp_fulfil(uintptr_t event)
{
    omp_fulfill_event((omp_event_handle_t)event);
}

static inline int al_omp_pread(omp_event_handle_t event, int fd, void *buffer, size_t bytes,
                               off_t offset, ssize_t *result)
{
    return al_detach_pread((uintptr_t)event, al_omp_fulfil, fd, buffer, bytes, offset, result);
}

static inline int al_omp_pwrite(omp_event_handle_t event, int fd, const void *buffer, size_t bytes,
                                off_t offset, ssize_t *result)
{
    return al_detach_pwrite((uintptr_t)event, al_omp_fulfil, fd, buffer, bytes, offset, result);
}

static inline int al_omp_preadv(omp_event_handle_t event, int fd, const struct iovec *pieces,
                                int count, off_t offset, ssize_t *result)
{
    return al_detach_preadv((uintptr_t)event, al_omp_fulfil, fd, pieces, count, offset, result);
}

static inline int al_omp_pwritev(omp_event_handle_t event, int fd, const struct iovec *pieces,
                                 int count, off_t offset, ssize_t *result)
{
    return al_detach_pwritev((uintptr_t)event, al_omp_fulfil, fd, pieces, count, offset, result);
}

static inline int al_omp_fsync(omp_event_handle_t event, int fd, ssize_t *result)
{
    return al_detach_fsync((uintptr_t)event, al_omp_fulfil, fd, result);
}

static inline int al_omp_fdatasync(omp_event_handle_t event, int fd, ssize_t *result)
{
    return al_detach_fdatasync((uintptr_t)event, al_omp_fulfil, fd, result);
}

/* The task has submitted all of its operations. Every task that used one of the above calls it,
 * once. */
static inline int al_omp_done(omp_event_handle_t event)
{
    return al_detach_done((uintptr_t)event, al_omp_fulfil);
}

#endif
