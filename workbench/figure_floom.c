/*
 * figure_floom.c - the Floom filter against plain ones: seminar paper, 11, 12
 *
 * A million different keys; the first n are added, the others are asked for.
 * "plain" has the m bits and the k of rule a for n keys at the rate; "Floom"
 * the same and 2^b bits for patterns; "plain, as large" spends those on bits.
 * The dashed lines are the formulas, the markers runs of the library; what the
 * paper's own program found stands beside them where it was published as a
 * table.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "base/clock.h"
#include "base/random.h"
#include "workbench/figure.h"

#define FLOOM_KEYS 1000000.0

/* What is compared: the sizes that follow from n, the rate and b. */
struct floom_trio {
    double n, p, m, big_m;
    unsigned b, k, big_k;
};

static double plain_rate(double n, double m, double k)
{
    return pow(-expm1(k * n * log1p(-1 / m)), k);
}

/* Rule a of the paper's program, its bits made whole bytes. */
static struct floom_trio trio_of(double n, double p, unsigned b)
{
    const double ln2 = log(2);
    struct floom_trio t = { .n = n, .p = p, .b = b };
    const double m = ceil(-n * log(p) / (ln2 * ln2));
    t.k = (unsigned)lround(m / n * ln2);
    t.m = 8 * ceil(m / 8);
    t.big_m = t.m + exp2(b);
    t.big_k = (unsigned)lround(t.big_m / n * ln2);
    return t;
}

/* surj(k, j) / b^k: the chance of one particular pattern of j regions. */
static double pattern_chance(unsigned k, unsigned j, unsigned b)
{
    double sum = 0, choose = 1;
    for (unsigned i = 0; i <= j; i++) {
        sum += (i % 2 ? -1 : 1) * choose * pow((double)(j - i) / b, k);
        choose = choose * (j - i) / (i + 1);
    }
    return sum;
}

/* The chance that the pattern of a key that is not in the filter is set, and
 * the deviation of that from filter to filter. */
static double pattern_share(const struct floom_trio *t, double *sd)
{
    double share = 0, variance = 0, choose = 1;
    for (unsigned j = 1; j <= t->b && j <= t->k; j++) {
        choose = choose * (t->b - j + 1) / j;
        const double chance = pattern_chance(t->k, j, t->b);
        const double unset = exp(t->n * log1p(-chance));
        share += choose * chance * (1 - unset);
        variance += choose * chance * chance * unset * (1 - unset);
    }
    *sd = sqrt(variance);
    return share;
}

enum { PLAIN, FLOOM, BIG, NTRIO };

static const char *const trio_names[NTRIO] = { "plain", "Floom",
                                               "plain, as large" };

/* What is expected of each, with the deviation of one run. */
static void trio_expected(const struct floom_trio *t, double *rate, double *sd)
{
    const double queries = FLOOM_KEYS - t->n;
    double share_sd;
    const double share = pattern_share(t, &share_sd);
    rate[PLAIN] = plain_rate(t->n, t->m, t->k);
    rate[FLOOM] = rate[PLAIN] * share;
    rate[BIG] = plain_rate(t->n, t->big_m, t->big_k);
    sd[PLAIN] = figure_rate_sd(rate[PLAIN], t->n, t->m, t->k, queries, 1);
    sd[FLOOM] = hypot(figure_rate_sd(rate[FLOOM], t->n, t->m, t->k, queries, 1),
                      rate[PLAIN] * share_sd);
    sd[BIG] = figure_rate_sd(rate[BIG], t->n, t->big_m, t->big_k, queries, 1);
    /* A handful of hits is no bell: a hit or so on top. */
    for (int i = 0; i < NTRIO; i++)
        sd[i] += 0.5 / queries;
}

