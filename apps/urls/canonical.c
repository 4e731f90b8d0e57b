/*
 * canonical.c - a URL in one form, and what a list may hold of it
 *
 * The form is the one that the protocol of browsers' lists prescribes [1]:
 *
 *     strip tabs, CR, LF; drop the fragment; decode %XX until nothing changes
 *     host    no credentials, no port, single dots and none at the ends, lower
 *             case, A-labels, IPv4 in any spelling as four decimal numbers
 *     path    /./ and /../ resolved, slashes joined
 *     encode  bytes up to 32, from 127 on, '#' and '%' as %XX
 *
 * What the bytes mean is decided as a browser does: the host ends at the first
 * slash or question mark and begins behind the last '@' before that, and both
 * are looked for before anything is decoded. Otherwise http://a%2F@b/ would be
 * a page of a, and whoever wants to hide a page of b would write that.
 *
 * Decoding to a fixed point is done in one pass. No two sequences %XX overlap,
 * so the order in which they are replaced does not matter; it is done as soon
 * as one is complete, and a replacement may complete another. A megabyte of
 * %252525... would take half a million passes otherwise.
 *
 * [1] https://developers.google.com/safe-browsing/v4/urls-hashing
 */
#define _GNU_SOURCE /* stpcpy */
#include <string.h>

#include "apps/urls/canonical.h"
#include "apps/urls/host_names.h"
#include "io/hex.h"

size_t percent_decode(char *text, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        text[at++] = text[i];
        /* A replacement makes a byte of three, and may be the last digit of
         * the next one. */
        while (at >= 3 && text[at - 3] == '%' && hex_value(text[at - 2]) >= 0 &&
               hex_value(text[at - 1]) >= 0) {
            const int byte =
                16 * hex_value(text[at - 2]) + hex_value(text[at - 1]);
            text[at - 3] = (char)byte;
            at -= 2;
        }
    }
    return at;
}

static size_t encode(const char *from, size_t n, char *to)
{
    char *const start = to;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)from[i];
        if (c > 32 && c < 127 && c != '#' && c != '%') {
            *to++ = (char)c;
            continue;
        }
        *to++ = '%';
        hex_put_upper(&c, 1, to);
        to += 2;
    }
    return (size_t)(to - start);
}

/* ------------------------------------------------------------ its parts */

/* How many bytes of text are a scheme and the slashes behind it. */
static size_t scheme_length(const char *text, size_t n, size_t *name)
{
    size_t i = 0;
    *name = 0;
    while (i < n && (((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z') ||
                     (i && text[i] && strchr("0123456789+-.", text[i]))))
        i++;
    if (i && n - i >= 3 && memcmp(text + i, "://", 3) == 0) {
        *name = i;
        i++;
    } else if (n >= 2 && memcmp(text, "//", 2) == 0) {
        i = 0;
    } else {
        return 0;
    }
    while (i < n && text[i] == '/')
        i++;
    return i;
}

static size_t host_end(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] != '/' && text[i] != '?')
        i++;
    return i;
}

/* The host without what stands before its last '@'. */
static size_t credentials(const char *text, size_t n)
{
    size_t from = 0;
    const size_t end = host_end(text, n);
    for (size_t i = 0; i < end; i++)
        if (text[i] == '@')
            from = i + 1;
    return from;
}

/* A host, decoded, into `to`: its canonical form, not encoded yet. */
static size_t host_canonical(char *host, size_t n, char *to, bool *address)
{
    /* What was decoded may be credentials as well: no host has an '@'. */
    const size_t hidden = credentials(host, n);
    host += hidden;
    n = name_dots(host, n - hidden);
    size_t len = n;
    /* Ports and dots at the end, in any order, so that nothing is left that
     * would be cut off the next time. */
    do {
        n = len;
        while (len && host[len - 1] >= '0' && host[len - 1] <= '9')
            len--;
        len = len && host[len - 1] == ':' ? len - 1 : n;
        while (len && host[len - 1] == '.')
            len--;
    } while (len != n);
    len = 0;
    for (size_t i = 0; i < n; i++) {
        if (host[i] == '.' && (!len || to[len - 1] == '.'))
            continue;
        to[len++] =
            host[i] >= 'A' && host[i] <= 'Z' ? (char)(host[i] + 32) : host[i];
    }
    while (len && to[len - 1] == '.')
        len--;
    size_t given;
    *address = address_canonical(to, len, to, &given);
    return *address ? given : name_to_ascii(to, len);
}

