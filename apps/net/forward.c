/*
 * forward.c - what a router does with a packet
 */
#include "apps/net/forward.h"

#include <string.h>

#include "apps/net/ipv6.h"

#define PAD1 0
#define PADN 1
#define FLAG_SUSPICIOUS 1
#define COMPLAINT 1280 /* the most that an error may have */

const char *const fate_names[FATES] = { "sent",    "loop", "expired",
                                        "too_big", "bad",  "not_ours" };

/* Where the data of our option begin in a header of `header` bytes, 0 if it is
 * not there. False: options are damaged, or ours has another length. */
static bool our_option(const unsigned char *at, size_t header, size_t data,
                       size_t *out)
{
    size_t i = 2;
    *out = 0;
    while (i < header) {
        if (at[i] == PAD1) {
            i++;
            continue;
        }
        if (i + 2 > header || i + 2 + at[i + 1] > header)
            return false;
        if (at[i] == FORWARD_OPTION) {
            /* A second one would be a way to have two sets of marks. */
            if (*out || at[i + 1] != data)
                return false;
            *out = i + 2;
        }
        i += 2 + (size_t)at[i + 1];
    }
    return true;
}

static size_t data_bytes(const struct face *by)
{
    return 2 + by->loop.nbytes + by->way.nbytes;
}

/* The packet with an option of zeros: *data is where its data begin. False: its
 * options are as long as can be. */
static bool with_option(const struct face *by, const unsigned char *in,
                        size_t all, size_t header, unsigned char *out,
                        size_t *nout, size_t *data)
{
    const size_t bytes = data_bytes(by);
    /* Behind the two bytes that begin a header, or the options that are there.
     */
    const size_t from = header ? header : 2;
    const size_t whole = (from + 2 + bytes + 7) / 8 * 8;
    if (whole > IPV6_OPTIONS)
        return false;
    memcpy(out, in, FORWARD_HEAD);
    unsigned char *const at = out + FORWARD_HEAD;
    memset(at, 0, whole);
    if (header) {
        memcpy(at, in + FORWARD_HEAD, header);
    } else {
        at[0] = in[IPV6_NEXT];
        out[IPV6_NEXT] = IPV6_HOP_BY_HOP;
    }
    at[1] = (unsigned char)(whole / 8 - 1);
    at[from] = FORWARD_OPTION;
    at[from + 1] = (unsigned char)bytes;
    *data = FORWARD_HEAD + from + 2;
    out[*data + 1] = (unsigned char)by->loop.nbytes;
    const size_t pad = whole - (from + 2 + bytes);
    if (pad > 1) {
        at[whole - pad] = PADN;
        at[whole - pad + 1] = (unsigned char)(pad - 2);
    }
    memcpy(at + whole, in + FORWARD_HEAD + header, all - FORWARD_HEAD - header);
    *nout = all - header + whole;
    ipv6_put16(out + 4, *nout - FORWARD_HEAD);
    return *nout - FORWARD_HEAD <= 0xffff;
}

