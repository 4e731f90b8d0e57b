/*
 * test_foreign_growing.c - filters of other systems that change: the laws of
 * every format that takes keys after it was made
 *
 * The laws walk the table of formats, so a new one that says BLY_FORMAT_ADD is
 * held to them. tests/test_redis_*.py hold the same engines to the servers.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/format.h"
#include "support.h"

/* ------------------------------------------------------------------ helpers */

/* All formats that change: call it with each. */
static void each_format(void (*law)(const char *format))
{
    bly_format_info t;
    size_t n = 0;
    for (size_t i = 0; bly_format_at(i, &t); i++)
        if (t.can & BLY_FORMAT_ADD) {
            print_message("%s\n", t.name);
            law(t.name);
            n++;
        }
    assert_true(n >= 3);
}

static bly_foreign *fresh_one(const char *format, uint64_t items)
{
    const bly_foreign_spec spec = { .format = format, .items = items };
    bly_foreign *f;
    assert_ok(bly_foreign_new(&spec, &f));
    return f;
}

enum { LETTERS = 24 };

/* Keys [from, from + n), as bytes in text. */
static void keys_of(unsigned from, unsigned n, char (*text)[LETTERS],
                    bly_bytes *keys)
{
    for (unsigned i = 0; i < n; i++) {
        const int len = snprintf(text[i], LETTERS, "key %u", from + i);
        keys[i] = (bly_bytes){ text[i], (size_t)len };
    }
}

static void add_range(bly_foreign *f, unsigned from, unsigned n)
{
    static char text[3000][LETTERS];
    static bly_bytes keys[3000];
    size_t done;
    assert_true(n <= 3000);
    keys_of(from, n, text, keys);
    assert_ok(bly_foreign_add(f, keys, n, NULL, &done));
    assert_int_equal(done, n);
}

static void assert_range(const bly_foreign *f, unsigned from, unsigned n)
{
    static char text[3000][LETTERS];
    static bly_bytes keys[3000];
    uint64_t found[BLY_BITMAP_WORDS(3000)];
    keys_of(from, n, text, keys);
    assert_ok(bly_foreign_has(f, keys, n, found, NULL));
    for (unsigned i = 0; i < n; i++)
        assert_true(found[i / 64] >> i % 64 & 1);
}

static byte_array file_of(bly_foreign *f)
{
    byte_array out = { 0 };
    assert_ok(bly_foreign_write(f, put_bytes, &out));
    return out;
}

static void assert_same_file(byte_array a, byte_array b)
{
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.at, b.at, a.n);
    free(a.at);
    free(b.at);
}

static uint64_t items_in(const bly_foreign *f)
{
    bly_foreign_sizes s;
    bly_foreign_size(f, BLY_WHOLE, &s);
    return s.items;
}

/* --------------------------------------------------------------------- laws */

/* What is added is there, past the capacity too, one by one or together; and
 * the file of the one is the file of the other. */
static void law_add_then_has(const char *format)
{
    bly_foreign *one = fresh_one(format, 100), *all = fresh_one(format, 100);
    for (unsigned i = 0; i < 2000; i++)
        add_range(one, i, 1);
    add_range(all, 0, 2000);
    assert_range(one, 0, 2000);
    assert_true(bly_foreign_nparts(all) > 1);
    assert_between((double)items_in(all), 1900, 2000);
    assert_same_file(file_of(one), file_of(all));
    bly_foreign_free(one);
    bly_foreign_free(all);
}

/* The same of arrays that no cache holds, whose places are fetched otherwise:
 * some keys come twice, and what is new is told alike. */
