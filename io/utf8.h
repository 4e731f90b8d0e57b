/*
 * utf8.h - characters of UTF-8, one by one
 */
#ifndef BLY_IO_UTF8_H
#define BLY_IO_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The character at *at, which moves behind it; there must be a byte before
 * end. Negative, and *at somewhere in it, for what is none: overlong forms,
 * surrogates, pieces. */
static inline int32_t utf8_next(const char **at, const char *end)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char first = (unsigned char)*(*at)++;
    if (first < 0x80)
        return first;
    const unsigned n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || (size_t)(end - *at) < n - 1)
        return -1;
    uint32_t c = first & (0x7fu >> n);
    for (unsigned i = 1; i < n; i++) {
        if (((unsigned char)**at & 0xc0) != 0x80)
            return -1;
        c = c << 6 | ((unsigned char)*(*at)++ & 0x3f);
    }
    const bool surrogate = c >= 0xd800 && c < 0xe000;
    return c < least[n] || surrogate || c > 0x10ffff ? -1 : (int32_t)c;
}

/* Whether all of it is UTF-8. Most text is ASCII, which goes eight bytes at a
 * time. */
static inline bool utf8_valid(const char *s, size_t n)
{
    const char *const end = s + n;
    while (s < end) {
        uint64_t eight;
        for (; end - s >= 8; s += 8) {
            memcpy(&eight, s, 8);
            if (eight & UINT64_C(0x8080808080808080))
                break;
        }
        if (s < end && utf8_next(&s, end) < 0)
            return false;
    }
    return true;
}

/* The bytes of a character, 4 at most; how many they are. */
static inline size_t utf8_put(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const unsigned n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    to[0] = (char)((0xf00u >> n & 0xff) | c >> 6 * (n - 1));
    for (unsigned i = 1; i < n; i++)
        to[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
    return n;
}

#endif
