/*
 * x86_ribbon.c - parities of planes at once: four with AVX2, eight with AVX-512
 *
 * The parity of a word: fold each byte's halves onto each other, look up the
 * parity of four bits, and let the sum of absolute differences from 0 add up
 * the eight bytes; its lowest bit is the parity.
 */
#include "engine/ribbon_table.h"

#include "engine/x86_eight.h"

#if BLY_X86

#define AVX2 __attribute__((target("avx2,bmi2,popcnt")))

/* Bit 0 of each of the four words is the parity of that word of v. */
static inline AVX2 __attribute__((always_inline)) __m256i parity_avx2(__m256i v)
{
    const __m256i parity = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
    v = _mm256_xor_si256(v, _mm256_srli_epi64(v, 4));
    v = _mm256_and_si256(v, _mm256_set1_epi8(15));
    return _mm256_sad_epu8(_mm256_shuffle_epi8(parity, v),
                           _mm256_setzero_si256());
}

static inline AVX2 __attribute__((always_inline)) uint64_t
four_avx2(const uint64_t *x, const uint64_t *y, uint64_t here, uint64_t there)
{
    const __m256i a =
        _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)x),
                         _mm256_set1_epi64x((long long)here));
    const __m256i b =
        _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)y),
                         _mm256_set1_epi64x((long long)there));
    /* The parity becomes the sign, which movemask collects. */
    const __m256i bits =
        _mm256_slli_epi64(parity_avx2(_mm256_xor_si256(a, b)), 63);
    return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(bits));
}

AVX2 void bly_ribbon_ask_avx2(const bly_ribbon_layer *l,
                              const unsigned char *data, const uint64_t *h,
                              size_t n, bly_ribbon_keys *rest, uint64_t *maybe,
                              bool first, bool ahead)
{
    bly_ribbon_ask_with(l, data, h, n, rest, maybe, first, ahead, four_avx2);
}

/* Like the portable one; a group of four planes is a vector. */
static inline AVX2 __attribute__((always_inline)) void
substitute_groups(const bly_ribbon_layer *l, const uint64_t *rows,
                  const uint64_t *prints, uint64_t *words, unsigned ngroups)
{
    const __m256i steps = _mm256_setr_epi64x(0, 1, 2, 3);
    const __m256i one = _mm256_set1_epi64x(1);
    __m256i planes[BLY_RIBBON_MAX_WIDTH / 4];
    for (unsigned g = 0; g < ngroups; g++)
        planes[g] = _mm256_setzero_si256();
    for (size_t block = l->nslots / 64; block-- > 0;) {
        for (size_t i = block * 64 + 64; i-- > block * 64;) {
            const __m256i row = _mm256_set1_epi64x((long long)(rows[i] >> 1));
            for (unsigned g = 0; g < ngroups; g++) {
                /* Plane 4g + j wants bit 4g + j of the print. Only bit 0 of
                 * `bits` counts; a plane added to itself moves up by one. */
                const __m256i print = _mm256_srlv_epi64(
                    _mm256_set1_epi64x((long long)(prints[i] >> 4 * g)), steps);
                const __m256i bits = _mm256_xor_si256(
                    parity_avx2(_mm256_and_si256(planes[g], row)), print);
                planes[g] =
                    _mm256_or_si256(_mm256_add_epi64(planes[g], planes[g]),
                                    _mm256_and_si256(bits, one));
            }
        }
        uint64_t all[BLY_RIBBON_MAX_WIDTH];
        uint64_t *const to = words + bly_ribbon_block(l, block);
        const unsigned n = l->width + (block >= l->wide);
        for (unsigned g = 0; g < ngroups; g++)
            _mm256_storeu_si256((__m256i *)(void *)&all[4 * g], planes[g]);
        for (unsigned i = 0; i < n; i++)
            to[i] = all[i];
    }
}

AVX2 void bly_ribbon_substitute_avx2(const bly_ribbon_layer *l,
                                     const uint64_t *rows,
                                     const uint64_t *prints, uint64_t *words)
{
    const unsigned ngroups = (l->nplanes + 3) / 4;
    /* Prints of 5 to 12 bits, the usual ones: with a literal number of groups
     * the planes stay in registers. */
    if (ngroups == 2)
        substitute_groups(l, rows, prints, words, 2);
    else if (ngroups == 3)
        substitute_groups(l, rows, prints, words, 3);
    else
        substitute_groups(l, rows, prints, words, ngroups);
}

