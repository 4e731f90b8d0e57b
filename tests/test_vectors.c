/*
 * test_vectors.c - sketches of vectors, and neighbours among many
 *
 * Every row is held against the portable one, angles against their deviation,
 * and neighbours against comparing each with each.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/vectors.h>

#include "engine/planes.h"
#include "tests/support.h"

#define PI 3.14159265358979323846

/* Normally distributed: twelve shares less six. */
static double normal(uint64_t *random)
{
    double sum = -6;
    for (unsigned i = 0; i < 12; i++)
        sum += (double)(test_random(random) >> 11) * 0x1p-53;
    return sum;
}

static float *normals(size_t n, uint64_t seed)
{
    float *const x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)normal(&seed);
    return x;
}

static bly_planes *planes_of(size_t dims, unsigned nbits, uint64_t seed)
{
    bly_planes *p;
    const bly_planes_spec spec = { .dims = dims, .nbits = nbits, .seed = seed };
    assert_ok(bly_planes_new(&spec, &p));
    return p;
}

/* ------------------------------------------------------------------- rows */

static void rows_agree(void **unused)
{
    (void)unused;
    const bly_planes_row *const want =
        &bly_planes_rows[last_row(bly_planes_row_at)];
    EACH_ROW(planes, row)
    for (size_t n = 1; n < 70; n += n < 40 ? 1 : 13) {
        float *const x = normals(BLY_PLANES_TALL * (n + 3), n);
        float *const panel = normals(n * BLY_PLANES_WIDE, n + 1);
        float sums[2][BLY_PLANES_WIDE] = { { 0 } };
        double wide[2][70];
        uint64_t bits[2][70];
        uint32_t signs[BLY_PLANES_TALL];
        row->tile(x, n + 3, panel, n, signs);
        for (unsigned v = 0; v < row->tall; v++) {
            const float *const at = x + v * (n + 3);
            assert_int_equal(signs[v], want->one(at, panel, n));
            assert_int_equal(signs[v], row->one(at, panel, n));
            assert_true(row->dot(x, at, n) == want->dot(x, at, n));
        }
        row->add(x[0], panel, sums[0]);
        row->add(x[1], panel, sums[0]);
        want->add(x[0], panel, sums[1]);
        want->add(x[1], panel, sums[1]);
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
        x[n / 2] = -100;
        assert_int_equal(row->peak(x, n), 0x42c80000);
        x[n - 1] = -INFINITY;
        assert_int_equal(row->peak(x, n), 0x7f800000);
        for (size_t i = 0; i < n; i++) {
            wide[0][i] = x[i] / 3;
            wide[1][i] = panel[i] / 7;
            bits[0][i] = (uint64_t)(int64_t)(panel[i] * 1e9f);
            bits[1][i] = bits[0][i] << 3;
        }
        wide[0][n - 1] = 3;
        assert_true(row->dot_wide(wide[0], wide[1], n) ==
                    want->dot_wide(wide[0], wide[1], n));
        assert_int_equal(row->differ(bits[0], bits[1], n),
                         want->differ(bits[0], bits[1], n));
        free(x);
        free(panel);
    }
}

/* ------------------------------------------------------------------ angles */

/* Two vectors of two coordinates at 30 degrees, which signs of +-1 cannot tell
 * apart; others at any angle, in few dimensions and in many. */
