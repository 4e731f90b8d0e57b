/*
 * test_threads.c - many threads at once
 *
 * Writers of a shared filter, readers beside them, builders fed from all
 * sides: the result is that of one thread. The thread sanitizer runs over this
 * program, and finds the races that a result does not show. An assertion may
 * not jump out of a thread, so threads note what they saw.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/spread.h"
#include "format/record.h"
#include "kinds/filter.h"

#define THREADS 4

/* --------------------------------------------------------------- no laws */

/* The fastest variant of a loop is chosen at the first call: here by all at
 * once. First in the program, so that it is the first call. */
static void *first_stat(void *arg)
{
    bly_stats stats;
    bly_stat(arg, &stats);
    return NULL;
}

static void first_calls_at_once(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    bly_filter *f;
    assert_ok(bly_new(&(bly_spec){ .items = 1000 }, &f));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, first_stat, f), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    bly_free(f);
}

/* The line of bly_error() belongs to the thread that failed. */
typedef struct failing {
    char name[16];
    bool mine;
} failing;

static void *fail_often(void *arg)
{
    failing *f = arg;
    bly_prediction p;
    f->mine = true;
    for (int i = 0; i < 2000; i++) {
        bly_plan(&(bly_spec){ .kind = f->name, .items = 1 }, &p);
        f->mine &= strstr(bly_error(), f->name) != NULL;
    }
    return NULL;
}

