/*
 * help.h - the table of commands, printed
 */
#ifndef BLY_HELP_H
#define BLY_HELP_H

#include "cli/cli.h"

/* For people: all commands, or one. On standard output. */
void help_overview(FILE *to);
void help_command(const struct command *c);

/* Manual pages in roff: bloomery(1), or bloomery-NAME(1). */
void man_overview(void);
void man_command(const struct command *c);

/* A completion script for bash. */
void completion_bash(void);
void help_schema(void);

/* fail() with an unknown command's name and the nearest that exists. */
int fail_command(const char *name);

#endif
