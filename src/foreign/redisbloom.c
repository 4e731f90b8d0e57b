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
 * New ones are a chain of one, as BF.RESERVE makes it, and grow as BF.ADD lets
 * them (bloom_chain.c). In an RDB file the same numbers stand in another order
 * (redisbloom_store), older versions without some.
 */
#include <string.h>

#include "foreign/bloom_chain.h"
#include "foreign/hashes.h"

#define REDISBLOOM_HEADER 20
#define REDISBLOOM_LINK 53
#define REDISBLOOM_EXACT 1u
#define REDISBLOOM_HASH64 4u
#define REDISBLOOM_FIXED 8u /* does not scale */
#define REDISBLOOM_OPTIONS ((unsigned)BLY_CHAIN_OPTION_BITS)
#define REDISBLOOM_GROWTH 2 /* its default; fixed ones have it, too */
#define REDISBLOOM_VERSION 4

static const bly_param redisbloom_options[] = { BLY_CHAIN_OPTIONS };

/* ----------------------------------------------------------------- the head */

typedef struct redisbloom_head {
    uint64_t items;
    size_t nlinks;
    uint32_t options, growth;
} redisbloom_head;

/* What is wrong with a head, as RedisBloom itself would see when it loads;
 * NULL: nothing, and then *out is what it says. */
static const char *redisbloom_head_wrong(const unsigned char *bytes, size_t n,
                                         redisbloom_head *out)
{
    if (n < REDISBLOOM_HEADER + REDISBLOOM_LINK)
        return "shorter than the header of a RedisBloom dump";
    *out = (redisbloom_head){ .items = bly_load64(bytes),
                              .nlinks = bly_load32(bytes + 8),
                              .options = bly_load32(bytes + 12),
                              .growth = bly_load32(bytes + 16) };
    if (out->nlinks == 0 ||
        out->nlinks > (n - REDISBLOOM_HEADER) / REDISBLOOM_LINK)
        return "a RedisBloom dump of no filters, or cut short";
    if (out->options > REDISBLOOM_OPTIONS)
        return "a RedisBloom dump with unknown options";
    return NULL;
}

/* The same of all that the head says of the chain; links, if not NULL, are what
 * it is made of, and *nbytes the length of their bits. */
static const char *redisbloom_links_wrong(const unsigned char *bytes,
                                          const redisbloom_head *h,
                                          bly_chain_link *links,
                                          uint64_t *nbytes)
{
    const unsigned char *l = bytes + REDISBLOOM_HEADER;
    uint64_t items = h->items;
    *nbytes = 0;
    for (size_t i = 0; i < h->nlinks; i++, l += REDISBLOOM_LINK) {
        const uint64_t in_link = bly_load64(l);
        const bly_chain_sizes sizes = { .bits = bly_load64(l + 8),
                                        .items = bly_load64(l + 16),
                                        .error =
                                            bly_bits_real(bly_load64(l + 24)),
                                        .bits_per_entry =
                                            bly_bits_real(bly_load64(l + 32)),
                                        .hashes = bly_load32(l + 40),
                                        .capacity = bly_load64(l + 44),
                                        .n2 = l[52] };
        bly_chain_link link;
        if (in_link > UINT64_MAX / 8 || sizes.bits != in_link * 8)
            return "a RedisBloom dump whose bits and bytes do not agree";
        if (!bly_chain_link_take(false, &sizes, in_link, &link))
            return "a RedisBloom dump with a filter that cannot be: of no "
                   "bits, of fewer than its power of two, of a rate that is "
                   "not between 0 and 1, or with hash functions that do not "
                   "match its bits per entry";
        if (link.items > items)
            return "a RedisBloom dump whose items do not add up";
        items -= link.items;
        *nbytes += in_link;
        if (links)
            links[i] = link;
    }
    return items ? "a RedisBloom dump whose items do not add up" : NULL;
}

/* The chain that a head tells of, with no arrays yet; *nbytes is their length.
 */
