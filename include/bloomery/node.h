/*
 * bloomery/node.h - a node of a network, and what it knows about the others
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. A node has keys of its own and links to neighbours, by name. For each
 * link it keeps an attenuated filter: level j says which keys are j hops behind
 * the neighbour. So the node can tell through which link a key is nearest.
 * Neighbours keep each other up to date with messages of a few bytes for each
 * bit that changed.
 *
 *     bly_node *v;
 *     const bly_spec spec = { .items = 1000, .fpr = 0.01 };
 *     if (bly_node_new(&spec, started, 60, &v) || bly_node_link(v, "east") ||
 *         bly_node_add(v, "printer", 7))
 *         errx(2, "%s", bly_error());
 *
 *     st = bly_node_tell(v, "east", send_to_east, &conn, NULL);
 *     st = bly_node_hear(v, "east", message, nbytes, now, NULL);
 *     st = bly_node_tick(v, now, NULL);
 *
 *     bly_way way;
 *     if (bly_node_find(v, "scanner", 7, &way, 1))
 *         printf("%s, %u hops\n", way.link ? way.link : "here", way.hops);
 *
 * There are no sockets and no clocks inside: the caller carries messages and
 * says what time it is, so that a simulator and a network run the same code.
 * docs/node.md shows a network of four.
 */
#ifndef BLOOMERY_NODE_H
#define BLOOMERY_NODE_H

#include <bloomery.h>

BLY_BEGIN_DECLS

typedef struct bly_node bly_node;

#define BLY_LINK_NAME_MOST 255 /* bytes in the name of a link */
#define BLY_LINKS_MOST 65536   /* links of a node */

/* Make a node without keys and links, which belongs to the caller until
 * bly_node_free(). spec describes an attenuated filter with classic levels
 * (kind NULL or "attenuated"). items is the number of keys of a node. The
 * options depth and degree say how far the node sees and how many links lead on
 * from a node. fpr is the rate of the answers of one link once all levels are
 * full. Nodes that talk to each other need equal sizes and hashes, so give all
 * of them the same spec. A spec with a secret also keeps strangers from forging
 * messages. Without one, a forged message of a later life makes those of the
 * real neighbour old until ttl has passed; with ttl 0, for good.
 *
 * `life` numbers the lives of this node, from 1. A node that is started again
 * must get a larger number, otherwise neighbours take its messages for old
 * ones. The time at which it starts will do. What a link has told expires when
 * the neighbour has been silent for `ttl`, in the unit of the caller's clock;
 * 0: never.
 *
 * With spec->max_bytes, calls fail with BLY_ERANGE rather than let the filters
 * of the node take more than that. */
static inline bly_status bly_node_new(const bly_spec *spec, uint64_t life,
                                      uint64_t ttl, bly_node **out);

/* Release v. NULL is allowed. */
void bly_node_free(bly_node *v);

/* ---------------------------------------------------------- keys and links */

/* The hasher of the node's keys. It belongs to v. */
const bly_hasher *bly_node_hasher(const bly_node *v);

/* Add keys of the node's own, and remove them. Keys are counted: a key that was
 * added twice is gone after two removals. BLY_EABSENT proves that a key is not
 * there. Never remove a key that was not added: if it is a false positive,
 * another key is lost instead. A batch of additions cannot fail halfway; a
 * batch of removals goes on after a failure, as bly_remove_hashes() does. */
bly_status bly_node_add(bly_node *v, const void *key,
                        size_t len) BLY_MUST_CHECK;
bly_status bly_node_remove(bly_node *v, const void *key, size_t len);
bly_status bly_node_add_hashes(bly_node *v, const uint64_t *hashes,
                               size_t n) BLY_MUST_CHECK;
bly_status bly_node_remove_hashes(bly_node *v, const uint64_t *hashes, size_t n,
                                  bly_status *each);

/* Add a link, or remove one and forget all that it told. A name is a line of
 * UTF-8 of at most BLY_LINK_NAME_MOST bytes. BLY_EINVAL if a link to be added
 * is there already, or a link to be removed is not; BLY_EFULL at
 * BLY_LINKS_MOST. */
