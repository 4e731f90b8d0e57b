/*
 * follow.c - the digest of a cache that changes, for Squids and for peers
 *
 * One thread looks twenty times a second at what the proxy has written, and
 * decides whether there is a new version to tell:
 *
 *   - the objects that came since the last one are the threshold's share of
 *     those that are there, as in the paper of Fan et al.; or
 *   - something has changed, and --every seconds have passed.
 *
 * Squids that ask over HTTP always get the digest of that moment.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>

#include "apps/digest/follow_report.h"
#include "base/clock.h"
#include "report/say.h"
#include "wire/secure.h"

#define LOOK_MS 50
#define THRESHOLD 0.01
#define EVERY_S 300

struct follow {
    const struct digest_args *args;
    struct cache cache;
    struct secure_secret secret;
    struct teller *teller; /* NULL: nobody is told */
    pthread_t thread;
    atomic_bool stop;
    pthread_mutex_t lock; /* for `ended` alone */
    pthread_cond_t ended;

    uint64_t told_changes, told_came; /* of the cache, at the last version */
    uint64_t told_at;
    bool hangs; /* a thread that asks the cache does not end */
};

/* ---------------------------------------------------------------- telling */

static bool is_due(struct follow *f)
{
    struct cache *const c = &f->cache;
    const double share =
        f->args->threshold > 0 ? f->args->threshold : THRESHOLD;
    const uint64_t every = f->args->every ? f->args->every : EVERY_S;
    pthread_mutex_lock(&c->lock);
    const uint64_t news = c->counts.came - f->told_came;
    const bool changed = c->changes != f->told_changes;
    const double enough = share * (double)c->cells.entries;
    pthread_mutex_unlock(&c->lock);
    return !f->told_at || (news && (double)news >= enough) ||
           (changed && clock_ms() - f->told_at >= every * 1000);
}

static void tell(struct follow *f)
{
    struct digest_copy copy;
    pthread_mutex_lock(&f->cache.lock);
    const uint64_t changes = f->cache.changes, came = f->cache.counts.came;
    pthread_mutex_unlock(&f->cache.lock);
    if (!cache_digest(&f->cache, &copy))
        return; /* no memory: next time */
    f->told_changes = changes;
    f->told_came = came;
    f->told_at = clock_ms();
    teller_publish(f->teller, copy.bytes, copy.nbytes);
}

static void *follow_run(void *ctx)
{
    struct follow *const f = ctx;
    while (!f->stop) {
        const struct timespec until = clock_after(LOOK_MS);
        cache_read(&f->cache);
        if (f->teller && is_due(f))
            tell(f);
        pthread_mutex_lock(&f->lock);
        if (!f->stop)
            pthread_cond_timedwait(&f->ended, &f->lock, &until);
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

static void follow_stop(struct follow *f)
{
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_signal(&f->ended);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
}

/* ---------------------------------------------------------------- serving */

static bool follow_refresh(void *ctx, struct digest_copy *newer, int64_t *wait)
{
    struct follow *const f = ctx;
    *wait = 60000; /* requests look too */
    return cache_digest(&f->cache, newer);
}

/* -------------------------------------------------------------- reporting */

static void tell_start(const struct follow *f, const char *updates)
{
    const struct cache *const c = &f->cache;
    const struct following now = {
        .source = c->journals[0].path,
        .form = c->journals[0].is_log ? "store.log" : "swap.state",
        .updates = updates,
        .entries = c->cells.entries,
        .capacity = c->cells.capacity,
        .memory = c->cells.nbits / 2,
    };
    report(stdout, f->args->json, following_fields, &now,
           "{source}: {form}, {entries} objects, room for {capacity} in "
           "{memory}[; peers are told at {updates}]\n");
}

static void tell_end(struct follow *f)
{
    struct followed end = { .cache = cache_count(&f->cache),
                            .entries = f->cache.cells.entries,
                            .stuck = f->cache.cells.stuck };
    if (f->teller)
        end.told = teller_count(f->teller);
    report(stdout, f->args->json, followed_fields, &end,
           "{entries} objects, {came} came, {went} went; versions: {versions}, "
           "sent whole: {wholes} ({whole_bytes}), deltas: {deltas} "
           "({delta_bytes})\n");
}

/* ------------------------------------------------------ beginning and end */

static bool follow_listen(struct follow *f, char at[ADDRESS_TEXT])
{
    /* A listener stays as long as it likes. */
    const struct gate_limits limits = {
        .connections = f->args->connections,
        .per_address = f->args->per_address,
        .request_time = f->args->request_time,
        .answer_time = UINT32_MAX,
    };
    struct address where;
    at[0] = '\0';
    if (!f->args->tell)
        return !f->args->key_file ||
               refuse("--key-file seals what --tell sends; give both");
    if (!secure_read(f->args->key_file, &f->secret))
        return false;
    f->teller = teller_open(f->args->tell, &limits, &f->secret, &where);
    if (f->teller)
        address_text(&where, at);
    return f->teller;
}

/* No thread but the one of http_run() may take these. */
static void hold_signals(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
}

static int follow_serve(struct follow *f)
{
    static struct digest_source source; /* see digest_serve() */
    struct digest_copy first;
    char at[ADDRESS_TEXT];
    bool idle;
    hold_signals();
    if (!follow_listen(f, at))
        return TROUBLE;
    if (!cache_digest(&f->cache, &first))
        return fail("out of memory");
    if (pthread_create(&f->thread, NULL, follow_run, f) != 0) {
        free(first.bytes);
        return fail("no thread");
    }
    if (!quiet)
        tell_start(f, f->teller ? at : NULL);
    source = (struct digest_source){
        .refresh = follow_refresh,
        .ctx = f,
        .name = f->cache.journals[0].path,
        .looks = true,
        .lifetime = f->args->lifetime ? (int64_t)f->args->lifetime : 300,
    };
    const int status = digest_answer(f->args, &source, &first, &idle);
    f->hangs = !idle;
    follow_stop(f);
    if (status == YES && !quiet)
        tell_end(f);
    return status;
}

int digest_follow(const struct digest_args *args, struct list *operands)
{
    /* Static: it outlives a thread that hangs when all else ends. */
    static struct follow f;
    const bly_option bits = { "bits", args->bits.n
                                          ? args->bits.at[args->bits.n - 1]
                                          : NULL };
    if (args->bits.n && args->fpr > 0)
        return fail("--bits and --fpr both say how large it is; give one");
    f.args = args;
    f.cache.spec = (bly_foreign_spec){ .fpr = args->fpr,
                                       .options = &bits,
                                       .noptions = args->bits.n != 0 };
    f.cache.least = args->items;
    pthread_mutex_init(&f.lock, NULL);
    clock_condition(&f.ended);
    int status = TROUBLE;
    if (cache_open(&f.cache, operands, &args->begin))
        status = follow_serve(&f);
    teller_close(f.teller);
    if (!f.hangs)
        cache_close(&f.cache);
    return status;
}
