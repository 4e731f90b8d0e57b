/*
 * cmd_shrink.c - a filter folded in half, as often as it goes
 *
 * Without -o the filter is changed where it lies, under its lock, as add and
 * remove do it. With -o it is left as it is.
 */
#include <math.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "report/show.h"

static struct {
    const char *output;
    uint64_t times, bytes;
    double fpr;
    bool json;
} shrink_args;

struct shrinking {
    const char *path;
    uint64_t nfolds;
    bool said; /* why it failed */
    bly_stats old, new;
    double next_rate; /* that one fold more would have had; NAN: not tried */
};

/* ---------------------------------------------------------------- folding */

/* Has s what was asked for? To the rate alone there is no end. */
static bool shrink_done(const struct shrinking *s)
{
    if (shrink_args.times)
        return s->nfolds >= shrink_args.times;
    if (shrink_args.bytes)
        return filter_size(&s->new) <= shrink_args.bytes;
    return shrink_args.fpr > 0 ? false : s->nfolds >= 1;
}

/* It cannot be folded further: print why, unless the rate was to decide when to
 * stop. */
static bool shrink_stops(const struct shrinking *s)
{
    const bool too_often = !isnan(s->next_rate);
    if (!shrink_args.times && !shrink_args.bytes && shrink_args.fpr > 0)
        return true;
    if (too_often)
        fail("%s: folded %llu times it takes %s; folded once more it would "
             "have %s false positives, more than --fpr",
             s->path, (unsigned long long)s->nfolds,
             show_bytes(filter_size(&s->new)), show_rate(s->next_rate));
    else if (s->nfolds)
        fail("%s: folded %llu times it takes %s; further: %s", s->path,
             (unsigned long long)s->nfolds, show_bytes(filter_size(&s->new)),
             bly_error());
    else
        fail("%s: %s", s->path, bly_error());
    return false;
}

/* f, folded; or NULL, with the reason printed. */
static bly_filter *shrink_filter(struct shrinking *s, const bly_filter *f)
{
    bly_filter *now = NULL, *half; /* NULL: still f */
    s->said = true;
    s->next_rate = NAN;
    bly_stat(f, &s->old);
    s->new = s->old;
    if (!filter_can(f, s->path, BLY_CAN(FOLD)))
        return NULL;
    while (!shrink_done(s)) {
        bly_stats stats;
        if (bly_fold(now ? now : f, &half))
            half = NULL;
        else
            bly_stat(half, &stats);
        if (half && shrink_args.fpr > 0 && stats.fpr_now > shrink_args.fpr) {
            s->next_rate = stats.fpr_now;
            bly_free(half);
            half = NULL;
        }
        if (!half) {
            if (shrink_stops(s))
                break;
            bly_free(now);
            return NULL;
        }
        bly_free(now);
        now = half;
        s->new = stats;
        s->nfolds++;
    }
    if (!now && bly_clone(f, &now))
        fail("%s: %s", s->path, bly_error());
    s->said = !now;
    return now;
}

static bly_status shrink_in_place(bly_filter *f, void *ctx)
{
    struct shrinking *const s = ctx;
    bly_filter *const small = shrink_filter(s, f);
    return small ? bly_become(f, small) : BLY_EINVAL;
}

static int shrink_to(struct shrinking *s, const char *output)
{
    const bly_access how = { .blind = true,
                             .checking = BLY_CHECK_ALL,
                             .wait = wait_for_lock };
    bly_filter *const f = filter_map(s->path, &how);
    if (!f)
        return TROUBLE;
    bly_filter *const small = shrink_filter(s, f);
    const int status = small ? filter_save(small, output) : TROUBLE;
    bly_free(small);
    bly_free(f);
    return status;
}

/* ---------------------------------------------------------------- telling */

struct shrunk {
    const char *file, *kind;
    uint64_t folds, bytes_before, bytes;
    double fpr_now_before, fpr_now, fpr_at_capacity;
    const char *rate_before, *rate;
    bool several;
};

