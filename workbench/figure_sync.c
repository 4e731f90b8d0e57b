/*
 * figure_sync.c - what it costs to compare two sets, to outline one, and to
 * intersect lists on several machines
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/sync/isect.h"
#include "apps/sync/client.h"
#include "apps/sync/sync_server.h"
#include "base/random.h"
#include "workbench/figure.h"

static bool out_of_memory(struct figure_run *run)
{
    run->broken = true;
    return false;
}

/* n elements of which the first d are others than in a set with another side.
 */
static bool make_set(struct figure_run *run, struct sync_set *set,
                     uint64_t seed, size_t n, size_t d, uint64_t side)
{
    *set = (struct sync_set){ .form = SYNC_LINES, .path = "" };
    set->elements = malloc(n * sizeof *set->elements + 8);
    if (!set->elements)
        return out_of_memory(run);
    /* Far from the sequence that both share. */
    uint64_t own = (seed + side + 1) * UINT64_C(0xd6e8feb86659fd93);
    for (size_t i = 0; i < n; i++) {
        const uint64_t shared = random_next(&seed);
        set->elements[i] = i < d ? random_next(&own) : shared;
    }
    set->n = n;
    return !bly_elements_sort(set->elements, &set->n) || out_of_memory(run);
}

/* --------------------------------------------------------------------- sync */

static bool answer_here(void *ctx, const struct block *question,
                        struct block *answer, char why[SYNC_WHY])
{
    (void)why;
    server_answer(ctx, (const unsigned char *)question->at, question->len,
                  answer);
    return true;
}

/* Bytes both ways until one side knows what it lacks; *share: how much of it it
 * knows. */
static double compare_bytes(struct figure_run *run, enum sync_method method,
                            size_t n, size_t d, uint64_t seed, double *share)
{
    struct sync_set mine = { 0 }, theirs = { 0 };
    struct sync_server server = { .set = &theirs };
    struct sync_client c = { .set = &mine, .take = true, .method = method };
    c.line = (struct sync_line){ .exchange = answer_here, .ctx = &server };
    double bytes = NAN;
    if (make_set(run, &mine, seed, n, d / 2, 0) &&
        make_set(run, &theirs, seed, n, d - d / 2, 1) && client_compare(&c)) {
        bytes = (double)(c.line.sent + c.line.received);
        *share = (double)c.ntheirs / (double)(d - d / 2);
    }
    run->broken |= isnan(bytes);
    sync_client_free(&c);
    server_free(&server);
    set_free(&mine);
    set_free(&theirs);
    return bytes;
}

static void sync_run(struct figure_run *run)
{
    static const size_t sizes[] = { 2, 10, 100, 1000, 10000, 50000 };
    static const struct {
        enum sync_method method;
        double low, high; /* bytes that 100 differences take */
    } rows[] = {
        { SYNC_RATELESS, 1500, 4000 },  { SYNC_IBLT, 5000, 12000 },
        { SYNC_BLOOM, 99000, 102000 },  { SYNC_TREE, 198000, 203000 },
        { SYNC_EXACT, 690000, 810000 },
    };
    enum { N = 100000 };
    run->x =
        AXIS(.label = "elements in which the sets differ", .scale = PLOT_LOG);
    run->y =
        AXIS(.label = "sent both ways", .unit = "bytes", .scale = PLOT_LOG);
    snprintf(run->subtitle, sizeof run->subtitle,
             "100,000 elements of 64 bits on either side");
    for (size_t m = 0; m < sizeof rows / sizeof *rows; m++) {
        struct figure_series *const s =
            figure_series(run, "%s", sync_methods[rows[m].method]);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const bool judged = sizes[i] == 100;
            double share = 0;
            const double bytes = compare_bytes(run, rows[m].method, N, sizes[i],
                                               run->seed + i, &share);
            figure_point(run, s, (double)sizes[i], NAN, bytes,
                         judged ? rows[m].low : NAN,
                         judged ? rows[m].high : NAN);
        }
    }
    /* What the approximate ones find of 1,000. */
    struct figure_series *const found = figure_series(run, "share by bloom");
    double share = 0;
    (void)compare_bytes(run, SYNC_BLOOM, N, 2000, run->seed, &share);
    found->unseen = true;
    figure_point(run, found, 2000, 0.978, share, 0.96, 0.995);
}

const struct figure figure_sync = {
    .name = "sync",
    .title = "Bytes that it takes to know what one lacks",
    .source = "Specification of set reconciliation; bloomery sync --method.",
    .about = "Symbols and tables cost what differs, filters, trees and lists "
             "what is there. A filter of 8 bits finds 98 % of what is lacking; "
             "it is worth its bytes where a tenth and more differs and some of "
             "it may be missed.",
    .run = sync_run,
};

/* --------------------------------------------------------------------- tree */

static double tree_share(struct figure_run *run, double leaf, double inner,
                         unsigned correction, uint64_t seed, double *visited)
{
    enum { N = 10000, D = 100 };
    struct sync_set mine = { 0 }, theirs = { 0 };
    const bly_outline_spec spec = { .leaf_bits = leaf, .inner_bits = inner };
    uint64_t *const lacking = malloc(N * sizeof *lacking);
    bly_outline *o = NULL;
    size_t n = 0;
    uint64_t nodes = 0;
    if (!lacking || !make_set(run, &mine, seed, N, D, 0) ||
        !make_set(run, &theirs, seed, N, D, 1) ||
        bly_outline_new(&spec, theirs.elements, theirs.n, &o) ||
        bly_outline_lacking(o, mine.elements, mine.n, correction, lacking, &n,
                            &nodes))
        out_of_memory(run);
    bly_outline_free(o);
    free(lacking);
    set_free(&mine);
    set_free(&theirs);
    *visited += (double)nodes;
    return (double)n / D;
}

