/*
 * redis_build.c - bloomery redis build: keys into a filter on servers; and load
 * --cluster, which has the shards of one in files
 *
 * The filters are built here, by the library and one per shard, and sent when
 * they are whole: that takes a tenth of the traffic that adding the keys there
 * would, and servers do nothing but copy. All shards go to temporary keys
 * first. Only when all are there is the old filter, if any, taken out of sight,
 * and they get their names; a reader in between gets an error, never "no".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/redis/shards.h"
#include "apps/redis/upload.h"
#include "io/filters.h"
#include "report/say.h"

#define SHARDS_DEFAULT 16

struct shard_builds {
    struct shards shards;
    bly_builder **at;
    uint64_t *nkeys;
    struct upload *uploads;
    const bly_hasher *hasher; /* of the filters */
    struct shard_split split;
    bly_bytes keys[BATCH];
    uint64_t hashes[BATCH];
    const char *folder;        /* that has the filters; NULL: they are built */
    uint64_t capacity, nbytes; /* of the filters, all together */
    double fpr;                /* at capacity */
};

static bly_status builds_batch(struct job *job, struct batch *b)
{
    struct shard_builds *const s = job->ctx;
    shards_split(&s->shards, b, &s->split);
    for (size_t i = 0; i < b->n; i++)
        s->keys[i] = b->keys[s->split.order[i]];
    bly_hash_keys(s->hasher, s->keys, b->n, s->hashes);
    for (size_t i = 0; i < s->shards.n; i++) {
        const size_t from = s->split.start[i];
        const size_t n = s->split.start[i + 1] - from;
        const bly_status st =
            n ? bly_builder_add(s->at[i], s->hashes + from, NULL, n) : BLY_OK;
        if (st)
            return st;
        s->nkeys[i] += n;
    }
    return BLY_OK;
}

/* What each of n shards is to be. Keys fall into them at random, so a shard has
 * room for six deviations more than its share. */
static void shard_spec(bly_spec *spec, size_t n)
{
    if (n == 1)
        return;
    if (spec->items) {
        const double share = (double)spec->items / (double)n;
        spec->items = (uint64_t)ceil(share + 6 * sqrt(share));
    }
    spec->bits = spec->bits / n + (spec->bits % n != 0);
}

static bool builds_open(struct shard_builds *s, const bly_spec *spec)
{
    const size_t n = s->shards.n;
    s->uploads = calloc(n, sizeof *s->uploads);
    if (s->folder && s->uploads)
        return true;
    s->at = calloc(n, sizeof(bly_builder *));
    s->nkeys = calloc(n, sizeof *s->nkeys);
    if (!s->at || !s->nkeys || !s->uploads) {
        fail("out of memory");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (bly_builder_new(spec, &s->at[i])) {
            fail_library();
            return false;
        }
    }
    s->hasher = bly_builder_hasher(s->at[0]);
    return true;
}

static void builds_close(struct shard_builds *s, struct router *r)
{
    for (size_t i = 0; i < s->shards.n; i++) {
        if (s->at)
            bly_builder_free(s->at[i]);
        if (s->uploads)
            upload_drop(r, &s->uploads[i]);
    }
    free(s->at);
    free(s->nkeys);
    free(s->uploads);
    shards_free(&s->shards);
    free(s);
}

/* The file of a shard in a folder; false, after saying why, if its name is too
 * long. */
static bool shard_path(const char *folder, size_t i, char path[4096])
{
    if (snprintf(path, 4096, "%s/%zu.bly", folder, i) < 4096)
        return true;
    fail("%s: the name is too long", folder);
    return false;
}

/* The filter of a shard from its file. */
static bly_filter *open_shard(const struct shard_builds *s, size_t i)
{
    const bly_access blind = { .blind = true };
    char path[4096];
    bly_filter *f =
        shard_path(s->folder, i, path) ? filter_open(path, &blind) : NULL;
    bly_stats stats;
    if (!f)
        return NULL;
    bly_peek(f, &stats);
    if (i == 0 || strcmp(s->shards.kind, stats.kind) == 0)
        return f;
    fail("%s: a %s filter, and 0.bly is a %s filter: they are not shards of "
         "one filter",
         path, stats.kind, s->shards.kind);
    bly_free(f);
    return NULL;
}