static void angles_are_seen(void **unused)
{
    (void)unused;
    static const struct {
        size_t dims;
        double degrees;
    } rows[] = { { 2, 30 },  { 2, 10 },  { 2, 75 },   { 3, 120 },
                 { 17, 60 }, { 300, 5 }, { 768, 25 }, { 64, 180 } };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        const size_t dims = rows[r].dims;
        const double theta = rows[r].degrees * PI / 180;
        uint64_t sides[2][64];
        double differ = 0, bits = 0;
        for (uint64_t seed = 0; seed < 16; seed++) {
            bly_planes *const p = planes_of(dims, 4096, seed);
            float *const v = normals(2 * dims, seed + 99);
            double aa = 0, ab = 0, bb = 0;
            for (size_t k = 0; k < dims; k++) {
                aa += v[k] * v[k];
                ab += v[k] * v[dims + k];
            }
            for (size_t k = 0; k < dims; k++) {
                v[dims + k] -= (float)(ab / aa) * v[k];
                bb += v[dims + k] * v[dims + k];
            }
            for (size_t k = 0; k < dims; k++)
                v[dims + k] = (float)(cos(theta) * v[k] +
                                      sin(theta) * v[dims + k] * sqrt(aa / bb));
            const bly_vectors two = { .at = v, .n = 2, .dims = dims };
            assert_ok(bly_planes_sides(p, &two, sides[0], NULL));
            const unsigned d = bly_sides_differ(sides[0], sides[1], 4096);
            const bly_angle a = bly_angle_of(d, 4096);
            assert_true(fabs(a.angle - theta) <= 5 * a.sd);
            differ += d;
            bits += 4096;
            free(v);
            bly_planes_free(p);
        }
        /* Of all seeds together: four times as exact. */
        const double q = theta / PI;
        assert_true(fabs(differ / bits - q) <=
                    4.5 * sqrt(q * (1 - q) / bits) + 1e-9);
    }
}

/* In two dimensions all directions must be equally likely: the share of planes
 * between two vectors does not depend on where they stand. */
static void no_direction_is_preferred(void **unused)
{
    (void)unused;
    enum { STEPS = 36, BITS = 4096, SEEDS = 16 };
    float v[STEPS + 1][2];
    double differ[STEPS] = { 0 };
    uint64_t sides[(STEPS + 1) * BITS / 64];
    for (unsigned i = 0; i <= STEPS; i++) {
        v[i][0] = (float)cos(i * PI / STEPS);
        v[i][1] = (float)sin(i * PI / STEPS);
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        bly_planes *const p = planes_of(2, BITS, seed + 7);
        const bly_vectors all = { .at = v, .n = STEPS + 1, .dims = 2 };
        assert_ok(bly_planes_sides(p, &all, sides, NULL));
        for (unsigned i = 0; i < STEPS; i++)
            differ[i] += bly_sides_differ(sides + i * BITS / 64,
                                          sides + (i + 1) * BITS / 64, BITS);
        bly_planes_free(p);
    }
    double chi = 0;
    const double n = (double)BITS * SEEDS / STEPS; /* in each of 36 sectors */
    for (unsigned i = 0; i < STEPS; i++)
        chi += (differ[i] - n) * (differ[i] - n) / n;
    assert_true(chi < 80); /* 35 expected, deviation 8.4 */
}

static void angle_of_nothing(void **unused)
{
    (void)unused;
    assert_true(isnan(bly_angle_of(0, 0).angle));
    assert_true(isnan(bly_angle_of(65, 64).cosine));
    assert_true(bly_angle_of(0, 256).angle == 0);
    assert_true(bly_angle_of(0, 256).sd > 0);
    assert_true(fabs(bly_angle_of(64, 128).angle - PI / 2) < 1e-12);
    assert_true(fabs(bly_angle_of(64, 128).sd - PI / 2 / sqrt(128)) < 1e-3);
}

/* ---------------------------------------------------------------- one sketch
 */

/* Floats and doubles, packed and with gaps, any length, many and one by one,
 * sparse: one sketch. And more bits begin with fewer. */