static void tree_run(struct figure_run *run)
{
    static const unsigned corrections[] = { 0, 1, 2, 3, 5 };
    static const struct {
        double leaf, inner, share[5];
    } rows[] = {
        { 4, 4, { .12, .64, .81, .83, .83 } },
        { 5, 3, { .01, .46, .79, .89, .91 } },
        { 6, 2, { .00, .17, .59, .84, .94 } },
    };
    const unsigned runs = run->full ? 100 : 10;
    run->x = AXIS(.label = "correction");
    run->y = AXIS(.label = "share of the difference that is found", .min = 0,
                  .max = 1);
    snprintf(run->subtitle, sizeof run->subtitle,
             "10,000 elements, 100 of them lacking; 8 bits per element in all");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "%g bits for leaves, %g for inner nodes",
                 rows[i].leaf, rows[i].inner);
        struct figure_series *const s = figure_series(run, "%s", name);
        for (size_t c = 0; c < sizeof corrections / sizeof *corrections; c++) {
            double sum = 0, visited = 0;
            for (unsigned r = 0; r < runs; r++)
                sum += tree_share(run, rows[i].leaf, rows[i].inner,
                                  corrections[c], run->seed + r, &visited);
            /* The first, without correction, hangs on a match at the root. */
            figure_point(run, s, corrections[c], rows[i].share[c], sum / runs,
                         rows[i].share[c] - 0.1, rows[i].share[c] + 0.1);
        }
    }
}

const struct figure figure_tree = {
    .name = "reconciliation-tree",
    .title = "What an approximate reconciliation tree finds",
    .source = "Byers, Considine, Mitzenmacher and Rost, Informed Content "
              "Delivery Across Adaptive Overlay Networks, 2002.",
    .about = "Bits for inner nodes let the search leave branches that both "
             "sides have; those for leaves say what is lacking. A correction "
             "of 1 or 2 nodes mends most false matches.",
    .run = tree_run,
};

/* -------------------------------------------------------------------- isect */

/* Bits that a filter of a list and the answer of another take: m and j for each
 * that passes. */
static double isect_cost(struct figure_run *run, size_t a, size_t b,
                         size_t common, double j, uint64_t *random)
{
    const double m = isect_bits((double)a, (double)b, j);
    const bly_outline_spec spec = { .leaf_bits = m / (double)a };
    uint64_t *const first = malloc(a * sizeof *first);
    uint64_t *const second = malloc(b * sizeof *second);
    uint64_t *const lacking = malloc(b * sizeof *lacking);
    bly_outline *o = NULL;
    size_t na = a, nb = b, n = 0;
    double bits = NAN;
    if (first && second && lacking) {
        for (size_t i = 0; i < a; i++)
            first[i] = random_next(random);
        for (size_t i = 0; i < b; i++)
            second[i] = i < common ? first[i] : random_next(random);
        if (!bly_elements_sort(first, &na) && !bly_elements_sort(second, &nb) &&
            !bly_outline_new(&spec, first, na, &o) &&
            !bly_outline_lacking(o, second, nb, 0, lacking, &n, NULL))
            bits = 8.0 * (double)bly_outline_written_bytes(o) +
                   j * (double)(nb - n);
    }
    run->broken |= isnan(bits);
    bly_outline_free(o);
    free(first);
    free(second);
    free(lacking);
    return bits;
}

static void isect_run(struct figure_run *run)
{
    static const size_t sizes[] = { 2000, 10000, 50000, 200000, 1000000 };
    enum { A = 1000, COMMON = 100, J = 128 };
    uint64_t random = run->seed;
    run->x = AXIS(.label = "ids in the longer list", .scale = PLOT_LOG);
    run->y = AXIS(.label = "filter and answer", .unit = "bits");
    snprintf(run->subtitle, sizeof run->subtitle,
             "1,000 ids of 128 bits in the shorter list, 100 in both; the list "
             "itself takes 128,000");
    struct figure_series *const s = figure_series(run, "filter and answer");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const double b = (double)sizes[i], m = isect_bits(A, b, J);
        const double f = pow(0.6185, m / A);
        const double expected = m + (COMMON + f * (b - COMMON)) * J;
        const unsigned runs = sizes[i] > 100000 ? 3 : 10;
        double sum = 0;
        if (sizes[i] > 200000 && !run->full)
            break;
        for (unsigned r = 0; r < runs; r++)
            sum += isect_cost(run, A, sizes[i], COMMON, J, &random);
        figure_point(run, s, b, expected, sum / runs, 0.95 * expected,
                     1.05 * expected);
    }
}

const struct figure figure_isect = {
    .name = "isect",
    .title = "Bits that it takes to intersect two lists",
    .source = "Reynolds and Vahdat, Efficient Peer-to-Peer Keyword Searching, "
              "2003 (bloomery isect).",
    .about = "The filter has the size that makes filter and answer together "
             "shortest. A list of 1,000 ids against one of 10,000 takes a "
             "fifth of the list itself.",
    .run = isect_run,
};
