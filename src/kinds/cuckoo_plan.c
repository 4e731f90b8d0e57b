/*
 * cuckoo_plan.c - how large the tables of a cuckoo filter are
 *
 * A table is full when the search of cuckoo_table.c finds no empty slot for a
 * key. The more slots a bucket has, the later that happens. Tables are planned
 * to stay safely below this point:
 *
 *     slots of a bucket          1      2      4      8
 *     large tables are full at   0.50   0.88   0.97   0.99   of their slots
 *     and are planned for        0.40   0.84   0.95   0.97
 *
 * cuckoo_room() knows these loads, and how much lower they are for small
 * tables. Planning tries every length of fingerprints. For each it takes the
 * fewest buckets that have room for all keys, or more if the rate asks for
 * them. The plan with the fewest bits wins; where the memory is given, the one
 * with the lowest rate.
 *
 * The tables of a filter that grows follow from its first one: the next has
 * room for `grow` times as many keys, and one more bit per fingerprint. A file
 * with other tables is refused. So their sizes are computed in whole numbers,
 * which come out the same on every machine.
 */
#include <math.h>

#include "core/status.h"
#include "kinds/cuckoo.h"

#define CUCKOO_MAX_MEMORY (UINT64_C(1) << 48) /* bits: 32 TiB */

/* ----------------------------------------------------------------- sizes */

static bool cuckoo_slots_ok(uint64_t b)
{
    return b == 1 || b == 2 || b == 4 || b == 8;
}

uint64_t bly_cuckoo_bits(const bly_shape *s)
{
    return s->p[CUCKOO_BUCKETS] * bly_cuckoo_width(s->p[CUCKOO_SLOTS],
                                                   s->p[CUCKOO_BITS],
                                                   s->p[CUCKOO_SEMISORT] != 0);
}

/* The bucket takes log2(nb) bits of the hash, and the fingerprint takes f. If
 * the sum were more than 64 they would share bits, and the rate would be worse
 * than its formula says. With at most 2^40 buckets, f <= 24 always fits. */
static bool cuckoo_hash_lasts(uint64_t nb, uint64_t f)
{
    return f <= 24 || nb <= UINT64_C(1) << (64 - f);
}

bool bly_cuckoo_sane(const bly_shape *s)
{
    const uint64_t nb = s->p[CUCKOO_BUCKETS], f = s->p[CUCKOO_BITS];
    return nb >= 2 && nb % 2 == 0 && nb <= CUCKOO_MAX_BUCKETS &&
           f >= CUCKOO_MIN_BITS && f <= CUCKOO_MAX_BITS &&
           cuckoo_slots_ok(s->p[CUCKOO_SLOTS]) && cuckoo_hash_lasts(nb, f) &&
           s->p[CUCKOO_SEMISORT] <= 1 &&
           (!s->p[CUCKOO_SEMISORT] || s->p[CUCKOO_SLOTS] == 4) &&
           s->p[CUCKOO_UNIQUE] <= 1 && s->p[CUCKOO_GROW] <= CUCKOO_MAX_GROW &&
           s->p[CUCKOO_MIXING] <= CUCKOO_LIGHT &&
           s->nbytes == bly_cuckoo_nbytes(bly_cuckoo_bits(s));
}

/* ----------------------------------------------------------------- rooms */

/* The integer part of the square root, computed bit by bit and without doubles,
 * for cuckoo_room(). */
static uint64_t cuckoo_root(uint64_t x)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= x)
            root |= bit;
    return root;
}

/* How many keys a table of nb buckets is planned for: `most` of its slots if it
 * is large. For small tables, the number of keys at which they are full varies
 * by about the square root of the number of slots, and a few keys may by chance
 * share too few buckets: mean, sigma and few leave room for that. 2b keys
 * always fit, since two buckets have room for that many. */
