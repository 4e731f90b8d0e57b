/*
 * mirror.h - the list itself: a folder of range files, or one sorted file
 */
#ifndef BLY_PASSWORDS_MIRROR_H
#define BLY_PASSWORDS_MIRROR_H

#include "apps/passwords/passwords.h"

struct mirror {
    const char *path;
    int fd;
    bool folder;
    uint64_t nbytes; /* of a file */
    unsigned which;  /* hash */
};

/* Open the list of hashes in path. False, with the reason printed: there is
 * none, or a file that is not sorted by hash. */
bool mirror_open(struct mirror *m, const char *path, unsigned which);
void mirror_close(struct mirror *m);

/* A range: lines SUFFIX:COUNT, each with a newline, whose hashes begin with the
 * digits of prefix. */
struct mirror_range {
    char *text;
    size_t len;
};

/* The range of a prefix, PREFIX_DIGITS in upper case; empty where nothing
 * begins so. The caller frees text. False, and why: it cannot be read. */
bool mirror_range(const struct mirror *m, const char *prefix,
                  struct mirror_range *out, char *why, size_t nwhy);

/* How often was a password of this hash seen? 0: never. Likewise. */
bool mirror_count(const struct mirror *m, const unsigned char *hash,
                  uint64_t *count, char *why, size_t nwhy);

/* The line at *at of a range, without its end; *at moves behind it. False at
 * the end. A line without a count has 1. */
bool range_line(const struct mirror_range *r, size_t *at, bly_bytes *suffix,
                uint64_t *count);

#endif