static const struct field shrunk_fields[] = {
    FIELD(struct shrunk, file, NONE, "where the filter was written"),
    FIELD(struct shrunk, kind, NONE, "its kind"),
    FIELD(struct shrunk, folds, NONE, "how often it was folded in half"),
    FIELD(struct shrunk, bytes_before, BYTES, "size of its cells before"),
    FIELD(struct shrunk, bytes, BYTES, "and after"),
    FIELD(struct shrunk, fpr_now_before, RATE | MAYBE,
          "false positives with the keys it holds before"),
    FIELD(struct shrunk, fpr_now, RATE | MAYBE, "and after"),
    FIELD(struct shrunk, fpr_at_capacity, RATE | MAYBE,
          "false positives at capacity"),
    FIELD(struct shrunk, rate_before, NONE, NULL),
    FIELD(struct shrunk, rate, NONE, NULL),
    FIELD(struct shrunk, several, NONE, NULL),
    { 0 },
};

static void shrink_report(FILE *to, const char *output,
                          const struct shrinking *s)
{
    const char *rates[2];
    show_rates(s->old.fpr_now, s->new.fpr_now, rates);
    const struct shrunk shrunk = { output,
                                   s->new.kind,
                                   s->nfolds,
                                   filter_size(&s->old),
                                   filter_size(&s->new),
                                   s->old.fpr_now,
                                   s->new.fpr_now,
                                   s->new.fpr_at_capacity,
                                   rates[0],
                                   rates[1],
                                   s->nfolds != 1 };
    report(to, shrink_args.json, shrunk_fields, &shrunk,
           "{file}: {kind}, folded {folds} time[{?several}s]: {bytes_before} "
           "to {bytes}, false positives now {rate_before} to {rate}\n");
}

static int shrink_run(struct list *operands)
{
    if (operands->n != 1)
        return fail("only one filter can be shrunk at a time, not %zu",
                    operands->n);
    if (shrink_args.times && (shrink_args.bytes || shrink_args.fpr > 0))
        return fail("--times says how often; --fpr and --bytes say how far: "
                    "give one or the other");
    struct shrinking s = { .path = operands->at[0] };
    const char *const output = shrink_args.output ? shrink_args.output : s.path;
    const bool in_place = !shrink_args.output || is_same_file(output, s.path);
    if (in_place ? !can_change(s.path)
                 : !output_works(output, shrink_args.json))
        return TROUBLE;
    FILE *const to = report_to(output);
    const bly_access blind = { .blind = true, .wait = wait_for_lock };
    int status = YES;
    if (!in_place)
        status = shrink_to(&s, output);
    else if (bly_update(s.path, &blind, shrink_in_place, &s))
        status = s.said ? TROUBLE : fail_library();
    if (status == YES && !quiet)
        shrink_report(to, output, &s);
    return status;
}

static const struct opt shrink_options[] = {
    { "output", 'o', OPT_TEXT, &shrink_args.output, "FILE",
      "write the result to FILE and leave FILTER as it is; - is standard "
      "output" },
    { "times", 0, OPT_POSITIVE, &shrink_args.times, "N",
      "fold it this many times; once if not given" },
    { "fpr", 'p', OPT_RATE, &shrink_args.fpr, "P",
      "fold it as often as its rate of false positives, with its present "
      "contents, stays at or below P" },
    { "bytes", 0, OPT_POSITIVE, &shrink_args.bytes, "SIZE",
      "fold it until it takes no more than SIZE: 64KiB; with --fpr as well, "
      "but not past that rate" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(shrink_args),
    { 0 },
};

static const struct example shrink_examples[] = {
    { "bloomery shrink words.bly", "halve it, in place" },
    { "bloomery shrink --fpr 1% -o small.bly words.bly",
      "as small as 1 % allows" },
    { "bloomery build -O folds=4 -n 10M -o day.bly day.txt",
      "a filter that can be folded four times" },
    { 0 },
};

const struct command cmd_shrink = {
    .name = "shrink",
    .usage = "[OPTION]... FILTER",
    .summary = "halve a filter without its keys",
    .about = "Folds a filter in half: two of its cells become one. It then has "
             "the same keys in half the memory and at least twice the rate of "
             "false positives: that of the old filter with twice as many keys. "
             "This brings a filter that was made for too many keys down to "
             "size. For kinds made of bits, the result is exactly the filter "
             "that would have been built at this size.\n\n"
             "Only an even size can be halved. Build with -O folds=N to fold N "
             "times later; bloomery kinds says which kinds can fold. Without "
             "-o the filter is changed in its file.",
    .options = shrink_options,
    .examples = shrink_examples,
    .reports = (const struct report[]){ { "", shrunk_fields, ONE }, { 0 } },
    .run = shrink_run,
};
