/*
 * cmd_add.c - more keys into a filter on disk
 *
 * The library locks the file, reads the filter, lets us change it, and puts the
 * result in its place; when anything fails, the input included, the file stays
 * as it was. If the kind can be shared, all workers add at once; otherwise all
 * of them hash and one at a time adds. Keys go into a filter of another system
 * by the rules of that system, in the order of the keys.
 */
#include <pthread.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/foreign_files.h"
#include "io/live_files.h"
#include "io/paths.h"

static struct {
    struct keys keys;
    uint64_t threads;
    struct foreign_args foreign;
    bool json, live;
} add_args;

struct addition {
    struct job job;
    struct input in;
    bly_filter *f;
    bool shared;
    pthread_mutex_t adding; /* unless shared */
    bly_stats stats;        /* of f afterwards */
};

static bly_status add_batch(struct job *job, struct batch *b)
{
    struct addition *const a = job->ctx;
    if (a->shared)
        return bly_add_hashes(a->f, b->hashes, b->n, b->picked, NULL);
    pthread_mutex_lock(&a->adding);
    const bly_status st =
        bly_add_hashes(a->f, b->hashes, b->n, b->picked, NULL);
    pthread_mutex_unlock(&a->adding);
    return st;
}

static bly_status add_all(bly_filter *f, void *ctx)
{
    struct addition *const a = ctx;
    a->f = f;
    a->job.hasher = bly_hasher_of(f);
    bly_status st = filter_tick(f);
    if (!st)
        st = pipeline_run(&a->job, &a->in);
    if (!st)
        bly_stat(f, &a->stats);
    return st;
}

/* ------------------------------------------------ of another system */

static bly_status foreign_batch(struct job *job, struct batch *b)
{
    return foreign_add(job->ctx, b);
}

static bly_status foreign_all(bly_foreign *f, void *ctx)
{
    struct addition *const a = ctx;
    a->job.ctx = f;
    return pipeline_run(&a->job, &a->in);
}

/* ------------------------------------------------------------------- live */

static bly_status live_batch(struct job *job, struct batch *b)
{
    return live_add(job->ctx, b->hashes, b->n, b->picked);
}

/* Keys go straight into the file; those that were added stay if others fail. */
static int add_live(const char *path, const bly_access *how, struct addition *a)
{
    struct live_use *const use = live_use_begin(path, how);
    if (!use)
        return TROUBLE;
    int status = YES;
    a->job = (struct job){ .nthreads = thread_count(add_args.threads),
                           .path = path,
                           .ctx = use,
                           .hasher = live_hasher(use),
                           .batch = live_batch };
    if (!filter_can(live_filter(use), path, BLY_CAN(ADD)) ||
        !keys_follow(bly_keying_of(live_filter(use)), path, &a->in))
        status = TROUBLE;
    else if (pipeline_run(&a->job, &a->in))
        status = fail("%s", a->job.error);
    else
        bly_stat(live_filter(use), &a->stats);
    live_use_end(use);
    return status;
}

/* ------------------------------------------------------------------- all */

struct added {
    const char *file;
    uint64_t keys, fresh;
};

static const struct field added_fields[] = {
    FIELD(struct added, file, NONE, "the filter"),
    FIELD(struct added, keys, KEYS, "keys that were added"),
    NAMED(struct added, "new", fresh, NONE, "of them, those that changed it"),
    { 0 },
};

static void add_report(const char *path, const struct addition *a, bool foreign)
{
    if (quiet)
        return;
    const struct added r = { path, a->job.nkeys, a->job.npicked };
    report(stdout, add_args.json, added_fields, &r,
           "{file}: {keys} added, {new} of them new\n");
    if (!foreign)
        warn_past_capacity(path, &a->stats);
}

static int add_run(struct list *operands)
{
    if (operands->n == 0)
        return fail("no filter is given; usage: bloomery add FILTER [KEY]...");
    const char *const path = operands->at[0];
    struct addition a = { .adding = PTHREAD_MUTEX_INITIALIZER };
    const int foreign =
        !can_change(path) ? -1
        : add_args.live
            ? 0
            : foreign_changes(path, &add_args.foreign, BLY_FORMAT_ADD);
    add_args.keys.changes = true;
    if (foreign < 0 || !keys_input(&add_args.keys, operands, &a.in))
        return TROUBLE;
    bool ok;
    bly_access how = { .secret = secret_read(add_args.keys.key_file, &ok),
                       .wait = wait_for_lock };
    bly_foreign_spec spec = { 0 };
    bly_kind_info kind;
    if (ok && add_args.live) {
        const int status = add_live(path, &how, &a);
        input_close(&a.in);
        if (status == YES)
            add_report(path, &a, false);
        return status;
    }
    if (!ok ||
        (foreign ? !foreign_spec(&add_args.foreign, &spec)
                 : !filter_to_change(path, &how, BLY_CAN(ADD), &a.in, &kind))) {
        input_close(&a.in);
        return TROUBLE;
    }

    bly_status st;
    a.job = (struct job){ .nthreads = 1, .path = path, .ctx = &a };
    if (foreign) {
        a.job.batch = foreign_batch;
        st = bly_foreign_update(path, &how, &spec, foreign_all, &a);
    } else {
        a.job.batch = add_batch;
        a.job.nthreads = thread_count(add_args.threads);
        how.shared = (kind.can & BLY_CAN(SHARE)) && a.job.nthreads > 1;
        a.shared = how.shared;
        st = bly_update(path, &how, add_all, &a);
    }
    input_close(&a.in);
    if (st)
        return a.job.error[0] ? fail("%s", a.job.error) : fail_library();
    add_report(path, &a, foreign);
    return YES;
}

static const struct opt add_options[] = {
    KEYS_OPTIONS(add_args.keys),
    THREADS_OPTION(add_args.threads),
    FORMAT_READ_OPTIONS(add_args.foreign),
    FLAG("live", 0, add_args.live,
         "the filter is live: add to it where it is, together with other "
         "processes (bloomery live)"),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    FLAG("json", 0, add_args.json,
         "print {\"file\":..,\"keys\":..,\"new\":..}"),
    { 0 },
};

static const struct example add_examples[] = {
    { "bloomery add seen.bly 192.0.2.7 192.0.2.8", "two keys" },
    { "bloomery add seen.bly -f more.txt.gz", "the lines of a file" },
    { "bloomery add users.dump 192.0.2.7", "to a dump of BF.SCANDUMP" },
    { 0 },
};

const struct command cmd_add = {
    .name = "add",
    .usage = "FILTER [KEY]... [-f FILE]... [OPTION]...",
    .summary = "add keys to a filter on disk",
    .about =
        "Adds the keys given as arguments, or the lines of the files "
        "given with -f, or those of standard input, and reports how many "
        "were new, as far as the filter can tell.\n\n"
        "The filter is replaced at the end, when all keys have been read "
        "and added; if anything goes wrong, or the command is "
        "interrupted, the file stays as it was. Several adds at once wait "
        "for each other; readers see the old filter meanwhile.\n\n" SELECT_ABOUT
        " If a line is bad, nothing is changed.\n\n"
        "A file of another system can be added to if its format says so "
        "(bloomery formats): dumps of Redis and Valkey become what the "
        "server would have made of them.\n\n"
        "With --live, keys go straight into a live filter, which other "
        "processes are using: they find each key at once, and what was added "
        "stays if the command fails.\n\n"
        "A filter that forgets with time is given the system time, in "
        "seconds since 1970, when keys are added and when it is queried.",
    .options = add_options,
    .examples = add_examples,
    .reports = REPORTS({ "", added_fields, ONE }),
    .run = add_run,
};
