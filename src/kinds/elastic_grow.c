/*
 * elastic_grow.c - how elastic tables are rewritten
 *
 * A table is the sorted list of its fingerprints, however many slots it has. So
 * a larger one is written from front to back while the smaller one is read, and
 * no key is needed:
 *
 *     entry -> F, as the beginning of a hash -> entry in the larger table
 *
 * Growing does this with the newest table until it has all the slots that it
 * may reach; then that table is left as it is, and a new one begins. A union
 * reads two tables and writes one. If there are more than two, or that one
 * would be too large, the tables of the other filter become layers.
 *
 * A rewritten table belongs to a new filter, which replaces the old one when it
 * is complete. So a failure changes nothing.
 */
#include "kinds/elastic.h"

#include <math.h>
#include <string.h>

#include "core/status.h"

/* A rewritten table gets one twentieth of all slots more, so each key that is
 * added pays for moving some twenty others. Smaller steps would save memory but
 * move more. */
#define ELASTIC_STEP 20

/* The range is from 2^m to below 2^(m+1), so from one F to the next the entry
 * rises by one or two. A division of doubles comes near. Each further step by
 * half of what is missing never overshoots, and at least halves the
 * distance. */
bool bly_elastic_uncut(const elastic_size *size, const bly_quotient_table *t,
                       uint64_t entry, uint64_t *h)
{
    const unsigned shift = 64 - size->print;
    const uint64_t last = UINT64_MAX >> shift;
    const double near =
        ldexp((double)entry, (int)size->print) / (double)t->range;
    uint64_t F = near < (double)last ? (uint64_t)near : last;
    for (int i = 0; i < 64; i++) {
        const uint64_t is = bly_scale(F << shift, t->range);
        if (is == entry) {
            *h = F << shift;
            return true;
        }
        const uint64_t off = is < entry ? entry - is : is - entry;
        const uint64_t by = off < 2 ? 1 : off / 2;
        if (is < entry ? by > last - F : by > F)
            return false;
        F = is < entry ? F + by : F - by;
    }
    return false;
}

/* ----------------------------------------------------------------- growing */

/* Rewrite the newest table of f, with more slots, as that of the larger g. */
static bly_status elastic_spread(const bly_filter *f, bly_filter *g)
{
    elastic_walk from = elastic_walk_of(f), to = elastic_walk_of(g);
    if (!bly_elastic_next(&from) || !bly_elastic_next(&to))
        return bly_fail(BLY_EFORMAT, "damaged");
    bly_quotient_walk w = bly_quotient_walk_of(&from.t);
    bly_quotient_writer out = bly_quotient_writer_of(&to.t, g->state);
    /* The older tables lie before the newest and stay as they are. */
    memcpy(g->data, f->data, (size_t)from.at);
    g->state[ELASTIC_BEFORE] = f->state[ELASTIC_BEFORE];
    /* Scaling keeps the order, so the sorted entries of the old table are those
     * of the new one, written from front to back. */
    while (bly_quotient_walk_next(&w)) {
        uint64_t h;
        if (!bly_elastic_uncut(&from.size, &from.t, w.F, &h))
            return bly_fail(BLY_EFORMAT,
                            "damaged: an entry is nobody's "
                            "fingerprint (restore it from a copy)");
        const bly_status st =
            bly_quotient_write(&out, bly_scale(h, to.t.range), w.count);
        if (st)
            return st;
    }
    return bly_quotient_write_end(&out);
}

/* Leave the newest table of f as it is, and give g one more, which is empty. */
static bly_status elastic_seal(const bly_filter *f, bly_filter *g)
{
    memcpy(g->data, f->data, (size_t)f->shape.nbytes);
    g->state[ELASTIC_BEFORE] =
        f->state[ELASTIC_BEFORE] + f->state[BLY_QUOTIENT_DISTINCT];
    return BLY_OK;
}

/* The next larger shape. False: there is none. */
static bool elastic_after(const bly_shape *s, bly_shape *out)
{
    elastic_size size;
    const uint64_t last = s->p[ELASTIC_TABLES] - 1;
    uint64_t slots = s->p[ELASTIC_SLOTS], before = 0;
    *out = *s;
    if (!bly_elastic_sized(s, last, slots, &size))
        return false;
    /* The slots of the newest table and the one before it are nearly all, since
     * older tables are smaller by powers of the growth. A new table starts from
     * nothing; bly_elastic_nbytes() checks the size. */
    if (slots == size.most) {
        if (++out->p[ELASTIC_TABLES] > ELASTIC_MAX_TABLES)
            return false;
        before = slots;
        slots = 0;
        size.most = ELASTIC_MAX_SLOTS;
    } else if (last) {
        before = size.most / s->p[ELASTIC_GROWTH];
    }
    /* A twentieth, rounded up to whole blocks, and at least one block. */
    const uint64_t more = (slots + before) / ELASTIC_STEP + BLY_RUNS_BLOCK - 1;
    slots += (more > BLY_RUNS_BLOCK ? more : BLY_RUNS_BLOCK) / BLY_RUNS_BLOCK *
             BLY_RUNS_BLOCK;
    out->p[ELASTIC_SLOTS] = slots < size.most ? slots : size.most;
    out->nbytes = bly_elastic_nbytes(out);
    return out->nbytes != 0;
}

