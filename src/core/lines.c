/*
 * lines.c - keys in cache lines: the portable rows, and the choice
 */
#include <stdatomic.h>

#include "core/lines.h"

/* The mask of a key within its line. k is a literal wherever this is used. */
static inline __attribute__((always_inline)) void
line_mask(uint64_t h, unsigned k, uint64_t mask[BLY_LINE_WORDS])
{
    const uint64_t g = bly_lines_spread(h, BLY_LINES_C1);
    if (k == 8) {
        for (unsigned i = 0; i < 8; i++)
            mask[i] = UINT64_C(1) << (g >> (6 * i) & 63);
    } else if (k == 16) {
        const uint64_t g2 = bly_lines_spread(h, BLY_LINES_C2);
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

static inline __attribute__((always_inline)) bool
line_has(const uint64_t *line, uint64_t h, unsigned k)
{
    uint64_t mask[BLY_LINE_WORDS], missing = 0;
    line_mask(h, k, mask);
    for (unsigned w = 0; w < BLY_LINE_WORDS; w++)
        missing |= mask[w] & ~bly_le64(bly_word_load(&line[w]));
    return missing == 0;
}

static inline __attribute__((always_inline)) bool
line_add(uint64_t *line, uint64_t h, unsigned k, bool shared)
{
    uint64_t mask[BLY_LINE_WORDS], clear = 0;
    line_mask(h, k, mask);
    for (unsigned w = 0; w < BLY_LINE_WORDS; w++) {
        const uint64_t set = bly_le64(mask[w]);
        if (!set)
            continue;
        if (shared) {
            clear |= bly_word_or_shared(&line[w], set);
        } else {
            clear |= set & ~line[w];
            line[w] |= set;
        }
    }
    return clear != 0;
}

static inline __attribute__((always_inline)) void
lines_has(const bly_lines *a, const uint64_t *h, size_t n, uint64_t *maybe,
          unsigned k)
{
    BLY_LINES_WALK(a, h, n, false, line_has(line, hash, k),
                   maybe[from / 64] = bits);
}

static inline __attribute__((always_inline)) uint64_t
lines_add(const bly_lines *a, const uint64_t *h, size_t n, uint64_t *fresh,
          unsigned k, bool shared)
{
    uint64_t nfresh = 0;
    BLY_LINES_WALK(a, h, n, true, line_add(line, hash, k, shared), {
        nfresh += (uint64_t)__builtin_popcountll(bits);
        if (fresh)
            fresh[from / 64] = bits;
    });
    return nfresh;
}

/* The one place where k becomes a literal: run STATEMENT(k). */
#define BY_K(k, STATEMENT) \
    switch (k) {           \
    case 1:                \
        STATEMENT(1);      \
        break;             \
    case 2:                \
        STATEMENT(2);      \
        break;             \
    case 4:                \
        STATEMENT(4);      \
        break;             \
    case 8:                \
        STATEMENT(8);      \
        break;             \
    default:               \
        STATEMENT(16);     \
        break;             \
    }

void bly_lines_has_shared(const bly_lines *a, const uint64_t *h, size_t n,
                          uint64_t *maybe){
#define HAS_K(k) lines_has(a, h, n, maybe, k)
    BY_K(a->k, HAS_K)
}

uint64_t bly_lines_add_portable(const bly_lines *a, const uint64_t *h, size_t n,
                                uint64_t *fresh)
{
    uint64_t nfresh = 0;
#define ADD_K(k) nfresh = lines_add(a, h, n, fresh, k, false)
    BY_K(a->k, ADD_K)
    return nfresh;
}

uint64_t bly_lines_add_shared(const bly_lines *a, const uint64_t *h, size_t n,
                              uint64_t *fresh)
{
    uint64_t nfresh = 0;
#define ADD_SHARED_K(k) nfresh = lines_add(a, h, n, fresh, k, true)
    BY_K(a->k, ADD_SHARED_K)
    return nfresh;
}

/* Best first. The last row needs nothing, so the search always ends. */
const bly_lines_row bly_lines_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_lines_has_avx512, bly_lines_add_avx512 },
    { "avx2", BLY_CPU_AVX2, bly_lines_has_avx2, bly_lines_add_avx2 },
#endif
    { "portable", 0, bly_lines_has_shared, bly_lines_add_portable },
};

const bly_lines_row *bly_lines_best(void)
{
    static _Atomic(const bly_lines_row *) chosen;
    const bly_lines_row *row =
        atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!row) {
        /* Two threads may both choose; they choose the same row. */
        row = bly_lines_rows;
        while (row->needs & ~bly_cpu_features())
            row++;
        atomic_store_explicit(&chosen, row, memory_order_relaxed);
    }
    return row;
}
