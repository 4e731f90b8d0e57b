/*
 * explain.h - a small filter, step by step
 *
 * An array of m cells and hash functions as one writes them (expression.h);
 * steps add, remove and ask for whole numbers, and each keeps what the array
 * was after it. What the cells mean, and what else there is, depends on the
 * way.
 */
#ifndef BLY_EXPLAIN_H
#define BLY_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum explain_way {
    EXPLAIN_BITS,       /* Bloom's filter */
    EXPLAIN_COUNTING,   /* counters, so that keys can be removed */
    EXPLAIN_INCREMENTS, /* counters that grow by 8, 12, 14 or 15 */
    EXPLAIN_DELETABLE,  /* bits, and regions in which keys have met */
    EXPLAIN_FLOOM,      /* bits, and the patterns of regions that occurred */
    EXPLAIN_SCALABLE,   /* layers of bits, each twice as large as the last */
    EXPLAIN_CUCKOO,     /* a fingerprint per key, in one of two cells */
    EXPLAIN_NWAYS,
};
extern const char *const explain_ways[EXPLAIN_NWAYS]; /* their names */

/* Cells whose keys can be taken out again, more or less. */
bool explain_removes(enum explain_way way);

enum explain_op { EXPLAIN_ADD, EXPLAIN_REMOVE, EXPLAIN_HAS, EXPLAIN_MOVE };

struct explain_step {
    enum explain_op op;
    uint64_t key;     /* of a move: the fingerprint */
    bool maybe;       /* the answer about the key before the step */
    bool there;       /* the key was in the set before the step */
    bool undone;      /* a key for which there was no room */
    char label[40];   /* "add 4" */
    char result[120]; /* "no: 20 - 14 = 6 is not a sum of 8, 12, 14 and 15" */
    unsigned *cells;  /* after it; EXPLAIN_MAX_CELLS */
    size_t *touched;  /* cells that were looked at */
    size_t ntouched;
};

#define EXPLAIN_MAX_CELLS 1000
#define EXPLAIN_MAX_HASHES 16
#define EXPLAIN_MAX_STEPS 1000
#define EXPLAIN_MAX_REGIONS 10 /* 2^10 patterns */

struct explain {
    size_t m; /* cells, up to EXPLAIN_MAX_CELLS; scalable: of all layers */
    enum explain_way way;
    size_t regions; /* of deletable and Floom; 0: 5 */
    size_t items;   /* scalable: keys per layer; 0: 3 */
    size_t nhashes; /* up to EXPLAIN_MAX_HASHES */
    const char *hashes[EXPLAIN_MAX_HASHES];
    struct explain_step *steps;
    size_t nsteps, room;

    /* What the ways keep beside the cells: a flag for each region, or each
     * pattern; layers, and keys in the last one. */
    bool marks[1 << EXPLAIN_MAX_REGIONS];
    size_t first_m, layer, nlast;
};

/* Do one more step. False, with the reason printed, if it cannot be done. */
bool explain_step(struct explain *e, enum explain_op op, uint64_t key);

/* explain_print.c: print all steps, or draw them into a file; false with errno.
 */
void explain_print(const struct explain *e);
bool explain_draw(const struct explain *e, const char *title,
                  const char *caption, const char *path);

/* Release the steps. */
void explain_free(struct explain *e);

/* Between explain.c and explain_ways.c. */

/* What a way does with a step whose cells are those of the step before; it
 * says what came of it. False, with the reason printed. */
typedef bool explain_act(struct explain *e, struct explain_step *s);
extern explain_act *const explain_acts[EXPLAIN_NWAYS];

/* The cells that the hash functions name among m, from cell first on. */
bool explain_find(const struct explain *e, struct explain_step *s, size_t m,
                  size_t first);
/* One hash function at x, modulo m. */
bool explain_hash(const struct explain *e, size_t function, uint64_t x,
                  size_t m, size_t *value);
/* Is the ith cell of a step named by a function before? Then it counts once. */
bool explain_repeated(const struct explain_step *s, size_t i);
/* Begin a step with the cells of the last one, and keep it. */
bool explain_begin_step(const struct explain *e, struct explain_step *s,
                        enum explain_op op, uint64_t key);
void explain_keep(struct explain *e, const struct explain_step *s);
void explain_says(struct explain_step *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
