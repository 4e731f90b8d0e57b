/*
 * vectors_verbs.h - vectors that are close to each other: the verbs
 */
#ifndef BLY_APPS_VECTORS_VERBS_H
#define BLY_APPS_VECTORS_VERBS_H

#include "apps/vectors/vector_file.h"
#include "report/fields.h"
#include "report/words.h"

struct vectors_args {
    struct vector_options file;
    double threshold, recall;
    uint64_t seed, threads;
    uint64_t top;              /* neighbours of a query; 0: all */
    bool all, skip_bad;        /* as BLY_NEAR_ALL, BLY_NEAR_SKIP */
    const char *output, *gone; /* of dedup; NULL: not wanted */
    bool json;
};

extern const struct field vector_pair_fields[], vector_dedup_fields[];

/* Statuses, as for a command. */
int vectors_pairs(const struct vectors_args *a, const struct list *operands);
int vectors_dedup(const struct vectors_args *a, const struct list *operands);
int vectors_near(const struct vectors_args *a, const struct list *operands);

#endif
