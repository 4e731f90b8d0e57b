/*
 * line_words.h - the words of a line, which lie in it
 */
#ifndef BLY_IO_LINE_WORDS_H
#define BLY_IO_LINE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
    const char *at;
    size_t n;
};

/* Without blanks and carriage returns at both ends. */
struct words words_trim(struct words w);

/* The next word of a line, which moves behind it; false at its end. */
bool words_next(struct words *line, struct words *out);

/* Is it this word, in any case? Of small letters. */
bool words_are(struct words w, const char *word);

#endif
