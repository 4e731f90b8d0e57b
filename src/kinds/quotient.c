/*
 * quotient.c - sorted fingerprints, most of each told by its place
 *
 * The hash is scaled to a fingerprint F of the range M = slots * 2^r. Its
 * quotient, F / 2^r, names a home slot, and only its remainder, r bits, is
 * stored: in the home slot or, where that is taken, behind it. All
 * fingerprints of one quotient form a run, runs follow each other in order of
 * their quotients, so the table is a sorted list with gaps.
 *
 *     block of 64 slots: | offset 8 | occupieds 64 | runends 64 | 64 r bits |
 *
 *     occupieds  bit i: there is a run of quotient i
 *     runends    bit i: a run ends in slot i
 *     offset     slots from here on that hold runs of earlier blocks
 *
 * 2.125 bits a slot tell the quotients: behind the offset, the run of the d-th
 * occupied quotient of a block ends at the d-th runend [2].
 *
 *     slots       0    1    2    3    4    5       F = 1|a 1|c 1|c 2|b 5|a
 *     occupieds   0    1    1    0    0    1
 *     runends     0    0    0    1    1    1
 *     remainders  .    a    c    c    b    a
 *
 * Rate. An absent key is a false positive where its F was stored:
 * 1 - (1 - 1/M)^n, about load / 2^r. One million keys at 1 % take r = 7 and
 * 1,052,672 slots at a load of 0.95: 9.61 bits a key, and the rate is 0.74 %.
 * The number of slots need not be a power of two, since F is scaled and not
 * cut from the hash: no memory is wasted between powers.
 *
 * Counting. A fingerprint that was added c times is stored as
 *
 *     c = 1, 2:  x, xx
 *     c >= 3:    xxx and the digits of c - 3, lowest first
 *
 * where a digit is r - 1 bits below a bit that says whether another follows,
 * and 1 is taken off all but the first, so that every number has one form
 * (with r = 1 that is counting by digits). Fingerprints of a run differ, so
 * three in a row can be nothing else. A count is exact but for keys that share
 * a fingerprint, and so never too low.
 *
 * Without the keys. F is stored whole, so twice the slots with r - 1 bits hold
 * the same fingerprints with the same M (resize), and two tables are merged as
 * sorted lists are.
 *
 * Slots behind the last quotient take what is pushed out at the end: up to
 * 192, which runs of random keys at a load of 0.95 reach past once in 10^8
 * tables. Where they do, or an offset would pass 255, which is rarer still,
 * the filter is full before its time; no key is lost.
 *
 * It is slower than cuckoo, since every addition moves what lies behind it.
 *
 * state[0] slots in use, [1] different fingerprints, [2] additions held.
 *
 * [1] Bender et al., Don't Thrash: How to Cache Your Hash on Flash, 2012
 * [2] Pandey, Bender, Johnson and Patro, A General-Purpose Counting Filter:
 *     Making Every Bit Count, 2017
 * [3] Pagh, Pagh and Rao, An Optimal Bloom Filter Replacement, 2005
 */
#include <math.h>
#include <string.h>

#include "core/bits.h"
#include "core/cpu.h"
#include "core/status.h"
#include "kinds/filter.h"

#define QUOTIENT_BLOCK 64
#define QUOTIENT_META 17  /* bytes of a block before its remainders */
#define QUOTIENT_MAX_R 56 /* with 7 bits before it in its byte: one word */
#define QUOTIENT_MAX_SLOTS (UINT64_C(1) << 40)
#define QUOTIENT_MAX_MEMORY (UINT64_C(1) << 48) /* bits: 32 TiB */
#define QUOTIENT_MAX_OFFSET 255
#define QUOTIENT_LOAD 0.95 /* quotient_most() has it in whole numbers */

enum { QUOTIENT_SLOTS, QUOTIENT_R };
enum { QUOTIENT_USED, QUOTIENT_DISTINCT, QUOTIENT_TOTAL };

static const bly_param quotient_params[] = {
    [QUOTIENT_SLOTS] = { .name = "slots",
                         .type = BLY_UINT,
                         .min = QUOTIENT_BLOCK,
                         .max = (double)QUOTIENT_MAX_SLOTS,
                         .help = "home slots, a multiple of 64" },
    [QUOTIENT_R] = { .name = "remainder",
                     .type = BLY_UINT,
                     .settable = true,
                     .automatic = true,
                     .min = 1,
                     .max = QUOTIENT_MAX_R,
                     .help = "bits stored of a fingerprint (r)" },
};

/* ----------------------------------------------------------------- shapes */

/* Slots behind the last home slot: the sum of n arrivals hardly ever strays
 * from its mean by more than 6 sqrt(n), and at a load of 0.95 the queue has
 * forgotten what was 1000 slots ago. In whole blocks. */
static uint64_t quotient_spare(uint64_t nslots)
{
    return nslots <= 64 ? 64 : nslots <= 448 ? 128 : 192;
}

static uint64_t quotient_nblocks(uint64_t nslots)
{
    return (nslots + quotient_spare(nslots)) / QUOTIENT_BLOCK;
}

static uint64_t quotient_stride(uint64_t r)
{
    return QUOTIENT_META + r * QUOTIENT_BLOCK / 8;
}

/* A remainder is loaded as 8 bytes from the byte of its first bit. */
static uint64_t quotient_nbytes(uint64_t nslots, uint64_t r)
{
    return (quotient_nblocks(nslots) * quotient_stride(r) + 7 + 7) / 8 * 8;
}

static uint64_t quotient_bits(const bly_shape *s)
{
    return 8 * quotient_nblocks(s->p[QUOTIENT_SLOTS]) *
           quotient_stride(s->p[QUOTIENT_R]);
}

/* q + r <= 64: can the hash tell so many fingerprints apart? */
static bool quotient_hash_lasts(uint64_t nslots, uint64_t r)
{
    return nslots <= UINT64_MAX >> r;
}

static bool quotient_sane(const bly_shape *s)
{
    const uint64_t nslots = s->p[QUOTIENT_SLOTS], r = s->p[QUOTIENT_R];
    return nslots >= QUOTIENT_BLOCK && nslots <= QUOTIENT_MAX_SLOTS &&
           nslots % QUOTIENT_BLOCK == 0 && r >= 1 && r <= QUOTIENT_MAX_R &&
           quotient_hash_lasts(nslots, r) &&
           s->nbytes == quotient_nbytes(nslots, r);
}

static bly_shape quotient_shape(uint64_t nslots, uint64_t r)
{
    return (bly_shape){ .p = { [QUOTIENT_SLOTS] = nslots, [QUOTIENT_R] = r },
                        .nbytes = quotient_nbytes(nslots, r) };
}

