/*
 * test_sets.c - operations on whole filters, beyond what all kinds promise
 *
 * Folding gives the filter that would have been built so small; the published
 * rates of folded filters; what fingerprints that collide by chance do to
 * estimates; a thousand random pairs whose intersection is estimated; unions of
 * cuckoo tables; filters that are combined while they are read.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/maths.h"
#include "kinds/kind.h"

#define MAX_OPTIONS 4

/* A spec of kind,name=value,... as a test writes it. */
typedef struct spelt {
    const char *kind;
    bly_option options[MAX_OPTIONS];
} spelt;

static bly_spec spec_of(const spelt *s, uint64_t items, uint64_t bits)
{
    bly_spec spec = { .kind = s->kind,
                      .items = items,
                      .bits = bits,
                      .fpr = bits ? 0 : LAW_FPR,
                      .seed = LAW_SEED,
                      .options = s->options };
    while (spec.noptions < MAX_OPTIONS && s->options[spec.noptions].name)
        spec.noptions++;
    return spec;
}

static void add_ints(bly_filter *f, uint64_t first, size_t n)
{
    for (uint64_t key = first; key < first + n; key++)
        assert_ok(bly_add_ints(f, &key, 1, NULL, NULL));
}

static bly_filter *folded(const bly_filter *f)
{
    bly_filter *half;
    assert_ok(bly_fold(f, &half));
    return half;
}

/* ---------------------------------------------------------------- folding */

/* Fold, then add: the filter of half the size. Add, then fold: the same, to
 * the last bit, and once more. */
static void folding_and_adding_commute(void **state)
{
    (void)state;
    static const spelt kinds[] = {
        { "classic", { { "folds", "2" } } },
        { "classic", { { "folds", "2" }, { "layout", "shared" } } },
        { "classic", { { "folds", "2" }, { "layout", "partitioned" } } },
        { "blocked", { { "folds", "2" } } },
        { "blocked", { { "folds", "2" }, { "k", "16" } } },
        { "vicounting", { { "folds", "2" } } },
        { "vicounting", { { "folds", "2" }, { "increments", "b3" } } },
        { "vicounting", { { "folds", "2" }, { "width", "7" } } },
        { "quotient", { { "folds", "2" } } },
        { "countmin", { { "folds", "2" } } },
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const bly_spec spec = spec_of(&kinds[i], 20011, 0);
        bly_filter *large, *small;
        assert_ok(bly_new(&spec, &large));
        small = folded(large);
        for (int round = 0; round < 2; round++) {
            add_ints(large, (uint64_t)round * 1000, 1000);
            add_ints(small, (uint64_t)round * 1000, 1000);
            bly_filter *half = folded(large);
            assert_true(bly_equal(half, small));
            bly_free(half);
        }
        bly_filter *half = folded(large), *quarter = folded(half);
        bly_filter *again = folded(small);
        assert_true(bly_equal(quarter, again));
        bly_free(half);
        bly_free(quarter);
        bly_free(again);
        bly_free(large);
        bly_free(small);
    }
}

/* It is the filter that is built with so many bits, not only like itself. */
static void a_fold_is_the_filter_of_half_the_bits(void **state)
{
    (void)state;
    static const spelt kinds[] = {
        { "classic", { { "k", "6" } } },
        { "classic", { { "k", "6" }, { "layout", "shared" } } },
        { "classic", { { "k", "5" }, { "layout", "partitioned" } } },
        { "blocked", { { "k", "8" } } },
        { "counting", { { "k", "6" } } },
    };
    static const uint64_t bits[] = { 16000, 16000, 16000, 512 * 30, 64000 };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const bly_spec whole = spec_of(&kinds[i], 1000, bits[i]);
        const bly_spec less = spec_of(&kinds[i], 1000, bits[i] / 2);
        bly_filter *large, *small;
        assert_ok(bly_new(&whole, &large));
        assert_ok(bly_new(&less, &small));
        add_ints(large, 0, 20);
        add_ints(small, 0, 20);
        bly_filter *half = folded(large);
        assert_true(bly_equal(half, small));
        bly_free(half);
        bly_free(large);
        bly_free(small);
    }
}

/* 1000 keys in 16000 bits, k = 6: 0.0935 %, folded 2.1577 %, then 21.9831 %.
 * With k = 11, 0.0459 % and 4.0509 %: further from the best k, it costs more.
 * What the filters say of themselves is the exact value, a little above. */
