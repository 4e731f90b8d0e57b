/*
 * names.h - the names of a ring, kept so that all see one history
 *
 * Blocks never change, so one copy is as good as another. What a name stands
 * for does change, and everybody must see the changes in one order: a put that
 * was acknowledged is what every later get sees, until the next put or rm.
 *
 *     roster   Processes agree on who keeps names (roster.h). The next roster
 * is chosen by a majority of the present one, by Paxos [1]: one decision for
 * each epoch. write    The first holder of a name, its primary, gives the next
 * number to a write, and acknowledges it when ALL holders of the epoch have it
 * on disk. Each takes it only if it is in the same epoch and ready. read The
 * primary asks ALL holders; all have to be in the same epoch and ready. What
 * one lacks it gets before the answer goes out. epoch    Who has adopted a
 * roster answers nothing in earlier epochs. ready    A holder is ready in an
 * epoch when it has the range as one holder of the last epoch before had it, in
 * which writes could have been acknowledged. That one must have adopted the new
 * epoch first.
 *
 * So one holder that lives is enough to keep all that was acknowledged; a
 * minority that is cut off can acknowledge nothing that others do not see; and
 * no clock is asked for any of that. A silent holder stops writes and reads of
 * its names until the majority has left it out.
 *
 * Why reads are not old: a write of a later epoch needs holders that are ready
 * in it, thus a holder of the epoch before that has moved on, and so back to
 * the reader's epoch: one of the holders that the reader asks would refuse.
 *
 * No sockets, no threads and no clocks in here: the host has them. Functions
 * that ask others wait for the answer; `by` is whatever the host asks with.
 *
 * [1] Lamport, Paxos Made Simple, 2001; the division between a roster by
 *     majority and copies at all holders: Lamport, Malkhi, Zhou, Vertical Paxos
 *     and Primary-Backup Replication, 2009
 */
#ifndef BLY_NAMES_H
#define BLY_NAMES_H

#include <pthread.h>

#include "chord/chord_store.h"
#include "apps/node/roster.h"

#define NAMES_PAST 256  /* epochs that are remembered */
#define NAMES_HOLES 64  /* ranges that a holder could not get */
#define NAMES_SERIAL 64 /* writes at once at a primary */
#define NAMES_PAGE 512  /* of a list */
#define NAMES_JOINING 32
#define NAMES_PINGS 16  /* of a large roster, in one round */
#define NAMES_SETTLE 64 /* names that are settled in one round */

/* Types of frames, beside those of the ring and of services. */
enum {
    NAMES_WHO = 34, /* digest -> lineage, epoch, holders, u8 alone? */
    NAMES_READ,     /* digest, u8 data? -> record; of a primary */
    NAMES_WRITE,    /* u64 number before it, or 2^64 - 1: what cannot be read;
                       record -> u8 copies; likewise */
    NAMES_TAKE,     /* u64 epoch, record -> u64 who */
    NAMES_CONFIRM,  /* u64 epoch, digest -> u64 who, u8 what is there, record */
    NAMES_PING,     /* u64 epoch -> u64 who, u64 epoch, u8 ready */
    NAMES_HISTORY,  /* u64 epoch -> lineage, rosters behind it */
    NAMES_LEARN,    /* rosters -> */
    NAMES_REPORT,   /* u64 epoch, u64 from -> u64 who, epochs in which ready */
    NAMES_VOTE,     /* of Paxos: see names_vote.c */
    NAMES_ADMIT,    /* u8 comes?, entry -> lineage, u64 epoch */
    NAMES_LIST,     /* u8 as primary?, a, b, u8 and after -> records */
    NAMES_GET,      /* digest -> record, from this process alone */
    NAMES_END
};

struct names_host {
    /* Ask a process; 0, or what went wrong. The answer is borrowed until the
     * next question of `by`. */
    enum frame_error (*ask)(void *by, const struct address *to, uint8_t type,
                            struct blob *question, struct frame *answer);
    /* Keep the state durably. */
    bool (*save)(void *ctx, const void *bytes, size_t n);
    /* The records, as in chord_store.h; `list` of names alone. */
    enum store_result (*get)(void *ctx, const unsigned char *digest,
                             struct stored *r, unsigned char **data);
    enum store_result (*put)(void *ctx, const struct stored *r,
                             const void *data);
    void (*drop)(void *ctx, const unsigned char *digest);
    size_t (*list)(void *ctx, uint64_t a, uint64_t b,
                   const unsigned char *after, struct stored *out, size_t most);
    /* The two halves of ask(), so that several are asked at a time; NULL: one
     * after another. */
    bool (*send)(void *by, const struct address *to, uint8_t type,
                 struct blob *question, uint32_t *request);
    enum frame_error (*take)(void *by, const struct address *to,
                             uint32_t request, struct frame *answer);
};

struct names_epoch {
    struct roster roster;
    struct roster_ring ring;
    bool ready;
    unsigned nholes;
    struct {
        uint64_t a, b; /* not ready for ids in (a, b] */
    } holes[NAMES_HOLES];
};

struct names_ballot {
    uint64_t round, who;
};

struct names {
    const struct names_host *host;
    void *ctx;
    struct roster_entry self;
    size_t copies; /* R */
    size_t least;  /* copies that a write needs; 0: two if there are two */

