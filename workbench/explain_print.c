/*
 * explain_print.c - the steps of a small filter, printed and drawn
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/show.h"
#include "workbench/explain.h"
#include "workbench/plot.h"

static int digits_of(size_t n)
{
    int digits = 1;
    while (n >= 10) {
        n /= 10;
        digits++;
    }
    return digits;
}

/* Cells from .. to - 1 of a step, or their numbers. */
static void print_cells(const struct explain_step *s, int width, size_t from,
                        size_t to)
{
    for (size_t c = from; c < to; c++)
        if (!s)
            printf(" %*zu", width, c);
        else if (s->cells[c])
            printf(" %*u", width, s->cells[c]);
        else
            printf(" %*s", width, ".");
}

static void print_places(const struct explain_step *s)
{
    for (size_t i = 0; i < s->ntouched; i++)
        printf("%s%zu%s", i ? ", " : "", s->touched[i],
               s->op == EXPLAIN_HAS && !s->cells[s->touched[i]] ? " (empty)"
                                                                : "");
    if (s->result[0])
        printf(": %s", s->result);
}

/* Columns of the terminal, or of what the command prints elsewhere. */
static int explain_columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col
               ? size.ws_col
               : 79;
}

/* The numbers in cells may be wider than those of the cells. */
static int cell_width(const struct explain *e)
{
    int width = digits_of(e->m - 1);
    for (size_t i = 0; i < e->nsteps; i++)
        for (size_t c = 0; c < e->m; c++)
            if (digits_of(e->steps[i].cells[c]) > width)
                width = digits_of(e->steps[i].cells[c]);
    return width;
}

/* What the hash functions are, and where each is taken. */
static void print_functions(const struct explain *e)
{
    static const char *const cuckoo[] = { "first cell of x",
                                          "fingerprint of x, less 1",
                                          "sum of the cells of fingerprint x" };
    for (size_t i = 0; i < e->nhashes; i++) {
        printf("h%zu(x) = (%s) mod ", i + 1, show_name(e->hashes[i]));
        if (e->way == EXPLAIN_SCALABLE)
            puts("m");
        else
            printf("%d%s%s\n",
                   e->way == EXPLAIN_CUCKOO && i == 1 ? 99 : (int)e->m,
                   e->way == EXPLAIN_CUCKOO && i < 3 ? "   " : "",
                   e->way == EXPLAIN_CUCKOO && i < 3 ? cuckoo[i] : "");
    }
    switch (e->way) {
    case EXPLAIN_INCREMENTS:
        puts("probe i = 0, 1, ... of x adds s[(x + i) mod 4] of s = 8, 12, 14, "
             "15");
        break;
    case EXPLAIN_DELETABLE:
    case EXPLAIN_FLOOM:
        printf("cell c is in region floor(%zu c / %zu) + 1\n", e->regions,
               e->m);
        break;
    case EXPLAIN_SCALABLE:
        for (size_t i = 0, first = 0; i <= e->layer; i++) {
            const size_t nkeys = i < e->layer ? e->items : e->nlast;
            printf("layer %zu: m = %zu, cells %zu to %zu, %zu key%s\n", i + 1,
                   e->first_m << i, first, first + (e->first_m << i) - 1, nkeys,
                   nkeys == 1 ? "" : "s");
            first += e->first_m << i;
        }
        break;
    default:
        break;
    }
}

/* An array that is too long for a line is broken into several, each with all
 * steps; what the hash functions named then comes last. */
void explain_print(const struct explain *e)
{
    const int width = cell_width(e);
    int label = 3;
    for (size_t i = 0; i < e->nsteps; i++)
        if ((int)strlen(e->steps[i].label) > label)
            label = (int)strlen(e->steps[i].label);
    print_functions(e);
    const int room = (explain_columns() - label) / (width + 1);
    const size_t fit = room > 4 ? (size_t)room : 4;
    const bool broken = e->m > fit;
    for (size_t from = 0; from < e->m; from += fit) {
        const size_t to = e->m - from < fit ? e->m : from + fit;
        printf("\n%-*s", label, "");
        print_cells(NULL, width, from, to);
        putchar('\n');
        for (size_t i = 0; i < e->nsteps; i++) {
            printf("%-*s", label, show_name(e->steps[i].label));
            print_cells(&e->steps[i], width, from, to);
            if (!broken) {
                fputs("   ", stdout);
                print_places(&e->steps[i]);
            }
            putchar('\n');
        }
    }
    for (size_t i = 0; i < e->nsteps && broken; i++) {
        printf("%s%-*s ", i ? "" : "\n", label, show_name(e->steps[i].label));
        print_places(&e->steps[i]);
        putchar('\n');
    }
}

bool explain_draw(const struct explain *e, const char *title,
                  const char *caption, const char *path)
{
    struct plot_step *steps = calloc(e->nsteps + 1, sizeof *steps);
    if (!steps)
        return false;
    for (size_t i = 0; i < e->nsteps; i++)
        steps[i] = (struct plot_step){ .label = e->steps[i].label,
                                       .result = e->steps[i].result,
                                       .cells = e->steps[i].cells,
                                       .touched = e->steps[i].touched,
                                       .ntouched = e->steps[i].ntouched };
    const struct plot_array a = { .title = title,
                                  .caption = caption,
                                  .ncells = e->m,
                                  .steps = steps,
                                  .nsteps = e->nsteps };
    const bool ok = plot_array_save(&a, path);
    free(steps);
    return ok;
}
