/*
 * quotient_table.c - entries in runs: find, put, take, walk, write
 *
 * An entry is found by reading its run from the start: runs are short, 1.55
 * slots on average at a load of 0.95, unless there are high counts in them. A
 * new count is encoded as a whole. Slots are opened or closed behind the old
 * one, which is then overwritten. Runs of up to three slots, which hold no
 * digits, are compared as one word, and so is the beginning of longer ones.
 *
 * Walking and writing go through the table once, in order of F. As both meet
 * the quotients in the same order, neither has to search: two tables of one
 * range are merged, and one is spread over more slots, in linear time.
 */
#include "engine/quotient_table.h"

#include "core/status.h"

/* ---------------------------------------------------------------- entries */

/* Room for the highest count with r = 2: three remainders and the digits, one
 * bit each. Only r = 1 could use more, and is refused. */
#define QUOTIENT_MAX_ENTRY 68
_Static_assert(QUOTIENT_MAX_ENTRY <= BLY_RUNS_MAX_OPEN, "slots of a count");

typedef struct quotient_entry {
    uint64_t remainder, count;
    uint64_t at;  /* its first slot */
    unsigned len; /* its slots */
} quotient_entry;

/* The digits of an entry from the first on, which is given; the others begin
 * behind e->len slots. */
BLY_RUNS_INLINE void quotient_parse_digits(const bly_runs *t, uint64_t digit,
                                           uint64_t end, quotient_entry *e)
{
    const unsigned shift = t->r - 1;
    const uint64_t more = UINT64_C(1) << shift;
    uint64_t place = 0; /* log2 of what the digit is worth */
    e->count = 3 + (digit & (more - 1));
    while (digit & more && e->at + e->len <= end) {
        digit = bly_runs_get(t, e->at + e->len++);
        place += shift;
        /* 1 was subtracted from every digit but the first. The bytes may be
         * damaged: a count that is too large sticks at the maximum instead of
         * wrapping around. */
        const uint64_t value = (digit & (more - 1)) + 1;
        if (place < 62 && value <= BLY_QUOTIENT_MAX_COUNT >> place)
            e->count += value << place;
        else
            e->count = BLY_QUOTIENT_MAX_COUNT;
        if (e->count > BLY_QUOTIENT_MAX_COUNT)
            e->count = BLY_QUOTIENT_MAX_COUNT;
    }
}

/* The entry at slot `at` of a run. */
BLY_RUNS_INLINE quotient_entry quotient_parse(const bly_runs *t, bool three,
                                              uint64_t at, uint64_t end)
{
    const uint64_t a = bly_runs_get(t, at);
    quotient_entry e = { a, 1, at, 1 };
    if (at == end)
        return e;
    const uint64_t b = bly_runs_get(t, at + 1);
    if (b > a || (!three && b < a))
        return e;
    const uint64_t c = at + 2 <= end ? bly_runs_get(t, at + 2) : UINT64_MAX;
    if (b < a) {
        if (c != b)
            return e; /* damaged: out of order, which a check will find */
        e.remainder = b;
        e.len = 3;
        quotient_parse_digits(t, a, end, &e);
    } else if (three ? c <= a : c == a) {
        e.len = 3;
        e.count = 3;
        if (three)
            quotient_parse_digits(t, c, end, &e);
        else if (at + 3 <= end) /* else it is damaged */
            quotient_parse_digits(t, bly_runs_get(t, at + e.len++), end, &e);
    } else {
        e.len = 2;
        e.count = 2;
    }
    return e;
}

/* The entry of this remainder, or where it would be, with a count of 0. */
BLY_RUNS_INLINE quotient_entry quotient_find(const bly_runs *t, bool three,
                                             const bly_run *run,
                                             uint64_t remainder)
{
    uint64_t at = run->start;
    /* Entry by entry: a digit may look like a remainder, and only the entry
     * that it belongs to tells them apart. */
    while (at <= run->end) {
        const quotient_entry e = quotient_parse(t, three, at, run->end);
        if (e.remainder == remainder)
            return e;
        if (e.remainder > remainder)
            break;
        at += e.len;
    }
    return (quotient_entry){ .remainder = remainder, .at = at };
}

/* Encode an entry into slots; returns their number, or 0 if there would be too
 * many. */
