/*
 * test_small.c - what small filters cost: in memory, in compact files, raw
 *
 * Figures of docs/small.md. Memory is counted by the allocator itself; a
 * compact file comes back as it was and is refused if a bit of it is wrong; raw
 * bits are those of the memory, whoever set them.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hash.h"
#include "kinds/filter.h"

/* ------------------------------------------------------------------ memory */

static uint64_t contents(const bly_filter *f)
{
    uint64_t sum = f->shape.nbytes;
    for (uint32_t i = 0; i < f->nlayers; i++)
        sum += contents(f->layer[i]);
    return sum;
}

/* What docs/small.md allows a filter over its contents, and each of its layers:
 * 192 bytes, 8 for each place of a layer, a line to align what is not small,
 * and what few have: a hash of its own, or what its kind keeps. */
static uint64_t allowed(const bly_filter *f)
{
    const bool lined = f->shape.nbytes >= BLY_ALIGNED_FROM && !f->kind->lines;
    uint64_t sum = 192 + (lined ? 64u : 0) +
                   (bly_filter_has_extra(f) ? sizeof(bly_extra) : 0) +
                   (f->extra->aux ? f->kind->aux_bytes : 0) +
                   f->places * sizeof(bly_filter *);
    for (uint32_t i = 0; i < f->nlayers; i++)
        sum += allowed(f->layer[i]);
    return sum;
}

LAW(small_in_memory)
{
    static ledger l; /* one place, so that it is one source of memory */
    static const size_t sizes[] = { 1, 10, 100, 300, 1000 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        ledger_open(&l);
        bly_spec spec = law_spec(row, sizes[i]);
        spec.seed = 0;
        spec.mem = &l.mem;
        bly_filter *f = filled_from(&spec, 0, sizes[i]), *g;
        const uint64_t over = (uint64_t)l.held - contents(f);
        if (sizes[i] == 100)
            printf("memory %-36s %6llu + %llu\n", row->name,
                   (unsigned long long)contents(f), (unsigned long long)over);
        assert_in_range(over, 0, allowed(f));
        /* What a filter says of itself is what it holds. */
        bly_stats s;
        bly_peek(f, &s);
        if (!f->extra->aux)
            assert_int_equal(s.bytes, l.held);
        const int64_t one = l.held;
        assert_ok(bly_clone(f, &g));
        assert_true(l.held <= 2 * one);
        bly_free(g);
        /* A limit that is lifted leaves nothing. */
        bly_limit(f, 1 << 30);
        bly_limit(f, 0);
        assert_true(l.held <= one);
        /* One that was read takes as much as the one that was written. */
        const bly_access how = { .mem = &l.mem };
        byte_array file = written(f);
        byte_source src = { file.at, file.n };
        assert_ok(bly_read(get_bytes, &src, &how, &g));
        bly_stats read;
        bly_peek(f, &s);
        bly_peek(g, &read);
        assert_int_equal(read.bytes, s.bytes);
        bly_free(g);
        free(file.at);
        bly_free(f);
        ledger_check(&l);
    }
}

/* ----------------------------------------------------------- compact files */

static void assert_loads(const bly_filter *f, const byte_array *a)
{
    bly_filter *g;
    /* The bytes end at a wall. */
    unsigned char *const wall = guarded_new(a->n);
    memcpy(wall, a->at, a->n);
    assert_ok(bly_load(wall, a->n, NULL, &g));
    guarded_free(wall, a->n);
    assert_true(bly_equal(f, g));
    assert_same_bytes(g, a);
    bly_stats s;
    bly_peek(g, &s);
    assert_true(s.compact);
    assert_int_equal(s.format, 3);
    bly_free(g);
    byte_source src = { a->at, a->n };
    assert_ok(bly_read(get_bytes, &src, NULL, &g));
    assert_true(bly_equal(f, g));
    bly_free(g);
}