static bly_status redisbloom_read(bly_foreign *f, const unsigned char *bytes,
                                  size_t n, redisbloom_head *h,
                                  uint64_t *nbytes)
{
    const char *wrong = redisbloom_head_wrong(bytes, n, h);
    if (wrong)
        return bly_damaged("%s", wrong);
    const bly_status st = bly_chain_new(f, false, h->nlinks);
    if (st)
        return st;
    wrong = redisbloom_links_wrong(bytes, h, f->own, nbytes);
    f->flags = (unsigned char)h->options;
    f->growth = h->options & REDISBLOOM_FIXED ? 0 : h->growth;
    f->nadded = h->items;
    return wrong ? bly_damaged("%s", wrong) : BLY_OK;
}

static bool redisbloom_recognise(const unsigned char *bytes, size_t n)
{
    redisbloom_head h;
    uint64_t nbytes;
    return !redisbloom_head_wrong(bytes, n, &h) &&
           !redisbloom_links_wrong(bytes, &h, NULL, &nbytes) &&
           nbytes == n - REDISBLOOM_HEADER - REDISBLOOM_LINK * h.nlinks;
}

static bly_status redisbloom_open(bly_foreign *f)
{
    redisbloom_head h;
    uint64_t nbytes;
    const bly_status st =
        redisbloom_read(f, f->more->bytes, f->more->nbytes, &h, &nbytes);
    if (st)
        return st;
    const size_t begin = REDISBLOOM_HEADER + REDISBLOOM_LINK * h.nlinks;
    if (nbytes != f->more->nbytes - begin)
        return bly_damaged("a RedisBloom dump %s",
                           nbytes > f->more->nbytes - begin
                               ? "that is cut short"
                               : "with bytes after its end");
    /* Read alone: it was opened. */
    unsigned char *at = (unsigned char *)(uintptr_t)f->more->bytes + begin;
    bly_chain_link *const links = bly_chain_links(f);
    for (size_t i = 0; i < f->nparts; at += bly_chain_nbytes(&links[i++]))
        links[i].data = at;
    return BLY_OK;
}

static bly_status redisbloom_start(bly_foreign *f, const unsigned char *head,
                                   size_t n)
{
    redisbloom_head h;
    uint64_t nbytes;
    bly_status st = redisbloom_read(f, head, n, &h, &nbytes);
    if (!st && n != REDISBLOOM_HEADER + REDISBLOOM_LINK * h.nlinks)
        st = bly_damaged("the header of a RedisBloom dump of another length");
    for (size_t i = 0; !st && i < f->nparts; i++) {
        bly_chain_link *const l = &bly_chain_links(f)[i];
        l->data = bly_mem_zalloc(f->mem, (size_t)bly_chain_nbytes(l));
        if (!l->data)
            st = bly_fail(BLY_ENOMEM, "out of memory");
    }
    return st;
}

/* What is written of it. */
static uint32_t redisbloom_growth(const bly_foreign *f)
{
    return f->growth ? f->growth : REDISBLOOM_GROWTH;
}

static size_t redisbloom_write_head(const bly_foreign *f, unsigned char *to)
{
    const size_t n = REDISBLOOM_HEADER + REDISBLOOM_LINK * f->nparts;
    if (!to)
        return n;
    bly_store64(to, f->nadded);
    bly_store32(to + 8, f->nparts);
    bly_store32(to + 12, f->flags & REDISBLOOM_OPTIONS);
    bly_store32(to + 16, redisbloom_growth(f));
    to += REDISBLOOM_HEADER;
    for (size_t i = 0; i < f->nparts; i++, to += REDISBLOOM_LINK) {
        const bly_chain_link *const l = &bly_chain_links(f)[i];
        bly_store64(to, bly_chain_nbytes(l));
        bly_store64(to + 8, l->bits);
        bly_store64(to + 16, l->items);
        bly_store64(to + 24, bly_real_bits(l->error));
        bly_store64(to + 32, bly_real_bits(bly_chain_bits_per_entry(l)));
        bly_store32(to + 40, l->hashes);
        bly_store64(to + 44, l->capacity);
        to[52] = l->n2;
    }
    return n;
}

/* ------------------------------------------------------------------ records */

