/*
 * guard_verb.c - bloomery traffic guard: heavy senders are blocked for a time
 *
 * Two multistage filters find who sends too much, by bytes and by packets. Only
 * what a sender was seen to send, packet by packet, gets it blocked: a filter's
 * guess gives it an entry, and from then on it is counted exactly, until it has
 * sent as much as the threshold in one interval. So nobody is blocked since he
 * shares counters with others, and a sender is noticed after twice the
 * threshold at most.
 *
 * Those who are blocked are dropped in the kernel, which counts what they go on
 * sending. Whoever still sends too much stays blocked, and is released when he
 * has not for a while.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "apps/traffic/block.h"
#include "apps/traffic/capture.h"
#include "apps/traffic/choices.h"
#include "apps/traffic/guard_list.h"
#include "apps/traffic/multistage.h"
#include "apps/traffic/traffic.h"
#include "base/clock.h"
#include "report/say.h"

#define DEFAULT_TTL 60
#define DEFAULT_ROOM 10000 /* senders that are blocked at once */
#define DEFAULT_COUNTERS                                 \
    65536 /* 2 MiB: 0.1 % of a 10 Gb/s link is 1.2 MB/s, \
             which then fills 1000 of them */
#define STAGES 4
#define ENTRIES 16384  /* senders that are counted exactly */
#define LOOK_EVERY 0.1 /* seconds */
#define CHECK_EVERY 1.0

struct guard_run {
    const struct traffic_args *args;
    struct key_choice key;
    struct multistage *by_bytes, *by_packets; /* NULL: no such threshold */
    uint64_t most_bytes, most_packets;        /* in an interval */
    double interval, ttl;
    struct guard_list list;
    struct prefix_set allow;
    struct guard_summary sum;
    double begin, turned, looked, checked; /* of the steady clock */
    uint64_t no_room;                      /* since it was last said */
};

/* ----------------------------------------------------------------- telling */

static void row_print(const struct guard_run *r, struct guard_row row,
                      const struct prefix *p)
{
    const int64_t now = clock_day_ns();
    const time_t at = (time_t)(now / 1000000000);
    struct tm tm;
    char text[32] = "";
    _Static_assert(sizeof row.source == PREFIX_TEXT, "a text");
    row.time = (double)now / 1e9;
    if (p)
        prefix_text(p, row.source);
    if (!r->args->json && gmtime_r(&at, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm))
        printf("%s.%03d ", text, (int)(now % 1000000000 / 1000000));
    report(stdout, r->args->json, guard_row_fields, &row,
           "{event}[ {?source}{source}]:[ {?senders}{senders heavy "
           "sender/s}][ {?packets}{packets packet/s}][{?bytes}, {bytes}] in "
           "{seconds:-0.1} s\n");
    fflush(stdout);
}

/* ----------------------------------------------------------------- blocking */

static struct prefix source_of(const struct guard_run *r,
                               const struct flow_key *key)
{
    const uint8_t version = key->at[0];
    const unsigned all = version == 4 ? 32 : 128;
    return prefix_of(version, key->at + 1,
                     r->key.form == KEY_PREFIX ? prefix_bits(r->key, version)
                                               : all);
}

/* Has it sent too much in this interval? Then its count begins again. */
static bool flow_is_heavy(struct flow *f, uint64_t most, struct flow *sent)
{
    if (!f || f->bytes < most)
        return false;
    *sent = *f;
    f->bytes = f->packets = f->before = 0;
    return true;
}

static void sender_block(struct guard_run *r, const struct prefix *p,
                         double now, uint64_t packets, uint64_t bytes)
{
    if (prefix_set_match(&r->allow, p->version, p->at)) {
        r->sum.spared++;
        return;
    }
    if (!guard_block(&r->list, p, now, r->ttl)) {
        r->sum.no_room++;
        r->no_room++;
        return;
    }
    r->sum.blocked++;
    if (r->list.n > r->sum.most)
        r->sum.most = r->list.n;
    row_print(r,
              (struct guard_row){ .event = "block",
                                  .seconds = now - r->turned,
                                  .packets = packets,
                                  .bytes = bytes },
              p);
}

