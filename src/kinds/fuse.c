/*
 * fuse.c - the binary fuse filter: few bits, few lines, all keys at once
 */
#include "kinds/prints.h"

static const bly_param fuse_params[] = {
    BLY_PRINTS_PARAMS,
    [PRINTS_ARITY] = { .name = "arity",
                       .type = BLY_UINT,
                       .settable = true,
                       .def = 3,
                       .min = 3,
                       .max = 4,
                       .help = "slots of a key" },
};

static bly_status fuse_plan(const bly_want *w, bly_shape *out)
{
    return bly_prints_plan("fuse", w, (unsigned)w->opt[PRINTS_ARITY], true,
                           out);
}

static bool fuse_sane(const bly_shape *s)
{
    return bly_prints_sane(s, true);
}

static uint64_t fuse_bits(const bly_shape *s)
{
    return bly_prints_bits(s, true);
}

static void fuse_describe(const bly_shape *s, const bly_want *w,
                          const bly_filter *f, bly_facts *out)
{
    (void)w;
    (void)f;
    bly_prints_describe(s, true, out);
}

static void fuse_stat(const bly_filter *f, bly_stats *out)
{
    bly_prints_stat(f, true, out);
}

static void fuse_has(const bly_filter *f, const uint64_t *h, size_t n,
                     uint64_t *maybe)
{
    bly_prints_has(f, true, h, n, maybe);
}

static bly_status fuse_build(bly_filter *f, uint64_t *h, uint64_t *values,
                             size_t n, unsigned nthreads)
{
    (void)values;
    return bly_prints_build(f, true, 0, f->shape.p[PRINTS_SHARDS], h, n,
                            nthreads);
}

const bly_kind bly_kind_fuse = {
    .id = 11, /* on disk: never changed, never reused */
    .name = "fuse",
    .summary = "fixed sets: fingerprints in 1.13 slots a key, three lines",
    .params = fuse_params,
    .nparams = sizeof fuse_params / sizeof fuse_params[0],
    .plan = fuse_plan,
    .sane = fuse_sane,
    .rate = bly_prints_rate,
    .bits = fuse_bits,
    .describe = fuse_describe,
    .sound = bly_peel_sound,
    .stat = fuse_stat,
    .has = fuse_has,
    .build = fuse_build,
};
