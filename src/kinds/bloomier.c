/*
 * bloomier.c - a value for each key of a fixed set
 *
 * The filter of Chazelle, Kilian, Rubinfeld and Tal knows a value of r bits for
 * each of n keys. For any other key it says "absent" or, at a rate that can be
 * chosen, returns a meaningless value. It stores no keys. There are two
 * layouts, both over the slots of peel.h, of which a key has `arity`, 3 or 4.
 *
 * immutable  A cell for each slot holds f + r bits. The XOR of the cells of a
 *            key is its fingerprint and its value.
 *
 *     cell 0 | cell 1 | ...        each: | f: fingerprint | r: value |
 *
 * mutable    Peeling gives every key a slot of its own. The cells say which of
 *            its slots that is, and a second array holds the values, each at
 *            the own slot of its key. So one can be changed and no other is.
 *
 *     cell 0 | cell 1 | ...        each: | c = f + 2 bits |
 *     value 0 | value 1 | ...      each: | r: value |
 *
 *     d = XOR of the cells ^ fingerprint of c bits
 *     own slot: number d, for keys of the set
 *
 * For other keys d is a random number below 2^c. Unless it is the number of one
 * of the key's slots, the key is known to be absent, so the rate is arity /
 * 2^(f+2). In the immutable layout a key is absent if its fingerprint differs,
 * and the rate is 2^-f. f = 0 is possible on request: then every key has some
 * value.
 *
 * Bits per key, at 1.125 slots per key: 1.125 (f + r), and 1.125 (f + 2 + r)
 * for the mutable layout. For values of 8 bits at 1 %, f = 7, that is 16.9 and
 * 19.1.
 *
 * A query takes `arity` cache misses, and one more for a mutable value; in
 * batches the memory is fetched ahead. If a key is not in the set but passes
 * for a member, setting its value changes the value of another key.
 *
 * In memory and on disk: the seeds of the shards (peel.h), up to the next line;
 * the cells, packed (fields.h), up to the next line; the values, packed, if
 * mutable; 8 bytes that are zero, and more up to a word. state[0] is n.
 *
 * [1] Chazelle, Kilian, Rubinfeld and Tal, The Bloomier Filter, 2004
 * [2] Charles and Chellapilla, Bloomier Filters: A Second Look, 2008
 * [3] Graf and Lemire, Binary Fuse Filters, 2022
 */
#include <math.h>

#include "core/packed.h"
#include "core/status.h"
#include "kinds/peeled.h"

/* g of peel.h has 58 bits, and a rate below 2^-50 is hardly one any more. */
#define BLOOMIER_MAX_PRINT 48
#define BLOOMIER_MAX_VALUE 64
/* Bits of a value, if the values are not known when the filter is planned. */
#define BLOOMIER_USUAL_VALUE 32
/* Keeps numbers of bits far from overflow. */
#define BLOOMIER_MAX_SLOTS (UINT64_C(1) << 48)

enum {
    BLOOMIER_LAYOUT,
    BLOOMIER_VALUE,
    BLOOMIER_PRINT,
    BLOOMIER_ARITY,
    BLOOMIER_SHARDS,
    BLOOMIER_SEGMENT,
    BLOOMIER_WINDOWS
};
enum { LAYOUT_MUTABLE, LAYOUT_IMMUTABLE };

static const char *const bloomier_layouts[] = { "mutable", "immutable", NULL };

