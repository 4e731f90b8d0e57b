/*
 * dedup_check.c - the exact likeness of pairs, by reading their texts again
 *
 * The sets of shingles of all documents would be larger than the corpus, so
 * they are made again, for the documents of pairs alone, in one pass over the
 * files that leaves out what has none of them. A set is kept, since later pairs
 * may need it: in memory, or in a file where memory is not enough
 * (dedup_store.h). Then the pairs are compared, by several threads.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/journal.h"
#include "base/clock.h"

/* --------------------------------------------------------------------- sets */

/* What a worker made of a block: sets one after the other, the size first. */
struct set_maker {
    bly_shingler *cut;
    struct dedup_text text;
    uint64_t *words;
    size_t n, room;
    uint32_t *places; /* of parts, while a set is sorted */
    size_t places_room;
};

struct making {
    struct dedup_job *job;
    struct input *in;
    struct dedup_sets *sets;
    uint64_t *at; /* as theirs, but of the first line */
    struct set_maker *makers;
    dedup_set_take *take; /* instead of keeping them */
    void *ctx;
};

static bool any_wanted(void *ctx, uint64_t first, uint64_t n)
{
    const struct making *const m = ctx;
    for (uint64_t i = first; i < first + n; i++)
        if (m->at[i] == SET_WANTED)
            return true;
    return false;
}

#define SMALL_PART 32

/* Sort to[from] to to[end - 1] behind the first `kept` values, all of which are
 * less (kept <= from), without repetitions. Returns the new number of kept
 * values. */
static size_t insert_part(uint64_t *to, size_t kept, size_t from, size_t end)
{
    const size_t first = kept;
    for (size_t i = from; i < end; i++) {
        const uint64_t x = to[i];
        size_t j = kept;
        while (j > first && to[j - 1] > x)
            j--;
        if (j > first && to[j - 1] == x)
            continue;
        memmove(to + j + 1, to + j, (kept - j) * sizeof *to);
        to[j] = x;
        kept++;
    }
    return kept;
}

/* Sort n hashes into to, each once: how many. Hashes are uniform, so a part for
 * every two of them, by their high bits, is nearly all; parts that are large
 * hold repeated ones. n is below 2^32. */
static size_t sort_set(struct set_maker *w, const uint64_t *x, size_t n,
                       uint64_t *to)
{
    unsigned bits = 1;
    while (bits < 31 && (size_t)2 << bits < n)
        bits++;
    const size_t nparts = (size_t)1 << bits;
    const unsigned shift = 64 - bits;
    size_t kept = 0;
    if (!ROOM(w->places, w->places_room, nparts))
        return 0;
    memset(w->places, 0, nparts * sizeof *w->places);
    for (size_t i = 0; i < n; i++)
        w->places[x[i] >> shift]++;
    for (size_t i = 0, sum = 0; i < nparts; i++) {
        sum += w->places[i];
        w->places[i] = (uint32_t)sum;
    }
    for (size_t i = n; i-- > 0;)
        to[--w->places[x[i] >> shift]] = x[i];
    for (size_t i = 0; i < nparts; i++) {
        const size_t from = w->places[i];
        const size_t end = i + 1 < nparts ? w->places[i + 1] : n;
        if (end - from <= SMALL_PART) {
            kept = insert_part(to, kept, from, end);
        } else {
            const size_t m = bly_distinct(to + from, end - from);
            memmove(to + kept, to + from, m * sizeof *to);
            kept += m;
        }
    }
    return kept;
}

/* The set of shingles of one line, behind those of the block so far. */
static bool make_set(const struct making *m, struct set_maker *w,
                     const struct block *b, const char *line, size_t n)
{
    bly_shingles x;
    if (dedup_text(m->job->opt, b, line, n, &w->text))
        return input_fail(m->in, "the input changed while it was read");
    if (bly_shingle(w->cut, w->text.at, w->text.len, &x))
        return input_fail(m->in, "%s", bly_error());
    if (!ROOM(w->words, w->room, w->n + x.n + 1))
        return input_fail(m->in, "out of memory");
    const size_t count = sort_set(w, x.hashes, x.n, w->words + w->n + 1);
    if (x.n && !count)
        return input_fail(m->in, "out of memory");
    w->words[w->n] = count;
    w->n += count + 1;
    return true;
}

