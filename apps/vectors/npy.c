/*
 * npy.c - what an array of NumPy's says of itself: the header of .npy
 *
 *     \x93 N U M P Y  major minor  length  {'descr': '<f4', ...}  numbers
 *
 * The length has 2 bytes in version 1 and 4 in the others. The header is the
 * text of a dictionary in Python, padded with blanks and ended by a newline
 * [1]. Only what NumPy writes there is read: three keys, with a text, True or
 * False, and a tuple of whole numbers.
 *
 * [1] NumPy Enhancement Proposal 1, 2007, and numpy.lib.format
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/vectors/npy.h"
#include "base/byte_order.h"

#define MAGIC_BYTES 6
#define MOST_DIMENSIONS 32 /* as NumPy had it */
#define MOST_TYPE 64

struct reader {
    const char *at, *end;
};

static __attribute__((format(printf, 2, 3))) bool wrong(char *why,
                                                        const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, NPY_WHY, format, ap);
    va_end(ap);
    return false;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n'))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    const size_t n = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* What is between two quotes; no escapes, which NumPy never writes. */
static bool take_text(struct reader *r, char out[MOST_TYPE])
{
    skip_blanks(r);
    const char quote = r->at < r->end ? *r->at : 0;
    if (quote != '\'' && quote != '"')
        return false;
    const char *const from = ++r->at;
    const char *const to = memchr(from, quote, (size_t)(r->end - from));
    if (!to || to - from >= MOST_TYPE)
        return false;
    memcpy(out, from, (size_t)(to - from));
    out[to - from] = '\0';
    r->at = to + 1;
    return !strchr(out, '\\');
}

static bool take_number(struct reader *r, uint64_t *out)
{
    skip_blanks(r);
    const char *const from = r->at;
    *out = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        const unsigned digit = (unsigned)(*r->at - '0');
        if (*out > (UINT64_MAX - digit) / 10)
            return false;
        *out = *out * 10 + digit;
    }
    if (r->at > from && r->at < r->end && *r->at == 'L')
        r->at++; /* of Python 2 */
    return r->at > from;
}

/* (3, 4), (3,) or (). */
static bool take_shape(struct reader *r, uint64_t *shape, unsigned *ndims)
{
    *ndims = 0;
    if (!take(r, '('))
        return false;
    while (!take(r, ')')) {
        if (*ndims == MOST_DIMENSIONS || !take_number(r, &shape[*ndims]))
            return false;
        ++*ndims;
        if (!take(r, ','))
            return take(r, ')');
    }
    return true;
}

struct header {
    char descr[MOST_TYPE];
    bool fortran, has_descr, has_order, has_shape;
    uint64_t shape[MOST_DIMENSIONS];
    unsigned ndims;
};

static bool take_header(struct reader *r, struct header *h)
{
    char key[MOST_TYPE];
    if (!take(r, '{'))
        return false;
    while (!take(r, '}')) {
        if (!take_text(r, key) || !take(r, ':'))
            return false;
        if (!strcmp(key, "descr") && !h->has_descr) {
            h->has_descr = true;
            skip_blanks(r);
            if (r->at < r->end && *r->at == '[') { /* of a structured array */
                strcpy(h->descr, "[(...)]");
                return true;
            }
            if (!take_text(r, h->descr))
                return false;
        } else if (!strcmp(key, "fortran_order") && !h->has_order) {
            h->has_order = true;
            h->fortran = take_word(r, "True");
            if (!h->fortran && !take_word(r, "False"))
                return false;
        } else if (!strcmp(key, "shape") && !h->has_shape) {
            h->has_shape = true;
            if (!take_shape(r, h->shape, &h->ndims))
                return false;
        } else {
            return false;
        }
        if (!take(r, ',') && (!take(r, '}') || (r->at--, false)))
            return false;
    }
    skip_blanks(r);
    return r->at == r->end && h->has_descr && h->has_order && h->has_shape;
}

