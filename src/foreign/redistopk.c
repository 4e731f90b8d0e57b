/*
 * redistopk.c - the heaviest keys of a stream, by RedisBloom's HeavyKeeper
 *
 * depth rows of width buckets hold a fingerprint and a count each; a key that
 * meets another's bucket takes one from its count with a chance that falls as
 * the count grows, and takes the bucket when that is empty. A heap of k entries
 * keeps the keys with the largest counts. (bly_topk is more accurate at equal
 * memory, and keeps other things: sketch/top_keys.c.)
 *
 * Redis has no dump of one, so there is no file: it is kept in records. Chance
 * is not left to the process: the state of the generator belongs to the list,
 * so that a primary and its replicas, and a server before and after a restart,
 * come to the same lists. It travels in 8 bytes of the record that are a
 * pointer in RedisBloom and mean nothing there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "foreign/format.h"
#include "foreign/hashes.h"

#define REDISTOPK_SEED 1919  /* of fingerprints */
#define REDISTOPK_DECAYS 256 /* powers of the decay that are kept */
#define REDISTOPK_ENTRY 24   /* bytes of an entry in a record */

typedef struct heavy_bucket {
    uint32_t print, count;
} heavy_bucket;

typedef struct heavy_entry {
    uint32_t print, count;
    size_t n, room;
    char *key; /* room bytes, n and a NUL; NULL: an empty place */
} heavy_entry;

typedef struct redistopk {
    uint64_t k, width, depth;
    double decay;
    uint64_t state; /* of the generator */
    heavy_bucket *buckets;
    heavy_entry *heap; /* the least count first */
    heavy_entry spare; /* room for the next key; who was pushed out last */
    bool has_left;
    double chances[REDISTOPK_DECAYS];
} redistopk;

enum {
    REDISTOPK_K,
    REDISTOPK_WIDTH,
    REDISTOPK_DEPTH,
    REDISTOPK_DECAY,
    REDISTOPK_NOPTIONS
};

static const bly_param redistopk_options[] = {
    [REDISTOPK_K] = BLY_OPTION_TEXT("k", "10", "keys on the list"),
    [REDISTOPK_WIDTH] = BLY_OPTION_TEXT("width", "8", "buckets of a row"),
    [REDISTOPK_DEPTH] = BLY_OPTION_TEXT("depth", "7", "rows"),
    [REDISTOPK_DECAY] = BLY_OPTION_TEXT("decay", "0.9", "above 0, at most 1"),
};

/* ------------------------------------------------------------------- making */

static size_t redistopk_bytes(const redistopk *t)
{
    return (size_t)(t->width * t->depth) * sizeof *t->buckets;
}

static void redistopk_close(bly_foreign *f)
{
    redistopk *const t = f->own;
    if (!t)
        return;
    for (uint64_t i = 0; t->heap && i < t->k; i++)
        bly_mem_release(&f->mem, t->heap[i].key, t->heap[i].room);
    bly_mem_release(&f->mem, t->spare.key, t->spare.room);
    bly_mem_release(&f->mem, t->heap, (size_t)t->k * sizeof *t->heap);
    bly_mem_release(&f->mem, t->buckets, redistopk_bytes(t));
    bly_mem_release(&f->mem, t, sizeof *t);
    f->own = NULL;
}

static bly_status redistopk_new(bly_foreign *f, uint64_t k, uint64_t width,
                                uint64_t depth, double decay)
{
    redistopk_close(f); /* of a plan that failed */
    if (!k || !width || !depth || k > UINT32_MAX || width > UINT32_MAX ||
        depth > UINT32_MAX || !(decay > 0 && decay <= 1) ||
        width > SIZE_MAX / depth / sizeof(heavy_bucket))
        return bly_fail(BLY_ERANGE, "a list of no keys or no buckets, or of "
                                    "more than there may be");
    const bly_status st = bly_foreign_own(f, sizeof(redistopk));
    if (st)
        return st;
    redistopk *const t = f->own;
    t->k = k;
    t->width = width;
    t->depth = depth;
    t->decay = decay;
    t->buckets = bly_mem_zalloc(&f->mem, redistopk_bytes(t));
    t->heap = t->buckets ? bly_mem_zalloc(&f->mem, (size_t)k * sizeof *t->heap)
                         : NULL;
    for (int i = 0; i < REDISTOPK_DECAYS; i++)
        t->chances[i] = pow(decay, i);
    return t->heap ? BLY_OK : bly_fail(BLY_ENOMEM, "out of memory");
}

