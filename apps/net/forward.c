/*
 * forward.c - what a router does with a packet
 */
#include "apps/net/forward.h"

#include <string.h>

#include "io/byte_order.h"

#define HOP_BY_HOP 0
#define ICMPV6 58
#define PAD1 0
#define PADN 1
#define AT_NEXT 6
#define AT_HOPS 7
#define AT_FROM 8
#define AT_TO 24
#define FLAG_SUSPICIOUS 1
#define LONGEST_OPTIONS 2048 /* of a hop-by-hop header */
#define COMPLAINT 1280       /* the most that an error may have */

const char *const fate_names[FATES] = { "sent",    "loop", "expired",
                                        "too_big", "bad",  "not_ours" };

static void put_be16(unsigned char *at, size_t x)
{
    at[0] = (unsigned char)(x >> 8);
    at[1] = (unsigned char)x;
}

/* Bytes of the packet as its header says; 0: it is none, or cut. */
static size_t packet_bytes(const unsigned char *in, size_t n)
{
    if (n < FORWARD_HEAD || in[0] >> 4 != 6)
        return 0;
    const size_t all = FORWARD_HEAD + (size_t)get_be(in + 4, 2);
    return all <= n ? all : 0;
}

/* Bytes of the hop-by-hop header, 0 if there is none. False: it is cut. */
static bool hop_header(const unsigned char *in, size_t n, size_t *out)
{
    *out = 0;
    if (in[AT_NEXT] != HOP_BY_HOP)
        return true;
    if (n < FORWARD_HEAD + 8)
        return false;
    *out = 8 * ((size_t)in[FORWARD_HEAD + 1] + 1);
    return FORWARD_HEAD + *out <= n && *out <= LONGEST_OPTIONS;
}

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
    if (whole > LONGEST_OPTIONS)
        return false;
    memcpy(out, in, FORWARD_HEAD);
    unsigned char *const at = out + FORWARD_HEAD;
    memset(at, 0, whole);
    if (header) {
        memcpy(at, in + FORWARD_HEAD, header);
    } else {
        at[0] = in[AT_NEXT];
        out[AT_NEXT] = HOP_BY_HOP;
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
    put_be16(out + 4, *nout - FORWARD_HEAD);
    return *nout - FORWARD_HEAD <= 0xffff;
}

static bool of_this_link(const unsigned char address[16])
{
    static const unsigned char nobody[15] = { 0 };
    return address[0] == 0xff ||
           (address[0] == 0xfe && (address[1] & 0xc0) == 0x80) ||
           (memcmp(address, nobody, 15) == 0 && address[15] <= 1);
}

enum fate forward(const struct face *by, unsigned strikes,
                  const unsigned char *in, size_t n, unsigned char *out,
                  size_t *nout)
{
    const size_t all = packet_bytes(in, n);
    size_t header, data;
    *nout = 0;
    if (!all || !hop_header(in, all, &header))
        return FATE_BAD;
    if (of_this_link(in + AT_FROM) || of_this_link(in + AT_TO))
        return FATE_NOT_OURS;
    if (!our_option(in + FORWARD_HEAD, header, data_bytes(by), &data))
        return FATE_BAD;
    if (in[AT_HOPS] <= 1)
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
    out[AT_HOPS]--;
    return FATE_SENT;
}

bool forward_marks(const struct face *like, const unsigned char *in, size_t n,
                   struct marked *loop, struct marked *way)
{
    const size_t all = packet_bytes(in, n);
    size_t header, data;
    if (!all || !hop_header(in, all, &header) ||
        !our_option(in + FORWARD_HEAD, header, data_bytes(like), &data) ||
        !data || in[FORWARD_HEAD + data + 1] != like->loop.nbytes)
        return false;
    const unsigned char *const marks = in + FORWARD_HEAD + data + 2;
    marked_get(&like->loop, marks, loop);
    marked_get(&like->way, marks + like->loop.nbytes, way);
    return true;
}

/* ---------------------------------------------------------------- complaints
 */

/* The sum of 16-bit words, as the checksums of IP have it. */
static uint32_t words_sum(const unsigned char *at, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < n; i += 2)
        sum += (uint32_t)get_be(at + i, 2);
    return n % 2 ? sum + ((uint32_t)at[n - 1] << 8) : sum;
}

/* Is it an error of ICMPv6 itself? About these nobody complains. */
static bool is_error(const unsigned char *in, size_t all)
{
    size_t header, at = FORWARD_HEAD;
    uint8_t next = in[AT_NEXT];
    if (!hop_header(in, all, &header))
        return true;
    if (header) {
        next = in[FORWARD_HEAD];
        at += header;
    }
    return next == ICMPV6 && at < all && in[at] < 128;
}

size_t forward_complain(enum fate fate, unsigned mtu,
                        const unsigned char from[16], const unsigned char *in,
                        size_t n, unsigned char *out)
{
    const size_t all = packet_bytes(in, n);
    if (!all || of_this_link(in + AT_FROM) || is_error(in, all))
        return 0;
    const size_t quoted =
        all < COMPLAINT - FORWARD_HEAD - 8 ? all : COMPLAINT - FORWARD_HEAD - 8;
    const size_t body = 8 + quoted;
    memset(out, 0, FORWARD_HEAD + 8);
    out[0] = 0x60;
    put_be16(out + 4, body);
    out[AT_NEXT] = ICMPV6;
    out[AT_HOPS] = 64;
    memcpy(out + AT_FROM, from, 16);
    memcpy(out + AT_TO, in + AT_FROM, 16);
    unsigned char *const icmp = out + FORWARD_HEAD;
    icmp[0] = fate == FATE_TOO_BIG ? 2 : 3;
    if (fate == FATE_TOO_BIG) {
        put_be16(icmp + 4, mtu >> 16);
        put_be16(icmp + 6, mtu & 0xffff);
    }
    memcpy(icmp + 8, in, quoted);
    uint32_t sum = words_sum(out + AT_FROM, 32) + (uint32_t)body + ICMPV6 +
                   words_sum(icmp, body);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    put_be16(icmp + 2, (uint16_t)~sum);
    return FORWARD_HEAD + body;
}
