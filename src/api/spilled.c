/*
 * spilled.c - a filter from keys in a file, in bounded memory
 *
 * Every pass reads the whole file in order and picks out the keys it needs. If
 * there are few keys compared with the bound, or there is no file, they are in
 * memory.
 */
#include "api/kept.h"
#include "core/sort.h"
#include "core/status.h"
#include "kinds/filter.h"

/* ------------------------------------------------------------------- sets */

/* Parts of the keys, by the highest bits of the hash, that take a quarter of
 * the memory each. */
static uint64_t set_parts(const bly_kept *k)
{
    const uint64_t room = k->max_bytes / 4 / sizeof(uint64_t);
    uint64_t parts = 1;
    while (parts < BLY_CHUNK_KEYS && k->nkeys / parts > room)
        parts *= 2;
    return parts;
}

typedef bly_status set_visit(bly_filter *f, uint64_t *h, size_t n,
                             uint64_t *sum);

/* Give visit() the distinct keys, sorted, a part at a time. */
static bly_status each_part(bly_kept *k, bly_filter *f, set_visit *visit,
                            uint64_t *sum)
{
    const uint64_t parts = set_parts(k);
    const size_t nbytes = (size_t)parts * sizeof(uint64_t);
    uint64_t *counts = bly_mem_zalloc(&k->mem, nbytes);
    if (!counts)
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_status st = bly_kept_count(k, parts, counts);
    for (uint64_t i = 0; i < parts && !st; i++) {
        bly_joined keys;
        st = bly_kept_gather(k, parts, i, 1, counts[i], &keys);
        if (!st)
            st = bly_hashes_unique(keys.h, NULL, &keys.n);
        if (!st)
            st = visit(f, keys.h, keys.n, sum);
        bly_joined_free(k, &keys);
    }
    bly_mem_release(&k->mem, counts, nbytes);
    return st;
}

static bly_status visit_count(bly_filter *f, uint64_t *h, size_t n,
                              uint64_t *sum)
{
    (void)f;
    (void)h;
    *sum += n;
    return BLY_OK;
}

bly_status bly_spilled_distinct(bly_kept *k, uint64_t *out)
{
    *out = 0;
    return each_part(k, NULL, visit_count, out);
}

static bly_status visit_add(bly_filter *f, uint64_t *h, size_t n, uint64_t *sum)
{
    size_t done;
    (void)sum;
    return f->kind->add(f, h, n, NULL, &done);
}

/* ----------------------------------------------------------------- chunks */

static bly_status add_chunks(bly_kept *k, bly_filter *f)
{
    bly_kept_walk w = { 0 };
    bly_status st = BLY_OK;
    for (const bly_chunk *c; !st && (c = bly_kept_next(k, &w));) {
        size_t done;
        st = f->kind->add(f, c->hashes, c->n, NULL, &done);
    }
    bly_kept_end(k, &w);
    return st ? st : w.st;
}

/* ----------------------------------------------------------------- shards */

/* Shards that are built together. */
typedef struct group {
    uint64_t first, n, nkeys;
    unsigned nthreads;
} group;

/* The memory that building a group takes besides the filter. */
static uint64_t group_bytes(const bly_kept *k, const bly_filter *f,
                            const group *g, uint64_t largest)
{
    return (g->nkeys + 1) * sizeof(uint64_t) * (k->valued ? 2 : 1) +
           g->nthreads * f->kind->shard_bytes(&f->shape, largest);
}

/* The most shards from g->first on for which `room` is enough; one thread for
 * each, as long as there are threads. */
