/*
 * bloomery/views.h - ask classic, cuckoo, fuse and xor filters without a call
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
    uint64_t turned; /* the seed, as bly_int_hash_turned() takes it */
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
} bly_view_fuse;

typedef bly_view_fuse bly_view_xor; /* starts is 0 */

bool bly_view_of_fuse(const bly_filter *f, bly_view_fuse *out);
bool bly_view_of_xor(const bly_filter *f, bly_view_xor *out);

BLY_END_DECLS

static inline uint64_t bly_view_word_(const unsigned char *at)
{
    uint64_t word;
    __builtin_memcpy(&word, at, sizeof word);
    return bly_block_word_(&word, 0);
}

/* ----------------------------------------------------------------- classic */

/* Test n positions in the layout `spread`: the hash times powers of a constant,
 * scaled to the number of bits. */
static inline __attribute__((always_inline)) bool
bly_spread_in_(const unsigned char *bits, uint64_t nbits, uint64_t *g,
               uint64_t n)
{
    uint64_t in = 1;
#pragma GCC unroll 4
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t x = bly_mulhi(*g, nbits);
        in &= bly_view_word_(bits + (x >> 6) * 8) >> (x & 63);
        *g *= BLY_POWERS_C;
    }
    return in != 0;
}

/* Test three positions at once first: they expose most absent keys. */
static inline __attribute__((always_inline)) bool
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
static inline uint64_t bly_mod_(uint64_t h, uint64_t n, uint64_t inverse)
{
    const uint64_t r = h - bly_mulhi(h, inverse) * n;
    const uint64_t less = r - n; /* wraps around to more than r if r is right */
    return less < r ? less : r;
}

/* x mod n, for x < 2 n, the sum of two positions. Written so that compilers do
 * not use a branch: whether x passes n is a coin flip. */
static inline uint64_t bly_wrap_(uint64_t x, uint64_t n)
{
    uint64_t less;
    return __builtin_sub_overflow(x, n, &less) ? x : less;
}

/* In seven positions the step grows by less than this. If it stays below nbits
 * all the time, as it nearly always does, it never needs to be reduced. */
#define BLY_CLASSIC_GROWTH 28

static inline bool bly_classic_even_(uint64_t y, uint64_t nbits)
{
    return y + BLY_CLASSIC_GROWTH < nbits;
}

/* Test positions i to end - 1 of a key that is at x and steps by y. `even` is a
 * literal; it says that the step stays below nbits. */
static inline __attribute__((always_inline)) bool
bly_classic_in_(const bly_view_classic *v, uint64_t *x, uint64_t *y, uint64_t i,
                uint64_t end, bool even)
{
    uint64_t in = 1;
#pragma GCC unroll 4
    for (; i < end; i++) {
        in &= bly_view_word_(v->bits + (*x >> 6) * 8) >> (*x & 63);
        *x = bly_wrap_(*x + *y, v->nbits);
        *y = even ? *y + i + 1 : bly_wrap_(*y + i + 1, v->nbits);
    }
    return in != 0;
}

static inline __attribute__((always_inline)) bool
bly_classic_seven_(const bly_view_classic *v, uint64_t x, uint64_t y)
{
    return bly_classic_in_(v, &x, &y, 0, 3, true) &&
           bly_classic_in_(v, &x, &y, 3, 7, true);
}

/* For any k, and for the layout `shared`. Not inline, so that a loop over the
 * usual filters keeps its registers. */
__attribute__((noinline, cold, unused)) static bool
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
static inline bool bly_view_classic_has(const bly_view_classic *v,
                                        uint64_t hash)
{
    return v->k == 7 && !v->inverse
               ? bly_spread_has_(v->bits, v->nbits, 7, hash)
               : bly_view_classic_any_(v, hash);
}

/* The same for an integer, as bly_add_ints() adds it. */
static inline bool bly_view_classic_has_int(const bly_view_classic *v,
                                            uint64_t key)
{
    return bly_view_classic_has(v, bly_int_hash_turned(key, v->turned));
}

