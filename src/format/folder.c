/*
 * folder.c - making folders that survive a power cut
 *
 * Even if a file and its folder are synced, the file is lost in a power cut if
 * the folder's own name was not on disk yet. So when a folder is made, its
 * parent is synced before anything is put into the new folder.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"
#include "format/replace.h"

static int sync_folder(const char *path)
{
    const int fd = bly_fd_open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return errno;
    int err = 0;
    do
        err = fsync(fd) ? errno : 0;
    while (err == EINTR);
    close(fd);
    /* Some file systems have nothing to sync in a folder. */
    return err == EINVAL || err == ENOTSUP ? 0 : err;
}

bly_status bly_folder_make(const char *path)
{
    if (!path)
        return bly_fail_null("path");
    char up[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof up)
        return bly_io_fail(path, "made", ENAMETOOLONG);
    if (mkdir(path, 0777))
        return errno == EEXIST ? BLY_OK : bly_io_fail(path, "made", errno);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    memcpy(up, path, n);
    strcpy(up + n, n ? "" : ".");
    const int err = sync_folder(up);
    return err ? bly_io_fail(path, "made to last, though it is there", err)
               : BLY_OK;
}
