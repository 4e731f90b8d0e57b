/*
 * cuckoo.c - a table of fingerprints that can move house
 *
 * A key is stored as a fingerprint of f bits, in one of two buckets of b slots
 * each. Either bucket follows from the other bucket and the fingerprint, so a
 * fingerprint can be moved without knowing its key. Where both buckets are
 * full, other fingerprints are moved out of the way.
 *
 *     hash h -> i1 = h * nb / 2^64
 *               fp = 1 + (top half of h * C) * (2^f - 1) / 2^32
 *               t  = 1 + 2 ((fp * C mod 2^64) * (nb/2) / 2^64)
 *               i2 = (t - i1) mod nb,  and i1 = (t - i2) mod nb
 *
 *     bucket i:  | fp | fp | 0 | fp |     b slots; 0 is an empty one
 *                  f bits each, packed (cuckoo_table.h); any f from 4 to 32
 *
 * nb is any even number and t is odd. So one of the two buckets is even and the
 * other odd, and they are never the same, which in small tables would cost a
 * tenth of the load. Fingerprints range evenly over 1 .. 2^f - 1. Mapping 0 to
 * 1 instead would make 1 twice as likely: 40.8 % instead of 39.8 % false
 * positives at f = 4.
 *
 * Rate. An absent key is a false positive if one of the n stored keys has the
 * same fingerprint and the same pair of buckets, in whichever of the two it
 * lies now:
 *
 *     1 - (1 - 2 / (nb (2^f - 1)))^n,  about 2 b load / 2^f
 *
 * So 1 % takes 10 bits per slot: one million keys take 263,158 buckets of four
 * at a load of 0.95, 10.53 bits per key, and the rate is 0.74 %. cuckoo_plan.c
 * knows how full a table may become.
 *
 * Adding searches breadth first from both buckets for a bucket with room, and
 * moves fingerprints along the shortest path (cuckoo_table.c). If there is no
 * path the table is full, and no key is lost.
 *
 * Copies. Every addition stores a copy and every removal takes one, so a key
 * that was added twice must be removed twice. Two buckets hold 2b copies; the
 * next is refused even in an empty table. With `unique`, a key that seems to be
 * there is not stored again. It may have been mistaken for another key with the
 * same fingerprint and buckets. Then the two share one copy, so nothing can be
 * removed.
 *
 * Semi-sorting [1] (`semisort`, b = 4) trades time for one bit per slot: the
 * order of slots carries no information, so it need not be stored.
 *
 * Growing (`grow` = s). When a table is full, another is added as a layer: it
 * is s times as large, and its fingerprints are one bit longer. So the rates
 * p/2 + p/4 + ... stay below p. A key that seems to be in two tables cannot be
 * removed: one of the two fingerprints may belong to another key, which would
 * vanish with it. Such a removal is refused, about as often as there is a false
 * positive.
 *
 * It cannot be resized, since fingerprints do not know their keys, nor used as
 * a counter, since two buckets hold at most 2b copies. It cannot be folded
 * either: in a table with half the buckets, i2 would still have to follow from
 * i1, and nobody knows which of the two buckets a fingerprint lies in.
 *
 * state[0] is the number of fingerprints stored in data.
 *
 * [1] Fan, Andersen, Kaminsky and Mitzenmacher, Cuckoo Filter: Practically
 *     Better Than Bloom, 2014
 */
#include <math.h>
#include <string.h>

#include "core/bits.h"
#include "core/status.h"
#include "kinds/cuckoo.h"

static const char *const cuckoo_switch[] = { "off", "on", NULL };

