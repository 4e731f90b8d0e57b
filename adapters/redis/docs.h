/*
 * docs.h - COMMAND DOCS, from a row of a table of commands
 */
#ifndef BLY_REDIS_DOCS_H
#define BLY_REDIS_DOCS_H

#include "adapters/redis/redis_module.h"

/* Tell the server what it may say about a command. SERVER_OK, also on servers
 * that do not want to know. */
int docs_tell(server_command *command, const command_row *row);

#endif
