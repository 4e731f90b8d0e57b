/*
 * ribbon.c - the bumped ribbon filter: static, and hardly larger than the bound
 *
 * No filter of n keys at rate p takes less than n log2(1/p) bits. This one
 * stores a function: each key has a print of a few bits; the table returns that
 * print for every key of the set, and something else for most other keys.
 * engine/ribbon_table.h says how such a table is solved and queried.
 *
 *     first layer    n keys, about n slots       some 1 % find no room
 *     second layer   those keys, 6 % more slots  hardly any of them
 *     last layer     the rest, all of it
 *
 * A shard of the first layer has about as many slots as keys. Each bucket of
 * 256 slots has a byte, its bound, which tells which of its keys were bumped to
 * the next layer: those that start in the steps of two slots below the bound
 * [1]. Hardly any slots stay empty that way, and a key is looked up in one
 * place, after reading one byte that is in the cache.
 *
 *     hash h -> u = mix(h ^ seed of layer 1), in the next layer mix(u ^ ...)
 *     shard  = u * nshards / 2^64, share = the fraction of that
 *     start  = share * (slots of a shard - 63)
 *     row    = 64 bits of u C1, print = 64 bits of u C2
 *
 * Any rate is possible. With f bits for all keys it is 2^-f. For a rate in
 * between, keys with share >= 1 - e have f + 1 bits: then the rate is 2^-f (1 -
 * e/2), exactly, whatever the keys are. Rates that are not a power of 1/2 are
 * farther above the bound, by 1.2 % of the bits at 1 %, since the mean of two
 * rates is above the rate of the mean width.
 *
 * One million keys at 1 %: f = 6, e = 0.72, layers of 1000448 and 10752 slots,
 * 6.827 bits per key, 1.028 of the bound.
 *
 * Nothing can be added, removed or merged: a slot is the sum of many keys, and
 * these are known only while the filter is built.
 *
 * In memory: the blocks of all shards of all layers, in order, as little-endian
 * words; up to three words that are 0; then one byte for each bound, layer
 * after layer, padded to whole words.
 *
 * [1] Dillinger, Huebschle-Schneider, Sanders and Walzer, Fast Succinct
 *     Retrieval and Approximate Membership using Ribbon, 2022
 * [2] Dillinger and Walzer, Ribbon Filter: Practically Smaller Than Bloom and
 *     Xor, 2021
 */
#include "kinds/ribbon.h"

#include <math.h>
#include <string.h>

#include "core/status.h"

/* Slots of a layer; the sum of four times 64 bits is far below 2^64. */
#define RIBBON_MAX_SLOTS (UINT64_C(1) << 49)

#define RIBBON_PARAM_SLOTS(number, text)                                 \
    BLY_PARAM("slots" number, BLY_UINT, .max = (double)RIBBON_MAX_SLOTS, \
              .help = "slots of the " text)

static const bly_param ribbon_params[] = {
    [BLY_RIBBON_WIDTH] =
        BLY_PARAM("width", BLY_UINT, .max = BLY_RIBBON_MAX_WIDTH,
                  .help = "bits of a print"),
    [BLY_RIBBON_WIDER] =
        BLY_PARAM("wider", BLY_UINT, .max = 0x1p32 - 1,
                  .help = "keys of 2^32 that have one bit more"),
    [BLY_RIBBON_SLOTS] = RIBBON_PARAM_SLOTS("1", "first layer"),
    RIBBON_PARAM_SLOTS("2", "second layer"),
    RIBBON_PARAM_SLOTS("3", "third layer"),
    RIBBON_PARAM_SLOTS("4", "fourth layer"),
    [BLY_RIBBON_TIGHT] = BLY_PARAM(
        "tight", BLY_UINT, .settable = true, .planning = true, .max = 1,
        .help = "1: fewest bits; one key in 25 costs a second line"),
    [BLY_RIBBON_VALUED] =
        BLY_PARAM("valued", BLY_UINT, .max = 1,
                  .help = "1: tells keys in the set from known others"),
};

