/*
 * agg.c - filters and sketches of all rows of a group
 *
 * Most groups are small, so the hashes of the first rows are held in a list
 * that grows with them; a builder is made when there are more. It then takes
 * them by the list, and nothing is held here any more, unless
 *
 * - the group is a part of one (`partial`): its hashes are for the group of
 *   all parts, to which sql_agg_take() gives them;
 * - the engine's rows come in any order (`unordered`) and the bytes of such a
 *   filter would depend on it: then the hashes are sorted in the end. Nearly
 *   all kinds that threads share and that unite, and those that are built at
 *   once, do not depend on it; those that forget would forget by hash.
 */
#include "adapters/sql/sql_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *keys_two_types(bly_key_type a, bly_key_type b)
{
    return sql_wrong("keys of two types, %s and %s; CAST all to one",
                     bly_key_type_name(a), bly_key_type_name(b));
}

/* -------------------------------------------------------------------- list */

#define LIST_FIRST 16
#define LIST_FLUSH 4096 /* 32 KiB, which stay in the cache */

static const char *list_room(struct sql_agg *a, size_t more)
{
    const bly_mem *const mem = a->spec.spec.mem;
    if (more <= a->room - a->n)
        return NULL;
    if (more > SIZE_MAX / 32 || a->n > SIZE_MAX / 32)
        return sql_no_memory();
    size_t room = a->room ? a->room + a->room / 2 : LIST_FIRST;
    if (room < a->n + more)
        room = a->n + more;
    uint64_t *const list = sql_alloc(mem, room * sizeof *list);
    if (!list)
        return sql_no_memory();
    if (a->n)
        memcpy(list, a->list, a->n * sizeof *list);
    sql_release(mem, a->list, a->room * sizeof *list);
    a->list = list;
    a->room = room;
    return NULL;
}

/* ----------------------------------------------------------------- sorting */

#define SORT_FEW 200        /* of which each finds its place faster */
#define STOP_AT (1 << 16)   /* keys, some milliseconds */
#define SORT_FIRST_SHIFT 56 /* the highest byte */
#define SORT_DIGITS (1 << 8)

static void sort_few(uint64_t *h, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint64_t x = h[i];
        size_t at = i;
        for (; at && h[at - 1] > x; at--)
            h[at] = h[at - 1];
        h[at] = x;
    }
}

/* Each hash goes to its part by a byte, and each part is sorted by the next
 * byte: in place, and in eight passes at most, whatever the keys are. It takes
 * a quarter of qsort()'s time, which takes memory of its own besides. False: it
 * was to stop. */
static bool sort_by_byte(uint64_t *h, size_t n, unsigned shift,
                         bool (*stop)(void))
{
    size_t at[SORT_DIGITS] = { 0 }, end[SORT_DIGITS];
    if (n <= SORT_FEW) {
        sort_few(h, n);
        return true;
    }
    for (size_t i = 0; i < n; i++)
        at[h[i] >> shift & (SORT_DIGITS - 1)]++;
    for (size_t d = 0, from = 0; d < SORT_DIGITS; d++) {
        end[d] = from + at[d];
        at[d] = from;
        from = end[d];
    }
    for (size_t d = 0; d < SORT_DIGITS; d++)
        while (at[d] < end[d]) {
            const uint64_t x = h[at[d]];
            const size_t to = x >> shift & (SORT_DIGITS - 1);
            h[at[d]] = h[at[to]];
            h[at[to]++] = x;
        }
    for (size_t d = 0, from = 0; shift && d < SORT_DIGITS; from = end[d++])
        if (!sort_by_byte(h + from, end[d] - from, shift - 8, stop) ||
            (n >= STOP_AT && stop && stop()))
            return false;
    return true;
}

/* ------------------------------------------------------------------- filter */

