/*
 * builder.c - a filter from all its keys, added by any number of threads
 *
 * There are two ways. If the capacity is known and the kind can add, the filter
 * exists from the start and keys go straight into it, or into private copies of
 * it, one per thread (copies.h), or, if it is large, range by range (spread.h).
 * Otherwise hashes are kept (kept.h) while a HyperLogLog counts the distinct
 * ones. In the end the filter is planned for that number and filled from what
 * was kept.
 *
 * Threads that call at once get out of each other's way. To keep hashes, a
 * thread takes a place for them and a set of registers that no other thread
 * uses, copies and counts, and gives the registers back. There are as many sets
 * as threads were at work at once, and in the end they are merged. The lock is
 * held only while a thread takes something or gives it back.
 *
 * What is kept may be more than memory holds. Then a static kind with shards is
 * built one group of shards at a time, each from one pass over the file. A kind
 * that adds takes the chunks of the file one after another or, if it wants
 * every key once, in parts by the highest bits of the hash, which are sorted
 * one by one. Either way the filter is the same as in memory.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/builder.h"
#include "api/copies.h"
#include "api/kept.h"
#include "api/keying.h"
#include "api/plan.h"
#include "api/spread.h"
#include "core/bits.h"
#include "core/sort.h"
#include "core/sized.h"
#include "core/status.h"
#include "kinds/bitset.h"
#include "sketch/hyperloglog.h"

/* Up to this many keys are counted exactly. */
#define EXACT_KEYS ((size_t)1 << 20)

#define MAX_THREADS 256

/* Bytes of hashes in memory if there is a folder for more and no bound. The
 * filter is filled in one pass over the file, so little is lost. A kind that
 * wants each key once would take many passes, so it keeps its hashes in
 * memory. */
#define SOFT_BOUND ((uint64_t)4 << 20)

/* Registers of the HyperLogLog, for one thread at a time. */
typedef struct registers {
    struct registers *next;
    uint8_t at[BLY_HLL_BYTES];
} registers;

struct bly_builder {
    bly_planned planned; /* shape and items only once they are known */
    bly_mem mem;
    bool sized;  /* keys go straight into filter */
    bool valued; /* keys come with values */
    bool finished;
    bool estimated;     /* the number of keys that the filter was made for */
    bly_filter *filter; /* where sized, and of it: */
    bly_copies copies;
    bly_spread *spread;   /* NULL: copies serve better */
    pthread_mutex_t lock; /* of all below */
    bly_kept kept;
    uint64_t max_value;  /* of the values kept, 1 at least; 0: no values */
    registers *unused;   /* not in use by a thread; at least one exists */
    bly_filter *made;    /* of all keys, from the first denial on */
    bly_kept denied;     /* denied keys that `made` takes for its own */
    bly_grouping groups; /* of the keys; nbytes is 0: none */
    bly_status failed;   /* the first failure to take keys */
};

/* ---------------------------------------------------------------- taking */

/* Whether it can be planned without knowing how many keys will come. */
static bool sizes_itself(const bly_planned *planned)
{
    bly_planned trial = *planned;
    return (planned->kind->traits & BLY_SELF_SIZED) && !bly_plan_end(&trial);
}

/* Copies may be made, up to a limit, and a larger filter may be filled by
 * ranges. Such filters become shared only when they are done: until then each
 * copy, or range, has one writer. */
static void builder_split(bly_builder *b)
{
    bly_copies_open(&b->copies, b->filter, b->planned.set.max_bytes != 0);
    if (!b->planned.set.max_bytes)
        b->spread = bly_spread_open(b->filter);
    if (b->copies.most > 1 || b->spread)
        bly_filter_share(b->filter, false);
}

/* A kind that removes but does not count holds a set: a key that comes twice is
 * added once, so that one removal takes it out, and repetitions take no
 * room. */
static bool holds_a_set(const bly_kind *kind)
{
    return kind->remove && !kind->count && !kind->build;
}

