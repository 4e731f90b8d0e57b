/*
 * test_laws_random.c - filters that nobody would think of, beside an exact set
 *
 * The other laws make filters as users should. These make them as users can:
 * any option at any value that plan() takes, a few bits per key, capacities
 * that are passed many times over. Each filter goes through a random sequence
 * of everything its kind can do, and after every step
 *
 *     what was written loads, is the same filter and answers alike;
 *     no key that is in it is missing, where "no" is certain.
 *
 * A trial is fixed by its number. BLY_VERBOSE prints each before it begins, so
 * that the last one printed is the one that failed; BLY_TRIAL=n makes number n
 * alone, BLY_TRIALS=n so many of each kind, and BLY_FULL 20,000.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNIVERSE 24000 /* keys there are */
#define MAX_ITEMS 2000 /* of a capacity: the universe is far past it */
#define MAX_COPIES 3   /* of a key, where a kind holds several */
#define MAX_BYTES (UINT64_C(4) << 20)

typedef struct trial {
    const bly_kind_info *kind;
    bly_spec spec;
    bly_option options[BLY_MAX_PARAMS];
    char words[BLY_MAX_PARAMS][32];
    uint64_t random;
    bly_filter *f;
    const uint64_t *h;       /* of the universe */
    uint8_t times[UNIVERSE]; /* how often a key is in f */
    uint64_t maybe[2][BLY_BITMAP_WORDS(UNIVERSE)];
} trial;

/* ----------------------------------------------------------------- chance */

static uint64_t up_to(trial *t, uint64_t n)
{
    return test_random(&t->random) % (n + 1);
}

/* From low to high, small ones as likely as large ones. */
static double any_size(trial *t, double low, double high)
{
    const double x = (double)up_to(t, 1 << 20) / (1 << 20);
    return low > 0 ? low * pow(high / low, x)
                   : pow(high - low + 1, x) - 1 + low;
}

/* A value of an option, as a user would write it. Numbers stay small enough
 * for a filter of MAX_BYTES. */
static void choose_option(trial *t, const bly_param *p)
{
    const size_t i = t->spec.noptions++;
    const double most = p->max < 100000 ? p->max : 100000;
    const double top = most > p->min ? most : p->min;
    char *word = t->words[i];
    if (p->type == BLY_CHOICE) {
        size_t n = 0;
        while (p->choices[n])
            n++;
        snprintf(word, sizeof t->words[i], "%s", p->choices[up_to(t, n - 1)]);
    } else if (p->type == BLY_REAL) {
        snprintf(word, sizeof t->words[i], "%.9g", any_size(t, p->min, top));
    } else {
        snprintf(word, sizeof t->words[i], "%.0f",
                 floor(any_size(t, p->min, top)));
    }
    t->options[i] = (bly_option){ p->name, word };
}

/* A filter that can be asked for, with each option given once in `rarely`
 * times; false where plan() says that it cannot be. */
static bool choose_spec(trial *t, uint64_t rarely)
{
    bly_prediction plan;
    t->spec = (bly_spec){ .kind = t->kind->name,
                          .items = (uint64_t)any_size(t, 1, MAX_ITEMS),
                          .seed = LAW_SEED,
                          .max_bytes = MAX_BYTES,
                          .options = t->options };
    if (up_to(t, 1))
        t->spec.fpr = any_size(t, 1e-5, 0.9);
    else
        t->spec.bits = (uint64_t)((double)t->spec.items * any_size(t, 1, 24));
    for (size_t i = 0; i < t->kind->nparams; i++)
        if (bly_param_at(t->kind->params, i)->settable &&
            up_to(t, rarely - 1) == 0)
            choose_option(t, bly_param_at(t->kind->params, i));
    return bly_plan(&t->spec, &plan) == BLY_OK && plan.bits / 8 < MAX_BYTES / 4;
}

/* ----------------------------------------------------------------- checks */

