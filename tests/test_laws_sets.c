/*
 * test_laws_sets.c - what every kind promises about sets
 *
 * Union, intersection, copies; and how many keys a filter holds, or two have in
 * common, with the deviations it states. An estimate that is never off by more
 * than its deviation is as wrong as one that always is: both are looked for.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"

#define NKEYS 20000

/* ------------------------------------------------------------- combining */

/* Is a filter of this kind a set of bits, which a key only sets? */
static bool is_bits(const bly_kind_info *kind)
{
    return (kind->can & BLY_CAN(INTERSECT)) &&
           !(kind->can & (BLY_CAN(REMOVE) | BLY_CAN(COUNT)));
}

/* A union of bits is the filter of both sets to the last one; others must at
 * least not forget. */
LAW(merge_equals_building_from_both)
{
    needs(kind, BLY_CAN(MERGE));
    bly_filter *a = law_part(row, 6000, 0, 2000);
    bly_filter *b = law_part(row, 6000, 1000, 2000);
    bly_filter *both = law_part(row, 6000, 0, 3000);
    byte_array before = written(b);
    assert_ok(bly_merge(a, b));
    assert_same_bytes(b, &before);
    if (is_bits(kind)) {
        assert_true(bly_equal(a, both));
        assert_ok(bly_merge(a, b)); /* once more changes nothing */
        assert_true(bly_equal(a, both));
    }
    if ((kind->can & BLY_CAN(HAS)) && !(kind->traits & BLY_LIKELY_NO))
        assert_int_equal(hits(a, 0, 3000), 3000);
    /* With an empty one, either way. */
    if (kind->can & BLY_CAN(ADD)) {
        bly_filter *none = law_part(row, 6000, 0, 0), *copy;
        assert_ok(bly_clone(a, &copy));
        assert_ok(bly_merge(copy, none));
        assert_true(bly_equal(copy, a));
        bly_free(copy);
        assert_ok(bly_merge(none, a));
        if (is_bits(kind))
            assert_true(bly_equal(none, a));
        bly_free(none);
    }
    free(before.at);
    bly_free(a);
    bly_free(b);
    bly_free(both);
}

/* All that is in both; and nothing that is not in each, unless a cell is more
 * than its neighbours know: then no more than the rate allows. */
LAW(intersect_keeps_every_common_key)
{
    needs(kind, BLY_CAN(INTERSECT) | BLY_CAN(HAS));
    bly_filter *a = law_part(row, 6000, 0, 2000);
    bly_filter *b = law_part(row, 6000, 1000, 2000);
    bly_filter *was;
    assert_ok(bly_clone(a, &was));
    byte_array before = written(b);
    assert_ok(bly_intersect(a, b));
    assert_same_bytes(b, &before);
    assert_int_equal(hits(a, 1000, 1000), 1000);
    size_t strangers = 0;
    for (uint64_t key = 0; key < 20000; key++) {
        const uint64_t le = bly_le64(key);
        if (bly_has(a, &le, 8))
            strangers += !bly_has(was, &le, 8) || !bly_has(b, &le, 8);
    }
    assert_true((double)strangers <= (is_bits(kind) ? 0 : LAW_FPR * 20000));
    /* Not simply everything: of what one alone had, most is gone. */
    assert_true(hits(a, 0, 1000) < 700);
    free(before.at);
    bly_free(a);
    bly_free(b);
    bly_free(was);
}

static void take_out(bly_filter *f, uint64_t first, size_t n)
{
    uint64_t *h = hashes_for(&(bly_spec){ .seed = LAW_SEED }, first, n);
    bly_status *each = malloc(n * sizeof *each);
    (void)bly_remove_hashes(f, h, n, each);
    for (size_t i = 0; i < n; i++)
        assert_true(each[i] == BLY_OK || each[i] == BLY_EREFUSED);
    free(each);
    free(h);
}

/* What comes out of a union, an intersection or a fold can be used on: of the
 * keys that are in it some are removed, and all the others are still found. */
