/*
 * spie.c - what a packet is known by, and what becomes of it
 */
#include "apps/traffic/spie.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/grow.h"

#define HEAD4 20
#define BEHIND4 8
#define BEHIND4_UDP 16 /* its header, and as much that tells packets apart */
#define HEAD6 40
#define BEHIND6 20

/* n bytes from `from` on of a packet with `all`, of which `captured` are
 * there; what the packet does not have is 0. */
static bool bytes_take(const unsigned char *at, size_t captured, size_t all,
                       size_t from, size_t n, unsigned char *out)
{
    const size_t has = all > from ? all - from : 0;
    const size_t take = has < n ? has : n;
    if (captured < from + take)
        return false;
    memset(out, 0, n);
    memcpy(out, at + from, take);
    return true;
}

/* Is there a checksum of the transport in what a packet is known by, from byte
 * `front` on? Then it becomes 0. */
static void sum_clear(struct spie_packet *out, uint8_t proto, size_t front)
{
    const size_t sum = front + (proto == IP_UDP ? 6 : 16);
    if ((proto == IP_UDP || proto == IP_TCP) && sum + 2 <= out->len)
        out->at[sum] = out->at[sum + 1] = 0;
}

/* Of what is behind the header of IPv4, with its protocol and place. */
static uint8_t len4(const unsigned char *head)
{
    const bool first = (get_be(head + 6, 2) & 0x1fff) == 0;
    return HEAD4 + (head[9] == IP_UDP && first ? BEHIND4_UDP : BEHIND4);
}

/* The bytes behind the header of IPv4 that is in *out, of a packet at ip. */
static bool behind4_take(const unsigned char *ip, size_t captured, size_t all,
                         size_t from, struct spie_packet *out)
{
    out->len = len4(out->at);
    if (!bytes_take(ip, captured, all, from, out->len - (size_t)HEAD4,
                    out->at + HEAD4))
        return false;
    if ((get_be(out->at + 6, 2) & 0x1fff) == 0)
        sum_clear(out, out->at[9], HEAD4);
    return true;
}

bool spie_known_by(const struct packet *p, struct spie_packet *out)
{
    unsigned char *const at = out->at;
    const unsigned char *const ip = p->ip;
    memset(out, 0, sizeof *out);
    if (p->version == 4) {
        const size_t header = (size_t)(ip[0] & 0xf) * 4;
        const size_t all = (size_t)get_be(ip + 2, 2);
        memcpy(at, ip, HEAD4);
        at[0] = 0x45; /* options may come and go */
        at[1] = at[8] = at[10] = at[11] = 0;
        return behind4_take(ip, p->nip, all ? all : p->nip, header, out);
    }
    const size_t all = HEAD6 + (size_t)get_be(ip + 4, 2);
    out->len = HEAD6 + BEHIND6;
    memcpy(at, ip, HEAD6);
    at[0] = 0x60;
    at[1] = at[2] = at[3] = at[7] = 0;
    if (!bytes_take(ip, p->nip, all > HEAD6 ? all : p->nip, HEAD6, BEHIND6,
                    at + HEAD6))
        return false;
    if (!p->fragment && p->ntransport)
        sum_clear(out, p->proto, (size_t)(p->transport - ip));
    return true;
}

const char *spie_change_name(enum spie_change change)
{
    return change == SPIE_NAT      ? "nat"
           : change == SPIE_TUNNEL ? "tunnel"
                                   : "fragment";
}

/* --------------------------------------------------------------------- NAT */

