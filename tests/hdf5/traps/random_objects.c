/* Attributes, links, types and texts of the random program. */

#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void attribute(struct run *run) {
    char name[32];
    snprintf(name, sizeof name, "a%u", below(run, 6));
    int values[16], found[16] = {0};
    hsize_t count = 16;
    for (int at = 0; at < 16; at++)
        values[at] = number(run);
    hid_t group = H5Gopen2(place(run, (int)below(run, 2)), run->folder, H5P_DEFAULT);
    if (below(run, 4) == 0 && H5Aexists(group, name) > 0)
        must(run, H5Adelete(group, name) >= 0, "H5Adelete");
    bool is_old = H5Aexists(group, name) > 0;
    hid_t space = H5Screate_simple(1, &count, NULL), attribute;
    if (is_old)
        attribute = H5Aopen(group, name, H5P_DEFAULT);
    else
        attribute = H5Acreate2(group, name, H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT);
    must(run, attribute >= 0, "an attribute");
    if (is_old && H5Aread(attribute, H5T_NATIVE_INT, found) >= 0)
        add(run, found, sizeof found);
    must(run, H5Awrite(attribute, H5T_NATIVE_INT, values) >= 0, "H5Awrite");
    must(run, H5Aclose(attribute) >= 0, "H5Aclose");
    H5Sclose(space), H5Gclose(group);
}

/* Links: one to a group is made, moved, and taken away. */
void links(struct run *run) {
    char from[64], to[64];
    hid_t file = place(run, (int)below(run, 2));
    snprintf(from, sizeof from, "%s/link-%u", run->folder, below(run, 5));
    snprintf(to, sizeof to, "%s/link-%u", run->folder, below(run, 5));
    bool is_from = is_there(file, from);
    bool is_to = is_there(file, to);
    if (!is_from) {
        hid_t group = H5Gcreate2(file, from, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        must(run, group >= 0, "H5Gcreate2");
        H5Gclose(group);
    } else if (!is_to)
        must(run, H5Lmove(file, from, file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0, "H5Lmove");
    else
        must(run, H5Ldelete(file, from, H5P_DEFAULT) >= 0, "H5Ldelete");
}

/* Text of any length: it lies in the file's heaps. */
void text(struct run *run) {
    char name[64], *value = malloc(9000), *found = NULL;
    snprintf(name, sizeof name, "%s/text", run->folder);
    size_t length = below(run, 8999);
    memset(value, 'a' + (int)below(run, 26), length);
    value[length] = '\0';
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    hid_t dataset = -1;
    if (is_there(run->own, name))
        dataset = H5Dopen2(run->own, name, H5P_DEFAULT);
    else
        dataset =
            H5Dcreate2(run->own, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    must(run, dataset >= 0, "text");
    must(run, H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0, "text");
    must(run, H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &found) >= 0, "text");
    if (found != NULL)
        add(run, found, strlen(found));
    H5free_memory(found);
    H5Dclose(dataset), H5Tclose(type), H5Sclose(space);
    free(value);
}

/* A type that is in the file, with a name. */
hid_t committed_type(struct run *run, hid_t file) {
    char name[NAME_BYTES];
    path(run, name, "type", 0);
    if (is_there(file, name))
        return H5Topen2(file, name, H5P_DEFAULT);
    hid_t type = H5Tcopy(H5T_STD_I32BE);
    must(run, H5Tcommit2(file, name, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0,
         "H5Tcommit2");
    return type;
}

/* Reads a dataset by the name of a link, if there is one. */
static void follow(struct run *run, const char *name) {
    hid_t dataset = H5Dopen2(run->own, name, H5P_DEFAULT);
    if (dataset < 0)
        return;
    transfer(run, dataset, false);
    must(run, H5Dclose(dataset) >= 0, "H5Dclose");
}

/* Links that have names in them, to this file and to the other, some to nowhere; and hard ones. */
void other_links(struct run *run) {
    char name[NAME_BYTES], to[NAME_BYTES];
    int which = (int)below(run, 4), kind = (int)below(run, 3);
    const char *words[] = {"soft", "outer", "hard"};
    path(run, name, words[kind], which);
    if (is_there(run->own, name)) {
        follow(run, name);
        if (below(run, 3) == 0)
            must(run, H5Ldelete(run->own, name, H5P_DEFAULT) >= 0, "H5Ldelete");
        return;
    }
    path(run, to, "data", kind == 1 ? 2 * which + 1 : 2 * which);
    herr_t status = 0;
    if (kind == 0)
        status = H5Lcreate_soft(to, run->own, name, H5P_DEFAULT, H5P_DEFAULT);
    else if (kind == 1)
        status = H5Lcreate_external("shared.h5", to, run->own, name, H5P_DEFAULT, H5P_DEFAULT);
    else if (is_there(run->own, to))
        status = H5Lcreate_hard(run->own, to, run->own, name, H5P_DEFAULT, H5P_DEFAULT);
    must(run, status >= 0, "a link");
    if (kind != 2 || is_there(run->own, name))
        follow(run, name);
}