/* M, the number of fingerprints. */
static double quotient_range(const bly_shape *s)
{
    return ldexp((double)s->p[QUOTIENT_SLOTS], (int)s->p[QUOTIENT_R]);
}

static double quotient_rate(const bly_shape *s, double n)
{
    return -expm1(n * log1p(-1 / quotient_range(s)));
}

/* Slots in use above which nothing is added. */
static uint64_t quotient_most(uint64_t nslots)
{
    return nslots - nslots / 20 - (nslots % 20 != 0); /* on any machine */
}

/* Home slots for n keys. A fingerprint of three keys takes four slots; there
 * are n (load / 2^r)^2 / 6 of them, which is much for small r only. */
static double quotient_slots_for(double n, uint64_t r)
{
    const double lambda = ldexp(QUOTIENT_LOAD, -(int)r);
    const double used = n * (1 + lambda * lambda / 4) + 1;
    return ceil(used / QUOTIENT_LOAD / QUOTIENT_BLOCK) * QUOTIENT_BLOCK;
}

/* The most home slots in so many bits; 0: none. */
static uint64_t quotient_slots_in(uint64_t bits, uint64_t r)
{
    uint64_t nblocks = bits / 8 / quotient_stride(r);
    if (nblocks > QUOTIENT_MAX_SLOTS / QUOTIENT_BLOCK)
        nblocks = QUOTIENT_MAX_SLOTS / QUOTIENT_BLOCK;
    for (uint64_t n = nblocks; n + 4 > nblocks && n > 0; n--)
        if (quotient_nblocks(n * QUOTIENT_BLOCK) <= nblocks)
            return n * QUOTIENT_BLOCK;
    return 0;
}

/* Home slots for w with remainders of r bits; 0: none will do. */
static uint64_t quotient_fit(const bly_want *w, uint64_t r)
{
    const double n = (double)w->items, least = quotient_slots_for(n, r);
    double nslots = least;
    if (w->bits) {
        /* More than the hash can tell apart is left unused. */
        const uint64_t last = (UINT64_MAX >> r) / QUOTIENT_BLOCK;
        nslots = fmin((double)quotient_slots_in(w->bits, r),
                      (double)(last * QUOTIENT_BLOCK));
    } else {
        const double range = n / -log1p(-w->fpr);
        const double want = ceil(ldexp(range, -(int)r) / QUOTIENT_BLOCK + 1e-9);
        nslots = fmax(nslots, want * QUOTIENT_BLOCK);
    }
    return nslots >= least && nslots <= (double)QUOTIENT_MAX_SLOTS &&
                   quotient_hash_lasts((uint64_t)nslots, r)
               ? (uint64_t)nslots
               : 0;
}

static bly_status quotient_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t only = w->opt[QUOTIENT_R];
    double best = INFINITY; /* bits where the rate is given, else the rate */
    if (w->bits > QUOTIENT_MAX_MEMORY)
        return bly_fail(BLY_ERANGE, "a quotient filter has at most 2^48 bits");
    for (uint64_t r = only ? only : 1; r <= (only ? only : QUOTIENT_MAX_R);
         r++) {
        const uint64_t nslots = quotient_fit(w, r);
        if (!nslots)
            continue;
        const bly_shape s = quotient_shape(nslots, r);
        const double cost = w->bits ? quotient_rate(&s, (double)w->items)
                                    : (double)quotient_bits(&s);
        if (cost < best) {
            best = cost;
            *out = s;
        }
    }
    if (best < INFINITY)
        return BLY_OK;
    if (w->bits)
        return bly_fail(BLY_EINVAL, "%llu bits do not do for %llu items%s",
                        (unsigned long long)w->bits,
                        (unsigned long long)w->items,
                        only ? " with remainders of that size"
                             : " of at least one bit and 2.125 more");
    return bly_fail(only ? BLY_EINVAL : BLY_ERANGE,
                    "the slots' number and the remainder do not fit into 64 "
                    "bits: ask for fewer items, a higher rate or a shorter "
                    "remainder");
}

static void quotient_describe(const bly_shape *s, const bly_want *w,
                              const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    bly_fact_real(out, "fingerprint_bits", log2(quotient_range(s)));
    bly_fact_real(out, "load_at_capacity", n / (double)s->p[QUOTIENT_SLOTS]);
    bly_fact_uint(out, "room", quotient_most(s->p[QUOTIENT_SLOTS]));
    if (f) {
        bly_fact_uint(out, "fingerprints", f->state[QUOTIENT_DISTINCT]);
        bly_fact_uint(out, "additions_held", f->state[QUOTIENT_TOTAL]);
    }
}

/* ----------------------------------------------------------------- blocks */

typedef struct quotient_table {
    unsigned char *data;
    uint64_t nblocks, range, mask, stride;
    unsigned r;
} quotient_table;

static quotient_table quotient_table_of(const bly_filter *f)
{
    const uint64_t r = f->shape.p[QUOTIENT_R];
    return (quotient_table){
        .data = f->data,
        .nblocks = quotient_nblocks(f->shape.p[QUOTIENT_SLOTS]),
        .range = f->shape.p[QUOTIENT_SLOTS] << r,
        .mask = (UINT64_C(1) << r) - 1,
        .stride = quotient_stride(r),
        .r = (unsigned)r,
    };
}

/* Always inlined: what is called with a literal or within a variant for a
 * processor must become part of it. */
#define QUOTIENT_INLINE static inline __attribute__((always_inline))

QUOTIENT_INLINE uint64_t quotient_load(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return bly_le64(word);
}

QUOTIENT_INLINE void quotient_store(unsigned char *p, uint64_t word)
{
    word = bly_le64(word);
    memcpy(p, &word, sizeof word);
}

QUOTIENT_INLINE unsigned char *quotient_block(const quotient_table *t,
                                              uint64_t j)
{
    return t->data + j * t->stride;
}

QUOTIENT_INLINE unsigned char *quotient_occupieds(const quotient_table *t,
                                                  uint64_t j)
{
    return quotient_block(t, j) + 1;
}

QUOTIENT_INLINE unsigned char *quotient_runends(const quotient_table *t,
                                                uint64_t j)
{
    return quotient_block(t, j) + 9;
}

QUOTIENT_INLINE uint64_t quotient_get(const quotient_table *t, uint64_t slot)
{
    const unsigned bit = (unsigned)(slot % QUOTIENT_BLOCK) * t->r;
    const unsigned char *p =
        quotient_block(t, slot / QUOTIENT_BLOCK) + QUOTIENT_META;
    return quotient_load(p + bit / 8) >> bit % 8 & t->mask;
}

