/*
 * test_meta.c - what a filter says of its keys
 *
 * Whatever happens to a filter, its metadata go with it; keys of one type are
 * asked of filters of another as the same key, or with an error; and bytes from
 * outside that are not metadata are refused.
 */
#define _GNU_SOURCE
#include "laws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bits.h"
#include "core/hash.h"
#include "tests/provenance.h"

#define TEXT ((bly_keying){ BLY_KEYS_TEXT, BLY_KEYS_FOLDED })

static void label(bly_filter *f)
{
    assert_ok(bly_set_keying(f, TEXT));
    assert_ok(bly_set_note(f, "K\xc3\xb6rbe vom 3. Mai"));
    assert_ok(bly_set_pair(f, "source", "a=b"));
    assert_ok(bly_set_pair(f, "made-by", ""));
}

static void assert_bytes(bly_bytes got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr ? got.ptr : "", want, got.len);
}

static void assert_labelled(const bly_filter *f)
{
    bly_bytes name, value;
    assert_int_equal(bly_keying_of(f).type, TEXT.type);
    assert_int_equal(bly_keying_of(f).forms, TEXT.forms);
    assert_bytes(bly_note_of(f), "K\xc3\xb6rbe vom 3. Mai");
    assert_true(bly_pair_at(f, 0, &name, &value));
    assert_bytes(name, "made-by");
    assert_bytes(value, "");
    assert_true(bly_pair_at(f, 1, &name, &value));
    assert_bytes(name, "source");
    assert_bytes(value, "a=b");
    assert_false(bly_pair_at(f, 2, &name, &value));
}

/* ------------------------------------------------------------------- laws */

LAW(metadata_do_not_change_the_rest_of_a_file)
{
    for (int coded = 0; coded < 2; coded++) {
        bly_filter *f = law_filled(row, 0, 300);
        bly_set_coded(f, coded);
        byte_array bare = written(f);
        label(f);
        byte_array a = written(f);
        assert_int_equal(bly_written_bytes(f), a.n);
        if (!coded)
            assert_int_equal(a.n, bare.n);
        /* Taken away again, nothing is left of them. */
        assert_ok(bly_set_keying(f, (bly_keying){ BLY_KEYS_UNKNOWN, 0 }));
        assert_ok(bly_set_note(f, NULL));
        assert_ok(bly_set_pair(f, "source", NULL));
        assert_ok(bly_set_pair(f, "made-by", NULL));
        assert_same_bytes(f, &bare);
        free(bare.at);
        free(a.at);
        bly_free(f);
    }
}

LAW(metadata_go_through_files)
{
    char path[] = "/tmp/bly_meta_XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (int coded = 0; coded < 2; coded++) {
        bly_filter *f = law_filled(row, 0, 300), *g;
        label(f);
        bly_set_coded(f, coded);
        byte_array a = written(f);
        unsigned char *wall = guarded_new(a.n);
        memcpy(wall, a.at, a.n);
        assert_ok(bly_load(wall, a.n, NULL, &g));
        guarded_free(wall, a.n);
        assert_labelled(g);
        assert_true(bly_equal(f, g));
        assert_same_bytes(g, &a);
        bly_free(g);
        byte_source source = { a.at, a.n };
        assert_ok(bly_read(get_bytes, &source, NULL, &g));
        assert_labelled(g);
        bly_free(g);
        /* In parts, of which some begin inside the block. */
        unsigned char *parts = malloc(a.n);
        assert_non_null(parts);
        for (uint64_t at = 0; at < a.n;)
            at += bly_write_part(f, at, parts + at, 307);
        assert_memory_equal(parts, a.at, a.n);
        free(parts);
        assert_ok(bly_save(f, path));
        assert_ok(bly_open(path, NULL, &g));
        assert_labelled(g);
        bly_free(g);
        assert_ok(
            bly_map(path, &(bly_access){ .checking = BLY_CHECK_ALL }, &g));
        assert_labelled(g);
        assert_status(bly_set_note(g, "x"), BLY_EREADONLY);
        assert_same_bytes(g, &a);
        bly_filter *copy;
        assert_ok(bly_clone(g, &copy));
        assert_labelled(copy);
        assert_same_bytes(copy, &a);
        bly_free(copy);
        bly_free(g);
        free(a.at);
        bly_free(f);
    }
    unlink(path);
}

/* Every file that is cut short or has a bit flipped is refused. */
LAW(damaged_metadata_are_refused)
{
    for (int coded = 0; coded < 2; coded++) {
        bly_filter *f = law_filled(row, 0, 20), *g;
        label(f);
        bly_set_coded(f, coded);
        byte_array a = written(f);
        const size_t end = a.n < 480 ? a.n : 480;
        for (size_t i = 280; i < end; i++) {
            a.at[i] ^= 1;
            assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
            a.at[i] ^= 1;
            assert_status(bly_load(a.at, i, NULL, &g), BLY_EFORMAT);
        }
        free(a.at);
        bly_free(f);
    }
}

LAW(metadata_go_with_what_is_made_from_a_filter)
{
    bly_filter *f = law_filled(row, 0, 300), *g;
    label(f);
    assert_ok(bly_clone(f, &g));
    assert_labelled(g);
    bly_free(g);
    if (bly_fold(f, &g) == BLY_OK) {
        assert_labelled(g);
        bly_free(g);
    }
    bly_kind_info to;
    for (size_t i = 0; bly_kind_at(i, &to); i++)
        if (bly_convert(f, &(bly_spec){ .kind = to.name }, &g) == BLY_OK) {
            assert_labelled(g);
            bly_free(g);
        }
    bly_free(f);
}

