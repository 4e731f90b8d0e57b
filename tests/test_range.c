/*
 * test_range.c - what is peculiar to the kind range
 *
 * Against a sorted array, and against the values computed one by one; the rate
 * for keys and questions of every pattern, near each other too; the ends of the
 * integers; signs; text; sizes; unions; and questions that make no sense. What
 * it shares with every kind is in test_laws.c, and its table in test_fano.c.
 */
#include "base/search.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/sort.h"
#include "kinds/filter.h"

/* A filter of integers, sorted on the way. */
static bly_filter *range_of(uint64_t *keys, size_t *n, const char *longest,
                            double fpr, uint64_t seed, bly_key_type type)
{
    const bly_option option = { "longest", longest };
    const bly_spec spec = { .kind = "range",
                            .fpr = fpr,
                            .seed = seed,
                            .keying = { type, 0 },
                            .options = &option,
                            .noptions = longest != NULL };
    uint64_t *h = malloc((*n + 1) * sizeof *h);
    bly_builder *b;
    bly_filter *f;
    assert_non_null(h);
    assert_ok(bly_builder_new(&spec, &b));
    bly_hash_ints(bly_builder_hasher(b), keys, *n, h);
    assert_ok(bly_builder_add(b, h, NULL, *n));
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    free(h);
    bly_hashes_unique(keys, NULL, n);
    return f;
}

static bool any_between(const uint64_t *v, size_t n, uint64_t from, uint64_t to)
{
    size_t low;
    LOWER_BOUND(low, n, v[low] < from);
    return low < n && v[low] <= to;
}

/* --------------------------------------------------------------- patterns */

typedef enum key_pattern {
    UNIFORM,
    CLUSTERED,
    MULTIPLES,
    TIMES,
    KEY_PATTERNS
} key_pattern;
typedef enum ask_pattern {
    ANYWHERE,
    BEHIND_KEYS,
    AROUND,
    ASK_PATTERNS
} ask_pattern;

static void make_keys(key_pattern pattern, uint64_t *random, uint64_t *keys,
                      size_t n)
{
    uint64_t at = test_random(random);
    for (size_t i = 0; i < n; i++) {
        const uint64_t x = test_random(random);
        if (pattern == UNIFORM)
            at = x;
        else if (pattern == CLUSTERED) /* a thousand, a few apart */
            at = i % 1000 ? at + 1 + x % 8 : x;
        else if (pattern == MULTIPLES)
            at = (uint64_t)i << 20;
        else /* a log of two weeks in milliseconds */
            at = UINT64_C(1700000000000) + x % UINT64_C(1209600000);
        keys[i] = at;
    }
}

/* The first number of a range of l without a key; false if there is none near.
 */
static bool make_range(ask_pattern pattern, uint64_t *random,
                       const uint64_t *keys, size_t n, uint64_t l, uint64_t *a)
{
    const uint64_t x = test_random(random), key = keys[x % n];
    *a = pattern == ANYWHERE      ? test_random(random)
         : pattern == BEHIND_KEYS ? key + 1
                                  : key - 5000 + test_random(random) % 10000;
    return *a <= UINT64_MAX - l && !any_between(keys, n, *a, *a + l - 1);
}

/* The rate over several seeds, each with questions of its own, is below the
 * bound by no less than three deviations. Blocks are moved as a whole, so that
 * the answers of one filter go together: the deviation is measured. */
static void rate_holds(key_pattern pattern, ask_pattern asked, uint64_t l)
{
    enum { SEEDS = 12 };
    const size_t n = scaled(100000), q = scaled(20000);
    uint64_t random = 1 + pattern * 10 + asked;
    uint64_t *keys = malloc(n * sizeof *keys);
    double sum = 0, squares = 0, bound = 0;
    assert_non_null(keys);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        size_t nkeys = n, nasked = 0, hit = 0;
        make_keys(pattern, &random, keys, n);
        bly_filter *f =
            range_of(keys, &nkeys, "64", 0.02, seed, BLY_KEYS_UINT64);
        bly_stats stats;
        bly_stat(f, &stats);
        bound = stats.fpr_now * (double)l / 64;
        for (size_t i = 0; i < 20 * q && nasked < q; i++) {
            uint64_t a;
            bool any;
            if (!make_range(asked, &random, keys, nkeys, l, &a))
                continue;
            assert_ok(bly_has_range(f, a, a + l - 1, &any));
            hit += any;
            nasked++;
        }
        const double rate = nasked ? (double)hit / (double)nasked : 0;
        sum += rate / SEEDS;
        squares += rate * rate / SEEDS;
        bly_free(f);
    }
    const double sd =
        sqrt(fmax(squares - sum * sum, bound / (double)q) / SEEDS);
    if (sum > bound + 3 * sd)
        fail_msg("keys %d, asked %d, %llu long: %g, bound %g", pattern, asked,
                 (unsigned long long)l, sum, bound);
    free(keys);
}

