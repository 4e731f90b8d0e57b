/*
 * peel.c - equations solved by peeling
 *
 * A shard is peeled in one array of words, one word per slot:
 *
 *     | XOR of the words g of the keys that are left here | how many: 6 bits |
 *
 * so that a slot whose count is one holds its key. Keys are sorted by the
 * segment in which they begin before they are entered. Slots are peeled segment
 * by segment, and those of each segment are followed by all that become free
 * through them. So most of what is touched is in the second-level cache: a
 * window of three segments is 384 KiB at two million keys per shard.
 *
 * The sizes of segments are those of Graf and Lemire; peeling from the ends of
 * a long row needs 1.125 slots per key where three parts take 1.23.
 *
 * Botelho, Pagh and Ziviani, Simple and Space-Efficient Minimal Perfect Hash
 *   Functions, 2007
 * Graf and Lemire, Xor Filters, 2020; Binary Fuse Filters, 2022
 * Dietzfelbinger and Walzer, Dense Peelable Random Uniform Hypergraphs, 2019
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/sort.h"
#include "core/status.h"
#include "engine/peel.h"

/* The most keys per shard that plan chooses: peeling them takes some 100 MB of
 * scratch memory per thread, and a window that fits a second-level cache. */
#define SHARD_KEYS (UINT64_C(1) << 22)
#define MAX_SHARDS (UINT64_C(1) << 32)
/* Slots are numbered with 32 bits while peeling. */
#define MAX_SLOTS UINT32_MAX
/* bly_peel_slots() takes the place in each further segment from 18 bits of one
 * product: three such fields fit into 64 bits. */
#define MAX_SEGMENT (UINT64_C(1) << 18)
/* An attempt fails in a few percent of cases at worst; if a hundred fail,
 * something else is wrong. */
#define MAX_SEEDS 100

const bly_peel_row bly_peel_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_peel_fill_avx512, bly_peel_find_avx512,
      bly_peel_prints_avx512 },
#endif
    { "portable", 0, NULL, NULL, NULL },
};

BLY_CHOOSE(peel)

/* --------------------------------------------------------------- planning */

/* The number of keys for which each of s shards has room: the mean plus six
 * deviations, which one filter in a million exceeds even with a thousand
 * shards. */
static double shard_room(double n, double s)
{
    const double mean = n / s;
    return s > 1 ? ceil(mean + 6 * sqrt(mean) + 6) : n;
}

/* Slots of three parts: 1.23 per key, and 32 more, without which a handful of
 * keys would seldom peel. */
static void plan_xor(double n, bly_peel *out)
{
    out->windows = 1;
    out->segment = (uint64_t)(floor(1.23 * n + 32) / 3);
}

static void plan_fuse(double n, bly_peel *out)
{
    /* Segment lengths and factors are the paper's, found there by experiment.
     * The logarithm of no keys is -inf, from which fmax() below makes the
     * shortest segment. */
    const double ln = log(n > 2 ? n : 2);
    const bool three = out->arity == 3;
    const double power =
        three ? log(n) / log(3.33) + 2.25 : log(n) / log(2.91) - 0.5;
    const double factor = three ? fmax(1.125, 0.875 + 0.25 * log(1e6) / ln)
                                : fmax(1.075, 0.77 + 0.305 * log(6e5) / ln);
    const double slots = n > 1 ? round(n * factor) : 0;
    out->segment = (uint64_t)1 << (unsigned)fmin(18, fmax(2, floor(power)));
    const double segments = ceil(slots / (double)out->segment);
    /* The last arity - 1 segments are no windows: a key that began there would
     * reach past the end. */
    const double windows = segments - (out->arity - 1);
    out->windows = windows > 1 ? (uint64_t)windows : 1;
}

bly_status bly_peel_plan(const char *kind, uint64_t n, uint64_t nshards,
                         unsigned arity, bool fuse, bly_peel *out)
{
    if (nshards > MAX_SHARDS)
        return bly_fail(BLY_EINVAL, "a %s filter has at most 2^32 shards",
                        kind);
    uint64_t s = nshards ? nshards : 1;
    /* Powers of two: with eight shards or fewer the AVX-512 variant looks the
     * shard up by the top three bits of the hash. */
    while (!nshards && n / s > SHARD_KEYS)
        s *= 2;
    const double room = shard_room((double)n, (double)s);
    /* At most 1.23 slots per key, so 0.75 of all slot numbers leaves a
     * margin. */
    if (room > 0.75 * (double)MAX_SLOTS)
        return bly_fail(BLY_ERANGE,
                        "a shard of a %s filter has at most %.0f keys: %llu "
                        "need more than %llu shards",
                        kind, 0.75 * (double)MAX_SLOTS, (unsigned long long)n,
                        (unsigned long long)s);
    *out = (bly_peel){ .nshards = s, .arity = arity, .fuse = fuse };
    if (fuse)
        plan_fuse(room, out);
    else
        plan_xor(room, out);
    out->nslots = (out->windows + arity - 1) * out->segment;
    return BLY_OK;
}

