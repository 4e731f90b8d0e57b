/*
 * test_bits.c - arrays of bits, little-endian words, ranges
 *
 * Every function of bits.h against code that does the same a bit at a time,
 * and every row of the counting variants against the last one, which is the
 * definition. The arrays end where memory ends.
 */
#define _GNU_SOURCE
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "engine/bit_count.h"

/* Values at which carries, shifts and signs go wrong. */
static const uint64_t edges[] = {
    0,
    1,
    2,
    3,
    63,
    64,
    65,
    0xffff,
    0x10000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x100000001,
    0xfffffffeffffffff,
    0x7ffffffffffffffe,
    0x7fffffffffffffff,
    0x8000000000000000,
    0x8000000000000001,
    0xaaaaaaaaaaaaaaaa,
    0x5555555555555555,
    0xffffffff00000000,
    0xfffffffffffffffe,
    0xffffffffffffffff,
};

/* An edge, or a number of any magnitude. */
static uint64_t edgy(uint64_t *random)
{
    const uint64_t x = test_random(random);
    if (x % 4 == 0)
        return edges[(x >> 8) % COUNT_OF(edges)];
    return test_random(random) >> ((x >> 8) % 64);
}

/* ---------------------------------------------------------------- ranges */

/* The high half of a product by long multiplication, a bit at a time. */
static uint64_t mulhi_by_bits(uint64_t a, uint64_t b)
{
    uint64_t high = 0, low = 0;
    for (int i = 63; i >= 0; i--) {
        high = high << 1 | low >> 63;
        low <<= 1;
        if (b >> i & 1) {
            low += a;
            high += low < a;
        }
    }
    return high;
}

