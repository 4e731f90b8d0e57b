/*
 * cmd_bench.c - how fast the kinds are on this machine
 *
 * Which cells there are, how long they may take, and the rounds; bench.h says
 * what the other parts do, docs/performance.md how to read what comes out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/bench.h"
#include "cli/pipeline.h"

static struct {
    struct list kinds, items;
    double fpr;
    uint64_t threads, rounds;
    const char *plot, *pages;
    bool json, peers;
} bench_args;

/* Unless --rounds says how often, as often as this allows. */
#define BUDGET_SECONDS 60
/* A filter that grows is also measured after it grew as many times over. */
#define GROWTH 100
/* The trial that tells how long all will take. */
#define TRIAL_ITEMS 20000
#define MAX_SIZES 64

/* --------------------------------------------------------------- the line */

/* Call take() with every word of a list, commas being separators too. */
static bool each_word(const struct list *list,
                      bool (*take)(const char *word, void *ctx), void *ctx)
{
    for (size_t i = 0; i < list->n; i++) {
        char *const copy = strdup(list->at[i]);
        char *rest = copy;
        bool ok = copy != NULL;
        if (!copy)
            fail("out of memory");
        for (char *word; ok && (word = strsep(&rest, ","));)
            ok = take(word, ctx);
        free(copy);
        if (!ok)
            return false;
    }
    return true;
}

struct sizes {
    uint64_t at[MAX_SIZES];
    size_t n;
};

/* Sorted, each once. */
static bool take_size(const char *word, void *ctx)
{
    struct sizes *const s = ctx;
    uint64_t value;
    if (!bly_parse_count(word, &value) || !value) {
        fail("--items '%s': not a number of keys above 0 (right: 10M, or "
             "1k,1M,1G)",
             word);
        return false;
    }
    size_t at = 0;
    while (at < s->n && s->at[at] < value)
        at++;
    if (at < s->n && s->at[at] == value)
        return true;
    if (s->n == MAX_SIZES) {
        fail("--items: %d numbers at most", MAX_SIZES);
        return false;
    }
    memmove(s->at + at + 1, s->at + at, (s->n - at) * sizeof s->at[0]);
    s->at[at] = value;
    s->n++;
    return true;
}

struct contenders {
    struct bench_contender *at;
    size_t n;
    char (*names)[64]; /* of those whose name is made here */
};

static bool is_asked_for(const char *word, void *ctx)
{
    return strcmp(word, ctx) != 0; /* found: stop */
}

static bool take_kind(const char *word, void *ctx)
{
    (void)ctx;
    return kind_exists(word);
}

/* Kinds in the order of the table, those that grow twice, then peers. */
static bool take_contenders(struct contenders *c, char *missing, size_t nbytes)
{
    bly_kind_info kind;
    size_t nkinds = 0;
    if (!each_word(&bench_args.kinds, take_kind, NULL))
        return false;
    while (bly_kind_at(nkinds, &kind))
        nkinds++;
    const size_t most = 2 * nkinds + 2;
    c->at = calloc(most, sizeof *c->at);
    c->names = calloc(most, sizeof *c->names);
    if (!c->at || !c->names) {
        fail("out of memory");
        return false;
    }
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        const char *const name = kind.name;
        if (bench_args.kinds.n &&
            each_word(&bench_args.kinds, is_asked_for, (void *)(uintptr_t)name))
            continue;
        c->at[c->n++] = bench_kind(&kind, 0, name);
        if (strcmp(name, "scalable") != 0)
            continue;
        snprintf(c->names[c->n], sizeof c->names[0], "%s x%d", name, GROWTH);
        c->at[c->n] = bench_kind(&kind, GROWTH, c->names[c->n]);
        c->n++;
    }
    if (bench_args.peers)
        c->n += bench_peers(c->at + c->n, 2, missing, nbytes);
    return true;
}

/* ------------------------------------------------------------------ plans */

