/*
 * router.c - a router of IPv6 as a process
 *
 * Packets come in by packet sockets, one for each interface, without their link
 * header. The kernel says by which interface they go on (its routing tables are
 * asked over netlink, and answers are kept for a second), and finds the
 * neighbour's address on the link when they are sent over a raw socket. It must
 * not forward by itself at the same time.
 *
 * Memory does not grow: a table of answers, one packet at a time.
 */
#define _GNU_SOURCE
#include "apps/net/router.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io/files.h"
#include "report/say.h"

#define PACKET_MOST 65575
#define ROUTES 1024 /* answers that are kept; a power of two */
#define BURST 64    /* packets of an interface before the next one's turn */

struct port {
    struct face face;
    char iface[IF_NAMESIZE];
    unsigned index; /* the kernel's; 0: it is gone */
    bool failed;    /* it could not be read: down, or soon gone */
    int in, out;
    bool has_address;
    unsigned char address[16]; /* from which complaints come */
};

struct answer {
    unsigned char to[16];
    uint64_t until;
    unsigned port; /* ROUTER_FACES: none of ours */
};

struct router {
    struct port ports[ROUTER_FACES];
    unsigned nports;
    unsigned strikes;
    int netlink;
    uint32_t asked;
    struct answer answers[ROUTES];
    struct router_result result;
    unsigned char in[PACKET_MOST], out[PACKET_MOST + FORWARD_MORE];
};

const struct field router_fields[] = {
    FIELD(struct router_result, name, NONE, "the router"),
    FIELD(struct router_result, faces, NONE, "interfaces it forwards on"),
    FIELD(struct router_result, seconds, SECONDS, "that it ran"),
    FIELD(struct router_result, received, NONE, "packets of others that came"),
    NAMED(struct router_result, "sent", fates[FATE_SENT], NONE,
          "of these, forwarded"),
    NAMED(struct router_result, "loop", fates[FATE_LOOP], NONE,
          "dropped: they were here before"),
    NAMED(struct router_result, "expired", fates[FATE_EXPIRED], NONE,
          "dropped: their hop limit was used up"),
    NAMED(struct router_result, "too_big", fates[FATE_TOO_BIG], NONE,
          "dropped: longer than the link takes"),
    NAMED(struct router_result, "bad", fates[FATE_BAD], NONE,
          "dropped: damaged, or marks of another size"),
    NAMED(struct router_result, "not_ours", fates[FATE_NOT_OURS], NONE,
          "left alone: of one link, of a group, or without a route"),
    FIELD(struct router_result, complaints, NONE, "errors sent back"),
    FIELD(struct router_result, unsent, NONE,
          "that the kernel did not take; of sent"),
    { 0 },
};

static volatile sig_atomic_t router_ends;

static void router_end(int signal)
{
    (void)signal;
    router_ends = 1;
}

uint64_t router_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ------------------------------------------------------------------- marks */

void router_defaults(struct router_args *args)
{
    args->loop_bits = args->loop_bits ? args->loop_bits : 256;
    args->loop_set = args->loop_set ? args->loop_set : 8;
    args->way_bits = args->way_bits ? args->way_bits : 256;
    args->way_set = args->way_set ? args->way_set : 1;
    args->strikes = args->strikes ? args->strikes : 1;
}

bly_status router_face(const struct router_args *args,
                       const unsigned char *secret, const char *from,
                       const char *to, struct face *out)
{
    const struct mark_spec specs[] = {
        { .bits = (unsigned)args->loop_bits,
          .k = (unsigned)args->loop_set,
          .secret = secret },
        { .bits = (unsigned)args->way_bits,
          .k = (unsigned)args->way_set,
          .k0 = (unsigned)args->way_set,
          .secret = secret },
    };
    bly_status st = BLY_OK;
    for (unsigned i = 0; i < 2 && !st; i++) {
        struct mark_maker *maker;
        st = mark_maker_new(&specs[i], &maker);
        if (!st)
            st = mark_make_link(maker, from, to, i ? &out->way : &out->loop);
        mark_maker_free(maker);
    }
    return st;
}

