/*
 * digest_cells.h - a counting filter at the positions of Squid's digests
 *
 * A cell of 4 bits for each bit of the digest. What was added as often as
 * removed leaves no trace, so that the bits, those cells that are not zero, are
 * at any moment the digest of what the cache holds.
 *
 * A cell that reaches 15 stays there, as it no longer knows how many keys share
 * it: with 11 bits per entry and k = 4, the chance that any of 11 million cells
 * gets there by itself is below 1e-10. Whoever chooses URLs for that makes the
 * digest say "maybe" too often, never "no" to what is there.
 */
#ifndef BLY_DIGEST_CELLS_H
#define BLY_DIGEST_CELLS_H

#include <bloomery/foreign.h>

#define CELLS_KEY 16   /* bytes: an MD5 */
#define CELLS_HEAD 128 /* of a digest, before its bits */

struct cells {
    unsigned char *cell; /* two per byte, the lower half first */
    uint64_t nbits;
    unsigned char head[CELLS_HEAD]; /* of the digest, but for its count */
    uint64_t capacity, entries;
    uint64_t strays; /* removals of what was not there, ignored */
    uint64_t stuck;  /* cells that no longer count */
};

/* An empty one for so many entries, sized by spec as a digest is. The old one
 * is released. On failure it is as it was; bly_error() says why. */
bly_status cells_make(struct cells *c, const bly_foreign_spec *spec,
                      uint64_t capacity);
void cells_free(struct cells *c);

void cells_add(struct cells *c, const unsigned char key[CELLS_KEY]);

/* False: it was not there, and nothing has changed. */
bool cells_remove(struct cells *c, const unsigned char key[CELLS_KEY]);

/* Of the digest, and the digest: room for so many bytes. */
size_t cells_bytes(const struct cells *c);
void cells_digest(const struct cells *c, unsigned char *out);

#endif
