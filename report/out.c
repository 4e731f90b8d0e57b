/*
 * out.c - bytes to standard output
 *
 * Tables and JSON go through stdio. Lines of keys do not: workers hand whole
 * blocks to out_write() (io/pipeline.c). A command does one or the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

int out_write(const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n) {
        const ssize_t put = write(STDOUT_FILENO, at, n);
        if (put < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        at += put;
        n -= (size_t)put;
    }
    return 0;
}

bool out_is_terminal(void)
{
    static int known = -1;
    if (known < 0)
        known = isatty(STDOUT_FILENO);
    return known;
}

void print_key(const void *key, size_t n)
{
    char *const copy = out_is_terminal() ? malloc(n + 1) : NULL;
    if (copy) {
        memcpy(copy, key, n);
        text_clean(copy, n, true);
    }
    /* Without memory for a clean one, a terminal is shown nothing. */
    if (copy || !out_is_terminal())
        fwrite(copy ? copy : key, 1, n, stdout);
    free(copy);
}

void print_key_end(bool nul)
{
    putchar(nul && !out_is_terminal() ? '\0' : '\n');
}

int out_finish(int status)
{
    /* Closing tells what a remote disk thinks of the last bytes. A descriptor
     * that was never open matters only if there was something to say. */
    const bool failed = ferror(stdout) || fflush(stdout) != 0;
    const int error = errno;
    if (!failed && (close(STDOUT_FILENO) == 0 || errno == EBADF))
        return status;
    return fail("standard output: %s", strerror(failed ? error : errno));
}

bool put_stdout(void *ctx, const void *bytes, size_t nbytes)
{
    int *const error = ctx;
    *error = out_write(bytes, nbytes);
    return *error == 0;
}
