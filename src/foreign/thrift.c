/*
 * thrift.c - reading Thrift's compact protocol, within bounds
 *
 *     field   id step << 4 | type          step 0: the id follows, zigzag
 *     end     0
 *     number  zigzag, 7 bits per byte, the low ones first
 *     binary  length, bytes
 *     list    length << 4 | type, elements length 15: the length follows
 *     map     length, key type << 4 | value type, pairs; empty: one byte 0
 */
#include "core/varint.h"
#include "foreign/thrift.h"

/* Structs in lists in structs: a file's own are five deep. */
#define THRIFT_DEPTH 32

static void thrift_bad(bly_thrift *t)
{
    t->bad = true;
    t->at = t->end;
}

static size_t thrift_left(const bly_thrift *t)
{
    return (size_t)(t->end - t->at);
}

static unsigned thrift_byte(bly_thrift *t)
{
    if (t->at == t->end) {
        thrift_bad(t);
        return 0;
    }
    return *t->at++;
}

static uint64_t thrift_varint(bly_thrift *t)
{
    uint64_t x = 0;
    if (!bly_varint_read(&t->at, t->end, &x))
        thrift_bad(t);
    return x;
}

int64_t bly_thrift_element_int(bly_thrift *t)
{
    const uint64_t x = thrift_varint(t);
    return (int64_t)(x >> 1 ^ -(x & 1));
}

static bly_bytes element_text(bly_thrift *t)
{
    const uint64_t n = thrift_varint(t);
    if (n > thrift_left(t))
        thrift_bad(t);
    if (t->bad)
        return (bly_bytes){ "", 0 };
    const bly_bytes text = { t->at, (size_t)n };
    t->at += n;
    return text;
}

bool bly_thrift_next(bly_thrift *t, bly_thrift_field *f)
{
    f->start = t->at;
    const unsigned head = thrift_byte(t);
    const unsigned step = head >> 4;
    f->type = head & 15;
    if (t->bad || head == 0)
        return false;
    const int64_t id = step ? f->id + (int64_t)step : bly_thrift_element_int(t);
    if (id < INT16_MIN || id > INT16_MAX || f->type == 0)
        thrift_bad(t);
    f->id = (int32_t)id;
    return !t->bad;
}

uint64_t bly_thrift_uint(bly_thrift *t, const bly_thrift_field *f, uint64_t max)
{
    int64_t x = -1;
    if (f->type == BLY_THRIFT_BYTE)
        x = (signed char)thrift_byte(t);
    else if (f->type >= BLY_THRIFT_I16 && f->type <= BLY_THRIFT_I64)
        x = bly_thrift_element_int(t);
    if (x < 0 || (uint64_t)x > max)
        thrift_bad(t);
    return t->bad ? 0 : (uint64_t)x;
}

bool bly_thrift_bool(bly_thrift *t, const bly_thrift_field *f)
{
    if (f->type != BLY_THRIFT_TRUE && f->type != BLY_THRIFT_FALSE)
        thrift_bad(t);
    return f->type == BLY_THRIFT_TRUE;
}

bly_bytes bly_thrift_text(bly_thrift *t, const bly_thrift_field *f)
{
    if (f->type != BLY_THRIFT_BINARY)
        thrift_bad(t);
    return element_text(t);
}

/* A list's length. No element takes less than a byte. */
static size_t list_length(bly_thrift *t, unsigned *type)
{
    const unsigned head = thrift_byte(t);
    const uint64_t n = head >> 4 == 15 ? thrift_varint(t) : head >> 4;
    *type = head & 15;
    if (n > thrift_left(t))
        thrift_bad(t);
    return t->bad ? 0 : (size_t)n;
}

size_t bly_thrift_list(bly_thrift *t, const bly_thrift_field *f, unsigned type)
{
    unsigned is = 0;
    size_t n = 0;
    if (f->type == BLY_THRIFT_LIST)
        n = list_length(t, &is);
    else
        thrift_bad(t);
    if (n && is != type)
        thrift_bad(t);
    return t->bad ? 0 : n;
}

