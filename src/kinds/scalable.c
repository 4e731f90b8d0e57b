/*
 * scalable.c - a filter that grows with its keys
 *
 * A list of filters, each larger than the one before. A full one is never
 * changed again. Keys go into the newest layer; a query goes from the newest to
 * the oldest until one says "maybe".
 *
 *     layer    0       1            2                        ...
 *           | n0 |  n0 s    |     n0 s^2          |     n0 s^i
 *     rate    P0     P0           P0  ...  P0   P0 r   P0 r^2
 *             '------ the first `level` of them ------'
 *
 * Rates add up: with rates P_i the filter as a whole errs with
 *
 *     P = 1 - (1 - P_0)(1 - P_1) ...  <=  P_0 + P_1 + ...
 *
 * so the layers' rates must have a finite sum, or the rate would rise with
 * every layer. [1] lets them fall from the start, P_i = P (1-r) r^i, which is
 * level = 1 here. The bits of a layer grow with log(1/P_i), and nearly all bits
 * are in the newest layers. So it is better to give the first `level` layers
 * equal shares, P_0 = P / (level + r/(1-r)), and to let rates fall only after
 * them. Bits per key when full, growth 2, as a multiple of a classic filter
 * made for that many keys:
 *
 *     grown          1 %: 7-fold  127  1023      0.1 %:  127  1023
 *     level 1, r 0.5       1.37  1.91  2.36             1.61  1.90
 *     level 1, r 0.85      1.46  1.59  1.70             1.39  1.46
 *     level 7, r 0.7       1.49  1.49  1.65             1.32  1.43   (default)
 *
 * With 1 % and 1000 keys to begin with, P_0 = 0.107 % and the first layer has
 * 14,240 bits.
 *
 * These numbers are for layers as in [1], classic filters with one slice per
 * probe (layer = classic). The default is blocked layers, which cost one cache
 * miss per layer: a query takes a quarter of the time, and a layer takes 9 %
 * more bits at 1 %, and 20 % more at 0.1 %.
 *
 * A batch goes through one layer after another, the newest first, in groups so
 * large that the cache lines of a small layer are used several times while they
 * are in L2. Keys found in the newest layers do not go on.
 *
 * A key that a layer already knows is not added again, so that repeated keys
 * do not make the filter grow. A key is counted by the layer that took it.
 * If keys are known to differ, insert = always saves the queries to older
 * layers. Keys that are in the newest layer still take no room. So a stream
 * that repeats the same n keys for ever stops growing with the first layer that
 * holds n, one layer later than if all layers had been queried.
 *
 * The union of two such filters would have the layers of both, and with them
 * the sum of both rates. No merge could keep the promised rate, so none is
 * offered. There is no removal, since layers are plain filters.
 *
 * [1] Almeida, Baquero, Preguica and Hutchison, Scalable Bloom Filters, 2007
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/maths.h"
#include "core/status.h"
#include "kinds/filter.h"

#define SCALABLE_MAX_ITEMS 0x1p48 /* of a layer: as plan.c has it for all */

enum {
    SCALABLE_FIRST,
    SCALABLE_FIRST_FPR,
    SCALABLE_GROWTH,
    SCALABLE_TIGHTENING,
    SCALABLE_LEVEL,
    SCALABLE_LAYER,
    SCALABLE_INSERT
};
enum { SCALABLE_CLASSIC, SCALABLE_BLOCKED };
enum { SCALABLE_NEW, SCALABLE_ALWAYS };

#define SCALABLE_MIN_TIGHTENING 0.05
#define SCALABLE_MAX_TIGHTENING 0.95
#define SCALABLE_MAX_GROWTH 16
#define SCALABLE_MIN_FPR 0x1p-200 /* past what 64-bit hashes can honour */

static const bly_kind *const scalable_kinds[] = {
    [SCALABLE_CLASSIC] = &bly_kind_classic,
    [SCALABLE_BLOCKED] = &bly_kind_blocked,
};

