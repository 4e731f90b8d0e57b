/*
 * index_grep.h - grep, given a text of which it sees what matters
 *
 * Which lines match, and how they are printed, is grep's own business wherever
 * it is not plain: it runs as a process, and reads a text in which blocks
 * without a match are as many empty lines, so that its numbers are right.
 */
#ifndef BLY_INDEX_GREP_H
#define BLY_INDEX_GREP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"

struct grep_run {
    pid_t child;
    int in, out; /* -1: closed */
    bool full;   /* it wants no more */
    struct bytes *to;
    const char *error;
};

/* Run grep with these arguments; what it prints goes to `to`, unless that is
 * NULL. False with run->error. */
bool grep_start(struct grep_run *run, char *const *argv, struct bytes *to);

/* Give it text, or so many empty lines. False: it wants no more, or something
 * is wrong. */
bool grep_give(struct grep_run *run, const void *text, size_t n);
bool grep_skip(struct grep_run *run, uint64_t nlines);

/* Its exit status; 2 if it did not end by itself. */
int grep_end(struct grep_run *run);

#endif
