/*
 * join.h - two files joined by a key, with a filter that drops rows early
 */
#ifndef BLY_JOIN_H
#define BLY_JOIN_H

#include "io/keys.h"
#include "io/sizing.h"
#include "report/fields.h"

struct join_args {
    struct keys keys;      /* where the key is, in LEFT and in RIGHT */
    const char *right_key; /* in RIGHT, where that is another; NULL: not */
    unsigned type;         /* enum join_type: inner, left, semi or anti */
    const char *remote;    /* a command that answers as RIGHT; NULL: none */
    bool serve;            /* be that command */
    const char *output;    /* NULL: standard output */
    struct sizing sizing;  /* of the filter */
    uint64_t memory;       /* for rows; 0: JOIN_MEMORY */
    const char *spill;     /* folder for those that do not fit; NULL: TMPDIR */
    uint64_t threads;
    bool json;
};

#define JOIN_MEMORY ((uint64_t)1 << 30)
#define JOIN_MEMORY_LEAST ((uint64_t)1000000)

struct join_report {
    const char *type;
    const char *filter_of; /* left or right; NULL: there was nothing to filter
                              by */
    uint64_t left_rows, right_rows; /* read */
    uint64_t rows;                  /* of the result */
    uint64_t filter_keys, filter_bytes;
    uint64_t dropped;     /* rows of the other side that the filter dropped */
    uint64_t passed;      /* and that it let through */
    uint64_t falsely;     /* of those, rows without a partner */
    uint64_t held;        /* bytes of rows, in memory or not */
    uint64_t spilled;     /* bytes written to the temporary file */
    const uint64_t *sent; /* to the remote command, and from it, and how many
                             all rows would have taken */
    const uint64_t *received, *unfiltered;
};
extern const struct field join_fields[];

/* Has this program what --remote and --serve need? */
bool join_reaches(void);

/* Join the two operands, or one and the remote command, or serve one: an exit
 * status. */
int join(const struct join_args *args, const struct list *operands);

#endif
