/* What makes no sense about storage and I/O tasks is refused, in words that say what and where. */
#include "layers.h"

static const char *const STORAGE = "[[layer]]\nname = \"disk\"\npath = \".\"\n"
                                   "bandwidth = \"100MB/s\"\ncapacity = \"1GB\"\n";

static void says(const char *first, const char *second)
{
    if (strstr(message_last, first) == NULL || strstr(message_last, second) == NULL) {
        fprintf(stderr, "\"%s\" or \"%s\" is not in \"%s\"\n", first, second, message_last);
        _exit(1);
    }
}

static void does_not_start(al_options options, const char *first, const char *second)
{
    int before = messages_count;
    SAME(al_start(&options), -EINVAL);
    SAME(messages_count, before + 1);
    says(first, second);
    SAME(al_workers(), 0);
}

static void files_are_refused_with_their_line(void)
{
    al_options options;
    al_options_init(&options);
    options.storage = "nowhere.toml";
    does_not_start(options, "nowhere.toml", "cannot be read");
    options.storage = storage_file;
    describe("[[layer]]\nname = \"disk\"\npath = \".\"\nbandwith = \"1MB/s\"\n");
    does_not_start(options, storage_file, ":4:1: unknown key \"bandwith\"");
    describe("[[layer]]\nname = \"disk\"\npath = \"nowhere\"\n");
    does_not_start(options, ":3:", "not a folder");
    describe("[[layer]]\nname = \"disk\"\npath = \".\"\nlimit = \"0MB/s\"\n");
    does_not_start(options, ":4:", "more than 0");
    describe(STORAGE);
    options.learned = storage_file;
    does_not_start(options, storage_file, "cannot be read as what was learned");
    options.learned = NULL;
    options.io_executors = 1000000;
    does_not_start(options, "io_executors", "between");
}

static void never_runs(void *argument)
{
    (void)argument;
    CHECK(!"it was refused");
}

static void refused(const char *name, al_io asked, const char *why)
{
    char quoted[64];
    int before = messages_count;
    SAME(spawn_io(name, never_runs, NULL, asked), -EINVAL);
    SAME(messages_count, before + 1);
    snprintf(quoted, sizeof quoted, "\"%s\"", name == NULL ? "" : name);
    says(name == NULL ? "" : quoted, why);
}

static void constraints_are_refused_with_the_task(void)
{
    static const char *const TABLE[][2] = {
        {"0", "more than 0"},
        {"-5MB/s", "negative"},
        {"fast", "not a size"},
        {"20XB/s", "unknown unit"},
        {"", "not a size"},
        {"101MB/s", "no storage layer can ever give 101MB/s"},
        {"automatic", "write \"auto\""},
        {"auto(1MB/s)", "write \"auto\""},
        {"auto(3MB/s,2MB/s,2)", "min is more than max"},
        {"auto(1MB/s,2MB/s,1)", "above 1"},
        {"auto(0,2MB/s,2)", "more than 0"},
        {"auto(1MB/s,101MB/s,2)", "no storage layer can ever give 101MB/s"},
        {"adaptively", "write \"auto\""},
        {"\xff\xff", "UTF-8"},
    };
    for (size_t row = 0; row < sizeof TABLE / sizeof TABLE[0]; row++) {
        refused("save", (al_io){.bandwidth = TABLE[row][0]}, TABLE[row][1]);
    }
    refused("save", (al_io){.size = 1500000000}, "can ever give 1.5GB");
    refused("save", (al_io){.layer = "tape"}, "no layer \"tape\"; the storage has \"disk\"");
    refused(NULL, (al_io){.bandwidth = "auto"}, "no name");
    refused(NULL, (al_io){.bandwidth = "adaptive"}, "no name");
    SAME(spawn_io("save", never_runs, NULL, (al_io){.bandwidth = "0"}), -EINVAL);
    SAME(al_taskwait(), 0);
    SAME(al_each_tuned(NULL, NULL), -EINVAL);
}

static void spawns_within(void *argument)
{
    (void)argument;
    refused("inner", (al_io){.bandwidth = "1MB/s"}, "in an I/O task");
}

static void spawns_a_child_that_does(void *argument)
{
    (void)argument;
    spawns_within(NULL);
    spawn(spawns_within, NULL);
    SAME(al_taskwait(), 0);
}

static void what_was_learned_cannot_be_kept(void)
{
    al_options options;
    al_options_init(&options);
    options.learned = "nowhere/learned.json";
    SAME(al_start(&options), 0);
    int before = messages_count;
    SAME(al_stop(), 0);
    SAME(messages_count, before + 1);
    says("nowhere/learned.json", "cannot be written");
}

int main(void)
{
    al_set_message_hook(keep_message, NULL);
    describe(STORAGE);
    files_are_refused_with_their_line();
    start_on_layers(2, 8, 0);
    constraints_are_refused_with_the_task();
    SAME(spawn_io("outer", spawns_a_child_that_does, NULL, (al_io){.bandwidth = "100MB/s"}), 0);
    SAME(al_stop(), 0);
    what_was_learned_cannot_be_kept();
    return 0;
}