/* A filter that grows is replaced by a larger one, which is the same to its
 * owner. */
LAW(metadata_stay_as_keys_come_and_go)
{
    needs(kind, BLY_CAN(ADD));
    const bly_spec spec = law_spec(row, 50);
    bly_filter *f = filled_from(&spec, 0, 0);
    label(f);
    (void)fill_random(f, 7, 2000);
    assert_labelled(f);
    bly_free(f);
}

LAW(a_delta_keeps_what_the_receiver_says)
{
    bly_filter *old = law_filled(row, 0, 300), *f = law_filled(row, 0, 300),
               *next = law_filled(row, 100, 300);
    byte_array bare = { 0 }, delta = { 0 };
    assert_ok(bly_delta_write(old, next, put_bytes, &bare, NULL));
    assert_ok(bly_set_note(next, "the publisher's"));
    assert_ok(bly_delta_write(old, next, put_bytes, &delta, NULL));
    assert_int_equal(delta.n, bare.n);
    assert_memory_equal(delta.at, bare.at, bare.n);
    label(f);
    assert_int_equal(bly_version_id(f), bly_version_id(old));
    assert_ok(bly_delta_apply(f, delta.at, delta.n, NULL));
    assert_labelled(f);
    assert_true(bly_equal(f, next));
    /* Two types are not two versions. */
    assert_ok(bly_set_keying(next, (bly_keying){ BLY_KEYS_INT64, 0 }));
    assert_status(bly_delta_write(f, next, put_bytes, &delta, NULL),
                  BLY_EUNFIT);
    free(bare.at);
    free(delta.at);
    bly_free(old);
    bly_free(f);
    bly_free(next);
}

/* Both ways of combining two filters. */
static bly_status combine_both(bly_filter *dst, const bly_filter *src,
                               bool union_)
{
    bly_filter *copy;
    byte_array a = written(src);
    byte_source source = { a.at, a.n };
    assert_ok(bly_clone(dst, &copy));
    const bly_status st = bly_combine_read(
        copy, union_ ? BLY_UNION : BLY_INTERSECTION, get_bytes, &source);
    const bly_status other =
        union_ ? bly_merge(dst, src) : bly_intersect(dst, src);
    assert_int_equal(st, other);
    if (!st) {
        byte_array b = written(dst);
        assert_same_bytes(copy, &b);
        free(b.at);
    }
    bly_free(copy);
    free(a.at);
    return st;
}

LAW(filters_of_two_types_do_not_combine)
{
    const bool can[] = { kind->can & BLY_CAN(MERGE),
                         kind->can & BLY_CAN(INTERSECT) };
    if (!can[0] && !can[1])
        skip_for("the kind cannot do this");
    for (int union_ = 0; union_ < 2; union_++) {
        if (!can[!union_])
            continue;
        bly_filter *a = law_part(row, 2000, 0, 100),
                   *b = law_part(row, 2000, 50, 100);
        bly_filter *before;
        assert_ok(bly_set_keying(a, (bly_keying){ BLY_KEYS_TEXT, 0 }));
        assert_ok(bly_set_keying(b, (bly_keying){ BLY_KEYS_UINT64, 0 }));
        assert_ok(bly_clone(a, &before));
        assert_status(combine_both(a, b, union_), BLY_EUNFIT);
        assert_non_null(strstr(bly_error(), "text"));
        assert_non_null(strstr(bly_error(), "uint64"));
        assert_true(bly_equal(a, before));
        bly_likeness l;
        if (kind->can & BLY_CAN(COMPARE))
            assert_status(bly_compare(a, b, &l), BLY_EUNFIT);
        /* Folded or not: asked as one they would miss keys of the other. */
        assert_ok(bly_set_keying(b, TEXT));
        assert_status(combine_both(a, b, union_), BLY_EUNFIT);
        assert_ok(bly_set_keying(a, (bly_keying){ BLY_KEYS_UNKNOWN, 0 }));
        assert_status(combine_both(a, b, union_), BLY_EUNFIT);
        assert_ok(bly_set_keying(b, (bly_keying){ BLY_KEYS_INT64, 0 }));
        assert_status(combine_both(a, b, union_), BLY_EUNFIT);
        assert_non_null(strstr(bly_error(), "int64"));
        /* Bytes are never converted, so a filter that says nothing takes over
         * that its keys are bytes. */
        assert_ok(bly_set_keying(b, (bly_keying){ BLY_KEYS_BYTES, 0 }));
        assert_ok(bly_set_note(a, "mine"));
        assert_ok(bly_set_note(b, "yours"));
        assert_ok(combine_both(a, b, union_));
        assert_int_equal(bly_keying_of(a).type, BLY_KEYS_BYTES);
        assert_bytes(bly_note_of(a), "mine");
        bly_free(a);
        bly_free(b);
        bly_free(before);
    }
}

