/*
 * test_rates.c - the rate measured at capacity is the rate predicted
 *
 * For n keys at rate p the plan predicts a rate f by the kind's own formula.
 * Here t filters of different seeds are filled with n keys each and asked for
 * q others. Their mean must be f within four standard deviations, on either
 * side: a filter that is better than its plan has a plan that wastes memory.
 *
 * A measured rate has two sources of spread: the q queries, and the fill of
 * the one filter that was made. For bits anywhere in an array the second is
 * known in closed form; other kinds have other laws. So the spread between
 * the t filters is measured too, which contains both:
 *
 *     deviation of the mean = deviation of the t rates / sqrt(t)
 *
 * and never taken as less than the queries alone would give.
 *
 * `make test` goes to 100,000 keys, and has time for a hundred hits at the
 * lowest rate; with BLY_FULL set it is ten million, and 3000 hits.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/maths.h"
#include "engine/bit_count.h"

static const double rates[] = { 0.1, 0.01, 0.001, 0.0001, 0.00001 };

/* Queries for a rate in all: enough for 3000 hits, as long as there is time. */
static size_t queries_for(double p)
{
    const double most = getenv("BLY_FULL") ? 4e8 : 1e7;
    return scaled((size_t)fmin(fmax(3000 / p, 1e6), most));
}

/* The mean rate of t filters of n keys with q queries each, and its own
 * deviation. */
static bly_estimate measured_rate(const bly_spec *like, size_t n, size_t q,
                                  size_t t, double f)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < t; i++) {
        bly_spec spec = *like;
        spec.seed = LAW_SEED + i;
        bly_filter *filter = filled_from(&spec, i * n, n);
        const double rate =
            (double)hits(filter, ABSENT * (i + 1), q) / (double)q;
        sum += rate;
        squares += rate * rate;
        bly_free(filter);
    }
    const double mean = sum / (double)t;
    const double var = fmax(0, squares / (double)t - mean * mean) * (double)t /
                       (double)(t - 1);
    return (bly_estimate){ mean, sqrt(fmax(var, f * (1 - f) / (double)q) /
                                      (double)t) };
}

static void assert_rate_at_capacity(const law_row *row, size_t n, double p)
{
    bly_spec spec = law_spec(row, n);
    bly_prediction plan;
    spec.fpr = p;
    const bly_status st = bly_plan(&spec, &plan);
    if (st) { /* a kind may have limits, not for the usual rates */
        assert_true(st == BLY_EINVAL || st == BLY_ERANGE);
        assert_true(p < 0.001 || p > 0.05);
        return;
    }
    /* What was promised is what is planned, but for rounding. */
    assert_between(plan.fpr, 0, p * 1.02);
    const size_t t = n >= 1000000 ? 8 : n >= 100000 ? 16 : 32;
    const bly_estimate seen =
        measured_rate(&spec, n, queries_for(p) / t, t, plan.fpr);
    if (getenv("BLY_FULL"))
        printf("    %-28s n %8zu  planned %.4e  measured %.4e  %+.1f sd\n",
               row->name, n, plan.fpr, seen.value,
               (seen.value - plan.fpr) / seen.sd);
    if (!(fabs(seen.value - plan.fpr) <= 4 * seen.sd))
        fail_msg("n = %zu at %g: planned %g, measured %g with deviation %g", n,
                 p, plan.fpr, seen.value, seen.sd);
}

/* An option that only steers the plan makes no other filter. */
static bool only_plans(const law_row *row)
{
    for (size_t i = 0; row->noptions && i < row->kind.nparams; i++)
        if (strcmp(bly_param_at(row->kind.params, i)->name, row->option.name) ==
            0)
            return bly_param_at(row->kind.params, i)->planning;
    return false;
}

static void rates_for(const law_row *row, size_t n)
{
    if (only_plans(row))
        skip_for("the option only changes plans");
    /* Other choices of an option at one size, where there is little time. */
    if (row->noptions && n != 10000 && !getenv("BLY_FULL"))
        skip_for("only with BLY_FULL (make test-full)");
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        assert_rate_at_capacity(row, n, rates[i]);
}

LAW(a_thousand_keys)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    rates_for(row, 1000);
}