static void forms_agree(void **unused)
{
    (void)unused;
    enum { N = 250, D = 37 };
    float *const x = normals((size_t)N * D, 5);
    float gaps[N][D + 3];
    double wide[N][D];
    static uint64_t want[N][8], got[N][8], few[N][2];
    bly_planes *const p = planes_of(D, 512, 3), *const q = planes_of(D, 128, 3);
    bly_planes *const none = planes_of(0, 512, 3);
    for (size_t i = 0; i < (size_t)N * D; i += 3)
        x[i] = 0;
    const bly_vectors v = { .at = x, .n = N, .dims = D };
    assert_ok(bly_planes_sides(p, &v, want[0], NULL));
    assert_ok(bly_planes_sides(q, &v, few[0], NULL));
    static const double scales[] = { 1, 0x1p100, 0x1p-120, 0x1p900, 0x1p-1000 };
    for (size_t s = 0; s < COUNT_OF(scales); s++) {
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < D; k++) {
                /* Some of the batch are far from 1, and some are not. */
                const double by = i % 100 > 10 ? scales[s] : 1;
                gaps[i][k] = (float)(x[i * D + k] * by);
                wide[i][k] = x[i * D + k] * by;
            }
        const bly_vectors doubles = {
            .at = wide, .n = N, .dims = D, .doubles = true
        };
        memset(got, 0, sizeof got);
        assert_ok(bly_planes_sides(p, &doubles, got[0], NULL));
        assert_memory_equal(got, want, sizeof got);
        const bly_vectors strided = {
            .at = gaps, .n = N, .dims = D, .stride = sizeof gaps[0]
        };
        if (s < 3) {
            memset(got, 0, sizeof got);
            assert_ok(bly_planes_sides(p, &strided, got[0], NULL));
            assert_memory_equal(got, want, sizeof got);
        }
        for (size_t i = 0; i < N; i++) {
            uint64_t places[D];
            double values[D];
            size_t n = 0;
            for (size_t k = 0; k < D; k++)
                if (x[i * D + k] != 0) {
                    places[n] = k;
                    values[n++] = wide[i][k];
                }
            const bly_sparse exact = { places, values, n };
            memset(got[0], 0, sizeof got[0]);
            assert_ok(
                bly_planes_sides_sparse(i % 2 ? p : none, &exact, got[0]));
            assert_memory_equal(got[0], want[i], sizeof got[0]);
        }
    }
    for (size_t i = 0; i < N; i++) {
        const bly_vectors one = { .at = x + i * D, .n = 1, .dims = D };
        assert_ok(bly_planes_sides(p, &one, got[0], NULL));
        assert_memory_equal(got[0], want[i], sizeof got[0]);
        assert_memory_equal(few[i], want[i], sizeof few[i]);
    }
    bly_planes_free(p);
    bly_planes_free(q);
    bly_planes_free(none);
    free(x);
}

/* Sketches are kept in files: they may never change. */
static void sketches_stay(void **unused)
{
    (void)unused;
    bly_planes *const p = planes_of(3, 128, 42);
    const float x[3] = { 1, -2, 0.5f };
    const uint64_t places[3] = { 0, 1, UINT64_MAX };
    const bly_vectors v = { .at = x, .n = 1, .dims = 3 };
    const bly_sparse set = { .places = places, .n = 3 };
    uint64_t sides[2];
    assert_ok(bly_planes_sides(p, &v, sides, NULL));
    assert_int_equal(sides[0], UINT64_C(0x51bbcc0dcbc42700));
    assert_int_equal(sides[1], UINT64_C(0x5eb6c3628b4eb638));
    assert_ok(bly_planes_sides_sparse(p, &set, sides));
    assert_int_equal(sides[0], UINT64_C(0x1e3e2f952f00dc1f));
    assert_int_equal(sides[1], UINT64_C(0x42fc1872acb4b1c2));
    bly_planes_free(p);
}

/* Sets by their elements' hashes: cos = |A and B| / sqrt(|A| |B|). */
static void sets_have_angles(void **unused)
{
    (void)unused;
    bly_planes *const p = planes_of(0, 4096, 1);
    uint64_t x[150], random = 8, sides[2][64];
    for (size_t i = 0; i < COUNT_OF(x); i++)
        x[i] = test_random(&random);
    const bly_sparse a = { .places = x, .n = 100 };
    const bly_sparse b = { .places = x + 50, .n = 100 };
    assert_ok(bly_planes_sides_sparse(p, &a, sides[0]));
    assert_ok(bly_planes_sides_sparse(p, &b, sides[1]));
    const bly_angle angle =
        bly_angle_of(bly_sides_differ(sides[0], sides[1], 4096), 4096);
    assert_true(fabs(angle.cosine - 0.5) < 4 * angle.cosine_sd);
    bly_planes_free(p);
}

/* --------------------------------------------------------------- bad vectors
 */