static bly_status redistopk_plan(bly_foreign *f, uint64_t items, double fpr)
{
    uint64_t k, width, depth;
    char *end;
    (void)items, (void)fpr;
    const double decay = strtod(f->option[REDISTOPK_DECAY], &end);
    bly_status st = bly_foreign_number(f, REDISTOPK_K, 1, UINT32_MAX, &k);
    if (!st)
        st = bly_foreign_number(f, REDISTOPK_WIDTH, 1, UINT32_MAX, &width);
    if (!st)
        st = bly_foreign_number(f, REDISTOPK_DEPTH, 1, UINT32_MAX, &depth);
    if (!st && *end)
        st = bly_fail(BLY_EINVAL, "option decay: '%s' is not a number",
                      f->option[REDISTOPK_DECAY]);
    return st ? st : redistopk_new(f, k, width, depth, decay);
}

/* Room for n bytes and a NUL. */
static bly_status redistopk_room(bly_foreign *f, heavy_entry *e, size_t n)
{
    if (e->room > n)
        return BLY_OK;
    char *const room = n < SIZE_MAX ? f->mem.alloc(f->mem.ctx, n + 1) : NULL;
    if (!room)
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_mem_release(&f->mem, e->key, e->room);
    e->key = room;
    e->room = n + 1;
    return BLY_OK;
}

static bly_status redistopk_copy(const bly_foreign *f, bly_foreign *to)
{
    const redistopk *const from = f->own;
    bly_status st =
        redistopk_new(to, from->k, from->width, from->depth, from->decay);
    if (st)
        return st;
    redistopk *const t = to->own;
    t->state = from->state;
    memcpy(t->buckets, from->buckets, redistopk_bytes(t));
    for (uint64_t i = 0; i < t->k && !st; i++) {
        const heavy_entry *const e = &from->heap[i];
        if (!e->key)
            continue;
        st = redistopk_room(to, &t->heap[i], e->n);
        if (st)
            continue;
        memcpy(t->heap[i].key, e->key, e->n + 1);
        t->heap[i].n = e->n;
        t->heap[i].print = e->print;
        t->heap[i].count = e->count;
    }
    return st;
}

static bly_array redistopk_array(const bly_foreign *f, size_t i)
{
    const redistopk *const t = f->own;
    (void)i;
    return (bly_array){ (unsigned char *)t->buckets, redistopk_bytes(t) };
}

static void redistopk_move(bly_foreign *f, size_t i, bly_mover *move, void *ctx)
{
    (void)i;
    bly_moved(&f->own, move, ctx);
    redistopk *const t = f->own;
    bly_moved(&t->buckets, move, ctx);
    bly_moved(&t->heap, move, ctx);
    bly_moved(&t->spare.key, move, ctx);
    for (uint64_t j = 0; j < t->k; j++)
        bly_moved(&t->heap[j].key, move, ctx);
}

static void redistopk_describe(const bly_foreign *f, bly_facts *out)
{
    const redistopk *const t = f->own;
    uint64_t held = sizeof *t + t->k * sizeof *t->heap;
    for (uint64_t i = 0; i < t->k; i++)
        held += t->heap[i].key ? t->heap[i].n + 1 : 0;
    bly_fact_uint(out, "k", t->k);
    bly_fact_uint(out, "width", t->width);
    bly_fact_uint(out, "depth", t->depth);
    bly_fact_real(out, "decay", t->decay);
    bly_fact_uint(out, "list_bytes", held);
}

/* ------------------------------------------------------------------- adding */

