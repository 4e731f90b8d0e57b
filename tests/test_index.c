/*
 * test_index.c - filters side by side, against an array of sets
 *
 * Documents of many sizes, in groups of every width; dropping, merging and
 * compacting; bytes that were cut, flipped or forged; allocations that fail.
 */
#define _GNU_SOURCE
#include "tests/sized_laws.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bloomery/index.h>

#include "core/bits.h"
#include "core/hash.h"
#include "engine/slices.h"
#include "index/bit_sliced.h"

enum { GRAMS, WORDS, NCLASSES };

static const bly_index_class classes[NCLASSES] = { { "grams", 0.3 },
                                                   { "words", 0.001 } };

static char folder[] = "/tmp/bloomery-index-XXXXXX";
static char path[64], other_path[64];

static int set_up(void **unused)
{
    (void)unused;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.blx", folder);
    snprintf(other_path, sizeof other_path, "%s/b.blx", folder);
    return 0;
}

/* Fails if anything but the two files was left. */
static int tear_down(void **unused)
{
    (void)unused;
    unlink(path);
    unlink(other_path);
    return rmdir(folder);
}

/* ---------------------------------------------------------------- documents */

/* Document d has terms 0 to terms_of(d) - 1 of each class, which no other
 * document has, and the terms that all documents share. */
#define SHARED 3

static uint64_t term_of(uint64_t d, unsigned class_number, uint64_t i)
{
    return bly_mix64((d + 1) << 32 | (uint64_t)class_number << 28 | i);
}

static uint64_t shared_term(unsigned class_number, uint64_t i)
{
    return bly_mix64(UINT64_C(1) << 62 | (uint64_t)class_number << 28 | i);
}

static size_t terms_of(uint64_t d, unsigned class_number)
{
    const uint64_t h = bly_mix64(d * 2 + class_number + 77);
    return h % 7 == 0 ? h % 3 : 20 + h % 400;
}

typedef struct document {
    uint64_t *hashes[NCLASSES];
    bly_index_terms terms[NCLASSES];
    char blob[32];
} document;

static document document_of(uint64_t d)
{
    document doc;
    for (unsigned c = 0; c < NCLASSES; c++) {
        const size_t n = terms_of(d, c);
        doc.hashes[c] = malloc((n + SHARED) * sizeof(uint64_t));
        assert_non_null(doc.hashes[c]);
        for (size_t i = 0; i < n; i++)
            doc.hashes[c][i] = term_of(d, c, i);
        for (size_t i = 0; i < SHARED; i++)
            doc.hashes[c][n + i] = shared_term(c, i);
        doc.terms[c] = (bly_index_terms){ doc.hashes[c], n + SHARED };
    }
    snprintf(doc.blob, sizeof doc.blob, "document %llu", (unsigned long long)d);
    return doc;
}

static void document_free(document *doc)
{
    for (unsigned c = 0; c < NCLASSES; c++)
        free(doc->hashes[c]);
}

static bly_status document_add(bly_index_builder *b, uint64_t d)
{
    document doc = document_of(d);
    const bly_status st =
        bly_index_builder_add(b, doc.terms, doc.blob, strlen(doc.blob), NULL);
    document_free(&doc);
    return st;
}

static bly_index_spec spec_of(uint64_t max_bytes)
{
    return (bly_index_spec){ .classes = classes,
                             .nclasses = NCLASSES,
                             .seed = 5,
                             .max_bytes = max_bytes };
}

/* An index of documents first .. first + n - 1. */
static void index_build(const char *at, uint64_t first, uint64_t n,
                        uint64_t max_bytes)
{
    const bly_index_spec spec = spec_of(max_bytes);
    bly_index_builder *b;
    assert_ok(bly_index_builder_new(at, &spec, &b));
    assert_null(bly_index_builder_old(b));
    for (uint64_t i = 0; i < n; i++)
        assert_ok(document_add(b, first + i));
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
}

static bly_index *index_open(const char *at)
{
    bly_index *x;
    assert_ok(bly_index_map(at, NULL, &x));
    return x;
}

static bool bit_of(const uint64_t *words, uint64_t i)
{
    return words[i / 64] >> (i % 64) & 1;
}

static uint64_t *bitmap_of(const bly_index *x)
{
    uint64_t *const words = malloc(8 * (bly_index_words(x) + 1));
    assert_non_null(words);
    return words;
}

