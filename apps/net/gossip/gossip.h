/*
 * gossip.h - a peer that tells others what it has, as a state machine
 *
 * Every peer keeps a directory: for each peer an address, a version, and the
 * filter of its words (gossip_summary.h). A change becomes a rumour: in each
 * interval its holder tells one random peer the numbers of the versions that
 * are new to it; a peer that lacks one fetches it and passes it on. After a
 * number of peers in a row that knew it already, a rumour is no longer told.
 * Now and then a peer also compares sums of its whole directory with another's,
 * and fetches what it lacks, so that whoever was missed, or away, gets
 * everything.
 *
 *     (state, event) -> (state, actions)
 *
 * Events come by the functions below: a message, a timer, a question that
 * nobody answered. Actions go to a struct gossip_host: ask this, call me then.
 * There is no socket and no clock in here: time is an argument, and chance
 * comes from a seed. So the same code runs in a simulator (gossip_sim.c), under
 * random schedules (tests/test_gossip.c) and over TCP (gossip_node.c).
 *
 * Only a peer itself makes versions of its entry. One that comes back and hears
 * of a version of its own that is newer than it knows, because its clock has
 * gone back, goes on behind that one.
 *
 * After Cuenca-Acuna, Peery, Martin and Nguyen, PlanetP, HPDC 2003.
 */
#ifndef BLY_GOSSIP_H
#define BLY_GOSSIP_H

#include "apps/net/gossip/gossip_summary.h"
#include "wire/address.h"

#define GOSSIP_BUCKETS 64                  /* sums of a directory */
#define GOSSIP_TOLD 64                     /* rumours in a message */
#define GOSSIP_FETCH 1024                  /* entries in a question for them */
#define GOSSIP_PAYLOAD ((size_t)256 << 10) /* bytes of entries in an answer */
#define GOSSIP_ASKED 16                    /* questions under way */
#define GOSSIP_PEERS 16384                 /* a directory has no more */
#define GOSSIP_LAST (UINT64_C(1) << 62)    /* versions are below */
#define GOSSIP_LIVES 1024                  /* see gossip_init() */

/* Milliseconds, like all times here. */
struct gossip_rules {
    uint64_t interval;   /* between rumours */
    uint64_t compare;    /* between comparisons of directories */
    unsigned enough;     /* peers in a row that knew a rumour end it */
    uint64_t dead;       /* of silence, after which a filter is dropped */
    size_t most_peers;   /* at most GOSSIP_PEERS */
    uint64_t most_bytes; /* of filters of others on the way; past that they are
                            dropped */
};

struct gossip_entry {
    uint64_t id, version; /* 0: an address alone */
    struct address address;
    struct summary *summary; /* NULL: it is not known, or not any more */
    uint64_t again;          /* not asked before that */
    uint64_t since;          /* it has been silent */
    uint8_t silent;          /* times in a row */
    uint8_t knew;            /* peers in a row that knew it */
    bool hot;                /* it is a rumour */
    bool whole;              /* the last delta did not fit: ask for all of it */
};

/* ---------------------------------------------------------------- messages */

enum gossip_type {
    GOSSIP_RUMOUR = 32, /* these are new; answer: which of them you knew */
    GOSSIP_COMPARE,     /* my sums; answer: your entries where yours differ */
    GOSSIP_FETCH_THESE  /* entries, and the versions I have; answer: entries */
};

struct gossip_pair {
    uint64_t id, version;
};

/* An entry on its way. */
struct gossip_news {
    uint64_t id, version;
    struct address address;
    struct summary *summary; /* NULL: dropped; or `bad`: what came did not
                                fit */
    bool bad;
    uint64_t have; /* of an answer to be sent: the version that the asker has */
};

struct gossip_message {
    uint8_t type; /* enum gossip_type */
    bool answer;
    uint32_t request;
    struct address from; /* of a question */
    uint64_t knew;       /* of an answer to RUMOUR: a bit for each */
    uint32_t sums[GOSSIP_BUCKETS];
    struct gossip_pair *pairs;
    size_t npairs;
    struct gossip_news *news;
    size_t nnews;
};

/* Free what a message holds. */
void gossip_message_free(struct gossip_message *m);

/* ------------------------------------------------------------------- state */

struct gossip;

enum gossip_timer { GOSSIP_TIMER_RUMOUR, GOSSIP_TIMER_COMPARE };

struct gossip_host {
    /* Ask; gossip_answer() or gossip_silent() of its request follows, not from
     * inside of this call. The message is borrowed. */
    void (*ask)(struct gossip *g, const struct address *to,
                const struct gossip_message *m);
    void (*timer)(struct gossip *g, enum gossip_timer t, uint64_t delay);
};

struct gossip_asked {
    uint32_t request; /* 0: none */
    uint8_t type;
    uint64_t id;
    struct address to;
    struct gossip_pair *pairs; /* of RUMOUR and FETCH_THESE */
    size_t npairs;
};

struct gossip_counts {
    uint64_t rumours, compared, fetched, deltas, answered, silent, refused;
};

struct gossip {
    const struct gossip_rules *rules;
    const struct gossip_host *host;
    void *ctx; /* the host's */
    uint64_t now, random;
    uint64_t life;                /* the end of its versions */
    struct gossip_entry *entries; /* the first is this peer itself */
    size_t n, room;
    uint32_t *slots; /* by id: the number of an entry and one */
    size_t nslots;
    uint64_t bytes; /* of filters */
    uint32_t sums[GOSSIP_BUCKETS];
    struct address *seeds; /* who is asked as long as nobody else is known */
    size_t nseeds;
    uint32_t last_request;
    struct gossip_asked asked[GOSSIP_ASKED];
    struct gossip_counts counts;
};

/* ------------------------------------------------------------------ events */

uint64_t gossip_id(const struct address *a);

/* A peer at this address, which knows nobody yet but may ask the seeds, copied.
 * Its versions begin at `version`, such as the time of day when it starts, in
 * milliseconds. Clocks go back, and a version that it had in an earlier life,
 * with other words, would be taken for known: so they end in some bits of the
 * seed, which is another in each life. False: no memory. gossip_free() in any
 * case. */
bool gossip_init(struct gossip *g, const struct gossip_rules *rules,
                 const struct gossip_host *host, void *ctx,
                 const struct address *self, const struct address *seeds,
                 size_t nseeds, uint64_t version, uint64_t seed);
void gossip_free(struct gossip *g);

/* Begin: timers, and a question to a seed. */
void gossip_start(struct gossip *g, uint64_t now);

/* The words of this peer have changed: a new version with this summary, which
 * is held. */
void gossip_publish(struct gossip *g, struct summary *s, uint64_t now);

void gossip_tick(struct gossip *g, enum gossip_timer t, uint64_t now);

/* A question; the answer is made, and to be freed. False: no memory, or the
 * question is malformed. */
bool gossip_question(struct gossip *g, const struct gossip_message *q,
                     struct gossip_message *answer, uint64_t now);
void gossip_answer(struct gossip *g, uint32_t request,
                   const struct gossip_message *m, uint64_t now);
void gossip_silent(struct gossip *g, uint32_t request, uint64_t now);

/* ----------------------------------------------------------------- helpers */

struct gossip_entry *gossip_find(const struct gossip *g, uint64_t id);

/* Take an entry as it is, as if it had been fetched; for simulations that begin
 * with a whole directory. False: no memory, or no room. */
bool gossip_take(struct gossip *g, const struct gossip_news *news, bool hot);

/* Is it a rumour that somebody still tells? */
size_t gossip_hot(const struct gossip *g);

#endif
