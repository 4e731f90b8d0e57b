/*
 * bloomery/sorted.h - a set of integers that is exact, in few bits each
 *
 * Beside the filters of bloomery.h, which says what holds here too about
 * failure, ownership, threads and cost. A set of n integers of w bits takes
 * about w - log2(n) + 1.5 bits for each, close to the least that any exact form
 * needs, and nothing can be added to it. Browsers keep their lists of dangerous
 * pages in this way, as the first 32 bits of SHA-256:
 *
 *     bly_sorted *s;
 *     if (bly_sorted_new(prefixes, n, 32, "urls", NULL, &s))
 *         errx(2, "%s", bly_error());
 *     uint64_t asked = first_four_bytes(sum), found;
 *     bly_sorted_has(s, &asked, 1, &found);
 *
 * A million of them take 1.7 MB and are wrong about another page once in 4295
 * times, since 2^32 prefixes are all there are; a Bloom filter of that size is
 * wrong once in 670 times.
 */
#ifndef BLOOMERY_SORTED_H
#define BLOOMERY_SORTED_H

#include <bloomery.h>

BLY_BEGIN_DECLS

typedef struct bly_sorted bly_sorted;

/* A note of so many bytes at most. */
#define BLY_SORTED_NOTE_MOST 4096

/* Make the set of n integers below 2^width, 1 to 64 bits. They are sorted
 * where they lie, and may come several times. `note` is kept with them; NULL:
 * none. mem as in bly_spec. BLY_EINVAL for an integer that is too large, or a
 * note that is too long; the array is then as it was. */
bly_status bly_sorted_new(uint64_t *values, size_t n, unsigned width,
                          const char *note, const bly_mem *mem,
                          bly_sorted **out);

/* Release s. NULL is allowed. */
void bly_sorted_free(bly_sorted *s);

/* Which of n integers are in the set: a bitmap. Right for all of them. */
void bly_sorted_has(const bly_sorted *s, const uint64_t *values, size_t n,
                    uint64_t *present);

uint64_t bly_sorted_items(const bly_sorted *s); /* different integers */
unsigned bly_sorted_width(const bly_sorted *s); /* bits of each, as given */
uint64_t bly_sorted_bits(const bly_sorted *s);  /* of the coded integers */
bly_bytes bly_sorted_note(const bly_sorted *s); /* borrowed from s */

/* The set as bytes, little-endian, with a checksum: write it, and rebuild it
 * from bytes that anyone may have written. `bytes` has room for
 * bly_sorted_written_bytes(). BLY_EFORMAT for bytes that are no set, or
 * damaged. */
size_t bly_sorted_written_bytes(const bly_sorted *s);
void bly_sorted_write(const bly_sorted *s, void *bytes);
bly_status bly_sorted_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                           bly_sorted **out);

BLY_END_DECLS
#endif
