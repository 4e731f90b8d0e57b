/*
 * count.c - bloomery traffic count: packets and bytes of every flow
 *
 * A capture is read once for the size of the sketch, once to count, and once
 * more to print every flow that is in it. With --keys the flows come from a
 * list, and with count-min, which is sized by its error alone, one reading is
 * enough: then it may be a pipe or an interface.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <bloomery/sketch.h>

#include "apps/traffic/capture.h"
#include "apps/traffic/choices.h"
#include "apps/traffic/tally.h"
#include "apps/traffic/traffic.h"
#include "io/filters.h"
#include "io/input.h"
#include "report/out.h"
#include "report/say.h"

#define DEFAULT_ERROR 0.0001 /* of count-min: of all packets, of all bytes */
#define DEFAULT_WRONG 0.01   /* of spectral: of the flows */
#define CODE_ERROR 0.2       /* of space-code: docs/kinds/spacecode.md */
#define DISTINCT_BITS 14     /* 0.8 % */
/* Flows that were printed are remembered in a filter; this share is not
 * printed. */
#define UNSEEN 1e-6

struct count_run {
    const struct traffic_args *args;
    const char *name;
    struct key_choice key;
    bool csv;
    struct tally_spec spec;
    struct tally tally;
    bly_hll *distinct;
    bly_filter *seen;
    struct count_summary sum;
    bool damaged;
};

/* ------------------------------------------------------------------ passes */

/* What is done with every packet that has a key. */
typedef bly_status count_take(struct count_run *r, const struct flow_key *key,
                              uint64_t bytes);

static bly_status measure_take(struct count_run *r, const struct flow_key *key,
                               uint64_t bytes)
{
    const uint64_t hash = tally_hash(&r->tally, key);
    (void)bytes;
    return bly_hll_add(r->distinct, &hash, 1);
}

static bly_status tally_take(struct count_run *r, const struct flow_key *key,
                             uint64_t bytes)
{
    return tally_packet(&r->tally, tally_hash(&r->tally, key), bytes);
}

static void row_print(const struct count_run *r, const struct flow_key *key,
                      uint64_t packets, uint64_t bytes)
{
    struct count_row row = { .packets = packets == UINT64_MAX ? NULL : &packets,
                             .bytes = bytes == UINT64_MAX ? NULL : &bytes };
    _Static_assert(sizeof row.key == FLOW_TEXT, "a row has the text");
    key_text(r->key, key, row.key);
    if (r->args->json)
        report(stdout, true, count_fields, &row, NULL);
    else
        report_text(stdout, count_fields, &row,
                    r->csv ? "{key},{packets:#},{bytes:#}\n"
                           : "[{packets:14#}|          many] "
                             "[{bytes:16#}|            many]  {key}\n");
}

static bly_status print_take(struct count_run *r, const struct flow_key *key,
                             uint64_t bytes)
{
    const uint64_t hash = tally_hash(&r->tally, key);
    uint64_t fresh, packets;
    bly_status st = bly_add_hashes(r->seen, &hash, 1, &fresh, NULL);
    if (st || !fresh)
        return st;
    st = tally_get(&r->tally, hash, &packets, &bytes);
    if (!st) {
        row_print(r, key, packets, bytes);
        r->sum.flows++;
    }
    return st;
}

/* All packets of the capture. False, with the reason printed, if that cannot go
 * on; one that ends too early is told by the last pass. */
static bool count_pass(struct count_run *r, count_take *take, bool last)
{
    struct capture c;
    struct captured_frame f;
    struct flow_key key;
    struct traffic_totals t = { 0 };
    int64_t first = 0, newest = 0;
    bly_status st = BLY_OK;
    enum captured got = CAPTURED_END;
    if (!capture_open(r->name, r->args->interface != NULL, &c))
        return false;
    if (c.live)
        signals_watch(NULL);
    c.hushed = !last;
    while (!st && !(c.live && signals_told()) &&
           !(c.live && r->args->number && t.packets >= r->args->number)) {
        got = capture_next(&c, &f);
        if (got == CAPTURED_NONE)
            continue;
        if (got != CAPTURED)
            break;
        if (!t.packets)
            first = newest = f.ns;
        t.backwards += f.ns < newest;
        newest = f.ns > newest ? f.ns : newest;
        if (frame_key(&c, &f, r->args->inner, r->key, &t, &key))
            st = take(r, &key, f.wire);
    }
    t.seconds = (double)(newest - first) / 1e9;
    r->damaged = got == CAPTURED_TROUBLE || capture_lost(&c, &t.lost);
    capture_close(&c);
    r->sum.totals = t;
    return !st || refuse_library();
}

/* -------------------------------------------------------------------- keys */

struct asking {
    struct count_run *r;
    uint64_t line;
};

static bool key_read(const struct asking *a, bly_bytes text,
                     struct flow_key *key)
{
    return key_parse(a->r->key, text.ptr, text.len, key) ||
           refuse("%s: line %llu is not a flow with the key %s; expected one "
                  "per line, as count prints them",
                  a->r->args->count.keys, (unsigned long long)a->line,
                  a->r->args->key ? a->r->args->key : "5tuple");
}

static bool key_ask(void *ctx, bly_bytes text)
{
    struct asking *const a = ctx;
    struct flow_key key;
    uint64_t packets, bytes;
    a->line++;
    if (!key_read(a, text, &key))
        return false;
    if (tally_get(&a->r->tally, tally_hash(&a->r->tally, &key), &packets,
                  &bytes))
        return refuse_library();
    row_print(a->r, &key, packets, bytes);
    a->r->sum.flows++;
    return true;
}

static bool key_check(void *ctx, bly_bytes text)
{
    struct asking *const a = ctx;
    struct flow_key key;
    a->line++;
    return key_read(a, text, &key);
}

