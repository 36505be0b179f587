/* Files are moved to their own paths, and copied to a faster layer, while no I/O goes on. */
#include "places.h"

#include <sys/inotify.h>

enum { BYTES = 5000 };

static unsigned char first[BYTES], second[BYTES];

static void writes(void *argument)
{
    write_place(0, argument, BYTES);
}

static void reads(void *argument)
{
    CHECK(path_has_bytes(al_path(0), argument, BYTES));
}

/* Writes where no layer is left that this could be done on. */
static void writes_on_fast(void *argument)
{
    CHECK(is_on_fast(al_path(0)));
    writes(argument);
}

static void writes_on_slow(void *argument)
{
    CHECK(!is_on_fast(al_path(0)));
    writes(argument);
}

static void spawn_sized(al_body body, void *argument, int number, al_direction direction)
{
    al_file file = {own_path(number), direction};
    al_io asked = {.files = &file, .files_count = 1};
    asked.size = direction == AL_IN ? 0 : BYTES;
    SAME(spawn_io("file", body, argument, asked), 0);
}

/* What comes to be in a folder. */
static int watch(const char *folder)
{
    int events = inotify_init1(IN_CLOEXEC);
    CHECK(events >= 0 && inotify_add_watch(events, folder, IN_MOVED_TO | IN_CLOSE_WRITE) >= 0);
    return events;
}

/* Waits until something of this name has come, and closes the watch: what else came is lost. */
static void wait_for(int events, const char *name)
{
    char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    for (;;) {
        ssize_t length = read(events, buffer, sizeof buffer);
        CHECK(length > 0);
        for (char *at = buffer; at < buffer + length;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            const char *tail = strstr(event->name, name);
            if (event->len > 0 && tail != NULL && strcmp(tail, name) == 0) {
                SAME(close(events), 0);
                return;
            }
            at += sizeof *event + event->len;
        }
    }
}

/* Two files fit on the fast layer. What nobody uses any more leaves it, and the next has room. */
static void a_flush_makes_room_for_what_comes_next(void)
{
    int homes[] = {watch(slow_folder), watch(slow_folder)};
    start_moving(2, 8, 1, 0);
    spawn_sized(writes_on_fast, first, 0, AL_OUT);
    spawn_sized(writes_on_fast, second, 1, AL_OUT);
    SAME(al_taskwait(), 0);
    wait_for(homes[0], "file-0");
    wait_for(homes[1], "file-1");
    CHECK(path_has_bytes(own_path(0), first, BYTES));
    /* They are there before the scheduler knows; a task that reads them comes later. */
    SAME(al_persist(own_path(0)), 0);
    SAME(al_persist(own_path(1)), 0);
    spawn_sized(writes_on_fast, first, 2, AL_OUT);
    spawn_sized(writes_on_fast, second, 3, AL_OUT);
    spawn_sized(reads, first, 0, AL_IN);
    spawn_sized(reads, second, 3, AL_IN);
    SAME(al_stop(), 0);
    for (int number = 0; number < 4; number++) {
        CHECK(path_has_bytes(own_path(number), number % 2 ? second : first, BYTES));
    }
    check_nothing_is_left();
}

/* Without, they stay, and the third file has to go to the slow layer. */
static void without_a_flush_files_stay(void)
{
    start_moving(2, 8, 0, 0);
    spawn_sized(writes_on_fast, first, 4, AL_OUT);
    spawn_sized(writes_on_fast, first, 5, AL_OUT);
    SAME(al_taskwait(), 0);
    spawn_sized(writes_on_slow, first, 6, AL_OUT);
    SAME(al_taskwait(), 0);
    CHECK(access(own_path(4), F_OK) != 0);
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(own_path(4), first, BYTES));
    check_nothing_is_left();
}

static void fails(void *argument)
{
    writes(argument);
    SAME(al_fail(EBADF), 0);
}

/* What was there before a failure takes up its room once. */
static void a_failure_takes_no_room(void)
{
    start_moving(2, 8, 0, 0);
    spawn_sized(writes_on_fast, first, 7, AL_OUT);
    SAME(al_taskwait(), 0);
    al_set_message_hook(keep_message, NULL);
    spawn_sized(fails, second, 8, AL_OUT);
    SAME(al_taskwait(), -EBADF);
    al_set_message_hook(NULL, NULL);
    spawn_sized(writes_on_fast, second, 8, AL_OUT);
    spawn_sized(reads, first, 7, AL_IN);
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(own_path(7), first, BYTES));
    CHECK(path_has_bytes(own_path(8), second, BYTES));
    check_nothing_is_left();
}

/* The own path cannot be made: the file stays, is read, and comes home when the way is free. */
static void a_move_that_fails_leaves_the_file(void)
{
    char above[128], path[160];
    snprintf(above, sizeof above, "%s/above", slow_folder);
    snprintf(path, sizeof path, "%s/file", above);
    int in_the_way = open(above, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(in_the_way >= 0 && close(in_the_way) == 0);
    al_file file = {path, AL_OUT}, again = {path, AL_IN};
    start_moving(2, 8, 1, 1);
    SAME(spawn_io("file", writes_on_fast, first, (al_io){.files = &file, .files_count = 1}), 0);
    SAME(al_taskwait(), 0);
    SAME(spawn_io("file", reads, first, (al_io){.files = &again, .files_count = 1}), 0);
    SAME(al_taskwait(), 0);
    SAME(unlink(above), 0);
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(path, first, BYTES));
    CHECK(unlink(path) == 0 && rmdir(above) == 0);
    check_nothing_is_left();
}