/* The filter of a shard from its keys. One that got no key, and has no size, is
 * made for one. */
static bly_filter *finish_shard(struct shard_builds *s, size_t i,
                                const bly_spec *spec)
{
    bly_filter *f = NULL;
    bly_status st = BLY_OK;
    if (!s->nkeys[i] && !is_sized(spec)) {
        bly_spec least = *spec;
        least.items = 1;
        bly_builder_free(s->at[i]);
        s->at[i] = NULL;
        st = bly_builder_new(&least, &s->at[i]);
    }
    if (!st)
        st = bly_builder_finish(s->at[i], thread_count(0), &f);
    if (!st)
        st = filter_tick(f);
    if (st) {
        fail_library();
        bly_free(f);
        return NULL;
    }
    return f;
}

/* What is reported about all of them together. */
static void builds_count(struct shard_builds *s, const bly_filter *f)
{
    bly_stats stats;
    bly_peek(f, &stats);
    snprintf(s->shards.kind, sizeof s->shards.kind, "%s", stats.kind);
    s->capacity += stats.capacity;
    s->nbytes += bly_written_bytes(f);
    s->fpr = stats.fpr_at_capacity;
}

/* Make, send and name all shards; spec is of those that are built. A status. */
static int builds_send(struct shard_builds *s, struct router *r,
                       const bly_spec *spec, bool replace, uint64_t replicas)
{
    const size_t n = s->shards.n;
    for (size_t i = 0; i < n; i++) {
        bly_filter *const f =
            s->folder ? open_shard(s, i) : finish_shard(s, i, spec);
        if (!f)
            return TROUBLE;
        builds_count(s, f);
        s->uploads[i].key = s->shards.at[i].key;
        const bool sent = upload_send(r, &s->uploads[i], f);
        bly_free(f);
        if (!sent)
            return fail("%s", r->why);
    }
    if (s->shards.is_sharded && replace && !shards_hide(r, s->shards.name))
        return fail("%s", r->why);
    for (size_t i = 0; i < n; i++)
        if (!upload_place(r, &s->uploads[i], replace))
            return fail("%s", r->why);
    if (s->shards.is_sharded &&
        !shards_write(r, &s->shards, s->capacity, s->fpr))
        return fail("%s", r->why);
    for (size_t i = 0; i < n && replicas; i++)
        if (!upload_settle(r, s->shards.at[i].key, replicas))
            return fail("%s", r->why);
    return YES;
}

/* Is there room for the filter under its name? What shards an old one had more
 * than the new one are returned in *old, to be taken away. */
static bool builds_may(struct router *r, const struct shards *s, bool replace,
                       struct shards *old)
{
    const int there = s->is_sharded ? shards_there(r, s->name) : 0;
    if (there < 0)
        return false;
    if (there && !replace) {
        snprintf(r->why, sizeof r->why,
                 "%s: is there already; --replace replaces it", s->name);
        return false;
    }
    if (there && !shards_read(r, s->name, old))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (!upload_may(r, s->at[i].key, replace))
            return false;
    return true;
}

/* The kind must be one that keys alone make. */
static bool build_takes(const bly_spec *spec)
{
    const uint32_t valued = BLY_CAN(BUILD) | BLY_CAN(GET);
    bly_kind_info kind;
    if (!(spec->kind ? bly_kind_named(spec->kind, &kind)
                     : bly_kind_at(0, &kind)) ||
        (kind.can & valued) != valued)
        return true;
    fail("a %s filter stores values; build it with bloomery build and send it "
         "with bloomery redis load",
         kind.name);
    return false;
}

/* Delete the shards of an old filter that the new one no longer has. */
static void drop_more(struct router *r, const struct shards *old, size_t n)
{
    for (size_t i = n; i < old->n; i++)
        freeReplyObject(
            router_call(r, old->at[i].key, true, "UNLINK %s", old->at[i].key));
}

