/*
 * lines.c - keys in cache lines: the portable rows, and the choice
 */
#include <stdatomic.h>

#include "engine/lines.h"

#define LINES_INLINE static inline __attribute__((always_inline))

/* Make the mask of a key within its line. */
LINES_INLINE void line_mask(uint64_t g, uint64_t g2, unsigned k,
                            uint64_t mask[BLY_LINE_WORDS])
{
    /* Where this is inlined k is 8, 16 or known to be less: one branch is
     * left. */
    if (k == 8) {
        for (unsigned i = 0; i < 8; i++)
            mask[i] = UINT64_C(1) << (g >> (6 * i) & 63);
    } else if (k == 16) {
        for (unsigned i = 0; i < 8; i++) {
            /* Word i holds lanes 2i and 2i+1, whose number says which g. */
            const uint64_t from = i < 4 ? g : g2;
            const unsigned at = 10 * (i & 3);
            mask[i] = UINT64_C(1) << (from >> at & 31) |
                      UINT64_C(1) << (32 + (from >> (at + 5) & 31));
        }
    } else { /* 1, 2, 4: a lane is 8, 4, 2 words */
        const unsigned words = 8 / k;
        const unsigned width = k == 1 ? 9 : k == 2 ? 8 : 7;
        for (unsigned i = 0; i < 8; i++)
            mask[i] = 0;
        for (unsigned lane = 0; lane < k; lane++) {
            const uint64_t bit = g >> (width * lane) & ((1u << width) - 1);
            mask[lane * words + (bit >> 6)] = UINT64_C(1) << (bit & 63);
        }
    }
}

/* The probe of one key; shared: other threads may write to the line, or read it
 * while this one writes. The words are not ordered with respect to each other,
 * and need not be: bits are only ever set, so an early reader may see too few
 * of them, but never wrong ones. */
LINES_INLINE uint64_t line_probe(uint64_t *line, uint64_t g, uint64_t g2,
                                 unsigned k, bool add, bool shared)
{
    uint64_t mask[BLY_LINE_WORDS], missing = 0;
    line_mask(g, g2, k, mask);
    for (unsigned w = 0; w < BLY_LINE_WORDS; w++) {
        const uint64_t set = bly_le64(mask[w]);
        if (add && shared) {
            /* With k < 8 most words of the mask are empty. */
            if (set)
                missing |= bly_word_or_shared(&line[w], set);
        } else {
            /* Stored whether it changes or not, since no branch predictor could
             * guess which. */
            const uint64_t old = shared ? bly_word_load(&line[w]) : line[w];
            missing |= set & ~old;
            if (add)
                line[w] = old | set;
        }
    }
    /* All ones or all zeros; row_probe must give this from bit 8 on. */
    return -(uint64_t)(missing == 0);
}

#define ROW(name) bly_lines_##name##_portable
#define ROW_TARGET
#define row_aim(a, in, i, r) bly_lines_aim(a, in, i, BLY_LINES_GROUP, r)
#define row_probe(line, g, g2, k, add) line_probe(line, g, g2, k, add, false)
#include "engine/lines_walk.h"

#define ROW(name) bly_lines_##name##_shared
#define ROW_TARGET
#define row_aim(a, in, i, r) bly_lines_aim(a, in, i, BLY_LINES_GROUP, r)
#define row_probe(line, g, g2, k, add) line_probe(line, g, g2, k, add, true)
#include "engine/lines_walk.h"

#if BLY_WASM
/* The only row, since nothing there can choose another. */
const bly_lines_row bly_lines_rows[] = {
    { "wasm", 0, bly_lines_has_wasm, bly_lines_add_wasm, bly_lines_has_one_wasm,
      bly_lines_add_one_wasm, bly_lines_rows },
};
#else
static const bly_lines_row lines_shared = { "shared",
                                            0,
                                            bly_lines_has_shared,
                                            bly_lines_add_shared,
                                            bly_lines_has_one_shared,
                                            bly_lines_add_one_shared,
                                            &lines_shared };
#if BLY_X86
static const bly_lines_row lines_shared_avx512 = {
    "shared avx512",
    BLY_CPU_AVX512,
    bly_lines_has_shared_avx512,
    bly_lines_add_shared_avx512,
    bly_lines_has_one_shared_avx512,
    bly_lines_add_one_shared_avx512,
    &lines_shared_avx512,
};
#endif

const bly_lines_row bly_lines_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_lines_has_avx512, bly_lines_add_avx512,
      bly_lines_has_one_avx512, bly_lines_add_one_avx512,
      &lines_shared_avx512 },
    { "avx2", BLY_CPU_AVX2, bly_lines_has_avx2, bly_lines_add_avx2,
      bly_lines_has_one_avx2, bly_lines_add_one_avx2, &lines_shared },
#elif BLY_ARM64
    { "neon", BLY_CPU_NEON, bly_lines_has_neon, bly_lines_add_neon,
      bly_lines_has_one_neon, bly_lines_add_one_neon, &lines_shared },
#endif
    { "portable", 0, bly_lines_has_portable, bly_lines_add_portable,
      bly_lines_has_one_portable, bly_lines_add_one_portable, &lines_shared },
};
#endif

BLY_CHOOSE(lines)
