/*
 * digest_relay.c - another proxy's digest, handed on whole
 *
 * It is fetched when somebody asks for it and the last copy has expired, and
 * once at the start. Where the proxy does not answer, the last copy stays: old
 * news cost a question in vain, none cost every hit.
 */
#include <stdlib.h>
#include <time.h>

#include "cli/digest.h"
#include "cli/late_curl.h"

#define RETRY_SECONDS 5 /* between fetches that failed */

struct relayed {
    const struct digest_args *args;
    const char *url;
    int64_t lifetime, not_before;
    const atomic_bool *stop;
};

static bool relay_fetch(struct relayed *r, struct digest_copy *out)
{
    char why[512];
    const int64_t now = (int64_t)time(NULL);
    if (!digest_fetch(r->args, r->url, r->stop, out, why, sizeof why)) {
        if (!*r->stop)
            warn("%s: %s", r->url, why);
        r->not_before = now + RETRY_SECONDS;
        return false;
    }
    if (!out->expires)
        out->expires = now + r->lifetime;
    if (out->stats.fill > 0.65)
        warn("%s: %.0f %% of its bits are set, and Squid refuses more than 65",
             r->url, out->stats.fill * 100);
    return true;
}

static bool relay_refresh(void *ctx, const struct digest_copy *now,
                          struct digest_copy *newer)
{
    struct relayed *const r = ctx;
    const int64_t time_now = (int64_t)time(NULL);
    if (*r->stop || (now->nbytes && now->expires > time_now) ||
        time_now < r->not_before)
        return false;
    return relay_fetch(r, newer);
}

int digest_relay(const struct digest_args *args, struct list *operands)
{
    if (operands->n > 1)
        return fail("one digest at a time; right: bloomery digest relay "
                    "HOST:PORT");
    char *const url = digest_url(operands->at[0]);
    struct digest_source source = { .refresh = relay_refresh, .name = url };
    struct relayed r = {
        .args = args,
        .url = url,
        .lifetime = args->lifetime ? (int64_t)args->lifetime : 300,
        .stop = &source.stop,
    };
    source.ctx = &r;
    if (!url)
        return fail("out of memory");
    if (!curl_begin()) {
        free(url);
        return TROUBLE;
    }
    struct digest_copy first = { 0 };
    relay_fetch(&r, &first);
    const int status = digest_answer(args, &source, &first);
    curl_global_cleanup();
    free(url);
    return status;
}
