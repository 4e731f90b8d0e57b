/*
 * few.c - filters of a few keys, in as few bytes as possible
 *
 * n keys are n equations over GF(2) with r bits on the right-hand side, as in
 * ribbon_table.h: the sum of the slots that a key's row selects must be its
 * print. With n slots for n keys, rows of random bits over all of the slots can
 * be solved in 29 of 100 cases (the product of 1 - 2^-i over all i), and with
 * one slot more in 58. So a seed that works is soon found, and the filter has n
 * r bits, which is the minimum for its rate [1].
 *
 *     slots, plane by plane: bit 0 of all m slots, bit 1 of all of them, ...
 *     1 byte:  r in the high half, the seed in the low one
 *
 * m is 8 times the bytes of the slots, divided by r, so it need not be stored.
 * Bits left over from rounding to bytes become slots, which help to solve the
 * system. r = 0 is kept for other forms, and says maybe to all keys.
 *
 * A row has 64 bits. Up to 64 slots it covers all of them. With more it begins
 * anywhere, and the system is a band, which needs more slots than keys: none
 * more up to 100 keys, 0.8 % more at 1,000, 2 % more at 20,000 (measured; with
 * 16 seeds).
 *
 * Example: 35 keys with r = 7 have 245 bits, 31 bytes, and 3.4 seeds are tried
 * on average. The rate is 0.78 %. A Bloom filter of LevelDB has 45 bytes and,
 * with so few keys, 0.96 %.
 *
 * [1] Dietzfelbinger and Pagh, Succinct Data Structures for Retrieval and
 *     Approximate Membership, 2008
 */
#include <math.h>
#include <string.h>

#include <bloomery/few.h>

#include "core/memory.h"
#include "core/status.h"
#include "engine/ribbon_table.h"

#define FEW_SEEDS 16u
#define FEW_ON_STACK 512 /* slots of systems that need no memory: 5 KB */

/* The row and the right-hand side of a key. */
typedef struct few_key {
    uint64_t row, start;
    unsigned print;
} few_key;

static inline few_key few_key_of(uint64_t hash, unsigned seed, uint64_t m)
{
    /* An odd step: the seeds differ in many bits (that of SplitMix64). */
    const uint64_t u =
        bly_ribbon_hash(hash, seed * UINT64_C(0x9e3779b97f4a7c15));
    const uint64_t row = bly_ribbon_coefficients(u);
    return (few_key){
        .row = m < BLY_RIBBON_ROW ? row & ((UINT64_C(1) << m) - 1) : row,
        .start =
            m > BLY_RIBBON_ROW ? bly_mulhi(u, m - (BLY_RIBBON_ROW - 1)) : 0,
        .print =
            (unsigned)bly_ribbon_print(u) & ((1u << BLY_FEW_MOST_BITS) - 1),
    };
}

/* ------------------------------------------------------------------ asking */

/* The 64 bits from `bit` on of n > 0 bytes; those behind the end are clear. */
static inline uint64_t few_word(const unsigned char *p, size_t n, uint64_t bit)
{
    size_t at = (size_t)(bit >> 3);
    if (n - at > sizeof(uint64_t)) {
        const unsigned shift = bit & 7;
        /* In two steps, since a shift by 64 is undefined. */
        return bly_load64(p + at) >> shift | (uint64_t)p[at + 8]
                                                 << 1 << (63 - shift);
    }
    if (n >= sizeof(uint64_t))
        return bly_load64(p + n - 8) >> (bit - (uint64_t)(n - 8) * 8);
    uint64_t x = 0;
    for (size_t i = n; i-- > at;)
        x = x << 8 | p[i];
    return x >> (bit & 7);
}

bool bly_few_tell(const void *bytes, size_t nbytes, bly_few_facts *out)
{
    const unsigned char *const p = bytes;
    if (!p || nbytes < 2 || !(p[nbytes - 1] >> 4))
        return false;
    const unsigned r = p[nbytes - 1] >> 4;
    const uint64_t m = (uint64_t)(nbytes - 1) * 8 / r;
    if (out)
        *out = (bly_few_facts){ .keys = m, .bits = r };
    return m > 0;
}

