/*
 * keying.h - converting keys of one type to another
 */
#ifndef BLY_KEYING_H
#define BLY_KEYING_H

#include "kinds/filter.h"

/* Will the type of the first keys become that of f? Yes if it is empty and its
 * type is not set yet; no if several threads might set it at once. */
static inline bool bly_keying_open(const bly_filter *f)
{
    return !f->shared && !f->readonly &&
           bly_filter_keying(f).type == BLY_KEYS_UNKNOWN &&
           bly_filter_untouched(f);
}

/* Give a filter that is being made the description of its keys from a spec. If
 * that fails, the filter is freed and *f is NULL. */
bly_status bly_keying_given(bly_filter **f, bly_keying keying);

/* Convert n keys of a type to integers of another, int64 or uint64, as
 * bly_hash_as() would hash them. *ndone becomes the number of keys before the
 * first that cannot be converted. */
bly_status bly_integers_as(bly_key_type to, bly_key_type from, const void *keys,
                           size_t n, uint64_t *ints, size_t *ndone);

/* The keys from i on, of an array of keys of that type. */
const void *bly_keys_from(bly_key_type type, const void *keys, size_t i);

bly_status bly_keying_label(bly_filter *f, bly_key_type type);

/* bly_add_ints() and bly_has_ints() of a filter of text. */
bly_status bly_add_int_texts(bly_filter *f, const uint64_t *ints, size_t n,
                             uint64_t *fresh, size_t *ndone);
void bly_has_int_texts(const bly_filter *f, const uint64_t *ints, size_t n,
                       uint64_t *maybe);

/* Answer "maybe" for n keys, for a filter that cannot be queried. */
void bly_all_maybe(size_t n, uint64_t *maybe);

#endif