bly_status bly_builder_new_sized(const bly_spec *spec, bly_builder **out,
                                 size_t size)
{
    bly_spec own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    const bly_mem *mem = spec->mem ? spec->mem : &bly_mem_system;
    bly_planned planned;
    bly_status st = bly_plan_begin(spec, &planned);
    if (st)
        return st;
    if (spec->spill && !spec->max_bytes && planned.kind->build)
        return bly_fail(BLY_EINVAL, "a folder for keys that do not fit into "
                                    "memory needs a bound: give max_bytes");
    bly_builder *b = bly_mem_zalloc(mem, sizeof *b);
    if (!b)
        return bly_fail(BLY_ENOMEM, "out of memory");
    b->planned = planned;
    b->mem = *mem;
    b->planned.set.mem = &b->mem;
    b->valued = planned.kind->build && planned.kind->get;
    b->max_value = b->valued;
    b->denied.fd = -1; /* not open */
    b->sized =
        planned.kind->add && (spec->items || (spec->bits && spec->fpr > 0) ||
                              sizes_itself(&planned));
    pthread_mutex_init(&b->lock, NULL);
    const bool soft = spec->spill && !spec->max_bytes;
    st = bly_kept_open(&b->mem, b->valued, soft ? SOFT_BOUND : spec->max_bytes,
                       soft && holds_a_set(planned.kind) ? NULL : spec->spill,
                       &b->kept);
    if (soft && !b->kept.folder)
        b->kept.max_bytes = 0;
    if (!st && b->sized) {
        st = bly_plan_end(&b->planned);
        if (!st)
            st = bly_filter_make(b->planned.kind, &b->planned.shape,
                                 &b->planned.set, &b->filter);
        if (!st)
            builder_split(b);
    } else if (!st) {
        /* A rate that is out of range should be reported now, not after the
         * last key. */
        bly_planned trial = b->planned;
        trial.want.items = 1;
        trial.want.max_value = b->max_value;
        st = bly_plan_end(&trial);
        b->unused = bly_mem_zalloc(mem, sizeof *b->unused);
        if (!st && !b->unused)
            st = bly_fail(BLY_ENOMEM, "out of memory");
    }
    if (st) {
        bly_builder_free(b);
        return st;
    }
    *out = b;
    return BLY_OK;
}

const bly_hasher *bly_builder_hasher(const bly_builder *b)
{
    return &b->planned.set.hasher;
}

const bly_kind *bly_builder_kind(const bly_builder *b)
{
    return b->planned.kind;
}

bly_keying bly_builder_keying(const bly_builder *b)
{
    return b->planned.keying;
}

/* Registers that nobody else has, or NULL if there is no memory for more. */
static registers *take_registers(bly_builder *b)
{
    pthread_mutex_lock(&b->lock);
    registers *own = b->unused;
    if (own)
        b->unused = own->next;
    pthread_mutex_unlock(&b->lock);
    return own ? own : bly_mem_zalloc(&b->mem, sizeof *own);
}

/* Give registers back; most is the largest of the values just kept. */
static void return_registers(bly_builder *b, registers *own, uint64_t most)
{
    pthread_mutex_lock(&b->lock);
    own->next = b->unused;
    b->unused = own;
    b->max_value = most > b->max_value ? most : b->max_value;
    pthread_mutex_unlock(&b->lock);
}

/* Into one of the builder's stores. */
static bly_status store_keep(bly_builder *b, bly_kept *to,
                             const uint64_t *hashes, const uint64_t *values,
                             size_t n)
{
    bly_status st = BLY_OK;
    for (size_t from = 0; from < n && !st;) {
        bly_kept_place place;
        pthread_mutex_lock(&b->lock);
        st = bly_kept_reserve(to, n - from, &place);
        /* A chunk that may go to a file any moment is filled under the lock. */
        const bool late = !st && !to->folder;
        if (!st && !late)
            bly_kept_put(&place, hashes + from, values ? values + from : NULL);
        pthread_mutex_unlock(&b->lock);
        if (late)
            bly_kept_put(&place, hashes + from, values ? values + from : NULL);
        from += place.n;
    }
    return st;
}