static void errors_are_a_threads_own(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    failing f[THREADS];
    bly_prediction p;
    bly_plan(&(bly_spec){ .kind = "first", .items = 1 }, &p);
    for (int i = 0; i < THREADS; i++) {
        memset(f[i].name, 'a' + i, 8);
        f[i].name[8] = '\0';
        assert_int_equal(pthread_create(&threads[i], NULL, fail_often, &f[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(f[i].mine);
    }
    assert_non_null(strstr(bly_error(), "first"));
}

/* ----------------------------------------------------------------- shared */

#define THREADS 4

typedef struct adder {
    bly_filter *filter;
    bly_builder *builder;
    const uint64_t *hashes, *values;
    size_t n, offset;
    bly_status status;
} adder;

/* Every fourth piece, of a size that is not a multiple of anything. */
static void *adder_run(void *arg)
{
    adder *a = arg;
    enum { PIECE = 77 };
    for (size_t at = a->offset * PIECE; at < a->n && !a->status;
         at += THREADS * PIECE) {
        const size_t n = a->n - at < PIECE ? a->n - at : PIECE;
        a->status =
            a->filter ? bly_add_hashes(a->filter, a->hashes + at, n, NULL, NULL)
                      : bly_builder_add(a->builder, a->hashes + at,
                                        a->values ? a->values + at : NULL, n);
    }
    return NULL;
}

static void add_in_threads(bly_filter *f, bly_builder *b, const uint64_t *h,
                           const uint64_t *values, size_t n)
{
    pthread_t threads[THREADS];
    adder adders[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        adders[i] = (adder){ f, b, h, values, n, i, BLY_OK };
        assert_int_equal(
            pthread_create(&threads[i], NULL, adder_run, &adders[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(adders[i].status, BLY_OK);
}

LAW(shared_adding_equals_one_thread)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(SHARE));
    if (!law_shares(row) || (kind->traits & BLY_ORDERED))
        skip_for("not shared, or the order of keys counts");
    const size_t n = scaled(100000);
    bly_spec spec = law_spec(row, n);
    bly_filter *one = filled_from(&spec, 0, n), *many;
    spec.shared = true;
    uint64_t *h = hashes_for(&spec, 0, n);
    assert_ok(bly_new(&spec, &many));
    add_in_threads(many, NULL, h, NULL, n);
    assert_true(bly_equal(one, many));
    bly_stats stats;
    bly_stat(many, &stats);
    assert_true(stats.shared);
    /* Of two threads that set bits of one key both may think they were first,
     * and only then. */
    assert_between((double)stats.items_added, 0.97 * (double)n,
                   1.01 * (double)n);
    free(h);
    bly_free(one);
    bly_free(many);
}

/* Writers say how far they have come; what a reader is told of, it finds. */
typedef struct crowd {
    bly_filter *f;
    const uint64_t *hashes;
    size_t each;                     /* keys of a writer */
    _Atomic size_t written[THREADS]; /* so many of them are in */
    _Atomic size_t missed;           /* keys that a reader did not find */
    _Atomic size_t asked;
    _Atomic int writers; /* still at work */
    bool certain, counts;
} crowd;

typedef struct member {
    crowd *c;
    size_t number;
} member;

static void *crowd_write(void *arg)
{
    const member *me = arg;
    crowd *c = me->c;
    const uint64_t *h = c->hashes + me->number * c->each;
    for (size_t at = 0; at < c->each; at += 50) {
        const size_t n = c->each - at < 50 ? c->each - at : 50;
        /* On a busy machine all could be written before a reader runs: half
         * of it waits for the first answer. */
        while (at >= c->each / 2 && !atomic_load(&c->asked))
            sched_yield();
        if (bly_add_hashes(c->f, h + at, n, NULL, NULL))
            atomic_fetch_add(&c->missed, 1);
        atomic_store_explicit(&c->written[me->number], at + n,
                              memory_order_release);
    }
    atomic_fetch_sub(&c->writers, 1);
    return NULL;
}

static void *crowd_read(void *arg)
{
    const member *me = arg;
    crowd *c = me->c;
    uint64_t random = me->number, maybe[BLY_BITMAP_WORDS(100)], counts[100];
    do {
        const size_t writer = test_random(&random) % THREADS;
        const uint64_t *h = c->hashes + writer * c->each;
        const size_t there =
            atomic_load_explicit(&c->written[writer], memory_order_acquire);
        const size_t n = there < 100 ? there : 100;
        const size_t from = there > n ? test_random(&random) % (there - n) : 0;
        bly_has_hashes(c->f, h + from, n, maybe);
        if (c->counts)
            bly_count_hashes(c->f, h + from, n, counts);
        for (size_t i = 0; i < n; i++) {
            const bool in = maybe[i / 64] >> (i % 64) & 1;
            atomic_fetch_add(&c->asked, 1);
            if (c->certain && (!in || (c->counts && !counts[i])))
                atomic_fetch_add(&c->missed, 1);
        }
    } while (atomic_load(&c->writers) > 0);
    return NULL;
}

LAW(readers_find_what_was_written)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(SHARE) | BLY_CAN(HAS));
    if (!law_shares(row))
        skip_for("not shared, or the order of keys counts");
    enum { READERS = 2 };
    const size_t each = scaled(40000);
    bly_spec spec = law_spec(row, THREADS * each);
    spec.shared = true;
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    uint64_t *h = hashes_for(&spec, 0, THREADS * each);
    crowd c = { .f = f,
                .hashes = h,
                .each = each,
                .writers = THREADS,
                .certain = !(kind->traits & BLY_LIKELY_NO),
                .counts = kind->can & BLY_CAN(COUNT) };
    member members[THREADS + READERS];
    pthread_t threads[THREADS + READERS];
    for (size_t i = 0; i < THREADS + READERS; i++) {
        members[i] = (member){ &c, i };
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < THREADS ? crowd_write : crowd_read,
                                        &members[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS + READERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&c.missed), 0);
    assert_true(atomic_load(&c.asked) > 0);
    if (c.certain)
        assert_int_equal(hits(f, 0, THREADS * each), THREADS * each);
    free(h);
    bly_free(f);
}

/* --------------------------------------------------------------- builders */

/* Where keys are taken in any order and make one filter, that one; else all
 * keys are in it. */
static void assert_built(const law_row *row, const bly_filter *one,
                         const bly_filter *many, size_t n)
{
    if (law_shares(row) && !(row->kind.traits & BLY_ORDERED))
        assert_true(bly_equal(one, many));
    if (row->kind.can & BLY_CAN(HAS) && !(row->kind.traits & BLY_LIKELY_NO))
        assert_int_equal(hits(many, 0, n), n);
}

/* The values of n keys from 0 on, where the kind wants any; else NULL. */
static uint64_t *values_for(const bly_kind_info *kind, size_t n)
{
    if (!takes_values(kind))
        return NULL;
    uint64_t *values = malloc((n + 1) * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = value_of(i);
    return values;
}

/* Without a capacity, with it, shared from the start, and the first two with a
 * bound, which allows no copies for threads; fed by one thread and by four,
 * finished by one and by four. 300000 keys are more than one chunk. */
LAW(builder_in_threads_equals_one)
{
    const size_t n = scaled(300000);
    uint64_t *values = values_for(kind, n);
    for (int form = 0; form < 5; form++) {
        bly_spec spec = law_spec(row, form % 3 ? n : 0);
        spec.shared = form == 2;
        spec.max_bytes = form > 2 ? 1 << 30 : 0;
        if (spec.shared && !law_shares(row))
            continue;
        uint64_t *h = hashes_for(&spec, 0, n);
        bly_filter *one = NULL;
        for (unsigned threads = 1; threads <= THREADS; threads += 3) {
            bly_builder *b;
            bly_filter *f;
            assert_ok(bly_builder_new(&spec, &b));
            assert_int_equal(bly_builder_hasher(b)->seed, LAW_SEED);
            if (threads == 1)
                assert_ok(bly_builder_add(b, h, values, n));
            else
                add_in_threads(NULL, b, h, values, n);
            assert_ok(bly_builder_finish(b, threads, &f));
            bly_builder_free(b);
            if (!one)
                one = f;
            assert_built(row, one, f, n);
            if (f != one)
                bly_free(f);
        }
        bly_free(one);
        free(h);
    }
    free(values);
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* By ranges of the filter, as only large ones are filled: with keys of
 * any order, and room that is seldom full, often, and at every eighth key. */
LAW(builder_by_ranges_equals_one)
{
    const size_t n = scaled(100000), rooms[] = { 1 << 20, 1 << 15, 0 };
    if (!bly_kind_by_name(kind->name)->sites)
        skip_for("the memory of this kind has no ranges");
    for (int order = 0; order < 3; order++)
        for (int form = 0; form < 3; form++) {
            bly_spec spec = law_spec(row, form ? n : 0);
            spec.shared = form == 2;
            uint64_t *h = hashes_for(&spec, 0, n);
            bly_filter *one = NULL;
            if (order == 1)
                qsort(h, n, sizeof *h, ascending);
            for (size_t i = 0; order == 2 && i < n; i++)
                h[i] = h[0];
            for (size_t i = 0; i < 1 + COUNT_OF(rooms); i++) {
                bly_builder *b;
                bly_filter *f;
                bly_spread_least = i ? 0 : BLY_SPREAD_LEAST;
                bly_spread_room = i ? rooms[i - 1] : BLY_SPREAD_ROOM;
                assert_ok(bly_builder_new(&spec, &b));
                if (i % 2)
                    add_in_threads(NULL, b, h, NULL, n);
                else
                    assert_ok(bly_builder_add(b, h, NULL, n));
                assert_ok(bly_builder_finish(b, THREADS, &f));
                bly_builder_free(b);
                one = one ? one : f;
                assert_true(bly_equal(one, f));
                if (f != one)
                    bly_free(f);
            }
            bly_free(one);
            free(h);
        }
    bly_spread_least = BLY_SPREAD_LEAST;
    bly_spread_room = BLY_SPREAD_ROOM;
}

/* Builders of a known capacity give what adding gives. */
LAW(builder_equals_adding)
{
    needs(kind, BLY_CAN(ADD));
    const bly_spec spec = law_spec(row, 3000);
    uint64_t *h = hashes_for(&spec, 0, 3000);
    bly_filter *added = filled_from(&spec, 0, 3000), *built, *none = added;
    bly_builder *b;
    assert_ok(bly_builder_new(&spec, &b));
    assert_ok(bly_builder_add(b, h, NULL, 1000));
    assert_ok(bly_builder_add(b, h + 1000, NULL, 0));
    assert_ok(bly_builder_add(b, h + 1000, NULL, 2000));
    assert_status(bly_builder_add(b, h, h, 10), BLY_EINVAL); /* no values */
    assert_ok(bly_builder_finish(b, 0, &built));
    assert_true(bly_equal(added, built));
    /* It is empty and done for. */
    assert_status(bly_builder_finish(b, 0, &none), BLY_EINVAL);
    assert_null(none);
    assert_status(bly_builder_add(b, h, NULL, 10), BLY_EINVAL);
    bly_builder_free(b);
    bly_builder_free(NULL);
    bly_free(added);
    bly_free(built);
    free(h);
}

/* Without a capacity it is the number of distinct keys: exactly while there
 * are few, within 2 % beyond a million; each key comes three times or so. */
LAW(builder_counts_the_distinct)
{
    static const struct {
        size_t distinct, total;
        double within;
    } streams[] = {
        { 0, 0, 0 },          { 1, 5, 0 },           { 1000, 3000, 0 },
        { 30000, 100000, 0 }, { 130000, 400000, 0 }, { 500000, 1300000, 0.02 },
    };
    for (size_t s = 0; s < COUNT_OF(streams); s++) {
        const size_t distinct = streams[s].distinct, total = streams[s].total;
        if (total > 1000000 && scaled(total) != total)
            continue; /* that many only where they take no time */
        const bly_spec spec = law_spec(row, 0);
        uint64_t *h = hashes_for(&spec, 0, distinct);
        uint64_t *stream = malloc((total + 1) * sizeof *stream);
        uint64_t *values = values_for(kind, total);
        assert_non_null(stream);
        for (size_t i = 0; i < total; i++) {
            stream[i] = h[i % distinct];
            if (values)
                values[i] = value_of(i % distinct);
        }
        bly_builder *b;
        bly_filter *f;
        bly_stats stats;
        assert_ok(bly_builder_new(&spec, &b));
        for (size_t at = 0; at < total; at += 1000)
            assert_ok(bly_builder_add(b, stream + at,
                                      values ? values + at : NULL,
                                      total - at < 1000 ? total - at : 1000));
        assert_ok(bly_builder_finish(b, 2, &f));
        bly_builder_free(b);
        bly_peek(f, &stats);
        const double want = distinct ? (double)distinct : 1;
        /* A kind that gives keys back holds each as often as it came. */
        if (kind->can & BLY_CAN(REMOVE))
            assert_true((double)stats.capacity >= want * 0.98);
        else
            /* A kind that counts and can be full needs room for the counts. */
            if ((kind->can & BLY_CAN(COUNT)) && (double)stats.capacity > want)
                assert_between((double)stats.capacity, want, 6 * want);
            else
                assert_near((double)stats.capacity, want, streams[s].within);
        if (distinct >= 1000)
            assert_between(stats.fpr_at_capacity, 0, LAW_FPR * 1.01);
        if (kind->can & BLY_CAN(HAS) && !(kind->traits & BLY_LIKELY_NO))
            assert_int_equal(hits(f, 0, distinct), distinct);
        bly_free(f);
        free(h);
        free(stream);
        free(values);
    }
}

/* Questions to a mapped file whose blocks are compared as they are asked, all
 * at once: the answers of one thread, and in the end nothing is left to
 * compare. */
typedef struct unread_part {
    const bly_filter *f;
    const uint64_t *h;
    size_t n, from;
    uint64_t *maybe;
} unread_part;

static void *ask_unread(void *arg)
{
    const unread_part *const p = arg;
    /* Everyone begins elsewhere, and meets the others' blocks. */
    for (size_t i = 0; i < p->n; i += 64) {
        const size_t at = (p->from + i) % p->n;
        bly_has_hashes(p->f, p->h + at, 64, p->maybe + at / 64);
    }
    return NULL;
}

LAW(mapped_blocks_are_compared_at_once)
{
    needs(kind, BLY_CAN(HAS));
    const size_t n = 64 * 64;
    const bly_spec spec = law_spec(row, n);
    bly_filter *f = filled_from(&spec, 0, n), *m;
    char path[] = "/tmp/bloomery-threads-XXXXXX";
    bly_summed_from = 0;
    bly_sums_shift = 6;
    bly_set_coded(f, false);
    close(mkstemp(path));
    assert_ok(bly_save(f, path));
    assert_ok(bly_map(path, NULL, &m));
    bly_summed_from = BLY_SUMMED_USUALLY;
    bly_sums_shift = 16;
    unlink(path);
    uint64_t *h = hashes_for(&spec, n / 2, n), right[64];
    bly_has_hashes(f, h, n, right);
    pthread_t threads[THREADS];
    uint64_t maybe[THREADS][64];
    unread_part parts[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        parts[i] = (unread_part){ m, h, n, i * 64 * 16, maybe[i] };
        assert_int_equal(
            pthread_create(&threads[i], NULL, ask_unread, &parts[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_memory_equal(maybe[i], right, sizeof right);
    }
    assert_ok(bly_damage(m));
    assert_ok(bly_verify(m));
    assert_false(bly_filter_unread(m));
    bly_free(m);
    bly_free(f);
    free(h);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_calls_at_once),
        cmocka_unit_test(errors_are_a_threads_own),
    };
    return run_laws_and("threads", tests, COUNT_OF(tests), argc, argv);
}
