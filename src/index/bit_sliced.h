/*
 * bit_sliced.h - filters side by side: the parts of an index in memory and on
 * disk
 *
 * A document has a filter for each class of terms. Filters of one class and one
 * size m form a group, stored by rows: row r has bit r of each filter, so a
 * term that sets k bits is looked up by the AND of k rows.
 *
 *              document   7  8  9 12 13 ...   (columns)
 *     row 0               1  0  0  1  0
 *     row 1               0  1  0  1  1       term -> rows 1, 4
 *     row 2               1  1  1  0  0       row 1 & row 4 = documents 8, 12
 *     ...
 *     row m-1             0  0  1  0  1
 *
 * Sizes come from a ladder (bly_sliced_rows()), so documents of about one size
 * share a group and a small one does not pay for a large one [1]. The ladder
 * never changes: groups of one size, written at different times, can be put
 * beside each other without the terms.
 *
 * A group's columns are documents first .. first + span - 1 or, if it lacks
 * some of these, a list behind the rows says which. Numbers and blobs of
 * documents stand in segments: offsets, then blobs.
 *
 * Groups and segments are parts of the file, and know nothing of each other. A
 * part has the sums of its blocks in the directory, which stands at the end of
 * the file and has a sum itself. So a new version is the old parts, copied, the
 * new ones, and a new directory. docs/format-index.md has the bytes.
 *
 * [1] Bingmann, Bradley, Gauger and Iqbal, COBS: a Compact Bit-Sliced Signature
 *     Index, 2019
 */
#ifndef BLY_BIT_SLICED_H
#define BLY_BIT_SLICED_H

#include <bloomery/index.h>

#include "core/block_sums.h"
#include "core/hash.h"

enum {
    SLICED_HEADER = 128,
    SLICED_HEAD = 64, /* of the directory */
    SLICED_CLASS = 48,
    SLICED_SEGMENT = 40,
    SLICED_GROUP = 72,
    SLICED_NAME = 32,
    SLICED_META_MOST = 65536,
    SLICED_K_MOST = 64,
    SLICED_SHIFT_LEAST = 12,
    SLICED_SHIFT_MOST = 24,
    SLICED_PAGE = 4096 /* parts of this size or more begin at a page */
};
#define SLICED_ROWS_MOST (UINT64_C(1) << 40)

typedef struct bly_sliced_class {
    char name[SLICED_NAME];
    double fpr;
    uint32_t k;
} bly_sliced_class;

/* Bytes of the file whose blocks have sums. */
typedef struct bly_sliced_part {
    uint64_t at, nbytes;
    uint32_t shift;             /* of the blocks */
    const unsigned char *table; /* 8 bytes per block, little-endian */
    bly_block owned;            /* the table, where it is not in a file */
    bly_sums *sums;             /* of an open index */
} bly_sliced_part;

typedef struct bly_sliced_segment {
    uint64_t first, ndocs;
    bly_sliced_part part;
} bly_sliced_segment;

typedef struct bly_sliced_group {
    uint32_t class_number;
    uint64_t m, ndocs; /* rows, columns */
    uint64_t first, span;
    uint64_t terms;
    double expected; /* rate, averaged over its documents */
    bly_sliced_part part;
} bly_sliced_group;

/* The order of groups in a file: below 0, 0 or above, as for qsort(). Groups
 * that are equal here can become one. */
static inline int bly_sliced_order(const bly_sliced_group *a,
                                   const bly_sliced_group *b)
{
    if (a->class_number != b->class_number)
        return a->class_number < b->class_number ? -1 : 1;
    return (a->m > b->m) - (a->m < b->m);
}

/* Bits from a row to the next. Few columns are packed without gaps, so that a
 * group of one document takes as many bits as its filter. */
static inline uint64_t bly_sliced_stride(uint64_t ndocs)
{
    return ndocs <= 64 ? ndocs : (ndocs + 7) & ~UINT64_C(7);
}

/* Bytes of all rows. The word behind them lets a packed row be read as two
 * words. */
static inline uint64_t bly_sliced_row_bytes(uint64_t m, uint64_t ndocs)
{
    return ((m * bly_sliced_stride(ndocs) + 63) / 64 + 1) * 8;
}

static inline uint64_t bly_sliced_list_bytes(uint64_t ndocs, uint64_t span)
{
    return span == ndocs ? 0 : (4 * ndocs + 7) & ~UINT64_C(7);
}

/* The next row of a term: begin with its hash. */
static inline uint64_t bly_sliced_next(uint64_t *h, uint64_t m)
{
    const uint64_t row = bly_scale(*h, m);
    *h *= BLY_POWERS_C;
    return row;
}

/* Rows of a filter for so many bits: a number of five significant bits, so at
 * most a sixteenth more, and a thirty-second on average. */
uint64_t bly_sliced_rows(double bits);

/* Rows per term for a rate, and bits per term. */
uint32_t bly_sliced_k(double fpr);
double bly_sliced_bits(double fpr, uint32_t k);

