/*
 * test_hyperloglog.c - how many distinct hashes there were
 *
 * The estimate within its deviation, from the first hash to many, at every
 * precision; merging; bytes from outside.
 */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "core/bits.h"
#include "core/hash.h"

static bly_hll *made(unsigned precision)
{
    bly_hll *s;
    assert_ok(bly_hll_new(precision, NULL, &s));
    return s;
}

static void add_random(bly_hll *s, uint64_t n, uint64_t *random)
{
    uint64_t h[512];
    while (n) {
        const size_t np = n < 512 ? (size_t)n : 512;
        for (size_t i = 0; i < np; i++)
            h[i] = test_random(random);
        assert_ok(bly_hll_add(s, h, np));
        n -= np;
    }
}

/* Errors are as large as the deviation says, and no larger: the root mean
 * square of error/deviation over s sketches is 1 with a spread of 1/sqrt(2 s).
 * Those of sparse sketches are 0 nearly always, and then 1: no larger. */
static void within_its_deviation(void **state)
{
    (void)state;
    static const struct {
        unsigned p;
        uint64_t n;
        int sketches;
    } rows[] = {
        { 4, 10, 400 },     { 4, 1000, 400 },    { 8, 20, 400 },
        { 8, 256, 400 },    { 8, 10000, 200 },   { 14, 1000, 100 },
        { 14, 40000, 60 },  { 14, 400000, 20 },  { 18, 100, 40 },
        { 18, 100000, 30 }, { 18, 1000000, 10 },
    };
    uint64_t random = 1;
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        double squares = 0, sum = 0;
        bool sparse = false;
        for (int i = 0; i < rows[r].sketches; i++) {
            bly_hll *s = made(rows[r].p);
            double sd;
            add_random(s, rows[r].n, &random);
            const double off = bly_hll_estimate(s, &sd) - (double)rows[r].n;
            assert_true(sd > 0 && sd <= 1.04 / sqrt(pow(2, rows[r].p)) *
                                            ((double)rows[r].n + off));
            assert_between(fabs(off), 0, 6 * sd + 1);
            sparse |= bly_hll_sparse(s);
            squares += off * off / (sd * sd);
            sum += off / (double)rows[r].n;
            bly_hll_free(s);
        }
        const double rms = sqrt(squares / rows[r].sketches);
        print_message("p %2u, n %7llu: error/deviation %.2f, bias %+.4f\n",
                      rows[r].p, (unsigned long long)rows[r].n, rms,
                      sum / rows[r].sketches);
        const double band = 0.1 + 4 / sqrt(2.0 * rows[r].sketches);
        assert_between(rms, sparse ? 0 : 1 - band, sparse ? 4 : 1 + band);
    }
}

static void nothing_and_again(void **state)
{
    (void)state;
    for (unsigned p = 4; p <= 18; p++) {
        bly_hll *s = made(p);
        double sd = 1;
        assert_int_equal(bly_hll_precision(s), p);
        assert_true(bly_hll_estimate(s, &sd) == 0 && sd == 0);
        assert_ok(bly_hll_add(s, NULL, 0));
        uint64_t random = p;
        add_random(s, 1, &random);
        const double one = bly_hll_estimate(s, NULL);
        assert_near(one, 1, 0.05);
        for (int i = 0; i < 1000; i++) {
            random = p;
            add_random(s, 1, &random);
        }
        assert_true(bly_hll_estimate(s, NULL) == one);
        bly_hll_free(s);
    }
    bly_hll *s = made(0);
    assert_int_equal(bly_hll_precision(s), 14);
    bly_hll_free(s);
    bly_hll_free(NULL);
}

/* The ends of the range: hashes of zeros and of ones alone. */
static void extreme_hashes(void **state)
{
    (void)state;
    for (unsigned p = 4; p <= 18; p++) {
        bly_hll *s = made(p);
        for (uint64_t i = 0; i < (uint64_t)1 << p; i++) {
            const uint64_t h = i << (64 - p);
            assert_ok(bly_hll_add(s, &h, 1));
        }
        /* Every register at its ceiling: no number is too large. */
        double sd;
        assert_true(bly_hll_estimate(s, &sd) > 0x1p58);
        unsigned char *bytes = malloc(bly_hll_written_bytes(s));
        assert_non_null(bytes);
        bly_hll_write(s, bytes);
        assert_int_equal(bytes[16], 64 - p + 1);
        bly_hll *again;
        assert_ok(bly_hll_load(bytes, bly_hll_written_bytes(s), NULL, &again));
        bly_hll_free(again);
        free(bytes);
        bly_hll_free(s);
    }
}

