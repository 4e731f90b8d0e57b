/*
 * filter_files.c - filters and deltas in files: save, open, update
 *
 * writer.c and reader.c define the bytes, and replace.c replaces files; here
 * the two meet.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/sized.h"
#include "core/status.h"
#include "format/combine.h"
#include "format/filter_files.h"
#include "format/reader.h"
#include "format/replace.h"

/* ----------------------------------------------------------------- saving */

typedef struct out_file {
    int fd;
    int err; /* of the write that failed */
} out_file;

static bool put_file(void *ctx, const void *bytes, size_t nbytes)
{
    out_file *out = ctx;
    out->err = bly_fd_write(out->fd, bytes, nbytes);
    return !out->err;
}

static bly_status fill_file(void *ctx, const char *name, int fd)
{
    const bly_writing *w = ctx;
    out_file out = { .fd = fd };
    const bly_status st = w->write(w->what, put_file, &out);
    return out.err ? bly_io_fail(name, "written", out.err) : st;
}

bly_status bly_file_save(const char *path, bly_wait *wait, void *wait_ctx,
                         bly_writes *write, const void *what)
{
    if (!path || !write)
        return bly_fail_null("path or write");
    bly_writing w = { write, what };
    bly_target t;
    bly_status st = bly_target_open(path, wait, wait_ctx, &t);
    if (!st)
        st = bly_target_replace(&t, fill_file, &w);
    bly_target_close(&t);
    return st;
}

/* Small pieces are gathered. */
#define DRAFT_BYTES ((size_t)128 << 10)

struct bly_draft {
    bly_target t;
    int err;      /* of the first write that failed */
    bool skipped; /* zeros are left out: the size has to be set */
    size_t n;     /* bytes in buf */
    unsigned char buf[DRAFT_BYTES];
    char path[];
};

/* How a target is opened. */
typedef bly_status draft_opens(const char *path, bly_wait *wait, void *wait_ctx,
                               bly_target *t);

static bly_status draft_make(draft_opens *open_target, const char *path,
                             bly_wait *wait, void *ctx, bly_draft **out)
{
    const size_t npath = strlen(path) + 1;
    bly_draft *d = malloc(sizeof *d + npath);
    if (!d)
        return bly_fail(BLY_ENOMEM, "out of memory");
    d->err = 0;
    d->skipped = false;
    d->n = 0;
    memcpy(d->path, path, npath);
    bly_status st = open_target(d->path, wait, ctx, &d->t);
    if (!st)
        st = bly_target_begin(&d->t);
    if (st) {
        bly_draft_abandon(d);
        return st;
    }
    *out = d;
    return BLY_OK;
}

bly_status bly_draft_new(const char *path, bly_wait *wait, void *ctx,
                         bly_draft **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!path)
        return bly_fail_null("path");
    return draft_make(bly_target_open, path, wait, ctx, out);
}

bly_status bly_draft_new_in(int folder, const char *name, bly_wait *wait,
                            void *ctx, bly_draft **out)
{
    char path[32 + NAME_MAX + 1];
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!name)
        return bly_fail_null("name");
    if (!name[0] || strchr(name, '/') || strlen(name) > NAME_MAX)
        return bly_fail(BLY_EINVAL,
                        "'%s' is not the name of a file in a folder", name);
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", folder, name);
    const bly_status st =
        draft_make(bly_target_open_file, path, wait, ctx, out);
    if (!st) /* what the caller calls it */
        (*out)->t.name = strrchr((*out)->path, '/') + 1;
    return st;
}

static void draft_flush(bly_draft *d)
{
    if (!d->err)
        d->err = bly_fd_write(d->t.fd, d->buf, d->n);
    d->n = 0;
}

bool bly_draft_put(void *draft, const void *bytes, size_t nbytes)
{
    bly_draft *d = draft;
    if (!d)
        return false;
    if (nbytes > DRAFT_BYTES - d->n)
        draft_flush(d);
    if (nbytes > DRAFT_BYTES) {
        if (!d->err)
            d->err = bly_fd_write(d->t.fd, bytes, nbytes);
    } else if (nbytes) {
        memcpy(d->buf + d->n, bytes, nbytes);
        d->n += nbytes;
    }
    return !d->err || !bly_io_fail(d->path, "written", d->err);
}

bool bly_draft_skip(bly_draft *d, uint64_t nbytes)
{
    static const unsigned char zeros[4096];
    if (!d)
        return false;
    draft_flush(d);
    if (!d->err && !d->t.special && nbytes <= INT64_MAX &&
        lseek(d->t.fd, (off_t)nbytes, SEEK_CUR) >= 0) {
        d->skipped = true;
        return true;
    }
    /* A pipe has no places to skip, nor does a device keep them. */
    for (size_t some; nbytes; nbytes -= some) {
        some = nbytes < sizeof zeros ? (size_t)nbytes : sizeof zeros;
        if (!bly_draft_put(d, zeros, some))
            return false;
    }
    return !d->err;
}

