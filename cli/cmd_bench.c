/*
 * cmd_bench.c - how fast the kinds are on this machine
 *
 * The options, and which contenders and sizes they name; bench.h says what the
 * other parts do, docs/performance.md how to read what comes out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "io/ordered.h"
#include "io/sizing.h"
#include "report/say.h"
#include "workbench/bench.h"

static struct {
    struct list kinds, items;
    double fpr;
    uint64_t threads, rounds, minutes;
    const char *plot;
    unsigned pages; /* 4k, or 1: huge */
    bool json, peers, gpu;
} bench_args = { .pages = 1 };

/* A filter that grows is also measured after it grew as many times over. */
#define MAX_SIZES 64
#define MINUTES 2

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
        fail(
            "--items '%s': not a number of keys above 0 (try 10M, or 1k,1M,1G)",
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
};

static bool is_another(const char *word, void *ctx)
{
    return strcmp(word, ctx) != 0; /* stops the search where it is not */
}

static bool take_kind(const char *word, void *ctx)
{
    (void)ctx;
    return strcmp(word, "all") == 0 || kind_exists(word);
}

/* Kinds that come a second time, otherwise: the one whose point is to grow,
 * grown; those that have targets for other options than the plan chooses. */
static const struct variant {
    const char *kind, *name;
    unsigned growth;
    bly_option option;
} variants[] = {
    { "scalable", "scalable x100", 100, { 0 } },
    { "countmin", "countmin 5", 0, { "depth", "5" } },
    { "fuse", "fuse 16", 0, { "bits", "16" } },
};
#define NVARIANTS (sizeof variants / sizeof variants[0])

/* Kinds in the order of the table, each with its variants, then peers. */
static bool take_contenders(struct contenders *c, char *missing, size_t nbytes)
{
    static char all_kinds[] = "all";
    bly_kind_info kind;
    size_t nkinds = 0;
    if (!each_word(&bench_args.kinds, take_kind, NULL))
        return false;
    while (bly_kind_at(nkinds, &kind))
        nkinds++;
    c->at = calloc(nkinds + NVARIANTS + 2, sizeof *c->at);
    if (!c->at) {
        fail("out of memory");
        return false;
    }
    const bool all = !bench_args.kinds.n ||
                     !each_word(&bench_args.kinds, is_another, all_kinds);
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        const char *const name = kind.name;
        if (!all &&
            each_word(&bench_args.kinds, is_another, (void *)(uintptr_t)name))
            continue;
        c->at[c->n++] = bench_kind(&kind, name, 0, NULL);
        for (size_t j = 0; j < NVARIANTS; j++) {
            const struct variant *const v = &variants[j];
            if (strcmp(v->kind, name) == 0)
                c->at[c->n++] = bench_kind(&kind, v->name, v->growth,
                                           v->option.name ? &v->option : NULL);
        }
    }
    if (bench_args.peers)
        c->n += bench_peers(c->at + c->n, 2, missing, nbytes);
    return true;
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