/* A number in [0, 1) that depends on what the list has seen. */
static double redistopk_random(redistopk *t)
{
    t->state += UINT64_C(0x9e3779b97f4a7c15);
    return (double)(bly_mix64(t->state) >> 11) * 0x1p-53;
}

static double redistopk_chance(const redistopk *t, uint32_t count)
{
    return count < REDISTOPK_DECAYS ? t->chances[count] : pow(t->decay, count);
}

/* The lesser child comes up, the left one of two that are equal; past_equals:
 * also where it counts as much as what goes down, as in RedisBloom, so that of
 * equal keys the same one leaves. */
static void redistopk_down(redistopk *t, uint64_t i, bool past_equals)
{
    for (;;) {
        uint64_t least = 2 * i + 1;
        if (least >= t->k)
            return;
        if (least + 1 < t->k && t->heap[least + 1].count < t->heap[least].count)
            least++;
        if (past_equals ? t->heap[least].count > t->heap[i].count
                        : t->heap[least].count >= t->heap[i].count)
            return;
        const heavy_entry other = t->heap[i];
        t->heap[i] = t->heap[least];
        t->heap[least] = other;
        i = least;
    }
}

/* A key comes with the hashes of the first seven rows, which are all, mostly,
 * and with its fingerprint. */
enum { REDISTOPK_ROWS = 7 };

static void redistopk_hash(const bly_foreign *f, bly_foreign_key *key)
{
    static const uint32_t seeds[8] = { 0, 1, 2, 3, 4, 5, 6, REDISTOPK_SEED };
    (void)f;
    bly_murmur2_eight(key->bytes, key->len, seeds, key->rows);
}

static uint32_t redistopk_print(const bly_foreign_key *key)
{
    return key->rows[REDISTOPK_ROWS];
}

static heavy_entry *redistopk_find(const redistopk *t,
                                   const bly_foreign_key *key)
{
    const uint32_t print = redistopk_print(key);
    for (uint64_t i = 0; i < t->k; i++) {
        heavy_entry *const e = &t->heap[i];
        if (e->print == print && e->key && e->n == key->len &&
            (!key->len || memcmp(e->key, key->bytes, key->len) == 0))
            return e;
    }
    return NULL;
}

static heavy_bucket *redistopk_at(const redistopk *t,
                                  const bly_foreign_key *key, uint64_t row)
{
    const uint32_t hash =
        row < REDISTOPK_ROWS ? key->rows[row]
                             : bly_murmur2(key->bytes, key->len, (uint32_t)row);
    return &t->buckets[row * t->width + hash % (uint32_t)t->width];
}

/* Add n to the bucket of one row; what the key counts there. */
static uint32_t redistopk_bucket_add(redistopk *t, heavy_bucket *b,
                                     uint32_t print, uint32_t n)
{
    if (b->count == 0) {
        *b = (heavy_bucket){ print, n };
        return n;
    }
    if (b->print == print) {
        b->count = n > UINT32_MAX - b->count ? UINT32_MAX : b->count + n;
        return b->count;
    }
    for (; n; n--)
        if (redistopk_random(t) < redistopk_chance(t, b->count) &&
            --b->count == 0) {
            *b = (heavy_bucket){ print, n };
            return n;
        }
    return 0;
}

static uint64_t redistopk_count(const bly_foreign *f,
                                const bly_foreign_key *key)
{
    const redistopk *const t = f->own;
    uint32_t most = 0;
    for (uint64_t row = 0; row < t->depth; row++) {
        const heavy_bucket *const b = redistopk_at(t, key, row);
        if (b->print == redistopk_print(key) && b->count > most)
            most = b->count;
    }
    return most;
}

