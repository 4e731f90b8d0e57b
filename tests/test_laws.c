/*
 * test_laws.c - what every kind promises
 *
 * Each law runs on every row of the table of kinds (laws.h). Seeds are fixed:
 * a failure repeats. Where chance has a say, a law states the band and what
 * share of honest filters would fall outside; nothing depends on time, or on
 * the processor, so that BLY_CPU=portable gives the same run.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "host/host.h"

#define NKEYS 20000

static bool bitmap_get(const uint64_t *bitmap, size_t i)
{
    return bitmap[i / 64] >> (i % 64) & 1;
}

/* Bits from n to the end of the last word are zero. */
static void assert_tail_clear(const uint64_t *bitmap, size_t n)
{
    if (n % 64)
        assert_true(bitmap[n / 64] >> (n % 64) == 0);
}

/* A bitmap for n keys that ends at a wall and starts as nonsense. */
static uint64_t *bitmap_new(size_t n)
{
    const size_t nbytes = BLY_BITMAP_WORDS(n) * sizeof(uint64_t);
    uint64_t *bitmap = guarded_new(nbytes);
    memset(bitmap, 0xa5, nbytes);
    return bitmap;
}

static void bitmap_free(uint64_t *bitmap, size_t n)
{
    guarded_free(bitmap, BLY_BITMAP_WORDS(n) * sizeof *bitmap);
}

/* n integer keys as bytes, so that the forms for bytes can be asked too. */
typedef struct key_list {
    uint64_t *ints, *le, *hashes;
    bly_bytes *keys;
    uint32_t *offsets; /* into le */
    uint64_t *wide_offsets;
    size_t n;
} key_list;

static key_list key_list_new(const bly_spec *spec, uint64_t first, size_t n)
{
    key_list l = { guarded_new(n * 8),
                   calloc(n + 1, 8),
                   guarded_new(n * 8),
                   guarded_new(n * sizeof(bly_bytes)),
                   guarded_new(n * 4 + 4),
                   guarded_new(n * 8 + 8),
                   n };
    assert_non_null(l.le);
    uint64_t *h = hashes_for(spec, first, n);
    for (size_t i = 0; i < n; i++) {
        l.ints[i] = first + i;
        l.le[i] = bly_le64(first + i);
        l.hashes[i] = h[i];
        l.keys[i] = (bly_bytes){ &l.le[i], 8 };
    }
    for (size_t i = 0; i <= n; i++) {
        l.offsets[i] = (uint32_t)(8 * i);
        l.wide_offsets[i] = 8 * i;
    }
    free(h);
    return l;
}

/* Its keys from one on. */
static bly_column column_of(const key_list *l, size_t from, bool wide)
{
    return wide ? (bly_column){ .bytes = l->le,
                                .wide_offsets = l->wide_offsets + from }
                : (bly_column){ .bytes = l->le, .offsets = l->offsets + from };
}

static void key_list_free(key_list *l)
{
    guarded_free(l->ints, l->n * 8);
    guarded_free(l->hashes, l->n * 8);
    guarded_free(l->keys, l->n * sizeof(bly_bytes));
    guarded_free(l->offsets, l->n * 4 + 4);
    guarded_free(l->wide_offsets, l->n * 8 + 8);
    free(l->le);
}

/* ------------------------------------------------------------- the table */

LAW(describes_itself)
{
    bly_kind_info other;
    assert_true(kind->name[0] && kind->summary[0]);
    assert_true(kind->id != 0);
    assert_null(strpbrk(kind->name, " ,=/\n"));
    assert_null(strchr(kind->summary, '\n'));
    assert_true(kind->can &
                (BLY_CAN(ADD) | BLY_CAN(BUILD) | BLY_CAN(INCREASE)));
    assert_true(kind->can & (BLY_CAN(HAS) | BLY_CAN(COUNT) | BLY_CAN(GET) |
                             BLY_CAN(COMPARE)));
    assert_false((kind->can & BLY_CAN(SHARE)) && !(kind->can & BLY_CAN(ADD)));
    assert_true(bly_kind_named(kind->name, &other));
    assert_int_equal(other.id, kind->id);
    size_t same = 0;
    for (size_t i = 0; bly_kind_at(i, &other); i++)
        same += other.id == kind->id || strcmp(other.name, kind->name) == 0;
    assert_int_equal(same, 1);
    for (unsigned bit = 0; bit < BLY_ABILITY_COUNT_; bit++)
        assert_true(bly_can_name(bit)[0] && bly_can_help(bit)[0]);
    assert_null(bly_can_name(BLY_ABILITY_COUNT_));
    assert_null(bly_can_help(BLY_ABILITY_COUNT_));
}