LAW(ten_thousand_keys)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    rates_for(row, 10000);
}

LAW(a_hundred_thousand_keys)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    rates_for(row, 100000);
}

LAW(a_million_keys)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    if (!getenv("BLY_FULL"))
        skip_for("only with BLY_FULL (make test-full)");
    rates_for(row, 1000000);
}

LAW(ten_million_keys)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    if (!getenv("BLY_FULL"))
        skip_for("only with BLY_FULL (make test-full)");
    rates_for(row, 10000000);
}

/* Half full and twice full, the rate follows the formula too: what stat says
 * of the contents is what is measured, over filters of all seeds. */
LAW(below_and_past_capacity)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    static const double loads[] = { 0.5, 2 };
    enum { N = 10000, T = 16 };
    for (size_t i = 0; i < COUNT_OF(loads); i++) {
        const size_t n = (size_t)(loads[i] * N), q = scaled(400000);
        double now = 0, seen = 0;
        bool tells = true;
        for (uint64_t t = 0; t < T && tells; t++) {
            bly_spec spec = law_spec(row, N);
            spec.seed = LAW_SEED + t;
            uint64_t *h = hashes_for(&spec, 0, n);
            bly_filter *f;
            bly_stats stats;
            assert_ok(bly_new(&spec, &f));
            const bly_status st = bly_add_hashes(f, h, n, NULL, NULL);
            bly_stat(f, &stats);
            tells = !st && !isnan(stats.fpr_now);
            now += stats.fpr_now / T;
            seen += (double)hits(f, ABSENT, q) / (double)q / T;
            free(h);
            bly_free(f);
        }
        if (!tells)
            continue;
        const double sd = sqrt(now * (1 - now) / (double)q / T);
        assert_between(seen, now - 4 * sd - 0.005 * now,
                       now + 4 * sd + 0.005 * now);
    }
}

/* ------------------------------------------------- integers of any pattern */

/* Integers as they come, for i from 0 on. `across` moves all bits of i to the
 * top. */
#define PATTERNS(X)                                                 \
    X(sequence, i)                                                  \
    X(times_16, i << 4)                                             \
    X(times_2_to_8, i << 8)                                         \
    X(times_2_to_16, i << 16)                                       \
    X(times_2_to_24, i << 24)                                       \
    X(times_2_to_32, i << 32)                                       \
    X(times_2_to_40, i << 40)                                       \
    X(high_bits_alone, i << across)                                 \
    X(bits_reversed, reversed(i))                                   \
    X(seconds, UINT64_C(1700000000) + i)                            \
    X(nanoseconds, UINT64_C(1700000000000000000) + i * 1000000000)  \
    X(pointers, UINT64_C(0x7f3a12345000) + 16 * i)                  \
    X(doubles, bits_of((double)i + 1))                              \
    X(tenths, bits_of((double)i / 10))                              \
    X(gray_codes, i ^ i >> 1)                                       \
    X(high_gray_codes, (i ^ i >> 1) << 32)                          \
    X(ipv4_turned, __builtin_bswap32((uint32_t)(0x0a000000 + i)))   \
    X(ipv6_hosts, UINT64_C(0x20010db800000000) | i)                 \
    X(ipv6_networks, UINT64_C(0x20010db800000000) + (i << 8))       \
    X(multiples_of_the_factor, i *BLY_INT_HASH_C)                   \
    X(of_its_inverse, i *inverse(BLY_INT_HASH_C))                   \
    X(of_both_inverses, i *inverse(BLY_INT_HASH_C *BLY_INT_FOLD_C)) \
    X(pairs, i % 1000 << 32 | i / 1000)

static uint64_t reversed(uint64_t x)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < 64; i++)
        r |= (x >> i & 1) << (63 - i);
    return r;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x y = 1 mod 2^64; each step doubles the bits that are right. */
static uint64_t inverse(uint64_t x)
{
    uint64_t y = x;
    for (unsigned i = 0; i < 6; i++)
        y *= 2 - x * y;
    return y;
}

enum { PATTERN_KEYS = 4000, PATTERN_ASKED = 8000, PATTERN_FILTERS = 4 };