    /* Held for reading while something is answered in an epoch, so that the
     * epoch lasts until it is on disk. */
    pthread_rwlock_t lock;
    uint64_t lineage; /* of the first roster; 0: knows none yet */
    struct names_epoch *past[NAMES_PAST];
    unsigned npast; /* the last is the present one */
    struct names_ballot promised, accepted;
    struct roster offered; /* what was accepted; epoch 0: nothing */

    pthread_mutex_t serial[NAMES_SERIAL];

    /* Between those who serve and the one who ticks. */
    pthread_mutex_t wants;
    struct roster_entry coming[NAMES_JOINING];
    uint64_t going[NAMES_JOINING];
    unsigned ncoming, ngoing;
    bool behind, unsettled, stranger;
    bool alone;  /* half of the roster or more have been silent for `evict` */
    bool merges; /* its names are older than its roster, */
    bool offers; /* and have not been given to those who keep them */

    /* Of names_tick() alone. */
    struct names_heard {
        uint64_t who, since; /* silent since, 0: it is not */
        bool silent;         /* at the last time */
    } heard[ROSTER_MOST];
    unsigned nheard;
    uint64_t heard_epoch;
    uint64_t round;
    uint64_t random;
    bool settling;                       /* names_settle() is on its way, */
    unsigned char settled[STORE_DIGEST]; /* behind this one */
};

/* `who` 0: draws one from the seed. False: no memory. */
bool names_init(struct names *m, const struct names_host *host, void *ctx,
                const struct roster_entry *self, size_t copies, size_t least,
                uint64_t seed);
void names_free(struct names *m);

/* What names_host.save() was given. NULL, or why it cannot be used. */
const char *names_load(struct names *m, const void *bytes, size_t n);

/* Be the first of a roster. False: it cannot be saved. */
bool names_found(struct names *m);

/* Answer a question. 0 and the body of the answer in out, which is begun; or a
 * code and a text. */
enum frame_error names_serve(struct names *m, void *by, uint8_t type,
                             const void *body, size_t n, struct blob *out,
                             const char **text);

/* What has to be done now and then: ask others whether they live, take them in,
 * leave out those who have been silent for `evict` milliseconds, learn of new
 * rosters, and become ready. `entries` are addresses to join through. */
void names_tick(struct names *m, void *by, const struct address *entries,
                size_t nentries, uint64_t now, uint64_t evict);

/* Leave the roster: true if it is done and all that stay are ready. */
bool names_leave(struct names *m, void *by);

/* Bring names to the same state at all holders: those that a write left in
 * between, and those that are damaged here; some of them each time, so that
 * ticks do not wait. True: nothing is left to do. */
bool names_settle(struct names *m, void *by);
/* Drop names that others keep now: how many. */
size_t names_strays(struct names *m, void *by);

struct names_state {
    uint64_t epoch;
    unsigned n;     /* processes of the roster; 0: none is known */
    bool in, ready; /* a member of it; and ready, without holes */
    size_t least;   /* copies that a write needs now */
};
struct names_state names_state(struct names *m);
/* Have half of the roster or more been silent for so long that they would be
 * left out, if only there were a majority for it? Then what needs one of them
 * can wait for its return alone. */
bool names_alone(struct names *m);
/* A copy of the present roster; false: there is none. */
bool names_roster(struct names *m, struct roster *out);

/* ---------------------------------------- between the files of this machine */

/* With the lock held. */
struct names_epoch *names_now(const struct names *m);
bool names_ready_at(const struct names_epoch *e, uint64_t id);
bool names_save(struct names *m);
/* Adopt the roster that follows the present one. */
bool names_adopt(struct names *m, const struct roster *r);

enum frame_error names_ask(struct names *m, void *by, const struct address *to,
                           uint8_t type, struct blob *q, struct frame *f);
/* Ask several the same; each() gets what came of it, in their order. Whoever
 * asks this way may be heard twice. */
typedef void names_each(void *ctx, size_t i, enum frame_error e,
                        const struct frame *f);
void names_ask_all(struct names *m, void *by, const struct roster_entry *to,
                   size_t n, uint8_t type, struct blob *q, names_each *each,
                   void *ctx);
/* A question begins with the lineage. */
void names_begin(struct names *m, struct blob *q);
/* Bring another to this epoch, or this one to that of another. */
bool names_teach(struct names *m, void *by, const struct roster_entry *e,
                 uint64_t epoch);
bool names_learn(struct names *m, void *by, const struct address *from);

enum frame_error names_serve_vote(struct names *m, struct body *b,
                                  struct blob *out, const char **text);
/* Was it silent when it was last asked? Of the thread that ticks. */
bool names_is_silent(const struct names *m, uint64_t who);
/* Try to have a roster chosen; true: some roster was, perhaps another. Whoever
 * promises its vote lives, and stays unless it is among those who leave. */
bool names_propose(struct names *m, void *by, const struct roster *wanted,
                   const uint64_t *leaving, unsigned nleaving);

enum frame_error names_serve_files(struct names *m, void *by, uint8_t type,
                                   struct body *b, struct blob *out,
                                   const char **text);
void names_sync(struct names *m, void *by);

#endif
