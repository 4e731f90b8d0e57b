/*
 * signals.c - what goes on until a signal says that it is enough
 */
#define _GNU_SOURCE
#include "base/signals.h"

static volatile sig_atomic_t told;
static void (*volatile waking)(void);

static void note_signal(int number)
{
    void (*const wake)(void) = waking;
    (void)number;
    told++;
    if (wake)
        wake();
}

void signals_on(int number, void (*handler)(int))
{
    const struct sigaction action = { .sa_handler = handler };
    sigaction(number, &action, NULL); /* without SA_RESTART */
}

void signals_watch(void (*wake)(void))
{
    waking = wake;
    signals_on(SIGINT, note_signal);
    signals_on(SIGTERM, note_signal);
}

int signals_told(void)
{
    return told;
}

void signals_no_pipe(void)
{
    signals_on(SIGPIPE, SIG_IGN);
}

bool signals_heeded(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN;
}

void signals_die(int number)
{
    signals_on(number, SIG_DFL);
    raise(number);
}
