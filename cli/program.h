/*
 * program.h - commands and verbs that another program has
 *
 * What needs more than libc and the compression libraries would make every
 * command start later: libcurl alone brings thirty other libraries along. So
 * such code stands in a program of its own, bloomery-NAME, which has the same
 * rows of commands and is linked with what it needs. `bloomery` reads the line
 * as always, finds that the function for it was not linked, and becomes that
 * program: same line, same terminal, same exit status.
 */
#ifndef BLY_CLI_PROGRAM_H
#define BLY_CLI_PROGRAM_H

#include "report/words.h"

/* Keep the line of main(). */
void program_began(char **argv);

/* Become bloomery-NAME. Returns only if that fails: TROUBLE, with the reason
 * printed, and what would have to be installed. program_try() says nothing. */
int program_run(const char *name);
void program_try(const char *name);

#endif