static unsigned quotient_encode(unsigned r, bool three, uint64_t remainder,
                                uint64_t count,
                                uint64_t slots[QUOTIENT_MAX_ENTRY])
{
    const unsigned shift = r - 1, alike = three ? 2 : 3;
    const uint64_t more = UINT64_C(1) << shift;
    unsigned n = 0;
    for (; n < alike && n < count; n++)
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
            break;
        slots[n - 1] |= more;
        /* A digit that follows is worth at least 1, so 1 less is stored: no
         * number has two forms. */
        rest--;
    }
    /* A digit above the remainder would look like the next remainder, so it
     * goes to the front. */
    if (three && slots[2] > remainder) {
        slots[0] = slots[2];
        slots[2] = remainder;
    }
    return n;
}

/* --------------------------------------------------------------- changing */

/* Add fingerprint F `by` times. *known: it was there. */
BLY_RUNS_INLINE bly_status quotient_put(const bly_quotient_table *t,
                                        uint64_t *sums, uint64_t F, uint64_t by,
                                        bool *known)
{
    const bly_runs *runs = &t->runs;
    const uint64_t q = F >> runs->r, remainder = F & runs->mask;
    uint64_t slots[QUOTIENT_MAX_ENTRY];
    bly_run run = { 0, 0 };
    quotient_entry e = { .remainder = remainder };
    const bool there = bly_runs_find(runs, q, &run);
    if (there) {
        e = quotient_find(runs, t->three, &run, remainder);
    } else {
        /* A new run begins in its home slot, or behind the runs that were
         * pushed over it. */
        const uint64_t behind = bly_runs_upto(runs, q);
        e.at = behind > q ? behind : q;
    }
    /* Whatever can fail comes before the first change. */
    if (by > BLY_QUOTIENT_MAX_COUNT - e.count)
        return bly_fail(BLY_ERANGE, "a count is at most 2^62");
    const unsigned len =
        quotient_encode(runs->r, t->three, remainder, e.count + by, slots);
    if (!len)
        return bly_fail(BLY_EFULL, "remainders of one bit cannot count so far");
    const unsigned more = len - e.len;
    if (sums[BLY_QUOTIENT_USED] + more > bly_quotient_most(t->nslots))
        return bly_fail(
            BLY_EFULL,
            "the filter is full with %llu fingerprints in %llu "
            "slots (resize it, or build it larger; for keys that come "
            "several times, with the option mean)",
            (unsigned long long)sums[BLY_QUOTIENT_DISTINCT],
            (unsigned long long)sums[BLY_QUOTIENT_USED]);
    if (more) {
        const uint64_t from = e.at + e.len;
        if (!bly_runs_open(runs, q, from, more))
            return bly_fail(BLY_EFULL,
                            "the filter is full: too many keys in one place "
                            "(resize it, or build it larger)");
        if (!there)
            bly_runs_mark_occupied(runs, q, true);
        /* Runends behind `from` have moved along. Only a run that is new, or
         * has grown at its end, must have its own set. */
        if (!there || from == run.end + 1) {
            const uint64_t end = from + more - 1;
            if (there)
                bly_runs_mark_end(runs, run.end, false);
            bly_runs_mark_end(runs, end, true);
        }
    }
    for (unsigned i = 0; i < len; i++)
        bly_runs_set(runs, e.at + i, slots[i]);
    sums[BLY_QUOTIENT_USED] += more;
    sums[BLY_QUOTIENT_DISTINCT] += e.count == 0;
    sums[BLY_QUOTIENT_TOTAL] += by;
    *known = e.count != 0;
    return BLY_OK;
}

/* How a remainder compares with the slots of a run of at most three slots, or
 * two, which is too short to hold digits. */
typedef struct quotient_place {
    unsigned below, same; /* slots less than it; equal to it */
} quotient_place;

BLY_RUNS_INLINE quotient_place quotient_place_in(const bly_runs *t,
                                                 const bly_glance *g,
                                                 uint64_t remainder)
{
    const unsigned bit = g->start % BLY_RUNS_BLOCK * t->r;
    const uint64_t word = bly_load64(g->slots + bit / 8) >> bit % 8;
    quotient_place place = { 0, 0 };
    /* Sums of comparisons, since no processor predicts how random remainders
     * compare. % 64 keeps the shift defined where three slots do not fit into
     * the word; nobody uses the result then. */
    BLY_UNROLL(3)
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t other = word >> i * t->r % 64 & t->mask;
        place.below += (unsigned)(i < g->len) & (unsigned)(other < remainder);
        place.same += (unsigned)(i < g->len) & (unsigned)(other == remainder);
    }
    return place;
}

