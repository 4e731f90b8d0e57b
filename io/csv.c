/*
 * csv.c - records of CSV: where they end, and one field of each
 *
 * Sixty-four bytes at a time, as in cutter.h: three masks tell where quotes,
 * delimiters and newlines are. The exclusive or of all bits up to one tells
 * whether it is inside of quotes, doubled quotes leaving it as it was:
 *
 *     window   1 , " a , b " , c \n
 *     quotes   . . 1 . . . 1 . .  .
 *     inside   . . 1 1 1 1 . . .  .
 *     fields   . 1 . . . . . 1 .  .    delimiters that are not inside
 *
 * That is right as long as every quote that opens stands at the start of a
 * field, or behind another, which one more mask tells. Where it is not, and
 * where a record is longer than a window, bytes are looked at one by one.
 */
#include <string.h>

#include "io/csv.h"
#include "io/cutter.h"

/* The window at `at`, of which `left` bytes count. */
struct csv_window {
    uint64_t quotes, delimiters, newlines;
};

static inline struct csv_window csv_look(const char *at, size_t left,
                                         char delimiter)
{
    const uint64_t valid =
        left < CUTTER_WINDOW ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
    return (struct csv_window){
        .quotes = cutter_ends(at, '"') & valid,
        .delimiters = cutter_ends(at, delimiter) & valid,
        .newlines = cutter_ends(at, '\n') & valid,
    };
}

/* Each bit becomes the exclusive or of all up to it. */
static inline uint64_t parity(uint64_t x)
{
    for (int by = 1; by < 64; by *= 2)
        x ^= x << by;
    return x;
}

/* Do all quotes that open stand where they may? `first`: at bit 0 one may. */
static inline bool opens_well(const struct csv_window *w, uint64_t inside,
                              bool first)
{
    const uint64_t before = w->delimiters | w->newlines | w->quotes;
    return !(w->quotes & inside & ~(before << 1 | first));
}

/* ----------------------------------------------------------------- reading */

static enum csv_state csv_step(enum csv_state state, char c, char delimiter)
{
    if (state == CSV_QUOTED)
        return c == '"' ? CSV_CLOSED : CSV_QUOTED;
    if (c == '"' && state != CSV_PLAIN)
        return CSV_QUOTED;
    return c == delimiter || c == '\n' ? CSV_START : CSV_PLAIN;
}

/* A window, of `left` bytes; the end of the last record in it, or 0. */
static size_t csv_read_window(struct csv_reader *r, const char *at, size_t left)
{
    const struct csv_window w = csv_look(at, left, r->delimiter);
    const size_t n = left < CUTTER_WINDOW ? left : CUTTER_WINDOW;
    const uint64_t carried = r->state == CSV_QUOTED ? UINT64_MAX : 0;
    const uint64_t inside = parity(w.quotes) ^ carried;
    if (opens_well(&w, inside, r->state != CSV_PLAIN)) {
        const uint64_t last = UINT64_C(1) << (n - 1);
        const uint64_t ends = w.newlines & ~inside;
        r->state = inside & last                        ? CSV_QUOTED
                   : w.quotes & last                    ? CSV_CLOSED
                   : (w.delimiters | w.newlines) & last ? CSV_START
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
    for (size_t i = 0; i < n; i += CUTTER_WINDOW) {
        const size_t here = csv_read_window(r, at + i, n - i);
        if (here)
            end = i + here;
    }
    return end;
}

/* ----------------------------------------------------------------- cutting */

/* The field between two bits of a window; quotes around it go. */
static void window_field(const char *at, size_t from, size_t to, bool last,
                         const struct csv_window *w, struct csv_field *f)
{
    if (last && to > from && at[to - 1] == '\r')
        to--;
    const bool quoted = to - from >= 2 && at[from] == '"';
    if (quoted) {
        from++;
        to--;
    }
    f->text = (bly_bytes){ at + from, to - from };
    /* Inside of quotes there are only doubled ones. */
    f->doubled = quoted && to > from &&
                 w->quotes >> from & (UINT64_MAX >> (64 - (to - from)));
}

/* A record that is right and ends in the window at `at`: what is behind it.
 * NULL: it has to be looked at byte by byte. */
static inline const char *window_record(const char *at, const char *end,
                                        char delimiter, size_t column,
                                        struct csv_field *f)
{
    const struct csv_window w = csv_look(at, (size_t)(end - at), delimiter);
    const uint64_t inside = w.quotes ? parity(w.quotes) : 0;
    const uint64_t ends = w.newlines & ~inside;
    if (!ends)
        return NULL;
    const size_t stop = (size_t)__builtin_ctzll(ends);
    const uint64_t below = (UINT64_C(1) << stop) - 1;
    const uint64_t cuts = w.delimiters & ~inside & below;
    f->nlines = 1;
    if (w.quotes & below) {
        /* Behind one that closes: a delimiter, the end, or another quote. */
        const uint64_t closing = w.quotes & ~inside & below;
        const uint64_t cr = at[stop - 1] == '\r';
        const uint64_t good =
            cuts | w.quotes | UINT64_C(1) << stop | cr << (stop - 1);
        if (closing << 1 & ~good || !opens_well(&w, inside & below, true))
            return NULL;
        f->nlines += (size_t)__builtin_popcountll(w.newlines & below);
    }
    f->wrong = NULL;
    uint64_t left = cuts;
    size_t from = 0, i = 0;
    for (; i < column && left; i++, left &= left - 1)
        from = (size_t)__builtin_ctzll(left) + 1;
    if (i < column) {
        f->text = (bly_bytes){ 0 };
        f->nfields = i + 1;
        return at + stop + 1;
    }
    f->nfields = i + 1;
    const bool last = !left;
    window_field(at, from, last ? stop : (size_t)__builtin_ctzll(left), last,
                 &w, f);
    return at + stop + 1;
}

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

static const char *csv_slow(const char *at, const char *end, char delimiter,
                            size_t column, struct csv_field *f)
{
    const char *s = at, *stop;
    *f = (struct csv_field){ .nlines = 1 };
    for (size_t i = 0;; i++) {
        bly_bytes text;
        bool doubled = false;
        if (*s == '"') {
            const char *const close = closing_quote(s + 1, end, &doubled);
            if (!close) {
                f->wrong = "a quote that is never closed";
                f->nfields = i + 1;
                /* The last newline is the reader's own. */
                f->nlines = newlines_in(at, end - 1) + (end[-2] != '\n');
                return end;
            }
            text = (bly_bytes){ s + 1, (size_t)(close - s - 1) };
            f->nlines += newlines_in(s, close);
            s = close + 1;
            stop = csv_stop(s, end, delimiter);
            if (s != stop && !(stop == s + 1 && *s == '\r' && *stop == '\n'))
                f->wrong = "text behind the quote that closes a field; right: "
                           "quotes inside of a field are doubled";
        } else {
            stop = csv_stop(s, end, delimiter);
            const bool cr = *stop == '\n' && stop > s && stop[-1] == '\r';
            text = (bly_bytes){ s, (size_t)(stop - s) - cr };
        }
        f->nfields = i + 1;
        if (i == column) {
            f->text = text;
            f->doubled = doubled;
        }
        s = stop + 1;
        if (*stop == '\n')
            return s;
    }
}

const char *csv_record(const char *at, const char *end, char delimiter,
                       size_t column, struct csv_field *f)
{
    const char *const behind = window_record(at, end, delimiter, column, f);
    return behind ? behind : csv_slow(at, end, delimiter, column, f);
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
