/*
 * notes.h - what a filter says of its keys, on command lines and in reports
 */
#ifndef BLY_IO_META_H
#define BLY_IO_META_H

#include "report/fields.h"
#include "report/words.h"

/* Options: a note, and pairs NAME=VALUE. */
struct meta_args {
    const char *note; /* NULL: none given; "": take it away */
    struct list pairs;
};

/* Could these be said? False, with the reason printed: before anything is
 * read. A name without a value takes a pair away, where there may be one. */
bool meta_check(const struct meta_args *m, bool removes);

/* Let f say them. Prints nothing. */
bly_status meta_set(const struct meta_args *m, bly_filter *f);

/* All of it, for a report. */
struct meta {
    const bly_filter *f;  /* whose it is */
    const char *key_type; /* NULL: not known */
    bool folded, trimmed, no_cr;
    char note[BLY_NOTE_MOST + 1];
    size_t npairs, unknown;
    char keys[80], pairs[4096]; /* for people */
};

struct meta meta_of(const bly_filter *f);
extern const struct field meta_fields[];
#define META_TEXT                      \
    "[  type of keys~{?type}{type}\n]" \
    "[  note~{?note}{note}\n]"         \
    "[  metadata~{?pairs}{pairs}\n]"   \
    "[  also~{?meta_unknown}{meta_unknown} entries of a newer bloomery\n]"

/* What is lost where there is no place for it: "that its keys are int64, its
 * note"; an empty text if nothing. */
const char *meta_lost(const bly_filter *f);

#endif
