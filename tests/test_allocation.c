/*
 * test_allocation.c - running out of memory at every allocation
 *
 * Each operation runs again and again on a foreign allocator that says no to
 * the first allocation, then to the second, and so on until it is not reached
 * any more. Every time the call must fail with BLY_ENOMEM, give no result,
 * leave what it was given as it was, and keep nothing: the ledger says how
 * many blocks are out, and with which size each comes back.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/spread.h"
#include "format/record.h"
#include "kinds/filter.h"

#define NKEYS 3000

/* What an operation finds. */
typedef struct scene {
    const law_row *row;
    bly_spec spec;     /* with the ledger's memory */
    bly_filter *f, *g; /* two that fit, from the same memory */
    byte_array file;   /* f, written */
    const char *path;  /* f, saved */
    const uint64_t *hashes, *values;
    size_t nhashes;
    bool spares;     /* some memory only makes it faster: it may do without */
    bly_filter *out; /* what the operation made */
} scene;

typedef bly_status operation(scene *s);

/* The scene is made anew for each allocation that fails, since a success
 * changes it. Returns how many allocations the operation has. */
static long fail_in_turn(scene *base, bool filters, operation *op)
{
    for (long turn = 0;; turn++) {
        ledger l;
        ledger_open(&l);
        scene s = *base;
        s.spec.mem = &l.mem;
        if (filters) {
            s.f = filled_from(&s.spec, 0, NKEYS);
            s.g = filled_from(&s.spec, NKEYS / 2, NKEYS);
        }
        byte_array f_was = { 0 }, g_was = { 0 };
        if (filters) {
            f_was = written(s.f);
            g_was = written(s.g);
        }
        const long live = l.live;
        const int64_t held = l.held;
        s.out = NULL;
        l.fail_at = l.calls + turn;
        const bly_status st = op(&s);
        const bool reached = l.calls > l.fail_at;
        l.fail_at = -1;
        if (reached && !(s.spares && st == BLY_OK)) {
            assert_status(st, BLY_ENOMEM);
            assert_null(s.out);
            assert_int_equal(l.live, live);
            assert_int_equal(l.held, held);
            if (filters) {
                assert_same_bytes(s.f, &f_was);
                assert_same_bytes(s.g, &g_was);
            }
        } else {
            assert_ok(st);
        }
        bly_free(s.out);
        bly_free(s.f);
        bly_free(s.g);
        free(f_was.at);
        free(g_was.at);
        ledger_check(&l);
        if (!reached)
            return turn;
    }
}

/* ---------------------------------------------------- making and copying */

static bly_status op_new(scene *s)
{
    return bly_new(&s->spec, &s->out);
}

LAW(new_without_memory)
{
    needs(kind, BLY_CAN(ADD));
    scene s = { .row = row, .spec = law_spec(row, NKEYS) };
    assert_true(fail_in_turn(&s, false, op_new) > 0);
    if (law_shares(row)) {
        s.spec.shared = true;
        assert_true(fail_in_turn(&s, false, op_new) > 0);
    }
}

/* Planning takes no memory at all. */
static bly_status op_plan(scene *s)
{
    bly_prediction p;
    return bly_plan(&s->spec, &p);
}

LAW(plan_takes_no_memory)
{
    scene s = { .row = row, .spec = law_spec(row, NKEYS) };
    assert_int_equal(fail_in_turn(&s, false, op_plan), 0);
}

static bly_status op_clone(scene *s)
{
    return bly_clone(s->f, &s->out);
}

LAW(clone_without_memory)
{
    scene s = { .row = row, .spec = law_spec(row, NKEYS) };
    assert_true(fail_in_turn(&s, true, op_clone) > 0);
}

static bly_status op_ask(scene *s)
{
    uint64_t maybe[2], hashes[100] = { 0 };
    bly_stats stats;
    bly_has_hashes(s->f, hashes, 100, maybe);
    bly_stat(s->f, &stats);
    return bly_equal(s->f, s->g) ? BLY_EINVAL : BLY_OK;
}

