/*
 * ribbon_table.c - a shard: elimination, bounds, back substitution
 *
 * A shard has about as many keys as slots, so some find no room. They are
 * bumped, that is, left to the next layer. Each bucket of 256 slots has a
 * bound, and the keys that start below it were bumped.
 *
 * Buckets are taken from left to right, and the keys within a bucket from right
 * to left. Keys of the bucket before spill over into its first slots, so room
 * runs out there first, and few keys lie between a bound and the beginning of
 * its bucket [1]. The order decides only which keys are bumped: if all find
 * room, the slots taken and their contents follow from the set of rows. So keys
 * are inserted in a fast order first, and again in the right one if that fails.
 *
 * [1] Dillinger, Huebschle-Schneider, Sanders and Walzer, Fast Succinct
 *     Retrieval and Approximate Membership using Ribbon, 2022
 */
#include "engine/ribbon_table.h"

#include <stdatomic.h>
#include <string.h>

/* The inverse of bly_mix64(), with the inverses of its factors mod 2^64. */
static uint64_t unmix64(uint64_t x)
{
    /* x ^ x >> s is undone by adding the shifts by s, 2s, ... below 64. */
    x ^= x >> 31 ^ x >> 62;
    x *= UINT64_C(0x319642b2d24d8ec3);
    x ^= x >> 27 ^ x >> 54;
    x *= UINT64_C(0x96de1b173f119089);
    return x ^ x >> 30 ^ x >> 60;
}

uint64_t bly_ribbon_unhash(uint64_t u, uint64_t seed)
{
    return unmix64(u) ^ seed;
}

uint64_t bly_ribbon_unhash_valued(uint64_t u, uint64_t seed)
{
    /* As above, mod 2^63: the factors have the same inverses there. */
    const uint64_t low = UINT64_MAX >> 1;
    uint64_t x = u >> 1;
    x ^= x >> 31 ^ x >> 62;
    x = (x * UINT64_C(0x319642b2d24d8ec3)) & low;
    x ^= x >> 27 ^ x >> 54;
    x = (x * UINT64_C(0x96de1b173f119089)) & low;
    x ^= x >> 30 ^ x >> 60;
    return ((x ^ seed) & low) << 1 | (u & 1);
}

/* The system while it is being built: slot i has a row at rows[i] and a print
 * at rows[i + nslots]; both are 0 if the slot is free. */
typedef struct ribbon_band {
    uint64_t *rows;
    size_t nslots;
} ribbon_band;

/* A row on its way to a slot. */
typedef struct ribbon_row {
    uint64_t row, print;
    uint64_t *at; /* the slot of its first 1 */
} ribbon_row;

/* Where a key goes, whatever its value. */
static inline __attribute__((always_inline)) bly_ribbon_key
ribbon_place(const bly_ribbon_layer *l, uint64_t u)
{
    return bly_ribbon_place(l, u & ~l->out);
}

static inline __attribute__((always_inline)) ribbon_row
ribbon_row_of(const bly_ribbon_layer *l, const ribbon_band *band, uint64_t u,
              uint32_t start)
{
    const uint64_t key = u & ~l->out;
    return (ribbon_row){ bly_ribbon_coefficients(key),
                         bly_ribbon_print(key) ^ (u & l->out),
                         band->rows + start };
}

enum { RIBBON_MOVED, RIBBON_PLACED, RIBBON_VANISHED };

/* Leave x in its slot, or move it on. A row that depends on earlier ones
 * vanishes. */
static inline __attribute__((always_inline)) int
ribbon_reduce(const ribbon_band *band, ribbon_row *x)
{
    const uint64_t other = *x->at;
    if (!other) {
        x->at[0] = x->row;
        x->at[band->nslots] = x->print;
        return RIBBON_PLACED;
    }
    /* Both rows have a 1 here, so the sum begins farther to the right. It does
     * not end farther to the right than the later of the two, so no row ever
     * leaves the band. */
    x->print ^= x->at[band->nslots];
    x->row ^= other;
    if (!x->row)
        return RIBBON_VANISHED;
    const unsigned zeros = (unsigned)__builtin_ctzll(x->row);
    x->row >>= zeros;
    x->at += zeros;
    return RIBBON_MOVED;
}

