/*
 * test_topk.c - the heaviest keys of a stream
 *
 * Exact while there is room for all, nearly so when there is not; the same list
 * for the same stream; weights, merging, and what happens without memory.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

static bly_topk *made(size_t k, uint64_t bytes)
{
    bly_topk *t;
    const bly_topk_spec spec = { .k = k, .bytes = bytes };
    assert_ok(bly_topk_new(&spec, &t));
    return t;
}

static void add_text(bly_topk *t, const char *key, uint64_t weight)
{
    assert_ok(bly_topk_add(t, key, strlen(key), weight));
}

static void add_int(bly_topk *t, uint64_t key, uint64_t weight)
{
    assert_ok(bly_topk_add(t, &key, sizeof key, weight));
}

static uint64_t int_of(const bly_topk_item *item)
{
    uint64_t key;
    assert_int_equal(item->key.len, sizeof key);
    memcpy(&key, item->key.ptr, sizeof key);
    return key;
}

static void assert_item(const bly_topk_item *item, const char *key,
                        uint64_t count)
{
    assert_int_equal(item->key.len, strlen(key));
    if (item->key.len)
        assert_memory_equal(item->key.ptr, key, item->key.len);
    assert_int_equal(item->count, count);
}

static void assert_same_list(const bly_topk *a, const bly_topk *b)
{
    static bly_topk_item as[5000], bs[5000];
    const size_t n = bly_topk_list(a, as, COUNT_OF(as));
    assert_int_equal(bly_topk_list(b, bs, COUNT_OF(bs)), n);
    assert_int_equal(bly_topk_total(a), bly_topk_total(b));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(as[i].count, bs[i].count);
        assert_int_equal(as[i].key.len, bs[i].key.len);
        if (as[i].key.len)
            assert_memory_equal(as[i].key.ptr, bs[i].key.ptr, as[i].key.len);
    }
}

/* ------------------------------------------------------------------ small */

static void a_list_in_order(void **state)
{
    (void)state;
    bly_topk *t = made(5, 0);
    bly_topk_item items[8];
    assert_int_equal(bly_topk_list(t, items, 8), 0);
    add_text(t, "pear", 3);
    add_text(t, "apple", 1);
    add_text(t, "", 2);
    add_text(t, "fig", 3);
    add_text(t, "apple", 4);
    add_text(t, "figs", 3);
    add_text(t, "none", 0);
    assert_int_equal(bly_topk_list(t, items, 8), 5);
    assert_item(&items[0], "apple", 5);
    assert_item(&items[1], "fig", 3); /* equal ones by their bytes */
    assert_item(&items[2], "figs", 3);
    assert_item(&items[3], "pear", 3);
    assert_item(&items[4], "", 2);
    for (size_t n = 0; n <= 5; n++) { /* fewer are the first of them */
        bly_topk_item few[5];
        assert_int_equal(bly_topk_list(t, few, n), n);
        for (size_t i = 0; i < n; i++)
            assert_ptr_equal(few[i].key.ptr, items[i].key.ptr);
    }
    bool listed;
    assert_int_equal(bly_topk_count(t, "fig", 3, &listed), 3);
    assert_true(listed);
    assert_int_equal(bly_topk_count(t, "none", 4, &listed), 0);
    assert_false(listed);
    assert_int_equal(bly_topk_total(t), 16);
    bly_topk_free(t);
    bly_topk_free(NULL);
}

static void bytes_are_bytes(void **state)
{
    (void)state;
    bly_topk *t = made(1100, 0);
    bly_topk_item items[1100];
    static unsigned char key[1000];
    for (size_t len = 0; len <= sizeof key; len++)
        assert_ok(bly_topk_add(t, key, len, len + 1));
    assert_int_equal(bly_topk_list(t, items, 1100), 1001);
    for (size_t i = 0; i < 1001; i++) {
        assert_int_equal(items[i].key.len, 1000 - i);
        assert_int_equal(items[i].count, 1001 - i);
    }
    bly_topk_free(t);
}

