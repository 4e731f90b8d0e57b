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
#include "engine/murmur2.h"
#include "foreign/format.h"
#include "foreign/hashes.h"

#define REDISTOPK_SEED 1919 /* of fingerprints */
#define REDISTOPK_POWERS 8  /* decay^1, ^2, ^4, ... that are kept */
#define REDISTOPK_ENTRY 24  /* bytes of an entry in a record */

typedef struct heavy_bucket {
    uint32_t print, count;
} heavy_bucket;

typedef struct heavy_key {
    uint32_t n, room;
    char bytes[]; /* room bytes, n of them in use, and a NUL */
} heavy_key;

typedef struct heavy_entry {
    uint32_t print, count;
    heavy_key *key; /* NULL: an empty place */
} heavy_entry;

/* A list of so many keys has an index, so that a key is found without looking
 * at all of them. */
#ifdef BLY_TESTING
#define REDISTOPK_LONG 3
#else
#define REDISTOPK_LONG 32
#endif
#define REDISTOPK_LONGEST (UINT64_C(1) << 30)

/* The heap, the least count first; behind it stand the buckets, and the index
 * if there is one. */
typedef struct redistopk {
    uint32_t k, width, depth;
    uint32_t nslots; /* of the index: a power of two, or 0 */
    bool has_left;
    bool has_twins; /* perhaps: a record had a key twice */
    double decay;
    uint64_t state;           /* of the generator */
    uint64_t nlisted, nbytes; /* keys on the list, and memory of these */
    heavy_key *spare; /* room for the next key; who was pushed out last */
    double power[REDISTOPK_POWERS];
    heavy_entry heap[];
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

static heavy_bucket *redistopk_buckets(const redistopk *t)
{
    return (heavy_bucket *)(uintptr_t)(t->heap + t->k);
}

static size_t redistopk_bytes(const redistopk *t)
{
    return (size_t)t->width * t->depth * sizeof(heavy_bucket);
}

/* The index: a slot has the place on the heap of a key of its fingerprint, plus
 * one, or 0; the first free slot behind the fingerprint's own takes it. And by
 * place, the slot that has it, plus one, so that moving a key searches nothing.
 */
static uint32_t *redistopk_slots(const redistopk *t)
{
    return (uint32_t *)(void *)(redistopk_buckets(t) +
                                (size_t)t->width * t->depth);
}

static uint32_t *redistopk_slot_of(const redistopk *t)
{
    return redistopk_slots(t) + t->nslots;
}

static uint32_t redistopk_nslots(uint64_t k)
{
    uint64_t n = 1;
    if (k < REDISTOPK_LONG || k > REDISTOPK_LONGEST)
        return 0;
    while (n < 2 * k)
        n *= 2;
    return (uint32_t)n;
}

static size_t redistopk_index_bytes(uint64_t k)
{
    const size_t nslots = redistopk_nslots(k);
    return nslots ? (nslots + (size_t)k) * sizeof(uint32_t) : 0;
}

static uint32_t redistopk_home(const redistopk *t, uint32_t print)
{
    return print & (t->nslots - 1); /* a hash already */
}

/* What is at place i of the heap is in slot s, from now on. */
static void redistopk_seat(redistopk *t, uint32_t s, uint32_t i)
{
    redistopk_slots(t)[s] = i + 1;
    redistopk_slot_of(t)[i] = s + 1;
}

/* A key has come to place i. */
static void redistopk_enter(redistopk *t, uint32_t i)
{
    if (!t->nslots)
        return;
    uint32_t s = redistopk_home(t, t->heap[i].print);
    while (redistopk_slots(t)[s])
        s = (s + 1) & (t->nslots - 1);
    redistopk_seat(t, s, i);
}

/* The key at place i leaves: those behind its slot that are not in their own
 * one move up, so that no search ends before it should. */
static void redistopk_leave(redistopk *t, uint32_t i)
{
    if (!t->nslots || !redistopk_slot_of(t)[i])
        return;
    const uint32_t mask = t->nslots - 1;
    uint32_t *const slots = redistopk_slots(t);
    uint32_t hole = redistopk_slot_of(t)[i] - 1;
    redistopk_slot_of(t)[i] = 0;
    for (uint32_t s = (hole + 1) & mask; slots[s]; s = (s + 1) & mask) {
        const uint32_t home = redistopk_home(t, t->heap[slots[s] - 1].print);
        if (((s - home) & mask) < ((s - hole) & mask))
            continue; /* its own slot lies behind the hole */
        redistopk_seat(t, hole, slots[s] - 1);
        hole = s;
    }
    slots[hole] = 0;
}

/* What is at places i and j changes places. */
static void redistopk_swap(redistopk *t, uint32_t i, uint32_t j)
{
    const heavy_entry other = t->heap[i];
    t->heap[i] = t->heap[j];
    t->heap[j] = other;
    if (!t->nslots)
        return;
    uint32_t *const slot_of = redistopk_slot_of(t);
    const uint32_t a = slot_of[i], b = slot_of[j];
    slot_of[i] = b;
    slot_of[j] = a;
    if (a)
        redistopk_slots(t)[a - 1] = j + 1;
    if (b)
        redistopk_slots(t)[b - 1] = i + 1;
}

static void heavy_release(bly_foreign *f, heavy_key *key)
{
    if (key)
        bly_mem_release(f->mem, key, sizeof *key + key->room);
}

static void redistopk_close(bly_foreign *f)
{
    redistopk *const t = f->own;
    if (!t)
        return;
    for (uint64_t i = 0; i < t->k; i++)
        heavy_release(f, t->heap[i].key);
    heavy_release(f, t->spare);
    bly_mem_release(f->mem, t,
                    sizeof *t + t->k * sizeof *t->heap + redistopk_bytes(t) +
                        redistopk_index_bytes(t->k));
    f->own = NULL;
}

static bly_status redistopk_new(bly_foreign *f, uint64_t k, uint64_t width,
                                uint64_t depth, double decay)
{
    redistopk_close(f); /* of a plan that failed */
    if (!k || !width || !depth || k > UINT32_MAX || width > UINT32_MAX ||
        depth > UINT32_MAX || !(decay > 0 && decay <= 1) ||
        width > SIZE_MAX / 4 / depth / sizeof(heavy_bucket))
        return bly_fail(BLY_ERANGE, "a list of no keys or no buckets, or of "
                                    "more than there may be");
    const bly_status st =
        bly_foreign_own(f, sizeof(redistopk) + (size_t)k * sizeof(heavy_entry) +
                               (size_t)(width * depth) * sizeof(heavy_bucket) +
                               redistopk_index_bytes(k));
    if (st)
        return st;
    redistopk *const t = f->own;
    t->k = (uint32_t)k;
    t->width = (uint32_t)width;
    t->depth = (uint32_t)depth;
    t->nslots = redistopk_nslots(k);
    t->power[0] = t->decay = decay;
    for (int i = 1; i < REDISTOPK_POWERS; i++)
        t->power[i] = t->power[i - 1] * t->power[i - 1];
    return BLY_OK;
}

static bly_status redistopk_plan(bly_foreign *f, uint64_t items, double fpr)
{
    uint64_t k, width, depth;
    char *end;
    (void)items, (void)fpr;
    const double decay = strtod(f->more->option[REDISTOPK_DECAY], &end);
    bly_status st = bly_foreign_number(f, REDISTOPK_K, 1, UINT32_MAX, &k);
    if (!st)
        st = bly_foreign_number(f, REDISTOPK_WIDTH, 1, UINT32_MAX, &width);
    if (!st)
        st = bly_foreign_number(f, REDISTOPK_DEPTH, 1, UINT32_MAX, &depth);
    if (!st && *end)
        st = bly_fail(BLY_EINVAL, "option decay: '%s' is not a number",
                      f->more->option[REDISTOPK_DECAY]);
    return st ? st : redistopk_new(f, k, width, depth, decay);
}

/* Room for n bytes and a NUL in *key, whose bytes need not stay. */
static bly_status heavy_room(bly_foreign *f, heavy_key **key, size_t n)
{
    if (*key && (*key)->room > n)
        return BLY_OK;
    if (n >= UINT32_MAX - 64)
        return bly_fail(BLY_ERANGE, "a key of more than 4 GiB");
    const size_t nbytes = (sizeof **key + n + 1 + 15) / 16 * 16;
    heavy_key *const fresh = f->mem->alloc(f->mem->ctx, nbytes);
    if (!fresh)
        return bly_fail(BLY_ENOMEM, "out of memory");
    heavy_release(f, *key);
    fresh->n = 0;
    fresh->room = (uint32_t)(nbytes - sizeof *fresh);
    *key = fresh;
    return BLY_OK;
}

static void heavy_set(heavy_key *key, const void *bytes, size_t n)
{
    if (n)
        memcpy(key->bytes, bytes, n);
    key->bytes[n] = '\0';
    key->n = (uint32_t)n;
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
    t->has_twins = from->has_twins;
    memcpy(redistopk_buckets(t), redistopk_buckets(from), redistopk_bytes(t));
    for (uint64_t i = 0; i < t->k && !st; i++) {
        const heavy_entry *const e = &from->heap[i];
        if (!e->key)
            continue;
        heavy_key *key = NULL;
        st = heavy_room(to, &key, e->key->n);
        if (st)
            continue;
        heavy_set(key, e->key->bytes, e->key->n);
        t->heap[i] = (heavy_entry){ e->print, e->count, key };
        redistopk_enter(t, (uint32_t)i);
        t->nlisted++;
        t->nbytes += sizeof *key + key->room;
    }
    return st;
}

static bly_array redistopk_array(const bly_foreign *f, size_t i)
{
    const redistopk *const t = f->own;
    (void)i;
    return (bly_array){ (unsigned char *)redistopk_buckets(t),
                        redistopk_bytes(t) };
}

static void redistopk_move(bly_foreign *f, size_t i, bly_mover *move, void *ctx)
{
    (void)i;
    bly_moved(&f->own, move, ctx);
    redistopk *const t = f->own;
    bly_moved(&t->spare, move, ctx);
    for (uint64_t j = 0; j < t->k; j++)
        bly_moved(&t->heap[j].key, move, ctx);
}

static void redistopk_describe(const bly_foreign *f, bly_facts *out)
{
    const redistopk *const t = f->own;
    bly_fact_uint(out, "k", t->k);
    bly_fact_uint(out, "width", t->width);
    bly_fact_uint(out, "depth", t->depth);
    bly_fact_real(out, "decay", t->decay);
    bly_fact_uint(out, "list_bytes",
                  sizeof *t + t->k * sizeof *t->heap + t->nbytes +
                      redistopk_index_bytes(t->k));
}

/* ------------------------------------------------------------------- adding */

/* A number in [0, 1) that depends on what the list has seen. */
static double redistopk_random(redistopk *t)
{
    t->state += UINT64_C(0x9e3779b97f4a7c15);
    return (double)(bly_mix64(t->state) >> 11) * 0x1p-53;
}

/* decay^count. */
static double redistopk_chance(const redistopk *t, uint32_t count)
{
    double chance = 1;
    if (count >> REDISTOPK_POWERS)
        return pow(t->decay, count);
    for (int i = 0; count; i++, count >>= 1)
        chance *= count & 1 ? t->power[i] : 1;
    return chance;
}

/* The lesser child comes up, the left one of two that are equal. The first one
 * also where it counts as much as what goes down, those below only where it
 * counts less: as in RedisBloom, so that of equal keys the same one leaves. */
static void redistopk_down(redistopk *t, uint64_t i)
{
    for (bool first = true;; first = false) {
        uint64_t least = 2 * i + 1;
        if (least >= t->k)
            return;
        if (least + 1 < t->k && t->heap[least + 1].count < t->heap[least].count)
            least++;
        const uint32_t up = t->heap[least].count, down = t->heap[i].count;
        if (up > down || (up == down && !first))
            return;
        redistopk_swap(t, (uint32_t)i, (uint32_t)least);
        i = least;
    }
}

/* A key comes with its fingerprint, by which it is found on the list; where it
 * is counted, with its columns in the first seven rows, which are all, mostly.
 */
enum { REDISTOPK_ROWS = 7 };

static void redistopk_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    key->rows[REDISTOPK_ROWS] =
        bly_murmur2(key->bytes, key->len, REDISTOPK_SEED);
}

