/*
 * unique.c - the lines of a stream, each the first time it comes
 *
 * All threads cut and hash (io/pipeline.h); then blocks take their turn, and
 * each line is added to a filter, which says whether it was new. So the answer
 * is the same for any number of threads.
 *
 * What is printed, and what the filter on disk remembers:
 *
 *     turn     | add block 7 . write it | add block 8 . write it | add ...
 *     attend                            | save |
 *
 * A line is remembered on disk only after it was written: the lock `deciding`
 * is held from the first addition of a block until its lines are out, and the
 * filter is saved by whoever holds it. So a process that dies, at whatever
 * moment, may print some lines again in the next run, but never loses one.
 * Where standard output is a file, it is on disk before the filter is, so that
 * this holds for power cuts too.
 *
 * A second thread attends to time and signals. It saves every now and then if
 * something changed; and on an interrupt it saves, says what came of it, and
 * lets the signal do what it would have done. Nobody waits for a turn whose
 * reader does not read; the previous version then stays.
 *
 * How many first-timers are swallowed? A new line comes through with 1 - p,
 * where p is the filter's rate of false positives at that moment. So each line
 * that was printed stands for p / (1 - p) that were not, and the sum over all
 * printed ones is the estimate. p is looked at whenever the filter has a
 * quarter more keys; in between it is taken for a power of their number, which
 * for a filter of bits it nearly is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/unique/unique.h"
#include "base/clock.h"
#include "base/signals.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "report/say.h"

/* A look reads all of the filter, 3 ns for 64 bytes: no more than that for each
 * line in between. At 2 bytes per key this is a look for each 32nd part of the
 * capacity, and the first one comes when the rate is still next to nothing. */
#define LOOK_BYTES 64

/* Saving may take this share of the time, however large the filter is. */
#define SAVING_SHARE 0.05

/* How long a signal waits for the block whose turn it is. */
#define SIGNAL_MS 1000

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

struct unique_run {
    const struct unique_options *opt;
    bly_keeper *keeper; /* NULL: the filter is not kept */
    bly_filter *f;
    bool ticks;      /* it forgets with time */
    bool copies;     /* a key that comes again takes room, or has to be removed
                        as often as it came */
    bool taken;      /* by this turn: `deciding` */
    sigset_t waited; /* for: signals that are not ignored */
    sigset_t before; /* what was blocked */
    pthread_t attendant;
    bool attended;

    pthread_mutex_t deciding; /* all that follows, and f */
    pthread_cond_t given_back;
    atomic_bool wanted; /* by the attendant: turns stand back */
    bool torn;          /* f has lines that are not printed */
    bool changed;       /* since it was saved */
    bool warned;        /* that it cannot be saved */
    struct unique_report r;
    double keys, odds; /* in f, and p / (1 - p), at the last look */
    uint64_t looked;   /* r.printed at that time */
};

/* --------------------------------------------------------------- swallowed */

/* The sum of the odds over the keys from n0 to n1, of a power of n. */
static double sum_of_odds(double n0, double odds0, double n1, double odds1)
{
    const double k = log(odds1 / odds0) / log(n1 / n0);
    const double sum = (n1 * odds1 - n0 * odds0) / (k + 1);
    return n0 > 0 && odds0 > 0 && isfinite(sum) && k > -1
               ? sum
               : (n1 - n0) * (odds0 + odds1) / 2;
}

/* Look at the rate, and count what was swallowed since the last look. */
static void look(struct unique_run *u)
{
    bly_stats *const s = &u->r.filter;
    bly_stat(u->f, s);
    const double keys = u->keys + (double)(u->r.printed - u->looked);
    const double odds =
        s->fpr_now < 1 ? s->fpr_now / (1 - s->fpr_now) : INFINITY;
    if (keys > u->keys)
        u->r.swallowed += sum_of_odds(u->keys, u->odds, keys, odds);
    u->keys = keys;
    u->odds = odds;
    u->looked = u->r.printed;
}

/* How many lines may be printed until the next look: 64 or more. */
static uint64_t look_after(const struct unique_run *u)
{
    const double least =
        fmax(u->keys / 4, (double)u->r.filter.bytes / LOOK_BYTES);
    const uint64_t since = u->r.printed - u->looked;
    return least < 64 + (double)since ? 64 : (uint64_t)least - since;
}

static void look_first(struct unique_run *u)
{
    look(u);
    const bly_stats *const s = &u->r.filter;
    u->keys = isfinite(s->items_estimate) ? s->items_estimate
                                          : (double)s->items_added;
}

/* ----------------------------------------------------------------- saving */