static bly_status builder_keep(bly_builder *b, const uint64_t *hashes,
                               const uint64_t *values, size_t n)
{
    registers *own = take_registers(b);
    if (!own)
        return bly_fail(BLY_ENOMEM, "out of memory");
    uint64_t most = 0;
    const bly_status st = store_keep(b, &b->kept, hashes, values, n);
    for (size_t i = 0; values && i < n; i++)
        most = values[i] > most ? values[i] : most;
    bly_registers_add(own->at, BLY_HLL_BITS, hashes, n);
    return_registers(b, own, most);
    return st;
}

/* Does the kind plan for keys that come several times? */
static bool plans_for_repeats(const bly_kind *kind)
{
    for (uint32_t i = 0; i < kind->nparams; i++)
        if (strcmp(kind->params[i].name, "mean") == 0)
            return true;
    return false;
}

/* A filter that is full before its time, because keys came several times, gets
 * twice the slots. False, with nothing changed, if it has more keys than it was
 * made for, or cannot be larger: then it really is full. */
static bool grows_for_repeats(bly_filter *f)
{
    const bly_want any = { 0 };
    bly_filter *wide;
    bly_stats stats = { 0 };
    if (!f->kind->resize || !plans_for_repeats(f->kind))
        return false;
    f->kind->stat(f, &stats);
    if (!(stats.items_estimate - 3 * stats.items_sd <= (double)f->items))
        return false;
    if (f->kind->resize(f, f->kind, &any, &wide))
        return false;
    wide->items = f->items;
    wide->fpr = f->fpr; /* the same fingerprints */
    return bly_become(f, wide) == BLY_OK;
}

/* Straight into the filter, or a copy. */
static bly_status builder_add_sized(bly_builder *b, const uint64_t *hashes,
                                    size_t n)
{
    if (b->filter->shared) /* as the caller wants it */
        return bly_add_hashes(b->filter, hashes, n, NULL, NULL);
    if (!n) /* and hashes may be NULL */
        return BLY_OK;
    if (b->spread)
        return bly_spread_add(b->spread, hashes, n);
    bly_filter *const own = bly_copies_take(&b->copies);
    size_t done = 0;
    bly_status st;
    do {
        hashes += done;
        n -= done;
        st = bly_add_hashes(own, hashes, n, NULL, &done);
    } while (st == BLY_EFULL && grows_for_repeats(own));
    bly_copies_give(&b->copies, own);
    return st;
}

bly_status bly_builder_fails(bly_builder *b, bly_status st)
{
    pthread_mutex_lock(&b->lock);
    b->failed = st;
    pthread_mutex_unlock(&b->lock);
    return st;
}

bly_status bly_builder_add(bly_builder *b, const uint64_t *hashes,
                           const uint64_t *values, size_t n)
{
    if (!b || (!hashes && n))
        return bly_fail_null("b or hashes");
    if (b->finished)
        return bly_fail(BLY_EINVAL, "the builder is finished: make a new one");
    if ((values != NULL) != b->valued)
        return bly_fail(BLY_EINVAL,
                        b->valued ? "a %s filter needs a value for each key"
                                  : "a %s filter takes no values",
                        b->planned.kind->name);
    if (b->made)
        return bly_fail(BLY_EINVAL, "keys of the set come before those that "
                                    "are not in it");
    const bly_status st = b->sized ? builder_add_sized(b, hashes, n)
                                   : builder_keep(b, hashes, values, n);
    return st ? bly_builder_fails(b, st) : BLY_OK;
}

/* -------------------------------------------------------------- finishing */