static void redistopk_fetch(const bly_foreign *f, bly_foreign_key *keys,
                            size_t n)
{
    const redistopk *const t = f->own;
    const bool far = t->width > BLY_MURMUR2_MAX_DIVISOR;
    const bly_murmur2_row *const row = bly_murmur2_best();
    bly_murmur2_lanes lanes;
    bly_murmur2_lanes_set(&lanes, 0, far ? 0 : t->width);
    lanes.seeds[REDISTOPK_ROWS] = REDISTOPK_SEED;
    lanes.divisors[REDISTOPK_ROWS] = lanes.inverses[REDISTOPK_ROWS] = 0;
    for (size_t i = 0; i < n; i++) {
        row->eight(keys[i].bytes, keys[i].len, &lanes, keys[i].rows);
        for (int j = 0; j < REDISTOPK_ROWS && far; j++)
            keys[i].rows[j] %= t->width;
    }
}

static uint32_t redistopk_print(const bly_foreign_key *key)
{
    return key->rows[REDISTOPK_ROWS];
}

static bool redistopk_is(const heavy_entry *e, const bly_foreign_key *key)
{
    return e->print == redistopk_print(key) && e->key &&
           e->key->n == key->len &&
           bly_same_bytes(e->key->bytes, key->bytes, key->len);
}