static bool keys_each(struct count_run *r, bool (*take)(void *, bly_bytes))
{
    struct input in;
    struct asking a = { r, 0 };
    input_files(&in, &r->args->count.keys, 1, false);
    in.normal.no_cr = true; /* no part of a flow */
    const bool ok = input_each(&in, take, &a);
    if (in.error[0])
        fail("%s", in.error);
    input_close(&in);
    return ok;
}

/* Asked before packets are counted for nothing, for hours perhaps. A pipe can
 * be read only once. */
static bool keys_good(struct count_run *r)
{
    const char *const name = r->args->count.keys;
    struct stat file;
    if (strcmp(name, "-") == 0 ||
        (stat(name, &file) == 0 && !S_ISREG(file.st_mode)))
        return true;
    return keys_each(r, key_check);
}

/* ----------------------------------------------------------------- running */

static bool count_options(struct count_run *r, const struct list *operands)
{
    const struct traffic_args *const a = r->args;
    if (!key_option(a, &r->key) || !form_option(a, &r->csv))
        return false;
    r->spec.kind = (enum tally_kind)a->count.sketch;
    if (a->interface ? operands->n : operands->n != 1)
        return refuse("usage: bloomery traffic count CAPTURE, or --interface "
                      "NAME --keys FILE");
    r->name = a->interface ? a->interface : operands->at[0];
    const bool once = a->interface || strcmp(r->name, "-") == 0;
    if (once && (!a->count.keys || r->spec.kind != TALLY_COUNTMIN))
        return refuse("%s: packets of an interface come only once; only "
                      "countmin can count them, for flows that are known "
                      "beforehand; use --sketch countmin --keys FILE",
                      r->name);
    if (a->count.error > 0 && r->spec.kind == TALLY_SPACECODE)
        return refuse("--error: spacecode has no options for it; use countmin "
                      "or spectral");
    r->spec.seed = a->seed;
    r->spec.error = a->count.error > 0               ? a->count.error
                    : r->spec.kind == TALLY_COUNTMIN ? DEFAULT_ERROR
                                                     : DEFAULT_WRONG;
    return true;
}

/* How many flows are there? */
static bool flows_measure(struct count_run *r)
{
    r->tally.hasher = (bly_hasher){ .id = BLY_HASH_XXH3, .seed = r->spec.seed };
    if (bly_hll_new(DISTINCT_BITS, NULL, &r->distinct))
        return refuse_library();
    if (!count_pass(r, measure_take, false))
        return false;
    r->spec.flows = (uint64_t)ceil(bly_hll_estimate(r->distinct, NULL));
    r->spec.packets = r->sum.totals.packets;
    r->spec.bytes = r->sum.totals.bytes;
    return true;
}

static bool count_run(struct count_run *r)
{
    const bool all = !r->args->count.keys;
    const bool sized = r->spec.kind != TALLY_COUNTMIN;
    if (!all && !keys_good(r))
        return false;
    if ((all || sized) && !flows_measure(r))
        return false;
    if (tally_new(&r->spec, &r->tally))
        return refuse_library();
    if (all) {
        const bly_spec s = { .kind = "classic",
                             .items = r->spec.flows + r->spec.flows / 20 + 100,
                             .fpr = UNSEEN,
                             .seed = r->spec.seed };
        if (bly_new(&s, &r->seen))
            return refuse_library();
    }
    if (!count_pass(r, tally_take, !all))
        return false;
    if (tally_flush(&r->tally))
        return refuse_library();
    if (r->csv)
        puts("key,packets,bytes");
    else if (!r->args->json)
        printf("%14s %16s  %s\n", "packets", "bytes", "flow");
    return all ? count_pass(r, print_take, true) : keys_each(r, key_ask);
}

static void count_summary_print(struct count_run *r)
{
    struct count_summary *const s = &r->sum;
    bly_stats p, b;
    bly_stat(r->tally.packets, &p);
    bly_stat(r->tally.bytes, &b);
    s->sketch = tally_name(r->spec.kind);
    s->memory = p.bytes + b.bytes;
    s->packets_over = s->bytes_over = s->wrong = s->relative = NAN;
    s->delta = NAN;
    switch (r->spec.kind) {
    case TALLY_COUNTMIN:
        s->packets_over = fact_value(&p, "bound");
        s->bytes_over = fact_value(&b, "bound");
        s->delta = fact_value(&p, "delta");
        break;
    case TALLY_SPECTRAL:
        s->wrong = p.fpr_at_capacity;
        break;
    case TALLY_SPACECODE:
    default:
        s->relative = CODE_ERROR;
        break;
    }
    if (quiet)
        return;
    report(
        r->args->json ? stdout : stderr, r->args->json, count_sum_fields, s,
        "{packets packet/s}, {bytes}; {flows flow/s}, counted by {sketch} in "
        "{memory}[; never too low, and too high by more than "
        "{packets_over:.0} packets or {bytes_over:.0} bytes in {delta} of "
        "all cases][; {wrong} of the flows are too high][; wrong by "
        "{relative} on average, packets or bytes]"
        "[; {?other}{other} no IP][; {?cut}{cut} cut too short]"
        "[; {?bad}{bad} bad][; {?backwards}{backwards} out of order]\n");
}

int traffic_count(const struct traffic_args *args, const struct list *operands)
{
    struct count_run r = { .args = args };
    int status = TROUBLE;
    if (count_options(&r, operands) && count_run(&r)) {
        count_summary_print(&r);
        status = r.damaged ? TROUBLE : YES;
    }
    tally_free(&r.tally);
    bly_free(r.seen);
    bly_hll_free(r.distinct);
    return status;
}