static void high_half_of_a_product(void **state)
{
    (void)state;
    assert_true(bly_mulhi(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    assert_true(bly_mulhi(UINT64_C(1) << 32, UINT64_C(1) << 32) == 1);
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++) {
        const uint64_t a = edgy(&random), b = edgy(&random);
        const uint64_t want = mulhi_by_bits(a, b);
        assert_true(bly_mulhi(a, b) == want);
        assert_true(bly_mulhi_narrow_(a, b) == want);
        if (b && b <= INT64_MAX)
            assert_true(bly_mod(a, bly_modulus_of(b)) == a % b);
    }
}

/* Into [0, n), in order, each value as often as the next but for one. */
static void scale_divides_evenly(void **state)
{
    (void)state;
    assert_true(bly_scale(0, 10) == 0);
    assert_true(bly_scale(UINT64_MAX, 10) == 9);
    assert_true(bly_scale(UINT64_MAX, 1) == 0);
    assert_true(bly_scale(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    for (uint64_t n = 1; n < 500; n++) {
        /* The least hash that gives j is ceil(j 2^64 / n). */
        for (uint64_t j = 1; j < n; j++) {
            const uint64_t first = UINT64_MAX / n * j +
                                   (UINT64_MAX % n * j + j) / n +
                                   ((UINT64_MAX % n * j + j) % n != 0);
            assert_true(bly_scale(first, n) == j);
            assert_true(bly_scale(first - 1, n) == j - 1);
        }
    }
}

static void modulus_is_the_remainder(void **state)
{
    (void)state;
    uint64_t random = 2;
    for (size_t i = 0; i < COUNT_OF(edges); i++) {
        const uint64_t n = edges[i];
        if (n == 0 || n > INT64_MAX) /* its stated range */
            continue;
        const bly_modulus by = bly_modulus_of(n);
        for (size_t j = 0; j < COUNT_OF(edges); j++) {
            assert_true(bly_mod(edges[j], by) == edges[j] % n);
            assert_true(bly_div(edges[j], by) == edges[j] / n);
        }
        for (uint64_t q = 0; q < 300; q++) {
            /* About multiples, small and large, where a quotient is short. */
            const uint64_t low = q * n, high = UINT64_MAX - q;
            assert_true(bly_mod(low, by) == low % n);
            assert_true(bly_mod(low - 1, by) == (low - 1) % n);
            assert_true(bly_mod(high, by) == high % n);
            assert_true(bly_mod(high / n * n, by) == 0);
            assert_true(bly_mod(high / n * n - 1, by) == n - 1);
        }
    }
    for (int i = 0; i < 300000; i++) {
        const uint64_t n = edgy(&random) >> 1, h = edgy(&random);
        if (n) {
            assert_true(bly_mod(h, bly_modulus_of(n)) == h % n);
            assert_true(bly_div(h, bly_modulus_of(n)) == h / n);
        }
    }
}

/* ---------------------------------------------------------------- mixing */

/* x from x ^ (x >> by). */
static uint64_t unshift(uint64_t y, int by)
{
    uint64_t x = y;
    for (int done = by; done < 64; done += by)
        x = y ^ x >> by;
    return x;
}

/* The inverse of an odd number mod 2^64, by Newton. */
static uint64_t inverse_of(uint64_t a)
{
    uint64_t x = a;
    for (int i = 0; i < 6; i++)
        x *= 2 - a * x;
    return x;
}

static uint64_t unmix64(uint64_t x)
{
    x = unshift(x, 31) * inverse_of(0x94d049bb133111eb);
    x = unshift(x, 27) * inverse_of(0xbf58476d1ce4e5b9);
    return unshift(x, 30);
}

/* Two steps of SplitMix64 from 0 are published; nothing is lost on the way;
 * and each input bit moves each output bit half of the time. */
static void mix_is_a_good_bijection(void **state)
{
    (void)state;
    const uint64_t step = 0x9e3779b97f4a7c15;
    assert_true(bly_mix64(step) == 0xe220a8397b1dcdaf);
    assert_true(bly_mix64(2 * step) == 0x6e789e6aa1b965f4);
    uint64_t random = 3;
    for (int i = 0; i < 10000; i++) {
        const uint64_t x = edgy(&random);
        assert_true(unmix64(bly_mix64(x)) == x);
    }
    enum { RUNS = 4000 };
    static int flips[64][64];
    memset(flips, 0, sizeof flips);
    for (int run = 0; run < RUNS; run++) {
        const uint64_t x = test_random(&random);
        for (int in = 0; in < 64; in++) {
            const uint64_t moved =
                bly_mix64(x) ^ bly_mix64(x ^ UINT64_C(1) << in);
            for (int out = 0; out < 64; out++)
                flips[in][out] += (int)(moved >> out & 1);
        }
    }
    /* sd 0.5 / sqrt(4000) = 0.8 %; the worst pair of 4096 is off by 4 sd,
     * and the mixer's own bias by about as much again. */
    for (int in = 0; in < 64; in++)
        for (int out = 0; out < 64; out++)
            assert_between((double)flips[in][out] / RUNS, 0.44, 0.56);
}

/* ------------------------------------------------------------------ bits */

#define MANY 1217 /* words: past two pieces of 512, and not a multiple */

/* Bit j as the file format has it, whatever the machine's byte order. */
static bool byte_bit(const void *array, uint64_t j)
{
    return ((const unsigned char *)array)[j / 8] >> (j % 8) & 1;
}

static void little_endian_words(void **state)
{
    (void)state;
    const uint64_t wide = bly_le64(UINT64_C(0x0807060504030201));
    const uint32_t word = bly_le32(UINT32_C(0x04030201));
    for (int i = 0; i < 8; i++)
        assert_int_equal(((const unsigned char *)&wide)[i], i + 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(((const unsigned char *)&word)[i], i + 1);
}

static void one_bit_at_a_time(void **state)
{
    (void)state;
    enum { NBITS = 256 };
    uint64_t *words = guarded_new(NBITS / 8);
    bool want[NBITS] = { false };
    uint64_t random = 4;
    memset(words, 0, NBITS / 8);
    for (int i = 0; i < 20000; i++) {
        const uint64_t x = test_random(&random), j = x % NBITS;
        switch (x >> 32 & 3) {
        case 0:
            bly_bit_clear(words, j);
            want[j] = false;
            break;
        case 1:
            assert_true(bly_bit_set(words, j) == !want[j]);
            want[j] = true;
            break;
        case 2: {
            const uint64_t mask = bly_le64(UINT64_C(1) << (j % 64));
            assert_true(bly_word_or_shared(&words[j / 64], mask) ==
                        (want[j] ? 0 : mask));
            want[j] = true;
            break;
        }
        default:
            assert_true(bly_word_load(&words[j / 64]) == words[j / 64]);
        }
        assert_true(bly_bit_get(words, j) == want[j]);
        assert_true(byte_bit(words, j) == want[j]);
        if (i % 1000 == 0)
            for (uint64_t b = 0; b < NBITS; b++)
                assert_true(byte_bit(words, b) == want[b]);
    }
    guarded_free(words, NBITS / 8);
}

/* Of a mask, only what was clear comes back. */
static void shared_or_tells_what_was_clear(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int i = 0; i < 10000; i++) {
        const uint64_t old = edgy(&random), mask = edgy(&random);
        uint64_t word = old;
        assert_true(bly_word_or_shared(&word, mask) == (mask & ~old));
        assert_true(word == (old | mask));
    }
}

/* Each of four threads ORs every bit in; exactly one of them is told that it
 * was the first. */
#define RACE_WORDS 4096
static uint64_t race_words[RACE_WORDS];
static uint64_t race_claimed[4][RACE_WORDS];

static void *race_run(void *arg)
{
    uint64_t *claimed = arg;
    for (size_t i = 0; i < RACE_WORDS; i++)
        for (int bit = 0; bit < 64; bit += 8)
            claimed[i] |=
                bly_word_or_shared(&race_words[i], UINT64_C(0xff) << bit);
    return NULL;
}

static void shared_or_in_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int t = 0; t < 4; t++)
        assert_int_equal(
            pthread_create(&threads[t], NULL, race_run, race_claimed[t]), 0);
    for (int t = 0; t < 4; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    for (size_t i = 0; i < RACE_WORDS; i++) {
        uint64_t all = 0;
        for (int t = 0; t < 4; t++) {
            assert_true((all & race_claimed[t][i]) == 0);
            all |= race_claimed[t][i];
        }
        assert_true(all == UINT64_MAX && race_words[i] == UINT64_MAX);
    }
}

/* ---------------------------------------------------------------- arrays */

static uint64_t count_by_bits(const uint64_t *a, size_t nwords)
{
    uint64_t sum = 0;
    for (uint64_t j = 0; j < 64 * nwords; j++)
        sum += byte_bit(a, j);
    return sum;
}

/* Two guarded arrays of nwords of mixed density. */
static void two_arrays(uint64_t *random, size_t nwords, uint64_t **a,
                       uint64_t **b)
{
    *a = guarded_new(nwords * sizeof **a);
    *b = guarded_new(nwords * sizeof **b);
    for (size_t i = 0; i < nwords; i++) {
        (*a)[i] = edgy(random);
        (*b)[i] = test_random(random);
    }
}

static void counting_and_combining(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0,  1,  2,  3,   7,   8,   9,    15,
                                    16, 17, 63, 511, 512, 513, 1024, MANY };
    uint64_t random = 6, *a, *b, *c;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        const size_t n = sizes[s], nbytes = n * sizeof *a;
        two_arrays(&random, n, &a, &b);
        c = guarded_new(nbytes);
        assert_true(bly_bits_count(a, n) == count_by_bits(a, n));
        assert_true(bly_bits_count(b, n) == count_by_bits(b, n));

        for (size_t i = 0; i < n; i++)
            c[i] = a[i] | b[i];
        assert_true(bly_bits_count_or(a, b, n) == count_by_bits(c, n));
        uint64_t *got = guarded_new(nbytes);
        memcpy(got, a, nbytes);
        bly_bits_or(got, b, n);
        assert_memory_equal(got, c, nbytes);

        for (size_t i = 0; i < n; i++)
            c[i] = a[i] & b[i];
        memcpy(got, a, nbytes);
        bly_bits_and(got, b, n);
        assert_memory_equal(got, c, nbytes);
        assert_true(bly_bits_count(got, n) == count_by_bits(c, n));

        guarded_free(got, nbytes);
        guarded_free(c, nbytes);
        guarded_free(a, nbytes);
        guarded_free(b, nbytes);
    }
}

