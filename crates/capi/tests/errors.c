/* Whatever the plain system call gives, the task-aware one gives: errors, ends of files, things
 * that are no files, buffers and vectors that make no sense. */
#include "check.h"

#include <limits.h>
#include <sys/syscall.h>

enum form { READ, WRITE, READ_VECTOR, WRITE_VECTOR, SYNC, DATA_SYNC };

struct attempt {
    const char *what;
    enum form form;
    int fd;
    void *buffer;
    size_t bytes;
    off_t offset;
    ssize_t expected, blocking, promised;
};

static char memory[8192];
static struct iovec two[2] = {{memory, 100}, {memory + 100, 200}};
static struct iovec nowhere[2] = {{memory, 100}, {NULL, 200}};
static struct iovec too_long[2] = {{memory, SSIZE_MAX}, {memory, 100}};
static struct iovec negative[1] = {{memory, (size_t)-5}};
static struct iovec empty[1] = {{NULL, 0}};
static struct iovec many[IOV_MAX + 1];

/* For vectors, `buffer` are the pieces and `bytes` is their count. */
static ssize_t plain(const struct attempt *try)
{
    long fd = try->fd, low = (long)try->offset;
    static const long numbers[] = {SYS_pread64, SYS_pwrite64, SYS_preadv,
                                   SYS_pwritev, SYS_fsync, SYS_fdatasync};
    /* the fifth argument is the high half of the offset, which vectors have on 64 bits too */
    long given = syscall(numbers[try->form], fd, try->buffer, try->bytes, low, 0L);
    return given < 0 ? -errno : given;
}

static ssize_t aware(const struct attempt *try)
{
    switch (try->form) {
    case READ:
        return do_pread(try->fd, try->buffer, try->bytes, try->offset);
    case WRITE:
        return do_pwrite(try->fd, try->buffer, try->bytes, try->offset);
    case READ_VECTOR:
        return do_preadv(try->fd, try->buffer, (int)try->bytes, try->offset);
    case WRITE_VECTOR:
        return do_pwritev(try->fd, try->buffer, (int)try->bytes, try->offset);
    case SYNC:
        return do_fsync(try->fd);
    default:
        return do_fdatasync(try->fd);
    }
}

static int promised(struct attempt *try)
{
    ssize_t *to = &try->promised;
    switch (try->form) {
    case READ:
        return al_pread_async(try->fd, try->buffer, try->bytes, try->offset, to);
    case WRITE:
        return al_pwrite_async(try->fd, try->buffer, try->bytes, try->offset, to);
    case READ_VECTOR:
        return al_preadv_async(try->fd, try->buffer, (int)try->bytes, try->offset, to);
    case WRITE_VECTOR:
        return al_pwritev_async(try->fd, try->buffer, (int)try->bytes, try->offset, to);
    case SYNC:
        return al_fsync_async(try->fd, to);
    default:
        return al_fdatasync_async(try->fd, to);
    }
}

static void tries(void *argument)
{
    struct attempt *try = argument;
    try->blocking = aware(try);
    SAME(promised(try), 0);
}

