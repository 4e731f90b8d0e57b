/*
 * gen.c - bloomery traffic gen: a capture whose flows are known
 *
 * Flow i of n has one packet and its share 1/i^skew of the others, and its
 * address is i: who counts can be checked. Packets have 1000 bytes, of which
 * the headers are there, and come in an order that the seed decides.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/traffic.h"
#include "base/byte_order.h"
#include "base/random.h"
#include "io/files.h"
#include "report/say.h"

#define DEFAULT_PACKETS 1000000
#define DEFAULT_FLOWS 1000
#define MOST_PACKETS ((uint64_t)1 << 32)
#define WIRE 1000
#define HEADERS 54 /* Ethernet, IPv4, TCP */
#define APART_US 10

struct made {
    uint32_t *flows; /* of each packet */
    uint64_t n;
};

/* Shares are rounded down; what is left, less than a packet per flow, goes to
 * the largest flows, one each, so that a flow is never below a later one. */
static void packets_share(struct made *m, uint64_t nflows, double skew)
{
    double all = 0;
    uint64_t at = 0;
    for (uint64_t i = 1; i <= nflows; i++)
        all += pow((double)i, -skew);
    const double spare = (double)(m->n - nflows);
    uint64_t left = m->n - nflows;
    for (uint64_t i = 1; i <= nflows; i++)
        left -= (uint64_t)(spare * pow((double)i, -skew) / all);
    for (uint64_t i = 1; i <= nflows; i++) {
        const double share = spare * pow((double)i, -skew) / all;
        for (uint64_t k = 1 + (uint64_t)share + (i <= left); k > 0 && at < m->n;
             k--)
            m->flows[at++] = (uint32_t)i;
    }
}

static void packets_shuffle(struct made *m, uint64_t seed)
{
    for (uint64_t i = m->n - 1; i > 0; i--) {
        const uint64_t j = random_next(&seed) % (i + 1);
        const uint32_t was = m->flows[i];
        m->flows[i] = m->flows[j];
        m->flows[j] = was;
    }
}

/* A record of the file: 16 bytes of its own, and the packet. */
static void record_make(unsigned char r[16 + HEADERS], uint64_t number,
                        uint32_t flow)
{
    static const unsigned char headers[HEADERS] = {
        2,    0, 0,    0,    0,   2,   2, 0, 0,    0,    0,    1,    8,
        0,                                                        /* Ethernet */
        0x45, 0, 0x03, 0xda, 0,   0,   0, 0, 64,   6,    0,    0, /* IPv4 */
        10,   0, 0,    0,    192, 168, 0, 1, 0,    0,    0,    80, /* to port 80
                                                                    */
        0,    0, 0,    0,    0,   0,   0, 0, 0x50, 0x10, 0xff, 0xff,
    };
    const uint64_t us = number * APART_US;
    put_le(r, UINT64_C(1000000000) + us / 1000000, 4);
    put_le(r + 4, us % 1000000, 4);
    put_le(r + 8, HEADERS, 4);
    put_le(r + 12, WIRE, 4);
    memcpy(r + 16, headers, HEADERS);
    unsigned char *const ip = r + 16 + 14;
    ip[13] = (unsigned char)(flow >> 16);
    ip[14] = (unsigned char)(flow >> 8);
    ip[15] = (unsigned char)flow;
    const unsigned port = 1024 + (flow >> 24);
    ip[20] = (unsigned char)(port >> 8);
    ip[21] = (unsigned char)port;
}

static bly_status made_write(const void *what, bly_put *put, void *ctx)
{
    const struct made *const m = what;
    unsigned char head[24] = { 0 }, records[256][16 + HEADERS];
    put_le(head, 0xa1b2c3d4, 4);
    put_le(head + 4, 2, 2);
    put_le(head + 6, 4, 2);
    put_le(head + 16, 65535, 4);
    put_le(head + 20, 1, 4);
    if (!put(ctx, head, sizeof head))
        return BLY_EIO;
    for (uint64_t i = 0; i < m->n;) {
        size_t n = 0;
        for (; n < 256 && i < m->n; n++, i++)
            record_make(records[n], i, m->flows[i]);
        if (!put(ctx, records, n * sizeof records[0]))
            return BLY_EIO;
    }
    return BLY_OK;
}

int traffic_gen(const struct traffic_args *args, const struct list *operands)
{
    struct made m = { .n = args->number ? args->number : DEFAULT_PACKETS };
    const uint64_t nflows = args->nflows ? args->nflows : DEFAULT_FLOWS;
    if (operands->n)
        return fail("gen reads nothing; usage: bloomery traffic gen -o FILE");
    if (!args->output)
        return fail("-o FILE is missing: where to write the capture");
    if (nflows > m.n || m.n >= MOST_PACKETS)
        return fail("--flows and --count: there must be a packet for each "
                    "flow, and fewer than 4294967296 of them");
    m.flows = malloc(m.n * sizeof *m.flows);
    if (!m.flows)
        return fail("out of memory");
    packets_share(&m, nflows, args->gen.skew);
    packets_shuffle(&m, args->seed);
    const int status = file_save(args->output, made_write, &m);
    free(m.flows);
    return status;
}
