/*
 * pipeline.c - keys from input to output, by several threads, in order
 *
 * A worker (ordered.c) cuts its block into keys, hashes them and hands them to
 * the command in batches. Keys that are to be printed are moved together inside
 * the block itself: the output is never longer than the input, and neighbours
 * move as one. A block whose keys are all printed is written where it was read.
 *
 *     | kept | dropped | kept kept kept | dropped | ... not worked on yet
 *     | kept | kept kept kept | free          |
 *
 * A command that prints more than keys appends its lines to a text of the
 * worker's, which is written in the block's turn instead.
 *
 * Where the answer for a key depends on those before it, a worker only cuts and
 * hashes its block; the command sees the keys when it is the block's turn. A
 * block of very short keys has more than were hashed ahead: the rest is worked
 * on piece by piece, then and there.
 *
 * Where keys have values, or are parts of lines, blocks take turns though
 * nothing is written: so the number of lines before a block is known when its
 * turn comes, and of several wrong lines the first ones are told.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "io/values.h"
#include "io/walk.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* Keys that wait for the turn of their block. */
struct pending {
    bly_bytes keys[BATCH_IN_ORDER], lines[BATCH_IN_ORDER];
    uint32_t numbers[BATCH_IN_ORDER];
    uint64_t hashes[BATCH_IN_ORDER];
    uint64_t picked[BLY_BITMAP_WORDS(BATCH_IN_ORDER)];
};

struct keys_worker {
    struct pending *pending; /* NULL unless the job is in order */
    struct batch waiting;    /* the first of them */
    struct walk walk;        /* where the rest of the block begins */
    struct picking picking;
    struct block text;   /* written instead of the block, if the job writes */
    uint64_t nlines;     /* of its block that are right, or all */
    char why[VALUE_WHY]; /* the next one is not; empty: all are right */
    uint64_t nkeys, npicked; /* of all its blocks */
};

struct keys_run {
    struct job *job;
    struct input *in;
    struct keys_worker *workers;
    pthread_mutex_t failing; /* status, job->error */
    bly_status status;
    const struct input_file *file; /* of the block whose turn it is */
    uint64_t nlines;               /* in it before that block */
    size_t nshown;                 /* bad lines that were told */
    bool headed;                   /* the header was written */
};

void batch_invert(struct batch *b)
{
    for (size_t i = 0; i < BLY_BITMAP_WORDS(b->n); i++)
        b->picked[i] = ~b->picked[i];
    if (b->n % 64)
        b->picked[b->n / 64] &= (UINT64_C(1) << b->n % 64) - 1;
}

/* The first reason given is the one that is told. Returns false. */
__attribute__((format(printf, 3, 4))) static bool
fail_run(struct keys_run *r, bly_status status, const char *format, ...)
{
    va_list ap;
    pthread_mutex_lock(&r->failing);
    va_start(ap, format);
    if (!r->status)
        vsnprintf(r->job->error, sizeof r->job->error, format, ap);
    va_end(ap);
    r->status = r->status ? r->status : status;
    pthread_mutex_unlock(&r->failing);
    return false;
}

/* Move the picked lines of a batch to *to, one by one, separators included. */
static void keep_lines(const struct batch *b, char **to)
{
    for (size_t i = 0; i < b->n; i++) {
        if (!(b->picked[i / 64] >> i % 64 & 1))
            continue;
        memmove(*to, b->lines[i].ptr, b->lines[i].len + 1);
        *to += b->lines[i].len + 1;
    }
}

/* The same where every line of the block is one of keys: neighbours move as
 * one. */
static void keep_picked(const bly_bytes *keys, size_t n, const uint64_t *picked,
                        char **to)
{
    for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++) {
        uint64_t bits = picked[w];
        while (bits) {
            const unsigned first = (unsigned)__builtin_ctzll(bits);
            const uint64_t behind = ~(bits >> first); /* has a bit but for -1 */
            const unsigned len =
                behind ? (unsigned)__builtin_ctzll(behind) : 64;
            const bly_bytes *const last = &keys[w * 64 + first + len - 1];
            const char *const from = keys[w * 64 + first].ptr;
            const size_t size =
                (size_t)((const char *)last->ptr - from) + last->len + 1;
            if (*to != from)
                memmove(*to, from, size);
            *to += size;
            bits =
                first + len < 64 ? bits >> (first + len) << (first + len) : 0;
        }
    }
}