static const bly_param scalable_params[] = {
    [SCALABLE_FIRST] =
        BLY_PARAM("first_items", BLY_UINT, .min = 1, .max = SCALABLE_MAX_ITEMS,
                  .help = "keys of the first layer (n0)"),
    [SCALABLE_FIRST_FPR] = BLY_PARAM("first_fpr", BLY_REAL, .min = 0, .max = 1,
                                     .help = "rate of the first layer (P0)"),
    [SCALABLE_GROWTH] =
        BLY_PARAM("growth", BLY_REAL, .settable = true, .def = 2, .min = 1,
                  .max = SCALABLE_MAX_GROWTH,
                  .help = "keys of a layer over those of the one before"),
    [SCALABLE_TIGHTENING] = BLY_PARAM(
        "tightening", BLY_REAL, .settable = true, .def = 0.7,
        .min = SCALABLE_MIN_TIGHTENING, .max = SCALABLE_MAX_TIGHTENING,
        .help = "rate of a layer over that of the one before, once rates fall"),
    [SCALABLE_LEVEL] =
        BLY_PARAM("level", BLY_UINT, .settable = true, .def = 7, .min = 1,
                  .max = BLY_MAX_LAYERS,
                  .help = "layers of equal rate, before rates fall"),
    [SCALABLE_LAYER] = BLY_PARAM(
        "layer", BLY_CHOICE, .settable = true, .def = SCALABLE_BLOCKED,
        .max = 1, .choices = BLY_WORDS("classic", "blocked"),
        .help = "kind of the layers; blocked is faster, classic smaller where "
                "rates are low"),
    [SCALABLE_INSERT] =
        BLY_PARAM("insert", BLY_CHOICE, .settable = true, .max = 1,
                  .choices = BLY_WORDS("new", "always"),
                  .help = "ask all layers before adding, or not: faster, but "
                          "repeated keys take room"),
};

/* ------------------------------------------------------------ the sequence */

/* P_0 over the bound: the share of the first layer in the sum of all. */
static double scalable_share(double tightening, uint64_t level)
{
    /* `level` equal terms, and r + r^2 + ... = r / (1 - r). */
    return 1 / ((double)level + tightening / (1 - tightening));
}

static double scalable_bound(const bly_shape *s)
{
    const double r = bly_shape_real(s, SCALABLE_TIGHTENING);
    return fmin(1, bly_shape_real(s, SCALABLE_FIRST_FPR) /
                       scalable_share(r, s->p[SCALABLE_LEVEL]));
}

static double scalable_layer_fpr(const bly_shape *s, uint32_t i)
{
    const double r = bly_shape_real(s, SCALABLE_TIGHTENING);
    const uint64_t level = s->p[SCALABLE_LEVEL];
    const double steps = i < level ? 0 : (double)(i - level + 1);
    return bly_shape_real(s, SCALABLE_FIRST_FPR) * pow(r, steps);
}

static double scalable_layer_items(const bly_shape *s, uint32_t i)
{
    const double n = (double)s->p[SCALABLE_FIRST] *
                     pow(bly_shape_real(s, SCALABLE_GROWTH), i);
    return fmin(SCALABLE_MAX_ITEMS, floor(n));
}

/* ------------------------------------------------------------- one layer */

/* A classic filter of k slices of `slice` bits. */
static bly_status scalable_slices(double items, double k, double slice,
                                  bly_shape *out)
{
    if (!(k * slice <= 0x1p48))
        return bly_fail(BLY_ERANGE,
                        "a layer of %.3g keys would need %.3g bits; it has at "
                        "most 2^48",
                        items, k * slice);
    bly_want w = { .items = (uint64_t)items, .bits = (uint64_t)(k * slice) };
    bly_status st = bly_want_set(&bly_kind_classic, &w, "k", (uint64_t)k);
    if (!st)
        st = bly_want_set(&bly_kind_classic, &w, "layout", 1);
    return st ? st : bly_kind_classic.plan(&w, out);
}

/* The fewest bits in k slices that keep the rate. A given bit of a slice of s
 * bits is clear with probability (1 - 1/s)^n, which must be 1 - fpr^(1/k) or
 * more. More than log2(1/fpr) slices are never better, except for rounding. */
static bly_status scalable_least(double n, double fpr, bly_shape *out)
{
    const double most = fmin(255, ceil(-log2(fpr)) + 3);
    double best_k = 0, best_slice = INFINITY;
    for (double k = 1; k <= most; k++) {
        const double clear = log1p(-pow(fpr, 1 / k)) / n;
        double slice = ceil(-1 / expm1(clear));
        if (!(slice >= 1))
            slice = 1;
        while (bly_fpr_partitioned(n, slice, k) > fpr)
            slice += fmax(1, slice * 1e-12); /* what rounding took away */
        if (k * slice < best_k * best_slice || best_k == 0) {
            best_k = k;
            best_slice = slice;
        }
    }
    return scalable_slices(n, best_k, best_slice, out);
}

/* Layer number i, and how many keys it is for. */
static bly_status scalable_layer(const bly_shape *s, uint32_t i,
                                 uint64_t *items, bly_shape *out)
{
    const double fpr = scalable_layer_fpr(s, i);
    const double n = scalable_layer_items(s, i);
    *items = (uint64_t)n;
    if (s->p[SCALABLE_LAYER] == SCALABLE_CLASSIC)
        return scalable_least(n, fpr, out);
    const bly_want w = { .items = *items, .fpr = fpr };
    return scalable_kinds[s->p[SCALABLE_LAYER]]->plan(&w, out);
}

