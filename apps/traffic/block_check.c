/*
 * block_check.c - what a list would have stopped in a capture
 *
 * With the exact list beside it: whom it would have hit by mistake. Asking the
 * exact list also shows that the filter misses nobody.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/block.h"
#include "apps/traffic/block_file.h"
#include "apps/traffic/block_xdp.h"
#include "apps/traffic/capture.h"
#include "base/grow.h"
#include "io/files.h"
#include "base/lookup.h"
#include "report/say.h"

#define MOST_VICTIMS ((size_t)1 << 20)
#define RULES (33 + 129)
#define LINK_OF_KERNEL 1 /* Ethernet */

struct victims {
    struct victim {
        struct prefix address;
        uint64_t packets, bytes;
    } * at;
    size_t n, room;
    struct lookup by_address;
};

struct check_run {
    const struct traffic_args *args;
    struct block_file list;
    struct prefix_set exact, allow;
    struct block_rule rules[RULES];
    struct victims victims;
    uint64_t mistaken, mistaken_bytes, missed, disagree;
    struct xdp_trial trial;
    struct block_summary sum;
};

/* ------------------------------------------------------------------ victims */

/* False: there is no room for another one. */
static bool victim_count(struct victims *v, const struct prefix *p,
                         uint64_t bytes)
{
    const uint64_t hash = table_hash(p->at, sizeof p->at);
    struct victim *at = NULL;
    LOOKUP_EACH (&v->by_address, hash, row)
        if (prefix_order(&v->at[row].address, p) == 0)
            at = &v->at[row];
    if (!at) {
        if (v->n == MOST_VICTIMS || !GROW(&v->at, &v->room, v->n + 1) ||
            !lookup_add(&v->by_address, hash, v->n))
            return false;
        at = &v->at[v->n++];
        *at = (struct victim){ .address = *p };
    }
    at->packets++;
    at->bytes += bytes;
    return true;
}

static int by_packets(const void *a, const void *b)
{
    const struct block_victim *const x = a, *const y = b;
    if (x->packets != y->packets)
        return x->packets < y->packets ? 1 : -1;
    return strcmp(x->address, y->address);
}

static struct block_victim *victims_list(const struct victims *v)
{
    struct block_victim *const out = calloc(v->n + 1, sizeof *out);
    for (size_t i = 0; out && i < v->n; i++) {
        _Static_assert(sizeof out->address == PREFIX_TEXT, "a text");
        prefix_text(&v->at[i].address, out[i].address);
        out[i].packets = v->at[i].packets;
        out[i].bytes = v->at[i].bytes;
    }
    if (out)
        qsort(out, v->n, sizeof *out, by_packets);
    return out;
}

/* ----------------------------------------------------------------- packets */

/* Rules in the order of the list: IPv4 and then IPv6, longest first. */
static struct block_rule *rule_of(struct check_run *r, unsigned version,
                                  unsigned bits)
{
    struct block_rule *rule = r->rules;
    while (rule->version != version || rule->bits != bits)
        rule++;
    return rule;
}

static void rules_begin(struct check_run *r)
{
    const struct prefix_lengths *const l = &r->list.lengths;
    for (unsigned i = 0; i < l->nfour; i++)
        r->rules[r->sum.nrules++] =
            (struct block_rule){ .version = 4, .bits = l->four[i] };
    for (unsigned i = 0; i < l->nsix; i++)
        r->rules[r->sum.nrules++] =
            (struct block_rule){ .version = 6, .bits = l->six[i] };
    r->sum.rules = r->rules;
}

static void rule_count(struct check_run *r, const struct packet *p, int bits,
                       uint64_t bytes)
{
    struct block_rule *const rule = rule_of(r, p->version, (unsigned)bits);
    rule->packets++;
    rule->bytes += bytes;
}

/* What IPv6 cannot do without: the kernel's program lets it pass, too. */
static bool is_discovery(const struct packet *p)
{
    return p->version == 6 && p->nip >= 41 && p->ip[6] == 58 &&
           p->ip[7] == 255 && p->ip[40] >= 133 && p->ip[40] <= 137;
}

/* Is a packet with an address stopped? */
static bool packet_check(struct check_run *r, const struct packet *p,
                         uint64_t bytes)
{
    const bool only = r->args->block.only;
    const int bits = block_match(&r->list, p->version, p->source);
    const bool listed = r->args->block.exact &&
                        prefix_set_match(&r->exact, p->version, p->source);
    r->missed += listed && bits < 0;
    if ((bits >= 0) == only) {
        if (only)
            rule_count(r, p, bits, bytes);
        return false;
    }
    if (prefix_set_match(&r->allow, p->version, p->source) ||
        (only && is_discovery(p))) {
        r->sum.allowed++;
        return false;
    }
    if (!only)
        rule_count(r, p, bits, bytes);
    r->sum.stopped++;
    r->sum.stopped_bytes += bytes;
    if (r->args->block.exact && !listed) {
        const struct prefix from =
            prefix_of(p->version, p->source, p->version == 4 ? 32 : 128);
        r->mistaken++;
        r->mistaken_bytes += bytes;
        r->sum.others += !victim_count(&r->victims, &from, bytes);
    }
    return true;
}

