/*
 * chord_store.h - what a node keeps: blocks, manifests, and what was removed
 *
 * A record is a file, DIR/xx/DIGEST, written so that it is there in whole or
 * not at all, even after a power cut: 48 bytes of header with a sum, then the
 * data. What is there is known from the folder when it is opened. Threads may
 * use a store at once.
 *
 * Blocks have no flags and never change. Names, which are manifests and
 * tombstones, have versions.
 *
 * A record may be unavailable for one of three reasons, which are never
 * confused: it is absent; its bytes are damaged, so that another copy has to
 * take their place; or it cannot be read now, which says nothing about it (too
 * many open files, no memory, a disk that fails for a moment).
 */
#ifndef BLY_CHORD_STORE_H
#define BLY_CHORD_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/byte_order.h"
#include "base/clock.h"

#define STORE_DIGEST 32
#define STORE_BLOCK ((size_t)1 << 20) /* bytes of a block at most */
#define STORE_MOST (STORE_BLOCK + 65536)

enum { STORE_IS_MANIFEST = 1, STORE_IS_TOMB = 2 };

struct stored {
    unsigned char digest[STORE_DIGEST];
    uint64_t counter, writer; /* version: the larger wins */
    uint64_t when;            /* seconds, of a tombstone */
    uint32_t nbytes;
    uint8_t flags;
};

struct store;

enum store_result {
    STORE_OK,
    STORE_STALE,   /* a newer version is there */
    STORE_NONE,    /* absent */
    STORE_DAMAGED, /* there, but not as it was written */
    STORE_NOT_NOW, /* nothing is known: try again */
    STORE_BROKEN   /* the disk did not take it */
};

/* Which records are meant. */
enum store_kind { STORE_BLOCKS, STORE_NAMES, STORE_ALL };

/* NULL, with the reason printed. */
struct store *store_open(const char *folder);
void store_close(struct store *s);

/* The place of a key on the ring. */
static inline uint64_t store_id(const unsigned char digest[STORE_DIGEST])
{
    return get_be(digest, 8);
}

static inline bool store_newer(const struct stored *a, const struct stored *b)
{
    return a->counter != b->counter ? a->counter > b->counter
                                    : a->writer > b->writer;
}

/* Keep a record durably; STORE_STALE if a newer one is there. STORE_OK also if
 * it is this one, which is then read and, if it is damaged, written again.
 * After any other result nothing has changed. */
enum store_result store_put(struct store *s, const struct stored *r,
                            const void *data);

/* The record, and its data in memory that the caller frees (data NULL: not
 * wanted). r is what the list knows of it for STORE_DAMAGED and STORE_NOT_NOW,
 * too. */
enum store_result store_get(struct store *s,
                            const unsigned char digest[STORE_DIGEST],
                            struct stored *r, unsigned char **data);

/* Forget a record. store_drop_idle() does so only if nobody has put it since
 * `before`, a time of clock_ms(): false if it stays. */
void store_drop(struct store *s, const unsigned char digest[STORE_DIGEST]);
bool store_drop_idle(struct store *s, const unsigned char digest[STORE_DIGEST],
                     uint64_t before);
/* The time of the last put, the opening of the store being one of all. */
uint64_t store_touched(struct store *s,
                       const unsigned char digest[STORE_DIGEST]);

/* Up to `most` records whose ids lie in (a, b], going up, behind `after`
 * (NULL: from the beginning). Blocks that are known to be damaged count as
 * absent; names do not, since their absence would mean something. */
size_t store_list(struct store *s, enum store_kind kind, uint64_t a, uint64_t b,
                  const unsigned char *after, struct stored *out, size_t most);

/* What is in (a, b], in 256 buckets: equal where the records are. */
void store_summary(struct store *s, enum store_kind kind, uint64_t a,
                   uint64_t b, uint64_t buckets[256]);

/* Read records behind `at`, which goes on, until `nbytes` have been read; those
 * that are damaged are marked. How many records were read. */
size_t store_scrub(struct store *s, unsigned char at[STORE_DIGEST],
                   uint64_t nbytes);
/* Some names that are known to be damaged. */
size_t store_damaged_names(struct store *s, struct stored *out, size_t most);

struct store_counts {
    uint64_t records, bytes, files, tombs, damaged;
};
struct store_counts store_counts(struct store *s);

#endif