/* Which document is it? */
static uint64_t document_at(const bly_index *x, uint64_t number)
{
    bly_bytes blob;
    char text[32] = { 0 };
    assert_ok(bly_index_document(x, number, &blob));
    assert_in_range(blob.len, 1, sizeof text - 1);
    memcpy(text, blob.ptr, blob.len);
    return strtoull(text + strlen("document "), NULL, 10);
}

/* Every live document is found by its own terms, and by those that all share;
 * and others by few of its terms: at most six sigma more than expected. */
static void assert_finds(const bly_index *x)
{
    uint64_t *const maybe = bitmap_of(x), *const live = bitmap_of(x);
    const uint64_t n = bly_index_documents(x);
    double hits[NCLASSES] = { 0 }, asked[NCLASSES] = { 0 };
    bly_index_live(x, live);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t d = document_at(x, i);
        for (unsigned c = 0; c < NCLASSES; c++) {
            const size_t nterms = terms_of(d, c);
            if (!nterms)
                continue;
            const bly_index_term terms[2] = { { term_of(d, c, nterms - 1), c },
                                              { shared_term(1 - c, d % SHARED),
                                                1 - c } };
            assert_ok(bly_index_ask(x, terms, 2, maybe));
            assert_int_equal(bit_of(maybe, i), bit_of(live, i));
            assert_ok(bly_index_ask(x, terms, 1, maybe));
            for (uint64_t j = 0; j < n; j++)
                if (j != i && bit_of(live, j)) {
                    asked[c]++;
                    hits[c] += bit_of(maybe, j);
                }
        }
    }
    for (unsigned c = 0; c < NCLASSES; c++) {
        bly_index_class_stats s;
        assert_true(bly_index_class_at(x, c, &s));
        assert_true(s.expected <= s.fpr);
        assert_true(hits[c] <=
                    asked[c] * s.fpr + 6 * sqrt(asked[c] * s.fpr) + 1);
        assert_true(fabs(hits[c] - asked[c] * s.expected) <=
                    6 * sqrt(asked[c] * s.expected) + 0.02 * hits[c] + 1);
    }
    free(maybe);
    free(live);
}

/* Both answer alike, for terms that are there and others. */
static void assert_same_answers(const bly_index *x, const bly_index *y)
{
    uint64_t *const a = bitmap_of(x), *const b = bitmap_of(y);
    assert_int_equal(bly_index_documents(x), bly_index_documents(y));
    for (uint64_t i = 0; i < 200; i++) {
        const bly_index_term terms[2] = {
            { term_of(i, (unsigned)i % 2, 0), i % 2 },
            { shared_term(0, i % (SHARED + 1)), 0 },
        };
        assert_ok(bly_index_ask(x, terms, 1 + i % 2, a));
        assert_ok(bly_index_ask(y, terms, 1 + i % 2, b));
        assert_memory_equal(a, b, 8 * bly_index_words(x));
    }
    free(a);
    free(b);
}

/* -------------------------------------------------------------------- tests */

static void finds_all(void **unused)
{
    (void)unused;
    static const uint64_t sizes[] = { 0, 1, 2, 63, 64, 65, 300, 1500 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        index_build(path, 0, sizes[i], 0);
        bly_index *const x = index_open(path);
        assert_int_equal(bly_index_documents(x), sizes[i]);
        assert_finds(x);
        assert_ok(bly_index_verify(x));
        assert_ok(bly_index_damage(x));
        bly_index_free(x);
    }
}

/* Documents of one size have one group; the library must be right about rows of
 * every width. */
static void every_width(void **unused)
{
    (void)unused;
    uint64_t hashes[40];
    for (uint64_t n = 1; n < 200; n += n < 70 ? 1 : 13) {
        const bly_index_class class = { "words", 0.01 };
        const bly_index_spec spec = { .classes = &class, .nclasses = 1 };
        bly_index_builder *b;
        assert_ok(bly_index_builder_new(path, &spec, &b));
        for (uint64_t d = 0; d < n; d++) {
            for (uint64_t i = 0; i < 40; i++)
                hashes[i] = term_of(d, 0, i);
            const bly_index_terms terms = { hashes, 40 };
            assert_ok(bly_index_builder_add(b, &terms, NULL, 0, NULL));
        }
        assert_ok(bly_index_builder_commit(b));
        bly_index_builder_free(b);
        bly_index *const x = index_open(path);
        assert_int_equal(x->ngroups, 1);
        assert_int_equal(x->groups[0].span, n);
        uint64_t maybe[4];
        for (uint64_t d = 0; d < n; d++)
            for (uint64_t i = 0; i < 40; i += 13) {
                const bly_index_term term = { term_of(d, 0, i), 0 };
                uint64_t others = 0;
                assert_ok(bly_index_ask(x, &term, 1, maybe));
                assert_true(bit_of(maybe, d));
                for (uint64_t j = 0; j < bly_index_words(x); j++)
                    others += (uint64_t)__builtin_popcountll(maybe[j]);
                assert_true(others <= 12); /* two expected at most */
            }
        bly_index_free(x);
    }
}