/* Seven, whoever asks: the same answer in a filter of any type, or an error. */
LAW(seven_is_seven)
{
    needs(kind, BLY_CAN(ADD) | BLY_CAN(HAS));
    static const bly_bytes text = { "7", 1 }, other = { "x", 1 };
    static const int64_t seven = 7, minus = -7;
    static const uint64_t unsigned_seven = 7;
    for (int type = BLY_KEYS_TEXT; type <= BLY_KEYS_UINT64; type++) {
        bly_spec spec = law_spec(row, 100);
        spec.keying.type = (bly_key_type)type;
        bly_filter *f;
        uint64_t maybe = 0;
        const bool bytes = type == BLY_KEYS_BYTES;
        const bool text_like = type == BLY_KEYS_TEXT || bytes;
        assert_ok(bly_new(&spec, &f));
        assert_int_equal(bly_keying_of(f).type, type);
        const void *const key = type == BLY_KEYS_INT64    ? (const void *)&seven
                                : type == BLY_KEYS_UINT64 ? &unsigned_seven
                                                          : (const void *)&text;
        assert_ok(bly_add_as(f, (bly_key_type)type, key, 1, NULL, NULL));
        assert_ok(bly_has_as(f, BLY_KEYS_TEXT, &text, 1, &maybe));
        assert_int_equal(maybe, 1);
        /* For integers that is unclear, and maybe is what is said then. */
        maybe = 0;
        assert_status(bly_has_as(f, BLY_KEYS_BYTES, &text, 1, &maybe),
                      text_like ? BLY_OK : BLY_EINVAL);
        assert_int_equal(maybe, 1);
        maybe = 0;
        assert_status(bly_has_as(f, BLY_KEYS_INT64, &seven, 1, &maybe),
                      bytes ? BLY_EINVAL : BLY_OK);
        assert_int_equal(maybe, 1);
        maybe = 0;
        assert_status(
            bly_has_as(f, BLY_KEYS_UINT64, &unsigned_seven, 1, &maybe),
            bytes ? BLY_EINVAL : BLY_OK);
        assert_int_equal(maybe, 1);
        if (!bytes) {
            maybe = 0;
            bly_has_ints(f, &unsigned_seven, 1, &maybe);
            assert_int_equal(maybe, 1);
        }
        assert_status(bly_has_as(f, BLY_KEYS_TEXT, &other, 1, &maybe),
                      text_like ? BLY_OK : BLY_EINVAL);
        assert_status(bly_has_as(f, BLY_KEYS_INT64, &minus, 1, &maybe),
                      bytes || type == BLY_KEYS_UINT64 ? BLY_EINVAL : BLY_OK);
        bly_free(f);
    }
}

/* -------------------------------------------------------------- the calls */

static bly_filter *small(bly_keying keying)
{
    bly_filter *f;
    assert_ok(bly_new(&(bly_spec){ .items = 100, .keying = keying }, &f));
    return f;
}

/* ----------------------------------------------- combining provenances */

static bly_filter *of_provenance(const law_row *row, const provenance *p,
                                 uint64_t first)
{
    bly_spec spec = law_spec(row, 1000);
    bly_filter *f;
    spec.keying = p->says;
    spec.secret = p->keyed ? provenance_secret : NULL;
    if (bly_new(&spec, &f))
        return NULL; /* no kind has all of this */
    for (uint64_t i = first; p->holds && i < first + NNUMBERS; i++) {
        char room[24];
        const bly_bytes key = key_of_provenance(p, i, room);
        assert_ok(bly_add(f, key.ptr, key.len));
    }
    assert_int_equal(bly_keying_of(f).type, p->says.type);
    return f;
}

/* Ask for number i in every way there is; an error says "maybe". */
static unsigned asked_every_way(const bly_filter *f, uint64_t i)
{
    char room[24];
    const int n = snprintf(room, sizeof room, "%llu", (unsigned long long)i);
    const bly_bytes text = { room, (size_t)n };
    const int64_t number = (int64_t)i;
    const uint64_t le = bly_le64(i);
    uint64_t maybe[4];
    (void)bly_has_as(f, BLY_KEYS_TEXT, &text, 1, &maybe[0]);
    (void)bly_has_as(f, BLY_KEYS_BYTES, &text, 1, &maybe[1]);
    (void)bly_has_as(f, BLY_KEYS_INT64, &number, 1, &maybe[2]);
    (void)bly_has_as(f, BLY_KEYS_UINT64, &i, 1, &maybe[3]);
    unsigned yes = 0;
    for (unsigned way = 0; way < 4; way++)
        yes |= (unsigned)(maybe[way] & 1) << way;
    return yes | (unsigned)bly_has_int(f, i) << 4 |
           (unsigned)bly_has(f, text.ptr, text.len) << 5 |
           (unsigned)bly_has(f, &le, sizeof le) << 6;
}

/* A key that a filter answers for is not missed in what is made of it with
 * another, whatever each of them holds or says, and however it is asked. That
 * may take an error. */
