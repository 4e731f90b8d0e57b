/*
 * bits_and_blooms.c - filters of bits-and-blooms/bloom (Go), once willf/bloom
 *
 *     offset  size                WriteTo, GobEncode
 *     0       8     m
 *     8       8     k
 *     16      8     the length of the bit set: m
 *     24      8w    w = ceil(m / 64) words
 *
 * All of them big-endian. MarshalJSON gives the same in other clothes,
 *
 *     {"m":9586,"k":7,"b":"AAAAAAAAJXKodN16wG5jJLJN..."}
 *
 * where b is the bit set, its length in front, in the base64 that is safe in
 * URLs (RFC 4648, 5). A filter made of a bit set that was there already may say
 * a length that is m rounded up to words.
 *
 * A key has four hashes, those of MurmurHash3 for the key and for the key with
 * a byte 1 behind it, and probe i mixes two of them:
 *
 *     bit i = (h[i mod 2] + i h[2 + ((i + i mod 2) mod 4) / 2]) mod m
 *
 * 1000 keys at 1% take m = 9586 and k = 7.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define BAB_HEADER 24

enum { BAB_KEYS, BAB_FORM, BAB_NOPTIONS };

static const char *const bab_key_forms[] = { "bytes", "int32be", "int64be",
                                             "int32", "int64",   "hex",
                                             NULL };
static const char *const bab_forms[] = { "binary", "json", NULL };
static const bly_param bab_options[] = {
    [BAB_KEYS] = BLY_OPTION_CHOICE("keys", 0, bab_key_forms,
                                   "what the text of a key means"),
    [BAB_FORM] = BLY_OPTION_CHOICE(
        "form", 0, bab_forms,
        "for a new one: as WriteTo or as MarshalJSON writes it"),
};

/* ----------------------------------------------------------------- base64 */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Bytes on their way out, three at a time. */
struct base64 {
    bly_put *put;
    void *ctx;
    unsigned char in[3];
    unsigned nin;
    char out[4096];
    size_t nout;
    bool failed;
};

static void base64_flush(struct base64 *b)
{
    b->failed = b->failed || !b->put(b->ctx, b->out, b->nout);
    b->nout = 0;
}

/* The digits of b->in, of which nin bytes count; the rest is filled up. */
static void base64_group(struct base64 *b)
{
    const uint32_t x =
        (uint32_t)b->in[0] << 16 | (uint32_t)b->in[1] << 8 | b->in[2];
    for (unsigned i = 0; i < 4; i++)
        b->out[b->nout++] =
            i <= b->nin ? base64_digits[x >> (18 - 6 * i) & 63] : '=';
    memset(b->in, 0, sizeof b->in);
    b->nin = 0;
    if (b->nout == sizeof b->out)
        base64_flush(b);
}

static void base64_add(struct base64 *b, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n && !b->failed; i++) {
        b->in[b->nin++] = bytes[i];
        if (b->nin == 3)
            base64_group(b);
    }
}

static bool base64_end(struct base64 *b)
{
    if (b->nin)
        base64_group(b);
    base64_flush(b);
    return !b->failed;
}

/* How many bytes n digits are; SIZE_MAX where they cannot be any. */
static size_t base64_bytes(const unsigned char *text, size_t n)
{
    if (n == 0 || n % 4)
        return SIZE_MAX;
    return n / 4 * 3 - (text[n - 1] == '=') -
           (text[n - 1] == '=' && text[n - 2] == '=');
}

/* out has nbytes of room, as base64_bytes() says. */
static bool base64_read(const unsigned char *text, unsigned char *out,
                        size_t nbytes)
{
    unsigned char value[256];
    memset(value, 255, sizeof value);
    for (unsigned i = 0; i < 64; i++)
        value[(unsigned char)base64_digits[i]] = (unsigned char)i;
    for (size_t i = 0; i < nbytes; i += 3, text += 4) {
        const size_t some = nbytes - i < 3 ? nbytes - i : 3;
        uint32_t x = 0;
        for (unsigned j = 0; j < 4; j++) {
            const unsigned char digit = j <= some ? value[text[j]] : 0;
            if (digit == 255)
                return false;
            x |= (uint32_t)digit << (18 - 6 * j);
        }
        for (unsigned j = 0; j < some; j++)
            out[i + j] = (unsigned char)(x >> (16 - 8 * j));
    }
    return true;
}

/* ------------------------------------------------------------------- JSON */

/* Text that is read; what it holds as far as it was seen. */
struct bab_text {
    const unsigned char *at, *end;
    uint64_t number[2]; /* m, k */
    const unsigned char *b;
    size_t nb;
    bool seen[3]; /* m, k, b */
};

static void bab_blanks(struct bab_text *t)
{
    while (t->at < t->end && memchr(" \t\r\n", *t->at, 4))
        t->at++;
}

