/*
 * x86_hash.c - integers to hashes, eight at once, with AVX-512
 *
 * The row is for kinds that get hashes; blocked filters hash in their own walk
 * (x86_lines.c).
 */
#include "core/hash.h"
#include "engine/x86_eight.h"

#if BLY_X86

BLY_AVX512 void bly_ints_avx512(const uint64_t *ints, size_t n, uint64_t flip,
                                uint64_t *hashes)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm512_storeu_si512(
            hashes + i, bly_eight_int_hash(_mm512_loadu_si512(ints + i), flip));
    for (; i < n; i++)
        hashes[i] = bly_int_hash(ints[i], flip);
}

#endif
