/*
 * test_foreign_files.c - files that Guava, DCSO's bloom, Go's bits-and-blooms
 * and RedisBloom wrote: read, and written once more from the same keys
 *
 * The files are read where they are, in ../shared/vectors; tests of files that
 * are not there are skipped.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "support.h"

/* ------------------------------------------------------------------ files */

/* A file, behind what is there already; false where there is none. */
static bool file_add(const char *name, byte_array *to)
{
    char path[256], buf[4096];
    snprintf(path, sizeof path, "../shared/vectors/%s", name);
    FILE *const in = fopen(path, "rb");
    if (!in)
        return false;
    size_t n;
    while ((n = fread(buf, 1, sizeof buf, in)) > 0)
        put_bytes(to, buf, n);
    fclose(in);
    return true;
}

/* Several, with blanks between their names, one after another; the test is
 * skipped where one is missing. */
static byte_array files(const char *names)
{
    byte_array all = { 0 };
    char buf[512], *rest;
    snprintf(buf, sizeof buf, "%s", names);
    for (char *name = strtok_r(buf, " ", &rest); name;
         name = strtok_r(NULL, " ", &rest))
        if (!file_add(name, &all)) {
            free(all.at);
            skip_for("no files of other systems");
        }
    return all;
}

/* A file, or several that belong together, and the keys in it: "item-0",
 * "item-1", ..., or as numbers plus, plus + factor, ... */
struct row {
    const char *format, *option, *value;
    int64_t factor, plus; /* 0: texts */
    uint64_t nkeys, items;
    double fpr;
    const char *names;
};

static const struct row rows[] = {
    { "guava", "keys", "bytes", 0, 0, 1000, 1000, 0.01,
      "guava/guava31-utf8-1000-0.01.bin" },
    { "guava", "keys", "utf16", 0, 0, 1000, 1000, 0.01,
      "guava/guava31-unencodedchars-1000-0.01.bin" },
    { "guava", "keys", "bytes", 0, 0, 10, 10, 0.5,
      "guava/guava31-bytes-10-0.5.bin" },
    { "guava", "keys", "int32", 7, -3, 1000, 1000, 0.03,
      "guava/guava31-int-1000-0.03.bin" },
    { "guava", "keys", "int64", 1000003, -5, 1000, 1000, 0.001,
      "guava/guava31-long-1000-0.001.bin" },
    { "dcso", "keys", "bytes", 0, 0, 1000, 1000, 0.01,
      "dcso/dcso-cli-0.2.4-1000-0.01.bloom" },
    { "bits-and-blooms", "form", "binary", 0, 0, 1000, 1000, 0.01,
      "bits-and-blooms/bab-1000-0.01.bin" },
    { "bits-and-blooms", "form", "json", 0, 0, 1000, 1000, 0.01,
      "bits-and-blooms/bab-1000-0.01.json" },
    { "redisbloom", "scaling", "no", 0, 0, 1000, 1000, 0.01,
      "redisbloom/nonscaling-1000-0.01.0.iter1.bin "
      "redisbloom/nonscaling-1000-0.01.1.iter1201.bin" },
    /* A chain of four: it is read; new ones of ours have one filter. */
    { "redisbloom", "scaling", "yes", 0, 0, 1000, 100, 0.01,
      "redisbloom/scaling-100-0.01-with-1000-items.0.iter1.bin "
      "redisbloom/scaling-100-0.01-with-1000-items.1.iter145.bin "
      "redisbloom/scaling-100-0.01-with-1000-items.2.iter457.bin "
      "redisbloom/scaling-100-0.01-with-1000-items.3.iter1153.bin "
      "redisbloom/scaling-100-0.01-with-1000-items.4.iter2689.bin" },
};

static size_t row_key(const struct row *r, uint64_t i, char *buf, size_t room)
{
    const long long x = (long long)i * (r->factor ? r->factor : 1) + r->plus;
    return (size_t)snprintf(buf, room, r->factor ? "%lld" : "item-%lld", x);
}

static bool row_has(const struct row *r, const bly_foreign *f, uint64_t i)
{
    char buf[64];
    uint64_t bit;
    const bly_bytes key = { buf, row_key(r, i, buf, sizeof buf) };
    assert_ok(bly_foreign_has(f, &key, 1, &bit, NULL));
    return bit;
}

/* The share of 100,000 others that it says are there, by the parts' fills. */
static double rate_expected(const bly_foreign *f, size_t nparts)
{
    double right = 1;
    for (size_t i = 0; i < nparts; i++) {
        bly_foreign_stats s;
        bly_foreign_stat(f, i, &s);
        right *= 1 - s.fpr_now;
    }
    return 1 - right;
}

