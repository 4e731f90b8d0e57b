/*
 * test_cuda.c - the kernels of adapters/cuda against the library, key by key
 *
 * They are compiled as C and run by an emulator, so that this needs no device.
 * `make cuda-test` runs them where there is one.
 */
#include "support.h"

#include <math.h>
#include <string.h>

#include "emulator.h"

#include "adapters/cuda/kinds.h"
#include "adapters/cuda/parts.h"

#define NKEYS 1500
#define NASKED 1001 /* not whole words; the first third was added */
#define NBLOCKS 2
#define NTHREADS 64

/* ------------------------------------------------------------------ hashes */

static void test_xxh3_of_any_length(void **state)
{
    unsigned char bytes[2200];
    uint64_t seeds[] = { 0, 1, 0x123456789abcdef0, UINT64_MAX }, chance = 1;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)test_random(&chance);
    for (unsigned s = 0; s < COUNT_OF(seeds); s++) {
        const bly_hasher hasher = { .id = BLY_HASH_XXH3, .seed = seeds[s] };
        for (size_t n = 0; n < sizeof bytes - 8; n += n < 600 ? 1 : 41)
            assert_true(xxh3(bytes + n % 8, n, seeds[s]) ==
                        bly_hash(&hasher, bytes + n % 8, n));
    }
}

/* ---------------------------------------------------------------- filters */

static bly_filter *built(const char *kind, const bly_option *option,
                         uint64_t seed, bly_key_type type)
{
    bly_filter *f;
    bly_builder *b;
    uint64_t ints[NKEYS], hashes[NKEYS];
    bly_spec spec = { .kind = kind,
                      .items = NKEYS,
                      .fpr = option && strstr("fingerprint bits", option->name)
                                 ? 0
                                 : 0.01,
                      .seed = seed,
                      .options = option,
                      .noptions = option != NULL,
                      .keying = { type, 0 } };
    for (uint64_t i = 0; i < NKEYS; i++)
        ints[i] = i;
    assert_ok(bly_builder_new(&spec, &b));
    bly_hash_ints(bly_builder_hasher(b), ints, NKEYS, hashes);
    assert_ok(bly_builder_add(b, hashes, NULL, NKEYS));
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    return f;
}

static key_source source_of(const bly_filter *f, const uint64_t *words,
                            bool ints)
{
    bly_blocked any; /* where the seed is found as kernels want it */
    bly_filter *other;
    bly_stats stats;
    bly_peek(f, &stats);
    const bly_spec spec = { .items = 1,
                            .seed = stats.seed,
                            .keying = bly_keying_of(f) };
    assert_ok(bly_new(&spec, &other));
    assert_true(bly_blocked_view(other, &any));
    bly_free(other);
    return (key_source){ .words = words,
                         .ints = ints,
                         .folded = any.folded,
                         .turned =
                             any.folded ? any.flip : bly_int_turned(any.flip) };
}

/* One call of any kernel that asks. */
typedef struct asking {
    key_source keys;
    uint64_t n;
    bool turns;
    uint32_t *maybe;
    bly_blocked blocked;
    bly_view_classic classic;
    bly_view_cuckoo cuckoo;
    bly_view_fuse fuse;
    bly_view_ribbon ribbon;
    bly_view_countmin countmin;
} asking;

#define ASKER(kind)                                   \
    static void ask_##kind(void *ctx)                 \
    {                                                 \
        const asking *const a = ctx;                  \
        kind##_ask(a->kind, a->keys, a->n, a->maybe); \
    }
static void ask_blocked(void *ctx)
{
    const asking *const a = ctx;
    blocked_ask(a->blocked, a->keys, a->n, a->turns, a->maybe);
}

ASKER(classic)
ASKER(cuckoo)
ASKER(fuse)
ASKER(ribbon)
ASKER(countmin)

static void ask_xor(void *ctx)
{
    const asking *const a = ctx;
    xor_ask(a->fuse, a->keys, a->n, a->maybe);
}

typedef struct hashing {
    bly_column column;
    uint64_t seed, *hashes;
    bool folded;
} hashing;

static void hash_column(void *ctx)
{
    const hashing *const h = ctx;
    column_hash(h->column, 1, NASKED, h->seed, h->folded, h->hashes + 1);
}

