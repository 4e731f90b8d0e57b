/*
 * bloomery/inline.h - ask a blocked filter, and add to it, without a call
 * SPDX-License-Identifier: MIT
 *
 * For keys that come one by one. A processor looks ahead over a few hundred
 * instructions; the shorter a question is, the more questions fit into that
 * window and wait for memory together. A function call makes each question
 * long.
 *
 *     bly_blocked b;
 *     if (bly_blocked_view(f, &b))
 *         for (...)
 *             hits += bly_blocked_has_int(&b, key);
 *
 * For keys that come a few at a time, other functions hash eight together, and
 * load the blocks of later groups while they test earlier ones:
 *
 *     bly_blocked_has_ints(&b, keys, n, maybe);
 *
 * or, to use the answers at once, call bly_blocked_aim_ints() and, some groups
 * later, bly_blocked_hits(). For hundreds of keys in one array, bly_has_ints()
 * and the other batches of bloomery.h are faster still.
 *
 * The answers are those of bly_has_hash() and bly_has(), and cannot fail.
 * Nothing is checked when a key is asked for: bly_blocked_view() compares a
 * mapped file of more than 4 MiB with all of its checksums before it gives a
 * view. A view belongs to the caller but points into the filter, which must
 * outlive it. Any number of threads may ask, as long as none writes to the
 * filter. A question costs one cache miss. Compile with -O3 -march=native, or
 * at least -mavx2, to compute hashes and masks with vector instructions.
 */
#ifndef BLOOMERY_INLINE_H
#define BLOOMERY_INLINE_H

#include <bloomery.h>

/* The widest vectors that the compiler may use, in bits. A device has none. */
#if defined(__CUDA_ARCH__) || !defined(__AVX2__)
#define BLY_VECTORS_ 0
#elif defined(__AVX512F__) && defined(__AVX512DQ__)
#define BLY_VECTORS_ 512
#else
#define BLY_VECTORS_ 256
#endif
#if BLY_VECTORS_
#include <immintrin.h>
#endif

/* Compiled by nvcc, the functions that ask serve the processor and the device:
 * bloomery_cuda.h gives views of filters in device memory. */
#ifdef __CUDACC__
#define BLY_BOTH __host__ __device__
#else
#define BLY_BOTH
#endif

BLY_BEGIN_DECLS

/* A view: what it takes to ask a blocked filter without a call. The functions
 * below are compiled into programs, so filters that would need other functions
 * have no view. */
typedef struct bly_blocked { /* final */
    const uint64_t *words;   /* blocks of eight, little-endian */
    uint64_t nblocks;
    uint64_t flip; /* the seed, as bly_int_hash() takes it; if folded, as
                      bly_int_folded() does */
    uint32_t k;
    bool folded; /* integers are hashed by bly_int_folded() */
} bly_blocked;

/* Make a view of f, valid until f is freed; it also sees keys that are added
 * later. False, with *out unchanged, if f is not of the kind "blocked", is
 * shared by many writers, or is keyed. A mapped file that is checked block by
 * block is first checked as a whole: false if it is damaged, and bly_damage()
 * says where. */
bool bly_blocked_view(const bly_filter *f, bly_blocked *out);

/* What it takes to add without a call. As with bly_add(), the writer must be
 * alone. */
typedef struct bly_blocked_adder { /* final */
    bly_blocked view;              /* to ask what was added so far */
    uint64_t *words;               /* those of the view */
} bly_blocked_adder;

/* Prepare to add to f; *out is valid until f is freed. False, with *out
 * unchanged, if f can have no view or is mapped read-only. */
bool bly_blocked_adder_of(bly_filter *f, bly_blocked_adder *out);

/* Count n new additions, which bly_add() does by itself. Call this after
 * adding, with the number of times that bly_blocked_add() returned true.
 * Without it, bly_stats.items_added misses them, and a filter that holds
 * nothing else counts as empty: the first bly_add_ints() gives it a type.
 * BLY_EINVAL for other kinds and for mapped filters. */
bly_status bly_blocked_added(bly_filter *f, uint64_t n) BLY_MUST_CHECK;

