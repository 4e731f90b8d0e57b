/*
 * test_banding.c - bands, sign hashing, sampling of bits
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "tests/support.h"

/* 1 - (1 - s^r)^b to six places. */
static void chances(void **state)
{
    (void)state;
    static const double likeness[] = { 0.3, 0.5, 0.6, 0.7, 0.8, 0.9 };
    static const struct {
        bly_bands b;
        double chance[6];
    } rows[] = {
        { { 9, 13 },
          { 0.000001, 0.001098, 0.011693, 0.083896, 0.398844, 0.928604 } },
        { { 14, 8 },
          { 0.000918, 0.053320, 0.211122, 0.564504, 0.923548, 0.999622 } },
        { { 18, 7 },
          { 0.003929, 0.131665, 0.400148, 0.787112, 0.985542, 0.999992 } },
        { { 21, 6 },
          { 0.015198, 0.281590, 0.633358, 0.927811, 0.998312, 1.000000 } },
        { { 20, 5 },
          { 0.047494, 0.470051, 0.801902, 0.974781, 0.999644, 1.000000 } },
        { { 25, 4 },
          { 0.183987, 0.800803, 0.968885, 0.998955, 0.999998, 1.000000 } },
        { { 50, 2 },
          { 0.991045, 0.999999, 1.000000, 1.000000, 1.000000, 1.000000 } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t j = 0; j < COUNT_OF(likeness); j++)
            assert_between(bly_bands_chance(rows[i].b, likeness[j]),
                           rows[i].chance[j] - 5.1e-7,
                           rows[i].chance[j] + 5.1e-7);
        assert_true(bly_bands_chance(rows[i].b, 0) == 0);
        assert_true(bly_bands_chance(rows[i].b, 1) == 1);
    }
}

static void chosen_by_recall(void **state)
{
    (void)state;
    static const struct {
        unsigned k;
        double threshold, recall;
        unsigned bands, rows;
    } rows[] = {
        { 128, 0.9, 0, 14, 9 },      { 128, 0.8, 0, 21, 6 },
        { 128, 0.7, 0, 32, 4 },      { 128, 0.5, 0, 42, 3 },
        { 100, 0.9, 0.995, 11, 9 },  { 100, 0.8, 0.995, 20, 5 },
        { 100, 0.7, 0.995, 25, 4 },  { 100, 0.5, 0.995, 50, 2 },
        { 100, 0.3, 0.95, 50, 2 },   { 100, 0.8, 0.95, 14, 7 },
        { 512, 1.0, 0.995, 1, 512 }, { 1, 1.0, 0.5, 1, 1 },
    };
    bly_bands b;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_ok(
            bly_bands_choose(rows[i].k, rows[i].threshold, rows[i].recall, &b));
        assert_int_equal(b.bands, rows[i].bands);
        assert_int_equal(b.rows, rows[i].rows);
    }
    assert_ok(bly_bands_balance(128, 0.8, &b));
    assert_true(b.bands == 9 && b.rows == 13);
}

static void bad_arguments(void **state)
{
    (void)state;
    bly_bands b = { 7, 7 };
    assert_status(bly_bands_choose(0, 0.8, 0, &b), BLY_EINVAL);
    assert_status(bly_bands_choose(513, 0.8, 0, &b), BLY_EINVAL);
    assert_status(bly_bands_choose(128, 0, 0, &b), BLY_EINVAL);
    assert_status(bly_bands_choose(128, 1.1, 0, &b), BLY_EINVAL);
    assert_status(bly_bands_choose(128, NAN, 0, &b), BLY_EINVAL);
    assert_status(bly_bands_choose(128, 0.8, 1, &b), BLY_EINVAL);
    assert_status(bly_bands_choose(128, 0.8, -1, &b), BLY_EINVAL);
    assert_status(bly_bands_choose(4, 0.5, 0.995, &b), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "at most 0.9375"));
    assert_status(bly_bands_balance(0, 0.8, &b), BLY_EINVAL);
    assert_true(b.bands == 7 && b.rows == 7);
}

/* A key depends on the number of its band, on every component, on their order,
 * and on nothing else. */
