/*
 * weighted_sums.c - the weighted sum of sketches, made little by little
 *
 * The cells of the sum are made in order, in a sketch that nobody sees. A key
 * that is raised meanwhile in one of the sources has cells that were made
 * already: these are noted, and made again before the next ones. So the sum is
 * at every time that of the sources as they are, as far as it goes.
 */
#include <string.h>

#include "foreign/format.h"

/* So often the sums are begun again. */
enum { SUMS_PATIENCE = 4 };

/* Which sketch it was, and how often it had changed. */
typedef struct sums_source {
    uint64_t id;
    uint32_t nchanges;
} sums_source;

struct bly_foreign_sums {
    const bly_mem *mem;
    bly_foreign *made;
    uint64_t ncells, at; /* of them so many are made */
    uint64_t *again;     /* and these are not right any more */
    size_t nagain, room;
    unsigned nbegun;
    sums_source target; /* what f was */
    bool differs;       /* from it */
    size_t n;
    int64_t *weights;
    sums_source sources[];
};

static size_t sums_bytes(size_t n)
{
    return sizeof(bly_foreign_sums) + n * (sizeof(sums_source) + 8);
}

static sums_source source_of(const bly_foreign *f)
{
    return (sums_source){ bly_row_of(f)->id(f), f->nchanges };
}

static bool is_source(sums_source s, const bly_foreign *f)
{
    return s.id == bly_row_of(f)->id(f) && s.nchanges == f->nchanges;
}

/* Can it be, of these? */
static bly_status sums_fit(const bly_foreign *f, const bly_foreign *const *from,
                           size_t n)
{
    if (!bly_row_of(f)->sum_some || !f->planned)
        return bly_fail(BLY_ENOTSUP, "a %s cannot be a sum",
                        bly_row_of(f)->name);
    for (size_t i = 0; i < n; i++)
        if (!from[i] || from[i]->row != f->row)
            return bly_fail(BLY_EUNFIT, "a sum of other formats");
    return bly_row_of(f)->sum_fit(f, from, n);
}

bly_status bly_foreign_sums_new(const bly_foreign *f,
                                const bly_foreign *const *from,
                                const int64_t *weights, size_t n,
                                bly_foreign_sums **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!f || ((!from || !weights) && n))
        return bly_fail_null("f or from or weights");
    bly_status st = sums_fit(f, from, n);
    if (st)
        return st;
    bly_foreign_sums *const s =
        n < SIZE_MAX / 64 ? bly_mem_zalloc(f->mem, sums_bytes(n)) : NULL;
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    s->mem = f->mem;
    s->n = n;
    s->weights = (int64_t *)(void *)(s->sources + n);
    if (n)
        memcpy(s->weights, weights, n * sizeof *weights);
    for (size_t i = 0; i < n; i++)
        s->sources[i] = source_of(from[i]);
    s->target = source_of(f);
    s->ncells = bly_row_of(f)->array(f, 0).nbytes / sizeof(uint32_t);
    st = bly_foreign_copy_by(f, bly_row_of(f)->sum_blank, &s->made);
    if (st) {
        bly_foreign_sums_free(s);
        return st;
    }
    *out = s;
    return BLY_OK;
}

void bly_foreign_sums_free(bly_foreign_sums *s)
{
    if (!s)
        return;
    bly_foreign_free(s->made);
    bly_mem_release(s->mem, s->again, s->room * sizeof *s->again);
    bly_mem_release(s->mem, s, sums_bytes(s->n));
}

/* Are these the sources, and as they were? Else the sums are begun again. */
static bly_status sums_look(bly_foreign_sums *s, const bly_foreign *const *from)
{
    bool same = true;
    const bly_status st = sums_fit(s->made, from, s->n);
    for (size_t i = 0; i < s->n && !st; i++) {
        same &= is_source(s->sources[i], from[i]);
        s->sources[i] = source_of(from[i]);
    }
    if (!same) {
        s->at = s->nagain = 0;
        s->differs = false;
        s->nbegun++;
    }
    return st;
}