static const bly_param cuckoo_params[] = {
    [CUCKOO_BUCKETS] = BLY_PARAM(
        "buckets", BLY_UINT, .min = 2, .max = (double)CUCKOO_MAX_BUCKETS,
        .help = "buckets of the table, an even number"),
    [CUCKOO_SLOTS] = BLY_PARAM("bucket", BLY_UINT, .settable = true, .def = 4,
                               .min = 1, .max = BLY_CUCKOO_MAX_SLOTS,
                               .help = "slots of a bucket: 1, 2, 4 or 8"),
    [CUCKOO_BITS] =
        BLY_PARAM("fingerprint", BLY_UINT, .settable = true, .automatic = true,
                  .min = CUCKOO_MIN_BITS, .max = CUCKOO_MAX_BITS,
                  .help = "bits of a fingerprint"),
    [CUCKOO_SEMISORT] = BLY_PARAM("semisort", BLY_CHOICE, .settable = true,
                                  .max = 1, .choices = cuckoo_switch,
                                  .help = "one bit per slot less, but slower"),
    [CUCKOO_UNIQUE] =
        BLY_PARAM("unique", BLY_CHOICE, .settable = true, .max = 1,
                  .choices = cuckoo_switch,
                  .help = "do not store a key again that seems to be "
                          "there; no removal then"),
    [CUCKOO_GROW] = BLY_PARAM(
        "grow", BLY_UINT, .settable = true, .min = 0, .max = CUCKOO_MAX_GROW,
        .help = "0: a full filter stays full; else each further "
                "table is this many times as large"),
    [CUCKOO_MIXING] =
        BLY_PARAM("mixing", BLY_CHOICE, .settable = true, .max = CUCKOO_LIGHT,
                  .def = CUCKOO_LIGHT, .choices = BLY_WORDS("full", "light"),
                  .help = "how a fingerprint leads from one bucket to the "
                          "other: full as it was first"),
};

/* ----------------------------------------------------------------- asking */

bly_cuckoo_table bly_cuckoo_filter_table(const bly_filter *f)
{
    const uint64_t *p = f->shape.p;
    return bly_cuckoo_table_of(
        f->data, p[CUCKOO_BUCKETS], (unsigned)p[CUCKOO_SLOTS],
        (unsigned)p[CUCKOO_BITS], p[CUCKOO_SEMISORT] != 0,
        p[CUCKOO_MIXING] == CUCKOO_LIGHT);
}

static bly_status cuckoo_open(bly_filter *f)
{
    (void)f;
    bly_cuckoo_prepare();
    return BLY_OK;
}

static void cuckoo_has(const bly_filter *f, const uint64_t *h, size_t n,
                       uint64_t *maybe)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    bly_cuckoo_best()->has(&t, h, n, maybe);
    /* Layers only add to the answers: maybe is ORed, never cleared. */
    for (uint32_t i = 0; i < f->nlayers; i++)
        cuckoo_has(f->layer[i], h, n, maybe);
}

static void cuckoo_reach(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *bad)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    for (size_t i = 0; i < n; i++) {
        const bly_cuckoo_key key = bly_cuckoo_locate(&t, h[i]);
        /* Both buckets: even a "no" depends on all their bytes. */
        const uint64_t at[2] = { key.at1, key.at2 };
        for (int j = 0; j < 2; j++) {
            const uint64_t byte = at[j] / 8, last = (at[j] + t.width - 1) / 8;
            bly_reach(f, byte, last - byte + 1, i, bad);
        }
    }
    bly_reach_layers(f, h, n, bad);
}

static bool cuckoo_has_one(const bly_filter *f, uint64_t h)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    return bly_cuckoo_has(&t, bly_cuckoo_locate(&t, h), t.sorted,
                          t.nwords == 1);
}

/* Does a table of f other than `but` have h? */
static bool cuckoo_elsewhere(const bly_filter *f, const bly_filter *but,
                             uint64_t h)
{
    for (uint32_t i = 0; i <= f->nlayers; i++) {
        const bly_filter *part = i ? f->layer[i - 1] : f;
        if (part != but && cuckoo_has_one(part, h))
            return true;
    }
    return false;
}

/* ----------------------------------------------------------------- adding */

typedef enum cuckoo_stop {
    CUCKOO_DONE,
    CUCKOO_NO_ROOM,
    CUCKOO_TOO_MANY_COPIES
} cuckoo_stop;

/* Add keys to `table`, which is f or one of its layers, but look up each key
 * first. Keys that are new are marked in fresh; with `unique`, only these are
 * stored. Returns how many keys were done before the first that found no
 * room. */