static bool trio_filters(struct figure_run *run, const struct floom_trio *t,
                         bly_filter **f)
{
    const double bits[NTRIO] = { t->m, t->big_m, t->big_m };
    const unsigned k[NTRIO] = { t->k, t->k, t->big_k };
    bool ok = true;
    for (int i = 0; i < NTRIO; i++) {
        char options[40];
        const bly_spec spec = { .kind = i == FLOOM ? "floom" : "classic",
                                .items = (uint64_t)t->n,
                                .bits = (uint64_t)bits[i],
                                .seed = run->seed };
        if (i == FLOOM)
            snprintf(options, sizeof options, "k=%u b=%u", k[i], t->b);
        else
            snprintf(options, sizeof options, "k=%u", k[i]);
        f[i] = figure_filter(run, &spec, options);
        ok = ok && f[i];
    }
    return ok;
}

static void trio_free(bly_filter **f)
{
    for (int i = 0; i < NTRIO; i++)
        bly_free(f[i]);
}

static size_t floom_sizes(bool full, const double **out)
{
    static const double sizes[] = { 1000,  2000,   5000,   10000, 20000,
                                    50000, 100000, 200000, 400000 };
    *out = sizes;
    return full ? 9 : 6;
}

/* ---------------------------------------------------------------- rates */

/* The table of the published data files. */
struct floom_published {
    double p;
    unsigned b;
    double n, rate[NTRIO];
};

static const struct floom_published published[] = {
    { 0.01, 16, 1000, { 0.009706, 0.000452, 0.000000 } },
    { 0.01, 16, 5000, { 0.010328, 0.002133, 0.000017 } },
    { 0.01, 16, 10000, { 0.009763, 0.003593, 0.000423 } },
    { 0.01, 16, 20000, { 0.009808, 0.005719, 0.002091 } },
    { 0.01, 16, 50000, { 0.010043, 0.008637, 0.005283 } },
    { 0.01, 16, 100000, { 0.010096, 0.009663, 0.007228 } },
    { 0.01, 16, 200000, { 0.009979, 0.009928, 0.008551 } },
    { 0.01, 16, 400000, { 0.010080, 0.010078, 0.009418 } },
    { 0.05, 16, 1000, { 0.051397, 0.017187, 0.000000 } },
    { 0.01, 12, 1000, { 0.009706, 0.003055, 0.001412 } },
    { 0.05, 12, 1000, { 0.051397, 0.037818, 0.007392 } },
    { 0.01, 8, 1000, { 0.009706, 0.009479, 0.008013 } },
};

static void floom_axes(struct figure_run *run)
{
    run->x = AXIS(.label = "keys in the filter", .unit = "n", .scale = PLOT_LOG,
                  .format = PLOT_SI);
    run->y = AXIS(.label = "false positive rate", .format = PLOT_PERCENT);
}

static void floom_rates(struct figure_run *run, double p, unsigned b)
{
    floom_axes(run);
    struct figure_series *s[NTRIO], *printed[NTRIO];
    for (unsigned i = 0; i < NTRIO; i++) {
        s[i] = figure_series(run, "%s", trio_names[i]);
        s[i]->color = i + 1;
    }
    const double *sizes;
    const size_t nsizes = floom_sizes(run->full, &sizes);
    for (size_t at = 0; at < nsizes; at++) {
        const struct floom_trio t = trio_of(sizes[at], p, b);
        double rate[NTRIO], sd[NTRIO];
        bly_filter *f[NTRIO];
        trio_expected(&t, rate, sd);
        if (trio_filters(run, &t, f))
            for (int i = 0; i < NTRIO; i++)
                if (figure_add(run, f[i], 0, (uint64_t)t.n))
                    figure_judge(run, s[i], t.n, rate[i],
                                 figure_share(f[i], (uint64_t)t.n,
                                              (uint64_t)(FLOOM_KEYS - t.n)),
                                 sd[i]);
        trio_free(f);
    }
    for (unsigned i = 0; i < NTRIO; i++) {
        printed[i] = figure_series(run, "%s, published", trio_names[i]);
        printed[i]->color = i + 1;
        printed[i]->style = PLOT_POINTS;
    }
    for (size_t at = 0; at < sizeof published / sizeof published[0]; at++) {
        const struct floom_published *row = &published[at];
        if (row->p != p || row->b != b)
            continue;
        const struct floom_trio t = trio_of(row->n, p, b);
        double rate[NTRIO], sd[NTRIO];
        trio_expected(&t, rate, sd);
        for (int i = 0; i < NTRIO; i++)
            figure_point(run, printed[i], row->n, NAN, row->rate[i],
                         fmax(0, rate[i] - 4 * sd[i]), rate[i] + 4 * sd[i]);
    }
}

