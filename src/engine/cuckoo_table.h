/*
 * cuckoo_table.h - buckets of fingerprints, packed
 *
 * nb buckets of b slots of f bits lie one behind the other, least significant
 * bit first as in bits.h. A slot holds a fingerprint from 1 to 2^f - 1, or 0.
 *
 *     bucket i:  | fp | fp | 0 | fp |     from bit i * b * f on
 *
 * A bucket is compared as a whole. It is loaded as one word, or as several
 * words of whole slots if it is longer, and compared with a word that has the
 * fingerprint in every slot (b = 4, f = 10: 40 bits, and at most 4 before them
 * in their byte).
 *
 * Semi-sorted [1] (b = 4). The order of slots carries no information. If slots
 * are sorted by their low four bits, these form one of C(19,4) = 3876
 * multisets, which takes 12 bits instead of 16. That saves one bit per slot.
 *
 *     bucket i:  | code, 12 bits | the higher f - 4 bits of four slots |
 *
 * A fingerprint lies in one of two buckets, i1 and i2 = t - i1 (mod nb), where
 * t is odd and follows from the fingerprint, and nb is even. So either bucket
 * leads to the other, and they are never the same. In the code below a bucket
 * is identified by its first bit, i times the width of a bucket, which saves a
 * multiplication at each access.
 *
 * Reading is safe and terminates, whatever the bytes are.
 *
 * [1] Fan, Andersen, Kaminsky and Mitzenmacher, Cuckoo Filter: Practically
 *     Better Than Bloom, 2014
 */
#ifndef BLY_CUCKOO_TABLE_H
#define BLY_CUCKOO_TABLE_H

#include <bloomery.h>

#include "core/bits.h"
#include "core/unroll.h"
#include "engine/rows.h"

#define BLY_CUCKOO_MAX_SLOTS 8

/* ----------------------------------------------------------------- layout */

/* Bits of a bucket. */
static inline uint64_t bly_cuckoo_width(uint64_t b, uint64_t f, bool sorted)
{
    return b * f - (sorted ? 4 : 0);
}

/* Bytes of a table. A word is loaded from the byte in which its first bit
 * lies, so seven bytes follow the one with the last bit. */
static inline uint64_t bly_cuckoo_nbytes(uint64_t nbits)
{
    return ((nbits - 1) / 8 + 8 + 7) / 8 * 8;
}

/* What the loops need of a table. ones has the lowest bit of each slot of a
 * word set, and highs the highest. */
typedef struct bly_cuckoo_table {
    unsigned char *data;
    uint64_t nb, nprints; /* 2^f - 1 */
    uint64_t nbits;       /* of all buckets */
    uint64_t ones, highs;
    unsigned b, f;
    unsigned width;     /* bits of a bucket */
    unsigned word_bits; /* bits of a word's slots */
    unsigned nwords;    /* words of a bucket */
    bool sorted;
    bool light; /* how t comes from a fingerprint: bly_cuckoo_across_() */
} bly_cuckoo_table;

/* Do n slots of f bits, starting at any multiple of n f bits, always lie within
 * the 8 bytes that begin with the byte of their first bit? */
static inline bool bly_cuckoo_one_word(unsigned n, unsigned f)
{
    /* Words begin at multiples of `bits`, whose lowest set bit is `odd`. So
     * their place in a byte is a multiple of odd, and at most 8 - odd bits lie
     * before them. */
    const unsigned bits = n * f, odd = bits & (0u - bits);
    return bits + 8 - (odd < 8 ? odd : 8) <= 64;
}

/* Is a bucket one word of plain slots? */
static inline bool bly_cuckoo_single(const bly_cuckoo_table *t)
{
    return t->nwords == 1 && !t->sorted;
}

static inline bly_cuckoo_table bly_cuckoo_table_of(unsigned char *data,
                                                   uint64_t nb, unsigned b,
                                                   unsigned f, bool sorted,
                                                   bool light)
{
    bly_cuckoo_table t = { .data = data,
                           .nb = nb,
                           .nprints = (UINT64_C(1) << f) - 1,
                           .b = b,
                           .f = f,
                           .width = (unsigned)bly_cuckoo_width(b, f, sorted),
                           .sorted = sorted,
                           .light = light };
    unsigned n = b;
    t.nbits = nb * t.width;
    /* b is a power of two, so a bucket is a whole number of equal words. One
     * slot always fits: f is at most 32. */
    while (!bly_cuckoo_one_word(n, f))
        n /= 2;
    t.nwords = b / n;
    t.word_bits = n * f;
    for (unsigned j = 0; j < n; j++)
        t.ones |= UINT64_C(1) << j * f;
    t.highs = t.ones << (f - 1);
    return t;
}

