/*
 * greedy.c - a document stays unless it resembles one that stays
 *
 * Documents are taken in the order of their priority; one stays unless one that
 * stays already is like it, which is then its witness. So every document that
 * goes has a witness that stays, at the threshold or above.
 *
 * A document is compared with those of its buckets that stay, never with all of
 * them: a template shared by g pages costs g times those that stay. And there
 * may be many of these: pages that share half of their text all stay, and all
 * meet in the bands that the template fills. So there is a budget of
 * comparisons, so many a document. Where it is spent, a document is compared
 * with the first CROWD of a bucket that stay, and exactly with MOST_CHECKS, the
 * likeliest; and it is looked for by what it does not share with the crowd
 * (crowd.h). So the cost is linear in the documents whatever they share, and
 * small corpora lose nothing.
 *
 * Documents that buckets link, however far, are a group. Groups share nothing:
 * each is walked through by itself, with a budget and a crowd of its own. So a
 * group has the same verdicts wherever it is decided, with others or alone,
 * which is what lets many machines decide (staged.h).
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

#include "apps/dedup/crowd.h"
#include "apps/dedup/dedup.h"

#define CROWD 32
#define MOST_CHECKS 16
#define MOST_STAY 1024 /* kept of a bucket, whatever the budget */

/* The budget: comparisons of sketches that the first n documents of a group may
 * cost. What they cost follows from the buckets alone, so that what a document
 * is compared with does not depend on what was known before. A group of m costs
 * m comparisons per document and bucket at most, so that the constant, too,
 * leaves the cost linear. */
#define BUDGET(n) (UINT64_C(1000000) + 32 * (n))

enum { CROWDED = 1, POOR = 2 }; /* POOR: and the budget was spent */

struct partner {
    double estimate;
    uint32_t doc;
};

/* A bucket, and who of it stays. */
struct walked {
    uint64_t start;
    uint32_t nstay, changed;
};

struct walk {
    struct dedup_job *job;
    const struct dedup_case *c;
    struct dedup_verdicts *out;
    struct walked *buckets;
    double floor;          /* estimates below are not candidates */
    double sure;           /* at this or above they are hardly wrong */
    bool first;            /* the first of all walks */
    uint32_t *stays;       /* by bucket, as its docs: those that stay */
    uint8_t *open;         /* of each document: something was not known */
    uint8_t *crowd_bits;   /* likewise: CROWDED, POOR */
    uint32_t *seen;        /* 1 + the last document it was met for */
    uint32_t doc;          /* the one at hand */
    struct partner *found; /* its partners */
    size_t nfound, room;
    uint64_t spent;  /* of the budget, in this walk and group */
    uint64_t walked; /* documents of the group, so far */
    uint32_t *turns; /* ranks of those in buckets, group by group */
    uint32_t *group; /* of each rank: the least rank of its group */
    uint64_t nturns;
    struct crowd crowd;
    uint64_t candidates;
    const uint32_t *only; /* NULL, or compare within these clusters alone */
};

static const uint32_t *row_of(const struct walk *w, uint32_t doc)
{
    return w->c->docs->rows + (size_t)doc * w->c->docs->k;
}

static int by_estimate(const void *x, const void *y)
{
    const struct partner *const p = x, *const q = y;
    if (p->estimate != q->estimate)
        return p->estimate > q->estimate ? -1 : 1;
    return (p->doc > q->doc) - (p->doc < q->doc);
}

static bool add_partner(struct walk *w, uint32_t doc, double estimate)
{
    if (!ROOM(w->found, w->room, w->nfound + 1))
        return dedup_fail(w->job, "out of memory");
    w->found[w->nfound++] = (struct partner){ estimate, doc };
    return true;
}

/* Compare the document at hand with another that stays, by their sketches. */
static bool meet(void *ctx, uint32_t other)
{
    struct walk *const w = ctx;
    if (w->seen[other] == w->doc + 1 ||
        (w->only && w->only[other] != w->only[w->doc]))
        return true;
    w->seen[other] = w->doc + 1;
    w->candidates++;
    const double e = dedup_estimate(w->c->docs, w->doc, other);
    store_trim(&w->job->store);
    return e < w->floor || add_partner(w, other, e);
}

