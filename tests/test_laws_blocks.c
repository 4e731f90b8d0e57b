/*
 * test_laws_blocks.c - what every kind promises of files that are checked block
 * by block
 *
 * Files of more than 4 MiB are of format version 2 and have a sum for each
 * block of 64 KiB. Here every file is, and blocks have 64 bytes, or one: small
 * filters have many blocks then, and every place of a file can be tried. At the
 * end comes a file that is as large as the format wants it.
 *
 * The law behind all: a damaged file is refused, or gives the answers of the
 * whole one, or says "maybe" and that it is damaged. It never says "no" where
 * the whole one does not.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bloomery/inline.h>

#include "core/hash.h"
#include "core/block_sums.h"
#include "format/record.h"
#include "kinds/filter.h"

#define NKEYS 1200
#define NASKED (2 * NKEYS)
#define BLOCK_SHIFT 6

/* Every file is of version 2, in blocks of 2^shift bytes; and as it was. */
static void small_blocks(unsigned shift)
{
    bly_summed_from = 0;
    bly_sums_shift = shift;
}

static void usual_blocks(void)
{
    bly_summed_from = BLY_SUMMED_USUALLY;
    bly_sums_shift = 16;
}

/* ------------------------------------------------------------------ files */

/* A file to be damaged, without a name that could stay behind. */
typedef struct scratch_file {
    int fd;
    char path[40];
} scratch_file;

static scratch_file scratch_new(const void *bytes, size_t n)
{
    scratch_file s;
    FILE *const t = tmpfile();
    assert_non_null(t);
    s.fd = dup(fileno(t));
    fclose(t);
    assert_true(s.fd >= 0);
    snprintf(s.path, sizeof s.path, "/proc/self/fd/%d", s.fd);
    assert_int_equal(pwrite(s.fd, bytes, n, 0), n);
    return s;
}

static void poke(const scratch_file *s, size_t at, int bit)
{
    unsigned char byte;
    assert_int_equal(pread(s->fd, &byte, 1, (off_t)at), 1);
    byte ^= (unsigned char)(1 << bit);
    assert_int_equal(pwrite(s->fd, &byte, 1, (off_t)at), 1);
}

/* A filter of this row that is not coded, and its file. */
static bly_filter *stored(const law_row *row, byte_array *out)
{
    bly_filter *f = law_filled(row, 0, NKEYS);
    bly_set_coded(f, false);
    *out = written(f);
    return f;
}

static bly_status read_queue(const void *bytes, size_t n, bly_filter **out)
{
    byte_source q = { bytes, n };
    return bly_read(get_bytes, &q, NULL, out);
}

/* ---------------------------------------------------------------- answers */

/* All that a kind says of some keys: half of them are in it. */
typedef struct answers {
    uint64_t maybe[BLY_BITMAP_WORDS(NASKED)];
    uint64_t counts[NASKED], values[NASKED];
    uint64_t present[BLY_BITMAP_WORDS(NASKED)];
    bly_status count, get;
} answers;

static uint64_t *asked_hashes(const law_row *row)
{
    const bly_spec spec = law_spec(row, NKEYS);
    return hashes_for(&spec, 0, NASKED);
}

static void ask(const bly_filter *f, const uint64_t *h, size_t n, answers *out)
{
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    memset(out, 0, sizeof *out);
    bly_has_hashes(f, h, n, out->maybe);
    if (kind.can & BLY_CAN(COUNT))
        out->count = bly_count_hashes(f, h, n, out->counts);
    if (kind.can & BLY_CAN(GET))
        out->get = bly_get_hashes(f, h, n, out->values, out->present);
}

static bool same_answers(const answers *a, const answers *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* What f, from a damaged file, may say where the whole one says `right`: the
 * same, or "maybe" and a failure, and then bly_damage() knows. */
static void assert_honest(const bly_filter *f, const uint64_t *h,
                          const answers *right)
{
    static answers a;
    ask(f, h, NASKED, &a);
    bool differs = a.count || a.get;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(NASKED); i++) {
        assert_int_equal(right->maybe[i] & ~a.maybe[i], 0);
        differs |= right->maybe[i] != a.maybe[i];
    }
    if (!a.count)
        assert_memory_equal(a.counts, right->counts, sizeof a.counts);
    if (!a.get) {
        assert_memory_equal(a.values, right->values, sizeof a.values);
        assert_memory_equal(a.present, right->present, sizeof a.present);
    }
    if (differs) {
        assert_status(bly_damage(f), BLY_EFORMAT);
        assert_non_null(strstr(bly_error(), "do not match their checksum"));
    }
    if (a.count)
        assert_int_equal(a.count, BLY_EFORMAT);
    if (a.get)
        assert_int_equal(a.get, BLY_EFORMAT);
}

