/*
 * digest.h - what the verbs of `bloomery digest` share
 */
#ifndef BLY_CLI_DIGEST_H
#define BLY_CLI_DIGEST_H

#include <stdatomic.h>

#include "apps/digest/digest.h"
#include "cli/foreign.h"

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
    uint64_t timeout, lifetime, pause, max_size;
    /* of the replay */
    uint64_t proxies, cache, documents, requests, seed;
    double warmup;
    const char *zipf;
};

/* A verb: `bloomery digest VERB OPERANDS`. */
typedef int digest_verb(const struct digest_args *args, struct list *operands);

digest_verb digest_get, digest_build, digest_has, digest_serve, digest_relay,
    digest_simulate;

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

/* What is handed out. refresh() is called, by one thread at a time, before
 * each answer: it may put a newer copy in place of *now, whose bytes it owns,
 * and leaves it alone otherwise. */
struct digest_source {
    bool (*refresh)(void *ctx, const struct digest_copy *now,
                    struct digest_copy *newer);
    void *ctx;
    const char *name; /* what it is, for people */
    atomic_bool stop; /* set when it is to end */
};

/* Answer on args->listen until SIGINT or SIGTERM. first is handed out until
 * there is a newer one, and is released; bytes NULL: there is none yet. */
int digest_answer(const struct digest_args *args, struct digest_source *source,
                  struct digest_copy *first);

/* -------------------------------------------------------------- reporting */

/* Rows about a digest, and the same as members of an object. */
void digest_print(const bly_foreign_stats *s);
void digest_members(struct json *j, const bly_foreign_stats *s);

#endif