LAW(removing_from_a_combination_harms_nobody)
{
    needs(kind, BLY_CAN(REMOVE));
    needs_certain_no(kind);
    if (kind->can & BLY_CAN(MERGE)) {
        bly_filter *a = law_part(row, 6000, 0, 2000);
        bly_filter *b = law_part(row, 6000, 1000, 2000);
        assert_ok(bly_merge(a, b));
        take_out(a, 0, 1000); /* of a alone */
        assert_int_equal(hits(a, 1000, 2000), 2000);
        take_out(a, 1000, 500); /* once; the copy of the other is left */
        assert_int_equal(hits(a, 1500, 1500), 1500);
        bly_free(a);
        bly_free(b);
    }
    if (kind->can & BLY_CAN(INTERSECT)) {
        bly_filter *a = law_part(row, 6000, 0, 2000);
        bly_filter *b = law_part(row, 6000, 1000, 2000);
        assert_ok(bly_intersect(a, b));
        take_out(a, 1000, 500);
        assert_int_equal(hits(a, 1500, 500), 500);
        bly_free(a);
        bly_free(b);
    }
    for (uint64_t items = 6000; items < 6064 && kind->can & BLY_CAN(FOLD);
         items++) {
        bly_filter *f = law_part(row, items, 0, 2000), *half;
        if (!bly_fold(f, &half)) {
            take_out(half, 0, 1000);
            assert_int_equal(hits(half, 1000, 1000), 1000);
            bly_free(half);
        }
        bly_free(f);
    }
}

/* A key that was added x times to a and y times to b is x + y times in the
 * union and min(x, y) times in the intersection: counts are never below, nor
 * are they below x in the half of a. Several kinds have a few estimates that
 * are too low; they say so by what they say of one filter. */
LAW(counts_of_combinations)
{
    needs(kind, BLY_CAN(COUNT) | BLY_CAN(INCREASE));
    enum { N = 1000 };
    bly_filter *f[3], *half = NULL;
    uint64_t *h = hashes_for(&(bly_spec){ .seed = LAW_SEED }, 0, N);
    uint64_t by[2][N], counts[N];
    size_t low = 0, low_before = 0;
    for (size_t i = 0; i < N; i++) {
        by[0][i] = i % 5;
        by[1][i] = i % 3;
    }
    for (int i = 0; i < 3; i++) {
        f[i] = law_part(row, 8 * N + 14, 0, 0);
        assert_ok(bly_increase_hashes(f[i], h, by[i % 2], N, NULL));
    }
    assert_ok(bly_count_hashes(f[0], h, N, counts));
    for (size_t i = 0; i < N; i++)
        low_before += counts[i] < by[0][i];
    if (kind->can & BLY_CAN(FOLD) && !bly_fold(f[0], &half)) {
        assert_ok(bly_count_hashes(half, h, N, counts));
        for (size_t i = 0; i < N; i++)
            low += counts[i] < by[0][i];
        bly_free(half);
    }
    if (kind->can & BLY_CAN(MERGE)) {
        assert_ok(bly_merge(f[0], f[1]));
        assert_ok(bly_count_hashes(f[0], h, N, counts));
        for (size_t i = 0; i < N; i++)
            low += counts[i] < by[0][i] + by[1][i];
    }
    if (kind->can & BLY_CAN(INTERSECT)) {
        assert_ok(bly_intersect(f[2], f[1]));
        assert_ok(bly_count_hashes(f[2], h, N, counts));
        for (size_t i = 0; i < N; i++)
            low += counts[i] < (by[0][i] < by[1][i] ? by[0][i] : by[1][i]);
    }
    if (!low_before)
        assert_int_equal(low, 0);
    for (int i = 0; i < 3; i++)
        bly_free(f[i]);
    free(h);
}

static void assert_unfit(bly_filter *f, const bly_filter *other,
                         const bly_kind_info *kind)
{
    byte_array before = written(f);
    bly_likeness like;
    if (kind->can & BLY_CAN(MERGE))
        assert_status(bly_merge(f, other), BLY_EUNFIT);
    if (kind->can & BLY_CAN(INTERSECT))
        assert_status(bly_intersect(f, other), BLY_EUNFIT);
    if (kind->can & BLY_CAN(COMPARE))
        assert_status(bly_compare(f, other, &like), BLY_EUNFIT);
    assert_true(bly_error()[0] != '\0');
    assert_false(bly_equal(f, other));
    assert_same_bytes(f, &before);
    free(before.at);
}