static uint64_t cuckoo_room(uint64_t nb, uint64_t b, uint64_t f)
{
    static const struct {
        unsigned most, mean; /* thousandths of the slots */
        unsigned sigma;      /* tenths of their root */
        unsigned few;
    } loads[] = {
        [1] = { 400, 500, 40, 2 },
        [2] = { 840, 885, 35, 4 },
        [4] = { 950, 977, 13, 4 },
        [8] = { 970, 990, 8, 4 },
    };
    const uint64_t nslots = nb * b;
    /* A fingerprint of f bits offers its bucket at most 2^f - 1 partners, so
     * with four or five bits the search soon walks in circles. */
    const unsigned most = f == 4 ? 900 : f == 5 ? 940 : 1000;
    const uint64_t large =
        nslots * (most < loads[b].most ? most : loads[b].most) / 1000;
    const uint64_t mean = nslots * loads[b].mean / 1000;
    const uint64_t less =
        cuckoo_root(nslots) * loads[b].sigma / 10 + loads[b].few;
    const uint64_t small = mean > less ? mean - less : 0;
    const uint64_t room = small < large ? small : large;
    return room > 2 * b ? room : 2 * b;
}

/* The smallest even number of buckets with room for n keys. */
static uint64_t cuckoo_buckets_for(uint64_t n, uint64_t b, uint64_t f)
{
    /* Double, then bisect: the room grows with the number of buckets, but the
     * formula cannot be inverted. The filter's layout depends on the result, so
     * there is no floating point here. */
    uint64_t low = 0, high = 1; /* pairs of buckets: too few, enough */
    while (cuckoo_room(2 * high, b, f) < n) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        if (cuckoo_room(2 * mid, b, f) < n)
            low = mid;
        else
            high = mid;
    }
    return 2 * high;
}

/* Fingerprints shorter than this spoil the load: bucket = 2 with 4 bits is
 * full at 0.43, and 1 with 8 bits sometimes at 0.16. For 4 and 8 slots shorter
 * ones are only used where they are asked for. */
static uint64_t cuckoo_least_bits(uint64_t b)
{
    return b == 1 ? 12 : b == 2 ? 8 : 6;
}

static bly_shape cuckoo_shape(uint64_t nb, uint64_t f, const bly_shape *like)
{
    bly_shape s = bly_shape_copy(&bly_kind_cuckoo, like);
    s.p[CUCKOO_BUCKETS] = nb;
    s.p[CUCKOO_BITS] = f;
    s.nbytes = bly_cuckoo_nbytes(bly_cuckoo_bits(&s));
    return s;
}

/* ---------------------------------------------------------------- tables */

double bly_cuckoo_table_rate(const bly_shape *s, double n)
{
    const double cells = (double)s->p[CUCKOO_BUCKETS] *
                         (double)((UINT64_C(1) << s->p[CUCKOO_BITS]) - 1);
    return -expm1(n * log1p(-2 / cells));
}

uint64_t bly_cuckoo_shape_room(const bly_shape *s)
{
    return cuckoo_room(s->p[CUCKOO_BUCKETS], s->p[CUCKOO_SLOTS],
                       s->p[CUCKOO_BITS]);
}

bool bly_cuckoo_layer_shape(const bly_shape *root, uint32_t i, bly_shape *out)
{
    const uint64_t b = root->p[CUCKOO_SLOTS];
    uint64_t n = bly_cuckoo_shape_room(root), f = root->p[CUCKOO_BITS];
    for (uint32_t j = 0; j <= i; j++) {
        /* Checked at every step: 2^40 times 16 is far from an overflow. */
        n *= root->p[CUCKOO_GROW];
        f += f < CUCKOO_MAX_BITS;
        if (n > CUCKOO_MAX_BUCKETS)
            return false;
    }
    bly_shape like = bly_shape_copy(&bly_kind_cuckoo, root);
    /* Only the first table grows; its layers are plain tables. */
    like.p[CUCKOO_GROW] = 0;
    *out = cuckoo_shape(cuckoo_buckets_for(n, b, f), f, &like);
    return bly_cuckoo_sane(out);
}

double bly_cuckoo_rate(const bly_shape *s, double n)
{
    if (!s->p[CUCKOO_GROW])
        return bly_cuckoo_table_rate(s, n);
    /* Tables fill up in the order in which they are made, so each but the last
     * has all its room in use. The filter answers "no" if every table does. */
    double none = 1, left = n;
    bly_shape table = bly_shape_copy(&bly_kind_cuckoo, s);
    for (uint32_t i = 0;; i++) {
        const double room = (double)bly_cuckoo_shape_room(&table);
        bly_shape next;
        const bool last = left <= room || i == BLY_MAX_LAYERS ||
                          !bly_cuckoo_layer_shape(s, i, &next);
        none *= 1 - bly_cuckoo_table_rate(&table, last ? left : room);
        if (last)
            return 1 - none;
        left -= room;
        table = next;
    }
}

