/*
 * sync_folder.c - the files of a folder as a set
 *
 * Regular files below it, whatever their names; links and devices are not part
 * of it, nor are files that a sync of before has left half done. Every file is
 * read and hashed, by several threads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/sync/set.h"
#include "apps/sync/sync_store.h"
#include "base/byte_order.h"
#include "base/search.h"
#include "io/files.h"
#include "io/folders.h"
#include "io/ordered.h"

/* ----------------------------------------------------------------- contents */

/* Two hashes of 64 bits, of pieces of 256 KiB each chained to what came before.
 * They detect damage and tell different files apart; only a secret keeps
 * somebody who may choose contents from choosing two with the same hash. */
bool content_begin(struct content *c, const bly_hasher *by)
{
    *c = (struct content){ .by = by, .hash = { 1, 2 } };
    c->piece = malloc(CONTENT_PIECE);
    return c->piece;
}

static void content_step(struct content *c)
{
    bly_hasher other = *c->by;
    other.seed ^= UINT64_C(0x636f6e74656e7473);
    other.secret[0] ^= 1;
    for (unsigned i = 0; i < 2; i++) {
        const bly_hasher *const by = i ? &other : c->by;
        unsigned char both[24];
        put_le(both, c->hash[i], 8);
        put_le(both + 8, bly_hash(by, c->piece, c->n), 8);
        put_le(both + 16, c->n, 8);
        c->hash[i] = bly_hash(by, both, sizeof both);
    }
    c->n = 0;
}

void content_put(struct content *c, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    while (n) {
        const size_t some = n < CONTENT_PIECE - c->n ? n : CONTENT_PIECE - c->n;
        memcpy(c->piece + c->n, at, some);
        c->n += some;
        at += some;
        n -= some;
        if (c->n == CONTENT_PIECE)
            content_step(c);
    }
}

void content_end(struct content *c, uint64_t hash[2])
{
    content_step(c);
    hash[0] = c->hash[0];
    hash[1] = c->hash[1];
    free(c->piece);
    c->piece = NULL;
}

/* -------------------------------------------------------------------- paths */

bool path_is_safe(const char *path, size_t n)
{
    if (!n || n >= SYNC_PATH_MOST || memchr(path, '\0', n))
        return false;
    for (size_t at = 0; at <= n;) {
        const char *const stop = memchr(path + at, '/', n - at);
        const size_t len = stop ? (size_t)(stop - path) - at : n - at;
        if (!len || len > 255 || (len == 1 && path[at] == '.') ||
            (len == 2 && path[at] == '.' && path[at + 1] == '.'))
            return false;
        at += len + 1;
    }
    return true;
}

const char *file_path(const struct sync_set *set, const struct sync_file *f)
{
    return set->names.at + f->path;
}

uint64_t file_element(const struct sync_set *set, const struct sync_file *f,
                      const char *path)
{
    unsigned char record[40];
    const size_t n = strlen(path);
    put_le(record, bly_hash(&set->hasher, path, n), 8);
    put_le(record + 8, f->size, 8);
    put_le(record + 16, f->hash[0], 8);
    put_le(record + 24, f->hash[1], 8);
    put_le(record + 32, f->runs, 8);
    /* Odd, so that 0 can mean none. */
    return bly_hash(&set->hasher, record,
                    set->form == SYNC_OBJECTS ? 8 : sizeof record) |
           1;
}

/* Places in files, in the order of their paths. */
static int by_path(const void *a, const void *b, void *ctx)
{
    const struct sync_set *const set = ctx;
    return strcmp(file_path(set, &set->files[*(const uint32_t *)a]),
                  file_path(set, &set->files[*(const uint32_t *)b]));
}

const struct sync_file *file_at_path(const struct sync_set *set,
                                     const char *path)
{
    size_t at;
    LOWER_BOUND(at, set->n,
                strcmp(file_path(set, &set->files[set->by_path[at]]), path) <
                    0);
    const struct sync_file *const f =
        at < set->n ? &set->files[set->by_path[at]] : NULL;
    return f && strcmp(file_path(set, f), path) == 0 ? f : NULL;
}

/* ------------------------------------------------------------------ reading */

struct scan {
    struct sync_set *set;
    const struct list *paths;
    size_t skip; /* bytes of a path that name the folder */
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock;
    atomic_uint_least64_t nbytes;
};

static void scan_fail(struct scan *s, const char *path, int error)
{
    pthread_mutex_lock(&s->lock);
    set_fail(s->set, "%s: %s", path, strerror(error));
    pthread_mutex_unlock(&s->lock);
    s->failed = true;
}

/* False: it is gone, or is not a regular file, and is left out. So is one below
 * a folder that has become a link meanwhile. */