static void test_rate(void **state)
{
    (void)state;
    for (int keys = 0; keys < KEY_PATTERNS; keys++)
        for (int asked = 0; asked < ASK_PATTERNS; asked++) {
            rate_holds((key_pattern)keys, (ask_pattern)asked, 64);
            rate_holds((key_pattern)keys, (ask_pattern)asked, 1);
        }
}

/* A million keys: never a wrong "no", and past the longest range the rate grows
 * in proportion. */
static void test_sorted_array(void **state)
{
    (void)state;
    const size_t n = scaled(1000000), q = scaled(100000);
    uint64_t *keys = malloc(n * sizeof *keys), *a = malloc(q * sizeof *a),
             *b = malloc(q * sizeof *b);
    uint64_t *maybe = malloc(BLY_BITMAP_WORDS(q) * sizeof *maybe), random = 5;
    assert_true(keys && a && b && maybe);
    for (int pattern = 0; pattern < KEY_PATTERNS; pattern++) {
        size_t nkeys = n;
        make_keys((key_pattern)pattern, &random, keys, n);
        bly_filter *f = range_of(keys, &nkeys, NULL, 0.01, 7, BLY_KEYS_UNKNOWN);
        bly_stats stats;
        bly_stat(f, &stats);
        assert_int_equal((uint64_t)stats.items_estimate, nkeys);
        for (size_t i = 0; i < q; i++) {
            const uint64_t x = test_random(&random);
            const uint64_t l = test_random(&random) >> x % 64;
            a[i] = i % 2 ? keys[x % nkeys] - l / 2 + i % 3 : x;
            b[i] = UINT64_MAX - a[i] < l ? UINT64_MAX : a[i] + l;
        }
        assert_ok(bly_has_ranges(f, a, b, q, maybe));
        for (size_t i = 0; i < q; i++)
            if (!(maybe[i / 64] >> i % 64 & 1))
                assert_false(any_between(keys, nkeys, a[i], b[i]));
        assert_ok(bly_has_ranges(f, keys, keys, q < nkeys ? q : nkeys, maybe));
        for (size_t i = 0; i < (q < nkeys ? q : nkeys); i++)
            assert_true(maybe[i / 64] >> i % 64 & 1);
        bly_free(f);
    }
    free(keys);
    free(a);
    free(b);
    free(maybe);
}

/* ----------------------------------------------------------------- values */

/* The value of a number, as docs/format.md has it. */
static uint64_t value_for(uint64_t x, uint64_t m, uint64_t seed)
{
    unsigned b = 0;
    while (m >> b > 1)
        b++;
    const uint64_t block = bly_le64(x >> b);
    const bly_hasher hs = { .id = BLY_HASH_XXH3, .seed = seed };
    const uint64_t q = bly_mulhi(bly_hash(&hs, &block, 8), m);
    const uint64_t v = q + (x & ((UINT64_C(1) << b) - 1));
    return v >= m ? v - m : v;
}

/* Few values and short blocks: every answer is the one that follows from the
 * values, number by number, across the ends of blocks and of the universe. */