bool bly_peel_sane(bly_peel *p)
{
    if (p->nshards < 1 || p->nshards > MAX_SHARDS || p->segment < 1 ||
        p->segment > MAX_SLOTS || p->windows < 1 || p->windows > MAX_SLOTS ||
        p->arity < 3 || p->arity > BLY_PEEL_MAX_ARITY)
        return false;
    if (p->fuse ? (p->segment & (p->segment - 1)) || p->segment > MAX_SEGMENT
                : p->windows != 1)
        return false;
    /* windows is 1, or a segment at most 2^18: nothing overflows. */
    p->nslots = (p->windows + p->arity - 1) * p->segment;
    return p->nslots <= MAX_SLOTS;
}

/* 0 where that is past 2^56 bytes: 2^32 shards of 2^32 slots would overflow. */
uint64_t bly_peel_nbytes(const bly_peel *p, unsigned cell_bits)
{
    const double bytes = (double)p->nshards * (double)p->nslots * cell_bits / 8;
    return bytes < 0x1p56
               ? bly_peel_head(p->nshards) +
                     (p->nshards * p->nslots * cell_bits + 63) / 64 * 8
               : 0;
}

/* ---------------------------------------------------------------- peeling */

/* Slots of the queue whose keys are fetched ahead, and at twice that distance
 * the slots themselves. */
#define PEEL_AHEAD 16

/* The memory in which one shard is peeled. */
typedef struct scratch {
    bly_block block;
    uint64_t *words, *values;      /* the keys: sorted, then in order */
    uint64_t *slots, *slot_values; /* XOR of what is left there */
    uint32_t *queue;               /* slots with one key */
} scratch;

uint64_t bly_peel_scratch(const bly_peel *p, uint64_t n, bool valued)
{
    return (n + p->nslots) * (valued ? 16 : 8) +
           (p->nslots + 2 * PEEL_AHEAD) * sizeof(uint32_t);
}

static bly_status scratch_new(const bly_mem *mem, const bly_peel *p,
                              size_t room, bool valued, scratch *out)
{
    *out = (scratch){ 0 };
    const bly_status st =
        bly_block_new(mem, bly_peel_scratch(p, room, valued), &out->block);
    if (st)
        return st;
    /* The 32-bit queue comes last, so everything is aligned. */
    out->words = (uint64_t *)(void *)out->block.at;
    out->slots = out->words + room;
    uint64_t *next = out->slots + p->nslots;
    if (valued) {
        out->values = next;
        out->slot_values = next + room;
        next += room + p->nslots;
    }
    out->queue = (uint32_t *)(void *)next;
    return BLY_OK;
}

/* Parts into which keys are sorted before they are entered. */
#define MAX_PARTS_BITS 10

static unsigned parts_bits(const bly_peel *p)
{
    unsigned bits = 1;
    while (bits < MAX_PARTS_BITS && (uint64_t)1 << bits < p->windows)
        bits++;
    return bits;
}

/* Copy the keys to s->words, sorted by the highest bits of g. */
static void sort_words(const bly_peel *p, const uint64_t *h,
                       const uint64_t *values, size_t n, uint64_t seed,
                       scratch *s)
{
    size_t next[(1 << MAX_PARTS_BITS) + 1] = { 0 };
    const unsigned bits = parts_bits(p);
    /* Counts are kept one entry up, so that adding them up leaves in each entry
     * where its part begins. */
    for (size_t i = 0; i < n; i++)
        next[(bly_peel_word(h[i], seed, p->light) >> (64 - bits)) + 1]++;
    for (size_t b = 1; b < (size_t)1 << bits; b++)
        next[b] += next[b - 1];
    for (size_t i = 0; i < n; i++) {
        const uint64_t g = bly_peel_word(h[i], seed, p->light);
        const size_t to = next[g >> (64 - bits)]++;
        s->words[to] = g;
        if (values)
            s->values[to] = values[i];
    }
}

/* Zero the slots that keys up to the last of a block may have. Keys are sorted
 * only by their highest bits, so the bits below these are assumed to be ones. A
 * segment is zeroed just before it is needed, so that it is in the cache
 * then. */
