/*
 * cmd_remove.c - keys out of a filter on disk
 *
 * As add: the library locks the file and puts the new one in its place. A key
 * that cannot be removed is named and does not keep the others from it. One
 * thread does it all, so that of two equal lines the second is the one that is
 * refused, and refusals are told in the order of the keys.
 */
#include "cli/keys.h"

static struct {
    struct keys keys;
    bool json;
} remove_args;

struct removal {
    struct job job;
    struct input in;
    bly_filter *f;
};

static const char *refusal(bly_status st)
{
    return st == BLY_EABSENT    ? "absent"
           : st == BLY_EREFUSED ? "not removable without harm to other keys"
                                : bly_status_text(st);
}

static bly_status remove_batch(struct job *job, struct batch *b)
{
    struct removal *const r = job->ctx;
    bly_status each[BATCH];
    (void)bly_remove_hashes(r->f, b->hashes, b->n, each);
    for (size_t i = 0; i < b->n; i++) {
        if (!each[i])
            b->picked[i / 64] |= UINT64_C(1) << i % 64;
        else if (!quiet)
            fail("%s: %s", show_text(b->keys[i].ptr, b->keys[i].len),
                 refusal(each[i]));
    }
    return BLY_OK;
}

/* BLY_EABSENT, which leaves the file alone, where nothing was removed. */
static bly_status remove_all(bly_filter *f, void *ctx)
{
    struct removal *const r = ctx;
    r->f = f;
    r->job.hasher = bly_hasher_of(f);
    bly_status st = filter_tick(f);
    if (!st)
        st = pipeline_run(&r->job, &r->in);
    return st ? st : r->job.npicked ? BLY_OK : BLY_EABSENT;
}

static void remove_report(const char *path, const struct job *job)
{
    const uint64_t nrefused = job->nkeys - job->npicked;
    if (remove_args.json) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "file");
        json_text(&j, path);
        json_key(&j, "keys");
        json_uint(&j, job->nkeys);
        json_key(&j, "removed");
        json_uint(&j, job->npicked);
        json_key(&j, "refused");
        json_uint(&j, nrefused);
        json_close(&j, '}');
        json_end(&j);
    } else {
        printf("%s: %s removed, %llu refused\n", show_name(path),
               show_keys(job->npicked), (unsigned long long)nrefused);
    }
}

static int remove_run(struct list *operands)
{
    if (operands->n == 0)
        return fail("which filter? right: bloomery remove FILTER [KEY]...");
    const char *const path = operands->at[0];
    struct removal r = {
        .job = { .batch = remove_batch, .nthreads = 1, .ctx = &r },
    };
    if (!can_change(path) || !keys_input(&remove_args.keys, operands, &r.in))
        return TROUBLE;
    bool ok;
    const bly_access how = {
        .secret = secret_read(remove_args.keys.key_file, &ok),
    };
    bly_kind_info kind;
    if (!ok || !filter_to_change(path, &how, BLY_CAN(REMOVE), &kind))
        return TROUBLE;

    const bly_status st = bly_update(path, &how, remove_all, &r);
    input_close(&r.in);
    if (st && r.job.error[0])
        return fail("%s", r.job.error);
    if (st && !(st == BLY_EABSENT && r.f))
        return fail_library();
    if (!quiet)
        remove_report(path, &r.job);
    return r.job.npicked < r.job.nkeys ? NO : YES;
}

static const struct opt remove_options[] = {
    KEYS_OPTIONS(remove_args.keys),
    QUIET_OPTION("say nothing, not even with --json, and do not name what is "
                 "refused; errors are still told"),
    { "json", 0, OPT_FLAG, &remove_args.json, NULL,
      "print {\"file\":..,\"keys\":..,\"removed\":..,\"refused\":..}" },
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
    .summary = "take keys out of a filter on disk",
    .about =
        "Removes the keys given as arguments, or the lines of the files given "
        "with -f, or those of standard input, each line once.\n\n"
        "Remove only what was added, and as often as it was: a key that was "
        "not, but is a false positive, cannot be told from one that was, and "
        "taking it out makes the filter forget another.\n\n"
        "A key that cannot be removed is named on standard error, with the "
        "reason: it is absent, or it shares what it left in the filter with "
        "others. The rest is removed all the same, and the exit status is "
        "1.\n\n"
        "The filter is replaced at the end, under its lock, as by bloomery "
        "add.",
    .options = remove_options,
    .examples = remove_examples,
    .run = remove_run,
};
