/*
 * store.c - a file of a folder that comes from the other side, piece by piece
 *
 * Paths come from a peer. A path is walked component by component from the
 * folder on, and no component may be a link, so that it cannot lead out of the
 * folder, whatever links are in it. The file itself is then named by the open
 * folder it is in (/proc/self/fd/N/NAME).
 */
#define _GNU_SOURCE
#include "apps/sync/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/files.h"

#define PART ".bloomery-part-"

struct source_chunk {
    struct chunk chunk;
    int fd;
};

struct incoming {
    const struct sync_set *set;
    struct sync_file file;
    const struct sync_file *old; /* that it replaces; NULL: none */
    char *path;
    const char *name; /* in path */
    int folder;       /* that it is in */
    int from, part;   /* the old file, and what came before; -1: none */
    struct chunks chunks;
    bool *needed; /* chunks that have to come */
    int *source;  /* the file that a chunk is in; -1: memory */
    uint64_t *at; /* and where */
    size_t next;  /* chunk that comes, and how much of it has */
    uint32_t here;
    uint64_t nbytes;     /* of the part that came now, or in memory */
    struct block memory; /* where there is no part */
};

__attribute__((format(printf, 2, 3))) static bool
why_not(char why[SYNC_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, SYNC_WHY, format, args);
    va_end(args);
    return false;
}

bool part_is(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return !strncmp(slash ? slash + 1 : path, PART, strlen(PART));
}

/* --------------------------------------------------------------------- paths
 */

