/*
 * words.c - words of a command line, and the one that was meant
 */
#include <string.h>

#include "report/words.h"

static const void *set[128]; /* no table has so many options */
static size_t nset;

bool was_given(const void *to)
{
    for (size_t i = 0; i < nset; i++)
        if (set[i] == to)
            return true;
    return false;
}

void set_given(const void *to)
{
    if (nset < sizeof set / sizeof set[0] && !was_given(to))
        set[nset++] = to;
}

bool list_has(const struct list *words, const char *word)
{
    for (size_t i = 0; i < words->n; i++)
        if (strcmp(words->at[i], word) == 0)
            return true;
    return false;
}

/* Edits between two words: a letter more, less, another, or two swapped. Words
 * of 31 letters at most; longer ones are far from everything. */
static unsigned edits(const char *a, const char *b)
{
    const size_t na = strlen(a), nb = strlen(b);
    unsigned row[3][WORD_MAX];
    if (na >= WORD_MAX || nb >= WORD_MAX)
        return WORD_MAX;
    for (size_t i = 0; i <= na; i++) {
        unsigned *const now = row[i % 3];
        const unsigned *const up = row[(i + 2) % 3], *const upup =
                                                         row[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            if (i == 0) {
                now[j] = (unsigned)j;
                continue;
            }
            unsigned best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best)
                best = up[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && upup[j - 2] + 1 < best)
                best = upup[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[na % 3][nb];
}

const char *nearest_word(const char *wrong, size_t n,
                         const char *(*word)(size_t i, const void *ctx),
                         const void *ctx)
{
    const char *best = NULL;
    /* A third of the letters may be wrong, and one always. */
    unsigned limit = (unsigned)strlen(wrong) / 3 + 1;
    for (size_t i = 0; i < n; i++) {
        const char *const w = word(i, ctx);
        if (!w)
            continue;
        unsigned d = edits(wrong, w);
        /* What is only cut short is nearer than its missing letters say. */
        if (strlen(wrong) >= 2 && strncmp(wrong, w, strlen(wrong)) == 0)
            d = d > 0;
        if (d < limit || (d == limit && !best)) {
            best = w;
            limit = d;
        }
    }
    return best;
}
