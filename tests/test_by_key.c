/*
 * test_by_key.c - what only some kinds can do, given keys instead of hashes;
 * and filters built from keys in one call
 */
#define _GNU_SOURCE
#include "laws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NKEYS = 1500 }; /* three pieces, the last of them short */

/* "key 0", "key 1", ...; the bytes stay where they are. */
static bly_bytes *texts(size_t n)
{
    static char room[2 * NKEYS][16];
    bly_bytes *const keys = calloc(n, sizeof *keys);
    assert_non_null(keys);
    assert_true(n <= COUNT_OF(room));
    for (size_t i = 0; i < n; i++)
        keys[i] =
            (bly_bytes){ room[i], (size_t)snprintf(room[i], sizeof room[i],
                                                   "key %zu", i) };
    return keys;
}

static void assert_text(bly_filter *f, const char *key, size_t len,
                        uint64_t want)
{
    uint64_t count;
    assert_ok(bly_count(f, key, len, &count));
    assert_int_equal(count, want);
}

/* A filter with every key i added 1 + i % 3 times. */
LAW(counts_keys_as_it_counts_hashes)
{
    needs(kind, BLY_CAN(COUNT) | BLY_CAN(INCREASE));
    bly_spec spec = law_spec(row, 3 * NKEYS); /* repeats may take room */
    bly_filter *f, *g;
    bly_bytes *const keys = texts(NKEYS);
    uint64_t *const hashes = calloc(NKEYS, sizeof *hashes);
    uint64_t by[NKEYS], want[NKEYS], got[NKEYS];
    size_t done = 0;
    for (size_t i = 0; i < NKEYS; i++)
        by[i] = 1 + i % 3;
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_new(&spec, &g));
    bly_hash_keys(bly_hasher_of(f), keys, NKEYS, hashes);
    assert_ok(bly_increase_hashes(f, hashes, by, NKEYS, NULL));
    assert_ok(bly_increase_keys(g, keys, by, NKEYS, &done));
    assert_int_equal(done, NKEYS);
    assert_true(bly_equal(f, g));
    assert_ok(bly_count_hashes(f, hashes, NKEYS, want));
    assert_ok(bly_count_keys(g, keys, NKEYS, got));
    assert_memory_equal(got, want, sizeof got);
    assert_ok(bly_count_as(g, BLY_KEYS_TEXT, keys, NKEYS, got));
    assert_memory_equal(got, want, sizeof got);
    for (size_t i = 0; i < NKEYS; i += 97)
        assert_text(g, keys[i].ptr, keys[i].len, want[i]);
    assert_ok(bly_increase(f, "more", 4, 2));
    assert_ok(bly_increase_as(g, BLY_KEYS_TEXT, &(bly_bytes){ "more", 4 },
                              &(uint64_t){ 2 }, 1, NULL));
    assert_true(bly_equal(f, g));
    bly_free(f);
    bly_free(g);
    free(hashes);
    free(keys);
}

LAW(removes_keys_as_it_removes_hashes)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(REMOVE));
    bly_spec spec = law_spec(row, NKEYS);
    bly_filter *f, *g;
    bly_bytes *const keys = texts(NKEYS);
    uint64_t *const hashes = calloc(NKEYS, sizeof *hashes);
    bly_status want[NKEYS], got[NKEYS];
    assert_ok(bly_new(&spec, &f));
    bly_hash_keys(bly_hasher_of(f), keys, NKEYS, hashes);
    assert_ok(bly_add_hashes(f, hashes, NKEYS - 100, NULL, NULL));
    assert_ok(bly_clone(f, &g));
    const bly_status st = bly_remove_hashes(f, hashes, NKEYS, want);
    char *const error = strdup(bly_error());
    assert_int_equal(bly_remove_keys(g, keys, NKEYS, got), st);
    assert_memory_equal(got, want, sizeof got);
    assert_string_equal(bly_error(), error);
    assert_true(bly_equal(f, g));
    free(error);
    free(hashes);
    free(keys);
    bly_free(f);
    bly_free(g);
}

