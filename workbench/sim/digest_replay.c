/*
 * digest_replay.c - what neighbours save each other, and what knowing it costs
 *
 * Every proxy keeps the documents that were asked for there, the least recent
 * one goes. What it does not have it looks for at its neighbours before it
 * goes to the origin, and then keeps it. Either it asks them all (ICP), or only
 * those whose summary says maybe:
 *
 *     cache --add, remove--> counting filter --convert--> classic filter
 *                                                 |  published when enough
 *                                                 v  documents are new
 *                                    what all neighbours know of it
 *
 * A summary that is old, or that says maybe by chance, causes a false hit,
 * which is a question in vain; an old one also causes false misses, which are
 * needless fetches. Both only cost time. A neighbour does not count what it
 * hands out as a request, so caches are the same whichever scheme is used, and
 * all schemes are replayed side by side.
 *
 * L. Fan, P. Cao, J. Almeida, A. Broder, "Summary Cache: A Scalable Wide-Area
 * Web Cache Sharing Protocol", IEEE/ACM Transactions on Networking 8(3), 2000.
 */
#include <stdlib.h>

#include "apps/digest/digest.h"
#include "workbench/sim/lru.h"

#define SUMMARY_K "4"
#define COUNTER_BITS 4

/* One proxy's summary by one scheme. */
struct summary {
    bly_filter *counts;    /* of what is in the cache now */
    bly_filter *published; /* what the neighbours have */
    uint64_t nnew;         /* documents that came since */
};

struct replay {
    const struct digest_replay *how;
    const struct digest_trace *trace;
    const struct digest_scheme *schemes;
    size_t nschemes;
    struct lru *caches;        /* of nproxies */
    struct summary *summaries; /* of scheme s and proxy p: s * nproxies + p */
    uint64_t *holders;         /* of a document, a bit each */
    bly_hasher hasher;
    bool counted; /* the warm-up is over */
    struct digest_totals *totals;
    struct digest_outcome *outcomes;
};

static struct summary *summary_of(const struct replay *r, size_t scheme,
                                  unsigned proxy)
{
    return &r->summaries[scheme * r->how->nproxies + proxy];
}

static bly_status summary_convert(const struct summary *s, bly_filter **out)
{
    const bly_spec spec = { .kind = "classic" };
    return bly_convert(s->counts, &spec, out);
}

static bly_status summary_make(const struct replay *r, unsigned bits,
                               struct summary *out)
{
    static const bly_option options[] = { { "k", SUMMARY_K },
                                          { "width", "4" } };
    const bly_spec spec = {
        .kind = "counting",
        .items = r->how->cache,
        .bits = r->how->cache * bits * COUNTER_BITS,
        .seed = r->how->seed,
        .options = options,
        .noptions = 2,
    };
    const bly_status st = bly_new(&spec, &out->counts);
    return st ? st : summary_convert(out, &out->published);
}

static bool put_nowhere(void *ctx, const void *bytes, size_t n)
{
    (void)ctx;
    (void)bytes;
    (void)n;
    return true;
}

/* Send all neighbours what is new. */
static bly_status summary_publish(struct replay *r, size_t scheme,
                                  struct summary *s)
{
    bly_filter *now;
    bly_delta delta;
    bly_status st = summary_convert(s, &now);
    if (st)
        return st;
    struct digest_outcome *const o = &r->outcomes[scheme];
    if (r->counted) {
        st = bly_delta_write(s->published, now, put_nowhere, NULL, &delta);
        if (!st) {
            o->versions++;
            o->updates += r->how->nproxies - 1;
            o->flips += delta.flips;
            o->delta_bytes += delta.bytes;
        }
    }
    if (st) {
        bly_free(now);
        return st;
    }
    bly_free(s->published);
    s->published = now;
    s->nnew = 0;
    return BLY_OK;
}

/* A document came, and perhaps one went for it. */
static bly_status summaries_change(struct replay *r, unsigned proxy,
                                   uint64_t came, bool went, uint64_t gone)
{
    for (size_t i = 0; i < r->nschemes; i++) {
        struct summary *const s = summary_of(r, i, proxy);
        const double enough = r->schemes[i].threshold * (double)r->how->cache;
        bly_status st = BLY_OK;
        if (went)
            st = bly_remove(s->counts, &gone, sizeof gone);
        if (!st || st == BLY_EREFUSED) /* a counter at its ceiling stays */
            st = bly_add(s->counts, &came, sizeof came);
        if (!st && (double)++s->nnew >= enough)
            st = summary_publish(r, i, s);
        if (st)
            return st;
    }
    return BLY_OK;
}

