/*
 * speller.h - is this word right?
 */
#ifndef BLY_SPELL_SPELLER_H
#define BLY_SPELL_SPELLER_H

#include "apps/spell/expand.h"
#include "apps/spell/traits.h"

struct speller {
    const bly_filter *filter;
    struct spell_traits is;
};

/* Is the word right, in UTF-8, as hunspell would say? dotted: a full stop
 * stands behind it, and may belong to it. A wrong word is taken for a right one
 * at the rate of the filter for each form that is asked for. */
bool speller_right(const struct speller *s, const char *word, size_t n,
                   bool dotted);

#endif
