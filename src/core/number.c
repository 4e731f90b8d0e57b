/*
 * number.c - "10M", "64MiB", "1%": numbers as people write them
 *
 * Suffixes are looked up in one table, so that help, options and the library
 * agree. A count is taken through a long double and must come out whole: 1e6,
 * 1.5k and 64MiB are counts, 1.5 is not.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

static const struct {
    const char *suffix;
    double factor;
} suffixes[] = {
    { "", 1 },        { "k", 1e3 },     { "K", 1e3 },     { "M", 1e6 },
    { "G", 1e9 },     { "T", 1e12 },    { "Ki", 0x1p10 }, { "Mi", 0x1p20 },
    { "Gi", 0x1p30 }, { "Ti", 0x1p40 },
};

/* The number with its suffix applied; false where text is not a number, or
 * has anything before or behind. percent: whether "%" is allowed. */
static bool read_number(const char *text, bool percent, long double *value)
{
    if (!text || !strchr("0123456789.", text[0]) || !text[0])
        return false;
    /* strtold would take hexadecimal, which people do not mean. */
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    char *end;
    const long double v = strtold(text, &end);
    if (end == text || !isfinite(v))
        return false;
    if (percent && strcmp(end, "%") == 0) {
        *value = v / 100;
        return true;
    }
    size_t len = strlen(end);
    if (len && end[len - 1] == 'B')
        len--;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strlen(suffixes[i].suffix) == len &&
            memcmp(suffixes[i].suffix, end, len) == 0) {
            *value = v * suffixes[i].factor;
            return true;
        }
    }
    return false;
}

bool bly_parse_count(const char *text, uint64_t *out)
{
    long double v;
    if (!read_number(text, false, &v) || v >= 0x1p64L || v != floorl(v))
        return false;
    *out = (uint64_t)v;
    return true;
}

bool bly_parse_real(const char *text, double *out)
{
    long double v;
    if (!read_number(text, true, &v))
        return false;
    *out = (double)v;
    return true;
}
