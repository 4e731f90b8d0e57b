/*
 * x86_digests.c - see x86_digests.h
 *
 * sha256rnds2 does two rounds at once. It wants the eight words as two vectors,
 * (f, e, b, a) and (h, g, d, c) from the lowest lane on, takes two of the next
 * words with their constants added, and leaves the new (f, e, b, a); the old
 * ones are the new (h, g, d, c). So two calls, with the vectors in turn, are
 * four rounds, and nothing is moved. sha256msg1 and sha256msg2 are the two
 * halves of the recurrence that makes 64 words of 16:
 *
 *     w[t] = w[t-16] + s0(w[t-15]) + w[t-7] + s1(w[t-2])
 *            `----- msg1 --------'            msg2
 *
 * Blocks of 64 bytes take a quarter of the time of the portable rounds.
 */
#include "io/x86_digests.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>
#include <immintrin.h>

bool x86_has_sha(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) ||
        !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

__attribute__((target("sha,ssse3,sse4.1"))) void
stir_sha256_x86(uint32_t *state, const uint32_t words[16])
{
    __m128i m[4];
    for (unsigned i = 0; i < 4; i++)
        m[i] = _mm_loadu_si128((const __m128i *)(words + 4 * i));
    const __m128i low = _mm_loadu_si128((const __m128i *)state);
    const __m128i high = _mm_loadu_si128((const __m128i *)(state + 4));
    const __m128i ba = _mm_shuffle_epi32(low, 0xb1);  /* b a d c */
    const __m128i hg = _mm_shuffle_epi32(high, 0x1b); /* h g f e */
    const __m128i feba = _mm_alignr_epi8(ba, hg, 8);
    const __m128i hgdc = _mm_blend_epi16(hg, ba, 0xf0);

    __m128i s0 = feba, s1 = hgdc;
#pragma GCC unroll 16
    for (unsigned t = 0; t < 16; t++) {
        __m128i *const w = &m[t % 4]; /* four words of 16 rounds ago */
        const __m128i last = m[(t + 3) % 4];
        if (t >= 4) {
            const __m128i seventh = _mm_alignr_epi8(last, m[(t + 2) % 4], 4);
            *w = _mm_sha256msg1_epu32(*w, m[(t + 1) % 4]);
            *w = _mm_sha256msg2_epu32(_mm_add_epi32(*w, seventh), last);
        }
        const __m128i x = _mm_add_epi32(
            *w, _mm_loadu_si128((const __m128i *)(sha256_constants + 4 * t)));
        s1 = _mm_sha256rnds2_epu32(s1, s0, x);
        s0 = _mm_sha256rnds2_epu32(s0, s1, _mm_shuffle_epi32(x, 0x0e));
    }
    s0 = _mm_add_epi32(s0, feba);
    s1 = _mm_add_epi32(s1, hgdc);
    const __m128i abef = _mm_shuffle_epi32(s0, 0x1b); /* a b e f */
    const __m128i dchg = _mm_shuffle_epi32(s1, 0xb1); /* g h c d */
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(abef, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, abef, 8));
}

#else

bool x86_has_sha(void)
{
    return false;
}

void stir_sha256_x86(uint32_t *state, const uint32_t words[16])
{
    stir_sha256_portable(state, words);
}

#endif