/* g, which was f before it went through a file, is f. Some keys are asked for
 * as well, since it is answers that count. */
static void assert_same(trial *t, const bly_filter *g)
{
    enum { SOME = 3000 };
    const uint64_t *h = t->h + up_to(t, UNIVERSE - SOME);
    assert_true(bly_equal(t->f, g));
    if (!(t->kind->can & BLY_CAN(HAS)))
        return;
    bly_has_hashes(t->f, h, SOME, t->maybe[0]);
    bly_has_hashes(g, h, SOME, t->maybe[1]);
    assert_memory_equal(t->maybe[0], t->maybe[1], BLY_BITMAP_WORDS(SOME) * 8);
}

static void assert_written_loads(trial *t)
{
    byte_array a = written(t->f);
    bly_filter *g;
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_same(t, g);
    assert_same_bytes(g, &a);
    free(a.at);
    bly_free(g);
    assert_ok(bly_verify(t->f));
}

/* Coded, and as a file that is asked where it lies. */
static void assert_other_forms_load(trial *t)
{
    bly_filter *g;
    char path[64];
    snprintf(path, sizeof path, "/tmp/laws-random-%d.bly", (int)getpid());
    bly_set_coded(t->f, true);
    byte_array a = written(t->f);
    bly_set_coded(t->f, false);
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_same(t, g);
    free(a.at);
    bly_free(g);
    assert_ok(bly_save(t->f, path));
    assert_ok(bly_map(path, NULL, &g));
    assert_ok(bly_verify(g));
    assert_same(t, g);
    bly_free(g);
    unlink(path);
}

static void assert_nothing_forgotten(trial *t)
{
    /* A kind that forgets by number or by time does so past its window. */
    const uint32_t can = t->kind->can;
    if (!(can & BLY_CAN(HAS)) || can & BLY_CAN(TICK) ||
        t->kind->traits & BLY_LIKELY_NO)
        return;
    bly_has_hashes(t->f, t->h, UNIVERSE, t->maybe[0]);
    for (size_t i = 0; i < UNIVERSE; i++)
        assert_true(!t->times[i] || t->maybe[0][i / 64] >> (i % 64) & 1);
}

/* ------------------------------------------------------------------ steps */

/* Fresh keys, or some that are in it already where the kind counts. */
static size_t choose_keys(trial *t, size_t most, uint32_t *which,
                          uint64_t *hashes)
{
    const bool several = t->kind->can & BLY_CAN(COUNT);
    const size_t first = (size_t)up_to(t, UNIVERSE - 1);
    size_t n = 0;
    for (size_t i = first; i < UNIVERSE && n < most; i++) {
        if (t->times[i] >= (several ? MAX_COPIES : 1))
            continue;
        which[n] = (uint32_t)i;
        hashes[n++] = t->h[i];
    }
    return n;
}

static void assert_one_of(bly_status st, bly_status other)
{
    if (st != other)
        assert_ok(st);
}

static void step_add(trial *t)
{
    static uint32_t which[UNIVERSE];
    static uint64_t hashes[UNIVERSE];
    const size_t n =
        choose_keys(t, (size_t)any_size(t, 1, 6 * MAX_ITEMS), which, hashes);
    size_t ndone;
    const bly_status st = bly_add_hashes(t->f, hashes, n, NULL, &ndone);
    assert_one_of(st, BLY_EFULL);
    assert_true(st || ndone == n);
    for (size_t i = 0; i < ndone; i++)
        t->times[which[i]]++;
}

static void step_increase(trial *t)
{
    const size_t key = (size_t)up_to(t, UNIVERSE - 1);
    const uint64_t by = 1 + up_to(t, 1);
    if (t->times[key] + by > MAX_COPIES)
        return;
    const bly_status st = bly_increase_hashes(t->f, &t->h[key], &by, 1, NULL);
    assert_one_of(st, BLY_EFULL);
    if (!st)
        t->times[key] = (uint8_t)(t->times[key] + by);
}

