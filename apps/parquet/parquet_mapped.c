/*
 * parquet_mapped.c - a Parquet file, mapped and written again with filters
 *
 * Everything is read before anything is written. The new file is the old one's
 * data, copied, with filters and a footer behind; it takes its name when it is
 * whole and on disk. If the old file was changed between its first and its last
 * byte, by size, time or footer, there is no new one.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/parquet/parquet_job.h"

/* What a file was when it was opened. */
struct parquet_mark {
    struct stat st;
    size_t nfooter;
    unsigned char footer[]; /* with the 8 bytes behind it */
};

bool parquet_fail(struct parquet_error *e, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(e->text, sizeof e->text, format, ap);
    va_end(ap);
    return false;
}

bool parquet_fail_library(struct parquet_error *e)
{
    return parquet_fail(e, "%s", bly_error());
}

static bool file_fail(struct parquet_error *e, const char *path, int error)
{
    return parquet_fail(e, "%s: %s", path, strerror(error));
}

/* Read the last n bytes of a file of nbytes. */
static bool tail_read(int fd, size_t nbytes, unsigned char *to, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t got =
            pread(fd, to + done, n - done, (off_t)(nbytes - n + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool file_map(struct parquet_file *f, struct parquet_error *e)
{
    struct stat st;
    if (fstat(f->fd, &st))
        return file_fail(e, f->path, errno);
    if (!S_ISREG(st.st_mode))
        return parquet_fail(e,
                            "%s: not a regular file, and a Parquet file is "
                            "read from its end",
                            f->path);
    if (st.st_size == 0)
        return parquet_fail(e, "%s: empty", f->path);
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return parquet_fail(e, "%s: too large for this machine", f->path);
    f->nbytes = (size_t)st.st_size;
    void *const at = mmap(NULL, f->nbytes, PROT_READ, MAP_PRIVATE, f->fd, 0);
    if (at == MAP_FAILED)
        return file_fail(e, f->path, errno);
    f->bytes = at;
    if (bly_parquet_open(f->bytes, f->nbytes, NULL, &f->p))
        return parquet_fail(e, "%s: %s", f->path, bly_error());
    bly_parquet_shape shape;
    bly_parquet_stat(f->p, &shape);
    const size_t nfooter = (size_t)shape.footer_bytes + 8;
    f->mark = malloc(sizeof *f->mark + nfooter);
    if (!f->mark)
        return parquet_fail(e, "out of memory");
    f->mark->st = st;
    f->mark->nfooter = nfooter;
    return tail_read(f->fd, f->nbytes, f->mark->footer, nfooter) ||
           parquet_fail(e, "%s: changed while it was read", f->path);
}

bool parquet_file_open(struct parquet_file *f, const char *path,
                       struct parquet_error *e)
{
    *f = (struct parquet_file){ .path = path };
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return file_fail(e, path, errno);
    if (file_map(f, e))
        return true;
    parquet_file_close(f);
    return false;
}

void parquet_file_close(struct parquet_file *f)
{
    bly_parquet_free(f->p);
    if (f->bytes)
        munmap((void *)(uintptr_t)f->bytes, f->nbytes);
    if (f->fd >= 0)
        close(f->fd);
    free(f->mark);
    *f = (struct parquet_file){ .fd = -1 };
}

/* Is it still what it was? */
static bool parquet_file_same(const struct parquet_file *f,
                              struct parquet_error *e)
{
    const struct parquet_mark *const m = f->mark;
    struct stat st;
    if (fstat(f->fd, &st))
        return file_fail(e, f->path, errno);
    unsigned char *const footer = malloc(m->nfooter);
    if (!footer)
        return parquet_fail(e, "out of memory");
    const bool same = st.st_size == m->st.st_size &&
                      st.st_mtim.tv_sec == m->st.st_mtim.tv_sec &&
                      st.st_mtim.tv_nsec == m->st.st_mtim.tv_nsec &&
                      tail_read(f->fd, f->nbytes, footer, m->nfooter) &&
                      memcmp(footer, m->footer, m->nfooter) == 0;
    free(footer);
    return same || parquet_fail(e,
                                "%s: changed while it was read; run it "
                                "again when nobody writes to it",
                                f->path);
}

bool parquet_blame(const struct parquet_file *f, struct parquet_error *e)
{
    struct parquet_error changed;
    if (!parquet_file_same(f, &changed))
        *e = changed;
    return false;
}

bool parquet_put(const struct parquet_file *f, bly_put *put, void *ctx,
                 struct parquet_error *e)
{
    if (bly_parquet_write(f->p, put, ctx)) {
        parquet_fail_library(e);
        return parquet_blame(f, e);
    }
    return parquet_file_same(f, e);
}

struct saving {
    const struct parquet_file *file;
    struct parquet_error *error;
    bool changed;
};

static bly_status save_write(const void *what, bly_put *put, void *ctx)
{
    struct saving *const s = (struct saving *)(uintptr_t)what;
    const bly_status st = bly_parquet_write(s->file->p, put, ctx);
    if (st)
        return st;
    s->changed = !parquet_file_same(s->file, s->error);
    return s->changed ? BLY_EIO : BLY_OK;
}

bool parquet_save(const struct parquet_file *f, const char *path,
                  struct parquet_error *e)
{
    struct saving s = { .file = f, .error = e };
    if (bly_file_save(path, f->wait, NULL, save_write, &s) == BLY_OK)
        return true;
    if (s.changed)
        return false;
    parquet_fail_library(e);
    return parquet_blame(f, e);
}
