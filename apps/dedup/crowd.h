/*
 * crowd.h - near-copies among pages that all share a template
 */
#ifndef BLY_CROWD_H
#define BLY_CROWD_H

#include "apps/dedup/dedup_store.h"

#define CROWD_LIST 8 /* documents under one value; with more it is common */
#define CROWD_OWN 16 /* values under which a document is listed */

/* Zero but for the first two is empty. */
struct crowd {
    struct dedup_store *store;
    unsigned k;      /* components of a row */
    uint64_t *slots; /* tag of a value << 32 | 1 + document; 0: free */
    uint64_t n, nslots;
    uint32_t own[CROWD_OWN]; /* tags of the document that was looked for */
    unsigned nown;
};

/* Call found for documents that are listed under a value of this row that is
 * not common, in the order of its components; one may come more than once.
 * False as soon as found returns that; it may be NULL. The values that are not
 * common are kept in c->own. */
typedef bool crowd_fn(void *ctx, uint32_t doc);
bool crowd_look(struct crowd *c, const uint32_t *row, crowd_fn *found,
                void *ctx);

/* List a document under c->own, as the last crowd_look() left it. False with
 * errno. */
bool crowd_put(struct crowd *c, uint32_t doc);

void crowd_clear(struct crowd *c);
void crowd_free(struct crowd *c);

#endif
