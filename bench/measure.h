/*
 * measure.h - what the programs in this folder share: a clock, numbers that
 * look random, memory on huge pages
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/random.h"

/* Of this thread alone, so that a busy machine only spoils caches. */
static inline double now_ns(void)
{
    return clock_thread_ns();
}

static inline int ascending_(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of n times, which are sorted then. */
static inline double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending_);
    return v[n / 2];
}

static inline uint64_t mix(uint64_t x)
{
    return bly_mix64(x);
}

/* Room that is never given back, on huge pages where there are any. */
static inline void *room(size_t nbytes)
{
    const size_t huge = (size_t)2 << 20;
    const size_t size = (nbytes + 2 * huge - 1) & ~(huge - 1);
    unsigned char *base = mmap(NULL, size + huge, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        exit(2);
    base += -(uintptr_t)base & (huge - 1);
    madvise(base, size, MADV_HUGEPAGE);
    memset(base, 1, size);
    return base;
}

#endif