static void frame_take(struct guard_run *r, const struct capture *c,
                       const struct captured_frame *f, double now)
{
    struct flow_key key;
    struct flow sent;
    uint64_t bytes = 0, packets = 0;
    if (!frame_key(c, f, r->args->inner, r->key, &r->sum.totals, &key))
        return;
    const struct prefix p = source_of(r, &key);
    struct guard_entry *const e = r->list.n ? guard_find(&r->list, &p) : NULL;
    if (e) {
        /* What came before it was blocked, or in a dry run all. */
        e->packets += r->list.dry;
        e->bytes += r->list.dry ? f->wire : 0;
        return;
    }
    bool heavy = false;
    if (r->by_bytes &&
        flow_is_heavy(multistage_packet(r->by_bytes, &key, f->wire),
                      r->most_bytes, &sent)) {
        heavy = true;
        bytes = sent.bytes;
        packets = sent.packets;
    }
    if (r->by_packets &&
        flow_is_heavy(multistage_packet(r->by_packets, &key, 1),
                      r->most_packets, &sent)) {
        heavy = true;
        packets = sent.packets;
    }
    if (heavy)
        sender_block(r, &p, now, packets, bytes);
}

/* ---------------------------------------------------------------- releasing */

/* Whoever still sends too much stays. */
static bool senders_look(struct guard_run *r, double now)
{
    const double spent = now - r->looked;
    bool gone = false;
    for (size_t i = r->list.n; i-- > 0;) {
        struct guard_entry *const e = &r->list.at[i];
        uint64_t packets, bytes;
        guard_look(&r->list, e, &packets, &bytes);
        r->sum.stopped += packets;
        r->sum.stopped_bytes += bytes;
        if ((r->args->guard.bytes &&
             (double)bytes >= (double)r->args->guard.bytes * spent) ||
            (r->args->guard.packets &&
             (double)packets >= (double)r->args->guard.packets * spent))
            guard_renew(&r->list, e, now, r->ttl);
        if (now < e->until)
            continue;
        row_print(r,
                  (struct guard_row){ .event = "release",
                                      .seconds = now - e->since,
                                      .packets = e->packets,
                                      .bytes = e->bytes },
                  &e->p);
        r->sum.released++;
        guard_release(&r->list, i);
        gone = true;
    }
    return !gone || guard_settle(&r->list);
}

/* What is due, however many packets come. */
static bool times_turn(struct guard_run *r, double now)
{
    bool ok = true;
    if (now - r->turned >= r->interval) {
        if (r->by_bytes)
            multistage_turn(r->by_bytes);
        if (r->by_packets)
            multistage_turn(r->by_packets);
        r->turned = now;
    }
    if (now - r->looked >= LOOK_EVERY) {
        ok = senders_look(r, now);
        r->looked = now;
    }
    if (ok && now - r->checked >= CHECK_EVERY) {
        if (r->no_room)
            row_print(r,
                      (struct guard_row){ .event = "no room",
                                          .seconds = now - r->checked,
                                          .senders = r->no_room },
                      NULL);
        r->no_room = 0;
        ok = guard_check(&r->list, now);
        r->checked = now;
    }
    return ok;
}

static int guard_serve(struct guard_run *r, struct capture *c)
{
    struct captured_frame f;
    r->begin = r->turned = r->looked = r->checked = clock_seconds();
    for (;;) {
        if (signals_told() ||
            (r->args->number && r->sum.totals.packets >= r->args->number))
            return YES;
        const enum captured got = capture_next(c, &f);
        const double now = clock_seconds();
        if (got == CAPTURED)
            frame_take(r, c, &f, now);
        else if (got == CAPTURED_END)
            return YES;
        else if (got != CAPTURED_NONE)
            return TROUBLE;
        if (!times_turn(r, now))
            return TROUBLE;
    }
}

/* ---------------------------------------------------------------- beginning */

