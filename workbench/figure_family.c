/*
 * figure_family.c - all kinds side by side
 *
 * These walk the table of kinds: a new kind joins them by being there.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "workbench/figure.h"

static bool is_static(const bly_kind_info *kind)
{
    return !(kind->can & BLY_CAN(ADD));
}

/* A kind that answers "is it in?" at a rate that can be asked for; that of
 * kinds with ranges is the rate of these, and they have a figure of their own.
 */
static bool asks(const bly_kind_info *kind)
{
    return (kind->can & BLY_CAN(HAS)) && !(kind->can & BLY_CAN(RANGE)) &&
           !(kind->traits & BLY_SELF_SIZED);
}

/* ------------------------------------------------- bits per key, by rate */

static void bits_rate_run(struct figure_run *run)
{
    const uint64_t n = run->full ? 1000000 : 200000;
    static const double rates[] = { 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001 };
    run->x = AXIS(.label = "false positive rate", .scale = PLOT_LOG,
                  .format = PLOT_PERCENT, .reversed = true);
    run->y = AXIS(.label = "memory", .unit = "bits per key", .scale = PLOT_LOG);
    struct figure_series *bound = figure_series(run, "lower bound");
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        figure_point(run, bound, rates[r], -log2(rates[r]), NAN, NAN, NAN);
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind) && !run->broken; i++) {
        if (!asks(&kind))
            continue;
        struct figure_series *bits = figure_series(run, "%s", kind.name);
        bits->panel = plot_kind_panel(&kind);
        struct figure_series *kept =
            figure_series(run, "%s, rate over planned", kind.name);
        kept->unseen = true;
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            const bly_spec spec = SPEC(.kind = kind.name, .items = n,
                                       .fpr = rates[r], .seed = run->seed);
            bly_filter *f = figure_built(run, &spec, NULL, 0, n);
            if (!f)
                break;
            bly_stats stats;
            bly_peek(f, &stats);
            const double planned = stats.fpr_at_capacity;
            const double queries = fmin(fmax(1e5, 1500 / planned), 4e6);
            const double measured =
                figure_share(f, FIGURE_ABSENT, (uint64_t)queries);
            bly_free(f);
            figure_point(run, bits, rates[r], NAN,
                         (double)stats.bits / (double)n, NAN, NAN);
            /* One filter of n keys strays by some 0.2 k / sqrt(n). */
            const double sd = sqrt(1 / (planned * queries)) +
                              -log2(planned) * 0.3 / sqrt((double)n);
            figure_point(run, kept, rates[r], 1, measured / planned, 1 - 4 * sd,
                         1 + 4 * sd);
        }
    }
}

const struct figure figure_bits_rate = {
    .name = "bits-against-rate",
    .title = "Memory for a given rate, for every kind",
    .source = "Every kind of the library; lower bound log2(1/rate).",
    .about =
        "Static kinds come close to the bound, since they know all keys when "
        "they are built. Kinds that count or forget pay for it. Each was also "
        "built and queried: the planned rate is the measured rate.",
    .run = bits_rate_run,
};

/* ------------------------------------------------------------ overfilled */

static void past_capacity_run(struct figure_run *run)
{
    const uint64_t n = run->full ? 100000 : 20000;
    run->x = AXIS(.label = "keys over capacity", .scale = PLOT_LOG);
    run->y = FIGURE_RATES;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind) && !run->broken; i++) {
        if (!asks(&kind) || is_static(&kind))
            continue;
        struct figure_series *s = figure_series(run, "%s", kind.name);
        s->panel = plot_kind_panel(&kind);
        const bly_spec spec =
            SPEC(.kind = kind.name, .items = n, .fpr = 0.01, .seed = run->seed);
        bly_filter *f = figure_filter(run, &spec, NULL);
        uint64_t added = 0;
        for (double load = 0.25; f && load <= 8; load *= 2) {
            const uint64_t want = (uint64_t)(load * (double)n);
            bool full = false;
            for (; added < want && !full; added++)
                full = bly_add(f, &added, sizeof added) != BLY_OK;
            if (full)
                break; /* it says so, and the curve ends there */
            bly_stats stats;
            bly_stat(f, &stats);
            const double queries = 4e5;
            const double measured =
                figure_share(f, FIGURE_ABSENT, (uint64_t)queries);
            const double sd =
                sqrt(stats.fpr_now * (1 - stats.fpr_now) / queries);
            figure_point(run, s, load, stats.fpr_now, measured,
                         0.95 * stats.fpr_now - 4 * sd,
                         1.05 * stats.fpr_now + 4 * sd);
        }
        bly_free(f);
    }
    run->references[run->nreferences++] = (struct plot_reference){
        .vertical = true, .at = 1, .label = "capacity"
    };
}