QUOTIENT_INLINE void quotient_set(const quotient_table *t, uint64_t slot,
                                  uint64_t value)
{
    const unsigned bit = (unsigned)(slot % QUOTIENT_BLOCK) * t->r;
    unsigned char *p =
        quotient_block(t, slot / QUOTIENT_BLOCK) + QUOTIENT_META + bit / 8;
    const uint64_t word = quotient_load(p);
    quotient_store(p, (word & ~(t->mask << bit % 8)) | value << bit % 8);
}

QUOTIENT_INLINE void quotient_mark(unsigned char *word, uint64_t i, bool on)
{
    const uint64_t bit = UINT64_C(1) << i % 64, old = quotient_load(word);
    quotient_store(word, on ? old | bit : old & ~bit);
}

/* Bits 0 to i. */
QUOTIENT_INLINE uint64_t quotient_through(uint64_t i)
{
    return UINT64_MAX >> (63 - i % 64);
}

/* The place of the k-th one of x, from 0, which must exist. Sums of ones by
 * bytes, then the byte in which the k-th is, then bit by bit. */
QUOTIENT_INLINE unsigned quotient_select(uint64_t x, unsigned k)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    uint64_t sums = x - (x >> 1 & UINT64_C(0x5555555555555555));
    sums = (sums & UINT64_C(0x3333333333333333)) +
           (sums >> 2 & UINT64_C(0x3333333333333333));
    sums = ((sums + (sums >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f)) * ones;
    const uint64_t before = ((k * ones | highs) - sums) & highs;
    const unsigned at = (unsigned)((before >> 7) * ones >> 56) * 8;
    unsigned left = k - (unsigned)((sums << 8) >> at & 0xff);
    uint64_t byte = x >> at;
    for (; left; left--)
        byte &= byte - 1;
    return at + (unsigned)__builtin_ctzll(byte);
}

#define QUOTIENT_NOWHERE UINT64_MAX

/* The d-th runend, from 1, at or behind `from`, of a quotient of block j: at
 * most an offset behind the end of its block. In a damaged table it may not
 * exist. */
QUOTIENT_INLINE uint64_t quotient_nth_end(const quotient_table *t, uint64_t j,
                                          uint64_t from, unsigned d)
{
    const uint64_t far = j + 2 + QUOTIENT_MAX_OFFSET / QUOTIENT_BLOCK;
    uint64_t i = from / QUOTIENT_BLOCK, hide = UINT64_MAX << from % 64;
    for (; i < t->nblocks && i <= far; i++, hide = UINT64_MAX) {
        const uint64_t ends = quotient_load(quotient_runends(t, i)) & hide;
        const unsigned n = (unsigned)__builtin_popcountll(ends);
        if (d <= n)
            return i * QUOTIENT_BLOCK + quotient_select(ends, d - 1);
        d -= n;
    }
    return QUOTIENT_NOWHERE;
}

/* The slot behind the last run of quotients up to x; at most x where there is
 * none, so slot x is empty exactly if this is not above x. */
QUOTIENT_INLINE uint64_t quotient_upto(const quotient_table *t, uint64_t x)
{
    const uint64_t j = x / QUOTIENT_BLOCK;
    const uint64_t from = j * QUOTIENT_BLOCK + *quotient_block(t, j);
    const uint64_t ours =
        quotient_load(quotient_occupieds(t, j)) & quotient_through(x);
    if (!ours)
        return from;
    return quotient_nth_end(t, j, from, (unsigned)__builtin_popcountll(ours)) +
           1;
}

QUOTIENT_INLINE uint64_t quotient_empty_from(const quotient_table *t,
                                             uint64_t slot)
{
    while (slot < t->nblocks * QUOTIENT_BLOCK) {
        const uint64_t next = quotient_upto(t, slot);
        if (next <= slot)
            break;
        slot = next;
    }
    return slot;
}

/* The run of quotient q, if it has one. */
typedef struct quotient_run {
    uint64_t start, end; /* first and last slot */
} quotient_run;

QUOTIENT_INLINE bool quotient_find_run(const quotient_table *t, uint64_t q,
                                       quotient_run *run)
{
    const uint64_t j = q / QUOTIENT_BLOCK;
    const uint64_t occupieds = quotient_load(quotient_occupieds(t, j));
    if (!(occupieds >> q % 64 & 1))
        return false;
    const uint64_t from = j * QUOTIENT_BLOCK + *quotient_block(t, j);
    const unsigned d =
        (unsigned)__builtin_popcountll(occupieds & quotient_through(q));
    run->end = quotient_nth_end(t, j, from, d);
    run->start = from > q ? from : q;
    if (run->end == QUOTIENT_NOWHERE || run->end < run->start)
        return false;
    /* Behind the run before, if that ends behind `start`. */
    uint64_t i = run->end / QUOTIENT_BLOCK;
    uint64_t ends =
        quotient_load(quotient_runends(t, i)) & quotient_through(run->end) >> 1;
    while (!ends && i > run->start / QUOTIENT_BLOCK)
        ends = quotient_load(quotient_runends(t, --i));
    if (ends) {
        const uint64_t last =
            i * QUOTIENT_BLOCK + 63 - (unsigned)__builtin_clzll(ends);
        if (last >= run->start)
            run->start = last + 1;
    }
    return true;
}

/* ---------------------------------------------------------------- entries */

/* A count that no counter passes: what is added to it cannot wrap. */
#define QUOTIENT_MAX_COUNT (UINT64_C(1) << 62)
/* Digits of such a count with r = 2 and the three before them. More, which
 * only r = 1 can want, is refused. */
#define QUOTIENT_MAX_ENTRY 68

typedef struct quotient_entry {
    uint64_t remainder, count;
    uint64_t at;  /* its first slot */
    unsigned len; /* its slots */
} quotient_entry;

/* The entry at slot `at` of a run. */
QUOTIENT_INLINE quotient_entry quotient_parse(const quotient_table *t,
                                              uint64_t at, uint64_t end)
{
    quotient_entry e = { quotient_get(t, at), 1, at, 1 };
    while (e.len < 3 && at + e.len <= end &&
           quotient_get(t, at + e.len) == e.remainder)
        e.len++;
    e.count = e.len;
    if (e.len < 3)
        return e;
    const unsigned shift = t->r - 1;
    const uint64_t more = UINT64_C(1) << shift;
    uint64_t digit, place = 0; /* log2 of what the digit is worth */
    do {
        if (at + e.len > end)
            break; /* damaged */
        digit = quotient_get(t, at + e.len);
        const uint64_t value = (digit & (more - 1)) + (e.len > 3);
        if (place < 62 && value <= QUOTIENT_MAX_COUNT >> place)
            e.count += value << place;
        else
            e.count = QUOTIENT_MAX_COUNT;
        if (e.count > QUOTIENT_MAX_COUNT)
            e.count = QUOTIENT_MAX_COUNT;
        place += shift;
        e.len++;
    } while (digit & more);
    return e;
}