bly_status bly_draft_commit(bly_draft *d)
{
    if (!d)
        return bly_fail_null("d");
    return bly_draft_swap(d, NULL);
}

bly_status bly_draft_swap(bly_draft *d, const bly_swap *how)
{
    if (!d)
        return bly_fail_null("d");
    draft_flush(d);
    if (!d->err && d->skipped) {
        const off_t end = lseek(d->t.fd, 0, SEEK_CUR);
        if (end < 0 || ftruncate(d->t.fd, end))
            d->err = errno;
    }
    d->t.swap = how;
    const bly_status st = d->err ? bly_io_fail(d->path, "written", d->err)
                                 : bly_target_commit(&d->t);
    bly_draft_abandon(d);
    return st;
}

void bly_draft_abandon(bly_draft *d)
{
    if (d)
        bly_target_close(&d->t);
    free(d);
}

bly_status bly_scratch_file(const char *folder, int *fd)
{
    if (!folder || !fd)
        return bly_fail_null("folder or fd");
    *fd = bly_scratch_open(folder);
    if (*fd >= 0)
        return BLY_OK;
    char name[512];
    const int err = errno;
    snprintf(name, sizeof name, "a temporary file in %s", folder);
    const bly_status st = bly_io_fail(name, "made", err);
    errno = err;
    return st;
}

static bly_status write_filter(const void *what, bly_put *put, void *ctx)
{
    return bly_write(what, put, ctx);
}

bly_status bly_save(const bly_filter *f, const char *path)
{
    if (!f || !path)
        return bly_fail_null("f or path");
    return bly_file_save(path, NULL, NULL, write_filter, f);
}

typedef struct two_versions {
    const bly_filter *from, *to;
    bly_delta *info;
    size_t size; /* of *info */
} two_versions;

static bly_status write_delta(const void *what, bly_put *put, void *ctx)
{
    const two_versions *v = what;
    return bly_delta_write_sized(v->from, v->to, put, ctx, v->info, v->size);
}

bly_status bly_delta_save_sized(const bly_filter *from, const bly_filter *to,
                                const char *path, bly_delta *info, size_t size)
{
    if (!from || !to || !path)
        return bly_fail_null("from or to or path");
    const two_versions v = { from, to, info, size };
    return bly_file_save(path, NULL, NULL, write_delta, &v);
}

/* ---------------------------------------------------------------- opening */

bly_status bly_named_fail(bly_status st, const char *path)
{
    char line[1024];
    if (!st)
        return BLY_OK;
    /* bly_fail() writes to where bly_error() points. */
    snprintf(line, sizeof line, "%s", bly_error());
    return bly_fail(st, "%s: %s", path, line);
}

bly_status bly_file_open(const char *path, bly_file *out)
{
    struct stat st;
    const int fd = bly_fd_open(path, O_RDONLY);
    if (fd < 0)
        return bly_io_fail(path, "read", errno);
    int err = fstat(fd, &st) ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
    if (err) {
        close(fd);
        return bly_io_fail(path, "read", err);
    }
    *out = (bly_file){ .fd = fd, .nbytes = BLY_SIZE_UNKNOWN };
    if (S_ISREG(st.st_mode))
        out->nbytes = (uint64_t)st.st_size;
    return BLY_OK;
}

int64_t bly_file_get(void *file, void *buf, size_t nbytes)
{
    bly_file *in = file;
    const int64_t got = bly_fd_read(in->fd, buf, nbytes);
    in->err = got < 0 ? errno : 0;
    return got;
}

static bly_status read_file(bly_file *in, const char *path,
                            const bly_access *how, void *out)
{
    const bly_source src = {
        .get = bly_file_get,
        .ctx = in,
        .nbytes = in->nbytes,
        .roomy = true,
    };
    const bly_status st = bly_source_read(&src, how, out);
    return in->err ? bly_io_fail(path, "read", in->err)
                   : bly_named_fail(st, path);
}

bly_status bly_file_with(bly_file_take *take, const char *path,
                         const bly_access *how, void *out, size_t size)
{
    bly_access own;
    if (!out || !path)
        return bly_fail_null(out ? "path" : "out");
    if (how && !(how = BLY_TAKE(how, size, &own)))
        return BLY_EINVAL;
    bly_file in;
    bly_status st = bly_file_open(path, &in);
    if (st)
        return st;
    st = take(&in, path, how, out);
    close(in.fd);
    return st;
}

bly_status bly_open_sized(const char *path, const bly_access *how,
                          bly_filter **out, size_t size)
{
    if (out)
        *out = NULL;
    return bly_file_with(read_file, path, how, out, size);
}

bly_status bly_file_combine(const char *path, bly_combination how,
                            bly_filter *dst)
{
    bly_file in;
    bly_status st = bly_file_open(path, &in);
    if (st)
        return st;
    const bly_source src = {
        .get = bly_file_get,
        .ctx = &in,
        .nbytes = in.nbytes,
    };
    st = bly_source_combine(&src, how, dst);
    st = in.err ? bly_io_fail(path, "read", in.err) : bly_named_fail(st, path);
    close(in.fd);
    return st;
}

