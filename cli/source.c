/*
 * source.c - the bytes of one file, decompressed where it is compressed
 *
 * The first bytes tell:
 *
 *     1f 8b 08       gzip; members may follow one another, zeros may follow
 *     28 b5 2f fd    zstd; frames may follow one another
 *     5x 2a 4d 18    zstd too: a frame to be skipped, which some tools write
 *                    first
 *
 * anything else is taken as it is, and straight into the caller's buffer. A
 * compressed file that ends too early, or goes on with something else, is an
 * error: half a list must not look like a list.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "cli/source.h"

#define MAGIC_BYTES 4
#define PACKED_BYTES (128 * 1024) /* compressed bytes read at a time */

enum coding { CODING_UNKNOWN, CODING_PLAIN, CODING_GZIP, CODING_ZSTD };

struct source {
    int fd;
    int stop_fd; /* -1: none, or the file never waits */
    enum coding coding;
    uint64_t done;
    char error[128];
    unsigned char *in; /* PACKED_BYTES; the first ones also when plain */
    size_t from, to;   /* of in: read and not used yet */
    bool at_end;       /* of the file */
    bool in_member;    /* within a gzip member or a zstd frame */
    z_stream gzip;
    ZSTD_DStream *zstd;
};

struct source *source_open(const char *name, int stop_fd)
{
    struct source *const s = calloc(1, sizeof *s);
    if (!s || !(s->in = malloc(PACKED_BYTES))) {
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    s->fd = strcmp(name, "-") == 0 ? STDIN_FILENO
                                   : open(name, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0) {
        const int error = errno;
        free(s->in);
        free(s);
        errno = error;
        return NULL;
    }
    struct stat st;
    const bool waits = fstat(s->fd, &st) != 0 || !S_ISREG(st.st_mode);
    s->stop_fd = waits ? stop_fd : -1;
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return s;
}

void source_close(struct source *s)
{
    if (!s)
        return;
    if (s->coding == CODING_GZIP)
        inflateEnd(&s->gzip);
    ZSTD_freeDStream(s->zstd);
    if (s->fd != STDIN_FILENO)
        close(s->fd);
    free(s->in);
    free(s);
}

const char *source_error(const struct source *s)
{
    return s->error;
}

uint64_t source_done(const struct source *s)
{
    return s->done;
}

static ptrdiff_t source_fail(struct source *s, const char *error)
{
    snprintf(s->error, sizeof s->error, "%s", error);
    return -1;
}

static ptrdiff_t read_some(struct source *s, void *buf, size_t n)
{
    ssize_t got;
    do {
        if (s->stop_fd >= 0) {
            struct pollfd fds[2] = { { .fd = s->fd, .events = POLLIN },
                                     { .fd = s->stop_fd, .events = POLLIN } };
            if (poll(fds, 2, -1) > 0 && fds[1].revents) {
                s->at_end = true;
                return 0;
            }
        }
        got = read(s->fd, buf, n);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return source_fail(s, strerror(errno));
    s->done += (uint64_t)got;
    s->at_end = got == 0;
    return got;
}

/* More compressed bytes, once those there are used up. False for an error. */
static bool refill(struct source *s)
{
    if (s->from < s->to || s->at_end)
        return true;
    const ptrdiff_t got = read_some(s, s->in, PACKED_BYTES);
    s->from = 0;
    s->to = got > 0 ? (size_t)got : 0;
    return got >= 0;
}

/* Could these n bytes be the start of a gzip or zstd file? UNKNOWN: more of
 * them are needed to tell. */
static enum coding coding_of(const unsigned char *b, size_t n)
{
    static const struct {
        unsigned char bytes[MAGIC_BYTES], mask0;
        size_t n;
        enum coding coding;
    } magics[] = {
        { { 0x1f, 0x8b, 0x08 }, 0xff, 3, CODING_GZIP },
        { { 0x28, 0xb5, 0x2f, 0xfd }, 0xff, 4, CODING_ZSTD },
        { { 0x50, 0x2a, 0x4d, 0x18 }, 0xf0, 4, CODING_ZSTD },
    };
    bool possible = false;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const size_t known = n < magics[i].n ? n : magics[i].n;
        if (known && (b[0] & magics[i].mask0) != magics[i].bytes[0])
            continue;
        if (known > 1 && memcmp(b + 1, magics[i].bytes + 1, known - 1) != 0)
            continue;
        if (known == magics[i].n)
            return magics[i].coding;
        possible = true;
    }
    return possible ? CODING_UNKNOWN : CODING_PLAIN;
}

/* Read as many bytes as it takes to know the coding, and no more, so that a
 * person at a terminal is answered after the first line. */
static bool find_coding(struct source *s)
{
    while (s->coding == CODING_UNKNOWN) {
        const ptrdiff_t got = read_some(s, s->in + s->to, PACKED_BYTES - s->to);
        if (got < 0)
            return false;
        s->to += (size_t)got;
        s->coding = coding_of(s->in, s->to);
        /* The file is shorter than a magic. Two bytes that no text has are
         * what is left of a compressed one; "P" and "(" are keys. */
        if (got == 0 && s->coding == CODING_UNKNOWN)
            s->coding = s->to < 2 || s->in[1] < 0x80 ? CODING_PLAIN
                        : s->in[0] == 0x1f           ? CODING_GZIP
                                                     : CODING_ZSTD;
    }
    if (s->coding == CODING_GZIP) {
        if (inflateInit2(&s->gzip, 15 + 16) != Z_OK) {
            s->coding = CODING_PLAIN; /* nothing to end */
            return source_fail(s, strerror(ENOMEM)) == 0;
        }
    } else if (s->coding == CODING_ZSTD) {
        s->zstd = ZSTD_createDStream();
        if (!s->zstd)
            return source_fail(s, strerror(ENOMEM)) == 0;
    }
    return true;
}

static ptrdiff_t read_gzip(struct source *s, void *buf, size_t n)
{
    z_stream *const z = &s->gzip;
    /* zlib counts in unsigned int. */
    const uInt room = n < (1u << 30) ? (uInt)n : 1u << 30;
    z->next_out = buf;
    z->avail_out = room;
    while (z->avail_out == room) {
        if (!refill(s))
            return -1;
        if (s->from == s->to)
            return s->in_member ? source_fail(s, "the gzip data ends too early")
                                : 0;
        z->next_in = s->in + s->from;
        z->avail_in = (uInt)(s->to - s->from);
        s->in_member = true;
        const int rc = inflate(z, Z_NO_FLUSH);
        s->from = s->to - z->avail_in;
        if (rc == Z_STREAM_END) {
            s->in_member = false;
            /* Tapes and some writers pad with zeros. */
            do {
                while (s->from < s->to && s->in[s->from] == 0)
                    s->from++;
                if (!refill(s))
                    return -1;
            } while (s->from < s->to && s->in[s->from] == 0);
            if (inflateReset(z) != Z_OK)
                return source_fail(s, "the gzip data is damaged");
        } else if (rc == Z_MEM_ERROR) {
            return source_fail(s, strerror(ENOMEM));
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return source_fail(s, "the gzip data is damaged");
        }
    }
    return (ptrdiff_t)(room - z->avail_out);
}

static ptrdiff_t read_zstd(struct source *s, void *buf, size_t n)
{
    ZSTD_outBuffer out = { buf, n, 0 };
    while (out.pos == 0) {
        if (!refill(s))
            return -1;
        /* At the end of the file there may still be bytes inside zstd; it
         * gives them for no input, and nothing when there are none. */
        if (s->from == s->to && !s->in_member)
            return 0;
        ZSTD_inBuffer in = { s->in, s->to, s->from };
        const size_t rc = ZSTD_decompressStream(s->zstd, &out, &in);
        if (ZSTD_isError(rc)) {
            snprintf(s->error, sizeof s->error, "the zstd data is damaged: %s",
                     ZSTD_getErrorName(rc));
            return -1;
        }
        const bool stuck = in.pos == s->from && out.pos == 0;
        s->from = in.pos;
        s->in_member = rc != 0;
        if (stuck && s->from == s->to && s->at_end && s->in_member)
            return source_fail(s, "the zstd data ends too early");
    }
    return (ptrdiff_t)out.pos;
}

ptrdiff_t source_read(struct source *s, void *buf, size_t n)
{
    if (s->coding == CODING_UNKNOWN && !find_coding(s))
        return -1;
    if (s->coding == CODING_GZIP)
        return read_gzip(s, buf, n);
    if (s->coding == CODING_ZSTD)
        return read_zstd(s, buf, n);
    if (s->from < s->to) { /* what was read to find the coding */
        const size_t have = s->to - s->from < n ? s->to - s->from : n;
        memcpy(buf, s->in + s->from, have);
        s->from += have;
        return (ptrdiff_t)have;
    }
    return s->at_end ? 0 : read_some(s, buf, n);
}

bool source_skip(struct source *s, uint64_t n)
{
    char buf[16384];
    while (n) {
        if (s->coding == CODING_PLAIN && s->from == s->to &&
            lseek(s->fd, (off_t)n, SEEK_CUR) >= 0) {
            s->done += n;
            return true;
        }
        const ptrdiff_t got =
            source_read(s, buf, n < sizeof buf ? (size_t)n : sizeof buf);
        if (got <= 0)
            return false;
        n -= (uint64_t)got;
    }
    return true;
}
