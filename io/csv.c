/*
 * csv.c - records of CSV: where they end, and one field of each
 *
 * The reader of a file has to know which newlines end records before any worker
 * sees them. It looks for quotes, and where there are some, at 64 bytes at a
 * time, as in cutter.h. The exclusive or of all bits of a mask of quotes up to
 * one tells whether it is inside of quotes, doubled ones leaving it as it was:
 *
 *     window   1 , " a \n b " , c \n
 *     quotes   . . 1 .  . . 1 . .  .
 *     inside   . . 1 1  1 1 . . .  .
 *     ends     . . . .  . . . . .  1    newlines that are not inside
 *
 * That is right as long as every opening quote is at the start of a field or
 * behind another quote, which one more mask tells. Elsewhere bytes are looked
 * at one by one.
 */
#define _GNU_SOURCE /* memrchr */
#include <string.h>

#include "io/csv.h"
#include "io/cutter.h"

/* ----------------------------------------------------------------- reading */

static enum csv_state csv_step(enum csv_state state, char c, char delimiter)
{
    if (state == CSV_QUOTED)
        return c == '"' ? CSV_CLOSED : CSV_QUOTED;
    if (c == '"' && state != CSV_PLAIN)
        return CSV_QUOTED;
    return c == delimiter || c == '\n' ? CSV_START : CSV_PLAIN;
}

/* A window, of `left` bytes; the end of the last record in it, or 0. *plain:
 * it has no quotes. */
static size_t csv_read_window(struct csv_reader *r, const char *at, size_t left,
                              bool *plain)
{
    const size_t n = left < CUTTER_WINDOW ? left : CUTTER_WINDOW;
    const uint64_t last = UINT64_C(1) << (n - 1);
    const uint64_t valid = last | (last - 1);
    const uint64_t quotes = cutter_ends(at, '"') & valid;
    const uint64_t newlines = cutter_ends(at, '\n') & valid;
    const uint64_t stops = (cutter_ends(at, r->delimiter) & valid) | newlines;
    const uint64_t inside =
        csv_parity(quotes) ^ (r->state == CSV_QUOTED ? UINT64_MAX : 0);
    /* Where a quote may open: at the start of a field, or behind another. */
    const uint64_t starts =
        (stops | quotes) << 1 | (r->state != CSV_PLAIN ? 1 : 0);
    *plain = !quotes;
    if (!(quotes & inside & ~starts)) {
        const uint64_t ends = newlines & ~inside;
        r->state = inside & last   ? CSV_QUOTED
                   : quotes & last ? CSV_CLOSED
                   : stops & last  ? CSV_START
                                   : CSV_PLAIN;
        return ends ? 64 - (size_t)__builtin_clzll(ends) : 0;
    }
    size_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const bool outside = r->state != CSV_QUOTED;
        r->state = csv_step(r->state, at[i], r->delimiter);
        if (outside && at[i] == '\n')
            end = i + 1;
    }
    return end;
}

size_t csv_read(struct csv_reader *r, const char *at, size_t n)
{
    size_t end = 0;
    bool plain = true; /* no quotes were met lately */
    for (size_t i = 0; i < n;) {
        if (plain && r->state != CSV_QUOTED) {
            const char *const quote = memchr(at + i, '"', n - i);
            const size_t stop = quote ? (size_t)(quote - at) : n;
            const char *const nl = memrchr(at + i, '\n', stop - i);
            if (nl)
                end = (size_t)(nl - at) + 1;
            if (stop > i)
                r->state = csv_step(CSV_PLAIN, at[stop - 1], r->delimiter);
            i = stop;
            if (!quote)
                break;
        }
        const size_t here = csv_read_window(r, at + i, n - i, &plain);
        if (here)
            end = i + here;
        i += CUTTER_WINDOW;
    }
    return end;
}

/* ----------------------------------------------------------------- cutting */

/* The next delimiter or newline; there is one. */
static const char *csv_stop(const char *s, const char *end, char delimiter)
{
    for (;; s += CUTTER_WINDOW) {
        const uint64_t stops = cutter_ends(s, delimiter) | cutter_ends(s, '\n');
        if (stops)
            return s + __builtin_ctzll(stops);
        if (end - s <= CUTTER_WINDOW)
            return end - 1;
    }
}

/* The quote that closes what begins at s; NULL: none does. */
static const char *closing_quote(const char *s, const char *end, bool *doubled)
{
    const char *q;
    while ((q = memchr(s, '"', (size_t)(end - s))) && end - q > 1 &&
           q[1] == '"') {
        *doubled = true;
        s = q + 2;
    }
    return q;
}

static size_t newlines_in(const char *s, const char *end)
{
    size_t n = 0;
    while (s < end && (s = memchr(s, '\n', (size_t)(end - s)))) {
        n++;
        s++;
    }
    return n;
}

/* The field at s, and where it ends; NULL, if a quote is never closed. */
static inline const char *field_at(const char *s, const char *end,
                                   char delimiter, bly_bytes *text,
                                   bool *doubled, const char **wrong)
{
    *doubled = false;
    if (*s != '"') {
        const char *const stop = csv_stop(s, end, delimiter);
        const bool cr = *stop == '\n' && stop > s && stop[-1] == '\r';
        *text = (bly_bytes){ s, (size_t)(stop - s) - cr };
        return stop;
    }
    const char *const close = closing_quote(s + 1, end, doubled);
    if (!close)
        return NULL;
    *text = (bly_bytes){ s + 1, (size_t)(close - s - 1) };
    s = close + 1;
    const char *const stop = csv_stop(s, end, delimiter);
    if (s != stop && !(stop == s + 1 && *s == '\r' && *stop == '\n'))
        *wrong = "text behind the quote that closes a field; quotes inside a "
                 "field are written twice";
    return stop;
}

const char *csv_record(const char *at, const char *end, char delimiter,
                       size_t column, struct csv_field *f)
{
    const char *s = at;
    *f = (struct csv_field){ .nlines = 1 };
    for (size_t i = 0;; i++) {
        bly_bytes text;
        bool doubled;
        const char *const stop =
            field_at(s, end, delimiter, &text, &doubled, &f->wrong);
        f->nfields = i + 1;
        if (!stop) {
            f->wrong = "a quote that is never closed";
            /* The last newline is the reader's own. */
            f->nlines = newlines_in(at, end - 1) + (end[-2] != '\n');
            return end;
        }
        if (*s == '"')
            f->nlines += newlines_in(s, s + 1 + text.len);
        if (i == column) {
            f->text = text;
            f->doubled = doubled;
        }
        s = stop + 1;
        if (*stop == '\n')
            return s;
    }
}

const char *csv_next(const char *at, const char *end, char delimiter,
                     struct csv_field *f)
{
    *f = (struct csv_field){ 0 };
    const char *const stop =
        field_at(at, end, delimiter, &f->text, &f->doubled, &f->wrong);
    return stop && *stop != '\n' ? stop + 1 : NULL;
}

size_t csv_undouble(const char *raw, size_t n, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        out[len++] = raw[i];
        if (raw[i] == '"')
            i++;
    }
    return len;
}
