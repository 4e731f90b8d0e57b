/*
 * sync_store.c - a file of a folder that comes from the other side, piece by
 * piece
 *
 * Paths come from a peer. A path is walked component by component from the
 * folder on, and no component may be a link, so that it cannot lead out of the
 * folder, whatever links are in it, and whatever becomes one meanwhile. From
 * then on a file is a name in an open folder, and what is done to it is done to
 * a descriptor. A file that is replaced or removed is looked at when it has
 * lost its name already, so that nothing is lost that somebody writes to it up
 * to then.
 */
#define _GNU_SOURCE
#include "apps/sync/sync_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/search.h"
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
    bool same;                   /* has the same contents: its rights differ */
    char *path;
    const char *name; /* in path */
    int folder;       /* that it is in */
    int from, part;   /* the old file, and what came before; -1: none */
    struct chunks chunks;
    bool *needed; /* chunks that have to come */
    bool *zero;   /* chunks of zeros, which nobody sends */
    int *source;  /* the file that a chunk is in; -1: memory */
    uint64_t *at; /* and where */
    size_t next;  /* chunk that comes, and how much of it has */
    uint32_t here;
    uint64_t nbytes;     /* of the part that came now, or in memory */
    struct block memory; /* where there is no part */
    uint64_t done, hole; /* bytes put together; zeros of them not put yet */
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

/* -------------------------------------------------------------------- paths */