/* Little memory gives many groups, which a compaction joins: the answers are
 * those of an index that had them in one piece. */
static void little_memory(void **unused)
{
    (void)unused;
    index_build(path, 0, 700, 0);
    index_build(other_path, 0, 700, 20000);
    bly_index *const x = index_open(path), *const y = index_open(other_path);
    assert_int_equal(y->ngroups, x->ngroups);
    assert_same_answers(x, y);
    assert_finds(y);
    bly_index_free(x);
    bly_index_free(y);
}

static void adds_and_drops(void **unused)
{
    (void)unused;
    index_build(path, 0, 150, 0);
    for (uint64_t round = 0; round < 3; round++) {
        bly_index_builder *b;
        assert_ok(bly_index_builder_open(path, NULL, &b));
        assert_int_equal(bly_index_documents(bly_index_builder_old(b)),
                         150 + 10 * round);
        assert_ok(bly_index_builder_drop(b, 7 + round));
        assert_ok(bly_index_builder_drop(b, 7 + round));
        assert_status(bly_index_builder_drop(b, 9999), BLY_EINVAL);
        for (uint64_t i = 0; i < 10; i++)
            assert_ok(document_add(b, 150 + 10 * round + i));
        assert_ok(bly_index_builder_commit(b));
        assert_status(document_add(b, 0), BLY_EINVAL); /* it is over */
        bly_index_builder_free(b);
        bly_index *const x = index_open(path);
        bly_index_stats s;
        bly_index_stat(x, &s);
        assert_int_equal(s.dropped, round + 1);
        assert_int_equal(s.segments, round + 2);
        assert_int_equal(s.documents, 160 + 10 * round);
        assert_finds(x);
        bly_index_free(x);
    }
    bly_index_builder *b;
    assert_ok(bly_index_builder_open(path, NULL, &b));
    for (uint64_t i = 20; i < 100; i += 3)
        assert_ok(bly_index_builder_drop(b, i));
    bly_index_builder_compact(b);
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    bly_index *const x = index_open(path);
    bly_index_stats s;
    bly_index_stat(x, &s);
    assert_int_equal(s.dropped, 0);
    assert_int_equal(s.segments, 1);
    assert_int_equal(s.documents, 180 - 3 - 27);
    assert_int_equal(document_at(x, 7), 10);
    assert_finds(x);
    assert_ok(bly_index_verify(x));
    bly_index_free(x);
    /* Nothing is left of an index whose documents all go. */
    assert_ok(bly_index_builder_open(path, NULL, &b));
    for (uint64_t i = 0; i < s.documents; i++)
        assert_ok(bly_index_builder_drop(b, i));
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    bly_index *const y = index_open(path);
    assert_int_equal(bly_index_documents(y), 0);
    bly_index_free(y);
}

static void merges(void **unused)
{
    (void)unused;
    index_build(path, 0, 120, 0);
    index_build(other_path, 120, 90, 0);
    bly_index *const other = index_open(other_path);
    bly_index_builder *b;
    uint64_t first;
    assert_ok(bly_index_builder_open(path, NULL, &b));
    assert_ok(document_add(b, 300));
    assert_ok(bly_index_builder_merge(b, other, &first));
    assert_int_equal(first, 121);
    assert_ok(document_add(b, 301));
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    bly_index_free(other);
    bly_index *const x = index_open(path);
    assert_int_equal(bly_index_documents(x), 212);
    assert_int_equal(document_at(x, 120), 300);
    assert_int_equal(document_at(x, 121), 120);
    assert_int_equal(document_at(x, 211), 301);
    assert_finds(x);
    bly_index_free(x);
    /* Another seed, another rate, another class. */
    for (int i = 0; i < 3; i++) {
        bly_index_class changed[NCLASSES] = { classes[0], classes[1] };
        bly_index_spec spec = spec_of(0);
        spec.classes = changed;
        spec.seed += i == 0;
        changed[0].fpr = i == 1 ? 0.2 : changed[0].fpr;
        changed[0].name = i == 2 ? "kmers" : changed[0].name;
        bly_index *const y = index_open(path);
        assert_ok(bly_index_builder_new(other_path, &spec, &b));
        assert_status(bly_index_builder_merge(b, y, NULL), BLY_EUNFIT);
        bly_index_builder_free(b);
        bly_index_free(y);
    }
}

