/*
 * similar.c - how alike are a few texts?
 *
 * Three answers side by side: the shingles themselves, which is the truth;
 * sketches of k components, which is what finding near copies among many texts
 * works with; and Bloom filters of the shingles laid over each other, with what
 * filters of nothing in common would show.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#include "apps/similar/similar.h"
#include "io/texts.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"

struct similar_text {
    uint64_t *set; /* distinct shingles, sorted */
    size_t n;
    uint64_t nwords, text;
    bly_sketch *sketch;
    bly_filter *filter;
};

struct similar_pair {
    size_t a, b;
    bly_overlap exact;
    double contained; /* share of the smaller one in the other */
    bly_resemblance sketch;
    bly_likeness filter;
    bool equal; /* the same words in the same order */
};

/* ---------------------------------------------------------------- texts */

static int similar_cut(const char *name, bly_shingler *cut, struct block *b,
                       const bly_sketch_spec *spec, struct similar_text *t)
{
    bly_shingles x;
    if (!text_read(name, b))
        return TROUBLE;
    if (bly_shingle(cut, b->at, b->len, &x))
        return fail("%s: %s", name, bly_error());
    t->nwords = x.nwords;
    t->text = x.text;
    if (bly_sketch_new(spec, &t->sketch) ||
        bly_sketch_add(t->sketch, x.hashes, x.n))
        return fail_library();
    t->n = bly_distinct(x.hashes, x.n);
    t->set = calloc(t->n + 1, sizeof *t->set);
    if (!t->set)
        return fail("out of memory");
    if (t->n)
        memcpy(t->set, x.hashes, t->n * sizeof *t->set);
    return YES;
}

/* A filter of the size that the largest set needs, for each. */
static int similar_filters(double fpr, struct similar_text *t, size_t n)
{
    bly_spec spec = { .kind = "classic", .items = 1, .fpr = fpr };
    for (size_t i = 0; i < n; i++)
        spec.items = t[i].n > spec.items ? t[i].n : spec.items;
    for (size_t i = 0; i < n; i++)
        if (bly_new(&spec, &t[i].filter) ||
            bly_add_hashes(t[i].filter, t[i].set, t[i].n, NULL, NULL))
            return fail_library();
    return YES;
}

static int similar_compare(const struct similar_text *t, struct similar_pair *p)
{
    const struct similar_text *const a = &t[p->a], *const b = &t[p->b];
    const size_t least = a->n < b->n ? a->n : b->n;
    p->exact = bly_overlap_of(a->set, a->n, b->set, b->n);
    p->contained = least ? (double)p->exact.in_both / (double)least : 0;
    p->equal = a->nwords && a->nwords == b->nwords && a->text == b->text;
    if (bly_sketch_compare(a->sketch, b->sketch, &p->sketch) ||
        bly_compare(a->filter, b->filter, &p->filter))
        return fail_library();
    return YES;
}

/* The deviation of a filter's J, which is common / both. */
static double similar_filter_sd(const bly_likeness *l)
{
    return l->in_either > 0 ? l->in_both_sd / l->in_either : NAN;
}

/* -------------------------------------------------------------- telling */

static const char *similar_unit(const bly_shingling *s)
{
    return s->unit == BLY_WORDS ? "word" : "char";
}

