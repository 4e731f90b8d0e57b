/*
 * squid.c - the cache digest that Squid proxies hand to their neighbours
 *
 *     offset  size
 *     0       2     version, 5
 *     2       2     the oldest version whose readers can use it, 3
 *     4       4     capacity in entries
 *     8       4     entries that were added
 *     12      4     deletions that were tried
 *     16      4     size of the mask: (capacity * bits per entry + 7) / 8
 *     20      1     bits per entry, 1 to 127
 *     21      1     hash functions, 4
 *     22      106   zero
 *     128           the mask, bit i in byte i / 8, the lowest first
 *
 * Numbers are big-endian. The key of an object is the MD5 of a byte for the
 * method and of the canonical URL (squid_url.c); its four words of 32 bits,
 * modulo the bits of the mask, are its positions.
 *
 * Text of a key: a URL, which is asked for with GET; "HEAD http://..."; or the
 * 32 hexadecimal digits of the MD5, as Squid's logs have them.
 *
 * Squid 5.7 holds the bits per entry in a signed byte and aborts at 128, and it
 * refuses a digest with more than 65 % of its bits set: neither is written
 * here. With k = 4 and b bits per entry the fill at capacity is 1 - e^(-4/b):
 * 55 % at 5 bits, Squid's own choice, where the rate is 9.2 %; 11 bits give
 * 0.85 %, and 127 one in a million.
 *
 * L. Fan, P. Cao, J. Almeida, A. Broder, "Summary Cache: A Scalable Wide-Area
 * Web Cache Sharing Protocol", 2000; A. Rousskov, D. Wessels, "Cache Digests",
 * 1998.
 */
#include <math.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"
#include "foreign/squid.h"

#define SQUID_HEADER 128
#define SQUID_K 4
#define SQUID_MAX_BITS 127 /* an entry */
#define SQUID_USUAL_BITS 5 /* Squid's default, and the least a rate gives */
#define SQUID_MAX_FILL 0.65
#define SQUID_READ_VERSION 5 /* "required" may not be later */
#define SQUID_LEAST_VERSION 3

enum { SQUID_BITS, SQUID_NOPTIONS };

static const bly_param squid_options[] = {
    [SQUID_BITS] =
        BLY_OPTION_TEXT("bits", NULL,
                        "bits per entry of a new one, 1 to 127; as many as the "
                        "rate needs if not given, at least 5"),
};

/* Bytes of a mask, by the formula that Squid checks. */
static uint64_t mask_bytes(uint64_t capacity, unsigned bits)
{
    return (capacity * bits + 7) / 8;
}

static bool squid_recognise(const unsigned char *bytes, size_t n)
{
    return n > SQUID_HEADER && bly_load_be16(bytes) >= SQUID_LEAST_VERSION &&
           bly_load_be16(bytes + 2) <= SQUID_READ_VERSION &&
           bytes[21] == SQUID_K && bytes[20] && bly_load_be32(bytes + 4) &&
           bly_load_be32(bytes + 16) == n - SQUID_HEADER &&
           mask_bytes(bly_load_be32(bytes + 4), bytes[20]) == n - SQUID_HEADER;
}