/* ------------------------------------------------------------------- laws */

/* Written, read, mapped: one filter, and the same bytes again. */
LAW(summed_it_is_the_same)
{
    static answers right, got;
    bly_filter *g, *m;
    byte_array a, plain;
    usual_blocks();
    bly_filter *f = stored(row, &plain);
    small_blocks(BLOCK_SHIFT);
    a = written(f);
    assert_int_equal(plain.at[8], 1);
    assert_int_equal(a.at[8], 2);
    assert_true(a.n > plain.n);
    assert_int_equal(bly_written_bytes(f), a.n);
    uint64_t *h = asked_hashes(row);
    ask(f, h, NASKED, &right);

    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_true(bly_equal(f, g));
    assert_same_bytes(g, &a);
    bly_free(g);
    assert_ok(read_queue(a.at, a.n, &g));
    assert_same_bytes(g, &a);
    bly_free(g);
    /* An old file still opens, and is written as a new one. */
    assert_ok(bly_load(plain.at, plain.n, NULL, &g));
    assert_same_bytes(g, &a);
    bly_free(g);

    unsigned char *parts = malloc(a.n);
    for (size_t at = 0; at < a.n; at += 1000)
        assert_int_equal(bly_write_part(f, at, parts + at, 1000),
                         a.n - at < 1000 ? a.n - at : 1000);
    assert_memory_equal(parts, a.at, a.n);
    free(parts);
    assert_parts_are(f, &a, 3 * a.n / 8 + 1);

    const scratch_file s = scratch_new(a.at, a.n);
    assert_ok(bly_map(s.path, NULL, &m));
    assert_true(bly_filter_unread(m));
    for (size_t i = 0; i < NASKED; i += 7)
        assert_int_equal(bly_has_hash(m, h[i]),
                         right.maybe[i / 64] >> i % 64 & 1);
    ask(m, h, NASKED, &got);
    assert_true(same_answers(&right, &got));
    assert_ok(bly_damage(m));
    assert_same_bytes(m, &a);
    assert_ok(bly_verify(m));
    assert_false(bly_filter_unread(m));
    ask(m, h, NASKED, &got);
    assert_true(same_answers(&right, &got));
    for (uint32_t i = 0; bly_layer(m, i); i++)
        assert_false(bly_filter_unread(bly_layer(m, i)));
    /* A mapped file of version 1 becomes the same file. */
    bly_free(m);
    assert_int_equal(ftruncate(s.fd, 0), 0);
    assert_int_equal(pwrite(s.fd, plain.at, plain.n, 0), plain.n);
    assert_ok(bly_map(s.path, NULL, &m));
    assert_false(bly_filter_unread(m));
    assert_same_bytes(m, &a);
    bly_free(m);
    close(s.fd);
    free(h);
    free(a.at);
    free(plain.at);
    bly_free(f);
    usual_blocks();
}

/* Asking all keys one after another settles as much as it touches, and when
 * nothing is left the filter knows. */