/* Nobody here has it: what does each scheme do? */
static void schemes_ask(struct replay *r, unsigned proxy, uint64_t document,
                        uint64_t had)
{
    const uint64_t hash = bly_hash(&r->hasher, &document, sizeof document);
    for (size_t i = 0; i < r->nschemes; i++) {
        struct digest_outcome *const o = &r->outcomes[i];
        uint64_t asked = 0;
        for (unsigned p = 0; p < r->how->nproxies; p++)
            if (p != proxy &&
                bly_has_hash(summary_of(r, i, p)->published, hash))
                asked |= UINT64_C(1) << p;
        o->queries += (unsigned)__builtin_popcountll(asked);
        o->false_hits += (unsigned)__builtin_popcountll(asked & ~had);
        o->remote_hits += (asked & had) != 0;
        o->false_misses += had && !(asked & had);
    }
}

static bly_status request(struct replay *r, unsigned proxy, uint32_t document)
{
    struct digest_totals *const t = r->totals;
    t->requests += r->counted;
    if (lru_touch(&r->caches[proxy], document)) {
        t->local_hits += r->counted;
        return BLY_OK;
    }
    const uint64_t me = UINT64_C(1) << proxy;
    const uint64_t had = r->holders[document] & ~me;
    if (r->counted) {
        t->had += had != 0;
        t->queries += r->how->nproxies - 1;
        schemes_ask(r, proxy, document, had);
    }
    const uint32_t gone = lru_keep(&r->caches[proxy], document);
    r->holders[document] |= me;
    if (gone != LRU_NONE)
        r->holders[gone] &= ~me;
    return summaries_change(r, proxy, document, gone != LRU_NONE, gone);
}

static bly_status replay_make(struct replay *r)
{
    const struct digest_replay *const how = r->how;
    const bly_spec spec = { .seed = how->seed };
    bly_status st = bly_hasher_for(&spec, &r->hasher);
    r->caches = calloc(how->nproxies, sizeof *r->caches);
    r->summaries =
        calloc(r->nschemes * how->nproxies + 1, sizeof *r->summaries);
    r->holders = calloc((size_t)r->trace->ndocuments + 1, sizeof *r->holders);
    if (!r->caches || !r->summaries || !r->holders)
        return BLY_ENOMEM;
    for (unsigned p = 0; p < how->nproxies && !st; p++)
        if (!lru_make(&r->caches[p], (uint32_t)how->cache))
            st = BLY_ENOMEM;
    for (size_t i = 0; i < r->nschemes && !st; i++) {
        for (unsigned p = 0; p < how->nproxies && !st; p++)
            st = summary_make(r, r->schemes[i].bits, summary_of(r, i, p));
        r->outcomes[i] = (struct digest_outcome){
            .summary_bytes = (how->cache * r->schemes[i].bits + 7) / 8,
        };
    }
    return st;
}

static void replay_free(struct replay *r)
{
    for (unsigned p = 0; r->caches && p < r->how->nproxies; p++)
        lru_free(&r->caches[p]);
    for (size_t i = 0; r->summaries && i < r->nschemes * r->how->nproxies;
         i++) {
        bly_free(r->summaries[i].counts);
        bly_free(r->summaries[i].published);
    }
    free(r->caches);
    free(r->summaries);
    free(r->holders);
}

bly_status digest_replay(const struct digest_replay *how,
                         const struct digest_trace *trace,
                         const struct digest_scheme *schemes, size_t nschemes,
                         struct digest_totals *totals,
                         struct digest_outcome *outcomes)
{
    struct replay r = {
        .how = how,
        .trace = trace,
        .schemes = schemes,
        .nschemes = nschemes,
        .totals = totals,
        .outcomes = outcomes,
    };
    *totals = (struct digest_totals){ 0 };
    bly_status st = replay_make(&r);
    for (uint64_t i = 0; i < trace->n && !st; i++) {
        r.counted = i >= how->warmup;
        st = request(&r, trace->proxy[i], trace->document[i]);
    }
    replay_free(&r);
    return st;
}