bly_status bly_node_link(bly_node *v, const char *name);
bly_status bly_node_unlink(bly_node *v, const char *name);

typedef struct bly_link {
    const char *name;    /* belongs to v, until the link is removed */
    bool heard;          /* it has told something that has not expired */
    bool lost;           /* a message is missing; the next one sent to the
                            neighbour asks for everything */
    uint64_t heard_at;   /* when it was last heard; 0 unless .heard */
    uint64_t life;       /* of the neighbour; 0 unless .heard */
    uint64_t version;    /* of what it told; 0 unless .heard */
    uint64_t told;       /* version that it was told last; 0: nothing yet */
    double fpr;          /* chance that it leads to a key that is nowhere */
    const bly_filter *f; /* what it told, attenuated: level j for j hops
                            behind the neighbour. NULL unless .heard. Belongs
                            to v until v changes */
} bly_link;

/* Link i, from 0, in the order of their names (by bytes); false past the last
 * one. */
static inline bool bly_node_link_at(const bly_node *v, size_t i, bly_link *out);

typedef struct bly_node_stats {
    unsigned depth;      /* hops that it sees; levels of what a link tells */
    unsigned k;          /* bits that a key sets in a level */
    uint64_t level_bits; /* of each level */
    uint64_t keys;       /* of its own: additions less removals */
    uint64_t links, heard, lost;
    uint64_t life, ttl;
    uint64_t now;   /* the latest time that the caller gave */
    uint64_t bytes; /* of memory held */
    double fpr;     /* chance that a key that is nowhere is found */
} bly_node_stats;

static inline void bly_node_stat(const bly_node *v, bly_node_stats *out);

/* ------------------------------------------------------------------ asking */

/* A way to a key: the link to take, and the number of hops if the filters are
 * right. */
typedef struct bly_way { /* final */
    const char *link;    /* as in bly_link; NULL: the node itself */
    uint32_t index;      /* of the link; UINT32_MAX: the node itself */
    uint32_t hops;       /* 0: here; 1: the neighbour; ... */
    double weight;       /* the sum, over the levels j that may have the key, of
                            (1 - f_j) / 2^j with f_j the rate of the level */
} bly_way;

/* All ways to a key, ordered by hops (fewest first), then by weight (largest
 * first), then by name. The best n of them are written to ways; the result is
 * how many there are in all. 0: the key is not within `depth` hops, as far as
 * the node was told. */
size_t bly_node_find(const bly_node *v, const void *key, size_t len,
                     bly_way *ways, size_t n);
size_t bly_node_find_hash(const bly_node *v, uint64_t hash, bly_way *ways,
                          size_t n);

/* The hops to each of n keys, and the index of the link to take. hops[i] is
 * UINT32_MAX if key i is out of reach; links[i] is UINT32_MAX if it is here or
 * out of reach. If several links need equally many hops, the first is taken.
 * links may be NULL. */
#define BLY_OUT_OF_REACH UINT32_MAX
bly_status bly_node_distances(const bly_node *v, const uint64_t *hashes,
                              size_t n, uint32_t *hops, uint32_t *links);

/* ---------------------------------------------------------------- messages */

/* What became of a message that was heard. */
typedef enum bly_fate {
    BLY_NEWS_TAKEN, /* used: the node knows what the neighbour told it */
    BLY_NEWS_OLD,   /* repeated or late: ignored */
    BLY_NEWS_GAP    /* one before it was lost: not used, and the next message
                       to this neighbour asks for everything */
} bly_fate;

typedef struct bly_news {
    bly_fate fate; /* of a message that was heard */
    bool changes;  /* it says something new, or asks: send it soon */
    bool whole;    /* tells everything, not only what changed */
    bool asks;     /* its sender lost a message and asks for everything */
    uint64_t life; /* of its sender */
    uint64_t from; /* the version that it starts from; 0: it is whole */
    uint64_t to;   /* the version that it leads to; equal to .from: no change */
    uint64_t flips; /* bits that change; 0 if it was not taken */
    uint64_t bytes; /* of the message */
} bly_news;

