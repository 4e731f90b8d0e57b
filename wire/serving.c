/*
 * serving.c - a node that runs in the foreground until it is told to end
 */
#define _GNU_SOURCE
#include "wire/serving.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/signals.h"

static struct runtime *volatile served;

static void wake_served(void)
{
    if (served)
        runtime_wake(served);
}

void serving_begin(struct runtime *rt, const struct address *at)
{
    char text[ADDRESS_TEXT];
    served = rt;
    signals_watch(wake_served);
    signals_no_pipe();
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
    return signals_told();
}

uint64_t serving_life(void)
{
    return (uint64_t)clock_day_ns() / 1000000;
}
