/*
 * minhash.c - sketches of sets: how much two sets share, from k components
 *
 * Under a random order of all shingles the first of A and the first of B are
 * the same with probability J = |A and B| / |A or B| [1]. k orders, k first
 * ones: the share of them that agree estimates J with deviation
 * sqrt(J (1-J) / k), 0.035 at J = 0.8 and k = 128. Every shingle takes part,
 * and one that comes again changes nothing. Families differ in the orders:
 *
 *     linear     component i = min over x of a_i x + b_i mod 2^32, a_i odd, x
 *                the high half of the hash; k steps a shingle
 *     linear61   the same mod the prime 2^61 - 1, 1 <= a_i < p
 *     fss        t = k bins, rounds i = 0, 1, ..., 2t - 1 until no bin is empty
 *                [2]: g = mix(x + (i+1) G); x goes to bin t g / 2^64, in rounds
 *                from t on to bin i - t; the bin keeps the least of
 *                i 2^54 + (g G >> 10)
 *     oph        round 0 of that alone; an empty bin copies the first that is
 *                not among those that its number is hashed to [3]
 *
 * A round of fss costs one step a shingle whatever k is, and texts much longer
 * than k need one. Earlier rounds always win, so a sketch of parts is the least
 * of their sketches, bin by bin, and the last t rounds only see to an end. Most
 * bins sample one order without putting back, so the error is below that of
 * independent components.
 *
 * A value keeps what merging needs; a component is 32 bits that are as good as
 * random: the high half of mix(value), or for linear the minimum itself. Of b
 * bits of each, unlike ones agree by chance, so J = (P - 2^-b) / (1 - 2^-b)
 * [4].
 *
 * [1] Broder, On the resemblance and containment of documents, 1997
 * [2] Dahlgaard, Knudsen and Thorup, Fast similarity sketching, 2017
 * [3] Shrivastava, Optimal densification for fast and accurate minwise hashing,
 *     2017
 * [4] Li and Koenig, b-bit minwise hashing, 2010
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/packed.h"
#include "engine/likeness.h"
#include "core/memory.h"
#include "core/sized.h"
#include "core/status.h"
#include "sketch/sketches.h"

#define DEFAULT_COMPONENTS 128

static const struct {
    const char *name, *help;
} families[] = {
#define FAMILY_ROW_(id, word, what) { word, what },
    BLY_FAMILIES(FAMILY_ROW_)
#undef FAMILY_ROW_
};

const char *bly_family_name(unsigned family)
{
    return family < BLY_FAMILY_COUNT_ ? families[family].name : NULL;
}

const char *bly_family_help(unsigned family)
{
    return family < BLY_FAMILY_COUNT_ ? families[family].help : NULL;
}

bly_status bly_family_named(const char *word, bly_family *out)
{
    bly_names known = { { 0 }, 0 };
    if (!word || !out)
        return bly_fail_null("word or out");
    for (unsigned i = 0; i < BLY_FAMILY_COUNT_; i++) {
        if (strcmp(families[i].name, word) == 0) {
            *out = (bly_family)i;
            return BLY_OK;
        }
        bly_names_add(&known, families[i].name);
    }
    return bly_fail(BLY_EINVAL,
                    "there is no family '%s' of sketches; there "
                    "are: %s",
                    word, known.text);
}

/* ------------------------------------------------------------------- specs */

bly_status bly_sketch_spec_check_sized(bly_sketch_spec *spec, size_t size)
{
    bly_sketch_spec s;
    const bly_sketch_spec *const given = BLY_TAKE(spec, size, &s);
    if (!given)
        return BLY_EINVAL;
    s = *given;
    const bly_status st = bly_shingling_check(&s.shingling);
    if (st)
        return st;
    if ((unsigned)s.family >= BLY_FAMILY_COUNT_)
        return bly_fail(BLY_EINVAL, "there is no family %u of sketches",
                        (unsigned)s.family);
    if (!s.k)
        s.k = DEFAULT_COMPONENTS;
    if (s.k > BLY_MAX_COMPONENTS)
        return bly_fail(BLY_EINVAL, "a sketch has 1 to %d components, not %u",
                        BLY_MAX_COMPONENTS, s.k);
    BLY_GIVE(&s, spec, size);
    return BLY_OK;
}