static void merging_is_seeing_both(void **state)
{
    (void)state;
    bly_hll *a = made(12), *b = made(12), *all = made(12), *other = made(11);
    uint64_t random = 5;
    add_random(a, 3000, &random);
    add_random(b, 5000, &random);
    random = 5;
    add_random(all, 8000, &random);
    assert_ok(bly_hll_merge(a, b));
    const size_t n = bly_hll_written_bytes(a);
    unsigned char *x = malloc(n), *y = malloc(n);
    assert_non_null(x);
    assert_non_null(y);
    bly_hll_write(a, x);
    bly_hll_write(all, y);
    assert_memory_equal(x, y, n);
    assert_status(bly_hll_merge(a, other), BLY_EUNFIT);
    free(x);
    free(y);
    bly_hll_free(a);
    bly_hll_free(b);
    bly_hll_free(all);
    bly_hll_free(other);
}

static void bytes_from_outside(void **state)
{
    (void)state;
    bly_hll *s = made(6), *t = s;
    uint64_t random = 9;
    add_random(s, 100, &random);
    const size_t n = bly_hll_written_bytes(s);
    assert_int_equal(n, 16 + 64 + 8);
    unsigned char *bytes = guarded_new(n);
    bly_hll_write(s, bytes);
    assert_memory_equal(bytes, "blyhll\0\1\6\0\0\0\0\0\0\0", 16);
    assert_ok(bly_hll_load(bytes, n, NULL, &t));
    assert_true(bly_hll_estimate(s, NULL) == bly_hll_estimate(t, NULL));
    bly_hll_free(t);
    for (size_t len = 0; len < n; len++) {
        unsigned char *part = guarded_new(len);
        memcpy(part, bytes, len);
        assert_status(bly_hll_load(part, len, NULL, &t), BLY_EFORMAT);
        assert_null(t);
        guarded_free(part, len);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_status(bly_hll_load(bytes, n, NULL, &t), BLY_EFORMAT);
        assert_null(t);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    /* Forged, with its checksum computed anew: 59 is the ceiling of 2^6. */
    bytes[16 + 63] = 59;
    bly_store64(bytes + n - 8, bly_checksum(bytes, n - 8));
    assert_ok(bly_hll_load(bytes, n, NULL, &t));
    assert_true(isfinite(bly_hll_estimate(t, NULL)));
    bly_hll_free(t);
    ledger l;
    ledger_open(&l);
    l.fail_at = 0;
    assert_status(bly_hll_load(bytes, n, &l.mem, &t), BLY_ENOMEM);
    assert_null(t);
    ledger_check(&l);
    bytes[16 + 63] = 60;
    bly_store64(bytes + n - 8, bly_checksum(bytes, n - 8));
    assert_status(bly_hll_load(bytes, n, NULL, &t), BLY_EFORMAT);
    assert_null(t);
    guarded_free(bytes, n);
    bly_hll_free(s);
}

static void bad_arguments(void **state)
{
    (void)state;
    static const unsigned bad[] = { 1, 3, 19, 64, 1000000 };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bly_hll *s = (bly_hll *)&s;
        assert_status(bly_hll_new(bad[i], NULL, &s), BLY_EINVAL);
        assert_null(s);
    }
    ledger l;
    bly_hll *s;
    ledger_open(&l);
    assert_ok(bly_hll_new(5, &l.mem, &s));
    assert_true(bly_hll_estimate(s, NULL) == 0); /* zeroed */
    bly_hll_free(s);
    l.fail_at = 1;
    assert_status(bly_hll_new(5, &l.mem, &s), BLY_ENOMEM);
    assert_null(s);
    ledger_check(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_its_deviation),
        cmocka_unit_test(nothing_and_again),
        cmocka_unit_test(extreme_hashes),
        cmocka_unit_test(merging_is_seeing_both),
        cmocka_unit_test(bytes_from_outside),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