/* The folder of a path, opened; *name is what it is called there. -1: errno. */
static int parent_of(const struct sync_set *set, const char *path, bool make,
                     const char **name)
{
    int at = open(set->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 && make && errno == ENOENT && set->may_miss &&
        !bly_folder_make(set->path))
        at = open(set->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *slash; at >= 0 && (slash = strchr(path, '/'));
         path = slash + 1) {
        char part[256];
        const size_t n = (size_t)(slash - path);
        if (n >= sizeof part) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        if (make && mkdirat(at, part, 0777) && errno != EEXIST) {
            const int error = errno;
            close(at);
            errno = error;
            return -1;
        }
        const int below =
            openat(at, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        const int error = errno;
        close(at);
        errno = error;
        at = below;
    }
    *name = path;
    return at;
}

int folder_open(const struct sync_set *set, const char *path)
{
    const char *name;
    const int folder = parent_of(set, path, false, &name);
    if (folder < 0)
        return -1;
    const int fd =
        openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const int error = errno;
    close(folder);
    errno = error;
    return fd;
}

/* Is the file of this name what was read? None, if none was. */
static bool is_as_it_was(int folder, const char *name,
                         const struct sync_file *f, char why[SYNC_WHY])
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
        return (errno == ENOENT && !f) ||
               why_not(why, "%s",
                       errno == ENOENT ? "it was removed meanwhile"
                                       : strerror(errno));
    if (!S_ISREG(st.st_mode))
        return why_not(why, "what is there is not a file");
    if (!f)
        return why_not(why, "one of that name was made meanwhile");
    const uint64_t modified =
        (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
    return (modified == f->modified && (uint64_t)st.st_size == f->size) ||
           why_not(why, "it changed while it was read");
}

/* Folders of a path that nothing is left in. */
static void remove_empty(const struct sync_set *set, const char *path)
{
    char above[SYNC_PATH_MOST];
    snprintf(above, sizeof above, "%s", path);
    for (char *slash; (slash = strrchr(above, '/'));) {
        const char *name;
        *slash = '\0';
        const int folder = parent_of(set, above, false, &name);
        if (folder < 0)
            return;
        const int failed = unlinkat(folder, name, AT_REMOVEDIR);
        close(folder);
        if (failed)
            return;
    }
}

bool store_remove(const struct sync_set *set, const struct sync_file *f,
                  char why[SYNC_WHY])
{
    const char *name;
    const int folder = parent_of(set, file_path(set, f), false, &name);
    if (folder < 0)
        return why_not(why, "%s", strerror(errno));
    bool ok = is_as_it_was(folder, name, f, why);
    if (ok && unlinkat(folder, name, 0))
        ok = why_not(why, "%s", strerror(errno));
    close(folder);
    if (ok)
        remove_empty(set, file_path(set, f));
    return ok;
}

/* ------------------------------------------------------------------- begins */

static int by_hash(const void *a, const void *b)
{
    const struct source_chunk *const x = a, *const y = b;
    return x->chunk.hash < y->chunk.hash ? -1 : x->chunk.hash > y->chunk.hash;
}

/* Chunks of a file that may be had from it. */
static bool gather_chunks(struct incoming *in, int fd,
                          struct source_chunk **all, size_t *n)
{
    struct chunks c = { 0 };
    if (fd < 0)
        return true;
    bool ok = chunks_of(fd, in->file.size, &in->set->hasher, &c);
    struct source_chunk *const more =
        ok ? realloc(*all, (*n + c.n + 1) * sizeof *more) : NULL;
    ok = more;
    if (more) {
        *all = more;
        for (size_t i = 0; i < c.n; i++)
            more[(*n)++] = (struct source_chunk){ c.at[i], fd };
    }
    chunks_free(&c);
    return ok;
}

static const struct source_chunk *find_chunk(const struct source_chunk *all,
                                             size_t n, const struct chunk *c)
{
    size_t from = 0, to = n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (all[middle].chunk.hash < c->hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from < n && all[from].chunk.hash == c->hash &&
                   all[from].chunk.n == c->n
               ? &all[from]
               : NULL;
}

/* Which chunks are there, and where. A chunk that comes twice comes once. */
static bool find_sources(struct incoming *in)
{
    struct source_chunk *all = NULL;
    size_t n = 0;
    bool ok = gather_chunks(in, in->from, &all, &n) &&
              gather_chunks(in, in->part, &all, &n);
    if (ok && n)
        qsort(all, n, sizeof *all, by_hash);
    for (size_t i = 0; ok && i < in->chunks.n; i++) {
        const struct source_chunk *const s =
            find_chunk(all, n, &in->chunks.at[i]);
        in->needed[i] = !s;
        in->source[i] = s ? s->fd : -1;
        in->at[i] = s ? s->chunk.at : 0;
    }
    free(all);
    return ok;
}

static void part_name(const struct incoming *in, char out[64])
{
    snprintf(out, 64, PART "%016" PRIx64,
             bly_hash(&in->set->hasher, in->path, strlen(in->path)));
}

static void incoming_free(struct incoming *in)
{
    if (in->from >= 0)
        close(in->from);
    if (in->part >= 0)
        close(in->part);
    if (in->folder >= 0)
        close(in->folder);
    chunks_free(&in->chunks);
    block_free(&in->memory);
    free(in->needed);
    free(in->source);
    free(in->at);
    free(in->path);
    free(in);
}

void incoming_stop(struct incoming *in)
{
    if (in)
        incoming_free(in);
}

/* Do the chunks make up the file? */
static bool chunks_fit(const struct chunks *c, uint64_t size)
{
    uint64_t at = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->at[i].n || c->at[i].n > CHUNK_MOST || c->at[i].at != at)
            return false;
        at += c->at[i].n;
    }
    return at == size;
}

