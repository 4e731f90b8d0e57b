/*
 * key_forms.c - the text of a key as the bytes that a foreign format hashes
 *
 * Java hashes the eight bytes of a long and Bitcoin those of a script: neither
 * is what a person types. The option `keys` of a format names the form.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/format.h"

static const char *const form_words[] = {
    [BLY_KEY_BYTES] = "bytes",      [BLY_KEY_HEX] = "hex",
    [BLY_KEY_UTF16] = "utf16",      [BLY_KEY_INT32] = "int32",
    [BLY_KEY_INT64] = "int64",      [BLY_KEY_INT32_BE] = "int32be",
    [BLY_KEY_INT64_BE] = "int64be", [BLY_KEY_DOUBLE] = "double",
};

bool bly_key_form_named(const char *word, bly_key_form *out)
{
    for (size_t i = 0; i < sizeof form_words / sizeof *form_words; i++)
        if (strcmp(word, form_words[i]) == 0) {
            *out = (bly_key_form)i;
            return true;
        }
    return false;
}

unsigned char *bly_scratch_need(bly_scratch *s, size_t n)
{
    if (n <= s->room)
        return s->at;
    const size_t room = n < 64 ? 64 : n;
    unsigned char *const at = bly_mem_zalloc(s->mem, room);
    if (!at)
        return NULL;
    bly_mem_release(s->mem, s->at, s->room);
    s->at = at;
    s->room = room;
    return at;
}

/* Text of numbers, ended by a NUL; false if it is too long to be one. */
static bool number_text(bly_bytes text, char *buf, size_t room)
{
    if (text.len == 0 || text.len >= room || memchr(text.ptr, 0, text.len))
        return false;
    memcpy(buf, text.ptr, text.len);
    buf[text.len] = '\0';
    return strchr(" \t\n\v\f\r", buf[0]) == NULL;
}

/* A whole number with or without a sign, as its low 64 bits. The text is not
 * empty, so a number was read where nothing is left of it. */
static bool int_read(bly_bytes text, uint64_t *out, bool *negative)
{
    char buf[32], *end;
    if (!number_text(text, buf, sizeof buf))
        return false;
    errno = 0;
    *negative = buf[0] == '-';
    *out =
        *negative ? (uint64_t)strtoll(buf, &end, 10) : strtoull(buf, &end, 10);
    return errno == 0 && *end == '\0';
}

static int hex_digit(unsigned char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool hex_read(bly_bytes text, unsigned char *out)
{
    const unsigned char *const p = text.ptr;
    for (size_t i = 0; i < text.len; i += 2) {
        const int high = hex_digit(p[i]), low = hex_digit(p[i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i / 2] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* One character of UTF-8: its length, 0 where it is none. */
static size_t utf8_read(const unsigned char *p, size_t n, uint32_t *out)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const size_t len = p[0] < 0x80             ? 1
                       : (p[0] & 0xe0) == 0xc0 ? 2
                       : (p[0] & 0xf0) == 0xe0 ? 3
                       : (p[0] & 0xf8) == 0xf0 ? 4
                                               : 0;
    if (len == 0 || len > n)
        return 0;
    uint32_t c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *out = c;
    return len;
}

static size_t utf16_put(unsigned char *out, uint32_t unit)
{
    out[0] = (unsigned char)unit;
    out[1] = (unsigned char)(unit >> 8);
    return 2;
}

/* The number of bytes, SIZE_MAX where text is not UTF-8. */
static size_t utf16_of(bly_bytes text, unsigned char *out)
{
    const unsigned char *p = text.ptr;
    size_t left = text.len, n = 0;
    while (left > 0) {
        uint32_t c;
        const size_t len = utf8_read(p, left, &c);
        if (len == 0)
            return SIZE_MAX;
        if (c < 0x10000) {
            n += utf16_put(out + n, c);
        } else {
            n += utf16_put(out + n, 0xd800 + ((c - 0x10000) >> 10));
            n += utf16_put(out + n, 0xdc00 + ((c - 0x10000) & 0x3ff));
        }
        p += len;
        left -= len;
    }
    return n;
}

bly_status bly_key_encode(bly_key_form form, bly_bytes text, bly_scratch *s,
                          bly_foreign_key *out)
{
    if (form == BLY_KEY_BYTES) {
        out->bytes = text.ptr;
        out->len = text.len;
        return BLY_OK;
    }
    /* UTF-16 takes at most two bytes for each of UTF-8; every other form is
     * shorter, or has 8 bytes. */
    if (text.len > SIZE_MAX / 4)
        return bly_fail(BLY_ERANGE, "the key is too long");
    unsigned char *const at = bly_scratch_need(s, text.len * 2 + 8);
    if (!at)
        return bly_fail(BLY_ENOMEM, "out of memory");
    out->bytes = at;
    uint64_t x = 0;
    bool negative = false;
    switch (form) {
    case BLY_KEY_HEX:
        out->len = text.len / 2;
        if (text.len % 2 || !hex_read(text, at))
            return bly_fail(BLY_EINVAL, "not pairs of hexadecimal digits");
        break;
    case BLY_KEY_UTF16:
        out->len = utf16_of(text, at);
        if (out->len == SIZE_MAX)
            return bly_fail(BLY_EINVAL, "not UTF-8");
        break;
    case BLY_KEY_INT32:
    case BLY_KEY_INT32_BE:
        out->len = 4;
        /* Programs write one value with a sign or without: -1 and 4294967295
         * are the same four bytes. */
        if (!int_read(text, &x, &negative) ||
            (negative ? x && x < UINT64_MAX - INT32_MAX : x > UINT32_MAX))
            return bly_fail(BLY_EINVAL, "not a whole number of 32 bits");
        if (form == BLY_KEY_INT32)
            bly_store32(at, (uint32_t)x);
        else
            bly_store_be32(at, (uint32_t)x);
        break;
    case BLY_KEY_INT64:
    case BLY_KEY_INT64_BE:
        out->len = 8;
        if (!int_read(text, &x, &negative))
            return bly_fail(BLY_EINVAL, "not a whole number of 64 bits");
        if (form == BLY_KEY_INT64)
            bly_store64(at, x);
        else
            bly_store_be64(at, x);
        break;
    default: {
        char buf[512], *end;
        if (!number_text(text, buf, sizeof buf))
            return bly_fail(BLY_EINVAL, "not a number");
        const double d = strtod(buf, &end);
        if (*end)
            return bly_fail(BLY_EINVAL, "not a number");
        memcpy(&x, &d, sizeof x);
        out->len = 8;
        bly_store64(at, x);
    }
    }
    return BLY_OK;
}