static void keys_of_bands(void **state)
{
    (void)state;
    enum { BANDS = 5, ROWS = 4 };
    const bly_bands b = { BANDS, ROWS };
    uint32_t x[BANDS * ROWS];
    uint64_t keys[BANDS], other[BANDS];
    for (unsigned i = 0; i < BANDS * ROWS; i++)
        x[i] = i % ROWS + 1; /* the same in all bands */
    bly_bands_keys(b, x, keys);
    for (unsigned i = 0; i < BANDS; i++)
        for (unsigned j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
    for (unsigned c = 0; c < BANDS * ROWS; c++) {
        x[c] ^= UINT32_C(0x80000000);
        bly_bands_keys(b, x, other);
        for (unsigned i = 0; i < BANDS; i++)
            assert_true((keys[i] == other[i]) == (i != c / ROWS));
        x[c] ^= UINT32_C(0x80000000);
    }
    x[0] = 2;
    x[1] = 1; /* the same sum */
    bly_bands_keys(b, x, other);
    assert_true(keys[0] != other[0] && keys[1] == other[1]);
    /* What is on disk must mean the same tomorrow. */
    assert_true(keys[0] == UINT64_C(0x6fc1ebd4f4d6ea31));
}

/* Pairs of sets of known likeness are found as often as the curve says. */
static void candidates_follow_the_curve(void **state)
{
    (void)state;
    const size_t trials = scaled(3000);
    const bly_bands b = { 21, 6 };
    bly_sketch *s[2];
    for (unsigned i = 0; i < 2; i++)
        assert_ok(bly_sketch_new(
            &(bly_sketch_spec){ .family = BLY_LINEAR32, .k = 128 }, &s[i]));
    uint64_t random = 4;
    for (unsigned both = 100; both <= 160; both += 30) {
        double found = 0;
        for (size_t i = 0; i < trials; i++) {
            uint64_t x[200], keys[2][21];
            uint32_t parts[128];
            for (size_t j = 0; j < 200; j++)
                x[j] = test_random(&random);
            bly_sketch_clear(s[0]);
            bly_sketch_clear(s[1]);
            const size_t apart = (200 - both) / 2;
            assert_ok(bly_sketch_add(s[0], x, both + apart));
            assert_ok(bly_sketch_add(s[1], x + apart, both + apart));
            for (unsigned side = 0; side < 2; side++) {
                assert_true(bly_sketch_components(s[side], parts));
                bly_bands_keys(b, parts, keys[side]);
            }
            bool meet = false;
            for (unsigned j = 0; j < 21; j++)
                meet |= keys[0][j] == keys[1][j];
            found += meet;
        }
        const double p = bly_bands_chance(b, both / 200.0);
        const double n = (double)trials, sd = sqrt(n * p * (1 - p));
        assert_between(found, n * p - 5 * sd - 1, n * p + 5 * sd + 1);
    }
    bly_sketch_free(s[0]);
    bly_sketch_free(s[1]);
}

/* Sets of n with a share in common: cos theta is that share, and the bits that
 * differ say theta. */
static void signs_keep_angles(void **state)
{
    (void)state;
    enum { N = 400 };
    const size_t trials = scaled(400);
    uint64_t random = 12;
    for (unsigned both = 0; both <= N; both += 100) {
        double angle = 0;
        for (size_t i = 0; i < trials; i++) {
            uint64_t x[2 * N];
            for (size_t j = 0; j < 2 * N; j++)
                x[j] = test_random(&random);
            angle += bly_simhash_angle(bly_simhash(x, NULL, N),
                                       bly_simhash(x + N - both, NULL, N));
        }
        const double theta = acos(both / (double)N);
        /* 64 trials' bits, each a coin of theta/pi. */
        const double sd = 3.14159265 * 0.5 / sqrt(64.0 * (double)trials);
        assert_between(angle / (double)trials, theta - 5 * sd - 0.02,
                       theta + 5 * sd + 0.02);
    }
}

static void signs_by_hand(void **state)
{
    (void)state;
    const uint64_t x[] = { 0xff, 0x0f, 0x01 };
    const double w[] = { 5, 1, 1 };
    /* Bits 1 to 3 have two votes of three, bits 4 to 7 one. */
    assert_true(bly_simhash(x, NULL, 3) == 0x0f);
    assert_true(bly_simhash(x, w, 3) == 0xff);
    assert_true(bly_simhash(x, NULL, 2) == 0xff); /* a tie is a one */
    assert_true(bly_simhash(NULL, NULL, 0) == UINT64_MAX);
    assert_int_equal(bly_hamming(0xff, 0x0f), 4);
    assert_true(bly_simhash_angle(5, 5) == 0);
    assert_near(bly_simhash_angle(0, UINT64_MAX), 3.14159265358979, 1e-12);
}

/* Arrays that differ in d of f bits agree in r samples with probability
 * (1 - d/f)^r. */
static void samples_of_bits(void **state)
{
    (void)state;
    enum { F = 1000, D = 200 };
    unsigned char a[F / 8], b[F / 8];
    uint64_t random = 6;
    for (size_t i = 0; i < sizeof a; i++)
        a[i] = (unsigned char)test_random(&random);
    memcpy(b, a, sizeof a);
    for (unsigned left = D; left;) {
        const uint64_t j = test_random(&random) % F;
        if ((a[j / 8] ^ b[j / 8]) >> j % 8 & 1)
            continue;
        b[j / 8] ^= (unsigned char)(1 << j % 8);
        left--;
    }
    const size_t trials = scaled(20000);
    double meet = 0;
    for (uint64_t seed = 0; seed < trials; seed++)
        meet +=
            bly_sample_bits(a, F, seed, 4) == bly_sample_bits(b, F, seed, 4);
    const double n = (double)trials, p = pow(0.8, 4);
    assert_between(meet, n * p - 5 * sqrt(n * p * (1 - p)),
                   n * p + 5 * sqrt(n * p * (1 - p)));
    const unsigned char one = 1;
    assert_true(bly_sample_bits(&one, 1, 3, 64) == UINT64_MAX);
    assert_true(bly_sample_bits(&one, 1, 3, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chances),
        cmocka_unit_test(chosen_by_recall),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(keys_of_bands),
        cmocka_unit_test(candidates_follow_the_curve),
        cmocka_unit_test(signs_keep_angles),
        cmocka_unit_test(signs_by_hand),
        cmocka_unit_test(samples_of_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
