/*
 * fuzz_javascript.c - calls of the WebAssembly module in any order
 *
 * What JavaScript calls (bindings/wasm), here as plain functions: bytes choose
 * the calls, and the keys and files for them. bloomery.js promises that offsets
 * of keys rise, that there is room for the answers, that text is UTF-8 and that
 * filters are open; nothing else. Keys and answers lie in blocks of their own,
 * so that a byte too many is seen. fuzz_javascript_small.c is the same for the
 * small module, which has fewer calls.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/wasm/wasm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

bly_filter *js_make(char *wanted);
void js_drop(bly_filter *f);
bly_filter *js_open(const unsigned char *secret);
double js_written_bytes(const bly_filter *f);
bly_status js_save(const bly_filter *f);
bly_status js_add(bly_filter *f, uint32_t type, const void *keys, size_t n,
                  uint64_t *fresh);
bly_status js_has(const bly_filter *f, uint32_t type, const void *keys,
                  size_t n, uint64_t *maybe);
uint32_t js_has_text(const bly_filter *f, const void *key, size_t n);
bly_status js_hash(const bly_filter *f, uint32_t type, const void *keys,
                   size_t n, uint64_t *hashes);
#if !LEAN
bly_status js_remove(bly_filter *f, const uint64_t *hashes, size_t n);
bly_status js_count(const bly_filter *f, const uint64_t *hashes, size_t n,
                    uint64_t *counts);
bly_status js_get(const bly_filter *f, const uint64_t *hashes, size_t n,
                  uint64_t *values, uint64_t *present);
bly_status js_set(bly_filter *f, uint64_t hash, uint64_t value);
bly_status js_range(const bly_filter *f, uint32_t type, const void *a,
                    const void *b, uint64_t *maybe);
bly_status js_tick(bly_filter *f, double now);
bly_status js_merge(bly_filter *f, const bly_filter *other);
bly_status js_intersect(bly_filter *f, const bly_filter *other);
uint32_t js_equal(const bly_filter *a, const bly_filter *b);
bly_filter *js_clone(const bly_filter *f);
void js_set_coded(bly_filter *f, uint32_t coded, uint32_t compact);
bly_status js_plan(char *wanted);
bly_status js_compare(const bly_filter *a, const bly_filter *b);
#endif
bly_builder *js_builder(char *wanted);
bly_status js_builder_add(bly_builder *b, uint32_t to, uint32_t forms,
                          uint32_t type, const void *keys, size_t n,
                          uint64_t *hashes, const uint64_t *values);
bly_filter *js_builder_finish(bly_builder *b, uint32_t type, uint32_t forms);
void js_builder_drop(bly_builder *b);
bly_status js_info(const bly_filter *f, uint32_t all);
uint32_t js_failure(void);
const char *js_message(void);
size_t js_told_bytes(void);

/* The input, from its front to its end. */
static const uint8_t *input;
static size_t left;

static uint8_t byte(void)
{
    return left ? (left--, *input++) : 0;
}

/* What is read as a file, and what was written. */
static const uint8_t *file;
static size_t file_left;
static uint8_t *written;
static size_t nwritten, room;

int32_t js_pull(void *to, size_t n)
{
    n = n < file_left ? n : file_left;
    memcpy(to, file, n);
    file += n;
    file_left -= n;
    return (int32_t)n;
}

void js_push(const void *from, size_t n)
{
    assert(n <= room - nwritten);
    memcpy(written + nwritten, from, n);
    nwritten += n;
}

/* As bloomery.js writes options; the capacity is kept small. */
static char *wanted_of(void)
{
    bly_kind_info k;
    static size_t nkinds; /* of a table of which each row takes some work */
    while (bly_kind_at(nkinds, &k))
        nkinds++;
    bly_kind_at(byte() % nkinds, &k);
    char text[256];
    size_t n = (size_t)snprintf(
        text, sizeof text, "kind=%s%citems=%u%cfpr=%s%cmaxBytes=1000000%c",
        k.name, 0, byte() + 1u, 0, byte() % 2 ? "0.01" : "0.3", 0, 0);
    /* Any option after these. */
    for (unsigned more = byte() % 24; more && left; more--)
        text[n++] = (char)byte();
    text[n++] = 0;
    text[n++] = 0;
    char *const out = malloc(n);
    assert(out);
    return memcpy(out, text, n);
}

/* Up to 8 keys of a type in a block of their own. */
static uint32_t *keys_of(uint32_t type, size_t n)
{
    uint8_t bytes[8 * 40];
    uint32_t offsets[9] = { 0 };
    size_t used = 0;
    if (type >= BLY_KEYS_INT64) {
        uint64_t *const ints = malloc(8 * n + 1);
        assert(ints);
        for (size_t i = 0; i < n; i++)
            ints[i] = (uint64_t)byte() << (byte() & 63);
        return (uint32_t *)ints;
    }
    for (size_t i = 0; i < n; i++) {
        for (unsigned len = byte() % 40; len; len--)
            bytes[used++] = type == BLY_KEYS_TEXT ? byte() & 127 : byte();
        offsets[i + 1] = (uint32_t)used;
    }
    uint32_t *const out = malloc(4 * (n + 1) + used);
    assert(out);
    memcpy(out, offsets, 4 * (n + 1));
    memcpy(out + n + 1, bytes, used);
    return out;
}

