/*
 * bloomery/views.h - ask filters of other kinds than blocked without a call
 * SPDX-License-Identifier: MIT
 *
 * Like bloomery/inline.h, which is for blocked filters, but for the other kinds
 * that are most often asked for one key at a time:
 *
 *     bly_view_fuse v;
 *     if (bly_view_of_fuse(f, &v))
 *         for (...)
 *             hits += bly_view_fuse_has_int(&v, key);
 *
 * The answers are those of bly_has_hash() and bly_has(), and cannot fail. A
 * view belongs to the caller but points into the filter, which must outlive it.
 * Any number of threads may ask, as long as none writes to the filter. A view
 * also sees keys that are added later.
 *
 * A filter has a view if the functions below can ask it. There is none for a
 * filter that is keyed, shared by many writers or made of layers, nor for rare
 * shapes (see below): the call that makes the view then returns false and
 * leaves *out as it was. bly_has() works for every filter. A mapped file that
 * is checked block by block is first checked as a whole: false if it is
 * damaged, and bly_damage() says where.
 */
#ifndef BLOOMERY_VIEWS_H
#define BLOOMERY_VIEWS_H

#include <bloomery/inline.h>

BLY_BEGIN_DECLS

/* The bits of a key are spread over the whole array. There is no view if the
 * array is cut into slices. */
typedef struct bly_view_classic { /* final */
    const unsigned char *bits;
    uint64_t nbits;
    uint64_t inverse; /* of nbits, for bly_mod_(); 0: layout `spread` */
    uint64_t k;
    uint64_t turned; /* the seed, as bly_int_hash_of() takes it */
    bool folded;     /* the hash of integers, as above */
} bly_view_classic;

bool bly_view_of_classic(const bly_filter *f, bly_view_classic *out);

/* Fingerprints in buckets. There is no view if they are semi-sorted, if the
 * filter grows, or if a bucket does not fit in one word; four slots of up to 14
 * bits do. Buckets of whole bytes, with lightly mixed fingerprints, are asked
 * inline, others by a function that is compiled into the program. */
typedef struct bly_view_cuckoo { /* final */
    const unsigned char *buckets;
    uint64_t nbuckets, nbits; /* of all buckets */
    uint64_t nprints;
    uint64_t ones, highs; /* the lowest and the highest bit of each slot */
    uint64_t turned;
    uint32_t width; /* bits of a bucket */
    bool light;     /* bly_cuckoo_across_() */
    bool usual;     /* light, whole bytes */
    bool folded;
} bly_view_cuckoo;

bool bly_view_of_cuckoo(const bly_filter *f, bly_view_cuckoo *out);

/* Fingerprints of a fixed set, kinds "fuse" and "xor". Fingerprints of 8 bits
 * in three slots, with lightly mixed hashes, are asked inline, others by a
 * function that is compiled into the program. */
typedef struct bly_view_fuse { /* final */
    const unsigned char *seeds, *cells;
    uint64_t nshards, nslots; /* of a shard */
    uint64_t segment, starts; /* starts: slots where a key may begin */
    uint64_t seed;            /* of the only shard */
    uint64_t turned;
    uint32_t bits, arity;
    bool light;  /* bly_peel_word() */
    bool usual;  /* light, 8 bits, three slots, one shard */
    bool usuals; /* the same with several shards */
    bool folded;
} bly_view_fuse;

typedef bly_view_fuse bly_view_xor; /* starts is 0 */

bool bly_view_of_fuse(const bly_filter *f, bly_view_fuse *out);
bool bly_view_of_xor(const bly_filter *f, bly_view_xor *out);