LAW(takes_integers_too)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(REMOVE));
    bly_spec spec = law_spec(row, NKEYS);
    bly_filter *f;
    uint64_t ints[NKEYS], maybe[BLY_BITMAP_WORDS(NKEYS)];
    int64_t signs[] = { 3, -1, 4 };
    bly_status each[3];
    for (size_t i = 0; i < NKEYS; i++)
        ints[i] = i;
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_add_ints(f, ints, NKEYS, NULL, NULL));
    if (bly_remove_ints(f, ints + 9, 1, each) == BLY_EREFUSED) {
        assert_int_equal(each[0], BLY_EREFUSED);
        bly_free(f);
        skip_for("the kind removes only what it was told to keep apart");
    }
    /* -1 cannot be a key of a filter of uint64; the others still go. */
    assert_status(bly_remove_as(f, BLY_KEYS_INT64, signs, 3, each), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "'-1'"));
    assert_int_equal(each[1], BLY_EINVAL);
    assert_true(each[0] == BLY_OK || each[0] == BLY_EREFUSED);
    assert_int_equal(each[2], BLY_OK == each[0] ? BLY_OK : each[2]);
    if (bly_remove_ints(f, ints + 10, NKEYS - 10, NULL) == BLY_OK) {
        bly_has_ints(f, ints + 10, NKEYS - 10, maybe);
        size_t left = 0;
        for (size_t i = 0; i < NKEYS - 10; i++)
            left += maybe[i / 64] >> i % 64 & 1;
        assert_in_range(left, 0, NKEYS / 10);
    }
    bly_free(f);
}

/* In one call, what the builder makes of the same hashes. */
LAW(builds_in_one_call)
{
    if (!(kind->can & (BLY_CAN(ADD) | BLY_CAN(BUILD))))
        skip_for("the kind takes no keys");
    bly_spec spec = law_spec(row, NKEYS);
    const bool valued = takes_values(kind);
    bly_filter *f, *g, *h;
    bly_builder *b;
    bly_bytes *const keys = texts(NKEYS);
    uint64_t *const hashes = calloc(NKEYS, sizeof *hashes), values[NKEYS];
    uint64_t maybe[BLY_BITMAP_WORDS(NKEYS)], gone;
    for (size_t i = 0; i < NKEYS; i++)
        values[i] = i % 7;
    spec.keying.type = BLY_KEYS_TEXT;
    assert_ok(bly_builder_new(&spec, &b));
    bly_hash_keys(bly_builder_hasher(b), keys, NKEYS, hashes);
    assert_ok(bly_builder_add(b, hashes, valued ? values : NULL, NKEYS));
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    assert_ok(bly_builder_new(&spec, &b));
    assert_ok(bly_builder_add_keys(b, keys, valued ? values : NULL, NKEYS));
    assert_ok(bly_builder_finish(b, 1, &g));
    bly_builder_free(b);
    assert_true(bly_equal(f, g));
    bly_free(g);
    assert_ok(bly_build_as(&spec, BLY_KEYS_TEXT, keys, valued ? values : NULL,
                           NKEYS, &g));
    assert_true(bly_equal(f, g));
    if (valued) {
        assert_status(bly_build_keys(&spec, keys, NKEYS, &h), BLY_EINVAL);
        assert_null(h);
        assert_non_null(strstr(bly_error(), "value"));
        assert_ok(bly_get_value(g, keys[9].ptr, keys[9].len, &gone));
        assert_int_equal(gone, 2);
    } else {
        assert_ok(bly_build_keys(&spec, keys, NKEYS, &h));
        assert_true(bly_equal(f, h));
        bly_free(h);
        assert_status(
            bly_build_as(&spec, BLY_KEYS_TEXT, keys, values, NKEYS, &h),
            BLY_EINVAL);
    }
    if (kind->can & BLY_CAN(HAS) && !(kind->traits & BLY_LIKELY_NO)) {
        bly_has_keys(g, keys, NKEYS, maybe);
        for (size_t i = 0; i < NKEYS; i++)
            assert_true(maybe[i / 64] >> i % 64 & 1);
    }
    bly_free(f);
    bly_free(g);
    free(hashes);
    free(keys);
}

/* So many keys that several threads hash them. */
LAW(many_keys_by_many_threads_are_the_same)
{
    needs(kind, BLY_CAN(BUILD));
    const size_t n = scaled(600000);
    bly_spec spec = { .kind = kind->name, .fpr = 0.01 };
    const bool valued = takes_values(kind);
    uint64_t *const ints = calloc(n, sizeof *ints);
    bly_filter *f, *g;
    bly_builder *b;
    for (size_t i = 0; i < n; i++)
        ints[i] = i;
    assert_ok(bly_build_as(&spec, BLY_KEYS_UINT64, ints, valued ? ints : NULL,
                           n, &f));
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UINT64);
    spec.keying.type = BLY_KEYS_UINT64; /* and the hash of integers */
    assert_ok(bly_builder_new(&spec, &b));
    assert_ok(bly_builder_add_ints(b, ints, valued ? ints : NULL, n));
    assert_ok(bly_builder_finish(b, 1, &g));
    assert_true(bly_equal(f, g));
    for (uint64_t i = 0; i < n; i += 1001)
        assert_true(bly_has_int(f, i));
    bly_builder_free(b);
    bly_free(f);
    bly_free(g);
    free(ints);
}

