/*
 * test_hll_sets.c - sketches of different sizes, and what they have in common
 *
 * A sketch depends on the hashes it saw and on nothing else: around the number
 * where it becomes dense too. Set operations err as much as they say.
 */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "core/bits.h"
#include "core/hash.h"

static bly_hll *made(unsigned precision)
{
    bly_hll *s;
    assert_ok(bly_hll_new(precision, NULL, &s));
    return s;
}

/* Hashes number from .. to-1 of a world. */
static void add_range(bly_hll *s, uint64_t world, uint64_t from, uint64_t to)
{
    uint64_t h[256];
    while (from < to) {
        const size_t n = to - from < 256 ? (size_t)(to - from) : 256;
        for (size_t i = 0; i < n; i++)
            h[i] = bly_mix64(bly_mix64(world) + from + i);
        assert_ok(bly_hll_add(s, h, n));
        from += n;
    }
}

static void assert_same(const bly_hll *a, const bly_hll *b)
{
    const size_t n = bly_hll_written_bytes(a);
    assert_int_equal(n, bly_hll_written_bytes(b));
    unsigned char *x = malloc(n), *y = malloc(n);
    assert_true(x && y);
    bly_hll_write(a, x);
    bly_hll_write(b, y);
    assert_memory_equal(x, y, n);
    assert_int_equal(bly_hll_total(a), bly_hll_total(b));
    free(x);
    free(y);
}

/* The number from which on 2^p registers are dense: 3/32 of them. */
static uint64_t most_sparse(unsigned p)
{
    return p < 8 ? 0 : (uint64_t)3 << (p - 5);
}

static void becomes_dense_when_it_pays(void **state)
{
    (void)state;
    for (unsigned p = 4; p <= 18; p++) {
        const uint64_t most = most_sparse(p);
        bly_hll *s = made(p);
        add_range(s, p, 0, most);
        assert_true(bly_hll_sparse(s));
        const double before = bly_hll_estimate(s, NULL);
        assert_between(before, (double)most - 8, (double)most + 8);
        assert_true(bly_hll_bytes(s) < 256 + (((size_t)3 << p) / 4));
        add_range(s, p, 0, most); /* again: nothing new */
        assert_true(bly_hll_sparse(s));
        add_range(s, p, most, most + 64);
        assert_true(!bly_hll_sparse(s));
        double sd;
        assert_true(fabs(bly_hll_estimate(s, &sd) - (double)most - 64) <
                    6 * sd + 1);
        assert_int_equal(bly_hll_total(s), 2 * most + 64);
        bly_hll_free(s);
    }
    bly_hll *s = made(14);
    assert_true(bly_hll_bytes(s) < 256);
    add_range(s, 1, 0, 10);
    assert_true(bly_hll_bytes(s) < 320);
    bly_hll_free(s);
}

/* Parts in any order, merged in any way, are the sketch of all. */
static void order_and_parts_do_not_matter(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 0, 1, 20, 1530, 1536, 1537, 1600, 50000 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const uint64_t n = sizes[i];
        bly_hll *all = made(14), *back = made(14), *parts = made(14);
        add_range(all, 7, 0, n);
        for (uint64_t k = n; k-- > 0;)
            add_range(back, 7, k, k + 1);
        assert_same(all, back);
        for (uint64_t part = 0; part < 3; part++) {
            bly_hll *one = made(14);
            for (uint64_t k = part; k < n; k += 3)
                add_range(one, 7, k, k + 1);
            /* From both sides: small into large, and large into small. */
            if (part == 1) {
                assert_ok(bly_hll_merge(one, parts));
                bly_hll_free(parts);
                parts = one;
                continue;
            }
            assert_ok(bly_hll_merge(parts, one));
            bly_hll_free(one);
        }
        assert_same(all, parts);
        assert_ok(bly_hll_merge(parts, parts));
        assert_same(all, parts);
        bly_hll_free(all);
        bly_hll_free(back);
        bly_hll_free(parts);
    }
}

static void hostile_sparse_bytes(void **state)
{
    (void)state;
    bly_hll *s = made(8), *t;
    add_range(s, 3, 0, 5);
    const size_t n = bly_hll_written_bytes(s);
    assert_int_equal(n, 16 + 5 * 4 + 8);
    unsigned char *bytes = guarded_new(n);
    bly_hll_write(s, bytes);
    assert_memory_equal(bytes, "blyhll\0\2\10\0\0\0\0\0\0\0", 16);
    assert_ok(bly_hll_load(bytes, n, NULL, &t));
    assert_true(bly_hll_estimate(s, NULL) == bly_hll_estimate(t, NULL));
    bly_hll_free(t);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_status(bly_hll_load(bytes, n, NULL, &t), BLY_EFORMAT);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    /* Forged entries, with the checksum computed anew: no value, a value past
     * its ceiling, a place twice, more than may be. */
    static const uint32_t bad[] = { 0, 0x40, 40, 63, 0xfffffc3f };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bly_store32(bytes + 16, bad[i]);
        bly_store64(bytes + n - 8, bly_checksum(bytes, n - 8));
        assert_status(bly_hll_load(bytes, n, NULL, &t), BLY_EFORMAT);
    }
    bly_hll_write(s, bytes);
    memcpy(bytes + 20, bytes + 16, 4);
    bly_store64(bytes + n - 8, bly_checksum(bytes, n - 8));
    assert_status(bly_hll_load(bytes, n, NULL, &t), BLY_EFORMAT);
    bly_hll_write(s, bytes);
    bytes[8] = 7;
    bly_store64(bytes + n - 8, bly_checksum(bytes, n - 8));
    assert_status(bly_hll_load(bytes, n, NULL, &t), BLY_EFORMAT);
    guarded_free(bytes, n);
    bly_hll_free(s);
}

