/*
 * test_laws_plans.c - what every kind promises about its plans
 *
 * Whatever is asked of plan, at the ends of every range and of every option:
 * it refuses, saying why, or it gives a shape that its own sane() accepts. A
 * shape that it does not would be written to files that cannot be read back.
 * No memory is taken; a plan for 2^48 keys costs as much as one for ten.
 */
#include "laws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/plan.h"

/* --------------------------------------------------------------- the ends */

typedef struct plan_counts {
    unsigned made, refused;
} plan_counts;

static void plan_one(const bly_spec *spec, plan_counts *n)
{
    bly_planned p;
    const bly_status st = bly_plan_spec(spec, &p);
    if (st) {
        assert_true(st == BLY_EINVAL || st == BLY_ERANGE || st == BLY_EUNFIT);
        assert_true(strlen(bly_error()) > 10);
        n->refused++;
        return;
    }
    n->made++;
    if (!p.kind->sane(&p.shape)) {
        fail_msg("%s for %llu items, rate %g, %llu bits, %s=%s: not sane",
                 p.kind->name, (unsigned long long)spec->items, spec->fpr,
                 (unsigned long long)spec->bits,
                 spec->noptions ? spec->options[0].name : "",
                 spec->noptions ? spec->options[0].value : "");
    }
    assert_true(isnan(p.set.fpr) || (p.set.fpr >= 0 && p.set.fpr <= 1));
    bly_prediction said;
    assert_ok(bly_plan(spec, &said));
    assert_true(said.nfacts <= BLY_MAX_FACTS);
}

/* Two of items, rate and bits, from one end of each to the other, in steps. */
static void plan_all(const bly_kind_info *kind, const bly_option *options,
                     size_t noptions, size_t step, plan_counts *n)
{
    static const uint64_t items[] = {
        0,          1, 2, 1000, 1000003, UINT64_C(1) << 33, UINT64_C(1) << 48,
        UINT64_MAX,
    };
    static const double rates[] = { 0, 0.999999, 0.5, 0.01, 1e-9, 0x1p-60 };
    static const uint64_t bits[] = { 1,
                                     7,
                                     64,
                                     1000,
                                     100000,
                                     UINT64_C(1) << 35,
                                     UINT64_C(1) << 49,
                                     UINT64_C(1) << 56,
                                     UINT64_MAX };
    bly_spec spec = { .kind = kind->name,
                      .options = options,
                      .noptions = noptions };
    for (size_t i = 0; i < COUNT_OF(items); i += step) {
        spec.items = items[i];
        for (size_t j = 0; j < COUNT_OF(rates); j += step) {
            spec.fpr = rates[j];
            plan_one(&spec, n);
        }
        spec.fpr = 0;
        for (size_t j = 0; j < COUNT_OF(bits); j += step) {
            spec.bits = bits[j];
            plan_one(&spec, n);
        }
        spec.bits = 0;
    }
    spec.items = 0;
    for (size_t i = 0; i < COUNT_OF(bits); i += step)
        for (size_t j = 1; j < COUNT_OF(rates); j += 2) {
            spec.bits = bits[i];
            spec.fpr = rates[j];
            plan_one(&spec, n);
        }
}

LAW(plans_are_sane)
{
    plan_counts n = { 0 };
    plan_all(kind, &row->option, row->noptions,
             row->noptions     ? 4
             : scaled(16) < 16 ? 2
                               : 1,
             &n);
    assert_true(n.made > 0 && n.refused > 0);
}

/* The value of an option at step `at` of its range: its ends, and some way in
 * from the lower one. */
static bool option_value(const bly_param *p, unsigned at, char *out,
                         size_t room)
{
    if (p->type == BLY_CHOICE) {
        if (at > (unsigned)p->max)
            return false;
        snprintf(out, room, "%s", p->choices[at]);
        return true;
    }
    const double inside[] = { p->min, p->max, p->min + 1, p->min + 7,
                              (p->min + p->max) / 2 };
    if (at >= COUNT_OF(inside) || inside[at] > p->max)
        return false;
    snprintf(out, room, p->type == BLY_REAL ? "%.17g" : "%.0f", inside[at]);
    return true;
}

LAW(plans_with_options_are_sane)
{
    if (row->noptions)
        skip_for("options are chosen by the law itself");
    plan_counts n = { 0 };
    for (size_t i = 0; i < kind->nparams; i++) {
        if (!bly_param_at(kind->params, i)->settable)
            continue;
        char value[64];
        for (unsigned at = 0; option_value(bly_param_at(kind->params, i), at,
                                           value, sizeof value);
             at++) {
            const bly_option option = { bly_param_at(kind->params, i)->name,
                                        value };
            plan_all(kind, &option, 1, scaled(16) < 16 ? 7 : 4, &n);
        }
    }
}

/* ------------------------------------------------------------------- rates */

