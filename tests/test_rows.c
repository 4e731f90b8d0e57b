/*
 * test_rows.c - every job with rows, and the row that is chosen
 */
#define _GNU_SOURCE /* setenv */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "engine/fano.h"
#include "engine/bit_count.h"
#include "engine/cuckoo_table.h"
#include "engine/hash_many.h"
#include "engine/likeness.h"
#include "engine/lines.h"
#include "engine/murmur2.h"
#include "engine/peel.h"
#include "engine/planes.h"
#include "engine/quotient_table.h"
#include "engine/ribbon_table.h"
#include "engine/slices.h"
#include "engine/split_blocks.h"
#include "engine/steps.h"
#include "engine/walks.h"

static const struct {
    const char *shown;
    bly_row (*at)(size_t i);
} jobs[] = {
#define JOB(job, shown) { shown, bly_##job##_row_at },
    BLY_JOBS(JOB)
#undef JOB
};

/* Rows but for the last need something, names differ, and the last is what
 * every processor can run. */
static void tables_end_with_the_portable_row(void **state)
{
    (void)state;
    for (size_t j = 0; j < BLY_NJOBS; j++) {
        const size_t last = last_row(jobs[j].at);
        assert_string_equal(jobs[j].at(last).name, "portable");
        for (size_t i = 0; i <= last; i++) {
            assert_int_equal(jobs[j].at(i).needs == 0, i == last);
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(jobs[j].at(i).name, jobs[j].at(k).name);
        }
    }
}

/* bly_cpu_row() shows every job once, by the row that bly_JOB_best() gives,
 * whatever the processor has. */
static void every_job_is_shown(void **state)
{
    (void)state;
    static const char *const cpus[] = { NULL, "portable", "popcnt",
                                        "avx2,popcnt", "neon" };
    const char *given = getenv("BLY_CPU");
    char *const kept = given ? strdup(given) : NULL;
    for (size_t c = 0; c < COUNT_OF(cpus); c++) {
        const char *job = NULL;
        if (cpus[c])
            setenv("BLY_CPU", cpus[c], 1);
        else
            unsetenv("BLY_CPU");
        for (unsigned j = 0; j < BLY_NJOBS; j++) {
            size_t i = 0;
            while (!bly_row_runs(jobs[j].at(i).needs))
                i++;
            assert_string_equal(bly_cpu_row(j, &job), jobs[j].at(i).name);
            assert_string_equal(job, jobs[j].shown);
        }
        assert_null(bly_cpu_row(BLY_NJOBS, &job));
#define BEST(JOB, shown)                          \
    assert_string_equal(bly_##JOB##_best()->name, \
                        bly_cpu_row(BLY_JOB_##JOB, &job));
        BLY_JOBS(BEST)
#undef BEST
    }
    unsetenv("BLY_CPU");
    if (kept)
        setenv("BLY_CPU", kept, 1);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_end_with_the_portable_row),
        cmocka_unit_test(every_job_is_shown),
    };
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
