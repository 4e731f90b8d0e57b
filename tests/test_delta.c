/*
 * test_delta.c - from one version of a filter to the next
 *
 * Every kind first, as laws: a delta makes the new version of the old one, byte
 * for byte, and of nothing else. Then what a delta costs, and what a hostile
 * one may try. Whatever is refused leaves the filter as it was.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bits.h"
#include "core/hash.h"
#include "format/delta.h"
#include "kinds/kind.h"

/* The delta from one to the other; the caller frees .at. */
static byte_array delta_of(const bly_filter *from, const bly_filter *to,
                           bly_delta *info)
{
    byte_array d = { 0 };
    bly_delta told;
    assert_ok(bly_delta_write(from, to, put_bytes, &d, &told));
    assert_int_equal(told.bytes, d.n);
    assert_int_equal(told.from, bly_version_id(from));
    assert_int_equal(told.to, bly_version_id(to));
    assert_true(d.n < told.whole_bytes + 100);
    if (info)
        *info = told;
    return d;
}

/* Refused with this status, and f is what it was. */
static void assert_refused(bly_filter *f, const byte_array *d,
                           bly_status status)
{
    byte_array before = written(f);
    assert_status(bly_delta_apply(f, d->at, d->n, NULL), status);
    assert_true(bly_error()[0] != '\0');
    assert_same_bytes(f, &before);
    free(before.at);
}

/* A later version of the filter of 2000 keys that law_part() gives. */
static bly_filter *later_version(const law_row *row)
{
    if (!(row->kind.can & BLY_CAN(ADD)))
        return law_part(row, 6000, 20, 2000);
    bly_filter *f = law_part(row, 6000, 0, 2000);
    uint64_t *h = hashes_for(&(bly_spec){ .seed = LAW_SEED }, 2000, 50);
    assert_ok(bly_add_hashes(f, h, 50, NULL, NULL));
    if (row->kind.can & BLY_CAN(TICK))
        assert_ok(bly_tick(f, 12345));
    free(h);
    return f;
}

LAW(leads_to_the_new_version)
{
    bly_filter *old = law_part(row, 6000, 0, 2000), *f;
    bly_filter *new = later_version(row);
    bly_delta made, applied;
    byte_array d = delta_of(old, new, &made), want = written(new);
    byte_array back = delta_of(new, old, NULL), was = written(old);
    assert_ok(bly_clone(old, &f));
    assert_ok(bly_delta_apply(f, d.at, d.n, &applied));
    assert_true(bly_equal(f, new));
    assert_same_bytes(f, &want);
    assert_string_equal(applied.form, made.form);
    assert_int_equal(applied.bytes, made.bytes);
    assert_int_equal(applied.from, made.from);
    assert_int_equal(applied.to, made.to);
    if (strcmp(made.form, "gaps") == 0) {
        assert_int_equal(applied.flips, made.flips);
        assert_int_equal(applied.bits, made.bits);
        assert_true(made.flips > 0);
    }
    /* It is a filter like another. */
    if (kind->can & BLY_CAN(ADD))
        assert_ok(bly_add_hash(f, 99));
    bly_free(f);
    /* Not twice, not from elsewhere, and back again. */
    assert_ok(bly_clone(new, &f));
    assert_refused(f, &d, BLY_EUNFIT);
    assert_ok(bly_delta_apply(f, back.at, back.n, NULL));
    assert_same_bytes(f, &was);
    assert_refused(f, &back, BLY_EUNFIT);
    bly_free(f);
    free(d.at);
    free(want.at);
    free(back.at);
    free(was.at);
    bly_free(old);
    bly_free(new);
}

/* Nothing has changed: no bits, and the same version. */
LAW(of_nothing_is_short)
{
    bly_filter *f = law_part(row, 6000, 0, 2000), *same;
    bly_delta info;
    assert_ok(bly_clone(f, &same));
    assert_int_equal(bly_version_id(f), bly_version_id(same));
    byte_array d = delta_of(f, same, &info);
    assert_string_equal(info.form, "gaps");
    assert_int_equal(info.flips, 0);
    assert_true(d.n < 200 + 100 * 64);
    assert_ok(bly_delta_apply(f, d.at, d.n, NULL));
    assert_true(bly_equal(f, same));
    free(d.at);
    bly_free(f);
    bly_free(same);
}

