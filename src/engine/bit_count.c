/*
 * bit_count.c - the ones in arrays of bits
 *
 * The number of ones does not depend on byte order, so no word is swapped here.
 */
#include "engine/bit_count.h"

static uint64_t count_portable(const uint64_t *a, size_t nwords)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < nwords; i++)
        sum += (uint64_t)__builtin_popcountll(a[i]);
    return sum;
}

#if BLY_X86
__attribute__((target("popcnt"))) static uint64_t
count_popcnt(const uint64_t *a, size_t nwords)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < nwords; i++)
        sum += (uint64_t)__builtin_popcountll(a[i]);
    return sum;
}
#endif

const bly_count_row bly_count_rows[] = {
#if BLY_X86
    { "popcnt", BLY_CPU_POPCNT, count_popcnt },
#endif
    { "portable", 0, count_portable },
};

BLY_CHOOSE(count)

uint64_t bly_bits_count(const uint64_t *a, size_t nwords)
{
    return bly_count_best()->count(a, nwords);
}

/* Combine a piece that stays in L1, then count it, so that one counting loop
 * serves both functions. */
#define PIECE 512

uint64_t bly_bits_count_or(const uint64_t *a, const uint64_t *b, size_t nwords)
{
    uint64_t piece[PIECE], sum = 0;
    for (size_t at = 0; at < nwords; at += PIECE) {
        const size_t n = nwords - at < PIECE ? nwords - at : PIECE;
        for (size_t i = 0; i < n; i++)
            piece[i] = a[at + i] | b[at + i];
        sum += bly_bits_count(piece, n);
    }
    return sum;
}
