/*
 * words.c - a line into words
 */
#include <stdlib.h>
#include <string.h>

#include "cli/prompt.h"

void words_free(struct list *words)
{
    for (size_t i = 0; i < words->n; i++)
        free((void *)(size_t)words->at[i]);
    free(words->at);
    *words = (struct list){ 0 };
}

/* One word from *line to `to`, which has room for it. False: a quote is open.
 */
static bool take_word(const char **line, char *to)
{
    const char *at = *line;
    char quote = '\0';
    for (; *at && (quote || !strchr(" \t", *at)); at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? '\0' : *at;
        else if (*at == '\\' && quote != '\'' && at[1] &&
                 (!quote || strchr("\"\\", at[1])))
            *to++ = *++at;
        else
            *to++ = *at;
    }
    *to = '\0';
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
        char *const word = malloc(strlen(line) + 1);
        if (!word) {
            words_free(words);
            return "out of memory";
        }
        if (!take_word(&line, word))
            wrong = "a quote is not closed; right: 'a key', \"it's\" or it\\'s";
        words->at[words->n++] = word;
    }
}
