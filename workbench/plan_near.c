/*
 * plan_near.c - the curve of banding: which pairs of texts will be found
 */
#include <string.h>

#include <bloomery/sketch.h>

#include "report/say.h"
#include "workbench/plan_near.h"
#include "workbench/plot.h"

#define NEAR_STEPS 20
#define NEAR_PLOT_STEPS 200

struct near_point {
    double likeness, chance;
};

/* A way to cut k components into bands, and what it finds. */
struct banding {
    const char *name, *why;
    bly_bands bands;
    double recall;
    struct near_point curve[NEAR_STEPS + 1];
    size_t npoints;
};

static const struct field near_point_fields[] = {
    FIELD(struct near_point, likeness, NONE, "likeness of a pair"),
    FIELD(struct near_point, chance, NONE, "probability that it is found"),
    { 0 },
};

static const struct field banding_fields[] = {
    NAMED(struct banding, "bands", bands.bands, NONE, "bands"),
    NAMED(struct banding, "rows", bands.rows, NONE, "components in each"),
    FIELD(struct banding, recall, NONE,
          "probability that a pair at the threshold is found"),
    LIST(struct banding, "curve", curve, npoints, TUPLE, near_point_fields,
         "the same for other pairs: likeness and probability"),
    { 0 },
};

struct near_report {
    const struct near_plan *plan;
    struct banding ways[2];
};

static const struct field near_plan_fields[] = {
    FIELD(struct near_plan, threshold, NONE, "likeness to be found"),
    FIELD(struct near_plan, components, NONE, "components of a sketch"),
    { 0 },
};

const struct field near_fields[] = {
    MEMBERS(struct near_report, plan, AT, near_plan_fields),
    OBJECT(struct near_report, "recall", ways[0], NONE, banding_fields,
           "the bands that find such pairs with the wanted probability"),
    OBJECT(struct near_report, "area", ways[1], NONE, banding_fields,
           "the bands with the least total error, for comparison"),
    { 0 },
};

static void near_print(const struct near_plan *p, const struct banding *ways,
                       size_t n)
{
    printf("%u components, threshold %g\n\n", p->components, p->threshold);
    for (size_t i = 0; i < n; i++)
        printf("%-8s %3u bands of %2u: finds a pair at the threshold with "
               "probability %.4f\n%-8s %s\n",
               ways[i].name, ways[i].bands.bands, ways[i].bands.rows,
               ways[i].recall, "", ways[i].why);
    printf("\n%-8s", "likeness");
    for (size_t i = 0; i < n; i++)
        printf("  %10s", ways[i].name);
    putchar('\n');
    for (unsigned s = 1; s <= NEAR_STEPS; s++) {
        printf("%-8.2f", ways[0].curve[s].likeness);
        for (size_t i = 0; i < n; i++)
            printf("  %10.6f", ways[i].curve[s].chance);
        putchar('\n');
    }
}

static int near_plot(const struct near_plan *p, const struct banding *ways,
                     size_t n)
{
    static struct plot_point points[2][NEAR_PLOT_STEPS + 1];
    struct plot_series series[2];
    char names[2][64], subtitle[80];
    for (size_t i = 0; i < n; i++) {
        for (unsigned s = 0; s <= NEAR_PLOT_STEPS; s++) {
            const double at = (double)s / NEAR_PLOT_STEPS;
            points[i][s] =
                (struct plot_point){ .x = at,
                                     .y = bly_bands_chance(ways[i].bands, at) };
        }
        snprintf(names[i], sizeof names[i], "%s: %u bands of %u", ways[i].name,
                 ways[i].bands.bands, ways[i].bands.rows);
        series[i] = (struct plot_series){ .name = names[i],
                                          .points = points[i],
                                          .npoints = NEAR_PLOT_STEPS + 1 };
    }
    snprintf(subtitle, sizeof subtitle, "%u components", p->components);
    const struct plot_reference at = { .vertical = true,
                                       .at = p->threshold,
                                       .label = "threshold" };
    const struct plot plot = {
        .title = "Which pairs become candidates",
        .subtitle = subtitle,
        .x = { .label = "likeness of the pair", .min = 0, .max = 1 },
        .y = { .label = "probability of being found", .min = 0, .max = 1 },
        .series = series,
        .nseries = n,
        .references = &at,
        .nreferences = 1,
    };
    return plot_save(&plot, p->plot) ? YES : fail("%s", plot_why());
}

int plan_near(const struct near_plan *p)
{
    struct near_report r = {
        .plan = p,
        .ways = { { .name = "recall",
                    .why = "the largest number of rows that still finds such "
                           "pairs" },
                  { .name = "area",
                    .why = "the least total error over all likenesses, for "
                           "comparison" } },
    };
    struct banding *const ways = r.ways;
    const size_t n = 2;
    if (bly_bands_choose(p->components, p->threshold, p->recall,
                         &ways[0].bands) ||
        bly_bands_balance(p->components, p->threshold, &ways[1].bands))
        return fail_library();
    for (size_t i = 0; i < n; i++) {
        ways[i].recall = bly_bands_chance(ways[i].bands, p->threshold);
        for (; ways[i].npoints <= NEAR_STEPS; ways[i].npoints++) {
            const double x = (double)ways[i].npoints / NEAR_STEPS;
            ways[i].curve[ways[i].npoints] =
                (struct near_point){ x, bly_bands_chance(ways[i].bands, x) };
        }
    }
    const int status = p->plot ? near_plot(p, ways, n) : YES;
    if (status != YES)
        return status;
    if (p->json)
        report(stdout, true, near_fields, &r, NULL);
    else if (!p->plot || strcmp(p->plot, "-") != 0)
        near_print(p, ways, n);
    return YES;
}