/* A key more is another version, and so is another state. */
LAW(versions_tell_contents_apart)
{
    bly_filter *a = law_part(row, 6000, 0, 2000), *b = later_version(row);
    assert_true(bly_version_id(a) != bly_version_id(b));
    bly_free(b);
    b = law_part(row, 6000, 0, 2000);
    /* Nothing but a word of its state. */
    for (unsigned i = 0; i < b->kind->nstate; i++) {
        b->state[i]++;
        assert_true(bly_version_id(a) != bly_version_id(b));
        b->state[i]--;
    }
    assert_true(bly_equal(a, b));
    assert_int_equal(bly_version_id(a), bly_version_id(b));
    bly_free(a);
    bly_free(b);
}

/* Each allocation fails in turn; nothing is left, nothing has changed. */
LAW(out_of_memory_changes_nothing)
{
    bly_filter *old = law_part(row, 6000, 0, 2000);
    bly_filter *new = later_version(row), *f;
    byte_array d = delta_of(old, new, NULL), was = written(old);
    ledger l;
    bool done = false;
    ledger_open(&l);
    for (long at = 0; !done; at++) {
        assert_ok(bly_load(was.at, was.n, &(bly_access){ .mem = &l.mem }, &f));
        l.calls = 0;
        l.fail_at = at;
        const bly_status st = bly_delta_apply(f, d.at, d.n, NULL);
        done = l.calls <= at;
        l.fail_at = -1;
        if (done)
            assert_ok(st);
        else
            assert_int_equal(st, BLY_ENOMEM);
        assert_true(bly_equal(f, done ? new : old));
        bly_free(f);
        ledger_check(&l);
    }
    free(d.at);
    free(was.at);
    bly_free(old);
    bly_free(new);
}

/* ------------------------------------------------------------------- costs */

/* n keys, of which some are exchanged for others. */
static bly_filter *with_changed(const char *kind, size_t n, size_t changed)
{
    const bly_spec spec = {
        .kind = kind, .items = n, .fpr = 0.01, .seed = LAW_SEED
    };
    bly_filter *f = filled_from(&spec, changed, n - changed);
    uint64_t *h = hashes_for(&spec, n, changed);
    assert_ok(bly_add_hashes(f, h, changed, NULL, NULL));
    free(h);
    return f;
}

/* A million keys, 1 % of them others: within 3 % of m H(d/m), all included. */
static void close_to_the_entropy(const char *kind)
{
    const size_t n = scaled(1000000);
    const bly_spec spec = {
        .kind = kind, .items = n, .fpr = 0.01, .seed = LAW_SEED
    };
    bly_filter *old = filled_from(&spec, 0, n);
    bly_filter *new = with_changed(kind, n, n / 100);
    bly_delta info;
    byte_array d = delta_of(old, new, &info);
    const double m = (double)info.bits, k = (double)info.flips;
    const double entropy = k * log2(m / k) + (m - k) * log2(m / (m - k));
    assert_string_equal(info.form, "gaps");
    assert_near(info.entropy, entropy, 1e-9);
    assert_between(8 * (double)d.n, entropy, 1.03 * entropy);
    print_message("%s: %.0f of %.0f bits flipped, %zu bytes, %.2f %% above "
                  "the entropy, %.1f %% of the filter\n",
                  kind, k, m, d.n, 100 * (8 * (double)d.n / entropy - 1),
                  100 * (double)d.n / (double)info.whole_bytes);
    assert_ok(bly_delta_apply(old, d.at, d.n, NULL));
    assert_true(bly_equal(old, new));
    free(d.at);
    bly_free(old);
    bly_free(new);
}

static void close_to_the_entropy_of_bits(void **unused)
{
    (void)unused;
    close_to_the_entropy("classic");
}

static void close_to_the_entropy_of_counters(void **unused)
{
    (void)unused;
    close_to_the_entropy("counting");
}

/* ------------------------------------------------------------------- forms */