static bool make_sets(void *ctx, unsigned worker, struct block *b)
{
    const struct making *const m = ctx;
    struct set_maker *const w = &m->makers[worker];
    size_t from = 0, n;
    const char *line;
    w->n = 0;
    for (uint64_t i = b->first; input_line(m->in, b, &from, &line, &n); i++)
        if (m->at[i] == SET_WANTED && !make_set(m, w, b, line, n))
            return false;
    return true;
}

/* What does not fit memory goes to a file. */
bool dedup_set_room(struct dedup_sets *sets, const char *folder, uint64_t n)
{
    struct dedup_store *const s = &sets->store;
    const uint64_t want = sets->len + n;
    if (want <= sets->room)
        return true;
    const uint64_t room = want + want / 2;
    if (!s->folder && room * sizeof *sets->words > s->limit) {
        uint64_t *words = NULL;
        s->folder = folder;
        if (!STORE(s, words, room)) {
            s->folder = NULL;
            return false;
        }
        if (sets->len)
            memcpy(words, sets->words, sets->len * sizeof *words);
        store_release(s, sets->words);
        sets->words = words;
    } else if (!STORE(s, sets->words, room)) {
        return false;
    }
    sets->room = room;
    return true;
}

static bool keep_sets(void *ctx, unsigned worker, struct block *b)
{
    const struct making *const m = ctx;
    struct dedup_sets *const sets = m->sets;
    const char *const folder = m->job->opt->folder;
    const struct set_maker *const w = &m->makers[worker];
    uint64_t from = sets->len;
    if (!dedup_set_room(sets, folder, w->n))
        return input_fail(m->in, "no room for sets of shingles in %s: %s",
                          folder, strerror(errno));
    if (w->n)
        memcpy(sets->words + from, w->words, w->n * sizeof *w->words);
    sets->len += w->n;
    for (uint64_t i = b->first; i < b->first + b->nlines; i++)
        if (m->at[i] == SET_WANTED) {
            m->at[i] = from + 1;
            from += sets->words[from] + 1;
        }
    store_trim_now(&sets->store);
    store_trim_now(&m->job->store);
    return true;
}

static bool hand_sets_over(void *ctx, unsigned worker, struct block *b)
{
    const struct making *const m = ctx;
    const struct set_maker *const w = &m->makers[worker];
    size_t from = 0;
    for (uint64_t i = b->first; i < b->first + b->nlines; i++)
        if (m->at[i] == SET_WANTED) {
            if (!m->take(m->ctx, i, w->words + from))
                return input_fail(m->in, "%s", m->job->error);
            from += w->words[from] + 1;
        }
    return true;
}

/* Make the sets that are wanted. */
static bool run_makers(struct making *m)
{
    struct dedup_job *const job = m->job;
    const unsigned nworkers = ordered_workers(m->in);
    m->makers = calloc(nworkers, sizeof *m->makers);
    bool ok = m->makers || dedup_fail(job, "out of memory");
    for (unsigned i = 0; ok && i < nworkers; i++)
        if (bly_shingler_new(&job->opt->sketch.shingling, NULL,
                             &m->makers[i].cut))
            ok = dedup_fail(job, "%s", bly_error());
    if (ok && !ordered_run_some(m->in, any_wanted, make_sets,
                                m->take ? hand_sets_over : keep_sets, m))
        ok = dedup_fail(job, "%s", m->in->error);
    for (unsigned i = 0; m->makers && i < nworkers; i++) {
        bly_shingler_free(m->makers[i].cut);
        dedup_text_free(&m->makers[i].text);
        free(m->makers[i].words);
        free(m->makers[i].places);
    }
    free(m->makers);
    return ok;
}

bool dedup_set_each(struct dedup_job *job, struct input *in, const uint64_t *at,
                    dedup_set_take *take, void *ctx)
{
    struct making m = { .job = job,
                        .in = in,
                        .at = (uint64_t *)at, /* not changed */
                        .take = take,
                        .ctx = ctx };
    return run_makers(&m);
}

static bool read_sets(struct dedup_job *job, const struct dedup_docs *docs,
                      struct dedup_sets *sets)
{
    struct making m = {
        .job = job, .in = docs->in, .sets = sets, .at = sets->at + docs->base
    };
    return sets->fetch ? sets->fetch(job, docs, sets) : run_makers(&m);
}