typedef struct fill_job {
    bly_builder *builder;
    const bly_chunk *next; /* to be taken; under the builder's lock */
    bly_filter *filter;
    bly_copies *copies; /* each thread has one; NULL: they share filter, or: */
    bly_spread *spread;
    unsigned nparts;    /* 0: chunks are dealt out; else keys, by part */
    unsigned next_part; /* to be taken; under the builder's lock */
    bly_status status;  /* the first failure; under the builder's lock */
    char error[1024];
} fill_job;

static void fill_failed(fill_job *job, bly_status st)
{
    pthread_mutex_lock(&job->builder->lock);
    if (!job->status) {
        job->status = st;
        snprintf(job->error, sizeof job->error, "%s", bly_error());
    }
    pthread_mutex_unlock(&job->builder->lock);
}

/* Copy to out those of n hashes that belong to `part`, a range of sites
 * (kind.h), and return their number. */
static size_t pick(const bly_filter *f, unsigned part, unsigned nparts,
                   const uint64_t *h, size_t n, uint64_t *out)
{
    const uint64_t nsites = f->kind->sites(&f->shape);
    const uint64_t from = nsites * part / nparts;
    const uint64_t count = nsites * (part + 1) / nparts - from;
    size_t picked = 0;
    for (size_t i = 0; i < n; i++) {
        /* Always written, and kept only if it is counted: a branch on whether
         * the key belongs to this part could not be predicted. The difference
         * wraps round for sites before the part, so one comparison checks both
         * ends. */
        out[picked] = h[i];
        picked += bly_scale(h[i], nsites) - from < count;
    }
    return picked;
}

/* Take a part, and add its keys from all chunks. To read all chunks costs a
 * thread less than one atomic operation per word would. Parts do not share
 * cells, and everything else is private to the thread. */
static void *fill_part(void *arg)
{
    enum { PIECE = 2048 };
    fill_job *job = arg;
    bly_filter part, *const f = &part;
    uint64_t piece[PIECE];
    bly_status st = BLY_OK;
    /* Copy only as much as exists: the struct ends after the last param. */
    memcpy(&part, job->filter,
           offsetof(bly_filter, shape.p) +
               job->filter->room * sizeof part.shape.p[0]);
    pthread_mutex_lock(&job->builder->lock);
    const unsigned mine = job->next_part++;
    pthread_mutex_unlock(&job->builder->lock);
    for (const bly_chunk *c = job->builder->kept.first; c && !st; c = c->next)
        for (size_t at = 0; at < c->n && !st; at += PIECE) {
            const size_t n = c->n - at < PIECE ? c->n - at : PIECE;
            size_t done;
            st = f->kind->add(
                f, piece, pick(f, mine, job->nparts, c->hashes + at, n, piece),
                NULL, &done);
        }
    if (st)
        fill_failed(job, st);
    return NULL;
}

/* Take chunks until there are none. Each thread has its own bly_error(), so the
 * message of a failure has to be copied. */
static void *fill_worker(void *arg)
{
    fill_job *job = arg;
    bly_builder *b = job->builder;
    bly_filter *const f =
        job->copies ? bly_copies_take(job->copies) : job->filter;
    for (;;) {
        pthread_mutex_lock(&b->lock);
        const bly_chunk *c = job->status ? NULL : job->next;
        if (c)
            job->next = c->next;
        pthread_mutex_unlock(&b->lock);
        if (!c)
            break;
        size_t done;
        const bly_status st =
            job->spread ? bly_spread_add(job->spread, c->hashes, c->n)
                        : (f->shared ? f->kind->add_shared : f->kind->add)(
                              f, c->hashes, c->n, NULL, &done);
        if (st)
            fill_failed(job, st);
    }
    if (job->copies)
        bly_copies_give(job->copies, f);
    return NULL;
}

static unsigned thread_count(unsigned wanted)
{
    if (!wanted) {
        const long n = sysconf(_SC_NPROCESSORS_ONLN);
        wanted = n > 0 ? (unsigned)n : 1;
    }
    return wanted < MAX_THREADS ? wanted : MAX_THREADS;
}

