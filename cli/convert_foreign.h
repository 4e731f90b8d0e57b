/*
 * convert_foreign.h - filters into formats of other systems, and out of them
 */
#ifndef BLY_CONVERT_FOREIGN_H
#define BLY_CONVERT_FOREIGN_H

#include "io/foreign_files.h"
#include "io/sizing.h"

struct foreign_conversion {
    const char *path, *output;
    const char *to; /* a format; NULL: one of our own kinds */
    const struct sizing *sizing;
    const struct keys *keys;
    uint64_t threads;
    bool json;
};

/* Convert what file holds, or, where that is nothing, our own filter in path:
 * an exit status. */
int convert_foreign(const struct foreign_conversion *c,
                    const struct foreign_file *file, const bly_access *how);

/* Tell what was made: from a kind, if not NULL, and with keys, if read. */
void convert_report(FILE *to, bool json, const char *output, const char *from,
                    const struct job *job, const bly_filter *f);
extern const struct field converted_fields[];

#endif
