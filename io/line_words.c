/*
 * line_words.c - the words of a line
 */
#include "io/line_words.h"

#include <string.h>

struct words words_trim(struct words w)
{
    while (w.n && (*w.at == ' ' || *w.at == '\t' || *w.at == '\r')) {
        w.at++;
        w.n--;
    }
    while (w.n && (w.at[w.n - 1] == ' ' || w.at[w.n - 1] == '\t' ||
                   w.at[w.n - 1] == '\r'))
        w.n--;
    return w;
}

bool words_next(struct words *line, struct words *out)
{
    *line = words_trim(*line);
    *out = (struct words){ line->at, 0 };
    while (out->n < line->n && line->at[out->n] != ' ' &&
           line->at[out->n] != '\t')
        out->n++;
    line->at += out->n;
    line->n -= out->n;
    return out->n;
}

bool words_are(struct words w, const char *word)
{
    if (w.n != strlen(word))
        return false;
    for (size_t i = 0; i < w.n; i++) {
        const char c = w.at[i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != word[i])
            return false;
    }
    return true;
}
