/*
 * case.c - text without upper and lower case
 *
 * Case is folded by the "simple" rule of Unicode, one character for one. So
 * "Straße" and "STRASSE" stay two keys, but É and é, Σ, σ and ς, K and the
 * Kelvin sign are one. The table is part of the library, stays with one version
 * of Unicode for ever, and does not depend on the locale. So a filter gives the
 * same answers everywhere.
 */
#include "core/bits.h"
#include "core/case.h"
#include "core/fold_table.h"

#define FOLD_RUNS (sizeof fold_runs / sizeof fold_runs[0])

static uint32_t fold_char(uint32_t c)
{
    size_t low = 0, high = FOLD_RUNS; /* the run is below high */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (fold_runs[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == FOLD_RUNS || c < fold_runs[low].first ||
        (c - fold_runs[low].first) % fold_runs[low].step)
        return c;
    return c + (uint32_t)fold_runs[low].by;
}

/* The character at s, which takes *len bytes; or the byte itself, if it is not
 * valid UTF-8. */
static uint32_t read_utf8(const unsigned char *s, size_t n, size_t *len)
{
    const unsigned char lead = s[0];
    const size_t want = lead >= 0xf0   ? 4
                        : lead >= 0xe0 ? 3
                        : lead >= 0xc2 ? 2
                                       : 1;
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint32_t c = want == 1 ? lead : lead & (0x7fu >> want);
    *len = 1;
    if (want == 1 || lead > 0xf4 || want > n)
        return UINT32_MAX;
    for (size_t i = 1; i < want; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return UINT32_MAX;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[want] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return UINT32_MAX;
    *len = want;
    return c;
}

static char *write_utf8(char *to, uint32_t c)
{
    const unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = { 0, 0xc0, 0xe0, 0xf0 };
    *to++ = (char)(lead[more] | c >> 6 * more);
    for (unsigned i = more; i-- > 0;)
        *to++ = (char)(0x80 | (c >> 6 * i & 0x3f));
    return to;
}

/* Eight letters of ASCII at once: 0x20 for each byte from A to Z. No byte has
 * its highest bit set, so no sum carries into the next. */
static uint64_t lower_eight(uint64_t x)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t from_a = x + ones * (0x80 - 'A');
    const uint64_t past_z = x + ones * (0x80 - 'Z' - 1);
    return x | ((from_a & ~past_z & ones * 0x80) >> 2);
}

size_t bly_fold_text(const char *text, size_t n, char *to)
{
    if (!n) /* there may be no text at all */
        return 0;
    const unsigned char *s = (const unsigned char *)text;
    const unsigned char *const end = s + n;
    char *out = to;
    while (s < end) {
        uint64_t eight;
        while (end - s >= 8 &&
               !((eight = bly_load64(s)) & UINT64_C(0x8080808080808080))) {
            bly_store64((unsigned char *)out, lower_eight(eight));
            s += 8;
            out += 8;
        }
        if (s == end)
            break;
        /* The last bytes, with some of those before them once more. */
        if (n >= 8 && end - s < 8 &&
            out - to == s - (const unsigned char *)text &&
            !((eight = bly_load64(end - 8)) & UINT64_C(0x8080808080808080))) {
            bly_store64((unsigned char *)to + n - 8, lower_eight(eight));
            return n;
        }
        if (*s < 0x80) {
            *out++ = (char)(*s >= 'A' && *s <= 'Z' ? *s | 0x20 : *s);
            s++;
            continue;
        }
        size_t len;
        const uint32_t c = read_utf8(s, (size_t)(end - s), &len);
        if (c == UINT32_MAX)
            *out++ = (char)*s;
        else
            out = write_utf8(out, fold_char(c));
        s += len;
    }
    return (size_t)(out - to);
}