LAW(no_combination_misses_a_key)
{
    needs_certain_no(kind);
    needs(kind, BLY_CAN(ADD));
    if (!(kind->can & (BLY_CAN(MERGE) | BLY_CAN(INTERSECT))))
        skip_for("the kind cannot do this");
    for (size_t i = 0; i < 2 * NPROVENANCES * NPROVENANCES; i++) {
        const bool union_ = i % 2;
        const provenance *const pa = &provenances[i / 2 / NPROVENANCES];
        const provenance *const pb = &provenances[i / 2 % NPROVENANCES];
        if (!(kind->can & (union_ ? BLY_CAN(MERGE) : BLY_CAN(INTERSECT))))
            continue;
        bly_filter *const a = of_provenance(row, pa, 7),
                          *const b = of_provenance(row, pb, 7 + NNUMBERS / 2);
        if (!a || !b) {
            bly_free(a);
            bly_free(b);
            continue;
        }
        unsigned due[2 * NNUMBERS];
        for (uint64_t j = 0; j < 2 * NNUMBERS; j++) {
            const unsigned of_a = asked_every_way(a, 7 + j),
                           of_b = asked_every_way(b, 7 + j);
            due[j] = union_ ? of_a | of_b : of_a & of_b;
        }
        bly_likeness l;
        const bool compares =
            kind->can & BLY_CAN(COMPARE) && bly_compare(a, b, &l) != BLY_EUNFIT;
        const bly_status st = combine_both(a, b, union_);
        if (kind->can & BLY_CAN(COMPARE))
            assert_int_equal(compares, st != BLY_EUNFIT);
        for (uint64_t j = 0; !st && j < 2 * NNUMBERS; j++) {
            const unsigned lost = due[j] & ~asked_every_way(a, 7 + j);
            if (lost)
                fail_msg("%s of [%s] and [%s] misses %llu asked in ways %#x",
                         union_ ? "union" : "intersection", pa->name, pb->name,
                         (unsigned long long)(7 + j), lost);
        }
        bly_free(a);
        bly_free(b);
    }
}

/* A delta does not carry the type, so two filters that differ in it are not
 * versions of one: the receiver would ask for the new keys in the old way. */
static void a_delta_does_not_change_the_type(void **state)
{
    (void)state;
    byte_array delta = { 0 };
    bly_filter *from = small((bly_keying){ 0 }), *to;
    assert_ok(bly_clone(from, &to));
    assert_ok(bly_add_int(to, 7)); /* it is one of uint64 now */
    assert_status(bly_delta_write(from, to, put_bytes, &delta, NULL),
                  BLY_EUNFIT);
    assert_ok(bly_set_keying(from, bly_keying_of(to)));
    assert_ok(bly_delta_write(from, to, put_bytes, &delta, NULL));
    free(delta.at);
    bly_free(from);
    bly_free(to);
}

/* ------------------------------------------------ the hash of integers */

static uint32_t id_of_hash(const bly_filter *f)
{
    bly_stats stats;
    bly_peek(f, &stats);
    assert_int_equal(stats.hash_id, bly_hasher_of(f)->id);
    return stats.hash_id;
}

/* Integers have a hash of their own in filters that were made for them, also if
 * the first keys say so; a caller who may have hashed keys already is not
 * surprised by another one. */
static void the_hash_follows_the_type(void **state)
{
    (void)state;
    const bly_keying integers = { BLY_KEYS_INT64, 0 };
    const bly_keying text = { BLY_KEYS_TEXT, 0 };
    const uint64_t seven = 7;
    bly_filter *f = small(integers);
    assert_int_equal(id_of_hash(f), BLY_HASH_FOLDED);
    bly_free(f);
    f = small(text);
    assert_int_equal(id_of_hash(f), BLY_HASH_XXH3);
    bly_free(f);
    bly_spec spec = { .items = 100, .keying = integers, .hash = BLY_HASH_XXH3 };
    assert_ok(bly_new(&spec, &f));
    assert_int_equal(id_of_hash(f), BLY_HASH_XXH3);
    bly_free(f);
    spec.hash = BLY_HASH_FOLDED; /* follows by itself, or not at all */
    assert_status(bly_new(&spec, &f), BLY_EINVAL);

    f = small((bly_keying){ 0 });
    assert_ok(bly_add_as(f, BLY_KEYS_INT64, &seven, 1, NULL, NULL));
    assert_int_equal(id_of_hash(f), BLY_HASH_FOLDED);
    assert_true(bly_has_int(f, 7));
    bly_free(f);
    f = small((bly_keying){ 0 });
    assert_ok(bly_add_ints(f, &seven, 1, NULL, NULL));
    assert_int_equal(id_of_hash(f), BLY_HASH_XXH3);
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UINT64);
    bly_free(f);

    /* What an adder wrote need not have been counted. */
    bly_blocked_adder adder;
    f = small((bly_keying){ 0 });
    assert_true(bly_blocked_adder_of(f, &adder));
    bly_blocked_add_int(&adder, 8);
    assert_ok(bly_add_as(f, BLY_KEYS_UINT64, &seven, 1, NULL, NULL));
    assert_int_equal(id_of_hash(f), BLY_HASH_XXH3);
    assert_true(bly_has_int(f, 7) && bly_has_int(f, 8));
    bly_free(f);

    /* The first key fails: nothing has changed. */
    const bly_spec full = { .kind = "fuse", .items = 100 };
    bly_builder *b;
    assert_ok(bly_builder_new(&full, &b));
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    assert_status(bly_add_as(f, BLY_KEYS_INT64, &seven, 1, NULL, NULL),
                  BLY_ENOTSUP);
    assert_int_equal(id_of_hash(f), BLY_HASH_XXH3);
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UNKNOWN);
    bly_free(f);
}

/* Filters that hash integers differently do not combine. An empty one that does
 * not say what its keys are takes over the hash with the type. */
