/*
 * sync_list.c - a list of lines as a set: read, looked up, replaced
 *
 * A line that stands there twice is one element. Lines are found again by their
 * elements in another pass over the list, so that memory is eight bytes for
 * each line, whatever their length.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/sync/set.h"
#include "base/grow.h"
#include "base/search.h"
#include "io/files.h"
#include "io/pipeline.h"

/* ------------------------------------------------------------------ reading */

struct gathering {
    pthread_mutex_t lock;
    struct sync_set *set;
    size_t room;
    uint64_t nbytes;
};

static bly_status gather(struct job *job, struct batch *b)
{
    struct gathering *const g = job->ctx;
    struct sync_set *const set = g->set;
    uint64_t nbytes = 0;
    for (size_t i = 0; i < b->n; i++)
        nbytes += b->keys[i].len + 1;
    pthread_mutex_lock(&g->lock);
    const bool ok = GROW(&set->elements, &g->room, set->n + b->n);
    if (ok) {
        memcpy(set->elements + set->n, b->hashes, b->n * sizeof *b->hashes);
        set->n += b->n;
        set->nbytes += nbytes;
    }
    pthread_mutex_unlock(&g->lock);
    if (!ok)
        b->why = "out of memory";
    return ok ? BLY_OK : BLY_ENOMEM;
}

static bool run_list(struct sync_set *set, struct job *job)
{
    struct input in;
    input_files(&in, &set->path, 1, set->nul);
    job->hasher = &set->hasher;
    job->nthreads = thread_count(set->nthreads);
    in.nthreads = job->nthreads;
    const bly_status st = pipeline_run(job, &in);
    if (st) {
        const char *const why = job->error[0] ? job->error
                                : in.error[0] ? in.error
                                              : bly_error();
        /* Other commands may take a file that is not a list as it is; this one
         * has no such option. */
        const char *const other = strstr(why, "; --binary");
        set_fail(set, "%.*s", (int)(other ? other - why : SYNC_WHY), why);
    }
    input_close(&in);
    return !st;
}

bool lines_read(struct sync_set *set)
{
    struct gathering g = { .set = set };
    struct job job = { .batch = gather, .ctx = &g };
    if (!stat_settled(-1, set->path, &set->stat)) {
        memset(&set->stat, 0, sizeof set->stat);
        if (errno == ENOENT && set->may_miss)
            return true;
        return set_fail(set, "%s: %s", set->path, strerror(errno));
    }
    pthread_mutex_init(&g.lock, NULL);
    const bool ok = run_list(set, &job);
    pthread_mutex_destroy(&g.lock);
    if (ok && bly_elements_sort(set->elements, &set->n))
        return set_fail(set, "%s", bly_error());
    return ok;
}

/* -------------------------------------------------------------- found again */

/* Elements that are looked for: a bit for each beginning of 16 bits in front
 * of the search, since nearly all lines are others. */
struct wanted {
    const uint64_t *elements;
    size_t n;
    uint64_t begins[1024];
};

static void wanted_make(struct wanted *w, const uint64_t *elements, size_t n)
{
    *w = (struct wanted){ .elements = elements, .n = n };
    for (size_t i = 0; i < n; i++)
        w->begins[elements[i] >> 54] |= UINT64_C(1) << (elements[i] >> 48 & 63);
}

/* Its place and one; 0: it is not one of them. */
static size_t wanted_find(const struct wanted *w, uint64_t e)
{
    if (!(w->begins[e >> 54] >> (e >> 48 & 63) & 1))
        return 0;
    size_t at;
    LOWER_BOUND(at, w->n, w->elements[at] < e);
    return at < w->n && w->elements[at] == e ? at + 1 : 0;
}

struct looking {
    pthread_mutex_t lock;
    struct wanted wanted;
    unsigned char *seen; /* a byte for each */
    set_line *each;
    void *ctx;
};

static bly_status look(struct job *job, struct batch *b)
{
    struct looking *const l = job->ctx;
    bool ok = true;
    for (size_t i = 0; i < b->n && ok; i++) {
        const size_t at = wanted_find(&l->wanted, b->hashes[i]);
        if (!at)
            continue;
        pthread_mutex_lock(&l->lock);
        if (!l->seen[at - 1])
            ok = l->each(l->ctx, b->hashes[i], b->keys[i]);
        l->seen[at - 1] = 1;
        pthread_mutex_unlock(&l->lock);
    }
    if (!ok)
        b->why = "out of memory";
    return ok ? BLY_OK : BLY_ENOMEM;
}

bool list_lines(struct sync_set *set, const uint64_t *elements, size_t n,
                set_line *each, void *ctx)
{
    struct looking l = { .each = each, .ctx = ctx };
    struct job job = { .batch = look, .ctx = &l };
    if (!n)
        return true;
    l.seen = calloc(n, 1);
    if (!l.seen)
        return set_fail(set, "out of memory");
    wanted_make(&l.wanted, elements, n);
    pthread_mutex_init(&l.lock, NULL);
    const bool ok = run_list(set, &job);
    pthread_mutex_destroy(&l.lock);
    free(l.seen);
    return ok;
}

