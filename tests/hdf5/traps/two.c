/* Two HDF5 libraries in one process, linked by nobody: `two LIBRARY LIBRARY`. Each gets its own
 * connector, and knows nothing of the other's files. */

#include <dlfcn.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 18 };

/* HDF5's macros for these call the library, and there is none to be linked to. */
enum { READ_ONLY = 0, TRUNCATE = 2 };

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "line %d: this does not hold: %s\n", __LINE__, #condition);        \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* The functions of one library. */
struct library {
    herr_t (*open)(void);
    hid_t (*create_file)(const char *, unsigned, hid_t, hid_t);
    hid_t (*open_file)(const char *, unsigned, hid_t);
    herr_t (*close_file)(hid_t);
    hid_t (*create_space)(int, const hsize_t *, const hsize_t *);
    hid_t (*create_dataset)(hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t);
    hid_t (*open_dataset)(hid_t, const char *, hid_t);
    herr_t (*close_dataset)(hid_t);
    herr_t (*write)(hid_t, hid_t, hid_t, hid_t, hid_t, const void *);
    herr_t (*read)(hid_t, hid_t, hid_t, hid_t, hid_t, void *);
    htri_t (*is_registered)(const char *);
    herr_t (*close)(void);
    hid_t native_int;
};

static struct library load(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    struct library library;
    *(void **)&library.open = dlsym(handle, "H5open");
    *(void **)&library.create_file = dlsym(handle, "H5Fcreate");
    *(void **)&library.open_file = dlsym(handle, "H5Fopen");
    *(void **)&library.close_file = dlsym(handle, "H5Fclose");
    *(void **)&library.create_space = dlsym(handle, "H5Screate_simple");
    *(void **)&library.create_dataset = dlsym(handle, "H5Dcreate2");
    *(void **)&library.open_dataset = dlsym(handle, "H5Dopen2");
    *(void **)&library.close_dataset = dlsym(handle, "H5Dclose");
    *(void **)&library.write = dlsym(handle, "H5Dwrite");
    *(void **)&library.read = dlsym(handle, "H5Dread");
    *(void **)&library.is_registered = dlsym(handle, "H5VLis_connector_registered_by_name");
    *(void **)&library.close = dlsym(handle, "H5close");
    CHECK(library.open() >= 0);
    library.native_int = *(hid_t *)dlsym(handle, "H5T_NATIVE_INT_g");
    return library;
}

static hid_t begin(const struct library *library, const char *name, int value) {
    static int values[COUNT];
    hsize_t count = COUNT;
    for (int at = 0; at < COUNT; at++)
        values[at] = value + at;
    hid_t file = library->create_file(name, TRUNCATE, 0, 0);
    CHECK(file >= 0);
    hid_t space = library->create_space(1, &count, NULL);
    hid_t dataset = library->create_dataset(file, "a", library->native_int, space, 0, 0, 0);
    CHECK(dataset >= 0);
    CHECK(library->write(dataset, library->native_int, H5S_ALL, H5S_ALL, 0, values) >= 0);
    CHECK(library->close_dataset(dataset) >= 0);
    return file;
}

static void look(const struct library *library, const char *name, int value) {
    static int found[COUNT];
    hid_t file = library->open_file(name, READ_ONLY, 0);
    hid_t dataset = library->open_dataset(file, "a", 0);
    CHECK(library->read(dataset, library->native_int, H5S_ALL, H5S_ALL, 0, found) >= 0);
    for (int at = 0; at < COUNT; at++)
        CHECK(found[at] == value + at);
    CHECK(library->close_dataset(dataset) >= 0 && library->close_file(file) >= 0);
}

int main(int count, char **words) {
    CHECK(count == 3);
    struct library one = load(words[1]), other = load(words[2]);
    CHECK(one.write != other.write);
    CHECK(one.is_registered("alongside") > 0 && other.is_registered("alongside") > 0);
    hid_t ones = begin(&one, "one.h5", 100), others = begin(&other, "other.h5", 200);
    CHECK(one.close_file(ones) >= 0);
    look(&other, "one.h5", 100);
    CHECK(one.close() >= 0);
    hid_t again = begin(&other, "again.h5", 300);
    CHECK(other.close_file(others) >= 0 && other.close_file(again) >= 0);
    CHECK(one.open() >= 0);
    look(&one, "other.h5", 200);
    look(&one, "again.h5", 300);
    return 0;
}