static bly_filter *of_kind(const char *name, uint64_t items, uint64_t first,
                           size_t n)
{
    bly_kind_info kind;
    assert_true(bly_kind_named(name, &kind));
    const bly_spec spec = spec_for(&kind, items);
    return filled_from(&spec, first, n);
}

static void assert_whole(bly_filter *old, bly_filter *new)
{
    bly_delta info;
    byte_array d = delta_of(old, new, &info), want = written(new);
    assert_string_equal(info.form, "whole");
    assert_ok(bly_delta_apply(old, d.at, d.n, &info));
    assert_string_equal(info.form, "whole");
    assert_same_bytes(old, &want);
    free(d.at);
    free(want.at);
    bly_free(old);
    bly_free(new);
}

/* Another layer, another size, another kind. */
static void whole_where_that_is_shorter(void **unused)
{
    (void)unused;
    bly_filter *grown = of_kind("scalable", 1000, 0, 1000);
    uint64_t *h = hashes_for(&(bly_spec){ .seed = LAW_SEED }, 1000, 4000);
    assert_ok(bly_add_hashes(grown, h, 4000, NULL, NULL));
    free(h);
    assert_whole(of_kind("scalable", 1000, 0, 1000), grown);
    assert_whole(of_kind("classic", 1000, 0, 1000),
                 of_kind("classic", 1100, 0, 1100));
    assert_whole(of_kind("classic", 1000, 0, 1000),
                 of_kind("blocked", 1000, 0, 1000));
}

/* A version that is nearly empty is short when it is coded, and is coded on its
 * way only: at the receiver it is kept as what it replaces was. */
static void whole_and_coded(void **unused)
{
    (void)unused;
    for (int coded = 0; coded <= 1; coded++) {
        bly_filter *old = of_kind("classic", 20000, 0, 20000);
        bly_filter *new = of_kind("classic", 20000, 0, 10);
        bly_delta info;
        bly_stats stats;
        byte_array d = delta_of(old, new, &info), want = written(new);
        assert_string_equal(info.form, "whole");
        assert_true(info.bits > 0 && info.flips > 0 && info.entropy > 0);
        assert_true(d.n < info.whole_bytes / 4);
        bly_set_coded(old, coded);
        assert_ok(bly_delta_apply(old, d.at, d.n, &info));
        bly_peek(old, &stats);
        assert_true(stats.coded == (bool)coded);
        bly_set_coded(old, false);
        assert_same_bytes(old, &want);
        /* How it is written is not part of a version. */
        bly_set_coded(new, true);
        assert_int_equal(bly_version_id(old), bly_version_id(new));
        free(d.at);
        free(want.at);
        bly_free(old);
        bly_free(new);
    }
}

/* Hints are not part of a version, and travel all the same. */
static void hints_travel(void **unused)
{
    (void)unused;
    bly_filter *once = of_kind("classic", 1000, 0, 500);
    bly_filter *other = of_kind("classic", 1000, 0, 500);
    bly_filter *new = of_kind("classic", 1000, 0, 600);
    bly_filter *copy = of_kind("classic", 1000, 0, 500);
    assert_ok(bly_merge(other, copy)); /* counts by its contents from now on */
    bly_stats a, b;
    bly_peek(once, &a);
    bly_peek(other, &b);
    assert_true(a.items_added != b.items_added);
    assert_int_equal(bly_version_id(once), bly_version_id(other));
    byte_array d = delta_of(once, new, NULL), want = written(new);
    assert_ok(bly_delta_apply(other, d.at, d.n, NULL));
    assert_same_bytes(other, &want);
    free(d.at);
    free(want.at);
    bly_free(once);
    bly_free(other);
    bly_free(new);
    bly_free(copy);
}

