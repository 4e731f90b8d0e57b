/*
 * replace.c - a new version in the place of a file, whole or not at all
 *
 * Whoever opens the path finds the old file or the new one, whatever happens
 * in between, a power cut included; and of two that change it at once, the
 * second starts from what the first has left.
 *
 *     lock    open the old file, flock() it; if the path names another file
 *             by now, somebody replaced it meanwhile: open that one instead
 *     draft   a file without a name (O_TMPFILE) in the same folder: if this
 *             process dies, it is gone
 *     fill    the new bytes, the old permissions, fsync()
 *     place   give the draft a temporary name, rename() that over the target,
 *             fsync() the folder: from here on it lasts
 *     unlock  close the old file, which has no name any more
 *
 * Where there is no old file there is nothing to lock, and the draft gets the
 * target's name at once; if that name has come into being meanwhile, the link
 * fails, and the new file is locked and replaced like any other.
 *
 * Some file systems have no files without a name, and some systems no /proc
 * to give them one through. There the draft has its temporary name from the
 * start (.NAME.XXXXXX.tmp), a process that is killed leaves it behind, and of
 * two that create one file at the same moment the later one wins.
 *
 * A symbolic link is followed and stays. Permission bits are kept, and owner
 * and group where the caller may set them; a second hard link keeps the old
 * contents. Pipes, terminals and devices are written to as they are.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "core/bits.h"
#include "core/status.h"
#include "format/replace.h"

/* ----------------------------------------------------------------- errors */

bly_status bly_io_fail(const char *name, const char *done, int err)
{
    static const struct {
        int err;
        const char *advice;
    } rows[] = {
        { ENOSPC, "free some space and run it again" },
        { EDQUOT, "free some space and run it again" },
        { ENOENT, "check the name; folders must exist" },
        { ENOTDIR, "check the name; folders must exist" },
        { EISDIR, "name a file" },
        { EACCES, "ask for permission, or choose another file" },
        { EPERM, "ask for permission, or choose another file" },
        { EROFS, "choose a folder on another file system" },
        { EFBIG, "raise the limit on file sizes, or choose another disk" },
        { EMFILE, "close some files, or raise the limit on open files" },
        { ENFILE, "close some files, or raise the limit on open files" },
        { EIO, "check the disk, then run it again" },
        { ENOLCK, "copy it to a disk of this machine" },
        { ENOSYS, "copy it to a disk of this machine" },
        { EOPNOTSUPP, "copy it to a disk of this machine" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].err == err)
            return bly_fail(BLY_EIO, "%s: cannot be %s: %s (%s)", name, done,
                            strerror(err), rows[i].advice);
    return bly_fail(BLY_EIO, "%s: cannot be %s: %s", name, done, strerror(err));
}

static bly_status write_fail(const bly_target *t, int err)
{
    return bly_io_fail(t->name, "written", err);
}

/* ------------------------------------------------------------------ bytes */

/* Linux moves at most 2 GiB at once; round numbers are kinder to the disk. */
#define IO_AT_ONCE ((size_t)1 << 30)

int bly_fd_open(const char *path, int flags)
{
    for (;;) {
        const int fd = open(path, flags | O_CLOEXEC);
        if (fd >= 0 || errno != EINTR)
            return fd;
    }
}