/* Half of what is in it, in one batch. */
static void step_remove(trial *t)
{
    static uint32_t which[UNIVERSE];
    static uint64_t hashes[UNIVERSE];
    static bly_status each[UNIVERSE];
    size_t n = 0;
    for (size_t i = 0; i < UNIVERSE; i++)
        if (t->times[i] && up_to(t, 1)) {
            which[n] = (uint32_t)i;
            hashes[n++] = t->h[i];
        }
    (void)bly_remove_hashes(t->f, hashes, n, each);
    for (size_t i = 0; i < n; i++) {
        assert_one_of(each[i], BLY_EREFUSED);
        t->times[which[i]] = (uint8_t)(t->times[which[i]] - !each[i]);
    }
}

static void replace_filter(trial *t, bly_filter *g)
{
    bly_free(t->f);
    t->f = g;
}

static void step_clone(trial *t)
{
    bly_filter *g;
    assert_ok(bly_clone(t->f, &g));
    replace_filter(t, g);
}

static void step_reload(trial *t)
{
    byte_array a = written(t->f);
    bly_filter *g;
    const bly_access how = { .max_bytes = MAX_BYTES };
    assert_ok(bly_load(a.at, a.n, &how, &g));
    free(a.at);
    replace_filter(t, g);
}

/* With a filter of its own shape, as filters that grow may have another. */
static void step_merge(trial *t)
{
    enum { FEW = 100 };
    uint32_t which[FEW];
    uint64_t hashes[FEW];
    size_t n = choose_keys(t, FEW, which, hashes), ndone = 0;
    bly_filter *other;
    assert_ok(bly_new(&t->spec, &other));
    assert_one_of(bly_add_hashes(other, hashes, n, NULL, &ndone), BLY_EFULL);
    const bly_status st = bly_merge(t->f, other);
    if (st != BLY_EUNFIT) /* folded, or grown */
        assert_one_of(st, BLY_EFULL);
    for (size_t i = 0; i < ndone && !st; i++)
        t->times[which[i]]++;
    bly_free(other);
}

/* With what has all its keys, and some more. */
static void step_intersect(trial *t)
{
    bly_filter *more;
    size_t ndone;
    assert_ok(bly_clone(t->f, &more));
    assert_one_of(bly_add_hashes(more, t->h, 50, NULL, &ndone), BLY_EFULL);
    const bly_status st = bly_intersect(t->f, more);
    if (st != BLY_EUNFIT)
        assert_one_of(st, BLY_ENOTSUP);
    bly_free(more);
}

static void step_fold(trial *t)
{
    bly_filter *half;
    if (!bly_fold(t->f, &half))
        replace_filter(t, half);
}

static void step_resize(trial *t)
{
    const bly_spec spec = { .items = t->spec.items * (1 + up_to(t, 7)) };
    bly_filter *g;
    if (!bly_convert(t->f, &spec, &g))
        replace_filter(t, g);
}

static void step_tick(trial *t)
{
    (void)bly_tick(t->f, up_to(t, 100000));
}

/* Whatever can change a filter, with the ability that it takes. */
static const struct {
    uint32_t needs;
    void (*step)(trial *t);
} steps[] = {
    { BLY_CAN(ADD), step_add },
    { BLY_CAN(ADD), step_add },
    { BLY_CAN(ADD), step_add },
    { BLY_CAN(INCREASE), step_increase },
    { BLY_CAN(REMOVE), step_remove },
    { BLY_CAN(FOLD), step_fold },
    { BLY_CAN(RESIZE), step_resize },
    { BLY_CAN(TICK), step_tick },
    { 0, step_clone },
    { 0, step_reload },
    { 0, assert_other_forms_load },
    { BLY_CAN(ADD) | BLY_CAN(MERGE), step_merge },
    { BLY_CAN(ADD) | BLY_CAN(INTERSECT), step_intersect },
};

