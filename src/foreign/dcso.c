/*
 * dcso.c - .bloom files of DCSO's bloom (Go) and flor (Python)
 *
 *     offset  size
 *     0       8     version: the low byte is 1
 *     8       8     n, the capacity
 *     16      8     p, the rate planned, an IEEE double
 *     24      8     k
 *     32      8     m, the bits
 *     40      8     N, the keys that set a bit when they were added
 *     48      8w    w = ceil(m / 64) words
 *     48+8w   ...   whatever the owner put there, up to the end
 *
 * All numbers are little-endian. A key walks from its FNV-1 hash by
 * multiplying:
 *
 *     h = FNV-1(key) mod P;  k times: h = (h G mod 2^64) mod P, bit h mod m
 *
 * Sizes are as its programs compute them. m is rounded down: they round the
 * negative number up before they take the sign away. 1000 keys at 1% take 9585
 * bits and k = 7.
 */
#include <math.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define DCSO_HEADER 48
#define DCSO_PRIME UINT64_C(18446744073709551557)
#define DCSO_FACTOR UINT64_C(18446744073709550147)

enum { DCSO_KEYS, DCSO_DATA, DCSO_NOPTIONS };

static const char *const dcso_forms[] = { "bytes", "hex", NULL };
static const bly_param dcso_options[] = {
    [DCSO_KEYS] = BLY_OPTION_CHOICE("keys", 0, dcso_forms,
                                    "what the text of a key means"),
    [DCSO_DATA] = BLY_OPTION_TEXT("data", NULL,
                                  "for a new one: text to keep after the bits"),
};

/* What is wrong with the header, or NULL: then *out is what it says. */
static const char *dcso_wrong(const unsigned char *bytes, size_t n,
                              bly_foreign_part *out)
{
    if (n < DCSO_HEADER)
        return "shorter than the header of a DCSO filter";
    const uint64_t k = bly_load64(bytes + 24), m = bly_load64(bytes + 32);
    const double p = bly_bits_real(bly_load64(bytes + 16));
    if (bytes[0] != 1)
        return "a DCSO filter of a version other than 1";
    if (k == 0 || k > BLY_FOREIGN_MAX_K)
        return "a DCSO filter without hash functions, or with more than 255";
    if (!(p > 0 && p < 1))
        return "a DCSO filter with a rate that is not between 0 and 1";
    if (m == 0 || m / 64 + (m % 64 != 0) > (n - DCSO_HEADER) / 8)
        return "a DCSO filter with no bits, or cut short";
    out->bytes = bytes + DCSO_HEADER;
    out->capacity = bly_load64(bytes + 8);
    out->fpr_planned = p;
    out->k = (uint32_t)k;
    out->nbits = m;
    out->items = bly_load64(bytes + 40);
    return NULL;
}

static bool dcso_recognise(const unsigned char *bytes, size_t n)
{
    bly_foreign_part unused;
    return dcso_wrong(bytes, n, &unused) == NULL;
}

static bly_status dcso_open(bly_foreign *f)
{
    const char *const wrong =
        dcso_wrong(f->more->bytes, f->more->nbytes, &f->more->one);
    return wrong ? bly_damaged("%s", wrong) : BLY_OK;
}

static void dcso_describe(const bly_foreign *f, bly_facts *out)
{
    const size_t used = DCSO_HEADER + (size_t)bly_part_bytes(&f->more->one);
    if (f->more->bytes && f->more->nbytes > used)
        bly_fact_uint(out, "data_bytes", f->more->nbytes - used);
}

static void dcso_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    key->h[0] = bly_fnv1(key->bytes, key->len);
}

static void dcso_positions(const bly_foreign *f, const bly_foreign_part *p,
                           const bly_foreign_key *key, uint64_t *out)
{
    (void)f;
    uint64_t h = key->h[0] % DCSO_PRIME;
    for (uint32_t i = 0; i < p->k; i++) {
        h = h * DCSO_FACTOR % DCSO_PRIME;
        out[i] = h % p->nbits;
    }
}

static bly_status dcso_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const double m = fmax(1, floor(bly_bloom_bits((double)items, fpr)));
    const double k = ceil(log(2) * m / (double)items);
    if (m > BLY_FOREIGN_MAX_BITS || k > BLY_FOREIGN_MAX_K)
        return bly_fail(BLY_ERANGE, "a DCSO filter has at most 2^50 bits and "
                                    "255 hash functions here");
    f->more->one.nbits = (uint64_t)m;
    f->more->one.k = (uint32_t)k;
    f->more->one.capacity = items;
    f->more->one.fpr_planned = fpr;
    return BLY_OK;
}

static bly_status dcso_write(const bly_foreign *f, bly_put *put, void *ctx)
{
    unsigned char head[DCSO_HEADER] = { 1 };
    const char *const data = f->more->option[DCSO_DATA];
    bly_store64(head + 8, f->more->one.capacity);
    bly_store64(head + 16, bly_real_bits(f->more->one.fpr_planned));
    bly_store64(head + 24, f->more->one.k);
    bly_store64(head + 32, f->more->one.nbits);
    bly_store64(head + 40, f->nadded);
    const bly_status st = bly_foreign_put(
        f, head, sizeof head, bly_part_bytes(&f->more->one), put, ctx);
    if (st || !data)
        return st;
    return put(ctx, data, strlen(data)) ? BLY_OK : BLY_EIO;
}

const bly_format bly_format_dcso = {
    .name = "dcso",
    .systems = "DCSO bloom (Go), flor (Python)",
    .summary = "the filter that lists of known files and threats come in",
    .options = dcso_options,
    .noptions = DCSO_NOPTIONS,
    .recognise = dcso_recognise,
    .open = dcso_open,
    .describe = dcso_describe,
    .hash = dcso_hash,
    .positions = dcso_positions,
    .plan = dcso_plan,
    .nhash = 1,
    .write = dcso_write,
};
