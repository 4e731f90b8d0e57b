/*
 * redis_file.c - bloomery redis load, dump: a file into a key, and back
 *
 * A file is read and checked whole before anything is sent. What comes back is
 * checked as it comes: where the filter changed between two pieces, their
 * checksums do not fit, and a copy is made on the server and read instead.
 *
 * A .bly file goes into a key of BLY.*, one of RedisBloom into a key of BF.*
 */
#define _GNU_SOURCE
#include <string.h>

#include "apps/redis/shards.h"
#include "apps/redis/upload.h"
#include "io/filters.h"
#include "io/foreign_files.h"
#include "io/paths.h"
#include "report/say.h"

void moved_report(const struct redis_args *args, FILE *to,
                  struct redis_moved moved)
{
    if (!quiet)
        report(to, args->json, redis_moved_fields, &moved,
               "{file}: [{kind}|{format}], {bytes}, key {key}\n");
}

static void filter_report(const struct redis_args *args, FILE *to,
                          const char *path, const char *key,
                          const bly_filter *f)
{
    bly_stats s;
    bly_peek(f, &s);
    moved_report(
        args, to,
        (struct redis_moved){ path, key, s.kind, NULL, bly_written_bytes(f) });
}

/* Send what is in the file of another system to a key. */
static int load_foreign(const struct redis_args *args, const char *path,
                        const struct foreign_file *file, struct upload *u)
{
    const char *const format = bly_foreign_format(file->f);
    struct router r = { 0 };
    int status = YES;
    const struct chunk_family *const c = chunks_of_format(format);
    if (!c)
        return fail("%s: in the format %s, which no key can hold; use a .bly "
                    "file, or one of redisbloom or rediscuckoo",
                    path, format);
    if (!router_open(&r, &args->login) ||
        !upload_may(&r, u->key, args->replace) ||
        !chunks_send(&r, c, u, file->bytes, file->nbytes) ||
        !upload_place(&r, u, args->replace) ||
        (args->replicas && !upload_settle(&r, u->key, args->replicas)))
        status = fail("%s", r.why);
    else
        moved_report(
            args, stdout,
            (struct redis_moved){ path, u->key, NULL, format, file->nbytes });
    upload_drop(&r, u);
    router_close(&r);
    return status;
}

/* The same of one of ours. */
static int load_filter(const struct redis_args *args, const char *path,
                       const bly_filter *f, struct upload *u)
{
    struct router r = { 0 };
    int status = YES;
    if (!router_open(&r, &args->login) ||
        !upload_may(&r, u->key, args->replace) || !upload_send(&r, u, f) ||
        !upload_place(&r, u, args->replace) ||
        (args->replicas && !upload_settle(&r, u->key, args->replicas)))
        status = fail("%s", r.why);
    else
        filter_report(args, stdout, path, u->key, f);
    upload_drop(&r, u);
    router_close(&r);
    return status;
}

int redis_load(const struct redis_args *args, struct list *operands)
{
    const char *const path = operands->at[0];
    struct upload u = { .key = operands->at[1] };
    const bly_access blind = { .blind = true };
    const struct foreign_args any = { 0 };
    struct foreign_file file;
    if (operands->n > 2)
        return fail("one file goes into one key; %zu words are too many",
                    operands->n);
    if (args->cluster)
        return redis_load_shards(args, path, u.key);
    int status = foreign_open(path, &any, &file);
    if (status != YES)
        return status;
    if (file.f) {
        status = load_foreign(args, path, &file, &u);
        foreign_close(&file);
        return status;
    }
    bly_filter *const f = filter_open(path, &blind);
    status = f ? load_filter(args, path, f, &u) : TROUBLE;
    bly_free(f);
    return status;
}

/* ------------------------------------------------------------------ dump */

#define DUMP_BYTES ((size_t)4 << 20)
#define DUMP_MAX ((size_t)64 << 20) /* what BLY.EXPORT gives at most */

/* A file that is read from a key. */
struct fetching {
    struct router *r;
    const char *key;
    redisReply *reply; /* with the piece, or NULL */
    size_t at;         /* in the piece */
    uint64_t done;     /* of the file, up to the end of the piece */
    uint64_t total;    /* 0: not known yet */
    bool lost;         /* r->why, and not bly_error(), says what is wrong */
};

static bool fetch_piece(struct fetching *g)
{
    freeReplyObject(g->reply);
    g->at = 0;
    /* A coded filter is coded anew for every piece: few and large ones then. */
    const size_t want = g->total > DUMP_MAX ? DUMP_MAX : DUMP_BYTES;
    redisReply *const e =
        router_call(g->r, g->key, true, "BLY.EXPORT %s %llu %llu", g->key,
                    (unsigned long long)g->done, (unsigned long long)want);
    g->reply = e;
    g->lost = !e;
    if (!e)
        return false;
    if (e->type != REDIS_REPLY_ARRAY || e->elements != 2 ||
        e->element[0]->type != REDIS_REPLY_INTEGER ||
        e->element[1]->type != REDIS_REPLY_STRING) {
        g->lost = true;
        snprintf(
            g->r->why, sizeof g->r->why,
            "%s: the server's BLY.EXPORT returns something other than bytes",
            g->key);
        return false;
    }
    g->total = (uint64_t)e->element[0]->integer;
    g->done += e->element[1]->len;
    progress_at(g->done, g->done, g->total);
    return true;
}

