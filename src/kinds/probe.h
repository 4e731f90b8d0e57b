/*
 * probe.h - k positions among m cells: what classic and the kinds that count
 * in its cells share
 *
 * Enhanced double hashing [1]: with h the hash of a key,
 *
 *     x = h mod m,  y = mix(h) mod m
 *     position i = x, then x += y, y += i + 1 (mod m)        i = 0 .. k-1
 *
 * which is x + i y + (i^3 - i)/6. A filter of counters and a filter of bits
 * with the same m and k therefore use the same cells for a key.
 *
 * Kinds with short ranges use independent positions instead, and new classic
 * filters use h times the powers of a constant (steps.h).
 *
 * A batch of queries is split into pieces. All keys of a piece test their first
 * cell, while the first cells of the next piece are fetched. If many keys fail,
 * the others go on in rounds: they fetch and then test their second cell, then
 * their third. A round has no branch that depends on the data, and the cache
 * misses of all its keys overlap. An absent key fails after about two rounds,
 * whatever k is. A key that survives three rounds, or is in a piece where few
 * fail, is likely to pass, so the rest of its cells are fetched at once.
 *
 * Changes are made in groups: the positions of a group are computed, and its
 * cells are fetched key by key while the previous group is worked on. Queries
 * switch to groups after a piece in which almost no key failed, and stay with
 * them as long as most keys are found: that takes a seventh less time than
 * pieces.
 *
 * [1] Dillinger and Manolios, Bloom Filters in Probabilistic Verification, 2004
 */
#ifndef BLY_PROBE_H
#define BLY_PROBE_H

#include "core/cells.h"
#include "core/maths.h"
#include "core/position.h"
#include "core/unroll.h"
#include "engine/steps.h"
#include "kinds/filter.h"

#define BLY_PROBE_MAX_CELLS (UINT64_C(1) << 48) /* (double)m is exact */
#define BLY_PROBE_MAX_K 255

/* ----------------------------------------------------------------- sizing */

/* The option that chooses between the two rules of maths.h. */
#define BLY_PROBE_RULE_PARAM                                          \
    BLY_PARAM("rule", BLY_CHOICE, .settable = true, .planning = true, \
              .max = 1, .choices = BLY_WORDS("a", "b"),               \
              .help = BLY_AMPLE(                                      \
                  "sizing: a rounds to the nearest, b keeps the rate"))

/* m and k for w: m is `cells`, or follows from w->fpr if that is 0. k is as
 * given, or chosen if it is 0. rule_b is as in maths.h, folds as in fold.h.
 * rate is bly_probe_rate() or, for positions that are as good as independent,
 * bly_fpr_exact(). */
typedef double bly_probe_rater(double n, double m, unsigned k);
bly_status bly_probe_plan(const bly_kind *kind, const bly_want *w,
                          uint64_t cells, uint64_t k, bool rule_b,
                          uint64_t folds, bly_probe_rater *rate, bly_size *out);

/* Find the fewest bits, more than low and at most `most`, with which the shape
 * from best() keeps w->fpr. high doubles until it is enough; then a binary
 * search closes the gap between low and high. best() gives a shape of 0 bytes
 * where the bits are too few. False: more than `most` would be needed, and *out
 * does not keep the rate. */
bool bly_plan_least(const bly_want *w,
                    bly_shape (*best)(const bly_want *w, double bits),
                    double (*rate)(const bly_shape *s, double n), double low,
                    double high, double most, bly_shape *out);

/* The rate with n keys: that of independent probes plus n/m^2, since two keys
 * with equal x and equal y have all positions in common. The second term
 * matters where m is small and the rate is low: it is 17 % of the rate at 1000
 * keys and 0.001 %. */
bly_probe_rater bly_probe_rate;

/* 1 <= k <= m, and neither past its limit. */
bool bly_probe_sane(uint64_t m, uint64_t k);

/* Fill in stats from the number of cells in use. */
void bly_probe_stat(uint64_t used, uint64_t m, uint64_t k, bly_stats *out);

