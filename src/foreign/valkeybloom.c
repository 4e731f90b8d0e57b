/*
 * valkeybloom.c - a Bloom filter of valkey-bloom, as BF.LOAD takes it
 *
 * A file is the argument of BF.LOAD, which an AOF of Valkey holds:
 *
 *     offset  size                         each of the chain
 *     0       1     1, the version         0       8    45 + bytes
 *     1       4     growth, 0: none        8       1    1
 *     5       8     rate, a double         9       8    bytes
 *     13      8     tightening, a double   17      4    k
 *     21      1     1: a seed of its own   21      32   seed
 *     22      8     filters in the chain   53      ...  the bits
 *     30      ...   each of the chain      then    8    items
 *                                          then    8    capacity
 *
 * All numbers are little-endian, and all seeds are the same. A key is hashed by
 * SipHash-1-3, its length in front, with each half of the seed. The rate of the
 * filter at index i is the first rate times tightening^i, and is not written.
 *
 * In an RDB file the same numbers stand in another order (valkeybloom_store),
 * and of all filters but the last the items are the capacity.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "foreign/bloom_chain.h"

#define VALKEYBLOOM_HEADER 30
#define VALKEYBLOOM_BLOB 45
#define VALKEYBLOOM_VERSION 1
#define VALKEYBLOOM_SEED \
    "590ff522ea7811daa714d8093b3e7bd91d898a733e988887307f97cd28073383"

enum {
    VALKEYBLOOM_TIGHTENING = BLY_CHAIN_NOPTIONS,
    VALKEYBLOOM_SEEDS,
    VALKEYBLOOM_NOPTIONS
};

static const bly_param valkeybloom_options[] = {
    BLY_CHAIN_OPTIONS,
    [VALKEYBLOOM_TIGHTENING] =
        BLY_OPTION_TEXT("tightening", "0.5",
                        "for a new one that scales: the rate of each "
                        "next filter, as a multiple of the last"),
    [VALKEYBLOOM_SEEDS] = BLY_OPTION_TEXT(
        "seed", VALKEYBLOOM_SEED, "for a new one: 64 hexadecimal digits"),
};

/* ---------------------------------------------------------------- reading */

static bool valkeybloom_is_rate(double x)
{
    return x > 0 && x < 1;
}

/* Take the 45 bytes before the bits of link i, and what is known beside them;
 * false where they cannot be. */
static bool valkeybloom_blob(bly_chain_rules *rules, size_t i,
                             const unsigned char *blob, size_t n, double rate,
                             bly_chain_sizes *s, bly_chain_link *l)
{
    if (n <= VALKEYBLOOM_BLOB || blob[0] != 1)
        return false;
    for (unsigned j = 0; j < 4; j++) {
        const uint64_t word = bly_load64(blob + 13 + 8 * j);
        if (i && rules->seed[j] != word)
            return false;
        rules->seed[j] = word;
    }
    s->error = rate * pow(rules->tightening, (double)i);
    const uint64_t nbytes = n - VALKEYBLOOM_BLOB;
    s->bits = 8 * nbytes;
    s->hashes = bly_load32(blob + 9);
    return bly_load64(blob + 1) == nbytes && s->items <= s->capacity &&
           bly_chain_link_take(true, s, nbytes, l);
}

/* What a file says before its links. */
typedef struct valkeybloom_head {
    uint64_t nlinks, items;
    uint32_t growth;
    bool random_seed;
    bly_chain_rules rules;
} valkeybloom_head;

