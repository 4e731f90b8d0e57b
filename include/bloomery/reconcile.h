/*
 * bloomery/reconcile.h - find the differences between two sets, sending bytes
 * in proportion to the differences
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. Two sides have sets of elements of 8 to 64 bytes that are nearly the
 * same. One side sends coded symbols of its set. The other side subtracts
 * the symbols of its own set; what is left gives the elements that only one
 * side has, however large the sets are:
 *
 *     bly_coding how = { .width = 8 };
 *     bly_coded *mine;
 *     bly_differ *d;
 *     if (bly_coded_new(&how, 0, 2000, &mine) ||              64 KB
 *         bly_coded_add(mine, elements, 1000000) ||
 *         bly_differ_new(&how, &d))
 *         errx(2, "%s", bly_error());
 *     while (!bly_differ_done(d) && receive(bytes, &nbytes))
 *         if (bly_differ_take(d, mine, bytes, nbytes))
 *             errx(2, "%s", bly_error());
 *     n = bly_differ_elements(d, BLY_THEIRS, &missing_here);
 *
 * The sequence of symbols has no end, and no estimate is needed: the sender
 * goes on until the receiver is done. That takes 1.35 symbols per difference if
 * there are many differences, and at most 1.7 on average if there are few. A
 * symbol takes 17 bytes for elements of 8. If two sets of a million elements
 * differ in ten, that costs 300 bytes.
 *
 * Elements may also be the 64-bit hashes of longer things, which are then
 * fetched by their hashes. If an adversary may choose elements, both sides need
 * a common secret: without it, elements can be chosen so that decoding never
 * succeeds.
 */
#ifndef BLOOMERY_RECONCILE_H
#define BLOOMERY_RECONCILE_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* What both sides must agree on. Zero in any field means the default. */
typedef struct bly_coding { /* final */
    size_t width; /* bytes per element, BLY_CODED_LEAST to _MOST; 0: 8 */
    const unsigned char *secret; /* BLY_SECRET_BYTES, copied; NULL: none */
    /* 0: symbols without end. 3 to 8: a table of a given size, in which an
     * element has that many places (an invertible Bloom lookup table). Other
     * programs of this sort send tables. A table of 1.5 cells per difference,
     * and 20 more, decodes in 99 of 100 cases (docs/reconcile.md); if that
     * fails, there are no further symbols to send. */
    unsigned hashes;
    /* Bytes of the checksum that is sent with each symbol, 8 or 4; 0: 8. With
     * 4, each symbol gives a false element with a chance of 2^-32. That is good
     * enough if whoever is told of an element notices when it does not
     * exist. */
    unsigned check;
    const bly_mem *mem; /* must outlive all made with it; NULL: malloc, free */
} bly_coding;

#define BLY_CODED_LEAST 8
#define BLY_CODED_MOST 64
#define BLY_CODED_MOST_SYMBOLS (UINT64_C(1) << 30)

/* ----------------------------------------------------------------- symbols */

/* The symbols of a set from number `from` up to, but not including, `to`. */
typedef struct bly_coded bly_coded;

/* Make those symbols of the empty set. They belong to the caller until
 * bly_coded_free(). A table has all its cells, so `from` must be 0. */
bly_status bly_coded_new(const bly_coding *how, uint64_t from, uint64_t to,
                         bly_coded **out);
void bly_coded_free(bly_coded *c);

/* Add n elements, `width` bytes each, one after another; or remove elements
 * that are in the set. Neither checks what is in the set: an element that is
 * added twice is never found as a difference, and gets in the way of others.
 * Each element changes some 2 ln(to) symbols. */
bly_status bly_coded_add(bly_coded *c, const void *elements,
                         size_t n) BLY_MUST_CHECK;
bly_status bly_coded_remove(bly_coded *c, const void *elements,
                            size_t n) BLY_MUST_CHECK;

uint64_t bly_coded_items(const bly_coded *c); /* added, less removed */
uint64_t bly_coded_from(const bly_coded *c);
uint64_t bly_coded_to(const bly_coded *c);

/* Write the symbols from number `from` up to, but not including, `to` as bytes.
 * `bytes` has room for bly_coded_room(c, to - from). Returns the number of
 * bytes written; 0 if c does not have these symbols, or the range is empty. */
size_t bly_coded_room(const bly_coded *c, uint64_t nsymbols);
size_t bly_coded_write(const bly_coded *c, uint64_t from, uint64_t to,
                       void *bytes);

/* -------------------------------------------------------------- differences */

typedef struct bly_differ bly_differ;

typedef enum bly_side {
    BLY_MINE,  /* elements that only the decoding side has */
    BLY_THEIRS /* elements that only the side that sent symbols has */
} bly_side;

bly_status bly_differ_new(const bly_coding *how, bly_differ **out);
void bly_differ_free(bly_differ *d);

