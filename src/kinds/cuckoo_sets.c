/*
 * cuckoo_sets.c - two cuckoo filters: their union, their intersection, and how
 * much they share
 *
 * The keys are gone, but fingerprints can be compared and moved without them:
 * the bucket that a fingerprint lies in and the fingerprint itself lead to its
 * other bucket. The two buckets and the fingerprint make a cell.
 *
 *     cell = { i1, i2, fp },  nb/2 (2^f - 1) of them
 *
 * What lies in i1 of one table may lie in i2 of another. So tables of one shape
 * are compared cell by cell, and what counts is how many copies both buckets of
 * a cell hold together.
 *
 * A filter that has grown is merged table by table. It cannot be intersected
 * or compared: the same key may be in one table here and in another there, with
 * fingerprints of different lengths.
 */
#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/cuckoo.h"

static bly_cuckoo_key cuckoo_key_in(const bly_cuckoo_table *t, uint64_t bit,
                                    uint32_t fp)
{
    return (bly_cuckoo_key){ .at1 = bit,
                             .at2 = bly_cuckoo_other(t, bit, fp),
                             .fp = fp };
}

static unsigned cuckoo_copies_in(const bly_cuckoo_table *t, uint64_t bit,
                                 uint32_t fp)
{
    uint32_t s[BLY_CUCKOO_MAX_SLOTS];
    unsigned n = 0;
    bly_cuckoo_read(t, bit, s);
    for (unsigned j = 0; j < t->b; j++)
        n += s[j] == fp;
    return n;
}

/* Copies in a cell. */
static unsigned cuckoo_copies(const bly_cuckoo_table *t, bly_cuckoo_key key)
{
    return cuckoo_copies_in(t, key.at1, key.fp) +
           cuckoo_copies_in(t, key.at2, key.fp);
}

/* Add the fingerprints of src to dst, a table of the same shape. */
static bool cuckoo_pour(bly_filter *dst, const bly_filter *src)
{
    const bly_cuckoo_table to = bly_cuckoo_filter_table(dst);
    const bly_cuckoo_table from = bly_cuckoo_filter_table(src);
    const bool unique = dst->shape.p[CUCKOO_UNIQUE] != 0;
    for (uint64_t bit = 0; bit < from.nbits; bit += from.width) {
        uint32_t s[BLY_CUCKOO_MAX_SLOTS];
        bly_cuckoo_read(&from, bit, s);
        for (unsigned j = 0; j < from.b; j++) {
            /* The keys are gone, but a bucket and a fingerprint in it are
             * enough: tables of one shape have the same pairs of buckets. */
            const bly_cuckoo_key key = cuckoo_key_in(&to, bit, s[j]);
            if (!s[j] || (unique && cuckoo_copies(&to, key)))
                continue;
            if (!bly_cuckoo_place(&to, key, false))
                return false;
            dst->state[0]++;
        }
    }
    return true;
}

/* Merge table by table, since fingerprints of one length cannot be turned into
 * those of another. Copies add up, as if the keys had been added: two keys may
 * share a cell, and each removal must find a copy of its own. */
bly_status bly_cuckoo_merge(bly_filter *dst, const bly_filter *src)
{
    /* Into a copy, since the last fingerprint may turn out not to fit, and a
     * failed merge must leave dst as it was. */
    bly_filter *both;
    bly_status st = bly_filter_copy(dst, &both);
    for (uint32_t i = 0; i <= src->nlayers && !st; i++) {
        if (i > both->nlayers)
            st = bly_cuckoo_grow(both);
        if (st)
            break;
        bly_filter *const part = cuckoo_part(both, i);
        const bly_filter *const from = i ? src->layer[i - 1] : src;
        const uint64_t before = part->state[0];
        if (!cuckoo_pour(part, from))
            st = bly_fail(
                BLY_EFULL,
                "the fingerprints of both do not fit into a table "
                "for %llu keys: build both for as many as they have "
                "together",
                (unsigned long long)bly_cuckoo_shape_room(&part->shape));
        if (part != both)
            bly_filter_added(part, part->state[0] - before);
        bly_filter_added(both, part->state[0] - before);
    }
    if (st) {
        bly_free(both);
        return st;
    }
    return bly_become(dst, both);
}

