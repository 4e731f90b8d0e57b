/*
 * redisbloom.c - a Bloom filter of RedisBloom, as BF.SCANDUMP gives it
 *
 * A file is the header that SCANDUMP gives first, and behind it all chunks in
 * their order. Iterators are not kept: a chunk's is one more than the bytes of
 * all chunks up to its end, and chunks never reach from one filter into the
 * next.
 *
 *     offset  size                        each of the chain, 53 bytes
 *     0       8     items                 0    8   bytes
 *     8       4     filters in the chain  8    8   bits = 8 bytes
 *     12      4     options               16   8   items
 *     16      4     growth                24   8   rate, a double
 *     20      53    each of the chain     32   8   bits per entry, a double
 *     then    ...   the bits of each      40   4   k = ceil(ln 2 x the last)
 *                                         44   8   capacity
 *                                         52   1   n2
 *
 * All numbers are little-endian. Options: 1 bits as computed and not a power of
 * two, 2 the capacity was given in bits, 4 64-bit hash, 8 does not scale. A key
 * is hashed twice, the second time with the first hash as seed; probe i is bit
 * (a + i b) mod bits, or mod 2^n2 where n2 is not 0.
 *
 * New ones are a chain of one, as BF.RESERVE makes it: the first filter of a
 * chain that scales has half the rate that was asked for, so that the rates of
 * all that follow, each half the last, add up to it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define REDISBLOOM_HEADER 20
#define REDISBLOOM_LINK 53
#define REDISBLOOM_EXACT 1u
#define REDISBLOOM_HASH64 4u
#define REDISBLOOM_FIXED 8u /* does not scale */
#define REDISBLOOM_OPTIONS 15u
#define REDISBLOOM_GROWTH 2 /* its default; fixed ones have it, too */
#define REDISBLOOM_MAX_BITS 0x1p45

enum { REDISBLOOM_KEYS, REDISBLOOM_SCALING, REDISBLOOM_NOPTIONS };

static const char *const redisbloom_forms[] = { "bytes", "hex", NULL };
static const char *const redisbloom_scaling[] = { "yes", "no", NULL };
static const bly_format_option redisbloom_options[] = {
    [REDISBLOOM_KEYS] = { "keys", "bytes", redisbloom_forms,
                          "what the text of a key means" },
    [REDISBLOOM_SCALING] = { "scaling", "yes", redisbloom_scaling,
                             "for a new one: may grow in Redis past its "
                             "capacity" },
};

/* ---------------------------------------------------------------- reading */

static const unsigned char *redisbloom_link(const unsigned char *bytes,
                                            size_t i)
{
    return bytes + REDISBLOOM_HEADER + REDISBLOOM_LINK * i;
}

static double redisbloom_hashes(double bits_per_entry)
{
    return ceil(0.693147180559945 * bits_per_entry); /* its own ln 2 */
}

/* What is wrong with one of the chain that may have `left` bytes of bits, as
 * RedisBloom itself would see when it loads; NULL: nothing, and then *out is
 * what it says, and *nbytes the length of its bits. */
static const char *redisbloom_link_wrong(const unsigned char *l, uint64_t left,
                                         bly_foreign_part *out,
                                         uint64_t *nbytes)
{
    const uint64_t n = bly_get_le64(l), k = bly_get_le32(l + 40);
    const double error = bly_get_le_double(l + 24);
    const unsigned n2 = l[52];
    if (n == 0 || n > left)
        return "a RedisBloom dump that is cut short, or has a filter of no "
               "bits";
    if (bly_get_le64(l + 8) != n * 8)
        return "a RedisBloom dump whose bits and bytes do not agree";
    if (!(error > 0 && error < 1))
        return "a RedisBloom dump with a rate that is not between 0 and 1";
    if (k == 0 || k > BLY_FOREIGN_MAX_K ||
        redisbloom_hashes(bly_get_le_double(l + 32)) != (double)k)
        return "a RedisBloom dump with hash functions that do not match its "
               "bits per entry, or more than 255";
    if (n2 > 63 || (n2 && n * 8 < UINT64_C(1) << n2))
        return "a RedisBloom dump with fewer bits than its power of two";
    *nbytes = n;
    out->nbits = n2 ? UINT64_C(1) << n2 : n * 8;
    out->k = (uint32_t)k;
    out->items = bly_get_le64(l + 16);
    out->capacity = bly_get_le64(l + 44);
    out->fpr_planned = error;
    return NULL;
}