/* Write the message that tells a neighbour what has changed since the last one:
 * the node's own keys, and what all other links told, one hop further away.
 * put() is called once, with all of the message, and must not use v. If it
 * returns false, the call fails with BLY_EIO, and the next message tells the
 * same again.
 *
 * Call this after each change, and for every link from time to time, so that
 * what the neighbour knows does not expire and lost messages are noticed. A
 * message without .changes only says "still here", and need be sent only for
 * that purpose. */
static inline bly_status bly_node_tell(bly_node *v, const char *link,
                                       bly_put *put, void *ctx, bly_news *info);

/* Take a message that came over a link, from bytes that anyone may have
 * written. It is used whole or not at all. Messages may be lost, repeated or
 * late: see .fate. BLY_EFORMAT if the message is damaged or forged, BLY_EUNFIT
 * if it comes from a node with other sizes or another hash; the node is then
 * unchanged. */
static inline bly_status bly_node_hear(bly_node *v, const char *link,
                                       const void *bytes, size_t nbytes,
                                       uint64_t now,
                                       bly_news *info) BLY_MUST_CHECK;

/* The largest number of bytes that a message between nodes like v can have. */
uint64_t bly_node_news_most(const bly_node *v);

/* Forget what was told by links that have been silent for the ttl. *nexpired,
 * unless NULL, becomes the number of these links. The links stay. A clock that
 * runs backwards changes nothing. */
bly_status bly_node_tick(bly_node *v, uint64_t now, size_t *nexpired);

/* ------------------------------------------------------------------- files */

/* Write v, with its keys, links and what they told: piece by piece, as
 * bly_write() does, or to path, as bly_save() does. */
bly_status bly_node_write(const bly_node *v, bly_put *put,
                          void *ctx) BLY_MUST_CHECK;
bly_status bly_node_save(const bly_node *v, const char *path) BLY_MUST_CHECK;

/* Make a node, which belongs to the caller, from bytes that anyone may have
 * written, or from a file. It begins a new life, whose number must be larger
 * than that of the life it was written in, and tells neighbours everything
 * again. Fails as bly_load() and bly_open() do. A node needs its secret, and
 * cannot be shared. */
static inline bly_status bly_node_load(const void *bytes, size_t nbytes,
                                       uint64_t life, const bly_access *how,
                                       bly_node **out);
static inline bly_status bly_node_open(const char *path, uint64_t life,
                                       const bly_access *how, bly_node **out);

/* ------------------------------------------------- sizes of structs */

/* What is declared `static inline` above: each function passes the size of a
 * struct, as "Versions" says, to the function of the library whose name ends in
 * _sized. */
BLY_SIZED(bly_status, bly_node_new, bly_spec,
          (const bly_spec *spec, uint64_t life, uint64_t ttl, bly_node **out),
          (spec, life, ttl, out));
BLY_SIZED(bool, bly_node_link_at, bly_link,
          (const bly_node *v, size_t i, bly_link *out), (v, i, out));
BLY_SIZED(void, bly_node_stat, bly_node_stats,
          (const bly_node *v, bly_node_stats *out), (v, out));
BLY_SIZED(bly_status, bly_node_tell, bly_news,
          (bly_node *const v, const char *link, bly_put *put, void *ctx,
           bly_news *info),
          (v, link, put, ctx, info));
BLY_SIZED(bly_status, bly_node_hear, bly_news,
          (bly_node *const v, const char *link, const void *bytes,
           size_t nbytes, uint64_t now, bly_news *info),
          (v, link, bytes, nbytes, now, info));
BLY_SIZED(bly_status, bly_node_load, bly_access,
          (const void *bytes, size_t nbytes, uint64_t life,
           const bly_access *how, bly_node **out),
          (bytes, nbytes, life, how, out));
BLY_SIZED(bly_status, bly_node_open, bly_access,
          (const char *path, uint64_t life, const bly_access *how,
           bly_node **out),
          (path, life, how, out));

BLY_END_DECLS
#endif
