/*
 * test_bloomier.c - what is peculiar to the bloomier kind
 *
 * Values of every width, exact before and after changes; the share of other
 * keys that have one; keys given twice; shards built by threads. What it shares
 * with every kind is in test_laws.c.
 */
#define _GNU_SOURCE /* mkstemp */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/packed.h"
#include "kinds/filter.h"

enum { P_LAYOUT, P_VALUE, P_PRINT, P_ARITY, P_SHARDS, P_SEGMENT, P_WINDOWS };

/* The four ways to lay one out. */
static const struct {
    const char *layout, *arity;
    double passing; /* of others where f is as many bits as a rate of 1 */
} ways[] = {
    { "mutable", "3", 0.75 },
    { "mutable", "4", 1 },
    { "immutable", "3", 1 },
    { "immutable", "4", 1 },
};

/* Keys 0 to n - 1 with their values. */
typedef struct table {
    uint64_t *h, *values;
    size_t n;
} table;

static table table_new(size_t n, unsigned bits, uint64_t rng)
{
    const bly_spec spec = { .seed = LAW_SEED };
    table t = { hashes_for(&spec, 0, n), malloc((n + 1) * 8), n };
    assert_non_null(t.values);
    for (size_t i = 0; i < n; i++)
        t.values[i] = test_random(&rng) & bly_field_mask(bits);
    if (n)
        t.values[n / 2] = bly_field_mask(bits); /* the width is used */
    return t;
}

static void table_free(table *t)
{
    free(t->h);
    free(t->values);
}

static bly_status build_from(const bly_spec *spec, const table *t,
                             unsigned nthreads, bly_filter **out)
{
    bly_builder *b;
    *out = NULL;
    bly_status st = bly_builder_new(spec, &b);
    if (!st)
        st = bly_builder_add(b, t->h, t->values, t->n);
    if (!st)
        st = bly_builder_finish(b, nthreads, out);
    bly_builder_free(b);
    return st;
}

/* Build with the options of ways[way] and up to two more. */
static bly_status build(const table *t, size_t way, const bly_option *more,
                        size_t nmore, unsigned nthreads, bly_filter **out)
{
    bly_option options[4] = { { "layout", ways[way].layout },
                              { "arity", ways[way].arity } };
    assert_true(nmore <= 2);
    for (size_t i = 0; i < nmore; i++)
        options[2 + i] = more[i];
    const bly_spec spec = { .kind = "bloomier",
                            .seed = LAW_SEED,
                            .options = options,
                            .noptions = 2 + nmore };
    return build_from(&spec, t, nthreads, out);
}

static bly_filter *built(const table *t, size_t way)
{
    bly_filter *f;
    assert_ok(build(t, way, NULL, 0, 1, &f));
    return f;
}

static void assert_values(const bly_filter *f, const table *t)
{
    uint64_t *values = malloc((t->n + 1) * 8);
    uint64_t *present = malloc((BLY_BITMAP_WORDS(t->n) + 1) * 8);
    assert_true(values && present);
    assert_ok(bly_get_hashes(f, t->h, t->n, values, present));
    for (size_t i = 0; i < t->n; i++) {
        assert_true(present[i / 64] >> i % 64 & 1);
        assert_true(values[i] == t->values[i]);
    }
    free(values);
    free(present);
}

/* ------------------------------------------------------------------ fields */