bly_status bly_sketch_spec_fits_sized(const bly_sketch_spec *a,
                                      const bly_sketch_spec *b, size_t size)
{
    bly_sketch_spec own[2];
    if (!(a = BLY_TAKE(a, size, &own[0])) || !(b = BLY_TAKE(b, size, &own[1])))
        return BLY_EINVAL;
    const char *what = NULL;
    if (a->shingling.unit != b->shingling.unit)
        what = "unit of shingles";
    else if (a->shingling.size != b->shingling.size)
        what = "size of shingles";
    else if (a->family != b->family)
        what = "family";
    else if (a->k != b->k)
        what = "number of components";
    else if (a->shingling.seed != b->shingling.seed)
        what = "seed";
    if (!what)
        return BLY_OK;
    return bly_fail(BLY_EUNFIT, "the sketches differ in their %s", what);
}

/* ------------------------------------------------------- making and freeing */

static size_t lanes_of(unsigned k)
{
    return (k + BLY_MINIMA_LANES - 1) / BLY_MINIMA_LANES * BLY_MINIMA_LANES;
}

static size_t sketch_bytes(const bly_sketch_spec *spec, unsigned bits)
{
    const size_t k = spec->k;
    if (bits)
        return k * sizeof(uint32_t);
    switch (spec->family) {
    case BLY_LINEAR32:
        return 3 * lanes_of(spec->k) * sizeof(uint32_t);
    case BLY_LINEAR61:
        return 3 * k * sizeof(uint64_t);
    default:
        return k * sizeof(uint64_t);
    }
}

/* The coefficients: numbers of a stream that the seed begins. */
static uint64_t draw(const bly_sketch *s, uint64_t i)
{
    return bly_shingle_mix(bly_shingle_mix(s->spec.shingling.seed + 1) +
                           (i + 1) * BLY_BINS_STEP);
}

static void draw_coefficients(bly_sketch *s)
{
    if (s->spec.family == BLY_LINEAR32) {
        const size_t lanes = lanes_of(s->spec.k);
        uint32_t *const a = bly_sketch_halves(s) + lanes, *const b = a + lanes;
        for (size_t i = 0; i < lanes; i++) {
            const uint64_t r = draw(s, i);
            a[i] = (uint32_t)(r >> 32) | 1; /* odd: a permutation */
            b[i] = (uint32_t)r;
        }
    } else if (s->spec.family == BLY_LINEAR61) {
        uint64_t *const a = s->words + s->spec.k, *const b = a + s->spec.k;
        for (size_t i = 0; i < s->spec.k; i++) {
            a[i] = 1 + draw(s, 2 * i) % (BLY_P61 - 1);
            b[i] = draw(s, 2 * i + 1) % BLY_P61;
        }
    }
}

bly_status bly_sketch_make(const bly_sketch_spec *spec, unsigned bits,
                           bly_sketch **out)
{
    bly_sketch_spec checked = *spec;
    *out = NULL;
    const bly_status st = bly_sketch_spec_check(&checked);
    if (st)
        return st;
    const bly_mem *const mem = spec->mem ? spec->mem : &bly_mem_system;
    const size_t nbytes = sizeof(bly_sketch) + sketch_bytes(&checked, bits);
    bly_sketch *s = bly_mem_zalloc(mem, nbytes);
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    s->mem = *mem;
    s->spec = checked;
    s->spec.mem = NULL;
    s->bits = bits;
    s->nbytes = nbytes;
    if (!bits)
        draw_coefficients(s);
    bly_sketch_clear(s);
    *out = s;
    return BLY_OK;
}

bly_status bly_sketch_new_sized(const bly_sketch_spec *spec, bly_sketch **out,
                                size_t size)
{
    bly_sketch_spec own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    return bly_sketch_make(spec, 0, out);
}

void bly_sketch_free(bly_sketch *s)
{
    if (!s)
        return;
    const bly_mem mem = s->mem;
    bly_mem_release(&mem, s, s->nbytes);
}