/* Those of the buckets of doc that stay and may be like it, likeliest first. */
static bool find_partners(struct walk *w, uint32_t doc)
{
    const struct dedup_buckets *const b = w->c->buckets;
    const uint32_t rank = w->c->order->rank[doc];
    const bool poor = w->crowd_bits[doc] & POOR;
    const uint32_t most = poor ? CROWD : MOST_STAY;
    w->doc = doc;
    w->nfound = 0;
    for (uint64_t i = b->first[rank]; i < b->first[rank + 1]; i++) {
        const struct walked *const bucket = &w->buckets[b->of[i]];
        const uint32_t *const stay = w->stays + bucket->start;
        for (uint32_t j = 0; j < bucket->nstay && j < most; j++)
            if (!meet(w, stay[j]))
                return false;
    }
    if (poor && !crowd_look(&w->crowd, row_of(w, doc), meet, w))
        return false;
    if (w->nfound > 1)
        qsort(w->found, w->nfound, sizeof *w->found, by_estimate);
    if (poor && w->nfound > MOST_CHECKS)
        w->nfound = MOST_CHECKS;
    return true;
}

/* What doc is removed for, as far as is known. Where the estimate may be wrong
 * those that come next are asked for too, to save rounds; in a crowd, where
 * some estimate is always too high, it is not believed at all. */
static bool find_witness(struct walk *w, uint32_t doc)
{
    struct dedup_verdicts *const v = w->out;
    const double t = dedup_alike(w->job->opt);
    v->witness[doc] = DEDUP_NONE;
    w->open[doc] = 0;
    if (doc < w->c->docs->base)
        return true;
    if (!find_partners(w, doc))
        return false;
    for (size_t i = 0; i < w->nfound; i++) {
        const struct dedup_pair *const p =
            dedup_pair_of(w->job, &w->c->check->pairs, doc, w->found[i].doc);
        if (!p)
            return false;
        const bool known = !isnan(p->likeness);
        const double j = known ? p->likeness : w->found[i].estimate;
        w->open[doc] |= !known;
        if (j >= (known || !w->crowd_bits[doc] ? t : w->sure) &&
            v->witness[doc] == DEDUP_NONE) {
            v->witness[doc] = w->found[i].doc;
            v->likeness[doc] = j;
        }
        if (j >= t && (known || j >= w->sure))
            return true;
    }
    return true;
}

/* Whether what the last walk found of doc may be otherwise now. */
static bool look_again(const struct walk *w, uint32_t doc)
{
    const struct dedup_buckets *const b = w->c->buckets;
    const uint32_t rank = w->c->order->rank[doc];
    if (w->first || w->open[doc])
        return true;
    for (uint64_t i = b->first[rank]; i < b->first[rank + 1]; i++)
        if (w->buckets[b->of[i]].changed)
            return true;
    return false;
}

/* Pay for a document. Was it poor, or is it? Then it is looked at in every
 * walk, since the crowd may have changed. */
static bool pay(struct walk *w, uint32_t doc)
{
    const struct dedup_buckets *const b = w->c->buckets;
    const uint32_t rank = w->c->order->rank[doc];
    const bool spent = w->spent >= BUDGET(w->walked);
    const uint8_t before = w->crowd_bits[doc];
    uint8_t now = 0;
    for (uint64_t i = b->first[rank]; i < b->first[rank + 1]; i++) {
        const uint32_t n = w->buckets[b->of[i]].nstay;
        if (n >= CROWD)
            now = spent ? CROWDED | POOR : CROWDED;
        w->spent += spent && n > CROWD ? CROWD : n;
    }
    w->crowd_bits[doc] = now;
    return (before | now) & POOR;
}

static bool walk_document(struct walk *w, uint32_t doc)
{
    const struct dedup_buckets *const b = w->c->buckets;
    const uint32_t rank = w->c->order->rank[doc];
    const bool stayed = w->out->witness[doc] == DEDUP_NONE;
    if ((pay(w, doc) || look_again(w, doc)) && !find_witness(w, doc))
        return false;
    const bool stays = w->out->witness[doc] == DEDUP_NONE;
    if (stays && w->crowd_bits[doc] &&
        (!crowd_look(&w->crowd, row_of(w, doc), NULL, NULL) ||
         !crowd_put(&w->crowd, doc)))
        return dedup_no_room(w->job, "buckets");
    for (uint64_t i = b->first[rank]; i < b->first[rank + 1]; i++) {
        struct walked *const bucket = &w->buckets[b->of[i]];
        if (bucket->nstay == MOST_STAY)
            continue;
        bucket->changed |= stays != stayed;
        if (stays)
            w->stays[bucket->start + bucket->nstay++] = doc;
    }
    return true;
}

/* ------------------------------------------------------------------ groups */

static bool in_buckets(const struct dedup_buckets *b, uint64_t rank)
{
    return b->first[rank] < b->first[rank + 1];
}

static uint32_t group_of(uint32_t *group, uint32_t x)
{
    while (group[x] != x) {
        group[x] = group[group[x]];
        x = group[x];
    }
    return x;
}

