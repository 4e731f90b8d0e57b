/*
 * roster.h - who keeps the names of a ring: a list of processes with a number
 *
 * A ring's successor lists follow what each member sees at the moment, and two
 * members can see different things. Who may acknowledge a write must not depend
 * on that. So the processes that keep names agree on a list of themselves, the
 * roster, and each roster has a number, the epoch. A name is kept by the first
 * R processes of the roster at or after its id.
 *
 * A process has an identity, a number that it drew when its folder was made: at
 * the same address there may be another one later, without the records.
 */
#ifndef BLY_ROSTER_H
#define BLY_ROSTER_H

#include "wire/frame.h"
#include "wire/address.h"

#define ROSTER_MOST 256   /* processes */
#define ROSTER_HOLDERS 32 /* of a name, at most */
#define ROSTER_ENTRY 29   /* bytes in a frame */

struct roster_entry {
    uint64_t who;
    struct address address;
    uint16_t vnodes;
};

struct roster {
    uint64_t epoch;
    unsigned n;
    struct roster_entry at[ROSTER_MOST]; /* by their identities, going up */
};

/* Its places on the circle, sorted. */
struct roster_ring {
    size_t n;
    struct roster_place {
        uint64_t id;
        unsigned process; /* which entry */
    } * at;
};

/* The entry of a process, or roster->n. */
unsigned roster_find(const struct roster *r, uint64_t who);
static inline bool roster_has(const struct roster *r, uint64_t who)
{
    return roster_find(r, who) < r->n;
}

/* Whoever has this identity or this address goes, and the entry comes. False:
 * the roster is full. */
bool roster_add(struct roster *r, const struct roster_entry *e);
void roster_drop(struct roster *r, uint64_t who);
bool roster_same(const struct roster *a, const struct roster *b);
/* More than half of its processes. */
static inline unsigned roster_majority(const struct roster *r)
{
    return r->n / 2 + 1;
}

/* False: no memory. */
bool roster_places(const struct roster *r, struct roster_ring *out);
void roster_places_free(struct roster_ring *ring);

/* Which entries keep an id, the first being its primary: at most `copies`. */
size_t roster_holders(const struct roster_ring *ring, uint64_t id,
                      size_t copies, unsigned *out);

void roster_put_entry(struct blob *b, const struct roster_entry *e);
bool roster_take_entry(struct body *b, struct roster_entry *e);
void roster_put(struct blob *b, const struct roster *r);
/* False: it is not a roster, nobody is in it, or somebody is in it twice. */
bool roster_take(struct body *b, struct roster *r);

#endif
