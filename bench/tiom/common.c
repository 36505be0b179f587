/* The task-I/O meter without its tasks: options, series, clocks, checks, the line of JSON. */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_BYTES_MAX (UINT64_C(1) << 30)

static const char USAGE[] =
    "usage: %s [options]\n"
    "  --version NAME         which way to run\n"
    "  --file PATH            of at least --file-bytes, filled by `tiom_alone --version prepare`\n"
    "  --file-bytes N         so much of it is used; default 1 GiB\n"
    "  --mode NAME            mix, 1to1, fjio or fjc\n"
    "  --read | --write       default: write\n"
    "  --random | --sequential  order of the blocks of a series; default: random\n"
    "  --direct | --buffered  O_DIRECT or the page cache; default: direct\n"
    "  --workers N            threads that compute; default 2\n"
    "  --series N             chains of tasks; default 4 for each worker\n"
    "  --block-bytes N        of one transfer, whole pages; default 65536\n"
    "  --total-bytes N        of all transfers; default 64 MiB\n"
    "  --compute-ms X         of one computation; default 1\n"
    "  --loops-per-ms X       as `tiom_alone --version calibrate` gives it\n"
    "  --seconds-max X        begin nothing after so many seconds; default: no limit\n"
    "  --verify-bytes N       read back so much of what was written; default 64 MiB\n"
    "  --seed N               marks the bytes of this run; default: from the clock\n";

enum option_name {
    OPTION_VERSION = 256, OPTION_FILE, OPTION_FILE_BYTES, OPTION_MODE, OPTION_READ, OPTION_WRITE,
    OPTION_RANDOM, OPTION_SEQUENTIAL, OPTION_DIRECT, OPTION_BUFFERED, OPTION_WORKERS,
    OPTION_SERIES, OPTION_BLOCK_BYTES, OPTION_TOTAL_BYTES, OPTION_COMPUTE_MS, OPTION_LOOPS_PER_MS,
    OPTION_SECONDS_MAX, OPTION_VERIFY_BYTES, OPTION_SEED, OPTION_HELP,
};

static const struct option OPTIONS[] = {
    {"version", required_argument, NULL, OPTION_VERSION},
    {"file", required_argument, NULL, OPTION_FILE},
    {"file-bytes", required_argument, NULL, OPTION_FILE_BYTES},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"read", no_argument, NULL, OPTION_READ},
    {"write", no_argument, NULL, OPTION_WRITE},
    {"random", no_argument, NULL, OPTION_RANDOM},
    {"sequential", no_argument, NULL, OPTION_SEQUENTIAL},
    {"direct", no_argument, NULL, OPTION_DIRECT},
    {"buffered", no_argument, NULL, OPTION_BUFFERED},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"series", required_argument, NULL, OPTION_SERIES},
    {"block-bytes", required_argument, NULL, OPTION_BLOCK_BYTES},
    {"total-bytes", required_argument, NULL, OPTION_TOTAL_BYTES},
    {"compute-ms", required_argument, NULL, OPTION_COMPUTE_MS},
    {"loops-per-ms", required_argument, NULL, OPTION_LOOPS_PER_MS},
    {"seconds-max", required_argument, NULL, OPTION_SECONDS_MAX},
    {"verify-bytes", required_argument, NULL, OPTION_VERIFY_BYTES},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static const struct {
    const char *name;
    unsigned lanes;
    unsigned computes;
} MODES[] = {{"mix", 1, 1}, {"1to1", 1, 1}, {"fjio", LANES_MAX, 1}, {"fjc", 1, COMPUTES_MAX}};

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tiom: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    exit(2);
}

static uint64_t whole(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-') {
        refuse("\"%s\" is not a whole number", text);
    }
    return value;
}

static double number(const char *text)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= 0)) {
        refuse("\"%s\" is not a number of 0 or more", text);
    }
    return value;
}

