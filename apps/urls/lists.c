/*
 * lists.c - lists of URLs and names, as people publish them
 *
 * A line tells its form by how it begins: "||" and "@@" are adblock's, an
 * address before names is a hosts file's, a type of record among the words is a
 * zone's. What a form has beside that (comments, headers, TTLs) is passed over.
 */
#include <arpa/inet.h>
#include <string.h>

#include "apps/urls/canonical.h"
#include "apps/urls/lists.h"
#include "apps/urls/rules.h"
#include "io/cutter.h"
#include "io/picker.h"
#include "io/digests.h"
#include "report/say.h"

void list_begin(struct list_reader *r)
{
    r->fresh = true;
    r->adblock = false;
    r->depth = 0;
    r->origin[0] = r->apex[0] = r->owner[0] = '\0';
}

void list_end(struct list_reader *r)
{
    block_free(&r->room);
}

/* ----------------------------------------------------------------- entries */

static bool entry_take(struct list_reader *r, const void *text, size_t n,
                       enum entry_kind kind)
{
    r->n.entries += kind != ENTRY_ALLOWED;
    r->n.exceptions += kind == ENTRY_ALLOWED;
    if (!r->take(r->ctx, (bly_bytes){ text, n }, kind))
        r->stopped = true;
    return true;
}

bool entry_name(struct list_reader *r, struct words w, enum entry_kind kind,
                const char **why)
{
    char room[NAME_ROOM];
    bool address;
    if (w.n > 2 && memcmp(w.at, "*.", 2) == 0)
        w = (struct words){ w.at + 2, w.n - 2 };
    else if (w.n > 1 && w.at[0] == '.')
        w = (struct words){ w.at + 1, w.n - 1 };
    const size_t n = name_canonical(w.at, w.n, room, &address, why);
    if (!n)
        return false;
    const size_t labels = name_labels(room, n);
    if (r->suffixes && !address && kind == ENTRY_LISTED &&
        labels <= suffix_labels(r->suffixes, room, n)) {
        *why = "a public suffix, which would cover everybody's names below it";
        return false;
    }
    r->n.single += labels == 1 && !address && kind == ENTRY_LISTED;
    return entry_take(r, room, n, kind);
}

bool entry_url(struct list_reader *r, struct words w, enum entry_kind kind,
               const char **why)
{
    struct url u;
    if (!block_fit(&r->room, URL_ROOM(w.n))) {
        r->stopped = true;
        return true;
    }
    *why = "a URL without a host";
    if (!url_canonical((bly_bytes){ w.at, w.n }, r->room.at, &u))
        return false;
    const bly_bytes e = url_expression(&u);
    char name[NAME_ROOM];
    bool address;
    if (!u.address &&
        !name_canonical(e.ptr, u.path - u.host, name, &address, why))
        return false;
    char *const text = r->room.at + u.host;
    for (size_t i = 0; i < e.len && r->folded; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] + 32);
    return entry_take(r, e.ptr, e.len, kind);
}

static bool entry_digest(struct list_reader *r, struct words w)
{
    unsigned char sum[SHA256_BYTES];
    if (w.n != 2 * SHA256_BYTES)
        return false;
    for (size_t i = 0; i < w.n; i++) {
        const char c = w.at[i];
        const int v = c >= '0' && c <= '9'                 ? c - '0'
                      : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                           : -1;
        if (v < 0)
            return false;
        sum[i / 2] = (unsigned char)(i % 2 ? sum[i / 2] | v : v << 4);
    }
    return entry_take(r, sum, sizeof sum, ENTRY_DIGEST);
}

/* ------------------------------------------------------------- hosts files */

/* Names that hosts files give to the machine itself. */
static bool is_own_name(struct words w)
{
    static const char *const own[] = {
        "localhost",      "localhost.localdomain", "local",
        "broadcasthost",  "ip6-localhost",         "ip6-loopback",
        "ip6-localnet",   "ip6-mcastprefix",       "ip6-allnodes",
        "ip6-allrouters", "ip6-allhosts",          "0.0.0.0",
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (words_are(w, own[i]))
            return true;
    return false;
}

/* 0.0.0.0, 127.0.0.1, :: and the like send nobody anywhere; others do. */
static bool is_address(struct words w, bool *nowhere)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char a[16] = { 0 };
    if (!w.n || w.n >= sizeof text)
        return false;
    memcpy(text, w.at, w.n);
    text[w.n] = '\0';
    if (inet_pton(AF_INET, text, a) == 1) {
        *nowhere = a[0] == 0 || a[0] == 127;
        return true;
    }
    if (inet_pton(AF_INET6, text, a) != 1)
        return false;
    *nowhere = true;
    for (size_t i = 0; i < 15; i++)
        *nowhere &= a[i] == 0;
    return true;
}

static bool hosts_line(struct list_reader *r, struct words line, bool nowhere,
                       const char **why)
{
    struct words w;
    bool good = true;
    words_next(&line, &w);
    if (!nowhere) {
        r->n.skipped++;
        return true;
    }
    while (words_next(&line, &w))
        if (is_own_name(w))
            continue;
        else if (entry_name(r, w, ENTRY_LISTED, why))
            r->n.hosts++;
        else
            good = false;
    return good;
}

