/*
 * cuckoo.h - the tables of a cuckoo filter
 *
 * cuckoo.c says what they are and how keys come and go, cuckoo_plan.c how large
 * they must be, cuckoo_sets.c what two filters have in common.
 */
#ifndef BLY_CUCKOO_H
#define BLY_CUCKOO_H

#include "engine/cuckoo_table.h"
#include "kinds/filter.h"

#define CUCKOO_MIN_BITS 4
#define CUCKOO_MAX_BITS 32
#define CUCKOO_MAX_BUCKETS (UINT64_C(1) << 40)
#define CUCKOO_MAX_GROW 16

/* Params of the shape. */
enum {
    CUCKOO_BUCKETS,
    CUCKOO_SLOTS,
    CUCKOO_BITS,
    CUCKOO_SEMISORT,
    CUCKOO_UNIQUE,
    CUCKOO_GROW,
    CUCKOO_MIXING
};

/* Values of CUCKOO_MIXING: how the other bucket follows from a fingerprint
 * (bly_cuckoo_across_()). Files from before the choice existed have the
 * first. */
enum { CUCKOO_FULL, CUCKOO_LIGHT };

/* How many keys a table of this shape is planned for. */
uint64_t bly_cuckoo_shape_room(const bly_shape *s);

/* The rate of one table with n keys. */
double bly_cuckoo_table_rate(const bly_shape *s, double n);

/* The shape of layer i, counted from 0, of a filter that grows: it has
 * grow^(i+1) times the room of the first table, and its fingerprints are i + 1
 * bits longer. False if that would be too large. */
bool bly_cuckoo_layer_shape(const bly_shape *root, uint32_t i, bly_shape *out);

/* The table of f, a root or a layer, without the layers. */
bly_cuckoo_table bly_cuckoo_filter_table(const bly_filter *f);

/* Table number i of f: 0 is its own, and the layers follow. */
static inline bly_filter *cuckoo_part(bly_filter *f, uint32_t i)
{
    return i ? f->layer[i - 1] : f;
}

/* Add one more table. */
bly_status bly_cuckoo_grow(bly_filter *f);

/* A cell is a fingerprint with its pair of buckets. There are nb/2 (2^f - 1) of
 * them, and a key belongs to one, wherever its fingerprint has moved. */
static inline double cuckoo_cells(const bly_shape *s)
{
    return (double)s->p[CUCKOO_BUCKETS] / 2 *
           (double)((UINT64_C(1) << s->p[CUCKOO_BITS]) - 1);
}

/* Functions of the kind's descriptor. */
bly_status bly_cuckoo_plan(const bly_want *w, bly_shape *out);
bool bly_cuckoo_sane(const bly_shape *s);
double bly_cuckoo_rate(const bly_shape *s, double n);
uint64_t bly_cuckoo_bits(const bly_shape *s);
void bly_cuckoo_describe(const bly_shape *s, const bly_want *w,
                         const bly_filter *f, bly_facts *out);
bly_status bly_cuckoo_merge(bly_filter *dst, const bly_filter *src);
bly_status bly_cuckoo_intersect(bly_filter *dst, const bly_filter *src);
bly_status bly_cuckoo_compare(const bly_filter *a, const bly_filter *b,
                              bly_likeness *out);

#endif
