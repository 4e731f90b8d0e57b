/*
 * test_null_arguments.c - NULL where there must be something
 *
 * Every function of the public headers that returns a status answers
 * BLY_EINVAL, says which argument it was, and touches nothing. There is a row
 * for each; the header is read to see that none was forgotten.
 */
#define _GNU_SOURCE
#include "support.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>
#include <bloomery/index.h>
#include <bloomery/live.h>
#include <bloomery/node.h>
#include <bloomery/parquet.h>
#include <bloomery/place.h>
#include <bloomery/reconcile.h>
#include <bloomery/few.h>
#include <bloomery/sorted.h>
#include <bloomery/sketch.h>
#include <bloomery/vectors.h>
#include <bloomery/views.h>

#include "host/foreign_host.h"

static bly_filter *f, *g; /* not NULL, and never changed */
static const bly_spec spec = { .items = 100 };
static uint64_t words[4];
static const bly_bytes one_key = { "key", 3 };

static void refused_at(bly_status st, const char *call)
{
    if (st != BLY_EINVAL || !strstr(bly_error(), "NULL"))
        fail_msg("%s: %s, \"%s\"", call, bly_status_text(st), bly_error());
}
#define REFUSED(call) refused_at(call, #call)

/* The same for one that gives something: it gives NULL. */
#define GIVES_NULL(out, call)              \
    do {                                   \
        (out) = (void *)(uintptr_t)&words; \
        refused_at(call, #call);           \
        assert_null(out);                  \
    } while (0)

static bool no_put(void *ctx, const void *bytes, size_t nbytes)
{
    (void)ctx;
    (void)bytes;
    (void)nbytes;
    return true;
}

static int64_t no_get(void *ctx, void *buf, size_t nbytes)
{
    (void)ctx;
    (void)buf;
    (void)nbytes;
    return 0;
}

static bly_status no_change(bly_filter *filter, void *ctx)
{
    (void)filter;
    (void)ctx;
    return BLY_OK;
}

static bly_status no_bytes(const void *what, bly_put *put, void *ctx)
{
    (void)what;
    (void)put;
    (void)ctx;
    return BLY_OK;
}

/* Every test is called after the function that it tries. */
#define TRY(name) static void name##_(void **unused)

/* clang-format off */
TRY(bly_plan)
{
    bly_prediction p;
    (void)unused;
    REFUSED(bly_plan(NULL, &p));
    REFUSED(bly_plan(&spec, NULL));
    bly_spec odd = spec;
    odd.noptions = 1;
    REFUSED(bly_plan(&odd, &p));
    odd.options = &(bly_option){ NULL, "1" };
    REFUSED(bly_plan(&odd, &p));
    odd.options = &(bly_option){ "k", NULL };
    REFUSED(bly_plan(&odd, &p));
}
TRY(bly_new)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_new(NULL, &x));
    REFUSED(bly_new(&spec, NULL));
}
TRY(bly_clone)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_clone(NULL, &x));
    REFUSED(bly_clone(f, NULL));
}
TRY(bly_become)
{
    (void)unused;
    REFUSED(bly_become(NULL, f));
    REFUSED(bly_become(f, NULL));
}
TRY(bly_hasher_for)
{
    bly_hasher h;
    (void)unused;
    REFUSED(bly_hasher_for(NULL, &h));
    REFUSED(bly_hasher_for(&spec, NULL));
}
TRY(bly_add)
{
    (void)unused;
    REFUSED(bly_add(NULL, "key", 3));
    REFUSED(bly_add(f, NULL, 3));
}
TRY(bly_remove)
{
    (void)unused;
    REFUSED(bly_remove(NULL, "key", 3));
    REFUSED(bly_remove(f, NULL, 3));
}
TRY(bly_add_hash)
{
    (void)unused;
    REFUSED(bly_add_hash(NULL, 1));
}
TRY(bly_add_int)
{
    (void)unused;
    REFUSED(bly_add_int(NULL, 1));
}
TRY(bly_add_hashes)
{
    (void)unused;
    REFUSED(bly_add_hashes(NULL, words, 1, NULL, NULL));
    REFUSED(bly_add_hashes(f, NULL, 1, NULL, NULL));
    assert_ok(bly_add_hashes(f, NULL, 0, NULL, NULL));
}
TRY(bly_add_keys)
{
    (void)unused;
    REFUSED(bly_add_keys(NULL, &one_key, 1, NULL, NULL));
    REFUSED(bly_add_keys(f, NULL, 1, NULL, NULL));
}
TRY(bly_add_column)
{
    (void)unused;
    const bly_column c = { "key", (const uint32_t[]){ 0, 3 }, NULL };
    REFUSED(bly_add_column(NULL, &c, 1, NULL, NULL));
    REFUSED(bly_add_column(f, NULL, 1, NULL, NULL));
}
TRY(bly_add_ints)
{
    (void)unused;
    REFUSED(bly_add_ints(NULL, words, 1, NULL, NULL));
    REFUSED(bly_add_ints(f, NULL, 1, NULL, NULL));
}
TRY(bly_hash_as)
{
    (void)unused;
    const bly_keying to = { BLY_KEYS_TEXT, 0 };
    const bly_hasher *const hs = bly_hasher_of(f);
    REFUSED(bly_hash_as(NULL, to, BLY_KEYS_TEXT, &one_key, 1, words, NULL));
    REFUSED(bly_hash_as(hs, to, BLY_KEYS_TEXT, NULL, 1, words, NULL));
    REFUSED(bly_hash_as(hs, to, BLY_KEYS_TEXT, &one_key, 1, NULL, NULL));
}
TRY(bly_add_as)
{
    (void)unused;
    REFUSED(bly_add_as(NULL, BLY_KEYS_TEXT, &one_key, 1, NULL, NULL));
    REFUSED(bly_add_as(f, BLY_KEYS_TEXT, NULL, 1, NULL, NULL));
}
TRY(bly_has_as)
{
    (void)unused;
    REFUSED(bly_has_as(NULL, BLY_KEYS_TEXT, &one_key, 1, words));
    REFUSED(bly_has_as(f, BLY_KEYS_TEXT, NULL, 1, words));
    REFUSED(bly_has_as(f, BLY_KEYS_TEXT, &one_key, 1, NULL));
}
TRY(bly_cells_open)
{
    void *cells;
    uint64_t nbytes;
    (void)unused;
    REFUSED(bly_cells_open(NULL, &cells, &nbytes));
    REFUSED(bly_cells_open(f, NULL, &nbytes));
    REFUSED(bly_cells_open(f, &cells, NULL));
}
TRY(bly_cells_close)
{
    (void)unused;
    REFUSED(bly_cells_close(NULL));
}
TRY(bly_raw_get)
{
    unsigned char bits[8];
    (void)unused;
    REFUSED(bly_raw_get(NULL, bits, sizeof bits));
    REFUSED(bly_raw_get(f, NULL, sizeof bits));
}
TRY(bly_raw_set)
{
    unsigned char bits[8] = { 0 };
    (void)unused;
    REFUSED(bly_raw_set(NULL, bits, sizeof bits));
    REFUSED(bly_raw_set(f, NULL, sizeof bits));
}
TRY(bly_set_keying)
{
    (void)unused;
    REFUSED(bly_set_keying(NULL, (bly_keying){ BLY_KEYS_TEXT, 0 }));
}
TRY(bly_copy_meta)
{
    (void)unused;
    REFUSED(bly_copy_meta(NULL, f));
    REFUSED(bly_copy_meta(f, NULL));
}
TRY(bly_set_note)
{
    (void)unused;
    REFUSED(bly_set_note(NULL, "note"));
}
TRY(bly_set_pair)
{
    (void)unused;
    REFUSED(bly_set_pair(NULL, "name", "value"));
    REFUSED(bly_set_pair(f, NULL, "value"));
}
TRY(bly_remove_hashes)
{
    (void)unused;
    REFUSED(bly_remove_hashes(NULL, words, 1, NULL));
    REFUSED(bly_remove_hashes(f, NULL, 1, NULL));
}
TRY(bly_increase_hashes)
{
    (void)unused;
    REFUSED(bly_increase_hashes(NULL, words, words, 1, NULL));
    REFUSED(bly_increase_hashes(f, NULL, words, 1, NULL));
    REFUSED(bly_increase_hashes(f, words, NULL, 1, NULL));
}
TRY(bly_remove_keys)
{
    (void)unused;
    REFUSED(bly_remove_keys(NULL, &one_key, 1, NULL));
    REFUSED(bly_remove_keys(f, NULL, 1, NULL));
}
TRY(bly_remove_ints)
{
    (void)unused;
    REFUSED(bly_remove_ints(NULL, words, 1, NULL));
    REFUSED(bly_remove_ints(f, NULL, 1, NULL));
}
TRY(bly_remove_as)
{
    (void)unused;
    REFUSED(bly_remove_as(NULL, BLY_KEYS_TEXT, &one_key, 1, NULL));
    REFUSED(bly_remove_as(f, BLY_KEYS_TEXT, NULL, 1, NULL));
}
TRY(bly_increase)
{
    (void)unused;
    REFUSED(bly_increase(NULL, "key", 3, 1));
    REFUSED(bly_increase(f, NULL, 3, 1));
}
TRY(bly_increase_keys)
{
    (void)unused;
    REFUSED(bly_increase_keys(NULL, &one_key, words, 1, NULL));
    REFUSED(bly_increase_keys(f, NULL, words, 1, NULL));
    REFUSED(bly_increase_keys(f, &one_key, NULL, 1, NULL));
}
TRY(bly_increase_ints)
{
    (void)unused;
    REFUSED(bly_increase_ints(NULL, words, words, 1, NULL));
    REFUSED(bly_increase_ints(f, NULL, words, 1, NULL));
    REFUSED(bly_increase_ints(f, words, NULL, 1, NULL));
}
TRY(bly_increase_as)
{
    (void)unused;
    REFUSED(
        bly_increase_as(NULL, BLY_KEYS_TEXT, &one_key, words, 1, NULL));
    REFUSED(bly_increase_as(f, BLY_KEYS_TEXT, NULL, words, 1, NULL));
    REFUSED(bly_increase_as(f, BLY_KEYS_TEXT, &one_key, NULL, 1, NULL));
}
TRY(bly_count)
{
    (void)unused;
    REFUSED(bly_count(NULL, "key", 3, words));
    REFUSED(bly_count(f, NULL, 3, words));
    REFUSED(bly_count(f, "key", 3, NULL));
}
TRY(bly_count_keys)
{
    (void)unused;
    REFUSED(bly_count_keys(NULL, &one_key, 1, words));
    REFUSED(bly_count_keys(f, NULL, 1, words));
    REFUSED(bly_count_keys(f, &one_key, 1, NULL));
}
TRY(bly_count_ints)
{
    (void)unused;
    REFUSED(bly_count_ints(NULL, words, 1, words + 1));
    REFUSED(bly_count_ints(f, NULL, 1, words + 1));
    REFUSED(bly_count_ints(f, words, 1, NULL));
}
TRY(bly_count_as)
{
    (void)unused;
    REFUSED(bly_count_as(NULL, BLY_KEYS_TEXT, &one_key, 1, words));
    REFUSED(bly_count_as(f, BLY_KEYS_TEXT, NULL, 1, words));
    REFUSED(bly_count_as(f, BLY_KEYS_TEXT, &one_key, 1, NULL));
}
TRY(bly_get_value)
{
    (void)unused;
    REFUSED(bly_get_value(NULL, "key", 3, words));
    REFUSED(bly_get_value(f, NULL, 3, words));
    REFUSED(bly_get_value(f, "key", 3, NULL));
}
TRY(bly_get_keys)
{
    (void)unused;
    REFUSED(bly_get_keys(NULL, &one_key, 1, words, words + 1));
    REFUSED(bly_get_keys(f, NULL, 1, words, words + 1));
    REFUSED(bly_get_keys(f, &one_key, 1, NULL, words + 1));
    REFUSED(bly_get_keys(f, &one_key, 1, words, NULL));
}
TRY(bly_get_ints)
{
    (void)unused;
    REFUSED(bly_get_ints(NULL, words, 1, words + 1, words + 2));
    REFUSED(bly_get_ints(f, NULL, 1, words + 1, words + 2));
    REFUSED(bly_get_ints(f, words, 1, NULL, words + 2));
    REFUSED(bly_get_ints(f, words, 1, words + 1, NULL));
}
TRY(bly_get_as)
{
    (void)unused;
    REFUSED(bly_get_as(NULL, BLY_KEYS_TEXT, &one_key, 1, words, words + 1));
    REFUSED(bly_get_as(f, BLY_KEYS_TEXT, NULL, 1, words, words + 1));
    REFUSED(bly_get_as(f, BLY_KEYS_TEXT, &one_key, 1, NULL, words + 1));
    REFUSED(bly_get_as(f, BLY_KEYS_TEXT, &one_key, 1, words, NULL));
}
TRY(bly_set_value)
{
    (void)unused;
    REFUSED(bly_set_value(NULL, "key", 3, 1));
    REFUSED(bly_set_value(f, NULL, 3, 1));
}
TRY(bly_build_keys)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_build_keys(NULL, &one_key, 1, &x));
    GIVES_NULL(x, bly_build_keys(&spec, NULL, 1, &x));
    REFUSED(bly_build_keys(&spec, &one_key, 1, NULL));
}
TRY(bly_build_ints)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_build_ints(NULL, words, 1, &x));
    GIVES_NULL(x, bly_build_ints(&spec, NULL, 1, &x));
    REFUSED(bly_build_ints(&spec, words, 1, NULL));
}
TRY(bly_build_as)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_build_as(NULL, BLY_KEYS_TEXT, &one_key, NULL, 1, &x));
    GIVES_NULL(x, bly_build_as(&spec, BLY_KEYS_TEXT, NULL, NULL, 1, &x));
    REFUSED(bly_build_as(&spec, BLY_KEYS_TEXT, &one_key, NULL, 1, NULL));
}
TRY(bly_builder_add_keys)
{
    bly_builder *x;
    (void)unused;
    REFUSED(bly_builder_add_keys(NULL, &one_key, NULL, 1));
    assert_ok(bly_builder_new(&spec, &x));
    REFUSED(bly_builder_add_keys(x, NULL, NULL, 1));
    bly_builder_free(x);
}
TRY(bly_builder_add_ints)
{
    bly_builder *x;
    (void)unused;
    REFUSED(bly_builder_add_ints(NULL, words, NULL, 1));
    assert_ok(bly_builder_new(&spec, &x));
    REFUSED(bly_builder_add_ints(x, NULL, NULL, 1));
    bly_builder_free(x);
}
TRY(bly_builder_add_as)
{
    bly_builder *x;
    (void)unused;
    REFUSED(bly_builder_add_as(NULL, BLY_KEYS_TEXT, &one_key, NULL, 1));
    assert_ok(bly_builder_new(&spec, &x));
    REFUSED(bly_builder_add_as(x, BLY_KEYS_TEXT, NULL, NULL, 1));
    bly_builder_free(x);
}
TRY(bly_has_range)
{
    bool any;
    (void)unused;
    REFUSED(bly_has_range(NULL, 1, 2, &any));
    REFUSED(bly_has_range(f, 1, 2, NULL));
}
TRY(bly_has_ranges)
{
    (void)unused;
    REFUSED(bly_has_ranges(NULL, words, words, 1, words + 1));
    REFUSED(bly_has_ranges(f, NULL, words, 1, words + 1));
    REFUSED(bly_has_ranges(f, words, NULL, 1, words + 1));
    REFUSED(bly_has_ranges(f, words, words, 1, NULL));
}
TRY(bly_has_ranges_as)
{
    (void)unused;
    REFUSED(bly_has_ranges_as(NULL, BLY_KEYS_TEXT, &one_key, &one_key, 1,
                              words));
    REFUSED(bly_has_ranges_as(f, BLY_KEYS_TEXT, NULL, &one_key, 1, words));
    REFUSED(bly_has_ranges_as(f, BLY_KEYS_TEXT, &one_key, NULL, 1, words));
    REFUSED(bly_has_ranges_as(f, BLY_KEYS_TEXT, &one_key, &one_key, 1, NULL));
}
TRY(bly_count_hashes)
{
    (void)unused;
    REFUSED(bly_count_hashes(NULL, words, 1, words + 1));
    REFUSED(bly_count_hashes(f, NULL, 1, words + 1));
    REFUSED(bly_count_hashes(f, words, 1, NULL));
}
TRY(bly_get_hashes)
{
    (void)unused;
    REFUSED(bly_get_hashes(NULL, words, 1, words + 1, words + 2));
    REFUSED(bly_get_hashes(f, NULL, 1, words + 1, words + 2));
    REFUSED(bly_get_hashes(f, words, 1, NULL, words + 2));
    REFUSED(bly_get_hashes(f, words, 1, words + 1, NULL));
}
TRY(bly_set_hash)
{
    (void)unused;
    REFUSED(bly_set_hash(NULL, 1, 1));
}
TRY(bly_tick)
{
    (void)unused;
    REFUSED(bly_tick(NULL, 1));
}
TRY(bly_builder_new)
{
    bly_builder *x;
    (void)unused;
    GIVES_NULL(x, bly_builder_new(NULL, &x));
    REFUSED(bly_builder_new(&spec, NULL));
}
TRY(bly_builder_add)
{
    bly_builder *x;
    (void)unused;
    REFUSED(bly_builder_add(NULL, words, NULL, 1));
    assert_ok(bly_builder_new(&spec, &x));
    REFUSED(bly_builder_add(x, NULL, NULL, 1));
    bly_builder_free(x);
}
TRY(bly_builder_deny)
{
    const bly_spec exact = { .kind = "exact", .fpr = 0.01 };
    bly_builder *x;
    (void)unused;
    REFUSED(bly_builder_deny(NULL, words, 1));
    assert_ok(bly_builder_new(&exact, &x));
    REFUSED(bly_builder_deny(x, NULL, 1));
    bly_builder_free(x);
}
TRY(bly_builder_members)
{
    const bly_spec exact = { .kind = "exact", .fpr = 0.01 };
    bly_builder *x;
    uint64_t in;
    (void)unused;
    REFUSED(bly_builder_members(NULL, words, 1, &in));
    assert_ok(bly_builder_new(&exact, &x));
    REFUSED(bly_builder_members(x, NULL, 1, &in));
    REFUSED(bly_builder_members(x, words, 1, NULL));
    bly_builder_free(x);
}
TRY(bly_builder_groups)
{
    const bly_spec exact = { .kind = "exact", .fpr = 0.01 };
    const bly_group one = { { "a", 1 }, 1, 1 }, nameless = { { NULL, 1 }, 1, 1 };
    bly_builder *x;
    (void)unused;
    REFUSED(bly_builder_groups(NULL, &one, 1));
    assert_ok(bly_builder_new(&exact, &x));
    REFUSED(bly_builder_groups(x, NULL, 1));
    REFUSED(bly_builder_groups(x, &nameless, 1));
    bly_builder_free(x);
}
TRY(bly_builder_beginning)
{
    const bly_spec range = { .kind = "range",
                             .fpr = 0.01,
                             .keying = { BLY_KEYS_TEXT, 0 } };
    bly_builder *x;
    (void)unused;
    REFUSED(bly_builder_beginning(NULL, "a", 1));
    assert_ok(bly_builder_new(&range, &x));
    REFUSED(bly_builder_beginning(x, NULL, 1));
    assert_ok(bly_builder_beginning(x, NULL, 0));
    bly_builder_free(x);
}
TRY(bly_builder_finish)
{
    bly_builder *x;
    bly_filter *y;
    (void)unused;
    GIVES_NULL(y, bly_builder_finish(NULL, 1, &y));
    assert_ok(bly_builder_new(&spec, &x));
    REFUSED(bly_builder_finish(x, 1, NULL));
    bly_builder_free(x);
}
TRY(bly_merge)
{
    (void)unused;
    REFUSED(bly_merge(NULL, f));
    REFUSED(bly_merge(f, NULL));
}
TRY(bly_intersect)
{
    (void)unused;
    REFUSED(bly_intersect(NULL, f));
    REFUSED(bly_intersect(f, NULL));
}
TRY(bly_compare)
{
    bly_likeness l;
    (void)unused;
    REFUSED(bly_compare(NULL, g, &l));
    REFUSED(bly_compare(f, NULL, &l));
    REFUSED(bly_compare(f, g, NULL));
}
TRY(bly_fold)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_fold(NULL, &x));
    REFUSED(bly_fold(f, NULL));
}
TRY(bly_convert)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_convert(NULL, &spec, &x));
    GIVES_NULL(x, bly_convert(f, NULL, &x));
    REFUSED(bly_convert(f, &spec, NULL));
}
TRY(bly_write)
{
    (void)unused;
    REFUSED(bly_write(NULL, no_put, NULL));
    REFUSED(bly_write(f, NULL, NULL));
}
TRY(bly_write_away)
{
    (void)unused;
    REFUSED(bly_write_away(NULL, no_put, NULL));
    REFUSED(bly_write_away(f, NULL, NULL));
}
TRY(bly_parts_new)
{
    (void)unused;
    bly_parts *p;
    GIVES_NULL(p, bly_parts_new(NULL, &p));
    REFUSED(bly_parts_new(f, NULL));
}
TRY(bly_load)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_load(NULL, 1, NULL, &x));
    REFUSED(bly_load("x", 1, NULL, NULL));
    assert_status(bly_load(NULL, 0, NULL, &x), BLY_EFORMAT);
}
TRY(bly_read)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_read(NULL, NULL, NULL, &x));
    REFUSED(bly_read(no_get, NULL, NULL, NULL));
}
TRY(bly_save)
{
    (void)unused;
    REFUSED(bly_save(NULL, "/dev/null"));
    REFUSED(bly_save(f, NULL));
}
TRY(bly_file_save)
{
    (void)unused;
    REFUSED(bly_file_save(NULL, NULL, NULL, no_bytes, NULL));
    REFUSED(bly_file_save("/dev/null", NULL, NULL, NULL, NULL));
}
TRY(bly_draft_new)
{
    bly_draft *x;
    (void)unused;
    GIVES_NULL(x, bly_draft_new(NULL, NULL, NULL, &x));
    REFUSED(bly_draft_new("/dev/null", NULL, NULL, NULL));
}
TRY(bly_draft_commit)
{
    (void)unused;
    REFUSED(bly_draft_commit(NULL));
    assert_false(bly_draft_put(NULL, "x", 1));
}
TRY(bly_draft_new_in)
{
    bly_draft *x;
    (void)unused;
    GIVES_NULL(x, bly_draft_new_in(0, NULL, NULL, NULL, &x));
    REFUSED(bly_draft_new_in(0, "x", NULL, NULL, NULL));
}
TRY(bly_draft_swap)
{
    (void)unused;
    REFUSED(bly_draft_swap(NULL, NULL));
    assert_false(bly_draft_skip(NULL, 1));
}
TRY(bly_scratch_file)
{
    int fd;
    (void)unused;
    REFUSED(bly_scratch_file(NULL, &fd));
    REFUSED(bly_scratch_file("/tmp", NULL));
}
TRY(bly_folder_make)
{
    (void)unused;
    REFUSED(bly_folder_make(NULL));
}
TRY(bly_open)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_open(NULL, NULL, &x));
    REFUSED(bly_open("/dev/null", NULL, NULL));
}
TRY(bly_map)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_map(NULL, NULL, &x));
    REFUSED(bly_map("/dev/null", NULL, NULL));
}
TRY(bly_combine_file)
{
    (void)unused;
    REFUSED(bly_combine_file(NULL, BLY_UNION, "/dev/null"));
    REFUSED(bly_combine_file(f, BLY_UNION, NULL));
}
TRY(bly_combine_read)
{
    (void)unused;
    REFUSED(bly_combine_read(NULL, BLY_UNION, no_get, NULL));
    REFUSED(bly_combine_read(f, BLY_UNION, NULL, NULL));
}
TRY(bly_unlock)
{
    (void)unused;
    static const unsigned char secret[BLY_SECRET_BYTES];
    REFUSED(bly_unlock(NULL, secret));
    REFUSED(bly_unlock(f, NULL));
}

