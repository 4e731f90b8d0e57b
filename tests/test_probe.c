/*
 * test_probe.c - positions, their repetitions, and the two ways to visit them
 */
#include "tests/support.h"

#include <stdlib.h>

#include "core/position.h"
#include "kinds/probe.h"

/* Where list says that positions cannot repeat, they do not; and where the
 * array is large it seldom says that they may. */
static void repetitions_are_never_missed(void **state)
{
    (void)state;
    static const uint64_t ms[] = { 1,    2,    3,    7,     8,       10,
                                   31,   64,   97,   1000,  1 << 16, 65537,
                                   9586, 9592, 4096, 479253 };
    static const uint64_t ks[] = { 1, 2, 3, 4, 7, 10, 16, 33, 255 };
    uint64_t rng = 1, seen = 0, said = 0, asked = 0;
    for (size_t i = 0; i < COUNT_OF(ms); i++)
        for (size_t j = 0; j < COUNT_OF(ks); j++) {
            const uint64_t m = ms[i], k = ks[j];
            const bly_modulus range = bly_modulus_of(m);
            if (k > m)
                continue;
            for (int round = 0; round < (k > 40 ? 200 : 3000); round++) {
                const uint64_t h = test_random(&rng);
                uint64_t at[BLY_PROBE_MAX_K], again[BLY_PROBE_MAX_K];
                const bool may = bly_probe_repeats(&h, 1, range, k);
                const bly_spots all = bly_probe_list(h, range, k, at);
                bly_probe p = bly_probe_start(h, range);
                for (uint64_t q = 0; q < k; q++) {
                    assert_int_equal(at[q], bly_probe_next(&p, m, q));
                    assert_true(at[q] < m);
                    again[q] = at[q];
                }
                const uint64_t left = bly_probe_dedupe(all, at).n;
                for (uint64_t a = 0; a < left; a++)
                    for (uint64_t b = 0; b < a; b++)
                        assert_true(at[a] != at[b]);
                for (uint64_t q = 0; q < k; q++) {
                    bool kept = false;
                    for (uint64_t a = 0; a < left; a++)
                        kept |= at[a] == again[q];
                    assert_true(kept);
                }
                assert_true(may || left == k);
                seen += left < k;
                if (m == 479253 && k == 7) {
                    said += may;
                    asked++;
                }
            }
        }
    assert_true(seen > 1000);
    assert_true(said * 100 < asked);
}

/* A cell passes where the number says so: some numbers deny, some do not. */
static bool parity_test(const void *ctx, uint64_t at, uint64_t tag)
{
    const uint64_t *salt = ctx;
    return bly_mix64(at ^ *salt ^ (tag & 15) << 32) % 8 != 0;
}

/* Asking in rounds gives what asking one by one gives, for all k and batches
 * that end anywhere. */
static void rounds_give_what_a_loop_gives(void **state)
{
    (void)state;
    static unsigned char cells[4096];
    uint64_t rng = 3;
    for (int round = 0; round < 400; round++) {
        const uint64_t salt = test_random(&rng);
        const uint64_t k = round % 7 ? 1 + test_random(&rng) % 40
                                     : 1 + test_random(&rng) % 255;
        const uint64_t m = k + (round % 3 ? salt % 5000 : salt % 3);
        const size_t n = (size_t)(test_random(&rng) % 1300);
        bly_probe_query q = {
            .cells = cells,
            .width = 4,
            .range = bly_modulus_of(m),
            .k = k,
            .rule = round % 5 ? BLY_STEPS_DOUBLE : BLY_STEPS_POWERS,
            .tagged = round % 2,
            .test = parity_test,
            .ctx = &salt,
        };
        uint64_t h[1300], maybe[BLY_BITMAP_WORDS(1300)] = { 0 };
        for (size_t j = 0; j < n; j++)
            h[j] = test_random(&rng);
        bly_probe_ask(&q, h, n, maybe);
        for (size_t j = 0; j < n; j++) {
            bly_probe p = bly_probe_start(h[j], q.range);
            uint64_t tag = bly_probe_tag(h[j]), g = h[j];
            bool in = true;
            for (uint64_t i = 0; i < k; i++) {
                const uint64_t at = round % 5 ? bly_probe_next(&p, m, i)
                                              : bly_probe_power(&g, m);
                in &= parity_test(&salt, at, q.tagged ? tag : 0);
                tag = bly_probe_tag_next(tag, i);
            }
            assert_int_equal(bly_bit_get(maybe, j), in);
        }
    }
}

typedef struct visited {
    const uint64_t *h;
    bly_modulus range;
    uint64_t k;
    size_t next;
    bool different;
} visited;

static void visit_one(void *ctx, size_t i, bly_spots at)
{
    visited *const v = ctx;
    uint64_t mine[BLY_PROBE_MAX_K];
    assert_int_equal(i, v->next++);
    bly_spots want = bly_probe_list(v->h[i], v->range, v->k, mine);
    if (v->different)
        want = bly_probe_dedupe(want, mine);
    assert_int_equal(at.n, want.n);
    for (uint64_t j = 0; j < want.n; j++)
        assert_int_equal(bly_spot(at, j), mine[j]);
}

