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

#include "core/maths.h"

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

int main(int argc, char **argv)
{
    return run_laws("rates", argc, argv);
}
