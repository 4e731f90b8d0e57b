/*
 * test_cells.c - packed counters against a plain array, at a wall
 */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "core/cells.h"

static const unsigned widths[] = { 2, 3, 4, 7, 8, 12, 16, 32 };

#define CELLS 200

/* Every number of counters up to CELLS, in memory that ends behind them. */
static void counters_do_not_touch_each_other(void **state)
{
    (void)state;
    uint64_t rng = 1;
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const unsigned width = widths[w];
        const uint32_t top = bly_cell_top(width);
        assert_true(bly_cell_width_ok(width));
        for (uint64_t m = 1; m <= CELLS; m += m < 70 ? 1 : 13) {
            const size_t nbytes = (size_t)bly_cells_nbytes(m, width);
            unsigned char *cells = guarded_new(nbytes);
            uint32_t plain[CELLS] = { 0 };
            for (int step = 0; step < 300; step++) {
                const uint64_t j = test_random(&rng) % m;
                const uint64_t r = test_random(&rng);
                plain[j] = r % 4 == 0   ? top
                           : r % 4 == 1 ? 0
                                        : (uint32_t)(r >> 8) & top;
                bly_cell_put(cells, j, width, plain[j]);
            }
            uint64_t used = 0, stuck = 0;
            uint64_t words[CELLS / 64 + 1] = { 0 };
            bly_cells_to_bits(cells, m, width, words);
            for (uint64_t j = 0; j < m; j++) {
                assert_int_equal(bly_cell_get(cells, j, width), plain[j]);
                assert_int_equal(bly_bit_get(words, j), plain[j] != 0);
                used += plain[j] != 0;
                stuck += plain[j] == top;
            }
            assert_true(bly_bits_tail_clear(words, m, (size_t)((m + 63) / 64)));
            const bly_cells_tally t = bly_cells_count(cells, m, width);
            assert_int_equal(t.used, used);
            assert_int_equal(t.stuck, stuck);
            assert_true(bly_cells_tail_clear(cells, m, width));
            guarded_free(cells, nbytes);
        }
    }
}

/* Counter j is bits j w to (j + 1) w - 1: what the file says. */
static void bits_are_where_the_format_says(void **state)
{
    (void)state;
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const unsigned width = widths[w];
        for (uint64_t j = 0; j < CELLS; j++) {
            uint64_t words[CELLS / 2 + 1] = { 0 };
            unsigned char *cells = (unsigned char *)words;
            const uint32_t value =
                UINT32_C(0x9e3779b9) & bly_cell_top(width) & ~UINT32_C(2);
            bly_cell_put(cells, j, width, value | 1);
            for (uint64_t bit = 0; bit < CELLS * 32; bit++)
                assert_int_equal(bly_bit_get(words, bit),
                                 bit / width == j &&
                                     ((value | 1) >> bit % width & 1));
        }
    }
}

static void sums_stop_at_the_top(void **state)
{
    (void)state;
    uint64_t rng = 2;
    assert_int_equal(bly_cell_sum(3, 4, 15), 7);
    assert_int_equal(bly_cell_sum(3, 12, 15), 15);
    assert_int_equal(bly_cell_sum(15, 0, 15), 15);
    assert_int_equal(bly_cell_sum(3, UINT64_MAX, UINT32_MAX), UINT32_MAX);
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const unsigned width = widths[w];
        const size_t nbytes = (size_t)bly_cells_nbytes(CELLS, width);
        unsigned char *a = guarded_new(nbytes), *b = guarded_new(nbytes);
        uint64_t sums[CELLS];
        for (uint64_t j = 0; j < CELLS; j++) {
            const uint32_t x =
                (uint32_t)test_random(&rng) & bly_cell_top(width);
            const uint32_t y =
                (uint32_t)test_random(&rng) & bly_cell_top(width);
            bly_cell_put(a, j, width, x);
            bly_cell_put(b, j, width, y);
            sums[j] = (uint64_t)x + y;
            if (sums[j] > bly_cell_top(width))
                sums[j] = bly_cell_top(width);
        }
        bly_cells_add(a, b, CELLS, width);
        for (uint64_t j = 0; j < CELLS; j++)
            assert_int_equal(bly_cell_get(a, j, width), sums[j]);
        guarded_free(a, nbytes);
        guarded_free(b, nbytes);
    }
}