/* Can quotient_place_in() be trusted for this run? */
BLY_RUNS_INLINE bool quotient_is_short(const bly_quotient_table *t,
                                       const bly_glance *g)
{
    return !(g->doubt | (uint64_t)(g->len > t->plain) | (uint64_t)(t->fit < 3));
}

/* Add fingerprint F once if that is easy: it is not there yet, and the run of
 * its quotient is short. False if it is not easy; nothing has changed then. */
BLY_RUNS_INLINE bool quotient_put_easily(const bly_quotient_table *t,
                                         uint64_t F)
{
    const bly_runs *runs = &t->runs;
    const uint64_t q = F >> runs->r, remainder = F & runs->mask;
    /* The first of its quotient, and its home is free: nothing moves. */
    if (bly_runs_home_empty(runs, q)) {
        bly_runs_mark_occupied(runs, q, true);
        bly_runs_mark_end(runs, q, true);
        bly_runs_set(runs, q, remainder);
        return true;
    }
    const bly_glance g = bly_runs_glance(
        runs, bly_runs_block(runs, q / BLY_RUNS_BLOCK), q, true);
    const quotient_place place = quotient_place_in(runs, &g, remainder);
    if (!quotient_is_short(t, &g) || place.same)
        return false;
    return bly_runs_insert(runs, q, g.first + g.start + place.below,
                           g.there != 0, place.below == g.len, remainder);
}

/* Remove fingerprint F once. */
BLY_RUNS_INLINE bool quotient_take(const bly_quotient_table *t, uint64_t *sums,
                                   uint64_t F)
{
    const bly_runs *runs = &t->runs;
    const uint64_t q = F >> runs->r;
    uint64_t slots[QUOTIENT_MAX_ENTRY];
    bly_run run;
    const bly_glance g = bly_runs_glance(
        runs, bly_runs_block(runs, q / BLY_RUNS_BLOCK), q, true);
    const quotient_place place = quotient_place_in(runs, &g, F & runs->mask);
    /* A short run has it once, or not at all: there is no count to encode
     * anew. */
    if (quotient_is_short(t, &g) && place.same < 2) {
        run.start = g.first + g.start;
        run.end = run.start + g.len - 1;
        if (!place.same)
            return false;
        bly_runs_close(runs, q, run.start + place.below, &run);
        sums[BLY_QUOTIENT_USED]--;
        sums[BLY_QUOTIENT_DISTINCT]--;
        sums[BLY_QUOTIENT_TOTAL]--;
        return true;
    }
    if (!bly_runs_find(runs, q, &run))
        return false;
    const quotient_entry e =
        quotient_find(runs, t->three, &run, F & runs->mask);
    if (!e.count)
        return false;
    const unsigned len =
        quotient_encode(runs->r, t->three, e.remainder, e.count - 1, slots);
    /* Slot by slot: from 3 to 2 an entry may lose two slots, in any other step
     * one at most. */
    for (unsigned i = len; i < e.len; i++, run.end--)
        bly_runs_close(runs, q, e.at + len, &run);
    for (unsigned i = 0; i < len; i++)
        bly_runs_set(runs, e.at + i, slots[i]);
    sums[BLY_QUOTIENT_USED] -= e.len - len;
    sums[BLY_QUOTIENT_DISTINCT] -= e.count == 1;
    sums[BLY_QUOTIENT_TOTAL]--;
    return true;
}

/* ---------------------------------------------------------------- batches */

/* Keys wait in a ring for what they need to arrive, chunk by chunk: it comes
 * into L2 QUOTIENT_FAR keys ahead, and into L1 one chunk ahead. The ring is a
 * whole number of chunks, so that no chunk wraps around. */
#define QUOTIENT_CHUNK 8
#define QUOTIENT_FAR 32
#define QUOTIENT_RING 64

typedef struct quotient_ring {
    uint64_t F[QUOTIENT_RING];
    unsigned char *block[QUOTIENT_RING];
} quotient_ring;

/* How many cache lines a change moves, at most 6. At a load of a, it moves 1 /
 * 2(1 - a)^2 slots on average, up to the next place where nothing was
 * pushed. */
