/*
 * posix.h - what the library asks of POSIX, for Windows
 *
 * Included before every source by `make windows`, beside the headers in
 * include/, which MinGW does not have. So the library's own sources are the
 * same on all systems; the exception is src/format/replace.c with attributes.c
 * and folder.c, whose protocol (locks, drafts without names, access control
 * lists) has no counterpart: replace.c in this folder stands for them.
 */
#ifndef BLY_WINDOWS_POSIX_H
#define BLY_WINDOWS_POSIX_H

#define __USE_MINGW_ANSI_STDIO 1 /* %zu, %llu */
#define _FILE_OFFSET_BITS 64
#define tell windows_tell /* io.h has another */
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#undef tell
#include <stdio.h>
#include <sys/types.h>

#define NAME_MAX 255
#define O_CLOEXEC O_NOINHERIT
#define O_DIRECTORY 0

#define _SC_PHYS_PAGES 1
#define _SC_PAGESIZE 2
#define _SC_NPROCESSORS_ONLN 3
long sysconf(int name);

int fsync(int fd);
ssize_t pread(int fd, void *buf, size_t n, off_t at);

#endif