/* A layer of a ribbon filter: shards of one size. */
typedef struct bly_view_ribbon_layer { /* final */
    uint64_t nshards, stride;          /* stride: words of a shard */
    uint64_t words, bounds;            /* where they begin: words, and bytes */
    uint64_t wide;   /* first block of a shard with one bit more */
    uint64_t narrow; /* shares of 2^32 below this are narrow */
    uint64_t seed;
    uint64_t needs[2];      /* bits of a print that count, narrow and wide */
    uint32_t nslots, width; /* of a shard; bits of a narrow slot */
    uint32_t nbounds;       /* of a shard; 0: it bumps no keys */
    uint32_t reserved;      /* zero */
} bly_view_ribbon_layer;

#define BLY_VIEW_RIBBON_LAYERS 4
typedef struct bly_view_ribbon { /* final */
    const unsigned char *data;
    uint64_t turned;
    uint64_t nlayers; /* 0: an empty filter */
    bly_view_ribbon_layer layer[BLY_VIEW_RIBBON_LAYERS];
    bool folded;
} bly_view_ribbon;

bool bly_view_of_ribbon(const bly_filter *f, bly_view_ribbon *out);

/* Rows of counters, of 32 or 64 bits. */
typedef struct bly_view_countmin { /* final */
    const unsigned char *counters;
    uint64_t width; /* counters of a row */
    uint64_t turned;
    uint32_t depth; /* rows */
    bool wide;      /* 64 bits */
    bool plain;     /* every addition raises all counters of its key */
    bool folded;
} bly_view_countmin;

bool bly_view_of_countmin(const bly_filter *f, bly_view_countmin *out);

BLY_END_DECLS

/* A little-endian word at any address. A device loads words only where they are
 * aligned; the second of two words is not touched unless it is needed, since
 * there may be none. */
BLY_BOTH static inline uint64_t bly_view_word_(const unsigned char *at)
{
#ifdef __CUDA_ARCH__
    const unsigned shift = (unsigned)((uintptr_t)at & 7) * 8;
    const uint64_t *const words =
        (const uint64_t *)((uintptr_t)at & ~(uintptr_t)7);
    return shift ? words[0] >> shift | words[1] << (64 - shift) : words[0];
#else
    uint64_t word;
    __builtin_memcpy(&word, at, sizeof word);
    return bly_block_word_(&word, 0);
#endif
}

/* nvcc unrolls by itself, and does not know the pragma. clang must be told to
 * unroll the whole loop, or it decides before it knows how long that is; and it
 * would warn where it never knows. */
#ifdef __CUDACC__
#define BLY_UNROLL_4_
#elif defined(__clang__)
#define BLY_UNROLL_4_ _Pragma("clang loop unroll(full)")
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define BLY_UNROLL_4_ _Pragma("GCC unroll 4")
#endif

/* ----------------------------------------------------------------- classic */

/* Test n positions in the layout `spread`: the hash times powers of a constant,
 * scaled to the number of bits. */
BLY_BOTH static inline __attribute__((always_inline)) bool
bly_spread_in_(const unsigned char *bits, uint64_t nbits, uint64_t *g,
               uint64_t n)
{
    uint64_t in = 1;
    BLY_UNROLL_4_
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t x = bly_mulhi(*g, nbits);
        in &= bly_view_word_(bits + (x >> 6) * 8) >> (x & 63);
        *g *= BLY_POWERS_C;
    }
    return in != 0;
}

/* Test three positions at once first: they expose most absent keys. */
BLY_BOTH static inline __attribute__((always_inline)) bool
bly_spread_has_(const unsigned char *bits, uint64_t nbits, uint64_t k,
                uint64_t hash)
{
    const uint64_t first = k < 3 ? k : 3;
    return bly_spread_in_(bits, nbits, &hash, first) &&
           bly_spread_in_(bits, nbits, &hash, k - first);
}

/* h mod n for many h and one n < 2^63, with inverse = floor((2^64-1) / n). The
 * inverse is at least 2^64/n - 1, so h inverse / 2^64 is more than h/n - 1, and
 * the quotient is right or one too small. */