static void who_is_pushed_out(void **state)
{
    (void)state;
    bly_topk *t = made(2, 0);
    bly_topk_item item;
    add_text(t, "a", 5);
    add_text(t, "b", 3);
    assert_false(bly_topk_left(t, &item));
    add_text(t, "c", 3); /* no more than the lightest */
    assert_false(bly_topk_left(t, &item));
    assert_int_equal(bly_topk_count(t, "c", 1, NULL), 3);
    add_text(t, "c", 1);
    assert_true(bly_topk_left(t, &item));
    assert_item(&item, "b", 3);
    assert_int_equal(bly_topk_count(t, "b", 1, NULL), 3); /* not forgotten */
    add_text(t, "a", 1);
    assert_false(bly_topk_left(t, &item));
    add_text(t, "b", 7);
    assert_true(bly_topk_left(t, &item));
    assert_item(&item, "c", 4);
    assert_int_equal(bly_topk_count(t, "b", 1, NULL), 10);
    bly_topk_free(t);
}

/* Random additions of fewer keys than there is room for, against an array. */
static void exact_while_there_is_room(void **state)
{
    (void)state;
    enum { UNIVERSE = 700 };
    uint64_t random = 1, truth[UNIVERSE] = { 0 };
    bly_topk *t = made(UNIVERSE, 64);
    bly_topk_item items[UNIVERSE];
    for (int step = 0; step < 100000; step++) {
        const uint64_t key = test_random(&random) % UNIVERSE;
        const uint64_t weight = test_random(&random) % 5;
        add_int(t, key, weight);
        truth[key] += weight;
    }
    const size_t n = bly_topk_list(t, items, UNIVERSE);
    assert_int_equal(n, UNIVERSE);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(items[i].count, truth[int_of(&items[i])]);
        assert_true(i == 0 || items[i - 1].count >= items[i].count);
        truth[int_of(&items[i])] = UINT64_MAX; /* each but once */
    }
    bly_topk_free(t);
}

/* ------------------------------------------------------------ large streams */

#define NKEYS 100000
#define NEVENTS 1000000
#define K 500

typedef struct stream {
    uint64_t *events, *times;
    uint64_t kth; /* weight of the k-th heaviest */
} stream;

