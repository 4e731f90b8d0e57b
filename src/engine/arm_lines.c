/*
 * arm_lines.c - keys in cache lines, with NEON
 *
 * The same as x86_lines.c, with two words per vector. A NEON shift reads only
 * the lowest byte of its count, so a count that is too large does not give 0.
 * So words that hold no bit of the key are found by comparing.
 */
#include "engine/lines.h"

#if BLY_ARM64
#include <arm_neon.h>

#define NEON_INLINE static inline __attribute__((always_inline))

/* Words 2 pair and 2 pair + 1 of the mask, from a g that is theirs. */
NEON_INLINE uint64x2_t mask_neon(uint64_t g, unsigned k, unsigned pair)
{
    const bly_lines_places *const place = bly_lines_places_of(k);
    const int64x2_t by = vreinterpretq_s64_u64(vld1q_u64(&place->by[2 * pair]));
    const uint64x2_t x = vshlq_u64(vdupq_n_u64(g), vnegq_s64(by)); /* right */
    const uint64x2_t one = vdupq_n_u64(1);
    if (k == 16) {
        const uint64x2_t five = vdupq_n_u64(31);
        const uint64x2_t low = vandq_u64(x, five);
        const uint64x2_t high =
            vaddq_u64(vandq_u64(vshrq_n_u64(x, 5), five), vdupq_n_u64(32));
        return vorrq_u64(vshlq_u64(one, vreinterpretq_s64_u64(low)),
                         vshlq_u64(one, vreinterpretq_s64_u64(high)));
    }
    const uint64x2_t bit = vandq_u64(x, vdupq_n_u64(63));
    const uint64x2_t mask = vshlq_u64(one, vreinterpretq_s64_u64(bit));
    if (k == 8)
        return mask;
    const uint64x2_t word =
        vandq_u64(x, vdupq_n_u64(BLY_LINE_BITS / k - 64)); /* of the lane */
    return vandq_u64(mask, vceqq_u64(word, vld1q_u64(&place->first[2 * pair])));
}

NEON_INLINE uint64_t probe_neon(uint64_t *line, uint64_t g, uint64_t g2,
                                unsigned k, bool add)
{
    uint64x2_t missing = vdupq_n_u64(0);
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < BLY_LINE_WORDS / 2; pair++) {
        const uint64x2_t mask =
            mask_neon(k == 16 && pair >= 2 ? g2 : g, k, pair);
        const uint64x2_t old = vld1q_u64(&line[2 * pair]);
        missing = vorrq_u64(missing, vbicq_u64(mask, old));
        if (add)
            vst1q_u64(&line[2 * pair], vorrq_u64(old, mask));
    }
    return -(uint64_t)(vmaxvq_u32(vreinterpretq_u32_u64(missing)) == 0);
}

#define ROW(name) bly_lines_##name##_neon
#define ROW_TARGET
#define row_aim(a, in, i, r) bly_lines_aim(a, in, i, BLY_LINES_GROUP, r)
#define row_probe probe_neon
#include "engine/lines_walk.h"

#endif
