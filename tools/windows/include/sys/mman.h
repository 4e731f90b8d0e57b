/*
 * mman.h - memory from the system, and files in memory, for Windows
 *
 * As far as the library uses them. Anonymous memory begins at a multiple of
 * 2 MiB; the end of it may be given back before the rest.
 */
#ifndef BLY_WINDOWS_MMAN_H
#define BLY_WINDOWS_MMAN_H

#include <stddef.h>
#include <sys/types.h>

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 32
#define MAP_FAILED ((void *)-1)
#define MADV_RANDOM 1
#define MADV_SEQUENTIAL 2
#define MADV_WILLNEED 3
#define MADV_DONTNEED 4
#define MADV_HUGEPAGE 14

void *mmap(void *at, size_t n, int access, int flags, int fd, off_t from);
int munmap(void *at, size_t n);
int mprotect(void *at, size_t n, int access);
int madvise(void *at, size_t n, int advice);

#endif
