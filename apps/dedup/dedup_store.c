/*
 * dedup_store.c - arrays that may be larger than memory
 *
 * Pages of a shared mapping of a file belong to the file: taking them out of
 * the process (MADV_DONTNEED) loses nothing, they are in the system's cache or
 * on their way to disk, and come back when they are used. So code that uses
 * arrays on disk need not know, and the bound on memory is kept in one place:
 * now and then it asks how much of the files is resident, and if that is too
 * much, drops all of it.
 */
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/dedup/dedup_store.h"
#include "io/files.h"

/* Uses between two looks. A use may bring 16 pages in. */
#define USES_A_LOOK 64

static struct store_array *array_of(struct dedup_store *s, const void *p)
{
    for (size_t i = 0; i < STORE_ARRAYS; i++)
        if (s->arrays[i].at == p)
            return &s->arrays[i];
    return NULL;
}

static bool file_resize(struct dedup_store *s, struct store_array *a,
                        size_t nbytes)
{
    const bool fresh = !a->at;
    const int fd = fresh ? scratch_file(s->folder) : a->fd;
    if (fd < 0)
        return false;
    /* Allocated, not only promised: a full disk is an error here and would be
     * a signal later. */
    int error = posix_fallocate(fd, 0, (off_t)nbytes);
    void *map = MAP_FAILED;
    if (!error) {
        map = fresh ? mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                           0)
                    : mremap(a->at, a->nbytes, nbytes, MREMAP_MAYMOVE);
        error = map == MAP_FAILED ? errno : 0;
    }
    if (error) {
        if (fresh)
            close(fd);
        errno = error;
        return false;
    }
    *a = (struct store_array){ map, nbytes, fd };
    return true;
}

bool store_resize(struct dedup_store *s, void **p, uint64_t n, size_t size)
{
    struct store_array *const a =
        array_of(s, *p); /* of NULL: one that is free */
    if (n == 0)
        n = 1;
    if (!a || n > PTRDIFF_MAX / size) {
        errno = ENOMEM;
        return false;
    }
    const size_t nbytes = (size_t)n * size;
    if (s->folder) {
        if (!file_resize(s, a, nbytes))
            return false;
    } else {
        void *const more = realloc(a->at, nbytes);
        if (!more)
            return false;
        *a = (struct store_array){ .at = more, .nbytes = nbytes };
    }
    *p = a->at;
    return true;
}

bool store_zeros(struct dedup_store *s, void **p, uint64_t n, size_t size)
{
    *p = NULL;
    if (!store_resize(s, p, n, size))
        return false;
    if (!s->folder)
        memset(*p, 0, (size_t)(n ? n : 1) * size);
    return true;
}

void store_release(struct dedup_store *s, void *p)
{
    struct store_array *const a = p ? array_of(s, p) : NULL;
    if (!a)
        return;
    if (a->fd) {
        munmap(a->at, a->nbytes);
        close(a->fd);
    } else {
        free(a->at);
    }
    *a = (struct store_array){ 0 };
}

/* Bytes of files in the process's memory; 0 where nobody tells. */
static uint64_t resident(struct dedup_store *s)
{
    char text[128];
    unsigned long long all, of_files;
    if (s->statm == 0)
        s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t n =
        s->statm > 0 ? pread(s->statm, text, sizeof text - 1, 0) : 0;
    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (sscanf(text, "%*u %llu %llu", &all, &of_files) != 2)
        return 0;
    return (uint64_t)of_files * (uint64_t)sysconf(_SC_PAGESIZE);
}

void store_trim(struct dedup_store *s)
{
    if (s->folder && ++s->uses % USES_A_LOOK == 0)
        store_trim_now(s);
}

void store_trim_now(struct dedup_store *s)
{
    if (!s->folder || resident(s) <= s->limit)
        return;
    for (size_t i = 0; i < STORE_ARRAYS; i++)
        if (s->arrays[i].fd)
            madvise(s->arrays[i].at, s->arrays[i].nbytes, MADV_DONTNEED);
}

void store_free(struct dedup_store *s)
{
    for (size_t i = 0; i < STORE_ARRAYS; i++)
        store_release(s, s->arrays[i].at);
    if (s->statm > 0)
        close(s->statm);
    s->statm = 0;
}