static inline __attribute__((always_inline)) size_t
cuckoo_add_looking(const bly_filter *f, const bly_filter *table,
                   const uint64_t *h, size_t n, size_t from, uint64_t *fresh,
                   uint64_t *nstored, bool single)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(table);
    const bool unique = f->shape.p[CUCKOO_UNIQUE] != 0;
    bly_cuckoo_stream q;
    size_t i = 0;
    bly_cuckoo_stream_open(&q, &t, h + from, n);
    for (; i < n; i++) {
        const bly_cuckoo_key key = bly_cuckoo_next(&q, &t, i);
        /* Asked before the key is placed; afterwards it is always there. */
        const bool known = bly_cuckoo_has(&t, key, t.sorted, t.nwords == 1) ||
                           cuckoo_elsewhere(f, table, q.h[i]);
        if (!(known && unique)) {
            if (single)
                bly_cuckoo_fetch_ways(&q, &t, i);
            if (!bly_cuckoo_place(&t, key, single))
                break;
            ++*nstored;
        }
        if (fresh && !known)
            fresh[(from + i) / 64] |= UINT64_C(1) << (from + i) % 64;
    }
    return i;
}

static cuckoo_stop cuckoo_fill(bly_filter *f, bly_filter *table,
                               const uint64_t *h, size_t n, size_t from,
                               uint64_t *fresh, size_t *ndone)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(table);
    uint64_t nstored = 0;
    size_t done;
    if (!fresh && !f->shape.p[CUCKOO_UNIQUE])
        nstored = done = bly_cuckoo_best()->add(&t, h + from, n);
    else if (bly_cuckoo_single(&t))
        done = cuckoo_add_looking(f, table, h, n, from, fresh, &nstored, true);
    else
        done = cuckoo_add_looking(f, table, h, n, from, fresh, &nstored, false);
    table->state[0] += nstored;
    if (table != f)
        bly_filter_added(table, nstored);
    bly_filter_added(f, nstored);
    *ndone = from + done;
    if (done == n)
        return CUCKOO_DONE;
    /* Where all 2b slots of the key hold its fingerprint, the table may be
     * almost empty. So the message must not say that it is full, and the filter
     * does not grow for it. */
    return bly_cuckoo_all_copies(&t, bly_cuckoo_locate(&t, h[*ndone]))
               ? CUCKOO_TOO_MANY_COPIES
               : CUCKOO_NO_ROOM;
}

bly_status bly_cuckoo_grow(bly_filter *f)
{
    bly_shape s;
    bly_filter *layer;
    bly_setting set = bly_setting_of(f);
    if (f->nlayers == BLY_MAX_LAYERS ||
        !bly_cuckoo_layer_shape(&f->shape, f->nlayers, &s))
        return bly_fail(BLY_EFULL, "the filter is full, and cannot grow any "
                                   "more");
    /* Before anything is made, so that a refusal costs nothing. */
    if (f->extra->max_bytes &&
        bly_filter_bytes(f) + sizeof *f + s.nbytes > f->extra->max_bytes)
        return bly_fail(BLY_EFULL,
                        "the filter is full, and growing would take it past "
                        "its limit of %llu bytes",
                        (unsigned long long)f->extra->max_bytes);
    /* A layer is saved with its own capacity and rate, as if it had been
     * planned for exactly what fits. */
    set.items = bly_cuckoo_shape_room(&s);
    set.fpr = bly_cuckoo_table_rate(&s, (double)set.items);
    const bly_status st = bly_filter_make(f->kind, &s, &set, &layer);
    return st ? st : bly_filter_push(f, layer);
}

/* Find the first table with room, from number *part on. Sets *part to its
 * number and returns for how many keys it has room; 0: there is none, and *part
 * is the number of tables. Removals may have made room in any table. */
static uint64_t cuckoo_left(bly_filter *f, uint32_t *part)
{
    for (; *part <= f->nlayers; ++*part) {
        const bly_filter *t = cuckoo_part(f, *part);
        const uint64_t room = bly_cuckoo_shape_room(&t->shape);
        if (room > t->state[0])
            return room - t->state[0];
    }
    return 0;
}

