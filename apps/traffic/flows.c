/*
 * flows.c - bloomery traffic flows: who sends much
 *
 * A flow is printed with what was counted of it, and with the most that it may
 * have sent. Both ends of an interval are times of packets, not of this
 * machine's clock, except on an interface on which nothing arrives.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "apps/traffic/capture.h"
#include "apps/traffic/choices.h"
#include "apps/traffic/flows_history.h"
#include "apps/traffic/flows_view.h"
#include "apps/traffic/multistage.h"
#include "apps/traffic/traffic.h"
#include "base/clock.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

#define NS 1e9
#define DEFAULT_SHARE 0.001 /* of all bytes of a capture */
#define DEFAULT_STAGES 4
#define STRENGTH 10          /* counters for each flow that could be large */
#define DEFAULT_LIVE 1000000 /* bytes per interval */

struct flows_run {
    const struct traffic_args *args;
    struct key_choice key;
    int64_t interval; /* nanoseconds; 0: all of it is one */
    bool csv;
    struct multistage_spec spec;
    struct multistage *m;
    struct flows_summary sum;
    int64_t begin; /* of the interval */
    int64_t first, last;
    bool any;      /* packet was seen */
    bool measured; /* whole, or not at all */
    bool broken;   /* something cannot be shown, and the reason is printed */

    struct flows_view *view;       /* on a terminal; NULL: lines */
    int64_t asked;                 /* when keys were last looked for */
    struct flows_history *history; /* for a picture; NULL: none */
    uint64_t drawn;                /* bytes of the intervals in it */
};

/* ----------------------------------------------------------------- options */

/* "1%" of the bytes, or bytes. */
static bool threshold_read(const char *text, double *share, uint64_t *bytes)
{
    char number[32];
    const size_t n = strlen(text);
    *share = 0;
    *bytes = 0;
    if (n > 1 && n < sizeof number && text[n - 1] == '%') {
        memcpy(number, text, n - 1);
        number[n - 1] = '\0';
        if (bly_parse_real(number, share) && *share > 0 && *share <= 100) {
            *share /= 100;
            return true;
        }
    } else if (bly_parse_count(text, bytes) && *bytes > 0) {
        return true;
    }
    return refuse("--threshold '%s': not a number of bytes or a share of them "
                  "(try 1M, 0.1%%)",
                  text);
}

/* How many bytes does the capture have, at most, in an interval? */
static bool capture_measure(const char *name, int64_t interval, double *most,
                            bool *whole)
{
    struct capture c;
    struct captured_frame f;
    enum captured got;
    int64_t begin = 0;
    double sum = 0;
    bool any = false;
    if (!capture_open(name, false, &c))
        return false;
    *most = 0;
    c.hushed = true; /* what is damaged is said when it is read again */
    while ((got = capture_next(&c, &f)) == CAPTURED) {
        if (!any || (interval && f.ns - begin >= interval)) {
            begin = f.ns;
            sum = 0;
            any = true;
        }
        sum += (double)f.wire;
        *most = fmax(*most, sum);
    }
    *whole = got == CAPTURED_END;
    capture_close(&c);
    return true;
}

static bool spec_make(struct flows_run *r, const char *name)
{
    const struct traffic_args *const a = r->args;
    double share = a->flows.threshold ? 0 : DEFAULT_SHARE, bytes = 0;
    r->measured = true;
    uint64_t threshold = a->interface && !a->flows.threshold ? DEFAULT_LIVE : 0;
    if (a->flows.threshold &&
        !threshold_read(a->flows.threshold, &share, &threshold))
        return false;
    if (!threshold) {
        if (a->interface || strcmp(name, "-") == 0)
            return refuse("a share of the bytes is known only once they have "
                          "been read; give --threshold in bytes");
        if (!capture_measure(name, r->interval, &bytes, &r->measured))
            return false;
        threshold = (uint64_t)fmax(1, ceil(bytes * share));
    }
    const double large = bytes > 0 ? bytes / (double)threshold : 1000;
    const uint64_t counters =
        a->flows.counters
            ? a->flows.counters
            : (uint64_t)fmin(STRENGTH * ceil(large) + 64, 1 << 24);
    r->spec = (struct multistage_spec){
        .stages = a->flows.stages ? (unsigned)a->flows.stages : DEFAULT_STAGES,
        .counters = counters,
        .threshold = threshold,
        .entries = a->entries ? a->entries : counters,
        .seed = a->seed,
        .serial = a->flows.serial,
        .shared = a->flows.shared,
        .plain = a->flows.plain,
        .unshielded = a->flows.unshielded,
    };
    if (a->interface && !a->seed &&
        getrandom(&r->spec.seed, sizeof r->spec.seed, 0) < 0)
        return refuse("the system has no random numbers");
    return true;
}