static const bly_param bloomier_params[] = {
    [BLOOMIER_LAYOUT] = BLY_PARAM(
        "layout", BLY_CHOICE, .settable = true, .max = 1,
        .choices = bloomier_layouts,
        .help =
            "can values be changed? If not, it takes two bits per slot less"),
    [BLOOMIER_VALUE] =
        BLY_PARAM("value_bits", BLY_UINT, .settable = true, .automatic = true,
                  .min = 1, .max = BLOOMIER_MAX_VALUE,
                  .help = "bits of a value; by default what the largest needs"),
    [BLOOMIER_PRINT] = BLY_PARAM(
        "fingerprint", BLY_UINT, .settable = true, .automatic = true, .min = 0,
        .max = BLOOMIER_MAX_PRINT,
        .help = "bits of a fingerprint (f); 0: no key is ever absent"),
    [BLOOMIER_ARITY] = BLY_PARAM(
        "arity", BLY_UINT, .settable = true, .def = 3, .min = 3, .max = 4,
        .help = "slots of a key; 4 takes fewer bits, and more time"),
    [BLOOMIER_SHARDS] = BLY_PARAM("shards", BLY_UINT, .settable = true,
                                  .automatic = true, .min = 1, .max = 0x1p32,
                                  .help = "parts that are built one by one"),
    [BLOOMIER_SEGMENT] = BLY_PARAM("segment", BLY_UINT, .min = 1, .max = 0x1p32,
                                   .help = "slots of a segment"),
    [BLOOMIER_WINDOWS] =
        BLY_PARAM("windows", BLY_UINT, .min = 1, .max = 0x1p32,
                  .help = "segments of a shard where keys may begin"),
};

/* ----------------------------------------------------------------- shapes */

static bool is_mutable(const bly_shape *s)
{
    return s->p[BLOOMIER_LAYOUT] == LAYOUT_MUTABLE;
}

static bly_peel bloomier_peel(const bly_shape *s)
{
    bly_peel p = {
        .nshards = s->p[BLOOMIER_SHARDS],
        .windows = s->p[BLOOMIER_WINDOWS],
        .segment = s->p[BLOOMIER_SEGMENT],
        .arity = (unsigned)s->p[BLOOMIER_ARITY],
        .fuse = true,
    };
    p.nslots = (p.windows + p.arity - 1) * p.segment;
    return p;
}

static uint64_t bloomier_slots(const bly_shape *s)
{
    const bly_peel p = bloomier_peel(s);
    return p.nshards * p.nslots;
}

/* The bits of a cell: those that identify members, and all of them. */
static unsigned check_bits(const bly_shape *s)
{
    return (unsigned)s->p[BLOOMIER_PRINT] + (is_mutable(s) ? 2 : 0);
}

static unsigned cell_bits(const bly_shape *s)
{
    return check_bits(s) + (is_mutable(s) ? 0 : (unsigned)s->p[BLOOMIER_VALUE]);
}

static uint64_t bloomier_bits(const bly_shape *s)
{
    return bloomier_slots(s) * (check_bits(s) + s->p[BLOOMIER_VALUE]);
}

/* Where the values of the mutable layout begin. */
static uint64_t bloomier_values_at(const bly_shape *s)
{
    const uint64_t cells = (bloomier_slots(s) * cell_bits(s) + 7) / 8;
    return bly_peel_head(s->p[BLOOMIER_SHARDS]) +
           (cells + BLY_LINE - 1) / BLY_LINE * BLY_LINE;
}

static uint64_t bloomier_nbytes(const bly_shape *s)
{
    const uint64_t values = bloomier_slots(s) * s->p[BLOOMIER_VALUE];
    return (bloomier_values_at(s) + (is_mutable(s) ? (values + 7) / 8 : 0) +
            BLY_FIELD_SLACK + 7) /
           8 * 8;
}

/* Shards are built by several threads, which write bytes. With a multiple of 8
 * slots each, no byte belongs to two shards, whatever the widths. */
#define BLOOMIER_SHARD_SLOTS 8

static bool bloomier_sane(const bly_shape *s)
{
    bly_peel p = bloomier_peel(s);
    return s->p[BLOOMIER_LAYOUT] <= LAYOUT_IMMUTABLE &&
           s->p[BLOOMIER_VALUE] >= 1 &&
           s->p[BLOOMIER_VALUE] <= BLOOMIER_MAX_VALUE &&
           s->p[BLOOMIER_PRINT] <= BLOOMIER_MAX_PRINT &&
           s->p[BLOOMIER_ARITY] >= 3 && s->p[BLOOMIER_ARITY] <= 4 &&
           bly_peel_sane(&p) &&
           (p.nshards == 1 || p.segment >= BLOOMIER_SHARD_SLOTS) &&
           p.nslots <= BLOOMIER_MAX_SLOTS / p.nshards &&
           s->nbytes == bloomier_nbytes(s);
}

/* An absent key passes by chance in d, or because it has the same word g, of 58
 * bits, as a member of its shard. */