static bly_status cuckoo_add(bly_filter *f, const uint64_t *h, size_t n,
                             uint64_t *fresh, size_t *ndone)
{
    const bool grows = f->shape.p[CUCKOO_GROW] != 0;
    bool skip = false; /* the tables before `part` refused the next key */
    uint32_t part = 0;
    *ndone = 0;
    while (*ndone < n) {
        size_t np = n - *ndone;
        if (grows) {
            /* Start from the first table again, unless this key has just been
             * refused: removals may have made room in any of them, and keys
             * that fit there do not make the filter grow. */
            part = skip ? part + 1 : 0;
            uint64_t room = cuckoo_left(f, &part);
            if (!room) {
                const bly_status st = bly_cuckoo_grow(f);
                if (st)
                    return st;
                /* Just one key: the next round looks at the tables again and
                 * finds out how much room the new one has. */
                room = 1;
            }
            /* If a table refused a key, only that key goes on to the next
             * table; the keys behind it are not affected. */
            np = skip ? 1 : np < room ? np : (size_t)room;
        }
        const cuckoo_stop stop =
            cuckoo_fill(f, cuckoo_part(f, part), h, np, *ndone, fresh, ndone);
        if (stop == CUCKOO_TOO_MANY_COPIES)
            return bly_fail(BLY_EFULL,
                            "%u copies of a key are all that a cuckoo filter "
                            "holds: use option unique, or a kind that counts",
                            2 * (unsigned)f->shape.p[CUCKOO_SLOTS]);
        if (stop == CUCKOO_NO_ROOM && !grows)
            return bly_fail(BLY_EFULL,
                            "the filter is full with %llu fingerprints; it "
                            "was planned for %llu (build it larger, or with "
                            "option grow)",
                            (unsigned long long)f->state[0],
                            (unsigned long long)f->items);
        skip = stop == CUCKOO_NO_ROOM;
    }
    return BLY_OK;
}

/* Only the first table; a filter that has grown has more of them. */
static void cuckoo_fetch(const bly_filter *f, const uint64_t *h, size_t n)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    bly_cuckoo_stream q;
    for (size_t i = 0; i < n; i += BLY_CUCKOO_FAR)
        bly_cuckoo_stream_open(&q, &t, h + i, n - i);
}

/* -------------------------------------------------------------- one key */

/* A table whose buckets are single words. aid has the lowest bit of each slot
 * set; everything else is faster to compute than to load. `literal` is the
 * length of a fingerprint in bits, known at compile time for the most common
 * tables: four slots, mixed lightly. 0 stands for any other table. */
static inline __attribute__((always_inline)) bly_cuckoo_table
cuckoo_plain_table(const bly_filter *f, unsigned literal)
{
    const uint64_t *const p = f->shape.p;
    const unsigned bits = literal ? literal : (unsigned)p[CUCKOO_BITS];
    const unsigned slots = literal ? 4 : (unsigned)p[CUCKOO_SLOTS];
    const unsigned width = slots * bits;
    const uint64_t ones =
        literal ? (UINT64_C(1) << 3 * bits | UINT64_C(1) << 2 * bits |
                   UINT64_C(1) << bits | 1)
                : f->aid;
    return (bly_cuckoo_table){
        .data = f->data,
        .nb = p[CUCKOO_BUCKETS],
        .nprints = (UINT64_C(1) << bits) - 1,
        .nbits = p[CUCKOO_BUCKETS] * width,
        .ones = ones,
        .highs = ones << (bits - 1),
        .b = slots,
        .f = bits,
        .width = width,
        .word_bits = width,
        .nwords = 1,
        .light = literal || p[CUCKOO_MIXING] == CUCKOO_LIGHT,
    };
}

/* The view of such a table, without the seed. */
BLY_ONE_BODY bly_view_cuckoo cuckoo_view_of(const bly_cuckoo_table *t)
{
    return (bly_view_cuckoo){
        .buckets = t->data,
        .nbuckets = t->nb,
        .nbits = t->nbits,
        .nprints = t->nprints,
        .ones = t->ones,
        .highs = t->highs,
        .width = t->width,
        .light = t->light,
        .usual = t->light && t->width % 8 == 0,
    };
}

/* The same as through a view: buckets of whole bytes are addressed in bytes. */
BLY_ONE_BODY bool cuckoo_has_of(const bly_filter *f, uint64_t h, unsigned bits)
{
    const bly_cuckoo_table t = cuckoo_plain_table(f, bits);
    const bly_view_cuckoo v = cuckoo_view_of(&t);
    return bly_cuckoo_in_(&v, h, bits && bits * 4 % 8 == 0 ? 1 : 8, t.light);
}