bool bly_few_has(const void *bytes, size_t nbytes, uint64_t hash)
{
    bly_few_facts f;
    const unsigned char *const p = bytes;
    if (!bly_few_tell(bytes, nbytes, &f))
        return true;
    const few_key k = few_key_of(hash, p[nbytes - 1] & 15, f.keys);
    uint64_t bit = k.start;
    /* Each plane rules out half of the absent keys, so two planes are read on
     * average. */
    for (unsigned j = 0; j < f.bits; j++, bit += f.keys) {
        const uint64_t sum = few_word(p, nbytes - 1, bit) & k.row;
        if ((unsigned)__builtin_parityll(sum) != (k.print >> j & 1))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- building */

/* Room for a system of some slots. */
typedef struct few_system {
    uint64_t *rows; /* of each slot: 0, or a row whose bit 0 is the slot's */
    uint16_t *prints;
    uint64_t m;
    unsigned r;
} few_system;

/* Enter the rows of all keys, each at the slot of its first 1; false if some of
 * them contradict each other. */
static bool few_solve(few_system *s, const uint64_t *hashes, size_t n,
                      unsigned seed)
{
    const unsigned mask = (1u << s->r) - 1;
    memset(s->rows, 0, (size_t)s->m * sizeof *s->rows);
    for (size_t i = 0; i < n; i++) {
        const few_key k = few_key_of(hashes[i], seed, s->m);
        uint64_t row = k.row, at = k.start;
        unsigned print = k.print & mask;
        while (row && s->rows[at]) {
            row ^= s->rows[at];
            print ^= s->prints[at];
            const unsigned zeros = row ? (unsigned)__builtin_ctzll(row) : 0;
            row >>= zeros;
            at += zeros;
        }
        if (row) {
            s->rows[at] = row;
            s->prints[at] = (uint16_t)print;
        } else if (print) {
            return false;
        }
    }
    return true;
}

/* Write the slots, from the last to the first; `to` is zero. */
static void few_write(const few_system *s, unsigned char *to)
{
    uint64_t behind[BLY_FEW_MOST_BITS] = { 0 }; /* the 64 slots, by plane */
    for (uint64_t i = s->m; i-- > 0;)
        for (unsigned j = 0; j < s->r; j++) {
            const uint64_t x = behind[j] << 1;
            const unsigned bit =
                s->rows[i] ? ((unsigned)__builtin_parityll(x & s->rows[i]) ^
                              s->prints[i] >> j) &
                                 1
                           : 0;
            behind[j] = x | bit;
            const uint64_t at = j * s->m + i;
            to[at >> 3] |= (unsigned char)(bit << (at & 7));
        }
}

/* The number of slots with which some seed works more often than not:
 * measured. */
static uint64_t few_slots(uint64_t n)
{
    const double more =
        (double)n / 200 + fmin((double)n * (double)n / 2.5e6, (double)n / 16);
    return n <= 128 ? n : n + (uint64_t)more;
}

/* How many more to try when none does, up to twice as many plus 64. */
static uint64_t few_step(uint64_t n)
{
    return n / 256 + 1;
}

static size_t few_bytes(uint64_t m, unsigned r)
{
    return (size_t)((m * r + 7) / 8);
}

size_t bly_few_room(size_t n, double bits)
{
    const double r = ceil(bits);
    return bits >= 1 && bits <= BLY_FEW_MOST_BITS
               ? few_bytes(2 * (uint64_t)n + 64, (unsigned)r) + 1
               : 1;
}

double bly_few_bits(double fpr)
{
    if (!(fpr < 0.5))
        return 1;
    if (fpr <= 0x1p-15)
        return BLY_FEW_MOST_BITS;
    /* (1 - s) 2^-r + s 2^-(r + 1) = fpr */
    const double r = floor(-log2(fpr));
    return r + 2 - fpr * exp2(r + 1);
}

/* The width of a filter: one bit more for a share of all filters. */
static unsigned few_width(const uint64_t *hashes, size_t n, double bits)
{
    const unsigned r = (unsigned)bits;
    const uint64_t by = n ? bly_mix64(hashes[0]) : 0;
    return r + ((double)(by >> 11) * 0x1p-53 < bits - r);
}

bly_status bly_few_build(const uint64_t *hashes, size_t n, double bits,
                         void *bytes, size_t room, size_t *nbytes)
{
    if ((!hashes && n) || !bytes || !nbytes)
        return bly_fail_null("hashes, bytes or nbytes");
    if (!(bits >= 1 && bits <= BLY_FEW_MOST_BITS))
        return bly_fail(BLY_EINVAL, "%g bits per key; expected 1 to %d", bits,
                        BLY_FEW_MOST_BITS);
    if (n > BLY_FEW_MOST_KEYS)
        return bly_fail(BLY_EINVAL, "%zu keys are too many here; at most %d", n,
                        BLY_FEW_MOST_KEYS);
    if (room < bly_few_room(n, bits))
        return bly_fail(BLY_EINVAL, "room for %zu bytes, and %zu are needed",
                        room, bly_few_room(n, bits));
    uint64_t rows[FEW_ON_STACK];
    uint16_t prints[FEW_ON_STACK];
    few_system s = { .rows = rows,
                     .prints = prints,
                     .r = few_width(hashes, n, bits) };
    const uint64_t most = 2 * (uint64_t)n + 64;
    const size_t nmore = (size_t)most * (sizeof *rows + sizeof *prints);
    void *more = NULL;
    if (most > FEW_ON_STACK) {
        more = bly_mem_zalloc(&bly_mem_system, nmore);
        if (!more)
            return bly_fail(BLY_ENOMEM, "out of memory");
        s.rows = more;
        s.prints = (uint16_t *)(void *)(s.rows + most);
    }
    unsigned char *const to = bytes;
    to[0] = 0; /* maybe to all keys: if there are none, or nothing works */
    *nbytes = 1;
    for (uint64_t m = few_slots(n); n && *nbytes == 1 && m < most;
         m += few_step(n)) {
        const size_t nslots = few_bytes(m, s.r);
        s.m = (uint64_t)nslots * 8 / s.r;
        for (unsigned seed = 0; seed < FEW_SEEDS && s.m <= most; seed++)
            if (few_solve(&s, hashes, n, seed)) {
                memset(to, 0, nslots);
                few_write(&s, to);
                to[nslots] = (unsigned char)(s.r << 4 | seed);
                *nbytes = nslots + 1;
                break;
            }
    }
    bly_mem_release(&bly_mem_system, more, nmore);
    return BLY_OK;
}