/* Make it; false where it is too large: plan() tells what kinds that are coded
 * take when they are sent, and memory may be far more. */
static bool begin(trial *t)
{
    memset(t->times, 0, sizeof t->times);
    if (t->kind->can & BLY_CAN(ADD)) {
        const bly_status st = bly_new(&t->spec, &t->f);
        assert_one_of(st, BLY_ERANGE);
        return !st;
    }
    const size_t n = (size_t)up_to(t, t->spec.items);
    t->f = filled_from(&t->spec, 0, n);
    memset(t->times, 1, n);
    return true;
}

static void any_steps(trial *t)
{
    const int nsteps = 4 + (int)up_to(t, 12);
    for (int i = 0; i < nsteps; i++) {
        const size_t s = (size_t)up_to(t, COUNT_OF(steps) - 1);
        const bool other_way =
            steps[s].step == step_merge && t->kind->traits & BLY_DIRECTED;
        if (steps[s].needs & ~t->kind->can || other_way)
            continue;
        steps[s].step(t);
        assert_written_loads(t);
        assert_nothing_forgotten(t);
    }
}

/* Fill it to its brim and past it, remove a half, and a half of the rest. */
static void remove_halves(trial *t)
{
    for (int i = 0; i < 6; i++)
        step_add(t);
    for (int i = 0; i < 3; i++) {
        step_remove(t);
        assert_nothing_forgotten(t);
        assert_written_loads(t);
    }
}

/* ------------------------------------------------------------- one by one */

/* Both answer alike, f in batches and single one by one, hash and key. */
static void assert_answers_singly(trial *t, const bly_filter *single)
{
    enum { SOME = 3000 };
    static uint64_t counts[SOME];
    const size_t from = up_to(t, UNIVERSE - SOME);
    const uint64_t *const h = t->h + from;
    const bool counted = t->kind->can & BLY_CAN(COUNT);
    if (t->kind->can & BLY_CAN(HAS))
        bly_has_hashes(t->f, h, SOME, t->maybe[0]);
    else
        memset(t->maybe[0], 0xff, sizeof t->maybe[0]);
    if (counted)
        assert_ok(bly_count_hashes(t->f, h, SOME, counts));
    for (size_t i = 0; i < SOME; i++) {
        const uint64_t key = htole64(from + i);
        const bool maybe = t->maybe[0][i / 64] >> (i % 64) & 1;
        uint64_t count;
        assert_int_equal(bly_has_hash(single, h[i]), maybe);
        assert_int_equal(bly_has(single, &key, sizeof key), maybe);
        assert_int_equal(bly_has_int(single, from + i), maybe);
        if (!counted)
            continue;
        assert_ok(bly_count_hashes(single, &h[i], 1, &count));
        assert_int_equal(count, counts[i]);
    }
}

static void assert_same_state(trial *t, const bly_filter *single)
{
    bly_stats a, b;
    bly_peek(t->f, &a);
    bly_peek(single, &b);
    assert_true(bly_equal(t->f, single));
    assert_int_equal(a.items_added, b.items_added);
    assert_answers_singly(t, single);
}

/* A key by itself is taken, refused, answered and removed as in a batch, by
 * whatever instructions there are. */
