/*
 * greedy.c - a document stays unless one that stays is like it
 *
 * Documents are taken in the order of their priority; one stays unless one that
 * stays already is like it, which is then its witness. So every document that
 * goes has a witness that stays, at the threshold or above.
 *
 * A document is compared with those of its buckets that stay, never with all of
 * them: a template shared by g pages costs g times those that stay. And these
 * may be many: pages that share half of their text with one another all stay,
 * and all meet in the bands that the template fills. So a bucket has CROWD of
 * those that stay, the first ones, and a document from such a crowd is compared
 * exactly with MOST_CHECKS at most, the likeliest. Two of a crowd that are more
 * alike than the crowd is agree also in what is not the template's, and so meet
 * in other buckets. The cost is linear in the documents whatever they share.
 *
 * Whom to compare with depends on what earlier comparisons gave, and exact ones
 * are made for many pairs at once. So it goes in rounds:
 *
 *     1. walk through all documents; where a likeness is not known, take the
 *        estimate for it and put the pair on the list
 *     2. find the exact likeness of the pairs on the list
 *     3. again from 1, until nothing was put on the list
 *
 * The last walk used exact values alone, so that its result is that of a walk
 * with all values at hand. Estimates only decide how many rounds there are,
 * three or four in practice. Partners are tried from the likeliest on, so that
 * most documents that go need one comparison. From the second walk on only
 * those are looked at again for which something was not known, or a bucket of
 * which has changed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup.h"

#define CROWD 256
#define MOST_CHECKS 32

struct partner {
    double estimate;
    uint32_t doc;
};

struct walk {
    struct dedup *d;
    double floor;          /* estimates below are no candidates */
    double sure;           /* at this or above they are hardly wrong */
    bool first;            /* the first of all walks */
    uint32_t *stays;       /* by bucket, as its docs: those that stay */
    uint32_t *nstay;       /* of each bucket */
    uint8_t *changed;      /* of each bucket, in this walk */
    uint8_t *open;         /* of each document: something was not known */
    uint32_t *seen;        /* 1 + the last document it was met for */
    struct partner *found; /* of the document at hand */
    size_t nfound, room;
    bool crowded; /* likewise */
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

static bool add_partner(struct walk *w, uint32_t doc, double estimate)
{
    if (w->nfound == w->room) {
        const size_t room = w->room * 2 + 64;
        struct partner *const more = realloc(w->found, room * sizeof *more);
        if (!more)
            return dedup_fail(w->d, "out of memory");
        w->found = more;
        w->room = room;
    }
    w->found[w->nfound++] = (struct partner){ estimate, doc };
    return true;
}

/* Those of the buckets of doc that stay and may be like it, likeliest first. */
static bool find_partners(struct walk *w, uint32_t doc)
{
    struct dedup *const d = w->d;
    const struct dedup_buckets *const b = &d->buckets;
    const uint64_t to = b->first[d->rank[doc] + 1];
    w->nfound = 0;
    w->crowded = false;
    for (uint64_t i = b->first[d->rank[doc]]; i < to; i++) {
        const uint32_t bucket = b->of[i];
        const uint32_t *const stay = w->stays + b->start[bucket];
        w->crowded = w->crowded || w->nstay[bucket] == CROWD;
        for (uint32_t j = 0; j < w->nstay[bucket]; j++) {
            const uint32_t other = stay[j];
            if (w->seen[other] == doc + 1 ||
                (w->only && w->only[other] != w->only[doc]))
                continue;
            w->seen[other] = doc + 1;
            w->candidates++;
            const double e = dedup_estimate(d, doc, other);
            store_trim(&d->store);
            if (e >= w->floor && !add_partner(w, other, e))
                return false;
        }
    }
    if (w->nfound > 1)
        qsort(w->found, w->nfound, sizeof *w->found, by_estimate);
    if (w->crowded && w->nfound > MOST_CHECKS)
        w->nfound = MOST_CHECKS;
    return true;
}

/* What doc is removed for, as far as is known. Where the estimate may be wrong
 * those that come next are asked for too, to save rounds. */
