/*
 * bench_kinds.c - contenders of the bench: every kind of the table
 *
 * Keys are integers, and hashing them is part of the time. Operations for which
 * the library has no call with integers (removing, counting) get hashes, in
 * pieces that stay in the first-level cache.
 */
#define _GNU_SOURCE
#include <string.h>
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "workbench/bench.h"

static const char *error_of(bly_status st)
{
    return st ? bly_error() : NULL;
}

/* ------------------------------------------------------------ operations */

static const char *step_add(void *f, const uint64_t *keys, size_t n,
                            struct bench_scratch *s)
{
    (void)s;
    return error_of(bly_add_ints(f, keys, n, NULL, NULL));
}

static const char *step_ask(void *f, const uint64_t *keys, size_t n,
                            struct bench_scratch *s)
{
    bly_has_ints(f, keys, n, s->maybe);
    return NULL;
}

static inline __attribute__((always_inline)) const char *
ask_by(void *f, const uint64_t *keys, size_t n, struct bench_scratch *s,
       size_t by)
{
    for (size_t at = 0; at < n; at += by)
        bly_has_ints(f, keys + at, n - at < by ? n - at : by,
                     s->maybe + at / 64);
    return NULL;
}

static const char *step_calls_64(void *f, const uint64_t *keys, size_t n,
                                 struct bench_scratch *s)
{
    return ask_by(f, keys, n, s, 64);
}

static const char *step_calls_256(void *f, const uint64_t *keys, size_t n,
                                  struct bench_scratch *s)
{
    return ask_by(f, keys, n, s, 256);
}

/* Ask, then visit the keys whose bit is set. */
static const char *step_act(void *f, const uint64_t *keys, size_t n,
                            struct bench_scratch *s)
{
    enum { CALL = 4096 };
    uint64_t sum = 0;
    for (size_t at = 0; at < n; at += CALL) {
        const size_t count = n - at < CALL ? n - at : CALL;
        bly_has_ints(f, keys + at, count, s->maybe);
        for (size_t w = 0; w < BLY_BITMAP_WORDS(count); w++)
            for (uint64_t bits = s->maybe[w]; bits; bits &= bits - 1)
                sum += keys[at + 64 * w + (size_t)__builtin_ctzll(bits)];
    }
    s->sum += sum;
    return NULL;
}

static const char *step_remove(void *f, const uint64_t *keys, size_t n,
                               struct bench_scratch *s)
{
    for (size_t at = 0; at < n; at += BENCH_PIECE) {
        const size_t count = n - at < BENCH_PIECE ? n - at : BENCH_PIECE;
        bly_hash_ints(bly_hasher_of(f), keys + at, count, s->hashes);
        bly_remove_hashes(f, s->hashes, count, s->each);
    }
    return NULL; /* a refusal is an answer too */
}

static const char *step_count(void *f, const uint64_t *keys, size_t n,
                              struct bench_scratch *s)
{
    bly_status st = BLY_OK;
    for (size_t at = 0; at < n && !st; at += BENCH_PIECE) {
        const size_t count = n - at < BENCH_PIECE ? n - at : BENCH_PIECE;
        bly_hash_ints(bly_hasher_of(f), keys + at, count, s->hashes);
        st = bly_count_hashes(f, s->hashes, count, s->counts);
    }
    return error_of(st);
}

static const char *step_one_add(void *f, const uint64_t *keys, size_t n,
                                struct bench_scratch *s)
{
    bly_status st = BLY_OK;
    (void)s;
    for (size_t i = 0; i < n && !st; i++) {
        const uint64_t le = htole64(keys[i]); /* as bly_add_ints() does */
        st = bly_add(f, &le, sizeof le);
    }
    return error_of(st);
}

static const char *step_one_ask(void *f, const uint64_t *keys, size_t n,
                                struct bench_scratch *s)
{
    for (size_t at = 0; at < n; at += 64) {
        uint64_t bits = 0;
        for (size_t i = at; i < n && i < at + 64; i++) {
            const uint64_t le = htole64(keys[i]);
            bits |= (uint64_t)bly_has(f, &le, sizeof le) << (i - at);
        }
        s->maybe[at / 64] = bits;
    }
    return NULL;
}

static bench_step *kind_step(const struct bench_contender *c, int op)
{
    static const struct {
        uint32_t needs;
        bench_step *step;
    } steps[NOPS] = {
        [OP_ADD] = { BLY_CAN(ADD), step_add },
        [OP_ASK_ABSENT] = { BLY_CAN(HAS), step_ask },
        [OP_ASK_HALF] = { BLY_CAN(HAS), step_ask },
        [OP_ASK_PRESENT] = { BLY_CAN(HAS), step_ask },
        [OP_REMOVE] = { BLY_CAN(REMOVE), step_remove },
        [OP_COUNT] = { BLY_CAN(COUNT), step_count },
        [OP_ONE_ADD] = { BLY_CAN(ADD), step_one_add },
        [OP_ONE_ABSENT] = { BLY_CAN(HAS), step_one_ask },
        [OP_ONE_HALF] = { BLY_CAN(HAS), step_one_ask },
        [OP_ONE_PRESENT] = { BLY_CAN(HAS), step_one_ask },
        [OP_CALLS_64] = { BLY_CAN(HAS), step_calls_64 },
        [OP_CALLS_256] = { BLY_CAN(HAS), step_calls_256 },
        [OP_ACT] = { BLY_CAN(HAS), step_act },
    };
    if (op == OP_INLINE_ABSENT || op == OP_INLINE_PRESENT)
        return strcmp(c->kind, "blocked") == 0 ? bench_inline_step() : NULL;
    return c->can & steps[op].needs ? steps[op].step : NULL;
}

