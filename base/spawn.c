/*
 * spawn.c - a command line for the shell, as a process of its own
 */
#define _GNU_SOURCE
#include "base/spawn.h"

#include <spawn.h>
#include <stdint.h>
#include <unistd.h>

int spawn_shell(const char *command, int in, int out, pid_t *child)
{
    char *const argv[] = { "sh", "-c", (char *)(uintptr_t)command, NULL };
    posix_spawn_file_actions_t how;
    int error = posix_spawn_file_actions_init(&how);
    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&how, in, STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&how, out, STDOUT_FILENO);
    if (!error)
        error = posix_spawn(child, "/bin/sh", &how, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&how);
    return error;
}