/* ------------------------------------------------------------ what is said */

static void values_by_key(void **unused)
{
    (void)unused;
    bly_spec spec = { .kind = "bloomier", .items = 100 };
    bly_bytes keys[] = { { "one", 3 }, { "two", 3 } };
    uint64_t values[] = { 1, 2 }, got[3], present[1];
    bly_bytes asked[] = { { "two", 3 }, { "nosuch", 6 }, { "one", 3 } };
    bly_filter *f;
    assert_ok(bly_build_as(&spec, BLY_KEYS_TEXT, keys, values, 2, &f));
    assert_ok(bly_get_keys(f, asked, 3, got, present));
    assert_int_equal(present[0] & 5, 5);
    assert_int_equal(got[0], 2);
    assert_int_equal(got[2], 1);
    assert_ok(bly_get_as(f, BLY_KEYS_TEXT, asked, 1, got, present));
    assert_int_equal(got[0], 2);
    assert_ok(bly_get_value(f, "two", 3, got));
    assert_int_equal(got[0], 2);
    size_t nabsent = 0;
    for (int i = 0; i < 50; i++) {
        char key[16];
        const int len = snprintf(key, sizeof key, "absent %d", i);
        nabsent += bly_get_value(f, key, (size_t)len, got) == BLY_EABSENT;
    }
    assert_in_range(nabsent, 45, 50);
    assert_status(bly_get_ints(f, values, 2, got, present), BLY_OK);
    bly_free(f);
}

static void set_by_key(void **unused)
{
    (void)unused;
    for (size_t i = 0;; i++) {
        bly_kind_info kind;
        if (!bly_kind_at(i, &kind))
            break;
        bly_filter *f;
        const bly_bytes key = { "one", 3 };
        const bly_spec spec = { .kind = kind.name, .items = 100, .fpr = 0.01 };
        const uint64_t value = 3;
        uint64_t got = 0;
        if (!(kind.can & BLY_CAN(SET))) {
            if (bly_new(&spec, &f))
                continue;
            assert_status(bly_set_value(f, "one", 3, 2), BLY_ENOTSUP);
            bly_free(f);
            continue;
        }
        assert_ok(bly_build_as(&spec, BLY_KEYS_TEXT, &key, &value, 1, &f));
        const bly_status st = bly_set_value(f, "one", 3, 2);
        assert_true(st == BLY_OK || st == BLY_ENOTSUP);
        assert_ok(bly_get_value(f, "one", 3, &got));
        assert_int_equal(got, st ? 3 : 2);
        bly_free(f);
    }
}

/* Types are converted, or there is an error; never another key's count. */
static void types_of_keys(void **unused)
{
    (void)unused;
    bly_filter *f;
    bly_spec spec = { .kind = "countmin", .items = 1000 };
    const uint64_t ints[] = { 7, UINT64_MAX }, by[] = { 5, 6 };
    uint64_t counts[2];
    size_t done;
    spec.keying = (bly_keying){ BLY_KEYS_TEXT, BLY_KEYS_FOLDED };
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_increase_as(f, BLY_KEYS_TEXT, &(bly_bytes){ "ALICE", 5 }, by,
                              1, NULL));
    assert_ok(
        bly_count_as(f, BLY_KEYS_TEXT, &(bly_bytes){ "Alice", 5 }, 1, counts));
    assert_int_equal(counts[0], 5);
    /* As they are: nobody folds them. */
    assert_ok(bly_count(f, "Alice", 5, counts));
    assert_int_equal(counts[0], 0);
    assert_status(bly_increase_ints(f, ints, by, 2, &done), BLY_ERANGE);
    assert_int_equal(done, 1);
    assert_ok(bly_count(f, "7", 1, counts));
    assert_int_equal(counts[0], 5);
    assert_status(bly_count_ints(f, ints, 2, counts), BLY_ERANGE);
    assert_ok(bly_count_as(f, BLY_KEYS_UINT64, ints, 2, counts));
    assert_status(bly_count_as(f, BLY_KEYS_UNKNOWN, ints, 2, counts),
                  BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "text, bytes"));
    bly_free(f);

    /* An empty filter of unknown type becomes one of these. */
    spec.keying = (bly_keying){ BLY_KEYS_UNKNOWN, 0 };
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_increase_ints(f, ints, by, 2, &done));
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UINT64);
    assert_ok(
        bly_count_as(f, BLY_KEYS_TEXT, &(bly_bytes){ "7", 1 }, 1, counts));
    assert_int_equal(counts[0], 5);
    assert_status(
        bly_count_as(f, BLY_KEYS_TEXT, &(bly_bytes){ "seven", 5 }, 1, counts),
        BLY_EINVAL);
    bly_free(f);
}