static void bad_vectors_are_named(void **unused)
{
    (void)unused;
    enum { N = 200, D = 5 };
    float *const x = normals((size_t)N * D, 1);
    static uint64_t sides[N];
    size_t done;
    bly_planes *const p = planes_of(D, 64, 0);
    bly_vectors v = { .at = x, .n = N, .dims = D };
    x[150 * D + 2] = NAN;
    assert_status(bly_planes_sides(p, &v, sides, &done), BLY_EINVAL);
    assert_int_equal(done, 150);
    assert_non_null(strstr(bly_error(), "vector 150: coordinate 2 is not a"));
    x[97 * D + 4] = -INFINITY;
    assert_status(bly_planes_sides(p, &v, sides, &done), BLY_EINVAL);
    assert_int_equal(done, 97);
    assert_non_null(strstr(bly_error(), "coordinate 4 is infinite"));
    memset(x, 0, D * sizeof *x);
    assert_status(bly_planes_sides(p, &v, sides, &done), BLY_EINVAL);
    assert_int_equal(done, 0);
    assert_non_null(strstr(bly_error(), "vector 0 is zero"));
    v.dims = D - 1;
    assert_status(bly_planes_sides(p, &v, sides, &done), BLY_EINVAL);
    v = (bly_vectors){ .at = x, .n = 1, .dims = D, .stride = D * 4 - 1 };
    assert_status(bly_planes_sides(p, &v, sides, &done), BLY_EINVAL);
    v.stride = D * 4 - 4;
    assert_status(bly_planes_sides(p, &v, sides, &done), BLY_EINVAL);
    v.n = 0;
    v.stride = 0;
    v.at = NULL;
    assert_ok(bly_planes_sides(p, &v, NULL, &done));
    const uint64_t place = 1;
    const double zero = 0, nan = NAN;
    assert_status(
        bly_planes_sides_sparse(p, &(bly_sparse){ &place, &zero, 1 }, sides),
        BLY_EINVAL);
    assert_status(
        bly_planes_sides_sparse(p, &(bly_sparse){ &place, &nan, 1 }, sides),
        BLY_EINVAL);
    assert_status(bly_planes_sides_sparse(p, &(bly_sparse){ 0 }, sides),
                  BLY_EINVAL);
    bly_planes_free(p);
    free(x);
}

static void bad_specs_are_refused(void **unused)
{
    (void)unused;
    static const bly_planes_spec bad[] = { { .nbits = 63 },
                                           { .nbits = 4160 },
                                           { .nbits = 100 },
                                           { .reserved = 1 },
                                           { .dims = 65537 } };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bly_planes *p = (void *)&p;
        assert_status(bly_planes_new(&bad[i], &p), BLY_EINVAL);
        assert_null(p);
    }
    bly_planes *const p = planes_of(7, 0, 9);
    bly_planes_spec spec;
    bly_planes_spec_of(p, &spec);
    assert_int_equal(spec.nbits, 256);
    assert_int_equal(spec.dims, 7);
    bly_planes_free(p);
}

/* -------------------------------------------------------------- neighbours */

struct list {
    bly_near_pair *at;
    size_t n;
};

static bly_status list_put(const bly_near_pair *pairs, size_t n, void *ctx)
{
    struct list *const l = ctx;
    bly_near_pair *const at = realloc(l->at, (l->n + n) * sizeof *at);
    assert_non_null(at);
    memcpy(at + l->n, pairs, n * sizeof *at);
    l->at = at;
    l->n += n;
    return BLY_OK;
}

#define NEAR_N 3000
#define NEAR_D 24

/* Vectors of which every fifth is near an earlier one, with cosines about the
 * threshold. `cone`: all of them lean to one side, as embeddings do. */
static float *planted(size_t n, double cone)
{
    float *const x = normals(n * NEAR_D, 11);
    uint64_t random = 12;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < NEAR_D; k++)
            x[i * NEAR_D + k] += (float)cone;
    for (size_t i = 5; i < n; i += 5) {
        const size_t from = test_random(&random) % i;
        const double far = (double)(test_random(&random) % 1000) / 1400;
        for (size_t k = 0; k < NEAR_D; k++)
            x[i * NEAR_D + k] =
                (float)(x[from * NEAR_D + k] + far * normal(&random));
    }
    return x;
}