static unsigned quotient_moved(const bly_quotient_table *t,
                               const uint64_t *sums)
{
    /* Used slots are 0.95 of all at most, so the share is never 0. */
    const uint64_t left = t->nslots - sums[BLY_QUOTIENT_USED];
    const double share = (double)left / (double)t->nslots;
    const double bits = (double)(t->runs.stride * 8) / BLY_RUNS_BLOCK;
    const double lines = bits / (2 * share * share) / 512;
    return lines < 6 ? (unsigned)lines : 6;
}

/* Enter keys from .. to-1 into the ring, and fetch into L2 the head of their
 * block, that of the next one, the remainders near the home slot, and nlines
 * lines behind them. */
BLY_RUNS_INLINE void quotient_enter(const bly_quotient_table *t,
                                    quotient_ring *ring, const uint64_t *h,
                                    size_t from, size_t to, unsigned nlines)
{
    const uint64_t stride = t->runs.stride;
    for (size_t i = from; i < to; i++) {
        const uint64_t F = bly_scale(h[i], t->range), q = F >> t->runs.r;
        unsigned char *block = bly_runs_block(&t->runs, q / BLY_RUNS_BLOCK);
        ring->F[i % QUOTIENT_RING] = F;
        ring->block[i % QUOTIENT_RING] = block;
        /* Blocks are not aligned: a head may lie in two lines. */
        __builtin_prefetch(block, 0, 2);
        __builtin_prefetch(block + BLY_RUNS_HEAD - 1, 0, 2);
        __builtin_prefetch(block + stride + BLY_RUNS_HEAD - 1, 0, 2);
        __builtin_prefetch(block + BLY_RUNS_HEAD + q % 64 * t->runs.r / 8 + 8,
                           0, 2);
        for (unsigned k = 1; k <= nlines; k++)
            __builtin_prefetch(block + stride + 64 * k, 0, 2);
    }
}

/* To be called before each chunk in turn; this one begins with key `from`. Only
 * heads are fetched into L1: they are what is needed first. */
BLY_RUNS_INLINE void quotient_ahead(const bly_quotient_table *t,
                                    quotient_ring *ring, const uint64_t *h,
                                    size_t from, size_t n, unsigned nlines)
{
    const size_t near = from + QUOTIENT_CHUNK, far = from + QUOTIENT_FAR;
    const size_t end = far + QUOTIENT_CHUNK;
    /* The first call fills the ring; each further one enters one chunk. */
    if (from == 0)
        quotient_enter(t, ring, h, 0, n < far ? n : far, nlines);
    if (far < n)
        quotient_enter(t, ring, h, far, n < end ? n : end, nlines);
    for (size_t i = near; i < near + QUOTIENT_CHUNK && i < n; i++) {
        const unsigned char *block = ring->block[i % QUOTIENT_RING];
        __builtin_prefetch(block, 0, 3);
        __builtin_prefetch(block + t->runs.stride + BLY_RUNS_HEAD - 1, 0, 3);
    }
}

BLY_RUNS_INLINE uint64_t quotient_count_one(const bly_quotient_table *t,
                                            uint64_t F)
{
    const bly_runs *runs = &t->runs;
    bly_run run;
    if (!bly_runs_find(runs, F >> runs->r, &run))
        return 0;
    return quotient_find(runs, t->three, &run, F & runs->mask).count;
}

/* Bit 0: the fingerprint is there; bit 1: that is not certain. Compares the
 * slots of a short run at once. The fourth slot and those behind it may be
 * digits of a count, so a match there is uncertain and the run has to be read
 * in order. Where counts take three slots, the first three slots are remainders
 * only as long as they rise. So a match is also uncertain if the slots up to
 * the one behind it do not rise. No branch depends on what is found. */
BLY_RUNS_INLINE unsigned quotient_glance(const bly_quotient_table *t,
                                         uint64_t F, unsigned char *block)
{
    const bly_runs *runs = &t->runs;
    const bly_glance g = bly_runs_glance(runs, block, F >> runs->r, false);
    const unsigned bit = g.start % BLY_RUNS_BLOCK * runs->r;
    const uint64_t word = bly_load64(g.slots + bit / 8) >> bit % 8;
    /* x is 0 in slots that hold the remainder. (x - ones) & ~x has the highest
     * bit of the lowest such slot, and above it perhaps some that borrowing
     * has set: whether there is a hit is exact, and so is the lowest one. */
    const uint64_t x = word ^ (F & runs->mask) * t->ones;
    const uint64_t in = (UINT64_C(1) << g.len * runs->r % 64) - 1;
    const uint64_t hits = (x - t->ones) & ~x & t->highs & in & g.there;
    /* The lowest hit, and all bits below it; and the slots that are greater
     * than the next one of the run. The highest bits decide this if they
     * differ, else the other bits. */
    const uint64_t lowest = hits & (0 - hits), upto = lowest | (lowest - 1);
    const uint64_t next = word >> runs->r;
    const uint64_t rest = (next | t->highs) - (word & ~t->highs);
    const uint64_t falls =
        ~((next & ~word) | (~(next ^ word) & rest)) & t->order & in >> runs->r;
    const uint64_t doubt = (g.there & (g.doubt | (uint64_t)(g.len > t->fit))) |
                           (lowest & t->late) | (hits ? falls & upto : 0);
    return (unsigned)(hits != 0) | (unsigned)(doubt != 0) << 1;
}

