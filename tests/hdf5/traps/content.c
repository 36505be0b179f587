/* What is in files, whatever their layout: `content FOLDER FILE...` prints a sum for each. Names,
 * kinds, extents, links, types, attributes, every element and what references are to go into it;
 * addresses and times do not. */

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void add_text(const char *text) {
    add(text, strlen(text) + 1);
}

/* The name of what a reference is to. With several hard links to it HDF5 takes the first that it
 * meets, in an order that depends on where things lie in the file: then it leads to the object. */
static void add_name(hid_t object, const char *name) {
    H5O_info2_t info;
    check(object >= 0 && H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0, name);
    add(&info.rc, sizeof info.rc);
    if (info.rc == 1) {
        add_text(name);
    } else {
        hid_t named = H5Oopen(object, name, H5P_DEFAULT);
        H5O_info2_t again;
        int order = 1;
        check(named >= 0 && H5Oget_info3(named, &again, H5O_INFO_BASIC) >= 0, name);
        check(H5Otoken_cmp(object, &info.token, &again.token, &order) >= 0 && order == 0, name);
        H5Oclose(named);
    }
    H5Oclose(object);
}

/* The name of what a reference is to, and of a region which part. */
static void add_reference(H5R_ref_t *reference, const char *name) {
    char text[256] = "";
    H5R_type_t type = H5Rget_type(reference);
    add(&type, sizeof type);
    check(H5Rget_file_name(reference, text, sizeof text) >= 0, name);
    add_text(text);
    check(H5Rget_obj_name(reference, H5P_DEFAULT, text, sizeof text) >= 0, name);
    add_name(H5Ropen_object(reference, H5P_DEFAULT, H5P_DEFAULT), text);
    if (type == H5R_ATTR) {
        check(H5Rget_attr_name(reference, text, sizeof text) >= 0, name);
        add_text(text);
    } else if (type == H5R_DATASET_REGION2) {
        hsize_t first[H5S_MAX_RANK], last[H5S_MAX_RANK];
        hid_t space = H5Ropen_region(reference, H5P_DEFAULT, H5P_DEFAULT);
        hssize_t points = H5Sget_select_npoints(space);
        check(points >= 0 && H5Sget_select_bounds(space, first, last) >= 0, name);
        add(&points, sizeof points);
        add(first, sizeof first[0] * (size_t)H5Sget_simple_extent_ndims(space));
        add(last, sizeof last[0] * (size_t)H5Sget_simple_extent_ndims(space));
        H5Sclose(space);
    }
}

/* The same for one of the kinds of before 1.12. */
static void add_old_reference(hid_t dataset, H5R_type_t kind, const void *reference) {
    char text[256] = "";
    check(H5Rget_name(dataset, kind, reference, text, sizeof text) >= 0, "a reference");
    add_name(H5Rdereference2(dataset, H5P_DEFAULT, kind, reference), text);
    if (kind == H5R_DATASET_REGION) {
        hid_t space = H5Rget_region(dataset, kind, reference);
        hssize_t points = H5Sget_select_npoints(space);
        check(points >= 0, "a region");
        add(&points, sizeof points);
        H5Sclose(space);
    }
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *unused) {
    (void)info, (void)unused;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), space = H5Aget_space(attribute);
    hid_t type = H5Aget_type(attribute);
    bool is_reference = H5Tget_class(type) == H5T_REFERENCE;
    hssize_t count = H5Sget_simple_extent_npoints(space);
    void *values = calloc((size_t)count, sizeof(H5R_ref_t));
    add_text(name);
    add_space(space);
    check(H5Aread(attribute, is_reference ? H5T_STD_REF : H5T_NATIVE_INT, values) >= 0, name);
    if (!is_reference)
        add(values, (size_t)count * sizeof(int));
    else
        for (hssize_t at = 0; at < count; at++) {
            add_reference((H5R_ref_t *)values + at, name);
            H5Rdestroy((H5R_ref_t *)values + at);
        }
    free(values);
    return H5Tclose(type), H5Sclose(space), H5Aclose(attribute), 0;
}

static void add_references(hid_t dataset, hid_t type, hssize_t count, const char *name) {
    H5R_ref_t *values = calloc((size_t)count, sizeof *values);
    bool is_object = H5Tequal(type, H5T_STD_REF_OBJ) > 0;
    bool is_region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
    check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, name);
    if (is_object || is_region)
        add_old_reference(dataset, is_region ? H5R_DATASET_REGION : H5R_OBJECT, values);
    else
        for (hssize_t at = 0; at < count; at++) {
            add_reference(&values[at], name);
            H5Rdestroy(&values[at]);
        }
    free(values);
}

static void add_dataset(hid_t dataset, const char *name) {
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    int is_committed = H5Tcommitted(type);
    add_space(space);
    add(&is_committed, sizeof is_committed);
    if (H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) >= 0, name);
        add(text, text == NULL ? 0 : strlen(text));
        H5free_memory(text);
    } else if (H5Tget_class(type) == H5T_REFERENCE) {
        add_references(dataset, type, count, name);
    } else {
        int *values = calloc((size_t)count, sizeof *values);
        check(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, name);
        add(values, (size_t)count * sizeof *values);
        free(values);
    }
    H5Tclose(type), H5Sclose(space);
}

static void add_type(hid_t type) {
    H5T_class_t class = H5Tget_class(type);
    H5T_order_t order = H5Tget_order(type);
    size_t size = H5Tget_size(type);
    add(&class, sizeof class), add(&order, sizeof order), add(&size, sizeof size);
}

/* Where a link leads that has a name in it. */
static herr_t add_link(hid_t file, const char *name, const H5L_info2_t *info, void *unused) {
    (void)unused;
    add_text(name);
    add(&info->type, sizeof info->type);
    if (info->type != H5L_TYPE_HARD) {
        char *value = calloc(1, info->u.val_size);
        check(H5Lget_val(file, name, value, info->u.val_size, H5P_DEFAULT) >= 0, name);
        add(value, info->u.val_size);
        free(value);
    }
    return 0;
}

static herr_t add_object(hid_t file, const char *name, const H5O_info2_t *info, void *unused) {
    (void)unused;
    hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    check(object >= 0, name);
    add_text(name);
    add(&info->type, sizeof info->type);
    check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, add_attribute, NULL) >= 0, name);
    if (info->type == H5O_TYPE_DATASET)
        add_dataset(object, name);
    if (info->type == H5O_TYPE_NAMED_DATATYPE)
        add_type(object);
    return H5Oclose(object), 0;
}

int main(int count, char **words) {
    check(count > 2 && chdir(words[1]) == 0, "the folder");
    for (int at = 2; at < count; at++) {
        hid_t file = H5Fopen(words[at], H5F_ACC_RDONLY, H5P_DEFAULT);
        check(file >= 0, words[at]);
        sum = 0xcbf29ce484222325u;
        check(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, add_object, NULL, H5O_INFO_BASIC) >= 0,
              words[at]);
        check(H5Lvisit2(file, H5_INDEX_NAME, H5_ITER_INC, add_link, NULL) >= 0, words[at]);
        printf("%016llx\n", (unsigned long long)sum);
        H5Fclose(file);
    }
    return 0;
}
