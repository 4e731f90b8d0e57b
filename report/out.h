/*
 * out.h - bytes to standard output
 */
#ifndef BLY_REPORT_OUT_H
#define BLY_REPORT_OUT_H

#include <stdbool.h>
#include <stddef.h>

/* All of it to standard output, past stdio; 0, or an errno. */
int out_write(const void *bytes, size_t n);

/* A key, or what else is data, to standard output: the bytes as they are, and
 * clean where that is a terminal. */
bool out_is_terminal(void);
void print_key(const void *key, size_t n);
void print_key_end(bool nul); /* a NUL, or a newline */

/* Send what stdio still holds and report what went wrong with it: status, or
 * TROUBLE. The last thing a command's exit goes through. */
int out_finish(int status);

/* A bly_put to standard output; ctx is an int that gets the errno. */
bool put_stdout(void *ctx, const void *bytes, size_t nbytes);

#endif
