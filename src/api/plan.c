/*
 * plan.c - from a caller's wishes to a shape
 *
 * Kinds choose a shape for (items, rate) or for (items, memory). The third
 * pair, (rate, memory), is solved here for all of them: the rate rises with
 * the number of items, so the largest number that keeps it is found by
 * bisection over the kind's own plan.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/plan.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/meta.h"

#define DEFAULT_FPR 0.01

/* Two keys with the same hash are one key: with 2^48 keys that alone gives a
 * rate of 1.5e-5, and larger sets cannot be told apart by 64 bits. Also keeps
 * (double)items exact. */
#define MAX_ITEMS (UINT64_C(1) << 48)

/* 8 PiB: more than any machine has, and a kind may round it up, or multiply it
 * by a small number, without overflow. */
#define MAX_BITS (UINT64_C(1) << 56)

bly_status bly_fail_ability(const bly_kind *kind, unsigned ability)
{
    bly_names can = { { 0 }, 0 };
    const bly_kind *other;
    for (size_t i = 0; (other = bly_kind_row(i)); i++)
        if (bly_kind_can(other) & UINT32_C(1) << ability)
            bly_names_add(&can, other->name);
    return bly_fail(BLY_ENOTSUP, "a filter of kind %s cannot %s; these can: %s",
                    kind->name, bly_can_help(ability),
                    can.len ? can.text : "none");
}

/* ---------------------------------------------------------------- options */

/* The value of a param from text, as it is kept in a shape. */
static bly_status read_value(const bly_kind *kind, const bly_param *param,
                             const char *text, uint64_t *out)
{
    if (param->type == BLY_CHOICE)
        return bly_read_choice(param, "kind", kind->name, text, out);

    uint64_t count = 0;
    double real = 0;
    bool ok;
    if (param->type == BLY_UINT) {
        ok = bly_parse_count(text, &count);
        real = (double)count;
    } else {
        ok = bly_parse_real(text, &real);
    }
    if (!ok || !(real >= param->min && real <= param->max))
        return bly_fail(BLY_EINVAL,
                        "option %s of kind %s is a %snumber from %.15g to "
                        "%.15g, not '%s'",
                        param->name, kind->name,
                        param->type == BLY_UINT ? "whole " : "", param->min,
                        param->max, text);
    if (param->type == BLY_UINT)
        *out = count;
    else
        memcpy(out, &real, sizeof *out);
    return BLY_OK;
}

static void default_value(const bly_param *param, uint64_t *out)
{
    *out = 0;
    if (param->automatic)
        return;
    if (param->type == BLY_REAL)
        memcpy(out, &param->def, sizeof *out);
    else
        *out = (uint64_t)param->def;
}

static bly_status read_option(const bly_kind *kind, const bly_option *o,
                              bly_want *w)
{
    bly_names known = { { 0 }, 0 };
    for (uint32_t i = 0; i < kind->nparams; i++) {
        const bly_param *param = &kind->params[i];
        if (!param->settable)
            continue;
        if (strcmp(param->name, o->name) != 0) {
            bly_names_add(&known, param->name);
            continue;
        }
        if (w->given[i])
            return bly_fail(BLY_EINVAL, "option %s is given twice", o->name);
        w->given[i] = true;
        return read_value(kind, param, o->value, &w->opt[i]);
    }
    return bly_fail(BLY_EINVAL, "kind %s has no option '%s'; it has: %s",
                    kind->name, o->name, known.len ? known.text : "none");
}

/* Who asks for a Bloom filter without further ado means that of 1970. */
static bool means_classic(const char *name)
{
    return (strcmp(name, "bloom") == 0 || strcmp(name, "standard") == 0) &&
           bly_kind_by_name("classic");
}

bly_status bly_read_options(const bly_spec *spec, const bly_kind **kind,
                            bly_want *w)
{
    const bly_kind *k = bly_kind_by_name(spec->kind);
    if (!k) {
        bly_names known = { { 0 }, 0 };
        for (size_t i = 0; (k = bly_kind_row(i)); i++)
            bly_names_add(&known, k->name);
        return bly_fail(
            BLY_EINVAL, "there is no kind '%s'%s; there are: %s", spec->kind,
            means_classic(spec->kind) ? ", a plain Bloom filter is 'classic'"
                                      : "",
            known.text);
    }
    *w = (bly_want){ .items = spec->items,
                     .fpr = spec->fpr,
                     .bits = spec->bits };
    for (uint32_t i = 0; i < k->nparams; i++)
        if (k->params[i].settable)
            default_value(&k->params[i], &w->opt[i]);
    for (size_t i = 0; i < spec->noptions; i++) {
        if (!spec->options || !spec->options[i].name || !spec->options[i].value)
            return bly_fail_null("options, or a name or value in them");
        const bly_status st = read_option(k, &spec->options[i], w);
        if (st)
            return st;
    }
    *kind = k;
    return BLY_OK;
}

/* --------------------------------------------------------------- choosing */

