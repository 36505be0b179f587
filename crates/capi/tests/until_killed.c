/* Writes versions of files on two layers until it is killed, and says which are done: not a test of
 * its own, but what left_behind.rs kills. With an argument files are moved meanwhile. */
#include "places.h"

/* One file is changed in place after its first version, and one is a directory. */
enum { FILES = 7, CHANGED = 5, FOLDER = 6, BYTES = 30000, AHEAD = 20 };

struct version {
    int file;
    uint64_t number;
    int is_change;
    unsigned char bytes[BYTES];
};

static void writes(void *argument)
{
    struct version *version = argument;
    fill(version->bytes, BYTES, 0, version->number);
    memcpy(version->bytes, &version->number, sizeof version->number);
    /* In two parts, so that it can be killed between them. */
    int flags = version->is_change ? 0 : O_CREAT | O_TRUNC;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", al_path(0), version->file == FOLDER ? "/part" : "");
    int file = open(path, O_WRONLY | O_CLOEXEC | flags, 0640);
    CHECK(file >= 0);
    SAME(al_pwrite(file, version->bytes, BYTES / 2, 0), BYTES / 2);
    SAME(al_pwrite(file, version->bytes + BYTES / 2, BYTES / 2, BYTES / 2), BYTES / 2);
    SAME(close(file), 0);
}

/* Runs when the version was reported done. */
static void says(void *argument)
{
    const struct version *version = argument;
    char line[64];
    int length = snprintf(line, sizeof line, "%d %llu\n", version->file,
                          (unsigned long long)version->number);
    CHECK(write(1, line, (size_t)length) == length);
}

static void spawn_version(al_body body, int file, uint64_t number, al_direction direction)
{
    struct version version = {.file = file, .number = number};
    version.is_change = direction == AL_INOUT;
    al_file use = {own_path(file), direction};
    if (file == FOLDER) {
        use.direction = direction == AL_IN ? AL_DIR_IN : AL_DIR_OUT;
    }
    al_io asked = {.files = &use, .files_count = 1, .size = direction == AL_OUT ? BYTES : 0};
    al_task task = {.body = body, .name = "version", .io = &asked};
    task.argument = &version;
    task.argument_bytes = sizeof version;
    SAME(al_spawn(&task), 0);
}

static uint64_t total;

/* Time without I/O, in which files move. */
static void computes(void *argument)
{
    uint64_t state = *(const uint64_t *)argument;
    for (int i = 0; i < 2000000; i++) {
        total += next_random(&state);
    }
}

int main(int count, char **words)
{
    (void)words;
    describe_places(100);
    start_moving(2, 8, count > 1, count > 1);
    for (uint64_t number = 1;; number++) {
        int file = (int)(number % FILES);
        int is_change = file == CHANGED && number > FILES;
        spawn_version(writes, file, number, is_change ? AL_INOUT : AL_OUT);
        spawn_version(says, file, number, AL_IN);
        if (number % AHEAD == 0) {
            SAME(al_taskwait(), 0);
            spawn(computes, &number);
            SAME(al_taskwait(), 0);
        }
        if (number % 7 == 0) {
            SAME(al_persist(own_path(file)), 0);
        }
    }
}
