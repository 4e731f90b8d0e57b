/*
 * column_values.c - the values of a page, into the filter of their chunk
 *
 *     PLAIN                    one after another; byte arrays after a length
 *     DELTA_BINARY_PACKED      whole numbers as packed differences
 *     DELTA_LENGTH_BYTE_ARRAY  all lengths as such numbers, then all bytes
 *     DELTA_BYTE_ARRAY         lengths shared with the value before, as such
 *                              numbers, then the rest of each as above
 *     BYTE_STREAM_SPLIT        all first bytes, then all second ones, ...
 *
 * Where a page refers to a dictionary its values are the dictionary's, which is
 * a page in PLAIN.
 */
#include "apps/parquet/parquet_job.h"
#include "base/byte_order.h"

#define TEXT_BATCH 256   /* byte arrays handed on at a time */
#define NUMBER_BATCH 512 /* numbers */

/* Numbers in a block of differences. Writers have 128 to 2048; with more, few
 * bytes could stand for any number of values. */
#define DELTA_BLOCK 32768

static bool is_number(const bly_parquet_column *c)
{
    return c->type == BLY_PARQUET_INT32 || c->type == BLY_PARQUET_INT64;
}

bool values_known(const bly_parquet_column *c, uint32_t encoding)
{
    switch (encoding) {
    case BLY_PARQUET_PLAIN_VALUES:
        return true;
    case BLY_PARQUET_DELTA_BINARY_PACKED:
        return is_number(c);
    case BLY_PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        return c->width == 0;
    case BLY_PARQUET_DELTA_BYTE_ARRAY:
        return c->type == BLY_PARQUET_BYTE_ARRAY ||
               c->type == BLY_PARQUET_FIXED;
    case BLY_PARQUET_BYTE_STREAM_SPLIT:
        return c->width > 0;
    default:
        return false;
    }
}

uint64_t values_most(const bly_parquet_column *c, uint32_t encoding,
                     uint64_t nbytes, uint64_t n)
{
    uint64_t most = n;
    if (encoding == BLY_PARQUET_PLAIN_VALUES)
        most = nbytes / (c->width ? c->width : 4);
    else if (encoding == BLY_PARQUET_BYTE_STREAM_SPLIT)
        most = nbytes / c->width;
    else
        most = nbytes * DELTA_BLOCK;
    return most < n ? most : n;
}

/* ------------------------------------------------------------------ plain */

static bool add_plain_text(struct values *v, const unsigned char *at,
                           size_t left, uint64_t n)
{
    bly_bytes batch[TEXT_BATCH];
    while (n) {
        const size_t some = n < TEXT_BATCH ? (size_t)n : TEXT_BATCH;
        for (size_t i = 0; i < some; i++) {
            if (left < 4)
                return false;
            const size_t len = (size_t)get_le(at, 4);
            if (len > left - 4)
                return false;
            batch[i] = (bly_bytes){ at + 4, len };
            left -= 4 + len;
            at += 4 + len;
        }
        bly_parquet_filter_add(v->file, batch, some);
        n -= some;
    }
    return true;
}

static bool add_plain(struct values *v, const unsigned char *bytes,
                      size_t nbytes, uint64_t n)
{
    const uint32_t width = v->column->width;
    if (width == 0)
        return add_plain_text(v, bytes, nbytes, n);
    if (n > nbytes / width)
        return false;
    bly_parquet_filter_add_fixed(v->file, bytes, width, (size_t)n);
    return true;
}

/* ------------------------------------------------------ packed differences */

/* A stream of numbers:
 *
 *     numbers a block, miniblocks a block, numbers in all, the first one
 *     block: the least difference, bits of each miniblock, miniblocks
 *
 * A difference is the least one and what its miniblock says beyond. It is read
 * number by number, and takes no memory. */
