/*
 * router.c - a router of IPv6 as a process
 *
 * Packets come in by packet sockets, one for each interface, without their link
 * header. The kernel says by which interface they go on (its routing tables are
 * asked over netlink, and answers are kept for a second), and finds the
 * neighbour's address on the link when they are sent over a raw socket. It must
 * not forward by itself at the same time.
 *
 * Packets to groups are copied as caster.h says.
 *
 * Memory does not grow: a table of answers, one packet at a time, and as many
 * groups as were asked for.
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
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/net/caster.h"
#include "apps/net/ipv6.h"
#include "base/clock.h"
#include "base/signals.h"
#include "io/files.h"
#include "report/say.h"

#define USUAL_BITS 16    /* per group and interface */
#define USUAL_REFRESH 60 /* seconds */
#define GROUPS_MOST 100000
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
    bool casts;
    struct caster caster;
    struct ask_server *asked_by; /* answers questions; NULL: nobody does */
    uint64_t now;
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
          "left alone: of one link, or without a route"),
    FIELD(struct router_result, complaints, NONE, "errors sent back"),
    FIELD(struct router_result, unsent, NONE,
          "that the kernel did not take; of sent"),
    NAMED(struct router_result, "group_packets", grouped, NONE,
          "packets to groups that came"),
    NAMED(struct router_result, "group_copies", copies, NONE,
          "copies of these that were made"),
    NAMED(struct router_result, "group_superfluous", superfluous, NONE,
          "copies that nobody wanted"),
    NAMED(struct router_result, "group_expected", expected, NONE,
          "superfluous copies by the rates of the filters"),
    NAMED(struct router_result, "group_off_path", off_path, NONE,
          "packets to groups that came by another way than their source's"),
    NAMED(struct router_result, "group_joins", joins, NONE,
          "groups that were asked for on an interface"),
    NAMED(struct router_result, "group_leaves", leaves, NONE,
          "and left, or forgotten"),
    NAMED(struct router_result, "group_refused", refused, NONE,
          "and refused: as many as there is room for"),
    FIELD(struct router_result, questions, NONE,
          "about packets, that were asked"),
    NAMED(struct router_result, "questions_refused", declined, NONE,
          "of these, refused: malformed, or too many at once"),
    { 0 },
};

static volatile sig_atomic_t router_reads;

static void router_again(int signal)
{
    (void)signal;
    router_reads = 1;
}

void router_on_hup(void)
{
    signals_on(SIGHUP, router_again);
}

bool router_hup(void)
{
    const bool was = router_reads;
    router_reads = 0;
    return was;
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

/* --------------------------------------------------------------- interfaces */

static int no_right(const char *what, int error)
{
    if (error == EPERM || error == EACCES)
        return fail("%s: that needs CAP_NET_RAW; run it as root, or in a "
                    "network namespace of your own",
                    what);
    return fail_path(what, error);
}

/* Addresses of the interface: one that others may answer to, and that of the
 * link. */
static void port_address(struct port *p, unsigned char of_link[16])
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        struct sockaddr_in6 at;
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET6 ||
            strcmp(a->ifa_name, p->iface) != 0)
            continue;
        memcpy(&at, a->ifa_addr, sizeof at);
        if (IN6_IS_ADDR_LINKLOCAL(&at.sin6_addr)) {
            memcpy(of_link, &at.sin6_addr, 16);
        } else if (!p->has_address) {
            memcpy(p->address, &at.sin6_addr, 16);
            p->has_address = true;
        }
    }
    freeifaddrs(all);
}

