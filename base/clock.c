/*
 * clock.c - what time it is
 */
#define _GNU_SOURCE /* clock_gettime */
#include "base/clock.h"

#define NS INT64_C(1000000000)

static struct timespec read_clock(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return t;
}

static double whole_ns(clockid_t which)
{
    const struct timespec t = read_clock(which);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

uint64_t clock_ms(void)
{
    const struct timespec t = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

double clock_ns(void)
{
    return whole_ns(CLOCK_MONOTONIC);
}

double clock_seconds(void)
{
    const struct timespec t = read_clock(CLOCK_MONOTONIC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int64_t clock_day_ns(void)
{
    const struct timespec t = read_clock(CLOCK_REALTIME);
    return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

double clock_thread_ns(void)
{
    return whole_ns(CLOCK_THREAD_CPUTIME_ID);
}

static struct timespec later(clockid_t which, int64_t ms)
{
    struct timespec t = read_clock(which);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    t.tv_sec += (time_t)(t.tv_nsec / NS);
    t.tv_nsec %= (long)NS;
    return t;
}

struct timespec clock_after(int64_t ms)
{
    return later(CLOCK_MONOTONIC, ms);
}

struct timespec clock_day_after(int64_t ms)
{
    return later(CLOCK_REALTIME, ms);
}

void clock_condition(pthread_cond_t *c)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(c, &steady);
    pthread_condattr_destroy(&steady);
}
