/*
 * policy.c - who stays: greedy, or one of every component
 *
 * greedy is in greedy.c. component: what is linked by pairs, however far, is
 * one cluster, of which one document stays. A cluster of more than
 * --max-cluster is left to greedy.
 */
#include "apps/dedup/journal.h"

/* --------------------------------------------------------------- all pairs */

static bool ask_for(struct dedup *d, uint32_t a, uint32_t b, double least)
{
    if (a < d->base && b < d->base)
        return true;
    d->report.candidates++;
    return dedup_estimate(d, a, b) < least || dedup_pair_of(d, a, b);
}

/* Every pair of a bucket; of a large one each with the first and with the one
 * before it, so that the cost stays linear. */
static bool all_pairs(struct dedup *d)
{
    const struct dedup_buckets *const b = &d->buckets;
    const double least = dedup_floor(d->opt);
    const size_t known = d->pairs.n;
    for (uint64_t i = 0; i < b->n; i++) {
        const uint32_t *const docs = b->docs + b->at[i].start;
        const size_t n = (size_t)(b->at[i + 1].start - b->at[i].start);
        for (size_t x = 1; x < n; x++) {
            const bool large = n > d->opt->max_bucket;
            if (large && !ask_for(d, docs[0], docs[x], least))
                return false;
            for (size_t y = large ? x - 1 : 0; y < x; y++)
                if (!ask_for(d, docs[y], docs[x], least))
                    return false;
        }
    }
    return dedup_check(d, known);
}

/* --------------------------------------------------------------- component */

static uint32_t root_of(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x) {
        parent[x] = parent[parent[x]];
        x = parent[x];
    }
    return x;
}

/* Clusters by union-find; the first by priority is the root of each. */
static bool components(struct dedup *d, uint32_t *parent, uint32_t *size)
{
    const double t = d->opt->verify == DEDUP_UNCHECKED ? 0 : d->opt->threshold;
    for (uint32_t i = 0; dedup_more(d, i); i++) {
        parent[i] = i;
        size[i] = 1;
    }
    for (size_t i = 0; i < d->pairs.n; i++) {
        const struct dedup_pair *const p = &d->pairs.at[i];
        if (!(p->likeness >= t))
            continue;
        uint32_t a = root_of(parent, p->a), b = root_of(parent, p->b);
        if (a == b)
            continue;
        if (d->rank[a] > d->rank[b]) {
            const uint32_t swap = a;
            a = b;
            b = swap;
        }
        parent[b] = a;
        size[a] += size[b];
    }
    for (uint32_t i = 0; dedup_more(d, i); i++)
        parent[i] = root_of(parent, i);
    return true;
}

/* A chain may link what is not alike: say how much. */
static bool witness_likeness(struct dedup *d)
{
    const size_t known = d->pairs.n;
    for (uint32_t i = 0; dedup_more(d, i); i++)
        if (d->witness[i] != DEDUP_NONE && !dedup_pair_of(d, i, d->witness[i]))
            return false;
    if (!dedup_check(d, known))
        return false;
    for (uint32_t i = 0; dedup_more(d, i); i++)
        if (d->witness[i] != DEDUP_NONE)
            d->likeness[i] = dedup_pair_of(d, i, d->witness[i])->likeness;
    return true;
}

static bool decide_components(struct dedup *d)
{
    uint32_t *parent = NULL, *size = NULL;
    bool ok = STORE(&d->store, parent, d->n) && STORE(&d->store, size, d->n);
    if (!ok)
        dedup_no_room(d, "clusters");
    ok = ok && all_pairs(d) && components(d, parent, size);
    const uint64_t max = d->opt->max_cluster;
    bool large = false;
    for (uint32_t i = 0; ok && dedup_more(d, i); i++)
        large = large || (max && size[parent[i]] > max);
    ok = ok && (!large || dedup_greedy(d, parent));
    for (uint32_t i = 0; ok && dedup_more(d, i); i++) {
        if (max && size[parent[i]] > max)
            continue; /* as greedy left it */
        d->witness[i] = parent[i] == i || i < d->base ? DEDUP_NONE : parent[i];
    }
    ok = ok && witness_likeness(d);
    store_release(&d->store, parent);
    store_release(&d->store, size);
    return ok;
}

/* ---------------------------------------------------------------- together */

/* Documents of equal text share the fate of the one that stands for them. */
static void spread(struct dedup *d)
{
    for (uint32_t i = 0; dedup_more(d, i); i++) {
        const uint32_t s = d->same[i];
        if (s == i || d->states[i] != DOC_TEXT)
            continue;
        d->witness[i] = d->witness[s] == DEDUP_NONE ? s : d->witness[s];
        d->likeness[i] = d->witness[s] == DEDUP_NONE ? 1 : d->likeness[s];
    }
    for (uint32_t i = 0; dedup_more(d, i); i++)
        d->cluster[i] = d->witness[i] == DEDUP_NONE ? i : d->witness[i];
}

static bool count_results(struct dedup *d)
{
    uint32_t *size;
    if (!STORE_ZEROS(&d->store, size, d->n))
        return dedup_no_room(d, "clusters");
    for (uint32_t i = 0; dedup_more(d, i); i++) {
        const uint32_t n = ++size[d->cluster[i]];
        if (n > d->report.largest_cluster)
            d->report.largest_cluster = n;
    }
    /* Without a partner of any kind: the witness goes too. */
    for (uint32_t i = d->base; d->opt->drop_all && dedup_more(d, i); i++)
        if (d->witness[i] == DEDUP_NONE && size[i] > 1) {
            d->witness[i] = i;
            d->likeness[i] = 1;
        }
    for (uint32_t i = d->base; dedup_more(d, i); i++) {
        d->report.removed += d->witness[i] != DEDUP_NONE;
        d->report.dropped_empty +=
            d->opt->drop_empty && d->states[i] == DOC_EMPTY;
    }
    d->report.kept =
        d->report.documents - d->report.removed - d->report.dropped_empty;
    const double t = d->opt->verify == DEDUP_UNCHECKED ? 0 : d->opt->threshold;
    for (size_t i = 0; i < d->pairs.n; i++)
        d->report.pairs += d->pairs.at[i].likeness >= t;
    store_release(&d->store, size);
    return true;
}

bool dedup_decide(struct dedup *d)
{
    const double start = dedup_seconds(), checked = d->report.seconds[3];
    bool ok = dedup_checked_open(d, &d->checked);
    for (uint32_t i = 0; dedup_more(d, i); i++) {
        d->witness[i] = DEDUP_NONE;
        d->likeness[i] = 0;
    }
    if (d->opt->policy == DEDUP_COMPONENT)
        ok = ok && decide_components(d);
    else
        ok =
            ok && (!d->opt->all_pairs || all_pairs(d)) && dedup_greedy(d, NULL);
    if (!dedup_journal_close(d, &d->checked) || !ok)
        return false;
    spread(d);
    ok = count_results(d);
    d->report.seconds[2] =
        dedup_seconds() - start - (d->report.seconds[3] - checked);
    return ok;
}
