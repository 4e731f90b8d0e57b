/*
 * cast.h - which interfaces want a group: the state of a multicast router
 *
 * A group is asked for together with its source (RFC 4607), as a pair of
 * addresses. For every pair and interface that wants it there is a wish, with
 * the time at which it ends unless it is repeated. The wishes are exact; they
 * change rarely. Packets are forwarded by the filters beside them (sliced.h),
 * which say for all interfaces at once where a pair is wanted.
 *
 * There are no sockets and no clocks here: the caller tells what it heard and
 * when, and is told whether the pair has to be asked for, or given back, on the
 * interface towards its source. The router and the simulation run this code.
 */
#ifndef BLY_NET_CAST_H
#define BLY_NET_CAST_H

#include "apps/net/sliced.h"

#define CAST_PAIR 32       /* bytes: of the source, then of the group */
#define CAST_FACE_NONE 64  /* no interface */
#define CAST_WISHES 262144 /* that a router keeps at most */

enum cast_change {
    CAST_SAME,
    CAST_FIRST, /* somebody wants the pair now: ask for it */
    CAST_LAST,  /* nobody wants it any more: give it back */
    CAST_FULL   /* no room for it on this interface: nothing changed */
};

struct cast_wish;

struct cast {
    struct sliced groups;
    uint64_t seed;            /* of the hash of pairs */
    uint64_t most;            /* wishes of one interface */
    uint64_t n[SLICED_FACES]; /* wishes of each */
    struct cast_wish *wishes; /* 0 is none */
    uint32_t nwishes, room, free;
    uint32_t *first; /* of the wishes with one hash, in chains */
    uint32_t nfirst; /* a power of two */
};

/* For so many pairs on each interface, with `bits` for each in its filter. An
 * interface gets at most `most`. False: no memory, or too many. */
bool cast_new(struct cast *c, uint64_t groups, double bits, uint64_t most,
              uint64_t seed);
void cast_free(struct cast *c);

/* A pair is wanted on an interface until then, or no longer. */
enum cast_change cast_join(struct cast *c, const unsigned char *pair,
                           unsigned face, uint64_t until);
enum cast_change cast_leave(struct cast *c, const unsigned char *pair,
                            unsigned face);

/* It may be wanted no longer: a wish ends at that time, unless it ends before.
 * False: there is none. */
bool cast_doubt(struct cast *c, const unsigned char *pair, unsigned face,
                uint64_t until);

/* End one wish whose time has come, or any of an interface that is gone (face
 * not CAST_FACE_NONE), looking on from *at, which begins as 0. False: there is
 * none left. *change says what became of its pair, which is copied to `pair`.
 */
bool cast_expire(struct cast *c, uint32_t *at, uint64_t now, unsigned face,
                 unsigned char *pair, enum cast_change *change);

/* The interfaces that get a copy of a packet, according to the filters. It must
 * have arrived on `from`, the interface towards its source: unless that is
 * `up`, none gets one. */
uint64_t cast_copies(const struct cast *c, const unsigned char *pair,
                     unsigned from, unsigned up);

/* The interfaces that want a pair, by the wishes. */
uint64_t cast_wanted(const struct cast *c, const unsigned char *pair);

/* The chance that the filter of an interface takes a pair that is not wanted
 * there for one that is. */
double cast_wrong(const struct cast *c, unsigned face);

/* The pair of wish *at or the next after it, and its interface; false: that was
 * the last. Begin with 0. */
bool cast_next(const struct cast *c, uint32_t *at, unsigned char *pair,
               unsigned *face);

#endif
