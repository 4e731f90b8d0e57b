/*
 * test_few.c - filters of a few keys, in as few bytes as there can be
 *
 * Every number of keys with every number of bits: no key is forgotten, sizes
 * are n r bits and a byte, rates are 2^-r. Vectors, which no later version may
 * change; and bytes that are not a filter.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/few.h>

#include "core/bits.h"
#include "support.h"

/* Hashes from number `from` on; built where reading past the end is seen. */
static uint64_t *few_hashes(uint64_t from, size_t n)
{
    uint64_t *const h = malloc((n + 1) * sizeof *h);
    assert_non_null(h);
    for (size_t i = 0; i < n; i++)
        h[i] = bly_mix64(from + i);
    return h;
}

static unsigned char *few_built(const uint64_t *h, size_t n, double bits,
                                size_t *nbytes)
{
    const size_t room = bly_few_room(n, bits);
    unsigned char *const wide = malloc(room);
    assert_non_null(wide);
    assert_int_equal(bly_few_build(h, n, bits, wide, room, nbytes), BLY_OK);
    assert_true(*nbytes <= room);
    unsigned char *const exact = guarded_new(*nbytes);
    memcpy(exact, wide, *nbytes);
    free(wide);
    return exact;
}

static void forgets_no_key(void **state)
{
    static const size_t ns[] = { 1,   2,   3,   7,   8,   20,   35,  40,  62,
                                 63,  64,  65,  66,  100, 127,  128, 129, 200,
                                 223, 224, 225, 300, 512, 1000, 5000 };
    (void)state;
    for (size_t a = 0; a < sizeof ns / sizeof ns[0]; a++)
        for (unsigned r = 1; r <= BLY_FEW_MOST_BITS; r += r > 8 ? 3 : 1) {
            const size_t n = ns[a];
            uint64_t *const h = few_hashes(n * 100000 + r, n);
            size_t nbytes;
            unsigned char *const f = few_built(h, n, r, &nbytes);
            for (size_t i = 0; i < n; i++)
                assert_true(bly_few_has(f, nbytes, h[i]));
            bly_few_facts facts;
            assert_true(bly_few_tell(f, nbytes, &facts));
            assert_int_equal(facts.bits, r);
            assert_true(facts.keys >= n);
            guarded_free(f, nbytes);
            free(h);
        }
}

/* Within 5 % of n log2(1/p) bits and one byte, over sets of the sizes that
 * LevelDB hands over; and for thousands of keys too. */
static void has_the_least_bytes(void **state)
{
    (void)state;
    double had = 0, least = 0;
    for (size_t n = 20; n <= 40; n++)
        for (uint64_t set = 0; set < 50; set++) {
            uint64_t *const h = few_hashes(n << 20 | set << 10, n);
            size_t nbytes;
            unsigned char *const f = few_built(h, n, 7, &nbytes);
            had += (double)(nbytes - 1);
            least += (double)n * 7 / 8;
            guarded_free(f, nbytes);
            free(h);
        }
    assert_true(had < 1.03 * least);
    static const size_t ns[] = { 200, 1000, 4000, 20000 };
    for (size_t i = 0; i < 4; i++) {
        uint64_t *const h = few_hashes(ns[i], ns[i]);
        size_t nbytes;
        unsigned char *const f = few_built(h, ns[i], 8, &nbytes);
        assert_true((double)nbytes < 1.05 * (double)ns[i] + 2);
        guarded_free(f, nbytes);
        free(h);
    }
}

/* Absent keys are coin flips, so hits are binomial: six sigma. */
static void keeps_the_rate(void **state)
{
    static const double rates[] = { 0.5, 0.2, 0.01, 0.0096, 0.001 };
    (void)state;
    for (size_t a = 0; a < sizeof rates / sizeof rates[0]; a++) {
        double hits = 0, trials = 0;
        const double p = rates[a];
        for (uint64_t set = 0; set < 1500; set++) {
            const size_t n = 20 + set % 21;
            uint64_t *const h = few_hashes(set << 20, n);
            size_t nbytes;
            unsigned char *const f = few_built(h, n, bly_few_bits(p), &nbytes);
            for (uint64_t i = 0; i < 400; i++, trials++)
                hits += bly_few_has(f, nbytes, bly_mix64(~(set << 20 | i)));
            guarded_free(f, nbytes);
            free(h);
        }
        /* The width of a filter is drawn too: twice the deviation. */
        const double sd = sqrt(trials * p * (1 - p));
        assert_true(fabs(hits - trials * p) < 12 * sd);
    }
    assert_true(bly_few_bits(0) == 15 && bly_few_bits(1) == 1);
    assert_true(fabs(bly_few_bits(0x1p-7) - 7) < 1e-9);
    assert_true(fabs(bly_few_bits(0.75 * 0x1p-7) - 7.5) < 1e-9);
}

