/*
 * paths.c - what a path is, before anything is read or written there
 *
 * "-" is a standard stream, and so are /dev/stdin, /dev/fd/1 and whatever else
 * names the same file: device and inode tell, spelling does not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/paths.h"
#include "report/say.h"

bool is_dash(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* What path names, "-" being the open descriptor fd. */
static bool path_stat(const char *path, int fd, struct stat *st)
{
    return (is_dash(path) ? fstat(fd, st) : stat(path, st)) == 0;
}

static bool is_descriptor(const char *path, int fd)
{
    struct stat a, b;
    return is_dash(path) || (stat(path, &a) == 0 && fstat(fd, &b) == 0 &&
                             a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

bool is_stdin(const char *path)
{
    return is_descriptor(path, STDIN_FILENO);
}

bool is_stdout(const char *path)
{
    return is_descriptor(path, STDOUT_FILENO);
}

bool is_same_file(const char *output, const char *input)
{
    struct stat out, in;
    return path_stat(output, STDOUT_FILENO, &out) &&
           path_stat(input, STDIN_FILENO, &in) && S_ISREG(out.st_mode) &&
           out.st_dev == in.st_dev && out.st_ino == in.st_ino;
}

/* Whether a new file can be put there. */
static bool folder_works(const char *path)
{
    const char *const slash = strrchr(path, '/');
    char *const folder = slash == path ? strdup("/")
                         : slash       ? strndup(path, (size_t)(slash - path))
                                       : strdup(".");
    if (!folder) {
        fail("out of memory");
        return false;
    }
    const bool can = access(folder, W_OK | X_OK) == 0;
    if (!can)
        fail("%s: cannot write into %s: %s", path, folder, strerror(errno));
    free(folder);
    return can;
}

bool output_works(const char *path, bool json)
{
    if (is_stdout(path)) {
        if (json && !quiet) {
            fail("--json and -o %s would mix on standard output", path);
            return false;
        }
        if (isatty(STDOUT_FILENO)) {
            fail("a filter is not text for a terminal; redirect standard "
                 "output, or name a file with -o");
            return false;
        }
    }
    struct stat st;
    if (is_dash(path))
        return true;
    if (!*path) {
        fail("the name of the output is empty; give the name of a file");
        return false;
    }
    if (stat(path, &st) != 0)
        return folder_works(path);
    if (S_ISDIR(st.st_mode)) {
        fail("%s: is a directory; -o needs the name of a file", path);
        return false;
    }
    return !S_ISREG(st.st_mode) || folder_works(path);
}

bool output_spares(const char *output, const char *const *inputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!inputs[i] || !is_same_file(output, inputs[i]))
            continue;
        fail("%s: is an input and would be overwritten; name another file "
             "with -o",
             is_dash(output) ? inputs[i] : output);
        return false;
    }
    return true;
}

FILE *report_to(const char *output)
{
    return is_stdout(output) ? stderr : stdout;
}

bool can_change(const char *path)
{
    struct stat st;
    if (is_dash(path))
        fail("a filter is changed in its file; - has none");
    else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
             !S_ISDIR(st.st_mode))
        fail("%s: cannot be changed: not a regular file", path);
    else
        return true;
    return false;
}
