/*
 * index_coverage.h - which documents have most of a question's terms?
 */
#ifndef BLY_INDEX_COVERAGE_H
#define BLY_INDEX_COVERAGE_H

#include "apps/index/index_job.h"

/* Operands are indexes, and behind them texts or sequences to ask for; those of
 * -f are files. */
int index_coverage(const struct index_args *args, const struct list *operands);

#endif