/* A path, which begins with a slash, resolved in place. */
static size_t path_resolve(char *path, size_t n)
{
    size_t len = 1;
    for (size_t i = 1; i <= n;) {
        size_t end = i;
        while (end < n && path[end] != '/')
            end++;
        const size_t part = end - i;
        if (part == 2 && path[i] == '.' && path[i + 1] == '.') {
            while (len > 1 && path[len - 2] != '/')
                len--;
            len -= len > 1;
        } else if (part && !(part == 1 && path[i] == '.')) {
            memmove(path + len, path + i, part);
            len += part;
            if (end < n)
                path[len++] = '/';
        }
        i = end + 1;
    }
    return len;
}

/* ---------------------------------------------------------------- all of it */

bool url_canonical(bly_bytes url, char *room, struct url *out)
{
    char *const work = room + URL_TEXT(url.len);
    char *const host = work + url.len;
    const char *from = url.ptr;
    size_t left = url.len, n = 0, scheme;
    for (; left && *from == ' '; left--)
        from++;
    while (left && from[left - 1] == ' ')
        left--;
    for (size_t i = 0; i < left && from[i] != '#'; i++)
        if (from[i] != '\t' && from[i] != '\r' && from[i] != '\n')
            work[n++] = from[i];

    char *rest = work + scheme_length(work, n, &scheme);
    rest += credentials(rest, n - (size_t)(rest - work));
    n = percent_decode(rest, n - (size_t)(rest - work));
    const size_t nhost = host_end(rest, n);
    const size_t given = host_canonical(rest, nhost, host, &out->address);
    if (!given)
        return false;

    size_t at = 0;
    for (; at < scheme; at++) /* "+-." and digits have the bit anyway */
        room[at] = (char)(work[at] | 32);
    if (!scheme)
        at = (size_t)(stpcpy(room, "http") - room);
    at = (size_t)(stpcpy(room + at, "://") - room);
    out->host = at;
    at += encode(host, given, room + at);
    out->path = at;

    char *const path = rest + nhost;
    const char *const mark = memchr(path, '?', n - nhost);
    const size_t npath = mark ? (size_t)(mark - path) : n - nhost;
    if (npath)
        at += encode(path, path_resolve(path, npath), room + at);
    else
        room[at++] = '/';
    out->query = at;
    if (mark)
        at += encode(mark, n - nhost - npath, room + at);
    out->text = room;
    out->len = at;
    return true;
}

size_t url_expressions(const struct url *u, bly_bytes out[URL_EXPRESSIONS])
{
    size_t hosts[URL_HOSTS] = { u->host }, ends[URL_PATHS] = { u->len };
    size_t nhosts = 1, nends = 1, n = 0;

    size_t ncomponents = 1, component = 0;
    for (size_t i = u->host; i < u->path; i++)
        ncomponents += u->text[i] == '.';
    /* From the last five components on, and at least two of them. */
    for (size_t i = u->host; i < u->path && !u->address; i++)
        if (u->text[i] == '.' && ++component + 5 >= ncomponents &&
            component + 2 <= ncomponents)
            hosts[nhosts++] = i + 1;

    if (u->query < u->len)
        ends[nends++] = u->query;
    for (size_t i = u->path, slashes = 0; i < u->query && slashes < 4; i++)
        if (u->text[i] == '/') {
            slashes++;
            if (i + 1 < u->query)
                ends[nends++] = i + 1;
        }
    for (size_t h = 0; h < nhosts; h++)
        for (size_t p = 0; p < nends; p++)
            out[n++] = (bly_bytes){ u->text + hosts[h], ends[p] - hosts[h] };
    return n;
}
