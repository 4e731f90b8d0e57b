/*
 * meanwhile.c - something happens just before a system call of a command
 *
 * Preloaded, with BLY_AT=N and BLY_DO=COMMAND: sh runs COMMAND to its end
 * before the N-th call of those below that look at files or change names. So a
 * test puts an edit, or a swapped link, between any two steps of a command,
 * without waiting for chance. The file that BLY_MARK names gets the name of the
 * call, so that a test knows when it has come to the end of them.
 *
 * Calls are counted from main() on; with BLY_FROM=N, from the N-th piece on
 * that is sent over a socket. With BLY_NOSYS=1, calls that libc has no function
 * for fail, as on an older system.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long left; /* calls until the one; 0: there is none, or it was */
static atomic_long from_send; /* as many from that send() on */
static atomic_long sends;     /* until that one */

static void before(const char *name)
{
    if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
        return;
    const int error = errno;
    const char *const what = getenv("BLY_DO"), *const mark = getenv("BLY_MARK");
    const pid_t child = fork();
    if (!child) {
        execl("/bin/sh", "sh", "-c", what ? what : "true", (char *)NULL);
        _exit(127);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    FILE *const f = mark ? fopen(mark, "w") : NULL;
    if (f) {
        fprintf(f, "%s %d\n", name, how);
        fclose(f);
    }
    errno = error;
}

#define NEXT(name) (*(void **)&next = dlsym(RTLD_NEXT, #name))

/* The types of the headers are not needed, only what is passed on. */
#define WRAP(name, types, given)                     \
    int name types;                                  \
    int name types                                   \
    {                                                \
        static int(*next) types;                     \
        before(#name);                               \
        return next || NEXT(name) ? next given : -1; \
    }

/* A mode that was not given is passed on as it is, and nobody looks at it. */
#define WRAP_OPEN(name)                                         \
    int name(const char *path, int how, ...);                   \
    int name(const char *path, int how, ...)                    \
    {                                                           \
        static int (*next)(const char *, int, ...);             \
        va_list more;                                           \
        va_start(more, how);                                    \
        const unsigned mode = va_arg(more, unsigned);           \
        va_end(more);                                           \
        before(#name);                                          \
        return next || NEXT(name) ? next(path, how, mode) : -1; \
    }

#define WRAP_OPENAT(name)                                           \
    int name(int at, const char *path, int how, ...);               \
    int name(int at, const char *path, int how, ...)                \
    {                                                               \
        static int (*next)(int, const char *, int, ...);            \
        va_list more;                                               \
        va_start(more, how);                                        \
        const unsigned mode = va_arg(more, unsigned);               \
        va_end(more);                                               \
        before(#name);                                              \
        return next || NEXT(name) ? next(at, path, how, mode) : -1; \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP(__open_2, (const char *path, int how), (path, how))
WRAP(__open64_2, (const char *path, int how), (path, how))
WRAP(__openat_2, (int at, const char *path, int how), (at, path, how))
WRAP(__openat64_2, (int at, const char *path, int how), (at, path, how))
WRAP(stat, (const char *path, void *to), (path, to))
WRAP(stat64, (const char *path, void *to), (path, to))
WRAP(lstat, (const char *path, void *to), (path, to))
WRAP(lstat64, (const char *path, void *to), (path, to))
WRAP(fstat, (int fd, void *to), (fd, to))
WRAP(fstat64, (int fd, void *to), (fd, to))
WRAP(fstatat, (int at, const char *path, void *to, int how),
     (at, path, to, how))
WRAP(fstatat64, (int at, const char *path, void *to, int how),
     (at, path, to, how))
WRAP(flock, (int fd, int how), (fd, how))
WRAP(fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(fchmodat, (int at, const char *path, mode_t mode, int how),
     (at, path, mode, how))
WRAP(utimensat, (int at, const char *path, const void *times, int how),
     (at, path, times, how))
WRAP(futimens, (int fd, const void *times), (fd, times))
WRAP(ftruncate, (int fd, off_t size), (fd, size))
WRAP(ftruncate64, (int fd, off_t size), (fd, size))
WRAP(mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
WRAP(renameat, (int at, const char *from, int to_at, const char *to),
     (at, from, to_at, to))
WRAP(linkat, (int at, const char *from, int to_at, const char *to, int how),
     (at, from, to_at, to, how))
WRAP(unlinkat, (int at, const char *path, int how), (at, path, how))

/* Nothing is written to a disk: tests are in a hurry. */
int fsync(int fd)
{
    (void)fd;
    before("fsync");
    return 0;
}

ssize_t send(int fd, const void *bytes, size_t n, int how);
ssize_t send(int fd, const void *bytes, size_t n, int how)
{
    static ssize_t (*next)(int, const void *, size_t, int);
    if (atomic_load(&sends) > 0 && atomic_fetch_sub(&sends, 1) == 1)
        atomic_store(&left, atomic_load(&from_send));
    return next || NEXT(send) ? next(fd, bytes, n, how) : -1;
}

long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    before("syscall");
    if (getenv("BLY_NOSYS")) { /* a kernel that is older */
        errno = ENOSYS;
        return -1;
    }
    return next || NEXT(syscall)
               ? next(number, a[0], a[1], a[2], a[3], a[4], a[5])
               : -1;
}

/* The loader, and the constructors of libraries, are done when this is
 * called. */
typedef int start_main(int (*)(int, char **, char **), int, char **,
                       void (*)(void), void (*)(void), void (*)(void), void *);
start_main __libc_start_main;
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *end)
{
    start_main *next;
    NEXT(__libc_start_main);
    const char *const n = getenv("BLY_AT");
    const char *const from = getenv("BLY_FROM");
    atomic_store(&sends, from ? atol(from) : 0);
    atomic_store(from ? &from_send : &left, n ? atol(n) : 0);
    unsetenv("LD_PRELOAD"); /* what it starts itself is left alone */
    return next(main, argc, argv, init, fini, rtld_fini, end);
}
