/*
 * bands.c - rows that agree in a band meet in a bucket
 *
 * The keys of all bands of all documents are sorted; keys that occur twice or
 * more are buckets. Most documents are in none, so what is left is small. The
 * number of a band is part of its keys, so that bands can be sorted together,
 * in files if need be (sorter.h); where memory allows it every band is sorted
 * for itself, by several threads. A key has the rank of its document, so that a
 * bucket is in the order of priority.
 *
 * Documents of equal text were collapsed before: only one of them is here.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <bloomery.h>

#include "apps/dedup/dedup.h"

#define PART 4096 /* documents whose keys a thread makes at a time */
#define MAX_SORTERS 64

struct banding {
    struct dedup *d;
    struct dedup_key **keys; /* of each band; NULL: sorters */
    struct dedup_key **temp; /* of each thread */
    struct sorter *sorters;  /* likewise */
    size_t ndocs;            /* that take part, by rank */
    uint32_t *ranks;         /* of these */
    atomic_size_t next, nworkers;
    atomic_int failed; /* errno; 0: it goes well */
    bool sorting;
    struct sorter members; /* (rank and bucket), to turn buckets around */
    unsigned shift;        /* of a rank in them */
    bool some, fresh;      /* the bucket being gathered: */
    uint64_t key, before;  /* its key, and ndocs when it began */
};

static bool takes_part(const struct dedup *d, uint32_t doc)
{
    return d->states[doc] == DOC_TEXT && d->same[doc] == doc;
}

/* ---------------------------------------------------------------- gathering */

static bool bucket_room(struct dedup *d)
{
    struct dedup_buckets *const b = &d->buckets;
    if (b->n == UINT32_MAX)
        return dedup_fail(d, "more than 2^32 - 1 buckets");
    if (b->n + 2 > b->room) {
        if (!STORE(&d->store, b->at, (b->n + 2) * 2))
            return dedup_no_room(d, "buckets");
        b->room = (b->n + 2) * 2;
    }
    if (b->ndocs + 1 > b->docs_room) {
        if (!STORE(&d->store, b->docs, (b->ndocs + 1) * 2))
            return dedup_no_room(d, "buckets");
        b->docs_room = (b->ndocs + 1) * 2;
    }
    return true;
}

/* The bucket at hand has all its documents. Those of an index are not compared
 * with one another, so a bucket of them alone is none. */
static bool bucket_end(struct banding *g)
{
    struct dedup *const d = g->d;
    struct dedup_buckets *const b = &d->buckets;
    const uint64_t n = b->ndocs - g->before;
    if (n < 2 || !g->fresh) {
        b->ndocs = g->before;
        return true;
    }
    b->at[b->n].start = g->before;
    for (uint64_t i = g->before; i < b->ndocs; i++)
        if (!sorter_add(
                &g->members,
                ((uint64_t)d->rank[b->docs[i]] << 32 | b->n) << g->shift, 0))
            return dedup_no_room(d, "buckets");
    b->at[++b->n].start = b->ndocs;
    if (n > d->report.largest_bucket)
        d->report.largest_bucket = n;
    return true;
}

static bool take_band_keys(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct banding *const g = ctx;
    struct dedup *const d = g->d;
    struct dedup_buckets *const b = &d->buckets;
    for (size_t i = 0; i < n; i++) {
        if (!g->some || keys[i].key != g->key) {
            if (g->some && !bucket_end(g))
                return false;
            g->some = true;
            g->key = keys[i].key;
            g->before = b->ndocs;
            g->fresh = false;
        }
        if (!bucket_room(d))
            return false;
        const uint32_t doc = d->order[keys[i].doc];
        b->docs[b->ndocs++] = doc;
        g->fresh = g->fresh || doc >= d->base;
        store_trim(&d->store);
    }
    return true;
}

static bool gathering_ends(struct banding *g)
{
    const bool ok = !g->some || bucket_end(g);
    g->some = false;
    return ok;
}

/* Which buckets a document is in, from all members by rank. */
struct turning {
    struct dedup *d;
    unsigned shift;
    uint64_t n;    /* members so far */
    uint64_t rank; /* the next whose buckets begin */
};

static bool take_members(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct turning *const t = ctx;
    struct dedup_buckets *const b = &t->d->buckets;
    for (size_t i = 0; i < n; i++) {
        const uint64_t member = keys[i].key >> t->shift;
        while (t->rank <= member >> 32)
            b->first[t->rank++] = t->n;
        b->of[t->n++] = (uint32_t)member;
        store_trim(&t->d->store);
    }
    return true;
}

static bool turn_around(struct dedup *d, struct banding *g)
{
    struct dedup_buckets *const b = &d->buckets;
    struct turning t = { .d = d, .shift = g->shift };
    bool told;
    if (!STORE(&d->store, b->first, d->n + 1) ||
        !STORE(&d->store, b->of, b->ndocs) ||
        !sorter_each(&g->members, 1, take_members, &t, &told))
        return dedup_no_room(d, "buckets");
    while (t.rank <= d->n) {
        b->first[t.rank++] = t.n;
        store_trim(&d->store);
    }
    return true;
}

/* ------------------------------------------------------------------ sorting */

