/*
 * figure_summary.c - what it costs siblings to know each other's caches, and
 * what it costs not to
 *
 * Proxies that keep the documents requested last, and the code of `digest
 * follow` beside them: a counting filter each, and an update to all others
 * whenever T times its documents have come since the last one.
 *
 * What is expected, by Che's approximation: a cache of C documents has a
 * document that is requested at rate l if that was within the last t, where
 * the sum of 1 - exp(-l t) over all documents is C. One that came within the u
 * since the last update, of which it has not told, was not there at the
 * beginning of that, and was requested since: exp(-l t) (1 - exp(-l u)), with u
 * anywhere between 0 and the time w that T C misses take,
 *
 *     q = exp(-l t) (1 - (1 - exp(-l w)) / (l w))
 *
 * A sibling is found if one of the N - 1 others has the document and has told,
 * 1 - (1 - h + q)^(N - 1) with h = 1 - exp(-l t). Of m bits, an update flips
 * those that either the T C new documents set or the T C that went did, and
 * none of the other (1 - T) C; a list of flips takes their entropy.
 *
 * H. Che, Y. Tung, Z. Wang, "Hierarchical Web Caching Systems: Modeling, Design
 * and Experimental Results", 2002.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/digest/digest.h"
#include "apps/digest/digest_cells.h"
#include "apps/digest/updates.h"
#include "base/random.h"
#include "workbench/figure.h"
#include "workbench/sim/lru.h"

#define PROXIES 8
#define CACHE 1000
#define DOCUMENTS 20000
#define ZIPF 0.8
#define BITS 11 /* per document, 1 % false positives */
#define K 4
#define UPDATE_HEAD 43 /* bytes before the flips */

static const double thresholds[] = { 0.005, 0.01, 0.02, 0.05, 0.1, 0.2 };
#define NTHRESHOLDS (sizeof thresholds / sizeof *thresholds)

/* --------------------------------------------------------------- a real run */

struct told {
    struct digest_state state; /* what the others know of it */
    uint64_t came;             /* since */
};

struct proxy {
    struct lru cache;
    struct cells cells;
    struct told told[NTHRESHOLDS];
};

struct outcome {
    uint64_t hits, vain, versions, bytes, whole;
};

struct summary_run {
    struct proxy proxies[PROXIES];
    uint64_t *holders; /* of a document, a bit each */
    uint64_t requests, had;
    struct outcome outcomes[NTHRESHOLDS];
    bool counts; /* the caches are warm */
};

static void document_key(uint32_t document, unsigned char key[CELLS_KEY])
{
    uint64_t state = document;
    for (unsigned i = 0; i < 2; i++)
        put_le(key + 8 * (size_t)i, random_next(&state), 8);
}

/* Does the digest say maybe? */
static bool may_have(const struct digest_state *s,
                     const unsigned char key[CELLS_KEY])
{
    const uint64_t nbits = (uint64_t)(s->nbytes - CELLS_HEAD) * 8;
    bool may = true;
    for (unsigned i = 0; i < K; i++) {
        const uint64_t at = get_be(key + 4 * (size_t)i, 4) % nbits;
        may &= s->bytes[CELLS_HEAD + at / 8] >> at % 8 & 1;
    }
    return may;
}

static bool tell(struct summary_run *r, struct proxy *p, size_t t)
{
    struct told *const told = &p->told[t];
    struct outcome *const o = &r->outcomes[t];
    struct bytes update = { 0 };
    struct digest_state next = { .is = { 1, told->state.is.version + 1 },
                                 .nbytes = cells_bytes(&p->cells) };
    next.bytes = malloc(next.nbytes);
    if (!next.bytes)
        return false;
    cells_digest(&p->cells, next.bytes);
    const bool ok = update_pack(&told->state, &next, &update);
    if (r->counts && ok) {
        o->versions++;
        o->bytes += update.n * (PROXIES - 1);
        o->whole += next.nbytes * (PROXIES - 1);
    }
    free(update.at);
    free(told->state.bytes);
    *told = (struct told){ .state = next };
    return ok;
}

