/*
 * test_minhash.c - sketches: how far off they are, merging, bytes
 *
 * Pairs of sets of known likeness are drawn many times. Means and errors are
 * then held against what k independent components would give; seeds are fixed,
 * so a failure repeats.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "engine/likeness.h"
#include "sketch/sketches.h"
#include "tests/support.h"

static bly_sketch *sketch_of(bly_family family, unsigned k)
{
    bly_sketch *s;
    const bly_sketch_spec spec = { .family = family, .k = k };
    assert_ok(bly_sketch_new(&spec, &s));
    return s;
}

/* n hashes: one set is the first na of them, the other the last nb. */
struct pair {
    uint64_t x[4096];
    size_t na, nb, n;
};

static void draw_pair(struct pair *p, size_t either, size_t both,
                      uint64_t *random)
{
    const size_t apart = either - both;
    for (size_t i = 0; i < either; i++)
        p->x[i] = test_random(random);
    p->n = either;
    p->na = apart / 2 + both;
    p->nb = either - apart / 2;
}

static double estimate(const struct pair *p, bly_sketch *a, bly_sketch *b,
                       double *sd)
{
    bly_resemblance r;
    bly_sketch_clear(a);
    bly_sketch_clear(b);
    assert_ok(bly_sketch_add(a, p->x, p->na));
    assert_ok(bly_sketch_add(b, p->x + p->n - p->nb, p->nb));
    assert_ok(bly_sketch_compare(a, b, &r));
    if (sd)
        *sd = r.sd;
    return r.jaccard;
}

/* Mean and root mean square of the error over many pairs, and the mean of the
 * deviation that is told unless that is NULL. */
static void measure_told(bly_family family, unsigned k, size_t either, double j,
                         size_t trials, double *bias, double *rms, double *told)
{
    static struct pair p;
    bly_sketch *a = sketch_of(family, k), *b = sketch_of(family, k);
    const size_t both = (size_t)lround(j * (double)either);
    const double truth = (double)both / (double)either;
    uint64_t random = 1000003 * k + either + both;
    double sum = 0, square = 0, sds = 0, sd;
    for (size_t i = 0; i < trials; i++) {
        draw_pair(&p, either, both, &random);
        const double e = estimate(&p, a, b, &sd) - truth;
        sum += e;
        square += e * e;
        sds += sd;
    }
    if (told)
        *told = sds / (double)trials;
    *bias = sum / (double)trials;
    *rms = sqrt(square / (double)trials);
    bly_sketch_free(a);
    bly_sketch_free(b);
}

static void measure(bly_family family, unsigned k, size_t either, double j,
                    size_t trials, double *bias, double *rms)
{
    measure_told(family, k, either, j, trials, bias, rms, NULL);
}

/* No family tells a deviation that is smaller than its errors are, for texts of
 * any length. Copies made those of oph a fifth larger than it told, where texts
 * have fewer shingles than sketches have components. */
