/*
 * test_fuse.c - the binary fuse filter, and the peeling under it
 *
 * Sizes of the reference, rates, all widths and arities, shards, repeated
 * keys, sets of no keys and of one, shapes from outside, and construction
 * that cannot succeed.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "kinds/peeled.h"
#include "kinds/filter.h"

static uint64_t *random_hashes(size_t n, uint64_t seed)
{
    uint64_t *h = malloc((n + 1) * sizeof *h);
    assert_non_null(h);
    for (size_t i = 0; i < n; i++)
        h[i] = test_random(&seed);
    return h;
}

static bly_status build_status(const bly_spec *spec, const uint64_t *h,
                               size_t n, unsigned nthreads, bly_filter **out)
{
    bly_builder *b;
    *out = NULL;
    bly_status st = bly_builder_new(spec, &b);
    if (!st)
        st = bly_builder_add(b, h, NULL, n);
    if (!st)
        st = bly_builder_finish(b, nthreads, out);
    bly_builder_free(b);
    return st;
}

static bly_filter *built(const bly_spec *spec, const uint64_t *h, size_t n)
{
    bly_filter *f;
    assert_ok(build_status(spec, h, n, 1, &f));
    return f;
}

static size_t hits_of(const bly_filter *f, const uint64_t *h, size_t n)
{
    size_t sum = 0;
    uint64_t *maybe = calloc(BLY_BITMAP_WORDS(n) + 1, sizeof *maybe);
    assert_non_null(maybe);
    bly_has_hashes(f, h, n, maybe);
    for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++)
        sum += (size_t)__builtin_popcountll(maybe[w]);
    free(maybe);
    return sum;
}

/* ------------------------------------------------------------------ sizes */

/* The slots of the published sizes, 3-wise. */
static void reference_sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, slots;
    } rows[] = {
        { 10, 48 },
        { 100, 192 },
        { 1000, 1408 },
        { 10000, 12800 },
        { 100000, 118784 },
        { 1000000, 1130496 },
        { 10000000, 11272192 },
    };
    const bly_option options[] = { { "shards", "1" }, { "bits", "8" } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_spec spec = { .kind = "fuse",
                                .items = rows[i].n,
                                .fpr = 0.004,
                                .options = options,
                                .noptions = 2 };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(fact_of(p.facts, p.nfacts, "slots")->uint,
                         rows[i].slots);
        assert_int_equal(p.bits, 8 * rows[i].slots);
    }
}

/* Bits a key at a million, where nothing is asked for but a kind. */
static void bits_a_key(void **state)
{
    (void)state;
    const bly_option four = { "arity", "4" };
    bly_spec spec = { .kind = "fuse", .items = 1000000, .fpr = 0.004 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_between(p.bits_per_key, 9, 9.1);
    spec.options = &four;
    spec.noptions = 1;
    assert_ok(bly_plan(&spec, &p));
    assert_between(p.bits_per_key, 8.5, 8.7);
    /* And not much more where there are shards. */
    spec.items = 100000000;
    spec.noptions = 0;
    assert_ok(bly_plan(&spec, &p));
    assert_true(fact_of(p.facts, p.nfacts, "shards")->uint > 1);
    assert_between(p.bits_per_key, 9, 9.1);
}

/* The narrowest fingerprint that keeps the rate, or whole bytes if these are
 * near; or the widest that fits. */
static void width_follows(void **state)
{
    (void)state;
    static const struct {
        double fpr;
        uint64_t bits;
    } rows[] = { { 0.3, 2 },      { 0.05, 5 },   { 0.02, 6 },   { 0.01, 8 },
                 { 0x1p-8, 8 },   { 0.0039, 9 }, { 0.001, 10 }, { 1e-4, 16 },
                 { 0x1p-16, 16 }, { 1e-5, 17 },  { 1e-9, 32 } };
    bly_prediction p;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_spec spec = { .kind = "fuse",
                                .items = 10000,
                                .fpr = rows[i].fpr };
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(fact_of(p.facts, p.nfacts, "bits")->uint,
                         rows[i].bits);
    }
    for (uint64_t bits = 2; bits <= 32; bits++) {
        bly_spec spec = { .kind = "fuse",
                          .items = 10000,
                          .bits = 12800 * bits };
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(fact_of(p.facts, p.nfacts, "bits")->uint, bits);
        spec.bits--;
        if (bits > 2) {
            assert_ok(bly_plan(&spec, &p));
            assert_int_equal(fact_of(p.facts, p.nfacts, "bits")->uint,
                             bits - 1);
        } else {
            assert_status(bly_plan(&spec, &p), BLY_EINVAL);
        }
    }
    bly_spec spec = { .kind = "fuse", .items = 10, .fpr = 1e-10 };
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    const bly_option many = { "bits", "33" }, eight = { "bits", "8" };
    spec = (bly_spec){ .kind = "fuse", .items = 10, .options = &many };
    spec.noptions = 1;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "32"));
    spec.options = &eight;
    spec.fpr = 0.001; /* more than 8 bits can do */
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
}