/* The word that begins with this bit; its first 57 bits are of use. */
static inline uint64_t bly_cuckoo_load(const bly_cuckoo_table *t, uint64_t bit)
{
    return bly_load64(t->data + (bit >> 3)) >> (bit & 7);
}

/* The word of a bucket that is a single word. If its width is a literal and a
 * whole number of bytes, no shift is needed. */
static inline __attribute__((always_inline)) uint64_t
bly_cuckoo_bucket(const bly_cuckoo_table *t, uint64_t bit)
{
    return __builtin_constant_p(t->width) && t->width % 8 == 0
               ? bly_load64(t->data + (bit >> 3))
               : bly_cuckoo_load(t, bit);
}

/* Bits `bit` to `bit + n - 1`; n at most 57. */
static inline void bly_cuckoo_store(const bly_cuckoo_table *t, uint64_t bit,
                                    unsigned n, uint64_t value)
{
    const uint64_t mask = ((UINT64_C(1) << n) - 1) << (bit & 7);
    unsigned char *p = t->data + (bit >> 3);
    bly_store64(p, (bly_load64(p) & ~mask) | value << (bit & 7));
}

/* ---------------------------------------------------------------- buckets */

/* Four sorted nibbles by their code, the largest lowest; codes from 3876 on,
 * which only a damaged table has, are four zeros. */
extern uint16_t bly_cuckoo_nibbles[4096];

/* Fills it in, once: to be called before a sorted table is touched. */
void bly_cuckoo_prepare(void);

static inline void bly_cuckoo_read_sorted(const bly_cuckoo_table *t,
                                          uint64_t bit, uint32_t *s)
{
    const unsigned high = t->f - 4;
    const uint64_t mask = (UINT64_C(1) << high) - 1;
    uint64_t w = bly_cuckoo_load(t, bit);
    const unsigned low = bly_cuckoo_nibbles[w & 0xfff];
    if (t->width <= 60) { /* a multiple of 4: one word holds it */
        w >>= 12;
        for (unsigned j = 0; j < 4; j++, w >>= high)
            s[j] = (uint32_t)((w & mask) << 4 | (low >> 4 * j & 15));
        return;
    }
    for (unsigned j = 0; j < 4; j++)
        s[j] =
            (uint32_t)((bly_cuckoo_load(t, bit + 12 + j * high) & mask) << 4 |
                       (low >> 4 * j & 15));
}

/* The slots of a bucket; there is room for BLY_CUCKOO_MAX_SLOTS in s. */
static inline void bly_cuckoo_read(const bly_cuckoo_table *t, uint64_t bit,
                                   uint32_t *s)
{
    if (t->sorted) {
        bly_cuckoo_read_sorted(t, bit, s);
        return;
    }
    for (unsigned j = 0; j < t->b; j++, bit += t->f)
        s[j] = (uint32_t)(bly_cuckoo_load(t, bit) & t->nprints);
}

/* bly_cuckoo_hits_() of a table. */
static inline uint64_t bly_cuckoo_hits(const bly_cuckoo_table *t, uint64_t w,
                                       uint32_t fp)
{
    return bly_cuckoo_hits_(w, fp, t->ones, t->highs);
}

/* Not 0 if the bucket has fp. There is no branch, since it is a coin flip which
 * bucket has it. `sorted` is t's; `single`: a bucket is one word. Both are
 * literals in the loops that matter. */
static inline __attribute__((always_inline)) uint64_t
bly_cuckoo_match(const bly_cuckoo_table *t, uint64_t bit, uint32_t fp,
                 bool sorted, bool single)
{
    if (sorted) {
        uint32_t s[4];
        bly_cuckoo_read_sorted(t, bit, s);
        return (uint64_t)((int)(s[0] == fp) | (int)(s[1] == fp) |
                          (int)(s[2] == fp) | (int)(s[3] == fp));
    }
    if (single)
        return bly_cuckoo_hits(t, bly_cuckoo_bucket(t, bit), fp);
    uint64_t hits = 0;
    for (unsigned w = 0; w < t->nwords; w++, bit += t->word_bits)
        hits |= bly_cuckoo_hits(t, bly_cuckoo_load(t, bit), fp);
    return hits;
}