static double bloomier_rate(const bly_shape *s, double n)
{
    const int f = (int)s->p[BLOOMIER_PRINT];
    const double passing = is_mutable(s) ? (double)s->p[BLOOMIER_ARITY] / 4 : 1;
    if (n <= 0 || f == 0)
        return n > 0;
    return fmin(1, ldexp(passing, -f) +
                       ldexp(n / (double)s->p[BLOOMIER_SHARDS], -58));
}

/* The fewest bits of a fingerprint that keep the rate, or the most that fit
 * into the memory. */
static bly_status bloomier_choose(const bly_want *w, bly_shape *s)
{
    const uint64_t nslots = bloomier_slots(s);
    uint64_t *const f = &s->p[BLOOMIER_PRINT];
    const bool given = w->given[BLOOMIER_PRINT];
    *f = given ? w->opt[BLOOMIER_PRINT] : 1;
    if (w->bits) {
        if (nslots > w->bits || bloomier_bits(s) > w->bits)
            return bly_fail(BLY_EINVAL,
                            "%llu bits are too few for %llu items with values "
                            "of %llu bits: %.0f are needed",
                            (unsigned long long)w->bits,
                            (unsigned long long)w->items,
                            (unsigned long long)s->p[BLOOMIER_VALUE],
                            (double)nslots *
                                (double)(check_bits(s) + s->p[BLOOMIER_VALUE]));
        /* Every bit of a fingerprint costs one bit per slot. */
        for (; !given && *f < BLOOMIER_MAX_PRINT; ++*f)
            if (bloomier_bits(s) + nslots > w->bits)
                break;
        return BLY_OK;
    }
    /* A rate of 1/256 should take 8 bits: what keys with the same word add to
     * it, one part in 10^9 at a million keys, is no reason for a ninth. */
    const double p = w->fpr * 1.001;
    while (!given && *f < BLOOMIER_MAX_PRINT &&
           bloomier_rate(s, (double)w->items) > p)
        ++*f;
    if (!given && bloomier_rate(s, (double)w->items) > p)
        return bly_fail(BLY_EINVAL,
                        "a rate of %g is below what a bloomier filter of %llu "
                        "items can keep: ask for %.2g or more",
                        w->fpr, (unsigned long long)w->items,
                        bloomier_rate(s, (double)w->items));
    return BLY_OK;
}

static bly_status bloomier_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t value = w->opt[BLOOMIER_VALUE];
    bly_peel p;
    bly_status st = bly_peel_plan("bloomier", w->items, w->opt[BLOOMIER_SHARDS],
                                  (unsigned)w->opt[BLOOMIER_ARITY], true, &p);
    if (st)
        return st;
    if (p.nshards > 1 && p.segment < BLOOMIER_SHARD_SLOTS)
        p.segment = BLOOMIER_SHARD_SLOTS;
    bly_shape s = {
        .p = { [BLOOMIER_LAYOUT] = w->opt[BLOOMIER_LAYOUT],
               [BLOOMIER_VALUE] = value          ? value
                                  : w->max_value ? bly_field_width(w->max_value)
                                                 : BLOOMIER_USUAL_VALUE,
               [BLOOMIER_ARITY] = p.arity,
               [BLOOMIER_SHARDS] = p.nshards,
               [BLOOMIER_SEGMENT] = p.segment,
               [BLOOMIER_WINDOWS] = p.windows },
    };
    p = bloomier_peel(&s);
    if (p.nslots > BLOOMIER_MAX_SLOTS / p.nshards)
        return bly_fail(BLY_ERANGE,
                        "a bloomier filter has at most 2^48 slots: ask for "
                        "fewer items or shards");
    st = bloomier_choose(w, &s);
    if (st)
        return st;
    s.nbytes = bloomier_nbytes(&s);
    *out = s;
    return BLY_OK;
}

static void bloomier_describe(const bly_shape *s, const bly_want *w,
                              const bly_filter *f, bly_facts *out)
{
    (void)w;
    (void)f;
    bly_fact_uint(out, "slots", bloomier_slots(s));
    bly_fact_uint(out, "largest_value",
                  bly_field_mask((unsigned)s->p[BLOOMIER_VALUE]));
}