BLY_RUNS_INLINE void quotient_has_body(const bly_quotient_table *t,
                                       const uint64_t *h, size_t n,
                                       uint64_t *maybe)
{
    quotient_ring ring;
    for (size_t from = 0; from < n; from += QUOTIENT_CHUNK) {
        const size_t np = n - from < QUOTIENT_CHUNK ? n - from : QUOTIENT_CHUNK;
        const uint64_t *const F = ring.F + from % QUOTIENT_RING;
        unsigned char *const *const block = ring.block + from % QUOTIENT_RING;
        uint64_t bits = 0, doubts = 0;
        quotient_ahead(t, &ring, h, from, n, 0);
        for (size_t i = 0; i < np; i++) {
            const unsigned seen = quotient_glance(t, F[i], block[i]);
            bits |= (uint64_t)(seen & 1) << i;
            doubts |= (uint64_t)(seen >> 1) << i;
        }
        /* Keys for which a glance was not enough wait until here, so that the
         * loop above has no branches to mispredict. */
        for (bits &= ~doubts; doubts; doubts &= doubts - 1) {
            const unsigned i = (unsigned)__builtin_ctzll(doubts);
            bits |= (uint64_t)(quotient_count_one(t, F[i]) != 0) << i;
        }
        /* The first chunk of a word overwrites it, the others add to it. */
        maybe[from / 64] =
            (from % 64 ? maybe[from / 64] : 0) | bits << from % 64;
    }
}

BLY_RUNS_INLINE void quotient_count_body(const bly_quotient_table *t,
                                         const uint64_t *h, size_t n,
                                         uint64_t *counts)
{
    quotient_ring ring;
    for (size_t i = 0; i < n; i++) {
        if (i % QUOTIENT_CHUNK == 0)
            quotient_ahead(t, &ring, h, i, n, 0);
        counts[i] = quotient_count_one(t, ring.F[i % QUOTIENT_RING]);
    }
}

/* by: NULL is 1 for each. */
BLY_RUNS_INLINE bly_status quotient_add_body(const bly_quotient_table *t,
                                             uint64_t *sums, const uint64_t *h,
                                             const uint64_t *by, size_t n,
                                             uint64_t *fresh, size_t *ndone)
{
    const unsigned moved = quotient_moved(t, sums);
    const uint64_t most = bly_quotient_most(t->nslots);
    quotient_ring ring;
    bly_status st = BLY_OK;
    size_t i = 0;
    for (; i < n; i++) {
        bool known = true;
        if (i % QUOTIENT_CHUNK == 0)
            quotient_ahead(t, &ring, h, i, n, moved);
        const uint64_t F = ring.F[i % QUOTIENT_RING];
        /* put_easily() counts nothing and checks no limit: both happen here. */
        if (__builtin_expect((!by || by[i] == 1) &&
                                 sums[BLY_QUOTIENT_USED] < most &&
                                 quotient_put_easily(t, F),
                             1)) {
            sums[BLY_QUOTIENT_USED]++;
            sums[BLY_QUOTIENT_DISTINCT]++;
            sums[BLY_QUOTIENT_TOTAL]++;
            known = false;
        } else if (!by || by[i]) {
            st = quotient_put(t, sums, F, by ? by[i] : 1, &known);
        }
        if (st)
            break;
        if (fresh)
            fresh[i / 64] |= (uint64_t)!known << i % 64;
    }
    *ndone = i;
    return st;
}

