/*
 * explain.c - see explain.h
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/say.h"
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
    const bool fits = GROW(&e->steps, &e->room, e->nsteps + 1);
    struct explain_step s = { .op = op, .key = key, .maybe = true };
    s.cells = calloc(e->m, sizeof *s.cells);
    s.touched = calloc(e->nhashes, sizeof *s.touched);
    bool ok = fits && s.cells && s.touched;
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