static void fields_of_every_width(void **state)
{
    (void)state;
    unsigned char array[32 + BLY_FIELD_SLACK], before[sizeof array];
    uint64_t rng = 1;
    for (unsigned width = 0; width <= 64; width++)
        for (unsigned bit = 0; bit < 128; bit++) {
            for (size_t i = 0; i < sizeof array; i++)
                array[i] = (unsigned char)test_random(&rng);
            memcpy(before, array, sizeof array);
            const uint64_t value = test_random(&rng) & bly_field_mask(width);
            bly_field_put_exact(array, bit, width, value);
            assert_true(bly_field_get(array, bit, width) == value);
            assert_true(bly_field_get_exact(array, bit, width) == value);
            if (width <= BLY_FIELD_SHORT)
                assert_true(bly_field_get_short(
                                array, bit, bly_field_mask(width)) == value);
            for (unsigned j = 0; j < 8 * sizeof array; j++) {
                const unsigned now = array[j / 8] >> j % 8 & 1;
                const unsigned want = j >= bit && j < bit + width
                                          ? (unsigned)(value >> (j - bit)) & 1
                                          : before[j / 8] >> j % 8 & 1u;
                assert_int_equal(now, want);
            }
        }
    assert_int_equal(bly_field_width(0), 1);
    assert_int_equal(bly_field_width(1), 1);
    assert_int_equal(bly_field_width(255), 8);
    assert_int_equal(bly_field_width(256), 9);
    assert_int_equal(bly_field_width(UINT64_MAX), 64);
}

/* ------------------------------------------------------------------ values */

static void values_of_every_width(void **state)
{
    (void)state;
    for (unsigned bits = 1; bits <= 64; bits++)
        for (size_t way = 0; way < COUNT_OF(ways); way++) {
            table t = table_new(97, bits, bits);
            bly_filter *f = built(&t, way);
            assert_int_equal(f->shape.p[P_VALUE], bits);
            assert_values(f, &t);
            uint64_t rng = bits + 100;
            for (size_t i = 0; way < 2 && i < t.n; i++) {
                t.values[i] = test_random(&rng) & bly_field_mask(bits);
                assert_ok(bly_set_hash(f, t.h[i], t.values[i]));
                if (i % 16 == 0)
                    assert_values(f, &t);
            }
            assert_values(f, &t);
            bly_free(f);
            table_free(&t);
        }
}

static void values_of_many_keys(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        table t = table_new(scaled(300000), 17, 7);
        bly_filter *f = built(&t, way);
        assert_values(f, &t);
        for (size_t i = 0; way < 2 && i < t.n; i += 3) {
            t.values[i] ^= 0x1ffff;
            assert_ok(bly_set_hash(f, t.h[i], t.values[i]));
        }
        assert_values(f, &t);
        bly_free(f);
        table_free(&t);
    }
}

/* Where it lies in a file as well. */
static void values_are_kept_by_files(void **state)
{
    (void)state;
    char path[] = "/tmp/test_bloomier.XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        table t = table_new(5000, 33, 8);
        bly_filter *f = built(&t, way), *g;
        assert_ok(bly_save(f, path));
        assert_ok(bly_map(path, NULL, &g));
        assert_values(g, &t);
        assert_status(bly_set_hash(g, t.h[0], 1), BLY_EREADONLY);
        bly_free(g);
        assert_ok(bly_open(path, NULL, &g));
        assert_true(bly_equal(f, g));
        if (way < 2) {
            t.values[9] ^= 1;
            assert_ok(bly_set_hash(g, t.h[9], t.values[9]));
            assert_false(bly_equal(f, g));
        }
        assert_values(g, &t);
        bly_free(f);
        bly_free(g);
        table_free(&t);
    }
    remove(path);
}

/* ------------------------------------------------------------------- rates */

/* How many of n keys that are not in f have a value; has says the same. */
static double share_of_others(const bly_filter *f, size_t n)
{
    enum { PIECE = 4096 };
    const bly_spec spec = { .seed = LAW_SEED };
    uint64_t values[PIECE], maybe[BLY_BITMAP_WORDS(PIECE)];
    uint64_t present[BLY_BITMAP_WORDS(PIECE)];
    double found = 0;
    for (size_t at = 0; at < n; at += PIECE) {
        uint64_t *h = hashes_for(&spec, ABSENT + at, PIECE);
        assert_ok(bly_get_hashes(f, h, PIECE, values, present));
        bly_has_hashes(f, h, PIECE, maybe);
        assert_memory_equal(maybe, present, sizeof maybe);
        for (size_t i = 0; i < PIECE; i++)
            if (present[i / 64] >> i % 64 & 1)
                found++;
            else
                assert_true(values[i] == 0);
        free(h);
    }
    return found / (double)n;
}

