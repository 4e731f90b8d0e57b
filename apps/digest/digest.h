/*
 * digest.h - what Squid leaves behind, and what neighbours save each other
 *
 * Readers of the files in which a proxy names what it has (access.log, lists
 * of URLs, swap.state), and a replay of requests that compares asking all
 * neighbours with knowing summaries of their caches.
 */
#ifndef BLY_DIGEST_H
#define BLY_DIGEST_H

#include <bloomery.h>

/* ----------------------------------------------------------------- lines */

enum digest_line_form {
    DIGEST_EMPTY,  /* nothing, or a comment behind # */
    DIGEST_URL,    /* a URL, or METHOD URL, or the digits of an MD5 */
    DIGEST_LOGGED, /* a line of access.log */
    DIGEST_UNKNOWN /* none of these */
};

/* What a line says; the pieces lie in it. */
struct digest_line {
    enum digest_line_form form;
    bly_bytes key;    /* "URL" or "METHOD URL", as a digest is asked */
    bly_bytes url;    /* the URL alone */
    bly_bytes client; /* who asked; empty where it does not say */
    bool is_asked;    /* something that is in digests: GET, HEAD, a list */
    bool is_kept;     /* the proxy has it since then, or had it already */
    bool is_cut;      /* the log hides what stands behind the ? */
};

/* Squid's own form of access.log and that of web servers, common or combined,
 * and lists. n bytes without the newline; a carriage return at the end does not
 * count. `room` gets "METHOD URL" where they do not stand side by side and
 * must have n + 8 bytes. */
void digest_line_read(const char *line, size_t n, char *room,
                      struct digest_line *out);

/* ------------------------------------------------------------- swap.state */

#define DIGEST_SWAP_RECORD 72
#define DIGEST_SWAP_FILE 4 /* where its number in the folder stands */
#define DIGEST_SWAP_KEY 52
enum digest_swap_op {
    DIGEST_SWAP_NONE,
    DIGEST_SWAP_ADDED,
    DIGEST_SWAP_DELETED,
    DIGEST_SWAP_START
};

/* The index of a cache_dir of type ufs, aufs or diskd, read piece by piece;
 * zero is the beginning. */
struct digest_swap {
    struct digest_swap_entry *entries;
    size_t n, room;
    unsigned char part[DIGEST_SWAP_RECORD]; /* of a record, npart bytes */
    size_t npart;
    uint64_t nrecords;
    bool started; /* the first record was right */
    char error[160];
};

/* Do these bytes begin a swap.state? 12 are enough. */
bool digest_is_swap(const unsigned char *bytes, size_t n);

/* Take more bytes. False, and swap->error says why, where they are wrong or
 * there is no memory. */
bool digest_swap_add(struct digest_swap *swap, const void *bytes, size_t n);

/* Call each() with the 32 digits of every key that was added and not deleted
 * since, until it says false: then so does this. A last record that is cut
 * short (swap->npart is not 0) does not count: Squid was writing it. */
bool digest_swap_end(struct digest_swap *swap,
                     bool (*each)(void *ctx, bly_bytes key), void *ctx);
void digest_swap_free(struct digest_swap *swap);

/* --------------------------------------------------------------- requests */

/* A trace: request i is for document[i] at proxy[i]. */
struct digest_trace {
    uint32_t *document;
    uint16_t *proxy;
    uint64_t n, room;
    uint64_t ndocuments;
    double url_bytes; /* mean length of a URL */
};

void digest_trace_free(struct digest_trace *t);

/* One more request; false if there is no memory. */
bool digest_trace_add(struct digest_trace *t, uint32_t document,
                      unsigned proxy);

/* n requests, each at any proxy alike, for documents whose frequency falls with
 * their rank to the power `zipf`. Same seed, same trace. */
bool digest_trace_zipf(struct digest_trace *t, unsigned nproxies,
                       uint64_t ndocuments, double zipf, uint64_t n,
                       uint64_t seed);

/* -------------------------------------------------------------- the replay */

#define DIGEST_MAX_PROXIES 64

/* How summaries are kept: bits per document of the cache's size, 4 positions
 * per key, a new version when the share of documents that came since the last
 * one is above the threshold. */
struct digest_scheme {
    unsigned bits;
    double threshold;
};

/* What a scheme did with the requests that count. */
struct digest_outcome {
    uint64_t remote_hits;  /* got from a neighbour */
    uint64_t false_misses; /* a neighbour had it and was not asked */
    uint64_t false_hits;   /* neighbours asked that did not have it */
    uint64_t queries;      /* to neighbours */
    uint64_t updates;      /* messages of summaries, one to each neighbour */
    uint64_t flips;       /* bits that differ between versions, one neighbour */
    uint64_t versions;    /* of summaries that were published */
    uint64_t delta_bytes; /* of the deltas between versions, one neighbour */
    uint64_t summary_bytes; /* of a whole summary */
};

struct digest_replay {
    unsigned nproxies;
    uint64_t cache;  /* documents that each keeps, the least recent one goes */
    uint64_t warmup; /* requests that come before those that count */
    uint64_t seed;   /* of the summaries' hash */
};

/* What does not depend on a scheme. */
struct digest_totals {
    uint64_t requests; /* that count */
    uint64_t local_hits;
    uint64_t had;     /* local misses that a neighbour had */
    uint64_t queries; /* that asking all neighbours takes */
};

/* Replay a trace once, with all schemes side by side. */
bly_status digest_replay(const struct digest_replay *how,
                         const struct digest_trace *trace,
                         const struct digest_scheme *schemes, size_t nschemes,
                         struct digest_totals *totals,
                         struct digest_outcome *outcomes);

#endif
