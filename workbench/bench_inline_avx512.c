/*
 * bench_inline_avx512.c - asking a blocked filter without a call, as a program
 * does that is compiled with -O3 -march=native where there is AVX-512
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,popcnt")
#define BENCH_INLINE bench_inline_avx512
#include "workbench/bench_inline.h"
#endif

typedef int bench_inline_avx512_may_be_empty;
