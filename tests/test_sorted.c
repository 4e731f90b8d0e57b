/*
 * test_sorted.c - sets of integers that are exact, in few bits each
 *
 * Against a plain array; at the ends of every width; and bytes that were cut,
 * flipped or forged.
 */
#include <stdlib.h>
#include <string.h>

#include <bloomery/sorted.h>

#include "base/random.h"
#include "core/bits.h"
#include "core/hash.h"
#include "support.h"

static uint64_t mask(unsigned width)
{
    return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static bool has_one(const bly_sorted *s, uint64_t value)
{
    uint64_t found = 0;
    bly_sorted_has(s, &value, 1, &found);
    return found & 1;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The set says yes to its integers and no to their neighbours, before it is
 * written and after. */
static void assert_set(uint64_t *values, size_t n, unsigned width)
{
    uint64_t *const copy = malloc((n + 1) * sizeof *copy);
    bly_sorted *s, *again;
    assert_non_null(copy);
    if (n)
        memcpy(copy, values, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, by_value);
    assert_ok(bly_sorted_new(values, n, width, "a note", NULL, &s));
    const size_t nbytes = bly_sorted_written_bytes(s);
    unsigned char *const bytes = malloc(nbytes);
    assert_non_null(bytes);
    bly_sorted_write(s, bytes);
    assert_ok(bly_sorted_load(bytes, nbytes, NULL, &again));
    assert_int_equal(bly_sorted_items(again), bly_sorted_items(s));
    assert_int_equal(bly_sorted_width(again), width);
    assert_int_equal(bly_sorted_note(again).len, 6);
    for (size_t i = 0; i < n; i++)
        for (int d = -1; d <= 1; d++) {
            const uint64_t v = copy[i] + (uint64_t)d;
            const bool right =
                bsearch(&v, copy, n, sizeof *copy, by_value) != NULL;
            assert_int_equal(has_one(s, v), right);
            assert_int_equal(has_one(again, v), right);
        }
    assert_int_equal(has_one(s, 0), n && copy[0] == 0);
    assert_int_equal(has_one(s, UINT64_MAX), n && copy[n - 1] == UINT64_MAX);
    free(bytes);
    free(copy);
    bly_sorted_free(again);
    bly_sorted_free(s);
}

static void sets_of_every_width(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 2, 63, 64, 65, 1000 };
    uint64_t values[1000];
    for (unsigned width = 1; width <= 64; width++)
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            for (size_t i = 0; i < sizes[k]; i++)
                values[i] = bly_mix64(i) & mask(width);
            if (sizes[k] > 1) {
                values[0] = 0;
                values[1] = mask(width);
            }
            assert_set(values, sizes[k], width);
        }
    /* Close together, and at the far end. */
    for (size_t i = 0; i < 1000; i++)
        values[i] = UINT64_MAX - i;
    assert_set(values, 1000, 64);
    for (size_t i = 0; i < 1000; i++)
        values[i] = 999 - i;
    assert_set(values, 1000, 10);
}

static void a_million_prefixes(void **state)
{
    (void)state;
    const size_t n = 1000000;
    uint64_t *const values = malloc(n * sizeof *values);
    bly_sorted *s;
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = bly_mix64(i) >> 32;
    assert_ok(bly_sorted_new(values, n, 32, NULL, NULL, &s));
    const double each =
        (double)bly_sorted_bits(s) / (double)bly_sorted_items(s);
    assert_true(each > 13.5 && each < 13.7);
    for (size_t i = 0; i < n; i += 97)
        assert_true(has_one(s, bly_mix64(i) >> 32));
    bly_sorted_free(s);
    free(values);
}

static void wrong_arguments_change_nothing(void **state)
{
    (void)state;
    uint64_t values[3] = { 5, 256, 1 };
    char note[BLY_SORTED_NOTE_MOST + 2];
    bly_sorted *s;
    memset(note, 'x', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    assert_int_equal(bly_sorted_new(values, 3, 8, NULL, NULL, &s), BLY_EINVAL);
    assert_null(s);
    assert_int_equal(bly_sorted_new(values, 3, 0, NULL, NULL, &s), BLY_EINVAL);
    assert_int_equal(bly_sorted_new(values, 3, 65, NULL, NULL, &s), BLY_EINVAL);
    assert_int_equal(bly_sorted_new(values, 3, 9, note, NULL, &s), BLY_EINVAL);
    assert_int_equal(values[0], 5);
    assert_int_equal(values[1], 256);
    assert_int_equal(values[2], 1);
    bly_sorted_free(NULL);
}

static void damage_is_found(void **state)
{
    (void)state;
    uint64_t values[300];
    bly_sorted *s, *t;
    for (size_t i = 0; i < 300; i++)
        values[i] = bly_mix64(i) & mask(32);
    assert_ok(bly_sorted_new(values, 300, 32, "note", NULL, &s));
    const size_t nbytes = bly_sorted_written_bytes(s);
    unsigned char *const bytes = malloc(nbytes);
    assert_non_null(bytes);
    bly_sorted_write(s, bytes);
    for (size_t n = 0; n < nbytes; n++) {
        unsigned char *const cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, bytes, n);
        assert_int_equal(bly_sorted_load(cut, n, NULL, &t), BLY_EFORMAT);
        assert_null(t);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * nbytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(bly_sorted_load(bytes, nbytes, NULL, &t), BLY_EFORMAT);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    /* With a checksum that fits: refused, or a set that can be asked. */
    for (size_t bit = 64; bit < 8 * (nbytes - 8); bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        bly_store64(bytes + nbytes - 8, bly_checksum(bytes, nbytes - 8));
        if (bly_sorted_load(bytes, nbytes, NULL, &t) == BLY_OK)
            for (uint64_t v = 0; v < 1000; v++)
                has_one(t, bly_mix64(v) & mask(32));
        bly_sorted_free(t);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(bytes);
    bly_sorted_free(s);
}

/* Many integers in one slot and none in others, and long gaps; asked together
 * and one by one. */
static void integers_that_crowd(void **state)
{
    (void)state;
    enum { N = 3000, ASKED = 1000 };
    static uint64_t values[N], asked[ASKED];
    for (unsigned width = 16; width <= 64; width += 12) {
        for (size_t i = 0; i < N; i++)
            values[i] = i < 200    ? bly_mix64(i) & mask(width)
                        : i < 1500 ? i
                                   : mask(width) - 3 * i;
        assert_set(values, N, width);
        bly_sorted *s;
        uint64_t together[BLY_BITMAP_WORDS(ASKED)];
        assert_ok(bly_sorted_new(values, N, width, NULL, NULL, &s));
        for (size_t i = 0; i < ASKED; i++)
            asked[i] = i % 3   ? values[i * 7 % N] + i % 2
                       : i % 2 ? bly_mix64(i) /* mostly too large */
                               : i;
        bly_sorted_has(s, asked, ASKED, together);
        for (size_t i = 0; i < ASKED; i++)
            assert_int_equal(together[i / 64] >> i % 64 & 1,
                             has_one(s, asked[i]));
        bly_sorted_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_of_every_width),
        cmocka_unit_test(integers_that_crowd),
        cmocka_unit_test(a_million_prefixes),
        cmocka_unit_test(wrong_arguments_change_nothing),
        cmocka_unit_test(damage_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
