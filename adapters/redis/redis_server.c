/*
 * redis_server.c - see redis_server.h
 *
 * The first word of a context is the function that gives functions.
 */
#define _GNU_SOURCE
#include "adapters/redis/redis_server.h"

#include <pthread.h>
#include <signal.h>
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

bool start_thread(void *(*run)(void *), void *argument)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const bool ok = pthread_create(&thread, NULL, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ok)
        pthread_detach(thread);
    return ok;
}
