/*
 * top_keys.c - the heaviest keys of a stream, by name
 *
 * A list of k keys with exact counts from the day they joined, and in front of
 * the door a crowd of candidates that are known by a fingerprint only:
 *
 *     hash h --- on the list? -- yes --> its count += weight
 *                                no
 *                                v
 *     line h * nlines / 2^64:  | print count | print count | ... 8 cells |
 *
 *       own print there          its count += weight
 *       an empty cell            print, count = weight
 *       neither                  the lightest cell of the line loses one with
 *                                probability decay^count, for each unit of
 *                                weight; at 0 the newcomer has it
 *
 *     own count > least of the list?   joins; the least goes back to its line
 *
 * The decay is HeavyKeeper's [1]: who comes rarely cannot hold a cell against
 * many, and decay^count falls so fast that a heavy key's cell hardly ever
 * loses. Two changes make it far more accurate at equal memory
 * (bench/speed_topk.c): keys on the list are kept out of the cells, so that
 * heavy ones need none and their counts stay exact; and a key holds one cell of
 * a cache line, the lightest being the one to lose, instead of one in each of
 * several rows. With these the value of decay hardly matters any more: the
 * lightest of eight is rarely a heavy one. A count-min sketch with a heap, the
 * usual alternative, overestimates all that is light, and fills its list with
 * lucky ones where memory is short.
 *
 * Counts are at or below the truth but for two rare things: of a key that
 * joined late the units before it had a cell are missing; one stranger in 8000
 * has the print of one of the eight in its line and is counted with it.
 *
 * 1000 keys of a million, 5 million events, Zipf exponent 1, 128 KB of cells:
 * all 1000 found, their counts less than 0.05 % low on average.
 *
 * A cell is 64 bits: 16 of print, 48 of count, which sticks at its ceiling.
 *
 * [1] Gong, Yang, Zhou, Li, Chen, Uhlig and Li, HeavyKeeper: an accurate
 *     algorithm for finding top-k elephant flows, 2018
 */
#include <math.h>
#include <string.h>

#include "core/bits.h"
#include "core/secret.h"
#include "core/sized.h"
#include "core/status.h"
#include "sketch/topk.h"

/* 0.925^608 is below 2^-64: a cell of more is safe. */
#define TOPK_DECAY 0.925

#define TOPK_FIRST_ROOM 16u

/* Cells for a thousand keys of a million at Zipf 0.8 and more
 * (bench/speed_topk.c).
 */
#define TOPK_BYTES_A_KEY 128
#define TOPK_LEAST_BYTES 4096

/* ------------------------------------------------------------------ making */

static void topk_key_free(bly_topk *t, topk_entry *e)
{
    if (e->key)
        bly_mem_release(&t->mem, e->key, e->len);
    e->key = NULL;
}

/* Places for hashes of so many entries, at most half of them taken. */
static uint32_t topk_slots_for(uint32_t room)
{
    uint32_t n = 2;
    while (n < 2 * room)
        n *= 2;
    return n;
}

static void topk_lists_free(const bly_topk *t, topk_entry *entries,
                            uint32_t *heap, topk_slot *slots, uint32_t room)
{
    if (entries)
        bly_mem_release(&t->mem, entries, room * sizeof *entries);
    if (heap)
        bly_mem_release(&t->mem, heap, room * sizeof *heap);
    if (slots)
        bly_mem_release(&t->mem, slots, topk_slots_for(room) * sizeof *slots);
}

/* Where a hash belongs. Whoever chooses keys knows their hashes, unless these
 * are keyed, but not the salt: they do not all meet in one place. */
static uint32_t topk_home(const bly_topk *t, uint64_t h)
{
    return (uint32_t)bly_scale(bly_mix64(h ^ t->salt[0]) * t->salt[1],
                               t->nslots);
}

/* The slot of a hash, or the free one where it would be. */
static uint32_t topk_slot_of(const bly_topk *t, uint64_t h)
{
    uint32_t s = topk_home(t, h);
    while (t->slots[s].entry && t->slots[s].hash != h)
        s = (s + 1) & (t->nslots - 1);
    return s;
}

