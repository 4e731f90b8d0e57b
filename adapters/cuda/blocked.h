/*
 * blocked.h - blocked filters on a device: one line of 64 bytes per key
 *
 * What a question costs is the line. A warp has 32 keys, one per lane, and
 * loads their lines in four rounds: in each, four lanes load one line together,
 * 16 bytes each, which the memory serves as one request; all four rounds are
 * under way before the first is tested.
 *
 *     lanes      0 1 2 3 | 4 5 6 7 | ...
 *     round 0    key 0   | key 4   | ...      every lane tests its two words,
 *     round 1    key 1   | key 5   | ...      the warp votes, and a key is in
 *                                             if its four lanes say so
 *
 * Where a line begins, all four lanes have to know of all four keys. Of the
 * positions a lane needs only those in its two words, 12 bits of each key: a
 * matrix of four lanes and four keys is transposed, in two exchanges.
 *
 * Adding works in eight rounds: eight lanes set one bit each, in the eight
 * words of a line, and the memory combines them. Three exchanges transpose the
 * positions.
 *
 * With other k than 8 the bits of a key are not one per word; such filters are
 * rare, and a lane looks after its key alone.
 */
#ifndef BLY_CUDA_BLOCKED_H
#define BLY_CUDA_BLOCKED_H

#include "cuda_keys.h"

/* Lanes l and l ^ step exchange what belongs to the other: of x, a row of items
 * of `bits` bits, a lane has the items whose number agrees with its own in all
 * bits decided so far, two for each key. It keeps the half that agrees in this
 * bit too, and sends the other half. */
ANYWHERE uint32_t half_of(uint64_t x, unsigned half, unsigned bits)
{
    return (uint32_t)(x >> half * bits) & ((UINT32_C(1) << bits) - 1);
}

/* Four items of 12 bits in each of four lanes become item p of four keys, where
 * p is the number of the lane among the four: of keys 0 and 2 in out[0], low
 * and high, and of keys 1 and 3 in out[1]. */
ANYWHERE void transpose_4(uint64_t x, uint32_t *out)
{
    const unsigned p = lane_at() % 4, high = p >> 1, low = p & 1;
    /* Items 2 high and 2 high + 1 of this key, and of the key of lane p ^ 2. */
    const uint32_t own = half_of(x, high, 24);
    const uint32_t far = warp_take32(half_of(x, !high, 24), lane_at() ^ 2);
    const uint32_t first = high ? far : own, second = high ? own : far;
    /* Of each the one that is `low`; the other goes to lane p ^ 1. */
    const uint32_t keep = half_of(first, low, 12) | half_of(second, low, 12)
                                                        << 12;
    const uint32_t give = half_of(first, !low, 12) | half_of(second, !low, 12)
                                                         << 12;
    const uint32_t near = warp_take32(give, lane_at() ^ 1);
    out[0] = low ? near : keep;
    out[1] = low ? keep : near;
}

/* The block of a key, and where the line of another lane's key begins, in
 * words. With fewer than 2^32 blocks (`few`, a literal) two short products and
 * one exchange do. */
ANYWHERE uint64_t block_of(const bly_blocked *b, uint64_t hash, bool few)
{
    return few ? ((hash >> 32) * b->nblocks +
                  ((hash & UINT32_MAX) * b->nblocks >> 32)) >>
                     32
               : bly_mulhi(hash, b->nblocks);
}

ANYWHERE uint64_t line_of(uint64_t block, unsigned lane, bool few)
{
    return 8 *
           (few ? warp_take32((uint32_t)block, lane) : warp_take(block, lane));
}

ANYWHERE bool few_blocks(const bly_blocked *b)
{
    return !(b->nblocks >> 32);
}

/* Bit `at` of two halves of a word, in bit 0; other bits are anything. */
ANYWHERE uint32_t bit_in(const uint32_t *halves, uint32_t at)
{
    return shifted(at & 32 ? halves[1] : halves[0], at);
}

ANYWHERE uint32_t blocked_votes_8(const bly_blocked *b, uint64_t hash, bool few)
{
    const unsigned p = lane_at() % 4; /* words 2 p and 2 p + 1 of a line */
    const uint64_t block = block_of(b, hash, few);
    uint32_t halves[4][4], at[2], answers = 0;
    UNROLLED
    for (unsigned round = 0; round < 4; round++)
        line_load(b->words + line_of(block, lane_at() - p + round, few) + 2 * p,
                  halves[round]);
    transpose_4(bly_lines_spread(hash, BLY_LINES_C1), at);
    UNROLLED
    for (unsigned round = 0; round < 4; round++) {
        const uint32_t two = at[round % 2] >> 12 * (round / 2);
        uint32_t votes = warp_votes(bit_in(halves[round], two) &
                                    bit_in(halves[round] + 2, two >> 6) & 1);
        votes &= votes >> 1; /* of four lanes, in the lowest */
        votes &= votes >> 2;
        answers |= (votes & UINT32_C(0x11111111)) << round;
    }
    return answers;
}

/* Bit i: may the key of lane i, with this hash, be in? All lanes call this
 * together. */