/* Read a file; links NULL: only look, and find how many there are. */
static const char *valkeybloom_wrong(const unsigned char *bytes, size_t n,
                                     valkeybloom_head *h, bly_chain_link *links)
{
    if (n < VALKEYBLOOM_HEADER || bytes[0] != 1)
        return "not the argument of BF.LOAD of valkey-bloom, version 1";
    const double rate = bly_bits_real(bly_load64(bytes + 5));
    h->growth = bly_load32(bytes + 1);
    h->rules.tightening = bly_bits_real(bly_load64(bytes + 13));
    h->random_seed = bytes[21] != 0;
    if (!links)
        h->nlinks = bly_load64(bytes + 22);
    if (!valkeybloom_is_rate(rate) || !valkeybloom_is_rate(h->rules.tightening))
        return "a valkey-bloom filter with a rate that is not between 0 and 1";
    size_t left = n - VALKEYBLOOM_HEADER;
    if (h->nlinks == 0 || h->nlinks > BLY_CHAIN_MAX_LINKS ||
        h->nlinks > left / (24 + VALKEYBLOOM_BLOB))
        return "a valkey-bloom filter of no filters, or cut short";
    h->items = 0;
    for (size_t i = 0; i < h->nlinks; i++) {
        const unsigned char *const at = bytes + (n - left);
        const uint64_t blob = left >= 24 ? bly_load64(at) : 0;
        if (left < 24 || blob > left - 24)
            return "a valkey-bloom filter that is cut short";
        bly_chain_sizes sizes = { .items = bly_load64(at + 8 + blob),
                                  .capacity = bly_load64(at + 16 + blob) };
        bly_chain_link link;
        if (!valkeybloom_blob(&h->rules, i, at + 8, (size_t)blob, rate, &sizes,
                              &link))
            return "a valkey-bloom filter that cannot be";
        /* Read alone where it is opened. */
        link.data = (unsigned char *)(uintptr_t)at + 8 + VALKEYBLOOM_BLOB;
        if (links)
            links[i] = link;
        h->items += link.items;
        left -= 24 + (size_t)blob;
    }
    return left ? "a valkey-bloom filter with bytes after its end" : NULL;
}

static bool valkeybloom_recognise(const unsigned char *bytes, size_t n)
{
    valkeybloom_head h;
    return !valkeybloom_wrong(bytes, n, &h, NULL);
}

/* f takes what stands before its links. */
static void valkeybloom_take(bly_foreign *f, uint32_t growth, bool random_seed,
                             const bly_chain_rules *rules)
{
    f->growth = growth;
    f->flags = (unsigned char)(BLY_CHAIN_VALKEY |
                               (random_seed ? BLY_CHAIN_RANDOM_SEED : 0));
    *bly_chain_rules_of(f) = *rules;
}

static bly_status valkeybloom_open(bly_foreign *f)
{
    valkeybloom_head h;
    const char *wrong =
        valkeybloom_wrong(f->more->bytes, f->more->nbytes, &h, NULL);
    if (wrong)
        return bly_damaged("%s", wrong);
    const bly_status st = bly_chain_new(f, true, h.nlinks);
    if (st)
        return st;
    wrong = valkeybloom_wrong(f->more->bytes, f->more->nbytes, &h, f->own);
    if (wrong)
        return bly_damaged("%s", wrong);
    valkeybloom_take(f, h.growth, h.random_seed, &h.rules);
    f->nadded = h.items;
    return BLY_OK;
}

/* ---------------------------------------------------------------- writing */

static bool valkeybloom_is_random(const bly_foreign *f)
{
    return f->flags & BLY_CHAIN_RANDOM_SEED;
}

static void valkeybloom_write_blob(const bly_foreign *f,
                                   const bly_chain_link *l, unsigned char *to)
{
    to[0] = 1;
    bly_store64(to + 1, bly_chain_nbytes(l));
    bly_store32(to + 9, l->hashes);
    for (unsigned j = 0; j < 4; j++)
        bly_store64(to + 13 + 8 * j, bly_chain_rules_of(f)->seed[j]);
}

static bly_status valkeybloom_write(const bly_foreign *f, bly_put *put,
                                    void *ctx)
{
    const bly_chain_link *const links = bly_chain_links(f);
    unsigned char head[VALKEYBLOOM_HEADER], before[8 + VALKEYBLOOM_BLOB];
    unsigned char after[16];
    head[0] = 1;
    bly_store32(head + 1, f->growth);
    bly_store64(head + 5, bly_real_bits(links[0].error));
    bly_store64(head + 13, bly_real_bits(bly_chain_rules_of(f)->tightening));
    head[21] = valkeybloom_is_random(f);
    bly_store64(head + 22, f->nparts);
    bool ok = put(ctx, head, sizeof head);
    for (size_t i = 0; i < f->nparts && ok; i++) {
        const bly_chain_link *const l = &links[i];
        bly_store64(before, VALKEYBLOOM_BLOB + bly_chain_nbytes(l));
        valkeybloom_write_blob(f, l, before + 8);
        bly_store64(after, l->items);
        bly_store64(after + 8, l->capacity);
        ok = put(ctx, before, sizeof before) &&
             put(ctx, l->data, (size_t)bly_chain_nbytes(l)) &&
             put(ctx, after, sizeof after);
    }
    return ok ? BLY_OK : BLY_EIO;
}