/* Asking cannot fail, so it cannot need memory. */
LAW(asking_takes_no_memory)
{
    scene s = { .row = row, .spec = law_spec(row, NKEYS) };
    assert_int_equal(fail_in_turn(&s, true, op_ask), 0);
}

/* --------------------------------------------------------------- changing */

static bly_status op_add(scene *s)
{
    size_t ndone;
    byte_array before = written(s->f);
    const bly_status st =
        bly_add_hashes(s->f, s->hashes, s->nhashes, NULL, &ndone);
    /* A batch says how far it came; the scene wants nothing changed. */
    if (st && ndone) {
        bly_free(s->f);
        s->f = NULL;
        const bly_access how = { .mem = s->spec.mem };
        assert_ok(bly_load(before.at, before.n, &how, &s->f));
    }
    free(before.at);
    return st;
}

LAW(add_without_memory)
{
    needs(kind, BLY_CAN(ADD));
    scene s = { .row = row, .spec = law_spec(row, 2 * NKEYS), .nhashes = 200 };
    uint64_t *h = hashes_for(&s.spec, 10 * NKEYS, s.nhashes);
    s.hashes = h;
    fail_in_turn(&s, true, op_add);
    free(h);
}

static bly_status op_merge(scene *s)
{
    return bly_merge(s->f, s->g);
}

static bly_status op_intersect(scene *s)
{
    return bly_intersect(s->f, s->g);
}

static bly_status op_compare(scene *s)
{
    bly_likeness like;
    return bly_compare(s->f, s->g, &like);
}

static bly_status op_fold(scene *s)
{
    return bly_fold(s->f, &s->out);
}

LAW(combining_without_memory)
{
    scene s = { .row = row, .spec = law_spec(row, 3 * NKEYS) };
    if (kind->can & BLY_CAN(MERGE))
        fail_in_turn(&s, true, op_merge);
    if (kind->can & BLY_CAN(INTERSECT))
        fail_in_turn(&s, true, op_intersect);
    if (kind->can & BLY_CAN(COMPARE))
        fail_in_turn(&s, true, op_compare);
    if (kind->can & BLY_CAN(FOLD)) {
        /* Not every size can be halved. */
        bly_filter *f = law_part(row, 3 * NKEYS, 0, NKEYS), *half;
        const bly_status st = bly_fold(f, &half);
        bly_free(f);
        if (!st) {
            bly_free(half);
            assert_true(fail_in_turn(&s, true, op_fold) > 0);
        }
    }
}

/* ------------------------------------------------------------------ files */

static bly_status op_load(scene *s)
{
    const bly_access how = { .mem = s->spec.mem };
    return bly_load(s->file.at, s->file.n, &how, &s->out);
}

static bly_status op_read(scene *s)
{
    const bly_access how = { .mem = s->spec.mem };
    byte_source left = { s->file.at, s->file.n };
    return bly_read(get_bytes, &left, &how, &s->out);
}

/* What is combined as it is read gets its memory before it changes anything. */
static bly_status op_combine(scene *s)
{
    byte_array all = written(s->g);
    byte_source left = { all.at, all.n };
    const bly_status st = bly_combine_read(s->f, BLY_UNION, get_bytes, &left);
    free(all.at);
    return st;
}

LAW(combining_what_is_read_without_memory)
{
    needs(kind, BLY_CAN(MERGE));
    scene s = { .row = row, .spec = law_spec(row, 3 * NKEYS) };
    assert_true(fail_in_turn(&s, true, op_combine) > 0);
}

static bly_status op_open(scene *s)
{
    const bly_access how = { .mem = s->spec.mem };
    return bly_open(s->path, &how, &s->out);
}

static bly_status op_map(scene *s)
{
    const bly_access how = { .mem = s->spec.mem };
    return bly_map(s->path, &how, &s->out);
}

static bly_status op_save(scene *s)
{
    return bly_save(s->f, s->path);
}

static bly_status change_nothing(bly_filter *f, void *ctx)
{
    (void)f;
    (void)ctx;
    return BLY_OK;
}

