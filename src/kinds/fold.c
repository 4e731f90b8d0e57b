/*
 * fold.c - half the memory for the same keys: what the kinds that fold share
 */
#include "kinds/fold.h"

#include "core/status.h"

bly_status bly_fold_plan(uint64_t folds, uint64_t unit, bool memory_given,
                         uint64_t *n)
{
    const uint64_t step = unit << folds, over = *n % step;
    if (!over)
        return BLY_OK;
    if (memory_given && *n < step)
        return bly_fail(BLY_EINVAL,
                        "folds = %llu needs a multiple of %llu, and memory is "
                        "for %llu: give more of it, or fewer folds",
                        (unsigned long long)folds, (unsigned long long)step,
                        (unsigned long long)*n);
    /* Neither a given memory nor a given rate may be exceeded. */
    *n = memory_given ? *n - over : *n - over + step;
    return BLY_OK;
}

bly_status bly_fold_begin(const bly_filter *f, uint64_t n, const char *cells,
                          const bly_shape *half, bly_filter **out)
{
    *out = NULL;
    if (n % 2)
        return bly_fail(BLY_EINVAL,
                        "%llu %s are an odd number, which cannot be folded in "
                        "half; a %s filter that is made with the option "
                        "folds=3 can be folded three times",
                        (unsigned long long)n, cells, f->kind->name);
    if (!f->kind->sane(half))
        return bly_fail(BLY_EINVAL,
                        "%llu %s are too few to be folded in half once more",
                        (unsigned long long)n, cells);
    /* The filter is still planned for as many keys, so it promises a higher
     * rate. */
    bly_setting set = bly_setting_of(f);
    set.fpr = f->kind->rate(half, (double)f->items);
    const bly_status st = bly_filter_make(f->kind, half, &set, out);
    if (!st)
        (*out)->nadded = f->nadded;
    return st;
}