static bly_status squid_open(bly_foreign *f)
{
    const unsigned char *const b = f->more->bytes;
    if (f->more->nbytes < SQUID_HEADER)
        return bly_damaged("%zu bytes; a cache digest has a header of 128",
                           f->more->nbytes);
    const unsigned now = bly_load_be16(b), least = bly_load_be16(b + 2),
                   bits = b[20];
    const uint64_t capacity = bly_load_be32(b + 4);
    const uint64_t mask = bly_load_be32(b + 16);
    if (now < SQUID_LEAST_VERSION || least > SQUID_READ_VERSION)
        return bly_damaged("a cache digest of version %u, for readers of "
                           "version %u; 5, and 3 to 5, are known",
                           now, least);
    if (b[21] != SQUID_K)
        return bly_damaged("a cache digest with %u hash functions; it has 4",
                           b[21]);
    if (bits < 1 || bits > SQUID_MAX_BITS)
        return bly_damaged("a cache digest with %u bits per entry, which would "
                           "crash a Squid; 1 to 127 are right",
                           bits);
    /* Squid's own limit: the number of bits fits into an int. */
    if (capacity == 0 || capacity * bits + 7 > INT32_MAX)
        return bly_damaged("a cache digest for %llu entries of %u bits; Squid "
                           "accepts 1 to 2^31 bits",
                           (unsigned long long)capacity, bits);
    if (mask != mask_bytes(capacity, bits))
        return bly_damaged("its header says a mask of %llu bytes, but %llu "
                           "entries of %u bits take %llu",
                           (unsigned long long)mask,
                           (unsigned long long)capacity, bits,
                           (unsigned long long)mask_bytes(capacity, bits));
    if (f->more->nbytes - SQUID_HEADER != mask)
        return bly_damaged(
            "its header says a mask of %llu bytes, but %zu follow",
            (unsigned long long)mask, f->more->nbytes - SQUID_HEADER);
    f->more->one.bytes = b + SQUID_HEADER;
    f->more->one.nbits = mask * 8;
    f->more->one.k = SQUID_K;
    f->more->one.items = bly_load_be32(b + 8);
    f->more->one.capacity = capacity;
    f->more->one.fpr_planned = pow(-expm1(-(double)SQUID_K / bits), SQUID_K);
    return BLY_OK;
}

/* ------------------------------------------------------------------ keys */

/* The methods whose answers are kept, by their codes from 1 on. */
static const char *const squid_methods[] = { "GET", "POST", "PUT", "HEAD" };

/* The first word of a text where it stands for a method: its length, and 0
 * where the text is a URL alone. */
static size_t method_word(bly_bytes text)
{
    const char *const p = text.ptr;
    for (size_t i = 0; i < text.len; i++) {
        if (p[i] == ' ')
            return i;
        if (p[i] == ':' || p[i] == '/')
            break;
    }
    return 0;
}

static void key_words(const unsigned char md5[16], uint64_t *h)
{
    h[0] = bly_load_be64(md5);
    h[1] = bly_load_be64(md5 + 8);
}

static bly_status squid_encode(const bly_foreign *f, bly_bytes text,
                               bly_scratch *s, bly_foreign_key *out)
{
    (void)f;
    if (text.len == 32 && !bly_key_encode(BLY_KEY_HEX, text, s, out)) {
        key_words(out->bytes, out->h);
        out->bytes = NULL; /* hashed already */
        return BLY_OK;
    }
    const size_t nword = method_word(text);
    unsigned code = 1;
    if (nword) {
        while (code <= 4 &&
               (strlen(squid_methods[code - 1]) != nword ||
                memcmp(squid_methods[code - 1], text.ptr, nword) != 0))
            code++;
        if (code > 4)
            return bly_fail(
                BLY_EINVAL,
                "Squid keeps only what was requested with GET, POST, PUT or "
                "HEAD; expected URL, METHOD URL, or 32 digits of an MD5");
        text.ptr = (const char *)text.ptr + nword + 1;
        text.len -= nword + 1;
    }
    if (text.len > SIZE_MAX / 4)
        return bly_fail(BLY_ERANGE, "the key is too long");
    unsigned char *const at =
        bly_scratch_need(s, 1 + text.len + BLY_SQUID_URL_MORE);
    if (!at)
        return bly_fail(BLY_ENOMEM, "out of memory");
    at[0] = (unsigned char)code;
    out->bytes = at;
    out->len = 1 + bly_squid_url(text.ptr, text.len, (char *)at + 1);
    return BLY_OK;
}

static void squid_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    unsigned char sum[16];
    bly_md5 m;
    if (!key->bytes)
        return;
    bly_md5_start(&m);
    bly_md5_add(&m, key->bytes, key->len);
    bly_md5_end(&m, sum);
    key_words(sum, key->h);
}

static void squid_positions(const bly_foreign *f, const bly_foreign_part *p,
                            const bly_foreign_key *key, uint64_t *out)
{
    (void)f;
    for (unsigned i = 0; i < SQUID_K; i++)
        out[i] = (uint32_t)(key->h[i / 2] >> (i % 2 ? 0 : 32)) % p->nbits;
}

