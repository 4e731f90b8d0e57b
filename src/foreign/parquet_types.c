/*
 * parquet_types.c - the types of Parquet's columns, and their values from text
 *
 * A filter holds hashes of values as they are stored: 2020-01-01 is the number
 * 18262 in four bytes, 1.50 with two digits behind the point is 150. Who asks
 * gives text; here it becomes those bytes, or is refused: a value in the wrong
 * form would be "surely not there", which is no answer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sized.h"
#include "foreign/parquet_file.h"

/* The longest decimal: 76 digits take 32 bytes. */
#define DECIMAL_BYTES 64

/* ------------------------------------------------------------------ names */

static const char *unit_name(uint32_t digits)
{
    return digits == 3   ? "milliseconds"
           : digits == 6 ? "microseconds"
                         : "nanoseconds";
}

void bly_parquet_type_name_sized(const bly_parquet_column *given, char *out,
                                 size_t room, size_t size)
{
    bly_parquet_column own, *const c = &own;
    bly_give(given, size, &own, sizeof own);
    static const char *const types[] = { "BOOLEAN",    "INT32",
                                         "INT64",      "INT96",
                                         "FLOAT",      "DOUBLE",
                                         "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY" };
    static const char *const meanings[] = {
        [BLY_PARQUET_STRING] = "string",
        [BLY_PARQUET_ENUM] = "enum",
        [BLY_PARQUET_JSON] = "JSON",
        [BLY_PARQUET_BSON] = "BSON",
        [BLY_PARQUET_DATE] = "date",
        [BLY_PARQUET_UUID] = "UUID",
        [BLY_PARQUET_FLOAT16] = "float16",
        [BLY_PARQUET_INTERVAL] = "interval",
        [BLY_PARQUET_OTHER] = "of unknown meaning",
    };
    char type[40];
    snprintf(type, sizeof type, "%s", types[c->type]);
    if (c->type == BLY_PARQUET_FIXED)
        snprintf(type, sizeof type, "%s(%u)", types[c->type], c->width);
    switch (c->meaning) {
    case BLY_PARQUET_PLAIN:
        snprintf(out, room, "%s", type);
        break;
    case BLY_PARQUET_INTEGER:
        snprintf(out, room, "%s %sint%u", type, c->is_unsigned ? "u" : "",
                 c->bits);
        break;
    case BLY_PARQUET_DECIMAL:
        snprintf(out, room, "%s decimal(%u, %d)", type, c->precision, c->scale);
        break;
    case BLY_PARQUET_TIME:
    case BLY_PARQUET_TIMESTAMP:
        snprintf(out, room, "%s %s in %s", type,
                 c->meaning == BLY_PARQUET_TIME ? "time" : "timestamp",
                 unit_name(c->digits));
        break;
    default:
        snprintf(out, room, "%s %s", type, meanings[c->meaning]);
    }
}

/* ---------------------------------------------------------------- reading */

/* Text on its way; each step takes what it knows from the front. */
struct text {
    const char *at, *end;
};

