/*
 * support.c - what the test programs share
 */
#define _GNU_SOURCE
#include "support.h"
#include "base/search.h"
#include "laws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/host.h"

/* ------------------------------------------------------------ assertions */

void skip_reason(const char *format, ...)
{
    char reason[200];
    va_list more;
    va_start(more, format);
    vsnprintf(reason, sizeof reason, format, more);
    va_end(more);
    print_message("skipped: %s\n", reason);
}

void assert_near_at(double got, double want, double rel, const char *what,
                    const char *file, int line)
{
    if (got == want || fabs(got - want) <= rel * fabs(want))
        return;
    print_error("%s is %.12g, not %.12g (within %g of it)\n", what, got, want,
                rel);
    _fail(file, line);
}

void assert_between_at(double got, double low, double high, const char *what,
                       const char *file, int line)
{
    if (got >= low && got <= high)
        return;
    print_error("%s is %.12g, not from %.12g to %.12g\n", what, got, low, high);
    _fail(file, line);
}

void assert_status_at(bly_status got, bly_status want, const char *what,
                      const char *file, int line)
{
    if (got == want)
        return;
    print_error("%s: \"%s\", not \"%s\"; bly_error(): %s\n", what,
                bly_status_text(got), bly_status_text(want), bly_error());
    _fail(file, line);
}

/* ---------------------------------------------------------------- chance */

/* SplitMix64, written out here so that a fault in the library's mixer does
 * not reach the tests of it. */
uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void zipf_draw(double exponent, size_t nkeys, size_t nevents, uint64_t *state,
               uint64_t *events, uint64_t *times)
{
    double *const upto = malloc(nkeys * sizeof *upto);
    double sum = 0;
    assert_non_null(upto);
    for (size_t i = 0; i < nkeys; i++)
        upto[i] = sum += pow((double)i + 1, -exponent);
    for (size_t e = 0; e < nevents; e++) {
        const double at = (double)(test_random(state) >> 11) * 0x1p-53 * sum;
        size_t low;
        LOWER_BOUND(low, nkeys - 1, upto[low] <= at);
        events[e] = low;
        times[low]++;
    }
    free(upto);
}

size_t scaled(size_t n)
{
    return getenv("BLY_QUICK") ? n / 8 : n;
}

size_t stride(size_t n, size_t looks)
{
    return n / scaled(looks) | 1;
}

/* ---------------------------------------------------------------- memory */

static size_t guarded_room(size_t nbytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (nbytes + page - 1) / page * page;
}

void *guarded_new(size_t nbytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = guarded_room(nbytes);
    unsigned char *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + room, page, PROT_NONE), 0);
    return p + room - nbytes;
}

void guarded_free(void *p, size_t nbytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = guarded_room(nbytes);
    munmap((unsigned char *)p + nbytes - room, room + page);
}

/* Every block carries its size in front; so many bytes that the rest keeps the
 * alignment that malloc gives. */
#define LEDGER_HEAD 16

/* A sanitizer's malloc does not say no, it aborts: say it here. */
#define LEDGER_MOST ((size_t)1 << 30)

static void *ledger_alloc(void *ctx, size_t nbytes)
{
    ledger *l = ctx;
    if (atomic_fetch_add(&l->calls, 1) == l->fail_at)
        return NULL;
    unsigned char *p =
        nbytes <= LEDGER_MOST ? malloc(LEDGER_HEAD + nbytes) : NULL;
    if (!p)
        return NULL;
    /* Not zeros: who relies on zeroed memory shall find out. */
    memset(p, 0xa5, LEDGER_HEAD + nbytes);
    memcpy(p, &nbytes, sizeof nbytes);
    atomic_fetch_add(&l->live, 1);
    const int64_t held =
        atomic_fetch_add(&l->held, (int64_t)nbytes) + (int64_t)nbytes;
    int64_t peak = atomic_load(&l->peak);
    while (held > peak && !atomic_compare_exchange_weak(&l->peak, &peak, held))
        ;
    return p + LEDGER_HEAD;
}

static void ledger_release(void *ctx, void *ptr, size_t nbytes)
{
    ledger *l = ctx;
    unsigned char *p = (unsigned char *)ptr - LEDGER_HEAD;
    size_t size;
    memcpy(&size, p, sizeof size);
    if (size != nbytes)
        atomic_fetch_add(&l->wrong, 1);
    atomic_fetch_sub(&l->live, 1);
    atomic_fetch_sub(&l->held, (int64_t)nbytes);
    free(p);
}

void ledger_open(ledger *l)
{
    memset(l, 0, sizeof *l);
    l->mem =
        (bly_mem){ .alloc = ledger_alloc, .release = ledger_release, .ctx = l };
    l->fail_at = -1;
}

