/*
 * staged_part.c - what a task makes: pieces of bytes in one file
 *
 *     extents ...           bytes of one piece each, as they came
 *     table of extents      sorted by piece: piece, place, bytes, checksum
 *     directory             of each piece, and one more: its first extent, and
 *                           the checksum of its rows of the table
 *     foot                  run, stage, task, where these are, checksum
 *
 * So a writer with a thousand pieces needs a small buffer for each and writes
 * everything once; and a reader of one piece reads the foot, two entries of the
 * directory, its rows and its bytes, however many other pieces there are. All
 * in the byte order of the machine: the magic tells another one.
 *
 * A part that is cut short has no foot.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/dedup/staged.h"
#include "base/clock.h"

#define PART_MAGIC UINT64_C(0x31544150594c4289) /* "\x89BLYPAT1" */
#define EXTENT_MOST ((size_t)64 * 1024)
#define EXTENT_LEAST ((size_t)1024)

#define STAGE_NAME_(NAME, name) #name,
const char *const stage_names[NSTAGES] = { STAGED_STAGES(STAGE_NAME_) };
#undef STAGE_NAME_

struct entry {
    uint64_t first, sum;
};

char *part_path(const struct staged *st, enum stage stage, uint64_t task)
{
    char *path = NULL;
    const int n = stage == STAGE_PLAN
                      ? asprintf(&path, "%s/plan", st->folder)
                      : asprintf(&path, "%s/%s/%llu", st->folder,
                                 stage_names[stage], (unsigned long long)task);
    return n < 0 ? NULL : path;
}

static uint64_t foot_sum(const struct part_foot *f)
{
    return dedup_chain(f->run, f, offsetof(struct part_foot, sum));
}

/* ------------------------------------------------------------------ writing */

bool part_begin(struct dedup_job *job, const struct staged *st,
                enum stage stage, uint64_t task, uint64_t npieces,
                struct part_out *out)
{
    const uint64_t fair = job->opt->memory / 8 / (npieces + 1);
    *out = (struct part_out){
        .job = job,
        .st = st,
        .stage = stage,
        .task = task,
        .npieces = npieces,
        .each = fair > EXTENT_MOST    ? EXTENT_MOST
                : fair < EXTENT_LEAST ? EXTENT_LEAST
                                      : (size_t)fair,
        .path = part_path(st, stage, task),
        .began = clock_seconds(),
    };
    out->pieces = calloc(npieces + 1, sizeof *out->pieces);
    char *const slash = out->path ? strrchr(out->path, '/') : NULL;
    if (!slash || !out->pieces ||
        !ROOM(out->extents, out->extents_room, (size_t)npieces)) {
        dedup_fail(job, "out of memory");
        part_end(out, false);
        return false;
    }
    *slash = '\0';
    bool ok = bly_folder_make(out->path) == BLY_OK;
    *slash = '/';
    ok = ok && !bly_draft_new(out->path, job->opt->wait, NULL, &out->draft);
    if (!ok) {
        dedup_fail(job, "%s", bly_error());
        part_end(out, false);
    }
    return ok;
}

static void put_extent(struct part_out *out, uint64_t piece, const void *at,
                       size_t n)
{
    if (!ROOM(out->extents, out->extents_room, out->nextents + 1)) {
        dedup_fail(out->job, "out of memory");
        out->failed = true;
        return;
    }
    out->extents[out->nextents++] =
        (struct extent){ piece, out->end, n, dedup_chain(out->st->run, at, n) };
    bly_draft_put(out->draft, at, n); /* part_end() tells of failure */
    out->end += n;
}

bool part_put(struct part_out *out, uint64_t piece, const void *bytes, size_t n)
{
    struct growing *const g = &out->pieces[piece];
    const unsigned char *at = bytes;
    while (n && !out->failed) {
        if (!g->at && !(g->at = malloc(out->each))) {
            dedup_fail(out->job, "out of memory");
            out->failed = true;
            break;
        }
        const size_t fit = out->each - g->n < n ? out->each - g->n : n;
        memcpy(g->at + g->n, at, fit);
        g->n += fit;
        at += fit;
        n -= fit;
        if (g->n == out->each) {
            put_extent(out, piece, g->at, g->n);
            g->n = 0;
        }
    }
    return !out->failed;
}

