/*
 * check.c - the exact likeness of pairs, by reading their texts again
 *
 * The sets of shingles of all documents would be larger than the corpus, so
 * they are made again, for the documents of pairs alone. In a pair (a, b) a is
 * the lesser number, so that one pass over the files meets a before b:
 *
 *     a comes by     its set is kept
 *     b comes by     its set is compared with those of its partners, and goes
 *
 * Memory is that of the kept sets. Where they are more than --memory allows,
 * the pairs are taken in several batches, by a, with a pass for each.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup.h"

struct shingle_set {
    uint32_t doc;
    uint64_t *hashes;
    size_t n;
};

struct set_list {
    struct shingle_set *at;
    size_t n, room;
};

struct checker {
    bly_shingler *cut;
    struct dedup_text text;
    struct set_list sets; /* of the block at hand */
};

struct checking {
    struct dedup *d;
    struct checker *checkers;
    struct dedup_pair **pairs; /* of the batch, by b and then a */
    size_t npairs, next;       /* next: the first whose b did not come by */
    uint64_t *wanted;          /* a bit a document: its set is needed */
    uint64_t *partners;        /* likewise: it is kept, as the first of pairs */
    struct set_list kept;      /* by document, since they come in order */
};

static int by_first(const void *x, const void *y)
{
    const struct dedup_pair *const p = *(struct dedup_pair *const *)x;
    const struct dedup_pair *const q = *(struct dedup_pair *const *)y;
    return p->a != q->a ? (p->a > q->a) - (p->a < q->a)
                        : (p->b > q->b) - (p->b < q->b);
}

static int by_second(const void *x, const void *y)
{
    const struct dedup_pair *const p = *(struct dedup_pair *const *)x;
    const struct dedup_pair *const q = *(struct dedup_pair *const *)y;
    return p->b != q->b ? (p->b > q->b) - (p->b < q->b)
                        : (p->a > q->a) - (p->a < q->a);
}

static bool has_bit(const uint64_t *bits, uint64_t doc)
{
    return bits[doc / 64] >> doc % 64 & 1;
}

static void set_bit(uint64_t *bits, uint64_t doc)
{
    bits[doc / 64] |= UINT64_C(1) << doc % 64;
}

static bool any_wanted(const struct checking *c, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        if (i % 64 == 0 && c->wanted[i / 64] == 0)
            i += 63;
        else if (has_bit(c->wanted, i))
            return true;
    }
    return false;
}

static bool list_put(struct set_list *l, struct shingle_set set)
{
    if (l->n == l->room) {
        const size_t room = l->room * 2 + 16;
        struct shingle_set *const more = realloc(l->at, room * sizeof *more);
        if (!more)
            return false;
        l->at = more;
        l->room = room;
    }
    l->at[l->n++] = set;
    return true;
}

static void list_free(struct set_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].hashes);
    free(l->at);
    *l = (struct set_list){ 0 };
}

/* The set of shingles of one line, in memory of its own. */
static bool make_set(const struct checking *c, struct checker *w,
                     const char *line, size_t n, uint32_t doc)
{
    bly_shingles x;
    if (dedup_text(c->d->opt, line, n, &w->text))
        return lines_fail(c->d->in, "the input changed while it was read");
    if (bly_shingle(w->cut, w->text.at, w->text.len, &x))
        return lines_fail(c->d->in, "%s", bly_error());
    struct shingle_set set = { .doc = doc, .n = bly_distinct(x.hashes, x.n) };
    set.hashes = malloc((set.n + 1) * sizeof *set.hashes);
    if (!set.hashes)
        return lines_fail(c->d->in, "out of memory");
    memcpy(set.hashes, x.hashes, set.n * sizeof *set.hashes);
    if (list_put(&w->sets, set))
        return true;
    free(set.hashes);
    return lines_fail(c->d->in, "out of memory");
}

static bool make_sets(void *ctx, unsigned worker, struct lines_block *b)
{
    struct checking *const c = ctx;
    struct checker *const w = &c->checkers[worker];
    const uint64_t first = b->first + c->d->base;
    size_t at = 0, n;
    const char *line;
    w->sets.n = 0;
    if (!any_wanted(c, first, first + b->nlines))
        return true;
    for (uint64_t doc = first; lines_next(c->d->in, b, &at, &line, &n); doc++)
        if (has_bit(c->wanted, doc) && !make_set(c, w, line, n, (uint32_t)doc))
            return false;
    return true;
}

static const struct shingle_set *kept_set(const struct checking *c,
                                          uint32_t doc)
{
    size_t from = 0, to = c->kept.n;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (c->kept.at[mid].doc < doc)
            from = mid + 1;
        else
            to = mid;
    }
    return &c->kept.at[from]; /* a came by before b, so it is there */
}

/* J is the lesser size over the larger one at most, so that sets of different
 * sizes need not be compared; half of that stands for "below". */
