/* Files of tasks are written on the layer of the grant, read at their best copy, and brought home. */
#include "places.h"

enum { BYTES = 5000 };

static unsigned char first[BYTES], second[BYTES];

static void writes(void *argument)
{
    CHECK(al_path(0) != NULL && al_path(1) == NULL);
    write_place(0, argument, BYTES);
}

static void writes_on_fast(void *argument)
{
    CHECK(strcmp(al_layer(), "fast") == 0 && is_on_fast(al_path(0)));
    writes(argument);
}

static void reads(void *argument)
{
    CHECK(path_has_bytes(al_path(0), argument, BYTES));
}

static void spawn_file(al_body body, void *argument, int number, al_direction direction)
{
    al_file file = {own_path(number), direction};
    al_io asked = {.files = &file, .files_count = 1};
    SAME(spawn_io("file", body, argument, asked), 0);
}

static void a_file_is_written_on_the_layer_of_the_grant_and_brought_home(void)
{
    struct stat found;
    spawn_file(writes_on_fast, first, 0, AL_OUT);
    spawn_file(reads, first, 0, AL_IN);
    CHECK(has_bytes(al_open(own_path(0)), first, BYTES));
    CHECK(access(own_path(0), F_OK) != 0);
    SAME(al_persist(own_path(0)), 0);
    CHECK(path_has_bytes(own_path(0), first, BYTES));
    SAME(al_persist(own_path(0)), 0);
    spawn_file(reads, first, 0, AL_IN);
    /* The mode is that of the file that it replaces. */
    SAME(chmod(own_path(0), 0604), 0);
    spawn_file(writes, second, 0, AL_OUT);
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(own_path(0), second, BYTES));
    CHECK(stat(own_path(0), &found) == 0 && (found.st_mode & 0777) == 0604);
    check_nothing_is_left();
}

static void a_folder_that_is_missing_is_made(void)
{
    char folder[96], path[128];
    snprintf(folder, sizeof folder, "%s/new", slow_folder);
    snprintf(path, sizeof path, "%s/file", folder);
    al_file file = {path, AL_OUT};
    const char *const layers[] = {"slow", "fast"};
    for (int i = 0; i < 2; i++) {
        al_io asked = {.files = &file, .files_count = 1, .layer = layers[i]};
        start_on_layers(2, 8, 0);
        SAME(spawn_io("new", writes, first, asked), 0);
        SAME(al_stop(), 0);
        CHECK(path_has_bytes(path, first, BYTES));
        CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    }
    check_nothing_is_left();
}

static int runs, dropped, not_run;

static void fails_half_way(void *argument)
{
    write_place(0, argument, BYTES / 2);
    SAME(al_fail(EBADF), 0);
}

static void counts_a_run(void *argument)
{
    (void)argument;
    not_run++;
}

static void counts_a_drop(void *argument)
{
    (void)argument;
    dropped++;
}

static void spawn_dropped(al_body body, void *argument, const al_io *asked, const al_access *use)
{
    al_task task = {.body = body, .argument = argument, .drop = counts_a_drop, .io = asked};
    task.accesses = use;
    task.accesses_count = use != NULL;
    SAME(al_spawn(&task), 0);
}

static void a_task_that_fails_leaves_what_was_there(void)
{
    char datum;
    al_access out = al_out(&datum), in = al_in(&datum);
    al_file writes_one = {own_path(1), AL_OUT}, reads_one = {own_path(1), AL_IN};
    al_io asked_write = {.files = &writes_one, .files_count = 1};
    al_io asked_read = {.files = &reads_one, .files_count = 1};
    start_on_layers(2, 8, 0);
    spawn_file(writes, first, 1, AL_OUT);
    SAME(al_taskwait(), 0);
    al_set_message_hook(keep_message, NULL);
    spawn_dropped(fails_half_way, second, &asked_write, &out);
    spawn_dropped(counts_a_run, NULL, &asked_read, NULL);
    spawn_dropped(counts_a_run, NULL, NULL, &in);
    SAME(al_open(own_path(1)), -ECANCELED);
    SAME(al_persist(own_path(1)), -ECANCELED);
    SAME(al_wait_on(&datum), 0);
    SAME(al_taskwait(), -EBADF);
    SAME(not_run, 0);
    SAME(dropped, 3);
    CHECK(messages_count > 0);
    al_set_message_hook(NULL, NULL);
    /* Told once; then everything can be used again. */
    spawn_file(reads, first, 1, AL_IN);
    spawn_dropped(counts_a_run, NULL, NULL, &in);
    SAME(al_taskwait(), 0);
    SAME(not_run, 1);
    CHECK(has_bytes(al_open(own_path(1)), first, BYTES));
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(own_path(1), first, BYTES));
    check_nothing_is_left();
}

static void has_no_room_on_fast(void *argument)
{
    runs++;
    if (strcmp(al_layer(), "fast") == 0) {
        write_place(0, second, BYTES / 3);
        SAME(al_fail(ENOSPC), 0);
        return;
    }
    CHECK(!is_on_fast(al_path(0)));
    write_place(0, argument, BYTES);
}

static void has_no_room(void *argument)
{
    (void)argument;
    runs++;
    SAME(al_fail(ENOSPC), 0);
}

