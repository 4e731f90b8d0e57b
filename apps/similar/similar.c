/*
 * similar.c - how alike are a few texts?
 *
 * Three answers side by side: the shingles themselves, which is the truth;
 * sketches of k components, which is what finding near copies among many texts
 * works with; and Bloom filters of the shingles laid over each other, with what
 * filters of nothing in common would show. Of a sketch that was saved there is
 * only the second.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/similar/similar.h"
#include "io/paths.h"
#include "io/sketch_files.h"
#include "report/say.h"
#include "report/show.h"

/* What --measure names. */
enum { BY_JACCARD, BY_COSINE, BY_ANGLE, BY_HAMMING, MEASURES };
static const char *const measure_names[MEASURES] = { "jaccard", "cosine",
                                                     "angle", "hamming" };

#define SIDES \
    1024 /* planes: the deviation of an angle is 2.8 degrees at most */

struct similar_text {
    const char *file;
    uint64_t *set; /* distinct shingles, sorted; NULL: not known */
    uint64_t n;
    uint64_t nwords, text;
    const uint64_t *words, *shingles; /* nwords and n, if they are known */
    bly_sketch *sketch;
    bly_filter *filter;
    uint64_t *sides; /* of planes; NULL: not wanted, or not known */
};

/* One measure of two texts, exactly and by what is kept of them. */
struct similar_measure {
    double exact, estimate, sd;
};

struct similar_pair {
    size_t a, b;
    const char *file_a, *file_b;
    bly_overlap exact;
    const uint64_t *in_both, *in_either; /* of that, if it is known */
    double contained; /* share of the smaller one in the other */
    bly_resemblance sketch;
    bly_likeness filter;
    double filter_sd; /* of a filter's J, which is in_both / in_either */
    bool equal;       /* the same words in the same order */
    bool measured;    /* these are wanted: */
    struct similar_measure by[MEASURES];
};

/* ---------------------------------------------------------------- texts */

static int similar_cut(const char *name, const struct similar_args *args,
                       bly_shingler *cut, struct block *b, struct html *html,
                       const bly_sketch_spec *spec, struct similar_text *t)
{
    const uint64_t most = args->max_text;
    bly_shingles x;
    bly_bytes text;
    if (!text_read(name, most ? most : INPUT_LINE_MOST,
                   "use --max-text for longer ones", b))
        return TROUBLE;
    text = (bly_bytes){ b->at, b->len };
    if (html_is_page(&args->pages, name, b->at, b->len)) {
        if (!html_works())
            return fail("%s: a web page; --html takes the text of pages that "
                        "do not come from a file, --tags all of it",
                        show_name(name));
        if (!html_text(html, b->at, b->len, NULL, &text))
            return fail("out of memory");
    }
    if (bly_shingle(cut, text.ptr, text.len, &x))
        return fail("%s: %s", name, bly_error());
    t->file = name;
    t->nwords = x.nwords;
    t->text = x.text;
    if (bly_sketch_new(spec, &t->sketch) ||
        bly_sketch_add(t->sketch, x.hashes, x.n))
        return fail_library();
    t->n = bly_distinct(x.hashes, x.n);
    t->set = calloc((size_t)t->n + 1, sizeof *t->set);
    t->words = &t->nwords;
    t->shingles = &t->n;
    if (!t->set)
        return fail("out of memory");
    if (t->n)
        memcpy(t->set, x.hashes, (size_t)t->n * sizeof *t->set);
    return YES;
}

static bool is_saved(const char *name)
{
    return !binary_input && sketch_type(name);
}

/* The sketch of a text that was saved. */
static int similar_saved(const char *name, struct similar_text *t)
{
    bly_stored s;
    if (!sketch_open(name, BLY_STORED_LIKENESS, NULL, &s))
        return TROUBLE;
    t->file = name;
    t->sketch = s.likeness;
    return YES;
}

/* A filter of the size that the largest set needs, for each. */
static int similar_filters(double fpr, struct similar_text *t, size_t n)
{
    bly_spec spec = { .kind = "classic", .items = 1, .fpr = fpr };
    for (size_t i = 0; i < n; i++)
        spec.items = t[i].n > spec.items ? t[i].n : spec.items;
    for (size_t i = 0; i < n; i++)
        if (t[i].set &&
            (bly_new(&spec, &t[i].filter) ||
             bly_add_hashes(t[i].filter, t[i].set, (size_t)t[i].n, NULL, NULL)))
            return fail_library();
    return YES;
}

