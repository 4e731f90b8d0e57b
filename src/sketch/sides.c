/*
 * sides.c - on which sides of random planes does a vector lie?
 *
 * h_r(z) = sign of <z, r> for random r: two vectors at an angle theta have
 * different signs with probability theta / pi, as long as no direction of r is
 * more likely than another [1]. That holds if the coordinates of r are
 * independent and normally distributed. With signs of +-1 instead, two vectors
 * of two coordinates have only two planes, up to sides, and an angle of 30
 * degrees between them may never be seen.
 *
 * A coordinate is the sum of four numbers from a table of 512, the means of a
 * normal variable in 512 ranges of equal probability; the outermost ones are
 * set so that the fourth moment is right. Four fields of a hash of (seed,
 * place, plane) choose them. The sum is a whole number below 2^18, so a float
 * holds it exactly and every machine has the same planes, without a library's
 * idea of a logarithm.
 *
 * A vector's length does not matter. If its largest coordinate is far from 1,
 * it is first multiplied by a power of two, so that no sum overflows; between
 * 2^-60 and 2^60 it is taken as it is.
 *
 * [1] Charikar, Similarity estimation techniques from rounding algorithms, 2002
 */
#include <math.h>
#include <string.h>

#include "core/bits.h"
#include "core/memory.h"
#include "core/sized.h"
#include "core/status.h"
#include "engine/planes.h"
#include "sketch/sketches.h"

#define DEFAULT_BITS 256

/* Vectors that pass by one panel before the next one comes: with 768
 * coordinates 295 KB, so that they stay in a second-level cache beside the 98
 * KB of the panel. A multiple of every row's tile. */
#define BATCH 96

/* Bits of the largest coordinate between which vectors are taken as they are:
 * 2^-60 and 2^60. */
#define PEAK_LEAST ((uint32_t)(127 - 60) << 23)
#define PEAK_MOST ((uint32_t)(127 + 60) << 23)
#define PEAK_INFINITE UINT32_C(0x7f800000)

/* Panels of BLY_PLANES_WIDE directions; each has the directions' first
 * coordinates, then their second ones. */
struct bly_planes {
    bly_mem mem;
    bly_planes_spec spec;
    bly_block block;
    float *panels;
};

/* Of the positive half, in units of 1/4096 of the deviation. */
static const int16_t normal_means[256] = {
    10,    30,    50,    70,    90,   110,  130,  150,  171,  191,  211,  231,
    251,   271,   291,   311,   331,  351,  371,  392,  412,  432,  452,  472,
    492,   513,   533,   553,   573,  594,  614,  634,  654,  675,  695,  716,
    736,   756,   777,   797,   818,  838,  858,  879,  900,  920,  941,  961,
    982,   1003,  1023,  1044,  1065, 1085, 1106, 1127, 1148, 1169, 1190, 1211,
    1232,  1253,  1274,  1295,  1316, 1337, 1358, 1379, 1400, 1422, 1443, 1464,
    1486,  1507,  1529,  1550,  1572, 1593, 1615, 1637, 1658, 1680, 1702, 1724,
    1746,  1768,  1790,  1812,  1834, 1856, 1879, 1901, 1923, 1946, 1968, 1991,
    2013,  2036,  2059,  2082,  2104, 2127, 2150, 2173, 2196, 2220, 2243, 2266,
    2290,  2313,  2337,  2360,  2384, 2408, 2432, 2456, 2480, 2504, 2528, 2552,
    2577,  2601,  2626,  2650,  2675, 2700, 2725, 2750, 2775, 2801, 2826, 2851,
    2877,  2903,  2929,  2955,  2981, 3007, 3033, 3060, 3086, 3113, 3140, 3167,
    3194,  3221,  3248,  3276,  3304, 3332, 3359, 3388, 3416, 3444, 3473, 3502,
    3531,  3560,  3589,  3619,  3649, 3679, 3709, 3739, 3770, 3800, 3831, 3862,
    3894,  3925,  3957,  3989,  4022, 4054, 4087, 4120, 4154, 4187, 4221, 4256,
    4290,  4325,  4360,  4396,  4431, 4468, 4504, 4541, 4578, 4616, 4654, 4692,
    4731,  4771,  4810,  4851,  4891, 4932, 4974, 5016, 5059, 5102, 5146, 5191,
    5236,  5281,  5328,  5375,  5423, 5471, 5520, 5571, 5622, 5673, 5726, 5780,
    5835,  5891,  5948,  6006,  6065, 6126, 6188, 6251, 6317, 6383, 6452, 6522,
    6594,  6669,  6745,  6824,  6906, 6990, 7078, 7169, 7264, 7363, 7466, 7574,
    7688,  7808,  7935,  8070,  8215, 8370, 8539, 8724, 8928, 9158, 9420, 9728,
    10104, 10593, 11310, 13226,
};