static void deviations_are_not_too_small(void **state)
{
    (void)state;
    static const size_t sizes[] = { 10, 30, 60, 300, 1000 };
    static const double js[] = { 0.5, 0.8 };
    for (unsigned f = 0; f < BLY_FAMILY_COUNT_; f++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            for (size_t c = 0; c < COUNT_OF(js); c++) {
                if (f == BLY_LINEAR61)
                    continue; /* as linear, and slow */
                const size_t trials = scaled(1500);
                const double spread = 4 / sqrt(2.0 * (double)trials);
                double bias, rms, told;
                measure_told((bly_family)f, 128, sizes[i], js[c], trials, &bias,
                             &rms, &told);
                assert_between(rms / told, 0.4, 1.03 + spread);
                if (f == BLY_OPH)
                    assert_between(rms / told, 0.85 - spread, 1.03 + spread);
            }
}

/* Long and short texts, three sizes of sketch, every family: the bias is within
 * five deviations of its mean (linear maps may add 0.002), and the error is the
 * formula's for independent components. */
static void as_far_off_as_promised(void **state)
{
    (void)state;
    static const unsigned ks[] = { 64, 128, 256 };
    static const double js[] = { 0.3, 0.5, 0.8, 0.95 };
    for (unsigned f = 0; f < BLY_FAMILY_COUNT_; f++)
        for (size_t i = 0; i < COUNT_OF(ks); i++)
            for (size_t c = 0; c < COUNT_OF(js); c++) {
                const unsigned k = ks[i];
                const size_t trials = scaled(f == BLY_LINEAR61 ? 160 : 800);
                double bias, rms;
                measure((bly_family)f, k, 2000, js[c], trials, &bias, &rms);
                const double sd = sqrt(js[c] * (1 - js[c]) / k);
                const double slack = 5 * sd / sqrt((double)trials);
                assert_between(bias, -slack - 0.002, slack + 0.002);
                /* The deviation of a root mean square is sd / sqrt(2 n). */
                const double spread = 5 / sqrt(2.0 * (double)trials);
                if (f == BLY_LINEAR32 || f == BLY_LINEAR61)
                    assert_between(rms, sd * (1 - spread), sd * (1 + spread));
                else
                    assert_between(rms, 0, sd * (1 + spread));
            }
}

/* Most bins of fss come from one order, so its errors are smaller than the
 * formula's where sets are not many times larger than k. */
static void fss_is_below_the_formula(void **state)
{
    (void)state;
    double bias, rms;
    measure(BLY_FSS, 128, 300, 0.85, scaled(4000), &bias, &rms);
    const double sd = sqrt(0.85 * 0.15 / 128);
    assert_between(rms, 0.5 * sd, 0.9 * sd);
    assert_between(bias, -0.003, 0.003);
}

/* Few shingles: fss goes on for as many rounds as it takes and stays unbiased,
 * down to two sets of one; oph copies, and may be off a little. */
static void short_texts(void **state)
{
    (void)state;
    static const size_t sizes[] = { 2, 3, 10, 50 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const size_t n = sizes[i], both = n / 2;
        const double j = (double)both / (double)n;
        double bias, rms;
        measure(BLY_FSS, 128, n, j, scaled(2000), &bias, &rms);
        assert_between(bias, -0.006, 0.006);
        assert_between(rms, 0, 1.2 * sqrt(j * (1 - j) / 128));
        measure(BLY_OPH, 128, n, j, scaled(2000), &bias, &rms);
        assert_between(bias, -0.05, 0.05);
    }
}

/* fss as it is defined, one shingle and one round after the other. */
static void slow_fss(const uint64_t *x, size_t n, unsigned t, uint32_t *out)
{
    static uint64_t bins[512];
    const uint64_t g0 = UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < t; i++)
        bins[i] = UINT64_MAX;
    for (uint64_t round = 0; round < 2 * t; round++) {
        unsigned empty = 0;
        for (size_t i = 0; i < n; i++) {
            const uint64_t g = bly_shingle_mix(x[i] + (round + 1) * g0);
            const uint64_t bin = round < t ? (t * (g >> 32)) >> 32 : round - t;
            const uint64_t value = (round << 54) + ((g * g0) >> 10);
            if (value < bins[bin])
                bins[bin] = value;
        }
        for (unsigned i = 0; i < t; i++)
            empty += bins[i] == UINT64_MAX;
        if (!empty)
            break;
    }
    for (unsigned i = 0; i < t; i++)
        out[i] = (uint32_t)(bly_shingle_mix(bins[i]) >> 32);
}

static void fss_as_defined(void **state)
{
    (void)state;
    static const size_t counts[] = { 1, 2, 7, 100, 129, 1000, 3000 };
    static const unsigned ks[] = { 1, 2, 63, 128, 511, 512 };
    static uint64_t x[3000];
    uint32_t want[512], got[512];
    uint64_t random = 3;
    for (size_t i = 0; i < COUNT_OF(x); i++)
        x[i] = test_random(&random);
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (size_t c = 0; c < COUNT_OF(ks); c++) {
            bly_sketch *s = sketch_of(BLY_FSS, ks[c]);
            assert_ok(bly_sketch_add(s, x, counts[i]));
            assert_true(bly_sketch_components(s, got));
            slow_fss(x, counts[i], ks[c], want);
            assert_memory_equal(got, want, ks[c] * sizeof *got);
            bly_sketch_free(s);
        }
}

/* linear61 against arithmetic of 128 bits, by way of long multiplication. */
/* A page of zeros: few shingles, each of them often. The sketch is that of the
 * set, and takes a pass over the text, not one for each of 2k rounds. */
