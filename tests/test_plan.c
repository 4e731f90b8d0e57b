/*
 * test_plan.c - from what a caller wants to a shape
 *
 * Bad input first: each has its status and a line that says what is wrong, no
 * filter, and nothing written where the result would have been. Then the laws
 * of planning, on every kind: capacity, rate and memory give each other, and
 * what is made is what was planned.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- bad input */

/* spec is refused by all that take one, and `word` is in the message. */
static void assert_refused(const bly_spec *spec, bly_status want,
                           const char *word)
{
    bly_prediction p, before;
    bly_filter *f = (bly_filter *)&p;
    memset(&p, 0xa5, sizeof p);
    before = p;
    assert_status(bly_plan(spec, &p), want);
    assert_memory_equal(&p, &before, sizeof p);
    assert_non_null(strstr(bly_error(), word));
    assert_null(strchr(bly_error(), '\n'));
    assert_true(bly_error()[strlen(bly_error()) - 1] != '.');
    const bly_status st = bly_new(spec, &f);
    assert_true(st == want || st == BLY_ENOTSUP);
    assert_null(f);
}

static void assert_no_builder(const bly_spec *spec, bly_status want)
{
    bly_builder *b = (bly_builder *)(uintptr_t)spec;
    assert_status(bly_builder_new(spec, &b), want);
    assert_null(b);
}

static void rates_out_of_range(void **state)
{
    (void)state;
    static const double rates[] = { -0.1,  -1e-300, 1,        1.5,
                                    1e300, NAN,     INFINITY, -INFINITY };
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        for (size_t j = 0; j < COUNT_OF(rates); j++) {
            bly_spec spec = spec_for(&kind, 1000);
            spec.fpr = rates[j];
            assert_refused(&spec, BLY_EINVAL, "rate");
            assert_no_builder(&spec, BLY_EINVAL);
            spec.items = 0; /* also where the last key must be waited for */
            assert_no_builder(&spec, BLY_EINVAL);
            spec.bits = 8192;
            assert_refused(&spec, BLY_EINVAL, "rate");
        }
    }
}

/* The smallest rates there are, which no kind need keep, and the largest. What
 * is planned is said: a rate above 0, and not above 1. */
static void rates_at_the_ends(void **state)
{
    (void)state;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        bly_spec spec = spec_for(&kind, 1000);
        bly_prediction p;
        static const double rates[] = { 5e-324, 1e-300,   1e-30,
                                        1e-15,  0.999999, 1 - 0x1p-53 };
        for (size_t j = 0; j < COUNT_OF(rates); j++) {
            spec.fpr = rates[j];
            const bly_status st = bly_plan(&spec, &p);
            if (st)
                assert_true(st == BLY_EINVAL || st == BLY_ERANGE);
            else
                assert_true(p.fpr > 0 && p.fpr <= 1);
        }
    }
}

static void too_little_is_given(void **state)
{
    (void)state;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        if (kind.traits & BLY_SELF_SIZED)
            continue;
        bly_spec spec = { .kind = kind.name };
        assert_refused(&spec, BLY_EINVAL, "items");
        spec.fpr = 0.01;
        assert_refused(&spec, BLY_EINVAL, "items");
    }
}

static void too_much_is_given(void **state)
{
    (void)state;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        bly_spec spec = spec_for(&kind, 1000);
        spec.bits = 10000;
        if (!(kind.traits & BLY_SELF_SIZED)) {
            assert_refused(&spec, BLY_EINVAL, "two");
            assert_no_builder(&spec, BLY_EINVAL);
        }
        static const unsigned char secret[BLY_SECRET_BYTES];
        spec = spec_for(&kind, 1000);
        spec.secret = secret;
        assert_refused(&spec, BLY_EINVAL, "seed");
        assert_no_builder(&spec, BLY_EINVAL);
    }
}

