/*
 * test_blocked.c - what is peculiar to the blocked kind
 *
 * One line per key, one bit per lane, for every k; the promised bits per key; a
 * rate that does not depend on the pattern of the keys.
 */
#define _GNU_SOURCE
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/bits.h"
#include "engine/bit_count.h"
#include "engine/lines.h"
#include "kinds/kind.h"
#include "tests/each_row.h"

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

/* At most 10.15 bits per key at 1 % and 15.8 at 0.1 %, from a million on. */
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

static void every_row_agrees(void **state)
{
    (void)state;
    const char *wrong = rows_check(getenv("BLY_QUICK") ? 600 : 5000);
    if (wrong)
        fail_msg("the row %s differs from the portable one", wrong);
}

/* Zeroed lines, of which most pages are never touched. */
static uint64_t *lines_map(uint64_t nlines)
{
    void *at = mmap(NULL, (size_t)nlines * 64, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Arrays that no cache holds, in which a row may take another way. */
static void every_row_agrees_in_memory(void **state)
{
    (void)state;
    enum { MOST = 1500 };
    const uint64_t nlines = BLY_LINES_BEYOND / 64 + 99;
    uint64_t h[MOST], maybe[2][BLY_BITMAP_WORDS(MOST)], rng = 9;
    for (size_t i = 0; i < MOST; i++)
        h[i] = test_random(&rng);
    EACH_ROW(lines, row)
    {
        for (size_t n = 100; n <= MOST; n += 1 + n / 9) {
            const bly_lines a = { lines_map(nlines), nlines, 8 };
            const bly_lines b = { lines_map(nlines), nlines, 8 };
            assert_true(a.words && b.words);
            bly_lines_keys in = { h, n, n % 3, 5 };
            assert_int_equal(row->add(&a, &in, maybe[0]),
                             bly_lines_add_portable(&b, &in, maybe[1]));
            assert_memory_equal(maybe[0], maybe[1], BLY_BITMAP_WORDS(n) * 8);
            in.n = n / 2; /* a stranger is among the keys that are asked for */
            in.at = h + (MOST - n / 2);
            row->has(&a, &in, maybe[0]);
            bly_lines_has_portable(&b, &in, maybe[1]);
            assert_memory_equal(maybe[0], maybe[1],
                                BLY_BITMAP_WORDS(n / 2) * 8);
            in = (bly_lines_keys){ h, n, n % 3, 5 };
            bly_lines_has_portable(&a, &in, maybe[0]);
            assert_int_equal(bly_bits_count(maybe[0], BLY_BITMAP_WORDS(n)), n);
            munmap(a.words, (size_t)nlines * 64);
            munmap(b.words, (size_t)nlines * 64);
        }
    }
}

/* Past 2^32 lines the number of a line does not fit 32 bits. The array is
 * 256 GiB of addresses, of which a few pages are used. */
static void more_lines_than_32_bits(void **state)
{
    (void)state;
    const uint64_t nlines = (UINT64_C(1) << 32) + 12345;
    if (sizeof(size_t) < 8)
        skip_for("addresses of 32 bits");
    const size_t nbytes = (size_t)(nlines * 64);
    void *at = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        skip_for("no 256 GiB of addresses");
    const bly_lines lines = { at, nlines, 8 };
    uint64_t h[100], maybe[2], rng = 5;
    for (size_t i = 0; i < COUNT_OF(h); i++)
        h[i] = test_random(&rng);
    const bly_lines_keys in = { .at = h, .n = COUNT_OF(h) };
    assert_int_equal(bly_lines_best()->add(&lines, &in, NULL), COUNT_OF(h));
    bly_lines_has_portable(&lines, &in, maybe);
    assert_int_equal(bly_bits_count(maybe, 2), COUNT_OF(h));
    munmap(at, nbytes);
}

/* The inline form gives the answers of the calls, and only where it may. */
static void the_view_agrees(void **state)
{
    (void)state;
    uint64_t rng = 6;
    for (size_t ki = 0; ki < COUNT_OF(all_k); ki++) {
        bly_filter *f = blocked_new(97, all_k[ki]);
        bly_blocked view;
        assert_true(bly_blocked_view(f, &view));
        for (uint64_t i = 0; i < 3000; i++) {
            const uint64_t h = test_random(&rng);
            if (i % 3 == 0)
                assert_ok(bly_add_hash(f, h));
            if (i % 7 == 0)
                assert_ok(bly_add_ints(f, &i, 1, NULL, NULL));
            uint64_t maybe;
            bly_has_ints(f, &i, 1, &maybe);
            assert_int_equal(bly_blocked_has(&view, h), bly_has_hash(f, h));
            assert_int_equal(bly_blocked_has_int(&view, i), maybe);
        }
        bly_free(f);
    }
    static const unsigned char secret[BLY_SECRET_BYTES] = { 1 };
    const bly_spec none[] = {
        { .kind = "classic", .items = 100, .fpr = 0.01 },
        { .kind = "blocked", .items = 100, .fpr = 0.01, .shared = true },
        { .kind = "blocked", .items = 100, .fpr = 0.01, .secret = secret },
    };
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        bly_filter *f;
        bly_blocked view;
        assert_ok(bly_new(&none[i], &f));
        assert_false(bly_blocked_view(f, &view));
        bly_free(f);
    }
}

/* Integers are added and asked for as their bytes are, with any seed, by a
 * shared filter and a keyed one too. */
static void integers_are_their_bytes(void **state)
{
    (void)state;
    static const unsigned char secret[BLY_SECRET_BYTES] = { 7 };
    const bly_spec specs[] = {
        { .items = 3000, .fpr = 0.01 },
        { .items = 3000, .fpr = 0.01, .seed = UINT64_C(0x8070605040302010) },
        { .items = 3000, .fpr = 0.01, .shared = true, .seed = 5 },
        { .items = 3000, .fpr = 0.01, .secret = secret },
        { .items = 3000, .fpr = 0.00001, .seed = 6 },
    };
    enum { N = 3000 };
    uint64_t ints[N], maybe[BLY_BITMAP_WORDS(N)];
    for (uint64_t i = 0; i < N; i++)
        ints[i] = i * i * 77777;
    for (size_t s = 0; s < COUNT_OF(specs); s++) {
        bly_filter *f, *g;
        size_t ndone;
        assert_ok(bly_new(&specs[s], &f));
        assert_ok(bly_new(&specs[s], &g));
        assert_ok(bly_add_ints(f, ints, N, maybe, &ndone));
        assert_int_equal(ndone, N);
        for (size_t i = 0; i < N; i++) {
            const uint64_t le = bly_le64(ints[i]);
            assert_ok(bly_add(g, &le, 8));
        }
        assert_true(bly_equal(f, g));
        bly_stats a, b;
        bly_peek(f, &a);
        bly_peek(g, &b);
        assert_int_equal(a.items_added, b.items_added);
        assert_int_equal(bly_bits_count(maybe, BLY_BITMAP_WORDS(N)),
                         a.items_added);
        bly_has_ints(g, ints, N, maybe);
        assert_int_equal(bly_bits_count(maybe, BLY_BITMAP_WORDS(N)), N);
        bly_free(f);
        bly_free(g);
    }
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

/* The share of keys that are said to be there, of Q that are not, in a filter
 * of N others; key_of(which, i) is key i. */
static double rate_of(uint64_t (*key_of)(unsigned which, uint64_t i),
                      unsigned which, double fpr)
{
    enum { N = 200000, Q = 2000000 };
    uint64_t *keys = malloc(Q * sizeof *keys);
    uint64_t *maybe = malloc(BLY_BITMAP_WORDS(Q) * sizeof *maybe);
    assert_non_null(keys);
    assert_non_null(maybe);
    const bly_spec spec = { .kind = "blocked", .items = N, .fpr = fpr };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    for (uint64_t i = 0; i < N; i++)
        keys[i] = key_of(which, i);
    assert_ok(bly_add_ints(f, keys, N, NULL, NULL));
    for (uint64_t i = 0; i < Q; i++)
        keys[i] = key_of(which, N + i);
    bly_has_ints(f, keys, Q, maybe);
    const double hits = (double)bly_bits_count(maybe, BLY_BITMAP_WORDS(Q));
    bly_free(f);
    free(keys);
    free(maybe);
    return hits / Q;
}

/* The rate is that of random keys, whatever the keys look like: within 10 %,
 * which is more than six deviations of 2 million questions at 1 %. */
static void any_pattern_of_keys(void **state)
{
    (void)state;
    for (unsigned pattern = 0; pattern < NPATTERNS; pattern++)
        assert_between(rate_of(patterned, pattern, 0.01), 0.009, 0.011);
}

static uint64_t random_key(unsigned which, uint64_t i)
{
    return bly_mix64(i + ((uint64_t)which << 40));
}

/* Within 3 % of the plan, four deviations at 1 %. */
static void random_keys(void **state)
{
    (void)state;
    static const double rates[] = { 0.3, 0.1, 0.03, 0.01 };
    for (unsigned i = 0; i < COUNT_OF(rates); i++) {
        const bly_spec spec = { .kind = "blocked",
                                .items = 200000,
                                .fpr = rates[i] };
        bly_prediction plan;
        assert_ok(bly_plan(&spec, &plan));
        assert_between(rate_of(random_key, i, rates[i]), 0.97 * plan.fpr,
                       1.03 * plan.fpr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_and_one_bit_a_lane),
        cmocka_unit_test(few_bits_a_key),
        cmocka_unit_test(every_row_agrees),
        cmocka_unit_test(every_row_agrees_in_memory),
        cmocka_unit_test(more_lines_than_32_bits),
        cmocka_unit_test(the_view_agrees),
        cmocka_unit_test(integers_are_their_bytes),
        cmocka_unit_test(only_powers_of_two),
        cmocka_unit_test(less_than_a_block_is_refused),
        cmocka_unit_test(any_pattern_of_keys),
        cmocka_unit_test(random_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