BLY_BOTH static inline uint64_t bly_mod_(uint64_t h, uint64_t n,
                                         uint64_t inverse)
{
    const uint64_t r = h - bly_mulhi(h, inverse) * n;
    const uint64_t less = r - n; /* wraps around to more than r if r is right */
    return less < r ? less : r;
}

/* x mod n, for x < 2 n, the sum of two positions. Written so that compilers do
 * not use a branch: whether x passes n is a coin flip. */
BLY_BOTH static inline uint64_t bly_wrap_(uint64_t x, uint64_t n)
{
#ifdef __CUDA_ARCH__
    return x < n ? x : x - n; /* a select */
#else
    uint64_t less;
    return __builtin_sub_overflow(x, n, &less) ? x : less;
#endif
}

/* In seven positions the step grows by less than this. If it stays below nbits
 * all the time, as it nearly always does, it never needs to be reduced. */
#define BLY_CLASSIC_GROWTH 28

BLY_BOTH static inline bool bly_classic_even_(uint64_t y, uint64_t nbits)
{
    return y + BLY_CLASSIC_GROWTH < nbits;
}

/* Test positions i to end - 1 of a key that is at x and steps by y. `even` is a
 * literal; it says that the step stays below nbits. */
BLY_BOTH static inline __attribute__((always_inline)) bool
bly_classic_in_(const bly_view_classic *v, uint64_t *x, uint64_t *y, uint64_t i,
                uint64_t end, bool even)
{
    uint64_t in = 1;
    BLY_UNROLL_4_
    for (; i < end; i++) {
        in &= bly_view_word_(v->bits + (*x >> 6) * 8) >> (*x & 63);
        *x = bly_wrap_(*x + *y, v->nbits);
        *y = even ? *y + i + 1 : bly_wrap_(*y + i + 1, v->nbits);
    }
    return in != 0;
}

BLY_BOTH static inline __attribute__((always_inline)) bool
bly_classic_seven_(const bly_view_classic *v, uint64_t x, uint64_t y)
{
    return bly_classic_in_(v, &x, &y, 0, 3, true) &&
           bly_classic_in_(v, &x, &y, 3, 7, true);
}

/* For any k, and for the layout `shared`. Not inline, so that a loop over the
 * usual filters keeps its registers. */
BLY_BOTH __attribute__((noinline, cold, unused)) static bool
bly_view_classic_any_(const bly_view_classic *v, uint64_t hash)
{
    if (!v->inverse)
        return bly_spread_has_(v->bits, v->nbits, v->k, hash);
    uint64_t x = bly_mod_(hash, v->nbits, v->inverse);
    uint64_t y = bly_mod_(bly_mix64(hash), v->nbits, v->inverse);
    return v->k == 7 && bly_classic_even_(y, v->nbits)
               ? bly_classic_seven_(v, x, y)
               : bly_classic_in_(v, &x, &y, 0, v->k, false);
}

/* False only if no key with this hash was ever added. */
BLY_BOTH static inline bool bly_view_classic_has(const bly_view_classic *v,
                                                 uint64_t hash)
{
    return v->k == 7 && !v->inverse
               ? bly_spread_has_(v->bits, v->nbits, 7, hash)
               : bly_view_classic_any_(v, hash);
}

/* The same for an integer, as bly_add_ints() adds it. */
BLY_BOTH static inline bool bly_view_classic_has_int(const bly_view_classic *v,
                                                     uint64_t key)
{
    return bly_view_classic_has(v, bly_int_hash_of(key, v->turned, v->folded));
}

/* ------------------------------------------------------------------ cuckoo */

#define BLY_CUCKOO_C UINT64_C(0x9e3779b97f4a7c15)

/* The first bit of the other bucket of a fingerprint that may be in the bucket
 * at `bit`: docs/kinds/cuckoo.md. Positions of bits are subtracted, so that the
 * number of the bucket is not needed; a negative difference is less than one
 * table below 0. If all arguments count bytes instead of bits, so does the
 * result. With `light` the fingerprint is only multiplied: fingerprints differ
 * in random bits already, and a product spreads them as evenly as possible. */
