/*
 * squid_url.c - the canonical form of a URL in Squid
 *
 *     HTTP://User@Example.COM.:080/A?q  ->  http://example.com/A?q
 *     \__/   \__/ \__________/ \_/\__/
 *     scheme user host         port path and all that follows
 *
 * Scheme and host become lower case, and dots behind the host are dropped. A
 * host that is an address is written as inet_ntop() does: 127.1 is 127.0.0.1,
 * [0:0::1] is [::1], and an IPv4 address in IPv6 is IPv4. The port is a
 * number, and none where it is the scheme's own. User names are kept only
 * where the scheme is none of the web's. A path begins with a slash, and
 * beyond that is kept as it is: no percent, dot or fragment is touched. Blanks
 * go wherever they stand. All of it was tried on Squid 5.7.
 */
#define _DEFAULT_SOURCE /* inet_aton */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "foreign/squid.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static size_t without_blanks(const char *url, size_t n, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        if (!memchr(" \t\n\v\f\r", url[i], 6))
            out[len++] = url[i];
    return len;
}

/* The port that a scheme has where none is written; 0: none. */
static unsigned own_port(const char *scheme, size_t n)
{
    static const struct {
        const char *scheme;
        unsigned port;
    } table[] = { { "http", 80 },   { "https", 443 }, { "ftp", 21 },
                  { "gopher", 70 }, { "wais", 210 },  { "whois", 43 } };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].scheme) == n &&
            memcmp(table[i].scheme, scheme, n) == 0)
            return table[i].port;
    return 0;
}

/* A port as atoi() reads it; 0 where Squid would refuse it. */
static unsigned port_read(const char *text, size_t n)
{
    unsigned port = 0;
    for (size_t i = n && text[0] == '+'; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            break;
        port = port * 10 + (unsigned)(text[i] - '0');
        if (port > 65535)
            return 0;
    }
    return port;
}

static bool is_zero(const void *bytes, size_t n)
{
    const unsigned char *const p = bytes;
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* The one way to write a host that is an address; 0 where it is a name. The
 * address of all zeros counts as a name. */
static size_t address_write(const char *host, size_t n, bool bracketed,
                            char out[INET6_ADDRSTRLEN + 2])
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    char text[INET6_ADDRSTRLEN], shown[INET6_ADDRSTRLEN];
    struct in_addr four;
    struct in6_addr six;
    if (n >= sizeof text || memchr(host, 0, n))
        return 0;
    memcpy(text, host, n);
    text[n] = '\0';
    if (bracketed && inet_pton(AF_INET6, text, &six) == 1) {
        if (is_zero(&six, sizeof six))
            return 0;
        if (memcmp(&six, mapped, sizeof mapped) != 0) {
            inet_ntop(AF_INET6, &six, shown, sizeof shown);
            return (size_t)snprintf(out, INET6_ADDRSTRLEN + 2, "[%s]", shown);
        }
        memcpy(&four, (const char *)&six + sizeof mapped, sizeof four);
    } else if (bracketed || !inet_aton(text, &four)) {
        return 0;
    }
    if (is_zero(&four, sizeof four))
        return 0;
    inet_ntop(AF_INET, &four, shown, sizeof shown);
    return (size_t)snprintf(out, INET6_ADDRSTRLEN + 2, "%s", shown);
}

/* Host and port of an authority: where each lies in text. */
struct place {
    size_t host, nhost; /* without brackets */
    bool bracketed;
    size_t port, nport; /* behind the colon */
    bool has_port;
};

static bool place_read(const char *text, size_t n, struct place *out)
{
    *out = (struct place){ .nhost = n };
    if (n && text[0] == '[') {
        const char *const end = memchr(text, ']', n);
        if (!end)
            return false;
        out->bracketed = true;
        out->host = 1;
        out->nhost = (size_t)(end - text) - 1;
        const size_t after = (size_t)(end - text) + 1;
        if (after < n && text[after] != ':')
            return false;
        out->has_port = after < n;
        out->port = after + 1;
    } else {
        const char *const colon = memchr(text, ':', n);
        if (colon) {
            out->has_port = true;
            out->nhost = (size_t)(colon - text);
            out->port = out->nhost + 1;
            if (memchr(colon + 1, ':', n - out->port))
                return false;
        }
        while (out->nhost && text[out->nhost - 1] == '.')
            out->nhost--;
    }
    out->nport = out->has_port ? n - out->port : 0;
    return out->nhost > 0;
}

size_t bly_squid_url(const char *url, size_t n, char *out)
{
    /* All is read from the end of out, and written to its beginning, which
     * never overtakes. */
    char *const in = out + BLY_SQUID_URL_MORE;
    const size_t len = without_blanks(url, n, in);
    size_t nscheme = 0, at = 0;
    while (nscheme < len && in[nscheme] != ':' && in[nscheme] != '/')
        nscheme++;
    if (nscheme == 0 || len - nscheme < 4 ||
        memcmp(in + nscheme, "://", 3) != 0) {
        memmove(out, in, len);
        return len;
    }
    const size_t authority = nscheme + 3;
    size_t path = authority, first = authority;
    while (path < len && !memchr("/?#", in[path], 3)) {
        if (in[path++] == '@')
            first = path;
    }
    struct place p;
    char scheme[8] = "";
    for (size_t i = 0; i < nscheme && i < sizeof scheme; i++)
        scheme[i] = lower(in[i]);
    const unsigned own =
        nscheme <= sizeof scheme ? own_port(scheme, nscheme) : 0;
    const bool parses = place_read(in + first, path - first, &p);
    unsigned port = 0;
    if (parses && p.has_port)
        port = port_read(in + first + p.port, p.nport);
    if (!parses || (p.has_port && port == 0)) {
        memmove(out, in, len);
        return len;
    }

    for (; at < nscheme; at++)
        out[at] = lower(in[at]);
    memcpy(out + at, "://", 3);
    at += 3;
    if (own != 80 && own != 443) {
        memmove(out + at, in + authority, first - authority);
        at += first - authority;
    }
    char address[INET6_ADDRSTRLEN + 2];
    const size_t naddress =
        address_write(in + first + p.host, p.nhost, p.bracketed, address);
    if (naddress) {
        memcpy(out + at, address, naddress);
        at += naddress;
    } else {
        if (p.bracketed)
            out[at++] = '[';
        for (size_t i = 0; i < p.nhost; i++)
            out[at++] = lower(in[first + p.host + i]);
        if (p.bracketed)
            out[at++] = ']';
    }
    if (port && port != own)
        at += (size_t)snprintf(out + at, 8, ":%u", port);
    if (path == len || in[path] != '/')
        out[at++] = '/';
    memmove(out + at, in + path, len - path);
    return at + len - path;
}
