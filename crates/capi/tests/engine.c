/* Which engine runs, and why: what was asked for, or threads where io_uring is forbidden. The
 * environment names what is expected in ALONGSIDE_EXPECTED. */
#include "check.h"

int main(void)
{
    const char *expected = getenv("ALONGSIDE_EXPECTED");
    al_options options;
    limit_time();
    SAME(al_start(NULL), 0);
    printf("%s\n", al_engine());
    if (expected != NULL) {
        CHECK(strncmp(al_engine(), expected, strlen(expected)) == 0);
    }
    SAME(al_stop(), 0);
    al_options_init(&options);
    options.engine = "threads";
    SAME(al_start(&options), 0);
    CHECK(strncmp(al_engine(), "threads", 7) == 0);
    SAME(al_stop(), 0);
    return 0;
}