struct delta {
    const unsigned char *at, *end;
    uint64_t per_block, nmini, per_mini;
    uint64_t left; /* numbers to come */
    uint64_t last; /* the one before; of the first, itself */
    bool begun;
    uint64_t least;
    const unsigned char *widths; /* of the block that at is in */
    uint64_t mini;               /* miniblocks of it that were begun */
    uint64_t i;                  /* numbers taken from the current one */
    const unsigned char *packed; /* which begins here */
};

static bool delta_varint(struct delta *d, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && d->at < d->end; shift += 7) {
        const unsigned b = *d->at++;
        *out |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return true;
    }
    return false;
}

static bool delta_zigzag(struct delta *d, uint64_t *out)
{
    if (!delta_varint(d, out))
        return false;
    *out = *out >> 1 ^ (0 - (*out & 1));
    return true;
}

static bool delta_open(struct delta *d, const unsigned char *at,
                       const unsigned char *end)
{
    *d = (struct delta){ .at = at, .end = end };
    if (!delta_varint(d, &d->per_block) || !delta_varint(d, &d->nmini) ||
        !delta_varint(d, &d->left) || !delta_zigzag(d, &d->last))
        return false;
    if (d->nmini == 0 || d->per_block == 0 || d->per_block > DELTA_BLOCK ||
        d->per_block % d->nmini)
        return false;
    d->per_mini = d->per_block / d->nmini;
    d->mini = d->nmini;
    d->i = d->per_mini;
    return d->per_mini % 8 == 0;
}

/* Go to the next miniblock, which holds a number that is wanted. */
static bool delta_mini(struct delta *d)
{
    if (d->mini == d->nmini) {
        if (!delta_zigzag(d, &d->least) ||
            (uint64_t)(d->end - d->at) < d->nmini)
            return false;
        d->widths = d->at;
        d->at += d->nmini;
        d->mini = 0;
    }
    const unsigned bits = d->widths[d->mini++];
    /* Bytes of the last one that hold no number may be missing. */
    const uint64_t whole = d->per_mini / 8 * bits;
    const uint64_t holds = d->left < d->per_mini ? d->left : d->per_mini;
    const uint64_t there = (uint64_t)(d->end - d->at);
    if (bits > 64 || (holds * bits + 7) / 8 > there)
        return false;
    d->packed = d->at;
    d->at += whole < there ? whole : there;
    d->i = 0;
    return true;
}

/* Number i of those packed in `bits` each. */
static uint64_t packed_at(const unsigned char *at, uint64_t i, unsigned bits)
{
    uint64_t x = 0, bit = i * bits;
    for (unsigned got = 0; got < bits;) {
        const unsigned from = (unsigned)(bit % 8), take = 8 - from;
        x |= (uint64_t)(at[bit / 8] >> from) << got;
        got += take;
        bit += take;
    }
    return bits < 64 ? x & (((uint64_t)1 << bits) - 1) : x;
}

static bool delta_next(struct delta *d, uint64_t *out)
{
    if (d->left == 0)
        return false;
    if (!d->begun) {
        d->begun = true;
    } else {
        if (d->i == d->per_mini && !delta_mini(d))
            return false;
        d->last +=
            d->least + packed_at(d->packed, d->i++, d->widths[d->mini - 1]);
    }
    d->left--;
    *out = d->last;
    return true;
}

/* Where the stream ends; NULL if it does so too early. */
static const unsigned char *delta_end(struct delta d)
{
    if (d.left)
        d.left--;
    while (d.left) {
        if (!delta_mini(&d))
            return NULL;
        d.left -= d.left < d.per_mini ? d.left : d.per_mini;
    }
    return d.at;
}