#define FLOOM_ABOUT                                                            \
    "Patterns lower the rate of a small filter, since few of them are set, "   \
    "and cease to as keys come. The same bits spent on a larger plain filter " \
    "always lower it more: the result is negative, and the paper says so."

#define FLOOM_FIGURE(P, B)                                                 \
    static void floom_##P##_##B##_run(struct figure_run *run)              \
    {                                                                      \
        floom_rates(run, P / 100.0, B);                                    \
    }                                                                      \
    const struct figure figure_floom_##P##_##B = {                         \
        .name = "floom-" #P "-" #B,                                        \
        .title = "Floom against plain filters, " #P " %, " #B " regions",  \
        .source = "Seminar paper, figures 11 and 12, and its data files.", \
        .about = FLOOM_ABOUT,                                              \
        .run = floom_##P##_##B##_run,                                      \
    };

FLOOM_FIGURE(1, 8)
FLOOM_FIGURE(1, 12)
FLOOM_FIGURE(1, 16)
FLOOM_FIGURE(5, 8)
FLOOM_FIGURE(5, 12)
FLOOM_FIGURE(5, 16)

/* ---------------------------------------------------------------- replay */

/* One filter as the paper's program has it: position i of a key is
 * bly_murmur2(key, i) mod m, its region counts the borders j m / b below it. */
struct replay {
    unsigned char *bits, *patterns;
    uint32_t m;
    unsigned k, b; /* b 0: no patterns */
};

/* Set the marks of a key, or say whether all are set. */
static bool replay_key(struct replay *r, const char *key, bool set)
{
    uint32_t pattern = 0;
    for (unsigned i = 0; i < r->k; i++) {
        const uint32_t at = bly_murmur2(key, strlen(key), i) % r->m;
        unsigned region = 0;
        for (unsigned j = 1; j < r->b; j++)
            region += at > (uint64_t)j * r->m / r->b;
        pattern |= r->b ? UINT32_C(1) << region : 0;
        if (set)
            r->bits[at / 8] |= (unsigned char)(1u << at % 8);
        else if (!(r->bits[at / 8] >> at % 8 & 1))
            return false;
    }
    if (r->b && set)
        r->patterns[pattern / 8] |= (unsigned char)(1u << pattern % 8);
    return !r->b || (r->patterns[pattern / 8] >> pattern % 8 & 1);
}

/* The rate of one filter, by its own rules; NAN without memory. */
static double replay_rate(struct figure_run *run, double n, double m,
                          unsigned k, unsigned b)
{
    struct replay r = { .m = (uint32_t)m, .k = k, .b = b };
    uint64_t nmaybe = 0;
    char key[24];
    r.bits = calloc(r.m / 8 + 1, 1);
    r.patterns = calloc(((size_t)1 << b) / 8 + 1, 1);
    if (r.bits && r.patterns) {
        /* Different decimal numbers: an odd factor permutes 64 bits. */
        for (uint64_t i = 0; i < (uint64_t)FLOOM_KEYS; i++) {
            snprintf(key, sizeof key, "%llu",
                     (unsigned long long)((i + run->seed * 9000001 + 1) *
                                              RANDOM_STEP >>
                                          16));
            nmaybe += replay_key(&r, key, i < (uint64_t)n) && i >= (uint64_t)n;
        }
    }
    const bool ok = r.bits && r.patterns;
    free(r.bits);
    free(r.patterns);
    return ok ? (double)nmaybe / (FLOOM_KEYS - n) : NAN;
}