LAW(every_touched_block_is_seen_once)
{
    small_blocks(BLOCK_SHIFT);
    byte_array a;
    bly_filter *f = stored(row, &a), *m;
    const scratch_file s = scratch_new(a.at, a.n);
    assert_ok(bly_map(s.path, NULL, &m));
    assert_ok(bly_filter_settle(m));
    assert_false(bly_filter_unread(m));
    /* What was seen is not looked at again: damage that comes later is not
     * found by questions, and is by bly_verify(). */
    if (f->shape.nbytes) {
        poke(&s, a.n - 1, 3);
        assert_ok(bly_filter_settle(m));
        assert_ok(bly_damage(m));
        if (!f->nlayers)
            assert_status(bly_verify(m), BLY_EFORMAT);
    }
    bly_free(m);
    close(s.fd);
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* Every flipped bit is refused, or unread, or leads to honest answers. */
LAW(flips_never_make_a_no)
{
    static answers right;
    small_blocks(BLOCK_SHIFT);
    byte_array a;
    bly_filter *f = stored(row, &a);
    uint64_t *h = asked_hashes(row);
    ask(f, h, NASKED, &right);
    const scratch_file s = scratch_new(a.at, a.n);
    size_t mapped = 0, refused = 0;
    const size_t step = a.n / scaled(1200) + 1;
    for (size_t at = 0; at < a.n; at += step) {
        const int bit = (int)(at % 8);
        bly_filter *m, *g;
        poke(&s, at, bit);
        a.at[at] ^= (unsigned char)(1 << bit);
        assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
        if (bly_map(s.path, NULL, &m) == BLY_OK) {
            mapped++;
            assert_honest(m, h, &right);
            assert_status(bly_verify(m), BLY_EFORMAT);
            bly_free(m);
            const bly_access all = { .checking = BLY_CHECK_ALL };
            assert_status(bly_map(s.path, &all, &m), BLY_EFORMAT);
            assert_null(m);
        } else {
            refused++;
        }
        poke(&s, at, bit);
        a.at[at] ^= (unsigned char)(1 << bit);
    }
    /* All headers, tables and zeros are refused at once, payloads are not. */
    assert_true(mapped > 0 && refused > 0);
    close(s.fd);
    free(h);
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* Bytes of f and its layers that m has not seen become noise. */
static size_t scramble_unseen(bly_filter *f, const bly_filter *m, uint64_t *rng)
{
    size_t unseen = 0;
    for (uint64_t i = 0; i < f->shape.nbytes; i++)
        if (!(atomic_load(&bly_filter_sums(m)->seen[i / 32]) >> (i % 32) & 1)) {
            *rng = bly_mix64(*rng + i);
            f->data[i] ^= (unsigned char)(1 + *rng % 255);
            unseen++;
        }
    for (uint32_t i = 0; i < f->nlayers; i++)
        unseen += scramble_unseen(f->layer[i], m->layer[i], rng);
    return unseen;
}

/* What reach() tells of is all that the answers depend on: with all other bytes
 * changed they are the same. */
LAW(reach_is_enough)
{
    static answers right, got;
    static const size_t batches[] = { 1, 1, 1, 1, 2, 8, 9, 65, 300 };
    bly_filter *f = law_filled(row, 0, NKEYS), *m, *noise;
    if (!f->kind->reach) {
        bly_free(f);
        skip_for("the kind does not say what a question reads");
    }
    small_blocks(0);
    bly_set_coded(f, false);
    byte_array a = written(f);
    uint64_t *h = asked_hashes(row), rng = 7;
    const scratch_file s = scratch_new(a.at, a.n);
    for (size_t turn = 0; turn < 40; turn++) {
        const size_t n = batches[turn % COUNT_OF(batches)];
        const uint64_t *from = h + turn * 53 % (NASKED - n);
        uint64_t bad[BLY_BITMAP_WORDS(300)] = { 0 };
        assert_ok(bly_map(s.path, NULL, &m));
        bly_filter_reach(m, from, n, bad);
        for (size_t i = 0; i < COUNT_OF(bad); i++)
            assert_int_equal(bad[i], 0);
        assert_ok(bly_clone(f, &noise));
        const size_t unseen = scramble_unseen(noise, m, &rng);
        if (n == 1) /* else reach() would be worth nothing */
            assert_true(unseen > f->shape.nbytes / 2);
        ask(f, from, n, &right);
        ask(noise, from, n, &got);
        assert_true(same_answers(&right, &got));
        bly_free(noise);
        bly_free(m);
    }
    close(s.fd);
    free(h);
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* Cut anywhere it is refused, however it is read. */
LAW(summed_prefixes_are_refused)
{
    small_blocks(BLOCK_SHIFT);
    byte_array a;
    bly_filter *f = stored(row, &a), *g;
    const scratch_file s = scratch_new(a.at, a.n);
    const size_t table = BLY_PAGE + (size_t)bly_table_bytes(f->shape.nbytes);
    const size_t data = BLY_PAGE + (size_t)bly_table_span(f->shape.nbytes);
    const size_t near[] = { 0,    8,        296,       BLY_PAGE, table,
                            data, data + 1, data + 64, a.n - 64, a.n - 1 };
    for (size_t i = 0; i < COUNT_OF(near) + 40; i++) {
        const size_t end =
            i < COUNT_OF(near) ? near[i] : a.n * (i - COUNT_OF(near)) / 40;
        for (size_t n = end > 2 ? end - 2 : 0; n <= end + 2 && n < a.n; n++) {
            assert_status(bly_load(a.at, n, NULL, &g), BLY_EFORMAT);
            assert_status(read_queue(a.at, n, &g), BLY_EFORMAT);
            assert_int_equal(pwrite(s.fd, a.at, a.n, 0), a.n);
            assert_int_equal(ftruncate(s.fd, (off_t)n), 0);
            assert_status(bly_map(s.path, NULL, &g), BLY_EFORMAT);
            assert_null(g);
        }
    }
    close(s.fd);
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* A copy of a damaged file is known to be damaged, whatever its form. */
LAW(damage_stays_known)
{
    bly_filter *m, *g;
    for (int old = 0; old < 2; old++) {
        /* From a file of either version. */
        usual_blocks();
        if (!old)
            small_blocks(BLOCK_SHIFT);
        byte_array a, b;
        bly_filter *f = stored(row, &a);
        const scratch_file s = scratch_new(a.at, a.n);
        poke(&s, a.n - 1, 2);
        const bly_status st = bly_map(s.path, NULL, &m);
        if (!st) { /* an empty payload at the end leaves a header to hit */
            for (int form = 0; form < 3; form++) {
                usual_blocks();
                if (form == 0)
                    small_blocks(BLOCK_SHIFT);
                bly_set_coded(m, form == 2);
                b = written(m);
                assert_int_equal(b.at[8], form == 0 ? 2 : 1);
                assert_status(bly_load(b.at, b.n, NULL, &g), BLY_EFORMAT);
                free(b.at);
            }
            bly_free(m);
        }
        close(s.fd);
        free(a.at);
        bly_free(f);
    }
    usual_blocks();
}

/* Whatever reads all of a filter compares all of it first. */
LAW(results_are_not_made_of_damage)
{
    static answers right;
    small_blocks(BLOCK_SHIFT);
    byte_array a;
    bly_filter *f = stored(row, &a), *m, *out;
    const scratch_file s = scratch_new(a.at, a.n);
    poke(&s, a.n - 1, 6);
    if (bly_map(s.path, NULL, &m) == BLY_OK) {
        bly_likeness like;
        if (kind->can & BLY_CAN(MERGE))
            assert_status(bly_merge(f, m), BLY_EFORMAT);
        if (kind->can & BLY_CAN(INTERSECT))
            assert_status(bly_intersect(f, m), BLY_EFORMAT);
        if (kind->can & BLY_CAN(COMPARE))
            assert_status(bly_compare(f, m, &like), BLY_EFORMAT);
        if (kind->can & BLY_CAN(FOLD))
            assert_status(bly_fold(m, &out), BLY_EFORMAT);
        assert_status(bly_clone(m, &out), BLY_EFORMAT);
        assert_status(bly_damage(m), BLY_EFORMAT);
        assert_same_bytes(f, &a);
        bly_free(m);
        /* Who asks for nothing to be compared gets what there is. */
        const bly_access believe = { .checking = BLY_CHECK_NOTHING };
        assert_ok(bly_map(s.path, &believe, &m));
        assert_false(bly_filter_unread(m));
        uint64_t *h = asked_hashes(row);
        ask(m, h, NASKED, &right);
        assert_ok(bly_damage(m));
        assert_status(bly_verify(m), BLY_EFORMAT);
        free(h);
        bly_free(m);
    }
    close(s.fd);
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* A file is combined as it comes; damage to it is found in its block. */
LAW(summed_files_are_combined)
{
    needs(kind, BLY_CAN(MERGE));
    small_blocks(BLOCK_SHIFT);
    bly_filter *f = law_part(row, NKEYS, 0, NKEYS / 4), *y;
    bly_filter *x = law_part(row, NKEYS, NKEYS, NKEYS / 4);
    bly_set_coded(f, false);
    byte_array a = written(f);
    if (!bly_filter_fits(x, f)) {
        assert_ok(bly_clone(x, &y));
        byte_source q = { a.at, a.n };
        assert_ok(bly_combine_read(x, BLY_UNION, get_bytes, &q));
        assert_ok(bly_merge(y, f));
        assert_true(bly_equal(x, y));
        for (size_t at = 0; at < a.n; at += a.n / 150 + 1) {
            bly_filter *z;
            assert_ok(bly_clone(y, &z));
            a.at[at] ^= 16;
            q = (byte_source){ a.at, a.n };
            assert_status(bly_combine_read(z, BLY_UNION, get_bytes, &q),
                          BLY_EFORMAT);
            a.at[at] ^= 16;
            q = (byte_source){ a.at, at };
            assert_status(bly_combine_read(z, BLY_UNION, get_bytes, &q),
                          BLY_EFORMAT);
            bly_free(z);
        }
        bly_free(y);
    }
    bly_free(x);
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* --------------------------------------------------------------- no laws */

static uint64_t get_le(const unsigned char *p)
{
    return bly_load64(p);
}

static void put_le(unsigned char *p, uint64_t x)
{
    bly_store64(p, x);
}

static bly_filter *classic_of(size_t nkeys)
{
    bly_spec spec = { .kind = "classic", .items = nkeys, .seed = 42 };
    return filled_from(&spec, 0, nkeys);
}

/* Byte by byte as docs/format.md has it. */
static void the_bytes_of_version_2(void **unused)
{
    (void)unused;
    usual_blocks();
    bly_summed_from = 0;
    bly_filter *f = classic_of(200000);
    byte_array a = written(f);
    const size_t n = (size_t)f->shape.nbytes, nblocks = (n + 65535) / 65536;
    const size_t at = 4096 + (8 * nblocks + 4095) / 4096 * 4096;
    assert_true(nblocks > 2 && n % 65536);
    assert_int_equal(a.n, at + n);
    assert_int_equal(get_le(a.at + 8) & UINT32_MAX, 2);
    assert_memory_equal(a.at + at, f->data, n);
    for (size_t i = 0; i < nblocks; i++)
        assert_int_equal(get_le(a.at + 4096 + 8 * i),
                         bly_checksum(f->data + 65536 * i, n - 65536 * i < 65536
                                                               ? n - 65536 * i
                                                               : 65536));
    for (size_t i = 4096 + 8 * nblocks; i < at; i++)
        assert_int_equal(a.at[i], 0);
    assert_int_equal(get_le(a.at + 280),
                     bly_checksum(a.at + 4096, 8 * nblocks));
    free(a.at);
    bly_free(f);
    usual_blocks();
}

static void reseal_header(unsigned char *page)
{
    put_le(page + 4088, bly_checksum(page, 4088));
}

/* A file has the version that its size asks for, or an older one. */
static void the_version_follows_the_size(void **unused)
{
    (void)unused;
    usual_blocks();
    bly_filter *f = classic_of(1000), *g;
    byte_array plain = written(f);
    assert_int_equal(plain.at[8], 1);
    bly_summed_from = plain.n;
    assert_same_bytes(f, &plain);
    bly_summed_from = plain.n - 1;
    byte_array a = written(f);
    assert_int_equal(a.at[8], 2);
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    bly_free(g);
    bly_summed_from = plain.n;
    assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "too small"));
    byte_source q = { a.at, a.n };
    assert_status(bly_combine_read(f, BLY_UNION, get_bytes, &q), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "too small"));
    bly_summed_from = 0;
    /* A version to come. */
    a.at[8] = 5;
    reseal_header(a.at);
    assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "format version 5"));
    assert_non_null(strstr(bly_error(), "use a newer bloomery"));
    free(a.at);
    /* Coded and of version 2 there is not. */
    bly_set_coded(f, true);
    a = written(f);
    assert_int_equal(a.at[8], 1);
    a.at[8] = 2;
    put_le(a.at + 288, bly_checksum(a.at, 288));
    assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "and coded"));
    free(a.at);
    free(plain.at);
    bly_free(f);
    usual_blocks();
}

