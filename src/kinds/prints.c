/*
 * prints.c - static filters of fingerprints
 *
 * Cells may have whole bytes or any number of bits. One body of code is
 * compiled twelve times, once for each width of a cell and each layout.
 */
#include <math.h>

#include "core/packed.h"
#include "core/status.h"
#include "kinds/prints.h"

/* The layout of a shape. */
static bool prints_fuse(const bly_shape *s)
{
    return s->p[PRINTS_ARITY] > PRINTS_LIGHT;
}

static bool prints_light(const bly_shape *s)
{
    return s->p[prints_fuse(s) ? FUSE_MIXING : XOR_MIXING] == PRINTS_LIGHT;
}

static bly_peel prints_layout(const bly_shape *s)
{
    const bool fuse = prints_fuse(s);
    bly_peel p = {
        .nshards = s->p[PRINTS_SHARDS],
        .windows = s->p[PRINTS_WINDOWS],
        .segment = s->p[PRINTS_SEGMENT],
        .arity = fuse ? (unsigned)s->p[PRINTS_ARITY] : 3,
        .fuse = fuse,
        .light = prints_light(s),
    };
    p.nslots = (p.windows + p.arity - 1) * p.segment;
    return p;
}

/* ---------------------------------------------------------------- shapes */

#define PRINTS_LEAST 2
#define PRINTS_MOST 32

/* Cells of whole bytes are faster than cells packed bit by bit. */
static bool prints_whole(uint64_t bits)
{
    return bits == 8 || bits == 16 || bits == 32;
}

/* The width that keeps a rate: the smallest, unless whole bytes take at most a
 * third more. */
static uint64_t prints_for_rate(double fpr)
{
    uint64_t bits = PRINTS_LEAST, whole = 8;
    while (bits < PRINTS_MOST && exp2(-(double)bits) > fpr)
        bits++;
    while (whole < bits)
        whole *= 2;
    return bits * 4 > whole * 3 ? whole : bits;
}

/* The number of bits in a fingerprint: enough to keep the rate, or as many as
 * fit into the memory. */
static bly_status prints_choose(const char *kind, const bly_want *w,
                                double nslots, uint64_t *bits)
{
    const uint64_t given = w->given[PRINTS_BITS] ? w->opt[PRINTS_BITS] : 0;
    if (w->bits) {
        const double most = floor((double)w->bits / nslots);
        *bits = given                ? given
                : most > PRINTS_MOST ? PRINTS_MOST
                : most > 0           ? (uint64_t)most
                                     : 0;
        if (*bits < PRINTS_LEAST || (double)*bits > most)
            return bly_fail(
                BLY_EINVAL,
                "%llu bits are too few for a %s filter of %llu items: it "
                "needs %.0f",
                (unsigned long long)w->bits, kind, (unsigned long long)w->items,
                nslots * (double)(given ? given : PRINTS_LEAST));
        return BLY_OK;
    }
    *bits = given ? given : prints_for_rate(w->fpr);
    if (exp2(-(double)*bits) > w->fpr)
        return bly_fail(BLY_EINVAL,
                        "fingerprints of %llu bits give a rate of %.3g, not "
                        "%g: ask for more bits, 32 at most, a higher rate or "
                        "another kind",
                        (unsigned long long)*bits, exp2(-(double)*bits),
                        w->fpr);
    return BLY_OK;
}

/* Packed cells are read a word at a time, which may go past the end. */
static uint64_t prints_nbytes(const bly_peel *p, uint64_t bits)
{
    const uint64_t nbytes = bly_peel_nbytes(p, (unsigned)bits);
    return nbytes && !prints_whole(bits) ? nbytes + BLY_FIELD_SLACK : nbytes;
}

/* Shards are built by several threads, which write bytes. So no byte may belong
 * to two shards. */
static bool prints_apart(const bly_peel *p, uint64_t bits)
{
    return prints_whole(bits) || p->nshards == 1 || p->nslots % 8 == 0;
}

