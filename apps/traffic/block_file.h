/*
 * block_file.h - a block list: a filter whose keys are prefixes
 *
 * An ordinary .bly, whose keys are those of prefix_key(). All lengths are in
 * one filter, since the length is part of the key; which of them occur is noted
 * in the file, longest first, and only these are asked for:
 *
 *     list      prefixes
 *     lengths4  32 24 16
 *     lengths6  128 64
 *
 * An address is asked for once per length, and may be hit by mistake each time.
 * The filter is therefore planned with the rate that was asked for divided by
 * the number of lengths, so that the rate holds per packet.
 */
#ifndef BLY_TRAFFIC_BLOCK_FILE_H
#define BLY_TRAFFIC_BLOCK_FILE_H

#include <bloomery.h>

#include "apps/traffic/prefix.h"

struct block_file {
    bly_filter *filter;
    struct prefix_lengths lengths;
};

struct block_plan {
    double fpr;     /* per packet */
    uint64_t ttl;   /* seconds; 0: entries stay */
    uint64_t items; /* to be planned for; 0: as many as there are */
    uint64_t seed;
    const unsigned char *secret; /* NULL: none */
};

/* The filter of a sorted set. Without a ttl of kind "blocked" with k = 8, which
 * the kernel can ask; with one of kind "aging", a rotating pair. */
bly_status block_make(const struct prefix_set *set,
                      const struct block_plan *plan, struct block_file *out);

/* Add a sorted set to a filter, whose notes get the lengths that are new; in an
 * aging one the entries are as old as its last tick. */
bly_status block_add(bly_filter *f, const struct prefix_set *set);

/* Open the list in path, as of now. False, with the reason printed. */
bool block_open(const char *path, const unsigned char *secret,
                struct block_file *out);
void block_close(struct block_file *b);

/* The lengths that f notes; false if it is not a list of prefixes. */
bool block_lengths(const bly_filter *f, struct prefix_lengths *out);

/* The length by which an address is listed; -1: it certainly is not. */
int block_match(const struct block_file *b, uint8_t version,
                const unsigned char *address);

#endif
