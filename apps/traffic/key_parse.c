/*
 * key_parse.c - a flow from its text: what key_text() wrote
 *
 * The text is cut into words at blanks:
 *
 *     5tuple   tcp 10.0.0.1:80 > 10.0.0.2:4711   icmp 10.0.0.1 > 10.0.0.2
 *              udp [fe80::1]:53 > [fe80::2]:4711
 *     srcdst   10.0.0.1 > 10.0.0.2
 *     others   10.0.0.1   10.0.0.0/24
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <bloomery.h>

#include "apps/traffic/packet.h"

#define MOST_WORDS 4

struct key_words {
    char text[FLOW_TEXT];
    char *at[MOST_WORDS];
    size_t n;
};

static bool key_words(const char *text, size_t n, struct key_words *w)
{
    w->n = 0;
    if (n >= sizeof w->text || memchr(text, '\0', n))
        return false;
    memcpy(w->text, text, n);
    w->text[n] = '\0';
    char *rest = w->text;
    for (char *word; (word = strtok_r(rest, " \t\r", &rest));) {
        if (w->n == MOST_WORDS)
            return false;
        w->at[w->n++] = word;
    }
    return true;
}

static bool number_parse(const char *text, unsigned most, unsigned *out)
{
    unsigned n = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        n = n * 10 + (unsigned)(*text - '0');
        if (n > most)
            return false;
    }
    *out = n;
    return true;
}

/* Appends an address; *version is 0 before the first one. */
static bool address_put(const char *text, unsigned *version,
                        struct flow_key *key)
{
    unsigned char address[16];
    const unsigned is = inet_pton(AF_INET, text, address) == 1    ? 4
                        : inet_pton(AF_INET6, text, address) == 1 ? 6
                                                                  : 0;
    if (!is || (*version && *version != is))
        return false;
    if (!*version)
        key->at[key->len++] = (unsigned char)is;
    *version = is;
    const size_t n = is == 4 ? 4 : 16;
    memcpy(key->at + key->len, address, n);
    key->len = (uint8_t)(key->len + n);
    return true;
}

/* "10.0.0.1:80", "[fe80::1]:80"; without a port: the address alone. */
static bool end_put(char *text, unsigned *version, struct flow_key *key,
                    unsigned *port)
{
    char *const bracket = *text == '[' ? strchr(text, ']') : NULL;
    char *colon = bracket ? bracket + 1 : strchr(text, ':');
    *port = 0;
    if (!bracket && colon && strchr(colon + 1, ':'))
        colon = NULL; /* colons of IPv6 */
    if (bracket) {
        *bracket = '\0';
        text++;
        if (*colon != ':')
            return false;
    }
    if (colon) {
        *colon = '\0';
        if (!number_parse(colon + 1, 65535, port))
            return false;
    }
    return address_put(text, version, key);
}

static bool tuple_parse(struct key_words *w, struct flow_key *key)
{
    unsigned version = 0, from, to, proto;
    if (w->n != 4 || strcmp(w->at[2], ">") != 0 ||
        !proto_parse(w->at[0], &proto) ||
        !end_put(w->at[1], &version, key, &from) ||
        !end_put(w->at[3], &version, key, &to))
        return false;
    const unsigned char rest[] = {
        (unsigned char)proto, (unsigned char)(from >> 8), (unsigned char)from,
        (unsigned char)(to >> 8), (unsigned char)to
    };
    memcpy(key->at + key->len, rest, sizeof rest);
    key->len = (uint8_t)(key->len + sizeof rest);
    return true;
}

static bool prefix_parse(struct key_choice choice, char *text,
                         struct flow_key *key)
{
    unsigned version = 0, bits;
    char *const slash = strchr(text, '/');
    if (!slash)
        return false;
    *slash = '\0';
    if (!address_put(text, &version, key) ||
        !number_parse(slash + 1, version == 4 ? 32 : 128, &bits) ||
        bits != prefix_bits(choice, (uint8_t)version))
        return false;
    address_cut(key->at + 1, version == 4 ? 4 : 16, bits);
    return true;
}

bool key_parse(struct key_choice choice, const char *text, size_t n,
               struct flow_key *key)
{
    struct key_words w;
    unsigned version = 0;
    *key = (struct flow_key){ 0 };
    if (!key_words(text, n, &w))
        return false;
    switch (choice.form) {
    case KEY_5TUPLE:
        return tuple_parse(&w, key);
    case KEY_BOTH:
        return w.n == 3 && strcmp(w.at[1], ">") == 0 &&
               address_put(w.at[0], &version, key) &&
               address_put(w.at[2], &version, key);
    case KEY_PREFIX:
        return w.n == 1 && prefix_parse(choice, w.at[0], key);
    case KEY_SOURCE:
    case KEY_TARGET:
    default:
        return w.n == 1 && address_put(w.at[0], &version, key);
    }
}