static void unknown_kinds(void **state)
{
    (void)state;
    static const char *const names[] = { "",         "nonsense", "Classic",
                                         "blocked ", " blocked", "block",
                                         "%s%n" };
    bly_kind_info kind, untouched;
    memset(&untouched, 0xa5, sizeof untouched);
    kind = untouched;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bly_spec spec = { .kind = names[i], .items = 1000, .fpr = 0.01 };
        assert_refused(&spec, BLY_EINVAL, names[i]);
        assert_no_builder(&spec, BLY_EINVAL);
        assert_false(bly_kind_named(names[i], &kind));
        assert_memory_equal(&kind, &untouched, sizeof kind);
    }
    /* What would be right: every kind there is. */
    bly_spec spec = { .kind = "nonsense", .items = 1000, .fpr = 0.01 };
    bly_prediction p;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    char line[1024];
    snprintf(line, sizeof line, "%s", bly_error());
    size_t n = 0;
    for (; bly_kind_at(n, &kind); n++)
        assert_non_null(strstr(line, kind.name));
    kind = untouched;
    assert_false(bly_kind_at(n, &kind));
    assert_false(bly_kind_at(SIZE_MAX, &kind));
    assert_memory_equal(&kind, &untouched, sizeof kind);
}

static bool has_option(const bly_kind_info *kind, const char *name)
{
    for (size_t i = 0; i < kind->nparams; i++)
        if (bly_param_at(kind->params, i)->settable &&
            strcmp(bly_param_at(kind->params, i)->name, name) == 0)
            return true;
    return false;
}

static void options_of_another_kind(void **state)
{
    (void)state;
    bly_kind_info mine, other;
    for (size_t i = 0; bly_kind_at(i, &mine); i++) {
        for (size_t j = 0; bly_kind_at(j, &other); j++) {
            for (size_t p = 0; p < other.nparams; p++) {
                const bly_param *param = bly_param_at(other.params, p);
                if (!param->settable || has_option(&mine, param->name))
                    continue;
                const bly_option option = {
                    param->name,
                    param->type == BLY_CHOICE ? param->choices[0] : "1",
                };
                bly_spec spec = spec_for(&mine, 1000);
                spec.options = &option;
                spec.noptions = 1;
                assert_refused(&spec, BLY_EINVAL, param->name);
                assert_non_null(strstr(bly_error(), mine.name));
            }
        }
    }
}

/* Wherever the number of probes is an option: none, too many, more than
 * there are bits. */
static void bad_numbers_of_probes(void **state)
{
    (void)state;
    bly_kind_info kind;
    size_t seen = 0;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        if (!has_option(&kind, "k"))
            continue;
        static const char *const bad[] = {
            "0", "256", "1e3", "-3", "2.5", "18446744073709551615"
        };
        for (size_t j = 0; j < COUNT_OF(bad); j++) {
            const bly_option option = { "k", bad[j] };
            bly_spec spec = spec_for(&kind, 1000);
            spec.options = &option;
            spec.noptions = 1;
            assert_refused(&spec, BLY_EINVAL, "k");
            assert_refused(&spec, BLY_EINVAL, bad[j]);
        }
        const bly_option option = { "k", "16" };
        bly_spec spec = { .kind = kind.name,
                          .items = 1000,
                          .bits = 15,
                          .options = &option,
                          .noptions = 1 };
        bly_prediction p;
        /* Elsewhere cells may be more or less than bits, or are sent. */
        if ((kind.can & BLY_CAN(INTERSECT)) && !(kind.can & BLY_CAN(REMOVE)) &&
            !(kind.traits & BLY_CODED)) {
            assert_status(bly_plan(&spec, &p), BLY_EINVAL);
            seen++;
        }
    }
    assert_true(seen > 0);
}

