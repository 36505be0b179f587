/* I/O tasks run while their layer has a grant for them, on as few workers as there are. */
#include "layers.h"

#include <limits.h>
#include <pthread.h>

enum { TASKS = 12 };

static const char *const TWO_WAYS = "[[layer]]\nname = \"disk\"\npath = \".\"\n"
                                    "read_bandwidth = \"100MB/s\"\n"
                                    "write_bandwidth = \"50MB/s\"\n"
                                    "bandwidth = \"125MB/s\"\n";
static const char *const STORAGE = "[[layer]]\nname = \"fast\"\npath = \".\"\n"
                                   "bandwidth = \"100MB/s\"\ncapacity = \"1GB\"\n"
                                   "[[layer]]\nname = \"slow\"\npath = \"..\"\n"
                                   "bandwidth = \"50MB/s\"\n";

/* Tasks that are inside, in the order in which they came. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static al_task_id came[TASKS];
static _Atomic int came_count;
static _Atomic int inside;
static char datum;

static void come(void)
{
    atomic_fetch_add(&inside, 1);
    pthread_mutex_lock(&lock);
    came[came_count] = al_current_task();
    came_count++;
    pthread_mutex_unlock(&lock);
}

static void comes_and_pauses(void *argument)
{
    (void)argument;
    come();
    SAME(al_pause(), 0);
    atomic_fetch_sub(&inside, 1);
}

static void lets_go_on(al_task_id task)
{
    SAME(al_resume(task), 0);
}

/* The body is over at once; the task, and what it holds, is not. */
static void comes_and_returns(void *argument)
{
    (void)argument;
    SAME(al_events_add(1), 0);
    come();
}

static void lets_end(al_task_id task)
{
    atomic_fetch_sub(&inside, 1);
    SAME(al_events_fulfil(task, 1), 0);
}

static void nothing(void *argument)
{
    (void)argument;
}

/* Returns when so many I/O tasks have gone and so many others have come, and more would have if they
 * might: the only worker takes them first. It waits before it spawns: while this thread does that,
 * the worker leaves it to this thread to say which task is next. */
static void let_all_begin(int gone, int expected)
{
    al_access use = al_out(&datum);
    while (came_count < gone + expected || came_count - inside < gone) {
        sched_yield();
    }
    spawn_whole(nothing, NULL, &use, 1);
    SAME(al_wait_on(&datum), 0);
}

/* Of twelve tasks exactly so many are inside at once, from the first to the last. */
static void come_and_go(al_io asked, int most, al_body comes, void (*goes)(al_task_id))
{
    came_count = 0;
    for (int i = 0; i < TASKS; i++) {
        SAME(spawn_io("comes", comes, NULL, asked), 0);
    }
    for (int over = 0; over < TASKS; over++) {
        int left = TASKS - over, expected = left < most ? left : most;
        let_all_begin(over, expected);
        SAME(inside, expected);
        goes(came[over]);
    }
    SAME(al_taskwait(), 0);
    SAME(inside, 0);
}

static void run_at_most(al_io asked, int most)
{
    come_and_go(asked, most, comes_and_pauses, lets_go_on);
    come_and_go(asked, most, comes_and_returns, lets_end);
}

/* Four that only read fit, and two of whom it is not known. */
static void reading_is_granted_apart(void)
{
    char path[64];
    snprintf(path, sizeof path, "input-%d", (int)getpid());
    int input = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(input >= 0 && close(input) == 0);
    al_file read = {path, AL_IN};
    describe(TWO_WAYS);
    start_on_layers(1, 8, 0);
    run_at_most((al_io){.bandwidth = "25MB/s", .files = &read, .files_count = 1}, 4);
    run_at_most((al_io){.bandwidth = "25MB/s"}, 2);
    al_set_message_hook(keep_message, NULL);
    SAME(spawn_io("never", nothing, NULL, (al_io){.bandwidth = "51MB/s"}), -EINVAL);
    al_set_message_hook(NULL, NULL);
    SAME(al_stop(), 0);
    SAME(unlink(path), 0);
}