/* The bytes of a Bloom filter of n keys, for the table of F. */
static uint64_t footprint(uint64_t n, double fpr)
{
    const double nbytes = -log(fpr) / 0.480453013918201 / 8 * (double)n;
    return nbytes < 0x1p62 ? (uint64_t)nbytes + 1 : (uint64_t)1 << 62;
}

/* How much slower an access is at a footprint than in the trial, roughly. */
static double slowness(uint64_t nbytes)
{
    return nbytes < 1 << 20 ? 1 : nbytes < 16 << 20 ? 1.5 : 3;
}

/* Seconds a round of cell takes, from one at few keys. */
static void estimate(struct bench_cell *cell, double fpr,
                     struct bench_cell *trial, struct bench_scratch *s)
{
    *trial = (struct bench_cell){ .who = cell->who, .items = TRIAL_ITEMS };
    const double start = bench_now();
    if (!cell->who->plan(cell->who, fpr, trial))
        bench_round(trial, fpr, 1, &bench_trial, s);
    const double whole = bench_now() - start;
    double adding = 0, asking = 0;
    if (!trial->nrounds) {
        cell->seconds = whole * 1e-9;
        return;
    }
    const double *const ns = trial->rounds[0].ns;
    adding =
        isnan(ns[OP_ADD]) ? fmax(ns[OP_BUILD], ns[OP_ONE_ADD]) : ns[OP_ADD];
    for (int op = OP_ASK_ABSENT; op < NOPS; op++)
        if (!isnan(ns[op]) && op != OP_ONE_ADD)
            asking += ns[op] * (op >= OP_COUNT && op < OP_CALLS_64 ? 0.25 : 1);
    /* Keys and places are made beside the clock, memory is touched once. */
    const double added =
        fmax((double)cell->items, (double)bench_full.least_added);
    cell->seconds = ((adding + 2) * added * slowness(cell->bytes) +
                     asking * (double)bench_full.asked * slowness(cell->bytes) +
                     6e7 + 0.5 * (double)cell->bytes) *
                    1e-9;
}

/* Say why a cell is not measured, if it is not. */
static void admit(struct bench_cell *cell, double fpr)
{
    const char *const why = cell->who->plan(cell->who, fpr, cell);
    const uint64_t left = bench_memory_left();
    if (why)
        snprintf(cell->why, sizeof cell->why, "%s", why);
    else if (cell->needs > left)
        snprintf(cell->why, sizeof cell->why,
                 "skipped: measuring it takes %s, and %s are free",
                 show_bytes(cell->needs), show_bytes(left));
}

/* ------------------------------------------------------------------- runs */

static void run_rounds(struct bench_results *r, struct bench_scratch *s)
{
    const double start = bench_now();
    const uint64_t total = (uint64_t)(1e3 * r->seconds);
    uint64_t nkeys = 0;
    double last = 0;
    for (unsigned round = 0;; round++) {
        const double from = bench_now();
        uint64_t done = 0;
        const double spent = (from - start) * 1e-9;
        if (r->nrounds ? round >= r->nrounds
                       : round >= BENCH_MAX_ROUNDS ||
                             (round && spent + last > BUDGET_SECONDS))
            break;
        for (size_t i = 0; i < r->ncells; i++) {
            struct bench_cell *const c = &r->cells[i];
            const double used = (bench_now() - start) * 1e-9;
            if (c->why[0])
                continue;
            if (!r->nrounds && !round &&
                (c->seconds > BUDGET_SECONDS / 3 || used > 2 * BUDGET_SECONDS))
                snprintf(c->why, sizeof c->why,
                         "skipped: it takes about %.0f s, too much of a "
                         "minute; --rounds 1 measures it",
                         ceil(c->seconds));
            else if (c->needs / 2 > bench_memory_left())
                snprintf(c->why, sizeof c->why,
                         "skipped: memory has become short");
            else
                bench_round(c, r->fpr, r->nthreads, &bench_full, s);
            nkeys += c->items;
            done += (uint64_t)(1e3 * c->seconds);
            if (r->nrounds)
                progress_at(nkeys, round * total + done, r->nrounds * total);
            else
                progress_at(nkeys, 0, 0);
        }
        last = (bench_now() - from) * 1e-9;
    }
    progress_clear();
}

