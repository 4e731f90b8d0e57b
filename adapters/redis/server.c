/*
 * server.c - see server.h
 *
 * The first word of a context is the function that gives functions.
 */
#include "adapters/redis/server.h"

#include <string.h>

server_api srv;

enum { OPTIONAL, REQUIRED };

const char *server_load(void *ctx)
{
    int (*get)(const char *name, void *to);
    memcpy(&get, ctx, sizeof get);
    const char *missing = NULL;
#define SERVER_ASK_(need, result, name, arguments)      \
    if (get("RedisModule_" #name, (void *)&srv.name)) { \
        srv.name = NULL;                                \
        if (need == REQUIRED)                           \
            missing = #name;                            \
    }
    SERVER_API(SERVER_ASK_)
#undef SERVER_ASK_
    return missing;
}