static bly_status redisbloom_store(const bly_foreign *f,
                                   const bly_foreign_record *to)
{
    to->put_uint(to->ctx, f->nadded);
    to->put_uint(to->ctx, f->nparts);
    to->put_uint(to->ctx, f->flags & REDISBLOOM_OPTIONS);
    to->put_uint(to->ctx, redisbloom_growth(f));
    for (size_t i = 0; i < f->nparts; i++) {
        const bly_chain_link *const l = &bly_chain_links(f)[i];
        to->put_uint(to->ctx, l->capacity);
        to->put_real(to->ctx, l->error);
        to->put_uint(to->ctx, l->hashes);
        to->put_real(to->ctx, bly_chain_bits_per_entry(l));
        to->put_uint(to->ctx, l->bits);
        to->put_uint(to->ctx, l->n2);
        to->put_bytes(to->ctx, l->data, (size_t)bly_chain_nbytes(l));
        to->put_uint(to->ctx, l->items);
    }
    return BLY_OK;
}

/* One link; its array is the string of the record. */
static bool redisbloom_restore_link(const bly_foreign *f,
                                    const bly_foreign_record *from,
                                    unsigned version, bly_chain_link *l)
{
    size_t n = 0;
    bly_chain_sizes s = { .capacity = from->get_uint(from->ctx) };
    s.error = from->get_real(from->ctx);
    s.hashes = from->get_uint(from->ctx);
    s.bits_per_entry = from->get_real(from->ctx);
    if (from->failed(from->ctx))
        return false;
    if (version >= 1) {
        s.bits = from->get_uint(from->ctx);
        s.n2 = from->get_uint(from->ctx);
    } else {
        const double bits = (double)s.capacity * s.bits_per_entry;
        s.bits = bits >= 1 && bits < 0x1p45 ? (uint64_t)bits : 0;
    }
    if (from->failed(from->ctx))
        return false;
    unsigned char *const data = from->get_bytes(from->ctx, &n);
    bool ok = !from->failed(from->ctx) && data;
    if (ok) {
        s.items = from->get_uint(from->ctx);
        ok = !from->failed(from->ctx) && bly_chain_link_take(false, &s, n, l);
    }
    if (ok)
        l->data = data;
    else
        bly_mem_release(f->mem, data, n);
    return ok;
}

static bly_status redisbloom_restore(bly_foreign *f, unsigned version,
                                     const bly_foreign_record *from)
{
    if (version > REDISBLOOM_VERSION)
        return bly_damaged("a RedisBloom record of version %u", version);
    f->nadded = from->get_uint(from->ctx);
    const uint64_t nlinks = from->get_uint(from->ctx);
    const uint64_t options = version >= 2 ? from->get_uint(from->ctx) : 0;
    const uint64_t growth =
        version >= 4 ? from->get_uint(from->ctx) : REDISBLOOM_GROWTH;
    if (from->failed(from->ctx) || !nlinks || options > REDISBLOOM_OPTIONS ||
        growth > UINT32_MAX)
        return bly_damaged("a RedisBloom record with numbers that cannot be");
    const bly_status st = bly_chain_new(f, false, nlinks);
    if (st)
        return st;
    f->flags = (unsigned char)options;
    f->growth = options & REDISBLOOM_FIXED ? 0 : (uint32_t)growth;
    uint64_t items = f->nadded;
    for (size_t i = 0; i < f->nparts; i++) {
        bly_chain_link *const l = &bly_chain_links(f)[i];
        if (!redisbloom_restore_link(f, from, version, l))
            return bly_damaged("a RedisBloom record with a filter that cannot "
                               "be");
        if (l->items > items)
            return bly_damaged("a RedisBloom record whose items do not add up");
        items -= l->items;
    }
    return items ? bly_damaged("a RedisBloom record whose items do not add up")
                 : BLY_OK;
}

/* ----------------------------------------------------------- asking, making */