LAW(describes_its_parameters)
{
    assert_true(kind->nparams <= BLY_MAX_PARAMS);
    for (size_t i = 0; i < kind->nparams; i++) {
        const bly_param *p = bly_param_at(kind->params, i);
        assert_true(p->name[0] && p->help[0]);
        assert_null(strpbrk(p->name, " =,\n"));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(bly_param_at(kind->params, j)->name,
                                    p->name);
        assert_true((p->type == BLY_CHOICE) == (p->choices != NULL));
        assert_true(p->min <= p->max);
        if (p->settable && !p->automatic)
            assert_between(p->def, p->min, p->max);
        if (p->type == BLY_CHOICE) {
            size_t n = 0;
            while (p->choices[n])
                n++;
            assert_true(n >= 2 && p->min == 0 && p->max == (double)(n - 1));
        }
    }
}

/* Each ability that a kind lacks is refused by name, and changes nothing. */
LAW(says_what_it_cannot_do)
{
    bly_filter *f = law_filled(row, 0, 1000), *g = law_filled(row, 0, 1000);
    bly_filter *none = f;
    byte_array before = written(f);
    const uint64_t hash = 12345, one = 1;
    uint64_t value, present;
    bly_likeness like;
    bly_spec spec = { .items = 500, .fpr = 0.01 };
#define REFUSES(ABILITY, call)                                \
    do {                                                      \
        if (!(kind->can & BLY_CAN(ABILITY))) {                \
            assert_status(call, BLY_ENOTSUP);                 \
            assert_non_null(strstr(bly_error(), kind->name)); \
        }                                                     \
    } while (0)
    REFUSES(ADD, bly_add_hash(f, hash));
    REFUSES(ADD, bly_add_int(f, hash));
    REFUSES(ADD, bly_add(f, "key", 3));
    REFUSES(REMOVE, bly_remove_hashes(f, &hash, 1, NULL));
    REFUSES(REMOVE, bly_remove(f, "key", 3));
    REFUSES(INCREASE, bly_increase_hashes(f, &hash, &one, 1, NULL));
    REFUSES(COUNT, bly_count_hashes(f, &hash, 1, &value));
    REFUSES(GET, bly_get_hashes(f, &hash, 1, &value, &present));
    REFUSES(SET, bly_set_hash(f, hash, 1));
    REFUSES(MERGE, bly_merge(f, g));
    REFUSES(INTERSECT, bly_intersect(f, g));
    REFUSES(COMPARE, bly_compare(f, g, &like));
    REFUSES(TICK, bly_tick(f, 1));
    bool any = false;
    REFUSES(RANGE, bly_has_range(f, 1, 2, &any));
    if (!(kind->can & BLY_CAN(RANGE)))
        assert_true(any); /* and until then, "maybe" */
    REFUSES(RESIZE, bly_convert(f, &spec, &none));
    if (!(kind->can & BLY_CAN(RESIZE)))
        assert_null(none);
    none = f;
    REFUSES(FOLD, bly_fold(f, &none));
    if (!(kind->can & BLY_CAN(FOLD)))
        assert_null(none);
    if (!(kind->can & BLY_CAN(SHARE))) {
        bly_spec shared = law_spec(row, 1000);
        shared.shared = true;
        none = f;
        REFUSES(SHARE, bly_new(&shared, &none));
        assert_null(none);
    }
#undef REFUSES
    /* Asking cannot fail: who does not know says "maybe". */
    if (!(kind->can & BLY_CAN(HAS))) {
        uint64_t *maybe = bitmap_new(70), hashes[70] = { 0 };
        bly_has_hashes(f, hashes, 70, maybe);
        assert_true(maybe[0] == UINT64_MAX && maybe[1] == 63);
        assert_true(bly_has(f, "key", 3) && bly_has_hash(f, 7) &&
                    bly_has_int(f, 7));
        bitmap_free(maybe, 70);
    }
    assert_same_bytes(f, &before);
    free(before.at);
    bly_free(f);
    bly_free(g);
}

/* ------------------------------------------------------- asking and adding */

/* What was added is there: seven ways to add, nine to ask, in batches of every
 * size to 130, which is twice past the 64 of a bitmap's word. */
typedef enum add_form {
    BY_HASHES,
    BY_KEYS,
    BY_COLUMN,
    BY_WIDE_COLUMN,
    BY_INTS,
    BY_HASH,
    BY_KEY,
    ADD_FORMS
} add_form;