/* The same filter, whatever the form: back and forth without loss. */
LAW(compact_and_back)
{
    static const size_t sizes[] = { 0, 1, 100, 5000 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const bly_spec spec = law_spec(row, sizes[i] ? sizes[i] : 10);
        bly_filter *f = filled_from(&spec, 0, sizes[i]), *g;
        byte_array usual = written(f);
        bly_set_compact(f, true);
        byte_array small = written(f);
        assert_int_equal(bly_written_bytes(f), small.n);
        assert_true(small.n < usual.n);
        assert_loads(f, &small);
        /* In parts, however they are cut. */
        for (size_t from = 0; from < small.n;
             from += small.n < 6500 ? 13 : stride(small.n, 500)) {
            unsigned char part[31];
            const size_t n = bly_write_part(f, from, part, sizeof part);
            assert_true(n == sizeof part || from + n == small.n);
            assert_memory_equal(part, small.at + from, n);
        }
        assert_ok(bly_load(small.at, small.n, NULL, &g));
        bly_set_compact(g, false);
        assert_same_bytes(g, &usual);
        bly_free(g);
        /* Coded, and with words about its keys. */
        bly_set_coded(f, !f->coded);
        assert_ok(bly_set_keying(f, (bly_keying){ BLY_KEYS_TEXT, 0 }));
        assert_ok(bly_set_note(f, "small"));
        byte_array noted = written(f);
        assert_loads(f, &noted);
        assert_ok(bly_load(noted.at, noted.n, NULL, &g));
        assert_int_equal(bly_note_of(g).len, 5);
        bly_free(g);
        free(noted.at);
        free(small.at);
        free(usual.at);
        bly_free(f);
    }
}

LAW(small_in_files)
{
    bly_spec spec = law_spec(row, 100);
    spec.seed = 0;
    bly_filter *f = filled_from(&spec, 0, 100);
    bly_set_coded(f, false);
    bly_set_compact(f, true);
    const uint64_t over = bly_written_bytes(f) - contents(f);
    printf("file %-38s %6llu + %llu\n", row->name,
           (unsigned long long)contents(f), (unsigned long long)over);
    assert_in_range(over, 0, 64);
    bly_free(f);
}