/* The folder of the set, opened. -1: errno. */
static int root_of(const struct sync_set *set, bool make)
{
    if (set->root > 0)
        return fcntl(set->root, F_DUPFD_CLOEXEC, 3);
    int at = open(set->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 && make && errno == ENOENT && set->may_miss &&
        !bly_folder_make(set->path))
        at = open(set->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return at;
}

/* The folder of a path, opened; *name is what it is called there. -1: errno. */
static int parent_of(const struct sync_set *set, const char *path, bool make,
                     const char **name)
{
    int at = root_of(set, make);
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

/* Is a file what was read? Renaming it changed its ctime. */
static bool was_read(const struct sync_file *f, const struct stat *st,
                     bool renamed)
{
    return st->st_ino == f->inode && st->st_mode == f->mode &&
           (uint64_t)st->st_size == f->size &&
           stat_time(&st->st_mtim) == f->modified &&
           (renamed || stat_time(&st->st_ctim) == f->changed);
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
    return was_read(f, &st, false) ||
           why_not(why, "it changed meanwhile, and is left as it is");
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

/* Rename in a folder, unless the new name is in use. 0 or an errno. */
static int rename_new(int folder, const char *from, const char *to)
{
#ifdef SYS_renameat2
    return syscall(SYS_renameat2, folder, from, folder, to, 1 /* NOREPLACE */)
               ? errno
               : 0;
#else
    return ENOSYS;
#endif
}

#define ASIDE_NAMES 16

/* A file under another name: is it what was read, and may go? If not, it gets
 * its name back; if somebody else has that by now, it keeps one that is seen.
 */
static bool remove_aside(int folder, const char *name, const char *aside,
                         const struct sync_file *f, char why[SYNC_WHY])
{
    struct stat st;
    if (!fstatat(folder, aside, &st, AT_SYMLINK_NOFOLLOW) &&
        was_read(f, &st, true))
        return !unlinkat(folder, aside, 0) ||
               why_not(why, "%s", strerror(errno));
    if (!rename_new(folder, aside, name))
        return why_not(why, "it changed meanwhile, and is left as it is");
    for (unsigned i = 1; i < ASIDE_NAMES; i++) {
        char kept[256];
        snprintf(kept, sizeof kept, "%.230s.kept-%u", name, i);
        if (!rename_new(folder, aside, kept))
            return why_not(why, "it changed meanwhile, and is kept as %s",
                           kept);
    }
    return why_not(why, "it changed meanwhile, and is kept as %s", aside);
}

/* Between checking a file and removing it, somebody may write to it or put
 * another one in its place. So it is first moved aside, in one step, and
 * checked there. */
static bool remove_file(int folder, const char *name, const struct sync_file *f,
                        char why[SYNC_WHY])
{
    int error = EEXIST;
    char aside[64];
    for (unsigned i = 0; error == EEXIST && i < ASIDE_NAMES; i++) {
        snprintf(aside, sizeof aside, PART "%016" PRIx64 "-%u", f->element, i);
        error = rename_new(folder, name, aside);
    }
    if (!error)
        return remove_aside(folder, name, aside, f, why);
    /* Some file systems cannot: then the last look was just before. */
    if ((error == EINVAL || error == ENOSYS || error == EOPNOTSUPP) &&
        is_as_it_was(folder, name, f, why))
        error = unlinkat(folder, name, 0) ? errno : 0;
    return !error || why_not(why, "%s", strerror(error));
}

bool store_remove(const struct sync_set *set, const struct sync_file *f,
                  char why[SYNC_WHY])
{
    const char *name;
    const int folder = parent_of(set, file_path(set, f), false, &name);
    if (folder < 0)
        return why_not(why, "%s", strerror(errno));
    const bool ok =
        is_as_it_was(folder, name, f, why) && remove_file(folder, name, f, why);
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
    size_t at;
    LOWER_BOUND(at, n, all[at].chunk.hash < c->hash);
    return at < n && all[at].chunk.hash == c->hash && all[at].chunk.n == c->n
               ? &all[at]
               : NULL;
}

/* Which chunks are there, and where. */
static bool find_sources(struct incoming *in)
{
    struct source_chunk *all = NULL;
    size_t n = 0;
    bool ok = gather_chunks(in, in->from, &all, &n) &&
              gather_chunks(in, in->part, &all, &n);
    ok = ok &&
         chunks_zero(&in->chunks, in->file.size, &in->set->hasher, in->zero);
    if (ok && n)
        qsort(all, n, sizeof *all, by_hash);
    for (size_t i = 0; ok && i < in->chunks.n; i++) {
        const struct source_chunk *const s =
            find_chunk(all, n, &in->chunks.at[i]);
        in->needed[i] = !s && !in->zero[i];
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
    free(in->zero);
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

/* The rest of a file that came before, or room for one that comes: nobody
 * else's, and no other name of a file elsewhere. */
static bool open_part(struct incoming *in, char why[SYNC_WHY])
{
    const int how = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    char part[64];
    struct stat st;
    part_name(in, part);
    in->part = openat(in->folder, part, how, 0600);
    if (in->part >= 0 && (fstat(in->part, &st) || !S_ISREG(st.st_mode) ||
                          st.st_nlink != 1 || st.st_uid != geteuid())) {
        close(in->part);
        in->part = unlinkat(in->folder, part, 0)
                       ? -1
                       : openat(in->folder, part, how | O_EXCL, 0600);
    }
    if (in->part < 0)
        return why_not(why, "%s", strerror(errno));
    return !flock(in->part, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK ||
           why_not(why, "another sync is bringing it");
}

/* The whole old file, if only its rights change. */
static bool chunks_same(struct incoming *in)
{
    chunks_free(&in->chunks);
    for (uint64_t at = 0, n; at < in->file.size; at += n) {
        n = in->file.size - at < CHUNK_MOST ? in->file.size - at : CHUNK_MOST;
        const struct chunk c = { 0, at, (uint32_t)n };
        if (!chunks_add(&in->chunks, &c))
            return false;
    }
    return true;
}

bool contents_same(const struct sync_set *set, const struct sync_file *ours,
                   const struct sync_file *f)
{
    return ours && set->form == SYNC_FILES && ours->size == f->size &&
           ours->hash[0] == f->hash[0] && ours->hash[1] == f->hash[1];
}

static bool incoming_start(struct incoming *in, bool *skip, char why[SYNC_WHY])
{
    const size_t n = strlen(in->path);
    if (!path_is_safe(in->path, n) || part_is(in->path))
        return why_not(why, "that is not a path below a folder");
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
    in->same = contents_same(in->set, in->old, &in->file);
    if (in->same && !chunks_same(in))
        return why_not(why, "%s", strerror(errno));
    const bool whole = !in->chunks.n;
    if (whole && in->file.size) {
        const struct chunk all = { 0, 0, (uint32_t)in->file.size };
        if (in->file.size > STORE_WHOLE || !chunks_add(&in->chunks, &all))
            return why_not(why, "it has no chunks");
    }
    if (!chunks_fit(&in->chunks, in->file.size))
        return why_not(why, "its chunks do not make up its size");
    in->needed = calloc(in->chunks.n + 1, sizeof *in->needed);
    in->zero = calloc(in->chunks.n + 1, sizeof *in->zero);
    in->source = calloc(in->chunks.n + 1, sizeof *in->source);
    in->at = calloc(in->chunks.n + 1, sizeof *in->at);
    if (!in->needed || !in->zero || !in->source || !in->at)
        return why_not(why, "out of memory");
    if (in->same) {
        in->from = openat(in->folder, in->name,
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (in->from < 0)
            return why_not(why, "%s", strerror(errno));
        for (size_t i = 0; i < in->chunks.n; i++) {
            in->source[i] = in->from;
            in->at[i] = in->chunks.at[i].at;
        }
        return true;
    }
    if (whole) {
        in->needed[0] = in->chunks.n;
        in->source[0] = -1;
        return true;
    }
    if (in->old)
        in->from = openat(in->folder, in->name,
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (!open_part(in, why))
        return false;
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
    if (in->same) /* it came, but it is there already */
        return true;
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

#define HOLE ((size_t)4096) /* what a file system leaves out */

static bool put_hole(struct incoming *in, bly_draft *draft)
{
    const uint64_t n = in->hole;
    in->hole = 0;
    return !n || bly_draft_skip(draft, n);
}

/* Bytes of the new file, in their order. Blocks of zeros are left out, so that
 * a sparse file stays one. */
static bool put_bytes(struct incoming *in, bly_draft *draft,
                      const unsigned char *bytes, size_t n, char why[SYNC_WHY])
{
    static const unsigned char zeros[HOLE];
    bool ok = true;
    while (ok && n) {
        const size_t left = HOLE - in->done % HOLE;
        const size_t some = n < left ? n : left;
        if (!memcmp(bytes, zeros, some))
            in->hole += some;
        else
            ok = put_hole(in, draft) && bly_draft_put(draft, bytes, some);
        bytes += some;
        in->done += some;
        n -= some;
    }
    return ok || why_not(why, "%s", bly_error());
}

static bool copy_chunk(struct incoming *in, size_t i, bly_draft *draft,
                       struct content *sum, unsigned char *buf,
                       char why[SYNC_WHY])
{
    const struct chunk *const c = &in->chunks.at[i];
    if (in->zero[i]) {
        memset(buf, 0, c->n);
        content_put(sum, buf, c->n);
        return put_bytes(in, draft, buf, c->n, why);
    }
    if (in->source[i] < 0) {
        const unsigned char *const at =
            (const unsigned char *)in->memory.at + in->at[i];
        content_put(sum, at, c->n);
        return put_bytes(in, draft, at, c->n, why);
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
    return put_bytes(in, draft, buf, n, why);
}

/* The times of the other side, and whether it may be executed: of a descriptor,
 * since a name may have become somebody else's. False: errno. */
static bool set_attributes(void *ctx, int fd)
{
    const struct incoming *const in = ctx;
    struct stat st;
    const struct timespec times[2] = {
        { .tv_nsec = UTIME_OMIT },
        { .tv_sec = (time_t)(in->file.modified / 1000000000),
          .tv_nsec = (long)(in->file.modified % 1000000000) },
    };
    if (fstat(fd, &st))
        return false;
    /* Whoever may read it may execute it, or nobody. */
    const mode_t runs = (st.st_mode & 0444) >> 2;
    const mode_t mode =
        in->file.runs ? (st.st_mode & 0777) | runs : st.st_mode & 0666;
    return (mode == (st.st_mode & 07777) || !fchmod(fd, mode)) &&
           !futimens(fd, times);
}

/* For bly_swap: is the file that is replaced the one that was read? */
static bool replaces_old(void *ctx, int old, bool moved)
{
    const struct incoming *const in = ctx;
    struct stat st;
    if (old < 0 || !in->old)
        return old < 0 && !in->old;
    return !fstat(old, &st) && was_read(in->old, &st, moved);
}

/* Only its rights change, and nobody else has the file under another name. */
static bool change_rights(struct incoming *in)
{
    struct stat st;
    return !fstat(in->from, &st) && st.st_nlink == 1 &&
           was_read(in->old, &st, false) && set_attributes(in, in->from);
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
    if (ok && !put_hole(in, draft))
        ok = why_not(why, "%s", bly_error());
    if (ok && (hash[0] != in->file.hash[0] || hash[1] != in->file.hash[1]))
        ok =
            why_not(why, in->same ? "it changed meanwhile, and is left as it is"
                                  : "it changed on the other side while it was "
                                    "read");
    return ok;
}

/* The library's reason, without the name of the file, which the caller says. */
static bool draft_why(const struct incoming *in, char why[SYNC_WHY])
{
    const char *text = bly_error();
    const size_t n = strlen(in->name);
    if (!strncmp(text, in->name, n) && !strncmp(text + n, ": ", 2))
        text += n + 2;
    return why_not(why, "%s", text);
}

static bool replace_old(struct incoming *in, char why[SYNC_WHY])
{
    const bly_swap swap = { .same = replaces_old,
                            .finish = set_attributes,
                            .ctx = in };
    bly_draft *draft;
    if (bly_draft_new_in(in->folder, in->name, wait_for_lock, NULL, &draft))
        return draft_why(in, why);
    if (!put_together(in, draft, why)) {
        bly_draft_abandon(draft);
        return false;
    }
    return !bly_draft_swap(draft, &swap) || draft_why(in, why);
}

bool incoming_end(struct incoming *in, char why[SYNC_WHY])
{
    char part[64];
    uint64_t at = 0, n;
    const bool whole =
        !incoming_needs(in, &at, &n) || why_not(why, "it is not whole");
    const bool ok =
        whole && ((in->same && change_rights(in)) || replace_old(in, why));
    /* Trying again would give the same wrong checksum. */
    part_name(in, part);
    if (in->part >= 0)
        (void)unlinkat(in->folder, part, 0);
    incoming_free(in);
    return ok;
}
