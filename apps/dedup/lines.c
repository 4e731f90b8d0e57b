/*
 * lines.c - documents of files, a block at a time, by several threads, in order
 *
 * Every worker does everything: it takes the lock of the input, reads the next
 * block, lets the lock go, works on the block, and waits for the block's turn
 * to hand over what it made. Memory is a block a worker, larger only where a
 * line is; results come in the order of the input whatever the threads do.
 *
 * A block ends where a line does. What was read behind that is the tail, and
 * begins the next block.
 */
#define _GNU_SOURCE /* memrchr, mkostemp */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/dedup/lines.h"

#define BLOCK_BYTES ((size_t)256 * 1024)

struct lines_state {
    struct lines *in;
    lines_fn *work, *turn;
    void *ctx;
    pthread_mutex_t reading, turning;
    pthread_cond_t turned;
    atomic_bool stop;
    uint64_t nblocks, next_turn;
    size_t file;          /* being read, or to be opened next */
    void *source;         /* NULL: none is open */
    uint64_t closed_done; /* bytes of files that were read to their end */
    char *tail;
    size_t ntail, tail_room;
};

/* Several workers may fail at once; one of them is told. */
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

bool lines_fail(struct lines *in, const char *format, ...)
{
    va_list ap;
    pthread_mutex_lock(&failing);
    va_start(ap, format);
    if (!in->error[0])
        vsnprintf(in->error, sizeof in->error, format, ap);
    va_end(ap);
    pthread_mutex_unlock(&failing);
    return false;
}

static bool has_failed(const struct lines *in)
{
    pthread_mutex_lock(&failing);
    const bool failed = in->error[0];
    pthread_mutex_unlock(&failing);
    return failed;
}

bool lines_init(struct lines *in, const struct lines_ops *ops,
                const char *const *names, size_t n)
{
    *in = (struct lines){ .ops = ops, .nthreads = 1 };
    in->files = calloc(n + 1, sizeof *in->files);
    if (!in->files)
        return false;
    bool sized = true;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        struct lines_file *const f = &in->files[i];
        *f = (struct lines_file){ .name = names[i], .spool = -1 };
        f->path = strdup(names[i]);
        if (!f->path)
            return false;
        in->nfiles++;
        sized = sized && stat(names[i], &st) == 0 && S_ISREG(st.st_mode);
        in->bytes_all += sized ? (uint64_t)st.st_size : 0;
    }
    if (!sized)
        in->bytes_all = 0;
    return true;
}

void lines_free(struct lines *in)
{
    for (size_t i = 0; i < in->nfiles; i++) {
        free(in->files[i].path);
        if (in->files[i].spool >= 0)
            close(in->files[i].spool);
    }
    free(in->files);
    *in = (struct lines){ 0 };
}

/* --------------------------------------------------------------- spooling */

static bool spool_bytes(struct lines *in, struct lines_file *f, int fd)
{
    char buf[65536];
    void *const source = in->ops->open(f->path);
    if (!source)
        return lines_fail(in, "%s: %s", f->name, strerror(errno));
    ptrdiff_t got;
    while ((got = in->ops->read(source, buf, sizeof buf)) > 0) {
        size_t at = 0;
        while (at < (size_t)got) {
            const ssize_t put = write(fd, buf + at, (size_t)got - at);
            if (put < 0 && errno != EINTR) {
                lines_fail(in, "%s: cannot be kept to be read again: %s",
                           f->name, strerror(errno));
                in->ops->close(source);
                return false;
            }
            at += put > 0 ? (size_t)put : 0;
        }
    }
    if (got < 0)
        snprintf(f->error, sizeof f->error, "%s", in->ops->error(source));
    in->ops->close(source);
    return true;
}

bool lines_spool(struct lines *in, const char *folder)
{
    for (size_t i = 0; i < in->nfiles; i++) {
        struct lines_file *const f = &in->files[i];
        struct stat st;
        if (strcmp(f->path, "-") != 0 && stat(f->path, &st) == 0 &&
            S_ISREG(st.st_mode))
            continue;
        char name[4096], link[64];
        snprintf(name, sizeof name, "%s/bloomery-XXXXXX", folder);
        f->spool = mkostemp(name, 0);
        if (f->spool < 0)
            return lines_fail(in, "%s: %s", name, strerror(errno));
        unlink(name);
        if (!spool_bytes(in, f, f->spool))
            return false;
        snprintf(link, sizeof link, "/proc/self/fd/%d", f->spool);
        free(f->path);
        f->path = strdup(link);
        if (!f->path)
            return lines_fail(in, "out of memory");
    }
    return true;
}

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
        if (b->len == b->room &&
            !block_room(s, b, b->room > SIZE_MAX / 2 ? SIZE_MAX : b->room * 2))
            return false;
        const ptrdiff_t got =
            in->ops->read(s->source, b->at + b->len, b->room - b->len);
        if (got <= 0) {
            *ended = true;
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

bool lines_next(const struct lines *in, const struct lines_block *b, size_t *at,
                const char **line, size_t *len)
{
    if (in->whole && *at == 0 && b->len == 0) { /* an empty file */
        *at = 1;
        *line = b->at;
        *len = 0;
        return true;
    }
    if (*at >= b->len)
        return false;
    *line = b->at + *at;
    const char *const nl = in->whole ? NULL : memchr(*line, '\n', b->len - *at);
    *len = nl ? (size_t)(nl - *line) : b->len - *at;
    *at += *len + (nl != NULL);
    if (!in->whole && *len && (*line)[*len - 1] == '\r')
        --*len;
    return true;
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
        const bool got = !atomic_load(&s->stop) && next_block(s, &b);
        const bool failed = !got && has_failed(s->in);
        pthread_mutex_unlock(&s->reading);
        if (failed)
            stop_lines(s);
        if (!got)
            break;
        if (s->work && !s->work(s->ctx, w->number, &b)) {
            stop_lines(s);
            break;
        }
        if (!take_turn(s, w->number, &b))
            break;
    }
    free(b.at);
    return NULL;
}

bool lines_run(struct lines *in, lines_fn *work, lines_fn *turn, void *ctx)
{
    struct lines_state s = { .in = in,
                             .work = work,
                             .turn = turn,
                             .ctx = ctx,
                             .reading = PTHREAD_MUTEX_INITIALIZER,
                             .turning = PTHREAD_MUTEX_INITIALIZER,
                             .turned = PTHREAD_COND_INITIALIZER };
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
    return !in->error[0] && !atomic_load(&s.stop);
}