/* -------------------------------------------------------------- planning */

static bly_status cuckoo_check_options(const bly_want *w)
{
    const uint64_t b = w->opt[CUCKOO_SLOTS], f = w->opt[CUCKOO_BITS];
    if (!cuckoo_slots_ok(b))
        return bly_fail(BLY_EINVAL, "a bucket has 1, 2, 4 or 8 slots, not %llu",
                        (unsigned long long)b);
    if (w->opt[CUCKOO_SEMISORT] && b != 4)
        return bly_fail(BLY_EINVAL, "semi-sorting needs buckets of 4 slots");
    if (w->bits > CUCKOO_MAX_MEMORY)
        return bly_fail(BLY_ERANGE, "a cuckoo filter has at most 2^48 bits");
    if (f && b < 4 && f < cuckoo_least_bits(b))
        return bly_fail(BLY_EINVAL,
                        "buckets of %llu need fingerprints of at least %llu "
                        "bits: shorter ones lead to too few buckets",
                        (unsigned long long)b,
                        (unsigned long long)cuckoo_least_bits(b));
    return BLY_OK;
}

/* The chance that n keys do not find room in nb buckets of one slot: buckets
 * are the nodes and keys the edges of a random bipartite graph with half the
 * nodes on either side, and no component may have more edges than nodes. For
 * large graphs with n = (1 - e) nb/2 edges, the first term is Kutzelnigg's
 * (Bipartite Random Graphs and Cuckoo Hashing, 2006). The second is the chance
 * that three keys have the same two buckets: where fingerprints are short,
 * fewer pairs of buckets are possible. */
static double cuckoo_single_fails(double n, double nb, uint64_t f)
{
    const double m = nb / 2, e = 1 - n / m;
    const double cells = m * (ldexp(1, (int)f) - 1);
    if (e <= 0)
        return 1;
    return (2 * e * e - 5 * e + 5) * pow(1 - e, 3) /
               (12 * pow((2 - e) * e, 2) * e * m) +
           n * n * n / (6 * cells * cells);
}

/* The fraction of plans that may fail. */
#define CUCKOO_SINGLE_FAILS (1 / 50000.0)

/* The smallest even number of buckets with room for w's items. cuckoo_room() is
 * too tight for buckets of one slot: one plan in 200 failed. But it cannot be
 * changed, since the tables of filters that grow are sized by it for ever. */
static uint64_t cuckoo_least(const bly_want *w, uint64_t f)
{
    const uint64_t b = w->opt[CUCKOO_SLOTS];
    const double n = (double)w->items;
    uint64_t low = cuckoo_buckets_for(w->items, b, f), high = low;
    /* Two keys always fit. Where the size is given, so is the risk. */
    if (b > 1 || n <= 2 || w->bits)
        return low;
    while (high < CUCKOO_MAX_BUCKETS &&
           cuckoo_single_fails(n, (double)high, f) > CUCKOO_SINGLE_FAILS) {
        low = high;
        high *= 2;
    }
    while (high - low > 2) {
        const uint64_t mid = (low + (high - low) / 2) / 2 * 2;
        if (cuckoo_single_fails(n, (double)mid, f) > CUCKOO_SINGLE_FAILS)
            low = mid;
        else
            high = mid;
    }
    return high;
}

