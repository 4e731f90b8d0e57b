/*
 * fuzz_stored.c - a sketch in a .bly file that anyone may have written
 *
 * Every input is tried as it is, and with its checksums made right, since no
 * fuzzer guesses one. What loads is written back byte for byte, is safe to ask,
 * takes more keys, and merges with itself as it was.
 *
 *     fuzz_stored -max_total_time=60 FOUND fuzz/corpus/stored
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#define HEADER 296

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set64(uint8_t *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

static const uint8_t *expected;
static size_t left;

static bool compare(void *ctx, const void *bytes, size_t nbytes)
{
    (void)ctx;
    assert(nbytes <= left && memcmp(bytes, expected, nbytes) == 0);
    expected += nbytes;
    left -= nbytes;
    return true;
}

static void use(bly_stored *s)
{
    static const uint64_t hashes[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 40 };
    if (s->type == BLY_STORED_HLL) {
        bly_hll *const h = s->hll;
        const bly_hll *const twice[] = { h, h };
        double n, sd;
        assert(!isnan(bly_hll_estimate(h, &sd)) && sd >= 0);
        assert(bly_hll_common(twice, 2, &n, &sd) == BLY_OK && !isnan(sd));
        assert(bly_hll_add(h, hashes, 4) == BLY_OK);
    } else if (s->type == BLY_STORED_TOPK) {
        bly_topk *const t = s->topk;
        bly_topk_item items[8];
        const size_t n = bly_topk_list(t, items, 8);
        for (size_t i = 0; i < n; i++) {
            const uint64_t count =
                bly_topk_count(t, items[i].key.ptr, items[i].key.len, NULL);
            /* Without the secret nobody sees that a key is there twice. */
            assert(count == items[i].count || !bly_topk_hasher(t));
        }
        (void)!bly_topk_add(t, "a", 1, 1);
        (void)!bly_topk_add(t, "b", 1, UINT64_MAX / 2);
    } else if (s->type == BLY_STORED_TDIGEST) {
        bly_tdigest *const t = s->tdigest;
        double values[600] = { 0, -1e308, 1e308, 0.5 }; /* until memory grows */
        bly_tdigest_stats was, is;
        bly_tdigest_stat(t, &was);
        for (int i = 0; i <= 20 && was.nmerged + was.nwaiting; i++) {
            const double x = bly_tdigest_quantile(t, i / 20.0);
            assert(x >= was.min && x <= was.max);
            const double q = bly_tdigest_cdf(t, x);
            assert(q >= -1e-9 && q <= 1 + 1e-9);
            assert(bly_tdigest_deviation(t, i / 20.0) >= 0);
        }
        bly_tdigest_trimmed_mean(t, 0.1, 0.9);
        (void)!bly_tdigest_add(t, values, NULL,
                               sizeof values / sizeof values[0]);
        (void)!bly_tdigest_merge(t, t);
        bly_tdigest_settle(t);
        bly_tdigest_stat(t, &is);
        for (uint64_t i = 1; i < is.nmerged; i++)
            assert(is.means[i - 1] <= is.means[i]);
    } else {
        (void)!bly_sketch_add(s->likeness, hashes, 4);
    }
}

static void try_bytes(const uint8_t *data, size_t size)
{
    const bly_access blind = { .blind = true };
    bly_stored s, same;
    if (bly_stored_load(data, size, &blind, &s)) {
        assert(s.type == BLY_STORED_NONE);
        return;
    }
    assert(bly_stored_peek(data, size) == s.type);
    assert(bly_stored_bytes(&s) == size);
    expected = data;
    left = size;
    assert(bly_stored_write(&s, compare, NULL) == BLY_OK && left == 0);
    assert(bly_stored_load(data, size, &blind, &same) == BLY_OK);
    use(&s);
    (void)!bly_stored_merge(&s, &same);
    bly_stored_free(&same);
    bly_stored_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_bytes(data, size);
    if (size < HEADER)
        return 0;
    uint8_t *const copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    size_t end = HEADER;
    if ((copy[20] & 1) && size >= HEADER + 24) { /* metadata: a type of keys */
        set64(copy + HEADER + 16, XXH3_64bits(copy + HEADER, 16));
        end += 24;
    }
    set64(copy + 280, XXH3_64bits(copy + end, size - end));
    set64(copy + 288, XXH3_64bits(copy, 288));
    try_bytes(copy, size);
    free(copy);
    return 0;
}
