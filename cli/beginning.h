/*
 * beginning.h - what all keys of a range filter of text begin with
 */
#ifndef BLY_CLI_BEGINNING_H
#define BLY_CLI_BEGINNING_H

#include "io/keys.h"

/* How keys fall together in the eight bytes that a range filter looks at. */
struct beginning {
    double keys;    /* different ones, about; 0: nobody looked */
    size_t skipped; /* bytes that all of them begin with, left out */
};

/* Before the keys of in are built into b, of kind range: if they are text, read
 * them once; where many of them agree in their first eight bytes, and all of
 * them begin alike, let b leave the beginning out. in is then as it was, though
 * what it had to say was said. False, with the reason printed. */
bool beginning_find(struct input *in, const bly_spec *spec, unsigned nthreads,
                    bly_builder *b, struct beginning *out);

/* Warn if many keys still fall together in the filter of s. */
void beginning_warn(const struct beginning *g, const char *path,
                    const bly_stats *s);

#endif
