/*
 * bloomery/inline.h - ask a blocked filter without a call
 *
 * For keys that come one by one. A processor looks ahead over a few hundred
 * instructions; the shorter a question is, the more questions fit into that
 * window and wait for memory together. A call makes each question long. For
 * keys that come together, bly_has_ints() and the other batches are faster
 * still.
 *
 *     bly_blocked b;
 *     if (bly_blocked_view(f, &b))
 *         for (...)
 *             hits += bly_blocked_has_int(&b, key);
 *
 * The answers are those of bly_has_hash() and bly_has(), and cannot fail.
 * Nothing is checked on the way: bly_blocked_view() compares a mapped file of
 * more than 64 MiB with all of its checksums before it gives a view. A view
 * belongs to the caller but points into the filter, which must outlive it; any
 * number of threads may ask, as long as none writes to the filter. A question
 * costs one cache miss. Compile with -march=native, or at least -mavx2, to
 * compute the mask with vector instructions.
 */
#ifndef BLOOMERY_INLINE_H
#define BLOOMERY_INLINE_H

#include <bloomery.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

BLY_BEGIN_DECLS

/* What it takes to ask a blocked filter without a call. Programs are compiled
 * with what the functions below do with it, so there is no view of a filter
 * that would need other ones. */
typedef struct bly_blocked { /* final */
    const uint64_t *words;   /* blocks of eight, little-endian */
    uint64_t nblocks;
    uint64_t flip; /* the seed, as bly_int_hash() takes it */
    uint32_t k;
} bly_blocked;

/* A view of f, valid until f is freed; it also sees keys that are added later.
 * False, with *out unchanged, if f is not of the kind "blocked", is shared by
 * many writers, or is keyed. A mapped file that is checked block by block is
 * first checked as a whole: false if it is damaged, and bly_damage() says
 * where. */
bool bly_blocked_view(const bly_filter *f, bly_blocked *out);

BLY_END_DECLS

/* The high half of the 128-bit product of a and b. */
static inline uint64_t bly_mulhi(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 bly_u128;
    return (uint64_t)(((bly_u128)a * b) >> 64);
#else
    const uint64_t al = (uint32_t)a, ah = a >> 32;
    const uint64_t bl = (uint32_t)b, bh = b >> 32;
    const uint64_t mid = ah * bl + ((al * bl) >> 32);
    const uint64_t low = al * bh + (uint32_t)mid;
    return ah * bh + (mid >> 32) + (low >> 32);
#endif
}

/* XXH3 of the 8 little-endian bytes of key; flip comes from the seed. */
#define BLY_INT_HASH_C UINT64_C(0x9fb21c651e98df25)

static inline uint64_t bly_int_hash(uint64_t key, uint64_t flip)
{
    uint64_t h = (key << 32 | key >> 32) ^ flip;
    h ^= (h << 49 | h >> 15) ^ (h << 24 | h >> 40);
    h *= BLY_INT_HASH_C;
    h ^= (h >> 35) + 8; /* the length */
    h *= BLY_INT_HASH_C;
    return h ^ h >> 28;
}

/* The positions of a key in its block: docs/kinds/blocked.md. The constants are
 * the fractions of the golden ratio and of sqrt(3). */
#define BLY_LINES_C1 UINT64_C(0x9e3779b97f4a7c15)
#define BLY_LINES_C2 UINT64_C(0xbb67ae8584caa73b)

static inline uint64_t bly_lines_spread(uint64_t h, uint64_t c)
{
    const uint64_t g = h * c;
    return g ^ g >> 32;
}

static inline uint64_t bly_block_word_(const uint64_t *block, unsigned i)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(block[i]);
#else
    return block[i];
#endif
}

/* Any k. Not inline, so that a loop with k = 8 keeps its registers. */
__attribute__((noinline, cold, unused)) static bool
bly_block_has_lanes_(const uint64_t *block, uint64_t hash, unsigned k)
{
    const unsigned width = 512 / k;
    unsigned w = 5; /* log2(width) */
    while (1u << w < width)
        w++;
    for (unsigned i = 0; i < k; i++) {
        const uint64_t c = i < 8 ? BLY_LINES_C1 : BLY_LINES_C2;
        const uint64_t g = bly_lines_spread(hash, c);
        const unsigned at =
            i * width + ((unsigned)(g >> w * (i % 8)) & (width - 1));
        if (!(bly_block_word_(block, at / 64) >> at % 64 & 1))
            return false;
    }
    return true;
}

/* k = 8: one bit in each word, all eight tested at once. */
static inline bool bly_block_has_8_(const uint64_t *block, uint64_t g)
{
#if defined(__AVX512F__)
    /* maskz: the plain forms make gcc 12 warn in C++. */
    const __m512i by = _mm512_setr_epi64(0, 6, 12, 18, 24, 30, 36, 42);
    const __m512i bit =
        _mm512_maskz_srlv_epi64(0xff, _mm512_set1_epi64((long long)g), by);
    const __m512i mask =
        _mm512_maskz_rolv_epi64(0xff, _mm512_set1_epi64(1), bit);
    return _mm512_testn_epi64_mask(mask,
                                   _mm512_load_si512((const void *)block)) == 0;
#elif defined(__AVX2__)
    const __m256i x = _mm256_set1_epi64x((long long)g);
    const __m256i one = _mm256_set1_epi64x(1), mod = _mm256_set1_epi64x(63);
    const __m256i low = _mm256_sllv_epi64(
        one, _mm256_and_si256(
                 _mm256_srlv_epi64(x, _mm256_setr_epi64x(0, 6, 12, 18)), mod));
    const __m256i high = _mm256_sllv_epi64(
        one,
        _mm256_and_si256(
            _mm256_srlv_epi64(x, _mm256_setr_epi64x(24, 30, 36, 42)), mod));
    const __m256i *const at = (const __m256i *)(const void *)block;
    const __m256i missing =
        _mm256_or_si256(_mm256_andnot_si256(_mm256_load_si256(at), low),
                        _mm256_andnot_si256(_mm256_load_si256(at + 1), high));
    return _mm256_testz_si256(missing, missing) != 0;
#else
    uint64_t all = 1;
    for (unsigned i = 0; i < 8; i++)
        all &= bly_block_word_(block, i) >> (g >> 6 * i & 63);
    return all != 0;
#endif
}

/* False only if no key with this hash was ever added. */
static inline bool bly_blocked_has(const bly_blocked *b, uint64_t hash)
{
    const uint64_t *const block = b->words + bly_mulhi(hash, b->nblocks) * 8;
    return b->k == 8
               ? bly_block_has_8_(block, bly_lines_spread(hash, BLY_LINES_C1))
               : bly_block_has_lanes_(block, hash, b->k);
}

/* The same for an integer, as bly_add_ints() adds it. */
static inline bool bly_blocked_has_int(const bly_blocked *b, uint64_t key)
{
    return bly_blocked_has(b, bly_int_hash(key, b->flip));
}

#endif