int bly_fd_write(int fd, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n) {
        const ssize_t put = write(fd, p, n < IO_AT_ONCE ? n : IO_AT_ONCE);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno;
        if (put == 0)
            return ENOSPC; /* a device at its end */
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

int64_t bly_fd_read(int fd, void *buf, size_t n)
{
    unsigned char *p = buf;
    size_t done = 0;
    while (done < n) {
        const size_t left = n - done;
        const ssize_t got =
            read(fd, p + done, left < IO_AT_ONCE ? left : IO_AT_ONCE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

/* ----------------------------------------------------------------- target */

/* The last part of a path. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Copy path to t->path and follow it there for as long as its last part is a
 * symbolic link; those before it are the system's to follow. 0 or an errno. */
static int follow_links(const char *path, bly_target *t)
{
    char to[PATH_MAX];
    if (strlen(path) >= sizeof t->path)
        return ENAMETOOLONG;
    strcpy(t->path, path);
    for (int i = 0; i < 40; i++) { /* as many as Linux itself follows */
        const ssize_t n = readlink(t->path, to, sizeof to - 1);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : errno;
        to[n] = '\0';
        char *base = to[0] == '/' ? t->path : (char *)base_of(t->path);
        if ((size_t)(base - t->path) + (size_t)n >= sizeof t->path)
            return ENAMETOOLONG;
        strcpy(base, to);
    }
    return ELOOP;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Some network file systems cannot lock. Who replaces a file goes on without;
 * who changes one looks at t->no_lock. */
static bool lock_unknown(int err)
{
    return err == ENOLCK || err == ENOSYS || err == EOPNOTSUPP;
}

/* Lock the file that t->path names and stay with it until it is still the one
 * named. 0 or an errno: ENOENT where there is none. */
static int lock_file(bly_target *t)
{
    for (;;) {
        struct stat now;
        /* For writing too: who may not write the file may not replace it, and
         * NFS locks exclusively only what is open for writing. */
        const int fd = bly_fd_open(t->path, O_RDWR);
        if (fd < 0)
            return errno;
        int err = 0;
        while (flock(fd, LOCK_EX)) {
            if (errno == EINTR)
                continue;
            if (!lock_unknown(errno))
                err = errno;
            t->no_lock = errno;
            break;
        }
        if (!err && fstat(fd, &t->old))
            err = errno;
        if (!err && stat(t->path, &now)) {
            err = errno == ENOENT ? 0 : errno;
            now = (struct stat){ 0 };
        }
        if (!err && same_file(&t->old, &now)) {
            t->lock = fd;
            return 0;
        }
        close(fd);
        if (err)
            return err;
    }
}

bly_status bly_target_open(const char *path, bly_target *t)
{
    struct stat st, followed;
    t->name = path;
    t->lock = -1;
    t->special = false;
    t->no_lock = 0;
    const bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT)
        return write_fail(t, errno);
    if (there && S_ISDIR(st.st_mode))
        return write_fail(t, EISDIR);
    int err = follow_links(path, t);
    if (err)
        return write_fail(t, err);
    if (*base_of(t->path) == '\0')
        return write_fail(t, EISDIR);
    if (!there)
        return BLY_OK;
    /* What /dev/stdout leads to may be a file that has no name any more: then
     * nothing is where the link says, and yet the path can be opened. */
    if (!S_ISREG(st.st_mode) || stat(t->path, &followed)) {
        t->special = stat(path, &st) == 0;
        return BLY_OK;
    }
    err = lock_file(t);
    return err && err != ENOENT ? write_fail(t, err) : BLY_OK;
}

void bly_target_close(bly_target *t)
{
    if (t->lock < 0)
        return;
    /* A process that was forked meanwhile has the lock too, and for as long
     * as it lives, unless it is given up in so many words. */
    (void)flock(t->lock, LOCK_UN);
    close(t->lock);
    t->lock = -1;
}

/* ------------------------------------------------------------------ draft */

typedef struct draft {
    int dir, fd;
    char name[NAME_MAX + 1]; /* in dir; "": has none */
} draft;

/* A name that nobody has, for a draft beside t. */
static void draft_name(const bly_target *t, char name[NAME_MAX + 1])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    char suffix[7] = { 0 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t x = bly_mix64((uint64_t)now.tv_sec * 1000000000 +
                           (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 40));
    for (int i = 0; i < 6; i++, x >>= 5)
        suffix[i] = digits[x & 31];
    /* A dot before, 11 bytes behind: the rest is for the name's beginning. */
    snprintf(name, NAME_MAX + 1, ".%.*s.%s.tmp", NAME_MAX - 12,
             base_of(t->path), suffix);
}

/* How often a name is tried anew when somebody has it: never twice, really. */
#define NAME_TRIES 100

/* Open the folder of t and a new file in it; d->fd is -1 on failure. 0 or an
 * errno. */
static int draft_open(const bly_target *t, bool named, draft *d)
{
    /* Where the old file was private, so is the draft from the start. */
    const mode_t mode = t->lock >= 0 ? 0600 : 0666;
    char folder[PATH_MAX];
    const size_t n = (size_t)(base_of(t->path) - t->path);
    memcpy(folder, t->path, n);
    strcpy(folder + n, n ? "" : ".");
    *d = (draft){ .dir = -1, .fd = -1 };
    d->dir = bly_fd_open(folder, O_RDONLY | O_DIRECTORY);
    if (d->dir < 0)
        return errno;
    if (!named) {
        d->fd = openat(d->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
        if (d->fd >= 0)
            return 0;
    }
    for (int i = 0; i < NAME_TRIES; i++) {
        draft_name(t, d->name);
        d->fd = openat(d->dir, d->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
                       mode);
        if (d->fd >= 0)
            return 0;
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    d->name[0] = '\0';
    return errno;
}

static void draft_close(draft *d)
{
    if (d->fd >= 0)
        close(d->fd);
    if (d->name[0])
        unlinkat(d->dir, d->name, 0);
    if (d->dir >= 0)
        close(d->dir);
}

/* Permissions, owner and group as the old file has them. If the group cannot
 * be kept, another one must not get its rights. 0 or an errno. */
static int draft_inherit(const bly_target *t, const draft *d)
{
    const struct stat *old = &t->old;
    struct stat new;
    mode_t mode = old->st_mode & 0777;
    if (fstat(d->fd, &new))
        return errno;
    if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) &&
        fchown(d->fd, old->st_uid, old->st_gid) &&
        fchown(d->fd, (uid_t)-1, old->st_gid))
        mode = (mode & 0707) | (mode & 07) << 3;
    return fchmod(d->fd, mode) ? errno : 0;
}

/* Link the draft, which has no name, to `name` in its folder. */
static int draft_link(const draft *d, const char *name)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", d->fd);
    return linkat(AT_FDCWD, self, d->dir, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

/* Give the draft its place; *unnameable where it has no name and cannot be
 * given one, so that a draft with a name must do. 0 or an errno. */
static int draft_place(bly_target *t, draft *d, bool *unnameable)
{
    const char *base = base_of(t->path);
    int err = 0;
    while (!d->name[0] && t->lock < 0) {
        err = draft_link(d, base);
        *unnameable = err && err != EEXIST;
        if (err != EEXIST)
            return err;
        /* So it is there now: replace it. Unless it is gone again. */
        err = lock_file(t);
        if (!err)
            err = draft_inherit(t, d);
        if (err && err != ENOENT)
            return err;
    }
    if (!d->name[0]) {
        char name[NAME_MAX + 1];
        for (int i = 0; i < NAME_TRIES; i++) {
            draft_name(t, name);
            err = draft_link(d, name);
            if (err != EEXIST)
                break;
        }
        *unnameable = err != 0;
        if (err)
            return err;
        strcpy(d->name, name);
    }
    /* The last chance of a network file system to complain. */
    const int fd = d->fd;
    d->fd = -1;
    if (close(fd) && errno != EINTR)
        return errno;
    if (renameat(d->dir, d->name, d->dir, base))
        return errno;
    d->name[0] = '\0';
    return 0;
}

/* Some file systems have nothing to sync in a folder, and pipes nothing at
 * all. 0 or an errno. */
static int sync_fd(int fd)
{
    while (fsync(fd)) {
        if (errno == EINVAL || errno == ENOTSUP)
            return 0;
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

static bly_status replace_once(bly_target *t, bool named, bly_fill *fill,
                               void *ctx, bool *unnameable)
{
    draft d;
    bly_status st = BLY_OK;
    int err = draft_open(t, named, &d);
    if (!err)
        st = fill(ctx, t->name, d.fd);
    if (!err && !st && t->lock >= 0)
        err = draft_inherit(t, &d);
    if (!err && !st)
        err = sync_fd(d.fd);
    if (!err && !st)
        err = draft_place(t, &d, unnameable);
    if (err) {
        st = write_fail(t, err);
    } else if (!st) {
        err = sync_fd(d.dir);
        if (err)
            st =
                bly_io_fail(t->name, "made to last, though it is written", err);
    }
    draft_close(&d);
    return st;
}

static bly_status write_special(const bly_target *t, bly_fill *fill, void *ctx)
{
    const int fd = bly_fd_open(t->name, O_WRONLY);
    if (fd < 0)
        return write_fail(t, errno);
    bly_status st = fill(ctx, t->name, fd);
    int err = st ? 0 : sync_fd(fd);
    if (err == EROFS) /* what some devices say instead */
        err = 0;
    if (close(fd) && !err && errno != EINTR)
        err = errno;
    return err && !st ? write_fail(t, err) : st;
}

bly_status bly_target_replace(bly_target *t, bly_fill *fill, void *ctx)
{
    bool unnameable = false;
    if (t->special)
        return write_special(t, fill, ctx);
    const bly_status st = replace_once(t, false, fill, ctx, &unnameable);
    if (!unnameable)
        return st;
    return replace_once(t, true, fill, ctx, &unnameable);
}
