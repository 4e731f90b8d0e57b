/*
 * chord.h - a member of a Chord ring, as a state machine
 *
 * Identifiers lie on a circle of 2^bits. A key belongs to the first member at
 * or after it. Each member knows the r members behind it (its list), the one
 * before it, and for speed one member at each distance 2^k (its fingers).
 *
 *     (state, event) -> (state, actions)
 *
 * Events come by the functions below: a message, a timer, a request that nobody
 * answered. Actions go to a struct chord_host: send this, call me then, this
 * was found. There is no socket and no clock in here: time is an argument, and
 * chance comes from a seed. So the same code runs in a simulator (chord_sim.c),
 * under random schedules (chord_schedule.c) and over TCP (chord_node.c).
 *
 * The rules of maintenance are those that were proved [3]; the first published
 * ones [1][2] do not keep the ring, and stand in chord_2001.c so that this can
 * be shown.
 *
 * [1] Stoica, Morris, Karger, Kaashoek, Balakrishnan, Chord, SIGCOMM 2001
 * [2] the same and others, ToN 11(1), 2003
 * [3] Zave, Reasoning about Identifier Spaces: How to Make Chord Correct, 2017
 */
#ifndef BLY_CHORD_H
#define BLY_CHORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHORD_MOST_SUCC 32
#define CHORD_MOST_BITS 64
#define CHORD_MOST_PEERS (1 + CHORD_MOST_SUCC + CHORD_MOST_BITS)
#define CHORD_NAMED_DEAD 16 /* ids in a question that the asker found dead */
#define CHORD_DEAD 32
#define CHORD_SEEN 16
#define CHORD_HOPS 3 /* next nodes that an answer names */
#define CHORD_NEXT 8 /* or candidates */
#define CHORD_PATH 8
#define CHORD_MOST_WALKS 16

/* Somebody on the ring. `at` is what the host reaches it by; 0: a placeholder
 * without an address, which counts as dead and is never asked. */
struct chord_peer {
    uint64_t id;
    uint32_t at;
};

/* What all members of a ring have in common, and how this one behaves. */
struct chord_ring {
    unsigned bits;    /* 3 to 64 */
    unsigned r;       /* length of lists, 1 to CHORD_MOST_SUCC */
    bool rules_2001;  /* the first published rules */
    bool no_lists;    /* lookups go by fingers and the first successor alone */
    unsigned trust;   /* a lookup ends: 0 where the candidate says so; 1 at a
                         first successor; 2 at anybody in a list: to compare */
    unsigned fingers; /* refreshed in each period */
    unsigned walks;   /* lookups at once, 1 to CHORD_MOST_WALKS */

    /* Milliseconds; 0: never. */
    uint64_t stabilise, check, finger, merge, join;
    uint64_t dead_for, dead_most; /* doubling from the one to the other */
};

/* ---------------------------------------------------------------- messages */

enum chord_type {
    CHORD_PING = 1,
    CHORD_STATE,
    CHORD_NOTIFY,
    CHORD_STEP,
    CHORD_GET, /* files, from here on: chord_files.h */
    CHORD_PUT,
    CHORD_DEL,
    CHORD_RANGE,
    CHORD_LIST,
    CHORD_LEAVING,
    CHORD_NTYPES
};

/* What the answer to a STEP is. */
enum chord_kind {
    CHORD_OWNER = 1, /* I own it: my predecessor, then my list */
    CHORD_CANDIDATE, /* one of these, best first */
    CHORD_NEARER,    /* ask these, best first */
    CHORD_BACK       /* not I: ask my predecessor */
};

enum {
    CHORD_FINGERS = 1, /* of a STATE: with fingers */
    CHORD_NAMED = 2    /* of a STEP: you were named as a candidate */
};

struct chord_message {
    uint8_t type;  /* enum chord_type */
    bool answer;   /* not a question */
    bool refused;  /* of an answer: not a member */
    uint8_t kind;  /* of an answer to STEP */
    uint8_t flags; /* of a question */
    uint32_t request;
    uint64_t target; /* STEP */
    unsigned npeers, ndead;
    uint64_t dead[CHORD_NAMED_DEAD];
    struct chord_peer peers[CHORD_MOST_PEERS];
};

/* ------------------------------------------------------------------- state */

