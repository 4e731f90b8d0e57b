/*
 * prints.c - static filters of fingerprints
 *
 * One body for each width of a cell and each layout, compiled nine times from
 * one text.
 */
#include <math.h>

#include "core/status.h"
#include "kinds/prints.h"

/* The layout of a shape: a xor filter has no arity. */
static bly_peel prints_layout(const bly_shape *s)
{
    const bool fuse = s->p[PRINTS_ARITY] != 0;
    bly_peel p = {
        .nshards = s->p[PRINTS_SHARDS],
        .windows = s->p[PRINTS_WINDOWS],
        .segment = s->p[PRINTS_SEGMENT],
        .arity = fuse ? (unsigned)s->p[PRINTS_ARITY] : 3,
        .fuse = fuse,
    };
    p.nslots = (p.windows + p.arity - 1) * p.segment;
    return p;
}

/* ---------------------------------------------------------------- shapes */

static bool prints_width(uint64_t bits)
{
    return bits == 8 || bits == 16 || bits == 32;
}

/* The bits of a fingerprint: the fewest that keep the rate, or the most that
 * the memory holds. */
static bly_status prints_choose(const char *kind, const bly_want *w,
                                double nslots, uint64_t *bits)
{
    const uint64_t given = w->given[PRINTS_BITS] ? w->opt[PRINTS_BITS] : 0;
    if (given && !prints_width(given))
        return bly_fail(BLY_EINVAL,
                        "option bits of kind %s is 8, 16 or 32, not %llu", kind,
                        (unsigned long long)given);
    *bits = given ? given : 8;
    if (w->bits) {
        while (!given && *bits < 32 &&
               nslots * (double)*bits * 2 <= (double)w->bits)
            *bits *= 2;
        if (nslots * (double)*bits > (double)w->bits)
            return bly_fail(BLY_EINVAL,
                            "%llu bits are too few for a %s filter of %llu "
                            "items: it needs %.0f",
                            (unsigned long long)w->bits, kind,
                            (unsigned long long)w->items,
                            nslots * (double)*bits);
        return BLY_OK;
    }
    while (!given && *bits < 32 && exp2(-(double)*bits) > w->fpr)
        *bits *= 2;
    if (exp2(-(double)*bits) > w->fpr)
        return bly_fail(BLY_EINVAL,
                        "fingerprints of %llu bits give a rate of %.3g, not "
                        "%g: ask for more bits, 32 at most, or another kind",
                        (unsigned long long)*bits, exp2(-(double)*bits),
                        w->fpr);
    return BLY_OK;
}

bly_status bly_prints_plan(const char *kind, const bly_want *w, uint64_t arity,
                           bly_shape *out)
{
    bly_peel p;
    uint64_t bits = 0;
    bly_status st = bly_peel_plan(kind, w->items, w->opt[PRINTS_SHARDS],
                                  arity ? (unsigned)arity : 3, arity != 0, &p);
    if (!st)
        st =
            prints_choose(kind, w, (double)p.nshards * (double)p.nslots, &bits);
    if (st)
        return st;
    *out = (bly_shape){
        .p = { [PRINTS_BITS] = bits,
               [PRINTS_SHARDS] = p.nshards,
               [PRINTS_SEGMENT] = p.segment,
               [PRINTS_WINDOWS] = p.windows,
               [PRINTS_ARITY] = arity },
        .nbytes = bly_peel_nbytes(&p, (unsigned)bits),
    };
    return out->nbytes ? BLY_OK
                       : bly_fail(BLY_ERANGE,
                                  "a %s filter of so many items and shards is "
                                  "more than can be addressed",
                                  kind);
}

bool bly_prints_sane(const bly_shape *s)
{
    bly_peel p = prints_layout(s);
    return prints_width(s->p[PRINTS_BITS]) && bly_peel_sane(&p) && s->nbytes &&
           s->nbytes == bly_peel_nbytes(&p, (unsigned)s->p[PRINTS_BITS]);
}

double bly_prints_rate(const bly_shape *s, double n)
{
    return n > 0 ? exp2(-(double)s->p[PRINTS_BITS]) : 0;
}

uint64_t bly_prints_bits(const bly_shape *s)
{
    const bly_peel p = prints_layout(s);
    return p.nshards * p.nslots * s->p[PRINTS_BITS];
}

void bly_prints_describe(const bly_shape *s, const bly_want *w,
                         const bly_filter *f, bly_facts *out)
{
    (void)w;
    (void)f;
    const bly_peel p = prints_layout(s);
    bly_fact_uint(out, "slots", p.nshards * p.nslots);
}

bool bly_prints_check(const bly_filter *f)
{
    const bly_peel p = prints_layout(&f->shape);
    return bly_peeled_check(f, &p, (unsigned)f->shape.p[PRINTS_BITS]);
}

void bly_prints_stat(const bly_filter *f, bly_stats *out)
{
    const bly_peel p = prints_layout(&f->shape);
    bly_peeled_stat(f, &p, bly_prints_rate(&f->shape, 1), out);
}