/* One bit, one item: as little as can be asked for. */
static void as_little_as_can_be(void **state)
{
    (void)state;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        if (kind.traits & BLY_SELF_SIZED)
            continue;
        for (uint64_t bits = 1; bits < 2000; bits += 1 + bits / 20) {
            bly_spec spec = { .kind = kind.name, .items = 1, .bits = bits };
            bly_prediction p;
            const bly_status st = bly_plan(&spec, &p);
            assert_true(st == BLY_OK || st == BLY_EINVAL);
            if (!st)
                assert_true(p.bits <= bits && p.bits >= 1);
            spec.items = 0;
            spec.fpr = 1e-9;
            const bly_status few = bly_plan(&spec, &p);
            assert_true(few == BLY_OK || few == BLY_EINVAL);
            if (!few)
                assert_true(p.bits <= bits && p.items >= 1 && p.fpr <= 1e-9);
        }
    }
}

/* ------------------------------------------------------------ known plans */

static double fact_real(const bly_prediction *p, const char *name)
{
    for (size_t i = 0; i < p->nfacts; i++)
        if (strcmp(p->facts[i].name, name) == 0)
            return p->facts[i].real;
    fail_msg("no fact %s", name);
    return NAN;
}

static void known_plans(void **state)
{
    (void)state;
    bly_prediction p;
    bly_spec spec = { .kind = "classic", .items = 1000, .bits = 8000 };
    assert_ok(bly_plan(&spec, &p));
    assert_int_equal((int)fact_real(&p, "k"), 6);
    assert_near(p.fpr, 0.0216, 0.001);
    spec = (bly_spec){ .kind = "classic", .items = 50000, .fpr = 0.01 };
    assert_ok(bly_plan(&spec, &p));
    assert_int_equal(p.bits, 479253);
    assert_int_equal((int)fact_real(&p, "k"), 7);
    assert_int_equal((int)fact_real(&p, "rule_b_bits"), 479648);
    assert_near(fact_real(&p, "fpr_exact"), 0.0100393907, 1e-8);
}

/* No kind is the default kind, and zeros are defaults. */
static void defaults(void **state)
{
    (void)state;
    bly_kind_info kind;
    bly_prediction p;
    bly_filter *f;
    assert_true(bly_kind_at(0, &kind));
    assert_ok(bly_plan(&(bly_spec){ .items = 1000 }, &p));
    assert_string_equal(p.kind, kind.name);
    assert_between(p.fpr, 0.005, 0.0101);
    assert_ok(bly_new(&(bly_spec){ .items = 1000 }, &f));
    bly_kind_info of;
    bly_kind_of(f, &of);
    assert_int_equal(of.id, kind.id);
    assert_int_equal(bly_hasher_of(f)->id, BLY_HASH_XXH3);
    assert_int_equal(bly_hasher_of(f)->seed, 0);
    bly_free(f);
    bly_free(NULL);
}

static void hashers(void **state)
{
    (void)state;
    unsigned char secret[BLY_SECRET_BYTES] = { 0 };
    bly_hasher hs, same;
    assert_ok(bly_hasher_for(&(bly_spec){ .seed = 42 }, &hs));
    assert_int_equal(hs.id, BLY_HASH_XXH3);
    assert_int_equal(hs.seed, 42);
    secret[0] = 1;
    assert_ok(bly_hasher_for(&(bly_spec){ .secret = secret }, &hs));
    assert_int_equal(hs.id, BLY_HASH_SIPHASH13);
    assert_int_equal(hs.secret[0], 1);
    same = hs;
    assert_status(
        bly_hasher_for(&(bly_spec){ .secret = secret, .seed = 1 }, &hs),
        BLY_EINVAL);
    assert_memory_equal(&hs, &same, sizeof hs);
}

static void statuses_have_texts(void **state)
{
    (void)state;
    for (int st = 0; st < BLY_STATUS_COUNT_; st++) {
        assert_true(bly_status_text((bly_status)st)[0]);
        for (int other = 0; other < st; other++)
            assert_string_not_equal(bly_status_text((bly_status)st),
                                    bly_status_text((bly_status)other));
    }
    assert_non_null(bly_status_text((bly_status)-1));
    assert_non_null(bly_status_text((bly_status)1000));
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", BLY_VERSION_MAJOR,
             BLY_VERSION_MINOR, BLY_VERSION_PATCH);
    assert_string_equal(bly_version(), version);
}