/* On which sides of planes each set lies. */
static int similar_sides(struct similar_text *t, size_t n)
{
    bly_planes *planes;
    int status = YES;
    if (bly_planes_new(&(bly_planes_spec){ .nbits = SIDES }, &planes))
        return fail_library();
    for (size_t i = 0; i < n && status == YES; i++) {
        const bly_sparse set = { .places = t[i].set, .n = (size_t)t[i].n };
        if (!t[i].n)
            continue;
        t[i].sides = calloc(SIDES / 64, sizeof *t[i].sides);
        if (!t[i].sides)
            status = fail("out of memory");
        else if (bly_planes_sides_sparse(planes, &set, t[i].sides))
            status = fail_library();
    }
    bly_planes_free(planes);
    return status;
}

/* The measures of sets as vectors of zeros and ones. Of texts without shingles
 * there is only the number of places in which they differ. */
static void similar_measures(const struct similar_text *a,
                             const struct similar_text *b,
                             struct similar_pair *p)
{
    const double degrees = 180 / 3.14159265358979323846;
    const double na = (double)a->n, nb = (double)b->n;
    struct similar_measure *const by = p->by;
    for (unsigned i = 0; i < MEASURES; i++)
        by[i] = (struct similar_measure){ NAN, NAN, NAN };
    by[BY_JACCARD] =
        (struct similar_measure){ p->exact.jaccard, p->sketch.jaccard,
                                  p->sketch.sd };
    if (!a->set || !b->set || !p->measured)
        return;
    const double both = (double)p->exact.in_both;
    by[BY_HAMMING] =
        (struct similar_measure){ na + nb - 2 * both,
                                  fmax(0, na + nb - 2 * p->filter.in_both),
                                  2 * p->filter.in_both_sd };
    if (!a->sides || !b->sides)
        return;
    const bly_angle told =
        bly_angle_of(bly_sides_differ(a->sides, b->sides, SIDES), SIDES);
    const double cosine = fmin(1, both / sqrt(na * nb));
    by[BY_COSINE] =
        (struct similar_measure){ cosine, told.cosine, told.cosine_sd };
    by[BY_ANGLE] =
        (struct similar_measure){ acos(cosine) * degrees, told.angle * degrees,
                                  told.sd * degrees };
}

static int similar_compare(const struct similar_text *t, struct similar_pair *p)
{
    const struct similar_text *const a = &t[p->a], *const b = &t[p->b];
    const uint64_t least = a->n < b->n ? a->n : b->n;
    p->file_a = a->file;
    p->file_b = b->file;
    if (bly_sketch_compare(a->sketch, b->sketch, &p->sketch))
        return fail("%s and %s: %s", a->file, b->file, bly_error());
    p->exact.jaccard = p->contained = p->filter_sd = NAN;
    p->filter = (bly_likeness){ .jaccard = NAN,
                                .shared_cells = NAN,
                                .chance_cells = NAN };
    similar_measures(a, b, p);
    if (!a->set || !b->set)
        return YES;
    p->exact = bly_overlap_of(a->set, (size_t)a->n, b->set, (size_t)b->n);
    p->in_both = &p->exact.in_both;
    p->in_either = &p->exact.in_either;
    p->contained = least ? (double)p->exact.in_both / (double)least : 0;
    p->equal = a->nwords && a->nwords == b->nwords && a->text == b->text;
    if (bly_compare(a->filter, b->filter, &p->filter))
        return fail_library();
    const bly_likeness *const l = &p->filter;
    p->filter_sd = l->in_either > 0 ? l->in_both_sd / l->in_either : NAN;
    similar_measures(a, b, p);
    return YES;
}

/* -------------------------------------------------------------- telling */

static const struct field text_fields[] = {
    FIELD(struct similar_text, file, NONE, "the text"),
    FIELD(struct similar_text, words, MAYBE,
          "words in it; null for a sketch that was saved"),
    FIELD(struct similar_text, shingles, MAYBE, "different shingles, likewise"),
    { 0 },
};