BLY_RUNS_INLINE void quotient_remove_body(const bly_quotient_table *t,
                                          uint64_t *sums, const uint64_t *h,
                                          size_t n, bly_status *each)
{
    const unsigned moved = quotient_moved(t, sums);
    quotient_ring ring;
    for (size_t i = 0; i < n; i++) {
        if (i % QUOTIENT_CHUNK == 0)
            quotient_ahead(t, &ring, h, i, n, moved);
        each[i] = quotient_take(t, sums, ring.F[i % QUOTIENT_RING])
                      ? BLY_OK
                      : BLY_EABSENT;
    }
}

BLY_RUNS_INLINE bool quotient_has_single(const bly_quotient_table *t,
                                         uint64_t h)
{
    const uint64_t F = bly_scale(h, t->range), q = F >> t->runs.r;
    const unsigned seen =
        quotient_glance(t, F, bly_runs_block(&t->runs, q / BLY_RUNS_BLOCK));
    return seen < 2 ? seen : quotient_count_one(t, F) != 0;
}

BLY_RUNS_INLINE bly_status quotient_add_single(const bly_quotient_table *t,
                                               uint64_t *sums, uint64_t h)
{
    const uint64_t F = bly_scale(h, t->range);
    bool known;
    if (sums[BLY_QUOTIENT_USED] < bly_quotient_most(t->nslots) &&
        quotient_put_easily(t, F)) {
        sums[BLY_QUOTIENT_USED]++;
        sums[BLY_QUOTIENT_DISTINCT]++;
        sums[BLY_QUOTIENT_TOTAL]++;
        return BLY_OK;
    }
    return quotient_put(t, sums, F, 1, &known);
}

BLY_RUNS_INLINE bly_status quotient_remove_single(const bly_quotient_table *t,
                                                  uint64_t *sums, uint64_t h)
{
    return quotient_take(t, sums, bly_scale(h, t->range)) ? BLY_OK
                                                          : BLY_EABSENT;
}

/* The same bodies for processors that have instructions to select and count
 * ones, that only count, and for others. Every processor with AVX-512 has a
 * fast `pdep`, and what came with it; some earlier ones take a hundred cycles
 * for it. The copy of the table has `pdep` as a literal, so the bodies are
 * compiled without a test of it. */
#define QUOTIENT_ROW(name, attribute, by_pdep)                                 \
    attribute static void quotient_has_##name(const bly_quotient_table *t,     \
                                              const uint64_t *h, size_t n,     \
                                              uint64_t *maybe)                 \
    {                                                                          \
        bly_quotient_table own = *t;                                           \
        own.runs.pdep = by_pdep;                                               \
        quotient_has_body(&own, h, n, maybe);                                  \
    }                                                                          \
    attribute static void quotient_count_##name(const bly_quotient_table *t,   \
                                                const uint64_t *h, size_t n,   \
                                                uint64_t *counts)              \
    {                                                                          \
        bly_quotient_table own = *t;                                           \
        own.runs.pdep = by_pdep;                                               \
        quotient_count_body(&own, h, n, counts);                               \
    }                                                                          \
    attribute static bly_status quotient_add_##name(                           \
        const bly_quotient_table *t, uint64_t *sums, const uint64_t *h,        \
        const uint64_t *by, size_t n, uint64_t *fresh, size_t *ndone)          \
    {                                                                          \
        bly_quotient_table own = *t;                                           \
        own.runs.pdep = by_pdep;                                               \
        return quotient_add_body(&own, sums, h, by, n, fresh, ndone);          \
    }                                                                          \
    attribute static void quotient_remove_##name(                              \
        const bly_quotient_table *t, uint64_t *sums, const uint64_t *h,        \
        size_t n, bly_status *each)                                            \
    {                                                                          \
        bly_quotient_table own = *t;                                           \
        own.runs.pdep = by_pdep;                                               \
        quotient_remove_body(&own, sums, h, n, each);                          \
    }                                                                          \
    attribute static bool quotient_has_one_##name(unsigned char *data,         \
                                                  uint64_t nslots, uint64_t r, \
                                                  uint64_t marks, uint64_t h)  \
    {                                                                          \
        bly_quotient_table own =                                               \
            bly_quotient_table_with(data, nslots, r, marks);                   \
        own.runs.pdep = by_pdep;                                               \
        return quotient_has_single(&own, h);                                   \
    }                                                                          \
    attribute static bly_status quotient_add_one_##name(                       \
        unsigned char *data, uint64_t nslots, uint64_t r, uint64_t marks,      \
        uint64_t *sums, uint64_t h)                                            \
    {                                                                          \
        bly_quotient_table own =                                               \
            bly_quotient_table_with(data, nslots, r, marks);                   \
        own.runs.pdep = by_pdep;                                               \
        return quotient_add_single(&own, sums, h);                             \
    }                                                                          \
    attribute static bly_status quotient_remove_one_##name(                    \
        unsigned char *data, uint64_t nslots, uint64_t r, uint64_t marks,      \
        uint64_t *sums, uint64_t h)                                            \
    {                                                                          \
        bly_quotient_table own =                                               \
            bly_quotient_table_with(data, nslots, r, marks);                   \
        own.runs.pdep = by_pdep;                                               \
        return quotient_remove_single(&own, sums, h);                          \
    }

