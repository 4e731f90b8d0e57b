/*
 * cpu_rows.c - which variants of the library's loops this processor runs
 */
#include <bloomery.h>

#include "core/bits.h"
#include "core/likeness.h"
#include "core/lines.h"

static const char *count_row(void)
{
    const struct bly_bits_count_variant *v = bly_bits_count_variants;
    while (v->needs & ~bly_cpu_features())
        v++;
    return v->name;
}

static const char *lines_row(void)
{
    return bly_lines_best()->name;
}

static const char *likeness_row(void)
{
    return bly_likeness_best()->name;
}

const char *bly_cpu_row(unsigned i, const char **job)
{
    static const struct {
        const char *job;
        const char *(*row)(void);
    } jobs[] = {
        { "lines", lines_row }, /* blocked filters */
        { "counting bits", count_row },
        { "likeness", likeness_row }, /* shingles and sketches */
    };
    if (i >= sizeof jobs / sizeof jobs[0])
        return NULL;
    *job = jobs[i].job;
    return jobs[i].row();
}