static void repeated_shingles_count_once(void **state)
{
    (void)state;
    enum { N = 40000 };
    static const unsigned ks[] = { 1, 5, 8, 128, 512 };
    static const size_t differents[] = {
        1, 2, 60, 700, 1024, 1025, 3000, 9000
    };
    static uint64_t x[N];
    uint64_t random = 77;
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
        for (size_t j = 0; j < sizeof differents / sizeof differents[0]; j++) {
            const unsigned k = ks[i];
            const size_t d = differents[j];
            uint32_t once[BLY_MAX_COMPONENTS], often[BLY_MAX_COMPONENTS];
            bly_sketch *const s = sketch_of(BLY_FSS, k);
            for (size_t n = 0; n < d; n++)
                x[n] = test_random(&random);
            /* One at a time, which has nothing to repeat. */
            for (size_t n = 0; n < d; n++)
                assert_ok(bly_sketch_add(s, x + n, 1));
            assert_true(bly_sketch_components(s, once));
            for (size_t n = d; n < N; n++)
                x[n] = x[test_random(&random) % d];
            bly_sketch_clear(s);
            assert_ok(bly_sketch_add(s, x, N));
            assert_true(bly_sketch_components(s, often));
            assert_memory_equal(once, often, k * sizeof *once);
            bly_sketch_free(s);
        }
}

static void linear_maps_are_linear(void **state)
{
    (void)state;
    const uint64_t p = (UINT64_C(1) << 61) - 1;
    static const uint64_t xs[] = { 0,
                                   1,
                                   2,
                                   (UINT64_C(1) << 61) - 2,
                                   (UINT64_C(1) << 61) - 1,
                                   UINT64_C(1) << 61,
                                   UINT64_C(0x123456789abcdef),
                                   UINT64_C(0xfedcba9876543210),
                                   UINT64_MAX };
    /* From the images of 0 and 1 follow b and a, and from those all others:
     * a x + b by adding a, bit by bit. Minima of one shingle are images. */
    bly_sketch *s = sketch_of(BLY_LINEAR61, 8);
    uint64_t image[COUNT_OF(xs)][8];
    for (size_t i = 0; i < COUNT_OF(xs); i++) {
        unsigned char bytes[256];
        bly_sketch_clear(s);
        assert_ok(bly_sketch_add(s, &xs[i], 1));
        assert_ok(bly_sketch_write(s, 0, bytes));
        for (unsigned c = 0; c < 8; c++)
            image[i][c] = bly_load64(bytes + BLY_SKETCH_HEAD + 8 * c);
    }
    for (unsigned c = 0; c < 8; c++) {
        const uint64_t b = image[0][c], a = (image[1][c] + p - b) % p;
        assert_true(a != 0);
        for (size_t i = 0; i < COUNT_OF(xs); i++) {
            uint64_t y = b, power = a;
            for (uint64_t x = xs[i] % p; x; x >>= 1) {
                if (x & 1)
                    y = (y + power) % p;
                power = power * 2 % p;
            }
            assert_true(image[i][c] == y);
        }
    }
    bly_sketch_free(s);
}

/* Adding in parts, in any order, twice, and merging: one and the same. */
static void merging_is_seeing_both(void **state)
{
    (void)state;
    static const size_t counts[] = { 1, 5, 200, 3000 };
    static uint64_t x[3000];
    uint64_t random = 17;
    for (size_t i = 0; i < COUNT_OF(x); i++)
        x[i] = test_random(&random);
    for (unsigned f = 0; f < BLY_FAMILY_COUNT_; f++)
        for (size_t c = 0; c < COUNT_OF(counts); c++)
            for (unsigned cut = 0; cut <= 4; cut++) {
                const size_t n = counts[c], part = n * cut / 4;
                bly_sketch *all = sketch_of((bly_family)f, 100),
                           *a = sketch_of((bly_family)f, 100),
                           *b = sketch_of((bly_family)f, 100),
                           *parts = sketch_of((bly_family)f, 100);
                unsigned char want[1000], got[1000];
                const size_t len = bly_sketch_written_bytes(a, 0);
                assert_ok(bly_sketch_add(all, x, n));
                assert_ok(bly_sketch_add(a, x, part));
                assert_ok(bly_sketch_add(b, x + part, n - part));
                assert_ok(bly_sketch_add(parts, x + part, n - part));
                assert_ok(bly_sketch_add(parts, x, part));
                assert_ok(bly_sketch_add(parts, x, n));
                assert_ok(bly_sketch_merge(a, b));
                const size_t nbytes = bly_sketch_written_bytes(all, 0);
                assert_in_range(nbytes, len, sizeof want);
                assert_ok(bly_sketch_write(all, 0, want));
                assert_ok(bly_sketch_write(a, 0, got));
                assert_memory_equal(want, got, nbytes);
                assert_ok(bly_sketch_write(parts, 0, got));
                assert_memory_equal(want, got, nbytes);
                bly_sketch_free(all);
                bly_sketch_free(a);
                bly_sketch_free(b);
                bly_sketch_free(parts);
            }
}

