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
 * Asking goes round by round: all keys of a piece test their first cell, those
 * that passed fetch and then test their second, and so on. A round has no
 * branch that depends on the data and overlaps the cache misses of all its
 * keys; a key that is absent leaves after about two rounds, whatever k is. Who
 * is left after three is likely to stay, and has the rest tested at once.
 *
 * Changing goes by groups: the positions of a group are computed and fetched
 * while the group before is worked on.
 *
 * [1] Dillinger and Manolios, Bloom Filters in Probabilistic Verification, 2004
 */
#ifndef BLY_PROBE_H
#define BLY_PROBE_H

#include "core/cells.h"
#include "core/maths.h"
#include "kinds/filter.h"

#define BLY_PROBE_MAX_CELLS (UINT64_C(1) << 48) /* (double)m is exact */
#define BLY_PROBE_MAX_K 255

/* ----------------------------------------------------------------- sizing */

/* The option that chooses between the two rules of maths.h. */
#define BLY_PROBE_RULE_PARAM                                        \
    {                                                               \
        .name = "rule", .type = BLY_CHOICE, .settable = true,       \
        .planning = true, .max = 1,                                 \
        .choices = (const char *const[]){ "a", "b", NULL },         \
        .help = "sizing: a rounds to the nearest, b keeps the rate" \
    }

/* m and k for w: from w->fpr, or for `cells` of them where that is not 0. k
 * is as given, or chosen where it is 0; rule_b as in maths.h, folds as in
 * fold.h. */
bly_status bly_probe_plan(const bly_kind *kind, const bly_want *w,
                          uint64_t cells, uint64_t k, bool rule_b,
                          uint64_t folds, bly_size *out);

/* The rate of n keys: that of independent probes, and n/m^2, since two keys of
 * one x and one y have all positions in common. It shows where m is small and
 * the rate is low: 17 % of it at 1000 keys and 0.001 %. */
double bly_probe_rate(double n, double m, unsigned k);

/* 1 <= k <= m, and neither past its limit. */
bool bly_probe_sane(uint64_t m, uint64_t k);

/* Fill in stats from the number of cells in use. */
void bly_probe_stat(uint64_t used, uint64_t m, uint64_t k, bly_stats *out);

/* What two filters of m counters share, whose first bytes these are. */
void bly_probe_compare(const bly_filter *a, const bly_filter *b, uint64_t m,
                       uint64_t k, unsigned width, bly_likeness *out);

/* The counters of `width` bits, of m there are from the first byte of data on,
 * that are in a part. */
uint64_t bly_probe_cells_in(const bly_part *p, uint64_t m, unsigned width);

/* -------------------------------------------------------------- positions */

typedef struct bly_probe {
    uint64_t x, y;
} bly_probe;

static inline bly_probe bly_probe_start(uint64_t h, bly_modulus range)
{
    return (bly_probe){ bly_mod(h, range), bly_mod(bly_mix64(h), range) };
}

/* The next position; i counts from 0. Since k <= m, y + i + 1 passes the range
 * once at most. */
static inline uint64_t bly_probe_next(bly_probe *p, uint64_t range, uint64_t i)
{
    const uint64_t at = p->x, x = at + p->y, y = p->y + i + 1;
    p->x = x >= range ? x - range : x;
    p->y = y >= range ? y - range : y;
    return at;
}

/* The positions of h, k <= m of them, into at. True if two of them may be one.
 *
 * Positions i < j are one if d y + c = 0 (mod m) for d = j - i and for c the
 * difference of their cubic terms, which is at most (k^3 - k)/6. So it is
 * enough to look whether one of y, 2y, .. (k-1)y comes so near to a multiple
 * of m from below, or is one: k looks in place of k^2/2. */
static inline bool bly_probe_list(uint64_t h, bly_modulus range, uint64_t k,
                                  uint64_t *at)
{
    const uint64_t m = range.n, cubic = (k * k * k - k) / 6;
    const uint64_t far = m > cubic ? m - cubic - 1 : 0;
    bly_probe p = bly_probe_start(h, range);
    const uint64_t y = p.y;
    uint64_t dy = 0;
    bool near = false;
    at[0] = p.x;
    for (uint64_t i = 1; i < k; i++) {
        p.x += p.y;
        p.x = p.x >= m ? p.x - m : p.x;
        p.y += i;
        p.y = p.y >= m ? p.y - m : p.y;
        at[i] = p.x;
        dy += y;
        dy = dy >= m ? dy - m : dy;
        near |= dy - 1 >= far; /* dy = 0 becomes the greatest of all */
    }
    return near;
}

