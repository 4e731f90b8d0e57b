/*
 * lean_builder.c - a filter from all its keys, for kinds that add, in one
 * thread
 *
 * Hashes are kept in one array, which is sorted in the end: so each is counted
 * once, and the filter is planned for as many. An empty filter made at the
 * start refuses what cannot be planned, and has the hasher. The texts of the
 * spec stay the caller's, until the builder is freed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kinds/filter.h"

struct bly_builder {
    bly_spec spec;
    bly_option options[BLY_MAX_PARAMS];
    bly_filter *trial;
    uint64_t *hashes;
    size_t n, room;
};

bly_status bly_builder_new_sized(const bly_spec *spec, bly_builder **out,
                                 size_t size)
{
    bly_builder *const b = calloc(1, sizeof *b);
    (void)size;
    *out = NULL;
    if (!b)
        return BLY_ENOMEM;
    b->spec = *spec;
    b->spec.options = b->options;
    if (!spec->items && !(spec->bits && spec->fpr > 0))
        b->spec.items = 1;
    bly_status st = BLY_EINVAL; /* more options than a kind can have */
    if (spec->noptions <= BLY_MAX_PARAMS) {
        memcpy(b->options, spec->options,
               spec->noptions * sizeof *spec->options);
        st = bly_new(&b->spec, &b->trial);
    }
    b->spec.items = spec->items;
    if (st)
        bly_builder_free(b);
    else
        *out = b;
    return st;
}

const bly_hasher *bly_builder_hasher(const bly_builder *b)
{
    return bly_hasher_of(b->trial);
}

bly_status bly_builder_add(bly_builder *b, const uint64_t *hashes,
                           const uint64_t *values, size_t n)
{
    if (values)
        return BLY_EINVAL; /* no kind has them */
    if (n > b->room - b->n) {
        const size_t room = 2 * (b->n + n);
        uint64_t *const more = room <= SIZE_MAX / sizeof *more
                                   ? realloc(b->hashes, room * sizeof *more)
                                   : NULL;
        if (!more)
            return BLY_ENOMEM;
        b->hashes = more;
        b->room = room;
    }
    memcpy(b->hashes + b->n, hashes, n * sizeof *hashes);
    b->n += n;
    return BLY_OK;
}

/* Sort n hashes, a byte of them after another, to and fro between two arrays;
 * after eight they are in the first. */
static void sort(uint64_t *from, uint64_t *to, size_t n)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t end[257] = { 0 };
        for (size_t i = 0; i < n; i++)
            end[(from[i] >> shift & 255) + 1]++;
        for (unsigned i = 0; i < 256; i++)
            end[i + 1] += end[i];
        for (size_t i = 0; i < n; i++)
            to[end[from[i] >> shift & 255]++] = from[i];
        uint64_t *const other = to;
        to = from;
        from = other;
    }
}

bly_status bly_builder_finish(bly_builder *b, unsigned nthreads,
                              bly_filter **out)
{
    size_t n = 0;
    (void)nthreads;
    uint64_t *const other = malloc((b->n + 1) * sizeof *other);
    if (!other)
        return BLY_ENOMEM;
    sort(b->hashes, other, b->n);
    free(other);
    for (size_t i = 0; i < b->n; i++)
        if (!i || b->hashes[i] != b->hashes[n - 1])
            b->hashes[n++] = b->hashes[i];
    const bool sized = b->spec.items || (b->spec.bits && b->spec.fpr > 0);
    if (!sized)
        b->spec.items = n ? n : 1;
    bly_status st = bly_new(&b->spec, out);
    if (!st)
        st = bly_add_hashes(*out, b->hashes, n, NULL, NULL);
    /* As the library counts: all, or what the bits tell of a filter that had
     * its size before them. */
    bly_stats stats;
    if (!st && sized)
        bly_stat(*out, &stats);
    if (!st && (!sized || isfinite(stats.items_estimate)))
        (*out)->nadded = sized ? (uint64_t)(stats.items_estimate + 0.5) : n;
    return st;
}

void bly_builder_free(bly_builder *b)
{
    if (!b)
        return;
    bly_free(b->trial);
    free(b->hashes);
    free(b);
}