/* The entry of this remainder, or where it would be, with a count of 0. */
QUOTIENT_INLINE quotient_entry quotient_find(const quotient_table *t,
                                             const quotient_run *run,
                                             uint64_t remainder)
{
    uint64_t at = run->start;
    while (at <= run->end) {
        const quotient_entry e = quotient_parse(t, at, run->end);
        if (e.remainder == remainder)
            return e;
        if (e.remainder > remainder)
            break;
        at += e.len;
    }
    return (quotient_entry){ .remainder = remainder, .at = at };
}

/* The slots of an entry; their number, or 0 where there would be too many. */
static unsigned quotient_encode(unsigned r, uint64_t remainder, uint64_t count,
                                uint64_t slots[QUOTIENT_MAX_ENTRY])
{
    const unsigned shift = r - 1;
    const uint64_t more = UINT64_C(1) << shift;
    unsigned n = 0;
    for (; n < 3 && n < count; n++)
        slots[n] = remainder;
    if (count < 3)
        return n;
    uint64_t rest = count - 3;
    for (;;) {
        if (n == QUOTIENT_MAX_ENTRY)
            return 0;
        slots[n++] = rest & (more - 1);
        rest >>= shift;
        if (!rest)
            return n;
        slots[n - 1] |= more;
        rest--;
    }
}

/* --------------------------------------------------------------- shifting */

/* Within the r words of a block: slots a .. b-1 one up, or slots a+1 .. b one
 * down. Bits outside the places they come to stay as they are. */
static inline void quotient_block_up(unsigned char *words, unsigned r,
                                     unsigned a, unsigned b)
{
    const unsigned low = (a + 1) * r, high = (b + 1) * r;
    if (a >= b)
        return;
    for (unsigned w = (high - 1) / 64 + 1; w-- > low / 64;) {
        const uint64_t here = quotient_load(words + 8 * w);
        const uint64_t below = w ? quotient_load(words + 8 * (w - 1)) : 0;
        const uint64_t moved = here << r | below >> (64 - r);
        uint64_t mask = UINT64_MAX;
        if (w == low / 64)
            mask &= UINT64_MAX << low % 64;
        if (w == (high - 1) / 64)
            mask &= quotient_through(high - 1);
        quotient_store(words + 8 * w, (here & ~mask) | (moved & mask));
    }
}

static inline void quotient_block_down(unsigned char *words, unsigned r,
                                       unsigned a, unsigned b)
{
    const unsigned low = a * r, high = b * r;
    if (a >= b)
        return;
    for (unsigned w = low / 64; w <= (high - 1) / 64; w++) {
        const uint64_t here = quotient_load(words + 8 * w);
        const uint64_t above =
            w + 1 < r ? quotient_load(words + 8 * (w + 1)) : 0;
        const uint64_t moved = here >> r | above << (64 - r);
        uint64_t mask = UINT64_MAX;
        if (w == low / 64)
            mask &= UINT64_MAX << low % 64;
        if (w == (high - 1) / 64)
            mask &= quotient_through(high - 1);
        quotient_store(words + 8 * w, (here & ~mask) | (moved & mask));
    }
}

/* Slots from .. empty-1 move to from+1 .. empty, runends with them; slot
 * `from` is then free, and its runend clear. */
static void quotient_shift_up(const quotient_table *t, uint64_t from,
                              uint64_t empty)
{
    for (uint64_t j = empty / QUOTIENT_BLOCK;; j--) {
        const bool first = j == from / QUOTIENT_BLOCK;
        const unsigned a = first ? (unsigned)(from % 64) : 0;
        const unsigned b =
            j == empty / QUOTIENT_BLOCK ? (unsigned)(empty % 64) : 63;
        quotient_block_up(quotient_block(t, j) + QUOTIENT_META, t->r, a, b);
        const uint64_t ends = quotient_load(quotient_runends(t, j));
        const uint64_t span = (UINT64_MAX << a) & quotient_through(b);
        uint64_t moved = (ends & span) << 1 & span;
        if (!first) {
            quotient_set(t, j * QUOTIENT_BLOCK,
                         quotient_get(t, j * QUOTIENT_BLOCK - 1));
            moved |= quotient_load(quotient_runends(t, j - 1)) >> 63;
        }
        quotient_store(quotient_runends(t, j), (ends & ~span) | moved);
        if (first)
            return;
    }
}

/* Slots at+1 .. end-1 move to at .. end-2, runends with them; slot end-1 is
 * then empty. */
static void quotient_shift_down(const quotient_table *t, uint64_t at,
                                uint64_t end)
{
    const uint64_t last = end - 1;
    for (uint64_t j = at / QUOTIENT_BLOCK; j <= last / QUOTIENT_BLOCK; j++) {
        const unsigned a = j == at / QUOTIENT_BLOCK ? (unsigned)(at % 64) : 0;
        const bool final = j == last / QUOTIENT_BLOCK;
        const unsigned b = final ? (unsigned)(last % 64) : 63;
        quotient_block_down(quotient_block(t, j) + QUOTIENT_META, t->r, a, b);
        const uint64_t ends = quotient_load(quotient_runends(t, j));
        const uint64_t span = (UINT64_MAX << a) & quotient_through(b);
        uint64_t moved = (ends & span) >> 1 & span;
        uint64_t carried = 0;
        if (!final) {
            const uint64_t next = (j + 1) * QUOTIENT_BLOCK;
            carried = quotient_get(t, next);
            moved |= quotient_load(quotient_runends(t, j + 1)) << 63;
        }
        quotient_set(t, j * QUOTIENT_BLOCK + b, carried);
        quotient_store(quotient_runends(t, j), (ends & ~span) | moved);
    }
}

/* --------------------------------------------------------------- changing */

/* Make n free slots at `at`, in the run of quotient q; false, and nothing has
 * changed, where there is no room. Their runends are clear. */
QUOTIENT_INLINE bool quotient_open_slots(const quotient_table *t, uint64_t q,
                                         uint64_t at, unsigned n)
{
    const uint64_t nslots = t->nblocks * QUOTIENT_BLOCK;
    uint64_t empty[QUOTIENT_MAX_ENTRY], from = at;
    for (unsigned i = 0; i < n; i++) {
        empty[i] = quotient_empty_from(t, from);
        if (empty[i] >= nslots)
            return false;
        from = empty[i] + 1;
    }
    /* Everyone whose quotient is before a block, and who lies in it or was
     * pushed into it, moves on by as many slots as were filled behind. */
    const uint64_t first = q / QUOTIENT_BLOCK + 1;
    for (int change = 0; change < 2; change++) {
        unsigned i = 0;
        for (uint64_t j = first; j * QUOTIENT_BLOCK <= empty[n - 1]; j++) {
            unsigned char *offset = quotient_block(t, j);
            while (empty[i] < j * QUOTIENT_BLOCK)
                i++;
            if (change)
                *offset = (unsigned char)(*offset + (n - i));
            else if (*offset + (n - i) > QUOTIENT_MAX_OFFSET)
                return false;
        }
    }
    for (unsigned i = 0; i < n; i++)
        quotient_shift_up(t, at, empty[i]);
    return true;
}

