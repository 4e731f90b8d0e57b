/*
 * serving.c - a node that runs in the foreground until it is told to end
 */
#define _GNU_SOURCE
#include "wire/serving.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t told;
static struct runtime *volatile served;

static void on_signal(int signal)
{
    (void)signal;
    told++;
    if (served)
        runtime_wake(served);
}

void serving_begin(struct runtime *rt, const struct address *at)
{
    const struct sigaction ends = { .sa_handler = on_signal };
    char text[ADDRESS_TEXT];
    served = rt;
    sigaction(SIGTERM, &ends, NULL);
    sigaction(SIGINT, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    address_text(at, text);
    printf("listening on %s\n", text);
    fflush(stdout);
}

void serving_end(void)
{
    served = NULL;
}

int serving_told(void)
{
    return told;
}

uint64_t serving_life(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