/* Layers are of the version of their filter. */
static void layers_share_the_version(void **unused)
{
    (void)unused;
    small_blocks(BLOCK_SHIFT);
    bly_spec spec = { .kind = "scalable", .items = 100 };
    bly_filter *f = filled_from(&spec, 0, 1000), *g;
    byte_array a = written(f);
    /* The root has no payload: the next header comes at once. */
    assert_int_equal(a.at[4096 + 8], 2);
    a.at[4096 + 8] = 1;
    reseal_header(a.at + 4096);
    assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "another format version"));
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* Nobody compares block by block inline, so all of it comes first. */
static void views_are_of_whole_files(void **unused)
{
    (void)unused;
    small_blocks(BLOCK_SHIFT);
    bly_spec spec = { .kind = "blocked", .items = NKEYS };
    bly_filter *f = filled_from(&spec, 0, NKEYS), *m;
    byte_array a = written(f);
    const scratch_file s = scratch_new(a.at, a.n);
    bly_blocked view;
    assert_ok(bly_map(s.path, NULL, &m));
    assert_true(bly_blocked_view(m, &view));
    assert_false(bly_filter_unread(m));
    bly_free(m);
    poke(&s, a.n - 1, 0);
    assert_ok(bly_map(s.path, NULL, &m));
    assert_false(bly_blocked_view(m, &view));
    assert_status(bly_damage(m), BLY_EFORMAT);
    bly_free(m);
    close(s.fd);
    free(a.at);
    bly_free(f);
    usual_blocks();
}