/* ---------------------------------------------------------------- replacing */

/* Renaming it changed its ctime. */
static bool is_list_read(const struct sync_set *set, const struct stat *now,
                         bool renamed)
{
    const struct stat *const was = &set->stat;
    return now->st_ino == was->st_ino && now->st_dev == was->st_dev &&
           now->st_size == was->st_size && now->st_mode == was->st_mode &&
           stat_time(&now->st_mtim) == stat_time(&was->st_mtim) &&
           (renamed || stat_time(&now->st_ctim) == stat_time(&was->st_ctim));
}

static bool is_what_was_read(const struct sync_set *set)
{
    struct stat now;
    if (stat(set->path, &now))
        return errno == ENOENT && !set->stat.st_ino;
    return is_list_read(set, &now, false);
}

/* For bly_swap. */
static bool replaces_list(void *ctx, int old, bool moved)
{
    const struct sync_set *const set = ctx;
    struct stat now;
    if (old < 0)
        return !set->stat.st_ino;
    return !fstat(old, &now) && is_list_read(set, &now, moved);
}

/* The list as it stands, without some lines. */
struct copying {
    struct sync_set *set;
    bly_draft *draft;
    struct wanted without;
    struct block line; /* that is not whole yet */
};

static bool copy_line(struct copying *c, const char *line, size_t n)
{
    const char end = c->set->nul ? '\0' : '\n';
    if (c->without.n &&
        wanted_find(&c->without, bly_hash(&c->set->hasher, line, n)))
        return true;
    return bly_draft_put(c->draft, line, n) && bly_draft_put(c->draft, &end, 1);
}

/* Lines in n bytes; what is behind the last separator is kept for later. */
static bool copy_lines(struct copying *c, const char *bytes, size_t n)
{
    const char end = c->set->nul ? '\0' : '\n';
    while (n) {
        const char *const stop = memchr(bytes, end, n);
        const size_t len = stop ? (size_t)(stop - bytes) : n;
        if (!stop || c->line.len) {
            if (c->line.len + len > INPUT_LINE_MOST)
                return set_fail(c->set, "%s: a line is too long", c->set->path);
            if (!block_put(&c->line, bytes, len))
                return set_fail(c->set, "out of memory");
        }
        if (!stop)
            return true;
        if (!(c->line.len ? copy_line(c, c->line.at, c->line.len)
                          : copy_line(c, bytes, len)))
            return false;
        c->line.len = 0;
        bytes += len + 1;
        n -= len + 1;
    }
    return true;
}

static bool copy_list(struct copying *c, char *buf, size_t room)
{
    static const struct {
        const char *begins;
        size_t n;
    } packed[] = {
        { "\x1f\x8b", 2 },
        { "\x28\xb5\x2f\xfd", 4 },
        { "\xfd"
          "7zX",
          4 },
        { "BZh", 3 },
    };
    struct sync_set *const set = c->set;
    if (!set->stat.st_ino)
        return true;
    const int fd = open(set->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return set_fail(set, "%s: %s", set->path, strerror(errno));
    int64_t got;
    bool ok = true;
    for (bool first = true; ok && (got = read_all(fd, buf, room)) > 0;
         first = false) {
        for (size_t i = 0; first && i < sizeof packed / sizeof *packed; i++)
            if (got > 6 && !memcmp(buf, packed[i].begins, packed[i].n))
                ok = set_fail(set,
                              "%s: a compressed list cannot be changed in "
                              "place; -o FILE writes what is missing there",
                              set->path);
        ok = ok && copy_lines(c, buf, (size_t)got);
    }
    if (ok && got < 0)
        ok = set_fail(set, "%s: %s", set->path, strerror(errno));
    close(fd);
    /* A last line without its end gets one. */
    return ok && (!c->line.len || copy_line(c, c->line.at, c->line.len));
}

bool list_write(struct sync_set *set, const uint64_t *without, size_t n,
                const struct block *more)
{
    enum { ROOM = 1 << 18 };
    struct copying c = { .set = set };
    char *const buf = malloc(ROOM);
    if (!buf)
        return set_fail(set, "out of memory");
    wanted_make(&c.without, without, n);
    if (bly_draft_new(set->path, wait_for_lock, NULL, &c.draft)) {
        free(buf);
        return set_fail(set, "%s", bly_error());
    }
    bool ok = is_what_was_read(set) && copy_list(&c, buf, ROOM) &&
              (!more->len || bly_draft_put(c.draft, more->at, more->len));
    /* No other bloomery replaces it while its lock is held, but somebody may
     * have written into it, or do so up to the last moment. */
    if (!is_what_was_read(set))
        ok = set_fail(set, "%s: changed while it was read; run it again",
                      set->path);
    if (!ok) {
        set_fail(set, "%s", bly_error());
        bly_draft_abandon(c.draft);
    } else {
        const bly_swap swap = { .same = replaces_list, .ctx = set };
        ok =
            !bly_draft_swap(c.draft, &swap) || set_fail(set, "%s", bly_error());
    }
    block_free(&c.line);
    free(buf);
    return ok;
}
