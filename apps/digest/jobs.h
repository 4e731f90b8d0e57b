/*
 * jobs.h - what the verbs of `bloomery digest` share
 */
#ifndef BLY_CLI_DIGEST_H
#define BLY_CLI_DIGEST_H

#include <stdatomic.h>

#include "apps/digest/digest.h"
#include "io/foreign_files.h"

#define DIGEST_PATH "/squid-internal-periodic/store_digest"
#define DIGEST_HEADER 128

/* What the options say. Each verb takes some of them. */
struct digest_args {
    const char *output, *listen;
    struct list from, files;
    struct list bits, thresholds;
    uint64_t items;
    double fpr;
    bool invert, count, json;
    /* of the network */
    uint64_t timeout, lifetime, pause, max_size, refresh;
    uint64_t connections, per_address, request_time, answer_time;
    const char *tell, *key_file;
    struct list begin, peers, icp;
    double threshold;
    uint64_t every;
    bool helper;
    /* of the replay */
    uint64_t proxies, cache, documents, requests, seed;
    double warmup, zipf;
};

/* A verb: `bloomery digest VERB OPERANDS`. */
typedef int digest_verb(const struct digest_args *args, struct list *operands);

digest_verb digest_get, digest_build, digest_has, digest_serve, digest_relay,
    digest_follow, digest_peers, digest_simulate;

/* ----------------------------------------------------------- reading files */

/* What was read. */
struct digest_counts {
    uint64_t lines;   /* and records of swap.state */
    uint64_t unknown; /* lines that say nothing one can read */
    uint64_t cut;     /* URLs that the log cut at the question mark */
};

/* Called for every line that says something, and for every key of a
 * swap.state. False ends it all; it has said why. */
typedef bool digest_each(void *ctx, const struct digest_line *line,
                         bly_bytes text);

/* Read files, "-" being standard input, as none is. Lines that say nothing are
 * counted, or, with `strict`, trouble that names file and line. */
int digest_read(const struct list *names, bool strict, digest_each *each,
                void *ctx, struct digest_counts *counts);

/* --------------------------------------------------------------- fetching */

/* A digest as it came, checked. */
struct digest_copy {
    unsigned char *bytes;
    size_t nbytes;
    int64_t modified, expires; /* seconds since 1970; 0: not said */
    bly_foreign_stats stats;
};

/* Is this a digest that Squid takes? False, and why says why not. */
bool digest_check(struct digest_copy *copy, char *why, size_t room);

/* The URL of a digest: itself, or a proxy's HOST, HOST:PORT or URL without a
 * path. The caller frees it; NULL: no memory. */
char *digest_url(const char *text);

/* Fetch it. False, and why says why not. Ends early once *stop is true. */
bool digest_fetch(const struct digest_args *args, const char *url,
                  const atomic_bool *stop, struct digest_copy *out, char *why,
                  size_t room);

/* ---------------------------------------------------------------- serving */

/* Where digests come from. One thread, beside those that answer, calls
 * refresh() at the start, when *wait (milliseconds) of the call before has
 * passed, and, for a source that `looks` (one that costs next to nothing),
 * before each answer. It may take its time. True: *newer, whose bytes are the
 * caller's from then on, is handed out in place of the last one. */
struct digest_source {
    bool (*refresh)(void *ctx, struct digest_copy *newer, int64_t *wait);
    void *ctx;
    const char *name; /* what it is, for people */
    bool looks;
    int64_t lifetime; /* seconds that Expires is ahead of each answer; 0: the
                       * copy says when it expires */
    atomic_bool stop; /* set when it is to end */
};

/* A digest that several answers may be using. Only *users changes. */
struct digest_shared {
    struct digest_copy copy;
    atomic_uint users;
};

/* What is handed out, and the thread that keeps it new. */
struct keeper;

/* first, if there are bytes in it, is handed out until there is a newer one;
 * it is the keeper's, even where NULL is returned: no memory, or no thread. */
struct keeper *keeper_open(struct digest_source *source,
                           struct digest_copy *first);

/* What is handed out now; NULL: nothing yet. Given back by keeper_drop(). */
struct digest_shared *keeper_take(struct keeper *k);
void keeper_drop(struct digest_shared *c);

/* Sleep, though not past the end. */
void keeper_pause(struct keeper *k, uint64_t ms);

/* Set source->stop and wake whoever waits. */
void keeper_stop(struct keeper *k);

/* Release k after keeper_stop(). False: refresh() has not come back in time, so
 * k and all that the source uses must be left alone. */
bool keeper_close(struct keeper *k);

/* Answer on args->listen until SIGINT or SIGTERM. first as above. False in
 * *idle: keeper_close() said so. */
int digest_answer(const struct digest_args *args, struct digest_source *source,
                  struct digest_copy *first, bool *idle);

/* Say on standard error that something is wrong, once for each reason and never
 * in a flood, and that it is over. */
struct digest_trouble {
    char told[512]; /* empty: all is well */
    int64_t at;     /* when, by gate_clock() */
};
void trouble_tell(struct digest_trouble *t, const char *name, const char *why,
                  bool has_last);
void trouble_over(struct digest_trouble *t, const char *name);

/* Milliseconds until something that failed n times (1 at least) is tried again:
 * 1 s, 2 s, 4 s, ..., at most `most`. */
int64_t retry_wait(unsigned n, int64_t most);

/* -------------------------------------------------------------- reporting */

/* What each verb found, for people or for programs. */
void digest_tell_got(const struct digest_args *args, const char *url,
                     const struct digest_copy *copy);
void digest_tell_built(const struct digest_args *args, const bly_foreign *f,
                       uint64_t nkept, const struct digest_counts *counts);
void digest_tell_asked(const struct digest_args *args, uint64_t nasked,
                       uint64_t nmaybe, uint64_t nskipped, uint64_t picked);
void digest_tell_serving(const struct digest_args *args, const char *source,
                         const char *url, uint64_t port);
void digest_tell_served(const struct digest_args *args, uint64_t nrequests,
                        uint64_t ndigests);
extern const struct field got_fields[], digest_built_fields[], asked_fields[];
extern const struct field serving_fields[], served_fields[], simulated_fields[];
extern const struct field following_fields[], followed_fields[];
extern const struct field peer_url_fields[], peer_start_fields[],
    peer_end_fields[];

#endif
