/*
 * test_sized.c - structs of programs that were compiled for another version
 *
 * The functions of bloomery.h, sketch.h, vectors.h and foreign.h that take or
 * give a struct that may grow; those of parquet.h are in test_parquet.c.
 */
#define _GNU_SOURCE
#include "tests/sized_laws.h"

#include <unistd.h>

#include <bloomery/foreign.h>
#include <bloomery/live.h>
#include <bloomery/sketch.h>
#include <bloomery/vectors.h>

static bly_filter *f, *g; /* of three keys each, two of them in both */
static byte_array bytes;  /* of f */
static byte_array delta;  /* from f to g */
static char path[64];

/* What a call makes is freed; *out is NULL if it fails. */
#define MAKES(name, type, release, call)                        \
    static bly_status name##_call(void *object, size_t size)    \
    {                                                           \
        type *out = (type *)(void *)path; /* neither of both */ \
        const bly_status st = call;                             \
        assert_true((out == NULL) == (st != BLY_OK));           \
        release(out);                                           \
        return st;                                              \
    }
#define CALLS(name, call)                                    \
    static bly_status name##_call(void *object, size_t size) \
    {                                                        \
        return call;                                         \
    }

MAKES(bly_new, bly_filter, bly_free, bly_new_sized(object, &out, size))
MAKES(bly_builder_new, bly_builder, bly_builder_free,
      bly_builder_new_sized(object, &out, size))
static const bly_bytes one_key = { "key", 3 };
static const uint64_t one_int = 7;
MAKES(bly_build_keys, bly_filter, bly_free,
      bly_build_keys_sized(object, &one_key, 1, &out, size))
MAKES(bly_build_ints, bly_filter, bly_free,
      bly_build_ints_sized(object, &one_int, 1, &out, size))
MAKES(bly_build_as, bly_filter, bly_free,
      bly_build_as_sized(object, BLY_KEYS_UINT64, &one_int, NULL, 1, &out,
                         size))
MAKES(bly_load, bly_filter, bly_free,
      bly_load_sized(bytes.at, bytes.n, object, &out, size))
MAKES(bly_open, bly_filter, bly_free, bly_open_sized(path, object, &out, size))
MAKES(bly_map, bly_filter, bly_free, bly_map_sized(path, object, &out, size))
MAKES(bly_topk_new, bly_topk, bly_topk_free,
      bly_topk_new_sized(object, &out, size))
MAKES(bly_tdigest_new, bly_tdigest, bly_tdigest_free,
      bly_tdigest_new_sized(object, &out, size))
MAKES(bly_tdigest_restore, bly_tdigest, bly_tdigest_free,
      bly_tdigest_restore_sized(object, NULL, &out, size))
MAKES(bly_sketch_new, bly_sketch, bly_sketch_free,
      bly_sketch_new_sized(object, &out, size))
MAKES(bly_planes_new, bly_planes, bly_planes_free,
      bly_planes_new_sized(object, &out, size))
static const float one_float = 1;
static const bly_vectors one_vector = { .at = &one_float, .n = 1, .dims = 1 };
static uint64_t witness;
static bly_status no_pairs(const bly_near_pair *pairs, size_t n, void *ctx)
{
    (void)pairs;
    (void)n;
    (void)ctx;
    return BLY_OK;
}
CALLS(bly_near_pairs,
      bly_near_pairs_sized(&one_vector, object, no_pairs, NULL, NULL, size))
CALLS(bly_near_dedup,
      bly_near_dedup_sized(&one_vector, object, &witness, NULL, NULL, size))
CALLS(bly_near_of, bly_near_of_sized(&one_vector, &one_vector, object, no_pairs,
                                     NULL, NULL, size))
MAKES(bly_foreign_open, bly_foreign, bly_foreign_free,
      bly_foreign_open_sized(object, "\1\1\0\0\0\1\0\0\0\0\0\0\0\0", 14, &out,
                             size))
MAKES(bly_foreign_edit, bly_foreign, bly_foreign_free,
      bly_foreign_edit_sized(object, "", 0, &out, size))
MAKES(bly_foreign_start, bly_foreign, bly_foreign_free,
      bly_foreign_start_sized(object, "", 0, &out, size))
static const bly_foreign_record record; /* guava has none */
MAKES(bly_foreign_restore, bly_foreign, bly_foreign_free,
      bly_foreign_restore_sized(object, 0, &record, &out, size))
MAKES(bly_foreign_new, bly_foreign, bly_foreign_free,
      bly_foreign_new_sized(object, &out, size))

static bly_status bly_read_call(void *object, size_t size)
{
    byte_source from = { bytes.at, bytes.n };
    bly_filter *out;
    const bly_status st = bly_read_sized(get_bytes, &from, object, &out, size);
    bly_free(out);
    return st;
}

