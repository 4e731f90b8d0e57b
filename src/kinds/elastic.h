/*
 * elastic.h - the tables of an elastic filter
 *
 * elastic.c says what they are, elastic_grow.c how they are written anew.
 */
#ifndef BLY_ELASTIC_H
#define BLY_ELASTIC_H

#include "engine/quotient_table.h"
#include "kinds/filter.h"

/* Params of the shape. */
enum {
    ELASTIC_FIRST,
    ELASTIC_PRINT,
    ELASTIC_LEVEL,
    ELASTIC_GROWTH,
    ELASTIC_TABLES,
    ELASTIC_SLOTS,
    ELASTIC_REMOVAL,
    ELASTIC_JOINED
};
enum { ELASTIC_BEFORE = BLY_QUOTIENT_SUMS }; /* in the state */

#define ELASTIC_MAX_SLOTS (UINT64_C(1) << 40)
#define ELASTIC_MAX_TABLES 64

/* The size of a table, which follows from its number and its slots. */
typedef struct elastic_size {
    uint64_t most;   /* slots that it may reach */
    uint64_t slots;  /* those it has */
    uint64_t nbytes; /* of it */
    unsigned print;  /* m */
    unsigned r;
} elastic_size;

/* The size of table number i with this many slots, or (0) with all that it may
 * reach. False if hashes are too short for it, or it is too large for any
 * machine. */
bool bly_elastic_sized(const bly_shape *s, uint64_t i, uint64_t slots,
                       elastic_size *out);

/* The bytes of all tables; 0 if one of them is impossible. */
uint64_t bly_elastic_nbytes(const bly_shape *s);

/* Walks the tables of a filter, from the newest to the oldest. */
typedef struct elastic_walk {
    const bly_filter *f;
    uint64_t i, at; /* tables still to come, and where they end */
    elastic_size size;
    bly_quotient_table t;
} elastic_walk;

static inline elastic_walk elastic_walk_of(const bly_filter *f)
{
    return (elastic_walk){ .f = f,
                           .i = f->shape.p[ELASTIC_TABLES],
                           .at = f->shape.nbytes };
}

/* The next one; false: there is none. */
bool bly_elastic_next(elastic_walk *w);

/* The cut hash of an entry: the fingerprint F that was scaled to it. False if
 * there is none, which happens in a damaged table. */
bool bly_elastic_uncut(const elastic_size *size, const bly_quotient_table *t,
                       uint64_t entry, uint64_t *h);

/* Make room for more keys. */
bly_status bly_elastic_grow(bly_filter *f);

/* Functions of the kind's descriptor. */
bly_status bly_elastic_merge(bly_filter *dst, const bly_filter *src);

#endif
