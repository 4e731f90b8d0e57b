/*
 * keying.h - keys of one type as those of another
 */
#ifndef BLY_KEYING_H
#define BLY_KEYING_H

#include "kinds/filter.h"

/* Will the type of the first keys become that of f? It is empty, and nobody has
 * said anything. Not where several threads might say it at once. */
static inline bool bly_keying_open(const bly_filter *f)
{
    return !f->nadded && !f->shared && !f->readonly &&
           bly_filter_keying(f).type == BLY_KEYS_UNKNOWN;
}

/* Let a filter that is being made say what a spec does of its keys. If that
 * fails, it is freed and *f is NULL. */
bly_status bly_keying_given(bly_filter **f, bly_keying keying);

/* n keys of a type as integers of another, which is int64 or uint64, as
 * bly_hash_as() would hash them. *ndone becomes the number before the first
 * that is none. */
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

/* What is said of n keys by a filter that cannot be asked. */
void bly_all_maybe(size_t n, uint64_t *maybe);

#endif
