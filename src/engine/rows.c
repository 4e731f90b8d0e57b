/*
 * rows.c - which rows this processor runs, job by job
 */
#include <bloomery.h>

#include "engine/rows.h"

const char *bly_cpu_row(unsigned i, const char **job)
{
#define ROW(JOB, shown) { shown, bly_##JOB##_row_at },
    static const struct {
        const char *shown;
        bly_row (*at)(size_t i);
    } jobs[] = { BLY_JOBS(ROW) };
#undef ROW
    size_t r = 0;
    if (i >= BLY_NJOBS)
        return NULL;
    while (!bly_row_runs(jobs[i].at(r).needs))
        r++;
    *job = jobs[i].shown;
    return jobs[i].at(r).name;
}
