/*
 * block_live.h - the part of a list that changes while packets pass
 *
 * Lines of fingerprints with the times at which they end (xdp_layout.h). One
 * writes at a time; the kernel's program reads all the while, without a lock.
 * Entries that do not change are found all the time, but for one that moves
 * from its other line to its first one while its packet is looked at.
 */
#ifndef BLY_TRAFFIC_BLOCK_LIVE_H
#define BLY_TRAFFIC_BLOCK_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bloomery/inline.h>

#include "apps/traffic/prefix.h"
#include "apps/traffic/xdp_layout.h"

/* Zero is none. */
struct live_table {
    struct xdp_line *lines; /* nlines, a power of two */
    struct xdp_hits *hits;  /* eight for each line */
    uint32_t nlines;
};

/* How many lines for so many entries: at most four in each of their seven
 * places, on average. 0: too many. */
uint32_t live_lines(uint64_t entries);
uint64_t live_room(uint32_t lines);

/* The hash of a prefix. */
uint64_t live_hash(const struct xdp_hash *h, const struct prefix *p);

/* Where the key of a hash is: 8 * line + place, or LIVE_NONE. An entry that is
 * over counts until its place is used again. */
#define LIVE_NONE UINT32_MAX
uint32_t live_find(const struct live_table *t, uint64_t hash);
uint32_t live_end(const struct live_table *t, uint32_t place);

/* Is an entry with this end over at a tick? */
bool live_over(uint32_t end, uint32_t now);

/* Add a key that ends at this tick, or set its end. False: no room, and the
 * table is as it was. */
bool live_put(struct live_table *t, uint64_t hash, uint32_t end, uint32_t now);

/* Take an entry away. */
void live_clear(struct live_table *t, uint32_t place);

/* Forget what is over, and count the others. */
struct live_counts {
    uint64_t listed, timed, released, over;
};
struct live_counts live_sweep(struct live_table *t, uint32_t now);

#endif
