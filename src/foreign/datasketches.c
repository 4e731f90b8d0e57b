/*
 * datasketches.c - bloom_filter of Apache DataSketches (Java, C++, Go)
 *
 *     offset  size                     all little-endian
 *     0       1     preamble in 64-bit longs: 3 empty, else 4
 *     1       1     serial version, 1
 *     2       1     family, 21
 *     3       1     flags: 4 empty
 *     4       2     k
 *     6       2     0
 *     8       8     seed
 *     16      4     n, the number of 64-bit words
 *     20      4     0
 *     24      8     how many bits are set; all ones: not counted
 *     32      8n    the words
 *
 * An empty one ends at 24. h0 = XXH64(item, seed), h1 = XXH64(item, h0), and
 * position i is (h0 + i h1) / 2 mod 64n, from 1 to k. Integers are hashed as
 * 64 bits; doubles too, with one zero and one NaN.
 */
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define SKETCH_EMPTY_BYTES 24
#define SKETCH_HEADER 32
#define SKETCH_FAMILY 21
#define SKETCH_IS_EMPTY 4

enum { SKETCH_KEYS, SKETCH_NOPTIONS };

static const char *const datasketches_forms[] = { "bytes", "int64", "double",
                                                  "hex", NULL };
static const bly_param datasketches_options[] = {
    [SKETCH_KEYS] = BLY_OPTION_CHOICE(
        "keys", 0, datasketches_forms,
        "the type given to update(): a string or bytes, a whole "
        "number (int64), a float or double (double)"),
};

static bool datasketches_recognise(const unsigned char *bytes, size_t n)
{
    return n >= SKETCH_EMPTY_BYTES && (bytes[0] == 3 || bytes[0] == 4) &&
           bytes[1] == 1 && bytes[2] == SKETCH_FAMILY;
}

static bly_status datasketches_open(bly_foreign *f)
{
    const unsigned char *const p = f->more->bytes;
    if (f->more->nbytes < SKETCH_EMPTY_BYTES)
        return bly_damaged("shorter than an empty filter of DataSketches, "
                           "which has %d bytes",
                           SKETCH_EMPTY_BYTES);
    if (p[1] != 1)
        return bly_damaged("serial version %u; 1 is known", p[1]);
    if (p[2] != SKETCH_FAMILY)
        return bly_damaged("a sketch of family %u; Bloom filters are %d", p[2],
                           SKETCH_FAMILY);
    const bool empty = p[3] & SKETCH_IS_EMPTY;
    const uint32_t k = bly_load16(p + 4), n = bly_load32(p + 16);
    if (p[0] != (empty ? 3 : 4))
        return bly_damaged("a preamble of %u longs; an empty filter has 3 and "
                           "others 4",
                           p[0]);
    if (k < 1 || k > BLY_FOREIGN_MAX_K)
        return bly_damaged("%u hash functions; 1 to %d are possible", k,
                           BLY_FOREIGN_MAX_K);
    if (n < 1 || n > INT32_MAX)
        return bly_damaged("%u words of bits; 1 to 2^31 - 1 are possible", n);
    const uint64_t size =
        empty ? SKETCH_EMPTY_BYTES : SKETCH_HEADER + (uint64_t)n * 8;
    if (size != f->more->nbytes)
        return bly_damaged("its header implies %llu bytes, but it has %zu",
                           (unsigned long long)size, f->more->nbytes);
    f->more->one.bytes = empty ? NULL : p + SKETCH_HEADER;
    f->more->one.nbits = (uint64_t)n * 64;
    f->more->one.k = k;
    f->more->one.excludes_all = empty;
    if (empty)
        f->more->one.items = 0;
    return BLY_OK;
}

static void datasketches_describe(const bly_foreign *f, bly_facts *out)
{
    bly_fact_uint(out, "seed", bly_load64(f->more->bytes + 8));
    bly_fact_word(out, "empty", f->more->one.excludes_all ? "yes" : "no");
    if (!f->more->one.excludes_all &&
        bly_load64(f->more->bytes + 24) != UINT64_MAX)
        bly_fact_uint(out, "bits_set_as_stored",
                      bly_load64(f->more->bytes + 24));
    bly_fact_word(out, "keys", f->more->option[SKETCH_KEYS]);
}

/* All zeros are +0 and all NaNs are the one that Java writes. */
static bly_status datasketches_encode(const bly_foreign *f, bly_bytes text,
                                      bly_scratch *s, bly_foreign_key *out)
{
    const uint64_t infinity = UINT64_C(0x7ff) << 52, sign = UINT64_C(1) << 63;
    const bly_status st = bly_key_encode(f->form, text, s, out);
    if (st || f->form != BLY_KEY_DOUBLE)
        return st;
    const uint64_t x = bly_load64(out->bytes);
    if (x == sign)
        bly_store64(s->at, 0);
    else if ((x & ~sign) > infinity)
        bly_store64(s->at, UINT64_C(0xfff) << 51);
    return BLY_OK;
}

static void datasketches_hash(const bly_foreign *f, bly_foreign_key *key)
{
    key->h[0] = bly_xxh64(key->bytes, key->len, bly_load64(f->more->bytes + 8));
    key->h[1] = bly_xxh64(key->bytes, key->len, key->h[0]);
}

static void datasketches_positions(const bly_foreign *f,
                                   const bly_foreign_part *p,
                                   const bly_foreign_key *key, uint64_t *out)
{
    (void)f;
    for (uint32_t i = 0; i < p->k; i++)
        out[i] = ((key->h[0] + (i + 1) * key->h[1]) >> 1) % p->nbits;
}

const bly_format bly_format_datasketches = {
    .name = "datasketches",
    .systems = "Apache DataSketches bloom_filter (Java, C++, Go)",
    .summary = "the filter among the sketches of data pipelines",
    .options = datasketches_options,
    .noptions = SKETCH_NOPTIONS,
    .recognise = datasketches_recognise,
    .open = datasketches_open,
    .describe = datasketches_describe,
    .encode = datasketches_encode,
    .hash = datasketches_hash,
    .positions = datasketches_positions,
};