static void a_full_layer_sends_the_task_on(void)
{
    al_file file = {own_path(2), AL_OUT};
    al_io asked = {.files = &file, .files_count = 1};
    start_on_layers(2, 8, 0);
    dropped = 0;
    spawn_dropped(has_no_room_on_fast, first, &asked, NULL);
    spawn_file(reads, first, 2, AL_IN);
    SAME(al_taskwait(), 0);
    SAME(runs, 2);
    SAME(dropped, 1);
    /* There is no third layer. */
    al_set_message_hook(keep_message, NULL);
    runs = dropped = 0;
    spawn_dropped(has_no_room, second, &asked, NULL);
    SAME(al_taskwait(), -ENOSPC);
    al_set_message_hook(NULL, NULL);
    SAME(runs, 2);
    SAME(dropped, 1);
    spawn_file(reads, first, 2, AL_IN);
    SAME(al_stop(), 0);
    CHECK(path_has_bytes(own_path(2), first, BYTES));
    check_nothing_is_left();
}

static void finds_fast_broken(void *argument)
{
    runs++;
    if (strcmp(al_layer(), "fast") == 0) {
        SAME(al_fail(EIO), 0);
    } else {
        write_place(0, argument, BYTES);
    }
}

static void a_broken_layer_sends_the_task_on(void)
{
    start_on_layers(2, 8, 0);
    runs = 0;
    spawn_file(finds_fast_broken, second, 4, AL_OUT);
    SAME(al_stop(), 0);
    SAME(runs, 2);
    CHECK(path_has_bytes(own_path(4), second, BYTES));
    check_nothing_is_left();
}

static void writes_nothing(void *argument)
{
    (void)argument;
}

static void has_no_files(void *argument)
{
    (void)argument;
    CHECK(al_path(0) == NULL);
    SAME(al_fail(EIO), -EINVAL);
    SAME(al_open(own_path(0)), -EINVAL);
    SAME(al_persist(own_path(0)), -EDEADLK);
    al_file file = {own_path(0), AL_IN};
    al_io asked = {.files = &file, .files_count = 1};
    SAME(spawn_io("child", has_no_files, NULL, asked), -EINVAL);
}

static void what_cannot_be_is_told(void)
{
    al_file missing = {own_path(9), AL_IN}, grouped = {own_path(0), AL_CONCURRENT};
    al_file no_path = {NULL, AL_OUT}, no_name = {"/", AL_OUT}, folder = {slow_folder, AL_IN};
    al_file twice[] = {{own_path(0), AL_OUT}, {own_path(0), AL_IN}};
    SAME(al_open(own_path(0)), -EINVAL);
    start_on_layers(2, 8, 0);
    al_set_message_hook(keep_message, NULL);
    const al_file *wrong[] = {&missing, &grouped, &no_path, &no_name, &folder, NULL};
    for (int i = 0; i < 6; i++) {
        al_io asked = {.files = wrong[i], .files_count = 1};
        messages_count = 0;
        SAME(spawn_io("wrong", writes_nothing, NULL, asked), -EINVAL);
        SAME(messages_count, 1);
        CHECK(strstr(message_last, "file") != NULL);
    }
    al_io both = {.files = twice, .files_count = 2};
    SAME(spawn_io("both", writes_nothing, NULL, both), -EINVAL);
    SAME(al_open(own_path(9)), -ENOENT);
    SAME(al_persist(own_path(9)), -ENOENT);
    SAME(al_fail(EIO), -EINVAL);
    CHECK(al_path(0) == NULL);
    spawn(has_no_files, NULL);
    SAME(al_taskwait(), 0);
    /* A task that does not write what it was to write has failed. */
    spawn_file(writes_nothing, NULL, 9, AL_OUT);
    SAME(al_taskwait(), -EIO);
    CHECK(strstr(message_last, "did not write") != NULL);
    al_io read_missing = {.files = &missing, .files_count = 1};
    SAME(spawn_io("again", writes_nothing, NULL, read_missing), -EINVAL);
    al_set_message_hook(NULL, NULL);
    SAME(al_stop(), 0);
    CHECK(access(own_path(9), F_OK) != 0);
    check_nothing_is_left();
}

static void writes_at_home(void *argument)
{
    char own[PATH_MAX];
    CHECK(realpath(slow_folder, own) != NULL);
    CHECK(strncmp(al_path(0), own, strlen(own)) == 0);
    writes(argument);
}

static void with_one_layer_a_file_is_written_at_its_own_path(void)
{
    SAME(al_start(NULL), 0);
    spawn_file(writes_at_home, second, 3, AL_OUT);
    SAME(al_taskwait(), 0);
    CHECK(path_has_bytes(own_path(3), second, BYTES));
    SAME(al_persist(own_path(3)), 0);
    SAME(al_stop(), 0);
}

int main(void)
{
    fill(first, BYTES, 0, 1);
    fill(second, BYTES, 0, 2);
    describe_places(1000);
    start_on_layers(2, 8, 0);
    a_file_is_written_on_the_layer_of_the_grant_and_brought_home();
    a_folder_that_is_missing_is_made();
    a_task_that_fails_leaves_what_was_there();
    a_full_layer_sends_the_task_on();
    a_broken_layer_sends_the_task_on();
    what_cannot_be_is_told();
    with_one_layer_a_file_is_written_at_its_own_path();
    return 0;
}
