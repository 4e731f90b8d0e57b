/*
 * mirror.c - exact answers from the published list
 *
 * A folder has a file for each beginning of five digits; one file has all
 * hashes in their order, and a range of it is found by halving: 36 reads for 40
 * GB. Both are read for each question and never mapped, so that a mirror may be
 * updated meanwhile.
 */
#define _GNU_SOURCE
#include "apps/passwords/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files.h"
#include "io/hex.h"
#include "report/say.h"

#define LINE_MOST 128                /* bytes of a line; 40 + 1 + 20 are used */
#define RANGE_MOST ((size_t)8 << 20) /* of a range; they have some 60 KB */
#define SORTED_SAMPLES 256

/* ------------------------------------------------------------- sorted files */

/* The digits of the first line that begins at or behind `at`, and where it
 * begins. 0 at the end of the file; -1: what is there is no such line. */
static int line_behind(const struct mirror *m, uint64_t at, uint64_t *start,
                       char digits[2 * HASH_MOST])
{
    char text[2 * LINE_MOST];
    const size_t ndigits = 2 * password_hashes[m->which].nbytes;
    const uint64_t from = at ? at - 1 : 0; /* a newline there ends a line */
    const ssize_t got = pread(m->fd, text, sizeof text, (off_t)from);
    if (got < 0)
        return -1;
    const char *line = text;
    if (at) {
        const char *const newline = memchr(text, '\n', (size_t)got);
        if (!newline)
            return (size_t)got < sizeof text ? 0 : -1;
        line = newline + 1;
    }
    const size_t left = (size_t)(text + got - line);
    unsigned char bytes[HASH_MOST];
    *start = from + (uint64_t)(line - text);
    if (left == 0)
        return 0;
    if (left < ndigits || !hex_read(line, ndigits / 2, bytes))
        return -1;
    for (size_t i = 0; i < ndigits; i++)
        digits[i] = line[i] >= 'a' ? (char)(line[i] - 'a' + 'A') : line[i];
    return 1;
}

/* Where the first line begins whose hash is not below prefix. */
static bool file_seek(const struct mirror *m, const char *prefix,
                      uint64_t *place)
{
    uint64_t low = 0, high = m->nbytes, start;
    char digits[2 * HASH_MOST];
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const int got = line_behind(m, middle, &start, digits);
        if (got < 0)
            return false;
        if (got == 0 || memcmp(digits, prefix, PREFIX_DIGITS) >= 0)
            high = middle;
        else
            low = start + 1;
    }
    return line_behind(m, low, place, digits) >= 0;
}

static bool file_is_sorted(const struct mirror *m)
{
    char digits[2 * HASH_MOST], before[2 * HASH_MOST] = { 0 };
    const size_t ndigits = 2 * password_hashes[m->which].nbytes;
    uint64_t start;
    for (uint64_t i = 0; i < SORTED_SAMPLES; i++) {
        const int got =
            line_behind(m, m->nbytes / SORTED_SAMPLES * i, &start, digits);
        if (got < 0)
            return refuse("%s: not a list of %s hashes, at byte %llu", m->path,
                          password_hashes[m->which].name,
                          (unsigned long long)start);
        if (got == 0)
            break;
        if (memcmp(digits, before, ndigits) < 0)
            return refuse("%s: not sorted by hash, at byte %llu; get the list "
                          "in that order, or use LC_ALL=C sort",
                          m->path, (unsigned long long)start);
        memcpy(before, digits, ndigits);
    }
    return true;
}

/* Put lines of a piece of the file that begin with prefix into out, without it.
 * False: the range has ended. */
static bool take_lines(const char *piece, size_t n, const char *prefix,
                       struct mirror_range *out, size_t *used)
{
    *used = 0;
    for (;;) {
        const char *const line = piece + *used;
        const char *const newline = memchr(line, '\n', n - *used);
        if (!newline)
            return true;
        const size_t len = (size_t)(newline + 1 - line);
        if (len <= PREFIX_DIGITS ||
            strncasecmp(line, prefix, PREFIX_DIGITS) != 0)
            return false;
        memcpy(out->text + out->len, line + PREFIX_DIGITS, len - PREFIX_DIGITS);
        out->len += len - PREFIX_DIGITS;
        *used += len;
    }
}

static bool file_range(const struct mirror *m, const char *prefix,
                       struct mirror_range *out, char *why, size_t nwhy)
{
    char piece[16384];
    uint64_t place;
    if (!file_seek(m, prefix, &place)) {
        snprintf(why, nwhy, "not a list of hashes");
        return false;
    }
    for (;;) {
        size_t used;
        ssize_t got = pread(m->fd, piece, sizeof piece - 1, (off_t)place);
        if (got < 0) {
            snprintf(why, nwhy, "%s", strerror(errno));
            return false;
        }
        if (got == 0)
            return true;
        if ((size_t)got < sizeof piece - 1 && piece[got - 1] != '\n')
            piece[got++] = '\n';
        char *const more = realloc(out->text, out->len + (size_t)got);
        if (!more || out->len > RANGE_MOST) {
            snprintf(why, nwhy,
                     more ? "a range of more than 8 MiB" : "out of memory");
            out->text = more ? more : out->text;
            return false;
        }
        out->text = more;
        if (!take_lines(piece, (size_t)got, prefix, out, &used))
            return true;
        if (used == 0) {
            snprintf(why, nwhy, "a line that is too long");
            return false;
        }
        place += used;
    }
}