static void test_values(void **state)
{
    (void)state;
    uint64_t random = 9;
    for (uint64_t seed = 0; seed < scaled(60); seed++) {
        uint64_t keys[40];
        bool in[20000] = { false };
        size_t n = 1 + seed % COUNT_OF(keys);
        make_keys((key_pattern)(seed % KEY_PATTERNS), &random, keys, n);
        bly_filter *f = range_of(keys, &n, "8", 0.9 / (double)(1 + seed % 40),
                                 seed, BLY_KEYS_UINT64);
        const uint64_t m = f->shape.p[2];
        assert_between((double)m, 1, COUNT_OF(in));
        for (size_t i = 0; i < n; i++)
            in[value_for(keys[i], m, seed)] = true;
        for (unsigned turn = 0; turn < 300; turn++) {
            const uint64_t a = turn % 2 ? keys[turn % n] - turn
                                        : test_random(&random) >> turn % 60;
            const uint64_t l = test_random(&random) % (m + 3);
            const uint64_t b = UINT64_MAX - a < l ? UINT64_MAX : a + l;
            bool any, want = b - a >= m - 1;
            for (uint64_t x = a; !want; x++) {
                want = in[value_for(x, m, seed)];
                if (x == b)
                    break;
            }
            assert_ok(bly_has_range(f, a, b, &any));
            assert_true(any == want);
        }
        bly_free(f);
    }
}

/* Where everything would have to be told apart, everything is. */
static void test_exact_universe(void **state)
{
    (void)state;
    uint64_t keys[1000], random = 2;
    size_t n = COUNT_OF(keys);
    make_keys(CLUSTERED, &random, keys, n);
    keys[0] = 0;
    keys[1] = UINT64_MAX;
    bly_filter *f = range_of(keys, &n, "1M", 1e-12, 3, BLY_KEYS_UINT64);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_near(stats.fpr_now, 0, 0);
    for (unsigned turn = 0; turn < 20000; turn++) {
        const uint64_t x = test_random(&random);
        const uint64_t l = test_random(&random) >> x % 64;
        const uint64_t a = turn % 2 ? keys[x % n] + turn % 7 - 3 : x;
        const uint64_t b = UINT64_MAX - a < l ? UINT64_MAX : a + l;
        bool any;
        assert_ok(bly_has_range(f, a, b, &any));
        assert_true(any == any_between(keys, n, a, b));
    }
    bly_free(f);
}

/* ------------------------------------------------------------------- ends */

static bool asks(const bly_filter *f, uint64_t a, uint64_t b)
{
    bool any;
    assert_ok(bly_has_range(f, a, b, &any));
    return any;
}

static void test_ends(void **state)
{
    (void)state;
    uint64_t ends[] = { 0, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX };
    size_t n = COUNT_OF(ends);
    bly_filter *f = range_of(ends, &n, NULL, 0.01, 1, BLY_KEYS_UINT64);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_int_equal(stats.items_added, 2); /* repeated keys are one */
    assert_true(asks(f, 0, 0) && asks(f, UINT64_MAX, UINT64_MAX));
    assert_true(asks(f, 0, UINT64_MAX) && asks(f, 0, 10));
    assert_true(asks(f, UINT64_MAX - 10, UINT64_MAX));
    assert_false(asks(f, 1000, 2000) && asks(f, 1, 1) &&
                 asks(f, 1 << 20, 1 << 20));
    bly_free(f);
    /* Nothing in it: "no" to everything. */
    n = 0;
    f = range_of(ends, &n, NULL, 0.01, 1, BLY_KEYS_UINT64);
    assert_false(asks(f, 0, UINT64_MAX) || asks(f, 7, 7));
    bly_free(f);
}

