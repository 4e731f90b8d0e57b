/*
 * walk.h - the keys of a block, batch by batch, as a command gets them
 *
 * Where lines are keys, the cutter gives them; where a key is a part of its
 * line, or takes another form, a `picking` (picker.h) does, with the lines and
 * their numbers beside them.
 */
#ifndef BLY_IO_WALK_H
#define BLY_IO_WALK_H

#include "io/normal.h"
#include "io/picker.h"
#include "io/pipeline.h"

struct walk {
    /* The caller's: places for max of each. */
    bly_bytes *keys, *lines;
    uint32_t *numbers;
    size_t max;

    struct cutter cutter;
    struct picking *picking; /* NULL: lines are keys */
    uint64_t nlines;         /* up to the end of the batch, where it is NULL */
};

/* Is a key more, or less, than a line? */
static inline bool walk_picks(const struct input *in)
{
    return in->picker || normal_any(&in->normal);
}

static inline void walk_start(struct walk *walk, const struct input *in,
                              struct picking *picking, const struct block *b)
{
    walk->picking = walk_picks(in) ? picking : NULL;
    walk->nlines = 0;
    if (walk->picking)
        picking_start(picking, in, b);
    else
        walk->cutter = cutter_start(b->at, b->len, in->separator);
}

/* The next keys, lines and numbers of b; false at the end. */
static inline bool walk_next(struct walk *walk, struct batch *b)
{
    b->keys = b->lines = walk->keys;
    b->numbers = NULL;
    if (walk->picking) {
        b->lines = walk->lines;
        b->numbers = walk->numbers;
        b->n = picking_next(walk->picking, walk->keys, walk->lines,
                            walk->numbers, walk->max);
    } else {
        b->first = walk->nlines;
        b->n = cutter_next(&walk->cutter, walk->keys, walk->max);
        walk->nlines += b->n;
    }
    return b->n;
}

/* Bring the keys of a batch into their form; b->n may become less, even 0.
 * values may be NULL. */
static inline void walk_normal(struct walk *walk, struct batch *b,
                               uint64_t *values)
{
    if (walk->picking && normal_any(&walk->picking->in->normal))
        b->n = picking_normal(walk->picking, walk->keys, walk->lines,
                              walk->numbers, values, b->n);
}

/* How many lines were walked so far? */
static inline uint64_t walk_lines(const struct walk *walk)
{
    return walk->picking ? walk->picking->nlines : walk->nlines;
}

#endif
