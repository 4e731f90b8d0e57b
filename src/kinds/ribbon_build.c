/*
 * ribbon_build.c - filling the layers of a ribbon filter
 *
 * This goes layer by layer: hash the keys, bring those of each shard together,
 * and let threads take shards, which are independent of each other. Keys that a
 * shard bumps go to the next layer. The last layer has no next one, so it is
 * given room to spare. If its rows do not fit all the same, its seed is
 * changed, as often as necessary. Only if it has fewer slots than keys, which
 * takes bad luck or an adversary, does everything start again with another seed
 * for the first layer.
 *
 * Everything happens in the caller's array, and no key is ever lost there:
 * bumped keys are swapped to the front, and hashing is a bijection, so the keys
 * can be recovered for the next attempt.
 *
 * A shard depends on its keys alone, and these are sorted. So the same keys
 * make the same bytes, in any order and with any number of threads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/sort.h"
#include "core/status.h"
#include "kinds/ribbon.h"

#define RIBBON_THREADS 64

/* Seeds for the last layer, and for the first. Even in the tightest last layer
 * that plan() makes, at least one seed in ten succeeds: 0.9^1000 is 10^-46. */
#define RIBBON_TRIES 1000
#define RIBBON_ATTEMPTS 30

/* What a build works with, and its progress in the current layer. */
typedef struct ribbon_job {
    const bly_ribbon_layer *layer;
    unsigned char *data;
    uint64_t *u;
    size_t *from;    /* the first key of each shard, and the end */
    size_t *kept;    /* number of its distinct keys */
    size_t *nbumped; /* how many of them found no room */
    bly_block lists; /* holds these three */
    bly_block rooms; /* one per thread, each for a shard */
    size_t per;      /* words of a room */
    unsigned nthreads;
    _Atomic size_t next_shard;
    _Atomic unsigned next_thread;
} ribbon_job;

/* Hash n keys, and bring the keys of each shard together. */
static void ribbon_deal(ribbon_job *job, uint64_t seed, size_t n)
{
    /* job->kept is free until the shards are solved: room to count in. */
    const uint64_t nshards = job->layer->nshards;
    if (job->layer->out)
        for (size_t i = 0; i < n; i++)
            job->u[i] = bly_ribbon_hash_valued(job->u[i], seed);
    else
        for (size_t i = 0; i < n; i++)
            job->u[i] = bly_ribbon_hash(job->u[i], seed);
    bly_hashes_part(job->u, NULL, n, nshards, 0, (size_t)nshards, job->from,
                    job->kept);
}

/* The keys of a shard are sorted by their share, the fraction of the shard that
 * lies before them: first into heaps of 512 to 1024 keys, then each heap, which
 * fits into the L1 cache, into bins of one or two. With good hashes a bin of
 * more than 64 keys does not occur (10^-90). */
#define RIBBON_HEAP 1024
#define RIBBON_HEAP_BITS 8 /* enough for 2^18 keys; a shard has 2^16 slots */
#define RIBBON_BIN_BITS 11
#define RIBBON_BIN_MAX 64

/* Copy n keys, ordered by the `bits` bits of their share that follow the
 * highest `above` bits; end[b] becomes the end of the keys with bits b. Returns
 * the largest number of keys that agree in these bits; if that is more than
 * `most`, nothing is copied. */
static uint32_t ribbon_spread(uint64_t nshards, const uint64_t *from, size_t n,
                              unsigned above, unsigned bits, uint32_t most,
                              uint32_t *end, uint64_t *to)
{
    /* from[i] * nshards mod 2^64 is the share, as in bly_ribbon_place(). */
    const unsigned below = 64 - bits;
    uint32_t sum = 0, largest = 0;
    memset(end, 0, sizeof *end << bits);
    for (size_t i = 0; i < n; i++)
        end[from[i] * nshards << above >> below]++;
    for (size_t b = 0; b < (size_t)1 << bits; b++) {
        const uint32_t count = end[b];
        largest = count > largest ? count : largest;
        end[b] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n && largest <= most; i++)
        to[end[from[i] * nshards << above >> below]++] = from[i];
    return largest;
}

/* Sort the keys of a shard, drop repeated ones, and return how many are left.
 * room holds as many keys as a shard should have; if that is not enough, or
 * bins are uneven, the array is sorted in place. */