/* A secret is neither needed nor lost, in either form. */
static void keyed_filters(void **unused)
{
    (void)unused;
    static const unsigned char secret[BLY_SECRET_BYTES + 1] =
        "sixteen letters!";
    const bly_spec spec = { .items = 1000, .fpr = 0.01, .secret = secret };
    const bly_spec large = { .items = 5000, .fpr = 0.01, .secret = secret };
    bly_filter *old = filled_from(&spec, 0, 900);
    bly_filter *new = filled_from(&spec, 0, 950);
    bly_filter *other = filled_from(&large, 0, 950), *f;
    byte_array was = written(old);
    byte_array gaps = delta_of(old, new, NULL),
               whole = delta_of(old, other, NULL);
    const byte_array *const deltas[] = { &gaps, &whole };
    for (size_t i = 0; i < COUNT_OF(deltas); i++) {
        assert_ok(bly_clone(old, &f));
        assert_ok(bly_delta_apply(f, deltas[i]->at, deltas[i]->n, NULL));
        assert_int_equal(hits(f, 0, 950), 950);
        assert_true(hits(f, ABSENT, 1000) < 100);
        bly_free(f);
        /* Blind it stays blind. */
        assert_ok(bly_load(was.at, was.n, &(bly_access){ .blind = true }, &f));
        assert_ok(bly_delta_apply(f, deltas[i]->at, deltas[i]->n, NULL));
        assert_null(bly_hasher_of(f));
        assert_true(bly_equal(f, i ? other : new));
        bly_free(f);
    }
    /* Not keyed, or by another key: nothing in common. */
    bly_filter *plain = filled_from(
        &(bly_spec){ .items = 1000, .fpr = 0.01, .seed = 0 }, 0, 900);
    byte_array none = { 0 };
    assert_status(bly_delta_write(old, plain, put_bytes, &none, NULL),
                  BLY_EUNFIT);
    assert_status(bly_delta_write(plain, old, put_bytes, &none, NULL),
                  BLY_EUNFIT);
    assert_int_equal(none.n, 0);
    free(none.at);
    free(gaps.at);
    free(whole.at);
    free(was.at);
    bly_free(old);
    bly_free(new);
    bly_free(other);
    bly_free(plain);
}

/* Of mapped files too; but a mapped one cannot be changed, and one that is
 * damaged makes no delta. */
static void mapped_filters(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/bloomery-delta-XXXXXX", path[3][64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/%d", folder, i);
    bly_filter *old = of_kind("classic", 1000, 0, 900), *a, *b;
    bly_filter *new = of_kind("classic", 1000, 0, 910);
    bly_delta info;
    assert_ok(bly_save(old, path[0]));
    assert_ok(bly_save(new, path[1]));
    assert_ok(bly_map(path[0], NULL, &a));
    assert_ok(bly_map(path[1], NULL, &b));
    assert_ok(bly_delta_save(a, b, path[2], &info));
    byte_array d = delta_of(old, new, NULL);
    unsigned char file[10000];
    FILE *in = fopen(path[2], "rb");
    assert_non_null(in);
    assert_int_equal(fread(file, 1, sizeof file, in), d.n);
    fclose(in);
    assert_int_equal(info.bytes, d.n);
    assert_memory_equal(file, d.at, d.n);
    assert_status(bly_delta_apply(a, d.at, d.n, NULL), BLY_EREADONLY);
    bly_free(b);
    in = fopen(path[1], "r+b");
    assert_true(in && fseek(in, 4096 + 100, SEEK_SET) == 0);
    assert_true(fputc('x', in) == 'x' && fclose(in) == 0);
    const bly_access believe = { .checking = BLY_CHECK_NOTHING };
    assert_ok(bly_map(path[1], &believe, &b));
    assert_status(bly_delta_save(a, b, path[2], NULL), BLY_EFORMAT);
    assert_status(bly_delta_save(b, a, path[2], NULL), BLY_EFORMAT);
    bly_free(a);
    bly_free(b);
    bly_free(old);
    bly_free(new);
    free(d.at);
    for (int i = 0; i < 3; i++)
        assert_int_equal(unlink(path[i]), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* ----------------------------------------------------------------- hostile */

/* Small versions of kinds with and without state and layers, and a whole. */
static const struct {
    const char *kind, *form;
    size_t capacity, old, new;
} cases[] = {
    { "classic", "gaps", 100, 90, 94 },   { "counting", "gaps", 60, 50, 55 },
    { "scalable", "gaps", 60, 50, 58 },   { "scalable", "whole", 20, 15, 50 },
    { "scalable", "whole", 20, 15, 140 },
};

static void make_case(size_t i, bly_filter **old, bly_filter **new,
                      byte_array *d)
{
    bly_delta info;
    *old = of_kind(cases[i].kind, cases[i].capacity, 0, cases[i].old);
    *new = of_kind(cases[i].kind, cases[i].capacity, 0, cases[i].new);
    *d = delta_of(*old, *new, &info);
    assert_string_equal(info.form, cases[i].form);
}

/* No beginning of a delta is one, nor one with something behind. */
static void cut_short(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bly_filter *old, *new;
        byte_array d;
        make_case(i, &old, &new, &d);
        const uint64_t id = bly_version_id(old);
        for (size_t n = 0; n < d.n; n++) {
            unsigned char *wall = guarded_new(n);
            memcpy(wall, d.at, n);
            assert_status(bly_delta_apply(old, wall, n, NULL), BLY_EFORMAT);
            assert_int_equal(bly_version_id(old), id);
            guarded_free(wall, n);
        }
        assert_true(put_bytes(&d, "", 1));
        assert_refused(old, &d, BLY_EFORMAT);
        d.n--;
        assert_ok(bly_delta_apply(old, d.at, d.n, NULL));
        free(d.at);
        bly_free(old);
        bly_free(new);
    }
}

