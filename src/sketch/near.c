/*
 * near.c - vectors that are close to each other, or to queries
 *
 * Bits of sketches in bands: band b of rows r is bits b r to b r + r - 1. For
 * each band, vectors stand in buckets by these bits, all in one array:
 *
 *     starts   2^r + 1 numbers: where each bucket begins
 *     ends     2^r numbers: how far it is filled
 *     members  n numbers of vectors, ascending within a bucket
 *
 * A vector looks into its bucket of each band. Whoever is met for the first
 * time is a candidate: if the whole sketches differ in few enough bits, both
 * vectors are compared exactly. So a pair at the threshold is missed only if no
 * band has it, and nothing is found that is not there.
 *
 * For pairs, all buckets are filled first, and a vector looks at those in front
 * of it. For dedup, vectors come in order, and one that stays is put into its
 * buckets; so a crowd of copies costs one comparison each.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "sketch/near.h"
#include "sketch/sketches.h"

#define DEFAULT_THRESHOLD 0.9
#define DEFAULT_RECALL 0.995
#define PART 960 /* vectors that a thread takes at once */
#define SAMPLE 512
#define NOBODY UINT32_MAX

/* A cosine is rounded about dims times; what is this close has reached it. */
#define SLACK 1e-12

/* Squares of lengths between which cosines of doubles are exact enough: no
 * product overflows, none that matters vanishes. */
#define LEAST_SQUARE 1e-280
#define MOST_SQUARE 1e280

/* ------------------------------------------------------------------ threads */

struct crew {
    near_part *run;
    void *job;
    size_t nparts;
    atomic_size_t next;
    atomic_uint place;
    pthread_mutex_t lock;
    bly_status status;
    size_t failed; /* the lowest part that did */
    char error[400];
};

unsigned bly_near_threads(uint32_t wanted, size_t nparts)
{
#if BLY_WASM
    (void)wanted;
    (void)nparts;
    return 1;
#else
    const long there = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = wanted ? wanted : there > 1 ? (size_t)there : 1;
    n = n < nparts ? n : nparts;
    n = n < NEAR_MOST_THREADS ? n : NEAR_MOST_THREADS;
    return n ? (unsigned)n : 1;
#endif
}

static void *crew_member(void *context)
{
    struct crew *const c = context;
    const unsigned place = atomic_fetch_add(&c->place, 1);
    size_t part;
    while ((part = atomic_fetch_add(&c->next, 1)) < c->nparts) {
        const bly_status st = c->run(c->job, part, place);
        if (!st)
            continue;
        /* Parts are taken in order, so that all lower ones are done, or being
         * done, and one of these may fail, too. */
        pthread_mutex_lock(&c->lock);
        if (!c->status || part < c->failed) {
            c->status = st;
            c->failed = part;
            snprintf(c->error, sizeof c->error, "%s", bly_error());
        }
        pthread_mutex_unlock(&c->lock);
        atomic_store(&c->next, c->nparts);
    }
    return NULL;
}

bly_status bly_near_crew(near_part *run, void *job, size_t nparts,
                         unsigned nthreads)
{
    struct crew c = { .run = run, .job = job, .nparts = nparts };
    pthread_t threads[NEAR_MOST_THREADS];
    unsigned started = 0;
    pthread_mutex_init(&c.lock, NULL);
    while (started + 1 < nthreads &&
           pthread_create(&threads[started], NULL, crew_member, &c) == 0)
        started++;
    crew_member(&c);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&c.lock);
    return c.status ? bly_fail(c.status, "%s", c.error) : BLY_OK;
}

/* ------------------------------------------------------------------ vectors */

static double dot(const bly_planes_row *row, const near_set *a, size_t i,
                  const near_set *b, size_t j)
{
    return a->v.doubles
               ? row->dot_wide(near_vector(a, i), near_vector(b, j), a->v.dims)
               : row->dot(near_vector(a, i), near_vector(b, j), a->v.dims);
}

static double cosine_of(double product, double norm_a, double norm_b)
{
    return fmax(-1, fmin(1, product / (norm_a * norm_b)));
}

