/*
 * rediscms.c - a count-min sketch of RedisBloom
 *
 * depth rows of width counters of 32 bits that stick at their ceiling; row r of
 * a key is cell MurmurHash2(key, r) mod width, and the least of its cells is
 * what it counts. f->nadded is the sum of all that was added, up to 2^63 - 1.
 *
 * Redis has no dump of one, so there is no file: it is kept in records.
 */
#include <stdatomic.h>
#include <string.h>

#include "core/bits.h"
#include "engine/murmur2.h"
#include "foreign/format.h"
#include "foreign/hashes.h"

#define REDISCMS_CEILING UINT32_MAX

typedef struct rediscms {
    uint64_t width, depth;
    uint64_t id;      /* no other of the process has it */
    uint32_t cells[]; /* row after row */
} rediscms;

enum { REDISCMS_WIDTH, REDISCMS_DEPTH, REDISCMS_NOPTIONS };

static const bly_param rediscms_options[] = {
    [REDISCMS_WIDTH] = BLY_OPTION_TEXT("width", "2000", "counters of a row"),
    [REDISCMS_DEPTH] = BLY_OPTION_TEXT("depth", "7", "rows"),
};

static size_t rediscms_bytes(const rediscms *s)
{
    return (size_t)(s->width * s->depth * sizeof *s->cells);
}

static void rediscms_close(bly_foreign *f)
{
    rediscms *const s = f->own;
    if (s)
        bly_mem_release(f->mem, s, sizeof *s + rediscms_bytes(s));
    f->own = NULL;
}

static bly_status rediscms_new(bly_foreign *f, uint64_t width, uint64_t depth)
{
    static _Atomic uint64_t nmade;
    rediscms *s;
    if (!width || !depth || width > SIZE_MAX / 8 / depth)
        return bly_fail(BLY_ERANGE, "a sketch of no cells, or of more than "
                                    "there may be");
    const bly_status st = bly_foreign_own(
        f, sizeof *s + (size_t)(width * depth) * sizeof *s->cells);
    if (st)
        return st;
    s = f->own;
    s->width = width;
    s->depth = depth;
    s->id = ++nmade;
    return BLY_OK;
}

static bly_status rediscms_plan(bly_foreign *f, uint64_t items, double fpr)
{
    uint64_t width, depth;
    (void)items, (void)fpr;
    bly_status st = bly_foreign_number(f, REDISCMS_WIDTH, 1, INT64_MAX, &width);
    if (!st)
        st = bly_foreign_number(f, REDISCMS_DEPTH, 1, INT64_MAX, &depth);
    return st ? st : rediscms_new(f, width, depth);
}

static bly_status rediscms_copy(const bly_foreign *f, bly_foreign *to)
{
    const rediscms *const s = f->own;
    const bly_status st = rediscms_new(to, s->width, s->depth);
    if (!st)
        memcpy(((rediscms *)to->own)->cells, s->cells, rediscms_bytes(s));
    return st;
}

static bly_array rediscms_array(const bly_foreign *f, size_t i)
{
    rediscms *const s = f->own;
    (void)i;
    return (bly_array){ (unsigned char *)s->cells, rediscms_bytes(s) };
}

static void rediscms_move(bly_foreign *f, size_t i, bly_mover *move, void *ctx)
{
    (void)i;
    bly_moved(&f->own, move, ctx);
}

static void rediscms_describe(const bly_foreign *f, bly_facts *out)
{
    const rediscms *const s = f->own;
    bly_fact_uint(out, "width", s->width);
    bly_fact_uint(out, "depth", s->depth);
}

/* ----------------------------------------------------------------- counting */

/* For the columns of keys in rows first to first + 7: a hash has 32 bits, so
 * that a row has no more cells that are used. */
