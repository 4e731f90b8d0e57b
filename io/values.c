/*
 * values.c - numbers beside keys: KEY, a tab, NUMBER
 */
#define _GNU_SOURCE /* memrchr, open_memstream */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/values.h"
#include "report/say.h"

/* ----------------------------------------------------------------- reading */

/* What a digit is worth; 16 for anything else. */
static unsigned digit_value(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                  : 16;
}

bool value_read(const char *text, size_t n, uint64_t *out)
{
    const bool hex = n > 2 && text[0] == '0' && (text[1] | 32) == 'x';
    const unsigned base = hex ? 16 : 10;
    uint64_t value = 0;
    if (n == 0)
        return false;
    for (size_t i = hex ? 2 : 0; i < n; i++) {
        const unsigned digit = digit_value(text[i]);
        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *out = value;
    return true;
}

/* What people are shown of a wrong value. */
#define SHOWN_BYTES 40

static void value_wrong(const char *text, size_t n, char why[VALUE_WHY])
{
    if (n && text[n - 1] == '\r')
        snprintf(why, VALUE_WHY,
                 "a carriage return after the value; lines end at a newline");
    else
        snprintf(why, VALUE_WHY,
                 "'%.*s%s' is not a value; expected " VALUE_RIGHT,
                 (int)(n < SHOWN_BYTES ? n : SHOWN_BYTES), text,
                 n > SHOWN_BYTES ? "..." : "");
}

size_t values_cut(bly_bytes *lines, size_t n, char delimiter, uint64_t *values,
                  char why[VALUE_WHY])
{
    for (size_t i = 0; i < n; i++) {
        const char *const line = lines[i].ptr;
        const char *const cut = memrchr(line, delimiter, lines[i].len);
        if (!cut) {
            if (delimiter == '\t')
                snprintf(why, VALUE_WHY, "no tab; expected KEY, a tab, VALUE");
            else
                snprintf(why, VALUE_WHY, "no '%c'; expected KEY%cVALUE",
                         delimiter, delimiter);
            return i;
        }
        const size_t nvalue = (size_t)(line + lines[i].len - cut) - 1;
        if (!value_read(cut + 1, nvalue, &values[i])) {
            value_wrong(cut + 1, nvalue, why);
            return i;
        }
        lines[i].len = (size_t)(cut - line);
    }
    return n;
}

bool delimiter_read(const char *text, char preset, char *out)
{
    const bool tab = text && strcmp(text, "\\t") == 0;
    if (text && !tab &&
        (strlen(text) != 1 || isalnum((unsigned char)text[0]) ||
         text[0] == '\n')) {
        fail("--delimiter '%s': not a single character other than a letter or "
             "digit (\\t is a tab)",
             text);
        return false;
    }
    *out = tab ? '\t' : text ? text[0] : preset;
    return true;
}

/* ---------------------------------------------------------------- printing */

bool number_put(struct block *to, uint64_t number)
{
    char text[24]; /* 20 digits at most */
    char *at = text + sizeof text;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    *--at = '\t';
    return block_put(to, at, (size_t)(text + sizeof text - at));
}

static void pair_json(const struct pair_style *style, const bly_bytes *key,
                      uint64_t number, FILE *to)
{
    struct json j = { .to = to };
    struct pair p = { *key, &number, NAN };
    const struct field *const fields = style->fields(style->ctx, &p);
    report_object(&j, fields, &p);
    json_end(&j);
}

static bool pair_line(const struct pair_style *style, const bly_bytes *key,
                      uint64_t number, struct block *to)
{
    return block_put(to, key->ptr, key->len) &&
           style->text(style->ctx, number, to) && block_put(to, &style->end, 1);
}

bly_status pairs_print(const struct pair_style *style, struct batch *b,
                       const uint64_t *numbers)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const to = style->json ? open_memstream(&text, &n) : NULL;
    bool put = to || !style->json;
    for (size_t i = 0; i < b->n && put; i++) {
        if (!(b->picked[i / 64] >> i % 64 & 1))
            continue;
        if (to)
            pair_json(style, &b->keys[i], numbers[i], to);
        else
            put = pair_line(style, &b->keys[i], numbers[i], b->text);
    }
    if (to) {
        /* glibc closes it with 0 also where it had no room for the text. */
        put = !ferror(to);
        put = fclose(to) == 0 && put && text && block_put(b->text, text, n);
        free(text);
    }
    if (put)
        return BLY_OK;
    b->why = "out of memory";
    return BLY_ENOMEM;
}