static bool end_read(const char *text, size_t n, unsigned char address[4],
                     uint16_t *port)
{
    char copy[32];
    uint64_t number = 0;
    if (n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    char *const colon = strchr(copy, ':');
    if (colon) {
        *colon = '\0';
        if (!bly_parse_count(colon + 1, &number) || !number || number > 65535)
            return false;
    }
    *port = (uint16_t)number;
    return inet_pton(AF_INET, copy, address) == 1;
}

bool spie_nat_line(const char *line, struct spie_nat *out)
{
    const size_t n = strcspn(line, " \t");
    const char *const rest = line + n + strspn(line + n, " \t");
    return end_read(line, n, out->inside, &out->inside_port) &&
           end_read(rest, strcspn(rest, " \t\r\n"), out->outside,
                    &out->outside_port) &&
           !out->inside_port == !out->outside_port;
}

static bool end_change(struct spie_packet *p, size_t address, size_t port,
                       const unsigned char *from, uint16_t from_port,
                       const unsigned char *to, uint16_t to_port)
{
    const bool later = (get_be(p->at + 6, 2) & 0x1fff) != 0;
    const bool ported = !later && (p->at[9] == IP_TCP || p->at[9] == IP_UDP);
    if (memcmp(p->at + address, from, 4) != 0)
        return false;
    if (from_port && (!ported || get_be(p->at + port, 2) != from_port))
        return false;
    memcpy(p->at + address, to, 4);
    if (to_port) {
        p->at[port] = (unsigned char)(to_port >> 8);
        p->at[port + 1] = (unsigned char)to_port;
    }
    return true;
}

bool spie_nat_apply(const struct spie_nat *nat, const struct spie_packet *in,
                    struct spie_packet *out)
{
    *out = *in;
    if (in->at[0] != 0x45)
        return false;
    return end_change(out, 12, HEAD4, nat->inside, nat->inside_port,
                      nat->outside, nat->outside_port) ||
           end_change(out, 16, HEAD4 + 2, nat->outside, nat->outside_port,
                      nat->inside, nat->inside_port);
}

/* --------------------------------------------------------------- fragments */

bool spie_fragment(const struct packet *p, unsigned mtu, unsigned i,
                   struct spie_packet *out)
{
    /* With options, fragments differ in which of them they have. */
    if (p->version != 4 || p->ip[0] != 0x45 || (p->ip[6] & 0x40) || mtu < 28)
        return false;
    const size_t all = (size_t)get_be(p->ip + 2, 2);
    const size_t each = (mtu - HEAD4) / 8 * 8;
    const size_t from = (size_t)i * each;
    if (all <= mtu || from >= all - HEAD4)
        return false;
    const size_t left = all - HEAD4 - from;
    const size_t n = left < each ? left : each;
    const unsigned flags = (unsigned)get_be(p->ip + 6, 2);
    const bool more = (flags & 0x2000) || n < left;
    const unsigned place =
        (flags & 0x1fff) + (unsigned)(from / 8) + (more ? 0x2000 : 0);
    memset(out, 0, sizeof *out);
    memcpy(out->at, p->ip, HEAD4);
    out->at[1] = out->at[8] = out->at[10] = out->at[11] = 0;
    out->at[2] = (unsigned char)((HEAD4 + n) >> 8);
    out->at[3] = (unsigned char)(HEAD4 + n);
    out->at[6] = (unsigned char)(place >> 8);
    out->at[7] = (unsigned char)place;
    return behind4_take(p->ip, p->nip, HEAD4 + from + n, HEAD4 + from, out);
}

/* -------------------------------------------------------------------- walk */

size_t spie_net_router(struct spie_net *net, const char *name, bool add)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < net->nnames; i++)
        if (strcmp(net->names[i], name) == 0)
            return i;
    if (!add || n == 0 || n >= SPIE_NAME)
        return SPIE_NOBODY;
    if (!GROW(&net->names, &net->names_room, net->nnames + 1))
        return SPIE_NOBODY;
    memcpy(net->names[net->nnames], name, n + 1);
    return net->nnames++;
}

bool spie_net_link(struct spie_net *net, size_t a, size_t b)
{
    if (!GROW(&net->links, &net->links_room, net->nlinks + 1))
        return false;
    net->links[net->nlinks++] = (struct spie_link){ a, b };
    return true;
}

void spie_net_free(struct spie_net *net)
{
    free(net->names);
    free(net->links);
    *net = (struct spie_net){ 0 };
}

static bool step_asked(const struct spie_step *steps, size_t n, size_t router)
{
    for (size_t i = 0; i < n; i++)
        if (steps[i].router == router)
            return true;
    return false;
}

static struct spie_step step_make(size_t router, const struct spie_step *from,
                                  const struct spie_packet *p, spie_asks *ask,
                                  void *ctx)
{
    struct spie_step s = { .router = router,
                           .from = from ? from->router : SPIE_NOBODY,
                           .hops = from ? from->hops + 1 : 0,
                           .packet = *p };
    struct spie_packet was;
    s.answer = ask(ctx, router, p, &was, &s.change);
    if (s.answer == SPIE_CHANGED)
        s.packet = was;
    return s;
}

size_t spie_walk(const struct spie_net *net, size_t begin,
                 const struct spie_packet *p, spie_asks *ask, void *ctx,
                 struct spie_step *steps)
{
    size_t n = 0;
    steps[n++] = step_make(begin, NULL, p, ask, ctx);
    for (size_t i = 0; i < n; i++) {
        struct spie_step *const s = &steps[i];
        if (s->answer != SPIE_MAYBE && s->answer != SPIE_CHANGED)
            continue;
        s->last = true;
        for (size_t k = 0; k < net->nlinks; k++) {
            const struct spie_link *const l = &net->links[k];
            const size_t other = l->a == s->router   ? l->b
                                 : l->b == s->router ? l->a
                                                     : SPIE_NOBODY;
            if (other == SPIE_NOBODY || step_asked(steps, n, other))
                continue;
            steps[n] = step_make(other, s, &s->packet, ask, ctx);
            s->last &= steps[n].answer == SPIE_NO;
            n++;
        }
    }
    return n;
}