static uint64_t zero_slots(const bly_peel *p, uint64_t last, uint64_t zeroed,
                           scratch *s)
{
    /* A key of window w touches the segments w to w + arity - 1, and no window
     * is above windows - 1: this never passes nslots. */
    const uint64_t most = last | UINT64_MAX >> parts_bits(p);
    const uint64_t end = (bly_scale(most, p->windows) + p->arity) * p->segment;
    if (end > zeroed) {
        const size_t n = (size_t)(end - zeroed);
        memset(s->slots + zeroed, 0, n * sizeof *s->slots);
        if (s->values)
            memset(s->slot_values + zeroed, 0, n * sizeof *s->slots);
        zeroed = end;
    }
    return zeroed;
}

/* Enter n keys into the slots; false if a slot has too many to count. Slots are
 * fetched a block of keys ahead. */
static inline __attribute__((always_inline)) bool
enter_keys(const bly_peel *p, unsigned arity, bool fuse, bool valued, size_t n,
           scratch *s)
{
    uint64_t *const slots = s->slots, *const slot_values = s->slot_values;
    const bly_peel_row *const row = bly_peel_best();
    bly_peel_block blocks[2];
    uint64_t over = 0, zeroed = 0;
    /* Two blocks take turns: while the keys of one are entered, the slots of
     * the next are on their way from memory. There is one more turn than there
     * are blocks, in which the last is entered. */
    for (size_t from = 0, turn = 0; from < n + BLY_PEEL_BLOCK;
         from += BLY_PEEL_BLOCK, turn ^= 1) {
        const bly_peel_block *const now = &blocks[turn ^ 1], *const next =
                                                                 &blocks[turn];
        const size_t nnext = bly_peel_block_at(from, n);
        const size_t nnow =
            from ? bly_peel_block_at(from - BLY_PEEL_BLOCK, n) : 0;
        if (nnext) {
            zeroed = zero_slots(p, s->words[from + nnext - 1], zeroed, s);
            bly_peel_fill(p, arity, fuse, row, s->words + from, nnext,
                          &blocks[turn]);
        }
        /* The first block has no block before it to overlap its fetches with.
         * For all others this loop is empty, and the fetches below are spread
         * between the keys. */
        for (size_t j = nnow; j < nnext; j++)
            for (unsigned k = 0; k < arity; k++)
                __builtin_prefetch(&slots[next->at[k][j]], 1, 3);
        for (size_t j = 0; j < nnow; j++) {
            const size_t i = from - BLY_PEEL_BLOCK + j;
            const uint64_t g = s->words[i];
            if (j < nnext)
                for (unsigned k = 0; k < arity; k++)
                    __builtin_prefetch(&slots[next->at[k][j]], 1, 3);
            for (unsigned k = 0; k < arity; k++) {
                const uint32_t at = now->at[k][j];
                const uint64_t with = slots[at] ^ g;
                /* The low six bits are the count; where the addition carries
                 * past them, bit 6 changes. One test at the end is enough. */
                over |= with ^ (with + 1);
                slots[at] = with + 1;
                if (valued)
                    slot_values[at] ^= s->values[i];
            }
        }
    }
    /* Windows behind the last key may never have been reached. */
    if (zeroed < p->nslots)
        zero_slots(p, UINT64_MAX, zeroed, s);
    return !(over & (BLY_PEEL_LOW + 1));
}

/* Slots that have one key wait in a queue. Remove the keys at the slots from
 * next to *end, and at slots that are left with one key by this, which are
 * appended at *end. Returns how many keys have been removed so far; n had been
 * before. */