/* ------------------------------------------------------------------- laws */

/* A kind may leave memory unused that it has no use for. What it plans then is
 * a size that exists, with a rate that so many bits can have, and no worse one
 * than a little memory gives: a product that wrapped around shows in one of
 * these. */
static void assert_no_wrap(const bly_spec *huge)
{
    bly_spec little = *huge;
    bly_prediction p, q;
    bly_filter *f = NULL;
    const bly_status st = bly_plan(huge, &p);
    if (st) {
        assert_true(st == BLY_ERANGE || st == BLY_EINVAL);
        assert_true(bly_new(huge, &f) != BLY_OK);
        assert_null(f);
        return;
    }
    little.bits = 1 << 20;
    assert_ok(bly_plan(&little, &q));
    assert_true(p.bits <= UINT64_C(1) << 56);
    assert_true(p.bytes >= p.bits / 8);
    assert_true(p.bits_per_key >= log2(1 / p.fpr));
    assert_between(p.fpr, 0, q.fpr);
}

/* More than the machine, or 64-bit hashes, can hold: a status, and soon. */
LAW(sizes_past_the_machine)
{
    static const uint64_t huge[] = {
        UINT64_MAX,        UINT64_MAX - 63,         UINT64_C(1) << 63,
        UINT64_C(1) << 62, (UINT64_C(1) << 56) + 1, UINT64_C(1) << 56,
    };
    bly_prediction p;
    bly_filter *f = NULL;
    bly_spec spec;
    for (size_t j = 0; j < COUNT_OF(huge); j++) {
        spec = law_spec(row, huge[j]);
        assert_status(bly_plan(&spec, &p), BLY_ERANGE);
        assert_true(bly_new(&spec, &f) != BLY_OK);
        assert_null(f);
        spec.fpr = 1e-12;
        assert_status(bly_plan(&spec, &p), BLY_ERANGE);
        if (kind->traits & BLY_SELF_SIZED)
            continue;
        spec.items = 1000;
        spec.fpr = 0;
        spec.bits = huge[j];
        assert_no_wrap(&spec);
    }
    /* Few bits each, but more than 64-bit hashes can tell apart. */
    spec = law_spec(row, (UINT64_C(1) << 48) + 1);
    spec.fpr = 0.999;
    assert_status(bly_plan(&spec, &p), BLY_ERANGE);
    /* A plan that is possible on paper, for more memory than there is. */
    spec = law_spec(row, UINT64_C(1) << 44);
    spec.max_bytes = UINT64_C(1) << 40;
    const bly_status st = bly_new(&spec, &f);
    assert_true(st == BLY_ERANGE || st == BLY_ENOMEM || st == BLY_ENOTSUP);
    assert_null(f);
}

static const bly_fact *fact_named(const bly_fact *facts, size_t n,
                                  const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(facts[i].name, name) == 0)
            return &facts[i];
    return NULL;
}

/* Of capacity, rate and memory any two give the third, and all three ways
 * agree; at every size, without making anything. */
