/*
 * range_text.h - ranges as people write them
 */
#ifndef BLY_CLI_RANGE_TEXT_H
#define BLY_CLI_RANGE_TEXT_H

#include "io/pipeline.h"

/* The two ends, as text for bly_has_ranges_as(); in `room` where they are not
 * written so. */
struct range_text {
    bly_bytes a, b;
    char room[2][24];
};

/* Read A..B. Where keys are integers, an end may be an address of IPv4 or a
 * time, which is in seconds since 1970, and the whole may be a network,
 * 10.0.0.0/8, a date or a month. What is wrong with it, or NULL. */
const char *range_read(bly_bytes text, bool integers, struct range_text *out);

/* Pick those of a batch of ranges that f, which can be asked so, may have a key
 * of. A malformed one fails, and b->why names it. */
bly_status ranges_ask(const bly_filter *f, struct batch *b);

#endif
