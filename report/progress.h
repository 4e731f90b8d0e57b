/*
 * progress.h - how far a long run has come
 */
#ifndef BLY_REPORT_PROGRESS_H
#define BLY_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* A line on standard error, rewritten now and then, once the work has lasted a
 * second; nothing where standard error is no terminal. progress_at() may be
 * called from any one thread at a time. total 0: not known. */
void progress_start(bool prints_to_stdout);
void progress_unit(const char *unit); /* what is counted, if not keys */
void progress_at(uint64_t nkeys, uint64_t done, uint64_t total);
void progress_clear(void);

#endif