/* As large as the format wants it: 4 MiB, in blocks of 64 KiB. */
static void a_large_file_is_checked_as_it_is_asked(void **unused)
{
    (void)unused;
    usual_blocks();
    char path[] = "/tmp/bloomery-blocks-XXXXXX";
    const uint64_t bits = BLY_SUMMED_USUALLY * 8;
    bly_spec spec = { .kind = "blocked", .items = 2500000, .bits = bits };
    bly_filter *f, *m;
    assert_ok(bly_new(&spec, &f));
    uint64_t *h = hashes_for(&spec, 0, 100000);
    assert_ok(bly_add_hashes(f, h, 100000, NULL, NULL));
    close(mkstemp(path));
    assert_ok(bly_save(f, path));
    const size_t start = 4096 + 4096; /* 64 sums */
    assert_int_equal(bly_written_bytes(f), start + bits / 8);

    /* Clear one line of memory: the keys in it would be forgotten. */
    const uint64_t line = bly_scale(h[17], f->shape.p[0]) * 64;
    const int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, (char[64]){ 0 }, 64, (off_t)(start + line)),
                     64);
    assert_ok(bly_map(path, NULL, &m));
    assert_true(bly_has_hash(m, h[16])); /* of another block, most likely */
    for (int i = 0; i < 3; i++) {
        assert_true(bly_has_hash(m, h[17]));
        assert_status(bly_damage(m), BLY_EFORMAT);
        char want[80];
        snprintf(want, sizeof want, "bytes %zu to %zu do not match",
                 (size_t)(start + line / 65536 * 65536),
                 (size_t)(start + line / 65536 * 65536 + 65535));
        assert_non_null(strstr(bly_error(), want));
    }
    uint64_t *maybe = calloc(BLY_BITMAP_WORDS(100000), sizeof *maybe);
    bly_has_hashes(m, h, 100000, maybe);
    for (size_t i = 0; i < 100000; i++)
        assert_true(maybe[i / 64] >> i % 64 & 1);
    bly_free(m);
    const bly_access believe = { .checking = BLY_CHECK_NOTHING };
    assert_ok(bly_map(path, &believe, &m));
    assert_false(bly_has_hash(m, h[17])); /* what all this is for */
    bly_free(m);
    close(fd);
    unlink(path);
    free(maybe);
    free(h);
    bly_free(f);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_of_version_2),
        cmocka_unit_test(the_version_follows_the_size),
        cmocka_unit_test(layers_share_the_version),
        cmocka_unit_test(views_are_of_whole_files),
        cmocka_unit_test(a_large_file_is_checked_as_it_is_asked),
    };
    return run_laws_and("laws of blocks", tests, COUNT_OF(tests), argc, argv);
}