static bool options_fit(struct flows_run *r, const struct list *operands)
{
    const struct traffic_args *const a = r->args;
    if (!key_option(a, &r->key) || !form_option(a, &r->csv))
        return false;
    if (a->flows.serial && (a->flows.shared || a->flows.plain))
        return refuse("--serial stages have arrays of their own, and count "
                      "plainly; leave out --shared and --plain");
    if (a->interface && operands->n)
        return refuse("--interface and a capture exclude each other");
    if (!a->interface && operands->n != 1)
        return refuse(
            "usage: bloomery traffic flows CAPTURE, or --interface NAME");
    if (a->flows.plot && a->interval == 0 && !a->interface)
        return refuse(
            "--plot draws flows over time; use it with --interval SECONDS");
    r->interval = (int64_t)(a->interval * NS);
    if (a->interface && !r->interval)
        r->interval = (int64_t)NS;
    return true;
}

/* ---------------------------------------------------------------- printing */

static void head_print(const struct flows_run *r)
{
    if (r->csv)
        puts("interval,key,bytes,bytes_max,packets");
    else if (!r->args->json)
        printf("%14s %14s %10s  %s\n", "bytes", "at most", "packets", "flow");
}

static void row_print(const struct flows_run *r, const struct flow_row *row)
{
    if (r->args->json)
        report(stdout, true, flow_fields, row, NULL);
    else if (r->csv)
        printf("%.9f,%s,%llu,%llu,%llu\n", row->interval, row->key,
               (unsigned long long)row->bytes,
               (unsigned long long)row->bytes_max,
               (unsigned long long)row->packets);
    else
        printf("%14llu %14llu %10llu  %s\n", (unsigned long long)row->bytes,
               (unsigned long long)row->bytes_max,
               (unsigned long long)row->packets, row->key);
}

static void interval_lines(struct flows_run *r, const struct flow *flows,
                           size_t n)
{
    if (r->interval && !r->args->json && !r->csv) {
        const time_t at = (time_t)(r->begin / (int64_t)NS);
        struct tm tm;
        char text[32] = "";
        if (gmtime_r(&at, &tm))
            strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
        printf("%s.%03d, %g s\n", text, (int)(r->begin % (int64_t)NS / 1000000),
               (double)r->interval / NS);
    }
    for (size_t i = 0; i < n && (!r->args->flows.top || i < r->args->flows.top);
         i++) {
        struct flow_row row = { .interval = (double)r->begin / NS,
                                .bytes = flows[i].bytes,
                                .bytes_max = flows[i].bytes + flows[i].before,
                                .packets = flows[i].packets };
        _Static_assert(sizeof row.key == FLOW_TEXT, "a row has the text");
        key_text(r->key, &flows[i].key, row.key);
        row_print(r, &row);
    }
    if (r->args->interface)
        fflush(stdout);
}

/* An interval has ended: its flows to wherever they are shown. */
static void interval_show(struct flows_run *r)
{
    const struct flow *flows;
    const size_t n = multistage_flows(r->m, &flows);
    const uint64_t top = r->args->flows.top;
    if (r->history)
        history_add(r->history, r->begin, r->interval, flows, n,
                    r->sum.totals.bytes - r->drawn);
    r->drawn = r->sum.totals.bytes;
    if (!r->view)
        interval_lines(r, flows, n);
    else if (!view_take(r->view, flows, n, &r->sum.totals,
                        (double)r->interval / NS))
        r->broken = true;
    r->sum.flows += top && top < n ? top : n;
    r->sum.intervals++;
}

/* ----------------------------------------------------------------- running */

/* Intervals follow each other without gaps; those in which nothing came are
 * not printed. */
static void interval_turn(struct flows_run *r, int64_t now)
{
    if (!r->interval || now - r->begin < r->interval)
        return;
    interval_show(r);
    multistage_turn(r->m);
    r->begin += (now - r->begin) / r->interval * r->interval;
}

static void frame_take(struct flows_run *r, const struct capture *c,
                       const struct captured_frame *f)
{
    struct flow_key key;
    if (!r->any) {
        r->begin = r->first = r->last = f->ns;
        r->any = true;
    }
    if (f->ns < r->begin)
        r->sum.totals.backwards++;
    interval_turn(r, f->ns);
    r->last = f->ns > r->last ? f->ns : r->last;
    if (frame_key(c, f, r->args->inner, r->key, &r->sum.totals, &key))
        multistage_packet(r->m, &key, f->wire);
}