/* ---------------------------------------------------------------- interfaces
 */

static int no_right(const char *what, int error)
{
    if (error == EPERM || error == EACCES)
        return fail("%s: that needs CAP_NET_RAW; right: as root, or in a "
                    "network namespace of your own",
                    what);
    return fail_path(what, error);
}

/* An address of the interface that others may answer to. */
static void port_address(struct port *p)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *a = all; a && !p->has_address; a = a->ifa_next) {
        struct sockaddr_in6 at;
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET6 ||
            strcmp(a->ifa_name, p->iface) != 0)
            continue;
        memcpy(&at, a->ifa_addr, sizeof at);
        if (IN6_IS_ADDR_LINKLOCAL(&at.sin6_addr))
            continue;
        memcpy(p->address, &at.sin6_addr, 16);
        p->has_address = true;
    }
    freeifaddrs(all);
}

static bool port_open(struct port *p)
{
    struct ifreq ask = { 0 };
    p->index = if_nametoindex(p->iface);
    p->in = p->out = -1;
    if (!p->index)
        return !fail("%s: no such interface here", p->iface);
    const struct sockaddr_ll at = { .sll_family = AF_PACKET,
                                    .sll_protocol = htons(ETH_P_IPV6),
                                    .sll_ifindex = (int)p->index };
    p->in = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->in < 0 || bind(p->in, (const struct sockaddr *)&at, sizeof at) < 0)
        return !no_right(p->iface, errno);
    p->out =
        socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);
    if (p->out < 0 || setsockopt(p->out, SOL_SOCKET, SO_BINDTODEVICE, p->iface,
                                 (socklen_t)strlen(p->iface)) < 0)
        return !no_right(p->iface, errno);
    memcpy(ask.ifr_name, p->iface, sizeof ask.ifr_name);
    if (ioctl(p->out, SIOCGIFMTU, &ask) < 0)
        return !fail_path(p->iface, errno);
    p->face.mtu = (unsigned)ask.ifr_mtu;
    port_address(p);
    return true;
}

static void port_close(struct port *p)
{
    if (p->in >= 0)
        close(p->in);
    if (p->out >= 0)
        close(p->out);
    p->in = p->out = -1;
    p->index = 0;
}

static bool ports_open(struct router *r, const struct router_args *args,
                       const unsigned char *secret)
{
    for (size_t i = 0; i < args->links.n; i++) {
        const char *const link = args->links.at[i];
        const char *const equals = strchr(link, '=');
        if (i == ROUTER_FACES)
            return !fail("at most %d interfaces", ROUTER_FACES);
        struct port *const p = &r->ports[r->nports];
        p->in = p->out = -1;
        if (!equals || equals == link || !equals[1] ||
            (size_t)(equals - link) >= sizeof p->iface)
            return !fail("--link: %s; right: IFACE=NEIGHBOUR", link);
        r->nports++;
        memcpy(p->iface, link, (size_t)(equals - link));
        for (unsigned k = 0; k + 1 < r->nports; k++)
            if (strcmp(r->ports[k].iface, p->iface) == 0)
                return !fail("--link: %s is given twice", p->iface);
        const bly_status st =
            router_face(args, secret, args->name, equals + 1, &p->face);
        if (st)
            return !fail("%s: no marks: %s", link,
                         st == BLY_EINVAL ? "names of at most 62 bytes together"
                                          : bly_error());
        if (!port_open(p))
            return false;
    }
    return r->nports > 0 ||
           !fail("which interfaces? Right: --link IFACE=NEIGHBOUR, once for "
                 "each");
}

/* ------------------------------------------------------------------- routes */

/* By which interface the kernel would send to an address; 0: none, or it is one
 * of our own. */
