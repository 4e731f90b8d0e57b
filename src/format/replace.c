/*
 * replace.c - a new version in the place of a file, whole or not at all
 *
 * A process that opens the path finds the old file or the new one, whatever
 * happens in between, a power cut included. If two processes change the file at
 * once, the second starts from the result of the first.
 *
 *     lock    open the old file, flock() it; if the path names another file
 *             by now, somebody replaced it meanwhile: open that one instead
 *     draft   a file without a name (O_TMPFILE) in the same folder: if this
 *             process dies, it is gone
 *     fill    the new bytes, the old rights (attributes.c), fsync()
 *     place   give the draft a temporary name, rename() that over the target,
 *             fsync() the folder: from here on it lasts
 *     unlock  close the old file, which has no name any more
 *
 * If there is no old file there is nothing to lock, and the draft gets the
 * target's name at once. If a file of that name has appeared meanwhile, the
 * link fails, and that file is locked and replaced like any other. A new file
 * has the rights that its folder and the umask give.
 *
 * Some file systems have no files without a name. There the draft has its
 * temporary name from the start, and if two processes create one file at the
 * same moment, the later one wins. If the draft has no name and cannot be given
 * one, because there is no /proc, it is copied to a file that has one.
 *
 * A process that is killed may leave a temporary name behind. These names are
 * few, .NAME.000000.tmp to .NAME.000007.tmp, and a process that uses one holds
 * a lock on its file. So the next writer of NAME need not search: it looks at
 * eight names, and a file whose lock can be taken belongs to nobody any more
 * and is removed. Random names are used only when all eight are in use, and
 * these stay if their writer is killed.
 *
 * A caller that has read the old file and must not lose what others write to
 * it meanwhile (t->swap) is asked when the draft is on disk whether the file is
 * still the same. Then the two exchange their names in one step, and it is
 * asked again, about what the draft has displaced: if that changed in the last
 * moment the names are exchanged back.
 *
 * A symbolic link is followed and stays. What the old file had besides its
 * bytes is kept as attributes.c says; a second hard link keeps the old
 * contents. Pipes, terminals and devices are written to as they are.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
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
    if (err == EWOULDBLOCK) {
        char holder[64];
        const size_t n = bly_lock_holder(t->path, holder, sizeof holder);
        return bly_fail(BLY_EBUSY,
                        "%s: another process is changing it%s%s; try again "
                        "when it is done, or wait longer",
                        t->name, n ? ", or holds its lock: " : "", holder);
    }
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

/* Some network file systems cannot lock. To replace a file, go on without a
 * lock; to change one, look at t->no_lock. */
static bool lock_unknown(int err)
{
    return err == ENOLCK || err == ENOSYS || err == EOPNOTSUPP;
}

/* What a path names: a link itself, where links are not followed. */
static int look_at(const bly_target *t, const char *path, struct stat *st)
{
    return t->no_link ? lstat(path, st) : stat(path, st);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* If the caller has a wait function, the lock is tried again and again: after a
 * millisecond, then after twice as long each time, up to this. */
#define PAUSE_MOST_MS 50

/* Wait for the lock of fd. 0 or an errno: EWOULDBLOCK where the caller does not
 * want to wait any longer. */
static int lock_wait(bly_target *t, int fd)
{
    long pause = 1;
    if (!t->wait) {
        while (flock(fd, LOCK_EX))
            if (errno != EINTR)
                return errno;
        return 0;
    }
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return errno;
        const uint64_t now = now_ms();
        if (!t->since)
            t->since = now;
        if (!t->wait(t->wait_ctx, t->name, now - t->since))
            return EWOULDBLOCK;
        nanosleep(&(struct timespec){ .tv_nsec = pause * 1000000 }, NULL);
        pause = 2 * pause < PAUSE_MOST_MS ? 2 * pause : PAUSE_MOST_MS;
    }
    return 0;
}

/* Lock the file that t->path names, and repeat until the locked file is still
 * the one named. 0 or an errno: ENOENT if there is none. */