void ledger_check(const ledger *l)
{
    assert_int_equal(atomic_load(&l->wrong), 0);
    assert_int_equal(atomic_load(&l->live), 0);
    assert_int_equal(atomic_load(&l->held), 0);
}

/* ----------------------------------------------------------------- bytes */

bool put_bytes(void *ctx, const void *bytes, size_t nbytes)
{
    byte_array *a = ctx;
    if (nbytes > a->room - a->n) {
        const size_t room = 2 * a->room + nbytes;
        unsigned char *at = realloc(a->at, room);
        if (!at)
            return false;
        a->at = at;
        a->room = room;
    }
    if (nbytes)
        memcpy(a->at + a->n, bytes, nbytes);
    a->n += nbytes;
    return true;
}

int64_t get_bytes(void *ctx, void *buf, size_t nbytes)
{
    byte_source *s = ctx;
    const size_t n = nbytes < s->left ? nbytes : s->left;
    if (n)
        memcpy(buf, s->at, n);
    s->at += n;
    s->left -= n;
    return (int64_t)n;
}

byte_array written(const bly_filter *f)
{
    byte_array a = { 0 };
    assert_ok(bly_write(f, put_bytes, &a));
    return a;
}

void assert_parts_are(const bly_filter *f, const byte_array *a, size_t step)
{
    unsigned char part[1000];
    for (int all = 0; all < 2; all++) {
        bly_parts *p;
        size_t nsteps = 0;
        assert_ok(bly_parts_new(f, &p));
        while (!bly_parts_sum(p, step) && (all || nsteps < a->n / step / 2))
            nsteps++;
        assert_true(nsteps <= 2 * a->n / step + 64);
        for (size_t at = 0, n; at < a->n; at += n) {
            n = bly_parts_take(p, at, part, sizeof part);
            assert_true(n == sizeof part || at + n == a->n);
            assert_memory_equal(part, a->at + at, n);
        }
        assert_int_equal(bly_parts_take(p, a->n, part, sizeof part), 0);
        bly_parts_free(p);
    }
}

void assert_same_bytes(const bly_filter *f, const byte_array *want)
{
    byte_array now = written(f);
    assert_int_equal(now.n, want->n);
    assert_memory_equal(now.at, want->at, now.n);
    free(now.at);
}

/* --------------------------------------------------------------- filters */

bly_spec spec_for(const bly_kind_info *kind, uint64_t items)
{
    return (bly_spec){
        .kind = kind->name,
        .items = items,
        .fpr = LAW_FPR,
        .seed = LAW_SEED,
    };
}

uint64_t *hashes_for(const bly_spec *spec, uint64_t first, size_t n)
{
    bly_hasher hasher;
    assert_ok(bly_hasher_for(spec, &hasher));
    uint64_t *h = malloc((n + 1) * sizeof *h);
    assert_non_null(h);
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = first + i;
        bly_hash_ints(&hasher, &key, 1, &h[i]);
    }
    return h;
}

void assert_deviations(const bly_spec *spec, unsigned nfilters, size_t nkeys,
                       double low, double high)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < nfilters; i++) {
        bly_spec own = *spec;
        bly_filter *f;
        bly_stats s;
        own.seed = LAW_SEED + i;
        uint64_t *h = hashes_for(&own, 0, nkeys);
        assert_ok(bly_new(&own, &f));
        assert_ok(bly_add_hashes(f, h, nkeys, NULL, NULL));
        bly_stat(f, &s);
        const double z = (s.items_estimate - (double)nkeys) / s.items_sd;
        sum += z / nfilters;
        squares += z * z / nfilters;
        bly_free(f);
        free(h);
    }
    assert_between(sum, -4 / sqrt(nfilters), 4 / sqrt(nfilters));
    assert_between(sqrt(squares), low, high);
}

bool takes_values(const bly_kind_info *kind)
{
    return (kind->can & BLY_CAN(BUILD)) && (kind->can & BLY_CAN(GET));
}

/* One bit, which every kind that stores values can hold. */
uint64_t value_of(uint64_t key)
{
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 63;
}

static bly_filter *built_from(const bly_spec *spec, const uint64_t *h,
                              const uint64_t *values, size_t n)
{
    bly_builder *b;
    bly_filter *f;
    assert_ok(bly_builder_new(spec, &b));
    assert_ok(bly_builder_add(b, h, values, n));
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    return f;
}