/* The least rank of its group for every rank. */
static void link_groups(struct walk *w)
{
    const struct dedup_buckets *const b = w->c->buckets;
    const uint32_t *const rank = w->c->order->rank;
    const uint64_t n = w->c->docs->n;
    for (uint32_t i = 0; dedup_more(w->job, i, n); i++)
        w->group[i] = i;
    for (uint64_t i = 0; dedup_more(w->job, i, b->n); i++) {
        uint32_t first = group_of(w->group, rank[b->docs[b->start[i]]]);
        for (uint64_t j = b->start[i] + 1; j < b->start[i + 1]; j++) {
            const uint32_t other = group_of(w->group, rank[b->docs[j]]);
            const uint32_t less = first < other ? first : other;
            w->group[first] = w->group[other] = less;
            first = less;
            store_trim(&w->job->store);
        }
    }
    for (uint32_t i = 0; dedup_more(w->job, i, n); i++)
        w->group[i] = w->group[w->group[i]]; /* lesser ranks are done */
}

/* Who is walked through, and when: by group, and then by rank. */
static bool find_turns(struct walk *w)
{
    struct dedup_store *const s = &w->job->store;
    const struct dedup_buckets *const b = w->c->buckets;
    const uint64_t n = w->c->docs->n;
    uint32_t *at = NULL; /* of the least rank of a group: its next turn */
    uint32_t sum = 0;
    if (!STORE(s, w->group, n) || !STORE_ZEROS(s, at, n))
        return false;
    link_groups(w);
    for (uint32_t i = 0; dedup_more(w->job, i, n); i++)
        if (in_buckets(b, i)) {
            at[w->group[i]]++;
            w->nturns++;
        }
    bool ok = STORE(s, w->turns, w->nturns);
    for (uint32_t i = 0; ok && dedup_more(w->job, i, n); i++) {
        const uint32_t size = at[i];
        at[i] = sum;
        sum += size;
    }
    for (uint32_t i = 0; ok && dedup_more(w->job, i, n); i++)
        if (in_buckets(b, i))
            w->turns[at[w->group[i]]++] = i;
    store_release(s, at);
    return ok;
}

static bool walk_all(struct walk *w)
{
    const struct dedup_case *const c = w->c;
    uint32_t group = DEDUP_NONE;
    for (uint64_t i = 0; dedup_more(w->job, i, c->buckets->n); i++)
        w->buckets[i] = (struct walked){ .start = c->buckets->start[i] };
    for (uint64_t i = 0; dedup_more(w->job, i, c->docs->n); i++)
        w->seen[i] = 0;
    w->candidates = 0;
    for (uint64_t i = 0; dedup_more(w->job, i, w->nturns); i++) {
        const uint32_t rank = w->turns[i];
        if (w->group[rank] != group) {
            group = w->group[rank];
            w->spent = w->walked = 0;
            crowd_clear(&w->crowd);
        }
        if (!walk_document(w, c->order->docs[rank]))
            return false;
        w->walked++;
    }
    w->first = false;
    return true;
}

double dedup_alike(const struct dedup_options *o)
{
    return o->verify == DEDUP_UNCHECKED ? 0 : o->threshold;
}

double dedup_floor(const struct dedup_options *o)
{
    const double t = dedup_alike(o);
    return o->verify == DEDUP_EXACT ? t - 3 * sqrt(t * (1 - t) / o->sketch.k)
                                    : t;
}

bool dedup_greedy(struct dedup_job *job, const struct dedup_case *c,
                  const uint32_t *only, struct dedup_verdicts *out)
{
    struct dedup_store *const s = &job->store;
    const uint64_t n = c->docs->n;
    const double t = job->opt->threshold;
    struct walk w = { .job = job,
                      .c = c,
                      .out = out,
                      .only = only,
                      .first = true,
                      .floor = dedup_floor(job->opt),
                      .sure = t + 2 * sqrt(t * (1 - t) / c->docs->k),
                      .crowd = { .store = s, .k = c->docs->k } };
    bool ok = STORE_ZEROS(s, w.crowd_bits, n) &&
              STORE(s, w.buckets, c->buckets->n) &&
              STORE(s, w.stays, c->buckets->ndocs) && STORE(s, w.open, n) &&
              STORE(s, w.seen, n) && find_turns(&w);
    if (!ok)
        dedup_no_room(job, "buckets");
    while (ok) {
        const size_t known = c->check->pairs.n;
        ok = walk_all(&w);
        out->rounds++;
        if (w.candidates > out->candidates)
            out->candidates = w.candidates;
        if (!ok || c->check->pairs.n == known)
            break;
        ok = dedup_check_pairs(job, c->check, known);
    }
    store_release(s, w.buckets);
    store_release(s, w.stays);
    store_release(s, w.open);
    store_release(s, w.seen);
    store_release(s, w.crowd_bits);
    store_release(s, w.turns);
    store_release(s, w.group);
    crowd_free(&w.crowd);
    free(w.found);
    return ok;
}