BLY_BOTH static inline uint64_t bly_cuckoo_across_(uint64_t fp, uint64_t bit,
                                                   uint64_t nbuckets,
                                                   uint64_t width,
                                                   uint64_t nbits, bool light)
{
    const uint64_t mixed = light ? fp * BLY_CUCKOO_C : bly_mix64(fp);
    const uint64_t sum = (1 + 2 * bly_mulhi(mixed, nbuckets / 2)) * width;
    const uint64_t other = sum - bit, up = other + nbits;
    return up < other ? up : other; /* the lesser: no branch either */
}

/* The fingerprint of a hash, from 1 to nprints. */
BLY_BOTH static inline uint64_t bly_cuckoo_print_(uint64_t hash,
                                                  uint64_t nprints)
{
    return 1 + ((hash * BLY_CUCKOO_C >> 32) * nprints >> 32);
}

/* The highest bit of each slot of w that holds fp. The lowest bit set is right;
 * those above it need not be. A slot of x is zero where w has fp. Subtracting 1
 * from it borrows, which sets its highest bit. A slot above may then borrow
 * falsely, but never one below the lowest match. */
BLY_BOTH static inline uint64_t bly_cuckoo_hits_(uint64_t w, uint64_t fp,
                                                 uint64_t ones, uint64_t highs)
{
    const uint64_t x = w ^ fp * ones;
    return (x - ones) & ~x & highs;
}

/* Is the key in one of its two buckets? Positions a and b count bits if `units`
 * is 8, and bytes if it is 1: a bucket begins in byte a / units, at bit a %
 * units. `units` is a literal, and so is `light` in the usual case. */
BLY_BOTH static inline __attribute__((always_inline)) bool
bly_cuckoo_in_(const bly_view_cuckoo *v, uint64_t hash, unsigned units,
               bool light)
{
    const uint64_t width = v->width * units / 8, all = v->nbits * units / 8;
    const uint64_t fp = bly_cuckoo_print_(hash, v->nprints);
    const uint64_t a = bly_mulhi(hash, v->nbuckets) * width;
    const uint64_t b =
        bly_cuckoo_across_(fp, a, v->nbuckets, width, all, light);
    const uint64_t in_a = bly_view_word_(v->buckets + a / units) >> a % units;
    const uint64_t in_b = bly_view_word_(v->buckets + b / units) >> b % units;
    return (bly_cuckoo_hits_(in_a, fp, v->ones, v->highs) |
            bly_cuckoo_hits_(in_b, fp, v->ones, v->highs)) != 0;
}

BLY_BOTH __attribute__((noinline, unused)) static bool
bly_view_cuckoo_any_(const bly_view_cuckoo *v, uint64_t hash)
{
    return bly_cuckoo_in_(v, hash, 8, v->light);
}

BLY_BOTH static inline bool bly_view_cuckoo_has(const bly_view_cuckoo *v,
                                                uint64_t hash)
{
    return v->usual ? bly_cuckoo_in_(v, hash, 1, true)
                    : bly_view_cuckoo_any_(v, hash);
}

BLY_BOTH static inline bool bly_view_cuckoo_has_int(const bly_view_cuckoo *v,
                                                    uint64_t key)
{
    return bly_view_cuckoo_has(v, bly_int_hash_of(key, v->turned, v->folded));
}

/* ----------------------------------------------------------- fuse and xor */

/* The word from which the slots and the fingerprint of a key are derived. A
 * good hash needs only a product with the seed, which is odd: its high bits
 * depend on all bits of the hash, and differently for every seed. */
#define BLY_PEEL_LOW UINT64_C(63)

