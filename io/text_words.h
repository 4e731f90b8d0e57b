/*
 * text_words.h - texts into words
 */
#ifndef BLY_IO_TEXT_WORDS_H
#define BLY_IO_TEXT_WORDS_H

#include <bloomery.h>

/* Words that were longer count by their beginning. */
#define WORD_BYTES 256

/* A text comes in pieces; each word of it is handed on, folded. */
struct word_cutter {
    char word[WORD_BYTES];
    size_t len;
    char rest[4]; /* the beginning of a character */
    size_t nrest;
    bool full;
    bool (*each)(void *ctx, bly_bytes word); /* false ends it all */
    void *ctx;
};
bool words_cut(struct word_cutter *c, const char *text, size_t n);
bool words_end(struct word_cutter *c);

/* Is it one word? Then its folded form, in room of BLY_KEY_ROOM(WORD_BYTES). */
bool word_only(const char *text, char *room, bly_bytes *word);

#endif