static void hashes_of_integers_do_not_mix(void **state)
{
    (void)state;
    const bly_keying integers = { BLY_KEYS_INT64, 0 };
    const int64_t seven = 7, eight = 8;
    const bly_spec old_spec = { .items = 100,
                                .keying = integers,
                                .hash = BLY_HASH_XXH3 };
    bly_filter *now = small(integers), *old, *empty = small((bly_keying){ 0 });
    assert_ok(bly_new(&old_spec, &old));
    assert_ok(bly_add_as(now, BLY_KEYS_INT64, &seven, 1, NULL, NULL));
    assert_ok(bly_add_as(old, BLY_KEYS_INT64, &eight, 1, NULL, NULL));
    assert_status(bly_merge(now, old), BLY_EUNFIT);
    assert_non_null(strstr(bly_error(), "hash integers differently"));
    assert_status(bly_intersect(old, now), BLY_EUNFIT);
    assert_ok(bly_merge(now, empty));
    assert_ok(bly_merge(empty, now));
    assert_int_equal(id_of_hash(empty), BLY_HASH_FOLDED);
    assert_true(bly_has_int(empty, 7));
    assert_true(bly_equal(empty, now));
    assert_status(bly_merge(empty, old), BLY_EUNFIT);
    bly_free(empty);
    bly_free(old);
    bly_free(now);
}

static void what_cannot_be_said_is_refused(void **state)
{
    char note[BLY_NOTE_MOST + 2] = { 0 }, name[4];
    bly_filter *f = small((bly_keying){ 0 });
    (void)state;
    static const char *const lines[] = {
        "a\nb",     "\x1b[31m",     "\t",
        "\x7f",     "\xc2\x85",     "\xff",
        "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "a\xe2\x82"
    };
    assert_ok(bly_set_note(f, "kept"));
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_status(bly_set_note(f, lines[i]), BLY_EINVAL);
        assert_status(bly_set_pair(f, "n", lines[i]), BLY_EINVAL);
    }
    memset(note, 'a', BLY_NOTE_MOST + 1);
    assert_status(bly_set_note(f, note), BLY_ERANGE);
    assert_status(bly_set_pair(f, "n", note), BLY_ERANGE);
    note[BLY_NOTE_MOST] = 0;
    static const char *const names[] = { "", "a b", "a=b", "\xc3\xb6", "a/b" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_status(bly_set_pair(f, names[i], "v"), BLY_EINVAL);
    assert_status(bly_set_pair(f, note, "v"), BLY_EINVAL);
    assert_status(
        bly_set_keying(f, (bly_keying){ BLY_KEYS_INT64, BLY_KEYS_FOLDED }),
        BLY_EINVAL);
    assert_status(bly_set_keying(f, (bly_keying){ (bly_key_type)5, 0 }),
                  BLY_EINVAL);
    assert_status(bly_set_keying(f, (bly_keying){ BLY_KEYS_TEXT, 8 }),
                  BLY_EINVAL);
    assert_bytes(bly_note_of(f), "kept");
    /* Until it is full, and what does not fit changes nothing. */
    bly_status st = BLY_OK;
    int i = 0;
    for (; !st && i < 10; i++) {
        snprintf(name, sizeof name, "n%d", i);
        st = bly_set_pair(f, name, note);
    }
    assert_int_equal(st, BLY_ERANGE);
    assert_int_equal(i, 4);
    byte_array a = written(f);
    assert_status(bly_set_pair(f, "n9", note), BLY_ERANGE);
    assert_same_bytes(f, &a);
    bly_filter *g;
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_same_bytes(g, &a);
    bly_free(g);
    free(a.at);
    /* The order in which things are said leaves no trace. */
    g = small((bly_keying){ BLY_KEYS_TEXT, 0 });
    assert_ok(bly_set_pair(g, "b", "1"));
    assert_ok(bly_set_pair(g, "a", "2"));
    assert_ok(bly_set_pair(g, "b", "3"));
    bly_free(f);
    f = small((bly_keying){ 0 });
    assert_ok(bly_set_pair(f, "a", "2"));
    assert_ok(bly_set_pair(f, "b", "3"));
    assert_ok(bly_set_keying(f, (bly_keying){ BLY_KEYS_TEXT, 0 }));
    a = written(f);
    assert_same_bytes(g, &a);
    free(a.at);
    bly_free(f);
    bly_free(g);
}

static uint64_t asked(const bly_filter *f, const char *text)
{
    const bly_bytes key = { text, strlen(text) };
    uint64_t maybe = 0;
    assert_ok(bly_has_as(f, BLY_KEYS_TEXT, &key, 1, &maybe));
    return maybe;
}

static void text_is_normalised(void **state)
{
    (void)state;
    char room[3000];
    const bly_bytes key = { " \tAbC[`\xc3\x84 z\r", 12 };
    assert_bytes(bly_key_normalise(0, key, NULL), " \tAbC[`\xc3\x84 z\r");
    assert_bytes(bly_key_normalise(BLY_KEYS_NO_CR, key, NULL),
                 " \tAbC[`\xc3\x84 z");
    assert_bytes(bly_key_normalise(BLY_KEYS_TRIMMED, key, NULL),
                 "AbC[`\xc3\x84 z");
    assert_bytes(bly_key_normalise(7, key, room), "abc[`\xc3\xa4 z");
    /* The one that grows most, and what is not UTF-8. */
    assert_bytes(bly_key_normalise(1, (bly_bytes){ "\xc8\xba", 2 }, room),
                 "\xe2\xb1\xa5");
    assert_bytes(bly_key_normalise(1, (bly_bytes){ "\xffQ\xc3", 3 }, room),
                 "\xffq\xc3");
    assert_bytes(bly_key_normalise(7, (bly_bytes){ " \r", 2 }, room), "");
    assert_bytes(bly_key_normalise(7, (bly_bytes){ NULL, 0 }, room), "");
    bly_filter *f = small((bly_keying){ BLY_KEYS_TEXT, 7 });
    assert_ok(bly_add(f, "apple", 5));
    assert_int_equal(asked(f, "  APPLE\r"), 1);
    assert_int_equal(asked(f, "APPLE PIE"), 0);
    memset(room, 'Q', sizeof room);
    const bly_bytes long_key = { room, sizeof room };
    assert_ok(bly_add_as(f, BLY_KEYS_TEXT, &long_key, 1, NULL, NULL));
    memset(room, 'q', sizeof room);
    assert_true(bly_has(f, room, sizeof room));
    bly_free(f);
}

