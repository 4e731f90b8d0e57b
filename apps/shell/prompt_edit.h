/*
 * prompt_edit.h - lines that are edited, by libedit
 */
#ifndef BLY_CLI_PROMPT_EDIT_H
#define BLY_CLI_PROMPT_EDIT_H

#include "apps/shell/prompt.h"

/* Begin. False if lines cannot be edited here; the calls below are then not to
 * be made. A program that was linked without libedit has none of them. */
__attribute__((weak)) bool edit_open(const char *prompt,
                                     prompt_completes *completes);

/* As prompt_line(); and a line that the arrows bring back. */
__attribute__((weak)) char *edit_line(size_t *n, int *failed);
__attribute__((weak)) void edit_remember(const char *line);
__attribute__((weak)) void edit_close(void);

#endif