static void rates_of_folded_filters(void **state)
{
    (void)state;
    static const struct {
        const char *k;
        double rates[3];
    } rows[] = { { "6", { 0.000935, 0.021577, 0.219831 } },
                 { "11", { 0.000459, 0.040509, 0 } } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const spelt classic = { "classic", { { "k", rows[i].k } } };
        const bly_spec spec = spec_of(&classic, 1000, 16000);
        bly_filter *f = filled_from(&spec, 0, 1000);
        for (size_t j = 0; j < 3 && rows[i].rates[j] > 0; j++) {
            bly_stats s;
            bly_stat(f, &s);
            assert_near(s.fpr_at_capacity, rows[i].rates[j], 0.02);
            assert_near(s.fpr_now, rows[i].rates[j], 0.15);
            const double q = 400000, p = s.fpr_now;
            assert_between((double)hits(f, ABSENT, (size_t)q) / q,
                           p - 6 * sqrt(p / q) - 0.01 * p,
                           p + 6 * sqrt(p / q) + 0.01 * p);
            bly_filter *half = folded(f);
            bly_free(f);
            f = half;
        }
        bly_free(f);
    }
}

static void assert_refuses_to_fold(const spelt *s, uint64_t items,
                                   uint64_t bits, const char *says)
{
    const bly_spec spec = spec_of(s, items, bits);
    bly_filter *f, *half = (bly_filter *)&spec;
    assert_ok(bly_new(&spec, &f));
    assert_status(bly_fold(f, &half), BLY_EINVAL);
    assert_null(half);
    assert_non_null(strstr(bly_error(), says));
    bly_free(f);
}

static void what_cannot_be_folded(void **state)
{
    (void)state;
    const spelt classic = { "classic", { { "k", "6" } } };
    const spelt sliced = { "classic",
                           { { "k", "5" }, { "layout", "partitioned" } } };
    const spelt blocked = { "blocked", { { "k", "8" } } };
    assert_refuses_to_fold(&classic, 1000, 15999, "option folds");
    assert_refuses_to_fold(&sliced, 1000, 5 * 1001, "option folds");
    assert_refuses_to_fold(&blocked, 1000, 512 * 31, "option folds");
    assert_refuses_to_fold(&classic, 1, 10, "too few"); /* k = 6 in 5 bits */

    const spelt cuckoo = { "cuckoo", { { 0 } } };
    const bly_spec spec = spec_of(&cuckoo, 1000, 0);
    bly_filter *f, *half;
    assert_ok(bly_new(&spec, &f));
    assert_status(bly_fold(f, &half), BLY_ENOTSUP);
    assert_non_null(strstr(bly_error(), "classic"));
    bly_free(f);

    /* Memory for less than 2^folds of something; a width that is not a
     * multiple.
     */
    const spelt often = { "classic", { { "folds", "12" } } };
    const spelt odd = { "countmin", { { "width", "1001" }, { "folds", "1" } } };
    bly_spec wrong = spec_of(&often, 10, 4095);
    assert_status(bly_new(&wrong, &f), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "4096"));
    wrong = spec_of(&odd, 0, 0);
    wrong.fpr = 0;
    assert_status(bly_new(&wrong, &f), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "1000"));
}

/* A quotient filter must have room for its fingerprints: it says so. */
static void quotients_fold_while_there_is_room(void **state)
{
    (void)state;
    const spelt quotient = { "quotient", { { "folds", "1" } } };
    const bly_spec spec = spec_of(&quotient, 10000, 0);
    bly_filter *f = filled_from(&spec, 0, 4000), *half = folded(f);
    bly_stats whole, less;
    bly_stat(f, &whole);
    bly_stat(half, &less);
    assert_true(less.capacity < whole.capacity);
    assert_near(less.fpr_now, 2 * whole.fpr_now, 0.01);
    assert_near(less.items_estimate, whole.items_estimate, 0.01);
    bly_free(half);
    add_ints(f, 4000, 4000);
    assert_status(bly_fold(f, &half), BLY_EFULL);
    assert_null(half);
    bly_free(f);
}

/* Two fingerprints that become one have the counts of both. */
static void fingerprints_that_fall_together(void **state)
{
    (void)state;
    const spelt quotient = { "quotient",
                             { { "remainder", "2" }, { "folds", "1" } } };
    const bly_spec spec = spec_of(&quotient, 2000, 20000);
    bly_filter *large, *small;
    assert_ok(bly_new(&spec, &large));
    small = folded(large);
    add_ints(large, 0, 1500);
    add_ints(small, 0, 1500);
    bly_filter *half = folded(large);
    assert_true(bly_equal(half, small));
    bly_free(half);
    bly_free(large);
    bly_free(small);
}