/* Another seed, size, secret or kind: refused, and nothing has changed. */
LAW(unlike_filters_do_not_combine)
{
    const uint32_t any = BLY_CAN(MERGE) | BLY_CAN(INTERSECT) | BLY_CAN(COMPARE);
    if (!(kind->can & any))
        skip_for("the kind cannot do this");
    bly_filter *f = law_part(row, 2000, 0, 1000), *other;
    bly_spec spec = law_spec(row, 2000);
    spec.seed++;
    other = filled_from(&spec, 0, 1000);
    assert_unfit(f, other, kind);
    bly_free(other);

    other = law_part(row, 4000, 0, 1000);
    assert_unfit(f, other, kind);
    bly_free(other);

    /* Keyed beside not keyed, and by two secrets that differ in a bit. */
    unsigned char secret[BLY_SECRET_BYTES] = { 1, 2, 3 };
    spec.seed = 0;
    spec.secret = secret;
    if (!(kind->can & BLY_CAN(RANGE))) {
        bly_filter *keyed = filled_from(&spec, 0, 1000);
        assert_unfit(f, keyed, kind);
        assert_unfit(keyed, f, kind);
        secret[BLY_SECRET_BYTES - 1] ^= 0x80;
        other = filled_from(&spec, 0, 1000);
        assert_unfit(keyed, other, kind);
        bly_free(keyed);
        bly_free(other);
    }

    bly_kind_info next;
    for (size_t i = 0; bly_kind_at(i, &next); i++) {
        if (next.id == kind->id)
            continue;
        const bly_spec foreign = spec_for(&next, 2000);
        other = filled_from(&foreign, 0, 1000);
        assert_unfit(f, other, kind);
        bly_free(other);
    }

    /* The filter itself is no second one. */
    byte_array before = written(f);
    if (kind->can & BLY_CAN(MERGE))
        assert_status(bly_merge(f, f), BLY_EINVAL);
    if (kind->can & BLY_CAN(INTERSECT))
        assert_status(bly_intersect(f, f), BLY_EINVAL);
    assert_same_bytes(f, &before);
    free(before.at);
    bly_free(f);
}

LAW(clone_is_equal_and_independent)
{
    bly_filter *f = law_part(row, 6000, 0, 2000), *copy;
    byte_array before = written(f);
    bly_stats a, b;
    assert_ok(bly_clone(f, &copy));
    assert_true(bly_equal(f, copy) && bly_equal(copy, f));
    bly_stat(f, &a);
    bly_stat(copy, &b);
    assert_int_equal(a.items_added, b.items_added);
    assert_int_equal(a.capacity, b.capacity);
    assert_int_equal(a.seed, b.seed);
    assert_true(a.fpr_at_capacity == b.fpr_at_capacity);
    assert_same_bytes(copy, &before);
    if (kind->can & BLY_CAN(ADD)) {
        uint64_t *h = hashes_for(&(bly_spec){ .seed = LAW_SEED }, 2000, 1000);
        assert_ok(bly_add_hashes(copy, h, 1000, NULL, NULL));
        assert_same_bytes(f, &before);
        assert_false(bly_equal(f, copy));
        free(h);
    }
    bly_free(f);
    if ((kind->can & BLY_CAN(HAS)) && !(kind->traits & BLY_LIKELY_NO))
        assert_int_equal(hits(copy, 0, 2000), 2000);
    bly_free(copy);
    free(before.at);
}

/* One that holds more than it may from now on keeps what it has, and so does a
 * copy; it grows no further before it may again, and loses nothing. */
