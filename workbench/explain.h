/*
 * explain.h - a small filter, step by step
 *
 * An array of m cells and hash functions as one writes them (expression.h);
 * steps add, remove and ask for whole numbers, and each keeps what the array
 * was after it.
 */
#ifndef BLY_EXPLAIN_H
#define BLY_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum explain_op { EXPLAIN_ADD, EXPLAIN_REMOVE, EXPLAIN_HAS };

struct explain_step {
    enum explain_op op;
    uint64_t key;
    bool maybe;     /* all its cells were in use before the step */
    bool there;     /* the key was in the set before the step */
    char label[40]; /* "add 4" */
    const char *result;
    unsigned *cells; /* after it */
    size_t *touched; /* a cell for each hash function */
};

#define EXPLAIN_MAX_CELLS 1000
#define EXPLAIN_MAX_HASHES 16

struct explain {
    size_t m;       /* cells, up to EXPLAIN_MAX_CELLS */
    bool counting;  /* cells are counters: keys can be removed */
    size_t nhashes; /* up to EXPLAIN_MAX_HASHES */
    const char *hashes[EXPLAIN_MAX_HASHES];
    struct explain_step *steps;
    size_t nsteps, room;
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

#endif
