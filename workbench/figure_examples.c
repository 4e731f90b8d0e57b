/*
 * figure_examples.c - the worked examples of the texts, as pictures
 *
 * Every position is computed from the hash functions as they are written, and
 * judged against what is printed.
 */
#include <math.h>

#include "report/say.h"
#include "workbench/explain.h"
#include "workbench/figure.h"

enum { EXAMPLE_STEPS = 8, EXAMPLE_HASHES = 3 };

/* A step, and the positions that are printed for it. */
struct example_step {
    enum explain_op op;
    uint64_t key;
    size_t printed[EXAMPLE_HASHES];
    bool maybe; /* the right answer */
};

struct worked_example {
    const char *hashes[EXAMPLE_HASHES];
    size_t nsteps;
    enum explain_way way;
    struct example_step steps[EXAMPLE_STEPS];
};

static bool example_make(const struct worked_example *w, struct explain *e)
{
    *e = (struct explain){ .m = 10, .nhashes = EXAMPLE_HASHES, .way = w->way };
    for (size_t i = 0; i < EXAMPLE_HASHES; i++)
        e->hashes[i] = w->hashes[i];
    for (size_t i = 0; i < w->nsteps; i++)
        if (!explain_step(e, w->steps[i].op, w->steps[i].key))
            return false;
    return true;
}

static void example_run(struct figure_run *run, const struct worked_example *w)
{
    struct explain e;
    run->broken = !example_make(w, &e);
    for (size_t i = 0; i < e.nsteps && !run->broken; i++) {
        const struct explain_step *s = &e.steps[i];
        struct figure_series *places = figure_series(run, "%s", s->label);
        for (size_t k = 0; k < EXAMPLE_HASHES; k++) {
            const double printed = (double)w->steps[i].printed[k];
            figure_point(run, places, (double)k + 1, printed,
                         (double)s->touched[k], printed, printed);
        }
        if (s->op == EXPLAIN_HAS) {
            const double right = w->steps[i].maybe;
            struct figure_series *answer =
                figure_series(run, "%s: maybe", s->label);
            figure_point(run, answer, NAN, right, s->maybe, right, right);
        }
    }
    explain_free(&e);
}

static bool example_draw(const struct figure_run *run,
                         const struct worked_example *w, const char *path)
{
    struct explain e;
    bool ok = example_make(w, &e);
    if (ok &&
        !explain_draw(&e, run->figure->title, run->figure->source, path)) {
        fail("%s", plot_why());
        ok = false;
    }
    explain_free(&e);
    return ok;
}

#define WORKED_EXAMPLE(NAME)                                                \
    static void NAME##_run(struct figure_run *run)                          \
    {                                                                       \
        example_run(run, &NAME##_steps);                                    \
    }                                                                       \
    static bool NAME##_draw(const struct figure_run *run, const char *path) \
    {                                                                       \
        return example_draw(run, &NAME##_steps, path);                      \
    }

/* ------------------------------------------------------------- the slides */

static const struct worked_example slides_steps = {
    .hashes = { "x+3", "3x+1", "x^2+2" },
    .nsteps = 7,
    .steps = { { EXPLAIN_ADD, 2, { 5, 7, 6 }, false },
               { EXPLAIN_ADD, 4, { 7, 3, 8 }, false },
               { EXPLAIN_ADD, 9, { 2, 8, 3 }, false },
               { EXPLAIN_HAS, 4, { 7, 3, 8 }, true },
               { EXPLAIN_HAS, 7, { 0, 2, 1 }, false },
               { EXPLAIN_HAS, 12, { 5, 7, 6 }, true },
               { EXPLAIN_HAS, 5, { 8, 6, 7 }, true } },
};

WORKED_EXAMPLE(slides)

const struct figure figure_slides = {
    .name = "example-slides",
    .title = "2, 4 and 9 in ten bits",
    .source = "Slides: h1 = x+3, h2 = 3x+1, h3 = x^2+2, all mod 10.",
    .about = "The example of the slides; all of its values are right. 12 has "
             "the positions of 2 and is a false positive. The slides do not "
             "mention that 5 is one as well, which shares its positions with "
             "several keys.",
    .run = slides_run,
    .draw = slides_draw,
};

/* ------------------------------------------------------- the course paper */

static const struct worked_example course_steps = {
    .hashes = { "x", "2x+3", "3x+7" },
    .nsteps = 5,
    .steps = { { EXPLAIN_ADD, 2, { 2, 7, 3 }, false },
               { EXPLAIN_ADD, 4, { 4, 1, 9 }, false },
               { EXPLAIN_ADD, 9, { 9, 1, 4 }, false },
               { EXPLAIN_HAS, 5, { 5, 3, 2 }, false },
               { EXPLAIN_HAS, 12, { 2, 7, 3 }, true } },
};

WORKED_EXAMPLE(course)

const struct figure figure_course = {
    .name = "example-course-paper",
    .title = "The same keys by other hash functions",
    .source = "Course paper: h1 = x, h2 = 2x+3, h3 = 3x+7, all mod 10.",
    .about =
        "The positions are right. The paper says that 5 is absent because "
        "position 2 is 0; in fact positions 2 and 3 are set, and it is "
        "position 5 that proves absence. 12 collides with 2 by necessity: all "
        "three functions depend on x mod 10 alone.",
    .run = course_run,
    .draw = course_draw,
};

/* ----------------------------------------------------------- with counters */

static const struct worked_example counters_steps = {
    .hashes = { "x+3", "3x+1", "x^2+2" },
    .nsteps = 5,
    .way = EXPLAIN_COUNTING,
    .steps = { { EXPLAIN_ADD, 2, { 5, 7, 6 }, false },
               { EXPLAIN_ADD, 4, { 7, 3, 8 }, false },
               { EXPLAIN_REMOVE, 2, { 5, 7, 6 }, true },
               { EXPLAIN_HAS, 2, { 5, 7, 6 }, false },
               { EXPLAIN_HAS, 4, { 7, 3, 8 }, true } },
};

WORKED_EXAMPLE(counters)

const struct figure figure_counters = {
    .name = "example-counters",
    .title = "Counters remember how many keys a cell has",
    .source = "Seminar paper, figure 7, with the functions of the slides.",
    .about = "2 and 4 share cell 7, whose counter is 2. Removing 2 leaves 1 "
             "there, so that 4 is still found: with bits it would be lost.",
    .run = counters_run,
    .draw = counters_draw,
};