static void add_by(bly_filter *f, const key_list *l, size_t from, size_t n,
                   add_form form)
{
    size_t ndone = n + 1;
    switch (form) {
    case BY_HASHES:
        assert_ok(bly_add_hashes(f, l->hashes + from, n, NULL, &ndone));
        assert_int_equal(ndone, n);
        break;
    case BY_KEYS:
        assert_ok(bly_add_keys(f, l->keys + from, n, NULL, &ndone));
        assert_int_equal(ndone, n);
        break;
    case BY_COLUMN:
    case BY_WIDE_COLUMN: {
        const bly_column column = column_of(l, from, form == BY_WIDE_COLUMN);
        assert_ok(bly_add_column(f, &column, n, NULL, &ndone));
        assert_int_equal(ndone, n);
        break;
    }
    case BY_INTS:
        assert_ok(bly_add_ints(f, l->ints + from, n, NULL, &ndone));
        assert_int_equal(ndone, n);
        break;
    case BY_HASH:
        for (size_t i = from; i < from + n; i++)
            assert_ok(bly_add_hash(f, l->hashes[i]));
        break;
    default:
        for (size_t i = from; i < from + n; i++)
            assert_ok(bly_add(f, &l->le[i], 8));
    }
}

static void assert_all_there(const bly_filter *f, const key_list *l,
                             size_t from, size_t n)
{
    enum { FORMS = 5 };
    const bly_column column = column_of(l, from, false);
    const bly_column wide = column_of(l, from, true);
    uint64_t *maybe[FORMS];
    for (int i = 0; i < FORMS; i++)
        maybe[i] = bitmap_new(n);
    bly_has_hashes(f, l->hashes + from, n, maybe[0]);
    bly_has_keys(f, l->keys + from, n, maybe[1]);
    bly_has_ints(f, l->ints + from, n, maybe[2]);
    bly_has_column(f, &column, n, maybe[3]);
    bly_has_column(f, &wide, n, maybe[4]);
    for (int i = 0; i < FORMS; i++) {
        for (size_t j = 0; j < n; j++)
            assert_true(bitmap_get(maybe[i], j));
        assert_tail_clear(maybe[i], n);
        bitmap_free(maybe[i], n);
    }
    for (size_t j = from; j < from + n; j++) {
        assert_true(bly_has_hash(f, l->hashes[j]));
        assert_true(bly_has(f, &l->le[j], 8));
        assert_true(bly_has_int(f, l->ints[j]));
    }
}

LAW(never_forgets)
{
    needs_certain_no(kind);
    enum { LARGEST = 130, TOTAL = LARGEST * (LARGEST + 1) / 2 };
    const bly_spec spec = law_spec(row, TOTAL);
    key_list l = key_list_new(&spec, 0, TOTAL);
    for (add_form form = 0; form < ADD_FORMS; form++) {
        bly_filter *f;
        const bool adds = kind->can & BLY_CAN(ADD);
        if (adds)
            assert_ok(bly_new(&spec, &f));
        else
            f = filled_from(&spec, 0, TOTAL);
        for (size_t n = 0, at = 0; n <= LARGEST; at += n, n++) {
            if (adds)
                add_by(f, &l, at, n, form);
            assert_all_there(f, &l, at, n);
        }
        assert_all_there(f, &l, 0, TOTAL);
        bly_free(f);
        if (!adds)
            break;
    }
    key_list_free(&l);
}

/* Kinds with values give every key its own, in batches and one by one. */
LAW(gives_the_values_it_took)
{
    needs(kind, BLY_CAN(BUILD) | BLY_CAN(GET));
    const size_t n = scaled(20000);
    const bly_spec spec = law_spec(row, n);
    bly_filter *f = law_filled(row, 0, n);
    uint64_t *h = hashes_for(&spec, 0, n);
    uint64_t *values = malloc(n * sizeof *values), *present = bitmap_new(n);
    assert_non_null(values);
    assert_ok(bly_get_hashes(f, h, n, values, present));
    for (size_t i = 0; i < n; i++) {
        uint64_t value, there;
        assert_true(present[i / 64] >> i % 64 & 1);
        assert_int_equal(values[i], value_of(i));
        assert_ok(bly_get_hashes(f, &h[i], 1, &value, &there));
        assert_true(there == 1 && value == values[i]);
    }
    bitmap_free(present, n);
    free(values);
    free(h);
    bly_free(f);
}

