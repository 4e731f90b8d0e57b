/*
 * filter_files.h - opening and saving files
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

/* Make something of the file in path by `take`, after checking the arguments of
 * bly_open() and its kin; size is that of the caller's *how. */
typedef bly_status bly_file_take(bly_file *in, const char *path,
                                 const bly_access *how, void *out);
bly_status bly_file_with(bly_file_take *take, const char *path,
                         const bly_access *how, void *out, size_t size);

/* Change the file in path: take its lock, let read() take in what is there and
 * change it, and put what write() gives in its place; any failure leaves the
 * file as it was. Both are given `what`. If there is no file, one is made first
 * of what `first` writes; without that it is an error. */
typedef struct bly_writing {
    bly_writes *write;
    const void *what;
} bly_writing;
typedef bly_status bly_file_reads(void *what, const char *path, bly_file *in);
bly_status bly_file_change(const char *path, const bly_access *how,
                           const bly_writing *first, bly_file_reads *read,
                           bly_writes *write, void *what);

/* A bly_get from a bly_file. */
int64_t bly_file_get(void *file, void *buf, size_t nbytes);

/* st, with the path in front of its line. */
bly_status bly_named_fail(bly_status st, const char *path);

#endif
