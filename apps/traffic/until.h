/*
 * until.h - what goes on until a signal says that it is enough
 */
#ifndef BLY_TRAFFIC_UNTIL_H
#define BLY_TRAFFIC_UNTIL_H

#include <stdbool.h>

/* From now on SIGINT and SIGTERM are only noted, and interrupt what waits. */
void until_watch(void);
bool until_ended(void);

#endif
