/*
 * unique.h - the lines of a stream, each the first time it comes
 */
#ifndef BLY_UNIQUE_H
#define BLY_UNIQUE_H

#include "io/keys.h"
#include "report/fields.h"

struct unique_report {
    const char *file; /* NULL: the filter is not kept */
    uint64_t lines, printed;
    double swallowed; /* estimate; NAN: the kind cannot tell */
    bly_stats filter; /* at the end */
};
extern const struct field unique_fields[];

struct unique_options {
    const char *path;            /* where the filter is kept; NULL: nowhere */
    const unsigned char *secret; /* of a keyed filter */
    bly_spec spec;               /* of a new one */
    unsigned nthreads;
    uint64_t every;  /* seconds between two versions of the filter on disk */
    char terminator; /* of printed lines */

    /* Says what came of it: at the end, and before a signal ends the run. */
    void (*tell)(const struct unique_report *r);
};

/* Print the lines of in that were not seen before: an exit status. */
int unique(const struct unique_options *opt, struct input *in);

#endif
