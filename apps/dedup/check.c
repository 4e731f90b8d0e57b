/*
 * check.c - the exact likeness of pairs, by reading their texts again
 *
 * The sets of shingles of all documents would be larger than the corpus, so
 * they are made again, for the documents of pairs alone, in one pass over the
 * files that leaves out what has none of them. A set is kept, since later pairs
 * may ask for it: in memory, and where that is not enough in a file (store.h).
 * Then the pairs are compared, by several threads.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#include "apps/dedup/journal.h"

#define WANTED UINT64_MAX /* in set_at: to be made in this pass */

/* --------------------------------------------------------------------- sets */

/* What a worker made of a block: sets one after the other, the size first. */
struct checker {
    bly_shingler *cut;
    struct dedup_text text;
    uint64_t *words;
    size_t n, room;
    uint32_t *places; /* of parts, while a set is sorted */
    size_t places_room;
};

struct checking {
    struct dedup *d;
    struct checker *checkers;
};

static bool any_wanted(void *ctx, uint64_t first, uint64_t n)
{
    const struct dedup *const d = ((struct checking *)ctx)->d;
    const uint64_t *const at = d->set_at + d->base;
    for (uint64_t i = first; i < first + n; i++)
        if (at[i] == WANTED)
            return true;
    return false;
}

#define SMALL_PART 32

