/*
 * test_foreign_changing.c - files that somebody writes to while they are read
 *
 * A mapped file changes under its reader. Whatever is written, and whenever,
 * the reader stays within the file: a number that was checked is not read
 * again, or is checked again. The bytes here end at the end of an allocation
 * (the address sanitizer looks) or in front of a page that cannot be read.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <bloomery/parquet.h>

#include "foreign_samples.h"

#define OTHER_KINDS 10 /* samples of formats that can be made, and Parquet */

/* A file of a format that can be made, with the key "one". */
static struct sample made_sample(const char *format, const bly_option *option)
{
    const bly_foreign_spec spec = { .format = format,
                                    .items = 10,
                                    .options = option,
                                    .noptions = option != NULL };
    const bly_bytes key = { "one", 3 };
    struct sample s = { .format = format };
    bly_foreign *f;
    assert_ok(bly_foreign_new(&spec, &f));
    assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    assert_ok(bly_foreign_write(f, put_bytes, &s.bytes));
    bly_foreign_free(f);
    return s;
}

/* A Parquet file of the fuzzer's, with a filter in each chunk of its columns.
 */
static struct sample parquet_sample(void)
{
    static unsigned char file[4096];
    struct sample s = { .format = "parquet" };
    FILE *const from = fopen("fuzz/corpus/parquet/ints-uncompressed-v1", "rb");
    assert_non_null(from);
    const size_t n = fread(file, 1, sizeof file, from);
    fclose(from);
    bly_parquet *p;
    bly_parquet_shape shape;
    assert_ok(bly_parquet_open(file, n, NULL, &p));
    bly_parquet_stat(p, &shape);
    for (size_t g = 0; g < shape.ngroups; g++) {
        assert_ok(bly_parquet_filter_begin(p, g, 0, 10, 0.01));
        assert_ok(bly_parquet_filter_end(p, NULL));
    }
    assert_ok(bly_parquet_write(p, put_bytes, &s.bytes));
    bly_parquet_free(p);
    return s;
}

/* At least one of every format there is. */
static unsigned all_samples(struct sample *s)
{
    static const bly_option json = { "form", "json" };
    static const char *const made[] = {
        "guava",       "squid",           "dcso",       "sbbf", "redisbloom",
        "valkeybloom", "bits-and-blooms", "rediscuckoo"
    };
    unsigned n = NSAMPLES;
    bly_format_info info;
    samples_make(s);
    for (unsigned i = 0; i < COUNT_OF(made); i++)
        s[n++] = made_sample(made[i], NULL);
    s[n++] = made_sample("bits-and-blooms", &json);
    s[n++] = parquet_sample();
    for (size_t i = 0; bly_format_at(i, &info); i++) {
        bool found = false;
        for (unsigned j = 0; j < n; j++)
            found |= strcmp(s[j].format, info.name) == 0;
        if (!found)
            fail_msg("no sample of the format %s", info.name);
    }
    return n;
}

static void all_free(struct sample *s, unsigned n)
{
    samples_free(s);
    for (unsigned i = NSAMPLES; i < n; i++)
        free(s[i].bytes.at);
}

/* Change number `how` to the bytes from `at` on; how many it concerns. */
static size_t change(unsigned char *bytes, size_t nbytes, size_t at, size_t how)
{
    const size_t left = nbytes - at;
    const size_t n = how < 3 ? 1 : how < 5 ? 4 : 8;
    const size_t some = left < n ? left : n;
    switch (how) {
    case 0:
        bytes[at] ^= 0x80;
        break;
    case 1:
        bytes[at] ^= 1;
        break;
    case 4:
        memset(bytes + at, 0, some);
        break;
    default:
        memset(bytes + at, 0xff, some);
    }
    return some;
}
#define NCHANGES 6

/* All that can be done with a filter. What comes back means nothing. */
static void use_changed(const bly_foreign *f)
{
    bly_foreign_stats s;
    const bly_bytes keys[] = { { "ab", 2 }, { "", 0 }, { "00", 2 } };
    uint64_t *const bitmap = calloc(f->nparts / 64 + 1, sizeof *bitmap);
    uint64_t answers;
    bly_foreign_stat(f, BLY_WHOLE, &s);
    for (size_t i = 0; i < f->nparts; i++)
        bly_foreign_stat(f, i, &s);
    bly_foreign_has(f, keys, COUNT_OF(keys), &answers, NULL);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        bly_foreign_where(f, keys[i], bitmap);
    free(bitmap);
}

static void test_changed_after_opening(void **state)
{
    (void)state;
    struct sample s[NSAMPLES + OTHER_KINDS];
    const unsigned n = all_samples(s);
    for (unsigned i = 0; i < n; i++) {
        const size_t nbytes = s[i].bytes.n;
        unsigned char *const at = guarded_new(nbytes);
        memcpy(at, s[i].bytes.at, nbytes);
        for (size_t j = 0; j < nbytes * NCHANGES; j++) {
            bly_foreign *f;
            const size_t where = j / NCHANGES;
            assert_ok(open_as(s[i].format, at, nbytes, NULL, &f));
            const size_t some = change(at, nbytes, where, j % NCHANGES);
            use_changed(f);
            memcpy(at + where, s[i].bytes.at + where, some);
            bly_foreign_free(f);
        }
        guarded_free(at, nbytes);
    }
    all_free(s, n);
}

/* ------------------------------------------------------- while it is opened */

/* A writer that puts one value and the other into the same bytes. */
struct writer {
    unsigned char *at; /* nbytes of them */
    const unsigned char *right;
    size_t nbytes;
    _Atomic size_t where; /* what is changed now, as NCHANGES count it */
    atomic_bool ended;
};

static void *write_on(void *ctx)
{
    struct writer *const w = ctx;
    while (!w->ended) {
        const size_t j = w->where, where = j / NCHANGES;
        const size_t some = change(w->at, w->nbytes, where, j % NCHANGES);
        atomic_signal_fence(memory_order_seq_cst);
        memcpy(w->at + where, w->right + where, some);
        atomic_signal_fence(memory_order_seq_cst);
    }
    return NULL;
}

/* Numbers that matter stand at both ends of a file. */
#define ENDS 160

static void test_changed_while_opening(void **state)
{
    (void)state;
    struct sample s[NSAMPLES + OTHER_KINDS];
    const unsigned n = all_samples(s);
    for (unsigned i = 0; i < n; i++) {
        const size_t nbytes = s[i].bytes.n;
        struct writer w = { guarded_new(nbytes), s[i].bytes.at, nbytes, 0,
                            false };
        pthread_t thread;
        memcpy(w.at, w.right, nbytes);
        assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
        for (size_t j = 0; j < nbytes * NCHANGES; j++) {
            const size_t where = j / NCHANGES;
            if (where >= ENDS && where + ENDS < nbytes)
                continue;
            w.where = j;
            for (size_t round = 0; round < scaled(48); round++) {
                bly_foreign *f;
                if (open_as(s[i].format, w.at, nbytes, NULL, &f) == BLY_OK)
                    use_changed(f);
                bly_foreign_free(f);
            }
        }
        w.ended = true;
        pthread_join(thread, NULL);
        guarded_free(w.at, nbytes);
    }
    all_free(s, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_after_opening),
        cmocka_unit_test(test_changed_while_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
