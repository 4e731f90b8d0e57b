/*
 * cmd_figures.c - bloomery figures: experiments, judged and drawn
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "report/say.h"
#include "workbench/figure.h"
#include "workbench/plot_svg.h"

static struct {
    const char *out;
    bool list, quick, full, json;
    uint64_t seed;
} figures_args;

static const struct figure *const figures[] = {
#define FIGURE_ROW_(name) &figure_##name,
    FIGURES(FIGURE_ROW_)
#undef FIGURE_ROW_
};
#define NFIGURES (sizeof figures / sizeof figures[0])

static const struct figure *figure_named(const char *name)
{
    for (size_t i = 0; i < NFIGURES; i++)
        if (strcmp(figures[i]->name, name) == 0)
            return figures[i];
    return NULL;
}

static const char *figure_word(size_t i, const void *ctx)
{
    (void)ctx;
    return figures[i]->name;
}

static bool is_figure(const char *name)
{
    if (figure_named(name))
        return true;
    const char *near = nearest_word(name, NFIGURES, figure_word, NULL);
    if (near)
        fail("there is no figure %s; did you mean %s?", name, near);
    else
        fail("there is no figure %s; bloomery figures --list shows all names",
             name);
    return false;
}

static const struct field listed_fields[] = {
    ALSO(figure_fields),
    FIELD(struct figure, about, NONE, "what one sees"),
    { 0 },
};

static int figures_list(bool json)
{
    struct json j = { .to = stdout };
    if (json)
        json_open(&j, '[');
    for (size_t i = 0; i < NFIGURES; i++)
        if (json)
            report_object(&j, listed_fields, figures[i]);
        else
            printf("%-22s %s\n", figures[i]->name, figures[i]->title);
    if (json) {
        json_close(&j, ']');
        json_end(&j);
    }
    return YES;
}

/* -------------------------------------------------------------- the page */

/* index.md, piece by piece: the text grows as figures are run. */
struct page {
    char *text;
    size_t size;
    FILE *to;
};

/* The processor's name, for those who read times. */
static void page_machine(FILE *to)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[200] = "";
    while (f && fgets(line, sizeof line, f) &&
           strncmp(line, "model name", 10) != 0)
        line[0] = '\0';
    if (f)
        fclose(f);
    char *name = strchr(line, ':');
    if (name)
        name[strcspn(name, "\n")] = '\0';
    fprintf(to, "%s with %ld cores\n", name ? name + 2 : "a processor",
            sysconf(_SC_NPROCESSORS_ONLN));
}

static void page_begin(struct page *page, bool full)
{
    page->to = open_memstream(&page->text, &page->size);
    if (!page->to)
        return;
    fprintf(page->to,
            "# Figures\n\n"
            "Every picture here is drawn from a run of the library: `bloomery "
            "figures%s --out DIR`\ndraws them again (`make figures` draws "
            "these). Dashed lines are what is expected, markers\nwhat was "
            "measured. Where there are many kinds, each panel has a few, and "
            "classic as the\nyardstick. The table of each figure, with the "
            "band in which a value is accepted, is in the\nCSV beside it.\n\n"
            "Run with bloomery %s on ",
            full ? " --full" : "", bly_version());
    page_machine(page->to);
}

static void page_add(struct page *page, const struct figure_run *run)
{
    if (!page->to)
        return;
    const struct figure *f = run->figure;
    fprintf(page->to, "\n## %s\n\n", f->title);
    if (f->tabled)
        figure_page_table(page->to, run);
    else
        fprintf(page->to, "![%s](%s.svg)\n", f->title, f->name);
    fprintf(page->to,
            "\n%s\n\n*%s* Values: [%s.csv](%s.csv), %zu of %zu in their "
            "bands.\n",
            f->about, f->source, f->name, f->name, run->njudged - run->nfailed,
            run->njudged);
    if (run->notes) {
        fputc('\n', page->to);
        for (const char *at = run->notes; *at; at = strchr(at, '\n') + 1)
            fprintf(page->to, "* %.*s\n", (int)(strchr(at, '\n') - at), at);
    }
}

static bool write_page(const void *what, plot_put *put, void *ctx)
{
    const struct page *page = what;
    return put(ctx, page->text, page->size);
}