static void hash_batch(const struct keys_run *r, struct batch *b,
                       uint64_t *hashes)
{
    const bly_hasher *const hasher = r->job->hasher;
    const struct normal *const how = &r->in->normal;
    if (!hasher)
        return;
    if (normal_integer(how)) /* all are: normal_key() */
        (void)bly_hash_as(hasher, (bly_keying){ how->type, 0 }, BLY_KEYS_TEXT,
                          b->keys, b->n, hashes, NULL);
    else
        bly_hash_keys(hasher, b->keys, b->n, hashes);
    b->hashes = hashes;
}

/* Hand some keys to the command. */
static bool give_batch(struct keys_run *r, struct batch *b, bool ahead)
{
    struct job *const job = r->job;
    const bly_status st = (ahead ? job->ahead : job->batch)(job, b);
    const char *const path = ahead || !job->path ? "" : job->path;
    return !st || fail_run(r, st, "%s%s%s", path, *path ? ": " : "",
                           b->why ? b->why : bly_error());
}

/* Show all keys of a block to the command before it works on any. */
static bool work_ahead(struct keys_run *r, struct keys_worker *w,
                       const struct block *b)
{
    bly_bytes keys[BATCH], lines[BATCH];
    uint32_t numbers[BATCH];
    struct walk walk = { keys, lines, numbers, .max = BATCH };
    uint64_t hashes[BATCH], picked[BLY_BITMAP_WORDS(BATCH)] = { 0 };
    struct batch batch = { .block = b, .picked = picked, .text = &w->text };
    bool ok = true;
    walk_start(&walk, r->in, &w->picking, b);
    while (ok && walk_next(&walk, &batch)) {
        walk_normal(&walk, &batch, NULL);
        hash_batch(r, &batch, hashes);
        ok = !batch.n || give_batch(r, &batch, true);
    }
    return ok;
}

static uint64_t count_picked(const struct batch *b)
{
    uint64_t n = 0;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(b->n); i++)
        n += (uint64_t)__builtin_popcountll(b->picked[i]);
    return n;
}

/* Move what is to be printed of a batch to *to. */
static void keep_batch(const struct keys_run *r, const struct batch *b,
                       char **to)
{
    const char terminator = r->job->terminator;
    if (r->in->separator != terminator)
        for (size_t i = 0; i < b->n; i++)
            ((char *)(uintptr_t)b->lines[i].ptr)[b->lines[i].len] = terminator;
    if (b->numbers)
        keep_lines(b, to);
    else
        keep_picked(b->keys, b->n, b->picked, to);
}

static void count_keys(struct keys_run *r, struct keys_worker *w,
                       uint64_t nkeys, uint64_t npicked)
{
    w->nkeys += nkeys;
    w->npicked += npicked;
    atomic_fetch_add_explicit(&r->in->nkeys, nkeys, memory_order_relaxed);
}

/* Was there no memory to find the keys of a block? */
static bool walk_failed(struct keys_run *r, const struct walk *walk)
{
    return walk->picking && walk->picking->failed &&
           !fail_run(r, BLY_ENOMEM, "%s", walk->picking->failed);
}