/* The lowest rate of n keys in this memory; 1 or more where there is none. */
static double scalable_best_fpr(uint64_t layer, uint64_t items, uint64_t bits)
{
    const double n = (double)items;
    double best = 1;
    if (layer == SCALABLE_CLASSIC) {
        for (double k = 1; k <= 255 && k <= (double)bits; k++)
            best =
                fmin(best, bly_fpr_partitioned(n, floor((double)bits / k), k));
        return best;
    }
    const bly_want w = { .items = items, .bits = bits };
    bly_shape s;
    const bly_kind *const kind = scalable_kinds[layer];
    return kind->plan(&w, &s) ? 2 : kind->rate(&s, n);
}

/* ------------------------------------------------------------------ shapes */

static bool scalable_sane(const bly_shape *s)
{
    const double fpr = bly_shape_real(s, SCALABLE_FIRST_FPR);
    const double growth = bly_shape_real(s, SCALABLE_GROWTH);
    const double r = bly_shape_real(s, SCALABLE_TIGHTENING);
    return s->nbytes == 0 && s->p[SCALABLE_FIRST] >= 1 &&
           s->p[SCALABLE_FIRST] <= (uint64_t)SCALABLE_MAX_ITEMS &&
           fpr >= SCALABLE_MIN_FPR && fpr < 1 && growth >= 1 &&
           growth <= SCALABLE_MAX_GROWTH && r >= SCALABLE_MIN_TIGHTENING &&
           r <= SCALABLE_MAX_TIGHTENING && s->p[SCALABLE_LEVEL] >= 1 &&
           s->p[SCALABLE_LEVEL] <= BLY_MAX_LAYERS &&
           s->p[SCALABLE_LAYER] <= 1 && s->p[SCALABLE_INSERT] <= 1;
}

static bly_status scalable_plan(const bly_want *w, bly_shape *out)
{
    const double share = scalable_share(bly_want_real(w, SCALABLE_TIGHTENING),
                                        w->opt[SCALABLE_LEVEL]);
    double fpr = fmax(w->fpr * share, SCALABLE_MIN_FPR);
    if (w->bits) {
        fpr = scalable_best_fpr(w->opt[SCALABLE_LAYER], w->items, w->bits);
        /* A little more, so that these bits are certainly enough, and not 0. */
        fpr = fmax(fpr * (1 + 1e-9), SCALABLE_MIN_FPR);
        if (fpr >= 1)
            return bly_fail(BLY_EINVAL,
                            "%llu bits are too few for a first layer of "
                            "%llu keys",
                            (unsigned long long)w->bits,
                            (unsigned long long)w->items);
    }
    *out =
        (bly_shape){ .p = { [SCALABLE_FIRST] = w->items,
                            [SCALABLE_GROWTH] = w->opt[SCALABLE_GROWTH],
                            [SCALABLE_TIGHTENING] = w->opt[SCALABLE_TIGHTENING],
                            [SCALABLE_LEVEL] = w->opt[SCALABLE_LEVEL],
                            [SCALABLE_LAYER] = w->opt[SCALABLE_LAYER],
                            [SCALABLE_INSERT] = w->opt[SCALABLE_INSERT] } };
    bly_shape_set_real(out, SCALABLE_FIRST_FPR, fpr);
    uint64_t items;
    bly_shape first;
    return w->bits ? BLY_OK : scalable_layer(out, 0, &items, &first);
}

/* Layers fill up one after another. After the first, exact sizes would need a
 * search for each layer. So a full layer is taken to have the rate that it may
 * have, which is within a percent of its real one. */
static double scalable_rate(const bly_shape *s, double n)
{
    const bly_kind *const kind = scalable_kinds[s->p[SCALABLE_LAYER]];
    double pass = 0;
    for (uint32_t i = 0; i < BLY_MAX_LAYERS && n > 0; i++) {
        const double ni = scalable_layer_items(s, i);
        double rate = scalable_layer_fpr(s, i);
        /* The first layer, and the last if it is not full. */
        if (i == 0 || n < ni) {
            uint64_t items;
            bly_shape layer;
            if (scalable_layer(s, i, &items, &layer))
                return NAN;
            rate = kind->rate(&layer, fmin(n, ni));
        }
        pass += log1p(-rate);
        n -= ni;
    }
    return -expm1(pass);
}