static void rediscms_lanes(const rediscms *s, uint64_t first,
                           bly_murmur2_lanes *lanes)
{
    bly_murmur2_lanes_set(
        lanes, (uint32_t)first,
        s->width <= BLY_MURMUR2_MAX_DIVISOR ? (uint32_t)s->width : 0);
}

static void rediscms_columns(const rediscms *s, const bly_foreign_key *key,
                             const bly_murmur2_lanes *lanes,
                             uint32_t columns[8])
{
    bly_murmur2_best()->eight(key->bytes, key->len, lanes, columns);
    for (uint32_t i = 0; i < 8 && s->width > BLY_MURMUR2_MAX_DIVISOR; i++)
        columns[i] = (uint32_t)(columns[i] % s->width);
}

/* Bytes that a cache holds: there is nothing to fetch. */
#define REDISCMS_NEAR ((size_t)1 << 18)

/* A key comes with its columns in the first eight rows, which are all, mostly.
 */
static void rediscms_fetch(const bly_foreign *f, bly_foreign_key *keys,
                           size_t n)
{
    const rediscms *const s = f->own;
    bly_murmur2_lanes lanes;
    rediscms_lanes(s, 0, &lanes);
    for (size_t i = 0; i < n; i++)
        rediscms_columns(s, &keys[i], &lanes, keys[i].rows);
    if (rediscms_bytes(s) <= REDISCMS_NEAR)
        return;
    for (size_t i = 0; i < n; i++)
        for (uint64_t row = 0; row < 8 && row < s->depth; row++)
            __builtin_prefetch(&s->cells[row * s->width + keys[i].rows[row]]);
}

/* Add to the cells of a key, and its count. */
static inline __attribute__((always_inline)) uint32_t
rediscms_walk(rediscms *s, const bly_foreign_key *key, uint64_t by)
{
    uint32_t least = UINT32_MAX, more[8];
    const uint32_t *columns = key->rows;
    uint32_t *cells = s->cells;
    for (uint64_t row = 0; row < s->depth; row++, cells += s->width) {
        if (row && row % 8 == 0) {
            bly_murmur2_lanes lanes;
            rediscms_lanes(s, row, &lanes);
            rediscms_columns(s, key, &lanes, more);
            columns = more;
        }
        uint32_t *const cell = cells + columns[row % 8];
        if (by)
            *cell = by > REDISCMS_CEILING - *cell ? REDISCMS_CEILING
                                                  : *cell + (uint32_t)by;
        least = *cell < least ? *cell : least;
    }
    return least;
}

static uint64_t rediscms_count(const bly_foreign *f, const bly_foreign_key *key)
{
    return rediscms_walk(f->own, key, 0);
}

static bly_status rediscms_increase(bly_foreign *f, const bly_foreign_key *key,
                                    uint64_t by, uint64_t *now)
{
    *now = rediscms_walk(f->own, key, by);
    f->nadded = by > INT64_MAX - f->nadded ? INT64_MAX : f->nadded + by;
    f->nchanges += by != 0;
    return BLY_OK;
}

/* ------------------------------------------------------------------ merging */

/* high * 2^64 + low: products of counts and weights have up to 126 bits. */
typedef struct wide_sum {
    uint64_t low;
    int64_t high;
} wide_sum;

/* Add count * weight; false where even so many bits do not hold the sum. */
static bool wide_add(wide_sum *sum, uint64_t count, int64_t weight)
{
    const uint64_t w = weight < 0 ? -(uint64_t)weight : (uint64_t)weight;
    uint64_t low = count * w, high = bly_mulhi(count, w);
    if (weight < 0) {
        high = ~high + (low == 0);
        low = -low;
    }
    sum->low += low;
    return !__builtin_add_overflow(sum->high, (int64_t)high, &sum->high) &&
           !__builtin_add_overflow(sum->high, sum->low < low, &sum->high);
}

/* What the sources have in cell c, SIZE_MAX: in all; false where the sum is not
 * in [0, most]. */