/* Every bit is covered by a checksum. */
static void any_bit_flipped(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bly_filter *old, *new;
        byte_array d;
        make_case(i, &old, &new, &d);
        const uint64_t id = bly_version_id(old);
        for (size_t bit = 0; bit < 8 * d.n; bit++) {
            d.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_status(bly_delta_apply(old, d.at, d.n, NULL), BLY_EFORMAT);
            assert_int_equal(bly_version_id(old), id);
            d.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        free(d.at);
        bly_free(old);
        bly_free(new);
    }
}

/* What a forger would do after changing something. */
static void sign(byte_array *d)
{
    const size_t nentries = d->n - DELTA_HEADER - BLY_DELTA_SUM;
    bly_store64(d->at + DELTA_AT_BODY, d->n - DELTA_HEADER);
    bly_store64(d->at + DELTA_AT_SUM, bly_checksum(d->at, DELTA_AT_SUM));
    bly_store64(d->at + DELTA_HEADER + nentries,
                bly_checksum(d->at + DELTA_HEADER, nentries));
}

static void set_field(byte_array *d, size_t at, uint64_t value)
{
    bly_store64(d->at + DELTA_HEADER + at, value);
    sign(d);
}

/* With its checksums right, whatever bit is wrong: refused, since the promised
 * version does not come out, unless it was one of a hint. */
static void forged_bits(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        bly_filter *old, *new, *f;
        byte_array d;
        make_case(i, &old, &new, &d);
        size_t taken = 0;
        for (size_t bit = 8 * DELTA_HEADER; bit < 8 * (d.n - 8); bit++) {
            d.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
            sign(&d);
            assert_ok(bly_clone(old, &f));
            if (bly_delta_apply(f, d.at, d.n, NULL)) {
                assert_true(bly_equal(f, old));
            } else {
                assert_true(bly_equal(f, new));
                taken++;
            }
            bly_free(f);
            d.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        /* Capacity, rate, additions of a record, and of a layer. */
        assert_true(taken > 0 && taken <= 2 * 3 * 64);
        free(d.at);
        bly_free(old);
        bly_free(new);
    }
}

