/* Tasks fill, read and change directories, and files that only tasks need. */
#include "places.h"

enum { BYTES = 5000, PARTS = 3 };

static unsigned char first[BYTES], second[BYTES];

/* The path of a part of a directory. */
static const char *part(const char *folder, int number)
{
    static _Thread_local char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/part-%d", folder, number);
    return path;
}

static void write_part(int number, const unsigned char *bytes)
{
    int file = open(part(al_path(0), number), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    CHECK(file >= 0);
    SAME(al_pwrite(file, bytes, BYTES, 0), BYTES);
    SAME(close(file), 0);
}

/* How many entries a directory has. */
static int entries(const char *folder)
{
    int count = 0;
    DIR *all = opendir(folder);
    CHECK(all != NULL);
    for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(all);
    return count;
}

static void fills(void *argument)
{
    SAME(entries(al_path(0)), 0);
    for (int number = 0; number < PARTS; number++) {
        write_part(number, argument);
    }
}

static void changes(void *argument)
{
    SAME(entries(al_path(0)), PARTS);
    write_part(1, argument);
}

static int has_parts(const char *folder, const unsigned char *last, const unsigned char *changed)
{
    return entries(folder) == PARTS && path_has_bytes(part(folder, 0), last, BYTES) &&
           path_has_bytes(part(folder, 1), changed, BYTES);
}

static void reads_all(void *argument)
{
    CHECK(has_parts(al_path(0), first, argument));
}

static void reads_one(void *argument)
{
    CHECK(path_has_bytes(al_path(0), argument, BYTES));
    CHECK(has_bytes(al_open(part(own_path(0), 1)), argument, BYTES));
}

static void fills_on_fast(void *argument)
{
    CHECK(is_on_fast(al_path(0)));
    fills(argument);
}

static int spawn_use(al_body body, void *argument, const char *path, al_direction direction)
{
    al_file file = {path, direction};
    al_io asked = {.files = &file, .files_count = 1};
    return spawn_io("folder", body, argument, asked);
}

static void remove_parts(const char *folder)
{
    for (int number = 0; number < PARTS; number++) {
        SAME(unlink(part(folder, number)), 0);
    }
    SAME(rmdir(folder), 0);
}

static void a_directory_is_filled_read_changed_and_brought_home(int flush, int prefetch)
{
    struct stat found;
    char inside[PATH_MAX];
    const char *own = own_path(0);
    snprintf(inside, sizeof inside, "%s", part(own, 1));
    start_moving(2, 8, flush, prefetch);
    SAME(spawn_use(fills_on_fast, first, own, AL_DIR_OUT), 0);
    SAME(spawn_use(reads_all, first, own, AL_DIR_IN), 0);
    SAME(spawn_use(changes, second, own, AL_DIR_INOUT), 0);
    SAME(spawn_use(reads_all, second, own, AL_DIR_IN), 0);
    SAME(spawn_use(reads_one, second, inside, AL_IN), 0);
    CHECK(has_bytes(al_open(inside), second, BYTES));
    SAME(al_persist(own), 0);
    CHECK(has_parts(own, first, second));
    SAME(spawn_use(changes, first, own, AL_DIR_INOUT), 0);
    int folder = al_open(own);
    CHECK(folder >= 0 && fstat(folder, &found) == 0 && S_ISDIR(found.st_mode));
    SAME(close(folder), 0);
    /* Filled again: what was there before is replaced as a whole. */
    SAME(spawn_use(fills, second, own, AL_DIR_OUT), 0);
    SAME(al_stop(), 0);
    CHECK(has_parts(own, second, second));
    remove_parts(own);
    check_nothing_is_left();
}

static int runs;

static void fails_half_way(void *argument)
{
    write_part(0, argument);
    SAME(al_fail(EBADF), 0);
}

static void fills_elsewhere(void *argument)
{
    runs++;
    if (strcmp(al_layer(), "fast") == 0) {
        write_part(0, argument);
        SAME(al_fail(ENOSPC), 0);
    } else {
        fills(argument);
    }
}

/* What a failed task put into a directory is nowhere, neither on a full layer nor in the end. */
static void failures_leave_no_half_directory(void)
{
    const char *own = own_path(1);
    start_moving(2, 8, 1, 1);
    SAME(spawn_use(fills_elsewhere, first, own, AL_DIR_OUT), 0);
    SAME(spawn_use(reads_all, first, own, AL_DIR_IN), 0);
    SAME(al_taskwait(), 0);
    SAME(runs, 2);
    al_set_message_hook(keep_message, NULL);
    SAME(spawn_use(fails_half_way, second, own, AL_DIR_OUT), 0);
    SAME(al_taskwait(), -EBADF);
    al_set_message_hook(NULL, NULL);
    SAME(spawn_use(reads_all, first, own, AL_DIR_IN), 0);
    SAME(al_stop(), 0);
    CHECK(has_parts(own, first, first));
    remove_parts(own);
    check_nothing_is_left();
}

static void makes_a_file(void *argument)
{
    SAME(rmdir(al_path(0)), 0);
    write_place(0, argument, BYTES);
}

static void makes_a_folder(void *argument)
{
    (void)argument;
    SAME(mkdir(al_path(0), 0700), 0);
}

static void what_cannot_be_is_told(void)
{
    char inside[PATH_MAX];
    const char *own = own_path(2);
    snprintf(inside, sizeof inside, "%s", part(own, 0));
    SAME(mkdir(own, 0700), 0);
    SAME(close(open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    start_moving(2, 8, 1, 1);
    al_set_message_hook(keep_message, NULL);
    SAME(spawn_use(fills, first, own, AL_DIR_OUT), -EINVAL);
    CHECK(strstr(message_last, "no task made") != NULL);
    SAME(spawn_use(fills, first, own, AL_OUT), -EINVAL);
    SAME(spawn_use(fills, first, inside, AL_DIR_IN), -EINVAL);
    SAME(spawn_use(fills, first, own_path(3), AL_DIR_IN), -EINVAL);
    SAME(spawn_use(fills, first, own_path(3), (al_direction)8), -EINVAL);
    al_access use = al_whole(AL_DIR_IN, own);
    al_task task = {.body = fills, .accesses = &use, .accesses_count = 1};
    SAME(al_spawn(&task), -EINVAL);
    SAME(unlink(inside), 0);
    SAME(spawn_use(fills, first, own, AL_DIR_OUT), 0);
    SAME(spawn_use(fills, first, inside, AL_OUT), -EINVAL);
    CHECK(strstr(message_last, "lie in one another") != NULL);
    SAME(al_taskwait(), 0);
    /* A file in the place of a directory, and the other way round. */
    SAME(spawn_use(makes_a_file, first, own_path(4), AL_DIR_OUT), 0);
    SAME(al_taskwait(), -EIO);
    CHECK(strstr(message_last, "a file, and has it as a directory") != NULL);
    SAME(spawn_use(makes_a_folder, NULL, own_path(5), AL_OUT), 0);
    SAME(al_taskwait(), -EIO);
    CHECK(strstr(message_last, "a directory, and has it as a file") != NULL);
    al_set_message_hook(NULL, NULL);
    SAME(al_stop(), 0);
    CHECK(has_parts(own, first, first));
    CHECK(access(own_path(4), F_OK) != 0 && access(own_path(5), F_OK) != 0);
    remove_parts(own);
    check_nothing_is_left();
}

static void fills_one(void *argument)
{
    write_place(0, argument, BYTES);
}

static void reads_scratch(void *argument)
{
    CHECK(path_has_bytes(al_path(0), argument, BYTES));
}

static void fails_to_write(void *argument)
{
    fills_one(argument);
    SAME(al_fail(EBADF), 0);
}

static void scratch_files_are_never_brought_home(void)
{
    char path[PATH_MAX], folder[PATH_MAX], other[PATH_MAX];
    SAME(al_scratch("part.bin", path, sizeof path), -EINVAL);
    start_moving(2, 8, 1, 1);
    al_set_message_hook(keep_message, NULL);
    SAME(al_scratch("a/b", path, sizeof path), -EINVAL);
    SAME(al_scratch("..", path, sizeof path), -EINVAL);
    SAME(al_scratch("", path, sizeof path), -EINVAL);
    SAME(al_scratch("part.bin", NULL, 10), -EINVAL);
    al_set_message_hook(NULL, NULL);
    SAME(al_scratch("part.bin", path, 5), -ENAMETOOLONG);
    SAME(al_scratch("part.bin", path, sizeof path), 0);
    SAME(al_scratch(NULL, folder, sizeof folder), 0);
    SAME(al_scratch(NULL, other, strlen(folder) + 1), 0);
    CHECK(strcmp(folder, other) != 0 && strcmp(path + strlen(path) - 8, "part.bin") == 0);
    SAME(spawn_use(fills_on_fast, first, folder, AL_DIR_OUT), 0);
    SAME(spawn_use(reads_all, first, folder, AL_DIR_IN), 0);
    for (int round = 0; round < 20; round++) {
        SAME(al_scratch("round", other, sizeof other), 0);
        SAME(spawn_use(fills_one, round % 2 ? first : second, other, AL_OUT), 0);
        SAME(spawn_use(reads_scratch, round % 2 ? first : second, other, AL_IN), 0);
        SAME(al_forget(other), 0);
        SAME(al_forget(other), 0);
    }
    /* One that no task uses, and one whose task failed. */
    SAME(al_forget(path), 0);
    al_set_message_hook(keep_message, NULL);
    SAME(al_scratch("failed", other, sizeof other), 0);
    SAME(spawn_use(fails_to_write, first, other, AL_OUT), 0);
    SAME(al_forget(other), 0);
    SAME(al_taskwait(), -EBADF);
    al_set_message_hook(NULL, NULL);
    SAME(spawn_use(reads_all, first, folder, AL_DIR_IN), 0);
    SAME(al_stop(), 0);
    check_nothing_is_left();
}

int main(void)
{
    fill(first, BYTES, 0, 1);
    fill(second, BYTES, 0, 2);
    describe_places(1000);
    for (int moves = 0; moves < 4; moves++) {
        a_directory_is_filled_read_changed_and_brought_home(moves & 1, moves & 2);
    }
    failures_leave_no_half_directory();
    what_cannot_be_is_told();
    scratch_files_are_never_brought_home();
    return 0;
}