/* A million others at f = 8, and at f = 0, where nobody is absent. */
static void others_are_absent(void **state)
{
    (void)state;
    const size_t n = (size_t)1 << 20;
    const bly_option prints[] = { { "fingerprint", "8" },
                                  { "fingerprint", "1" },
                                  { "fingerprint", "0" } };
    static const double rates[] = { 1.0 / 256, 0.5, 1 };
    table t = table_new(20000, 12, 9);
    for (size_t way = 0; way < COUNT_OF(ways); way++)
        for (size_t i = 0; i < COUNT_OF(prints); i++) {
            bly_filter *f;
            bly_stats stats;
            const double want =
                rates[i] == 1 ? 1 : rates[i] * ways[way].passing;
            assert_ok(build(&t, way, &prints[i], 1, 1, &f));
            const double share = share_of_others(f, n);
            /* Five deviations: one test in a million. */
            const double sd = sqrt(want * (1 - want) / (double)n);
            assert_between(share, want - 5 * sd, want + 5 * sd);
            bly_stat(f, &stats);
            assert_near(stats.fpr_now, want, 1e-9);
            assert_near(stats.fpr_at_capacity, want, 1e-9);
            assert_values(f, &t);
            bly_free(f);
        }
    table_free(&t);
}

/* -------------------------------------------------------------------- sets */

static void keys_given_twice(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        table t = table_new(1000, 8, 10);
        bly_filter *once = built(&t, way), *twice;
        /* The second half again, with the values it had. */
        table both = { malloc(1500 * 8), malloc(1500 * 8), 1500 };
        assert_true(both.h && both.values);
        for (size_t i = 0; i < 1500; i++) {
            both.h[i] = t.h[i < 1000 ? i : i - 500];
            both.values[i] = t.values[i < 1000 ? i : i - 500];
        }
        assert_ok(build(&both, way, NULL, 0, 1, &twice));
        assert_true(bly_equal(once, twice));
        assert_int_equal(twice->items, 1000);
        both.values[1200] = 77;
        both.values[700] = 78;
        bly_filter *none;
        assert_status(build(&both, way, NULL, 0, 1, &none), BLY_EINVAL);
        assert_null(none);
        assert_non_null(strstr(bly_error(), "twice"));
        assert_non_null(strstr(bly_error(), "77"));
        assert_non_null(strstr(bly_error(), "78"));
        bly_free(once);
        bly_free(twice);
        table_free(&both);
        table_free(&t);
    }
}

static void few_keys(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT_OF(ways); way++)
        for (size_t n = 0; n < 40; n++) {
            table t = table_new(n, 64, 11 + n);
            bly_filter *f = built(&t, way);
            uint64_t value = 1, present = 1;
            const uint64_t other = 12345;
            assert_values(f, &t);
            assert_int_equal(f->items, n ? n : 1);
            if (n == 0) {
                assert_false(bly_has_hash(f, other));
                assert_ok(bly_get_hashes(f, &other, 1, &value, &present));
                assert_true(present == 0);
                assert_status(bly_set_hash(f, other, 1),
                              way < 2 ? BLY_EABSENT : BLY_ENOTSUP);
            }
            bly_free(f);
            table_free(&t);
        }
}

/* Threads and shards of odd widths, which do not end at bytes: all the same
 * bytes, and more shards than keys is no harm. */
static void shards(void **state)
{
    (void)state;
    static const char *const nshards[] = { "2", "7", "64", "1000" };
    for (size_t way = 0; way < COUNT_OF(ways); way++)
        for (size_t i = 0; i < COUNT_OF(nshards); i++)
            for (size_t n = 0; n <= 20000; n = n ? n * 20 : 50) {
                const bly_option more[] = { { "shards", nshards[i] },
                                            { "fingerprint", "3" } };
                table t = table_new(n, 13, i);
                bly_filter *one, *many;
                assert_ok(build(&t, way, more, 2, 1, &one));
                assert_ok(build(&t, way, more, 2, 4, &many));
                assert_true(bly_equal(one, many));
                assert_true(one->kind->sane(&one->shape));
                assert_values(many, &t);
                bly_free(one);
                bly_free(many);
                table_free(&t);
            }
}

