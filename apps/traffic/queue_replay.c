/*
 * queue_replay.c - bloomery traffic queue CAPTURE: what would have been dropped
 *
 * Packets come when the capture says, and leave at the rate of the link.
 * Senders cannot answer a drop, so that this shows who is hit, not what they
 * would have done then.
 */
#include <math.h>
#include <stdlib.h>

#include "apps/traffic/each.h"
#include "apps/traffic/queue_verb.h"
#include "apps/traffic/traffic.h"
#include "report/out.h"
#include "report/say.h"

struct waiting_packet {
    double leaves; /* when the link has sent it */
    struct sfb_ticket ticket;
};

struct replay {
    const struct traffic_args *args;
    struct sfb *sfb;
    double link;
    struct waiting_packet *ring;
    size_t room, first, n;
    double idle; /* when the link has nothing more to do */
    double now, start;
    struct queue_summary sum;
};

static void packets_leave(struct replay *r, double now)
{
    while (r->n && r->ring[r->first].leaves <= now) {
        sfb_leave(r->sfb, &r->ring[r->first].ticket);
        r->first = (r->first + 1) % r->room;
        r->n--;
    }
}

static bool packet_arrive(void *ctx, const struct capture *c,
                          const struct captured_frame *f)
{
    struct replay *const r = ctx;
    const struct key_choice all = { .form = KEY_5TUPLE };
    struct flow_key key;
    struct waiting_packet p;
    if (!frame_key(c, f, r->args->inner, all, &r->sum.totals, &key))
        return true; /* counted there */
    const double at = (double)f->ns / 1e9;
    if (r->sum.totals.packets == 1 || isnan(r->start))
        r->start = r->now = r->idle = at;
    r->sum.totals.backwards += at < r->now;
    r->now = fmax(r->now, at); /* a clock that runs backwards stands still */
    packets_leave(r, r->now);
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = r->args->seed };
    const uint64_t flow = bly_hash(&h, key.at, key.len);
    if (sfb_arrive(r->sfb, flow, r->now, &p.ticket) != SFB_TAKEN)
        return true;
    r->idle = fmax(r->idle, r->now) + (double)f->wire * 8 / r->link;
    p.leaves = r->idle;
    r->sum.sent += f->wire;
    r->ring[(r->first + r->n++) % r->room] = p;
    return true;
}

int queue_replay(const struct traffic_args *args, const char *path)
{
    struct sfb_spec spec;
    struct capture c;
    struct replay r = { .args = args, .start = NAN };
    if (!queue_options(args, &spec, &r.link))
        return TROUBLE;
    r.room = spec.limit;
    if (!capture_open(path, false, &c))
        return TROUBLE;
    r.sfb = sfb_new(&spec);
    r.ring = malloc(r.room * sizeof *r.ring);
    int status = TROUBLE;
    if (r.sfb && r.ring) {
        status = capture_each(&c, 0, packet_arrive, &r);
        r.sum.totals.seconds = isnan(r.start) ? 0 : r.now - r.start;
        queue_summary_print(args, &r.sum, sfb_sum(r.sfb));
    } else {
        fail("out of memory");
    }
    sfb_free(r.sfb);
    free(r.ring);
    capture_close(&c);
    return status;
}

int traffic_queue(const struct traffic_args *args, const struct list *operands)
{
    return queue_any(args, operands, queue_replay);
}