/* The first key: what is wrong with the spec should not wait for the last. */
static const char *agg_begin(struct sql_agg *a, bly_key_type type)
{
    bly_spec *const spec = &a->spec.spec;
    bly_kind_info kind;
    bly_prediction p;
    spec->keying = (bly_keying){ type, 0 };
    bly_spec trial = *spec;
    if (!trial.items && !(trial.bits && trial.fpr > 0))
        trial.items = 1;
    bly_kind_named(spec->kind, &kind);
    /* A filter that is built at once needs them all in memory. */
    spec->spill = kind.can & BLY_CAN(BUILD) ? NULL : a->spill;
    bly_status st = bly_plan(&trial, &p);
    if (st && (kind.traits & BLY_SELF_SIZED))
        st = bly_plan(spec, &p);
    if (!st)
        st = bly_hasher_for(spec, &a->hasher);
    if (st)
        return sql_told(st);
    if (a->most && p.bytes > a->most)
        return sql_too_large(p.bytes);
    const unsigned bits = BLY_CAN(SHARE) | BLY_CAN(MERGE);
    const bool ordered =
        (kind.traits & BLY_ORDERED) ||
        (!(kind.can & BLY_CAN(BUILD)) && (kind.can & bits) != bits);
    a->sorted = a->unordered && ordered && !(kind.can & BLY_CAN(TICK));
    a->held = a->partial || a->sorted;
    a->begun = true;
    return NULL;
}

static const char *agg_give(struct sql_agg *a, const uint64_t *hashes, size_t n)
{
    bly_status st = BLY_OK;
    if (!a->builder)
        st = bly_builder_new(&a->spec.spec, &a->builder);
    if (!st && n)
        st = bly_builder_add(a->builder, hashes, NULL, n);
    return sql_told(st);
}

static const char *agg_flush(struct sql_agg *a)
{
    const size_t n = a->n;
    a->n = 0;
    return agg_give(a, a->list, n);
}

static const char *agg_is(struct sql_agg *a, bly_key_type type)
{
    if (!a->begun)
        return agg_begin(a, type);
    const bly_key_type is = a->spec.spec.keying.type;
    return is == type ? NULL : keys_two_types(is, type);
}

const char *sql_agg_add_many(struct sql_agg *a, bly_key_type type,
                             const void *keys, size_t n)
{
    const char *bad = agg_is(a, type);
    if (!bad && n > a->room - a->n)
        bad = list_room(a, n);
    if (bad)
        return bad;
    if (bly_hash_as(&a->hasher, a->spec.spec.keying, type, keys, n,
                    &a->list[a->n], NULL))
        return sql_told(BLY_EINVAL);
    a->n += n;
    return a->n < LIST_FLUSH || a->held ? NULL : agg_flush(a);
}

const char *sql_agg_add(struct sql_agg *a, const struct sql_key *key)
{
    return sql_agg_add_many(a, key->type, sql_key_at(key), 1);
}

const char *sql_agg_take(struct sql_agg *a, bly_key_type type,
                         const uint64_t *hashes, size_t n)
{
    const char *bad = agg_is(a, type);
    if (bad)
        return bad;
    if (!a->held && n >= LIST_FLUSH)
        return agg_give(a, hashes, n);
    bad = list_room(a, n);
    if (bad)
        return bad;
    if (n)
        memcpy(a->list + a->n, hashes, n * sizeof *hashes);
    a->n += n;
    return a->n < LIST_FLUSH || a->held ? NULL : agg_flush(a);
}

static const char *agg_stopped(void)
{
    return sql_wrong("stopped");
}

/* What is held, piece by piece. */
static const char *agg_give_list(struct sql_agg *a)
{
    const char *bad = agg_give(a, NULL, 0); /* of no keys, too */
    for (size_t i = 0; i < a->n && !bad; i += STOP_AT) {
        bad = agg_give(a, a->list + i, a->n - i < STOP_AT ? a->n - i : STOP_AT);
        if (!bad && a->stop && a->stop())
            bad = agg_stopped();
    }
    return bad;
}

