/*
 * prompt_words.c - a line into words
 */
#include <stdlib.h>
#include <string.h>

#include "apps/shell/prompt.h"

void words_free(struct list *words)
{
    for (size_t i = 0; i < words->n; i++)
        free((void *)(size_t)words->at[i]);
    free(words->at);
    *words = (struct list){ 0 };
}

/* One word from *line, of *n bytes, to `to`, unless that is NULL. False: a
 * quote is open. */
static bool take_word(const char **line, char *to, size_t *n)
{
    const char *at = *line;
    char quote = '\0';
    *n = 0;
    for (; *at && (quote || !strchr(" \t", *at)); at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"') {
            quote = quote ? '\0' : *at;
            continue;
        }
        if (*at == '\\' && quote != '\'' && at[1] &&
            (!quote || strchr("\"\\", at[1])))
            at++;
        if (to)
            to[*n] = *at;
        ++*n;
    }
    if (to)
        to[*n] = '\0';
    *line = at;
    return !quote;
}

const char *words_split(const char *line, struct list *words)
{
    const char *wrong = NULL;
    /* A word takes two bytes of the line, the blank included. */
    *words =
        (struct list){ .at = calloc(strlen(line) / 2 + 2, sizeof(char *)) };
    if (!words->at)
        return "out of memory";
    for (;;) {
        line += strspn(line, " \t");
        if (!*line)
            return wrong;
        const char *end = line;
        size_t n;
        take_word(&end, NULL, &n);
        char *const word = malloc(n + 1);
        if (!word) {
            words_free(words);
            return "out of memory";
        }
        if (!take_word(&line, word, &n))
            wrong = "a quote is not closed; write 'a key', \"it's\" or it\\'s";
        words->at[words->n++] = word;
    }
}