static void redisbloom_describe(const bly_foreign *f, bly_facts *out)
{
    if (!f->own)
        return;
    bly_fact_word(out, "scaling", f->flags & REDISBLOOM_FIXED ? "no" : "yes");
    bly_fact_word(out, "hash",
                  f->flags & REDISBLOOM_HASH64 ? "MurmurHash64A"
                                               : "MurmurHash2");
    bly_fact_uint(out, "growth", redisbloom_growth(f));
    bly_fact_real(out, "fpr_of_chain", bly_chain_rate(f));
}

static void redisbloom_hash64(const void *bytes, size_t len, uint64_t h[2])
{
    h[0] = bly_murmur64a(bytes, len, UINT64_C(0xc6a4a7935bd1e995));
    h[1] = bly_murmur64a(bytes, len, h[0]);
}

static void redisbloom_hash(const bly_foreign *f, bly_foreign_key *key)
{
    /* The size of a new one may not be known yet. */
    if (!f->own || f->flags & REDISBLOOM_HASH64) {
        redisbloom_hash64(key->bytes, key->len, key->h);
    } else {
        const uint32_t a = bly_murmur2(key->bytes, key->len, 0x9747b28c);
        key->h[0] = a;
        key->h[1] = bly_murmur2(key->bytes, key->len, a);
    }
}

/* The newest link is what most keys are looked for in. */
static void redisbloom_note(const bly_foreign *f, bly_foreign_note *out)
{
    if (!f->own || !f->nparts || !(f->flags & REDISBLOOM_HASH64))
        return;
    const bly_chain_link *const l = &bly_chain_links(f)[f->nparts - 1];
    const bly_modulus range = bly_chain_range(l);
    out->array = l->data;
    out->range = range.n;
    out->inverse = range.inverse;
    out->nplaces = l->bits > 8 * BLY_CHAIN_NEAR ? (uint32_t)l->hashes : 0;
}

static void redisbloom_expect(const bly_foreign_note *note, bly_bytes key)
{
    const bly_modulus range = { note->range, note->inverse };
    uint64_t h[2];
    redisbloom_hash64(key.ptr, key.len, h);
    for (uint32_t i = 0; i < note->nplaces; i++)
        __builtin_prefetch(note->array + bly_mod(h[0] + i * h[1], range) / 8);
}

/* An empty chain by the options. */
static bly_status redisbloom_blank(bly_foreign *f)
{
    bly_status st = bly_chain_new(f, false, 0);
    if (!st)
        st = bly_chain_options(f);
    if (st)
        return st;
    f->flags = (unsigned char)(REDISBLOOM_EXACT | REDISBLOOM_HASH64 |
                               (f->growth ? 0 : REDISBLOOM_FIXED));
    return BLY_OK;
}

static bly_status redisbloom_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const bly_status st = redisbloom_blank(f);
    return st ? st : bly_chain_begin(f, items, fpr);
}

static bly_status redisbloom_scales(bly_foreign *f, uint64_t to,
                                    uint64_t *holds)
{
    const bly_status st = redisbloom_blank(f);
    return st ? st : bly_chain_scales(f, to, holds);
}

const bly_format bly_format_redisbloom = {
    .name = "redisbloom",
    .systems = "RedisBloom BF.SCANDUMP, BF.LOADCHUNK (Redis)",
    .summary = "header and chunks of a filter in Redis, one after another",
    .options = redisbloom_options,
    .noptions = BLY_CHAIN_NOPTIONS,
    .recognise = redisbloom_recognise,
    .open = redisbloom_open,
    .close = bly_chain_close,
    .part = bly_chain_part,
    .part_name = bly_chain_name,
    .describe = redisbloom_describe,
    .hash = redisbloom_hash,
    .note = redisbloom_note,
    .expect = redisbloom_expect,
    .test = bly_chain_test,
    .plan = redisbloom_plan,
    .nhash = 2,
    .add = bly_chain_add,
    .ask = bly_chain_ask,
    .scales = redisbloom_scales,
    .copy = bly_chain_copy,
    .counted = bly_chain_counted,
    .array = bly_chain_array,
    .move = bly_chain_move,
    .head = redisbloom_write_head,
    .start = redisbloom_start,
    .store = redisbloom_store,
    .restore = redisbloom_restore,
};