/* Every row that this processor can run gives what the last row gives, on
 * all sizes to 70 words and from every start within a cache line. */
static void counting_variants_agree(void **state)
{
    (void)state;
    const bly_count_row *const last = LAST_ROW(count);
    assert_string_equal(last->name, "portable");
    uint64_t random = 7, *a, *b;
    two_arrays(&random, MANY, &a, &b);
    EACH_ROW(count, v)
    {
        for (size_t start = 0; start < 8; start++)
            for (size_t n = 0; n < 70; n++)
                assert_true(v->count(b + start, n) ==
                            last->count(b + start, n));
        assert_true(v->count(a, MANY) == count_by_bits(a, MANY));
        memset(b, 0xff, MANY * sizeof *b);
        assert_true(v->count(b, MANY) == 64 * MANY);
    }
    guarded_free(a, MANY * sizeof *a);
    guarded_free(b, MANY * sizeof *b);
}

/* A single bit anywhere is in the tail, or is not. */
static void tail_is_clear(void **state)
{
    (void)state;
    enum { N = 4 };
    uint64_t *a = guarded_new(N * sizeof *a);
    for (uint64_t from = 0; from <= 64 * N; from++) {
        memset(a, 0, N * sizeof *a);
        assert_true(bly_bits_tail_clear(a, from, N));
        for (uint64_t j = 0; j < 64 * N; j++) {
            bly_bit_set(a, j);
            assert_true(bly_bits_tail_clear(a, from, N) == (j < from));
            bly_bit_clear(a, j);
        }
    }
    /* No words, and a start past the end: nothing is read. */
    assert_true(bly_bits_tail_clear(a + N, 0, 0));
    assert_true(bly_bits_tail_clear(a, 64 * N + 70, N));
    guarded_free(a, N * sizeof *a);
}

