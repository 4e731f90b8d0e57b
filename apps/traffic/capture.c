/*
 * capture.c - packets, from a file or from an interface
 */
#define _GNU_SOURCE /* libpcap wants u_int */
#include "apps/traffic/capture.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "apps/traffic/late_pcap.h"
#include "report/say.h"
#include "report/show.h"

struct pcap_calls pcap_calls;

bool pcap_begin(void)
{
    static const char *const names[] = { PCAP_CALLS(LATE_NAME) };
    return late_load("libpcap.so.0.8", "libpcap0.8", names,
                     sizeof names / sizeof names[0], &pcap_calls);
}

#define LIVE_SNAP 65535
#define LIVE_WAIT_MS 100

static bool live_open(const char *name, struct capture *c, char *error)
{
    pcap_t *const p = pcap_create(name, error);
    if (!p)
        return !fail("%s: %s", name, error);
    pcap_set_snaplen(p, LIVE_SNAP);
    pcap_set_promisc(p, 1);
    pcap_set_timeout(p, LIVE_WAIT_MS);
    pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO);
    const int status = pcap_activate(p);
    if (status < 0) {
        if (status == PCAP_ERROR_PERM_DENIED)
            fail("%s: capturing needs CAP_NET_RAW; right: as root, or after "
                 "setcap cap_net_raw+ep on this program",
                 name);
        else
            fail("%s: %s", name, pcap_statustostr(status));
        pcap_close(p);
        return false;
    }
    /* Its own waiting ends with a packet, and with nothing else. */
    if (pcap_setnonblock(p, 1, error) != 0) {
        fail("%s: %s", name, error);
        pcap_close(p);
        return false;
    }
    c->handle = p;
    return true;
}

bool capture_open(const char *name, bool live, struct capture *c)
{
    char error[PCAP_ERRBUF_SIZE] = "";
    *c = (struct capture){ .name = name, .live = live };
    if (!pcap_begin())
        return false;
    if (live) {
        if (!live_open(name, c, error))
            return false;
    } else {
        c->handle = pcap_open_offline_with_tstamp_precision(
            name, PCAP_TSTAMP_PRECISION_NANO, error);
        if (!c->handle) {
            /* libpcap names the file in some messages and not in others. */
            const size_t n = strlen(name);
            const bool named = strncmp(error, name, n) == 0 && error[n] == ':';
            return !fail("%s: %s", name, named ? error + n + 2 : error);
        }
    }
    c->link = pcap_datalink(c->handle);
    if (link_known(c->link))
        return true;
    const char *const link = pcap_datalink_val_to_name(c->link);
    fail("%s: packets of link type %s (%d) cannot be read; right: Ethernet, "
         "Linux cooked, raw IP or loopback",
         name, link ? link : "unknown", c->link);
    capture_close(c);
    return false;
}

void capture_close(struct capture *c)
{
    if (c->handle)
        pcap_close(c->handle);
    c->handle = NULL;
}

enum captured capture_next(struct capture *c, struct frame *f)
{
    struct pcap_pkthdr *header;
    const unsigned char *bytes;
    switch (pcap_next_ex(c->handle, &header, &bytes)) {
    case 1:
        f->ns = (int64_t)header->ts.tv_sec * 1000000000 + header->ts.tv_usec;
        f->at = bytes;
        f->n = header->caplen;
        f->wire = header->len;
        return CAPTURED;
    case 0:
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

/* ----------------------------------------------------------------- signals */

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

void capture_watch(void)
{
    const struct sigaction a = { .sa_handler = end };
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

bool capture_ended(void)
{
    return ended;
}

/* -------------------------------------------------------------------- keys */

bool frame_key(const struct capture *c, const struct frame *f, bool inner,
               struct key_choice choice, struct traffic_totals *t,
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