/* Make cells, and see whether they are another's now. */
static bly_status sums_make(bly_foreign_sums *s, const bly_foreign *f,
                            const bly_foreign *const *from, uint64_t first,
                            uint64_t n)
{
    const bly_format *const row = bly_row_of(f);
    const bly_status st =
        row->sum_some(s->made, from, s->weights, s->n, first, n);
    const size_t skip = (size_t)first * sizeof(uint32_t),
                 nbytes = (size_t)n * sizeof(uint32_t);
    if (!st && !s->differs && nbytes)
        s->differs = memcmp(row->array(f, 0).at + skip,
                            row->array(s->made, 0).at + skip, nbytes) != 0;
    return st;
}

bly_status bly_foreign_sums_some(bly_foreign_sums *s, const bly_foreign *f,
                                 const bly_foreign *const *from,
                                 uint64_t ncells, uint64_t *nleft)
{
    if (!s || !f || !nleft || (!from && s->n))
        return bly_fail_null("s or f or from or nleft");
    bly_status st = sums_fit(f, from, s->n);
    if (!st)
        st = sums_look(s, from);
    if (s->nbegun > SUMS_PATIENCE)
        ncells = s->ncells;
    for (; s->nagain && !st; s->nagain--)
        st = sums_make(s, f, from, s->again[s->nagain - 1], 1);
    const uint64_t left = s->ncells - s->at,
                   some = ncells < left ? ncells : left;
    if (!st)
        st = sums_make(s, f, from, s->at, some);
    if (!st)
        s->at += some;
    *nleft = s->ncells - s->at;
    return st;
}

/* Room for one more; false without memory. */
static bool again_has_room(bly_foreign_sums *s)
{
    if (s->nagain < s->room)
        return true;
    const size_t room = s->room ? 2 * s->room : 256;
    uint64_t *const again = s->mem->alloc(s->mem->ctx, room * sizeof *again);
    if (!again)
        return false;
    if (s->nagain)
        memcpy(again, s->again, s->nagain * sizeof *again);
    bly_mem_release(s->mem, s->again, s->room * sizeof *again);
    s->again = again;
    s->room = room;
    return true;
}

/* Those that were made already. Where they cannot be noted, the source is one
 * that has changed otherwise. */
static bool note_cells(bly_foreign_sums *s, const bly_foreign *f, bly_bytes key)
{
    uint64_t cell;
    for (uint64_t row = 0;
         (cell = bly_row_of(f)->cell(f, key, row)) != UINT64_MAX; row++) {
        if (cell >= s->at)
            continue;
        if (!again_has_room(s))
            return false;
        s->again[s->nagain++] = cell;
    }
    return true;
}

void bly_foreign_sums_raised(bly_foreign_sums *s, const bly_foreign *f,
                             uint64_t before, const bly_bytes *keys, size_t n)
{
    const uint64_t id = bly_row_of(f)->id ? bly_row_of(f)->id(f) : 0;
    const sums_source was = { id, (uint32_t)before };
    bool concerned = false, noted = true;
    for (size_t i = 0; i < s->n; i++)
        concerned |= s->sources[i].id == was.id &&
                     s->sources[i].nchanges == was.nchanges;
    for (size_t i = 0; i < n && concerned && noted; i++)
        noted = note_cells(s, f, keys[i]);
    for (size_t i = 0; i < s->n && concerned && noted; i++)
        if (s->sources[i].id == id)
            s->sources[i].nchanges = f->nchanges;
}

bly_status bly_foreign_sums_end(bly_foreign_sums *s, bly_foreign *f,
                                const bly_foreign *const *from, bool *changed)
{
    if (!changed)
        return bly_fail_null("changed");
    uint64_t total, nleft;
    *changed = false;
    bly_status st = bly_foreign_sums_some(s, f, from, UINT64_MAX, &nleft);
    if (!st)
        st = bly_row_of(f)->sum_total(from, s->weights, s->n, &total);
    if (st)
        return st;
    *changed = s->differs || !is_source(s->target, f) || f->nadded != total;
    if (!*changed)
        return BLY_OK;
    void *const old = f->own;
    f->own = s->made->own;
    s->made->own = old;
    f->nadded = total;
    f->nchanges++;
    return BLY_OK;
}
