/*
 * cuckoo_table.c - semi-sorted buckets, and the search for room
 *
 * The code of a semi-sorted bucket numbers the multisets a >= b >= c >= d of
 * nibbles by the combinatorial number system: before this one come
 *
 *     C(a+3,4) + C(b+2,3) + C(c+1,2) + d
 *
 * so 0,0,0,0 is 0, 1,0,0,0 is 1, and 15,15,15,15 is 3875. Decoding is a table
 * of 8 KiB. Slots with equal low nibbles are sorted by their higher bits, so
 * that a bucket has only one form, whatever happened before.
 *
 * If both buckets of a fingerprint are full, room is searched for breadth
 * first: each slot of a bucket leads to the other bucket of the fingerprint in
 * it. The first bucket with an empty slot is the end of a shortest path, along
 * which every fingerprint moves one step.
 *
 *     fp -> [ a  b  c  d ]         fp -> [ a  fp c  d ]
 *                v                            v
 *           [ e  f  g  h ]              [ e  f  b  h ]
 *                   v                            v
 *           [ i  0  k  l ]              [ i  g  k  l ]
 *
 * Nothing has moved when the search fails. A shortest path visits no bucket
 * twice (leaving out the loop would make it shorter), so no move undoes
 * another.
 */
#include "engine/cuckoo_table.h"

#include <pthread.h>

/* ------------------------------------------------------------ semi-sorted */

#define CUCKOO_CODES 3876

uint16_t bly_cuckoo_nibbles[4096];

static unsigned cuckoo_code(unsigned a, unsigned b, unsigned c, unsigned d)
{
    /* A product of i consecutive numbers is a multiple of i!, so the divisions
     * are exact. */
    return (a + 3) * (a + 2) * (a + 1) * a / 24 + (b + 2) * (b + 1) * b / 6 +
           (c + 1) * c / 2 + d;
}

static void cuckoo_nibbles_fill(void)
{
    for (unsigned a = 0; a < 16; a++)
        for (unsigned b = 0; b <= a; b++)
            for (unsigned c = 0; c <= b; c++)
                for (unsigned d = 0; d <= c; d++)
                    bly_cuckoo_nibbles[cuckoo_code(a, b, c, d)] =
                        (uint16_t)(a | b << 4 | c << 8 | d << 12);
}

void bly_cuckoo_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* Many threads may open their first filter at the same time, and readers of
     * the table take no lock. */
    pthread_once(&once, cuckoo_nibbles_fill);
}

/* A rotation by four bits, so that no two fingerprints share a rank: largest
 * low nibble first, then largest of the rest, and four fingerprints have one
 * order only. */
static uint32_t cuckoo_rank(uint32_t fp)
{
    return fp << 28 | fp >> 4;
}

static void cuckoo_write_sorted(const bly_cuckoo_table *t, uint64_t bit,
                                const uint32_t *from)
{
    const unsigned high = t->f - 4;
    uint32_t s[4];
    /* Insertion sort, descending: with four slots, of which at most one is new,
     * a cleverer sort gains nothing. */
    for (unsigned j = 0; j < 4; j++) {
        unsigned at = j;
        for (; at && cuckoo_rank(s[at - 1]) < cuckoo_rank(from[j]); at--)
            s[at] = s[at - 1];
        s[at] = from[j];
    }
    bly_cuckoo_store(t, bit, 12,
                     cuckoo_code(s[0] & 15, s[1] & 15, s[2] & 15, s[3] & 15));
    bit += 12;
    /* With f = 4 the code is the whole bucket. */
    if (high)
        for (unsigned j = 0; j < 4; j++, bit += high)
            bly_cuckoo_store(t, bit, high, s[j] >> 4);
}