static void similar_json(const char *const *names, const struct similar_text *t,
                         size_t n, const struct similar_pair *pairs,
                         size_t npairs)
{
    const bly_sketch_spec *const spec = bly_sketch_spec_of(t[0].sketch);
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "unit");
    json_text(&j, similar_unit(&spec->shingling));
    json_key(&j, "size");
    json_uint(&j, spec->shingling.size);
    json_key(&j, "family");
    json_text(&j, bly_family_name(spec->family));
    json_key(&j, "components");
    json_uint(&j, spec->k);
    json_key(&j, "texts");
    json_open(&j, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(&j, '{');
        json_key(&j, "file");
        json_text(&j, names[i]);
        json_key(&j, "words");
        json_uint(&j, t[i].nwords);
        json_key(&j, "shingles");
        json_uint(&j, t[i].n);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_key(&j, "pairs");
    json_open(&j, '[');
    for (size_t i = 0; i < npairs; i++) {
        const struct similar_pair *const p = &pairs[i];
        const struct {
            const char *name;
            double value;
        } rows[] = {
            { "jaccard", p->exact.jaccard },
            { "containment", p->contained },
            { "sketch", p->sketch.jaccard },
            { "sketch_sd", p->sketch.sd },
            { "filter", p->filter.jaccard },
            { "filter_sd", similar_filter_sd(&p->filter) },
            { "shared_cells", p->filter.shared_cells },
            { "chance_cells", p->filter.chance_cells },
        };
        json_open(&j, '{');
        json_key(&j, "file_a");
        json_text(&j, names[p->a]);
        json_key(&j, "file_b");
        json_text(&j, names[p->b]);
        json_key(&j, "both");
        json_uint(&j, p->exact.in_both);
        json_key(&j, "either");
        json_uint(&j, p->exact.in_either);
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
            json_key(&j, rows[r].name);
            json_real(&j, rows[r].value);
        }
        json_key(&j, "equal");
        json_bool(&j, p->equal);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static void similar_share(double value, double sd)
{
    if (isfinite(value) && isfinite(sd))
        printf("  %6.3f +- %.3f", value, sd);
    else
        printf("  %6s         ", "?");
}

static void similar_print(const char *const *names,
                          const struct similar_text *t, size_t n,
                          const struct similar_pair *pairs, size_t npairs)
{
    const bly_sketch_spec *const spec = bly_sketch_spec_of(t[0].sketch);
    int wide = 4;
    for (size_t i = 0; i < n; i++) {
        const int len = (int)strlen(show_name(names[i]));
        wide = len > wide ? len : wide;
    }
    printf("shingles of %u %s%s; sketches of %u components (%s)\n\n",
           spec->shingling.size,
           spec->shingling.unit == BLY_WORDS ? "word" : "character",
           spec->shingling.size == 1 ? "" : "s", spec->k,
           bly_family_name(spec->family));
    printf("%-*s  %10s  %10s\n", wide, "text", "words", "shingles");
    for (size_t i = 0; i < n; i++)
        printf("%-*s  %10llu  %10zu\n", wide, show_name(names[i]),
               (unsigned long long)t[i].nwords, t[i].n);
    printf("\n%-*s  %-*s  %6s  %9s  %15s  %15s  %12s\n", wide, "a", wide, "b",
           "exact", "contained", "sketch", "filter", "cells/chance");
    for (size_t i = 0; i < npairs; i++) {
        const struct similar_pair *const p = &pairs[i];
        printf("%-*s  ", wide, show_name(names[p->a]));
        printf("%-*s  %6.3f  %9.3f", wide, show_name(names[p->b]),
               p->exact.jaccard, p->contained);
        similar_share(p->sketch.jaccard, p->sketch.sd);
        similar_share(p->filter.jaccard, similar_filter_sd(&p->filter));
        printf("  %5.3f /%5.3f", p->filter.shared_cells,
               p->filter.chance_cells);
        puts(p->equal ? "  the same words" : "");
    }
}

static int similar_all(const char *const *names, size_t n,
                       const bly_sketch_spec *spec, double fpr,
                       struct similar_text *t, struct similar_pair *pairs)
{
    struct block b = { 0 };
    bly_shingler *cut;
    int status = YES;
    if (bly_shingler_new(&spec->shingling, NULL, &cut))
        return fail_library();
    for (size_t i = 0; i < n && status == YES; i++)
        status = similar_cut(names[i], cut, &b, spec, &t[i]);
    block_free(&b);
    bly_shingler_free(cut);
    if (status == YES)
        status = similar_filters(fpr, t, n);
    struct similar_pair *p = pairs;
    for (size_t i = 0; i < n && status == YES; i++)
        for (size_t j = i + 1; j < n && status == YES; j++, p++) {
            p->a = i;
            p->b = j;
            status = similar_compare(t, p);
        }
    return status;
}

int similar(const struct similar_args *args, const struct list *texts)
{
    const size_t n = texts->n, npairs = n * (n - 1) / 2;
    bly_sketch_spec spec = { 0 };
    if (n < 2)
        return fail("at least two texts are needed, not %zu", n);
    if (n > 1000)
        return fail(
            "%zu texts are too many to compare every pair; at most 1000", n);
    if (!cutting_shingles(&args->cutting, &spec.shingling) ||
        !family_named(args->family, &spec.family))
        return TROUBLE;
    if (args->components > BLY_MAX_COMPONENTS)
        return fail("--components %llu: a sketch has at most %d",
                    (unsigned long long)args->components, BLY_MAX_COMPONENTS);
    spec.k = (unsigned)args->components;
    struct similar_text *const t = calloc(n, sizeof *t);
    struct similar_pair *const pairs = calloc(npairs, sizeof *pairs);
    int status = t && pairs
                     ? similar_all(texts->at, n, &spec, args->fpr, t, pairs)
                     : fail("out of memory");
    if (status == YES && args->json)
        similar_json(texts->at, t, n, pairs, npairs);
    else if (status == YES)
        similar_print(texts->at, t, n, pairs, npairs);
    for (size_t i = 0; t && i < n; i++) {
        free(t[i].set);
        bly_sketch_free(t[i].sketch);
        bly_free(t[i].filter);
    }
    free(t);
    free(pairs);
    return status;
}