/* ---------------------------------------------------------------- AVX-512 */

/* Groups of eight keys that wait for their words, and how many of them have not
 * had their words fetched yet: a fetch whose address is still being computed
 * would take a place that others need. */
#define EIGHT_WAITING 8
#define EIGHT_UNFETCHED 2

typedef struct ribbon_eight {
    _Alignas(64) uint64_t u[8];
    uint64_t x[8], y[8];        /* addresses of two blocks */
    uint64_t here[8], there[8]; /* what the row selects of them */
    uint64_t print[8], needs[8];
    uint64_t bound[8], step[8]; /* where the bound is; the key's step */
} ribbon_eight;

/* bly_ribbon_find() of n hashes, 8 at most; the others are as if 0. */
BLY_EIGHT void ribbon_find_eight(const bly_ribbon_layer *l,
                                 const unsigned char *data, const uint64_t *h,
                                 size_t n, ribbon_eight *out)
{
    const __m512i one = bly_eight_all(1), zero = _mm512_setzero_si512();
    const __m512i wide = bly_eight_all(l->wide),
                  width = bly_eight_all(l->width);
    const __m512i hash =
        _mm512_maskz_loadu_epi64((__mmask8)(255u >> (8 - n)), h);
    const __m512i u =
        bly_eight_mix(_mm512_xor_si512(hash, bly_eight_all(l->seed)));
    const __m512i shard = bly_eight_scale(u, bly_eight_all(l->nshards));
    const __m512i within = _mm512_mullo_epi64(u, bly_eight_all(l->nshards));
    const __m512i start = bly_eight_scale(
        within, bly_eight_all(l->nslots - (BLY_RIBBON_ROW - 1)));
    const __m512i b = _mm512_srli_epi64(start, 6);
    const __m512i s = _mm512_and_si512(start, bly_eight_all(63));
    /* The first words of the two blocks. */
    const __m512i before =
        _mm512_add_epi64(_mm512_mul_epu32(b, width),
                         _mm512_max_epi64(_mm512_sub_epi64(b, wide), zero));
    const __m512i word = _mm512_add_epi64(
        _mm512_mul_epu32(shard, bly_eight_all(l->stride)), before);
    const __m512i x = _mm512_add_epi64(
        bly_eight_all((uint64_t)(uintptr_t)data + 8 * l->words),
        _mm512_slli_epi64(word, 3));
    const __m512i planes = _mm512_mask_add_epi64(
        width, _mm512_cmpge_epu64_mask(b, wide), width, one);
    /* A row that starts where its block starts lies in that block alone. Then
     * the block serves as its own neighbour, since the next one may lie past
     * the end. */
    const __m512i y = _mm512_mask_add_epi64(x, _mm512_test_epi64_mask(s, s), x,
                                            _mm512_slli_epi64(planes, 3));
    __m512i row = _mm512_mullo_epi64(u, bly_eight_all(BLY_RIBBON_ROW_C));
    row =
        _mm512_or_si512(_mm512_xor_si512(row, _mm512_srli_epi64(row, 32)), one);
    const __m512i print =
        _mm512_mullo_epi64(u, bly_eight_all(BLY_RIBBON_PRINT_C));
    const __mmask8 is_wide = _mm512_cmpge_epu64_mask(
        _mm512_srli_epi64(within, 32), bly_eight_all(l->narrow));
    _mm512_store_si512(out->u, u);
    _mm512_store_si512(out->x, x);
    _mm512_store_si512(out->y, y);
    /* row << s and row >> (64 - s): the latter in two steps, as the portable
     * code has it, and 63 - s is 63 ^ s. */
    _mm512_store_si512(out->here, _mm512_sllv_epi64(row, s));
    _mm512_store_si512(
        out->there, _mm512_srlv_epi64(_mm512_srli_epi64(row, 1),
                                      _mm512_xor_si512(s, bly_eight_all(63))));
    _mm512_store_si512(out->print,
                       _mm512_xor_si512(print, _mm512_srli_epi64(print, 32)));
    _mm512_store_si512(
        out->needs, _mm512_mask_blend_epi64(is_wide, bly_eight_all(l->needs[0]),
                                            bly_eight_all(l->needs[1])));
    _mm512_store_si512(
        out->bound,
        _mm512_add_epi64(_mm512_mul_epu32(shard, bly_eight_all(l->nbounds)),
                         _mm512_srli_epi64(start, 8)));
    _mm512_store_si512(out->step, _mm512_and_si512(_mm512_srli_epi64(start, 1),
                                                   bly_eight_all(127)));
}

