/*
 * bench_json.c - what a bench found, for programs: one object
 */
#include <math.h>
#include <stdio.h>

#include <bloomery.h>

#include "report/json.h"
#include "workbench/bench.h"

static void put_text(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    json_text(j, text);
}

static void put_uint(struct json *j, const char *key, uint64_t value)
{
    json_key(j, key);
    json_uint(j, value);
}

static void put_real(struct json *j, const char *key, double value)
{
    json_key(j, key);
    json_real(j, value);
}

static void put_figure(struct json *j, const char *key, struct bench_figure f)
{
    json_key(j, key);
    json_open(j, '{');
    put_real(j, "median", f.median);
    put_real(j, "q1", f.q1);
    put_real(j, "q3", f.q3);
    json_close(j, '}');
}

/* What a figure is held to, where it is, and whether it is as good. */
static void put_target(struct json *j, double target, bool met)
{
    if (isnan(target))
        return;
    put_real(j, "target", target);
    json_key(j, "met");
    json_bool(j, met);
}

static void put_machine(struct json *j, const struct bench_results *r)
{
    const struct bench_machine *const m = &r->machine;
    json_key(j, "machine");
    json_open(j, '{');
    put_text(j, "cpu", m->cpu);
    put_uint(j, "processors", m->nprocessors);
    put_uint(j, "l1_bytes", m->l1);
    put_uint(j, "l2_bytes", m->l2);
    put_uint(j, "l3_bytes", m->l3);
    put_uint(j, "memory_bytes", m->memory);
    put_text(j, "huge_pages_setting", m->pages);
    put_text(j, "pages", r->small_pages ? "4k" : "huge");
    put_real(j, "huge_share", r->huge_share);
    json_key(j, "code");
    json_open(j, '{');
    const char *job, *row;
    for (unsigned i = 0; (row = bly_cpu_row(i, &job)); i++)
        put_text(j, job, row);
    json_close(j, '}');
    json_close(j, '}');
}

static void put_floors(struct json *j, const struct bench_results *r)
{
    json_key(j, "floor");
    json_open(j, '[');
    for (size_t i = 0; i < r->nsizes; i++) {
        json_open(j, '{');
        put_uint(j, "items", r->sizes[i]);
        put_uint(j, "bytes", r->footprints[i]);
        put_real(j, "read_ns", r->floors[i].read);
        put_real(j, "update_ns", r->floors[i].update);
        put_real(j, "farther_ns", r->floors[i].deep);
        put_real(j, "unfetched_ns", r->floors[i].bare);
        put_uint(j, "far", r->floors[i].far);
        put_uint(j, "near", r->floors[i].near);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_ops(struct json *j, const struct bench_cell *c, double fpr)
{
    json_key(j, "operations");
    json_open(j, '{');
    for (int op = 0; op < NOPS; op++) {
        const struct bench_figure ns = bench_ns(c, op);
        const struct bench_figure f = bench_multiple(c, op);
        const double target = bench_target(c, op, fpr);
        if (isnan(ns.median))
            continue;
        json_key(j, bench_op_names[op]);
        json_open(j, '{');
        put_figure(j, "ns", ns);
        put_figure(j, "F", f);
        put_target(j, target, f.median <= target);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void put_threads(struct json *j, const struct bench_cell *c,
                        unsigned nthreads)
{
    static const char *const names[NTIMES] = { "ask_threads", "build_threads",
                                               "build_items_threads" };
    for (int which = 0; which < NTIMES; which++) {
        const struct bench_figure times = bench_times(c, which);
        const double target = bench_target_times(which, nthreads);
        if (isnan(times.median))
            continue;
        json_key(j, names[which]);
        json_open(j, '{');
        put_figure(j, "times", times);
        put_target(j, target, times.median >= target);
        json_close(j, '}');
    }
}

static void put_cell(struct json *j, const struct bench_results *r,
                     const struct bench_cell *c)
{
    json_open(j, '{');
    put_text(j, "name", c->who->name);
    put_text(j, "kind", c->who->kind);
    put_uint(j, "items", c->items);
    if (c->why[0]) {
        put_text(j, "skipped", c->why);
        json_close(j, '}');
        return;
    }
    put_uint(j, "rounds", c->nrounds);
    put_uint(j, "bytes", c->bytes);
    put_real(j, "bits_per_key", c->bits_per_key);
    put_uint(j, "layers", c->layers);
    put_real(j, "fpr_planned", c->planned);
    put_real(j, "fpr_measured", bench_rate(c));
    put_uint(j, "absent_asked", c->nasked);
    put_uint(j, "present_missed", c->nmissed);
    put_figure(j, "F_ns", bench_floor_figure(c));
    put_ops(j, c, r->fpr);
    put_threads(j, c, r->nthreads);
    json_close(j, '}');
}

static void put_lines(struct json *j, const struct bench_lines *lines)
{
    json_key(j, "commands");
    json_open(j, '[');
    for (size_t i = 0; i < lines->n; i++) {
        const struct bench_command *const c = &lines->at[i];
        json_open(j, '{');
        put_text(j, "command", c->who);
        put_text(j, "job", c->job);
        put_uint(j, "lines", c->nlines);
        if (c->why[0]) {
            put_text(j, "skipped", c->why);
        } else {
            put_figure(j, "cpu_ns", c->ns);
            put_uint(j, "peak_bytes", c->peak);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
}

void bench_json(const struct bench_results *r)
{
    struct json j = { .to = stdout };
    json_open(&j, '{');
    put_machine(&j, r);
    put_real(&j, "fpr", r->fpr);
    put_uint(&j, "threads", r->nthreads);
    put_floors(&j, r);
    json_key(&j, "results");
    json_open(&j, '[');
    for (size_t i = 0; i < r->ncells; i++)
        put_cell(&j, r, &r->cells[i]);
    json_close(&j, ']');
    if (r->missing[0])
        put_text(&j, "missing", r->missing);
    if (r->lines)
        put_lines(&j, r->lines);
    json_close(&j, '}');
    json_end(&j);
}