static ATOMIC_INT found_on_fast;
static al_task_id holder;

static void looks(void *argument)
{
    found_on_fast = is_on_fast(al_path(0));
    reads(argument);
}

static void holds(void *argument)
{
    (void)argument;
    SAME(al_pause(), 0);
}

static void begins(void *argument)
{
    holder = al_current_task();
    SAME(al_release(0), 0);
    holds(argument);
}

static void nothing(void *argument)
{
    (void)argument;
}

/* Waits until `begins`, which lets go of this first, is known as the holder. */
static void wait_until_begun(char *began)
{
    char seen;
    al_access sees[] = {al_in(began), al_out(&seen)};
    spawn_whole(nothing, NULL, sees, 2);
    SAME(al_wait_on(&seen), 0);
}

/* The folder of the runtime on the fast layer. */
static void fast_session(char *path, size_t bytes)
{
    char above[96];
    snprintf(above, sizeof above, "%s/.alongside", fast_folder);
    DIR *all = opendir(above);
    CHECK(all != NULL);
    path[0] = '\0';
    for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(path, bytes, "%s/%s", above, entry->d_name);
        }
    }
    closedir(all);
    CHECK(path[0] != '\0');
}

/* A task that reads a file of the slow layer waits only for one that runs: the file is copied,
 * whether a task wrote it or it was there before. */
static void what_is_about_to_be_read_is_copied_up(int was_there)
{
    char began, datum, session[512];
    al_file file = {own_path(9), AL_OUT}, again = {own_path(9), AL_IN};
    al_io on_slow = {.files = &file, .files_count = 1, .layer = "slow"};
    al_io reading = {.files = &again, .files_count = 1};
    al_access outs[] = {al_out(&began), al_out(&datum)}, in = al_in(&datum);
    found_on_fast = 0;
    if (was_there) {
        int made = open(own_path(9), O_WRONLY | O_TRUNC | O_CLOEXEC);
        CHECK(made >= 0 && pwrite(made, first, BYTES, 0) == BYTES && close(made) == 0);
    }
    start_moving(2, 8, 0, 1);
    if (!was_there) {
        SAME(spawn_io("file", writes_on_slow, first, on_slow), 0);
    }
    spawn_sized(reads, first, 9, AL_IN);
    SAME(al_taskwait(), 0);
    fast_session(session, sizeof session);
    int copies = watch(session);
    spawn_whole(begins, NULL, outs, 2);
    al_task last = {.body = looks, .argument = first, .io = &reading, .accesses = &in};
    last.accesses_count = 1;
    SAME(al_spawn(&last), 0);
    wait_for(copies, "file-9");
    /* The copy is whole before the scheduler knows of it. */
    while (!found_on_fast) {
        char done;
        al_access out = al_out(&done);
        al_task probe = last;
        probe.accesses = &out;
        SAME(al_spawn(&probe), 0);
        SAME(al_wait_on(&done), 0);
    }
    found_on_fast = 0;
    wait_until_begun(&began);
    SAME(al_resume(holder), 0);
    SAME(al_taskwait(), 0);
    SAME(found_on_fast, 1);
    /* Nobody is left who will read it; a new version is not hidden by the old copy. */
    spawn_sized(writes, second, 9, AL_OUT);
    spawn_sized(reads, second, 9, AL_IN);
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(own_path(9), second, BYTES));
    check_nothing_is_left();
}

/* Two files are more than the high watermark, and one is more than the low one: both leave, though
 * an I/O task runs, and though nobody asked for a flush. */
static void above_a_watermark_files_leave_beside_io(void)
{
    char began;
    int homes[] = {watch(slow_folder), watch(slow_folder)};
    al_access out = al_out(&began);
    al_io nothing_of_a_layer = {0};
    al_task io = {.body = begins, .io = &nothing_of_a_layer, .accesses = &out, .accesses_count = 1};
    describe_folders(12, "high_watermark = \"60%\"\nlow_watermark = \"20%\"\n");
    start_moving(2, 8, 0, 0);
    SAME(al_spawn(&io), 0);
    wait_until_begun(&began);
    spawn_sized(writes_on_fast, first, 10, AL_OUT);
    spawn_sized(writes_on_fast, second, 11, AL_OUT);
    wait_for(homes[0], "file-10");
    wait_for(homes[1], "file-11");
    SAME(al_resume(holder), 0);
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(own_path(10), first, BYTES));
    CHECK(path_has_bytes(own_path(11), second, BYTES));
    check_nothing_is_left();
}

int main(void)
{
    fill(first, BYTES, 0, 1);
    fill(second, BYTES, 0, 2);
    describe_places(12);
    a_flush_makes_room_for_what_comes_next();
    without_a_flush_files_stay();
    a_failure_takes_no_room();
    a_move_that_fails_leaves_the_file();
    what_is_about_to_be_read_is_copied_up(0);
    what_is_about_to_be_read_is_copied_up(1);
    above_a_watermark_files_leave_beside_io();
    return 0;
}