/* The number of buckets for w with fingerprints of f bits; 0: none will do. */
static uint64_t cuckoo_fit(const bly_want *w, uint64_t f)
{
    const uint64_t b = w->opt[CUCKOO_SLOTS];
    /* The keys need this much room. A given size must offer it, and the rate
     * may ask for more. */
    const uint64_t least = cuckoo_least(w, f);
    uint64_t nb = least;
    if (w->bits) {
        nb = w->bits / bly_cuckoo_width(b, f, w->opt[CUCKOO_SEMISORT] != 0) /
             2 * 2;
        nb = nb < CUCKOO_MAX_BUCKETS ? nb : CUCKOO_MAX_BUCKETS;
        if (!cuckoo_hash_lasts(nb, f)) /* the rest is left unused */
            nb = UINT64_C(1) << (64 - f);
    } else {
        /* The rate is close to 1 - exp(-2 n / (nb F)); solve for nb. The first
         * table of a chain may spend only half the rate, since its successors
         * share the other half, and it must keep to that with every slot in
         * use, because it will be filled before the next one is made. */
        const bool chain = w->opt[CUCKOO_GROW] != 0;
        const double p = chain ? w->fpr / 2 : w->fpr;
        const double cells = (double)((UINT64_C(1) << f) - 1);
        const double want = 2 * (double)w->items / (cells * -log1p(-p));
        if (chain && !w->opt[CUCKOO_BITS] && 2 * (double)b > cells * -log1p(-p))
            return 0;
        if (want > (double)CUCKOO_MAX_BUCKETS)
            return 0;
        if (want > (double)nb)
            nb = ((uint64_t)ceil(want) + 2) / 2 * 2;
    }
    return nb >= least && nb <= CUCKOO_MAX_BUCKETS && cuckoo_hash_lasts(nb, f)
               ? nb
               : 0;
}

bly_status bly_cuckoo_plan(const bly_want *w, bly_shape *out)
{
    const bly_status st = cuckoo_check_options(w);
    if (st)
        return st;
    const uint64_t only = w->opt[CUCKOO_BITS];
    const uint64_t from = only ? only : cuckoo_least_bits(w->opt[CUCKOO_SLOTS]);
    const uint64_t to = only ? only : CUCKOO_MAX_BITS;
    bly_shape like = { 0 };
    like.p[CUCKOO_SLOTS] = w->opt[CUCKOO_SLOTS];
    like.p[CUCKOO_SEMISORT] = w->opt[CUCKOO_SEMISORT];
    like.p[CUCKOO_UNIQUE] = w->opt[CUCKOO_UNIQUE];
    like.p[CUCKOO_GROW] = w->opt[CUCKOO_GROW];
    like.p[CUCKOO_MIXING] = w->opt[CUCKOO_MIXING];

    double best = INFINITY; /* bits where the rate is given, else the rate */
    /* Longer fingerprints mean fewer false positives per bucket, but fewer
     * buckets in the same memory. There are few lengths, so all are tried. */
    for (uint64_t f = from; f <= to; f++) {
        const uint64_t nb = cuckoo_fit(w, f);
        if (!nb)
            continue;
        const bly_shape s = cuckoo_shape(nb, f, &like);
        const double cost = w->bits
                                ? bly_cuckoo_table_rate(&s, (double)w->items)
                                : (double)bly_cuckoo_bits(&s);
        if (cost < best) {
            best = cost;
            *out = s;
        }
    }
    if (best < INFINITY)
        return BLY_OK;
    if (w->bits)
        return bly_fail(BLY_EINVAL,
                        "%llu bits are too few for %llu fingerprints of %llu "
                        "bits or more",
                        (unsigned long long)w->bits,
                        (unsigned long long)w->items, (unsigned long long)from);
    return bly_fail(BLY_ERANGE,
                    "a cuckoo filter has fingerprints of at most 32 bits and "
                    "2^40 buckets, and takes both from 64 bits: ask for fewer "
                    "items or a higher rate");
}

void bly_cuckoo_describe(const bly_shape *s, const bly_want *w,
                         const bly_filter *f, bly_facts *out)
{
    const double nslots = (double)(s->p[CUCKOO_BUCKETS] * s->p[CUCKOO_SLOTS]);
    const double n = (double)(w ? w->items : f->items);
    bly_fact_real(out, "load_at_capacity", n / nslots);
    bly_fact_uint(out, "room", bly_cuckoo_shape_room(s));
    if (s->p[CUCKOO_GROW]) /* p/2 + p/4 + ..., with every slot in use */
        bly_fact_real(out, "fpr_bound", 2 * bly_cuckoo_table_rate(s, nslots));
}
