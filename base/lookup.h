/*
 * lookup.h - from keys to the numbers of rows
 *
 * Rows are the caller's: an array with the keys in it. The table has the number
 * of each and 32 bits of its key's hash, so that it grows without asking for
 * keys, and rows of other keys are passed over without a look at them. Open
 * addressing, at most half full.
 *
 *     const uint64_t hash = table_hash(name, n);
 *     LOOKUP_EACH(&t, hash, row)
 *         if (is_named(&rows[row], name, n))
 *             return row;
 *     ... rows[nrows] = ...
 *     return lookup_add(&t, hash, nrows);
 */
#ifndef BLY_BASE_LOOKUP_H
#define BLY_BASE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOKUP_NONE UINT32_MAX

struct lookup_slot {
    uint32_t tag;
    uint32_t row; /* and one; 0: free */
};

/* Zero is empty. */
struct lookup {
    struct lookup_slot *slots;
    size_t nslots, n; /* a power of two; rows */
};

/* For tables whose keys strangers choose. Whoever knows the hash of a table can
 * make keys that all meet in one place, and then every step goes past all of
 * them. So this one has a secret of the process. What is printed or written
 * must not depend on it. */
uint64_t table_hash(const void *key, size_t n);

/* The row after *step that may have a key of this hash, or LOOKUP_NONE. */
static inline uint32_t lookup_next(const struct lookup *t, uint64_t hash,
                                   size_t *step)
{
    while (t->nslots) {
        const struct lookup_slot *const s =
            &t->slots[((uint32_t)hash + (*step)++) & (t->nslots - 1)];
        if (!s->row || s->tag == (uint32_t)hash)
            return s->row - 1; /* of a free one: LOOKUP_NONE */
    }
    return LOOKUP_NONE;
}

/* `row` goes through the rows that may have a key of this hash. */
#define LOOKUP_EACH(t, hash, row)    \
    for (size_t row##_step = 0, row; \
         (row = lookup_next((t), (hash), &row##_step)) != LOOKUP_NONE;)

/* Add a row whose key is not there. False: no memory, or more than 2^31 rows;
 * the table is as it was. */
bool lookup_add(struct lookup *t, uint64_t hash, size_t row);

/* See to it that n rows fit, so that adding them cannot fail. */
bool lookup_fit(struct lookup *t, size_t n);

void lookup_empty(struct lookup *t); /* and keep its memory */
void lookup_free(struct lookup *t);

#endif
