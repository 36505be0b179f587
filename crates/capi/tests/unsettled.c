/* A file that cannot come to its own path when the runtime stops: not a test of its own, but what
 * left_behind.rs looks at afterwards. */
#include "places.h"

enum { BYTES = 30000 };

static unsigned char bytes[BYTES];

static void writes(void *argument)
{
    (void)argument;
    CHECK(is_on_fast(al_path(0)));
    write_place(0, bytes, BYTES);
}

int main(void)
{
    char above[96], path[128];
    const uint64_t number = 77;
    describe_places(1000);
    fill(bytes, BYTES, 0, number);
    memcpy(bytes, &number, sizeof number);
    snprintf(above, sizeof above, "%s/above", slow_folder);
    snprintf(path, sizeof path, "%s/file-0", above);
    start_on_layers(1, 4, 0);
    al_file file = {path, AL_OUT};
    al_io asked = {.files = &file, .files_count = 1};
    SAME(spawn_io("save", writes, NULL, asked), 0);
    SAME(al_taskwait(), 0);
    /* A plain file, where the folder of the path was to be made. */
    int in_the_way = open(above, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(in_the_way >= 0 && close(in_the_way) == 0);
    al_set_message_hook(keep_message, NULL);
    SAME(al_persist(path), -ENOTDIR);
    SAME(al_stop(), -EIO);
    CHECK(strstr(message_last, "alongside recover") != NULL && strstr(message_last, path) != NULL);
    /* Without what `exit` would tidy up. */
    _exit(0);
}