static bool port_open(struct port *p, bool casts, unsigned char of_link[16])
{
    struct ifreq ask = { 0 };
    const int off = 0, on = 1;
    p->index = if_nametoindex(p->iface);
    p->in = p->out = -1;
    if (!p->index)
        return refuse("%s: no such interface here", p->iface);
    const struct sockaddr_ll at = { .sll_family = AF_PACKET,
                                    .sll_protocol = htons(ETH_P_IPV6),
                                    .sll_ifindex = (int)p->index };
    p->in = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->in < 0 ||
        setsockopt(p->in, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on) < 0 ||
        bind(p->in, (const struct sockaddr *)&at, sizeof at) < 0)
        return !no_right(p->iface, errno);
    p->out =
        socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);
    if (p->out < 0 || setsockopt(p->out, SOL_SOCKET, SO_BINDTODEVICE, p->iface,
                                 (socklen_t)strlen(p->iface)) < 0)
        return !no_right(p->iface, errno);
    /* All groups come in, and nothing that we send to one comes back. */
    const struct packet_mreq groups = { .mr_ifindex = (int)p->index,
                                        .mr_type = PACKET_MR_ALLMULTI };
    if (casts && (setsockopt(p->in, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &groups,
                             sizeof groups) < 0 ||
                  setsockopt(p->out, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off,
                             sizeof off) < 0))
        return refuse_path(p->iface, errno);
    memcpy(ask.ifr_name, p->iface, sizeof ask.ifr_name);
    if (ioctl(p->out, SIOCGIFMTU, &ask) < 0)
        return refuse_path(p->iface, errno);
    p->face.mtu = (unsigned)ask.ifr_mtu;
    port_address(p, of_link);
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

/* The marks of an interface of --link. */
static bool port_marks(const struct router_args *args,
                       const unsigned char *secret, const char *link,
                       struct face *out)
{
    const bly_status st =
        router_face(args, secret, args->name, strchr(link, '=') + 1, out);
    return !st || refuse("%s: no marks: %s", link,
                         st == BLY_EINVAL ? "names of at most 62 bytes together"
                         : st == BLY_ENOMEM ? "no memory"
                                            : bly_error());
}

/* The marks of all ways, as those need them who answer questions. */
static void ports_ways(const struct router *r, const struct mark **out)
{
    for (unsigned i = 0; i < r->nports; i++)
        out[i] = &r->ports[i].face.way;
}

/* The secret was changed: from now on all marks differ, or, if it cannot be
 * read, none does. */
static void ports_again(struct router *r, const struct router_args *args)
{
    struct face faces[ROUTER_FACES];
    bool ok = true;
    const unsigned char *const secret = secret_read(args->key_file, &ok);
    for (unsigned i = 0; ok && i < r->nports; i++)
        ok = port_marks(args, secret, args->links.at[i], &faces[i]);
    for (unsigned i = 0; ok && i < r->nports; i++) {
        r->ports[i].face.loop = faces[i].loop;
        r->ports[i].face.way = faces[i].way;
    }
    if (ok && r->asked_by) {
        const struct mark *ways[ROUTER_FACES];
        ports_ways(r, ways);
        args->ask->marks(r->asked_by, ways);
    }
    note("%s has %s marks", args->name, ok ? "new" : "its old");
}

