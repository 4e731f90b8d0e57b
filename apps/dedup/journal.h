/*
 * journal.h - rows and comparisons that outlive the command
 */
#ifndef BLY_JOURNAL_H
#define BLY_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/dedup/dedup.h"

/* Make or open the folder of d->opt->work, if there is one, for this run alone,
 * and remove what a killed one left there. False, and nothing is changed, where
 * a file in it has one of our names and is not ours. */
bool dedup_work_open(struct dedup *d);

/* Open the journal in the folder of d->opt->work, if there is one: a new one,
 * or with d->opt->resume what is there, whose documents are appended to d. */
bool dedup_journal_open(struct dedup *d, struct dedup_journal *j);
bool dedup_journal_write(struct dedup *d, struct dedup_journal *j,
                         const struct dedup_part *p);

/* The same for the likeness of pairs: those from number `from` on are written,
 * those that are there become pairs of d. */
bool dedup_checked_open(struct dedup *d, struct dedup_journal *j);
bool dedup_checked_write(struct dedup *d, struct dedup_journal *j, size_t from);

bool dedup_journal_close(struct dedup *d, struct dedup_journal *j);

#endif
