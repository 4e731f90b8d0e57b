/*
 * queue_live.c - bloomery traffic queue --tun NAME --out INTERFACE: a queue
 * between what sends and an interface that is too slow
 *
 *     senders -> route -> TUN device -> [ this queue ] -> interface (tbf, a
 *                                                         modem, a radio)
 *
 * Whether a packet is taken is decided when it comes; what was taken leaves in
 * order, as soon as the interface has room or, with --rate, as soon as the link
 * would have sent the one before it. Nothing is remembered of a flow but its
 * bins.
 */
#define _GNU_SOURCE
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "apps/traffic/packet.h"
#include "apps/traffic/queue_verb.h"
#include "apps/traffic/tun.h"
#include "base/clock.h"
#include "base/signals.h"
#include "report/say.h"

#define LINK_RAW 101   /* DLT_RAW of captures: IP without a frame */
#define AT_ONCE 64     /* packets, before others have their turn */
#define LONGEST 65536  /* bytes of a packet */
#define WAIT_MS 1000   /* at most, since signals may come in between */
#define CATCH_UP 0.002 /* seconds that a paced link may be late */

struct held_packet {
    unsigned char *at;
    size_t n;
    struct sfb_ticket ticket;
};

struct queue_run {
    const struct traffic_args *args;
    struct tun tun;
    struct sfb *sfb; /* NULL: drop-tail */
    uint64_t seed;
    struct held_packet *ring;
    size_t room, first, n;
    double link;         /* bits per second; 0: as fast as it goes */
    double idle;         /* when the link has sent all that it was given */
    struct sfb_sum tail; /* what drop-tail has counted */
    struct queue_summary sum;
};

/* ----------------------------------------------------------------- arrival */

/* What cannot be told apart is one flow. */
static uint64_t flow_of(struct queue_run *r, const unsigned char *at, size_t n)
{
    const struct key_choice all = { .form = KEY_5TUPLE };
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = r->seed };
    struct traffic_totals *const t = &r->sum.totals;
    struct flow_key key = { .len = 0 };
    struct packet p;
    t->packets++;
    t->bytes += n;
    const enum packet_state state = packet_parse(LINK_RAW, at, n, false, &p);
    t->other += state == PACKET_OTHER;
    t->bad += state == PACKET_BAD;
    if (state == PACKET_CUT || (state == PACKET_IP && !key_of(all, &p, &key)))
        t->cut++;
    return bly_hash(&h, key.at, key.len);
}

static bool taken(struct queue_run *r, uint64_t flow, double now,
                  struct sfb_ticket *ticket)
{
    if (r->sfb)
        return sfb_arrive(r->sfb, flow, now, ticket) == SFB_TAKEN;
    const bool room = r->n < r->room;
    ++*(room ? &r->tail.taken : &r->tail.full);
    return room;
}

static bool packet_come(struct queue_run *r, const unsigned char *at, size_t n,
                        double now)
{
    struct held_packet p = { .n = n };
    if (!taken(r, flow_of(r, at, n), now, &p.ticket))
        return true;
    p.at = malloc(n);
    if (!p.at)
        return refuse("out of memory: %zu packets wait", r->n);
    memcpy(p.at, at, n);
    r->ring[(r->first + r->n++) % r->room] = p;
    return true;
}

/* ----------------------------------------------------------------- leaving */

static void packet_drop(struct queue_run *r)
{
    struct held_packet *const p = &r->ring[r->first];
    if (r->sfb)
        sfb_leave(r->sfb, &p->ticket);
    free(p->at);
    r->first = (r->first + 1) % r->room;
    r->n--;
}

