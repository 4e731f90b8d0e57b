/*
 * lines_walk.h - the walk over a stream of keys, for one row
 *
 * Included by each row, which first defines:
 *
 *     ROW(name)   bly_lines_name_ and the row's name
 *     ROW_TARGET  the attribute that allows its instructions, or nothing
 *     row_aim     bly_lines_aim(), or the same for a whole group at once
 *     ROW_LINES   the most lines that row_aim can address, if there is a limit,
 *                 and ROW_LARGE(name) the function of a row that has none
 *     ROW_BURSTS  defined where a key takes so many instructions that groups
 *                 are better fetched from memory in bursts, see below
 *     row_probe   (uint64_t *line, uint64_t g, uint64_t g2, unsigned k, bool
 *                 add): were all k bits set? Then ones from bit 8 on, else
 *                 zeros there. With add they are now. add is literal, and k is
 *                 8, 16 or known to be less
 *
 * and gets ROW(has) and ROW(add). No include guard: it is a template.
 */
#include "engine/lines.h"

#define ROW_INLINE ROW_TARGET static inline __attribute__((always_inline))

/* The lines of group g, into L1 or into L2. */
ROW_INLINE void ROW(fetch)(const bly_lines_ring *r, size_t g, bool near)
{
    const uint64_t *const line = &r->line[g * BLY_LINES_GROUP % BLY_LINES_RING];
    BLY_UNROLL(8)
    for (unsigned t = 0; t < BLY_LINES_GROUP; t++)
        if (near)
            __builtin_prefetch((const void *)(uintptr_t)line[t], 0, 3);
        else
            __builtin_prefetch((const void *)(uintptr_t)line[t], 0, 2);
}

/* Put groups `from` to `to` - 1 into the ring and prefetch their lines: into L2
 * if far, else into L1. A group is fetched one step after it was made: its
 * addresses were stored as a vector, and a processor that reads one of them too
 * soon must wait until that store is done. */
ROW_TARGET static __attribute__((noinline)) void
ROW(lead)(const bly_lines *a, const bly_lines_keys *in, size_t from, size_t to,
          bool far, bly_lines_ring *r)
{
    for (size_t g = from; g <= to; g++) {
        const size_t i = g * BLY_LINES_GROUP;
        if (g < to && in->n - i >= BLY_LINES_GROUP)
            row_aim(a, in, i, r);
        else if (g < to)
            bly_lines_aim(a, in, i, in->n - i, r);
        if (g > from)
            ROW(fetch)(r, g - 1, !far);
    }
}

/* Probe m keys from a slot on: bit 8 + t is set if key t was there. */
ROW_INLINE uint64_t ROW(group)(const bly_lines_ring *r, size_t slot, size_t m,
                               unsigned k, bool add)
{
    uint64_t hits = 0;
    BLY_UNROLL(8)
    for (size_t t = 0; t < m; t++) {
        uint64_t *const line = (uint64_t *)(uintptr_t)r->line[slot + t];
        const uint64_t g2 = k == 16 ? r->g2[slot + t] : 0;
        /* Rows answer with ones from bit 8 on, so each key takes one AND and
         * one OR, and no shift. */
        hits |= row_probe(line, r->g[slot + t], g2, k, add) & UINT64_C(256)
                                                                  << t;
        /* Kept in a register: clang would collect the answers in a vector,
         * which takes a tenth more time. */
        __asm__("" : "+r"(hits));
    }
    return hits;
}

/* Group g of a walk, all of whose keys are in the ring, and its answers. */
ROW_INLINE void ROW(step)(const bly_lines_ring *r, size_t g, size_t m,
                          bly_lines_answers *to, unsigned k, bool add)
{
    const size_t slot = g * BLY_LINES_GROUP % BLY_LINES_RING;
    uint64_t hits = ROW(group)(r, slot, m, k, add);
    if (add)
        /* Adding reports the keys that were not there: flip the m answers. */
        hits ^= (UINT64_C(1) << (8 + m)) - 256;
    /* Groups enter at the top and move down: the first of eight ends up in the
     * lowest byte, and no shift depends on g. */
    to->word = to->word >> 8 | hits << 48;
    if (g % 8 == 7)
        bly_lines_answer(to, add);
}

/* out, unless NULL, gets a bitmap of the keys that were there; with add, of
 * those that were not, and their number is the result. `*of` and `*keys` are
 * copied, so that nothing stored through out can change them. */
