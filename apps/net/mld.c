/*
 * mld.c - messages of Multicast Listener Discovery, version 2 (RFC 3810)
 */
#include "apps/net/mld.h"

#include <string.h>

#include "apps/net/ipv6.h"
#include "base/byte_order.h"

#define TYPE_QUERY 130
#define TYPE_REPORT 143
#define QUERY_HEAD 28  /* of ICMPv6, before the sources */
#define RECORD_HEAD 20 /* before the sources */
#define REPORT_HEAD 8

/* Types of records. */
enum {
    IS_INCLUDE = 1,
    IS_EXCLUDE,
    TO_INCLUDE,
    TO_EXCLUDE,
    ALLOW_NEW,
    BLOCK_OLD
};

static size_t record_bytes(const unsigned char *at)
{
    return RECORD_HEAD + 16 * (size_t)get_be(at + 2, 2) + 4 * (size_t)at[1];
}

/* Are all records there? */
static bool records_whole(const unsigned char *at, size_t n, unsigned left)
{
    for (; left; left--) {
        if (n < RECORD_HEAD || n < record_bytes(at))
            return false;
        n -= record_bytes(at);
        at += record_bytes(at);
    }
    return true;
}

bool mld_read(const unsigned char *in, size_t n, struct mld *out)
{
    static const unsigned char nobody[16] = { 0 };
    const size_t all = ipv6_bytes(in, n);
    size_t options;
    if (!all || !ipv6_options(in, all, &options) || !options ||
        in[IPV6_HEAD] != IPV6_ICMP || in[IPV6_HOPS] != 1)
        return false;
    const unsigned char *const from = in + IPV6_FROM;
    if (!(from[0] == 0xfe && (from[1] & 0xc0) == 0x80) &&
        memcmp(from, nobody, 16) != 0)
        return false;
    const unsigned char *const body = in + IPV6_HEAD + options;
    const size_t nbody = all - IPV6_HEAD - options;
    if (nbody < REPORT_HEAD || ipv6_sum(in, IPV6_ICMP, body, nbody) != 0)
        return false;
    if (body[0] == TYPE_REPORT) {
        *out = (struct mld){ MLD_REPORT, body + REPORT_HEAD,
                             (unsigned)get_be(body + 6, 2) };
        return records_whole(out->at, nbody - REPORT_HEAD, out->left);
    }
    *out = (struct mld){ MLD_QUERY, body, 1 };
    return body[0] == TYPE_QUERY && nbody >= QUERY_HEAD &&
           nbody >= QUERY_HEAD + 16 * (size_t)get_be(body + 26, 2);
}

bool mld_next(struct mld *m, struct mld_record *out)
{
    while (m->left) {
        const unsigned char *const at = m->at;
        m->left--;
        if (m->kind == MLD_QUERY) {
            *out = (struct mld_record){ MLD_WANTS, at + 8, at + QUERY_HEAD,
                                        (unsigned)get_be(at + 26, 2) };
            return true;
        }
        m->at += record_bytes(at);
        *out = (struct mld_record){ MLD_WANTS, at + 4, at + RECORD_HEAD,
                                    (unsigned)get_be(at + 2, 2) };
        switch (at[0]) {
        case IS_INCLUDE:
        case ALLOW_NEW:
            return true;
        case TO_INCLUDE:
            out->says = MLD_ONLY;
            return true;
        case BLOCK_OLD:
            out->says = MLD_LEAVES;
            return true;
        default: /* all sources but these: of no use to us */
            break;
        }
    }
    return false;
}

/* The headers before a body of nbody bytes, with the option that makes routers
 * look (RFC 2711): where the body begins. */
static unsigned char *mld_head(unsigned char *out, const unsigned char from[16],
                               const unsigned char to[16], size_t nbody)
{
    static const unsigned char alert[8] = { IPV6_ICMP, 0, 5, 2, 0, 0, 1, 0 };
    memset(out, 0, IPV6_HEAD);
    out[0] = 0x60;
    ipv6_put16(out + 4, sizeof alert + nbody);
    out[IPV6_NEXT] = IPV6_HOP_BY_HOP;
    out[IPV6_HOPS] = 1;
    memcpy(out + IPV6_FROM, from, 16);
    memcpy(out + IPV6_TO, to, 16);
    memcpy(out + IPV6_HEAD, alert, sizeof alert);
    memset(out + IPV6_HEAD + sizeof alert, 0, nbody);
    return out + IPV6_HEAD + sizeof alert;
}

static size_t mld_end(unsigned char *out, unsigned char *body, size_t nbody)
{
    ipv6_put16(body + 2, ipv6_sum(out, IPV6_ICMP, body, nbody));
    return (size_t)(body - out) + nbody;
}

size_t mld_report(const unsigned char from[16], enum mld_says says,
                  const unsigned char *pairs, size_t n, unsigned char *out)
{
    static const unsigned char routers[16] = { 0xff, 2, [15] = 0x16 };
    const size_t nbody = REPORT_HEAD + n * (RECORD_HEAD + 16);
    unsigned char *const body = mld_head(out, from, routers, nbody);
    body[0] = TYPE_REPORT;
    ipv6_put16(body + 6, n);
    for (size_t i = 0; i < n; i++) {
        unsigned char *const at = body + REPORT_HEAD + i * (RECORD_HEAD + 16);
        at[0] = says == MLD_LEAVES ? BLOCK_OLD : ALLOW_NEW;
        ipv6_put16(at + 2, 1);
        memcpy(at + 4, pairs + 32 * i + 16, 16);
        memcpy(at + RECORD_HEAD, pairs + 32 * i, 16);
    }
    return mld_end(out, body, nbody);
}

size_t mld_query(const unsigned char from[16], const unsigned char *pair,
                 unsigned char *out)
{
    static const unsigned char everybody[16] = { 0xff, 2, [15] = 1 };
    const size_t nbody = QUERY_HEAD + (pair ? 16 : 0);
    unsigned char *const body =
        mld_head(out, from, pair ? pair + 16 : everybody, nbody);
    body[0] = TYPE_QUERY;
    ipv6_put16(body + 4, MLD_WAIT);
    body[24] = 2; /* repeated as often if it may be lost */
    if (pair) {
        memcpy(body + 8, pair + 16, 16);
        ipv6_put16(body + 26, 1);
        memcpy(body + QUERY_HEAD, pair, 16);
    }
    return mld_end(out, body, nbody);
}