static bool incoming_start(struct incoming *in, bool *skip, char why[SYNC_WHY])
{
    const size_t n = strlen(in->path);
    char part[64];
    if (!path_is_safe(in->path, n) || part_is(in->path))
        return why_not(why, "that is no path below a folder");
    in->old = file_at_path(in->set, in->path);
    if (in->old && in->set->form == SYNC_OBJECTS) {
        *skip = true; /* its name stands for its contents */
        return false;
    }
    in->folder = parent_of(in->set, in->path, true, &in->name);
    if (in->folder < 0)
        return why_not(why, "%s",
                       errno == ELOOP || errno == ENOTDIR
                           ? "a part of its path is a link, or not a folder"
                           : strerror(errno));
    if (!is_as_it_was(in->folder, in->name, in->old, why))
        return false;
    const bool whole = !in->chunks.n;
    if (whole && in->file.size) {
        const struct chunk all = { 0, 0, (uint32_t)in->file.size };
        if (in->file.size > STORE_WHOLE || !chunks_add(&in->chunks, &all))
            return why_not(why, "it has no chunks");
    }
    if (!chunks_fit(&in->chunks, in->file.size))
        return why_not(why, "its chunks do not make up its size");
    in->needed = calloc(in->chunks.n + 1, sizeof *in->needed);
    in->source = calloc(in->chunks.n + 1, sizeof *in->source);
    in->at = calloc(in->chunks.n + 1, sizeof *in->at);
    if (!in->needed || !in->source || !in->at)
        return why_not(why, "out of memory");
    if (whole) {
        in->needed[0] = in->chunks.n;
        in->source[0] = -1;
        return true;
    }
    if (in->old)
        in->from =
            openat(in->folder, in->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    part_name(in, part);
    in->part = openat(in->folder, part,
                      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (in->part < 0)
        return why_not(why, "%s", strerror(errno));
    if (!find_sources(in))
        return why_not(why, "%s", strerror(errno));
    const off_t end = lseek(in->part, 0, SEEK_END);
    in->nbytes = end > 0 ? (uint64_t)end : 0;
    return true;
}

struct incoming *incoming_new(const struct sync_set *set,
                              const struct sync_file *f, const char *path,
                              struct chunks *chunks, bool *skip,
                              char why[SYNC_WHY])
{
    struct incoming *const in = calloc(1, sizeof *in);
    *skip = false;
    if (in) {
        *in = (struct incoming){ .set = set,
                                 .file = *f,
                                 .path = strdup(path),
                                 .folder = -1,
                                 .from = -1,
                                 .part = -1 };
        if (chunks) {
            in->chunks = *chunks;
            *chunks = (struct chunks){ 0 };
        }
        if (in->path && incoming_start(in, skip, why))
            return in;
        if (!in->path)
            why_not(why, "out of memory");
        incoming_free(in);
        return NULL;
    }
    why_not(why, "out of memory");
    return NULL;
}

/* ------------------------------------------------------------------- pieces */

bool incoming_needs(const struct incoming *in, uint64_t *at, uint64_t *n)
{
    size_t i = 0;
    while (i < in->chunks.n && (!in->needed[i] || in->chunks.at[i].at < *at))
        i++;
    if (i == in->chunks.n)
        return false;
    *at = in->chunks.at[i].at;
    *n = 0;
    for (; i < in->chunks.n && in->needed[i]; i++)
        *n += in->chunks.at[i].n;
    return true;
}

static bool keep_bytes(struct incoming *in, const unsigned char *bytes,
                       size_t n, char why[SYNC_WHY])
{
    if (in->part < 0)
        return block_put(&in->memory, bytes, n) ||
               why_not(why, "out of memory");
    while (n) {
        const ssize_t put =
            pwrite(in->part, bytes, n, (off_t)(in->nbytes + in->here));
        if (put < 0 && errno != EINTR)
            return why_not(why, "%s", strerror(errno));
        if (put > 0) {
            bytes += put;
            n -= (size_t)put;
            in->here += (uint32_t)put;
        }
    }
    return true;
}

bool incoming_put(struct incoming *in, const void *bytes, size_t n,
                  char why[SYNC_WHY])
{
    const unsigned char *from = bytes;
    while (n) {
        while (in->next < in->chunks.n && !in->needed[in->next])
            in->next++;
        if (in->next == in->chunks.n)
            return why_not(why, "more came than was asked for");
        const struct chunk *const c = &in->chunks.at[in->next];
        const size_t some = n < c->n - in->here ? n : c->n - in->here;
        const uint32_t here = in->here;
        if (!keep_bytes(in, from, some, why))
            return false;
        in->here = here + (uint32_t)some;
        from += some;
        n -= some;
        if (in->here < c->n)
            continue;
        in->needed[in->next] = false;
        in->source[in->next] = in->part;
        in->at[in->next] = in->nbytes;
        in->nbytes += c->n;
        in->here = 0;
        in->next++;
    }
    return true;
}

/* ---------------------------------------------------------------- together */

static bool copy_chunk(struct incoming *in, size_t i, bly_draft *draft,
                       struct content *sum, unsigned char *buf,
                       char why[SYNC_WHY])
{
    const struct chunk *const c = &in->chunks.at[i];
    if (in->source[i] < 0) {
        content_put(sum, in->memory.at + in->at[i], c->n);
        return bly_draft_put(draft, in->memory.at + in->at[i], c->n) ||
               why_not(why, "%s", bly_error());
    }
    uint32_t n = 0;
    while (n < c->n) {
        const ssize_t got =
            pread(in->source[i], buf + n, c->n - n, (off_t)(in->at[i] + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return why_not(why, "%s",
                           got ? strerror(errno)
                               : "it changed while it was read");
        n += (uint32_t)got;
    }
    content_put(sum, buf, n);
    return bly_draft_put(draft, buf, n) || why_not(why, "%s", bly_error());
}

/* The times of the other side, and whether it may be executed. */
static bool set_attributes(const struct incoming *in, char why[SYNC_WHY])
{
    struct stat st;
    const struct timespec times[2] = {
        { .tv_nsec = UTIME_OMIT },
        { .tv_sec = (time_t)(in->file.modified / 1000000000),
          .tv_nsec = (long)(in->file.modified % 1000000000) },
    };
    if (!fstatat(in->folder, in->name, &st, AT_SYMLINK_NOFOLLOW)) {
        /* Whoever may read it may execute it, or nobody. */
        const mode_t runs = (st.st_mode & 0444) >> 2;
        const mode_t mode =
            in->file.runs ? (st.st_mode & 0777) | runs : st.st_mode & 0666;
        if (mode != (st.st_mode & 07777) &&
            fchmodat(in->folder, in->name, mode, 0))
            return why_not(why, "it is there, but without its rights: %s",
                           strerror(errno));
    }
    return !utimensat(in->folder, in->name, times, AT_SYMLINK_NOFOLLOW) ||
           why_not(why, "it is there, but without its time: %s",
                   strerror(errno));
}

static bool put_together(struct incoming *in, bly_draft *draft,
                         char why[SYNC_WHY])
{
    struct content sum;
    uint64_t hash[2];
    unsigned char *const buf = malloc(CHUNK_MOST);
    bool ok = buf && content_begin(&sum, &in->set->hasher);
    if (!ok) {
        free(buf);
        return why_not(why, "out of memory");
    }
    for (size_t i = 0; ok && i < in->chunks.n; i++)
        ok = copy_chunk(in, i, draft, &sum, buf, why);
    content_end(&sum, hash);
    free(buf);
    if (ok && (hash[0] != in->file.hash[0] || hash[1] != in->file.hash[1]))
        ok = why_not(why, "it changed on the other side while it was read");
    return ok && is_as_it_was(in->folder, in->name, in->old, why);
}

bool incoming_end(struct incoming *in, char why[SYNC_WHY])
{
    char path[64 + 256], part[64];
    uint64_t at = 0, n;
    bly_draft *draft;
    bool ok = !incoming_needs(in, &at, &n) || why_not(why, "it is not whole");
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", in->folder, in->name);
    if (ok && bly_draft_new(path, wait_for_lock, NULL, &draft))
        ok = why_not(why, "%s", bly_error());
    else if (ok && !put_together(in, draft, why)) {
        ok = false;
        bly_draft_abandon(draft);
    } else if (ok && bly_draft_commit(draft))
        ok = why_not(why, "%s", bly_error());
    /* What was wrong in sum would be wrong again. */
    part_name(in, part);
    if (in->part >= 0)
        (void)unlinkat(in->folder, part, 0);
    ok = ok && set_attributes(in, why);
    incoming_free(in);
    return ok;
}