/* No allocation that fails loses a hash that was taken, or harms the rest. */
static void memory_fails(void **state)
{
    (void)state;
    for (uint64_t n = 10; n <= 1700; n += 845)
        for (long fail = 0; fail < 12; fail++) {
            ledger l;
            bly_hll *s, *src = made(14), *all = made(14);
            ledger_open(&l);
            assert_ok(bly_hll_new(14, &l.mem, &s));
            add_range(all, 1, 0, n);
            add_range(src, 1, 0, n);
            l.fail_at = fail + 1;
            const bly_status st = bly_hll_merge(s, src);
            assert_true(st == BLY_OK || st == BLY_ENOMEM);
            if (st) {
                assert_true(bly_hll_estimate(s, NULL) == 0);
                assert_int_equal(bly_hll_total(s), 0);
            }
            bly_status added = BLY_OK;
            for (uint64_t k = 0; k < n; k++) {
                const uint64_t h = bly_mix64(bly_mix64(1) + k);
                const bly_status one = bly_hll_add(s, &h, 1);
                added = one ? one : added;
            }
            if (!added)
                assert_true(bly_hll_estimate(s, NULL) ==
                            bly_hll_estimate(all, NULL));
            bly_hll_free(s);
            bly_hll_free(src);
            bly_hll_free(all);
            ledger_check(&l);
        }
}

/* From one key to ten million: no bias that the deviation does not cover, and
 * errors that are no larger than it says. */
static void unbiased_at_any_size(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        int worlds;
    } rows[] = {
        { 1, 200 },     { 10, 200 },     { 100, 200 },    { 1500, 200 },
        { 1600, 200 },  { 10000, 200 },  { 40000, 100 },  { 100000, 60 },
        { 300000, 40 }, { 1000000, 20 }, { 10000000, 4 },
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        double sum = 0, squares = 0, variance = 0;
        const double w = rows[r].worlds, n = (double)rows[r].n;
        for (int i = 0; i < rows[r].worlds; i++) {
            bly_hll *s = made(14);
            double sd;
            add_range(s, 77 * r + (uint64_t)i, 0, rows[r].n);
            const double off = bly_hll_estimate(s, &sd) - n;
            sum += off;
            squares += off * off;
            variance += sd * sd;
            bly_hll_free(s);
        }
        const double sd = sqrt(variance / w);
        print_message("%8.0f: bias %+.4f %%, error %.4f %%, stated %.4f %%\n",
                      n, 100 * sum / w / n, 100 * sqrt(squares / w) / n,
                      100 * sd / n);
        assert_between(fabs(sum / w), 0, 4 * sd / sqrt(w) + 0.05);
        assert_between(sqrt(squares / w), 0,
                       sd * (1.1 + 3 / sqrt(2 * w)) + 0.2);
    }
}

/* Two sets, of which `common` hashes are in both. */
static void common_within_its_deviation(void **state)
{
    (void)state;
    static const struct {
        unsigned p;
        uint64_t a, b, common;
        int worlds;
    } rows[] = {
        { 14, 1000, 1000, 100, 20 },  /* both sparse */
        { 14, 1000, 40000, 500, 60 }, /* one of them */
        { 10, 20000, 20000, 0, 150 },      { 10, 20000, 20000, 2000, 150 },
        { 10, 20000, 20000, 10000, 150 },  { 10, 20000, 20000, 20000, 150 },
        { 10, 2000, 50000, 1000, 150 },    { 10, 2000, 50000, 2000, 150 },
        { 12, 2000, 2000, 1000, 150 },     { 12, 40000, 10000, 5000, 100 },
        { 14, 100000, 100000, 20000, 40 },
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        double squares[2] = { 0, 0 }, sum[2] = { 0, 0 };
        for (int w = 0; w < rows[r].worlds; w++) {
            bly_hll *a = made(rows[r].p), *b = made(rows[r].p);
            const bly_hll *both[] = { a, b };
            const uint64_t from = rows[r].a - rows[r].common;
            const uint64_t world = 1000 * r + (uint64_t)w;
            add_range(a, world, 0, rows[r].a);
            add_range(b, world, from, from + rows[r].b);
            double n, sd;
            assert_ok(bly_hll_common(both, 2, &n, &sd));
            double off = n - (double)rows[r].common;
            /* Nothing is below 0 or above the smaller set. */
            squares[0] += off * off / (sd * sd + 0.02);
            sum[0] += off;
            assert_ok(bly_hll_only(a, both + 1, 1, &n, &sd));
            off = n - (double)from;
            squares[1] += off * off / (sd * sd + 0.02);
            sum[1] += off;
            bly_hll_free(a);
            bly_hll_free(b);
        }
        const double w = rows[r].worlds;
        print_message("p %u, %llu and %llu with %llu: error/deviation %.2f and "
                      "%.2f, bias %+.1f and %+.1f\n",
                      rows[r].p, (unsigned long long)rows[r].a,
                      (unsigned long long)rows[r].b,
                      (unsigned long long)rows[r].common, sqrt(squares[0] / w),
                      sqrt(squares[1] / w), sum[0] / w, sum[1] / w);
        const double band = 1.15 + 4 / sqrt(2 * w);
        assert_between(sqrt(squares[0] / w), 0, band);
        assert_between(sqrt(squares[1] / w), 0, band);
    }
}

