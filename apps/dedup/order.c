/*
 * order.c - which documents come first, and which texts are equal
 *
 * Documents of an index come before all others. Then the value that a priority
 * gives: the length of the text, a field, or none, and then the input's order.
 */
#include <string.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/sorter.h"

/* A number whose order is that of -v: the largest v comes first. */
static uint64_t descending(double v)
{
    uint64_t bits;
    v = v == 0 ? 0 : v; /* there are two zeros */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? bits : bits ^ UINT64_C(0x7fffffffffffffff);
}

/* Documents, or ranks, in the order of their keys. */
struct ranking {
    struct dedup_job *job;
    const struct dedup_docs *docs;
    struct dedup_order *out;
    uint32_t n;     /* documents that have a rank */
    bool some;      /* the texts at hand: */
    uint64_t hash;  /* of them */
    uint32_t first; /* of them by rank */
};

static bool take_rank(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct ranking *const r = ctx;
    for (size_t i = 0; i < n; i++)
        r->out->docs[r->n++] = (uint32_t)keys[i].doc;
    store_trim(&r->job->store);
    return true;
}

static bool rank_values(struct ranking *r)
{
    const struct dedup_options *const o = r->job->opt;
    const struct dedup_docs *const docs = r->docs;
    struct sorter s = { .folder = o->folder, .memory = o->memory / 2 };
    bool ok = true, told;
    for (uint32_t i = 0; ok && dedup_more(r->job, i, docs->n); i++) {
        const double v = o->ascending ? -docs->values[i] : docs->values[i];
        ok = sorter_add(&s, i < docs->base ? 0 : descending(v), i);
    }
    ok = ok && sorter_each(&s, 1, take_rank, r, &told);
    if (!ok)
        dedup_no_room(r->job, "sorting by priority");
    sorter_free(&s);
    return ok;
}

static bool take_equal(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct ranking *const r = ctx;
    for (size_t i = 0; i < n; i++) {
        const uint32_t doc = r->out->docs[keys[i].doc];
        if (!r->some || keys[i].key != r->hash) {
            r->some = true;
            r->hash = keys[i].key;
            r->first = doc;
        } else if (doc >= r->docs->base) {
            r->out->same[doc] = r->first;
            r->out->equal++;
        }
        store_trim(&r->job->store);
    }
    return true;
}

/* Of documents with equal texts the first by priority stands for all. */
static bool find_equal(struct ranking *r)
{
    const struct dedup_options *const o = r->job->opt;
    struct sorter s = { .folder = o->folder,
                        .memory = o->memory / 2,
                        .hashes = true };
    bool ok = true, told;
    for (uint32_t i = 0; ok && dedup_more(r->job, i, r->docs->n); i++) {
        const uint32_t doc = r->out->docs[i];
        r->out->same[doc] = doc;
        if (r->docs->states[doc] == DOC_TEXT)
            ok = sorter_add(&s, r->docs->hashes[doc], i);
    }
    ok = ok && sorter_each(&s, 1, take_equal, r, &told);
    if (!ok)
        dedup_no_room(r->job, "sorting");
    sorter_free(&s);
    return ok;
}

bool dedup_order(struct dedup_job *job, const struct dedup_docs *docs,
                 struct dedup_order *out)
{
    struct dedup_store *const s = &job->store;
    struct ranking r = { .job = job, .docs = docs, .out = out };
    if (!STORE(s, out->docs, docs->n) || !STORE(s, out->rank, docs->n) ||
        !STORE(s, out->same, docs->n))
        return dedup_no_room(job, "documents");
    for (uint32_t i = 0; dedup_more(job, i, docs->n); i++)
        out->docs[i] = i;
    if (docs->values && !rank_values(&r))
        return false;
    for (uint32_t i = 0; dedup_more(job, i, docs->n); i++)
        out->rank[out->docs[i]] = i;
    return find_equal(&r);
}
