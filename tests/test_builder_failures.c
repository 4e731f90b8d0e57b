/* LDFLAGS: -Wl,--wrap=pthread_create,--wrap=pread64 */
/*
 * test_builder_failures.c - builders whose system gives them little
 *
 * The linker sends the library's calls through this file. Threads that cannot
 * be started cost time and nothing else; what cannot be read back is an error,
 * and never a filter of some of the keys.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "laws.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* More than a chunk, so that there is work for several threads. */
#define NKEYS 150000

/* ------------------------------------------------------------------- calls */

static _Atomic long threads_left = LONG_MAX; /* that can be started */
static int reads_before = -1;                /* that succeed; -1: all do */
static int read_errno;                       /* of the one behind these */

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg);
ssize_t __real_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg)
{
    return threads_left-- > 0 ? __real_pthread_create(t, attr, run, arg)
                              : EAGAIN;
}

ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at)
{
    if (reads_before > 0 && --reads_before == 0) {
        errno = read_errno;
        /* Interrupted once, or broken for good. */
        reads_before = read_errno == EINTR ? -1 : 1;
        return -1;
    }
    return __real_pread64(fd, to, n > 100000 ? 100000 : n, at);
}

/* ------------------------------------------------------------------ builds */

static bly_status build_of(const bly_spec *spec, bool valued, unsigned nthreads,
                           bly_filter **out)
{
    bly_builder *b;
    uint64_t *h = hashes_for(spec, 0, NKEYS);
    uint64_t *values = valued ? malloc(NKEYS * sizeof *values) : NULL;
    for (size_t i = 0; valued && i < NKEYS; i++)
        values[i] = value_of(i);
    bly_status st = bly_builder_new(spec, &b);
    if (!st) {
        st = bly_builder_add(b, h, values, NKEYS);
        const bly_status end = bly_builder_finish(b, nthreads, out);
        st = st ? st : end;
        bly_builder_free(b);
    }
    free(values);
    free(h);
    return st;
}

static byte_array bytes_of(const bly_spec *spec, bool valued, unsigned nthreads)
{
    bly_filter *f;
    assert_ok(build_of(spec, valued, nthreads, &f));
    assert_int_equal(hits(f, 0, NKEYS), NKEYS);
    byte_array a = written(f);
    bly_free(f);
    return a;
}

static void assert_alike(byte_array *a, const byte_array *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->at, b->at, a->n);
    free(a->at);
}

/* Of three threads, and of none: the filter is the same. */
LAW(threads_that_cannot_be_started)
{
    needs_certain_no(kind);
    if (row->noptions)
        skip_for("options make no difference here");
    const bly_spec spec = spec_for(kind, 0);
    const bool valued = takes_values(kind);
    byte_array want = bytes_of(&spec, valued, 1);
    for (long n = 0; n < 3; n++) {
        threads_left = n;
        byte_array got = bytes_of(&spec, valued, 4);
        threads_left = LONG_MAX;
        bly_filter *f, *g;
        assert_ok(bly_load(got.at, got.n, NULL, &f));
        assert_ok(bly_load(want.at, want.n, NULL, &g));
        assert_true(bly_equal(f, g) || (kind->traits & BLY_ORDERED));
        bly_free(f);
        bly_free(g);
        free(got.at);
    }
    free(want.at);
}

/* ------------------------------------------------------------------- parts */

/* Under a bound there are no copies: threads take parts of a filter's memory,
 * or of the keys. */
static void parts_of_a_bounded_filter(void **state)
{
    (void)state;
    bly_spec spec = { .fpr = 0.01 };
    byte_array want = bytes_of(&spec, false, 1);
    spec.max_bytes = 64 * MIB;
    for (unsigned n = 1; n <= 12; n += n < 4 ? 1 : 4)
        for (long started = 0; started < 4; started += 3) {
            threads_left = started;
            byte_array got = bytes_of(&spec, false, n);
            threads_left = LONG_MAX;
            assert_alike(&got, &want);
        }
    free(want.at);
}

/* -------------------------------------------------------------------- file */

static void files_that_are_read_badly(void **state)
{
    (void)state;
    char folder[] = "/tmp/bloomery-failures-XXXXXX";
    assert_non_null(mkdtemp(folder));
    static const char *const kinds[] = { "blocked", "cuckoo", "fuse",
                                         "bloomier" };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        bly_spec spec = { .kind = kinds[i], .fpr = 0.01 };
        const bool valued = strcmp(kinds[i], "bloomier") == 0;
        byte_array want = bytes_of(&spec, valued, 1);
        /* Static kinds need some beside the keys. */
        spec.max_bytes = i < 2 ? 3 * MIB / 2 : i < 3 ? 8 * MIB : 16 * MIB;
        spec.spill = folder;
        for (int n = 1; n <= 40; n += 1 + n / 4) {
            bly_filter *f = NULL;
            reads_before = n;
            read_errno = EIO;
            const bly_status st = build_of(&spec, valued, 1, &f);
            if (st) { /* else it was read less often */
                assert_int_equal(st, BLY_EIO);
                assert_non_null(strstr(bly_error(), folder));
                assert_null(f);
            }
            bly_free(f);
            reads_before = n;
            read_errno = EINTR;
            byte_array got = bytes_of(&spec, valued, 1);
            assert_alike(&got, &want);
            reads_before = -1;
        }
        free(want.at);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* ---------------------------------------------------------------- failures */

/* After keys that were not taken there is no filter. */
static void no_filter_of_some_of_the_keys(void **state)
{
    (void)state;
    bly_builder *b;
    bly_filter *f = NULL;
    uint64_t h[1000];
    for (uint64_t i = 0; i < 1000; i++)
        h[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    const bly_spec spec = { .kind = "cuckoo", .items = 10, .fpr = 0.01 };
    assert_ok(bly_builder_new(&spec, &b));
    assert_status(bly_builder_add(b, h, NULL, 1000), BLY_EFULL);
    assert_status(bly_builder_finish(b, 1, &f), BLY_EFULL);
    assert_null(f);
    bly_builder_free(b);

    const bly_spec bound = { .max_bytes = MIB };
    uint64_t *const many = hashes_for(&bound, 0, NKEYS);
    assert_ok(bly_builder_new(&bound, &b));
    assert_status(bly_builder_add(b, many, NULL, NKEYS), BLY_ERANGE);
    assert_status(bly_builder_finish(b, 1, &f), BLY_ERANGE);
    assert_null(f);
    bly_builder_free(b);
    free(many);

    const bly_spec valued = { .kind = "bloomier", .fpr = 0.01 };
    assert_ok(bly_builder_new(&valued, &b));
    assert_status(bly_builder_add(b, h, NULL, 10), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "a value"));
    bly_builder_free(b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_bounded_filter),
        cmocka_unit_test(files_that_are_read_badly),
        cmocka_unit_test(no_filter_of_some_of_the_keys),
    };
    return run_laws_and("builder failures", tests, COUNT_OF(tests), argc, argv);
}
