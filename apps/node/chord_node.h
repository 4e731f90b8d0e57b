/*
 * chord_node.h - a process that is one or more members of a ring
 */
#ifndef BLY_CHORD_NODE_H
#define BLY_CHORD_NODE_H

#include <pthread.h>

#include "chord/chord_client.h"
#include "apps/node/names.h"
#include "wire/runtime.h"
#include "chord/service.h"
#include "report/words.h"

#define NODE_VNODES WIRE_MOST_V
#define NODE_WORKERS 4 /* that forward; as many more that do not */
#define NODE_QUEUE 128
#define NODE_SERVICES 4096 /* that a member keeps, in memory */

struct node_spec {
    struct chord_params params;
    const char *listen, *folder;
    struct address entries[8];
    size_t nentries;
    unsigned vnodes, least_copies; /* least 0: two, if there are two nodes */
    uint64_t period, exchange, patience, evict; /* milliseconds */
    uint64_t absence;                           /* seconds */
    uint64_t reclaim;                           /* milliseconds */
    struct secure_secret secret;
    bool json;
};

/* What worker threads know of the ring: a copy, made when it changes. */
struct node_view {
    bool in, uncertain;
    struct chord_peer self, pred;
    struct chord_peer succ[CHORD_MOST_SUCC];
};

struct work {
    uint64_t line;
    struct frame head; /* without its body */
    unsigned char *body;
    size_t nbody;
};

struct work_queue {
    struct work at[NODE_QUEUE];
    size_t n, first;
    pthread_cond_t some;
};

struct done {
    uint64_t line;
    struct frame head;
    enum frame_error error;
    const char *text;
    struct blob body;
    struct done *next;
};

struct node {
    struct node_spec spec;
    struct address address;
    uint64_t incarnation;
    struct chord_ring ring;
    struct chord members[NODE_VNODES];
    struct chord_walk *walks;
    struct runtime *runtime;
    struct store *store;
    struct names names;
    bool named; /* names was made */
    struct book book;
    struct blob blob;
    size_t next_entry;
    struct services services;

    /* The question that is being answered, in the loop's thread. */
    uint64_t line;
    struct frame head;
    bool answered;

    /* Shared with workers. */
    pthread_mutex_t lock;
    pthread_cond_t kept;
    struct node_view views[NODE_VNODES];
    struct descriptor known[NODE_VNODES * (CHORD_MOST_SUCC + 2)];
    size_t nknown;
    struct work_queue front, back;
    struct done *done;
    bool ends, leaves, gone, poked;
    unsigned handed;       /* how many of keeper and ruler have handed over */
    unsigned char *unused; /* digests that the last round found, sorted */
    size_t nunused;
    unsigned char scrubbing[STORE_DIGEST]; /* the keeper's */
    uint64_t reclaimed_at;                 /* likewise */
    uint64_t exchanges, fetched, sent, dropped, scrubbed, reclaimed;
    pthread_t threads[2 * NODE_WORKERS + 2];
    size_t nthreads;
};

/* Run until told to end: YES, or TROUBLE with the reason printed. */
int node_run(const struct node_spec *spec);

/* Answer a question about records; in a worker's thread, with a client of its
 * own. */
void node_serve(struct node *n, struct chord_client *c, struct work *w,
                struct done *d);

/* The thread that keeps copies where they belong, and the one that follows the
 * roster. Each says so when it has handed over all of a node that leaves. */
void *node_keeper(void *node);
void *node_ruler(void *node);
void node_left(struct node *n);

/* Read or begin the roster. False, with the reason printed. */
bool node_names_open(struct node *n);

/* Blocks that nobody uses, and records that rot: chord_reclaim.c. */
void node_reclaim(struct node *n, struct chord_client *c);
void node_scrub(struct node *n);
void node_serve_uses(struct node *n, struct body *b, struct done *d);
void node_serve_unused(struct node *n, struct body *b, struct done *d);

/* Does a member of this process own the key? `to` 0: any of them. */
bool node_owns(struct node *n, uint64_t to, uint64_t id, unsigned *v);

/* A client of this node's own ring, that begins with itself; the view of a
 * member, and its list as peers of the client's book. */
void node_client(const struct node *n, struct chord_client *c);
bool node_view(struct node *n, unsigned v, struct chord_client *c,
               struct node_view *out);

#endif