static void test_read(void **state)
{
    const struct row *const r = *state;
    byte_array file = files(r->names);
    const bly_option option = { r->option, r->value };
    const bly_foreign_spec spec = { .options = &option, .noptions = 1 };
    bly_foreign *f;
    bly_foreign_stats s;
    assert_ok(bly_foreign_open(&spec, file.at, file.n, &f));
    bly_foreign_stat(f, BLY_WHOLE, &s);
    assert_string_equal(s.format, r->format);
    assert_between(s.items_estimate, 0.9 * (double)r->nkeys - 3,
                   1.1 * (double)r->nkeys + 3);
    if (s.items != UINT64_MAX)
        assert_between((double)s.items, 0.98 * (double)r->nkeys,
                       (double)r->nkeys);
    for (uint64_t i = 0; i < r->nkeys; i++)
        assert_true(row_has(r, f, i));
    const uint64_t trials = 100000;
    const double p = rate_expected(f, s.nparts), n = (double)trials;
    double wrong = 0;
    for (uint64_t i = 0; i < trials; i++)
        wrong += row_has(r, f, 1000000 + i);
    /* Few probes of a small array repeat themselves: a fifth, and chance. */
    const double slack = 0.2 * n * p + 6 * sqrt(n * p * (1 - p));
    assert_between(wrong, n * p - slack, n * p + slack);
    byte_array again = { 0 };
    assert_ok(bly_foreign_write(f, put_bytes, &again));
    assert_int_equal(again.n, file.n);
    assert_memory_equal(again.at, file.at, file.n);
    free(again.at);
    bly_foreign_free(f);
    free(file.at);
}

static void test_written(void **state)
{
    const struct row *const r = *state;
    byte_array want = files(r->names), got = { 0 };
    const bly_option option = { r->option, r->value };
    const bly_foreign_spec spec = { .format = r->format,
                                    .options = &option,
                                    .noptions = 1,
                                    .items = r->items,
                                    .fpr = r->fpr };
    bly_foreign *f;
    assert_ok(bly_foreign_new(&spec, &f));
    for (uint64_t i = 0; i < r->nkeys; i++) {
        char buf[64];
        const bly_bytes key = { buf, row_key(r, i, buf, sizeof buf) };
        assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    }
    assert_ok(bly_foreign_write(f, put_bytes, &got));
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.at, want.at, want.n);
    bly_foreign_free(f);
    free(got.at);
    free(want.at);
}

/* The three keys of its test, at one in a million. */
static void test_dcso_upstream(void **state)
{
    (void)state;
    byte_array file = files("dcso/upstream-test.bloom");
    const bly_bytes keys[] = {
        { "foo", 3 }, { "bar", 3 }, { "baz", 3 }, { "qux", 3 }
    };
    const bly_foreign_spec spec = { .format = "dcso",
                                    .items = 1000,
                                    .fpr = 1e-6 };
    bly_foreign *f;
    bly_foreign_stats s;
    uint64_t bits;
    assert_ok(bly_foreign_open(NULL, file.at, file.n, &f));
    assert_ok(bly_foreign_has(f, keys, 4, &bits, NULL));
    assert_int_equal(bits, 7);
    bly_foreign_stat(f, BLY_WHOLE, &s);
    assert_int_equal(s.items, 3);
    assert_int_equal(s.capacity, 1000);
    assert_true(s.fpr_planned == 1e-6);
    bly_foreign_free(f);
    assert_ok(bly_foreign_new(&spec, &f));
    assert_ok(bly_foreign_add(f, keys, 3, NULL, NULL));
    byte_array got = { 0 };
    assert_ok(bly_foreign_write(f, put_bytes, &got));
    assert_true(got.n <= file.n);
    assert_memory_equal(got.at, file.at, got.n);
    bly_foreign_free(f);
    free(got.at);
    free(file.at);
}

#define NROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    struct CMUnitTest tests[2 * NROWS + 1];
    static char names[2 * NROWS][160];
    size_t n = 0;
    for (size_t i = 0; i < 2 * NROWS; i++) {
        const struct row *const r = &rows[i / 2];
        if (i % 2 && r->items < r->nkeys)
            continue;
        snprintf(names[n], sizeof names[n], "%s of %.99s",
                 i % 2 ? "test_written" : "test_read", r->names);
        tests[n] =
            (struct CMUnitTest){ .name = names[n],
                                 .test_func = i % 2 ? test_written : test_read,
                                 .initial_state = (void *)(uintptr_t)r };
        n++;
    }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_dcso_upstream);
    return _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
}