static void every_key_is_visited_once_in_order(void **state)
{
    (void)state;
    static unsigned char cells[4096];
    uint64_t rng = 4, h[300];
    for (int round = 0; round < 200; round++) {
        const uint64_t k = 1 + test_random(&rng) % 255;
        const size_t n = (size_t)(test_random(&rng) % 300);
        for (size_t j = 0; j < n; j++)
            h[j] = test_random(&rng);
        visited v = { h, bly_modulus_of(k + test_random(&rng) % 4000), k, 0,
                      round % 2 };
        bly_probe_each(cells, 8, (bly_steps){ .range = v.range, .k = k },
                       v.different, h, n, NULL, visit_one, &v);
        assert_int_equal(v.next, n);
    }
}

/* Whether k of the m numbers that follow each other by steps of h and of the
 * row are those of the portable row, which is the last; and no more is said to
 * repeat. */
static void rows_agree_at(uint64_t m, uint64_t k, size_t n, uint64_t *rng)
{
    enum { MOST = 200 };
    static uint64_t at[2][(MOST + BLY_STEPS_LANES) * BLY_PROBE_MAX_K];
    const size_t stride =
        (n + BLY_STEPS_LANES - 1) / BLY_STEPS_LANES * BLY_STEPS_LANES;
    const bly_steps steps = { .range = bly_modulus_of(m),
                              .k = k,
                              .stride = stride };
    const bly_steps apart = { .range = steps.range,
                              .k = k,
                              .stride = stride,
                              .rule = BLY_STEPS_MIXED,
                              .apart = m * (n % 2) };
    const bly_steps powers = {
        .range = steps.range, .k = k, .stride = stride, .rule = BLY_STEPS_POWERS
    };
    const bly_steps_row *const last = LAST_ROW(steps);
    uint64_t *const h = malloc((n ? n : 1) * sizeof *h);
    uint64_t near[2][BLY_BITMAP_WORDS(MOST)];
    assert_non_null(h);
    for (size_t j = 0; j < n; j++)
        h[j] = j % 5 ? test_random(rng) : UINT64_MAX - test_random(rng) % 3;
    last->list(&steps, h, n, at[0], near[0]);
    EACH_ROW(steps, row)
    {
        for (int listed = 0; listed < 2; listed++) {
            memset(at[1], 0xff, sizeof at[1]);
            if (listed)
                row->list(&steps, h, n, at[1], near[1]);
            else
                row->fill(&steps, h, n, at[1]);
            for (uint64_t i = 0; i < k; i++)
                for (size_t j = 0; j < n; j++)
                    assert_int_equal(at[1][i * stride + j],
                                     at[0][i * stride + j]);
        }
        assert_memory_equal(near[1], near[0],
                            BLY_BITMAP_WORDS(n) * sizeof near[0][0]);
        row->fill(&powers, h, n, at[1]);
        for (size_t j = 0; j < n; j++) {
            uint64_t g = h[j];
            for (uint64_t i = 0; i < k; i++, g *= BLY_POWERS_C)
                assert_int_equal(at[1][i * stride + j], bly_mulhi(g, m));
        }
        row->fill(&apart, h, n, at[1]);
        for (uint64_t i = 0; i < k; i++)
            for (size_t j = 0; j < n; j++)
                assert_int_equal(at[1][i * stride + j],
                                 i * apart.apart + bly_position(h[j], i, m));
    }
    for (size_t j = 0; j < n; j++) {
        bly_probe p = bly_probe_start(h[j], steps.range);
        for (uint64_t i = 0; i < k; i++)
            assert_int_equal(at[0][i * stride + j], bly_probe_next(&p, m, i));
    }
    free(h);
}

static void rows_agree(void **state)
{
    (void)state;
    uint64_t rng = 6;
    for (int round = 0; round < 3000; round++) {
        const uint64_t k = round % 9 ? 1 + test_random(&rng) % 20
                                     : 1 + test_random(&rng) % BLY_PROBE_MAX_K;
        const uint64_t room =
            BLY_PROBE_MAX_CELLS >> (test_random(&rng) % 49); /* 1 .. 2^48 */
        const uint64_t m = room > k ? room - test_random(&rng) % (room - k) : k;
        rows_agree_at(m, k, (size_t)(test_random(&rng) % 200), &rng);
    }
}

/* The 4 bits of a probe are spread evenly, and do not follow its position. */
static void tags_are_independent(void **state)
{
    (void)state;
    uint64_t rng = 5, seen[16][16] = { { 0 } };
    const bly_modulus range = bly_modulus_of(32);
    const int keys = 40000;
    for (int i = 0; i < keys; i++) {
        const uint64_t h = test_random(&rng);
        bly_probe p = bly_probe_start(h, range);
        uint64_t tag = bly_probe_tag(h);
        for (uint64_t j = 0; j < 20; j++) {
            const uint64_t at = bly_probe_next(&p, 32, j) / 2;
            seen[at][tag & 15] += j == 0 || j == 19;
            tag = bly_probe_tag_next(tag, j);
        }
    }
    /* 80000 / 256 = 312.5 each, deviation 18. */
    for (int a = 0; a < 16; a++)
        for (int b = 0; b < 16; b++)
            assert_between((double)seen[a][b], 312.5 - 90, 312.5 + 90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repetitions_are_never_missed),
        cmocka_unit_test(rounds_give_what_a_loop_gives),
        cmocka_unit_test(every_key_is_visited_once_in_order),
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(tags_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
