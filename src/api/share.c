/*
 * share.c - a live filter from a path and a spec: bly_share()
 *
 * The spec says what the filter is to be if there is none, and what it must be
 * if there is one. Whoever comes first makes the file, and everybody, including
 * the maker, opens what is there.
 */
#include <bloomery/live.h>

#include "api/keying.h"
#include "api/plan.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/living.h"
#include "kinds/filter.h"

/* An empty filter as planned, without data. */
static bly_status model_of(const bly_planned *p, bly_filter **out)
{
    bly_status st = bly_filter_shell(p->kind, &p->shape, &p->set, out);
    if (!st)
        st = bly_filter_body_for(*out, NULL);
    return st ? st : bly_keying_given(out, p->keying);
}

/* Is f what was planned? */
static bly_status share_fits(const char *path, const bly_filter *f,
                             const bly_filter *model)
{
    const bly_hasher *const a = &f->extra->hasher, *const b =
                                                       &model->extra->hasher;
    const bly_keying has = bly_filter_keying(f),
                     wants = bly_filter_keying(model);
    if (f->kind != model->kind)
        return bly_fail(BLY_EUNFIT,
                        "%s: holds a %s filter, and the spec asks for a %s "
                        "one: use the spec it was made with, or none",
                        path, f->kind->name, model->kind->name);
    if (!bly_same_shape(f, model))
        return bly_fail(BLY_EUNFIT,
                        "%s: holds a %s filter of %llu bytes for %llu keys, "
                        "and the spec asks for another size or other options "
                        "(%llu bytes for %llu keys): use the spec it was made "
                        "with, or none",
                        path, f->kind->name,
                        (unsigned long long)f->shape.nbytes,
                        (unsigned long long)f->items,
                        (unsigned long long)model->shape.nbytes,
                        (unsigned long long)model->items);
    if (a->id != b->id || a->seed != b->seed ||
        f->extra->secret_check != model->extra->secret_check)
        return bly_fail(BLY_EUNFIT,
                        "%s: hashes its keys otherwise than the spec says, by "
                        "seed, key or type: use the spec it was made with, or "
                        "none",
                        path);
    return wants.type == BLY_KEYS_UNKNOWN ? BLY_OK
                                          : bly_keyings_fit(has, wants);
}

/* What one spec for making and opening has to say about opening. */
static bly_access share_how(const bly_spec *spec, const bly_access *how)
{
    bly_access own = { 0 };
    if (how)
        own = *how;
    if (spec && !own.secret && !own.blind)
        own.secret = spec->secret;
    if (spec && !own.mem)
        own.mem = spec->mem;
    if (spec && !own.max_bytes)
        own.max_bytes = spec->max_bytes;
    return own;
}

static bly_status share(const char *path, const bly_filter *model,
                        const bly_access *how, bly_filter **out)
{
    for (;;) {
        bool missing;
        bly_status st = bly_live_open(path, how, &missing, out);
        if (st || !missing)
            return st;
        if (!model || how->reading)
            return bly_fail(BLY_EIO,
                            "%s: there is no live filter: make one, by a spec",
                            path);
        st = bly_live_create(path, model);
        if (st && st != BLY_EBUSY)
            return st;
    }
}

bly_status bly_share_sized(const char *path, const bly_spec *spec,
                           size_t spec_size, const bly_access *how,
                           size_t how_size, bly_filter **out)
{
    bly_spec own_spec;
    bly_access own_how;
    bly_planned planned;
    bly_filter *model = NULL;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!path)
        return bly_fail_null("path");
    if ((spec && !(spec = BLY_TAKE(spec, spec_size, &own_spec))) ||
        (how && !(how = BLY_TAKE(how, how_size, &own_how))))
        return BLY_EINVAL;
    bly_status st = spec ? bly_plan_spec(spec, &planned) : BLY_OK;
    if (!st && spec)
        st = bly_live_able(planned.kind, &planned.shape);
    if (!st && spec)
        st = model_of(&planned, &model);
    const bly_access all = share_how(spec, how);
    if (!st)
        st = share(path, model, &all, out);
    if (!st && model)
        st = share_fits(path, *out, model);
    if (st) {
        bly_free(*out);
        *out = NULL;
    }
    bly_free(model);
    return st;
}