static void topk_slot_put(bly_topk *t, uint32_t entry)
{
    const uint64_t h = t->entries[entry].hash;
    t->slots[topk_slot_of(t, h)] = (topk_slot){ h, entry + 1 };
}

void bly_topk_free(bly_topk *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n; i++)
        topk_key_free(t, &t->entries[i]);
    topk_key_free(t, &t->left);
    topk_lists_free(t, t->entries, t->heap, t->slots, t->room);
    bly_block_free(&t->mem, &t->block);
    bly_origin_forget(&t->origin);
    const bly_mem mem = t->mem;
    bly_mem_release(&mem, t, sizeof *t);
}

/* Room for one entry more, for all k at last: memory comes as keys do. */
static bly_status topk_grow(bly_topk *t)
{
    if (t->n < t->room || t->room == t->k)
        return BLY_OK;
    const uint32_t doubled = t->room ? 2 * t->room : TOPK_FIRST_ROOM;
    const uint32_t room = doubled < t->k ? doubled : t->k;
    const uint32_t nslots = topk_slots_for(room), was = t->room;
    topk_entry *const entries = bly_mem_zalloc(&t->mem, room * sizeof *entries);
    uint32_t *const heap = bly_mem_zalloc(&t->mem, room * sizeof *heap);
    topk_slot *const slots = bly_mem_zalloc(&t->mem, nslots * sizeof *slots);
    if (!entries || !heap || !slots) {
        topk_lists_free(t, entries, heap, slots, room);
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    if (t->n) {
        memcpy(entries, t->entries, t->n * sizeof *entries);
        memcpy(heap, t->heap, t->n * sizeof *heap);
    }
    topk_lists_free(t, t->entries, t->heap, t->slots, was);
    t->entries = entries;
    t->heap = heap;
    t->slots = slots;
    t->nslots = nslots;
    t->room = room;
    for (uint32_t i = 0; i < t->n; i++)
        topk_slot_put(t, i);
    return BLY_OK;
}

bly_status bly_topk_make(const bly_mem *mem, uint32_t k, uint64_t nlines,
                         double decay, bly_topk **out)
{
    bly_topk *t = bly_mem_zalloc(mem, sizeof *t);
    *out = NULL;
    if (!t)
        return bly_fail(BLY_ENOMEM, "out of memory");
    t->mem = *mem;
    t->k = k;
    t->nlines = nlines;
    t->decay = decay;
    bly_process_secret(t->salt);
    t->salt[1] |= 1;
    for (unsigned c = 0; c < TOPK_CHANCES; c++) {
        const double p = ldexp(pow(decay, c), 64);
        t->chance[c] = p < 0x1p64 ? (uint64_t)p : UINT64_MAX;
    }
    bly_status st = bly_block_new(mem, nlines * BLY_LINE, &t->block);
    if (!st)
        st = topk_grow(t);
    if (st) {
        bly_topk_free(t);
        return st;
    }
    *out = t;
    return BLY_OK;
}

bly_status bly_topk_new_sized(const bly_topk_spec *spec, bly_topk **out,
                              size_t size)
{
    bly_topk_spec own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    const double decay = spec->decay != 0 ? spec->decay : TOPK_DECAY;
    if (spec->k < 1 || spec->k > TOPK_MAX_K)
        return bly_fail(BLY_EINVAL,
                        "the length of a list is from 1 to 2^24, not %llu",
                        (unsigned long long)spec->k);
    if (!(decay > 0 && decay <= 1))
        return bly_fail(BLY_EINVAL, "decay is above 0 and at most 1, not %g",
                        decay);
    if (spec->secret && spec->seed)
        return bly_fail(
            BLY_EINVAL,
            "a secret takes the place of the seed: give one of them");
    if (spec->bytes && spec->bytes < BLY_LINE)
        return bly_fail(BLY_EINVAL, "cells take at least %d bytes, not %llu",
                        BLY_LINE, (unsigned long long)spec->bytes);
    uint64_t bytes = spec->bytes;
    if (!bytes)
        bytes = (uint64_t)spec->k * TOPK_BYTES_A_KEY;
    if (!spec->bytes && bytes < TOPK_LEAST_BYTES)
        bytes = TOPK_LEAST_BYTES;

    bly_topk *t;
    const bly_status st =
        bly_topk_make(spec->mem ? spec->mem : &bly_mem_system,
                      (uint32_t)spec->k, bytes / BLY_LINE, decay, &t);
    if (st)
        return st;
    t->origin = bly_origin_of(spec->seed, spec->secret);
    t->origin.keying = spec->keying;
    t->random = bly_mix64(spec->seed + 1);
    *out = t;
    return BLY_OK;
}

/* ---------------------------------------------------------------- the list */

static topk_entry *topk_find(const bly_topk *t, uint64_t h)
{
    const uint32_t entry = t->slots[topk_slot_of(t, h)].entry;
    return entry ? &t->entries[entry - 1] : NULL;
}

/* Free the slot of h, and move up those behind it that probed past it. */
static void topk_slot_clear(bly_topk *t, uint64_t h)
{
    const uint32_t mask = t->nslots - 1;
    uint32_t hole = topk_slot_of(t, h);
    for (uint32_t s = (hole + 1) & mask; t->slots[s].entry;
         s = (s + 1) & mask) {
        const uint32_t home = topk_home(t, t->slots[s].hash);
        if (((s - home) & mask) < ((s - hole) & mask))
            continue;
        t->slots[hole] = t->slots[s];
        hole = s;
    }
    t->slots[hole] = (topk_slot){ 0, 0 };
}

static uint64_t topk_heap_count(const bly_topk *t, uint32_t at)
{
    return t->entries[t->heap[at]].count; /* NOLINT: k > 0, so not NULL */
}

static void topk_heap_put(bly_topk *t, uint32_t at, uint32_t entry)
{
    t->heap[at] = entry;
    t->entries[entry].at = at;
}

/* Let the entry at `at`, whose count has changed, find its place. */
static void topk_settle(bly_topk *t, uint32_t at)
{
    const uint32_t entry = t->heap[at];
    const uint64_t count = t->entries[entry].count;
    while (at > 0 && topk_heap_count(t, (at - 1) / 2) > count) {
        topk_heap_put(t, at, t->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (uint32_t child; (child = 2 * at + 1) < t->n; at = child) {
        if (child + 1 < t->n &&
            topk_heap_count(t, child + 1) < topk_heap_count(t, child))
            child++;
        if (topk_heap_count(t, child) >= count)
            break;
        topk_heap_put(t, at, t->heap[child]);
    }
    topk_heap_put(t, at, entry);
}

/* What a key must exceed to join. */
static uint64_t topk_least(const bly_topk *t)
{
    return t->n < t->k ? 0 : topk_heap_count(t, 0);
}

/* --------------------------------------------------------------- the cells */

static uint64_t *topk_line(const bly_topk *t, uint64_t h)
{
    return (uint64_t *)(void *)t->block.at +
           bly_scale(h, t->nlines) * TOPK_LINE;
}

/* The line takes the top bits of h; the print comes through the mixer. */
static uint64_t topk_print(uint64_t h)
{
    return bly_mix64(h) >> TOPK_COUNT_BITS;
}

static uint64_t topk_cell(uint64_t print, uint64_t count)
{
    return print << TOPK_COUNT_BITS |
           (count < TOPK_COUNT_MAX ? count : TOPK_COUNT_MAX);
}

static uint64_t topk_cell_count(uint64_t cell)
{
    return cell & TOPK_COUNT_MAX;
}

/* The cell with the print of h; else the lightest, and *own is false. An empty
 * one is the lightest there can be. */
static uint64_t *topk_pick(const bly_topk *t, uint64_t h, bool *own)
{
    uint64_t *const line = topk_line(t, h), *lightest = line;
    const uint64_t print = topk_print(h);
    *own = true;
    for (unsigned i = 0; i < TOPK_LINE; i++) {
        if (topk_cell_count(line[i]) && line[i] >> TOPK_COUNT_BITS == print)
            return &line[i];
        if (topk_cell_count(line[i]) < topk_cell_count(*lightest))
            lightest = &line[i];
    }
    *own = false;
    return lightest;
}

static uint64_t topk_draw(uint64_t *random)
{
    return bly_mix64(*random += UINT64_C(0x9e3779b97f4a7c15));
}

/* A cell of this count against this weight of somebody else: what is left of
 * the count, and of the weight, which is above 0 where the count is not. */
static uint64_t topk_decay(const bly_topk *t, uint64_t count, uint64_t *weight,
                           uint64_t *random)
{
    while (count && *weight) {
        const uint64_t chance =
            count < TOPK_CHANCES
                ? t->chance[count]
                : (uint64_t)fmin(ldexp(pow(t->decay, (double)count), 64),
                                 0x1.fffffffffffffp63);
        uint64_t tries = 1; /* until it loses one */
        if (!chance) {
            *weight = 0;
            break;
        }
        if (t->decay < 1 && *weight == 1) {
            tries = topk_draw(random) < chance ? 1 : 2;
        } else if (t->decay < 1) {
            /* One draw for all of them: the first success has a geometric
             * distribution. */
            const double u = (double)(topk_draw(random) >> 11) * 0x1p-53;
            const double p = ldexp((double)chance, -64);
            const double first = floor(log1p(-u) / log1p(-p)) + 1;
            tries = first < 0x1p63 ? (uint64_t)first : UINT64_MAX;
        } else if (*weight > 1) {
            /* Nothing is left to chance: they cancel. */
            const uint64_t both = count < *weight ? count : *weight;
            count -= both - 1;
            *weight -= both - 1;
        }
        if (tries > *weight) {
            *weight = 0;
            break;
        }
        count--;
        /* The unit that empties a cell is the first that moves in. */
        *weight -= count ? tries : tries - 1;
    }
    return count;
}

/* Put a key that left the list back among the crowd. */
static void topk_return(bly_topk *t, const topk_entry *e)
{
    bool own;
    uint64_t *cell = topk_pick(t, e->hash, &own);
    if (topk_cell_count(*cell) <= e->count)
        *cell = topk_cell(topk_print(e->hash), e->count);
}

static unsigned char *topk_key_copy(bly_topk *t, const void *key, size_t len)
{
    unsigned char *copy = t->mem.alloc(t->mem.ctx, len);
    if (copy)
        memcpy(copy, key, len);
    return copy;
}

/* ---------------------------------------------------------- what was saved */

bly_status bly_topk_restore(bly_topk *t, uint64_t hash, uint64_t count,
                            const void *key, size_t len)
{
    const uint32_t at = t->n;
    const bool own =
        t->origin.blind || bly_hash(&t->origin.hasher, key, len) == hash;
    if (at == t->k || !own || !count || count > t->total ||
        (at && topk_heap_count(t, (at - 1) / 2) > count) || topk_find(t, hash))
        return bly_fail(BLY_EFORMAT, "a damaged list of heaviest keys: keys "
                                     "that no stream leaves there");
    const bly_status st = topk_grow(t);
    if (st)
        return st;
    topk_entry e = { .hash = hash, .count = count, .len = len };
    if (len && !(e.key = topk_key_copy(t, key, len)))
        return bly_fail(BLY_ENOMEM, "out of memory");
    t->entries[at] = e;
    t->n++;
    topk_slot_put(t, at);
    topk_heap_put(t, at, at);
    return BLY_OK;
}

/* ------------------------------------------------------------------ adding */

/* Put e on the list, which has room, or in the place of the lightest. */
static void topk_join(bly_topk *t, topk_entry e)
{
    uint32_t entry, at;
    if (t->n < t->k) {
        entry = at = t->n++;
    } else {
        at = 0;
        entry = t->heap[0];
        t->left = t->entries[entry];
        t->has_left = true;
        topk_slot_clear(t, t->left.hash);
        topk_return(t, &t->left);
    }
    t->entries[entry] = e; /* NOLINT: likewise */
    topk_slot_put(t, entry);
    topk_heap_put(t, at, entry);
    topk_settle(t, at);
}

static bly_status topk_add(bly_topk *t, uint64_t h, const void *key, size_t len,
                           uint64_t weight)
{
    topk_key_free(t, &t->left);
    t->has_left = false;
    if (!weight)
        return BLY_OK;
    if (weight > UINT64_MAX - t->total)
        return bly_fail(BLY_ERANGE, "all weights together would pass 2^64 - 1");

    topk_entry *e = topk_find(t, h);
    if (e) {
        t->total += weight;
        e->count += weight;
        topk_settle(t, e->at);
        return BLY_OK;
    }

    bool own;
    uint64_t *const cell = topk_pick(t, h, &own);
    uint64_t random = t->random, left = weight;
    uint64_t count = topk_cell_count(*cell);
    if (own) {
        count += weight;
    } else if (!(count = topk_decay(t, count, &left, &random))) {
        count = left;
        own = true;
    }
    if (own && count > topk_least(t)) {
        /* All that can fail comes before all that changes. */
        topk_entry fresh = { .hash = h, .count = count, .len = len };
        const bly_status st = topk_grow(t);
        if (st)
            return st;
        if (len && !(fresh.key = topk_key_copy(t, key, len)))
            return bly_fail(BLY_ENOMEM, "out of memory");
        *cell = 0;
        topk_join(t, fresh);
    } else {
        *cell = own ? topk_cell(topk_print(h), count)
                    : topk_cell(*cell >> TOPK_COUNT_BITS, count);
    }
    t->random = random;
    t->total += weight;
    return BLY_OK;
}

/* Of a keyed list that was opened without its secret nobody can find a key. */
static bly_status topk_blind(const bly_topk *t)
{
    return t->origin.blind
               ? bly_fail(BLY_ESECRET,
                          "a keyed list: give the key it was made with")
               : BLY_OK;
}

bly_status bly_topk_add(bly_topk *t, const void *key, size_t len,
                        uint64_t weight)
{
    if (!t || (!key && len))
        return bly_fail_null("t or key");
    if (t->origin.blind)
        return topk_blind(t);
    return topk_add(t, bly_hash(&t->origin.hasher, key, len), key, len, weight);
}

/* Keys hashed at a time, and how far ahead their lines are fetched. */
#define TOPK_PIECE 256
#define TOPK_AHEAD 12

bly_status bly_topk_add_keys(bly_topk *t, const bly_bytes *keys,
                             const uint64_t *weights, size_t n, size_t *ndone)
{
    if (!t || (!keys && n))
        return bly_fail_null("t or keys");
    uint64_t h[TOPK_PIECE];
    bly_status st = topk_blind(t);
    size_t done = 0;
    while (!st && done < n) {
        const size_t from = done;
        const size_t np = n - from < TOPK_PIECE ? n - from : TOPK_PIECE;
        bly_hash_keys(&t->origin.hasher, keys + from, np, h);
        for (size_t i = 0; i < np && !st; i++) {
            if (i + TOPK_AHEAD < np) {
                const uint64_t next = h[i + TOPK_AHEAD];
                __builtin_prefetch(topk_line(t, next), 1);
                __builtin_prefetch(&t->slots[bly_scale(next, t->nslots)]);
            }
            st = topk_add(t, h[i], keys[from + i].ptr, keys[from + i].len,
                          weights ? weights[from + i] : 1);
            done += !st;
        }
    }
    if (ndone)
        *ndone = done;
    return st;
}

/* ------------------------------------------------------------------ asking */

static uint64_t topk_count_hash(const bly_topk *t, uint64_t h)
{
    const topk_entry *e = topk_find(t, h);
    bool own;
    if (e)
        return e->count;
    const uint64_t *cell = topk_pick(t, h, &own);
    return own ? topk_cell_count(*cell) : 0;
}

/* The key on the list with these bytes: where nobody can hash them. */
static const topk_entry *topk_find_bytes(const bly_topk *t, const void *key,
                                         size_t len)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const topk_entry *const e = &t->entries[i];
        if (e->len == len && (!len || memcmp(e->key, key, len) == 0))
            return e;
    }
    return NULL;
}

uint64_t bly_topk_count(const bly_topk *t, const void *key, size_t len,
                        bool *listed)
{
    if (t->origin.blind) {
        const topk_entry *const e = topk_find_bytes(t, key, len);
        if (listed)
            *listed = e != NULL;
        return e ? e->count : 0;
    }
    const uint64_t h = bly_hash(&t->origin.hasher, key, len);
    if (listed)
        *listed = topk_find(t, h) != NULL;
    return topk_count_hash(t, h);
}

uint64_t bly_topk_total(const bly_topk *t)
{
    return t->total;
}

size_t bly_topk_listed(const bly_topk *t)
{
    return t->n;
}

void bly_topk_spec_of_sized(const bly_topk *t, bly_topk_spec *out, size_t size)
{
    const bly_topk_spec spec = { .k = t->k,
                                 .bytes = t->nlines * BLY_LINE,
                                 .decay = t->decay,
                                 .seed = t->origin.hasher.seed,
                                 .keying = t->origin.keying };
    BLY_GIVE(&spec, out, size);
}

const bly_hasher *bly_topk_hasher(const bly_topk *t)
{
    return t->origin.blind ? NULL : &t->origin.hasher;
}

/* The empty key has an address too. */
static bly_topk_item topk_item(const topk_entry *e)
{
    return (bly_topk_item){ { e->key ? (const void *)e->key : "", e->len },
                            e->count };
}

bool bly_topk_left(const bly_topk *t, bly_topk_item *out)
{
    if (t->has_left)
        *out = topk_item(&t->left);
    return t->has_left;
}

/* Comes a before b in a list? Heavier first, then by the bytes of the key. */
static bool topk_before(const bly_topk_item *a, const bly_topk_item *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    const size_t len = a->key.len < b->key.len ? a->key.len : b->key.len;
    const int order = len ? memcmp(a->key.ptr, b->key.ptr, len) : 0;
    return order ? order < 0 : a->key.len < b->key.len;
}

/* Sink item `at` of a heap whose first is the last of the list. */
static void topk_sink(bly_topk_item *items, size_t n, size_t at)
{
    const bly_topk_item item = items[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && topk_before(&items[child], &items[child + 1]))
            child++;
        if (!topk_before(&item, &items[child]))
            break;
        items[at] = items[child];
    }
    items[at] = item;
}