LAW(any_two_give_the_third)
{
    static const uint64_t items[] = {
        1, 2, 10, 1000, 123456, 1000000000, UINT64_C(1) << 40,
    };
    static const double rates[] = { 0.3, 0.1, 0.01, 0.001, 1e-5 };
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        for (size_t j = 0; j < COUNT_OF(rates); j++) {
            bly_spec spec = law_spec(row, items[i]);
            bly_prediction by_rate, by_bits, by_both;
            spec.fpr = rates[j];
            const bly_status st = bly_plan(&spec, &by_rate);
            /* A kind may have limits, which it names; not in the middle. */
            if (st) {
                assert_true(st == BLY_EINVAL || st == BLY_ERANGE);
                assert_true(items[i] < 1000 || items[i] > 1000000000 ||
                            rates[j] > 0.1 || rates[j] < 0.001);
                continue;
            }
            assert_string_equal(by_rate.kind, kind->name);
            assert_int_equal(by_rate.items, items[i]);
            /* Rounding k, or a slice, to whole bits costs a few percent of the
             * rate, and more where there are few bits to round. */
            const bool many = items[i] >= 1000;
            assert_between(by_rate.fpr, 0, many ? rates[j] * 1.05 : 1);
            assert_true(8 * by_rate.bytes >= by_rate.bits);
            assert_near(by_rate.bits_per_key,
                        (double)by_rate.bits / (double)items[i], 1e-12);
            /* No set of n keys can be told from others in less. */
            if (many && !(kind->traits & BLY_LIKELY_NO))
                assert_true(by_rate.bits_per_key >= log2(1 / by_rate.fpr));
            if (kind->traits & BLY_SELF_SIZED)
                continue;

            spec.fpr = 0;
            spec.bits = by_rate.bits;
            assert_ok(bly_plan(&spec, &by_bits));
            assert_int_equal(by_bits.items, items[i]);
            assert_true(by_bits.bits <= by_rate.bits);
            /* With the memory fixed the best shape is at least as good, but
             * for a k that rounds the other way. */
            if (!many)
                continue; /* a handful of bits: rounding has the last word */
            assert_between(by_bits.fpr, 0, by_rate.fpr * 1.001);

            spec.items = 0;
            spec.fpr = by_bits.fpr * (1 + 1e-9);
            assert_ok(bly_plan(&spec, &by_both));
            assert_true(by_both.fpr <= spec.fpr);
            assert_true(by_both.bits <= spec.bits);
            assert_between((double)by_both.items, (double)items[i],
                           1.05 * (double)items[i] + 10);
        }
    }
}

/* More memory is never worse, and a lower rate never smaller. */
LAW(plans_are_in_order)
{
    if (kind->traits & BLY_SELF_SIZED)
        skip_for("the kind chooses its size itself");
    bly_prediction p;
    double before = 1;
    for (uint64_t bits = 4096; bits <= 1 << 20; bits += bits / 3) {
        bly_spec spec = law_spec(row, 5000);
        spec.fpr = 0;
        spec.bits = bits;
        const bly_status st = bly_plan(&spec, &p);
        if (st == BLY_EINVAL && before == 1)
            continue; /* less than a key needs at least */
        assert_ok(st);
        assert_between(p.fpr, 0, before * (1 + 1e-9));
        assert_true(p.bits <= bits);
        before = p.fpr;
    }
    uint64_t bits_before = 0;
    for (double rate = 0.3; rate > 1e-7; rate *= 0.7) {
        bly_spec spec = law_spec(row, 5000);
        spec.fpr = rate;
        assert_ok(bly_plan(&spec, &p));
        assert_true(p.bits >= bits_before);
        bits_before = p.bits;
    }
}

/* What is made is what was planned. */
LAW(made_as_planned)
{
    static const double rates[] = { 0, 0.1, 0.0001 };
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        bly_spec spec = law_spec(row, 3000);
        spec.fpr = rates[i];
        bly_prediction p;
        bly_stats stats;
        assert_ok(bly_plan(&spec, &p));
        if (rates[i] == 0) /* items alone: one in a hundred */
            assert_between(p.fpr, 1e-4, 0.0101);
        bly_filter *f = filled_from(&spec, 0, 3000);
        bly_peek(f, &stats);
        assert_int_equal(stats.capacity, p.items);
        assert_true(stats.fpr_at_capacity == p.fpr);
        if (takes_values(
                kind)) { /* the builder knew the values, plan did not */
            assert_true(stats.bits <= p.bits && stats.bytes < p.bytes + 8192);
            bly_free(f);
            continue;
        }
        assert_int_equal(stats.bits, p.bits);
        assert_true(stats.bytes >= p.bytes && stats.bytes < p.bytes + 8192);
        assert_true(p.nfacts <= BLY_MAX_FACTS && stats.nfacts <= BLY_MAX_FACTS);
        for (size_t j = 0; j < stats.nfacts; j++) {
            if (!stats.facts[j].param)
                continue;
            const bly_fact *planned =
                fact_named(p.facts, p.nfacts, stats.facts[j].name);
            assert_non_null(planned);
            assert_true(planned->uint == stats.facts[j].uint);
            assert_true(planned->real == stats.facts[j].real);
        }
        bly_free(f);
    }
}