/* ----------------------------------------------------------------- shapes */

static uint64_t ribbon_nshards(uint64_t nslots)
{
    return (nslots + BLY_RIBBON_SHARD - 1) / BLY_RIBBON_SHARD;
}

/* Bits 0 to n - 1, n up to 64. */
static uint64_t ribbon_low_bits(unsigned n)
{
    return n ? UINT64_MAX >> (64 - n) : 0;
}

/* A layer of nshards shards, all with the same number of slots. */
static inline __attribute__((always_inline)) bly_ribbon_layer
ribbon_layer_with(const bly_shape *s, uint64_t nshards, uint32_t nslots)
{
    const uint64_t wider = s->p[BLY_RIBBON_WIDER];
    bly_ribbon_layer l = { .nshards = nshards,
                           .nslots = nslots,
                           .width = (unsigned)s->p[BLY_RIBBON_WIDTH],
                           .narrow = (UINT64_C(1) << 32) - wider };
    l.nplanes = l.width + (wider > 0);
    /* The first block in which a wide key can start. Keys are wide from the
     * share narrow / 2^32 on. */
    l.wide = l.nslots / 64;
    if (wider)
        l.wide =
            bly_mulhi(l.narrow << 32, l.nslots - (BLY_RIBBON_ROW - 1)) / 64;
    l.stride = bly_ribbon_block(&l, l.nslots / 64);
    l.needs[0] = ribbon_low_bits(l.width);
    l.needs[1] = ribbon_low_bits(l.nplanes);
    l.out = s->p[BLY_RIBBON_VALUED] ? BLY_RIBBON_OUT : 0;
    return l;
}

/* Planes are read in groups of four. */
static inline unsigned ribbon_ngroups(const bly_shape *s)
{
    return (unsigned)(s->p[BLY_RIBBON_WIDTH] + (s->p[BLY_RIBBON_WIDER] > 0) +
                      3) /
           4;
}

static void ribbon_layer_of(const bly_shape *s, unsigned i,
                            bly_ribbon_layer *out)
{
    const uint64_t nslots = s->p[BLY_RIBBON_SLOTS + i];
    const uint64_t nshards = ribbon_nshards(nslots);
    *out = ribbon_layer_with(s, nshards, (uint32_t)(nslots / nshards));
}

void bly_ribbon_map_of(const bly_shape *s, bly_ribbon_map *out)
{
    bly_ribbon_map map = { .nlayers = 0 };
    while (map.nlayers < BLY_RIBBON_LAYERS &&
           s->p[BLY_RIBBON_SLOTS + map.nlayers]) {
        bly_ribbon_layer *l = &map.layer[map.nlayers];
        ribbon_layer_of(s, map.nlayers++, l);
        l->words = map.nwords;
        map.nwords += l->nshards * l->stride;
    }
    /* Spare words, since planes are read in groups of four. */
    map.bounds = 8 * (map.nwords + bly_ribbon_spare(map.layer[0].nplanes));
    map.end = map.bounds;
    /* The last layer bumps no keys, and has no bounds. */
    for (unsigned i = 0; i + 1 < map.nlayers; i++) {
        bly_ribbon_layer *l = &map.layer[i];
        l->nbuckets = (l->nslots + BLY_RIBBON_BUCKET - 1) / BLY_RIBBON_BUCKET;
        l->nbounds = l->out ? (l->nbuckets + 3) / 4 : l->nbuckets;
        l->bounds = map.end;
        map.end += l->nshards * l->nbounds;
    }
    map.nbytes = (map.end + 7) / 8 * 8;
    *out = map;
}

/* Round up to whole blocks, and to the same number of blocks in each shard. */
static uint64_t ribbon_round(double nslots)
{
    const uint64_t n = (uint64_t)ceil(nslots);
    const uint64_t nshards = ribbon_nshards(n);
    return nshards * ((n + nshards * 64 - 1) / (nshards * 64) * 64);
}