static bly_status hash_of(bly_key_type to, const char *text, uint64_t *out)
{
    const bly_bytes key = { text, strlen(text) };
    const bly_hasher hs = { .id = BLY_HASH_XXH3 };
    return bly_hash_as(&hs, (bly_keying){ to, 0 }, BLY_KEYS_TEXT, &key, 1, out,
                       NULL);
}

static void integers_are_parsed(void **state)
{
    static const struct {
        const char *text;
        int64_t key;
        bool is_int, is_uint;
    } rows[] = {
        { "7", 7, true, true },
        { "+007\r", 7, true, true },
        { " -7", -7, true, false },
        { "-0", 0, true, true },
        { "9223372036854775807", INT64_MAX, true, true },
        { "9223372036854775808", INT64_MIN, false, true },
        { "-9223372036854775808", INT64_MIN, true, false },
        { "-9223372036854775809", 0, false, false },
        { "18446744073709551615", -1, false, true },
        { "18446744073709551616", 0, false, false },
        { "", 0, false, false },
        { "-", 0, false, false },
        { "--7", 0, false, false },
        { "0x7", 0, false, false },
        { "7.0", 0, false, false },
        { "7 7", 0, false, false },
    };
    const bly_hasher hs = { .id = BLY_HASH_XXH3 };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t got = 0, want;
        bly_hash_ints(&hs, &(uint64_t){ (uint64_t)rows[i].key }, 1, &want);
        assert_status(hash_of(BLY_KEYS_INT64, rows[i].text, &got),
                      rows[i].is_int ? BLY_OK : BLY_EINVAL);
        if (rows[i].is_int)
            assert_int_equal(got, want);
        assert_status(hash_of(BLY_KEYS_UINT64, rows[i].text, &got),
                      rows[i].is_uint ? BLY_OK : BLY_EINVAL);
        if (rows[i].is_uint)
            assert_int_equal(got, want);
    }
    /* Those before the wrong one are done. */
    const bly_bytes keys[] = { { "1", 1 }, { "2", 1 }, { "\x1bx", 2 } };
    uint64_t hashes[3];
    size_t done;
    assert_status(bly_hash_as(&hs, (bly_keying){ BLY_KEYS_INT64, 0 },
                              BLY_KEYS_TEXT, keys, 3, hashes, &done),
                  BLY_EINVAL);
    assert_int_equal(done, 2);
    assert_non_null(strstr(bly_error(), "'?x'"));
    assert_non_null(strstr(bly_error(), "int64"));
}

static void integers_make_a_filter_of_integers(void **state)
{
    (void)state;
    static const uint64_t ints[] = { 7, 8, UINT64_C(1) << 63 };
    const int64_t minus = -7;
    uint64_t maybe = 0;
    size_t done;
    bly_filter *f = small((bly_keying){ 0 });
    assert_ok(bly_add_ints(f, ints, 0, NULL, NULL));
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UNKNOWN);
    assert_ok(bly_add_ints(f, ints, 3, NULL, NULL));
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UINT64);
    assert_int_equal(asked(f, "7"), 1);
    bly_free(f);
    /* Keys that were there before say nothing. */
    f = small((bly_keying){ 0 });
    assert_ok(bly_add(f, "7", 1));
    assert_ok(bly_add_ints(f, ints, 1, NULL, NULL));
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UNKNOWN);
    bly_free(f);
    f = small((bly_keying){ 0 });
    assert_ok(bly_add_as(f, BLY_KEYS_INT64, &minus, 1, NULL, NULL));
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_INT64);
    bly_free(f);
    /* In text they are text; of the last nobody knows whether it has a sign. */
    f = small((bly_keying){ BLY_KEYS_TEXT, 0 });
    assert_status(bly_add_ints(f, ints, 3, NULL, &done), BLY_ERANGE);
    assert_int_equal(done, 2);
    assert_true(bly_has(f, "8", 1));
    /* What is said of the others is that they are not new. */
    uint64_t many[130] = { 12345, UINT64_MAX };
    uint64_t fresh[BLY_BITMAP_WORDS(130)] = { 1, 2, 3 };
    assert_status(bly_add_ints(f, many, 130, fresh, &done), BLY_ERANGE);
    assert_int_equal(done, 1);
    assert_int_equal(fresh[0], 1);
    assert_int_equal(fresh[1] | fresh[2], 0);
    bly_has_ints(f, ints, 3, &maybe);
    assert_int_equal(maybe, 7);
    assert_ok(bly_add_as(f, BLY_KEYS_INT64, &minus, 1, NULL, NULL));
    assert_true(bly_has(f, "-7", 2));
    bly_free(f);
    /* What fails changes nothing. */
    f = small((bly_keying){ 0 });
    const bly_bytes key = { "x", 1 };
    assert_status(bly_add_as(f, (bly_key_type)9, &key, 1, NULL, NULL),
                  BLY_EINVAL);
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UNKNOWN);
    bly_free(f);
}