/* b bits of each component: unbiased after the correction, and the deviation
 * that comes with it is the one that is seen. */
static void few_bits(void **state)
{
    (void)state;
    static const unsigned widths[] = { 1, 2, 4, 8, 16, 32 };
    static struct pair p;
    const size_t trials = scaled(2000);
    for (unsigned f = 0; f <= BLY_LINEAR32; f++)
        for (size_t c = 0; c < COUNT_OF(widths); c++) {
            const unsigned bits = widths[c];
            bly_sketch *a = sketch_of((bly_family)f, 128),
                       *b = sketch_of((bly_family)f, 128), *small;
            uint64_t random = 5;
            double sum = 0, square = 0, told = 0;
            for (size_t i = 0; i < trials; i++) {
                unsigned char bytes[700];
                bly_resemblance r;
                draw_pair(&p, 2000, 1000, &random);
                (void)estimate(&p, a, b, NULL);
                const size_t n = bly_sketch_written_bytes(a, bits);
                assert_int_equal(n, 32 + 128 * bits / 8 + 8);
                assert_ok(bly_sketch_write(a, bits, bytes));
                assert_ok(bly_sketch_load(bytes, n, NULL, &small));
                assert_int_equal(bly_sketch_bits(small), bits);
                /* A whole one and a compact one are compared too. */
                assert_ok(bly_sketch_compare(small, b, &r));
                assert_int_equal(r.bits, bits);
                sum += r.jaccard - 0.5;
                square += (r.jaccard - 0.5) * (r.jaccard - 0.5);
                told += r.sd;
                bly_sketch_free(small);
            }
            const double n = (double)trials, rms = sqrt(square / n);
            assert_between(sum / n, -5 * rms / sqrt(n) - 0.002,
                           5 * rms / sqrt(n) + 0.002);
            assert_between(rms, 0.7 * told / n, 1.15 * told / n);
            bly_sketch_free(a);
            bly_sketch_free(b);
        }
}

static void nothing_is_like_nothing(void **state)
{
    (void)state;
    const uint64_t x = 5;
    uint32_t parts[128] = { 9 };
    bly_resemblance r = { .jaccard = 1 };
    for (unsigned f = 0; f < BLY_FAMILY_COUNT_; f++) {
        bly_sketch *a = sketch_of((bly_family)f, 0),
                   *b = sketch_of((bly_family)f, 0), *back;
        unsigned char bytes[2000];
        assert_int_equal(bly_sketch_spec_of(a)->k, 128);
        assert_ok(bly_sketch_compare(a, b, &r));
        assert_true(r.jaccard == 0);
        assert_ok(bly_sketch_add(a, NULL, 0));
        assert_false(bly_sketch_components(a, parts));
        assert_int_equal(parts[0], 9);
        assert_int_equal(bly_sketch_written_bytes(a, 0), 40);
        assert_ok(bly_sketch_write(a, 0, bytes));
        assert_ok(bly_sketch_load(bytes, 40, NULL, &back));
        assert_ok(bly_sketch_add(back, &x, 1));
        assert_ok(bly_sketch_compare(a, back, &r));
        assert_true(r.jaccard == 0);
        assert_ok(bly_sketch_add(b, &x, 1));
        assert_ok(bly_sketch_compare(back, b, &r));
        assert_true(r.jaccard == 1 && r.equal == 128);
        bly_sketch_clear(b);
        assert_false(bly_sketch_components(b, parts));
        bly_sketch_free(a);
        bly_sketch_free(b);
        bly_sketch_free(back);
    }
    bly_sketch_free(NULL);
}