static void forged_fields(void **unused)
{
    (void)unused;
    bly_filter *old, *new;
    byte_array d;
    make_case(0, &old, &new, &d);
    byte_array good = { 0 };
    assert_true(put_bytes(&good, d.at, d.n));
#define TRY(status, ...)                 \
    do {                                 \
        memcpy(d.at, good.at, good.n);   \
        d.n = good.n;                    \
        __VA_ARGS__;                     \
        assert_refused(old, &d, status); \
    } while (0)
    TRY(BLY_EFORMAT, set_field(&d, ENTRY_AT_ITEMS, 0));
    TRY(BLY_EFORMAT, set_field(&d, ENTRY_AT_FPR, 0x4000000000000000)); /* 2 */
    TRY(BLY_EFORMAT, set_field(&d, ENTRY_AT_FPR, UINT64_MAX)); /* a NAN */
    TRY(BLY_EFORMAT, set_field(&d, ENTRY_AT_FLIPS, 0));
    TRY(BLY_EFORMAT, set_field(&d, ENTRY_AT_FLIPS, UINT64_MAX));
    TRY(BLY_EFORMAT, set_field(&d, ENTRY_AT_FLIPS, 1000000));
    TRY(BLY_EFORMAT, d.at[DELTA_HEADER + ENTRY_AT_RICE] = 64, sign(&d));
    /* A classic filter has no state. */
    TRY(BLY_EFORMAT, d.at[DELTA_HEADER + ENTRY_AT_STATE] = 1, sign(&d));
    /* Too few entries, too many. */
    TRY(BLY_EFORMAT, d.n = DELTA_HEADER + BLY_DELTA_SUM, sign(&d));
    TRY(BLY_EFORMAT, d.n = DELTA_HEADER + BLY_DELTA_SUM + 20, sign(&d));
    TRY(BLY_EFORMAT, d.n = DELTA_HEADER + 7,
        bly_store64(d.at + DELTA_AT_BODY, 7),
        bly_store64(d.at + DELTA_AT_SUM, bly_checksum(d.at, DELTA_AT_SUM)));
    TRY(BLY_EFORMAT, assert_true(put_bytes(&d, "12345678", 8)), sign(&d));
    /* A body that nobody could hold. */
    TRY(BLY_EFORMAT, bly_store64(d.at + DELTA_AT_BODY, UINT64_C(1) << 60),
        bly_store64(d.at + DELTA_AT_SUM, bly_checksum(d.at, DELTA_AT_SUM)));
    /* Another format version, another form. */
    TRY(BLY_EFORMAT, d.at[DELTA_AT_VERSION] = 2, sign(&d));
    TRY(BLY_EFORMAT, d.at[DELTA_AT_VERSION + 4] = 2, sign(&d));
    TRY(BLY_EFORMAT, d.at[DELTA_AT_VERSION + 7] = 2, sign(&d));
    TRY(BLY_EFORMAT, d.at[DELTA_AT_VERSION + 4] = 1, sign(&d));
    /* Another version to start from. */
    TRY(BLY_EUNFIT, d.at[DELTA_AT_FROM] ^= 1, sign(&d));
#undef TRY
    memcpy(d.at, good.at, good.n);
    d.n = good.n;
    assert_ok(bly_delta_apply(old, d.at, d.n, NULL));
    free(d.at);
    free(good.at);
    bly_free(old);
    bly_free(new);
}

/* A version that its kind cannot be in, under the id that it would have. */
static void forged_versions(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        bly_filter *old, *new;
        byte_array d;
        make_case(i, &old, &new, &d);
        if (new->kind->nstate) {
            free(d.at);
            new->state[0] = UINT64_MAX;
            d = delta_of(old, new, NULL);
        } else {
            /* A word of state for a kind that has none. */
            assert_true(put_bytes(&d, "12345678", 8));
            unsigned char *const entry = d.at + DELTA_HEADER;
            memmove(entry + ENTRY_HEADER + 8, entry + ENTRY_HEADER,
                    d.n - DELTA_HEADER - ENTRY_HEADER - 8);
            entry[ENTRY_AT_STATE] = 1;
            sign(&d);
        }
        assert_refused(old, &d, BLY_EFORMAT);
        free(d.at);
        bly_free(old);
        bly_free(new);
    }
}

/* A whole version of another hash, though it is a filter. */
static void foreign_whole(const bly_spec *mine, const bly_spec *other)
{
    bly_filter *old = filled_from(mine, 0, 50);
    bly_filter *foreign = filled_from(other, 0, 50);
    byte_array whole = written(foreign), d = { 0 };
    unsigned char header[DELTA_HEADER];
    const bly_delta_header h = {
        .form = DELTA_WHOLE,
        .from = bly_version_id(old),
        .to = bly_version_id(foreign),
        .nbody = whole.n,
    };
    bly_delta_encode(&h, header);
    assert_true(put_bytes(&d, header, sizeof header) &&
                put_bytes(&d, whole.at, whole.n));
    assert_refused(old, &d, BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "hash"));
    free(d.at);
    free(whole.at);
    bly_free(old);
    bly_free(foreign);
}