static void what_a_kind_cannot_do(void **unused)
{
    (void)unused;
    bly_filter *f;
    const bly_bytes key = { "one", 3 };
    uint64_t word, bits, by = 1;
    assert_ok(bly_build_keys(&(bly_spec){ .fpr = 0.01 }, &key, 1, &f));
    assert_status(bly_count(f, "one", 3, &word), BLY_ENOTSUP);
    assert_non_null(strstr(bly_error(), "count"));
    assert_status(bly_count_keys(f, &key, 1, &word), BLY_ENOTSUP);
    assert_status(bly_get_keys(f, &key, 1, &word, &bits), BLY_ENOTSUP);
    assert_status(bly_increase_keys(f, &key, &by, 1, NULL), BLY_ENOTSUP);
    assert_status(bly_remove_keys(f, &key, 1, NULL), BLY_ENOTSUP);
    bly_free(f);
    assert_status(bly_build_keys(&(bly_spec){ .kind = "nosuch" }, &key, 1, &f),
                  BLY_EINVAL);
    assert_null(f);
}

/* Opened blind, a filter takes hashes and no keys. */
static void blind(void **unused)
{
    (void)unused;
    static const unsigned char secret[BLY_SECRET_BYTES] = "0123456789abcde";
    const bly_spec spec = { .kind = "counting", .items = 10, .secret = secret };
    const bly_access how = { .blind = true };
    const bly_bytes key = { "one", 3 };
    bly_filter *f, *g;
    uint64_t count;
    assert_ok(bly_build_keys(&spec, &key, 1, &f));
    byte_array bytes = written(f);
    assert_ok(bly_load(bytes.at, bytes.n, &how, &g));
    assert_status(bly_remove_keys(g, &key, 1, NULL), BLY_ESECRET);
    assert_ok(bly_remove_keys(f, &key, 1, NULL));
    bly_free(f);
    bly_free(g);
    assert_ok(bly_new(&(bly_spec){ .kind = "countmin", .secret = secret }, &f));
    free(bytes.at);
    bytes = written(f);
    assert_ok(bly_load(bytes.at, bytes.n, &how, &g));
    assert_status(bly_count(g, "one", 3, &count), BLY_ESECRET);
    assert_status(bly_increase(g, "one", 3, 1), BLY_ESECRET);
    free(bytes.at);
    bly_free(f);
    bly_free(g);
}

/* A key that cannot be converted ends the build. */
static void a_wrong_key(void **unused)
{
    (void)unused;
    const bly_spec spec = { .kind = "fuse",
                            .keying = { BLY_KEYS_INT64, 0 },
                            .fpr = 0.01 };
    const bly_bytes keys[] = { { "12", 2 }, { "twelve", 6 } };
    bly_filter *f;
    bly_builder *b;
    assert_status(bly_build_as(&spec, BLY_KEYS_TEXT, keys, NULL, 2, &f),
                  BLY_EINVAL);
    assert_null(f);
    assert_non_null(strstr(bly_error(), "'twelve'"));
    assert_ok(bly_build_as(&spec, BLY_KEYS_TEXT, keys, NULL, 1, &f));
    assert_true(bly_has_int(f, 12));
    bly_free(f);
    assert_ok(bly_builder_new(&spec, &b));
    assert_status(bly_builder_add_as(b, BLY_KEYS_TEXT, keys, NULL, 2),
                  BLY_EINVAL);
    assert_status(bly_builder_finish(b, 1, &f), BLY_EINVAL);
    bly_builder_free(b);
    assert_ok(bly_build_keys(&(bly_spec){ .kind = "fuse" }, NULL, 0, &f));
    bly_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_by_key),
        cmocka_unit_test(set_by_key),
        cmocka_unit_test(types_of_keys),
        cmocka_unit_test(what_a_kind_cannot_do),
        cmocka_unit_test(blind),
        cmocka_unit_test(a_wrong_key),
    };
    return run_laws_and("by key", tests, COUNT_OF(tests), argc, argv);
}
