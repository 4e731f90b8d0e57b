/*
 * spell.h - words spelt right: bloomery spell
 */
#ifndef BLY_SPELL_H
#define BLY_SPELL_H

#include "io/keys.h"
#include "io/notes.h"
#include "io/sizing.h"
#include "io/filters.h"
#include "report/fields.h"

struct spell_args {
    struct sizing sizing; /* build */
    const char *output;   /* build */
    const char *affix;    /* build, check --list: the .aff */
    const char *lang;     /* a dictionary of the system */
    struct list list;     /* check: the words themselves, for suggestions */
    struct keys keys;     /* secret, skip_bad */
    struct meta_args meta;
    uint64_t threads;
    bool suggest, markdown, latex, count, json;
};

int spell_build(const struct spell_args *args, const struct list *operands);
int spell_check(const struct spell_args *args, const struct list *operands);
extern const struct field spell_built_fields[], spell_flagged_fields[],
    spell_total_fields[];

/* A filter of words, made in memory; NULL, with the reason printed. source,
 * unless NULL, is noted in it. *bad: lines were not words. */
struct spell_built {
    const char *file;
    uint64_t words, forms;
    struct made made;
};
bly_filter *spell_make(const struct spell_args *args, const struct list *from,
                       const char *affix, const char *source,
                       struct spell_built *built, bool *bad);

/* The dictionary of a language, in the usual folders; the caller frees it.
 * NULL, with the reason printed. */
char *lang_dictionary(const char *lang);

/* The filter of a language, kept in the user's cache folder; NULL, with the
 * reason printed. */
bly_filter *lang_filter(const struct spell_args *args);

/* The rate unless something else is said: for words that stand by themselves,
 * and where compounds are divided, for which many parts are asked for. */
#define SPELL_FPR 0.001
#define SPELL_COMPOUND_FPR 1e-5

#endif