/* Up to this many keys go to a layer that bumps none. It is filled so tightly
 * that only one seed in five to one in two succeeds, which costs a small filter
 * a millisecond. */
#define RIBBON_FEW 20000

/* The same where memory matters most. With a full first layer in front of that
 * one, 9,000 keys take 1 % fewer bits and 20,000 take 1.7 % fewer; 5,000 take
 * more, since each layer has whole blocks. */
#define RIBBON_TIGHT_FEW 6000

/* How full the first layers are made. slots is the number of slots per key. The
 * keys that find no room are estimated as the share `bumped` of all n, plus
 * `roots` times sqrt(n) (small_roots up to RIBBON_SMALL keys). The second term
 * is five standard deviations or more for plain and tight layers. For valued
 * layers it is three with more than a million keys, and two below, where one
 * small filter in thirty needs a second attempt. */
typedef struct ribbon_load {
    double slots, bumped, roots, small_roots;
} ribbon_load;
#define RIBBON_SMALL 1e6

/* Plain: as many slots as keys. 0.9 % of both are left over, and hardly any key
 * costs more than one cache line. With fewer slots more keys are bumped, but
 * hardly any slot stays empty, and it is the empty slots that cost memory. */
static const ribbon_load ribbon_plain = { 1, 0.009, 1.5, 1.5 };
static const ribbon_load ribbon_tight = { 0.96, 0.0414, 0.6, 0.6 };
static const ribbon_load ribbon_valued = { 0.97, 0.0345, 1.5, 1 };

/* Above this, the second layer of a tight table would leave more keys than the
 * other two can take. */
#define RIBBON_MANY 1e9

/* Slots of the layers for n keys. A layer with 6 % to spare bumps 0.005 % or
 * less, with a deviation of 0.05 sqrt(n). The next has room for more, so an
 * attempt hardly ever fails. */
static void ribbon_size(double n, const ribbon_load *load, uint64_t *slots)
{
    unsigned i = 0;
    memset(slots, 0, BLY_RIBBON_LAYERS * sizeof *slots);
    /* Where the first layer is tight, so is the second. */
    const bool tight = load->slots < 1;
    const unsigned full = tight && n < RIBBON_MANY / load->bumped ? 2 : 1;
    while (i < full &&
           (n > RIBBON_FEW || (tight && !i && n > RIBBON_TIGHT_FEW))) {
        const double want = load->slots * n;
        slots[i] = ribbon_round(want);
        /* In a tight layer all slots are filled, so the slots gained by
         * rounding up to blocks take keys too. */
        const double more = tight ? (double)slots[i] - want : 0;
        n = load->bumped * n - more +
            (n > RIBBON_SMALL ? load->roots : load->small_roots) * sqrt(n);
        i++;
    }
    while (n > RIBBON_FEW && i + 1 < BLY_RIBBON_LAYERS) {
        slots[i++] = ribbon_round(1.06 * n);
        n = 5e-5 * n + 0.6 * sqrt(n);
    }
    /* The longer the last layer, the likelier it fails somewhere: so it gets
     * 1.5 % spare slots for few keys, and 3 % for the most. */
    slots[i] = ribbon_round(n * (1.015 + 0.015 * n / RIBBON_FEW));
}

static double ribbon_rate(const bly_shape *s, double n)
{
    (void)n;
    return ldexp(1 - (double)s->p[BLY_RIBBON_WIDER] * 0x1p-33,
                 -(int)s->p[BLY_RIBBON_WIDTH]);
}

/* The smallest width of a print that keeps the rate p, in units of 2^-32
 * bits. */
static uint64_t ribbon_print_bits(double p)
{
    const uint64_t one = UINT64_C(1) << 32;
    uint64_t f = 0;
    while (f < BLY_RIBBON_MAX_WIDTH && ldexp(p, (int)f + 1) <= 1)
        f++;
    if (f == BLY_RIBBON_MAX_WIDTH)
        return f * one;
    /* Solve 2^-f (1 - e/2) = p; e is below 1, since p > 2^-(f+1). */
    return f * one + (uint64_t)ceil((1 - ldexp(p, (int)f)) * 0x1p33);
}

