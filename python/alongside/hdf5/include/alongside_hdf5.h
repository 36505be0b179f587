/* What C programs can ask of the HDF5 plugin of Alongside: wait, test, read ahead.
 *
 * The functions are in the plugin itself, libalongside_hdf5.so in the folder that HDF5_PLUGIN_PATH
 * names. It brings no HDF5 along. Link with it, or look them up in it (dlopen, dlsym); it has to be
 * the same file that HDF5 loads. They may be called from any thread, with or without files open,
 * and call nothing of HDF5.
 *
 * A file is named by its device and inode (`st_dev`, `st_ino` of fstat or stat); both 0: all files
 * that are open under the connector. Ranges of a file are pairs of its offset and its length in
 * bytes: of a contiguous dataset, what H5Dget_offset and H5Dget_storage_size say, of a chunk what
 * H5Dget_chunk_info says. NULL: all of the file.
 */
#ifndef ALONGSIDE_HDF5_H
#define ALONGSIDE_HDF5_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until what was written there is with the system. 0: it is. Else the errno of the first that
 * failed; `text` (NULL: nobody wants to know) has a line for each failure, as far as `size` bytes
 * have room, and each is told once. What HDF5 has in its own caches is not written by this. */
int alongside_hdf5_wait(uint64_t device, uint64_t inode, const uint64_t (*ranges)[2], size_t count,
                        char *text, size_t size);

/* Whether alongside_hdf5_wait would return at once. 1: it would. 0: something is under way. */
int alongside_hdf5_test(uint64_t device, uint64_t inode, const uint64_t (*ranges)[2], size_t count);

/* Reads a range of a file ahead; reads of HDF5 that ask for it later copy it from memory, once. How
 * many bytes that will be: as many as the file's limit allows, 0 of a file that is not open. */
uint64_t alongside_hdf5_fetch(uint64_t device, uint64_t inode, uint64_t offset, uint64_t length);

#ifdef __cplusplus
}
#endif

#endif
