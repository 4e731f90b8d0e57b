/*
 * journal.h - rows and comparisons that outlive the command
 */
#ifndef BLY_JOURNAL_H
#define BLY_JOURNAL_H

#include "apps/dedup/dedup.h"

/* Make or open the folder of --work, if there is one, for this run alone, and
 * remove what a killed one left there. False, and nothing is changed, where a
 * file in it has one of our names and is not ours. */
bool dedup_work_open(struct dedup_job *job);

/* Open the journal in that folder, if there is one: a new one, or with --resume
 * what is there, whose documents are appended to docs. */
bool dedup_journal_open(struct dedup_job *job, struct dedup_docs *docs,
                        struct dedup_journal *j);
bool dedup_journal_write(struct dedup_job *job, const struct dedup_journal *j,
                         const struct dedup_part *p);
bool dedup_journal_close(struct dedup_job *job, struct dedup_journal *j);

/* The same for the likeness of pairs: those that are there become pairs of
 * check, and those from number `from` on are written. */
bool dedup_checked_open(struct dedup_job *job, struct dedup_check *check);
bool dedup_checked_write(struct dedup_job *job, const struct dedup_check *check,
                         size_t from);

#endif
