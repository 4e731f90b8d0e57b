/*
 * tokens.h - words in a text
 *
 * A word is a run of letters, with single apostrophes and hyphens inside. What
 * touches a digit or an underscore (x86, 10th, foo_bar) is not a word, nor is a
 * part of a URL, an e-mail address or a path.
 */
#ifndef BLY_SPELL_TOKENS_H
#define BLY_SPELL_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct token {
    uint32_t at, len; /* bytes */
};

/* Zero is empty. */
struct tokens {
    struct token *list;
    size_t n, room;
    size_t bad; /* place of the first byte that is not UTF-8; n of the text if
                   there is none */
};

/* The words of a text of less than 4 GiB. What is not UTF-8 makes the word that
 * it touches none. False if there is no memory. */
bool tokens_cut(struct tokens *t, const char *text, size_t n);
void tokens_free(struct tokens *t);

/* Make what is not prose vanish from a text: every character becomes a blank,
 * or for more than one byte something that is not one, so that the others keep
 * their places. Newlines stay. */
void markdown_blank(char *text, size_t n);
void latex_blank(char *text, size_t n);

#endif