static uint64_t group_extend(const bly_kept *k, const bly_filter *f,
                             const uint64_t *counts, uint64_t nshards,
                             unsigned nthreads, uint64_t room, group *g)
{
    uint64_t largest = 0, least = 0;
    group next = { .first = g->first };
    while (next.first + next.n < nshards) {
        const uint64_t more = counts[next.first + next.n++];
        next.nkeys += more;
        largest = more > largest ? more : largest;
        next.nthreads = next.n < nthreads ? (unsigned)next.n : nthreads;
        const uint64_t nbytes = group_bytes(k, f, &next, largest);
        if (next.n == 1)
            least = nbytes;
        /* Prefer more keys at once to more threads. */
        if (nbytes > room && next.nthreads > 1)
            next.nthreads = g->nthreads ? g->nthreads : 1;
        if (group_bytes(k, f, &next, largest) > room)
            break;
        *g = next;
    }
    return least;
}

static bly_status build_groups(bly_kept *k, bly_filter *f,
                               const uint64_t *counts, uint64_t nshards,
                               unsigned nthreads)
{
    const uint64_t buffer =
        k->spilled ? (uint64_t)BLY_CHUNK_KEYS * (k->valued ? 16 : 8) : 0;
    const uint64_t held =
        f->shape.nbytes + bly_kept_bytes(k) + buffer + nshards * sizeof *counts;
    const uint64_t room = k->max_bytes > held ? k->max_bytes - held : 0;
    bly_status st = BLY_OK;
    for (group g = { 0 }; g.first < nshards && !st; g.first += g.n) {
        g.n = g.nthreads = 0;
        const uint64_t least =
            group_extend(k, f, counts, nshards, nthreads, room, &g);
        if (!g.n)
            return bly_fail(
                BLY_ERANGE,
                "the bound of %llu bytes is too low: the filter and one of its "
                "%llu shards take %llu; raise it, %sor ask for more shards",
                (unsigned long long)k->max_bytes, (unsigned long long)nshards,
                (unsigned long long)(held + least),
                k->folder ? "" : "name a folder to spill to, ");
        bly_joined keys;
        st = bly_kept_gather(k, nshards, g.first, g.n, g.nkeys, &keys);
        if (!st)
            st = f->kind->build_part(f, g.first, g.n, keys.h, keys.values,
                                     keys.n, g.nthreads);
        bly_joined_free(k, &keys);
    }
    return st;
}

static bly_status build_by_shard(bly_kept *k, bly_filter *f, unsigned nthreads)
{
    const uint64_t nshards = f->kind->shards(&f->shape);
    const size_t nbytes = (size_t)nshards * sizeof(uint64_t);
    uint64_t *counts = bly_mem_zalloc(&k->mem, nbytes);
    if (!counts)
        return bly_fail(BLY_ENOMEM, "out of memory: %zu bytes", nbytes);
    bly_status st = bly_kept_count(k, nshards, counts);
    if (!st)
        st = build_groups(k, f, counts, nshards, nthreads);
    bly_mem_release(&k->mem, counts, nbytes);
    return st;
}

/* A static kind without shards needs all keys at once. */
static bly_status build_at_once(bly_kept *k, bly_filter *f, unsigned nthreads)
{
    const uint64_t nbytes = k->nkeys * (k->valued ? 16 : 8);
    if (nbytes + f->shape.nbytes > k->max_bytes)
        return bly_fail(BLY_ERANGE,
                        "a %s filter is built from all keys at once, which "
                        "takes %llu bytes; the bound is %llu",
                        f->kind->name,
                        (unsigned long long)(nbytes + f->shape.nbytes),
                        (unsigned long long)k->max_bytes);
    bly_joined keys;
    bly_status st = bly_kept_join(k, &keys);
    if (!st)
        st = f->kind->build(f, keys.h, keys.values, keys.n, nthreads);
    bly_joined_free(k, &keys);
    return st;
}

bly_status bly_spilled_fill(bly_kept *k, bly_filter *f, bool set,
                            unsigned nthreads)
{
    uint64_t none = 0;
    if (f->kind->build_part)
        return build_by_shard(k, f, nthreads);
    if (f->kind->build)
        return build_at_once(k, f, nthreads);
    return set ? each_part(k, f, visit_add, &none) : add_chunks(k, f);
}
