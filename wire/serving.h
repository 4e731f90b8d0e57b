/*
 * serving.h - a node that runs in the foreground until it is told to end
 */
#ifndef BLY_WIRE_SERVING_H
#define BLY_WIRE_SERVING_H

#include "wire/runtime.h"

/* Say where it listens. From now on SIGTERM and SIGINT wake it; before
 * runtime_free() comes serving_end(). */
void serving_begin(struct runtime *rt, const struct address *at);
void serving_end(void);

/* How often it was told to end. */
int serving_told(void);

/* Milliseconds since 1970, which tell one life of a node from the next. */
uint64_t serving_life(void);

#endif
