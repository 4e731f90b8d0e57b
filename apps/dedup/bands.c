/*
 * bands.c - rows that agree in a band meet in a bucket
 *
 * For each band: the keys of all documents, sorted; keys that occur twice or
 * more are buckets. Most documents are in none, so what is left is small. Bands
 * are taken several at a time, as memory allows, and sorted by several threads;
 * buckets are gathered in the order of the bands whatever the threads do.
 *
 * Documents of equal text were collapsed before: only one of them is here.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup.h"

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

/* Keys are hashes, so their high bits tell nearly all of them apart: sort by
 * as many digits as n needs and 8 bits more, least first, and let insertion
 * do the rest. The passes are stable, so documents stay in their order. */
void dedup_sort(struct dedup_key *keys, struct dedup_key *temp, size_t n)
{
    unsigned bits = 8;
    while (bits < 64 && (n >> (bits - 8)))
        bits++;
    const unsigned passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    struct dedup_key *from = keys, *to = temp;
    for (unsigned p = passes; p-- > 0 && n > 64;) {
        const unsigned shift = 64 - DIGIT_BITS * (p + 1);
        size_t at[DIGITS] = { 0 }, sum = 0;
        for (size_t i = 0; i < n; i++)
            at[from[i].key >> shift & (DIGITS - 1)]++;
        for (unsigned i = 0; i < DIGITS; i++) {
            const size_t here = at[i];
            at[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            to[at[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
        struct dedup_key *const swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
    for (size_t i = 1; i < n; i++) {
        const struct dedup_key k = keys[i];
        size_t j = i;
        for (; j > 0 && keys[j - 1].key > k.key; j--)
            keys[j] = keys[j - 1];
        keys[j] = k;
    }
}

/* -------------------------------------------------------- several at a time */

struct banding {
    struct dedup *d;
    unsigned first, nbands; /* the bands at hand */
    size_t ndocs;           /* that take part, in order of priority */
    const uint32_t *docs;
    struct dedup_key **keys; /* of each band at hand */
    struct dedup_key **temp; /* of each thread */
    atomic_size_t next, nworkers;
    bool sorting;
};

#define PART 4096 /* documents whose keys a thread makes at a time */

static void band_keys(struct banding *g, size_t from)
{
    const struct dedup *const d = g->d;
    const size_t to = from + PART < g->ndocs ? from + PART : g->ndocs;
    uint64_t keys[BLY_MAX_COMPONENTS];
    for (size_t i = from; i < to; i++) {
        bly_bands_keys(d->opt->bands,
                       d->rows + (size_t)g->docs[i] * d->opt->sketch.k, keys);
        for (unsigned b = 0; b < g->nbands; b++)
            g->keys[b][i] =
                (struct dedup_key){ keys[g->first + b], g->docs[i] };
    }
}

static void *band_worker(void *arg)
{
    struct banding *const g = arg;
    const size_t worker = atomic_fetch_add(&g->nworkers, 1);
    for (;;) {
        const size_t i = atomic_fetch_add(&g->next, 1);
        if (g->sorting ? i >= g->nbands : i * PART >= g->ndocs)
            return NULL;
        if (g->sorting)
            dedup_sort(g->keys[i], g->temp[worker], g->ndocs);
        else
            band_keys(g, i * PART);
    }
}

#define MAX_SORTERS 64
static unsigned sorters(const struct dedup *d)
{
    return d->opt->nthreads < MAX_SORTERS ? d->opt->nthreads : MAX_SORTERS;
}

static void band_threads(struct banding *g, bool sorting)
{
    pthread_t threads[MAX_SORTERS];
    unsigned n = 0;
    const unsigned want = sorters(g->d);
    g->sorting = sorting;
    atomic_store(&g->next, 0);
    atomic_store(&g->nworkers, 0);
    while (n + 1 < want &&
           pthread_create(&threads[n], NULL, band_worker, g) == 0)
        n++;
    band_worker(g);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

/* ---------------------------------------------------------------- gathering */

static bool bucket_add(struct dedup *d, const struct dedup_key *keys, size_t n)
{
    struct dedup_buckets *const b = &d->buckets;
    if (b->n == UINT32_MAX)
        return dedup_fail(d, "more than 2^32 - 1 buckets");
    if (b->n + 2 > b->room) {
        const size_t room = (b->n + 2) * 2;
        uint64_t *const more = realloc(b->start, room * sizeof *more);
        if (!more)
            return dedup_fail(d, "out of memory for buckets");
        b->start = more;
        b->room = room;
    }
    if (b->ndocs + n > b->docs_room) {
        const uint64_t room = (b->ndocs + n) * 2;
        uint32_t *const more =
            room > SIZE_MAX / sizeof *more
                ? NULL
                : realloc(b->docs, (size_t)room * sizeof *more);
        if (!more)
            return dedup_fail(d, "out of memory for buckets");
        b->docs = more;
        b->docs_room = room;
    }
    b->start[b->n] = b->ndocs;
    for (size_t i = 0; i < n; i++)
        b->docs[b->ndocs++] = keys[i].doc;
    b->start[++b->n] = b->ndocs;
    if (n > d->report.largest_bucket)
        d->report.largest_bucket = n;
    return true;
}

/* Buckets of one sorted band. Documents of an index are not compared with one
 * another, so a bucket of them alone is none. */
static bool gather_band(struct dedup *d, const struct dedup_key *keys, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t j = i + 1;
        bool fresh = keys[i].doc >= d->base;
        for (; j < n && keys[j].key == keys[i].key; j++)
            fresh = fresh || keys[j].doc >= d->base;
        if (j - i > 1 && fresh && !bucket_add(d, keys + i, j - i))
            return false;
        i = j;
    }
    return true;
}

/* Which buckets a document is in, by counting. */
static bool turn_around(struct dedup *d)
{
    struct dedup_buckets *const b = &d->buckets;
    b->doc_start = calloc((size_t)d->n + 2, sizeof *b->doc_start);
    b->of_doc = calloc((size_t)b->ndocs + 1, sizeof *b->of_doc);
    if (!b->doc_start || !b->of_doc)
        return dedup_fail(d, "out of memory for buckets");
    for (uint64_t i = 0; i < b->ndocs; i++)
        b->doc_start[b->docs[i] + 2]++;
    for (uint64_t i = 2; i < d->n + 2; i++)
        b->doc_start[i] += b->doc_start[i - 1];
    for (size_t i = 0; i < b->n; i++)
        for (uint64_t j = b->start[i]; j < b->start[i + 1]; j++)
            b->of_doc[b->doc_start[b->docs[j] + 1]++] = (uint32_t)i;
    return true;
}

static bool band_group(struct banding *g)
{
    band_threads(g, false);
    band_threads(g, true);
    for (unsigned b = 0; b < g->nbands; b++)
        if (!gather_band(g->d, g->keys[b], g->ndocs))
            return false;
    return true;
}

static bool band_all(struct dedup *d, struct banding *g)
{
    const unsigned nbands = d->opt->bands.bands;
    const uint64_t each = (uint64_t)g->ndocs * sizeof **g->keys + 1;
    const uint64_t fit = d->opt->memory / 2 / each;
    const unsigned group = fit < 1 ? 1 : fit < nbands ? (unsigned)fit : nbands;
    bool ok = true;
    for (unsigned i = 0; i < group && ok; i++)
        ok = (g->keys[i] = malloc((g->ndocs + 1) * sizeof **g->keys)) != NULL;
    for (unsigned i = 0; i < sorters(d) && ok; i++)
        ok = (g->temp[i] = malloc((g->ndocs + 1) * sizeof **g->temp)) != NULL;
    if (!ok)
        dedup_fail(d, "out of memory for bands; a smaller --memory may do");
    for (unsigned first = 0; ok && first < nbands; first += group) {
        g->first = first;
        g->nbands = nbands - first < group ? nbands - first : group;
        ok = band_group(g);
    }
    for (unsigned i = 0; i < group; i++)
        free(g->keys[i]);
    for (unsigned i = 0; i < sorters(d); i++)
        free(g->temp[i]);
    return ok;
}

bool dedup_band(struct dedup *d)
{
    const double start = dedup_seconds();
    struct dedup_key *keys[BLY_MAX_COMPONENTS] = { 0 };
    struct dedup_key *temp[MAX_SORTERS] = { 0 };
    uint32_t *const docs = malloc(((size_t)d->n + 1) * sizeof *docs);
    if (!docs)
        return dedup_fail(d, "out of memory");
    struct banding g = { .d = d, .docs = docs, .keys = keys, .temp = temp };
    for (uint64_t i = 0; i < d->n; i++) {
        const uint32_t doc = d->order[i];
        if (d->states[doc] == DOC_TEXT && d->same[doc] == doc)
            docs[g.ndocs++] = doc;
    }
    const bool ok = (d->opt->whole_only || band_all(d, &g)) && turn_around(d);
    free(docs);
    d->report.seconds[1] += dedup_seconds() - start;
    return ok;
}
