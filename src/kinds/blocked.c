/*
 * blocked.c - a key lives in one cache line
 *
 * The array is cut into blocks of 512 bits, one cache line each, and a block is
 * cut into k lanes. A key goes to one block and sets one bit in each of its
 * lanes, so a query costs one cache miss, whatever k is.
 *
 *     hash h -> block = h * nblocks / 2^64
 *               g     = h * C, high half folded onto the low half
 *               lane i: bit = w bits of g from bit w i,     w = log2(512/k)
 *
 *     k = 8:  | 64 bits | 64 bits | ... eight words, a bit in each |
 *     k = 4:  |    128 bits     | ... four pairs of words          |
 *     k = 16: | 32 | 32 | ... sixteen half words; lanes 8 to 15 take their
 *                             bits from a second g, with another C
 *
 * k is a power of two, so that a lane is a word, half a word or several words,
 * and a vector unit makes the whole mask in two instructions (engine/lines.h).
 *
 * Rate. Blocks are not equally loaded: the number i of keys in a block has a
 * binomial distribution. The rate is the mean of (1 - (1 - k/512)^i)^k over
 * that distribution [1], and plan() inverts this formula. The price compared
 * with one large array of bits, in bits per key, each with its best k:
 *
 *     rate       3 %    1 %    0.1 %   0.01 %
 *     classic   7.30   9.59   14.38    19.17
 *     blocked   7.56  10.10   15.72    23.01     (k = 4, 8, 8, 16)
 *
 * One million keys at 1 % take 19,728 blocks (1.20 MiB) with k = 8.
 *
 * Below 0.001 % blocks take half as much memory again as one large array, and
 * classic is the better choice unless speed is everything.
 *
 * In memory and on disk a block is eight little-endian words.
 *
 * [1] Putze, Sanders and Singler, Cache-, Hash- and Space-Efficient Bloom
 *     Filters, 2007
 */
#include <math.h>

#include "core/bits.h"
#include "engine/lines.h"
#include "engine/x86_line.h"
#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/fold.h"

#define BLOCKED_MAX_K 16
#define BLOCKED_MAX_BLOCKS (UINT64_C(1) << 40) /* 64 TiB */

enum { BLOCKED_BLOCKS, BLOCKED_K, BLOCKED_FOLDS };

static const bly_param blocked_params[] = {
    [BLOCKED_BLOCKS] = BLY_PARAM("blocks", BLY_UINT, .min = 1,
                                 .max = (double)BLOCKED_MAX_BLOCKS,
                                 .help = BLY_AMPLE("blocks of 512 bits")),
    [BLOCKED_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = BLOCKED_MAX_K,
                  .help = BLY_AMPLE("bits a key sets: 1, 2, 4, 8 or 16")),
    [BLOCKED_FOLDS] = BLY_FOLDS_PARAM,
};

static bool blocked_k_ok(uint64_t k)
{
    return k >= 1 && k <= BLOCKED_MAX_K && !(k & (k - 1));
}

static bly_shape blocked_shape(uint64_t nblocks, uint64_t k)
{
    return (bly_shape){ .p = { [BLOCKED_BLOCKS] = nblocks, [BLOCKED_K] = k },
                        .nbytes = nblocks * (BLY_LINE_BITS / 8) };
}

static bool blocked_sane(const bly_shape *s)
{
    const uint64_t nblocks = s->p[BLOCKED_BLOCKS];
    return nblocks >= 1 && nblocks <= BLOCKED_MAX_BLOCKS &&
           blocked_k_ok(s->p[BLOCKED_K]) &&
           s->nbytes == nblocks * (BLY_LINE_BITS / 8);
}

static double blocked_rate(const bly_shape *s, double n)
{
    const double k = (double)s->p[BLOCKED_K];
    return bly_fpr_mixture(n, (double)s->p[BLOCKED_BLOCKS], BLY_LINE_BITS / k,
                           1, k);
}