const bly_sketch_spec *bly_sketch_spec_of(const bly_sketch *s)
{
    return &s->spec;
}

unsigned bly_sketch_bits(const bly_sketch *s)
{
    return s->bits;
}

void bly_sketch_clear(bly_sketch *s)
{
    s->any = false;
    if (s->bits)
        return;
    /* All ones: the greatest minimum, and BLY_BINS_EMPTY. */
    if (s->spec.family == BLY_LINEAR32)
        memset(s->words, 0xff, lanes_of(s->spec.k) * sizeof(uint32_t));
    else
        memset(s->words, 0xff, s->spec.k * sizeof(uint64_t));
}

/* ------------------------------------------------------------------ adding */

/* A round from t on: all go to one bin. */
static void forced_bin(uint64_t *bin, const uint64_t *x, size_t n,
                       unsigned round)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t v = bly_bins_value(bly_bins_hash(x[i], round), round);
        *bin = v < *bin ? v : *bin;
    }
}

/* Rounds from one to before another, until none can change a bin any more: all
 * hold values of this round or of earlier ones. Bins only fall and the limit
 * only rises, so `full`, below which all are done, never goes back. True: it
 * has come to that. */
static bool fss_rounds(uint64_t *bins, unsigned t, const uint64_t *x, size_t n,
                       unsigned from, unsigned to)
{
    const bly_likeness_row *const row = bly_likeness_best();
    unsigned full = 0;
    for (unsigned round = from; full < t && round < to; round++) {
        if (round < t)
            row->bins(bins, t, x, n, round);
        else
            forced_bin(&bins[round - t], x, n, round);
        const uint64_t limit = (uint64_t)(round + 1) << BLY_BINS_ROUND;
        /* At round 1023 the limit passes 2^64; no later round comes. */
        while (full < t && (bins[full] < limit || !limit))
            full++;
    }
    return full == t;
}

/* Few shingles repeated often, a page of zeros, go through up to 2t rounds: 100
 * MB of one word took minutes. Texts with as many different shingles as t / 2
 * are done after FSS_EARLY rounds, those with 16 t after one. What is left
 * repeats itself, or is short; from there on each shingle comes once, but for
 * those beyond FSS_SEEN different ones, which need few rounds. */
#define FSS_EARLY 16u
#define FSS_SEEN 1024u
#define FSS_SLOTS (2 * FSS_SEEN)
static void fss_late_rounds(uint64_t *bins, unsigned t, const uint64_t *x,
                            size_t n, unsigned from)
{
    uint64_t seen[FSS_SLOTS], some[FSS_SEEN];
    bool taken[FSS_SLOTS] = { false };
    size_t nseen = 0, nsome = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = x[i] % FSS_SLOTS;
        while (taken[at] && seen[at] != x[i])
            at = (at + 1) % FSS_SLOTS;
        if (taken[at])
            continue;
        if (nseen < FSS_SEEN) {
            taken[at] = true;
            seen[at] = x[i];
            nseen++;
        }
        some[nsome++] = x[i];
        if (nsome == FSS_SEEN) {
            fss_rounds(bins, t, some, nsome, from, 2 * t);
            nsome = 0;
        }
    }
    fss_rounds(bins, t, some, nsome, from, 2 * t);
}

static void fss_add(uint64_t *bins, unsigned t, const uint64_t *x, size_t n)
{
    unsigned early = n > 16 * (size_t)t ? 1 : FSS_EARLY;
    if (early > 2 * t)
        early = 2 * t;
    if (!fss_rounds(bins, t, x, n, 0, early))
        fss_late_rounds(bins, t, x, n, early);
}

/* a x + b mod 2^61 - 1, all below it. The product has 122 bits: its low 61 and
 * its high 61 add up to it. */
static inline uint64_t linear61(uint64_t a, uint64_t x, uint64_t b)
{
    const uint64_t low = a * x, high = bly_mulhi(a, x);
    uint64_t sum = (low & BLY_P61) + (low >> 61 | high << 3) + b;
    sum = (sum & BLY_P61) + (sum >> 61);
    return sum >= BLY_P61 ? sum - BLY_P61 : sum;
}