/* Take the next symbols of the other side, which anyone may have written, and
 * decode as far as they allow. They must begin where the last ones ended, and
 * `mine` must have the same symbols of this side's set. It is fastest to take
 * as many symbols at a time as came before, or a fixed share of that.
 *
 * BLY_EUNFIT if the symbols do not follow the last ones, or `mine` lacks them;
 * BLY_EFORMAT if the bytes are not symbols. d is then unchanged. BLY_EFORMAT
 * also if decoding shows that they are not the symbols of any set; d then takes
 * no more. */
bly_status bly_differ_take(bly_differ *d, const bly_coded *mine,
                           const void *bytes, size_t nbytes);

/* Are all differences known? If so, bly_differ_elements() gives all of them,
 * with a chance of error of about 2^-64 for each. Before that, it gives those
 * that were found so far. */
bool bly_differ_done(const bly_differ *d);

/* How many symbols came; and the elements found so far on one side. Returns
 * their number. *elements belongs to d and is valid until d takes more
 * symbols. */
uint64_t bly_differ_symbols(const bly_differ *d);
size_t bly_differ_elements(const bly_differ *d, bly_side side,
                           const void **elements);

/* ---------------------------------------------------------------- estimates */

/* An estimate of how many elements differ, for choosing a method or a size
 * before reconciling. Strata are tables of samples of the set, each a quarter
 * as large as the one before (Eppstein, Goodrich, Uyeda and Varghese, What's
 * the Difference?, 2011). 7 KB give the number to within a third or so. */
typedef struct bly_strata bly_strata;

bly_status bly_strata_new(const bly_coding *how, bly_strata **out);
void bly_strata_free(bly_strata *s);
bly_status bly_strata_add(bly_strata *s, const void *elements,
                          size_t n) BLY_MUST_CHECK;

/* The same in a third of the time, if symbols of the set exist already. s must
 * be new, `elements` must be all n elements of the set, and `all` must hold its
 * symbols from 0 on, at least 32 of them. */
bly_status bly_strata_add_coded(bly_strata *s, const bly_coded *all,
                                const void *elements, size_t n) BLY_MUST_CHECK;
size_t bly_strata_room(const bly_strata *s);
size_t bly_strata_write(const bly_strata *s, void *bytes);

/* Estimate how many elements differ between this set and the set whose strata
 * came as bytes. */
bly_status bly_strata_estimate(const bly_strata *mine, const void *bytes,
                               size_t nbytes, uint64_t *differences);

/* ----------------------------------------------------------------- outlines */

/* An outline of a set finds most of the elements that the set lacks. It is for
 * elements that are 64-bit hashes, sorted and distinct, as bly_elements_sort()
 * leaves them. What it finds is never wrong, but it misses some.
 *
 * An outline is a filter of the elements. If it has inner bits, there is also a
 * filter of the inner nodes of a tree over the elements (an approximate
 * reconciliation tree: Byers, Considine, Mitzenmacher and Rost, 2002). With the
 * first filter alone, the other side asks for each of its elements. With the
 * tree it skips branches that both sides have, and looks at d log n nodes for d
 * differences. */
typedef struct bly_outline bly_outline;

typedef struct bly_outline_spec { /* final */
    double leaf_bits;             /* per element; 0: 8 */
    double inner_bits;            /* per element, for the tree; 0: no tree */
    const bly_mem *mem;           /* must outlive it; NULL: malloc, free */
} bly_outline_spec;

/* Sort *n elements and drop repeated ones; *n becomes the number that is
 * left. */
bly_status bly_elements_sort(uint64_t *elements, size_t *n);

/* Make an outline of n elements, which belongs to the caller until
 * bly_outline_free(). spec NULL: a filter of 8 bits per element. BLY_EINVAL if
 * the elements are not sorted and distinct, and for more than 64 bits. */
bly_status bly_outline_new(const bly_outline_spec *spec,
                           const uint64_t *elements, size_t n,
                           bly_outline **out);
void bly_outline_free(bly_outline *o);

/* An outline as bytes; and from bytes that anyone may have written. */
size_t bly_outline_written_bytes(const bly_outline *o);
void bly_outline_write(const bly_outline *o, void *bytes);
bly_status bly_outline_load(const void *bytes, size_t nbytes,
                            const bly_mem *mem, bly_outline **out);

/* Which of n elements the other side's set certainly lacks. `lacking` has room
 * for n elements; *nlacking becomes their number. A branch is taken for common,
 * and skipped, when correction + 1 nodes on a path, one below the other, are in
 * the filter of inner nodes. A higher correction finds more, and looks at more
 * nodes. *visited, unless NULL, becomes the number of nodes. */
bly_status bly_outline_lacking(const bly_outline *theirs,
                               const uint64_t *elements, size_t n,
                               unsigned correction, uint64_t *lacking,
                               size_t *nlacking, uint64_t *visited);

BLY_END_DECLS
#endif