static int heavier(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static stream zipf(double exponent)
{
    stream s = { malloc(NEVENTS * sizeof *s.events),
                 calloc(NKEYS, sizeof *s.times), 0 };
    uint64_t random = 7;
    assert_non_null(s.events);
    assert_non_null(s.times);
    zipf_draw(exponent, NKEYS, NEVENTS, &random, s.events, s.times);
    uint64_t *sorted = malloc(NKEYS * sizeof *sorted);
    assert_non_null(sorted);
    memcpy(sorted, s.times, NKEYS * sizeof *sorted);
    qsort(sorted, NKEYS, sizeof *sorted, heavier);
    s.kth = sorted[K - 1];
    free(sorted);
    return s;
}

static void stream_free(stream *s)
{
    free(s->events);
    free(s->times);
}

static void feed(bly_topk *t, const stream *s, size_t from, size_t to,
                 size_t step)
{
    bly_bytes keys[1000];
    for (size_t at = from; at < to;) {
        size_t n = 0, ndone;
        for (; n < COUNT_OF(keys) && at < to; at += step)
            keys[n++] = (bly_bytes){ &s->events[at], 8 };
        assert_ok(bly_topk_add_keys(t, keys, NULL, n, &ndone));
        assert_int_equal(ndone, n);
    }
}

/* The share of the list that belongs there; counts are off by `off` on average,
 * and above the truth in at most one of a hundred. */
static double found(const bly_topk *t, const stream *s, double *off)
{
    bly_topk_item items[K];
    const size_t n = bly_topk_list(t, items, K);
    double hits_seen = 0, above = 0;
    assert_int_equal(n, K);
    *off = 0;
    for (size_t i = 0; i < n; i++) {
        const double truth = (double)s->times[int_of(&items[i])];
        hits_seen += truth >= (double)s->kth;
        above += (double)items[i].count > truth;
        *off += fabs((double)items[i].count - truth) / truth / (double)n;
        assert_true(i == 0 || items[i - 1].count >= items[i].count);
    }
    assert_between(above / (double)n, 0, 0.01);
    return hits_seen / (double)n;
}

static void heavy_keys_are_found(void **state)
{
    (void)state;
    static const struct {
        double exponent;
        uint64_t bytes;
        double found, off;
    } rows[] = {
        { 0.8, 32 * K, 0.90, 0.03 }, { 0.8, 0, 0.98, 0.01 },
        { 1.0, 32 * K, 0.95, 0.02 }, { 1.0, 0, 0.99, 0.005 },
        { 1.2, 32 * K, 0.97, 0.02 }, { 1.2, 0, 0.99, 0.005 },
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        stream s = zipf(rows[r].exponent);
        bly_topk *t = made(K, rows[r].bytes);
        double off;
        feed(t, &s, 0, NEVENTS, 1);
        const double share = found(t, &s, &off);
        print_message("zipf %.1f, %llu bytes: %.3f found, %.4f off\n",
                      rows[r].exponent, (unsigned long long)rows[r].bytes,
                      share, off);
        assert_between(share, rows[r].found, 1);
        assert_between(off, 0, rows[r].off);
        assert_int_equal(bly_topk_total(t), NEVENTS);
        bly_topk_free(t);
        stream_free(&s);
    }
}

/* Eight candidates of count 3 fill the line; a stranger takes one unit from one
 * of them with probability 0.5^3, and from one of count 3 and then of 2 when it
 * comes with weight enough. 40000 lists, one deviation is 0.0017. */
static void cells_decay_as_they_should(void **state)
{
    (void)state;
    enum { LISTS = 40000 };
    double lost = 0, all_lost = 0;
    for (uint64_t seed = 0; seed < LISTS; seed++) {
        const bly_topk_spec spec = {
            .k = 1, .bytes = 64, .decay = 0.5, .seed = seed
        };
        bly_topk *t;
        assert_ok(bly_topk_new(&spec, &t));
        add_int(t, 0, 100000);
        for (uint64_t key = 1; key <= 8; key++)
            add_int(t, key, 3);
        uint64_t stranger = 9, sum = 0;
        add_int(t, stranger, 1);
        for (uint64_t key = 1; key <= 8; key++)
            sum += bly_topk_count(t, &key, 8, NULL);
        lost += 24 - (double)sum;
        /* 8 + 4 + 2 tries empty a cell on average; 1000 always do, and what
         * is left is the stranger's. */
        add_int(t, stranger, 1000);
        all_lost += 1000 - (double)bly_topk_count(t, &stranger, 8, NULL);
        bly_topk_free(t);
    }
    assert_between(lost / LISTS, 0.125 - 0.01, 0.125 + 0.01);
    /* The one that moves in is the first of the stranger's, and one try in
     * eight was made before: 14 - 1 - 1. A deviation is 0.042. */
    assert_between(all_lost / LISTS, 12 - 0.3, 12 + 0.3);
}

/* The heavy are found whatever the decay is. */
static void any_decay_finds_them(void **state)
{
    (void)state;
    static const double decays[] = { 0.5, 0.925, 1 };
    stream s = zipf(0.8);
    for (size_t i = 0; i < COUNT_OF(decays); i++) {
        const bly_topk_spec spec = { .k = K,
                                     .bytes = 32 * K,
                                     .decay = decays[i] };
        bly_topk *t;
        double off;
        assert_ok(bly_topk_new(&spec, &t));
        feed(t, &s, 0, NEVENTS, 1);
        assert_between(found(t, &s, &off), 0.9, 1);
        bly_topk_free(t);
    }
    stream_free(&s);
}

static void the_same_list_again(void **state)
{
    (void)state;
    stream s = zipf(0.8);
    bly_topk *a = made(K, 8000), *b = made(K, 8000);
    feed(a, &s, 0, 100000, 1);
    for (size_t i = 0; i < 100000; i++) /* one by one */
        add_int(b, s.events[i], 1);
    assert_same_list(a, b);
    /* Another seed is another list in the places where chance decides. */
    bly_topk *c;
    const bly_topk_spec spec = { .k = K, .bytes = 8000, .seed = 1 };
    assert_ok(bly_topk_new(&spec, &c));
    feed(c, &s, 0, 100000, 1);
    bly_topk_item as[K], cs[K];
    bly_topk_list(a, as, K);
    bly_topk_list(c, cs, K);
    bool same = true;
    for (size_t i = 0; i < K; i++)
        same &= int_of(&as[i]) == int_of(&cs[i]);
    assert_false(same);
    bly_topk_free(a);
    bly_topk_free(b);
    bly_topk_free(c);
    stream_free(&s);
}

/* Runs of one key as weights: the geometric shortcut finds as many as single
 * steps do. */
static void weights(void **state)
{
    (void)state;
    stream s = zipf(1);
    bly_topk *t = made(K, 0);
    double off;
    uint64_t random = 3;
    uint64_t *left = malloc(NKEYS * sizeof *left);
    assert_non_null(left);
    memcpy(left, s.times, NKEYS * sizeof *left);
    /* In the order of the stream, up to 20 at once. */
    for (size_t i = 0; i < NEVENTS; i++) {
        const uint64_t key = s.events[i];
        uint64_t weight = 1 + test_random(&random) % 20;
        if (weight > left[key])
            weight = left[key];
        left[key] -= weight;
        add_int(t, key, weight);
    }
    assert_int_equal(bly_topk_total(t), NEVENTS);
    assert_between(found(t, &s, &off), 0.97, 1);
    assert_between(off, 0, 0.01);
    free(left);
    bly_topk_free(t);
    stream_free(&s);
}

/* ----------------------------------------------------------------- merging */

/* One list a thread, each with a quarter of the stream. */
static void merging_parts(void **state)
{
    (void)state;
    stream s = zipf(1);
    bly_topk *part[4];
    double off;
    for (size_t i = 0; i < 4; i++) {
        part[i] = made(K, 0);
        feed(part[i], &s, i, NEVENTS, 4);
    }
    for (size_t i = 1; i < 4; i++)
        assert_ok(bly_topk_merge(part[0], part[i]));
    const double share = found(part[0], &s, &off);
    print_message("merged from four: %.3f found, %.4f off\n", share, off);
    assert_between(share, 0.95, 1);
    assert_between(off, 0, 0.02);
    assert_int_equal(bly_topk_total(part[0]), NEVENTS);
    for (size_t i = 0; i < 4; i++)
        bly_topk_free(part[i]);
    stream_free(&s);
}

/* All keys of a hash in one part: no merging loses anything that one list of
 * such a part did not lose. */
static void merging_few_keys_is_exact(void **state)
{
    (void)state;
    bly_topk *a = made(4, 0), *b = made(4, 0);
    bly_topk_item items[4];
    add_text(a, "x", 10);
    add_text(a, "y", 5);
    add_text(b, "y", 7);
    add_text(b, "z", 1);
    assert_ok(bly_topk_merge(a, b));
    assert_int_equal(bly_topk_list(a, items, 4), 3);
    assert_item(&items[0], "y", 12);
    assert_item(&items[1], "x", 10);
    assert_item(&items[2], "z", 1);
    /* A key that is on one list and a candidate of the other. */
    bly_topk *c = made(1, 0), *d = made(1, 0);
    add_text(c, "x", 10);
    add_text(c, "y", 9);
    add_text(d, "y", 8);
    add_text(d, "x", 3);
    assert_ok(bly_topk_merge(c, d));
    assert_int_equal(bly_topk_list(c, items, 4), 1);
    assert_item(&items[0], "y", 17);
    assert_int_equal(bly_topk_count(c, "x", 1, NULL), 13);
    add_text(c, "x", 5);
    assert_int_equal(bly_topk_list(c, items, 4), 1);
    assert_item(&items[0], "x", 18);
    bly_topk_free(a);
    bly_topk_free(b);
    bly_topk_free(c);
    bly_topk_free(d);
}

static void unlike_lists_do_not_merge(void **state)
{
    (void)state;
    static const unsigned char secret[BLY_SECRET_BYTES] = { 1 };
    const bly_topk_spec others[] = {
        { .k = 11, .bytes = 4096 },
        { .k = 10, .bytes = 8192 },
        { .k = 10, .bytes = 4096, .decay = 0.9 },
        { .k = 10, .bytes = 4096, .seed = 1 },
        { .k = 10, .bytes = 4096, .secret = secret },
    };
    bly_topk *t = made(10, 4096), *same = made(10, 4096), *other;
    add_text(t, "x", 1);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_ok(bly_topk_new(&others[i], &other));
        assert_status(bly_topk_merge(t, other), BLY_EUNFIT);
        bly_topk_free(other);
    }
    assert_status(bly_topk_merge(t, t), BLY_EINVAL);
    add_text(same, "y", UINT64_MAX);
    assert_status(bly_topk_merge(t, same), BLY_ERANGE);
    assert_int_equal(bly_topk_total(t), 1);
    bly_topk_free(t);
    bly_topk_free(same);
}

