/*
 * wasm_filters.c - filters: keys, files, sets
 *
 * Keys lie in the module's memory, where JavaScript has copied them: integers
 * as they are, text and bytes one behind another with offsets, as columns of
 * Arrow have them. Batches are the fast path here too: a call from JavaScript
 * costs as much as several keys.
 */
#include <stdlib.h>
#include <string.h>

#include "bindings/wasm/wasm.h"

/* JavaScript's side of a file: fill at most n bytes and say how many, or a
 * negative number; take n bytes. */
IMPORT(int32_t, pull, (void *to, size_t n))
IMPORT(void, push, (const void *from, size_t n))

static int64_t pull_file(void *ctx, void *buf, size_t n)
{
    (void)ctx;
    return js_pull(buf, n);
}

static bool push_file(void *ctx, const void *bytes, size_t n)
{
    (void)ctx;
    js_push(bytes, n);
    return true;
}

/* ------------------------------------------------------------------ making */

EXPORT(bly_filter *, make, (char *wanted))
{
    struct js_wanted w;
    bly_filter *f = NULL;
    if (!js_wanted_read(&w, wanted))
        js_keep(bly_new(&w.spec, &f));
    return f;
}

EXPORT(void, drop, (bly_filter * f))
{
    bly_free(f);
}

EXPORT_WHOLE(bly_filter *, clone, (const bly_filter *f))
{
    bly_filter *copy = NULL;
    js_keep(bly_clone(f, &copy));
    return copy;
}

/* A file, by js.pull; `secret` is 16 bytes or NULL. The filter takes `most`
 * bytes at most; 0: any number. */
EXPORT(bly_filter *, open, (const unsigned char *secret, double most))
{
    bly_filter *f = NULL;
    bly_status st = LEAN && secret ? BLY_ENOTSUP : BLY_OK;
    if (!st)
        st = bly_read(
            pull_file, NULL,
            &(bly_access){ .secret = secret, .max_bytes = (uint64_t)most }, &f);
    if (LEAN && !st && bly_keying_of(f).forms & BLY_KEYS_FOLDED) {
        bly_free(f);
        f = NULL;
        st = BLY_ENOTSUP;
    }
    js_keep(st);
    return f;
}

EXPORT(double, written_bytes, (const bly_filter *f))
{
    return (double)bly_written_bytes(f);
}

EXPORT(bly_status, save, (const bly_filter *f))
{
    return js_keep(bly_write(f, push_file, NULL));
}

/* -------------------------------------------------------------------- keys */

/* n keys of a type at `keys`: integers of 64 bits; or, of text and bytes, n + 1
 * offsets from there on, and the bytes behind them. */
struct js_keys {
    const void *at;
    bly_bytes *made;
};

static bly_status keys_begin(uint32_t type, const void *keys, size_t n,
                             struct js_keys *out)
{
    *out = (struct js_keys){ .at = keys };
    if (type == BLY_KEYS_INT64 || type == BLY_KEYS_UINT64)
        return BLY_OK;
    const uint32_t *const offsets = keys;
    const char *const bytes = (const char *)(offsets + n + 1);
    out->made = malloc((n + 1) * sizeof *out->made);
    if (!out->made)
        return js_no_memory();
    for (size_t i = 0; i < n; i++)
        out->made[i] =
            (bly_bytes){ bytes + offsets[i], offsets[i + 1] - offsets[i] };
    out->at = out->made;
    return BLY_OK;
}

/* `fresh` is a bitmap of n bits, or NULL. */
EXPORT(bly_status, add,
       (bly_filter * f, uint32_t type, const void *keys, size_t n,
        uint64_t *fresh))
{
    struct js_keys k;
    bly_status st = keys_begin(type, keys, n, &k);
    if (!st)
        st = js_keep(bly_add_as(f, (bly_key_type)type, k.at, n, fresh, NULL));
    free(k.made);
    return st;
}

EXPORT(bly_status, has,
       (const bly_filter *f, uint32_t type, const void *keys, size_t n,
        uint64_t *maybe))
{
    struct js_keys k;
    bly_status st = keys_begin(type, keys, n, &k);
    if (!st)
        st = js_keep(bly_has_as(f, (bly_key_type)type, k.at, n, maybe));
    free(k.made);
    return st;
}

/* The same for one text of ASCII: the answer, or 2 if it failed. */
EXPORT(uint32_t, has_text, (const bly_filter *f, const void *key, size_t n))
{
    const bly_bytes one = { key, n };
    const bly_keying keying = bly_keying_of(f);
    if (keying.type == BLY_KEYS_TEXT && !keying.forms && bly_hasher_of(f))
        return bly_has(f, key, n);
    uint64_t maybe = 0;
    return js_keep(bly_has_as(f, BLY_KEYS_TEXT, &one, 1, &maybe))
               ? 2
               : (uint32_t)(maybe & 1);
}