static void counts_coverage(void **unused)
{
    (void)unused;
    enum { N = 200, ASKED = 300 };
    index_build(path, 0, N, 0);
    bly_index_builder *b;
    assert_ok(bly_index_builder_open(path, NULL, &b));
    assert_ok(bly_index_builder_drop(b, 11));
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    bly_index *const x = index_open(path);
    const size_t nwords = bly_index_words(x);
    uint64_t hashes[ASKED], *const each = malloc(8 * nwords * ASKED);
    uint32_t counts[N];
    assert_non_null(each);
    for (unsigned c = 0; c < NCLASSES; c++) {
        for (uint64_t i = 0; i < ASKED; i++)
            hashes[i] = i % 3 == 0 ? term_of(c ? 11 : 40, c, i / 3)
                                   : shared_term(c, i % (SHARED + 2));
        assert_ok(bly_index_ask_each(x, c, hashes, ASKED, each));
        assert_ok(bly_index_coverage(x, c, hashes, ASKED, counts));
        for (uint64_t d = 0; d < N; d++) {
            uint32_t n = 0;
            for (size_t i = 0; i < ASKED; i++)
                n += bit_of(each + i * nwords, d);
            assert_int_equal(counts[d], n);
            assert_true(d == 11 ? n == 0 : n >= 2 * ASKED / 3 * 3 / 5 - 3);
        }
        for (size_t i = 0; i < ASKED; i++) {
            uint64_t one[N / 64 + 1];
            const bly_index_term term = { hashes[i], c };
            assert_ok(bly_index_ask(x, &term, 1, one));
            assert_memory_equal(one, each + i * nwords, 8 * nwords);
        }
    }
    assert_status(bly_index_coverage(x, 2, hashes, 1, counts), BLY_EINVAL);
    assert_ok(bly_index_coverage(x, 0, hashes, 0, counts));
    assert_int_equal(counts[3], 0);
    free(each);
    bly_index_free(x);
}

static void keeps_settings(void **unused)
{
    (void)unused;
    const bly_index_spec spec = spec_of(0);
    bly_index_builder *b;
    assert_ok(bly_index_builder_new(path, &spec, &b));
    assert_ok(bly_index_builder_set(b, "fold", "1", 1));
    assert_ok(bly_index_builder_set(b, "roots", "/var/log", 8));
    assert_ok(bly_index_builder_set(b, "gone", "x", 1));
    assert_ok(bly_index_builder_set(b, "fold", "yes", 3));
    assert_ok(bly_index_builder_set(b, "gone", NULL, 0));
    char *const large = calloc(1, 70000);
    assert_non_null(large);
    assert_status(bly_index_builder_set(b, "large", large, 70000), BLY_ERANGE);
    free(large);
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    assert_ok(bly_index_builder_open(path, NULL, &b));
    bly_index_builder_compact(b);
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    bly_index *const x = index_open(path);
    const bly_bytes fold = bly_index_get(x, "fold");
    assert_int_equal(fold.len, 3);
    assert_memory_equal(fold.ptr, "yes", 3);
    assert_int_equal(bly_index_get(x, "roots").len, 8);
    assert_null(bly_index_get(x, "gone").ptr);
    assert_int_equal(bly_index_class_named(x, "words"), WORDS);
    assert_int_equal(bly_index_class_named(x, "lines"), -1);
    bly_index_free(x);
}

static void refuses_bad_specs(void **unused)
{
    (void)unused;
    const bly_index_class bad[][2] = {
        { { "a", 0 }, { "b", 0.1 } },
        { { "a", 0.1 }, { "a", 0.1 } },
        { { "", 0.1 }, { "b", 0.1 } },
        { { NULL, 0.1 }, { "b", 0.1 } },
        { { "a", 1.5 }, { "b", 0.1 } },
        { { "a", NAN }, { "b", 0.1 } },
        { { "a name that is longer than may be", 0.1 }, { "b", 0.1 } },
    };
    bly_index_builder *b;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_index_spec spec = { .classes = bad[i], .nclasses = 2 };
        assert_status(bly_index_builder_new(path, &spec, &b), BLY_EINVAL);
        assert_null(b);
    }
    const bly_index_spec none = { .nclasses = 0 };
    assert_status(bly_index_builder_new(path, &none, &b), BLY_EINVAL);
    assert_status(bly_index_builder_open(path, NULL, &b), BLY_EIO);
    const bly_index_spec spec = spec_of(0);
    assert_status(bly_index_builder_new("/dev/null", &spec, &b), BLY_EIO);
    bly_index *x;
    assert_status(bly_index_map(path, NULL, &x), BLY_EIO);
    assert_null(x);
}