ROW_INLINE uint64_t ROW(walk)(const bly_lines *of, const bly_lines_keys *keys,
                              uint64_t *out, unsigned k, bool add,
                              bly_lines_of what, bool far)
{
    const bly_lines lines = *of, *const a = &lines;
    const bly_lines_keys stream = { keys->at, keys->n, what, keys->flip },
                         *const in = &stream;
    const size_t whole = in->n / BLY_LINES_GROUP;
    const size_t rest = in->n % BLY_LINES_GROUP;
    const size_t ngroups = whole + (rest != 0);
    const size_t all = BLY_LINES_RING / BLY_LINES_GROUP; /* that fit */
    /* A short stream goes into the ring as a whole. Otherwise the ring stays
     * `ahead` groups in front of the probe: never more than fit, or a group
     * would be overwritten before it was used. */
    const size_t ahead = !far             ? BLY_LINES_NEAR + 1
                         : ngroups <= all ? all
                                          : BLY_LINES_FAR;
    const size_t near = far ? 1 : BLY_LINES_NEAR;
    bly_lines_ring r;
    bly_lines_answers answers = { .to = out };
    size_t g = 0, ready = ngroups < ahead ? ngroups : ahead;

    ROW(lead)(of, keys, 0, ready, far, &r);
#ifdef ROW_BURSTS
    /* A line that comes late delays everything behind it; with many
     * instructions per key that includes the fetching of other lines. So if
     * lines come from memory, one half of the ring is filled, and then the
     * other half is probed. */
    if (bly_lines_beyond(a))
        for (; far && ready + BLY_LINES_FAR <= whole; ready += BLY_LINES_FAR) {
            ROW(lead)(of, keys, ready, ready + BLY_LINES_FAR, far, &r);
            for (const size_t end = g + BLY_LINES_FAR; g < end; g++) {
                ROW(fetch)(&r, g + near, true);
                ROW(step)(&r, g, BLY_LINES_GROUP, &answers, k, add);
            }
        }
#endif
    for (; ready < whole; g++, ready++) {
        row_aim(a, in, ready * BLY_LINES_GROUP, &r);
        /* Fetched one group later than made, as in ROW(lead). If not far, g +
         * near is that group, too. */
        if (far)
            ROW(fetch)(&r, ready - 1, false);
        ROW(fetch)(&r, g + near, true);
        ROW(step)(&r, g, BLY_LINES_GROUP, &answers, k, add);
    }
    if (far && g) /* the last group made has not been fetched yet */
        ROW(fetch)(&r, ready - 1, false);
    if (ready < ngroups) /* the last group is not whole */
        ROW(lead)(of, keys, ready, ngroups, far, &r);
    /* Nothing is left to hash: drain the ring. */
    for (; g < whole; g++) {
        if (g + near < ngroups)
            ROW(fetch)(&r, g + near, true);
        ROW(step)(&r, g, BLY_LINES_GROUP, &answers, k, add);
    }
    if (g < ngroups)
        ROW(step)(&r, g++, rest, &answers, k, add);
    if (ngroups % 8) {
        /* Fewer than eight groups have entered at the top; move them down. */
        answers.word >>= 64 - 8 * (ngroups % 8);
        bly_lines_answer(&answers, add);
    }
    return answers.nclear;
}

/* For k = 8, which most rates have, the other arguments are literals as well;
 * for other k that is not worth the code. Aligned, since calls of eight keys
 * take a quarter more time if the function begins in the middle of a cache
 * line. */
ROW_TARGET static __attribute__((noinline, aligned(64))) uint64_t
ROW(eight)(const bly_lines *a, const bly_lines_keys *in, uint64_t *out,
           bool add, bool far)
{
#define WALK_EIGHT(of, far)                        \
    (add ? ROW(walk)(a, in, out, 8, true, of, far) \
         : ROW(walk)(a, in, out, 8, false, of, far))
    if (in->of == BLY_LINES_FOLDED)
        return far ? WALK_EIGHT(BLY_LINES_FOLDED, true)
                   : WALK_EIGHT(BLY_LINES_FOLDED, false);
    if (in->of == BLY_LINES_INTS)
        return far ? WALK_EIGHT(BLY_LINES_INTS, true)
                   : WALK_EIGHT(BLY_LINES_INTS, false);
    return WALK_EIGHT(BLY_LINES_HASHES, far);
#undef WALK_EIGHT
}