static bool find_witness(struct walk *w, uint32_t doc)
{
    struct dedup *const d = w->d;
    const double t = d->opt->verify == DEDUP_UNCHECKED ? 0 : d->opt->threshold;
    d->witness[doc] = DEDUP_NONE;
    w->open[doc] = 0;
    if (doc < d->base)
        return true;
    if (!find_partners(w, doc))
        return false;
    for (size_t i = 0; i < w->nfound; i++) {
        const struct dedup_pair *const p =
            dedup_pair_of(d, doc, w->found[i].doc);
        if (!p)
            return false;
        const bool known = !isnan(p->likeness);
        const double j = known ? p->likeness : w->found[i].estimate;
        w->open[doc] |= !known;
        if (j >= t && d->witness[doc] == DEDUP_NONE) {
            d->witness[doc] = w->found[i].doc;
            d->likeness[doc] = j;
        }
        if (j >= t && (known || j >= w->sure))
            return true;
    }
    return true;
}

/* Whether what the last walk found of doc may be otherwise now. */
static bool look_again(const struct walk *w, uint32_t doc)
{
    const struct dedup_buckets *const b = &w->d->buckets;
    const uint32_t rank = w->d->rank[doc];
    if (w->first || w->open[doc])
        return true;
    for (uint64_t i = b->first[rank]; i < b->first[rank + 1]; i++)
        if (w->changed[b->of[i]])
            return true;
    return false;
}

static bool walk_document(struct walk *w, uint32_t doc)
{
    struct dedup *const d = w->d;
    const struct dedup_buckets *const b = &d->buckets;
    const uint32_t rank = d->rank[doc];
    const bool stayed = d->witness[doc] == DEDUP_NONE;
    if (look_again(w, doc) && !find_witness(w, doc))
        return false;
    const bool stays = d->witness[doc] == DEDUP_NONE;
    for (uint64_t i = b->first[rank]; i < b->first[rank + 1]; i++) {
        const uint32_t bucket = b->of[i];
        w->changed[bucket] |= stays != stayed;
        if (stays && w->nstay[bucket] < CROWD)
            w->stays[b->start[bucket] + w->nstay[bucket]++] = doc;
    }
    return true;
}

static bool walk_all(struct walk *w)
{
    struct dedup *const d = w->d;
    const struct dedup_buckets *const b = &d->buckets;
    for (uint64_t i = 0; i < b->n; i++) {
        w->nstay[i] = w->changed[i] = 0;
        store_trim(&d->store);
    }
    for (uint64_t i = 0; dedup_more(d, i); i++)
        w->seen[i] = 0;
    w->candidates = 0;
    for (uint64_t i = 0; dedup_more(d, i); i++) {
        const uint32_t doc = d->order[i];
        if (d->states[doc] == DOC_TEXT && d->same[doc] == doc &&
            !walk_document(w, doc))
            return false;
    }
    w->first = false;
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
    struct store *const s = &d->store;
    const double t = d->opt->threshold;
    struct walk w = { .d = d,
                      .only = only,
                      .first = true,
                      .floor = dedup_floor(d->opt),
                      .sure = t + 2 * sqrt(t * (1 - t) / d->opt->sketch.k) };
    bool ok = STORE(s, w.stays, d->buckets.ndocs) &&
              STORE(s, w.nstay, d->buckets.n) &&
              STORE(s, w.changed, d->buckets.n) && STORE(s, w.open, d->n) &&
              STORE(s, w.seen, d->n);
    if (!ok)
        dedup_no_room(d, "buckets");
    while (ok) {
        const size_t known = d->pairs.n;
        ok = walk_all(&w);
        d->report.rounds++;
        if (w.candidates > d->report.candidates)
            d->report.candidates = w.candidates;
        if (!ok || d->pairs.n == known)
            break;
        ok = dedup_check(d, known);
    }
    store_release(s, w.stays);
    store_release(s, w.nstay);
    store_release(s, w.changed);
    store_release(s, w.open);
    store_release(s, w.seen);
    free(w.found);
    return ok;
}
