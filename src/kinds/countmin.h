/*
 * countmin.h - the counters of a count-min sketch
 *
 * countmin.c says what they are and how keys are counted, countmin_rows.c what
 * is done with all of them.
 */
#ifndef BLY_COUNTMIN_H
#define BLY_COUNTMIN_H

#include <stdatomic.h>

#include "core/bits.h"
#include "kinds/filter.h"

/* Params of the shape. */
enum {
    COUNTMIN_WIDTH,
    COUNTMIN_DEPTH,
    COUNTMIN_COUNTER,
    COUNTMIN_UPDATE,
    COUNTMIN_ERROR,
    COUNTMIN_DELTA,
    COUNTMIN_CONFIDENCE,
    COUNTMIN_FOLDS
};
enum { COUNTMIN_32, COUNTMIN_64 };
enum { COUNTMIN_PLAIN, COUNTMIN_CONSERVATIVE };
enum { COUNTMIN_TOTAL }; /* in state */

/* N. */
static inline uint64_t countmin_total(const bly_filter *f)
{
    return bly_word_load(&f->state[COUNTMIN_TOTAL]);
}

/* Does it have counters of 64 bits? */
static inline bool countmin_wide(const bly_filter *f)
{
    return f->shape.p[COUNTMIN_COUNTER] == COUNTMIN_64;
}

/* Read counter i, even if other threads write to it; and store a new value, as
 * the only writer. */
static inline uint64_t countmin_load(const void *data, uint64_t i, bool wide)
{
    if (wide)
        return bly_le64(bly_word_load((const uint64_t *)data + i));
    return bly_le32(atomic_load_explicit((const _Atomic uint32_t *)data + i,
                                         memory_order_relaxed));
}

static inline void countmin_store(void *data, uint64_t i, uint64_t v, bool wide)
{
    if (wide)
        ((uint64_t *)data)[i] = bly_le64(v);
    else
        ((uint32_t *)data)[i] = bly_le32((uint32_t)v);
}

/* Functions of the kind's descriptor. */
bool bly_countmin_check(const bly_filter *f);
bool bly_countmin_restate(bly_filter *f);
void bly_countmin_mend(bly_filter *f);
void bly_countmin_stat(const bly_filter *f, bly_stats *out);
bly_status bly_countmin_merge(bly_filter *dst, const bly_filter *src);
bly_status bly_countmin_merge_part(bly_filter *dst, const bly_part *p);
bly_status bly_countmin_fold(const bly_filter *f, bly_filter **out);
bly_status bly_countmin_compare(const bly_filter *a, const bly_filter *b,
                                bly_likeness *out);

#endif
