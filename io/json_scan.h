/*
 * json_scan.h - numbers, words and quotes of JSON, many bytes at a time
 *
 * Behind what is read here stand a byte that belongs to no value, a newline
 * for instance, and BLOCK_SLACK more bytes that can be read.
 */
#ifndef BLY_IO_JSON_SCAN_H
#define BLY_IO_JSON_SCAN_H

#include <string.h>

#include "io/cutter.h"
#include "io/json_field.h"

/* A bit for each of SCAN_BYTES bytes that is a quote or a backslash. */
#if defined(__SSE2__) && !defined(CUTTER_PORTABLE)
#define SCAN_BYTES 16
static inline uint64_t scan_quotes(const char *at)
{
    return cutter_sixteen(at, _mm_set1_epi8('"')) |
           cutter_sixteen(at, _mm_set1_epi8('\\'));
}
#else
#define SCAN_BYTES CUTTER_WINDOW
static inline uint64_t scan_quotes(const char *at)
{
    return cutter_ends(at, '"') | cutter_ends(at, '\\');
}
#endif

/* What is behind the digits at s, of eight bytes or of all. The first byte that
 * is none has 0x80 in `others`: no digit before it carries or borrows. */
static inline const char *json_scan_eight(const char *s)
{
    const uint64_t x = get_le((const unsigned char *)s, 8);
    const uint64_t others = ((x + UINT64_C(0x4646464646464646)) |
                             (x - UINT64_C(0x3030303030303030))) &
                            UINT64_C(0x8080808080808080);
    return s + (others ? __builtin_ctzll(others) / 8 : 8);
}

static inline const char *json_scan_digits(const char *s)
{
    const char *d = json_scan_eight(s);
    while (d == s + 8)
        d = json_scan_eight(s = d);
    return d;
}

/* A number, or a word, at s: what is behind it, or NULL. */
static inline const char *json_scan_scalar(const char *s,
                                           struct json_slice *out)
{
    const char *const from = s;
    s += *s == '-';
    const char *d = json_scan_digits(s);
    *out = (struct json_slice){ JSON_NUMBER, from, 0, false };
    if (d == s && d == from) {
        const size_t n = *s == 'f' ? 5 : 4;
        out->type = JSON_OTHER;
        out->len = n;
        return memcmp(s,
                      *s == 't'   ? "true"
                      : *s == 'n' ? "null"
                                  : "false",
                      n) == 0
                   ? s + n
                   : NULL;
    }
    if (d == s || (*s == '0' && d > s + 1))
        return NULL;
    s = d;
    if (*s == '.') {
        d = json_scan_digits(++s);
        if (d == s)
            return NULL;
        s = d;
    }
    if ((*s | 0x20) == 'e') {
        s++;
        s += *s == '+' || *s == '-';
        d = json_scan_digits(s);
        if (d == s)
            return NULL;
        s = d;
    }
    out->len = (size_t)(s - from);
    return s;
}

#endif
