/* What is in files, whatever their layout: `content FILE...` prints a sum for each. Names, kinds,
 * extents, attributes and every element go into it; addresses and times do not. */

#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t sum;

static void add(const void *bytes, size_t size) {
    const unsigned char *each = bytes;
    for (size_t at = 0; at < size; at++)
        sum = (sum ^ each[at]) * 0x100000001b3u;
}

static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s cannot be read\n", what);
        H5Eprint2(H5E_DEFAULT, stderr);
        exit(1);
    }
}

static void add_space(hid_t space) {
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, most);
    add(&rank, sizeof rank);
    add(dims, sizeof dims[0] * (size_t)rank);
    add(most, sizeof most[0] * (size_t)rank);
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *unused) {
    (void)info, (void)unused;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), space = H5Aget_space(attribute);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    int *values = calloc((size_t)count, sizeof *values);
    add(name, strlen(name) + 1);
    add_space(space);
    check(H5Aread(attribute, H5T_NATIVE_INT, values) >= 0, name);
    add(values, (size_t)count * sizeof *values);
    free(values);
    return H5Sclose(space), H5Aclose(attribute), 0;
}

static void add_dataset(hid_t dataset, const char *name) {
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    add_space(space);
    if (H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) >= 0, name);
        add(text, text == NULL ? 0 : strlen(text));
        H5free_memory(text);
    } else {
        int *values = calloc((size_t)count, sizeof *values);
        check(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, name);
        add(values, (size_t)count * sizeof *values);
        free(values);
    }
    H5Tclose(type), H5Sclose(space);
}

static herr_t add_object(hid_t file, const char *name, const H5O_info2_t *info, void *unused) {
    (void)unused;
    hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    check(object >= 0, name);
    add(name, strlen(name) + 1);
    add(&info->type, sizeof info->type);
    check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, add_attribute, NULL) >= 0, name);
    if (info->type == H5O_TYPE_DATASET)
        add_dataset(object, name);
    return H5Oclose(object), 0;
}

int main(int count, char **words) {
    for (int at = 1; at < count; at++) {
        hid_t file = H5Fopen(words[at], H5F_ACC_RDONLY, H5P_DEFAULT);
        check(file >= 0, words[at]);
        sum = 0xcbf29ce484222325u;
        check(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, add_object, NULL, H5O_INFO_BASIC) >= 0,
              words[at]);
        printf("%016llx\n", (unsigned long long)sum);
        H5Fclose(file);
    }
    return 0;
}