/* All pairs by comparing each with each; ascending. */
static struct list by_force(const float *x, size_t n, double threshold)
{
    struct list l = { 0 };
    size_t room = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const double c = bly_cosine(x + i * NEAR_D, x + j * NEAR_D, NEAR_D);
            if (c < threshold)
                continue;
            if (l.n == room) {
                room = 2 * room + 100;
                l.at = realloc(l.at, room * sizeof *l.at);
                assert_non_null(l.at);
            }
            l.at[l.n++] = (bly_near_pair){ i, j, c };
        }
    return l;
}

static void pairs_are_found(void **unused)
{
    (void)unused;
    static const struct {
        double threshold, cone;
    } rows[] = { { 0.95, 0 }, { 0.9, 0.5 }, { 0.99, 1 } };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        const double t = rows[r].threshold;
        float *const x = planted(NEAR_N, rows[r].cone);
        const bly_vectors v = { .at = x, .n = NEAR_N, .dims = NEAR_D };
        struct list want = by_force(x, NEAR_N, t), got = { 0 };
        bly_near_spec spec = { .threshold = t, .nthreads = 3 };
        bly_near_stats stats;
        assert_ok(bly_near_pairs(&v, &spec, list_put, &got, &stats));
        assert_int_equal(stats.nfound, got.n);
        assert_true(stats.bands > 0 && stats.recall >= 0.995);
        assert_true(want.n > 100);
        /* Nothing that is not there, in order, with the same cosines. */
        size_t at = 0;
        for (size_t i = 0; i < got.n; i++) {
            while (at < want.n && (want.at[at].a != got.at[i].a ||
                                   want.at[at].b != got.at[i].b))
                at++;
            assert_true(at < want.n);
            assert_true(fabs(want.at[at].cosine - got.at[i].cosine) < 1e-12);
        }
        /* More than 0.995 are expected, all lying above the threshold. */
        assert_true((double)got.n >= 0.99 * (double)want.n);
        /* The number of threads does not matter. */
        struct list again = { 0 };
        spec.nthreads = 1;
        assert_ok(bly_near_pairs(&v, &spec, list_put, &again, &stats));
        assert_int_equal(again.n, got.n);
        assert_memory_equal(again.at, got.at, got.n * sizeof *got.at);
        free(want.at);
        free(got.at);
        free(again.at);
        free(x);
    }
}

static void few_are_all_compared(void **unused)
{
    (void)unused;
    float *const x = planted(60, 0);
    const bly_vectors v = { .at = x, .n = 60, .dims = NEAR_D };
    const bly_near_spec spec = { .threshold = 0.3 };
    struct list want = by_force(x, 60, 0.3), got = { 0 };
    bly_near_stats stats;
    assert_ok(bly_near_pairs(&v, &spec, list_put, &got, &stats));
    assert_int_equal(stats.bands, 0);
    assert_true(stats.recall == 1);
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.at, want.at, want.n * sizeof *want.at);
    free(want.at);
    free(got.at);
    free(x);
}

static void dedup_leaves_no_pair(void **unused)
{
    (void)unused;
    float *const x = planted(NEAR_N, 0.3);
    static uint64_t witness[NEAR_N];
    static double cosines[NEAR_N];
    for (size_t i = 100; i < 1000; i++) /* a crowd, and a copy of a copy */
        for (size_t k = 0; k < NEAR_D; k++)
            x[i * NEAR_D + k] =
                x[99 * NEAR_D + k] * (1 + (float)((i * k) % 7) / 100);
    memcpy(x + 2900 * NEAR_D, x + 999 * NEAR_D, NEAR_D * sizeof *x);
    for (size_t n = 300; n <= NEAR_N; n += NEAR_N - 300) {
        const bly_near_spec spec = { .threshold = 0.95 };
        const bly_vectors part = { .at = x, .n = n, .dims = NEAR_D };
        bly_near_stats stats;
        assert_ok(bly_near_dedup(&part, &spec, witness, cosines, &stats));
        struct list want = by_force(x, n, 0.95);
        size_t missed = 0, gone = 0;
        for (size_t i = 0; i < want.n; i++)
            missed += witness[want.at[i].a] == want.at[i].a &&
                      witness[want.at[i].b] == want.at[i].b;
        for (size_t i = 0; i < n; i++) {
            gone += witness[i] != i;
            assert_true(witness[i] <= i);
            assert_int_equal(witness[witness[i]], witness[i]);
            if (witness[i] != i)
                assert_true(fabs(cosines[i] -
                                 bly_cosine(x + i * NEAR_D,
                                            x + witness[i] * NEAR_D, NEAR_D)) <
                                1e-12 &&
                            cosines[i] >= 0.95 - 1e-12);
        }
        assert_int_equal(gone, stats.nfound);
        assert_true((double)missed <= 0.005 * (double)want.n);
        free(want.at);
    }
    free(x);
}