bly_status bly_prints_plan(const char *kind, const bly_want *w, uint64_t arity,
                           uint64_t mixing, bly_shape *out)
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
    /* Only a xor filter can get here: segments of others are powers of two. */
    if (!prints_apart(&p, bits)) {
        p.segment = (p.segment + 7) / 8 * 8;
        p.nslots = (p.windows + p.arity - 1) * p.segment;
    }
    *out = (bly_shape){
        .p = { [PRINTS_BITS] = bits,
               [PRINTS_SHARDS] = p.nshards,
               [PRINTS_SEGMENT] = p.segment,
               [PRINTS_WINDOWS] = p.windows,
               [PRINTS_ARITY] = arity ? arity : mixing,
               [FUSE_MIXING] = arity ? mixing : 0 },
        .nbytes = prints_nbytes(&p, bits),
    };
    return out->nbytes ? BLY_OK
                       : bly_fail(BLY_ERANGE,
                                  "a %s filter of so many items and shards is "
                                  "more than can be addressed",
                                  kind);
}

bool bly_prints_sane(const bly_shape *s)
{
    const uint64_t bits = s->p[PRINTS_BITS];
    bly_peel p = prints_layout(s);
    return bits >= PRINTS_LEAST && bits <= PRINTS_MOST && bly_peel_sane(&p) &&
           prints_apart(&p, bits) && s->nbytes &&
           s->nbytes == prints_nbytes(&p, bits);
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

/* Cells of `width` bytes each; if width is 0, of `bits` bits each. */
typedef struct prints_cells {
    const unsigned char *at;
    uint64_t bits, mask;
} prints_cells;

static prints_cells prints_cells_of(const bly_filter *f)
{
    const uint64_t bits = f->shape.p[PRINTS_BITS];
    return (prints_cells){
        .at = f->data + bly_peel_head(f->shape.p[PRINTS_SHARDS]),
        .bits = bits,
        .mask = bly_field_mask((unsigned)bits),
    };
}

/* Read cell number i; and the value of a cell that holds the fingerprint of g.
 * width is a literal. */
static inline __attribute__((always_inline)) uint32_t
prints_get(const prints_cells *c, uint64_t i, unsigned width)
{
    if (!width)
        return (uint32_t)bly_field_get_short(c->at, i * c->bits, c->mask);
    if (width == 1)
        return c->at[i];
    return width == 2 ? bly_load16(c->at + i * 2) : bly_load32(c->at + i * 4);
}

static inline __attribute__((always_inline)) uint32_t
prints_of(uint64_t g, const prints_cells *c, unsigned width)
{
    return (uint32_t)(bly_peel_print(g) >>
                      (64 - (width ? 8 * width : c->bits)));
}

/* --------------------------------------------------------------- building */

/* The neighbours of a packed cell may belong to another thread. So only the
 * cell's own bytes are read, as only these are written. */
static inline __attribute__((always_inline)) uint32_t
prints_get_own(const prints_cells *c, uint64_t i, unsigned width)
{
    return width ? prints_get(c, i, width)
                 : (uint32_t)bly_field_get_exact(c->at, i * c->bits,
                                                 (unsigned)c->bits);
}

static inline __attribute__((always_inline)) void
prints_set(unsigned char *cells, const prints_cells *c, uint64_t i,
           unsigned width, uint32_t value)
{
    if (!width)
        bly_field_put_exact(cells, i * c->bits, (unsigned)c->bits, value);
    for (unsigned b = 0; b < width; b++)
        cells[i * width + b] = (unsigned char)(value >> 8 * b);
}

static inline __attribute__((always_inline)) void
prints_assign_body(bly_filter *f, const bly_peel *p, const bly_peeled *keys,
                   unsigned width, unsigned arity, bool fuse)
{
    prints_cells c = prints_cells_of(f);
    unsigned char *const cells =
        f->data + bly_peel_head(p->nshards) +
        keys->shard * p->nslots * (width ? 8 * width : c.bits) / 8;
    const bly_peel_row *const row = bly_peel_best();
    /* A local copy, which no store to a cell can alias, so the compiler need
     * not load it again after each store. */
    const bly_peel geometry = *p;
    bly_peel_block block;
    c.at = cells;
    /* The last key peeled comes first. When a key's turn comes, its other cells
     * are final: each belongs to a key that was peeled later, or to none. */
    for (size_t end = keys->n; end > 0;) {
        const size_t n = end < BLY_PEEL_BLOCK ? end : BLY_PEEL_BLOCK;
        const uint64_t *const words = keys->words + (end -= n);
        bly_peel_fill(&geometry, arity, fuse, row, words, n, &block);
        for (size_t j = n; j-- > 0;) {
            /* The key's own cell is still zero, and can be XORed in like the
             * others. */
            uint32_t cell = prints_of(words[j] & ~BLY_PEEL_LOW, &c, width);
            for (unsigned k = 0; k < arity; k++)
                cell ^= prints_get_own(&c, block.at[k][j], width);
            prints_set(cells, &c, block.at[words[j] & BLY_PEEL_LOW][j], width,
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
     : bits == 32 ? prints_assign_body(f, p, keys, 4, arity, fuse) \
                  : prints_assign_body(f, p, keys, 0, arity, fuse))
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
prints_test(const prints_cells *c, const bly_peel_key *key, unsigned width,
            unsigned arity)
{
    uint32_t sum = prints_get(c, key->slot[0], width) ^
                   prints_get(c, key->slot[1], width) ^
                   prints_get(c, key->slot[2], width);
    if (arity == 4)
        sum ^= prints_get(c, key->slot[3], width);
    return sum == prints_of(key->g, c, width);
}

#define TEST(name, width, arity)                              \
    static inline __attribute__((always_inline)) bool name(   \
        const void *cells, const bly_peel_key *key, size_t i) \
    {                                                         \
        (void)i;                                              \
        return prints_test(cells, key, width, arity);         \
    }
TEST(prints_test_any, 0, 3)
TEST(prints_test_8, 1, 3)
TEST(prints_test_16, 2, 3)
TEST(prints_test_32, 4, 3)
TEST(prints_test_any_4, 0, 4)
TEST(prints_test_8_4, 1, 4)
TEST(prints_test_16_4, 2, 4)
TEST(prints_test_32_4, 4, 4)
#undef TEST

/* One compiled loop for each of twelve cases. Not inlined, so that variants
 * that do not need its large stack frame do not set it up. */
static __attribute__((noinline)) void prints_ask(const bly_filter *f,
                                                 const bly_peel *layout,
                                                 const uint64_t *h, size_t n,
                                                 uint64_t *maybe)
{
    const bly_peel p = *layout;
    const prints_cells cells = prints_cells_of(f);
    const uint64_t bits = f->shape.p[PRINTS_BITS];
#define ASK(width, arity, fuse, test)                                        \
    bly_peel_ask(&p, arity, fuse, f->data,                                   \
                 (width) ? 8 * (width) : (unsigned)bits, h, n, test, &cells, \
                 maybe)
    if (!p.fuse)
        bits == 8    ? ASK(1, 3, false, prints_test_8)
        : bits == 16 ? ASK(2, 3, false, prints_test_16)
        : bits == 32 ? ASK(4, 3, false, prints_test_32)
                     : ASK(0, 3, false, prints_test_any);
    else if (p.arity == 3)
        bits == 8    ? ASK(1, 3, true, prints_test_8)
        : bits == 16 ? ASK(2, 3, true, prints_test_16)
        : bits == 32 ? ASK(4, 3, true, prints_test_32)
                     : ASK(0, 3, true, prints_test_any);
    else
        bits == 8    ? ASK(1, 4, true, prints_test_8_4)
        : bits == 16 ? ASK(2, 4, true, prints_test_16_4)
        : bits == 32 ? ASK(4, 4, true, prints_test_32_4)
                     : ASK(0, 4, true, prints_test_any_4);
#undef ASK
}

void bly_prints_has(const bly_filter *f, const uint64_t *h, size_t n,
                    uint64_t *maybe)
{
    const bly_peel p = prints_layout(&f->shape);
    size_t done = 0;
    if (!f->state[BLY_PEELED_STATE])
        return; /* it is empty */
    if (bly_peel_best()->prints)
        done = bly_peel_best()->prints(
            &p, f->data, (unsigned)f->shape.p[PRINTS_BITS], h, n, maybe);
    if (done < n)
        prints_ask(f, &p, h + done, n - done, maybe + done / 64);
}

/* One key, for filters that are not empty. Four slots are rare, and use a batch
 * of one. aid is the address of the cells. */
BLY_ONE_BODY bool prints_one_body(const bly_filter *f, uint64_t h,
                                  unsigned width, bool light, bool fuse,
                                  bool sharded)
{
    const uint64_t *const s = f->shape.p;
    const bly_peel p = {
        .light = light,
        .nshards = sharded ? s[PRINTS_SHARDS] : 1,
        .windows = s[PRINTS_WINDOWS],
        .segment = s[PRINTS_SEGMENT],
        .nslots = (s[PRINTS_WINDOWS] + 2) * s[PRINTS_SEGMENT],
    };
    bly_peel_key key;
    bly_peel_find(&p, 3, fuse, f->data, h, &key);
    const prints_cells cells = {
        .at = f->data + f->aid,
        .bits = width ? 0 : s[PRINTS_BITS],
        .mask = width ? 0 : bly_field_mask((unsigned)s[PRINTS_BITS]),
    };
    return prints_test(&cells, &key, width, 3);
}

#define PRINTS_ONE(name, ...)                                      \
    BLY_ONE_BODY bool name##_body(const bly_filter *f, uint64_t h) \
    {                                                              \
        return prints_one_body(f, h, __VA_ARGS__);                 \
    }                                                              \
    BLY_ONE_HAS(name, name##_body)
/* Filters of 8 bits, the most common, do not test how hashes are mixed. */
#define PRINTS_LIGHTLY(fuse) \
    (f->shape.p[(fuse) ? FUSE_MIXING : XOR_MIXING] == PRINTS_LIGHT)
#define PRINTS_WIDTHS(name, fuse, sharded)                         \
    PRINTS_ONE(name##_any, 0, PRINTS_LIGHTLY(fuse), fuse, sharded) \
    PRINTS_ONE(name##_8, 1, true, fuse, sharded)                   \
    PRINTS_ONE(name##_8_full, 1, false, fuse, sharded)             \
    PRINTS_ONE(name##_16, 2, PRINTS_LIGHTLY(fuse), fuse, sharded)  \
    PRINTS_ONE(name##_32, 4, PRINTS_LIGHTLY(fuse), fuse, sharded)
PRINTS_WIDTHS(prints_xor, false, false)
PRINTS_WIDTHS(prints_xors, false, true)
PRINTS_WIDTHS(prints_fuse, true, false)
PRINTS_WIDTHS(prints_fuses, true, true)
#undef PRINTS_WIDTHS
#undef PRINTS_LIGHTLY
#undef PRINTS_ONE

static bool prints_none(const bly_filter *f, uint64_t h)
{
    (void)f;
    (void)h;
    return false;
}

void bly_prints_one(const bly_filter *f, bly_one *out)
{
    const bly_peel p = prints_layout(&f->shape);
    const uint64_t bits = f->shape.p[PRINTS_BITS];
    out->aid = bly_peel_head(p.nshards);
#define CHOOSE(name)                                              \
    (bits == 8    ? p.light ? BLY_ONE_SET_HAS(out, name##_8)      \
                            : BLY_ONE_SET_HAS(out, name##_8_full) \
        : bits == 16 ? BLY_ONE_SET_HAS(out, name##_16)            \
     : bits == 32 ? BLY_ONE_SET_HAS(out, name##_32)               \
                  : BLY_ONE_SET_HAS(out, name##_any))
    if (!f->state[BLY_PEELED_STATE])
        out->ways.has = out->ways.has_int = prints_none;
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

bool bly_prints_view(const bly_filter *f, const bly_kind *kind,
                     bly_view_fuse *out)
{
    if (!bly_filter_viewed(f, kind, out) || !f->state[BLY_PEELED_STATE])
        return false;
    const bly_peel p = prints_layout(&f->shape);
    *out = (bly_view_fuse){
        .seeds = f->data,
        .cells = f->data + bly_peel_head(p.nshards),
        .nshards = p.nshards,
        .nslots = p.nslots,
        .segment = p.segment,
        .starts = p.fuse ? p.windows * p.segment : 0,
        .turned = f->extra->turned,
        .folded = bly_filter_folds(f),
        .bits = (uint32_t)f->shape.p[PRINTS_BITS],
        .arity = p.arity,
        .light = p.light,
    };
    if (p.light && out->bits == 8 && p.arity == 3) {
        out->seed = bly_load64(f->data);
        out->usual = p.nshards == 1;
        out->usuals = p.nshards > 1;
    }
    return true;
}

void bly_prints_fetch(const bly_filter *f, const uint64_t *h, size_t n)
{
    const bly_peel p = prints_layout(&f->shape);
    const unsigned char *const cells = f->data + bly_peel_head(p.nshards);
    const uint64_t bits = f->shape.p[PRINTS_BITS];
    const bly_peel_row *const row =
        p.nshards <= UINT32_MAX ? bly_peel_best() : NULL;
    for (size_t i = 0; i < n; i += 8) {
        const size_t m = n - i < 8 ? n - i : 8;
        bly_peel_eight keys;
        bly_peel_enter(&p, p.arity, p.fuse, row, f->data, h + i, m, &keys);
        bly_peel_fetch(&keys, m, p.arity, cells, (unsigned)bits);
    }
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
