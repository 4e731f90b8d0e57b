/*
 * bench_round.c - one cell of the bench, once: fill, ask, remove
 *
 * The clock is the thread's own, so that what others do with the processor does
 * not count. Keys are made in blocks of 8 MiB, and the clock runs only while a
 * block is worked on: so a billion keys take no memory.
 *
 * One key in eight (of many: in 64) is added one by one, a few all through the
 * filling, so that both ways of adding see every load of the filter. Small
 * filters are filled again and again until enough keys were added to be timed,
 * and there it is one filling in eight. F is measured at the size of the full
 * filter before the asking and after it; the mean of the two counts.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "workbench/bench.h"

const struct bench_effort bench_full = { .least_added = 1 << 19,
                                         .asked = 1 << 20 };
const struct bench_effort bench_trial = { .least_added = 1, .asked = 1 << 13 };

#define ONE_BY_ONE_OF 8
#define ONE_BY_ONE_FEW 64 /* where there are many: it takes long */
#define ONE_BY_ONE_MANY 4000000
#define ONE_BY_ONE_FROM 65536
#define FILL_BLOCK (BENCH_BLOCK / 8)

#define BENCH_ROW_(NAME, name, head, text) name,
const char *const bench_op_names[NOPS] = { BENCH_OPS(BENCH_ROW_) };
#undef BENCH_ROW_
#define BENCH_ROW_(NAME, name, head, text) head,
const char *const bench_op_heads[NOPS] = { BENCH_OPS(BENCH_ROW_) };
#undef BENCH_ROW_
#define BENCH_ROW_(NAME, name, head, text) text,
const char *const bench_op_texts[NOPS] = { BENCH_OPS(BENCH_ROW_) };
#undef BENCH_ROW_

/* ------------------------------------------------------------------ keys */

static uint64_t key_present(uint64_t n, uint64_t draw)
{
    return bly_mix64(bly_mix64(draw) % n);
}

void bench_fill_keys(enum bench_keys which, uint64_t n, uint64_t from,
                     uint64_t salt, uint64_t *keys, size_t count)
{
    /* Absent keys of a round are none of the rounds before. */
    const uint64_t beyond = (salt + 1) << 44;
    for (size_t i = 0; i < count; i++) {
        const uint64_t number = from + i, draw = beyond + number;
        if (which == KEYS_NEXT)
            keys[i] = bly_mix64(number);
        else if (which == KEYS_ABSENT ||
                 (which == KEYS_HALF && bly_mix64(draw) >> 63))
            keys[i] = bly_mix64(draw);
        else
            keys[i] = key_present(n, draw);
    }
}

static uint64_t ones(const uint64_t *words, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(n); i++)
        sum += (uint64_t)__builtin_popcountll(words[i]);
    return sum;
}

/* --------------------------------------------------------------- filling */

/* What a filling has cost so far, in batches and one by one. */
struct filling {
    double ns[2];
    uint64_t nkeys[2];
    unsigned ntimes;
};

static const char *fill_step(struct bench_cell *cell, void *filter, bool single,
                             const uint64_t *keys, size_t n,
                             struct filling *total, struct bench_scratch *s)
{
    bench_step *const step =
        cell->who->step(cell->who, single ? OP_ONE_ADD : OP_ADD);
    if (!n)
        return NULL;
    const double start = bench_start();
    const char *const why = step(filter, keys, n, s);
    total->ns[single] += bench_spent(start);
    total->nkeys[single] += n;
    return why;
}

static const char *fill_once(struct bench_cell *cell, void *filter,
                             struct filling *total, struct bench_scratch *s)
{
    const bool batches = cell->who->step(cell->who, OP_ADD) != NULL;
    const bool small = cell->items < ONE_BY_ONE_FROM;
    const bool turn = total->ntimes++ % ONE_BY_ONE_OF == ONE_BY_ONE_OF - 1;
    const char *why = NULL;
    for (uint64_t at = 0; at < cell->items && !why; at += FILL_BLOCK) {
        const size_t n = cell->items - at < FILL_BLOCK
                             ? (size_t)(cell->items - at)
                             : FILL_BLOCK;
        const size_t one_by_one = !batches ? n
                                  : small  ? turn ? n : 0
                                  : cell->items < ONE_BY_ONE_MANY
                                      ? n / ONE_BY_ONE_OF
                                      : n / ONE_BY_ONE_FEW;
        const size_t many = n - one_by_one;
        bench_fill_keys(KEYS_NEXT, cell->items, at, 0, s->keys, n);
        why = fill_step(cell, filter, false, s->keys, many, total, s);
        if (!why)
            why = fill_step(cell, filter, true, s->keys + many, one_by_one,
                            total, s);
    }
    return why;
}