double bly_cosine(const float *a, const float *b, size_t n)
{
    const bly_planes_row *const row = bly_planes_best();
    const double aa = row->dot(a, a, n), bb = row->dot(b, b, n);
    if (!(aa > 0 && bb > 0) || isinf(aa) || isinf(bb))
        return NAN;
    return cosine_of(row->dot(a, b, n), sqrt(aa), sqrt(bb));
}

struct sketching {
    near_set *set;
    const bly_planes *planes; /* NULL: no sketches, only norms */
    bool skip;
    atomic_ullong nbad;
};

/* The length of vector i. Sketching finds what has no direction, but does not
 * mind doubles that are too large or small to be squared. */
static bly_status set_norm(struct sketching *job, size_t i)
{
    near_set *const s = job->set;
    const double square = dot(bly_planes_best(), s, i, s, i);
    s->norms[i] = 0;
    if (square >= LEAST_SQUARE && square <= MOST_SQUARE) {
        s->norms[i] = sqrt(square);
        return BLY_OK;
    }
    if (job->skip)
        return BLY_OK;
    return bly_fail(BLY_EINVAL,
                    "vector %zu is %s to be compared in doubles (from 0 on); "
                    "multiply it by a number",
                    i, square < 1 ? "too short" : "too long");
}

static bly_status sketch_part(void *context, size_t part, unsigned place)
{
    struct sketching *const job = context;
    near_set *const s = job->set;
    bly_planes_spec spec;
    size_t from = part * PART;
    const size_t to = s->v.n - from < PART ? s->v.n : from + PART;
    (void)place;
    bly_planes_spec_of(job->planes, &spec);
    const size_t nwords = spec.nbits / 64;
    while (from < to) {
        size_t done;
        bly_status st = bly_planes_part(job->planes, &s->v, from, to,
                                        s->sides + from * nwords, &done);
        const bool bad = st == BLY_EINVAL && job->skip;
        if (st && !bad)
            return st;
        for (size_t i = from; i < from + done; i++)
            if ((st = set_norm(job, i)))
                return st;
        from += done;
        if (bad) {
            memset(s->sides + from * nwords, 0, nwords * sizeof *s->sides);
            s->norms[from++] = 0;
        }
    }
    return BLY_OK;
}

static void set_free(near_set *s)
{
    free(s->sides);
    free(s->norms);
    s->sides = NULL;
    s->norms = NULL;
}