static void what_differs_is_refused(void **state)
{
    (void)state;
    static const struct {
        bly_sketch_spec spec;
        const char *why;
    } rows[] = {
        { { .shingling = { .unit = BLY_CHARS, .size = 5 } }, "unit" },
        { { .shingling = { .size = 6 } }, "size" },
        { { .shingling = { .seed = 1 } }, "seed" },
        { { .family = BLY_OPH }, "family" },
        { { .k = 127 }, "number of components" },
    };
    bly_sketch *a = sketch_of(BLY_FSS, 0), *b, *small;
    unsigned char bytes[600];
    bly_resemblance r;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_ok(bly_sketch_new(&rows[i].spec, &b));
        assert_status(bly_sketch_compare(a, b, &r), BLY_EUNFIT);
        assert_non_null(strstr(bly_error(), rows[i].why));
        assert_status(bly_sketch_merge(a, b), BLY_EUNFIT);
        bly_sketch_free(b);
    }
    const uint64_t x[] = { 1, 2 };
    assert_ok(bly_sketch_add(a, x, 2));
    assert_ok(bly_sketch_write(a, 8, bytes));
    assert_ok(bly_sketch_load(bytes, 32 + 128 + 8, NULL, &small));
    assert_status(bly_sketch_add(small, x, 2), BLY_EREADONLY);
    assert_status(bly_sketch_merge(small, a), BLY_EREADONLY);
    assert_status(bly_sketch_merge(a, small), BLY_EREADONLY);
    assert_false(bly_sketch_components(small, (uint32_t *)(void *)bytes));
    assert_status(bly_sketch_write(small, 9, bytes), BLY_EINVAL);
    assert_status(bly_sketch_write(a, 33, bytes), BLY_EINVAL);
    assert_ok(bly_sketch_write(small, 4, bytes));
    assert_ok(bly_sketch_compare(small, a, &r));
    assert_true(r.jaccard == 1 && r.bits == 8);
    bly_sketch_free(small);
    bly_sketch_free(a);
    bly_sketch *s = (bly_sketch *)&s;
    assert_status(bly_sketch_new(&(bly_sketch_spec){ .k = 513 }, &s),
                  BLY_EINVAL);
    assert_null(s);
    assert_status(
        bly_sketch_new(&(bly_sketch_spec){ .family = (bly_family)9 }, &s),
        BLY_EINVAL);
    ledger l;
    ledger_open(&l);
    assert_ok(bly_sketch_new(&(bly_sketch_spec){ .mem = &l.mem }, &s));
    bly_sketch_free(s);
    l.fail_at = 1;
    assert_status(bly_sketch_new(&(bly_sketch_spec){ .mem = &l.mem }, &s),
                  BLY_ENOMEM);
    ledger_check(&l);
}

/* Cut anywhere, or with any bit flipped: refused. */
static void bytes_from_outside(void **state)
{
    (void)state;
    static const unsigned widths[] = { 0, 1, 5, 32 };
    static const uint64_t x[] = { 3, 1, 4, 15, 92, 65 };
    for (unsigned f = 0; f < BLY_FAMILY_COUNT_; f++)
        for (size_t c = 0; c < COUNT_OF(widths); c++) {
            bly_sketch *s = sketch_of((bly_family)f, 21), *t = s;
            assert_ok(bly_sketch_add(s, x, COUNT_OF(x)));
            const size_t n = bly_sketch_written_bytes(s, widths[c]);
            unsigned char *const bytes = guarded_new(n);
            assert_ok(bly_sketch_write(s, widths[c], bytes));
            assert_ok(bly_sketch_load(bytes, n, NULL, &t));
            bly_resemblance r;
            assert_ok(bly_sketch_compare(s, t, &r));
            assert_true(r.equal == 21);
            unsigned char *const again = guarded_new(n);
            assert_ok(bly_sketch_write(t, 0, again));
            assert_memory_equal(bytes, again, n);
            guarded_free(again, n);
            bly_sketch_free(t);
            for (size_t len = 0; len < n; len++) {
                unsigned char *part = guarded_new(len);
                memcpy(part, bytes, len);
                assert_status(bly_sketch_load(part, len, NULL, &t),
                              BLY_EFORMAT);
                assert_null(t);
                guarded_free(part, len);
            }
            for (size_t bit = 0; bit < 8 * n; bit++) {
                bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
                assert_status(bly_sketch_load(bytes, n, NULL, &t), BLY_EFORMAT);
                bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            }
            guarded_free(bytes, n);
            bly_sketch_free(s);
        }
}

