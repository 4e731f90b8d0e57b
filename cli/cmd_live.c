/*
 * cmd_live.c - live filters: made, made to last, replaced
 *
 * What processes do with one all the time is in add, has, info and watch.
 */
#include "cli/rows.h"
#include "io/filters.h"
#include "io/keys.h"
#include "io/live_files.h"
#include "io/paths.h"
#include "io/sizing.h"

static struct {
    struct sizing sizing;
    const char *from, *key_file;
    bool ints, uints, keep, json;
} live_args;

struct live_done {
    const char *file;
    struct live_told live;
    bly_stats s;
};

static const struct field live_done_fields[] = {
    FIELD(struct live_done, file, NONE, "the filter"),
    NAMED(struct live_done, "kind", s.kind, NONE, "its kind"),
    NAMED(struct live_done, "items_added", s.items_added, NONE,
          "additions that changed it"),
    MEMBERS(struct live_done, live, NONE, live_fields),
    { 0 },
};

static int live_report(const char *path, const bly_filter *f)
{
    struct live_done done = { .file = path };
    bly_peek(f, &done.s);
    if (!live_tell(f, &done.live))
        return fail_library();
    if (!quiet)
        report(stdout, live_args.json, live_done_fields, &done,
               "{file}: a live {kind} filter, generation {generation}, "
               "checkpoint {checkpoint}, {items_added} additions\n");
    return YES;
}

/* Do something with the filter of a line, and describe it. */
static int live_with(const struct list *operands,
                     bly_status (*what)(bly_filter *f))
{
    const char *const path = operands->at[0];
    bly_filter *const f = live_open(path, &(bly_access){ .blind = true });
    if (!f)
        return TROUBLE;
    const int status = what(f) ? fail_library() : live_report(path, f);
    bly_free(f);
    return status;
}

/* ------------------------------------------------------------------- make */

static int live_make(struct list *operands)
{
    const char *const path = operands->at[0];
    bly_spec spec = { 0 };
    bly_filter *f = NULL, *from;
    bool ok;
    if (live_args.ints && live_args.uints)
        return fail("--int and --uint exclude each other: integers with a sign "
                    "or without");
    const unsigned char *const secret = secret_read(live_args.key_file, &ok);
    const bly_access how = { .secret = secret, .blind = !secret };
    if (!ok)
        return TROUBLE;
    if (live_args.from) {
        if (live_args.sizing.items || live_args.sizing.kind)
            return fail("--from and --items exclude each other: the filter is "
                        "as large as the one it is made from");
        from = filter_open(live_args.from, &how);
        const bool made = from && !bly_live_make(from, path);
        if (from && !made)
            fail_library();
        bly_free(from);
        f = made ? live_open(path, &how) : NULL;
    } else if (sizing_spec(&live_args.sizing, &spec)) {
        if (!is_sized(&spec))
            return fail("--items is missing: how many different keys it is "
                        "for");
        spec.secret = secret;
        spec.keying.type = live_args.ints    ? BLY_KEYS_INT64
                           : live_args.uints ? BLY_KEYS_UINT64
                                             : BLY_KEYS_TEXT;
        if (bly_share(path, &spec, NULL, &f))
            fail_library();
    }
    const int status = f ? live_report(path, f) : TROUBLE;
    bly_free(f);
    return status;
}

/* ------------------------------------------------------------- all others */

static int live_checkpoint(struct list *operands)
{
    return live_with(operands, bly_checkpoint);
}

static int live_accept(struct list *operands)
{
    return live_with(operands, bly_live_accept);
}

static int live_replace(struct list *operands)
{
    const char *const path = operands->at[0];
    const bly_access how = { .blind = true };
    bly_filter *const next = filter_open(operands->at[1], &how);
    bly_filter *f = next ? live_open(path, &how) : NULL;
    int status = TROUBLE;
    if (f)
        status =
            bly_live_replace(f, next, live_args.keep) || bly_live_follow(&f)
                ? fail_library()
                : live_report(path, f);
    bly_free(f);
    bly_free(next);
    return status;
}

static const struct opt live_make_options[] = {
    SIZING_OPTIONS(live_args.sizing),
    OPTION("from", 0, OPT_TEXT, &live_args.from, "FILTER",
           "with the keys of an ordinary filter, and as large"),
    FLAG("int", 0, live_args.ints, "its keys will be integers, not text"),
    FLAG("uint", 0, live_args.uints, "the same, without a sign"),
    KEY_FILE_OPTION(live_args),
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(live_args),
    { 0 },
};

static const struct opt live_options[] = {
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(live_args),
    { 0 },
};

static const struct opt live_replace_options[] = {
    FLAG("keep", 0, live_args.keep,
         "merge what was added to the old one into the new one first"),
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(live_args),
    { 0 },
};

#define LIVE_REPORTS REPORTS({ "", live_done_fields, ONE })

static const struct verb live_verbs[] = {
    { "make", "FILE", "make a live filter, empty or from another one",
      "Makes the file and reserves its room on disk. If it is there already, "
      "with the same kind, size and type of keys, nothing happens. --from "
      "takes the keys of an ordinary filter, and there may be no file yet.",
      live_make_options, LIVE_REPORTS, live_make },
    { "checkpoint", "FILE", "write to disk what was added so far",
      "When it returns, everything that any process added before is on disk "
      "and survives a power cut. Run it every now and then, by cron for "
      "example, or let bloomery watch --checkpoint do it.",
      live_options, LIVE_REPORTS, live_checkpoint },
    { "accept", "FILE", "decide that a filter is good after a power cut",
      "After a power cut a live filter holds what the last checkpoint held, "
      "and perhaps more; info then calls it unclean. Add again what may be "
      "missing, or decide that nothing is, and say so by this.",
      live_options, LIVE_REPORTS, live_accept },
    { "replace", "FILE WITH", "put another filter in its place",
      "Puts a copy of the ordinary filter WITH in the place of the live filter "
      "FILE, as its next generation: a larger one, an empty one, one that was "
      "built anew. Processes that ask are not disturbed, and those that add "
      "wait until it is there. bloomery add --live and has --live move to it "
      "by themselves, as programs do that call bly_live_follow().",
      live_replace_options, LIVE_REPORTS, live_replace },
    { 0 },
};

static const struct example live_examples[] = {
    { "bloomery live make /dev/shm/seen.bly -n 10M -p 0.1%",
      "for up to ten million keys" },
    { "bloomery add --live /dev/shm/seen.bly -f today.txt",
      "from as many processes as you like" },
    { "bloomery live checkpoint /var/lib/seen.bly",
      "what was added so far survives a power cut" },
    { 0 },
};

const struct command cmd_live = {
    .name = "live",
    .usage = "VERB FILE [OPTION]...",
    .summary = "one filter that many processes share and change",
    .about =
        "A live filter is in a file that any number of processes map. What one "
        "of them adds, all others find at once, and nobody takes a lock. It "
        "survives the death of any process at any moment, and a power cut as "
        "far as its last checkpoint. docs/live.md says more.\n\n"
        "Kinds of bits and plain counters can be live: blocked, classic, "
        "countmin and their relatives.",
    .verbs = live_verbs,
    .examples = live_examples,
};