/* Compare two filters whose data begins with m counters each. */
void bly_probe_compare(const bly_filter *a, const bly_filter *b, uint64_t m,
                       uint64_t k, unsigned width, bly_likeness *out);

/* How many counters are in a part, if the data begins with m counters of
 * `width` bits. */
uint64_t bly_probe_cells_in(const bly_part *p, uint64_t m, unsigned width);

/* fetch() for such a kind: the cells of each key that bly_probe_alone() looks
 * at before its first branch. how.stride is not used. */
void bly_probe_announce(const unsigned char *cells, unsigned width,
                        bly_steps how, const uint64_t *h, size_t n);

/* reach() for a kind whose cells of `width` bits begin with byte `first` of the
 * data: reports the k cells of each key. how.stride is not used. */
void bly_probe_reach(const bly_filter *f, uint64_t first, unsigned width,
                     bly_steps how, const uint64_t *h, size_t n, uint64_t *bad);

/* -------------------------------------------------------------- positions */

typedef struct bly_probe {
    uint64_t x, y;
} bly_probe;

static inline bly_probe bly_probe_start(uint64_t h, bly_modulus range)
{
    return (bly_probe){ bly_mod(h, range), bly_mod(bly_mix64(h), range) };
}

/* The next position; i counts from 0. Since k <= m, y + i + 1 exceeds the range
 * at most once. */
static inline uint64_t bly_probe_next(bly_probe *p, uint64_t range, uint64_t i)
{
    const uint64_t at = p->x, x = at + p->y, y = p->y + i + 1;
    uint64_t less;
    p->x = __builtin_sub_overflow(x, range, &less) ? x : less;
    p->y = __builtin_sub_overflow(y, range, &less) ? y : less;
    return at;
}

/* The same by the third rule of steps.h; *g is initially the hash. */
static inline uint64_t bly_probe_power(uint64_t *g, uint64_t range)
{
    const uint64_t at = bly_scale(*g, range);
    *g *= BLY_POWERS_C;
    return at;
}

/* Positions of one key: at[0], at[stride], ... */
typedef struct bly_spots {
    const uint64_t *at;
    size_t stride;
    uint64_t n;
} bly_spots;

static inline uint64_t bly_spot(bly_spots s, uint64_t i)
{
    return s.at[i * s.stride];
}

/* Write the k <= m positions of h to at, repetitions included. */
bly_spots bly_probe_list(uint64_t h, bly_modulus range, uint64_t k,
                         uint64_t *at);

/* Write the distinct positions of s to at, each where it first occurs. */
bly_spots bly_probe_dedupe(bly_spots s, uint64_t *at);

/* Both steps: the distinct positions of h. Whether two may be equal is found as
 * in steps.h, without comparing them all. */
static inline bly_spots bly_probe_different(uint64_t h, bly_modulus range,
                                            uint64_t k, uint64_t *at)
{
    const uint64_t far = bly_steps_far(range.n, k);
    bly_probe p = bly_probe_start(h, range);
    const uint64_t y = p.y;
    uint64_t dy = 0, less;
    bool near = false;
    BLY_UNROLL(8)
    for (uint64_t i = 0; i < k; i++) {
        at[i] = bly_probe_next(&p, range.n, i);
        near |= i && dy - 1 >= far;
        dy += y;
        dy = __builtin_sub_overflow(dy, range.n, &less) ? dy : less;
    }
    const bly_spots all = { at, 1, k };
    return near ? bly_probe_dedupe(all, at) : all;
}

/* For at most 64 keys. Bit j of the result: may two of the k positions of h[j]
 * be equal? */
uint64_t bly_probe_repeats(const uint64_t *h, size_t n, bly_modulus range,
                           uint64_t k);

/* Room for the positions of a block of keys, by steps as in steps.h. They are
 * computed once per block, for as many keys as fit. */
#define BLY_PROBE_ROOM 2048 /* at least BLY_STEPS_LANES keys */