const struct figure figure_past_capacity = {
    .name = "past-capacity",
    .title = "What happens to an overfilled filter",
    .source = "Every kind that takes keys one at a time, planned for 1 %.",
    .about =
        "Kinds made of bits err more and more; kinds made of fingerprints "
        "refuse, and their curve ends; kinds that grow or forget keep their "
        "promise. The dashed line is the rate that a filter itself reports "
        "from its contents: it knows when it is past its capacity.",
    .run = past_capacity_run,
};

/* ------------------------------------------------------------ time over n */

/* Nanoseconds a key to add n keys in batches, or to build a static filter of
 * them; an empty filter is made before. */
static double family_make_ns(struct figure_run *run, const bly_spec *spec,
                             uint64_t n, bly_filter **out)
{
    bly_kind_info kind;
    bly_kind_named(spec->kind, &kind);
    *out = is_static(&kind) ? NULL : figure_filter(run, spec, NULL);
    const double start = clock_thread_ns();
    if (is_static(&kind))
        *out = figure_built(run, spec, NULL, 0, n);
    else if (*out)
        figure_add(run, *out, 0, n);
    return (clock_thread_ns() - start) / (double)n;
}

static void family_time(struct figure_run *run, bool asking)
{
    run->x = AXIS(.label = "keys", .scale = PLOT_LOG, .format = PLOT_SI);
    run->y =
        AXIS(.label = asking ? "time of a question" : "time of an addition",
             .unit = "ns", .scale = PLOT_LOG);
    const uint64_t most = run->full ? 10000000 : 100000;
    struct figure_series *found = figure_series(run, "keys found, of all");
    found->unseen = true;
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind) && !run->broken; i++) {
        if (!asks(&kind))
            continue;
        struct figure_series *s = figure_series(run, "%s", kind.name);
        s->panel = plot_kind_panel(&kind);
        for (uint64_t n = 1000; n <= most && !run->broken; n *= 10) {
            double best = INFINITY, share = 1;
            const int rounds = n < 1000000 ? 3 : 1;
            for (int round = 0; round < rounds && !run->broken; round++) {
                const bly_spec spec = SPEC(.kind = kind.name, .items = n,
                                           .fpr = 0.01, .seed = run->seed);
                bly_filter *f;
                double ns = family_make_ns(run, &spec, n, &f);
                if (f) {
                    const double start = clock_thread_ns();
                    share = figure_share(f, 0, n);
                    if (asking)
                        ns = (clock_thread_ns() - start) / (double)n;
                }
                bly_free(f);
                best = fmin(best, ns);
            }
            figure_point(run, s, (double)n, NAN, best, NAN, NAN);
            if (!(kind.traits & BLY_LIKELY_NO))
                figure_point(run, found, (double)n, 1, share, 1, 1);
        }
    }
}

static void family_add_run(struct figure_run *run)
{
    family_time(run, false);
}

static void family_ask_run(struct figure_run *run)
{
    family_time(run, true);
}