static bly_status redistopk_increase(bly_foreign *f, const bly_foreign_key *key,
                                     uint64_t by, uint64_t *now)
{
    redistopk *const t = f->own;
    const uint32_t print = redistopk_print(key);
    const uint32_t n = by > UINT32_MAX ? UINT32_MAX : (uint32_t)by;
    uint32_t most = 0;
    t->has_left = false;
    if (!n) {
        *now = redistopk_count(f, key);
        return BLY_OK;
    }
    const bly_status st = redistopk_room(f, &t->spare, key->len);
    if (st)
        return st;
    f->nseen++;
    for (uint64_t row = 0; row < t->depth; row++) {
        const uint32_t own =
            redistopk_bucket_add(t, redistopk_at(t, key, row), print, n);
        most = own > most ? own : most;
    }
    *now = most;
    if (most < t->heap[0].count) /* most keys of a stream, mostly */
        return BLY_OK;
    heavy_entry *const listed = redistopk_find(t, key);
    if (listed) {
        listed->count = most;
        redistopk_down(t, (uint64_t)(listed - t->heap), true);
    } else if (most) {
        const heavy_entry out = t->heap[0];
        t->heap[0] = t->spare;
        t->heap[0].print = print;
        t->heap[0].count = most;
        t->heap[0].n = key->len;
        if (key->len)
            memcpy(t->heap[0].key, key->bytes, key->len);
        t->heap[0].key[key->len] = '\0';
        t->spare = out;
        t->has_left = out.key != NULL;
        redistopk_down(t, 0, true);
    }
    return BLY_OK;
}

/* ------------------------------------------------------------------- asking */

static void redistopk_ask(const bly_foreign *f, const bly_foreign_key *keys,
                          size_t n, uint64_t *bitmap)
{
    for (size_t i = 0; i < n; i++)
        bitmap[i / 64] |= (uint64_t)(redistopk_find(f->own, &keys[i]) != NULL)
                          << i % 64;
}

static bool redistopk_test(const bly_foreign *f, size_t i,
                           const bly_foreign_key *key)
{
    (void)i;
    return redistopk_find(f->own, key) != NULL;
}

static bool redistopk_left(const bly_foreign *f, bly_bytes *out)
{
    const redistopk *const t = f->own;
    if (t->has_left)
        *out = (bly_bytes){ t->spare.key, t->spare.n };
    return t->has_left;
}

/* The larger count first, equal ones in the order of the heap, as in
 * RedisBloom: while they are sorted, items point to their entries. */
static int redistopk_heavier(const void *a, const void *b)
{
    const bly_foreign_item *const x = a, *const y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    const heavy_entry *const e = x->key.ptr, *const other = y->key.ptr;
    return e < other ? -1 : e > other;
}

static size_t redistopk_list(const bly_foreign *f, bly_foreign_item *out)
{
    const redistopk *const t = f->own;
    size_t n = 0;
    for (uint64_t i = 0; i < t->k; i++) {
        const heavy_entry *const e = &t->heap[i];
        if (e->key && out)
            out[n] = (bly_foreign_item){ { e, e->n }, e->count };
        n += e->key != NULL;
    }
    if (out)
        qsort(out, n, sizeof *out, redistopk_heavier);
    for (size_t i = 0; out && i < n; i++)
        out[i].key.ptr = ((const heavy_entry *)out[i].key.ptr)->key;
    return n;
}

/* ------------------------------------------------------------------ records */

/* An entry of the heap in a record: u32 fingerprint, u32 length, 8 bytes that
 * were a pointer, u32 count, 4 of padding. */
static bly_status redistopk_store(const bly_foreign *f,
                                  const bly_foreign_record *to)
{
    const redistopk *const t = f->own;
    const bly_mem *const mem = to->mem ? to->mem : &f->mem;
    const size_t n = (size_t)t->k * REDISTOPK_ENTRY;
    unsigned char *const heap = bly_mem_zalloc(mem, n);
    if (!heap)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < t->k; i++) {
        unsigned char *const at = heap + i * REDISTOPK_ENTRY;
        bly_store32(at, t->heap[i].print);
        bly_store32(at + 4, (uint32_t)t->heap[i].n);
        bly_store32(at + 16, t->heap[i].count);
    }
    bly_store64(heap + 8, t->state);
    to->put_uint(to->ctx, t->k);
    to->put_uint(to->ctx, t->width);
    to->put_uint(to->ctx, t->depth);
    to->put_real(to->ctx, t->decay);
    to->put_bytes(to->ctx, t->buckets, redistopk_bytes(t));
    to->put_bytes(to->ctx, heap, n);
    bly_mem_release(mem, heap, n);
    for (uint64_t i = 0; i < t->k; i++)
        if (t->heap[i].key) /* there is a NUL behind every key */
            to->put_bytes(to->ctx, t->heap[i].key, t->heap[i].n + 1);
        else
            to->put_bytes(to->ctx, "", 1);
    return BLY_OK;
}