/* Keys of bytes: every length, NUL bytes inside, the empty one. */
LAW(takes_any_bytes)
{
    needs(kind, BLY_CAN(ADD));
    needs_certain_no(kind);
    const bly_spec spec = law_spec(row, 2000);
    unsigned char key[1000] = { 0 };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    for (size_t len = 0; len <= sizeof key; len++)
        assert_ok(bly_add(f, key, len));
    assert_ok(bly_add(f, "a\0b", 3));
    for (size_t len = 0; len <= sizeof key; len++)
        assert_true(bly_has(f, key, len));
    assert_true(bly_has(f, "a\0b", 3));
    assert_true(bly_has(f, NULL, 0));
    const bly_bytes none = { NULL, 0 };
    uint64_t maybe = 0;
    bly_has_keys(f, &none, 1, &maybe);
    assert_int_equal(maybe, 1);
    bly_free(f);
}

/* Past its capacity a filter takes more, or says that it is full; what it took
 * it keeps. */
LAW(keeps_what_it_took_past_capacity)
{
    needs(kind, BLY_CAN(ADD));
    needs_certain_no(kind);
    const bly_spec spec = law_spec(row, 1000);
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    uint64_t *h = hashes_for(&spec, 0, 5000);
    size_t ndone;
    const bly_status st = bly_add_hashes(f, h, 5000, NULL, &ndone);
    if (st)
        assert_int_equal(st, BLY_EFULL);
    else
        assert_int_equal(ndone, 5000);
    assert_true(ndone >= 1000);
    /* A kind that forgets by number may drop the oldest past its capacity. */
    if (!(kind->can & BLY_CAN(TICK)))
        assert_int_equal(hits(f, 0, ndone), ndone);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_int_equal(stats.capacity, 1000);
    free(h);
    bly_free(f);
}

/* Given the filter, absent keys are coin flips, so the hits are binomial, and
 * the rate of the one filter made varies by some 2/sqrt(n) of itself: six
 * sigma of both is one bad run in 10^9. test_rates.c looks more closely. */
LAW(keeps_the_promised_rate)
{
    needs(kind, BLY_CAN(HAS));
    bly_filter *f = law_filled(row, 0, NKEYS);
    bly_stats stats;
    bly_peek(f, &stats);
    /* Rounding k may cost half a percent of the rate; the plan says so. */
    assert_between(stats.fpr_at_capacity, 0, LAW_FPR * 1.01);
    const double p = LAW_FPR, q = (double)scaled(1000000);
    const double sd = sqrt(p * (1 - p) / q + 4 * p * p / NKEYS);
    assert_between((double)hits(f, ABSENT, (size_t)q) / q, 0, p + 6 * sd);
    bly_free(f);
}

/* Nothing is in an empty filter. */
LAW(empty_says_no)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    const bly_spec spec = law_spec(row, 1000);
    bly_filter *f;
    bly_stats stats;
    assert_ok(bly_new(&spec, &f));
    assert_int_equal(hits(f, 0, 10000), 0);
    bly_stat(f, &stats);
    assert_int_equal(stats.items_added, 0);
    /* Of a kind that clears bits, a key that clears all that it sets is taken
     * for one that was added. */
    if (kind->traits & BLY_LIKELY_NO)
        assert_between(stats.fpr_now, 0, 1e-9);
    else
        assert_near(stats.fpr_now, 0, 0);
    assert_false(signbit(stats.fpr_now));
    assert_true(isnan(stats.items_estimate) || stats.items_estimate == 0);
    bly_free(f);
}

/* Small batches, announced one ahead, are keys one by one: they leave the same
 * filter and call the same keys fresh. More may be announced than there is
 * room for, or than follow. */
LAW(announced_batches_are_single_keys)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    enum { LARGEST = 80, TOTAL = LARGEST * (LARGEST + 1) / 2 };
    const bly_spec spec = law_spec(row, TOTAL);
    key_list l = key_list_new(&spec, 0, TOTAL);
    bly_filter *f, *single;
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_new(&spec, &single));
    for (size_t n = 0, at = 0; n <= LARGEST; at += n, n++) {
        uint64_t *const fresh = bitmap_new(n), *const maybe = bitmap_new(n);
        bly_prefetch_hashes(f, l.hashes + at, TOTAL - at);
        assert_ok(bly_add_hashes(f, l.hashes + at, n, fresh, NULL));
        bly_prefetch_hashes(f, l.hashes + at, n);
        bly_has_hashes(f, l.hashes + at, n, maybe);
        for (size_t j = 0; j < n; j++) {
            uint64_t one;
            assert_ok(bly_add_hashes(single, &l.hashes[at + j], 1, &one, NULL));
            assert_int_equal(one, bitmap_get(fresh, j));
        }
        for (size_t j = 0; j < n; j++)
            assert_int_equal(bly_has_hash(single, l.hashes[at + j]),
                             bitmap_get(maybe, j));
        assert_tail_clear(fresh, n);
        bitmap_free(fresh, n);
        bitmap_free(maybe, n);
    }
    assert_true(bly_equal(f, single));
    bly_free(f);
    bly_free(single);
    key_list_free(&l);
}