/* --------------------------------------------------------------- bad input */

static void bad_specs(void **state)
{
    (void)state;
    static const unsigned char secret[BLY_SECRET_BYTES] = { 1 };
    const bly_topk_spec bad[] = {
        { .k = 0 },
        { .k = (size_t)1 << 25 },
        { .k = 1, .decay = -0.5 },
        { .k = 1, .decay = 1.5 },
        { .k = 1, .decay = NAN },
        { .k = 1, .bytes = 63 },
        { .k = 1, .seed = 1, .secret = secret },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bly_topk *t = (bly_topk *)&t;
        assert_status(bly_topk_new(&bad[i], &t), BLY_EINVAL);
        assert_null(t);
    }
}

static void weights_past_64_bits_are_refused(void **state)
{
    (void)state;
    bly_topk *t = made(1, 64);
    const bly_bytes keys[] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
    const uint64_t by[] = { UINT64_MAX - 5, 5, 1 };
    size_t ndone;
    assert_status(bly_topk_add_keys(t, keys, by, 3, &ndone), BLY_ERANGE);
    assert_int_equal(ndone, 2);
    assert_int_equal(bly_topk_total(t), UINT64_MAX);
    assert_int_equal(bly_topk_count(t, "a", 1, NULL), UINT64_MAX - 5);
    assert_int_equal(bly_topk_count(t, "c", 1, NULL), 0);
    bly_topk_free(t);
}

