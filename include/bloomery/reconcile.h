/*
 * bloomery/reconcile.h - what two sets do not share, for bytes in proportion
 * to the difference
 *
 * Beside the filters of bloomery.h, which says what holds here too about
 * failure, ownership, threads and cost. Two sides have sets of elements of 8 to
 * 64 bytes, nearly the same. One side sends coded symbols of its set; the other
 * takes the symbols of its own set from them, and what is left tells the
 * elements that only one of them has, however large the sets are:
 *
 *     bly_coding how = { .width = 8 };
 *     bly_coded *mine;
 *     bly_differ *d;
 *     bly_coded_new(&how, 0, 2000, &mine);          64 KB
 *     bly_coded_add(mine, elements, 1000000);
 *     bly_differ_new(&how, &d);
 *     while (!bly_differ_done(d) && receive(bytes, &nbytes))
 *         if (bly_differ_take(d, mine, bytes, nbytes))
 *             errx(2, "%s", bly_error());
 *     n = bly_differ_elements(d, BLY_THEIRS, &missing_here);
 *
 * The sequence of symbols has no end, and no estimate is needed: the sender
 * goes on until the receiver is done. That takes 1.35 symbols for each
 * difference where there are many, at most 1.7 on average where there are few,
 * at 17 bytes each for elements of 8. A set of a million elements that differs
 * in ten costs 300 bytes.
 *
 * Elements may also be the 64-bit hashes of longer things, which are then
 * fetched by their hashes. Where somebody may choose elements to do harm, both
 * sides need one secret: without it, elements can be chosen so that decoding
 * never ends in success.
 */
#ifndef BLOOMERY_RECONCILE_H
#define BLOOMERY_RECONCILE_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* What both sides agree on. Zero means the default. */
typedef struct bly_coding { /* final */
    size_t width; /* bytes of an element, BLY_CODED_LEAST to _MOST; 0: 8 */
    const unsigned char *secret; /* BLY_SECRET_BYTES, copied; NULL: none */
    /* 0: symbols without end. 3 to 8: a table of a given size, in which an
     * element has that many places (an invertible Bloom lookup table). A table
     * is what its peers in other programs send; it decodes if it has 1.3 cells
     * and more for each difference, and there is no second half to send. */
    unsigned hashes;
    /* Bytes of the checksum that is sent with each symbol, 8 or 4; 0: 8. With
     * 4, a false element is found with a chance of 2^-32 for each symbol, which
     * does where whoever is told of an element notices that there is none. */
    unsigned check;
    const bly_mem *mem; /* outlives what is made with it; NULL: malloc, free */
} bly_coding;

#define BLY_CODED_LEAST 8
#define BLY_CODED_MOST 64
#define BLY_CODED_MOST_SYMBOLS (UINT64_C(1) << 30)

/* ----------------------------------------------------------------- symbols */

/* The symbols `from` to `to` (which is not one of them) of a set. */
typedef struct bly_coded bly_coded;

/* Make those of the empty set. A table has all its cells: from is 0. */
bly_status bly_coded_new(const bly_coding *how, uint64_t from, uint64_t to,
                         bly_coded **out);
void bly_coded_free(bly_coded *c);

/* Put n elements in, `width` bytes each, one behind the other; or take some out
 * that are in. Neither looks whether they were in before: an element that is
 * put in twice is never found as a difference, and stands in the way of others.
 * Some 2 ln(to) symbols change for each. */
bly_status bly_coded_add(bly_coded *c, const void *elements, size_t n);
bly_status bly_coded_remove(bly_coded *c, const void *elements, size_t n);

uint64_t bly_coded_items(const bly_coded *c); /* put in, less taken out */
uint64_t bly_coded_from(const bly_coded *c);
uint64_t bly_coded_to(const bly_coded *c);

/* Some of these symbols as bytes: `bytes` has bly_coded_room(c, to - from),
 * and the answer is how many of them were written; 0 if c has no such
 * symbols, or there are none from `from` to `to`. */
size_t bly_coded_room(const bly_coded *c, uint64_t nsymbols);
size_t bly_coded_write(const bly_coded *c, uint64_t from, uint64_t to,
                       void *bytes);

/* -------------------------------------------------------------- differences */

typedef struct bly_differ bly_differ;

typedef enum bly_side {
    BLY_MINE,  /* elements that only the side has that decodes */
    BLY_THEIRS /* elements that only the side has that sent symbols */
} bly_side;

bly_status bly_differ_new(const bly_coding *how, bly_differ **out);
void bly_differ_free(bly_differ *d);