static const struct field pair_fields[] = {
    FIELD(struct similar_pair, file_a, NONE, "one text"),
    FIELD(struct similar_pair, file_b, NONE, "another"),
    NAMED(struct similar_pair, "both", in_both, MAYBE,
          "shingles in both; null if one is a sketch that was saved"),
    NAMED(struct similar_pair, "either", in_either, MAYBE,
          "and in either, likewise"),
    NAMED(struct similar_pair, "jaccard", exact.jaccard, MAYBE,
          "both / either"),
    NAMED(struct similar_pair, "containment", contained, MAYBE,
          "both / the shingles of the smaller text"),
    NAMED(struct similar_pair, "sketch", sketch.jaccard, MAYBE,
          "jaccard by the sketches"),
    NAMED(struct similar_pair, "sketch_sd", sketch.sd, MAYBE,
          "standard deviation of that"),
    NAMED(struct similar_pair, "filter", filter.jaccard, MAYBE,
          "jaccard by the filters"),
    FIELD(struct similar_pair, filter_sd, MAYBE, "standard deviation of that"),
    NAMED(struct similar_pair, "shared_cells", filter.shared_cells, MAYBE,
          "of the emptier filter's cells, those set in both"),
    NAMED(struct similar_pair, "chance_cells", filter.chance_cells, MAYBE,
          "the same for texts that share nothing"),
    FIELD(struct similar_pair, equal, NONE,
          "whether they have the same words in the same order"),
    NAMED(struct similar_pair, "cosine", by[BY_COSINE].exact, OPTIONAL,
          "both / sqrt(a's shingles times b's), with --measure cosine or "
          "angle"),
    NAMED(struct similar_pair, "cosine_sides", by[BY_COSINE].estimate, OPTIONAL,
          "the same by sides of random planes"),
    NAMED(struct similar_pair, "cosine_sides_sd", by[BY_COSINE].sd, OPTIONAL,
          "standard deviation of that"),
    NAMED(struct similar_pair, "angle", by[BY_ANGLE].exact, OPTIONAL,
          "the angle of that cosine, in degrees"),
    NAMED(struct similar_pair, "angle_sides", by[BY_ANGLE].estimate, OPTIONAL,
          "the same by sides of random planes"),
    NAMED(struct similar_pair, "angle_sides_sd", by[BY_ANGLE].sd, OPTIONAL,
          "standard deviation of that"),
    NAMED(struct similar_pair, "hamming", by[BY_HAMMING].exact, OPTIONAL,
          "shingles in one of both only"),
    NAMED(struct similar_pair, "hamming_filter", by[BY_HAMMING].estimate,
          OPTIONAL, "the same by the filters"),
    NAMED(struct similar_pair, "hamming_filter_sd", by[BY_HAMMING].sd, OPTIONAL,
          "standard deviation of that"),
    { 0 },
};

struct similar_report {
    bly_sketch_spec spec;
    const char *unit, *family;
    const struct similar_text *texts;
    size_t n;
    const struct similar_pair *pairs;
    size_t npairs;
    bool words, single;
};

const struct field similar_fields[] = {
    FIELD(struct similar_report, unit, NONE, "\"word\" or \"char\""),
    NAMED(struct similar_report, "size", spec.shingling.size, NONE,
          "of them in a shingle"),
    FIELD(struct similar_report, family, NONE, "of the sketches"),
    NAMED(struct similar_report, "components", spec.k, NONE, "of a sketch"),
    LIST(struct similar_report, "texts", texts, n, AT, text_fields,
         "the texts"),
    LIST(struct similar_report, "pairs", pairs, npairs, AT, pair_fields,
         "every two of them"),
    FIELD(struct similar_report, words, NONE, NULL),
    FIELD(struct similar_report, single, NONE, NULL),
    { 0 },
};

