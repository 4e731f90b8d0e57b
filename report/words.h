/*
 * words.h - words of a command line, and the one that was meant
 */
#ifndef BLY_REPORT_WORDS_H
#define BLY_REPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Words in the order they were given; the words belong to argv. */
struct list {
    const char **at;
    size_t n;
    size_t literal; /* of operands: the last so many stood behind -- */
};

/* Words that are compared have fewer letters than this. */
#define WORD_MAX 32

/* Variables that options of the line have set; one that was not given has the
 * value that it began with. */
void set_given(const void *to);
bool was_given(const void *to);

bool list_has(const struct list *words, const char *word);

/* The word among n that is nearest to a misspelt one; NULL if none is near.
 * word(i, ctx) gives the words, which may be NULL. */
const char *nearest_word(const char *wrong, size_t n,
                         const char *(*word)(size_t i, const void *ctx),
                         const void *ctx);

#endif
