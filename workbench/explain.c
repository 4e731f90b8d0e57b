/*
 * explain.c - see explain.h
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/say.h"
#include "workbench/explain.h"
#include "workbench/expression.h"

bool explain_repeated(const struct explain_step *s, size_t i)
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
        n += s->op == EXPLAIN_ADD && !s->undone;
        n -= s->op == EXPLAIN_REMOVE && s->maybe && n > 0;
    }
    return n > 0;
}

bool explain_hash(const struct explain *e, size_t function, uint64_t x,
                  size_t m, size_t *value)
{
    uint64_t wide;
    const char *wrong;
    const char *const text = e->hashes[function];
    if (!expression_value(text, x, m, &wide, &wrong)) {
        fail("--hash '%s' cannot be understood from '%s' on: write it with "
             "whole numbers, x, + - * ^ and brackets",
             text, *wrong ? wrong : "its end");
        return false;
    }
    *value = (size_t)wide;
    return true;
}

bool explain_find(const struct explain *e, struct explain_step *s, size_t m,
                  size_t first)
{
    s->ntouched = e->nhashes;
    for (size_t i = 0; i < e->nhashes; i++) {
        if (!explain_hash(e, i, s->key, m, &s->touched[i]))
            return false;
        s->touched[i] += first;
    }
    return true;
}

void explain_says(struct explain_step *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->result, sizeof s->result, format, args);
    va_end(args);
}

/* Layers come later: a step has room for all that there may be. */
static size_t room_of(const struct explain *e)
{
    return e->way == EXPLAIN_SCALABLE ? EXPLAIN_MAX_CELLS : e->m;
}

bool explain_begin_step(const struct explain *e, struct explain_step *s,
                        enum explain_op op, uint64_t key)
{
    static const char *const words[] = { "add", "remove", "has", "move" };
    *s = (struct explain_step){ .op = op, .key = key, .maybe = true };
    s->cells = calloc(room_of(e), sizeof *s->cells);
    s->touched = calloc(EXPLAIN_MAX_HASHES, sizeof *s->touched);
    if (!s->cells || !s->touched) {
        free(s->cells);
        free(s->touched);
        fail("out of memory");
        return false;
    }
    if (e->nsteps)
        memcpy(s->cells, e->steps[e->nsteps - 1].cells,
               room_of(e) * sizeof *s->cells);
    s->there = is_there(e, key);
    snprintf(s->label, sizeof s->label, "%s %llu", words[op],
             (unsigned long long)key);
    return true;
}

/* The list has room: explain_step() saw to it. */
void explain_keep(struct explain *e, const struct explain_step *s)
{
    e->steps[e->nsteps++] = *s;
}

bool explain_step(struct explain *e, enum explain_op op, uint64_t key)
{
    /* A cuckoo pushes others aside, and each is a step: m at most. */
    const size_t nmoves = e->way == EXPLAIN_CUCKOO ? e->m + 1 : 0;
    if (!GROW(&e->steps, &e->room, e->nsteps + 1 + nmoves)) {
        fail("out of memory");
        return false;
    }
    if (!e->first_m)
        e->first_m = e->m;
    if (!e->regions)
        e->regions = 5;
    if (!e->items)
        e->items = 3;
    struct explain_step s;
    if (!explain_begin_step(e, &s, op, key))
        return false;
    if (!explain_acts[e->way](e, &s)) {
        free(s.cells);
        free(s.touched);
        return false;
    }
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