/* Take the next symbols of the other side, which anybody may have written, and
 * decode as far as they allow. They begin where the last ones ended, and
 * `mine` has the same symbols of this side's set. It is quickest to take as
 * many at once as there were before, or a fixed share of that.
 *
 * BLY_EUNFIT where they do not follow, or mine lacks them, and BLY_EFORMAT for
 * bytes that are no symbols; d is as it was then. BLY_EFORMAT also where
 * decoding shows that they are of no set: d then takes no more. */
bly_status bly_differ_take(bly_differ *d, const bly_coded *mine,
                           const void *bytes, size_t nbytes);

/* Are all differences known? Then elements of either side are all there are,
 * but for a chance of about 2^-64 for each. Before that, they are what was
 * found so far. */
bool bly_differ_done(const bly_differ *d);

/* How many symbols came, and the elements that were found so far on one side,
 * borrowed from d until it takes more. */
uint64_t bly_differ_symbols(const bly_differ *d);
size_t bly_differ_elements(const bly_differ *d, bly_side side,
                           const void **elements);

/* ---------------------------------------------------------------- estimates */

/* About how large a difference is, before anything is chosen by it: tables of
 * samples of the set, each a quarter of the one before (Eppstein, Goodrich,
 * Uyeda and Varghese, What's the Difference?, 2011). 7 KB tell d to a third or
 * so. */
typedef struct bly_strata bly_strata;

bly_status bly_strata_new(const bly_coding *how, bly_strata **out);
void bly_strata_free(bly_strata *s);
bly_status bly_strata_add(bly_strata *s, const void *elements, size_t n);

/* The same in a third of the time, for new strata and all n elements of a set
 * of which `all` has symbols already, 32 of them and more from 0 on. */
bly_status bly_strata_add_coded(bly_strata *s, const bly_coded *all,
                                const void *elements, size_t n);
size_t bly_strata_room(const bly_strata *s);
size_t bly_strata_write(const bly_strata *s, void *bytes);

/* The estimate of how many elements differ from those of the set whose strata
 * came as bytes. */
bly_status bly_strata_estimate(const bly_strata *mine, const void *bytes,
                               size_t nbytes, uint64_t *differences);

/* ----------------------------------------------------------------- outlines */

/* Most of what the other side lacks, from an outline of its set: for elements
 * that are 64-bit hashes, sorted and different, as bly_elements_sort() leaves
 * them. What is found is never wrong; a share of it is missed.
 *
 * An outline is a filter of the elements and, where it has inner bits, one of
 * the inner nodes of a tree over them (an approximate reconciliation tree:
 * Byers, Considine, Mitzenmacher and Rost, 2002). With the filter alone the
 * other side asks for all its elements; with the tree it leaves out branches
 * that both have, and looks at d log n nodes. */
typedef struct bly_outline bly_outline;

typedef struct bly_outline_spec { /* final */
    double leaf_bits;             /* per element; 0: 8 */
    double inner_bits;            /* per element, for the tree; 0: no tree */
    const bly_mem *mem;           /* outlives it; NULL: malloc, free */
} bly_outline_spec;

/* Sort n elements and drop repeated ones; *n becomes how many are left. */
bly_status bly_elements_sort(uint64_t *elements, size_t *n);

/* Make an outline of n elements. spec NULL: a filter of 8 bits. BLY_EINVAL for
 * elements that are not sorted and different, and for more than 64 bits. */
bly_status bly_outline_new(const bly_outline_spec *spec,
                           const uint64_t *elements, size_t n,
                           bly_outline **out);
void bly_outline_free(bly_outline *o);

/* As bytes; and from bytes that anybody may have written. */
size_t bly_outline_written_bytes(const bly_outline *o);
void bly_outline_write(const bly_outline *o, void *bytes);
bly_status bly_outline_load(const void *bytes, size_t nbytes,
                            const bly_mem *mem, bly_outline **out);

/* Which of n elements the set of the outline certainly lacks: `lacking` has
 * room for n of them. A branch is taken for one that both have when correction
 * + 1 nodes of a path, one below the other, are in the filter of inner nodes:
 * more of it finds more, and looks at more nodes. visited, unless NULL, gets
 * how many these were. */
bly_status bly_outline_lacking(const bly_outline *theirs,
                               const uint64_t *elements, size_t n,
                               unsigned correction, uint64_t *lacking,
                               size_t *nlacking, uint64_t *visited);

BLY_END_DECLS
#endif