/* A counter of 32 bits that would overflow is not folded. */
static void sums_that_do_not_fit(void **state)
{
    (void)state;
    const spelt narrow = {
        "countmin", { { "width", "2" }, { "depth", "1" }, { "counter", "32" } }
    };
    bly_spec spec = spec_of(&narrow, 0, 0);
    bly_filter *f, *half;
    spec.fpr = 0;
    assert_ok(bly_new(&spec, &f));
    const uint64_t h[] = { 0, 1 }, by[] = { UINT32_MAX, 1 };
    assert_ok(bly_increase_hashes(f, h, by, 2, NULL));
    assert_status(bly_fold(f, &half), BLY_ERANGE);
    assert_null(half);
    bly_free(f);
}

/* Two keys whose counters become one: their sum where keys are removed, or rows
 * sum up to a total; else the greater of the two is enough. */
static void what_becomes_of_two_counters(void **state)
{
    (void)state;
    static const struct {
        spelt kind;
        uint64_t bits, count;
    } rows[] = {
        { { "spectral",
            { { "k", "1" }, { "update", "selection" }, { "width", "32" } } },
          64,
          8 },
        { { "spectral",
            { { "k", "1" }, { "update", "recurring" }, { "width", "32" } } },
          98,
          8 },
        { { "spectral",
            { { "k", "1" }, { "update", "increase" }, { "width", "32" } } },
          64,
          5 },
        { { "countmin", { { "width", "2" }, { "depth", "1" } } }, 0, 8 },
        { { "countmin",
            { { "width", "2" },
              { "depth", "1" },
              { "update", "conservative" } } },
          0,
          5 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_spec spec =
            spec_of(&rows[i].kind, rows[i].bits ? 1 : 0, rows[i].bits);
        const uint64_t h[] = { 0, 1 }, by[] = { 5, 3 };
        uint64_t counts[2];
        bly_filter *f;
        spec.fpr = 0;
        assert_ok(bly_new(&spec, &f));
        assert_ok(bly_increase_hashes(f, h, by, 2, NULL));
        assert_ok(bly_count_hashes(f, h, 2, counts));
        assert_true(counts[0] == 5 && counts[1] == 3);
        bly_filter *half = folded(f);
        assert_ok(bly_count_hashes(half, h, 2, counts));
        assert_true(counts[0] == rows[i].count && counts[1] == rows[i].count);
        bly_free(half);
        bly_free(f);
    }
}

/* ------------------------------------------------------------- estimating */

/* Three deviations of a variance lambda + 0.3 hold 99 of 100 cases of Poisson's
 * law, whatever lambda is; those of lambda alone do not. */
static void chance_of_few_collisions(void **state)
{
    (void)state;
    double bare = 0;
    for (double lambda = 1e-6; lambda < 40; lambda *= 1.01) {
        const double sd = sqrt(lambda + 0.3);
        const double above = floor(lambda + 3 * sd) + 1;
        const double below = ceil(lambda - 3 * sd);
        double out = bly_poisson_tail(lambda, above);
        out += below > 0 ? 1 - bly_poisson_tail(lambda, below) : 0;
        assert_true(out <= 0.01);
        const double first = floor(lambda + 3 * sqrt(lambda)) + 1;
        bare = fmax(bare, bly_poisson_tail(lambda, first));
    }
    assert_true(bare > 0.05);
}

/* Where 0.04 collisions are expected, one pair of sets in 25 has one: that must
 * not be past three deviations. */
static void intersections_of_few_collisions(void **state)
{
    (void)state;
    static const char *const kinds[] = { "cuckoo", "quotient" };
    const size_t ncases = scaled(400), n = 1000;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        size_t good = 0;
        for (uint64_t i = 0; i < ncases; i++) {
            const bly_spec spec = {
                .kind = kinds[k], .items = n, .fpr = 5e-5, .seed = i
            };
            bly_filter *a = filled_from(&spec, i << 32, n);
            bly_filter *b = filled_from(&spec, (i << 32) + n, n);
            bly_likeness l;
            assert_ok(bly_compare(a, b, &l));
            good += l.in_both <= 3 * l.in_both_sd;
            bly_free(a);
            bly_free(b);
        }
        assert_true((double)good >= 0.99 * (double)ncases);
    }
}

