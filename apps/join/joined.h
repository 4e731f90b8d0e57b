/*
 * joined.h - what a joined row looks like
 *
 *     lines        LEFT, which is the key
 *     fields       LEFT, and the fields of RIGHT but the key
 *     CSV          likewise, and a header of both
 *     JSON lines   {"left":LEFT,"right":RIGHT}
 *     a regular    LEFT, a tab, RIGHT
 *     expression
 *
 * Bytes of fields stay as they are, quotes included.
 */
#ifndef BLY_JOIN_JOINED_H
#define BLY_JOIN_JOINED_H

#include "io/picker.h"

enum join_form {
    JOIN_LINES,
    JOIN_FIELDS,
    JOIN_BLANKS,
    JOIN_CSV,
    JOIN_JSON,
    JOIN_REGEX
};

struct joined {
    enum join_form form;
    char delimiter; /* of fields and CSV */
    char separator; /* behind a row */
    bool crlf;      /* a carriage return before it is not part of a row */
    long column;    /* of RIGHT that has the key, from 1, or -1 backwards */
    size_t nleft, nright;     /* columns; 0: not known yet */
    struct block right_names; /* header of RIGHT, as it stands there */
    uint64_t long_rows; /* of CSV that have more columns than the header */
};

/* What a selection says of form and delimiter. False, with the reason printed.
 */
bool joined_read(struct joined *j, const struct selection *s, bool nul);

/* The columns of LEFT or RIGHT, from a row or a header; of CSV and fields. */
size_t joined_columns(const struct joined *j, bly_bytes row);

/* Append what is printed of a row of RIGHT. False: no memory. */
bool joined_rest(struct joined *j, bly_bytes row, struct block *to);

/* Append a row of the result: rest is what joined_rest() made, NULL that there
 * is no such row. */
bool joined_row(struct joined *j, bly_bytes left, const bly_bytes *rest,
                struct block *to);

/* Append a header: that of LEFT, and, if `both`, the names of RIGHT's columns
 * but the key. A name that LEFT has too gets _right behind it. */
bool joined_header(struct joined *j, const struct block *left, bool both,
                   struct block *to);

/* A row without the carriage return at its end, if that is not part of it. */
bly_bytes joined_bare(const struct joined *j, bly_bytes row);

void joined_free(struct joined *j);

#endif