/* Three sets of 3000 that overlap in rows, and more sets than there may be. */
static void three_sets(void **state)
{
    (void)state;
    double squares = 0;
    const int worlds = 60;
    for (int w = 0; w < worlds; w++) {
        bly_hll *s[3];
        for (uint64_t i = 0; i < 3; i++) {
            s[i] = made(12);
            add_range(s[i], (uint64_t)w, 1000 * i, 1000 * i + 3000);
        }
        const bly_hll *all[9] = { s[0], s[1], s[2], s[0], s[0],
                                  s[0], s[0], s[0], s[0] };
        double n, sd, one, one_sd, own_sd;
        assert_ok(bly_hll_common(all, 3, &n, &sd));
        squares += (n - 1000) * (n - 1000) / (sd * sd);
        assert_ok(bly_hll_common(all, 1, &one, &one_sd));
        assert_true(one == bly_hll_estimate(s[0], &own_sd));
        assert_near(one_sd, own_sd, 1e-9 * own_sd);
        assert_ok(bly_hll_only(s[0], NULL, 0, &one, &one_sd));
        assert_near(one, bly_hll_estimate(s[0], NULL), 1e-9 * one);
        assert_status(bly_hll_common(all, 9, &n, &sd), BLY_EINVAL);
        assert_status(bly_hll_common(all, 0, &n, &sd), BLY_EINVAL);
        for (int i = 0; i < 3; i++)
            bly_hll_free(s[i]);
    }
    assert_between(sqrt(squares / worlds), 0.5, 1.5);
}

/* Sketches whose hashes come from different places do not go together. */
static void strangers_do_not_merge(void **state)
{
    (void)state;
    const unsigned char secret[2][BLY_SECRET_BYTES] = { { 1 }, { 2 } };
    bly_hasher hasher[5];
    for (unsigned i = 0; i < 5; i++) {
        const bly_spec spec = { .seed = i < 3 ? i : 0,
                                .secret = i < 3 ? NULL : secret[i - 3] };
        assert_ok(bly_hasher_for(&spec, &hasher[i]));
    }
    for (unsigned i = 0; i < 5; i++)
        for (unsigned j = 0; j < 5; j++) {
            bly_hll *a = made(9), *b = made(9);
            assert_ok(bly_hll_set_hasher(a, &hasher[i]));
            assert_ok(bly_hll_set_hasher(b, &hasher[j]));
            add_range(b, 1, 0, 3);
            const bly_hll *both[] = { a, b };
            double n;
            const bly_status want = i == j ? BLY_OK : BLY_EUNFIT;
            assert_status(bly_hll_common(both, 2, &n, NULL), want);
            assert_status(bly_hll_only(a, both + 1, 1, &n, NULL), want);
            assert_status(bly_hll_merge(a, b), want);
            assert_int_equal(bly_hll_total(a), i == j ? 3 : 0);
            assert_status(bly_hll_set_hasher(b, &hasher[j]), BLY_EINVAL);
            bly_hll_free(a);
            bly_hll_free(b);
        }
    const bly_keying ways[] = { { BLY_KEYS_TEXT, 0 },
                                { BLY_KEYS_TEXT, BLY_KEYS_FOLDED },
                                { BLY_KEYS_INT64, 0 } };
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 3; j++) {
            bly_hll *a = made(9), *b = made(9), *c = made(9);
            bly_hll_set_keying(a, ways[i]);
            bly_hll_set_keying(b, ways[j]);
            assert_status(bly_hll_merge(a, b), i == j ? BLY_OK : BLY_EUNFIT);
            assert_ok(bly_hll_merge(c, a)); /* says nothing: learns it */
            assert_int_equal(bly_hll_keying(c).type, ways[i].type);
            bly_hll_free(a);
            bly_hll_free(b);
            bly_hll_free(c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(becomes_dense_when_it_pays),
        cmocka_unit_test(order_and_parts_do_not_matter),
        cmocka_unit_test(hostile_sparse_bytes),
        cmocka_unit_test(memory_fails),
        cmocka_unit_test(unbiased_at_any_size),
        cmocka_unit_test(common_within_its_deviation),
        cmocka_unit_test(three_sets),
        cmocka_unit_test(strangers_do_not_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