/* Leave the first of equal positions; returns how many are left. */
uint64_t bly_probe_dedupe(uint64_t *at, uint64_t k);

/* Whether some of the k positions of h may be one, for whom asks after the
 * fact. */
static inline bool bly_probe_repeats(uint64_t h, bly_modulus range, uint64_t k)
{
    uint64_t at[BLY_PROBE_MAX_K];
    return bly_probe_list(h, range, k, at);
}

/* ----------------------------------------------------------------- asking */

/* What goes along with a key: 4 bits for each probe, of the low end of a word
 * that turns; 16 probes use one word up. Independent of the positions. */
static inline uint64_t bly_probe_tag(uint64_t h)
{
    return bly_mix64(bly_mix64(h) + UINT64_C(0x9e3779b97f4a7c15));
}

static inline uint64_t bly_probe_tag_next(uint64_t tag, uint64_t i)
{
    tag = tag >> 4 | tag << 60;
    return i % 16 == 15 ? bly_mix64(tag + UINT64_C(0x9e3779b97f4a7c15)) : tag;
}

/* Whether a cell lets the key with this tag pass. ctx is the kind's. */
typedef bool bly_probe_test(const void *ctx, uint64_t at, uint64_t tag);

/* What asking works on. Where a field is a literal, so is what follows. */
typedef struct bly_probe_query {
    const unsigned char *cells;
    unsigned width;    /* bits of a cell, to know what to fetch */
    bly_modulus range; /* of a position */
    uint64_t k;
    bool tagged; /* make tags */
    bly_probe_test *test;
    const void *ctx;
} bly_probe_query;

#define BLY_PROBE_PIECE 512
#define BLY_PROBE_ROUNDS 3
#define BLY_PROBE_ROOM 256 /* positions at once; at least one key's */

/* Keys of a piece that have passed all probes so far. */
typedef struct bly_probe_piece {
    size_t n;
    bly_probe p[BLY_PROBE_PIECE];
    uint64_t tag[BLY_PROBE_PIECE];
    uint16_t key[BLY_PROBE_PIECE];
} bly_probe_piece;

/* Probe number i, and those that pass go on to the next. */
static inline __attribute__((always_inline)) void
bly_probe_round(const bly_probe_query *q, bly_probe_piece *piece, uint64_t i)
{
    const uint64_t m = q->range.n;
    const size_t n = piece->n;
    size_t kept = 0;
    for (size_t j = 0; j < n; j++) {
        const uint64_t x = piece->p[j].x, y = piece->p[j].y;
        const uint64_t tag = q->tagged ? piece->tag[j] : 0;
        const bool in = q->test(q->ctx, x, tag);
        uint64_t x2 = x + y, y2 = y + i + 1;
        x2 -= m & -(uint64_t)(x2 >= m);
        y2 -= m & -(uint64_t)(y2 >= m);
        piece->p[kept] = (bly_probe){ x2, y2 };
        piece->key[kept] = piece->key[j];
        if (q->tagged)
            piece->tag[kept] = bly_probe_tag_next(tag, i);
        /* Who leaves fetches what is there already. */
        const uint64_t next = x ^ ((x ^ x2) & -(uint64_t)in);
        __builtin_prefetch(q->cells + bly_cell_byte(next, q->width), 0, 2);
        kept += in;
    }
    piece->n = kept;
}

/* The probes from number `first` on, for a few keys at a time: most of those
 * that came so far will pass, so all their cells are fetched at once. */
static inline __attribute__((always_inline)) void
bly_probe_rest(const bly_probe_query *q, bly_probe_piece *piece, uint64_t first)
{
    const size_t per = BLY_PROBE_ROOM / (size_t)(q->k - first);
    uint64_t at[BLY_PROBE_ROOM];
    size_t kept = 0;
    for (size_t from = 0; from < piece->n; from += per) {
        const size_t to = piece->n - from < per ? piece->n : from + per;
        uint64_t *put = at;
        for (size_t j = from; j < to; j++)
            for (uint64_t i = first; i < q->k; i++, put++) {
                *put = bly_probe_next(&piece->p[j], q->range.n, i);
                __builtin_prefetch(q->cells + bly_cell_byte(*put, q->width), 0,
                                   2);
            }
        const uint64_t *get = at;
        for (size_t j = from; j < to; j++) {
            uint64_t tag = q->tagged ? piece->tag[j] : 0;
            bool in = true;
            for (uint64_t i = first; i < q->k; i++, get++) {
                in &= q->test(q->ctx, *get, tag);
                if (q->tagged)
                    tag = bly_probe_tag_next(tag, i);
            }
            piece->key[kept] = piece->key[j];
            kept += in;
        }
    }
    piece->n = kept;
}