static unsigned route_ask(struct router *r, const unsigned char to[16])
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr to_head;
        unsigned char to[16];
    } ask = {
        .head = { .nlmsg_len = sizeof ask,
                  .nlmsg_type = RTM_GETROUTE,
                  .nlmsg_flags = NLM_F_REQUEST,
                  .nlmsg_seq = ++r->asked },
        .route = { .rtm_family = AF_INET6, .rtm_dst_len = 128 },
        .to_head = { .rta_len = RTA_LENGTH(16), .rta_type = RTA_DST },
    };
    union {
        struct nlmsghdr head;
        unsigned char bytes[4096];
    } answer;
    memcpy(ask.to, to, 16);
    if (send(r->netlink, &ask, sizeof ask, 0) < 0)
        return 0;
    const ssize_t n = recv(r->netlink, &answer, sizeof answer, 0);
    const struct nlmsghdr *const h = &answer.head;
    if (n < 0 || !NLMSG_OK(h, (unsigned)n) || h->nlmsg_seq != r->asked ||
        h->nlmsg_type != RTM_NEWROUTE)
        return 0;
    const struct rtmsg *const route = NLMSG_DATA(h);
    if (route->rtm_type != RTN_UNICAST)
        return 0;
    const unsigned char *at = (const unsigned char *)RTM_RTA(route);
    const unsigned char *const end = answer.bytes + h->nlmsg_len;
    struct rtattr a;
    while (at + sizeof a <= end) {
        memcpy(&a, at, sizeof a);
        if (a.rta_len < sizeof a || at + a.rta_len > end)
            return 0;
        if (a.rta_type == RTA_OIF && a.rta_len == sizeof a + sizeof(unsigned)) {
            unsigned index;
            memcpy(&index, at + sizeof a, sizeof index);
            return index;
        }
        at += RTA_ALIGN(a.rta_len);
    }
    return 0;
}

static unsigned route_to(struct router *r, const unsigned char to[16],
                         uint64_t now)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3 };
    struct answer *const kept = &r->answers[bly_hash(&h, to, 16) % ROUTES];
    if (now < kept->until && memcmp(kept->to, to, 16) == 0)
        return kept->port;
    const unsigned index = route_ask(r, to);
    memcpy(kept->to, to, 16);
    kept->until = now + 1000;
    kept->port = ROUTER_FACES;
    for (unsigned i = 0; index && i < r->nports; i++)
        if (r->ports[i].index == index)
            kept->port = i;
    return kept->port;
}

/* ------------------------------------------------------------------ packets */

static void packet_send(struct router *r, const struct port *p,
                        const unsigned char *at, size_t n)
{
    struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
    memcpy(&to.sin6_addr, at + 24, 16);
    if (sendto(p->out, at, n, 0, (const struct sockaddr *)&to, sizeof to) < 0)
        r->result.unsent++;
}

static void packet_take(struct router *r, struct port *from, size_t n,
                        uint64_t now)
{
    size_t nout;
    const bool whole = n >= FORWARD_HEAD;
    const unsigned to =
        whole ? route_to(r, r->in + 24, now) : (unsigned)ROUTER_FACES;
    if (whole && to == ROUTER_FACES) {
        r->result.fates[FATE_NOT_OURS]++;
        return;
    }
    const struct port *const by = &r->ports[whole ? to : 0];
    const enum fate fate =
        forward(&by->face, r->strikes, r->in, n, r->out, &nout);
    r->result.fates[fate]++;
    if (fate == FATE_SENT) {
        packet_send(r, by, r->out, nout);
        return;
    }
    if ((fate != FATE_EXPIRED && fate != FATE_TOO_BIG) || !from->has_address)
        return;
    const unsigned option =
        8 + by->face.loop.nbytes + by->face.way.nbytes; /* that it will gain */
    const size_t complaint = forward_complain(fate, by->face.mtu - option,
                                              from->address, r->in, n, r->out);
    if (complaint) {
        const unsigned back = route_to(r, r->out + 24, now);
        if (back != ROUTER_FACES) {
            packet_send(r, &r->ports[back], r->out, complaint);
            r->result.complaints++;
        }
    }
}

