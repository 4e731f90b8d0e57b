/*
 * options.h - what dedup is asked to do, and the call that does it
 */
#ifndef BLY_DEDUP_OPTIONS_H
#define BLY_DEDUP_OPTIONS_H

#include <bloomery/sketch.h>

#include "io/html/html.h"
#include "io/json_field.h"
#include "report/fields.h"
#include "report/words.h"

enum dedup_format { DEDUP_JSON, DEDUP_LINES, DEDUP_FILES, DEDUP_WARC };
enum dedup_verify { DEDUP_EXACT, DEDUP_ESTIMATE, DEDUP_UNCHECKED };
enum dedup_policy { DEDUP_GREEDY, DEDUP_COMPONENT };
enum dedup_priority { DEDUP_FIRST, DEDUP_LONGEST, DEDUP_FIELD };

/* The words for two of these, up to NULL. */
extern const char *const dedup_verifies[], *const dedup_policies[];

/* What a run reports, and one with --index bloom. */
extern const struct field dedup_fields[], dedup_filter_fields[];

enum stream_unit {
    STREAM_BANDS,      /* a document by its bands: near-copies */
    STREAM_PARAGRAPHS, /* lines of texts, each by itself */
    STREAM_NGRAMS      /* lines of texts or all of them, by the share of known
                          n-grams */
};

/* One pass with a filter. */
struct stream_options {
    enum stream_unit unit;
    uint64_t ngram;     /* words; STREAM_NGRAMS */
    uint64_t min_words; /* paragraphs of fewer are kept, and not added */
    double share;       /* of n-grams known: above, it goes; STREAM_NGRAMS */
    bool documents;     /* all of a text is a unit; STREAM_NGRAMS */
    bool paragraphs;    /* its lines are; both may be */
    bool read_only;     /* add nothing to the filter */
    const char *filter; /* its file; NULL: none */
    const char *kind;   /* of a new one; NULL: any */
    uint64_t items;     /* it is for; 0: not known */
    double rate;        /* at which it removes what is new */
};

/* Nothing in it belongs to dedup. */
struct dedup_options {
    enum dedup_format format;
    struct json_path text, id, field;
    bool has_id, has_field, want_ids;
    const char *id_name; /* DEDUP_WARC: the field of a header with the id */
    uint64_t max_line;
    struct html_wish pages;

    bly_sketch_spec sketch;
    double threshold, recall;
    bly_bands bands;
    unsigned known;  /* of them that make a copy, where nothing is checked */
    bool whole_only; /* equal texts alone, no sketches */
    enum dedup_verify verify;
    enum dedup_policy policy;
    enum dedup_priority priority;
    const char *priority_text; /* as it was given */
    bool ascending;            /* the least value of a field is kept first */
    bool drop_empty, drop_all, strict;
    uint64_t max_cluster, max_bucket;

    bool one_pass; /* with a filter, and without sketches in memory */
    struct stream_options stream;

    const char *against; /* an index; NULL: none */
    /* Results; NULL: not wanted. */
    const char *output, *pairs, *clusters, *removed, *save_index;
    bool all_pairs;     /* also those of equal texts, each with each */
    bool with_shingles; /* in the index */
    bool json;          /* the report */

    uint64_t memory; /* for shingles of pairs and for sorting */
    unsigned nthreads;
    const char *folder; /* for what is too large for memory */
    const char *work;   /* the same, for all of it and what resume needs */
    bool resume;        /* go on with what is in it */
    struct list words;  /* the options that were given, where there is work */
    bly_wait *wait;     /* for others that write the same files */
};

/* Where results go. */
#define DEDUP_OUTPUTS(o)                                                      \
    {                                                                         \
        (o)->output, (o)->pairs, (o)->clusters, (o)->removed, (o)->save_index \
    }

/* Remove near-copies from the files and folders that are named, standard input
 * if none is, and report: YES, or TROUBLE, which was said. */
int dedup_run(const struct dedup_options *o, const struct list *operands);

#endif