static void forged_whole(void **unused)
{
    (void)unused;
    static const unsigned char one[BLY_SECRET_BYTES] = { 1 },
                               two[BLY_SECRET_BYTES] = { 2 };
    bly_spec mine = { .kind = "classic", .items = 200, .fpr = 0.01 };
    bly_spec other = mine;
    other.seed = 1;
    foreign_whole(&mine, &other);
    mine.secret = one;
    other.seed = 0;
    foreign_whole(&mine, &other);
    other.secret = two;
    foreign_whole(&mine, &other);
}

/* ----------------------------------------------------------------- sources */

typedef struct tap {
    const byte_array *d;
    uint64_t given, fails_at;
} tap;

/* What is not the delta is zeros without end. */
static int64_t get_tap(void *ctx, void *buf, size_t nbytes)
{
    tap *t = ctx;
    if (t->given >= t->fails_at)
        return -1;
    for (size_t i = 0; i < nbytes; i++, t->given++)
        ((unsigned char *)buf)[i] = t->given < t->d->n ? t->d->at[t->given] : 0;
    return (int64_t)nbytes;
}

static void sources_without_end(void **unused)
{
    (void)unused;
    bly_filter *old, *new;
    byte_array d, junk = { 0 };
    make_case(0, &old, &new, &d);
    const uint64_t id = bly_version_id(old);
    tap t = { &junk, 0, UINT64_MAX };
    assert_status(bly_delta_read(old, get_tap, &t, NULL), BLY_EFORMAT);
    assert_true(t.given < 100);
    t = (tap){ &d, 0, UINT64_MAX };
    assert_status(bly_delta_read(old, get_tap, &t, NULL), BLY_EFORMAT);
    assert_true(t.given < d.n + 100);
    /* A delta for another version is not read any further. */
    t = (tap){ &d, 0, UINT64_MAX };
    assert_status(bly_delta_read(new, get_tap, &t, NULL), BLY_EUNFIT);
    assert_int_equal(t.given, DELTA_HEADER);
    for (uint64_t at = 0; at < d.n; at += 7) {
        t = (tap){ &d, 0, at };
        assert_status(bly_delta_read(old, get_tap, &t, NULL), BLY_EIO);
    }
    assert_int_equal(bly_version_id(old), id);
    free(d.at);
    bly_free(old);
    bly_free(new);
}

/* A receiver who wants no more. */
static bool put_some(void *ctx, const void *bytes, size_t nbytes)
{
    size_t *room = ctx;
    (void)bytes;
    if (nbytes > *room)
        return false;
    *room -= nbytes;
    return true;
}

static void receivers_that_stop(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bly_filter *old, *new;
        byte_array d;
        make_case(i, &old, &new, &d);
        for (size_t room = 0; room < d.n; room += 13) {
            size_t left = room;
            assert_status(bly_delta_write(old, new, put_some, &left, NULL),
                          BLY_EIO);
        }
        free(d.at);
        bly_free(old);
        bly_free(new);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_to_the_entropy_of_bits),
        cmocka_unit_test(close_to_the_entropy_of_counters),
        cmocka_unit_test(whole_where_that_is_shorter),
        cmocka_unit_test(whole_and_coded),
        cmocka_unit_test(hints_travel),
        cmocka_unit_test(keyed_filters),
        cmocka_unit_test(mapped_filters),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(any_bit_flipped),
        cmocka_unit_test(forged_bits),
        cmocka_unit_test(forged_fields),
        cmocka_unit_test(forged_versions),
        cmocka_unit_test(forged_whole),
        cmocka_unit_test(sources_without_end),
        cmocka_unit_test(receivers_that_stop),
    };
    return run_laws_and("delta", tests, COUNT_OF(tests), argc, argv);
}
