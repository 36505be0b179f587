/* A program that knows only the first options works with a library that has more. */
#include "check.h"

/* al_options as it began. */
struct first {
    size_t size;
    unsigned workers;
    int pinned;
    size_t stack_bytes;
    unsigned stacks_max;
    unsigned depth;
    const char *engine;
};

int main(void)
{
    struct {
        struct first options;
        unsigned char beyond[256];
    } old;
    limit_time();
    al_set_message_hook(keep_message, NULL);
    memset(&old, 0x5a, sizeof old);
    (al_options_init)((al_options *)&old.options);
    SAME(old.options.size, sizeof old.options);
    for (size_t i = 0; i < sizeof old.beyond; i++) {
        SAME(old.beyond[i], 0x5a);
    }
    old.options.workers = 3;
    SAME(al_start((al_options *)&old.options), 0);
    SAME(al_workers(), 3);
    SAME(al_stop(), 0);

    al_options newer;
    al_options_init(&newer);
    newer.size += 8;
    SAME(al_start(&newer), -EINVAL);
    CHECK(strstr(message_last, "newer library") != NULL);
    return 0;
}