/* With more parts than this each thread would mostly read. */
#define MAX_PARTS 8

static bly_status fill_run(fill_job *job, void *(*worker)(void *),
                           unsigned nworkers)
{
    pthread_t threads[MAX_THREADS];
    unsigned started = 0;
    while (started + 1 < nworkers &&
           pthread_create(&threads[started], NULL, worker, job) == 0)
        started++;
    worker(job);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    /* Parts whose thread could not be made. */
    while (job->next_part < job->nparts && !job->status)
        fill_part(job);
    return job->status ? bly_fail(job->status, "%s", job->error) : BLY_OK;
}

/* Add the chunks to f, with several threads if it is shared: each has a copy or
 * a part, they add by ranges, or they really share it. f may no longer be
 * shared afterwards. */
static bly_status builder_fill(bly_builder *b, unsigned nthreads, bly_filter *f)
{
    fill_job job = { .builder = b, .next = b->kept.first, .filter = f };
    const unsigned nworkers = f->shared ? thread_count(nthreads) : 1;
    bly_copies copies;
    bly_status st;
    job.spread = b->kept.max_bytes ? NULL : bly_spread_open(f);
    if (job.spread) {
        bly_filter_share(f, false);
        st = fill_run(&job, fill_worker, nworkers);
        const bly_status end = bly_spread_end(job.spread, nworkers);
        return st ? st : end;
    }
    if (nworkers == 1)
        return fill_run(&job, fill_worker, 1);
    bly_copies_open(&copies, f, b->kept.max_bytes != 0);
    if (f->kind->sites && nworkers > copies.most && nworkers <= MAX_PARTS) {
        bly_filter_share(f, false);
        job.nparts = nworkers;
        st = fill_run(&job, fill_part, nworkers);
    } else if (copies.most > 1) {
        bly_filter_share(f, false);
        job.copies = &copies;
        st = fill_run(&job, fill_worker,
                      nworkers < copies.most ? nworkers : copies.most);
        if (!st)
            bly_copies_merge(&copies, nworkers);
    } else {
        st = fill_run(&job, fill_worker, nworkers);
    }
    bly_copies_close(&copies);
    return st;
}

/* Is the filter made in passes over the keys, within a bound, or from all of
 * them at once? */
static bool in_passes(const bly_builder *b)
{
    return b->kept.spilled || (b->kept.max_bytes && b->planned.kind->build);
}

/* The number of distinct keys kept: exact if that is cheap. A static kind
 * counts the keys itself. It must not run out of room because the estimate was
 * too low, and has enough if all keys are planned for. */
static bly_status builder_distinct(bly_builder *b, uint64_t *out)
{
    const bool build = b->planned.kind->build != NULL;
    registers *const all = b->unused;
    if (b->groups.nbytes) { /* hashes are not uniform */
        *out = b->kept.nkeys;
        return BLY_OK;
    }
    /* For few keys, the registers would take longer than the keys: there are a
     * quarter of a million registers. */
    if (b->kept.nkeys <= EXACT_KEYS &&
        !(build && b->kept.nkeys <= b->planned.want.items))
        return in_passes(b) ? bly_spilled_distinct(&b->kept, out)
                            : bly_kept_distinct(&b->kept, out);
    for (const registers *r = all->next; r; r = r->next)
        bly_registers_merge(all->at, r->at, BLY_HLL_BITS);
    *out = (uint64_t)bly_registers_estimate(all->at, BLY_HLL_BITS);
    *out += build ? *out / 64 : 0;
    if (*out > b->kept.nkeys)
        *out = b->kept.nkeys;
    b->estimated = !build;
    return BLY_OK;
}

/* Which additions changed something depends on their order, and with many
 * threads the order is random. A file must not depend on it. So kinds whose
 * contents do not depend on the order get a count that does not either. */
static void settle_count(bly_filter *f, double nkeys)
{
    if (f->kind->add_shared && isfinite(nkeys))
        f->nadded = (uint64_t)(nkeys + 0.5);
}