static void one_by_one(trial *t)
{
    static const char *const sets[] = { "portable", "popcnt", "avx2,popcnt",
                                        "avx512,avx2,popcnt" };
    static uint32_t which[UNIVERSE];
    static uint64_t hashes[UNIVERSE];
    static bly_status each[UNIVERSE];
    const char *const given = getenv("BLY_CPU");
    char *const kept = given ? strdup(given) : NULL;
    bly_filter *single;
    setenv("BLY_CPU", sets[up_to(t, COUNT_OF(sets) - 1)], 1);
    assert_ok(bly_clone(t->f, &single));
    assert_same_state(t, single);
    for (int i = 0; i < 3 && t->kind->can & BLY_CAN(ADD); i++) {
        const size_t n =
            choose_keys(t, (size_t)any_size(t, 1, MAX_ITEMS), which, hashes);
        size_t ndone;
        const bly_status st = bly_add_hashes(t->f, hashes, n, NULL, &ndone);
        for (size_t j = 0; j < ndone; j++) {
            const uint64_t key = htole64(which[j]);
            assert_ok(j % 3 == 0   ? bly_add_hash(single, hashes[j])
                      : j % 3 == 1 ? bly_add_int(single, which[j])
                                   : bly_add(single, &key, sizeof key));
            t->times[which[j]]++;
        }
        if (st)
            assert_status(bly_add_hash(single, hashes[ndone]), st);
        assert_same_state(t, single);
    }
    for (int i = 0; i < 2 && t->kind->can & BLY_CAN(REMOVE); i++) {
        const size_t n = choose_keys(t, MAX_ITEMS, which, hashes);
        (void)bly_remove_hashes(t->f, hashes, n, each);
        for (size_t j = 0; j < n; j++)
            assert_int_equal(bly_remove_hashes(single, &hashes[j], 1, NULL),
                             each[j]);
        assert_same_state(t, single);
    }
    bly_free(single);
    unsetenv("BLY_CPU");
    if (kept)
        setenv("BLY_CPU", kept, 1);
    free(kept);
}

static void say_trial(const trial *t, unsigned long number)
{
    print_message("trial %lu: kind %s, items %llu, fpr %g, bits %llu", number,
                  t->kind->name, (unsigned long long)t->spec.items, t->spec.fpr,
                  (unsigned long long)t->spec.bits);
    for (size_t i = 0; i < t->spec.noptions; i++)
        print_message(", %s=%s", t->options[i].name, t->options[i].value);
    print_message("\n");
}

static unsigned long trials_wanted(void)
{
    const char *n = getenv("BLY_TRIALS");
    return n                    ? strtoul(n, NULL, 10)
           : getenv("BLY_FULL") ? 20000
                                : (unsigned long)scaled(64);
}

/* As many filters as are wanted go through run(). */
static void run_trials(const bly_kind_info *kind, uint64_t rarely,
                       void (*run)(trial *t))
{
    static trial t;
    const char *only = getenv("BLY_TRIAL");
    const bool verbose = only || getenv("BLY_VERBOSE");
    const unsigned long wanted = only ? 1 : trials_wanted();
    const bly_spec spec = { .kind = kind->name, .seed = LAW_SEED };
    uint64_t *h = hashes_for(&spec, 0, UNIVERSE);
    const unsigned long first = only ? strtoul(only, NULL, 10) : 0;
    unsigned long made = 0;
    for (unsigned long number = first; made < wanted; number++) {
        t = (trial){ .kind = kind, .random = number, .h = h };
        assert_true(number - first < 100 * wanted + 1000);
        if (!choose_spec(&t, rarely))
            continue;
        if (verbose)
            say_trial(&t, number);
        if (!begin(&t))
            continue;
        run(&t);
        bly_free(t.f);
        made++;
    }
    print_message("%lu filters of kind %s\n", made, kind->name);
    free(h);
}

/* Rows with options are left out: options are chosen here. */
LAW(whatever_was_written_loads_and_answers_alike)
{
    if (row->noptions)
        skip_for("options are chosen by the test itself");
    run_trials(kind, 4, any_steps);
}

LAW(removing_half_leaves_the_rest)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(REMOVE));
    needs_certain_no(kind);
    if (row->noptions)
        skip_for("options are chosen by the test itself");
    run_trials(kind, 2, remove_halves);
}

LAW(one_by_one_is_by_batches)
{
    if (row->noptions)
        skip_for("options are chosen by the test itself");
    run_trials(kind, 4, one_by_one);
}

int main(int argc, char **argv)
{
    return run_laws("laws, at random", argc, argv);
}
