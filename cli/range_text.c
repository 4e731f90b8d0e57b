/*
 * range_text.c - ranges as people write them
 *
 *     7..12   -5..5   ab..ad   10.0.0.0..10.0.0.255   10.0.0.0/24
 *     2024-05-01..2024-05-03T12:00   2024-05
 *
 * An address or a time is a range too: one address, a second, a minute, a day,
 * a month. A range of two of them begins where the first does and ends where
 * the second ends.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "cli/range_text.h"
#include "report/show.h"

/* Numbers from first to last. */
struct span {
    int64_t first, last;
};

/* Up to `most` digits, at least `least`, below a bound. Where they end, or
 * NULL. */
static const char *digits(const char *p, const char *end, int least, int most,
                          int64_t *out)
{
    int n = 0;
    *out = 0;
    for (; p < end && n < most && *p >= '0' && *p <= '9'; p++, n++)
        *out = *out * 10 + (*p - '0');
    return n >= least ? p : NULL;
}

/* A number behind a character, which need not be there: then *out stays. */
static const char *part(const char *p, const char *end, char before,
                        int64_t least, int64_t most, int64_t *out, bool *there)
{
    *there = p && p < end && *p == before;
    if (!*there)
        return p;
    p = digits(p + 1, end, 2, 2, out);
    return p && *out >= least && *out <= most ? p : NULL;
}

static bool read_address(const char *p, const char *end, struct span *out)
{
    int64_t address = 0, number, bits = 32;
    for (int i = 0; i < 4; i++) {
        if (i && (p == end || *p++ != '.'))
            return false;
        p = digits(p, end, 1, 3, &number);
        if (!p || number > 255)
            return false;
        address = address << 8 | number;
    }
    if (p < end) {
        if (*p != '/')
            return false;
        p = digits(p + 1, end, 1, 2, &bits);
        if (p != end || bits > 32)
            return false;
    }
    const int64_t rest = (INT64_C(1) << (32 - bits)) - 1;
    out->first = address & ~rest;
    out->last = address | rest;
    return true;
}

/* Days from 1970-01-01 to a day of the Gregorian calendar: March is its first
 * month, so that the day that some years have is their last. */
static int64_t days_to(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    const int64_t era = year / 400, of_era = year % 400;
    const int64_t of_year =
        (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
           719469;
}

/* YYYY-MM[-DD[Thh:mm[:ss]]][Z], of UTC; a blank may stand for the T. */
static bool read_time(const char *p, const char *end, struct span *out)
{
    int64_t year, month = 1, day = 1, hour = 0, minute = 0, second = 0;
    bool m, d, h = false, min = false, s = false;
    p = digits(p, end, 4, 4, &year);
    p = part(p, end, '-', 1, 12, &month, &m);
    if (!p || !m)
        return false;
    p = part(p, end, '-', 1, 31, &day, &d);
    if (d) {
        p = part(p, end, 'T', 0, 23, &hour, &h);
        if (p && !h)
            p = part(p, end, ' ', 0, 23, &hour, &h);
    }
    if (h)
        p = part(p, end, ':', 0, 59, &minute, &min);
    if (min)
        p = part(p, end, ':', 0, 59, &second, &s);
    if (p && h && p < end && *p == 'Z')
        p++;
    if (p != end || h != min)
        return false;
    const int64_t next =
        month < 12 ? days_to(year, month + 1, 1) : days_to(year + 1, 1, 1);
    if (days_to(year, month, day) >= next)
        return false; /* the 31st of April */
    out->first =
        days_to(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    out->last = s     ? out->first
                : min ? out->first + 59
                : d   ? out->first + 86399
                      : next * 86400 - 1;
    return true;
}

static bool read_span(bly_bytes text, struct span *out)
{
    const char *const p = text.ptr;
    return read_address(p, p + text.len, out) ||
           read_time(p, p + text.len, out);
}

static bly_bytes range_number(int64_t number, char *room, size_t size)
{
    const int n = snprintf(room, size, "%lld", (long long)number);
    return (bly_bytes){ room, (size_t)n };
}

const char *range_read(bly_bytes text, bool integers, struct range_text *out)
{
    const char *const dots =
        text.len ? memmem(text.ptr, text.len, "..", 2) : NULL;
    struct span span;
    if (!dots) {
        if (!integers || !read_span(text, &span))
            return integers ? "is not a range; expected A..B, or a network, a "
                              "month or a day"
                            : "is not a range; expected A..B";
        out->a = range_number(span.first, out->room[0], sizeof out->room[0]);
        out->b = range_number(span.last, out->room[1], sizeof out->room[1]);
        return NULL;
    }
    const size_t n = (size_t)(dots - (const char *)text.ptr);
    out->a = (bly_bytes){ text.ptr, n };
    out->b = (bly_bytes){ dots + 2, text.len - n - 2 };
    if (integers && (!out->a.len || !out->b.len))
        return "has only one end; expected A..B";
    if (integers && read_span(out->a, &span))
        out->a = range_number(span.first, out->room[0], sizeof out->room[0]);
    if (integers && read_span(out->b, &span))
        out->b = range_number(span.last, out->room[1], sizeof out->room[1]);
    return NULL;
}

/* ----------------------------------------------------------------- asking */

#define SHOWN_RANGE 40 /* bytes of it, in a message */

/* The reason, with the range before it. Kept until this thread has another. */
static bly_status range_wrong(struct batch *b, size_t i, const char *reason)
{
    static _Thread_local char why[300];
    char shown[SHOWN_RANGE + 1];
    const bly_bytes range = b->keys[i];
    const size_t n = range.len < SHOWN_RANGE ? range.len : SHOWN_RANGE;
    memcpy(shown, range.ptr, n);
    shown[n] = '\0';
    text_clean(shown, n, true);
    snprintf(why, sizeof why, "'%s%s' %s", shown, range.len > n ? "..." : "",
             reason);
    b->why = why;
    return BLY_EINVAL;
}

bly_status ranges_ask(const bly_filter *f, struct batch *b)
{
    const bly_key_type type = bly_keying_of(f).type;
    const bool integers = type == BLY_KEYS_INT64 || type == BLY_KEYS_UINT64;
    struct range_text read[BATCH];
    bly_bytes from[BATCH], to[BATCH];
    uint64_t maybe;
    for (size_t i = 0; i < b->n; i++) {
        const char *const reason = range_read(b->keys[i], integers, &read[i]);
        if (reason)
            return range_wrong(b, i, reason);
        from[i] = read[i].a;
        to[i] = read[i].b;
    }
    const bly_status st =
        bly_has_ranges_as(f, BLY_KEYS_TEXT, from, to, b->n, b->picked);
    /* Which one was it? */
    for (size_t i = 0; st == BLY_EINVAL && i < b->n; i++)
        if (bly_has_ranges_as(f, BLY_KEYS_TEXT, &from[i], &to[i], 1, &maybe)) {
            char reason[240];
            snprintf(reason, sizeof reason, "is not a range here: %s",
                     bly_error());
            return range_wrong(b, i, reason);
        }
    return st;
}
