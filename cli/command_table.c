/*
 * command_table.c - the commands that this program has
 *
 * A row that was not linked is none: `bloomery` has all of them, a program of
 * its own (program.h) those that it runs.
 */
#include <string.h>

#include "cli/cli.h"

#define COMMAND_MAYBE_(name) \
    extern const struct command cmd_##name __attribute__((weak));
COMMANDS(COMMAND_MAYBE_)

static const struct command *const table[] = {
#define COMMAND_ROW_(name) &cmd_##name,
    COMMANDS(COMMAND_ROW_)
};
#define NTABLE (sizeof table / sizeof table[0])

const struct command *command_at(size_t i)
{
    for (size_t at = 0; at < NTABLE; at++)
        if (table[at] && i-- == 0)
            return table[at];
    return NULL;
}

const struct command *command_named(const char *name)
{
    for (size_t at = 0; at < NTABLE; at++)
        if (table[at] && strcmp(table[at]->name, name) == 0)
            return table[at];
    return NULL;
}