static bly_status bly_convert_call(void *object, size_t size)
{
    bly_filter *out, *from;
    assert_ok(bly_new(&(bly_spec){ .kind = "quotient", .items = 100 }, &from));
    const bly_status st = bly_convert_sized(from, object, &out, size);
    bly_free(out);
    bly_free(from);
    return st;
}

static bly_status bly_foreign_repack_call(void *object, size_t size)
{
    bly_foreign *out, *from;
    const bly_foreign_spec spec = { .format = "guava", .items = 10 };
    assert_ok(bly_foreign_new(&spec, &from));
    const bly_status st = bly_foreign_repack_sized(object, from, &out, size);
    bly_foreign_free(out);
    bly_foreign_free(from);
    return st;
}

static bly_status change_nothing(bly_filter *filter, void *ctx)
{
    (void)filter;
    (void)ctx;
    return BLY_OK;
}

static bly_hasher hasher;
static uint64_t holds;
CALLS(bly_foreign_scales, bly_foreign_scales_sized(object, 100, &holds, size))
CALLS(bly_hasher_for, bly_hasher_for_sized(object, &hasher, size))
static bly_status bly_keeper_new_call(void *object, size_t size)
{
    bly_keeper *out;
    const bly_status st = bly_keeper_new_sized(path, object, NULL, &out, size);
    bly_keeper_free(out);
    return st;
}
CALLS(bly_update, bly_update_sized(path, object, change_nothing, NULL, size))
CALLS(bly_compare, bly_compare_sized(f, g, object, size))
CALLS(bly_kind_at, bly_kind_at_sized(0, object, size) ? BLY_OK : BLY_EINVAL)
CALLS(bly_kind_named,
      bly_kind_named_sized(NULL, object, size) ? BLY_OK : BLY_EINVAL)
CALLS(bly_kind_of, (bly_kind_of_sized(f, object, size), BLY_OK))
CALLS(bly_format_at, bly_format_at_sized(0, object, size) ? BLY_OK : BLY_EINVAL)
CALLS(bly_format_named,
      bly_format_named_sized("guava", object, size) ? BLY_OK : BLY_EINVAL)
CALLS(bly_format_of,
      bly_format_of_sized("\1\1\0\0\0\1\0\0\0\0\0\0\0\0", 14, object, size)
          ? BLY_OK
          : BLY_EINVAL)
CALLS(bly_stat, (bly_stat_sized(f, object, size), BLY_OK))
CALLS(bly_peek, (bly_peek_sized(f, object, size), BLY_OK))

static bly_status bly_delta_write_call(void *object, size_t size)
{
    byte_array to = { 0 };
    const bly_status st =
        bly_delta_write_sized(f, g, put_bytes, &to, object, size);
    free(to.at);
    return st;
}

static bly_status bly_delta_save_call(void *object, size_t size)
{
    char name[80];
    snprintf(name, sizeof name, "%s.bld", path);
    const bly_status st = bly_delta_save_sized(f, g, name, object, size);
    unlink(name);
    return st;
}

static bly_status bly_delta_apply_call(void *object, size_t size)
{
    bly_filter *old;
    assert_ok(bly_clone(f, &old));
    const bly_status st =
        bly_delta_apply_sized(old, delta.at, delta.n, object, size);
    bly_free(old);
    return st;
}

static bly_status bly_delta_read_call(void *object, size_t size)
{
    byte_source from = { delta.at, delta.n };
    bly_filter *old;
    assert_ok(bly_clone(f, &old));
    const bly_status st =
        bly_delta_read_sized(old, get_bytes, &from, object, size);
    bly_free(old);
    return st;
}

static byte_array stored_bytes;
static char stored_path[80];
static bly_status bly_stored_load_call(void *object, size_t size)
{
    bly_stored out;
    const bly_status st = bly_stored_load_sized(stored_bytes.at, stored_bytes.n,
                                                object, &out, size);
    bly_stored_free(&out);
    return st;
}

static bly_status bly_stored_open_call(void *object, size_t size)
{
    bly_stored out;
    const bly_status st =
        bly_stored_open_sized(stored_path, object, &out, size);
    bly_stored_free(&out);
    return st;
}

static bly_status change_no_sketch(bly_stored *s, void *ctx)
{
    (void)s;
    (void)ctx;
    return BLY_OK;
}

CALLS(bly_stored_update, bly_stored_update_sized(stored_path, object, NULL,
                                                 change_no_sketch, NULL, size))

static bly_status bly_planes_spec_of_call(void *object, size_t size)
{
    bly_planes *p;
    assert_ok(bly_planes_new(&(bly_planes_spec){ .dims = 1 }, &p));
    bly_planes_spec_of_sized(p, object, size);
    bly_planes_free(p);
    return BLY_OK;
}
static bly_status bly_tdigest_stat_call(void *object, size_t size)
{
    bly_tdigest *t;
    assert_ok(bly_tdigest_new(NULL, &t));
    bly_tdigest_stat_sized(t, object, size);
    bly_tdigest_free(t);
    return BLY_OK;
}

