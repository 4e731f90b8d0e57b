/*
 * dedup_run.h - what the two ways of a run share: files, messages, reports
 */
#ifndef BLY_DEDUP_RUN_H
#define BLY_DEDUP_RUN_H

#include "apps/dedup/dedup.h"

/* What the stages of a run made, each its own. */
struct dedup_made {
    struct dedup_docs docs;
    struct dedup_order order;
    struct dedup_buckets buckets;
    struct dedup_sets sets;
    struct dedup_check check;
    struct dedup_verdicts verdicts;
    double seconds[5]; /* read, band, decide, check, write */
};

/* One pass with a filter: YES, or TROUBLE. */
int dedup_filtered(struct dedup_job *job, struct input *in);

/* Outputs must be possible, and no input may be one of them. False, with the
 * reason printed, if not. */
bool dedup_outputs_work(const struct dedup_options *o,
                        const struct list *operands);

/* Tell of bad lines and of files that ended too early: YES, or TROUBLE. */
int dedup_bad_input(const struct dedup_options *o, const struct input *in,
                    const struct dedup_seen *seen);

void dedup_report(const struct dedup_options *o, const struct dedup_made *made);
void dedup_filter_report(const struct dedup_options *o,
                         const struct stream_report *r);

#endif
