/*
 * test_laws_files.c - what every kind promises about its bytes
 *
 * Written and read back it is the same filter; cut short or damaged it is
 * refused; where it lies on disk it can be asked; and a secret stays one.
 * test_format.c looks at the bytes themselves.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ files */

LAW(loads_to_the_same_answers)
{
    static const size_t sizes[] = { 0, 1, 100, 20000 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const bly_spec spec = law_spec(row, sizes[i] ? sizes[i] : 10);
        bly_filter *f = filled_from(&spec, 0, sizes[i]), *g;
        byte_array a = written(f);
        assert_int_equal(bly_written_bytes(f), a.n);
        /* The bytes end at a wall. */
        unsigned char *wall = guarded_new(a.n);
        memcpy(wall, a.at, a.n);
        assert_ok(bly_load(wall, a.n, NULL, &g));
        guarded_free(wall, a.n);
        assert_true(bly_equal(f, g));
        assert_same_bytes(g, &a);
        bly_stats fs, gs;
        bly_stat(f, &fs);
        bly_stat(g, &gs);
        assert_int_equal(fs.capacity, gs.capacity);
        assert_int_equal(fs.items_added, gs.items_added);
        assert_true(fs.fpr_at_capacity == gs.fpr_at_capacity);
        assert_int_equal(fs.nfacts, gs.nfacts);
        uint64_t *h = hashes_for(&spec, 0, 3000);
        for (size_t j = 0; j < 3000; j++)
            assert_true(bly_has_hash(f, h[j]) == bly_has_hash(g, h[j]));
        /* It is a filter like another: it takes keys. */
        if (kind->can & BLY_CAN(ADD) && sizes[i] > 1) {
            assert_ok(bly_add_hash(f, 99));
            assert_ok(bly_add_hash(g, 99));
            assert_true(bly_equal(f, g));
        }
        free(h);
        free(a.at);
        bly_free(f);
        bly_free(g);
    }
}

/* Written whole, in parts (their sums ahead, too), and read from a stream: the
 * same bytes. */
LAW(writes_the_same_in_parts)
{
    bly_filter *f = law_filled(row, 0, 3000), *g;
    byte_array a = written(f);
    static const size_t steps[] = { 1, 7, 64, 1000, 4096, 100000 };
    unsigned char *parts = malloc(a.n + 100000);
    assert_non_null(parts);
    for (size_t s = 0; s < COUNT_OF(steps); s++) {
        uint64_t at = 0;
        size_t n;
        memset(parts, 0xa5, a.n + 100000);
        while ((n = bly_write_part(f, at, parts + at, steps[s])) > 0) {
            assert_true(n <= steps[s]);
            assert_int_equal(parts[at + n], 0xa5);
            at += n;
        }
        assert_int_equal(at, a.n);
        assert_memory_equal(parts, a.at, a.n);
    }
    assert_int_equal(bly_write_part(f, a.n + 10, parts, 10), 0);
    assert_parts_are(f, &a, 1000);
    byte_source source = { a.at, a.n };
    assert_ok(bly_read(get_bytes, &source, NULL, &g));
    assert_true(bly_equal(f, g));
    free(parts);
    free(a.at);
    bly_free(f);
    bly_free(g);
}

/* No beginning of a file is a file, by either way to read it; and neither is
 * a file with something behind. */
LAW(every_shorter_prefix_is_refused)
{
    bly_filter *f = law_filled(row, 0, 100), *g = f;
    byte_array a = written(f);
    const size_t step = stride(a.n, 5000);
    for (size_t n = 0; n < a.n; n += n < 300 || n + 300 > a.n ? 1 : step) {
        unsigned char *wall = a.at;
        if (n < 300 || n + 300 > a.n || n % 61 == 0) {
            wall = guarded_new(n);
            memcpy(wall, a.at, n);
        }
        assert_status(bly_load(wall, n, NULL, &g), BLY_EFORMAT);
        assert_null(g);
        byte_source source = { wall, n };
        g = f;
        assert_status(bly_read(get_bytes, &source, NULL, &g), BLY_EFORMAT);
        assert_null(g);
        if (wall != a.at)
            guarded_free(wall, n);
    }
    unsigned char *more = calloc(1, a.n + 1);
    assert_non_null(more);
    memcpy(more, a.at, a.n);
    assert_status(bly_load(more, a.n + 1, NULL, &g), BLY_EFORMAT);
    assert_null(g);
    free(more);
    free(a.at);
    bly_free(f);
}