static bool filter_make(const struct guard_run *r, uint64_t most, uint64_t seed,
                        struct multistage **out, uint64_t *memory)
{
    const struct multistage_spec spec = { .stages = STAGES,
                                          .counters =
                                              r->args->guard.counters
                                                  ? r->args->guard.counters
                                                  : DEFAULT_COUNTERS,
                                          .threshold = most,
                                          .entries = ENTRIES,
                                          .seed = seed };
    *out = multistage_new(&spec);
    if (!*out)
        return refuse("out of memory: %llu counters",
                      (unsigned long long)spec.counters * STAGES);
    *memory += multistage_bytes(*out);
    return true;
}

static uint64_t in_interval(uint64_t rate, double interval)
{
    return (uint64_t)fmax(1, ceil((double)rate * interval));
}

static bool guard_begin(struct guard_run *r)
{
    const struct traffic_args *const a = r->args;
    uint64_t seed = a->seed;
    const size_t room = a->entries ? (size_t)a->entries : DEFAULT_ROOM;
    if (!key_choose(a->key ? a->key : "src", &r->key) ||
        (r->key.form != KEY_SOURCE && r->key.form != KEY_PREFIX))
        return refuse("--key '%s': senders are told apart by src or prefix/N",
                      a->key);
    if (!seed && getrandom(&seed, sizeof seed, 0) < 0)
        return refuse("the system has no random numbers");
    r->interval = a->interval > 0 ? a->interval : 1;
    r->ttl = a->guard.ttl ? (double)a->guard.ttl : DEFAULT_TTL;
    r->most_bytes = in_interval(a->guard.bytes, r->interval);
    r->most_packets = in_interval(a->guard.packets, r->interval);
    r->sum.dry_run = a->guard.dry_run;
    r->sum.memory = room * sizeof *r->list.at;
    return (!a->guard.bytes || filter_make(r, r->most_bytes, seed, &r->by_bytes,
                                           &r->sum.memory)) &&
           (!a->guard.packets || filter_make(r, r->most_packets, ~seed,
                                             &r->by_packets, &r->sum.memory)) &&
           block_set_read(a->block.allow, a->block.skip_bad, &r->allow);
}

static void summary_print(struct guard_run *r)
{
    r->sum.totals.seconds = clock_seconds() - r->begin;
    if (!quiet)
        report(r->args->json ? stdout : stderr, r->args->json, guard_fields,
               &r->sum,
               "{packets packet/s}, {bytes}; [{?dry_run}would have ]blocked "
               "{blocked sender/s}, {most} at once[; {?no_room}{no_room} found "
               "no room][; {?spared}{spared} allowed]; {stopped packet/s} "
               "stopped\n");
}

static int guard_at(struct guard_run *r, const char *name)
{
    const struct traffic_args *const a = r->args;
    const size_t room = a->entries ? (size_t)a->entries : DEFAULT_ROOM;
    const bool prefix = r->key.form == KEY_PREFIX;
    struct capture c;
    int status = TROUBLE;
    if (!capture_open(name, true, &c))
        return TROUBLE;
    signals_watch(NULL);
    if (guard_list_begin(&r->list, name, a->block.pins, room,
                         prefix ? (uint8_t)prefix_bits(r->key, 4) : 32,
                         prefix ? (uint8_t)prefix_bits(r->key, 6) : 128,
                         a->guard.dry_run)) {
        note("%s: who sends too much is %s, until a signal", name,
             a->guard.dry_run ? "named, and not blocked" : "blocked");
        status = guard_serve(r, &c);
        if (capture_lost(&c, &r->sum.totals.lost))
            status = TROUBLE;
        summary_print(r);
    }
    guard_list_end(&r->list);
    capture_close(&c);
    return status;
}

int traffic_guard(const struct traffic_args *args, const struct list *operands)
{
    struct guard_run r = { .args = args };
    int status = TROUBLE;
    if (!args->interface || operands->n)
        return fail("usage: bloomery traffic guard -i INTERFACE --byte-rate N "
                    "or --packet-rate N");
    if (!args->guard.bytes && !args->guard.packets)
        return fail("who sends too much? give --byte-rate or --packet-rate, "
                    "per second");
    if (guard_begin(&r))
        status = guard_at(&r, args->interface);
    multistage_free(r.by_bytes);
    multistage_free(r.by_packets);
    prefix_set_free(&r.allow);
    return status;
}
