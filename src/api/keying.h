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

/* Not a type: bly_hash_as() refuses it. */
#define BLY_NO_TYPE ((bly_key_type)-1)

/* Keys that are not hashed yet, and how they are to be taken. */
typedef struct bly_given {
    const void *keys;  /* an array of bly_bytes, or of integers */
    bly_key_type type; /* of the keys; BLY_KEYS_UNKNOWN: byte strings that are
                          taken as they are */
    bool unsigned_or_not; /* uint64, but nobody says whether they have a sign:
                             what bly_add_ints() and its relatives take */
} bly_given;

static inline bly_given bly_given_keys(const bly_bytes *keys)
{
    return (bly_given){ .keys = keys };
}

static inline bly_given bly_given_ints(const uint64_t *ints)
{
    return (bly_given){ ints, BLY_KEYS_UINT64, true };
}

static inline bly_given bly_given_as(bly_key_type type, const void *keys)
{
    return (bly_given){ keys, type ? type : BLY_NO_TYPE, false };
}

/* Hash n keys from `from` on for a filter that holds keys as `to` says. *ndone
 * becomes the number of keys before the first that cannot be hashed. */
bly_status bly_hash_given(const bly_hasher *hs, bly_keying to,
                          const bly_given *given, size_t from, size_t n,
                          uint64_t *hashes, size_t *ndone);

/* Answer "maybe" for n keys, for a filter that cannot be queried. */
void bly_all_maybe(size_t n, uint64_t *maybe);

#endif
