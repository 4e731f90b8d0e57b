/*
 * test_blocked.c - what is peculiar to the blocked kind
 *
 * One line a key, one bit a lane, for every k; the promised bits a key; a rate
 * that does not depend on the pattern of the keys.
 */
#include "tests/support.h"

#include <string.h>

#include <stdio.h>
#include <stdlib.h>

#include "core/bits.h"
#include "core/lines.h"
#include "kinds/kind.h"

static const unsigned all_k[] = { 1, 2, 4, 8, 16 };

static bly_filter *blocked_new(uint64_t nblocks, unsigned k)
{
    char text[8];
    snprintf(text, sizeof text, "%u", k);
    const bly_option o[] = { { "k", text } };
    const bly_spec spec = { .kind = "blocked",
                            .items = 100,
                            .bits = nblocks * 512,
                            .options = o,
                            .noptions = 1 };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    return f;
}

/* Where the essay of blocked.c says that lane i of a key has its bit, counted
 * from the start of the line. */
static unsigned lane_bit(uint64_t h, unsigned k, unsigned i)
{
    const uint64_t c = k == 16 && i >= 8 ? UINT64_C(0xbb67ae8584caa73b)
                                         : UINT64_C(0x9e3779b97f4a7c15);
    const unsigned width = 512 / k;
    unsigned w = 0; /* log2 */
    while (1u << w < width)
        w++;
    uint64_t g = h * c;
    g ^= g >> 32;
    return i * width + (unsigned)(g >> (w * (i % 8)) & (width - 1));
}

static void one_line_and_one_bit_a_lane(void **state)
{
    (void)state;
    uint64_t rng = 3;
    for (size_t ki = 0; ki < COUNT_OF(all_k); ki++) {
        const unsigned k = all_k[ki];
        for (int round = 0; round < 100; round++) {
            bly_filter *f = blocked_new(37, k);
            const uint64_t *words = (const uint64_t *)(const void *)f->data;
            const uint64_t h = test_random(&rng);
            const uint64_t line = bly_mulhi(h, 37) * 512;
            assert_ok(bly_add_hash(f, h));
            assert_int_equal(bly_bits_count(words, 37 * 8), k);
            for (unsigned i = 0; i < k; i++)
                assert_true(bly_bit_get(words, line + lane_bit(h, k, i)));
            /* Each of the k bits is needed. */
            for (unsigned i = 0; i < k; i++) {
                bly_bit_clear((uint64_t *)(void *)f->data,
                              line + lane_bit(h, k, i));
                assert_false(bly_has_hash(f, h));
                bly_bit_set((uint64_t *)(void *)f->data,
                            line + lane_bit(h, k, i));
            }
            assert_true(bly_has_hash(f, h));
            bly_free(f);
        }
    }
}

/* At most 10.15 bits a key at 1 % and 15.8 at 0.1 %, from a million on. */
static void few_bits_a_key(void **state)
{
    (void)state;
    static const struct {
        double fpr, bits;
    } rows[] = {
        { 0.03, 7.6 }, { 0.01, 10.15 }, { 0.001, 15.8 }, { 0.0001, 23.1 }
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_spec spec = { .kind = "blocked",
                                .items = 1000000,
                                .fpr = rows[i].fpr };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_between(p.bits_per_key, 0, rows[i].bits);
        assert_between(p.fpr, 0, rows[i].fpr);
    }
}

/* Every row sets the same bits and gives the same answers as the portable one,
 * which is the last, for every k, in arrays that are fetched ahead and in
 * small ones, and for every number of keys around a word of results. */