static inline size_t bly_probe_keys(uint64_t k, size_t most)
{
    const size_t fit =
        BLY_PROBE_ROOM / (size_t)k / BLY_STEPS_LANES * BLY_STEPS_LANES;
    return fit < most ? fit : most;
}

/* ---------------------------------------------------------- going by groups */

/* Work on one key, number i of the batch. */
typedef void bly_probe_visit(void *ctx, size_t i, bly_spots at);

#define BLY_PROBE_GROUP 32 /* keys of a group, at most */

/* Should the cells of a batch of n be fetched ahead? Not if at least half of
 * the array fits into L2: the processor keeps up by itself, and a prefetch
 * costs an instruction too. Leaving it out saves up to a fifth of the time for
 * 100,000 keys, a twentieth for a million. A short batch has to wait for its
 * first cells, so it gains only if the whole array is in L2. */
#define BLY_PROBE_CACHED (2 << 20)
#define BLY_PROBE_SURELY (256 << 10)
#define BLY_PROBE_SHORT 512

static inline bool bly_probe_far(uint64_t ncells, unsigned width, size_t n)
{
    const uint64_t nbytes =
        n < BLY_PROBE_SHORT ? BLY_PROBE_SURELY : BLY_PROBE_CACHED;
    return ncells > 8 * nbytes / width;
}

/* Fetch the cells of one key into L2. */
static inline __attribute__((always_inline)) void
bly_probe_fetch_all(const unsigned char *cells, unsigned width, uint64_t k,
                    const uint64_t *at, size_t stride)
{
    BLY_UNROLL(8)
    for (uint64_t i = 0; i < k; i++, at += stride)
        __builtin_prefetch(cells + bly_cell_byte(*at, width), 0, 2);
}

/* bly_probe_each() */
static inline __attribute__((always_inline)) void
bly_probe_each_k(const unsigned char *cells, unsigned width, bly_steps how,
                 bool far, bool different, const uint64_t *h, size_t n,
                 bly_probe_visit *ahead, bly_probe_visit *visit, void *ctx)
{
    const uint64_t k = how.k;
    const size_t per = bly_probe_keys(k, BLY_PROBE_GROUP);
    const bly_steps steps = { how.range, k, per, how.rule, how.apart };
    const bly_steps_row *const row = bly_steps_best();
    uint64_t at[2][BLY_PROBE_ROOM], near[2];
    uint64_t *now = at[0], *next = at[1];
    size_t nnow = n < per ? n : per;
    near[0] = near[1] = 0;
    if (different)
        row->list(&steps, h, nnow, now, &near[0]);
    else
        row->fill(&steps, h, nnow, now);
    for (size_t j = 0; j < nnow; j++) {
        if (far)
            bly_probe_fetch_all(cells, width, k, now + j, per);
        if (ahead)
            ahead(ctx, j, (bly_spots){ now + j, per, k });
    }
    for (size_t from = 0; from < n;) {
        const size_t left = n - from - nnow, nnext = left < per ? left : per;
        if (nnext && different)
            row->list(&steps, h + from + nnow, nnext, next, &near[1]);
        else if (nnext)
            row->fill(&steps, h + from + nnow, nnext, next);
        for (size_t j = 0; j < nnow; j++) {
            if (far && j < nnext)
                bly_probe_fetch_all(cells, width, k, next + j, per);
            if (ahead && j < nnext)
                ahead(ctx, from + nnow + j, (bly_spots){ next + j, per, k });
            const bly_spots spots = { now + j, per, k };
            uint64_t own[BLY_PROBE_MAX_K];
            if (different && __builtin_expect(near[0] >> j & 1, 0)) {
                visit(ctx, from + j, bly_probe_dedupe(spots, own));
                /* Without this, clang makes one call of the two, and k is no
                 * longer a literal in it. */
                __asm__("");
            } else {
                visit(ctx, from + j, spots);
            }
        }
        uint64_t *const swap = now;
        now = next;
        next = swap;
        near[0] = near[1];
        from += nnow;
        nnow = nnext;
    }
}