static void ribbon_set_bits(bly_shape *s, uint64_t bits)
{
    bly_ribbon_map map;
    s->p[BLY_RIBBON_WIDTH] = bits >> 32;
    s->p[BLY_RIBBON_WIDER] = (uint32_t)bits;
    bly_ribbon_map_of(s, &map);
    s->nbytes = map.nbytes;
}

static bly_status ribbon_plan(const bly_want *w, bly_shape *out)
{
    bly_shape s = { .nbytes = 0 };
    ribbon_size((double)w->items,
                w->opt[BLY_RIBBON_TIGHT] ? &ribbon_tight : &ribbon_plain,
                &s.p[BLY_RIBBON_SLOTS]);
    if (w->fpr > 0) {
        ribbon_set_bits(&s, ribbon_print_bits(w->fpr));
        *out = s;
        return BLY_OK;
    }
    /* The widest prints that the memory holds: low fits, high does not. */
    uint64_t low = 0, high = ((uint64_t)BLY_RIBBON_MAX_WIDTH << 32) + 1;
    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        ribbon_set_bits(&s, mid);
        if (s.nbytes <= w->bits / 8)
            low = mid;
        else
            high = mid;
    }
    if (!low) {
        ribbon_set_bits(&s, 1);
        return bly_fail(BLY_EINVAL,
                        "%llu bits are too few for a ribbon filter of %llu "
                        "items, which begins at %llu",
                        (unsigned long long)w->bits,
                        (unsigned long long)w->items,
                        (unsigned long long)s.nbytes * 8);
    }
    ribbon_set_bits(&s, low);
    *out = s;
    return BLY_OK;
}

void bly_ribbon_shape_valued(uint64_t nkeys, bly_shape *out)
{
    bly_shape s = { .nbytes = 0 };
    s.p[BLY_RIBBON_VALUED] = 1;
    ribbon_size((double)(nkeys ? nkeys : 1), &ribbon_valued,
                &s.p[BLY_RIBBON_SLOTS]);
    ribbon_set_bits(&s, UINT64_C(1) << 32);
    *out = s;
}

static bool ribbon_sane(const bly_shape *s)
{
    const uint64_t width = s->p[BLY_RIBBON_WIDTH];
    const uint64_t wider = s->p[BLY_RIBBON_WIDER];
    const uint64_t *slots = &s->p[BLY_RIBBON_SLOTS];
    bly_ribbon_map map;
    if (width > BLY_RIBBON_MAX_WIDTH || wider > UINT32_MAX ||
        (width == BLY_RIBBON_MAX_WIDTH && wider) || (!width && !wider) ||
        !slots[0] || s->p[BLY_RIBBON_TIGHT] || s->p[BLY_RIBBON_VALUED] > 1 ||
        (s->p[BLY_RIBBON_VALUED] && (width != 1 || wider)))
        return false;
    /* Layers without a gap, each of whole blocks and equal shards. */
    unsigned n = 0;
    while (n < BLY_RIBBON_LAYERS && slots[n]) {
        if (slots[n] > RIBBON_MAX_SLOTS ||
            slots[n] % (64 * ribbon_nshards(slots[n])))
            return false;
        n++;
    }
    for (unsigned i = n; i < BLY_RIBBON_LAYERS; i++)
        if (slots[i])
            return false;
    if (slots[n - 1] > BLY_RIBBON_SHARD)
        return false; /* the last layer is one shard */
    bly_ribbon_map_of(s, &map);
    return s->nbytes == map.nbytes;
}

static void ribbon_describe(const bly_shape *s, const bly_want *w,
                            const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    const double bound = -n * log2(ribbon_rate(s, n));
    if (bound > 0)
        bly_fact_real(out, "over_bound", 8 * (double)s->nbytes / bound);
}

