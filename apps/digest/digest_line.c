/*
 * digest_line.c - a line of access.log, or of a list
 *
 * Squid's own form:
 *
 *     1794781876.527  98 10.0.0.7 TCP_MISS/200 1234 GET http://a.test/ - ...
 *     time       elapsed client   result/status bytes method URL
 *
 * and that of web servers (logformat common or combined):
 *
 *     10.0.0.7 - - [15/Nov/2026:22:31:16 +0000] "GET http://a.test/ HTTP/1.1"
 *         200 1234 ... TCP_MISS:HIER_DIRECT
 *
 * Whether a line means that the proxy has the object now is a guess by its
 * result: a hit or a revalidation had it, a miss fetched it, and 200, 203, 300,
 * 301 and 410 are kept unless the answer forbids it, which the log does not
 * tell. So a digest made of a log may name too much, and a neighbour that
 * believes it asks once in vain.
 */
#include <string.h>

#include "apps/digest/digest.h"

/* A line being cut into words. */
struct words {
    const char *at, *end;
};

static bool next_word(struct words *w, bly_bytes *out)
{
    while (w->at < w->end && (*w->at == ' ' || *w->at == '\t'))
        w->at++;
    const char *const from = w->at;
    while (w->at < w->end && *w->at != ' ' && *w->at != '\t')
        w->at++;
    *out = (bly_bytes){ from, (size_t)(w->at - from) };
    return out->len > 0;
}

static char first(bly_bytes b)
{
    return b.len ? *(const char *)b.ptr : '\0';
}

static bool is_word(bly_bytes b, const char *word)
{
    return b.len == strlen(word) && memcmp(b.ptr, word, b.len) == 0;
}

static bool has_part(bly_bytes b, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= b.len; i++)
        if (memcmp((const char *)b.ptr + i, part, n) == 0)
            return true;
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits and at most one dot among them: a time in seconds. */
static bool is_time(bly_bytes b)
{
    const char *const p = b.ptr;
    size_t ndots = 0;
    for (size_t i = 0; i < b.len; i++) {
        ndots += p[i] == '.';
        if (p[i] != '.' && !is_digit(p[i]))
            return false;
    }
    return b.len > 0 && is_digit(p[0]) && ndots <= 1;
}

/* Capitals, as methods are. */
static bool is_method(bly_bytes b)
{
    const char *const p = b.ptr;
    for (size_t i = 0; i < b.len; i++)
        if ((p[i] < 'A' || p[i] > 'Z') && p[i] != '_' && p[i] != '-')
            return false;
    return b.len > 0 && p[0] >= 'A' && p[0] <= 'Z';
}

static bool is_url(bly_bytes b)
{
    const char *const p = b.ptr;
    const char *const colon = memchr(p, ':', b.len);
    return colon && colon > p && (size_t)(p + b.len - colon) > 3 &&
           memcmp(colon, "://", 3) == 0;
}

static bool is_md5(bly_bytes b)
{
    const char *const p = b.ptr;
    for (size_t i = 0; i < b.len; i++)
        if (!is_digit(p[i]) && !((p[i] | 32) >= 'a' && (p[i] | 32) <= 'f'))
            return false;
    return b.len == 32;
}

/* Is what was answered with this result and status in the cache? */
static bool is_kept_answer(bly_bytes result, bly_bytes status)
{
    static const char *const keeps[] = { "200", "203", "300", "301", "410" };
    if (has_part(result, "DENIED") || has_part(result, "ABORTED") ||
        has_part(result, "TUNNEL") || has_part(result, "NEGATIVE"))
        return false;
    if (has_part(result, "HIT") || has_part(result, "UNMODIFIED"))
        return true;
    if (!has_part(result, "MISS") && !has_part(result, "REFRESH"))
        return false;
    for (size_t i = 0; i < sizeof keeps / sizeof *keeps; i++)
        if (is_word(status, keeps[i]))
            return true;
    return false;
}