static void similar_print(const struct similar_report *r)
{
    int wide = 4;
    for (size_t i = 0; i < r->n; i++) {
        const int len = (int)strlen(show_name(r->texts[i].file));
        wide = len > wide ? len : wide;
    }
    report_text(stdout, similar_fields, r,
                "shingles of {size} [{?words}word|character][{!single}s]; "
                "sketches of {components} components ({family})\n\n");
    printf("%-*s  %10s  %10s\n", wide, "text", "words", "shingles");
    for (size_t i = 0; i < r->n; i++) {
        printf("%-*s", wide, show_name(r->texts[i].file));
        report_text(stdout, text_fields, &r->texts[i],
                    "  [{words:10}  {shingles:10}|  a saved sketch]\n");
    }
    if (!r->npairs)
        return;
    printf("\n%-*s  %-*s  %6s  %9s  %15s  %15s  %12s\n", wide, "a", wide, "b",
           "exact", "contained", "sketch", "filter", "cells/chance");
    for (size_t i = 0; i < r->npairs; i++) {
        printf("%-*s  ", wide, show_name(r->pairs[i].file_a));
        printf("%-*s", wide, show_name(r->pairs[i].file_b));
        report_text(stdout, pair_fields, &r->pairs[i],
                    "  [{jaccard:6.3}  {containment:9.3}|     ?          ?]"
                    "  [{sketch:6.3} +- {sketch_sd:.3}|     ?         ]"
                    "  [{filter:6.3} +- {filter_sd:.3}|     ?         ]"
                    "[  {shared_cells:5.3} /{chance_cells:5.3}]"
                    "[{?equal}  the same words]\n");
    }
}

static void print_measure(const struct similar_measure *m)
{
    if (isnan(m->exact))
        printf("  %10s", "?");
    else
        printf("  %10.4g", m->exact);
    if (isnan(m->estimate))
        printf("  %18s", "?         ");
    else
        printf("  %8.4g +- %-6.2g", m->estimate, m->sd);
}

/* Every two texts by the measures that are wanted, side by side. */
static void measures_print(const struct similar_report *r,
                           const struct list *names)
{
    static const char *const units[MEASURES] = { "by sketch", "by sides",
                                                 "by sides", "by filter" };
    int wide = 1;
    for (size_t i = 0; i < r->n; i++) {
        const int len = (int)strlen(show_name(r->texts[i].file));
        wide = len > wide ? len : wide;
    }
    printf("%-*s  %-*s", wide, "a", wide, "b");
    for (size_t k = 0; k < names->n; k++)
        for (unsigned m = 0; m < MEASURES; m++)
            if (!strcmp(names->at[k], measure_names[m]))
                printf("  %10s  %18s", measure_names[m], units[m]);
    putchar('\n');
    for (size_t i = 0; i < r->npairs; i++) {
        printf("%-*s  ", wide, show_name(r->pairs[i].file_a));
        printf("%-*s", wide, show_name(r->pairs[i].file_b));
        for (size_t k = 0; k < names->n; k++)
            for (unsigned m = 0; m < MEASURES; m++)
                if (!strcmp(names->at[k], measure_names[m]))
                    print_measure(&r->pairs[i].by[m]);
        putchar('\n');
    }
}

/* Are they measures, and is one of them an angle? */
static bool measures_read(const struct list *names, bool *angles)
{
    *angles = false;
    for (size_t k = 0; k < names->n; k++) {
        unsigned m = 0;
        while (m < MEASURES && strcmp(names->at[k], measure_names[m]) != 0)
            m++;
        if (m == MEASURES)
            return refuse("--measure %s: expected jaccard, cosine, angle or "
                          "hamming",
                          names->at[k]);
        *angles = *angles || m == BY_COSINE || m == BY_ANGLE;
    }
    return true;
}

static int similar_all(const char *const *names, size_t n,
                       const bly_sketch_spec *spec,
                       const struct similar_args *args, struct similar_text *t,
                       struct similar_pair *pairs)
{
    struct block b = { 0 };
    struct html html = { 0 };
    bly_shingler *cut;
    int status = YES;
    if (bly_shingler_new(&spec->shingling, NULL, &cut))
        return fail_library();
    for (size_t i = 0; i < n && status == YES; i++)
        status = is_saved(names[i])
                     ? similar_saved(names[i], &t[i])
                     : similar_cut(names[i], args, cut, &b, &html, spec, &t[i]);
    block_free(&b);
    html_free(&html);
    bly_shingler_free(cut);
    if (status == YES)
        status = similar_filters(args->fpr, t, n);
    bool angles;
    if (status == YES && measures_read(&args->measures, &angles) && angles)
        status = similar_sides(t, n);
    struct similar_pair *p = pairs;
    for (size_t i = 0; i < n && status == YES; i++)
        for (size_t j = i + 1; j < n && status == YES; j++, p++) {
            p->a = i;
            p->b = j;
            p->measured = args->measures.n > 0;
            status = similar_compare(t, p);
        }
    return status;
}

