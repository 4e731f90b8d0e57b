/*
 * lines_run.c - blocks of lines by several threads, in order
 *
 * Every worker does everything: it takes the lock of the input, reads the next
 * block, lets the lock go, works on the block, and waits for the block's turn
 * to hand over what it made. Memory is a block a worker, larger only where a
 * line is; results come in the order of the input whatever the threads do.
 *
 * What a worker needs for a block grows with the block, to several times its
 * size. So long lines are worked on one at a time, with a worker's number of
 * their own, and memory is bounded by one of them whatever the threads are.
 *
 * A block ends where a line does. What was read behind that is the tail, and
 * begins the next block. The first run marks where blocks begin, so that a
 * later one can leave some out.
 */
#define _GNU_SOURCE /* memrchr */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/lines.h"

#define BLOCK_BYTES ((size_t)LINES_MAX_LEAST)
#define LARGE_BYTES ((size_t)8 << 20)

struct lines_state {
    struct lines *in;
    lines_fn *work, *turn;
    void *ctx;
    pthread_mutex_t reading, turning;
    pthread_mutex_t large; /* taken while reading, so in the order of blocks */
    pthread_cond_t turned;
    atomic_bool stop;
    uint64_t nblocks, next_turn;
    size_t file;          /* being read, or to be opened next */
    void *source;         /* NULL: none is open */
    uint64_t closed_done; /* bytes of files that were read to their end */
    char *tail;
    size_t ntail, tail_room;
    lines_want *want; /* NULL: all blocks */
    size_t mark;      /* the next, of a run that leaves some out */
    uint64_t place;   /* likewise, in the file that is open */
};

/* ---------------------------------------------------------------- reading */

static bool block_room(struct lines_state *s, struct lines_block *b, size_t n)
{
    if (n <= b->room)
        return true;
    char *const more =
        n > SIZE_MAX - LINES_SLACK ? NULL : realloc(b->at, n + LINES_SLACK);
    if (!more)
        return lines_fail(s->in, "%s: out of memory for a line of %zu bytes",
                          s->in->files[s->file].name, n);
    b->at = more;
    b->room = n;
    return true;
}

/* No line ends in the block, which is full: twice the room, as long as the line
 * may be that long. */
static bool longer_block(struct lines_state *s, struct lines_block *b)
{
    const struct lines *const in = s->in;
    const struct lines_file *const f = &in->files[s->file];
    const uint64_t most =
        in->max_line < SIZE_MAX / 2 ? in->max_line + 1 : SIZE_MAX / 2;
    if (b->room < most)
        return block_room(s, b,
                          b->room < most / 2 ? b->room * 2 : (size_t)most);
    if (in->whole)
        return lines_fail(s->in,
                          "%s: more than %llu bytes; --max-line allows longer "
                          "documents",
                          f->name, (unsigned long long)in->max_line);
    return lines_fail(s->in,
                      "%s:%llu: a line of more than %llu bytes; --max-line "
                      "allows longer ones",
                      f->name, (unsigned long long)(in->ndocs - f->first + 1),
                      (unsigned long long)in->max_line);
}

static bool keep_tail(struct lines_state *s, const char *at, size_t n)
{
    if (n > s->tail_room) {
        char *const more = realloc(s->tail, n);
        if (!more)
            return lines_fail(s->in, "out of memory");
        s->tail = more;
        s->tail_room = n;
    }
    if (n)
        memcpy(s->tail, at, n);
    s->ntail = n;
    return true;
}

/* Read until the block is full, and past that to the first end of a line.
 * *ended at the end of the file. */
static bool fill_block(struct lines_state *s, struct lines_block *b,
                       bool *ended)
{
    struct lines *const in = s->in;
    struct lines_file *const f = &in->files[s->file];
    b->len = 0;
    if (!block_room(s, b, s->ntail > BLOCK_BYTES ? s->ntail : BLOCK_BYTES))
        return false;
    if (s->ntail)
        memcpy(b->at, s->tail, s->ntail);
    b->len = s->ntail;
    s->ntail = 0;
    size_t ends = 0; /* behind the last newline that was seen */
    for (;;) {
        if (b->len == b->room && (ends && !in->whole))
            break;
        if (b->len == b->room && !longer_block(s, b))
            return false;
        const ptrdiff_t got =
            in->ops->read(s->source, b->at + b->len, b->room - b->len);
        if (got <= 0) {
            *ended = true;
            if (got < 0 && in->ops->broken(s->source))
                return lines_fail(in, "%s: %s", f->name,
                                  in->ops->error(s->source));
            if (got < 0 && !f->error[0])
                snprintf(f->error, sizeof f->error, "%s",
                         in->ops->error(s->source));
            break;
        }
        const char *const nl = memrchr(b->at + b->len, '\n', (size_t)got);
        b->len += (size_t)got;
        if (nl)
            ends = (size_t)(nl - b->at) + 1;
    }
    if (in->whole)
        return true;
    if (*ended && !f->error[0])
        return true; /* the last line may have no newline */
    const size_t rest = b->len - ends;
    b->len = ends;
    return *ended || keep_tail(s, b->at + ends, rest);
}