static double unit(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

/* One random pair of sets; whether the size of their intersection is estimated
 * within three of the deviations that come with it. */
static bool estimated_well(const char *kind, uint64_t number, uint64_t *random)
{
    const double capacity = floor(50 * pow(1000, unit(random)));
    const bool fills_up =
        strcmp(kind, "cuckoo") == 0 || strcmp(kind, "quotient") == 0;
    const double most = fills_up ? 0.95 : 1.2;
    const size_t na = 1 + (size_t)(capacity * most * unit(random));
    const size_t nb = 1 + (size_t)(capacity * most * unit(random));
    const double least = (double)(na < nb ? na : nb), u = unit(random);
    const size_t common = u < 0.1 ? 0 : (size_t)(u * unit(random) * least);
    const bly_spec spec = { .kind = kind,
                            .items = (uint64_t)capacity,
                            .fpr = pow(10, -1 - 4 * unit(random)),
                            .seed = number };
    const uint64_t first = number << 32;
    bly_filter *a = filled_from(&spec, first, na);
    bly_filter *b = filled_from(&spec, first + na - common, nb);
    bly_likeness l;
    assert_ok(bly_compare(a, b, &l));
    bly_free(a);
    bly_free(b);
    return fabs(l.in_both - (double)common) <= 3 * l.in_both_sd;
}

/* Capacities from 50 to 50,000, rates from 10 % to 0.001 %, any fill and any
 * overlap. 99 of 100 are asked for; a bell would have 99.73. */
static void intersections_within_their_deviations(void **state)
{
    (void)state;
    static const char *const kinds[] = { "classic", "blocked", "cuckoo",
                                         "quotient" };
    const size_t ncases = scaled(1000);
    uint64_t random = 4;
    size_t good = 0;
    for (size_t i = 0; i < ncases; i++)
        good += estimated_well(kinds[i % COUNT_OF(kinds)], i + 1, &random);
    if (getenv("BLY_FULL"))
        printf("    %zu of %zu within three deviations\n", good, ncases);
    assert_true((double)good >= 0.99 * (double)ncases);
}

/* ----------------------------------------------------------------- cuckoo */

/* Two tables that are full together: refused, and nothing has moved. */
static void a_full_cuckoo_table_takes_no_other(void **state)
{
    (void)state;
    const spelt cuckoo = { "cuckoo", { { 0 } } };
    const bly_spec spec = spec_of(&cuckoo, 5000, 0);
    bly_filter *a = filled_from(&spec, 0, 4000);
    bly_filter *b = filled_from(&spec, 10000, 4000);
    byte_array before = written(a);
    assert_status(bly_merge(a, b), BLY_EFULL);
    assert_same_bytes(a, &before);
    free(before.at);
    bly_free(a);
    bly_free(b);
}

/* A key of both is there twice, and a key of one once, as if all had been
 * added; `unique` keeps one. */
static void copies_add_up(void **state)
{
    (void)state;
    for (int unique = 0; unique < 2; unique++) {
        const spelt cuckoo = { "cuckoo",
                               { { "unique", unique ? "on" : "off" } } };
        const bly_spec spec = spec_of(&cuckoo, 1000, 0);
        bly_filter *a = filled_from(&spec, 0, 200);
        bly_filter *b = filled_from(&spec, 100, 200);
        bly_stats s;
        assert_ok(bly_merge(a, b));
        bly_stat(a, &s);
        assert_near(s.items_estimate, unique ? 300 : 400, 0.02);
        if (!unique) {
            uint64_t *h = hashes_for(&spec, 150, 1);
            assert_ok(bly_remove_hashes(a, h, 1, NULL));
            assert_ok(bly_remove_hashes(a, h, 1, NULL));
            free(h);
        }
        bly_free(a);
        bly_free(b);
    }
}

/* Chains of tables: merged table by table; a key may be in different ones, so
 * there is no intersection. */
static void cuckoo_filters_that_have_grown(void **state)
{
    (void)state;
    const spelt grows = { "cuckoo", { { "grow", "2" } } };
    const bly_spec spec = spec_of(&grows, 500, 0);
    bly_filter *a = filled_from(&spec, 0, 100);
    bly_filter *b = filled_from(&spec, 1000, 1200);
    bly_likeness l;
    assert_true(bly_layer(b, 0) && !bly_layer(a, 0));
    byte_array before = written(a);
    assert_status(bly_intersect(a, b), BLY_ENOTSUP);
    assert_status(bly_compare(a, b, &l), BLY_ENOTSUP);
    assert_status(bly_merge(a, b), BLY_EFULL); /* the first table is full */
    assert_same_bytes(a, &before);
    free(before.at);
    bly_filter *empty = filled_from(&spec, 0, 0);
    assert_ok(bly_merge(empty, b));
    assert_int_equal(hits(empty, 1000, 1200), 1200);
    byte_array bytes = written(empty);
    bly_filter *again;
    assert_ok(bly_load(bytes.at, bytes.n, NULL, &again));
    free(bytes.at);
    bly_free(again);
    bly_free(empty);
    bly_free(a);
    bly_free(b);
}

/* ----------------------------------------------------- combined when read */

typedef struct tape {
    const unsigned char *at;
    size_t n;
    size_t asked; /* the most at once */
} tape;

static int64_t get_tape(void *ctx, void *buf, size_t nbytes)
{
    tape *t = ctx;
    const size_t n = nbytes < t->n ? nbytes : t->n;
    t->asked = nbytes > t->asked ? nbytes : t->asked;
    memcpy(buf, t->at, n);
    t->at += n;
    t->n -= n;
    return (int64_t)n;
}

static bly_status from_tape(bly_filter *f, bly_combination how,
                            const unsigned char *bytes, size_t n)
{
    tape t = { bytes, n, 0 };
    return bly_combine_read(f, how, get_tape, &t);
}

static bool streams(const bly_kind_info *kind, bly_combination how)
{
    const bly_kind *k = bly_kind_by_id(kind->id);
    return how == BLY_UNION ? k->merge_part : k->intersect_part;
}

/* What is combined as it is read is what is combined in memory; where that goes
 * in parts, in no more memory than they take. */
LAW(combining_what_is_read)
{
    static const uint32_t abilities[] = { BLY_CAN(MERGE), BLY_CAN(INTERSECT) };
    for (int how = BLY_UNION; how <= BLY_INTERSECTION; how++) {
        if (!(kind->can & abilities[how]))
            continue;
        ledger l;
        ledger_open(&l);
        bly_spec spec = law_spec(row, 200000);
        bly_filter *b = filled_from(&spec, 1000, 2000), *want;
        spec.mem = &l.mem;
        bly_filter *a = filled_from(&spec, 0, 2000);
        byte_array bytes = written(b);
        assert_ok(bly_clone(a, &want));
        assert_ok((how == BLY_UNION ? bly_merge : bly_intersect)(want, b));
        byte_array result = written(want);
        bly_free(want);

        l.peak = l.held;
        const int64_t held = l.held;
        tape t = { bytes.at, bytes.n, 0 };
        assert_ok(bly_combine_read(a, (bly_combination)how, get_tape, &t));
        assert_same_bytes(a, &result);
        assert_int_equal(l.held, held);
        if (streams(kind, (bly_combination)how)) {
            assert_true(l.peak - held < 80000);
            assert_true(t.asked < 80000);
        }
        bly_free(a);
        bly_free(b);
        ledger_check(&l);
        free(bytes.at);
        free(result.at);
    }
}

/* Every way in which what is read may be wrong is told. */
LAW(combining_what_is_damaged)
{
    needs(kind, BLY_CAN(MERGE));
    const bly_spec spec = law_spec(row, 3000);
    bly_filter *b = filled_from(&spec, 1000, 1000);
    byte_array bytes = written(b);
    uint64_t random = 5;
    bly_free(b);
    for (int i = 0; i < 60; i++) {
        bly_filter *a = filled_from(&spec, 0, 100);
        unsigned char *bad = malloc(bytes.n + 1);
        memcpy(bad, bytes.at, bytes.n);
        bad[bytes.n] = 0;
        size_t n = bytes.n;
        if (i < 20)
            n = (size_t)(test_random(&random) % bytes.n);
        else if (i == 20)
            n++;
        else
            bad[test_random(&random) % bytes.n] ^=
                (unsigned char)(1 + test_random(&random) % 255);
        const bly_status st = from_tape(a, BLY_UNION, bad, n);
        assert_true(st == BLY_EFORMAT || st == BLY_EUNFIT);
        free(bad);
        bly_free(a);
    }
    free(bytes.at);
}

/* What does not fit is known before anything has changed. */
static void what_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    const spelt classic = { "classic", { { 0 } } };
    bly_spec spec = spec_of(&classic, 3000, 0);
    bly_filter *a = filled_from(&spec, 0, 100), *others[3];
    byte_array before = written(a);
    spec.seed++;
    others[0] = filled_from(&spec, 0, 10);
    spec = spec_of(&classic, 3001, 0);
    others[1] = filled_from(&spec, 0, 10);
    spec.kind = "blocked";
    others[2] = filled_from(&spec, 0, 10);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        byte_array bytes = written(others[i]);
        for (int how = BLY_UNION; how <= BLY_INTERSECTION; how++) {
            assert_status(from_tape(a, (bly_combination)how, bytes.at, bytes.n),
                          BLY_EUNFIT);
            assert_same_bytes(a, &before);
        }
        free(bytes.at);
        bly_free(others[i]);
    }
    assert_status(from_tape(a, BLY_UNION, before.at, 0), BLY_EFORMAT);
    assert_same_bytes(a, &before);
    free(before.at);
    bly_free(a);
    const spelt scalable = { "scalable", { { 0 } } };
    spec = spec_of(&scalable, 100, 0);
    a = filled_from(&spec, 0, 10);
    assert_status(from_tape(a, BLY_UNION, NULL, 0), BLY_ENOTSUP);
    bly_free(a);
}