static void ask(struct summary_run *r, unsigned me, uint32_t document,
                const unsigned char key[CELLS_KEY])
{
    const uint64_t had = r->holders[document] & ~(UINT64_C(1) << me);
    r->had += had != 0;
    for (size_t t = 0; t < NTHRESHOLDS; t++) {
        uint64_t asked = 0;
        for (unsigned p = 0; p < PROXIES; p++)
            if (p != me && may_have(&r->proxies[p].told[t].state, key))
                asked |= UINT64_C(1) << p;
        r->outcomes[t].hits += (asked & had) != 0;
        r->outcomes[t].vain += asked && !(asked & had);
    }
}

static bool request(struct summary_run *r, unsigned me, uint32_t document)
{
    struct proxy *const p = &r->proxies[me];
    unsigned char key[CELLS_KEY], gone_key[CELLS_KEY];
    r->requests += r->counts;
    if (lru_touch(&p->cache, document))
        return true;
    document_key(document, key);
    if (r->counts)
        ask(r, me, document, key);
    const uint32_t gone = lru_keep(&p->cache, document);
    r->holders[document] |= UINT64_C(1) << me;
    cells_add(&p->cells, key);
    if (gone != LRU_NONE) {
        r->holders[gone] &= ~(UINT64_C(1) << me);
        document_key(gone, gone_key);
        cells_remove(&p->cells, gone_key);
    }
    bool ok = true;
    for (size_t t = 0; t < NTHRESHOLDS && ok; t++)
        if ((double)++p->told[t].came >= thresholds[t] * CACHE)
            ok = tell(r, p, t);
    return ok;
}

static bool summary_begin(struct summary_run *r)
{
    const bly_option bits = { "bits", "11" };
    const bly_foreign_spec spec = { .options = &bits, .noptions = 1 };
    r->holders = calloc(DOCUMENTS, sizeof *r->holders);
    bool ok = r->holders;
    for (unsigned i = 0; i < PROXIES && ok; i++) {
        struct proxy *const p = &r->proxies[i];
        ok = lru_make(&p->cache, CACHE) && !cells_make(&p->cells, &spec, CACHE);
        for (size_t t = 0; t < NTHRESHOLDS && ok; t++)
            ok = tell(r, p, t);
    }
    return ok;
}

static bool summary_simulate(struct summary_run *r, uint64_t warmup, uint64_t n,
                             uint64_t seed)
{
    struct digest_trace trace = { 0 };
    bool ok =
        digest_trace_zipf(&trace, PROXIES, DOCUMENTS, ZIPF, warmup + n, seed) &&
        summary_begin(r);
    for (uint64_t i = 0; i < trace.n && ok; i++) {
        r->counts = i >= warmup;
        ok = request(r, trace.proxy[i], trace.document[i]);
    }
    digest_trace_free(&trace);
    return ok;
}

static void summary_free(struct summary_run *r)
{
    for (unsigned i = 0; i < PROXIES; i++) {
        lru_free(&r->proxies[i].cache);
        cells_free(&r->proxies[i].cells);
        for (size_t t = 0; t < NTHRESHOLDS; t++)
            free(r->proxies[i].told[t].state.bytes);
    }
    free(r->holders);
    free(r);
}

/* -------------------------------------------------------------- the formula */

/* Requests at one proxy are the unit of time: a document's rate is its share
 * of them. */
struct model {
    double rate[DOCUMENTS];
    double t;    /* how long an unused document stays */
    double miss; /* share of the requests */
};

static double documents_in(const struct model *m, double t)
{
    double n = 0;
    for (size_t i = 0; i < DOCUMENTS; i++)
        n -= expm1(-m->rate[i] * t);
    return n;
}

static void model_make(struct model *m)
{
    double sum = 0, low = 0, high = 1e9;
    for (size_t i = 0; i < DOCUMENTS; i++)
        sum += m->rate[i] = pow((double)i + 1, -ZIPF);
    for (size_t i = 0; i < DOCUMENTS; i++)
        m->rate[i] /= sum;
    for (unsigned i = 0; i < 100; i++) {
        m->t = (low + high) / 2;
        *(documents_in(m, m->t) < CACHE ? &low : &high) = m->t;
    }
    m->miss = 0;
    for (size_t i = 0; i < DOCUMENTS; i++)
        m->miss += m->rate[i] * exp(-m->rate[i] * m->t);
}