static size_t count_lines(const char *at, size_t n)
{
    const char *const end = at + n;
    size_t lines = n > 0 && end[-1] != '\n';
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        lines++;
        at++;
    }
    return lines;
}

static bool file_ends(struct lines_state *s)
{
    struct lines *const in = s->in;
    struct lines_file *const f = &in->files[s->file];
    const uint64_t n = in->ndocs - f->first;
    s->closed_done += in->ops->done(s->source);
    in->ops->close(s->source);
    s->source = NULL;
    s->ntail = 0;
    if (f->known && f->ndocs != n)
        return lines_fail(in, "%s: changed while it was read", f->name);
    f->ndocs = n;
    f->known = true;
    s->file++;
    return true;
}

static bool put_mark(struct lines_state *s, const struct lines_block *b,
                     uint64_t place)
{
    struct lines *const in = s->in;
    if (in->marked)
        return true;
    if (in->nmarks == in->marks_room) {
        const size_t room = in->marks_room * 2 + 64;
        struct lines_mark *const more = realloc(in->marks, room * sizeof *more);
        if (!more)
            return lines_fail(in, "out of memory");
        in->marks = more;
        in->marks_room = room;
    }
    in->marks[in->nmarks++] =
        (struct lines_mark){ (uint32_t)s->file, place, b->first };
    return true;
}

/* The next block that is not empty; false at the end, and when something is
 * wrong. */
static bool next_block(struct lines_state *s, struct lines_block *b)
{
    struct lines *const in = s->in;
    while (s->file < in->nfiles) {
        struct lines_file *const f = &in->files[s->file];
        if (!s->source) {
            s->source = in->ops->open(f->path);
            if (!s->source)
                return lines_fail(in, "%s: %s", f->name, strerror(errno));
            f->first = in->ndocs;
            f->nbytes = 0;
        }
        bool ended = false;
        if (!fill_block(s, b, &ended))
            return false;
        b->file = f;
        b->first = in->ndocs;
        b->nlines = in->whole ? 1 : count_lines(b->at, b->len);
        b->number = s->nblocks;
        if (b->nlines && !put_mark(s, b, f->nbytes))
            return false;
        in->ndocs += b->nlines;
        in->nbytes += b->len;
        f->nbytes += b->len;
        if (in->progress)
            in->progress(in->ndocs, s->closed_done + in->ops->done(s->source),
                         in->bytes_all);
        if (ended && !file_ends(s))
            return false;
        if (b->nlines) {
            memset(b->at + b->len, 0, LINES_SLACK);
            s->nblocks++;
            return true;
        }
    }
    return false;
}

/* Read a marked block that ends at byte `end` and has nlines lines. */
static bool read_marked(struct lines_state *s, struct lines_block *b,
                        const struct lines_mark *m, uint64_t end)
{
    struct lines *const in = s->in;
    const size_t len = (size_t)(end - m->place);
    if (!block_room(s, b, len))
        return false;
    bool ok = in->ops->skip(s->source, m->place - s->place);
    for (b->len = 0; ok && b->len < len;) {
        const ptrdiff_t got =
            in->ops->read(s->source, b->at + b->len, len - b->len);
        ok = got > 0;
        b->len += ok ? (size_t)got : 0;
    }
    s->place = end;
    if (ok && (in->whole || count_lines(b->at, b->len) == b->nlines))
        return true;
    return lines_fail(in, "%s: changed while it was read", b->file->name);
}

