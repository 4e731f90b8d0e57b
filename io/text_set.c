/*
 * text_set.c - a set of texts that is exact
 *
 * Linear probing, at most half full. Lists come from outside, so nobody may
 * know the hash.
 */
#include <stdlib.h>
#include <string.h>

#include "base/lookup.h"
#include "io/text_set.h"

/* The slot that has the text, or the free one where it would be. */
static size_t set_slot(const struct text_set *s, bly_bytes text)
{
    size_t i = table_hash(text.ptr, text.len) & (s->nslots - 1);
    for (; s->slots[i]; i = (i + 1) & (s->nslots - 1)) {
        const size_t at = (size_t)s->slots[i] - 1;
        if (s->lines.len - at > text.len &&
            s->lines.at[at + text.len] == '\n' &&
            memcmp(s->lines.at + at, text.ptr, text.len) == 0)
            break;
    }
    return i;
}

static bool set_grow(struct text_set *s)
{
    struct text_set larger = *s;
    larger.nslots = s->nslots ? 2 * s->nslots : 64;
    larger.slots = calloc(larger.nslots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t at = 0; at < s->lines.len;) {
        const char *const line = s->lines.at + at;
        const size_t len =
            (size_t)((const char *)memchr(line, '\n', s->lines.len - at) -
                     line);
        larger.slots[set_slot(&larger, (bly_bytes){ line, len })] = at + 1;
        at += len + 1;
    }
    free(s->slots);
    *s = larger;
    return true;
}

bool text_set_add(struct text_set *s, bly_bytes text)
{
    if (!memory_spares(s->lines.len + s->nslots * sizeof *s->slots) ||
        (2 * (s->n + 1) > s->nslots && !set_grow(s)))
        return false;
    const size_t i = set_slot(s, text), at = s->lines.len;
    if (s->slots[i])
        return true;
    if (!block_fit(&s->lines, at + text.len + 1))
        return false;
    if (text.len)
        memcpy(s->lines.at + at, text.ptr, text.len);
    s->lines.at[at + text.len] = '\n';
    s->lines.len = at + text.len + 1;
    s->slots[i] = at + 1;
    s->n++;
    return true;
}

bool text_set_has(const struct text_set *s, bly_bytes text)
{
    return s->n && s->slots[set_slot(s, text)];
}

void text_set_free(struct text_set *s)
{
    block_free(&s->lines);
    free(s->slots);
    *s = (struct text_set){ 0 };
}