static int by_piece(const void *x, const void *y)
{
    const struct extent *const a = x, *const b = y;
    if (a->piece != b->piece)
        return a->piece < b->piece ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static bool put_table(struct part_out *out)
{
    const uint64_t run = out->st->run;
    struct part_foot foot = { .magic = PART_MAGIC,
                              .run = run,
                              .stage = out->stage,
                              .task = out->task,
                              .npieces = out->npieces,
                              .nextents = out->nextents,
                              .extents = out->end,
                              .seconds = clock_seconds() - out->began };
    qsort(out->extents, out->nextents, sizeof *out->extents, by_piece);
    struct entry *const all = calloc(out->npieces + 1, sizeof *all);
    if (!all)
        return dedup_fail(out->job, "out of memory");
    size_t at = 0;
    for (uint64_t i = 0; i <= out->npieces; i++) {
        all[i].first = at;
        const size_t from = at;
        while (at < out->nextents && out->extents[at].piece == i)
            at++;
        all[i].sum = dedup_chain(run ^ i, out->extents + from,
                                 (at - from) * sizeof *out->extents);
    }
    const size_t table = out->nextents * sizeof *out->extents;
    foot.directory = out->end + table;
    foot.sum = foot_sum(&foot);
    bly_draft_put(out->draft, out->extents, table);
    bly_draft_put(out->draft, all, (out->npieces + 1) * sizeof *all);
    bly_draft_put(out->draft, &foot, sizeof foot);
    free(all);
    return true;
}

bool part_end(struct part_out *out, bool keep)
{
    for (uint64_t i = 0; out->pieces && i < out->npieces; i++) {
        struct growing *const g = &out->pieces[i];
        if (keep && g->n && !out->failed)
            put_extent(out, i, g->at, g->n);
        free(g->at);
    }
    bool ok = keep && !out->failed && put_table(out);
    if (ok) {
        ok = !bly_draft_commit(out->draft);
        if (!ok)
            dedup_fail(out->job, "%s", bly_error());
    } else {
        bly_draft_abandon(out->draft);
    }
    free(out->pieces);
    free(out->extents);
    free(out->path);
    *out = (struct part_out){ 0 };
    return ok;
}

/* ------------------------------------------------------------------ reading */

static bool read_bytes_at(int fd, void *buf, uint64_t n, uint64_t at)
{
    char *to = buf;
    while (n) {
        const ssize_t got = pread(fd, to, n, (off_t)at);
        if (got == 0)
            errno = EIO;
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        to += got > 0 ? got : 0;
        at += got > 0 ? (uint64_t)got : 0;
        n -= got > 0 ? (uint64_t)got : 0;
    }
    return true;
}

/* What is wrong with the foot; NULL: nothing. */
static const char *foot_wrong(int fd, const struct staged *st, enum stage stage,
                              uint64_t task, struct part_foot *foot,
                              uint64_t *nbytes)
{
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return "not a regular file";
    *nbytes = (uint64_t)s.st_size;
    if (*nbytes < sizeof *foot ||
        !read_bytes_at(fd, foot, sizeof *foot, *nbytes - sizeof *foot) ||
        foot->magic != PART_MAGIC || foot->sum != foot_sum(foot))
        return "not a whole part: it was cut short, or is damaged";
    if ((st->run && foot->run != st->run) || foot->stage != stage ||
        foot->task != task)
        return "a part of another run, with other inputs, options or tasks";
    const uint64_t end = *nbytes - sizeof *foot;
    const uint64_t entries = sizeof(struct entry);
    if (foot->directory > end || foot->extents > foot->directory ||
        foot->npieces > end / entries || foot->nextents > end / 32 ||
        foot->directory + (foot->npieces + 1) * entries != end ||
        foot->extents + foot->nextents * sizeof(struct extent) !=
            foot->directory)
        return "not a whole part: it was cut short, or is damaged";
    return NULL;
}

bool part_there(const struct staged *st, enum stage stage, uint64_t task,
                uint64_t *nbytes, double *seconds)
{
    struct part_foot foot;
    char *const path = part_path(st, stage, task);
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    free(path);
    if (fd < 0)
        return false;
    const bool ok = !foot_wrong(fd, st, stage, task, &foot, nbytes);
    close(fd);
    *seconds = ok ? foot.seconds : 0;
    return ok;
}

static bool damaged(struct piece_in *in)
{
    return dedup_fail(in->job, "%s: damaged; delete it and run its task again",
                      in->path);
}

static bool open_piece(struct piece_in *in, uint64_t piece)
{
    const struct part_foot *const f = &in->foot;
    struct entry e[2] = { 0 };
    if (piece >= f->npieces ||
        !read_bytes_at(in->fd, e, sizeof e, f->directory + piece * sizeof *e) ||
        e[0].first > e[1].first || e[1].first > f->nextents)
        return damaged(in);
    in->nextents = (size_t)(e[1].first - e[0].first);
    const size_t n = in->nextents * sizeof *in->extents;
    in->extents = malloc(n + 1);
    if (!in->extents)
        return dedup_fail(in->job, "out of memory");
    if (!read_bytes_at(in->fd, in->extents, n,
                       f->extents + e[0].first * sizeof *in->extents) ||
        dedup_chain(f->run ^ piece, in->extents, n) != e[0].sum)
        return damaged(in);
    for (size_t i = 0; i < in->nextents; i++) {
        const struct extent *const x = &in->extents[i];
        if (x->n == 0 || x->n > EXTENT_MOST || x->at > f->extents ||
            x->n > f->extents - x->at)
            return damaged(in);
        in->nbytes += x->n;
        in->room = x->n > in->room ? (size_t)x->n : in->room;
    }
    in->buf = malloc(in->room + 1);
    return in->buf || dedup_fail(in->job, "out of memory");
}

bool piece_open(struct dedup_job *job, const struct staged *st,
                enum stage stage, uint64_t task, uint64_t piece,
                struct piece_in *in)
{
    uint64_t nbytes;
    *in = (struct piece_in){ .job = job,
                             .fd = -1,
                             .path = part_path(st, stage, task) };
    if (!in->path)
        return dedup_fail(job, "out of memory");
    in->fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = in->fd >= 0;
    if (!ok && errno == ENOENT && stage == STAGE_PLAN)
        dedup_fail(job, "%s: not there; bloomery dedup split makes it",
                   in->path);
    else if (!ok && errno == ENOENT)
        dedup_fail(
            job, "%s: not there; run bloomery dedup task %s %s %llu first",
            in->path, st->folder, stage_names[stage], (unsigned long long)task);
    else if (!ok)
        dedup_fail(job, "%s: %s", in->path, strerror(errno));
    const char *const why =
        ok ? foot_wrong(in->fd, st, stage, task, &in->foot, &nbytes) : NULL;
    if (why)
        ok = dedup_fail(job, "%s: %s; delete it and run its task again",
                        in->path, why);
    ok = ok && open_piece(in, piece);
    if (!ok)
        piece_close(in);
    return ok;
}

void piece_rest(struct piece_in *in)
{
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
    in->rests = true;
}

/* An extent into the buffer, compared with its checksum. */
static bool load_extent(struct piece_in *in, const struct extent *x)
{
    in->some = false;
    if (in->rests)
        in->fd = open(in->path, O_RDONLY | O_CLOEXEC);
    const bool ok = in->fd >= 0 &&
                    read_bytes_at(in->fd, in->buf, x->n, x->at) &&
                    dedup_chain(in->foot.run, in->buf, (size_t)x->n) == x->sum;
    if (in->rests)
        piece_rest(in);
    return ok || damaged(in);
}

bool piece_read(struct piece_in *in, void *buf, size_t n, bool *ended)
{
    unsigned char *to = buf;
    *ended = in->at == in->n && in->next == in->nextents;
    if (*ended)
        return false;
    while (n) {
        if (in->at == in->n) {
            if (in->next == in->nextents ||
                !load_extent(in, &in->extents[in->next]))
                return damaged(in);
            in->n = (size_t)in->extents[in->next++].n;
            in->at = 0;
        }
        const size_t fit = in->n - in->at < n ? in->n - in->at : n;
        memcpy(to, in->buf + in->at, fit);
        in->at += fit;
        to += fit;
        n -= fit;
    }
    return true;
}

bool piece_get(struct piece_in *in, void *buf, size_t n)
{
    bool ended;
    return n == 0 || piece_read(in, buf, n, &ended) || damaged(in);
}

/* All extents of a piece but the last are of one size. */
static const struct extent *extent_at(const struct piece_in *in, uint64_t at,
                                      uint64_t *inside)
{
    const uint64_t each = in->nextents ? in->extents[0].n : 1;
    *inside = at % each;
    return at / each < in->nextents ? &in->extents[at / each] : NULL;
}

bool piece_at(struct piece_in *in, uint64_t at, void *buf, size_t n)
{
    char *to = buf;
    while (n) {
        uint64_t inside;
        const struct extent *const x = extent_at(in, at, &inside);
        if (!x || inside >= x->n)
            return damaged(in);
        const size_t fit = x->n - inside < n ? (size_t)(x->n - inside) : n;
        if (!read_bytes_at(in->fd, to, fit, x->at + inside))
            return damaged(in);
        to += fit;
        at += fit;
        n -= fit;
    }
    return true;
}

bool piece_near(struct piece_in *in, uint64_t at, void *buf, size_t n)
{
    char *to = buf;
    while (n) {
        uint64_t inside;
        const struct extent *const x = extent_at(in, at, &inside);
        if (!x || inside >= x->n)
            return damaged(in);
        if (!in->some || in->near.at != x->at) {
            if (!load_extent(in, x))
                return false;
            in->near = *x;
            in->some = true;
        }
        const size_t fit = x->n - inside < n ? (size_t)(x->n - inside) : n;
        memcpy(to, in->buf + inside, fit);
        to += fit;
        at += fit;
        n -= fit;
    }
    return true;
}

void piece_close(struct piece_in *in)
{
    if (in->fd >= 0)
        close(in->fd);
    free(in->path);
    free(in->extents);
    free(in->buf);
    *in = (struct piece_in){ .fd = -1 };
}
