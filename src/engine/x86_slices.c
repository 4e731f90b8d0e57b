/*
 * x86_slices.c - the AND of rows of bits, with AVX2
 */
#include "engine/slices.h"

#if BLY_X86
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* `many` vectors at `at` of all rows. */
static inline AVX2 __attribute__((always_inline)) void
slices_piece(unsigned char *out, const unsigned char *const *rows, size_t n,
             size_t at, unsigned many)
{
    __m256i sum[8];
    for (unsigned j = 0; j < many; j++)
        sum[j] =
            _mm256_loadu_si256((const void *)(rows[0] + at + 32 * (size_t)j));
    for (size_t i = 1; i < n; i++)
        for (unsigned j = 0; j < many; j++)
            sum[j] = _mm256_and_si256(
                sum[j], _mm256_loadu_si256(
                            (const void *)(rows[i] + at + 32 * (size_t)j)));
    for (unsigned j = 0; j < many; j++)
        _mm256_storeu_si256((void *)(out + at + 32 * (size_t)j), sum[j]);
}

AVX2 void bly_slices_avx2(unsigned char *out, const unsigned char *const *rows,
                          size_t n, size_t nbytes)
{
    size_t at = 0;
    for (; at + 256 <= nbytes; at += 256)
        slices_piece(out, rows, n, at, 8);
    for (; at + 32 <= nbytes; at += 32)
        slices_piece(out, rows, n, at, 1);
    for (; at < nbytes; at++) {
        unsigned char byte = rows[0][at];
        for (size_t i = 1; i < n; i++)
            byte &= rows[i][at];
        out[at] = byte;
    }
}

#endif
