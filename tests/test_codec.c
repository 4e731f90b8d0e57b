/*
 * test_codec.c - arrays to fewer bytes, and back
 *
 * Every array comes back; how many bytes it takes is held against its entropy;
 * and whatever is not the one coded form of an array is refused.
 */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/range.h"

static const bly_code codes[] = { BLY_CODE_BITS, BLY_CODE_BYTES };

static byte_array coded(bly_code code, const unsigned char *data, size_t n)
{
    byte_array a = { 0 };
    const uint64_t ncoded = bly_encode(code, data, n, put_bytes, &a);
    assert_int_equal(ncoded, a.n);
    assert_int_equal(bly_encode(code, data, n, NULL, NULL), a.n);
    assert_true(a.n >= bly_coded_least(n));
    assert_true(a.n <= bly_coded_most(n));
    return a;
}

/* Code n bytes and back, between walls; how many they were meanwhile. */
static size_t there_and_back(bly_code code, const unsigned char *data, size_t n)
{
    byte_array a = coded(code, data, n);
    unsigned char *in = guarded_new(a.n), *out = guarded_new(n);
    if (a.n)
        memcpy(in, a.at, a.n);
    memset(out, 0xa5, n);
    assert_true(bly_decode(code, in, a.n, out, n));
    if (n)
        assert_memory_equal(out, data, n);
    guarded_free(in, a.n);
    guarded_free(out, n);
    free(a.at);
    return a.n;
}

/* m bits in whole words, each a one with chance p; their number in *ones. */
static unsigned char *random_bits(uint64_t *rng, size_t m, double p,
                                  uint64_t *ones, size_t *n)
{
    *n = (m + 63) / 64 * 8;
    unsigned char *data = calloc(1, *n);
    assert_non_null(data);
    *ones = 0;
    for (size_t i = 0; i < m; i++)
        if ((double)(test_random(rng) >> 11) * 0x1p-53 < p) {
            data[i / 8] |= (unsigned char)(1 << i % 8);
            ++*ones;
        }
    return data;
}

static double entropy_bits(double m, double ones)
{
    return ones <= 0 || ones >= m
               ? 0
               : -ones * log2(ones / m) - (m - ones) * log2(1 - ones / m);
}

/* ------------------------------------------------------------------- sizes */

/* The promise: within 1 % and 16 bytes of m H(X/m). */
static void bits_take_their_entropy(void **unused)
{
    (void)unused;
    static const double densities[] = { 0,     0.0001, 0.0003, 0.001, 0.003,
                                        0.01,  0.03,   0.1,    0.2,   0.3,
                                        0.5,   0.7,    0.9,    0.97,  0.99,
                                        0.999, 0.9999, 1 };
    static const size_t sizes[] = { 100000, 100001, 131072, 1000000 };
    uint64_t rng = 1;
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (size_t d = 0; d < COUNT_OF(densities); d++) {
            uint64_t ones;
            size_t n;
            unsigned char *data =
                random_bits(&rng, sizes[s], densities[d], &ones, &n);
            const double took = (double)there_and_back(BLY_CODE_BITS, data, n);
            const double least =
                entropy_bits((double)sizes[s], (double)ones) / 8;
            assert_between(took, 0,
                           fmax(1.01 * least + 16, (double)bly_coded_least(n)));
            free(data);
        }
}

/* The same for bytes of a known distribution, and for pure chance, which
 * nobody can shorten. */
static void bytes_take_their_entropy(void **unused)
{
    (void)unused;
    const size_t n = 200000;
    unsigned char *data = malloc(n);
    assert_non_null(data);
    uint64_t rng = 2;
    for (int few = 0; few <= 1; few++) {
        uint64_t count[256] = { 0 };
        double least = 0;
        for (size_t i = 0; i < n; i++) {
            const uint64_t x = test_random(&rng);
            data[i] = few ? (unsigned char)__builtin_ctzll(x | 1u << 20)
                          : (unsigned char)x;
            count[data[i]]++;
        }
        for (int s = 0; s < 256; s++)
            if (count[s])
                least -= (double)count[s] * log2((double)count[s] / (double)n);
        const double took = (double)there_and_back(BLY_CODE_BYTES, data, n);
        assert_between(took, least / 8, 1.005 * least / 8);
    }
    free(data);
}