static bly_status bly_topk_spec_of_call(void *object, size_t size)
{
    bly_topk *t;
    assert_ok(bly_topk_new(&(bly_topk_spec){ .k = 4 }, &t));
    bly_topk_spec_of_sized(t, object, size);
    bly_topk_free(t);
    return BLY_OK;
}

static bly_shingler *cut;
static unsigned char head[BLY_SKETCH_HEAD];
CALLS(bly_shingle, bly_shingle_sized(cut, "a rose is a rose", 16, object, size))
CALLS(bly_sketch_spec_check, bly_sketch_spec_check_sized(object, size))
CALLS(bly_sketch_spec_fits, bly_sketch_spec_fits_sized(object, object, size))
CALLS(bly_sketch_spec_read,
      bly_sketch_spec_read_sized(head, sizeof head, object, size))

static bly_status bly_foreign_stat_call(void *object, size_t size)
{
    bly_foreign *from;
    const bly_foreign_spec spec = { .format = "guava", .items = 10 };
    assert_ok(bly_foreign_new(&spec, &from));
    bly_foreign_stat_sized(from, BLY_WHOLE, object, size);
    bly_foreign_free(from);
    return BLY_OK;
}

static bly_status bly_foreign_size_call(void *object, size_t size)
{
    bly_foreign *from;
    const bly_foreign_spec spec = { .format = "guava", .items = 10 };
    assert_ok(bly_foreign_new(&spec, &from));
    bly_foreign_size_sized(from, BLY_WHOLE, object, size);
    bly_foreign_free(from);
    return BLY_OK;
}

/* Nothing comes back, so the bytes must be the same. */
static bly_status bly_sketch_spec_write_call(void *object, size_t size)
{
    unsigned char again[BLY_SKETCH_HEAD];
    struct {
        bly_sketch_spec now;
        uint64_t later;
    } longer = { 0 };
    assert_ok(bly_sketch_spec_read(head, sizeof head, &longer.now));
    bly_sketch_spec_write_sized(&longer.now, again, sizeof longer);
    assert_memory_equal(again, head, sizeof head);
    memset(object, 0, size);
    return BLY_OK;
}

static const bly_spec spec = { .items = 100, .fpr = 0.01 };
static const bly_access access_ = { .max_bytes = 1 << 20 };
static const bly_topk_spec topk_spec = { .k = 4 };
static const bly_tdigest_spec tdigest_spec = { .compression = 50 };
static const bly_tdigest_stats tdigest_parts = { .compression = 50 };
static const bly_sketch_spec sketch_spec = { .k = 16 };
static const bly_planes_spec planes_spec = { .nbits = 128 };
static const bly_near_spec near_spec = { .threshold = 0.8 };
static const bly_foreign_spec foreign_spec = { .format = "guava", .items = 10 };

#define TAKES(name, object)                           \
    {                                                 \
#name, &(object), sizeof(object), name##_call \
    }
#define GIVES(name, type)                      \
    {                                          \
#name, NULL, sizeof(type), name##_call \
    }