/* ------------------------------------------------------------------ cuckoo */

#define BLY_CUCKOO_C UINT64_C(0x9e3779b97f4a7c15)

/* The first bit of the other bucket of a fingerprint that may be in the bucket
 * at `bit`: docs/kinds/cuckoo.md. Positions of bits are subtracted, so that the
 * number of the bucket is not needed; a negative difference is less than one
 * table below 0. If all arguments count bytes instead of bits, so does the
 * result. With `light` the fingerprint is only multiplied: fingerprints differ
 * in random bits already, and a product spreads them as evenly as possible. */
static inline uint64_t bly_cuckoo_across_(uint64_t fp, uint64_t bit,
                                          uint64_t nbuckets, uint64_t width,
                                          uint64_t nbits, bool light)
{
    const uint64_t mixed = light ? fp * BLY_CUCKOO_C : bly_mix64(fp);
    const uint64_t sum = (1 + 2 * bly_mulhi(mixed, nbuckets / 2)) * width;
    const uint64_t other = sum - bit, up = other + nbits;
    return up < other ? up : other; /* the lesser: no branch either */
}

/* The fingerprint of a hash, from 1 to nprints. */
static inline uint64_t bly_cuckoo_print_(uint64_t hash, uint64_t nprints)
{
    return 1 + ((hash * BLY_CUCKOO_C >> 32) * nprints >> 32);
}

/* The highest bit of each slot of w that holds fp. The lowest bit set is right;
 * those above it need not be. A slot of x is zero where w has fp. Subtracting 1
 * from it borrows, which sets its highest bit. A slot above may then borrow
 * falsely, but never one below the lowest match. */
static inline uint64_t bly_cuckoo_hits_(uint64_t w, uint64_t fp, uint64_t ones,
                                        uint64_t highs)
{
    const uint64_t x = w ^ fp * ones;
    return (x - ones) & ~x & highs;
}

/* Is the key in one of its two buckets? Positions a and b count bits if `units`
 * is 8, and bytes if it is 1: a bucket begins in byte a / units, at bit a %
 * units. `units` is a literal, and so is `light` in the usual case. */
static inline __attribute__((always_inline)) bool
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

__attribute__((noinline, unused)) static bool
bly_view_cuckoo_any_(const bly_view_cuckoo *v, uint64_t hash)
{
    return bly_cuckoo_in_(v, hash, 8, v->light);
}

static inline bool bly_view_cuckoo_has(const bly_view_cuckoo *v, uint64_t hash)
{
    return v->usual ? bly_cuckoo_in_(v, hash, 1, true)
                    : bly_view_cuckoo_any_(v, hash);
}

static inline bool bly_view_cuckoo_has_int(const bly_view_cuckoo *v,
                                           uint64_t key)
{
    return bly_view_cuckoo_has(v, bly_int_hash_turned(key, v->turned));
}

/* ----------------------------------------------------------- fuse and xor */

/* The word from which the slots and the fingerprint of a key are derived. A
 * good hash needs only a product with the seed, which is odd: its high bits
 * depend on all bits of the hash, and differently for every seed. */
#define BLY_PEEL_LOW UINT64_C(63)

static inline uint64_t bly_peel_word(uint64_t hash, uint64_t seed, bool light)
{
    return (light ? hash * seed : bly_mix64(hash ^ seed)) & ~BLY_PEEL_LOW;
}

/* The fingerprint of such a word: take the high bits of the result. */
#define BLY_PEEL_PRINT_C UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t bly_peel_print(uint64_t g)
{
    return g * BLY_PEEL_PRINT_C;
}

/* Slot i of a key. In fuse, slots lie in consecutive segments; `first` is slot
 * 0, and the others differ from it in bits of x. In xor, the array has as many
 * parts as a key has slots, and g is multiplied by BLY_POWERS_C from one slot
 * to the next. */