bool bly_cuckoo_exchange_sorted(const bly_cuckoo_table *t, uint64_t bit,
                                uint32_t old, uint32_t fp)
{
    uint32_t s[4];
    bly_cuckoo_read_sorted(t, bit, s);
    for (unsigned j = 0; j < 4; j++) {
        if (s[j] == old) {
            s[j] = fp;
            cuckoo_write_sorted(t, bit, s);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------- room */

/* Buckets searched before the table counts as full. With four slots per bucket,
 * 500 fill a large table to 0.96, 2000 to 0.97, and no number gets beyond
 * 0.98. */
#define CUCKOO_SEARCH 2000

typedef struct cuckoo_step {
    uint64_t bucket;
    uint32_t parent; /* the step that led here */
    uint32_t print;  /* fingerprint to move here from the parent's bucket */
} cuckoo_step;

/* Move every fingerprint on the path to step `at`, which has room, one step on,
 * and put fp where the first of them was. Steps 0 and 1 are the two buckets of
 * fp. */
static void cuckoo_move(const bly_cuckoo_table *t, const cuckoo_step *way,
                        uint32_t at, uint32_t fp)
{
    /* Backwards, from the empty slot to the start: each fingerprint is written
     * to its new bucket before it is overwritten in the old one. Which of
     * several equal copies gives way does not matter. */
    uint32_t left = 0; /* what has moved out of this bucket */
    for (; at >= 2; at = way[at].parent) {
        bly_cuckoo_exchange(t, way[at].bucket, left, way[at].print);
        left = way[at].print;
    }
    bly_cuckoo_exchange(t, way[at].bucket, left, fp);
}

/* How many buckets at the end of the queue are not looked at yet, while they
 * come into the cache. With more, some are fetched and never needed; with
 * fewer, the search waits for memory. */
#define CUCKOO_LAG 4

bool bly_cuckoo_squeeze(const bly_cuckoo_table *t, bly_cuckoo_key key)
{
    cuckoo_step way[CUCKOO_SEARCH];
    uint32_t n = 2,
             seen = 2; /* in the queue; looked into (the first two are full) */
    /* The queue is never popped: its entries are also the links back to the
     * start. It takes 32 KB of stack. */
    way[0] = (cuckoo_step){ key.at1, 0, 0 };
    way[1] = (cuckoo_step){ key.at2, 0, 0 };
    for (uint32_t at = 0; at < n; at++) {
        const uint64_t from = way[at].bucket;
        uint32_t s[BLY_CUCKOO_MAX_SLOTS];
        bly_cuckoo_read(t, from, s);
        for (uint32_t j = 0; j < t->b && n < CUCKOO_SEARCH; j++) {
            /* A bucket may enter the queue twice. That is harmless: its first
             * entry comes first, and ends the search if there is room. */
            const uint64_t to = bly_cuckoo_other(t, from, s[j]);
            __builtin_prefetch(bly_cuckoo_at(t, to));
            way[n++] = (cuckoo_step){ to, at, s[j] };
        }
        /* Look for room in all but the youngest entries, which are still on
         * their way from memory. But bucket at + 1 is expanded next, so it must
         * be known to be full by then. In this order the first room found is
         * the end of a shortest path. */
        for (; seen < n && (seen + CUCKOO_LAG < n || seen <= at + 1); seen++)
            if (bly_cuckoo_match(t, way[seen].bucket, 0, t->sorted,
                                 t->nwords == 1)) {
                cuckoo_move(t, way, seen, key.fp);
                return true;
            }
    }
    return false;
}

bool bly_cuckoo_all_copies(const bly_cuckoo_table *t, bly_cuckoo_key key)
{
    uint32_t s[2 * BLY_CUCKOO_MAX_SLOTS];
    bly_cuckoo_read(t, key.at1, s);
    bly_cuckoo_read(t, key.at2, s + t->b);
    /* If so, every move from here leads only to the other of the two buckets,
     * and no search will find room, however long. */
    for (unsigned j = 0; j < 2 * t->b; j++)
        if (s[j] != key.fp)
            return false;
    return true;
}

/* --------------------------------------------------------------- checking */

bool bly_cuckoo_check(const bly_cuckoo_table *t, uint64_t *nstored)
{
    *nstored = 0;
    for (uint64_t bit = 0; bit < t->nbits; bit += t->width) {
        uint32_t s[BLY_CUCKOO_MAX_SLOTS];
        bly_cuckoo_read(t, bit, s);
        for (unsigned j = 0; j < t->b; j++)
            *nstored += s[j] != 0;
        if (!t->sorted)
            continue;
        /* Codes beyond the last one read as four zero nibbles, so the order of
         * the slots alone would not betray them. */
        if ((bly_cuckoo_load(t, bit) & 0xfff) >= CUCKOO_CODES)
            return false;
        for (unsigned j = 1; j < 4; j++)
            if (cuckoo_rank(s[j - 1]) < cuckoo_rank(s[j]))
                return false;
    }
    return true;
}

/* ---------------------------------------------------------------- batches */

static inline __attribute__((always_inline)) void
cuckoo_has_body(const bly_cuckoo_table *table, const uint64_t *h, size_t n,
                uint64_t *maybe, bool sorted, bool single)
{
    /* A local copy: its fields stay in registers, whereas a store to maybe
     * might have changed those of *table. */
    const bly_cuckoo_table t = *table;
    bly_cuckoo_stream q;
    bly_cuckoo_stream_open(&q, &t, h, n);
    for (size_t from = 0; from < n; from += 64) {
        const size_t to = n - from < 64 ? n : from + 64;
        uint64_t bits = 0;
        for (size_t i = from; i < to; i++)
            bits |= (uint64_t)bly_cuckoo_has(&t, bly_cuckoo_next(&q, &t, i),
                                             sorted, single)
                    << (i - from);
        maybe[from / 64] |= bits;
    }
}

/* Each call is its own copy of the body, with the branches on the layout
 * decided at compile time. */
void bly_cuckoo_has_portable(const bly_cuckoo_table *t, const uint64_t *h,
                             size_t n, uint64_t *maybe)
{
    if (t->sorted)
        cuckoo_has_body(t, h, n, maybe, true, true);
    else if (bly_cuckoo_single(t))
        cuckoo_has_body(t, h, n, maybe, false, true);
    else
        cuckoo_has_body(t, h, n, maybe, false, false);
}

static inline __attribute__((always_inline)) size_t
cuckoo_add_body(const bly_cuckoo_table *table, const uint64_t *h, size_t n,
                bool single)
{
    const bly_cuckoo_table t = *table;
    bly_cuckoo_stream q;
    size_t i = 0;
    bly_cuckoo_stream_open(&q, &t, h, n);
    for (; i < n; i++) {
        const bly_cuckoo_key key = bly_cuckoo_next(&q, &t, i);
        if (single)
            bly_cuckoo_fetch_ways(&q, &t, i);
        if (!bly_cuckoo_place(&t, key, single))
            break;
    }
    return i;
}

size_t bly_cuckoo_add_portable(const bly_cuckoo_table *t, const uint64_t *h,
                               size_t n)
{
    return bly_cuckoo_single(t) ? cuckoo_add_body(t, h, n, true)
                                : cuckoo_add_body(t, h, n, false);
}

static inline __attribute__((always_inline)) void
cuckoo_remove_body(const bly_cuckoo_table *t, const uint64_t *h, size_t n,
                   bly_status *each, bool single)
{
    bly_cuckoo_stream q;
    bly_cuckoo_stream_open(&q, t, h, n);
    for (size_t i = 0; i < n; i++)
        each[i] = bly_cuckoo_take(t, bly_cuckoo_next(&q, t, i), single)
                      ? BLY_OK
                      : BLY_EABSENT;
}

void bly_cuckoo_remove_portable(const bly_cuckoo_table *t, const uint64_t *h,
                                size_t n, bly_status *each)
{
    if (bly_cuckoo_single(t))
        cuckoo_remove_body(t, h, n, each, true);
    else
        cuckoo_remove_body(t, h, n, each, false);
}

const bly_cuckoo_row bly_cuckoo_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_cuckoo_has_avx512, bly_cuckoo_add_avx512,
      bly_cuckoo_remove_avx512, bly_cuckoo_locate_avx512 },
#endif
    { "portable", 0, bly_cuckoo_has_portable, bly_cuckoo_add_portable,
      bly_cuckoo_remove_portable, NULL },
};

BLY_CHOOSE(cuckoo)