/* The bits of a new filter. */
static uint64_t scalable_bits(const bly_shape *s)
{
    uint64_t items;
    bly_shape first;
    if (scalable_layer(s, 0, &items, &first))
        return 0;
    return bly_shape_bits(scalable_kinds[s->p[SCALABLE_LAYER]], &first);
}

/* The rate of l full layers, if each has just the rate it may have. */
static double scalable_compound(const bly_shape *s, uint32_t l)
{
    double pass = 0; /* log of the chance to pass all */
    for (uint32_t i = 0; i < l; i++)
        pass += log1p(-scalable_layer_fpr(s, i));
    return -expm1(pass);
}

/* Layers, and bits per key, of a filter that has grown 100-fold and is full. */
static void scalable_grown(const bly_shape *s, bly_facts *out)
{
    double keys = 0, bits = 0;
    uint32_t l = 0;
    while (l < BLY_MAX_LAYERS && keys < 100 * (double)s->p[SCALABLE_FIRST]) {
        uint64_t items;
        bly_shape layer;
        if (scalable_layer(s, l, &items, &layer))
            return;
        keys += (double)items;
        bits += (double)bly_shape_bits(scalable_kinds[s->p[SCALABLE_LAYER]],
                                       &layer);
        l++;
    }
    bly_fact_uint(out, "grown_100_layers", l);
    bly_fact_real(out, "grown_100_bits_per_key", bits / keys);
}

static void scalable_describe(const bly_shape *s, const bly_want *w,
                              const bly_filter *f, bly_facts *out)
{
    bly_fact_real(out, "fpr_bound", scalable_bound(s));
    bly_fact_real(out, "fpr_1_layer", scalable_compound(s, 1));
    bly_fact_real(out, "fpr_2_layers", scalable_compound(s, 2));
    bly_fact_real(out, "fpr_4_layers", scalable_compound(s, 4));
    bly_fact_real(out, "fpr_8_layers", scalable_compound(s, 8));
    bly_fact_real(out, "fpr_16_layers", scalable_compound(s, 16));
    if (w)
        scalable_grown(s, out);
    if (f) {
        uint64_t room = 0;
        for (uint32_t i = 0; i < f->nlayers; i++)
            room += f->layer[i]->items;
        bly_fact_uint(out, "items_of_layers", room);
    }
    if (bly_shape_real(s, SCALABLE_GROWTH) == 1)
        bly_fact_word(out, "equal_layers",
                      "asking takes as many times longer as the keys grow");
}

/* ---------------------------------------------------------- growing layers */

/* Layers are published to readers by their number. */
static uint32_t scalable_nlayers(const bly_filter *f)
{
    return __atomic_load_n(&f->nlayers, __ATOMIC_ACQUIRE);
}

static uint64_t scalable_room(const bly_filter *layer)
{
    const uint64_t n = atomic_load_explicit(
        (const _Atomic uint64_t *)&layer->nadded, memory_order_relaxed);
    return n < layer->items ? layer->items - n : 0;
}

static bly_status scalable_push(bly_filter *f)
{
    /* Without a first layer there is no filter: the request was wrong. Without
     * a later one, the filter is full. */
    const bly_status full = f->nlayers ? BLY_EFULL : BLY_ERANGE;
    bly_setting set = bly_setting_of(f);
    bly_shape shape;
    bly_filter *layer;
    if (f->nlayers == BLY_MAX_LAYERS)
        return bly_fail(BLY_EFULL,
                        "all %d layers are full: build a new filter for more "
                        "keys, or with a larger growth",
                        BLY_MAX_LAYERS);
    bly_status st = scalable_layer(&f->shape, f->nlayers, &set.items, &shape);
    if (st)
        return full;
    uint64_t held = shape.nbytes;
    for (uint32_t i = 0; i < f->nlayers; i++)
        held += f->layer[i]->shape.nbytes;
    if (f->extra->max_bytes && held > f->extra->max_bytes)
        return bly_fail(full,
                        "with its next layer the filter would need %llu "
                        "bytes, the limit is %llu",
                        (unsigned long long)held,
                        (unsigned long long)f->extra->max_bytes);
    const bly_kind *kind = scalable_kinds[f->shape.p[SCALABLE_LAYER]];
    set.fpr = kind->rate(&shape, (double)set.items);
    set.max_bytes = 0; /* the limit is for all layers together: see above */
    st = bly_filter_make(kind, &shape, &set, &layer);
    return st ? st : bly_filter_push(f, layer);
}

/* Add a layer, unless another thread has done so meanwhile: seen is the number
 * of layers that the caller found full. */