/* ------------------------------------------------------------------- lines */

static bool begins(struct words w, const char *with)
{
    return w.n >= strlen(with) && memcmp(w.at, with, strlen(with)) == 0;
}

/* In an adblock list, what is not a rule for hosts is a rule for pages. */
static bool pattern_line(struct list_reader *r, struct words line)
{
    char room[NAME_ROOM];
    const char *why;
    bool address;
    const size_t n = name_canonical(line.at, line.n, room, &address, &why);
    if (n && (address || memchr(room, '.', n)))
        return r->domains ? entry_name(r, line, ENTRY_LISTED, &why)
                          : entry_url(r, line, ENTRY_LISTED, &why);
    r->n.skipped++;
    return true;
}

/* Does a line look like that of a hosts file? */
static bool hosts_form(struct words line)
{
    struct words first, second;
    bool nowhere;
    return words_next(&line, &first) && words_next(&line, &second) &&
           is_address(first, &nowhere);
}

static bool domain_line(struct list_reader *r, struct words line, bool indented,
                        const char **why)
{
    struct words rest = line, first, second;
    bool nowhere;
    for (size_t i = 1; i < rest.n; i++)
        if (rest.at[i] == '#' &&
            (rest.at[i - 1] == ' ' || rest.at[i - 1] == '\t'))
            rest.n = i;
    line = rest;
    words_next(&rest, &first);
    const bool one = !words_next(&rest, &second);
    if (!one && !indented && is_address(first, &nowhere))
        return hosts_line(r, line, nowhere, why);
    if (indented || !one)
        return rpz_line(r, line, indented, why);
    return entry_name(r, first, ENTRY_LISTED, why);
}

bool list_line(struct list_reader *r, const char *text, size_t n,
               const char **why)
{
    if (r->fresh && n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; /* a byte order mark */
        n -= 3;
    }
    r->fresh = false;
    const bool indented = n && (text[0] == ' ' || text[0] == '\t');
    const struct words line = words_trim((struct words){ text, n });
    *why = NULL;
    r->n.lines++;
    if (r->depth)
        return rpz_more(r, line);
    if (!line.n || line.at[0] == '#')
        return true;
    if (line.at[0] == '!' || begins(line, "[Adblock") ||
        begins(line, "[uBlock") || begins(line, "[Ad")) {
        r->adblock = true;
        return true;
    }
    if (begins(line, "||") || begins(line, "@@")) {
        r->adblock = true;
        return adblock_line(r, line);
    }
    if (r->digests && entry_digest(r, line))
        return true;
    if (r->adblock)
        return pattern_line(r, line);
    if (!r->domains) {
        r->n.hosts += hosts_form(line);
        return entry_url(r, line, ENTRY_LISTED, why);
    }
    if (line.at[0] == ';')
        return true;
    if (line.at[0] == '$')
        return rpz_directive(r, line, why);
    return domain_line(r, line, indented && r->owner[0], why);
}

/* ------------------------------------------------------------------- files */

/* The lines of a block; false if it was stopped. */
static bool list_block(struct list_reader *r, const struct input *in,
                       const struct block *b, bool tell)
{
    struct cutter cutter = cutter_start(b->at, b->len, in->separator);
    bly_bytes lines[256];
    uint64_t number = b->first;
    size_t n;
    while ((n = cutter_next(&cutter, lines, 256)) > 0)
        for (size_t i = 0; i < n; i++) {
            const char *why;
            number++;
            if (!list_line(r, lines[i].ptr, lines[i].len, &why)) {
                if (tell && r->n.bad < BAD_SHOWN)
                    fail("%s: line %llu: %s", input_name(in, b->file),
                         (unsigned long long)number, why);
                r->n.bad++;
            }
            if (r->stopped)
                return false;
        }
    return true;
}

bool list_read(struct list_reader *r, const char *const *names, size_t n,
               bool skip_bad, bool *bad)
{
    struct input in;
    struct block b = { 0 };
    const struct input_file *file = NULL;
    input_files(&in, names, n, false);
    in.numbered = true;
    in.normal.no_cr = true; /* list_line() does it */
    bool ok = true;
    while (ok && input_next(&in, &b)) {
        if (b.file != file || !file)
            list_begin(r);
        file = b.file;
        ok = list_block(r, &in, &b, !skip_bad);
    }
    if (!ok)
        fail("out of memory");
    else if (in.error[0])
        ok = fail("%s", in.error) == YES;
    *bad = ok && r->n.bad && !skip_bad;
    if (*bad)
        fail("%llu line%s; --skip-bad leaves %s out",
             (unsigned long long)r->n.bad,
             r->n.bad == 1 ? " is not an entry" : "s are not entries",
             r->n.bad == 1 ? "it" : "them");
    else if (ok && r->n.bad)
        warn("%llu line%s; left out", (unsigned long long)r->n.bad,
             r->n.bad == 1 ? " is not an entry" : "s are not entries");
    block_free(&b);
    input_close(&in);
    return ok;
}
