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

/* Kinds that intersect are sets of bits, and a union of bits is the filter of
 * both sets to the last one; others must at least not forget. */
LAW(merge_equals_building_from_both)
{
    needs(kind, BLY_CAN(MERGE));
    bly_filter *a = law_part(row, 6000, 0, 2000);
    bly_filter *b = law_part(row, 6000, 1000, 2000);
    bly_filter *both = law_part(row, 6000, 0, 3000);
    byte_array before = written(b);
    assert_ok(bly_merge(a, b));
    assert_same_bytes(b, &before);
    if (kind->can & BLY_CAN(INTERSECT)) {
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
        if (kind->can & BLY_CAN(INTERSECT))
            assert_true(bly_equal(none, a));
        bly_free(none);
    }
    free(before.at);
    bly_free(a);
    bly_free(b);
    bly_free(both);
}

/* All that is in both; and, of bits, nothing that is not in each. */
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
    for (uint64_t key = 0; key < 20000; key++) {
        const uint64_t le = bly_le64(key);
        if (bly_has(a, &le, 8))
            assert_true(bly_has(was, &le, 8) && bly_has(b, &le, 8));
    }
    /* Not simply everything: of what one alone had, most is gone. */
    assert_true(hits(a, 0, 1000) < 700);
    free(before.at);
    bly_free(a);
    bly_free(b);
    bly_free(was);
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
        skip();
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
    bly_filter *keyed = filled_from(&spec, 0, 1000);
    assert_unfit(f, keyed, kind);
    assert_unfit(keyed, f, kind);
    secret[BLY_SECRET_BYTES - 1] ^= 0x80;
    other = filled_from(&spec, 0, 1000);
    assert_unfit(keyed, other, kind);
    bly_free(keyed);
    bly_free(other);

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

/* Half the memory, and every key still there. */
LAW(folding_keeps_every_key)
{
    needs(kind, BLY_CAN(FOLD));
    needs_certain_no(kind);
    /* Not every size can be halved; of these at least one can. */
    bool folded = false;
    for (uint64_t items = 1000; items < 1064; items++) {
        bly_filter *f = law_part(row, items, 0, 1000), *half;
        const bly_status st = bly_fold(f, &half);
        if (st) {
            assert_null(half);
        } else {
            bly_stats a, b;
            bly_peek(f, &a);
            bly_peek(half, &b);
            assert_int_equal(a.bits, 2 * b.bits);
            assert_int_equal(hits(half, 0, 1000), 1000);
            folded = true;
            bly_free(half);
        }
        bly_free(f);
    }
    assert_true(folded);
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
        assert_int_equal(stats.hash_id, BLY_HASH_XXH3);
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
            const double q = (double)scaled(400000), p = stats.fpr_now;
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
    uint64_t *h = hashes_for(&spec, 0, 200000);
    bly_status st = bly_add_hashes(f, h, 200000, NULL, NULL);
    assert_true(st == BLY_OK || st == BLY_EFULL);
    if (!st) {
        bly_stats stats;
        bly_stat(f, &stats);
        /* Unless it forgets, grows, or clears bits as well as setting them. */
        assert_true(stats.fill > 0.99 || kind->can & BLY_CAN(TICK) ||
                    stats.layers > 0 || kind->traits & BLY_LIKELY_NO);
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

/* What two filters have in common, within five of the deviations that come
 * with it, and no further off than these say: as in stat_at_capacity. */
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
            assert_between(fabs(l.a - N), 0, 5 * l.a_sd);
            assert_between(fabs(l.b - N), 0, 5 * l.b_sd);
            assert_between(fabs(l.both - both), 0, 5 * l.both_sd);
            assert_true(l.common >= 0);
            assert_between(fabs(l.common - (double)common), 0,
                           5 * l.common_sd + 1e-6);
            assert_near(l.jaccard, l.common / l.both, 1e-9);
            assert_near(l.containment, l.common / fmin(l.a, l.b), 1e-9);
            assert_between(l.shared_cells, 0, 1);
            assert_between(l.chance_cells, 0, 1);
            if (l.common_sd > 0) {
                const double z = (l.common - (double)common) / l.common_sd;
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
    assert_near(l.shared_cells, l.chance_cells, 0.03);
    bly_filter *copy;
    assert_ok(bly_clone(a, &copy));
    assert_ok(bly_compare(a, copy, &l));
    assert_near(l.shared_cells, 1, 1e-12);
    assert_near(l.jaccard, 1, 1e-9);
    assert_near(l.common, l.a, 1e-9);
    bly_free(a);
    bly_free(b);
    bly_free(copy);
}

int main(int argc, char **argv)
{
    return run_laws("laws of sets", argc, argv);
}