#define QUOTIENT_ROW_OF(name, needs)                              \
    {                                                             \
#name, needs, quotient_has_##name, quotient_count_##name, \
            quotient_add_##name, quotient_remove_##name,          \
            quotient_has_one_##name, quotient_add_one_##name,     \
            quotient_remove_one_##name                            \
    }

#if BLY_X86
QUOTIENT_ROW(pdep, __attribute__((target("popcnt,lzcnt,bmi,bmi2"))), true)
QUOTIENT_ROW(popcnt, __attribute__((target("popcnt"))), false)
#endif
QUOTIENT_ROW(portable, , false)

const bly_quotient_row bly_quotient_rows[] = {
#if BLY_X86
    QUOTIENT_ROW_OF(pdep, BLY_CPU_AVX512),
    QUOTIENT_ROW_OF(popcnt, BLY_CPU_POPCNT),
#endif
    QUOTIENT_ROW_OF(portable, 0),
};

BLY_CHOOSE(quotient)

/* ------------------------------------------------------ from first to last */

bly_quotient_walk bly_quotient_walk_of(const bly_quotient_table *t)
{
    bly_quotient_walk w = { .runs = t->runs, .three = t->three };
    w.occupieds = bly_load64(bly_runs_occupieds(&w.runs, 0));
    return w;
}

bool bly_quotient_walk_next(bly_quotient_walk *w)
{
    if (!w->inside) {
        while (!w->occupieds) {
            if (++w->block >= w->runs.nblocks)
                return false;
            w->occupieds = bly_load64(bly_runs_occupieds(&w->runs, w->block));
        }
        w->q =
            w->block * BLY_RUNS_BLOCK + (unsigned)__builtin_ctzll(w->occupieds);
        w->occupieds &= w->occupieds - 1;
        /* Occupied quotients and runends come in the same order, so the next
         * runend is that of this quotient: no rank, no select. */
        if (w->at < w->q)
            w->at = w->q;
        w->end = bly_runs_next_end(&w->runs, w->at);
        /* Damaged: an occupied quotient without a run. The walk is over, and
         * stays over. */
        if (w->end == BLY_RUNS_NOWHERE) {
            w->block = w->runs.nblocks;
            w->occupieds = 0;
            return false;
        }
    }
    const quotient_entry e = quotient_parse(&w->runs, w->three, w->at, w->end);
    w->at += e.len;
    w->inside = w->at <= w->end;
    w->F = w->q << w->runs.r | e.remainder;
    w->count = e.count;
    return true;
}

bly_quotient_writer bly_quotient_writer_of(const bly_quotient_table *t,
                                           uint64_t *sums)
{
    return (bly_quotient_writer){ .t = *t, .sums = sums };
}

/* The offsets of blocks behind quotient w->q up to block `last`. */
static bool quotient_write_offsets(bly_quotient_writer *w, uint64_t last)
{
    /* No more runs of quotients before these blocks will come, so it is final
     * how far earlier runs reach into them. */
    for (uint64_t j = w->q / BLY_RUNS_BLOCK + 1; j <= last; j++) {
        const uint64_t start = j * BLY_RUNS_BLOCK;
        const uint64_t over = w->at > start ? w->at - start : 0;
        if (over > BLY_RUNS_MAX_OFFSET)
            return false;
        *bly_runs_block(&w->t.runs, j) = (unsigned char)over;
    }
    return true;
}

static bly_status quotient_no_fit(const bly_quotient_writer *w)
{
    return bly_fail(BLY_EFULL,
                    "the fingerprints do not fit into %llu slots (resize "
                    "first)",
                    (unsigned long long)w->t.nslots);
}