bool bly_thrift_struct(bly_thrift *t, const bly_thrift_field *f)
{
    if (f->type != BLY_THRIFT_STRUCT)
        thrift_bad(t);
    return !t->bad;
}

static void value_skip(bly_thrift *t, unsigned type, unsigned depth);

static void fields_skip(bly_thrift *t, unsigned depth)
{
    bly_thrift_field f = { 0 };
    while (bly_thrift_next(t, &f))
        if (f.type > BLY_THRIFT_FALSE) /* those of a field have no bytes */
            value_skip(t, f.type, depth);
}

/* n values, of a type or of two in turn. */
static void values_skip(bly_thrift *t, uint64_t n, unsigned a, unsigned b,
                        unsigned depth)
{
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        value_skip(t, a, depth);
        if (b)
            value_skip(t, b, depth);
    }
}

static void bytes_skip(bly_thrift *t, size_t n)
{
    if (n > thrift_left(t))
        thrift_bad(t);
    else
        t->at += n;
}

static void value_skip(bly_thrift *t, unsigned type, unsigned depth)
{
    unsigned inner;
    /* Nesting costs stack, and a few bytes can say any depth. */
    if (depth == 0) {
        thrift_bad(t);
        return;
    }
    switch (type) {
    case BLY_THRIFT_TRUE:
    case BLY_THRIFT_FALSE:
    case BLY_THRIFT_BYTE:
        bytes_skip(t, 1);
        break;
    case BLY_THRIFT_I16:
    case BLY_THRIFT_I32:
    case BLY_THRIFT_I64:
        thrift_varint(t);
        break;
    case BLY_THRIFT_DOUBLE:
        bytes_skip(t, 8);
        break;
    case BLY_THRIFT_UUID:
        bytes_skip(t, 16);
        break;
    case BLY_THRIFT_BINARY:
        element_text(t);
        break;
    case BLY_THRIFT_LIST:
    case BLY_THRIFT_SET: {
        const size_t n = list_length(t, &inner);
        values_skip(t, n, inner, 0, depth - 1);
        break;
    }
    case BLY_THRIFT_MAP: {
        const uint64_t n = thrift_varint(t);
        /* An empty map has no byte of types. Types of 0 would make elements
         * of no bytes, of which a few bytes could claim billions. */
        inner = n ? thrift_byte(t) : 0;
        if (n && (inner >> 4 == 0 || (inner & 15) == 0))
            thrift_bad(t);
        values_skip(t, n, inner >> 4, inner & 15, depth - 1);
        break;
    }
    case BLY_THRIFT_STRUCT:
        fields_skip(t, depth - 1);
        break;
    default:
        thrift_bad(t);
    }
}

void bly_thrift_skip(bly_thrift *t, const bly_thrift_field *f)
{
    if (f->type > BLY_THRIFT_FALSE)
        value_skip(t, f->type, THRIFT_DEPTH);
}

int32_t bly_thrift_member(bly_thrift *t, const bly_thrift_field *f)
{
    bly_thrift_field m = { 0 };
    int32_t id = 0;
    if (!bly_thrift_struct(t, f))
        return 0;
    while (bly_thrift_next(t, &m)) {
        id = m.id;
        bly_thrift_skip(t, &m);
    }
    return t->bad ? 0 : id;
}

/* ---------------------------------------------------------------- writing */

size_t bly_thrift_put_int(unsigned char *out, int64_t x)
{
    uint64_t z = (uint64_t)x << 1 ^ (x < 0 ? UINT64_MAX : 0);
    size_t n = 0;
    while (z >= 0x80) {
        out[n++] = (unsigned char)(z | 0x80);
        z >>= 7;
    }
    out[n++] = (unsigned char)z;
    return n;
}

size_t bly_thrift_put_field(unsigned char *out, int32_t after, int32_t id,
                            unsigned type)
{
    const int32_t step = id - after;
    if (step > 0 && step < 16) {
        out[0] = (unsigned char)((unsigned)step << 4 | type);
        return 1;
    }
    out[0] = (unsigned char)type;
    return 1 + bly_thrift_put_int(out + 1, id);
}
