/* A disk whose service takes time: a file, for one program, as if it were on such a disk.
 *
 *     slow_disk --channels=2 --channel-bytes-s=65536000 FILE -- PROGRAM [ARGUMENTS]
 *
 * The disk has so many channels. A transfer occupies one of them for
 *
 *     latency + bytes / bandwidth of a channel
 *
 * from the moment at which a channel is free for it; transfers wait for channels in the order in
 * which they came. A disk that was idle has no credit: this is what a token bucket (a control
 * group) gets wrong, as it lets a program that computed transfer at once what it saved meanwhile.
 *
 * It is a FUSE file system of one file, mounted on FILE in a mount namespace of the program's own.
 * Others see FILE as it is, and nothing is left to unmount, whoever is killed: the program dies
 * with the disk, and the namespace with both.
 *
 * A channel is a thread that reads a request, does it on FILE with O_DIRECT, sleeps until the
 * service is over, and answers: what the disk itself needs is hidden in the service, unless FILE
 * takes longer. It has real-time priority, since a disk does not wait for a processor. Needs root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEVICE "/dev/fuse"
#define CHANNELS_MAX 64
#define WAITING_MAX 256 /* asynchronous requests that the kernel hands over at most */
#define TRANSFER_BYTES_MAX (UINT32_C(1) << 20)
#define PAGE_BYTES 4096
#define PRIORITY 10
#define ATTRIBUTES_S 3600
#define SECOND_NS UINT64_C(1000000000)
#define MINOR_MIN 38 /* direct writes to a file at the same time, since Linux 6.2 */
#define LATENCY_US_MAX UINT64_C(60000000)
#define UNAVAILABLE 125 /* exit code; no program of ours has it */

static const char USAGE[] =
    "usage: %s [options] FILE -- PROGRAM [ARGUMENTS]\n"
    "  --channels N         transfers that are served at once; default 1\n"
    "  --channel-bytes-s N  bandwidth of one of them; default 100000000\n"
    "  --latency-us N       what a transfer takes beside its bytes; default 0\n";

/* The size of a transfer's arguments: the bytes to write come after them. */
#define ARGUMENTS_BYTES 40
_Static_assert(sizeof(struct fuse_write_in) == ARGUMENTS_BYTES, "where the bytes begin");
_Static_assert(sizeof(struct fuse_read_in) == ARGUMENTS_BYTES, "one size for both");

struct disk {
    const char *path;
    int file;       /* the bytes */
    int connection; /* to the kernel; a read of it waits for a request */
    uint64_t size;
    uint64_t channels;
    uint64_t channel_bytes_s;
    uint64_t latency_us;
    _Atomic uint64_t requests;
};

/* What was asked for, and the bytes of it. */
struct request {
    char *buffer; /* whole pages */
    int from;     /* the connection that it came by, and the answer goes by */
    struct {
        struct fuse_in_header header;
        union {
            struct fuse_read_in read;
            struct fuse_write_in write;
            uint32_t words[ARGUMENTS_BYTES / sizeof(uint32_t)];
        };
    } asked;
};

struct channel {
    struct disk *disk;
    int hasty; /* the connection as well; a read of it does not wait */
    struct request *current;
    struct request *next;
    bool has_next;
    uint64_t begun_ns; /* the service of the current one */
};

/* Ends the disk, and with it the program. */
__attribute__((noreturn)) static void give_up(int code, const char *what)
{
    fprintf(stderr, "slow_disk: %s: %s\n", what, strerror(errno));
    exit(code);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t end_ns)
{
    struct timespec end = {(time_t)(end_ns / SECOND_NS), (long)(end_ns % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
}

/* Answers the request: with an error, or with what there is to say. */
static void answer(const struct request *request, int error, const void *said, size_t bytes)
{
    bytes = error == 0 ? bytes : 0;
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + bytes),
        .error = -error,
        .unique = request->asked.header.unique,
    };
    struct iovec parts[] = {{&header, sizeof header}, {(void *)said, bytes}};
    /* ENOENT: whoever asked is gone. ENODEV: the file system is. */
    if (writev(request->from, parts, 2) < 0 && errno != ENOENT && errno != ENODEV) {
        give_up(1, "cannot answer a request");
    }
}

