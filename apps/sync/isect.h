/*
 * isect.h - lines that several lists have in common, wherever the lists are
 */
#ifndef BLY_ISECT_H
#define BLY_ISECT_H

#include "report/fields.h"
#include "report/words.h"

struct isect_args {
    const char *key_file;
    bool nul, count, json;
    uint64_t threads, timeout;
};

/* The lines that all operands have; an operand is a list or HOST:PORT of a
 * bloomery sync serve. An exit status. */
int isect(const struct isect_args *args, const struct list *operands);

/* The bits of a filter of a elements that makes filter and answer together
 * shortest, where b elements of j bits each are asked; 0: a filter does not
 * pay. */
double isect_bits(double a, double b, double j);

/* What became of it. */
struct isect_list {
    const char *name;
    uint64_t items;  /* lines */
    uint64_t passed; /* that passed the filter of those before */
    uint64_t
        filter; /* bytes of the filter that it sent; 0: none, or the list */
};

struct isect_report {
    const struct isect_list *lists;
    size_t nlists;
    uint64_t common, falsely;
    uint64_t filters, answers, bytes, plain, moved;
    double saved;
};

extern const struct field isect_fields[];

#endif