static int bench_show(const struct bench_results *r)
{
    const int status = bench_args.plot ? bench_plot(r, bench_args.plot) : YES;
    if (bench_args.json)
        bench_json(r);
    else
        bench_report(r);
    return status;
}

/* The lines for the commands: as many as the largest filter has keys, within
 * what DCSO's bloom does in some seconds. */
#define MOST_LINES 10000000

static void run_commands(struct bench_results *r, struct bench_lines *lines)
{
    const uint64_t largest = r->sizes[r->nsizes - 1];
    const unsigned nrounds = r->nrounds && r->nrounds < 3 ? r->nrounds : 3;
    bench_lines(largest < MOST_LINES ? largest : MOST_LINES, r->fpr, nrounds,
                lines);
    r->lines = lines;
}

static int bench_all(struct bench_results *r, const struct contenders *c,
                     struct bench_scratch *s, struct bench_lines *lines)
{
    struct bench_cell *const trial = malloc(sizeof *trial);
    if (!trial)
        return fail("out of memory");
    bool any = false;
    for (size_t i = 0; i < r->ncells; i++) {
        struct bench_cell *const cell = &r->cells[i];
        cell->who = &c->at[i % c->n];
        cell->items = r->sizes[i / c->n];
        admit(cell, r->fpr);
        if (!cell->why[0]) {
            any = true;
            estimate(cell, r->fpr, trial, s);
            r->seconds += cell->seconds;
        }
    }
    free(trial);
    if (!any)
        return fail("nothing can be measured: %s: %s", r->cells[0].who->name,
                    r->cells[0].why);
    if (!bench_args.json)
        bench_report_head(r);
    /* First, since a process that is made counts the memory that this one has
     * held to its own peak. */
    if (lines)
        run_commands(r, lines);
    progress_start(true);
    for (size_t i = 0; i < r->nsizes; i++) {
        r->footprints[i] = footprint(r->sizes[i], r->fpr);
        if (r->footprints[i] < bench_memory_left())
            bench_floor(r->footprints[i], &r->floors[i]);
        else
            r->floors[i] = (struct bench_floor){ NAN, NAN, NAN, NAN, 0, 0 };
    }
    r->huge_share = bench_floor_huge();
    run_rounds(r, s);
    bench_floor_close();
    return bench_show(r);
}

/* Could pictures be written there? The folder is made if need be. */
static bool folder_works(const char *path)
{
    struct stat st;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        fail_path(path, errno);
        return false;
    }
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        fail("--plot '%s': not a folder", path);
        return false;
    }
    if (access(path, W_OK | X_OK) != 0) {
        fail_path(path, errno);
        return false;
    }
    return true;
}