/* No more than was allowed: the plan is known before memory is taken. */
LAW(max_bytes_is_a_limit)
{
    bly_spec spec = law_spec(row, 10000);
    bly_filter *f = NULL;
    bly_builder *b;
    spec.max_bytes = 100;
    if (kind->can & BLY_CAN(ADD)) {
        assert_status(bly_new(&spec, &f), BLY_ERANGE);
        assert_null(f);
        assert_non_null(strstr(bly_error(), "100"));
    }
    bly_status st = bly_builder_new(&spec, &b);
    if (!st) {
        const uint64_t hash = 1, value = 1;
        assert_ok(
            bly_builder_add(b, &hash, takes_values(kind) ? &value : NULL, 1));
        st = bly_builder_finish(b, 1, &f);
        bly_builder_free(b);
    }
    assert_int_equal(st, BLY_ERANGE);
    assert_null(f);

    spec.max_bytes = 10000000;
    f = filled_from(&spec, 0, 1000);
    byte_array a = written(f);
    bly_free(f);
    const bly_access small = { .max_bytes = 100 };
    assert_status(bly_load(a.at, a.n, &small, &f), BLY_ERANGE);
    assert_null(f);
    free(a.at);
}

static void assert_option_refused(const law_row *row, const char *name,
                                  const char *value)
{
    const bly_option option = { name, value };
    bly_spec spec = spec_for(&row->kind, 1000);
    bly_prediction p;
    bly_filter *f = NULL;
    bly_builder *b = NULL;
    spec.options = &option;
    spec.noptions = 1;
    if (bly_plan(&spec, &p) != BLY_EINVAL)
        fail_msg("%s=%s is taken", name, value);
    assert_non_null(strstr(bly_error(), name));
    assert_null(strchr(bly_error(), '\n'));
    if (row->kind.can & BLY_CAN(ADD)) {
        assert_status(bly_new(&spec, &f), BLY_EINVAL);
        assert_null(f);
    }
    assert_status(bly_builder_new(&spec, &b), BLY_EINVAL);
    assert_null(b);
}

/* What is wrong with an option is said with its name. */
LAW(option_errors_name_the_option)
{
    char text[64];
    assert_option_refused(row, "no_such_option", "1");
    assert_option_refused(row, "", "1");
    for (size_t i = 0; i < kind->nparams; i++) {
        const bly_param *p = bly_param_at(kind->params, i);
        if (!p->settable) {
            assert_option_refused(row, p->name, "1");
            continue;
        }
        assert_option_refused(row, p->name, "");
        assert_option_refused(row, p->name, "-1");
        assert_option_refused(row, p->name, "nonsense");
        assert_option_refused(row, p->name, "nan");
        if (p->type != BLY_CHOICE) {
            snprintf(text, sizeof text, "%.17g", p->max * 1.01 + 1);
            assert_option_refused(row, p->name, text);
            if (p->min > 0) {
                snprintf(text, sizeof text, "%.17g",
                         p->type == BLY_UINT ? p->min - 1 : p->min / 2);
                assert_option_refused(row, p->name, text);
            }
        }
        if (p->type == BLY_UINT)
            assert_option_refused(row, p->name, "1.5");
        /* Twice is once too often, even with one value. */
        const char *fine = p->type == BLY_CHOICE ? p->choices[0] : "1";
        const bly_option twice[] = { { p->name, fine }, { p->name, fine } };
        bly_spec spec = spec_for(kind, 1000);
        bly_prediction prediction;
        spec.options = twice;
        spec.noptions = 2;
        assert_status(bly_plan(&spec, &prediction), BLY_EINVAL);
        assert_non_null(strstr(bly_error(), p->name));
    }
}