static bly_status cuckoo_one_table(const bly_filter *a, const bly_filter *b)
{
    return a->nlayers || b->nlayers
               ? bly_fail(BLY_ENOTSUP,
                          "cuckoo filters that have grown cannot be "
                          "intersected or compared: a key may be in different "
                          "tables of them (build them large enough)")
               : BLY_OK;
}

/* Keep as many copies of each cell as both filters have. */
bly_status bly_cuckoo_intersect(bly_filter *dst, const bly_filter *src)
{
    const bly_cuckoo_table a = bly_cuckoo_filter_table(dst),
                           b = bly_cuckoo_filter_table(src);
    const bly_status st = cuckoo_one_table(dst, src);
    if (st)
        return st;
    for (uint64_t bit = 0; bit < a.nbits; bit += a.width) {
        uint32_t s[BLY_CUCKOO_MAX_SLOTS];
        bly_cuckoo_read(&a, bit, s);
        for (unsigned j = 0; j < a.b; j++) {
            const bly_cuckoo_key key = cuckoo_key_in(&a, bit, s[j]);
            /* One copy is removed at a time, and the rest are counted anew at
             * the next slot of the cell. So copies can be removed during the
             * walk, until there are as many as b has. */
            if (s[j] && cuckoo_copies(&a, key) > cuckoo_copies(&b, key)) {
                bly_cuckoo_exchange(&a, bit, s[j], 0);
                dst->state[0]--;
            }
        }
    }
    bly_filter_at_most(dst, dst->state[0]);
    return BLY_OK;
}

/* Is slot j of a bucket the first one in which the walk meets its cell? */
static bool cuckoo_first(const bly_cuckoo_table *t, bly_cuckoo_key key,
                         const uint32_t *s, unsigned j)
{
    for (unsigned k = 0; k < j; k++)
        if (s[k] == key.fp)
            return false;
    /* at1 is the bucket that is being read. The cell was met before if the
     * other bucket comes earlier and has a copy. */
    return key.at1 < key.at2 || !cuckoo_copies_in(t, key.at2, key.fp);
}

/* The number of cells that a has, and how many of these b has too. */
static double cuckoo_used(const bly_cuckoo_table *a, const bly_cuckoo_table *b,
                          double *both)
{
    double used = 0;
    *both = 0;
    for (uint64_t bit = 0; bit < a->nbits; bit += a->width) {
        uint32_t s[BLY_CUCKOO_MAX_SLOTS];
        bly_cuckoo_read(a, bit, s);
        for (unsigned j = 0; j < a->b; j++) {
            const bly_cuckoo_key key = cuckoo_key_in(a, bit, s[j]);
            if (!s[j] || !cuckoo_first(a, key, s, j))
                continue;
            used++;
            *both += cuckoo_copies(b, key) > 0;
        }
    }
    return used;
}

bly_status bly_cuckoo_compare(const bly_filter *a, const bly_filter *b,
                              bly_likeness *out)
{
    const bly_cuckoo_table ta = bly_cuckoo_filter_table(a),
                           tb = bly_cuckoo_filter_table(b);
    const bly_status st = cuckoo_one_table(a, b);
    if (st)
        return st;
    double both;
    /* The number of common cells is the same whichever table is walked. */
    bly_ones used = { .b = cuckoo_used(&tb, &ta, &both) };
    used.a = cuckoo_used(&ta, &tb, &both);
    used.either = used.a + used.b - both;
    bly_likeness_of_prints(&used, cuckoo_cells(&a->shape), out);
    return BLY_OK;
}