static bool rediscms_weighted(const bly_foreign *const *from,
                              const int64_t *weights, size_t n, size_t c,
                              uint64_t most, uint64_t *out)
{
    wide_sum sum = { 0, 0 };
    for (size_t i = 0; i < n; i++)
        if (!wide_add(&sum,
                      c == SIZE_MAX
                          ? from[i]->nadded
                          : ((const rediscms *)from[i]->own)->cells[c],
                      weights[i]))
            return false;
    *out = sum.low;
    return sum.high == 0 && sum.low <= most;
}

/* Sums of so many cells at a time. */
enum { REDISCMS_BLOCK = 512 };

/* May sums of cells be made in 64 bits? */
static bool weights_are_small(const int64_t *weights, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t w =
            weights[i] < 0 ? -(uint64_t)weights[i] : (uint64_t)weights[i];
        if (w >> 30 || (sum += w) >> 30)
            return false;
    }
    return true;
}

/* The sums of n cells from `first` on; false where one fits no counter. */
static bool rediscms_block(const bly_foreign *const *from,
                           const int64_t *weights, size_t nfrom, bool small,
                           size_t first, size_t n, uint64_t *sums)
{
    bool fits = true;
    for (size_t c = 0; c < n && !small && fits; c++)
        fits = rediscms_weighted(from, weights, nfrom, first + c,
                                 REDISCMS_CEILING, &sums[c]);
    if (!small)
        return fits;
    memset(sums, 0, n * sizeof *sums);
    for (size_t i = 0; i < nfrom; i++) {
        const uint32_t *const cells =
            ((const rediscms *)from[i]->own)->cells + first;
        const uint64_t weight = (uint64_t)weights[i];
        for (size_t c = 0; c < n && weight == 1; c++)
            sums[c] += cells[c];
        for (size_t c = 0; c < n && weight != 1; c++)
            sums[c] += cells[c] * weight;
    }
    uint64_t all = 0; /* less than nothing is more than a counter holds, too */
    for (size_t c = 0; c < n; c++)
        all |= sums[c];
    return all <= REDISCMS_CEILING;
}

static bly_status rediscms_overflow(void)
{
    return bly_fail(BLY_ERANGE, "a sum that no counter holds");
}

static bly_status rediscms_total(const bly_foreign *const *from,
                                 const int64_t *weights, size_t n,
                                 uint64_t *total)
{
    return rediscms_weighted(from, weights, n, SIZE_MAX, INT64_MAX, total)
               ? BLY_OK
               : rediscms_overflow();
}

/* Cells are read before they are written, so that the destination may be a
 * source; memory that nobody wrote to stays so. */
static bly_status rediscms_sum_some(bly_foreign *to,
                                    const bly_foreign *const *from,
                                    const int64_t *weights, size_t n,
                                    uint64_t first, uint64_t count)
{
    const bool small = weights_are_small(weights, n);
    uint64_t sums[REDISCMS_BLOCK];
    for (uint64_t end = first + count; first < end; first += REDISCMS_BLOCK) {
        const size_t some = end - first < REDISCMS_BLOCK ? (size_t)(end - first)
                                                         : REDISCMS_BLOCK;
        if (!rediscms_block(from, weights, n, small, (size_t)first, some, sums))
            return rediscms_overflow();
        uint32_t *const cells =
            to ? ((rediscms *)to->own)->cells + first : NULL;
        for (size_t i = 0; i < some && cells; i++)
            if (cells[i] != sums[i]) {
                cells[i] = (uint32_t)sums[i];
                to->nchanges++;
            }
    }
    return BLY_OK;
}

static bly_status rediscms_blank(const bly_foreign *f, bly_foreign *to)
{
    const rediscms *const s = f->own;
    to->nadded = 0;
    return rediscms_new(to, s->width, s->depth);
}

