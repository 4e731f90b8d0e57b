/*
 * bip37.c - the filterload message of Bitcoin (BIP 37)
 *
 *     CompactSize L, at most 36000
 *     L bytes of bits
 *     k, 4 bytes little-endian, at most 50
 *     tweak, 4 bytes little-endian
 *     flags, 1 byte: 0 none, 1 all, 2 pubkey only
 *
 * A wallet sends it to a node to be sent only what matches. Position i is
 * MurmurHash3 (32 bits) of the element with the seed 0xfba4c795 i + tweak, mod
 * 8L. A filter without bytes matches everything, as in Bitcoin Core.
 */
#include "foreign/compact_size.h"
#include "foreign/hashes.h"

#define BIP37_MAX_BYTES 36000
#define BIP37_MAX_K 50
#define BIP37_TAIL 9

enum { BIP37_KEYS, BIP37_NOPTIONS };

static const char *const bip37_forms[] = { "hex", "bytes", NULL };
static const bly_param bip37_options[] = {
    [BIP37_KEYS] = BLY_OPTION_CHOICE(
        "keys", 0, bip37_forms,
        "scripts, hashes and outpoints in hexadecimal, in the "
        "byte order in which they are sent, or bytes"),
};

/* Where the bits end: 0 where this is no message. */
static size_t bip37_end(const unsigned char *bytes, size_t n, size_t *begin)
{
    uint64_t len = 0;
    *begin = bly_compact_size(bytes, n, &len);
    if (*begin == 0 || len > BIP37_MAX_BYTES ||
        n != *begin + (size_t)len + BIP37_TAIL)
        return 0;
    return *begin + (size_t)len;
}

static bool bip37_recognise(const unsigned char *bytes, size_t n)
{
    size_t begin;
    const size_t end = bip37_end(bytes, n, &begin);
    return end && bly_load32(bytes + end) <= BIP37_MAX_K && bytes[end + 8] <= 2;
}

static const unsigned char *bip37_tail(const bly_foreign *f)
{
    return f->more->bytes + f->more->nbytes - BIP37_TAIL;
}

static bly_status bip37_open(bly_foreign *f)
{
    size_t begin;
    const size_t end = bip37_end(f->more->bytes, f->more->nbytes, &begin);
    if (!end)
        return bly_damaged("not a filterload message: a length of at most %d, "
                           "that many bytes, and %d more",
                           BIP37_MAX_BYTES, BIP37_TAIL);
    const uint32_t k = bly_load32(f->more->bytes + end);
    const unsigned flags = f->more->bytes[end + 8];
    if (k > BIP37_MAX_K)
        return bly_damaged("%u hash functions; at most %d are allowed", k,
                           BIP37_MAX_K);
    if (flags > 2)
        return bly_damaged("flags %u; 0, 1 and 2 are known", flags);
    f->more->one.bytes = f->more->bytes + begin;
    f->more->one.nbits = (uint64_t)(end - begin) * 8;
    f->more->one.k = f->more->one.nbits ? k : 0;
    return BLY_OK;
}

static void bip37_describe(const bly_foreign *f, bly_facts *out)
{
    static const char *const names[] = { "none", "all", "pubkey only" };
    const unsigned flags = bip37_tail(f)[8]; /* may have changed since */
    bly_fact_uint(out, "tweak", bly_load32(bip37_tail(f) + 4));
    bly_fact_word(out, "update", flags <= 2 ? names[flags] : "unknown");
    bly_fact_word(out, "keys", f->more->option[BIP37_KEYS]);
}

/* Nothing to keep: every probe hashes the key anew, with a seed of its own. */
static void bip37_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    (void)key;
}

static void bip37_positions(const bly_foreign *f, const bly_foreign_part *p,
                            const bly_foreign_key *key, uint64_t *out)
{
    const uint32_t tweak = bly_load32(bip37_tail(f) + 4);
    for (uint32_t i = 0; i < p->k; i++)
        out[i] = bly_murmur3_32(key->bytes, key->len, i * 0xfba4c795 + tweak,
                                false) %
                 p->nbits;
}

const bly_format bly_format_bip37 = {
    .name = "bip37",
    .systems = "Bitcoin, filterload messages (BIP 37)",
    .summary = "what a wallet wants to hear about",
    .options = bip37_options,
    .noptions = BIP37_NOPTIONS,
    .recognise = bip37_recognise,
    .open = bip37_open,
    .describe = bip37_describe,
    .hash = bip37_hash,
    .positions = bip37_positions,
};