/* Past 32 bits of keys: planned, not made. */
static void more_than_four_billion(void **state)
{
    (void)state;
    const bly_spec spec = { .kind = "fuse",
                            .items = (UINT64_C(1) << 32) + 5,
                            .fpr = 0.01 };
    const bly_option one = { "shards", "1" };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_between(p.bits_per_key, 9, 9.1);
    assert_true(fact_of(p.facts, p.nfacts, "slots")->uint > spec.items);
    bly_spec whole = spec;
    whole.options = &one;
    whole.noptions = 1;
    assert_status(bly_plan(&whole, &p), BLY_ERANGE);
    assert_non_null(strstr(bly_error(), "shards"));
}

/* --------------------------------------------------------------- contents */

/* Every width, arity and number of shards: all keys are in it, and of others
 * one in 2^bits is; from one thread and from three the same bytes, in any
 * order and with repeated keys. */
static void every_form(void **state)
{
    (void)state;
    static const char *const widths[] = { "8", "16", "32", "2", "11", "31" };
    static const char *const arities[] = { "3", "4" };
    static const char *const shards[] = { "1", "2", "7" };
    const size_t n = 50000, q = scaled(2000000);
    uint64_t *h = random_hashes(2 * n, 1), *others = random_hashes(q, 2);
    for (size_t i = 0; i < n; i++) /* each once more, backwards */
        h[n + i] = h[n - 1 - i];
    for (size_t i = 0; i < 6 * 2 * 3; i++) {
        const bly_option options[] = { { "bits", widths[i % 6] },
                                       { "arity", arities[i / 6 % 2] },
                                       { "shards", shards[i / 12] } };
        const bly_spec spec = { .kind = "fuse",
                                .items = n,
                                .fpr = 0.3,
                                .options = options,
                                .noptions = 3 };
        bly_filter *f = built(&spec, h, n), *again;
        bly_stats stats;
        bly_stat(f, &stats);
        const double p = exp2(-atof(widths[i % 6]));
        assert_near(stats.fpr_now, p, 0);
        assert_int_equal(stats.capacity, n);
        assert_int_equal(stats.items_added, n);
        assert_near(stats.items_estimate, (double)n, 0);
        assert_int_equal(hits_of(f, h, n), n);
        const double seen = (double)hits_of(f, others, q);
        const double sd = sqrt((double)q * p);
        assert_between(seen, (double)q * p - 5 * sd,
                       (double)q * p + 5 * sd + 1);
        assert_ok(build_status(&spec, h, 2 * n, 3, &again));
        assert_true(bly_equal(f, again));
        bly_free(again);
        bly_free(f);
    }
    free(h);
    free(others);
}

/* None, one, and every small number; capacity far above. */
static void small_sets(void **state)
{
    (void)state;
    uint64_t *h = random_hashes(300, 3), *others = random_hashes(100000, 4);
    for (size_t n = 0; n <= 300; n += n < 40 ? 1 : 37) {
        for (int arity = 3; arity <= 4; arity++) {
            const bly_option option = { "arity", arity == 3 ? "3" : "4" };
            bly_spec spec = { .kind = "fuse",
                              .options = &option,
                              .noptions = 1 };
            bly_filter *f = built(&spec, h, n);
            bly_stats stats;
            bly_stat(f, &stats);
            assert_int_equal(stats.items_added, n);
            assert_int_equal(hits_of(f, h, n), n);
            if (n == 0) {
                assert_int_equal(hits_of(f, others, 100000), 0);
                assert_near(stats.fpr_now, 0, 0);
            }
            bly_free(f);
            spec.items = 100000;
            f = built(&spec, h, n);
            assert_int_equal(hits_of(f, h, n), n);
            bly_free(f);
        }
    }
    free(h);
    free(others);
}

