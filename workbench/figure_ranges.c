/*
 * figure_ranges.c - ranges, anywhere and right behind keys
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "workbench/figure.h"

#define LONGEST 256
#define RATE 0.01

/* n keys: anywhere, or in clusters of so many, a few numbers apart. */
static bool keys_made(struct figure_run *run, uint64_t *keys, uint64_t n,
                      uint64_t cluster, uint64_t *random, bly_filter **out)
{
    const bly_option longest = { "longest", "256" };
    const bly_spec spec =
        SPEC(.kind = "range", .items = n, .fpr = RATE, .seed = run->seed,
             .options = &longest, .noptions = 1);
    uint64_t *const hashes = malloc(n * sizeof *hashes);
    bly_builder *b = NULL;
    *out = NULL;
    for (uint64_t i = 0; i < n; i++)
        keys[i] = i % cluster ? keys[i - 1] + 1 + random_next(random) % 8
                              : random_next(random);
    if (hashes && !bly_builder_new(&spec, &b)) {
        bly_hash_ints(bly_builder_hasher(b), keys, n, hashes);
        if (!bly_builder_add(b, hashes, NULL, n))
            (void)!bly_builder_finish(b, 0, out);
    }
    bly_builder_free(b);
    free(hashes);
    run->broken |= !*out;
    return *out != NULL;
}

/* The share of q ranges of l numbers, none of which has a key (but by a chance
 * of n l / 2^64), that f says maybe to. */
static double share_of(const bly_filter *f, const uint64_t *keys, uint64_t n,
                       uint64_t cluster, uint64_t l, uint64_t q,
                       uint64_t *random)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < q; i++) {
        const uint64_t x = random_next(random);
        /* Behind the last key of a cluster, or anywhere. */
        const uint64_t a =
            cluster ? keys[x % (n / cluster) * cluster + cluster - 1] + 1 : x;
        const uint64_t b = a <= UINT64_MAX - l ? a + l - 1 : a;
        bool maybe = true;
        (void)bly_has_range(f, a, b, &maybe);
        found += maybe;
    }
    return (double)found / (double)q;
}

static void ranges_run(struct figure_run *run)
{
    static const struct {
        const char *name;
        uint64_t cluster, behind;
    } rows[] = {
        { "keys and ranges anywhere", 1, 0 },
        { "ranges right behind keys", 1, 1 },
        { "right behind clusters of 16 keys", 16, 16 },
    };
    const uint64_t n = run->full ? 1000000 : 100000;
    const double q = run->full ? 1e6 : 1e5;
    uint64_t random = run->seed, *const keys = malloc(n * sizeof *keys);
    run->x = AXIS(.label = "numbers in the range", .scale = PLOT_LOG);
    run->y = FIGURE_RATES;
    snprintf(run->subtitle, sizeof run->subtitle,
             "planned for 1 %% at %d numbers", LONGEST);
    struct figure_series *const bound = figure_series(run, "bound");
    for (double l = 1; l <= 25600; l *= 4)
        figure_point(run, bound, l, RATE * l / LONGEST, NAN, NAN, NAN);
    for (size_t r = 0; keys && r < sizeof rows / sizeof *rows; r++) {
        struct figure_series *const s = figure_series(run, "%s", rows[r].name);
        bly_filter *f;
        s->style = PLOT_POINTS;
        if (!keys_made(run, keys, n, rows[r].cluster, &random, &f))
            break;
        for (double l = 16; l <= 25600; l *= 4) {
            const double most = fmin(1, RATE * l / LONGEST);
            const double seen = share_of(f, keys, n, rows[r].behind,
                                         (uint64_t)l, (uint64_t)q, &random);
            figure_point(run, s, l, NAN, seen, 0,
                         most + 4 * sqrt(most / q) + 0.01 * most);
        }
        bly_free(f);
    }
    run->broken |= !keys;
    free(keys);
}

const struct figure figure_ranges = {
    .name = "range",
    .title = "Rate of ranges, by their length",
    .source = "The kind range; bound n l / m (docs/kinds/range.md).",
    .about = "A range right behind a key is no worse than one anywhere: the "
             "bound holds for both. Keys in clusters do better, since their "
             "places go together.",
    .run = ranges_run,
};
