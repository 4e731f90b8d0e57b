/*
 * sizing.h - what a filter is to be, as a command line says it
 */
#ifndef BLY_IO_SIZING_H
#define BLY_IO_SIZING_H

#include <bloomery.h>

#include "report/words.h"

/* What a filter is to be, from options. */
struct sizing {
    const char *kind;
    uint64_t items;
    double fpr;
    uint64_t bits, memory;
    double miss; /* the most of its own keys that it may miss; 0: not said */
    struct list options;
};

/* NAME=VALUE words as options, which live until the command ends. False, with
 * the reason printed, if one is not of that form. */
bool option_words(const struct list *words, const bly_option **out);

/* Whether there is a kind of that name; false, with the reason printed, if not.
 */
bool kind_exists(const char *name);

/* Does spec say how large the filter will be, whatever the keys are? */
bool is_sized(const bly_spec *spec);

/* Fill in kind, items, fpr, bits and options of spec. False, with the reason
 * printed, if that cannot be meant. */
bool sizing_spec(const struct sizing *s, bly_spec *spec);

/* Let spec, of sizing_spec(), have the option for s->miss if its kind has one:
 * other kinds miss nothing. Again, for each kind that spec is given. */
void sizing_misses(const struct sizing *s, bly_spec *spec);

/* The kinds that have an ability, as "one, other". The caller frees it;
 * NULL if there is no memory. */
char *kinds_that_can(uint32_t ability);

#endif