LAW(a_limit_is_for_growing)
{
    bly_filter *f = law_part(row, 1000, 0, 1000), *copy;
    byte_array before = written(f);
    bly_stats was, is;
    bly_limit(f, 1);
    assert_same_bytes(f, &before);
    assert_ok(bly_clone(f, &copy));
    assert_same_bytes(copy, &before);
    if (kind->can & BLY_CAN(ADD)) {
        uint64_t *h = hashes_for(&(bly_spec){ .seed = LAW_SEED }, 1000, 4000);
        size_t ndone = 0, nmore = 0;
        bly_peek(copy, &was);
        const bly_status st = bly_add_hashes(copy, h, 4000, NULL, &ndone);
        bly_peek(copy, &is);
        assert_int_equal(is.bytes, was.bytes);
        assert_true(st ? ndone < 4000 : ndone == 4000);
        bly_limit(copy, 0);
        const bly_status then =
            bly_add_hashes(copy, h + ndone, 4000 - ndone, NULL, &nmore);
        if (then)
            assert_int_equal(then, BLY_EFULL);
        if ((kind->can & BLY_CAN(HAS)) && !(kind->can & BLY_CAN(TICK)) &&
            !(kind->traits & BLY_LIKELY_NO))
            assert_int_equal(hits(copy, 0, 1000 + ndone + nmore),
                             1000 + ndone + nmore);
        free(h);
    }
    bly_free(copy);
    bly_free(f);
    free(before.at);
}

/* Half the memory, and every key still there. The rate is what the smaller
 * filter says it is, and what folding says of it: that of f with twice the keys
 * in it. Where one size is odd another is not. */
LAW(folding_keeps_every_key)
{
    needs(kind, BLY_CAN(FOLD));
    needs_certain_no(kind);
    bool folded = false;
    for (uint64_t items = 3000; items < 3064; items++) {
        bly_filter *f = law_part(row, items, 0, 1000), *half;
        byte_array before = written(f);
        const bly_status st = bly_fold(f, &half);
        if (st) {
            assert_status(st, BLY_EINVAL);
            assert_null(half);
        } else {
            bly_stats a, b;
            bly_stat(f, &a);
            bly_stat(half, &b);
            /* A few spare cells at the end need not become fewer. */
            assert_between((double)b.bits, 0.5 * (double)a.bits,
                           0.55 * (double)a.bits);
            assert_int_equal(a.items_added, b.items_added);
            assert_int_equal(a.seed, b.seed);
            assert_true(b.fpr_now >= a.fpr_now);
            assert_int_equal(hits(half, 0, 1000), 1000);
            if (!isnan(b.fpr_now)) {
                const double q = (double)scaled(100000), p = b.fpr_now;
                assert_between((double)hits(half, ABSENT, (size_t)q) / q,
                               p - 6 * sqrt(p / q) - 0.01 * p,
                               p + 6 * sqrt(p / q) + 0.01 * p);
            }
            byte_array bytes = written(half);
            bly_filter *again;
            assert_ok(bly_load(bytes.at, bytes.n, NULL, &again));
            assert_true(bly_equal(half, again));
            bly_free(again);
            free(bytes.at);
            folded = true;
            bly_free(half);
        }
        assert_same_bytes(f, &before);
        free(before.at);
        bly_free(f);
    }
    assert_true(folded);
}

/* The option `folds` keeps its word: as many times, and each time it is the
 * filter that would have been made so small, but for what a cell may count
 * twice. */
LAW(folds_as_often_as_planned)
{
    needs(kind, BLY_CAN(FOLD) | BLY_CAN(HAS));
    for (uint64_t items = 40000; items < 40003; items++) {
        bly_option options[2] = { { "folds", "4" }, row->option };
        bly_spec spec = law_spec(row, items);
        spec.options = options;
        spec.noptions = 1 + row->noptions;
        bly_filter *f = filled_from(&spec, 0, 300);
        for (int i = 0; i < 4; i++) {
            bly_filter *half;
            assert_ok(bly_fold(f, &half));
            bly_free(f);
            f = half;
        }
        assert_int_equal(hits(f, 0, 300), 300);
        bly_free(f);
    }
    /* And in memory that is given. */
    bly_option options[2] = { { "folds", "3" }, row->option };
    bly_spec spec = law_spec(row, 5000);
    spec.fpr = 0;
    spec.bits = 1000003;
    spec.options = options;
    spec.noptions = 1 + row->noptions;
    bly_filter *f, *half;
    assert_ok(bly_new(&spec, &f));
    bly_stats stats;
    bly_peek(f, &stats);
    assert_true(stats.bits <= spec.bits);
    assert_ok(bly_fold(f, &half));
    bly_free(half);
    bly_free(f);
}

/* ------------------------------------------------------------- estimating */