/* Would the newest table still be less than three quarters full in this shape?
 * If it has no room even so, its keys crowd into one place. */
static bool elastic_crowded(const bly_filter *f, const bly_shape *s)
{
    const uint64_t most = bly_quotient_most(s->p[ELASTIC_SLOTS]);
    return s->p[ELASTIC_TABLES] == f->shape.p[ELASTIC_TABLES] &&
           f->state[BLY_QUOTIENT_USED] < most - most / 4;
}

/* Hand the layers of f over to g, which takes its place. */
static void elastic_hand_over(bly_filter *f, bly_filter *g)
{
    g->layer = f->layer;
    g->nlayers = f->nlayers;
    g->places = f->places;
    f->layer = NULL;
    f->nlayers = 0;
    f->places = 0;
}

/* Make room for more keys. An adversary can choose keys that crowd into one
 * place, so that a table is full long before its time, even after it was
 * rewritten. Then it is made larger again, but not without limit: a few such
 * keys must not take all memory. f stays as it is until its successor is
 * complete. */
bly_status bly_elastic_grow(bly_filter *f)
{
    const bly_setting set = bly_setting_of(f);
    bly_shape next = bly_shape_of(f);
    bly_status st;
    do {
        bly_filter *g;
        if (elastic_crowded(f, &next))
            return bly_fail(BLY_EFULL, "the filter is full: too many keys in "
                                       "one place (where keys are chosen by "
                                       "others, build a keyed one)");
        if (!elastic_after(&next, &next))
            return bly_fail(BLY_EFULL, "the filter is full: its tables cannot "
                                       "grow further (build a new one)");
        if (f->extra->max_bytes && next.nbytes > f->extra->max_bytes)
            return bly_fail(BLY_EFULL,
                            "to grow, the filter would need %llu bytes, the "
                            "limit is %llu",
                            (unsigned long long)next.nbytes,
                            (unsigned long long)f->extra->max_bytes);
        st = bly_filter_make(f->kind, &next, &set, &g);
        if (st)
            return st;
        g->nadded = f->nadded;
        const bool sealed =
            next.p[ELASTIC_TABLES] != f->shape.p[ELASTIC_TABLES];
        st = sealed ? elastic_seal(f, g) : elastic_spread(f, g);
        if (!st) {
            elastic_hand_over(f, g);
            return bly_become(f, g);
        }
        /* Full again although larger: crowded keys. Try the next size. */
        bly_free(g);
    } while (st == BLY_EFULL);
    return st;
}

/* ----------------------------------------------------------------- merging */

/* Walks the single table of a filter: gives the cut hash of each entry. */
typedef struct elastic_list {
    elastic_walk table;
    bly_quotient_walk entries;
    uint64_t h;
    bool more, bad;
} elastic_list;

static void elastic_list_next(elastic_list *l)
{
    l->more = bly_quotient_walk_next(&l->entries);
    if (l->more &&
        !bly_elastic_uncut(&l->table.size, &l->table.t, l->entries.F, &l->h))
        l->bad = true;
}

static elastic_list elastic_list_of(const bly_filter *f)
{
    elastic_list l = { .table = elastic_walk_of(f) };
    l.bad = !bly_elastic_next(&l.table);
    if (!l.bad) {
        l.entries = bly_quotient_walk_of(&l.table.t);
        elastic_list_next(&l);
    }
    return l;
}

