/* What the thread sanitizer is told, where a program is built with it: it does not know that the
 * bytes of a system call by number are read. */

#ifndef ALONGSIDE_WATCHED_H
#define ALONGSIDE_WATCHED_H

#ifdef __SANITIZE_THREAD__
void __tsan_read_range(const void *bytes, unsigned long size);
#define READS(bytes, size) __tsan_read_range(bytes, size)
#else
#define READS(bytes, size) ((void)(bytes), (void)(size))
#endif

#endif