static inline __attribute__((always_inline)) size_t
peel_queue(const bly_peel *p, unsigned arity, bool fuse, bool valued,
           size_t next, size_t *end, size_t n, scratch *s)
{
    uint64_t *const slots = s->slots, *const slot_values = s->slot_values;
    uint64_t *const words = s->words;
    uint32_t *const queue = s->queue;
    const unsigned shift = (unsigned)__builtin_ctzll(p->segment);
    size_t last = *end;
    for (; next < last; next++) {
        /* Past the end of the queue lie zeros or slots of an earlier shard:
         * fetching those does no harm. */
        uint64_t soon[BLY_PEEL_MAX_ARITY], slot[BLY_PEEL_MAX_ARITY];
        /* Two stages: a queued slot must have arrived before its key can be
         * read and the other slots of that key can be fetched. */
        __builtin_prefetch(&slots[queue[next + 2 * PEEL_AHEAD]], 1, 2);
        bly_peel_slots(p, arity, fuse,
                       slots[queue[next + PEEL_AHEAD]] & ~BLY_PEEL_LOW, 0,
                       soon);
        for (unsigned k = 0; k < arity; k++)
            __builtin_prefetch(&slots[soon[k]], 1, 3);
        const uint32_t own = queue[next];
        const uint64_t g = slots[own] - 1;
        /* The count was one when the slot was queued. If it is zero now, the
         * key was removed at another of its slots, which happens to one in
         * twenty. */
        if (g & BLY_PEEL_LOW)
            continue;
        const uint64_t value = valued ? slot_values[own] : 0;
        bly_peel_slots(p, arity, fuse, g, 0, slot);
        for (unsigned k = 0; k < arity; k++) {
            const uint64_t left = (slots[slot[k]] ^ g) - 1;
            slots[slot[k]] = left;
            if (valued)
                slot_values[slot[k]] ^= value;
            /* Always written, and kept only if one key is left: no branch that
             * would be hard to predict. */
            queue[last] = (uint32_t)slot[k];
            last += (left & BLY_PEEL_LOW) == 1;
        }
        if (valued)
            s->values[n] = value;
        /* All keys are in the slots by now, so their array is free to take them
         * again in the order of peeling, each with the number of its own slot,
         * which is the distance in segments from the first. */
        words[n++] = g | (fuse ? (own >> shift) - (slot[0] >> shift)
                               : own / (uint32_t)p->segment);
    }
    *end = last;
    return n;
}

/* Peel, and return how many keys were removed. This goes segment by segment:
 * first the slots that have one key, then those that follow from them, which
 * are near. A slot is left with one key only once, so the queue has room for
 * all. In the xor geometry every key reaches everywhere, and the whole shard is
 * one step. */
static inline __attribute__((always_inline)) size_t
peel_keys(const bly_peel *p, unsigned arity, bool fuse, bool valued, scratch *s)
{
    const uint64_t step = fuse ? p->segment : p->nslots;
    size_t n = 0, end = 0;
    for (uint64_t from = 0; from < p->nslots; from += step) {
        const size_t next = end;
        /* Slots that were left with one key earlier have been peeled by now and
         * have none, so no slot is queued twice. */
        for (uint64_t i = from; i < from + step; i++) {
            s->queue[end] = (uint32_t)i;
            end += (s->slots[i] & BLY_PEEL_LOW) == 1;
        }
        n = peel_queue(p, arity, fuse, valued, next, &end, n, s);
    }
    return n;
}

static inline __attribute__((always_inline)) bool
peel_body(const bly_peel *p, unsigned arity, bool fuse, bool valued, size_t n,
          scratch *s)
{
    const bly_peel geometry = *p; /* a local copy, which no store can alias */
    return enter_keys(&geometry, arity, fuse, valued, n, s) &&
           peel_keys(&geometry, arity, fuse, valued, s) == n;
}

/* Peel n keys with this seed; true if that worked. Only bloomier, which is like
 * fuse, has values. */
static bool peel_seeded(const bly_peel *p, const uint64_t *h,
                        const uint64_t *values, size_t n, uint64_t seed,
                        scratch *s)
{
    sort_words(p, h, values, n, seed, s);
    /* Literals, so that the loops are compiled for each geometry. */
    if (!p->fuse)
        return peel_body(p, 3, false, values != NULL, n, s);
    if (values)
        return peel_body(p, p->arity, true, true, n, s);
    return p->arity == 3 ? peel_body(p, 3, true, false, n, s)
                         : peel_body(p, 4, true, false, n, s);
}

/* ----------------------------------------------------------------- shards */

typedef struct peel_job {
    const bly_peel_task *task;
    size_t *start;             /* of each shard's keys; one more at the end */
    _Atomic uint64_t next;     /* shard to be taken */
    _Atomic uint64_t distinct; /* keys */
    pthread_mutex_t lock;      /* of the two below */
    bly_status status;         /* the first failure */
    char error[1024];
} peel_job;

/* The seed of an attempt. The order is fixed, so the same keys always give the
 * same bytes. */
static uint64_t seed_of(const bly_peel *p, unsigned attempt)
{
    return bly_mix64(attempt + 1) | p->light;
}