static float signed_mean(uint64_t field)
{
    const float x = (float)normal_means[field & 255];
    return field & 256 ? -x : x;
}

/* BLY_PLANES_WIDE directions from plane `first` on, at one place. */
static void directions_at(uint64_t seed, uint64_t place, unsigned first,
                          float *r)
{
    const uint64_t here =
        bly_mix64(seed ^ bly_mix64(place + UINT64_C(0x9e3779b97f4a7c15)));
    for (unsigned j = 0; j < BLY_PLANES_WIDE; j++) {
        const uint64_t h = bly_mix64(here + (first + j + UINT64_C(1)) *
                                                UINT64_C(0xd1342543de82ef95));
        r[j] = signed_mean(h) + signed_mean(h >> 16) + signed_mean(h >> 32) +
               signed_mean(h >> 48);
    }
}

static unsigned npanels(const bly_planes *p)
{
    return p->spec.nbits / BLY_PLANES_WIDE;
}

static const float *panel_at(const bly_planes *p, unsigned i)
{
    return p->panels + (size_t)i * (size_t)p->spec.dims * BLY_PLANES_WIDE;
}

bly_status bly_planes_new_sized(const bly_planes_spec *spec, bly_planes **out,
                                size_t size)
{
    bly_planes_spec own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    const uint32_t nbits = spec->nbits ? spec->nbits : DEFAULT_BITS;
    if (nbits % 64 || nbits > BLY_PLANES_MOST_BITS)
        return bly_fail(BLY_EINVAL,
                        "a sketch of %u bits: expected a multiple of 64, to %d",
                        nbits, BLY_PLANES_MOST_BITS);
    if (spec->dims > BLY_PLANES_MOST_DIMS)
        return bly_fail(BLY_EINVAL,
                        "vectors of %llu coordinates: dense ones have at most "
                        "%d; sketch them as sparse vectors",
                        (unsigned long long)spec->dims, BLY_PLANES_MOST_DIMS);
    if (spec->reserved)
        return bly_fail(BLY_EINVAL, "the reserved field of a spec is zero");
    const bly_mem *const mem = spec->mem ? spec->mem : &bly_mem_system;
    bly_planes *const p = bly_mem_zalloc(mem, sizeof *p);
    if (!p)
        return bly_fail(BLY_ENOMEM, "out of memory");
    p->mem = *mem;
    p->spec = *spec;
    p->spec.mem = NULL;
    p->spec.nbits = nbits;
    const bly_status st =
        bly_block_new(mem, spec->dims * nbits * sizeof *p->panels, &p->block);
    if (st) {
        bly_mem_release(mem, p, sizeof *p);
        return st;
    }
    p->panels = (float *)(void *)p->block.at;
    for (unsigned i = 0; i < npanels(p); i++)
        for (size_t k = 0; k < spec->dims; k++)
            directions_at(spec->seed, k, i * BLY_PLANES_WIDE,
                          p->panels +
                              (i * (size_t)spec->dims + k) * BLY_PLANES_WIDE);
    *out = p;
    return BLY_OK;
}

void bly_planes_free(bly_planes *p)
{
    if (!p)
        return;
    const bly_mem mem = p->mem;
    bly_block_free(&mem, &p->block);
    bly_mem_release(&mem, p, sizeof *p);
}

void bly_planes_spec_of_sized(const bly_planes *p, bly_planes_spec *out,
                              size_t size)
{
    BLY_GIVE(&p->spec, out, size);
}

/* ------------------------------------------------------------------- dense */

/* 2^-e for the exponent of the largest coordinate, which is a normal number
 * itself. */
static double scale_of(double peak)
{
    int e;
    frexp(peak, &e);
    return ldexp(1, e < -1000 ? 1000 : -e);
}

/* Why a vector has no direction. */
static bly_status no_direction(const bly_vectors *v, size_t i)
{
    const unsigned char *const at =
        (const unsigned char *)v->at + i * v->stride;
    for (size_t k = 0; k < v->dims; k++) {
        const double x = v->doubles
                             ? ((const double *)(const void *)at)[k]
                             : (double)((const float *)(const void *)at)[k];
        if (isnan(x) || isinf(x))
            return bly_fail(BLY_EINVAL,
                            "vector %zu: coordinate %zu is %s (both from 0 on)",
                            i, k, isnan(x) ? "not a number" : "infinite");
    }
    return bly_fail(BLY_EINVAL,
                    "vector %zu is zero, and so has no direction (from 0 on)",
                    i);
}