static enum mode mode_of(const char *name)
{
    for (unsigned mode = 0; mode < sizeof MODES / sizeof MODES[0]; mode++) {
        if (strcmp(name, MODES[mode].name) == 0) {
            return (enum mode)mode;
        }
    }
    refuse("--mode: there is no mode \"%s\"; modes: mix, 1to1, fjio, fjc", name);
}

static void take(struct settings *settings, int option, const char *program)
{
    switch (option) {
    case OPTION_VERSION: settings->version = optarg; break;
    case OPTION_FILE: settings->file = optarg; break;
    case OPTION_FILE_BYTES: settings->file_bytes = whole(optarg); break;
    case OPTION_MODE: settings->mode = mode_of(optarg); break;
    case OPTION_READ: settings->is_write = false; break;
    case OPTION_WRITE: settings->is_write = true; break;
    case OPTION_RANDOM: settings->is_random = true; break;
    case OPTION_SEQUENTIAL: settings->is_random = false; break;
    case OPTION_DIRECT: settings->is_direct = true; break;
    case OPTION_BUFFERED: settings->is_direct = false; break;
    case OPTION_WORKERS: settings->workers = (unsigned)whole(optarg); break;
    case OPTION_SERIES: settings->series = (unsigned)whole(optarg); break;
    case OPTION_BLOCK_BYTES: settings->block_bytes = whole(optarg); break;
    case OPTION_TOTAL_BYTES: settings->total_bytes = whole(optarg); break;
    case OPTION_COMPUTE_MS: settings->compute_ms = number(optarg); break;
    case OPTION_LOOPS_PER_MS: settings->loops_per_ms = number(optarg); break;
    case OPTION_SECONDS_MAX: settings->seconds_max = number(optarg); break;
    case OPTION_VERIFY_BYTES: settings->verify_bytes = whole(optarg); break;
    case OPTION_SEED: settings->seed = (uint32_t)whole(optarg); break;
    case OPTION_HELP: printf(USAGE, program); exit(0);
    default: fprintf(stderr, USAGE, program); exit(2);
    }
}

static void check(struct settings *settings)
{
    settings->series = settings->series ? settings->series : 4 * settings->workers;
    if (settings->version == NULL || settings->file == NULL) {
        refuse("--version and --file are needed");
    }
    if (settings->workers == 0) {
        refuse("--workers: at least one is needed");
    }
    if (settings->block_bytes == 0 || settings->block_bytes % PAGE_BYTES != 0 ||
        settings->block_bytes > BLOCK_BYTES_MAX) {
        refuse("--block-bytes: %llu is not a number of whole pages up to 1 GiB",
               (unsigned long long)settings->block_bytes);
    }
    unsigned lanes = MODES[settings->mode].lanes;
    uint64_t blocks = settings->file_bytes / settings->block_bytes;
    if (blocks < (uint64_t)settings->series * lanes) {
        refuse("--file-bytes: %llu hold %llu blocks, %u series of this mode need %u",
               (unsigned long long)settings->file_bytes, (unsigned long long)blocks,
               settings->series, settings->series * lanes);
    }
}

