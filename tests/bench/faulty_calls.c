/* Preloaded: with FAULTY=pwrite one write is only pretended, with FAULTY=pread one read is from the
 * wrong place. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define FAULTY_CALL 77

typedef ssize_t (*reader)(int, void *, size_t, off_t);
typedef ssize_t (*writer)(int, const void *, size_t, off_t);

static bool is_faulty(const char *name, atomic_uint *calls)
{
    const char *faulty = getenv("FAULTY");
    return atomic_fetch_add(calls, 1) == FAULTY_CALL && faulty && strcmp(faulty, name) == 0;
}

ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off_t offset)
{
    static atomic_uint calls;
    if (is_faulty("pwrite", &calls)) {
        return (ssize_t)bytes;
    }
    return ((writer)dlsym(RTLD_NEXT, "pwrite64"))(fd, buffer, bytes, offset);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off_t offset)
{
    static atomic_uint calls;
    off_t wrong = is_faulty("pread", &calls) ? (off_t)bytes : 0;
    return ((reader)dlsym(RTLD_NEXT, "pread64"))(fd, buffer, bytes, offset + wrong);
}

ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
    return pwrite64(fd, buffer, bytes, offset);
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    return pread64(fd, buffer, bytes, offset);
}