/* The same of the header; *nparts is the length of the chain. */
static const char *redisbloom_header_wrong(const unsigned char *bytes, size_t n,
                                           size_t *nparts)
{
    if (n < REDISBLOOM_HEADER + REDISBLOOM_LINK)
        return "shorter than the header of a RedisBloom dump";
    *nparts = bly_get_le32(bytes + 8);
    if (*nparts == 0 || *nparts > (n - REDISBLOOM_HEADER) / REDISBLOOM_LINK)
        return "a RedisBloom dump of no filters, or cut short";
    if (bly_get_le32(bytes + 12) > REDISBLOOM_OPTIONS)
        return "a RedisBloom dump with unknown options";
    return NULL;
}

/* The same of the chain; parts, if not NULL, are what it is made of. */
static const char *redisbloom_chain_wrong(const unsigned char *bytes, size_t n,
                                          size_t nparts,
                                          bly_foreign_part *parts)
{
    const unsigned char *at = redisbloom_link(bytes, nparts);
    uint64_t left = n - REDISBLOOM_HEADER - REDISBLOOM_LINK * nparts;
    uint64_t items = bly_get_le64(bytes);
    for (size_t i = 0; i < nparts; i++) {
        bly_foreign_part part = { .bytes = at };
        uint64_t nbytes;
        const char *const wrong = redisbloom_link_wrong(
            redisbloom_link(bytes, i), left, &part, &nbytes);
        if (wrong)
            return wrong;
        if (part.items > items)
            return "a RedisBloom dump whose items do not add up";
        items -= part.items;
        left -= nbytes;
        at += (size_t)nbytes;
        if (nparts > 1)
            snprintf(part.name, sizeof part.name, "filter %zu", i + 1);
        if (parts)
            parts[i] = part;
    }
    return items  ? "a RedisBloom dump whose items do not add up"
           : left ? "a RedisBloom dump with bytes after its end"
                  : NULL;
}

static bool redisbloom_recognise(const unsigned char *bytes, size_t n)
{
    size_t nparts;
    return !redisbloom_header_wrong(bytes, n, &nparts) &&
           !redisbloom_chain_wrong(bytes, n, nparts, NULL);
}

/* own: the filters of the chain. */
static void redisbloom_part(const bly_foreign *f, size_t i,
                            bly_foreign_part *out)
{
    *out = f->bytes ? ((const bly_foreign_part *)f->own)[i] : f->one;
}

static bly_status redisbloom_open(bly_foreign *f)
{
    size_t n;
    const char *wrong = redisbloom_header_wrong(f->bytes, f->nbytes, &n);
    if (wrong)
        return bly_damaged("%s", wrong);
    /* 4 times a link at most */
    const bly_status st = bly_foreign_own(f, n * sizeof(bly_foreign_part));
    if (st)
        return st;
    bly_foreign_part *const parts = f->own;
    wrong = redisbloom_chain_wrong(f->bytes, f->nbytes, n, parts);
    if (wrong)
        return bly_damaged("%s", wrong);
    f->nparts = n;
    f->one = parts[0];
    return BLY_OK;
}

static uint32_t redisbloom_flags(const bly_foreign *f)
{
    if (f->bytes)
        return bly_get_le32(f->bytes + 12);
    return REDISBLOOM_EXACT | REDISBLOOM_HASH64 |
           (strcmp(f->option[REDISBLOOM_SCALING], "no") == 0 ? REDISBLOOM_FIXED
                                                             : 0);
}

/* The chain's rate by the items it says it has: a key that is not there passes
 * where one filter lets it. */
static double redisbloom_rate(const bly_foreign *f)
{
    double right = 1;
    for (size_t i = 0; i < f->nparts; i++) {
        bly_foreign_part p;
        redisbloom_part(f, i, &p);
        const double fill =
            -expm1(-(double)p.k * (double)p.items / (double)p.nbits);
        right *= 1 - pow(fill, p.k);
    }
    return 1 - right;
}

