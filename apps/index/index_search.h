/*
 * index_search.h - a search: its question, its files, and how they are read
 */
#ifndef BLY_INDEX_SEARCH_H
#define BLY_INDEX_SEARCH_H

#include <locale.h>
#include <stdatomic.h>

#include "apps/index/index_catalog.h"
#include "apps/index/index_grep.h"
#include "apps/index/index_job.h"
#include "apps/index/index_lines.h"
#include "apps/index/index_needs.h"
#include "apps/index/index_turns.h"
#include "base/lookup.h"

/* An index that is asked. */
struct asked_index {
    const char *path;
    bly_index *x;
    struct index_settings settings;
    struct catalog catalog;
    struct fields fields; /* that it knows, where not all of a line is */
    uint64_t *maybe;      /* a bitmap for each question, one after another */
    uint64_t *any;        /* blocks that at least one question wants */
    struct needs *needs;  /* for each question */
    bool helps;
};

/* Patterns one of which must match: an operand, or all of -e and -f. */
struct question {
    bly_bytes *patterns;
    size_t n;
    char *joined; /* lines, for grep */
    bool plain;   /* it is one plain text: */
    struct line_finder finder;
    char **argv; /* of grep -q, where that has to know */
};

/* A file to be searched. known: some blocks of it may match; NULL: it is not
 * in the index as it is now. */
struct target {
    const char *name;
    struct known_file *known;
    const struct asked_index *index;
};

struct search {
    const struct index_args *args;
    struct asked_index *indexes;
    size_t nindexes;
    struct question *questions, all; /* all patterns of all questions */
    size_t nquestions;
    struct pattern_rules rules;
    bool utf8, plain_locale; /* plain: C; neither: grep alone knows */
    locale_t locale;
    bool colored, names, numbers,
        direct;  /* direct: without grep if it can be */
    char **argv; /* of grep; its --label is replaced */
    size_t label;

    struct target *targets;
    size_t ntargets, targets_room;
    struct lookup names_seen;
    size_t nchanged, nnew, ngone, nbinary;
    const char *changed, *fresh, *gone; /* the first of each */
    char **fresh_names;
    size_t fresh_room;
    struct stat *own; /* the indexes themselves */

    struct turns turns;
    _Atomic bool found, trouble;
    _Atomic uint64_t opened, hits; /* blocks: opened, and with a match */
};

/* Search one file, and put what is to be printed to `out`. */
struct searcher; /* what a thread has */
void target_search(struct search *s, struct searcher *t, size_t task);

struct searcher *searcher_new(struct search *s);
void searcher_free(struct searcher *t);

#endif