/* Keeps the n best seen so far as a heap with the worst of them on top, and
 * sorts them in the end by taking that away again and again. */
size_t bly_topk_list(const bly_topk *t, bly_topk_item *items, size_t n)
{
    if (n > t->n)
        n = t->n;
    for (uint32_t i = 0; n && i < t->n; i++) {
        const topk_entry *e = &t->entries[i];
        const bly_topk_item item = topk_item(e);
        if (i < n) {
            items[i] = item;
            if (i + 1 == n)
                for (size_t at = n / 2; at-- > 0;)
                    topk_sink(items, n, at);
        } else if (topk_before(&item, &items[0])) {
            items[0] = item;
            topk_sink(items, n, 0);
        }
    }
    for (size_t end = n; end > 1; end--) {
        const bly_topk_item worst = items[0];
        items[0] = items[end - 1];
        items[end - 1] = worst;
        topk_sink(items, end - 1, 0);
    }
    return n;
}

/* ----------------------------------------------------------------- merging */

/* One list for the two in `both`: every key of `from` with what `other` knows
 * of it added; those that `skip` lists are done already. By the heap, whose
 * order a file keeps. */
static bly_status topk_gather(bly_topk *both, const bly_topk *from,
                              const bly_topk *other, const bly_topk *skip)
{
    for (uint32_t i = 0; i < from->n; i++) {
        const topk_entry *e = &from->entries[from->heap[i]];
        if (skip && topk_find(skip, e->hash))
            continue;
        topk_entry sum = { .hash = e->hash,
                           .count = e->count + topk_count_hash(other, e->hash),
                           .len = e->len };
        if (sum.count <= topk_least(both)) {
            topk_return(both, &sum);
            continue;
        }
        const bly_status st = topk_grow(both);
        if (st)
            return st;
        if (sum.len && !(sum.key = topk_key_copy(both, e->key, e->len)))
            return bly_fail(BLY_ENOMEM, "out of memory");
        topk_join(both, sum);
        topk_key_free(both, &both->left);
    }
    return BLY_OK;
}