/* How to sketch texts: as the options say, or where they say nothing, like the
 * first one that was saved. False, with the reason printed. */
static bool similar_spec(const struct similar_args *args,
                         const struct list *texts, bly_sketch_spec *spec)
{
    const bool free_choice = !was_given(&args->cutting.unit) &&
                             !args->cutting.size && !args->family &&
                             !args->components;
    if (!cutting_shingles(&args->cutting, &spec->shingling) ||
        !family_named(args->family, &spec->family))
        return false;
    if (args->components > BLY_MAX_COMPONENTS) {
        fail("--components %llu: a sketch has at most %d",
             (unsigned long long)args->components, BLY_MAX_COMPONENTS);
        return false;
    }
    spec->k = (unsigned)args->components;
    for (size_t i = 0; free_choice && i < texts->n; i++) {
        bly_stored s;
        if (!is_saved(texts->at[i]))
            continue;
        if (!sketch_open(texts->at[i], BLY_STORED_LIKENESS, NULL, &s))
            return false;
        *spec = *bly_sketch_spec_of(s.likeness);
        spec->mem = NULL;
        bly_stored_free(&s);
        break;
    }
    return true;
}

/* Save the sketch of all texts. */
static int similar_save(const char *path, const struct similar_text *t,
                        size_t n)
{
    bly_stored all = { .type = BLY_STORED_LIKENESS };
    if (bly_sketch_new(bly_sketch_spec_of(t[0].sketch), &all.likeness))
        return fail_library();
    int status = YES;
    for (size_t i = 0; i < n && status == YES; i++)
        if (bly_sketch_merge(all.likeness, t[i].sketch))
            status = fail("%s: %s", t[i].file, bly_error());
    if (status == YES)
        status = sketch_save(&all, path);
    bly_stored_free(&all);
    return status;
}

int similar(const struct similar_args *args, const struct list *texts)
{
    const size_t n = texts->n, npairs = n ? n * (n - 1) / 2 : 0;
    bly_sketch_spec spec = { 0 };
    if (n < (args->output ? 1 : 2))
        return fail("at least %s needed, not %zu",
                    args->output ? "one text is" : "two texts are", n);
    if (n > 1000)
        return fail(
            "%zu texts are too many to compare every pair; at most 1000", n);
    if (args->output && (!output_works(args->output, args->json) ||
                         !output_spares(args->output, texts->at, n)))
        return TROUBLE;
    bool angles;
    if (!measures_read(&args->measures, &angles) ||
        !similar_spec(args, texts, &spec))
        return TROUBLE;
    FILE *const to = args->output ? report_to(args->output) : stdout;
    struct similar_text *const t = calloc(n, sizeof *t);
    struct similar_pair *const pairs = calloc(npairs + 1, sizeof *pairs);
    int status = t && pairs ? similar_all(texts->at, n, &spec, args, t, pairs)
                            : fail("out of memory");
    if (status == YES && args->output)
        status = similar_save(args->output, t, n);
    if (status == YES && to == stdout) {
        const bly_sketch_spec *const of = bly_sketch_spec_of(t[0].sketch);
        const bool words = of->shingling.unit == BLY_WORDS;
        const struct similar_report r = { *of,
                                          words ? "word" : "char",
                                          bly_family_name(of->family),
                                          t,
                                          n,
                                          pairs,
                                          npairs,
                                          words,
                                          of->shingling.size == 1 };
        if (args->json)
            report(stdout, true, similar_fields, &r, NULL);
        else if (args->measures.n)
            measures_print(&r, &args->measures);
        else
            similar_print(&r);
    }
    for (size_t i = 0; t && i < n; i++) {
        free(t[i].set);
        bly_sketch_free(t[i].sketch);
        bly_free(t[i].filter);
        free(t[i].sides);
    }
    free(t);
    free(pairs);
    return status;
}