/* Any seeds do. */
static bool ribbon_sound(const bly_filter *f)
{
    return f->nlayers == 0 && f->state[BLY_RIBBON_KEYS] <= f->items;
}

/* Is the padding zero, and is each bound within its bucket? */
static bool ribbon_check(const bly_filter *f)
{
    bly_ribbon_map map;
    unsigned char rest = 0;
    bly_ribbon_map_of(&f->shape, &map);
    for (uint64_t i = 8 * map.nwords; i < map.bounds; i++)
        rest |= f->data[i];
    for (uint64_t i = map.end; i < map.nbytes; i++)
        rest |= f->data[i];
    for (uint64_t i = map.bounds; i < map.end && !map.layer[0].out; i++)
        if (f->data[i] > BLY_RIBBON_BUCKET / BLY_RIBBON_STEP)
            return false;
    return !rest;
}

static void ribbon_stat(const bly_filter *f, bly_stats *out)
{
    const double n = (double)f->state[BLY_RIBBON_KEYS];
    double slots = 0;
    for (unsigned i = 0; i < BLY_RIBBON_LAYERS; i++)
        slots += (double)f->shape.p[BLY_RIBBON_SLOTS + i];
    out->items_estimate = n;
    out->items_sd = 0;
    out->fill = fmin(1, n / slots);
    out->fpr_now = n > 0 ? ribbon_rate(&f->shape, n) : 0;
}

/* ----------------------------------------------------------------- asking */

/* A filter that fits into the smallest L2 cache in use is not prefetched. */
#define RIBBON_CACHED (256 << 10)

/* Was the key bumped by layer l? */
static bool ribbon_is_bumped(const bly_ribbon_layer *l, const bly_ribbon_key *k,
                             const unsigned char *bounds)
{
    if (l->out)
        return bly_ribbon_bumped(bounds, k->start);
    return k->start % BLY_RIBBON_BUCKET / BLY_RIBBON_STEP <
           bounds[k->start / BLY_RIBBON_BUCKET];
}

/* The hash of a key in layer i, from that in the layer before. */
static uint64_t ribbon_hash(const bly_filter *f, const bly_ribbon_layer *l,
                            unsigned i, uint64_t u)
{
    const uint64_t seed = f->state[BLY_RIBBON_SEED + i];
    return l->out ? bly_ribbon_hash_valued(u & ~l->out, seed)
                  : bly_ribbon_hash(u, seed);
}

/* A ribbon of values is queried only for keys that another filter let through.
 * They are few, so this goes key by key. */
static bool ribbon_is_in(const bly_filter *f, const bly_ribbon_map *map,
                         uint64_t u)
{
    for (unsigned i = 0; i < map->nlayers; i++) {
        const bly_ribbon_layer *const l = &map->layer[i];
        u = ribbon_hash(f, l, i, u);
        const bly_ribbon_key key = bly_ribbon_place(l, u);
        if (l->nbuckets &&
            ribbon_is_bumped(l, &key,
                             f->data + l->bounds + key.shard * l->nbounds))
            continue;
        const unsigned s = key.start % 64;
        const uint64_t row = bly_ribbon_coefficients(u);
        const uint64_t *const x = (const uint64_t *)(const void *)f->data +
                                  l->words + key.shard * l->stride +
                                  key.start / 64;
        /* There is no block behind the last one, and no row reaches beyond
         * it. */
        const uint64_t sum = (bly_le64(x[0]) & row << s) ^
                             (s ? bly_le64(x[1]) & row >> 1 >> (63 - s) : 0);
        return __builtin_parityll(sum) == (int)(bly_ribbon_print(u) & 1);
    }
    return false;
}

static void ribbon_has_values(const bly_filter *f, const bly_ribbon_map *map,
                              const uint64_t *h, size_t n, uint64_t *maybe)
{
    for (size_t i = 0; i < n; i++)
        maybe[i / 64] |= (uint64_t)ribbon_is_in(f, map, h[i]) << i % 64;
}