/* Forged: the sum is right, but the bits past the end are not clear. */
static void what_is_forged_is_found(void **state)
{
    (void)state;
    const spelt classic = { "classic", { { "k", "3" } } };
    const bly_spec spec = spec_of(&classic, 10, 1000);
    bly_filter *a = filled_from(&spec, 0, 10), *b = filled_from(&spec, 0, 10);
    b->data[b->shape.nbytes - 1] |= 0x80;
    byte_array bytes = written(b);
    assert_status(from_tape(a, BLY_UNION, bytes.at, bytes.n), BLY_EFORMAT);
    free(bytes.at);
    bly_free(a);
    bly_free(b);
}

static void from_a_file_that_is_not_there(void **state)
{
    (void)state;
    const spelt classic = { "classic", { { 0 } } };
    const bly_spec spec = spec_of(&classic, 10, 0);
    bly_filter *a = filled_from(&spec, 0, 10);
    assert_status(bly_combine_file(a, BLY_UNION, "/nonesuch/f.bly"), BLY_EIO);
    assert_non_null(strstr(bly_error(), "/nonesuch/f.bly"));
    bly_free(a);
}

/* ----------------------------------------------------------- taking places */

static void one_filter_becomes_another(void **state)
{
    (void)state;
    ledger l;
    ledger_open(&l);
    const spelt classic = { "classic", { { "folds", "1" } } };
    bly_spec spec = spec_of(&classic, 1000, 0);
    bly_filter *stranger = filled_from(&spec, 0, 10);
    spec.mem = &l.mem;
    bly_filter *f = filled_from(&spec, 0, 500);
    assert_status(bly_become(f, f), BLY_EINVAL);
    assert_status(bly_become(f, stranger), BLY_EINVAL);
    bly_filter *half = folded(f), *copy;
    assert_ok(bly_clone(half, &copy));
    assert_ok(bly_become(f, half));
    assert_true(bly_equal(f, copy));
    assert_int_equal(hits(f, 0, 500), 500);
    bly_free(copy);
    bly_free(f);
    bly_free(stranger);
    ledger_check(&l);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_and_adding_commute),
        cmocka_unit_test(a_fold_is_the_filter_of_half_the_bits),
        cmocka_unit_test(rates_of_folded_filters),
        cmocka_unit_test(what_cannot_be_folded),
        cmocka_unit_test(quotients_fold_while_there_is_room),
        cmocka_unit_test(fingerprints_that_fall_together),
        cmocka_unit_test(sums_that_do_not_fit),
        cmocka_unit_test(what_becomes_of_two_counters),
        cmocka_unit_test(chance_of_few_collisions),
        cmocka_unit_test(intersections_of_few_collisions),
        cmocka_unit_test(intersections_within_their_deviations),
        cmocka_unit_test(a_full_cuckoo_table_takes_no_other),
        cmocka_unit_test(copies_add_up),
        cmocka_unit_test(cuckoo_filters_that_have_grown),
        cmocka_unit_test(what_does_not_fit_changes_nothing),
        cmocka_unit_test(what_is_forged_is_found),
        cmocka_unit_test(from_a_file_that_is_not_there),
        cmocka_unit_test(one_filter_becomes_another),
    };
    return run_laws_and("sets", tests, COUNT_OF(tests), argc, argv);
}