static int64_t get_piece(void *ctx, void *buf, size_t nbytes)
{
    struct fetching *const g = ctx;
    size_t n = 0;
    while (n < nbytes) {
        const redisReply *const piece = g->reply ? g->reply->element[1] : NULL;
        if (!piece || g->at == piece->len) {
            if (piece && g->done >= g->total)
                break;
            if (!fetch_piece(g))
                return -1;
            if (!g->reply->element[1]->len)
                break;
            continue;
        }
        const size_t here = piece->len - g->at;
        const size_t some = nbytes - n < here ? nbytes - n : here;
        memcpy((char *)buf + n, piece->str + g->at, some);
        g->at += some;
        n += some;
    }
    return (int64_t)n;
}

/* The filter in a key; NULL, and r->why. *torn: it does not fit together. */
static bly_filter *fetch_filter(struct router *r, const char *key, bool *torn)
{
    const bly_access blind = { .blind = true };
    struct fetching g = { .r = r, .key = key };
    bly_filter *f = NULL;
    progress_start(false);
    progress_unit("bytes");
    const bly_status st = bly_read(get_piece, &g, &blind, &f);
    progress_clear();
    if (g.reply)
        freeReplyObject(g.reply);
    *torn = g.lost ? strstr(r->why, "the filter has changed") != NULL
                   : st == BLY_EFORMAT;
    if (st && !g.lost)
        snprintf(r->why, sizeof r->why, "%s: %s", key, bly_error());
    return f;
}

/* The same of a copy that nobody changes. */
static bly_filter *fetch_copy(struct router *r, const char *key)
{
    struct upload u = { .key = key, .at = key_beside(key, "dumping") };
    bly_filter *f = NULL;
    bool torn;
    redisReply *reply =
        u.at ? router_call(r, key, true, "COPY %s %s", key, u.at) : NULL;
    if (reply) {
        freeReplyObject(reply);
        freeReplyObject(
            router_call(r, u.at, true, "EXPIRE %s %d", u.at, 86400));
        f = fetch_filter(r, u.at, &torn);
    }
    upload_drop(r, &u);
    return f;
}

/* The filter in a key of BF.* or CF.* to a file. */
static int dump_chunks(const struct redis_args *args, struct router *r,
                       const struct chunk_family *c, const char *key,
                       const char *path)
{
    struct block b = { 0 };
    bly_foreign *const f = chunks_fetch(r, c, key, &b);
    FILE *const to = report_to(path);
    int status = f ? foreign_save(f, path) : fail("%s", r->why);
    if (status == YES)
        moved_report(args, to,
                     (struct redis_moved){ path, key, NULL,
                                           bly_foreign_format(f), b.len });
    bly_foreign_free(f);
    block_free(&b);
    return status;
}

/* The filter in a key of BLY.*; NULL: r->why. */
static bly_filter *fetch_whole(struct router *r, const char *key)
{
    bool torn = false;
    bly_filter *f = fetch_filter(r, key, &torn);
    return !f && torn ? fetch_copy(r, key) : f;
}

/* The same to a file. */
static int dump_filter(const struct redis_args *args, struct router *r,
                       const char *key, const char *path)
{
    bly_filter *f = fetch_whole(r, key);
    FILE *const to = report_to(path);
    int status = f ? filter_save(f, path) : fail("%s", r->why);
    if (status == YES)
        filter_report(args, to, path, key, f);
    bly_free(f);
    return status;
}

/* All shards of a filter, each to a file of a folder. Files that are complete
 * stay if a later one fails; the report comes when all are. */
static int dump_shards(const struct redis_args *args, const char *name,
                       const char *folder)
{
    struct router r = { 0 };
    struct shards s = { 0 };
    uint64_t nbytes = 0;
    int status = YES;
    if (!router_open(&r, &args->login) || !shards_read(&r, name, &s))
        status = fail("%s", r.why);
    else if (bly_folder_make(folder))
        status = fail_library();
    for (size_t i = 0; i < s.n && status == YES; i++) {
        char path[4096];
        bly_filter *const f = fetch_whole(&r, s.at[i].key);
        if (!f)
            status = fail("%s", r.why);
        else if ((size_t)snprintf(path, sizeof path, "%s/%zu.bly", folder, i) >=
                 sizeof path)
            status = fail("%s: the name is too long", folder);
        else
            status = filter_save(f, path);
        nbytes += f ? bly_written_bytes(f) : 0;
        bly_free(f);
    }
    if (status == YES && !shards_same(&r, &s))
        status = fail("%s", r.why);
    if (status == YES)
        moved_report(
            args, stdout,
            (struct redis_moved){ folder, name, s.kind, NULL, nbytes });
    shards_free(&s);
    router_close(&r);
    return status;
}

int redis_dump(const struct redis_args *args, struct list *operands)
{
    const char *const key = operands->at[0], *const path = operands->at[1];
    if (operands->n > 2)
        return fail("one key goes into one file; %zu words are too many",
                    operands->n);
    if (args->cluster)
        return dump_shards(args, key, path);
    if (!output_works(path, args->json))
        return TROUBLE;
    struct router r = { 0 };
    const struct chunk_family *c;
    int status;
    if (!router_open(&r, &args->login))
        status = fail("%s", r.why);
    else if ((c = chunks_in(&r, key)))
        status = dump_chunks(args, &r, c, key, path);
    else
        status = dump_filter(args, &r, key, path);
    router_close(&r);
    return status;
}