/* Arrays long enough for the counts to be halved, which needs a million
 * symbols, and of two densities: what is long past counts less, and the
 * second half does not pay for the first for ever. */
static void long_arrays_come_back(void **unused)
{
    (void)unused;
    const size_t m = 48000000;
    for (size_t c = 0; c < COUNT_OF(codes); c++) {
        uint64_t rng = 3, sparse, dense;
        size_t na, nb;
        unsigned char *a = random_bits(&rng, m / 4, 0.001, &sparse, &na);
        unsigned char *b = random_bits(&rng, m - m / 4, 0.1, &dense, &nb);
        unsigned char *both = malloc(na + nb);
        assert_non_null(both);
        memcpy(both, a, na);
        memcpy(both + na, b, nb);
        const double took = (double)there_and_back(codes[c], both, na + nb);
        const double apart = (double)(bly_encode(codes[c], a, na, NULL, NULL) +
                                      bly_encode(codes[c], b, nb, NULL, NULL));
        assert_between(took, apart, 1.1 * apart);
        free(a);
        free(b);
        free(both);
    }
}

/* --------------------------------------------------------------- every size */

static void short_arrays_come_back(void **unused)
{
    (void)unused;
    uint64_t rng = 4;
    unsigned char data[300];
    for (size_t n = 0; n <= sizeof data; n++)
        for (int density = 0; density <= 8; density++) {
            for (size_t i = 0; i < n; i++) {
                unsigned x = 0;
                for (int bit = 0; bit < 8; bit++)
                    x = x << 1 | (test_random(&rng) >> 61 < (unsigned)density);
                data[i] = (unsigned char)x;
            }
            for (size_t c = 0; c < COUNT_OF(codes); c++)
                there_and_back(codes[c], data, n);
        }
}

/* Every word of up to two ones, up to two zeros, and some of all others: each
 * has a number of its own. */
static void words_come_back(void **unused)
{
    (void)unused;
    unsigned char data[4 * (32 * 33 + 4000)];
    size_t n = 0;
    uint64_t rng = 5;
    for (int i = 0; i < 32; i++)
        for (int j = 0; j <= i; j++) {
            const uint32_t two = UINT32_C(1) << i | UINT32_C(1) << j;
            for (int b = 0; b < 4; b++) {
                data[n + (size_t)b] = (unsigned char)(two >> 8 * b);
                data[n + 4 + (size_t)b] = (unsigned char)(~two >> 8 * b);
            }
            n += 8;
        }
    for (; n + 4 <= sizeof data; n += 4) {
        uint64_t word = test_random(&rng);
        for (uint64_t turns = word >> 60; turns; turns--)
            word =
                turns & 1 ? word & test_random(&rng) : word | test_random(&rng);
        for (size_t b = 0; b < 4; b++)
            data[n + b] = (unsigned char)(word >> 8 * b);
    }
    there_and_back(BLY_CODE_BITS, data, n);
}

/* The example of docs/format.md. */
static void the_example_of_the_page(void **unused)
{
    (void)unused;
    static const unsigned char data[] = { 0, 0x10, 0, 0x40, 0, 0, 0, 0 };
    static const unsigned char want[] = { 0x16, 0x45, 0x91, 0x64,
                                          0x59, 0x16, 0x45, 0x90 };
    byte_array a = coded(BLY_CODE_BITS, data, sizeof data);
    assert_int_equal(a.n, sizeof want);
    assert_memory_equal(a.at, want, sizeof want);
    free(a.at);
}

/* The symbols of docs/format.md once more, in its words; long enough for the
 * counts to be halved twice. */
static void counts_are_as_the_page_says(void **unused)
{
    (void)unused;
    const size_t n = 1700000;
    unsigned char *data = malloc(n);
    assert_non_null(data);
    uint64_t rng = 10;
    uint32_t count[256];
    unsigned nhalved = 0;
    byte_array want = { 0 };
    bly_encoder e;
    bly_encoder_start(&e, put_bytes, &want);
    for (int s = 0; s < 256; s++)
        count[s] = 1;
    for (size_t i = 0; i < n; i++) {
        const uint64_t x = test_random(&rng);
        data[i] = (unsigned char)(x % 4 ? x >> 60 : x >> 32);
        uint32_t cum = 0, total = 0;
        for (int s = 0; s < 256; s++) {
            cum += s < data[i] ? count[s] : 0;
            total += count[s];
        }
        bly_encode_step(&e, e.range / total, cum, count[data[i]]);
        count[data[i]] += 16;
        if (total + 16 >= 1 << 24) {
            for (int s = 0; s < 256; s++)
                count[s] -= count[s] / 2;
            nhalved++;
        }
    }
    bly_encoder_end(&e);
    bly_encoder_flush(&e);
    assert_int_equal(nhalved, 2);
    byte_array got = coded(BLY_CODE_BYTES, data, n);
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.at, want.at, want.n);
    free(got.at);
    free(want.at);
    free(data);
}

