/* Files on two storage layers: tasks name files, and write them where there is room; al_stop brings
 * each to its own path. The layers are two folders here; with the name of a storage description and
 * a folder of its slowest layer as arguments, they are real.
 *
 *     cc layers.c $(pkg-config --cflags --libs alongside) && ./a.out [storage.toml folder]
 */
#define _GNU_SOURCE
#include <alongside.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 8, NUMBERS = 50000, BYTES = NUMBERS * sizeof(int) };

static _Atomic int on_first;

/* The numbers of a file: written whole, at the place that the runtime chose. */
static void save(void *argument)
{
    int number = *(int *)argument, *numbers = malloc(BYTES);
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = number + i;
    }
    int file = open(al_path(0), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t written = file < 0 ? -errno : al_pwrite(file, numbers, BYTES, 0);
    if (written != (ssize_t)BYTES) {
        al_fail(written < 0 ? (int)-written : ENOSPC); /* then another layer may take it */
    }
    on_first += strcmp(al_layer(), "fast") == 0;
    close(file);
    free(numbers);
}

/* The sum of a file, after the task that writes it, from where it is best read. */
static void sum(void *argument)
{
    long long *total = *(long long **)argument;
    int *numbers = malloc(BYTES), file = open(al_path(0), O_RDONLY);
    if (al_pread(file, numbers, BYTES, 0) == (ssize_t)BYTES) {
        for (int i = 0; i < NUMBERS; i++) {
            *total += numbers[i];
        }
    }
    close(file);
    free(numbers);
}

static void spawn(al_body body, const char *name, const void *argument, size_t bytes, al_file use)
{
    al_io asked = {.size = BYTES, .files = &use, .files_count = 1};
    al_task task = {.body = body, .name = name, .io = &asked};
    task.argument = (void *)argument;
    task.argument_bytes = bytes;
    if (al_spawn(&task) != 0) {
        exit(1);
    }
}

/* Two folders as layers; half of the files fit into the first. */
static const char *describe(char *folder)
{
    static char file[64];
    char fast[64];
    snprintf(fast, sizeof fast, "%s/fast", folder);
    snprintf(file, sizeof file, "%s/storage.toml", folder);
    FILE *text = mkdir(fast, 0700) == 0 ? fopen(file, "w") : NULL;
    if (text == NULL) {
        exit(1);
    }
    fprintf(text,
            "[[layer]]\nname = \"fast\"\npath = \"fast\"\nbandwidth = \"1GB/s\"\n"
            "capacity = \"%d\"\n[[layer]]\nname = \"slow\"\npath = \".\"\nbandwidth = \"50MB/s\"\n",
            (int)BYTES * FILES / 2);
    fclose(text);
    return file;
}

int main(int count, char **words)
{
    char own_folder[] = "layers-XXXXXX", path[FILES][256];
    char *folder = count > 2 ? words[2] : mkdtemp(own_folder);
    al_options options;
    al_options_init(&options);
    options.storage = count > 2 ? words[1] : describe(folder);
    long long sums[FILES] = {0};
    if (al_start(&options) != 0) {
        return 1;
    }
    for (int i = 0; i < FILES; i++) {
        long long *total = &sums[i];
        snprintf(path[i], sizeof path[i], "%s/numbers-%d", folder, i);
        spawn(save, "save", &i, sizeof i, (al_file){path[i], AL_OUT});
        spawn(sum, "sum", &total, sizeof total, (al_file){path[i], AL_IN});
    }
    int is_right = al_taskwait() == 0;
    printf("%d of %d files were written on the layer \"fast\"\n", on_first, FILES);
    is_right = al_stop() == 0 && is_right;
    for (int i = 0; i < FILES; i++) {
        struct stat found;
        is_right = is_right && stat(path[i], &found) == 0 && found.st_size == (off_t)BYTES &&
                   sums[i] == (long long)NUMBERS * i + (long long)NUMBERS * (NUMBERS - 1) / 2;
        unlink(path[i]);
    }
    if (count <= 2) {
        char fast[64];
        snprintf(fast, sizeof fast, "%s/fast", folder);
        unlink(options.storage);
        rmdir(fast);
        rmdir(folder);
    }
    printf(is_right ? "right\n" : "wrong\n");
    return !is_right;
}