/* A sketch of six values, with word i of its components forged and the checksum
 * computed anew. */
static bly_status load_forged(bly_family family, unsigned i, uint64_t value)
{
    static const uint64_t x[] = { 3, 1, 4, 15, 92, 65 };
    bly_sketch *s = sketch_of(family, 21), *t = NULL;
    assert_ok(bly_sketch_add(s, x, COUNT_OF(x)));
    const size_t n = bly_sketch_written_bytes(s, 0);
    unsigned char *const bytes = guarded_new(n);
    assert_ok(bly_sketch_write(s, 0, bytes));
    bly_store64(bytes + 32 + 8 * (size_t)i, value);
    bly_store64(bytes + n - 8, bly_checksum(bytes, n - 8));
    const bly_status st = bly_sketch_load(bytes, n, NULL, &t);
    if (!st) {
        bly_resemblance r;
        assert_ok(bly_sketch_compare(s, t, &r));
    } else {
        assert_null(t);
        assert_non_null(strstr(bly_error(), "components that no text has"));
    }
    bly_sketch_free(t);
    bly_sketch_free(s);
    guarded_free(bytes, n);
    return st;
}

/* Whoever forges computes the checksum anew: components that no text has. */
static void forged_components(void **state)
{
    (void)state;
    assert_status(load_forged(BLY_LINEAR61, 20, BLY_P61), BLY_EFORMAT);
    assert_ok(load_forged(BLY_LINEAR61, 20, BLY_P61 - 1));
    assert_status(load_forged(BLY_FSS, 0, UINT64_C(42) << 54), BLY_EFORMAT);
    assert_ok(load_forged(BLY_FSS, 0, (UINT64_C(42) << 54) - 1));
    assert_status(load_forged(BLY_FSS, 20, BLY_BINS_EMPTY), BLY_EFORMAT);
    assert_status(load_forged(BLY_OPH, 20, UINT64_C(1) << 54), BLY_EFORMAT);
    assert_ok(load_forged(BLY_OPH, 20, (UINT64_C(1) << 54) - 1));

    /* None at all, though it says that there are some. */
    static const uint64_t x[] = { 3 };
    bly_sketch *s = sketch_of(BLY_OPH, 3), *t;
    unsigned char bytes[32 + 24 + 8];
    assert_ok(bly_sketch_add(s, x, 1));
    assert_ok(bly_sketch_write(s, 0, bytes));
    memset(bytes + 32, 0xff, 24);
    bly_store64(bytes + 56, bly_checksum(bytes, 56));
    assert_status(bly_sketch_load(bytes, sizeof bytes, NULL, &t), BLY_EFORMAT);

    /* Three components of 5 bits leave a bit of the second byte. */
    unsigned char few[32 + 2 + 8];
    assert_int_equal(bly_sketch_written_bytes(s, 5), sizeof few);
    assert_ok(bly_sketch_write(s, 5, few));
    few[33] |= 0x80;
    bly_store64(few + 34, bly_checksum(few, 34));
    assert_status(bly_sketch_load(few, sizeof few, NULL, &t), BLY_EFORMAT);

    ledger l;
    ledger_open(&l);
    l.fail_at = 0;
    assert_ok(bly_sketch_write(s, 0, bytes));
    assert_status(bly_sketch_load(bytes, sizeof bytes, &l.mem, &t), BLY_ENOMEM);
    assert_null(t);
    ledger_check(&l);

    /* Something is unlike nothing, whichever comes first. */
    bly_sketch *const empty = sketch_of(BLY_OPH, 3);
    bly_resemblance r;
    assert_ok(bly_sketch_compare(s, empty, &r));
    assert_true(r.jaccard == 0 && r.equal == 0);
    assert_ok(bly_sketch_compare(empty, s, &r));
    assert_true(r.jaccard == 0 && r.equal == 0);
    bly_sketch_free(empty);
    bly_sketch_free(s);

    bly_sketch_spec spec = { .shingling = { .size = 1000000 } };
    assert_status(bly_sketch_spec_check(&spec), BLY_EINVAL);
}

