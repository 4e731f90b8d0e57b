/*
 * receive.c - who sent this packet? Followed back by its marks
 */
#define _GNU_SOURCE
#include "apps/net/receive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/net/faces.h"
#include "apps/net/way_back.h"
#include "base/clock.h"
#include "io/files.h"
#include "report/out.h"
#include "report/say.h"

#define LONGEST 65575

const struct field received_fields[] = {
    FIELD(struct received, from, NONE, "the address that the packet gives"),
    FIELD(struct received, to, NONE, "where it went"),
    FIELD(struct received, farthest, MAYBE,
          "the farthest router that has marked it"),
    FIELD(struct received, hops, NONE, "how far away that is"),
    VALUES(struct received, "way", way, nway, AT,
           "all routers that may have marked it, the nearest first"),
    VALUES(struct received, "left", left, nleft, AT,
           "all routers whose mark is left in it, also behind one whose mark "
           "is not"),
    { 0 },
};

struct receiver {
    const struct receive_args *args;
    struct graph g;
    struct mark *marks;
    struct face like; /* for the sizes */
    uint32_t at, *found, *queue, number;
    uint32_t *hops, *before; /* of each node, on its way here */
    const char **names, **left;
};

/* The marks of all interfaces; false, with the reason printed, and those that
 * there were. */
static bool receiver_marks(struct receiver *r, const unsigned char *secret)
{
    const struct router_args *const m = &r->args->marks;
    const struct mark_spec spec = { .bits = (unsigned)m->way_bits,
                                    .k = (unsigned)m->way_set,
                                    .k0 = (unsigned)m->way_set,
                                    .secret = secret };
    struct mark *const marks = faces_mark(&r->g, &spec);
    if (!marks)
        return false;
    free(r->marks);
    r->marks = marks;
    return true;
}

static bool receiver_new(struct receiver *r, const unsigned char *secret)
{
    const struct router_args *const m = &r->args->marks;
    if (!graph_load(r->args->topology, 1, &r->g))
        return false;
    while (r->at < r->g.n && strcmp(r->g.nodes[r->at].name, m->name) != 0)
        r->at++;
    if (r->at == r->g.n)
        return refuse("%s: there is no node %s", r->args->topology, m->name);
    if (!receiver_marks(r, secret))
        return false;
    r->found = calloc(r->g.n, sizeof *r->found);
    r->queue = malloc((size_t)r->g.n * sizeof *r->queue);
    r->names = malloc((size_t)r->g.n * sizeof *r->names);
    r->left = malloc((size_t)r->g.n * sizeof *r->left);
    r->hops = malloc((size_t)r->g.n * sizeof *r->hops);
    r->before = malloc((size_t)r->g.n * sizeof *r->before);
    if (!r->found || !r->queue || !r->names || !r->left || !r->hops ||
        !r->before || router_face(m, secret, m->name, "", &r->like))
        return refuse("no memory for %u nodes", r->g.n);
    graph_hops(&r->g, r->at, r->hops, r->before, r->queue);
    return true;
}

static void receiver_free(struct receiver *r)
{
    graph_free(&r->g);
    free(r->marks);
    free(r->found);
    free(r->queue);
    free(r->names);
    free(r->left);
    free(r->hops);
    free(r->before);
}

/* One packet; false: it has no marks. */
static bool receive_one(void *ctx, const unsigned char *at, size_t n)
{
    struct receiver *const r = ctx;
    struct marked loop, way;
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    uint64_t asked = 0;
    if (!forward_marks(&r->like, at, n, &loop, &way))
        return false;
    inet_ntop(AF_INET6, at + 8, from, sizeof from);
    inet_ntop(AF_INET6, at + 24, to, sizeof to);
    const uint32_t nfound = way_back(&r->g, r->marks, r->at, &way, ++r->number,
                                     r->found, r->queue, &asked);
    for (uint32_t i = 0; i < nfound; i++)
        r->names[i] = r->g.nodes[r->queue[i + 1]].name;
    struct received out = { .from = from,
                            .to = to,
                            .way = r->names,
                            .nway = nfound,
                            .left = r->left,
                            .farthest = nfound ? r->names[nfound - 1] : NULL };
    out.hops = nfound ? r->hops[r->queue[nfound]] : 0;
    for (uint32_t i = 0; i < r->g.n; i++)
        if (i != r->at && r->hops[i] != GRAPH_FAR &&
            mark_in(&r->marks[faces_between(&r->g, i, r->before[i])], &way))
            r->left[out.nleft++] = r->g.nodes[i].name;
    report(stdout, r->args->json, received_fields, &out,
           "{from} -> {to}: [{farthest}, {hops hop/s} away|nobody near]\n");
    fflush(stdout);
    return true;
}

static void receive_again(void *ctx)
{
    struct receiver *const r = ctx;
    bool ok = true;
    const unsigned char *const secret =
        secret_read(r->args->marks.key_file, &ok);
    ok = ok && receiver_marks(r, secret);
    note("%s has %s marks", r->args->marks.name, ok ? "new" : "its old");
}

static int receive_all(const struct receive_args *args,
                       const struct received_by *by, int fd,
                       unsigned char *packet)
{
    const uint64_t start = clock_ms();
    uint64_t got = 0;
    while (got < args->packets) {
        const uint64_t spent = clock_ms() - start;
        if (args->seconds && spent >= 1000 * args->seconds)
            break;
        if (router_hup())
            by->again(by->ctx);
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        if (poll(&poll_fd, 1, 200) < 0 && errno != EINTR)
            return fail_path(args->iface, errno);
        const ssize_t n = recv(fd, packet, LONGEST, MSG_DONTWAIT);
        if (n > 0)
            got += by->take(by->ctx, packet, (size_t)n);
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            return fail_path(args->iface, errno);
    }
    return got ? YES : NO;
}

int receive_packets(const struct receive_args *args,
                    const struct received_by *by)
{
    unsigned char *const packet = malloc(LONGEST);
    const struct sockaddr_ll at = { .sll_family = AF_PACKET,
                                    .sll_protocol = htons(ETH_P_IPV6),
                                    .sll_ifindex =
                                        (int)if_nametoindex(args->iface) };
    const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int status = TROUBLE;
    if (!packet)
        fail("no memory");
    else if (!at.sll_ifindex)
        fail("%s: no such interface here", args->iface);
    else if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) < 0)
        fail("%s: capturing needs CAP_NET_RAW; run it as root, or in a network "
             "namespace of your own",
             args->iface);
    else {
        router_on_hup();
        note("%s listens on %s", args->marks.name, args->iface);
        status = receive_all(args, by, fd, packet);
    }
    free(packet);
    if (fd >= 0)
        close(fd);
    return status;
}

int net_receive(const struct receive_args *given)
{
    struct receive_args args = *given;
    bool ok = true;
    router_defaults(&args.marks);
    args.packets = args.packets ? args.packets : 1;
    if (!args.topology || !args.marks.name)
        return fail("who is where? Use --topology FILE --name NODE");
    const unsigned char *const secret = secret_read(args.marks.key_file, &ok);
    if (!ok)
        return TROUBLE;
    if (!if_nametoindex(args.iface))
        return fail("%s: no such interface here", args.iface);
    struct receiver r = { .args = &args };
    const struct received_by by = { receive_one, receive_again, &r };
    const int status =
        receiver_new(&r, secret) ? receive_packets(&args, &by) : TROUBLE;
    receiver_free(&r);
    secret_wipe();
    return status;
}