/* Take slot `at` out of the run of quotient q, which ends in slot `end`. */
QUOTIENT_INLINE void quotient_close_slot(const quotient_table *t, uint64_t q,
                                         uint64_t at, const quotient_run *run)
{
    /* All that lies behind moves down, up to an empty slot or one that holds
     * the first of its own run. */
    uint64_t end = run->end + 1, next;
    while ((next = quotient_upto(t, end - 1)) > end)
        end = next;
    quotient_shift_down(t, at, end);
    if (run->start == run->end)
        quotient_mark(quotient_occupieds(t, q / QUOTIENT_BLOCK), q, false);
    else if (at == run->end)
        quotient_mark(quotient_runends(t, (at - 1) / QUOTIENT_BLOCK), at - 1,
                      true);
    for (uint64_t j = q / QUOTIENT_BLOCK + 1; j * QUOTIENT_BLOCK < end; j++)
        --*quotient_block(t, j);
}

/* Add fingerprint F `by` times. *known: it was there. */
QUOTIENT_INLINE bly_status quotient_put(bly_filter *f, const quotient_table *t,
                                        uint64_t F, uint64_t by, bool *known)
{
    const uint64_t q = F >> t->r, remainder = F & t->mask;
    uint64_t slots[QUOTIENT_MAX_ENTRY];
    quotient_run run = { 0, 0 };
    quotient_entry e = { .remainder = remainder };
    const bool there = quotient_find_run(t, q, &run);
    if (there) {
        e = quotient_find(t, &run, remainder);
    } else {
        const uint64_t behind = quotient_upto(t, q);
        e.at = behind > q ? behind : q;
    }
    if (by > QUOTIENT_MAX_COUNT - e.count)
        return bly_fail(BLY_ERANGE, "a count is at most 2^62");
    const unsigned len = quotient_encode(t->r, remainder, e.count + by, slots);
    if (!len)
        return bly_fail(BLY_EFULL, "remainders of one bit cannot count so far");
    const unsigned more = len - e.len;
    if (f->state[QUOTIENT_USED] + more >
        quotient_most(f->shape.p[QUOTIENT_SLOTS]))
        return bly_fail(BLY_EFULL,
                        "the filter is full with %llu fingerprints in %llu "
                        "slots (resize it, or build it larger)",
                        (unsigned long long)f->state[QUOTIENT_DISTINCT],
                        (unsigned long long)f->state[QUOTIENT_USED]);
    if (more) {
        const uint64_t from = e.at + e.len;
        if (!quotient_open_slots(t, q, from, more))
            return bly_fail(BLY_EFULL,
                            "the filter is full: too many keys in one place "
                            "(resize it, or build it larger)");
        if (!there)
            quotient_mark(quotient_occupieds(t, q / QUOTIENT_BLOCK), q, true);
        if (!there || from == run.end + 1) {
            const uint64_t end = from + more - 1;
            if (there)
                quotient_mark(quotient_runends(t, run.end / QUOTIENT_BLOCK),
                              run.end, false);
            quotient_mark(quotient_runends(t, end / QUOTIENT_BLOCK), end, true);
        }
    }
    for (unsigned i = 0; i < len; i++)
        quotient_set(t, e.at + i, slots[i]);
    f->state[QUOTIENT_USED] += more;
    f->state[QUOTIENT_DISTINCT] += e.count == 0;
    f->state[QUOTIENT_TOTAL] += by;
    *known = e.count != 0;
    return BLY_OK;
}

/* Take one of fingerprint F. */
QUOTIENT_INLINE bool quotient_take(bly_filter *f, const quotient_table *t,
                                   uint64_t F)
{
    const uint64_t q = F >> t->r;
    uint64_t slots[QUOTIENT_MAX_ENTRY];
    quotient_run run;
    if (!quotient_find_run(t, q, &run))
        return false;
    const quotient_entry e = quotient_find(t, &run, F & t->mask);
    if (!e.count)
        return false;
    const unsigned len = quotient_encode(t->r, e.remainder, e.count - 1, slots);
    for (unsigned i = len; i < e.len; i++, run.end--)
        quotient_close_slot(t, q, e.at + len, &run);
    for (unsigned i = 0; i < len; i++)
        quotient_set(t, e.at + i, slots[i]);
    f->state[QUOTIENT_USED] -= e.len - len;
    f->state[QUOTIENT_DISTINCT] -= e.count == 1;
    f->state[QUOTIENT_TOTAL]--;
    return true;
}

/* ---------------------------------------------------------------- batches */

#define QUOTIENT_FAR 48
#define QUOTIENT_NEAR 8

/* Fetch the block of h: its head, and the remainders near the home slot. */
QUOTIENT_INLINE void quotient_fetch(const quotient_table *t, uint64_t h,
                                    bool near)
{
    const uint64_t q = bly_scale(h, t->range) >> t->r;
    const unsigned char *block = quotient_block(t, q / QUOTIENT_BLOCK);
    const unsigned char *home = block + QUOTIENT_META + q % 64 * t->r / 8;
    if (near) {
        __builtin_prefetch(block, 0, 3);
        __builtin_prefetch(block + QUOTIENT_META - 1, 0, 3);
        __builtin_prefetch(home + 8, 0, 3);
    } else {
        __builtin_prefetch(block, 0, 2);
        __builtin_prefetch(block + QUOTIENT_META - 1, 0, 2);
        __builtin_prefetch(home + 8, 0, 2);
    }
}

QUOTIENT_INLINE void quotient_ahead(const quotient_table *t, const uint64_t *h,
                                    size_t i, size_t n)
{
    if (i == 0)
        for (size_t k = 0; k < n && k < QUOTIENT_FAR; k++)
            quotient_fetch(t, h[k], false);
    if (i + QUOTIENT_FAR < n)
        quotient_fetch(t, h[i + QUOTIENT_FAR], false);
    if (i + QUOTIENT_NEAR < n)
        quotient_fetch(t, h[i + QUOTIENT_NEAR], true);
}