static bly_filter *build(void)
{
    char *const wanted = wanted_of();
    bly_builder *const b = js_builder(wanted);
    bly_filter *f = NULL;
    /* Folded keys were refused with the options. */
    const uint32_t type = 1 + byte() % 4,
                   forms = byte() % 8 & ~(LEAN ? BLY_KEYS_FOLDED : 0u);
    for (unsigned i = byte() % 4; b && i; i--) {
        const size_t n = 1 + byte() % 8;
        uint32_t *const keys = keys_of(type, n);
        uint64_t hashes[8], values[8] = { byte(), 2, 3 };
        (void)js_builder_add(b, type, forms, type, keys, n, hashes,
                             byte() % 2 ? values : NULL);
        free(keys);
    }
    if (b) {
        f = js_builder_finish(b, type, type == BLY_KEYS_TEXT ? forms : 0);
        if (js_failure()) {
            js_drop(f);
            f = NULL;
        }
    }
    js_builder_drop(b);
    free(wanted);
    return f;
}

/* The small module has no call for it: the same bytes, then. */
static bool equal(const bly_filter *f, const bly_filter *g)
{
#if LEAN
    return js_written_bytes(f) == js_written_bytes(g);
#else
    return js_equal(f, g);
#endif
}

/* Written and read again, it is the same; with a byte changed it may be
 * anything but a crash. */
static void rewrite(bly_filter *f)
{
#if !LEAN
    js_set_coded(f, byte() % 2, byte() % 2);
#endif
    room = (size_t)js_written_bytes(f);
    nwritten = 0;
    written = malloc(room + 1);
    assert(written);
    if (!js_save(f)) {
        assert(nwritten == room);
        const bool damage = byte() % 2;
        if (damage && nwritten)
            written[((size_t)byte() << 8 | byte()) % nwritten] ^= byte();
        file = written;
        file_left = nwritten;
        bly_filter *const again = js_open(NULL);
        assert(damage || (again && equal(f, again)));
        if (again)
            js_info(again, 1);
        js_drop(again);
    }
    free(written);
}

static void ask(bly_filter *f, bly_filter *other)
{
    const uint32_t type = 1 + byte() % 4;
    const size_t n = 1 + byte() % 8;
    uint32_t *const keys = keys_of(type, n);
    uint64_t hashes[8], bits = 0;
    const bool hashed = !js_hash(f, type, keys, n, hashes);
#if LEAN
    (void)hashed, (void)other;
#else
    uint64_t out[8];
#endif
    switch (byte() % (LEAN ? 5 : 12)) {
    case 0:
    case 1:
    case 2:
        if (!js_add(f, type, keys, n, &bits)) {
            bits = 0;
            (void)js_has(f, type, keys, n, &bits);
        }
        break;
    case 3:
        (void)js_has(f, type, keys, n, &bits);
        break;
    case 4:
        if (type == BLY_KEYS_TEXT) /* the same as in a batch */
            if (!js_has(f, type, keys, n, &bits))
                assert(js_has_text(f, keys + n + 1, keys[1]) == (bits & 1));
        break;
#if !LEAN
    case 5:
        if (hashed)
            (void)js_remove(f, hashes, n);
        break;
    case 6:
        if (hashed)
            (void)js_count(f, hashes, n, out);
        break;
    case 7:
        if (hashed)
            (void)js_get(f, hashes, n, out, &bits);
        break;
    case 8:
        if (hashed)
            (void)js_set(f, hashes[0], byte());
        break;
    case 9: {
        uint32_t *const end = keys_of(type, 1);
        uint32_t *const from = keys_of(type, 1);
        (void)js_range(f, type, from, end, &bits);
        free(from);
        free(end);
        break;
    }
    case 10:
        (void)js_tick(f, byte());
        break;
    default:
        if (byte() % 2 ? js_merge(f, other) : js_intersect(f, other))
            assert(*js_message());
        (void)js_compare(f, other);
#endif
    }
    free(keys);
}

#define FILTERS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bly_filter *f[FILTERS] = { 0 };
    input = data;
    left = size;
    while (left) {
        bly_filter **const one = &f[byte() % FILTERS];
        bly_filter *const other = f[byte() % FILTERS];
        const unsigned what = byte() % 8;
        if (!*one || what == 0) {
            js_drop(*one);
            if (byte() % 2) {
                *one = build();
            } else {
                char *const wanted = wanted_of();
                *one = js_make(wanted);
                free(wanted);
            }
        } else if (what == 1) {
            rewrite(*one);
        } else if (what == 3) {
            assert(js_info(*one, byte() % 2) || js_told_bytes());
#if !LEAN
        } else if (what == 2 && other && other != *one) {
            js_drop(*one);
            *one = js_clone(other);
        } else if (what == 4) {
            char *const wanted = wanted_of();
            (void)js_plan(wanted);
            free(wanted);
#endif
        } else {
            ask(*one, other ? other : *one);
        }
    }
    for (unsigned i = 0; i < FILTERS; i++)
        js_drop(f[i]);
    return 0;
}