/* BLY_CPU names what stays; nothing can be switched on that is not there. */
/* Every length around a few words; bits past the end do not come along. */
static void folding_in_half(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (uint64_t half = 1; half < 400; half++) {
        const size_t nwords = (size_t)((2 * half + 63) / 64);
        const size_t nhalf = (size_t)((half + 63) / 64);
        uint64_t *src = guarded_new(nwords * 8);
        uint64_t *halves = guarded_new(nhalf * 8);
        uint64_t *pairs = guarded_new(nhalf * 8);
        for (size_t i = 0; i < nwords; i++)
            src[i] = test_random(&random) & test_random(&random);
        bly_bits_fold_halves(halves, src, half);
        bly_bits_fold_pairs(pairs, src, half);
        for (uint64_t j = 0; j < half; j++) {
            assert_true(bly_bit_get(halves, j) ==
                        (bly_bit_get(src, j) || bly_bit_get(src, j + half)));
            assert_true(bly_bit_get(pairs, j) == (bly_bit_get(src, 2 * j) ||
                                                  bly_bit_get(src, 2 * j + 1)));
        }
        assert_true(bly_bits_tail_clear(halves, half, nhalf));
        assert_true(bly_bits_tail_clear(pairs, half, nhalf));
        guarded_free(src, nwords * 8);
        guarded_free(halves, nhalf * 8);
        guarded_free(pairs, nhalf * 8);
    }
}

