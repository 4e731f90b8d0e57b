/*
 * passwords_serve.c - bloomery passwords serve: the range protocol from a local
 * mirror
 *
 *     GET /range/5BAA6[?mode=ntlm]        the first five digits of a hash
 *     1E4C9B93F3F0682250B6CF8331B7EE68FD8:37359195
 *     ...
 *
 * So a client reveals only which of a million ranges its hash is in, and gets
 * some 800 other hashes along with it. How long the answer is would tell an
 * observer which range was asked: with the header Add-Padding, made-up lines
 * with a count of 0 bring every answer to 800 to 1,000 lines, in the order of
 * the real ones.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/passwords/mirror.h"
#include "io/hex.h"
#include "wire/http.h"
#include "report/say.h"

#define PADDED_LEAST 800
#define PADDED_MOST 1000
#define LINE_ROOM 64 /* of an answer: 35 + 1 + 20 + 2 */

struct range_server {
    const struct passwords_args *args;
    struct mirror mirrors[NHASHES];
    bool has[NHASHES];
    atomic_ullong nranges;
};

/* ------------------------------------------------------------------ answers */

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void make_up(char line[LINE_ROOM], size_t nsuffix)
{
    unsigned char random[LINE_ROOM / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        memset(random, 0, sizeof random);
    hex_put_upper(random, LINE_ROOM / 2, line);
    memcpy(line + nsuffix, ":0", 3);
}

static uint32_t padded_lines(void)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0)
        random = 0;
    return PADDED_LEAST + random % (PADDED_MOST - PADDED_LEAST + 1);
}

/* The lines of a range as they are sent, in memory of its own; NULL: there is
 * none left. */
static char *range_text(const struct mirror_range *r, size_t nsuffix, bool pad,
                        size_t *len)
{
    size_t n = 0, room = pad ? PADDED_MOST : 0;
    for (size_t i = 0; i < r->len; i++)
        room += r->text[i] == '\n';
    char(*const lines)[LINE_ROOM] = malloc((room + 1) * sizeof *lines);
    if (!lines)
        return NULL;
    bly_bytes suffix;
    uint64_t count;
    for (size_t at = 0; range_line(r, &at, &suffix, &count);) {
        if (suffix.len != nsuffix || count == 0)
            continue;
        snprintf(lines[n++], LINE_ROOM, "%.*s:%llu", (int)suffix.len,
                 (const char *)suffix.ptr, (unsigned long long)count);
    }
    for (const size_t want = pad ? padded_lines() : 0; n < want;)
        make_up(lines[n++], nsuffix);
    qsort(lines, n, sizeof *lines, by_text);
    char *const out = malloc(n * (LINE_ROOM + 2) + 1);
    *len = 0;
    for (size_t i = 0; i < n && out; i++)
        *len += (size_t)sprintf(out + *len, "%s%s", i ? "\r\n" : "", lines[i]);
    free(lines);
    return out;
}

/* The digits of /range/ABCDE, in upper case. */
static bool asked_prefix(const char *url, char prefix[PREFIX_DIGITS])
{
    static const char path[] = "/range/";
    const size_t n = sizeof path - 1;
    return strncmp(url, path, n) == 0 && strlen(url) == n + PREFIX_DIGITS &&
           range_prefix(url + n, prefix);
}

static bool asks_for(struct MHD_Connection *to, enum MHD_ValueKind where,
                     const char *name, const char *value)
{
    const char *const given = MHD_lookup_connection_value(to, where, name);
    return given && strcasecmp(given, value) == 0;
}

static enum MHD_Result range_reply(void *ctx, struct MHD_Connection *to,
                                   const char *url)
{
    struct range_server *const s = ctx;
    const unsigned which = asks_for(to, MHD_GET_ARGUMENT_KIND, "mode", "ntlm")
                               ? HASH_NTLM
                               : HASH_SHA1;
    char prefix[PREFIX_DIGITS], why[256];
    if (strncmp(url, "/range/", 7) != 0)
        return http_say(to, 404, "This server answers /range/ABCDE.\n");
    if (!asked_prefix(url, prefix))
        return http_say(to, 400, "The hash prefix was not in a valid format");
    if (!s->has[which])
        return http_say(to, 404, "There is no list of such hashes here.\n");
    struct mirror_range r;
    if (!mirror_range(&s->mirrors[which], prefix, &r, why, sizeof why)) {
        warn("%s: %s", s->mirrors[which].path, why);
        return http_say(to, 500, "The range cannot be read.\n");
    }
    const bool pad = asks_for(to, MHD_HEADER_KIND, "Add-Padding", "true");
    size_t len = 0;
    char *const text = range_text(
        &r, 2 * password_hashes[which].nbytes - PREFIX_DIGITS, pad, &len);
    free(r.text);
    struct MHD_Response *const answer =
        text ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE)
             : NULL;
    if (!answer) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(answer, "Content-Type", "text/plain");
    s->nranges++;
    return http_send(to, 200, answer);
}

/* ---------------------------------------------------------------- beginning */

static void range_started(void *ctx, const char *base, uint64_t port)
{
    const struct range_server *const s = ctx;
    char url[256];
    snprintf(url, sizeof url, "%s/range/", base);
    if (!quiet)
        passwords_tell_serving(s->args, s->args->mirror, url, port);
}

static bool open_mirror(struct range_server *s, const char *path,
                        unsigned which)
{
    s->has[which] = path && mirror_open(&s->mirrors[which], path, which);
    return s->has[which] || !path;
}

int passwords_serve(const struct passwords_args *args,
                    const struct list *operands)
{
    struct passwords_args own = *args;
    own.mirror = operands->at[0];
    struct range_server s = { .args = &own,
                              .mirrors = { { .fd = -1 }, { .fd = -1 } } };
    struct http service = {
        .listen = args->listen ? args->listen : "127.0.0.1:8080",
        .limits = { 200, 32, 10, 60 },
        .answer = range_reply,
        .started = range_started,
        .ctx = &s,
        .fd = -1,
    };
    const unsigned which = args->list;
    int status = TROUBLE;
    if (operands->n > 1)
        fail("one mirror is served, and with --ntlm-mirror one of NTLM hashes "
             "beside it");
    else if (which == HASH_NTLM && args->ntlm_mirror)
        fail("--list ntlm and --ntlm-mirror exclude each other: both say where "
             "NTLM hashes are");
    else if (which != NHASHES && open_mirror(&s, own.mirror, which) &&
             open_mirror(&s, args->ntlm_mirror, HASH_NTLM) &&
             http_open(&service)) {
        status = http_run(&service);
        if (status == YES && !quiet)
            passwords_tell_served(args, service.nasked, s.nranges);
    }
    http_close(&service);
    for (unsigned i = 0; i < NHASHES; i++)
        mirror_close(&s.mirrors[i]);
    return status;
}
