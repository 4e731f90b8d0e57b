/*
 * greedy.c - a document stays unless one that stays is like it
 *
 * Documents are taken in the order of their priority; one stays unless one that
 * stays already is like it, which is then its witness. So every document that
 * goes has a witness that stays, at the threshold or above.
 *
 * A document is compared with those of its buckets that stay, never with all of
 * them: a template shared by g pages costs g times those that stay. Whom to
 * compare with depends on what earlier comparisons gave, and exact ones are
 * made in passes over the input. So it goes in rounds:
 *
 *     1. walk through all documents; where a likeness is not known, take the
 *        estimate for it and put the pair on the list
 *     2. find the exact likeness of the pairs on the list
 *     3. again from 1, until nothing was put on the list
 *
 * The last walk used exact values alone, so that its result is that of a walk
 * with all values at hand. Estimates only decide how many rounds there are,
 * three or four in practice. Partners are tried from the likeliest on, so that
 * most documents that go need one comparison.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup.h"

struct partner {
    double estimate;
    uint32_t doc;
};

struct walk {
    struct dedup *d;
    double floor;          /* estimates below are no candidates */
    uint32_t *stays;       /* by bucket, as its docs: those that stay */
    uint32_t *nstay;       /* of each bucket */
    uint32_t *seen;        /* 1 + the last document it was met for */
    struct partner *found; /* of the document at hand */
    size_t nfound, room;
    uint64_t candidates;
    const uint32_t *only; /* NULL, or compare within these clusters alone */
};

static int by_estimate(const void *x, const void *y)
{
    const struct partner *const p = x, *const q = y;
    if (p->estimate != q->estimate)
        return p->estimate > q->estimate ? -1 : 1;
    return (p->doc > q->doc) - (p->doc < q->doc);
}

/* Those of the buckets of doc that stay and may be like it, likeliest first. */
static bool find_partners(struct walk *w, uint32_t doc)
{
    struct dedup *const d = w->d;
    const struct dedup_buckets *const b = &d->buckets;
    w->nfound = 0;
    for (uint64_t i = b->doc_start[doc]; i < b->doc_start[doc + 1]; i++) {
        const uint32_t bucket = b->of_doc[i];
        const uint32_t *const stay = w->stays + b->start[bucket];
        for (uint32_t j = 0; j < w->nstay[bucket]; j++) {
            const uint32_t other = stay[j];
            if (w->seen[other] == doc + 1 ||
                (w->only && w->only[other] != w->only[doc]))
                continue;
            w->seen[other] = doc + 1;
            w->candidates++;
            const double e = dedup_estimate(d, doc, other);
            if (e < w->floor)
                continue;
            if (w->nfound == w->room) {
                const size_t room = w->room * 2 + 64;
                struct partner *const more =
                    realloc(w->found, room * sizeof *more);
                if (!more)
                    return dedup_fail(d, "out of memory");
                w->found = more;
                w->room = room;
            }
            w->found[w->nfound++] = (struct partner){ e, other };
        }
    }
    if (w->nfound > 1)
        qsort(w->found, w->nfound, sizeof *w->found, by_estimate);
    return true;
}

/* What doc is removed for, as far as is known. */
static bool find_witness(struct walk *w, uint32_t doc)
{
    struct dedup *const d = w->d;
    const double t = d->opt->verify == DEDUP_UNCHECKED ? 0 : d->opt->threshold;
    d->witness[doc] = DEDUP_NONE;
    if (doc < d->base)
        return true;
    if (!find_partners(w, doc))
        return false;
    for (size_t i = 0; i < w->nfound; i++) {
        const struct dedup_pair *const p =
            dedup_pair_of(&d->pairs, doc, w->found[i].doc);
        if (!p)
            return dedup_fail(d, "out of memory for pairs");
        const double j =
            isnan(p->likeness) ? w->found[i].estimate : p->likeness;
        if (j >= t) {
            d->witness[doc] = w->found[i].doc;
            d->likeness[doc] = j;
            return true;
        }
    }
    return true;
}

static bool walk_all(struct walk *w)
{
    struct dedup *const d = w->d;
    const struct dedup_buckets *const b = &d->buckets;
    memset(w->nstay, 0, (b->n + 1) * sizeof *w->nstay);
    memset(w->seen, 0, ((size_t)d->n + 1) * sizeof *w->seen);
    w->candidates = 0;
    for (uint64_t i = 0; i < d->n; i++) {
        const uint32_t doc = d->order[i];
        d->witness[doc] = DEDUP_NONE;
        if (d->states[doc] != DOC_TEXT || d->same[doc] != doc)
            continue;
        if (!find_witness(w, doc))
            return false;
        if (d->witness[doc] != DEDUP_NONE)
            continue;
        for (uint64_t j = b->doc_start[doc]; j < b->doc_start[doc + 1]; j++) {
            const uint32_t bucket = b->of_doc[j];
            w->stays[b->start[bucket] + w->nstay[bucket]++] = doc;
        }
    }
    return true;
}

double dedup_floor(const struct dedup_options *o)
{
    const double t = o->threshold;
    if (o->verify == DEDUP_UNCHECKED)
        return 0;
    if (o->verify == DEDUP_ESTIMATE)
        return t;
    return t - 3 * sqrt(t * (1 - t) / o->sketch.k);
}

bool dedup_greedy(struct dedup *d, const uint32_t *only)
{
    struct walk w = { .d = d, .only = only, .floor = dedup_floor(d->opt) };
    w.stays = malloc(((size_t)d->buckets.ndocs + 1) * sizeof *w.stays);
    w.nstay = malloc((d->buckets.n + 1) * sizeof *w.nstay);
    w.seen = malloc(((size_t)d->n + 1) * sizeof *w.seen);
    bool ok = w.stays && w.nstay && w.seen;
    if (!ok)
        dedup_fail(d, "out of memory");
    while (ok) {
        const size_t known = d->pairs.n;
        ok = walk_all(&w);
        d->report.rounds++;
        if (!ok || d->pairs.n == known)
            break;
        ok = dedup_check(d, known);
    }
    if (w.candidates > d->report.candidates)
        d->report.candidates = w.candidates;
    free(w.stays);
    free(w.nstay);
    free(w.seen);
    free(w.found);
    return ok;
}
