/*
 * bip158.c - basic block filters of Bitcoin (BIP 158)
 *
 * A set of N scripts becomes N numbers below N M (M = 784931), which are
 * sorted; the differences are Rice-coded with P = 19 bits:
 *
 *     CompactSize N, then bits, the most significant of a byte first:
 *     for each difference d: d >> 19 ones, a zero, the low 19 bits of d
 *
 * The number of a script is SipHash-2-4(script) N M / 2^64, with the first 16
 * bytes of the block's hash as its key, in the order in which they are sent;
 * people see that hash reversed. A script that is not there is found with
 * probability 1/M. All numbers are unpacked when it is opened (three times the
 * file), so that a question is a search among sorted numbers.
 *
 * Nothing in the file says what it is, nor which block it is of.
 */
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "foreign/compact_size.h"

#define BIP158_P 19
#define BIP158_M 784931
#define BIP158_LEAST_BITS 20 /* of an item: no ones, the zero, P bits */

enum { BIP158_KEYS, BIP158_BLOCK, BIP158_NOPTIONS };

static const char *const bip158_forms[] = { "hex", "bytes", NULL };
static const bly_param bip158_options[] = {
    [BIP158_KEYS] = BLY_OPTION_CHOICE("keys", 0, bip158_forms,
                                      "scripts in hexadecimal, or bytes"),
    [BIP158_BLOCK] =
        BLY_OPTION_TEXT("block", NULL,
                        "the hash of the block, 64 digits as it is usually "
                        "shown; needed for queries"),
};

struct bip158_set {
    uint64_t n;
    uint64_t key[2];
    bool keyed;
    uint64_t values[]; /* sorted */
};

/* ---------------------------------------------------------------- opening */

/* Bits, the most significant of a byte first. */
struct bip158_bits {
    const unsigned char *p;
    uint64_t at, n;
};

static bool bip158_bit(struct bip158_bits *b, uint64_t *bit)
{
    if (b->at == b->n)
        return false;
    *bit = b->p[b->at / 8] >> (7 - b->at % 8) & 1;
    b->at++;
    return true;
}

/* The next difference; false where the bits end within it. */
static bool bip158_next(struct bip158_bits *b, uint64_t *d)
{
    uint64_t bit, ones = 0;
    *d = 0;
    for (;; ones++) {
        if (!bip158_bit(b, &bit))
            return false;
        if (!bit)
            break;
    }
    for (int i = 0; i < BIP158_P; i++) {
        if (!bip158_bit(b, &bit))
            return false;
        *d = *d << 1 | bit;
    }
    *d |= ones << BIP158_P;
    return true;
}

static bly_status bip158_unpack(struct bip158_bits *b, struct bip158_set *set)
{
    uint64_t value = 0, d;
    for (uint64_t i = 0; i < set->n; i++) {
        if (!bip158_next(b, &d))
            return bly_damaged("it ends in the middle of item %llu of %llu",
                               (unsigned long long)i + 1,
                               (unsigned long long)set->n);
        value += d;
        if (value >= set->n * BIP158_M)
            return bly_damaged("item %llu of %llu is larger than any can be",
                               (unsigned long long)i + 1,
                               (unsigned long long)set->n);
        set->values[i] = value;
    }
    while (b->at % 8) {
        bip158_bit(b, &d);
        if (d)
            return bly_damaged("bits after the last item are not zero");
    }
    if (b->at != b->n)
        return bly_damaged("%llu bytes follow the last item",
                           (unsigned long long)(b->n - b->at) / 8);
    return BLY_OK;
}