ROW_TARGET static __attribute__((noinline)) uint64_t
ROW(many)(const bly_lines *a, const bly_lines_keys *in, uint64_t *out, bool add)
{
    const bool far = bly_lines_far(a, in->n);
#ifdef ROW_LINES
    if (a->nlines > ROW_LINES) {
        if (add)
            return ROW_LARGE(add)(a, in, out);
        ROW_LARGE(has)(a, in, out);
        return 0;
    }
#endif
    if (a->k == 8)
        return ROW(eight)(a, in, out, add, far);
    if (a->k == 16)
        return add ? ROW(walk)(a, in, out, 16, true, in->of, far)
                   : ROW(walk)(a, in, out, 16, false, in->of, far);
    return add ? ROW(walk)(a, in, out, a->k & 7, true, in->of, far)
               : ROW(walk)(a, in, out, a->k & 7, false, in->of, far);
}

/* A single key skips the ring and the groups: only with few instructions in
 * between can the processor start on the next call before this one is done. */
ROW_INLINE bool ROW(single)(uint64_t *words, uint64_t nlines, unsigned k,
                            uint64_t h, bool add)
{
    uint64_t *const line = words + bly_block_at_(h, nlines);
    const uint64_t g = bly_lines_spread(h, BLY_LINES_C1);
    if (k == 8)
        return row_probe(line, g, 0, 8, add) >> 63;
    /* & 7 tells the compiler that k is neither 8 nor 16 here. */
    if (k < 8)
        return row_probe(line, g, 0, k & 7, add) >> 63;
    return row_probe(line, g, bly_lines_spread(h, BLY_LINES_C2), 16, add) >> 63;
}

ROW_TARGET bool ROW(has_one)(uint64_t *words, uint64_t nlines, unsigned k,
                             uint64_t h)
{
    return ROW(single)(words, nlines, k, h, false);
}

ROW_TARGET bool ROW(add_one)(uint64_t *words, uint64_t nlines, unsigned k,
                             uint64_t h)
{
    return !ROW(single)(words, nlines, k, h, true);
}

/* Up to 64 keys that are not worth fetching ahead (bly_lines_few()): the
 * processor overlaps them by itself, and also the end of this call with the
 * beginning of the next. Bit i of the result: was key i there? k = 8. */
ROW_TARGET static __attribute__((noinline, aligned(64))) uint64_t
ROW(few)(const bly_lines *a, const bly_lines_keys *in, bool add)
{
    uint64_t hits = 0;
    size_t i = 0;
    bly_lines_ring r;
    for (; in->n - i >= BLY_LINES_GROUP; i += BLY_LINES_GROUP)
        row_aim(a, in, i, &r);
    for (size_t j = 0; j < i; j += BLY_LINES_GROUP)
        hits |= (add ? ROW(group)(&r, j, BLY_LINES_GROUP, 8, true)
                     : ROW(group)(&r, j, BLY_LINES_GROUP, 8, false)) >>
                8 << j;
    for (; i < in->n; i++) {
        const uint64_t h = bly_lines_hash(in, i);
        hits |= (uint64_t)(add ? ROW(single)(a->words, a->nlines, 8, h, true)
                               : ROW(single)(a->words, a->nlines, 8, h, false))
                << i;
    }
    return hits;
}

ROW_TARGET void ROW(has)(const bly_lines *a, const bly_lines_keys *in,
                         uint64_t *maybe)
{
    if (in->n == 1)
        *maybe = ROW(has_one)(a->words, a->nlines, a->k, bly_lines_hash(in, 0));
    else if (bly_lines_few(a, in->n))
        *maybe = ROW(few)(a, in, false);
    else
        ROW(many)(a, in, maybe, false);
}

ROW_TARGET uint64_t ROW(add)(const bly_lines *a, const bly_lines_keys *in,
                             uint64_t *fresh)
{
    uint64_t clear;
    if (in->n == 1)
        clear = ROW(add_one)(a->words, a->nlines, a->k, bly_lines_hash(in, 0));
    else if (bly_lines_few(a, in->n))
        clear = ~ROW(few)(a, in, true) & UINT64_MAX >> (64 - in->n);
    else
        return ROW(many)(a, in, fresh, true);
    if (fresh)
        *fresh = clear;
    return (uint64_t)__builtin_popcountll(clear);
}

#undef ROW
#undef ROW_TARGET
#undef ROW_LINES
#undef ROW_LARGE
#undef ROW_BURSTS
#undef row_aim
#undef row_probe