static uint64_t pattern_key(unsigned pattern, uint64_t i)
{
    const unsigned across = 64 - 14; /* i is below 2^14 */
    const uint64_t keys[] = {
#define PATTERN(name, key) key,
        PATTERNS(PATTERN)
#undef PATTERN
    };
    return keys[pattern];
}

static const char *const pattern_names[] = {
#define PATTERN(name, key) #name,
    PATTERNS(PATTERN)
#undef PATTERN
};

/* The rate of a filter of a third of these integers, asked for the others: of a
 * pattern, or random ones. NAN: the kind cannot be filled so. */
static double pattern_rate(const law_row *row, int pattern, uint64_t seed)
{
    static uint64_t in[PATTERN_KEYS], out[PATTERN_ASKED], hashes[PATTERN_KEYS];
    uint64_t maybe[BLY_BITMAP_WORDS(PATTERN_ASKED)], nin = 0, nout = 0;
    bly_spec spec = law_spec(row, PATTERN_KEYS);
    bly_filter *f = NULL;
    bly_builder *b = NULL;
    for (uint64_t i = 0; i < PATTERN_KEYS + PATTERN_ASKED; i++) {
        const uint64_t key = pattern < 0 ? bly_mix64(i + 1 + (seed << 32))
                                         : pattern_key((unsigned)pattern, i);
        if (i % 3 == 1)
            in[nin++] = key;
        else
            out[nout++] = key;
    }
    spec.seed = seed;
    spec.fpr = 0.05;
    spec.keying.type = BLY_KEYS_UINT64;
    bly_status st;
    if (row->kind.can & BLY_CAN(ADD)) {
        st = bly_new(&spec, &f);
        if (!st)
            st = bly_add_ints(f, in, nin, NULL, NULL);
    } else {
        st = bly_builder_new(&spec, &b);
        if (!st) {
            bly_hash_ints(bly_builder_hasher(b), in, nin, hashes);
            st = bly_builder_add(b, hashes, NULL, nin);
        }
        if (!st)
            st = bly_builder_finish(b, 1, &f);
        bly_builder_free(b);
    }
    if (!st)
        bly_has_ints(f, out, nout, maybe);
    bly_free(f);
    return st ? NAN
              : (double)bly_bits_count(maybe, BLY_BITMAP_WORDS(nout)) /
                    (double)nout;
}

/* Integers in a pattern, as ids, times and addresses have them, are as good as
 * random ones: the mean of four filters is within four and a half deviations
 * (of more than a thousand such means) of that of random keys. */
LAW(integers_of_any_pattern)
{
    enum { RANDOM = 32 };
    needs(kind, BLY_CAN(HAS));
    if (kind->can & BLY_CAN(RANGE))
        skip_for("the kind keeps the order of integers");
    if (only_plans(row))
        skip_for("the option only changes plans");
    double sum = 0, squares = 0;
    for (uint64_t t = 0; t < RANDOM; t++) {
        const double rate = pattern_rate(row, -1, LAW_SEED + t);
        sum += rate;
        squares += rate * rate;
    }
    const double mean = sum / RANDOM;
    if (!(mean > 0))
        skip_for("the kind has no such rate, or wants values with its keys");
    const double seen =
        sqrt(fmax(0, squares / RANDOM - mean * mean) * RANDOM / (RANDOM - 1));
    const double least = sqrt(mean * (1 - mean) / PATTERN_ASKED);
    const double sd =
        fmax(seen, least) * sqrt(1.0 / PATTERN_FILTERS + 1.0 / RANDOM);
    for (unsigned p = 0; p < COUNT_OF(pattern_names); p++) {
        double rate = 0;
        for (uint64_t t = 0; t < PATTERN_FILTERS; t++)
            rate +=
                pattern_rate(row, (int)p, LAW_SEED + 100 + t) / PATTERN_FILTERS;
        if (getenv("BLY_FULL"))
            printf("    %-28s %-24s %+.1f sd\n", row->name, pattern_names[p],
                   (rate - mean) / sd);
        if (!(fabs(rate - mean) <= 4.5 * sd))
            fail_msg("%s: rate %g instead of %g, with deviation %g",
                     pattern_names[p], rate, mean, sd);
    }
}

int main(int argc, char **argv)
{
    return run_laws("rates", argc, argv);
}
