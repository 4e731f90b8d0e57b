/*
 * rows.h - variants of a loop, and the choice for this processor
 *
 * A job is a few loops that have variants for different processors. Each
 * variant is a row of a table, best first: its name, what it needs, its
 * functions. The last row is portable, needs nothing and defines the result;
 * the others are tested against it. A job has
 *
 *     bly_JOB_row      the type of a row; it begins with BLY_ROW_HEAD
 *     bly_JOB_rows[]   the table
 *     bly_JOB_best()   the row to run: called once, above the loop
 *
 * where BLY_ROWS(JOB) declares the last two and BLY_CHOOSE(JOB), below the
 * table, defines the choice. Nobody else asks for the processor's features.
 */
#ifndef BLY_ROWS_H
#define BLY_ROWS_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/cpu.h"

/* Every job, and the name by which bly_cpu_row() shows it. A job that is
 * missing here does not compile; one without rows does not link. */
#define BLY_JOBS(X)           \
    X(lines, "lines")         \
    X(ints, "integers")       \
    X(steps, "steps")         \
    X(cuckoo, "cuckoo")       \
    X(peel, "peel")           \
    X(ribbon, "ribbon")       \
    X(quotient, "quotient")   \
    X(fano, "sorted numbers") \
    X(blocks, "split blocks") \
    X(xxh64, "XXH64")         \
    X(murmur2, "MurmurHash2") \
    X(count, "counting bits") \
    X(likeness, "likeness")   \
    X(walks, "symbols")       \
    X(slices, "documents")    \
    X(planes, "vectors")

#define BLY_ROW_HEAD  \
    const char *name; \
    uint32_t needs /* BLY_CPU_ bits */

typedef struct bly_row {
    BLY_ROW_HEAD;
} bly_row;

/* bly_JOB_row_at(): the head of row i; behind the last, one without a name. */
#define BLY_JOB_DECLARE_(JOB, shown) bly_row bly_##JOB##_row_at(size_t i);
BLY_JOBS(BLY_JOB_DECLARE_)
#undef BLY_JOB_DECLARE_

#define BLY_JOB_NUMBER_(JOB, shown) BLY_JOB_##JOB,
enum { BLY_JOBS(BLY_JOB_NUMBER_) BLY_NJOBS };
#undef BLY_JOB_NUMBER_

#define BLY_ROWS(JOB)                                \
    extern const bly_##JOB##_row bly_##JOB##_rows[]; \
    const bly_##JOB##_row *bly_##JOB##_best(void)

/* Can this processor run a row with these needs? */
static inline int bly_row_runs(uint32_t needs)
{
    return !(needs & ~bly_cpu_features());
}

/* For functions so short that every instruction counts: processors that rotate,
 * shift and multiply without moving operands first. All processors with AVX2
 * do; elsewhere this target is the usual one. */
#if BLY_X86
#define BLY_TARGET_BMI __attribute__((target("bmi,bmi2")))
#else
#define BLY_TARGET_BMI
#endif

static inline int bly_row_runs_bmi(void)
{
    return bly_row_runs(BLY_CPU_AVX2);
}

/* In a test, the environment may change what the processor has. */
#ifdef BLY_TESTING
#define BLY_ROWS_MAY_CHANGE 1
#else
#define BLY_ROWS_MAY_CHANGE 0
#endif

/* Two threads may both choose; they choose the same row. */
#define BLY_CHOOSE(JOB)                                                \
    const bly_##JOB##_row *bly_##JOB##_best(void)                      \
    {                                                                  \
        static _Atomic(const bly_##JOB##_row *) chosen;                \
        const bly_##JOB##_row *row =                                   \
            atomic_load_explicit(&chosen, memory_order_relaxed);       \
        if (!row || BLY_ROWS_MAY_CHANGE) {                             \
            row = bly_##JOB##_rows;                                    \
            while (!bly_row_runs(row->needs))                          \
                row++;                                                 \
            atomic_store_explicit(&chosen, row, memory_order_relaxed); \
        }                                                              \
        return row;                                                    \
    }                                                                  \
    _Static_assert(BLY_JOB_##JOB < BLY_NJOBS, "listed");               \
    bly_row bly_##JOB##_row_at(size_t i)                               \
    {                                                                  \
        const bly_##JOB##_row *const row = bly_##JOB##_rows + i;       \
        return i < sizeof bly_##JOB##_rows / sizeof *row               \
                   ? (bly_row){ row->name, row->needs }                \
                   : (bly_row){ NULL, 0 };                             \
    }

#endif