/* From below zero to above it, and unsigned beside signed. */
static void test_signs(void **state)
{
    (void)state;
    uint64_t keys[] = { (uint64_t)-1000000, (uint64_t)-3, 5, 4000000 };
    size_t n = COUNT_OF(keys);
    bly_filter *f = range_of(keys, &n, NULL, 1e-6, 1, BLY_KEYS_INT64);
    assert_true(asks(f, (uint64_t)-10, 10) &&
                asks(f, (uint64_t)-10, (uint64_t)-3));
    assert_true(asks(f, (uint64_t)-10, 1) && asks(f, (uint64_t)-2, 5));
    assert_true(asks(f, (uint64_t)INT64_MIN, INT64_MAX));
    assert_false(asks(f, (uint64_t)-2, 4) ||
                 asks(f, (uint64_t)-900, (uint64_t)-800));
    bool any;
    assert_status(bly_has_range(f, 5, (uint64_t)-3, &any), BLY_EINVAL);
    assert_true(any);
    const uint64_t a = 3, b = 7, big = UINT64_MAX;
    uint64_t maybe;
    assert_ok(bly_has_ranges_as(f, BLY_KEYS_UINT64, &a, &b, 1, &maybe));
    assert_int_equal(maybe, 1);
    assert_status(bly_has_ranges_as(f, BLY_KEYS_UINT64, &a, &big, 1, &maybe),
                  BLY_EINVAL);
    const bly_bytes from = { " -4", 3 }, to = { "+07", 3 }, no = { "x", 1 };
    assert_ok(bly_has_ranges_as(f, BLY_KEYS_TEXT, &from, &to, 1, &maybe));
    assert_int_equal(maybe, 1);
    assert_status(bly_has_ranges_as(f, BLY_KEYS_TEXT, &from, &no, 1, &maybe),
                  BLY_EINVAL);
    assert_int_equal(maybe, 1);
    assert_status(bly_has_ranges_as(f, BLY_KEYS_BYTES, &from, &to, 1, &maybe),
                  BLY_EINVAL);
    assert_status(bly_has_ranges_as(f, BLY_KEYS_UNKNOWN, &from, &to, 1, &maybe),
                  BLY_EINVAL);
    /* What its keys are was decided when it was built. */
    assert_ok(bly_set_keying(f, (bly_keying){ BLY_KEYS_TEXT, 0 }));
    assert_status(bly_has_ranges_as(f, BLY_KEYS_TEXT, &from, &to, 1, &maybe),
                  BLY_EINVAL);
    assert_ok(bly_set_keying(f, (bly_keying){ BLY_KEYS_UINT64, 0 }));
    assert_status(bly_has_range(f, (uint64_t)-10, 10, &any), BLY_EINVAL);
    bly_free(f);
    n = 1;
    f = range_of(keys, &n, NULL, 1e-6, 1, BLY_KEYS_UNKNOWN);
    assert_status(bly_has_ranges_as(f, BLY_KEYS_TEXT, &from, &to, 1, &maybe),
                  BLY_EINVAL);
    bly_free(f);
}

/* ------------------------------------------------------------------- text */

static bly_filter *texts_of(const char *const *texts, size_t n, uint32_t forms)
{
    /* So long that everything is told apart. */
    const bly_option option = { "longest", "200T" };
    const bly_spec spec = { .kind = "range",
                            .fpr = 1e-6,
                            .options = &option,
                            .noptions = 1,
                            .keying = { BLY_KEYS_TEXT, forms } };
    bly_builder *b;
    bly_filter *f;
    assert_ok(bly_builder_new(&spec, &b));
    for (size_t i = 0; i < n; i++) {
        const bly_bytes key = { texts[i], strlen(texts[i]) };
        uint64_t h;
        assert_ok(bly_hash_as(bly_builder_hasher(b), spec.keying, BLY_KEYS_TEXT,
                              &key, 1, &h, NULL));
        assert_ok(bly_builder_add(b, &h, NULL, 1));
    }
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    return f;
}

static bly_status ask_text(const bly_filter *f, const char *a, const char *b,
                           uint64_t *maybe)
{
    const bly_bytes from = { a, strlen(a) }, to = { b, strlen(b) };
    return bly_has_ranges_as(f, BLY_KEYS_TEXT, &from, &to, 1, maybe);
}

/* With a common beginning the eight bytes behind it count, and answers are
 * those of a plain comparison, but that a range without the beginning at either
 * end may be "maybe". In every form of file. */
