/*
 * arm_slices.c - the AND of rows of bits, with NEON
 */
#include "engine/slices.h"

#if BLY_ARM64
#include <arm_neon.h>

static inline __attribute__((always_inline)) void
slices_piece(unsigned char *out, const unsigned char *const *rows, size_t n,
             size_t at, unsigned many)
{
    uint8x16_t sum[8];
    for (unsigned j = 0; j < many; j++)
        sum[j] = vld1q_u8(rows[0] + at + 16 * (size_t)j);
    for (size_t i = 1; i < n; i++)
        for (unsigned j = 0; j < many; j++)
            sum[j] = vandq_u8(sum[j], vld1q_u8(rows[i] + at + 16 * (size_t)j));
    for (unsigned j = 0; j < many; j++)
        vst1q_u8(out + at + 16 * (size_t)j, sum[j]);
}

void bly_slices_neon(unsigned char *out, const unsigned char *const *rows,
                     size_t n, size_t nbytes)
{
    size_t at = 0;
    for (; at + 128 <= nbytes; at += 128)
        slices_piece(out, rows, n, at, 8);
    for (; at + 16 <= nbytes; at += 16)
        slices_piece(out, rows, n, at, 1);
    for (; at < nbytes; at++) {
        unsigned char byte = rows[0][at];
        for (size_t i = 1; i < n; i++)
            byte &= rows[i][at];
        out[at] = byte;
    }
}

#endif