/* ---------------------------------------------------------------- records */

static bly_status valkeybloom_store(const bly_foreign *f,
                                    const bly_foreign_record *to)
{
    const bly_chain_link *const links = bly_chain_links(f);
    to->put_uint(to->ctx, f->nparts);
    to->put_uint(to->ctx, f->growth);
    to->put_real(to->ctx, links[0].error);
    to->put_real(to->ctx, bly_chain_rules_of(f)->tightening);
    to->put_uint(to->ctx, valkeybloom_is_random(f));
    for (size_t i = 0; i < f->nparts; i++) {
        const bly_chain_link *const l = &links[i];
        const size_t n = VALKEYBLOOM_BLOB + (size_t)bly_chain_nbytes(l);
        /* In front of a large array there is room for the head, and in an
         * opened file it stands there already; a small one is copied. */
        unsigned char room[VALKEYBLOOM_BLOB + BLY_CHAIN_LARGE];
        const bool small = n - VALKEYBLOOM_BLOB < BLY_CHAIN_LARGE;
        unsigned char *const blob = small ? room : l->data - VALKEYBLOOM_BLOB;
        if (small || !bly_foreign_opened(f))
            valkeybloom_write_blob(f, l, blob);
        if (small)
            memcpy(blob + VALKEYBLOOM_BLOB, l->data, n - VALKEYBLOOM_BLOB);
        to->put_bytes(to->ctx, blob, n);
        to->put_uint(to->ctx, l->capacity);
        if (i + 1 == f->nparts)
            to->put_uint(to->ctx, l->items);
    }
    return BLY_OK;
}

static bool valkeybloom_restore_link(bly_foreign *f,
                                     const bly_foreign_record *from,
                                     double rate, size_t i)
{
    bly_chain_sizes s = { 0 };
    bly_chain_link l = { 0 };
    size_t n = 0;
    unsigned char *const blob = from->get_bytes(from->ctx, &n);
    bool ok = !from->failed(from->ctx) && blob;
    if (ok) {
        s.capacity = s.items = from->get_uint(from->ctx);
        if (i + 1 == f->nparts && !from->failed(from->ctx))
            s.items = from->get_uint(from->ctx);
        ok = !from->failed(from->ctx) &&
             valkeybloom_blob(bly_chain_rules_of(f), i, blob, n, rate, &s, &l);
    }
    if (ok)
        l.data = bly_chain_array_new(f, (size_t)bly_chain_nbytes(&l));
    if (l.data) {
        memcpy(l.data, blob + VALKEYBLOOM_BLOB, (size_t)bly_chain_nbytes(&l));
        bly_chain_links(f)[i] = l;
        f->nadded += l.items;
    }
    bly_mem_release(f->mem, blob, n);
    return l.data;
}

static bly_status valkeybloom_restore(bly_foreign *f, unsigned version,
                                      const bly_foreign_record *from)
{
    if (version > VALKEYBLOOM_VERSION)
        return bly_damaged("a valkey-bloom record of version %u", version);
    const uint64_t nlinks = from->get_uint(from->ctx);
    const uint64_t growth = from->get_uint(from->ctx);
    const double rate = from->get_real(from->ctx);
    const double tightening = from->get_real(from->ctx);
    const uint64_t random_seed = from->get_uint(from->ctx);
    if (from->failed(from->ctx) || !nlinks || growth > UINT32_MAX ||
        !valkeybloom_is_rate(rate) || !valkeybloom_is_rate(tightening))
        return bly_damaged("a valkey-bloom record with numbers that cannot be");
    const bly_status st = bly_chain_new(f, true, nlinks);
    if (st)
        return st;
    const bly_chain_rules rules = { .tightening = tightening };
    valkeybloom_take(f, (uint32_t)growth, random_seed != 0, &rules);
    for (size_t i = 0; i < f->nparts; i++)
        if (!valkeybloom_restore_link(f, from, rate, i))
            return bly_damaged("a valkey-bloom record with a filter that "
                               "cannot be, or no memory for it");
    return BLY_OK;
}

/* ---------------------------------------------------------- asking, making */

