/*
 * signals.h - what goes on until a signal says that it is enough
 */
#ifndef BLY_BASE_SIGNALS_H
#define BLY_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* From now on SIGINT and SIGTERM are only counted, and interrupt what waits.
 * The handler calls `wake`, if it is not NULL. */
void signals_watch(void (*wake)(void));

/* How often it was told to end since. */
int signals_told(void);

/* Whoever writes to what nobody reads gets an error, and is not ended. */
void signals_no_pipe(void);

/* This signal calls `handler`, and interrupts what waits. */
void signals_on(int number, void (*handler)(int));

/* False: whoever started this process wants it to be ignored (nohup). */
bool signals_heeded(int number);

/* End as this signal ends those that do nothing about it. */
void signals_die(int number);

#endif
