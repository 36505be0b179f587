/* A program that writes compressed steps and computes between them, and knows nothing of us:
 *
 *     filtered FILE STEPS DATASETS COUNT COMPUTE_S
 *
 * Each step is a group of datasets of COUNT numbers, in chunks of 1 MiB, shuffled and deflated; it
 * is flushed and synced after its computation. Prints the seconds of I/O that it sees (all but the
 * computation), those of the last step, after which nothing is computed, and whether all is right.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 18 };

static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double compute(double seconds) {
    double began = now_s();
    volatile double sum = 0;
    while (now_s() - began < seconds)
        for (int at = 0; at < 1000; at++)
            sum = sum * 0.5 + at;
    return now_s() - began;
}

/* Numbers that compress to about a half. */
static void fill(float *values, size_t count, int step, int dataset) {
    unsigned state = 1 + 1000u * (unsigned)step + (unsigned)dataset;
    for (size_t at = 0; at < count; at++) {
        state = state * 1664525u + 1013904223u;
        values[at] = (float)(at / 64) + (float)(state >> 24) / 256.0f;
    }
}

static void write_step(hid_t file, int step, int datasets, hsize_t count, float *values) {
    char name[32];
    snprintf(name, sizeof name, "step%04d", step);
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &count, NULL);
    hsize_t chunk = CHUNK;
    check(H5Pset_chunk(list, 1, &chunk) >= 0 && H5Pset_shuffle(list) >= 0 &&
              H5Pset_deflate(list, 1) >= 0,
          "H5Pset_deflate");
    for (int number = 0; number < datasets; number++) {
        snprintf(name, sizeof name, "variable%d", number);
        hid_t dataset = H5Dcreate2(group, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list,
                                   H5P_DEFAULT);
        check(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                       values + (size_t)number * count) >= 0,
              "H5Dwrite");
        check(H5Dclose(dataset) >= 0, "H5Dclose");
    }
    check(H5Sclose(space) >= 0 && H5Pclose(list) >= 0 && H5Gclose(group) >= 0, "H5Gclose");
}

static void check_all(const char *path, int steps, int datasets, hsize_t count, float *values) {
    float *found = malloc(count * sizeof *found);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int step = 0; step < steps; step++)
        for (int number = 0; number < datasets; number++) {
            char name[64];
            snprintf(name, sizeof name, "step%04d/variable%d", step, number);
            hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
            check(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0,
                  "H5Dread");
            check(memcmp(found, values + (size_t)number * count, count * sizeof *found) == 0,
                  "a value");
            check(H5Dclose(dataset) >= 0, "H5Dclose");
        }
    check(H5Fclose(file) >= 0, "H5Fclose");
    free(found);
}

int main(int words, char **word) {
    check(words == 6, "filtered FILE STEPS DATASETS COUNT COMPUTE_S");
    int steps = atoi(word[2]), datasets = atoi(word[3]);
    hsize_t count = strtoull(word[4], NULL, 10);
    double compute_s = atof(word[5]), computed_s = 0, last_s = 0;
    float *values = malloc((size_t)datasets * count * sizeof *values);
    for (int number = 0; number < datasets; number++)
        fill(values + (size_t)number * count, count, 0, number);
    double began = now_s();
    hid_t file = H5Fcreate(word[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    int descriptor = open(word[1], O_RDONLY);
    check(file >= 0 && descriptor >= 0, "H5Fcreate");
    for (int step = 0; step < steps; step++) {
        last_s = now_s();
        write_step(file, step, datasets, count, values);
        if (step + 1 < steps)
            computed_s += compute(compute_s);
        check(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && fsync(descriptor) == 0, "H5Fflush");
    }
    check(H5Fclose(file) >= 0 && fsync(descriptor) == 0 && close(descriptor) == 0, "H5Fclose");
    double ended = now_s();
    check_all(word[1], steps, datasets, count, values);
    free(values);
    printf("{\"io_s\": %.6f, \"last_s\": %.6f, \"total_s\": %.6f}\n", ended - began - computed_s,
           ended - last_s, ended - began);
    return 0;
}