/* Could pictures be written there? The folder is made if need be. */
static bool folder_works(const char *path)
{
    struct stat st;
    if (bly_folder_make(path)) {
        fail_library();
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

/* The bench of a GPU needs CUDA's libraries, so it is a program of its own,
 * beside this one or where programs of its kind are installed. */
static int bench_gpu(void)
{
    static const char *const places[] = { "bloomery-bench-gpu",
                                          "../libexec/bloomery/"
                                          "bloomery-bench-gpu" };
    char self[4096], path[sizeof self + 64];
    const ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    char *const end = strrchr(self, '/');
    if (end)
        end[1] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s", self, places[i]);
        execl(path, path, bench_args.json ? "--json" : NULL, (char *)NULL);
        if (errno != ENOENT)
            return fail("%s: %s", path, strerror(errno));
    }
    return fail("--gpu: the bench for GPUs is not installed; `make cuda` "
                "builds it where CUDA's nvcc is");
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
    if (bench_args.gpu)
        return bench_gpu();
    if (bench_args.rounds > BENCH_MAX_ROUNDS)
        return fail("--rounds: %d at most", BENCH_MAX_ROUNDS);
    if (!each_word(&bench_args.items, take_size, &sizes) ||
        !take_contenders(&contenders, missing, sizeof missing) ||
        (bench_args.plot && !folder_works(bench_args.plot))) {
        free(contenders.at);
        return TROUBLE;
    }
    if (!sizes.n)
        sizes = (struct sizes){ { 1000000, 10000000 }, 2 };

    struct bench_results r = {
        .fpr = bench_args.fpr > 0 ? bench_args.fpr : 0.01,
        .nrounds = (unsigned)bench_args.rounds,
        .minutes = bench_args.minutes || bench_args.rounds ? bench_args.minutes
                                                           : MINUTES,
        .small_pages = bench_args.pages == 0,
        .sizes = sizes.at,
        .nsizes = sizes.n,
        .ncells = sizes.n * contenders.n,
        .missing = missing,
        .json = bench_args.json,
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
    int status = TROUBLE;
    if (!r.cells || !r.floors || !r.footprints || !s ||
        (!lines && bench_args.peers))
        fail("out of memory");
    else
        status = bench_all(&r, contenders.at, contenders.n, s, lines);
    if (status == YES)
        status = bench_show(&r);
    free(r.cells);
    free(r.floors);
    free(r.footprints);
    free(s);
    free(lines);
    free(contenders.at);
    return status;
}

static const struct opt bench_options[] = {
    { "kind", 'k', OPT_LIST, &bench_args.kinds, "KIND",
      "measure this kind; may be repeated; all if not given, or \"all\"" },
    { "items", 'n', OPT_LIST, &bench_args.items, "N",
      "numbers of keys, for instance 1k,1M,1G; 1M and 10M if not given" },
    { "fpr", 'p', OPT_RATE, &bench_args.fpr, "P",
      "rate of false positives; 1% if not given" },
    { "threads", 't', OPT_POSITIVE, &bench_args.threads, "N",
      "also query and build with N threads, at most four per processor" },
    { "rounds", 0, OPT_POSITIVE, &bench_args.rounds, "N",
      "measure everything N times; as often as the time allows if not given" },
    { "minutes", 0, OPT_POSITIVE, &bench_args.minutes, "N",
      "leave out what takes longest, so that three rounds, or as many as "
      "--rounds says, take no longer than this; 2 unless --rounds is given" },
    { "pages", 0, OPT_CHOICE, &bench_args.pages, "4k|huge",
      "4k: use no huge pages, neither for the filters nor for F" },
    FLAG("peers", 0, bench_args.peers,
         "also measure libbloom, a hash set, and the commands bloom and grep, "
         "if they are installed"),
    FLAG("gpu", 0, bench_args.gpu,
         "measure filters in the memory of an NVIDIA GPU instead, beside its "
         "own random gather; only --json goes with it"),
    { "plot", 0, OPT_TEXT, &bench_args.plot, "DIR",
      "draw curves over the number of keys in DIR, one file per operation" },
    JSON_OPTION(bench_args),
    { 0 },
};

static const struct example bench_examples[] = {
    { "bloomery bench", "every kind at 1 and 10 million keys" },
    { "bloomery bench --kind blocked --rounds 9", "one kind, in detail" },
    { "bloomery bench --items 1k,10k,100k,1M,10M,100M,1G --minutes 20 --plot "
      "curves",
      "how speed depends on the number of keys" },
    { 0 },
};

const struct command cmd_bench = {
    .name = "bench",
    .usage = "[OPTION]...",
    .summary = "measure how fast the kinds are on this machine",
    .about =
        "Adds, queries, counts and removes integer keys with every kind, in "
        "batches and one by one, and prints nanoseconds per key and multiples "
        "of F. F is the cost on this machine of reading a random cache line "
        "from as many bytes as the filter has: a filter that reads one line "
        "per key cannot do better. Figures are medians over rounds, and every "
        "round measures everything once.\n\n"
        "A figure that has a target is marked + if it meets it and - if it "
        "does not. What does not fit into memory or into the time is skipped, "
        "with a note.",
    .options = bench_options,
    .examples = bench_examples,
    .reports = (const struct report[]){ { "", bench_fields, ONE }, { 0 } },
    .run = bench_run,
};