/* Fill the table of g, which is empty, from those of a and b. */
static bly_status elastic_unite(const bly_filter *a, const bly_filter *b,
                                bly_filter *g)
{
    elastic_list la = elastic_list_of(a), lb = elastic_list_of(b);
    elastic_walk to = elastic_walk_of(g);
    if (!bly_elastic_next(&to))
        return bly_fail(BLY_EFORMAT, "damaged");
    bly_quotient_writer out = bly_quotient_writer_of(&to.t, g->state);
    bly_status st = BLY_OK;
    while (!st && (la.more || lb.more)) {
        if (la.bad || lb.bad)
            return bly_fail(BLY_EFORMAT,
                            "damaged: an entry is nobody's fingerprint "
                            "(restore it from a copy)");
        const bool take_a = la.more && (!lb.more || la.h <= lb.h);
        const bool take_b = lb.more && (!la.more || lb.h <= la.h);
        const uint64_t h = take_a ? la.h : lb.h;
        uint64_t count =
            (take_a ? la.entries.count : 0) + (take_b ? lb.entries.count : 0);
        if (!g->shape.p[ELASTIC_REMOVAL])
            count = 1;
        else if (count > BLY_QUOTIENT_MAX_COUNT)
            count = BLY_QUOTIENT_MAX_COUNT;
        st = bly_quotient_write(&out, bly_scale(h, to.t.range), count);
        if (take_a)
            elastic_list_next(&la);
        if (take_b)
            elastic_list_next(&lb);
    }
    return st ? st : bly_quotient_write_end(&out);
}

static bool elastic_bare(const bly_filter *f)
{
    return !f->state[BLY_QUOTIENT_USED] && !f->state[ELASTIC_BEFORE] &&
           !f->nlayers;
}

static bly_status elastic_crowd(const bly_shape *s, uint64_t all)
{
    return bly_fail(BLY_EFULL,
                    "the filters have %llu tables together, and their rate "
                    "allows for %llu: build one from all keys, or both with a "
                    "larger level",
                    (unsigned long long)all,
                    (unsigned long long)s->p[ELASTIC_LEVEL]);
}

/* A copy of a part of src, without its layers, to become a layer of dst. */
static bly_status elastic_part_copy(const bly_filter *dst,
                                    const bly_filter *part, bly_filter **out)
{
    const bly_setting set = bly_setting_of(dst);
    bly_shape s = bly_shape_of(part);
    s.p[ELASTIC_JOINED] = 0;
    const bly_status st = bly_filter_make(dst->kind, &s, &set, out);
    if (!st) {
        memcpy((*out)->data, part->data, (size_t)s.nbytes);
        memcpy((*out)->state, part->state,
               part->kind->nstate * sizeof part->state[0]);
        (*out)->nadded = part->nadded;
    }
    return st;
}

/* All parts of src become layers of dst, which has room for them. */
static bly_status elastic_join(bly_filter *dst, const bly_filter *src)
{
    bly_filter *part[BLY_MAX_LAYERS];
    uint32_t n = 0;
    bly_status st = BLY_OK;
    for (uint32_t i = 0; i <= src->nlayers && !st; i++) {
        st = elastic_part_copy(dst, i ? src->layer[i - 1] : src, &part[n]);
        n += !st;
    }
    /* Only the first can fail, if there is no memory for the list. */
    for (uint32_t i = 0; i < n; i++)
        if (st)
            bly_free(part[i]);
        else
            st = bly_filter_push(dst, part[i]);
    if (!st)
        dst->shape.p[ELASTIC_JOINED] +=
            src->shape.p[ELASTIC_TABLES] + src->shape.p[ELASTIC_JOINED];
    return st;
}

/* Merge the two single tables into one, in dst. BLY_EFULL: it would be too
 * large. */
static bly_status elastic_merge_tables(bly_filter *dst, const bly_filter *src)
{
    const bly_setting set = bly_setting_of(dst);
    bly_shape s = bly_shape_of(dst);
    bly_status st = BLY_EFULL;
    if (s.p[ELASTIC_SLOTS] < src->shape.p[ELASTIC_SLOTS])
        s = bly_shape_of(src);
    do {
        bly_filter *g;
        st = bly_filter_make(dst->kind, &s, &set, &g);
        if (st)
            return st;
        st = elastic_unite(dst, src, g);
        if (!st) {
            g->nadded = dst->nadded;
            return bly_become(dst, g);
        }
        bly_free(g);
    } while (st == BLY_EFULL && elastic_after(&s, &s) &&
             s.p[ELASTIC_TABLES] == 1);
    return st;
}

bly_status bly_elastic_merge(bly_filter *dst, const bly_filter *src)
{
    const uint64_t *const d = dst->shape.p, *const s = src->shape.p;
    const uint64_t all = d[ELASTIC_TABLES] + d[ELASTIC_JOINED] +
                         s[ELASTIC_TABLES] + s[ELASTIC_JOINED];
    bly_status st = BLY_EFULL;
    if (elastic_bare(src))
        return BLY_OK;
    if (all == 2)
        st = elastic_merge_tables(dst, src);
    if (st == BLY_EFULL && all > d[ELASTIC_LEVEL])
        return elastic_crowd(&dst->shape, all);
    if (st == BLY_EFULL)
        st = elastic_join(dst, src);
    if (!st)
        bly_filter_added(dst, src->nadded);
    return st;
}