enum chord_purpose { CHORD_APP, CHORD_FINGER, CHORD_JOIN, CHORD_MERGE };

/* A lookup under way. What every step needs comes first: it is two cache
 * lines. Its request is in the node's `walking`. */
struct chord_walk {
    uint8_t purpose, k;
    bool named;      /* who is asked was named as a candidate */
    bool again;      /* who is asked has answered before: not one more hop */
    bool candidates; /* that is what `next` are */
    uint8_t nnext, inext, npath, ndead;
    uint16_t contacts, hops, timeouts;
    uint64_t target, tag;
    struct chord_peer asked, answered;
    struct chord_peer next[CHORD_NEXT], path[CHORD_PATH];
    uint64_t dead[CHORD_NAMED_DEAD];
};

enum chord_phase { CHORD_OUT, CHORD_JOINING, CHORD_IN, CHORD_LEFT };

struct chord_host;

/* In the order of their use: a simulated ring is larger than any cache, so what
 * a message needs should lie together. Most of `fing` is never read, since the
 * lower half of the fingers is the first successor. */
struct chord {
    const struct chord_ring *ring;
    const struct chord_host *host;
    void *ctx; /* the host's */
    uint64_t now, random;
    struct chord_peer self, pred;
    struct chord_peer before; /* the one before pred, as pred said; for lookups
                                 alone, and perhaps nobody */
    uint8_t phase;            /* enum chord_phase */
    bool pred_known;          /* false only under the rules of 2001 */
    bool uncertain; /* it did not answer: the left end may be further back */
    bool buried;    /* somebody was; not: nothing in `dead` is looked at */
    uint8_t nseen, next_finger;

    /* What is under way. */
    bool notified;
    uint8_t stage, join_stage; /* of stabilisation and joining; 0: none */
    uint16_t walks_used;       /* a bit for each */
    uint32_t last_request, stage_request, check_request, join_request,
        merge_request;
    uint32_t walking[CHORD_MOST_WALKS]; /* requests of walks */
    struct chord_walk *walks; /* ring->walks of them, the caller's memory */

    struct chord_peer succ[CHORD_MOST_SUCC];
    struct chord_peer fing[CHORD_MOST_BITS];
    struct chord_peer seen[CHORD_SEEN];
    struct chord_peer stage_peer, checked, notifier, join_peer, join_via,
        merge_peer;
    unsigned join_steps;
    unsigned lost; /* since its list died: attempts to join, and one */
    struct {
        uint64_t id, until;
        unsigned times;
    } dead[CHORD_DEAD];

    uint64_t nsent, nstabilised, ntimeouts;
};

/* ----------------------------------------------------------------- actions */

enum chord_timer {
    CHORD_TIMER_STABILISE,
    CHORD_TIMER_CHECK,
    CHORD_TIMER_FINGER,
    CHORD_TIMER_MERGE,
    CHORD_TIMER_JOIN,
    CHORD_NTIMERS
};

enum chord_news {
    CHORD_JOINED,
    CHORD_ALONE,    /* nobody in the list answers; it joins again */
    CHORD_NEW_PRED, /* keys may now belong to it, or to this node */
    CHORD_NEW_SUCC  /* somebody else keeps copies */
};

struct chord_found {
    uint64_t tag, target;
    bool ok;
    struct chord_peer owner;
    unsigned npeers; /* the owner's predecessor and its list */
    struct chord_peer peers[1 + CHORD_MOST_SUCC];
    unsigned hops, timeouts;
};

struct chord_host {
    /* A question whose request is not 0 is followed by chord_receive() of its
     * answer or by chord_silent(). */
    void (*send)(struct chord *n, struct chord_peer to,
                 const struct chord_message *m);
    /* Call chord_tick() with this timer after so many milliseconds. */
    void (*timer)(struct chord *n, enum chord_timer t, uint64_t delay);
    void (*found)(struct chord *n, const struct chord_found *f);
    void (*news)(struct chord *n, enum chord_news what);
};

/* ------------------------------------------------------------------ events */

/* The state of a node that is in no ring. walks has ring->walks elements. */
void chord_init(struct chord *n, const struct chord_ring *ring,
                const struct chord_host *host, void *ctx,
                struct chord_peer self, struct chord_walk *walks,
                uint64_t seed);

