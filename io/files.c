/*
 * files.c - files, whatever is in them
 *
 * Whoever changes a file holds its lock, and the next one waits. Nobody should
 * sit in front of a silent terminal meanwhile, so after a second the wait is
 * announced. Anybody who may read a file can hold its lock, so the wait ends
 * after a minute, or when --wait says. Signals keep their default action, so
 * that an interrupt ends the wait with the command.
 */
#include <errno.h>
#include <unistd.h>

#include "io/files.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"

/* Adding takes seconds. A writer that takes longer, such as unique, is not
 * worth waiting for: its name is printed instead. */
double wait_seconds = 60;

bool wait_for_lock(void *ctx, const char *path, uint64_t ms)
{
    (void)ctx;
    static bool said;
    if ((double)ms >= wait_seconds * 1000)
        return false;
    if (ms >= 1000 && !said) {
        char holder[64];
        said = true;
        bly_lock_holder(path, holder, sizeof holder);
        note("waiting for another process that is changing %s%s%s", path,
             holder[0] ? ": " : "", holder);
    }
    return true;
}

int scratch_file(const char *folder)
{
    int fd;
    return bly_scratch_file(folder, &fd) ? -1 : fd;
}

int64_t read_all(int fd, void *buf, size_t nbytes)
{
    size_t n = 0;
    while (n < nbytes) {
        const ssize_t got = read(fd, (char *)buf + n, nbytes - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (int64_t)n;
}

int file_save(const char *path, bly_writes *write, const void *what)
{
    if (is_dash(path)) {
        int error = 0;
        if (write(what, put_stdout, &error) == BLY_OK)
            return YES;
        return error ? fail_path("standard output", error) : fail_library();
    }
    return bly_file_save(path, wait_for_lock, NULL, write, what)
               ? fail_library()
               : YES;
}
