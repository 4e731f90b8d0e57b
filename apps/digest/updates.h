/*
 * updates.h - what has changed in a digest, as bytes
 *
 *     u8  1 whole, 2 delta       u64 life   u64 from    u64 version
 *     u32 capacity   u32 count   u32 CRC-32C of the bits afterwards
 *     u8  bits per entry         u8  parameter of Rice's code, 255: bits
 *     u32 flips                  their gaps, or all bits as they are
 *
 * Little-endian. The flips are the positions of bits that differ from those of
 * version `from` of the same life, in ascending order; those of a whole one
 * differ from an array of zeros. A life is that of a process, so that versions
 * of one that was started again are not taken for those of before.
 */
#ifndef BLY_DIGEST_UPDATES_H
#define BLY_DIGEST_UPDATES_H

#include "apps/digest/jobs.h"
#include "base/bytes.h"

struct digest_version {
    uint64_t life, version; /* 0: none */
};

/* A digest that updates lead to. */
struct digest_state {
    struct digest_version is;
    unsigned char *bytes; /* head and bits, NULL: none yet */
    size_t nbytes;
};

/* Append the update from a digest to another one: a delta, if `from` has bytes,
 * both are of one shape and it is shorter, or all of it. False: no memory. */
bool update_pack(const struct digest_state *from, const struct digest_state *to,
                 struct bytes *out);

enum update_was {
    UPDATE_TAKEN,
    UPDATE_ALIEN, /* a delta from another version than the one that is here */
    UPDATE_WRONG  /* what it says cannot be */
};

/* Apply one that anybody may have sent to what is here. *out, if it is taken,
 * is the new state, whose bytes are the caller's; else why says why not. most:
 * bytes of a digest. */
enum update_was update_take(const struct digest_state *s,
                            const unsigned char *bytes, size_t n, uint64_t most,
                            struct digest_state *out, char *why, size_t room);

/* Does it have all of the digest? */
bool update_is_whole(const unsigned char *bytes, size_t n);

#endif
