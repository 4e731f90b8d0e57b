/*
 * out_file.h - a file that appears whole or not at all, or standard output
 */
#ifndef BLY_OUT_FILE_H
#define BLY_OUT_FILE_H

#include <bloomery.h>

struct out_file {
    bly_draft *draft; /* NULL: standard output */
    char *buf;        /* for that one */
    size_t n;
    bool packed;   /* its name ends in .gz */
    bool standard; /* it is standard output */
    bool failed;   /* what follows is not written */
    char why[512]; /* with the name in front */
};

/* What makes bytes fit for a terminal, in place. Set by a program whose
 * standard output is one; NULL: they are written as they are. */
extern void (*out_clean)(void *bytes, size_t n);

/* Begin to write path as bly_draft_new() does, waiting for other writers as
 * `wait` says; "-" is standard output. False with o->why, and nothing to close.
 */
bool out_open(struct out_file *o, const char *path, bly_wait *wait);

/* Append bytes; what goes wrong is in o->why, and told by out_close(). */
void out_put(struct out_file *o, const void *bytes, size_t n);
__attribute__((format(printf, 2, 3))) void out_print(struct out_file *o,
                                                     const char *format, ...);

/* Write nothing more, and fail when it is closed. */
void out_give_up(struct out_file *o, const char *why);

/* Bring it to disk under its name; false with o->why, and what was under the
 * name is as it was. keep false: give up, leave nothing. */
bool out_close(struct out_file *o, bool keep);

#endif
