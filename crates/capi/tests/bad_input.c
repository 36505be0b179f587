/* What al_spawn refuses: -EINVAL, a message that says what is wrong, and nothing has changed. */
#include "check.h"

static int data[8];
static _Atomic int ran;

static void counts(void *argument)
{
    (void)argument;
    atomic_fetch_add(&ran, 1);
}

static void never_dropped(void *argument)
{
    (void)argument;
    CHECK(!"what was refused is not dropped");
}

static void refused(const al_task *task, const char *word)
{
    int before = messages_count;
    SAME(al_spawn(task), -EINVAL);
    SAME(messages_count, before + 1);
    if (strstr(message_last, word) == NULL) {
        fprintf(stderr, "\"%s\" is not in \"%s\"\n", word, message_last);
        _exit(1);
    }
}

static void refused_uses(const al_access *uses, size_t count, const char *word)
{
    al_task task = {.body = counts, .accesses = uses, .accesses_count = count};
    task.drop = never_dropped;
    refused(&task, word);
}

static void descriptions(void)
{
    al_task no_body = {.body = NULL};
    al_task no_accesses = {.body = counts, .accesses_count = 2};
    al_task no_argument = {.body = counts, .argument_bytes = 8};
    refused(NULL, "no task");
    refused(&no_body, "body");
    refused(&no_accesses, "accesses is NULL");
    refused(&no_argument, "argument is NULL");
}

static void single_accesses(void)
{
    al_span spans[9] = {{0, 4}, {0, 4}, {0, 4}, {0, 4}, {0, 4}, {0, 4}, {0, 4}, {0, 4}, {0, 4}};
    al_span empty[2] = {{0, 4}, {3, 3}};
    al_span reversed[2] = {{4, 0}, {0, 4}};
    al_access null = al_in(NULL);
    al_access nothing = al_range(AL_IN, data, 4, 0);
    al_access negative = al_range(AL_OUT, data, 4, (uint64_t)-2);
    al_access deep = al_box(AL_IN, data, 9, spans);
    al_access no_spans = al_box(AL_IN, data, 2, NULL);
    al_access empty_box = al_box(AL_IN, data, 2, empty);
    al_access reversed_box = al_box(AL_IN, data, 2, reversed);
    al_access sideways = al_whole((al_direction)7, data);
    refused_uses(&null, 1, "base is NULL");
    refused_uses(&nothing, 1, "empty or reversed");
    refused_uses(&negative, 1, "empty or reversed");
    refused_uses(&deep, 1, "AL_DIMENSIONS_MAX");
    refused_uses(&no_spans, 1, "spans is NULL");
    refused_uses(&empty_box, 1, "empty or reversed");
    refused_uses(&reversed_box, 1, "empty or reversed");
    refused_uses(&sideways, 1, "direction");
}

static void accesses_together(void)
{
    al_span spans[2] = {{0, 4}, {0, 4}};
    al_access twice[2] = {al_in(data), al_out(data)};
    al_access overlap[2] = {al_range(AL_INOUT, data, 0, 8), al_range(AL_IN, data, 4, 8)};
    al_access apart[2] = {al_range(AL_INOUT, &data[1], 0, 8), al_range(AL_INOUT, &data[1], 8, 8)};
    al_access readers[2] = {al_in(&data[2]), al_in(&data[2])};
    al_access range = al_range(AL_IN, &data[3], 0, 8);
    al_access box = al_box(AL_IN, &data[3], 2, spans);
    al_access mixed[2] = {al_range(AL_IN, &data[4], 0, 8), al_box(AL_IN, &data[4], 2, spans)};
    refused_uses(twice, 2, "overlap");
    refused_uses(overlap, 2, "overlap");
    refused_uses(mixed, 2, "dimensions");
    spawn_whole(counts, NULL, apart, 2);
    spawn_whole(counts, NULL, readers, 2);
    spawn_whole(counts, NULL, &range, 1);
    refused_uses(&box, 1, "dimensions");
    SAME(al_taskwait(), 0);
    SAME(ran, 3);
}

static void refused_in_a_task(void *argument)
{
    al_access null = al_in(NULL);
    (void)argument;
    refused_uses(&null, 1, "base is NULL");
    SAME(al_taskwait(), 0);
    atomic_fetch_add(&ran, 1);
}

int main(void)
{
    al_task task = {.body = counts};
    al_set_message_hook(keep_message, NULL);
    refused(&task, "does not run");
    start_workers(2);
    descriptions();
    single_accesses();
    accesses_together();
    spawn(refused_in_a_task, NULL);
    SAME(al_taskwait(), 0);
    SAME(ran, 4);
    SAME(al_wait_on(NULL), -EINVAL);
    SAME(al_stop(), 0);
    refused(&task, "does not run");
    SAME(ran, 4);
    return 0;
}
