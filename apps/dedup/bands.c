/*
 * bands.c - rows that agree in a band meet in a bucket
 *
 * The keys of all bands of all documents are sorted; keys that occur twice or
 * more are buckets. Most documents are in no bucket, so what is left is small.
 * The number of a band is part of its keys, so that bands can be sorted
 * together, in files if need be (sorter.h); where memory allows it every band
 * is sorted for itself, by several threads. A key has the rank of its document,
 * so that a bucket is in the order of priority.
 *
 * Of documents with equal texts, only one is left at this point.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/sorter.h"

#define PART 4096 /* documents whose keys a thread makes at a time */
#define MAX_SORTERS 64

struct banding {
    struct dedup_job *job;
    const struct dedup_docs *docs;
    const struct dedup_order *order;
    struct dedup_buckets *out;
    struct dedup_key **keys; /* of each band; NULL: sorters */
    struct dedup_key **temp; /* of each thread */
    struct sorter *sorters;  /* likewise */
    size_t ndocs;            /* that take part, by rank */
    uint32_t *ranks;         /* of these */
    atomic_size_t next, nworkers;
    atomic_int failed; /* errno; 0: it goes well */
    bool sorting;
    const struct dedup_given *given; /* NULL: buckets are to be found */
    struct sorter members; /* (rank and bucket), to turn buckets around */
    unsigned shift;        /* of a rank in them */
    uint64_t nmembers;     /* of them so far */
    uint64_t rank;         /* the next whose buckets begin */
    bool some, fresh;      /* the bucket being gathered: */
    uint64_t key, before;  /* its key, and ndocs when it began */
};

/* ---------------------------------------------------------------- gathering */

static bool bucket_room(struct dedup_job *job, struct dedup_buckets *b)
{
    if (b->n == UINT32_MAX)
        return dedup_fail(job, "more than 2^32 - 1 buckets");
    return (STORE_ROOM(&job->store, b->start, b->room, b->n + 2) &&
            STORE_ROOM(&job->store, b->docs, b->docs_room, b->ndocs + 1)) ||
           dedup_no_room(job, "buckets");
}

/* The current bucket is complete. Documents of an index are not compared with
 * one another, so a bucket that holds nothing else is dropped. */
static bool bucket_end(struct banding *g)
{
    struct dedup_buckets *const b = g->out;
    const uint64_t n = b->ndocs - g->before;
    if (n < 2 || !g->fresh) {
        b->ndocs = g->before;
        return true;
    }
    b->start[b->n] = g->before;
    for (uint64_t i = g->before; i < b->ndocs; i++) {
        const uint64_t rank = g->order->rank[b->docs[i]];
        if (!sorter_add(&g->members, (rank << 32 | b->n) << g->shift, 0))
            return dedup_no_room(g->job, "buckets");
    }
    b->start[++b->n] = b->ndocs;
    if (n > b->largest)
        b->largest = n;
    return true;
}

