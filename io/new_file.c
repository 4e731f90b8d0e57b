/*
 * new_file.c - a file that was not there before, whole or not at all
 *
 * For files that must not replace anything: secrets, and files whose names come
 * from somebody else. The bytes go to a file without a name (O_TMPFILE) in the
 * folder where it belongs. When they are on disk, linkat() gives it the name,
 * which fails if anything has that name, even a symbolic link that leads
 * nowhere. So nobody can divert the bytes, not even between the check and the
 * write.
 *
 * Where the file system has no files without a name, or where there is no
 * /proc, the file has its name from the start (O_EXCL) and is removed if it
 * cannot be filled. There, a process that is killed leaves a part of it.
 */
#define _GNU_SOURCE
#include "io/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"

struct filling {
    int fd, error;
};

static bool put_fd(void *ctx, const void *bytes, size_t nbytes)
{
    struct filling *const f = ctx;
    const char *at = bytes;
    while (nbytes) {
        const ssize_t put = write(f->fd, at, nbytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            f->error = put ? errno : ENOSPC;
            return false;
        }
        at += put;
        nbytes -= (size_t)put;
    }
    return true;
}

/* Some file systems have nothing to sync. 0 or an errno. */
static int on_disk(int fd)
{
    while (fsync(fd) != 0) {
        if (errno == EINVAL || errno == ENOTSUP)
            return 0;
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* All of it to fd, and from there to disk. False, after the reason was printed.
 */
static bool filled(int fd, const char *shown, bly_writes *write,
                   const void *what)
{
    struct filling f = { fd, 0 };
    const bly_status st = write(what, put_fd, &f);
    if (!st && !f.error)
        f.error = on_disk(fd);
    if (f.error)
        fail_path(shown, f.error);
    else if (st && st != BLY_EREFUSED)
        fail_library();
    return !st && !f.error;
}

/* In the folder, under its name from the start. */
static enum file_made make_named(int folder, const char *name,
                                 const char *shown, mode_t mode,
                                 bly_writes *write, const void *what)
{
    int fd;
    do
        fd = openat(folder, name,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == EEXIST)
        return FILE_TAKEN;
    if (fd < 0) {
        fail_path(shown, errno);
        return FILE_FAILED;
    }
    const bool ok = filled(fd, shown, write, what);
    if (!ok)
        unlinkat(folder, name, 0);
    close(fd);
    return ok ? FILE_MADE : FILE_FAILED;
}

static enum file_made make_in(int folder, const char *name, const char *shown,
                              mode_t mode, bly_writes *write, const void *what)
{
    struct stat st;
    char self[32];
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return FILE_TAKEN;
    const int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (fd < 0)
        return make_named(folder, name, shown, mode, write, what);
    enum file_made made = FILE_FAILED;
    if (filled(fd, shown, write, what)) {
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        if (linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW) == 0)
            made = FILE_MADE;
        else if (errno == EEXIST)
            made = FILE_TAKEN;
        else
            made = make_named(folder, name, shown, mode, write, what);
    }
    close(fd);
    return made;
}

enum file_made file_make(int at, const char *path, const char *shown,
                         mode_t mode, bly_writes *write, const void *what)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    char *const before =
        slash ? strndup(path, (size_t)(name - path)) : strdup(".");
    int folder = -1;
    if (!before) {
        fail("out of memory");
        return FILE_FAILED;
    }
    do
        folder = openat(at, before, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder < 0 && errno == EINTR);
    free(before);
    if (folder < 0 || !*name) {
        fail_path(shown, folder < 0 ? errno : EISDIR);
        if (folder >= 0)
            close(folder);
        return FILE_FAILED;
    }
    enum file_made made = make_in(folder, name, shown, mode, write, what);
    const int error = made == FILE_MADE ? on_disk(folder) : 0;
    if (error) {
        fail("%s: it is written, but may not survive a power cut: %s", shown,
             strerror(error));
        made = FILE_FAILED;
    }
    close(folder);
    return made;
}