static void looks_where_it_is(void *argument)
{
    const char **expected = argument;
    char here[PATH_MAX];
    CHECK(al_layer() != NULL && strcmp(al_layer(), expected[0]) == 0);
    CHECK(realpath(al_layer_path(), here) != NULL && strcmp(here, expected[1]) == 0);
}

static void tasks_are_told_their_layer(void)
{
    char here[PATH_MAX], above[PATH_MAX];
    CHECK(realpath(".", here) != NULL && realpath("..", above) != NULL);
    const char *fast[] = {"fast", here}, *slow[] = {"slow", above};
    al_io any = {0}, named = {.layer = "slow"}, large = {.size = 2000000000};
    SAME(spawn_io(NULL, looks_where_it_is, fast, any), 0);
    SAME(spawn_io(NULL, looks_where_it_is, slow, named), 0);
    SAME(spawn_io(NULL, looks_where_it_is, slow, large), 0);
    SAME(al_taskwait(), 0);
    CHECK(al_layer() == NULL && al_layer_path() == NULL);
}

static void is_in_no_io_task(void *argument)
{
    (void)argument;
    CHECK(al_layer() == NULL && al_layer_path() == NULL);
}

static void without_a_description_there_is_one_layer(void)
{
    char here[PATH_MAX];
    const char *expected[] = {"default", here};
    CHECK(realpath(".", here) != NULL);
    SAME(al_start(NULL), 0);
    al_io large = {.size = 1000000000000}, slow = {.bandwidth = "1kB/s"};
    al_io fast = {.bandwidth = "1000TB/s"};
    SAME(spawn_io(NULL, looks_where_it_is, expected, large), 0);
    /* It is measured now: nothing is as fast as this. */
    SAME(spawn_io(NULL, looks_where_it_is, expected, slow), 0);
    al_set_message_hook(keep_message, NULL);
    SAME(spawn_io(NULL, looks_where_it_is, expected, fast), -EINVAL);
    al_set_message_hook(NULL, NULL);
    SAME(al_stop(), 0);
}

static _Atomic int written;
static int file;

static void writes_with_a_child(void *argument)
{
    int now = atomic_fetch_add(&inside, 1) + 1;
    CHECK(now <= 10);
    spawn(nothing, NULL);
    SAME(al_pwrite(file, &now, sizeof now, (off_t)(uintptr_t)argument), sizeof now);
    atomic_fetch_add(&written, 1);
    atomic_fetch_sub(&inside, 1);
}

static void spawns_writers(void *argument)
{
    for (int i = 0; i < 500; i++) {
        al_io asked = {.bandwidth = "10MB/s", .layer = "fast"};
        SAME(spawn_io("writes", writes_with_a_child, argument, asked), 0);
        spawn(nothing, NULL);
    }
}

/* Several workers, tasks of both kinds, parents and children. */
static void many_at_once(void)
{
    file = scratch(0);
    CHECK(file >= 0);
    start_on_layers(4, 16, 0);
    for (uintptr_t i = 0; i < 4; i++) {
        spawn(spawns_writers, (void *)(i * 8));
    }
    SAME(al_stop(), 0);
    SAME(written, 2000);
}

int main(void)
{
    describe(STORAGE);
    start_on_layers(1, 8, 0);
    run_at_most((al_io){.bandwidth = "25MB/s", .layer = "fast"}, 4);
    run_at_most((al_io){.bandwidth = "100MB/s"}, 1);
    run_at_most((al_io){.bandwidth = "50MB/s"}, 3);
    run_at_most((al_io){.size = 400000000, .layer = "fast"}, 2);
    run_at_most((al_io){0}, 8);
    tasks_are_told_their_layer();
    spawn(is_in_no_io_task, NULL);
    SAME(al_stop(), 0);
    many_at_once();
    without_a_description_there_is_one_layer();
    reading_is_granted_apart();
    return 0;
}
