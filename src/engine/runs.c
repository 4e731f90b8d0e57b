/*
 * runs.c - moving slots along, a word at a time
 *
 * A block has 64 slots of r bits, which are r words. To move slots by one is to
 * move these words by r bits, with care for the two at the ends. Bits that
 * leave a word or a block are carried to the next.
 */
#include "engine/runs.h"

/* In the r words of a block, move bits low .. high-1 up by r; the highest r of
 * them leave and are returned. `carry` comes in: if low is 0, it is what left
 * the block before, else 0. */
static inline uint64_t runs_words_up(unsigned char *words, unsigned r,
                                     unsigned low, unsigned high,
                                     uint64_t carry)
{
    const unsigned last = (high - 1) / 64;
    uint64_t move = UINT64_MAX << low % 64; /* bits of this word */
    for (unsigned w = low / 64; w <= last; w++, move = UINT64_MAX) {
        const uint64_t old = bly_load64(words + 8 * w), x = old & move;
        /* x has the bits from `high` on as well: they are not written, and the
         * carry matters only where `high` is the end of the block. */
        if (w == last)
            move &= bly_through(high - 1);
        bly_store64(words + 8 * w, (old & ~move) | ((x << r | carry) & move));
        carry = x >> (64 - r);
    }
    return carry;
}

/* The same down, where the lowest r bits leave; carry comes in where high is
 * the end of the block. */
static inline uint64_t runs_words_down(unsigned char *words, unsigned r,
                                       unsigned low, unsigned high,
                                       uint64_t carry)
{
    const unsigned first = low / 64;
    uint64_t move = bly_through(high - 1);
    for (unsigned w = (high - 1) / 64 + 1; w-- > first; move = UINT64_MAX) {
        const uint64_t old = bly_load64(words + 8 * w), x = old & move;
        if (w == first)
            move &= UINT64_MAX << low % 64;
        bly_store64(words + 8 * w, (old & ~move) | ((x >> r | carry) & move));
        carry = x << (64 - r);
    }
    return carry;
}

void bly_runs_shift_up(const bly_runs *t, uint64_t from, uint64_t empty)
{
    const uint64_t last = empty / BLY_RUNS_BLOCK;
    unsigned a = (unsigned)(from % BLY_RUNS_BLOCK);
    uint64_t carry = 0, end = 0;
    /* From low to high; each block passes its last slot and its last runend on
     * to the next. The last slot of all is empty, so nothing is lost. */
    for (uint64_t j = from / BLY_RUNS_BLOCK; j <= last; j++, a = 0) {
        const unsigned b = j == last ? (unsigned)(empty % 64) : 63;
        unsigned char *const block = bly_runs_block(t, j);
        carry = runs_words_up(block + BLY_RUNS_HEAD, t->r, a * t->r,
                              (b + 1) * t->r, carry);
        const uint64_t ends = bly_load64(block + BLY_RUNS_ENDS);
        const uint64_t span = (UINT64_MAX << a) & bly_through(b);
        bly_store64(block + BLY_RUNS_ENDS,
                    (ends & ~span) | (((ends & span) << 1 | end) & span));
        end = ends >> 63;
    }
}

void bly_runs_shift_down(const bly_runs *t, uint64_t at, uint64_t end)
{
    const uint64_t first = at / BLY_RUNS_BLOCK;
    unsigned b = (unsigned)((end - 1) % BLY_RUNS_BLOCK);
    uint64_t carry = 0, top = 0;
    /* From high to low. Nothing comes in at the top, so slot end-1 is left
     * empty, as empty slots have to be: zero, with its runend clear. */
    for (uint64_t j = (end - 1) / BLY_RUNS_BLOCK + 1; j-- > first; b = 63) {
        const unsigned a = j == first ? (unsigned)(at % 64) : 0;
        unsigned char *const block = bly_runs_block(t, j);
        carry = runs_words_down(block + BLY_RUNS_HEAD, t->r, a * t->r,
                                (b + 1) * t->r, carry);
        const uint64_t ends = bly_load64(block + BLY_RUNS_ENDS);
        const uint64_t span = (UINT64_MAX << a) & bly_through(b);
        bly_store64(block + BLY_RUNS_ENDS,
                    (ends & ~span) | (((ends & span) >> 1 | top) & span));
        top = ends << 63;
    }
}

uint64_t bly_runs_next_end(const bly_runs *t, uint64_t slot)
{
    uint64_t hide = UINT64_MAX << slot % 64;
    for (uint64_t j = slot / BLY_RUNS_BLOCK; j < t->nblocks; j++) {
        const uint64_t ends = bly_load64(bly_runs_ends(t, j)) & hide;
        if (ends)
            return j * BLY_RUNS_BLOCK + (unsigned)__builtin_ctzll(ends);
        hide = UINT64_MAX;
    }
    return BLY_RUNS_NOWHERE;
}

bool bly_runs_clear_between(const bly_runs *t, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (bly_runs_get(t, i) ||
            bly_load64(bly_runs_ends(t, i / BLY_RUNS_BLOCK)) >> i % 64 & 1)
            return false;
    return true;
}
