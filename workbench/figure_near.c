/*
 * figure_near.c - how alike two sets are, by sketches
 *
 * Sets are random: of m hashes the first J m are in both, the others in one of
 * them, in turn. Words of bits differ in as many random places as are wanted,
 * and vectors are turned by an angle.
 */
#include <math.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "base/random.h"
#include "report/say.h"
#include "workbench/figure.h"

#define NEAR_MOST 1024 /* hashes of both sets */

struct near_pair {
    bly_sketch *sketch;
    unsigned k;
    uint32_t a[BLY_MAX_COMPONENTS], b[BLY_MAX_COMPONENTS];
};

static bool near_open(struct figure_run *run, struct near_pair *p, unsigned k,
                      unsigned family)
{
    const bly_sketch_spec spec = { .k = k, .family = (bly_family)family };
    p->k = k;
    run->broken = bly_sketch_new(&spec, &p->sketch) != BLY_OK;
    if (run->broken)
        fail_library();
    return !run->broken;
}

/* Sketch two fresh sets of m hashes together, of which `both` are in both. */
static void near_draw(struct near_pair *p, unsigned m, unsigned both,
                      uint64_t *random)
{
    uint64_t x[2][NEAR_MOST];
    size_t n[2] = { 0, 0 };
    for (unsigned i = 0; i < m; i++) {
        const uint64_t h = random_next(random);
        for (unsigned side = 0; side < 2; side++)
            if (i < both || i % 2 == side)
                x[side][n[side]++] = h;
    }
    for (unsigned side = 0; side < 2; side++) {
        bly_sketch_clear(p->sketch);
        (void)!bly_sketch_add(p->sketch, x[side], n[side]);
        (void)bly_sketch_components(p->sketch, side ? p->b : p->a);
    }
}

/* ------------------------------------------------------------------ banding */

static bool near_meets(const struct near_pair *p, bly_bands bands)
{
    uint64_t x[BLY_MAX_COMPONENTS], y[BLY_MAX_COMPONENTS];
    bly_bands_keys(bands, p->a, x);
    bly_bands_keys(bands, p->b, y);
    for (unsigned i = 0; i < bands.bands; i++)
        if (x[i] == y[i])
            return true;
    return false;
}

static void near_run(struct figure_run *run)
{
    static const bly_bands bands[] = { { 9, 13 }, { 21, 6 }, { 25, 4 } };
    const unsigned npairs = run->full ? 5000 : 1000, m = 1000;
    uint64_t random = run->seed;
    struct near_pair p = { 0 };
    run->x = AXIS(.label = "likeness", .unit = "J");
    run->y = AXIS(.label = "share of pairs that meet in a band",
                  .format = PLOT_PERCENT);
    if (!near_open(run, &p, 128, BLY_LINEAR32))
        return;
    for (size_t i = 0; i < sizeof bands / sizeof *bands; i++) {
        struct figure_series *s =
            figure_series(run, "%u bands of %u", bands[i].bands, bands[i].rows);
        for (unsigned both = 300; both <= 950; both += 50) {
            const double j = (double)both / m;
            const double chance = bly_bands_chance(bands[i], j);
            unsigned met = 0;
            for (unsigned n = 0; n < npairs; n++) {
                near_draw(&p, m, both, &random);
                met += near_meets(&p, bands[i]);
            }
            figure_judge(run, s, j, chance, (double)met / npairs,
                         sqrt((chance * (1 - chance) + 1.0 / npairs) / npairs));
        }
    }
    bly_sketch_free(p.sketch);
}

const struct figure figure_near = {
    .name = "near",
    .title = "Pairs that banding finds",
    .source = "1 - (1 - J^r)^b, for 128 components in b bands of r.",
    .about = "Pairs of random sets, sketched with linear maps. Of pairs at "
             "0.8, 21 bands of 6 find 998 in 1000; 9 bands of 13, which "
             "minimise the total error, find four in ten.",
    .run = near_run,
};

/* ------------------------------------------------------------ three measures
 */

#define NEAR_BITS 1024
#define NEAR_SAMPLED 64
#define NEAR_DIMS 16
#define NEAR_PLANES 256

/* Of sampled bits, the share that agrees, if d of all differ. */
static double near_hamming(unsigned d, uint64_t *random)
{
    unsigned char a[NEAR_BITS / 8], b[NEAR_BITS / 8];
    unsigned places[NEAR_BITS];
    const uint64_t seed = random_next(random);
    for (size_t i = 0; i < sizeof a; i++)
        a[i] = b[i] = (unsigned char)random_next(random);
    for (unsigned i = 0; i < NEAR_BITS; i++)
        places[i] = i;
    for (unsigned i = 0; i < d; i++) {
        const unsigned j =
            i + (unsigned)(random_next(random) % (NEAR_BITS - i));
        const unsigned place = places[j];
        places[j] = places[i];
        b[place / 8] ^= (unsigned char)(1u << place % 8);
    }
    const uint64_t x = bly_sample_bits(a, NEAR_BITS, seed, NEAR_SAMPLED);
    const uint64_t y = bly_sample_bits(b, NEAR_BITS, seed, NEAR_SAMPLED);
    return 1 - (double)bly_hamming(x, y) / NEAR_SAMPLED;
}

/* Of the sides of planes, the share that agrees for two vectors at an angle;
 * -1: no memory. */