/* All that can be sent now. */
static void packets_leave(struct queue_run *r, double now)
{
    while (r->n && (!(r->link > 0) || r->idle <= now)) {
        const struct held_packet *const p = &r->ring[r->first];
        const enum tun_sent sent = tun_send(&r->tun, p->at, p->n);
        if (sent == TUN_WAIT)
            return;
        if (sent == TUN_SENT) {
            r->sum.sent += p->n;
            /* The link counts from when it was free, or else every wait of
             * this process would be lost; but not from long ago. */
            if (r->link > 0)
                r->idle =
                    fmax(r->idle, now - CATCH_UP) + (double)p->n * 8 / r->link;
        }
        r->sum.refused += sent == TUN_REFUSED;
        packet_drop(r);
    }
}

/* Packets in turn: each that comes may leave at once, so that a burst finds an
 * idle link idle. */
static bool packets_come(struct queue_run *r, double now)
{
    static unsigned char buffer[LONGEST];
    for (unsigned i = 0; i < AT_ONCE; i++) {
        const ptrdiff_t n = tun_next(&r->tun, buffer, sizeof buffer);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        if (!packet_come(r, buffer, (size_t)n, now))
            return false;
        packets_leave(r, now);
    }
    return true;
}

/* Until a packet comes, or the next one can leave. */
static void queue_wait(const struct queue_run *r, double now)
{
    struct pollfd on[2] = { { .fd = r->tun.device, .events = POLLIN },
                            { .fd = -1, .events = POLLOUT } };
    double wait = WAIT_MS / 1e3;
    if (r->n && r->link > 0 && r->idle > now) {
        wait = fmin(wait, r->idle - now);
    } else if (r->n) {
        const struct held_packet *const p = &r->ring[r->first];
        on[1].fd = tun_way(&r->tun, p->at, p->n);
    }
    const struct timespec most = { (time_t)wait,
                                   (long)((wait - floor(wait)) * 1e9) };
    ppoll(on, 2, &most, NULL);
}

static int queue_serve(struct queue_run *r)
{
    const double start = r->idle = clock_seconds();
    double looked = start;
    int status = YES;
    while (status == YES && !signals_told()) {
        const double now = clock_seconds();
        packets_leave(r, now);
        if (!packets_come(r, now))
            status = TROUBLE;
        else
            queue_wait(r, clock_seconds());
        /* Without packets nothing else would tell. */
        if (status == YES && now - looked >= WAIT_MS / 2e3) {
            looked = now;
            if (!tun_lives(&r->tun))
                status = TROUBLE;
        }
    }
    r->sum.totals.seconds = clock_seconds() - start;
    while (r->n)
        packet_drop(r);
    queue_summary_print(r->args, &r->sum, r->sfb ? sfb_sum(r->sfb) : &r->tail);
    return status;
}

int queue_live(const struct traffic_args *args)
{
    struct queue_run r = { .args = args, .seed = args->seed };
    struct sfb_spec spec;
    double link;
    if (!args->queue.tun || !args->queue.out)
        return fail("--tun, which packets are routed into, and --out, by which "
                    "they leave, are both needed");
    if (!queue_options(args, &spec, &link))
        return TROUBLE;
    /* Whoever knows the bins can share those of others. */
    if (!args->seed && getrandom(&r.seed, sizeof r.seed, 0) != sizeof r.seed)
        return fail("the system has no random numbers");
    spec.seed = r.seed;
    r.link = args->queue.rate > 0 ? link : 0;
    r.room = spec.limit;
    r.ring = malloc(r.room * sizeof *r.ring);
    r.sfb = args->queue.tail ? NULL : sfb_new(&spec);
    int status = TROUBLE;
    signals_watch(NULL);
    if (!r.ring || (!r.sfb && !args->queue.tail)) {
        fail("out of memory");
    } else if (tun_open(args->queue.tun, args->queue.out, &r.tun)) {
        note("%s: what is routed here leaves by %s, until a signal",
             args->queue.tun, args->queue.out);
        status = queue_serve(&r);
        tun_close(&r.tun);
    }
    sfb_free(r.sfb);
    free(r.ring);
    return status;
}
