/*
 * clock.h - what time it is
 *
 * Of three clocks: a steady one, which nobody sets and whose beginning means
 * nothing; the time of day, which may jump; and the time that this thread has
 * kept a processor busy, which other programs cannot lengthen.
 */
#ifndef BLY_BASE_CLOCK_H
#define BLY_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_ms(void); /* steady */
double clock_ns(void);
double clock_seconds(void);

int64_t clock_day_ns(void); /* since 1970 */

double clock_thread_ns(void);

/* When waiting of so many milliseconds ends: for conditions that use the steady
 * clock, and for those that use the time of day, as they do unless told. */
struct timespec clock_after(int64_t ms);
struct timespec clock_day_after(int64_t ms);

/* Make a condition of the first sort: somebody may set the other clock back by
 * an hour, and waiting would take that long. */
void clock_condition(pthread_cond_t *c);

#endif