/* In a batch a key is answered as alone, in all three forms, and bits past n
 * are zero. The second filter is larger than a cache that prefetching spares,
 * and the last batch larger than the pieces in which keys are hashed. */
LAW(batch_equals_single)
{
    needs(kind, BLY_CAN(HAS));
    static const size_t batches[] = { 700, 1024, 5000 };
    const size_t sizes[] = { 1000, scaled(320000) };
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        const bly_spec spec = law_spec(row, sizes[s]);
        bly_filter *f = filled_from(&spec, 0, sizes[s]);
        for (size_t i = 0; i < 131 + COUNT_OF(batches); i++) {
            const size_t n = i < 131 ? i : batches[i - 131];
            /* Half of them are in it. */
            key_list l = key_list_new(&spec, sizes[s] - n / 2, n);
            uint64_t *a = bitmap_new(n), *b = bitmap_new(n), *c = bitmap_new(n);
            bly_has_hashes(f, l.hashes, n, a);
            bly_has_keys(f, l.keys, n, b);
            bly_has_ints(f, l.ints, n, c);
            for (size_t j = 0; j < n; j++) {
                const bool one = bly_has_hash(f, l.hashes[j]);
                assert_true(bly_has(f, &l.le[j], 8) == one);
                assert_true(bly_has_int(f, l.ints[j]) == one);
                assert_true(bitmap_get(a, j) == one);
                assert_true(bitmap_get(b, j) == one);
                assert_true(bitmap_get(c, j) == one);
            }
            assert_tail_clear(a, n);
            assert_tail_clear(b, n);
            assert_tail_clear(c, n);
            bitmap_free(a, n);
            bitmap_free(b, n);
            bitmap_free(c, n);
            key_list_free(&l);
        }
        bly_free(f);
    }
}

/* A range with a key in it is never "no", one of a single key is answered as
 * that key, and a longer one is not "no" where a shorter one inside is not;
 * alone and in batches of every size. */
LAW(ranges_hold_their_keys)
{
    needs(kind, BLY_CAN(RANGE) | BLY_CAN(HAS));
    enum { N = 1000, MOST = 700 };
    const bly_spec spec = law_spec(row, N);
    uint64_t random = 3, a[MOST], b[MOST], h[MOST];
    bly_filter *f = filled_from(&spec, 0, N);
    for (size_t n = 0; n <= MOST; n += n < 130 ? 1 : 95) {
        uint64_t *wide = bitmap_new(n), *narrow = bitmap_new(n),
                 *single = bitmap_new(n);
        for (size_t i = 0; i < n; i++) {
            /* Around the keys, and far from them. */
            a[i] = test_random(&random) >> test_random(&random) % 64;
            b[i] = a[i] + (test_random(&random) >> 20 >> i % 40);
            b[i] = b[i] < a[i] ? UINT64_MAX : b[i];
        }
        bly_hash_ints(bly_hasher_of(f), a, n, h);
        assert_ok(bly_has_ranges(f, a, b, n, wide));
        assert_ok(bly_has_ranges(f, a, a, n, narrow));
        bly_has_hashes(f, h, n, single);
        for (size_t i = 0; i < n; i++) {
            bool any;
            assert_ok(bly_has_range(f, a[i], b[i], &any));
            assert_true(bitmap_get(wide, i) == any);
            assert_true(bitmap_get(narrow, i) == bitmap_get(single, i));
            assert_true(any || !bitmap_get(narrow, i));
            assert_true(any || a[i] >= N);
        }
        assert_tail_clear(wide, n);
        bitmap_free(wide, n);
        bitmap_free(narrow, n);
        bitmap_free(single, n);
    }
    a[0] = 2;
    b[0] = 1;
    assert_status(bly_has_ranges(f, a, b, 1, h), BLY_EINVAL);
    assert_int_equal(h[0], 1);
    bly_free(f);
}

/* Adding a batch is adding one after another: the same filter comes out, and
 * fresh says of each key whether it was "no" just before its turn. Keys repeat
 * within a batch and across batches. */