BLY_END_DECLS

/* The high half of the 128-bit product of a and b, for compilers without
 * 128-bit integers. */
BLY_BOTH static inline uint64_t bly_mulhi_narrow_(uint64_t a, uint64_t b)
{
    const uint64_t al = (uint32_t)a, ah = a >> 32;
    const uint64_t bl = (uint32_t)b, bh = b >> 32;
    const uint64_t mid = ah * bl + ((al * bl) >> 32);
    const uint64_t low = al * bh + (uint32_t)mid;
    return ah * bh + (mid >> 32) + (low >> 32);
}

BLY_BOTH static inline uint64_t bly_mulhi(uint64_t a, uint64_t b)
{
#if defined(__CUDA_ARCH__)
    return __umul64hi(a, b);
#elif defined(__SIZEOF_INT128__) && !defined(__wasm__)
    __extension__ typedef unsigned __int128 bly_u128;
    return (uint64_t)(((bly_u128)a * b) >> 64);
#else
    return bly_mulhi_narrow_(a, b);
#endif
}

/* A bijection of 64 bits in which every input bit affects every output bit: the
 * finaliser of SplitMix64 (Steele, Lea and Flood 2014). */
BLY_BOTH static inline uint64_t bly_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* h, h C, h C^2, ... are as many values as a caller needs, all from one hash.
 * The multiples of C are spread as evenly as possible in up to eight dimensions
 * (Steele and Vigna 2021). Their high bits are good, so reduce them with
 * bly_mulhi(). */
#define BLY_POWERS_C UINT64_C(0xf1357aea2e62a9c5)

/* XXH3 of the 8 little-endian bytes of key; flip comes from the seed. */
#define BLY_INT_HASH_C UINT64_C(0x9fb21c651e98df25)

/* The first step of XXH3 is x ^ rotl(x, 49) ^ rotl(x, 24), where x is the key
 * with its halves swapped, exclusive-or flip. What flip contributes does not
 * depend on the key, so it is computed beforehand. */
BLY_BOTH static inline uint64_t bly_int_turned(uint64_t flip)
{
    return flip ^ (flip << 49 | flip >> 15) ^ (flip << 24 | flip >> 40);
}

BLY_BOTH static inline uint64_t bly_int_hash_turned(uint64_t key,
                                                    uint64_t turned)
{
    uint64_t h = ((key << 32 | key >> 32) ^ (key << 17 | key >> 47)) ^
                 ((key << 56 | key >> 8) ^ turned);
    h *= BLY_INT_HASH_C;
    h ^= (h >> 35) + 8; /* the length */
    h *= BLY_INT_HASH_C;
    return h ^ h >> 28;
}

BLY_BOTH static inline uint64_t bly_int_hash(uint64_t key, uint64_t flip)
{
    return bly_int_hash_turned(key, bly_int_turned(flip));
}

/* A cheaper hash of integers, for filters that were made for integers
 * (BLY_HASH_FOLDED): the halves of a product of 128 bits together, multiplied
 * once more. The first product carries every bit of the key upwards in its low
 * half and brings it down again in its high half. Without the second
 * multiplication, keys in arithmetic progression would have hashes in
 * arithmetic progression. word comes from the seed (bly_int_word()). */
#define BLY_INT_FOLD_C UINT64_C(0xd6e8feb86659fd93)

BLY_BOTH static inline uint64_t bly_int_word(uint64_t seed)
{
    return bly_mix64(seed + UINT64_C(0x9e3779b97f4a7c15));
}

BLY_BOTH static inline uint64_t bly_int_folded(uint64_t key, uint64_t word)
{
    const uint64_t x = key ^ word;
#if !defined(__CUDA_ARCH__) && defined(__SIZEOF_INT128__) && !defined(__wasm__)
    /* One multiplication gives both halves. */
    __extension__ typedef unsigned __int128 bly_u128;
    const bly_u128 p = (bly_u128)x * BLY_INT_HASH_C;
    return ((uint64_t)p ^ (uint64_t)(p >> 64)) * BLY_INT_FOLD_C;
#else
    return (x * BLY_INT_HASH_C ^ bly_mulhi(x, BLY_INT_HASH_C)) * BLY_INT_FOLD_C;
#endif
}