bool bly_cuckoo_exchange_sorted(const bly_cuckoo_table *t, uint64_t bit,
                                uint32_t old, uint32_t fp);

/* Replace one `old` in a bucket, if there is one. Either may be 0, an empty
 * slot. */
static inline __attribute__((always_inline)) bool
bly_cuckoo_exchange(const bly_cuckoo_table *t, uint64_t bit, uint32_t old,
                    uint32_t fp)
{
    if (t->sorted)
        return bly_cuckoo_exchange_sorted(t, bit, old, fp);
    for (unsigned w = 0; w < t->nwords; w++, bit += t->word_bits) {
        const uint64_t hits = bly_cuckoo_hits(t, bly_cuckoo_load(t, bit), old);
        if (hits) {
            /* A hit is marked at the highest bit of its slot; go back to the
             * lowest. */
            bit += (unsigned)__builtin_ctzll(hits) + 1 - t->f;
            bly_cuckoo_store(t, bit, t->f, fp);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------- keys */

typedef struct bly_cuckoo_key {
    uint64_t at1, at2; /* the first bits of its buckets */
    uint32_t fp;
} bly_cuckoo_key;

/* The other bucket of a fingerprint that may be in this one. */
static inline __attribute__((always_inline)) uint64_t
bly_cuckoo_other(const bly_cuckoo_table *t, uint64_t bit, uint32_t fp)
{
    return bly_cuckoo_across_(fp, bit, t->nb, t->width, t->nbits, t->light);
}

/* The bucket comes from the top bits of the hash; the product brings the low
 * ones up for the fingerprint. */
static inline __attribute__((always_inline)) bly_cuckoo_key
bly_cuckoo_locate(const bly_cuckoo_table *t, uint64_t h)
{
    bly_cuckoo_key key = { .at1 = bly_scale(h, t->nb) * t->width,
                           .fp = (uint32_t)bly_cuckoo_print_(h, t->nprints) };
    key.at2 = bly_cuckoo_other(t, key.at1, key.fp);
    return key;
}

/* Both buckets are always read: a branch that half of the keys take costs more
 * than a word that is in the cache already. */
static inline __attribute__((always_inline)) bool
bly_cuckoo_has(const bly_cuckoo_table *t, bly_cuckoo_key key, bool sorted,
               bool single)
{
    return (bly_cuckoo_match(t, key.at1, key.fp, sorted, single) |
            bly_cuckoo_match(t, key.at2, key.fp, sorted, single)) != 0;
}

/* Set the bits of keys that may be there. */
typedef void bly_cuckoo_has_fn(const bly_cuckoo_table *t, const uint64_t *h,
                               size_t n, uint64_t *maybe);
/* Store a copy of each key, up to the first that finds no room; returns how
 * many. */
typedef size_t bly_cuckoo_add_fn(const bly_cuckoo_table *t, const uint64_t *h,
                                 size_t n);
/* Take a copy of each key out: BLY_OK, or BLY_EABSENT. */
typedef void bly_cuckoo_remove_fn(const bly_cuckoo_table *t, const uint64_t *h,
                                  size_t n, bly_status *each);
/* Locate eight keys, of a table of at most BLY_CUCKOO_EIGHT buckets. */
typedef void bly_cuckoo_locate_fn(const bly_cuckoo_table *t, const uint64_t *h,
                                  uint64_t *at1, uint64_t *at2, uint64_t *fp);
#define BLY_CUCKOO_EIGHT (UINT32_MAX - 1)

typedef struct bly_cuckoo_row {
    BLY_ROW_HEAD;
    bly_cuckoo_has_fn *has;
    bly_cuckoo_add_fn *add;
    bly_cuckoo_remove_fn *remove;
    bly_cuckoo_locate_fn *locate; /* NULL: one by one */
} bly_cuckoo_row;
BLY_ROWS(cuckoo);

bly_cuckoo_has_fn bly_cuckoo_has_portable;
bly_cuckoo_add_fn bly_cuckoo_add_portable;
bly_cuckoo_remove_fn bly_cuckoo_remove_portable;
#if BLY_X86
/* x86_cuckoo.c */
bly_cuckoo_has_fn bly_cuckoo_has_avx512;
bly_cuckoo_add_fn bly_cuckoo_add_avx512;
bly_cuckoo_remove_fn bly_cuckoo_remove_avx512;
bly_cuckoo_locate_fn bly_cuckoo_locate_avx512;
#endif

/* Both buckets of key are full: move other fingerprints out of the way and
 * store it. False, with nothing changed, if there is no way. */
bool bly_cuckoo_squeeze(const bly_cuckoo_table *t, bly_cuckoo_key key);

/* Put fp into the first of the slots that bly_cuckoo_match() found in the
 * bucket at `bit`; there must be one. */
static inline __attribute__((always_inline)) void
bly_cuckoo_put(const bly_cuckoo_table *t, uint64_t bit, uint64_t hits,
               uint32_t fp)
{
    bly_cuckoo_store(t, bit + (unsigned)__builtin_ctzll(hits) + 1 - t->f, t->f,
                     fp);
}

/* Replace one `old` in the first of the two buckets that has it. If a bucket is
 * a word, there is no branch on which one that is. */
static inline __attribute__((always_inline)) bool
bly_cuckoo_exchange_either(const bly_cuckoo_table *t, bly_cuckoo_key key,
                           uint32_t old, uint32_t fp, bool single)
{
    if (!single)
        return bly_cuckoo_exchange(t, key.at1, old, fp) ||
               bly_cuckoo_exchange(t, key.at2, old, fp);
    const uint64_t in1 = bly_cuckoo_match(t, key.at1, old, false, true);
    const uint64_t in2 = bly_cuckoo_match(t, key.at2, old, false, true);
    /* All ones if the first bucket has none: selects hits and bucket alike. */
    const uint64_t second = -(uint64_t)!in1;
    const uint64_t hits = in1 | (in2 & second);
    if (!hits)
        return false;
    const uint64_t bit = key.at1 ^ ((key.at1 ^ key.at2) & second);
    bly_cuckoo_put(t, bit, hits, fp);
    return true;
}

/* Store a copy of key; false where there is no room. `single` as above, and
 * not sorted. */
static inline __attribute__((always_inline)) bool
bly_cuckoo_place(const bly_cuckoo_table *t, bly_cuckoo_key key, bool single)
{
    return bly_cuckoo_exchange_either(t, key, 0, key.fp, single) ||
           bly_cuckoo_squeeze(t, key);
}

/* Take a copy of key out; false where there is none. */
static inline __attribute__((always_inline)) bool
bly_cuckoo_take(const bly_cuckoo_table *t, bly_cuckoo_key key, bool single)
{
    return bly_cuckoo_exchange_either(t, key, key.fp, 0, single);
}

/* Are both buckets full of this one fingerprint? */
bool bly_cuckoo_all_copies(const bly_cuckoo_table *t, bly_cuckoo_key key);

/* Is every bucket in the one form in which it is written? *nstored is then
 * the number of fingerprints. */
bool bly_cuckoo_check(const bly_cuckoo_table *t, uint64_t *nstored);

/* ----------------------------------------------------------------- stream */

/* Keys are located once and wait in a ring while their buckets are fetched:
 * into L2 early, since a processor can have many such fetches under way, and
 * into L1 shortly before use, since it can have few of these. */
#define BLY_CUCKOO_RING 128
#define BLY_CUCKOO_FAR 96
#define BLY_CUCKOO_NEAR 10
#define BLY_CUCKOO_CACHED (256 << 10) /* gains nothing: fits any L2 */

typedef struct bly_cuckoo_stream {
    const uint64_t *h;
    size_t n;
    bool ahead;
    bly_cuckoo_locate_fn *locate; /* eight keys; NULL: one by one */
    uint64_t at1[BLY_CUCKOO_RING], at2[BLY_CUCKOO_RING], fp[BLY_CUCKOO_RING];
} bly_cuckoo_stream;

static inline const unsigned char *bly_cuckoo_at(const bly_cuckoo_table *t,
                                                 uint64_t bit)
{
    return t->data + (bit >> 3);
}

/* Prefetch for the ring's entry i: the cache line that lies `bit` bits and
 * `byte` bytes behind the beginning of its buckets. */
#define BLY_CUCKOO_FETCH(q, t, i, bit, byte, level)                          \
    do {                                                                     \
        const size_t at_ = (i) % BLY_CUCKOO_RING;                            \
        __builtin_prefetch(bly_cuckoo_at(t, (q)->at1[at_] + (bit)) + (byte), \
                           0, level);                                        \
        __builtin_prefetch(bly_cuckoo_at(t, (q)->at2[at_] + (bit)) + (byte), \
                           0, level);                                        \
    } while (0)

/* Locate keys i to i + 7, as far as there are so many; i is a multiple of 8. */
static inline __attribute__((always_inline)) void
bly_cuckoo_enter(bly_cuckoo_stream *q, const bly_cuckoo_table *t, size_t i)
{
    const size_t n = q->n - i < 8 ? q->n - i : 8, to = i % BLY_CUCKOO_RING;
    if (n == 8 && q->locate)
        q->locate(t, q->h + i, q->at1 + to, q->at2 + to, q->fp + to);
    else
        for (size_t j = 0; j < n; j++) {
            const bly_cuckoo_key key = bly_cuckoo_locate(t, q->h[i + j]);
            q->at1[to + j] = key.at1;
            q->at2[to + j] = key.at2;
            q->fp[to + j] = key.fp;
        }
    for (size_t j = 0; q->ahead && j < n; j++)
        BLY_CUCKOO_FETCH(q, t, i + j, 0, 0, 2);
}

static inline void bly_cuckoo_stream_open(bly_cuckoo_stream *q,
                                          const bly_cuckoo_table *t,
                                          const uint64_t *h, size_t n)
{
    q->h = h;
    q->n = n;
    q->ahead = t->nbits / 8 > BLY_CUCKOO_CACHED;
    q->locate =
        n >= 8 && t->nb <= BLY_CUCKOO_EIGHT ? bly_cuckoo_best()->locate : NULL;
    for (size_t i = 0; i < n && i < BLY_CUCKOO_FAR; i += 8)
        bly_cuckoo_enter(q, t, i);
}

static inline __attribute__((always_inline)) bly_cuckoo_key
bly_cuckoo_entry(const bly_cuckoo_stream *q, size_t i)
{
    return (bly_cuckoo_key){ .at1 = q->at1[i % BLY_CUCKOO_RING],
                             .at2 = q->at2[i % BLY_CUCKOO_RING],
                             .fp = (uint32_t)q->fp[i % BLY_CUCKOO_RING] };
}

/* Key number i. Must be called for one key after another. */
static inline __attribute__((always_inline)) bly_cuckoo_key
bly_cuckoo_next(bly_cuckoo_stream *q, const bly_cuckoo_table *t, size_t i)
{
    if (i % 8 == 0 && i + BLY_CUCKOO_FAR < q->n)
        bly_cuckoo_enter(q, t, i + BLY_CUCKOO_FAR);
    if (q->ahead && i + BLY_CUCKOO_NEAR < q->n)
        BLY_CUCKOO_FETCH(q, t, i + BLY_CUCKOO_NEAR, t->width - t->word_bits, 7,
                         3);
    return bly_cuckoo_entry(q, i);
}

/* If the buckets of key number i + SOON are full, others will have to move.
 * Then fetch the buckets to which the first one leads, where the search
 * begins. */
#define BLY_CUCKOO_SOON 3

static inline __attribute__((always_inline)) void
bly_cuckoo_fetch_ways(const bly_cuckoo_stream *q, const bly_cuckoo_table *t,
                      size_t i)
{
    if (!q->ahead || i + BLY_CUCKOO_SOON >= q->n)
        return;
    const bly_cuckoo_key key = bly_cuckoo_entry(q, i + BLY_CUCKOO_SOON);
    uint64_t w = bly_cuckoo_load(t, key.at1);
    if (bly_cuckoo_hits(t, w, 0) | bly_cuckoo_match(t, key.at2, 0, false, true))
        return;
    for (unsigned j = 0; j < t->b; j++, w >>= t->f)
        __builtin_prefetch(bly_cuckoo_at(
            t, bly_cuckoo_other(t, key.at1, (uint32_t)(w & t->nprints))));
}

#endif