/* If a filter turns out to be full, it is made again, with more room. In kinds
 * that hold every addition, so that it can be removed, repeated keys take room,
 * but how much depends on how the repeats are spread. So the first plan assumes
 * that there are none, and later plans assume more and more of them, up to the
 * mean that was seen, which is enough however they are spread. An estimate may
 * be too low as well: then there is room for a quarter more keys. */
#define MAX_ATTEMPTS 16
#define MANY_REPEATS 3 /* from here on a key takes hardly any more room */

static bool more_room(const bly_kind *kind, double seen, bly_want *w)
{
    if (kind->build)
        return false;
    if (plans_for_repeats(kind) && w->mean < seen)
        w->mean = w->mean < MANY_REPEATS ? fmin(1.25 * w->mean, seen) : seen;
    else
        w->items += w->items / 4 + 1;
    return true;
}

static bly_status builder_attempt(bly_builder *b, unsigned nthreads,
                                  const bly_joined *keys, bly_filter **out)
{
    bly_planned *p = &b->planned;
    bly_filter *f;
    size_t done;
    bly_status st = bly_plan_end(p);
    if (st)
        return st;
    /* Shared while it is filled, if that is done by several threads. */
    bly_setting set = p->set;
    set.shared |= !keys->h && !in_passes(b) && b->kept.nkeys > BLY_CHUNK_KEYS &&
                  thread_count(nthreads) > 1 &&
                  bly_shape_shares(p->kind, &p->shape);
    st = bly_filter_make(p->kind, &p->shape, &set, &f);
    if (st)
        return st;
    if (b->groups.nbytes) {
        memcpy(f->data, b->groups.table.at, (size_t)b->groups.nbytes);
        memcpy(f->state, b->groups.state, p->kind->nstate * sizeof *f->state);
        bly_filter_ready(f);
    }
    if (in_passes(b))
        st = bly_spilled_fill(&b->kept, f, holds_a_set(p->kind),
                              thread_count(nthreads));
    else if (p->kind->build)
        st = p->kind->build(f, keys->h, keys->values, keys->n,
                            thread_count(nthreads));
    else if (keys->h)
        st = p->kind->add(f, keys->h, keys->n, NULL, &done);
    else
        st = builder_fill(b, nthreads, f);
    bly_filter_share(f, p->set.shared);
    if (st)
        bly_free(f);
    else
        *out = f;
    return st;
}

static bly_status builder_make(bly_builder *b, unsigned nthreads,
                               bly_filter **out)
{
    const bly_kind *kind = b->planned.kind;
    bly_want want = b->planned.want;
    bly_joined keys = { 0 };
    uint64_t distinct = 0;
    bly_status st = bly_kept_seal(&b->kept, kind->build != NULL);
    if (!st && !holds_a_set(kind))
        st = builder_distinct(b, &distinct);
    if (!st && !in_passes(b) && (kind->build || holds_a_set(kind)))
        st = bly_kept_join(&b->kept, &keys);
    if (!st && holds_a_set(kind)) {
        if (in_passes(b))
            st = bly_spilled_distinct(&b->kept, &distinct);
        else
            st = bly_hashes_unique(keys.h, NULL, &keys.n);
        distinct += keys.n;
    }
    const double seen =
        distinct ? fmax(1, (double)b->kept.nkeys / (double)distinct) : 1;
    b->estimated &= distinct > want.items;
    if (distinct > want.items)
        want.items = distinct;
    if (!want.items)
        want.items = 1;
    b->planned.told = want.items; /* however much room they will need */
    want.mean = kind->remove ? 1 : seen;
    want.max_value = b->max_value;
    for (int attempt = 0; !st && !*out; attempt++) {
        b->planned.want = want; /* planning fills in what is left open in it */
        st = builder_attempt(b, nthreads, &keys, out);
        if (st == BLY_EFULL && attempt + 1 < MAX_ATTEMPTS &&
            more_room(kind, seen, &want))
            st = BLY_OK;
    }
    if (!st)
        settle_count(*out, (double)distinct);
    bly_joined_free(&b->kept, &keys);
    return st;
}

