/*
 * failing_malloc.c - one allocation of a command fails
 *
 * Preloaded, with BLY_MALLOC_FAILS=N: the N-th call of malloc and its kin, from
 * main() on, returns NULL; libc's own calls (fopen, asprintf, opendir) count
 * too. When it happens the file that BLY_MALLOC_MARK names is made, so that a
 * test knows when it has come to the end of them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* What glibc calls its own. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static atomic_long left; /* calls until the one that fails; 0: none does */

static int fails(void)
{
    if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
        return 0;
    const char *const mark = getenv("BLY_MALLOC_MARK");
    const int fd = mark ? open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        close(fd);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails() ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    return fails() ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return fails() ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **to, size_t align, size_t n)
{
    *to = fails() ? NULL : __libc_memalign(align, n);
    return *to ? 0 : ENOMEM;
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
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    const char *const n = getenv("BLY_MALLOC_FAILS");
    atomic_store(&left, n ? atol(n) : 0);
    unsetenv("LD_PRELOAD"); /* what it starts itself is left alone */
    return next(main, argc, argv, init, fini, rtld_fini, end);
}