static inline uint64_t bly_fuse_first_(uint64_t g, uint64_t starts)
{
    return bly_mulhi(g, starts);
}

static inline uint64_t bly_fuse_slot_(uint64_t first, uint64_t g, unsigned i,
                                      uint64_t segment)
{
    const uint64_t x = g * BLY_POWERS_C;
    return (first + i * segment) ^ (x >> (64 - 18 * i) & (segment - 1));
}

static inline uint64_t bly_xor_slot_(uint64_t *g, unsigned i, uint64_t segment)
{
    const uint64_t slot = i * segment + bly_mulhi(*g, segment);
    *g *= BLY_POWERS_C;
    return slot;
}

/* Cell i, of any width. Cells of whole bytes end where their array does. Behind
 * other cells there are eight more bytes, so a whole word can be loaded. */
static inline uint64_t bly_view_cell_(const unsigned char *cells, uint64_t i,
                                      unsigned bits)
{
    const uint64_t bit = i * bits;
    const unsigned char *const at = cells + (bit >> 3);
    if (bits == 8)
        return at[0];
    if (bits == 16 || bits == 32) {
        const uint64_t low = at[0] | (uint64_t)at[1] << 8;
        return bits == 16 ? low
                          : low | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24;
    }
    return bly_view_word_(at) >> (bit & 7) & ((UINT64_C(1) << bits) - 1);
}

/* For fingerprints of any width, in three or four slots. */
__attribute__((noinline, cold, unused)) static bool
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
static inline bool bly_fuse_in_(const bly_view_fuse *v, uint64_t hash,
                                uint64_t seed, const unsigned char *cells)
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

BLY_VIEW_APART_ bool bly_view_fuse_any_(const bly_view_fuse *v, uint64_t hash)
{
    const uint64_t shard = bly_mulhi(hash, v->nshards);
    return v->usuals
               ? bly_fuse_in_(v, hash, bly_view_word_(v->seeds + shard * 8),
                              v->cells + shard * v->nslots)
               : bly_prints_any_(v, hash);
}

static inline bool bly_view_fuse_has(const bly_view_fuse *v, uint64_t hash)
{
    return v->usual ? bly_fuse_in_(v, hash, v->seed, v->cells)
                    : bly_view_fuse_any_(v, hash);
}

static inline bool bly_view_fuse_has_int(const bly_view_fuse *v, uint64_t key)
{
    return bly_view_fuse_has(v, bly_int_hash_turned(key, v->turned));
}

static inline bool bly_xor_in_(const bly_view_xor *v, uint64_t hash,
                               uint64_t seed, const unsigned char *cells)
{
    const uint64_t g = bly_peel_word(hash, seed, true);
    uint64_t power = g;
    unsigned sum = cells[bly_xor_slot_(&power, 0, v->segment)];
    sum ^= cells[bly_xor_slot_(&power, 1, v->segment)];
    sum ^= cells[bly_xor_slot_(&power, 2, v->segment)];
    return (unsigned char)sum == (unsigned char)(bly_peel_print(g) >> 56);
}

BLY_VIEW_APART_ bool bly_view_xor_any_(const bly_view_xor *v, uint64_t hash)
{
    const uint64_t shard = bly_mulhi(hash, v->nshards);
    return v->usuals
               ? bly_xor_in_(v, hash, bly_view_word_(v->seeds + shard * 8),
                             v->cells + shard * v->nslots)
               : bly_prints_any_(v, hash);
}

static inline bool bly_view_xor_has(const bly_view_xor *v, uint64_t hash)
{
    return v->usual ? bly_xor_in_(v, hash, v->seed, v->cells)
                    : bly_view_xor_any_(v, hash);
}

static inline bool bly_view_xor_has_int(const bly_view_xor *v, uint64_t key)
{
    return bly_view_xor_has(v, bly_int_hash_turned(key, v->turned));
}

#endif