static bool add_delta(struct values *v, const unsigned char *bytes,
                      size_t nbytes, uint64_t n)
{
    const uint32_t width = v->column->width;
    unsigned char batch[NUMBER_BATCH * 8];
    struct delta d;
    size_t held = 0;
    if (!delta_open(&d, bytes, bytes + nbytes) || d.left != n)
        return false;
    while (n--) {
        uint64_t x;
        if (!delta_next(&d, &x))
            return false;
        for (uint32_t j = 0; j < width; j++)
            batch[held * width + j] = (unsigned char)(x >> 8 * j);
        if (++held == NUMBER_BATCH || n == 0) {
            bly_parquet_filter_add_fixed(v->file, batch, width, held);
            held = 0;
        }
    }
    return true;
}

/* ----------------------------------------------------- byte arrays by these */

static bool add_delta_length(struct values *v, const unsigned char *bytes,
                             size_t nbytes, uint64_t n)
{
    const unsigned char *const end = bytes + nbytes;
    bly_bytes batch[TEXT_BATCH];
    struct delta lengths;
    size_t held = 0;
    if (!delta_open(&lengths, bytes, end) || lengths.left != n)
        return false;
    const unsigned char *at = delta_end(lengths);
    while (n--) {
        uint64_t len;
        if (!at || !delta_next(&lengths, &len) || len > (uint64_t)(end - at))
            return false;
        batch[held++] = (bly_bytes){ at, (size_t)len };
        at += len;
        if (held == TEXT_BATCH || n == 0) {
            bly_parquet_filter_add(v->file, batch, held);
            held = 0;
        }
    }
    return true;
}

static bool add_delta_text(struct values *v, const unsigned char *bytes,
                           size_t nbytes, uint64_t n)
{
    const unsigned char *const end = bytes + nbytes;
    const uint32_t width = v->column->width;
    struct delta prefixes, suffixes;
    if (!delta_open(&prefixes, bytes, end) || prefixes.left != n)
        return false;
    const unsigned char *at = delta_end(prefixes);
    if (!at || !delta_open(&suffixes, at, end) || suffixes.left != n)
        return false;
    at = delta_end(suffixes);
    /* No value is longer than all suffixes together. */
    unsigned char *const value =
        at ? buffer_need(&v->text, (size_t)(end - at)) : NULL;
    if (!value)
        return false;
    uint64_t len = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t prefix, suffix;
        if (!delta_next(&prefixes, &prefix) ||
            !delta_next(&suffixes, &suffix) || prefix > len ||
            suffix > (uint64_t)(end - at) ||
            (width && prefix + suffix != width))
            return false;
        const bool is_same = i && prefix == len && suffix == 0;
        memcpy(value + prefix, at, (size_t)suffix);
        len = prefix + suffix;
        at += suffix;
        if (!is_same)
            bly_parquet_filter_add(v->file, &(bly_bytes){ value, (size_t)len },
                                   1);
    }
    return true;
}

static bool add_split(struct values *v, const unsigned char *bytes,
                      size_t nbytes, uint64_t n)
{
    const uint32_t width = v->column->width;
    if (n > nbytes / width)
        return false;
    unsigned char *const to = buffer_need(&v->text, (size_t)n * width);
    if (!to)
        return false;
    for (uint32_t j = 0; j < width; j++)
        for (size_t i = 0; i < n; i++)
            to[i * width + j] = bytes[j * n + i];
    bly_parquet_filter_add_fixed(v->file, to, width, (size_t)n);
    return true;
}

bool values_add(struct values *v, uint32_t encoding, const unsigned char *bytes,
                size_t nbytes, uint64_t n)
{
    if (n == 0)
        return true;
    switch (encoding) {
    case BLY_PARQUET_DELTA_BINARY_PACKED:
        return add_delta(v, bytes, nbytes, n);
    case BLY_PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        return add_delta_length(v, bytes, nbytes, n);
    case BLY_PARQUET_DELTA_BYTE_ARRAY:
        return add_delta_text(v, bytes, nbytes, n);
    case BLY_PARQUET_BYTE_STREAM_SPLIT:
        return add_split(v, bytes, nbytes, n);
    default:
        return add_plain(v, bytes, nbytes, n);
    }
}