/* Cut anywhere, and with any bit flipped, it is refused with words. */
LAW(compact_files_are_checked)
{
    bly_filter *f = law_filled(row, 0, 20), *g;
    bly_set_compact(f, true);
    for (int coded = 0; coded < 2; coded++) {
        bly_set_coded(f, coded);
        byte_array a = written(f);
        size_t step = stride(a.n, 400);
        for (size_t n = 0; n < a.n; n += n < 80 || n + 20 > a.n ? 1 : step) {
            unsigned char *const wall = guarded_new(n);
            if (n)
                memcpy(wall, a.at, n);
            assert_status(bly_load(wall, n, NULL, &g), BLY_EFORMAT);
            assert_null(g);
            guarded_free(wall, n);
        }
        step = stride(8 * a.n, 2000);
        for (size_t bit = 0; bit < 8 * a.n; bit += bit < 800 ? 1 : step) {
            a.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
            a.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        /* Something behind it. */
        assert_true(put_bytes(&a, "", 1));
        assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
        assert_non_null(strstr(bly_error(), "follow"));
        free(a.at);
    }
    bly_free(f);
}

/* Saved, mapped (read, that is), changed and combined like any other. */
LAW(compact_files_are_used)
{
    char path[] = "/tmp/bly-small-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    bly_filter *f = law_filled(row, 0, 100), *g;
    bly_set_compact(f, true);
    assert_ok(bly_save(f, path));
    assert_ok(bly_map(path, NULL, &g));
    assert_true(bly_equal(f, g));
    assert_ok(bly_verify(g));
    bly_free(g);
    if (kind->can & BLY_CAN(MERGE) && !(kind->traits & BLY_DIRECTED)) {
        assert_ok(bly_clone(f, &g));
        const bly_status st = bly_merge(g, f);
        bly_filter *h;
        assert_ok(bly_clone(f, &h));
        assert_int_equal(bly_combine_file(h, BLY_UNION, path), st);
        if (!st)
            assert_true(bly_equal(g, h));
        bly_free(h);
        bly_free(g);
    }
    bly_free(f);
    remove(path);
}

/* The bytes of docs/format.md: a classic filter of the shared layout, planned
 * for 8 keys at 10 %, seed 7, that holds "a", "b" and "c". */
static const unsigned char golden[] = {
    0x89, 0x42, 0x4c, 0x59, 0x0d, 0x0a, 0x1a, 0x0a, 0x03, 0x00, 0x00,
    0x00, 0x1a, 0x00, 0x01, 0x30, 0x01, 0x07, 0x08, 0x03, 0x00, 0x08,
    0x02, 0x28, 0x03, 0x00, 0x10, 0x02, 0x00, 0x13, 0x48, 0x00, 0x00,
    0x00, 0xaa, 0xa7, 0x2e, 0x9d, 0x72, 0xf9, 0xc5, 0x4c,
};

/* The same as it was first written, and stays. */
static const unsigned char golden_former[] = {
    0x89, 0x42, 0x4c, 0x59, 0x0d, 0x0a, 0x1a, 0x0a, 0x03, 0x00,
    0x00, 0x00, 0x22, 0x00, 0x01, 0x00, 0x01, 0x07, 0xaf, 0x9b,
    0xe5, 0x77, 0xbd, 0x08, 0xba, 0x3f, 0x08, 0x03, 0x00, 0x08,
    0x02, 0x28, 0x03, 0x00, 0x10, 0x02, 0x00, 0x13, 0x48, 0x00,
    0x00, 0x00, 0x19, 0x47, 0x06, 0xea, 0x78, 0x21, 0xa4, 0xa0,
};

static bly_filter *golden_filter(void)
{
    const bly_option shared = { "layout", "shared" };
    const bly_spec spec = { .kind = "classic",
                            .items = 8,
                            .fpr = 0.1,
                            .seed = 7,
                            .options = &shared,
                            .noptions = 1 };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    for (const char *key = "abc"; *key; key++)
        assert_ok(bly_add(f, key, 1));
    bly_set_compact(f, true);
    return f;
}

static void golden_compact(void **unused)
{
    (void)unused;
    bly_filter *f = golden_filter(), *g;
    byte_array a = written(f);
    assert_int_equal(a.n, sizeof golden);
    assert_memory_equal(a.at, golden, sizeof golden);
    assert_ok(bly_load(golden, sizeof golden, NULL, &g));
    assert_true(bly_equal(f, g));
    assert_same_bytes(g, &a);
    assert_true(bly_has(g, "a", 1) && bly_has(g, "b", 1));
    free(a.at);
    bly_free(g);
    bly_free(f);
}

/* A file of the first form keeps it until it is made compact anew. */
static void the_former_form_stays(void **unused)
{
    (void)unused;
    bly_filter *f = golden_filter(), *g, *h;
    byte_array now = written(f);
    byte_array then = { .n = sizeof golden_former };
    then.at = malloc(then.n);
    assert_non_null(then.at);
    memcpy(then.at, golden_former, then.n);
    assert_ok(bly_load(golden_former, sizeof golden_former, NULL, &g));
    assert_true(bly_equal(f, g));
    assert_same_bytes(g, &then);
    assert_ok(bly_clone(g, &h));
    assert_same_bytes(h, &then);
    bly_free(h);
    /* The rate is computed with logarithms: not to the last bit the same. */
    g->fpr = f->fpr;
    bly_set_compact(g, true);
    assert_same_bytes(g, &now);
    free(now.at);
    free(then.at);
    bly_free(g);
    bly_free(f);
}

/* A compact file in which n bytes stand in the place of `gone` others, the
 * length of its root's header and its sum made right. */
static bly_status load_with(const byte_array *a, size_t at, size_t gone,
                            const void *bytes, size_t n, bool in_root)
{
    bly_filter *g;
    unsigned char file[512];
    assert_true(a->n + n <= sizeof file);
    memcpy(file, a->at, at);
    memcpy(file + at, bytes, n);
    memcpy(file + at + n, a->at + at + gone, a->n - at - gone);
    if (in_root)
        file[12] = (unsigned char)(file[12] + n - gone);
    const size_t all = a->n + n - gone;
    bly_store64(file + all - 8, bly_checksum(file, all - 8));
    const bly_status st = bly_load(file, all, NULL, &g);
    if (!st)
        bly_free(g);
    return st;
}

/* One form for each filter: what says the same otherwise is refused. */
static void the_form_is_the_only_one(void **unused)
{
    (void)unused;
    bly_filter *f = golden_filter();
    byte_array a = written(f);
    /* 0e kind, 0f form (a rate by formula, a plain hash but for the seed). */
    assert_int_equal(a.at[14], 1);
    assert_int_equal(a.at[15], 16 + 32);
    assert_ok(load_with(&a, 14, 1, "\1", 1, true));
    /* A longer number; an unknown form; a formula for what has no rate. */
    assert_status(load_with(&a, 14, 1, "\x81\0", 2, true), BLY_EFORMAT);
    assert_status(load_with(&a, 15, 1, "\xb0", 1, true), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "newer"));
    assert_status(load_with(&a, 15, 1, "\x38", 1, true), BLY_EFORMAT);
    assert_status(load_with(&a, 15, 1, "\x20", 1, true), BLY_EFORMAT);
    /* A rate that is written: any, but not the one of the formula. */
    assert_ok(load_with(&a, 15, 3, "\x10\1\7\x82\1", 5, true));
    assert_status(load_with(&a, 15, 3, "\x10\1\7\x83\x0a", 5, true),
                  BLY_EFORMAT);
    assert_status(load_with(&a, 15, 3, "\x10\1\7\x80\2", 5, true), BLY_EFORMAT);
    assert_status(
        load_with(&a, 15, 3, "\x10\1\7\xff\x3f\x84\0\0\0\0\0\0", 12, true),
        BLY_EFORMAT);
    assert_status(load_with(&a, 15, 3, "\x10\1\7\x8b\1", 5, true), BLY_EFORMAT);
    /* A seed of 0 spelt out. */
    assert_status(load_with(&a, 16, 2, "\1\0", 2, true), BLY_EFORMAT);
    /* Kind 0, which is the layer before: there is none. */
    assert_status(load_with(&a, 14, 1, "\0", 1, true), BLY_EFORMAT);
    free(a.at);
    bly_free(f);
}

