/*
 * compressed.c - a classic filter made to be sent
 *
 * For a filter that is sent over a network, what counts is its coded size, z
 * bits, and not its size in memory, m. An ideal coder shortens it to
 *
 *     z = m H(p)   with p = e^(-kn/m), the share of zeros
 *
 * The filter that is best in memory, p = 1/2, is the one that cannot be
 * shortened at all. With more memory and fewer probes the filter becomes
 * sparse, is coded to the same z, and has a lower rate f = (1 - p)^k [1]:
 *
 *     z/n    m/n   k   f            z/n    m/n   k   f
 *     8      8     6   0.021577     16     16    11  0.000458711
 *     7.923  14    2   0.017721     15.846 28    4   0.000314051
 *     7.923  92    1   0.010811     15.829 48    3   0.000222401
 *
 * The rate tends to f = 2^(-z/n) for k = 1 and unlimited memory. So memory
 * needs a limit: the option `memory` in bits per key, or else MOST_MEMORY times
 * the bits that are sent. Then for each k
 *
 *     given z    the m at which m H(e^(-kn/m)) = z, by bisection, since that
 *                rises with m, or the limit; and of all k the one of least f
 *     given f    the m at which (1 - e^(-kn/m))^k = f, where it is within the
 *                limit; and of all k the one of least z
 *
 * The size sent is close to the one planned: codec.c is within a percent of the
 * ideal coder. The filter itself is a classic one, with the same functions;
 * only its size is chosen differently, and its files are coded.
 *
 * [1] Mitzenmacher, Compressed Bloom Filters, 2002
 */
#include <math.h>

#include "core/status.h"
#include "kinds/classic.h"
#include "kinds/probe.h"

/* At 1 % a key then takes 8.9 bits sent and 19 in memory, at 0.1 % 13.4 and
 * 28.5: most of what there is to gain, for memory that nobody notices. */
#define MOST_MEMORY 4

/* `memory` is used for planning only and not kept: in the shape its place,
 * where classic has its layout, is 0. */
enum {
    COMPRESSED_BITS = BLY_CLASSIC_BITS,
    COMPRESSED_K = BLY_CLASSIC_K,
    COMPRESSED_MEMORY = BLY_CLASSIC_LAYOUT,
    COMPRESSED_SENT
};

static const bly_param compressed_params[] = {
    [COMPRESSED_BITS] = BLY_CLASSIC_BITS_PARAM,
    [COMPRESSED_K] = BLY_CLASSIC_K_PARAM,
    [COMPRESSED_MEMORY] = BLY_PARAM(
        "memory", BLY_REAL, .settable = true, .automatic = true,
        .planning = true, .min = 0.1, .max = (double)BLY_PROBE_MAX_CELLS,
        .help = "upper limit of bits per key in memory; by default four times "
                "what is sent"),
    [COMPRESSED_SENT] = BLY_PARAM(
        "sent_bits", BLY_UINT, .min = 1, .max = (double)BLY_PROBE_MAX_CELLS,
        .help = "bits that it takes when it is sent full"),
};

/* The bits sent for n keys, rounded to whole bits. */
static double compressed_sent(double n, double m, double k)
{
    return fmax(1, ceil(bly_sent_bits(n, m, k)));
}

/* The most bits of memory, from low to high, that are coded into no more than z
 * bits. low is assumed to be good enough. */
