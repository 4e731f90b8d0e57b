/*
 * tdigest.c - where the values of a stream lie: a merging t-digest
 *
 * Values wait in a buffer. When it is full they are sorted and merged with the
 * means so far, from left to right; neighbours become one mean as long as
 * their share of the total weight n stays small [1]:
 *
 *     share <= q (1 - q) / G    where q is the share of all that lies below,
 *                               asked at both of its ends
 *     G = F c / (2 pi ln n)     c: the compression; F: 6, or 1 in RedisBloom
 *
 *     weight      1 1 2  5   14    40      90      41   13   5  2 1 1
 *     means      -+-+-+--+----+-----+-------+-------+----+---+--+-+-+-
 *                min             median                            max
 *
 * So means are fine at the ends, where a value makes a large difference in
 * rank relative to what lies beyond it, and the least and the greatest value
 * have means of their own. A quantile is interpolated between the two means
 * around it, half of whose weight lies on either side of them.
 *
 * A value that came often is kept apart (not in RedisBloom's scale): it has
 * three means, of which the outer ones weigh 1, so that no line is drawn from
 * it to its neighbours. Otherwise the median of what is 0 more often than not
 * would be something between 0 and 1.
 *
 * Two neighbours together have more than the share above, so that a pair moves
 * q / (1 - q) by a factor of at least 1 + 1 / (2 G), and with all weights 1 or
 * more there are at most
 *
 *     4 (2 G + 1) ln n + 8 = 4 F c / pi + 4 ln n + 8
 *
 * means: that many weights are room enough, whatever waits; and a value is kept
 * apart only where that leaves room for all others. Compression 100
 * gives about 300 of them for 10^7 values (RedisBloom: 57).
 *
 * RedisBloom's scale has its buffer as well (6 c + 10 means and values
 * together, less one), so that a sketch there and here go the same way, but for
 * what docs/redis.md lists (adapters/redis/redis_tdigest.c).
 *
 * [1] Dunning and Ertl, Computing extremely accurate quantiles using t-digests,
 *     2019
 */
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/sized.h"
#include "core/status.h"
#include "host/tdigest_host.h"
#include "sketch/tdigest.h"
#include "sketch/tdigest_merge.h"

#define TDIGEST_COMPRESSION 100
#define TDIGEST_MOST_COMPRESSION 5e8 /* 32 bits of means and values */
#define TDIGEST_ROOM 2048
#define TDIGEST_FIRST_ROOM 16

/* ------------------------------------------------------------------ making */

static double tdigest_fine(const bly_tdigest *t)
{
    return t->scale == BLY_TDIGEST_REDISBLOOM ? 1 : 6;
}

double bly_tdigest_fineness(const bly_tdigest *t, double n)
{
    return tdigest_fine(t) * t->compression / (2 * BLY_TDIGEST_PI * log(n));
}

uint64_t bly_tdigest_limit(const bly_tdigest *t)
{
    return (uint64_t)(4 * tdigest_fine(t) * t->compression / BLY_TDIGEST_PI +
                      4 * log(BLY_TDIGEST_MOST_WEIGHT) + 8);
}

uint64_t bly_tdigest_most(const bly_tdigest *t)
{
    return t->scale == BLY_TDIGEST_REDISBLOOM
               ? 6 * (uint64_t)t->compression + 9
               : bly_tdigest_limit(t) + TDIGEST_ROOM;
}

static const bly_mem *tdigest_memory(const bly_tdigest *t)
{
    return t->memory == BLY_MEM_OWN ? t->own : bly_mem_numbered(t->memory);
}

/* Without the means. */
static size_t tdigest_size(const bly_tdigest *t)
{
    return sizeof *t + (t->memory == BLY_MEM_OWN) * sizeof t->own[0];
}

static size_t tdigest_block(const bly_tdigest *t)
{
    return (t->room + bly_tdigest_wroom(t)) * sizeof *t->means;
}

bool bly_tdigest_sane(double compression, uint32_t scale)
{
    return compression >= 1 && compression <= TDIGEST_MOST_COMPRESSION &&
           scale <= BLY_TDIGEST_REDISBLOOM;
}

static void tdigest_reset(bly_tdigest *t)
{
    t->min = INFINITY;
    t->max = -INFINITY;
    t->merged_weight = t->waiting_weight = 0;
    t->ncompressions = 0;
    t->nmerged = t->nwaiting = 0;
    t->weighted = bly_tdigest_is_large(t);
}

