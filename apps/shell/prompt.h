/*
 * prompt.h - lines from somebody at a terminal, or from a script
 */
#ifndef BLY_CLI_PROMPT_H
#define BLY_CLI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "report/words.h"

/* What the last of n words may become, as lines of complete(). */
typedef void prompt_completes(FILE *to, const struct list *words);

/* Begin to read lines. On a terminal each has a prompt and, if libedit is here,
 * can be edited and completed, and those of earlier days come back unless
 * private, which keeps them in no file either. */
void prompt_open(const char *prompt, prompt_completes *completes, bool private);
bool prompt_is_terminal(void);

/* The next line, without its end, until the next call. NULL at the end of all,
 * or with *failed an errno. A line that Ctrl-C ended is empty. */
char *prompt_line(size_t *n, int *failed);
void prompt_close(void);

/* The words of a line, by the rules of sh: blanks part them, 'all' and "most"
 * in quotes is taken as it is, and a backslash takes away the meaning of what
 * follows. Words and list belong to the caller: words_free(). NULL, or why
 * there are none; an open quote then ends with the line. */
const char *words_split(const char *line, struct list *words);
void words_free(struct list *words);

#endif