static double exact_likeness(const struct dedup *d, const struct shingle_set *a,
                             const struct shingle_set *b)
{
    const double less = (double)(a->n < b->n ? a->n : b->n);
    const double more = (double)(a->n < b->n ? b->n : a->n);
    if (less / more < d->opt->threshold)
        return less / more / 2;
    return bly_overlap_of(a->hashes, a->n, b->hashes, b->n).jaccard;
}

static bool compare_sets(void *ctx, unsigned worker, struct lines_block *b)
{
    struct checking *const c = ctx;
    struct set_list *const sets = &c->checkers[worker].sets;
    (void)b;
    size_t i = 0;
    bool ok = true;
    for (; i < sets->n && ok; i++) {
        struct shingle_set *const set = &sets->at[i];
        while (c->next < c->npairs && c->pairs[c->next]->b == set->doc) {
            struct dedup_pair *const p = c->pairs[c->next++];
            p->likeness = exact_likeness(c->d, kept_set(c, p->a), set);
        }
        if (!has_bit(c->partners, set->doc))
            continue;
        ok = list_put(&c->kept, *set);
        if (ok)
            set->hashes = NULL;
        else
            lines_fail(c->d->in, "out of memory");
    }
    for (i = 0; i < sets->n; i++)
        free(sets->at[i].hashes);
    sets->n = 0;
    return ok;
}

static bool check_batch(struct checking *c)
{
    struct dedup *const d = c->d;
    memset(c->wanted, 0, ((size_t)d->n / 64 + 1) * sizeof *c->wanted);
    memset(c->partners, 0, ((size_t)d->n / 64 + 1) * sizeof *c->partners);
    for (size_t i = 0; i < c->npairs; i++) {
        set_bit(c->wanted, c->pairs[i]->a);
        set_bit(c->wanted, c->pairs[i]->b);
        set_bit(c->partners, c->pairs[i]->a);
    }
    qsort(c->pairs, c->npairs, sizeof *c->pairs, by_second);
    c->next = 0;
    const bool ok = lines_run(d->in, make_sets, compare_sets, c);
    list_free(&c->kept);
    if (!ok || c->next < c->npairs)
        return dedup_fail(
            d, "%s", ok ? "the input changed while it was read" : d->in->error);
    return true;
}

/* How many of n pairs, which are sorted by a, go into one batch. */
static size_t batch_size(const struct dedup *d, struct dedup_pair **pairs,
                         size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && pairs[i]->a == pairs[i - 1]->a)
            continue;
        bytes += (uint64_t)d->nshingles[pairs[i]->a] * 8 + 64;
        if (i && bytes > d->opt->memory / 2)
            return i;
    }
    return n;
}

static bool check_exactly(struct checking *c, struct dedup_pair **pairs,
                          size_t n)
{
    struct dedup *const d = c->d;
    const unsigned nthreads = d->in->nthreads;
    bool ok = true;
    c->checkers = calloc(nthreads, sizeof *c->checkers);
    c->wanted = calloc((size_t)d->n / 64 + 1, sizeof *c->wanted);
    c->partners = calloc((size_t)d->n / 64 + 1, sizeof *c->partners);
    if (!c->checkers || !c->wanted || !c->partners)
        ok = dedup_fail(d, "out of memory");
    for (unsigned i = 0; ok && i < nthreads; i++)
        if (bly_shingler_new(&d->opt->sketch.shingling, NULL,
                             &c->checkers[i].cut))
            ok = dedup_fail(d, "%s", bly_error());
    qsort(pairs, n, sizeof *pairs, by_first);
    while (ok && n) {
        const size_t some = batch_size(d, pairs, n);
        c->pairs = pairs;
        c->npairs = some;
        ok = check_batch(c);
        pairs += some;
        n -= some;
    }
    for (unsigned i = 0; c->checkers && i < nthreads; i++) {
        bly_shingler_free(c->checkers[i].cut);
        free(c->checkers[i].text.buf);
        list_free(&c->checkers[i].sets);
    }
    free(c->checkers);
    free(c->wanted);
    free(c->partners);
    return ok;
}

bool dedup_check(struct dedup *d, size_t from)
{
    const double start = dedup_seconds();
    struct dedup_pair **const pairs =
        calloc(d->pairs.n - from + 1, sizeof *pairs);
    size_t n = 0;
    if (!pairs)
        return dedup_fail(d, "out of memory");
    for (size_t i = from; i < d->pairs.n; i++) {
        struct dedup_pair *const p = &d->pairs.at[i];
        if (d->opt->verify == DEDUP_EXACT && p->a >= d->base) {
            pairs[n++] = p;
        } else {
            p->likeness = dedup_estimate(d, p->a, p->b);
        }
    }
    struct checking c = { .d = d };
    const bool ok = n == 0 || check_exactly(&c, pairs, n);
    d->report.checked += n;
    free(pairs);
    d->report.seconds[3] += dedup_seconds() - start;
    return ok;
}