/* The same bytes for ever: they lie in databases. */
static void vectors_stay(void **state)
{
    static const unsigned char want[] = {
        0x5a, 0xf3, 0x5f, 0xfa, 0x7a, 0xbe, 0xa6, 0xf1, 0x1c, 0x56,
        0x2b, 0xb2, 0xaa, 0xaf, 0x2a, 0xf8, 0x79, 0x05, 0x7e,
    };
    (void)state;
    uint64_t *const h = few_hashes(1, 20);
    size_t nbytes;
    unsigned char *const f = few_built(h, 20, 7, &nbytes);
    assert_int_equal(nbytes, sizeof want);
    assert_memory_equal(f, want, nbytes);
    guarded_free(f, nbytes);
    free(h);
}

static void keys_may_come_again(void **state)
{
    (void)state;
    uint64_t *const h = few_hashes(1, 30);
    for (size_t i = 0; i < 30; i++)
        h[i] = h[i % 3];
    size_t nbytes;
    unsigned char *const f = few_built(h, 30, 9.5, &nbytes);
    for (size_t i = 0; i < 30; i++)
        assert_true(bly_few_has(f, nbytes, h[i]));
    guarded_free(f, nbytes);
    free(h);
}

/* Whatever is not a filter says maybe; nothing is read outside. */
static void any_bytes_are_safe(void **state)
{
    (void)state;
    assert_true(bly_few_has(NULL, 0, 1) && bly_few_has("", 0, 1));
    assert_false(bly_few_tell(NULL, 0, NULL));
    for (size_t n = 1; n < 40; n++) {
        unsigned char *const b = guarded_new(n);
        for (unsigned last = 0; last < 256; last++) {
            b[n - 1] = (unsigned char)last;
            for (uint64_t i = 0; i + 1 < n; i++)
                b[i] = (unsigned char)bly_mix64(i << 8 | last);
            bly_few_facts facts;
            const bool is_one = bly_few_tell(b, n, &facts);
            for (uint64_t i = 0; i < 64; i++)
                assert_true(bly_few_has(b, n, bly_mix64(i)) || is_one);
            assert_true(is_one == (last >= 16 && (n - 1) * 8 >= last / 16));
        }
        guarded_free(b, n);
    }
}

static void wrong_arguments(void **state)
{
    uint64_t h[2] = { 1, 2 };
    unsigned char b[64];
    size_t nbytes = 99;
    (void)state;
    assert_int_equal(bly_few_build(h, 2, 0.5, b, 64, &nbytes), BLY_EINVAL);
    assert_int_equal(bly_few_build(h, 2, 16, b, 64, &nbytes), BLY_EINVAL);
    assert_int_equal(bly_few_build(h, 2, (double)NAN, b, 64, &nbytes),
                     BLY_EINVAL);
    assert_int_equal(bly_few_build(h, 2, 7, b, bly_few_room(2, 7) - 1, &nbytes),
                     BLY_EINVAL);
    assert_int_equal(
        bly_few_build(h, (size_t)BLY_FEW_MOST_KEYS + 1, 7, b, 64, &nbytes),
        BLY_EINVAL);
    assert_int_equal(nbytes, 99);
    /* No keys: one byte, and maybe. */
    unsigned char room[128];
    assert_int_equal(bly_few_build(NULL, 0, 7, room, sizeof room, &nbytes),
                     BLY_OK);
    assert_true(nbytes == 1 && bly_few_has(room, 1, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgets_no_key),
        cmocka_unit_test(has_the_least_bytes),
        cmocka_unit_test(keeps_the_rate),
        cmocka_unit_test(vectors_stay),
        cmocka_unit_test(keys_may_come_again),
        cmocka_unit_test(any_bytes_are_safe),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