/* Hashes, integers and a column: the answers of the library. */
static void agrees(const bly_filter *f, asking *a, void (*ask)(void *))
{
    static uint64_t ints[NASKED + 1], hashes[NASKED + 1];
    static uint32_t offsets[NASKED + 2];
    uint64_t want[BLY_BITMAP_WORDS(NASKED)], got[BLY_BITMAP_WORDS(NASKED)];
    bly_stats stats;
    bly_peek(f, &stats);
    for (uint64_t i = 0; i <= NASKED; i++) {
        ints[i] = i < NASKED / 3 ? i : bly_mix64(i);
        offsets[i + 1] = (uint32_t)(8 * (i + 1));
    }
    bly_has_ints(f, ints + 1, NASKED, want);
    hashing h = { { .bytes = ints, .offsets = offsets },
                  stats.seed,
                  hashes,
                  stats.hash_id == BLY_HASH_FOLDED };
    emulate(NBLOCKS, NTHREADS, 0, hash_column, &h);
    for (unsigned form = 0; form < 2; form++) {
        a->keys = source_of(f, (form ? ints : hashes) + 1, form);
        a->n = NASKED;
        a->turns = form;
        a->maybe = (uint32_t *)(void *)got;
        memset(got, 0xff, sizeof got);
        emulate(NBLOCKS, NTHREADS, 0, ask, a);
        assert_memory_equal(got, want, sizeof want);
    }
}

/* For any seed, both hashes of integers, and every shape of which there is a
 * view. */