BLY_BOTH static inline uint64_t bly_peel_word(uint64_t hash, uint64_t seed,
                                              bool light)
{
    return (light ? hash * seed : bly_mix64(hash ^ seed)) & ~BLY_PEEL_LOW;
}

/* The fingerprint of such a word: take the high bits of the result. */
#define BLY_PEEL_PRINT_C UINT64_C(0x9e3779b97f4a7c15)

BLY_BOTH static inline uint64_t bly_peel_print(uint64_t g)
{
    return g * BLY_PEEL_PRINT_C;
}

/* Slot i of a key. In fuse, slots lie in consecutive segments; `first` is slot
 * 0, and the others differ from it in bits of x. In xor, the array has as many
 * parts as a key has slots, and g is multiplied by BLY_POWERS_C from one slot
 * to the next. */
BLY_BOTH static inline uint64_t bly_fuse_first_(uint64_t g, uint64_t starts)
{
    return bly_mulhi(g, starts);
}

BLY_BOTH static inline uint64_t bly_fuse_slot_(uint64_t first, uint64_t g,
                                               unsigned i, uint64_t segment)
{
    const uint64_t x = g * BLY_POWERS_C;
    return (first + i * segment) ^ (x >> (64 - 18 * i) & (segment - 1));
}

BLY_BOTH static inline uint64_t bly_xor_slot_(uint64_t *g, unsigned i,
                                              uint64_t segment)
{
    const uint64_t slot = i * segment + bly_mulhi(*g, segment);
    *g *= BLY_POWERS_C;
    return slot;
}

/* Cell i, of any width. Cells of whole bytes end where their array does. Behind
 * other cells there are eight more bytes, so a whole word can be loaded. */
BLY_BOTH static inline uint64_t bly_view_cell_(const unsigned char *cells,
                                               uint64_t i, unsigned bits)
{
    const uint64_t bit = i * bits;
    const unsigned char *const at = cells + (bit >> 3);
    if (bits == 8)
        return at[0];
    if (bits == 64)
        return bly_view_word_(at);
    if (bits == 16 || bits == 32) {
        const uint64_t low = at[0] | (uint64_t)at[1] << 8;
        return bits == 16 ? low
                          : low | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24;
    }
    return bly_view_word_(at) >> (bit & 7) & ((UINT64_C(1) << bits) - 1);
}

/* For fingerprints of any width, in three or four slots. */
BLY_BOTH __attribute__((noinline, cold, unused)) static bool
bly_prints_any_(const bly_view_fuse *v, uint64_t hash)
{
    const uint64_t shard = bly_mulhi(hash, v->nshards);
    const uint64_t g =
        bly_peel_word(hash, bly_view_word_(v->seeds + shard * 8), v->light);
    const uint64_t first = bly_fuse_first_(g, v->starts);
    uint64_t sum = bly_peel_print(g) >> (64 - v->bits), power = g;
    for (unsigned i = 0; i < v->arity; i++) {
        const uint64_t slot = !v->starts ? bly_xor_slot_(&power, i, v->segment)
                              : i ? bly_fuse_slot_(first, g, i, v->segment)
                                  : first;
        sum ^= bly_view_cell_(v->cells, shard * v->nslots + slot, v->bits);
    }
    return sum == 0;
}

/* Ask one shard, given its seed and its cells. */
BLY_BOTH static inline bool bly_fuse_in_(const bly_view_fuse *v, uint64_t hash,
                                         uint64_t seed,
                                         const unsigned char *cells)
{
    const uint64_t g = bly_peel_word(hash, seed, true);
    const uint64_t a = bly_fuse_first_(g, v->starts);
    const unsigned sum = (unsigned)cells[a] ^
                         cells[bly_fuse_slot_(a, g, 1, v->segment)] ^
                         cells[bly_fuse_slot_(a, g, 2, v->segment)];
    return (unsigned char)sum == (unsigned char)(bly_peel_print(g) >> 56);
}