/* Page-aligned memory; the program ends when there is none. */
static void *memory(uint64_t count, uint64_t bytes)
{
    void *made = NULL;
    uint64_t whole_bytes = (count * bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (posix_memalign(&made, PAGE_BYTES, whole_bytes) != 0) {
        refuse("no memory for %llu bytes", (unsigned long long)whole_bytes);
    }
    return memset(made, 0, whole_bytes);
}

static char *make_buffer(struct run *run)
{
    char *buffer = memory(1, run->settings.block_bytes);
    for (uint64_t at = 0; at < run->settings.block_bytes; at += PAGE_BYTES) {
        memcpy(buffer + at, run->page, PAGE_BYTES);
    }
    return buffer;
}

/* A series' own blocks: a part of the file if sequential, else one in so many, in random order.
 * The order depends on the settings only, so that all versions touch the same blocks. */
static void make_series(struct run *run, unsigned index)
{
    const struct settings *settings = &run->settings;
    struct series *series = &run->series[index];
    series->slots = settings->file_bytes / settings->block_bytes / settings->series;
    series->order = memory(series->slots, sizeof *series->order);
    series->rounds = memory(series->slots, sizeof *series->rounds);
    series->positions = memory(series->slots, sizeof *series->positions);
    for (uint64_t slot = 0; slot < series->slots; slot++) {
        uint64_t block = settings->is_random ? slot * settings->series + index
                                             : index * series->slots + slot;
        series->order[slot] = (uint32_t)slot;
        series->positions[slot] = block * settings->block_bytes;
    }
    uint64_t random = 0x9e3779b97f4a7c15 + index;
    for (uint64_t left = series->slots; settings->is_random && left > 1; left--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t other = random % left;
        uint32_t kept = series->order[left - 1];
        series->order[left - 1] = series->order[other];
        series->order[other] = kept;
    }
    for (unsigned lane = 0; lane < run->lanes; lane++) {
        series->lanes[lane].buffer = make_buffer(run);
    }
}

void meter_open(struct run *run, int argc, char **argv)
{
    struct settings settings = {
        .mode = MODE_MIX, .is_write = true, .is_random = true, .is_direct = true, .workers = 2,
        .block_bytes = 65536, .file_bytes = UINT64_C(1) << 30, .total_bytes = UINT64_C(64) << 20,
        .verify_bytes = UINT64_C(64) << 20, .compute_ms = 1.0, .loops_per_ms = 0.0,
        .seed = (uint32_t)meter_clock_ns(CLOCK_REALTIME),
    };
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        take(&settings, option, argv[0]);
    }
    if (optind != argc) {
        refuse("\"%s\" is not an option", argv[optind]);
    }
    check(&settings);
    memset(run, 0, sizeof *run);
    run->settings = settings;
    run->lanes = MODES[settings.mode].lanes;
    run->computes = MODES[settings.mode].computes;
    run->steps = settings.total_bytes / settings.block_bytes / run->lanes / settings.series;
    run->steps = run->steps ? run->steps : 1;
    run->loops = (uint64_t)(settings.compute_ms * settings.loops_per_ms);
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | (settings.is_direct ? O_DIRECT : 0);
    run->fd = open(settings.file, flags, 0600);
    if (run->fd < 0) {
        refuse("cannot open %s: %s", settings.file, strerror(errno));
    }
    run->page = memory(1, PAGE_BYTES);
    blocks_make_page(run);
    run->readback = make_buffer(run);
    run->series = memory(settings.series, sizeof *run->series);
    for (unsigned index = 0; index < settings.series; index++) {
        make_series(run, index);
    }
}

bool meter_is(const struct run *run, const char *version)
{
    return strcmp(run->settings.version, version) == 0;
}

