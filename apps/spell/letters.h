/*
 * letters.h - characters and the case of words
 */
#ifndef BLY_SPELL_LETTERS_H
#define BLY_SPELL_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word as characters. A longer one than this is nobody's: hunspell stops at
 * 100 characters. */
#define WORD_CHARS 256
#define WORD_BYTES (4 * WORD_CHARS)
struct word {
    size_t n;
    uint32_t c[WORD_CHARS];
};

/* UTF-8 into characters. False for what is not UTF-8, or too long. */
bool word_read(struct word *w, const char *text, size_t n);
size_t word_write(const struct word *w, char out[WORD_BYTES]);

bool letter_is(uint32_t c); /* or a mark that belongs to one */
uint32_t letter_lower(uint32_t c);
uint32_t letter_upper(uint32_t c);

/* hunspell's types of capitalisation. */
enum capitals {
    CAPS_NONE,  /* word */
    CAPS_FIRST, /* Word */
    CAPS_ALL,   /* WORD */
    CAPS_MIXED  /* woRd, WoRd */
};
enum capitals word_capitals(const struct word *w);

/* dotless: I is the capital of ı, and İ that of i, as in Turkish. */
void word_lower(struct word *w, bool dotless);
void word_capitalise(struct word *w, bool dotless); /* the first letter */

#endif