/* A filter of one layer and one shard keeps no map, since the map would be
 * larger than the filter. Its layer takes no divisions, so it is computed as
 * fast as it could be loaded. */
static bool ribbon_simple(const bly_shape *s)
{
    return s->p[BLY_RIBBON_SLOTS] <= BLY_RIBBON_SHARD &&
           !s->p[BLY_RIBBON_SLOTS + 1] && s->nbytes < BLY_ALIGNED_FROM;
}

BLY_ONE_BODY bly_ribbon_layer ribbon_simple_layer(const bly_filter *f)
{
    bly_ribbon_layer l =
        ribbon_layer_with(&f->shape, 1, (uint32_t)f->shape.p[BLY_RIBBON_SLOTS]);
    l.seed = f->state[BLY_RIBBON_SEED];
    return l;
}

/* The map that a filter keeps in aux, once it is made: one load away from f. */
static inline const bly_ribbon_map *ribbon_kept(const bly_filter *f)
{
    return (const bly_ribbon_map *)(uintptr_t)f->aid;
}

/* The map that a filter keeps for single keys, if it has one. To make it anew
 * takes as long as three queries. */
static const bly_ribbon_map *ribbon_map(const bly_filter *f,
                                        bly_ribbon_map *room)
{
    if (ribbon_kept(f))
        return ribbon_kept(f);
    if (ribbon_simple(&f->shape) && !f->shape.p[BLY_RIBBON_VALUED]) {
        room->layer[0] = ribbon_simple_layer(f);
        room->nlayers = 1; /* all that is needed of the map here */
        return room;
    }
    bly_ribbon_map_of(&f->shape, room);
    for (unsigned i = 0; i < room->nlayers && !room->layer[0].out; i++)
        room->layer[i].seed = f->state[BLY_RIBBON_SEED + i];
    return room;
}

static void ribbon_has(const bly_filter *f, const uint64_t *h, size_t n,
                       uint64_t *maybe)
{
    const bly_ribbon_row *const v = bly_ribbon_best();
    const bool ahead = f->shape.nbytes > RIBBON_CACHED;
    bly_ribbon_map room;
    bly_ribbon_keys rest;
    if (!f->state[BLY_RIBBON_KEYS])
        return; /* it is empty */
    const bly_ribbon_map *const map = ribbon_map(f, &room);
    if (map->layer[0].out) {
        ribbon_has_values(f, map, h, n, maybe);
        return;
    }
    for (size_t from = 0; from < n; from += BLY_RIBBON_PIECE) {
        const size_t left = n - from;
        const size_t np = left < BLY_RIBBON_PIECE ? left : BLY_RIBBON_PIECE;
        uint64_t *const to = maybe + from / 64;
        /* The first layer answers for nearly all keys. `rest` holds those it
         * bumped, with the hashes from which the next layer starts. */
        v->ask(&map->layer[0], f->data, h + from, np, &rest, to, true, ahead);
        for (unsigned i = 1; i < map->nlayers && rest.n; i++)
            v->ask(&map->layer[i], f->data, rest.u, rest.n, &rest, to, false,
                   ahead);
    }
}

/* One key. To compute the map takes divisions, so a filter keeps it in aux. */
static bly_status ribbon_map_open(bly_filter *f)
{
    if (f->shape.p[BLY_RIBBON_VALUED] || ribbon_simple(&f->shape))
        return BLY_OK; /* never queried this way */
    return bly_filter_aux_new(f, sizeof(bly_ribbon_map)) ? BLY_OK : BLY_ENOMEM;
}

static void ribbon_map_close(bly_filter *f)
{
    bly_filter_aux_free(f, sizeof(bly_ribbon_map));
}

BLY_ONE_BODY uint64_t ribbon_four(const uint64_t *x, const uint64_t *y,
                                  uint64_t here, uint64_t there)
{
    uint64_t v[4];
    for (unsigned i = 0; i < 4; i++)
        v[i] = (bly_le64(x[i]) & here) ^ (bly_le64(y[i]) & there);
    return bly_ribbon_parities(v[0], v[1], v[2], v[3]);
}