/* For filters of many shards, and rare shapes. clang vectorises a loop over the
 * other filters only if this is a call; gcc does not vectorise it anyway. */
#ifdef __clang__
#define BLY_VIEW_APART_ __attribute__((noinline, unused)) static
#else
#define BLY_VIEW_APART_ static inline
#endif

BLY_BOTH BLY_VIEW_APART_ bool bly_view_fuse_any_(const bly_view_fuse *v,
                                                 uint64_t hash)
{
    const uint64_t shard = bly_mulhi(hash, v->nshards);
    return v->usuals
               ? bly_fuse_in_(v, hash, bly_view_word_(v->seeds + shard * 8),
                              v->cells + shard * v->nslots)
               : bly_prints_any_(v, hash);
}

BLY_BOTH static inline bool bly_view_fuse_has(const bly_view_fuse *v,
                                              uint64_t hash)
{
    return v->usual ? bly_fuse_in_(v, hash, v->seed, v->cells)
                    : bly_view_fuse_any_(v, hash);
}

BLY_BOTH static inline bool bly_view_fuse_has_int(const bly_view_fuse *v,
                                                  uint64_t key)
{
    return bly_view_fuse_has(v, bly_int_hash_of(key, v->turned, v->folded));
}

BLY_BOTH static inline bool bly_xor_in_(const bly_view_xor *v, uint64_t hash,
                                        uint64_t seed,
                                        const unsigned char *cells)
{
    const uint64_t g = bly_peel_word(hash, seed, true);
    uint64_t power = g;
    unsigned sum = cells[bly_xor_slot_(&power, 0, v->segment)];
    sum ^= cells[bly_xor_slot_(&power, 1, v->segment)];
    sum ^= cells[bly_xor_slot_(&power, 2, v->segment)];
    return (unsigned char)sum == (unsigned char)(bly_peel_print(g) >> 56);
}

BLY_BOTH BLY_VIEW_APART_ bool bly_view_xor_any_(const bly_view_xor *v,
                                                uint64_t hash)
{
    const uint64_t shard = bly_mulhi(hash, v->nshards);
    return v->usuals
               ? bly_xor_in_(v, hash, bly_view_word_(v->seeds + shard * 8),
                             v->cells + shard * v->nslots)
               : bly_prints_any_(v, hash);
}

BLY_BOTH static inline bool bly_view_xor_has(const bly_view_xor *v,
                                             uint64_t hash)
{
    return v->usual ? bly_xor_in_(v, hash, v->seed, v->cells)
                    : bly_view_xor_any_(v, hash);
}

BLY_BOTH static inline bool bly_view_xor_has_int(const bly_view_xor *v,
                                                 uint64_t key)
{
    return bly_view_xor_has(v, bly_int_hash_of(key, v->turned, v->folded));
}

/* ------------------------------------------------------------------ ribbon */

#define BLY_RIBBON_ROW 64      /* coefficients of a key */
#define BLY_RIBBON_BUCKET 256u /* slots that share a bound */
#define BLY_RIBBON_STEP 2u     /* slots to which a bound is exact */

/* Row and print come from products, which are folded since low bits of a
 * product depend on few bits of the factor. The multipliers are odd: the
 * fractions of the square roots of 2 and of 5. */
#define BLY_RIBBON_ROW_C UINT64_C(0x6a09e667f3bcc909)
#define BLY_RIBBON_PRINT_C UINT64_C(0x3c6ef372fe94f82b)

BLY_BOTH static inline uint64_t bly_ribbon_coefficients(uint64_t u)
{
    const uint64_t g = u * BLY_RIBBON_ROW_C;
    return (g ^ g >> 32) | 1;
}

BLY_BOTH static inline uint64_t bly_ribbon_print(uint64_t u)
{
    const uint64_t g = u * BLY_RIBBON_PRINT_C;
    return g ^ g >> 32;
}