#define KEYS_EVERY 50000000 /* nanoseconds, while packets come */

/* Does whoever looks on want to go on? Asking takes a system call, so not for
 * each packet. */
static bool view_goes_on(struct flows_run *r, int64_t now)
{
    if (!r->view || llabs(now - r->asked) < KEYS_EVERY)
        return true;
    r->asked = now;
    return view_keys(r->view);
}

static int capture_run(struct flows_run *r, struct capture *c)
{
    struct captured_frame f;
    for (;;) {
        if (r->broken || (c->live && signals_told()))
            return YES;
        if (c->live && r->args->number &&
            r->sum.totals.packets >= r->args->number)
            return YES;
        switch (capture_next(c, &f)) {
        case CAPTURED:
            frame_take(r, c, &f);
            if (!view_goes_on(r, f.ns))
                return YES;
            break;
        case CAPTURED_NONE:
            if (r->any && f.ns)
                interval_turn(r, f.ns - CAPTURE_LATE);
            if (!view_goes_on(r, clock_day_ns()))
                return YES;
            break;
        case CAPTURED_END:
            return YES;
        case CAPTURED_TROUBLE:
        default:
            return TROUBLE;
        }
    }
}

static void summary_print(struct flows_run *r)
{
    struct flows_summary *const s = &r->sum;
    s->totals.seconds = r->any ? (double)(r->last - r->first) / NS : 0;
    s->threshold = r->spec.threshold;
    s->stages = r->spec.stages;
    s->counters = r->spec.counters;
    s->entries = r->spec.entries;
    s->memory = multistage_bytes(r->m);
    s->dropped = multistage_dropped(r->m);
    if (!quiet)
        report(r->args->json ? stdout : stderr, r->args->json, flows_fields, s,
               "{packets packet/s}, {bytes}; {flows flow/s} of {threshold} and "
               "more, in {memory}[; {?other}{other} no IP][; {?cut}{cut} cut "
               "too short][; {?bad}{bad} bad]"
               "[; {?backwards}{backwards} out of order]\n");
}

/* Whatever flows are shown in; false, with the reason printed. */
static bool show_begin(struct flows_run *r)
{
    const struct traffic_args *const a = r->args;
    if (a->flows.plot) {
        r->history = calloc(1, sizeof *r->history);
        if (!r->history)
            return refuse("out of memory");
        r->history->key = r->key;
    }
    if (a->interface && !a->json && !r->csv && view_possible()) {
        r->view = view_begin(a->interface, r->key, a->flows.top);
        return r->view != NULL;
    }
    head_print(r);
    return true;
}

int traffic_flows(const struct traffic_args *args, const struct list *operands)
{
    struct flows_run r = { .args = args };
    struct capture c;
    if (!options_fit(&r, operands))
        return TROUBLE;
    const char *const name =
        args->interface ? args->interface : operands->at[0];
    if (!spec_make(&r, name))
        return TROUBLE;
    r.m = multistage_new(&r.spec);
    if (!r.m)
        return fail("out of memory: %llu counters and %llu entries",
                    (unsigned long long)(r.spec.counters * r.spec.stages),
                    (unsigned long long)r.spec.entries);
    if (!capture_open(name, args->interface != NULL, &c)) {
        multistage_free(r.m);
        return TROUBLE;
    }
    int status = TROUBLE;
    if (c.live)
        signals_watch(NULL);
    if (show_begin(&r))
        status = capture_run(&r, &c);
    if (r.any)
        interval_show(&r);
    view_end(r.view);
    if (capture_lost(&c, &r.sum.totals.lost))
        status = TROUBLE;
    summary_print(&r);
    if (r.broken)
        status = fail("the view could not be shown: no memory, or no terminal");
    if (r.history && !args->flows.draw(r.history, args->flows.plot))
        status = TROUBLE;
    if (status == YES && !r.measured)
        status = fail("%s: the first reading ended early, so the threshold is "
                      "a share of only a part; run it again",
                      name);
    if (r.sum.dropped)
        status =
            fail("%s: %llu times a flow that may be large had no room and was "
                 "not counted; use --entries %llu, or a higher --threshold",
                 name, (unsigned long long)r.sum.dropped,
                 (unsigned long long)r.spec.entries * 4);
    capture_close(&c);
    multistage_free(r.m);
    free(r.history);
    return status;
}