/* A rate is one: from nothing in it to more than there can be. */
LAW(rates_are_rates)
{
    const bly_spec spec = law_spec(row, 1000);
    bly_planned p;
    assert_ok(bly_plan_spec(&spec, &p));
    if (!p.kind->rate)
        skip_for("the kind has no rate");
    assert_between(p.kind->rate(&p.shape, 0), 0, 2 * LAW_FPR);
    for (double n = 1; n < 1e18; n *= 3) {
        const double rate = p.kind->rate(&p.shape, n);
        if (isnan(rate)) /* no filter of this shape grows so far */
            assert_true(n > 0x1p40);
        else
            assert_between(rate, 0, 1 + 1e-9);
    }
}

/* A kind whose "no" may be wrong says how often, and no other does. */
LAW(wrong_noes_are_told)
{
    const bly_spec spec = law_spec(row, 1000);
    bly_prediction said;
    double missed = NAN;
    assert_ok(bly_plan(&spec, &said));
    for (size_t i = 0; i < said.nfacts; i++)
        if (strcmp(said.facts[i].name, "missed_mean") == 0)
            missed = said.facts[i].real;
    if (kind->traits & BLY_LIKELY_NO)
        assert_between(missed, 0, 1);
    else
        assert_true(isnan(missed));
}

/* ------------------------------------------------------------- conversions */

/* f as spec wants it: refused, or with every key of f and fit for a file. */
static bool convert_one(const bly_filter *f, const bly_spec *spec, size_t nkeys)
{
    bly_filter *g = NULL, *h;
    bly_kind_info to;
    const bly_status st = bly_convert(f, spec, &g);
    if (st) {
        assert_null(g);
        assert_true(st == BLY_EINVAL || st == BLY_ERANGE || st == BLY_EUNFIT ||
                    st == BLY_EFULL || st == BLY_ENOTSUP);
        return false;
    }
    bly_kind_of(g, &to);
    if (to.can & BLY_CAN(HAS))
        assert_int_equal(hits(g, 0, nkeys), nkeys);
    byte_array a = written(g);
    assert_ok(bly_load(a.at, a.n, NULL, &h));
    assert_true(bly_equal(g, h));
    bly_free(h);
    bly_free(g);
    free(a.at);
    return true;
}

/* Into every kind, its own among them, at every size that may be asked for. */
LAW(conversions_keep_every_key)
{
    if (!(kind->can & (BLY_CAN(RESIZE) | BLY_CAN(CONVERT))) ||
        !(kind->can & BLY_CAN(HAS)) || (kind->traits & BLY_LIKELY_NO))
        skip_for("the kind cannot do this");
    enum { KEYS = 300 };
    bly_filter *f = law_part(row, 1000, 0, KEYS);
    bly_stats stats;
    bly_stat(f, &stats);
    const uint64_t items[] = { 0, 1, 100, 1000, 5000 };
    const uint64_t bits[] = { 0, 100, stats.bits / 2, stats.bits,
                              4 * stats.bits };
    const double rates[] = { 0, 1e-6, 0.5 };
    bly_kind_info to;
    unsigned made = 0;
    for (size_t i = 0; bly_kind_at(i, &to); i++) {
        bly_spec spec = { .kind = to.name };
        for (size_t j = 0; j < COUNT_OF(items); j++)
            for (size_t b = 0; b < COUNT_OF(bits); b++)
                for (size_t r = 0; r < COUNT_OF(rates); r++) {
                    spec.items = items[j];
                    spec.bits = bits[b];
                    spec.fpr = rates[r];
                    made += convert_one(f, &spec, KEYS);
                }
        spec = (bly_spec){ .kind = to.name };
        for (size_t j = 0; j < to.nparams; j++) {
            char value[64];
            for (unsigned at = 0; bly_param_at(to.params, j)->settable &&
                                  option_value(bly_param_at(to.params, j), at,
                                               value, sizeof value);
                 at++) {
                const bly_option option = { bly_param_at(to.params, j)->name,
                                            value };
                spec.options = &option;
                spec.noptions = 1;
                made += convert_one(f, &spec, KEYS);
            }
            /* What it is already. */
            for (size_t k = 0; k < stats.nfacts; k++)
                if (bly_param_at(to.params, j)->settable &&
                    bly_param_at(to.params, j)->type == BLY_UINT &&
                    strcmp(stats.facts[k].name,
                           bly_param_at(to.params, j)->name) == 0) {
                    const bly_option option = {
                        bly_param_at(to.params, j)->name, value
                    };
                    snprintf(value, sizeof value, "%llu",
                             (unsigned long long)stats.facts[k].uint);
                    spec.options = &option;
                    spec.noptions = 1;
                    made += convert_one(f, &spec, KEYS);
                }
        }
    }
    assert_true(made > 0);
    bly_free(f);
}

int main(int argc, char **argv)
{
    return run_laws("plans", argc, argv);
}