/* Visit n keys in their order. Where `different` is set, equal positions of a
 * key are visited once (by the first rule of steps.h); otherwise as often as
 * they occur. ahead, unless NULL, is called for every key some time before
 * visit, to fetch what visit needs besides the cells. how.stride is not
 * used. */
static inline __attribute__((always_inline)) void
bly_probe_each(const unsigned char *cells, unsigned width, bly_steps how,
               bool different, const uint64_t *h, size_t n,
               bly_probe_visit *ahead, bly_probe_visit *visit, void *ctx)
{
    const bool far =
        bly_probe_far(how.range.n * (how.apart ? how.k : 1), width, n);
    bly_steps seven = how; /* as in bly_probe_ask() */
    seven.k = 7;
    if (BLY_WASM)
        bly_probe_each_k(cells, width, how, false, different, h, n, ahead,
                         visit, ctx);
    else if (how.k == 7 && !far)
        bly_probe_each_k(cells, width, seven, false, different, h, n, ahead,
                         visit, ctx);
    else if (how.k == 7)
        bly_probe_each_k(cells, width, seven, true, different, h, n, ahead,
                         visit, ctx);
    else
        bly_probe_each_k(cells, width, how, true, different, h, n, ahead, visit,
                         ctx);
}

/* ----------------------------------------------------------------- asking */

/* The tag of a key: 4 bits for each probe, taken from the low end of a word
 * that is rotated; 16 probes use up one word. Independent of the positions. */
static inline uint64_t bly_probe_tag(uint64_t h)
{
    return bly_mix64(bly_mix64(h) + UINT64_C(0x9e3779b97f4a7c15));
}

static inline uint64_t bly_probe_tag_next(uint64_t tag, uint64_t i)
{
    tag = tag >> 4 | tag << 60;
    return i % 16 == 15 ? bly_mix64(tag + UINT64_C(0x9e3779b97f4a7c15)) : tag;
}

/* Does this cell let a key with this tag pass? ctx belongs to the kind. */
typedef bool bly_probe_test(const void *ctx, uint64_t at, uint64_t tag);

/* The test for filters of bits: ctx points to their words. In a shared filter,
 * another thread may set a bit meanwhile. */
static inline __attribute__((always_inline)) bool
bly_probe_bit(const void *words, uint64_t at, uint64_t tag)
{
    (void)tag;
    return bly_le64(bly_word_load((const uint64_t *)words + (at >> 6))) >>
               (at & 63) &
           1;
}

/* What a query needs to know. Where a field is a compile-time constant,
 * whatever follows from it is one too. */
typedef struct bly_probe_query {
    const unsigned char *cells;
    unsigned width;    /* bits of a cell, to know what to fetch */
    bly_modulus range; /* of a position */
    uint64_t k;
    bly_steps_rule rule; /* as in bly_steps */
    uint64_t apart;      /* likewise */
    bool tagged;         /* make tags */
    bool far;            /* set by bly_probe_ask() from bly_probe_far() */
    bly_probe_test *test;
    const void *ctx;
} bly_probe_query;

#define BLY_PROBE_PIECE 256 /* keys at once, at most */
#define BLY_PROBE_FEW 16    /* too few keys for a round */
#define BLY_PROBE_AHEAD 24  /* keys ahead whose other cells are fetched */

/* The keys of a piece that passed all probes so far. */
typedef struct bly_probe_piece {
    const uint64_t *at; /* positions of all keys, by steps */
    size_t stride;
    size_t n;
    uint64_t tag[BLY_PROBE_PIECE]; /* for the next probe */
    uint16_t key[BLY_PROBE_PIECE];
} bly_probe_piece;

static inline __attribute__((always_inline)) void
bly_probe_fetch(const bly_probe_query *q, uint64_t at)
{
    if (q->far)
        __builtin_prefetch(q->cells + bly_cell_byte(at, q->width), 0, 2);
}