static void features_can_be_turned_off(void **state)
{
    (void)state;
    const char *given = getenv("BLY_CPU");
    char *kept = given ? strdup(given) : NULL;
    unsetenv("BLY_CPU");
    const uint32_t all = bly_cpu_features();
    setenv("BLY_CPU", "portable", 1);
    assert_int_equal(bly_cpu_features(), 0);
    setenv("BLY_CPU", "popcnt", 1);
    assert_int_equal(bly_cpu_features(), all & BLY_CPU_POPCNT);
    setenv("BLY_CPU", "avx2,popcnt", 1);
    assert_int_equal(bly_cpu_features(), all & (BLY_CPU_POPCNT | BLY_CPU_AVX2));
    unsetenv("BLY_CPU");
    if (kept)
        setenv("BLY_CPU", kept, 1);
    free(kept);
}

static void words_lie_at_any_address(void **state)
{
    (void)state;
    unsigned char bytes[16];
    for (unsigned at = 0; at <= 8; at++) {
        memset(bytes, 0xee, sizeof bytes);
        bly_store64(bytes + at, UINT64_C(0x0807060504030201));
        for (unsigned i = 0; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], i - at < 8 ? i - at + 1 : 0xee);
        assert_true(bly_load64(bytes + at) == UINT64_C(0x0807060504030201));
    }
}

/* Edges and random words of all densities, every one of their ones. */
static void selects_every_one(void **state)
{
    (void)state;
    uint64_t x = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t a = bly_mix64(2 * i + 1), b = bly_mix64(2 * i + 2);
        const size_t nedges = sizeof edges / sizeof edges[0];
        x = i < nedges ? edges[i] : i % 3 == 0 ? a : i % 3 == 1 ? a & b : a | b;
        unsigned k = 0;
        for (unsigned j = 0; j < 64; j++) {
            if (x >> j & 1)
                assert_int_equal(bly_select(x, k++), j);
            assert_int_equal(__builtin_popcountll(x & bly_through(j)), k);
        }
    }
}

/* The k-th one of a word, by every way there is. */
static void ones_of_a_word(void **state)
{
    (void)state;
    const bool pdep = bly_cpu_features() & BLY_CPU_AVX512;
    uint64_t rng = 11;
    for (int round = 0; round < 1000; round++) {
        const uint64_t x = round ? test_random(&rng) & test_random(&rng) : 0;
        unsigned k = 0;
        for (unsigned at = 0; at < 64; at++)
            if (x >> at & 1) {
                for (int by = 0; by <= pdep; by++) {
                    assert_int_equal(bly_select_by(x, k, by), at);
                    assert_true(bly_nth_one(x, k, by) == UINT64_C(1) << at);
                }
                k++;
            }
        for (; k < 64; k++)
            for (int by = 0; by <= pdep; by++)
                assert_true(bly_nth_one(x, k, by) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ones_of_a_word),
        cmocka_unit_test(words_lie_at_any_address),
        cmocka_unit_test(selects_every_one),
        cmocka_unit_test(high_half_of_a_product),
        cmocka_unit_test(scale_divides_evenly),
        cmocka_unit_test(modulus_is_the_remainder),
        cmocka_unit_test(mix_is_a_good_bijection),
        cmocka_unit_test(little_endian_words),
        cmocka_unit_test(one_bit_at_a_time),
        cmocka_unit_test(shared_or_tells_what_was_clear),
        cmocka_unit_test(shared_or_in_threads),
        cmocka_unit_test(counting_and_combining),
        cmocka_unit_test(counting_variants_agree),
        cmocka_unit_test(tail_is_clear),
        cmocka_unit_test(folding_in_half),
        cmocka_unit_test(features_can_be_turned_off),
    };
    return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
