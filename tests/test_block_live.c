/*
 * test_block_live.c - entries that come and go, beside an exact table
 */
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/block_live.h"
#include "base/random.h"
#include "tests/support.h"

static uint64_t mix(uint64_t i)
{
    return random_next(&i);
}

static struct live_table table_new(uint32_t nlines)
{
    struct live_table t = { .nlines = nlines };
    t.lines = calloc(nlines, sizeof *t.lines);
    t.hits = calloc((size_t)nlines * 8, sizeof *t.hits);
    assert_non_null(t.lines);
    assert_non_null(t.hits);
    return t;
}

static void table_free(struct live_table *t)
{
    free(t->lines);
    free(t->hits);
}

static bool is_listed(const struct live_table *t, uint64_t hash, uint32_t now)
{
    const uint32_t at = live_find(t, hash);
    return at != LIVE_NONE && live_end(t, at) != XDP_RELEASED &&
           !live_over(live_end(t, at), now);
}

/* As much as there is promised to be room for, with lines that overflow. */
static void has_the_room_it_promises(void **state)
{
    (void)state;
    struct live_table t = table_new(live_lines(65536));
    uint64_t overflown = 0;
    assert_int_equal(live_room(t.nlines), 65536);
    for (uint64_t i = 0; i < 65536; i++)
        assert_true(live_put(&t, mix(i), XDP_NEVER, 2));
    for (uint64_t i = 0; i < 65536; i++)
        assert_true(is_listed(&t, mix(i), 2));
    /* 14 places and 31 bits: one of 150 million. */
    for (uint64_t i = 65536; i < 400000; i++)
        assert_false(is_listed(&t, mix(i), 2));
    for (uint32_t i = 0; i < t.nlines; i++)
        overflown += t.lines[i].more;
    assert_between((double)overflown / t.nlines, 0.02, 0.12);
    table_free(&t);
}

/* Additions, renewals, releases and times in any order, around the tick at
 * which numbers begin again. */
static void agrees_with_an_exact_table(void **state)
{
    (void)state;
    enum { NKEYS = 400 };
    static struct {
        bool there;
        uint32_t end;
    } exact[NKEYS];
    struct live_table t = table_new(live_lines(NKEYS));
    uint32_t now = UINT32_MAX - 5000;
    uint64_t seed = 42;
    memset(exact, 0, sizeof exact);
    for (unsigned step = 0; step < 200000; step++) {
        seed = mix(seed);
        const size_t key = seed % NKEYS;
        const uint64_t hash = mix(key + 1000);
        uint32_t end = now + 1 + (uint32_t)(seed >> 40) % 300;
        end += end < XDP_FIRST_TICK ? XDP_FIRST_TICK : 0;
        switch (seed >> 20 & 7) {
        case 0:
            end = XDP_NEVER; /* fall through */
        case 1:
        case 2:
            assert_true(live_put(&t, hash, end, now));
            exact[key].there = true;
            exact[key].end = end;
            break;
        case 3: {
            const uint32_t at = live_find(&t, hash);
            if (at != LIVE_NONE)
                live_clear(&t, at);
            exact[key].there = false;
            break;
        }
        case 4:
            if (seed >> 60 == 0)
                live_sweep(&t, now);
            now += step % 4 == 0;
            break;
        default:
            assert_int_equal(is_listed(&t, hash, now),
                             exact[key].there &&
                                 !live_over(exact[key].end, now));
            break;
        }
    }
    assert_true(now > 2 && now < 1000000); /* began again */
    struct live_counts want = { 0 };
    for (size_t i = 0; i < NKEYS; i++)
        if (exact[i].there && !live_over(exact[i].end, now)) {
            want.listed++;
            want.timed += exact[i].end != XDP_NEVER;
        }
    const struct live_counts got = live_sweep(&t, now);
    assert_int_equal(got.listed, want.listed);
    assert_int_equal(got.timed, want.timed);
    table_free(&t);
}

/* A full table says so, and keeps what it has. */
static void refuses_what_has_no_room(void **state)
{
    (void)state;
    struct live_table t = table_new(64);
    uint64_t n = 0;
    while (live_put(&t, mix(n), XDP_NEVER, 2))
        n++;
    assert_between((double)n, 256, 448);
    for (uint64_t i = 0; i < n; i++)
        assert_true(is_listed(&t, mix(i), 2));
    assert_false(is_listed(&t, mix(n), 2));
    table_free(&t);
}