/* The hashes of the keys in this filter, for the calls below. */
EXPORT(bly_status, hash,
       (const bly_filter *f, uint32_t type, const void *keys, size_t n,
        uint64_t *hashes))
{
    struct js_keys k;
    const bly_hasher *const hs = bly_hasher_of(f);
    if (!hs)
        return js_refuse("secret", "", "is missing: open with it");
    bly_status st = keys_begin(type, keys, n, &k);
    if (!st)
        st = js_keep(bly_hash_as(hs, bly_keying_of(f), (bly_key_type)type, k.at,
                                 n, hashes, NULL));
    free(k.made);
    return st;
}

EXPORT_WHOLE(bly_status, remove,
             (bly_filter * f, const uint64_t *hashes, size_t n))
{
    return js_keep(bly_remove_hashes(f, hashes, n, NULL));
}

EXPORT_WHOLE(bly_status, count,
             (const bly_filter *f, const uint64_t *hashes, size_t n,
              uint64_t *counts))
{
    return js_keep(bly_count_hashes(f, hashes, n, counts));
}

EXPORT_WHOLE(bly_status, get,
             (const bly_filter *f, const uint64_t *hashes, size_t n,
              uint64_t *values, uint64_t *present))
{
    return js_keep(bly_get_hashes(f, hashes, n, values, present));
}

EXPORT_WHOLE(bly_status, set, (bly_filter * f, uint64_t hash, uint64_t value))
{
    return js_keep(bly_set_hash(f, hash, value));
}

EXPORT_WHOLE(bly_status, range,
             (const bly_filter *f, uint32_t type, const void *a, const void *b,
              uint64_t *maybe))
{
    struct js_keys from, to = { 0 };
    bly_status st = keys_begin(type, a, 1, &from);
    if (!st)
        st = keys_begin(type, b, 1, &to);
    if (!st)
        st = js_keep(
            bly_has_ranges_as(f, (bly_key_type)type, from.at, to.at, 1, maybe));
    free(from.made);
    free(to.made);
    return st;
}

EXPORT_WHOLE(bly_status, tick, (bly_filter * f, double now))
{
    return js_keep(bly_tick(f, (uint64_t)now));
}

/* ---------------------------------------------------------------- building */

EXPORT(bly_builder *, builder, (char *wanted))
{
    struct js_wanted w;
    bly_builder *b = NULL;
    if (!js_wanted_read(&w, wanted))
        js_keep(bly_builder_new(&w.spec, &b));
    return b;
}

/* Keys of a type for a filter whose keys are as `to` says; values, of kinds
 * that have them, or NULL. The keys' hashes are written to `hashes`. */
EXPORT(bly_status, builder_add,
       (bly_builder * b, uint32_t to, uint32_t forms, uint32_t type,
        const void *keys, size_t n, uint64_t *hashes, const uint64_t *values))
{
    struct js_keys k;
    bly_status st = keys_begin(type, keys, n, &k);
    if (!st)
        st = js_keep(bly_hash_as(bly_builder_hasher(b),
                                 (bly_keying){ (bly_key_type)to, forms },
                                 (bly_key_type)type, k.at, n, hashes, NULL));
    if (!st)
        st = js_keep(bly_builder_add(b, hashes, values, n));
    free(k.made);
    return st;
}

EXPORT(bly_filter *, builder_finish,
       (bly_builder * b, uint32_t type, uint32_t forms))
{
    bly_filter *f = NULL;
    bly_status st = bly_builder_finish(b, 1, &f);
    if (!st && type && bly_keying_of(f).type == BLY_KEYS_UNKNOWN)
        st = bly_set_keying(f, (bly_keying){ (bly_key_type)type, forms });
    js_keep(st);
    return f;
}

EXPORT(void, builder_drop, (bly_builder * b))
{
    bly_builder_free(b);
}

/* -------------------------------------------------------------------- sets */

EXPORT_WHOLE(bly_status, merge, (bly_filter * f, const bly_filter *other))
{
    return js_keep(bly_merge(f, other));
}

EXPORT_WHOLE(bly_status, intersect, (bly_filter * f, const bly_filter *other))
{
    return js_keep(bly_intersect(f, other));
}

EXPORT_WHOLE(uint32_t, equal, (const bly_filter *a, const bly_filter *b))
{
    return bly_equal(a, b);
}

EXPORT_WHOLE(void, set_coded,
             (bly_filter * f, uint32_t coded, uint32_t compact))
{
    bly_set_coded(f, coded);
    bly_set_compact(f, compact);
}

/* ------------------------------------------------------------------- cells */

EXPORT_WHOLE(const bly_filter *, layer, (const bly_filter *f, uint32_t i))
{
    return bly_layer(f, i);
}

EXPORT_WHOLE(const void *, cells, (const bly_filter *f))
{
    uint64_t nbytes;
    return bly_cells(f, &nbytes);
}

EXPORT_WHOLE(double, cell_bytes, (const bly_filter *f))
{
    uint64_t nbytes;
    (void)bly_cells(f, &nbytes);
    return (double)nbytes;
}