/* What has come by an interface; false: it is gone. */
static bool port_read(struct router *r, struct port *p, uint64_t now)
{
    for (unsigned i = 0; i < BURST; i++) {
        struct sockaddr_ll from;
        socklen_t size = sizeof from;
        const ssize_t n = recvfrom(p->in, r->in, sizeof r->in, MSG_TRUNC,
                                   (struct sockaddr *)&from, &size);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        /* Not what we sent ourselves, nor what is for others on the link. */
        if (from.sll_pkttype != PACKET_HOST || (size_t)n > sizeof r->in)
            continue;
        r->result.received++;
        packet_take(r, p, (size_t)n, now);
    }
    return true;
}

static void router_loop(struct router *r, uint64_t until)
{
    struct pollfd fds[ROUTER_FACES];
    unsigned alive = r->nports;
    while (!router_ends && alive) {
        const uint64_t now = router_now();
        if (now >= until)
            return;
        for (unsigned i = 0; i < r->nports; i++)
            fds[i] = (struct pollfd){ .fd = r->ports[i].in, .events = POLLIN };
        const uint64_t wait = until - now < 500 ? until - now : 500;
        if (poll(fds, r->nports, (int)wait) < 0 && errno != EINTR)
            return;
        for (unsigned i = 0; i < r->nports; i++) {
            struct port *const p = &r->ports[i];
            if (p->in < 0)
                continue;
            if (fds[i].revents)
                p->failed = !port_read(r, p, router_now());
            /* An interface that is down may come up again; one that was taken
             * away has no name any more, perhaps only a moment later. */
            if (p->failed && !if_nametoindex(p->iface)) {
                warn("%s is gone", p->iface);
                port_close(p);
                alive--;
            }
        }
    }
}

/* Does the kernel forward by itself? Then packets would go out twice. */
static bool kernel_forwards(void)
{
    FILE *const f = fopen("/proc/sys/net/ipv6/conf/all/forwarding", "r");
    const int c = f ? getc(f) : '0';
    if (f)
        fclose(f);
    return c != '0';
}

int net_router(const struct router_args *given)
{
    struct router_args args = *given;
    bool ok = true;
    router_defaults(&args);
    if (!args.name || !*args.name)
        return fail("what is this router called? Right: --name NAME");
    if (args.loop_bits > 256 || args.way_bits > 256 || args.loop_bits % 64 ||
        args.way_bits % 64 || args.loop_set > 32 || args.way_set > 32 ||
        args.strikes > 2)
        return fail("marks have 64, 128, 192 or 256 bits, of which at most 32 "
                    "are set; and 1 or 2 strikes");
    if (kernel_forwards())
        return fail("the kernel forwards IPv6 here itself; right: sysctl -w "
                    "net.ipv6.conf.all.forwarding=0");
    const unsigned char *const secret = secret_read(args.key_file, &ok);
    struct router *const r = ok ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return ok ? fail("no memory") : TROUBLE;
    r->strikes = (unsigned)args.strikes;
    r->result.name = args.name;
    r->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ok = r->netlink >= 0 ? ports_open(r, &args, secret)
                         : !fail_path("netlink", errno);
    if (ok) {
        const struct sigaction ends = { .sa_handler = router_end };
        const uint64_t start = router_now();
        sigaction(SIGTERM, &ends, NULL);
        sigaction(SIGINT, &ends, NULL);
        note("%s forwards on %u interface%s", args.name, r->nports,
             r->nports == 1 ? "" : "s");
        router_loop(r, args.seconds ? start + 1000 * args.seconds : UINT64_MAX);
        r->result.faces = r->nports;
        r->result.seconds = (double)(router_now() - start) / 1000;
        report(stdout, args.json, router_fields, &r->result,
               "{name}: {received} packets came, {sent} sent on; dropped: "
               "{loop} loop, {expired} expired, {too_big} too big, {bad} "
               "bad\n");
    }
    for (unsigned i = 0; i < r->nports; i++)
        port_close(&r->ports[i]);
    if (r->netlink >= 0)
        close(r->netlink);
    free(r);
    secret_wipe();
    return ok ? YES : TROUBLE;
}