static bool text_take(struct text *t, char c)
{
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static bool at_digit(const struct text *t)
{
    return t->at < t->end && *t->at >= '0' && *t->at <= '9';
}

/* A number of least to most digits, below 10^18. */
static bool digits_take(struct text *t, unsigned least, unsigned most,
                        int64_t *out)
{
    unsigned n = 0;
    for (*out = 0; n < most && at_digit(t); n++)
        *out = *out * 10 + (*t->at++ - '0');
    return n >= least && !at_digit(t);
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 1970-01-01 to a date of the Gregorian calendar, from year 1 on. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    static const int before[] = { 0,   31,  59,  90,  120, 151,
                                  181, 212, 243, 273, 304, 334 };
    const int64_t past = year - 1;
    return past * 365 + past / 4 - past / 100 + past / 400 + before[month - 1] +
           (month > 2 && is_leap(year)) + day - 1 -
           719162; /* of 1970-01-01, from 0001-01-01 */
}

static bool date_take(struct text *t, int64_t *days)
{
    static const int lengths[] = { 31, 28, 31, 30, 31, 30,
                                   31, 31, 30, 31, 30, 31 };
    int64_t year, month, day;
    if (!digits_take(t, 4, 6, &year) || !text_take(t, '-') ||
        !digits_take(t, 2, 2, &month) || !text_take(t, '-') ||
        !digits_take(t, 2, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 ||
        day > lengths[month - 1] + (month == 2 && is_leap(year)))
        return false;
    *days = days_of(year, month, day);
    return true;
}

/* HH:MM:SS, and a fraction of no more than `digits` that are not zero: in units
 * of 10^-digits seconds. */
static bool time_take(struct text *t, uint32_t digits, int64_t *out)
{
    int64_t hour, minute, second = 0;
    if (!digits_take(t, 2, 2, &hour) || !text_take(t, ':') ||
        !digits_take(t, 2, 2, &minute) || hour > 23 || minute > 59)
        return false;
    if (text_take(t, ':') && (!digits_take(t, 2, 2, &second) || second > 59))
        return false;
    int64_t x = (hour * 60 + minute) * 60 + second;
    const bool has_fraction = text_take(t, '.');
    if (has_fraction && !at_digit(t))
        return false;
    for (uint32_t i = 0; i < digits; i++)
        x = x * 10 + (at_digit(t) ? *t->at++ - '0' : 0);
    while (text_take(t, '0'))
        continue;
    *out = x;
    return !at_digit(t);
}

static bool timestamp_take(struct text *t, uint32_t digits, int64_t *out)
{
    int64_t days, time = 0, unit = 1;
    for (uint32_t i = 0; i < digits; i++)
        unit *= 10;
    if (!date_take(t, &days))
        return false;
    if ((text_take(t, ' ') || text_take(t, 'T')) &&
        !time_take(t, digits, &time))
        return false;
    text_take(t, 'Z');
    return !__builtin_mul_overflow(days * 86400, unit, out) &&
           !__builtin_add_overflow(*out, time, out);
}

/* A decimal with `scale` digits behind its point as a whole number of nbytes,
 * big-endian, in two's complement. */
static bool decimal_take(struct text *t, int32_t scale, unsigned char *out,
                         size_t nbytes)
{
    const bool negative = text_take(t, '-');
    int32_t behind = -1; /* digits behind the point; -1: before it */
    size_t ndigits = 0;
    memset(out, 0, nbytes);
    if (!negative)
        text_take(t, '+');
    for (;;) {
        unsigned digit;
        if (behind < 0 && text_take(t, '.')) {
            behind = 0;
            continue;
        }
        if (at_digit(t)) {
            digit = (unsigned)(*t->at++ - '0');
            ndigits++;
            if (behind == scale) {
                if (digit)
                    return false;
                continue;
            }
            behind += behind >= 0;
        } else if (ndigits && (behind < 0 ? 0 : behind) < scale) {
            digit = 0;
            behind = behind < 0 ? 1 : behind + 1;
        } else {
            break;
        }
        for (size_t i = nbytes; i-- > 0; digit >>= 8) {
            digit += out[i] * 10u;
            out[i] = (unsigned char)digit;
        }
        if (digit)
            return false;
    }
    unsigned carry = 1;
    for (size_t i = nbytes; negative && i-- > 0; carry >>= 8) {
        carry += 0xffu ^ out[i];
        out[i] = (unsigned char)carry;
    }
    bool is_zero = true;
    for (size_t i = 0; i < nbytes; i++)
        is_zero &= !out[i];
    return ndigits && (is_zero || out[0] >> 7 == negative);
}

/* A whole number in the range of a column. */
static bool integer_take(struct text *t, const bly_parquet_column *c,
                         int64_t *out)
{
    const bool negative = text_take(t, '-');
    uint64_t x = 0;
    if (!at_digit(t))
        return false;
    while (at_digit(t))
        if (__builtin_mul_overflow(x, 10u, &x) ||
            __builtin_add_overflow(x, (uint64_t)(*t->at++ - '0'), &x))
            return false;
    const unsigned bits = c->bits ? c->bits : c->width * 8;
    const uint64_t most = c->is_unsigned
                              ? UINT64_MAX >> (64 - bits)
                              : (UINT64_MAX >> (65 - bits)) + negative;
    if (x > most || (c->is_unsigned && negative && x))
        return false;
    *out = (int64_t)(negative ? 0 - x : x);
    return true;
}

static bool real_take(struct text *t, bool is_float, int64_t *out)
{
    char buf[512], *end;
    const size_t n = (size_t)(t->end - t->at);
    if (n == 0 || n >= sizeof buf || memchr(t->at, 0, n) ||
        strchr(" \t\n\v\f\r", t->at[0]))
        return false;
    memcpy(buf, t->at, n);
    buf[n] = '\0';
    if (is_float) {
        uint32_t x;
        const float f = strtof(buf, &end);
        memcpy(&x, &f, sizeof x);
        *out = x;
    } else {
        *out = (int64_t)bly_real_bits(strtod(buf, &end));
    }
    t->at = t->end;
    return *end == '\0'; /* and something was read, since there was something */
}

/* ------------------------------------------------- reals that are alike */

void bly_real_pair(bly_real_sort sort, uint32_t width, unsigned char pair[2][8])
{
    /* Quiet is the highest bit of the fraction. The lowest of the exponent, at
     * the other side of that border, is the lowest that infinity has. */
    const uint64_t inf = bly_real_infinity(width);
    const uint64_t quiet = (inf & (0 - inf)) >> 1;
    const uint64_t x = sort == BLY_REAL_ZERO ? 0 : inf | quiet;
    for (uint32_t i = 0; i < width; i++)
        pair[0][i] = pair[1][i] = (unsigned char)(x >> 8 * i);
    pair[1][width - 1] |= 0x80;
}

uint32_t bly_parquet_real_width(const bly_parquet_column *c)
{
    return c->type == BLY_PARQUET_FLOAT || c->type == BLY_PARQUET_DOUBLE ||
                   (c->type == BLY_PARQUET_FIXED &&
                    c->meaning == BLY_PARQUET_FLOAT16 && c->width == 2)
               ? c->width
               : 0;
}

/* ------------------------------------------------------------ the columns */

static bly_status key_wrong(const bly_parquet_column *c, const char *right)
{
    char type[80];
    bly_parquet_type_name(c, type, sizeof type);
    return bly_fail(BLY_EINVAL,
                    "not a value of column %s, which is %s; expected %s",
                    c->name, type, right);
}

/* What a number's text must be like. */
static const char *number_right(const bly_parquet_column *c, char *buf,
                                size_t room)
{
    switch (c->meaning) {
    case BLY_PARQUET_DATE:
        return "2020-01-31";
    case BLY_PARQUET_TIME:
    case BLY_PARQUET_TIMESTAMP:
        snprintf(buf, room,
                 "%s12:34:56%s, with up to %u digits after the second",
                 c->meaning == BLY_PARQUET_TIME ? "" : "2020-01-31 ",
                 c->meaning == BLY_PARQUET_TIME ? "" : ".5", c->digits);
        return buf;
    case BLY_PARQUET_DECIMAL:
        snprintf(buf, room, "a number with up to %d digits after the point",
                 c->scale);
        return buf;
    default:
        break;
    }
    if (c->type == BLY_PARQUET_FLOAT || c->type == BLY_PARQUET_DOUBLE)
        return "a number";
    snprintf(buf, room, "a whole number of %u bits%s", c->bits,
             c->is_unsigned ? ", not negative" : "");
    return buf;
}

/* Types whose values are numbers of 4 or 8 bytes, little-endian. */
static bly_status number_key(const bly_parquet_column *c, bly_bytes text,
                             unsigned char *to)
{
    struct text t = { text.ptr, (const char *)text.ptr + text.len };
    unsigned char big[8];
    char buf[96];
    int64_t x = 0;
    bool ok;
    if (c->type == BLY_PARQUET_FLOAT || c->type == BLY_PARQUET_DOUBLE) {
        ok = real_take(&t, c->type == BLY_PARQUET_FLOAT, &x);
    } else if (c->meaning == BLY_PARQUET_DATE) {
        ok = date_take(&t, &x);
    } else if (c->meaning == BLY_PARQUET_TIME) {
        ok = time_take(&t, c->digits, &x);
    } else if (c->meaning == BLY_PARQUET_TIMESTAMP) {
        ok = timestamp_take(&t, c->digits, &x);
    } else if (c->meaning == BLY_PARQUET_DECIMAL) {
        ok = decimal_take(&t, c->scale, big, c->width);
        for (uint32_t i = 0; i < c->width; i++)
            x = (int64_t)((uint64_t)x << 8 | big[i]);
    } else {
        ok = integer_take(&t, c, &x);
    }
    if (!ok || t.at != t.end)
        return key_wrong(c, number_right(c, buf, sizeof buf));
    if (c->width == 4)
        bly_store32(to, (uint32_t)x);
    else
        bly_store64(to, (uint64_t)x);
    return BLY_OK;
}

static bly_status decimal_key(const bly_parquet_column *c, bly_bytes text,
                              bly_foreign_key *out, unsigned char *to)
{
    struct text t = { text.ptr, (const char *)text.ptr + text.len };
    const size_t n = c->width ? c->width : DECIMAL_BYTES;
    char buf[96];
    if (n > DECIMAL_BYTES)
        return bly_fail(BLY_ENOTSUP,
                        "column %s: decimals of %zu bytes cannot be queried",
                        c->name, n);
    if (!decimal_take(&t, c->scale, to, n) || t.at != t.end)
        return key_wrong(c, number_right(c, buf, sizeof buf));
    out->len = n;
    /* Where the width is free, a number takes as few bytes as it can. */
    while (!c->width && out->len > 1 &&
           ((to[0] == 0 && to[1] < 0x80) || (to[0] == 0xff && to[1] >= 0x80))) {
        memmove(to, to + 1, --out->len);
    }
    return BLY_OK;
}

/* Hexadecimal digits of `width` bytes; of a UUID with dashes between them. */
static bly_status hex_key(const bly_parquet_column *c, bly_bytes text,
                          bly_scratch *s, bly_foreign_key *out)
{
    char digits[80], buf[80];
    bly_bytes hex = text;
    if (c->meaning == BLY_PARQUET_UUID && text.len == 36) {
        const char *const p = text.ptr;
        size_t n = 0;
        for (size_t i = 0; i < 36; i++)
            if (i == 8 || i == 13 || i == 18 || i == 23)
                n += p[i] != '-' ? 40 : 0;
            else if (n < 36)
                digits[n++] = p[i];
        hex = (bly_bytes){ digits, n };
    }
    snprintf(buf, sizeof buf,
             c->meaning == BLY_PARQUET_UUID
                 ? "32 hexadecimal digits, with or without dashes"
                 : "%zu hexadecimal digits",
             2 * (size_t)c->width);
    if (hex.len != 2 * (size_t)c->width ||
        bly_key_encode(BLY_KEY_HEX, hex, s, out) != BLY_OK)
        return key_wrong(c, buf);
    return BLY_OK;
}

bly_status bly_parquet_key(const bly_parquet_column *c, bly_bytes text,
                           bly_scratch *s, bly_foreign_key *out)
{
    unsigned char *const to = bly_scratch_need(s, DECIMAL_BYTES);
    if (!to)
        return bly_fail(BLY_ENOMEM, "out of memory");
    out->bytes = to;
    out->len = c->width;
    switch (c->type) {
    case BLY_PARQUET_INT32:
    case BLY_PARQUET_INT64:
    case BLY_PARQUET_FLOAT:
    case BLY_PARQUET_DOUBLE:
        return number_key(c, text, to);
    case BLY_PARQUET_BYTE_ARRAY:
    case BLY_PARQUET_FIXED:
        if (c->meaning == BLY_PARQUET_DECIMAL)
            return decimal_key(c, text, out, to);
        if (c->type == BLY_PARQUET_BYTE_ARRAY ||
            (c->meaning == BLY_PARQUET_PLAIN && text.len == c->width)) {
            out->bytes = text.ptr;
            out->len = text.len;
            return BLY_OK;
        }
        return hex_key(c, text, s, out);
    case BLY_PARQUET_INT96:
        return hex_key(c, text, s, out);
    default:
        return bly_fail(BLY_ENOTSUP,
                        "column %s is BOOLEAN, for which the "
                        "format has no filters",
                        c->name);
    }
}