/* The same for a filter that may have grown. */
static __attribute__((noinline)) bool cuckoo_in_layers(const bly_filter *f,
                                                       uint64_t h)
{
    return cuckoo_elsewhere(f, f, h);
}

/* A filter with layers has no aid. */
BLY_ONE_BODY bool cuckoo_has_grown_body(const bly_filter *f, uint64_t h)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    return bly_cuckoo_has(&t, bly_cuckoo_locate(&t, h), false, true) ||
           cuckoo_in_layers(f, h);
}

static __attribute__((noinline)) bly_status cuckoo_make_room(bly_filter *f,
                                                             uint64_t h)
{
    size_t ndone;
    return cuckoo_add(f, &h, 1, NULL, &ndone);
}

/* Until the table is rather full, most keys find room in their first bucket. So
 * this is a branch, which is predicted well, and the second bucket is not
 * waited for. (Batches wait for both, since there both have been fetched.)
 * Where neither has room, cuckoo_add() makes some or says why it cannot. */
BLY_ONE_BODY bly_status cuckoo_add_of(bly_filter *f, uint64_t h, unsigned bits)
{
    const bly_cuckoo_table t = cuckoo_plain_table(f, bits);
    const bly_cuckoo_key key = bly_cuckoo_locate(&t, h);
    const uint64_t first = bly_cuckoo_match(&t, key.at1, 0, false, true);
    if (__builtin_expect(first != 0, 1)) {
        bly_cuckoo_put(&t, key.at1, first, key.fp);
    } else {
        const uint64_t second = bly_cuckoo_match(&t, key.at2, 0, false, true);
        if (!second)
            return cuckoo_make_room(f, h);
        bly_cuckoo_put(&t, key.at2, second, key.fp);
    }
    f->state[0]++;
    f->nadded++;
    return BLY_OK;
}

/* Most keys are in their first bucket, but not so many that the processor could
 * guess it: both are read at once. */
BLY_ONE_BODY bly_status cuckoo_remove_of(bly_filter *f, uint64_t h,
                                         unsigned bits)
{
    const bly_cuckoo_table t = cuckoo_plain_table(f, bits);
    if (!bly_cuckoo_take(&t, bly_cuckoo_locate(&t, h), true))
        return BLY_EABSENT;
    f->state[0]--;
    bly_filter_removed_one(f);
    return BLY_OK;
}

/* Fingerprints of 8, 12 and 16 bits are what other libraries have; 10 bits keep
 * a rate of 1 %, 13 bits keep 0.1 %. */
