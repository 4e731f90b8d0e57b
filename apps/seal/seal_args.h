/*
 * seal_args.h - what bloomery seal is told, and what it tells: all that is
 * there without libsodium too
 */
#ifndef BLY_SEAL_ARGS_H
#define BLY_SEAL_ARGS_H

#include "io/html/html.h"
#include "report/fields.h"
#include "report/words.h"

struct seal_args {
    const char *key, *output, *word;
    double fpr;
    bool names, json, replace;
    struct html_wish pages;
};

struct sealed_report {
    const char *archive;
    uint64_t documents, replaced, all, bytes, index_bytes;
    double rate;
};

struct removed_report {
    const char *archive;
    uint64_t removed, all;
};

struct searched {
    uint64_t documents, found;
    double rate;
};

struct opened_report {
    char id[33];
    bly_bytes name;
    uint64_t bytes;
    bool older;
};

typedef int seal_verb(const struct seal_args *args,
                      const struct list *operands);
seal_verb seal_init, seal_add, seal_rm, seal_trapdoor, seal_search, seal_open;

extern const struct field sealed_fields[], removed_fields[], searched_fields[],
    opened_fields[];

#endif
