/* In which order I/O tasks that wait for one layer get it, by the policy that was asked for. */
#include "layers.h"

enum { WAITING = 3 };

static const char *const STORAGE = "[[layer]]\nname = \"disk\"\npath = \".\"\n"
                                   "bandwidth = \"100MB/s\"\n";
/* Each needs more than half of the layer, so that one runs at a time. */
static const char *const BANDWIDTHS[WAITING] = {"60MB/s", "80MB/s", "70MB/s"};

static int began[WAITING], began_count;

static void begins(void *argument)
{
    began[began_count++] = *(int *)argument;
}

static al_task_id holder;

/* Holds the layer until the others wait for it. */
static void holds(void *argument)
{
    (void)argument;
    holder = al_current_task();
    SAME(al_pause(), 0);
}

static void nothing(void *argument)
{
    (void)argument;
}

static void run_in_order(const char *policy, const int expected[WAITING])
{
    static int numbers[WAITING] = {0, 1, 2};
    al_options options;
    char datum;
    al_access use = al_out(&datum);
    al_options_init(&options);
    options.workers = 1;
    options.storage = storage_file;
    options.io_policy = policy;
    SAME(al_start(&options), 0);
    began_count = 0;
    SAME(spawn_io("holds", holds, NULL, (al_io){.bandwidth = "100MB/s"}), 0);
    /* The only worker takes I/O tasks first: it has begun when this is over. */
    spawn_whole(nothing, NULL, &use, 1);
    SAME(al_wait_on(&datum), 0);
    for (int i = 0; i < WAITING; i++) {
        al_io asked = {.bandwidth = BANDWIDTHS[i]};
        SAME(spawn_io("begins", begins, &numbers[i], asked), 0);
    }
    SAME(al_resume(holder), 0);
    SAME(al_stop(), 0);
    SAME(began_count, WAITING);
    for (int i = 0; i < WAITING; i++) {
        SAME(began[i], expected[i]);
    }
}

int main(void)
{
    limit_time();
    describe(STORAGE);
    run_in_order(NULL, (int[]){0, 1, 2});
    run_in_order("fcfs", (int[]){0, 1, 2});
    run_in_order("priority", (int[]){1, 2, 0});
    run_in_order("backfilling", (int[]){1, 2, 0});
    return 0;
}
