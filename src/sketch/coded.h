/*
 * coded.h - symbols of sets: cells, and the cells of an element
 *
 * A cell is words in memory:
 *
 *     count      elements in it, those of one side less those of the other
 *     check      XOR of their hashes
 *     mark       for whoever decodes; a cell of 8-byte elements has 32 bytes
 *                with it, and never lies in two cache lines
 *     sum        XOR of the elements, in whole words, padded with zeros
 */
#ifndef BLY_CODED_H
#define BLY_CODED_H

#include <bloomery/reconcile.h>

#include "core/bits.h"
#include "core/bytes.h"
#include "core/memory.h"
#include "engine/walks.h"

#define CODED_WORDS_MOST (BLY_CODED_MOST / 8)
#define CODED_MARK 2
#define CODED_SUM 3 /* and the words in front of it */

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

/* Do symbols of both go together? */
bool bly_coded_alike(const coded_rules *a, const coded_rules *b);

/* The hashes of n elements. */
void bly_coded_hashes(const coded_rules *r, const void *elements, size_t n,
                      uint64_t *h);

/* The cells of an element, in order. */
typedef struct coded_walk {
    uint64_t s;  /* generator */
    uint64_t at; /* the cell */
} coded_walk;

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
        cell[CODED_SUM + w] ^= element[w];
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
    bly_block block;
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
