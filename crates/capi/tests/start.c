/* Starting, stopping, starting again; options that make no sense are refused with words. */
#include "check.h"

static void counts(void *argument)
{
    atomic_fetch_add((_Atomic int *)argument, 1);
    CHECK(al_worker() >= 0 && al_worker() < al_workers());
}

static void tries_to_stop(void *argument)
{
    (void)argument;
    SAME(al_stop(), -EDEADLK);
    SAME(al_start(NULL), -EALREADY);
}

static void refused(const al_options *options, const char *word)
{
    int before = messages_count;
    SAME(al_start(options), -EINVAL);
    SAME(messages_count, before + 1);
    if (strstr(message_last, word) == NULL) {
        fprintf(stderr, "\"%s\" is not in \"%s\"\n", word, message_last);
        _exit(1);
    }
    SAME(al_workers(), 0);
}

static void options_are_checked(void)
{
    al_options options, bad;
    al_options_init(&options);
    SAME(options.size, sizeof options);
    bad = options;
    bad.size = 0;
    refused(&bad, "al_options_init");
    bad = options;
    bad.workers = 1000000;
    refused(&bad, "workers");
    bad = options;
    bad.stack_bytes = 4096;
    refused(&bad, "stack_bytes");
    bad = options;
    bad.stack_bytes = 65537;
    refused(&bad, "stack_bytes");
    bad = options;
    bad.stack_bytes = SIZE_MAX & ~(size_t)4095;
    refused(&bad, "stack_bytes");
    bad = options;
    bad.workers = 4;
    bad.stacks_max = 3;
    refused(&bad, "stacks_max");
    bad = options;
    bad.depth = 1000000;
    refused(&bad, "depth");
    bad = options;
    bad.engine = "paper";
    refused(&bad, "paper");
    bad = options;
    bad.io_policy = "lottery";
    refused(&bad, "lottery");
}

static void nothing_runs(void)
{
    SAME(al_workers(), 0);
    SAME(al_worker(), -1);
    SAME(al_current_task(), 0);
    CHECK(al_engine() == NULL);
    SAME(al_stop(), -EINVAL);
    SAME(al_taskwait(), -EINVAL);
    SAME(al_wait_on(&messages_count), -EINVAL);
    SAME(al_resume(1), -EINVAL);
    SAME(al_events_fulfil(1, 1), -EINVAL);
    SAME(al_events_add(1), -EINVAL);
    SAME(al_pause(), -EINVAL);
}

int main(void)
{
    limit_time();
    al_set_message_hook(keep_message, NULL);
    CHECK(strncmp(al_version(), "0.1", 3) == 0);
    nothing_runs();
    options_are_checked();
    for (unsigned round = 1; round <= 20; round++) {
        _Atomic int count = 0;
        al_options options;
        al_options_init(&options);
        options.workers = 1 + round % 4;
        options.pinned = round % 2;
        SAME(al_start(&options), 0);
        SAME(al_start(NULL), -EALREADY);
        SAME(al_workers(), options.workers);
        SAME(al_worker(), -1);
        CHECK(al_engine() != NULL && strlen(al_engine()) > 0);
        CHECK(al_engine() == al_engine());
        for (int i = 0; i < 100; i++) {
            spawn(counts, &count);
        }
        spawn(tries_to_stop, NULL);
        SAME(al_stop(), 0);
        SAME(count, 100);
        nothing_runs();
    }
    SAME(al_start(NULL), 0);
    CHECK(al_workers() > 0);
    SAME(al_stop(), 0);
    return 0;
}