/* Every choice of an option can be planned, and is found again in the plan. */
LAW(choices_are_honoured)
{
    for (size_t i = 0; i < kind->nparams; i++) {
        const bly_param *p = bly_param_at(kind->params, i);
        if (!p->settable || p->type != BLY_CHOICE)
            continue;
        for (uint64_t c = 0; p->choices[c]; c++) {
            const bly_option option = { p->name, p->choices[c] };
            bly_spec spec = spec_for(kind, 1000);
            bly_prediction prediction;
            spec.options = &option;
            spec.noptions = 1;
            assert_ok(bly_plan(&spec, &prediction));
            const bly_fact *fact =
                fact_named(prediction.facts, prediction.nfacts, p->name);
            if (p->planning)
                continue; /* it steers, and is not kept */
            assert_non_null(fact);
            assert_true(fact->param && fact->uint == c);
            assert_string_equal(fact->word, p->choices[c]);
        }
    }
}

static void *plan_elsewhere(void *arg)
{
    void **const both = arg;
    assert_ok(bly_plan((const bly_spec *)both[0], both[1]));
    return NULL;
}

static void assert_same_plan(const bly_prediction *a, const bly_prediction *b)
{
    assert_int_equal(a->items, b->items);
    assert_int_equal(a->bits, b->bits);
    assert_int_equal(a->nfacts, b->nfacts);
    assert_memory_equal(&a->fpr, &b->fpr, sizeof a->fpr); /* NAN is itself */
    for (size_t i = 0; i < a->nfacts; i++) {
        assert_string_equal(a->facts[i].name, b->facts[i].name);
        assert_memory_equal(&a->facts[i].real, &b->facts[i].real, 8);
    }
}

/* A thread remembers its last plan; one that has none says the same, whatever
 * was planned before, and whether or not a plan failed in between. */
LAW(plans_do_not_depend_on_what_was_planned_before)
{
    const bly_spec a = spec_for(kind, 1000), b = spec_for(kind, 1001);
    const bly_spec wrong = { .kind = kind->name, .items = 1000, .fpr = 2 };
    const bly_spec *const specs[] = { &a, &a, &b, &a, &b, &b };
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        bly_prediction here = { 0 }, there = { 0 };
        void *both[] = { (void *)(uintptr_t)specs[i], &there };
        pthread_t thread;
        assert_ok(bly_plan(specs[i], &here));
        assert_int_equal(pthread_create(&thread, NULL, plan_elsewhere, both),
                         0);
        pthread_join(thread, NULL);
        assert_same_plan(&here, &there);
        if (i % 2)
            assert_status(bly_plan(&wrong, &here), BLY_EINVAL);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_out_of_range),
        cmocka_unit_test(rates_at_the_ends),
        cmocka_unit_test(too_little_is_given),
        cmocka_unit_test(too_much_is_given),
        cmocka_unit_test(unknown_kinds),
        cmocka_unit_test(options_of_another_kind),
        cmocka_unit_test(bad_numbers_of_probes),
        cmocka_unit_test(as_little_as_can_be),
        cmocka_unit_test(known_plans),
        cmocka_unit_test(defaults),
        cmocka_unit_test(hashers),
        cmocka_unit_test(statuses_have_texts),
    };
    return run_laws_and("plan", tests, COUNT_OF(tests), argc, argv);
}