/* ------------------------------------------------------------------ cells */

/* Cell number i, and the cell with the fingerprint of g; width in bytes. */
static inline __attribute__((always_inline)) uint32_t
prints_get(const unsigned char *cells, uint64_t i, unsigned width)
{
    if (width == 1)
        return cells[i];
    return width == 2 ? bly_load16(cells + i * 2) : bly_load32(cells + i * 4);
}

static inline __attribute__((always_inline)) void
prints_set(unsigned char *cells, uint64_t i, unsigned width, uint32_t value)
{
    for (unsigned b = 0; b < width; b++)
        cells[i * width + b] = (unsigned char)(value >> 8 * b);
}

static inline __attribute__((always_inline)) uint32_t prints_of(uint64_t g,
                                                                unsigned width)
{
    return (uint32_t)(bly_peel_print(g) >> (64 - 8 * width));
}

/* --------------------------------------------------------------- building */

static inline __attribute__((always_inline)) void
prints_assign_body(bly_filter *f, const bly_peel *p, const bly_peeled *keys,
                   unsigned width, unsigned arity, bool fuse)
{
    unsigned char *const cells =
        f->data + bly_peel_head(p->nshards) + keys->shard * p->nslots * width;
    const bly_peel_row *const row = bly_peel_best();
    /* A copy that nobody else can change: the stores to cells do not force the
     * compiler to load it anew. */
    const bly_peel geometry = *p;
    bly_peel_block block;
    /* The last key peeled comes first. When a key's turn comes, its other cells
     * are final: each belongs to a key that was peeled later, or to none. */
    for (size_t end = keys->n; end > 0;) {
        const size_t n = end < BLY_PEEL_BLOCK ? end : BLY_PEEL_BLOCK;
        const uint64_t *const words = keys->words + (end -= n);
        bly_peel_fill(&geometry, arity, fuse, row, words, n, &block);
        for (size_t j = n; j-- > 0;) {
            /* Its own cell is still zero, and can be added like the others. */
            uint32_t cell = prints_of(words[j] & ~BLY_PEEL_LOW, width);
            for (unsigned k = 0; k < arity; k++)
                cell ^= prints_get(cells, block.at[k][j], width);
            prints_set(cells, block.at[words[j] & BLY_PEEL_LOW][j], width,
                       cell);
        }
    }
}

static void prints_assign(void *ctx, const bly_peel *p, const bly_peeled *keys)
{
    bly_filter *const f = ctx;
    const uint64_t bits = f->shape.p[PRINTS_BITS];
#define ASSIGN(arity, fuse)                                        \
    (bits == 8    ? prints_assign_body(f, p, keys, 1, arity, fuse) \
     : bits == 16 ? prints_assign_body(f, p, keys, 2, arity, fuse) \
                  : prints_assign_body(f, p, keys, 4, arity, fuse))
    if (!p->fuse)
        ASSIGN(3, false);
    else if (p->arity == 3)
        ASSIGN(3, true);
    else
        ASSIGN(4, true);
#undef ASSIGN
}

uint64_t bly_prints_shards(const bly_shape *s)
{
    return s->p[PRINTS_SHARDS];
}

uint64_t bly_prints_shard_bytes(const bly_shape *s, uint64_t n)
{
    const bly_peel p = prints_layout(s);
    return bly_peel_scratch(&p, n, false);
}

bly_status bly_prints_build_part(bly_filter *f, uint64_t first,
                                 uint64_t nshards, uint64_t *h,
                                 uint64_t *values, size_t n, unsigned nthreads)
{
    const bly_peel p = prints_layout(&f->shape);
    const bly_status st = bly_peeled_build(f, &p, first, nshards, h, values, n,
                                           nthreads, prints_assign);
    if (!st)
        bly_filter_ready(f); /* no longer empty */
    return st;
}

bly_status bly_prints_build(bly_filter *f, uint64_t *h, uint64_t *values,
                            size_t n, unsigned nthreads)
{
    return bly_prints_build_part(f, 0, f->shape.p[PRINTS_SHARDS], h, values, n,
                                 nthreads);
}

/* ----------------------------------------------------------------- asking */

static inline __attribute__((always_inline)) bool
prints_test(const void *cells, const bly_peel_key *key, unsigned width,
            unsigned arity)
{
    uint32_t sum = prints_get(cells, key->slot[0], width) ^
                   prints_get(cells, key->slot[1], width) ^
                   prints_get(cells, key->slot[2], width);
    if (arity == 4)
        sum ^= prints_get(cells, key->slot[3], width);
    return sum == prints_of(key->g, width);
}

#define TEST(name, width, arity)                              \
    static inline __attribute__((always_inline)) bool name(   \
        const void *cells, const bly_peel_key *key, size_t i) \
    {                                                         \
        (void)i;                                              \
        return prints_test(cells, key, width, arity);         \
    }