/* What f says of itself when it is full: the number of keys within its own
 * deviations, and the rate that was planned. Over 40 seeds the errors must
 * also be as large as the deviation says: their root mean square, in
 * deviations, is 1 with a spread of 1/sqrt(80) = 0.11. */
LAW(stat_at_capacity)
{
    enum { SEEDS = 40, N = 4000 };
    double squares = 0;
    bool tells = true;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        bly_spec spec = law_spec(row, N);
        spec.seed = LAW_SEED + seed;
        bly_filter *f = filled_from(&spec, seed << 32, N);
        bly_stats stats;
        bly_stat(f, &stats);
        assert_string_equal(stats.kind, kind->name);
        assert_int_equal(stats.capacity, N);
        assert_int_equal(stats.seed, spec.seed);
        bly_hasher hasher;
        assert_ok(bly_hasher_for(&spec, &hasher));
        assert_int_equal(stats.hash_id, hasher.id);
        assert_false(stats.keyed || stats.shared || stats.mapped);
        assert_between(stats.fill, 0.01, 1);
        assert_true(stats.bytes * 8 >= stats.bits);
        /* False positives on the way keep this below N. */
        if (kind->can & BLY_CAN(ADD))
            assert_between((double)stats.items_added, 0.97 * N, N);
        if (!isnan(stats.fpr_now)) {
            /* One filter of 4000 keys has its rate within 2/sqrt(n) or so. */
            assert_near(stats.fpr_now, stats.fpr_at_capacity, 0.2);
        }
        if (isnan(stats.items_estimate)) {
            tells = false;
        } else {
            const double off = stats.items_estimate - N;
            assert_between(fabs(off), 0, 5 * stats.items_sd);
            squares += stats.items_sd > 0
                           ? off * off / (stats.items_sd * stats.items_sd)
                           : 1;
        }
        bly_stats peek;
        bly_peek(f, &peek);
        assert_true(isnan(peek.items_estimate) && isnan(peek.items_sd) &&
                    isnan(peek.fill) && isnan(peek.fpr_now));
        assert_int_equal(peek.items_added, stats.items_added);
        assert_int_equal(peek.bits, stats.bits);
        bly_free(f);
    }
    if (tells)
        assert_between(sqrt(squares / SEEDS), 0.5, 1.6);
}

/* The rate of single keys, where that of a filter is the rate of ranges. */
static double rate_of_keys(const bly_kind_info *kind, const bly_stats *stats)
{
    return kind->can & BLY_CAN(RANGE)
               ? fact_of(stats->facts, stats->nfacts, "point_rate")->real
               : stats->fpr_now;
}

/* fpr_now is the rate of this filter: that of its own absent keys, not of the
 * average filter. Binomial, six sigma. */
LAW(rate_now_is_the_rate_now)
{
    needs(kind, BLY_CAN(HAS));
    static const double loads[] = { 0.5, 1, 1.5 };
    for (size_t i = 0; i < COUNT_OF(loads); i++) {
        const size_t n = (size_t)(5000 * loads[i]);
        if (loads[i] > 1 && !(kind->can & BLY_CAN(ADD)))
            continue;
        const bly_spec spec = law_spec(row, 5000);
        bly_filter *f;
        if (loads[i] > 1) {
            uint64_t *h = hashes_for(&spec, 0, n);
            assert_ok(bly_new(&spec, &f));
            const bly_status st = bly_add_hashes(f, h, n, NULL, NULL);
            free(h);
            if (st == BLY_EFULL) {
                bly_free(f);
                continue;
            }
            assert_ok(st);
        } else {
            f = filled_from(&spec, 0, n);
        }
        bly_stats stats;
        bly_stat(f, &stats);
        if (!isnan(stats.fpr_now)) {
            const double q = (double)scaled(400000);
            const double p = rate_of_keys(kind, &stats);
            const double seen = (double)hits(f, ABSENT, (size_t)q) / q;
            /* 1 %: the bits of one key are not quite independent. */
            const double slack = 6 * sqrt(p * (1 - p) / q) + 0.01 * p;
            assert_between(seen, p - slack, p + slack);
        }
        bly_free(f);
    }
}