static int lock_file(bly_target *t)
{
    for (;;) {
        struct stat now;
        /* For writing too: a process that may not write the file may not
         * replace it, and NFS locks exclusively only files open for writing. */
        const int fd =
            bly_fd_open(t->path, O_RDWR | (t->no_link ? O_NOFOLLOW : 0));
        if (fd < 0)
            return errno;
        int err = lock_wait(t, fd);
        t->no_lock = lock_unknown(err) ? err : 0;
        if (t->no_lock)
            err = 0;
        if (!err && fstat(fd, &t->old))
            err = errno;
        if (!err && look_at(t, t->path, &now)) {
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

static bly_target target_none(const char *path, bly_wait *wait, void *wait_ctx)
{
    return (bly_target){ .name = path,
                         .lock = -1,
                         .fd = -1,
                         .dir = -1,
                         .wait = wait,
                         .wait_ctx = wait_ctx };
}

bly_status bly_target_open_file(const char *path, bly_wait *wait,
                                void *wait_ctx, bly_target *t)
{
    struct stat st;
    *t = target_none(path, wait, wait_ctx);
    t->no_link = true;
    if (strlen(path) >= sizeof t->path)
        return write_fail(t, ENAMETOOLONG);
    strcpy(t->path, path);
    if (lstat(path, &st))
        return errno == ENOENT ? BLY_OK : write_fail(t, errno);
    const int err = S_ISREG(st.st_mode) ? lock_file(t) : ELOOP;
    /* A link or a device may have come in between. */
    if (err == ELOOP || (!err && !S_ISREG(t->old.st_mode)))
        return bly_fail(BLY_EIO, "%s: what is there is not a file", t->name);
    return err && err != ENOENT ? write_fail(t, err) : BLY_OK;
}

bly_status bly_target_open(const char *path, bly_wait *wait, void *wait_ctx,
                           bly_target *t)
{
    struct stat st, followed;
    *t = target_none(path, wait, wait_ctx);
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
    /* /dev/stdout may lead to a file that has no name any more: then nothing is
     * where the link says, and yet the path can be opened. */
    t->special = !S_ISREG(st.st_mode);
    if (!t->special && stat(t->path, &followed)) {
        /* Any other error would let a file be written over where it is. */
        if (errno != ENOENT)
            return write_fail(t, errno);
        t->special = stat(path, &st) == 0;
        if (!t->special && errno != ENOENT)
            return write_fail(t, errno);
        return BLY_OK;
    }
    if (t->special)
        return BLY_OK;
    err = lock_file(t);
    return err && err != ENOENT ? write_fail(t, err) : BLY_OK;
}

/* ------------------------------------------------------------------ draft */

/* Names that a killed process may leave behind, and the next one looks at. */
#define DRAFT_NAMES 8

/* How many names are tried: those, and then others by chance, which nobody has
 * twice, really. */
#define NAME_TRIES 100

/* Name number i for a draft beside t. */
static void draft_name(const bly_target *t, int i, char name[NAME_MAX + 1])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    char suffix[7] = { 0 };
    uint64_t x = (uint64_t)i << 25;
    if (i >= DRAFT_NAMES) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        x = bly_mix64((uint64_t)now.tv_sec * 1000000000 +
                      (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 40));
    }
    for (int j = 0; j < 6; j++, x >>= 5)
        suffix[j] = digits[x & 31];
    /* A dot before, 11 bytes behind: the rest is for the name's beginning. */
    snprintf(name, NAME_MAX + 1, ".%.*s.%s.tmp", NAME_MAX - 12,
             base_of(t->path), suffix);
}

/* Remove a draft that nobody writes any more. Under its lock: a writer that has
 * just made it, and not locked it yet, finds out (draft_lock()). */
static void draft_remove_stale(const bly_target *t, const char *name)
{
    struct stat st;
    const int how = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(t->dir, name, O_RDWR | how);
    if (fd < 0 && errno == EACCES) /* it may have got its last rights already */
        fd = openat(t->dir, name, O_RDONLY | how);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(t->dir, name, 0);
    close(fd);
}

static void draft_sweep(const bly_target *t)
{
    char name[NAME_MAX + 1];
    for (int i = 0; i < DRAFT_NAMES; i++) {
        draft_name(t, i, name);
        draft_remove_stale(t, name);
    }
}

/* Lock a draft for as long as it has its temporary name. False where somebody
 * took it for a stale one before it was locked. */
static bool draft_lock(int fd)
{
    struct stat st;
    return (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
           (fstat(fd, &st) || st.st_nlink > 0);
}

/* Where the old file was private, so is the draft from the start. */
static mode_t draft_mode(const bly_target *t)
{
    return t->lock >= 0 ? 0600 : 0666;
}

/* A new draft with a name, in the folder. 0 or an errno. */
static int draft_named(bly_target *t, mode_t mode)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        draft_name(t, i, t->draft);
        t->fd = openat(t->dir, t->draft, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC,
                       mode);
        if (t->fd >= 0 && draft_lock(t->fd))
            return 0;
        if (t->fd >= 0) {
            close(t->fd);
            t->fd = -1;
        } else if (errno != EEXIST && errno != EINTR) {
            break;
        }
    }
    t->draft[0] = '\0';
    return errno;
}