/* Rotate the tags of the keys that passed probe i. */
static inline __attribute__((always_inline)) void
bly_probe_turn(const bly_probe_query *q, bly_probe_piece *piece, uint64_t i)
{
    if (q->tagged)
        for (size_t j = 0; j < piece->n; j++) {
            uint64_t *const tag = &piece->tag[piece->key[j]];
            *tag = bly_probe_tag_next(*tag, i);
        }
}

/* Make the first probe of all keys, and meanwhile fetch the first cells of the
 * next piece. */
static inline __attribute__((always_inline)) void
bly_probe_first(const bly_probe_query *q, bly_probe_piece *piece,
                const uint64_t *next, size_t nnext)
{
    const uint64_t *const at = piece->at;
    const size_t n = piece->n, both = n < nnext ? n : nnext;
    size_t kept = 0, j = 0;
#pragma GCC unroll 4
    for (; j < both; j++) {
        bly_probe_fetch(q, next[j]);
        piece->key[kept] = (uint16_t)j;
        kept += q->test(q->ctx, at[j], q->tagged ? piece->tag[j] : 0);
    }
    for (; j < n; j++) {
        piece->key[kept] = (uint16_t)j;
        kept += q->test(q->ctx, at[j], q->tagged ? piece->tag[j] : 0);
    }
    piece->n = kept;
    bly_probe_turn(q, piece, 0);
}

/* Fetch the cell of probe i for the remaining keys; then test it. */
static inline __attribute__((always_inline)) void
bly_probe_call(const bly_probe_query *q, const bly_probe_piece *piece,
               uint64_t i)
{
    const uint64_t *const at = piece->at + i * piece->stride;
#pragma GCC unroll 4
    for (size_t j = 0; j < piece->n; j++)
        bly_probe_fetch(q, at[piece->key[j]]);
}

static inline __attribute__((always_inline)) void
bly_probe_round(const bly_probe_query *q, bly_probe_piece *piece, uint64_t i)
{
    const uint64_t *const at = piece->at + i * piece->stride;
    const size_t n = piece->n;
    size_t kept = 0;
#pragma GCC unroll 4
    for (size_t j = 0; j < n; j++) {
        const uint16_t key = piece->key[j];
        piece->key[kept] = key;
        kept += q->test(q->ctx, at[key], q->tagged ? piece->tag[key] : 0);
    }
    piece->n = kept;
    bly_probe_turn(q, piece, i);
}

static inline __attribute__((always_inline)) void
bly_probe_fetch_rest(const bly_probe_query *q, const bly_probe_piece *piece,
                     size_t j, uint64_t first)
{
    const uint64_t *at = piece->at + piece->key[j];
    BLY_UNROLL(8)
    for (uint64_t i = 1; i < q->k; i++)
        if (i >= first)
            bly_probe_fetch(q, at[i * piece->stride]);
}

/* Make the probes from number `first` on for the remaining keys, most of which
 * will pass. Bit `from` of maybe belongs to the first key of the piece. */
static inline __attribute__((always_inline)) void
bly_probe_rest(const bly_probe_query *q, const bly_probe_piece *piece,
               uint64_t first, size_t from, uint64_t *maybe)
{
    const size_t stride = piece->stride, n = piece->n;
    for (size_t j = 0; j < n && j < BLY_PROBE_AHEAD; j++)
        bly_probe_fetch_rest(q, piece, j, first);
    for (size_t j = 0; j < n; j++) {
        const uint16_t key = piece->key[j];
        const uint64_t *at = piece->at + key;
        uint64_t tag = q->tagged ? piece->tag[key] : 0;
        bool in = true;
        if (j + BLY_PROBE_AHEAD < n)
            bly_probe_fetch_rest(q, piece, j + BLY_PROBE_AHEAD, first);
        BLY_UNROLL(8)
        for (uint64_t i = 1; i < q->k; i++)
            if (i >= first) {
                in &= q->test(q->ctx, at[i * stride], tag);
                if (q->tagged)
                    tag = bly_probe_tag_next(tag, i);
            }
        maybe[(from + key) / 64] |= (uint64_t)in << (from + key) % 64;
    }
}