/* Of two cells in one place: the sum where they are of one key; else the
 * heavier, as if the lighter had decayed. */
static uint64_t topk_merge_cell(uint64_t a, uint64_t b)
{
    if (a >> TOPK_COUNT_BITS == b >> TOPK_COUNT_BITS)
        return topk_cell(a >> TOPK_COUNT_BITS,
                         topk_cell_count(a) + topk_cell_count(b));
    return topk_cell_count(a) < topk_cell_count(b) ? b : a;
}

/* Cells of one line go with their prints, not with their places. */
static void topk_merge_line(uint64_t *to, const uint64_t *a, const uint64_t *b)
{
    memcpy(to, a, TOPK_LINE * sizeof *to);
    for (unsigned i = 0; i < TOPK_LINE; i++) {
        uint64_t *place = to;
        if (!topk_cell_count(b[i]))
            continue;
        for (unsigned j = 0; j < TOPK_LINE; j++) {
            if (topk_cell_count(to[j]) &&
                to[j] >> TOPK_COUNT_BITS == b[i] >> TOPK_COUNT_BITS) {
                place = &to[j];
                break;
            }
            if (topk_cell_count(to[j]) < topk_cell_count(*place))
                place = &to[j];
        }
        *place = topk_merge_cell(*place, b[i]);
    }
}