bly_filter *filled_from(const bly_spec *spec, uint64_t first, size_t n)
{
    bly_kind_info kind;
    bly_filter *f;
    assert_true(bly_kind_named(spec->kind, &kind));
    uint64_t *h = hashes_for(spec, first, n);
    if (kind.can & BLY_CAN(ADD)) {
        size_t ndone;
        assert_ok(bly_new(spec, &f));
        assert_ok(bly_add_hashes(f, h, n, NULL, &ndone));
        assert_int_equal(ndone, n);
    } else {
        uint64_t *values = NULL;
        if (takes_values(&kind)) {
            values = malloc((n + 1) * sizeof *values);
            assert_non_null(values);
            for (size_t i = 0; i < n; i++)
                values[i] = value_of(first + i);
        }
        f = built_from(spec, h, values, n);
        free(values);
    }
    free(h);
    return f;
}

bly_filter *filled(const bly_kind_info *kind, uint64_t first, size_t n)
{
    const bly_spec spec = spec_for(kind, n);
    return filled_from(&spec, first, n);
}

uint64_t hits(const bly_filter *f, uint64_t first, size_t n)
{
    enum { PIECE = 1024 };
    uint64_t keys[PIECE], maybe[BLY_BITMAP_WORDS(PIECE)], sum = 0;
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t some = n - at < PIECE ? n - at : PIECE;
        for (size_t i = 0; i < some; i++)
            keys[i] = first + at + i;
        bly_has_ints(f, keys, some, maybe);
        for (size_t w = 0; w < BLY_BITMAP_WORDS(some); w++)
            sum += (uint64_t)__builtin_popcountll(maybe[w]);
    }
    return sum;
}

/* ------------------------------------------------------------------ laws */

static law *first_law, **last_law = &first_law;
static size_t nlaws;

void law_add(law *l)
{
    *last_law = l;
    last_law = &l->next;
    nlaws++;
}

bool law_shares(const law_row *row)
{
    bly_spec spec = law_spec(row, 100);
    bly_filter *f = NULL;
    if (!(row->kind.can & BLY_CAN(SHARE)))
        return false;
    spec.shared = true;
    const bly_status st = bly_new(&spec, &f);
    if (st && row->noptions)
        assert_status(st, BLY_ENOTSUP);
    else
        assert_ok(st);
    bly_free(f);
    return !st;
}

bly_spec law_spec(const law_row *row, uint64_t items)
{
    bly_spec spec = spec_for(&row->kind, items);
    spec.options = &row->option;
    spec.noptions = row->noptions;
    return spec;
}

bly_filter *law_filled(const law_row *row, uint64_t first, size_t n)
{
    const bly_spec spec = law_spec(row, n);
    return filled_from(&spec, first, n);
}

bly_filter *law_part(const law_row *row, uint64_t capacity, uint64_t first,
                     size_t n)
{
    const bly_spec spec = law_spec(row, capacity);
    return filled_from(&spec, first, n);
}

#define MAX_ROWS 256
static law_row rows[MAX_ROWS];
static size_t nrows;

static void row_add(const bly_kind_info *kind, const bly_param *param,
                    const char *word)
{
    law_row *row = &rows[nrows];
    if (nrows == MAX_ROWS)
        abort();
    nrows++;
    row->kind = *kind;
    snprintf(row->name, sizeof row->name, "%s", kind->name);
    if (param) {
        row->option = (bly_option){ param->name, word };
        row->noptions = 1;
        snprintf(row->name, sizeof row->name, "%s,%s=%s", kind->name,
                 param->name, word);
    }
}

static void rows_from_table(void)
{
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        row_add(&kind, NULL, NULL);
        for (size_t p = 0; p < kind.nparams; p++) {
            const bly_param *param = bly_param_at(kind.params, p);
            if (param->type != BLY_CHOICE || !param->settable)
                continue;
            for (size_t c = 0; param->choices[c]; c++)
                if (param->automatic || (double)c != param->def)
                    row_add(&kind, param, param->choices[c]);
        }
    }
}