ANYWHERE uint32_t blocked_votes(const bly_blocked *b, uint64_t hash)
{
    if (b->k != 8)
        return warp_votes(bly_blocked_has(b, hash));
    return blocked_votes_8(b, hash, few_blocks(b));
}

/* The answers of a turn: word r, of 32 keys, in lane r. `few` is a literal. */
ANYWHERE uint32_t blocked_turn(const bly_blocked *b, const key_source *keys,
                               uint64_t from, bool few)
{
    uint32_t mine = 0;
    UNROLLED
    for (unsigned r = 0; r < TURN; r++) {
        const uint64_t hash = key_hash(keys, from + r * LANES + lane_at());
        const uint32_t answers = blocked_votes_8(b, hash, few);
        mine = lane_at() == r ? answers : mine;
    }
    return mine;
}

/* In turns as far as these are full, if `turns`; the rest with a key per
 * thread. */
KERNEL_FITTING(blocked_ask, 256, 5)
(bly_blocked b, key_source keys, uint64_t n, bool turns, uint32_t *maybe)
{
    const uint64_t full = turns && b.k == 8 ? n / TURN_KEYS * TURN_KEYS : 0;
    for (uint64_t i = turn_first(); i < full; i += turn_step()) {
        const uint32_t mine = few_blocks(&b)
                                  ? blocked_turn(&b, &keys, i, true)
                                  : blocked_turn(&b, &keys, i, false);
        if (lane_at() < TURN)
            stream_store(maybe + i / LANES + lane_at(), mine);
    }
    const uint64_t rounded = (n + 63) / 64 * 64; /* words have 64 bits */
    for (uint64_t i = full + key_first(); i < rounded; i += key_step()) {
        const uint64_t hash = i < n ? key_hash(&keys, i) : 0;
        const uint32_t valid = warp_votes(i < n);
        const uint32_t answers = blocked_votes(&b, hash) & valid;
        if (lane_at() == 0)
            maybe[i / LANES] = answers;
    }
}

/* Eight items of 6 bits in each of eight lanes: item p of eight keys, that of
 * key q at 6 (p ^ q). */
ANYWHERE uint64_t transpose_8(uint64_t x)
{
    const unsigned p = lane_at() % 8, high = p >> 2, low = p & 1;
    const unsigned middle = p >> 1 & 1;
    /* Four items of this key, and of that of lane p ^ 4; */
    const uint32_t own = half_of(x, high, 24);
    const uint32_t far = warp_take32(half_of(x, !high, 24), lane_at() ^ 4);
    /* two items of these, and of those of lane p ^ 2; */
    const uint32_t keep = half_of(own, middle, 12) | half_of(far, middle, 12)
                                                         << 12;
    const uint32_t give = half_of(own, !middle, 12) | half_of(far, !middle, 12)
                                                          << 12;
    const uint32_t near = warp_take32(give, lane_at() ^ 2);
    /* and one item of these: keys 0 and 4, 2 and 6, of which the odd ones come
     * from lane p ^ 1. */
    uint32_t mine = 0, other = 0;
    UNROLLED
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t two = half_of(i & 1 ? near : keep, i >> 1, 12);
        mine |= half_of(two, low, 6) << 6 * i;
        other |= half_of(two, !low, 6) << 6 * i;
    }
    other = warp_take32(other, lane_at() ^ 1);
    uint64_t out = 0;
    UNROLLED
    for (unsigned i = 0; i < 4; i++)
        out |= (uint64_t)(half_of(mine, i, 6) | half_of(other, i, 6) << 6)
               << 12 * i;
    return out;
}

/* Add the key of every lane that has one. All lanes call this together. */
ANYWHERE void blocked_enter(const bly_blocked *b, uint64_t *words,
                            uint64_t hash, bool some)
{
    const bool few = few_blocks(b);
    const uint64_t block = block_of(b, hash, few);
    if (b->k != 8) {
        for (unsigned i = 0; some && i < b->k; i++) {
            const unsigned bit = bly_block_bit_(hash, b->k, i);
            cell_or(words + block * 8 + bit / 64, UINT64_C(1) << bit % 64);
        }
        return;
    }
    const uint32_t present = warp_votes(some);
    const unsigned p = lane_at() % 8; /* its word of a line */
    const uint64_t at = transpose_8(bly_lines_spread(hash, BLY_LINES_C1));
    UNROLLED
    for (unsigned round = 0; round < 8; round++) {
        const unsigned of = lane_at() - p + round;
        const uint64_t line = line_of(block, of, few);
        if (present >> of & 1)
            cell_or(words + line + p, UINT64_C(1)
                                          << (at >> 6 * (p ^ round) & 63));
    }
}

KERNEL(blocked_add)(bly_blocked b, uint64_t *words, key_source keys, uint64_t n)
{
    for (uint64_t i = key_first(); i - lane_at() < n; i += key_step()) {
        const uint64_t hash = i < n ? key_hash(&keys, i) : 0;
        blocked_enter(&b, words, hash, i < n);
    }
}

#endif