_Static_assert(BLY_RIBBON_BUCKET == 256 && BLY_RIBBON_STEP == 2,
               "a step is bits 1 to 7 of a start");

/* Fetch the words of a key, to the last of their lines, into L2. */
BLY_EIGHT void ribbon_fetch_eight(const ribbon_eight *keys, unsigned j,
                                  unsigned nplanes)
{
    /* Two blocks of nplanes words follow each other, 16 nplanes bytes; the
     * last of these words may be in a line of its own. */
    const char *const at = (const char *)(uintptr_t)keys->x[j];
#pragma GCC unroll 4
    for (unsigned to = 0; to < 16 * nplanes - 8; to += 64)
        __builtin_prefetch(at + to, 0, 2);
    __builtin_prefetch(at + 16 * nplanes - 8, 0, 2);
}

/* Bit 0 of each of the eight words is the parity of that word of v. */
BLY_EIGHT __m512i parity_avx512(__m512i v)
{
    const __m512i parity = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
    v = _mm512_xor_si512(v, _mm512_srli_epi64(v, 4));
    v = _mm512_and_si512(v, _mm512_set1_epi8(15));
    return _mm512_sad_epu8(_mm512_shuffle_epi8(parity, v),
                           _mm512_setzero_si512());
}

/* The sums of a key's planes, 8 at a time, a byte each. */
BLY_EIGHT void ribbon_add_up(const ribbon_eight *keys, unsigned j,
                             unsigned from, unsigned nplanes,
                             unsigned char *sums)
{
    const uint64_t *const x = (const uint64_t *)(uintptr_t)keys->x[j],
                          *const y = (const uint64_t *)(uintptr_t)keys->y[j];
#pragma GCC unroll 2
    for (unsigned p = from; p < nplanes; p += 8) {
        const unsigned n = nplanes - p < 8 ? nplanes - p : 8;
        const __mmask8 some = (__mmask8)(255u >> (8 - n));
        const __m512i there =
            _mm512_and_si512(_mm512_maskz_loadu_epi64(some, y + p),
                             bly_eight_all(keys->there[j]));
        const __m512i all =
            _mm512_ternarylogic_epi64(/* there ^ (x & here) */
                                      there,
                                      _mm512_maskz_loadu_epi64(some, x + p),
                                      bly_eight_all(keys->here[j]), 0x78);
        sums[p / 8] = (unsigned char)_mm512_test_epi64_mask(parity_avx512(all),
                                                            bly_eight_all(1));
    }
}

/* Which of eight keys were bumped? A bound is read as the last of four bytes,
 * since bytes before it can be read, but bytes behind it perhaps not. */
BLY_EIGHT __mmask8 ribbon_bumped(const bly_ribbon_layer *l,
                                 const unsigned char *data,
                                 const ribbon_eight *keys)
{
    if (!l->nbounds)
        return 0;
    const __m256i bounds = _mm512_i64gather_epi32(
        _mm512_load_si512(keys->bound), data + l->bounds - 3, 1);
    return _mm512_cmplt_epu64_mask(
        _mm512_load_si512(keys->step),
        _mm512_cvtepu32_epi64(_mm256_srli_epi32(bounds, 24)));
}

/* Which of eight keys have the sums that they need, among these planes? */
BLY_EIGHT __mmask8 ribbon_right(const ribbon_eight *keys, const uint64_t *sums,
                                long long planes)
{
    const __m512i wrong = _mm512_xor_si512(_mm512_load_si512(sums),
                                           _mm512_load_si512(keys->print));
    const __m512i needs = _mm512_and_si512(_mm512_load_si512(keys->needs),
                                           _mm512_set1_epi64(planes));
    return _mm512_testn_epi64_mask(wrong, needs);
}