LAW(fresh_is_what_was_absent)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    enum { TOTAL = 12000 };
    const bly_spec spec = law_spec(row, TOTAL);
    uint64_t *h = hashes_for(&spec, 0, TOTAL), random = 1;
    bly_filter *batch, *single;
    assert_ok(bly_new(&spec, &batch));
    assert_ok(bly_new(&spec, &single));
    for (size_t n = 0; n <= 700; n += n < 130 ? 1 : 190) {
        uint64_t *hashes = guarded_new(n * sizeof *hashes);
        uint64_t *fresh = bitmap_new(n);
        size_t ndone = n + 1;
        for (size_t i = 0; i < n; i++) {
            const uint64_t x = test_random(&random);
            /* One in four a repetition of something near. */
            hashes[i] = i && x % 4 == 0 ? hashes[x / 4 % i] : h[x / 4 % TOTAL];
        }
        /* A kind that can be full may stop; what it took must agree. */
        const bly_status st = bly_add_hashes(batch, hashes, n, fresh, &ndone);
        assert_true(st == BLY_OK || st == BLY_EFULL);
        assert_true((st == BLY_OK) == (ndone == n));
        if (st)
            assert_status(bly_add_hash(batch, hashes[ndone]), BLY_EFULL);
        for (size_t i = 0; i < ndone; i++) {
            const bool absent = !bly_has_hash(single, hashes[i]);
            assert_ok(bly_add_hash(single, hashes[i]));
            assert_true(bitmap_get(fresh, i) == absent);
        }
        assert_tail_clear(fresh, n);
        bitmap_free(fresh, n);
        guarded_free(hashes, n * sizeof *hashes);
    }
    assert_true(bly_equal(batch, single));
    bly_stats a, b;
    bly_peek(batch, &a);
    bly_peek(single, &b);
    assert_int_equal(a.items_added, b.items_added);
    bly_free(batch);
    bly_free(single);
    free(h);
}

/* A key that is removed by itself has a way of its own. Every fourth key was
 * never added, every fifth is removed twice. */
LAW(removing_one_by_one_is_a_batch)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(REMOVE));
    enum { N = 4000 };
    const bly_spec spec = law_spec(row, N);
    key_list l = key_list_new(&spec, 0, N);
    bly_filter *batch = filled_from(&spec, 0, 3 * N / 4);
    bly_filter *single = filled_from(&spec, 0, 3 * N / 4);
    for (size_t i = 0; i < N; i++) {
        const size_t j = i * 7 % N; /* in no order */
        for (int times = 0; times < (j % 5 ? 1 : 2); times++) {
            bly_status st;
            const bly_status first =
                bly_remove_hashes(batch, &l.hashes[j], 1, &st);
            assert_int_equal(first, st);
            assert_int_equal(bly_remove(single, &l.le[j], 8), st);
        }
    }
    assert_true(bly_equal(batch, single));
    bly_stats a, b;
    bly_peek(batch, &a);
    bly_peek(single, &b);
    assert_int_equal(a.items_added, b.items_added);
    bly_free(batch);
    bly_free(single);
    key_list_free(&l);
}

/* The forms for bytes and for integers say the same. */
LAW(fresh_in_every_form)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    enum { N = 3000 }; /* several pieces, the last one broken */
    const bly_spec spec = law_spec(row, N);
    key_list l = key_list_new(&spec, 0, N);
    bly_filter *f[3];
    uint64_t *fresh[3];
    size_t ndone;
    for (int i = 0; i < 3; i++) {
        assert_ok(bly_new(&spec, &f[i]));
        fresh[i] = bitmap_new(N);
    }
    assert_ok(bly_add_hashes(f[0], l.hashes, N, fresh[0], &ndone));
    assert_ok(bly_add_keys(f[1], l.keys, N, fresh[1], &ndone));
    assert_int_equal(ndone, N);
    assert_ok(bly_add_ints(f[2], l.ints, N, fresh[2], &ndone));
    assert_int_equal(ndone, N);
    for (int i = 1; i < 3; i++) {
        assert_memory_equal(fresh[i], fresh[0], BLY_BITMAP_WORDS(N) * 8);
        assert_true(bly_equal(f[i], f[0]));
    }
    /* Once more: nothing is fresh. */
    const bly_status again = bly_add_ints(f[2], l.ints, N, fresh[2], NULL);
    assert_true(again == BLY_OK || again == BLY_EFULL);
    for (size_t w = 0; w < BLY_BITMAP_WORDS(N); w++)
        if (!(kind->traits & BLY_LIKELY_NO))
            assert_true(fresh[2][w] == 0);
    for (int i = 0; i < 3; i++) {
        bitmap_free(fresh[i], N);
        bly_free(f[i]);
    }
    key_list_free(&l);
}

