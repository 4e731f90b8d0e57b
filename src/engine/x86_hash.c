/*
 * x86_hash.c - hashes of eight values at once, with AVX-512: integers, and
 * XXH64 of 4 or 8 bytes
 */
#include "engine/hash_many.h"
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

BLY_AVX512 void bly_ints_folded_avx512(const uint64_t *ints, size_t n,
                                       uint64_t word, uint64_t *hashes)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm512_storeu_si512(
            hashes + i,
            bly_eight_int_folded(_mm512_loadu_si512(ints + i), word));
    for (; i < n; i++)
        hashes[i] = bly_int_folded(ints[i], word);
}

#define XXH_P1 UINT64_C(0x9e3779b185ebca87)
#define XXH_P2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define XXH_P3 UINT64_C(0x165667b19e3779f9)
#define XXH_P4 UINT64_C(0x85ebca77c2b2ae63)
#define XXH_P5 UINT64_C(0x27d4eb2f165667c5)

BLY_EIGHT __m512i times(__m512i x, uint64_t by)
{
    return _mm512_mullo_epi64(x, bly_eight_all(by));
}

BLY_EIGHT __m512i plus(__m512i x, uint64_t y)
{
    return _mm512_add_epi64(x, bly_eight_all(y));
}

BLY_EIGHT void finish(__m512i h, uint64_t *out)
{
    h = times(_mm512_xor_si512(h, _mm512_srli_epi64(h, 33)), XXH_P2);
    h = times(_mm512_xor_si512(h, _mm512_srli_epi64(h, 29)), XXH_P3);
    h = _mm512_xor_si512(h, _mm512_srli_epi64(h, 32));
    _mm512_storeu_si512(out, h);
}

/* For so few bytes XXH64 is one step over the value and a final mixing. */
BLY_AVX512 void bly_xxh64_avx512(const unsigned char *at, size_t width,
                                 size_t n, uint64_t *out)
{
    const size_t whole = width == 4 || width == 8 ? n & ~(size_t)7 : 0;
    const __m512i start = bly_eight_all(XXH_P5 + width);
    for (size_t i = 0; width == 8 && i < whole; i += 8) {
        const __m512i x = _mm512_loadu_si512(at + i * 8);
        const __m512i k = times(_mm512_rol_epi64(times(x, XXH_P2), 31), XXH_P1);
        const __m512i h = _mm512_rol_epi64(_mm512_xor_si512(start, k), 27);
        finish(plus(times(h, XXH_P1), XXH_P4), out + i);
    }
    for (size_t i = 0; width == 4 && i < whole; i += 8) {
        const __m512i x = _mm512_cvtepu32_epi64(
            _mm256_loadu_si256((const __m256i *)(const void *)(at + i * 4)));
        const __m512i h =
            _mm512_rol_epi64(_mm512_xor_si512(start, times(x, XXH_P1)), 23);
        finish(plus(times(h, XXH_P2), XXH_P3), out + i);
    }
    bly_xxh64_portable(at + whole * width, width, n - whole, out + whole);
}

#endif