/* Ask layer l whether it has the key. False: the key was bumped, and *u is its
 * hash for the next layer. */
BLY_ONE_BODY bool ribbon_ask_one(const bly_ribbon_layer *l,
                                 const unsigned char *data, unsigned ngroups,
                                 uint64_t *u, bool *in)
{
    const bly_ribbon_asked a = bly_ribbon_find(l, data, *u);
    *u = a.u;
    *in = bly_ribbon_test(l, &a, ngroups, ribbon_four);
    return a.key.start % BLY_RIBBON_BUCKET / BLY_RIBBON_STEP >= *a.bound;
}

/* Look up a key that the first layer bumped. */
static __attribute__((noinline)) bool ribbon_further(const bly_filter *f,
                                                     uint64_t u)
{
    const bly_ribbon_map *const map = ribbon_kept(f);
    bool in = false, asked = false;
    for (unsigned i = 1; i < map->nlayers && !asked; i++)
        asked = ribbon_ask_one(&map->layer[i], f->data,
                               (map->layer[i].nplanes + 3) / 4, &u, &in);
    return asked && in;
}

BLY_ONE_BODY bool ribbon_one_body(const bly_filter *f, uint64_t h,
                                  unsigned ngroups)
{
    const bly_ribbon_map *const map = ribbon_kept(f);
    bool in;
    return __builtin_expect(
               ribbon_ask_one(&map->layer[0], f->data, ngroups, &h, &in), 1)
               ? in
               : ribbon_further(f, h);
}

/* Rates from 6 % to 0.4 % take two groups of planes. */
#define RIBBON_ANY(f, h) \
    ribbon_one_body(f, h, (ribbon_kept(f)->layer[0].nplanes + 3) / 4)
#define RIBBON_TWO(f, h) ribbon_one_body(f, h, 2)
BLY_ONE_HAS(ribbon_has_any, RIBBON_ANY)
BLY_ONE_HAS(ribbon_has_two, RIBBON_TWO)

BLY_ONE_BODY bool ribbon_simple_body(const bly_filter *f, uint64_t h,
                                     unsigned ngroups)
{
    const bly_ribbon_layer l = ribbon_simple_layer(f);
    const bly_ribbon_asked a = bly_ribbon_find(&l, f->data, h);
    return bly_ribbon_test(&l, &a, ngroups, ribbon_four);
}

#define RIBBON_SIMPLE(f, h) \
    ribbon_simple_body(f, h, ribbon_ngroups(&(f)->shape))
#define RIBBON_SIMPLE_TWO(f, h) ribbon_simple_body(f, h, 2)
BLY_ONE_HAS(ribbon_has_simple, RIBBON_SIMPLE)
BLY_ONE_HAS(ribbon_has_simple_two, RIBBON_SIMPLE_TWO)

static void ribbon_one(const bly_filter *f, bly_one *out)
{
    bly_ribbon_map *const map = f->extra->aux;
    if (!f->state[BLY_RIBBON_KEYS] || f->shape.p[BLY_RIBBON_VALUED])
        return;
    if (!map) {
        if (ribbon_ngroups(&f->shape) == 2)
            BLY_ONE_SET_HAS(out, ribbon_has_simple_two);
        else
            BLY_ONE_SET_HAS(out, ribbon_has_simple);
        return;
    }
    bly_ribbon_map_of(&f->shape, map);
    for (unsigned i = 0; i < map->nlayers; i++)
        map->layer[i].seed = f->state[BLY_RIBBON_SEED + i];
    out->aid = (uintptr_t)map;
    if ((map->layer[0].nplanes + 3) / 4 == 2)
        BLY_ONE_SET_HAS(out, ribbon_has_two);
    else
        BLY_ONE_SET_HAS(out, ribbon_has_any);
}

_Static_assert(BLY_VIEW_RIBBON_LAYERS == BLY_RIBBON_LAYERS,
               "a view has as many layers as a filter");