/* ----------------------------------------------------------------- groups */

bly_status bly_builder_groups(bly_builder *b, const bly_group *groups, size_t n)
{
    if (!b || (!groups && n))
        return bly_fail_null("b or groups");
    const bly_kind *const kind = b->planned.kind;
    bly_hasher *const hasher = &b->planned.set.hasher;
    if (!kind->group)
        return bly_fail_ability(kind, BLY_ABILITY_DENY);
    if (b->finished || b->failed || b->made || b->kept.nkeys ||
        b->groups.nbytes)
        return bly_fail(BLY_EINVAL,
                        "groups are told of once, before any key is taken");
    if (hasher->id != BLY_HASH_XXH3)
        return bly_fail(BLY_EINVAL, "the keys of a keyed filter stand in no "
                                    "groups: build it without its key");
    const bly_status st = kind->group(&b->planned.want, hasher->seed, groups, n,
                                      &b->mem, &b->groups);
    if (st)
        return st;
    *hasher = b->groups.hasher;
    b->planned.want.groups = &b->groups;
    return BLY_OK;
}

bly_status bly_builder_beginning(bly_builder *b, const void *text, size_t len)
{
    if (!b || (!text && len))
        return bly_fail_null("b or text");
    bly_hasher *const hasher = &b->planned.set.hasher;
    if (!b->planned.kind->has_range)
        return bly_fail_ability(b->planned.kind, BLY_ABILITY_RANGE);
    if (b->finished || b->failed || b->kept.nkeys ||
        hasher->id != BLY_HASH_ORDERED_BYTES)
        return bly_fail(BLY_EINVAL,
                        "a common beginning is told of once, before "
                        "any key is taken, for keys that are text "
                        "or bytes");
    if (len > BLY_BEGINNING_MOST)
        return bly_fail(BLY_ERANGE, "a common beginning has at most %d bytes",
                        BLY_BEGINNING_MOST);
    if (len) {
        hasher->id = BLY_HASH_ORDERED_TAILS;
        hasher->secret[0] = bly_beginning(text, len);
        b->planned.set.secret_check = hasher->secret[0];
    }
    return BLY_OK;
}

/* ---------------------------------------------------------------- denying */

/* Make the filter that tells which of the others it would let through. */
static bly_status builder_made(bly_builder *b, unsigned nthreads)
{
    bly_status st = BLY_OK;
    pthread_mutex_lock(&b->lock);
    if (!b->made) {
        st = bly_kept_open(&b->mem, false, b->kept.max_bytes, b->kept.folder,
                           &b->denied);
        if (!st)
            st = builder_make(b, nthreads, &b->made);
    }
    pthread_mutex_unlock(&b->lock);
    return st;
}

bly_status bly_builder_deny(bly_builder *b, const uint64_t *hashes, size_t n)
{
    enum { PIECE = 1024 };
    uint64_t maybe[PIECE / 64], left[PIECE];
    if (!b || (!hashes && n))
        return bly_fail_null("b or hashes");
    if (!b->planned.kind->deny)
        return bly_fail_ability(b->planned.kind, BLY_ABILITY_DENY);
    if (b->finished || b->failed)
        return bly_fail(BLY_EINVAL, "the builder is finished: make a new one");
    bly_status st = builder_made(b, 0);
    for (size_t from = 0; from < n && !st; from += PIECE) {
        const size_t np = n - from < PIECE ? n - from : PIECE;
        size_t nleft = 0;
        bly_has_hashes(b->made, hashes + from, np, maybe);
        for (size_t i = 0; i < np; i++) {
            left[nleft] = hashes[from + i];
            nleft += maybe[i / 64] >> i % 64 & 1;
        }
        st = store_keep(b, &b->denied, left, NULL, nleft);
    }
    return st ? bly_builder_fails(b, st) : BLY_OK;
}