TEST(prints_test_8, 1, 3)
TEST(prints_test_16, 2, 3)
TEST(prints_test_32, 4, 3)
TEST(prints_test_8_4, 1, 4)
TEST(prints_test_16_4, 2, 4)
TEST(prints_test_32_4, 4, 4)
#undef TEST

void bly_prints_has(const bly_filter *f, const uint64_t *h, size_t n,
                    uint64_t *maybe)
{
    const bly_peel p = prints_layout(&f->shape);
    const unsigned char *const cells = f->data + bly_peel_head(p.nshards);
    const uint64_t bits = f->shape.p[PRINTS_BITS];
    if (!f->state[BLY_PEELED_STATE])
        return; /* no keys: nothing is in it */
    /* Whole words of answers; what is left goes the common way. */
    if (n >= 64 && bly_peel_best()->prints) {
        const size_t done = bly_peel_best()->prints(
            &p, f->data, (unsigned)bits / 8, h, n, maybe);
        h += done;
        n -= done;
        maybe += done / 64;
    }
    /* One compiled loop for each of nine cases. */
#define ASK(width, arity, fuse, test)                                      \
    bly_peel_ask(&p, arity, fuse, f->data, 8 * (width), h, n, test, cells, \
                 maybe)
    if (!p.fuse)
        bits == 8    ? ASK(1, 3, false, prints_test_8)
        : bits == 16 ? ASK(2, 3, false, prints_test_16)
                     : ASK(4, 3, false, prints_test_32);
    else if (p.arity == 3)
        bits == 8    ? ASK(1, 3, true, prints_test_8)
        : bits == 16 ? ASK(2, 3, true, prints_test_16)
                     : ASK(4, 3, true, prints_test_32);
    else
        bits == 8    ? ASK(1, 4, true, prints_test_8_4)
        : bits == 16 ? ASK(2, 4, true, prints_test_16_4)
                     : ASK(4, 4, true, prints_test_32_4);
#undef ASK
}

/* One key of a filter that has some; four slots are rare, and go by a batch.
 * aid is where the cells begin. */
BLY_ONE_BODY bool prints_one_body(const bly_filter *f, uint64_t h,
                                  unsigned width, bool fuse, bool sharded)
{
    const uint64_t *const s = f->shape.p;
    const bly_peel p = {
        .nshards = sharded ? s[PRINTS_SHARDS] : 1,
        .windows = s[PRINTS_WINDOWS],
        .segment = s[PRINTS_SEGMENT],
        .nslots = (s[PRINTS_WINDOWS] + 2) * s[PRINTS_SEGMENT],
    };
    bly_peel_key key;
    bly_peel_find(&p, 3, fuse, f->data, h, &key);
    return prints_test(f->data + f->one.aid, &key, width, 3);
}

#define PRINTS_ONE(name, ...)                                      \
    BLY_ONE_BODY bool name##_body(const bly_filter *f, uint64_t h) \
    {                                                              \
        return prints_one_body(f, h, __VA_ARGS__);                 \
    }                                                              \
    BLY_ONE_HAS(name, name##_body)
#define PRINTS_WIDTHS(name, fuse, sharded)  \
    PRINTS_ONE(name##_8, 1, fuse, sharded)  \
    PRINTS_ONE(name##_16, 2, fuse, sharded) \
    PRINTS_ONE(name##_32, 4, fuse, sharded)
PRINTS_WIDTHS(prints_xor, false, false)
PRINTS_WIDTHS(prints_xors, false, true)
PRINTS_WIDTHS(prints_fuse, true, false)
PRINTS_WIDTHS(prints_fuses, true, true)
#undef PRINTS_WIDTHS
#undef PRINTS_ONE

static bool prints_none(const bly_filter *f, uint64_t h)
{
    (void)f;
    (void)h;
    return false;
}

void bly_prints_one(bly_filter *f)
{
    const bly_peel p = prints_layout(&f->shape);
    const uint64_t bits = f->shape.p[PRINTS_BITS];
    f->one.aid = bly_peel_head(p.nshards);
#define CHOOSE(name)                              \
    (bits == 8    ? BLY_ONE_SET_HAS(f, name##_8)  \
     : bits == 16 ? BLY_ONE_SET_HAS(f, name##_16) \
                  : BLY_ONE_SET_HAS(f, name##_32))
    if (!f->state[BLY_PEELED_STATE])
        f->one.has = f->one.has_int = prints_none;
    else if (!p.fuse && p.nshards == 1)
        CHOOSE(prints_xor);
    else if (!p.fuse)
        CHOOSE(prints_xors);
    else if (p.arity == 3 && p.nshards == 1)
        CHOOSE(prints_fuse);
    else if (p.arity == 3)
        CHOOSE(prints_fuses);
#undef CHOOSE
}

void bly_prints_reach(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *bad)
{
    const bly_peel p = prints_layout(&f->shape);
    bly_peel_key key;
    for (size_t i = 0; i < n; i++)
        bly_peeled_reach(f, &p, (unsigned)f->shape.p[PRINTS_BITS], h[i], i, bad,
                         &key);
}
