/*
 * urls.h - lists of URLs and domains: what people do with them
 */
#ifndef BLY_URLS_H
#define BLY_URLS_H

#include "io/keys.h"
#include "io/notes.h"
#include "io/sizing.h"
#include "report/fields.h"

struct urls_args {
    struct sizing sizing;  /* build, compare: of the filter */
    const char *output;    /* build */
    unsigned store;        /* build: filter, or 1: prefixes */
    uint64_t prefix_bytes; /* of prefixes; 0: 4 */
    const char *suffixes;  /* file with public suffixes */
    struct list full;      /* has: lists that confirm */
    struct keys keys;      /* files, secret, NUL bytes, skip_bad */
    struct meta_args meta;
    uint64_t threads, sample;
    bool domains, exact, invert, count, json;
};

/* Each prints what it has to say: a status. */
int urls_verb_build(const struct urls_args *args, const struct list *operands);
int urls_verb_has(const struct urls_args *args, const struct list *operands);
int urls_verb_show(const struct urls_args *args, const struct list *operands);
int urls_verb_compare(const struct urls_args *args,
                      const struct list *operands);
int urls_verb_helper(const struct urls_args *args, const struct list *operands);
extern const struct field urls_built_fields[], urls_asked_fields[],
    urls_total_fields[], urls_shown_fields[], urls_compared_fields[];

/* The default for a filter of a list: the smallest kind that is never wrong
 * about an entry, with one false alarm in a million entries that are asked
 * for. */
#define URLS_KIND "ribbon"
#define URLS_FPR 1e-6
struct sizing urls_sizing(const struct sizing *given);

/* The bits of prefixes; 0, with the reason printed, if they cannot be so many.
 */
unsigned urls_width(uint64_t prefix_bytes);

#endif
