/*
 * word_set.c - a set of words, by 64 bits of their trapdoors
 */
#include <stdlib.h>

#include "apps/seal/seal.h"
#include "base/grow.h"

bool word_set_add(struct word_set *s, uint64_t x, bool *fresh)
{
    *fresh = false;
    LOOKUP_EACH (&s->by_word, x, row)
        if (s->at[row] == x)
            return true;
    *fresh = true;
    if (!GROW(&s->at, &s->room, s->n + 1) || !lookup_add(&s->by_word, x, s->n))
        return false;
    s->at[s->n++] = x;
    return true;
}

void word_set_free(struct word_set *s)
{
    free(s->at);
    lookup_free(&s->by_word);
    *s = (struct word_set){ 0 };
}