/* Layers that are alike are written once. */
static void alike_layers_are_short(void **unused)
{
    (void)unused;
    const bly_spec spec = { .kind = "attenuated", .items = 8, .fpr = 0.3 };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    bly_set_compact(f, true);
    byte_array a = written(f);
    const size_t nroot = a.at[12], nlayer = a.at[nroot];
    const size_t payload = f->layer[0]->shape.nbytes;
    size_t at = nroot + nlayer + payload;
    assert_memory_equal(a.at + at, "\4\0\0\0", 4);
    assert_ok(load_with(&a, at, 4, "\4\0\0\0", 4, false));
    assert_ok(load_with(&a, at, 4, "\4\0\0\5", 4, false));
    /* Spelt out as the first is; before any; with more behind it. */
    assert_status(load_with(&a, at, 4, a.at + nroot, nlayer, false),
                  BLY_EFORMAT);
    assert_status(load_with(&a, nroot, nlayer, "\4\0\0\0", 4, false),
                  BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "before it"));
    assert_status(load_with(&a, at, 4, "\5\0\0\0\0", 5, false), BLY_EFORMAT);
    assert_status(load_with(&a, at, 4, "\3\0\0", 3, false), BLY_EFORMAT);
    free(a.at);
    bly_free(f);
}

/* --------------------------------------------------------------------- raw */