bly_status bly_hasher_for_sized(const bly_spec *spec, bly_hasher *out,
                                size_t size)
{
    bly_spec own;
    if (!out)
        return bly_fail_null("out");
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    if (spec->secret && spec->seed)
        return bly_fail(BLY_EINVAL, "a keyed filter takes no seed: its secret "
                                    "takes the place of the seed");
    if (spec->hash && spec->hash != BLY_HASH_XXH3)
        return bly_fail(BLY_EINVAL,
                        "the hash of a filter follows from its keys: only "
                        "BLY_HASH_XXH3 can be asked for, for integers");
    *out = (bly_hasher){ .id = BLY_HASH_XXH3, .seed = spec->seed };
    const bly_kind *const kind = bly_kind_by_name(spec->kind);
    if (kind && kind->has_range) {
        if (spec->secret)
            return bly_fail(BLY_EINVAL,
                            "a %s filter keeps the order of its keys, and so "
                            "has no secret hash: give a seed that nobody knows",
                            kind->name);
        out->id = bly_keys_order(spec->keying.type);
        return BLY_OK;
    }
    if (spec->keying.type == BLY_KEYS_INT64 ||
        spec->keying.type == BLY_KEYS_UINT64)
        out->id = spec->hash ? spec->hash : BLY_HASH_FOLDED;
    if (spec->secret) {
        out->id = BLY_HASH_SIPHASH13;
        bly_secret_words(spec->secret, out->secret);
    }
    return BLY_OK;
}

static double planned_rate(const bly_kind *kind, const bly_want *w,
                           bly_shape *s)
{
    return kind->plan(w, s) ? NAN : bly_shape_rate(kind, s, (double)w->items);
}

/* The most items that w->bits hold at w->fpr. */
static bly_status solve_items(const bly_kind *kind, const bly_want *w,
                              uint64_t *items)
{
    bly_want trial = *w;
    bly_shape s;
    trial.fpr = 0;
    trial.items = 1;
    const bly_status st = kind->plan(&trial, &s);
    if (st)
        return st;
    if (!(planned_rate(kind, &trial, &s) <= w->fpr))
        return bly_fail(BLY_EINVAL,
                        "%llu bits are too few for a rate of %g in "
                        "a %s filter, even for one item",
                        (unsigned long long)w->bits, w->fpr, kind->name);
    uint64_t low = 1, high = 2; /* low keeps the rate; high does not, or is past
                                   the end */
    while (high < MAX_ITEMS &&
           (trial.items = high, planned_rate(kind, &trial, &s) <= w->fpr)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        trial.items = low + (high - low) / 2;
        if (planned_rate(kind, &trial, &s) <= w->fpr)
            low = trial.items;
        else
            high = trial.items;
    }
    *items = low;
    return BLY_OK;
}

/* Reduce w to items and exactly one of fpr and bits. */
static bly_status settle_want(const bly_kind *kind, bly_want *w)
{
    if (isnan(w->fpr) || w->fpr < 0 || w->fpr >= 1)
        return bly_fail(BLY_EINVAL, "a rate is between 0 and 1, not %g",
                        w->fpr);
    if (w->items > MAX_ITEMS)
        return bly_fail(BLY_ERANGE,
                        "%llu items are more than 64-bit hashes can "
                        "tell apart; the limit is 2^48",
                        (unsigned long long)w->items);
    if (w->bits > MAX_BITS)
        return bly_fail(BLY_ERANGE,
                        "%llu bits are more than a filter can have; the limit "
                        "is 2^56",
                        (unsigned long long)w->bits);
    if (w->fpr > 0 && w->fpr < (double)(w->items ? w->items : 1) * 0x1p-64)
        return bly_fail(BLY_EINVAL,
                        "a rate of %g is below what 64-bit hashes can tell "
                        "apart: with %llu items ask for %.2g or more",
                        w->fpr, (unsigned long long)(w->items ? w->items : 1),
                        (double)(w->items ? w->items : 1) * 0x1p-63);
    if (kind->traits & BLY_SELF_SIZED)
        return BLY_OK;
    if (w->items && w->fpr > 0 && w->bits)
        return bly_fail(BLY_EINVAL,
                        "items, rate and memory are all given: give "
                        "two, the third follows");
    if (!w->items && !w->bits)
        return bly_fail(BLY_EINVAL,
                        "the number of items is missing: give items, "
                        "or memory and a rate");
    if (!w->bits && w->fpr == 0)
        w->fpr = DEFAULT_FPR;
    if (!w->items) {
        if (w->fpr == 0)
            w->fpr = DEFAULT_FPR;
        const bly_status st = solve_items(kind, w, &w->items);
        if (st)
            return st;
        w->fpr = 0;
    }
    return BLY_OK;
}

bly_status bly_plan_begin(const bly_spec *spec, bly_planned *out)
{
    bly_want w;
    const bly_kind *kind;
    bly_hasher hasher;
    bly_status st = bly_read_options(spec, &kind, &w);
    if (!st)
        st = bly_hasher_for(spec, &hasher);
    if (!st && spec->shared && !kind->add_shared)
        st = bly_fail_ability(kind, BLY_ABILITY_SHARE);
    if (!st)
        st = bly_keying_check(spec->keying);
    if (st)
        return st;
    *out = (bly_planned){
        .kind = kind,
        .keying = spec->keying,
        .want = w,
        .set = {
            .hasher = hasher,
            .secret_check = spec->secret ? bly_secret_check(hasher.secret) : 0,
            .shared = spec->shared,
            .coded = (kind->traits & BLY_CODED) != 0,
            .max_bytes = spec->max_bytes,
            .mem = spec->mem,
        },
    };
    return BLY_OK;
}