#define ASKS(kind, VIEW_OF, field, ...)                                   \
    do {                                                                  \
        const bly_option options[] = { { NULL, NULL }, __VA_ARGS__ };     \
        for (unsigned i = 0; i < 2 * COUNT_OF(options); i++) {            \
            const bly_option *const o = &options[i / 2];                  \
            bly_filter *const f = built(#kind, o->name ? o : NULL, 7 * i, \
                                        i % 2 ? BLY_KEYS_UINT64 : 0);     \
            asking a = { 0 };                                             \
            assert_true(VIEW_OF(f, &a.field));                            \
            agrees(f, &a, ask_##kind);                                    \
            bly_free(f);                                                  \
        }                                                                 \
    } while (0)

static void test_asking(void **state)
{
    (void)state;
    ASKS(blocked, bly_blocked_view, blocked, { "k", "8" }, { "k", "4" },
         { "k", "16" });
    ASKS(classic, bly_view_of_classic, classic, { "layout", "shared" });
    ASKS(cuckoo, bly_view_of_cuckoo, cuckoo, { "fingerprint", "8" },
         { "fingerprint", "12" }, { "mixing", "full" });
    ASKS(fuse, bly_view_of_fuse, fuse, { "bits", "13" }, { "shards", "4" },
         { "arity", "4" }, { "mixing", "full" });
    ASKS(xor, bly_view_of_xor, fuse,
         {
             "bits", "16" },
         { "shards", "3" });
    ASKS(ribbon, bly_view_of_ribbon, ribbon, { "tight", "1" });
    ASKS(countmin, bly_view_of_countmin, countmin, { "counter", "32" },
         { "update", "conservative" });
}

/* ------------------------------------------------------------------ adding */

typedef struct adding {
    key_source keys;
    uint64_t n, *cells;
    bly_blocked blocked;
    bly_view_classic classic;
    bly_view_countmin countmin;
} adding;

#define ADDER(kind)                                   \
    static void add_##kind(void *ctx)                 \
    {                                                 \
        const adding *const a = ctx;                  \
        kind##_add(a->kind, a->cells, a->keys, a->n); \
    }
ADDER(blocked)
ADDER(classic)
ADDER(countmin)

/* A new filter of the shape of f, filled from outside, is f to the byte. */
static void fills(const bly_filter *f, adding *a, void (*add)(void *))
{
    bly_filter *g;
    uint64_t ints[NKEYS], nbytes;
    void *cells;
    assert_ok(bly_clone(f, &g));
    assert_ok(bly_cells_open(g, &cells, &nbytes));
    memset(cells, 0, (size_t)nbytes);
    for (uint64_t i = 0; i < NKEYS; i++)
        ints[i] = i;
    a->keys = source_of(f, ints, true);
    a->n = NKEYS;
    a->cells = cells;
    emulate(NBLOCKS, NTHREADS, 0, add, a);
    assert_ok(bly_cells_close(g));
    const uint64_t size = bly_written_bytes(f);
    unsigned char *const want = malloc((size_t)size), *const got =
                                                          malloc((size_t)size);
    assert_true(bly_written_bytes(g) == size);
    assert_true(bly_write_part(f, 0, want, (size_t)size) == size);
    assert_true(bly_write_part(g, 0, got, (size_t)size) == size);
    assert_memory_equal(got, want, (size_t)size);
    free(want);
    free(got);
    bly_free(g);
}

#define ADDS(kind, VIEW_OF, ...)                                          \
    do {                                                                  \
        const bly_option options[] = { { NULL, NULL }, __VA_ARGS__ };     \
        for (unsigned i = 0; i < 2 * COUNT_OF(options); i++) {            \
            const bly_option *const o = &options[i / 2];                  \
            bly_filter *const f = built(#kind, o->name ? o : NULL, 7 * i, \
                                        i % 2 ? BLY_KEYS_UINT64 : 0);     \
            adding a = { 0 };                                             \
            assert_true(VIEW_OF(f, &a.kind));                             \
            fills(f, &a, add_##kind);                                     \
            bly_free(f);                                                  \
        }                                                                 \
    } while (0)

static void test_adding(void **state)
{
    (void)state;
    ADDS(blocked, bly_blocked_view, { "k", "4" }, { "k", "16" });
    ADDS(classic, bly_view_of_classic, { "layout", "shared" });
    ADDS(countmin, bly_view_of_countmin, { "counter", "32" });
}

static void test_cells_that_cannot_be_written(void **state)
{
    bly_filter *f = built("fuse", NULL, 0, 0);
    void *cells;
    uint64_t nbytes;
    (void)state;
    assert_status(bly_cells_open(f, &cells, &nbytes), BLY_ENOTSUP);
    bly_free(f);
    const bly_option conservative = { "update", "conservative" };
    f = built("countmin", &conservative, 0, 0);
    assert_status(bly_cells_open(f, &cells, &nbytes), BLY_ENOTSUP);
    bly_free(f);
    /* A row of counters that does not sum up to the others. */
    f = built("countmin", NULL, 0, 0);
    assert_ok(bly_cells_open(f, &cells, &nbytes));
    ((unsigned char *)cells)[0]++;
    assert_status(bly_cells_close(f), BLY_EFORMAT);
    bly_free(f);
    /* A bit past the last one. */
    const bly_spec spec = { .kind = "classic", .items = 10 };
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_cells_open(f, &cells, &nbytes));
    ((unsigned char *)cells)[nbytes - 1] = 0x80;
    if (bly_raw_bytes(f) != nbytes)
        assert_status(bly_cells_close(f), BLY_EFORMAT);
    bly_free(f);
}

/* ------------------------------------------------------------------- parts */

typedef struct working {
    parts p;
    parts_job job;
    key_source keys;
    uint64_t n, nruns;
} working;

static void deal(void *ctx)
{
    const working *const w = ctx;
    parts_deal(w->p, w->job, w->keys, w->n);
}

static void work(void *ctx)
{
    const working *const w = ctx;
    parts_work(w->p, w->job, w->keys, w->nruns);
}

static void work_directly(void *ctx)
{
    const working *const w = ctx;
    job_direct(w->job, w->keys, w->n);
}

/* Deal n keys to parts that have this much room, and do the job. */
static void in_parts(working *w, unsigned bits, uint64_t room)
{
    uint64_t filled[1u << PARTS_MOST_BITS] = { 0 };
    w->p = (parts){ .keys = malloc((size_t)(room << bits) * 8),
                    .filled = filled,
                    .room = room,
                    .bits = bits };
    assert_non_null(w->p.keys);
    emulate(2, PARTS_THREADS, PARTS_SHARED(bits), deal, w);
    w->nruns = (room + PARTS_RUN - 1) / PARTS_RUN;
    emulate(w->nruns << bits, 256, 8, work, w);
    free(w->p.keys);
}

static int compare_words(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* In parts with room and without, from tiles that are full and that are not:
 * the same as directly, and as the library. */
static void test_parts(void **state)
{
    enum { N = 9000 };
    static uint64_t ints[N], maybe[BLY_BITMAP_WORDS(N)], want[N], got[N];
    bly_filter *const f = built("blocked", NULL, 3, BLY_KEYS_UINT64);
    working w = { .n = N };
    size_t nwant = 0;
    (void)state;
    assert_true(bly_blocked_view(f, &w.job.b));
    for (uint64_t i = 0; i < N; i++)
        ints[i] = i % 3 ? bly_mix64(i) : i % NKEYS;
    bly_has_ints(f, ints, N, maybe);
    for (uint64_t i = 0; i < N; i++)
        if (maybe[i / 64] >> i % 64 & 1)
            want[nwant++] = ints[i];
    qsort(want, nwant, sizeof want[0], compare_words);
    w.keys = source_of(f, ints, true);
    const struct {
        unsigned bits;
        uint64_t room;
    } tries[] = { { 0, 0 }, { 6, N / 64 + 80 }, { 5, 20 } };
    for (unsigned i = 0; i < COUNT_OF(tries); i++) {
        uint64_t nhits = 0;
        w.job.nhits = &nhits;
        w.job.selected = i % 2 ? got : NULL;
        if (tries[i].bits)
            in_parts(&w, tries[i].bits, tries[i].room);
        else
            emulate(NBLOCKS, NTHREADS, 0, work_directly, &w);
        assert_int_equal(nhits, nwant);
        if (i % 2) {
            qsort(got, nwant, sizeof got[0], compare_words);
            assert_memory_equal(got, want, nwant * sizeof got[0]);
        }
    }
    /* Adding. */
    bly_filter *g;
    uint64_t nbytes;
    assert_ok(bly_add_ints(f, ints, N, NULL, NULL));
    for (unsigned i = 0; i < COUNT_OF(tries); i++) {
        g = built("blocked", NULL, 3, BLY_KEYS_UINT64);
        w.job.words = (uint64_t *)(uintptr_t)bly_cells(g, &nbytes);
        w.job.b.words = w.job.words;
        if (tries[i].bits)
            in_parts(&w, tries[i].bits, tries[i].room);
        else
            emulate(NBLOCKS, NTHREADS, 0, work_directly, &w);
        assert_memory_equal(w.job.words, bly_cells(f, &nbytes), (size_t)nbytes);
        bly_free(g);
    }
    bly_free(f);
}

/* ----------------------------------------------------------- whole filters */

typedef struct joining {
    uint64_t *dst;
    const uint64_t *src;
    uint64_t nwords, ones;
    bool wide;
} joining;

static void unite(void *ctx)
{
    const joining *const j = ctx;
    cells_unite(j->dst, j->src, j->nwords);
}

static void sum_up(void *ctx)
{
    const joining *const j = ctx;
    cells_sum(j->dst, j->src, j->nwords, j->wide);
}

static void count_ones(void *ctx)
{
    joining *const j = ctx;
    cells_ones(j->src, j->nwords, &j->ones);
}

static void test_whole_filters(void **state)
{
    uint64_t a[] = { 1, 0xffffffff00000000, 5 }, b[] = { 2, 1, 4 };
    joining j = { a, b, 3, 0, false };
    (void)state;
    emulate(NBLOCKS, NTHREADS, 0, count_ones, &j);
    assert_int_equal(j.ones, 3);
    emulate(NBLOCKS, NTHREADS, 0, unite, &j);
    assert_true(a[0] == 3 && a[1] == 0xffffffff00000001 && a[2] == 5);
    uint64_t c[] = { 0x0000000100000002 }, d[] = { 0x0000000300000004 };
    j = (joining){ c, d, 1, 0, false };
    emulate(1, LANES, 0, sum_up, &j);
    assert_true(c[0] == 0x0000000400000006);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xxh3_of_any_length),
        cmocka_unit_test(test_asking),
        cmocka_unit_test(test_adding),
        cmocka_unit_test(test_cells_that_cannot_be_written),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_whole_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