/* Open the folder of t and a new file in it. 0 or an errno. */
static int draft_open(bly_target *t, mode_t mode)
{
    char folder[PATH_MAX];
    const size_t n = (size_t)(base_of(t->path) - t->path);
    memcpy(folder, t->path, n);
    strcpy(folder + n, n ? "" : ".");
    t->dir = bly_fd_open(folder, O_RDONLY | O_DIRECTORY);
    if (t->dir < 0)
        return errno;
    draft_sweep(t);
    t->fd = openat(t->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (t->fd < 0)
        return draft_named(t, mode);
    (void)flock(t->fd, LOCK_EX | LOCK_NB);
    return 0;
}

static void draft_close(bly_target *t)
{
    if (t->draft[0])
        unlinkat(t->dir, t->draft, 0);
    t->draft[0] = '\0';
    if (t->fd >= 0) {
        (void)flock(t->fd, LOCK_UN);
        close(t->fd);
    }
    if (t->dir >= 0)
        close(t->dir);
    t->fd = t->dir = -1;
}

void bly_target_next(bly_target *t)
{
    /* The draft has been locked since before it had a name that others know. */
    if (t->placed && !fstat(t->fd, &t->old)) {
        const int old = t->lock;
        t->lock = t->fd;
        t->fd = -1;
        if (old >= 0) {
            (void)flock(old, LOCK_UN); /* as in bly_target_close() */
            close(old);
        }
    }
    t->placed = false;
    draft_close(t);
}

void bly_target_close(bly_target *t)
{
    draft_close(t);
    if (t->lock < 0)
        return;
    /* A process that was forked meanwhile has the lock too, and for as long
     * as it lives, unless it is given up in so many words. */
    (void)flock(t->lock, LOCK_UN);
    close(t->lock);
    t->lock = -1;
}

/* Link the draft, which has no name, to `name` in its folder. */
static int draft_link(const bly_target *t, const char *name)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", t->fd);
    return linkat(AT_FDCWD, self, t->dir, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

/* Give the draft, which has none, a temporary name. 0 or an errno. */
static int draft_link_any(bly_target *t)
{
    char name[NAME_MAX + 1];
    int err = EEXIST;
    for (int i = 0; i < NAME_TRIES && err == EEXIST; i++) {
        draft_name(t, i, name);
        err = draft_link(t, name);
    }
    if (!err)
        strcpy(t->draft, name);
    return err;
}

/* Put a draft that has a name in the place of one that cannot get one. */
static int draft_copy(bly_target *t)
{
    unsigned char buf[16384];
    const int from = t->fd;
    int64_t n = 0;
    int err = lseek(from, 0, SEEK_SET) ? errno : 0;
    t->fd = -1;
    if (!err)
        err = draft_named(t, draft_mode(t));
    while (!err && (n = bly_fd_read(from, buf, sizeof buf)) > 0)
        err = bly_fd_write(t->fd, buf, (size_t)n);
    if (!err && n < 0)
        err = errno;
    close(from);
    return err;
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

/* The old file's rights, and all of it on disk. */
static bly_status draft_finish(bly_target *t)
{
    if (t->lock >= 0) {
        const bly_status st = bly_attributes_keep(t->name, t->lock, t->fd);
        if (st)
            return st;
    }
    if (t->swap && t->swap->finish && !t->swap->finish(t->swap->ctx, t->fd))
        return write_fail(t, errno);
    const int err = sync_fd(t->fd);
    return err ? write_fail(t, err) : BLY_OK;
}

/* Closing is the last chance of a network file system to complain. The lock is
 * the other descriptor's too, and lasts until the name is given up. 0 or an
 * errno. */
static int draft_written(bly_target *t)
{
    const int held = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
    int err = held < 0 ? errno : 0;
    if (!err && close(t->fd) && errno != EINTR)
        err = errno;
    if (held >= 0)
        t->fd = held;
    return err;
}

/* Let the draft, which has a temporary name, take the target's. 0 or an errno.
 */
static int draft_rename(bly_target *t)
{
    int err = draft_written(t);
    if (!err && renameat(t->dir, t->draft, t->dir, base_of(t->path)))
        err = errno;
    if (!err) {
        t->draft[0] = '\0';
        t->placed = true;
    }
    return err;
}

/* --------------------------------------------------------------- exchanging */

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1U
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2U
#endif

/* renameat2() within the folder of t, which not every libc has. */
static int rename_how(const bly_target *t, const char *from, const char *to,
                      unsigned how)
{
#ifdef SYS_renameat2
    return (int)syscall(SYS_renameat2, t->dir, from, t->dir, to, how);
#else
    (void)t, (void)from, (void)to, (void)how;
    errno = ENOSYS;
    return -1;
#endif
}

static bly_status changed_fail(const bly_target *t)
{
    return bly_fail(BLY_EBUSY, "%s: changed meanwhile, and left as it is",
                    t->name);
}

/* Does the caller know the file of this name? */
static bool still_same(const bly_target *t, const char *name, bool moved)
{
    if (!t->swap->same)
        return true;
    const int how = t->no_link || moved ? O_NOFOLLOW : 0;
    const int fd =
        openat(t->dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | how);
    if (fd < 0 && errno != ENOENT)
        return false;
    const bool same = t->swap->same(t->swap->ctx, fd, moved);
    if (fd >= 0)
        close(fd);
    return same;
}

/* Is the file of this name the draft as it was written? */
static bool is_draft(const bly_target *t, const char *name,
                     const struct stat *written)
{
    struct stat st;
    return !fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW) &&
           same_file(&st, written) && st.st_size == written->st_size &&
           st.st_mtim.tv_sec == written->st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == written->st_mtim.tv_nsec &&
           st.st_mode == written->st_mode;
}

/* The temporary name has a version that nobody else has: it gets a name that
 * the next writer does not sweep away. */
static bly_status keep_displaced(bly_target *t)
{
    char kept[NAME_MAX + 1];
    for (int i = 1; i < NAME_TRIES; i++) {
        snprintf(kept, sizeof kept, "%.*s.kept-%d", NAME_MAX - 12,
                 base_of(t->path), i);
        if (linkat(t->dir, t->draft, t->dir, kept, 0)) {
            if (errno == EEXIST)
                continue;
            break;
        }
        (void)unlinkat(t->dir, t->draft, 0);
        t->draft[0] = '\0';
        return bly_fail(BLY_EBUSY,
                        "%s: changed twice meanwhile; one version is kept as "
                        "%s beside it",
                        t->name, kept);
    }
    snprintf(kept, sizeof kept, "%s", t->draft);
    t->draft[0] = '\0'; /* so that it is not removed */
    return bly_fail(BLY_EBUSY,
                    "%s: changed twice meanwhile; one version is kept as %s "
                    "beside it",
                    t->name, kept);
}

/* What the draft displaced had changed: put it back. If somebody has written to
 * the new file in the meantime, or replaced it, both versions are kept. */
static bly_status exchange_back(bly_target *t, const struct stat *written)
{
    const char *const name = base_of(t->path);
    if (rename_how(t, t->draft, name, RENAME_EXCHANGE))
        /* Somebody has removed the new one: what was there is not lost. */
        return errno == ENOENT &&
                       !rename_how(t, t->draft, name, RENAME_NOREPLACE)
                   ? (t->draft[0] = '\0', changed_fail(t))
                   : keep_displaced(t);
    return is_draft(t, t->draft, written) ? changed_fail(t) : keep_displaced(t);
}

static bool cannot_exchange(int err)
{
    return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP;
}

/* The draft, which has a temporary name, becomes a file where there was none.
 * 0 or an errno: EEXIST if there is one now. */
static int draft_place_new(bly_target *t)
{
    const char *const name = base_of(t->path);
    struct stat st;
    if (!rename_how(t, t->draft, name, RENAME_NOREPLACE))
        return 0;
    if (!cannot_exchange(errno))
        return errno;
    if (!linkat(t->dir, t->draft, t->dir, name, 0))
        return unlinkat(t->dir, t->draft, 0) ? errno : 0;
    if (errno == EEXIST)
        return errno;
    if (!fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return EEXIST;
    return renameat(t->dir, t->draft, t->dir, name) ? errno : 0;
}

/* draft_rename() for t->swap. */
static bly_status draft_swap(bly_target *t)
{
    const char *const name = base_of(t->path);
    struct stat written;
    int err = draft_written(t);
    if (!err && fstat(t->fd, &written))
        err = errno;
    if (err)
        return write_fail(t, err);
    if (t->lock < 0) {
        err = draft_place_new(t);
    } else if (!rename_how(t, t->draft, name, RENAME_EXCHANGE)) {
        if (!still_same(t, t->draft, true))
            return exchange_back(t, &written);
        /* The old file. If it cannot be removed the next writer does it. */
        (void)unlinkat(t->dir, t->draft, 0);
    } else {
        err = errno;
        if (cannot_exchange(err)) {
            if (!still_same(t, name, false))
                return changed_fail(t);
            err = renameat(t->dir, t->draft, t->dir, name) ? errno : 0;
        }
    }
    if (err == EEXIST || err == ENOENT)
        return changed_fail(t);
    if (err)
        return write_fail(t, err);
    t->draft[0] = '\0';
    t->placed = true;
    return BLY_OK;
}

/* Give the draft, which has no name, one: the target's where there is no old
 * file, else a temporary one. */
static bly_status draft_give_name(bly_target *t)
{
    bly_status st = BLY_OK;
    int err = 0;
    while (!st && t->lock < 0) {
        err = draft_link(t, base_of(t->path));
        t->placed = !err;
        if (err != EEXIST)
            break;
        if (t->only_new)
            return write_fail(t, EWOULDBLOCK);
        if (t->swap)
            return changed_fail(t);
        /* So it is there now: replace it. Unless it is gone again. */
        err = lock_file(t);
        if (err == ENOENT)
            continue;
        st = err ? write_fail(t, err) : draft_finish(t);
    }
    if (st || t->placed)
        return st;
    if (t->lock >= 0)
        err = draft_link_any(t);
    if (!err)
        return BLY_OK;
    err = draft_copy(t);
    return err ? write_fail(t, err) : draft_finish(t);
}

/* ---------------------------------------------------------------- replace */

bly_status bly_target_begin(bly_target *t)
{
    int err = 0;
    if (t->special) {
        t->fd = bly_fd_open(t->name, O_WRONLY);
        err = t->fd < 0 ? errno : 0;
    } else {
        err = draft_open(t, draft_mode(t));
    }
    return err ? write_fail(t, err) : BLY_OK;
}

static bly_status commit_special(bly_target *t)
{
    int err = sync_fd(t->fd);
    if (err == EROFS) /* what some devices say instead */
        err = 0;
    if (close(t->fd) && !err && errno != EINTR)
        err = errno;
    t->fd = -1;
    return err ? write_fail(t, err) : BLY_OK;
}

bly_status bly_target_commit(bly_target *t)
{
    if (t->special)
        return commit_special(t);
    bly_status st = draft_finish(t);
    if (!st && t->swap && !still_same(t, base_of(t->path), false))
        st = changed_fail(t);
    if (!st && !t->draft[0])
        st = draft_give_name(t);
    if (!st && t->swap && !t->placed)
        st = draft_swap(t);
    if (st)
        return st;
    int err = t->placed ? 0 : draft_rename(t);
    if (err)
        return write_fail(t, err);
    err = sync_fd(t->dir);
    return err ? bly_io_fail(t->name, "made to last, though it is written", err)
               : BLY_OK;
}

bly_status bly_target_replace(bly_target *t, bly_fill *fill, void *ctx)
{
    bly_status st = bly_target_begin(t);
    if (!st)
        st = fill(ctx, t->name, t->fd);
    return st ? st : bly_target_commit(t);
}

int bly_scratch_open(const char *folder)
{
    bly_target t = { .lock = -1, .fd = -1, .dir = -1 };
    const int n = snprintf(t.path, sizeof t.path, "%s/bloomery", folder);
    if (n < 0 || (size_t)n >= sizeof t.path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int err = draft_open(&t, 0600);
    const int fd = err ? -1 : t.fd;
    t.fd = -1;
    draft_close(&t); /* and with it the name, if it has one */
    if (err)
        errno = err;
    return fd;
}
