/*
 * digest_journal.c - a file that a proxy goes on writing, read as it grows
 *
 * A line of store.log (Squid 3 to 6):
 *
 *     1795116114.404 SWAPOUT 00 0000001F FA48A918...  200 ... GET http://...
 *     time           action  dir file    MD5
 *
 * SWAPOUT: the object is in this file of this cache_dir now. RELEASE: it is
 * gone; -1 and FFFFFFFF if it was in no file. The other actions move nothing.
 * Of an object that was replaced while somebody still read it, Squid names a
 * key that nobody else knows, so the file counts, and not the key.
 *
 * How a file is found to be another one: the path leads to another inode, it is
 * shorter than what was read of it, or the bytes before that place are not what
 * they were. A log that was renamed is read on until there is something in the
 * new one, since its writer may not have noticed yet. No time in the file and
 * none of the file is looked at, so clocks may jump.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/digest/digest_journal.h"
#include "report/say.h"

#define PIECE (64 * 1024)
#define LINE_MOST (64 * 1024) /* Squid's URLs have 8 KiB at most */

/* ----------------------------------------------------------------- lines */

struct field_of {
    const char *at;
    size_t n;
};

static bool take_word(const char **at, const char *end, struct field_of *out)
{
    while (*at < end && **at == ' ')
        (*at)++;
    out->at = *at;
    while (*at < end && **at != ' ')
        (*at)++;
    out->n = (size_t)(*at - out->at);
    return out->n > 0;
}

