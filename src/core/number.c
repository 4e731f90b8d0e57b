/*
 * number.c - "10M", "64MiB", "1%": numbers as people write them
 *
 * A number has digits, an exponent and a suffix. Its factors are powers of ten
 * and of two, so it is kept as
 *
 *     digits * 2^twos * 5^fives          1.5k = 15 * 2^2 * 5^2
 *
 * until the end. Then it is known exactly whether a count is whole, since
 * nothing was rounded on the way: 0.001k is 1, which the nearest binary
 * fraction times 1000 misses. The C library's strtod() would also go by the
 * locale, in which the point may be a comma.
 */
#include <math.h>
#include <string.h>

#include <bloomery.h>

#include "core/wide.h"

/* Help, options and the library agree, since there is one table. */
static const struct {
    const char *suffix;
    int tens, twos;
} suffixes[] = {
    { "", 0, 0 },    { "k", 3, 0 },   { "K", 3, 0 },   { "M", 6, 0 },
    { "G", 9, 0 },   { "T", 12, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
    { "Gi", 0, 30 }, { "Ti", 0, 40 },
};

typedef struct decimal {
    uint64_t digits;
    int twos, fives;
    bool cut; /* digits that are not 0 were dropped at the end */
} decimal;

/* Beyond every representable number, and far from the limits of an int. */
#define MAX_EXPONENT 100000

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void times_ten(decimal *d, int power)
{
    d->twos += power;
    d->fives += power;
}

/* Take one more digit; digits that do not fit into 64 bits move the point
 * instead. */
static void take_digit(decimal *d, unsigned digit, bool fraction)
{
    if (d->digits <= (UINT64_MAX - digit) / 10) {
        d->digits = 10 * d->digits + digit;
        if (fraction && d->fives > -MAX_EXPONENT)
            times_ten(d, -1);
    } else {
        d->cut |= digit != 0;
        if (!fraction && d->fives < MAX_EXPONENT)
            times_ten(d, 1);
    }
}

/* "e6", "E-3": where *p is at one, take it. */
static void take_exponent(const char **p, decimal *d)
{
    const char *s = *p;
    if (*s != 'e' && *s != 'E')
        return;
    s++;
    const bool down = *s == '-';
    if (*s == '-' || *s == '+')
        s++;
    if (!is_digit(*s))
        return;
    int power = 0;
    for (; is_digit(*s); s++)
        if (power < MAX_EXPONENT)
            power = 10 * power + (*s - '0');
    times_ten(d, down ? -power : power);
    *p = s;
}

/* All of text, suffix included; false where it is not a number, or has
 * anything before or behind. percent: whether "%" is allowed. */
static bool read_number(const char *text, bool percent, decimal *out)
{
    decimal d = { 0 };
    const char *p = text;
    if (!p || !(is_digit(*p) || (*p == '.' && is_digit(p[1]))))
        return false;
    for (; is_digit(*p); p++)
        take_digit(&d, (unsigned)(*p - '0'), false);
    if (*p == '.')
        for (p++; is_digit(*p); p++)
            take_digit(&d, (unsigned)(*p - '0'), true);
    take_exponent(&p, &d);

    if (percent && strcmp(p, "%") == 0) {
        times_ten(&d, -2);
        *out = d;
        return true;
    }
    size_t len = strlen(p);
    if (len && p[len - 1] == 'B')
        len--;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strlen(suffixes[i].suffix) == len &&
            memcmp(suffixes[i].suffix, p, len) == 0) {
            times_ten(&d, suffixes[i].tens);
            d.twos += suffixes[i].twos;
            *out = d;
            return true;
        }
    }
    return false;
}

/* *v * factor^power, if that is whole and below 2^64. This ends soon: a number
 * that is not 0 can be multiplied or divided at most 63 times. */
static bool apply_power(uint64_t *v, unsigned factor, int power)
{
    for (; *v && power > 0; power--) {
        if (*v > UINT64_MAX / factor)
            return false;
        *v *= factor;
    }
    for (; *v && power < 0; power++) {
        if (*v % factor)
            return false;
        *v /= factor;
    }
    return true;
}

bool bly_parse_count(const char *text, uint64_t *out)
{
    decimal d;
    if (!text || !read_number(text, false, &d) || d.cut)
        return false;
    /* Fives first: where they divide, twos may still multiply (0.1Ti). */
    uint64_t v = d.digits;
    const bool whole =
        apply_power(&v, 5, d.fives) && apply_power(&v, 2, d.twos);
    if (whole)
        *out = v;
    return whole;
}

/* The nearest double if digits and power each fit into one, since then a single
 * operation rounds once; else that or its neighbour. INFINITY if too large. */
static double nearest_real(const decimal *d)
{
    const int n = d->fives < 0 ? -d->fives : d->fives;
    bly_wide power = 1;
    for (int i = 0; i < n; i++)
        power *= 5;
    if (d->digits == 0)
        return 0;
    if (d->digits <= UINT64_C(1) << 53 && n <= 22) { /* 5^22 < 2^53 */
        const double v = (double)d->digits, p = (double)power;
        return ldexp(d->fives < 0 ? v / p : v * p, d->twos);
    }
    const bly_wide v = (bly_wide)d->digits;
    return (double)BLY_WIDE(ldexp)(d->fives < 0 ? v / power : v * power,
                                   d->twos);
}

bool bly_parse_real(const char *text, double *out)
{
    decimal d;
    if (!text || !read_number(text, true, &d))
        return false;
    const double v = nearest_real(&d);
    if (!isfinite(v))
        return false;
    *out = v;
    return true;
}