static int bench_run(struct list *operands)
{
    struct sizes sizes = { .n = 0 };
    struct contenders contenders = { 0 };
    char missing[160] = "";
    if (operands->n)
        return fail("'%s' is not understood; kinds are options, as in --kind "
                    "%s",
                    operands->at[0], operands->at[0]);
    if (bench_args.rounds > BENCH_MAX_ROUNDS)
        return fail("--rounds: %d at most", BENCH_MAX_ROUNDS);
    if (bench_args.pages && strcmp(bench_args.pages, "4k") != 0 &&
        strcmp(bench_args.pages, "huge") != 0)
        return fail("--pages '%s': right are 4k and huge", bench_args.pages);
    if (!each_word(&bench_args.items, take_size, &sizes) ||
        !take_contenders(&contenders, missing, sizeof missing) ||
        (bench_args.plot && !folder_works(bench_args.plot))) {
        free(contenders.at);
        free(contenders.names);
        return TROUBLE;
    }
    if (!sizes.n)
        sizes = (struct sizes){ { 1000000, 10000000 }, 2 };

    struct bench_results r = {
        .fpr = bench_args.fpr > 0 ? bench_args.fpr : 0.01,
        .nrounds = (unsigned)bench_args.rounds,
        .small_pages = bench_args.pages && strcmp(bench_args.pages, "4k") == 0,
        .sizes = sizes.at,
        .nsizes = sizes.n,
        .ncells = sizes.n * contenders.n,
        .missing = missing,
    };
    /* More threads than processors only wait for each other. */
    const unsigned most = 4 * thread_count(0);
    r.nthreads = bench_args.threads ? thread_count(bench_args.threads) : 1;
    if (r.nthreads > most)
        r.nthreads = most;
    if (r.small_pages)
        bench_use_small_pages();
    bench_machine(&r.machine);
    r.cells = calloc(r.ncells, sizeof *r.cells);
    r.floors = calloc(r.nsizes, sizeof *r.floors);
    r.footprints = calloc(r.nsizes, sizeof *r.footprints);
    struct bench_scratch *const s = calloc(1, sizeof *s);
    struct bench_lines *const lines =
        bench_args.peers ? calloc(1, sizeof *lines) : NULL;
    const int status =
        r.cells && r.floors && r.footprints && s && (lines || !bench_args.peers)
            ? bench_all(&r, &contenders, s, lines)
            : fail("out of memory");
    free(r.cells);
    free(r.floors);
    free(r.footprints);
    free(s);
    free(lines);
    free(contenders.at);
    free(contenders.names);
    return status;
}

static const struct opt bench_options[] = {
    { "kind", 'k', OPT_LIST, &bench_args.kinds, "KIND",
      "measure this kind; may be repeated; all if not given" },
    { "items", 'n', OPT_LIST, &bench_args.items, "N",
      "numbers of keys, 1k,1M,1G for instance; 1M and 10M if not given" },
    { "fpr", 'p', OPT_RATE, &bench_args.fpr, "P",
      "rate of false positives; 1% if not given" },
    { "threads", 't', OPT_POSITIVE, &bench_args.threads, "N",
      "ask and build with N threads too, four a processor at most" },
    { "rounds", 'r', OPT_POSITIVE, &bench_args.rounds, "N",
      "measure everything N times; as often as a minute allows if not given" },
    { "pages", 0, OPT_TEXT, &bench_args.pages, "4k|huge",
      "4k: do without huge pages, for the filters and for F" },
    { "peers", 0, OPT_FLAG, &bench_args.peers, NULL,
      "libbloom, a hash set, and the commands bloom and grep beside ours, "
      "where they are there" },
    { "plot", 0, OPT_TEXT, &bench_args.plot, "DIR",
      "draw curves over the number of keys, one file an operation, in DIR" },
    { "json", 0, OPT_FLAG, &bench_args.json, NULL, "print the result as JSON" },
    { 0 },
};

static const struct example bench_examples[] = {
    { "bloomery bench", "every kind at 1 and 10 million keys" },
    { "bloomery bench --kind blocked --rounds 9", "one kind, in detail" },
    { "bloomery bench --items 1k,10k,100k,1M,10M,100M --plot curves",
      "how it goes with the number of keys" },
    { 0 },
};

const struct command cmd_bench = {
    .name = "bench",
    .usage = "[OPTION]...",
    .summary = "measure how fast the kinds are on this machine",
    .about =
        "Adds, asks, counts and removes integer keys with every kind, in "
        "batches and one by one, and prints nanoseconds a key and multiples "
        "of F. F is what a random read of a cache line costs on this machine "
        "in as many bytes as the filter has: a filter that reads one line a "
        "key cannot do better. Figures are medians over rounds, and every "
        "round measures everything once.\n\n"
        "A figure that is held to a target is marked + where it meets it and "
        "- where it does not. What does not fit in memory, or in a minute "
        "unless --rounds is given, is skipped and said so.",
    .options = bench_options,
    .examples = bench_examples,
    .run = bench_run,
};