enum fate forward(const struct face *by, unsigned strikes,
                  const unsigned char *in, size_t n, unsigned char *out,
                  size_t *nout)
{
    const size_t all = ipv6_bytes(in, n);
    size_t header, data;
    *nout = 0;
    if (!all || !ipv6_options(in, all, &header))
        return FATE_BAD;
    if (ipv6_of_link(in + IPV6_FROM) || ipv6_of_link(in + IPV6_TO) ||
        in[IPV6_FROM] == 0xff)
        return FATE_NOT_OURS;
    if (!our_option(in + FORWARD_HEAD, header, data_bytes(by), &data))
        return FATE_BAD;
    /* Before anything is written: the sender is told of the packet as it
     * came. */
    if (in[IPV6_HOPS] <= 1)
        return FATE_EXPIRED;
    if (data) {
        memcpy(out, in, all);
        *nout = all;
        data += FORWARD_HEAD;
        if (out[data + 1] != by->loop.nbytes)
            return FATE_BAD;
    } else if (!with_option(by, in, all, header, out, nout, &data)) {
        return FATE_BAD;
    }
    if (*nout > by->mtu)
        return FATE_TOO_BIG;
    struct marked loop, way;
    unsigned char *const flags = &out[data], *const marks = &out[data + 2];
    marked_get(&by->loop, marks, &loop);
    marked_get(&by->way, marks + by->loop.nbytes, &way);
    if (mark_in(&by->loop, &loop)) {
        /* One hit may be chance. A packet in a loop hits at the next
         * interface too, an unlucky one rarely does. */
        if (strikes < 2 || (*flags & FLAG_SUSPICIOUS))
            return FATE_LOOP;
        *flags |= FLAG_SUSPICIOUS;
    } else {
        *flags &= (unsigned char)~FLAG_SUSPICIOUS;
    }
    mark_add(&by->loop, &loop);
    mark_add(&by->way, &way);
    marked_put(&by->loop, &loop, marks);
    marked_put(&by->way, &way, marks + by->loop.nbytes);
    out[IPV6_HOPS]--;
    return FATE_SENT;
}

bool forward_marks(const struct face *like, const unsigned char *in, size_t n,
                   struct marked *loop, struct marked *way)
{
    const size_t all = ipv6_bytes(in, n);
    size_t header, data;
    if (!all || !ipv6_options(in, all, &header) ||
        !our_option(in + FORWARD_HEAD, header, data_bytes(like), &data) ||
        !data || in[FORWARD_HEAD + data + 1] != like->loop.nbytes)
        return false;
    const unsigned char *const marks = in + FORWARD_HEAD + data + 2;
    marked_get(&like->loop, marks, loop);
    marked_get(&like->way, marks + like->loop.nbytes, way);
    return true;
}

/* --------------------------------------------------------------- complaints */

/* Is it an error of ICMPv6 itself? About these nobody complains. */
static bool is_error(const unsigned char *in, size_t all)
{
    size_t header, at = FORWARD_HEAD;
    uint8_t next = in[IPV6_NEXT];
    if (!ipv6_options(in, all, &header))
        return true;
    if (header) {
        next = in[FORWARD_HEAD];
        at += header;
    }
    return next == IPV6_ICMP && at < all && in[at] < 128;
}

size_t forward_complain(enum fate fate, unsigned mtu,
                        const unsigned char from[16], const unsigned char *in,
                        size_t n, unsigned char *out)
{
    const size_t all = ipv6_bytes(in, n);
    /* About what went to a group, only that it is too big. */
    if (!all || ipv6_of_link(in + IPV6_FROM) || in[IPV6_FROM] == 0xff ||
        (in[IPV6_TO] == 0xff && fate != FATE_TOO_BIG) || is_error(in, all))
        return 0;
    const size_t quoted =
        all < COMPLAINT - FORWARD_HEAD - 8 ? all : COMPLAINT - FORWARD_HEAD - 8;
    const size_t body = 8 + quoted;
    memset(out, 0, FORWARD_HEAD + 8);
    out[0] = 0x60;
    ipv6_put16(out + 4, body);
    out[IPV6_NEXT] = IPV6_ICMP;
    out[IPV6_HOPS] = 64;
    memcpy(out + IPV6_FROM, from, 16);
    memcpy(out + IPV6_TO, in + IPV6_FROM, 16);
    unsigned char *const icmp = out + FORWARD_HEAD;
    icmp[0] = fate == FATE_TOO_BIG ? 2 : 3;
    if (fate == FATE_TOO_BIG) {
        ipv6_put16(icmp + 4, mtu >> 16);
        ipv6_put16(icmp + 6, mtu & 0xffff);
    }
    memcpy(icmp + 8, in, quoted);
    ipv6_put16(icmp + 2, ipv6_sum(out, IPV6_ICMP, icmp, body));
    return FORWARD_HEAD + body;
}