/* One key alone. A branch after every cell would be mispredicted once per
 * absent key. So there is one branch, after the first three cells: seven in
 * eight absent keys leave there, and the others have all their remaining cells
 * tested. */
#define BLY_PROBE_SURE 3

/* How far a key has come on its way through its cells. */
typedef struct bly_probe_way {
    uint64_t h, tag;
    bly_probe p;
} bly_probe_way;

/* Do the cells from number `from` to `to` - 1 let it pass? */
static inline __attribute__((always_inline)) bool
bly_probe_pass(const bly_probe_query *q, bly_probe_way *w, uint64_t from,
               uint64_t to)
{
    bool in = true;
    /* Not BLY_UNROLL: what clang makes of that branches on each cell. */
#pragma GCC unroll 8
    for (uint64_t i = from; i < to; i++) {
        const uint64_t at =
            q->rule == BLY_STEPS_MIXED
                ? i * q->apart + bly_position(w->h, i, q->range.n)
            : q->rule == BLY_STEPS_POWERS
                ? bly_probe_power(&w->h, q->range.n)
                : bly_probe_next(&w->p, q->range.n, i);
        in &= q->test(q->ctx, at, w->tag);
        if (q->tagged)
            w->tag = bly_probe_tag_next(w->tag, i);
    }
    return in;
}

static inline __attribute__((always_inline)) bool
bly_probe_alone(const bly_probe_query *q, uint64_t h)
{
    bly_probe_way w = { .h = h, .tag = q->tagged ? bly_probe_tag(h) : 0 };
    if (q->rule == BLY_STEPS_DOUBLE)
        w.p = bly_probe_start(h, q->range);
    if (q->k <= BLY_PROBE_SURE)
        return bly_probe_pass(q, &w, 0, q->k);
    return bly_probe_pass(q, &w, 0, BLY_PROBE_SURE) &&
           bly_probe_pass(q, &w, BLY_PROBE_SURE, q->k);
}

#define BLY_PROBE_BLOCK 1024 /* keys until it checks if most were found */

/* For keys that are likely to be there: test all cells of each, in order. */
typedef struct bly_probe_look {
    const bly_probe_query *q;
    const uint64_t *h;
    uint64_t *maybe;
} bly_probe_look;

static inline __attribute__((always_inline)) void
bly_probe_look_at(void *ctx, size_t i, bly_spots at)
{
    const bly_probe_look *const l = ctx;
    const bly_probe_query *const q = l->q;
    uint64_t tag = q->tagged ? bly_probe_tag(l->h[i]) : 0;
    bool in = true;
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++) {
        in &= q->test(q->ctx, bly_spot(at, j), tag);
        if (q->tagged)
            tag = bly_probe_tag_next(tag, j);
    }
    l->maybe[i / 64] |= (uint64_t)in << i % 64;
}

static inline __attribute__((always_inline)) void
bly_probe_likely(const bly_probe_query *q, const uint64_t *h, size_t n,
                 uint64_t *maybe)
{
    const bly_steps steps = { q->range, q->k, 0, q->rule, q->apart };
    bly_probe_look look = { q, h, maybe };
    bly_probe_each_k(q->cells, q->width, steps, q->far, false, h, n, NULL,
                     bly_probe_look_at, &look);
}

/* Query keys of which nothing is known, piece by piece, to the end or until
 * most of a piece pass their first cell. Returns how many keys were queried:
 * all, or a multiple of 64. */