bly_status bly_tdigest_new_sized(const bly_tdigest_spec *spec,
                                 bly_tdigest **out, size_t size)
{
    bly_tdigest_spec own = { 0 };
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (spec && !(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    const bly_tdigest_spec *const s = spec ? spec : &own;
    const double c = s->compression != 0 ? s->compression : TDIGEST_COMPRESSION;
    if (!bly_tdigest_sane(c, s->scale))
        return bly_fail(BLY_EINVAL,
                        "a compression of %g: it must be from 1 to %g", c,
                        TDIGEST_MOST_COMPRESSION);
    const bly_mem *const mem = s->mem ? s->mem : &bly_mem_system;
    const unsigned number = bly_mem_number(mem);
    bly_tdigest *const t =
        bly_mem_zalloc(mem, sizeof *t + (number == BLY_MEM_OWN) * sizeof *mem);
    if (!t)
        return bly_fail(BLY_ENOMEM, "out of memory");
    t->memory = (uint8_t)number;
    if (number == BLY_MEM_OWN)
        t->own[0] = *mem;
    t->compression = c;
    t->scale = (uint8_t)s->scale;
    tdigest_reset(t);
    *out = t;
    return BLY_OK;
}

static void tdigest_release(const bly_tdigest *t)
{
    if (t->means)
        bly_mem_release(tdigest_memory(t), t->means, tdigest_block(t));
}

void bly_tdigest_free(bly_tdigest *t)
{
    if (!t)
        return;
    tdigest_release(t);
    const bly_mem mem = *tdigest_memory(t);
    bly_mem_release(&mem, t, tdigest_size(t));
}

void bly_tdigest_clear(bly_tdigest *t)
{
    tdigest_release(t);
    t->means = NULL;
    t->room = 0;
    t->narrow = false;
    tdigest_reset(t);
}

/* A block for n means and values. Weights need as many places as there can be
 * means, or as all of them where values have weights or there is much to sort
 * (tdigest_merge.c). */
static bly_status tdigest_resize(bly_tdigest *t, uint64_t n, bool weighted)
{
    const bly_mem *const mem = tdigest_memory(t);
    const uint64_t limit = bly_tdigest_limit(t);
    const bool narrow = !weighted && n > limit && t->nmerged <= limit;
    const uint64_t all = n + (narrow ? limit : n);
    if (all > SIZE_MAX / 2 / sizeof(double))
        return bly_fail(BLY_ENOMEM, "out of memory");
    double *const means = mem->alloc(mem->ctx, (size_t)all * sizeof *means);
    if (!means)
        return bly_fail(BLY_ENOMEM, "out of memory");
    if (t->means) {
        const size_t nheld = (size_t)t->nmerged + t->nwaiting;
        memcpy(means, t->means, nheld * sizeof *means);
        memcpy(means + n, bly_tdigest_weights(t),
               (t->weighted ? nheld : t->nmerged) * sizeof *means);
    }
    tdigest_release(t);
    t->means = means;
    t->room = (uint32_t)n;
    t->narrow = narrow;
    return BLY_OK;
}

/* Room for more values, as far as `more` of them or until they merge. */
static bly_status tdigest_make_room(bly_tdigest *t, uint64_t more,
                                    bool weighted)
{
    const uint64_t held = (uint64_t)t->nmerged + t->nwaiting;
    const uint64_t most = bly_tdigest_most(t);
    const uint64_t need = held + more < most ? held + more : most;
    if (need <= t->room && !(weighted && t->narrow))
        return BLY_OK;
    uint64_t n = t->room ? t->room : TDIGEST_FIRST_ROOM;
    while (n < need)
        n *= 2;
    return tdigest_resize(t, n < most ? n : most, weighted);
}

bly_status bly_tdigest_copy(const bly_tdigest *t, bly_tdigest **out)
{
    if (!t || !out)
        return bly_fail_null("t or out");
    *out = NULL;
    const bly_mem *const mem = tdigest_memory(t);
    const size_t size = tdigest_size(t), nbytes = tdigest_block(t);
    bly_tdigest *const copy = bly_mem_zalloc(mem, size);
    double *const means =
        copy && t->means ? mem->alloc(mem->ctx, nbytes) : NULL;
    if (!copy || (t->means && !means)) {
        bly_mem_release(mem, copy, size);
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    memcpy(copy, t, size);
    copy->means = means;
    if (means)
        memcpy(means, t->means, nbytes);
    *out = copy;
    return BLY_OK;
}

/* ------------------------------------------------------------------ adding */

/* The sum of n weights is a good one: each at least 1. */
static bool tdigest_sum(const uint64_t *weights, size_t n, double *sum)
{
    *sum = (double)n;
    if (!weights)
        return true;
    *sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!weights[i])
            return false;
        *sum += (double)weights[i];
    }
    return true;
}

/* Values whose difference from themselves is not 0 are none. Least and greatest
 * come along, in lanes, so that one comparison need not wait for another. */
static bool tdigest_range(const double *x, size_t n, double *least,
                          double *greatest)
{
    double bad[4] = { 0 }, lo[4], hi[4];
    size_t i = 0;
    for (size_t j = 0; j < 4; j++) {
        lo[j] = *least;
        hi[j] = *greatest;
    }
    for (; i + 4 <= n; i += 4)
        for (size_t j = 0; j < 4; j++) {
            const double v = x[i + j];
            bad[j] += v - v;
            lo[j] = v < lo[j] ? v : lo[j];
            hi[j] = v > hi[j] ? v : hi[j];
        }
    for (; i < n; i++) {
        bad[0] += x[i] - x[i];
        lo[0] = x[i] < lo[0] ? x[i] : lo[0];
        hi[0] = x[i] > hi[0] ? x[i] : hi[0];
    }
    for (size_t j = 1; j < 4; j++) {
        bad[0] += bad[j];
        lo[0] = lo[j] < lo[0] ? lo[j] : lo[0];
        hi[0] = hi[j] > hi[0] ? hi[j] : hi[0];
    }
    *least = lo[0];
    *greatest = hi[0];
    return bad[0] == 0;
}

/* Weights of values that wait are written down from now on. */
static void tdigest_weigh(bly_tdigest *t)
{
    double *const w = bly_tdigest_weights(t) + t->nmerged;
    for (size_t i = 0; !t->weighted && i < t->nwaiting; i++)
        w[i] = 1;
    t->weighted = true;
}

/* All is checked, and what there is room for fits. */
static void tdigest_take(bly_tdigest *t, const double *values,
                         const double *weights, const uint64_t *counts,
                         size_t n)
{
    const bool weighted = weights || counts;
    const size_t most = (size_t)bly_tdigest_most(t);
    for (size_t i = 0; i < n;) {
        if ((size_t)t->nmerged + t->nwaiting >= most)
            bly_tdigest_settle(t);
        const size_t at = (size_t)t->nmerged + t->nwaiting;
        const size_t left = most - at;
        const size_t some = n - i < left ? n - i : left;
        if (weighted || t->weighted)
            tdigest_weigh(t);
        memcpy(t->means + at, values + i, some * sizeof *values);
        double *const w = bly_tdigest_weights(t) + at;
        for (size_t j = 0; t->weighted && j < some; j++)
            w[j] = weights  ? weights[i + j]
                   : counts ? (double)counts[i + j]
                            : 1;
        if (weighted)
            for (size_t j = 0; j < some; j++)
                t->waiting_weight += w[j];
        else
            t->waiting_weight += (double)some;
        t->nwaiting += (uint32_t)some;
        i += some;
    }
}

bly_status bly_tdigest_add(bly_tdigest *t, const double *values,
                           const uint64_t *weights, size_t n)
{
    double sum, min, max;
    if (!t || (n && !values))
        return bly_fail_null("t or values");
    if (!n)
        return BLY_OK;
    min = t->min;
    max = t->max;
    if (!tdigest_range(values, n, &min, &max))
        return bly_fail(BLY_EINVAL,
                        "a value that is not a number, or is infinite");
    if (!tdigest_sum(weights, n, &sum))
        return bly_fail(BLY_EINVAL, "a weight of 0: weights are 1 or more");
    if (t->merged_weight + t->waiting_weight + sum > BLY_TDIGEST_MOST_WEIGHT)
        return bly_fail(BLY_ERANGE, "all weights together would pass 2^63 - 1");
    const bly_status st =
        tdigest_make_room(t, n, t->weighted || weights != NULL);
    if (st)
        return st;
    t->min = min;
    t->max = max;
    tdigest_take(t, values, NULL, weights, n);
    return BLY_OK;
}

bly_status bly_tdigest_merge(bly_tdigest *dst, const bly_tdigest *src)
{
    bly_tdigest *twin = NULL;
    if (!dst || !src)
        return bly_fail_null("dst or src");
    const double sum = src->merged_weight + src->waiting_weight;
    const size_t n = (size_t)src->nmerged + src->nwaiting;
    if (!n)
        return BLY_OK;
    if (dst->merged_weight + dst->waiting_weight + sum >
        BLY_TDIGEST_MOST_WEIGHT)
        return bly_fail(BLY_ERANGE, "all weights together would pass 2^63 - 1");
    bly_status st = dst == src ? bly_tdigest_copy(src, &twin) : BLY_OK;
    if (!st)
        st = tdigest_make_room(dst, n, true);
    if (!st) {
        const bly_tdigest *const from = twin ? twin : src;
        const double *const w = bly_tdigest_weights(from);
        tdigest_take(dst, from->means, w, NULL,
                     from->weighted ? n : from->nmerged);
        if (!from->weighted)
            tdigest_take(dst, from->means + from->nmerged, NULL, NULL,
                         from->nwaiting);
        dst->min = fmin(dst->min, from->min);
        dst->max = fmax(dst->max, from->max);
    }
    bly_tdigest_free(twin);
    return st;
}

/* ------------------------------------------------------- from and to parts */

void bly_tdigest_stat_sized(const bly_tdigest *t, bly_tdigest_stats *out,
                            size_t size)
{
    const bly_tdigest_stats s = {
        .compression = t->compression,
        .min = t->nmerged + t->nwaiting ? t->min : NAN,
        .max = t->nmerged + t->nwaiting ? t->max : NAN,
        .merged_weight = t->merged_weight,
        .waiting_weight = t->waiting_weight,
        .nmerged = t->nmerged,
        .nwaiting = t->nwaiting,
        .ncompressions = t->ncompressions,
        .nbytes = tdigest_size(t) + tdigest_block(t),
        .scale = t->scale,
        .weighted = t->weighted,
        .means = t->means,
        .weights = t->means ? bly_tdigest_weights(t) : NULL,
    };
    BLY_GIVE(&s, out, size);
}

static bly_status tdigest_bad(const char *why)
{
    return bly_fail(BLY_EFORMAT, "a damaged t-digest: %s", why);
}

/* Means of n parts ascend from min to max, with weights of 1 or more. */
static bly_status tdigest_check(const bly_tdigest_stats *s, double *sum)
{
    double before = s->min;
    *sum = 0;
    for (uint64_t i = 0; i < s->nmerged + s->nwaiting; i++) {
        const double mean = s->means[i], w = s->weights[i];
        if (!(mean >= s->min && mean <= s->max))
            return tdigest_bad("a mean below the least value, or above the "
                               "greatest");
        if (i < s->nmerged && mean < before)
            return tdigest_bad("its means are out of order");
        if (!(w >= 1 && w <= BLY_TDIGEST_MOST_WEIGHT && w == floor(w)))
            return tdigest_bad("a weight that cannot be");
        before = mean;
        *sum += w;
    }
    return *sum <= BLY_TDIGEST_MOST_WEIGHT
               ? BLY_OK
               : tdigest_bad("weights that pass 2^63 - 1");
}

bly_status bly_tdigest_restore_sized(const bly_tdigest_stats *given,
                                     const bly_mem *mem, bly_tdigest **out,
                                     size_t size)
{
    bly_tdigest_stats own;
    const bly_tdigest_stats *s = given;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(s = BLY_TAKE(s, size, &own)))
        return BLY_EINVAL;
    const uint64_t n = s->nmerged + s->nwaiting;
    double sum = 0;
    bly_tdigest *t;
    if (s->nmerged > n || !bly_tdigest_sane(s->compression, s->scale))
        return tdigest_bad("a compression or a number of means that cannot be");
    if (n && (!s->means || !s->weights))
        return bly_fail_null("means or weights");
    if (n && !(isfinite(s->min) && isfinite(s->max)))
        return tdigest_bad("a least or greatest value that is infinite");
    if (n == 1 && s->nwaiting && s->min != s->max)
        return tdigest_bad("one value that is two");
    const bly_tdigest_spec spec = { .compression = s->compression,
                                    .scale = s->scale,
                                    .mem = mem };
    bly_status st = bly_tdigest_new(&spec, &t);
    if (st)
        return st;
    /* RedisBloom fills its last place, too, and then takes no more values. */
    const uint64_t most =
        bly_tdigest_most(t) + (t->scale == BLY_TDIGEST_REDISBLOOM);
    st = n > most ? tdigest_bad("more means than fit")
         : n      ? tdigest_check(s, &sum)
                  : BLY_OK;
    if (!st && n)
        st = n < most ? tdigest_make_room(t, n,
                                          s->nwaiting || t->weighted ||
                                              n > bly_tdigest_limit(t))
                      : tdigest_resize(t, n, true);
    if (st) {
        bly_tdigest_free(t);
        return st;
    }
    t->ncompressions = s->ncompressions;
    if (n) {
        memcpy(t->means, s->means, (size_t)n * sizeof *t->means);
        memcpy(bly_tdigest_weights(t), s->weights,
               (size_t)n * sizeof *t->means);
        t->min = s->min;
        t->max = s->max;
    }
    t->nmerged = (uint32_t)s->nmerged;
    t->nwaiting = (uint32_t)s->nwaiting;
    t->weighted = s->nwaiting || bly_tdigest_is_large(t);
    for (uint64_t i = 0; i < n; i++)
        *(i < s->nmerged ? &t->merged_weight : &t->waiting_weight) +=
            s->weights[i];
    *out = t;
    return BLY_OK;
}

void bly_tdigest_move(bly_tdigest **t, bly_mover *move, void *ctx)
{
    void *fresh = move(ctx, *t);
    if (fresh)
        *t = fresh;
    fresh = (*t)->means ? move(ctx, (*t)->means) : NULL;
    if (fresh)
        (*t)->means = fresh;
}
