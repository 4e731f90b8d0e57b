/*
 * windows_replace.c - a new version in the place of a file, on Windows
 *
 * A draft with a name beside the file, flushed, then moved over it. Unlike
 * src/format/replace.c it takes no lock: of two writers at once the later one
 * wins. Rights are those of a new file, and a draft stays behind after a crash.
 */
#include "format/replace.h"

#include <direct.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/status.h"

#define AT_ONCE ((size_t)1 << 30)

bly_status bly_io_fail(const char *name, const char *done, int err)
{
    return bly_fail(BLY_EIO, "%s: cannot be %s: %s", name, done, strerror(err));
}

/* -------------------------------------------------------------------- bytes */

int bly_fd_open(const char *path, int flags)
{
    return _open(path, flags | O_NOINHERIT | O_BINARY);
}

int bly_fd_write(int fd, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n) {
        const int put = _write(fd, p, (unsigned)(n < AT_ONCE ? n : AT_ONCE));
        if (put <= 0)
            return put ? errno : ENOSPC;
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

int64_t bly_fd_read(int fd, void *buf, size_t n)
{
    unsigned char *const p = buf;
    size_t done = 0;
    while (done < n) {
        const size_t left = n - done;
        const int got =
            _read(fd, p + done, (unsigned)(left < AT_ONCE ? left : AT_ONCE));
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

/* A new file beside `path`, whose name is put into draft. */
static int draft_beside(const char *path, char *draft, size_t room, int flags)
{
    static LONG volatile count;
    const int n = snprintf(draft, room, "%s.%lx-%lx.tmp", path,
                           (unsigned long)GetCurrentProcessId(),
                           (unsigned long)InterlockedIncrement(&count));
    if (n < 0 || (size_t)n >= room) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return _open(draft,
                 O_RDWR | O_CREAT | O_EXCL | O_BINARY | O_NOINHERIT | flags,
                 _S_IREAD | _S_IWRITE);
}

int bly_scratch_open(const char *folder)
{
    char beside[PATH_MAX], draft[PATH_MAX];
    if (folder)
        snprintf(beside, sizeof beside, "%s/bloomery", folder);
    else if (GetTempPathA(sizeof beside - 16, beside))
        strcat(beside, "bloomery");
    else
        return -1;
    return draft_beside(beside, draft, sizeof draft, O_TEMPORARY);
}

bly_status bly_folder_make(const char *path)
{
    if (!path)
        return bly_fail_null("path");
    return _mkdir(path) && errno != EEXIST ? bly_io_fail(path, "made", errno)
                                           : BLY_OK;
}

/* ------------------------------------------------------------------- target */

static void old_open(bly_target *t)
{
    t->lock = bly_fd_open(t->path, O_RDONLY);
    if (t->lock >= 0 && fstat(t->lock, &t->old)) {
        close(t->lock);
        t->lock = -1;
    }
}

bly_status bly_target_open(const char *path, bly_wait *wait, void *wait_ctx,
                           bly_target *t)
{
    *t = (bly_target){ .name = path,
                       .lock = -1,
                       .wait = wait,
                       .wait_ctx = wait_ctx,
                       .fd = -1,
                       .dir = -1 };
    if (strlen(path) + 48 >= sizeof t->path)
        return bly_io_fail(path, "written", ENAMETOOLONG);
    strcpy(t->path, path);
    old_open(t);
    return BLY_OK;
}

bly_status bly_target_open_file(const char *path, bly_wait *wait,
                                void *wait_ctx, bly_target *t)
{
    (void)path, (void)wait, (void)wait_ctx;
    *t = (bly_target){ .name = path, .lock = -1, .fd = -1, .dir = -1 };
    return bly_fail(BLY_ENOTSUP, "Windows has no descriptors of folders");
}

/* The draft's whole name is the target's with an ending: t->draft has that. */
static void draft_path(const bly_target *t, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s%s", t->path, t->draft);
}

bly_status bly_target_begin(bly_target *t)
{
    char path[PATH_MAX];
    t->fd = draft_beside(t->path, path, sizeof path, 0);
    if (t->fd < 0)
        return bly_io_fail(t->name, "written", errno);
    snprintf(t->draft, sizeof t->draft, "%s", path + strlen(t->path));
    return BLY_OK;
}

static void draft_drop(bly_target *t)
{
    char path[PATH_MAX];
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
    draft_path(t, path);
    if (t->draft[0])
        _unlink(path);
    t->draft[0] = '\0';
}

bly_status bly_target_commit(bly_target *t)
{
    char path[PATH_MAX];
    int err = 0;
    if (t->swap && t->swap->finish && !t->swap->finish(t->swap->ctx, t->fd))
        err = errno;
    if (!err && fsync(t->fd))
        err = errno;
    if (!err && t->swap && t->swap->same) {
        const int old = bly_fd_open(t->path, O_RDONLY);
        const bool same = t->swap->same(t->swap->ctx, old, false);
        if (old >= 0)
            close(old);
        if (!same)
            return bly_fail(
                BLY_EBUSY, "%s: changed meanwhile, and left as it is", t->name);
    }
    draft_path(t, path);
    close(t->fd);
    t->fd = -1;
    if (t->lock >= 0) /* what is open cannot be replaced */
        close(t->lock);
    t->lock = -1;
    if (!err &&
        !MoveFileExA(path, t->path,
                     MOVEFILE_WRITE_THROUGH |
                         (t->only_new ? 0 : MOVEFILE_REPLACE_EXISTING))) {
        if (t->only_new && GetLastError() == ERROR_ALREADY_EXISTS)
            return bly_fail(BLY_EBUSY, "%s: is there already", t->name);
        err = EACCES;
    }
    if (err)
        return bly_io_fail(t->name, "written", err);
    t->draft[0] = '\0';
    t->placed = true;
    return BLY_OK;
}

bly_status bly_target_replace(bly_target *t, bly_fill *fill, void *ctx)
{
    bly_status st = bly_target_begin(t);
    st = st ? st : fill(ctx, t->name, t->fd);
    return st ? st : bly_target_commit(t);
}

void bly_target_next(bly_target *t)
{
    draft_drop(t);
    t->placed = false;
    if (t->lock < 0)
        old_open(t);
}

void bly_target_close(bly_target *t)
{
    draft_drop(t);
    if (t->lock >= 0)
        close(t->lock);
    t->lock = -1;
}
