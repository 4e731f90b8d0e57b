/*
 * args.h - what the files of the command dedup share
 */
#ifndef BLY_DEDUP_ARGS_H
#define BLY_DEDUP_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/dedup/dedup.h"
#include "io/ordered.h"
#include "report/words.h"

struct dedup_args {
    const char *output, *pairs, *clusters, *removed;
    const char *text_field, *id_field;
    bool lines, files, json, strict, drop_empty, drop_all;
    double threshold, recall;
    const char *verify, *policy, *priority, *profile, *bands;
    const char *unit, *family;
    uint64_t size, k, seed;
    uint64_t max_cluster, max_bucket, memory, threads, max_line;
    const char *save_index, *against, *work;
    bool resume, with_shingles;
    bool exact, paragraphs;
    const char *index, *filter, *kind, *level;
    bool read_only;
    uint64_t items;
    double documents_rate;
    uint64_t ngram_size, min_words;
    double share;
};
extern struct dedup_args dedup_args;

/* Read the options; false, and said why, where they cannot be meant. */
bool dedup_pick(struct dedup_options *o);

/* Which of the words, up to NULL, was given for an option; -1, and said so, for
 * none. There are two or three. */
int dedup_choice(const char *option, const char *given,
                 const char *const *words);

/* The files among the operands, folders walked through with --files. */
bool dedup_files(const struct list *operands, struct list *files);
void dedup_files_free(struct list *files);

/* --index bloom, --paragraphs, ngrams. */
int dedup_filtered(struct dedup *d, bool ngrams);

/* Tell of bad lines and of files that ended too early: YES, or TROUBLE. */
int dedup_bad_input(const struct dedup *d);

void dedup_report(const struct dedup *d);

int dedup_run(struct list *operands);

#endif
