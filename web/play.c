/*
 * play.c - what the playground shows beside filters, from the same C as the
 * command
 *
 * The steps of bloomery explain, the Chord ring of bloomery ring show, two
 * texts as bloomery similar compares them, and filters of other systems. The
 * functions become exports of the module that the page loads, beside those of
 * bindings/wasm.
 */
#include <bloomery/foreign.h>
#include <bloomery/sketch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/wasm/wasm.h"
#include "report/say.h"
#include "workbench/explain.h"
#include "workbench/ring_model.h"

/* What the command would print on standard error becomes an exception. */
static void refuse_with(const char *format, va_list args)
{
    char line[200];
    vsnprintf(line, sizeof line, format, args);
    js_refuse_line(line);
}

int(fail)(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    refuse_with(format, args);
    va_end(args);
    return TROUBLE;
}

bool(refuse)(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    refuse_with(format, args);
    va_end(args);
    return false;
}

/* -------------------------------------------------- a small array, by steps */

static struct explain small;
static char small_hashes[1024];

/* A new array; hash functions one behind another, each ended by NUL, and an
 * empty one at the end. */
EXPORT(bly_status, explain_begin,
       (uint32_t m, uint32_t counting, const char *hashes))
{
    size_t used = 0;
    explain_free(&small);
    small =
        (struct explain){ .m = m ? m : 1,
                          .way = counting ? EXPLAIN_COUNTING : EXPLAIN_BITS };
    if (m > EXPLAIN_MAX_CELLS)
        return fail("an array to look at has 1 to %d cells", EXPLAIN_MAX_CELLS),
               BLY_EINVAL;
    for (; *hashes && small.nhashes < EXPLAIN_MAX_HASHES;
         hashes += strlen(hashes) + 1) {
        const size_t n = strlen(hashes) + 1;
        if (n > sizeof small_hashes - used)
            return fail("the hash functions are too long"), BLY_EINVAL;
        small.hashes[small.nhashes++] = memcpy(small_hashes + used, hashes, n);
        used += n;
    }
    return js_keep(BLY_OK);
}

/* One step: 0 adds, 1 removes, 2 asks. */
EXPORT(bly_status, explain_do, (uint32_t op, uint64_t key))
{
    if (op > EXPLAIN_HAS || small.nsteps == EXPLAIN_MAX_STEPS)
        return fail("more than 1000 steps are too many to look at"), BLY_EINVAL;
    js_keep(BLY_OK);
    if (!explain_step(&small, (enum explain_op)op, key))
        return BLY_EINVAL;
    const struct explain_step *const s = &small.steps[small.nsteps - 1];
    js_tell_begin();
    js_tell_word("label", s->label);
    js_tell_word("result", s->result);
    js_tell_flag("maybe", s->maybe);
    js_tell_flag("there", s->there);
    js_tell_open("touched", '[');
    for (size_t i = 0; i < s->ntouched; i++)
        js_tell_uint("", s->touched[i]);
    js_tell_close();
    js_tell_open("cells", '[');
    for (size_t i = 0; i < small.m; i++)
        js_tell_uint("", s->cells[i]);
    js_tell_close();
    return js_tell_end();
}

/* ------------------------------------------------------------- Chord's ring */

static void tell_ids(const char *name, const struct ring_model *m,
                     const size_t *places, size_t n)
{
    js_tell_open(name, '[');
    for (size_t i = 0; i < n; i++)
        js_tell_uint("", m->ids[places[i]]);
    js_tell_close();
}

/* Members, the fingers of one of them, and its lookup of an id. */
EXPORT(bly_status, ring,
       (uint32_t bits, const uint64_t *ids, size_t n, uint64_t from,
        uint64_t find))
{
    static struct ring_model m;
    struct chord state;
    size_t path[RING_STEPS];
    js_keep(BLY_OK);
    if (bits < 3 || bits > 16)
        return fail("a ring to look at has ids of 3 to 16 bits"), BLY_EINVAL;
    if (!ring_model(&m, bits, ids, n))
        return BLY_EINVAL;
    const size_t at = ring_owner(&m, from);
    ring_state(&m, at, &state);
    js_tell_begin();
    js_tell_open("members", '[');
    for (size_t i = 0; i < m.n; i++)
        js_tell_uint("", m.ids[i]);
    js_tell_close();
    js_tell_uint("from", m.ids[at]);
    js_tell_uint("owner", m.ids[ring_owner(&m, find)]);
    js_tell_open("fingers", '[');
    for (unsigned k = 0; k < bits; k++)
        js_tell_uint("", state.fing[k].id);
    js_tell_close();
    tell_ids("path", &m, path, ring_lookup(&m, at, find, path));
    return js_tell_end();
}

