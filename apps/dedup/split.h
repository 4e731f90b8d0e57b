/*
 * split.h - dedup as tasks for many machines: what the command calls
 */
#ifndef BLY_SPLIT_H
#define BLY_SPLIT_H

#include "apps/dedup/options.h"

enum split_engine {
    SPLIT_PLAN,   /* plan, and do nothing */
    SPLIT_LOCAL,  /* run all tasks as processes of this machine */
    SPLIT_SCRIPT, /* print the command of every task */
    SPLIT_SLURM   /* write job files */
};

/* What split is told besides the options of every run. */
struct split_options {
    uint64_t ntasks;
    const char *folder;
    enum split_engine engine;
    unsigned at_once;         /* tasks; local */
    const char *const *words; /* the options, for tasks to read again */
    size_t nwords;
};

/* Plan a run and hand it to an engine: YES, or TROUBLE, which was said. */
int split_run(const struct dedup_options *o, const struct split_options *how,
              const struct list *operands);

/* With --work: is it a run that is better done in tasks, one after another,
 * since memory is small for it, or the rest of one? And such a run. */
bool split_is_better(const struct dedup_options *o, const struct list *files);
int split_in_work(const struct dedup_options *o, const struct list *files);

/* The options of the run in a folder; *words goes with split_words_free(). */
int split_words(const char *folder, struct list *words);
void split_words_free(struct list *words);

/* One task of a run: "sketch", "17". The process moves to where the run was
 * planned. */
int split_task(const struct dedup_options *o, const char *folder,
               const char *stage, const char *task);

/* How far a run is. */
int split_status(const char *folder, bool json);
extern const struct field split_fields[];

#endif