/* A list is asked by the hash of the kernel's program. */
static void hashes_as_the_filter_does(void **state)
{
    (void)state;
    const bly_spec spec = { .kind = "blocked",
                            .items = 10,
                            .fpr = 0.01,
                            .seed = 7,
                            .keying = { .type = BLY_KEYS_BYTES } };
    static const uint64_t secret[4] = { UINT64_C(0xbe4ba423396cfeb8),
                                        UINT64_C(0x1cad21f72c81017c),
                                        UINT64_C(0xdb979083e96dd4de),
                                        UINT64_C(0x1f67b3b7a4a44072) };
    struct prefix four = { .version = 4, .bits = 24, .at = { 192, 0, 2 } };
    struct prefix six = { .version = 6,
                          .bits = 33,
                          .at = { 0x20, 1, 0xd, 0xb8, 128 } };
    bly_filter *f;
    bly_blocked b;
    unsigned char key[PREFIX_KEY];
    assert_ok(bly_new(&spec, &f));
    assert_true(bly_blocked_view(f, &b));
    const struct xdp_hash h = { bly_int_turned(b.flip),
                                { secret[0] + 7, secret[1] - 7, secret[2] + 7,
                                  secret[3] - 7 } };
    size_t n = prefix_key(&four, key);
    assert_true(live_hash(&h, &four) == bly_hash(bly_hasher_of(f), key, n));
    n = prefix_key(&six, key);
    assert_true(live_hash(&h, &six) == bly_hash(bly_hasher_of(f), key, n));
    bly_free(f);
}

/* The time that a line says, in every form of list. */
static void times_of_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint32_t seconds; /* 1: the line is bad */
    } rows[] = {
        { "192.0.2.7", 0 },
        { "192.0.2.7 timeout 300", 300 },
        { "192.0.2.0/24 timeout 0 # stays", PREFIX_EVER },
        { "192.0.2.7-192.0.2.7 timeout 1d2h3m4s", 93784 },
        { "192.0.2.7 timeout 200ms", 2 },
        { "192.0.2.7 timeout 99999999d", PREFIX_EVER - 1 },
        { "add bad 192.0.2.7 timeout 60 comment \"x\"", 60 },
        { "add bad 192.0.2.7", 0 },
        { "add element ip t s { 192.0.2.7 timeout 1h expires 59m2s }", 3542 },
        { "192.0.2.7 timeout", 1 },
        { "192.0.2.7 timeout soon", 1 },
        { "192.0.2.7 timeout -5", 1 },
        { "192.0.2.7 timeout 5x", 1 },
        { "192.0.2.7 timeout 99999999999", 1 },
        { "add bad 192.0.2.7 timeout 1h30", 1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct prefix_set set = { 0 };
        struct prefix_reader r = { .take = prefix_set_take, .ctx = &set };
        const char *why;
        const bool good =
            prefix_line(&r, rows[i].line, strlen(rows[i].line), &why);
        print_message("%s\n", rows[i].line);
        assert_int_equal(good, rows[i].seconds != 1);
        assert_int_equal(set.n, good);
        if (good && rows[i].seconds != 2)
            assert_int_equal(set.at[0].seconds, rows[i].seconds);
        else if (good) /* less than a second is one */
            assert_int_equal(set.at[0].seconds, 1);
        prefix_set_free(&set);
    }
}

/* Of two lines for one prefix the longer time counts. */
static void the_longest_time_counts(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "10.0.0.1 timeout 5", "10.0.0.1 timeout 50", "10.0.0.2 timeout 5",
        "10.0.0.2",           "10.0.0.3 timeout 0",  "10.0.0.3 timeout 9"
    };
    struct prefix_set set = { 0 };
    struct prefix_reader r = { .take = prefix_set_take, .ctx = &set };
    const char *why;
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        assert_true(prefix_line(&r, lines[i], strlen(lines[i]), &why));
    prefix_set_sort(&set);
    assert_int_equal(set.n, 3);
    assert_int_equal(set.at[0].seconds, 50);
    assert_int_equal(set.at[1].seconds, 0);
    assert_int_equal(set.at[2].seconds, PREFIX_EVER);
    prefix_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_room_it_promises),
        cmocka_unit_test(agrees_with_an_exact_table),
        cmocka_unit_test(refuses_what_has_no_room),
        cmocka_unit_test(hashes_as_the_filter_does),
        cmocka_unit_test(times_of_lines),
        cmocka_unit_test(the_longest_time_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