static bool type_of(const char *descr, struct npy *out)
{
    static const struct {
        const char *descr;
        enum npy_type type;
        unsigned width;
    } types[] = { { "<f2", NPY_HALF, 2 },
                  { "<f4", NPY_FLOAT, 4 },
                  { "<f8", NPY_DOUBLE, 8 } };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(descr, types[i].descr)) {
            out->type = types[i].type;
            out->width = types[i].width;
            return true;
        }
    return false;
}

/* Is it an array of vectors? */
static bool suits(const struct header *h, struct npy *out, char *why)
{
    if (!type_of(h->descr, out))
        return wrong(why,
                     "numbers of type '%.40s'; expected '<f4', '<f8' or '<f2', "
                     "as numpy.save(FILE, a.astype('<f4')) writes them",
                     h->descr);
    if (h->ndims != 2)
        return wrong(why,
                     "an array of %u dimension%s; expected 2, vectors and "
                     "their coordinates, as a.reshape(-1, COORDINATES) has",
                     h->ndims, h->ndims == 1 ? "" : "s");
    if (h->fortran)
        return wrong(why, "an array in Fortran's order; save "
                          "numpy.ascontiguousarray(a)");
    out->n = h->shape[0];
    out->dims = h->shape[1];
    if (!out->dims)
        return wrong(why, "vectors without coordinates");
    return true;
}

bool npy_read(const void *bytes, size_t nbytes, struct npy *out,
              char why[NPY_WHY])
{
    const unsigned char *const p = bytes;
    struct header h = { .ndims = 0 };
    if (nbytes < MAGIC_BYTES || memcmp(p, NPY_MAGIC, MAGIC_BYTES) != 0)
        return wrong(why, "not an .npy file");
    if (nbytes < MAGIC_BYTES + 2)
        return wrong(why, "truncated in its header");
    const unsigned major = p[MAGIC_BYTES], minor = p[MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor)
        return wrong(why, ".npy of version %u.%u; versions 1.0 to 3.0 are read",
                     major, minor);
    const unsigned width = major == 1 ? 2 : 4;
    const size_t start = MAGIC_BYTES + 2 + width;
    if (nbytes < start || get_le(p + MAGIC_BYTES + 2, width) > nbytes - start)
        return wrong(why, "truncated in its header");
    out->data = start + (size_t)get_le(p + MAGIC_BYTES + 2, width);
    struct reader r = { (const char *)p + start, (const char *)p + out->data };
    const bool whole = take_header(&r, &h);
    /* Of a structured array only the beginning is read. */
    if (!whole && !(h.has_descr && !strcmp(h.descr, "[(...)]")))
        return wrong(why, "a header that NumPy does not write");
    if (!whole)
        h.ndims = 1;
    if (!suits(&h, out, why))
        return false;
    const uint64_t each = out->dims > UINT64_MAX / out->width
                              ? UINT64_MAX
                              : out->dims * out->width;
    const uint64_t there = nbytes - out->data;
    if (out->n > there / each)
        return wrong(why, "truncated: %llu of %llu vectors are there",
                     (unsigned long long)(there / each),
                     (unsigned long long)out->n);
    if (out->n * each != there)
        return wrong(why, "%llu bytes too many behind its numbers",
                     (unsigned long long)(there - out->n * each));
    return true;
}

/* Numbers begin at a multiple of 64, as NumPy has them. */
size_t npy_header(const struct npy *like, uint64_t n, char out[NPY_HEADER])
{
    static const char *const descr[] = { "<f2", "<f4", "<f8" };
    memset(out, ' ', NPY_HEADER);
    memcpy(out, NPY_MAGIC "\1\0", MAGIC_BYTES + 2);
    put_le((unsigned char *)out + MAGIC_BYTES + 2, NPY_HEADER - 10, 2);
    const int len = snprintf(out + 10, NPY_HEADER - 10,
                             "{'descr': '%s', 'fortran_order': False, "
                             "'shape': (%llu, %llu), }",
                             descr[like->type], (unsigned long long)n,
                             (unsigned long long)like->dims);
    out[10 + len] = ' ';
    out[NPY_HEADER - 1] = '\n';
    return NPY_HEADER;
}

float npy_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31)
        return mantissa ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf((float)(mantissa + 1024), exponent - 25)
                            : ldexpf((float)mantissa, -24));
}
