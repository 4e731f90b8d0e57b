/*
 * hearer.h - the digests of peers, kept up to date by what they tell
 */
#ifndef BLY_DIGEST_HEARER_H
#define BLY_DIGEST_HEARER_H

#include "apps/digest/teller.h"

struct peer {
    const char *name; /* n bytes of it */
    size_t nname;
    const char *text; /* NAME=HOST:PORT, as it was given */
};

struct peer_counts {
    bool heard; /* there is a digest */
    uint64_t entries, wholes, deltas, bytes;
    uint64_t refused;   /* updates that could not be right */
    uint64_t greetings; /* connections */
};

struct hearers;

/* Listen to peers, in a thread for each. max_size: bytes of a digest. NULL,
 * with the reason printed. What is passed must stay. */
struct hearers *hearers_open(const struct peer *peers, size_t n,
                             uint64_t max_size,
                             const struct secure_secret *secret);

/* Wait until each has told its digest, at most so long. False: not all. */
bool hearers_wait(struct hearers *h, uint64_t ms);

/* May peer i have this URL, METHOD URL or MD5? Not if it was not heard, and not
 * if that is none. */
bool hearers_ask(struct hearers *h, size_t i, bly_bytes key);

struct peer_counts hearers_count(struct hearers *h, size_t i);
void hearers_close(struct hearers *h);

#endif
