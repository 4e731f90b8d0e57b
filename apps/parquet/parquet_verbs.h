/*
 * parquet_verbs.h - what people do with the filters in Parquet files
 */
#ifndef BLY_PARQUET_VERBS_H
#define BLY_PARQUET_VERBS_H

#include "apps/parquet/parquet_job.h"
#include "report/fields.h"
#include "report/words.h"

struct parquet_args {
    struct list columns; /* has: one; add: those that get filters */
    const char *output;
    struct list files; /* has: values are read from them */
    double fpr;        /* add; 0: the default */
    bool nul, replace, json;
};

/* Each prints what it has to say: a status. Operands are files; has takes one,
 * and values behind it. */
int parquet_verb_info(const struct parquet_args *args,
                      const struct list *operands);
int parquet_verb_has(const struct parquet_args *args,
                     const struct list *operands);
int parquet_verb_add(const struct parquet_args *args,
                     const struct list *operands);

/* Open the file in path. False, with the reason printed, if that fails. */
bool parquet_open(struct parquet_file *f, const char *path);

/* What a column's filters came to. */
struct parquet_added {
    const char *name;
    uint64_t nbytes;
    double values, worst;
    bool kept; /* it has filters, and they were left alone */
};

struct parquet_adding {
    const char *output;
    uint64_t groups;
    const struct parquet_added *columns;
    size_t n;
};

extern const struct field parquet_found_fields[], parquet_added_fields[],
    parquet_adding_fields[];

/* Print what a file has in columns and filters. */
extern const struct field parquet_info_fields[];
int parquet_info(const struct parquet_file *f, bool json);

#endif
