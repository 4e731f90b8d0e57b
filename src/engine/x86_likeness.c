/*
 * x86_likeness.c - words and minima, with AVX2 and AVX-512
 *
 * Words: a byte is a letter if, with bit 5 set, it is at most 25 above 'a', a
 * digit if at most 9 above '0', and part of another script if its top bit is
 * set. A mask of comparisons has one bit per byte. AVX2 compares unsigned bytes
 * by taking the lesser.
 *
 * Hashes: words are short and their lengths a coin flip, so that a branch on
 * them costs more than the hash. AVX-512 takes eight words at once and computes
 * what XXH3 does for 1 to 3, for 4 to 8 and for 9 to 16 bytes; each word then
 * takes the result for its own length. Longer words are hashed one by one.
 *
 * Bins: AVX-512 multiplies eight words of 64 bits at once and so makes eight
 * hashes; the bins then take them one by one, since two may share one. AVX2
 * would need three multiplications for one, and gains nothing.
 *
 * Minima: the minima and the coefficients of 128 maps fit the 32 registers of
 * AVX-512, those of 32 the 16 of AVX2; all x pass by them.
 */
#include "engine/likeness.h"

#if BLY_X86
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define AVX512      \
    __attribute__(( \
        target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,popcnt,lzcnt")))

/* ------------------------------------------------------------------- words */

static inline AVX2 __m256i at_most_avx2(__m256i c, char first, char span)
{
    const __m256i above = _mm256_sub_epi8(c, _mm256_set1_epi8(first));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(above, _mm256_set1_epi8(span)),
                             above);
}

static inline AVX2 uint32_t fold_avx2(const unsigned char *text,
                                      unsigned char *folded)
{
    const __m256i bit5 = _mm256_set1_epi8(32);
    const __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)text);
    const __m256i low = _mm256_or_si256(c, bit5);
    const __m256i letter = at_most_avx2(low, 'a', 25);
    const __m256i digit = at_most_avx2(c, '0', 9);
    /* Blending looks at the top bit of each byte of its mask. */
    const __m256i word = _mm256_or_si256(_mm256_or_si256(letter, digit), c);
    const __m256i lower = _mm256_or_si256(c, _mm256_and_si256(letter, bit5));
    _mm256_storeu_si256(
        (__m256i *)(void *)folded,
        _mm256_blendv_epi8(_mm256_setzero_si256(), lower, word));
    return (uint32_t)_mm256_movemask_epi8(word);
}

AVX2 void bly_words_avx2(const unsigned char *text, size_t nblocks,
                         unsigned char *folded, uint64_t *masks)
{
    for (size_t i = 0; i < nblocks; i++, text += 64, folded += 64) {
        const uint64_t low = fold_avx2(text, folded);
        masks[i] = low | (uint64_t)fold_avx2(text + 32, folded + 32) << 32;
    }
}

AVX512 void bly_words_avx512(const unsigned char *text, size_t nblocks,
                             unsigned char *folded, uint64_t *masks)
{
    const __m512i bit5 = _mm512_set1_epi8(32);
    for (size_t i = 0; i < nblocks; i++, text += 64, folded += 64) {
        const __m512i c = _mm512_loadu_si512(text);
        const __m512i low = _mm512_or_si512(c, bit5);
        const __mmask64 letter = _mm512_cmple_epu8_mask(
            _mm512_sub_epi8(low, _mm512_set1_epi8('a')), _mm512_set1_epi8(25));
        const __mmask64 digit = _mm512_cmple_epu8_mask(
            _mm512_sub_epi8(c, _mm512_set1_epi8('0')), _mm512_set1_epi8(9));
        const __mmask64 other = _mm512_movepi8_mask(c);
        masks[i] = letter | digit | other;
        _mm512_storeu_si512(
            folded, _mm512_mask_blend_epi8(
                        letter, _mm512_maskz_mov_epi8(masks[i], c), low));
    }
}

/* ------------------------------------------------------------------ hashes */

