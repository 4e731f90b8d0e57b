/*
 * fetch.c - the digest of a proxy, over HTTP
 *
 * One GET by libcurl, directly, whatever proxy the environment names; redirects
 * are not followed and nothing is unpacked. What arrives is bounded: headers by
 * HEADER_MOST, the body by --max-size and, once the control block is there, by
 * the size that it says, and all of it by --timeout. Memory grows with what has
 * arrived, not with what was announced.
 */
#include <stdlib.h>
#include <strings.h>

#include <curl/curl.h>

#include "apps/digest/jobs.h"
#include "base/byte_order.h"
#include "io/paths.h"
#include "report/say.h"

char *digest_url(const char *text)
{
    const char *const scheme = strstr(text, "://");
    const char *const rest = scheme ? scheme + 3 : text;
    const char *const slash = strchr(rest, '/');
    const bool has_path = slash && slash[1];
    const char *const bracket = strrchr(rest, ']');
    const bool has_port = strchr(bracket ? bracket : rest, ':') != NULL;
    const int nrest =
        (int)(has_path || !slash ? strlen(rest) : (size_t)(slash - rest));
    const int nscheme = scheme ? (int)(rest - text) : 0;
    const size_t n = strlen(text) + sizeof "http://:3128" + sizeof DIGEST_PATH;
    char *const url = malloc(n);
    if (url)
        snprintf(url, n, "%.*s%.*s%s%s", scheme ? nscheme : 7,
                 scheme ? text : "http://", nrest, rest,
                 scheme || has_path || has_port ? "" : ":3128",
                 has_path ? "" : DIGEST_PATH);
    return url;
}

#define HEADER_MOST (64 * 1024) /* of all answers, interim ones too */

struct fetch {
    struct block body;
    size_t nheaders; /* bytes */
    uint64_t most;   /* bytes that may come */
    int64_t expires;
    const atomic_bool *stop;
    const char *why; /* it was ended here; NULL: libcurl knows */
};

static size_t fetch_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct fetch *const f = ctx;
    n *= size;
    if (f->body.len + n > f->most)
        f->why = "it is larger than --max-size";
    else if (!block_put(&f->body, bytes, n))
        f->why = "out of memory";
    else if (f->body.len > DIGEST_HEADER &&
             f->body.len - DIGEST_HEADER >
                 get_be((const unsigned char *)f->body.at + 16, 4))
        f->why = "it is longer than its control block says";
    return f->why ? 0 : n;
}

/* The value of a header line if it has this name (with its colon), without the
 * line's end; false if it has another, or is too long to be right. */
static bool header_value(const char *line, size_t n, const char *name,
                         char *value, size_t room)
{
    const size_t nname = strlen(name);
    if (n <= nname || n - nname >= room || strncasecmp(line, name, nname) != 0)
        return false;
    memcpy(value, line + nname, n - nname);
    value[n - nname] = '\0';
    value[strcspn(value, "\r\n")] = '\0';
    return true;
}

static size_t fetch_header(char *line, size_t size, size_t n, void *ctx)
{
    struct fetch *const f = ctx;
    char value[64];
    n *= size;
    f->nheaders += n;
    if (f->nheaders > HEADER_MOST) {
        f->why = "its headers do not end";
        return 0;
    }
    if (header_value(line, n, "Expires:", value, sizeof value)) {
        const time_t when = curl_getdate(value, NULL);
        /* What is no date, "0" above all, has expired (RFC 9111, 5.3). */
        f->expires = when > 0 ? (int64_t)when : -1;
    } else if (header_value(line, n, "Content-Encoding:", value,
                            sizeof value) &&
               !strstr(value, "identity")) {
        f->why = "it arrived compressed, which was not requested";
        return 0;
    }
    return n;
}

static int fetch_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c,
                          curl_off_t d)
{
    const struct fetch *const f = ctx;
    (void)a, (void)b, (void)c, (void)d;
    return f->stop && *f->stop;
}

