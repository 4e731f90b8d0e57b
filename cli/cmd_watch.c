/*
 * cmd_watch.c - a live filter as it fills, like top
 *
 * Reads it as one more process does: nobody waits for it.
 */
#define _DEFAULT_SOURCE /* nanosleep() */

#include <errno.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "cli/rows.h"
#include "io/filters.h"
#include "io/live_files.h"

static struct {
    double every, checkpoint;
    uint64_t times;
    bool json;
} watch_args = { .every = 1 };

struct watched {
    const char *file;
    bly_stats s;
    struct live_told live;
    double per_second;
};

static const struct field watched_fields[] = {
    FIELD(struct watched, file, NONE, "the filter"),
    NAMED(struct watched, "fill", s.fill, SHARE | MAYBE, "cells in use"),
    NAMED(struct watched, "fpr_now", s.fpr_now, RATE | MAYBE,
          "false positives with the keys it holds"),
    NAMED(struct watched, "items_added", s.items_added, NONE,
          "additions that changed it"),
    FIELD(struct watched, per_second, ROUNDED | MAYBE,
          "of them, per second since the last line"),
    MEMBERS(struct watched, live, NONE, live_fields),
    { 0 },
};

static bool watch_sleep(double seconds)
{
    const uint64_t until = clock_ms() + (uint64_t)(seconds * 1000);
    for (uint64_t now; !signals_told() && (now = clock_ms()) < until;) {
        const uint64_t ms = until - now < 200 ? until - now : 200;
        (void)nanosleep(&(struct timespec){ .tv_nsec = (long)ms * 1000000 },
                        NULL);
    }
    return !signals_told();
}

/* One line. */
static bool watch_look(struct watched *w, const bly_filter *f, double *last)
{
    const uint64_t before = w->s.items_added;
    const double now = clock_seconds();
    const bool again = !isnan(*last) && now > *last;
    bly_stat(f, &w->s);
    if (!live_tell(f, &w->live)) {
        fail_library();
        return false;
    }
    w->per_second = again && w->s.items_added >= before
                        ? (double)(w->s.items_added - before) / (now - *last)
                        : NAN;
    *last = now;
    report(stdout, watch_args.json, watched_fields, w,
           "fill [{fill}|?]  wrong [{fpr_now}|?]  added {items_added}"
           "[  {per_second} per second]  users {users}  generation "
           "{generation}  checkpoint {checkpoint}[{?unclean}  unclean]\n");
    return fflush(stdout) == 0;
}

static int watch_run(struct list *operands)
{
    if (operands->n != 1)
        return fail("usage: bloomery watch FILE: one live filter");
    const bly_access how = { .blind = true,
                             .reading = watch_args.checkpoint <= 0 };
    struct watched w = { .file = operands->at[0], .per_second = NAN };
    bly_filter *f = live_open(w.file, &how);
    if (!f)
        return TROUBLE;
    double last = NAN, saved = clock_seconds();
    int status = YES;
    signals_watch(NULL);
    for (uint64_t n = 0; status == YES; n++) {
        if (bly_live_follow(&f) || !watch_look(&w, f, &last)) {
            status = fail_library();
        } else if (watch_args.checkpoint > 0 &&
                   last - saved >= watch_args.checkpoint) {
            saved = last;
            if (bly_checkpoint(f) && !bly_live_replaced(f))
                status = fail_library();
        }
        if ((watch_args.times && n + 1 >= watch_args.times) ||
            !watch_sleep(watch_args.every))
            break;
    }
    bly_free(f);
    return status;
}

static const struct opt watch_options[] = {
    OPTION("every", 0, OPT_SECONDS, &watch_args.every, "SECONDS",
           "time between two lines; 1 if not given"),
    OPTION("times", 0, OPT_POSITIVE, &watch_args.times, "N",
           "end after N lines; on a signal if not given"),
    OPTION("checkpoint", 0, OPT_SECONDS, &watch_args.checkpoint, "SECONDS",
           "make a checkpoint so often, for all who add to it"),
    JSON_OPTION(watch_args),
    { 0 },
};

static const struct example watch_examples[] = {
    { "bloomery watch /dev/shm/seen.bly", "a line per second, until Ctrl-C" },
    { "bloomery watch --checkpoint 30 /var/lib/seen.bly",
      "and what was added is on disk after half a minute" },
    { 0 },
};

const struct command cmd_watch = {
    .name = "watch",
    .usage = "[OPTION]... FILE",
    .summary = "watch a live filter as it fills",
    .about = "Prints a line about a live filter (bloomery live) every second: "
             "how full it is, how often it is wrong, how many keys were added "
             "and how many per second, who has it open, its generation and its "
             "last checkpoint. It follows the filter when that is replaced. "
             "The whole filter is read for each line: choose a longer time "
             "with --every if it is large.",
    .options = watch_options,
    .examples = watch_examples,
    .reports = REPORTS({ "", watched_fields, LINES }),
    .run = watch_run,
};