/* Either of the two. A view says which; of the first, `turned` is
 * bly_int_turned(). */
BLY_BOTH static inline uint64_t bly_int_hash_of(uint64_t key, uint64_t turned,
                                                bool folded)
{
    return folded ? bly_int_folded(key, turned)
                  : bly_int_hash_turned(key, turned);
}

/* The positions of a key in its block: docs/kinds/blocked.md. The constants are
 * the fractional parts of the golden ratio and of sqrt(3). */
#define BLY_LINES_C1 UINT64_C(0x9e3779b97f4a7c15)
#define BLY_LINES_C2 UINT64_C(0xbb67ae8584caa73b)

BLY_BOTH static inline uint64_t bly_lines_spread(uint64_t h, uint64_t c)
{
    const uint64_t g = h * c;
    return g ^ g >> 32;
}

BLY_BOTH static inline uint64_t bly_block_word_(const uint64_t *block,
                                                unsigned i)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(block[i]);
#else
    return block[i];
#endif
}

/* The bit of lane i in a block of k lanes. */
BLY_BOTH static inline unsigned bly_block_bit_(uint64_t hash, unsigned k,
                                               unsigned i)
{
    const unsigned width = 512 / k;
    unsigned w = 5; /* log2(width) */
    while (1u << w < width)
        w++;
    const uint64_t g =
        bly_lines_spread(hash, i < 8 ? BLY_LINES_C1 : BLY_LINES_C2);
    return i * width + ((unsigned)(g >> w * (i % 8)) & (width - 1));
}

/* For any k. Not inline, so that a loop with k = 8 keeps its registers. */
BLY_BOTH __attribute__((noinline, cold, unused)) static bool
bly_block_has_lanes_(const uint64_t *block, uint64_t hash, unsigned k)
{
    for (unsigned i = 0; i < k; i++) {
        const unsigned at = bly_block_bit_(hash, k, i);
        if (!(bly_block_word_(block, at / 64) >> at % 64 & 1))
            return false;
    }
    return true;
}

/* k = 8: one bit in each word. With AVX-512, one vector holds all eight
 * masks. */
#if BLY_VECTORS_ == 512
/* maskz: the plain forms make gcc 12 warn in C++. */
static inline __m512i bly_block_mask_8_(__m512i g)
{
    const __m512i by = _mm512_setr_epi64(0, 6, 12, 18, 24, 30, 36, 42);
    return _mm512_maskz_rolv_epi64(0xff, _mm512_set1_epi64(1),
                                   _mm512_maskz_srlv_epi64(0xff, g, by));
}

/* bly_lines_spread() in a vector: the scalar units that multiply and shift are
 * busy with the hash of the key. */
static inline __m512i bly_block_spread_8_(uint64_t hash)
{
    const __m512i p =
        _mm512_maskz_mullo_epi64(0xff, _mm512_set1_epi64((long long)hash),
                                 _mm512_set1_epi64((long long)BLY_LINES_C1));
    return _mm512_maskz_xor_epi64(0xff, p,
                                  _mm512_maskz_srli_epi64(0xff, p, 32));
}
#endif