TRY(bly_set_blind)
{
    (void)unused;
    REFUSED(bly_set_blind(NULL, 1));
}

TRY(bly_verify)
{
    (void)unused;
    REFUSED(bly_verify(NULL));
}
TRY(bly_damage)
{
    (void)unused;
    REFUSED(bly_damage(NULL));
}
TRY(bly_update)
{
    (void)unused;
    REFUSED(bly_update(NULL, NULL, no_change, NULL));
    REFUSED(bly_update("/dev/null", NULL, NULL, NULL));
}
TRY(bly_keeper_new)
{
    bly_keeper *x;
    (void)unused;
    GIVES_NULL(x, bly_keeper_new(NULL, NULL, NULL, &x));
    REFUSED(bly_keeper_new("/dev/null", NULL, NULL, NULL));
}
TRY(bly_keeper_save)
{
    (void)unused;
    REFUSED(bly_keeper_save(NULL));
}
TRY(bly_delta_write)
{
    (void)unused;
    REFUSED(bly_delta_write(NULL, g, no_put, NULL, NULL));
    REFUSED(bly_delta_write(f, NULL, no_put, NULL, NULL));
    REFUSED(bly_delta_write(f, g, NULL, NULL, NULL));
}
TRY(bly_delta_save)
{
    (void)unused;
    REFUSED(bly_delta_save(NULL, g, "/dev/null", NULL));
    REFUSED(bly_delta_save(f, NULL, "/dev/null", NULL));
    REFUSED(bly_delta_save(f, g, NULL, NULL));
}
TRY(bly_delta_apply)
{
    (void)unused;
    REFUSED(bly_delta_apply(NULL, "x", 1, NULL));
    REFUSED(bly_delta_apply(f, NULL, 1, NULL));
}
TRY(bly_delta_read)
{
    (void)unused;
    REFUSED(bly_delta_read(NULL, no_get, NULL, NULL));
    REFUSED(bly_delta_read(f, NULL, NULL, NULL));
}
TRY(bly_topk_new)
{
    bly_topk *x;
    const bly_topk_spec s = { .k = 1 };
    (void)unused;
    GIVES_NULL(x, bly_topk_new(NULL, &x));
    REFUSED(bly_topk_new(&s, NULL));
}
static bly_topk *new_topk(void)
{
    bly_topk *t;
    assert_ok(bly_topk_new(&(bly_topk_spec){ .k = 1 }, &t));
    return t;
}
TRY(bly_topk_add)
{
    bly_topk *t = new_topk();
    (void)unused;
    REFUSED(bly_topk_add(NULL, "key", 3, 1));
    REFUSED(bly_topk_add(t, NULL, 3, 1));
    bly_topk_free(t);
}
TRY(bly_topk_add_keys)
{
    bly_topk *t = new_topk();
    (void)unused;
    REFUSED(bly_topk_add_keys(NULL, &one_key, NULL, 1, NULL));
    REFUSED(bly_topk_add_keys(t, NULL, NULL, 1, NULL));
    bly_topk_free(t);
}
TRY(bly_topk_merge)
{
    bly_topk *t = new_topk();
    (void)unused;
    REFUSED(bly_topk_merge(NULL, t));
    REFUSED(bly_topk_merge(t, NULL));
    bly_topk_free(t);
}
TRY(bly_place_new)
{
    const bly_place_spec none = { .n = 1 };
    bly_place *p;
    (void)unused;
    GIVES_NULL(p, bly_place_new(NULL, &p));
    GIVES_NULL(p, bly_place_new(&none, &p));
    REFUSED(bly_place_new(&none, NULL));
}
TRY(bly_place_take)
{
    const bly_place_spec one = { .rule = "bounded", .names = &one_key, .n = 1 };
    bly_place *p;
    uint32_t member;
    (void)unused;
    assert_ok(bly_place_new(&one, &p));
    REFUSED(bly_place_take(NULL, 1, &member));
    REFUSED(bly_place_take(p, 1, NULL));
    assert_status(bly_place_give(p, 0), BLY_EINVAL); /* nothing was counted */
    bly_place_free(p);
}
TRY(bly_place_give)
{
    (void)unused;
    REFUSED(bly_place_give(NULL, 0));
}
TRY(bly_few_build)
{
    unsigned char room[64];
    size_t n;
    (void)unused;
    REFUSED(bly_few_build(NULL, 1, 7, room, sizeof room, &n));
    REFUSED(bly_few_build(words, 1, 7, NULL, 64, &n));
    REFUSED(bly_few_build(words, 1, 7, room, sizeof room, NULL));
}
TRY(bly_coded_new)
{
    const bly_coding how = { 0 };
    bly_coded *x;
    (void)unused;
    GIVES_NULL(x, bly_coded_new(NULL, 0, 1, &x));
    REFUSED(bly_coded_new(&how, 0, 1, NULL));
}
TRY(bly_coded_add)
{
    (void)unused;
    REFUSED(bly_coded_add(NULL, "12345678", 1));
}
TRY(bly_coded_remove)
{
    (void)unused;
    REFUSED(bly_coded_remove(NULL, "12345678", 1));
}
TRY(bly_differ_new)
{
    const bly_coding how = { 0 };
    bly_differ *x;
    (void)unused;
    GIVES_NULL(x, bly_differ_new(NULL, &x));
    REFUSED(bly_differ_new(&how, NULL));
}
TRY(bly_differ_take)
{
    (void)unused;
    REFUSED(bly_differ_take(NULL, NULL, "", 0));
}
TRY(bly_strata_new)
{
    const bly_coding how = { 0 };
    bly_strata *x;
    (void)unused;
    GIVES_NULL(x, bly_strata_new(NULL, &x));
    REFUSED(bly_strata_new(&how, NULL));
}
TRY(bly_strata_add)
{
    (void)unused;
    REFUSED(bly_strata_add(NULL, "12345678", 1));
}
TRY(bly_strata_add_coded)
{
    const bly_coding how = { 0 };
    bly_strata *x;
    (void)unused;
    REFUSED(bly_strata_add_coded(NULL, NULL, "12345678", 1));
    if (!bly_strata_new(&how, &x))
        REFUSED(bly_strata_add_coded(x, NULL, "12345678", 1));
    bly_strata_free(x);
}
TRY(bly_strata_estimate)
{
    uint64_t about;
    (void)unused;
    REFUSED(bly_strata_estimate(NULL, "", 0, &about));
}
TRY(bly_elements_sort)
{
    size_t n = 1;
    (void)unused;
    REFUSED(bly_elements_sort(NULL, &n));
    REFUSED(bly_elements_sort(NULL, NULL));
}
TRY(bly_outline_new)
{
    bly_outline *x;
    (void)unused;
    GIVES_NULL(x, bly_outline_new(NULL, NULL, 1, &x));
    REFUSED(bly_outline_new(NULL, NULL, 0, NULL));
}
TRY(bly_outline_load)
{
    bly_outline *x;
    (void)unused;
    GIVES_NULL(x, bly_outline_load(NULL, 1, NULL, &x));
    REFUSED(bly_outline_load("", 0, NULL, NULL));
}
TRY(bly_outline_lacking)
{
    size_t n;
    (void)unused;
    REFUSED(bly_outline_lacking(NULL, NULL, 0, 1, NULL, &n, NULL));
}
TRY(bly_sorted_new)
{
    bly_sorted *x;
    (void)unused;
    GIVES_NULL(x, bly_sorted_new(NULL, 1, 32, NULL, NULL, &x));
    REFUSED(bly_sorted_new(NULL, 0, 32, NULL, NULL, NULL));
}
TRY(bly_sorted_load)
{
    bly_sorted *x;
    (void)unused;
    GIVES_NULL(x, bly_sorted_load(NULL, 1, NULL, &x));
    REFUSED(bly_sorted_load("", 0, NULL, NULL));
}
/* An index of one document, which nobody sees before the commit. */
static const bly_index_class index_class = { "words", 0.01 };
static const bly_index_spec index_spec = { .classes = &index_class,
                                           .nclasses = 1 };