static void check_tails(const bly_filter *f)
{
    static const struct {
        const char *a, *b;
        bool any;
    } rows[] = {
        { "www.example.b", "www.example.d", true },
        { "www.example.c", "www.example.c", false },
        { "www.example.d", "www.example.dz", true },
        { "www.example.e", "www.example.h", false },
        { "www.example.d", "x", true },
        { "www.example.j", "x", false },
        { "www.example.j", "www.", false }, /* to all that begin with it */
        { "w", "www.example.a", true },
        { "w", "www.example.b", true },
        { "", "www.example.", true },
        { "www.examine.a", "www.examine.z", false },
        { "a", "z", true },
        { "a", "b", true }, /* nobody knows */
        /* The eight bytes that count are those behind the beginning. */
        { "www.example.internationalise", "www.example.internationalise",
          true },
        { "www.example.internau", "www.example.internau", false },
    };
    uint64_t maybe;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_ok(ask_text(f, rows[i].a, rows[i].b, &maybe));
        if ((maybe == 1) != rows[i].any)
            fail_msg("%s..%s", rows[i].a, rows[i].b);
    }
    assert_status(ask_text(f, "www.example.d", "www.example.b", &maybe),
                  BLY_EINVAL);
    assert_true(bly_has(f, "www.example.b", 13));
    assert_false(bly_has(f, "www.example.c", 13));
    assert_false(bly_has(f, "www.examine.b", 13));
    assert_false(bly_has(f, "www", 3));
    assert_false(bly_has(f, "", 0));
    bly_stats s;
    bly_stat(f, &s);
    assert_false(s.keyed);
    assert_int_equal(s.hash_id, BLY_HASH_ORDERED_TAILS);
    assert_int_equal(bly_secret_check_of(f), 0);
    /* An integer is a key of eight bytes, and none begins so. */
    const uint64_t some[] = { 0, 1, 0x6d6178652e777777 };
    uint64_t bits = 0;
    bly_has_ints(f, some, COUNT_OF(some), &bits);
    assert_int_equal(bits, 0);
}

static bool grow_put(void *ctx, const void *bytes, size_t nbytes)
{
    bly_bytes *const all = ctx;
    unsigned char *const more =
        realloc((void *)(uintptr_t)all->ptr, all->len + nbytes);
    assert_non_null(more);
    memcpy(more + all->len, bytes, nbytes);
    *all = (bly_bytes){ more, all->len + nbytes };
    return true;
}

static bly_filter *tails_of(const char *beginning, const char *const *tails,
                            size_t n)
{
    const bly_option option = { "longest", "200T" };
    const bly_spec spec = { .kind = "range",
                            .fpr = 1e-6,
                            .options = &option,
                            .noptions = 1,
                            .keying = { BLY_KEYS_TEXT, 0 } };
    bly_builder *b;
    bly_filter *f;
    assert_ok(bly_builder_new(&spec, &b));
    assert_ok(bly_builder_beginning(b, beginning, strlen(beginning)));
    for (size_t i = 0; i < n; i++) {
        char key[64];
        const int len = snprintf(key, sizeof key, "%s%s", beginning, tails[i]);
        const uint64_t h = bly_hash(bly_builder_hasher(b), key, (size_t)len);
        assert_ok(bly_builder_add(b, &h, NULL, 1));
    }
    assert_status(bly_builder_beginning(b, "x", 1), BLY_EINVAL);
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    return f;
}

static void test_beginning(void **state)
{
    (void)state;
    static const char *const tails[] = { "b", "d", "internationally", "" };
    bly_filter *const f = tails_of("www.example.", tails, COUNT_OF(tails));
    bly_filter *const g = tails_of("www.examine.", tails, COUNT_OF(tails));
    bly_filter *copy;
    check_tails(f);
    assert_ok(bly_clone(f, &copy));
    check_tails(copy);
    assert_status(bly_merge(copy, g), BLY_EUNFIT);
    bly_free(copy);
    for (unsigned form = 0; form < 4; form++) {
        bly_bytes all = { NULL, 0 };
        bly_set_coded(f, form & 1);
        bly_set_compact(f, form & 2);
        assert_ok(bly_write(f, grow_put, &all));
        assert_ok(bly_load(all.ptr, all.len, NULL, &copy));
        check_tails(copy);
        bly_free(copy);
        free((void *)(uintptr_t)all.ptr);
    }
    bly_free(f);
    bly_free(g);
    /* Of integers, and of kinds without an order, there is no beginning. */
    bly_builder *b;
    assert_ok(bly_builder_new(&(bly_spec){ .kind = "range", .fpr = 0.01 }, &b));
    assert_status(bly_builder_beginning(b, "x", 1), BLY_EINVAL);
    bly_builder_free(b);
    assert_ok(bly_builder_new(&(bly_spec){ .fpr = 0.01 }, &b));
    assert_status(bly_builder_beginning(b, "x", 1), BLY_ENOTSUP);
    bly_builder_free(b);
}