/* Doubles as floats, with the largest coordinate near 1; false if the vector
 * has no direction. */
static bool narrow(const double *x, size_t n, float *out)
{
    double peak = 0;
    for (size_t k = 0; k < n; k++) {
        if (!(fabs(x[k]) <= 1.7976931348623157e308))
            return false;
        peak = fabs(x[k]) > peak ? fabs(x[k]) : peak;
    }
    if (!(peak > 0))
        return false;
    const double scale = scale_of(peak);
    for (size_t k = 0; k < n; k++)
        out[k] = (float)(x[k] * scale);
    return true;
}

/* How vectors come to the tiles: where they stand, or in room for a batch. */
struct batch {
    const float *at;
    size_t stride; /* in floats */
    size_t n;
};

/* Vectors from `first` on, as many as have a direction. */
static struct batch batch_of(const bly_planes_row *row, const bly_vectors *v,
                             size_t first, float *room)
{
    const unsigned char *const at =
        (const unsigned char *)v->at + first * v->stride;
    const size_t most = v->n - first < BATCH ? v->n - first : BATCH;
    struct batch b = { (const float *)(const void *)at,
                       v->stride / sizeof(float), 0 };
    if (v->doubles)
        b = (struct batch){ room, v->dims, 0 };
    for (; b.n < most; b.n++) {
        const unsigned char *const from = at + b.n * v->stride;
        float *const to = room + b.n * v->dims;
        const float *const x = (const float *)(const void *)from;
        if (v->doubles) {
            if (!narrow((const double *)(const void *)from, v->dims, to))
                break;
            continue;
        }
        const uint32_t peak = row->peak(x, v->dims);
        if (peak >= PEAK_INFINITE || !peak)
            break;
        if (b.at != room && (peak < PEAK_LEAST || peak > PEAK_MOST)) {
            for (size_t i = 0; i < b.n; i++) /* those before: as they are */
                memcpy(room + i * v->dims, at + i * v->stride,
                       v->dims * sizeof *room);
            b.at = room;
            b.stride = v->dims;
        }
        if (b.at != room)
            continue;
        float top;
        memcpy(&top, &peak, sizeof top);
        const double scale =
            peak < PEAK_LEAST || peak > PEAK_MOST ? scale_of(top) : 1;
        for (size_t k = 0; k < v->dims; k++)
            to[k] = (float)(x[k] * scale);
    }
    return b;
}

static void put_signs(uint64_t *sides, unsigned panel, uint32_t signs)
{
    sides[panel / 2] |= (uint64_t)signs << panel % 2 * BLY_PLANES_WIDE;
}

static void batch_sides(const bly_planes *p, const bly_planes_row *row,
                        const struct batch *b, uint64_t *sides)
{
    const size_t nwords = p->spec.nbits / 64, dims = (size_t)p->spec.dims;
    uint32_t signs[BLY_PLANES_TALL];
    memset(sides, 0, b->n * nwords * sizeof *sides);
    for (unsigned i = 0; i < npanels(p); i++) {
        const float *const panel = panel_at(p, i);
        size_t v = 0;
        for (; v + row->tall <= b->n; v += row->tall) {
            row->tile(b->at + v * b->stride, b->stride, panel, dims, signs);
            for (unsigned j = 0; j < row->tall; j++)
                put_signs(sides + (v + j) * nwords, i, signs[j]);
        }
        for (; v < b->n; v++)
            put_signs(sides + v * nwords, i,
                      row->one(b->at + v * b->stride, panel, dims));
    }
}

bly_status bly_vectors_check(const bly_vectors *v, size_t dims)
{
    const size_t width = v->doubles ? sizeof(double) : sizeof(float);
    if (v->dims != dims || !dims)
        return bly_fail(BLY_EINVAL,
                        "vectors of %zu coordinates where %zu are expected",
                        v->dims, dims);
    if (v->stride && (v->stride % width || v->stride / width < dims))
        return bly_fail(BLY_EINVAL,
                        "a stride of %zu bytes: expected 0, or a multiple of "
                        "%zu from %zu on",
                        v->stride, width, dims * width);
    return v->n && !v->at ? bly_fail_null("vectors->at") : BLY_OK;
}