static void valkeybloom_describe(const bly_foreign *f, bly_facts *out)
{
    if (!f->own)
        return;
    bly_fact_word(out, "scaling", f->growth ? "yes" : "no");
    bly_fact_word(out, "hash", "SipHash-1-3");
    bly_fact_word(out, "seed", valkeybloom_is_random(f) ? "its own" : "fixed");
    if (f->growth)
        bly_fact_uint(out, "growth", f->growth);
    bly_fact_real(out, "tightening", bly_chain_rules_of(f)->tightening);
    bly_fact_real(out, "fpr_of_chain", bly_chain_rate(f));
}

/* The option `seed` as four words; false where it is none. */
static bool valkeybloom_seed(const bly_foreign *f, uint64_t seed[4])
{
    const char *const text = f->more->option[VALKEYBLOOM_SEEDS];
    if (strlen(text) != 64 || strspn(text, "0123456789abcdefABCDEF") != 64)
        return false;
    for (unsigned i = 0; i < 4; i++) {
        char word[17] = { 0 };
        for (unsigned j = 0; j < 8; j++) /* the first byte is the lowest */
            memcpy(word + 14 - 2 * j, text + 16 * i + 2 * j, 2);
        seed[i] = strtoull(word, NULL, 16);
    }
    return true;
}

static void valkeybloom_hash(const bly_foreign *f, bly_foreign_key *key)
{
    uint64_t asked[4] = { 0 };
    if (!f->own) /* the size of a new one is not known yet */
        valkeybloom_seed(f, asked);
    const uint64_t *const seed = f->own ? bly_chain_rules_of(f)->seed : asked;
    key->h[0] = bly_siphash13_sized(seed, key->bytes, key->len);
    key->h[1] = bly_siphash13_sized(seed + 2, key->bytes, key->len);
}

/* An empty chain by the options. */
static bly_status valkeybloom_blank(bly_foreign *f)
{
    bly_status st = bly_chain_new(f, true, 0);
    if (!st)
        st = bly_chain_options(f);
    if (st)
        return st;
    bly_chain_rules *const rules = bly_chain_rules_of(f);
    char *end;
    rules->tightening = strtod(f->more->option[VALKEYBLOOM_TIGHTENING], &end);
    if (*end || !valkeybloom_is_rate(rules->tightening))
        return bly_fail(BLY_EINVAL,
                        "option tightening: '%s' is not between 0 and 1",
                        f->more->option[VALKEYBLOOM_TIGHTENING]);
    if (!valkeybloom_seed(f, rules->seed))
        return bly_fail(BLY_EINVAL,
                        "option seed: '%s' is not 64 hexadecimal digits",
                        f->more->option[VALKEYBLOOM_SEEDS]);
    if (strcmp(f->more->option[VALKEYBLOOM_SEEDS], VALKEYBLOOM_SEED) != 0)
        f->flags |= BLY_CHAIN_RANDOM_SEED;
    return BLY_OK;
}

static bly_status valkeybloom_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const bly_status st = valkeybloom_blank(f);
    return st ? st : bly_chain_begin(f, items, fpr);
}

static bly_status valkeybloom_scales(bly_foreign *f, uint64_t to,
                                     uint64_t *holds)
{
    const bly_status st = valkeybloom_blank(f);
    return st ? st : bly_chain_scales(f, to, holds);
}

const bly_format bly_format_valkeybloom = {
    .name = "valkeybloom",
    .systems = "valkey-bloom BF.LOAD (Valkey)",
    .summary = "a filter in Valkey, as its append-only file holds it",
    .options = valkeybloom_options,
    .noptions = VALKEYBLOOM_NOPTIONS,
    .recognise = valkeybloom_recognise,
    .open = valkeybloom_open,
    .close = bly_chain_close,
    .part = bly_chain_part,
    .part_name = bly_chain_name,
    .describe = valkeybloom_describe,
    .hash = valkeybloom_hash,
    .test = bly_chain_test,
    .plan = valkeybloom_plan,
    .nhash = 2,
    .write = valkeybloom_write,
    .add = bly_chain_add,
    .ask = bly_chain_ask,
    .scales = valkeybloom_scales,
    .copy = bly_chain_copy,
    .counted = bly_chain_counted,
    .array = bly_chain_array,
    .move = bly_chain_move,
    .store = valkeybloom_store,
    .restore = valkeybloom_restore,
};