BLY_EIGHT void ribbon_ask_eights(const bly_ribbon_layer *layer,
                                 const unsigned char *data, const uint64_t *h,
                                 size_t n, bly_ribbon_keys *rest,
                                 uint64_t *maybe, bool ahead, unsigned nplanes)
{
    const bly_ribbon_layer local = *layer, *const l = &local;
    const size_t ngroups = (n + 7) / 8;
    ribbon_eight ring[EIGHT_WAITING];
    _Alignas(64) uint64_t sums[8] = { 0 };
    size_t nbumped = 0, entered = 0;
    uint64_t bits = 0;
    /* As bly_ribbon_test(): eight planes first, where there are many more. */
    const bool early = nplanes > 12;
#define FIND()                                                    \
    (ribbon_find_eight(l, data, h + 8 * entered,                  \
                       n - 8 * entered < 8 ? n - 8 * entered : 8, \
                       &ring[entered % EIGHT_WAITING]),           \
     entered++)
    while (entered < ngroups && entered < EIGHT_WAITING)
        FIND();
    for (size_t i = 0;
         ahead && i < entered && i < EIGHT_WAITING - EIGHT_UNFETCHED; i++)
        for (unsigned j = 0; j < 8; j++)
            ribbon_fetch_eight(&ring[i], j, nplanes);
    for (size_t i = 0; i < ngroups; i++) {
        const ribbon_eight *const keys = &ring[i % EIGHT_WAITING];
        const size_t next = i + EIGHT_WAITING - EIGHT_UNFETCHED;
        const bool fetch = ahead && next < entered;
        for (unsigned j = 0; fetch && j < 8; j++)
            ribbon_fetch_eight(&ring[next % EIGHT_WAITING], j, nplanes);
        /* Bytes above the planes stay 0, and are not needed. */
        for (unsigned j = 0; j < 8; j++)
            ribbon_add_up(keys, j, 0, early ? 8 : nplanes,
                          (unsigned char *)&sums[j]);
        __mmask8 right = ribbon_right(keys, sums, early ? 0xff : -1);
        if (early && right) {
            /* Many keys are still possible: do all of them, which needs no
             * branch per key. */
            if (right & (right - 1))
                for (unsigned j = 0; j < 8; j++)
                    ribbon_add_up(keys, j, 8, nplanes,
                                  (unsigned char *)&sums[j]);
            else
                ribbon_add_up(keys, (unsigned)__builtin_ctz(right), 8, nplanes,
                              (unsigned char *)&sums[__builtin_ctz(right)]);
            right &= ribbon_right(keys, sums, -1);
        }
        /* The last group may have fewer than eight keys. */
        const __mmask8 there =
            (__mmask8)(255u >> (n - 8 * i < 8 ? 8 - (n - 8 * i) : 0));
        unsigned bumped = ribbon_bumped(l, data, keys) & there;
        bits |= (uint64_t)(right & there & ~bumped) << i % 8 * 8;
        for (; bumped; bumped &= bumped - 1) {
            const unsigned j = (unsigned)__builtin_ctz(bumped);
            rest->u[nbumped] = keys->u[j];
            rest->at[nbumped++] = (uint32_t)(8 * i + j);
        }
        if (i % 8 == 7 || i + 1 == ngroups) {
            maybe[i / 8] = bits;
            bits = 0;
        }
        /* Last: it takes the place of the group just answered. */
        if (entered < ngroups)
            FIND();
    }
#undef FIND
    rest->n = nbumped;
}

/* Any number of planes. Not inlined, which would slow down the common ones
 * below. */
BLY_AVX512 static __attribute__((noinline)) void
ribbon_ask_any(const bly_ribbon_layer *l, const unsigned char *data,
               const uint64_t *h, size_t n, bly_ribbon_keys *rest,
               uint64_t *maybe, bool ahead)
{
    ribbon_ask_eights(l, data, h, n, rest, maybe, ahead, l->nplanes);
}

BLY_AVX512 void bly_ribbon_ask_avx512(const bly_ribbon_layer *l,
                                      const unsigned char *data,
                                      const uint64_t *h, size_t n,
                                      bly_ribbon_keys *rest, uint64_t *maybe,
                                      bool first, bool ahead)
{
    /* Later layers have few keys, whose answers lie scattered. 7 and 10 planes
     * are rates of 1 % and of 0.1 %. */
    if (!first || n < 8 || l->nshards > UINT32_MAX)
        bly_ribbon_ask_avx2(l, data, h, n, rest, maybe, first, ahead);
    else if (l->nplanes == 7)
        ribbon_ask_eights(l, data, h, n, rest, maybe, ahead, 7);
    else if (l->nplanes == 10)
        ribbon_ask_eights(l, data, h, n, rest, maybe, ahead, 10);
    else
        ribbon_ask_any(l, data, h, n, rest, maybe, ahead);
}

#else
typedef int bly_x86_ribbon_is_empty; /* C has no empty file */
#endif