/* ------------------------------------------------------ memory that moves */

/* An allocator that gives every block another distance from a cache line, and
 * keeps before it what malloc gave and how long it is. */
typedef struct block_head {
    void *base;
    size_t nbytes;
} block_head;

static void *crooked_alloc(void *ctx, size_t nbytes)
{
    size_t *const calls = ctx;
    char *base = malloc(nbytes + sizeof(block_head) + 64);
    assert_non_null(base);
    char *at = base + sizeof(block_head) + 16 * (++*calls % 4);
    const block_head head = { base, nbytes };
    memcpy(at - sizeof head, &head, sizeof head);
    return at;
}

static block_head head_of(const void *at)
{
    block_head head;
    memcpy(&head, (const char *)at - sizeof head, sizeof head);
    return head;
}

static void crooked_release(void *ctx, void *at, size_t nbytes)
{
    (void)ctx;
    assert_int_equal(head_of(at).nbytes, nbytes);
    free(head_of(at).base);
}

/* Every second one stays where it is. */
static void *crooked_move(void *ctx, void *at)
{
    size_t *const calls = ctx;
    if (++*calls % 2)
        return NULL;
    void *to = crooked_alloc(ctx, head_of(at).nbytes);
    memcpy(to, at, head_of(at).nbytes);
    crooked_release(ctx, at, head_of(at).nbytes);
    return to;
}

/* A filter whose memory is moved is the same one, and goes on. */
LAW(moves_in_memory)
{
    size_t calls = 0;
    const bly_mem crooked = { .alloc = crooked_alloc,
                              .release = crooked_release,
                              .ctx = &calls };
    bly_spec spec = law_spec(row, 3000);
    spec.mem = &crooked;
    bly_filter *f = filled_from(&spec, 0, 2000);
    uint64_t *more = hashes_for(&spec, 2000, 1000);
    byte_array before = written(f);
    for (int i = 0; i < 8; i++) {
        f = bly_move(f, crooked_move, &calls);
        assert_same_bytes(f, &before);
    }
    if (kind->can & BLY_CAN(ADD))
        assert_ok(bly_add_hashes(f, more, 1000, NULL, NULL));
    if (kind->can & BLY_CAN(HAS) && !(kind->traits & BLY_LIKELY_NO))
        assert_int_equal(hits(f, 0, 2000), 2000);
    assert_ok(bly_verify(f));
    free(before.at);
    free(more);
    bly_free(f);
}

/* ------------------------------------------------- against an exact set */

/* What a plain array of counts does beside the filter: add, remove, count,
 * copy, save, load, merge, in random order; after each step a random part of
 * the universe, and in the end all of it, is asked for. */
#define UNIVERSE 3000

typedef struct exact {
    bly_filter *f;
    uint32_t times[UNIVERSE];
    bool multiple; /* a key may be in it several times */
} exact;

static void exact_add(exact *e, const uint64_t *h, uint64_t *random)
{
    uint64_t hashes[200];
    uint32_t which[200];
    const size_t n = test_random(random) % 200;
    size_t taken = 0, ndone;
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = (uint32_t)(test_random(random) % UNIVERSE);
        if (e->times[key] >= (e->multiple ? 3 : 1))
            continue;
        e->times[key]++;
        which[taken] = key;
        hashes[taken++] = h[key];
    }
    const bly_status st = bly_add_hashes(e->f, hashes, taken, NULL, &ndone);
    assert_true(st == BLY_OK || st == BLY_EFULL);
    assert_true(st || ndone == taken);
    for (size_t i = ndone; i < taken; i++)
        e->times[which[i]]--;
}

static void exact_remove(exact *e, const uint64_t *h, uint64_t *random)
{
    for (int i = 0; i < 50; i++) {
        const uint64_t key = test_random(random) % UNIVERSE;
        if (!e->times[key])
            continue;
        const bly_status st = bly_remove_hashes(e->f, &h[key], 1, NULL);
        /* Refused is allowed, and then it is still there; absent is not. */
        assert_true(st == BLY_OK || st == BLY_EREFUSED);
        if (!st)
            e->times[key]--;
    }
}

static void exact_increase(exact *e, const uint64_t *h, uint64_t *random)
{
    const uint64_t key = test_random(random) % UNIVERSE;
    const uint64_t by = 1 + test_random(random) % 2;
    if (e->times[key] + by > 3)
        return;
    const bly_status st = bly_increase_hashes(e->f, &h[key], &by, 1, NULL);
    assert_true(st == BLY_OK || st == BLY_EFULL);
    if (!st)
        e->times[key] += (uint32_t)by;
}