static bly_status scalable_grow(bly_filter *f, uint32_t seen)
{
    pthread_mutex_t *const lock = f->extra->aux;
    if (!lock) /* one writer */
        return scalable_push(f);
    pthread_mutex_lock(lock);
    const bly_status st = f->nlayers == seen ? scalable_push(f) : BLY_OK;
    pthread_mutex_unlock(lock);
    return st;
}

static bly_status scalable_start(bly_filter *f)
{
    return scalable_push(f);
}

static bly_status scalable_open(bly_filter *f)
{
    if (!f->shared)
        return BLY_OK;
    pthread_mutex_t *lock = bly_filter_aux_new(f, sizeof *lock);
    if (!lock)
        return BLY_ENOMEM;
    pthread_mutex_init(lock, NULL);
    return BLY_OK;
}

static void scalable_close(bly_filter *f)
{
    if (!f->extra->aux)
        return;
    pthread_mutex_destroy(f->extra->aux);
    bly_filter_aux_free(f, sizeof(pthread_mutex_t));
}

/* Can this be layer number i of such a filter? Its kind has checked its shape.
 * Capacity and rate must be those of the plan, but not to the last bit: another
 * machine's mathematics may round differently. */
static bool scalable_layer_sound(const bly_shape *s, uint32_t i,
                                 const bly_filter *layer)
{
    const bly_kind *const kind = scalable_kinds[s->p[SCALABLE_LAYER]];
    const double n = scalable_layer_items(s, i);
    return layer->kind == kind &&
           fabs((double)layer->items - n) <= 1 + 1e-9 * n &&
           kind->rate(&layer->shape, n) <= 1.01 * scalable_layer_fpr(s, i);
}

static bool scalable_sound(const bly_filter *f)
{
    for (uint32_t i = 0; i < f->nlayers; i++)
        if (!scalable_layer_sound(&f->shape, i, f->layer[i]))
            return false;
    return f->nlayers >= 1;
}

/* -------------------------------------------------------- asking and adding */

/* Keys that go through the layers together. The more there are, the more often
 * the lines of a small layer are used before those of a large one displace them
 * from L2: 7 layers of 24 MB take 17 ns per key in groups of 2048, 11 in groups
 * of this size. */
#define SCALABLE_GROUP 32768
#define SCALABLE_PIECE 2048 /* keys that are copied at once */

/* Hashes, or integers for layers that hash integers themselves. */
typedef struct scalable_keys {
    const uint64_t *at;
    bool ints;
} scalable_keys;

static scalable_keys scalable_from(scalable_keys keys, size_t i)
{
    return (scalable_keys){ keys.at + i, keys.ints };
}

static bool scalable_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

/* Ask one layer: a bitmap, and the number of hits. */
static size_t scalable_ask_one(const bly_filter *layer, scalable_keys keys,
                               size_t n, uint64_t *hit)
{
    size_t nhits = 0;
    memset(hit, 0, BLY_BITMAP_WORDS(n) * sizeof *hit);
    /* has() is given a map of zeros. */
    (keys.ints ? layer->kind->has_ints : layer->kind->has)(layer, keys.at, n,
                                                           hit);
    for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++)
        nhits += (size_t)__builtin_popcountll(hit[w]);
    return nhits;
}

/* Query the layers below number nlayers for those of n <= SCALABLE_PIECE keys
 * that are not found yet, and set the bits of those found now. Found keys are
 * dropped once there are many of them; a few may be queried again. */
static void scalable_ask_rest(const bly_filter *f, uint32_t nlayers,
                              scalable_keys keys, size_t n, uint64_t *maybe)
{
    uint64_t left[SCALABLE_PIECE], hit[BLY_BITMAP_WORDS(SCALABLE_PIECE)];
    uint16_t at[SCALABLE_PIECE];
    size_t nleft = 0;
    /* Always written, and kept only if wanted: there is no pattern that a
     * branch predictor could learn. */
    for (size_t i = 0; i < n; i++) {
        left[nleft] = keys.at[i];
        at[nleft] = (uint16_t)i;
        nleft += !scalable_bit(maybe, i);
    }
    while (nlayers-- > 0 && nleft > 0) {
        const scalable_keys asked = { left, keys.ints };
        const size_t nhits =
            scalable_ask_one(f->layer[nlayers], asked, nleft, hit);
        for (size_t w = 0; w < BLY_BITMAP_WORDS(nleft); w++)
            for (uint64_t b = hit[w]; b; b &= b - 1) {
                const size_t i = at[w * 64 + (size_t)__builtin_ctzll(b)];
                maybe[i / 64] |= UINT64_C(1) << (i % 64);
            }
        /* To ask a few keys again costs less than to move all the others. */
        if (nhits * 8 < nleft)
            continue;
        size_t kept = 0;
        for (size_t i = 0; i < nleft; i++) {
            left[kept] = left[i];
            at[kept] = at[i];
            kept += !scalable_bit(hit, i);
        }
        nleft = kept;
    }
}

