/*
 * policy.c - which documents stay: greedy, or one of every component
 *
 * greedy is in greedy.c. component: what is linked by pairs, however far, is
 * one cluster, of which one document stays. A cluster of more than
 * --max-cluster is left to greedy.
 */
#include "apps/dedup/journal.h"

/* --------------------------------------------------------------- all pairs */

static bool ask_for(struct dedup_job *job, const struct dedup_case *c,
                    uint32_t a, uint32_t b, double least, uint64_t *asked)
{
    if (a < c->docs->base && b < c->docs->base)
        return true;
    ++*asked;
    return dedup_estimate(c->docs, a, b) < least ||
           dedup_pair_of(job, &c->check->pairs, a, b);
}

/* Every pair of a bucket; of a large one each with the first and with the one
 * before it, so that the cost stays linear. */
static bool all_pairs(struct dedup_job *job, const struct dedup_case *c,
                      uint64_t *asked)
{
    const struct dedup_buckets *const b = c->buckets;
    const double least = dedup_floor(job->opt);
    const size_t known = c->check->pairs.n;
    for (uint64_t i = 0; i < b->n; i++) {
        const uint32_t *const docs = b->docs + b->start[i];
        const size_t n = (size_t)(b->start[i + 1] - b->start[i]);
        for (size_t x = 1; x < n; x++) {
            const bool large = n > job->opt->max_bucket;
            if (large && !ask_for(job, c, docs[0], docs[x], least, asked))
                return false;
            for (size_t y = large ? x - 1 : 0; y < x; y++)
                if (!ask_for(job, c, docs[y], docs[x], least, asked))
                    return false;
        }
    }
    return dedup_check_pairs(job, c->check, known);
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
static void components(struct dedup_job *job, const struct dedup_case *c,
                       uint32_t *parent, uint32_t *size)
{
    const double t = dedup_alike(job->opt);
    const uint32_t *const rank = c->order->rank;
    for (uint32_t i = 0; dedup_more(job, i, c->docs->n); i++) {
        parent[i] = i;
        size[i] = 1;
    }
    for (size_t i = 0; i < c->check->pairs.n; i++) {
        const struct dedup_pair *const p = &c->check->pairs.at[i];
        if (!(p->likeness >= t))
            continue;
        const uint32_t a = root_of(parent, p->a), b = root_of(parent, p->b);
        if (a == b)
            continue;
        const uint32_t first = rank[a] < rank[b] ? a : b;
        const uint32_t other = first == a ? b : a;
        parent[other] = first;
        size[first] += size[other];
    }
    for (uint32_t i = 0; dedup_more(job, i, c->docs->n); i++)
        parent[i] = root_of(parent, i);
}

/* A chain may link documents that are not alike: report how many. */
static bool witness_likeness(struct dedup_job *job, const struct dedup_case *c,
                             struct dedup_verdicts *out)
{
    struct dedup_pairs *const pairs = &c->check->pairs;
    const uint32_t *const witness = out->witness;
    const size_t known = pairs->n;
    for (uint32_t i = 0; dedup_more(job, i, c->docs->n); i++)
        if (witness[i] != DEDUP_NONE &&
            !dedup_pair_of(job, pairs, i, witness[i]))
            return false;
    if (!dedup_check_pairs(job, c->check, known))
        return false;
    for (uint32_t i = 0; dedup_more(job, i, c->docs->n); i++)
        if (witness[i] != DEDUP_NONE)
            out->likeness[i] =
                dedup_pair_of(job, pairs, i, witness[i])->likeness;
    return true;
}

static bool decide_components(struct dedup_job *job, const struct dedup_case *c,
                              struct dedup_verdicts *out)
{
    const uint64_t n = c->docs->n, max = job->opt->max_cluster;
    uint32_t *parent = NULL, *size = NULL;
    bool large = false;
    bool ok = STORE(&job->store, parent, n) && STORE(&job->store, size, n);
    if (!ok)
        dedup_no_room(job, "clusters");
    ok = ok && all_pairs(job, c, &out->candidates);
    if (ok)
        components(job, c, parent, size);
    for (uint32_t i = 0; ok && dedup_more(job, i, n); i++)
        large = large || (max && size[parent[i]] > max);
    ok = ok && (!large || dedup_greedy(job, c, parent, out));
    for (uint32_t i = 0; ok && dedup_more(job, i, n); i++) {
        if (max && size[parent[i]] > max)
            continue; /* as greedy left it */
        out->witness[i] =
            parent[i] == i || i < c->docs->base ? DEDUP_NONE : parent[i];
    }
    ok = ok && witness_likeness(job, c, out);
    store_release(&job->store, parent);
    store_release(&job->store, size);
    return ok;
}

/* ---------------------------------------------------------------- together */

/* Documents of equal text share the fate of the one that stands for them. */
static void spread(struct dedup_job *job, const struct dedup_case *c,
                   struct dedup_verdicts *out)
{
    for (uint32_t i = 0; dedup_more(job, i, c->docs->n); i++) {
        const uint32_t s = c->order->same[i];
        if (s == i || c->docs->states[i] != DOC_TEXT)
            continue;
        const bool stays = out->witness[s] == DEDUP_NONE;
        out->witness[i] = stays ? s : out->witness[s];
        out->likeness[i] = stays ? 1 : out->likeness[s];
    }
    for (uint32_t i = 0; dedup_more(job, i, c->docs->n); i++)
        out->cluster[i] = out->witness[i] == DEDUP_NONE ? i : out->witness[i];
}

static bool count_verdicts(struct dedup_job *job, const struct dedup_case *c,
                           struct dedup_verdicts *out)
{
    const struct dedup_docs *const docs = c->docs;
    const double t = dedup_alike(job->opt);
    uint32_t *size;
    if (!STORE_ZEROS(&job->store, size, docs->n))
        return dedup_no_room(job, "clusters");
    for (uint32_t i = 0; dedup_more(job, i, docs->n); i++) {
        const uint32_t n = ++size[out->cluster[i]];
        if (n > out->largest_cluster)
            out->largest_cluster = n;
    }
    for (uint32_t i = docs->base; dedup_more(job, i, docs->n); i++) {
        /* Without any partner that stays, the witness is dropped too. */
        if (job->opt->drop_all && out->witness[i] == DEDUP_NONE &&
            size[i] > 1) {
            out->witness[i] = i;
            out->likeness[i] = 1;
        }
        out->removed += out->witness[i] != DEDUP_NONE;
        out->dropped_empty +=
            job->opt->drop_empty && docs->states[i] == DOC_EMPTY;
    }
    out->kept = docs->n - docs->base - out->removed - out->dropped_empty;
    for (size_t i = 0; i < c->check->pairs.n; i++)
        out->pairs += c->check->pairs.at[i].likeness >= t;
    store_release(&job->store, size);
    return true;
}

bool dedup_decide(struct dedup_job *job, const struct dedup_case *c,
                  struct dedup_verdicts *out)
{
    const uint64_t n = c->docs->n;
    if (!STORE(&job->store, out->witness, n) ||
        !STORE(&job->store, out->cluster, n) ||
        !STORE(&job->store, out->likeness, n))
        return dedup_no_room(job, "documents");
    for (uint32_t i = 0; dedup_more(job, i, n); i++) {
        out->witness[i] = DEDUP_NONE;
        out->likeness[i] = 0;
    }
    bool ok = dedup_checked_open(job, c->check);
    if (job->opt->policy == DEDUP_COMPONENT)
        ok = ok && decide_components(job, c, out);
    else
        ok = ok && (!job->opt->pairs || all_pairs(job, c, &out->candidates)) &&
             dedup_greedy(job, c, NULL, out);
    if (!dedup_journal_close(job, &c->check->journal) || !ok)
        return false;
    spread(job, c, out);
    return count_verdicts(job, c, out);
}
