/*
 * messages.h - what the two sides of a sync say to each other
 *
 * One side asks and the other answers: a message each way, a question under way
 * at a time. A message is a byte with its type, and a body; between processes
 * each is a frame (wire/frame.h). An answer has the type of its question, or
 * SYNC_REFUSED and a text. No message is longer than SYNC_MESSAGE. v is a
 * number of 7 bits per byte (io/varint.h), e an element of 8 bytes,
 * little-endian.
 *
 *     question                                   answer
 *     HELLO    "blysync1", u8 form, u8 wishes,   the same of the other side;
 *              v elements, v bytes, u64 check     what both wish for holds
 *              of the secret
 *     STRATA                                     strata (reconcile.h)
 *     SYMBOLS  v from, v to                      symbols, from `from` on, at
 *                                                least one
 *     TABLE    u8 hashes, v cells, v from        likewise, of a table
 *     OUTLINE  u8 leaf bits, u8 inner bits,      v bytes in all, those from
 *              v from                            `from` on
 *     SORTED   v from                            likewise, of all elements: v
 *                                                from one to the next
 *     SUMMARY  v bytes in all, u8 correction,    nothing; with the last bytes
 *              v from, bytes of an outline       v how many elements it lacks
 *     LACKING  v from                            elements that it lacks, from
 *                                                that one on
 *     WANT     u8 bytes of each, beginnings of   nothing
 *              elements, highest byte first
 *     RECORDS  v from                            v records in all, those from
 *                                                `from` on
 *     CHUNKS   e                                 v chunks: u64 hash, v bytes
 *     READ     e, v from, v bytes; any number    v bytes and these, of each, as
 *                                                many as fit
 *     REMOVE   elements                          v how many were not
 *     PUT      records                           v how many were taken
 *     OFFER    record, v chunks (as in CHUNKS)   v ranges: v from, v bytes
 *     GIVE     bytes of these ranges             nothing
 *     KEEP                                       v files that were replaced, v
 *                                                refused, a text about the last
 *
 *     SIFT     v bits, v from                    v bytes in all, those from
 *                                                `from` on, of an outline of
 *                                                what is left
 *     NARROW                                     v elements that are left
 *                                                when those are gone that the
 *                                                last SUMMARY lacks
 *     LEFT     v from                            elements that are left, from
 *                                                that one on
 *     CONFIRM  elements                          a bit for each: it has it
 *
 *     record   of a line: v bytes, and these; of a file: v bytes of its path,
 *              and these, v size, v modified, v changed (if both sides said
 *              SYNC_KNOWS_CHANGED), u8 runs, u64 hash twice; where it is PUT,
 *              its contents follow (they are short)
 *
 * What is PUT or GIVEn is kept when KEEP is answered: a list at once, files one
 * by one as they come.
 */
#ifndef BLY_SYNC_MESSAGES_H
#define BLY_SYNC_MESSAGES_H

#include "base/byte_order.h"
#include "base/bytes.h"
#include "io/varint.h"

#define SYNC_MESSAGE ((size_t)1 << 20)
#define SYNC_FRAME 23 /* bytes that a frame adds to type and body */
#define SYNC_ROOM (SYNC_MESSAGE - 64) /* for the body of an answer */
#define SYNC_MAGIC "blysync1"

enum sync_type {
    SYNC_HELLO = 1,
    SYNC_STRATA,
    SYNC_SYMBOLS,
    SYNC_TABLE,
    SYNC_OUTLINE,
    SYNC_SORTED,
    SYNC_SUMMARY,
    SYNC_LACKING,
    SYNC_WANT,
    SYNC_RECORDS,
    SYNC_CHUNKS,
    SYNC_READ,
    SYNC_REMOVE,
    SYNC_PUT,
    SYNC_OFFER,
    SYNC_GIVE,
    SYNC_KEEP,
    SYNC_SIFT,
    SYNC_NARROW,
    SYNC_LEFT,
    SYNC_CONFIRM,
    SYNC_REFUSED = 255
};

enum {
    SYNC_WISH_TAKE = 1, /* of the side that asks */
    SYNC_WISH_GIVE = 2,
    SYNC_KNOWS_CHANGED = 4 /* of either side, since 0.2 */
};

/* A peer may claim to have any number of elements. Only so many are believed
 * that a sync of two sets of which one has n may need: memory and work are in
 * proportion to what this side has, and to what came. */
static inline uint64_t sync_believed(uint64_t claimed, uint64_t n)
{
    const uint64_t most = 16 * n + (UINT64_C(1) << 20);
    return claimed < most ? claimed : most;
}

static inline bool put_word(struct block *to, uint64_t x, unsigned nbytes)
{
    unsigned char at[8];
    put_le(at, x, nbytes);
    return block_put(to, at, nbytes);
}

#endif