/* Step over a character, and the blanks around it. */
static bool bab_take(struct bab_text *t, char c)
{
    bab_blanks(t);
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    bab_blanks(t);
    return true;
}

static bool bab_number(struct bab_text *t, uint64_t *out)
{
    const unsigned char *const from = t->at;
    uint64_t x = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        if (x > (UINT64_MAX - 9) / 10)
            return false;
        x = x * 10 + (uint64_t)(*t->at - '0');
    }
    *out = x;
    return t->at > from && (*from != '0' || t->at == from + 1);
}

/* A name in quotes and the colon: 0 to 2 for m, k, b; -1. */
static int bab_name(struct bab_text *t)
{
    bab_blanks(t);
    if (t->end - t->at < 3 || t->at[0] != '"' || t->at[2] != '"')
        return -1;
    const char *const names = "mkb", letter = (char)t->at[1];
    const char *const found = letter ? strchr(names, letter) : NULL;
    t->at += 3;
    return found && bab_take(t, ':') ? (int)(found - names) : -1;
}

/* One member; NULL, or what is wrong. */
static const char *bab_member(struct bab_text *t)
{
    const int which = bab_name(t);
    if (which < 0)
        return "a bits-and-blooms filter in JSON has only the members m, k and "
               "b";
    if (t->seen[which])
        return "a member of the JSON occurs twice";
    t->seen[which] = true;
    if (which < 2)
        return bab_number(t, &t->number[which])
                   ? NULL
                   : "m and k of the JSON must be whole numbers";
    if (t->at == t->end || *t->at != '"')
        return "b of the JSON must be a string";
    t->b = t->at + 1;
    const unsigned char *const end = memchr(t->b, '"', (size_t)(t->end - t->b));
    if (!end)
        return "cut short within b of the JSON";
    t->nb = (size_t)(end - t->b);
    t->at = end + 1;
    return NULL;
}

/* All of it; NULL, or what is wrong. */
static const char *bab_json(struct bab_text *t)
{
    if (!bab_take(t, '{'))
        return "not the JSON of a bits-and-blooms filter";
    do {
        const char *const wrong = bab_member(t);
        if (wrong)
            return wrong;
    } while (bab_take(t, ','));
    if (!bab_take(t, '}') || t->at != t->end)
        return "the JSON does not end where it should, or bytes follow it";
    return t->seen[0] && t->seen[1] && t->seen[2]
               ? NULL
               : "one of m, k and b is missing from the JSON";
}

/* ---------------------------------------------------------------- reading */

static bool bab_is_json(const unsigned char *bytes, size_t n)
{
    struct bab_text t = { .at = bytes, .end = bytes + n };
    return bab_take(&t, '{') && bab_name(&t) >= 0;
}

/* Is a bit set of this length in nbytes the one of m bits? */
static bool bab_fits(uint64_t m, uint64_t length, uint64_t nbytes)
{
    const bly_foreign_part p = { .nbits = m };
    return m > 0 && length >= m && length - m < 64 &&
           (length == m || length % 64 == 0) && bly_part_bytes(&p) == nbytes;
}

static bool bab_recognise(const unsigned char *bytes, size_t n)
{
    if (bab_is_json(bytes, n))
        return true;
    const uint64_t k = n > BAB_HEADER ? bly_load_be64(bytes + 8) : 0;
    return k > 0 && k <= BLY_FOREIGN_MAX_K &&
           bab_fits(bly_load_be64(bytes), bly_load_be64(bytes + 16),
                    n - BAB_HEADER);
}

/* set: the bit set with its length in front. */
static bly_status bab_take_set(bly_foreign *f, uint64_t m, uint64_t k,
                               const unsigned char *set, size_t nset)
{
    if (k == 0 || k > BLY_FOREIGN_MAX_K)
        return bly_damaged("%llu hash functions; 1 to 255 are right",
                           (unsigned long long)k);
    if (nset < 8 || !bab_fits(m, bly_load_be64(set), nset - 8))
        return bly_damaged("it says %llu bits, but %zu bytes of bits are there",
                           (unsigned long long)m, nset < 8 ? 0 : nset - 8);
    f->more->one.bytes = set + 8;
    f->more->one.nbits = m;
    f->more->one.k = (uint32_t)k;
    f->more->one.order = BLY_BE_WORDS;
    return BLY_OK;
}