static void answer_init(const struct request *request)
{
    const uint32_t *asked = request->asked.words; /* major, minor, readahead */
    struct fuse_init_out said = {
        .major = FUSE_KERNEL_VERSION,
        .minor = asked[1] < FUSE_KERNEL_MINOR_VERSION ? asked[1] : FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = asked[2],
        .flags = FUSE_ASYNC_DIO | FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES,
        .max_background = WAITING_MAX,
        .congestion_threshold = WAITING_MAX,
        .max_write = TRANSFER_BYTES_MAX,
        .time_gran = 1,
        .max_pages = TRANSFER_BYTES_MAX / PAGE_BYTES,
    };
    if (asked[0] != FUSE_KERNEL_VERSION || asked[1] < MINOR_MIN) {
        errno = EPROTONOSUPPORT;
        give_up(UNAVAILABLE, "FUSE of this kernel is too old");
    }
    answer(request, 0, &said, sizeof said);
}

static void answer_attributes(const struct request *request, uint64_t size)
{
    struct fuse_attr_out said = {
        .attr_valid = ATTRIBUTES_S,
        .attr = {
            .ino = FUSE_ROOT_ID,
            .size = size,
            .blocks = size / 512,
            .mode = S_IFREG | 0600,
            .nlink = 1,
            .uid = geteuid(),
            .gid = getegid(),
            .blksize = PAGE_BYTES,
        },
    };
    answer(request, 0, &said, sizeof said);
}

/* Reads a request, if `from` lets it wait for one; false when there is none. */
static bool take(struct request *request, int from)
{
    struct iovec parts[] = {
        {&request->asked, sizeof request->asked},
        {request->buffer, TRANSFER_BYTES_MAX},
    };
    request->from = from;
    while (readv(from, parts, 2) < 0) {
        if (errno == EAGAIN || errno == ENODEV) {
            return false;
        }
        /* ENOENT: the request was taken back while it was read. */
        if (errno != EINTR && errno != ENOENT) {
            give_up(1, "cannot read a request");
        }
    }
    return true;
}

/* Does a transfer of so many bytes, and takes the time that the disk takes for it. */
static void serve_transfer(struct channel *channel, bool is_write, uint64_t offset, uint32_t bytes)
{
    struct disk *disk = channel->disk;
    struct request *request = channel->current;
    if (bytes > TRANSFER_BYTES_MAX ||
        (is_write && (bytes > disk->size || offset > disk->size - bytes))) {
        answer(request, ENOSPC, NULL, 0);
        return;
    }
    ssize_t done = is_write ? pwrite(disk->file, request->buffer, bytes, (off_t)offset)
                            : pread(disk->file, request->buffer, bytes, (off_t)offset);
    int error = done < 0 ? errno : 0;
    channel->begun_ns += disk->latency_us * 1000 + bytes * SECOND_NS / disk->channel_bytes_s;
    sleep_until(channel->begun_ns);
    channel->has_next = take(channel->next, channel->hasty);
    struct fuse_write_out written = {.size = (uint32_t)done};
    if (is_write) {
        answer(request, error, &written, sizeof written);
    } else {
        answer(request, error, request->buffer, (size_t)done);
    }
}

static void serve(struct channel *channel)
{
    struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES};
    struct request *request = channel->current;
    const struct fuse_read_in *read = &request->asked.read;
    const struct fuse_write_in *write = &request->asked.write;
    const struct disk *disk = channel->disk;
    switch (request->asked.header.opcode) {
    case FUSE_INIT: answer_init(request); break;
    case FUSE_GETATTR: answer_attributes(request, disk->size); break;
    case FUSE_OPEN: answer(request, 0, &opened, sizeof opened); break;
    case FUSE_READ: serve_transfer(channel, false, read->offset, read->size); break;
    case FUSE_WRITE: serve_transfer(channel, true, write->offset, write->size); break;
    case FUSE_FSYNC: answer(request, fdatasync(disk->file) ? errno : 0, NULL, 0); break;
    case FUSE_RELEASE: answer(request, 0, NULL, 0); break;
    case FUSE_SETATTR: answer(request, EPERM, NULL, 0); break;
    case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: break; /* want no answer */
    default: answer(request, ENOSYS, NULL, 0); /* the kernel does without */
    }
}

/* A request that was waiting when a service was over is served from then on. It is read before the
 * answer, so that the answer cannot have brought it. */
static void *run_channel(void *argument)
{
    struct channel *channel = argument;
    for (;;) {
        if (channel->has_next) {
            struct request *next = channel->next;
            channel->next = channel->current;
            channel->current = next;
            channel->has_next = false;
        } else if (take(channel->current, channel->disk->connection)) {
            channel->begun_ns = now_ns();
        } else {
            return NULL;
        }
        atomic_fetch_add_explicit(&channel->disk->requests, 1, memory_order_relaxed);
        serve(channel);
    }
}