/* ------------------------------------------------------------------- threads
 */

static void *add_many(void *of)
{
    bly_index_builder *const b = of;
    static _Atomic uint64_t next;
    for (int i = 0; i < 100; i++)
        if (document_add(b, atomic_fetch_add(&next, 1)))
            return b;
    return NULL;
}

static void many_threads(void **unused)
{
    (void)unused;
    const bly_index_spec spec = spec_of(100000);
    bly_index_builder *b;
    pthread_t threads[4];
    assert_ok(bly_index_builder_new(path, &spec, &b));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, b), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    bly_index *const x = index_open(path);
    assert_int_equal(bly_index_documents(x), 400);
    assert_finds(x);
    bly_index_free(x);
}

/* ------------------------------------------------------------------- damage */

static byte_array file_bytes(const char *at)
{
    byte_array a = { 0 };
    char buf[4096];
    size_t n;
    FILE *const f = fopen(at, "rb");
    assert_non_null(f);
    while ((n = fread(buf, 1, sizeof buf, f)) > 0)
        assert_true(put_bytes(&a, buf, n));
    fclose(f);
    return a;
}

/* Answers of a damaged index: an error, or every document that has the term. */
static void assert_never_no(const byte_array *a, uint64_t n)
{
    bly_index *x;
    const bly_status st = bly_index_load(a->at, a->n, NULL, &x);
    if (st) {
        assert_status(st, BLY_EFORMAT);
        return;
    }
    uint64_t *const maybe = bitmap_of(x);
    uint32_t *const counts = malloc((n + 1) * sizeof *counts);
    assert_non_null(counts);
    for (unsigned c = 0; c < NCLASSES; c++) {
        const uint64_t hash = shared_term(c, 1);
        const bly_index_term term = { hash, c };
        assert_ok(bly_index_ask(x, &term, 1, maybe));
        for (uint64_t i = 0; i < n; i++)
            assert_true(bit_of(maybe, i));
        assert_ok(bly_index_ask_each(x, c, &hash, 1, maybe));
        for (uint64_t i = 0; i < n; i++)
            assert_true(bit_of(maybe, i));
        assert_ok(bly_index_coverage(x, c, &hash, 1, counts));
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(counts[i], 1);
    }
    for (uint64_t i = 0; i < n; i++) {
        bly_bytes blob;
        if (bly_index_document(x, i, &blob) == BLY_OK)
            assert_int_equal(document_at(x, i), i);
    }
    free(maybe);
    free(counts);
    bly_index_free(x);
}