static const bly_index_terms index_terms = { words, 1 };
static bly_index_builder *index_begun(void)
{
    bly_index_builder *b;
    assert_ok(bly_index_builder_new("/tmp/bloomery-null.blx", &index_spec, &b));
    return b;
}
TRY(bly_index_plan_for)
{
    const bly_index_wish wish = { 0 };
    bly_index_plan plan;
    (void)unused;
    REFUSED(bly_index_plan_for(NULL, &plan));
    REFUSED(bly_index_plan_for(&wish, NULL));
}
TRY(bly_index_builder_new)
{
    bly_index_builder *x;
    (void)unused;
    GIVES_NULL(x, bly_index_builder_new(NULL, &index_spec, &x));
    GIVES_NULL(x, bly_index_builder_new("a", NULL, &x));
    REFUSED(bly_index_builder_new("a", &index_spec, NULL));
}
TRY(bly_index_builder_open)
{
    bly_index_builder *x;
    (void)unused;
    GIVES_NULL(x, bly_index_builder_open(NULL, NULL, &x));
    REFUSED(bly_index_builder_open("a", NULL, NULL));
}
TRY(bly_index_builder_add)
{
    bly_index_builder *const b = index_begun();
    (void)unused;
    REFUSED(bly_index_builder_add(NULL, &index_terms, "", 0, NULL));
    REFUSED(bly_index_builder_add(b, NULL, "", 0, NULL));
    REFUSED(bly_index_builder_add(b, &index_terms, NULL, 1, NULL));
    REFUSED(bly_index_builder_add(b, &(bly_index_terms){ NULL, 1 }, "", 0,
                                  NULL));
    bly_index_builder_free(b);
}
TRY(bly_index_column_new)
{
    bly_index_builder *const b = index_begun();
    bly_index_column *x;
    (void)unused;
    GIVES_NULL(x, bly_index_column_new(NULL, &index_terms, &x));
    GIVES_NULL(x, bly_index_column_new(b, NULL, &x));
    REFUSED(bly_index_column_new(b, &index_terms, NULL));
    bly_index_builder_free(b);
}
TRY(bly_index_builder_place)
{
    bly_index_builder *const b = index_begun();
    bly_index_column *c;
    (void)unused;
    assert_ok(bly_index_column_new(b, &index_terms, &c));
    REFUSED(bly_index_builder_place(NULL, c, "", 0, NULL)); /* frees it */
    REFUSED(bly_index_builder_place(b, NULL, "", 0, NULL));
    bly_index_builder_free(b);
}
TRY(bly_index_builder_drop)
{
    (void)unused;
    REFUSED(bly_index_builder_drop(NULL, 0));
}
TRY(bly_index_builder_merge)
{
    bly_index_builder *const b = index_begun();
    (void)unused;
    REFUSED(bly_index_builder_merge(NULL, NULL, NULL));
    REFUSED(bly_index_builder_merge(b, NULL, NULL));
    bly_index_builder_free(b);
}
TRY(bly_index_builder_set)
{
    bly_index_builder *const b = index_begun();
    (void)unused;
    REFUSED(bly_index_builder_set(NULL, "a", "b", 1));
    REFUSED(bly_index_builder_set(b, NULL, "b", 1));
    REFUSED(bly_index_builder_set(b, "a", NULL, 1));
    bly_index_builder_free(b);
}
TRY(bly_index_builder_commit)
{
    (void)unused;
    REFUSED(bly_index_builder_commit(NULL));
}
TRY(bly_index_map)
{
    bly_index *x;
    (void)unused;
    GIVES_NULL(x, bly_index_map(NULL, NULL, &x));
    REFUSED(bly_index_map("a", NULL, NULL));
}
TRY(bly_index_load)
{
    bly_index *x;
    (void)unused;
    GIVES_NULL(x, bly_index_load(NULL, 1, NULL, &x));
    REFUSED(bly_index_load("", 0, NULL, NULL));
}
TRY(bly_index_ask)
{
    (void)unused;
    REFUSED(bly_index_ask(NULL, NULL, 0, words));
}
TRY(bly_index_ask_each)
{
    (void)unused;
    REFUSED(bly_index_ask_each(NULL, 0, NULL, 0, words));
}
TRY(bly_index_coverage)
{
    uint32_t counts[1];
    (void)unused;
    REFUSED(bly_index_coverage(NULL, 0, NULL, 0, counts));
}
TRY(bly_index_document)
{
    bly_bytes blob;
    (void)unused;
    REFUSED(bly_index_document(NULL, 0, &blob));
}
TRY(bly_index_damage)
{
    (void)unused;
    REFUSED(bly_index_damage(NULL));
}
TRY(bly_index_verify)
{
    (void)unused;
    REFUSED(bly_index_verify(NULL));
}
TRY(bly_hll_new)
{
    (void)unused;
    REFUSED(bly_hll_new(0, NULL, NULL));
}
TRY(bly_hll_merge)
{
    bly_hll *h;
    (void)unused;
    assert_ok(bly_hll_new(0, NULL, &h));
    REFUSED(bly_hll_merge(NULL, h));
    REFUSED(bly_hll_merge(h, NULL));
    bly_hll_free(h);
}
TRY(bly_hll_load)
{
    bly_hll *h;
    (void)unused;
    GIVES_NULL(h, bly_hll_load(NULL, 1, NULL, &h));
    REFUSED(bly_hll_load("x", 1, NULL, NULL));
}
static bly_hll *new_hll(void)
{
    bly_hll *h;
    assert_ok(bly_hll_new(0, NULL, &h));
    return h;
}
TRY(bly_hll_add)
{
    bly_hll *h = new_hll();
    (void)unused;
    REFUSED(bly_hll_add(NULL, words, 1));
    REFUSED(bly_hll_add(h, NULL, 1));
    bly_hll_free(h);
}
TRY(bly_hll_set_hasher)
{
    bly_hll *h = new_hll();
    (void)unused;
    REFUSED(bly_hll_set_hasher(NULL, bly_hll_hasher(h)));
    REFUSED(bly_hll_set_hasher(h, NULL));
    bly_hll_free(h);
}
TRY(bly_hll_copy)
{
    bly_hll *h = new_hll(), *copy;
    (void)unused;
    GIVES_NULL(copy, bly_hll_copy(NULL, &copy));
    REFUSED(bly_hll_copy(h, NULL));
    bly_hll_free(h);
}
TRY(bly_hll_common)
{
    bly_hll *h = new_hll();
    const bly_hll *both[] = { h, NULL };
    double n;
    (void)unused;
    REFUSED(bly_hll_common(NULL, 1, &n, NULL));
    REFUSED(bly_hll_common(both, 1, NULL, NULL));
    REFUSED(bly_hll_common(both, 2, &n, NULL));
    bly_hll_free(h);
}
TRY(bly_hll_only)
{
    bly_hll *h = new_hll();
    const bly_hll *none = NULL;
    double n;
    (void)unused;
    REFUSED(bly_hll_only(NULL, NULL, 0, &n, NULL));
    REFUSED(bly_hll_only(h, NULL, 1, &n, NULL));
    REFUSED(bly_hll_only(h, &none, 1, &n, NULL));
    REFUSED(bly_hll_only(h, NULL, 0, NULL, NULL));
    bly_hll_free(h);
}
TRY(bly_hll_save)
{
    bly_hll *h = new_hll();
    (void)unused;
    REFUSED(bly_hll_save(NULL, "x"));
    REFUSED(bly_hll_save(h, NULL));
    bly_hll_free(h);
}
TRY(bly_hll_open)
{
    bly_hll *h;
    (void)unused;
    GIVES_NULL(h, bly_hll_open(NULL, NULL, &h));
    REFUSED(bly_hll_open("x", NULL, NULL));
}
TRY(bly_topk_save)
{
    bly_topk *t = new_topk();
    (void)unused;
    REFUSED(bly_topk_save(NULL, "x"));
    REFUSED(bly_topk_save(t, NULL));
    bly_topk_free(t);
}
TRY(bly_topk_open)
{
    bly_topk *t;
    (void)unused;
    GIVES_NULL(t, bly_topk_open(NULL, NULL, &t));
    REFUSED(bly_topk_open("x", NULL, NULL));
}
static bly_tdigest *new_tdigest(void)
{
    bly_tdigest *t;
    assert_ok(bly_tdigest_new(NULL, &t));
    return t;
}
TRY(bly_tdigest_new)
{
    (void)unused;
    REFUSED(bly_tdigest_new(NULL, NULL));
}
TRY(bly_tdigest_copy)
{
    bly_tdigest *t = new_tdigest(), *x;
    (void)unused;
    REFUSED(bly_tdigest_copy(NULL, &x));
    REFUSED(bly_tdigest_copy(t, NULL));
    bly_tdigest_free(t);
}
TRY(bly_tdigest_add)
{
    bly_tdigest *t = new_tdigest();
    const double one = 1;
    (void)unused;
    REFUSED(bly_tdigest_add(NULL, &one, NULL, 1));
    REFUSED(bly_tdigest_add(t, NULL, NULL, 1));
    bly_tdigest_free(t);
}
TRY(bly_tdigest_merge)
{
    bly_tdigest *t = new_tdigest();
    (void)unused;
    REFUSED(bly_tdigest_merge(NULL, t));
    REFUSED(bly_tdigest_merge(t, NULL));
    bly_tdigest_free(t);
}
TRY(bly_tdigest_restore)
{
    bly_tdigest *x;
    const bly_tdigest_stats s = { .compression = 100, .nmerged = 1 };
    (void)unused;
    GIVES_NULL(x, bly_tdigest_restore(NULL, NULL, &x));
    GIVES_NULL(x, bly_tdigest_restore(&s, NULL, &x));
    REFUSED(bly_tdigest_restore(&s, NULL, NULL));
}
TRY(bly_tdigest_save)
{
    bly_tdigest *t = new_tdigest();
    (void)unused;
    REFUSED(bly_tdigest_save(NULL, "x"));
    REFUSED(bly_tdigest_save(t, NULL));
    bly_tdigest_free(t);
}
TRY(bly_tdigest_open)
{
    bly_tdigest *t;
    (void)unused;
    GIVES_NULL(t, bly_tdigest_open(NULL, NULL, &t));
    REFUSED(bly_tdigest_open("x", NULL, NULL));
}
TRY(bly_sketch_save)
{
    bly_sketch *s;
    (void)unused;
    assert_ok(bly_sketch_new(&(bly_sketch_spec){ 0 }, &s));
    REFUSED(bly_sketch_save(NULL, "x"));
    REFUSED(bly_sketch_save(s, NULL));
    bly_sketch_free(s);
}
TRY(bly_sketch_open)
{
    bly_sketch *s;
    (void)unused;
    GIVES_NULL(s, bly_sketch_open(NULL, NULL, &s));
    REFUSED(bly_sketch_open("x", NULL, NULL));
}
static bly_status no_stored_change(bly_stored *s, void *ctx)
{
    (void)s;
    (void)ctx;
    return BLY_OK;
}
TRY(bly_stored_write)
{
    bly_stored s = { .type = BLY_STORED_HLL, .hll = new_hll() };
    (void)unused;
    REFUSED(bly_stored_write(NULL, no_put, NULL));
    REFUSED(bly_stored_write(&s, NULL, NULL));
    bly_stored_free(&s);
}
TRY(bly_stored_save)
{
    bly_stored s = { .type = BLY_STORED_HLL, .hll = new_hll() };
    (void)unused;
    REFUSED(bly_stored_save(NULL, "x"));
    REFUSED(bly_stored_save(&s, NULL));
    bly_stored_free(&s);
}
TRY(bly_stored_load)
{
    bly_stored s;
    (void)unused;
    REFUSED(bly_stored_load(NULL, 1, NULL, &s));
    assert_int_equal(s.type, BLY_STORED_NONE);
    REFUSED(bly_stored_load("x", 1, NULL, NULL));
}
TRY(bly_stored_open)
{
    bly_stored s;
    (void)unused;
    REFUSED(bly_stored_open(NULL, NULL, &s));
    assert_int_equal(s.type, BLY_STORED_NONE);
    REFUSED(bly_stored_open("x", NULL, NULL));
}
TRY(bly_stored_merge)
{
    bly_stored s = { .type = BLY_STORED_HLL, .hll = new_hll() };
    (void)unused;
    REFUSED(bly_stored_merge(NULL, &s));
    REFUSED(bly_stored_merge(&s, NULL));
    bly_stored_free(&s);
}
TRY(bly_stored_update)
{
    (void)unused;
    REFUSED(bly_stored_update(NULL, NULL, NULL, no_stored_change, NULL));
    REFUSED(bly_stored_update("x", NULL, NULL, NULL, NULL));
}
TRY(bly_shingler_new)
{
    (void)unused;
    REFUSED(bly_shingler_new(NULL, NULL, NULL));
}
TRY(bly_shingle)
{
    bly_shingler *s;
    bly_shingles x;
    (void)unused;
    assert_ok(bly_shingler_new(NULL, NULL, &s));
    REFUSED(bly_shingle(NULL, "x", 1, &x));
    REFUSED(bly_shingle(s, NULL, 1, &x));
    REFUSED(bly_shingle(s, "x", 1, NULL));
    bly_shingler_free(s);
}

