/*
 * explain.c - see explain.h
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/say.h"
#include "report/show.h"
#include "workbench/explain.h"
#include "workbench/expression.h"

/* Is cell c named by a function before the ith? Then it counts once. */
static bool is_repeated(const struct explain_step *s, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (s->touched[j] == s->touched[i])
            return true;
    return false;
}

/* Was key added more often than removed by the steps so far? */
static bool is_there(const struct explain *e, uint64_t key)
{
    size_t n = 0;
    for (size_t i = 0; i < e->nsteps; i++) {
        const struct explain_step *s = &e->steps[i];
        if (s->key != key)
            continue;
        n += s->op == EXPLAIN_ADD;
        n -= s->op == EXPLAIN_REMOVE && s->maybe && n > 0;
    }
    return n > 0;
}

static bool find_cells(const struct explain *e, struct explain_step *s)
{
    for (size_t i = 0; i < e->nhashes; i++) {
        uint64_t value;
        const char *wrong;
        if (!expression_value(e->hashes[i], s->key, e->m, &value, &wrong)) {
            fail("--hash '%s' cannot be understood from '%s' on: write it with "
                 "whole numbers, x, + - * ^ and brackets",
                 e->hashes[i], *wrong ? wrong : "its end");
            return false;
        }
        s->touched[i] = (size_t)value;
    }
    return true;
}

static void change_cells(const struct explain *e, struct explain_step *s)
{
    for (size_t i = 0; i < e->nhashes; i++) {
        unsigned *cell = &s->cells[s->touched[i]];
        if (is_repeated(s, i))
            continue;
        if (s->op == EXPLAIN_ADD)
            *cell = e->counting ? *cell + 1 : 1;
        else if (s->op == EXPLAIN_REMOVE && s->maybe)
            (*cell)--;
    }
}

static const char *result_of(const struct explain_step *s)
{
    switch (s->op) {
    case EXPLAIN_ADD:
        return s->maybe && !s->there ? "changed nothing" : "";
    case EXPLAIN_REMOVE:
        return !s->maybe   ? "refused: not in the filter"
               : !s->there ? "harm: never added"
                           : "";
    case EXPLAIN_HAS:
        return !s->maybe ? "no" : s->there ? "maybe" : "maybe: false positive";
    }
    return "";
}

bool explain_step(struct explain *e, enum explain_op op, uint64_t key)
{
    static const char *const words[] = { "add", "remove", "has" };
    struct explain_step *more =
        realloc(e->steps, (e->nsteps + 1) * sizeof *more);
    struct explain_step s = { .op = op, .key = key, .maybe = true };
    if (more)
        e->steps = more;
    s.cells = calloc(e->m, sizeof *s.cells);
    s.touched = calloc(e->nhashes, sizeof *s.touched);
    bool ok = more && s.cells && s.touched;
    if (!ok)
        fail("out of memory");
    ok = ok && find_cells(e, &s);
    if (!ok) {
        free(s.cells);
        free(s.touched);
        return false;
    }
    if (e->nsteps)
        memcpy(s.cells, e->steps[e->nsteps - 1].cells, e->m * sizeof *s.cells);
    for (size_t i = 0; i < e->nhashes; i++)
        s.maybe = s.maybe && s.cells[s.touched[i]];
    s.there = is_there(e, key);
    snprintf(s.label, sizeof s.label, "%s %llu", words[op],
             (unsigned long long)key);
    s.result = result_of(&s);
    change_cells(e, &s);
    e->steps[e->nsteps++] = s;
    return true;
}

void explain_free(struct explain *e)
{
    for (size_t i = 0; i < e->nsteps; i++) {
        free(e->steps[i].cells);
        free(e->steps[i].touched);
    }
    free(e->steps);
    e->steps = NULL;
    e->nsteps = 0;
}

/* --------------------------------------------------------------- printing */

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

static void print_places(const struct explain *e, const struct explain_step *s)
{
    for (size_t i = 0; i < e->nhashes; i++)
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

/* An array that is too long for a line is broken into several, each with all
 * steps; what the hash functions named then comes last. */
void explain_print(const struct explain *e)
{
    const int width = digits_of(e->m - 1);
    int label = 3;
    for (size_t i = 0; i < e->nsteps; i++)
        if ((int)strlen(e->steps[i].label) > label)
            label = (int)strlen(e->steps[i].label);
    for (size_t i = 0; i < e->nhashes; i++)
        printf("h%zu(x) = (%s) mod %zu\n", i + 1, show_name(e->hashes[i]),
               e->m);
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
                print_places(e, &e->steps[i]);
            }
            putchar('\n');
        }
    }
    for (size_t i = 0; i < e->nsteps && broken; i++) {
        printf("%s%-*s ", i ? "" : "\n", label, show_name(e->steps[i].label));
        print_places(e, &e->steps[i]);
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
                                       .ntouched = e->nhashes };
    const struct plot_array a = { .title = title,
                                  .caption = caption,
                                  .ncells = e->m,
                                  .steps = steps,
                                  .nsteps = e->nsteps };
    const bool ok = plot_array_save(&a, path);
    free(steps);
    return ok;
}