static bly_status op_update(scene *s)
{
    const bly_access how = { .mem = s->spec.mem };
    return bly_update(s->path, &how, change_nothing, NULL);
}

static bool put_nowhere(void *ctx, const void *bytes, size_t nbytes)
{
    (void)ctx;
    (void)bytes;
    (void)nbytes;
    return true;
}

static bly_status op_write(scene *s)
{
    return bly_write(s->f, put_nowhere, NULL);
}

/* Everything that is done with files. */
static void try_files(const law_row *row)
{
    char folder[] = "/tmp/bloomery-alloc-XXXXXX", path[64], command[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.bly", folder);
    scene s = { .row = row, .spec = law_spec(row, NKEYS), .path = path };
    bly_filter *f = law_filled(row, 0, NKEYS), *after;
    s.file = written(f);
    assert_ok(bly_save(f, path));

    assert_true(fail_in_turn(&s, false, op_load) > 0);
    assert_true(fail_in_turn(&s, false, op_read) > 0);
    assert_true(fail_in_turn(&s, false, op_open) > 0);
    assert_true(fail_in_turn(&s, false, op_map) > 0);
    fail_in_turn(&s, false, op_update);
    fail_in_turn(&s, true, op_write);
    fail_in_turn(&s, true, op_save);
    /* The file is none the worse for it. */
    assert_ok(bly_open(path, NULL, &after));
    assert_true(bly_equal(f, after));

    bly_free(after);
    bly_free(f);
    free(s.file.at);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

LAW(files_without_memory)
{
    try_files(row);
}

LAW(summed_files_without_memory)
{
    bly_summed_from = 0;
    bly_sums_shift = 6;
    try_files(row);
    bly_summed_from = BLY_SUMMED_USUALLY;
    bly_sums_shift = 16;
}

/* --------------------------------------------------------------- builders */

#define FEEDERS 3

/* A builder fed by several threads, which is where memory is asked for by
 * several at once; what they are told is what the operation is told. */
typedef struct feeder {
    bly_builder *b;
    const scene *s;
    size_t number;
    bly_status status;
} feeder;

static void *feed(void *arg)
{
    feeder *me = arg;
    const scene *s = me->s;
    const size_t each = s->nhashes / FEEDERS, from = me->number * each;
    for (size_t at = 0; at < each && !me->status; at += 10000) {
        const size_t n = each - at < 10000 ? each - at : 10000;
        me->status =
            bly_builder_add(me->b, s->hashes + from + at,
                            s->values ? s->values + from + at : NULL, n);
    }
    return NULL;
}

static bly_status op_build(scene *s)
{
    bly_builder *b;
    bly_status st = bly_builder_new(&s->spec, &b);
    if (st) {
        assert_null(b);
        return st;
    }
    pthread_t threads[FEEDERS];
    feeder feeders[FEEDERS];
    for (size_t i = 0; i < FEEDERS; i++) {
        feeders[i] = (feeder){ b, s, i, BLY_OK };
        assert_int_equal(pthread_create(&threads[i], NULL, feed, &feeders[i]),
                         0);
    }
    for (size_t i = 0; i < FEEDERS; i++) {
        pthread_join(threads[i], NULL);
        if (!st)
            st = feeders[i].status;
    }
    if (!st)
        st = bly_builder_finish(b, 2, &s->out);
    bly_builder_free(b);
    if (!st && s->row->kind.can & BLY_CAN(HAS) &&
        !(s->row->kind.traits & BLY_LIKELY_NO))
        for (size_t i = 0; i < s->nhashes; i += 97)
            assert_true(bly_has_hash(s->out, s->hashes[i]));
    return st;
}

/* With the capacity given, and without it, when keys are kept in chunks; and by
 * ranges, as large filters are filled. */
LAW(builder_without_memory)
{
    /* Copies for threads are made where there is memory for them. */
    scene s = { .row = row, .nhashes = 450000, .spares = true };
    bly_spec spec = law_spec(row, 0);
    uint64_t *h = hashes_for(&spec, 0, s.nhashes), *values = NULL;
    if (takes_values(kind)) {
        values = malloc(s.nhashes * sizeof *values);
        assert_non_null(values);
        for (size_t i = 0; i < s.nhashes; i++)
            values[i] = value_of(i);
    }
    s.hashes = h;
    s.values = values;
    for (int sized = 0; sized < 3; sized++) {
        if (sized == 2 && !bly_kind_by_name(kind->name)->sites)
            continue;
        bly_spread_least = sized == 2 ? 0 : BLY_SPREAD_LEAST;
        bly_spread_room = sized == 2 ? 1 << 16 : BLY_SPREAD_ROOM;
        s.spec = law_spec(row, sized ? s.nhashes : 0);
        const long turns = fail_in_turn(&s, false, op_build);
        /* The chunks alone are four, where keys are kept. */
        assert_true(turns > (sized && kind->can & BLY_CAN(ADD) ? 2 : 4));
    }
    bly_spread_least = BLY_SPREAD_LEAST;
    bly_spread_room = BLY_SPREAD_ROOM;
    free(h);
    free(values);
}

/* A builder that is thrown away before its end, at every stage. */
LAW(builder_thrown_away)
{
    for (int sized = 0; sized < 2; sized++) {
        for (int stage = 0; stage < 3; stage++) {
            ledger l;
            ledger_open(&l);
            bly_spec spec = law_spec(row, sized ? NKEYS : 0);
            spec.mem = &l.mem;
            uint64_t *h = hashes_for(&spec, 0, NKEYS);
            uint64_t *values = calloc(NKEYS, sizeof *values);
            bly_builder *b;
            bly_filter *f = NULL;
            assert_non_null(values);
            assert_ok(bly_builder_new(&spec, &b));
            if (stage > 0)
                assert_ok(bly_builder_add(
                    b, h, takes_values(kind) ? values : NULL, NKEYS));
            if (stage > 1)
                assert_ok(bly_builder_finish(b, 1, &f));
            bly_builder_free(b);
            bly_free(f);
            ledger_check(&l);
            free(values);
            free(h);
        }
    }
}

/* ------------------------------------------------------------------- size */

/* A filter holds the memory it says it holds, all of it from the caller's
 * allocator, and its copies come from there too. */
LAW(memory_is_what_it_says)
{
    ledger l;
    ledger_open(&l);
    bly_spec spec = law_spec(row, 50000);
    spec.mem = &l.mem;
    bly_filter *f = filled_from(&spec, 0, 50000), *copy;
    bly_stats stats;
    bly_peek(f, &stats);
    const int64_t one = l.held;
    /* A cache line for alignment goes with each block. */
    assert_between((double)one, (double)stats.bytes,
                   (double)stats.bytes + 64.0 * (double)l.live);
    assert_ok(bly_clone(f, &copy));
    assert_int_equal(l.held, 2 * one);
    bly_free(f);
    assert_int_equal(l.held, one);
    bly_free(copy);
    ledger_check(&l);
}

/* To build takes the filter and less than 16 bytes per key; with the capacity
 * known, the filter alone. */
LAW(building_keeps_within_memory)
{
    needs(kind, BLY_CAN(ADD));
    enum { N = 450000, SLACK = 3 << 20 };
    for (int sized = 0; sized < 2; sized++) {
        ledger l;
        ledger_open(&l);
        scene s = { .row = row, .nhashes = N };
        s.spec = law_spec(row, sized ? N : 0);
        s.spec.mem = &l.mem;
        uint64_t *h = hashes_for(&s.spec, 0, N);
        s.hashes = h;
        assert_ok(op_build(&s));
        bly_stats stats;
        bly_peek(s.out, &stats);
        const double keys = sized ? 0 : 16.0 * N;
        assert_between((double)l.peak, (double)stats.bytes,
                       (double)stats.bytes + keys + SLACK);
        bly_free(s.out);
        ledger_check(&l);
        free(h);
    }
}

int main(int argc, char **argv)
{
    return run_laws("allocation", argc, argv);
}