static size_t ribbon_sort(uint64_t nshards, uint64_t *u, size_t n,
                          uint64_t *room, size_t nroom)
{
    uint32_t heap[1 << RIBBON_HEAP_BITS], bin[1 << RIBBON_BIN_BITS];
    unsigned bits = 1;
    size_t kept = 0, i = 0;
    while (bits < RIBBON_HEAP_BITS && n >> bits > RIBBON_HEAP)
        bits++;
    if (n > nroom) {
        bly_hashes_unique(u, NULL, &n);
        return n;
    }
    ribbon_spread(nshards, u, n, 0, bits, UINT32_MAX, heap, room);
    for (size_t b = 0; b < (size_t)1 << bits; b++) {
        if (ribbon_spread(nshards, room + i, heap[b] - i, bits, RIBBON_BIN_BITS,
                          RIBBON_BIN_MAX, bin, u + i) > RIBBON_BIN_MAX) {
            memcpy(u, room, n * sizeof *u);
            bly_hashes_unique(u, NULL, &n);
            return n;
        }
        /* Bins are in order, so insertion moves a key only within its own bin:
         * a place or two. kept <= i: nothing unread is overwritten. */
        for (; i < heap[b]; i++) {
            const uint64_t key = u[i];
            size_t at = kept;
            while (at > 0 && u[at - 1] > key)
                at--;
            if (at > 0 && u[at - 1] == key)
                continue;
            for (size_t j = kept++; j > at; j--)
                u[j] = u[j - 1];
            u[at] = key;
        }
    }
    return kept;
}

/* Take shards until there are none. */
static void *ribbon_worker(void *arg)
{
    ribbon_job *job = arg;
    const bly_ribbon_layer *const l = job->layer;
    uint64_t *const room = (uint64_t *)(void *)job->rooms.at +
                           job->per * atomic_fetch_add(&job->next_thread, 1);
    size_t s;
    while ((s = atomic_fetch_add(&job->next_shard, 1)) < l->nshards) {
        uint64_t *const u = job->u + job->from[s];
        const size_t n = job->from[s + 1] - job->from[s];
        /* The room is used twice: for sorting, and then for the rows. */
        bly_ribbon_part part = {
            .shard = s,
            .u = u,
            .n = ribbon_sort(l->nshards, u, n, room, job->per),
            .room = room,
        };
        bly_ribbon_solve(l, &part, job->data);
        job->kept[s] = part.n;
        job->nbumped[s] = part.nbumped;
    }
    return NULL;
}

/* Fill a layer with n keys. *kept becomes the number of distinct keys. Returns
 * how many of them were bumped; these are moved to the front. */
static size_t ribbon_fill_layer(ribbon_job *job, uint64_t seed, size_t n,
                                size_t *kept)
{
    pthread_t threads[RIBBON_THREADS];
    unsigned started = 0;
    size_t nbumped = 0;
    ribbon_deal(job, seed, n);
    atomic_store(&job->next_shard, 0);
    atomic_store(&job->next_thread, 0);
    while (started + 1 < job->nthreads && started + 1 < job->layer->nshards &&
           pthread_create(&threads[started], NULL, ribbon_worker, job) == 0)
        started++;
    ribbon_worker(job);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    /* Go in order of shards, so that the result does not depend on which thread
     * was first. nbumped never gets past the shard's first key, so a swap loses
     * nothing. */
    *kept = 0;
    for (size_t s = 0; s < job->layer->nshards; s++) {
        uint64_t *const bumped = job->u + job->from[s];
        *kept += job->kept[s];
        for (size_t i = 0; i < job->nbumped[s]; i++) {
            const uint64_t key = bumped[i];
            bumped[i] = job->u[nbumped];
            job->u[nbumped++] = key;
        }
    }
    return nbumped;
}

static void ribbon_unhash_all(const ribbon_job *job, size_t n, uint64_t seed)
{
    uint64_t *const u = job->u;
    for (size_t i = 0; i < n; i++)
        u[i] = job->layer->out ? bly_ribbon_unhash_valued(u[i], seed)
                               : bly_ribbon_unhash(u[i], seed);
}

/* Fill all layers. False if the last one cannot take its keys; then u holds the
 * same keys as before, in another order. *distinct is set in any case. */
