/*
 * test_place.c - which of n members holds a key
 *
 * For every rule: loads are as even as it promises, a member that comes takes
 * keys and nobody else gets any, copies are on different members; what is wrong
 * is refused, and memory that fails leaves nothing behind.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/place.h>

#include "core/bits.h"
#include "support.h"

#define MEMBERS 20
#define KEYS 40000

static char texts[MEMBERS + 1][16];
static bly_bytes names[MEMBERS + 1];

static int name_members(void **state)
{
    (void)state;
    for (size_t i = 0; i <= MEMBERS; i++)
        names[i] =
            (bly_bytes){ texts[i], (size_t)snprintf(texts[i], 16, "m%zu", i) };
    return 0;
}

static bly_place *place_of(const char *rule, size_t n)
{
    const bly_place_spec spec = { .rule = rule, .names = names, .n = n };
    bly_place *p;
    assert_ok(bly_place_new(&spec, &p));
    return p;
}

static void spreads_evenly_and_moves_little(void **state)
{
    const char *rule;
    (void)state;
    for (size_t r = 0; (rule = bly_place_rule(r, NULL)); r++) {
        bly_place *const before = place_of(rule, MEMBERS);
        bly_place *const after = place_of(rule, MEMBERS + 1);
        uint32_t loads[MEMBERS + 1] = { 0 };
        unsigned moved = 0, needless = 0;
        for (uint64_t i = 0; i < KEYS; i++) {
            const uint64_t h = bly_mix64(i);
            uint32_t a = bly_place_of(before, h), b = bly_place_of(after, h);
            assert_true(a < MEMBERS && b <= MEMBERS);
            if (strcmp(rule, "bounded") == 0) {
                uint32_t taken;
                assert_ok(bly_place_take(before, h, &taken));
                assert_int_equal(taken, a);
                assert_ok(bly_place_take(after, h, &b));
            }
            loads[a]++;
            moved += a != b;
            needless += a != b && b != MEMBERS;
        }
        uint32_t most = 0;
        for (size_t i = 0; i < MEMBERS; i++)
            most = loads[i] > most ? loads[i] : most;
        assert_between(most * (double)MEMBERS / KEYS, 1, 1.3);
        if (strcmp(rule, "bounded") == 0) {
            assert_true(most <= ceil(1.25 * KEYS / MEMBERS));
        } else {
            assert_between((double)moved / KEYS, 0.03, 0.08);
            if (strcmp(rule, "table") == 0)
                assert_between((double)needless / KEYS, 0, 0.03);
            else
                assert_int_equal(needless, 0);
        }
        assert_true(bly_place_bytes(before) > 0);
        bly_place_free(before);
        bly_place_free(after);
    }
}

static void copies_are_on_different_members(void **state)
{
    const char *rule;
    (void)state;
    for (size_t r = 0; (rule = bly_place_rule(r, NULL)); r++)
        for (size_t n = 1; n <= MEMBERS; n += n < 4 ? 1 : 8) {
            bly_place *const p = place_of(rule, n);
            for (uint64_t i = 0; i < 200; i++) {
                uint32_t m[MEMBERS + 2], first[3];
                const uint64_t h = bly_mix64(i);
                const size_t got = bly_place_copies(p, h, m, MEMBERS + 2);
                assert_int_equal(got, n);
                assert_int_equal(m[0], bly_place_of(p, h));
                for (size_t a = 0; a < got; a++)
                    for (size_t b = 0; b < a; b++)
                        assert_true(m[a] != m[b]);
                assert_int_equal(bly_place_copies(p, h, first, 3),
                                 n < 3 ? n : 3);
                assert_memory_equal(first, m, (n < 3 ? n : 3) * sizeof m[0]);
                assert_int_equal(bly_place_copies(p, h, first, 0), 0);
            }
            bly_place_free(p);
        }
}

static void weights_count(void **state)
{
    static const char *const rules[] = { "ring", "rendezvous", "table",
                                         "bounded" };
    static const uint32_t weights[4] = { 1, 2, 3, 4 };
    (void)state;
    for (size_t r = 0; r < COUNT_OF(rules); r++) {
        const bly_place_spec spec = { .rule = rules[r],
                                      .names = names,
                                      .n = 4,
                                      .weights = weights,
                                      .points = 500 };
        bly_place *p;
        uint32_t loads[4] = { 0 }, m;
        assert_ok(bly_place_new(&spec, &p));
        for (uint64_t i = 0; i < KEYS; i++) {
            m = bly_place_of(p, bly_mix64(i));
            if (r == 3)
                assert_ok(bly_place_take(p, bly_mix64(i), &m));
            loads[m]++;
        }
        for (size_t i = 0; i < 4; i++)
            assert_between(loads[i] / (KEYS / 10.0) / weights[i], 0.85, 1.15);
        bly_place_free(p);
    }
}

static void counts_down_too(void **state)
{
    bly_place *const p = place_of("bounded", 3), *const ring =
                                                     place_of(NULL, 3);
    uint32_t m;
    (void)state;
    assert_status(bly_place_give(p, 0), BLY_EINVAL);
    assert_status(bly_place_give(p, 3), BLY_EINVAL);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_ok(bly_place_take(p, bly_mix64(i), &m));
        assert_ok(bly_place_give(p, m));
    }
    assert_status(bly_place_take(ring, 1, &m), BLY_ENOTSUP);
    assert_status(bly_place_give(ring, 1), BLY_ENOTSUP);
    bly_place_free(p);
    bly_place_free(ring);
}

static void refuses_what_is_wrong(void **state)
{
    static const uint32_t zero[2] = { 1, 0 }, two[2] = { 1, 2 };
    const bly_bytes same[2] = { { "x", 1 }, { "x", 1 } };
    const bly_place_spec bad[] = {
        { .names = names },
        { .n = 3 },
        { .names = names, .n = BLY_PLACE_MOST + 1 },
        { .names = names, .n = 2, .rule = "circle" },
        { .names = names, .n = 2, .points = BLY_PLACE_MOST_POINTS + 1 },
        { .names = names, .n = 2, .most = 1, .rule = "table" },
        { .names = names, .n = 2, .slack = -1, .rule = "bounded" },
        { .names = names, .n = 2, .slack = NAN, .rule = "bounded" },
        { .names = names, .n = 2, .weights = zero },
        { .names = same, .n = 2 },
    };
    bly_place *p = (bly_place *)(void *)texts;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(bly_place_new(&bad[i], &p), BLY_EINVAL);
        assert_null(p);
    }
    assert_status(bly_place_new(NULL, &p), BLY_EINVAL);
    assert_status(bly_place_new(&(bly_place_spec){ .rule = "jump",
                                                   .names = names,
                                                   .n = 2,
                                                   .weights = two },
                                &p),
                  BLY_ENOTSUP);
    bly_place_free(NULL);
}

/* ---------------------------------------------------------------- no memory */