/* What was printed to a file must not be remembered before it is on disk. */
static bool output_lasts(void)
{
    struct stat st;
    return fstat(STDOUT_FILENO, &st) || !S_ISREG(st.st_mode) ||
           fdatasync(STDOUT_FILENO) == 0 || errno == EINVAL;
}

/* Save what is printed. Holds `deciding`. False, with the reason printed, if
 * that failed. */
static bool save(struct unique_run *u)
{
    if (!u->keeper || !u->changed)
        return true;
    const bool lasts = output_lasts();
    if (lasts && bly_keeper_save(u->keeper) == BLY_OK) {
        u->changed = u->warned = false;
        return true;
    }
    if (!u->warned)
        fail("%s; the filter stays as it was saved last, and lines since then "
             "will be printed again",
             lasts ? bly_error() : strerror(errno));
    u->warned = true;
    return false;
}

/* ------------------------------------------------------------- attendance */

/* Take the lock; while it is wanted, no turn begins. False if that took too
 * long. */
static bool take_over(struct unique_run *u, const struct timespec *until)
{
    atomic_store(&u->wanted, true);
    const int error = until ? pthread_mutex_timedlock(&u->deciding, until)
                            : pthread_mutex_lock(&u->deciding);
    atomic_store(&u->wanted, false);
    return error == 0;
}

static void give_back(struct unique_run *u)
{
    pthread_cond_broadcast(&u->given_back);
    pthread_mutex_unlock(&u->deciding);
}

/* End as the signal would have ended it, but with all in its place. */
static void end_by(struct unique_run *u, int number)
{
    const struct timespec until = clock_day_after(SIGNAL_MS);
    progress_clear();
    if (take_over(u, &until)) {
        if (!u->torn)
            save(u);
        look(u);
        u->opt->tell(&u->r);
    } else if (u->keeper) {
        warn("%s: not saved, since nobody reads the output; lines since the "
             "last time will be printed again",
             u->opt->path);
    }
    signals_die(number);
    pthread_sigmask(SIG_UNBLOCK, &u->waited, NULL);
}

static struct timespec span(double seconds)
{
    const double whole = floor(seconds);
    return (struct timespec){ .tv_sec = (time_t)whole,
                              .tv_nsec = (long)((seconds - whole) * 1e9) };
}

static void *attend(void *arg)
{
    struct unique_run *const u = arg;
    double pause = (double)u->opt->every;
    for (;;) {
        const struct timespec limit = span(pause);
        int state;
        /* Only here can it be ended, and not while it saves. */
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
        const int number = sigtimedwait(&u->waited, NULL, &limit);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        if (number > 0)
            end_by(u, number);
        if (number > 0 || errno != EAGAIN)
            continue;
        const double start = clock_seconds();
        take_over(u, NULL);
        if (!u->torn)
            save(u);
        give_back(u);
        pause = fmax((double)u->opt->every,
                     (clock_seconds() - start) / SAVING_SHARE);
    }
    return NULL;
}

/* Signals go to the attendant from here on, in all threads. One that is ignored
 * (nohup) stays so. */
static void attend_begin(struct unique_run *u)
{
    sigemptyset(&u->waited);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (signals_heeded(ends[i]))
            sigaddset(&u->waited, ends[i]);
    pthread_sigmask(SIG_BLOCK, &u->waited, &u->before);
    u->attended = pthread_create(&u->attendant, NULL, attend, u) == 0;
    if (!u->attended) /* then signals do what they always do */
        pthread_sigmask(SIG_SETMASK, &u->before, NULL);
}

static void attend_end(struct unique_run *u)
{
    if (!u->attended)
        return;
    pthread_cancel(u->attendant);
    pthread_join(u->attendant, NULL);
}

/* ----------------------------------------------------------------- deciding */

/* Add the keys that are not there, one by one. */
static bly_status add_absent(bly_filter *f, const uint64_t *hashes, size_t n,
                             uint64_t *fresh)
{
    bly_status st = BLY_OK;
    for (size_t i = 0; i < n && !st; i++) {
        if (bly_has_hash(f, hashes[i]))
            continue;
        st = bly_add_hash(f, hashes[i]);
        fresh[i / 64] |= (uint64_t)!st << i % 64;
    }
    return st;
}

static bly_status add_some(struct unique_run *u, const uint64_t *hashes,
                           size_t n, uint64_t *fresh)
{
    const bly_status st = u->copies
                              ? add_absent(u->f, hashes, n, fresh)
                              : bly_add_hashes(u->f, hashes, n, fresh, NULL);
    u->r.lines += n;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(n); i++)
        u->r.printed += (uint64_t)__builtin_popcountll(fresh[i]);
    if (look_after(u) == 64)
        look(u);
    return st;
}