static void law_large(const char *format)
{
    enum { LARGE = 20 * 1000 * 1000, N = 1000 };
    static char text[N][LETTERS];
    static bly_bytes keys[N];
    bly_foreign *one = fresh_one(format, LARGE),
                *all = fresh_one(format, LARGE);
    for (unsigned from = 0; from < 4 * N; from += N / 2) {
        uint64_t fresh[BLY_BITMAP_WORDS(N)], found[BLY_BITMAP_WORDS(N)], bit;
        keys_of(from, N, text, keys);
        assert_ok(bly_foreign_has(all, keys, N, found, NULL));
        assert_ok(bly_foreign_add_new(all, keys, N, fresh, NULL));
        for (unsigned i = 0; i < N; i++) {
            assert_ok(bly_foreign_has(one, &keys[i], 1, &bit, NULL));
            assert_int_equal(bit, found[i / 64] >> i % 64 & 1);
            assert_ok(bly_foreign_add_new(one, &keys[i], 1, &bit, NULL));
            assert_int_equal(bit, fresh[i / 64] >> i % 64 & 1);
        }
        assert_range(all, from, N);
    }
    assert_same_file(file_of(one), file_of(all));
    bly_foreign_free(one);
    bly_foreign_free(all);
}

/* fresh: the keys that were not there, as has would have said before. */
static void law_fresh_is_what_was_not_there(const char *format)
{
    bly_foreign *f = fresh_one(format, 50);
    static char text[300][LETTERS];
    static bly_bytes keys[300];
    for (unsigned round = 0; round < 10; round++) {
        uint64_t before, fresh;
        keys_of(round * 30, 60, text, keys);
        for (unsigned i = 0; i < 60; i++) {
            assert_ok(bly_foreign_has(f, &keys[i], 1, &before, NULL));
            assert_ok(bly_foreign_add(f, &keys[i], 1, &fresh, NULL));
            assert_int_equal(fresh, !before);
        }
    }
    bly_foreign_free(f);
}

/* Written, opened for editing, added to: the same as never written. And an
 * opened one takes no keys. */
static void law_edited_goes_on(const char *format)
{
    bly_foreign *f = fresh_one(format, 100), *g;
    const bly_foreign_spec spec = { .format = format };
    const bly_bytes key = { "x", 1 };
    add_range(f, 0, 500);
    byte_array file = file_of(f);
    assert_ok(bly_foreign_open(&spec, file.at, file.n, &g));
    assert_status(bly_foreign_add(g, &key, 1, NULL, NULL), BLY_EREADONLY);
    assert_int_equal(items_in(g), items_in(f));
    bly_foreign_free(g);
    assert_ok(bly_foreign_edit(&spec, file.at, file.n, &g));
    memset(file.at, 0, file.n); /* not needed any more */
    free(file.at);
    add_range(f, 400, 600);
    add_range(g, 400, 600);
    assert_same_file(file_of(f), file_of(g));
    assert_range(g, 0, 1000);
    bly_foreign_free(g);
    bly_foreign_free(f);
}

/* A copy is the same, and goes its own way. */
static void law_copy(const char *format)
{
    bly_foreign *f = fresh_one(format, 100), *g;
    add_range(f, 0, 500);
    assert_ok(bly_foreign_copy(f, &g));
    byte_array was = file_of(f);
    add_range(g, 500, 1000);
    assert_same_file(was, file_of(f));
    add_range(f, 500, 1000);
    assert_same_file(file_of(f), file_of(g));
    bly_foreign_free(f);
    bly_foreign_free(g);
}

/* The head and all chunks, of any size, make the same filter. */
static void law_pieces(const char *format)
{
    bly_foreign *f = fresh_one(format, 100), *g;
    const bly_foreign_spec spec = { .format = format };
    unsigned char head[4096], *from, *to;
    add_range(f, 0, 1000);
    const size_t nhead = bly_foreign_head(f, head, sizeof head);
    assert_true(nhead <= sizeof head);
    if (nhead == 0) {
        assert_status(bly_foreign_start(&spec, head, 1, &g), BLY_ENOTSUP);
        bly_foreign_free(f);
        return;
    }
    assert_ok(bly_foreign_start(&spec, head, nhead, &g));
    uint64_t at = 0;
    for (size_t n; (n = bly_foreign_chunk(f, at, 37, &from)); at += n) {
        assert_int_equal(bly_foreign_chunk(g, at, 37, &to), n);
        memcpy(to, from, n);
    }
    assert_int_equal(bly_foreign_chunk(g, at, 37, &to), 0);
    add_range(f, 1000, 100);
    add_range(g, 1000, 100);
    assert_same_file(file_of(f), file_of(g));
    bly_foreign_free(g);
    for (size_t n = 0; n < nhead; n++) {
        assert_status(bly_foreign_start(&spec, head, n, &g), BLY_EFORMAT);
        assert_null(g);
    }
    bly_foreign_free(f);
}

