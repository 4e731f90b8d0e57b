/*
 * cpu.c - what this processor has, asked at run time
 */
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"

static const struct {
    const char *name;
    uint32_t bit;
} cpu_names[] = {
    { "popcnt", BLY_CPU_POPCNT }, { "avx2", BLY_CPU_AVX2 },
    { "avx512", BLY_CPU_AVX512 }, { "neon", BLY_CPU_NEON },
    { "fma", BLY_CPU_FMA },
};

static uint32_t cpu_detect(void)
{
    uint32_t have = 0;
#if BLY_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("popcnt"))
        have |= BLY_CPU_POPCNT;
    if (__builtin_cpu_supports("avx2"))
        have |= BLY_CPU_AVX2;
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        have |= BLY_CPU_AVX512;
    if (__builtin_cpu_supports("fma"))
        have |= BLY_CPU_FMA;
#elif BLY_ARM64
    have |= BLY_CPU_NEON; /* part of the architecture */
#endif
    return have;
}

uint32_t bly_cpu_features(void)
{
    uint32_t have = cpu_detect();
#ifdef BLY_TESTING
    const char *only = getenv("BLY_CPU");
    if (only) {
        uint32_t keep = 0;
        for (size_t i = 0; i < sizeof cpu_names / sizeof cpu_names[0]; i++)
            if (strstr(only, cpu_names[i].name))
                keep |= cpu_names[i].bit;
        have &= keep;
    }
#else
    (void)cpu_names;
#endif
    return have;
}
