/*
 * prompt_edit.h - lines that are edited, by libedit
 */
#ifndef BLY_CLI_PROMPT_EDIT_H
#define BLY_CLI_PROMPT_EDIT_H

#include "cli/prompt.h"

/* Load libedit and begin. False, with a note on what is missing, if lines
 * cannot be edited here; the calls below are then not to be made. */
bool edit_open(const char *prompt, prompt_completes *completes);

/* As prompt_line(); and a line that the arrows bring back. */
char *edit_line(size_t *n, int *failed);
void edit_remember(const char *line);
void edit_close(void);

#endif
