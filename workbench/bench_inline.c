/*
 * bench_inline.c - asking a blocked filter without a call
 *
 * Programs that want bloomery/inline.h to be fast are compiled with -O3
 * -march=native. So the loop is compiled in that way here, for AVX2 and for
 * AVX-512, and the one is taken that this processor has. A compiler that cannot
 * do that for a single file compiles it as the rest.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#define INLINE_FOR_X86 1
#endif

#define BENCH_INLINE bench_inline_usual
#include "workbench/bench_inline.h"

bench_step *bench_inline_step(void)
{
#ifdef INLINE_FOR_X86
    if (__builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return bench_inline_avx512;
    return __builtin_cpu_supports("avx2") ? bench_inline_usual : NULL;
#else
    return bench_inline_usual;
#endif
}