static void ribbon_empty(const ribbon_band *band, uint64_t *const *slots,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        slots[i][0] = slots[i][band->nslots] = 0;
}

/* All keys or none. */
static bool ribbon_fill_all(const bly_ribbon_layer *l, const ribbon_band *band,
                            const uint64_t *u, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bly_ribbon_key key = ribbon_place(l, u[i]);
        ribbon_row x = ribbon_row_of(l, band, u[i], key.start);
        int done;
        while (!(done = ribbon_reduce(band, &x)))
            ;
        /* 0 = something else: the system has no solution. */
        if (done == RIBBON_VANISHED && (x.print & l->needs[key.wide]))
            return false;
    }
    return true;
}

/* 32 keys that start within a step have a chance of 10^-26, or were chosen by
 * an adversary: they are bumped. */
#define RIBBON_STEP_KEYS 32

/* The end of the bumped keys of a bucket, and the step of the last of them. */
typedef struct ribbon_bump {
    size_t last;
    uint32_t step;
} ribbon_bump;

/* Insert keys of a bucket, u[from] to u[end - 1], the last first. False if one
 * finds no room: then its step is to be bumped. A row is in the slot of its
 * first 1 and changes no other slot, so a step is undone by emptying the slots
 * that it has taken. */
static bool ribbon_fill_in_order(const bly_ribbon_layer *l,
                                 const ribbon_band *band, const uint64_t *u,
                                 size_t from, size_t end, ribbon_bump *bump)
{
    uint64_t *pivots[RIBBON_STEP_KEYS];
    size_t npivots = 0;
    for (size_t i = end; i-- > from;) {
        const bly_ribbon_key key = ribbon_place(l, u[i]);
        const uint32_t step = key.start / BLY_RIBBON_STEP;
        ribbon_row x = ribbon_row_of(l, band, u[i], key.start);
        /* A new step: those before it are in for good, and only this one may
         * have to be undone. */
        if (i + 1 == end || step != bump->step) {
            *bump = (ribbon_bump){ i + 1, step };
            npivots = 0;
        }
        int done = RIBBON_VANISHED;
        if (npivots < RIBBON_STEP_KEYS)
            while (!(done = ribbon_reduce(band, &x)))
                ;
        if (done == RIBBON_PLACED) {
            pivots[npivots++] = x.at;
        } else if (npivots == RIBBON_STEP_KEYS ||
                   (x.print & l->needs[key.wide])) {
            ribbon_empty(band, pivots, npivots);
            return false;
        }
    }
    return true;
}

/* Keys that are inserted at once, at most: a bucket has half as many. */
#define RIBBON_GROUP 512
/* How many rows are moved at the same time, since each waits for one load after
 * the other. */
#define RIBBON_LANES 4

/* Keys of a bucket that are inserted in any order. */
typedef struct ribbon_group {
    ribbon_row waiting[RIBBON_GROUP]; /* for a lane */
    size_t nwaiting;
    uint64_t *taken[RIBBON_GROUP]; /* slots */
    size_t ntaken;
    uint64_t needs;
} ribbon_group;

/* A row is done: *x becomes one that waits. The result says whether there was
 * one, or whether the row found no room. */
enum { RIBBON_GO_ON, RIBBON_NONE_WAITS, RIBBON_NO_ROOM };

static inline __attribute__((always_inline)) int
ribbon_next(ribbon_group *g, ribbon_row *x, int done)
{
    if (done == RIBBON_PLACED)
        g->taken[g->ntaken++] = x->at;
    else if (x->print & g->needs)
        return RIBBON_NO_ROOM;
    if (g->nwaiting == 0)
        return RIBBON_NONE_WAITS;
    *x = g->waiting[--g->nwaiting];
    return RIBBON_GO_ON;
}

/* Move nlanes rows on, replacing each finished row by one that waits, until
 * none waits; then one lane is given up. False where a row finds no room.
 * nlanes is a literal, and the lanes are variables with names of their own, so
 * that they are kept in registers. */