/* ------------------------------------------------------------------ folders */

static bool folder_range(const struct mirror *m, const char *prefix,
                         struct mirror_range *out, char *why, size_t nwhy)
{
    static const char *const ends[] = { "", ".txt" };
    char name[PREFIX_DIGITS + 8];
    int fd = -1;
    for (size_t i = 0; i < 2 * sizeof ends / sizeof *ends && fd < 0; i++) {
        snprintf(name, sizeof name, "%.*s%s", PREFIX_DIGITS, prefix,
                 ends[i % 2]);
        for (char *c = name; i >= 2 && c < name + PREFIX_DIGITS; c++)
            *c = *c >= 'A' ? (char)(*c - 'A' + 'a') : *c;
        fd = openat(m->fd, name, O_RDONLY | O_CLOEXEC);
    }
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || (size_t)st.st_size > RANGE_MOST) {
        snprintf(why, nwhy, "%.*s: %s", PREFIX_DIGITS, prefix,
                 fd < 0 ? strerror(errno) : "not a range");
        if (fd >= 0)
            close(fd);
        return false;
    }
    out->text = malloc((size_t)st.st_size + 2);
    const int64_t got =
        out->text ? read_all(fd, out->text, (size_t)st.st_size) : -1;
    close(fd);
    if (got < 0) {
        snprintf(why, nwhy, "%.*s: cannot be read", PREFIX_DIGITS, prefix);
        return false;
    }
    out->len = (size_t)got;
    if (out->len && out->text[out->len - 1] != '\n')
        out->text[out->len++] = '\n';
    return true;
}

/* ---------------------------------------------------------------------- all */

bool mirror_open(struct mirror *m, const char *path, unsigned which)
{
    struct stat st;
    *m = (struct mirror){ .path = path, .which = which };
    m->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (m->fd < 0 || fstat(m->fd, &st) != 0) {
        fail_path(path, errno);
        mirror_close(m);
        return false;
    }
    m->folder = S_ISDIR(st.st_mode);
    m->nbytes = (uint64_t)st.st_size;
    if (!m->folder && !S_ISREG(st.st_mode))
        fail("%s: neither a folder of range files nor a sorted list", path);
    else if (m->folder || file_is_sorted(m))
        return true;
    mirror_close(m);
    return false;
}

void mirror_close(struct mirror *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
}

bool mirror_range(const struct mirror *m, const char *prefix,
                  struct mirror_range *out, char *why, size_t nwhy)
{
    *out = (struct mirror_range){ 0 };
    if (m->folder ? folder_range(m, prefix, out, why, nwhy)
                  : file_range(m, prefix, out, why, nwhy))
        return true;
    free(out->text);
    *out = (struct mirror_range){ 0 };
    return false;
}

bool range_line(const struct mirror_range *r, size_t *at, bly_bytes *suffix,
                uint64_t *count)
{
    if (*at >= r->len)
        return false;
    const char *const line = r->text + *at;
    const char *const end = memchr(line, '\n', r->len - *at);
    const size_t n = (size_t)(end - line);
    *at += n + 1;
    const char *const colon = memchr(line, ':', n);
    const size_t ndigits = n && line[n - 1] == '\r' ? n - 1 : n;
    *suffix = (bly_bytes){ line, colon ? (size_t)(colon - line) : ndigits };
    *count = !colon; /* a list without counts has it once */
    for (const char *c = colon ? colon + 1 : end; c < end; c++)
        if (*c >= '0' && *c <= '9' && *count < UINT64_MAX / 10 - 9)
            *count = *count * 10 + (uint64_t)(*c - '0');
    return true;
}

bool mirror_count(const struct mirror *m, const unsigned char *hash,
                  uint64_t *count, char *why, size_t nwhy)
{
    const size_t nbytes = password_hashes[m->which].nbytes;
    char digits[2 * HASH_MOST];
    hex_put_upper(hash, nbytes, digits);
    struct mirror_range r;
    *count = 0;
    if (!mirror_range(m, digits, &r, why, nwhy))
        return false;
    const size_t nsuffix = 2 * nbytes - PREFIX_DIGITS;
    bly_bytes suffix;
    uint64_t seen;
    for (size_t at = 0; range_line(&r, &at, &suffix, &seen);)
        if (suffix.len == nsuffix &&
            strncasecmp(suffix.ptr, digits + PREFIX_DIGITS, nsuffix) == 0)
            *count = seen;
    free(r.text);
    return true;
}