/* Find which of n <= SCALABLE_GROUP keys the first nlayers layers know, from
 * the newest to the oldest. Once a quarter is found, the others go on alone. */
static void scalable_ask(const bly_filter *f, uint32_t nlayers,
                         scalable_keys keys, size_t n, uint64_t *maybe)
{
    uint64_t hit[BLY_BITMAP_WORDS(SCALABLE_GROUP)];
    size_t nhits = 0;
    while (nlayers > 0 && nhits * 4 < n) {
        nhits += scalable_ask_one(f->layer[--nlayers], keys, n, hit);
        for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++)
            maybe[w] |= hit[w];
    }
    for (size_t i = 0; nlayers > 0 && i < n; i += SCALABLE_PIECE)
        scalable_ask_rest(f, nlayers, scalable_from(keys, i),
                          n - i < SCALABLE_PIECE ? n - i : SCALABLE_PIECE,
                          maybe + i / 64);
}

static void scalable_has_keys(const bly_filter *f, scalable_keys keys, size_t n,
                              uint64_t *maybe)
{
    const uint32_t nlayers = scalable_nlayers(f);
    for (size_t from = 0; from < n; from += SCALABLE_GROUP)
        scalable_ask(f, nlayers, scalable_from(keys, from),
                     n - from < SCALABLE_GROUP ? n - from : SCALABLE_GROUP,
                     maybe + from / 64);
}

/* Copy those of n keys that are not known to todo, at most `room` of them, and
 * their numbers to at, unless that is NULL. Returns the number of keys looked
 * at. */
static size_t scalable_pick(const uint64_t *keys, size_t n,
                            const uint64_t *known, uint64_t room,
                            uint64_t *todo, uint16_t *at, size_t *ntodo)
{
    size_t i = 0, kept = 0;
    /* Known keys take no room, so they pass even when it is used up. */
    while (i < n && (kept < room || scalable_bit(known, i))) {
        /* The usual case: 64 keys, none of them known. */
        if (!at && i % 64 == 0 && n - i >= 64 && room - kept >= 64 &&
            !known[i / 64]) {
            memcpy(todo + kept, keys + i, 64 * sizeof *keys);
            kept += 64;
            i += 64;
            continue;
        }
        if (!scalable_bit(known, i)) {
            todo[kept] = keys[i];
            if (at)
                at[kept] = (uint16_t)i;
            kept++;
        }
        i++;
    }
    *ntodo = kept;
    return i;
}

/* How a layer takes keys. Kinds of layers are plain bits, and adding to them
 * cannot fail. */
typedef bly_status scalable_add_fn(bly_filter *, const uint64_t *, size_t,
                                   uint64_t *, size_t *);

static scalable_add_fn *scalable_adding(const bly_filter *f,
                                        const bly_filter *layer, bool ints)
{
    return ints        ? layer->kind->add_ints
           : f->shared ? layer->kind->add_shared
                       : layer->kind->add;
}

/* Add at most SCALABLE_PIECE keys, except the known ones, as far as the newest
 * of nlayers has room for them. Returns how many keys are done.
 *
 * Adding to the newest layer tells which keys it did not have, so it need not
 * be queried first. The exception is a layer that may fill up: keys that it has
 * must not take the room of others. Writers that share it look at the room
 * before they add, so each of them may add up to a piece more than was planned
 * for. */
static size_t scalable_add_piece(bly_filter *f, uint32_t nlayers,
                                 scalable_keys keys, size_t n, uint64_t *known,
                                 uint64_t *fresh, size_t first)
{
    bly_filter *const last = f->layer[nlayers - 1];
    const uint64_t room = scalable_room(last);
    const bool always = f->shape.p[SCALABLE_INSERT] == SCALABLE_ALWAYS;
    uint64_t taken[BLY_BITMAP_WORDS(SCALABLE_PIECE)] = { 0 };
    const uint64_t none[BLY_BITMAP_WORDS(SCALABLE_PIECE)] = { 0 };
    uint64_t todo[SCALABLE_PIECE];
    uint16_t at[SCALABLE_PIECE];
    size_t ntodo, ndone, nfresh = 0;

    if (room < n && (!always || fresh)) {
        uint64_t hit[BLY_BITMAP_WORDS(SCALABLE_PIECE)];
        scalable_ask_one(last, keys, n, hit);
        for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++)
            known[w] |= hit[w];
    }
    const size_t i = scalable_pick(keys.at, n, always ? none : known, room,
                                   todo, fresh ? at : NULL, &ntodo);
    if (!ntodo)
        return i;
    scalable_adding(f, last, keys.ints)(last, todo, ntodo, taken, &ndone);
    for (size_t w = 0; w < BLY_BITMAP_WORDS(ntodo); w++) {
        nfresh += (size_t)__builtin_popcountll(taken[w]);
        for (uint64_t b = fresh ? taken[w] : 0; b; b &= b - 1) {
            /* New to this layer; with insert = always, an older layer may know
             * it. */
            const size_t j = at[w * 64 + (size_t)__builtin_ctzll(b)];
            const uint64_t is_new = !scalable_bit(known, j);
            fresh[(first + j) / 64] |= is_new << ((first + j) % 64);
        }
    }
    bly_filter_added(f, nfresh);
    return i;
}

