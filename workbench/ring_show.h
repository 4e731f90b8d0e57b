/*
 * ring_show.h - a ring to look at, from a line: ring show and explain --ring
 */
#ifndef BLY_CLI_RING_SHOW_H
#define BLY_CLI_RING_SHOW_H

#include "apps/node/chord_files.h"

struct ring_show {
    struct node_args node; /* to ask a live ring */
    uint64_t bits;
    const char *from, *find, *plot;
    bool json, words; /* words: step by step, without the circle */
};

/* YES, or TROUBLE with the reason printed. */
int ring_show(const struct ring_show *s, const struct list *ids);

#endif