/* The key of a request: as it stands where both words stand side by side. */
static void key_set(struct digest_line *l, bly_bytes method, char *room)
{
    const char *const m = method.ptr, *const u = l->url.ptr;
    l->is_asked =
        (is_word(method, "GET") || is_word(method, "HEAD")) && is_url(l->url);
    l->is_cut = l->url.len && u[l->url.len - 1] == '?';
    if (u == m + method.len + 1) {
        l->key = (bly_bytes){ m, method.len + 1 + l->url.len };
        return;
    }
    memcpy(room, m, method.len);
    room[method.len] = ' ';
    memcpy(room + method.len + 1, u, l->url.len);
    l->key = (bly_bytes){ room, method.len + 1 + l->url.len };
}

static bool read_squid_log(struct words w, char *room, struct digest_line *out)
{
    bly_bytes time, elapsed, result, size, method, status;
    if (!next_word(&w, &time) || !is_time(time) || !next_word(&w, &elapsed) ||
        !next_word(&w, &out->client) || !next_word(&w, &result) ||
        !next_word(&w, &size) || !next_word(&w, &method) ||
        !next_word(&w, &out->url))
        return false;
    const char *const slash = memchr(result.ptr, '/', result.len);
    if (!slash)
        return false;
    const size_t n = (size_t)(slash - (const char *)result.ptr);
    status = (bly_bytes){ slash + 1, result.len - n - 1 };
    result.len = n;
    key_set(out, method, room);
    out->is_kept = out->is_asked && is_kept_answer(result, status);
    return true;
}

static bool read_web_log(struct words w, char *room, struct digest_line *out)
{
    bly_bytes method, status, word, result = { "", 0 };
    if (!next_word(&w, &out->client))
        return false;
    const char *const quote = memchr(w.at, '"', (size_t)(w.end - w.at));
    if (!quote)
        return false;
    const char *const close =
        memchr(quote + 1, '"', (size_t)(w.end - quote - 1));
    if (!close || !memchr(w.at, '[', (size_t)(quote - w.at)))
        return false;
    struct words request = { quote + 1, close };
    w.at = close + 1;
    if (!next_word(&request, &method) || !is_method(method) ||
        !next_word(&request, &out->url) || !next_word(&w, &status))
        return false;
    while (next_word(&w, &word)) /* the result, with its colon, is the last */
        result = word;
    const char *const colon = memchr(result.ptr, ':', result.len);
    if (colon)
        result.len = (size_t)(colon - (const char *)result.ptr);
    key_set(out, method, room);
    out->is_kept = out->is_asked && is_kept_answer(result, status);
    return true;
}

static bool read_list(struct words w, char *room, struct digest_line *out)
{
    bly_bytes word, url, more;
    if (!next_word(&w, &word))
        return false;
    if (is_method(word) && next_word(&w, &url)) {
        out->url = url;
        key_set(out, word, room);
    } else if (is_url(word) || is_md5(word)) {
        out->url = out->key = word;
    } else {
        return false;
    }
    out->is_asked = out->is_kept = true;
    return !next_word(&w, &more);
}

void digest_line_read(const char *line, size_t n, char *room,
                      struct digest_line *out)
{
    const struct digest_line none = { .form = DIGEST_UNKNOWN };
    bly_bytes word;
    if (n && line[n - 1] == '\r')
        n--;
    const struct words all = { line, line + n };
    struct words w = all;
    *out = none;
    if (!next_word(&w, &word) || first(word) == '#') {
        out->form = DIGEST_EMPTY;
    } else if (read_squid_log(all, room, out)) {
        out->form = DIGEST_LOGGED;
    } else if (*out = none, read_list(all, room, out)) {
        out->form = DIGEST_URL;
        out->client = (bly_bytes){ 0 };
    } else if (*out = none, read_web_log(all, room, out)) {
        out->form = DIGEST_LOGGED;
    } else {
        *out = none;
    }
}
