/* Wrong calls: refused where and as HDF5 refuses them, and nothing else suffers. */

#include "trap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 15 };

static void a_failed_open_leaves_its_errors(void) {
    CHECK(H5Fopen("missing.h5", H5F_ACC_RDONLY, H5P_DEFAULT) < 0);
    CHECK(H5Eget_num(H5E_DEFAULT) > 1);
    CHECK(strstr(stack_text(H5E_DEFAULT), "No such file or directory") != NULL);
    int fd = open("text.h5", O_CREAT | O_WRONLY, 0600);
    CHECK(write(fd, "This is no file of HDF5.\n", 25) == 25);
    CHECK(close(fd) == 0);
    CHECK(H5Fopen("text.h5", H5F_ACC_RDONLY, H5P_DEFAULT) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "file signature not found") != NULL);
    hid_t file = new_file("a.h5");
    CHECK(H5Dopen2(file, "missing", H5P_DEFAULT) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "object 'missing' doesn't exist") != NULL);
    CHECK(H5Fclose(file) >= 0);
}

static void a_dataset_closed_twice_is_refused(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0);
    CHECK(H5Dclose(dataset) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "dataset ID") != NULL);
    int *made = numbers(2, COUNT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(H5Fclose(file) >= 0);
    CHECK(H5Fclose(file) < 0);
    check_file("a.h5", "a", 1, COUNT);
}

static void a_deleted_attribute_is_read_while_it_is_open(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t gone =
        H5Acreate2(dataset, "gone", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    hid_t kept =
        H5Acreate2(dataset, "kept", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    int written = 42, found = 0;
    CHECK(H5Awrite(gone, H5T_NATIVE_INT, &written) >= 0);
    CHECK(H5Awrite(kept, H5T_NATIVE_INT, &written) >= 0);
    CHECK(H5Adelete(dataset, "gone") >= 0);
    CHECK(H5Aexists(dataset, "gone") == 0);
    CHECK(H5Aread(gone, H5T_NATIVE_INT, &found) >= 0 && found == 42);
    hid_t other = H5Aopen(dataset, "kept", H5P_DEFAULT);
    CHECK(other >= 0);
    found = 0;
    CHECK(H5Aread(other, H5T_NATIVE_INT, &found) >= 0 && found == 42);
    CHECK(H5Aclose(gone) >= 0 && H5Aclose(kept) >= 0 && H5Aclose(other) >= 0);
    CHECK(H5Aopen(dataset, "gone", H5P_DEFAULT) < 0);
    CHECK(H5Sclose(space) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void a_list_of_the_wrong_kind_is_refused_by_the_call(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    hid_t wrong = H5Pcreate(H5P_FILE_ACCESS), events = H5EScreate();
    int *made = numbers(2, COUNT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, wrong, made) < 0);
    CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, wrong, made, events) < 0);
    CHECK(H5Dopen2(file, "a", wrong) < 0);
    size_t count = 99;
    CHECK(H5ESget_count(events, &count) >= 0 && count == 0);
    CHECK(H5ESclose(events) >= 0 && H5Pclose(wrong) >= 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void a_file_open_for_reading_takes_no_write(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "a", H5P_DEFAULT);
    int *made = numbers(2, COUNT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made) < 0);
    CHECK(strstr(stack_text(H5E_DEFAULT), "no write intent on file") != NULL);
    CHECK(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) < 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, COUNT);
}

static void a_file_deleted_under_us_can_still_be_closed(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, 1, COUNT);
    CHECK(unlink("a.h5") == 0);
    check_numbers(file, "a", 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    CHECK(H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT) < 0);
}

static void a_file_is_written_and_read(void) {
    hid_t file = new_file("a.h5"), dataset = new_dataset(file, "a", COUNT);
    write_numbers(dataset, 1, COUNT);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    check_file("a.h5", "a", 1, COUNT);
}

/* HDF5 prints errors unless it is told not to: what it tries inside is none. */
static void a_program_without_errors_prints_none(void) {
    CHECK(H5Eset_auto2(H5E_DEFAULT, (H5E_auto2_t)H5Eprint2, stderr) >= 0);
    a_file_is_written_and_read();
    a_file_is_written_and_read();
}

const struct trap ERRORS[] = {
    {"a_failed_open_leaves_its_errors", a_failed_open_leaves_its_errors},
    {"a_dataset_closed_twice_is_refused", a_dataset_closed_twice_is_refused},
    {"a_deleted_attribute_is_read_while_it_is_open",
     a_deleted_attribute_is_read_while_it_is_open},
    {"a_list_of_the_wrong_kind_is_refused_by_the_call",
     a_list_of_the_wrong_kind_is_refused_by_the_call},
    {"a_file_open_for_reading_takes_no_write", a_file_open_for_reading_takes_no_write},
    {"a_file_deleted_under_us_can_still_be_closed", a_file_deleted_under_us_can_still_be_closed},
    {"a_file_is_written_and_read", a_file_is_written_and_read},
    {"a_program_without_errors_prints_none", a_program_without_errors_prints_none},
    {NULL, NULL},
};
