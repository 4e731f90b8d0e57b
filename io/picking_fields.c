/*
 * picking_fields.c - fields of lines, and columns of CSV
 *
 * Lines and fields are cut in one pass, 64 bytes at a time as in cutter.h: one
 * mask has the ends of lines, another the delimiters. What is known of the line
 * that a window ends in is carried to the next.
 *
 *     window   a n n \t x @ y \t 1 \n b o b \t ...
 *     ends     . . .  . . . .  . .  1 . . .  .
 *     cuts     . . .  1 . . .  1 .  . . . .  1
 *
 * With CSV, ends and cuts inside of quotes do not count. The exclusive or of
 * all bits of the mask of quotes up to one tells whether it is inside, doubled
 * quotes leaving it as it was. That is right as long as a quote that opens
 * stands at the start of a field, and one that closes at the end. Where a
 * window has anything else, or a newline inside of quotes, it is used up to
 * there, and csv_record() reads that record byte by byte.
 */
#include <string.h>

#include "io/picker_inside.h"

#define FIELDS_FEW "%zu field%s, and field %ld is asked for"
#define COLUMNS_FEW "%zu column%s, and column %zu is asked for"

void fields_start(struct field_cutter *f, const char *at, size_t n, size_t want)
{
    *f = (struct field_cutter){ .begin = at,
                                .start = at,
                                .from = at,
                                .window = at,
                                .end = at + n,
                                .left = want,
                                .fresh = true };
}

/* The bits below the lowest one of x; all, if there is none. */
static inline uint64_t below(uint64_t x)
{
    return x ? (x & -x) - 1 : UINT64_MAX;
}

static inline uint64_t valid_bits(const struct field_cutter *f)
{
    const size_t left = (size_t)(f->end - f->window);
    return left < CUTTER_WINDOW ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
}

/* Which of the bytes behind quotes that close are wrong there? */
static uint64_t wrong_behind(const struct field_cutter *f, uint64_t behind)
{
    uint64_t wrong = 0;
    for (; behind; behind &= behind - 1) {
        const char *const at = f->window + __builtin_ctzll(behind);
        if (!(at[0] == '\r' && at[1] == '\n'))
            wrong |= behind & -behind;
    }
    return wrong;
}

/* A window of CSV: cuts and ends that count, up to what is left to
 * csv_record(). */
static inline void look_csv(struct field_cutter *f, char delimiter)
{
    const uint64_t valid = valid_bits(f);
    const uint64_t quotes = cutter_ends(f->window, '"') & valid;
    f->ends = cutter_ends(f->window, '\n') & valid;
    f->cuts = cutter_ends(f->window, delimiter) & valid;
    f->quotes = quotes;
    f->hard = 0;
    if (!quotes && !f->inside)
        return;
    const uint64_t inside = csv_parity(quotes) ^ (f->inside ? UINT64_MAX : 0);
    const uint64_t around = f->cuts | f->ends | quotes;
    const char before = f->window > f->begin ? f->window[-1] : '\n';
    const uint64_t first =
        before == delimiter || before == '\n' || before == '"';
    const uint64_t opens = quotes & inside & ~(around << 1 | first);
    const uint64_t closes = quotes & ~inside;
    uint64_t wrong = opens | (f->ends & inside);
    if (closes << 1 & ~around)
        wrong |= wrong_behind(f, closes << 1 & ~around & valid);
    if (closes >> 63 && f->window[64] != delimiter && f->window[64] != '\n' &&
        f->window[64] != '"')
        wrong |= UINT64_C(1) << 63;
    f->ends &= ~inside;
    f->cuts &= ~inside;
    f->inside = inside >> 63;
    if (wrong) {
        f->hard = wrong & -wrong;
        f->ends &= below(wrong);
        f->cuts &= below(wrong);
    }
}

/* The field between two places; quotes around it go. */
static inline void csv_key(struct picking *p, const struct field_cutter *f,
                           const char *from, const char *to, bly_bytes *key)
{
    if (to - from >= 2 && *from == '"') {
        from++;
        to--;
        const size_t n = (size_t)(to - from);
        const uint64_t mine = f->quotes >> ((size_t)(from - f->window) & 63);
        /* Inside of quotes there are only doubled ones. */
        if (from < f->window ? memchr(from, '"', n) != NULL
                             : n && mine & (UINT64_MAX >> (64 - n))) {
            *key = picking_copy(p, (bly_bytes){ from, n }, csv_undouble);
            return;
        }
    }
    *key = (bly_bytes){ from, (size_t)(to - from) };
}