static void tails_are_seen(void **state)
{
    (void)state;
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const unsigned width = widths[w];
        for (uint64_t m = 1; m < 40; m++) {
            const uint64_t nbits = bly_cells_nbytes(m, width) * 8;
            uint64_t words[40] = { 0 };
            for (uint64_t j = 0; j < m; j++)
                bly_cell_put((unsigned char *)words, j, width,
                             bly_cell_top(width));
            assert_true(bly_cells_tail_clear((unsigned char *)words, m, width));
            for (uint64_t bit = m * width; bit < nbits; bit++) {
                bly_bit_set(words, bit);
                assert_false(
                    bly_cells_tail_clear((unsigned char *)words, m, width));
                bly_bit_clear(words, bit);
            }
        }
    }
}

/* Two arrays as one, against plain ones. */
static void arrays_are_combined(void **state)
{
    (void)state;
    uint64_t rng = 2;
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const unsigned width = widths[w];
        const uint32_t top = bly_cell_top(width);
        for (uint64_t half = 1; half <= 6000; half += half < 40 ? 1 : 2971) {
            const uint64_t m = 2 * half;
            const size_t nbytes = (size_t)bly_cells_nbytes(m, width);
            unsigned char *a = guarded_new(nbytes), *b = guarded_new(nbytes);
            unsigned char *sum = calloc(1, nbytes), *most = calloc(1, nbytes);
            for (uint64_t j = 0; j < m; j++) {
                const uint64_t r = test_random(&rng);
                bly_cell_put(a, j, width, r % 3 ? (uint32_t)(r >> 8) & top : 0);
                bly_cell_put(b, j, width,
                             r % 5 ? 0 : (uint32_t)(r >> 40) & top);
            }
            bly_cells_fold_sum(sum, a, half, width);
            bly_cells_fold_most(most, a, half, width);
            for (uint64_t j = 0; j < half; j++) {
                const uint64_t x = bly_cell_get(a, j, width);
                const uint64_t y = bly_cell_get(a, j + half, width);
                assert_int_equal(bly_cell_get(sum, j, width),
                                 x + y < top ? x + y : top);
                assert_int_equal(bly_cell_get(most, j, width), x > y ? x : y);
            }
            assert_true(bly_cells_tail_clear(sum, half, width));
            uint64_t either = 0;
            for (uint64_t j = 0; j < m; j++)
                either += bly_cell_get(a, j, width) != 0 ||
                          bly_cell_get(b, j, width) != 0;
            assert_int_equal(bly_cells_used_either(a, b, m, width), either);
            memcpy(sum, a,
                   nbytes < bly_cells_nbytes(half, width)
                       ? nbytes
                       : (size_t)bly_cells_nbytes(half, width));
            bly_cells_least(sum, b, half - 1, width);
            for (uint64_t j = 0; j < half; j++) {
                const uint32_t x = bly_cell_get(a, j, width);
                const uint32_t y = bly_cell_get(b, j, width);
                assert_int_equal(bly_cell_get(sum, j, width),
                                 j < half - 1 && y < x ? y : x);
            }
            free(sum);
            free(most);
            guarded_free(a, nbytes);
            guarded_free(b, nbytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_do_not_touch_each_other),
        cmocka_unit_test(bits_are_where_the_format_says),
        cmocka_unit_test(sums_stop_at_the_top),
        cmocka_unit_test(tails_are_seen),
        cmocka_unit_test(arrays_are_combined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