static inline __attribute__((always_inline)) size_t
bly_probe_pieces(const bly_probe_query *q, const uint64_t *h, size_t n,
                 uint64_t *maybe)
{
    const size_t per = bly_probe_keys(q->k, BLY_PROBE_PIECE);
    const bly_steps steps = { q->range, q->k, per, q->rule, q->apart };
    const bly_steps_row *const row = bly_steps_best();
    uint64_t at[3][BLY_PROBE_ROOM];
    bly_probe_piece piece;
    piece.stride = per;
    row->fill(&steps, h, n < per ? n : per, at[0]);
    for (size_t j = 0; j < n && j < per; j++)
        bly_probe_fetch(q, at[0][j]);
    if (n > per)
        row->fill(&steps, h + per, n - per < per ? n - per : per, at[1]);
    for (size_t from = 0, turn = 0; from < n;
         from += per, turn = turn == 2 ? 0 : turn + 1) {
        const size_t left = n - from, after = left > per ? left - per : 0;
        const size_t far = after > per ? after - per : 0;
        const size_t before = left < per ? left : per;
        const uint64_t *next = at[turn == 2 ? 0 : turn + 1];
        uint64_t *beyond = at[turn == 0 ? 2 : turn - 1];
        piece.at = at[turn];
        piece.n = before;
        if (q->tagged)
            for (size_t j = 0; j < piece.n; j++)
                piece.tag[j] = bly_probe_tag(h[from + j]);
        bly_probe_first(q, &piece, next, after < per ? after : per);
        uint64_t i = 1;
        const bool more = q->k > 1 && piece.n > BLY_PROBE_FEW &&
                          piece.n < before - before / 4;
        if (more)
            bly_probe_call(q, &piece, 1);
        if (far)
            row->fill(&steps, h + from + 2 * per, far < per ? far : per,
                      beyond);
        if (more)
            bly_probe_round(q, &piece, i++);
        if (more && q->k > 2) {
            bly_probe_call(q, &piece, 2);
            bly_probe_round(q, &piece, i++);
        }
        const bool most = piece.n > before - before / 8;
        bly_probe_rest(q, &piece, i, from, maybe);
        if (most && (from + before) % 64 == 0)
            return from + before;
    }
    return n;
}

/* bly_probe_ask() for many keys, or one. */
static inline __attribute__((always_inline)) void
bly_probe_ask_k(const bly_probe_query *q, const uint64_t *h, size_t n,
                uint64_t *maybe)
{
    if (n == 1) {
        *maybe |= bly_probe_alone(q, *h);
        return;
    }
    for (size_t done = 0; done < n;) {
        done += bly_probe_pieces(q, h + done, n - done, maybe + done / 64);
        for (size_t nblock = 0, nhits = 0; done < n && 4 * nhits >= 3 * nblock;
             done += nblock) {
            uint64_t *const in = maybe + done / 64;
            nblock = n - done < BLY_PROBE_BLOCK ? n - done : BLY_PROBE_BLOCK;
            bly_probe_likely(q, h + done, nblock, in);
            nhits = 0;
            for (size_t i = 0; i < BLY_BITMAP_WORDS(nblock); i++)
                nhits += (size_t)__builtin_popcountll(in[i]);
        }
    }
}

/* Set the bits of maybe for keys whose k cells all pass. k = 7, which belongs
 * to a rate of 1 % and is the most common, becomes a compile-time constant; so
 * does, in that case, whether cells are fetched ahead. Where prefetching is
 * impossible (WebAssembly), keys are tested one by one. */
static inline __attribute__((always_inline)) void
bly_probe_ask(const bly_probe_query *q, const uint64_t *h, size_t n,
              uint64_t *maybe)
{
    const bool far =
        bly_probe_far(q->range.n * (q->apart ? q->k : 1), q->width, n);
    bly_probe_query any = *q, seven = *q, near = *q;
    any.far = seven.far = true;
    near.far = false;
    seven.k = near.k = 7;
    if (BLY_WASM)
        for (size_t i = 0; i < n; i++)
            maybe[i / 64] |= (uint64_t)bly_probe_alone(q, h[i]) << i % 64;
    else if (q->k == 7 && !far)
        bly_probe_ask_k(&near, h, n, maybe);
    else if (q->k == 7)
        bly_probe_ask_k(&seven, h, n, maybe);
    else
        bly_probe_ask_k(&any, h, n, maybe);
}

#endif