static size_t budget, alive;

static void *give(void *ctx, size_t nbytes)
{
    (void)ctx;
    if (!budget)
        return NULL;
    budget--;
    void *const at = malloc(nbytes);
    alive += at != NULL;
    return at;
}

static void take_back(void *ctx, void *at, size_t nbytes)
{
    (void)ctx;
    (void)nbytes;
    alive -= at != NULL;
    free(at);
}

static void fails_without_a_trace(void **state)
{
    const bly_mem mem = { .alloc = give, .release = take_back };
    const char *rule;
    (void)state;
    for (size_t r = 0; (rule = bly_place_rule(r, NULL)); r++)
        for (size_t allowed = 0;; allowed++) {
            const bly_place_spec spec = {
                .rule = rule, .names = names, .n = 5, .mem = &mem
            };
            bly_place *p;
            budget = allowed;
            const bly_status st = bly_place_new(&spec, &p);
            if (st == BLY_OK) {
                bly_place_free(p);
                assert_int_equal(alive, 0);
                break;
            }
            assert_int_equal(st, BLY_ENOMEM);
            assert_int_equal(alive, 0);
        }
}

/* What others have computed must stay where it is. */
static void places_never_change(void **state)
{
    static const uint32_t expected[5][8] = { { 3, 4, 8, 2, 7, 6, 2, 3 },
                                             { 6, 6, 5, 6, 2, 3, 8, 1 },
                                             { 9, 7, 9, 5, 8, 4, 8, 9 },
                                             { 4, 4, 1, 0, 6, 0, 7, 0 },
                                             { 3, 4, 8, 2, 7, 6, 2, 3 } };
    const char *rule;
    (void)state;
    for (size_t r = 0; (rule = bly_place_rule(r, NULL)); r++) {
        bly_place *const p = place_of(rule, 10);
        for (uint64_t i = 0; i < 8; i++)
            assert_int_equal(bly_place_of(p, bly_mix64(i + 1)), expected[r][i]);
        bly_place_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spreads_evenly_and_moves_little),
        cmocka_unit_test(copies_are_on_different_members),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(counts_down_too),
        cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(fails_without_a_trace),
        cmocka_unit_test(places_never_change),
    };
    return cmocka_run_group_tests(tests, name_members, NULL);
}