/* The record at f->start, byte by byte; the next window is behind it. */
static size_t hard_record(struct picking *p, struct field_cutter *f,
                          size_t want, bly_bytes *key, bly_bytes *line,
                          uint32_t *number)
{
    struct csv_field c;
    const char *const at = f->start;
    const char *const behind =
        csv_record(at, f->end, p->in->picker->delimiter, want, &c);
    const uint64_t first = p->nlines;
    p->nlines += c.nlines;
    *line = (bly_bytes){ at, (size_t)(behind - at) - 1 };
    *number = (uint32_t)first;
    f->start = f->from = f->window = behind;
    f->seen = false;
    f->left = want;
    f->inside = false;
    f->fresh = true;
    if (c.wrong) {
        picking_bad(p, first, c.nlines, "%s", c.wrong);
        return 0;
    }
    if (!c.text.ptr) {
        picking_bad(p, first, c.nlines, COLUMNS_FEW, c.nfields,
                    c.nfields == 1 ? "" : "s", want + 1);
        return 0;
    }
    *key = c.doubled ? picking_copy(p, c.text, csv_undouble) : c.text;
    return 1;
}

/* A line that has no such field: is it bad, or no record at all? */
static void few_fields(struct picking *p, const struct field_cutter *f,
                       size_t want, bool csv, const char *stop)
{
    const size_t n = want - f->left + 1;
    const char *const s = n == 1 ? "" : "s";
    if (!csv)
        picking_bad(p, p->nlines, 1, FIELDS_FEW, n, s, (long)want + 1);
    else if (stop > f->start && !(stop == f->start + 1 && *f->start == '\r'))
        picking_bad(p, p->nlines, 1, COLUMNS_FEW, n, s, want + 1);
}

static inline __attribute__((always_inline)) size_t
pick_cuts(struct picking *p, bly_bytes *keys, bly_bytes *lines,
          uint32_t *numbers, size_t max, bool csv)
{
    const struct picker *const how = p->in->picker;
    const char delimiter = how->delimiter;
    const char separator = p->in->separator;
    const bool crlf = csv || how->crlf;
    const size_t want = csv ? p->column : (size_t)how->field - 1;
    struct field_cutter f = p->fields; /* in registers */
    size_t n = 0;
    while (n < max) {
        if (f.fresh) {
            if (f.window >= f.end)
                break;
            f.fresh = false;
            if (csv) {
                look_csv(&f, delimiter);
            } else {
                const uint64_t valid = valid_bits(&f);
                f.ends = cutter_ends(f.window, separator) & valid;
                f.cuts = cutter_ends(f.window, delimiter) & valid;
            }
        }
        for (;;) {
            /* The cuts of this line, as far as the window has it. */
            const uint64_t mine = below(f.ends);
            uint64_t cuts = f.cuts & mine;
            f.cuts &= ~mine;
            for (; f.left && cuts; f.left--, cuts &= cuts - 1)
                f.from = f.window + __builtin_ctzll(cuts) + 1;
            if (cuts && !f.seen) {
                f.to = f.window + __builtin_ctzll(cuts);
                f.seen = true;
            }
            if (!f.ends)
                break;
            const char *const stop = f.window + __builtin_ctzll(f.ends);
            f.ends &= f.ends - 1;
            if (!f.seen)
                f.to = stop - (crlf && stop > f.from && stop[-1] == '\r');
            lines[n] = (bly_bytes){ f.start, (size_t)(stop - f.start) };
            numbers[n] = (uint32_t)p->nlines;
            if (__builtin_expect(f.left != 0, 0)) {
                few_fields(p, &f, want, csv, stop);
            } else if (csv) {
                /* An empty line is not a record. */
                csv_key(p, &f, f.from, f.to, &keys[n]);
                n += keys[n].len || stop - f.start > 1 ||
                     (stop > f.start && *f.start != '\r');
            } else {
                keys[n++] = (bly_bytes){ f.from, (size_t)(f.to - f.from) };
            }
            p->nlines++;
            f.start = f.from = stop + 1;
            f.left = want;
            f.seen = false;
            if (n == max)
                goto full;
        }
        if (csv && f.hard) {
            n += hard_record(p, &f, want, &keys[n], &lines[n], &numbers[n]);
        } else {
            f.window += CUTTER_WINDOW;
            f.fresh = true;
        }
    }
full:
    p->fields = f;
    return n;
}

size_t pick_fields(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                   uint32_t *numbers, size_t max)
{
    return pick_cuts(p, keys, lines, numbers, max, false);
}

size_t pick_columns(struct picking *p, bly_bytes *keys, bly_bytes *lines,
                    uint32_t *numbers, size_t max)
{
    return pick_cuts(p, keys, lines, numbers, max, true);
}