static void bloomier_stat(const bly_filter *f, bly_stats *out)
{
    const bly_peel p = bloomier_peel(&f->shape);
    bly_peeled_stat(f, &p, bloomier_rate(&f->shape, (double)f->items), out);
}

/* ------------------------------------------------------------------ cells */

typedef struct bloomier {
    bly_peel p;
    unsigned char *cells, *values; /* values: of the mutable layout */
    unsigned cell, check, value;   /* bits */
    uint64_t check_mask;
    uint64_t nslots; /* d below it: a member; immutable: 1, only d = 0 agrees */
    bool open;       /* f = 0: whatever d is */
    bool mutable;
} bloomier;

static bloomier bloomier_of(const bly_filter *f)
{
    const bly_shape *const s = &f->shape;
    bloomier b = {
        .p = bloomier_peel(s),
        .cells = f->data + bly_peel_head(s->p[BLOOMIER_SHARDS]),
        .cell = cell_bits(s),
        .check = check_bits(s),
        .check_mask = bly_field_mask(check_bits(s)),
        .value = (unsigned)s->p[BLOOMIER_VALUE],
        .open = s->p[BLOOMIER_PRINT] == 0,
        .mutable = is_mutable(s),
    };
    b.values = b.mutable ? f->data + bloomier_values_at(s) : NULL;
    b.nslots = b.mutable ? b.p.arity : 1;
    return b;
}

/* The XOR of the check bits in the cells of a key, apart from d. */
static inline uint64_t bloomier_print(const bloomier *b, uint64_t g)
{
    /* No check bits would be a shift by 64, which C leaves undefined. */
    return b->check ? bly_peel_print(g) >> (64 - b->check) : 0;
}

static inline uint64_t check_at(const bloomier *b, uint64_t slot)
{
    return slot * b->cell;
}

static inline uint64_t value_at(const bloomier *b, uint64_t slot)
{
    return b->mutable ? slot * b->value : slot * b->cell + b->check;
}

/* --------------------------------------------------------------- building */

/* Fill in the cells of a shard, with the key that was peeled last first. Keys
 * assigned so far do not use this key's own slot, so its cell is still zero and
 * free. Keys still to come write to their own slots, which this key does not
 * use, so its equation stays true. Other threads work on other shards, so only
 * fields of this shard may be touched. */
static void bloomier_assign(void *f, const bly_peel *p, const bly_peeled *keys)
{
    const bloomier b = bloomier_of(f);
    const uint64_t base = keys->shard * p->nslots;
    for (size_t i = keys->n; i-- > 0;) {
        const uint64_t g = keys->words[i] & ~BLY_PEEL_LOW;
        const uint64_t number = keys->words[i] & BLY_PEEL_LOW;
        uint64_t slot[BLY_PEEL_MAX_ARITY];
        bly_peel_slots(p, p->arity, true, g, base, slot);
        /* XORed over all slots, as the own cell is still zero. */
        uint64_t check = bloomier_print(&b, g) ^ (b.mutable ? number : 0);
        for (unsigned k = 0; k < p->arity; k++)
            check ^=
                bly_field_get_exact(b.cells, check_at(&b, slot[k]), b.check);
        bly_field_put_exact(b.cells, check_at(&b, slot[number]), b.check,
                            check);

        /* A mutable value is stored as it is, in the key's own slot. An
         * immutable one is a second equation over the same slots. */
        unsigned char *const values = b.mutable ? b.values : b.cells;
        uint64_t value = keys->values[i];
        for (unsigned k = 0; !b.mutable && k < p->arity; k++)
            value ^=
                bly_field_get_exact(values, value_at(&b, slot[k]), b.value);
        bly_field_put_exact(values, value_at(&b, slot[number]), b.value, value);
    }
}

static bly_status value_fits(const bly_shape *s, uint64_t value)
{
    const unsigned bits = bly_field_width(value);
    if (bits <= s->p[BLOOMIER_VALUE])
        return BLY_OK;
    return bly_fail(BLY_ERANGE,
                    "a value of %llu takes %u bits, and value_bits is %llu",
                    (unsigned long long)value, bits,
                    (unsigned long long)s->p[BLOOMIER_VALUE]);
}

static uint64_t bloomier_shards(const bly_shape *s)
{
    return s->p[BLOOMIER_SHARDS];
}