BLY_BOTH static inline unsigned bly_view_parity_(uint64_t x)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__popcll((unsigned long long)x) & 1;
#else
    return (unsigned)__builtin_parityll(x);
#endif
}

/* Ask layer l. False: the key was bumped, and *u is its hash for the next
 * layer. Otherwise *in is the answer: do the slots that the row of the key
 * selects add up to its print? A row covers two blocks; or one, if it starts
 * where the block starts, and then there may be no second. */
BLY_BOTH static inline bool bly_ribbon_in_(const unsigned char *data,
                                           const bly_view_ribbon_layer *l,
                                           uint64_t *u, bool *in)
{
    *u = bly_mix64(*u ^ l->seed);
    const uint64_t shard = bly_mulhi(*u, l->nshards);
    const uint64_t within = *u * l->nshards;
    const uint64_t start = bly_mulhi(within, l->nslots - (BLY_RIBBON_ROW - 1));
    if (l->nbounds &&
        start % BLY_RIBBON_BUCKET / BLY_RIBBON_STEP <
            data[l->bounds + shard * l->nbounds + start / BLY_RIBBON_BUCKET])
        return false;
    const uint64_t b = start / 64, s = start % 64;
    const uint64_t needs = l->needs[within >> 32 >= l->narrow];
    const uint64_t print = bly_ribbon_print(*u);
    const uint64_t row = bly_ribbon_coefficients(*u);
    const uint64_t here = row << s, there = row >> 1 >> (63 - s);
    const unsigned char *const x =
        data + 8 * (l->words + shard * l->stride + b * l->width +
                    (b > l->wide ? b - l->wide : 0));
    const unsigned char *const y =
        x + (s ? 8 * ((uint64_t)l->width + (b >= l->wide)) : 0);
    *in = true;
    for (uint64_t i = 0; i < 64 && needs >> i && *in; i++)
        *in = bly_view_parity_((bly_view_word_(x + 8 * i) & here) ^
                               (bly_view_word_(y + 8 * i) & there)) ==
              (unsigned)(print >> i & 1);
    return true;
}

/* False only if no key with this hash was in the set. */
BLY_BOTH static inline bool bly_view_ribbon_has(const bly_view_ribbon *v,
                                                uint64_t hash)
{
    bool in = false;
    for (unsigned i = 0; i < v->nlayers; i++)
        if (bly_ribbon_in_(v->data, &v->layer[i], &hash, &in))
            break;
    return in;
}

BLY_BOTH static inline bool bly_view_ribbon_has_int(const bly_view_ribbon *v,
                                                    uint64_t key)
{
    return bly_view_ribbon_has(v, bly_int_hash_of(key, v->turned, v->folded));
}

/* --------------------------------------------------------------- count-min */

/* The next row of a key: multiply g by BLY_POWERS_C, then scale it. */
BLY_BOTH static inline uint64_t bly_countmin_place_(uint64_t *g, uint64_t row,
                                                    uint64_t width)
{
    *g *= BLY_POWERS_C;
    return row * width + bly_mulhi(*g, width);
}

/* How often the key with this hash was added, or more. */
BLY_BOTH static inline uint64_t
bly_view_countmin_count(const bly_view_countmin *v, uint64_t hash)
{
    uint64_t least = UINT64_MAX;
    for (uint64_t row = 0; row < v->depth; row++) {
        const uint64_t i = bly_countmin_place_(&hash, row, v->width);
        const uint64_t c = bly_view_cell_(v->counters, i, v->wide ? 64 : 32);
        least = c < least ? c : least;
    }
    return least;
}

BLY_BOTH static inline uint64_t
bly_view_countmin_count_int(const bly_view_countmin *v, uint64_t key)
{
    return bly_view_countmin_count(v,
                                   bly_int_hash_of(key, v->turned, v->folded));
}

#if defined(__clang__) && !defined(__CUDACC__)
#pragma clang diagnostic pop
#endif

#endif