TRY(bly_family_named)
{
    bly_family family;
    (void)unused;
    REFUSED(bly_family_named(NULL, &family));
    REFUSED(bly_family_named("fss", NULL));
}

TRY(bly_sketch_spec_check)
{
    (void)unused;
    REFUSED(bly_sketch_spec_check(NULL));
}
TRY(bly_sketch_spec_fits)
{
    const bly_sketch_spec s = { .k = 8 };
    (void)unused;
    REFUSED(bly_sketch_spec_fits(NULL, &s));
    REFUSED(bly_sketch_spec_fits(&s, NULL));
}
TRY(bly_sketch_spec_read)
{
    bly_sketch_spec s;
    (void)unused;
    REFUSED(bly_sketch_spec_read(NULL, 1, &s));
    REFUSED(bly_sketch_spec_read("x", 1, NULL));
}
TRY(bly_sketch_new)
{
    bly_sketch *s;
    const bly_sketch_spec x = { .k = 8 };
    (void)unused;
    GIVES_NULL(s, bly_sketch_new(NULL, &s));
    REFUSED(bly_sketch_new(&x, NULL));
}
static bly_sketch *new_sketch(void)
{
    bly_sketch *s;
    assert_ok(bly_sketch_new(&(bly_sketch_spec){ .k = 8 }, &s));
    return s;
}
TRY(bly_sketch_add)
{
    bly_sketch *s = new_sketch();
    (void)unused;
    REFUSED(bly_sketch_add(NULL, words, 1));
    REFUSED(bly_sketch_add(s, NULL, 1));
    bly_sketch_free(s);
}
TRY(bly_sketch_merge)
{
    bly_sketch *s = new_sketch();
    (void)unused;
    REFUSED(bly_sketch_merge(NULL, s));
    REFUSED(bly_sketch_merge(s, NULL));
    bly_sketch_free(s);
}
TRY(bly_sketch_compare)
{
    bly_sketch *s = new_sketch();
    bly_resemblance r;
    (void)unused;
    REFUSED(bly_sketch_compare(NULL, s, &r));
    REFUSED(bly_sketch_compare(s, NULL, &r));
    REFUSED(bly_sketch_compare(s, s, NULL));
    bly_sketch_free(s);
}
TRY(bly_sketch_write)
{
    bly_sketch *s = new_sketch();
    (void)unused;
    REFUSED(bly_sketch_write(NULL, 0, words));
    REFUSED(bly_sketch_write(s, 0, NULL));
    bly_sketch_free(s);
}
TRY(bly_sketch_load)
{
    bly_sketch *s;
    (void)unused;
    GIVES_NULL(s, bly_sketch_load(NULL, 1, NULL, &s));
    REFUSED(bly_sketch_load("x", 1, NULL, NULL));
}
static bly_planes *new_planes(void)
{
    bly_planes *p;
    assert_ok(bly_planes_new(&(bly_planes_spec){ .dims = 1 }, &p));
    return p;
}
TRY(bly_planes_new)
{
    bly_planes *p;
    (void)unused;
    GIVES_NULL(p, bly_planes_new(NULL, &p));
    REFUSED(bly_planes_new(&(bly_planes_spec){ .dims = 1 }, NULL));
}
static const float one_float = 1;
static const bly_vectors one_vector = { .at = &one_float, .n = 1, .dims = 1 };
static const bly_vectors no_vector = { .n = 1, .dims = 1 };
TRY(bly_planes_sides)
{
    bly_planes *p = new_planes();
    (void)unused;
    REFUSED(bly_planes_sides(NULL, &one_vector, words, NULL));
    REFUSED(bly_planes_sides(p, NULL, words, NULL));
    REFUSED(bly_planes_sides(p, &no_vector, words, NULL));
    REFUSED(bly_planes_sides(p, &one_vector, NULL, NULL));
    bly_planes_free(p);
}
TRY(bly_planes_sides_sparse)
{
    bly_planes *p = new_planes();
    (void)unused;
    const bly_sparse v = { words, NULL, 1 }, no_places = { NULL, NULL, 1 };
    REFUSED(bly_planes_sides_sparse(NULL, &v, words));
    REFUSED(bly_planes_sides_sparse(p, NULL, words));
    REFUSED(bly_planes_sides_sparse(p, &no_places, words));
    REFUSED(bly_planes_sides_sparse(p, &v, NULL));
    bly_planes_free(p);
}
static bly_status no_pairs(const bly_near_pair *pairs, size_t n, void *ctx)
{
    (void)pairs;
    (void)n;
    (void)ctx;
    return BLY_OK;
}
static const bly_near_spec near_spec;
TRY(bly_near_pairs)
{
    (void)unused;
    REFUSED(bly_near_pairs(NULL, &near_spec, no_pairs, NULL, NULL));
    REFUSED(bly_near_pairs(&no_vector, &near_spec, no_pairs, NULL, NULL));
    REFUSED(bly_near_pairs(&one_vector, NULL, no_pairs, NULL, NULL));
    REFUSED(bly_near_pairs(&one_vector, &near_spec, NULL, NULL, NULL));
}
TRY(bly_near_dedup)
{
    (void)unused;
    REFUSED(bly_near_dedup(NULL, &near_spec, words, NULL, NULL));
    REFUSED(bly_near_dedup(&one_vector, NULL, words, NULL, NULL));
    REFUSED(bly_near_dedup(&one_vector, &near_spec, NULL, NULL, NULL));
}
TRY(bly_near_of)
{
    (void)unused;
    REFUSED(bly_near_of(NULL, &one_vector, &near_spec, no_pairs, NULL, NULL));
    REFUSED(bly_near_of(&one_vector, NULL, &near_spec, no_pairs, NULL, NULL));
    REFUSED(bly_near_of(&one_vector, &one_vector, NULL, no_pairs, NULL, NULL));
    REFUSED(bly_near_of(&one_vector, &one_vector, &near_spec, NULL, NULL, NULL));
}
TRY(bly_bands_choose)
{
    (void)unused;
    REFUSED(bly_bands_choose(128, 0.8, 0, NULL));
}
TRY(bly_bands_balance)
{
    (void)unused;
    REFUSED(bly_bands_balance(128, 0.8, NULL));
}
TRY(bly_foreign_open)
{
    bly_foreign *x;
    (void)unused;
    GIVES_NULL(x, bly_foreign_open(NULL, NULL, 1, &x));
    REFUSED(bly_foreign_open(NULL, "x", 1, NULL));
}
static const bly_foreign_spec guava = { .format = "guava", .items = 10 };
static bly_foreign *new_foreign(void)
{
    bly_foreign *x;
    assert_ok(bly_foreign_new(&guava, &x));
    return x;
}
TRY(bly_foreign_new)
{
    bly_foreign *x;
    (void)unused;
    GIVES_NULL(x, bly_foreign_new(NULL, &x));
    REFUSED(bly_foreign_new(&guava, NULL));
    bly_foreign_spec odd = guava;
    odd.noptions = 1;
    GIVES_NULL(x, bly_foreign_new(&odd, &x));
    odd.options = &(bly_option){ NULL, "1" };
    GIVES_NULL(x, bly_foreign_new(&odd, &x));
}
TRY(bly_foreign_repack)
{
    bly_foreign *x = new_foreign(), *y;
    (void)unused;
    GIVES_NULL(y, bly_foreign_repack(NULL, x, &y));
    GIVES_NULL(y, bly_foreign_repack(&guava, NULL, &y));
    REFUSED(bly_foreign_repack(&guava, x, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_has)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_has(NULL, &one_key, 1, words, NULL));
    REFUSED(bly_foreign_has(x, NULL, 1, words, NULL));
    REFUSED(bly_foreign_has(x, &one_key, 1, NULL, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_where)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_where(NULL, one_key, words));
    REFUSED(bly_foreign_where(x, one_key, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_add)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_add(NULL, &one_key, 1, NULL, NULL));
    REFUSED(bly_foreign_add(x, NULL, 1, NULL, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_add_new)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_add_new(NULL, &one_key, 1, NULL, NULL));
    REFUSED(bly_foreign_add_new(x, NULL, 1, NULL, NULL));
    bly_foreign_free(x);
}
TRY(bly_blocked_added)
{
    (void)unused;
    REFUSED(bly_blocked_added(NULL, 1));
}
TRY(bly_foreign_write)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_write(NULL, no_put, NULL));
    REFUSED(bly_foreign_write(x, NULL, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_save)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_save(NULL, "/dev/null"));
    REFUSED(bly_foreign_save(x, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_edit)
{
    bly_foreign *x;
    (void)unused;
    GIVES_NULL(x, bly_foreign_edit(NULL, NULL, 1, &x));
    REFUSED(bly_foreign_edit(NULL, "x", 1, NULL));
}
static bly_status keep_foreign(bly_foreign *x, void *ctx)
{
    (void)x, (void)ctx;
    return BLY_OK;
}
TRY(bly_foreign_update)
{
    (void)unused;
    REFUSED(bly_foreign_update(NULL, NULL, NULL, keep_foreign, NULL));
    REFUSED(bly_foreign_update("none", NULL, NULL, NULL, NULL));
}
TRY(bly_foreign_copy)
{
    bly_foreign *x = new_foreign(), *y;
    (void)unused;
    GIVES_NULL(y, bly_foreign_copy(NULL, &y));
    REFUSED(bly_foreign_copy(x, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_remove)
{
    (void)unused;
    REFUSED(bly_foreign_remove(NULL, one_key));
}
TRY(bly_foreign_count)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_count(NULL, &one_key, 1, words));
    REFUSED(bly_foreign_count(x, NULL, 1, words));
    REFUSED(bly_foreign_count(x, &one_key, 1, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_increase)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_increase(NULL, &one_key, NULL, 1, words));
    REFUSED(bly_foreign_increase(x, NULL, NULL, 1, words));
    REFUSED(bly_foreign_increase(x, &one_key, NULL, 1, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_increase_each)
{
    bly_foreign *x = new_foreign();
    (void)unused;
    REFUSED(bly_foreign_increase_each(NULL, &one_key, NULL, 1, NULL, NULL));
    REFUSED(bly_foreign_increase_each(x, NULL, NULL, 1, NULL, NULL));
    REFUSED(bly_foreign_increase_each(x, &one_key, NULL, 1, NULL, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_sums_new)
{
    bly_foreign *x = new_foreign();
    const bly_foreign *const from[] = { x };
    const int64_t weight = 1;
    bly_foreign_sums *s;
    (void)unused;
    GIVES_NULL(s, bly_foreign_sums_new(NULL, from, &weight, 1, &s));
    GIVES_NULL(s, bly_foreign_sums_new(x, NULL, &weight, 1, &s));
    GIVES_NULL(s, bly_foreign_sums_new(x, from, NULL, 1, &s));
    REFUSED(bly_foreign_sums_new(x, from, &weight, 1, NULL));
    bly_foreign_sums_free(NULL);
    bly_foreign_free(x);
}
static bly_foreign *small_sketch(bly_foreign_sums **sums)
{
    const bly_foreign_spec sketch = { .format = "rediscms" };
    const int64_t weight = 1;
    bly_foreign *x;
    assert_ok(bly_foreign_new(&sketch, &x));
    const bly_foreign *const from[] = { x };
    assert_ok(bly_foreign_sums_new(x, from, &weight, 1, sums));
    return x;
}
TRY(bly_foreign_sums_some)
{
    bly_foreign_sums *s;
    bly_foreign *x = small_sketch(&s);
    const bly_foreign *const from[] = { x };
    uint64_t nleft;
    (void)unused;
    REFUSED(bly_foreign_sums_some(NULL, x, from, 1, &nleft));
    REFUSED(bly_foreign_sums_some(s, NULL, from, 1, &nleft));
    REFUSED(bly_foreign_sums_some(s, x, NULL, 1, &nleft));
    REFUSED(bly_foreign_sums_some(s, x, from, 1, NULL));
    bly_foreign_sums_free(s);
    bly_foreign_free(x);
}
TRY(bly_foreign_sums_end)
{
    bly_foreign_sums *s;
    bly_foreign *x = small_sketch(&s);
    const bly_foreign *const from[] = { x };
    bool changed;
    (void)unused;
    REFUSED(bly_foreign_sums_end(NULL, x, from, &changed));
    REFUSED(bly_foreign_sums_end(s, NULL, from, &changed));
    REFUSED(bly_foreign_sums_end(s, x, NULL, &changed));
    REFUSED(bly_foreign_sums_end(s, x, from, NULL));
    bly_foreign_sums_free(s);
    bly_foreign_free(x);
}
TRY(bly_cloning_new)
{
    bly_cloning *c;
    (void)unused;
    GIVES_NULL(c, bly_cloning_new(NULL, &c));
    REFUSED(bly_cloning_new(f, NULL));
    bly_cloning_free(NULL);
}
TRY(bly_cloning_some)
{
    bly_filter *copy;
    bly_cloning *c;
    (void)unused;
    assert_ok(bly_cloning_new(f, &c));
    GIVES_NULL(copy, bly_cloning_some(NULL, 1, &copy));
    REFUSED(bly_cloning_some(c, 1, NULL));
    bly_cloning_free(c);
}
TRY(bly_foreign_sum)
{
    bly_foreign *x = new_foreign();
    const bly_foreign *const from[] = { x };
    const int64_t weight = 1;
    (void)unused;
    REFUSED(bly_foreign_sum(NULL, from, &weight, 1));
    REFUSED(bly_foreign_sum(x, NULL, &weight, 1));
    REFUSED(bly_foreign_sum(x, from, NULL, 1));
    bly_foreign_free(x);
}
TRY(bly_foreign_compact)
{
    (void)unused;
    REFUSED(bly_foreign_compact(NULL));
}
TRY(bly_foreign_scales)
{
    (void)unused;
    REFUSED(bly_foreign_scales(NULL, 1, words));
    REFUSED(bly_foreign_scales(&guava, 1, NULL));
}
TRY(bly_foreign_start)
{
    bly_foreign *x;
    (void)unused;
    GIVES_NULL(x, bly_foreign_start(NULL, "x", 1, &x));
    GIVES_NULL(x, bly_foreign_start(&guava, NULL, 1, &x));
    REFUSED(bly_foreign_start(&guava, "x", 1, NULL));
}
TRY(bly_foreign_store)
{
    bly_foreign *x = new_foreign();
    const bly_foreign_record none = { 0 };
    (void)unused;
    REFUSED(bly_foreign_store(NULL, &none));
    REFUSED(bly_foreign_store(x, NULL));
    bly_foreign_free(x);
}
TRY(bly_foreign_restore)
{
    bly_foreign *x;
    const bly_foreign_record none = { 0 };
    (void)unused;
    GIVES_NULL(x, bly_foreign_restore(NULL, 0, &none, &x));
    GIVES_NULL(x, bly_foreign_restore(&guava, 0, NULL, &x));
    REFUSED(bly_foreign_restore(&guava, 0, &none, NULL));
}
TRY(bly_parquet_open)
{
    bly_parquet *p;
    (void)unused;
    GIVES_NULL(p, bly_parquet_open(NULL, 1, NULL, &p));
    REFUSED(bly_parquet_open("x", 1, NULL, NULL));
}
TRY(bly_parquet_column_named)
{
    size_t n;
    (void)unused;
    REFUSED(bly_parquet_column_named(NULL, "x", &n));
}
TRY(bly_parquet_page_next)
{
    bly_parquet_page page;
    (void)unused;
    REFUSED(bly_parquet_page_next(NULL, 0, 0, words, &page));
}
TRY(bly_parquet_filter_begin)
{
    (void)unused;
    REFUSED(bly_parquet_filter_begin(NULL, 0, 0, 1, 0.01));
}
TRY(bly_parquet_filter_end)
{
    (void)unused;
    REFUSED(bly_parquet_filter_end(NULL, NULL));
}
TRY(bly_parquet_write)
{
    (void)unused;
    REFUSED(bly_parquet_write(NULL, no_put, NULL));
}
static bly_node *some_node(void)
{
    bly_node *v;
    assert_ok(bly_node_new(&spec, 1, 0, &v));
    assert_ok(bly_node_link(v, "x"));
    return v;
}
/* The same for the calls of a node. */
#define TRY_NODE(name, ...)            \
    TRY(name)                          \
    {                                  \
        bly_node *v = some_node();     \
        (void)unused;                  \
        __VA_ARGS__                    \
        bly_node_free(v);              \
    }
TRY(bly_node_new)
{
    bly_node *v;
    (void)unused;
    GIVES_NULL(v, bly_node_new(NULL, 1, 0, &v));
    REFUSED(bly_node_new(&spec, 1, 0, NULL));
}
TRY_NODE(bly_node_add, REFUSED(bly_node_add(NULL, "k", 1));
                       REFUSED(bly_node_add(v, NULL, 1));)
TRY_NODE(bly_node_remove, REFUSED(bly_node_remove(NULL, "k", 1));
                          REFUSED(bly_node_remove(v, NULL, 1));)
TRY_NODE(bly_node_add_hashes, REFUSED(bly_node_add_hashes(NULL, words, 1));
                              REFUSED(bly_node_add_hashes(v, NULL, 1));)
TRY_NODE(bly_node_remove_hashes,
         REFUSED(bly_node_remove_hashes(NULL, words, 1, NULL));
         REFUSED(bly_node_remove_hashes(v, NULL, 1, NULL));)
TRY_NODE(bly_node_link, REFUSED(bly_node_link(NULL, "y"));
                        REFUSED(bly_node_link(v, NULL));)
TRY_NODE(bly_node_unlink, REFUSED(bly_node_unlink(NULL, "x"));
                          REFUSED(bly_node_unlink(v, NULL));)
TRY_NODE(bly_node_distances, uint32_t hops[1];
         REFUSED(bly_node_distances(NULL, words, 1, hops, NULL));
         REFUSED(bly_node_distances(v, NULL, 1, hops, NULL));
         REFUSED(bly_node_distances(v, words, 1, NULL, NULL));)
TRY_NODE(bly_node_tell,
         REFUSED(bly_node_tell(NULL, "x", no_put, NULL, NULL));
         REFUSED(bly_node_tell(v, NULL, no_put, NULL, NULL));
         REFUSED(bly_node_tell(v, "x", NULL, NULL, NULL));)
TRY_NODE(bly_node_hear, REFUSED(bly_node_hear(NULL, "x", "m", 1, 0, NULL));
                        REFUSED(bly_node_hear(v, NULL, "m", 1, 0, NULL));
                        REFUSED(bly_node_hear(v, "x", NULL, 1, 0, NULL));)
TRY_NODE(bly_node_tick, REFUSED(bly_node_tick(NULL, 0, NULL));)
TRY_NODE(bly_node_write, REFUSED(bly_node_write(NULL, no_put, NULL));
                         REFUSED(bly_node_write(v, NULL, NULL));)
TRY_NODE(bly_node_save, REFUSED(bly_node_save(NULL, "/dev/null"));
                        REFUSED(bly_node_save(v, NULL));)
TRY(bly_node_load)
{
    bly_node *v;
    (void)unused;
    GIVES_NULL(v, bly_node_load(NULL, 1, 1, NULL, &v));
    REFUSED(bly_node_load("x", 1, 1, NULL, NULL));
}
TRY(bly_node_open)
{
    bly_node *v;
    (void)unused;
    GIVES_NULL(v, bly_node_open(NULL, 1, NULL, &v));
    REFUSED(bly_node_open("/dev/null", 1, NULL, NULL));
}
/* clang-format on */

/* Names that are NULL name nothing, where the answer is yes or no. */
static void names_that_are_null(void **unused)
{
    bly_kind_info kind;
    bly_format_info format;
    double real;
    (void)unused;
    assert_true(bly_kind_named(NULL, &kind)); /* the default one, as in specs */
    assert_false(bly_format_named(NULL, &format));
    assert_false(bly_parse_count(NULL, words));
    assert_false(bly_parse_real(NULL, &real));
    bly_free(NULL);
    bly_builder_free(NULL);
    bly_draft_abandon(NULL);
    bly_index_free(NULL);
    bly_index_builder_free(NULL);
    bly_index_column_free(NULL);
    bly_keeper_free(NULL);
    bly_node_free(NULL);
}

/* clang-format off */
TRY(bly_share)
{
    bly_filter *x;
    (void)unused;
    GIVES_NULL(x, bly_share(NULL, &spec, NULL, &x));
    REFUSED(bly_share("x.bly", &spec, NULL, NULL));
}
TRY(bly_live_make)
{
    (void)unused;
    REFUSED(bly_live_make(NULL, "x.bly"));
    REFUSED(bly_live_make(f, NULL));
}
TRY(bly_checkpoint)
{
    (void)unused;
    REFUSED(bly_checkpoint(NULL));
}
TRY(bly_live_of)
{
    bly_live l;
    (void)unused;
    REFUSED(bly_live_of(NULL, &l));
    REFUSED(bly_live_of(f, NULL));
}
TRY(bly_live_accept)
{
    (void)unused;
    REFUSED(bly_live_accept(NULL));
}
TRY(bly_live_replace)
{
    (void)unused;
    REFUSED(bly_live_replace(NULL, g, false));
    REFUSED(bly_live_replace(f, NULL, false));
}
TRY(bly_live_follow)
{
    bly_filter *none = NULL;
    (void)unused;
    REFUSED(bly_live_follow(NULL));
    REFUSED(bly_live_follow(&none));
}
#define ROWS(X) \
    X(share) X(live_make) X(checkpoint) X(live_of) X(live_accept) X(live_replace) X(live_follow) \
    X(plan) X(new) X(clone) X(become) X(hasher_for) X(add) X(remove) \
    X(add_hash) X(add_int) X(add_hashes) X(add_keys) X(add_column) X(add_ints) \
    X(hash_as) X(add_as) X(has_as) X(has_range) X(has_ranges) X(has_ranges_as) X(cells_open) X(cells_close) X(raw_get) X(raw_set) X(set_keying) X(set_note) X(set_pair) X(copy_meta) \
    X(remove_hashes) X(increase_hashes) X(count_hashes) X(get_hashes) \
    X(remove_keys) X(remove_ints) X(remove_as) X(increase) X(increase_keys) X(increase_ints) X(increase_as) \
    X(count) X(count_keys) X(count_ints) X(count_as) X(get_value) X(get_keys) X(get_ints) X(get_as) X(set_value) \
    X(build_keys) X(build_ints) X(build_as) X(builder_add_keys) X(builder_add_ints) X(builder_add_as) \
    X(set_hash) X(tick) X(builder_new) X(builder_add) X(builder_deny) X(builder_members) X(builder_beginning) X(builder_groups) X(builder_finish) \
    X(merge) X(intersect) X(compare) X(fold) X(convert) X(write) X(write_away) X(load) X(parts_new) \
    X(read) X(unlock) X(set_blind) X(save) X(file_save) X(draft_new) X(draft_commit) X(draft_new_in) X(draft_swap) X(scratch_file) \
    X(folder_make) X(open) X(map) X(combine_file) X(combine_read) X(verify) \
    X(damage) X(update) X(keeper_new) X(keeper_save) X(delta_write) X(delta_save) X(delta_apply) \
    X(delta_read) X(topk_new) X(topk_add) X(topk_add_keys) X(topk_merge) \
    X(coded_new) X(coded_add) X(coded_remove) X(differ_new) X(differ_take) X(strata_new) X(strata_add) X(strata_add_coded) X(strata_estimate) \
    X(elements_sort) X(outline_new) X(outline_load) X(outline_lacking) \
    X(few_build) X(place_new) X(place_take) X(place_give) X(sorted_new) X(sorted_load) \
    X(index_plan_for) X(index_builder_new) X(index_builder_open) X(index_builder_add) X(index_column_new) X(index_builder_place) \
    X(index_builder_drop) X(index_builder_merge) X(index_builder_set) X(index_builder_commit) X(index_map) X(index_load) \
    X(index_ask) X(index_ask_each) X(index_coverage) X(index_document) X(index_damage) X(index_verify) \
    X(hll_new) X(hll_merge) X(hll_load) X(shingler_new) X(shingle) \
    X(hll_add) X(hll_copy) X(hll_set_hasher) X(hll_common) X(hll_only) X(hll_save) X(hll_open) \
    X(tdigest_new) X(tdigest_copy) X(tdigest_add) X(tdigest_merge) X(tdigest_restore) X(tdigest_save) X(tdigest_open) X(topk_save) X(topk_open) X(sketch_save) X(sketch_open) X(stored_write) X(stored_save) \
    X(stored_load) X(stored_open) X(stored_merge) X(stored_update) \
    X(family_named) X(sketch_spec_check) X(sketch_spec_fits) X(sketch_spec_read) X(sketch_new) \
    X(sketch_add) X(sketch_merge) X(sketch_compare) X(sketch_write) \
    X(sketch_load) X(planes_new) X(planes_sides) X(planes_sides_sparse) X(near_pairs) X(near_dedup) X(near_of) \
    X(bands_choose) X(bands_balance) X(foreign_open) \
    X(foreign_new) X(foreign_repack) X(foreign_has) X(foreign_where) \
    X(foreign_add) X(foreign_add_new) X(blocked_added) \
    X(foreign_write) X(foreign_save) X(foreign_edit) \
    X(foreign_update) X(foreign_copy) X(foreign_remove) X(foreign_count) \
    X(foreign_increase) X(foreign_increase_each) X(foreign_sums_new) X(foreign_sums_some) X(foreign_sums_end) X(cloning_new) X(cloning_some) X(foreign_sum) X(foreign_compact) X(foreign_scales) X(foreign_start) X(foreign_store) \
    X(foreign_restore) X(parquet_open) \
    X(parquet_column_named) X(parquet_page_next) X(parquet_filter_begin) \
    X(parquet_filter_end) X(parquet_write) \
    X(node_new) X(node_add) X(node_remove) X(node_add_hashes) \
    X(node_remove_hashes) X(node_link) X(node_unlink) X(node_distances) \
    X(node_tell) X(node_hear) X(node_tick) X(node_write) X(node_save) \
    X(node_load) X(node_open)
/* clang-format on */

static const char *const rows[] = {
#define NAME(x) "bly_" #x,
    ROWS(NAME)
#undef NAME
};

/* The name of the function that a line of a header declares, if it returns a
 * status; "" otherwise. The name may be in the next line. */
static void name_of_function(FILE *in, char *line, int room, char name[64])
{
    static const char *const before[] = { "BLY_MUST_CHECK ", "static inline " };
    char *at = line;
    for (size_t i = 0; i < COUNT_OF(before); i++)
        if (strncmp(at, before[i], strlen(before[i])) == 0)
            at += strlen(before[i]);
    name[0] = '\0';
    if (strcmp(at, "bly_status\n") == 0 && fgets(line, room, in))
        (void)sscanf(line, "%63[a-z0-9_](", name);
    else if (sscanf(at, "bly_status %63[a-z0-9_](", name) != 1)
        (void)sscanf(at, "BLY_SIZED(bly_status, %63[a-z0-9_]", name);
    if (strstr(name, "_sized")) /* written out: two structs */
        *strstr(name, "_sized") = '\0';
}

/* How many functions of a header return a status. Each has a row here. */
static size_t with_status(const char *header)
{
    static bool seen[COUNT_OF(rows)];
    FILE *in = fopen(header, "r");
    char line[512], name[64];
    size_t found = 0;
    if (!in)
        skip_for("run from another folder: no header here");
    while (fgets(line, sizeof line, in)) {
        name_of_function(in, line, sizeof line, name);
        if (!*name)
            continue;
        size_t i = 0;
        while (i < COUNT_OF(rows) && strcmp(rows[i], name) != 0)
            i++;
        if (i == COUNT_OF(rows))
            fail_msg("%s has no test with NULL", name);
        found += !seen[i]; /* declared, and then defined */
        seen[i] = true;
    }
    fclose(in);
    return found;
}

/* There is no view of nothing, and none goes nowhere. */
static void no_view(void **unused)
{
    (void)unused;
    bly_blocked_adder adder;
    bly_blocked blocked;
    assert_false(bly_blocked_adder_of(NULL, &adder));
    assert_false(bly_blocked_adder_of(f, NULL));
    assert_false(bly_blocked_view(NULL, &blocked));
    assert_false(bly_blocked_view(f, NULL));
#define NO_VIEW(name)                                        \
    do {                                                     \
        const bly_spec of = { .kind = #name, .items = 100 }; \
        bly_filter *const filter = filled_from(&of, 0, 100); \
        bly_view_##name view;                                \
        assert_false(bly_view_of_##name(NULL, &view));       \
        assert_false(bly_view_of_##name(filter, NULL));      \
        assert_true(bly_view_of_##name(filter, &view));      \
        bly_free(filter);                                    \
    } while (0)
    NO_VIEW(classic);
    NO_VIEW(cuckoo);
    NO_VIEW(fuse);
    NO_VIEW(xor);
#undef NO_VIEW
}

static void none_is_forgotten(void **unused)
{
    (void)unused;
    size_t found = with_status("include/bloomery.h");
    glob_t headers;
    assert_int_equal(glob("include/bloomery/*.h", 0, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++)
        found += with_status(headers.gl_pathv[i]);
    globfree(&headers);
    found += with_status("src/host/host.h");
    found += with_status("src/host/foreign_host.h");
    assert_int_equal(found, COUNT_OF(rows));
}

static int set_up(void **unused)
{
    (void)unused;
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_new(&spec, &g));
    assert_ok(bly_add(f, "key", 3));
    return 0;
}

/* Nothing was touched. */
static int tear_down(void **unused)
{
    bly_filter *same;
    (void)unused;
    assert_ok(bly_new(&spec, &same));
    assert_true(bly_equal(g, same));
    assert_ok(bly_add(same, "key", 3));
    assert_true(bly_equal(f, same));
    bly_free(same);
    bly_free(f);
    bly_free(g);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define UNIT(x) cmocka_unit_test(bly_##x##_),
        ROWS(UNIT)
#undef UNIT
            cmocka_unit_test(names_that_are_null),
        cmocka_unit_test(no_view),
        cmocka_unit_test(none_is_forgotten),
    };
    return cmocka_run_group_tests_name("NULL arguments", tests, set_up,
                                       tear_down);
}