/* Share of the requests that a sibling answers. */
static double model_hits(const struct model *m, double threshold)
{
    const double w = threshold * CACHE / m->miss;
    double hits = 0;
    for (size_t i = 0; i < DOCUMENTS; i++) {
        const double lw = m->rate[i] * w, absent = exp(-m->rate[i] * m->t);
        const double q = w > 0 ? absent * (1 + expm1(-lw) / lw) : 0;
        hits += m->rate[i] * absent * (1 - pow(absent + q, PROXIES - 1));
    }
    return hits;
}

/* Bytes of an update, as a delta. */
static double model_update(double threshold)
{
    const double m = BITS * CACHE;
    const double clear = exp(-K * (1 - threshold) * CACHE / m);
    const double set = -expm1(-K * threshold * CACHE / m);
    const double flip = clear * 2 * set * (1 - set);
    const double entropy = -flip * log2(flip) - (1 - flip) * log2(1 - flip);
    return UPDATE_HEAD + m * entropy / 8;
}

/* --------------------------------------------------------------- the figure */

static void summary_points(struct figure_run *run, const struct summary_run *r,
                           const struct model *m)
{
    struct figure_series *const hits =
        figure_series(run, "found at siblings, of what is there");
    struct figure_series *const deltas =
        figure_series(run, "bytes of deltas, of whole digests as often");
    struct figure_series *const bytes = figure_series(run, "bytes per request");
    struct figure_series *const vain =
        figure_series(run, "asked in vain, per request");
    const double n = (double)r->requests, had = (double)r->had;
    bytes->unseen = vain->unseen = true;
    for (size_t t = 0; t < NTHRESHOLDS; t++) {
        const struct outcome *const o = &r->outcomes[t];
        const double x = thresholds[t];
        const double found = model_hits(m, x) / model_hits(m, 0);
        const double update = model_update(x);
        const double share = update / (CELLS_HEAD + BITS * CACHE / 8.0);
        /* Each request goes to one proxy, which tells all the others. */
        const double each = m->miss / (x * CACHE) * (PROXIES - 1) * update;
        figure_point(run, hits, x, found, (double)o->hits / had, found - 0.004,
                     found + 0.004);
        figure_point(run, deltas, x, share, (double)o->bytes / (double)o->whole,
                     0.97 * share, 1.03 * share);
        figure_point(run, bytes, x, each, (double)o->bytes / n, 0.97 * each,
                     1.03 * each);
        figure_point(run, vain, x, NAN, (double)o->vain / n, NAN, NAN);
    }
    figure_note(run,
                "Siblings have %.1f %% of the requests (%.1f %% by the "
                "formula), and the own cache misses %.1f %%.",
                100 * had / n, 100 * model_hits(m, 0), 100 * m->miss);
}

static void summary_run(struct figure_run *run)
{
    struct summary_run *const r = calloc(1, sizeof *r);
    struct model *const m = malloc(sizeof *m);
    run->x = AXIS(.label = "documents that are new when siblings are told",
                  .scale = PLOT_LOG, .format = PLOT_PERCENT);
    run->y = AXIS(.label = "share", .min = 0, .max = 1.02);
    snprintf(run->subtitle, sizeof run->subtitle,
             "%d proxies with %d of %d documents each, Zipf %.1f, %d bits per "
             "document",
             PROXIES, CACHE, DOCUMENTS, ZIPF, BITS);
    if (r && m &&
        summary_simulate(r, 60000, run->full ? 1000000 : 150000, run->seed)) {
        model_make(m);
        summary_points(run, r, m);
    } else {
        run->broken = true;
    }
    free(m);
    if (r)
        summary_free(r);
}

const struct figure figure_summary = {
    .name = "summary-cache",
    .title = "What siblings know of each other's caches, and its price",
    .source = "Fan, Cao, Almeida and Broder, Summary Cache, 2000 (bloomery "
              "digest follow).",
    .about = "Each proxy tells the others what changed when a share of its "
             "documents is new. At 1 % they find nearly all that is there, "
             "for 7 % of the bytes of whole digests; at 10 % they miss 3 % of "
             "it, and a delta has 29 % of the bytes of a digest.",
    .run = summary_run,
};