static bool ribbon_attempt(ribbon_job *job, const bly_ribbon_map *map, size_t n,
                           uint64_t *seeds, uint64_t *distinct)
{
    size_t nkeys[BLY_RIBBON_LAYERS] = { n }, kept = 0;
    const unsigned last = map->nlayers - 1;
    bool done = false;
    for (unsigned i = 0; i < last; i++) {
        job->layer = &map->layer[i];
        nkeys[i + 1] = ribbon_fill_layer(job, seeds[i], nkeys[i], &kept);
        /* Repeated keys all meet in one shard of the first layer. */
        if (i == 0)
            *distinct = kept;
    }
    job->layer = &map->layer[last];
    for (seeds[last] = 0; seeds[last] < RIBBON_TRIES; seeds[last]++) {
        done = !ribbon_fill_layer(job, seeds[last], nkeys[last], &kept);
        if (last == 0)
            *distinct = kept;
        if (done)
            return true;
        ribbon_unhash_all(job, nkeys[last], seeds[last]);
        if (kept > job->layer->nslots)
            break; /* no seed can help */
    }
    /* Undo the hashing, layer by layer. The keys that layer i bumped come first
     * among its keys, and are hashes of layer i again by now. So all keys of
     * layer i can be taken back one step. */
    for (unsigned i = last; i-- > 0;)
        ribbon_unhash_all(job, nkeys[i], seeds[i]);
    return false;
}

static bly_status ribbon_open(ribbon_job *job, const bly_filter *f,
                              const bly_ribbon_map *map, unsigned nthreads)
{
    /* Memory for the largest layer serves all layers, one after another. */
    uint64_t nshards = 0, nslots = 0;
    for (unsigned i = 0; i < map->nlayers; i++) {
        const bly_ribbon_layer *l = &map->layer[i];
        nshards = l->nshards > nshards ? l->nshards : nshards;
        nslots = l->nslots > nslots ? l->nslots : nslots;
    }
    if (nthreads > nshards)
        nthreads = (unsigned)nshards;
    job->nthreads = nthreads < RIBBON_THREADS ? nthreads : RIBBON_THREADS;
    job->per = BLY_RIBBON_ROOM * (size_t)nslots;
    job->data = f->data;
    bly_status st = bly_block_new(
        bly_filter_mem(f), 3 * (nshards + 1) * sizeof(size_t), &job->lists);
    if (st)
        return st;
    job->from = (size_t *)(void *)job->lists.at;
    job->kept = job->from + nshards + 1;
    job->nbumped = job->kept + nshards + 1;
    st = bly_block_new(bly_filter_mem(f),
                       (uint64_t)job->nthreads * job->per * sizeof(uint64_t),
                       &job->rooms);
    if (st)
        bly_block_free(bly_filter_mem(f), &job->lists);
    return st;
}

bly_status bly_ribbon_build(bly_filter *f, uint64_t *h, uint64_t *values,
                            size_t n, unsigned nthreads)
{
    uint64_t seeds[BLY_RIBBON_LAYERS] = { 0 }, distinct = 0;
    bly_ribbon_map map;
    ribbon_job job = { .u = h };
    bool done = false;
    (void)values;
    bly_ribbon_map_of(&f->shape, &map);
    bly_status st = ribbon_open(&job, f, &map, nthreads);
    if (st)
        return st;
    /* More different keys than planned: no seed would help. */
    while (!done && distinct <= f->items && seeds[0] < RIBBON_ATTEMPTS) {
        done = ribbon_attempt(&job, &map, n, seeds, &distinct);
        if (!done)
            seeds[0]++;
    }
    if (distinct > f->items)
        st = bly_fail(BLY_EFULL,
                      "%llu different keys are more than the %llu that the "
                      "filter was planned for",
                      (unsigned long long)distinct,
                      (unsigned long long)f->items);
    else if (!done)
        st = bly_fail(BLY_EFULL, "no seed serves these hashes: they are not "
                                 "as good hashes are");
    if (st) {
        /* A failed build leaves an empty filter, not half a one. */
        memset(f->data, 0, (size_t)f->shape.nbytes);
    } else {
        memcpy(&f->state[BLY_RIBBON_SEED], seeds, sizeof seeds);
        f->state[BLY_RIBBON_KEYS] = distinct;
        f->nadded = distinct;
        f->items = distinct ? distinct : 1; /* no capacity is zero */
        bly_filter_ready(f);                /* no longer empty */
    }
    bly_block_free(bly_filter_mem(f), &job.rooms);
    bly_block_free(bly_filter_mem(f), &job.lists);
    return st;
}