static const char *fill_by_adding(struct bench_cell *cell, double fpr,
                                  const struct bench_effort *effort,
                                  struct bench_sample *out, void **filter,
                                  struct bench_scratch *s)
{
    struct filling total = { 0 };
    const char *why = NULL;
    do {
        if (*filter)
            cell->who->release(*filter);
        why = cell->who->make(cell->who, cell->items, fpr, filter);
        if (!why)
            why = fill_once(cell, *filter, &total, s);
    } while (!why && total.nkeys[0] + total.nkeys[1] < effort->least_added);
    if (total.nkeys[0])
        out->ns[OP_ADD] = total.ns[0] / (double)total.nkeys[0];
    if (total.nkeys[1])
        out->ns[OP_ONE_ADD] = total.ns[1] / (double)total.nkeys[1];
    return why;
}

static const char *fill_by_building(const struct bench_cell *cell, double fpr,
                                    const struct bench_effort *effort,
                                    struct bench_sample *out, void **filter)
{
    const size_t n = (size_t)cell->items;
    uint64_t *const hashes = malloc(n * sizeof *hashes);
    uint64_t *const keys = malloc(n * sizeof *keys);
    const char *why = hashes && keys ? NULL : "out of memory";
    double ns = 0;
    size_t done = 0;
    bly_hasher hasher;
    bly_filter *f = NULL;
    if (!why) {
        bench_fill_keys(KEYS_NEXT, n, 0, 0, keys, n);
        bly_hasher_for(&(bly_spec){ .kind = cell->who->kind,
                                    .keying = { BLY_KEYS_UINT64, 0 } },
                       &hasher);
        bly_hash_ints(&hasher, keys, n, hashes);
    }
    free(keys);
    while (!why && (!done || done < effort->least_added)) {
        bly_free(f);
        const double start = bench_start();
        why = bench_build(cell->who, n, fpr, hashes, n, 1, &f);
        ns += bench_spent(start);
        done += n;
    }
    free(hashes);
    *filter = f;
    if (!why)
        out->ns[OP_BUILD] = ns / (double)done;
    return why;
}

/* ---------------------------------------------------------------- asking */

/* Time one operation, and look at what it answered. Slow kinds are asked for
 * fewer keys. */
static const char *ask(struct bench_cell *cell, void *filter, int op,
                       enum bench_keys which, size_t nkeys, double *ns,
                       struct bench_scratch *s)
{
    bench_step *const step = cell->who->step(cell->who, op);
    const char *why = NULL;
    double spent = 0;
    size_t done = 0;
    if (!step)
        return NULL;
    while (done < nkeys && spent < BENCH_ASK_NS && !why) {
        const size_t n =
            nkeys - done < BENCH_ASK_CALL ? nkeys - done : BENCH_ASK_CALL;
        uint64_t *const keys = s->keys + done % BENCH_BLOCK;
        bench_fill_keys(which, cell->items, done, cell->nrounds, keys, n);
        const double start = bench_start();
        why = step(filter, keys, n, s);
        spent += bench_spent(start);
        done += n;
        if (op == OP_ASK_ABSENT || op == OP_ONE_ABSENT ||
            op == OP_INLINE_ABSENT) {
            cell->nasked += n;
            cell->nhit += ones(s->maybe, n);
        } else if (op == OP_ASK_PRESENT || op == OP_ONE_PRESENT ||
                   op == OP_INLINE_PRESENT) {
            cell->npresent += n;
            cell->nmissed += n - ones(s->maybe, n);
        }
    }
    *ns = spent / (double)done;
    return why;
}