/* What says nothing takes a byte of a thousand, and no less. */
static void nothing_is_shorter_than_a_1024th(void **unused)
{
    (void)unused;
    const size_t n = 1000001;
    unsigned char *zeros = calloc(1, n), *out = malloc(n);
    assert_true(zeros && out);
    for (size_t c = 0; c < COUNT_OF(codes); c++) {
        byte_array a = coded(codes[c], zeros, n);
        assert_int_equal(a.n, 977);
        assert_int_equal(there_and_back(codes[c], zeros, n), 977);
        /* One byte of the filling more, less, or other. */
        assert_false(bly_decode(codes[c], a.at, a.n - 1, out, n));
        const unsigned char zero = 0;
        assert_true(put_bytes(&a, &zero, 1));
        assert_false(bly_decode(codes[c], a.at, a.n, out, n));
        a.at[a.n - 2] = 1;
        assert_false(bly_decode(codes[c], a.at, a.n - 1, out, n));
        free(a.at);
    }
    free(zeros);
    free(out);
}

/* -------------------------------------------------------------- other bytes */

/* Refused; or else these bytes are the form of what they decode to. */
static bool right_or_refused(bly_code code, const unsigned char *in, size_t nin,
                             unsigned char *out, size_t n)
{
    if (!bly_decode(code, in, nin, out, n))
        return true;
    byte_array a = coded(code, out, n);
    const bool same = a.n == nin && (!nin || memcmp(a.at, in, nin) == 0);
    free(a.at);
    return same;
}

/* Cut or longer it is refused; with a bit flipped as well, but for a few that
 * are the form of another array. */
static void only_one_form_is_accepted(void **unused)
{
    (void)unused;
    uint64_t rng = 6;
    for (size_t c = 0; c < COUNT_OF(codes); c++)
        for (int round = 0; round < 4; round++) {
            uint64_t ones;
            size_t n;
            const double p[] = { 0, 0.01, 0.3, 0.99 };
            unsigned char *data = random_bits(&rng, 5000, p[round], &ones, &n);
            unsigned char *out = guarded_new(n);
            byte_array a = coded(codes[c], data, n);
            for (size_t cut = 0; cut < a.n; cut++) {
                unsigned char *in = guarded_new(cut);
                if (cut)
                    memcpy(in, a.at, cut);
                assert_false(bly_decode(codes[c], in, cut, out, n));
                guarded_free(in, cut);
            }
            size_t refused = 0;
            for (size_t bit = 0; bit < 8 * a.n; bit++) {
                a.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
                assert_true(right_or_refused(codes[c], a.at, a.n, out, n));
                refused += !bly_decode(codes[c], a.at, a.n, out, n);
                a.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            }
            assert_true(refused + 16 >= 8 * a.n);
            for (int more = 1; more <= 5; more++) {
                const unsigned char zero = 0;
                assert_true(put_bytes(&a, &zero, 1));
                assert_false(bly_decode(codes[c], a.at, a.n, out, n));
            }
            guarded_free(out, n);
            free(a.at);
            free(data);
        }
}

/* Nonsense ends, inside its walls. */
static void nonsense_is_refused(void **unused)
{
    (void)unused;
    uint64_t rng = 7;
    unsigned char *in = guarded_new(64), *out = guarded_new(1021);
    for (int round = 0; round < 20000; round++) {
        for (int i = 0; i < 64; i++)
            in[i] = round % 3   ? (unsigned char)test_random(&rng)
                    : round % 2 ? 0xff
                                : 0;
        const size_t from = test_random(&rng) % 65;
        for (size_t c = 0; c < COUNT_OF(codes); c++)
            assert_true(
                right_or_refused(codes[c], in + from, 64 - from, out, 1021));
    }
    assert_false(bly_decode(BLY_CODE_BITS, in, 8, out, 0));
    guarded_free(in, 64);
    guarded_free(out, 1021);
}

