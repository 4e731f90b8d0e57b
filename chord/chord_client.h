/*
 * chord_client.h - a ring's members asked from outside, one answer at a time
 *
 * The lookups are those of chord_walk.c; what waits is the caller. Used by the
 * commands put, get, rm and ls, and by the threads of a node that keep copies.
 */
#ifndef BLY_CHORD_CLIENT_H
#define BLY_CHORD_CLIENT_H

#include "wire/call.h"
#include "chord/chord_store.h"
#include "chord/chord_wire.h"
#include "chord/chord_record.h"

enum { /* types beside enum chord_type */
       CHORD_STATUS = 32,
       CHORD_LEAVE,
       CHORD_USES = 56, /* u64 epoch, u64 seed -> u64 who, filter of digests */
       CHORD_UNUSED     /* digest: drop it, if you have found it unused, too */
};
#define CHORD_REPLICA 0x80 /* flag of a PUT: forward it to nobody */

/* What the members of a ring agree on. Zero: the usual. */
struct chord_params {
    const char *name;
    uint64_t r, copies;
};
#define CHORD_USUAL_R 8
#define CHORD_USUAL_COPIES 3

struct chord_client {
    struct caller call;
    struct book book;
    struct chord_ring ring;
    struct chord n;
    struct chord_walk walk;
    struct address entries[8]; /* members to begin with */
    size_t nentries;
    struct blob blob;
    uint64_t reclaim; /* milliseconds that blocks which were put are kept */
    unsigned nobody;  /* attempts in which no entry answered: names_client.c */
    uint64_t timeout; /* milliseconds for a question, */
    uint64_t wait;    /* and for all attempts at one thing; 0: so many */
    uint64_t until;   /* the end of the attempts under way; 0: none */

    /* The question under way. */
    bool waits, ended;
    struct chord_peer to;
    struct chord_message question;
    struct chord_found found;
};

/* In the caller's memory; client_free() is for what was initialised, even if
 * nothing was asked. The secret outlives it. */
void client_init(struct chord_client *c, const struct chord_params *p,
                 const struct secure_secret *secret, uint64_t timeout);
void client_free(struct chord_client *c);

/* The same in memory of its own; NULL, after printing the reason. */
struct chord_client *client_new(const struct chord_params *p,
                                const struct secure_secret *secret,
                                uint64_t timeout);
/* NULL is allowed. */
void client_close(struct chord_client *c);

/* Attempts at one thing begin. attempts_go_on(): may there be one more? It
 * waits first, 100 ms, doubling up to 3.2 s. All of them, with what they ask,
 * end within c->wait; without it there are `most`. */
void attempts_begin(struct chord_client *c);
bool attempts_go_on(struct chord_client *c, unsigned tries, unsigned most);
/* Before a question: it ends when the attempts do. */
void attempts_hurry(struct chord_client *c, uint64_t most);

/* The owner of an id, its predecessor and its list. False: c->call.why. */
bool client_owner(struct chord_client *c, uint64_t id, struct chord_found *f);

/* The address of a peer that was found; NULL: it has none. */
const struct address *client_address(const struct chord_client *c,
                                     struct chord_peer p);

/* Members of other processes than `owner` that keep copies: one function, so
 * that all agree. How many; at most `most`. */
size_t chord_holders(const struct book *book, const struct address *owner,
                     const struct chord_peer *list, size_t n, size_t most,
                     struct chord_peer *out);

/* --------------------------------------------------------------- one record */

/* Ask one member. The result of a get is in memory that the caller frees; data
 * are compared with their digests. */
enum frame_error client_get_from(struct chord_client *c, struct chord_peer p,
                                 const unsigned char *digest, bool data,
                                 struct stored *r, unsigned char **bytes);
/* *copies is how many were made. */
enum frame_error client_put_to(struct chord_client *c, struct chord_peer p,
                               const struct stored *r, const void *data,
                               bool replica, unsigned *copies);

/* A copy for a holder, in two halves, so that several are written at a time;
 * the request is 0 if it could not be sent. */
void client_send_copy(struct chord_client *c, struct chord_peer p,
                      const struct stored *r, const void *data,
                      uint32_t *request);
bool client_copied(struct chord_client *c, struct chord_peer p,
                   const struct stored *r, const void *data, uint32_t request);

/* From whoever has it; STORE_NONE: nobody says that it has it, all having
 * answered; STORE_BROKEN: nobody could be asked. */
enum store_result client_get(struct chord_client *c,
                             const unsigned char *digest, struct stored *r,
                             unsigned char **bytes);
/* At its owner; false with c->call.why. */
bool client_put(struct chord_client *c, const struct stored *r,
                const void *data, unsigned *copies);

/* Up to 1024 records of a member in (a, b], behind `after`. Negative: none
 * came. */
int client_list(struct chord_client *c, struct chord_peer p, uint64_t a,
                uint64_t b, const unsigned char *after, struct stored *out);
bool client_summary(struct chord_client *c, struct chord_peer p, uint64_t a,
                    uint64_t b, uint64_t buckets[256]);
bool client_state(struct chord_client *c, struct chord_peer p,
                  struct chord_message *answer);

#define CLIENT_LIST 1024

#endif
