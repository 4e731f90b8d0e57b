/*
 * paths.h - what a path is, before anything is read or written there
 */
#ifndef BLY_IO_PATHS_H
#define BLY_IO_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool is_dash(const char *path);

/* Does path name what is open as standard input, or output? "-" does. */
bool is_stdin(const char *path);
bool is_stdout(const char *path);

/* Are the two one regular file? "-" is the standard stream of its side. */
bool is_same_file(const char *output, const char *input);

/* Asked before a long run. Could a filter be written to path at all, with a
 * report beside it? False, with the reason printed, if not. */
bool output_works(const char *path, bool json);

/* Would a filter written to output take the place of one of n inputs, "-" being
 * standard input? False, with the reason printed, if it would. A NULL is no
 * input. */
bool output_spares(const char *output, const char *const *inputs, size_t n);

/* Where the report goes for people: not among the bytes of the filter. To be
 * asked before output is replaced, and is another file. */
FILE *report_to(const char *output);

/* Can the filter in path be changed there? False, with the reason printed, if
 * not. */
bool can_change(const char *path);

#endif