LAW(raw_bits_are_the_filter)
{
    needs(kind, BLY_CAN(RAW));
    static const size_t sizes[] = { 1, 100, 5000 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const bly_spec spec = law_spec(row, sizes[i]);
        bly_filter *f = filled_from(&spec, 0, sizes[i]), *g;
        const size_t n = (size_t)bly_raw_bytes(f);
        assert_true(n > 0 && n <= f->shape.nbytes && n + 8 > f->shape.nbytes);
        unsigned char *const bits = guarded_new(n);
        assert_ok(bly_raw_get(f, bits, n));
        assert_status(bly_raw_get(f, bits, n - 1), BLY_EINVAL);
        assert_ok(bly_new(&spec, &g));
        assert_status(bly_raw_set(g, bits, n - 1), BLY_EINVAL);
        assert_status(bly_raw_set(g, bits, n + 1), BLY_EINVAL);
        assert_ok(bly_raw_set(g, bits, n));
        assert_true(bly_equal(f, g));
        /* Bits that no key has set are taken as they are, but not past the
         * end. */
        memset(bits, 0xff, n);
        const unsigned used = f->kind->raw(&f->shape) % 8;
        if (used) {
            assert_status(bly_raw_set(g, bits, n), BLY_EFORMAT);
            assert_true(bly_equal(f, g));
            bits[n - 1] = (unsigned char)((1u << used) - 1);
        }
        if (bly_raw_set(g, bits, n)) {
            /* Gaps between two arrays stay clear. */
            assert_true(f->kind->check && 8 * n > f->shape.p[0]);
            assert_status(bly_raw_set(g, bits, n), BLY_EFORMAT);
            assert_true(bly_equal(f, g));
        } else {
            bly_stats s;
            bly_stat(g, &s);
            assert_true(s.fill == 1);
        }
        byte_array a = written(g);
        bly_filter *h;
        assert_ok(bly_load(a.at, a.n, NULL, &h));
        free(a.at);
        bly_free(h);
        guarded_free(bits, n);
        bly_free(g);
        bly_free(f);
    }
}

LAW(raw_is_refused)
{
    if (kind->can & BLY_CAN(RAW))
        skip_for("the kind has a raw form");
    bly_filter *f = law_filled(row, 0, 100);
    unsigned char bits[64] = { 0 };
    assert_int_equal(bly_raw_bytes(f), 0);
    assert_status(bly_raw_get(f, bits, sizeof bits), BLY_ENOTSUP);
    assert_status(bly_raw_set(f, bits, sizeof bits), BLY_ENOTSUP);
    bly_free(f);
}

/* A packet of 32 bytes that starts as the sender pleases [generalized.c]: ones
 * throughout pass for no key, and the marks of the way are found. */
static void a_packet_of_marks(void **unused)
{
    (void)unused;
    const bly_option options[] = { { "k0", "2" }, { "k1", "2" } };
    const bly_spec spec = { .kind = "generalized",
                            .items = 15,
                            .bits = 256,
                            .options = options,
                            .noptions = COUNT_OF(options) };
    unsigned char packet[32];
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    assert_int_equal(bly_raw_bytes(f), sizeof packet);
    memset(packet, 0xff, sizeof packet);
    assert_ok(bly_raw_set(f, packet, sizeof packet));
    for (uint64_t h = 1; h < 1000; h++)
        assert_false(bly_has_hash(f, bly_mix64(h)));
    assert_ok(bly_add(f, "router 7", 8));
    assert_true(bly_has(f, "router 7", 8));
    assert_ok(bly_raw_get(f, packet, sizeof packet));
    /* The next one on the way has the packet and nothing else. */
    bly_filter *g;
    assert_ok(bly_new(&spec, &g));
    assert_ok(bly_raw_set(g, packet, sizeof packet));
    assert_true(bly_has(g, "router 7", 8));
    bly_free(g);
    bly_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_compact),
        cmocka_unit_test(the_former_form_stays),
        cmocka_unit_test(the_form_is_the_only_one),
        cmocka_unit_test(alike_layers_are_short),
        cmocka_unit_test(a_packet_of_marks),
    };
    return run_laws_and("small filters", tests, COUNT_OF(tests), argc, argv);
}
