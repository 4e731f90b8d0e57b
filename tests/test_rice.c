/*
 * test_rice.c - where two arrays of bits differ, in few bits
 */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/rice.h"

/* An array of nbytes in which d bits anywhere are set. */
static unsigned char *scattered(size_t nbytes, uint64_t d, uint64_t *random)
{
    unsigned char *a = calloc(nbytes + 1, 1);
    assert_non_null(a);
    while (d) {
        const uint64_t p = test_random(random) % (8 * (uint64_t)nbytes);
        const unsigned char bit = (unsigned char)(1u << p % 8);
        d -= !(a[p / 8] & bit);
        a[p / 8] |= bit;
    }
    return a;
}

/* The stream from a to b, which ends at a wall. */
static unsigned char *stream_of(const unsigned char *a, const unsigned char *b,
                                size_t nbytes, bly_rice *r)
{
    bly_rice_measure(a, b, nbytes, r);
    unsigned char *stream = guarded_new((size_t)r->nbytes);
    bly_rice_write(a, b, nbytes, r, stream);
    return stream;
}

static void round_trip(const unsigned char *a, const unsigned char *b,
                       size_t nbytes)
{
    bly_rice r;
    unsigned char *stream = stream_of(a, b, nbytes, &r);
    unsigned char *data = guarded_new(nbytes);
    memcpy(data, a, nbytes);
    bly_rice again = { .nflips = r.nflips, .b = r.b };
    assert_true(bly_rice_flip(stream, (size_t)r.nbytes, &again, data, nbytes));
    assert_int_equal(again.nbytes, r.nbytes);
    assert_memory_equal(data, b, nbytes);
    /* Toggled: a second time undoes the first. */
    assert_true(bly_rice_flip(stream, (size_t)r.nbytes, &again, data, nbytes));
    assert_memory_equal(data, a, nbytes);
    guarded_free(data, nbytes);
    guarded_free(stream, (size_t)r.nbytes);
}

static void round_trips(void **unused)
{
    (void)unused;
    uint64_t random = 1;
    for (size_t nbytes = 1; nbytes < 70; nbytes++) {
        const uint64_t m = 8 * (uint64_t)nbytes;
        for (uint64_t d = 0; d <= m; d += 1 + d / 3) {
            unsigned char *a = scattered(nbytes, m / 2, &random);
            unsigned char *flips = scattered(nbytes, d, &random);
            for (size_t i = 0; i < nbytes; i++)
                flips[i] ^= a[i];
            round_trip(a, flips, nbytes);
            free(a);
            free(flips);
        }
    }
    round_trip((const unsigned char *)"", (const unsigned char *)"", 0);
    /* One position, in the last byte, and two at the ends. */
    for (size_t i = 0; i < 4; i++) {
        const size_t nbytes = ((size_t)1 << 20) + i;
        unsigned char *a = calloc(nbytes, 1), *b = calloc(nbytes, 1);
        assert_true(a && b);
        b[nbytes - 1] = 0x80;
        round_trip(a, b, nbytes);
        b[0] = 1;
        round_trip(a, b, nbytes);
        free(a);
        free(b);
    }
}

/* The bits that the essay of rice.c describes. */
static void a_stream_bit_by_bit(void **unused)
{
    (void)unused;
    /* Positions 1, 5, 6, 60 of 64: gaps 1, 3, 0, 53. m/d = 16, so b = 3. */
    const unsigned char zero[8] = { 0 },
                        set[8] = { 0x62, 0, 0, 0, 0, 0, 0, 0x10 };
    /* 1 100 | 1 110 | 1 000 | 000000 1 101 */
    const unsigned char want[3] = { 0x73, 0x01, 0x2c };
    bly_rice r;
    unsigned char *stream = stream_of(zero, set, 8, &r);
    assert_int_equal(r.nflips, 4);
    assert_int_equal(r.b, 3);
    assert_int_equal(r.nbytes, 3);
    assert_memory_equal(stream, want, 3);
    guarded_free(stream, 3);
}

static double entropy_of(double d, double m)
{
    return d * log2(m / d) + (m - d) * log2(m / (m - d));
}

/* d gaps cost d (b + 1 + q^(2^b) / (1 - q^(2^b))), and m H(d/m) at least. */
static void costs_what_is_expected(void **unused)
{
    (void)unused;
    static const struct {
        size_t m, d;
        unsigned b;
        double bits;
    } rows[] = {
        { 80000, 600, 6, 5169 },
        { 80000, 6000, 3, 30930 },
        { 8000000, 60000, 6, 516930 },
    };
    uint64_t random = 2;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const double m = (double)rows[i].m, d = (double)rows[i].d;
        const size_t trials = scaled(rows[i].m > 100000 ? 8 : 200);
        unsigned char *none = calloc(rows[i].m / 8, 1);
        double sum = 0;
        assert_non_null(none);
        assert_int_equal(bly_rice_parameter(rows[i].m, rows[i].d), rows[i].b);
        for (size_t t = 0; t < trials; t++) {
            unsigned char *a = scattered(rows[i].m / 8, rows[i].d, &random);
            bly_rice r;
            bly_rice_measure(none, a, rows[i].m / 8, &r);
            assert_int_equal(r.nflips, rows[i].d);
            sum += 8 * (double)r.nbytes;
            free(a);
        }
        /* Of 5169 bits the spread is below 50 a trial; the bytes round up, and
         * now and then b + 1 is cheaper by a few bits. */
        assert_near(sum / (double)trials, rows[i].bits, 0.005);
        assert_true(sum / (double)trials < 1.03 * entropy_of(d, m));
        free(none);
    }
}