/* The head of a file of many sketches. */
static void specs_as_bytes(void **state)
{
    (void)state;
    bly_sketch_spec spec = { .shingling = { BLY_CHARS, 0, 77 },
                             .family = BLY_LINEAR61 },
                    back;
    unsigned char bytes[BLY_SKETCH_HEAD];
    assert_ok(bly_sketch_spec_check(&spec));
    assert_true(spec.k == 128 && spec.shingling.size == 10);
    bly_sketch_spec_write(&spec, bytes);
    assert_memory_equal(bytes,
                        "blyske\0\1\1\0\0\0\1\3\0\0\x0a\0\0\0\x80\0\0\0"
                        "M\0\0\0\0\0\0\0",
                        sizeof bytes);
    assert_ok(bly_sketch_spec_read(bytes, sizeof bytes, &back));
    assert_ok(bly_sketch_spec_fits(&spec, &back));
    assert_status(bly_sketch_spec_read(bytes, 31, &back), BLY_EFORMAT);
    static const struct {
        unsigned char at, value;
    } wrong[] = { { 0, 'B' }, { 7, 2 },  { 8, 2 },  { 12, 2 },
                  { 13, 4 },  { 14, 1 }, { 15, 1 }, { 15, 2 },
                  { 17, 5 },  { 16, 0 }, { 21, 3 }, { 20, 0 } };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const unsigned char was = bytes[wrong[i].at];
        bytes[wrong[i].at] = wrong[i].value;
        assert_status(bly_sketch_spec_read(bytes, sizeof bytes, &back),
                      BLY_EFORMAT);
        bytes[wrong[i].at] = was;
    }
}

/* Every row gives what the portable one gives. */
static void rows_agree(void **state)
{
    (void)state;
    static uint64_t x[1000], want[512], got[512];
    static uint32_t a[512], b[512], m[512], other[512];
    uint64_t random = 8;
    for (size_t i = 0; i < COUNT_OF(x); i++)
        x[i] = i % 10 ? test_random(&random) : -(uint64_t)(i % 3);
    for (size_t i = 0; i < COUNT_OF(a); i++) {
        a[i] = (uint32_t)test_random(&random);
        b[i] = (uint32_t)test_random(&random);
    }
    const bly_likeness_row *const last = LAST_ROW(likeness);
    EACH_ROW(likeness, r)
    {
        for (size_t n = 0; n <= COUNT_OF(x); n = n < 70 ? n + 1 : n * 2 + 3) {
            for (unsigned t = 1; t <= 512; t = t * 3 + 1)
                for (unsigned round = 0; round < 600; round += 199) {
                    memset(want, 0xff, sizeof want);
                    memset(got, 0xff, sizeof got);
                    last->bins(want, t, x, n, round);
                    r->bins(got, t, x, n, round);
                    assert_memory_equal(want, got, sizeof got);
                }
            for (size_t lanes = 0; lanes <= 512; lanes += 16) {
                memset(m, 0xff, sizeof m);
                memset(other, 0xff, sizeof other);
                last->minima(m, a, b, lanes, x, n);
                r->minima(other, a, b, lanes, x, n);
                assert_memory_equal(m, other, sizeof m);
            }
        }
    }
}

static void families_have_names(void **state)
{
    (void)state;
    unsigned f = 0;
    for (; bly_family_name(f); f++)
        assert_non_null(bly_family_help(f));
    assert_int_equal(f, BLY_FAMILY_COUNT_);
    assert_null(bly_family_help(f));
    assert_string_equal(bly_family_name(BLY_FSS), "fss");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_far_off_as_promised),
        cmocka_unit_test(deviations_are_not_too_small),
        cmocka_unit_test(fss_is_below_the_formula),
        cmocka_unit_test(short_texts),
        cmocka_unit_test(fss_as_defined),
        cmocka_unit_test(repeated_shingles_count_once),
        cmocka_unit_test(linear_maps_are_linear),
        cmocka_unit_test(merging_is_seeing_both),
        cmocka_unit_test(few_bits),
        cmocka_unit_test(nothing_is_like_nothing),
        cmocka_unit_test(what_differs_is_refused),
        cmocka_unit_test(bytes_from_outside),
        cmocka_unit_test(forged_components),
        cmocka_unit_test(specs_as_bytes),
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(families_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