static void exact_clone(exact *e)
{
    bly_filter *copy;
    assert_ok(bly_clone(e->f, &copy));
    bly_free(e->f);
    e->f = copy;
}

static void exact_reload(exact *e)
{
    byte_array a = written(e->f);
    bly_free(e->f);
    assert_ok(bly_load(a.at, a.n, NULL, &e->f));
    free(a.at);
}

static void exact_merge(exact *e, const bly_spec *spec, const uint64_t *h,
                        uint64_t *random)
{
    bly_filter *other;
    uint64_t keys[20];
    int nkeys = 0;
    assert_ok(bly_new(spec, &other));
    for (int i = 0; i < 20; i++) {
        const uint64_t key = test_random(random) % UNIVERSE;
        if (e->times[key])
            continue;
        assert_ok(bly_add_hash(other, h[key]));
        e->times[key]++;
        keys[nkeys++] = key;
    }
    const bly_status st = bly_merge(e->f, other);
    assert_true(st == BLY_OK || st == BLY_EFULL);
    while (st && nkeys)
        e->times[keys[--nkeys]]--;
    bly_free(other);
}

static void exact_check(const exact *e, const bly_kind_info *kind,
                        const uint64_t *h, size_t from, size_t n)
{
    static uint64_t maybe[BLY_BITMAP_WORDS(UNIVERSE)], counts[UNIVERSE];
    size_t absent = 0, wrong = 0;
    bly_has_hashes(e->f, h + from, n, maybe);
    if (kind->can & BLY_CAN(COUNT))
        assert_ok(bly_count_hashes(e->f, h + from, n, counts));
    for (size_t i = 0; i < n; i++) {
        const uint32_t times = e->times[from + i];
        if (times && !(kind->traits & BLY_LIKELY_NO))
            assert_true(bitmap_get(maybe, i));
        if ((kind->can & BLY_CAN(COUNT)) && !(kind->traits & BLY_LIKELY_NO))
            assert_true(counts[i] >= times);
        absent += !times;
        wrong += !times && bitmap_get(maybe, i);
    }
    /* At or below capacity: three times the rate and some. */
    assert_true((double)wrong <= 3 * LAW_FPR * (double)absent + 10);
}

/* Steps in which keys are added, removed, counted, files written and read,
 * with questions for part of the universe after each. BLY_FULL: until there
 * were ten million operations; their number is printed. */
LAW(agrees_with_an_exact_set)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    const uint32_t can = kind->can;
    const bly_spec spec = law_spec(row, UNIVERSE);
    uint64_t *h = hashes_for(&spec, 0, UNIVERSE);
    const bool full = getenv("BLY_FULL") != NULL;
    uint64_t noperations = 0;
    for (uint64_t seed = 0; full ? noperations < 10000000 : seed < 10; seed++) {
        uint64_t random = seed;
        exact e = { .multiple = can & BLY_CAN(COUNT) };
        assert_ok(bly_new(&spec, &e.f));
        for (int step = 0; step < 200; step++) {
            switch (test_random(&random) % 8) {
            case 0:
            case 1:
                exact_add(&e, h, &random);
                break;
            case 2:
            case 3:
                if (can & BLY_CAN(REMOVE))
                    exact_remove(&e, h, &random);
                break;
            case 4:
                if (can & BLY_CAN(INCREASE))
                    exact_increase(&e, h, &random);
                break;
            case 5:
                exact_clone(&e);
                break;
            case 6:
                exact_reload(&e);
                break;
            default:
                if (can & BLY_CAN(MERGE))
                    exact_merge(&e, &spec, h, &random);
            }
            const size_t from = test_random(&random) % UNIVERSE;
            const size_t n = test_random(&random) % (UNIVERSE - from);
            exact_check(&e, kind, h, from, n);
            noperations += n + 1;
        }
        exact_check(&e, kind, h, 0, UNIVERSE);
        bly_free(e.f);
    }
    if (full)
        print_message("%llu operations\n", (unsigned long long)noperations);
    free(h);
}

/* The same bytes and answers whatever instructions there are. Few keys, so
 * that they run in the groups of every walk and past their ends; kinds with
 * instructions of their own have a test with filters beyond the caches. */
LAW(rows_agree)
{
    (void)kind;
    static const size_t sizes[] = { 1, 63, 700 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const bly_spec spec = law_spec(row, sizes[i]);
        assert_rows_agree(&spec, sizes[i]);
    }
}

int main(int argc, char **argv)
{
    return run_laws("laws", argc, argv);
}
