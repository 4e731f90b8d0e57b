/*
 * joining.h - compounds by rule: COMPOUNDRULE
 *
 *     COMPOUNDRULE (N4)(Nh)(N1)?(n2)     vijf honderd eenen twintig
 *
 * A rule is a row of flags, each once, once or not (?), or any number of times
 * (*); words with these flags, in that order, are one word. In a filter a flag
 * is a letter, A to Z, a to z, 0 to 9: rules stand in its metadata as texts of
 * letters and marks, "ABC?D", and a word that has the flag is a key of its own,
 * with the letter before it (expand.h).
 */
#ifndef BLY_SPELL_JOINING_H
#define BLY_SPELL_JOINING_H

#include "apps/spell/aff.h"

#define JOINING_LETTERS 62
#define JOINING_STATES 512 /* parts of all rules, and an end for each */
#define JOINING_PARTS 100  /* of a rule: as text it fits into a pair */

/* The letters of one .aff, behind those of others. */
struct joining_letters {
    unsigned n;              /* of all */
    size_t nstates;          /* likewise */
    unsigned char of[65536]; /* letter of a flag, from 1; 0: none */
};

/* Give a letter to each flag of the rules, behind the letters and states of
 * others. False: they are too many. */
bool joining_letters_give(struct joining_letters *l, const struct aff *a,
                          unsigned nletters, size_t nstates);

/* The letters of a word's flags; how many. None for what has digits, or no
 * letter: most rules are about numbers, 21st, which check passes over. */
unsigned joining_letters_of(const struct joining_letters *l,
                            const struct word *w, const struct aff_flags *flags,
                            unsigned char out[JOINING_LETTERS]);

/* The rules of an .aff as texts, each with a NUL behind it, to the end of b. */
bool joining_write(const struct joining_letters *l, const struct aff *a,
                   struct block *b);

/* All rules as one machine: it is in several places at once. A place is a part
 * that may come next; behind the last of a rule is its end. */
struct joining {
    size_t n;
    struct joining_part {
        unsigned char letter; /* 0: the end of a rule */
        char times;
    } at[JOINING_STATES];
};

/* Texts as above, which anyone may have written; false if they are none. */
bool joining_read(struct joining *j, const struct block *texts);

/* Places of a machine. */
struct joining_set {
    uint64_t bits[JOINING_STATES / 64];
};

/* Where it begins, and where a word with this letter leads; places that can be
 * reached without a word belong to the set. */
void joining_begin(const struct joining *j, struct joining_set *out);
void joining_step(const struct joining *j, const struct joining_set *from,
                  unsigned letter, struct joining_set *out);

static inline void joining_add(struct joining_set *s,
                               const struct joining_set *more)
{
    for (size_t i = 0; i < JOINING_STATES / 64; i++)
        s->bits[i] |= more->bits[i];
}

/* The letters that may come next, as a bitmap; bit 0 if a rule may end. */
uint64_t joining_next(const struct joining *j, const struct joining_set *s);

#endif