static void test_text(void **state)
{
    (void)state;
    static const char *const words[] = { "apple", "Banana", "cherry",
                                         "internationally", "" };
    static const struct {
        const char *a, *b;
        bool any;
    } rows[] = {
        { "apple", "apple", true },
        { "app", "app", true }, /* all that begin with it */
        { "apq", "apz", false },
        { "applf", "azzzzzzz", false },
        { "applesau", "applesau", false },
        { "Ba", "Bb", true },
        { "b", "bzzz", false },
        { "cherr", "cherz", true },
        { "", "", true }, /* all that begin with nothing: all */
        { "z", "\xff\xff\xff\xff\xff\xff\xff\xff\xff", false },
        { "internat", "internat", true },
        /* What differs behind the eighth byte is one key. */
        { "internationalise", "internationalise", true },
        { "internau", "internau", false },
        { "cherry", "ch", true }, /* up to all that begin with ch */
    };
    bly_filter *f = texts_of(words, COUNT_OF(words), 0);
    uint64_t maybe;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_ok(ask_text(f, rows[i].a, rows[i].b, &maybe));
        if ((maybe == 1) != rows[i].any)
            fail_msg("%s..%s", rows[i].a, rows[i].b);
    }
    assert_status(ask_text(f, "b", "a", &maybe), BLY_EINVAL);
    assert_status(ask_text(f, "internaz", "internay", &maybe), BLY_EINVAL);
    assert_status(bly_has_ranges(f, &maybe, &maybe, 1, &maybe), BLY_EINVAL);
    bly_free(f);
    f = texts_of(words, COUNT_OF(words), BLY_KEYS_FOLDED | BLY_KEYS_TRIMMED);
    assert_ok(ask_text(f, " bANa", "Bb ", &maybe));
    assert_int_equal(maybe, 1);
    assert_ok(ask_text(f, "BC", "BZ", &maybe));
    assert_int_equal(maybe, 0);
    bly_free(f);
}

/* The order of bytes is that of their numbers, and the hash gives it back. */
static void test_order(void **state)
{
    (void)state;
    uint64_t random = 4;
    unsigned char before[12] = { 0 };
    size_t len_before = 0;
    for (unsigned i = 0; i < 10000; i++) {
        unsigned char key[12];
        const size_t len = test_random(&random) % 13;
        for (size_t j = 0; j < len; j++)
            key[j] = (unsigned char)(test_random(&random) % 3 * 127);
        const size_t n = len < len_before ? len : len_before;
        const int by = n ? memcmp(key, before, n) : 0;
        const bool above = by > 0 || (by == 0 && len >= len_before);
        const uint64_t x = bly_order(BLY_HASH_ORDERED_BYTES, key, len);
        const uint64_t y =
            bly_order(BLY_HASH_ORDERED_BYTES, before, len_before);
        assert_true(above ? x >= y : x <= y);
        const bly_hasher hs = { .id = BLY_HASH_ORDERED_BYTES };
        assert_true(bly_unmix64(bly_hash(&hs, key, len)) == x);
        assert_true(bly_unmix64(bly_mix64(x * i)) == x * i);
        memcpy(before, key, len);
        len_before = len;
    }
}

/* ------------------------------------------------------------------ sizes */

/* At most 1.1 times the bits of the formula, whatever is asked for. */
static void test_size(void **state)
{
    (void)state;
    static const uint64_t items[] = { 10000, 1000000, 123456789, 4000000000 };
    static const char *const longest[] = { "1", "32", "1000", "1M", "5G" };
    static const double rates[] = { 0.2, 0.05, 0.01, 1e-3, 1e-6 };
    for (size_t i = 0; i < COUNT_OF(items); i++)
        for (size_t j = 0; j < COUNT_OF(longest); j++)
            for (size_t k = 0; k < COUNT_OF(rates); k++) {
                const bly_option option = { "longest", longest[j] };
                bly_spec spec = { .kind = "range",
                                  .items = items[i],
                                  .fpr = rates[k],
                                  .options = &option,
                                  .noptions = 1 };
                bly_prediction p, q;
                uint64_t l;
                assert_ok(bly_plan(&spec, &p));
                assert_true(bly_parse_count(longest[j], &l));
                const double formula = log2((double)l / rates[k]) + 2;
                if (formula > 7)
                    assert_between(p.bits_per_key, 0, 1.1 * formula);
                assert_between(p.fpr, 0, rates[k] * 1.001);
                const double point =
                    fact_of(p.facts, p.nfacts, "point_rate")->real;
                if (point > 0) /* else everything is told apart */
                    assert_near(point * (double)l, p.fpr, 1e-3);
                if (p.fpr > 0.9) /* one of 1 says nothing, and is refused */
                    continue;
                /* The same memory gives the same rate. */
                spec.bits = p.bits;
                spec.fpr = 0;
                assert_ok(bly_plan(&spec, &q));
                assert_true(q.bits <= p.bits && q.fpr <= p.fpr * 1.01);
            }
    const bly_spec few = { .kind = "range", .items = 1000, .bits = 9000 };
    bly_prediction p;
    assert_status(bly_plan(&few, &p), BLY_EINVAL);
}

