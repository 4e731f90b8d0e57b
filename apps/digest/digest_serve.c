/*
 * digest_serve.c - a file's digest, read again when the file has changed
 *
 * What is handed out is always a whole digest that was read and checked.
 * A file is another one when its inode, size or a time of it has changed. One
 * that was renamed into place is read at once; one that is written where it
 * stands is left alone until it has not changed for SETTLE_MS, since half of an
 * old mask and half of a new one look like a mask. What changes while it is
 * read does not count as read.
 *
 * Whatever goes wrong is reported once and tried again after 1 s, 2 s, 4 s and
 * so on; until then the previous digest stays.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/gate.h"
#include "apps/digest/jobs.h"
#include "report/say.h"

#define SETTLE_MS 1000
#define RETRY_MOST_MS 60000
#define LOOK_AGAIN_MS 3600000 /* requests look too */

/* The control block and the largest mask, 2^31 bits. */
#define MOST_BYTES ((off_t)DIGEST_HEADER + (INT64_C(1) << 28))

struct served_file {
    const char *path;
    struct stat served; /* the one that is handed out */
    struct stat seen;   /* the one that was there when it was last looked */
    struct stat failed; /* the last one that could not be read */
    int64_t seen_at;    /* since when it is, by gate_clock() */
    int64_t retry_at;
    unsigned nfailed;
    struct digest_trouble trouble;
};

/* The same file, whatever is in it by now? */
static bool is_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Of the times the one of the inode changes with every write and with every
 * attempt to set the other one back. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return is_file(a, b) && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* All n bytes; false, and why says why not. */
static bool read_whole(int fd, unsigned char *to, size_t n, char *why,
                       size_t room)
{
    while (n) {
        const ssize_t got = read(fd, to, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            snprintf(why, room, "%s",
                     got ? strerror(errno)
                         : "it became shorter while it was read");
            return false;
        }
        to += got;
        n -= (size_t)got;
    }
    return true;
}

static bool fd_load(int fd, struct digest_copy *out, struct stat *was,
                    char *why, size_t room)
{
    struct stat after;
    if (fstat(fd, was) != 0) {
        snprintf(why, room, "%s", strerror(errno));
        return false;
    }
    if (!S_ISREG(was->st_mode) || was->st_size > MOST_BYTES) {
        snprintf(why, room,
                 S_ISREG(was->st_mode) ? "larger than a digest can be"
                                       : "not a regular file");
        return false;
    }
    out->nbytes = (size_t)was->st_size;
    out->bytes = malloc(out->nbytes + 1); /* an empty one is read, too */
    out->modified = (int64_t)was->st_mtim.tv_sec;
    if (!out->bytes) {
        snprintf(why, room, "out of memory");
        return false;
    }
    if (!read_whole(fd, out->bytes, out->nbytes, why, room) ||
        !digest_check(out, why, room))
        return false;
    if (fstat(fd, &after) != 0 || !is_same(was, &after)) {
        snprintf(why, room, "it changed while it was read");
        return false;
    }
    if (out->stats.fill > 0.65) {
        snprintf(why, room,
                 "%.0f %% of its bits are set, and Squid refuses "
                 "more than 65",
                 out->stats.fill * 100);
        return false;
    }
    return true;
}

/* Read and check a file; *was says which one it was. */
static bool file_load(const char *path, struct digest_copy *out,
                      struct stat *was, char *why, size_t room)
{
    *out = (struct digest_copy){ 0 };
    /* A pipe in the file's place must not be waited for. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        snprintf(why, room, "%s", strerror(errno));
        return false;
    }
    const bool done = fd_load(fd, out, was, why, room);
    close(fd);
    if (!done) {
        free(out->bytes);
        *out = (struct digest_copy){ 0 };
    }
    return done;
}

static int64_t file_failed(struct served_file *f, const char *why)
{
    const int64_t wait = retry_wait(++f->nfailed, RETRY_MOST_MS);
    trouble_tell(&f->trouble, f->path, why, true);
    f->retry_at = gate_clock() + wait;
    return wait;
}

static bool file_refresh(void *ctx, struct digest_copy *newer, int64_t *wait)
{
    struct served_file *const f = ctx;
    struct stat st;
    char why[512];
    const int64_t now = gate_clock();
    *wait = LOOK_AGAIN_MS;
    if (stat(f->path, &st) != 0) {
        *wait = file_failed(f, strerror(errno));
        f->seen = f->failed = (struct stat){ 0 };
        return false;
    }
    if (is_same(&st, &f->served)) {
        trouble_over(&f->trouble, f->path);
        f->nfailed = 0;
        return false;
    }
    if (!is_same(&st, &f->seen)) {
        f->seen = st;
        f->seen_at = f->retry_at = now;
        f->nfailed = 0;
    }
    /* One that was not a digest the first time may be on its way to be one. */
    const bool settles = is_file(&st, &f->served) || is_file(&st, &f->failed);
    const int64_t settled = settles ? f->seen_at + SETTLE_MS : now;
    const int64_t due = settled > f->retry_at ? settled : f->retry_at;
    if (now < due) {
        *wait = due - now;
        return false;
    }
    if (!file_load(f->path, newer, &st, why, sizeof why)) {
        *wait = file_failed(f, why);
        f->failed = f->seen;
        return false;
    }
    f->served = st;
    f->nfailed = 0;
    trouble_over(&f->trouble, f->path);
    return true;
}

int digest_serve(const struct digest_args *args, struct list *operands)
{
    /* Static: they outlive a thread that hangs when all else ends. */
    static struct served_file file;
    static struct digest_source source;
    struct digest_copy first;
    char why[512];
    bool idle;
    if (operands->n > 1)
        return fail("one digest at a time; usage: bloomery digest serve FILE");
    file.path = operands->at[0];
    source = (struct digest_source){
        .refresh = file_refresh,
        .ctx = &file,
        .name = file.path,
        .looks = true,
        .lifetime = args->lifetime ? (int64_t)args->lifetime : 3600,
    };
    if (!file_load(file.path, &first, &file.served, why, sizeof why))
        return fail("%s: %s", file.path, why);
    return digest_answer(args, &source, &first, &idle);
}
