/*
 * until.c - what goes on until a signal says that it is enough
 */
#define _GNU_SOURCE
#include "apps/traffic/until.h"

#include <signal.h>

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

void until_watch(void)
{
    const struct sigaction a = { .sa_handler = end };
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

bool until_ended(void)
{
    return ended;
}
