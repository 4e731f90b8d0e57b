/*
 * cmd_remove.c - keys out of a filter on disk
 */
#include <string.h>

#include "cli/change.h"
#include "cli/rows.h"

static struct {
    struct keys keys;
    struct foreign_args foreign;
    bool json;
} remove_args;

static const char *refusal(bly_status st)
{
    return st == BLY_EABSENT    ? "absent"
           : st != BLY_EREFUSED ? bly_status_text(st)
                                : "not removable without harm to other keys";
}

/* Nothing can be removed from this filter, and the library says why. A refusal
 * of this key alone has no more to say than its status. */
static bool refuses_all(bly_filter *f, uint64_t hash)
{
    return bly_remove_hashes(f, &hash, 1, NULL) == BLY_EREFUSED &&
           strcmp(bly_error(), bly_status_text(BLY_EREFUSED)) != 0;
}

static bly_status remove_batch(struct job *job, struct batch *b)
{
    bly_status each[BATCH];
    (void)bly_remove_hashes(job->ctx, b->hashes, b->n, each);
    for (size_t i = 0; i < b->n; i++) {
        if (!each[i])
            b->picked[i / 64] |= UINT64_C(1) << i % 64;
        else if (each[i] == BLY_EREFUSED && refuses_all(job->ctx, b->hashes[i]))
            return BLY_EREFUSED;
        else
            change_refused(&b->keys[i], refusal(each[i]));
    }
    return BLY_OK;
}

static bly_status remove_foreign(struct job *job, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const bly_status st = bly_foreign_remove(job->ctx, b->keys[i]);
        if (!st)
            b->picked[i / 64] |= UINT64_C(1) << i % 64;
        else
            change_refused(&b->keys[i], refusal(st));
    }
    return BLY_OK;
}

static const struct field removed_fields[] = { CHANGED_FIELDS("removed") };

static int remove_run(struct list *operands)
{
    if (operands->n == 0)
        return fail(
            "no filter is given; usage: bloomery remove FILTER [KEY]...");
    struct change c = {
        .keys = &remove_args.keys,
        .ability = BLY_CAN(REMOVE),
        .fields = removed_fields,
        .text = "{file}: {removed} removed, {refused} not removed\n",
        .json = remove_args.json,
        .job = { .batch = remove_batch },
        .format_can = BLY_FORMAT_REMOVE,
        .foreign_batch = remove_foreign,
        .foreign = &remove_args.foreign,
    };
    return change_keys(&c, operands);
}

static const struct opt remove_options[] = {
    KEYS_OPTIONS(remove_args.keys),
    FORMAT_READ_OPTIONS(remove_args.foreign),
    WAIT_OPTION,
    QUIET_OPTION("print nothing, not even with --json, and do not name what is "
                 "refused; errors are still reported"),
    FLAG("json", 0, remove_args.json,
         "print {\"file\":..,\"keys\":..,\"removed\":..,\"refused\":..}"),
    { 0 },
};

static const struct example remove_examples[] = {
    { "bloomery remove sessions.bly 7f3a 91c0", "two keys" },
    { "bloomery remove sessions.bly -f ended.txt", "the lines of a file" },
    { 0 },
};

const struct command cmd_remove = {
    .name = "remove",
    .usage = "FILTER [KEY]... [-f FILE]... [OPTION]...",
    .summary = "remove keys from a filter on disk",
    .about = "Removes the keys given as arguments, or the lines of the files "
             "given with -f, or those of standard input, each line once.\n\n"
             "Remove only keys that were added, and only as often as they were "
             "added: a false positive cannot be told from a key that was "
             "added, and removing it makes the filter forget another key.\n\n"
             "A key that cannot be removed is named on standard error, with "
             "the reason: it is absent, or it shares its traces in the filter "
             "with other keys. The rest is removed all the same, and the exit "
             "status is 1. A filter that was made so that nothing can be "
             "removed is left as it is, with one message and status 2.\n\n"
             "The filter is replaced at the end, under its lock, as by "
             "bloomery add. Dumps of CF.* in Redis can be changed too.",
    .options = remove_options,
    .examples = remove_examples,
    .reports = REPORTS({ "", removed_fields, ONE }),
    .run = remove_run,
};