QUOTIENT_INLINE uint64_t quotient_count_one(const quotient_table *t, uint64_t h)
{
    const uint64_t F = bly_scale(h, t->range);
    quotient_run run;
    if (!quotient_find_run(t, F >> t->r, &run))
        return 0;
    return quotient_find(t, &run, F & t->mask).count;
}

QUOTIENT_INLINE void quotient_has_body(const bly_filter *f, const uint64_t *h,
                                       size_t n, uint64_t *maybe)
{
    const quotient_table t = quotient_table_of(f);
    for (size_t from = 0; from < n; from += 64) {
        const size_t to = n - from < 64 ? n : from + 64;
        uint64_t bits = 0;
        for (size_t i = from; i < to; i++) {
            quotient_ahead(&t, h, i, n);
            bits |= (uint64_t)(quotient_count_one(&t, h[i]) != 0) << (i - from);
        }
        maybe[from / 64] = bits;
    }
}

/* by: NULL is 1 for each. */
QUOTIENT_INLINE bly_status quotient_add_body(bly_filter *f, const uint64_t *h,
                                             const uint64_t *by, size_t n,
                                             uint64_t *fresh, size_t *ndone)
{
    const quotient_table t = quotient_table_of(f);
    bly_status st = BLY_OK;
    uint64_t nadded = 0;
    size_t i = 0;
    for (; i < n; i++) {
        bool known = true;
        quotient_ahead(&t, h, i, n);
        if (!by || by[i])
            st = quotient_put(f, &t, bly_scale(h[i], t.range), by ? by[i] : 1,
                              &known);
        if (st)
            break;
        nadded += by ? by[i] : 1;
        if (fresh)
            fresh[i / 64] |= (uint64_t)!known << i % 64;
    }
    bly_filter_added(f, nadded);
    *ndone = i;
    return st;
}

QUOTIENT_INLINE void quotient_remove_body(bly_filter *f, const uint64_t *h,
                                          size_t n, bly_status *each)
{
    const quotient_table t = quotient_table_of(f);
    for (size_t i = 0; i < n; i++) {
        quotient_ahead(&t, h, i, n);
        each[i] = quotient_take(f, &t, bly_scale(h[i], t.range)) ? BLY_OK
                                                                 : BLY_EABSENT;
    }
}

/* The same bodies twice: with an instruction that counts ones, and without. */
#if BLY_X86
#define QUOTIENT_POPCNT __attribute__((target("popcnt"))) static
QUOTIENT_POPCNT void quotient_has_popcnt(const bly_filter *f, const uint64_t *h,
                                         size_t n, uint64_t *maybe)
{
    quotient_has_body(f, h, n, maybe);
}

QUOTIENT_POPCNT bly_status quotient_add_popcnt(bly_filter *f, const uint64_t *h,
                                               const uint64_t *by, size_t n,
                                               uint64_t *fresh, size_t *ndone)
{
    return quotient_add_body(f, h, by, n, fresh, ndone);
}

QUOTIENT_POPCNT void quotient_remove_popcnt(bly_filter *f, const uint64_t *h,
                                            size_t n, bly_status *each)
{
    quotient_remove_body(f, h, n, each);
}
#endif

static void quotient_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
#if BLY_X86
    if (bly_cpu_features() & BLY_CPU_POPCNT) {
        quotient_has_popcnt(f, h, n, maybe);
        return;
    }
#endif
    quotient_has_body(f, h, n, maybe);
}

static bly_status quotient_add_by(bly_filter *f, const uint64_t *h,
                                  const uint64_t *by, size_t n, uint64_t *fresh,
                                  size_t *ndone)
{
#if BLY_X86
    if (bly_cpu_features() & BLY_CPU_POPCNT)
        return quotient_add_popcnt(f, h, by, n, fresh, ndone);
#endif
    return quotient_add_body(f, h, by, n, fresh, ndone);
}

static bly_status quotient_add(bly_filter *f, const uint64_t *h, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
    return quotient_add_by(f, h, NULL, n, fresh, ndone);
}

static bly_status quotient_increase(bly_filter *f, const uint64_t *h,
                                    const uint64_t *by, size_t n, size_t *ndone)
{
    return quotient_add_by(f, h, by, n, NULL, ndone);
}

static void quotient_remove(bly_filter *f, const uint64_t *h, size_t n,
                            bly_status *each)
{
#if BLY_X86
    if (bly_cpu_features() & BLY_CPU_POPCNT) {
        quotient_remove_popcnt(f, h, n, each);
        return;
    }
#endif
    quotient_remove_body(f, h, n, each);
}

static void quotient_count(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *counts)
{
    const quotient_table t = quotient_table_of(f);
    for (size_t i = 0; i < n; i++) {
        quotient_ahead(&t, h, i, n);
        counts[i] = quotient_count_one(&t, h[i]);
    }
}

/* -------------------------------------------------- from first to last */

/* Walks the entries in order of their fingerprints. In a damaged table it may
 * see nonsense, in order and not more than there are slots. */
typedef struct quotient_walk {
    quotient_table t;
    uint64_t block, occupieds; /* quotients still to come in this block */
    uint64_t q, at, end;       /* within a run while at <= end */
    bool inside;
    uint64_t F, count; /* what was found */
} quotient_walk;

static quotient_walk quotient_walk_of(const bly_filter *f)
{
    quotient_walk w = { .t = quotient_table_of(f) };
    w.occupieds = quotient_load(quotient_occupieds(&w.t, 0));
    return w;
}

/* The first runend at or behind a slot, or QUOTIENT_NOWHERE. */
static uint64_t quotient_next_end(const quotient_table *t, uint64_t slot)
{
    uint64_t hide = UINT64_MAX << slot % 64;
    for (uint64_t j = slot / QUOTIENT_BLOCK; j < t->nblocks; j++) {
        const uint64_t ends = quotient_load(quotient_runends(t, j)) & hide;
        if (ends)
            return j * QUOTIENT_BLOCK + (unsigned)__builtin_ctzll(ends);
        hide = UINT64_MAX;
    }
    return QUOTIENT_NOWHERE;
}

static bool quotient_walk_next(quotient_walk *w)
{
    if (!w->inside) {
        while (!w->occupieds) {
            if (++w->block >= w->t.nblocks)
                return false;
            w->occupieds = quotient_load(quotient_occupieds(&w->t, w->block));
        }
        w->q =
            w->block * QUOTIENT_BLOCK + (unsigned)__builtin_ctzll(w->occupieds);
        w->occupieds &= w->occupieds - 1;
        if (w->at < w->q)
            w->at = w->q;
        w->end = quotient_next_end(&w->t, w->at);
        if (w->end == QUOTIENT_NOWHERE) {
            w->block = w->t.nblocks;
            w->occupieds = 0;
            return false;
        }
    }
    const quotient_entry e = quotient_parse(&w->t, w->at, w->end);
    w->at += e.len;
    w->inside = w->at <= w->end;
    w->F = w->q << w->t.r | e.remainder;
    w->count = e.count;
    return true;
}

