/*
 * traits.h - what a filter of words says of itself
 *
 * A language has rules that no list of words holds; whoever asks needs them, so
 * they stand in the filter's metadata:
 *
 *     spell          words, and perhaps: exact upper forbidden sharps case
 *                    triple compounds=LEAST,MOST
 *     spell-more     simplified: three equal letters are written as two where
 *                    words are joined; dup: no part of a compound follows
 *                    itself; dotless: case as in Turkish;
 *                    least=LEAST: characters of a part, for rules
 *     spell-rule-0   compounds by rule: ABC? AD* ...
 *     spell-break    where words are divided: - ^- -$
 *     spell-ignore   characters that do not count
 *     spell-iconv-0  what is written for what: FROM TO FROM TO ...
 */
#ifndef BLY_SPELL_TRAITS_H
#define BLY_SPELL_TRAITS_H

#include <bloomery.h>

#include "apps/spell/joining.h"

struct spell_traits {
    bool known;        /* it says something */
    bool exact, upper; /* there are forms in these roles */
    bool forbidden;
    bool compounds;
    bool sharps; /* STRASSE is Straße */
    bool compound_case, compound_triple, simplified_triple;
    bool compound_dup;       /* no part follows itself */
    bool dotless;            /* case as in Turkish */
    unsigned compound_least; /* characters of a part */
    unsigned compound_words; /* parts; 0: any number */
    struct block breaks;     /* patterns, each with a NUL behind it */
    struct block iconvs;     /* FROM, TO, each with a NUL behind it */
    struct word ignored;
    struct block rules;     /* of compounds: see joining.h; NUL behind each */
    unsigned nletters;      /* in them */
    size_t nstates;         /* of them */
    bool joined;            /* there are words with these letters */
    struct joining joining; /* rules, read */
};

/* What another .aff says, besides what was said before. letters: those that its
 * rules were given. */
bool spell_traits_add(struct spell_traits *t, const struct aff *a,
                      const struct joining_letters *letters);
bly_status spell_traits_set(const struct spell_traits *t, bly_filter *f);

/* Of a filter that anyone may have written. False: it says what cannot be, or
 * there is no memory. */
bool spell_traits_read(struct spell_traits *t, const bly_filter *f);
void spell_traits_free(struct spell_traits *t);

/* The next of the texts in b, from *at on; NULL behind the last. */
const char *spell_text(const struct block *b, size_t *at);

#endif
