/* What reaches from one file of the random program into another: virtual datasets, references and
 * mounted files. */

#include "random.h"

#include <stdio.h>
#include <string.h>

/* The last dataset of those with this parity that keeps its extent; -1: none. */
static int fixed(struct run *run, int parity) {
    for (int which = run->made - 1; which >= 0; which--)
        if (which % 2 == parity && run->kinds[which] < CHUNKED)
            return which;
    return -1;
}

/* Rows of a dataset of this file above rows of one of the shared file. Where one of them is
 * narrower, a part belongs to none. */
static void make_virtual(struct run *run, const char *name, int own, int shared) {
    int fill = -9, parts[2] = {own, shared};
    hsize_t dims[2] = {run->rows[own] + run->rows[shared], run->columns[own]};
    if (run->columns[shared] > dims[1])
        dims[1] = run->columns[shared];
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, dims, NULL);
    H5Pset_fill_value(list, H5T_NATIVE_INT, &fill);
    hsize_t start[2] = {0, 0};
    for (int at = 0; at < 2; at++) {
        char from[NAME_BYTES];
        hsize_t size[2] = {run->rows[parts[at]], run->columns[parts[at]]};
        hid_t source = H5Screate_simple(2, size, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
        path(run, from, "data", parts[at]);
        must(run, H5Pset_virtual(list, space, at == 0 ? "." : "shared.h5", from, source) >= 0,
             "H5Pset_virtual");
        H5Sclose(source);
        start[0] += size[0];
    }
    hid_t made = H5Dcreate2(run->own, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    must(run, made >= 0 && H5Dclose(made) >= 0, "a virtual dataset");
    H5Pclose(list), H5Sclose(space);
}

void virtual_dataset(struct run *run) {
    char name[NAME_BYTES];
    int own = fixed(run, 0), shared = fixed(run, 1), which = (int)below(run, 2);
    if (own < 0 || shared < 0)
        return;
    path(run, name, "virtual", which);
    if (!is_there(run->own, name))
        make_virtual(run, name, own, shared);
    hid_t dataset = H5Dopen2(run->own, name, H5P_DEFAULT);
    must(run, dataset >= 0, "a virtual dataset");
    if (dataset < 0)
        return;
    bool is_write = below(run, 2) == 0;
    /* A part that belongs to no dataset is read as the fill value, and cannot be written. */
    bool is_done = try_transfer(run, dataset, is_write);
    must(run, is_done || is_write, "a virtual dataset");
    add(run, &is_done, sizeof is_done);
    if (is_write)
        transfer(run, dataset, false);
    must(run, H5Dclose(dataset) >= 0, "H5Dclose");
}

/* What a reference is to goes into the sum: the name, and of a region how large it is. */
static void follow(struct run *run, H5R_ref_t *reference) {
    char name[NAME_BYTES] = "";
    H5R_type_t type = H5Rget_type(reference);
    add(run, &type, sizeof type);
    hid_t object = type == H5R_ATTR ? H5Ropen_attr(reference, H5P_DEFAULT, H5P_DEFAULT)
                                    : H5Ropen_object(reference, H5P_DEFAULT, H5P_DEFAULT);
    must(run, object >= 0, "a reference");
    if (type == H5R_ATTR) {
        int values[16] = {0};
        must(run, H5Aread(object, H5T_NATIVE_INT, values) >= 0, "H5Aread");
        add(run, values, sizeof values);
        H5Aclose(object);
        return;
    }
    H5Iget_name(object, name, sizeof name);
    add(run, name, strlen(name));
    if (type == H5R_DATASET_REGION2) {
        hid_t space = H5Ropen_region(reference, H5P_DEFAULT, H5P_DEFAULT);
        hssize_t count = H5Sget_select_npoints(space);
        must(run, count > 0, "a region");
        add(run, &count, sizeof count);
        H5Sclose(space);
        transfer(run, object, false);
    }
    H5Oclose(object);
}

enum { REFERENCES = 4 };

/* Makes as many as there are objects for: to the group, a region, an attribute, the shared file. */
static size_t make_references(struct run *run, H5R_ref_t made[REFERENCES]) {
    char name[NAME_BYTES];
    size_t count = 0;
    herr_t status = H5Rcreate_object(run->own, run->folder, H5P_DEFAULT, &made[count++]);
    if (run->made > 0) {
        hsize_t points, dims[2] = {run->rows[0], run->columns[0]};
        hid_t space = slab_of(run, dims, &points);
        path(run, name, "data", 0);
        status |= H5Rcreate_region(run->own, name, space, H5P_DEFAULT, &made[count++]);
        H5Sclose(space);
    }
    if (H5Aexists_by_name(run->own, run->folder, "a0", H5P_DEFAULT) > 0)
        status |= H5Rcreate_attr(run->own, run->folder, "a0", H5P_DEFAULT, &made[count++]);
    /* A file that is opened to follow a reference cannot be closed once its writes fail: HDF5 frees
     * it and keeps its id, natively too. */
    if (run->made > 1 && !is_failing) {
        path(run, name, "data", 1);
        status |= H5Rcreate_object(run->shared, name, H5P_DEFAULT, &made[count++]);
    }
    must(run, status >= 0, "a reference is made");
    return count;
}

/* An attribute of references, made anew and read back; whether that went well. */
static bool in_an_attribute(struct run *run, hid_t space, void *made, void *found) {
    if (H5Aexists_by_name(run->own, run->folder, "references", H5P_DEFAULT) > 0)
        H5Adelete_by_name(run->own, run->folder, "references", H5P_DEFAULT);
    hid_t it = H5Acreate_by_name(run->own, run->folder, "references", H5T_STD_REF, space,
                                 H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool is_good = H5Awrite(it, H5T_STD_REF, made) >= 0 && H5Aread(it, H5T_STD_REF, found) >= 0;
    return H5Aclose(it) >= 0 && is_good;
}

/* The same in a dataset, which is there for each count. */
static bool in_a_dataset(struct run *run, hid_t space, void *made, void *found) {
    char name[NAME_BYTES];
    path(run, name, "references", (int)H5Sget_simple_extent_npoints(space));
    hid_t it, all = H5S_ALL;
    if (is_there(run->own, name))
        it = H5Dopen2(run->own, name, H5P_DEFAULT);
    else
        it = H5Dcreate2(run->own, name, H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool is_good = H5Dwrite(it, H5T_STD_REF, all, all, H5P_DEFAULT, made) >= 0 &&
                   H5Dread(it, H5T_STD_REF, all, all, H5P_DEFAULT, found) >= 0;
    return H5Dclose(it) >= 0 && is_good;
}

void references(struct run *run) {
    H5R_ref_t made[REFERENCES], found[REFERENCES];
    memset(made, 0, sizeof made), memset(found, 0, sizeof found);
    hsize_t count = make_references(run, made);
    hid_t space = H5Screate_simple(1, &count, NULL);
    bool is_good = below(run, 2) == 0 ? in_an_attribute(run, space, made, found)
                                      : in_a_dataset(run, space, made, found);
    must(run, is_good, "references");
    H5Sclose(space);
    for (hsize_t at = 0; at < count; at++) {
        if (is_good)
            follow(run, &found[at]);
        must(run, H5Rdestroy(&made[at]) >= 0, "H5Rdestroy");
        must(run, !is_good || H5Rdestroy(&found[at]) >= 0, "H5Rdestroy");
    }
}

/* The kinds of before 1.12: addresses, in a dataset each. */
void old_references(struct run *run) {
    hobj_ref_t object;
    hdset_reg_ref_t region;
    char name[NAME_BYTES], data[NAME_BYTES];
    bool is_region = below(run, 2) == 0;
    void *reference = is_region ? (void *)&region : (void *)&object;
    hid_t type = is_region ? H5T_STD_REF_DSETREG : H5T_STD_REF_OBJ, space = H5S_ALL, it;
    H5R_type_t kind = is_region ? H5R_DATASET_REGION : H5R_OBJECT;
    if (run->made == 0)
        return;
    hsize_t dims[2] = {run->rows[0], run->columns[0]}, count, one = 1;
    space = slab_of(run, dims, &count);
    path(run, data, "data", 0), path(run, name, is_region ? "regions" : "objects", 0);
    must(run, H5Rcreate(reference, run->own, data, kind, is_region ? space : -1) >= 0, "H5Rcreate");
    H5Sclose(space);
    space = H5Screate_simple(1, &one, NULL);
    if (is_there(run->own, name))
        it = H5Dopen2(run->own, name, H5P_DEFAULT);
    else
        it = H5Dcreate2(run->own, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    must(run, H5Dwrite(it, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, reference) >= 0, name);
    memset(reference, 0, is_region ? sizeof region : sizeof object);
    must(run, H5Dread(it, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, reference) >= 0, name);
    hid_t found = H5Rdereference2(it, H5P_DEFAULT, kind, reference);
    must(run, found >= 0, "H5Rdereference2");
    if (found >= 0)
        transfer(run, found, false);
    if (is_region && found >= 0) {
        hid_t selected = H5Rget_region(it, kind, reference);
        hssize_t points = H5Sget_select_npoints(selected);
        add(run, &points, sizeof points);
        H5Sclose(selected);
    }
    H5Dclose(found), H5Dclose(it), H5Sclose(space);
}

/* Mounts a file of the thread's own on a group of one of the others. */
static void mount_anew(struct run *run, int where) {
    char file[32], point[NAME_BYTES];
    hid_t host = place(run, where);
    snprintf(file, sizeof file, "mounted-%d.h5", run->index);
    path(run, point, "point", 0);
    if (!is_there(host, point)) {
        hid_t group = H5Gcreate2(host, point, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        must(run, group >= 0 && H5Gclose(group) >= 0, "H5Gcreate2");
    }
    FILE *old = fopen(file, "r");
    if (old != NULL)
        fclose(old), run->mounted = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT);
    else
        run->mounted = H5Fcreate(file, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    must(run, run->mounted >= 0, file);
    run->host = host;
    bool is_done = run->mounted >= 0 && H5Fmount(host, point, run->mounted, H5P_DEFAULT) >= 0;
    must(run, is_done, "H5Fmount");
    if (!is_done)
        H5Fclose(run->mounted), run->mounted = run->host = -1;
}

void unmount(struct run *run) {
    char point[NAME_BYTES];
    if (run->mounted < 0)
        return;
    path(run, point, "point", 0);
    must(run, H5Funmount(run->host, point) >= 0, "H5Funmount");
    must(run, H5Fclose(run->mounted) >= 0, "H5Fclose");
    run->mounted = run->host = -1;
}

/* Mounts a file, writes and reads through the place where it is, or takes it away. */
void mount(struct run *run) {
    char name[2 * NAME_BYTES], point[NAME_BYTES];
    int what = (int)below(run, 4), where = (int)below(run, 2), which = (int)below(run, 3);
    if (run->mounted < 0)
        mount_anew(run, where);
    else if (what == 0)
        unmount(run);
    if (run->mounted < 0)
        return;
    snprintf(name, sizeof name, "%s/inside-%d", path(run, point, "point", 0), which);
    hid_t dataset;
    if (is_there(run->host, name))
        dataset = H5Dopen2(run->host, name, H5P_DEFAULT);
    else {
        hsize_t dims[2] = {1 + below(run, ROWS_MAX), 1 + below(run, COLUMNS_MAX)};
        hid_t space = H5Screate_simple(2, dims, NULL);
        dataset = H5Dcreate2(run->host, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT,
                             H5P_DEFAULT);
        H5Sclose(space);
    }
    must(run, dataset >= 0, "a dataset of a mounted file");
    if (dataset < 0)
        return;
    transfer(run, dataset, below(run, 2) == 0);
    must(run, H5Dclose(dataset) >= 0, "H5Dclose");
}