static bool scan_file(struct scan *s, const char *path, struct sync_file *f,
                      unsigned char *buf, size_t room)
{
    struct stat st;
    const int fd = folder_open(s->set, path + s->skip);
    if (fd < 0 || !stat_settled(fd, path, &st)) {
        const int error = errno;
        if (fd >= 0)
            close(fd);
        if (fd >= 0 || (error != ENOENT && error != ELOOP && error != ENOTDIR))
            scan_fail(s, path, error);
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return false;
    }
    f->size = (uint64_t)st.st_size;
    f->modified = stat_time(&st.st_mtim);
    f->changed = stat_time(&st.st_ctim);
    f->inode = st.st_ino;
    f->mode = st.st_mode;
    f->runs = st.st_mode & 0100;
    if (s->set->form == SYNC_FILES) {
        struct content c;
        int64_t got = -1;
        uint64_t size = 0;
        if (!content_begin(&c, &s->set->hasher)) {
            errno = ENOMEM;
        } else {
            while ((got = read_all(fd, buf, room)) > 0) {
                content_put(&c, buf, (size_t)got);
                size += (uint64_t)got;
            }
            content_end(&c, f->hash);
        }
        if (got < 0)
            scan_fail(s, path, errno);
        /* One that grows has the size of what was read. */
        f->size = size;
    }
    close(fd);
    s->nbytes += f->size;
    return true;
}

static void *scan_work(void *arg)
{
    struct scan *const s = arg;
    enum { ROOM = 1 << 16 };
    unsigned char *const buf = malloc(ROOM);
    if (!buf) {
        scan_fail(s, s->set->path, ENOMEM);
        return NULL;
    }
    while (!s->failed) {
        const size_t i = s->next++;
        if (i >= s->paths->n)
            break;
        struct sync_file *const f = &s->set->files[i];
        const char *const path = s->paths->at[i];
        const char *const below = path + s->skip;
        const size_t n = strlen(below);
        f->element = 0;
        if (n && path_is_safe(below, n) && !part_is(below) &&
            scan_file(s, path, f, buf, ROOM))
            f->element = file_element(s->set, f, below);
    }
    free(buf);
    return NULL;
}

static int by_element(const void *a, const void *b)
{
    const struct sync_file *const x = a, *const y = b;
    return x->element < y->element ? -1 : x->element > y->element;
}

/* Names, and elements in order; files without an element go. */
static bool scan_finish(struct scan *s)
{
    struct sync_set *const set = s->set;
    size_t n = 0;
    for (size_t i = 0; i < s->paths->n; i++) {
        struct sync_file f = set->files[i];
        const char *const below = s->paths->at[i] + s->skip;
        if (!f.element)
            continue;
        f.path = set->names.len;
        if (!block_put(&set->names, below, strlen(below) + 1))
            return set_fail(set, "out of memory");
        set->files[n++] = f;
    }
    if (n)
        qsort(set->files, n, sizeof *set->files, by_element);
    set->elements = malloc(n * sizeof *set->elements + 1);
    set->by_path = malloc(n * sizeof *set->by_path + 1);
    if (!set->elements || !set->by_path || n > UINT32_MAX)
        return set_fail(set, "out of memory");
    for (size_t i = 0; i < n; i++) {
        set->by_path[i] = (uint32_t)i;
        set->elements[i] = set->files[i].element;
        if (i && set->elements[i] == set->elements[i - 1])
            return set_fail(set,
                            "%s and %s have the same 64-bit hash; another "
                            "--key-file tells them apart",
                            file_path(set, &set->files[i - 1]),
                            file_path(set, &set->files[i]));
    }
    qsort_r(set->by_path, n, sizeof *set->by_path, by_path, set);
    set->n = n;
    set->nbytes = s->nbytes;
    return true;
}

bool folder_read(struct sync_set *set)
{
    const char *names[] = { set->path };
    const struct list roots = { names, 1, 0 };
    struct list paths = { 0 };
    struct stat st;
    if (stat(set->path, &st)) {
        if (errno == ENOENT && set->may_miss)
            return true;
        return set_fail(set, "%s: %s", set->path, strerror(errno));
    }
    if (!S_ISDIR(st.st_mode))
        return set_fail(set, "%s: not a folder", set->path);
    /* Whatever the path names later, this is the folder. */
    const int fd = open(set->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    set->root = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    const int error = errno;
    if (fd >= 0)
        close(fd);
    if (set->root < 0) {
        set->root = 0;
        return set_fail(set, "%s: %s", set->path, strerror(error));
    }
    if (!files_named(&roots, true, NULL, &paths)) {
        set->told = true;
        return set_fail(set, "%s: cannot be read", set->path);
    }
    struct scan s = { .set = set, .paths = &paths };
    s.skip = strlen(set->path);
    s.skip += !s.skip || set->path[s.skip - 1] != '/';
    pthread_mutex_init(&s.lock, NULL);
    set->files = calloc(paths.n + 1, sizeof *set->files);
    bool ok = set->files || set_fail(set, "out of memory");
    if (ok) {
        enum { MOST = 64 };
        pthread_t threads[MOST];
        unsigned n = thread_count(set->nthreads), running = 0;
        n = n > MOST ? MOST : n;
        while (running + 1 < n && paths.n > 64 * (size_t)(running + 1) &&
               !pthread_create(&threads[running], NULL, scan_work, &s))
            running++;
        scan_work(&s);
        while (running)
            pthread_join(threads[--running], NULL);
        ok = !s.failed && scan_finish(&s);
    }
    pthread_mutex_destroy(&s.lock);
    files_free(&paths);
    return ok;
}
