/*
 * bench_inline.h - asking a blocked filter without a call, for one processor
 *
 * Included by bench_inline.c and bench_inline_avx512.c, which first say for
 * which processor it is compiled, and how the function is called. What
 * bloomery/inline.h does depends on both. No include guard: it is a template.
 */
#include <bloomery/inline.h>

#include "workbench/bench.h"

const char *BENCH_INLINE(void *f, const uint64_t *keys, size_t n,
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