bly_status bly_quotient_write(bly_quotient_writer *w, uint64_t F,
                              uint64_t count)
{
    const bly_runs *t = &w->t.runs;
    const uint64_t q = F >> t->r, nslots = w->t.nslots;
    uint64_t slots[QUOTIENT_MAX_ENTRY];
    const unsigned len =
        quotient_encode(t->r, w->t.three, F & t->mask, count, slots);
    uint64_t *sums = w->sums;
    /* A walk gives entries in order and with valid quotients, unless its table
     * was damaged. Then more slots would not help. */
    if (q >= nslots || (w->any && F <= w->F))
        return bly_fail(BLY_EFORMAT, "damaged: its fingerprints are not in "
                                     "order (restore it from a copy, or build "
                                     "it again)");
    if (!len || sums[BLY_QUOTIENT_USED] + len > bly_quotient_most(nslots))
        return quotient_no_fit(w);
    /* The run goes on: its former end is no longer the end. */
    if (w->any && q == w->q) {
        bly_runs_mark_end(t, w->at - 1, false);
    } else {
        if (!quotient_write_offsets(w, q / BLY_RUNS_BLOCK))
            return quotient_no_fit(w);
        bly_runs_mark_occupied(t, q, true);
        w->at = w->at > q ? w->at : q;
    }
    w->q = q;
    w->F = F;
    w->any = true;
    if (w->at + len > t->nblocks * BLY_RUNS_BLOCK)
        return quotient_no_fit(w);
    for (unsigned i = 0; i < len; i++)
        bly_runs_set(t, w->at++, slots[i]);
    bly_runs_mark_end(t, w->at - 1, true);
    sums[BLY_QUOTIENT_USED] += len;
    sums[BLY_QUOTIENT_DISTINCT]++;
    sums[BLY_QUOTIENT_TOTAL] += count;
    return BLY_OK;
}

bly_status bly_quotient_write_end(bly_quotient_writer *w)
{
    return quotient_write_offsets(w, w->t.runs.nblocks - 1)
               ? BLY_OK
               : quotient_no_fit(w);
}

/* Is the run that begins at `at` sorted, and every count in its one form? */
static bool quotient_run_good(const bly_runs *t, bool three, uint64_t at,
                              uint64_t end, uint64_t *sums)
{
    uint64_t slots[QUOTIENT_MAX_ENTRY], last = 0;
    for (bool first = true; at <= end; first = false) {
        const quotient_entry e = quotient_parse(t, three, at, end);
        if (!first && e.remainder <= last)
            return false;
        /* A count has only one form: if encoding it again gives another, the
         * data is damaged. */
        if (quotient_encode(t->r, three, e.remainder, e.count, slots) != e.len)
            return false;
        for (unsigned i = 0; i < e.len; i++)
            if (bly_runs_get(t, at + i) != slots[i])
                return false;
        last = e.remainder;
        at += e.len;
        sums[BLY_QUOTIENT_USED] += e.len;
        sums[BLY_QUOTIENT_DISTINCT]++;
        sums[BLY_QUOTIENT_TOTAL] += e.count;
    }
    return true;
}

bool bly_quotient_check(const bly_quotient_table *t, uint64_t *sums)
{
    const bly_runs *runs = &t->runs;
    /* `at` is the slot behind the last run: every bit of the table is either
     * explained on the way or must be clear. */
    uint64_t at = 0;
    for (uint64_t j = 0; j < runs->nblocks; j++) {
        const uint64_t start = j * BLY_RUNS_BLOCK;
        uint64_t occupieds = bly_load64(bly_runs_occupieds(runs, j));
        if (*bly_runs_block(runs, j) != (at > start ? at - start : 0))
            return false;
        /* Spare blocks behind the last home have no quotients. */
        if (start >= t->nslots && occupieds)
            return false;
        for (; occupieds; occupieds &= occupieds - 1) {
            const uint64_t q = start + (unsigned)__builtin_ctzll(occupieds);
            if (at < q) {
                if (!bly_runs_clear_between(runs, at, q))
                    return false;
                at = q;
            }
            const uint64_t end = bly_runs_next_end(runs, at);
            if (end == BLY_RUNS_NOWHERE ||
                !quotient_run_good(runs, t->three, at, end, sums))
                return false;
            at = end + 1;
        }
    }
    const uint64_t size = runs->nblocks * runs->stride;
    for (uint64_t i = size; i < bly_runs_nbytes(runs->nblocks, runs->r); i++)
        if (runs->data[i])
            return false;
    return bly_runs_clear_between(runs, at, runs->nblocks * BLY_RUNS_BLOCK);
}
