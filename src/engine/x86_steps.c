/*
 * x86_steps.c - the k positions of many keys at once, with AVX2 and AVX-512
 *
 * Eight keys to a vector, or four. The high half of a product is put together
 * from four products of halves, as in bits.h. A sum x that may have passed m is
 * reduced to the lesser of x and x - m, both read as unsigned: below m, x - m
 * wraps round to a huge number. AVX2 has no such minimum but can choose by the
 * sign of x - m, which is right since sums stay below 2^63.
 */
#include "core/position.h"
#include "engine/steps.h"
#include "engine/x86_eight.h"

#if BLY_X86

#define AVX2 __attribute__((target("avx2,bmi2,popcnt")))

/* The same text for both lengths of vector. */
#define STEPS_ROW(ROW, TARGET, VEC, LANES, WRAP)                               \
    static inline TARGET VEC steps_mulhi_##ROW(VEC a, VEC b)                   \
    {                                                                          \
        const VEC ah = SRLI_##ROW(a, 32), bh = SRLI_##ROW(b, 32);              \
        /* Sums of at most (2^32 - 1)^2 + 2^32 - 1 fit into 64 bits. */        \
        const VEC mid =                                                        \
            ADD_##ROW(MUL32_##ROW(ah, b), SRLI_##ROW(MUL32_##ROW(a, b), 32));  \
        const VEC low =                                                        \
            ADD_##ROW(MUL32_##ROW(a, bh),                                      \
                      AND_##ROW(mid, SET1_##ROW(UINT64_C(0xffffffff))));       \
        return ADD_##ROW(ADD_##ROW(MUL32_##ROW(ah, bh), SRLI_##ROW(mid, 32)),  \
                         SRLI_##ROW(low, 32));                                 \
    }                                                                          \
                                                                               \
    static inline TARGET VEC steps_mix_##ROW(VEC x)                            \
    {                                                                          \
        x = XOR_##ROW(x, SRLI_##ROW(x, 30));                                   \
        x = MULLO_##ROW(x, SET1_##ROW(UINT64_C(0xbf58476d1ce4e5b9)));          \
        x = XOR_##ROW(x, SRLI_##ROW(x, 27));                                   \
        x = MULLO_##ROW(x, SET1_##ROW(UINT64_C(0x94d049bb133111eb)));          \
        return XOR_##ROW(x, SRLI_##ROW(x, 31));                                \
    }                                                                          \
                                                                               \
    static inline TARGET VEC steps_mod_##ROW(VEC h, VEC m, VEC inverse)        \
    {                                                                          \
        /* bly_mod(): the quotient is right, or one short. */                  \
        return WRAP(                                                           \
            SUB_##ROW(h, MULLO_##ROW(steps_mulhi_##ROW(h, inverse), m)), m);   \
    }                                                                          \
                                                                               \
    /* The next LANES keys; which of them have positions near to each other */ \
    static inline __attribute__((always_inline))                               \
    TARGET uint64_t steps_of_##ROW(const bly_steps *s, VEC h, uint64_t *at,    \
                                   bool listed)                                \
    {                                                                          \
        const VEC m = SET1_##ROW(s->range.n);                                  \
        const VEC inverse = SET1_##ROW(s->range.inverse);                      \
        const VEC far = SET1_##ROW(bly_steps_far(s->range.n, s->k));           \
        const VEC one = SET1_##ROW(1);                                         \
        VEC x = steps_mod_##ROW(h, m, inverse);                                \
        VEC y = steps_mod_##ROW(steps_mix_##ROW(h), m, inverse);               \
        const VEC y0 = y;                                                      \
        const size_t stride = s->stride;                                       \
        VEC dy = SET1_##ROW(0), i = one;                                       \
        uint64_t near = 0;                                                     \
        STORE_##ROW(at, x);                                                    \
        /* As steps_of_key(); i is the same in all lanes. */                   \
        for (uint64_t left = s->k - 1; left; left--) {                         \
            x = WRAP(ADD_##ROW(x, y), m);                                      \
            y = WRAP(ADD_##ROW(y, i), m);                                      \
            i = ADD_##ROW(i, one);                                             \
            at += stride;                                                      \
            STORE_##ROW(at, x);                                                \
            if (listed) {                                                      \
                dy = WRAP(ADD_##ROW(dy, y0), m);                               \
                near |= NEAR_##ROW(SUB_##ROW(dy, one), far);                   \
            }                                                                  \
        }                                                                      \
        return near;                                                           \
    }                                                                          \
                                                                               \
    static inline TARGET void steps_apart_##ROW(const bly_steps *s, VEC h,     \
                                                uint64_t *at)                  \
    {                                                                          \
        const VEC m = SET1_##ROW(s->range.n);                                  \
        const VEC step = SET1_##ROW(BLY_POSITION_STEP);                        \
        const VEC apart = SET1_##ROW(s->apart);                                \
        const size_t stride = s->stride;                                       \
        VEC slice = SET1_##ROW(0);                                             \
        for (uint64_t left = s->k; left; left--) {                             \
            /* bly_position(), one step of SplitMix64 after the other. */      \
            h = ADD_##ROW(h, step);                                            \
            STORE_##ROW(at, ADD_##ROW(slice, steps_mulhi_##ROW(                \
                                                 steps_mix_##ROW(h), m)));     \
            slice = ADD_##ROW(slice, apart);                                   \
            at += stride;                                                      \
        }                                                                      \
    }                                                                          \
                                                                               \
    /* narrow: m is below 2^32, so that half of the products will do. */       \
    static inline __attribute__((always_inline))                               \
    TARGET void steps_powers_##ROW(const bly_steps *s, VEC g, uint64_t *at,    \
                                   bool narrow)                                \
    {                                                                          \
        const VEC m = SET1_##ROW(s->range.n);                                  \
        const VEC c = SET1_##ROW(BLY_POWERS_C);                                \
        const size_t stride = s->stride;                                       \
        for (uint64_t left = s->k; left; left--) {                             \
            const VEC x =                                                      \
                narrow                                                         \
                    ? SRLI_##ROW(ADD_##ROW(MUL32_##ROW(SRLI_##ROW(g, 32), m),  \
                                           SRLI_##ROW(MUL32_##ROW(g, m), 32)), \
                                 32)                                           \
                    : steps_mulhi_##ROW(g, m);                                 \
            STORE_##ROW(at, x);                                                \
            g = MULLO_##ROW(g, c);                                             \
            at += stride;                                                      \
        }                                                                      \
    }                                                                          \
                                                                               \
    TARGET void bly_steps_fill_##ROW(const bly_steps *s, const uint64_t *h,    \
                                     size_t n, uint64_t *at)                   \
    {                                                                          \
        /* Whole vectors are stored: the stride leaves room for that. */       \
        if (s->rule == BLY_STEPS_MIXED)                                        \
            for (size_t j = 0; j < n; j += LANES)                              \
                steps_apart_##ROW(s, LOAD_##ROW(h + j, n - j), at + j);        \
        else if (s->rule == BLY_STEPS_POWERS && s->range.n <= UINT32_MAX)      \
            for (size_t j = 0; j < n; j += LANES)                              \
                steps_powers_##ROW(s, LOAD_##ROW(h + j, n - j), at + j, true); \
        else if (s->rule == BLY_STEPS_POWERS)                                  \
            for (size_t j = 0; j < n; j += LANES)                              \
                steps_powers_##ROW(s, LOAD_##ROW(h + j, n - j), at + j,        \
                                   false);                                     \
        else                                                                   \
            for (size_t j = 0; j < n; j += LANES)                              \
                steps_of_##ROW(s, LOAD_##ROW(h + j, n - j), at + j, false);    \
    }                                                                          \
                                                                               \
    TARGET void bly_steps_list_##ROW(const bly_steps *s, const uint64_t *h,    \
                                     size_t n, uint64_t *at, uint64_t *near)   \
    {                                                                          \
        for (size_t j = 0; j < n; j += LANES) {                                \
            const uint64_t bits =                                              \
                steps_of_##ROW(s, LOAD_##ROW(h + j, n - j), at + j, true);     \
            /* A word of near is begun with its first lanes. */                \
            near[j / 64] = (j % 64 ? near[j / 64] : 0) | bits << j % 64;       \
        }                                                                      \
        /* Lanes past the last key worked on zeros and say nothing. */         \
        if (n % 64)                                                            \
            near[n / 64] &= bly_through(n - 1);                                \
    }

