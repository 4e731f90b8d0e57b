/*
 * scan_capture.c - bloomery traffic scan: what packets carry
 *
 * TCP is put in order first; of everything else each packet is a text of its
 * own, and so is each fragment.
 */
#include <stdlib.h>

#include "apps/traffic/each.h"
#include "apps/traffic/reassembly.h"
#include "apps/traffic/scan_verb.h"
#include "apps/traffic/traffic.h"
#include "report/say.h"

#define DEFAULT_MEMORY ((uint64_t)256 << 20)

struct packets {
    struct scan_run *run;
    struct reassembly *streams;
    uint64_t number; /* of the packet */
    bool failed;     /* and the reason is printed */
};

static bool stream_scan(void *ctx, const struct flow_key *key,
                        const unsigned char *at, size_t seen, size_t n,
                        uint64_t base)
{
    struct packets *const p = ctx;
    const struct scan_piece piece = { at, seen, n, base, STREAM_AHEAD };
    if (scan_print(p->run, key, p->number, &piece))
        return true;
    p->failed = true;
    return false;
}

static bool payload_scan(struct packets *p, const struct packet *packet)
{
    struct flow_key key;
    struct segment s;
    struct scan_summary *const sum = &p->run->sum;
    const struct key_choice all = { .form = KEY_5TUPLE };
    if (packet->proto == IP_TCP && !packet->fragment) {
        if (!segment_of(packet, &s)) {
            sum->cut++;
            return true;
        }
        sum->cut += s.n < s.wire;
        if (reassembly_add(p->streams, &s))
            return true;
        return p->failed ? false : refuse("out of memory");
    }
    sum->fragments += packet->fragment;
    if (packet->npayload == 0 || !key_of(all, packet, &key))
        return true;
    const struct scan_piece all_of_it = { packet->payload, 0, packet->npayload,
                                          0, 0 };
    return scan_print(p->run, &key, p->number, &all_of_it);
}

static bool frame_scan(void *ctx, const struct capture *c,
                       const struct captured_frame *f)
{
    struct packets *const p = ctx;
    struct scan_summary *const sum = &p->run->sum;
    struct packet packet;
    p->number++;
    sum->packets++;
    switch (packet_parse(c->link, f->at, f->n, p->run->args->inner, &packet)) {
    case PACKET_IP:
        return payload_scan(p, &packet);
    case PACKET_CUT:
        sum->cut++;
        return true;
    default:
        sum->other++;
        return true;
    }
}

int scan_capture(struct scan_run *r, const char *name, bool live)
{
    struct capture c;
    struct packets p = { .run = r };
    const struct reassembly_spec spec = {
        .keeps = scanner_keeps(r->scanner),
        .memory = r->args->scan.memory ? r->args->scan.memory : DEFAULT_MEMORY,
        .take = stream_scan,
        .ctx = &p,
    };
    if (!capture_open(name, live, &c))
        return TROUBLE;
    if (live)
        signals_watch(NULL);
    p.streams = reassembly_new(&spec);
    int status = p.streams ? capture_each(&c, r->args->number, frame_scan, &p)
                           : fail("out of memory");
    if (p.streams) {
        /* What waits for missing bytes is looked at too. */
        if (!p.failed && !reassembly_end(p.streams) && !p.failed)
            status = fail("out of memory");
        const struct reassembly_sum *const sum = reassembly_sum(p.streams);
        r->sum.streams += sum->streams;
        r->sum.gaps += sum->gaps;
        r->sum.evicted += sum->evicted;
        r->sum.late += sum->late;
        r->sum.changed += sum->changed;
    }
    if (capture_lost(&c, &r->sum.lost) || p.failed)
        status = TROUBLE;
    reassembly_free(p.streams);
    capture_close(&c);
    return status;
}

int traffic_scan(const struct traffic_args *args, const struct list *operands)
{
    return scan_all(args, operands, scan_capture);
}