static bly_status bab_open_json(bly_foreign *f)
{
    struct bab_text t = { .at = f->more->bytes,
                          .end = f->more->bytes + f->more->nbytes };
    const char *const wrong = bab_json(&t);
    if (wrong)
        return bly_damaged("%s", wrong);
    const size_t nbytes = base64_bytes(t.b, t.nb);
    if (nbytes == SIZE_MAX)
        return bly_damaged(
            "b of the JSON does not consist of groups of four digits");
    f->own = bly_mem_zalloc(f->mem, nbytes);
    if (!f->own)
        return bly_fail(BLY_ENOMEM, "out of memory");
    f->more->own_bytes = nbytes;
    if (!base64_read(t.b, f->own, nbytes))
        return bly_damaged("b of the JSON is not URL-safe base64");
    return bab_take_set(f, t.number[0], t.number[1], f->own, nbytes);
}

static bly_status bab_open(bly_foreign *f)
{
    if (bab_is_json(f->more->bytes, f->more->nbytes))
        return bab_open_json(f);
    if (f->more->nbytes <= BAB_HEADER)
        return bly_damaged("shorter than the header of a bits-and-blooms "
                           "filter");
    return bab_take_set(f, bly_load_be64(f->more->bytes),
                        bly_load_be64(f->more->bytes + 8), f->more->bytes + 16,
                        f->more->nbytes - 16);
}

/* Of an opened one, or to be written. */
static bool bab_form_is_json(const bly_foreign *f)
{
    return f->more->bytes ? f->own != NULL
                          : strcmp(f->more->option[BAB_FORM], "json") == 0;
}

static void bab_describe(const bly_foreign *f, bly_facts *out)
{
    bly_fact_word(out, "form", bab_form_is_json(f) ? "json" : "binary");
}

/* ----------------------------------------------------------------- asking */

static void bab_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    bly_murmur3_256(key->bytes, key->len, key->h);
}

static void bab_positions(const bly_foreign *f, const bly_foreign_part *p,
                          const bly_foreign_key *key, uint64_t *out)
{
    (void)f;
    for (uint32_t i = 0; i < p->k; i++)
        out[i] =
            (key->h[i % 2] + i * key->h[2 + (i + i % 2) % 4 / 2]) % p->nbits;
}

/* ----------------------------------------------------------------- making */

static bly_status bab_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const double m = ceil(bly_bloom_bits((double)items, fpr));
    const double k = ceil(log(2) * m / (double)items);
    if (m > BLY_FOREIGN_MAX_BITS || k > BLY_FOREIGN_MAX_K)
        return bly_fail(BLY_ERANGE, "a bits-and-blooms filter has at most 2^50 "
                                    "bits and 255 hash functions here");
    f->more->one.nbits = (uint64_t)fmax(1, m);
    f->more->one.k = (uint32_t)fmax(1, k);
    f->more->one.order = BLY_BE_WORDS;
    return BLY_OK;
}

static bool bab_adopt(bly_foreign *f, const bly_foreign *from)
{
    if (from->row != f->row)
        return false;
    f->more->one.nbits = from->more->one.nbits;
    f->more->one.k = from->more->one.k;
    f->more->one.order = BLY_BE_WORDS;
    return true;
}

static bool bab_write_json(const bly_foreign *f, const unsigned char *length,
                           bly_put *put, void *ctx)
{
    struct base64 b = { .put = put, .ctx = ctx };
    char head[80];
    const int n =
        snprintf(head, sizeof head, "{\"m\":%llu,\"k\":%u,\"b\":\"",
                 (unsigned long long)f->more->one.nbits, f->more->one.k);
    if (!put(ctx, head, (size_t)n))
        return false;
    base64_add(&b, length, 8);
    base64_add(&b, f->more->one.bytes, (size_t)bly_part_bytes(&f->more->one));
    return base64_end(&b) && put(ctx, "\"}", 2);
}

static bly_status bab_write(const bly_foreign *f, bly_put *put, void *ctx)
{
    unsigned char head[BAB_HEADER];
    bly_store_be64(head, f->more->one.nbits);
    bly_store_be64(head + 8, f->more->one.k);
    bly_store_be64(head + 16, f->more->one.nbits);
    const bool ok = bab_form_is_json(f)
                        ? bab_write_json(f, head + 16, put, ctx)
                        : put(ctx, head, sizeof head) &&
                              put(ctx, f->more->one.bytes,
                                  (size_t)bly_part_bytes(&f->more->one));
    return ok ? BLY_OK : BLY_EIO;
}

const bly_format bly_format_bits_and_blooms = {
    .name = "bits-and-blooms",
    .systems = "bits-and-blooms/bloom, once willf/bloom (Go)",
    .summary = "the filter that Go programs write, binary or JSON",
    .options = bab_options,
    .noptions = BAB_NOPTIONS,
    .recognise = bab_recognise,
    .open = bab_open,
    .describe = bab_describe,
    .hash = bab_hash,
    .positions = bab_positions,
    .plan = bab_plan,
    .nhash = 4,
    .write = bab_write,
    .adopt = bab_adopt,
};