static bly_status rediscms_fit(const bly_foreign *f,
                               const bly_foreign *const *from, size_t n)
{
    const rediscms *const s = f->own;
    for (size_t i = 0; i < n; i++) {
        const rediscms *const other = from[i]->own;
        if (other->width != s->width || other->depth != s->depth)
            return bly_fail(BLY_EUNFIT, "sketches of other dimensions");
    }
    return BLY_OK;
}

/* Two passes: whether every sum fits, then the sums. */
static bly_status rediscms_sum(bly_foreign *f, const bly_foreign *const *from,
                               const int64_t *weights, size_t n)
{
    const rediscms *const s = f->own;
    const uint64_t ncells = s->width * s->depth;
    uint64_t total;
    bly_status st = rediscms_fit(f, from, n);
    if (!st)
        st = rediscms_total(from, weights, n, &total);
    if (!st)
        st = rediscms_sum_some(NULL, from, weights, n, 0, ncells);
    if (!st)
        st = rediscms_sum_some(f, from, weights, n, 0, ncells);
    if (st)
        return st;
    f->nchanges += f->nadded != total;
    f->nadded = total;
    return BLY_OK;
}

static uint64_t rediscms_cell(const bly_foreign *f, bly_bytes key, uint64_t row)
{
    const rediscms *const s = f->own;
    return row < s->depth
               ? row * s->width +
                     bly_murmur2(key.ptr, key.len, (uint32_t)row) % s->width
               : UINT64_MAX;
}

static uint64_t rediscms_id(const bly_foreign *f)
{
    return ((const rediscms *)f->own)->id;
}

/* ------------------------------------------------------------------ records */

static bly_status rediscms_store(const bly_foreign *f,
                                 const bly_foreign_record *to)
{
    const rediscms *const s = f->own;
    to->put_uint(to->ctx, s->width);
    to->put_uint(to->ctx, s->depth);
    to->put_uint(to->ctx, f->nadded);
    to->put_bytes(to->ctx, s->cells, rediscms_bytes(s));
    return BLY_OK;
}

/* As much memory as there are bytes, whatever the numbers say. */
static bly_status rediscms_restore(bly_foreign *f, unsigned version,
                                   const bly_foreign_record *from)
{
    if (version > 0)
        return bly_damaged("a count-min record of version %u", version);
    const uint64_t width = from->get_uint(from->ctx);
    const uint64_t depth = from->get_uint(from->ctx);
    f->nadded = from->get_uint(from->ctx);
    size_t n = 0;
    void *const cells =
        from->failed(from->ctx) ? NULL : from->get_bytes(from->ctx, &n);
    bly_status st = cells && !from->failed(from->ctx) && width && depth &&
                            width <= n / 4 / depth && width * depth * 4 == n &&
                            f->nadded <= INT64_MAX
                        ? rediscms_new(f, width, depth)
                        : bly_damaged("a count-min record that cannot be");
    if (!st)
        memcpy(((rediscms *)f->own)->cells, cells, n);
    bly_mem_release(f->mem, cells, n);
    return st;
}

const bly_format bly_format_rediscms = {
    .name = "rediscms",
    .systems = "RedisBloom CMS.* (Redis)",
    .summary = "a count-min sketch in Redis",
    .options = rediscms_options,
    .noptions = REDISCMS_NOPTIONS,
    .close = rediscms_close,
    .describe = rediscms_describe,
    .plan = rediscms_plan,
    .fetch = rediscms_fetch,
    .increase = rediscms_increase,
    .count = rediscms_count,
    .sum = rediscms_sum,
    .sum_blank = rediscms_blank,
    .sum_fit = rediscms_fit,
    .sum_some = rediscms_sum_some,
    .sum_total = rediscms_total,
    .cell = rediscms_cell,
    .id = rediscms_id,
    .copy = rediscms_copy,
    .array = rediscms_array,
    .move = rediscms_move,
    .store = rediscms_store,
    .restore = rediscms_restore,
};