static bool take_band_keys(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct banding *const g = ctx;
    struct dedup_buckets *const b = g->out;
    for (size_t i = 0; i < n; i++) {
        if (!g->some || keys[i].key != g->key) {
            if (g->some && !bucket_end(g))
                return false;
            g->some = true;
            g->key = keys[i].key;
            g->before = b->ndocs;
            g->fresh = false;
        }
        if (!bucket_room(g->job, b))
            return false;
        const uint32_t doc = g->order->docs[keys[i].doc];
        b->docs[b->ndocs++] = doc;
        g->fresh = g->fresh || doc >= g->docs->base;
        store_trim(&g->job->store);
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
static bool take_members(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct banding *const g = ctx;
    struct dedup_buckets *const b = g->out;
    for (size_t i = 0; i < n; i++) {
        const uint64_t member = keys[i].key >> g->shift;
        while (g->rank <= member >> 32)
            b->first[g->rank++] = g->nmembers;
        b->of[g->nmembers++] = (uint32_t)member;
        store_trim(&g->job->store);
    }
    return true;
}

static bool turn_around(struct banding *g)
{
    struct dedup_store *const s = &g->job->store;
    struct dedup_buckets *const b = g->out;
    bool told;
    if (!STORE(s, b->first, g->docs->n + 1) || !STORE(s, b->of, b->ndocs) ||
        !sorter_each(&g->members, 1, take_members, g, &told))
        return dedup_no_room(g->job, "buckets");
    while (g->rank <= g->docs->n) {
        b->first[g->rank++] = g->nmembers;
        store_trim(s);
    }
    return true;
}

/* ------------------------------------------------------------------ sorting */

static bool part_keys(struct banding *g, size_t worker, size_t from)
{
    const bly_bands bands = g->job->opt->bands;
    const struct dedup_docs *const docs = g->docs;
    const size_t to = from + PART < g->ndocs ? from + PART : g->ndocs;
    uint64_t keys[BLY_MAX_COMPONENTS];
    for (size_t i = from; i < to; i++) {
        const uint32_t rank = g->ranks[i];
        const size_t doc = g->order->docs[rank];
        bly_bands_keys(bands, docs->rows + doc * docs->k, keys);
        for (unsigned b = 0; b < bands.bands; b++) {
            if (g->keys)
                g->keys[b][i] = (struct dedup_key){ keys[b], rank };
            else if (!sorter_add(&g->sorters[worker], keys[b], rank))
                return false;
        }
        if (worker == 0)
            store_trim(&g->job->store);
    }
    return true;
}

static void *band_worker(void *arg)
{
    struct banding *const g = arg;
    const size_t worker = atomic_fetch_add(&g->nworkers, 1);
    while (!atomic_load(&g->failed)) {
        const size_t i = atomic_fetch_add(&g->next, 1);
        if (g->sorting ? i >= g->job->opt->bands.bands : i * PART >= g->ndocs)
            break;
        if (g->sorting)
            dedup_sort(g->keys[i], g->temp[worker], g->ndocs, true);
        else if (!part_keys(g, worker, i * PART))
            atomic_store(&g->failed, errno);
    }
    return NULL;
}

static unsigned band_workers(const struct dedup_options *o)
{
    return o->nthreads < MAX_SORTERS ? o->nthreads : MAX_SORTERS;
}

static bool band_threads(struct banding *g, bool sorting)
{
    pthread_t threads[MAX_SORTERS];
    unsigned n = 0;
    const unsigned want = band_workers(g->job->opt);
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
    const struct dedup_options *const o = g->job->opt;
    const unsigned nbands = o->bands.bands, nworkers = band_workers(o);
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
        dedup_fail(g->job,
                   "out of memory for bands; a smaller --memory may do");
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
    const struct dedup_options *const o = g->job->opt;
    const unsigned nworkers = band_workers(o);
    struct sorter sorters[MAX_SORTERS];
    for (unsigned i = 0; i < nworkers; i++)
        sorters[i] = (struct sorter){ .folder = o->folder,
                                      .memory = o->memory / 2 / nworkers,
                                      .hashes = true };
    bool told = false;
    g->keys = NULL;
    g->sorters = sorters;
    bool ok = band_threads(g, false) &&
              sorter_each(sorters, nworkers, take_band_keys, g, &told);
    if (!ok && !told)
        dedup_no_room(g->job, "sorting bands");
    ok = ok && gathering_ends(g);
    for (unsigned i = 0; i < nworkers; i++)
        sorter_free(&sorters[i]);
    return ok;
}

static bool band_all(struct banding *g)
{
    const struct dedup_options *const o = g->job->opt;
    const uint64_t arrays = o->bands.bands + band_workers(o);
    if (!STORE(&g->job->store, g->ranks, g->docs->n))
        return dedup_no_room(g->job, "bands");
    for (uint32_t i = 0; dedup_more(g->job, i, g->docs->n); i++)
        if (dedup_compared(g->docs, g->order, g->order->docs[i]))
            g->ranks[g->ndocs++] = i;
    return (g->ndocs + 1) * arrays * sizeof **g->keys <= o->memory / 2
               ? band_in_memory(g)
               : band_in_files(g);
}

/* Buckets as they are given, each in the order of ranks. */
static bool band_given(struct banding *g)
{
    const struct dedup_given *const given = g->given;
    struct dedup_key *keys = NULL, *temp = NULL;
    size_t room = 0, temp_room = 0;
    bool ok = true;
    for (uint64_t i = 0; ok && i < given->n; i++) {
        const uint64_t end = given->starts[i + 1];
        size_t n = 0;
        if (!ROOM(keys, room, (size_t)(end - given->starts[i])) ||
            !ROOM(temp, temp_room, (size_t)(end - given->starts[i]))) {
            ok = dedup_fail(g->job, "out of memory");
            break;
        }
        for (uint64_t j = given->starts[i]; j < end; j++) {
            const uint32_t doc = given->members[j];
            if (dedup_compared(g->docs, g->order, doc))
                keys[n++] = (struct dedup_key){ i, g->order->rank[doc] };
        }
        for (size_t j = 0; j < n; j++) /* by rank */
            keys[j].key = keys[j].doc;
        if (n)
            dedup_sort(keys, temp, n, false);
        for (size_t j = 0; j < n; j++)
            keys[j].key = i;
        ok = n < 2 || take_band_keys(g, keys, n);
    }
    free(keys);
    free(temp);
    return ok && gathering_ends(g);
}

static bool find_buckets(struct banding *g)
{
    struct dedup_job *const job = g->job;
    const struct dedup_docs *const docs = g->docs;
    g->members = (struct sorter){ .folder = job->opt->folder,
                                  .memory = job->opt->memory / 8 };
    while (g->shift < 31 && docs->n < UINT64_C(1) << (31 - g->shift))
        g->shift++;
    const bool ok = (g->given               ? band_given(g)
                     : job->opt->whole_only ? true
                                            : band_all(g)) &&
                    turn_around(g);
    sorter_free(&g->members);
    store_release(&job->store, g->ranks);
    return ok;
}

bool dedup_band_given(struct dedup_job *job, const struct dedup_docs *docs,
                      const struct dedup_order *order,
                      const struct dedup_given *given,
                      struct dedup_buckets *out)
{
    struct banding g = {
        .job = job, .docs = docs, .order = order, .out = out, .given = given
    };
    return find_buckets(&g);
}

bool dedup_band(struct dedup_job *job, const struct dedup_docs *docs,
                const struct dedup_order *order, struct dedup_buckets *out)
{
    struct banding g = { .job = job, .docs = docs, .order = order, .out = out };
    return find_buckets(&g);
}