static void every_row_agrees(void **state)
{
    (void)state;
    enum { N = 70000 };
    uint64_t *h = malloc(N * sizeof *h);
    uint64_t rng = 4;
    assert_non_null(h);
    for (size_t i = 0; i < N; i++)
        h[i] = i % 5 ? test_random(&rng) : h[i / 2];
    for (size_t ki = 0; ki < COUNT_OF(all_k); ki++) {
        for (int large = 0; large < 2; large++) {
            const uint64_t nlines = large ? 5000 : 13;
            bly_filter *wanted = blocked_new(nlines, all_k[ki]);
            bly_lines lines = { (uint64_t *)(void *)wanted->data, nlines,
                                all_k[ki] };
            uint64_t want_fresh[BLY_BITMAP_WORDS(N)];
            uint64_t want_maybe[BLY_BITMAP_WORDS(N)];
            uint64_t fresh[BLY_BITMAP_WORDS(N)], maybe[BLY_BITMAP_WORDS(N)];
            const size_t n = large ? N / 2 : 100;
            const uint64_t want_n =
                bly_lines_add_portable(&lines, h, n, want_fresh);
            bly_lines_has_shared(&lines, h, N, want_maybe);
            const bly_lines_row *row = bly_lines_rows;
            for (;; row++) {
                if (!(row->needs & ~bly_cpu_features())) {
                    bly_filter *f = blocked_new(nlines, all_k[ki]);
                    lines.words = (uint64_t *)(void *)f->data;
                    assert_int_equal(row->add(&lines, h, n, fresh), want_n);
                    assert_memory_equal(fresh, want_fresh,
                                        BLY_BITMAP_WORDS(n) * 8);
                    assert_true(bly_equal(f, wanted));
                    for (size_t few = 0; few < 130; few++) {
                        row->has(&lines, h, few, maybe);
                        for (size_t i = 0; i < few; i++)
                            assert_int_equal(maybe[i / 64] >> i % 64 & 1,
                                             want_maybe[i / 64] >> i % 64 & 1);
                    }
                    row->has(&lines, h, N, maybe);
                    assert_memory_equal(maybe, want_maybe, sizeof maybe);
                    bly_free(f);
                }
                if (!row->needs)
                    break;
            }
            bly_free(wanted);
        }
    }
    free(h);
}

static void only_powers_of_two(void **state)
{
    (void)state;
    const bly_option o[] = { { "k", "3" } };
    const bly_spec spec = { .kind = "blocked",
                            .items = 1000,
                            .fpr = 0.01,
                            .options = o,
                            .noptions = 1 };
    bly_prediction p;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "1, 2, 4, 8 or 16"));
}

static void less_than_a_block_is_refused(void **state)
{
    (void)state;
    const bly_spec spec = { .kind = "blocked", .items = 10, .bits = 511 };
    bly_prediction p;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
}

static uint64_t reverse_bits(uint64_t x)
{
    uint64_t r = 0;
    for (int i = 0; i < 64; i++)
        r |= (x >> i & 1) << (63 - i);
    return r;
}

static uint64_t float_bits(uint64_t i)
{
    const double d = (double)i * 0.1;
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

#define NPATTERNS 16

/* Key i of a pattern: what counters, pointers, floats and packed pairs give. */
static uint64_t patterned(unsigned pattern, uint64_t i)
{
    switch (pattern) {
    case 0:
        return i;
    case 1:
        return i << 8;
    case 2:
        return i << 16;
    case 3:
        return i << 20;
    case 4:
        return i << 24;
    case 5:
        return i << 32;
    case 6:
        return reverse_bits(i);
    case 7:
        return i * UINT64_C(0x9e3779b97f4a7c15);
    case 8:
        return i * 1000003;
    case 9:
        return (i / 1000) << 32 | i % 1000;
    case 10:
        return float_bits(i);
    case 11:
        return UINT64_C(0x7f0000000000) + i * 64;
    case 12:
        return ~i;
    case 13:
        return i | i << 32;
    case 14:
        return i ^ i >> 1;
    default:
        return i * UINT64_C(0x0101010101010101);
    }
}

/* The rate is that of random keys, whatever the keys look like: within 10 %,
 * which is more than six deviations of 2 million questions at 1 %. */
static void any_pattern_of_keys(void **state)
{
    (void)state;
    enum { N = 200000, Q = 2000000 };
    uint64_t *keys = malloc(Q * sizeof *keys);
    uint64_t *maybe = malloc(BLY_BITMAP_WORDS(Q) * sizeof *maybe);
    assert_non_null(keys);
    assert_non_null(maybe);
    for (unsigned pattern = 0; pattern < NPATTERNS; pattern++) {
        const bly_spec spec = { .kind = "blocked", .items = N, .fpr = 0.01 };
        bly_filter *f;
        assert_ok(bly_new(&spec, &f));
        for (uint64_t i = 0; i < N; i++)
            keys[i] = patterned(pattern, i);
        assert_ok(bly_add_ints(f, keys, N, NULL, NULL));
        for (uint64_t i = 0; i < Q; i++)
            keys[i] = patterned(pattern, N + i);
        bly_has_ints(f, keys, Q, maybe);
        assert_between((double)bly_bits_count(maybe, BLY_BITMAP_WORDS(Q)) / Q,
                       0.009, 0.011);
        bly_free(f);
    }
    free(keys);
    free(maybe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_and_one_bit_a_lane),
        cmocka_unit_test(few_bits_a_key),
        cmocka_unit_test(every_row_agrees),
        cmocka_unit_test(only_powers_of_two),
        cmocka_unit_test(less_than_a_block_is_refused),
        cmocka_unit_test(any_pattern_of_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
