/*
 * cloning.c - a copy of a filter, at once or little by little
 *
 * The array of the filter itself is copied first, then its layers, one after
 * another, each of which is a filter. Everything small comes last.
 */
#include <string.h>

#include "core/status.h"
#include "kinds/filter.h"

struct bly_cloning {
    bly_mem mem; /* of f, which may be gone before this */
    const bly_filter *f;
    bly_filter *copy;
    uint64_t at;        /* bytes of the array copied so far */
    bly_cloning *layer; /* the layer being copied; NULL: none */
};

static bly_status cloning_begin(bly_cloning *c, const bly_filter *f)
{
    bly_setting set = bly_setting_of(f);
    set.max_bytes = 0; /* the copy is as large as f, whatever limit f has for
                          growing */
    *c = (bly_cloning){ .mem = *bly_filter_mem(f), .f = f };
    return bly_filter_blank(f->kind, &f->shape, &set, &c->copy);
}

/* Copy up to *nbytes of the array, and subtract what was copied; UINT64_MAX:
 * all of it. */
static void cloning_array(bly_cloning *c, uint64_t *nbytes)
{
    const uint64_t left = c->f->shape.nbytes - c->at,
                   n = left < *nbytes ? left : *nbytes;
    if (n)
        memcpy(c->copy->data + c->at, c->f->data + c->at, (size_t)n);
    c->at += n;
    *nbytes -= *nbytes == UINT64_MAX ? 0 : n;
}

static bool cloning_has_array(const bly_cloning *c)
{
    return c->at == c->f->shape.nbytes;
}

static bly_status cloning_run(bly_cloning *c, uint64_t *nbytes, bool *done);

/* Copy some of the next layer; *done: it is complete. Copying all at once needs
 * no memory to keep track of progress. */
static bly_status cloning_layer(bly_cloning *c, uint64_t *nbytes, bool *done)
{
    const bly_filter *const from = c->f->layer[c->copy->nlayers];
    bly_filter *layer = NULL;
    bly_status st = BLY_OK;
    *done = false;
    if (*nbytes == UINT64_MAX && !c->layer) {
        st = bly_filter_copy(from, &layer);
    } else {
        if (!c->layer)
            st = bly_filter_cloning(from, &c->layer);
        bool whole = false;
        if (!st)
            st = cloning_run(c->layer, nbytes, &whole);
        if (st || !whole)
            return st;
        layer = c->layer->copy;
        c->layer->copy = NULL;
        bly_cloning_free(c->layer);
        c->layer = NULL;
    }
    *done = !st;
    return st ? st : bly_filter_push(c->copy, layer);
}

/* No start(): state and data come from f. */
static bly_status cloning_end(const bly_filter *f, bly_filter *copy)
{
    bly_status st = BLY_OK;
    if (f->extra->max_bytes && !bly_filter_extra(copy))
        return BLY_ENOMEM;
    if (f->extra->max_bytes)
        copy->extra->max_bytes = f->extra->max_bytes;
    if (f->kind->open)
        st = f->kind->open(copy);
    if (!st)
        st = bly_filter_inherit(f, copy);
    if (!st)
        bly_filter_ready(copy);
    return st;
}

/* Copy what belongs to the array: once, when the array is complete. */
static bly_status cloning_state(const bly_filter *f, bly_filter *copy)
{
    const size_t nstate = f->kind->nstate * sizeof(uint64_t);
    if (nstate)
        memcpy(copy->state, f->state, nstate);
    copy->nadded = bly_filter_additions(f);
    if (bly_filter_live(f)) {
        /* Others may have been adding all the while. */
        if (f->kind->mend)
            f->kind->mend(copy);
        return BLY_OK;
    }
    /* The file may have changed since it was verified. */
    return f->readonly && f->kind->check && !f->kind->check(copy)
               ? bly_fail(BLY_EFORMAT, "damaged: its file changed while it was "
                                       "copied (restore it, or try again)")
               : BLY_OK;
}

static bly_status cloning_run(bly_cloning *c, uint64_t *nbytes, bool *done)
{
    *done = false;
    bly_status st = BLY_OK;
    if (!cloning_has_array(c) || !c->copy->nlayers) {
        cloning_array(c, nbytes);
        if (!cloning_has_array(c))
            return BLY_OK;
        st = cloning_state(c->f, c->copy);
    }
    while (!st && c->copy->nlayers < c->f->nlayers) {
        bool whole;
        st = cloning_layer(c, nbytes, &whole);
        if (!st && !whole)
            return BLY_OK;
    }
    if (!st)
        st = cloning_end(c->f, c->copy);
    *done = !st;
    return st;
}

bly_status bly_filter_copy(const bly_filter *f, bly_filter **out)
{
    bly_cloning c;
    uint64_t all = UINT64_MAX;
    bool done;
    *out = NULL;
    bly_status st = cloning_begin(&c, f);
    if (!st)
        st = cloning_run(&c, &all, &done);
    if (st)
        bly_free(c.copy);
    else
        *out = c.copy;
    return st;
}

bly_status bly_filter_cloning(const bly_filter *f, bly_cloning **out)
{
    bly_cloning *const c = bly_mem_zalloc(bly_filter_mem(f), sizeof *c);
    *out = NULL;
    if (!c)
        return bly_fail(BLY_ENOMEM, "out of memory");
    const bly_status st = cloning_begin(c, f);
    if (st)
        bly_cloning_free(c);
    else
        *out = c;
    return st;
}

bly_status bly_cloning_some(bly_cloning *c, uint64_t nbytes, bly_filter **out)
{
    bool done;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!c)
        return bly_fail_null("c");
    if (!c->copy)
        return bly_fail(BLY_EINVAL, "the copy was given out already");
    const bly_status st = cloning_run(c, &nbytes, &done);
    if (st || !done)
        return st;
    *out = c->copy;
    c->copy = NULL;
    return BLY_OK;
}

void bly_cloning_free(bly_cloning *c)
{
    if (!c)
        return;
    const bly_mem mem = c->mem;
    bly_cloning_free(c->layer);
    bly_free(c->copy);
    if (mem.release)
        bly_mem_release(&mem, c, sizeof *c);
}