const struct figure figure_family_add = {
    .name = "add-time-against-n",
    .title = "Time of an addition, for every kind",
    .source = "Every kind of the library at 1 %; static ones are built.",
    .about =
        "Integer keys in batches, hashing included, one thread. Steps are "
        "where a filter outgrows a cache; a kind whose keys touch one line has "
        "the smallest steps. The check is that every key is found afterwards.",
    .machine = true,
    .run = family_add_run,
};

const struct figure figure_family_ask = {
    .name = "ask-time-against-n",
    .title = "Time of a question, for every kind",
    .source = "Every kind of the library at 1 %; keys that are contained.",
    .about = "The same for questions. bloomery bench measures both with more "
             "care, and against the machine's memory.",
    .machine = true,
    .run = family_ask_run,
};

/* ------------------------------------- memory, against a table and a tree */

/* Bytes that malloc has given out. */
static double heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

/* A hash table of strings with chains, as one writes it. */
struct chained {
    struct chained *next;
    char *key;
};

static char *decimal_key(uint64_t i)
{
    char *key = malloc(24);
    if (key)
        snprintf(key, 24, "user%010llu", (unsigned long long)i);
    return key;
}

static double table_bytes(uint64_t n)
{
    const double before = heap_bytes();
    struct chained **slots = calloc(n, sizeof *slots);
    for (uint64_t i = 0; slots && i < n; i++) {
        struct chained *node = malloc(sizeof *node);
        if (!node)
            break;
        uint64_t state = i;
        struct chained **slot = &slots[random_next(&state) % n];
        *node = (struct chained){ *slot, decimal_key(i) };
        *slot = node;
    }
    const double bytes = heap_bytes() - before;
    for (uint64_t i = 0; slots && i < n; i++)
        while (slots[i]) {
            struct chained *next = slots[i]->next;
            free(slots[i]->key);
            free(slots[i]);
            slots[i] = next;
        }
    free(slots);
    return bytes;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static double tree_bytes(uint64_t n)
{
    const double before = heap_bytes();
    void *root = NULL;
    for (uint64_t i = 0; i < n; i++) {
        char *key = decimal_key(i);
        if (!key || !tsearch(key, &root, by_text))
            free(key);
    }
    const double bytes = heap_bytes() - before;
    tdestroy(root, free);
    return bytes;
}

static void memory_run(struct figure_run *run)
{
    run->x =
        AXIS(.label = "keys of 14 bytes", .scale = PLOT_LOG, .format = PLOT_SI);
    run->y = AXIS(.label = "memory", .scale = PLOT_LOG, .format = PLOT_BYTES);
    struct figure_series *tree = figure_series(run, "red-black tree");
    struct figure_series *table = figure_series(run, "hash table");
    struct figure_series *filter = figure_series(run, "filter, 1 %%");
    struct figure_series *ratio = figure_series(run, "table over filter");
    ratio->unseen = true;
    for (uint64_t n = 1000; n <= (run->full ? 1000000u : 100000u); n *= 10) {
        const bly_spec spec = { .kind = "classic", .items = n, .fpr = 0.01 };
        bly_filter *f = figure_built(run, &spec, NULL, 0, n);
        if (!f)
            return;
        bly_stats stats;
        bly_peek(f, &stats);
        bly_free(f);
        const double held = table_bytes(n);
        figure_point(run, tree, (double)n, NAN, tree_bytes(n), NAN, NAN);
        figure_point(run, table, (double)n, NAN, held, NAN, NAN);
        figure_point(run, filter, (double)n, NAN, (double)stats.bytes, NAN,
                     NAN);
        figure_point(run, ratio, (double)n, NAN, held / (double)stats.bytes, 10,
                     NAN);
    }
}

const struct figure figure_memory = {
    .name = "memory",
    .title = "Memory: filter, hash table and tree",
    .source = "Slides and course paper; measured with a real table and tree.",
    .about = "A table and a tree hold the keys themselves and pointers to "
             "them; a filter holds ten bits per key whatever its length. "
             "Measured as what malloc handed out: a chained table with as many "
             "slots as keys, and the tree of the C library.",
    .machine = true,
    .run = memory_run,
};
