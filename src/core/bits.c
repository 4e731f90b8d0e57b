/*
 * bits.c - arrays of bits: combining, folding
 */
#include "core/bits.h"

void bly_bits_or(uint64_t *a, const uint64_t *b, size_t nwords)
{
    for (size_t i = 0; i < nwords; i++)
        a[i] |= b[i];
}

void bly_bits_and(uint64_t *a, const uint64_t *b, size_t nwords)
{
    for (size_t i = 0; i < nwords; i++)
        a[i] &= b[i];
}

/* The bits of the last word that belong to an array of n. */
static uint64_t last_word(uint64_t n)
{
    return bly_le64(bly_through(n - 1));
}

void bly_bits_fold_halves(uint64_t *dst, const uint64_t *src, uint64_t half)
{
    const size_t nwords = (size_t)((half + 63) / 64);
    const size_t end = (size_t)((2 * half + 63) / 64);
    const size_t skip = (size_t)(half / 64);
    const unsigned low = (unsigned)(half % 64);
    for (size_t i = 0; i < nwords; i++) {
        uint64_t upper = bly_le64(src[skip + i]) >> low;
        if (low && skip + i + 1 < end)
            upper |= bly_le64(src[skip + i + 1]) << (64 - low);
        dst[i] = src[i] | bly_le64(upper);
    }
    dst[nwords - 1] &= last_word(half);
}

/* Bits 0, 2, 4, ... of x, side by side. */
static uint64_t even_bits(uint64_t x)
{
    x &= UINT64_C(0x5555555555555555);
    x = (x | x >> 1) & UINT64_C(0x3333333333333333);
    x = (x | x >> 2) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    x = (x | x >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (x | x >> 16) & UINT64_C(0x00000000ffffffff);
}

void bly_bits_fold_pairs(uint64_t *dst, const uint64_t *src, uint64_t half)
{
    const size_t nwords = (size_t)((half + 63) / 64);
    const size_t end = (size_t)((2 * half + 63) / 64);
    for (size_t i = 0; i < nwords; i++) {
        const uint64_t a = bly_le64(src[2 * i]);
        const uint64_t b = 2 * i + 1 < end ? bly_le64(src[2 * i + 1]) : 0;
        dst[i] = bly_le64(even_bits(a | a >> 1) | even_bits(b | b >> 1) << 32);
    }
    dst[nwords - 1] &= last_word(half);
}

bool bly_bits_tail_clear(const uint64_t *a, uint64_t from, size_t nwords)
{
    size_t i = (size_t)(from >> 6);
    if (i < nwords && (from & 63) && bly_le64(a[i++]) >> (from & 63))
        return false;
    for (; i < nwords; i++)
        if (a[i])
            return false;
    return true;
}