/* Sketch vectors: for bits 0 they are looked at only. */
static bly_status set_make(near_set *s, const bly_vectors *v,
                           const bly_planes *planes, const bly_near_spec *spec)
{
    bly_planes_spec of;
    bly_planes_spec_of(planes, &of);
    *s = (near_set){ .v = *v };
    if (!v->stride)
        s->v.stride = v->dims * (v->doubles ? sizeof(double) : sizeof(float));
    s->sides = calloc(v->n + 1, of.nbits / 8);
    s->norms = calloc(v->n + 1, sizeof *s->norms);
    if (!s->sides || !s->norms) {
        set_free(s);
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    struct sketching job = { .set = s,
                             .planes = planes,
                             .skip = spec->flags & BLY_NEAR_SKIP };
    const size_t nparts = (v->n + PART - 1) / PART;
    const bly_status st = bly_near_crew(
        sketch_part, &job, nparts, bly_near_threads(spec->nthreads, nparts));
    if (st) {
        set_free(s);
        return st;
    }
    for (size_t i = 0; i < v->n; i++)
        s->nbad += !(s->norms[i] > 0);
    return BLY_OK;
}

/* ------------------------------------------------------------------- sample */

/* Sketch some vectors that lie evenly among all, and compare each two. */
static bly_status sample_take(const bly_vectors *v, const bly_near_spec *spec,
                              near_sample *out)
{
    const size_t step = v->n > SAMPLE ? v->n / SAMPLE : 1;
    bly_vectors some = *v;
    near_set s;
    bly_planes *planes;
    bly_near_spec lax = *spec;
    const bly_planes_spec of = { .dims = v->dims,
                                 .nbits = NEAR_SAMPLE_BITS,
                                 .seed = spec->seed + 1 };
    memset(out, 0, sizeof *out);
    if (!some.stride)
        some.stride = v->dims * (v->doubles ? sizeof(double) : sizeof(float));
    some.stride *= step;
    some.n = v->n / step < SAMPLE ? v->n / step : SAMPLE;
    lax.flags |= BLY_NEAR_SKIP; /* errors are for those who see all vectors */
    lax.nthreads = 1;
    bly_status st = bly_planes_new(&of, &planes);
    if (st)
        return st;
    st = set_make(&s, &some, planes, &lax);
    bly_planes_free(planes);
    if (st)
        return st;
    const size_t nwords = NEAR_SAMPLE_BITS / 64;
    for (size_t i = 0; i < some.n; i++)
        for (size_t j = 0; j < i; j++)
            if (s.norms[i] > 0 && s.norms[j] > 0) {
                const unsigned d =
                    bly_sides_differ(s.sides + i * nwords, s.sides + j * nwords,
                                     NEAR_SAMPLE_BITS);
                out->differ[d]++;
                out->pairs++;
            }
    set_free(&s);
    return BLY_OK;
}

/* ------------------------------------------------------------------ buckets */

typedef struct near_bands {
    near_plan plan;
    size_t nwords;
    uint32_t *starts, *ends, *members; /* of all bands, one after another */
    size_t n;
} near_bands;

static uint32_t band_key(const near_bands *b, const uint64_t *sides,
                         unsigned band)
{
    const unsigned rows = b->plan.rows, bit = band * rows;
    uint64_t key = sides[bit / 64] >> bit % 64;
    if (bit % 64 + rows > 64)
        key |= sides[bit / 64 + 1] << (64 - bit % 64);
    return (uint32_t)(key & ((UINT64_C(1) << rows) - 1));
}

static size_t nbuckets(const near_bands *b)
{
    return (size_t)1 << b->plan.rows;
}

static void bands_free(near_bands *b)
{
    free(b->starts);
    free(b->ends);
    free(b->members);
    b->starts = b->ends = b->members = NULL;
}

static void bands_put(near_bands *b, const near_set *s, size_t i)
{
    for (unsigned band = 0; band < b->plan.bands; band++) {
        const uint32_t key = band_key(b, s->sides + i * b->nwords, band);
        uint32_t *const end = b->ends + band * nbuckets(b) + key;
        b->members[band * b->n + (*end)++] = (uint32_t)i;
    }
}

struct counting {
    near_bands *b;
    const near_set *s;
    const uint32_t *first;
    bool fill;
};

static bool takes_part(const near_set *s, const uint32_t *first, size_t i)
{
    return s->norms[i] > 0 && (!first || first[i] == i);
}

/* Count the members of a band's buckets, and fill them if that is wanted. */
static bly_status band_count(void *context, size_t band, unsigned place)
{
    const struct counting *const c = context;
    near_bands *const b = c->b;
    uint32_t *const starts = b->starts + band * nbuckets(b);
    uint32_t *const ends = b->ends + band * nbuckets(b);
    uint32_t *const members = b->members + band * b->n;
    uint32_t sum = 0;
    (void)place;
    for (size_t i = 0; i < b->n; i++)
        if (takes_part(c->s, c->first, i))
            starts[band_key(b, c->s->sides + i * b->nwords, (unsigned)band)]++;
    for (size_t k = 0; k < nbuckets(b); k++) {
        const uint32_t count = starts[k];
        starts[k] = ends[k] = sum;
        sum += count;
    }
    for (size_t i = 0; c->fill && i < b->n; i++)
        if (takes_part(c->s, c->first, i))
            members[ends[band_key(b, c->s->sides + i * b->nwords,
                                  (unsigned)band)]++] = (uint32_t)i;
    return BLY_OK;
}

static bly_status bands_make(near_bands *b, const near_plan *plan,
                             const near_set *s, const uint32_t *first,
                             bool fill, uint32_t nthreads)
{
    const size_t bands = plan->bands;
    *b = (near_bands){ .plan = *plan, .nwords = plan->nbits / 64, .n = s->v.n };
    if (!bands)
        return BLY_OK;
    b->starts = calloc(bands * nbuckets(b) + 1, sizeof *b->starts);
    b->ends = calloc(bands * nbuckets(b) + 1, sizeof *b->ends);
    b->members = malloc((bands * b->n + 1) * sizeof *b->members);
    if (!b->starts || !b->ends || !b->members) {
        bands_free(b);
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    struct counting c = { b, s, first, fill };
    return bly_near_crew(band_count, &c, bands,
                         bly_near_threads(nthreads, bands));
}

/* ----------------------------------------------------------------- searches */

/* What one thread needs and finds. */
struct searcher {
    uint32_t *met; /* by vector: who met it last, plus one */
    uint32_t *candidates;
    bly_near_pair *found;
    size_t nfound, room;
    uint64_t ncandidates, nchecked;
};

static void searcher_free(struct searcher *s)
{
    free(s->met);
    free(s->candidates);
    free(s->found);
}

static bly_status searcher_ready(struct searcher *s, size_t n)
{
    if (s->met)
        return BLY_OK;
    s->met = calloc(n + 1, sizeof *s->met);
    s->candidates = malloc((n + 1) * sizeof *s->candidates);
    return s->met && s->candidates ? BLY_OK
                                   : bly_fail(BLY_ENOMEM, "out of memory");
}

static bly_status found_add(struct searcher *s, bly_near_pair pair)
{
    if (s->nfound == s->room) {
        const size_t more = s->room ? 2 * s->room : 1024;
        bly_near_pair *const at = more > SIZE_MAX / sizeof *at
                                      ? NULL
                                      : realloc(s->found, more * sizeof *at);
        if (!at)
            return bly_fail(BLY_ENOMEM, "out of memory");
        s->found = at;
        s->room = more;
    }
    s->found[s->nfound++] = pair;
    return BLY_OK;
}

typedef struct near_job {
    bly_near_spec spec;
    near_plan plan;
    near_set set;         /* who is found */
    const near_set *asks; /* who asks: the same, or queries */
    near_bands bands;
    uint32_t *first; /* of equal vectors; NULL: all are taken as different */
    uint64_t nequal;
    struct searcher searchers[NEAR_MOST_THREADS];
} near_job;

/* Those whom vector i of job->asks meets in its buckets, below `before`. */
static size_t meet(const near_job *job, struct searcher *s, size_t i,
                   size_t before)
{
    const near_bands *const b = &job->bands;
    const uint64_t *const sides = job->asks->sides + i * b->nwords;
    const uint32_t mark = (uint32_t)(i + 1);
    size_t n = 0;
    for (unsigned band = 0; band < b->plan.bands; band++)
        __builtin_prefetch(b->ends + band * nbuckets(b) +
                           band_key(b, sides, band));
    for (unsigned band = 0; band < b->plan.bands; band++) {
        const size_t bucket = band * nbuckets(b) + band_key(b, sides, band);
        __builtin_prefetch(b->starts + bucket);
        __builtin_prefetch(b->members + band * b->n + b->starts[bucket]);
    }
    for (unsigned band = 0; band < b->plan.bands; band++) {
        const size_t bucket = band * nbuckets(b) + band_key(b, sides, band);
        const uint32_t *const members = b->members + band * b->n;
        const uint32_t end = b->ends[bucket];
        for (uint32_t at = b->starts[bucket]; at < end; at++) {
            const uint32_t j = members[at];
            if (j >= before)
                break;
            if (s->met[j] == mark)
                continue;
            s->met[j] = mark;
            s->candidates[n++] = j;
            __builtin_prefetch(job->set.sides + j * b->nwords);
        }
    }
    return n;
}

/* Everybody below `before`, where all are compared. */
static size_t meet_all(const near_job *job, struct searcher *s, size_t before)
{
    size_t n = 0;
    for (size_t j = 0; j < before; j++)
        if (takes_part(&job->set, job->first, j))
            s->candidates[n++] = (uint32_t)j;
    return n;
}

/* The exact cosine, if it reaches the threshold and may do so by the sketches;
 * -2 otherwise. */
static double check(const near_job *job, struct searcher *s,
                    const bly_planes_row *row, size_t i, size_t j)
{
    const size_t nwords = job->bands.nwords;
    if (job->plan.bands &&
        row->differ(job->asks->sides + i * nwords, job->set.sides + j * nwords,
                    nwords) > job->plan.limit)
        return -2;
    s->nchecked++;
    const double cosine = cosine_of(dot(row, job->asks, i, &job->set, j),
                                    job->asks->norms[i], job->set.norms[j]);
    return cosine + SLACK >= job->spec.threshold ? cosine : -2;
}

static size_t candidates_of(const near_job *job, struct searcher *s, size_t i,
                            size_t before)
{
    const size_t n =
        job->plan.bands ? meet(job, s, i, before) : meet_all(job, s, before);
    s->ncandidates += n;
    return n;
}

static int by_vector(const void *x, const void *y)
{
    const bly_near_pair *const p = x, *const q = y;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

static int by_cosine(const void *x, const void *y)
{
    const bly_near_pair *const p = x, *const q = y;
    if (p->a == q->a && p->cosine != q->cosine)
        return p->cosine > q->cosine ? -1 : 1;
    return by_vector(x, y);
}

static bly_status search_part(void *context, size_t part, unsigned place)
{
    near_job *const job = context;
    struct searcher *const s = &job->searchers[place];
    const bly_planes_row *const row = bly_planes_best();
    const bool queries = job->asks != &job->set;
    const size_t from = part * PART, n = job->asks->v.n;
    bly_status st = searcher_ready(s, job->set.v.n);
    for (size_t i = from; !st && i < n && i < from + PART; i++) {
        if (!(job->asks->norms[i] > 0))
            continue;
        if (job->first && job->first[i] != i) {
            st = found_add(s, (bly_near_pair){ job->first[i], i, 1 });
            continue;
        }
        const size_t many =
            candidates_of(job, s, i, queries ? job->set.v.n : i);
        const size_t had = s->nfound;
        for (size_t k = 0; !st && k < many; k++) {
            const size_t j = s->candidates[k];
            const double cosine = check(job, s, row, i, j);
            if (cosine >= -1)
                st = found_add(s, queries ? (bly_near_pair){ i, j, cosine }
                                          : (bly_near_pair){ j, i, cosine });
        }
        if (!queries || st || s->nfound == had)
            continue;
        qsort(s->found + had, s->nfound - had, sizeof *s->found, by_cosine);
        if (job->spec.most && s->nfound - had > job->spec.most)
            s->nfound = had + (size_t)job->spec.most;
    }
    return st;
}

/* ------------------------------------------------------------ equal vectors */

/* The first of each group of vectors that are equal byte for byte. */
static bly_status find_equal(near_job *job)
{
    const near_set *const s = &job->set;
    const size_t n = s->v.n;
    const size_t width = s->v.doubles ? sizeof(double) : sizeof(float);
    const bly_hasher by = { .id = BLY_HASH_XXH3 };
    size_t mask = 1;
    while (mask < 2 * n + 2)
        mask *= 2;
    uint32_t *const table = malloc(mask * sizeof *table);
    job->first = malloc((n + 1) * sizeof *job->first);
    if (!table || !job->first) {
        free(table);
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    memset(table, 0xff, mask-- * sizeof *table);
    for (size_t i = 0; i < n; i++) {
        const void *const at = near_vector(s, i);
        const size_t nbytes = s->v.dims * width;
        size_t slot = (size_t)bly_hash(&by, at, nbytes) & mask;
        job->first[i] = (uint32_t)i;
        if (!(s->norms[i] > 0))
            continue;
        while (table[slot] != NOBODY &&
               memcmp(near_vector(s, table[slot]), at, nbytes) != 0)
            slot = (slot + 1) & mask;
        if (table[slot] == NOBODY)
            table[slot] = (uint32_t)i;
        job->first[i] = table[slot];
        job->nequal += table[slot] != i;
    }
    free(table);
    return BLY_OK;
}

/* --------------------------------------------------------------------- jobs */

static bly_status spec_check(bly_near_spec *spec)
{
    if (spec->threshold == 0)
        spec->threshold = DEFAULT_THRESHOLD;
    if (spec->recall == 0)
        spec->recall = DEFAULT_RECALL;
    if (!(spec->threshold > 0 && spec->threshold <= 1))
        return bly_fail(BLY_EINVAL,
                        "a threshold is a cosine above 0 and at most 1, not %g",
                        spec->threshold);
    if (!(spec->recall > 0 && spec->recall <= 0.9999))
        return bly_fail(BLY_EINVAL,
                        "recall is above 0 and at most 0.9999, not %g",
                        spec->recall);
    if (spec->flags & ~(BLY_NEAR_SKIP | BLY_NEAR_ALL))
        return bly_fail(BLY_EINVAL, "flags that this version does not know");
    return BLY_OK;
}

static void job_end(near_job *job)
{
    if (!job)
        return;
    for (unsigned i = 0; i < NEAR_MOST_THREADS; i++)
        searcher_free(&job->searchers[i]);
    bands_free(&job->bands);
    set_free(&job->set);
    free(job->first);
    free(job);
}

/* Sketch the vectors, and the queries if there are any. */
static bly_status job_begin(const bly_vectors *v, const bly_vectors *queries,
                            const bly_near_spec *given, size_t size,
                            near_set *asks, near_job **out)
{
    bly_near_spec own;
    near_sample sample;
    bly_planes *planes;
    *out = NULL;
    if (!v)
        return bly_fail_null("vectors");
    if (!(given = BLY_TAKE(given, size, &own)))
        return BLY_EINVAL;
    near_job *const job = calloc(1, sizeof *job);
    if (!job)
        return bly_fail(BLY_ENOMEM, "out of memory");
    job->spec = *given;
    bly_status st = spec_check(&job->spec);
    if (!st && v->n >= NOBODY)
        st = bly_fail(BLY_EINVAL, "%zu vectors: at most 2^32 - 2", v->n);
    if (!st)
        st = bly_vectors_check(v, v->dims);
    if (!st && queries && queries->doubles != v->doubles)
        st = bly_fail(BLY_EINVAL, "queries are %s, and vectors %s",
                      queries->doubles ? "doubles" : "floats",
                      v->doubles ? "doubles" : "floats");
    if (!st && queries)
        st = bly_vectors_check(queries, v->dims);
    if (!st && queries && queries->n >= NOBODY)
        st = bly_fail(BLY_EINVAL, "%zu queries: at most 2^32 - 2", queries->n);
    if (!st)
        st = sample_take(v, &job->spec, &sample);
    if (!st)
        st = bly_near_choose(&job->spec, &sample, v->n, v->dims, &job->plan);
    const bly_planes_spec of = { .dims = v->dims,
                                 .nbits =
                                     job->plan.nbits ? job->plan.nbits : 64,
                                 .seed = job->spec.seed };
    if (!st)
        st = bly_planes_new(&of, &planes);
    if (!st) {
        st = set_make(&job->set, v, planes, &job->spec);
        job->asks = &job->set;
        if (!st && queries) {
            st = set_make(asks, queries, planes, &job->spec);
            job->asks = asks;
            if (st) {
                char why[400]; /* not from the line into itself */
                snprintf(why, sizeof why, "%s", bly_error());
                st = bly_fail(st, "queries: %s", why);
            }
        }
        bly_planes_free(planes);
    }
    if (st) {
        job_end(job);
        return st;
    }
    *out = job;
    return BLY_OK;
}

static void job_stats(const near_job *job, uint64_t nfound, unsigned nthreads,
                      bly_near_stats *out)
{
    if (!out)
        return;
    *out = (bly_near_stats){ .nbits = job->plan.bands ? job->plan.nbits : 0,
                             .bands = job->plan.bands,
                             .rows = job->plan.rows,
                             .recall = job->plan.recall,
                             .nthreads = nthreads,
                             .nfound = nfound,
                             .nequal = job->nequal,
                             .nbad = job->set.nbad };
    if (job->asks != &job->set)
        out->nbad += job->asks->nbad;
    for (unsigned i = 0; i < NEAR_MOST_THREADS; i++) {
        out->ncandidates += job->searchers[i].ncandidates;
        out->nchecked += job->searchers[i].nchecked;
    }
}

/* All that the threads found, in one array and in order. */
static bly_status gather(near_job *job, bool queries, bly_near_pair **out,
                         size_t *n)
{
    size_t sum = 0;
    for (unsigned i = 0; i < NEAR_MOST_THREADS; i++)
        sum += job->searchers[i].nfound;
    bly_near_pair *const all = malloc((sum + 1) * sizeof *all);
    *out = all;
    *n = 0;
    if (!all)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (unsigned i = 0; i < NEAR_MOST_THREADS; i++) {
        struct searcher *const s = &job->searchers[i];
        if (s->nfound)
            memcpy(all + *n, s->found, s->nfound * sizeof *all);
        *n += s->nfound;
        free(s->found);
        s->found = NULL;
        s->nfound = s->room = 0;
    }
    qsort(all, *n, sizeof *all, queries ? by_cosine : by_vector);
    return BLY_OK;
}

static bly_status job_search(near_job *job, bly_near_put *put, void *ctx,
                             bly_near_stats *stats)
{
    const bool queries = job->asks != &job->set;
    const size_t nparts = (job->asks->v.n + PART - 1) / PART;
    const unsigned nthreads = bly_near_threads(job->spec.nthreads, nparts);
    bly_near_pair *all = NULL;
    size_t n = 0;
    bly_status st = bands_make(&job->bands, &job->plan, &job->set, job->first,
                               true, job->spec.nthreads);
    if (!st)
        st = bly_near_crew(search_part, job, nparts, nthreads);
    if (!st)
        st = gather(job, queries, &all, &n);
    if (!st && n)
        st = put(all, n, ctx);
    if (!st)
        job_stats(job, n, nthreads, stats);
    free(all);
    return st;
}

bly_status bly_near_pairs_sized(const bly_vectors *vectors,
                                const bly_near_spec *spec, bly_near_put *put,
                                void *ctx, bly_near_stats *stats, size_t size)
{
    near_job *job;
    if (!put)
        return bly_fail_null("put");
    bly_status st = job_begin(vectors, NULL, spec, size, NULL, &job);
    if (st)
        return st;
    if (!(job->spec.flags & BLY_NEAR_ALL))
        st = find_equal(job);
    if (!st)
        st = job_search(job, put, ctx, stats);
    job_end(job);
    return st;
}

bly_status bly_near_of_sized(const bly_vectors *vectors,
                             const bly_vectors *queries,
                             const bly_near_spec *spec, bly_near_put *put,
                             void *ctx, bly_near_stats *stats, size_t size)
{
    near_job *job;
    near_set asks = { 0 };
    if (!put || !queries)
        return bly_fail_null("queries or put");
    bly_status st = job_begin(vectors, queries, spec, size, &asks, &job);
    if (st)
        return st;
    st = job_search(job, put, ctx, stats);
    set_free(&asks);
    job_end(job);
    return st;
}

bly_status bly_near_dedup_sized(const bly_vectors *vectors,
                                const bly_near_spec *spec, uint64_t *witness,
                                double *cosines, bly_near_stats *stats,
                                size_t size)
{
    const bly_planes_row *const row = bly_planes_best();
    near_job *job;
    uint64_t gone = 0;
    bly_status st = job_begin(vectors, NULL, spec, size, NULL, &job);
    if (st)
        return st;
    const size_t n = vectors->n;
    struct searcher *const s = &job->searchers[0];
    if (!witness && n)
        st = bly_fail_null("witness");
    if (!st)
        st = find_equal(job);
    if (!st)
        st = bands_make(&job->bands, &job->plan, &job->set, job->first, false,
                        job->spec.nthreads);
    if (!st)
        st = searcher_ready(s, n);
    size_t nstay = 0; /* the first ones of s->candidates, if all are compared */
    for (size_t i = 0; !st && i < n; i++) {
        double best = -2;
        size_t by = i;
        if (job->first[i] != i) { /* goes where the first one went */
            const size_t first = job->first[i];
            by = (size_t)witness[first];
            best = by == first ? 1 : cosines ? cosines[first] : 1;
        } else if (job->set.norms[i] > 0) {
            const size_t many =
                job->plan.bands ? candidates_of(job, s, i, i) : nstay;
            if (!job->plan.bands)
                s->ncandidates += many;
            for (size_t k = 0; by == i && k < many; k++) {
                best = check(job, s, row, i, s->candidates[k]);
                by = best >= -1 ? s->candidates[k] : i;
            }
            if (by == i && job->plan.bands)
                bands_put(&job->bands, &job->set, i);
            else if (by == i)
                s->candidates[nstay++] = (uint32_t)i;
        }
        witness[i] = by;
        if (cosines)
            cosines[i] = by == i ? 1 : best;
        gone += by != i;
    }
    if (!st)
        job_stats(job, gone, 1, stats);
    job_end(job);
    return st;
}