static void redisbloom_describe(const bly_foreign *f, bly_facts *out)
{
    const uint32_t flags = redisbloom_flags(f);
    bly_fact_word(out, "scaling", flags & REDISBLOOM_FIXED ? "no" : "yes");
    bly_fact_word(out, "hash",
                  flags & REDISBLOOM_HASH64 ? "MurmurHash64A" : "MurmurHash2");
    if (!f->bytes)
        return;
    bly_fact_uint(out, "growth", bly_get_le32(f->bytes + 16));
    if (f->nparts > 1)
        bly_fact_real(out, "fpr_of_chain", redisbloom_rate(f));
}

/* ----------------------------------------------------------------- asking */

static void redisbloom_hash(const bly_foreign *f, bly_foreign_key *key)
{
    const bool wide = redisbloom_flags(f) & REDISBLOOM_HASH64;
    if (wide) {
        key->h[0] =
            bly_murmur64a(key->bytes, key->len, UINT64_C(0xc6a4a7935bd1e995));
        key->h[1] = bly_murmur64a(key->bytes, key->len, key->h[0]);
    } else {
        const uint32_t a = bly_murmur2(key->bytes, key->len, 0x9747b28c);
        key->h[0] = a;
        key->h[1] = bly_murmur2(key->bytes, key->len, a);
    }
}

static void redisbloom_positions(const bly_foreign *f,
                                 const bly_foreign_part *p,
                                 const bly_foreign_key *key, uint64_t *out)
{
    (void)f;
    for (uint32_t i = 0; i < p->k; i++)
        out[i] = (key->h[0] + i * key->h[1]) % p->nbits;
}

/* ----------------------------------------------------------------- making */

static double redisbloom_bits_per_entry(double error)
{
    return fabs(log(error)) / 0.480453013918201; /* its own (ln 2)^2 */
}

static bly_status redisbloom_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const double error = redisbloom_flags(f) & REDISBLOOM_FIXED ? fpr : fpr / 2;
    const double each = redisbloom_bits_per_entry(error);
    const double bits = fmax(1, (double)items * each);
    const double k = redisbloom_hashes(each);
    if (!(bits < REDISBLOOM_MAX_BITS) || k > BLY_FOREIGN_MAX_K)
        return bly_fail(BLY_ERANGE, "a RedisBloom filter has at most 2^45 bits "
                                    "and 255 hash functions here");
    f->one.nbits = ((uint64_t)bits + 63) / 64 * 64;
    f->one.k = (uint32_t)k;
    f->one.capacity = items;
    f->one.fpr_planned = error;
    return BLY_OK;
}

static bly_status redisbloom_write(const bly_foreign *f, bly_put *put,
                                   void *ctx)
{
    unsigned char head[REDISBLOOM_HEADER + REDISBLOOM_LINK] = { 0 };
    unsigned char *const l = head + REDISBLOOM_HEADER;
    const bly_foreign_part *const p = &f->one;
    bly_put_le64(head, f->nadded);
    bly_put_le32(head + 8, 1);
    bly_put_le32(head + 12, redisbloom_flags(f));
    bly_put_le32(head + 16, REDISBLOOM_GROWTH);
    bly_put_le64(l, bly_part_bytes(p));
    bly_put_le64(l + 8, p->nbits);
    bly_put_le64(l + 16, f->nadded);
    bly_put_le_double(l + 24, p->fpr_planned);
    bly_put_le_double(l + 32, redisbloom_bits_per_entry(p->fpr_planned));
    bly_put_le32(l + 40, p->k);
    bly_put_le64(l + 44, p->capacity);
    return bly_foreign_put(f, head, sizeof head, bly_part_bytes(p), put, ctx);
}

const bly_format bly_format_redisbloom = {
    .name = "redisbloom",
    .systems = "RedisBloom BF.SCANDUMP, BF.LOADCHUNK (Redis)",
    .summary = "header and chunks of a filter in Redis, one after another",
    .options = redisbloom_options,
    .noptions = REDISBLOOM_NOPTIONS,
    .recognise = redisbloom_recognise,
    .open = redisbloom_open,
    .part = redisbloom_part,
    .describe = redisbloom_describe,
    .hash = redisbloom_hash,
    .positions = redisbloom_positions,
    .plan = redisbloom_plan,
    .nhash = 2,
    .write = redisbloom_write,
};