/* A record in memory: values of 9 bytes and strings. */
typedef struct tape {
    byte_array bytes;
    size_t at;
    bool failed;
    const bly_mem *mem;
} tape;

static void tape_uint(void *ctx, uint64_t x)
{
    unsigned char bytes[8];
    bly_store64(bytes, x);
    put_bytes(&((tape *)ctx)->bytes, bytes, 8);
}

static void tape_real(void *ctx, double x)
{
    tape_uint(ctx, bly_real_bits(x));
}

static void tape_string(void *ctx, const void *at, size_t n)
{
    tape_uint(ctx, n);
    put_bytes(&((tape *)ctx)->bytes, at, n);
}

static uint64_t tape_get(void *ctx)
{
    tape *const t = ctx;
    if (t->failed || t->bytes.n - t->at < 8) {
        t->failed = true;
        return 0;
    }
    t->at += 8;
    return bly_load64((const unsigned char *)t->bytes.at + t->at - 8);
}

static double tape_get_real(void *ctx)
{
    return bly_bits_real(tape_get(ctx));
}

static void *tape_get_string(void *ctx, size_t *n)
{
    tape *const t = ctx;
    const uint64_t want = tape_get(t);
    if (t->failed || want > t->bytes.n - t->at) {
        t->failed = true;
        return NULL;
    }
    unsigned char *const out = t->mem->alloc(t->mem->ctx, (size_t)want);
    if (!out) {
        t->failed = true;
        return NULL;
    }
    memcpy(out, t->bytes.at + t->at, (size_t)want);
    t->at += (size_t)want;
    *n = (size_t)want;
    return out;
}

static bool tape_failed(void *ctx)
{
    return ((tape *)ctx)->failed;
}

static bly_foreign_record record_on(tape *t)
{
    return (bly_foreign_record){ .put_uint = tape_uint,
                                 .put_real = tape_real,
                                 .put_bytes = tape_string,
                                 .get_uint = tape_get,
                                 .get_real = tape_get_real,
                                 .get_bytes = tape_get_string,
                                 .failed = tape_failed,
                                 .ctx = t };
}

/* Restore from the first n bytes of a tape, as the newest version that is
 * known. */
static bly_status restore(const char *format, const bly_mem *mem,
                          byte_array bytes, size_t n, bly_foreign **out)
{
    bly_status st = BLY_EFORMAT;
    for (unsigned version = 9; version-- > 0 && st == BLY_EFORMAT;) {
        tape t = { .bytes = { .at = bytes.at, .n = n }, .mem = mem };
        const bly_foreign_record from = record_on(&t);
        const bly_foreign_spec spec = { .format = format, .mem = mem };
        st = bly_foreign_restore(&spec, version, &from, out);
        if (!st && t.at != n) { /* of an older version by chance */
            bly_foreign_free(*out);
            *out = NULL;
            st = BLY_EFORMAT;
        }
    }
    return st;
}

/* A server saves while it is short of memory: a chain is stored without a copy
 * of its arrays. */
static void storing_copies_no_array(void **unused)
{
    static const char *const formats[] = { "redisbloom", "valkeybloom" };
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        ledger l;
        bly_foreign *f;
        tape t = { .mem = &bly_mem_system };
        bly_foreign_record to = record_on(&t);
        ledger_open(&l);
        to.mem = &l.mem;
        const bly_foreign_spec spec = { .format = formats[i],
                                        .items = 1500, /* one is small */
                                        .mem = &l.mem };
        assert_ok(bly_foreign_new(&spec, &f));
        for (unsigned from = 0; from < 12000; from += 3000)
            add_range(f, from, 3000);
        const long calls = l.calls;
        assert_ok(bly_foreign_store(f, &to));
        assert_int_equal(l.calls, calls);
        assert_true(t.bytes.n > 12000);
        free(t.bytes.at);
        bly_foreign_free(f);
        ledger_check(&l);
    }
}