static bool part_keys(struct banding *g, size_t worker, size_t from)
{
    const struct dedup *const d = g->d;
    const size_t to = from + PART < g->ndocs ? from + PART : g->ndocs;
    const unsigned nbands = d->opt->bands.bands;
    uint64_t keys[BLY_MAX_COMPONENTS];
    for (size_t i = from; i < to; i++) {
        const uint32_t rank = g->ranks[i];
        bly_bands_keys(d->opt->bands,
                       d->rows + (size_t)d->order[rank] * d->opt->sketch.k,
                       keys);
        for (unsigned b = 0; b < nbands; b++) {
            if (g->keys)
                g->keys[b][i] = (struct dedup_key){ keys[b], rank };
            else if (!sorter_add(&g->sorters[worker], keys[b], rank))
                return false;
        }
        if (worker == 0)
            store_trim(&g->d->store);
    }
    return true;
}

static void *band_worker(void *arg)
{
    struct banding *const g = arg;
    const size_t worker = atomic_fetch_add(&g->nworkers, 1);
    while (!atomic_load(&g->failed)) {
        const size_t i = atomic_fetch_add(&g->next, 1);
        if (g->sorting ? i >= g->d->opt->bands.bands : i * PART >= g->ndocs)
            break;
        if (g->sorting)
            dedup_sort(g->keys[i], g->temp[worker], g->ndocs, true);
        else if (!part_keys(g, worker, i * PART))
            atomic_store(&g->failed, errno);
    }
    return NULL;
}

static unsigned band_workers(const struct dedup *d)
{
    return d->opt->nthreads < MAX_SORTERS ? d->opt->nthreads : MAX_SORTERS;
}

static bool band_threads(struct banding *g, bool sorting)
{
    pthread_t threads[MAX_SORTERS];
    unsigned n = 0;
    const unsigned want = band_workers(g->d);
    g->sorting = sorting;
    atomic_store(&g->next, 0);
    atomic_store(&g->nworkers, 0);
    while (n + 1 < want &&
           pthread_create(&threads[n], NULL, band_worker, g) == 0)
        n++;
    band_worker(g);
    while (n > 0)
        pthread_join(threads[--n], NULL);
    errno = atomic_load(&g->failed); /* every thread has its own */
    return errno == 0;
}

/* All bands in memory, each sorted for itself. */
static bool band_in_memory(struct banding *g)
{
    struct dedup *const d = g->d;
    const unsigned nbands = d->opt->bands.bands, nworkers = band_workers(d);
    struct dedup_key *keys[BLY_MAX_COMPONENTS] = { 0 };
    struct dedup_key *temp[MAX_SORTERS] = { 0 };
    bool ok = true;
    g->keys = keys;
    g->temp = temp;
    for (unsigned i = 0; i < nbands && ok; i++)
        ok = (keys[i] = malloc((g->ndocs + 1) * sizeof **keys)) != NULL;
    for (unsigned i = 0; i < nworkers && ok; i++)
        ok = (temp[i] = malloc((g->ndocs + 1) * sizeof **temp)) != NULL;
    if (!ok)
        dedup_fail(d, "out of memory for bands; a smaller --memory may do");
    ok = ok && band_threads(g, false) && band_threads(g, true);
    for (unsigned b = 0; b < nbands && ok; b++)
        ok = take_band_keys(g, keys[b], g->ndocs) && gathering_ends(g);
    for (unsigned i = 0; i < nbands; i++)
        free(keys[i]);
    for (unsigned i = 0; i < nworkers; i++)
        free(temp[i]);
    return ok;
}

/* All bands together, by way of files. */
static bool band_in_files(struct banding *g)
{
    struct dedup *const d = g->d;
    const unsigned nworkers = band_workers(d);
    struct sorter sorters[MAX_SORTERS];
    for (unsigned i = 0; i < nworkers; i++)
        sorters[i] = (struct sorter){ .folder = d->opt->folder,
                                      .memory = d->opt->memory / 2 / nworkers,
                                      .hashes = true };
    bool told = false;
    g->keys = NULL;
    g->sorters = sorters;
    bool ok = band_threads(g, false) &&
              sorter_each(sorters, nworkers, take_band_keys, g, &told);
    if (!ok && !told)
        dedup_no_room(d, "sorting bands");
    ok = ok && gathering_ends(g);
    for (unsigned i = 0; i < nworkers; i++)
        sorter_free(&sorters[i]);
    return ok;
}

static bool band_all(struct banding *g)
{
    struct dedup *const d = g->d;
    const uint64_t arrays = d->opt->bands.bands + band_workers(d);
    if (!STORE(&d->store, g->ranks, d->n))
        return dedup_no_room(d, "bands");
    for (uint32_t i = 0; dedup_more(d, i); i++)
        if (takes_part(d, d->order[i]))
            g->ranks[g->ndocs++] = i;
    return (g->ndocs + 1) * arrays * sizeof **g->keys <= d->opt->memory / 2
               ? band_in_memory(g)
               : band_in_files(g);
}

bool dedup_band(struct dedup *d)
{
    const double start = dedup_seconds();
    struct banding g = { .d = d,
                         .members = { .folder = d->opt->folder,
                                      .memory = d->opt->memory / 8 } };
    while (g.shift < 31 && d->n < UINT64_C(1) << (31 - g.shift))
        g.shift++;
    const bool ok = (d->opt->whole_only || band_all(&g)) && turn_around(d, &g);
    sorter_free(&g.members);
    store_release(&d->store, g.ranks);
    d->report.seconds[1] += dedup_seconds() - start;
    return ok;
}
