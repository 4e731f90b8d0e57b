/*
 * chord_store.h - what a node keeps: blocks, manifests, and what was removed
 *
 * A record is a file, DIR/xx/DIGEST, written so that it is there in whole or
 * not at all, even after a power cut: 48 bytes of header with a sum, then the
 * data. What is there is known from the folder when it is opened. Threads may
 * use a store at once.
 */
#ifndef BLY_CHORD_STORE_H
#define BLY_CHORD_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_DIGEST 32
#define STORE_BLOCK ((size_t)1 << 20) /* bytes of a block at most */
#define STORE_MOST (STORE_BLOCK + 65536)
#define STORE_TOMB_SECONDS (24 * 3600)

enum { STORE_IS_MANIFEST = 1, STORE_IS_TOMB = 2 };

struct stored {
    unsigned char digest[STORE_DIGEST];
    uint64_t counter, writer; /* version: the larger wins */
    uint64_t when;            /* seconds, of a tombstone */
    uint32_t nbytes;
    uint8_t flags;
};

struct store;

enum store_result { STORE_OK, STORE_STALE, STORE_NONE, STORE_BROKEN };

/* NULL, with the reason printed. */
struct store *store_open(const char *folder);
void store_close(struct store *s);

/* The place of a key on the ring. */
uint64_t store_id(const unsigned char digest[STORE_DIGEST]);

static inline bool store_newer(const struct stored *a, const struct stored *b)
{
    return a->counter != b->counter ? a->counter > b->counter
                                    : a->writer > b->writer;
}

/* Keep a record durably; STORE_STALE if a newer one is there, STORE_OK also if
 * it is this one. STORE_BROKEN: the disk took it not, and nothing changed. */
enum store_result store_put(struct store *s, const struct stored *r,
                            const void *data);

/* The record, and its data in memory that the caller frees (data NULL: not
 * wanted). One whose bytes are damaged is forgotten: STORE_NONE. */
enum store_result store_get(struct store *s,
                            const unsigned char digest[STORE_DIGEST],
                            struct stored *r, unsigned char **data);
void store_drop(struct store *s, const unsigned char digest[STORE_DIGEST]);

/* Up to `most` records whose ids lie in (a, b], going up, behind `after`
 * (NULL: from the beginning). */
size_t store_list(struct store *s, uint64_t a, uint64_t b,
                  const unsigned char *after, struct stored *out, size_t most);

/* What is in (a, b], in 256 buckets: equal where the records are. */
void store_summary(struct store *s, uint64_t a, uint64_t b,
                   uint64_t buckets[256]);

struct store_counts {
    uint64_t records, bytes, files, tombs;
};
struct store_counts store_counts(struct store *s);

#endif
