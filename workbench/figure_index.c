/*
 * figure_index.c - filters side by side: bytes against documents opened in vain
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bloomery/index.h>

#include "base/random.h"
#include "report/say.h"
#include "workbench/figure.h"

/* Terms of a document: so many to ten times as many. */
#define INDEX_TERMS_LEAST 2000
#define INDEX_ASKED 4 /* terms of a question, at most */

/* Documents of 2,000 to 20,000 terms each, which no two share. */
static bool index_fill(bly_index_builder *b, uint64_t seed, size_t ndocs,
                       uint64_t *nterms)
{
    uint64_t hashes[10 * INDEX_TERMS_LEAST];
    *nterms = 0;
    for (size_t d = 0; d < ndocs; d++) {
        const size_t n =
            INDEX_TERMS_LEAST + random_next(&seed) % (9 * INDEX_TERMS_LEAST);
        const bly_index_terms terms = { hashes, n };
        for (size_t i = 0; i < n; i++)
            hashes[i] = random_next(&seed);
        *nterms += n;
        if (bly_index_builder_add(b, &terms, &d, sizeof d, NULL))
            return false;
    }
    return !bly_index_builder_commit(b);
}

/* The share of documents that questions with 1, 2 and 4 new terms open. */
static bool index_ask(struct figure_run *run, const bly_index *x, double bits,
                      size_t nquestions, struct figure_series *const series[3])
{
    const double ndocs = (double)bly_index_documents(x);
    const size_t words = bly_index_words(x);
    uint64_t *const maybe = calloc(words + 1, sizeof *maybe);
    uint64_t seed = ~run->seed;
    bool ok = maybe;
    for (size_t n = 1, i = 0; n <= INDEX_ASKED; n *= 2, i++) {
        bly_index_term terms[INDEX_ASKED] = { { 0 } };
        uint64_t opened = 0;
        for (size_t q = 0; ok && q < nquestions; q++) {
            for (size_t j = 0; j < n; j++)
                terms[j].hash = random_next(&seed);
            ok = !bly_index_ask(x, terms, n, maybe);
            for (size_t w = 0; w < words; w++)
                opened += (uint64_t)__builtin_popcountll(maybe[w]);
        }
        const double asked = ndocs * (double)nquestions;
        const double p = bly_index_expected(x, terms, n) / ndocs;
        figure_judge(run, series[i], bits, p, (double)opened / asked,
                     sqrt(p * (1 - p) / asked));
    }
    free(maybe);
    return ok;
}

static bool index_rate(struct figure_run *run, const char *path, double rate,
                       struct figure_series *const series[3])
{
    const bly_index_class class = { "terms", rate };
    const bly_index_spec spec = { .classes = &class, .nclasses = 1 };
    const size_t ndocs = run->full ? 400 : 100;
    bly_index_class_stats stats;
    bly_index_builder *b;
    bly_index *x = NULL;
    uint64_t nterms;
    if (bly_index_builder_new(path, &spec, &b))
        return false;
    bool ok = index_fill(b, run->seed, ndocs, &nterms) &&
              !bly_index_map(path, NULL, &x) &&
              bly_index_class_at(x, 0, &stats);
    bly_index_builder_free(b);
    ok = ok && index_ask(run, x, (double)stats.row_bytes * 8 / (double)nterms,
                         run->full ? 20000 : 4000, series);
    bly_index_free(x);
    return ok;
}

static void index_run(struct figure_run *run)
{
    static const double rates[] = { 0.5, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001 };
    char folder[] = "/tmp/bloomery-figure-XXXXXX", path[64];
    run->x = AXIS(.label = "bits of index per term of a document");
    run->y = AXIS(.label = "documents opened in vain", .scale = PLOT_LOG,
                  .format = PLOT_PERCENT);
    struct figure_series *const series[] = {
        figure_series(run, "questions of one term"),
        figure_series(run, "of two"),
        figure_series(run, "of four"),
    };
    if (!mkdtemp(folder)) {
        run->broken = true;
        fail_path(folder, errno);
        return;
    }
    snprintf(path, sizeof path, "%s/x.blx", folder);
    for (size_t i = 0; i < sizeof rates / sizeof *rates && !run->broken; i++)
        if (!index_rate(run, path, rates[i], series)) {
            run->broken = true;
            fail_library();
        }
    unlink(path);
    rmdir(folder);
    figure_note(run, "%d documents of %d to %d terms.", run->full ? 400 : 100,
                INDEX_TERMS_LEAST, 10 * INDEX_TERMS_LEAST);
}

const struct figure figure_index = {
    .name = "index-openings",
    .title = "Which of many documents: bytes against openings in vain",
    .source = "Bingmann, Bradley, Gauger, Iqbal: COBS: a Compact Bit-Sliced "
              "Signature Index, 2019.",
    .about = "A filter for each document, all side by side, as bloomery index "
             "keeps them. Dashed is what the sizes of documents and filters "
             "let expect, markers are the documents that questions about terms "
             "which occur nowhere would open. Each doubling of the terms of a "
             "question squares the share.",
    .run = index_run,
};