static struct request *new_request(void)
{
    struct request *request = calloc(1, sizeof *request);
    if (request == NULL ||
        posix_memalign((void **)&request->buffer, PAGE_BYTES, TRANSFER_BYTES_MAX) != 0) {
        errno = ENOMEM;
        give_up(1, "cannot start a channel");
    }
    return request;
}

static void start_channel(struct disk *disk)
{
    struct channel *channel = calloc(1, sizeof *channel);
    struct sched_param priority = {.sched_priority = PRIORITY};
    pthread_attr_t attributes;
    pthread_t thread;
    uint32_t connection = (uint32_t)disk->connection;
    if (channel == NULL) {
        give_up(1, "cannot start a channel");
    }
    channel->disk = disk;
    channel->current = new_request();
    channel->next = new_request();
    channel->hasty = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (channel->hasty < 0 || ioctl(channel->hasty, FUSE_DEV_IOC_CLONE, &connection) != 0) {
        give_up(UNAVAILABLE, "cannot share the connection");
    }
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &priority);
    errno = pthread_create(&thread, &attributes, run_channel, channel);
    if (errno != 0) {
        give_up(UNAVAILABLE, "cannot start a thread with real-time priority");
    }
    pthread_attr_destroy(&attributes);
}

/* Puts the disk in the place of the file, for this process and those that it starts. */
static void mount_here(struct disk *disk)
{
    struct stat status;
    char options[128];
    disk->file = open(disk->path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (disk->file < 0 || fstat(disk->file, &status) != 0) {
        give_up(UNAVAILABLE, disk->path);
    }
    disk->size = (uint64_t)status.st_size;
    disk->connection = open(DEVICE, O_RDWR | O_CLOEXEC);
    if (disk->connection < 0) {
        give_up(UNAVAILABLE, DEVICE);
    }
    snprintf(options, sizeof options, "fd=%d,rootmode=%o,user_id=%u,group_id=%u",
             disk->connection, (unsigned)(S_IFREG | 0600), geteuid(), getegid());
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        give_up(UNAVAILABLE, "no mount namespace");
    }
    if (mount("slow_disk", disk->path, "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
        give_up(UNAVAILABLE, "cannot mount");
    }
}

/* Starts the program; it ends when the disk does. */
static pid_t start(char **command)
{
    pid_t disk = getpid();
    pid_t program = fork();
    if (program < 0) {
        give_up(1, "cannot start a process");
    }
    if (program == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == disk) {
            execvp(command[0], command);
            fprintf(stderr, "slow_disk: cannot run %s: %s\n", command[0], strerror(errno));
        }
        _exit(127);
    }
    return program;
}

/* What the disk itself cost, for who wants to know. */
static void tell(const struct disk *disk)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu_us = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
                    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    uint64_t requests = atomic_load(&disk->requests);
    fprintf(stderr, "slow_disk: %" PRIu64 " requests, %.1f us of processor time each\n", requests,
            cpu_us / (double)(requests ? requests : 1));
}

static uint64_t whole(const char *program, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(optarg, &end, 10);
    if (errno != 0 || end == optarg || *end != '\0' || *optarg == '-' || value < least ||
        value > most) {
        fprintf(stderr, "slow_disk: \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64 "\n",
                optarg, least, most);
        fprintf(stderr, USAGE, program);
        exit(2);
    }
    return value;
}

static char **parse(struct disk *disk, int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"channels", required_argument, NULL, 'c'},
        {"channel-bytes-s", required_argument, NULL, 'b'},
        {"latency-us", required_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    *disk = (struct disk){.channels = 1, .channel_bytes_s = 100000000};
    for (int option; (option = getopt_long(argc, argv, "+", OPTIONS, NULL)) != -1;) {
        switch (option) {
        case 'c': disk->channels = whole(argv[0], 1, CHANNELS_MAX); break;
        case 'b': disk->channel_bytes_s = whole(argv[0], 1, UINT64_MAX); break;
        case 'l': disk->latency_us = whole(argv[0], 0, LATENCY_US_MAX); break;
        default: fprintf(stderr, USAGE, argv[0]); exit(2);
        }
    }
    if (argc - optind < 3 || strcmp(argv[optind + 1], "--") != 0) {
        fprintf(stderr, USAGE, argv[0]);
        exit(2);
    }
    disk->path = argv[optind];
    return argv + optind + 2;
}

int main(int argc, char **argv)
{
    static struct disk disk;
    char **command = parse(&disk, argc, argv);
    mount_here(&disk);
    pid_t program = start(command);
    for (uint64_t channel = 0; channel < disk.channels; channel++) {
        start_channel(&disk);
    }
    int status = 0;
    while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
    }
    tell(&disk);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