/* The next block that is wanted. */
static bool next_wanted(struct lines_state *s, struct lines_block *b)
{
    struct lines *const in = s->in;
    for (; s->mark < in->nmarks; s->mark++) {
        const struct lines_mark *const m = &in->marks[s->mark];
        struct lines_file *const f = &in->files[m->file];
        const bool last = s->mark + 1 == in->nmarks || m[1].file != m->file;
        const uint64_t behind = last ? f->first + f->ndocs : m[1].first;
        if (!s->want(s->ctx, m->first, behind - m->first))
            continue;
        if (s->source && s->file != m->file) {
            in->ops->close(s->source);
            s->source = NULL;
        }
        s->file = m->file;
        if (!s->source) {
            s->source = in->ops->open(f->path);
            s->place = 0;
            if (!s->source)
                return lines_fail(in, "%s: %s", f->name, strerror(errno));
        }
        b->file = f;
        b->first = m->first;
        b->nlines = (size_t)(behind - m->first);
        b->number = s->nblocks;
        if (!read_marked(s, b, m, last ? f->nbytes : m[1].place))
            return false;
        memset(b->at + b->len, 0, LINES_SLACK);
        if (in->progress)
            in->progress(behind, 0, 0);
        s->nblocks++;
        s->mark++;
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- running */

struct lines_worker {
    struct lines_state *s;
    unsigned number;
    pthread_t thread;
};

static void stop_lines(struct lines_state *s)
{
    pthread_mutex_lock(&s->turning);
    atomic_store(&s->stop, true);
    pthread_cond_broadcast(&s->turned);
    pthread_mutex_unlock(&s->turning);
}

static bool take_turn(struct lines_state *s, unsigned worker,
                      struct lines_block *b)
{
    pthread_mutex_lock(&s->turning);
    while (s->next_turn != b->number && !atomic_load(&s->stop))
        pthread_cond_wait(&s->turned, &s->turning);
    const bool go = !atomic_load(&s->stop);
    const bool ok = go && (!s->turn || s->turn(s->ctx, worker, b));
    if (go && !ok)
        atomic_store(&s->stop, true);
    s->next_turn++;
    pthread_cond_broadcast(&s->turned);
    pthread_mutex_unlock(&s->turning);
    return ok;
}

static void *lines_worker_run(void *arg)
{
    struct lines_worker *const w = arg;
    struct lines_state *const s = w->s;
    struct lines_block b = { 0 };
    while (!atomic_load(&s->stop)) {
        pthread_mutex_lock(&s->reading);
        const bool got = !atomic_load(&s->stop) &&
                         (s->want ? next_wanted(s, &b) : next_block(s, &b));
        const bool failed = !got && lines_has_failed(s->in);
        const bool large = got && b.room > LARGE_BYTES;
        if (large)
            pthread_mutex_lock(&s->large);
        pthread_mutex_unlock(&s->reading);
        if (failed)
            stop_lines(s);
        if (!got)
            break;
        const unsigned number = large ? s->in->nthreads : w->number;
        const bool worked = !s->work || s->work(s->ctx, number, &b);
        if (!worked)
            stop_lines(s);
        const bool ok = worked && take_turn(s, number, &b);
        if (large) {
            free(b.at);
            b = (struct lines_block){ 0 };
            pthread_mutex_unlock(&s->large);
        }
        if (!ok)
            break;
    }
    free(b.at);
    return NULL;
}

/* Nothing was read: was it for an error? Then that is the run's, so that an
 * output of nothing does not take the place of an earlier one. */
static bool only_errors(struct lines *in)
{
    for (size_t i = 0; i < in->nfiles; i++) {
        struct lines_file *const f = &in->files[i];
        if (!f->error[0])
            continue;
        lines_fail(in, "%s: %s", f->name, f->error);
        f->error[0] = '\0';
        return true;
    }
    return false;
}

bool lines_run_some(struct lines *in, lines_want *want, lines_fn *work,
                    lines_fn *turn, void *ctx)
{
    struct lines_state s = { .in = in,
                             .want = want,
                             .work = work,
                             .turn = turn,
                             .ctx = ctx,
                             .reading = PTHREAD_MUTEX_INITIALIZER,
                             .turning = PTHREAD_MUTEX_INITIALIZER,
                             .large = PTHREAD_MUTEX_INITIALIZER,
                             .turned = PTHREAD_COND_INITIALIZER };
    if (!want)
        in->ndocs = in->nbytes = 0;
    in->error[0] = '\0';
    struct lines_worker *const workers = calloc(in->nthreads, sizeof *workers);
    if (!workers)
        return lines_fail(in, "out of memory");
    /* A thread that cannot be made is one fewer; this one works in any case. */
    unsigned made = 1;
    for (unsigned i = 0; i < in->nthreads; i++)
        workers[i] = (struct lines_worker){ .s = &s, .number = i };
    while (made < in->nthreads &&
           pthread_create(&workers[made].thread, NULL, lines_worker_run,
                          &workers[made]) == 0)
        made++;
    lines_worker_run(&workers[0]);
    for (unsigned i = 1; i < made; i++)
        pthread_join(workers[i].thread, NULL);
    if (s.source)
        in->ops->close(s.source);
    free(s.tail);
    free(workers);
    bool ok = !in->error[0] && !atomic_load(&s.stop);
    if (ok && !want && in->ndocs == 0)
        ok = !only_errors(in);
    in->marked = in->marked || ok;
    if (!in->marked)
        in->nmarks = 0;
    return ok;
}

bool lines_run(struct lines *in, lines_fn *work, lines_fn *turn, void *ctx)
{
    return lines_run_some(in, NULL, work, turn, ctx);
}