static bly_status unique_batch(struct job *job, struct batch *b)
{
    struct unique_run *const u = job->ctx;
    if (!u->taken) {
        pthread_mutex_lock(&u->deciding);
        while (atomic_load(&u->wanted))
            pthread_cond_wait(&u->given_back, &u->deciding);
        u->taken = true;
    }
    u->torn = true;
    bly_status st = u->ticks ? filter_tick(u->f) : BLY_OK;
    for (size_t from = 0, n; from < b->n && !st; from += n) {
        const uint64_t most = look_after(u) / 64 * 64; /* words of the bitmap */
        n = b->n - from < most ? b->n - from : (size_t)most;
        st = add_some(u, b->hashes + from, n, b->picked + from / 64);
    }
    return st;
}

static void unique_written(struct job *job, bool ok)
{
    struct unique_run *const u = job->ctx;
    if (!u->taken)
        return;
    u->taken = false;
    u->changed = true;
    u->torn = !ok;
    pthread_mutex_unlock(&u->deciding);
}

/* ------------------------------------------------------------------ running */

/* The filter in opt->path, which is made if there is none, or one that is not
 * kept. False, with the reason printed. */
static bool filter_begin(struct unique_run *u, struct input *in)
{
    const struct unique_options *const opt = u->opt;
    const char *const path = opt->path;
    const bly_access how = { .secret = opt->secret, .wait = wait_for_lock };
    bly_kind_info kind;
    bly_filter *made = NULL;
    if (path && !can_change(path))
        return false;
    const bool there = path && access(path, F_OK) == 0;
    if (there && !filter_to_change(path, &how, BLY_CAN(ADD), in, &kind))
        return false;
    bly_status st = there ? BLY_OK : bly_new(&opt->spec, &made);
    if (!st && path)
        st = bly_keeper_new(path, &how, made, &u->keeper);
    if (st)
        fail_library();
    if (path)
        bly_free(made);
    u->f = path ? (st ? NULL : bly_keeper_filter(u->keeper)) : made;
    if (!u->f)
        return false;
    bly_kind_of(u->f, &kind);
    u->ticks = kind.can & BLY_CAN(TICK);
    u->copies = kind.can & BLY_CAN(REMOVE);
    return filter_can(u->f, path ? path : kind.name, BLY_CAN(HAS));
}

static void filter_end(struct unique_run *u)
{
    if (u->keeper)
        bly_keeper_free(u->keeper);
    else
        bly_free(u->f);
}

int unique(const struct unique_options *opt, struct input *in)
{
    struct unique_run u = { .opt = opt,
                            .deciding = PTHREAD_MUTEX_INITIALIZER,
                            .given_back = PTHREAD_COND_INITIALIZER,
                            .r.file = opt->path };
    struct job job = { .batch = unique_batch,
                       .written = unique_written,
                       .in_order = true,
                       .prints = true,
                       .goes_on = true,
                       .terminator = opt->terminator,
                       .nthreads = opt->nthreads,
                       .ctx = &u };
    if (!filter_begin(&u, in)) {
        filter_end(&u);
        return TROUBLE;
    }
    job.hasher = bly_hasher_of(u.f);
    in->goes_on = true;
    in->keep_header = true;
    look_first(&u);
    attend_begin(&u);
    const bly_status st = pipeline_run(&job, in);
    attend_end(&u);
    /* Whatever stopped it: what was printed may be remembered. */
    int status = st ? fail("%s", job.error) : job.trouble ? TROUBLE : YES;
    if (u.torn && u.keeper && st)
        note("%s: stays as it was saved last", opt->path);
    else if (!u.torn && !save(&u))
        status = TROUBLE;
    look(&u);
    if (!u.torn) /* else it is not known what was printed */
        opt->tell(&u.r);
    filter_end(&u);
    pthread_sigmask(SIG_SETMASK, &u.before, NULL);
    return status;
}

const struct field unique_fields[] = {
    FIELD(struct unique_report, file, MAYBE, "where the filter is kept"),
    FIELD(struct unique_report, lines, NONE, "lines that were read"),
    FIELD(struct unique_report, printed, NONE,
          "of them, those that came for the first time"),
    FIELD(struct unique_report, swallowed, ROUNDED | MAYBE,
          "estimate: lines that came for the first time and were not printed"),
    NAMED(struct unique_report, "kind", filter.kind, NONE,
          "kind of the filter"),
    NAMED(struct unique_report, "items", filter.items_estimate, NONE | MAYBE,
          "different keys in it, estimated from its contents"),
    NAMED(struct unique_report, "bytes", filter.bytes, BYTES,
          "memory that it takes"),
    NAMED(struct unique_report, "fpr_now", filter.fpr_now, RATE | MAYBE,
          "chance that a line that comes for the first time is swallowed now"),
    { 0 },
};