/* ---------------------------------------------------------------- AVX-512 */

#define SRLI_avx512(a, by) _mm512_srli_epi64(a, by)
#define ADD_avx512(a, b) _mm512_add_epi64(a, b)
#define SUB_avx512(a, b) _mm512_sub_epi64(a, b)
#define AND_avx512(a, b) _mm512_and_si512(a, b)
#define XOR_avx512(a, b) _mm512_xor_si512(a, b)
#define MUL32_avx512(a, b) _mm512_mul_epu32(a, b)
#define MULLO_avx512(a, b) _mm512_mullo_epi64(a, b)
#define SET1_avx512(x) _mm512_set1_epi64((long long)(x))
#define STORE_avx512(at, x) _mm512_storeu_si512(at, x)
#define LOAD_avx512(h, left) _mm512_maskz_loadu_epi64(bly_steps_mask8(left), h)
#define NEAR_avx512(a, far) ((uint64_t)_mm512_cmpge_epu64_mask(a, far))
#define WRAP_avx512(x, m) steps_wrap_avx512(x, m)

/* The lanes that have a key. The others are loaded as 0, so that nothing is
 * read past the end of h. */
static inline __mmask8 bly_steps_mask8(size_t left)
{
    return (__mmask8)(left < 8 ? (1u << left) - 1 : 0xff);
}

