/*
 * runs.c - moving slots along, a word at a time
 *
 * A block has 64 slots of r bits, which is r words: moving slots by one is
 * moving these by r bits, with care for the two words at the ends. From block
 * to block a single slot is carried over.
 */
#include "core/runs.h"

/* Bits low .. high-1 of a block's words are to become those of `moved`; this
 * is word w of them. */
static inline void runs_put_word(unsigned char *words, unsigned w, unsigned low,
                                 unsigned high, uint64_t moved)
{
    unsigned char *p = words + 8 * w;
    uint64_t mask = UINT64_MAX;
    if (w == low / 64)
        mask &= UINT64_MAX << low % 64;
    if (w == (high - 1) / 64)
        mask &= bly_through(high - 1);
    bly_store64(p, (bly_load64(p) & ~mask) | (moved & mask));
}

/* Within the r words of a block: slots a .. b-1 one up, or slots a+1 .. b one
 * down. Bits outside the places they come to stay as they are. */
static inline void runs_block_up(unsigned char *words, unsigned r, unsigned a,
                                 unsigned b)
{
    const unsigned low = (a + 1) * r, high = (b + 1) * r;
    if (a >= b)
        return;
    for (unsigned w = (high - 1) / 64 + 1; w-- > low / 64;) {
        const uint64_t here = bly_load64(words + 8 * w);
        const uint64_t below = w ? bly_load64(words + 8 * (w - 1)) : 0;
        runs_put_word(words, w, low, high, here << r | below >> (64 - r));
    }
}

static inline void runs_block_down(unsigned char *words, unsigned r, unsigned a,
                                   unsigned b)
{
    const unsigned low = a * r, high = b * r;
    if (a >= b)
        return;
    for (unsigned w = low / 64; w <= (high - 1) / 64; w++) {
        const uint64_t here = bly_load64(words + 8 * w);
        const uint64_t above = w + 1 < r ? bly_load64(words + 8 * (w + 1)) : 0;
        runs_put_word(words, w, low, high, here >> r | above << (64 - r));
    }
}

void bly_runs_shift_up(const bly_runs *t, uint64_t from, uint64_t empty)
{
    for (uint64_t j = empty / BLY_RUNS_BLOCK;; j--) {
        const bool first = j == from / BLY_RUNS_BLOCK;
        const unsigned a = first ? (unsigned)(from % 64) : 0;
        const unsigned b =
            j == empty / BLY_RUNS_BLOCK ? (unsigned)(empty % 64) : 63;
        runs_block_up(bly_runs_block(t, j) + BLY_RUNS_HEAD, t->r, a, b);
        const uint64_t ends = bly_load64(bly_runs_ends(t, j));
        const uint64_t span = (UINT64_MAX << a) & bly_through(b);
        uint64_t moved = (ends & span) << 1 & span;
        if (!first) {
            bly_runs_set(t, j * BLY_RUNS_BLOCK,
                         bly_runs_get(t, j * BLY_RUNS_BLOCK - 1));
            moved |= bly_load64(bly_runs_ends(t, j - 1)) >> 63;
        }
        bly_store64(bly_runs_ends(t, j), (ends & ~span) | moved);
        if (first)
            return;
    }
}

void bly_runs_shift_down(const bly_runs *t, uint64_t at, uint64_t end)
{
    const uint64_t last = end - 1;
    for (uint64_t j = at / BLY_RUNS_BLOCK; j <= last / BLY_RUNS_BLOCK; j++) {
        const unsigned a = j == at / BLY_RUNS_BLOCK ? (unsigned)(at % 64) : 0;
        const bool final = j == last / BLY_RUNS_BLOCK;
        const unsigned b = final ? (unsigned)(last % 64) : 63;
        runs_block_down(bly_runs_block(t, j) + BLY_RUNS_HEAD, t->r, a, b);
        const uint64_t ends = bly_load64(bly_runs_ends(t, j));
        const uint64_t span = (UINT64_MAX << a) & bly_through(b);
        uint64_t moved = (ends & span) >> 1 & span;
        uint64_t carried = 0;
        if (!final) {
            const uint64_t next = (j + 1) * BLY_RUNS_BLOCK;
            carried = bly_runs_get(t, next);
            moved |= bly_load64(bly_runs_ends(t, j + 1)) << 63;
        }
        bly_runs_set(t, j * BLY_RUNS_BLOCK + b, carried);
        bly_store64(bly_runs_ends(t, j), (ends & ~span) | moved);
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
