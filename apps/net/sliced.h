/*
 * sliced.h - for which of 64 interfaces is this group? Filters side by side
 *
 * A multicast router keeps a filter of groups for each interface. Here the
 * filters lie bit by bit next to each other: word p has bit p of all of them,
 *
 *              interface  63 ...  2 1 0
 *     position 0           .      . 1 .
 *     position 1           1      . 1 1
 *     ...
 *
 * so that the AND of the k words of a group has a one for every interface that
 * it goes to: k words are read, however many interfaces there are. Counters
 * beside the bits, of which a packet reads none, let groups be left.
 *
 * An interface that is wrong costs a superfluous copy, and none is ever missed
 * (after Groenvall, Scalable Multicast Forwarding, 2002).
 */
#ifndef BLY_NET_SLICED_H
#define BLY_NET_SLICED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLICED_FACES 64
#define SLICED_PROBES 16
#define SLICED_BITS (UINT64_C(1) << 28) /* per interface, at most */

struct sliced {
    uint64_t nbits; /* positions */
    unsigned k;
    uint64_t *words;
    uint8_t *counts; /* nbits * SLICED_FACES; 255 stays */
};

/* For so many groups on each interface, with `bits` for each of them. False: no
 * memory, or too many. */
bool sliced_new(struct sliced *s, uint64_t groups, double bits);
void sliced_free(struct sliced *s);

/* The group of this hash is wanted on an interface, or no longer. To leave what
 * was not joined is refused if it can be seen. */
void sliced_join(struct sliced *s, uint64_t hash, unsigned face);
bool sliced_leave(struct sliced *s, uint64_t hash, unsigned face);

/* A bit for each interface. */
uint64_t sliced_faces(const struct sliced *s, uint64_t hash);

/* The chance that one interface is wrong, with n groups on it. */
double sliced_rate(const struct sliced *s, double n);

#endif