/* Three bytes are coded as four are whose last is zero, and as no others. */
static void bits_behind_the_end_are_refused(void **unused)
{
    (void)unused;
    static const unsigned char four[4] = { 1, 2, 0, 4 };
    unsigned char out[4];
    byte_array a = coded(BLY_CODE_BITS, four, 4);
    assert_true(bly_decode(BLY_CODE_BITS, a.at, a.n, out, 4));
    assert_false(bly_decode(BLY_CODE_BITS, a.at, a.n, out, 3));
    free(a.at);
}

/* ------------------------------------------------------------ the receiver */

static bool take_some(void *ctx, const void *bytes, size_t nbytes)
{
    size_t *left = ctx;
    (void)bytes;
    if (nbytes > *left)
        return false;
    *left -= nbytes;
    return true;
}

static void a_receiver_may_stop(void **unused)
{
    (void)unused;
    uint64_t rng = 8, ones;
    size_t n;
    unsigned char *data = random_bits(&rng, 500000, 0.4, &ones, &n);
    const size_t all = (size_t)bly_encode(BLY_CODE_BITS, data, n, NULL, NULL);
    for (size_t room = 0; room < all; room += 5000) {
        size_t left = room;
        assert_int_equal(bly_encode(BLY_CODE_BITS, data, n, take_some, &left),
                         0);
    }
    size_t left = all;
    assert_int_equal(bly_encode(BLY_CODE_BITS, data, n, take_some, &left), all);
    assert_int_equal(left, 0);
    memset(data, 0, n); /* stops in the filling */
    left = 20;
    assert_int_equal(bly_encode(BLY_CODE_BITS, data, n, take_some, &left), 0);
    free(data);
}

/* ------------------------------------------------------------------ carries */

/* Of three symbols always take the one whose interval holds the point where
 * low overflows: words of ones pile up behind the one that is held. Then step
 * over that point, or stay below it, and go on. */
static void carries_run_through(void **unused)
{
    (void)unused;
    enum { NSTEPS = 4000 };
    static unsigned char taken[NSTEPS];
    uint64_t rng = 9, longest = 0;
    byte_array a = { 0 };
    bly_encoder e;
    bly_encoder_start(&e, put_bytes, &a);
    for (int i = 0; i < NSTEPS; i++) {
        const uint64_t r = e.range / 3, room = -e.low; /* to the overflow */
        unsigned s = (unsigned)(test_random(&rng) % 3);
        if (e.nones < 4 && e.low && room < 3 * r)
            s = (unsigned)(room / r);
        if (e.nones > longest)
            longest = e.nones;
        taken[i] = (unsigned char)s;
        bly_encode_step(&e, r, s, 1);
    }
    const uint64_t nbytes = bly_encoder_end(&e);
    bly_encoder_flush(&e);
    assert_int_equal(nbytes, a.n);
    assert_true(longest >= 4);
    bly_decoder d = { .at = a.at, .end = a.at + a.n };
    bly_decoder_start(&d);
    for (int i = 0; i < NSTEPS; i++) {
        const uint64_t r = d.range / 3, part = bly_decode_part(&d, r, 3);
        assert_int_equal(part, taken[i]);
        bly_decode_step(&d, d.code - r * part, r);
    }
    assert_false(d.wrong);
    assert_int_equal(d.code, 0);
    assert_ptr_equal(d.at, d.end);
    free(a.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_take_their_entropy),
        cmocka_unit_test(bytes_take_their_entropy),
        cmocka_unit_test(long_arrays_come_back),
        cmocka_unit_test(short_arrays_come_back),
        cmocka_unit_test(words_come_back),
        cmocka_unit_test(the_example_of_the_page),
        cmocka_unit_test(counts_are_as_the_page_says),
        cmocka_unit_test(nothing_is_shorter_than_a_1024th),
        cmocka_unit_test(only_one_form_is_accepted),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(bits_behind_the_end_are_refused),
        cmocka_unit_test(a_receiver_may_stop),
        cmocka_unit_test(carries_run_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