/* Writes entries, in order of their fingerprints, to an empty table. */
typedef struct quotient_writer {
    bly_filter *f;
    quotient_table t;
    uint64_t q, at; /* the last quotient, and the next free slot */
    uint64_t F;     /* the last fingerprint */
    bool any;
} quotient_writer;

static quotient_writer quotient_writer_of(bly_filter *f)
{
    return (quotient_writer){ .f = f, .t = quotient_table_of(f) };
}

/* The offsets of blocks behind quotient w->q up to block `last`. */
static bool quotient_write_offsets(quotient_writer *w, uint64_t last)
{
    for (uint64_t j = w->q / QUOTIENT_BLOCK + 1; j <= last; j++) {
        const uint64_t start = j * QUOTIENT_BLOCK;
        const uint64_t over = w->at > start ? w->at - start : 0;
        if (over > QUOTIENT_MAX_OFFSET)
            return false;
        *quotient_block(&w->t, j) = (unsigned char)over;
    }
    return true;
}

static bly_status quotient_no_fit(const bly_filter *f)
{
    return bly_fail(BLY_EFULL,
                    "the fingerprints do not fit into %llu slots (resize "
                    "first)",
                    (unsigned long long)f->shape.p[QUOTIENT_SLOTS]);
}

static bly_status quotient_write(quotient_writer *w, uint64_t F, uint64_t count)
{
    const quotient_table *t = &w->t;
    const uint64_t q = F >> t->r, nslots = w->f->shape.p[QUOTIENT_SLOTS];
    uint64_t slots[QUOTIENT_MAX_ENTRY];
    const unsigned len = quotient_encode(t->r, F & t->mask, count, slots);
    uint64_t *state = w->f->state;
    if (w->any && F <= w->F)
        return bly_fail(BLY_EFORMAT, "damaged: its fingerprints are not in "
                                     "order (restore it from a copy, or build "
                                     "it again)");
    if (!len || q >= nslots ||
        state[QUOTIENT_USED] + len > quotient_most(nslots))
        return quotient_no_fit(w->f);
    if (w->any && q == w->q) {
        quotient_mark(quotient_runends(t, (w->at - 1) / QUOTIENT_BLOCK),
                      w->at - 1, false);
    } else {
        if (!quotient_write_offsets(w, q / QUOTIENT_BLOCK))
            return quotient_no_fit(w->f);
        quotient_mark(quotient_occupieds(t, q / QUOTIENT_BLOCK), q, true);
        w->at = w->at > q ? w->at : q;
    }
    w->q = q;
    w->F = F;
    w->any = true;
    if (w->at + len > t->nblocks * QUOTIENT_BLOCK)
        return quotient_no_fit(w->f);
    for (unsigned i = 0; i < len; i++)
        quotient_set(t, w->at++, slots[i]);
    quotient_mark(quotient_runends(t, (w->at - 1) / QUOTIENT_BLOCK), w->at - 1,
                  true);
    state[QUOTIENT_USED] += len;
    state[QUOTIENT_DISTINCT]++;
    state[QUOTIENT_TOTAL] += count;
    return BLY_OK;
}

static bly_status quotient_write_end(quotient_writer *w)
{
    return quotient_write_offsets(w, w->t.nblocks - 1) ? BLY_OK
                                                       : quotient_no_fit(w->f);
}

/* A new filter of this shape from all entries of a, and of b unless NULL. */
static bly_status quotient_join(const bly_filter *a, const bly_filter *b,
                                const bly_shape *shape, const bly_setting *set,
                                bly_filter **out)
{
    bly_filter *f;
    bly_status st = bly_filter_make(a->kind, shape, set, &f);
    if (st)
        return st;
    quotient_writer to = quotient_writer_of(f);
    quotient_walk wa = quotient_walk_of(a), wb = wa;
    if (b)
        wb = quotient_walk_of(b);
    bool more_a = quotient_walk_next(&wa);
    bool more_b = b && quotient_walk_next(&wb);
    while (!st && (more_a || more_b)) {
        const bool take_a = more_a && (!more_b || wa.F <= wb.F);
        const bool take_b = more_b && (!more_a || wb.F <= wa.F);
        const uint64_t F = take_a ? wa.F : wb.F;
        uint64_t count = (take_a ? wa.count : 0) + (take_b ? wb.count : 0);
        if (count > QUOTIENT_MAX_COUNT)
            count = QUOTIENT_MAX_COUNT;
        st = quotient_write(&to, F, count);
        if (take_a)
            more_a = quotient_walk_next(&wa);
        if (take_b)
            more_b = quotient_walk_next(&wb);
    }
    if (!st)
        st = quotient_write_end(&to);
    if (st) {
        bly_free(f);
        return st;
    }
    f->nadded = a->nadded + (b ? b->nadded : 0);
    *out = f;
    return BLY_OK;
}

static bly_status quotient_merge(bly_filter *dst, const bly_filter *src)
{
    const bly_setting set = bly_setting_of(dst);
    bly_filter *both;
    const bly_status st = quotient_join(dst, src, &dst->shape, &set, &both);
    if (st)
        return st;
    const bly_block block = dst->block;
    dst->block = both->block;
    dst->data = both->data;
    dst->nadded = both->nadded;
    memcpy(dst->state, both->state, sizeof dst->state);
    both->block = block;
    both->data = block.at;
    bly_free(both);
    return BLY_OK;
}

/* Slots doubled `by` times, or halved where it is negative. */
static bool quotient_scaled(const bly_shape *s, int by, bly_shape *out)
{
    const uint64_t nslots = s->p[QUOTIENT_SLOTS];
    const int r = (int)s->p[QUOTIENT_R] - by;
    if (r < 1 || r > QUOTIENT_MAX_R || by > 40 ||
        (by > 0 && nslots > QUOTIENT_MAX_SLOTS >> by) ||
        (by < 0 && nslots % (UINT64_C(1) << -by) != 0))
        return false;
    *out = quotient_shape(by < 0 ? nslots >> -by : nslots << by, (uint64_t)r);
    return quotient_sane(out);
}

/* Does this shape meet w? Where w says nothing, twice the slots do. */
static bool quotient_meets(const bly_shape *s, const bly_want *w, int by)
{
    if (w->given[QUOTIENT_R])
        return s->p[QUOTIENT_R] == w->opt[QUOTIENT_R];
    if (w->items)
        return quotient_slots_for((double)w->items, s->p[QUOTIENT_R]) <=
               (double)s->p[QUOTIENT_SLOTS];
    return w->bits ? true : by >= 1;
}

