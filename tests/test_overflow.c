/*
 * test_overflow.c - large counts by position (core/overflow.h)
 */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "core/overflow.h"

enum { RANGE = 3000 };

static void sizes(void **state)
{
    (void)state;
    static const uint64_t good[] = { 0, 24, 36, 54, 81, 121 };
    static const uint64_t bad[] = { 1, 23, 25, 48, UINT64_MAX, 1u << 31 };
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(bly_overflow_places_ok(good[i]));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(bly_overflow_places_ok(bad[i]));
    for (uint64_t p = 24; p < UINT64_C(1) << 40; p = bly_overflow_next(p)) {
        assert_true(bly_overflow_most(p) < bly_overflow_homes(p));
        assert_true(bly_overflow_homes(p) < p);
        assert_true(2 * bly_overflow_most(p) >= p);
    }
}

/* A table in memory of exactly its size. */
static bly_overflow table_new(uint64_t places)
{
    const size_t n = (size_t)bly_overflow_nbytes(places, RANGE);
    return bly_overflow_of(calloc(1, n ? n : 1), places, RANGE);
}

/* Puts and drops against an array; and the same counts, put in another order,
 * are the same bytes. */
static void agrees_with_an_array(void **state)
{
    (void)state;
    static uint32_t truth[RANGE];
    for (uint64_t places = 0; places < 1500;
         places = bly_overflow_next(places)) {
        bly_overflow t = table_new(places), other = table_new(places);
        uint64_t rng = places, n = 0, nother = 0, full = 0;
        memset(truth, 0, sizeof truth);
        for (int step = 0; step < 5000; step++) {
            /* Near each other every now and then: long runs. */
            const uint64_t r = test_random(&rng);
            const uint64_t at = r % 8 ? r / 8 % RANGE : RANGE - 1 - r / 8 % 40;
            if (test_random(&rng) % 3) {
                const uint32_t count = (uint32_t)test_random(&rng) | 1;
                if (bly_overflow_put(&t, at, count, &n))
                    truth[at] = count;
                else
                    full++;
            } else {
                bly_overflow_drop(&t, at, &n);
                truth[at] = 0;
            }
            if (step % 97 == 0)
                assert_true(bly_overflow_check(&t, n));
        }
        assert_true(bly_overflow_check(&t, n));
        assert_false(bly_overflow_check(&t, n + 1));
        assert_true(full > 0);
        uint64_t i = 0, position, walked = 0, last = 0;
        uint32_t count;
        while (bly_overflow_walk(&t, &i, &position, &count)) {
            assert_true(position >= last);
            assert_int_equal(truth[position], count);
            last = position;
            walked++;
        }
        assert_int_equal(walked, n);
        for (uint64_t at = 0; at < RANGE; at++)
            assert_int_equal(bly_overflow_get(&t, at), truth[at]);
        for (uint64_t at = RANGE; at--;)
            if (truth[at])
                assert_true(bly_overflow_put(&other, at, truth[at], &nother));
        assert_memory_equal(t.counts, other.counts,
                            bly_overflow_nbytes(places, RANGE));
        free(t.counts);
        free(other.counts);
    }
}

/* Any bytes can be asked, and what is not as it should be is seen. */
static void any_bytes(void **state)
{
    (void)state;
    const size_t nbytes = (size_t)bly_overflow_nbytes(121, RANGE);
    bly_overflow t = table_new(121);
    uint64_t rng = 5, n = 0;
    for (uint64_t at = 0; at < 40; at++)
        assert_true(bly_overflow_put(&t, at * 70, 20, &n));
    /* A flipped bit of a count, or a low one of a key, may leave a table as
     * good as any; one in what is free, or behind it, does not. */
    for (size_t bit = 0; bit < 8 * nbytes; bit++) {
        const size_t place = bit < 121 * 32 ? bit / 32 : (bit - 122 * 32) / 12;
        uint64_t i = place, position;
        uint32_t count;
        const bool free = place >= 121 ||
                          !bly_overflow_walk(&t, &i, &position, &count) ||
                          i != place + 1;
        t.counts[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(!free || !bly_overflow_check(&t, n));
        t.counts[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(bly_overflow_check(&t, n));
    for (int round = 0; round < 200; round++) {
        uint64_t i = 0, position;
        uint32_t count;
        for (size_t j = 0; j < nbytes; j++)
            t.counts[j] = (unsigned char)test_random(&rng);
        for (uint64_t at = 0; at < RANGE; at += 7)
            (void)bly_overflow_get(&t, at);
        while (bly_overflow_walk(&t, &i, &position, &count))
            assert_true(position < RANGE);
        assert_false(bly_overflow_check(&t, n));
    }
    free(t.counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