/* Add at most SCALABLE_GROUP keys, as far as the newest layer has room. Returns
 * how many keys are done. */
static size_t scalable_add_group(bly_filter *f, scalable_keys keys, size_t n,
                                 uint32_t nlayers, uint64_t *fresh,
                                 size_t first)
{
    uint64_t known[BLY_BITMAP_WORDS(SCALABLE_GROUP)];
    size_t i = 0;
    memset(known, 0, BLY_BITMAP_WORDS(n) * sizeof *known);
    /* Query all layers but the newest, which answers while keys are added to
     * it. */
    if (f->shape.p[SCALABLE_INSERT] == SCALABLE_NEW || fresh)
        scalable_ask(f, nlayers - 1, keys, n, known);
    while (i < n) {
        const size_t np = n - i < SCALABLE_PIECE ? n - i : SCALABLE_PIECE;
        const size_t done =
            scalable_add_piece(f, nlayers, scalable_from(keys, i), np,
                               known + i / 64, fresh, first + i);
        i += done;
        if (done < np)
            break;
    }
    return i;
}

static bly_status scalable_add_keys(bly_filter *f, scalable_keys keys, size_t n,
                                    uint64_t *fresh, size_t *ndone)
{
    size_t from = 0;
    bly_status st = BLY_OK;
    while (from < n && !st) {
        const uint32_t nlayers = scalable_nlayers(f);
        const size_t ng = n - from < SCALABLE_GROUP ? n - from : SCALABLE_GROUP;
        const size_t done = scalable_add_group(f, scalable_from(keys, from), ng,
                                               nlayers, fresh, from);
        from += done;
        if (!done) /* the next key is new, and there is no room for it */
            st = scalable_grow(f, nlayers);
    }
    *ndone = from;
    return st;
}

/* One key alone. The lines of all layers are fetched first; otherwise it would
 * wait for one layer after another. */
static bool scalable_has_one(const bly_filter *f, uint32_t nlayers, uint64_t h)
{
    const bly_kind *const kind = scalable_kinds[f->shape.p[SCALABLE_LAYER]];
    for (uint32_t i = 0; nlayers > 1 && kind->fetch && i < nlayers; i++)
        kind->fetch(f->layer[i], &h, 1);
    bool hit = false;
    while (nlayers-- > 0 && !hit)
        hit = f->layer[nlayers]->ways->has(f->layer[nlayers], h);
    return hit;
}

static void scalable_fetch(const bly_filter *f, const uint64_t *h, size_t n)
{
    const bly_kind *const kind = scalable_kinds[f->shape.p[SCALABLE_LAYER]];
    const uint32_t nlayers = scalable_nlayers(f);
    for (uint32_t i = 0; kind->fetch && i < nlayers; i++)
        kind->fetch(f->layer[i], h, n);
}

static bly_status scalable_add_one(bly_filter *f, uint64_t h, uint64_t *fresh)
{
    const bool always = f->shape.p[SCALABLE_INSERT] == SCALABLE_ALWAYS;
    for (;;) {
        const uint32_t nlayers = scalable_nlayers(f);
        bly_filter *const last = f->layer[nlayers - 1];
        /* While the newest layer has room, it answers when the key is added. A
         * full one must be queried, or a key that it has would make the filter
         * grow. */
        const bool room = scalable_room(last) > 0;
        const bool known = (!always || fresh) &&
                           scalable_has_one(f, room ? nlayers - 1 : nlayers, h);
        if (known && !always)
            return BLY_OK;
        if (room) {
            uint64_t taken = 0;
            size_t ndone;
            scalable_adding(f, last, false)(last, &h, 1, &taken, &ndone);
            bly_filter_added(f, taken);
            if (fresh)
                *fresh |= taken & !known;
            return BLY_OK;
        }
        const bly_status st = scalable_grow(f, nlayers);
        if (st)
            return st;
    }
}