static bool is_text(const struct field_of *f, const char *text)
{
    return f->n == strlen(text) && memcmp(f->at, text, f->n) == 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* n bytes of two digits each. */
static bool take_hex(const struct field_of *f, unsigned char *out, size_t n)
{
    if (f->n != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const int high = hex_digit(f->at[2 * i]);
        const int low = hex_digit(f->at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* Two digits at most, or -1. */
static bool take_dir(const struct field_of *f, int *out)
{
    const bool none = is_text(f, "-1");
    *out = none ? -1 : 0;
    for (size_t i = 0; i < f->n && !none; i++) {
        if (f->at[i] < '0' || f->at[i] > '9' || f->n > 2)
            return false;
        *out = *out * 10 + (f->at[i] - '0');
    }
    return *out < JOURNAL_DIRS;
}

bool journal_line(const char *line, size_t n, struct journal_event *out,
                  bool *tells)
{
    static const char *const idle[] = { "SWAPIN", "CREATE", "SO_FAIL",
                                        "UNKNOWN" };
    const char *at = line, *const end = line + n;
    struct field_of when, action, dir, file, key;
    unsigned char number[4];
    int d;
    *tells = false;
    if (!take_word(&at, end, &when) || !take_word(&at, end, &action) ||
        !take_word(&at, end, &dir) || !take_word(&at, end, &file) ||
        !take_word(&at, end, &key) || !memchr(when.at, '.', when.n) ||
        !take_dir(&dir, &d) || !take_hex(&file, number, sizeof number) ||
        !take_hex(&key, out->key, sizeof out->key))
        return false;
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (is_text(&action, idle[i]))
            return true;
    out->came = is_text(&action, "SWAPOUT");
    if (!out->came && !is_text(&action, "RELEASE"))
        return false;
    out->dir = d < 0 ? 0 : (unsigned)d;
    out->file = (uint32_t)get_be(number, 4);
    *tells = d >= 0 && out->file < JOURNAL_FILES;
    return *tells || d < 0 || out->file == UINT32_MAX;
}

/* --------------------------------------------------------------- the file */

static bool is_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

bool journal_replaced(const struct journal *j)
{
    struct stat now;
    return stat(j->path, &now) == 0 &&
           (!is_file(&now, &j->is) || now.st_size < j->at);
}

/* False, and *why: what is wrong with it. */
static bool file_open(const char *path, int *fd, struct stat *is, bool *is_log,
                      char why[JOURNAL_NAME])
{
    unsigned char first[12];
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, is)) {
        snprintf(why, JOURNAL_NAME, "%s", strerror(errno));
    } else if (!S_ISREG(is->st_mode)) {
        snprintf(why, JOURNAL_NAME,
                 "not a regular file; a swap.state or a store.log is one");
    } else {
        const ssize_t n = pread(*fd, first, sizeof first, 0);
        *is_log = n < (ssize_t)sizeof first || !digest_is_swap(first, 12);
        if (!*is_log || n <= 0 || (first[0] >= '0' && first[0] <= '9'))
            return true;
        snprintf(why, JOURNAL_NAME,
                 "neither a swap.state with records of 72 bytes nor a "
                 "store.log");
    }
    if (*fd >= 0)
        close(*fd);
    return false;
}

bool journal_open(struct journal *j, const char *path, bool at_end,
                  char why[JOURNAL_NAME])
{
    struct stat is;
    bool is_log = false;
    int fd;
    if (!file_open(path, &fd, &is, &is_log, why))
        return false;
    if (j->path && j->is_log != is_log) {
        snprintf(why, JOURNAL_NAME, "it was a %s, and is none now",
                 j->is_log ? "store.log" : "swap.state");
        close(fd);
        return false;
    }
    if (j->path && j->fd >= 0)
        close(j->fd);
    j->path = path;
    j->is_log = is_log;
    j->fd = fd;
    j->is = is;
    j->at = is_log && at_end ? is.st_size : 0;
    j->nlast = 0;
    j->cut += j->part.n != 0;
    j->part.n = 0;
    /* The end may be within a line, whose rest says nothing. */
    unsigned char before = '\n';
    j->too_long =
        j->at && pread(fd, &before, 1, j->at - 1) == 1 && before != '\n';
    return true;
}

void journal_close(struct journal *j)
{
    if (j->path && j->fd >= 0)
        close(j->fd);
    free(j->part.at);
    *j = (struct journal){ .fd = -1 };
}

/* Are the bytes before the place still those that were read? */
static bool is_rewritten(const struct journal *j)
{
    unsigned char now[sizeof j->last];
    return j->nlast && (pread(j->fd, now, j->nlast, j->at - (off_t)j->nlast) !=
                            (ssize_t)j->nlast ||
                        memcmp(now, j->last, j->nlast) != 0);
}

static void keep_last(struct journal *j, const unsigned char *at, size_t n)
{
    const size_t most = sizeof j->last;
    if (n < most) {
        const size_t old = j->nlast < most - n ? j->nlast : most - n;
        memmove(j->last, j->last + j->nlast - old, old);
        memcpy(j->last + old, at, n);
        j->nlast = old + n;
    } else {
        memcpy(j->last, at + n - most, most);
        j->nlast = most;
    }
}

/* --------------------------------------------------------------- its bytes */

static bool take_record(struct journal *j, const unsigned char *r,
                        journal_each *each, void *ctx)
{
    struct journal_event e = { .came = r[0] == DIGEST_SWAP_ADDED,
                               .dir = j->dir,
                               .file =
                                   (uint32_t)get_le(r + DIGEST_SWAP_FILE, 4) };
    j->records++;
    if (r[0] > DIGEST_SWAP_START)
        j->unknown++;
    if (r[0] != DIGEST_SWAP_ADDED && r[0] != DIGEST_SWAP_DELETED)
        return true;
    memcpy(e.key, r + DIGEST_SWAP_KEY, sizeof e.key);
    return each(ctx, &e);
}

static bool take_line(struct journal *j, const char *line, size_t n,
                      journal_each *each, void *ctx)
{
    struct journal_event e;
    bool tells;
    j->records++;
    if (!journal_line(line, n, &e, &tells)) {
        j->unknown++;
        if (!j->said)
            warn("%s: line %llu since the beginning is not one of a store.log "
                 "of Squid 3 to 6; such lines are skipped and counted",
                 j->path, (unsigned long long)j->records);
        j->said = true;
        return true;
    }
    return !tells || each(ctx, &e);
}

/* All whole records or lines of n bytes behind the part that is kept; the rest
 * is kept in turn. False: no memory. */
static bool take_bytes(struct journal *j, const unsigned char *at, size_t n,
                       journal_each *each, void *ctx)
{
    const unsigned char *const end = at + n;
    while (at < end) {
        const size_t left = (size_t)(end - at);
        const unsigned char *const newline =
            j->is_log ? memchr(at, '\n', left) : NULL;
        const size_t lacks = DIGEST_SWAP_RECORD - (j->is_log ? 0 : j->part.n);
        size_t take = newline     ? (size_t)(newline - at)
                      : j->is_log ? left
                                  : lacks;
        const bool whole = j->is_log ? newline != NULL : lacks <= left;
        take = take < left ? take : left;
        if (j->is_log && j->part.n + take > LINE_MOST)
            j->too_long = true;
        const unsigned char *record = at;
        size_t nrecord = take;
        if (j->too_long) {
            j->part.n = 0;
        } else if (j->part.n || !whole) {
            if (!bytes_put(&j->part, at, take))
                return false;
            record = j->part.at;
            nrecord = j->part.n;
        }
        at += take + (newline != NULL);
        if (!whole)
            continue;
        const bool skip = j->too_long;
        j->unknown += skip;
        j->too_long = false;
        j->part.n = 0;
        if (!skip &&
            !(j->is_log ? take_line(j, (const char *)record, nrecord, each, ctx)
                        : take_record(j, record, each, ctx)))
            return false;
    }
    return true;
}

static enum journal_was read_on(struct journal *j, journal_each *each,
                                void *ctx, char why[JOURNAL_NAME])
{
    unsigned char piece[PIECE];
    for (;;) {
        const ssize_t n = pread(j->fd, piece, sizeof piece, j->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            snprintf(why, JOURNAL_NAME, "%s", strerror(errno));
            return JOURNAL_FAILED;
        }
        if (n == 0)
            return JOURNAL_READ;
        j->at += n;
        keep_last(j, piece, (size_t)n);
        if (!take_bytes(j, piece, (size_t)n, each, ctx)) {
            snprintf(why, JOURNAL_NAME, "out of memory");
            return JOURNAL_FAILED;
        }
    }
}

/* The log goes on at the beginning of this file, or of the one at its path. */
static void log_again(struct journal *j)
{
    j->at = 0;
    j->nlast = 0;
    j->cut += j->part.n != 0;
    j->part.n = 0;
    j->too_long = false;
    j->rotations++;
}

enum journal_was journal_read(struct journal *j, journal_each *each, void *ctx,
                              char why[JOURNAL_NAME])
{
    struct stat here, there;
    if (fstat(j->fd, &here)) {
        snprintf(why, JOURNAL_NAME, "%s", strerror(errno));
        return JOURNAL_FAILED;
    }
    const bool gone = stat(j->path, &there) != 0;
    if (here.st_size < j->at || (here.st_size > j->at && is_rewritten(j))) {
        if (!j->is_log)
            return JOURNAL_ANEW;
        log_again(j);
    }
    /* First the rest of this file, even if there is another one already. */
    const enum journal_was was = read_on(j, each, ctx, why);
    if (was != JOURNAL_READ)
        return was;
    if (gone && !j->told_gone)
        warn("%s: %s; it will be read again when it is back", j->path,
             strerror(ENOENT));
    j->told_gone = gone;
    if (gone || is_file(&there, &j->is) || there.st_size == 0)
        return JOURNAL_READ;
    if (!j->is_log)
        return JOURNAL_ANEW;
    if (!journal_open(j, j->path, false, why))
        return JOURNAL_FAILED;
    j->rotations++;
    return read_on(j, each, ctx, why);
}