/* Whatever decay and weights, it ends: one line, all against all. */
static void any_decay_ends(void **state)
{
    (void)state;
    static const double decays[] = { 1, 0.9999, 0.5, 1e-300 };
    for (size_t d = 0; d < COUNT_OF(decays); d++) {
        const bly_topk_spec spec = { .k = 1, .bytes = 64, .decay = decays[d] };
        bly_topk *t;
        uint64_t random = d;
        assert_ok(bly_topk_new(&spec, &t));
        add_int(t, 0, UINT64_C(1) << 62);
        for (uint64_t i = 1; i < 3000; i++)
            add_int(t, i, test_random(&random) >> (16 + i % 47));
        bly_topk_item item;
        assert_int_equal(bly_topk_list(t, &item, 1), 1);
        bly_topk_free(t);
    }
}

/* Each allocation fails in turn: nothing changes, nothing is left behind. */
static void without_memory(void **state)
{
    (void)state;
    long at;
    for (at = 0;; at++) {
        ledger l;
        ledger_open(&l);
        const bly_topk_spec spec = { .k = 3, .bytes = 64, .mem = &l.mem };
        const bly_topk_spec free_spec = { .k = 3, .bytes = 64 };
        bly_topk *t = NULL, *other = NULL, *twin = NULL;
        bool failed = false;
        assert_ok(bly_topk_new(&free_spec, &other));
        assert_ok(bly_topk_new(&free_spec, &twin));
        for (uint64_t i = 0; i < 6; i++)
            add_int(other, i + 4, i);
        l.fail_at = at;
        if (bly_topk_new(&spec, &t)) {
            assert_null(t);
            failed = true;
        }
        for (uint64_t i = 0; t && i < 8; i++) {
            const uint64_t key = i % 6;
            const bly_status st = bly_topk_add(t, &key, 8, i + 1);
            if (st) {
                assert_int_equal(st, BLY_ENOMEM);
                failed = true;
            } else {
                add_int(twin, key, i + 1);
            }
            assert_same_list(t, twin);
        }
        if (t && bly_topk_merge(t, other))
            failed = true;
        else if (t)
            assert_ok(bly_topk_merge(twin, other));
        if (t)
            assert_same_list(t, twin);
        bly_topk_free(t);
        bly_topk_free(twin);
        bly_topk_free(other);
        ledger_check(&l);
        if (!failed)
            break;
    }
    assert_true(at > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_in_order),
        cmocka_unit_test(bytes_are_bytes),
        cmocka_unit_test(who_is_pushed_out),
        cmocka_unit_test(exact_while_there_is_room),
        cmocka_unit_test(heavy_keys_are_found),
        cmocka_unit_test(cells_decay_as_they_should),
        cmocka_unit_test(any_decay_finds_them),
        cmocka_unit_test(the_same_list_again),
        cmocka_unit_test(weights),
        cmocka_unit_test(merging_parts),
        cmocka_unit_test(merging_few_keys_is_exact),
        cmocka_unit_test(unlike_lists_do_not_merge),
        cmocka_unit_test(bad_specs),
        cmocka_unit_test(weights_past_64_bits_are_refused),
        cmocka_unit_test(any_decay_ends),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