/* A full one says so, and says "maybe" to all. */
LAW(saturation_is_told)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    const bly_spec spec = law_spec(row, 10);
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    bly_stats empty;
    bly_peek(f, &empty);
    uint64_t *h = hashes_for(&spec, 0, 200000);
    bly_status st = bly_add_hashes(f, h, 200000, NULL, NULL);
    assert_true(st == BLY_OK || st == BLY_EFULL);
    if (!st) {
        bly_stats stats;
        bly_stat(f, &stats);
        /* Unless it forgets, grew, or clears bits as well as setting them. */
        assert_true(stats.fill > 0.99 || kind->can & BLY_CAN(TICK) ||
                    stats.layers > 0 || stats.bytes > empty.bytes ||
                    kind->traits & BLY_LIKELY_NO);
        if (stats.fill == 1) {
            assert_near(stats.fpr_now, 1, 0);
            assert_true(isnan(stats.items_estimate) ||
                        isinf(stats.items_estimate));
            assert_int_equal(hits(f, ABSENT, 1000), 1000);
        }
    }
    free(h);
    bly_free(f);
}

/* What two filters have in common, within six of the deviations that come with
 * it (where fingerprints collide by chance tails are longer than a bell's), and
 * no further off than these say: as in stat_at_capacity. */
LAW(compare_within_its_deviations)
{
    needs(kind, BLY_CAN(COMPARE));
    enum { SEEDS = 40, N = 4000 };
    static const size_t commons[] = { 0, 400, 2000, N };
    for (size_t c = 0; c < COUNT_OF(commons); c++) {
        const size_t common = commons[c];
        const double both = 2 * N - (double)common;
        double squares = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            bly_spec spec = law_spec(row, 2 * N);
            spec.seed = LAW_SEED + 1000 + seed;
            const uint64_t first = seed << 32;
            bly_filter *a = filled_from(&spec, first, N);
            bly_filter *b = filled_from(&spec, first + N - common, N);
            bly_likeness l;
            assert_ok(bly_compare(a, b, &l));
            assert_between(fabs(l.a - N), 0, 6 * l.a_sd);
            assert_between(fabs(l.b - N), 0, 6 * l.b_sd);
            assert_between(fabs(l.in_either - both), 0, 6 * l.in_either_sd);
            assert_true(l.in_both >= 0);
            assert_between(fabs(l.in_both - (double)common), 0,
                           6 * l.in_both_sd + 1e-6);
            assert_near(l.jaccard, l.in_both / l.in_either, 1e-9);
            assert_near(l.containment, l.in_both / fmin(l.a, l.b), 1e-9);
            assert_between(l.shared_cells, 0, 1);
            assert_between(l.chance_cells, 0, 1);
            if (l.in_both_sd > 0) {
                const double z = (l.in_both - (double)common) / l.in_both_sd;
                squares += z * z;
            }
            bly_free(a);
            bly_free(b);
        }
        /* 0 is cut off below, and equal sets have no deviation at all. */
        if (common > 0 && common < N)
            assert_between(sqrt(squares / SEEDS), 0.5, 1.6);
    }
}

/* Disjoint sets share by chance what chance_cells says; equal ones all. */
LAW(chance_level_is_right)
{
    needs(kind, BLY_CAN(COMPARE));
    bly_filter *a = law_part(row, NKEYS, 0, NKEYS / 2);
    bly_filter *b = law_part(row, NKEYS, NKEYS / 2, NKEYS / 2);
    bly_likeness l;
    assert_ok(bly_compare(a, b, &l));
    /* Where little is shared by chance, chance has more to say. */
    assert_between(fabs(l.shared_cells - l.chance_cells), 0,
                   fmax(0.03 * l.chance_cells, 3 * l.in_both_sd / l.a));
    bly_filter *copy;
    assert_ok(bly_clone(a, &copy));
    assert_ok(bly_compare(a, copy, &l));
    assert_near(l.shared_cells, 1, 1e-12);
    assert_near(l.jaccard, 1, 1e-9);
    assert_near(l.in_both, l.a, 1e-9);
    bly_free(a);
    bly_free(b);
    bly_free(copy);
}

int main(int argc, char **argv)
{
    return run_laws("laws of sets", argc, argv);
}
