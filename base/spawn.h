/*
 * spawn.h - a command line for the shell, as a process of its own
 */
#ifndef BLY_BASE_SPAWN_H
#define BLY_BASE_SPAWN_H

#include <sys/types.h>

/* Run `sh -c command` with these as its standard input and output. 0, or what
 * errno says. */
int spawn_shell(const char *command, int in, int out, pid_t *child);

#endif
