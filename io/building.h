/*
 * building.h - a filter from the keys of an input, saved and told
 */
#ifndef BLY_IO_BUILDING_H
#define BLY_IO_BUILDING_H

#include "io/filters.h"
#include "io/notes.h"
#include "io/pipeline.h"

/* What was made of how many keys. */
struct built {
    const char *file;
    uint64_t keys, others;
    struct made made;
    bool estimated;
};
extern const struct field built_fields[];

/* Where it goes, and how that is told. */
struct building {
    const char *output;           /* "-": standard output */
    const struct meta_args *meta; /* NULL: nothing is noted */
    bool json;
};

/* Read all of in into a filter; job needs no more than its threads, and says
 * what was read. NULL, with the reason printed. */
bly_filter *built_filter(const bly_spec *spec, struct input *in,
                         struct job *job, bool *estimated);

/* Save f, which is released, and tell what it is, which is in *s too, unless
 * told to be quiet. YES, or TROUBLE with the reason printed. */
int built_save(bly_filter *f, const struct building *how, const struct job *job,
               uint64_t nothers, bool estimated, bly_stats *s);

/* Messages that all builders share. */
#define BUILT_NOTHING                                                        \
    "no keys in the input; to make an empty filter, give its capacity with " \
    "--items"

#endif