/* From a file of keys and values, which memory does not hold: the same bytes,
 * and the same refusal of two values. */
static void more_than_memory_holds(void **state)
{
    (void)state;
    static const char *const layouts[] = { "mutable", "immutable" };
    for (size_t i = 0; i < COUNT_OF(layouts); i++) {
        const bly_option options[] = { { "layout", layouts[i] },
                                       { "shards", "16" } };
        bly_spec spec = { .kind = "bloomier",
                          .options = options,
                          .noptions = COUNT_OF(options) };
        table t = table_new(400000, 11, 18); /* 6.4 MB */
        bly_filter *kept, *spilled;
        assert_ok(build_from(&spec, &t, 1, &kept));
        spec.spill = "/tmp";
        spec.max_bytes = 5 << 20;
        for (unsigned threads = 1; threads <= 2; threads++) {
            assert_ok(build_from(&spec, &t, threads, &spilled));
            assert_true(bly_equal(kept, spilled));
            bly_free(spilled);
        }
        t.h[300000] = t.h[5];
        t.values[300000] = t.values[5] ^ 1;
        assert_status(build_from(&spec, &t, 2, &spilled), BLY_EINVAL);
        assert_non_null(strstr(bly_error(), "twice"));
        bly_free(kept);
        table_free(&t);
    }
}

/* --------------------------------------------------------------- refusals */

static void values_that_do_not_fit(void **state)
{
    (void)state;
    const bly_option eight = { "value_bits", "8" };
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        table t = table_new(100, 8, 12);
        bly_filter *f, *none;
        assert_ok(build(&t, way, &eight, 1, 1, &f));
        if (way < 2) {
            byte_array before = written(f);
            assert_status(bly_set_hash(f, t.h[3], 256), BLY_ERANGE);
            assert_non_null(strstr(bly_error(), "9 bits"));
            assert_same_bytes(f, &before);
            free(before.at);
            t.values[3] = 255;
            assert_ok(bly_set_hash(f, t.h[3], 255));
        }
        assert_values(f, &t);
        t.values[3] = 1000;
        assert_status(build(&t, way, &eight, 1, 1, &none), BLY_ERANGE);
        assert_null(none);
        assert_non_null(strstr(bly_error(), "1000"));
        assert_non_null(strstr(bly_error(), "10 bits"));
        bly_free(f);
        table_free(&t);
    }
}

static void what_cannot_be_set(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        table t = table_new(1000, 8, 13);
        bly_filter *f = built(&t, way);
        byte_array before = written(f);
        if (way >= 2) {
            assert_status(bly_set_hash(f, t.h[0], 1), BLY_ENOTSUP);
            assert_non_null(strstr(bly_error(), "layout=mutable"));
        }
        uint64_t rng = 14;
        for (int i = 0; way < 2 && i < 1000; i++) {
            const uint64_t other = test_random(&rng);
            if (!bly_has_hash(f, other))
                assert_status(bly_set_hash(f, other, 1), BLY_EABSENT);
        }
        assert_same_bytes(f, &before);
        free(before.at);
        bly_free(f);
        table_free(&t);
    }
}

/* ------------------------------------------------------------------ shapes */

static bly_prediction planned(const bly_spec *spec)
{
    bly_prediction p;
    assert_ok(bly_plan(spec, &p));
    return p;
}

static uint64_t param(const bly_prediction *p, const char *name)
{
    for (size_t i = 0; i < p->nfacts; i++)
        if (strcmp(p->facts[i].name, name) == 0)
            return p->facts[i].uint;
    fail_msg("no fact %s", name);
    return 0;
}

