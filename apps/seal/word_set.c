/*
 * word_set.c - a set of words, by 64 bits of their trapdoors
 */
#include <stdlib.h>

#include "apps/seal/seal.h"

static bool word_set_grow(struct word_set *s)
{
    const size_t room = s->room ? 2 * s->room : 1024;
    uint64_t *const slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->slots[i]) {
            size_t at = s->slots[i] & (room - 1);
            while (slots[at])
                at = (at + 1) & (room - 1);
            slots[at] = s->slots[i];
        }
    free(s->slots);
    s->slots = slots;
    s->room = room;
    return true;
}

bool word_set_add(struct word_set *s, uint64_t x, bool *fresh)
{
    x = x ? x : 1; /* 0 is an empty slot */
    if (2 * s->n >= s->room && !word_set_grow(s))
        return false;
    size_t at = x & (s->room - 1);
    while (s->slots[at] && s->slots[at] != x)
        at = (at + 1) & (s->room - 1);
    *fresh = s->slots[at] == 0;
    s->slots[at] = x;
    s->n += *fresh;
    return true;
}

void word_set_free(struct word_set *s)
{
    free(s->slots);
    *s = (struct word_set){ 0 };
}