/* The smallest number of blocks that keeps the rate with this k; more than
 * BLOCKED_MAX_BLOCKS if no number does. */
static uint64_t blocked_least(double n, double fpr, uint64_t k)
{
    bly_shape s;
    /* low is too few, high is enough. No filter keeps the rate with fewer than
     * n log2(1/fpr) bits. The fuller the lines, the longer the rate takes to
     * compute, so the search begins with half of that bound, not with one
     * line. */
    const double half = floor(-log2(fpr) * n / (2 * BLY_LINE_BITS));
    uint64_t low = 0, high = half > 1 ? (uint64_t)half : 1;
    while (s = blocked_shape(high, k), blocked_rate(&s, n) > fpr) {
        low = high;
        high *= 2;
        /* More than the limit: this k will not do. */
        if (high > 2 * BLOCKED_MAX_BLOCKS)
            return high;
    }
    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        s = blocked_shape(mid, k);
        if (blocked_rate(&s, n) > fpr)
            low = mid;
        else
            high = mid;
    }
    return high;
}

static bly_status blocked_plan(const bly_want *w, bly_shape *out)
{
    const double n = (double)w->items;
    const uint64_t only = w->opt[BLOCKED_K];
    if (only && !blocked_k_ok(only))
        return bly_fail(BLY_EINVAL,
                        "k = %llu: a blocked filter has k = 1, 2, "
                        "4, 8 or 16",
                        (unsigned long long)only);
    if (w->bits && w->bits < BLY_LINE_BITS)
        return bly_fail(BLY_EINVAL,
                        "a blocked filter needs at least 512 bits, "
                        "not %llu",
                        (unsigned long long)w->bits);

    const uint64_t folds = w->opt[BLOCKED_FOLDS];
    /* 0 blocks means "follow from the rate": then there is nothing to round
     * here, and the loop rounds the number that each k needs. */
    uint64_t given = w->bits / BLY_LINE_BITS;
    const bly_status st = bly_fold_plan(folds, 1, true, &given);
    if (st)
        return st;
    uint64_t best = UINT64_MAX;
    double best_rate = 2;
    for (uint64_t k = 1; k <= BLOCKED_MAX_K; k *= 2) {
        if (only && k != only)
            continue;
        uint64_t nblocks = given ? given : blocked_least(n, w->fpr, k);
        bly_fold_plan(folds, 1, false, &nblocks);
        const bly_shape s = blocked_shape(nblocks, k);
        const double rate = blocked_rate(&s, n);
        /* The fewest blocks win. Where the memory is given, all numbers are
         * equal, and the lowest rate wins. */
        if (nblocks < best || (nblocks == best && rate < best_rate)) {
            best = nblocks;
            best_rate = rate;
            *out = s;
        }
    }
    if (best > BLOCKED_MAX_BLOCKS)
        return bly_fail(BLY_ERANGE, "a blocked filter has at most 2^40 blocks; "
                                    "ask for fewer items or a higher rate");
    return BLY_OK;
}

static bly_lines blocked_lines(const bly_filter *f)
{
    return (bly_lines){ .words = (uint64_t *)(void *)f->data,
                        .nlines = f->shape.p[BLOCKED_BLOCKS],
                        .k = (unsigned)f->shape.p[BLOCKED_K] };
}

/* A vector store writes a whole line, and would undo bits that other threads
 * have set in the meantime. So shared filters work word by word. */
static const bly_lines_row *blocked_row(const bly_filter *f)
{
    return f->shared ? bly_lines_best()->shared : bly_lines_best();
}

/* Integers are hashed in the loop that uses them, several at a time, and never
 * stored as hashes. */
static bly_lines_keys blocked_ints(const bly_filter *f, const uint64_t *ints,
                                   size_t n)
{
    const bly_hasher *const hs = &f->extra->hasher;
    const bool folded = bly_filter_folds(f);
    return (
        bly_lines_keys){ ints, n, folded ? BLY_LINES_FOLDED : BLY_LINES_INTS,
                         folded ? f->extra->turned : bly_int_flip(hs->seed) };
}

