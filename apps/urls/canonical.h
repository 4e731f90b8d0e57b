/*
 * canonical.h - a URL in one form, and what a list may hold of it
 *
 * Browsers' lists hold hashes of expressions: a suffix of the host and a prefix
 * of the path of a URL in canonical form. Asking for a URL asks for all of its
 * expressions, so that an entry covers whatever lies below it.
 *
 *     http://a.b.c/1/2.html?param=1
 *            `---' host    `------- query
 *                 `------' path
 *     a.b.c/1/2.html?param=1   a.b.c/1/2.html   a.b.c/   a.b.c/1/
 *       b.c/1/2.html?param=1     b.c/1/2.html     b.c/     b.c/1/
 *
 * Every expression is a part of the canonical text, which is therefore the only
 * thing that is ever written.
 */
#ifndef BLY_URLS_CANONICAL_H
#define BLY_URLS_CANONICAL_H

#include "io/input.h"

/* A URL in canonical form; places are offsets into text. */
struct url {
    const char *text; /* scheme://host/path?query */
    size_t len;
    size_t host, path; /* where these begin */
    size_t query;      /* the question mark; len: there is none */
    bool address;      /* the host is one, and has no suffixes */
};

/* Bytes that the canonical form of n bytes may take, where each may be escaped
 * and a label of one character becomes eight; and what it takes to make it. */
#define URL_TEXT(n) (4 * (size_t)(n) + 64)
#define URL_ROOM(n) (2 * URL_TEXT(n) + (size_t)(n))

/* Bring any bytes into canonical form, in `room` of URL_ROOM(url.len) bytes.
 * False if they have no host. Takes time proportional to their number. */
bool url_canonical(bly_bytes url, char *room, struct url *out);

/* The URL as an expression of its own: its text without the scheme. */
static inline bly_bytes url_expression(const struct url *u)
{
    return (bly_bytes){ u->text + u->host, u->len - u->host };
}

/* All expressions of u, the one above first; how many there are. */
#define URL_HOSTS 5
#define URL_PATHS 6
#define URL_EXPRESSIONS (URL_HOSTS * URL_PATHS)
size_t url_expressions(const struct url *u, bly_bytes out[URL_EXPRESSIONS]);

/* Replace all %XX of n bytes, also those that the replacement makes; how many
 * bytes are left. */
size_t percent_decode(char *text, size_t n);

#endif
