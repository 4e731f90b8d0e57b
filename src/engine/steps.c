/*
 * steps.c - the k positions of many keys at once: the portable row
 */
#include "core/position.h"
#include "engine/steps.h"

/* x or x - m, whichever is in [0, m), for x below 2m. There is no branch, since
 * it would be unpredictable. */
static inline uint64_t steps_wrap(uint64_t x, uint64_t m)
{
    return x - (m & -(uint64_t)(x >= m));
}

static inline __attribute__((always_inline)) bool
steps_of_key(const bly_steps *s, uint64_t h, uint64_t *at, bool listed)
{
    const uint64_t m = s->range.n;
    const uint64_t far = listed ? bly_steps_far(m, s->k) : 0;
    uint64_t x = bly_mod(h, s->range), y = bly_mod(bly_mix64(h), s->range);
    const uint64_t y0 = y;
    uint64_t dy = 0;
    bool near = false;
    *at = x;
    /* x and y stay in [0, m), and i < k <= m: each sum is below 2m, and one
     * subtraction brings it back. */
    for (uint64_t i = 1; i < s->k; i++) {
        x = steps_wrap(x + y, m);
        y = steps_wrap(y + i, m);
        at += s->stride;
        *at = x;
        if (listed) {
            /* i y0 mod m, which shows whether two positions may be equal
             * (steps.h). */
            dy = steps_wrap(dy + y0, m);
            near |= dy - 1 >= far; /* dy = 0 becomes the greatest of all */
        }
    }
    return near;
}

static inline void steps_powers(const bly_steps *s, uint64_t h, uint64_t *at)
{
    for (uint64_t i = 0; i < s->k; i++, h *= BLY_POWERS_C)
        at[i * s->stride] = bly_scale(h, s->range.n);
}

static void steps_fill_portable(const bly_steps *s, const uint64_t *h, size_t n,
                                uint64_t *at)
{
    for (size_t j = 0; j < n; j++)
        if (s->rule == BLY_STEPS_MIXED)
            for (uint64_t i = 0; i < s->k; i++)
                at[i * s->stride + j] =
                    i * s->apart + bly_position(h[j], i, s->range.n);
        else if (s->rule == BLY_STEPS_POWERS)
            steps_powers(s, h[j], at + j);
        else
            steps_of_key(s, h[j], at + j, false);
}

static void steps_list_portable(const bly_steps *s, const uint64_t *h, size_t n,
                                uint64_t *at, uint64_t *near)
{
    for (size_t from = 0; from < n; from += 64) {
        const size_t to = n - from < 64 ? n : from + 64;
        uint64_t bits = 0;
        for (size_t j = from; j < to; j++)
            bits |= (uint64_t)steps_of_key(s, h[j], at + j, true) << j % 64;
        near[from / 64] = bits;
    }
}

const bly_steps_row bly_steps_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_steps_fill_avx512, bly_steps_list_avx512 },
    { "avx2", BLY_CPU_AVX2, bly_steps_fill_avx2, bly_steps_list_avx2 },
#endif
    { "portable", 0, steps_fill_portable, steps_list_portable },
};

BLY_CHOOSE(steps)
