/* Storage descriptions for test programs, and what tuning says of them. */
#ifndef LAYERS_H
#define LAYERS_H

#include "check.h"

/* Files of this process, by which programs that run at the same time do not meet. */
static char storage_file[64];
static char learned_file[64];

static void remove_files(void)
{
    unlink(storage_file);
    unlink(learned_file);
}

/* Writes a description; the folder of all layers is the current one. */
__attribute__((unused)) static void describe(const char *text)
{
    if (storage_file[0] == '\0') {
        snprintf(storage_file, sizeof storage_file, "storage-%d.toml", (int)getpid());
        snprintf(learned_file, sizeof learned_file, "learned-%d.json", (int)getpid());
        atexit(remove_files);
    }
    FILE *file = fopen(storage_file, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The options for so many workers and I/O executors on the storage that was described. */
__attribute__((unused)) static al_options on_layers(unsigned workers, unsigned io_executors)
{
    al_options options;
    al_options_init(&options);
    options.workers = workers;
    options.io_executors = io_executors;
    options.storage = storage_file;
    return options;
}

__attribute__((unused)) static void start_on_layers(unsigned workers, unsigned io_executors,
                                                    int keeps_learned)
{
    al_options options = on_layers(workers, io_executors);
    limit_time();
    options.learned = keeps_learned ? learned_file : NULL;
    SAME(al_start(&options), 0);
}

/* As `start_on_layers`; files move while no I/O goes on. */
__attribute__((unused)) static void start_moving(unsigned workers, unsigned io_executors, int flush,
                                                 int prefetch)
{
    al_options options = on_layers(workers, io_executors);
    limit_time();
    options.flush = flush;
    options.prefetch = prefetch;
    SAME(al_start(&options), 0);
}

__attribute__((unused)) static int spawn_io(const char *name, al_body body, void *argument,
                                            al_io asked)
{
    al_task task;
    memset(&task, 0, sizeof task);
    task.body = body;
    task.argument = argument;
    task.name = name;
    task.io = &asked;
    return al_spawn(&task);
}

/* What the library says of one name. */
struct tuned {
    const char *function;
    int count;
    al_tuned last;
    char layer[64], mode[16], state[16];
};

__attribute__((unused)) static void keep_tuned(const al_tuned *told, void *data)
{
    struct tuned *tuned = data;
    if (strcmp(told->function, tuned->function) == 0) {
        tuned->count++;
        tuned->last = *told;
        snprintf(tuned->layer, sizeof tuned->layer, "%s", told->layer);
        snprintf(tuned->mode, sizeof tuned->mode, "%s", told->mode);
        snprintf(tuned->state, sizeof tuned->state, "%s", told->state);
    }
}

__attribute__((unused)) static struct tuned tuned_of(const char *function)
{
    struct tuned tuned;
    memset(&tuned, 0, sizeof tuned);
    tuned.function = function;
    CHECK(al_each_tuned(keep_tuned, &tuned) >= tuned.count);
    return tuned;
}

#endif