/* Work on all keys of a block, which becomes its output. */
static bool work_keys(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct job *const job = r->job;
    struct keys_worker *const w = &r->workers[worker];
    bly_bytes keys[BATCH], lines[BATCH];
    uint32_t numbers[BATCH];
    struct walk walk = { keys, lines, numbers, .max = BATCH };
    uint64_t hashes[BATCH], values[BATCH], picked[BLY_BITMAP_WORDS(BATCH)];
    struct batch batch = { .block = b, .picked = picked, .text = &w->text };
    char *to = b->at;
    uint64_t npicked = 0, nkeys = 0;

    w->text.len = 0;
    if (job->ahead && !work_ahead(r, w, b))
        return false;
    walk_start(&walk, r->in, &w->picking, b);
    bool first = true;
    while (walk_next(&walk, &batch)) {
        if (first)
            input_look(r->in, b, keys, batch.n);
        first = false;
        if (job->valued) {
            const size_t right =
                values_cut(keys, batch.n, job->delimiter, values, w->why);
            if (right < batch.n) {
                w->nlines = walk_lines(&walk) - batch.n + right;
                return true; /* told when it is the block's turn */
            }
            batch.values = values;
        }
        walk_normal(&walk, &batch, values);
        if (!batch.n) /* all of them were bad */
            continue;
        memset(picked, 0, sizeof picked);
        hash_batch(r, &batch, hashes);
        if (!give_batch(r, &batch, false))
            return false;
        const uint64_t here = count_picked(&batch);
        nkeys += batch.n;
        npicked += here;
        if (here && job->first_only)
            break;
        if (here && job->prints)
            keep_batch(r, &batch, &to);
    }
    if (walk_failed(r, &walk))
        return false;
    b->len = (size_t)(to - b->at);
    w->nlines = walk_lines(&walk);
    count_keys(r, w, nkeys, npicked);
    return !(npicked && job->first_only);
}

/* The next keys of a worker's block, hashed; the first of it? */
static void next_pending(struct keys_run *r, struct keys_worker *w,
                         const struct block *b, bool first)
{
    w->waiting = (struct batch){ .block = b,
                                 .picked = w->pending->picked,
                                 .text = &w->text };
    while (walk_next(&w->walk, &w->waiting)) {
        if (first)
            input_look(r->in, b, w->pending->keys, w->waiting.n);
        first = false;
        walk_normal(&w->walk, &w->waiting, NULL);
        if (w->waiting.n) /* not all of them were bad */
            break;
    }
    hash_batch(r, &w->waiting, w->pending->hashes);
}

/* Cut and hash a block, as far as there is room. */
static bool work_pending(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct keys_worker *const w = &r->workers[worker];
    if (!w->pending && !(w->pending = malloc(sizeof *w->pending)))
        return fail_run(r, BLY_ENOMEM, "out of memory");
    struct pending *const p = w->pending;
    w->walk = (struct walk){ p->keys, p->lines, p->numbers, BATCH_IN_ORDER,
                             .nlines = 0 };
    walk_start(&w->walk, r->in, &w->picking, b);
    next_pending(r, w, b, true);
    return true;
}

/* Work on all keys of such a block, which becomes its output. False if the
 * command failed: what it had picked by then is printed all the same. */
static bool decide_pending(struct keys_run *r, struct keys_worker *w,
                           struct block *b)
{
    struct pending *const p = w->pending;
    char *to = b->at;
    uint64_t npicked = 0, nkeys = 0;
    bool ok = true;
    w->text.len = 0;
    for (; ok && w->waiting.n; next_pending(r, w, b, false)) {
        struct batch *const batch = &w->waiting;
        memset(p->picked, 0, BLY_BITMAP_WORDS(batch->n) * sizeof *p->picked);
        ok = give_batch(r, batch, false);
        npicked += count_picked(batch);
        nkeys += batch->n;
        if (r->job->prints)
            keep_batch(r, batch, &to);
    }
    ok = !walk_failed(r, &w->walk) && ok;
    b->len = (size_t)(to - b->at);
    w->nlines = walk_lines(&w->walk);
    count_keys(r, w, nkeys, npicked);
    return ok;
}

static bool put_block(struct keys_run *r, const struct block *b)
{
    if (out_is_terminal() && !r->job->clean)
        text_clean(b->at, b->len, true);
    const int error = out_write(b->at, b->len);
    return !error ||
           fail_run(r, BLY_EIO, "standard output: %s", strerror(error));
}

/* The header of the first file that has one, before the lines that are
 * printed. */
static bool put_header(struct keys_run *r)
{
    const bool first = !r->headed && r->job->prints && r->in->header.len;
    r->headed = true;
    return !first || put_block(r, &r->in->header);
}

/* Name the bad lines of a block whose turn it is, as long as not too many were;
 * and count its lines, all of which come behind those of the blocks before. */