static void linear61_add(uint64_t *minima, size_t k, const uint64_t *x,
                         size_t n)
{
    const uint64_t *const a = minima + k, *const b = a + k;
    for (size_t j = 0; j < n; j++) {
        uint64_t y = (x[j] & BLY_P61) + (x[j] >> 61);
        y = y >= BLY_P61 ? y - BLY_P61 : y;
        for (size_t i = 0; i < k; i++) {
            const uint64_t image = linear61(a[i], y, b[i]);
            minima[i] = image < minima[i] ? image : minima[i];
        }
    }
}

static bly_status compact_fail(void)
{
    return bly_fail(BLY_EREADONLY, "a compact sketch can only be compared; "
                                   "keep whole sketches to add or merge");
}

bly_status bly_sketch_add(bly_sketch *s, const uint64_t *hashes, size_t n)
{
    if (!s || (!hashes && n))
        return bly_fail_null("s or hashes");
    const unsigned k = s->spec.k;
    if (s->bits)
        return compact_fail();
    if (!n)
        return BLY_OK;
    s->any = true;
    switch (s->spec.family) {
    case BLY_LINEAR32: {
        const size_t lanes = lanes_of(k);
        uint32_t *const minima = bly_sketch_halves(s);
        bly_likeness_best()->minima(minima, minima + lanes, minima + 2 * lanes,
                                    lanes, hashes, n);
        break;
    }
    case BLY_LINEAR61:
        linear61_add(s->words, k, hashes, n);
        break;
    case BLY_OPH:
        bly_likeness_best()->bins(s->words, k, hashes, n, 0);
        break;
    default:
        fss_add(s->words, k, hashes, n);
    }
    return BLY_OK;
}

bly_status bly_sketch_merge(bly_sketch *dst, const bly_sketch *src)
{
    if (!dst || !src)
        return bly_fail_null("dst or src");
    const bly_status st = bly_sketch_spec_fits(&dst->spec, &src->spec);
    if (st)
        return st;
    if (dst->bits || src->bits)
        return compact_fail();
    dst->any |= src->any;
    if (dst->spec.family == BLY_LINEAR32) {
        uint32_t *const d = bly_sketch_halves(dst);
        const uint32_t *const m = bly_sketch_halves(src);
        for (size_t i = 0; i < lanes_of(dst->spec.k); i++)
            d[i] = m[i] < d[i] ? m[i] : d[i];
    } else {
        for (size_t i = 0; i < dst->spec.k; i++)
            dst->words[i] =
                src->words[i] < dst->words[i] ? src->words[i] : dst->words[i];
    }
    return BLY_OK;
}

/* -------------------------------------------------------------- components */

static uint32_t component_of(uint64_t value)
{
    return (uint32_t)(bly_shingle_mix(value) >> 32);
}

/* The bin that stands in for an empty one. A share f of full bins takes 1/f
 * tries, t at most; the walk ends what chance does not. */
static uint64_t stand_in(const uint64_t *bins, unsigned t, unsigned i)
{
    for (unsigned j = 1; j <= 16 * t; j++) {
        const uint64_t h = bly_shingle_mix((uint64_t)i << 32 | j);
        const uint64_t value = bins[(h >> 32) * t >> 32];
        if (value != BLY_BINS_EMPTY)
            return value;
    }
    while (bins[i] == BLY_BINS_EMPTY)
        i = (i + 1) % t;
    return bins[i];
}

void bly_sketch_known(const bly_sketch *s, uint32_t *out)
{
    const unsigned k = s->spec.k;
    if (s->bits || s->spec.family == BLY_LINEAR32) {
        memcpy(out, s->words, k * sizeof *out);
        return;
    }
    for (unsigned i = 0; i < k; i++) {
        uint64_t value = s->words[i];
        if (value == BLY_BINS_EMPTY && s->spec.family == BLY_OPH)
            value = stand_in(s->words, k, i);
        out[i] = component_of(value);
    }
}

bool bly_sketch_components(const bly_sketch *s, uint32_t *out)
{
    if (!s->any || s->bits)
        return false;
    bly_sketch_known(s, out);
    return true;
}