/* The first bytes of XXH3's secret, as words. */
static const uint64_t xxh3_secret[7] = {
    UINT64_C(0xbe4ba423396cfeb8), UINT64_C(0x1cad21f72c81017c),
    UINT64_C(0xdb979083e96dd4de), UINT64_C(0x1f67b3b7a4a44072),
    UINT64_C(0x78e5c0cc4ee679cb), UINT64_C(0x2172ffcc7dd05a82),
    UINT64_C(0x8e2443f7744608b8),
};

static inline AVX512 __m512i mul_avx512(__m512i x, uint64_t by)
{
    return _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)by));
}

static inline AVX512 __m512i shift_in_avx512(__m512i x, unsigned by)
{
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, by));
}

/* 1 to 3 bytes: the first, the middle, the last and the length. */
static inline AVX512 __m512i hash_1to3(__m512i low, __m512i len, uint64_t seed)
{
    const __m512i byte = _mm512_set1_epi64(255);
    const __m512i one = _mm512_set1_epi64(1);
    const __m512i middle =
        _mm512_slli_epi64(_mm512_srli_epi64(len, 1), 3); /* in bits */
    const __m512i last = _mm512_slli_epi64(_mm512_sub_epi64(len, one), 3);
    const __m512i c1 = _mm512_and_si512(low, byte);
    const __m512i c2 = _mm512_and_si512(_mm512_srlv_epi64(low, middle), byte);
    const __m512i c3 = _mm512_and_si512(_mm512_srlv_epi64(low, last), byte);
    const __m512i all = _mm512_or_si512(
        _mm512_or_si512(_mm512_slli_epi64(c1, 16), _mm512_slli_epi64(c2, 24)),
        _mm512_or_si512(c3, _mm512_slli_epi64(len, 8)));
    const uint64_t flip =
        ((uint32_t)xxh3_secret[0] ^ xxh3_secret[0] >> 32) + seed;
    __m512i h = _mm512_xor_si512(all, _mm512_set1_epi64((long long)flip));
    h = mul_avx512(shift_in_avx512(h, 33), UINT64_C(0xc2b2ae3d27d4eb4f));
    h = mul_avx512(shift_in_avx512(h, 29), UINT64_C(0x165667b19e3779f9));
    return shift_in_avx512(h, 32);
}

/* 4 to 8 bytes: the first four and the last four. */
static inline AVX512 __m512i hash_4to8(__m512i low, __m512i len, uint64_t seed)
{
    const __m512i past = /* of the last four, in bits */
        _mm512_slli_epi64(_mm512_sub_epi64(len, _mm512_set1_epi64(4)), 3);
    const __m512i end = _mm512_and_si512(_mm512_srlv_epi64(low, past),
                                         _mm512_set1_epi64(0xffffffff));
    seed ^= (uint64_t)__builtin_bswap32((uint32_t)seed) << 32;
    const uint64_t flip = (xxh3_secret[1] ^ xxh3_secret[2]) - seed;
    __m512i h =
        _mm512_xor_si512(_mm512_add_epi64(end, _mm512_slli_epi64(low, 32)),
                         _mm512_set1_epi64((long long)flip));
    h = _mm512_xor_si512(
        h, _mm512_xor_si512(_mm512_rol_epi64(h, 49), _mm512_rol_epi64(h, 24)));
    h = mul_avx512(h, UINT64_C(0x9fb21c651e98df25));
    h = _mm512_xor_si512(h, _mm512_add_epi64(_mm512_srli_epi64(h, 35), len));
    return shift_in_avx512(mul_avx512(h, UINT64_C(0x9fb21c651e98df25)), 28);
}

/* The two halves of the products of 64 bits, one upon the other. */
static inline AVX512 __m512i fold_product(__m512i a, __m512i b)
{
    const __m512i ah = _mm512_srli_epi64(a, 32), bh = _mm512_srli_epi64(b, 32);
    const __m512i half = _mm512_set1_epi64(0xffffffff);
    const __m512i ll = _mm512_mul_epu32(a, b), lh = _mm512_mul_epu32(a, bh);
    const __m512i hl = _mm512_mul_epu32(ah, b), hh = _mm512_mul_epu32(ah, bh);
    const __m512i mid = _mm512_add_epi64(lh, _mm512_srli_epi64(ll, 32));
    const __m512i mid2 = _mm512_add_epi64(hl, _mm512_and_si512(mid, half));
    const __m512i high =
        _mm512_add_epi64(_mm512_add_epi64(hh, _mm512_srli_epi64(mid, 32)),
                         _mm512_srli_epi64(mid2, 32));
    const __m512i low = _mm512_or_si512(_mm512_slli_epi64(mid2, 32),
                                        _mm512_and_si512(ll, half));
    return _mm512_xor_si512(low, high);
}

