/*
 * ipv6.c - the parts of a packet of IPv6, from bytes that anyone may have sent
 */
#include "apps/net/ipv6.h"

#include <string.h>

#include "base/byte_order.h"

#define TCP 6
#define UDP 17
#define SCOPE_LINK 2 /* of a group: what is at most this stays on its link */

void ipv6_put16(unsigned char *at, size_t x)
{
    at[0] = (unsigned char)(x >> 8);
    at[1] = (unsigned char)x;
}

size_t ipv6_bytes(const unsigned char *in, size_t n)
{
    if (n < IPV6_HEAD || in[0] >> 4 != 6)
        return 0;
    const size_t all = IPV6_HEAD + (size_t)get_be(in + 4, 2);
    return all <= n ? all : 0;
}

bool ipv6_options(const unsigned char *in, size_t n, size_t *out)
{
    *out = 0;
    if (in[IPV6_NEXT] != IPV6_HOP_BY_HOP)
        return true;
    if (n < IPV6_HEAD + 8)
        return false;
    *out = 8 * ((size_t)in[IPV6_HEAD + 1] + 1);
    return IPV6_HEAD + *out <= n && *out <= IPV6_OPTIONS;
}

/* The sum of 16-bit words, as the checksums of IP have it. */
static uint32_t words_sum(const unsigned char *at, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < n; i += 2)
        sum += (uint32_t)get_be(at + i, 2);
    return n % 2 ? sum + ((uint32_t)at[n - 1] << 8) : sum;
}

uint16_t ipv6_sum(const unsigned char *in, uint8_t protocol,
                  const unsigned char *body, size_t nbody)
{
    uint32_t sum = words_sum(in + IPV6_FROM, 32) + (uint32_t)nbody + protocol +
                   words_sum(body, nbody);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

bool ipv6_finish(unsigned char *in, size_t all)
{
    size_t options;
    if (!ipv6_options(in, all, &options))
        return false;
    const uint8_t protocol = in[options ? IPV6_HEAD : IPV6_NEXT];
    const size_t at = protocol == UDP         ? 6
                      : protocol == TCP       ? 16
                      : protocol == IPV6_ICMP ? 2
                                              : 0;
    unsigned char *const body = in + IPV6_HEAD + options;
    const size_t nbody = all - IPV6_HEAD - options;
    if (!at || nbody < at + 2)
        return false;
    ipv6_put16(body + at, 0);
    const uint16_t sum = ipv6_sum(in, protocol, body, nbody);
    /* Zero would mean that UDP has none. */
    ipv6_put16(body + at, sum || protocol != UDP ? sum : 0xffff);
    return true;
}

bool ipv6_of_link(const unsigned char address[16])
{
    static const unsigned char nobody[15] = { 0 };
    return (address[0] == 0xff && (address[1] & 15) <= SCOPE_LINK) ||
           (address[0] == 0xfe && (address[1] & 0xc0) == 0x80) ||
           (memcmp(address, nobody, 15) == 0 && address[15] <= 1);
}