/* Cells of keys that the merged list has are no candidates any more. */
static void topk_forget_listed(bly_topk *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        bool own;
        uint64_t *cell = topk_pick(t, t->entries[i].hash, &own);
        if (own)
            *cell = 0;
    }
}

bly_status bly_topk_merge(bly_topk *dst, const bly_topk *src)
{
    if (!dst || !src)
        return bly_fail_null("dst or src");
    bly_topk *both;
    if (dst == src)
        return bly_fail(BLY_EINVAL, "a list cannot be merged with itself");
    if (dst->k != src->k || dst->nlines != src->nlines ||
        dst->decay != src->decay)
        return bly_fail(
            BLY_EUNFIT,
            "lists of %u keys with %llu bytes for candidates and "
            "of %u with %llu do not go together, or their decays "
            "differ: make both with the same",
            (unsigned)dst->k, (unsigned long long)(dst->nlines * BLY_LINE),
            (unsigned)src->k, (unsigned long long)(src->nlines * BLY_LINE));
    bly_status st =
        bly_origins_fit(&dst->origin, !dst->total, &src->origin, !src->total);
    if (st)
        return st;
    if (src->total > UINT64_MAX - dst->total)
        return bly_fail(BLY_ERANGE, "all weights together would pass 2^64 - 1");
    st = bly_topk_make(&dst->mem, dst->k, dst->nlines, dst->decay, &both);
    if (st)
        return st;
    const uint64_t *const a = (const uint64_t *)(const void *)dst->block.at;
    const uint64_t *const b = (const uint64_t *)(const void *)src->block.at;
    for (uint64_t i = 0; i < dst->nlines * TOPK_LINE; i += TOPK_LINE)
        topk_merge_line((uint64_t *)(void *)both->block.at + i, a + i, b + i);
    st = topk_gather(both, dst, src, NULL);
    if (!st)
        st = topk_gather(both, src, dst, dst);
    if (st) {
        bly_topk_free(both);
        return st;
    }
    topk_forget_listed(both);
    both->origin = dst->origin;
    both->origin.keying = bly_origins_keying(&dst->origin, &src->origin);
    both->random = dst->random;
    both->total = dst->total + src->total;
    both->has_left = false;
    const bly_topk was = *dst;
    *dst = *both;
    *both = was;
    bly_topk_free(both);
    return BLY_OK;
}
