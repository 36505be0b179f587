/* The bytes of the task-I/O meter: every page says where it belongs and which write it is from. */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6d6f6974656e6f6c)

/* At the beginning of every page of the file. */
struct stamp {
    uint64_t magic;
    uint64_t offset;
    uint64_t round; /* and the seed of the run above it */
};

static struct stamp stamp_of(const struct run *run, uint64_t offset, uint64_t round)
{
    struct stamp stamp = {MAGIC, offset, (uint64_t)run->settings.seed << 32 | round};
    return stamp;
}

/* Fills what is constant in a page. */
void blocks_make_page(struct run *run)
{
    for (unsigned place = 0; place < PAGE_BYTES; place++) {
        run->page[place] = (char)(place * 167 + (place >> 8));
    }
}

/* Stamps every page of a buffer whose constant part is there. */
void blocks_stamp(struct run *run, char *buffer, uint64_t offset, uint64_t round)
{
    for (uint64_t at = 0; at < run->settings.block_bytes; at += PAGE_BYTES) {
        struct stamp stamp = stamp_of(run, offset + at, round);
        memcpy(buffer + at, &stamp, sizeof stamp);
    }
}

/* Whether the first and the last page of a block that was read belong to this place of the file. */
bool blocks_are_there(const struct run *run, const char *buffer, uint64_t offset)
{
    uint64_t last = run->settings.block_bytes - PAGE_BYTES;
    struct stamp first_stamp;
    struct stamp last_stamp;
    memcpy(&first_stamp, buffer, sizeof first_stamp);
    memcpy(&last_stamp, buffer + last, sizeof last_stamp);
    return first_stamp.magic == MAGIC && first_stamp.offset == offset &&
           last_stamp.magic == MAGIC && last_stamp.offset == offset + last;
}

/* Whether every byte of a block is as it was written. */
static bool is_as_written(const struct run *run, uint64_t offset, uint64_t round)
{
    for (uint64_t at = 0; at < run->settings.block_bytes; at += PAGE_BYTES) {
        struct stamp stamp = stamp_of(run, offset + at, round);
        const char *page = run->readback + at;
        size_t rest = PAGE_BYTES - sizeof stamp;
        if (memcmp(page, &stamp, sizeof stamp) != 0 ||
            memcmp(page + sizeof stamp, run->page + sizeof stamp, rest) != 0) {
            return false;
        }
    }
    return true;
}

/* Writes the whole file, so that later writes overwrite and later reads find stamps. */
void blocks_write_file(struct run *run)
{
    uint64_t bytes = run->settings.block_bytes;
    for (uint64_t offset = 0; offset < run->settings.file_bytes; offset += bytes) {
        blocks_stamp(run, run->readback, offset, 0);
        ssize_t done = pwrite(run->fd, run->readback, bytes, (off_t)offset);
        if (done != (ssize_t)bytes) {
            meter_fail(run, "cannot fill %s at %llu: %s", run->settings.file,
                       (unsigned long long)offset, done < 0 ? strerror(errno) : "short write");
            return;
        }
    }
    if (fsync(run->fd) != 0) {
        meter_fail(run, "cannot flush %s: %s", run->settings.file, strerror(errno));
    }
}

/* Reads back what this run wrote: all of it, or evenly chosen blocks of as many bytes as are asked
 * for. Gives how many bytes were looked at. */
uint64_t blocks_verify(struct run *run)
{
    uint64_t bytes = run->settings.block_bytes;
    uint64_t written = 0;
    for (unsigned place = 0; place < run->settings.series; place++) {
        for (uint64_t slot = 0; slot < run->series[place].slots; slot++) {
            written += run->series[place].rounds[slot] != 0;
        }
    }
    uint64_t wanted = run->settings.verify_bytes / bytes + 1;
    uint64_t stride = written > wanted ? (written + wanted - 1) / wanted : 1;
    uint64_t seen = 0;
    uint64_t verified = 0;
    for (unsigned place = 0; place < run->settings.series; place++) {
        struct series *series = &run->series[place];
        for (uint64_t slot = 0; slot < series->slots; slot++) {
            if (series->rounds[slot] == 0 || seen++ % stride != 0) {
                continue;
            }
            uint64_t offset = series->positions[slot];
            ssize_t done = pread(run->fd, run->readback, bytes, (off_t)offset);
            if (done != (ssize_t)bytes || !is_as_written(run, offset, series->rounds[slot])) {
                meter_fail(run, "bytes lost or altered: the block at %llu is not the one written",
                           (unsigned long long)offset);
                return verified;
            }
            verified += bytes;
        }
    }
    return verified;
}