/* A record is the whole filter; cut anywhere, changed anywhere, it is refused
 * or safe; and no allocation that fails leaves anything behind. */
static void law_records(const char *format)
{
    bly_foreign *f = fresh_one(format, 40), *g;
    tape t = { .mem = &bly_mem_system };
    const bly_foreign_record to = record_on(&t);
    add_range(f, 0, 150);
    assert_ok(bly_foreign_store(f, &to));
    assert_ok(restore(format, &bly_mem_system, t.bytes, t.bytes.n, &g));
    add_range(f, 150, 300);
    add_range(g, 150, 300);
    assert_same_file(file_of(f), file_of(g));
    bly_foreign_free(g);
    bly_foreign_free(f);
    for (size_t n = 0; n < t.bytes.n; n++)
        if (!restore(format, &bly_mem_system, t.bytes, n, &g))
            bly_foreign_free(g);
    for (size_t i = 0; i < t.bytes.n * 8; i++) {
        t.bytes.at[i / 8] ^= (unsigned char)(1u << i % 8);
        if (!restore(format, &bly_mem_system, t.bytes, t.bytes.n, &g)) {
            const bly_bytes key = { "key 7", 5 };
            uint64_t bit;
            bly_foreign_limit(g, 1 << 20);
            (void)!bly_foreign_add(g, &key, 1, &bit, NULL);
            assert_ok(bly_foreign_has(g, &key, 1, &bit, NULL));
            bly_foreign_free(g);
        }
        t.bytes.at[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    long turn = 0;
    for (bly_status st = BLY_ENOMEM; st; turn++) {
        ledger l;
        ledger_open(&l);
        l.fail_at = turn;
        st = restore(format, &l.mem, t.bytes, t.bytes.n, &g);
        bly_foreign_free(st ? NULL : g);
        ledger_check(&l);
    }
    assert_true(turn > 2);
    free(t.bytes.at);
}

/* Growing needs memory. Where there is none the filter is as it was, byte for
 * byte, and the key that failed is told; later it goes on. */
static void law_no_memory_changes_nothing(const char *format)
{
    ledger l;
    ledger_open(&l);
    const bly_foreign_spec spec = { .format = format,
                                    .items = 20,
                                    .mem = &l.mem };
    bly_foreign *f, *g = fresh_one(format, 20);
    static char text[600][LETTERS];
    static bly_bytes keys[600];
    keys_of(0, 600, text, keys);
    assert_ok(bly_foreign_new(&spec, &f));
    size_t at = 0, failures = 0;
    while (at < 600) {
        size_t done;
        l.fail_at = l.calls; /* the very next one */
        const bly_status st =
            bly_foreign_add(f, keys + at, 600 - at, NULL, &done);
        l.fail_at = -1;
        add_range(g, (unsigned)at, (unsigned)done);
        at += done;
        assert_same_file(file_of(f), file_of(g));
        if (st) {
            assert_status(st, BLY_ENOMEM);
            failures++;
            assert_ok(bly_foreign_add(f, keys + at, 1, NULL, NULL));
            add_range(g, (unsigned)at, 1);
            at++;
        }
    }
    assert_true(failures > 1);
    bly_foreign_free(f);
    bly_foreign_free(g);
    ledger_check(&l);
}

/* What the whole is counted as is what it grew by, part by part. */
static void assert_counted(const bly_foreign *f)
{
    bly_foreign_sizes whole, part;
    uint64_t sum = 0;
    bly_foreign_size(f, BLY_WHOLE, &whole);
    for (size_t i = 0; i < whole.nparts; i++) {
        bly_foreign_size(f, i, &part);
        sum += part.counted;
    }
    assert_int_equal(sum, whole.counted);
}

/* The same for a limit, which may be raised. */
static void law_limit(const char *format)
{
    bly_foreign *f = fresh_one(format, 20), *g;
    static char text[600][LETTERS];
    static bly_bytes keys[600];
    size_t done;
    bly_foreign_sizes s;
    keys_of(0, 600, text, keys);
    bly_foreign_limit(f, 600);
    assert_status(bly_foreign_add(f, keys, 600, NULL, &done), BLY_ERANGE);
    bly_foreign_size(f, BLY_WHOLE, &s);
    assert_true(done > 20 && s.counted <= 600);
    assert_counted(f);
    assert_range(f, 0, (unsigned)done);
    bly_foreign_limit(f, 0);
    assert_ok(bly_foreign_add(f, keys + done, 600 - done, NULL, NULL));
    assert_range(f, 0, 600);
    assert_counted(f);
    const bly_foreign_spec spec = { .format = format,
                                    .items = 1000000,
                                    .max_bytes = 1000 };
    assert_status(bly_foreign_new(&spec, &g), BLY_ERANGE);
    bly_foreign_free(f);
}

/* Every bit of a file flipped, then edited and added to: refused, or safe. */
static void law_hostile_files_are_edited_safely(const char *format)
{
    const bly_foreign_spec spec = { .format = format, .max_bytes = 1 << 16 };
    bly_foreign *f = fresh_one(format, 20), *g;
    static char text[200][LETTERS];
    static bly_bytes keys[200];
    keys_of(0, 200, text, keys);
    add_range(f, 0, 60);
    byte_array file = file_of(f);
    for (size_t i = 0; i < file.n * 8; i++) {
        file.at[i / 8] ^= (unsigned char)(1u << i % 8);
        if (!bly_foreign_edit(&spec, file.at, file.n, &g)) {
            size_t done;
            (void)!bly_foreign_add(g, keys, 200, NULL, &done);
            if (done)
                assert_range(g, 0, (unsigned)done);
            uint64_t count;
            (void)bly_foreign_count(g, keys, 1, &count);
            (void)bly_foreign_remove(g, keys[0]);
            (void)bly_foreign_compact(g);
            bly_foreign_free(g);
        }
        file.at[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    free(file.at);
    bly_foreign_free(f);
}

/* What is taken out is gone, and what counts counts. */
static void law_remove_and_count(const char *format)
{
    bly_format_info t;
    assert_true(bly_format_named(format, &t));
    bly_foreign *f = fresh_one(format, 100);
    const bly_bytes key = { "twice", 5 };
    uint64_t count;
    if (!(t.can & BLY_FORMAT_REMOVE)) {
        assert_status(bly_foreign_remove(f, key), BLY_ENOTSUP);
        assert_status(bly_foreign_count(f, &key, 1, &count), BLY_ENOTSUP);
        bly_foreign_free(f);
        return;
    }
    assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    assert_ok(bly_foreign_count(f, &key, 1, &count));
    assert_int_equal(count, 2);
    add_range(f, 0, 900);
    const size_t nparts = bly_foreign_nparts(f);
    static char text[900][LETTERS];
    static bly_bytes keys[900];
    keys_of(0, 900, text, keys);
    for (unsigned i = 0; i < 900; i++)
        assert_ok(bly_foreign_remove(f, keys[i]));
    assert_int_equal(items_in(f), 2);
    assert_ok(bly_foreign_remove(f, key));
    assert_ok(bly_foreign_remove(f, key));
    assert_status(bly_foreign_remove(f, key), BLY_EABSENT);
    assert_ok(bly_foreign_compact(f));
    assert_true(bly_foreign_nparts(f) < nparts);
    bly_foreign_free(f);
}

/* Everything may move, and nothing is lost. */
static void *move_away(void *ctx, void *at)
{
    const size_t n = malloc_usable_size(at);
    void *const fresh = malloc(n);
    ++*(size_t *)ctx;
    memcpy(fresh, at, n);
    free(at);
    return fresh;
}

static void law_moves(const char *format)
{
    bly_foreign *f = fresh_one(format, 20);
    size_t moved = 0;
    add_range(f, 0, 300);
    byte_array was = file_of(f);
    for (size_t i = 0; i < bly_foreign_nparts(f); i++)
        bly_foreign_move(&f, i, move_away, &moved);
    /* It, its structures, and an array for each part: a chain is its links,
     * tables of a cuckoo filter hang on another structure. */
    const size_t nblocks = strcmp(format, "rediscuckoo") == 0 ? 3 : 2;
    assert_int_equal(moved, bly_foreign_nparts(f) + nblocks);
    assert_same_file(was, file_of(f));
    add_range(f, 300, 300);
    assert_range(f, 0, 600);
    bly_foreign_free(f);
}

#define LAW(name)                         \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        each_format(law_##name);          \
    }
LAW(add_then_has)
LAW(large)
LAW(fresh_is_what_was_not_there)
LAW(edited_goes_on)
LAW(copy)
LAW(pieces)
LAW(records)
LAW(no_memory_changes_nothing)
LAW(limit)
LAW(hostile_files_are_edited_safely)
LAW(remove_and_count)
LAW(moves)

/* ------------------------------------------------------- rules of their own */

static bly_foreign *with_option(const char *format, const char *name,
                                const char *value, uint64_t items)
{
    const bly_option o = { name, value };
    const bly_foreign_spec spec = {
        .format = format, .options = &o, .noptions = 1, .items = items
    };
    bly_foreign *f;
    assert_ok(bly_foreign_new(&spec, &f));
    return f;
}

/* One that does not scale holds its capacity, and then says so. */
static void test_full(void **state)
{
    (void)state;
    static const struct {
        const char *format, *option, *value;
    } rows[] = { { "redisbloom", "scaling", "no" },
                 { "valkeybloom", "scaling", "no" },
                 { "rediscuckoo", "growth", "0" } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_foreign *f =
            with_option(rows[i].format, rows[i].option, rows[i].value, 100);
        static char text[300][LETTERS];
        static bly_bytes keys[300];
        size_t done;
        keys_of(0, 300, text, keys);
        assert_status(bly_foreign_add(f, keys, 300, NULL, &done), BLY_EFULL);
        assert_true(done >= 80 && done < 300);
        assert_int_equal(bly_foreign_nparts(f), 1);
        byte_array was = file_of(f);
        assert_status(bly_foreign_add(f, keys + done, 1, NULL, NULL),
                      BLY_EFULL);
        assert_same_file(was, file_of(f));
        bly_foreign_free(f);
    }
}

/* 65,535 tables of a byte, in a header of 38: a moment, and not seconds of
 * moving the list of tables. There are no more, as in RedisBloom. */
static void test_many_tables(void **state)
{
    (void)state;
    unsigned char head[38] = { 0 };
    const bly_foreign_spec spec = { .format = "rediscuckoo" };
    bly_foreign *f;
    head[8] = 1;               /* bucket */
    head[24] = head[25] = 255; /* tables */
    head[32] = head[34] = head[36] = 1;
    assert_ok(bly_foreign_start(&spec, head, sizeof head, &f));
    assert_int_equal(bly_foreign_nparts(f), 65535);
    bly_foreign_free(f);
    head[24] = head[25] = 0;
    head[26] = 1;
    assert_status(bly_foreign_start(&spec, head, sizeof head, &f), BLY_EFORMAT);
}

/* As far as it would grow: the sum of the capacities. */
static void test_scales(void **state)
{
    (void)state;
    uint64_t holds;
    bly_foreign_spec spec = { .format = "valkeybloom", .items = 100 };
    assert_ok(bly_foreign_scales(&spec, 100, &holds));
    assert_int_equal(holds, 100);
    assert_ok(bly_foreign_scales(&spec, 101, &holds));
    assert_int_equal(holds, 300);
    spec.max_bytes = 1000;
    assert_status(bly_foreign_scales(&spec, 100000, &holds), BLY_ERANGE);
    assert_int_equal(holds, 300);
    spec = (bly_foreign_spec){ .format = "guava", .items = 100 };
    assert_status(bly_foreign_scales(&spec, 100, &holds), BLY_ENOTSUP);
}

static void test_options(void **state)
{
    (void)state;
    static const struct {
        const char *format, *option, *value;
    } rows[] = { { "redisbloom", "growth", "0" },
                 { "redisbloom", "growth", "two" },
                 { "redisbloom", "growth", "4294967296" },
                 { "valkeybloom", "tightening", "1" },
                 { "valkeybloom", "seed", "00" },
                 { "rediscuckoo", "bucket-size", "256" },
                 { "rediscuckoo", "max-iterations", "-1" },
                 { "rediscuckoo", "growth", "40000" } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_option o = { rows[i].option, rows[i].value };
        const bly_foreign_spec spec = {
            .format = rows[i].format, .options = &o, .noptions = 1, .items = 10
        };
        bly_foreign *f;
        assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
        assert_non_null(strstr(bly_error(), rows[i].option));
    }
    bly_foreign *f = with_option("rediscuckoo", "growth", "3", 10);
    bly_fact fact;
    assert_true(bly_foreign_fact(f, "growth", &fact));
    assert_int_equal(fact.uint, 4); /* rounded up */
    assert_false(bly_foreign_fact(f, "none", &fact));
    bly_foreign_free(f);
}

/* A format that is made once, and then stays. */
static void test_what_does_not_change(void **state)
{
    (void)state;
    const bly_foreign_spec spec = { .format = "guava", .items = 10 };
    bly_foreign *f = fresh_one("guava", 10), *g;
    byte_array file = file_of(f);
    assert_status(bly_foreign_edit(&spec, file.at, file.n, &g), BLY_ENOTSUP);
    assert_null(g);
    assert_status(bly_foreign_copy(f, &g), BLY_ENOTSUP);
    assert_status(bly_foreign_compact(f), BLY_ENOTSUP);
    free(file.at);
    bly_foreign_free(f);
}

/* What has no file: every call that needs one says so, records are the whole of
 * it, and an increase without memory changes nothing. */
static void test_recorded(void **state)
{
    (void)state;
    static const char *const names[] = { "rediscms", "redistopk" };
    static char text[60][LETTERS];
    static bly_bytes keys[60];
    keys_of(0, 60, text, keys);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ledger l;
        ledger_open(&l);
        const bly_foreign_spec spec = { .format = names[i], .mem = &l.mem };
        bly_foreign *f, *g;
        uint64_t now[60], count;
        tape before = { .mem = &l.mem }, after = { .mem = &l.mem };
        const bly_foreign_record one = record_on(&before);
        const bly_foreign_record two = record_on(&after);
        assert_ok(bly_foreign_new(&spec, &f));
        assert_ok(bly_foreign_increase(f, keys, NULL, 60, now));
        assert_status(bly_foreign_add(f, keys, 1, NULL, NULL), BLY_ENOTSUP);
        assert_status(bly_foreign_write(f, put_bytes, &before.bytes),
                      BLY_ENOTSUP);
        assert_ok(bly_foreign_count(f, keys, 1, &count));
        assert_ok(bly_foreign_store(f, &one));
        const bly_bytes longer = { text[0], sizeof text };
        l.fail_at = l.calls;
        const bly_status st = bly_foreign_increase(f, &longer, NULL, 1, now);
        l.fail_at = -1;
        if (st) {
            assert_status(st, BLY_ENOMEM);
            assert_ok(bly_foreign_store(f, &two));
            assert_same_file(before.bytes, after.bytes);
            before.bytes = after.bytes = (byte_array){ 0 };
            assert_ok(bly_foreign_store(f, &one));
            assert_ok(
                restore(names[i], &l.mem, before.bytes, before.bytes.n, &g));
            assert_ok(bly_foreign_store(g, &two));
            bly_foreign_free(g);
            assert_same_file(before.bytes, after.bytes);
        } else {
            free(before.bytes.at);
        }
        bly_foreign_free(f);
        ledger_check(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storing_copies_no_array),
        cmocka_unit_test(test_add_then_has),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_fresh_is_what_was_not_there),
        cmocka_unit_test(test_edited_goes_on),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_no_memory_changes_nothing),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_hostile_files_are_edited_safely),
        cmocka_unit_test(test_remove_and_count),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_many_tables),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_what_does_not_change),
        cmocka_unit_test(test_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
