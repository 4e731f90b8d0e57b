/*
 * bloomery/sorted.h - an exact set of integers, in few bits each
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. A set of n integers of w bits takes about w - log2(n) + 1.5 bits per
 * integer, close to the least that any exact form needs. Nothing can be added
 * to it. Browsers keep their lists of dangerous pages in this way, as the first
 * 32 bits of SHA-256:
 *
 *     bly_sorted *s;
 *     if (bly_sorted_new(prefixes, n, 32, "urls", NULL, &s))
 *         errx(2, "%s", bly_error());
 *     uint64_t asked = first_four_bytes(sum), found;
 *     bly_sorted_has(s, &asked, 1, &found);
 *
 * A million of them take 1.7 MB. Since there are only 2^32 prefixes, they are
 * wrong about one in 4295 other pages; a Bloom filter of that size is wrong
 * about one in 670.
 */
#ifndef BLOOMERY_SORTED_H
#define BLOOMERY_SORTED_H

#include <bloomery.h>

BLY_BEGIN_DECLS

typedef struct bly_sorted bly_sorted;

/* The largest note, in bytes. */
#define BLY_SORTED_NOTE_MOST 4096

/* Make the set of n integers below 2^width, where width is from 1 to 64. It
 * belongs to the caller until bly_sorted_free(). The array is sorted in place;
 * integers may be repeated. `note` is kept with the set; NULL: none. mem as in
 * bly_spec. BLY_EINVAL if an integer is too large or the note too long; the
 * array is then unchanged. */
bly_status bly_sorted_new(uint64_t *values, size_t n, unsigned width,
                          const char *note, const bly_mem *mem,
                          bly_sorted **out);

/* Release s. NULL is allowed. */
void bly_sorted_free(bly_sorted *s);

/* Which of n integers are in the set, as a bitmap. The answers are exact. */
void bly_sorted_has(const bly_sorted *s, const uint64_t *values, size_t n,
                    uint64_t *present);

uint64_t bly_sorted_items(const bly_sorted *s); /* different integers */
unsigned bly_sorted_width(const bly_sorted *s); /* bits of each, as given */
uint64_t bly_sorted_bits(const bly_sorted *s);  /* of the coded integers */
bly_bytes bly_sorted_note(const bly_sorted *s); /* borrowed from s */

/* The set as bytes, little-endian, with a checksum. bly_sorted_write() needs
 * room for bly_sorted_written_bytes() bytes. bly_sorted_load() rebuilds the set
 * from bytes that anyone may have written; BLY_EFORMAT if they are not a set,
 * or are damaged. */
size_t bly_sorted_written_bytes(const bly_sorted *s);
void bly_sorted_write(const bly_sorted *s, void *bytes);
bly_status bly_sorted_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                           bly_sorted **out);

BLY_END_DECLS
#endif