bool dedup_set_places(struct dedup_job *job, const struct dedup_docs *docs,
                      struct dedup_sets *sets)
{
    uint64_t at = 0;
    if (sets->at)
        return true;
    if (!STORE_ZEROS(&job->store, sets->at, docs->n))
        return dedup_no_room(job, "documents");
    for (uint32_t i = 0; sets->indexed && i < docs->base; i++) {
        sets->at[i] = at + 1;
        at += sets->words[at] + 1;
        store_trim(&job->store);
        store_trim(&sets->store);
    }
    return true;
}

bool dedup_need_sets(struct dedup_job *job, const struct dedup_docs *docs,
                     const struct dedup_verdicts *verdicts,
                     struct dedup_sets *sets)
{
    bool reads = false;
    if (!dedup_set_places(job, docs, sets))
        return false;
    for (uint32_t i = docs->base; dedup_more(job, i, docs->n); i++)
        if (sets->at[i] == 0 && dedup_stays(docs, verdicts, i)) {
            sets->at[i] = SET_WANTED;
            reads = true;
        }
    return !reads || read_sets(job, docs, sets);
}

/* -------------------------------------------------------------------- pairs */

/* J is the lesser size over the larger one at most, so that sets of different
 * sizes need not be compared; half of that stands for "below". */
static double exact_likeness(double threshold, const uint64_t *a,
                             const uint64_t *b)
{
    const double less = (double)(a[0] < b[0] ? a[0] : b[0]);
    const double more = (double)(a[0] < b[0] ? b[0] : a[0]);
    if (less / more < threshold)
        return less / more / 2;
    return bly_overlap_of(a + 1, (size_t)a[0], b + 1, (size_t)b[0]).jaccard;
}

#define PAIRS_AT_ONCE 256
#define MAX_COMPARERS 64

struct comparing {
    struct dedup_job *job;
    struct dedup_check *check;
    atomic_size_t next, nworkers; /* next: pair */
};

static bool is_exact(const struct dedup_job *job,
                     const struct dedup_check *check,
                     const struct dedup_pair *p)
{
    return job->opt->verify == DEDUP_EXACT &&
           (p->a >= check->docs->base || check->sets->indexed);
}

static void *compare_some(void *arg)
{
    struct comparing *const c = arg;
    const struct dedup_check *const check = c->check;
    struct dedup_sets *const sets = check->sets;
    const bool trims = atomic_fetch_add(&c->nworkers, 1) == 0;
    for (;;) {
        const size_t from = atomic_fetch_add(&c->next, PAIRS_AT_ONCE);
        for (size_t i = from; i < from + PAIRS_AT_ONCE; i++) {
            if (i >= check->pairs.n)
                return NULL;
            struct dedup_pair *const p = &check->pairs.at[i];
            if (!isnan(p->likeness))
                continue;
            p->likeness = is_exact(c->job, check, p)
                              ? exact_likeness(c->job->opt->threshold,
                                               sets->words + sets->at[p->a] - 1,
                                               sets->words + sets->at[p->b] - 1)
                              : dedup_estimate(check->docs, p->a, p->b);
            if (trims) {
                store_trim(&c->job->store);
                store_trim(&sets->store);
            }
        }
    }
}

static void compare_all(struct dedup_job *job, struct dedup_check *check,
                        size_t from)
{
    pthread_t threads[MAX_COMPARERS];
    struct comparing c = { .job = job, .check = check, .next = from };
    unsigned n = 0;
    while (n + 1 < job->opt->nthreads && n < MAX_COMPARERS &&
           pthread_create(&threads[n], NULL, compare_some, &c) == 0)
        n++;
    compare_some(&c);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

bool dedup_check_pairs(struct dedup_job *job, struct dedup_check *check,
                       size_t from)
{
    const double start = clock_seconds();
    struct dedup_sets *const sets = check->sets;
    bool reads = false;
    if (!dedup_set_places(job, check->docs, sets))
        return false;
    for (size_t i = from; i < check->pairs.n; i++) {
        const struct dedup_pair *const p = &check->pairs.at[i];
        if (!is_exact(job, check, p) || !isnan(p->likeness))
            continue;
        check->checked++;
        for (unsigned j = 0; j < 2; j++) {
            uint64_t *const at = &sets->at[j ? p->b : p->a];
            if (*at == 0)
                *at = SET_WANTED;
            reads = reads || *at == SET_WANTED;
        }
        store_trim(&job->store);
    }
    bool ok = !reads || read_sets(job, check->docs, sets);
    if (ok)
        compare_all(job, check, from);
    ok = ok && dedup_checked_write(job, check, from);
    check->seconds += clock_seconds() - start;
    return ok;
}