/* Whatever bit is flipped: refused, or the filter answers as before. */
LAW(a_flipped_bit_is_refused_or_harmless)
{
    bly_filter *f = law_filled(row, 0, 50), *g;
    byte_array a = written(f);
    size_t harmless = 0;
    const size_t nbits = 8 * a.n, step = stride(nbits, 40000);
    for (size_t bit = 0; bit < nbits; bit += bit < 8 * 300 ? 1 : step) {
        a.at[bit / 8] ^= (unsigned char)(1 << (bit % 8));
        if (bly_load(a.at, a.n, NULL, &g)) {
            assert_null(g);
        } else {
            harmless++;
            assert_true(bly_equal(f, g));
            assert_int_equal(hits(g, 0, 500), hits(f, 0, 500));
            bly_free(g);
        }
        a.at[bit / 8] ^= (unsigned char)(1 << (bit % 8));
    }
    /* What may be harmless is at most a hint or two of 64 bits. */
    assert_true(harmless <= 128);
    free(a.at);
    bly_free(f);
}

/* An allocator that writes over the payload of a file, once it is told to: as
 * another process could, between a look at a map and a copy of it. */
typedef struct meddler {
    const char *path;
    bool now;
} meddler;

static void *meddler_alloc(void *ctx, size_t nbytes)
{
    meddler *const m = ctx;
    static const char nonsense[500] = { 1, 0x7f, 3 };
    if (m->now) {
        FILE *file = fopen(m->path, "r+b");
        assert_non_null(file);
        assert_int_equal(fseek(file, 4096, SEEK_SET), 0);
        assert_int_equal(fwrite(nonsense, sizeof nonsense, 1, file), 1);
        assert_int_equal(fclose(file), 0);
    }
    void *const p = aligned_alloc(64, (nbytes + 63) / 64 * 64);
    return p;
}

static void meddler_release(void *ctx, void *p, size_t nbytes)
{
    (void)ctx;
    (void)nbytes;
    free(p);
}

/* A copy may be written to, so it is the copy that must be in order, whatever
 * the file was when it was looked at. */
LAW(a_copy_of_a_file_that_changes_is_sound)
{
    char folder[] = "/tmp/bloomery-laws-XXXXXX", path[64], shell[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.bly", folder);
    bly_filter *f = law_filled(row, 0, 5000), *m, *copy, *g;
    meddler ctx = { .path = path };
    const bly_mem mem = { .alloc = meddler_alloc,
                          .release = meddler_release,
                          .ctx = &ctx };
    const bly_access how = { .mem = &mem };
    assert_ok(bly_save(f, path));
    assert_ok(bly_map(path, &how, &m));
    ctx.now = true;
    const bly_status st = bly_clone(m, &copy);
    ctx.now = false;
    if (st) {
        assert_int_equal(st, BLY_EFORMAT);
    } else {
        byte_array a = written(copy);
        assert_ok(bly_load(a.at, a.n, NULL, &g));
        free(a.at);
        bly_free(g);
        bly_free(copy);
    }
    bly_free(m);
    bly_free(f);
    snprintf(shell, sizeof shell, "rm -rf %s", folder);
    assert_int_equal(system(shell), 0);
}

/* Asked where it lies on disk: the same answers, and no changes. */
LAW(maps_to_the_same_answers)
{
    const bly_spec spec = law_spec(row, 5000);
    bly_filter *f = filled_from(&spec, 0, 5000), *m = NULL, *copy;
    char folder[] = "/tmp/bloomery-laws-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.bly", folder);
    assert_ok(bly_save(f, path));
    assert_ok(bly_map(path, NULL, &m));
    assert_true(bly_equal(f, m));
    assert_ok(bly_verify(m));
    uint64_t *h = hashes_for(&spec, 0, 9000);
    for (size_t i = 0; i < 9000; i++)
        assert_true(bly_has_hash(f, h[i]) == bly_has_hash(m, h[i]));
    bly_stats stats;
    bly_stat(m, &stats);
    assert_true(stats.mapped);
    if (kind->can & BLY_CAN(ADD))
        assert_status(bly_add_hash(m, 1), BLY_EREADONLY);
    if (kind->can & BLY_CAN(MERGE))
        assert_status(bly_merge(m, f), BLY_EREADONLY);
    assert_ok(bly_clone(m, &copy));
    bly_free(m);
    assert_true(bly_equal(f, copy));
    if (kind->can & BLY_CAN(ADD))
        assert_ok(bly_add_hash(copy, 1));
    bly_free(copy);
    assert_ok(bly_open(path, NULL, &copy));
    assert_true(bly_equal(f, copy));
    bly_free(copy);
    bly_free(f);
    free(h);
    unlink(path);
    /* The lock of writers may lie beside it. */
    snprintf(path, sizeof path, "rm -rf %s", folder);
    assert_int_equal(system(path), 0);
}