/* Put to[from] to to[end - 1] in order behind the first `kept`, all of which
 * are less; kept <= from. Equal ones once. The number kept then. */
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
static size_t sort_set(struct checker *w, const uint64_t *x, size_t n,
                       uint64_t *to)
{
    unsigned bits = 1;
    while (bits < 31 && (size_t)2 << bits < n)
        bits++;
    const size_t nparts = (size_t)1 << bits;
    const unsigned shift = 64 - bits;
    size_t kept = 0;
    if (nparts > w->places_room) {
        if (!GROW(w->places, nparts))
            return 0;
        w->places_room = nparts;
    }
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
static bool make_set(const struct checking *c, struct checker *w,
                     const char *line, size_t n)
{
    bly_shingles x;
    if (dedup_text(c->d->opt, line, n, &w->text))
        return lines_fail(c->d->in, "the input changed while it was read");
    if (bly_shingle(w->cut, w->text.at, w->text.len, &x))
        return lines_fail(c->d->in, "%s", bly_error());
    if (w->n + x.n + 1 > w->room) {
        const size_t room = (w->n + x.n + 1) * 2;
        if (!GROW(w->words, room))
            return lines_fail(c->d->in, "out of memory");
        w->room = room;
    }
    const size_t count = sort_set(w, x.hashes, x.n, w->words + w->n + 1);
    if (x.n && !count)
        return lines_fail(c->d->in, "out of memory");
    w->words[w->n] = count;
    w->n += count + 1;
    return true;
}

static bool make_sets(void *ctx, unsigned worker, struct lines_block *b)
{
    struct checking *const c = ctx;
    struct checker *const w = &c->checkers[worker];
    const uint64_t *const at = c->d->set_at + c->d->base;
    size_t from = 0, n;
    const char *line;
    w->n = 0;
    for (uint64_t i = b->first; lines_next(c->d->in, b, &from, &line, &n); i++)
        if (at[i] == WANTED && !make_set(c, w, line, n))
            return false;
    return true;
}

/* What does not fit memory goes to a file. */
bool dedup_set_room(struct dedup *d, uint64_t n)
{
    const uint64_t want = d->sets_len + n;
    if (want <= d->sets_room)
        return true;
    const uint64_t room = want + want / 2;
    if (!d->sets.folder && room * sizeof *d->set_words > d->sets.limit) {
        uint64_t *const had = d->set_words;
        d->sets.folder = d->opt->folder;
        d->set_words = NULL;
        if (!STORE(&d->sets, d->set_words, room)) {
            d->sets.folder = NULL;
            d->set_words = had;
            return false;
        }
        if (had)
            memcpy(d->set_words, had, d->sets_len * sizeof *had);
        free(had);
    } else if (!STORE(&d->sets, d->set_words, room)) {
        return false;
    }
    d->sets_room = room;
    return true;
}

static bool keep_sets(void *ctx, unsigned worker, struct lines_block *b)
{
    const struct checking *const c = ctx;
    struct dedup *const d = c->d;
    const struct checker *const w = &c->checkers[worker];
    uint64_t *const at = d->set_at + d->base;
    uint64_t from = d->sets_len;
    if (!dedup_set_room(d, w->n))
        return lines_fail(d->in, "no room for sets of shingles in %s: %s",
                          d->opt->folder, strerror(errno));
    if (w->n)
        memcpy(d->set_words + from, w->words, w->n * sizeof *w->words);
    d->sets_len += w->n;
    for (uint64_t i = b->first; i < b->first + b->nlines; i++)
        if (at[i] == WANTED) {
            at[i] = from + 1;
            from += d->set_words[from] + 1;
        }
    store_trim_now(&d->sets);
    store_trim_now(&d->store);
    return true;
}

/* Make the sets that are wanted. */
static bool read_sets(struct dedup *d)
{
    const unsigned nworkers = lines_workers(d->in);
    struct checking c = { .d = d };
    c.checkers = calloc(nworkers, sizeof *c.checkers);
    bool ok = c.checkers || dedup_fail(d, "out of memory");
    for (unsigned i = 0; ok && i < nworkers; i++)
        if (bly_shingler_new(&d->opt->sketch.shingling, NULL,
                             &c.checkers[i].cut))
            ok = dedup_fail(d, "%s", bly_error());
    if (ok && !lines_run_some(d->in, any_wanted, make_sets, keep_sets, &c))
        ok = dedup_fail(d, "%s", d->in->error);
    for (unsigned i = 0; c.checkers && i < nworkers; i++) {
        bly_shingler_free(c.checkers[i].cut);
        free(c.checkers[i].text.buf);
        free(c.checkers[i].words);
        free(c.checkers[i].places);
    }
    free(c.checkers);
    return ok;
}

/* -------------------------------------------------------------------- pairs */

/* J is the lesser size over the larger one at most, so that sets of different
 * sizes need not be compared; half of that stands for "below". */
static double exact_likeness(const struct dedup *d, const uint64_t *a,
                             const uint64_t *b)
{
    const double less = (double)(a[0] < b[0] ? a[0] : b[0]);
    const double more = (double)(a[0] < b[0] ? b[0] : a[0]);
    if (less / more < d->opt->threshold)
        return less / more / 2;
    return bly_overlap_of(a + 1, (size_t)a[0], b + 1, (size_t)b[0]).jaccard;
}

#define PAIRS_AT_ONCE 256
#define MAX_COMPARERS 64

struct comparing {
    struct dedup *d;
    atomic_size_t next, nworkers; /* next: pair */
};

static bool is_exact(const struct dedup *d, const struct dedup_pair *p)
{
    return d->opt->verify == DEDUP_EXACT &&
           (p->a >= d->base || d->index_has_sets);
}

static void *compare_some(void *arg)
{
    struct comparing *const c = arg;
    struct dedup *const d = c->d;
    const bool trims = atomic_fetch_add(&c->nworkers, 1) == 0;
    for (;;) {
        const size_t from = atomic_fetch_add(&c->next, PAIRS_AT_ONCE);
        for (size_t i = from; i < from + PAIRS_AT_ONCE; i++) {
            if (i >= d->pairs.n)
                return NULL;
            struct dedup_pair *const p = &d->pairs.at[i];
            if (!isnan(p->likeness))
                continue;
            p->likeness =
                is_exact(d, p)
                    ? exact_likeness(d, d->set_words + d->set_at[p->a] - 1,
                                     d->set_words + d->set_at[p->b] - 1)
                    : dedup_estimate(d, p->a, p->b);
            if (trims) {
                store_trim(&d->store);
                store_trim(&d->sets);
            }
        }
    }
}

static void compare_all(struct dedup *d, size_t from)
{
    pthread_t threads[MAX_COMPARERS];
    struct comparing c = { .d = d, .next = from };
    unsigned n = 0;
    while (n + 1 < d->opt->nthreads && n < MAX_COMPARERS &&
           pthread_create(&threads[n], NULL, compare_some, &c) == 0)
        n++;
    compare_some(&c);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

/* Where sets are: nowhere but those of an index. */
static bool places_new(struct dedup *d)
{
    uint64_t at = 0;
    if (d->set_at)
        return true;
    if (!STORE_ZEROS(&d->store, d->set_at, d->n))
        return dedup_no_room(d, "documents");
    for (uint32_t i = 0; d->index_has_sets && i < d->base; i++) {
        d->set_at[i] = at + 1;
        at += d->set_words[at] + 1;
        store_trim(&d->store);
        store_trim(&d->sets);
    }
    return true;
}

bool dedup_need_sets(struct dedup *d,
                     bool (*wanted)(const struct dedup *d, uint32_t doc))
{
    bool reads = false;
    if (!places_new(d))
        return false;
    for (uint32_t i = d->base; dedup_more(d, i); i++)
        if (d->set_at[i] == 0 && wanted(d, i)) {
            d->set_at[i] = WANTED;
            reads = true;
        }
    return !reads || read_sets(d);
}

bool dedup_check(struct dedup *d, size_t from)
{
    const double start = dedup_seconds();
    bool reads = false;
    if (!places_new(d))
        return false;
    for (size_t i = from; i < d->pairs.n; i++) {
        const struct dedup_pair *const p = &d->pairs.at[i];
        if (!is_exact(d, p) || !isnan(p->likeness))
            continue;
        d->report.checked++;
        for (unsigned j = 0; j < 2; j++) {
            uint64_t *const at = &d->set_at[j ? p->b : p->a];
            if (*at == 0)
                *at = WANTED;
            reads = reads || *at == WANTED;
        }
        store_trim(&d->store);
    }
    bool ok = !reads || read_sets(d);
    if (ok)
        compare_all(d, from);
    ok = ok && dedup_checked_write(d, &d->checked, from);
    d->report.seconds[3] += dedup_seconds() - start;
    return ok;
}