uint64_t meter_clock_ns(int clock)
{
    struct timespec now;
    clock_gettime((clockid_t)clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void meter_begin(struct run *run)
{
    run->cpu_s = (double)meter_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
    run->begun_ns = meter_clock_ns(CLOCK_MONOTONIC);
}

void meter_end(struct run *run)
{
    run->wall_s = (double)(meter_clock_ns(CLOCK_MONOTONIC) - run->begun_ns) / 1e9;
    run->cpu_s = (double)meter_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9 - run->cpu_s;
}

void meter_fail(struct run *run, const char *format, ...)
{
    if (atomic_exchange(&run->is_failed, true)) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    fputs("tiom: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
}

bool meter_is_over(struct run *run)
{
    if (atomic_load_explicit(&run->is_failed, memory_order_relaxed)) {
        return true;
    }
    double limit_s = run->settings.seconds_max;
    if (limit_s > 0 && (double)(meter_clock_ns(CLOCK_MONOTONIC) - run->begun_ns) > limit_s * 1e9) {
        atomic_store_explicit(&run->is_cut, true, memory_order_relaxed);
        return true;
    }
    return false;
}

uint64_t meter_loops(uint64_t loops)
{
    uint64_t value = loops;
    for (uint64_t loop = 0; loop < loops; loop++) {
        value = value * UINT64_C(6364136223846793005) + 1442695040888963407;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

void meter_compute(struct run *run)
{
    meter_loops(run->loops);
    atomic_fetch_add_explicit(&run->computed, 1, memory_order_relaxed);
}

struct lane *meter_prepare(struct run *run, unsigned index, unsigned place, uint64_t step)
{
    struct series *series = &run->series[index];
    struct lane *lane = &series->lanes[place];
    uint64_t turn = step * run->lanes + place;
    uint32_t slot = series->order[turn % series->slots];
    lane->offset = series->positions[slot];
    lane->result = -EINPROGRESS;
    lane->is_pending = true;
    if (run->settings.is_write) {
        uint64_t round = turn / series->slots + 1;
        series->rounds[slot] = (uint32_t)round;
        blocks_stamp(run, lane->buffer, lane->offset, round);
    }
    return lane;
}

void meter_transfer(struct run *run, struct lane *lane)
{
    uint64_t bytes = run->settings.block_bytes;
    off_t offset = (off_t)lane->offset;
    ssize_t done = run->settings.is_write ? pwrite(run->fd, lane->buffer, bytes, offset)
                                          : pread(run->fd, lane->buffer, bytes, offset);
    lane->result = done < 0 ? -errno : done;
    meter_check(run, lane);
}

void meter_check(struct run *run, struct lane *lane)
{
    if (!lane->is_pending) {
        return;
    }
    lane->is_pending = false;
    lane->operations++;
    unsigned long long offset = lane->offset;
    if (lane->result < 0) {
        meter_fail(run, "the transfer at %llu failed: %s", offset, strerror(-(int)lane->result));
    } else if ((uint64_t)lane->result != run->settings.block_bytes) {
        meter_fail(run, "the transfer at %llu moved %zd bytes only", offset, lane->result);
    } else if (!run->settings.is_write && !blocks_are_there(run, lane->buffer, lane->offset)) {
        meter_fail(run, "bytes lost or altered: the block at %llu was read without its stamp",
                   offset);
    } else if (!run->settings.is_write) {
        memset(lane->buffer, 0, sizeof(uint64_t));
        memset(lane->buffer + run->settings.block_bytes - PAGE_BYTES, 0, sizeof(uint64_t));
    }
}

void meter_check_series(struct run *run, unsigned index)
{
    for (unsigned lane = 0; lane < run->lanes; lane++) {
        meter_check(run, &run->series[index].lanes[lane]);
    }
}

static void print_text(const char *text)
{
    putchar('"');
    for (const char *place = text; *place != '\0'; place++) {
        if (*place == '"' || *place == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*place < ' ' ? ' ' : *place);
    }
    putchar('"');
}

int meter_finish(struct run *run, const char *engine)
{
    uint64_t operations = 0;
    for (unsigned index = 0; index < run->settings.series; index++) {
        meter_check_series(run, index);
        for (unsigned lane = 0; lane < run->lanes; lane++) {
            operations += run->series[index].lanes[lane].operations;
        }
    }
    uint64_t verified = 0;
    if (!atomic_load(&run->is_failed) && run->settings.is_write) {
        verified = blocks_verify(run);
        if (!run->settings.is_direct && fdatasync(run->fd) != 0) {
            meter_fail(run, "cannot flush %s: %s", run->settings.file, strerror(errno));
        }
    }
    printf("{\"version\": \"%s\", \"wall_s\": %.6f, \"cpu_s\": %.6f, ", run->settings.version,
           run->wall_s, run->cpu_s);
    printf("\"bytes\": %llu, \"operations\": %llu, \"computed\": %llu, \"verified_bytes\": %llu, ",
           (unsigned long long)(operations * run->settings.block_bytes),
           (unsigned long long)operations,
           (unsigned long long)atomic_load(&run->computed), (unsigned long long)verified);
    printf("\"is_cut\": %s, \"engine\": ", atomic_load(&run->is_cut) ? "true" : "false");
    print_text(engine);
    puts("}");
    close(run->fd);
    return atomic_load(&run->is_failed) ? 1 : 0;
}