/* One by one as in a batch. */
static void one_integer(void **state)
{
    (void)state;
    const uint64_t large = UINT64_C(1) << 63;
    bly_filter *f = small((bly_keying){ 0 });
    assert_ok(bly_add_int(f, 7));
    assert_int_equal(bly_keying_of(f).type, BLY_KEYS_UINT64);
    assert_ok(bly_add_int(f, large));
    assert_int_equal(asked(f, "7"), 1);
    assert_true(bly_has_int(f, 7) && bly_has_int(f, large));
    assert_false(bly_has_int(f, 9));
    bly_free(f);
    f = small((bly_keying){ BLY_KEYS_TEXT, 0 });
    for (int round = 0; round < 2; round++) {
        assert_ok(bly_add_int(f, 7 + (uint64_t)round));
        assert_true(bly_has(f, round ? "8" : "7", 1));
    }
    assert_status(bly_add_int(f, large), BLY_ERANGE);
    assert_true(bly_has_int(f, 8) && bly_has_int(f, large));
    assert_false(bly_has_int(f, 9));
    bly_free(f);
    f = small((bly_keying){ BLY_KEYS_BYTES, 0 });
    assert_ok(bly_add(f, "eight by", 8));
    assert_ok(bly_add_int(f, 7));
    assert_true(bly_has_int(f, 7));
    bly_free(f);
}

static void memory_is_given_back(void **state)
{
    (void)state;
    ledger l;
    for (long fail = -1; fail < 12; fail++) {
        ledger_open(&l);
        l.fail_at = fail;
        bly_filter *f, *g = NULL;
        const bly_spec spec = { .kind = "elastic", .items = 50, .mem = &l.mem };
        if (bly_new(&spec, &f) == BLY_OK) {
            const bool said = bly_set_keying(f, TEXT) == BLY_OK &&
                              bly_set_note(f, "note") == BLY_OK;
            (void)fill_random(f, 7, 100);
            if (said)
                assert_bytes(bly_note_of(f), "note");
            if (bly_clone(f, &g) == BLY_OK && said)
                assert_bytes(bly_note_of(g), "note");
            bly_free(f);
            bly_free(g);
        }
        ledger_check(&l);
    }
}

/* ---------------------------------------------------------------- forgery */

static void set_le(unsigned char *p, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)(x >> 8 * i);
}

/* The file of f with other entries, and its checksums right. */
static byte_array forged(const bly_filter *f, bool coded, const void *entries,
                         size_t n, uint32_t said)
{
    bly_filter *copy;
    assert_ok(bly_clone(f, &copy));
    bly_set_coded(copy, coded);
    byte_array a = written(copy), b = { 0 };
    bly_free(copy);
    static const unsigned char zeros[8];
    const size_t pad = -(4 + n) & 7;
    unsigned char length[4], sum[8];
    set_le(length, said, 4);
    set_le(a.at + 20, 1, 4);
    if (coded) {
        set_le(a.at + 288, bly_checksum(a.at, 288), 8);
        put_bytes(&b, a.at, 296);
        put_bytes(&b, length, 4);
        put_bytes(&b, entries, n);
        put_bytes(&b, zeros, pad);
        set_le(sum, bly_checksum(b.at + 296, b.n - 296), 8);
        put_bytes(&b, sum, 8);
        put_bytes(&b, a.at + 296, a.n - 296);
        free(a.at);
        return b;
    }
    memcpy(a.at + 288, length, 4);
    memcpy(a.at + 292, entries, n);
    set_le(a.at + 4088, bly_checksum(a.at, 4088), 8);
    return a;
}

#define ENTRIES(text, ...)                 \
    {                                      \
        text, sizeof text - 1, __VA_ARGS__ \
    }