/* The last plan of this thread. A program that makes one filter after another
 * asks for the same each time, and a plan takes a fraction of a millisecond,
 * many times as long as a small filter itself. */
static _Thread_local struct {
    const bly_kind *kind; /* NULL: none yet */
    bly_want asked, settled;
    bly_shape shape;
    uint64_t items; /* at which its rate is known; 0: at none yet */
    double rate;
} last_plan;

static bool same_want(const bly_want *a, const bly_want *b)
{
    return a->items == b->items && a->fpr == b->fpr && a->bits == b->bits &&
           a->max_value == b->max_value && a->mean == b->mean && !a->groups &&
           !b->groups && memcmp(a->opt, b->opt, sizeof a->opt) == 0 &&
           memcmp(a->given, b->given, sizeof a->given) == 0;
}

/* Reduce the want of p, and choose its shape. */
static bly_status choose_shape(bly_planned *p)
{
    const bly_want asked = p->want;
    if (last_plan.kind == p->kind && same_want(&asked, &last_plan.asked)) {
        p->want = last_plan.settled;
        p->shape = last_plan.shape;
        return BLY_OK;
    }
    bly_status st = settle_want(p->kind, &p->want);
    if (!st)
        st = p->kind->plan(&p->want, &p->shape);
    if (st)
        return st;
    /* Otherwise a shape could be written that no reader would accept. */
    if (!p->kind->sane(&p->shape))
        return bly_fail(BLY_ERANGE,
                        "a %s filter cannot be that large: ask for fewer "
                        "items or less memory",
                        p->kind->name);
    last_plan.kind = p->kind;
    last_plan.asked = asked;
    last_plan.settled = p->want;
    last_plan.shape = p->shape;
    last_plan.items = 0;
    return BLY_OK;
}

bly_status bly_plan_end(bly_planned *p)
{
    const bly_status st = choose_shape(p);
    if (st)
        return st;
    p->set.items = p->told ? p->told : p->want.items;
    if (!p->kind->rate || !p->set.items) {
        p->set.fpr = NAN;
        return BLY_OK;
    }
    if (last_plan.items != p->set.items) {
        last_plan.rate =
            bly_shape_rate(p->kind, &p->shape, (double)p->set.items);
        last_plan.items = p->set.items;
    }
    p->set.fpr = last_plan.rate;
    return BLY_OK;
}

bly_status bly_plan_spec(const bly_spec *spec, bly_planned *out)
{
    const bly_status st = bly_plan_begin(spec, out);
    return st ? st : bly_plan_end(out);
}

/* ----------------------------------------------------------------- telling */

static bly_fact param_fact(const bly_param *param, const bly_shape *s,
                           unsigned i)
{
    bly_fact fact = { .name = param->name, .type = param->type, .param = true };
    if (param->type == BLY_REAL) {
        fact.real = bly_shape_real(s, i);
    } else {
        fact.uint = s->p[i];
        fact.real = (double)s->p[i];
    }
    if (param->type == BLY_CHOICE)
        fact.word = param->choices[s->p[i]];
    return fact;
}

size_t bly_collect_facts(const bly_kind *kind, const bly_shape *s,
                         const bly_want *w, const bly_filter *f,
                         bly_fact *facts)
{
    bly_facts list = { facts, 0 };
    for (unsigned i = 0; i < kind->nparams; i++)
        if (!kind->params[i].planning)
            facts[list.n++] = param_fact(&kind->params[i], s, i);
    if (kind->describe)
        kind->describe(s, w, f, &list);
    return list.n;
}

bly_status bly_plan_sized(const bly_spec *spec, size_t spec_size,
                          bly_prediction *out, size_t out_size)
{
    bly_spec own;
    if (!out)
        return bly_fail_null("out");
    if (!(spec = BLY_TAKE(spec, spec_size, &own)))
        return BLY_EINVAL;
    bly_planned planned;
    const bly_status st = bly_plan_spec(spec, &planned);
    if (st)
        return st;
    const uint64_t bits = bly_shape_bits(planned.kind, &planned.shape);
    const uint64_t nbytes = planned.shape.nbytes;
    bly_prediction told = {
        .kind = planned.kind->name,
        .items = planned.set.items,
        .fpr = planned.set.fpr,
        .bits = bits,
        .bits_per_key =
            planned.set.items ? (double)bits / (double)planned.set.items : NAN,
        /* If it has no data of its own, its layers have, in whole words. */
        .bytes = nbytes ? nbytes : (bits + 63) / 64 * 8,
    };
    told.nfacts = bly_collect_facts(planned.kind, &planned.shape, &planned.want,
                                    NULL, told.facts);
    BLY_GIVE(&told, out, out_size);
    return BLY_OK;
}
