/*
 * meta.h - the metadata of a file: what its owner says about its keys
 *
 * A block of entries in the header of the root: the type of the keys and how
 * they were normalised, a note, and pairs of names and values.
 *
 *     | entry | entry | ...            an entry: | tag | bytes n | n bytes |
 *                                                  2      2
 *
 * Entries ascend by tag, and those of one tag by their bytes, so that the same
 * statements always have the same bytes. An unknown tag is skipped, and kept
 * when the filter is written again, unless its highest bit says that a reader
 * that does not know it would answer wrongly. docs/format.md is normative.
 */
#ifndef BLY_META_H
#define BLY_META_H

#include "kinds/kind.h"

/* Bytes of all entries; with their length before them they leave a hundred
 * bytes of the header for the future. */
#define BLY_META_MOST 3696
#define BLY_META_LENGTH 4 /* bytes of the length */

/* The block with its length and the zeros up to a multiple of 8. */
static inline size_t bly_meta_span(size_t nbytes)
{
    return nbytes ? (BLY_META_LENGTH + nbytes + 7) & ~(size_t)7 : 0;
}

/* NULL if these are characters to be shown in a line; else what is wrong, as
 * "is not UTF-8". */
const char *bly_text_wrong(bly_bytes text);

/* Are these n bytes from outside the entries of a block? *keying is what they
 * say of the keys. */
bly_status bly_meta_check(const unsigned char *at, size_t n,
                          bly_keying *keying);

/* Can keys be like that? BLY_EINVAL if not. */
bly_status bly_keying_check(bly_keying keying);

/* If dst says nothing about its keys, give it what src says, with which it is
 * combined. */
bly_status bly_meta_adopt(bly_filter *dst, const bly_filter *src);

/* If dst is empty and does not say what its keys are, and integers have another
 * hash in src: hash as src does. */
bly_status bly_hash_adopt(bly_filter *dst, const bly_filter *src);

/* The same together with op, which makes dst the combination of both: all or
 * nothing. */
bly_status bly_meta_combine(bly_filter *dst, const bly_filter *src,
                            bly_status (*op)(bly_filter *dst,
                                             const bly_filter *src));

#endif