/* ---------------------------------------------------------------- filters */

static bly_spec kind_spec(const struct bench_contender *c, uint64_t items,
                          double fpr)
{
    if (c->growth > 1 && items)
        items = items / c->growth + 1;
    const bly_option *const o = c->option;
    /* What says the rate in another way takes its place. */
    if (o && strcmp(o->name, "bits") == 0)
        fpr = 0;
    return (bly_spec){ .kind = c->kind,
                       .items = items,
                       .fpr = fpr,
                       .options = o,
                       .noptions = o != NULL,
                       .keying = { BLY_KEYS_UINT64, 0 } };
}

static const char *kind_plan(const struct bench_contender *c, double fpr,
                             struct bench_cell *cell)
{
    bly_spec spec = kind_spec(c, cell->items, fpr);
    bly_prediction plan;
    if (bly_plan(&spec, &plan))
        return bly_error();
    cell->planned = plan.fpr;
    /* One that grows ends in layers that are filled in part. */
    const uint64_t times = c->growth > 1 ? 2 * (uint64_t)c->growth : 1;
    cell->bytes =
        plan.bytes < UINT64_MAX / 512 ? plan.bytes * times : UINT64_MAX / 8;
    cell->bits_per_key =
        (double)plan.bits * (double)times / (double)cell->items;
    /* The floor takes as much again. A builder keeps hashes, joins them, and
     * the kind may want room for its own order: four words a key. */
    const double words = c->can & BLY_CAN(ADD) ? 0 : 5;
    const double needs =
        2.1 * (double)cell->bytes + 8 * words * (double)cell->items;
    cell->needs = needs < 0x1p62 ? (uint64_t)needs : (uint64_t)1 << 62;
    return NULL;
}

static const char *kind_make(const struct bench_contender *c, uint64_t items,
                             double fpr, void **filter)
{
    const bly_spec spec = kind_spec(c, items, fpr);
    bly_filter *f;
    const bly_status st = bly_new(&spec, &f);
    *filter = f;
    return error_of(st);
}

static void kind_release(void *filter)
{
    bly_free(filter);
}

static void kind_size(const void *filter, struct bench_cell *cell)
{
    bly_stats stats;
    bly_peek(filter, &stats);
    cell->bytes = stats.bytes;
    cell->bits_per_key = (double)stats.bits / (double)cell->items;
    cell->layers = stats.layers ? stats.layers : 1;
}

/* --------------------------------------------------------------- building */

struct hand_over {
    bly_builder *builder;
    const uint64_t *hashes, *values;
    size_t n;
    _Atomic size_t next;
    _Atomic bool failed;
};

#define HANDED 32768

/* Give the builder pieces until there are none. */
static void *hand_over_keys(void *arg)
{
    struct hand_over *const h = arg;
    for (;;) {
        const size_t at = atomic_fetch_add(&h->next, HANDED);
        if (at >= h->n)
            return NULL;
        const size_t n = h->n - at < HANDED ? h->n - at : HANDED;
        if (bly_builder_add(h->builder, h->hashes + at,
                            h->values ? h->values + at : NULL, n))
            h->failed = true;
    }
}

const char *bench_build(const struct bench_contender *c, uint64_t items,
                        double fpr, const uint64_t *hashes, size_t n,
                        unsigned nthreads, bly_filter **out)
{
    const bly_spec spec = kind_spec(c, items, fpr);
    struct hand_over h = { .hashes = hashes, .n = n };
    pthread_t threads[256];
    unsigned started = 0;
    *out = NULL;
    if (c->can & BLY_CAN(BUILD) && c->can & BLY_CAN(GET)) {
        h.values = calloc(n, sizeof *h.values); /* any will do */
        if (!h.values)
            return "out of memory";
    }
    bly_status st = bly_builder_new(&spec, &h.builder);
    if (!st) {
        while (started + 1 < nthreads && started < 256 &&
               pthread_create(&threads[started], NULL, hand_over_keys, &h) == 0)
            started++;
        hand_over_keys(&h);
        for (unsigned i = 0; i < started; i++)
            pthread_join(threads[i], NULL);
        st = h.failed ? BLY_ENOMEM
                      : bly_builder_finish(h.builder, nthreads, out);
    }
    bly_builder_free(h.builder);
    free((void *)(uintptr_t)h.values);
    return h.failed ? "a builder did not take all keys" : error_of(st);
}

struct bench_contender bench_kind(const bly_kind_info *kind, const char *name,
                                  unsigned growth, const bly_option *option)
{
    return (struct bench_contender){
        .name = name,
        .kind = kind->name,
        .growth = growth,
        .option = option,
        .can = kind->can,
        .likely_no = kind->traits & BLY_LIKELY_NO,
        .plan = kind_plan,
        .make = kind_make,
        .release = kind_release,
        .step = kind_step,
        .size = kind_size,
    };
}