unsigned bly_components_equal(const uint32_t *a, const uint32_t *b, unsigned k)
{
    unsigned equal = 0;
    for (unsigned i = 0; i < k; i++)
        equal += a[i] == b[i];
    return equal;
}

bly_resemblance bly_resemblance_of(unsigned equal, unsigned k, unsigned bits)
{
    const double chance = ldexp(1, -(int)bits);
    const double share = (double)equal / (double)k;
    /* One more of each kind: k of k that agree do not make it certain. */
    const double p = (equal + 1.0) / (k + 2.0);
    return (bly_resemblance){
        .jaccard = fmax(0, (share - chance) / (1 - chance)),
        .sd = sqrt(p * (1 - p) / k) / (1 - chance),
        .equal = equal,
        .bits = bits,
    };
}

static int by_component(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Roughly how many shingles an oph sketch has seen, by its copies; INFINITY
 * where it has next to none. With l copies of each full bin on average, the
 * chance that two components are the same one is (1 + 3l + l^2) / (k (1 + l)).
 * Of b bits of each, others agree too. */
static double oph_shingles(const uint32_t *components, unsigned k,
                           unsigned bits)
{
    uint32_t sorted[BLY_MAX_COMPONENTS];
    double same = 0;
    memcpy(sorted, components, k * sizeof *sorted);
    qsort(sorted, k, sizeof *sorted, by_component);
    for (unsigned i = 0, run = 0; i < k; i++) {
        run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        same += 2.0 * run - 1; /* adds up to the square of each run */
    }
    const double chance = ldexp(1, -(int)bits);
    const double q = k * (same / ((double)k * k) - chance) / (1 - chance);
    const double l =
        (q - 3 + sqrt(fmax(0, (q - 3) * (q - 3) + 4 * (q - 1)))) / 2;
    return l > 1.0 / k ? log1p(-1 / (1 + l)) / log1p(-1.0 / k) : INFINITY;
}

/*
 * How much larger the deviation of two oph sketches is than the formula's, or
 * 1. m shingles fill u = k (1 - (1 - 1/k)^m) bins, each one shingle drawn
 * without putting back; the other bins are copies of these, l = k/u - 1 of each
 * on average, as many as chance will. Such a weighted share has the variance
 *
 *     J (1 - J) (S - 1/m) m / (m - 1),   S = (1 + 3l + l^2) / (k (1 + l))
 *
 * where J (1 - J) / k is the formula's.
 */
static double oph_excess(double m, unsigned k)
{
    if (!(m > 2) || isinf(m))
        return 1;
    const double l = 1 / -expm1(m * log1p(-1.0 / k)) - 1;
    const double s = (1 + 3 * l + l * l) / (k * (1 + l));
    return sqrt(fmax(1, k * (s - 1 / m) * m / (m - 1)));
}

bly_status bly_sketch_compare(const bly_sketch *a, const bly_sketch *b,
                              bly_resemblance *out)
{
    if (!a || !b || !out)
        return bly_fail_null("a or b or out");
    uint32_t x[BLY_MAX_COMPONENTS], y[BLY_MAX_COMPONENTS];
    const bly_status st = bly_sketch_spec_fits(&a->spec, &b->spec);
    if (st)
        return st;
    unsigned bits = a->bits ? a->bits : 32;
    if (b->bits && b->bits < bits)
        bits = b->bits;
    const unsigned k = a->spec.k;
    if (!a->any || !b->any) {
        *out = (bly_resemblance){ .bits = bits };
        return BLY_OK;
    }
    bly_sketch_known(a, x);
    bly_sketch_known(b, y);
    const uint32_t mask = (uint32_t)bly_field_mask(bits);
    for (unsigned i = 0; i < k; i++) {
        x[i] &= mask;
        y[i] &= mask;
    }
    *out = bly_resemblance_of(bly_components_equal(x, y, k), k, bits);
    if (a->spec.family == BLY_OPH) { /* |A or B| is (|A| + |B|) / (1 + J) */
        const double both = oph_shingles(x, k, bits) + oph_shingles(y, k, bits);
        out->sd *= oph_excess(both / (1 + out->jaccard), k);
    }
    return BLY_OK;
}