static bly_status quotient_resize(const bly_filter *f, const bly_kind *to,
                                  const bly_want *w, bly_filter **out)
{
    (void)to;
    bly_shape s, chosen;
    bool found = false;
    int by = 0;
    /* The smallest that holds the items, or the largest that memory allows. */
    for (int i = -QUOTIENT_MAX_R; i <= QUOTIENT_MAX_R; i++) {
        if (!quotient_scaled(&f->shape, i, &s) || !quotient_meets(&s, w, i) ||
            (w->bits && quotient_bits(&s) > w->bits) ||
            f->state[QUOTIENT_DISTINCT] > quotient_most(s.p[QUOTIENT_SLOTS]))
            continue;
        chosen = s;
        by = i;
        found = true;
        if (!w->bits || w->items)
            break;
    }
    if (!found)
        return bly_fail(w->items || w->bits || w->given[QUOTIENT_R] ? BLY_EINVAL
                                                                    : BLY_EFULL,
                        "no table of this one's fingerprints is what was "
                        "asked for: slots are doubled for a bit of the "
                        "remainder each time, of which there are %llu",
                        (unsigned long long)f->shape.p[QUOTIENT_R]);
    bly_setting set = bly_setting_of(f);
    if (w->items)
        set.items = w->items;
    else
        set.items = by < 0 ? f->items >> -by : f->items << by;
    set.items = set.items ? set.items : 1;
    set.fpr = quotient_rate(&chosen, (double)set.items);
    if (w->fpr > 0 && set.fpr > w->fpr)
        return bly_fail(BLY_EINVAL,
                        "with %llu items the rate will be %.3g: without the "
                        "keys it cannot be lowered to %.3g",
                        (unsigned long long)set.items, set.fpr, w->fpr);
    return quotient_join(f, NULL, &chosen, &set, out);
}

/* ---------------------------------------------------------------- knowing */

static bool quotient_sound(const bly_filter *f)
{
    const uint64_t *state = f->state;
    for (int i = QUOTIENT_TOTAL + 1; i < BLY_STATE_WORDS; i++)
        if (state[i])
            return false;
    return f->nlayers == 0 &&
           state[QUOTIENT_USED] <= quotient_most(f->shape.p[QUOTIENT_SLOTS]) &&
           state[QUOTIENT_DISTINCT] <= state[QUOTIENT_USED] &&
           state[QUOTIENT_DISTINCT] <= state[QUOTIENT_TOTAL];
}

/* Are slots from .. to-1 as empty ones are? */
static bool quotient_gap_clear(const quotient_table *t, uint64_t from,
                               uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (quotient_get(t, i) ||
            quotient_load(quotient_runends(t, i / QUOTIENT_BLOCK)) >> i % 64 &
                1)
            return false;
    return true;
}

/* Is the run that begins at `at` sorted, and every count in its one form? */
static bool quotient_run_good(const quotient_table *t, uint64_t at,
                              uint64_t end, uint64_t *sums)
{
    uint64_t slots[QUOTIENT_MAX_ENTRY], last = 0;
    for (bool first = true; at <= end; first = false) {
        const quotient_entry e = quotient_parse(t, at, end);
        if (!first && e.remainder <= last)
            return false;
        if (quotient_encode(t->r, e.remainder, e.count, slots) != e.len)
            return false;
        for (unsigned i = 0; i < e.len; i++)
            if (quotient_get(t, at + i) != slots[i])
                return false;
        last = e.remainder;
        at += e.len;
        sums[QUOTIENT_USED] += e.len;
        sums[QUOTIENT_DISTINCT]++;
        sums[QUOTIENT_TOTAL] += e.count;
    }
    return true;
}

/* Walks all runs: each has its end, the gaps between are empty, offsets say
 * what they should, and the sums are those of the state. */
static bool quotient_check(const bly_filter *f)
{
    const quotient_table t = quotient_table_of(f);
    const uint64_t nhome = f->shape.p[QUOTIENT_SLOTS] / QUOTIENT_BLOCK;
    uint64_t at = 0, sums[BLY_STATE_WORDS] = { 0 };
    for (uint64_t j = 0; j < t.nblocks; j++) {
        const uint64_t start = j * QUOTIENT_BLOCK;
        uint64_t occupieds = quotient_load(quotient_occupieds(&t, j));
        if (*quotient_block(&t, j) != (at > start ? at - start : 0))
            return false;
        if (j >= nhome && occupieds)
            return false;
        for (; occupieds; occupieds &= occupieds - 1) {
            const uint64_t q = start + (unsigned)__builtin_ctzll(occupieds);
            if (at < q) {
                if (!quotient_gap_clear(&t, at, q))
                    return false;
                at = q;
            }
            const uint64_t end = quotient_next_end(&t, at);
            if (end == QUOTIENT_NOWHERE ||
                !quotient_run_good(&t, at, end, sums))
                return false;
            at = end + 1;
        }
    }
    if (!quotient_gap_clear(&t, at, t.nblocks * QUOTIENT_BLOCK))
        return false;
    for (uint64_t i = t.nblocks * t.stride; i < f->shape.nbytes; i++)
        if (f->data[i])
            return false;
    return memcmp(sums, f->state, sizeof sums) == 0;
}

/* Of n keys, M (1 - (1 - 1/M)^n) fingerprints are different; the number that
 * are lost to others is small and varies by its root. */
static void quotient_stat(const bly_filter *f, bly_stats *out)
{
    const double range = quotient_range(&f->shape);
    const double different = (double)f->state[QUOTIENT_DISTINCT];
    out->items_estimate =
        different / range < 1 ? -range * log1p(-different / range) : INFINITY;
    out->items_sd = sqrt(fmax(0, out->items_estimate - different));
    out->fill =
        (double)f->state[QUOTIENT_USED] / (double)f->shape.p[QUOTIENT_SLOTS];
    out->fpr_now = different / range;
}

const bly_kind bly_kind_quotient = {
    .id = 9, /* on disk: never changed, never reused */
    .name = "quotient",
    .summary = "sorted fingerprints; removes, counts, merges, resizes",
    .params = quotient_params,
    .nparams = sizeof quotient_params / sizeof quotient_params[0],
    .plan = quotient_plan,
    .sane = quotient_sane,
    .rate = quotient_rate,
    .bits = quotient_bits,
    .describe = quotient_describe,
    .sound = quotient_sound,
    .check = quotient_check,
    .stat = quotient_stat,
    .add = quotient_add,
    .has = quotient_has,
    .remove = quotient_remove,
    .increase = quotient_increase,
    .count = quotient_count,
    .merge = quotient_merge,
    .resize = quotient_resize,
};