static bool page_save(struct page *page, const char *folder)
{
    char *path = NULL;
    bool ok = page->to && fclose(page->to) == 0 && page->text &&
              asprintf(&path, "%s/index.md", folder) >= 0;
    if (!ok)
        fail("out of memory");
    else if (!plot_to_file(write_page, page, path)) {
        ok = false;
        fail("%s", plot_why());
    }
    free(path);
    free(page->text);
    return ok;
}

/* ------------------------------------------------------------ the command */

static bool is_chosen(const struct figure *f, const struct list *names)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i], f->name) == 0)
            return true;
    return names->n == 0;
}

static int figures_run(struct list *operands)
{
    for (size_t i = 0; i < operands->n; i++)
        if (!is_figure(operands->at[i]))
            return TROUBLE;
    if (figures_args.list)
        return figures_list(figures_args.json);
    if (figures_args.quick && figures_args.full)
        return fail("--quick and --full contradict each other: give one");
    const char *folder = figures_args.out;
    if (folder && bly_folder_make(folder))
        return fail_library();
    struct json j = { .to = stdout };
    struct page page = { 0 };
    if (figures_args.json)
        json_open(&j, '[');
    if (folder)
        page_begin(&page, figures_args.full);
    size_t nvalues = 0, noutside = 0;
    int status = YES;
    for (size_t i = 0; i < NFIGURES && status != TROUBLE; i++) {
        if (!is_chosen(figures[i], operands))
            continue;
        struct figure_run run = { .figure = figures[i],
                                  .full = figures_args.full,
                                  .seed = figures_args.seed };
        if (!figure_show(&run, folder, figures_args.json ? &j : NULL))
            status = TROUBLE;
        else if (run.nfailed)
            status = NO;
        nvalues += run.njudged;
        noutside += run.nfailed;
        page_add(&page, &run);
        figure_free(&run);
    }
    if (figures_args.json) {
        json_close(&j, ']');
        json_end(&j);
    } else if (status != TROUBLE) {
        printf("%zu values, %zu in their bands, %zu outside\n", nvalues,
               nvalues - noutside, noutside);
    }
    if (folder && operands->n == 0 && status != TROUBLE) {
        if (!page_save(&page, folder))
            status = TROUBLE;
    } else if (page.to) {
        fclose(page.to);
        free(page.text);
    }
    return status;
}

static const struct opt figures_options[] = {
    FLAG("list", 0, figures_args.list, "only list the figures"),
    { "output", 'o', OPT_TEXT, &figures_args.out, "DIR",
      "write NAME.csv and NAME.svg into this folder, and a page, index.md, if "
      "all figures are run; figures that are mere tables have no NAME.svg" },
    { "out", 0, OPT_TEXT, &figures_args.out, "DIR", "the same" },
    FLAG("quick", 0, figures_args.quick,
         "smaller sets and fewer points: ten seconds for all (the default)"),
    FLAG("full", 0, figures_args.full,
         "sets and points as in print: a minute for all"),
    { "seed", 0, OPT_COUNT, &figures_args.seed, "N",
      "use other random numbers than those of seed 0" },
    FLAG("json", 0, figures_args.json, "print an array of JSON objects"),
    { 0 },
};

static const struct example figures_examples[] = {
    { "bloomery figures --list", "list all figures" },
    { "bloomery figures rate-against-k", "one figure, as a table" },
    { "bloomery figures --full --out figures", "all figures, with pictures" },
    { 0 },
};

const struct command cmd_figures = {
    .name = "figures",
    .usage = "[FIGURE]... [-o DIR] [--quick | --full] [--json]",
    .summary = "redraw the figures of the papers from real runs",
    .about = "Runs experiments with the library and prints what is expected, "
             "what was measured, and the band in which a measured value is "
             "accepted. With --out, each figure also becomes a CSV file and, "
             "where there is something to see, a picture (SVG).\n\n"
             "The exit status is 0 if every value lies in its band, 1 if one "
             "does not, and 2 after an error.",
    .options = figures_options,
    .examples = figures_examples,
    .reports =
        (const struct report[]){
            { "", drawn_fields, ARRAY },
            { "with --list", listed_fields, ARRAY },
            { 0 },
        },
    .run = figures_run,
};