static bly_status scalable_add(bly_filter *f, const uint64_t *h, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
    if (n != 1)
        return scalable_add_keys(f, (scalable_keys){ h, false }, n, fresh,
                                 ndone);
    const bly_status st = scalable_add_one(f, *h, fresh);
    *ndone = !st;
    return st;
}

static void scalable_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
    if (n == 1)
        *maybe |= scalable_has_one(f, scalable_nlayers(f), *h);
    else
        scalable_has_keys(f, (scalable_keys){ h, false }, n, maybe);
}

/* Some layers hash integers themselves, so a group is not limited by the room
 * for its hashes. */
static bool scalable_hashes(const bly_filter *f, size_t n)
{
    return n > 1 && scalable_kinds[f->shape.p[SCALABLE_LAYER]]->has_ints;
}

static bly_status scalable_add_ints(bly_filter *f, const uint64_t *ints,
                                    size_t n, uint64_t *fresh, size_t *ndone)
{
    uint64_t h[SCALABLE_PIECE];
    size_t from = 0, done = 0;
    bly_status st = BLY_OK;
    if (scalable_hashes(f, n))
        return scalable_add_keys(f, (scalable_keys){ ints, true }, n, fresh,
                                 ndone);
    while (from < n && !st) {
        const size_t np = n - from < SCALABLE_PIECE ? n - from : SCALABLE_PIECE;
        bly_hash_ints(&f->extra->hasher, ints + from, np, h);
        /* A piece is whole words of `fresh`, and a piece that stops early is
         * the last. */
        st = scalable_add(f, h, np, fresh ? fresh + from / 64 : NULL, &done);
        from += done;
    }
    *ndone = from;
    return st;
}

static void scalable_has_ints(const bly_filter *f, const uint64_t *ints,
                              size_t n, uint64_t *maybe)
{
    uint64_t h[SCALABLE_PIECE];
    if (scalable_hashes(f, n)) {
        scalable_has_keys(f, (scalable_keys){ ints, true }, n, maybe);
        return;
    }
    for (size_t from = 0; from < n; from += SCALABLE_PIECE) {
        const size_t np = n - from < SCALABLE_PIECE ? n - from : SCALABLE_PIECE;
        bly_hash_ints(&f->extra->hasher, ints + from, np, h);
        scalable_has(f, h, np, maybe + from / 64);
    }
}

/* A key that an older layer takes for one of its own is never added to a newer
 * one: only a share p of the keys gets past all layers before it, where p is
 * the product of their (1 - rate). So a layer that took n keys stands for n / p
 * keys and, since that share is random, with a deviation of sqrt(n (1 - p)) /
 * p. */
static void scalable_stat(const bly_filter *f, bly_stats *out)
{
    double bits = 0, ones = 0, items = 0, variance = 0, pass = 0;
    for (uint32_t i = 0; i < f->nlayers; i++) {
        const bly_filter *const layer = f->layer[i];
        const double m = (double)bly_shape_bits(layer->kind, &layer->shape);
        bly_stats part = { 0 };
        layer->kind->stat(layer, &part);
        /* exp(pass) is the chance to get past all layers before this one. */
        const double n = part.items_estimate;
        bits += m;
        ones += m * part.fill;
        items += n / exp(pass);
        variance +=
            (part.items_sd * part.items_sd - n * expm1(pass)) / exp(2 * pass);
        pass += log1p(-part.fpr_now);
    }
    out->fill = ones / bits;
    out->items_estimate = isnan(items) ? INFINITY : items;
    out->items_sd = isnan(variance) ? INFINITY : sqrt(variance);
    out->fpr_now = 0 - expm1(pass); /* not -0 */
}

const bly_kind bly_kind_scalable = {
    .id = 6, /* on disk: never changed, never reused */
    .name = "scalable",
    .summary =
        "grows with its keys and keeps its rate; layers of plain filters",
    .params = scalable_params,
    .nparams = sizeof scalable_params / sizeof scalable_params[0],
    .plan = scalable_plan,
    .sane = scalable_sane,
    .rate = scalable_rate,
    .bits = scalable_bits,
    .describe = scalable_describe,
    .start = scalable_start,
    .sound = scalable_sound,
    .open = scalable_open,
    .close = scalable_close,
    .aux_bytes = sizeof(pthread_mutex_t),
    .reach = BLY_SYSTEM(bly_reach_layers),
    .stat = scalable_stat,
    .add = scalable_add,
    .add_shared = scalable_add,
    .has = scalable_has,
    .fetch = BLY_SYSTEM(scalable_fetch),
    .add_ints = scalable_add_ints,
    .has_ints = scalable_has_ints,
};