static bly_status build_shard(peel_job *job, uint64_t number, scratch *s)
{
    const bly_peel_task *const task = job->task;
    uint64_t *const h = task->h + job->start[number];
    uint64_t *const values =
        task->values ? task->values + job->start[number] : NULL;
    size_t n = job->start[number + 1] - job->start[number];
    const uint64_t shard = task->first + number;
    bool unique = false;
    unsigned attempt = 0;
    while (!peel_seeded(task->p, h, values, n, seed_of(task->p, attempt), s)) {
        const size_t before = n;
        if (!unique) {
            const bly_status st = bly_hashes_unique(h, values, &n);
            if (st)
                return st;
            unique = true;
        }
        /* If keys were repeated, this seed has not had a fair chance yet. */
        if (n == before && ++attempt == MAX_SEEDS)
            return bly_fail(BLY_EFULL,
                            "%zu keys do not fit into a shard of %llu slots; "
                            "plan for more keys%s",
                            n, (unsigned long long)task->p->nslots,
                            task->p->light ? ", or with mixing=full if their "
                                             "hashes are not spread over 64 "
                                             "bits"
                                           : "");
    }
    const bly_peeled keys = { shard, n, s->words, s->values };
    /* Shards share no byte, so workers need no lock to write them. */
    bly_store64(task->data + shard * 8, seed_of(task->p, attempt));
    task->assign(task->ctx, task->p, &keys);
    atomic_fetch_add(&job->distinct, n);
    return BLY_OK;
}

typedef struct peel_worker {
    peel_job *job;
    scratch scratch;
    pthread_t thread;
} peel_worker;

/* Take shards until there are none left. Each thread has its own
 * bly_error(). */
static void *build_shards(void *arg)
{
    peel_worker *w = arg;
    peel_job *job = w->job;
    uint64_t number;
    while ((number = atomic_fetch_add(&job->next, 1)) < job->task->nshards) {
        const bly_status st = build_shard(job, number, &w->scratch);
        if (!st)
            continue;
        pthread_mutex_lock(&job->lock);
        if (!job->status) {
            job->status = st;
            snprintf(job->error, sizeof job->error, "%s", bly_error());
        }
        pthread_mutex_unlock(&job->lock);
        /* The build has failed: let the others stop after their current
         * shard. */
        atomic_store(&job->next, job->task->nshards);
    }
    return NULL;
}

#define MAX_WORKERS 64

static bly_status run_workers(peel_job *job, unsigned nthreads)
{
    const bly_peel_task *const task = job->task;
    peel_worker workers[MAX_WORKERS];
    unsigned n = nthreads < MAX_WORKERS ? nthreads : MAX_WORKERS;
    if (n > task->nshards)
        n = (unsigned)task->nshards;
    /* Any worker may get the fullest shard. */
    size_t room = 0;
    for (uint64_t i = 0; i < task->nshards; i++)
        if (job->start[i + 1] - job->start[i] > room)
            room = job->start[i + 1] - job->start[i];
    unsigned made = 0, started = 0;
    bly_status st = BLY_OK;
    /* All memory is allocated before the first thread starts, so that if it
     * runs out, no thread has to be stopped. */
    for (; made < n && !st; made += !st) {
        workers[made].job = job;
        st = scratch_new(task->mem, task->p, room, task->values != NULL,
                         &workers[made].scratch);
    }
    if (!st) {
        /* The caller works, too. If a thread cannot be started, the others take
         * its shards. */
        while (started + 1 < n &&
               !pthread_create(&workers[started].thread, NULL, build_shards,
                               &workers[started]))
            started++;
        build_shards(&workers[n - 1]);
        for (unsigned i = 0; i < started; i++)
            pthread_join(workers[i].thread, NULL);
        if (job->status)
            st = bly_fail(job->status, "%s", job->error);
    }
    for (unsigned i = 0; i < made; i++)
        bly_block_free(task->mem, &workers[i].scratch.block);
    return st;
}

bly_status bly_peel_build(const bly_peel_task *task, unsigned nthreads,
                          uint64_t *ndistinct)
{
    /* Where each shard begins and the last one ends, and as much room again
     * for bly_hashes_part() to count in. */
    const size_t nshards = (size_t)task->nshards;
    const size_t nbytes = (2 * nshards + 1) * sizeof(size_t);
    size_t *start = bly_mem_zalloc(task->mem, nbytes);
    if (!start)
        return bly_fail(BLY_ENOMEM, "out of memory: %zu bytes", nbytes);
    peel_job job = {
        .task = task,
        .start = start,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    bly_hashes_part(task->h, task->values, task->n, task->p->nshards,
                    task->first, nshards, start, start + nshards + 1);
    const bly_status st = run_workers(&job, nthreads);
    bly_mem_release(task->mem, start, nbytes);
    *ndistinct = job.distinct;
    return st;
}