static inline BLY_AVX512 __m512i steps_wrap_avx512(__m512i x, __m512i m)
{
    return _mm512_min_epu64(x, _mm512_sub_epi64(x, m));
}

STEPS_ROW(avx512, BLY_AVX512, __m512i, 8, WRAP_avx512)

/* ------------------------------------------------------------------- AVX2 */

#define SRLI_avx2(a, by) _mm256_srli_epi64(a, by)
#define ADD_avx2(a, b) _mm256_add_epi64(a, b)
#define SUB_avx2(a, b) _mm256_sub_epi64(a, b)
#define AND_avx2(a, b) _mm256_and_si256(a, b)
#define XOR_avx2(a, b) _mm256_xor_si256(a, b)
#define MUL32_avx2(a, b) _mm256_mul_epu32(a, b)
#define MULLO_avx2(a, b) steps_mullo_avx2(a, b)
#define SET1_avx2(x) _mm256_set1_epi64x((long long)(x))
#define STORE_avx2(at, x) _mm256_storeu_si256((__m256i *)(void *)(at), x)
#define LOAD_avx2(h, left) steps_load_avx2(h, left)
#define NEAR_avx2(a, far) steps_near_avx2(a, far)
#define WRAP_avx2(x, m) steps_wrap_avx2(x, m)

static inline AVX2 __m256i steps_mullo_avx2(__m256i a, __m256i b)
{
    /* The product of the high halves lies above bit 63 and is left out. */
    const __m256i cross =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b),
                         _mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));
    return _mm256_add_epi64(_mm256_mul_epu32(a, b),
                            _mm256_slli_epi64(cross, 32));
}

static inline AVX2 __m256i steps_wrap_avx2(__m256i x, __m256i m)
{
    const __m256i less = _mm256_sub_epi64(x, m);
    return _mm256_castpd_si256(_mm256_blendv_pd(_mm256_castsi256_pd(less),
                                                _mm256_castsi256_pd(x),
                                                _mm256_castsi256_pd(less)));
}

/* a >= far, unsigned, with a signed comparison: only a = -1, which stands for
 * dy = 0, has its sign bit set, and that is OR'ed in. */
static inline AVX2 uint64_t steps_near_avx2(__m256i a, __m256i far)
{
    const __m256i not = _mm256_cmpgt_epi64(far, a);
    const __m256i hit =
        _mm256_or_si256(_mm256_xor_si256(not, _mm256_set1_epi64x(-1)), a);
    return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(hit));
}

static inline AVX2 __m256i steps_load_avx2(const uint64_t *h, size_t left)
{
    const __m256i number = _mm256_setr_epi64x(0, 1, 2, 3);
    const __m256i mask = _mm256_cmpgt_epi64(
        _mm256_set1_epi64x(left < 4 ? (long long)left : 4), number);
    return _mm256_maskload_epi64((const long long *)(const void *)h, mask);
}

STEPS_ROW(avx2, AVX2, __m256i, 4, WRAP_avx2)

#endif