/* Test all eight bits at once. */
BLY_BOTH static inline bool bly_block_has_8_(const uint64_t *block, uint64_t g)
{
#if BLY_VECTORS_ == 512
    const __m512i mask = bly_block_mask_8_(_mm512_set1_epi64((long long)g));
    return _mm512_testn_epi64_mask(mask,
                                   _mm512_load_si512((const void *)block)) == 0;
#elif BLY_VECTORS_ == 256
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

BLY_BOTH static inline bool bly_block_has_hash_8_(const uint64_t *block,
                                                  uint64_t hash)
{
#if BLY_VECTORS_ == 512
    const __m512i mask = bly_block_mask_8_(bly_block_spread_8_(hash));
    return _mm512_testn_epi64_mask(mask,
                                   _mm512_load_si512((const void *)block)) == 0;
#else
    return bly_block_has_8_(block, bly_lines_spread(hash, BLY_LINES_C1));
#endif
}

/* Where the block of a hash begins, in words. clang would shift the product as
 * a whole, by an instruction for two registers, which takes AMD's processors as
 * long as the multiplication: so it gets only the high half. */
BLY_BOTH static inline uint64_t bly_block_at_(uint64_t hash, uint64_t nblocks)
{
    uint64_t number = bly_mulhi(hash, nblocks);
#if defined(__clang__) && defined(__x86_64__) && !defined(__CUDA_ARCH__)
    __asm__("" : "+r"(number));
#endif
    return number * 8;
}

/* False only if no key with this hash was ever added. */
BLY_BOTH static inline bool bly_blocked_has(const bly_blocked *b, uint64_t hash)
{
    const uint64_t *const block = b->words + bly_block_at_(hash, b->nblocks);
    return b->k == 8 ? bly_block_has_hash_8_(block, hash)
                     : bly_block_has_lanes_(block, hash, b->k);
}

/* The hash of an integer. */
BLY_BOTH static inline uint64_t bly_blocked_int_hash(const bly_blocked *b,
                                                     uint64_t key)
{
    return b->folded ? bly_int_folded(key, b->flip)
                     : bly_int_hash(key, b->flip);
}

/* The same for an integer, as bly_add_ints() adds it. */
BLY_BOTH static inline bool bly_blocked_has_int(const bly_blocked *b,
                                                uint64_t key)
{
    return bly_blocked_has(b, bly_blocked_int_hash(b, key));
}

/* ------------------------------------------------------------------ adding */

__attribute__((noinline, cold, unused)) static bool
bly_block_add_lanes_(uint64_t *block, uint64_t hash, unsigned k)
{
    uint64_t missing = 0;
    for (unsigned i = 0; i < k; i++) {
        const unsigned at = bly_block_bit_(hash, k, i);
        const uint64_t one = UINT64_C(1) << at % 64;
        const uint64_t bit = bly_block_word_(&one, 0);
        missing |= bit & ~block[at / 64];
        block[at / 64] |= bit;
    }
    return missing != 0;
}

static inline bool bly_block_add_8_(uint64_t *block, uint64_t hash)
{
#if BLY_VECTORS_ == 512
    const __m512i mask = bly_block_mask_8_(bly_block_spread_8_(hash));
    const __m512i old = _mm512_load_si512((const void *)block);
    _mm512_store_si512((void *)block, _mm512_or_si512(old, mask));
    return _mm512_testn_epi64_mask(mask, old) != 0;
#else
    const uint64_t g = bly_lines_spread(hash, BLY_LINES_C1);
    uint64_t missing = 0;
    for (unsigned i = 0; i < 8; i++) {
        const uint64_t one = UINT64_C(1) << (g >> 6 * i & 63);
        const uint64_t bit = bly_block_word_(&one, 0);
        missing |= bit & ~block[i];
        block[i] |= bit;
    }
    return missing != 0;
#endif
}

/* Add the key with this hash; true if that changed the filter. */
static inline bool bly_blocked_add(const bly_blocked_adder *a, uint64_t hash)
{
    uint64_t *const block = a->words + bly_block_at_(hash, a->view.nblocks);
    return a->view.k == 8 ? bly_block_add_8_(block, hash)
                          : bly_block_add_lanes_(block, hash, a->view.k);
}

/* The same for an integer, as bly_add_ints() adds it. */
static inline bool bly_blocked_add_int(const bly_blocked_adder *a, uint64_t key)
{
    return bly_blocked_add(a, bly_blocked_int_hash(&a->view, key));
}

/* ---------------------------------------------------------- eight at a time */

/* How many groups are being loaded while one is tested. With fewer, memory
 * arrives too late; with more, groups push each other out of the first
 * cache. */
#define BLY_BLOCKED_AHEAD 8

/* Eight keys whose blocks are being loaded. */
typedef struct bly_blocked_eight {
    const uint64_t *block[8];
    uint64_t g[8]; /* with k = 8 the positions, else the hash */
} bly_blocked_eight;

/* Start loading the blocks of eight hashes. Compilers turn these loops of eight
 * into vector instructions. */
static inline void bly_blocked_aim(const bly_blocked *b, const uint64_t *hashes,
                                   bly_blocked_eight *out)
{
    uint64_t at[8];
    if (b->nblocks >> 32) {
        for (unsigned i = 0; i < 8; i++)
            at[i] = bly_mulhi(hashes[i], b->nblocks);
    } else { /* the same, from halves: vectors have no high product */
        for (unsigned i = 0; i < 8; i++)
            at[i] = ((hashes[i] >> 32) * b->nblocks +
                     ((hashes[i] & UINT32_MAX) * b->nblocks >> 32)) >>
                    32;
    }
    for (unsigned i = 0; i < 8; i++)
        out->block[i] = b->words + at[i] * 8;
    for (unsigned i = 0; i < 8; i++)
        out->g[i] =
            b->k == 8 ? bly_lines_spread(hashes[i], BLY_LINES_C1) : hashes[i];
    for (unsigned i = 0; i < 8; i++)
        __builtin_prefetch(out->block[i], 0, 3);
}

/* The same for eight integers. */
static inline void bly_blocked_aim_ints(const bly_blocked *b,
                                        const uint64_t *keys,
                                        bly_blocked_eight *out)
{
    uint64_t hashes[8];
    for (unsigned i = 0; i < 8; i++)
        hashes[i] = bly_blocked_int_hash(b, keys[i]);
    bly_blocked_aim(b, hashes, out);
}

/* Bit i is clear only if key i of the eight was never added. */
static inline unsigned bly_blocked_hits(const bly_blocked *b,
                                        const bly_blocked_eight *e)
{
    unsigned hits = 0;
    if (b->k == 8)
        for (unsigned i = 0; i < 8; i++)
            hits |= (unsigned)bly_block_has_8_(e->block[i], e->g[i]) << i;
    else
        for (unsigned i = 0; i < 8; i++)
            hits |= (unsigned)bly_block_has_lanes_(e->block[i], e->g[i], b->k)
                    << i;
    return hits;
}

static inline void bly_blocked_each_(const bly_blocked *b, const uint64_t *keys,
                                     size_t n, bool ints, uint64_t *maybe)
{
    bly_blocked_eight ahead[BLY_BLOCKED_AHEAD];
    const size_t neights = n / 8;
    uint64_t word = 0;
    size_t i;
    for (i = 0; i < neights + BLY_BLOCKED_AHEAD; i++) {
        bly_blocked_eight *const e = &ahead[i % BLY_BLOCKED_AHEAD];
        if (i >= BLY_BLOCKED_AHEAD) {
            const size_t at = i - BLY_BLOCKED_AHEAD;
            word |= (uint64_t)bly_blocked_hits(b, e) << at % 8 * 8;
            if (at % 8 == 7) {
                maybe[at / 8] = word;
                word = 0;
            }
        }
        if (i < neights && ints)
            bly_blocked_aim_ints(b, keys + 8 * i, e);
        else if (i < neights)
            bly_blocked_aim(b, keys + 8 * i, e);
    }
    for (i = 8 * neights; i < n; i++)
        word |= (uint64_t)(ints ? bly_blocked_has_int(b, keys[i])
                                : bly_blocked_has(b, keys[i]))
                << i % 64;
    if (n % 64)
        maybe[n / 64] = word;
}

/* The same answers as bly_has_hashes() and bly_has_ints(): bit i % 64 of
 * maybe[i / 64] is clear only if key i of n was never added. */
static inline void bly_blocked_has_hashes(const bly_blocked *b,
                                          const uint64_t *hashes, size_t n,
                                          uint64_t *maybe)
{
    bly_blocked_each_(b, hashes, n, false, maybe);
}

static inline void bly_blocked_has_ints(const bly_blocked *b,
                                        const uint64_t *ints, size_t n,
                                        uint64_t *maybe)
{
    bly_blocked_each_(b, ints, n, true, maybe);
}

#endif