static const sized_row rows[] = {
    TAKES(bly_new, spec),
    TAKES(bly_builder_new, spec),
    TAKES(bly_build_keys, spec),
    TAKES(bly_build_ints, spec),
    TAKES(bly_build_as, spec),
    TAKES(bly_hasher_for, spec),
    TAKES(bly_convert, spec),
    TAKES(bly_load, access_),
    TAKES(bly_read, access_),
    TAKES(bly_open, access_),
    TAKES(bly_map, access_),
    TAKES(bly_update, access_),
    TAKES(bly_keeper_new, access_),
    TAKES(bly_topk_new, topk_spec),
    TAKES(bly_tdigest_new, tdigest_spec),
    TAKES(bly_tdigest_restore, tdigest_parts),
    TAKES(bly_stored_load, access_),
    TAKES(bly_stored_open, access_),
    TAKES(bly_stored_update, access_),
    TAKES(bly_sketch_new, sketch_spec),
    TAKES(bly_sketch_spec_check, sketch_spec),
    TAKES(bly_sketch_spec_fits, sketch_spec),
    TAKES(bly_planes_new, planes_spec),
    TAKES(bly_near_pairs, near_spec),
    TAKES(bly_near_dedup, near_spec),
    TAKES(bly_near_of, near_spec),
    TAKES(bly_foreign_open, foreign_spec),
    TAKES(bly_foreign_new, foreign_spec),
    TAKES(bly_foreign_repack, foreign_spec),
    TAKES(bly_foreign_edit, foreign_spec),
    TAKES(bly_foreign_start, foreign_spec),
    TAKES(bly_foreign_restore, foreign_spec),
    TAKES(bly_foreign_scales, foreign_spec),
    GIVES(bly_kind_at, bly_kind_info),
    GIVES(bly_kind_named, bly_kind_info),
    GIVES(bly_kind_of, bly_kind_info),
    GIVES(bly_format_at, bly_format_info),
    GIVES(bly_format_named, bly_format_info),
    GIVES(bly_format_of, bly_format_info),
    GIVES(bly_stat, bly_stats),
    GIVES(bly_peek, bly_stats),
    GIVES(bly_compare, bly_likeness),
    GIVES(bly_delta_write, bly_delta),
    GIVES(bly_delta_save, bly_delta),
    GIVES(bly_delta_apply, bly_delta),
    GIVES(bly_delta_read, bly_delta),
    GIVES(bly_topk_spec_of, bly_topk_spec),
    GIVES(bly_tdigest_stat, bly_tdigest_stats),
    GIVES(bly_shingle, bly_shingles),
    GIVES(bly_planes_spec_of, bly_planes_spec),
    GIVES(bly_sketch_spec_read, bly_sketch_spec),
    GIVES(bly_foreign_stat, bly_foreign_stats),
    GIVES(bly_foreign_size, bly_foreign_sizes),
    { "bly_sketch_spec_write", NULL, 0, bly_sketch_spec_write_call },
};

/* Of the live filter in live_path, which holds nothing. */
static char live_path[80];
static bly_filter *live;
CALLS(bly_live_of, bly_live_of_sized(live, object, size))
MAKES(bly_share_spec, bly_filter, bly_free,
      bly_share_sized(live_path, object, size, NULL, 0, &out))
MAKES(bly_share_how, bly_filter, bly_free,
      bly_share_sized(live_path, NULL, 0, object, size, &out))
static const sized_row live_rows[] = {
    GIVES(bly_live_of, bly_live),
    TAKES(bly_share_spec, spec),
    TAKES(bly_share_how, access_),
};

static bly_prediction prediction;
CALLS(bly_plan_spec,
      bly_plan_sized(object, size, &prediction, sizeof prediction))
CALLS(bly_plan_told, bly_plan_sized(&spec, sizeof spec, object, size))

static void any_size_works(void **unused)
{
    static const sized_row plan[] = { TAKES(bly_plan_spec, spec),
                                      GIVES(bly_plan_told, bly_prediction) };
    (void)unused;
    sized_laws(rows, COUNT_OF(rows));
    sized_laws(plan, COUNT_OF(plan));
    snprintf(live_path, sizeof live_path, "%s.live", path);
    assert_ok(bly_share(live_path, &spec, NULL, &live));
    sized_laws(live_rows, COUNT_OF(live_rows));
    bly_free(live);
    unlink(live_path);
}

static void none_is_forgotten(void **unused)
{
    (void)unused;
    none_is_unsized("include/bloomery.h", rows, COUNT_OF(rows));
    none_is_unsized("include/bloomery/foreign.h", rows, COUNT_OF(rows));
    none_is_unsized("include/bloomery/sketch.h", rows, COUNT_OF(rows));
    none_is_unsized("include/bloomery/live.h", live_rows, COUNT_OF(live_rows));
}

static int set_up(void **unused)
{
    bly_sketch_spec checked = sketch_spec;
    (void)unused;
    snprintf(path, sizeof path, "/tmp/bly-sized-%ld.bly", (long)getpid());
    f = filled_from(&spec, 0, 3);
    g = filled_from(&spec, 1, 3);
    bytes = written(f);
    bly_stored s = { .type = BLY_STORED_HLL };
    assert_ok(bly_hll_new(0, NULL, &s.hll));
    assert_ok(bly_stored_write(&s, put_bytes, &stored_bytes));
    snprintf(stored_path, sizeof stored_path, "%s.sketch", path);
    assert_ok(bly_stored_save(&s, stored_path));
    bly_stored_free(&s);
    assert_ok(bly_save(f, path));
    assert_ok(bly_delta_write(f, g, put_bytes, &delta, NULL));
    assert_ok(bly_shingler_new(NULL, NULL, &cut));
    assert_ok(bly_sketch_spec_check(&checked));
    bly_sketch_spec_write(&checked, head);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    unlink(path);
    unlink(stored_path);
    free(stored_bytes.at);
    bly_shingler_free(cut);
    free(bytes.at);
    free(delta.at);
    bly_free(f);
    bly_free(g);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_size_works),
        cmocka_unit_test(none_is_forgotten),
    };
    return cmocka_run_group_tests_name("sizes of structs", tests, set_up,
                                       tear_down);
}
