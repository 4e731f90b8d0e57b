/*
 * x86_lines.c - keys in cache lines, with AVX2 and AVX-512
 *
 * For k = 8 a lane is a word, and a vector makes the mask of a whole line at
 * once: shift g right by 6 i in lane i, then shift (AVX-512: rotate, which
 * takes its count modulo 64 by itself) a one left by that. AVX-512 holds the
 * line in one register, AVX2 in two. For other k the portable rows serve.
 */
#include "core/lines.h"

#if BLY_X86
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi2,popcnt")))
#define AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")))

typedef struct half_masks {
    __m256i low, high;
} half_masks;

static inline AVX2 half_masks mask_avx2(uint64_t h)
{
    const __m256i g =
        _mm256_set1_epi64x((long long)bly_lines_spread(h, BLY_LINES_C1));
    const __m256i one = _mm256_set1_epi64x(1), six = _mm256_set1_epi64x(63);
    const __m256i low = _mm256_srlv_epi64(g, _mm256_setr_epi64x(0, 6, 12, 18));
    const __m256i high =
        _mm256_srlv_epi64(g, _mm256_setr_epi64x(24, 30, 36, 42));
    return (half_masks){
        _mm256_sllv_epi64(one, _mm256_and_si256(low, six)),
        _mm256_sllv_epi64(one, _mm256_and_si256(high, six)),
    };
}

static inline AVX2 bool has_avx2(const uint64_t *line, uint64_t h)
{
    const half_masks m = mask_avx2(h);
    const __m256i *at = (const __m256i *)(const void *)line;
    return _mm256_testc_si256(_mm256_load_si256(at), m.low) &
           _mm256_testc_si256(_mm256_load_si256(at + 1), m.high);
}

static inline AVX2 bool add_avx2(uint64_t *line, uint64_t h)
{
    const half_masks m = mask_avx2(h);
    __m256i *at = (__m256i *)(void *)line;
    const __m256i low = _mm256_load_si256(at);
    const __m256i high = _mm256_load_si256(at + 1);
    _mm256_store_si256(at, _mm256_or_si256(low, m.low));
    _mm256_store_si256(at + 1, _mm256_or_si256(high, m.high));
    return !(_mm256_testc_si256(low, m.low) & _mm256_testc_si256(high, m.high));
}

AVX2 void bly_lines_has_avx2(const bly_lines *a, const uint64_t *h, size_t n,
                             uint64_t *maybe)
{
    if (a->k != 8) {
        bly_lines_has_shared(a, h, n, maybe);
        return;
    }
    BLY_LINES_WALK(a, h, n, false, has_avx2(line, hash),
                   maybe[from / 64] = bits);
}

AVX2 uint64_t bly_lines_add_avx2(const bly_lines *a, const uint64_t *h,
                                 size_t n, uint64_t *fresh)
{
    uint64_t nfresh = 0;
    if (a->k != 8)
        return bly_lines_add_portable(a, h, n, fresh);
    BLY_LINES_WALK(a, h, n, true, add_avx2(line, hash), {
        nfresh += (uint64_t)__builtin_popcountll(bits);
        if (fresh)
            fresh[from / 64] = bits;
    });
    return nfresh;
}

static inline AVX512 __m512i mask_avx512(uint64_t h)
{
    const __m512i g =
        _mm512_set1_epi64((long long)bly_lines_spread(h, BLY_LINES_C1));
    const __m512i by = _mm512_setr_epi64(0, 6, 12, 18, 24, 30, 36, 42);
    return _mm512_rolv_epi64(_mm512_set1_epi64(1), _mm512_srlv_epi64(g, by));
}

/* A lane of the mask has one bit: it is in the line where the AND is not 0. */
static inline AVX512 bool has_avx512(const uint64_t *line, uint64_t h)
{
    return _mm512_test_epi64_mask(mask_avx512(h), _mm512_load_si512(line)) ==
           0xff;
}

static inline AVX512 bool add_avx512(uint64_t *line, uint64_t h)
{
    const __m512i mask = mask_avx512(h), old = _mm512_load_si512(line);
    _mm512_store_si512(line, _mm512_or_si512(old, mask));
    return _mm512_test_epi64_mask(mask, old) != 0xff;
}

AVX512 void bly_lines_has_avx512(const bly_lines *a, const uint64_t *h,
                                 size_t n, uint64_t *maybe)
{
    if (a->k != 8) {
        bly_lines_has_shared(a, h, n, maybe);
        return;
    }
    BLY_LINES_WALK(a, h, n, false, has_avx512(line, hash),
                   maybe[from / 64] = bits);
}

AVX512 uint64_t bly_lines_add_avx512(const bly_lines *a, const uint64_t *h,
                                     size_t n, uint64_t *fresh)
{
    uint64_t nfresh = 0;
    if (a->k != 8)
        return bly_lines_add_portable(a, h, n, fresh);
    BLY_LINES_WALK(a, h, n, true, add_avx512(line, hash), {
        nfresh += (uint64_t)__builtin_popcountll(bits);
        if (fresh)
            fresh[from / 64] = bits;
    });
    return nfresh;
}

#else
typedef int bly_x86_lines_is_empty; /* C has no empty file */
#endif