/* --------------------------------------------------------------- changing */

/* Open the target that path names, which is to be changed. Nothing may be
 * there: t->lock tells. */
static bly_status target_to_change(const char *path, const bly_access *how,
                                   bly_target *t)
{
    const bly_status st = bly_target_open(path, how ? how->wait : NULL,
                                          how ? how->wait_ctx : NULL, t);
    if (!st && t->special)
        return bly_fail(BLY_EIO,
                        "%s: cannot be changed: not a regular file "
                        "(name one, or write a new one)",
                        path);
    if (!st && t->no_lock)
        return bly_io_fail(path, "locked", t->no_lock);
    return st;
}

/* Take the lock of the file in path, which is made of what `first` writes if it
 * is not there; t->lock is then at the beginning of it. */
static bly_status target_lock(const char *path, const bly_access *how,
                              const bly_writing *first, bly_target *t)
{
    for (;;) {
        bly_status st = target_to_change(path, how, t);
        if (st || t->lock >= 0)
            return st;
        if (!first)
            return bly_io_fail(path, "changed", ENOENT);
        bly_writing w = *first;
        t->only_new = true;
        st = bly_target_replace(t, fill_file, &w);
        bly_target_next(t);
        t->only_new = false;
        if (!st && lseek(t->lock, 0, SEEK_SET))
            return bly_io_fail(path, "read", errno);
        if (st != BLY_EBUSY)
            return st;
        /* Another process made it first: use that one. */
        bly_target_close(t);
    }
}

bly_status bly_file_change(const char *path, const bly_access *how,
                           const bly_writing *first, bly_file_reads *read,
                           bly_writes *write, void *what)
{
    bly_target t;
    bly_status st = target_lock(path, how, first, &t);
    if (!st) {
        bly_file in = { .fd = t.lock, .nbytes = (uint64_t)t.old.st_size };
        st = read(what, path, &in);
    }
    if (!st)
        st = bly_target_replace(&t, fill_file, &(bly_writing){ write, what });
    bly_target_close(&t);
    return st;
}

typedef struct update {
    const bly_access *how;
    bly_change *change;
    void *ctx;
    bly_filter *f;
} update;

static bly_status update_read(void *what, const char *path, bly_file *in)
{
    update *const u = what;
    const bly_status st = read_file(in, path, u->how, &u->f);
    return st ? st : u->change(u->f, u->ctx);
}

static bly_status update_write(const void *what, bly_put *put, void *ctx)
{
    return bly_write(((const update *)what)->f, put, ctx);
}

bly_status bly_update_sized(const char *path, const bly_access *how,
                            bly_change *change, void *ctx, size_t size)
{
    bly_access own;
    if (!path || !change)
        return bly_fail_null("path or change");
    if (how && !(how = BLY_TAKE(how, size, &own)))
        return BLY_EINVAL;
    update u = { how, change, ctx, NULL };
    const bly_status st =
        bly_file_change(path, how, NULL, update_read, update_write, &u);
    bly_free(u.f);
    return st;
}

/* ---------------------------------------------------------------- keeping */

struct bly_keeper {
    bly_target t;
    bly_filter *f;
    char path[];
};

static bly_status keeper_put(bly_keeper *k, const bly_filter *f)
{
    const bly_status st =
        bly_target_replace(&k->t, fill_file, &(bly_writing){ write_filter, f });
    bly_target_next(&k->t);
    return st;
}

bly_status bly_keeper_new_sized(const char *path, const bly_access *how,
                                const bly_filter *first, bly_keeper **out,
                                size_t size)
{
    bly_access own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!path)
        return bly_fail_null("path");
    if (how && !(how = BLY_TAKE(how, size, &own)))
        return BLY_EINVAL;
    const size_t npath = strlen(path) + 1;
    bly_keeper *const k = malloc(sizeof *k + npath);
    if (!k)
        return bly_fail(BLY_ENOMEM, "out of memory");
    k->f = NULL;
    memcpy(k->path, path, npath);
    bly_status st = target_lock(
        k->path, how, first ? &(bly_writing){ write_filter, first } : NULL,
        &k->t);
    if (!st) {
        bly_file in = { .fd = k->t.lock, .nbytes = (uint64_t)k->t.old.st_size };
        st = read_file(&in, path, how, &k->f);
    }
    if (st) {
        bly_keeper_free(k);
        return st;
    }
    *out = k;
    return BLY_OK;
}

bly_filter *bly_keeper_filter(bly_keeper *k)
{
    return k->f;
}

bly_status bly_keeper_save(bly_keeper *k)
{
    return k ? keeper_put(k, k->f) : bly_fail_null("k");
}

void bly_keeper_free(bly_keeper *k)
{
    if (!k)
        return;
    bly_target_close(&k->t);
    bly_free(k->f);
    free(k);
}