/* Be alone on a ring; be one of `count` members, sorted by id and this one
 * among them, in the ideal state; join through a member. */
void chord_alone(struct chord *n, uint64_t now);
void chord_ideal(struct chord *n, const struct chord_peer *members,
                 size_t count, uint64_t now);
void chord_join(struct chord *n, struct chord_peer via, uint64_t now);

/* Tell both neighbours, and answer no more. */
void chord_leave(struct chord *n, uint64_t now);

void chord_tick(struct chord *n, enum chord_timer t, uint64_t now);
void chord_receive(struct chord *n, struct chord_peer from,
                   const struct chord_message *m, uint64_t now);
void chord_silent(struct chord *n, uint32_t request, uint64_t now);

/* Look up the owner of an id; found() follows, perhaps at once. False: too many
 * are under way. */
bool chord_lookup(struct chord *n, uint64_t id, uint64_t tag, uint64_t now);

/* ----------------------------------------------------------------- helpers */

/* Strictly between, going up from a to b; all but a where both are one. */
static inline bool chord_between(uint64_t a, uint64_t x, uint64_t b)
{
    if (a < b)
        return a < x && x < b;
    return a == b ? x != a : x > a || x < b;
}

/* In (a, b]: all ids where both are one. */
static inline bool chord_within(uint64_t a, uint64_t x, uint64_t b)
{
    return x == b || a == b || chord_between(a, x, b);
}

static inline uint64_t chord_mask(const struct chord_ring *ring)
{
    return ring->bits < 64 ? (UINT64_C(1) << ring->bits) - 1 : UINT64_MAX;
}

/* Everybody that the state of this node names, some of them repeatedly. */
void chord_named(const struct chord *n,
                 void (*each)(void *ctx, struct chord_peer p), void *ctx);

/* Does this node think that it is dead? */
bool chord_is_dead(const struct chord *n, uint64_t id);

/* Answer a STEP question, without sending it. */
void chord_step(const struct chord *n, const struct chord_message *question,
                struct chord_message *answer);

/* ------------------------------------------- between the files of this core */

/* Whether p is known as dead here or in a list of named ones. */
bool chord_gone(const struct chord *n, const uint64_t *dead, unsigned ndead,
                struct chord_peer p);
uint32_t chord_ask(struct chord *n, struct chord_peer to,
                   struct chord_message *m);
void chord_bury(struct chord *n, uint64_t id);
void chord_see(struct chord *n, struct chord_peer p);
struct chord_peer chord_met(struct chord *n);
void chord_timer(struct chord *n, enum chord_timer t, uint64_t period);
uint64_t chord_random(struct chord *n);
void chord_notify(struct chord *n, struct chord_peer to);
void chord_stabilise(struct chord *n);
void chord_enter(struct chord *n);
void chord_guess_fingers(struct chord *n, const struct chord_peer *known,
                         size_t count);
void chord_lost(struct chord *n);

/* Lookups: chord_walk.c. */
struct chord_walk *chord_walk_new(struct chord *n, enum chord_purpose purpose,
                                  uint64_t target);
void chord_walk_start(struct chord *n, struct chord_walk *w,
                      const struct chord_peer *via);
bool chord_walk_answer(struct chord *n, const struct chord_message *m);
bool chord_walk_silent(struct chord *n, uint32_t request);
void chord_walk_done(struct chord *n, struct chord_walk *w,
                     const struct chord_message *owner);
void chord_fix_fingers(struct chord *n);
void chord_finger_found(struct chord *n, unsigned k, struct chord_peer p);

/* Joining and merging: chord_join.c. */
void chord_join_again(struct chord *n);
void chord_join_found(struct chord *n, const struct chord_found *f,
                      struct chord_peer last);
bool chord_join_answer(struct chord *n, const struct chord_message *m);
bool chord_join_silent(struct chord *n, uint32_t request);
void chord_merge(struct chord *n);
void chord_merge_found(struct chord *n, const struct chord_found *f);

/* The rules of 2001: chord_2001.c. */
void chord_2001_stabilise(struct chord *n);
void chord_2001_answer(struct chord *n, const struct chord_message *m);
void chord_2001_silent(struct chord *n);
void chord_2001_notified(struct chord *n, struct chord_peer from);
void chord_2001_joined(struct chord *n, struct chord_peer owner);

#endif