static void blocked_has(const bly_filter *f, const uint64_t *h, size_t n,
                        uint64_t *maybe)
{
    const bly_lines lines = blocked_lines(f);
    const bly_lines_keys keys = { .at = h, .n = n };
    blocked_row(f)->has(&lines, &keys, maybe);
}

static void blocked_has_ints(const bly_filter *f, const uint64_t *ints,
                             size_t n, uint64_t *maybe)
{
    const bly_lines lines = blocked_lines(f);
    const bly_lines_keys keys = blocked_ints(f, ints, n);
    blocked_row(f)->has(&lines, &keys, maybe);
}

static void blocked_reach(const bly_filter *f, const uint64_t *h, size_t n,
                          uint64_t *bad)
{
    const uint64_t nblocks = f->shape.p[BLOCKED_BLOCKS];
    for (size_t i = 0; i < n; i++)
        bly_reach(f, bly_scale(h[i], nblocks) * BLY_LINE, BLY_LINE, i, bad);
}

static void blocked_fetch(const bly_filter *f, const uint64_t *h, size_t n)
{
    const unsigned char *const blocks = f->data;
    const uint64_t nblocks = f->shape.p[BLOCKED_BLOCKS];
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(blocks + bly_scale(h[i], nblocks) * BLY_LINE, 0, 2);
}

static uint64_t blocked_sites(const bly_shape *s)
{
    return s->p[BLOCKED_BLOCKS];
}

static bly_status blocked_add(bly_filter *f, const uint64_t *h, size_t n,
                              uint64_t *fresh, size_t *ndone)
{
    const bly_lines lines = blocked_lines(f);
    const bly_lines_keys keys = { .at = h, .n = n };
    bly_filter_added(f, blocked_row(f)->add(&lines, &keys, fresh));
    *ndone = n;
    return BLY_OK;
}

static bly_status blocked_add_ints(bly_filter *f, const uint64_t *ints,
                                   size_t n, uint64_t *fresh, size_t *ndone)
{
    const bly_lines lines = blocked_lines(f);
    const bly_lines_keys keys = blocked_ints(f, ints, n);
    bly_filter_added(f, blocked_row(f)->add(&lines, &keys, fresh));
    *ndone = n;
    return BLY_OK;
}

/* One key. With k = 8, the most common, hash, line and mask are one function
 * for this processor. */
BLY_ONE_BODY uint64_t *blocked_line(const bly_filter *f, uint64_t h)
{
    uint64_t *words = (uint64_t *)(void *)f->data;
    /* Keep it in a register: that saves an addition between hash and line. */
    __asm__("" : "+r"(words));
    return words + bly_block_at_(h, f->shape.p[BLOCKED_BLOCKS]);
}

