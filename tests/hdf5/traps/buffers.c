/* Whose memory a write is in: a copy, or the program's own with a limit of 0. */

#include "trap.h"

#include <string.h>

enum { COUNT = 1 << 18 };

/* Writes 1s, makes them 2s before the device takes them, and gives what the file then has. */
static int written_of_a_changed_buffer(hid_t list) {
    static int buffer[COUNT], found[COUNT];
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    for (int at = 0; at < COUNT; at++)
        buffer[at] = 1;
    gate_close();
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, buffer) >= 0);
    for (int at = 0; at < COUNT; at++)
        buffer[at] = 2;
    gate_open();
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "a", H5P_DEFAULT);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    for (int at = 0; at < COUNT; at++)
        CHECK(found[at] == found[0]);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    return found[0];
}

static hid_t list_with_limit(size_t limit) {
    hid_t list = H5Pcreate(H5P_DATASET_XFER);
    CHECK(H5Pinsert2(list, "alongside_limit", sizeof limit, &limit, NULL, NULL, NULL, NULL, NULL,
                     NULL) >= 0);
    return list;
}

static void a_buffer_is_copied_and_may_be_changed(void) {
    CHECK(written_of_a_changed_buffer(H5P_DEFAULT) == 1);
    CHECK(written_of_a_changed_buffer(list_with_limit(1 << 20)) == 1);
}

static void a_buffer_lent_by_a_transfer_list_is_used_in_place(void) {
    CHECK(written_of_a_changed_buffer(list_with_limit(0)) == 2);
    CHECK(written_of_a_changed_buffer(H5P_DEFAULT) == 1);
}

/* What a program must not do that lends its buffer: under the thread sanitizer it is seen. */
void a_lent_buffer_is_changed_too_early(void) {
    static int buffer[COUNT];
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    hid_t list = list_with_limit(0);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, buffer) >= 0);
    for (int at = 0; at < COUNT; at++)
        buffer[at] = at;
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

/* With `limit=0` in the connector string. */
static void a_buffer_lent_by_the_connector_string_is_used_in_place(void) {
    CHECK(written_of_a_changed_buffer(H5P_DEFAULT) == 2);
    CHECK(written_of_a_changed_buffer(list_with_limit(1 << 20)) == 1);
}

/* What HDF5 converts or gathers has memory of its own, which is its again when it returns. */
static void what_is_converted_or_gathered_is_right_without_a_copy_of_ours(void) {
    static double converted[COUNT];
    static int gathered[2 * COUNT], found[COUNT];
    for (int at = 0; at < COUNT; at++) {
        converted[at] = at;
        gathered[2 * at + 1] = at;
        gathered[2 * at] = -1;
    }
    hid_t file = new_file("a.h5");
    hid_t one = new_dataset(file, "one", COUNT), two = new_dataset(file, "two", COUNT);
    hsize_t total = 2 * COUNT, start = 1, stride = 2, count = COUNT;
    hid_t memory = H5Screate_simple(1, &total, NULL);
    CHECK(H5Sselect_hyperslab(memory, H5S_SELECT_SET, &start, &stride, &count, NULL) >= 0);
    hid_t list = list_with_limit(0);
    gate_close();
    CHECK(H5Dwrite(one, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, list, converted) >= 0);
    CHECK(H5Dwrite(two, H5T_NATIVE_INT, memory, H5S_ALL, list, gathered) >= 0);
    gate_open();
    CHECK(H5Dclose(one) >= 0 && H5Dclose(two) >= 0 && H5Fclose(file) >= 0);
    file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int which = 0; which < 2; which++) {
        hid_t dataset = H5Dopen2(file, which ? "two" : "one", H5P_DEFAULT);
        CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
        for (int at = 0; at < COUNT; at++)
            CHECK(found[at] == at);
        CHECK(H5Dclose(dataset) >= 0);
    }
    CHECK(H5Fclose(file) >= 0);
}

const struct trap BUFFERS[] = {
    {"a_buffer_is_copied_and_may_be_changed", a_buffer_is_copied_and_may_be_changed},
    {"a_buffer_lent_by_a_transfer_list_is_used_in_place",
     a_buffer_lent_by_a_transfer_list_is_used_in_place},
    {"a_buffer_lent_by_the_connector_string_is_used_in_place",
     a_buffer_lent_by_the_connector_string_is_used_in_place},
    {"what_is_converted_or_gathered_is_right_without_a_copy_of_ours",
     what_is_converted_or_gathered_is_right_without_a_copy_of_ours},
    {NULL, NULL},
};