static bool fetch_set(CURL *curl, const struct digest_args *args,
                      const char *url, struct fetch *f, char *error)
{
    /* What Content-Length announces: nothing of it need come. */
    const curl_off_t most =
        f->most < INT64_MAX ? (curl_off_t)f->most : INT64_MAX;
    error[0] = '\0';
    return !curl_easy_setopt(curl, CURLOPT_URL, url) &&
           !curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error) &&
           !curl_easy_setopt(curl, CURLOPT_PROXY, "") &&
           !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
           !curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) &&
           !curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, most) &&
           !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
           !curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L) &&
           !curl_easy_setopt(curl, CURLOPT_FILETIME, 1L) &&
           !curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)args->timeout) &&
           !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L) &&
           !curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) &&
           !curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, fetch_progress) &&
           !curl_easy_setopt(curl, CURLOPT_XFERINFODATA, f) &&
           !curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, fetch_header) &&
           !curl_easy_setopt(curl, CURLOPT_HEADERDATA, f) &&
           !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, fetch_body) &&
           !curl_easy_setopt(curl, CURLOPT_WRITEDATA, f);
}

bool digest_fetch(const struct digest_args *args, const char *url,
                  const atomic_bool *stop, struct digest_copy *out, char *why,
                  size_t room)
{
    struct fetch f = { .most = args->max_size, .stop = stop };
    char error[CURL_ERROR_SIZE];
    CURL *const curl = curl_easy_init();
    struct curl_slist *const headers =
        curl_slist_append(NULL, "Accept: application/cache-digest");
    bool done = false;
    long modified = -1;
    if (!curl || !headers || !fetch_set(curl, args, url, &f, error) ||
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers)) {
        snprintf(why, room, "libcurl cannot be used");
    } else {
        const CURLcode code = curl_easy_perform(curl);
        long status = 0;
        curl_easy_getinfo(curl, CURLINFO_FILETIME, &modified);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        done = code == CURLE_OK && status == 200;
        /* A callback that stopped the transfer knows better than libcurl
         * why. */
        if (f.why)
            snprintf(why, room, "%s", f.why);
        else if (code == CURLE_FILESIZE_EXCEEDED)
            snprintf(why, room, "it is larger than --max-size");
        else if (status == 404)
            snprintf(why, room, "404: it has no digest, or none yet");
        else if (code == CURLE_OK)
            snprintf(why, room, "status %ld; 200 is right", status);
        else
            snprintf(why, room, "%s",
                     error[0] ? error : curl_easy_strerror(code));
    }
    *out = (struct digest_copy){
        .bytes = (unsigned char *)f.body.at,
        .nbytes = f.body.len,
        .modified = modified > 0 ? modified : 0,
        .expires = f.expires,
    };
    /* Only a digest that Squid would take is handed on: the old one is
     * better than a broken one. */
    if (done)
        done = digest_check(out, why, room);
    if (!done) {
        free(out->bytes);
        *out = (struct digest_copy){ 0 };
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return done;
}

/* -------------------------------------------------------------------- get */

static int get_save(const struct digest_copy *copy, const char *path)
{
    const bly_foreign_spec spec = { .format = "squid" };
    bly_foreign *f;
    if (bly_foreign_open(&spec, copy->bytes, copy->nbytes, &f))
        return fail_library();
    const int status = foreign_save(f, path);
    bly_foreign_free(f);
    return status;
}

int digest_get(const struct digest_args *args, struct list *operands)
{
    if (operands->n > 1)
        return fail("one digest at a time; usage: bloomery digest get "
                    "HOST:PORT -o FILE");
    if (args->output && !output_works(args->output, args->json))
        return TROUBLE;
    char *const url = digest_url(operands->at[0]);
    struct digest_copy copy;
    char why[512];
    if (!url)
        return fail("out of memory");
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        free(url);
        return fail("libcurl cannot be started");
    }
    int status = YES;
    if (!digest_fetch(args, url, NULL, &copy, why, sizeof why))
        status = fail("%s: %s", url, why);
    if (status == YES && args->output)
        status = get_save(&copy, args->output);
    if (status == YES && !quiet &&
        (args->json || !(args->output && is_stdout(args->output))))
        digest_tell_got(args, url, &copy);
    free(copy.bytes);
    free(url);
    curl_global_cleanup();
    return status;
}