/* ----------------------------------------------------------------- making */

/* The least bits per entry that keep a rate: fill = rate^(1/4) = 1 - e^(-4/b).
 */
static double bits_for(double fpr)
{
    const double b = -SQUID_K / log1p(-pow(fpr, 1.0 / SQUID_K));
    return fmax(SQUID_USUAL_BITS, ceil(b));
}

static bly_status squid_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const char *const given = f->more->option[SQUID_BITS];
    uint64_t bits = 0;
    if (given &&
        (!bly_parse_count(given, &bits) || bits < 1 || bits > SQUID_MAX_BITS))
        return bly_fail(BLY_EINVAL,
                        "option bits of squid: '%s' is not 1 to "
                        "127",
                        given);
    if (!given && bits_for(fpr) > SQUID_MAX_BITS)
        return bly_fail(BLY_ERANGE, "a cache digest has at most 127 bits per "
                                    "entry, for a rate of 1e-6");
    if (!given)
        bits = (uint64_t)bits_for(fpr);
    if (items > INT32_MAX || items * bits + 7 > INT32_MAX)
        return bly_fail(BLY_ERANGE,
                        "%llu entries of %llu bits; a cache digest "
                        "has less than 2^31 bits",
                        (unsigned long long)items, (unsigned long long)bits);
    f->more->one.nbits = mask_bytes(items, (unsigned)bits) * 8;
    f->more->one.k = SQUID_K;
    f->more->one.capacity = items;
    f->more->one.fpr_planned =
        pow(-expm1(-(double)SQUID_K / (double)bits), SQUID_K);
    return BLY_OK;
}

/* Bits an entry of a made one: the option, or what its rate took. */
static unsigned bits_of(const bly_foreign *f)
{
    uint64_t bits = 0;
    const char *const given = f->more->option[SQUID_BITS];
    if (!given || !bly_parse_count(given, &bits))
        bits = (uint64_t)bits_for(f->more->fpr);
    return (unsigned)bits;
}

static void squid_describe(const bly_foreign *f, bly_facts *out)
{
    bly_fact_uint(out, "bits_per_entry",
                  f->more->bytes ? f->more->bytes[20] : bits_of(f));
    if (!f->more->bytes)
        return;
    bly_fact_uint(out, "version", bly_load_be16(f->more->bytes));
    bly_fact_uint(out, "version_required", bly_load_be16(f->more->bytes + 2));
    bly_fact_uint(out, "deletions", bly_load_be32(f->more->bytes + 12));
}

static bly_status squid_write(const bly_foreign *f, bly_put *put, void *ctx)
{
    const size_t nmask = (size_t)(f->more->one.nbits / 8);
    uint64_t ones = 0;
    for (size_t i = 0; i < nmask; i++)
        ones += (unsigned)__builtin_popcount(f->more->one.bytes[i]);
    if ((double)ones > SQUID_MAX_FILL * (double)f->more->one.nbits)
        return bly_fail(
            BLY_ERANGE,
            "more than 65 %% of its bits are set, and Squid refuses such a "
            "digest; make it for more items, or with more bits per entry");
    unsigned char head[SQUID_HEADER] = { 0, 5, 0, 3 };
    bly_store_be32(head + 4, (uint32_t)f->more->one.capacity);
    bly_store_be32(head + 8, (uint32_t)f->more->nseen);
    bly_store_be32(head + 16, (uint32_t)nmask);
    head[20] = (unsigned char)bits_of(f);
    head[21] = SQUID_K;
    return bly_foreign_put(f, head, sizeof head, nmask, put, ctx);
}

const bly_format bly_format_squid = {
    .name = "squid",
    .systems = "Squid cache digest",
    .summary = "what a proxy has in its cache, for its neighbours",
    .options = squid_options,
    .noptions = SQUID_NOPTIONS,
    .recognise = squid_recognise,
    .open = squid_open,
    .describe = squid_describe,
    .encode = squid_encode,
    .hash = squid_hash,
    .positions = squid_positions,
    .plan = squid_plan,
    .nhash = 2,
    .counts = true,
    .write = squid_write,
};
