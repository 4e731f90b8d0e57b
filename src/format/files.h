/*
 * files.h - opening and saving files
 */
#ifndef BLY_FILES_H
#define BLY_FILES_H

#include <bloomery.h>

typedef struct bly_file {
    int fd;
    int err;         /* of the last read that failed */
    uint64_t nbytes; /* BLY_SIZE_UNKNOWN: not a regular file */
} bly_file;

/* Open path for reading; the caller closes out->fd. */
bly_status bly_file_open(const char *path, bly_file *out);

/* st, with the path in front of its line. */
bly_status bly_named_fail(bly_status st, const char *path);

#endif