static inline __attribute__((always_inline)) bool
ribbon_run(const ribbon_band *band, ribbon_group *g, ribbon_row *lanes,
           unsigned nlanes)
{
    const ribbon_band local = *band;
    ribbon_row x0 = lanes[0], x1 = lanes[nlanes > 1 ? 1 : 0],
               x2 = lanes[nlanes > 2 ? 2 : 0], x3 = lanes[nlanes > 3 ? 3 : 0];
    unsigned over = 0;
    int done, what = RIBBON_GO_ON;
#define LANE(k, x)                                               \
    if (k < nlanes) {                                            \
        done = ribbon_reduce(&local, &x);                        \
        if (__builtin_expect(done != RIBBON_MOVED, 0) &&         \
            (what = ribbon_next(g, &x, done)) != RIBBON_GO_ON) { \
            over = k;                                            \
            break;                                               \
        }                                                        \
    }
    for (;;) {
        LANE(0, x0)
        LANE(1, x1)
        LANE(2, x2)
        LANE(3, x3)
    }
#undef LANE
    /* The lane that ran out of rows is given up: the last takes its number. */
    lanes[0] = x0;
    if (nlanes > 1)
        lanes[1] = x1;
    if (nlanes > 2)
        lanes[2] = x2;
    if (nlanes > 3)
        lanes[3] = x3;
    lanes[over] = lanes[nlanes - 1];
    return what != RIBBON_NO_ROOM;
}

/* Insert n keys of a bucket, all narrow or all wide, in whatever order is
 * fastest. The slots taken, and what follows from the rows in them, do not
 * depend on the order; only the choice of bumped keys does. So if a key would
 * be bumped, or a step has too many, nothing is inserted and the result is
 * false. */
static bool ribbon_fill_group(const bly_ribbon_layer *l,
                              const ribbon_band *band, const uint64_t *u,
                              size_t n)
{
    uint32_t start[RIBBON_GROUP];
    ribbon_group g;
    bool good = true;
    if (n == 0 || n > RIBBON_GROUP)
        return n == 0;
    g.nwaiting = g.ntaken = 0;
    g.needs = l->needs[ribbon_place(l, u[0]).wide];
    /* Half of the keys find their first slot free; these are inserted without a
     * branch. */
    for (size_t i = 0; i < n; i++) {
        start[i] = ribbon_place(l, u[i]).start;
        const ribbon_row x = ribbon_row_of(l, band, u[i], start[i]);
        const uint64_t other = *x.at;
        const uint64_t free = (uint64_t)(other != 0) - 1;
        x.at[0] = other | (x.row & free);
        x.at[band->nslots] |= x.print & free;
        g.waiting[g.nwaiting] = x;
        g.nwaiting += other != 0;
        g.taken[g.ntaken] = x.at;
        g.ntaken += other == 0;
        /* Keys are sorted: a step has more than 32 where two that are 32 apart
         * share it. */
        if (i >= RIBBON_STEP_KEYS)
            good &= start[i - RIBBON_STEP_KEYS] / BLY_RIBBON_STEP !=
                    start[i] / BLY_RIBBON_STEP;
    }
    ribbon_row lanes[RIBBON_LANES];
    size_t nlanes = g.nwaiting < RIBBON_LANES ? g.nwaiting : RIBBON_LANES;
    for (size_t k = 0; k < nlanes; k++)
        lanes[k] = g.waiting[--g.nwaiting];
    for (; nlanes > 0 && good; nlanes--)
        good = nlanes == 4   ? ribbon_run(band, &g, lanes, 4)
               : nlanes == 3 ? ribbon_run(band, &g, lanes, 3)
               : nlanes == 2 ? ribbon_run(band, &g, lanes, 2)
                             : ribbon_run(band, &g, lanes, 1);
    if (!good)
        ribbon_empty(band, g.taken, g.ntaken);
    return good;
}

/* The first of the sorted keys from u[low] to u[high - 1] that starts at `slot`
 * or behind it. */
