/*
 * bench_inline.c - asking a blocked filter without a call
 *
 * This file is compiled for AVX2 where that can be, as a program is that wants
 * bloomery/inline.h to be fast, and is asked only where the processor has it.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#define INLINE_NEEDS_AVX2 1
#endif

#include <bloomery/inline.h>

#include "workbench/bench.h"

static bool inline_runs(void)
{
#ifdef INLINE_NEEDS_AVX2
    return __builtin_cpu_supports("avx2");
#else
    return true;
#endif
}

static const char *step_inline(void *f, const uint64_t *keys, size_t n,
                               struct bench_scratch *s)
{
    bly_blocked b;
    if (!bly_blocked_view(f, &b))
        return "there is no view of this filter";
    for (size_t at = 0; at < n; at += 64) {
        uint64_t bits = 0;
        for (size_t i = at; i < n && i < at + 64; i++)
            bits |= (uint64_t)bly_blocked_has_int(&b, keys[i]) << (i - at);
        s->maybe[at / 64] = bits;
    }
    return NULL;
}

bench_step *bench_inline_step(void)
{
    return inline_runs() ? step_inline : NULL;
}