static void plans(void **state)
{
    (void)state;
    const bly_option eight[] = { { "value_bits", "8" },
                                 { "layout", "immutable" } };
    bly_spec spec = { .kind = "bloomier", .items = 1000000 };
    bly_prediction p = planned(&spec);
    assert_int_equal(param(&p, "value_bits"), 32);
    assert_int_equal(param(&p, "fingerprint"), 7);
    assert_near(p.fpr, 0.75 / 128, 1e-6);
    assert_near(p.bits_per_key, 1.13 * (7 + 2 + 32), 0.002);

    /* Any power of two of a rate is that many bits. */
    spec.options = eight;
    spec.noptions = 2;
    for (unsigned f = 1; f <= 27; f++) {
        spec.fpr = ldexp(1, -(int)f);
        p = planned(&spec);
        assert_int_equal(param(&p, "fingerprint"), f);
        assert_near(p.bits_per_key, 1.13 * (f + 8), 0.002);
    }

    /* What memory holds: the most bits that fit, never more than given. */
    spec.fpr = 0;
    for (uint64_t bits = 11000000; bits < 50000000; bits += 777777) {
        spec.bits = bits;
        p = planned(&spec);
        assert_true(p.bits <= bits);
        assert_true(p.bits + 2 * param(&p, "slots") > bits);
    }
    spec.bits = 10000000; /* not one bit beside the values */
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "needed"));
    spec.bits = 0;
    spec.fpr = 0x1p-52;
    spec.items = 1;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
}

static void insane_shapes(void **state)
{
    (void)state;
    const bly_kind *kind = bly_kind_by_name("bloomier");
    table t = table_new(1000, 9, 15);
    bly_filter *f = built(&t, 0);
    static const struct {
        unsigned i;
        uint64_t value;
    } wrong[] = {
        { P_LAYOUT, 2 },
        { P_LAYOUT, 1 },
        { P_VALUE, 0 },
        { P_VALUE, 65 },
        { P_PRINT, 49 },
        { P_ARITY, 2 },
        { P_ARITY, 4 },
        { P_SHARDS, 0 },
        { P_SHARDS, 2 },
        { P_SHARDS, UINT64_MAX },
        { P_SEGMENT, 0 },
        { P_SEGMENT, 3 },
        { P_SEGMENT, UINT64_MAX },
        { P_WINDOWS, 0 },
        { P_WINDOWS, UINT64_MAX },
    };
    assert_true(kind->sane(&f->shape));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        bly_shape s = bly_shape_of(f);
        s.p[wrong[i].i] = wrong[i].value;
        assert_false(kind->sane(&s));
    }
    bly_shape s = bly_shape_of(f);
    s.nbytes += 8;
    assert_false(kind->sane(&s));
    /* Shards whose fields would share bytes. */
    s = bly_shape_of(f);
    s.p[P_SHARDS] = 2;
    s.p[P_SEGMENT] = 4;
    for (s.nbytes = 0; s.nbytes < 20000; s.nbytes += 8)
        assert_false(kind->sane(&s));
    bly_free(f);
    table_free(&t);
}

/* Answers may be nonsense; a sanitizer sees if anything else happens. */
static void any_bytes_can_be_asked(void **state)
{
    (void)state;
    uint64_t rng = 16;
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        table t = table_new(3000, 61, 17);
        bly_filter *f = built(&t, way);
        uint64_t values[3000], present[BLY_BITMAP_WORDS(3000)];
        for (int round = 0; round < 10; round++) {
            for (uint64_t i = 0; i < f->shape.nbytes; i++)
                f->data[i] = round ? (unsigned char)test_random(&rng) : 0xff;
            assert_ok(bly_get_hashes(f, t.h, 3000, values, present));
            bly_has_hashes(f, t.h, 3000, present);
            for (size_t i = 0; way < 2 && i < 3000; i++)
                (void)!bly_set_hash(f, t.h[i], i);
        }
        bly_free(f);
        table_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_every_width),
        cmocka_unit_test(values_of_every_width),
        cmocka_unit_test(values_of_many_keys),
        cmocka_unit_test(values_are_kept_by_files),
        cmocka_unit_test(others_are_absent),
        cmocka_unit_test(keys_given_twice),
        cmocka_unit_test(few_keys),
        cmocka_unit_test(shards),
        cmocka_unit_test(more_than_memory_holds),
        cmocka_unit_test(values_that_do_not_fit),
        cmocka_unit_test(what_cannot_be_set),
        cmocka_unit_test(plans),
        cmocka_unit_test(insane_shapes),
        cmocka_unit_test(any_bytes_can_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
