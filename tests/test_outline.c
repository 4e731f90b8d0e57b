/*
 * test_outline.c - most of what the other side lacks, from filters of its set
 */
#include <stdlib.h>
#include <string.h>

#include <bloomery/reconcile.h>

#include "core/bits.h"
#include "support.h"

/* Sorted hashes of the numbers from to to. */
static uint64_t *hashes(uint64_t from, uint64_t to, size_t *n)
{
    uint64_t *const all = malloc((size_t)(to - from) * sizeof *all + 8);
    assert_non_null(all);
    for (uint64_t i = from; i < to; i++)
        all[i - from] = bly_mix64(i * 3 + 1);
    *n = (size_t)(to - from);
    assert_ok(bly_elements_sort(all, n));
    assert_int_equal(*n, to - from);
    return all;
}

static int compare_uint64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Through bytes, as the other side gets it. */
static bly_outline *sent(const bly_outline_spec *spec, const uint64_t *all,
                         size_t n)
{
    bly_outline *o, *there;
    assert_ok(bly_outline_new(spec, all, n, &o));
    const size_t nbytes = bly_outline_written_bytes(o);
    unsigned char *const bytes = malloc(nbytes);
    assert_non_null(bytes);
    bly_outline_write(o, bytes);
    for (size_t cut = 0; cut < nbytes; cut += 1 + nbytes / 50)
        assert_int_equal(bly_outline_load(bytes, cut, NULL, &there),
                         BLY_EFORMAT);
    assert_ok(bly_outline_load(bytes, nbytes, NULL, &there));
    free(bytes);
    bly_outline_free(o);
    return there;
}

/* The share of 100 elements that are lacking among 10,000 and is found; none
 * that both have is ever found. */
static double share_found(double leaf, double inner, unsigned correction,
                          uint64_t *visited)
{
    enum { N = 10000, D = 100, RUNS = 10 };
    double found = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        size_t n, nmine, nlacking;
        uint64_t *const theirs = hashes(run * 2 * N, run * 2 * N + N - D, &n);
        uint64_t *const mine = hashes(run * 2 * N, run * 2 * N + N, &nmine);
        uint64_t *const lacking = malloc(nmine * sizeof *lacking);
        assert_non_null(lacking);
        const bly_outline_spec spec = { .leaf_bits = leaf,
                                        .inner_bits = inner };
        bly_outline *const o = sent(&spec, theirs, n);
        assert_ok(bly_outline_lacking(o, mine, nmine, correction, lacking,
                                      &nlacking, visited));
        for (size_t i = 0; i < nlacking; i++)
            assert_null(bsearch(&lacking[i], theirs, n, sizeof *theirs,
                                compare_uint64));
        found += (double)nlacking / D / RUNS;
        bly_outline_free(o);
        free(theirs);
        free(mine);
        free(lacking);
    }
    return found;
}

/* The table of the approximate reconciliation tree at 8 bits per element. */
static void trees_find_what_they_should(void **state)
{
    (void)state;
    static const struct {
        double leaf, inner;
        double share[5]; /* correction 0, 1, 2, 3, 5 */
    } rows[] = {
        { 4, 4, { .12, .64, .81, .83, .83 } },
        { 5, 3, { .01, .46, .79, .89, .91 } },
        { 6, 2, { .00, .17, .59, .84, .94 } },
    };
    static const unsigned corrections[] = { 0, 1, 2, 3, 5 };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t c = 0; c < COUNT_OF(corrections); c++) {
            uint64_t visited;
            const double got = share_found(rows[i].leaf, rows[i].inner,
                                           corrections[c], &visited);
            print_message("%g + %g bits, correction %u: %.3f found (%.2f), "
                          "%llu nodes\n",
                          rows[i].leaf, rows[i].inner, corrections[c], got,
                          rows[i].share[c], (unsigned long long)visited);
            assert_true(got > rows[i].share[c] - .08 &&
                        got < rows[i].share[c] + .08);
        }
}

static void filters_find_nearly_all(void **state)
{
    (void)state;
    uint64_t visited;
    const double got = share_found(8, 0, 0, &visited);
    print_message("filter of 8 bits: %.3f found\n", got);
    assert_true(got > .95 && got <= 1);
    assert_int_equal(visited, 2 * 10000 - 1);
}

static void small_sets(void **state)
{
    (void)state;
    const bly_outline_spec spec = { .leaf_bits = 32, .inner_bits = 16 };
    for (uint64_t n = 0; n < 5; n++)
        for (uint64_t m = 0; m < 5; m++) {
            size_t na, nb, nlacking;
            uint64_t lacking[8];
            uint64_t *const a = hashes(0, n, &na), *const b = hashes(0, m, &nb);
            bly_outline *const o = sent(&spec, a, na);
            assert_ok(
                bly_outline_lacking(o, b, nb, 5, lacking, &nlacking, NULL));
            assert_int_equal(nlacking, m > n ? m - n : 0);
            bly_outline_free(o);
            free(a);
            free(b);
        }
}

static void wrong_arguments(void **state)
{
    (void)state;
    uint64_t two[] = { 2, 1 }, same[] = { 1, 1 };
    bly_outline *o;
    size_t n = 2;
    assert_int_equal(bly_outline_new(NULL, two, 2, &o), BLY_EINVAL);
    assert_int_equal(bly_outline_new(NULL, same, 2, &o), BLY_EINVAL);
    const bly_outline_spec much = { .leaf_bits = 65 },
                           less = { .leaf_bits = 8, .inner_bits = -1 };
    assert_int_equal(bly_outline_new(&much, NULL, 0, &o), BLY_EINVAL);
    assert_int_equal(bly_outline_new(&less, NULL, 0, &o), BLY_EINVAL);
    assert_ok(bly_elements_sort(two, &n));
    assert_true(n == 2 && two[0] == 1 && two[1] == 2);
    assert_ok(bly_elements_sort(same, &n));
    assert_int_equal(n, 1);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ledger l;
    bool failed = true;
    size_t n, nlacking;
    uint64_t lacking[20];
    uint64_t *const all = hashes(0, 20, &n);
    for (long at = 0; failed; at++) {
        ledger_open(&l);
        l.fail_at = at;
        const bly_outline_spec spec = { .inner_bits = 4, .mem = &l.mem };
        bly_outline *o;
        bly_status st = bly_outline_new(&spec, all, n, &o);
        if (!st)
            st = bly_outline_lacking(o, all, n, 1, lacking, &nlacking, NULL);
        failed = st != BLY_OK;
        assert_true(!failed || st == BLY_ENOMEM);
        bly_outline_free(o);
        ledger_check(&l);
    }
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_find_what_they_should),
        cmocka_unit_test(filters_find_nearly_all),
        cmocka_unit_test(small_sets),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