/* The key of a block's hash as people see it. */
static bly_status bip158_key(const bly_foreign *f, struct bip158_set *set)
{
    const char *const text = f->more->option[BIP158_BLOCK];
    unsigned char hash[32];
    if (!text)
        return BLY_OK;
    const bly_bytes given = { text, strlen(text) };
    bly_scratch s = { .mem = f->mem };
    bly_foreign_key bytes;
    bly_status st = bly_key_encode(BLY_KEY_HEX, given, &s, &bytes);
    if (st == BLY_EINVAL || (!st && bytes.len != sizeof hash))
        st = bly_fail(BLY_EINVAL, "option block: the hash of a block is 64 "
                                  "hexadecimal digits");
    for (size_t i = 0; i < sizeof hash && !st; i++)
        hash[i] = bytes.bytes[sizeof hash - 1 - i];
    bly_mem_release(s.mem, s.at, s.room);
    if (st)
        return st;
    set->key[0] = bly_load64(hash);
    set->key[1] = bly_load64(hash + 8);
    set->keyed = true;
    return BLY_OK;
}

static bly_status bip158_open(bly_foreign *f)
{
    uint64_t n = 0;
    const size_t begin = bly_compact_size(f->more->bytes, f->more->nbytes, &n);
    if (begin == 0)
        return bly_damaged("it does not begin with a number of items");
    const uint64_t nbits = (uint64_t)(f->more->nbytes - begin) * 8;
    if (n > UINT32_MAX || n > nbits / BIP158_LEAST_BITS)
        return bly_damaged("%llu items do not fit into the %zu bytes that "
                           "follow",
                           (unsigned long long)n, f->more->nbytes - begin);
    if (n > SIZE_MAX / sizeof(uint64_t) - sizeof(struct bip158_set))
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_status st = bly_foreign_own(f, sizeof(struct bip158_set) +
                                           (size_t)n * sizeof(uint64_t));
    if (st)
        return st;
    struct bip158_set *const set = f->own;
    struct bip158_bits bits = { f->more->bytes + begin, 0, nbits };
    set->n = n;
    f->more->one.nbits = nbits;
    f->more->one.items = n;
    f->more->one.fpr_planned = n ? 1.0 / BIP158_M : 0;
    st = bip158_unpack(&bits, set);
    return st ? st : bip158_key(f, set);
}

/* ----------------------------------------------------------------- asking */

static void bip158_describe(const bly_foreign *f, bly_facts *out)
{
    const struct bip158_set *const set = f->own;
    bly_fact_uint(out, "rice_bits", BIP158_P);
    bly_fact_uint(out, "range_of_an_item", BIP158_M);
    bly_fact_word(out, "block",
                  set->keyed ? f->more->option[BIP158_BLOCK] : "none");
    bly_fact_word(out, "keys", f->more->option[BIP158_KEYS]);
}

static bly_status bip158_encode(const bly_foreign *f, bly_bytes text,
                                bly_scratch *s, bly_foreign_key *out)
{
    const struct bip158_set *const set = f->own;
    if (!set->keyed)
        return bly_fail(BLY_EINVAL, "scripts are hashed with the hash of the "
                                    "block: give it as the option block");
    return bly_key_encode(f->form, text, s, out);
}

static void bip158_hash(const bly_foreign *f, bly_foreign_key *key)
{
    const struct bip158_set *const set = f->own;
    key->h[0] = bly_scale(bly_siphash24(set->key, key->bytes, key->len),
                          set->n * BIP158_M);
}

static bool bip158_test(const bly_foreign *f, size_t part,
                        const bly_foreign_key *key)
{
    const struct bip158_set *const set = f->own;
    uint64_t low = 0, high = set->n;
    (void)part;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (set->values[middle] < key->h[0])
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->n && set->values[low] == key->h[0];
}

const bly_format bly_format_bip158 = {
    .name = "bip158",
    .systems = "Bitcoin, basic block filters (BIP 158)",
    .summary = "the scripts that a block touches, as a Golomb-coded set",
    .options = bip158_options,
    .noptions = BIP158_NOPTIONS,
    .open = bip158_open,
    .describe = bip158_describe,
    .encode = bip158_encode,
    .hash = bip158_hash,
    .test = bip158_test,
};