static const char *ask_all(struct bench_cell *cell, void *filter,
                           const struct bench_effort *effort,
                           struct bench_sample *out, struct bench_scratch *s)
{
    /* A small filter shows all it can in fewer keys. */
    const size_t some =
        cell->items < effort->asked / 32 ? effort->asked / 8 : effort->asked;
    const size_t few = some / 4;
    const size_t all = cell->items < some ? (size_t)cell->items : some;
    /* What changes the filter comes last. */
    const struct {
        int op;
        enum bench_keys which;
        size_t n;
    } plan[] = {
        { OP_ASK_ABSENT, KEYS_ABSENT, some },
        { OP_ASK_HALF, KEYS_HALF, some },
        { OP_ASK_PRESENT, KEYS_PRESENT, some },
        { OP_CALLS_64, KEYS_HALF, some },
        { OP_CALLS_256, KEYS_HALF, some },
        { OP_ACT, KEYS_HALF, some },
        { OP_INLINE_ABSENT, KEYS_ABSENT, few },
        { OP_INLINE_PRESENT, KEYS_PRESENT, few },
        { OP_ONE_ABSENT, KEYS_ABSENT, few },
        { OP_ONE_HALF, KEYS_HALF, few },
        { OP_ONE_PRESENT, KEYS_PRESENT, few },
        { OP_COUNT, KEYS_PRESENT, few },
        { OP_REMOVE, KEYS_NEXT, all },
    };
    const char *why = NULL;
    double ignored;
    /* Once without looking at the clock: F has had the caches for itself. */
    why = ask(cell, filter, OP_CALLS_256, KEYS_HALF, some, &ignored, s);
    for (size_t i = 0; i < sizeof plan / sizeof plan[0] && !why; i++)
        why = ask(cell, filter, plan[i].op, plan[i].which, plan[i].n,
                  &out->ns[plan[i].op], s);
    return why;
}

void bench_round(struct bench_cell *cell, double fpr, unsigned nthreads,
                 const struct bench_effort *effort, struct bench_scratch *s)
{
    const struct bench_contender *const c = cell->who;
    struct bench_sample sample = { .times = { NAN, NAN, NAN } };
    struct bench_floor after = { 0 };
    void *filter = NULL;
    for (int op = 0; op < NOPS; op++)
        sample.ns[op] = NAN;
    const char *why =
        c->step(c, OP_ADD) || c->step(c, OP_ONE_ADD)
            ? fill_by_adding(cell, fpr, effort, &sample, &filter, s)
            : fill_by_building(cell, fpr, effort, &sample, &filter);
    if (!why) {
        cell->layers = 1;
        if (c->size)
            c->size(filter, cell);
    }
    const bool timed = effort != &bench_trial;
    if (!why && timed && !bench_floor(cell->bytes, &sample.floor))
        why = "out of memory";
    if (!why && nthreads > 1)
        bench_threads(cell, fpr, filter, nthreads, &sample);
    if (!why)
        why = ask_all(cell, filter, effort, &sample, s);
    if (!why && timed && bench_floor(cell->bytes, &after)) {
        sample.floor.read = (sample.floor.read + after.read) / 2;
        sample.floor.update = (sample.floor.update + after.update) / 2;
        sample.floor.bare = (sample.floor.bare + after.bare) / 2;
    }
    if (why)
        snprintf(cell->why, sizeof cell->why, "%s", why);
    else
        cell->rounds[cell->nrounds++] = sample;
    if (filter)
        c->release(filter);
}

/* --------------------------------------------------------------- figures */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value at a share of sorted values, between two of them if need be. */
static double quantile(const double *v, size_t n, double share)
{
    const double at = share * (double)(n - 1);
    const size_t low = (size_t)at;
    const double rest = at - (double)low;
    return low + 1 < n ? v[low] * (1 - rest) + v[low + 1] * rest : v[low];
}

struct bench_figure bench_figure_of(double *v, size_t n)
{
    if (!n)
        return (struct bench_figure){ NAN, NAN, NAN };
    qsort(v, n, sizeof *v, by_value);
    return (struct bench_figure){ quantile(v, n, 0.25), quantile(v, n, 0.5),
                                  quantile(v, n, 0.75) };
}

/* The figure over the rounds in which EXPR, of sample s, is a number. */
#define FIGURE(cell, EXPR)                                            \
    do {                                                              \
        double v_[BENCH_MAX_ROUNDS];                                  \
        size_t n_ = 0;                                                \
        for (unsigned r_ = 0; r_ < (cell)->nrounds; r_++) {           \
            const struct bench_sample *const s = &(cell)->rounds[r_]; \
            const double value_ = (EXPR);                             \
            if (isfinite(value_))                                     \
                v_[n_++] = value_;                                    \
        }                                                             \
        return bench_figure_of(v_, n_);                               \
    } while (0)

struct bench_figure bench_ns(const struct bench_cell *cell, int op)
{
    FIGURE(cell, s->ns[op]);
}

struct bench_figure bench_multiple(const struct bench_cell *cell, int op)
{
    FIGURE(cell, s->ns[op] / s->floor.read);
}

struct bench_figure bench_floor_figure(const struct bench_cell *cell)
{
    FIGURE(cell, s->floor.read);
}

struct bench_figure bench_times(const struct bench_cell *cell, int which)
{
    FIGURE(cell, s->times[which]);
}

double bench_rate(const struct bench_cell *cell)
{
    return cell->nasked ? (double)cell->nhit / (double)cell->nasked : NAN;
}