static void forged_metadata_are_refused(void **state)
{
    static const struct {
        const char *entries;
        size_t n;
        const char *why; /* NULL: right */
        uint32_t said;   /* 0: n */
    } rows[] = {
        ENTRIES("\1\0\2\0\1\0", NULL, 0),
        ENTRIES("\1\0\2\0\1\7", NULL, 0),
        ENTRIES("\2\0\1\0n", NULL, 0),
        ENTRIES("\3\0\2\0a=\3\0\2\0b=", NULL, 0),
        ENTRIES("\4\0\0\0", NULL, 0), /* of a newer one */
        ENTRIES("\4\0\1\0x\4\0\1\0y\xff\x7f\2\0zz", NULL, 0),
        ENTRIES("\0\x80\1\0x", "newer", 0),
        ENTRIES("\1\0\2\0\5\0", "newer", 0),
        ENTRIES("\1\0\2\0\1\x08", "newer", 0),
        ENTRIES("\1\0\2\0\0\0", "contradicts", 0),
        ENTRIES("\1\0\2\0\3\1", "contradicts", 0),
        ENTRIES("\1\0\1\0\1", "size", 0),
        ENTRIES("\1\0\2\0\1\0\1\0\2\0\2\0", "order", 0),
        ENTRIES("\2\0\1\0n\1\0\2\0\1\0", "order", 0),
        ENTRIES("\2\0\1\0n\2\0\1\0o", "order", 0),
        ENTRIES("\3\0\2\0b=\3\0\2\0a=", "order", 0),
        ENTRIES("\3\0\3\0a=1\3\0\3\0a=2", "order", 0),
        ENTRIES("\4\0\1\0y\4\0\1\0x", "order", 0),
        ENTRIES("\4\0\1\0x\4\0\1\0x", "order", 0),
        ENTRIES("\0\0\1\0x", "order", 0),
        ENTRIES("\2\0\0\0", "note", 0),
        ENTRIES("\2\0\1\0\n", "note", 0),
        ENTRIES("\2\0\1\0\xff", "note", 0),
        ENTRIES("\3\0\1\0a", "pair", 0),
        ENTRIES("\3\0\2\0=a", "pair", 0),
        ENTRIES("\3\0\3\0a=\n", "pair", 0),
        ENTRIES("\3\0\3\0/=a", "pair", 0),
        ENTRIES("\2\0\2\0n", "cut short", 0),
        ENTRIES("\2\0\1\0n\2\0", "cut short", 0),
        ENTRIES("\2\0\1\0n", "size", 3697),
        ENTRIES("\2\0\1\0n", "size", UINT32_MAX),
        ENTRIES("\2\0\1\0nx", "zero", 5),
    };
    (void)state;
    bly_filter *f = small((bly_keying){ 0 }), *g;
    assert_ok(bly_add(f, "7", 1));
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int coded = 0; coded < 2; coded++) {
            byte_array a =
                forged(f, coded, rows[i].entries, rows[i].n,
                       rows[i].said ? rows[i].said : (uint32_t)rows[i].n);
            byte_source source = { a.at, a.n };
            const bly_status st = bly_load(a.at, a.n, NULL, &g);
            bly_filter *copy = small((bly_keying){ 0 });
            const bly_status read =
                bly_combine_read(copy, BLY_UNION, get_bytes, &source);
            bly_free(copy);
            if (rows[i].why) {
                if (st != BLY_EFORMAT || !strstr(bly_error(), rows[i].why))
                    fail_msg("row %zu, coded %d: %s, not %s", i, coded,
                             bly_error(), rows[i].why);
                assert_int_equal(read, BLY_EFORMAT);
            } else {
                assert_ok(st);
                assert_same_bytes(g, &a);
                assert_true(bly_has(g, "7", 1));
                if (rows[i].entries[0] == 4)
                    assert_true(bly_meta_unknown(g) > 0);
                bly_free(g);
                assert_ok(read);
            }
            free(a.at);
        }
    /* One that says nothing is not written. */
    for (int coded = 0; coded < 2; coded++) {
        byte_array a = forged(f, coded, "", 0, 0);
        assert_status(bly_load(a.at, a.n, NULL, &g), BLY_EFORMAT);
        free(a.at);
    }
    bly_free(f);
}

/* What a newer bloomery said stays where it is while this one says more. */
static void unknown_entries_stay(void **state)
{
    (void)state;
    bly_filter *f = small((bly_keying){ 0 }), *g;
    byte_array a = forged(f, true, "\x10\0\1\0x\x20\0\0\0", 9, 9);
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_int_equal(bly_meta_unknown(g), 2);
    label(g);
    assert_labelled(g);
    assert_int_equal(bly_meta_unknown(g), 2);
    free(a.at);
    a = written(g);
    bly_free(g);
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_labelled(g);
    assert_int_equal(bly_meta_unknown(g), 2);
    free(a.at);
    bly_free(f);
    bly_free(g);
}

/* The example of docs/format.md. */
static void the_page_is_right(void **state)
{
    (void)state;
    char line[256];
    size_t nlines = 0, n, at;
    bly_filter *f = small(TEXT);
    assert_ok(bly_set_note(f, "leaked 2024"));
    assert_ok(bly_set_pair(f, "source", "list.txt"));
    byte_array a = written(f);
    FILE *page = fopen("docs/format.md", "r");
    assert_non_null(page);
    while (fgets(line, sizeof line, page)) {
        int used = 0;
        if (sscanf(line, "    %3zx: %n", &at, &used) != 1 || used != 9)
            continue;
        for (n = 0; n < 16; n++) {
            char byte[4];
            snprintf(byte, sizeof byte, "%02x ", a.at[at + n]);
            if (line[used] != ' ' && strncmp(line + used, byte, 3) != 0)
                fail_msg("%s: has %s", line, byte);
            used += 3;
        }
        nlines++;
    }
    assert_int_equal(nlines, 3);
    fclose(page);
    free(a.at);
    bly_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_said_is_refused),
        cmocka_unit_test(a_delta_does_not_change_the_type),
        cmocka_unit_test(the_hash_follows_the_type),
        cmocka_unit_test(hashes_of_integers_do_not_mix),
        cmocka_unit_test(text_is_normalised),
        cmocka_unit_test(integers_are_parsed),
        cmocka_unit_test(integers_make_a_filter_of_integers),
        cmocka_unit_test(one_integer),
        cmocka_unit_test(memory_is_given_back),
        cmocka_unit_test(forged_metadata_are_refused),
        cmocka_unit_test(unknown_entries_stay),
        cmocka_unit_test(the_page_is_right),
    };
    return run_laws_and("meta", tests, COUNT_OF(tests), argc, argv);
}