static void neighbours_of_queries(void **unused)
{
    (void)unused;
    float *const x = planted(NEAR_N, 0);
    double *const wide = malloc(NEAR_N * NEAR_D * sizeof *wide);
    for (size_t i = 0; i < (size_t)NEAR_N * NEAR_D; i++)
        wide[i] = x[i];
    for (unsigned pass = 0; pass < 2; pass++) {
        const size_t width = pass ? sizeof *wide : sizeof *x;
        const unsigned char *const at =
            pass ? (const unsigned char *)wide : (const unsigned char *)x;
        const bly_vectors v = {
            .at = at, .n = NEAR_N, .dims = NEAR_D, .doubles = pass
        };
        const bly_vectors q = { .at = at + 5 * NEAR_D * width,
                                .n = 100,
                                .dims = NEAR_D,
                                .stride = 5 * NEAR_D * width,
                                .doubles = pass };
        bly_near_spec spec = { .threshold = 0.95, .most = pass };
        struct list got = { 0 };
        assert_ok(bly_near_of(&v, &q, &spec, list_put, &got, NULL));
        size_t i = 0, found = 0, want = 0;
        for (size_t a = 0; a < 100; a++) {
            const size_t first = i;
            for (; i < got.n && got.at[i].a == a; i++) {
                if (i > first)
                    assert_true(got.at[i - 1].cosine >= got.at[i].cosine);
                assert_true(got.at[i].cosine >= 0.95 - 1e-12);
                found++;
            }
            assert_true(i > first); /* itself */
            assert_int_equal(got.at[first].b, 5 * (a + 1));
            if (pass)
                assert_int_equal(i, first + 1);
            for (size_t b = 0; b < NEAR_N; b++)
                want += bly_cosine(x + 5 * (a + 1) * NEAR_D, x + b * NEAR_D,
                                   NEAR_D) >= 0.95;
        }
        assert_int_equal(i, got.n);
        if (!pass)
            assert_true((double)found >= 0.98 * (double)want);
        free(got.at);
    }
    free(wide);
    free(x);
}

/* Equal vectors are one, unless each pair is wanted. */
static void equal_vectors_stand_for_each_other(void **unused)
{
    (void)unused;
    float *const x = normals(40 * NEAR_D, 3);
    for (size_t i = 10; i < 20; i++)
        memcpy(x + i * NEAR_D, x + 5 * NEAR_D, NEAR_D * sizeof *x);
    const bly_vectors v = { .at = x, .n = 40, .dims = NEAR_D };
    bly_near_spec spec = { .threshold = 1 };
    struct list got = { 0 };
    bly_near_stats stats;
    assert_ok(bly_near_pairs(&v, &spec, list_put, &got, &stats));
    assert_int_equal(got.n, 10);
    assert_int_equal(stats.nequal, 10);
    for (size_t i = 0; i < 10; i++)
        assert_true(got.at[i].a == 5 && got.at[i].b == 10 + i);
    got.n = 0;
    spec.flags = BLY_NEAR_ALL;
    assert_ok(bly_near_pairs(&v, &spec, list_put, &got, &stats));
    assert_int_equal(got.n, 55);
    free(got.at);
    free(x);
}