#define CUCKOO_WIDTHS(X) X(0) X(8) X(10) X(12) X(13) X(16)
#define CUCKOO_ONE(bits)                                               \
    BLY_ONE_BODY bool cuckoo_has_##bits##_body(const bly_filter *f,    \
                                               uint64_t h)             \
    {                                                                  \
        return cuckoo_has_of(f, h, bits);                              \
    }                                                                  \
    BLY_ONE_BODY bly_status cuckoo_add_##bits##_body(bly_filter *f,    \
                                                     uint64_t h)       \
    {                                                                  \
        return cuckoo_add_of(f, h, bits);                              \
    }                                                                  \
    BLY_ONE_BODY bly_status cuckoo_remove_##bits##_body(bly_filter *f, \
                                                        uint64_t h)    \
    {                                                                  \
        return cuckoo_remove_of(f, h, bits);                           \
    }                                                                  \
    BLY_ONE_HAS(cuckoo_has_##bits, cuckoo_has_##bits##_body)           \
    BLY_ONE_ADD(cuckoo_add_##bits, cuckoo_add_##bits##_body)           \
    BLY_ONE_REMOVE(cuckoo_remove_##bits, cuckoo_remove_##bits##_body)
CUCKOO_WIDTHS(CUCKOO_ONE)
#undef CUCKOO_ONE
BLY_ONE_HAS(cuckoo_has_grown, cuckoo_has_grown_body)

static void cuckoo_one(const bly_filter *f, bly_one *out)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    if (!bly_cuckoo_single(&t))
        return;
    if (f->shape.p[CUCKOO_GROW]) {
        BLY_ONE_SET_HAS(out, cuckoo_has_grown);
        return;
    }
    out->aid = t.ones;
    /* A filter that grows must first find the right table; with `unique`, an
     * earlier copy, and nothing is removed. */
    const bool changes = !f->shape.p[CUCKOO_UNIQUE];
#define CUCKOO_CHOOSE(bits)                                  \
    if (!(bits) || (t.light && t.b == 4 && t.f == (bits))) { \
        BLY_ONE_SET_HAS(out, cuckoo_has_##bits);             \
        if (changes) {                                       \
            BLY_ONE_SET_ADD(out, cuckoo_add_##bits);         \
            BLY_ONE_SET_REMOVE(out, cuckoo_remove_##bits);   \
        }                                                    \
    }
    CUCKOO_WIDTHS(CUCKOO_CHOOSE)
#undef CUCKOO_CHOOSE
}

bool bly_view_of_cuckoo(const bly_filter *f, bly_view_cuckoo *out)
{
    if (!bly_filter_viewed(f, &bly_kind_cuckoo, out) || f->shape.p[CUCKOO_GROW])
        return false;
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    if (!bly_cuckoo_single(&t))
        return false;
    *out = cuckoo_view_of(&t);
    out->turned = f->extra->turned;
    out->folded = bly_filter_folds(f);
    return true;
}

/* ---------------------------------------------------------------- removing */

/* With `unique`, one copy may stand for several keys, so none can be
 * removed. */
static void cuckoo_refuse(const bly_filter *f, const uint64_t *h, size_t n,
                          bly_status *each)
{
    for (size_t i = 0; i < n; i++)
        each[i] = cuckoo_elsewhere(f, NULL, h[i]) ? BLY_EREFUSED : BLY_EABSENT;
}

static bool cuckoo_take_one(bly_filter *table, uint64_t h)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(table);
    const bly_cuckoo_key key = bly_cuckoo_locate(&t, h);
    const bool taken = bly_cuckoo_single(&t) ? bly_cuckoo_take(&t, key, true)
                                             : bly_cuckoo_take(&t, key, false);
    table->state[0] -= taken;
    bly_filter_removed(table, taken);
    return taken;
}

/* Take h out of a filter that has grown. A key is in the table that had room
 * when it was added, and nobody remembers which one that was. Where several
 * tables seem to have it, all but one may hold other keys that look like it.
 * Removing one of those would mean a false "no" for a key that nobody removed,
 * so the key stays. That happens as often as the other tables have false
 * positives, and to every key that was added once before the filter grew and
 * once after. */
static bly_status cuckoo_remove_grown(bly_filter *f, uint64_t h)
{
    bly_filter *holder = NULL;
    for (uint32_t i = 0; i <= f->nlayers; i++) {
        bly_filter *const part = cuckoo_part(f, i);
        if (!cuckoo_has_one(part, h))
            continue;
        if (holder)
            return BLY_EREFUSED;
        holder = part;
    }
    if (!holder || !cuckoo_take_one(holder, h))
        return BLY_EABSENT;
    if (holder != f) /* f counts the keys of all its tables */
        bly_filter_removed(f, 1);
    return BLY_OK;
}

/* The same for many keys. Querying a few of them first brings their cache lines
 * of all tables into the cache, several at a time. */
static void cuckoo_remove_all_grown(bly_filter *f, const uint64_t *h, size_t n,
                                    bly_status *each)
{
    for (size_t from = 0; from < n; from += 64) {
        const size_t some = n - from < 64 ? n - from : 64;
        uint64_t maybe = 0;
        cuckoo_has(f, h + from, some, &maybe);
        for (size_t i = from; i < from + some; i++)
            each[i] = cuckoo_remove_grown(f, h[i]);
    }
}

static void cuckoo_remove(bly_filter *f, const uint64_t *h, size_t n,
                          bly_status *each)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    if (f->shape.p[CUCKOO_UNIQUE]) {
        cuckoo_refuse(f, h, n, each);
        return;
    }
    if (f->nlayers) {
        cuckoo_remove_all_grown(f, h, n, each);
        return;
    }
    if (n == 1) { /* nothing to fetch ahead */
        each[0] = cuckoo_take_one(f, *h) ? BLY_OK : BLY_EABSENT;
        return;
    }
    bly_cuckoo_best()->remove(&t, h, n, each);
    uint64_t taken = 0;
    for (size_t i = 0; i < n; i++)
        taken += each[i] == BLY_OK;
    f->state[0] -= taken;
    bly_filter_removed(f, taken);
}

/* ---------------------------------------------------------------- knowing */

static uint64_t cuckoo_nslots(const bly_filter *f)
{
    return f->shape.p[CUCKOO_BUCKETS] * f->shape.p[CUCKOO_SLOTS];
}

static bool cuckoo_sound(const bly_filter *f)
{
    if (f->nlayers && !f->shape.p[CUCKOO_GROW])
        return false;
    for (uint32_t i = 0; i < f->nlayers; i++) {
        const bly_filter *layer = f->layer[i];
        bly_shape s;
        /* The layers of a file must be exactly those that growing would have
         * made: merging goes table by table and relies on it. */
        if (layer->kind != f->kind ||
            !bly_cuckoo_layer_shape(&f->shape, i, &s) ||
            memcmp(layer->shape.p, s.p,
                   bly_kind_room(f->kind) * sizeof s.p[0]) != 0)
            return false;
    }
    return f->state[0] <= cuckoo_nslots(f);
}

/* Are there as many fingerprints as the state says? Are sorted buckets in the
 * only order that is ever written, and is everything behind the last bucket
 * 0? */
static bool cuckoo_check(const bly_filter *f)
{
    const bly_cuckoo_table t = bly_cuckoo_filter_table(f);
    uint64_t nstored;
    bly_cuckoo_prepare();
    return bly_cuckoo_check(&t, &nstored) && nstored == f->state[0] &&
           bly_bits_tail_clear((const uint64_t *)(const void *)f->data,
                               bly_cuckoo_bits(&f->shape),
                               (size_t)(f->shape.nbytes / 8));
}

/* The number of keys in one table: one per fingerprint; or, with `unique`, the
 * number of keys that is expected to occupy as many cells as are in use. */
static double cuckoo_keys(const bly_filter *f)
{
    const double n = (double)f->state[0], cells = cuckoo_cells(&f->shape);
    return f->shape.p[CUCKOO_UNIQUE] && n < cells ? -cells * log1p(-n / cells)
                                                  : n;
}

static void cuckoo_stat(const bly_filter *f, bly_stats *out)
{
    double nkeys = 0, nstored = 0, nslots = 0, none = 1;
    for (uint32_t i = 0; i <= f->nlayers; i++) {
        const bly_filter *t = i ? f->layer[i - 1] : f;
        nkeys += cuckoo_keys(t);
        nstored += (double)t->state[0];
        nslots += (double)cuckoo_nslots(t);
        none *= 1 - bly_cuckoo_table_rate(&t->shape, (double)t->state[0]);
    }
    out->items_estimate = nkeys;
    /* Without `unique` every key has a copy, and the count is exact. With it,
     * the keys hidden behind others are estimated, and their number varies
     * roughly like a Poisson variable. */
    out->items_sd = sqrt(fmax(0, nkeys - nstored));
    out->fill = nstored / nslots;
    out->fpr_now = 1 - none;
}

const bly_kind bly_kind_cuckoo = {
    .id = 8, /* on disk: never changed, never reused */
    .name = "cuckoo",
    .summary = "fingerprints in one of two buckets; few bits, and removal",
    .params = cuckoo_params,
    .nparams = sizeof cuckoo_params / sizeof cuckoo_params[0],
    .nstate = 1,
    .plan = bly_cuckoo_plan,
    .sane = bly_cuckoo_sane,
    .rate = bly_cuckoo_rate,
    .bits = bly_cuckoo_bits,
    .describe = bly_cuckoo_describe,
    .sound = cuckoo_sound,
    .check = cuckoo_check,
    .reach = BLY_SYSTEM(cuckoo_reach),
    .open = cuckoo_open,
    .stat = cuckoo_stat,
    .one = cuckoo_one,
    .add = cuckoo_add,
    .has = cuckoo_has,
    .fetch = BLY_SYSTEM(cuckoo_fetch),
    .remove = cuckoo_remove,
    .merge = bly_cuckoo_merge,
    .intersect = bly_cuckoo_intersect,
    .compare = bly_cuckoo_compare, /* no .fold: see above */
};
