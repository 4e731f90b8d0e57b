/*
 * figure_fpr.c - the rate of every kind, and of shapes that others publish
 *
 * 50,000 keys at 1 %, in 20 filters, each asked for a million absent keys. A
 * new kind joins by being in the table.
 */
#include <math.h>

#include <bloomery/foreign.h>

#include "workbench/figure.h"

#define FPR_KEYS 50000

struct fpr_run {
    struct figure_run *run;
    unsigned nfilters;
    uint64_t queries;
    struct figure_series *missed;
    unsigned nshapes;
};

/* The rate of one filter beside the expected one; below: that is the most. */
static void fpr_note(struct fpr_run *t, struct figure_series *s, unsigned i,
                     double expected, bool below, double rate)
{
    /* Queries, and how full a filter of n keys becomes: as in the figure of
     * bits against rates. */
    const double sd = expected * (sqrt(1 / (expected * (double)t->queries)) -
                                  log2(expected) * 0.3 / sqrt(FPR_KEYS));
    figure_point(t->run, s, i + 1, expected, rate,
                 below ? 0 : expected - 4 * sd, expected + 4 * sd);
}

/* Keys that filters of one shape missed, all of them together. */
static void fpr_missed(struct fpr_run *t, double missed)
{
    figure_point(t->run, t->missed, ++t->nshapes, 0, missed, 0, 0);
}

/* One shape in filters of other seeds. expected 0: what its plan says. */
static void fpr_shape(struct fpr_run *t, const char *name, const char *panel,
                      const bly_spec *of, const char *options, double expected,
                      bool below)
{
    struct figure_series *const s = figure_series(t->run, "%s", name);
    const uint64_t keys = of->items;
    bly_kind_info kind = { 0 };
    double missed = 0;
    s->panel = panel;
    bly_kind_named(of->kind, &kind);
    for (unsigned i = 0; i < t->nfilters; i++) {
        bly_spec spec = *of;
        spec.seed = t->run->seed * 100 + i;
        bly_filter *const f = figure_built(t->run, &spec, options, 0, keys);
        bly_stats stats;
        if (!f)
            return;
        bly_peek(f, &stats);
        fpr_note(t, s, i, expected > 0 ? expected : stats.fpr_at_capacity,
                 below, figure_share(f, FIGURE_ABSENT, t->queries));
        missed += round((double)keys * (1 - figure_share(f, 0, keys)));
        bly_free(f);
    }
    if (!(kind.traits & BLY_LIKELY_NO))
        fpr_missed(t, missed);
}

/* Parquet's filter with 10.5 bits per key. Its sizes are powers of two, so the
 * number of keys is what fits; its hash has no seed, so the keys differ. */
static bool fpr_split_block(struct fpr_run *t, struct figure_series *s,
                            unsigned number, double expected, double *missed)
{
    const uint64_t keys = 49932; /* 2^19 bits / 10.5 */
    const bly_foreign_spec spec = { .format = "sbbf",
                                    .items = 25000,
                                    .fpr = 0.01 };
    bly_foreign *f = NULL;
    uint64_t wrong = 0;
    bly_status st = bly_foreign_new(&spec, &f);
    for (unsigned step = 0; !st && step < 3; step++) {
        /* Add, ask for what was added, ask for others. */
        const uint64_t n = step < 2 ? keys : t->queries;
        for (uint64_t i = 0; !st && i < n; i++) {
            const uint64_t text[] = { number, step < 2 ? i : i + FIGURE_ABSENT,
                                      t->run->seed };
            const bly_bytes key = { text, sizeof text };
            uint64_t found = 0;
            st = step ? bly_foreign_has(f, &key, 1, &found, NULL)
                      : bly_foreign_add(f, &key, 1, NULL, NULL);
            *missed += step == 1 && !found;
            wrong += step == 2 && found;
        }
    }
    bly_foreign_sizes sizes = { 0 };
    if (!st)
        bly_foreign_size(f, BLY_WHOLE, &sizes);
    bly_foreign_free(f);
    if (st || sizes.bits != UINT64_C(1) << 19)
        return !(t->run->broken = true);
    fpr_note(t, s, number, expected, false, (double)wrong / (double)t->queries);
    return true;
}

/* Shapes whose rates are published, or follow from a formula. */
static void fpr_known(struct fpr_run *t)
{
    static const char panel[] = "Shapes with known rates";
    static const struct {
        const char *name, *kind, *options;
        uint64_t keys;
        double rate;
        bool below;
    } shapes[] = {
        { "rule a", "classic", "rule=a", FPR_KEYS, 0.010039, false },
        { "rule b", "classic", "rule=b", FPR_KEYS, 0.01, false },
        { "fuse8", "fuse", "bits=8", FPR_KEYS, 1 / 256.0, false },
        { "xor8", "xor", "bits=8", FPR_KEYS, 1 / 256.0, false },
        /* 0.95 of 2^16 slots */
        { "cuckoo12", "cuckoo", "fingerprint=12 bucket=4", 62259, 0.00195,
          true },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !t->run->broken;
         i++)
        fpr_shape(
            t, shapes[i].name, panel,
            &SPEC(.kind = shapes[i].kind, .items = shapes[i].keys, .fpr = 0.01),
            shapes[i].options, shapes[i].rate, shapes[i].below);
    struct figure_series *const s = figure_series(t->run, "split block");
    double missed = 0;
    s->panel = panel;
    for (unsigned i = 0; i < t->nfilters && !t->run->broken; i++)
        fpr_split_block(t, s, i, 0.01013, &missed);
    fpr_missed(t, missed);
}

static void fpr_figure_run(struct figure_run *run)
{
    struct fpr_run t = { .run = run,
                         .nfilters = run->full ? 20 : 3,
                         .queries = run->full ? 1000000 : 100000 };
    run->x = AXIS(.label = "filter");
    run->y = FIGURE_RATES;
    t.missed = figure_series(run, "keys that are missed, by shape");
    t.missed->unseen = true;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind) && !run->broken; i++)
        if ((kind.can & BLY_CAN(HAS)) && !(kind.can & BLY_CAN(RANGE)) &&
            !(kind.traits & BLY_SELF_SIZED))
            fpr_shape(&t, kind.name, plot_kind_panel(&kind),
                      &SPEC(.kind = kind.name, .items = FPR_KEYS, .fpr = 0.01),
                      NULL, 0, false);
    fpr_known(&t);
}

const struct figure figure_fpr = {
    .name = "rate-of-every-kind",
    .title = "The rate that was asked for, and no key missed",
    .source = "Every kind with 50,000 keys at 1 %; shapes with known rates.",
    .about = "Filters of every kind for 50,000 keys at 1 %, asked for all of "
             "them and for a million others, twenty of each: the rate is the "
             "planned one, and no key is missed but by the kind that trades "
             "that away. Then shapes whose rates are known: the textbook's two "
             "ways to round, split blocks with 10.5 bits per key, fingerprints "
             "of 8 bits, and a cuckoo filter of 12 bits at a load of 0.95.",
    .run = fpr_figure_run,
};
