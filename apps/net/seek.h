/*
 * seek.h - how a question goes from place to place
 *
 * Two ways. Near: to the link that tells of the fewest hops; no link twice; one
 * step back from a dead end, once; then it gives up. Up and down a hierarchy:
 * to every child that may have it, and to the parent, where the same happens
 * but for the child that the question came from, until the root was asked.
 *
 * Places are numbers of the caller, who asks them and says what they answered:
 * the simulation and `bloomery net find` run this code.
 */
#ifndef BLY_NET_SEEK_H
#define BLY_NET_SEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEK_MOST 64 /* steps of a near question */
#define SEEK_NOBODY UINT32_MAX

struct seek {
    uint32_t way[SEEK_MOST + 1]; /* from the first place to the one asked now */
    unsigned nway, hops, most;
    unsigned backs;              /* steps back that are left */
    uint32_t used[SEEK_MOST][2]; /* links: from, to */
    unsigned nused;
};

/* Begin at a place; with at most so many hops. */
void seek_start(struct seek *s, uint32_t from, unsigned most);

/* The place asked now does not have it, and names links, the best first: the
 * place to ask next. False: give up. */
bool seek_next(struct seek *s, const uint32_t *links, size_t n, uint32_t *to);

struct climb_step {
    uint32_t at;
    uint32_t not ; /* child that it came from; SEEK_NOBODY: none */
    uint32_t from; /* step that led here */
    bool down, found;
};

struct climb {
    struct climb_step *steps; /* asked, then those that will be */
    size_t n, room, most, asked;
    bool cut; /* there was no room for all */
};

/* Begin at a place, with at most so many places; the steps are freed by
 * climb_free(). */
bool climb_start(struct climb *c, uint32_t from, size_t most);
/* The place to ask next; false: all were asked. */
bool climb_next(struct climb *c, uint32_t *at);
/* What it said: children that may have it, its parent or SEEK_NOBODY, and
 * whether it has it itself. */
void climb_heard(struct climb *c, const uint32_t *children, size_t n,
                 uint32_t parent, bool has);
/* Steps down behind which nothing was found. */
uint64_t climb_wasted(struct climb *c);
void climb_free(struct climb *c);

#endif