/* The first of the heap, if a record that somebody made has a key twice. */
static heavy_entry *redistopk_find(redistopk *t, const bly_foreign_key *key)
{
    uint64_t first = t->k;
    if (t->nslots) {
        const uint32_t *const slots = redistopk_slots(t);
        uint32_t s = redistopk_home(t, redistopk_print(key));
        for (; slots[s]; s = (s + 1) & (t->nslots - 1))
            if (slots[s] - 1 < first &&
                redistopk_is(&t->heap[slots[s] - 1], key)) {
                first = slots[s] - 1;
                if (!t->has_twins)
                    break;
            }
        return first < t->k ? &t->heap[first] : NULL;
    }
    for (uint64_t i = 0; i < t->k; i++)
        if (redistopk_is(&t->heap[i], key))
            return &t->heap[i];
    return NULL;
}

static heavy_bucket *redistopk_at(const redistopk *t,
                                  const bly_foreign_key *key, uint64_t row)
{
    const uint32_t column =
        row < REDISTOPK_ROWS
            ? key->rows[row]
            : bly_murmur2(key->bytes, key->len, (uint32_t)row) % t->width;
    return &redistopk_buckets(t)[row * t->width + column];
}

/* A bucket that is empty, or another's: add n to it; what the key then counts
 * there. */
