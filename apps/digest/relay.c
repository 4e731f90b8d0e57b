/*
 * relay.c - another proxy's digest, handed on whole
 *
 * It is fetched at the start and again whenever it has expired, beside the
 * answers (digest_keeper.c): a peer that is slow, gone or sends nonsense makes
 * the last copy old, but delays nobody. An outdated digest costs some requests
 * in vain; having none costs every hit.
 *
 * Expires is the peer's word, and bounded: an answer that has expired when it
 * comes, or that never does, is fetched again after --refresh seconds, or after
 * a day. Failed fetches are tried again after 1 s, 2 s, 4 s and so on.
 */
#include <stdlib.h>
#include <time.h>

#include <curl/curl.h>

#include "apps/digest/jobs.h"
#include "report/say.h"

#define RETRY_MOST_MS 300000
#define LIFETIME_MOST 86400 /* seconds */

struct relayed {
    const struct digest_args *args;
    const char *url;
    int64_t lifetime;
    unsigned nfailed;
    bool has_one;
    struct digest_trouble trouble;
    const atomic_bool *stop;
};

/* Seconds until a copy is fetched again. */
static int64_t relay_lifetime(const struct relayed *r, int64_t expires)
{
    const int64_t least = (int64_t)r->args->refresh;
    const int64_t most = least > LIFETIME_MOST ? least : LIFETIME_MOST;
    const int64_t said = expires ? expires - (int64_t)time(NULL) : r->lifetime;
    return said < least ? least : said > most ? most : said;
}

static bool relay_refresh(void *ctx, struct digest_copy *newer, int64_t *wait)
{
    struct relayed *const r = ctx;
    char why[512];
    if (!digest_fetch(r->args, r->url, r->stop, newer, why, sizeof why)) {
        if (!*r->stop)
            trouble_tell(&r->trouble, r->url, why, r->has_one);
        *wait = retry_wait(++r->nfailed, RETRY_MOST_MS);
        return false;
    }
    trouble_over(&r->trouble, r->url);
    r->nfailed = 0;
    r->has_one = true;
    const int64_t seconds = relay_lifetime(r, newer->expires);
    newer->expires = (int64_t)time(NULL) + seconds;
    *wait = seconds * 1000;
    if (newer->stats.fill > 0.65)
        warn("%s: %.0f %% of its bits are set, and Squid refuses more than 65",
             r->url, newer->stats.fill * 100);
    return true;
}

int digest_relay(const struct digest_args *args, struct list *operands)
{
    /* Static: they outlive a thread that hangs when all else ends. */
    static struct relayed r;
    static struct digest_source source;
    struct digest_copy first = { 0 };
    bool idle;
    if (operands->n > 1)
        return fail(
            "one digest at a time; usage: bloomery digest relay HOST:PORT");
    char *const url = digest_url(operands->at[0]);
    if (!url)
        return fail("out of memory");
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        free(url);
        return fail("libcurl cannot be started");
    }
    r = (struct relayed){
        .args = args,
        .url = url,
        .lifetime = args->lifetime ? (int64_t)args->lifetime : 300,
        .stop = &source.stop,
    };
    source = (struct digest_source){
        .refresh = relay_refresh,
        .ctx = &r,
        .name = url,
    };
    const int status = digest_answer(args, &source, &first, &idle);
    /* A thread may still be looking up a name, which nothing interrupts. */
    if (idle) {
        curl_global_cleanup();
        free(url);
    }
    return status;
}