static bool ports_open(struct router *r, const struct router_args *args,
                       const unsigned char *secret)
{
    for (size_t i = 0; i < args->links.n; i++) {
        const char *const link = args->links.at[i];
        const char *const equals = strchr(link, '=');
        if (i == ROUTER_FACES)
            return refuse("at most %d interfaces", ROUTER_FACES);
        struct port *const p = &r->ports[r->nports];
        p->in = p->out = -1;
        if (!equals || equals == link || !equals[1] ||
            (size_t)(equals - link) >= sizeof p->iface)
            return refuse("--link: %s; expected IFACE=NEIGHBOUR", link);
        r->nports++;
        memcpy(p->iface, link, (size_t)(equals - link));
        for (unsigned k = 0; k + 1 < r->nports; k++)
            if (strcmp(r->ports[k].iface, p->iface) == 0)
                return refuse("--link: %s is given twice", p->iface);
        if (!port_marks(args, secret, link, &p->face))
            return false;
        if (!port_open(p, r->casts, r->caster.address[i]))
            return false;
    }
    return r->nports > 0 ||
           refuse(
               "which interfaces? Use --link IFACE=NEIGHBOUR, once for each");
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
    /* The kernel answers at once. An answer that does not belong to this
     * question is as good as no route. */
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

/* To a group: copied to who wants it, each copy with the marks of its own
 * interface; or of this link, and perhaps a wish. */
static void packet_group(struct router *r, unsigned from, size_t n,
                         uint64_t now)
{
    size_t nout;
    if (ipv6_of_link(r->in + IPV6_TO)) {
        caster_hear(&r->caster, from, r->in, n, now);
        return;
    }
    r->result.grouped++;
    const uint64_t faces = caster_copies(&r->caster, from, r->in);
    for (unsigned i = 0; i < r->nports; i++) {
        const struct port *const by = &r->ports[i];
        if (!(faces >> i & 1) || by->in < 0)
            continue;
        const enum fate fate =
            forward(&by->face, r->strikes, r->in, n, r->out, &nout);
        if (fate == FATE_SENT)
            packet_send(r, by, r->out, nout);
        else
            r->result.fates[fate]++;
    }
}

/* Of the caster: by which interface an address is reached, and sending. */
static unsigned group_up(void *ctx, const unsigned char address[16])
{
    struct router *const r = ctx;
    return route_to(r, address, r->now);
}

static void group_send(void *ctx, unsigned face, const unsigned char *packet,
                       size_t n)
{
    struct router *const r = ctx;
    if (r->ports[face].in >= 0)
        packet_send(r, &r->ports[face], packet, n);
}

/* The next packet of an interface, into r->in, and how it was sent on the link.
 * One whose sender left the checksum to a network card, which a link between
 * namespaces does not have, gets it here. */
static ssize_t port_next(struct router *r, const struct port *p,
                         unsigned char *type)
{
    struct sockaddr_ll from = { 0 };
    union {
        struct cmsghdr head;
        unsigned char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } more;
    struct iovec bytes = { r->in, sizeof r->in };
    struct msghdr m = { .msg_name = &from,
                        .msg_namelen = sizeof from,
                        .msg_iov = &bytes,
                        .msg_iovlen = 1,
                        .msg_control = &more,
                        .msg_controllen = sizeof more };
    const ssize_t n = recvmsg(p->in, &m, MSG_TRUNC);
    *type = from.sll_pkttype;
    if (n < 0 || (size_t)n > sizeof r->in)
        return n;
    const struct cmsghdr *const c = CMSG_FIRSTHDR(&m);
    struct tpacket_auxdata aux;
    if (c && c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA &&
        c->cmsg_len >= CMSG_LEN(sizeof aux)) {
        memcpy(&aux, CMSG_DATA(c), sizeof aux);
        const size_t all = ipv6_bytes(r->in, (size_t)n);
        if (all && (aux.tp_status & TP_STATUS_CSUMNOTREADY))
            ipv6_finish(r->in, all);
    }
    return n;
}

/* What has come by an interface; false: it is gone. */
static bool port_read(struct router *r, struct port *p, uint64_t now)
{
    for (unsigned i = 0; i < BURST; i++) {
        unsigned char type;
        const ssize_t n = port_next(r, p, &type);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if ((size_t)n > sizeof r->in)
            continue;
        /* Groups, if they come as such; one address never comes to many. */
        if (type == PACKET_MULTICAST && r->casts && n >= IPV6_HEAD &&
            r->in[IPV6_TO] == 0xff) {
            packet_group(r, (unsigned)(p - r->ports), (size_t)n, now);
            continue;
        }
        /* Neither what we sent ourselves nor what is meant for others on the
         * link. */
        if (type != PACKET_HOST)
            continue;
        r->result.received++;
        packet_take(r, p, (size_t)n, now);
    }
    return true;
}

static void router_loop(struct router *r, const struct router_args *args,
                        uint64_t until)
{
    struct pollfd fds[ROUTER_FACES];
    unsigned alive = r->nports;
    while (!signals_told() && alive) {
        const uint64_t now = r->now = clock_ms();
        if (now >= until)
            return;
        if (router_hup())
            ports_again(r, args);
        if (r->casts)
            caster_tick(&r->caster, now);
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
                p->failed = !port_read(r, p, clock_ms());
            /* An interface that is down may come up again; one that was taken
             * away has no name any more, perhaps only a moment later. */
            if (p->failed && !if_nametoindex(p->iface)) {
                warn("%s is gone", p->iface);
                port_close(p);
                if (r->casts)
                    caster_gone(&r->caster, i);
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

/* Filters for the groups that were asked for. */
static bool groups_open(struct router *r, const struct router_args *args)
{
    uint64_t seed;
    if (!args->groups)
        return true;
    if (args->groups > GROUPS_MOST || args->cell_bits > 64 ||
        args->refresh > 86400)
        return refuse("at most %d --groups, 64 --cell-bits and 86400 seconds "
                      "of --refresh",
                      GROUPS_MOST);
    /* Anybody who can compute the positions of groups can fill the filters. */
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return refuse_path("getrandom", errno);
    const double bits = args->cell_bits ? (double)args->cell_bits : USUAL_BITS;
    if (!cast_new(&r->caster.cast, args->groups, bits, args->groups, seed))
        return refuse("no memory for %llu groups",
                      (unsigned long long)args->groups);
    r->casts = true;
    r->caster.nfaces = (unsigned)args->links.n;
    r->caster.period = 1000 * (args->refresh ? args->refresh : USUAL_REFRESH);
    r->caster.up = group_up;
    r->caster.send = group_send;
    r->caster.ctx = r;
    return true;
}

static bool questions_open(struct router *r, const struct router_args *args)
{
    const struct mark *ways[ROUTER_FACES];
    if (!args->listen)
        return !args->neighbours.n ||
               refuse("--neighbour is for questions; use it with --listen");
    ports_ways(r, ways);
    r->asked_by = args->ask->start(args, ways);
    return r->asked_by != NULL;
}

static void groups_count(struct router *r)
{
    const struct caster *const c = &r->caster;
    r->result.copies = c->copies;
    r->result.superfluous = c->superfluous;
    r->result.expected = c->expected;
    r->result.off_path = c->off_path;
    r->result.joins = c->joins;
    r->result.leaves = c->leaves;
    r->result.refused = c->refused;
}

int net_router(const struct router_args *given)
{
    struct router_args args = *given;
    bool ok = true;
    router_defaults(&args);
    if (!args.name || !*args.name)
        return fail("what is this router called? Use --name NAME");
    if (args.loop_bits > 256 || args.way_bits > 256 || args.loop_bits % 64 ||
        args.way_bits % 64 || args.loop_set > 32 || args.way_set > 32 ||
        args.strikes > 2)
        return fail("marks have 64, 128, 192 or 256 bits, of which at most 32 "
                    "are set; and 1 or 2 strikes");
    if (kernel_forwards())
        return fail("the kernel forwards IPv6 here itself; run sysctl -w "
                    "net.ipv6.conf.all.forwarding=0");
    const unsigned char *const secret = secret_read(args.key_file, &ok);
    struct router *const r = ok ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return ok ? fail("no memory") : TROUBLE;
    r->strikes = (unsigned)args.strikes;
    r->result.name = args.name;
    r->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ok = r->netlink >= 0 || refuse_path("netlink", errno);
    ok = ok && groups_open(r, &args) && ports_open(r, &args, secret) &&
         questions_open(r, &args);
    if (ok) {
        const uint64_t start = clock_ms();
        signals_watch(NULL);
        router_on_hup();
        note("%s forwards on %u interface%s", args.name, r->nports,
             r->nports == 1 ? "" : "s");
        router_loop(r, &args,
                    args.seconds ? start + 1000 * args.seconds : UINT64_MAX);
        r->result.faces = r->nports;
        groups_count(r);
        if (r->asked_by)
            args.ask->stop(r->asked_by, &r->result.questions,
                           &r->result.declined);
        r->result.seconds = (double)(clock_ms() - start) / 1000;
        report(stdout, args.json, router_fields, &r->result,
               "{name}: {received packet/s} came, {sent} sent on; dropped: "
               "{loop} loop, {expired} expired, {too_big} too big, {bad} "
               "bad; {group_packets} to groups, {group_copies cop/y/ies}\n");
    }
    for (unsigned i = 0; i < r->nports; i++)
        port_close(&r->ports[i]);
    if (r->netlink >= 0)
        close(r->netlink);
    cast_free(&r->caster.cast);
    free(r);
    secret_wipe();
    return ok ? YES : TROUBLE;
}
