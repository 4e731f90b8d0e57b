/*
 * capture.c - packets, from a file or from an interface
 *
 * Interfaces are libpcap's, which is loaded for them. Files are read here,
 * since libpcap takes no pcapng whose interfaces differ.
 */
#define _GNU_SOURCE /* libpcap wants u_int */
#include "apps/traffic/capture.h"

#include <errno.h>
#include <poll.h>

#include <pcap/pcap.h>

#include "apps/traffic/pcap_file.h"
#include "base/clock.h"
#include "io/source.h"
#include "report/say.h"

#define LIVE_SNAP 65535
#define LIVE_BUFFER (16 << 20) /* bytes that wait in the kernel, at most */

static bool live_start(pcap_t *p, const char *name)
{
    char error[PCAP_ERRBUF_SIZE] = "";
    pcap_set_snaplen(p, LIVE_SNAP);
    pcap_set_promisc(p, 1);
    pcap_set_timeout(p, LIVE_WAIT_MS);
    pcap_set_buffer_size(p, LIVE_BUFFER);
    pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO);
    const int status = pcap_activate(p);
    if (status == PCAP_ERROR_PERM_DENIED)
        return refuse("%s: capturing needs CAP_NET_RAW; run it as root, or "
                      "after setcap cap_net_raw+ep on this program",
                      name);
    if (status < 0)
        return refuse("%s: %s", name, pcap_statustostr(status));
    /* libpcap's own way to wait ends only when a packet comes. */
    return pcap_setnonblock(p, 1, error) == 0 || refuse("%s: %s", name, error);
}

static bool live_open(const char *name, struct capture *c)
{
    char error[PCAP_ERRBUF_SIZE] = "";
    c->handle = pcap_create(name, error);
    if (!c->handle)
        return refuse("%s: %s", name, error);
    if (!live_start(c->handle, name))
        return false;
    c->link = pcap_datalink(c->handle);
    const char *const link = pcap_datalink_val_to_name(c->link);
    return link_known(c->link) ||
           refuse("%s: packets of link type %s (%d) cannot be read; expected "
                  "Ethernet, Linux cooked, raw IP or loopback",
                  name, link ? link : "unknown", c->link);
}

static enum captured live_next(struct capture *c, struct captured_frame *f)
{
    struct pcap_pkthdr *header;
    const unsigned char *bytes;
    /* The clock is read before asking. Behind the answer it would say when this
     * process ran again, and packets may have come by then. */
    const int64_t now = c->idle ? clock_day_ns() : 0;
    switch (pcap_next_ex(c->handle, &header, &bytes)) {
    case 1:
        f->ns = (int64_t)header->ts.tv_sec * 1000000000 + header->ts.tv_usec;
        f->at = bytes;
        f->n = header->caplen;
        f->wire = header->len;
        c->idle = false;
        return CAPTURED;
    case 0:
        f->ns = now;
        c->idle = true;
        poll(&(struct pollfd){ .fd = pcap_get_selectable_fd(c->handle),
                               .events = POLLIN },
             1, LIVE_WAIT_MS);
        return CAPTURED_NONE;
    case PCAP_ERROR_BREAK:
        return CAPTURED_END;
    default:
        if (!c->hushed)
            fail("%s: %s", c->name, pcap_geterr(c->handle));
        return CAPTURED_TROUBLE;
    }
}

bool capture_lost(const struct capture *c, uint64_t *lost)
{
    struct pcap_stat s = { 0 };
    if (!c->handle || pcap_stats(c->handle, &s) != 0 || !s.ps_drop)
        return false;
    *lost = s.ps_drop;
    fail("%s: %u packets came faster than they could be looked at, and are in "
         "no count; give it more processor time, or a part of the traffic",
         c->name, s.ps_drop);
    return true;
}

/* -------------------------------------------------------------------- files */

static ptrdiff_t source_give(void *ctx, void *buf, size_t n)
{
    return source_read(ctx, buf, n);
}

/* Of what cannot be read on. */
static enum captured file_fail(const struct capture *c, enum pcap_got got)
{
    if (!c->hushed)
        fail("%s: %s", c->name,
             got == PCAP_BROKEN ? source_error(c->source)
                                : pcap_file_why(c->file));
    return CAPTURED_TROUBLE;
}

static enum captured file_next(struct capture *c, struct captured_frame *f)
{
    struct pcap_packet p;
    const enum pcap_got got = pcap_file_next(c->file, &p);
    if (got == PCAP_END)
        return CAPTURED_END;
    if (got != PCAP_PACKET)
        return file_fail(c, got);
    *f = (struct captured_frame){ p.ns, p.at, p.n, p.wire };
    c->link = p.link;
    if (!c->warned && !link_known(p.link)) {
        c->warned = true;
        if (!c->hushed)
            warn("%s: packets of link type %d are counted, but not looked "
                 "into; expected Ethernet, Linux cooked, raw IP or loopback",
                 c->name, p.link);
    }
    return CAPTURED;
}

static bool file_open(const char *name, struct capture *c)
{
    c->source = source_open(name, -1, SOURCE_ANY);
    if (!c->source)
        return refuse_path(name, errno);
    c->file = pcap_file_new(source_give, c->source);
    if (!c->file)
        return refuse("out of memory");
    const enum pcap_got got = pcap_file_begin(c->file);
    return got == PCAP_PACKET || !file_fail(c, got);
}

/* --------------------------------------------------------------------- both */

bool capture_open(const char *name, bool live, struct capture *c)
{
    *c = (struct capture){ .name = name, .live = live };
    const bool ok = live ? live_open(name, c) : file_open(name, c);
    if (!ok)
        capture_close(c);
    return ok;
}

void capture_close(struct capture *c)
{
    if (c->handle)
        pcap_close(c->handle);
    c->handle = NULL;
    pcap_file_free(c->file);
    c->file = NULL;
    if (c->source)
        source_close(c->source);
    c->source = NULL;
}

enum captured capture_next(struct capture *c, struct captured_frame *f)
{
    return c->live ? live_next(c, f) : file_next(c, f);
}

/* -------------------------------------------------------------------- keys */

bool frame_key(const struct capture *c, const struct captured_frame *f,
               bool inner, struct key_choice choice, struct traffic_totals *t,
               struct flow_key *key)
{
    struct packet p;
    t->packets++;
    t->bytes += f->wire;
    switch (packet_parse(c->link, f->at, f->n, inner, &p)) {
    case PACKET_IP:
        if (key_of(choice, &p, key))
            return true;
        t->cut++;
        return false;
    case PACKET_CUT:
        t->cut++;
        return false;
    case PACKET_BAD:
        t->bad++;
        return false;
    case PACKET_OTHER:
    default:
        t->other++;
        return false;
    }
}
