/* Two layers in folders of this process, and files on them. */
#ifndef PLACES_H
#define PLACES_H

#include "layers.h"

#include <dirent.h>
#include <limits.h>

/* The folders of the layers; the files' own paths are on the slow one. */
static char fast_folder[64], slow_folder[64], fast_real[PATH_MAX];

static void remove_folder(const char *folder)
{
    DIR *all = opendir(folder);
    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        if (entry->d_name[0] != '.') {
            char path[PATH_MAX];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            unlink(path);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
    rmdir(folder);
}

static void remove_folders(void)
{
    remove_folder(fast_folder);
    remove_folder(slow_folder);
}

/* Describes the folders: so many bytes fit on the fast one, which has these keys besides. */
static void describe_folders(unsigned capacity, const char *keys)
{
    char text[512];
    snprintf(text, sizeof text,
             "[[layer]]\nname = \"fast\"\npath = \"%s\"\nbandwidth = \"1GB/s\"\n"
             "capacity = \"%ukB\"\n%s[[layer]]\nname = \"slow\"\npath = \"%s\"\n"
             "bandwidth = \"100MB/s\"\n",
             fast_folder, capacity, keys, slow_folder);
    describe(text);
}

/* Makes the folders, and describes them. */
__attribute__((unused)) static void describe_places(unsigned capacity)
{
    snprintf(fast_folder, sizeof fast_folder, "fast-%d", (int)getpid());
    snprintf(slow_folder, sizeof slow_folder, "slow-%d", (int)getpid());
    SAME(mkdir(fast_folder, 0700), 0);
    SAME(mkdir(slow_folder, 0700), 0);
    atexit(remove_folders);
    CHECK(realpath(fast_folder, fast_real) != NULL);
    describe_folders(capacity, "");
}

enum { FILES_MAX = 16 };

/* The own path of a file of this number. */
__attribute__((unused)) static const char *own_path(int number)
{
    static _Thread_local char paths[FILES_MAX][96];
    snprintf(paths[number], sizeof paths[number], "%s/file-%d", slow_folder, number);
    return paths[number];
}

__attribute__((unused)) static int is_on_fast(const char *path)
{
    return strncmp(path, fast_real, strlen(fast_real)) == 0;
}

/* Writes bytes to the place of the calling task's file, whole. */
__attribute__((unused)) static void write_place(size_t file, const unsigned char *bytes,
                                                size_t count)
{
    int place = open(al_path(file), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    CHECK(place >= 0);
    SAME(al_pwrite(place, bytes, count, 0), count);
    SAME(close(place), 0);
}

/* Whether a file has these bytes and no others. */
__attribute__((unused)) static int has_bytes(int file, const unsigned char *bytes, size_t count)
{
    unsigned char *found = malloc(count + 1);
    CHECK(file >= 0 && found != NULL);
    ssize_t length = al_pread(file, found, count + 1, 0);
    int same = length == (ssize_t)count && memcmp(found, bytes, count) == 0;
    free(found);
    SAME(close(file), 0);
    return same;
}

__attribute__((unused)) static int path_has_bytes(const char *path, const unsigned char *bytes,
                                                  size_t count)
{
    return has_bytes(open(path, O_RDONLY | O_CLOEXEC), bytes, count);
}

/* Nothing of the runtime is left: neither its catalog nor its folders on the layers. */
__attribute__((unused)) static void check_nothing_is_left(void)
{
    char path[96], mine[32];
    snprintf(path, sizeof path, "%s/.alongside", fast_folder);
    CHECK(access(path, F_OK) != 0);
    snprintf(path, sizeof path, "%s/.alongside", slow_folder);
    CHECK(access(path, F_OK) != 0);
    snprintf(mine, sizeof mine, "-%d", (int)getpid());
    DIR *all = opendir(".alongside");
    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        size_t length = strlen(entry->d_name), tail = strlen(mine);
        CHECK(length < tail || strcmp(entry->d_name + length - tail, mine) != 0);
    }
    if (all != NULL) {
        closedir(all);
    }
}

#endif