static void tell_bad(struct keys_run *r, const struct keys_worker *w,
                     const struct block *b)
{
    const struct picking *const p = &w->picking;
    const char *const what = r->in->separator ? "line" : "key";
    if (r->file != b->file)
        r->nlines = b->file ? b->file->nheader : 0;
    r->file = b->file;
    for (size_t i = 0; i < p->nshown && r->nshown < BAD_SHOWN; i++) {
        const struct bad_line *const bad = &p->bad[i];
        const unsigned long long line = r->nlines + bad->line + 1;
        if (bad->nlines > 1)
            fail("%s: %ss %llu to %llu: %s", input_name(r->in, b->file), what,
                 line, (unsigned long long)(line + bad->nlines - 1), bad->why);
        else
            fail("%s: %s %llu: %s", input_name(r->in, b->file), what, line,
                 bad->why);
        r->nshown++;
    }
    r->job->nbad += p->nbad;
    r->nlines += w->nlines;
}

/* Write what was made of a block, or tell the line that is wrong. */
static bool write_keys(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct keys_worker *const w = &r->workers[worker];
    tell_bad(r, w, b);
    if (w->why[0])
        return fail_run(r, BLY_EINVAL, "%s: %s %llu: %s",
                        input_name(r->in, b->file),
                        r->in->separator ? "line" : "key",
                        (unsigned long long)(r->nlines + 1), w->why);
    return put_block(r, r->job->writes ? &w->text : b);
}

static bool write_pending(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct keys_worker *const w = &r->workers[worker];
    const bool decided = decide_pending(r, w, b);
    tell_bad(r, w, b);
    const bool put =
        put_header(r) && put_block(r, r->job->writes ? &w->text : b);
    if (r->job->written)
        r->job->written(r->job, put);
    return decided && put;
}

/* Lines without a key are an error, unless they are to be left out. */
static void sum_up_bad(struct keys_run *r)
{
    struct job *const job = r->job;
    const unsigned long long n = job->nbad;
    char what[64];
    snprintf(what, sizeof what,
             r->in->keys ? n == 1 ? "%llu argument is not a key"
                                  : "%llu arguments are not keys"
             : n == 1    ? "%llu line has no key"
                         : "%llu lines have no key",
             n);
    if (!n || r->status || (job->first_only && job->npicked))
        return;
    if (r->in->skip_bad) {
        warn("%s; left out", what);
        return;
    }
    fail_run(r, BLY_EINVAL, "%s; --skip-bad leaves %s out", what,
             n == 1 ? "it" : "them");
    if (!job->goes_on)
        return;
    fail("%s", job->error);
    job->error[0] = '\0';
    job->trouble = true;
    r->status = BLY_OK;
}

bly_status pipeline_run(struct job *job, struct input *in)
{
    const bool turns =
        job->prints || job->writes || job->valued || walk_picks(in);
    struct keys_run r = { .job = job,
                          .in = in,
                          .failing = PTHREAD_MUTEX_INITIALIZER };
    in->nthreads = job->nthreads;
    r.workers = calloc(ordered_workers(in), sizeof *r.workers);
    if (!r.workers) {
        fail_run(&r, BLY_ENOMEM, "out of memory");
        return r.status;
    }
    progress_start(job->prints || job->writes);
    if (job->in_order)
        ordered_run(in, work_pending, write_pending, &r);
    else
        ordered_run(in, work_keys, turns ? write_keys : NULL, &r);
    progress_clear();
    for (unsigned i = 0; i < ordered_workers(in); i++) {
        job->nkeys += r.workers[i].nkeys;
        job->npicked += r.workers[i].npicked;
        block_free(&r.workers[i].text);
        picking_free(&r.workers[i].picking);
        free(r.workers[i].pending);
    }
    free(r.workers);
    if (in->error[0] && !(job->first_only && job->npicked))
        fail_run(&r, BLY_EIO, "%s", in->error);
    if (!r.status && job->in_order)
        put_header(&r); /* where no row followed */
    input_tell_ends(in);
    input_tell_more(in);
    sum_up_bad(&r);
    job->trouble |= in->trouble;
    return r.status;
}
