/*
 * cpu_rows.c - which variants of the library's loops this processor runs
 *
 * Most are rows of a table, best first. The loops of some kinds look for one
 * feature by themselves, and their variants are named after it.
 */
#include <bloomery.h>

#include "core/bits.h"
#include "core/hash.h"
#include "engine/likeness.h"
#include "engine/lines.h"
#include "engine/ribbon_table.h"
#include "engine/steps.h"
#include "foreign/sbbf.h"
#include "engine/quotient_table.h"

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

static const char *ints_row(void)
{
    return bly_ints_best()->name;
}

static const char *steps_row(void)
{
    return bly_steps_best()->name;
}

static const char *ribbon_row(void)
{
    return bly_ribbon_best()->name;
}

static const char *likeness_row(void)
{
    return bly_likeness_best()->name;
}

static const char *sbbf_row(void)
{
    return bly_sbbf_best()->name;
}

/* Of engine/x86_cuckoo.c, kinds/x86_peel.c and foreign/x86_xxh64.c. */
static const char *eight_row(void)
{
    return bly_cpu_features() & BLY_CPU_AVX512 ? "avx512" : "portable";
}

const char *bly_cpu_row(unsigned i, const char **job)
{
    static const struct {
        const char *job;
        const char *(*row)(void);
    } jobs[] = {
        { "lines", lines_row },   /* blocked filters */
        { "integers", ints_row }, /* hashing them */
        { "steps", steps_row },   /* classic filters and those of counters */
        { "cuckoo", eight_row },
        { "peel", eight_row }, /* xor, fuse, bloomier */
        { "ribbon", ribbon_row },
        { "quotient", bly_quotient_row_name }, /* elastic too */
        { "split blocks", sbbf_row },          /* Parquet's filters */
        { "XXH64", eight_row },                /* of their values */
        { "counting bits", count_row },
        { "likeness", likeness_row }, /* shingles and sketches */
    };
    if (i >= sizeof jobs / sizeof jobs[0])
        return NULL;
    *job = jobs[i].job;
    return jobs[i].row();
}