static void floom_replay_run(struct figure_run *run)
{
    floom_axes(run);
    struct figure_series *s[NTRIO];
    for (int i = 0; i < NTRIO; i++)
        s[i] = figure_series(run, "%s", trio_names[i]);
    const double *sizes;
    const size_t nsizes = floom_sizes(run->full, &sizes);
    for (size_t at = 0; at < nsizes; at += run->full ? 1 : 3) {
        const struct floom_trio t = trio_of(sizes[at], 0.01, 16);
        double rate[NTRIO], sd[NTRIO];
        trio_expected(&t, rate, sd);
        figure_judge(run, s[PLAIN], t.n, rate[PLAIN],
                     replay_rate(run, t.n, t.m, t.k, 0), sd[PLAIN]);
        figure_judge(run, s[FLOOM], t.n, rate[FLOOM],
                     replay_rate(run, t.n, t.m, t.k, t.b), sd[FLOOM]);
        figure_judge(run, s[BIG], t.n, rate[BIG],
                     replay_rate(run, t.n, t.big_m, t.big_k, 0), sd[BIG]);
    }
    figure_note(run, "Decimal numbers as text, MurmurHash2 with seed i for "
                     "probe i, regions as in the paper's program.");
}

const struct figure figure_floom_replay = {
    .name = "floom-replay",
    .title = "The same by the rules of the paper's program",
    .source = "Seminar paper and its program: MurmurHash2, 1 %, 16 regions.",
    .about =
        "The paper's program hashes a key once for each probe, with "
        "MurmurHash2 and the probe's number as seed. Its rates are those of "
        "the formulas, and of the library, which hashes a key once in all.",
    .run = floom_replay_run,
};

/* ------------------------------------------------------------------ time */

static void floom_times(struct figure_run *run, double p, unsigned b)
{
    floom_axes(run);
    run->y = AXIS(.label = "time of an addition", .unit = "ns");
    struct figure_series *s[NTRIO], *ratio = NULL;
    for (int i = 0; i < NTRIO; i++)
        s[i] = figure_series(run, "%s", trio_names[i]);
    ratio = figure_series(run, "Floom over plain");
    ratio->unseen = true;
    const double *sizes;
    const size_t nsizes = floom_sizes(run->full, &sizes);
    for (size_t at = 0; at < nsizes; at++) {
        const struct floom_trio t = trio_of(sizes[at], p, b);
        double best[NTRIO] = { INFINITY, INFINITY, INFINITY };
        for (int round = 0; round < FIGURE_ROUNDS; round++) {
            bly_filter *f[NTRIO];
            if (trio_filters(run, &t, f))
                for (int i = 0; i < NTRIO; i++) {
                    const double start = clock_thread_ns();
                    figure_add(run, f[i], 0, (uint64_t)t.n);
                    best[i] = fmin(best[i], (clock_thread_ns() - start) / t.n);
                }
            trio_free(f);
        }
        for (int i = 0; i < NTRIO; i++)
            figure_point(run, s[i], t.n, NAN, best[i], NAN, NAN);
        figure_point(run, ratio, t.n, 1.5, best[FLOOM] / best[PLAIN], 1, NAN);
    }
    figure_note(run,
                "Published: 0.20 to 0.22 us plain, 0.31 (5 %%) and 0.41 us "
                "(1 %%) Floom, of a program that hashes k times.");
}

#define FLOOM_TIME_FIGURE(P, B)                                               \
    static void floom_time_##P##_##B##_run(struct figure_run *run)            \
    {                                                                         \
        floom_times(run, P / 100.0, B);                                       \
    }                                                                         \
    const struct figure figure_floom_time_##P##_##B = {                       \
        .name = "floom-time-" #P "-" #B,                                      \
        .title = "Time of an addition, " #P " %, " #B " regions",             \
        .source = "Seminar paper, data files of figure 12.",                  \
        .about = "The pattern must be computed and set besides the bits, so " \
                 "that Floom is the slower one. Only that order is judged; "  \
                 "nanoseconds are the machine's.",                            \
        .machine = true,                                                      \
        .run = floom_time_##P##_##B##_run,                                    \
    };

FLOOM_TIME_FIGURE(1, 8)
FLOOM_TIME_FIGURE(1, 12)
FLOOM_TIME_FIGURE(1, 16)
FLOOM_TIME_FIGURE(5, 8)
FLOOM_TIME_FIGURE(5, 12)
FLOOM_TIME_FIGURE(5, 16)
