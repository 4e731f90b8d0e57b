/*
 * suggest.h - what may have been meant
 */
#ifndef BLY_SPELL_SUGGEST_H
#define BLY_SPELL_SUGGEST_H

#include "apps/spell/speller.h"
#include "io/text_set.h"

#define SUGGESTIONS 8
#define SUGGEST_LETTERS 256 /* of the list's words: the rarest stay out */

/* The words themselves, and the letters that they consist of. Zero is empty. */
struct suggester {
    struct text_set words;
    uint32_t letters[SUGGEST_LETTERS];
    size_t nletters;
};

/* An expand_take() for the words of a list. */
bool suggest_take(void *ctx, enum role role, const char *text, size_t n);
void suggester_free(struct suggester *g);

/* Words that differ from this one by a letter too many, too few, another one,
 * or two exchanged: first the filter is asked, then the list. How many there
 * are; each is allocated, and so is the caller's. */
size_t suggest(const struct suggester *g, const struct speller *s,
               const char *word, size_t n, char *out[SUGGESTIONS]);

#endif
