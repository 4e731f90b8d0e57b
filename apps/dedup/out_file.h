/*
 * out_file.h - a file that appears whole or not at all
 */
#ifndef BLY_OUT_FILE_H
#define BLY_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out_file {
    int fd;
    char *path, *temp; /* temp NULL: written where it is */
    char *buf;
    size_t n;
    int error; /* the first errno; what follows is not written */
};

/* Begin to write path, "-" being standard output. Beside a regular file, or
 * where there is none, a temporary file is written; a device or a pipe is
 * written itself. False with o->error. */
bool out_open(struct out_file *o, const char *path);

/* Append bytes; what goes wrong is told by out_close(). */
void out_put(struct out_file *o, const void *bytes, size_t n);
__attribute__((format(printf, 2, 3))) void out_print(struct out_file *o,
                                                     const char *format, ...);

/* Bring it to disk under its name; false with o->error, and what was under the
 * name is as it was. keep false: give up, leave nothing. */
bool out_close(struct out_file *o, bool keep);

#endif