static double compressed_widest(double n, double k, double z, double low,
                                double high)
{
    if (compressed_sent(n, high, k) <= z)
        return high;
    /* The coded size grows with m, so bisection works. */
    while (high - low > 1) {
        const double mid = floor((low + high) / 2);
        if (compressed_sent(n, mid, k) <= z)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* The m and k with the lowest rate when z bits are sent. */
static bly_size compressed_for_bits(const bly_want *w, unsigned first,
                                    unsigned last)
{
    const double n = (double)w->items, z = (double)w->bits;
    const double most =
        fmin((double)BLY_PROBE_MAX_CELLS,
             fmax(1, floor(w->given[COMPRESSED_MEMORY]
                               ? n * bly_want_real(w, COMPRESSED_MEMORY)
                               : MOST_MEMORY * z)));
    bly_size best = { 0, 0 };
    double least = INFINITY;
    for (unsigned k = first; k <= last; k++) {
        /* Coding never makes a filter longer, so m = z is always good
         * enough. */
        const double m = compressed_widest(n, k, z, fmin(z, most), most);
        /* Compared by logarithms: rates below 1e-308 would all be 0. */
        const double rate = k * log(-expm1(-(double)k * n / m));
        if (rate < least && k <= m) {
            least = rate;
            best = (bly_size){ m, k };
        }
    }
    return best;
}

/* The k with which the fewest bits are sent at this rate; 0 where every k needs
 * more memory than allowed, and *need is then the least of those. */
static unsigned compressed_for_rate(const bly_want *w, unsigned first,
                                    unsigned last, double *need)
{
    unsigned best = 0;
    double least = INFINITY;
    *need = INFINITY;
    for (unsigned k = first; k <= last; k++) {
        /* Per key: c bits in memory keep the rate, and z of them are sent. A k
         * that was asked for may take what memory it needs. */
        const double c = -(double)k / log1p(-pow(w->fpr, 1.0 / k));
        const double z = bly_sent_bits(1, c, k);
        const double most = w->given[COMPRESSED_MEMORY]
                                ? bly_want_real(w, COMPRESSED_MEMORY)
                            : w->given[COMPRESSED_K] ? INFINITY
                                                     : MOST_MEMORY * z;
        *need = fmin(*need, c);
        if (c <= most && z < least) {
            least = z;
            best = k;
        }
    }
    return best;
}

/* The k of a half full filter, rounded up. With more probes the filter becomes
 * dense and can be shortened as well. But to gain there what two or three
 * probes gain here would take a hundred probes. */
static unsigned compressed_last_k(const bly_want *w)
{
    const double k = w->bits ? (double)w->bits / (double)w->items * log(2)
                             : log2(1 / w->fpr);
    return (unsigned)fmin(BLY_PROBE_MAX_K, fmax(1, ceil(k)));
}

static bly_status compressed_plan(const bly_want *w, bly_shape *out)
{
    const unsigned given = (unsigned)w->opt[COMPRESSED_K];
    const unsigned first = given ? given : 1;
    const unsigned last = given ? given : compressed_last_k(w);
    bly_size size;
    if (w->bits) {
        size = compressed_for_bits(w, first, last);
        if (!size.k)
            return bly_fail(BLY_EINVAL,
                            "k = %u probes need at least as many bits, and "
                            "there is memory for fewer",
                            first);
    } else {
        double need;
        const unsigned k = compressed_for_rate(w, first, last, &need);
        if (!k)
            return bly_fail(BLY_EINVAL,
                            "a rate of %g takes %.3g bits per key in memory at "
                            "least, and option memory allows %.3g",
                            w->fpr, need, bly_want_real(w, COMPRESSED_MEMORY));
        size.k = k;
    }
    const bly_status st =
        bly_probe_plan(&bly_kind_compressed, w, w->bits ? (uint64_t)size.m : 0,
                       size.k, false, 0, bly_probe_rate, &size);
    if (st)
        return st;
    const uint64_t m = (uint64_t)size.m;
    *out = (bly_shape){
        .p = { [COMPRESSED_BITS] = m,
               [COMPRESSED_K] = size.k,
               [COMPRESSED_SENT] = (uint64_t)compressed_sent((double)w->items,
                                                             size.m, size.k) },
        .nbytes = bly_classic_nbytes(m),
    };
    return BLY_OK;
}

static bool compressed_sane(const bly_shape *s)
{
    const uint64_t m = s->p[COMPRESSED_BITS];
    return bly_probe_sane(m, s->p[COMPRESSED_K]) && s->p[COMPRESSED_SENT] > 0 &&
           s->p[COMPRESSED_SENT] <= m && s->nbytes == bly_classic_nbytes(m);
}

static double compressed_rate(const bly_shape *s, double n)
{
    return bly_probe_rate(n, (double)s->p[COMPRESSED_BITS],
                          (unsigned)s->p[COMPRESSED_K]);
}

static uint64_t compressed_bits(const bly_shape *s)
{
    return s->p[COMPRESSED_SENT];
}

static void compressed_describe(const bly_shape *s, const bly_want *w,
                                const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    const double m = (double)s->p[COMPRESSED_BITS];
    bly_fact_real(out, "sent_bits_per_key", (double)s->p[COMPRESSED_SENT] / n);
    bly_fact_real(out, "memory_bits_per_key", m / n);
    bly_fact_real(out, "fill_at_capacity",
                  -expm1(-(double)s->p[COMPRESSED_K] * n / m));
}

const bly_kind bly_kind_compressed = {
    .id = 17, /* on disk: never changed, never reused */
    .name = "compressed",
    .summary = "a classic filter sized to be small when it is sent",
    .params = compressed_params,
    .nparams = sizeof compressed_params / sizeof compressed_params[0],
    .traits = BLY_CODED,
    .plan = compressed_plan,
    .sane = compressed_sane,
    .rate = compressed_rate,
    .bits = compressed_bits,
    .describe = compressed_describe,
    .check = bly_classic_check,
    .reach = BLY_SYSTEM(bly_classic_reach),
    .bitset = bly_classic_bitset,
    .stat = bly_bitset_stat,
    .one = bly_classic_one,
    .add = bly_classic_add,
    .add_shared = bly_classic_add_shared,
    .has = bly_classic_has,
    .fetch = BLY_SYSTEM(bly_classic_fetch),
    .merge = bly_bitset_merge,
    .merge_part = bly_bitset_merge_part,
    .intersect = bly_bitset_intersect,
    .intersect_part = bly_bitset_intersect_part,
    .compare = bly_bitset_compare,
    .raw = bly_bitset_raw,
};
