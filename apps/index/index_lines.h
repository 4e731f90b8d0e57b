/*
 * index_lines.h - lines with one plain text in them
 *
 * What most searches look for is a text without operators, and in a text that
 * is known to be well-formed a line has it or has not, byte for byte. All else
 * is left to grep (index_grep.h).
 */
#ifndef BLY_INDEX_LINES_H
#define BLY_INDEX_LINES_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct line_finder {
    const char *text; /* in small letters if fold */
    size_t n;
    bool fold, words;
    bool utf8; /* the locale; otherwise every byte from 128 on is no letter */
    locale_t locale;
    char *folded; /* the finder's own, for one thread */
    size_t folded_room;
};

/* The first line from `at` on that has it, in n bytes that end at a line's end:
 * its beginning, or n. False without memory. */
struct found_line {
    size_t at, end; /* end is behind its newline, or n */
};
bool lines_begin(struct line_finder *f, const char *text, size_t n);
bool lines_next(const struct line_finder *f, const char *text, size_t n,
                size_t *at, struct found_line *out);

uint64_t lines_count(const char *text, size_t n);

/* Is all of it UTF-8, to the end of the last character? */
bool text_is_utf8(const char *text, size_t n);

#endif