static void damage_is_maybe(void **unused)
{
    (void)unused;
    enum { N = 90 };
    index_build(path, 0, N, 0);
    byte_array a = file_bytes(path);
    assert_never_no(&a, N);
    const size_t step = stride(8 * a.n, 4000);
    size_t noticed = 0, flips = 0;
    for (size_t i = 0; i < 8 * a.n; i += step) {
        bly_index *x;
        a.at[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_never_no(&a, N);
        if (bly_index_load(a.at, a.n, NULL, &x) == BLY_OK) {
            noticed += bly_index_verify(x) != BLY_OK;
            bly_index_free(x);
        } else {
            noticed++;
        }
        flips++;
        a.at[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    /* What is between the parts means nothing. */
    assert_true(noticed > flips * 9 / 10);
    for (size_t n = 0; n < a.n; n += 1 + a.n / 300) {
        bly_index *x;
        const byte_array cut = { a.at, n, n };
        assert_status(bly_index_load(cut.at, cut.n, NULL, &x), BLY_EFORMAT);
        assert_null(x);
    }
    free(a.at);
}

/* A page of rows is wrong: more documents are maybe, and the damage is told. */
static void damage_is_told(void **unused)
{
    (void)unused;
    index_build(path, 0, 200, 0);
    byte_array a = file_bytes(path);
    bly_index *x;
    assert_ok(bly_index_load(a.at, a.n, NULL, &x));
    const bly_sliced_group g = x->groups[0];
    bly_index_free(x);
    memset(a.at + g.part.at, 0, (size_t)bly_sliced_row_bytes(g.m, g.ndocs));
    assert_never_no(&a, 200);
    assert_ok(bly_index_load(a.at, a.n, NULL, &x));
    assert_ok(bly_index_damage(x));
    uint64_t maybe[4];
    const bly_index_term term = { 12345, g.class_number };
    assert_ok(bly_index_ask(x, &term, 1, maybe));
    assert_status(bly_index_damage(x), BLY_EFORMAT);
    assert_status(bly_index_verify(x), BLY_EFORMAT);
    bly_index_free(x);
    free(a.at);
}

/* Additions carry a damaged part along as what it is; only a compaction that
 * was asked for refuses. */
static void damage_is_kept(void **unused)
{
    (void)unused;
    index_build(path, 0, 100, 0);
    byte_array a = file_bytes(path);
    bly_index *x;
    assert_ok(bly_index_load(a.at, a.n, NULL, &x));
    a.at[x->groups[0].part.at] ^= 1;
    bly_index_free(x);
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(a.at, 1, a.n, f), a.n);
    fclose(f);
    free(a.at);
    bly_index_builder *b;
    assert_ok(bly_index_builder_open(path, NULL, &b));
    assert_ok(document_add(b, 100));
    assert_ok(bly_index_builder_commit(b));
    bly_index_builder_free(b);
    byte_array now = file_bytes(path);
    assert_never_no(&now, 101);
    assert_ok(bly_index_builder_open(path, NULL, &b));
    bly_index_builder_compact(b);
    assert_status(bly_index_builder_commit(b), BLY_EFORMAT);
    bly_index_builder_free(b);
    byte_array after = file_bytes(path);
    assert_int_equal(after.n, now.n);
    assert_memory_equal(after.at, now.at, now.n);
    free(now.at);
    free(after.at);
}

/* ------------------------------------------------------------------- memory */

static bly_status whole_life(const bly_mem *mem)
{
    bly_index_spec spec = spec_of(30000);
    bly_index_builder *b;
    bly_index *x = NULL;
    uint64_t maybe[4];
    uint32_t counts[130];
    const bly_access how = { .mem = mem };
    spec.mem = mem;
    bly_status st = bly_index_builder_new(path, &spec, &b);
    for (uint64_t d = 0; d < 120 && !st; d++)
        st = document_add(b, d);
    if (!st)
        st = bly_index_builder_set(b, "a", "b", 1);
    if (!st)
        st = bly_index_builder_drop(b, 100);
    if (!st)
        bly_index_builder_compact(b);
    if (!st)
        st = bly_index_builder_commit(b);
    bly_index_builder_free(b);
    if (!st)
        st = bly_index_map(path, &how, &x);
    const bly_index_term term = { shared_term(0, 0), 0 };
    if (!st)
        st = bly_index_ask(x, &term, 1, maybe);
    if (!st)
        st = bly_index_coverage(x, 0, &term.hash, 1, counts);
    if (!st) {
        const bly_index_spec again = { .mem = mem };
        st = bly_index_builder_open(path, &again, &b);
        if (!st)
            st = bly_index_builder_merge(b, x, NULL);
        if (!st)
            st = bly_index_builder_commit(b);
        bly_index_builder_free(b);
    }
    bly_index_free(x);
    return st;
}

static void out_of_memory(void **unused)
{
    (void)unused;
    ledger l;
    ledger_open(&l);
    l.fail_at = -1;
    assert_ok(whole_life(&l.mem));
    const long calls = l.calls;
    ledger_check(&l);
    const long step = (long)stride((size_t)calls, 400);
    for (long i = 0; i < calls; i += step) {
        ledger_open(&l);
        l.fail_at = i;
        assert_status(whole_life(&l.mem), BLY_ENOMEM);
        ledger_check(&l);
    }
}

/* The disk is full after any number of bytes: the old version stays, and
 * nothing lies beside it. */
static void full_disk(void **unused)
{
    (void)unused;
    struct rlimit was;
    index_build(path, 0, 40, 0);
    byte_array before = file_bytes(path);
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    bly_status st = BLY_EIO;
    for (size_t n = 0; st; n += before.n / 40) {
        const struct rlimit limit = { n, was.rlim_max };
        bly_index_builder *b = NULL;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        st = bly_index_builder_open(path, NULL, &b);
        for (uint64_t d = 40; d < 80 && !st; d++)
            st = document_add(b, d);
        if (!st)
            st = bly_index_builder_commit(b);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
        bly_index_builder_free(b);
        if (!st)
            break;
        assert_status(st, BLY_EIO);
        byte_array after = file_bytes(path);
        assert_int_equal(after.n, before.n);
        assert_memory_equal(after.at, before.at, before.n);
        free(after.at);
        assert_true(n < 3 * before.n);
    }
    signal(SIGXFSZ, handler);
    free(before.at);
    bly_index *const x = index_open(path);
    assert_int_equal(bly_index_documents(x), 80);
    bly_index_free(x);
}

/* A builder dies without a word, at any point: the old version stays. */
static void killed(void **unused)
{
    (void)unused;
    index_build(path, 0, 40, 0);
    byte_array before = file_bytes(path);
    for (unsigned stop = 0; stop < 4; stop++) {
        const pid_t child = fork();
        if (child == 0) {
            bly_index_builder *b;
            if (bly_index_builder_open(path, NULL, &b))
                _exit(1);
            for (uint64_t d = 40; stop && d < 80; d++)
                if (document_add(b, d))
                    _exit(1);
            bly_index_builder_compact(b);
            if (stop == 3)
                _exit(bly_index_builder_commit(b) != BLY_OK);
            raise(SIGKILL);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        byte_array after = file_bytes(path);
        if (stop < 3) {
            assert_int_equal(after.n, before.n);
            assert_memory_equal(after.at, before.at, before.n);
        } else {
            assert_int_equal(status, 0);
            assert_true(after.n > before.n);
        }
        free(after.at);
    }
    free(before.at);
}

/* --------------------------------------------------------------------- parts
 */

static void rows_agree(void **unused)
{
    (void)unused;
    enum { MOST = 700, NROWS = 9 };
    uint64_t state = 3;
    unsigned char *rows[NROWS], want[MOST], got[MOST];
    for (size_t nbytes = 1; nbytes <= MOST; nbytes += nbytes < 80 ? 1 : 37) {
        for (size_t i = 0; i < NROWS; i++) {
            rows[i] = guarded_new(nbytes);
            for (size_t j = 0; j < nbytes; j++)
                rows[i][j] =
                    (unsigned char)(test_random(&state) | test_random(&state));
        }
        for (size_t n = 1; n <= NROWS; n++) {
            const unsigned char *const *const in =
                (const unsigned char *const *)rows;
            for (size_t j = 0; j < nbytes; j++) {
                want[j] = 0xff;
                for (size_t i = 0; i < n; i++)
                    want[j] &= rows[i][j];
            }
            EACH_ROW(slices, r)
            {
                r->meet(got, in, n, nbytes);
                assert_memory_equal(got, want, nbytes);
            }
        }
        /* The result may be one of the rows. */
        const unsigned char *const *const in =
            (const unsigned char *const *)rows;
        bly_slices_best()->meet(rows[NROWS - 1], in, NROWS, nbytes);
        assert_memory_equal(rows[NROWS - 1], want, nbytes);
        for (size_t i = 0; i < NROWS; i++)
            guarded_free(rows[i], nbytes);
    }
}

static void sizes_of_filters(void **unused)
{
    (void)unused;
    double waste = 0, n = 0;
    for (double bits = 40; bits < 1e9; bits *= 1.0137, n++) {
        const uint64_t m = bly_sliced_rows(bits);
        assert_true((double)m >= bits && (double)m <= bits * 17 / 16);
        assert_int_equal(bly_sliced_rows((double)m), m);
        waste += (double)m / bits - 1;
    }
    assert_true(waste / n < 0.035);
    assert_int_equal(bly_sliced_rows(1), 32);
    assert_int_equal(bly_sliced_rows(1e30), SLICED_ROWS_MOST);
    assert_int_equal(bly_sliced_k(0.3), 2);
    assert_near(bly_sliced_bits(0.3, 2), 2.52, 0.01);
    assert_int_equal(bly_sliced_k(0.001), 8);
    assert_near(bly_sliced_bits(0.001, 8), 14.6, 0.01);
    assert_near(bly_sliced_rate(1000, 1, 1), 0.001, 1e-9);
}

/* The plan is at the bottom of the cost, and what costs more is spared. */
static void plans(void **unused)
{
    (void)unused;
    bly_index_plan best, next;
    bly_index_wish wish = { .documents = 4000, .terms = 75000 };
    assert_ok(bly_index_plan_for(&wish, &best));
    assert_near((double)best.nbytes, 4000.0 * 75000 * best.bits / 8, 0.05);
    for (double p = 0.5; p > 1e-6; p /= 3) {
        wish.fpr = p;
        assert_ok(bly_index_plan_for(&wish, &next));
        assert_near(next.fpr, p, 1e-12);
        assert_near(next.opened, 4000 * p, 1e-9);
        assert_true(next.cost >= best.cost);
    }
    wish.fpr = 0;
    wish.questions = 1e6;
    assert_ok(bly_index_plan_for(&wish, &next));
    assert_true(next.fpr < best.fpr);
    wish.asked = 8;
    assert_ok(bly_index_plan_for(&wish, &best));
    assert_true(best.fpr > next.fpr);
    wish.fpr = 1;
    assert_status(bly_index_plan_for(&wish, &next), BLY_EINVAL);
    wish.fpr = 0;
    wish.terms = NAN;
    assert_status(bly_index_plan_for(&wish, &next), BLY_EINVAL);
}

static void expects(void **unused)
{
    (void)unused;
    index_build(path, 0, 1000, 0);
    bly_index *const x = index_open(path);
    uint64_t *const maybe = bitmap_of(x);
    for (size_t n = 1; n <= 3; n++) {
        double hits = 0, questions = 3000;
        bly_index_term terms[3];
        for (uint64_t i = 0; i < (uint64_t)questions; i++) {
            for (size_t j = 0; j < n; j++)
                terms[j] = (bly_index_term){ bly_mix64(1000003 * i + j), 0 };
            assert_ok(bly_index_ask(x, terms, n, maybe));
            for (size_t j = 0; j < bly_index_words(x); j++)
                hits += __builtin_popcountll(maybe[j]);
        }
        const double want = questions * bly_index_expected(x, terms, n);
        assert_near(hits, want, 0.03);
    }
    assert_near(bly_index_expected(x, NULL, 0), 1000, 1e-12);
    free(maybe);
    bly_index_free(x);
}

/* ------------------------------------------------------------ sizes of structs
 */

#define CALLS(name, type, release, made, call)               \
    static bly_status name##_call(void *object, size_t size) \
    {                                                        \
        type *made = NULL;                                   \
        const bly_status st = call;                          \
        release(made);                                       \
        return st;                                           \
    }
CALLS(bly_index_builder_new, bly_index_builder, bly_index_builder_free, b,
      bly_index_builder_new_sized(other_path, object, &b, size))
CALLS(bly_index_builder_open, bly_index_builder, bly_index_builder_free, b,
      bly_index_builder_open_sized(path, object, &b, size))
CALLS(bly_index_map, bly_index, bly_index_free, x,
      bly_index_map_sized(path, object, &x, size))
CALLS(bly_index_stat, bly_index, bly_index_free, x,
      (x = index_open(path), bly_index_stat_sized(x, object, size), BLY_OK))
CALLS(bly_index_class_at, bly_index, bly_index_free, x,
      (x = index_open(path),
       bly_index_class_at_sized(x, 1, object, size) ? BLY_OK : BLY_EINVAL))

static bly_index_plan planned;
static const bly_index_wish wished = { .documents = 3 };
static bly_status wish_call(void *object, size_t size)
{
    return bly_index_plan_for_sized(object, size, &planned, sizeof planned);
}
static bly_status plan_call(void *object, size_t size)
{
    return bly_index_plan_for_sized(&wished, sizeof wished, object, size);
}

static void any_size_works(void **unused)
{
    (void)unused;
    const bly_index_spec spec = spec_of(0);
    const bly_access access_ = { .checking = BLY_CHECK_ALL };
    const sized_row rows[] = {
        { "bly_index_builder_new", &spec, sizeof spec,
          bly_index_builder_new_call },
        { "bly_index_builder_open", &spec, sizeof spec,
          bly_index_builder_open_call },
        { "bly_index_map", &access_, sizeof access_, bly_index_map_call },
        { "bly_index_stat", NULL, sizeof(bly_index_stats),
          bly_index_stat_call },
        { "bly_index_class_at", NULL, sizeof(bly_index_class_stats),
          bly_index_class_at_call },
        { "wish", &wished, sizeof wished, wish_call },
        { "plan", NULL, sizeof(bly_index_plan), plan_call },
    };
    index_build(path, 0, 3, 0);
    sized_laws(rows, COUNT_OF(rows));
    none_is_unsized("include/bloomery/index.h", rows, COUNT_OF(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(sizes_of_filters),
        cmocka_unit_test(plans),
        cmocka_unit_test_setup_teardown(finds_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_width, set_up, tear_down),
        cmocka_unit_test_setup_teardown(little_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(adds_and_drops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(merges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counts_coverage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expects, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_settings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_bad_specs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_maybe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(any_size_works, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(out_of_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