static size_t ribbon_find_start(const bly_ribbon_layer *l, const uint64_t *u,
                                size_t low, size_t high, uint32_t slot)
{
    /* A bucket has about as many keys as slots, so the answer is nearly always
     * among the next two buckets' worth of keys, which are in the cache. */
    const size_t near = low + 2 * BLY_RIBBON_BUCKET;
    if (near < high && ribbon_place(l, u[near]).start >= slot)
        high = near;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (ribbon_place(l, u[mid]).start < slot)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* A bucket is filled in parts, from its end to its beginning, where room runs
 * out first. These are the slots at which the parts begin. A key of the last
 * part finds no room in one bucket in five, a key of the second part in one in
 * thirty, and a key of the first hardly ever. A part in which that happens is
 * filled twice, so parts are short where it is likely. */
static const uint32_t ribbon_parts[] = { 48, 16, 8, 0 };
#define RIBBON_PARTS 4

/* If narrow keys reach into wide blocks, their prints have one bit there that
 * is never read, and its value depends on the order of insertion. So there the
 * bytes depend on the order after all. */
static bool ribbon_is_mixed(const bly_ribbon_layer *l, uint32_t slot)
{
    return l->nplanes > l->width &&
           slot + BLY_RIBBON_BUCKET + BLY_RIBBON_ROW > l->wide * 64 &&
           slot < (l->wide + 1) * 64;
}

/* Fill the bucket that begins at slot with the keys from u[from] to u[end - 1].
 * False where one finds no room: *bump then says which. */
static bool ribbon_fill_bucket(const bly_ribbon_layer *l,
                               const ribbon_band *band, const uint64_t *u,
                               uint32_t slot, size_t from, size_t end,
                               ribbon_bump *bump)
{
    const bool mixed = ribbon_is_mixed(l, slot);
    for (unsigned i = 0; i < RIBBON_PARTS; i++) {
        const size_t first =
            ribbon_find_start(l, u, from, end, slot + ribbon_parts[i]);
        if ((mixed || !ribbon_fill_group(l, band, u + first, end - first)) &&
            !ribbon_fill_in_order(l, band, u, first, end, bump))
            return false;
        end = first;
    }
    return true;
}

/* The same for bounds of two bits: a region of the bucket is inserted as a
 * whole, or it is bumped together with those before it. */
static bool ribbon_fill_regions(const bly_ribbon_layer *l,
                                const ribbon_band *band, const uint64_t *u,
                                uint32_t slot, size_t from, size_t end,
                                ribbon_bump *bump)
{
    static const uint32_t regions[BLY_RIBBON_REGIONS] = { 0, 16, 48 };
    for (uint32_t r = BLY_RIBBON_REGIONS; r-- > 0;) {
        const size_t first =
            ribbon_find_start(l, u, from, end, slot + regions[r]);
        if (!ribbon_fill_group(l, band, u + first, end - first)) {
            *bump = (ribbon_bump){ end, r };
            return false;
        }
        end = first;
    }
    return true;
}

/* Fill a shard, bucket by bucket. Bumped keys are swapped with keys before them
 * that are done. */
static void ribbon_fill(const bly_ribbon_layer *l, const ribbon_band *band,
                        bly_ribbon_part *part, unsigned char *bounds)
{
    const uint32_t nsteps = BLY_RIBBON_BUCKET / BLY_RIBBON_STEP;
    uint64_t *const u = part->u;
    memset(bounds, 0, l->nbounds);
    for (size_t b = 0, from = 0, end; b < l->nbuckets; b++, from = end) {
        const uint32_t slot = (uint32_t)b * BLY_RIBBON_BUCKET;
        ribbon_bump bump = { 0, 0 };
        end = ribbon_find_start(l, u, from, part->n, slot + BLY_RIBBON_BUCKET);
        if (l->out ? ribbon_fill_regions(l, band, u, slot, from, end, &bump)
                   : ribbon_fill_bucket(l, band, u, slot, from, end, &bump))
            continue;
        /* The bound bumps the step and all before it in the bucket, keys that
         * were not tried included. 1 to 128, or 1 to 3; 0 bumps nobody. */
        if (l->out)
            bounds[b / 4] |= (unsigned char)((bump.step + 1) << b % 4 * 2);
        else
            bounds[b] = (unsigned char)(bump.step % nsteps + 1);
        for (size_t i = from; i < bump.last; i++) {
            const uint64_t key = u[i];
            u[i] = u[part->nbumped];
            u[part->nbumped++] = key;
        }
    }
}

/* Compute the slots from the last to the first; a free one is 0. planes[i]
 * holds bit i of the 64 slots behind the current one, with the nearest in the
 * lowest bit. So after each 64 slots it is a word of the block. */
static void substitute_portable(const bly_ribbon_layer *l, const uint64_t *rows,
                                const uint64_t *prints, uint64_t *words)
{
    const unsigned ngroups = (l->nplanes + 3) / 4;
    uint64_t planes[BLY_RIBBON_MAX_WIDTH] = { 0 };
    for (size_t block = l->nslots / 64; block-- > 0;) {
        for (size_t i = block * 64 + 64; i-- > block * 64;) {
            /* Bit 0 of a row is the slot itself; the others select slots to its
             * right, which are known. In a free slot all is 0. */
            const uint64_t row = rows[i] >> 1, print = prints[i];
            for (unsigned g = 0; g < ngroups; g++) {
                uint64_t *const p = &planes[4 * g];
                const uint64_t bits =
                    bly_ribbon_parities(p[0] & row, p[1] & row, p[2] & row,
                                        p[3] & row) ^
                    print >> 4 * g;
                for (unsigned j = 0; j < 4; j++)
                    p[j] = p[j] << 1 | (bits >> j & 1);
            }
        }
        uint64_t *const to = words + bly_ribbon_block(l, block);
        /* A narrow block has no room for the last plane, and no key that looks
         * at it there. */
        const unsigned n = l->width + (block >= l->wide);
        for (unsigned i = 0; i < n; i++)
            to[i] = bly_le64(planes[i]);
    }
}

static inline uint64_t four_portable(const uint64_t *x, const uint64_t *y,
                                     uint64_t here, uint64_t there)
{
    uint64_t v[4];
    for (unsigned i = 0; i < 4; i++)
        v[i] = (bly_le64(x[i]) & here) ^ (bly_le64(y[i]) & there);
    return bly_ribbon_parities(v[0], v[1], v[2], v[3]);
}

static void ask_portable(const bly_ribbon_layer *l, const unsigned char *data,
                         const uint64_t *h, size_t n, bly_ribbon_keys *rest,
                         uint64_t *maybe, bool first, bool ahead)
{
    bly_ribbon_ask_with(l, data, h, n, rest, maybe, first, ahead,
                        four_portable);
}

const bly_ribbon_row bly_ribbon_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512 | BLY_CPU_AVX2, bly_ribbon_ask_avx512,
      bly_ribbon_substitute_avx2 },
    { "avx2", BLY_CPU_AVX2, bly_ribbon_ask_avx2, bly_ribbon_substitute_avx2 },
#endif
    { "portable", 0, ask_portable, substitute_portable },
};

BLY_CHOOSE(ribbon)

void bly_ribbon_solve(const bly_ribbon_layer *l, bly_ribbon_part *part,
                      unsigned char *data)
{
    uint64_t *const words = (uint64_t *)(void *)data + l->words;
    const ribbon_band band = { part->room, l->nslots };
    memset(part->room, 0, BLY_RIBBON_ROOM * l->nslots * sizeof *part->room);
    if (l->nbuckets) {
        ribbon_fill(l, &band, part,
                    data + l->bounds + part->shard * l->nbounds);
    } else if (!ribbon_fill_all(l, &band, part->u, part->n)) {
        /* There are no bounds to say which keys were bumped, so all are. */
        part->nbumped = part->n;
        return;
    }
    bly_ribbon_best()->substitute(l, band.rows, band.rows + l->nslots,
                                  words + part->shard * l->stride);
}