static double near_angle(double angle, uint64_t *random)
{
    double v[2][NEAR_DIMS];
    uint64_t sides[2][NEAR_PLANES / 64];
    bly_planes *planes;
    const bly_planes_spec spec = { .dims = NEAR_DIMS,
                                   .nbits = NEAR_PLANES,
                                   .seed = random_next(random) };
    const bly_vectors both = {
        .at = v, .n = 2, .dims = NEAR_DIMS, .doubles = true
    };
    double aa = 0, ab = 0, bb = 0;
    for (unsigned k = 0; k < NEAR_DIMS; k++) {
        v[0][k] = random_share(random) - 0.5;
        v[1][k] = random_share(random) - 0.5;
        aa += v[0][k] * v[0][k];
        ab += v[0][k] * v[1][k];
    }
    for (unsigned k = 0; k < NEAR_DIMS; k++) { /* at a right angle */
        v[1][k] -= ab / aa * v[0][k];
        bb += v[1][k] * v[1][k];
    }
    for (unsigned k = 0; k < NEAR_DIMS; k++)
        v[1][k] = cos(angle) * v[0][k] + sin(angle) * sqrt(aa / bb) * v[1][k];
    if (bly_planes_new(&spec, &planes))
        return -1;
    const bly_status st = bly_planes_sides(planes, &both, sides[0], NULL);
    bly_planes_free(planes);
    return st ? -1
              : 1 - (double)bly_sides_differ(sides[0], sides[1], NEAR_PLANES) /
                        NEAR_PLANES;
}

static void near_measures_run(struct figure_run *run)
{
    const double pi = 3.14159265358979323846;
    const unsigned npairs = run->full ? 2000 : 400, m = 1000;
    uint64_t random = run->seed;
    struct near_pair p = { 0 };
    run->x = AXIS(.label = "likeness: J, 1 - d/n, 1 - angle/pi");
    run->y = AXIS(.label = "hashes that agree", .format = PLOT_PERCENT);
    struct figure_series *hamming = figure_series(run, "Hamming, sampled bits");
    struct figure_series *jaccard = figure_series(run, "Jaccard, minima");
    struct figure_series *angles = figure_series(run, "angle, sides of planes");
    if (!near_open(run, &p, 128, BLY_LINEAR32))
        return;
    for (unsigned percent = 10; percent < 100 && !run->broken; percent += 10) {
        const double s = percent / 100.0;
        const unsigned d = (unsigned)lround((1 - s) * NEAR_BITS);
        const double h = 1 - (double)d / NEAR_BITS;
        double sums[3] = { 0 };
        for (unsigned n = 0; n < npairs && !run->broken; n++) {
            near_draw(&p, m, 10 * percent, &random);
            sums[0] += near_hamming(d, &random);
            sums[1] += bly_components_equal(p.a, p.b, p.k) / (double)p.k;
            const double a = near_angle(pi * (1 - s), &random);
            sums[2] += a;
            run->broken = a < 0;
        }
        figure_judge(run, hamming, h, h, sums[0] / npairs,
                     sqrt(h * (1 - h) / NEAR_SAMPLED / npairs));
        figure_judge(run, jaccard, s, s, sums[1] / npairs,
                     sqrt(s * (1 - s) / p.k / npairs) + 0.0005);
        figure_judge(run, angles, s, s, sums[2] / npairs,
                     sqrt(s * (1 - s) / NEAR_PLANES / npairs));
    }
    if (run->broken)
        fail_library();
    bly_sketch_free(p.sketch);
}

const struct figure figure_near_measures = {
    .name = "near-measures",
    .title = "Hashes that keep likeness, for three measures",
    .source = "Indyk and Motwani 1998, Broder 1997, Charikar 2002.",
    .about = "The share of hashes that agree is the likeness itself: for "
             "words of bits, by their Hamming distance d of n; for sets, by "
             "the Jaccard coefficient J; for vectors, by the angle between "
             "them. 64 sampled bits, 128 minima, the sides of 256 planes.",
    .run = near_measures_run,
};

/* ----------------------------------------------------------------- families */

static void near_families_run(struct figure_run *run)
{
    static const unsigned families[] = { BLY_FSS, BLY_OPH, BLY_LINEAR32 };
    static const unsigned sizes[] = { 64, 128, 256 };
    const unsigned npairs = run->full ? 5000 : 1000, m = 300;
    uint64_t random = run->seed;
    run->x = AXIS(.label = "components", .unit = "k");
    run->y = AXIS(.label = "error of the estimate");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct figure_series *error =
            figure_series(run, "%s", bly_family_name(families[i]));
        struct figure_series *mean =
            figure_series(run, "%s, mean", bly_family_name(families[i]));
        mean->unseen = true;
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const double j = 0.8, sd = sqrt(j * (1 - j) / sizes[k]);
            struct near_pair p = { 0 };
            double sum = 0, squares = 0;
            if (!near_open(run, &p, sizes[k], families[i]))
                return;
            for (unsigned n = 0; n < npairs; n++) {
                near_draw(&p, m, 240, &random);
                const double e =
                    bly_components_equal(p.a, p.b, p.k) / (double)p.k - j;
                sum += e;
                squares += e * e;
            }
            bly_sketch_free(p.sketch);
            /* fss samples without putting back, and so is below the formula;
             * the others stray from it as a deviation of npairs values does. */
            const double high = sd * (1 + 4 / sqrt(2.0 * npairs));
            figure_point(run, error, sizes[k], sd, sqrt(squares / npairs),
                         sd / 2, high);
            figure_judge(run, mean, sizes[k], j, j + sum / npairs,
                         sd / sqrt(npairs) + 0.0005);
        }
    }
}

const struct figure figure_near_families = {
    .name = "near-families",
    .title = "The error of sketches, at J = 0.8",
    .source = "sqrt(J (1 - J) / k), for sets of 270 of 300 hashes.",
    .about = "Root mean square error of the share of components that agree. "
             "fss is below the formula, since most of its bins sample one "
             "order without replacement.",
    .run = near_families_run,
};