const char *sql_agg_end(struct sql_agg *a, bly_filter **out)
{
    *out = NULL;
    if (!a->begun)
        return NULL;
    const char *bad = NULL;
    if (a->sorted && !sort_by_byte(a->list, a->n, SORT_FIRST_SHIFT, a->stop))
        bad = agg_stopped();
    if (!bad)
        bad = agg_give_list(a);
    if (!bad)
        bad = sql_told(bly_builder_finish(a->builder, 1, out));
    if (*out)
        bly_set_compact(*out, a->spec.compact);
    bly_builder_free(a->builder);
    a->builder = NULL;
    return bad;
}

void sql_agg_free(struct sql_agg *a)
{
    bly_builder_free(a->builder);
    sql_release(a->spec.spec.mem, a->list, a->room * sizeof *a->list);
    a->builder = NULL;
    a->list = NULL;
    a->n = a->room = 0;
}

/* ---------------------------------------------------------------- sketches */

static const char *keys_add(struct sql_keys *k, const struct sql_key *key,
                            bool *full)
{
    if (key->type != k->keying.type)
        return keys_two_types(k->keying.type, key->type);
    if (bly_hash_as(k->hasher, k->keying, key->type, sql_key_at(key), 1,
                    &k->hashes[k->n], NULL))
        return sql_told(BLY_EINVAL);
    *full = ++k->n == SQL_BATCH;
    return NULL;
}

const char *sql_hll_end(struct sql_hll *a)
{
    const size_t n = a->keys.n;
    a->keys.n = 0;
    return n ? sql_told(bly_hll_add(a->hll, a->keys.hashes, n)) : NULL;
}

const char *sql_hll_add(struct sql_hll *a, const struct sql_key *key)
{
    bool full = false;
    if (!a->hll) {
        if (bly_hll_new(0, a->mem, &a->hll))
            return sql_no_memory();
        a->keys.keying = (bly_keying){ key->type, 0 };
        a->keys.hasher = bly_hll_hasher(a->hll);
        bly_hll_set_keying(a->hll, a->keys.keying);
    }
    const char *const bad = keys_add(&a->keys, key, &full);
    return bad ? bad : full ? sql_hll_end(a) : NULL;
}

const char *sql_minhash_end(struct sql_minhash *a)
{
    const size_t n = a->keys.n;
    a->keys.n = 0;
    return n ? sql_told(bly_sketch_add(a->sketch, a->keys.hashes, n)) : NULL;
}

const char *sql_minhash_add(struct sql_minhash *a, const struct sql_key *key)
{
    static const bly_hasher plain = { .id = BLY_HASH_XXH3 };
    bool full = false;
    if (!a->sketch) {
        const bly_sketch_spec spec = { .k = 128, .mem = a->mem };
        if (bly_sketch_new(&spec, &a->sketch))
            return sql_no_memory();
        a->keys.keying = (bly_keying){ key->type, 0 };
        a->keys.hasher = &plain;
    }
    const char *const bad = keys_add(&a->keys, key, &full);
    return bad ? bad : full ? sql_minhash_end(a) : NULL;
}

const char *sql_topk_add(bly_topk **t, int64_t k, const bly_mem *mem,
                         const struct sql_key *key)
{
    char digits[24];
    bly_bytes text = key->bytes;
    if (key->type == BLY_KEYS_BYTES)
        return sql_wrong("a list of blobs cannot be read; CAST them to TEXT");
    if (k < 1)
        return sql_wrong("a list of fewer than one key");
    if (!*t) {
        const bly_topk_spec spec = { .k = (size_t)k, .mem = mem };
        const bly_status st = bly_topk_new(&spec, t);
        if (st)
            return sql_told(st);
    }
    if (key->type != BLY_KEYS_TEXT) {
        const int len =
            key->type == BLY_KEYS_INT64
                ? snprintf(digits, sizeof digits, "%" PRId64, key->integer)
                : snprintf(digits, sizeof digits, "%" PRIu64,
                           (uint64_t)key->integer);
        text = (bly_bytes){ digits, (size_t)len };
    }
    return sql_told(bly_topk_add(*t, text.ptr, text.len, 1));
}