/* -------------------------------------------------------------- combining */

/* Planned for both together, two filters become that of both; planned for less,
 * the union holds all and says that its rate has grown. */
static void test_union(void **state)
{
    (void)state;
    enum { N = 5000 };
    uint64_t keys[2 * N], h[2 * N], random = 6;
    bly_filter *f[3];
    make_keys(CLUSTERED, &random, keys, COUNT_OF(keys));
    for (uint64_t items = N; items <= 3 * N; items += N) {
        const bly_spec spec = { .kind = "range",
                                .items = items,
                                .seed = 8,
                                .keying = { BLY_KEYS_UINT64, 0 } };
        for (int i = 0; i < 3; i++) {
            bly_builder *b;
            assert_ok(bly_builder_new(&spec, &b));
            bly_hash_ints(bly_builder_hasher(b), keys, COUNT_OF(keys), h);
            if (i < 2) /* the last quarter is in both */
                assert_ok(bly_builder_add(b, h + i * N / 2, NULL, N));
            else
                assert_ok(bly_builder_add(b, h, NULL, N / 2 * 3));
            assert_ok(bly_builder_finish(b, 1, &f[i]));
            bly_builder_free(b);
        }
        bly_stats before, after;
        bly_stat(f[0], &before);
        assert_ok(bly_merge(f[0], f[1]));
        bly_stat(f[0], &after);
        for (size_t i = 0; i < N / 2 * 3; i++)
            assert_true(asks(f[0], keys[i], keys[i] + 1));
        assert_near(after.fpr_now, 1.5 * before.fpr_now, 0.01);
        assert_near(after.items_estimate, 1.5 * N, 0.01);
        assert_true(after.fpr_at_capacity >= after.fpr_now * 0.99);
        if (items >= 2 * N)
            assert_true(bly_equal(f[0], f[2]));
        assert_ok(bly_intersect(f[0], f[1]));
        bly_stat(f[0], &after);
        assert_near(after.items_estimate, N, 0.01);
        for (int i = 0; i < 3; i++)
            bly_free(f[i]);
    }
}

/* ------------------------------------------------------------------ wrong */

static void test_refusals(void **state)
{
    (void)state;
    const unsigned char secret[BLY_SECRET_BYTES] = { 1 };
    bly_spec spec = { .kind = "range", .items = 10, .secret = secret };
    bly_builder *b;
    bly_filter *f;
    assert_status(bly_builder_new(&spec, &b), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "seed"));
    spec.secret = NULL;
    assert_status(bly_new(&spec, &f), BLY_ENOTSUP);
    /* A file that claims another hash would give wrong noes. */
    uint64_t keys[] = { 1, 2, 3 };
    size_t n = 3;
    f = range_of(keys, &n, NULL, 0.01, 1, BLY_KEYS_UINT64);
    bly_filter_extra(f)->hasher.id = BLY_HASH_XXH3;
    byte_array a = written(f);
    bly_filter *g;
    assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
    free(a.at);
    bly_free(f);
    const bly_spec plain = { .kind = "classic", .items = 10 };
    assert_ok(bly_new(&plain, &f));
    bly_filter_extra(f)->hasher.id = BLY_HASH_ORDERED_INTS;
    a = written(f);
    assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
    free(a.at);
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),      cmocka_unit_test(test_sorted_array),
        cmocka_unit_test(test_values),    cmocka_unit_test(test_exact_universe),
        cmocka_unit_test(test_ends),      cmocka_unit_test(test_signs),
        cmocka_unit_test(test_text),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_beginning), cmocka_unit_test(test_size),
        cmocka_unit_test(test_union),     cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
