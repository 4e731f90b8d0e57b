/*
 * suffixes.h - the names that anyone can register below: com, co.uk, github.io
 *
 * From a file as https://publicsuffix.org publishes it. Who asks for a name
 * asks for those above it down to one label more than its public suffix; and a
 * list has no business to hold a public suffix itself.
 */
#ifndef BLY_URLS_SUFFIXES_H
#define BLY_URLS_SUFFIXES_H

#include "io/text_set.h"

struct suffixes {
    struct text_set rules; /* name, *.name, !name */
};

/* False, with the reason printed, if the file cannot be read or holds no rules.
 */
bool suffixes_read(struct suffixes *s, const char *path);
void suffixes_free(struct suffixes *s);

/* How many labels of a name are its public suffix: 1 where no rule fits. */
size_t suffix_labels(const struct suffixes *s, const char *name, size_t n);

#endif