/* ----------------------------------------------------------- below a folder */

bool path_stays_below(const char *path, size_t n)
{
    if (memchr(path, '\0', n))
        return false;
    for (size_t at = 0; at <= n;) {
        const char *const stop = memchr(path + at, '/', n - at);
        const size_t len = stop ? (size_t)(stop - path) - at : n - at;
        if (!len || (len == 1 && path[at] == '.') ||
            (len == 2 && path[at] == '.' && path[at + 1] == '.'))
            return false;
        at += len + 1;
    }
    return true;
}

/* One folder further down, made if it is not there. -1: errno is set. */
static int folder_step(int at, const char *name, bool *fresh)
{
    *fresh = mkdirat(at, name, 0777) == 0;
    if (!*fresh && errno != EEXIST)
        return -1;
    /* The name of a new folder belongs to the one above it. */
    const int error = *fresh ? on_disk(at) : 0;
    if (error) {
        errno = error;
        return -1;
    }
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

#define NONE_MADE ((size_t)-1)

/* The folder that the last part of path belongs to, opened; those on the way
 * are made. *made is where in path the first of these begins. -1: errno is
 * set. */
static int folders_to(int root, const char *path, size_t *made)
{
    char *const copy = strdup(path);
    int at = copy ? fcntl(root, F_DUPFD_CLOEXEC, 0) : -1;
    *made = NONE_MADE;
    for (char *part = copy, *slash; at >= 0 && (slash = strchr(part, '/'));
         part = slash + 1) {
        bool fresh;
        *slash = '\0';
        const int below = folder_step(at, part, &fresh);
        const int error = errno;
        if (fresh && *made == NONE_MADE)
            *made = (size_t)(part - copy);
        close(at);
        at = below;
        errno = error;
    }
    const int error = errno;
    free(copy);
    errno = error;
    return at;
}

/* Remove the folders again that path begins with, the last one first, as far as
 * they were made. */
static void folders_undo(int root, const char *path, size_t made)
{
    char *const copy = made == NONE_MADE ? NULL : strdup(path);
    for (char *slash; copy && (slash = strrchr(copy, '/')) &&
                      (size_t)(slash - copy) > made;) {
        *slash = '\0';
        unlinkat(root, copy, AT_REMOVEDIR);
    }
    free(copy);
}

enum file_made file_make_below(int root, const char *path, const char *shown,
                               mode_t mode, bly_writes *write, const void *what)
{
    const char *const slash = strrchr(path, '/');
    size_t made;
    enum file_made result = FILE_FAILED;
    if (!path_stays_below(path, strlen(path))) {
        fail("'%s' cannot name a file below a folder", shown);
        return FILE_FAILED;
    }
    const int folder = folders_to(root, path, &made);
    if (folder < 0 && (errno == ELOOP || errno == ENOTDIR))
        fail("%s: a part of its path is a link, or not a folder; use another "
             "folder",
             shown);
    else if (folder < 0)
        fail_path(shown, errno);
    else
        result = file_make(folder, slash ? slash + 1 : path, shown, mode, write,
                           what);
    if (folder >= 0)
        close(folder);
    if (result != FILE_MADE)
        folders_undo(root, path, made);
    return result;
}

/* ------------------------------------------------------------------ secrets */

static bly_status put_text(const void *what, bly_put *put, void *ctx)
{
    const bly_bytes *const text = what;
    return put(ctx, text->ptr, text->len) ? BLY_OK : BLY_EIO;
}

bool secret_make(const char *path, const char *text, size_t n)
{
    const bly_bytes all = { text, n };
    if (is_dash(path)) {
        const int error = out_write(text, n);
        return !error || refuse_path("standard output", error);
    }
    const enum file_made made =
        file_make(AT_FDCWD, path, path, 0600, put_text, &all);
    if (made == FILE_TAKEN)
        fail("%s: there is something of that name, and a secret takes no "
             "other's place; use another name",
             path);
    return made == FILE_MADE;
}
