/*
 * slices.c - the AND of rows of bits: portable, and the choice
 */
#include <stdint.h>
#include <string.h>

#include "engine/slices.h"

/* Words are combined as they are: byte order does not matter to an AND. */
void bly_slices_portable(unsigned char *out, const unsigned char *const *rows,
                         size_t n, size_t nbytes)
{
    size_t at = 0;
    for (; at + 32 <= nbytes; at += 32) {
        uint64_t sum[4], word[4];
        memcpy(sum, rows[0] + at, sizeof sum);
        for (size_t i = 1; i < n; i++) {
            memcpy(word, rows[i] + at, sizeof word);
            for (unsigned j = 0; j < 4; j++)
                sum[j] &= word[j];
        }
        memcpy(out + at, sum, sizeof sum);
    }
    for (; at < nbytes; at++) {
        unsigned char byte = rows[0][at];
        for (size_t i = 1; i < n; i++)
            byte &= rows[i][at];
        out[at] = byte;
    }
}

const bly_slices_row bly_slices_rows[] = {
#if BLY_X86
    { "avx2", BLY_CPU_AVX2, bly_slices_avx2 },
#endif
#if BLY_ARM64
    { "neon", BLY_CPU_NEON, bly_slices_neon },
#endif
    { "portable", 0, bly_slices_portable },
};

BLY_CHOOSE(slices)