#define BLOCKED_EIGHT(row, target)                                       \
    static inline target                                                 \
        __attribute__((always_inline)) bool blocked_eight_##row(         \
            const bly_filter *f, uint64_t h, bool add)                   \
    {                                                                    \
        return bly_line_single_##row(blocked_line(f, h), h, add) ==      \
               UINT64_MAX;                                               \
    }                                                                    \
    static inline target                                                 \
        __attribute__((always_inline)) bool blocked_has_##row##_body(    \
            const bly_filter *f, uint64_t h)                             \
    {                                                                    \
        return blocked_eight_##row(f, h, false);                         \
    }                                                                    \
    static inline target __attribute__((always_inline))                  \
    bly_status blocked_add_##row##_body(bly_filter *f, uint64_t h)       \
    {                                                                    \
        f->nadded += !blocked_eight_##row(f, h, true);                   \
        return BLY_OK;                                                   \
    }                                                                    \
    BLY_ONE_HAS_FOR(target, blocked_has_##row, blocked_has_##row##_body) \
    BLY_ONE_ADD_FOR(target, blocked_add_##row, blocked_add_##row##_body)
BLY_LINE_TARGETS(BLOCKED_EIGHT)
#undef BLOCKED_EIGHT

/* For any k, and for many writers: aid is the address of the row. */
BLY_ONE_BODY const bly_lines_row *blocked_aid(const bly_filter *f)
{
    return (const void *)(uintptr_t)f->aid;
}

BLY_ONE_BODY bool blocked_has_body(const bly_filter *f, uint64_t h)
{
    return blocked_aid(f)->has_one((uint64_t *)(void *)f->data,
                                   f->shape.p[BLOCKED_BLOCKS],
                                   (unsigned)f->shape.p[BLOCKED_K], h);
}

BLY_ONE_BODY bly_status blocked_add_body(bly_filter *f, uint64_t h)
{
    bly_filter_added(f, blocked_aid(f)->add_one((uint64_t *)(void *)f->data,
                                                f->shape.p[BLOCKED_BLOCKS],
                                                (unsigned)f->shape.p[BLOCKED_K],
                                                h));
    return BLY_OK;
}

BLY_ONE_HAS(blocked_has_one, blocked_has_body)
BLY_ONE_ADD(blocked_add_one, blocked_add_body)

static void blocked_one(const bly_filter *f, bly_one *out)
{
    const bly_lines_row *const row = blocked_row(f);
    out->aid = (uintptr_t)row;
    BLY_ONE_SET_HAS(out, blocked_has_one);
    BLY_ONE_SET_ADD(out, blocked_add_one);
#define BLOCKED_CHOOSE(name, target)                                      \
    if (f->shape.p[BLOCKED_K] == 8 && row->has == bly_lines_has_##name) { \
        BLY_ONE_SET_HAS_FOR(out, blocked_has_##name);                     \
        BLY_ONE_SET_ADD_FOR(out, blocked_add_##name);                     \
    }
    BLY_LINE_TARGETS(BLOCKED_CHOOSE)
#undef BLOCKED_CHOOSE
#define BLOCKED_CHOOSE(name, target)                                     \
    if (bly_filter_live(f) && f->shared && f->shape.p[BLOCKED_K] == 8 && \
        row->has == bly_lines_has_shared_##name)                         \
        BLY_ONE_SET_HAS_FOR(out, blocked_has_##name);
    BLY_LINE_SHARED_TARGETS(BLOCKED_CHOOSE)
#undef BLOCKED_CHOOSE
}

bool bly_blocked_view(const bly_filter *f, bly_blocked *out)
{
    if (!bly_filter_viewed(f, &bly_kind_blocked, out))
        return false;
    *out = (bly_blocked){
        .words = (const uint64_t *)(const void *)f->data,
        .nblocks = f->shape.p[BLOCKED_BLOCKS],
        .flip = blocked_ints(f, NULL, 0).flip,
        .k = (uint32_t)f->shape.p[BLOCKED_K],
        .folded = bly_filter_folds(f),
    };
    return true;
}

bool bly_blocked_adder_of(bly_filter *f, bly_blocked_adder *out)
{
    bly_blocked view = { 0 };
    if (!out || !bly_blocked_view(f, &view) || f->readonly)
        return false;
    f->written = true;
    *out = (bly_blocked_adder){ view, (uint64_t *)(void *)f->data };
    return true;
}

bly_status bly_blocked_added(bly_filter *f, uint64_t n)
{
    if (!f)
        return bly_fail_null("f");
    if (f->kind != &bly_kind_blocked || f->readonly)
        return bly_fail(BLY_EINVAL, "only what was added to a blocked filter "
                                    "without a call is counted by a call");
    bly_filter_added(f, n);
    return BLY_OK;
}

static bly_bitset blocked_bitset(const bly_filter *f)
{
    const double k = (double)f->shape.p[BLOCKED_K];
    return (bly_bitset){
        .words = (const uint64_t *)(const void *)f->data,
        .nwords = f->shape.nbytes / 8,
        .m = 8.0 * (double)f->shape.nbytes,
        .k = k,
        .width = BLY_LINE_BITS / k,
    };
}

/* The rate now: the mean of the rates in each line. Lines are not equally full,
 * so it is more than the overall fill to the power of k. */
static double blocked_rate_now(const bly_filter *f)
{
    const unsigned k = (unsigned)f->shape.p[BLOCKED_K];
    const unsigned width = BLY_LINE_BITS / k;
    const uint64_t *line = (const uint64_t *)(const void *)f->data;
    double sum = 0;
    for (uint64_t b = 0; b < f->shape.p[BLOCKED_BLOCKS]; b++) {
        double rate = 1;
        for (unsigned lane = 0; lane < k; lane++) {
            unsigned ones = 0;
            /* A lane is several words, one word, or (k = 16) half of one. */
            for (unsigned at = lane * width; at < (lane + 1) * width;
                 at += width < 64 ? width : 64) {
                uint64_t word = bly_le64(line[at / 64]) >> (at % 64);
                if (width < 64)
                    word &= (UINT64_C(1) << width) - 1;
                ones += (unsigned)__builtin_popcountll(word);
            }
            rate *= (double)ones / width;
        }
        sum += rate;
        line += BLY_LINE_WORDS;
    }
    return sum / (double)f->shape.p[BLOCKED_BLOCKS];
}

static void blocked_stat(const bly_filter *f, bly_stats *out)
{
    bly_bitset_stat(f, out);
    out->fpr_now = blocked_rate_now(f);
}

/* Blocks 2j and 2j + 1 become one block; the bits of a key within its block do
 * not depend on the number of blocks. */
static bly_status blocked_fold(const bly_filter *f, bly_filter **out)
{
    const uint64_t n = f->shape.p[BLOCKED_BLOCKS];
    const bly_shape half = blocked_shape(n / 2, f->shape.p[BLOCKED_K]);
    const bly_status st = bly_fold_begin(f, n, "blocks", &half, out);
    if (st)
        return st;
    const uint64_t *from = (const uint64_t *)(const void *)f->data;
    uint64_t *to = (uint64_t *)(void *)(*out)->data;
    /* The inner loop walks through block 2j, and the outer one skips 2j + 1. */
    for (uint64_t b = 0; b < n / 2; b++, from += BLY_LINE_WORDS)
        for (unsigned i = 0; i < BLY_LINE_WORDS; i++, from++)
            *to++ = from[0] | from[BLY_LINE_WORDS];
    return BLY_OK;
}

static uint64_t blocked_raw(const bly_shape *s)
{
    return 8 * s->nbytes;
}

const bly_kind bly_kind_blocked = {
    .id = 2, /* on disk: never changed, never reused */
    .name = "blocked",
    .summary =
        BLY_AMPLE("one cache line per key; the fastest, for a few more bits"),
    .params = blocked_params,
    .nparams = sizeof blocked_params / sizeof blocked_params[0],
    .lines = true,
    .plan = blocked_plan,
    .sane = blocked_sane,
    .rate = blocked_rate,
    .reach = BLY_SYSTEM(blocked_reach),
    .bitset = blocked_bitset,
    .stat = blocked_stat,
    .sites = BLY_SYSTEM(blocked_sites),
    .one = blocked_one,
    .add = blocked_add,
    .add_shared = BLY_AMPLE(blocked_add),
    .has = blocked_has,
    .add_ints = blocked_add_ints,
    .has_ints = blocked_has_ints,
    .fetch = BLY_SYSTEM(blocked_fetch),
    .merge = BLY_AMPLE(bly_bitset_merge),
    .merge_part = BLY_AMPLE(bly_bitset_merge_part),
    .intersect = BLY_AMPLE(bly_bitset_intersect),
    .intersect_part = BLY_AMPLE(bly_bitset_intersect_part),
    .compare = BLY_AMPLE(bly_bitset_compare),
    .fold = BLY_AMPLE(blocked_fold),
    .raw = blocked_raw,
};
