/*
 * guava.c - BloomFilter.writeTo of Guava (Java)
 *
 *     offset  size
 *     0       1     strategy: 0 MURMUR128_MITZ_32, 1 MURMUR128_MITZ_64
 *     1       1     k
 *     2       4     n, the number of words, big-endian
 *     6       8n    the words, big-endian
 *
 * A value is hashed as its funnel writes it: a string as its bytes or as
 * UTF-16, a number as its little-endian bytes. Which funnel is not in the
 * file; the option `keys` names it. Since Guava 17 strategy 1 is what is
 * written; the other is read, and written on demand.
 */
#include <math.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define GUAVA_HEADER 6

enum { GUAVA_KEYS, GUAVA_STRATEGY, GUAVA_NOPTIONS };

static const char *const guava_forms[] = { "bytes", "utf16", "int32",
                                           "int64", "hex",   NULL };
static const char *const guava_strategies[] = { "32", "64", NULL };
static const bly_param guava_options[] = {
    [GUAVA_KEYS] = BLY_OPTION_CHOICE(
        "keys", 0, guava_forms,
        "what the funnel turns a key into: its bytes (strings "
        "with a charset, byte arrays), utf16 (unencoded "
        "characters), int32, int64 (Integer, Long)"),
    [GUAVA_STRATEGY] =
        BLY_OPTION_CHOICE("strategy", 1, guava_strategies,
                          "for a new one: bits of MURMUR128_MITZ"),
};

static bool guava_recognise(const unsigned char *bytes, size_t n)
{
    return n > GUAVA_HEADER && bytes[0] <= 1 && bytes[1] > 0 &&
           (n - GUAVA_HEADER) % 8 == 0 &&
           bly_load_be32(bytes + 2) == (n - GUAVA_HEADER) / 8;
}

static bly_status guava_open(bly_foreign *f)
{
    if (f->more->nbytes <= GUAVA_HEADER)
        return bly_damaged("shorter than the header of a Guava filter");
    const uint64_t nwords = bly_load_be32(f->more->bytes + 2);
    const unsigned strategy = f->more->bytes[0], k = f->more->bytes[1];
    if (strategy > 1)
        return bly_damaged("Guava strategy %u; 0 and 1 are known", strategy);
    if (k == 0)
        return bly_damaged("a Guava filter with no hash functions");
    if (nwords > INT32_MAX || nwords * 8 != f->more->nbytes - GUAVA_HEADER)
        return bly_damaged("its header says %llu words, but %zu bytes follow",
                           (unsigned long long)nwords,
                           f->more->nbytes - GUAVA_HEADER);
    f->more->one.bytes = f->more->bytes + GUAVA_HEADER;
    f->more->one.nbits = nwords * 64;
    f->more->one.k = k;
    f->more->one.order = BLY_BE_WORDS;
    return BLY_OK;
}

static bool guava_is_64(const bly_foreign *f)
{
    return f->more->bytes ? f->more->bytes[0] == 1
                          : strcmp(f->more->option[GUAVA_STRATEGY], "64") == 0;
}

static void guava_describe(const bly_foreign *f, bly_facts *out)
{
    bly_fact_word(out, "strategy",
                  guava_is_64(f) ? "MURMUR128_MITZ_64" : "MURMUR128_MITZ_32");
    bly_fact_word(out, "keys", f->more->option[GUAVA_KEYS]);
}

static void guava_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    bly_murmur3_128(key->bytes, key->len, 0, false, key->h);
}

static void guava_positions(const bly_foreign *f, const bly_foreign_part *p,
                            const bly_foreign_key *key, uint64_t *out)
{
    if (guava_is_64(f)) {
        uint64_t c = key->h[0];
        for (uint32_t i = 0; i < p->k; i++, c += key->h[1])
            out[i] = (c & INT64_MAX) % p->nbits;
    } else {
        const uint32_t a = (uint32_t)key->h[0];
        const uint32_t b = (uint32_t)(key->h[0] >> 32);
        for (uint32_t i = 1; i <= p->k; i++) {
            const uint32_t c = a + i * b;
            out[i - 1] = (c >> 31 ? ~c : c) % p->nbits;
        }
    }
}

/* As Guava sizes: k from the bits before they are rounded up to words. */
static bly_status guava_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const double m = floor(bly_bloom_bits((double)items, fpr));
    const double nwords = fmax(1, ceil(m / 64));
    const double k = fmax(1, round(m / (double)items * log(2)));
    if (nwords > INT32_MAX || k > 255)
        return bly_fail(BLY_ERANGE, "a Guava filter has at most 2^31 - 1 words "
                                    "and 255 hash functions");
    f->more->one.nbits = (uint64_t)nwords * 64;
    f->more->one.k = (uint32_t)k;
    f->more->one.order = BLY_BE_WORDS;
    return BLY_OK;
}

static bly_status guava_write(const bly_foreign *f, bly_put *put, void *ctx)
{
    unsigned char head[GUAVA_HEADER] = { guava_is_64(f),
                                         (unsigned char)f->more->one.k };
    bly_store_be32(head + 2, (uint32_t)(f->more->one.nbits / 64));
    return bly_foreign_put(f, head, sizeof head, f->more->one.nbits / 8, put,
                           ctx);
}

const bly_format bly_format_guava = {
    .name = "guava",
    .systems = "Guava BloomFilter.writeTo (Java)",
    .summary = "the filter that Java services write",
    .options = guava_options,
    .noptions = GUAVA_NOPTIONS,
    .recognise = guava_recognise,
    .open = guava_open,
    .describe = guava_describe,
    .hash = guava_hash,
    .positions = guava_positions,
    .plan = guava_plan,
    .nhash = 2,
    .write = guava_write,
};
