/*
 * values.h - numbers beside keys: KEY, a tab, NUMBER
 */
#ifndef BLY_IO_VALUES_H
#define BLY_IO_VALUES_H

#include "io/pipeline.h"
#include "report/fields.h"

/* ----------------------------------------------------------------- reading */

#define VALUE_RIGHT \
    "a whole number below 2^64, decimal, or hexadecimal after 0x"

/* All n characters as a value. False, and *out unchanged, for anything else
 * than VALUE_RIGHT says. */
bool value_read(const char *text, size_t n, uint64_t *out);

/* Cut each of n lines at its last delimiter: what stands before stays, as the
 * key, and the number behind becomes values[i]. How many lines were right: n,
 * or fewer, and then why says what is wrong with the next. */
#define VALUE_WHY 200
size_t values_cut(bly_bytes *lines, size_t n, char delimiter, uint64_t *values,
                  char why[VALUE_WHY]);

/* The byte that stands between key and value, or between fields, from an option
 * (NULL: the preset one; \t is a tab). False, with the reason printed, if that
 * cannot be one. */
bool delimiter_read(const char *text, char preset, char *out);

/* ---------------------------------------------------------------- printing */

/* A key and its number, for JSON. */
struct pair {
    bly_bytes key;
    const uint64_t *number; /* NULL: none */
    double least;           /* what it is at least, where that is known */
};
#define PAIR_KEY FIELD(struct pair, key, NONE, "the key")

/* How a number stands beside its key. */
struct pair_style {
    bool json;
    char end; /* of a line that is not JSON */

    /* Append what follows the key. False: no memory. */
    bool (*text)(const void *ctx, uint64_t number, struct block *to);
    /* The table for a pair, whose number may become NULL. */
    const struct field *(*fields)(const void *ctx, struct pair *p);
    const void *ctx;
};

/* Append a tab and the digits of number. */
bool number_put(struct block *to, uint64_t number);

/* Append a line for each picked key of b to its text. */
bly_status pairs_print(const struct pair_style *style, struct batch *b,
                       const uint64_t *numbers);

#endif