/* Set the bits of maybe, which are zero, for keys whose k cells all pass. */
static inline __attribute__((always_inline)) void
bly_probe_ask(const bly_probe_query *q, const uint64_t *h, size_t n,
              uint64_t *maybe)
{
    const uint64_t rounds = q->k < BLY_PROBE_ROUNDS ? q->k : BLY_PROBE_ROUNDS;
    bly_probe_piece piece;
    for (size_t from = 0; from < n; from += BLY_PROBE_PIECE) {
        piece.n = n - from < BLY_PROBE_PIECE ? n - from : BLY_PROBE_PIECE;
        for (size_t j = 0; j < piece.n; j++) {
            piece.p[j] = bly_probe_start(h[from + j], q->range);
            piece.key[j] = (uint16_t)j;
            if (q->tagged)
                piece.tag[j] = bly_probe_tag(h[from + j]);
            __builtin_prefetch(q->cells + bly_cell_byte(piece.p[j].x, q->width),
                               0, 2);
        }
        for (uint64_t i = 0; i < rounds; i++)
            bly_probe_round(q, &piece, i);
        if (q->k > rounds)
            bly_probe_rest(q, &piece, rounds);
        for (size_t j = 0; j < piece.n; j++)
            maybe[(from + piece.key[j]) / 64] |= UINT64_C(1)
                                                 << (from + piece.key[j]) % 64;
    }
}

/* --------------------------------------------------------------- changing */

/* Work on one key: number i of the batch, with its nat different positions. */
typedef void bly_probe_visit(void *ctx, size_t i, const uint64_t *at,
                             uint64_t nat);

#define BLY_PROBE_GROUP 32 /* keys of a group, at most */

typedef struct bly_probe_group {
    uint64_t at[BLY_PROBE_ROOM];
    uint64_t count[BLY_PROBE_GROUP]; /* positions of each key */
} bly_probe_group;

static inline __attribute__((always_inline)) void
bly_probe_fill(bly_probe_group *g, const unsigned char *cells, unsigned width,
               bly_modulus range, uint64_t k, const uint64_t *h, size_t n)
{
    uint64_t *at = g->at;
    for (size_t j = 0; j < n; j++) {
        uint64_t nat = k;
        if (bly_probe_list(h[j], range, k, at))
            nat = bly_probe_dedupe(at, k);
        for (uint64_t i = 0; i < nat; i++)
            __builtin_prefetch(cells + bly_cell_byte(at[i], width), 0, 2);
        g->count[j] = nat;
        at += nat;
    }
}

/* Visit n keys in their order. */
static inline __attribute__((always_inline)) void
bly_probe_each(const unsigned char *cells, unsigned width, bly_modulus range,
               uint64_t k, const uint64_t *h, size_t n, bly_probe_visit *visit,
               void *ctx)
{
    const size_t per = (size_t)(BLY_PROBE_ROOM / k) < BLY_PROBE_GROUP
                           ? (size_t)(BLY_PROBE_ROOM / k)
                           : BLY_PROBE_GROUP;
    bly_probe_group groups[2];
    unsigned now = 0;
    bly_probe_fill(&groups[0], cells, width, range, k, h, n < per ? n : per);
    for (size_t from = 0; from < n; from += per, now ^= 1) {
        const size_t ng = n - from < per ? n - from : per;
        if (from + ng < n) {
            const size_t after = n - from - ng;
            bly_probe_fill(&groups[now ^ 1], cells, width, range, k,
                           h + from + ng, after < per ? after : per);
        }
        const uint64_t *at = groups[now].at;
        for (size_t j = 0; j < ng; j++) {
            visit(ctx, from + j, at, groups[now].count[j]);
            at += groups[now].count[j];
        }
    }
}

#endif