bly_status bly_planes_part(const bly_planes *p, const bly_vectors *vectors,
                           size_t from, size_t to, uint64_t *sides,
                           size_t *ndone)
{
    bly_vectors v = *vectors;
    size_t done = from;
    if (!v.stride)
        v.stride = v.dims * (v.doubles ? sizeof(double) : sizeof(float));
    v.n = to;
    const bly_planes_row *const row = bly_planes_best();
    const size_t nwords = p->spec.nbits / 64;
    const size_t most = to - from < BATCH ? to - from : BATCH;
    bly_block room;
    bly_status st =
        bly_block_new(&p->mem, (uint64_t)most * v.dims * sizeof(float), &room);
    while (!st && done < to) {
        const struct batch b =
            batch_of(row, &v, done, (float *)(void *)room.at);
        batch_sides(p, row, &b, sides + (done - from) * nwords);
        done += b.n;
        if (b.n < BATCH && done < to)
            st = no_direction(&v, done);
    }
    bly_block_free(&p->mem, &room);
    *ndone = done - from;
    return st;
}

bly_status bly_planes_sides(const bly_planes *p, const bly_vectors *vectors,
                            uint64_t *sides, size_t *ndone)
{
    size_t done = 0;
    bly_status st;
    if (ndone)
        *ndone = 0;
    if (!p || !vectors)
        return bly_fail_null("planes or vectors");
    if (!sides && vectors->n)
        return bly_fail_null("sides");
    st = bly_vectors_check(vectors, (size_t)p->spec.dims);
    if (!st && vectors->n)
        st = bly_planes_part(p, vectors, 0, vectors->n, sides, &done);
    if (ndone)
        *ndone = done;
    return st;
}

/* ------------------------------------------------------------------ sparse */

static bly_status sparse_peak(const bly_sparse *v, double *peak)
{
    *peak = v->values || !v->n ? 0 : 1;
    for (size_t i = 0; v->values && i < v->n; i++) {
        const double x = fabs(v->values[i]);
        if (isnan(x) || isinf(x))
            return bly_fail(BLY_EINVAL, "value %zu is %s (from 0 on)", i,
                            isnan(x) ? "not a number" : "infinite");
        *peak = x > *peak ? x : *peak;
    }
    return *peak > 0 ? BLY_OK
                     : bly_fail(BLY_EINVAL, "the vector is zero, and so has no "
                                            "direction");
}

bly_status bly_planes_sides_sparse(const bly_planes *p,
                                   const bly_sparse *vector, uint64_t *sides)
{
    float sums[BLY_PLANES_MOST_BITS] = { 0 }, r[BLY_PLANES_WIDE];
    double peak;
    if (!p || !vector || !sides)
        return bly_fail_null("planes, vector or sides");
    if (!vector->places && vector->n)
        return bly_fail_null("vector->places");
    const bly_status st = sparse_peak(vector, &peak);
    if (st)
        return st;
    const bly_planes_row *const row = bly_planes_best();
    const double scale = peak >= 0x1p-60 && peak <= 0x1p60 ? 1 : scale_of(peak);
    for (size_t i = 0; i < vector->n; i++) {
        const uint64_t place = vector->places[i];
        const float x = vector->values ? (float)(vector->values[i] * scale) : 1;
        for (unsigned j = 0; j < npanels(p); j++) {
            const float *at = r;
            if (place < p->spec.dims)
                at = panel_at(p, j) + (size_t)place * BLY_PLANES_WIDE;
            else
                directions_at(p->spec.seed, place, j * BLY_PLANES_WIDE, r);
            row->add(x, at, sums + (size_t)j * BLY_PLANES_WIDE);
        }
    }
    memset(sides, 0, p->spec.nbits / 8);
    for (unsigned j = 0; j < p->spec.nbits; j++)
        sides[j / 64] |= (uint64_t)(sums[j] >= 0) << j % 64;
    return BLY_OK;
}

/* ------------------------------------------------------------------ angles */

unsigned bly_sides_differ(const uint64_t *a, const uint64_t *b, unsigned nbits)
{
    return bly_planes_best()->differ(a, b, nbits / 64);
}

/* The deviation of no difference at all is not zero: it is taken as that of
 * half a bit. */
bly_angle bly_angle_of(unsigned differ, unsigned nbits)
{
    const double pi = 3.14159265358979323846;
    if (!nbits || differ > nbits)
        return (bly_angle){ NAN, NAN, NAN, NAN };
    const double m = nbits, q = (differ + 0.5) / (m + 1);
    const double angle = pi * differ / m, sd = pi * sqrt(q * (1 - q) / m);
    const double slope = sin(angle) * sd, bend = sd * sd / 2;
    return (bly_angle){ angle, sd, cos(angle),
                        sqrt(slope * slope + bend * bend) };
}
