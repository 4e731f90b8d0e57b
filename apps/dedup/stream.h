/*
 * stream.h - one pass and a filter: what was there before goes
 */
#ifndef BLY_STREAM_H
#define BLY_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <bloomery.h>

#include "apps/dedup/dedup.h"

enum stream_unit {
    STREAM_BANDS,      /* a document by its bands: near-copies */
    STREAM_PARAGRAPHS, /* lines of texts, each by itself */
    STREAM_NGRAMS      /* lines of texts or all of them, by the share of known
                          n-grams */
};

struct stream_options {
    enum stream_unit unit;
    unsigned ngram;     /* words; STREAM_NGRAMS */
    uint64_t min_words; /* paragraphs of fewer are kept, and not added */
    double share;       /* of n-grams known: above, it goes; STREAM_NGRAMS */
    bool documents;     /* all of a text is a unit; STREAM_NGRAMS */
    bool paragraphs;    /* its lines are; both may be */
    bool read_only;     /* add nothing to the filter */
};

/* What the keys of bands depend on, as a seed for their filter: filters of
 * other bands know nothing of these keys. Never 0. */
uint64_t dedup_stream_seed(const struct dedup_options *o);

struct stream_report {
    uint64_t units, removed_units, keys;
};

/* How many different keys there are, about: one pass, and nothing is kept. What
 * can be read only once was spooled before. */
bool dedup_stream_count(struct dedup *d, const struct stream_options *o,
                        double *distinct);

/* Read d->in once; keys go into f, and what is left to path. */
bool dedup_stream(struct dedup *d, const struct stream_options *o,
                  bly_filter *f, const char *path, struct stream_report *r);

#endif
