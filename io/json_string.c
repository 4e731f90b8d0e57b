/*
 * json_string.c - strings of JSON: where one ends, and what it says
 *
 * Most of a line is one long string, so the speed is that of looking for its
 * end: the next quote, and whether the backslashes before it are even. What is
 * inside is looked at once more for escapes, which are then checked one by one.
 * Bytes may be anything but a quote: control characters harm nobody here, and
 * whoever takes a string looks whether it is UTF-8, as JSON has to be.
 */
#include <string.h>

#include "io/json_field.h"
#include "io/utf8.h"

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool four_digits(const char *s, const char *end, unsigned *value)
{
    *value = 0;
    if (end - s < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const int v = hex_value(s[i]);
        if (v < 0)
            return false;
        *value = *value * 16 + (unsigned)v;
    }
    return true;
}

/* Whether all escapes of a string are ones that exist. */
static bool escapes_exist(const char *s, const char *end)
{
    while ((s = memchr(s, '\\', (size_t)(end - s)))) {
        unsigned code;
        if (s + 1 == end)
            return false;
        if (s[1] == 'u') {
            if (!four_digits(s + 2, end, &code))
                return false;
            s += 6;
        } else if (s[1] && strchr("\"\\/bfnrt", s[1])) {
            s += 2;
        } else {
            return false;
        }
    }
    return true;
}

const char *json_scan_string(const char *s, const char *end,
                             struct json_slice *out)
{
    const char *const from = ++s;
    for (;;) {
        const char *const quote = memchr(s, '"', (size_t)(end - s));
        if (!quote)
            return NULL;
        const char *b = quote;
        while (b > from && b[-1] == '\\')
            b--;
        s = quote + 1;
        if ((quote - b) % 2)
            continue;
        out->type = JSON_STRING;
        out->at = from;
        out->len = (size_t)(quote - from);
        out->escaped = memchr(from, '\\', out->len) != NULL;
        return !out->escaped || escapes_exist(from, quote) ? s : NULL;
    }
}

size_t json_unescape(const char *raw, size_t n, char *out)
{
    const char *s = raw, *const end = raw + n;
    char *to = out;
    while (s < end) {
        const char *b = memchr(s, '\\', (size_t)(end - s));
        if (!b)
            b = end;
        memcpy(to, s, (size_t)(b - s));
        to += b - s;
        s = b;
        if (end - s < 2)
            break;
        unsigned code, low;
        if (s[1] != 'u' || !four_digits(s + 2, end, &code)) {
            static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
            const char *const known = s[1] ? strchr(from, s[1]) : NULL;
            *to++ = known ? into[known - from] : s[1];
            s += 2;
            continue;
        }
        s += 6;
        if (code >= 0xd800 && code < 0xdc00 && end - s >= 6 && s[0] == '\\' &&
            s[1] == 'u' && four_digits(s + 2, end, &low) && low >= 0xdc00 &&
            low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            s += 6;
        } else if (code >= 0xd800 && code < 0xe000) {
            code = 0xfffd;
        }
        to += utf8_put(code, to);
    }
    return (size_t)(to - out);
}
