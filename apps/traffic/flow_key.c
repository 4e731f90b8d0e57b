/*
 * flow_key.c - what makes packets a flow
 *
 * A key begins with a byte for the version of IP, so that its length tells all:
 * version, then addresses, and for the five-tuple protocol and ports.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <bloomery.h>

#include "apps/traffic/packet.h"
#include "base/byte_order.h"

bool key_choose(const char *text, struct key_choice *out)
{
    static const struct {
        const char *name;
        enum key_form form;
    } names[] = {
        { "5tuple", KEY_5TUPLE },
        { "src", KEY_SOURCE },
        { "dst", KEY_TARGET },
        { "srcdst", KEY_BOTH },
    };
    *out = (struct key_choice){ 0 };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i].name) == 0) {
            out->form = names[i].form;
            return true;
        }
    uint64_t bits;
    if (strncmp(text, "prefix/", 7) != 0 || !bly_parse_count(text + 7, &bits) ||
        bits < 1 || bits > 128)
        return false;
    out->form = KEY_PREFIX;
    out->prefix = (unsigned)bits;
    return true;
}

static size_t address_bytes(uint8_t version)
{
    return version == 4 ? 4 : 16;
}

static void put(struct flow_key *key, const void *bytes, size_t n)
{
    memcpy(key->at + key->len, bytes, n);
    key->len = (uint8_t)(key->len + n);
}

unsigned prefix_bits(struct key_choice choice, uint8_t version)
{
    const unsigned most = version == 4 ? 32 : 128;
    return choice.prefix < most ? choice.prefix : most;
}

void address_cut(unsigned char *address, size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned before = (unsigned)i * 8;
        const unsigned here = bits <= before ? 0 : bits - before;
        if (here < 8)
            address[i] &= (unsigned char)(0xff00u >> here);
    }
}

bool key_of(struct key_choice choice, const struct packet *p,
            struct flow_key *key)
{
    const size_t n = address_bytes(p->version);
    key->len = 0;
    put(key, &p->version, 1);
    switch (choice.form) {
    case KEY_SOURCE:
        put(key, p->source, n);
        return true;
    case KEY_TARGET:
        put(key, p->target, n);
        return true;
    case KEY_PREFIX:
        put(key, p->source, n);
        address_cut(key->at + 1, n, prefix_bits(choice, p->version));
        return true;
    case KEY_BOTH:
        put(key, p->source, n);
        put(key, p->target, n);
        return true;
    case KEY_5TUPLE:
    default:
        break;
    }
    const unsigned char ports[4] = { (unsigned char)(p->source_port >> 8),
                                     (unsigned char)p->source_port,
                                     (unsigned char)(p->target_port >> 8),
                                     (unsigned char)p->target_port };
    put(key, p->source, n);
    put(key, p->target, n);
    put(key, &p->proto, 1);
    put(key, ports, 4);
    return p->ports != PORTS_CUT;
}

/* -------------------------------------------------------------------- text */

static const char *address_text(uint8_t version, const unsigned char *at,
                                char out[INET6_ADDRSTRLEN])
{
    return inet_ntop(version == 4 ? AF_INET : AF_INET6, at, out,
                     INET6_ADDRSTRLEN);
}

static const struct {
    uint8_t number;
    const char *name;
} protos[] = {
    { IP_ICMP, "icmp" },   { IP_TCP, "tcp" }, { IP_UDP, "udp" },
    { IP_ICMP6, "icmp6" }, { IP_GRE, "gre" }, { IP_SCTP, "sctp" },
};
#define NPROTOS (sizeof protos / sizeof protos[0])

static const char *proto_text(uint8_t proto, char out[8])
{
    for (size_t i = 0; i < NPROTOS; i++)
        if (protos[i].number == proto)
            return protos[i].name;
    snprintf(out, 8, "ip-%u", proto);
    return out;
}

bool proto_parse(const char *text, unsigned *proto)
{
    uint64_t number;
    for (size_t i = 0; i < NPROTOS; i++)
        if (strcmp(text, protos[i].name) == 0) {
            *proto = protos[i].number;
            return true;
        }
    if (strncmp(text, "ip-", 3) != 0 || !bly_parse_count(text + 3, &number) ||
        number > 255)
        return false;
    *proto = (unsigned)number;
    return true;
}

const char *key_text(struct key_choice choice, const struct flow_key *key,
                     char out[FLOW_TEXT])
{
    char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN], proto[8];
    const uint8_t version = key->at[0];
    const size_t n = address_bytes(version);
    const unsigned char *const first = key->at + 1, *const second = first + n;
    address_text(version, first, a);
    if (choice.form == KEY_PREFIX) {
        snprintf(out, FLOW_TEXT, "%s/%u", a, prefix_bits(choice, version));
        return out;
    }
    if (choice.form == KEY_SOURCE || choice.form == KEY_TARGET) {
        snprintf(out, FLOW_TEXT, "%s", a);
        return out;
    }
    address_text(version, second, b);
    if (choice.form == KEY_BOTH) {
        snprintf(out, FLOW_TEXT, "%s > %s", a, b);
        return out;
    }
    const unsigned char *const rest = second + n;
    const unsigned from = (unsigned)get_be(rest + 1, 2),
                   to = (unsigned)get_be(rest + 3, 2);
    const char *const six = version == 6 ? "[" : "", *const end = version == 6
                                                                      ? "]"
                                                                      : "";
    if (from || to)
        snprintf(out, FLOW_TEXT, "%s %s%s%s:%u > %s%s%s:%u",
                 proto_text(rest[0], proto), six, a, end, from, six, b, end,
                 to);
    else
        snprintf(out, FLOW_TEXT, "%s %s > %s", proto_text(rest[0], proto), a,
                 b);
    return out;
}
