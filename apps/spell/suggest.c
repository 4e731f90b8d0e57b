/*
 * suggest.c - what may have been meant
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "apps/spell/suggest.h"

bool suggest_take(void *ctx, enum role role, const char *text, size_t n)
{
    struct suggester *const g = ctx;
    struct word w;
    if (role != ROLE_WORD && role != ROLE_EXACT)
        return true;
    if (!word_read(&w, text, n))
        return true;
    for (size_t i = 0; i < w.n; i++) {
        const uint32_t c = letter_lower(w.c[i]);
        size_t k = 0;
        while (k < g->nletters && g->letters[k] != c)
            k++;
        if (k == g->nletters && k < SUGGEST_LETTERS && letter_is(c))
            g->letters[g->nletters++] = c;
    }
    return text_set_add(&g->words, (bly_bytes){ text, n });
}

void suggester_free(struct suggester *g)
{
    text_set_free(&g->words);
}

/* What was found so far. */
struct suggesting {
    const struct suggester *g;
    const struct speller *s;
    char **out;
    size_t n;
};

static bool listed(const struct suggesting *to, const char *text, size_t n)
{
    char key[KEY_BYTES];
    const bool maybe =
        bly_has(to->s->filter, text, n) ||
        (to->s->is.exact &&
         bly_has(to->s->filter, key, role_key(ROLE_EXACT, 0, text, n, key)));
    return maybe && text_set_has(&to->g->words, (bly_bytes){ text, n });
}

static void try_word(struct suggesting *to, const struct word *w, bool capital)
{
    char text[WORD_BYTES];
    struct word other = *w;
    size_t n = word_write(w, text);
    bool found = listed(to, text, n);
    if (to->n == SUGGESTIONS || !w->n || (capital && !letter_is(w->c[0])))
        return;
    if (capital) { /* the candidate in lower case, or as a name */
        word_capitalise(&other, to->s->is.dotless);
        n = word_write(&other, text);
        found |= listed(to, text, n);
    }
    for (size_t i = 0; i < to->n && found; i++)
        found = strlen(to->out[i]) != n || memcmp(to->out[i], text, n) != 0;
    if (found && (to->out[to->n] = strndup(text, n)))
        to->n++;
}

size_t suggest(const struct suggester *g, const struct speller *s,
               const char *word, size_t n, char *out[SUGGESTIONS])
{
    struct suggesting to = { .g = g, .s = s, .out = out };
    struct word w, made;
    if (!word_read(&w, word, n) || w.n + 1 > WORD_CHARS || w.n > 64)
        return 0;
    const enum capitals caps = word_capitals(&w);
    const bool capital = caps == CAPS_FIRST;
    if (caps != CAPS_NONE)
        word_lower(&w, s->is.dotless);
    for (size_t i = 0; i + 1 < w.n; i++) {
        made = w;
        made.c[i] = w.c[i + 1];
        made.c[i + 1] = w.c[i];
        try_word(&to, &made, capital);
    }
    for (size_t i = 0; i < w.n; i++) {
        made = w;
        made.n--;
        memmove(made.c + i, made.c + i + 1, (made.n - i) * sizeof *made.c);
        try_word(&to, &made, capital);
    }
    for (size_t i = 0; i < w.n; i++) {
        made = w;
        for (size_t k = 0; k < g->nletters; k++) {
            made.c[i] = g->letters[k];
            try_word(&to, &made, capital);
        }
    }
    for (size_t i = 0; i <= w.n; i++) {
        made = w;
        made.n++;
        memmove(made.c + i + 1, made.c + i, (w.n - i) * sizeof *made.c);
        for (size_t k = 0; k < g->nletters; k++) {
            made.c[i] = g->letters[k];
            try_word(&to, &made, capital);
        }
    }
    return to.n;
}
