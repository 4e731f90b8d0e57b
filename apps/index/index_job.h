/*
 * index_job.h - which of ten thousand files? The verbs of bloomery index
 */
#ifndef BLY_INDEX_JOB_H
#define BLY_INDEX_JOB_H

#include "report/fields.h"
#include "report/words.h"

struct index_args {
    const char *output; /* build, merge */
    uint64_t threads;
    bool json;

    /* build */
    uint64_t block, points, kmers;
    double gram_rate, word_rate;
    bool no_grams, no_words, fold, binary;
    const char *part;
    const char *field, *csv, *jsonl, *delimiter, *id;
    bool no_header;

    /* search; as those of grep */
    struct list patterns, pattern_files;
    bool fixed, extended, basic, ignore_case, words, invert;
    bool count, list, number, no_number, with_name, no_name, only, silent;
    uint64_t after, before, context, most;
    unsigned color; /* auto, always, never */
    bool maybe;
    double coverage;
};

/* What --max-count, --after-context and the like are if they are not given. */
#define INDEX_UNGIVEN UINT64_MAX

int index_build(const struct index_args *args, const struct list *operands);
int index_add(const struct index_args *args, const struct list *operands);
int index_search(const struct index_args *args, const struct list *operands);
int index_info(const struct index_args *args, const struct list *operands);
int index_merge(const struct index_args *args, const struct list *operands);

/* What building came to. */
struct index_built {
    const char *file;
    uint64_t files, documents, text, nbytes; /* of this run; of the index */
    uint64_t unchanged, removed, binary, unread, all_files, all_documents;
    uint64_t bad;          /* records without the field */
    double seconds, share; /* of the text, where all of it was read */
};

struct index_class_told {
    const char *name;
    double rate, expected;
    unsigned rows;
    uint64_t terms, nbytes;
};

struct index_told {
    const char *file;
    uint64_t files, documents, dropped, text, nbytes, blob_bytes, binary,
        unread;
    unsigned segments, groups;
    double share;
    bool folds;
    const char *field, *id; /* NULL: all of a line */
    const char *const *roots;
    size_t nroots;
    const struct index_class_told *classes;
    size_t nclasses;
};

struct index_covered {
    const char *file, *query;
    double share;
    uint64_t terms;
};

struct index_candidate {
    const char *file;
    uint64_t blocks, of;
};

extern const struct field index_built_fields[], index_told_fields[],
    index_covered_fields[], index_candidate_fields[];

#endif