/* 9 to 16 bytes: the first eight and the last eight. */
static inline AVX512 __m512i hash_9to16(__m512i low, __m512i high, __m512i len,
                                        uint64_t seed)
{
    const __m512i swap = _mm512_set_epi64(
        0x08090a0b0c0d0e0f, 0x0001020304050607, 0x08090a0b0c0d0e0f,
        0x0001020304050607, 0x08090a0b0c0d0e0f, 0x0001020304050607,
        0x08090a0b0c0d0e0f, 0x0001020304050607);
    const uint64_t flip1 = (xxh3_secret[3] ^ xxh3_secret[4]) + seed;
    const uint64_t flip2 = (xxh3_secret[5] ^ xxh3_secret[6]) - seed;
    low = _mm512_xor_si512(low, _mm512_set1_epi64((long long)flip1));
    high = _mm512_xor_si512(high, _mm512_set1_epi64((long long)flip2));
    __m512i h = _mm512_add_epi64(len, _mm512_shuffle_epi8(low, swap));
    h = _mm512_add_epi64(h, high);
    h = _mm512_add_epi64(h, fold_product(low, high));
    return shift_in_avx512(
        mul_avx512(shift_in_avx512(h, 37), UINT64_C(0x165667919e3779f9)), 32);
}

AVX512 void bly_hashes_avx512(const unsigned char *folded,
                              const uint16_t *edges, size_t n, uint64_t seed,
                              uint64_t *hashes)
{
    const __m512i low16 = _mm512_set1_epi64(0xffff);
    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 here = (__mmask8)(n - i < 8 ? (1u << (n - i)) - 1 : 255);
        const __m512i both = _mm512_cvtepu32_epi64(
            _mm256_maskz_loadu_epi32(here, edges + 2 * i));
        const __m512i start = _mm512_and_si512(both, low16);
        const __m512i end = _mm512_srli_epi64(both, 16);
        const __m512i len = _mm512_sub_epi64(end, start);
        const __mmask8 over3 =
            _mm512_mask_cmpgt_epi64_mask(here, len, _mm512_set1_epi64(3));
        const __mmask8 over8 =
            _mm512_mask_cmpgt_epi64_mask(here, len, _mm512_set1_epi64(8));
        unsigned over16 =
            _mm512_mask_cmpgt_epi64_mask(here, len, _mm512_set1_epi64(16));
        const __m512i zero = _mm512_setzero_si512();
        const __m512i low =
            _mm512_mask_i64gather_epi64(zero, here, start, folded, 1);
        __m512i h = hash_1to3(low, len, seed);
        h = _mm512_mask_mov_epi64(h, over3, hash_4to8(low, len, seed));
        if (over8) {
            const __m512i high = _mm512_mask_i64gather_epi64(
                zero, over8, _mm512_sub_epi64(end, _mm512_set1_epi64(8)),
                folded, 1);
            h = _mm512_mask_mov_epi64(h, over8,
                                      hash_9to16(low, high, len, seed));
        }
        _mm512_mask_storeu_epi64(hashes + i, here, h);
        for (; over16; over16 &= over16 - 1) {
            const size_t j = i + (unsigned)__builtin_ctz(over16);
            hashes[j] =
                bly_word_hash(folded + edges[2 * j],
                              (size_t)(edges[2 * j + 1] - edges[2 * j]), seed);
        }
    }
}

/* -------------------------------------------------------------------- bins */

static inline AVX512 __m512i mix_avx512(__m512i x)
{
    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 33));
    x = _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)BLY_SHINGLE_M1));
    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 33));
    x = _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)BLY_SHINGLE_M2));
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 33));
}