static uint32_t redistopk_take(redistopk *t, heavy_bucket *b, uint32_t print,
                               uint32_t n)
{
    if (b->count == 0) {
        *b = (heavy_bucket){ print, n };
        return n;
    }
    for (; n; n--)
        if (redistopk_random(t) < redistopk_chance(t, b->count) &&
            --b->count == 0) {
            *b = (heavy_bucket){ print, n };
            return n;
        }
    return 0;
}

static inline __attribute__((always_inline)) uint32_t
redistopk_bucket_add(redistopk *t, heavy_bucket *b, uint32_t print, uint32_t n)
{
    if (b->print != print || b->count == 0)
        return redistopk_take(t, b, print, n);
    return b->count = n > UINT32_MAX - b->count ? UINT32_MAX : b->count + n;
}

/* As in RedisBloom, a bucket of a key that is on the list says nothing if it
 * has less than the first of the heap. */
static uint64_t redistopk_count(const bly_foreign *f,
                                const bly_foreign_key *key)
{
    redistopk *const t = f->own;
    const uint32_t least = redistopk_find(t, key) ? t->heap[0].count : 0;
    uint32_t most = 0;
    for (uint64_t row = 0; row < t->depth; row++) {
        const heavy_bucket *const b = redistopk_at(t, key, row);
        if (b->print == redistopk_print(key) && b->count >= least &&
            b->count > most)
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
    if (!t->spare || t->spare->room <= key->len) {
        const bly_status st = heavy_room(f, &t->spare, key->len);
        if (st)
            return st;
    }
    f->nchanges++;
    heavy_bucket *buckets = redistopk_buckets(t);
    for (uint32_t row = 0; row < t->depth && row < REDISTOPK_ROWS; row++) {
        const uint32_t own =
            redistopk_bucket_add(t, buckets + key->rows[row], print, n);
        most = own > most ? own : most;
        buckets += t->width;
    }
    for (uint32_t row = REDISTOPK_ROWS; row < t->depth; row++) {
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
        redistopk_down(t, (uint64_t)(listed - t->heap));
    } else { /* even what counts nothing, while there is nothing more */
        heavy_key *const out = t->heap[0].key;
        heavy_set(t->spare, key->bytes, key->len);
        redistopk_leave(t, 0);
        t->heap[0] = (heavy_entry){ print, most, t->spare };
        t->nlisted += !out;
        t->nbytes += sizeof *out + t->spare->room;
        t->nbytes -= out ? sizeof *out + out->room : 0;
        t->spare = out;
        t->has_left = out != NULL;
        redistopk_enter(t, 0);
        redistopk_down(t, 0);
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
        *out = (bly_bytes){ t->spare->bytes, t->spare->n };
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
    if (!out)
        return (size_t)t->nlisted;
    for (uint64_t i = 0; i < t->k; i++) {
        const heavy_entry *const e = &t->heap[i];
        if (e->key)
            out[n++] = (bly_foreign_item){ { e, e->key->n }, e->count };
    }
    qsort(out, n, sizeof *out, redistopk_heavier);
    for (size_t i = 0; i < n; i++)
        out[i].key.ptr = ((const heavy_entry *)out[i].key.ptr)->key->bytes;
    return n;
}

/* ------------------------------------------------------------------ records */

/* An entry of the heap in a record: u32 fingerprint, u32 length, 8 bytes that
 * were a pointer, u32 count, 4 of padding. */
static bly_status redistopk_store(const bly_foreign *f,
                                  const bly_foreign_record *to)
{
    const redistopk *const t = f->own;
    const bly_mem *const mem = to->mem ? to->mem : f->mem;
    const size_t n = (size_t)t->k * REDISTOPK_ENTRY;
    unsigned char *const heap = bly_mem_zalloc(mem, n);
    if (!heap)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < t->k; i++) {
        unsigned char *const at = heap + i * REDISTOPK_ENTRY;
        bly_store32(at, t->heap[i].print);
        bly_store32(at + 4, t->heap[i].key ? t->heap[i].key->n : 0);
        bly_store32(at + 16, t->heap[i].count);
    }
    bly_store64(heap + 8, t->state);
    to->put_uint(to->ctx, t->k);
    to->put_uint(to->ctx, t->width);
    to->put_uint(to->ctx, t->depth);
    to->put_real(to->ctx, t->decay);
    to->put_bytes(to->ctx, redistopk_buckets(t), redistopk_bytes(t));
    to->put_bytes(to->ctx, heap, n);
    bly_mem_release(mem, heap, n);
    for (uint64_t i = 0; i < t->k; i++)
        if (t->heap[i].key) /* there is a NUL behind every key */
            to->put_bytes(to->ctx, t->heap[i].key->bytes,
                          t->heap[i].key->n + 1);
        else
            to->put_bytes(to->ctx, "", 1);
    return BLY_OK;
}

/* The k keys; an entry that is nothing, counts nothing and has no fingerprint
 * is empty. A key may count nothing, the empty one too: others took its
 * buckets.
 */
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
            bly_mem_release(f->mem, key, n);
            return false;
        }
        bool ok = true;
        if (count || n > 1 || bly_load32(heap)) {
            ok = heavy_room(f, &e->key, n - 1) == BLY_OK;
            if (ok)
                heavy_set(e->key, key, n - 1);
            e->print = bly_load32(heap);
            e->count = count;
            if (ok && t->nslots) {
                bly_foreign_key same = { .bytes = (unsigned char *)key,
                                         .len = n - 1 };
                same.rows[REDISTOPK_ROWS] = e->print;
                t->has_twins |= redistopk_find(t, &same) != NULL;
                redistopk_enter(t, (uint32_t)i);
            }
            t->nlisted++;
            t->nbytes += ok ? sizeof *e->key + e->key->room : 0;
        }
        bly_mem_release(f->mem, key, n);
        if (!ok)
            return false;
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
        memcpy(redistopk_buckets(t), buckets, nbuckets);
        t->state = bly_load64(heap + 8);
        /* In the order that was saved, which need not be that of a heap: a
         * count that falls stays where it is, as in RedisBloom. */
        st = redistopk_restore_keys(f, from, heap) ? BLY_OK : BLY_EFORMAT;
    }
    bly_mem_release(f->mem, buckets, nbuckets);
    bly_mem_release(f->mem, heap, nheap);
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
    .fetch = redistopk_fetch,
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