/* The rate of a filter of m bits that has n terms. */
double bly_sliced_rate(uint64_t m, uint32_t k, uint64_t n);

/* ------------------------------------------------------------- an open index
 */

struct bly_index {
    bly_mem mem;
    const unsigned char *bytes;
    uint64_t nbytes;
    void *map; /* NULL: the caller's bytes */
    bly_hasher hasher;
    uint64_t ndocs, ndropped;
    uint32_t nclasses, nsegments;
    uint64_t ngroups; /* by bly_sliced_order(), and then by first */
    bly_sliced_class *classes;
    bly_sliced_segment *segments;
    bly_sliced_group *groups;
    const unsigned char *dropped; /* bitmap, little-endian; NULL: none */
    const unsigned char *meta;
    uint64_t nmeta;
};

/* The pairs of the metadata, one after another: false at the end. */
typedef struct bly_sliced_pair {
    const unsigned char *name, *value;
    uint32_t nname, nvalue;
} bly_sliced_pair;

bool bly_sliced_pair_next(const unsigned char **at, uint64_t *left,
                          bly_sliced_pair *out);

/* Open a file by its descriptor. */
bly_status bly_sliced_map(int fd, uint64_t nbytes, const char *name,
                          const bly_mem *mem, bly_index **out);

static inline bool bly_sliced_dropped(const bly_index *x, uint64_t number)
{
    return x->dropped && x->dropped[number / 8] >> (number % 8) & 1;
}

/* The list of a group's columns, or NULL if it has none. *right becomes false
 * if the list is damaged. */
const unsigned char *bly_sliced_list(const bly_sliced_group *g,
                                     const unsigned char *bytes, bool *right);

/* ------------------------------------------------------------------- writing
 */

typedef struct bly_sliced_writer {
    bly_mem mem;
    const char *name; /* for messages */
    int fd;
    uint64_t at; /* bytes written or gathered */
    unsigned char *buf;
    size_t fill;
    bool in_part;
    uint64_t part_at;
    uint64_t nsummed; /* blocks of the part */
    bly_sliced_part part;
    /* What the directory will say. */
    bly_hasher hasher;
    uint32_t nclasses;
    const bly_sliced_class *classes;
    bly_sliced_segment *segments;
    size_t nsegments, segments_room;
    bly_sliced_group *groups;
    size_t ngroups, groups_room;
    uint64_t ndocs;
    uint64_t *dropped;   /* bitmap, as public ones */
    size_t dropped_room; /* words */
    uint64_t ndropped;
    unsigned char *meta;
    size_t nmeta, meta_room;
} bly_sliced_writer;

/* w must be zero but for classes and hasher. */
bly_status bly_sliced_writer_begin(bly_sliced_writer *w, const bly_mem *mem,
                                   const char *name, int fd);
void bly_sliced_writer_free(bly_sliced_writer *w);

/* A part of nbytes: begin, put all of them, end. The table belongs to *out. */
bly_status bly_sliced_part_begin(bly_sliced_writer *w, uint64_t nbytes);
bly_status bly_sliced_put(bly_sliced_writer *w, const void *bytes, size_t n);
bly_status bly_sliced_part_end(bly_sliced_writer *w, bly_sliced_part *out);

/* Take a record over; what it owns is released if that fails. */
bly_status bly_sliced_segment_add(bly_sliced_writer *w, bly_sliced_segment *s);
bly_status bly_sliced_group_add(bly_sliced_writer *w, bly_sliced_group *g);

/* Copy all parts of x behind those that are there; documents are numbered on.
 * Damaged bytes are copied with the sums that expose them. */
bly_status bly_sliced_copy(bly_sliced_writer *w, const bly_index *x);

bly_status bly_sliced_drop(bly_sliced_writer *w, uint64_t number);
bly_status bly_sliced_set(bly_sliced_writer *w, const char *name, size_t nname,
                          const void *value, size_t len);

/* Directory and header. */
bly_status bly_sliced_finish(bly_sliced_writer *w);

/* Put the live documents of x, and its metadata, into w, which is new: groups
 * of one class and size become one. */
bly_status bly_sliced_compact(bly_sliced_writer *w, const bly_index *x);

/* Room for `need` entries of `size` bytes. *at and *room are changed only if
 * that succeeds. */
bly_status bly_sliced_grow(const bly_mem *mem, void **at, size_t *room,
                           size_t need, size_t size);

/* Bits of a row of a group with at most 64 columns. */
static inline uint64_t bly_sliced_packed(const unsigned char *rows, uint64_t r,
                                         uint64_t ndocs)
{
    const uint64_t bit = r * ndocs;
    const unsigned char *const p = rows + (bit >> 6) * 8;
    const unsigned shift = bit & 63;
    const uint64_t word = bly_load64(p) >> shift |
                          (shift ? bly_load64(p + 8) << (64 - shift) : 0);
    return word & bly_through(ndocs - 1);
}

#endif
