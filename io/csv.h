/*
 * csv.h - records of CSV: where they end, and one field of each
 *
 * RFC 4180, with any byte as delimiter: a field that begins with a quote ends
 * at the next one that is not doubled, and may hold delimiters and newlines.
 * A quote further inside a field is a byte like any other. Lines end with a
 * newline or with a carriage return and a newline.
 *
 *     id,name,note                    a header
 *     1,Ann,"says ""hello"", twice"   one line
 *     2,Bob,"two                      two lines, one record
 *     lines"
 *
 * Behind all bytes here BLOCK_SLACK more can be read.
 */
#ifndef BLY_IO_CSV_H
#define BLY_IO_CSV_H

#include <bloomery.h>

/* Where a reader stands between two pieces of a file. Zero, with the delimiter,
 * is the beginning. */
enum csv_state {
    CSV_START,  /* of a field */
    CSV_PLAIN,  /* inside one without quotes, or behind one with */
    CSV_QUOTED, /* inside one with */
    CSV_CLOSED  /* behind a quote inside: the last one, or half of two */
};

struct csv_reader {
    char delimiter;
    enum csv_state state;
};

/* Read n bytes on. What is behind the last record that ended in them; 0 where
 * none did. */
size_t csv_read(struct csv_reader *r, const char *at, size_t n);

/* Each bit becomes the exclusive or of all up to it: of a mask of quotes, what
 * is inside of them. */
static inline uint64_t csv_parity(uint64_t x)
{
    x ^= x << 1;
    x ^= x << 2;
    x ^= x << 4;
    x ^= x << 8;
    x ^= x << 16;
    return x ^ x << 32;
}

/* A field as it stands in the record, without its quotes. */
struct csv_field {
    bly_bytes text;
    bool doubled;      /* has quotes that are doubled */
    size_t nfields;    /* of the record, up to this one at least */
    size_t nlines;     /* of the record */
    const char *wrong; /* with the record; NULL: nothing */
};

/* The record at `at`, up to `end`, where a newline is the last byte, and the
 * field of that number in it, from 0. What is behind the record. Without that
 * field, text.ptr is NULL. A caller without a column asks for SIZE_MAX and gets
 * the number of fields. */
const char *csv_record(const char *at, const char *end, char delimiter,
                       size_t column, struct csv_field *f);

/* One field after the other: that at `at`, and where the next one begins; NULL
 * behind the last. */
const char *csv_next(const char *at, const char *end, char delimiter,
                     struct csv_field *f);

/* Undouble the quotes of n bytes into out, which has room for n. The length. */
size_t csv_undouble(const char *raw, size_t n, char *out);

#endif