/* ----------------------------------------------------------------- likeness */

/* The shingles of a text as a set, in memory of its own. */
static bly_status set_of(const bly_shingling *how, const char *text,
                         uint64_t **out, size_t *n)
{
    bly_shingler *cut = NULL;
    bly_shingles x = { 0 };
    bly_status st = bly_shingler_new(how, NULL, &cut);
    if (!st)
        st = bly_shingle(cut, text, strlen(text), &x);
    *n = st ? 0 : bly_distinct(x.hashes, x.n);
    *out = malloc((*n + 1) * sizeof **out);
    if (!*out)
        st = BLY_ENOMEM;
    else if (!st)
        memcpy(*out, x.hashes, *n * sizeof **out);
    bly_shingler_free(cut);
    return st;
}

static bly_status sketch_of(const bly_sketch_spec *spec, const uint64_t *set,
                            size_t n, bly_sketch **out)
{
    const bly_status st = bly_sketch_new(spec, out);
    return st ? st : bly_sketch_add(*out, set, n);
}

static void tell_components(const bly_sketch *a, const bly_sketch *b,
                            unsigned k)
{
    uint32_t x[BLY_MAX_COMPONENTS], y[BLY_MAX_COMPONENTS];
    const bool both =
        bly_sketch_components(a, x) && bly_sketch_components(b, y);
    js_tell_open("agree", '[');
    for (unsigned i = 0; i < k && both; i++)
        js_tell_flag("", x[i] == y[i]);
    js_tell_close();
}

/* Two texts, cut into shingles of `size` words (unit 0) or characters (1), and
 * compared exactly and by sketches of k components. */
EXPORT(bly_status, alike,
       (const char *a, const char *b, uint32_t unit, uint32_t size, uint32_t k))
{
    const bly_sketch_spec spec = {
        .shingling = { .unit = (bly_unit)unit, .size = size }, .k = k
    };
    uint64_t *set_a = NULL, *set_b = NULL;
    size_t na = 0, nb = 0;
    bly_sketch *sketch_a = NULL, *sketch_b = NULL;
    bly_resemblance r = { 0 };
    bly_status st = set_of(&spec.shingling, a, &set_a, &na);
    if (!st)
        st = set_of(&spec.shingling, b, &set_b, &nb);
    if (!st)
        st = sketch_of(&spec, set_a, na, &sketch_a);
    if (!st)
        st = sketch_of(&spec, set_b, nb, &sketch_b);
    if (!st)
        st = bly_sketch_compare(sketch_a, sketch_b, &r);
    js_keep(st);
    if (!st) {
        const bly_overlap o = bly_overlap_of(set_a, na, set_b, nb);
        js_tell_begin();
        js_tell_uint("a", na);
        js_tell_uint("b", nb);
        js_tell_uint("in_both", o.in_both);
        js_tell_uint("in_either", o.in_either);
        js_tell_real("jaccard", o.jaccard);
        js_tell_real("estimate", r.jaccard);
        js_tell_real("sd", r.sd);
        js_tell_uint("equal", r.equal);
        tell_components(sketch_a, sketch_b, k);
        st = js_tell_end();
    }
    bly_sketch_free(sketch_a);
    bly_sketch_free(sketch_b);
    free(set_a);
    free(set_b);
    return st;
}

/* ----------------------------------------------- filters of other systems */

/* The bytes are the caller's until foreign_drop(). */
EXPORT(bly_foreign *, foreign_open, (const void *bytes, size_t nbytes))
{
    bly_foreign *f = NULL;
    js_keep(bly_foreign_open(NULL, bytes, nbytes, &f));
    return f;
}

EXPORT(void, foreign_drop, (bly_foreign * f))
{
    bly_foreign_free(f);
}

EXPORT(bly_status, foreign_info, (const bly_foreign *f))
{
    bly_foreign_stats s;
    bly_foreign_stat(f, BLY_WHOLE, &s);
    js_tell_begin();
    js_tell_word("format", bly_foreign_format(f));
    js_tell_uint("parts", bly_foreign_nparts(f));
    js_tell_uint("bits", s.bits);
    js_tell_real("fill", s.fill);
    js_tell_real("fpr_now", s.fpr_now);
    return js_tell_end();
}

/* 1: maybe, 0: no, negative: it cannot be asked. */
EXPORT(int32_t, foreign_has, (const bly_foreign *f, const void *key, size_t n))
{
    uint64_t maybe = 0;
    const bly_bytes one = { key, n };
    return js_keep(bly_foreign_has(f, &one, 1, &maybe, NULL))
               ? -1
               : (int32_t)(maybe & 1);
}
