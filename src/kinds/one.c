/*
 * one.c - one key at a time: which function a filter has for it
 *
 * How a filter is queried depends on what it is, and that is known when it is
 * made, opened or shared. So bly_has() is a jump to the right function, and
 * none of these functions tests anything that could have been known before.
 */
#include <stdatomic.h>

#include "core/bits.h"
#include "kinds/filter.h"

/* Keys whose blocks are compared together: a multiple of 64, so that bitmaps of
 * pieces join. */
#define UNREAD_KEYS 2048

/* So many keys at once are not the last. */
#define UNREAD_MANY 1024

static void read_ahead(const bly_filter *f)
{
    if (bly_filter_sums(f))
        bly_sums_read_ahead(bly_filter_sums(f));
    for (uint32_t i = 0; i < f->nlayers; i++)
        read_ahead(f->layer[i]);
}

void bly_filter_has_unread(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *maybe)
{
    if (n >= UNREAD_MANY)
        read_ahead(f);
    for (size_t from = 0; from < n; from += UNREAD_KEYS) {
        const size_t np = n - from < UNREAD_KEYS ? n - from : UNREAD_KEYS;
        uint64_t bad[BLY_BITMAP_WORDS(UNREAD_KEYS)] = { 0 };
        bly_filter_reach(f, h + from, np, bad);
        f->kind->has(f, h + from, np, maybe + from / 64);
        for (size_t i = 0; i < BLY_BITMAP_WORDS(np); i++)
            maybe[from / 64 + i] |= bad[i];
    }
}

/* -------------------------------------- kinds that have no short way */

static inline bool has_one_of_batch(const bly_filter *f, uint64_t h)
{
    uint64_t maybe = 0;
    f->kind->has(f, &h, 1, &maybe);
    return maybe != 0;
}

BLY_ONE_HAS_FOR(, has_by_batch, has_one_of_batch)

/* ------------------------------------------- filters that have none */

/* A kind without has(); or integers without the secret. */
static bool has_unknown(const bly_filter *f, uint64_t h)
{
    (void)f;
    (void)h;
    return true;
}

/* A mapped file of which not every block was compared with its sum. Of a file
 * that is compared in some milliseconds, the rest is compared once a sixteenth
 * has been asked for: whoever asks so much goes on. */
#define UNREAD_BLOCKS 1024 /* 64 MiB */

static bool has_unread(const bly_filter *f, uint64_t h)
{
    uint64_t maybe = 0, bad = 0;
    if (!bly_filter_unread(f))
        return f->extra->outside->read->has(f, h);
    bly_filter_reach(f, &h, 1, &bad);
    f->kind->has(f, &h, 1, &maybe);
    const bly_sums *const sums = bly_filter_sums(f);
    const size_t left =
        atomic_load_explicit(&sums->nleft, memory_order_relaxed);
    if (sums->nblocks <= UNREAD_BLOCKS &&
        left <= sums->nblocks - sums->nblocks / 16)
        (void)bly_filter_settle(f);
    return (maybe | bad) != 0;
}

/* Integers, by any hash. */
static bool has_any_int(const bly_filter *f, uint64_t key)
{
    unsigned char bytes[8];
    bly_store64(bytes, key);
    return f->ways->has(f, bly_hash(&f->extra->hasher, bytes, sizeof bytes));
}

static bool has_unread_int(const bly_filter *f, uint64_t key)
{
    return bly_filter_unread(f) ? has_any_int(f, key)
                                : f->extra->outside->read->has_int(f, key);
}

/* ----------------------------------------------------------- live filters */

static bly_status add_live(bly_filter *f, uint64_t h)
{
    const bly_status st = f->extra->outside->read->add(f, h);
    return st ? st : bly_filter_still(f);
}

static bly_status add_live_int(bly_filter *f, uint64_t key)
{
    const bly_status st = f->extra->outside->read->add_int(f, key);
    return st ? st : bly_filter_still(f);
}

/* --------------------------------------------------- ways, once for all */

/* A filter has only a pointer to its ways, since there may be millions of
 * filters, but only some dozens of different ways. They are entered here when
 * they are first used, and stay. A process needs no more than the kinds,
 * variants and shapes that it uses. */
enum { WAYS_FREE, WAYS_TAKEN, WAYS_READY };
static struct {
    _Atomic int state;
    bly_ways ways;
} known_ways[256];

static bool same_ways(const bly_ways *a, const bly_ways *b)
{
    return a->has == b->has && a->add == b->add && a->has_int == b->has_int &&
           a->add_int == b->add_int && a->remove == b->remove;
}

const bly_ways *bly_ways_lasting(const bly_ways *ways)
{
    for (size_t i = 0; i < sizeof known_ways / sizeof known_ways[0]; i++) {
        int state = atomic_load(&known_ways[i].state);
        if (state == WAYS_FREE &&
            atomic_compare_exchange_strong(&known_ways[i].state, &state,
                                           WAYS_TAKEN)) {
            known_ways[i].ways = *ways;
            atomic_store(&known_ways[i].state, WAYS_READY);
            return &known_ways[i].ways;
        }
        /* Entries that are being written are skipped, so the same ways may be
         * entered twice. */
        if (state == WAYS_READY && same_ways(&known_ways[i].ways, ways))
            return &known_ways[i].ways;
    }
    return NULL;
}

static const bly_ways ways_by_batch = { .has = has_by_batch,
                                        .has_int = has_any_int };
static const bly_ways ways_unread = { .has = has_unread,
                                      .has_int = has_unread_int };
static const bly_ways ways_unknown = { .has = has_unknown,
                                       .has_int = has_unknown };

void bly_filter_ready(bly_filter *f)
{
    const bly_kind *const kind = f->kind;
    if (kind->aim)
        kind->aim(f);
    if (bly_filter_has_extra(f))
        f->extra->turned = bly_hash_turned(&f->extra->hasher);
    bly_one one = { .folded = bly_filter_folds(f) };
    if (!kind->has)
        one.ways = ways_unknown;
    else
        BLY_ONE_SET_HAS_FOR(&one, has_by_batch);
    /* A blind filter is not queried by key, and need not be fast. */
    if (kind->one && !f->blind)
        kind->one(f, &one);
    /* A kind that keeps the order of keys knows its hash, and its one() sets
     * both forms. */
    if (!bly_filter_hashes_ints(f) && !kind->has_range) {
        one.ways.has_int = f->blind ? has_unknown : has_any_int;
        one.ways.add_int = NULL;
    }
    if (f->readonly)
        one.ways.add = one.ways.add_int = one.ways.remove = NULL;
    if (f->shared)
        one.ways.remove = NULL;
    if (!f->places)
        f->aid = one.aid;
    if (bly_filter_live(f) && one.ways.add) {
        f->extra->outside->read = bly_ways_lasting(&one.ways);
        one.ways.add = f->extra->outside->read ? add_live : NULL;
        one.ways.add_int =
            one.ways.add && one.ways.add_int ? add_live_int : NULL;
    }
    f->ways = bly_ways_lasting(&one.ways);
    if (!f->ways || (f->places && one.aid))
        f->ways = !kind->has || f->blind ? &ways_unknown : &ways_by_batch;
    if (bly_filter_sums(f) && kind->has) {
        f->extra->outside->read = f->ways;
        f->ways = &ways_unread;
    }
}

bool bly_filter_viewed(const bly_filter *f, const bly_kind *kind,
                       const void *out)
{
    return f && out && f->kind == kind && bly_filter_hashes_ints(f) &&
           !f->extra->secret_check && !f->shared && !bly_filter_settle(f);
}