bly_status bly_builder_members(bly_builder *b, const uint64_t *hashes, size_t n,
                               uint64_t *in)
{
    if (!b || (!hashes && n) || (!in && n))
        return bly_fail_null("b, hashes or in");
    if (!b->planned.kind->deny)
        return bly_fail_ability(b->planned.kind, BLY_ABILITY_DENY);
    if (b->finished || b->failed)
        return bly_fail(BLY_EINVAL, "the builder is finished: make a new one");
    const bly_status st = builder_made(b, 0);
    if (st)
        return bly_builder_fails(b, st);
    if (n) {
        memset(in, 0, BLY_BITMAP_WORDS(n) * sizeof *in);
        b->made->kind->members(b->made, hashes, n, in);
    }
    return BLY_OK;
}

/* Give the denied keys to the filter. */
static bly_status builder_deny_all(bly_builder *b, unsigned nthreads)
{
    bly_joined keys = { 0 };
    bly_status st = builder_made(b, nthreads);
    if (!st)
        st = bly_kept_seal(&b->denied, true);
    if (!st)
        st = bly_kept_join(&b->denied, &keys);
    if (!st)
        st = b->made->kind->deny(b->made, keys.h, keys.n,
                                 thread_count(nthreads));
    bly_joined_free(&b->denied, &keys);
    return st;
}

bly_status bly_builder_finish(bly_builder *b, unsigned nthreads,
                              bly_filter **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!b)
        return bly_fail_null("b");
    if (b->finished)
        return bly_fail(BLY_EINVAL, "the builder is finished: make a new one");
    b->finished = true;
    /* A filter of the rest would say "no" to keys that were given. */
    if (b->failed) {
        bly_kept_close(&b->kept);
        return bly_fail(b->failed, "some keys were not taken: after a failure "
                                   "a builder can only be freed");
    }
    if (b->sized) {
        bly_stats stats = { 0 };
        const bly_status st = bly_spread_end(b->spread, thread_count(nthreads));
        b->spread = NULL;
        if (st)
            return st;
        bly_copies_merge(&b->copies, thread_count(nthreads));
        bly_copies_close(&b->copies);
        *out = b->filter;
        b->filter = NULL;
        if ((*out)->kind->bitset)
            bly_bitset_stat(*out, &stats);
        else
            (*out)->kind->stat(*out, &stats);
        settle_count(*out, stats.items_estimate);
        bly_filter_share(*out, b->planned.set.shared);
        return bly_keying_given(out, b->planned.keying);
    }
    const bly_status st = b->planned.kind->deny
                              ? builder_deny_all(b, nthreads)
                              : builder_make(b, nthreads, &b->made);
    bly_kept_close(&b->kept);
    bly_kept_close(&b->denied);
    if (st)
        return st;
    *out = b->made;
    b->made = NULL;
    return bly_keying_given(out, b->planned.keying);
}

bool bly_builder_estimated(const bly_builder *b)
{
    return b->estimated;
}

void bly_builder_free(bly_builder *b)
{
    if (!b)
        return;
    bly_kept_close(&b->kept);
    bly_kept_close(&b->denied);
    if (b->groups.nbytes)
        bly_block_free(&b->mem, &b->groups.table);
    bly_free(b->made);
    bly_spread_close(b->spread);
    if (b->filter)
        bly_copies_close(&b->copies);
    bly_free(b->filter);
    while (b->unused) {
        registers *const r = b->unused;
        b->unused = r->next;
        bly_mem_release(&b->mem, r, sizeof *r);
    }
    pthread_mutex_destroy(&b->lock);
    const bly_mem mem = b->mem;
    volatile uint64_t *secret = b->planned.set.hasher.secret;
    secret[0] = secret[1] = 0;
    bly_mem_release(&mem, b, sizeof *b);
}
