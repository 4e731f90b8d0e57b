/*
 * raw.c - the cells of a filter, and the bits of a filter and nothing else
 *
 * The filters in packets are of one kind and size, which both ends know, so a
 * header would say nothing new. The bits are those in memory, up to the last in
 * use; the kind says how many these are.
 */
#include <math.h>
#include <string.h>

#include "core/status.h"
#include "kinds/filter.h"

const void *bly_cells(const bly_filter *f, uint64_t *nbytes)
{
    *nbytes = f->shape.nbytes;
    return f->data;
}

uint64_t bly_raw_bytes(const bly_filter *f)
{
    return f->kind->raw ? (f->kind->raw(&f->shape) + 7) / 8 : 0;
}

/* Is this the size of the raw form of f, and does f have one? */
static bly_status raw_fits(const bly_filter *f, size_t nbytes)
{
    if (!f->kind->raw)
        return bly_fail(BLY_ENOTSUP,
                        "a %s filter has no raw form: it is more than bits",
                        f->kind->name);
    if (nbytes != bly_raw_bytes(f))
        return bly_fail(BLY_EINVAL,
                        "the raw form of this filter has %llu bytes, not %zu",
                        (unsigned long long)bly_raw_bytes(f), nbytes);
    return BLY_OK;
}

bly_status bly_raw_get(const bly_filter *f, void *bits, size_t nbytes)
{
    if (!f || (!bits && nbytes))
        return bly_fail_null("f or bits");
    bly_status st = raw_fits(f, nbytes);
    if (!st)
        st = bly_filter_settle(f);
    if (!st)
        memcpy(bits, f->data, nbytes);
    return st;
}

/* Estimate the number of additions from the contents. */
static void recount(bly_filter *f)
{
    bly_stats s = { .items_estimate = NAN };
    f->kind->stat(f, &s);
    f->nadded = s.items_estimate < 0x1p63 ? (uint64_t)llround(s.items_estimate)
                                          : f->items;
}

bly_status bly_cells_open(bly_filter *f, void **cells, uint64_t *nbytes)
{
    if (!f || !cells || !nbytes)
        return bly_fail_null("f, cells or nbytes");
    if (f->readonly)
        return bly_fail(BLY_EREADONLY,
                        "the filter is mapped read-only: open it to change it");
    const bly_status alone = bly_filter_alone(f, "be written from outside");
    if (alone)
        return alone;
    if (!f->kind->raw && !(f->kind->restate && f->kind->restate(f)))
        return bly_fail(BLY_ENOTSUP,
                        "the cells of this %s filter cannot be written from "
                        "outside: they are not all that it consists of",
                        f->kind->name);
    *cells = f->data;
    *nbytes = f->shape.nbytes;
    f->written = true;
    return BLY_OK;
}

/* Are the bits past the last one in use clear? */
static bool raw_ends(const bly_filter *f)
{
    const uint64_t used = f->kind->raw(&f->shape);
    if (used % 8 && f->data[used / 8] >> used % 8)
        return false;
    for (uint64_t i = (used + 7) / 8; i < f->shape.nbytes; i++)
        if (f->data[i])
            return false;
    return true;
}

bly_status bly_cells_close(bly_filter *f)
{
    if (!f)
        return bly_fail_null("f");
    if ((f->kind->raw ? !raw_ends(f) : !f->kind->restate(f)) ||
        (f->kind->check && !f->kind->check(f)))
        return bly_fail(BLY_EFORMAT,
                        "no keys give such cells of a %s filter: free it",
                        f->kind->name);
    recount(f);
    return BLY_OK;
}

bly_status bly_raw_set(bly_filter *f, const void *bits, size_t nbytes)
{
    if (!f || (!bits && nbytes))
        return bly_fail_null("f or bits");
    const bly_status st = raw_fits(f, nbytes);
    if (st)
        return st;
    if (f->readonly)
        return bly_fail(BLY_EREADONLY,
                        "the filter is mapped read-only: open it to change it");
    const bly_status alone = bly_filter_alone(f, "get other bits");
    if (alone)
        return alone;
    const unsigned used = f->kind->raw(&f->shape) % 8;
    unsigned char few[256];
    bly_block many = { 0 };
    const unsigned char last =
        nbytes ? ((const unsigned char *)bits)[nbytes - 1] : 0;
    if (used && last >> used)
        return bly_fail(BLY_EFORMAT,
                        "bits are set past the last one of the filter, which "
                        "is bit %u of byte %zu",
                        used - 1, nbytes - 1);
    const bool fit = nbytes <= sizeof few;
    const bly_status no_room =
        fit ? BLY_OK : bly_block_new(bly_filter_mem(f), nbytes, &many);
    if (no_room)
        return no_room;
    unsigned char *const was = fit ? few : many.at;
    memcpy(was, f->data, nbytes);
    memcpy(f->data, bits, nbytes);
    const bool right = !f->kind->check || f->kind->check(f);
    if (right)
        recount(f);
    else
        memcpy(f->data, was, nbytes);
    if (!fit)
        bly_block_free(bly_filter_mem(f), &many);
    return right ? BLY_OK
                 : bly_fail(BLY_EFORMAT,
                            "bits are set that a %s filter never sets",
                            f->kind->name);
}