/* The k keys; an entry that is nothing and counts nothing is empty. A key may
 * count nothing: others took its buckets. */
static bool redistopk_restore_keys(bly_foreign *f,
                                   const bly_foreign_record *from,
                                   const unsigned char *heap)
{
    redistopk *const t = f->own;
    for (uint64_t i = 0; i < t->k; i++, heap += REDISTOPK_ENTRY) {
        heavy_entry *const e = &t->heap[i];
        size_t n = 0;
        char *const key = from->get_bytes(from->ctx, &n);
        const uint32_t count = bly_load32(heap + 16);
        if (from->failed(from->ctx) || !key || n < 1 || key[n - 1]) {
            bly_mem_release(&f->mem, key, n);
            return false;
        }
        if (count || n > 1)
            *e = (heavy_entry){ bly_load32(heap), count, n - 1, n, key };
        else
            bly_mem_release(&f->mem, key, n);
    }
    return true;
}

static bly_status redistopk_restore(bly_foreign *f, unsigned version,
                                    const bly_foreign_record *from)
{
    if (version > 0)
        return bly_damaged("a top-k record of version %u", version);
    const uint64_t k = from->get_uint(from->ctx);
    const uint64_t width = from->get_uint(from->ctx);
    const uint64_t depth = from->get_uint(from->ctx);
    const double decay = from->get_real(from->ctx);
    size_t nbuckets = 0, nheap = 0;
    unsigned char *const buckets =
        from->failed(from->ctx) ? NULL : from->get_bytes(from->ctx, &nbuckets);
    unsigned char *const heap = from->failed(from->ctx) || !buckets
                                    ? NULL
                                    : from->get_bytes(from->ctx, &nheap);
    bly_status st = BLY_EFORMAT;
    if (!from->failed(from->ctx) && buckets && heap && k && width && depth &&
        width <= nbuckets / sizeof(heavy_bucket) / depth &&
        width * depth * sizeof(heavy_bucket) == nbuckets &&
        k <= nheap / REDISTOPK_ENTRY && k * REDISTOPK_ENTRY == nheap)
        st = redistopk_new(f, k, width, depth, decay);
    if (!st) {
        redistopk *const t = f->own;
        memcpy(t->buckets, buckets, nbuckets);
        t->state = bly_load64(heap + 8);
        st = redistopk_restore_keys(f, from, heap) ? BLY_OK : BLY_EFORMAT;
        for (uint64_t i = t->k / 2; !st && i-- > 0;)
            redistopk_down(t, i, false); /* a heap, whoever wrote it */
    }
    bly_mem_release(&f->mem, buckets, nbuckets);
    bly_mem_release(&f->mem, heap, nheap);
    return st == BLY_EFORMAT ? bly_damaged("a top-k record that cannot be")
                             : st;
}

const bly_format bly_format_redistopk = {
    .name = "redistopk",
    .systems = "RedisBloom TOPK.* (Redis)",
    .summary = "a list of the heaviest keys in Redis",
    .options = redistopk_options,
    .noptions = REDISTOPK_NOPTIONS,
    .close = redistopk_close,
    .describe = redistopk_describe,
    .hash = redistopk_hash,
    .test = redistopk_test,
    .plan = redistopk_plan,
    .ask = redistopk_ask,
    .increase = redistopk_increase,
    .count = redistopk_count,
    .left = redistopk_left,
    .list = redistopk_list,
    .copy = redistopk_copy,
    .array = redistopk_array,
    .move = redistopk_move,
    .store = redistopk_store,
    .restore = redistopk_restore,
};