bool bly_view_of_ribbon(const bly_filter *f, bly_view_ribbon *out)
{
    bly_ribbon_map map;
    if (!bly_filter_viewed(f, &bly_kind_ribbon, out) ||
        f->shape.p[BLY_RIBBON_VALUED])
        return false;
    *out = (bly_view_ribbon){
        .data = f->data,
        .turned = f->extra->turned,
        .folded = bly_filter_folds(f),
    };
    if (!f->state[BLY_RIBBON_KEYS])
        return true;
    bly_ribbon_map_of(&f->shape, &map);
    out->nlayers = map.nlayers;
    for (unsigned i = 0; i < map.nlayers; i++) {
        const bly_ribbon_layer *const l = &map.layer[i];
        out->layer[i] = (bly_view_ribbon_layer){
            .nshards = l->nshards,
            .stride = l->stride,
            .words = l->words,
            .bounds = l->bounds,
            .wide = l->wide,
            .narrow = l->narrow,
            .seed = f->state[BLY_RIBBON_SEED + i],
            .needs = { l->needs[0], l->needs[1] },
            .nslots = l->nslots,
            .width = l->width,
            .nbounds = l->nbounds,
        };
    }
    return true;
}

/* Check the slots of a key in one layer, from the block of its start on, and
 * its bound, which says whether the key is in the next layer. */
static bool ribbon_reach_layer(const bly_filter *f, const bly_ribbon_layer *l,
                               const bly_ribbon_key *key, size_t i,
                               uint64_t *bad)
{
    /* A row that starts where its block starts does not reach into the next
     * block. */
    const uint64_t b = key->start / 64, next = b + (key->start % 64 ? 2 : 1);
    const uint64_t first = l->words + key->shard * l->stride;
    const uint64_t from = first + bly_ribbon_block(l, b);
    const uint64_t to = first + bly_ribbon_block(l, next);
    return bly_reach(f, 8 * from, 8 * (to - from), i, bad);
}

static void ribbon_reach(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *bad)
{
    bly_ribbon_map map;
    bly_ribbon_map_of(&f->shape, &map);
    for (size_t i = 0; i < n; i++) {
        uint64_t u = h[i];
        bool bumped = true;
        for (unsigned j = 0; j < map.nlayers && bumped; j++) {
            const bly_ribbon_layer *const l = &map.layer[j];
            u = ribbon_hash(f, l, j, u);
            const bly_ribbon_key key = bly_ribbon_place(l, u);
            bumped = false;
            if (l->nbuckets) {
                const uint64_t bounds = l->bounds + key.shard * l->nbounds;
                const uint64_t b = key.start / BLY_RIBBON_BUCKET;
                /* A damaged bound would lead to the wrong layer. */
                if (!bly_reach(f, bounds + (l->out ? b / 4 : b), 1, i, bad))
                    break;
                bumped = ribbon_is_bumped(l, &key, f->data + bounds);
            }
            if (!bumped)
                ribbon_reach_layer(f, l, &key, i, bad);
        }
    }
}

const bly_kind bly_kind_ribbon = {
    .id = 12, /* on disk: never changed, never reused */
    .name = "ribbon",
    .summary = "fixed sets: fewest bits, 2 to 3 % above the least possible",
    .params = ribbon_params,
    .nparams = sizeof ribbon_params / sizeof ribbon_params[0],
    .nstate = BLY_RIBBON_STATES,
    .plan = ribbon_plan,
    .sane = ribbon_sane,
    .rate = ribbon_rate,
    .describe = ribbon_describe,
    .sound = ribbon_sound,
    .check = ribbon_check,
    .open = ribbon_map_open,
    .close = ribbon_map_close,
    .aux_bytes = sizeof(bly_ribbon_map),
    .reach = BLY_SYSTEM(ribbon_reach),
    .stat = ribbon_stat,
    .build = bly_ribbon_build,
    .one = ribbon_one,
    .has = ribbon_has, /* no .add, no .merge: a slot is a sum of keys */
};