/* Coded, a filter takes other bytes and is the same; told otherwise again, it
 * takes the same. No other bytes are taken for it. */
LAW(coded_it_is_the_same)
{
    static const size_t fills[] = { 0, 1, 500, 3000 };
    const bly_spec spec = law_spec(row, 3000);
    for (size_t i = 0; i < COUNT_OF(fills); i++) {
        bly_filter *f = filled_from(&spec, 0, fills[i]), *g, *copy;
        bly_stats stats;
        bly_peek(f, &stats);
        assert_true(stats.coded == ((kind->traits & BLY_CODED) != 0));
        bly_set_coded(f, false);
        byte_array plain = written(f);
        bly_set_coded(f, true);
        byte_array a = written(f);
        assert_int_equal(a.n, bly_written_bytes(f));
        assert_ok(bly_load(a.at, a.n, NULL, &g));
        assert_true(bly_equal(f, g));
        bly_peek(g, &stats);
        assert_true(stats.coded && !stats.mapped);
        assert_same_bytes(g, &a);
        assert_ok(bly_clone(g, &copy));
        assert_same_bytes(copy, &a);
        bly_set_coded(copy, false);
        assert_true(bly_equal(copy, g));
        assert_same_bytes(copy, &plain);
        bly_free(copy);
        bly_free(g);
        byte_source source = { a.at, a.n };
        assert_ok(bly_read(get_bytes, &source, NULL, &g));
        assert_same_bytes(g, &a);
        bly_free(g);
        for (size_t n = 0; n < a.n; n += stride(a.n, 200))
            assert_status(bly_load(a.at, n, NULL, &g), BLY_EFORMAT);
        const size_t nbits = 8 * a.n, step = stride(nbits, 2000);
        for (size_t bit = 0; bit < nbits; bit += bit < 8 * 88 ? 1 : step) {
            a.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
            a.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free(a.at);
        free(plain.at);
        bly_free(f);
    }
}

static bly_status add_a_hash(bly_filter *f, void *ctx)
{
    return bly_add_hash(f, *(const uint64_t *)ctx);
}

/* On disk: decoded by a map, and coded again when it is changed. */
LAW(coded_files_are_used_like_others)
{
    bly_filter *f = law_part(row, 3000, 0, 1000), *g;
    char path[] = "/tmp/bloomery-laws-XXXXXX";
    uint64_t hash = 99;
    bly_stats stats;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    bly_set_coded(f, true);
    assert_ok(bly_save(f, path));
    assert_ok(bly_map(path, NULL, &g));
    bly_peek(g, &stats);
    assert_true(stats.mapped && stats.coded);
    assert_true(bly_equal(f, g));
    assert_ok(bly_verify(g));
    if (kind->can & BLY_CAN(ADD))
        assert_status(bly_add_hash(g, hash), BLY_EREADONLY);
    byte_array a = written(f);
    assert_same_bytes(g, &a);
    free(a.at);
    bly_free(g);
    if (kind->can & BLY_CAN(ADD)) {
        assert_ok(bly_update(path, NULL, add_a_hash, &hash));
        assert_ok(bly_add_hash(f, hash));
        assert_ok(bly_open(path, NULL, &g));
        bly_peek(g, &stats);
        assert_true(stats.coded && !stats.mapped);
        assert_true(bly_equal(f, g));
        bly_free(g);
    }
    bly_free(f);
    unlink(path);
}

/* A secret makes another filter of the same keys, is needed to ask, and is not
 * in the file. */
LAW(secrets_are_kept)
{
    if (kind->can & BLY_CAN(RANGE))
        skip_for("a kind that keeps keys in order has no secret hash");
    needs_certain_no(kind);
    unsigned char secret[BLY_SECRET_BYTES], wrong[BLY_SECRET_BYTES];
    uint64_t random = 7;
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = wrong[i] = (unsigned char)test_random(&random);
    wrong[15] ^= 1;
    bly_spec spec = law_spec(row, 1000);
    spec.seed = 0;
    spec.secret = secret;
    bly_filter *f = filled_from(&spec, 0, 1000), *g;
    bly_stats stats;
    bly_peek(f, &stats);
    assert_true(stats.keyed && stats.hash_id == BLY_HASH_SIPHASH13);
    assert_int_equal(hits(f, 0, 1000), 1000);
    byte_array a = written(f);
    for (size_t i = 0; i + 8 <= a.n; i++)
        assert_true(memcmp(a.at + i, secret, 8) != 0 &&
                    memcmp(a.at + i, secret + 8, 8) != 0);

    const bly_access known = { .secret = secret },
                     mistaken = { .secret = wrong };
    assert_ok(bly_load(a.at, a.n, &known, &g));
    assert_true(bly_equal(f, g));
    assert_int_equal(hits(g, 0, 1000), 1000);
    bly_free(g);
    assert_status(bly_load(a.at, a.n, &mistaken, &g), BLY_ESECRET);
    assert_null(g);
    assert_status(bly_load(a.at, a.n, NULL, &g), BLY_ESECRET);
    assert_null(g);

    /* Blind: "maybe" to every key, since nobody can hash it. */
    const bly_access blind = { .blind = true };
    assert_ok(bly_load(a.at, a.n, &blind, &g));
    assert_null(bly_hasher_of(g));
    assert_true(bly_equal(f, g));
    assert_int_equal(hits(g, ABSENT, 1000), 1000);
    assert_true(bly_has(g, "anything", 8) && bly_has_int(g, 8));
    if (kind->can & BLY_CAN(ADD)) {
        assert_status(bly_add(g, "anything", 8), BLY_ESECRET);
        assert_status(bly_add_int(g, 8), BLY_ESECRET);
    }
    if (kind->can & BLY_CAN(MERGE))
        assert_true(bly_merge(g, f) != BLY_ESECRET);
    assert_same_bytes(f, &a);

    /* Unlocked: all is as if it had been opened with the secret. */
    bly_free(g);
    assert_ok(bly_load(a.at, a.n, &blind, &g));
    assert_true(bly_secret_check_of(g) == bly_secret_check_of(f));
    assert_status(bly_unlock(g, wrong), BLY_ESECRET);
    assert_null(bly_hasher_of(g));
    assert_ok(bly_unlock(g, secret));
    assert_int_equal(hits(g, 0, 1000), 1000);
    assert_int_equal(hits(g, ABSENT, 1000), hits(f, ABSENT, 1000));
    assert_same_bytes(g, &a);
    bly_free(g);
    free(a.at);
    bly_free(f);

    /* One that nobody ever had the secret of takes hashes, and is the same. */
    bly_spec plain = spec;
    plain.secret = NULL;
    if (bly_new(&spec, &f) == BLY_OK) {
        const uint64_t check = bly_secret_check_of(f);
        uint64_t hash = bly_hash(bly_hasher_of(f), "key", 3);
        assert_ok(bly_new(&plain, &g));
        assert_true(bly_secret_check_of(g) == 0);
        assert_status(bly_unlock(g, secret), BLY_ESECRET);
        assert_status(bly_set_blind(g, 0), BLY_EINVAL);
        assert_ok(bly_set_blind(g, check));
        assert_null(bly_hasher_of(g));
        assert_true(bly_equal(f, g));
        assert_int_equal(bly_add_hash(g, hash), bly_add(f, "key", 3));
        a = written(f);
        assert_same_bytes(g, &a);
        assert_status(bly_set_blind(g, check), BLY_EINVAL);
        assert_ok(bly_unlock(g, secret));
        assert_true(bly_has(g, "key", 3));
        free(a.at);
        bly_free(g);
        bly_free(f);
    }

    spec.seed = 1;
    assert_status(bly_new(&spec, &g), BLY_EINVAL);
    assert_null(g);
}

int main(int argc, char **argv)
{
    return run_laws("laws of files", argc, argv);
}