static uint64_t bloomier_shard_bytes(const bly_shape *s, uint64_t n)
{
    const bly_peel p = bloomier_peel(s);
    return bly_peel_scratch(&p, n, true);
}

static bly_status bloomier_build_part(bly_filter *f, uint64_t first,
                                      uint64_t nshards, uint64_t *h,
                                      uint64_t *values, size_t n,
                                      unsigned nthreads)
{
    const bly_peel p = bloomier_peel(&f->shape);
    /* All values are checked before the first cell is written. */
    uint64_t largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = values[i] > largest ? values[i] : largest;
    const bly_status st = value_fits(&f->shape, largest);
    return st ? st
              : bly_peeled_build(f, &p, first, nshards, h, values, n, nthreads,
                                 bloomier_assign);
}

static bly_status bloomier_build(bly_filter *f, uint64_t *h, uint64_t *values,
                                 size_t n, unsigned nthreads)
{
    return bloomier_build_part(f, 0, f->shape.p[BLOOMIER_SHARDS], h, values, n,
                               nthreads);
}

/* ----------------------------------------------------------------- asking */

/* d of a key. */
static inline __attribute__((always_inline)) uint64_t
bloomier_sum(const bloomier *b, const bly_peel_key *key, unsigned arity)
{
    uint64_t d = bloomier_print(b, key->g);
    for (unsigned k = 0; k < arity; k++)
        d ^= bly_field_get_short(b->cells, check_at(b, key->slot[k]),
                                 b->check_mask);
    return d;
}

static inline __attribute__((always_inline)) bool
bloomier_test(const void *ctx, const bly_peel_key *key, unsigned arity)
{
    const bloomier *const b = ctx;
    return bloomier_sum(b, key, arity) < b->nslots || b->open;
}

/* A query for values. */
typedef struct bloomier_query {
    bloomier b;
    uint64_t *values;
} bloomier_query;

/* A mutable value takes one more cache line, whose place is known only after
 * the cells are read. Until the line has arrived, LAG keys later, values[]
 * holds the number of the slot instead. */
#define BLOOMIER_LAG 16
#define BLOOMIER_ABSENT UINT64_MAX

static inline __attribute__((always_inline)) void
bloomier_settle(const bloomier_query *q, size_t i)
{
    const uint64_t slot = q->values[i];
    q->values[i] =
        slot == BLOOMIER_ABSENT
            ? 0
            : bly_field_get(q->b.values, value_at(&q->b, slot), q->b.value);
}

static inline __attribute__((always_inline)) bool
bloomier_fetch(const void *ctx, const bly_peel_key *key, size_t i,
               unsigned arity)
{
    const bloomier_query *const q = ctx;
    const bloomier *const b = &q->b;
    const uint64_t d = bloomier_sum(b, key, arity);
    const bool there = d < b->nslots || b->open;
    if (b->mutable) {
        /* With f = 0 any d passes for a member. If d is not the number of a
         * slot, slot 0 is read, which is also where bloomier_set() writes. */
        const uint64_t own = key->slot[d < arity ? d : 0];
        q->values[i] = there ? own : BLOOMIER_ABSENT;
        if (there)
            __builtin_prefetch(b->values + value_at(b, own) / 8, 0, 3);
        if (i >= BLOOMIER_LAG)
            /* Keys are visited in their order, so this one is still to be
             * settled. */
            bloomier_settle(q, i - BLOOMIER_LAG);
    } else {
        uint64_t value = 0;
        for (unsigned k = 0; there && k < arity; k++)
            value ^=
                bly_field_get(b->cells, value_at(b, key->slot[k]), b->value);
        q->values[i] = value;
    }
    return there;
}

#define BLOOMIER_TESTS(arity)                                                 \
    static inline __attribute__((always_inline)) bool bloomier_test_##arity(  \
        const void *ctx, const bly_peel_key *key, size_t i)                   \
    {                                                                         \
        (void)i;                                                              \
        return bloomier_test(ctx, key, arity);                                \
    }                                                                         \
    static inline __attribute__((always_inline)) bool bloomier_fetch_##arity( \
        const void *ctx, const bly_peel_key *key, size_t i)                   \
    {                                                                         \
        return bloomier_fetch(ctx, key, i, arity);                            \
    }