/* Wherever m/d lies between two powers of two, at most 0.12 bits a position
 * are lost, and 0.01 for chance. */
static void the_parameter_fits(void **unused)
{
    (void)unused;
    enum { NBYTES = 1 << 20 };
    const double m = 8.0 * NBYTES;
    uint64_t random = 3;
    unsigned char *none = calloc(NBYTES, 1);
    assert_non_null(none);
    for (double mean = 32; mean < 300; mean *= 1.15) {
        const double d = floor(m / mean);
        unsigned char *a = scattered(NBYTES, (uint64_t)d, &random);
        bly_rice r;
        bly_rice_measure(none, a, NBYTES, &r);
        assert_between((8 * (double)r.nbytes - entropy_of(d, m)) / d, 0, 0.13);
        free(a);
    }
    free(none);
}

/* --------------------------------------------------------- hostile streams */

static bool flips(const unsigned char *stream, size_t n, uint64_t nflips,
                  unsigned b, size_t nbytes)
{
    bly_rice r = { .nflips = nflips, .b = b };
    unsigned char *data = guarded_new(nbytes);
    const bool ok = bly_rice_flip(stream, n, &r, data, nbytes);
    if (ok)
        assert_true(r.nbytes <= n);
    guarded_free(data, nbytes);
    return ok;
}

static void streams_that_lie(void **unused)
{
    (void)unused;
    enum { NBYTES = 200 };
    uint64_t random = 4;
    unsigned char none[NBYTES] = { 0 };
    unsigned char *a = scattered(NBYTES, 40, &random);
    bly_rice r;
    unsigned char *stream = stream_of(none, a, NBYTES, &r);
    const size_t n = (size_t)r.nbytes;
    assert_true(flips(stream, n, 40, r.b, NBYTES));
    /* Cut short, before a wall. */
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *part = guarded_new(cut);
        memcpy(part, stream, cut);
        assert_false(flips(part, cut, 40, r.b, NBYTES));
        guarded_free(part, cut);
    }
    /* An array that is too short by the last position. */
    assert_false(flips(stream, n, 40, r.b, 1));
    /* Any bit wrong, any parameter, any count: an answer, and no step outside.
     * Parameters past the last are refused. */
    for (size_t bit = 0; bit < 8 * n; bit++) {
        stream[bit / 8] ^= (unsigned char)(1u << bit % 8);
        for (unsigned b = 0; b <= 255; b += b < 70 ? 1 : 37)
            if (flips(stream, n, 40, b, NBYTES))
                assert_true(b <= BLY_RICE_MAX_B);
        stream[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_false(flips(stream, n, 41, r.b, NBYTES));
    assert_false(flips(stream, n, UINT64_MAX, r.b, NBYTES));
    assert_false(flips(stream, n, UINT64_MAX, 0, NBYTES));
    assert_false(flips(stream, n, 8 * n / (r.b + 1) + 1, r.b, NBYTES));
    guarded_free(stream, n);
    free(a);
}

/* Streams that are one position each. */
static void the_last_position_and_the_one_behind(void **unused)
{
    (void)unused;
    /* b = 4: a one, then the four bits of the gap. */
    const unsigned char last = 1 | 15 << 1, behind[2] = { 2 | 0 << 2, 0 };
    assert_true(flips(&last, 1, 1, 4, 2));
    assert_false(flips(&last, 1, 1, 4, 1));
    assert_false(flips(behind, 2, 1, 4, 2)); /* one zero: 16 of 16 */
    assert_true(flips(behind, 2, 1, 4, 3));
    /* Bits behind the gap. */
    const unsigned char dirty = 1 | 15 << 1 | 1 << 5;
    assert_false(flips(&dirty, 1, 1, 4, 2));
    /* b = 40: a one, then 40 bits, in two steps. */
    unsigned char far[6] = { 1 | 15 << 1 };
    assert_true(flips(far, 6, 1, 40, 2));
    far[5] = 1; /* 15 + 2^39 */
    assert_false(flips(far, 6, 1, 40, 1 << 20));
    assert_false(flips(far, 5, 1, 40, 2));
    /* b = 63: 2 * 2^63 is not 0. */
    const unsigned char huge[9] = { 4 };
    assert_false(flips(huge, 9, 1, 63, 2));
    /* No array, no positions. */
    assert_true(flips(&last, 0, 0, 4, 0));
    assert_false(flips(&last, 1, 1, 4, 0));
    /* Nothing but zeros, more of them than the array has places. */
    unsigned char *zeros = calloc(1, 1 << 16);
    assert_non_null(zeros);
    for (unsigned b = 0; b <= BLY_RICE_MAX_B; b++)
        assert_false(flips(zeros, 1 << 16, 1, b, 1 << 10));
    free(zeros);
}

static void random_streams(void **unused)
{
    (void)unused;
    uint64_t random = 5;
    for (size_t i = 0; i < scaled(50000); i++) {
        unsigned char stream[40];
        for (size_t j = 0; j < sizeof stream; j++)
            stream[j] = (unsigned char)test_random(&random);
        const uint64_t x = test_random(&random);
        const size_t n = x % sizeof stream;
        unsigned char *wall = guarded_new(n);
        memcpy(wall, stream, n);
        flips(wall, n, x >> 8 & 15, x >> 16 & 7, x >> 24 & 63);
        guarded_free(wall, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(a_stream_bit_by_bit),
        cmocka_unit_test(costs_what_is_expected),
        cmocka_unit_test(the_parameter_fits),
        cmocka_unit_test(streams_that_lie),
        cmocka_unit_test(the_last_position_and_the_one_behind),
        cmocka_unit_test(random_streams),
    };
    return cmocka_run_group_tests_name("rice", tests, NULL, NULL);
}