AVX512 void bly_bins_avx512(uint64_t *bins, unsigned t, const uint64_t *x,
                            size_t n, unsigned round)
{
    const __m512i step = _mm512_set1_epi64((long long)BLY_BINS_STEP);
    const __m512i start =
        _mm512_set1_epi64((long long)((round + UINT64_C(1)) * BLY_BINS_STEP));
    const __m512i before =
        _mm512_set1_epi64((long long)((uint64_t)round << BLY_BINS_ROUND));
    const __m512i count = _mm512_set1_epi64(t);
    for (size_t i = 0; i < n; i += 8) {
        const unsigned here = n - i < 8 ? (unsigned)(n - i) : 8;
        uint64_t bin[8], value[8];
        const __m512i g = mix_avx512(_mm512_add_epi64(
            start,
            _mm512_maskz_loadu_epi64((__mmask8)((1u << here) - 1), x + i)));
        const __m512i v =
            _mm512_srli_epi64(_mm512_mullo_epi64(g, step), 64 - BLY_BINS_ROUND);
        _mm512_storeu_si512(
            bin, _mm512_srli_epi64(
                     _mm512_mul_epu32(_mm512_srli_epi64(g, 32), count), 32));
        _mm512_storeu_si512(value, _mm512_add_epi64(before, v));
        for (unsigned j = 0; j < here; j++) {
            uint64_t *const at = &bins[bin[j]];
            *at = value[j] < *at ? value[j] : *at;
        }
    }
}

/* ------------------------------------------------------------------ minima */

/* All x past `wide` vectors of maps, a literal at the call sites. */
#define MINIMA_PASS(vec, load, store, set1, mul, add, min, per, wide) \
    do {                                                              \
        vec a_[wide], b_[wide], m_[wide];                             \
        for (unsigned v = 0; v < (wide); v++) {                       \
            a_[v] = load((const void *)(a + lane + (per)*v));         \
            b_[v] = load((const void *)(b + lane + (per)*v));         \
            m_[v] = load((const void *)(minima + lane + (per)*v));    \
        }                                                             \
        for (size_t i = 0; i < n; i++) {                              \
            const vec high = set1((int)(uint32_t)(x[i] >> 32));       \
            for (unsigned v = 0; v < (wide); v++)                     \
                m_[v] = min(m_[v], add(mul(a_[v], high), b_[v]));     \
        }                                                             \
        for (unsigned v = 0; v < (wide); v++)                         \
            store((void *)(minima + lane + (per)*v), m_[v]);          \
        lane += (per) * (wide);                                       \
    } while (0)

AVX2 void bly_minima_avx2(uint32_t *minima, const uint32_t *a,
                          const uint32_t *b, size_t nlanes, const uint64_t *x,
                          size_t n)
{
#define PASS_AVX2(wide)                                                  \
    MINIMA_PASS(__m256i, _mm256_loadu_si256, _mm256_storeu_si256,        \
                _mm256_set1_epi32, _mm256_mullo_epi32, _mm256_add_epi32, \
                _mm256_min_epu32, 8, wide)
    size_t lane = 0;
    while (nlanes - lane >= 32)
        PASS_AVX2(4);
    while (lane < nlanes)
        PASS_AVX2(2);
}

AVX512 void bly_minima_avx512(uint32_t *minima, const uint32_t *a,
                              const uint32_t *b, size_t nlanes,
                              const uint64_t *x, size_t n)
{
#define PASS_AVX512(wide)                                                \
    MINIMA_PASS(__m512i, _mm512_loadu_si512, _mm512_storeu_si512,        \
                _mm512_set1_epi32, _mm512_mullo_epi32, _mm512_add_epi32, \
                _mm512_min_epu32, 16, wide)
    size_t lane = 0;
    while (nlanes - lane >= 128)
        PASS_AVX512(8);
    while (nlanes - lane >= 64)
        PASS_AVX512(4);
    while (lane < nlanes)
        PASS_AVX512(1);
}

#else
typedef int bly_x86_likeness_is_empty; /* C has no empty file */
#endif