int main(void)
{
    int file = scratch(0), folder = open(".", O_RDONLY), full = open("/dev/full", O_RDWR);
    int null = open("/dev/null", O_RDWR), reader, closed, ends[2];
    char path[64];
    SAME(pipe(ends), 0);
    SAME(pwrite(file, memory, 4000, 0), 4000);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    reader = open(path, O_RDONLY);
    closed = dup(file);
    CHECK(file >= 0 && folder >= 0 && full >= 0 && null >= 0 && reader >= 0 && closed >= 0);
    close(closed);
    for (int i = 0; i <= IOV_MAX; i++) {
        many[i] = (struct iovec){memory + i, 1};
    }
    struct attempt all[] = {
        {.what = "a closed file", .fd = closed, .buffer = memory, .bytes = 10},
        {.what = "a closed file, written", WRITE, closed, memory, 10},
        {.what = "a closed file, synced", SYNC, closed},
        {.what = "a closed file, data synced", DATA_SYNC, closed},
        {.what = "no file", READ, -1, memory, 10},
        {.what = "no file, a vector", READ_VECTOR, -1, two, 2},
        {.what = "across the end", READ, file, memory, 100, 3950},
        {.what = "across the end, a vector", READ_VECTOR, file, two, 2, 3850},
        {.what = "at the end", READ, file, memory, 100, 4000},
        {.what = "past the end", READ, file, memory, 100, 1 << 20},
        {.what = "nothing", READ, file, memory, 0},
        {.what = "nothing, to nowhere", READ, file, NULL, 0},
        {.what = "nothing, written", WRITE, file, memory, 0, 10},
        {.what = "to nowhere", READ, file, NULL, 10},
        {.what = "from nowhere", WRITE, file, NULL, 10},
        {.what = "to the wrong place", READ, file, (void *)16, 10},
        {.what = "too much", READ, file, memory, SIZE_MAX},
        {.what = "a negative offset", READ, file, memory, 10, -1},
        {.what = "a very negative offset", WRITE, file, memory, 10, LONG_MIN},
        {.what = "a very large offset", READ, file, memory, 10, LONG_MAX},
        {.what = "a very large offset, written", WRITE, file, memory, 10, LONG_MAX},
        {.what = "a folder", READ, folder, memory, 10},
        {.what = "a folder, written", WRITE, folder, memory, 10},
        {.what = "a pipe", READ, ends[0], memory, 10},
        {.what = "a pipe, written", WRITE, ends[1], memory, 10},
        {.what = "a pipe, a vector", WRITE_VECTOR, ends[1], two, 2},
        {.what = "a pipe, synced", SYNC, ends[1]},
        {.what = "a full device", WRITE, full, memory, 10},
        {.what = "a full device, a vector", WRITE_VECTOR, full, two, 2},
        {.what = "a device of zeros", READ, full, memory, 10},
        {.what = "a device of nothing", READ, null, memory, 10},
        {.what = "a device of nothing, written", WRITE, null, memory, 10},
        {.what = "only for reading", WRITE, reader, memory, 10},
        {.what = "no pieces", READ_VECTOR, file, two, 0},
        {.what = "no pieces at all", WRITE_VECTOR, file, NULL, 0},
        {.what = "fewer than no pieces", READ_VECTOR, file, two, (size_t)-1},
        {.what = "fewer than no pieces, written", WRITE_VECTOR, file, two, (size_t)INT_MIN},
        {.what = "too many pieces", READ_VECTOR, file, many, IOV_MAX + 1},
        {.what = "as many pieces as may be", READ_VECTOR, file, many, IOV_MAX},
        {.what = "pieces nowhere", READ_VECTOR, file, NULL, 2},
        {.what = "pieces in the wrong place", READ_VECTOR, file, (void *)16, 2},
        {.what = "a piece nowhere", READ_VECTOR, file, nowhere, 2},
        {.what = "a piece from nowhere", WRITE_VECTOR, file, nowhere, 2, 8000},
        {.what = "pieces that are too long", READ_VECTOR, file, too_long, 2},
        {.what = "a piece of negative length", WRITE_VECTOR, file, negative, 1},
        {.what = "an empty piece", READ_VECTOR, file, empty, 1},
        {.what = "a vector at a negative offset", READ_VECTOR, file, two, 2, -7},
    };
    size_t count = sizeof all / sizeof all[0], wrong = 0;
    start_workers(2);
    for (size_t i = 0; i < count; i++) {
        struct attempt *try = &all[i];
        try->expected = plain(try);
        try->promised = 4321;
        ssize_t outside = aware(try);
        spawn(tries, try);
        SAME(al_taskwait(), 0);
        if (outside != try->expected || try->blocking != try->expected ||
            try->promised != try->expected) {
            fprintf(stderr, "%s: the call gives %zd; outside a task %zd, blocking %zd, async %zd\n",
                    try->what, try->expected, outside, try->blocking, try->promised);
            wrong++;
        }
    }
    SAME(wrong, 0);
    SAME(al_stop(), 0);
    return 0;
}