static void bad_ones_are_skipped(void **unused)
{
    (void)unused;
    enum { N = 3000 };
    float *const x = normals((size_t)N * NEAR_D, 4);
    static uint64_t witness[N];
    memset(x + 7 * NEAR_D, 0, NEAR_D * sizeof *x);
    x[1700 * NEAR_D + 3] = NAN;
    x[1701 * NEAR_D + 3] = INFINITY;
    memcpy(x + 2999 * NEAR_D, x, NEAR_D * sizeof *x);
    const bly_vectors v = { .at = x, .n = N, .dims = NEAR_D };
    bly_near_spec spec = { .threshold = 0.99, .nthreads = 4 };
    struct list got = { 0 };
    bly_near_stats stats;
    assert_status(bly_near_pairs(&v, &spec, list_put, &got, &stats),
                  BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "vector 7 is zero"));
    spec.flags = BLY_NEAR_SKIP;
    assert_ok(bly_near_pairs(&v, &spec, list_put, &got, &stats));
    assert_int_equal(stats.nbad, 3);
    assert_int_equal(got.n, 1);
    assert_ok(bly_near_dedup(&v, &spec, witness, NULL, &stats));
    assert_int_equal(witness[7], 7);
    assert_int_equal(witness[2999], 0);
    assert_int_equal(stats.nfound, 1);
    free(got.at);
    free(x);
    const float zero[2] = { 0, 0 }, one[2] = { 1, 0 };
    const bly_vectors some = { .at = one, .n = 1, .dims = 2 };
    const bly_vectors none = { .at = zero, .n = 1, .dims = 2 };
    spec.flags = 0;
    assert_status(bly_near_of(&some, &none, &spec, list_put, &got, NULL),
                  BLY_EINVAL);
    assert_string_equal(bly_error(), "queries: vector 0 is zero, and so has no "
                                     "direction (from 0 on)");
    const double far[4] = { 1e200, 1, 1e-200, 0 };
    const bly_vectors two = { .at = far, .n = 2, .dims = 2, .doubles = true };
    assert_status(bly_near_pairs(&two, &spec, list_put, &got, NULL),
                  BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "vector 0 is too long"));
}

static bly_status refuse_put(const bly_near_pair *pairs, size_t n, void *ctx)
{
    (void)pairs;
    (void)n;
    (void)ctx;
    return BLY_EIO;
}

static void bad_searches_are_refused(void **unused)
{
    (void)unused;
    float x[4] = { 1, 0, 1, 0 };
    const bly_vectors v = { .at = x, .n = 2, .dims = 2 };
    static const bly_near_spec bad[] = { { .threshold = 1.5 },
                                         { .threshold = -1 },
                                         { .threshold = NAN },
                                         { .recall = 1 },
                                         { .recall = -1 },
                                         { .flags = 4 },
                                         { .threshold = 1e-9,
                                           .recall = 0.9999 } };
    struct list none = { 0 };
    for (size_t i = 0; i + 1 < COUNT_OF(bad); i++)
        assert_status(bly_near_pairs(&v, &bad[i], list_put, &none, NULL),
                      BLY_EINVAL);
    const bly_near_spec spec = { 0 };
    assert_status(bly_near_pairs(&v, &spec, refuse_put, NULL, NULL), BLY_EIO);
    const bly_vectors other = { .at = x, .n = 1, .dims = 3 };
    assert_status(bly_near_of(&v, &other, &spec, list_put, &none, NULL),
                  BLY_EINVAL);
    const bly_vectors empty = { .dims = 3 };
    assert_ok(bly_near_pairs(&empty, &spec, list_put, &none, NULL));
    assert_int_equal(none.n, 0);
    assert_true(isnan(bly_cosine(x + 1, x, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(angles_are_seen),
        cmocka_unit_test(no_direction_is_preferred),
        cmocka_unit_test(angle_of_nothing),
        cmocka_unit_test(forms_agree),
        cmocka_unit_test(sketches_stay),
        cmocka_unit_test(sets_have_angles),
        cmocka_unit_test(bad_vectors_are_named),
        cmocka_unit_test(bad_specs_are_refused),
        cmocka_unit_test(pairs_are_found),
        cmocka_unit_test(few_are_all_compared),
        cmocka_unit_test(dedup_leaves_no_pair),
        cmocka_unit_test(neighbours_of_queries),
        cmocka_unit_test(equal_vectors_stand_for_each_other),
        cmocka_unit_test(bad_ones_are_skipped),
        cmocka_unit_test(bad_searches_are_refused),
    };
    return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