/* Hashes that are none: integers from 0 on, and ends of the range. */
static void keys_that_are_no_hashes(void **state)
{
    (void)state;
    enum { N = 20000 };
    static uint64_t h[N];
    const bly_option full = { "mixing", "full" };
    for (unsigned shift = 0; shift <= 48; shift += 16) {
        for (size_t i = 0; i < N; i++)
            h[i] = (uint64_t)i << shift;
        const bly_spec spec = {
            .kind = "fuse", .items = N, .options = &full, .noptions = 1
        };
        bly_filter *f = built(&spec, h, N);
        assert_int_equal(hits_of(f, h, N), N);
        bly_free(f);
    }
    /* In one shard of many there is no room for all, and it says so. */
    const bly_option many = { "shards", "64" };
    const bly_spec spec = {
        .kind = "fuse", .items = N, .options = &many, .noptions = 1
    };
    bly_filter *f;
    for (size_t i = 0; i < N; i++)
        h[i] = i;
    assert_status(build_status(&spec, h, N, 1, &f), BLY_EFULL);
    assert_null(f);
    assert_non_null(strstr(bly_error(), "shard"));
}

/* -------------------------------------------------------------- the seam */

/* What peeling promises to those who give cells: every key once, its own slot
 * among its slots, and no key before it in the order has that slot; with
 * values, each with its own. */
typedef struct seen_keys {
    size_t n;
    unsigned char *owner; /* by slot */
} seen_keys;

static seen_keys seen;

static void note_keys(void *ctx, const bly_peel *p, const bly_peeled *keys)
{
    const bly_filter *const f = ctx;
    for (size_t i = keys->n; i-- > 0;) {
        const uint64_t g = keys->words[i] & ~BLY_PEEL_LOW;
        const uint64_t own = keys->words[i] & BLY_PEEL_LOW;
        uint64_t slot[BLY_PEEL_MAX_ARITY];
        bly_peel_slots(p, p->arity, p->fuse, g, keys->shard * p->nslots, slot);
        assert_true(own < p->arity);
        for (unsigned k = 0; k < p->arity; k++) {
            assert_true(slot[k] >= keys->shard * p->nslots &&
                        slot[k] < (keys->shard + 1) * p->nslots);
            for (unsigned j = 0; j < k; j++)
                assert_true(slot[j] != slot[k]);
        }
        /* Nobody who comes later in this order had it. */
        assert_int_equal(seen.owner[slot[own]], 0);
        for (unsigned k = 0; k < p->arity; k++)
            seen.owner[slot[k]] = 1;
        if (keys->values)
            assert_true(bly_peel_word(keys->values[i],
                                      bly_load64(f->data + keys->shard * 8),
                                      p->light) == g);
        seen.n++;
    }
}

static void order_of_peeling(void **state)
{
    (void)state;
    const size_t n = 30000;
    for (int form = 0; form < 12; form++) {
        bly_peel p;
        const bool fuse = form % 3 > 0;
        assert_ok(bly_peel_plan("test", n, form / 3 % 2 ? 4 : 1,
                                form % 3 == 2 ? 4 : 3, fuse, &p));
        p.light = form % 2;
        /* The value of a key is its hash, so that it can be checked. */
        uint64_t *h = random_hashes(n, 5), *values = random_hashes(n, 5);
        uint64_t words[1] = { 0 };
        bly_filter f = { .state = words };
        unsigned char seeds[64] = { 0 };
        f.data = seeds;
        seen = (seen_keys){ 0, calloc((size_t)(p.nslots * p.nshards), 1) };
        assert_non_null(seen.owner);
        assert_ok(bly_peeled_build(&f, &p, 0, p.nshards, h,
                                   form < 6 ? NULL : values, n, 1, note_keys));
        assert_int_equal(seen.n, n);
        assert_int_equal(f.state[BLY_PEELED_STATE], n);
        free(seen.owner);
        free(values);
        free(h);
    }
}

/* Shapes from a file, with every number wrong in turn. */
static void shapes_from_outside(void **state)
{
    (void)state;
    const bly_kind *kind = bly_kind_by_name("fuse");
    const bly_option many = { "shards", "4" };
    const bly_spec spec = {
        .kind = "fuse", .items = 10000, .options = &many, .noptions = 1
    };
    uint64_t *h = random_hashes(10000, 6);
    bly_filter *f = built(&spec, h, 10000);
    static const uint64_t wrong[] = { 0,
                                      1,
                                      2,
                                      5,
                                      12,
                                      33,
                                      UINT64_C(1) << 31,
                                      UINT64_C(1) << 32,
                                      UINT64_C(1) << 33,
                                      UINT64_C(1) << 60,
                                      UINT64_MAX };
    assert_true(kind->sane(&f->shape));
    for (unsigned i = 0; i < kind->nparams; i++) {
        for (size_t j = 0; j < COUNT_OF(wrong); j++) {
            bly_shape s = bly_shape_of(f);
            if (s.p[i] == wrong[j])
                continue;
            s.p[i] = wrong[j];
            /* Of mixing, the last, there are two. */
            assert_true(kind->sane(&s) ==
                        (i + 1 == kind->nparams && wrong[j] < 2));
            s.nbytes = 0;
            assert_false(kind->sane(&s));
        }
    }
    for (size_t j = 0; j < COUNT_OF(wrong); j++) {
        bly_shape s = bly_shape_of(f);
        s.nbytes += wrong[j];
        assert_true(kind->sane(&s) == (wrong[j] == 0));
    }
    bly_free(f);
    free(h);
}