static bool frame_check(struct check_run *r, const struct capture *c,
                        const struct captured_frame *f)
{
    struct traffic_totals *const t = &r->sum.totals;
    struct packet p;
    bool stopped = false;
    t->packets++;
    t->bytes += f->wire;
    switch (packet_parse(c->link, f->at, f->n, r->args->inner, &p)) {
    case PACKET_IP:
        stopped = packet_check(r, &p, f->wire);
        break;
    case PACKET_CUT:
        t->cut++;
        break;
    case PACKET_BAD:
        t->bad++;
        break;
    case PACKET_OTHER:
    default:
        t->other++;
        break;
    }
    if (r->args->block.kernel && c->link != LINK_OF_KERNEL)
        return refuse("%s: the kernel's program is for Ethernet", c->name);
    return !r->args->block.kernel ||
           xdp_trial_packet(&r->trial, f->at, f->n, stopped, &r->disagree);
}

/* *begun: it could be opened. */
static int capture_check(struct check_run *r, const char *name, bool *begun)
{
    struct capture c;
    struct captured_frame f;
    enum captured got = CAPTURED_TROUBLE;
    int64_t first = 0, newest = 0;
    if (!capture_open(name, false, &c))
        return TROUBLE;
    bool ok =
        !r->args->block.kernel ||
        xdp_trial_begin(&r->trial, &r->list, &r->allow, r->args->block.only);
    *begun = ok;
    while (ok && (got = capture_next(&c, &f)) == CAPTURED) {
        if (!r->sum.totals.packets)
            first = newest = f.ns;
        r->sum.totals.backwards += f.ns < newest;
        newest = f.ns > newest ? f.ns : newest;
        ok = frame_check(r, &c, &f);
    }
    r->sum.totals.seconds = (double)(newest - first) / 1e9;
    capture_close(&c);
    return ok && got == CAPTURED_END ? YES : TROUBLE;
}

/* ---------------------------------------------------------------- reporting */

static void check_print(struct check_run *r)
{
    struct block_summary *const s = &r->sum;
    struct block_victim *const victims = victims_list(&r->victims);
    if (r->args->block.exact) {
        s->mistaken = &r->mistaken;
        s->mistaken_bytes = &r->mistaken_bytes;
        s->missed = &r->missed;
    }
    if (r->args->block.kernel)
        s->disagree = &r->disagree;
    s->ns_passed = r->args->block.kernel ? xdp_trial_ns(&r->trial, false) : NAN;
    s->ns_empty = r->args->block.kernel ? xdp_empty_ns() : NAN;
    s->ns_stopped = r->args->block.kernel ? xdp_trial_ns(&r->trial, true) : NAN;
    s->victims = victims;
    s->nvictims = victims ? r->victims.n : 0;
    if (!r->args->json) {
        printf("%14s %16s  %s\n", "packets", "bytes",
               r->args->block.only ? "let pass by" : "stopped by");
        for (size_t i = 0; i < s->nrules; i++)
            printf("%14llu %16llu  IPv%u /%u\n",
                   (unsigned long long)s->rules[i].packets,
                   (unsigned long long)s->rules[i].bytes, s->rules[i].version,
                   s->rules[i].bits);
        for (size_t i = 0; i < s->nvictims; i++)
            printf("%14llu %16llu  by mistake: %s\n",
                   (unsigned long long)s->victims[i].packets,
                   (unsigned long long)s->victims[i].bytes,
                   s->victims[i].address);
    }
    if (!quiet)
        report(r->args->json ? stdout : stderr, r->args->json, block_sum_fields,
               s,
               "{packets packet/s}, {bytes}; {stopped} stopped, "
               "{stopped_bytes}[; {mistaken} of them by mistake]"
               "[; {?allowed}{allowed} allowed]"
               "[; the kernel takes {ns_passed:.0} ns to pass a packet]"
               "[; {ns_stopped:.0} ns to stop one][; {ns_empty:.0} ns to do "
               "nothing][; {?other}{other} no IP][; {?cut}{cut} cut too short]"
               "[; {?bad}{bad} bad][; {?backwards}{backwards} out of order]\n");
    free(victims);
}

int block_check(const struct traffic_args *args, const struct list *operands)
{
    struct check_run r = { .args = args };
    int status = TROUBLE;
    bool ok;
    if (operands->n != 2)
        return fail("usage: bloomery traffic block LIST.bly CAPTURE, or -o "
                    "LIST.bly LIST..., or --xdp INTERFACE LIST.bly");
    const unsigned char *const secret = secret_read(args->block.key_file, &ok);
    if (ok && block_open(operands->at[0], secret, &r.list) &&
        block_set_read(args->block.exact, args->block.skip_bad, &r.exact) &&
        block_set_read(args->block.allow, args->block.skip_bad, &r.allow)) {
        rules_begin(&r);
        bool begun = false;
        status = capture_check(&r, operands->at[1], &begun);
        if (begun)
            check_print(&r);
        if (r.missed)
            status = fail("%s: %llu packets from addresses of --exact pass: it "
                          "was made of another list, or they have expired",
                          operands->at[0], (unsigned long long)r.missed);
        if (r.disagree)
            status = fail("the kernel's program disagrees on %llu packets",
                          (unsigned long long)r.disagree);
        if (status == YES && !r.sum.stopped)
            status = NO;
    }
    xdp_trial_end(&r.trial);
    block_close(&r.list);
    prefix_set_free(&r.exact);
    prefix_set_free(&r.allow);
    free(r.victims.at);
    lookup_free(&r.victims.by_address);
    return status;
}
