/*
 * plan_near.c - the curve of banding: which pairs of texts will be found
 */
#include <stdio.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "report/json.h"
#include "report/say.h"
#include "workbench/plan_near.h"
#include "workbench/plot.h"

#define NEAR_STEPS 20
#define NEAR_PLOT_STEPS 200

/* A way to cut k components into bands. */
struct banding {
    const char *name, *why;
    bly_bands bands;
};

static void near_json(const struct near_plan *p, const struct banding *ways,
                      size_t n)
{
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "threshold");
    json_real(&j, p->threshold);
    json_key(&j, "components");
    json_uint(&j, p->components);
    for (size_t i = 0; i < n; i++) {
        json_key(&j, ways[i].name);
        json_open(&j, '{');
        json_key(&j, "bands");
        json_uint(&j, ways[i].bands.bands);
        json_key(&j, "rows");
        json_uint(&j, ways[i].bands.rows);
        json_key(&j, "recall");
        json_real(&j, bly_bands_chance(ways[i].bands, p->threshold));
        json_key(&j, "curve");
        json_open(&j, '[');
        for (unsigned s = 0; s <= NEAR_STEPS; s++) {
            json_open(&j, '[');
            json_real(&j, (double)s / NEAR_STEPS);
            json_real(&j,
                      bly_bands_chance(ways[i].bands, (double)s / NEAR_STEPS));
            json_close(&j, ']');
        }
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_end(&j);
}

static void near_print(const struct near_plan *p, const struct banding *ways,
                       size_t n)
{
    printf("%u components, threshold %g\n\n", p->components, p->threshold);
    for (size_t i = 0; i < n; i++)
        printf("%-8s %3u bands of %2u: finds a pair at the threshold with "
               "probability %.4f\n%-8s %s\n",
               ways[i].name, ways[i].bands.bands, ways[i].bands.rows,
               bly_bands_chance(ways[i].bands, p->threshold), "", ways[i].why);
    printf("\n%-8s", "likeness");
    for (size_t i = 0; i < n; i++)
        printf("  %10s", ways[i].name);
    putchar('\n');
    for (unsigned s = 1; s <= NEAR_STEPS; s++) {
        printf("%-8.2f", (double)s / NEAR_STEPS);
        for (size_t i = 0; i < n; i++)
            printf("  %10.6f",
                   bly_bands_chance(ways[i].bands, (double)s / NEAR_STEPS));
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
    struct banding ways[] = {
        { .name = "recall",
          .why = "the largest number of rows that still finds such pairs" },
        { .name = "area",
          .why = "the least total error over all likenesses, for comparison" },
    };
    const size_t n = sizeof ways / sizeof ways[0];
    if (bly_bands_choose(p->components, p->threshold, p->recall,
                         &ways[0].bands) ||
        bly_bands_balance(p->components, p->threshold, &ways[1].bands))
        return fail_library();
    const int status = p->plot ? near_plot(p, ways, n) : YES;
    if (status != YES)
        return status;
    if (p->json)
        near_json(p, ways, n);
    else if (!p->plot || strcmp(p->plot, "-") != 0)
        near_print(p, ways, n);
    return YES;
}
