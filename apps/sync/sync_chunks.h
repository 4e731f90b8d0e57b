/*
 * sync_chunks.h - where to cut a file, so that equal parts are cut alike
 *
 * A cut is made where the last 64 bytes have a hash with enough zeros, so it
 * moves with what stands around it: bytes that are put in near the beginning
 * change the chunk they are in, and not those behind it. A chunk has 8 KiB on
 * average, 2 KiB at least and 64 KiB at most; those of files above 512 MiB are
 * longer, so that no file has more than some 65,000.
 */
#ifndef BLY_SYNC_CHUNKS_H
#define BLY_SYNC_CHUNKS_H

#include "apps/sync/set.h"

#define CHUNK_MOST ((size_t)1 << 20) /* bytes, of any file */
#define CHUNKS_MOST ((size_t)1 << 19)

struct chunk {
    uint64_t hash;
    uint64_t at; /* in its file */
    uint32_t n;
};

struct chunks {
    struct chunk *at;
    size_t n, room;
};

/* The chunks of what fd has, cut as a file of `size` bytes is. False: errno;
 * EFBIG for one with too many of them. */
bool chunks_of(int fd, uint64_t size, const bly_hasher *by, struct chunks *out);
/* Which chunks of a file of `size` bytes are all zeros, by their hashes: a long
 * row of zeros is cut into chunks of one length, but for the last one. False:
 * no memory. */
bool chunks_zero(const struct chunks *c, uint64_t size, const bly_hasher *by,
                 bool *zero);

bool chunks_add(struct chunks *c, const struct chunk *more);
void chunks_free(struct chunks *c);

#endif
