/*
 * coded.h - symbols of sets: cells, and the cells of an element
 *
 * A cell is words in memory:
 *
 *     count      elements in it, those of one side less those of the other
 *     check      XOR of their hashes
 *     sum        XOR of the elements, in whole words, padded with zeros
 */
#ifndef BLY_CODED_H
#define BLY_CODED_H

#include <math.h>

#include <bloomery/reconcile.h>

#include "core/bits.h"
#include "core/bytes.h"

#define CODED_WORDS_MOST (BLY_CODED_MOST / 8)
#define CODED_PHI UINT64_C(0x9e3779b97f4a7c15)

/* The agreement, checked, with what follows from it. */
typedef struct coded_rules {
    bly_mem mem;
    bly_hasher hasher;
    size_t width;     /* bytes of an element */
    size_t nwords;    /* of an element in memory */
    size_t stride;    /* words of a cell */
    unsigned hashes;  /* cells of an element in a table; 0: without end */
    unsigned ncheck;  /* bytes of a check that are sent */
    uint64_t checked; /* the bits of these */
} coded_rules;

bly_status bly_coded_rules(const bly_coding *how, coded_rules *out);

/* The cells of an element, in order. */
typedef struct coded_walk {
    uint64_t s;  /* generator */
    uint64_t at; /* the cell */
} coded_walk;

#define CODED_END UINT64_MAX

/* The cells of an element in a sequence without end grow rare: the next one
 * after i is past j with probability
 *
 *     ((i + 2.5) / (j + 2.5))^2
 *
 * so it is the least j above i with (2j + 5)^2 u >= (2i + 5)^2, where u =
 * r / 2^32 is uniform in (0, 1]. That is how it is defined, in whole numbers,
 * so that all machines agree. (The published constant is 1.5 [1]. It takes as
 * many symbols where much differs, and more where little does: at five elements
 * 1.77 for each in 40,000 trials, against 1.73 with 2.5, before pairs of cells
 * are looked at; 2 and 3 are worse, too.)
 *
 * [1] Yang, Gilad and Alizadeh, Practical Rateless Set Reconciliation, 2024 */
static inline bool coded_passes(uint64_t i, uint64_t j, uint64_t r)
{
    const uint64_t a = (2 * j + 5) * (2 * j + 5), b = (2 * i + 5) * (2 * i + 5);
    const uint64_t high = bly_mulhi(a, r);
    return high > b >> 32 || (high == b >> 32 && a * r >= b << 32);
}

uint64_t bly_coded_exact(uint64_t i, uint64_t guess, uint64_t r);

/* The square root in floating point finds it, but for numbers so near to a
 * whole one that rounding could have moved them across: 2^-16 is far more than
 * rounding moves one below 2^31, on x87 too, and all further ones are past the
 * end. */
static inline uint64_t coded_next(uint64_t i, uint64_t r)
{
    const double j = ((double)i + 2.5) * sqrt(0x1p32 / (double)r) - 2.5;
    if (!(j < (double)BLY_CODED_MOST_SYMBOLS))
        return CODED_END;
    const double whole = (double)(uint64_t)j, rest = j - whole;
    const uint64_t guess = (uint64_t)j + 1;
    return rest > 0x1p-16 && rest < 1 - 0x1p-16 ? guess
                                                : bly_coded_exact(i, guess, r);
}

static inline uint64_t coded_draw(coded_walk *w)
{
    return bly_mix64(w->s += CODED_PHI);
}

/* The first cell of an element with hash h, in `cells` where it is a table: a
 * part of it for each of its places. */
static inline coded_walk coded_first(unsigned hashes, uint64_t cells,
                                     uint64_t h)
{
    coded_walk w = { .s = bly_mix64(h ^ CODED_PHI) };
    if (hashes)
        w.at = bly_scale(coded_draw(&w), cells / hashes);
    return w;
}

static inline void coded_step(coded_walk *w, unsigned hashes, uint64_t cells)
{
    if (!hashes) {
        w->at = coded_next(w->at, (coded_draw(w) >> 32) + 1);
        return;
    }
    const uint64_t part = cells / hashes, next = w->at / part + 1;
    w->at = next < hashes ? next * part + bly_scale(coded_draw(w), part)
                          : CODED_END;
}

/* Put an element in (sign 1) or take it out (-1). */
static inline void coded_apply(uint64_t *cell, const uint64_t *element,
                               size_t nwords, uint64_t h, int64_t sign)
{
    cell[0] += (uint64_t)sign;
    cell[1] ^= h;
    for (size_t w = 0; w < nwords; w++)
        cell[2 + w] ^= element[w];
}

/* How many of n elements cell i holds on average. What is written is how far
 * the count is from that, which takes a byte or two. */
static inline uint64_t coded_expected(unsigned hashes, uint64_t cells,
                                      uint64_t n, uint64_t i)
{
    if (hashes)
        return n / (cells / hashes);
    return i ? n / (i + 3) * 2 : n;
}

/* An element as words: its bytes in order, in memory. */
static inline void coded_element(const coded_rules *r, const void *element,
                                 uint64_t *words)
{
    words[r->nwords - 1] = 0;
    memcpy(words, element, r->width);
}

struct bly_coded {
    coded_rules rules;
    uint64_t from, to;
    uint64_t items; /* modulo 2^64 */
    uint64_t *cells;
};

/* Symbols that came as bytes: where each begins is found by reading on. */
typedef struct coded_bytes {
    const unsigned char *at, *end;
    uint64_t from, to, cells, items;
} coded_bytes;

/* What stands in front of them; false if it cannot be. And the next cell. */
bool bly_coded_head(const coded_rules *r, const void *bytes, size_t nbytes,
                    coded_bytes *out);
bool bly_coded_read(const coded_rules *r, coded_bytes *b, uint64_t i,
                    uint64_t *cell);

#endif