int run_laws_and(const char *group, const struct CMUnitTest *more, size_t nmore,
                 int argc, char **argv)
{
    rows_from_table();
    struct CMUnitTest *tests = calloc(nmore + nlaws * nrows, sizeof *tests);
    char(*names)[160] = calloc(nlaws * nrows, sizeof *names);
    if (!tests || !names)
        abort();
    size_t n = 0;
    for (; n < nmore; n++)
        tests[n] = more[n];
    for (const law *l = first_law; l; l = l->next) {
        for (size_t i = 0; i < nrows; i++, n++) {
            char *name = names[n - nmore];
            snprintf(name, sizeof names[0], "%s/%s", l->name, rows[i].name);
            tests[n] = (struct CMUnitTest){ .name = name,
                                            .test_func = l->run,
                                            .initial_state = &rows[i] };
        }
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const int failed = _cmocka_run_group_tests(group, tests, n, NULL, NULL);
    free(tests);
    free(names);
    return failed != 0;
}

int run_laws(const char *group, int argc, char **argv)
{
    return run_laws_and(group, NULL, 0, argc, argv);
}

uint64_t fill_random(bly_filter *f, uint64_t rng, uint64_t most)
{
    uint64_t n = 0;
    for (; n < most; n++)
        if (bly_add_hash(f, test_random(&rng)))
            break;
    return n;
}

uint64_t count_of(const bly_filter *f, uint64_t hash)
{
    uint64_t count;
    assert_ok(bly_count_hashes(f, &hash, 1, &count));
    return count;
}

const bly_fact *fact_of(const bly_fact *facts, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(facts[i].name, name) == 0)
            return &facts[i];
    fail_msg("no fact %s", name);
    return NULL;
}

static void add_times(bly_filter *one, bly_filter *both, uint64_t h, int times)
{
    for (int i = 0; i < times; i++) {
        assert_ok(bly_add_hash(one, h));
        assert_ok(bly_add_hash(both, h));
    }
}

void assert_merge_adds_up(bly_filter *a, bly_filter *b, bly_filter *both,
                          int a_times, int b_times)
{
    uint64_t rng = 13;
    for (int j = 0; j < 100; j++) {
        const uint64_t h = test_random(&rng);
        add_times(a, both, h, j % a_times);
        add_times(b, both, h, j % b_times);
    }
    assert_ok(bly_merge(a, b));
    assert_true(bly_equal(a, both));
    assert_ok(bly_verify(a));
    bly_free(a);
    bly_free(b);
    bly_free(both);
}

/* All that a filter of n keys says of 2n, half of which are not there. */
typedef struct said {
    byte_array before, after;
    uint64_t *maybe, *counts, *values, *present;
    bly_status *each;
} said;

static said said_by(const bly_spec *spec, size_t n)
{
    bly_filter *f = filled_from(spec, 0, n);
    uint64_t *h = hashes_for(spec, n / 2, 2 * n);
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    const size_t words = BLY_BITMAP_WORDS(2 * n);
    said s = { .before = written(f),
               .maybe = calloc(words, 8),
               .counts = calloc(2 * n, 8),
               .values = calloc(2 * n, 8),
               .present = calloc(words, 8),
               .each = calloc(2 * n, sizeof *s.each) };
    assert_true(s.maybe && s.counts && s.values && s.present && s.each);
    if (kind.can & BLY_CAN(HAS))
        bly_has_hashes(f, h, 2 * n, s.maybe);
    if (kind.can & BLY_CAN(COUNT))
        assert_ok(bly_count_hashes(f, h, 2 * n, s.counts));
    if (kind.can & BLY_CAN(GET))
        assert_ok(bly_get_hashes(f, h, 2 * n, s.values, s.present));
    if (kind.can & BLY_CAN(REMOVE))
        bly_remove_hashes(f, h, n, s.each);
    s.after = written(f);
    free(h);
    bly_free(f);
    return s;
}

static void said_free(said *s)
{
    free(s->before.at);
    free(s->after.at);
    free(s->maybe);
    free(s->counts);
    free(s->values);
    free(s->present);
    free(s->each);
}

void assert_rows_agree(const bly_spec *spec, size_t n)
{
    static const char *const sets[] = { "popcnt", "avx2,popcnt", "neon",
                                        "avx512,avx2,popcnt" };
    const char *const given = getenv("BLY_CPU");
    char *const kept = given ? strdup(given) : NULL;
    const size_t nbits = BLY_BITMAP_WORDS(2 * n) * 8;
    setenv("BLY_CPU", "portable", 1);
    said want = said_by(spec, n);
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        setenv("BLY_CPU", sets[i], 1);
        said got = said_by(spec, n);
        assert_int_equal(got.before.n, want.before.n);
        assert_memory_equal(got.before.at, want.before.at, want.before.n);
        assert_memory_equal(got.maybe, want.maybe, nbits);
        assert_memory_equal(got.counts, want.counts, 16 * n);
        assert_memory_equal(got.values, want.values, 16 * n);
        assert_memory_equal(got.present, want.present, nbits);
        assert_memory_equal(got.each, want.each, 2 * n * sizeof *got.each);
        assert_int_equal(got.after.n, want.after.n);
        assert_memory_equal(got.after.at, want.after.at, want.after.n);
        said_free(&got);
    }
    said_free(&want);
    unsetenv("BLY_CPU");
    if (kept)
        setenv("BLY_CPU", kept, 1);
    free(kept);
}