BLOOMIER_TESTS(3)
BLOOMIER_TESTS(4)
#undef BLOOMIER_TESTS

static void bloomier_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
    const bloomier b = bloomier_of(f);
    if (!f->state[BLY_PEELED_STATE])
        return; /* it is empty */
    /* The arity as a literal, for loops of known length. */
    if (b.p.arity == 3)
        bly_peel_ask(&b.p, 3, true, f->data, b.cell, h, n, bloomier_test_3, &b,
                     maybe);
    else
        bly_peel_ask(&b.p, 4, true, f->data, b.cell, h, n, bloomier_test_4, &b,
                     maybe);
}

static void bloomier_get(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *values, uint64_t *present)
{
    const bloomier_query q = { bloomier_of(f), values };
    const bly_peel *const p = &q.b.p;
    if (!f->state[BLY_PEELED_STATE]) {
        memset(values, 0, n * sizeof *values);
        return;
    }
    if (p->arity == 3)
        bly_peel_ask(p, 3, true, f->data, q.b.cell, h, n, bloomier_fetch_3, &q,
                     present);
    else
        bly_peel_ask(p, 4, true, f->data, q.b.cell, h, n, bloomier_fetch_4, &q,
                     present);
    if (q.b.mutable)
        /* The last ones are still slot numbers. */
        for (size_t i = n > BLOOMIER_LAG ? n - BLOOMIER_LAG : 0; i < n; i++)
            bloomier_settle(&q, i);
}

static void bloomier_reach(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *bad)
{
    const bloomier b = bloomier_of(f);
    const uint64_t values = b.mutable ? bloomier_values_at(&f->shape) : 0;
    for (size_t i = 0; i < n; i++) {
        bly_peel_key key;
        if (!bly_peeled_reach(f, &b.p, b.cell, h[i], i, bad, &key) ||
            !b.mutable)
            continue;
        /* Which slot has the value is known only from the cells, so all of them
         * have to be sound. */
        for (unsigned k = 0; k < b.p.arity; k++) {
            const uint64_t bit = value_at(&b, key.slot[k]), byte = bit / 8;
            const uint64_t last = (bit + b.value - 1) / 8;
            bly_reach(f, values + byte, last - byte + 1, i, bad);
        }
    }
}

static bly_status bloomier_set(bly_filter *f, uint64_t h, uint64_t value)
{
    const bloomier b = bloomier_of(f);
    if (!b.mutable)
        return bly_fail(BLY_ENOTSUP,
                        "this bloomier filter is immutable: its values cannot "
                        "be changed; build it with layout=mutable");
    const bly_status st = value_fits(&f->shape, value);
    if (st)
        return st;
    bly_peel_key key;
    bly_peel_find(&b.p, b.p.arity, true, f->data, h, &key);
    const uint64_t d = bloomier_sum(&b, &key, b.p.arity);
    if (!f->state[BLY_PEELED_STATE] || (d >= b.nslots && !b.open))
        return bly_fail(BLY_EABSENT, "%s", bly_status_text(BLY_EABSENT));
    bly_field_put_exact(b.values, value_at(&b, key.slot[d < b.nslots ? d : 0]),
                        b.value, value);
    return BLY_OK;
}

const bly_kind bly_kind_bloomier = {
    .id = 13, /* on disk: never changed, never reused */
    .name = "bloomier",
    .summary = "a value for each key of a fixed set, without storing the keys",
    .params = bloomier_params,
    .nparams = sizeof bloomier_params / sizeof bloomier_params[0],
    .nstate = BLY_PEELED_STATE + 1,
    .plan = bloomier_plan,
    .sane = bloomier_sane,
    .rate = bloomier_rate,
    .bits = bloomier_bits,
    .describe = bloomier_describe,
    .sound = bly_peeled_sound,
    .reach = BLY_SYSTEM(bloomier_reach),
    .stat = bloomier_stat,
    .has = bloomier_has,
    .get = bloomier_get,
    .set = bloomier_set,
    .build = bloomier_build,
    .shards = bloomier_shards,
    .shard_bytes = bloomier_shard_bytes,
    .build_part = bloomier_build_part,
};