/* Beyond the size from which cells are fetched ahead: with instructions of the
 * processor and without, to the last bit. */
static void rows_agree(void **state)
{
    (void)state;
    static const bly_option options[] = { { "bits", "8" },  { "bits", "16" },
                                          { "bits", "32" }, { "bits", "7" },
                                          { "bits", "10" }, { "bits", "31" },
                                          { "arity", "4" }, { "shards", "4" },
                                          { "shards", "7" } };
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        const size_t n = scaled(400000);
        const bly_spec spec = { .kind = "fuse",
                                .items = n,
                                .seed = LAW_SEED,
                                .options = &options[i],
                                .noptions = 1 };
        assert_rows_agree(&spec, n);
    }
    /* So many that the cells are not in L2, and are fetched ahead. */
    static const struct {
        const char *kind;
        bly_option bits;
        size_t n;
    } far[] = {
        { "fuse", { "bits", "8" }, 2200000 },
        { "fuse", { "bits", "31" }, 600000 },
        { "xor", { "bits", "16" }, 1100000 },
    };
    for (size_t i = 0; i < COUNT_OF(far); i++) {
        const bly_spec spec = { .kind = far[i].kind,
                                .items = far[i].n,
                                .seed = LAW_SEED,
                                .options = &far[i].bits,
                                .noptions = 1 };
        assert_rows_agree(&spec, scaled(far[i].n));
    }
}

/* The same keys make the same bytes in every version. */
static void bytes_are_as_ever(void **state)
{
    (void)state;
    enum { N = 200000 };
    static const struct {
        const char *kind;
        bly_option option;
        double fpr;
        uint64_t sum[2]; /* mixed fully, lightly */
    } rows[] = {
        { "fuse",
          { "arity", "3" },
          0.01,
          { UINT64_C(0x37a12335d302b9f9), UINT64_C(0x397d46af57e0c8d4) } },
        { "fuse",
          { "arity", "4" },
          0.01,
          { UINT64_C(0xd473c522ecb18bb4), UINT64_C(0xa742b3756596da70) } },
        { "fuse",
          { "shards", "1" },
          1e-4,
          { UINT64_C(0xc855bfbbbce21e7e), UINT64_C(0x308ce97fabdc77d6) } },
        { "fuse",
          { "shards", "5" },
          1e-9,
          { UINT64_C(0x3209ca439ea2d304), UINT64_C(0x6ffb788326847ace) } },
        { "xor",
          { "shards", "1" },
          0.01,
          { UINT64_C(0xf89ecf9fe4129ec4), UINT64_C(0xcbfc803f50baecec) } },
        { "xor",
          { "shards", "8" },
          1e-4,
          { UINT64_C(0x4455dd18850fc566), UINT64_C(0xe07feb0d0aabd9c3) } },
    };
    uint64_t *h = malloc(N * sizeof *h);
    unsigned wrong = 0;
    for (size_t r = 0; r < 2 * COUNT_OF(rows); r++) {
        const size_t row = r % COUNT_OF(rows), light = r / COUNT_OF(rows);
        const bly_option options[] = { rows[row].option,
                                       { "mixing", light ? "light" : "full" } };
        const bly_spec spec = { .kind = rows[row].kind,
                                .items = N,
                                .fpr = rows[row].fpr,
                                .options = options,
                                .noptions = 2 };
        for (size_t i = 0; i < N; i++)
            h[i] = bly_mix64(i);
        bly_filter *f = built(&spec, h, N);
        const uint64_t sum = bly_checksum(f->data, (size_t)f->shape.nbytes);
        if (sum != rows[row].sum[light]) {
            print_message("row %zu: %#llx\n", r, (unsigned long long)sum);
            wrong++;
        }
        bly_free(f);
    }
    assert_int_equal(wrong, 0);
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_sizes),
        cmocka_unit_test(bits_a_key),
        cmocka_unit_test(width_follows),
        cmocka_unit_test(more_than_four_billion),
        cmocka_unit_test(every_form),
        cmocka_unit_test(small_sets),
        cmocka_unit_test(keys_that_are_no_hashes),
        cmocka_unit_test(order_of_peeling),
        cmocka_unit_test(shapes_from_outside),
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(bytes_are_as_ever),
    };
    return cmocka_run_group_tests_name("fuse", tests, NULL, NULL);
}