int redis_build(const struct redis_args *args, struct list *operands)
{
    const char *const name = operands->at[0];
    const uint64_t n = !args->cluster ? 1
                       : args->shards ? args->shards
                                      : SHARDS_DEFAULT;
    bly_spec spec = { .keying = keys_keying(&args->keys) };
    struct input in;
    if (n > SHARDS_MAX)
        return fail("--shards %llu: at most %d", (unsigned long long)n,
                    SHARDS_MAX);
    if (!sizing_spec(&args->sizing, &spec) || !build_takes(&spec))
        return TROUBLE;
    shard_spec(&spec, (size_t)n);
    struct router r = { 0 };
    struct shards old = { 0 };
    struct shard_builds *const s = calloc(1, sizeof *s);
    if (!s)
        return fail("out of memory");
    struct job job = { .batch = builds_batch,
                       .hasher = args->cluster ? shard_hasher() : NULL,
                       .nthreads = 1,
                       .ctx = s };
    int status = TROUBLE;
    struct keys keys = args->keys;
    keys.changes = true;
    if (!(args->cluster ? shards_many(&s->shards, name, (size_t)n)
                        : shards_one(&s->shards, name))) {
        fail("out of memory");
    } else if (!router_open(&r, &args->login) ||
               !builds_may(&r, &s->shards, args->replace, &old)) {
        fail("%s", r.why);
    } else if (builds_open(s, &spec) && keys_input(&keys, operands, &in)) {
        if (pipeline_run(&job, &in))
            fail("%s", job.error);
        else if (!job.nkeys && !is_sized(&spec))
            fail("no keys in the input; to make an empty filter, give its "
                 "capacity with --items");
        else
            status = builds_send(s, &r, &spec, args->replace, args->replicas);
        input_close(&in);
    }
    if (status == YES) {
        drop_more(&r, &old, s->shards.n);
        const struct redis_built built = { name,        s->shards.kind,
                                           job.nkeys,   s->shards.n,
                                           s->capacity, s->nbytes,
                                           s->fpr,      s->shards.n != 1 };
        if (!quiet)
            report(stdout, args->json, redis_built_fields, &built,
                   "{key}: {keys} read; {kind} in {shards} shard[{?several}s], "
                   "{bytes}, rate [{fpr}|unknown] at capacity\n");
    }
    shards_free(&old);
    builds_close(s, &r);
    router_close(&r);
    return status;
}

/* Whether a folder has exactly so many shards. Their number is asked for: a
 * dump that was cut short would be another filter, which says no to keys. */
static bool folder_holds(const char *folder, size_t n)
{
    char path[4096];
    for (size_t i = 0; i <= n; i++) {
        if (!shard_path(folder, i, path))
            return false;
        const bool there = access(path, F_OK) == 0;
        if (there != (i < n)) {
            fail("%s: %s, and a filter of %zu shards has 0.bly to %zu.bly",
                 path, there ? "is there" : "is not there", n, n - 1);
            return false;
        }
    }
    return true;
}

int redis_load_shards(const struct redis_args *args, const char *folder,
                      const char *name)
{
    const size_t n = (size_t)args->shards;
    if (!n || n > SHARDS_MAX)
        return fail("load --cluster needs --shards, the number of files that "
                    "dump --cluster wrote, up to %d",
                    SHARDS_MAX);
    if (!folder_holds(folder, n))
        return TROUBLE;
    struct router r = { 0 };
    struct shards old = { 0 };
    struct shard_builds *const s = calloc(1, sizeof *s);
    if (!s)
        return fail("out of memory");
    s->folder = folder;
    int status = TROUBLE;
    if (!shards_many(&s->shards, name, n) || !builds_open(s, NULL))
        fail("out of memory");
    else if (!router_open(&r, &args->login) ||
             !builds_may(&r, &s->shards, args->replace, &old))
        fail("%s", r.why);
    else
        status = builds_send(s, &r, NULL, args->replace, args->replicas);
    if (status == YES) {
        drop_more(&r, &old, n);
        moved_report(args, stdout,
                     (struct redis_moved){ folder, name, s->shards.kind, NULL,
                                           s->nbytes });
    }
    shards_free(&old);
    builds_close(s, &r);
    router_close(&r);
    return status;
}
