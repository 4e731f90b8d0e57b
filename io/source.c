/*
 * source.c - the bytes of one file, decompressed where it is compressed
 *
 * The first bytes tell how (unpack.c); anything else is taken as it is, and
 * straight into the caller's buffer. A compressed file that ends too early, or
 * goes on with something else, is an error: half a list must not look like a
 * list. Nor must an archive or a database, which are known by their first bytes
 * too, those that come out of a compressed file included.
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

#include "io/source.h"
#include "io/unpack.h"

#define PACKED_BYTES (128 * 1024) /* compressed bytes read at a time */

bool binary_input, steady_input;

struct source {
    int fd;
    bool waits;  /* it is not a regular file */
    int stop_fd; /* -1: none, or it never waits */
    off_t size;  /* of a regular file, when it was opened */
    struct timespec changed;
    enum source_use use;
    bool known;                    /* how it is packed */
    const struct unpacker *packed; /* NULL: it is not */
    void *unpacking;
    uint64_t done, given;
    uint64_t left; /* of what is to be read; UINT64_MAX: all there is */
    char error[160];
    bool broken;       /* the error is none of its bytes */
    bool other;        /* the bytes are not a list of lines */
    unsigned char *in; /* PACKED_BYTES; the first ones also when plain */
    size_t from, to;   /* of in: read and not used yet */
    bool at_end;       /* of the file */
    bool in_member;    /* of a packed one */
};

struct source *source_open(const char *name, int stop_fd, enum source_use use)
{
    struct source *const s = calloc(1, sizeof *s);
    if (!s || !(s->in = malloc(PACKED_BYTES))) {
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    s->use = use;
    s->left = UINT64_MAX;
    s->known = use == SOURCE_RAW;
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
    s->waits = fstat(s->fd, &st) != 0 || !S_ISREG(st.st_mode);
    s->stop_fd = s->waits ? stop_fd : -1;
    if (!s->waits) {
        s->size = st.st_size;
        s->changed = st.st_mtim;
    }
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return s;
}

void source_close(struct source *s)
{
    if (!s)
        return;
    if (s->unpacking)
        s->packed->close(s->unpacking);
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

bool source_other(const struct source *s)
{
    return s->other;
}

bool source_broken(const struct source *s)
{
    return s->broken;
}

bool source_waits(const struct source *s)
{
    return s->waits;
}

/* Reading or memory failed. What is wrong with the bytes is written to s->error
 * where it is found. */
static ptrdiff_t source_fail(struct source *s, const char *error)
{
    snprintf(s->error, sizeof s->error, "%s", error);
    s->broken = true;
    return -1;
}

/* Is it what it was when it was opened? */
static bool is_steady(const struct source *s)
{
    struct stat st;
    return s->waits || !steady_input || fstat(s->fd, &st) != 0 ||
           (st.st_size == s->size && st.st_mtim.tv_sec == s->changed.tv_sec &&
            st.st_mtim.tv_nsec == s->changed.tv_nsec);
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
        got = read(s->fd, buf, n < s->left ? n : (size_t)s->left);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return source_fail(s, strerror(errno));
    s->done += (uint64_t)got;
    s->left -= s->left == UINT64_MAX ? 0 : (uint64_t)got;
    s->at_end = got == 0;
    if (s->at_end && !is_steady(s))
        return source_fail(
            s, "changed while it was read; try again when it is whole");
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

/* Read just enough bytes to know how the file is packed, so that a person at a
 * terminal is answered after the first line. */
static bool find_packing(struct source *s)
{
    bool more = true;
    while (!s->packed && more) {
        const ptrdiff_t got = read_some(s, s->in + s->to, PACKED_BYTES - s->to);
        if (got < 0)
            return false;
        s->to += (size_t)got;
        s->packed = unpacker_of(s->in, s->to, &more);
        if (got == 0)
            break;
    }
    /* The file is shorter than a magic: what is left of a compressed one, or
     * a key? "P" and "(" are keys. */
    for (size_t i = 0; more && !s->packed && unpacker_at(i); i++) {
        const struct unpacker *const u = unpacker_at(i);
        if (s->to >= u->sure && memcmp(s->in, u->magic, u->sure) == 0)
            s->packed = u;
    }
    s->known = true;
    if (!s->packed)
        return true;
    if (s->packed->library) {
        snprintf(s->error, sizeof s->error,
                 "compressed with %s, and this bloomery was built without %s; "
                 "use %s FILE | bloomery ...",
                 s->packed->name, s->packed->library, s->packed->program);
        return false;
    }
    s->unpacking = s->packed->open();
    return s->unpacking || source_fail(s, strerror(ENOMEM)) == 0;
}

static ptrdiff_t fail_packed(struct source *s, enum unpacked how)
{
    const struct unpacker *const u = s->packed;
    if (how == UNPACK_MEMORY)
        return source_fail(s, strerror(ENOMEM));
    if (how == UNPACK_LARGE)
        snprintf(s->error, sizeof s->error,
                 "the %s data needs more memory than a file may use; use %s "
                 "FILE | bloomery ...",
                 u->name, u->program);
    else
        snprintf(s->error, sizeof s->error, "the %s data %s", u->name,
                 how == UNPACK_DAMAGED ? "is damaged" : "ends too early");
    return -1;
}

/* Zeros behind a member, where there may be some. */
static bool skip_padding(struct source *s)
{
    do {
        while (s->from < s->to && s->in[s->from] == 0)
            s->from++;
        if (!refill(s))
            return false;
    } while (s->from < s->to && s->in[s->from] == 0);
    return true;
}

static ptrdiff_t read_packed(struct source *s, void *buf, size_t n)
{
    struct unpack_io io = { .out = buf, .nout = n };
    while (io.nout == n) {
        if (!refill(s))
            return -1;
        if (s->from == s->to && !s->in_member)
            return 0;
        /* At the end of the file there may still be bytes inside the decoder;
         * it gives them for no input, and nothing when there are none. */
        io.in = s->in + s->from;
        io.nin = s->to - s->from;
        const enum unpacked how = s->packed->run(s->unpacking, &io);
        const bool stuck = io.nin == s->to - s->from && io.nout == n;
        s->from = s->to - io.nin;
        if (how != UNPACK_ON && how != UNPACK_MEMBER)
            return fail_packed(s, how);
        s->in_member = how == UNPACK_ON;
        if (how == UNPACK_MEMBER && s->packed->padded && !skip_padding(s))
            return -1;
        if (stuck && s->in_member && (s->at_end || s->from < s->to))
            return fail_packed(s, s->from < s->to ? UNPACK_DAMAGED : UNPACK_ON);
    }
    return (ptrdiff_t)(n - io.nout);
}

static ptrdiff_t read_plain(struct source *s, void *buf, size_t n)
{
    if (s->from < s->to) { /* what was read to find the packing */
        const size_t have = s->to - s->from < n ? s->to - s->from : n;
        memcpy(buf, s->in + s->from, have);
        s->from += have;
        return (ptrdiff_t)have;
    }
    return s->at_end ? 0 : read_some(s, buf, n);
}

static ptrdiff_t read_either(struct source *s, void *buf, size_t n)
{
    return s->packed ? read_packed(s, buf, n) : read_plain(s, buf, n);
}

/* ----------------------------------------------- files that are not lists */

#define MAGIC(at, bytes) (at), sizeof(bytes) - 1, (bytes)

static const struct {
    size_t at, n;
    const char *bytes;
    const char *what, *use; /* NULL: nothing in particular */
} no_lists[] = {
    { MAGIC(0, "\x89"
               "BLY\r\n\x1a\n"),
      "a .bly filter",
      "bloomery info FILE, or bloomery compare for what filters share" },
    { MAGIC(0, "PK\x03\x04"), "a zip archive", "unzip -p FILE" },
    { MAGIC(0, "PK\x05\x06"), "an empty zip archive", NULL },
    { MAGIC(0, "7z\xbc\xaf\x27\x1c"), "a 7z archive", "7z x -so FILE" },
    { MAGIC(0, "Rar!\x1a\x07"), "a RAR archive", "unrar p -inul FILE" },
    { MAGIC(257, "ustar"), "a tar archive", "tar xOf FILE" },
    { MAGIC(0, "\x04\x22\x4d\x18"), "compressed with lz4", "lz4 -dc FILE" },
    { MAGIC(0, "LZIP\x01"), "compressed with lzip", "lzip -dc FILE" },
    { MAGIC(0, "\x5d\x00\x00"), "compressed with lzma", "xz -dc FILE" },
    { MAGIC(0, "\x1f\x9d"), "compressed with compress", "gzip -dc FILE" },
    /* What follows is the first field of a page header or of a footer. */
    { MAGIC(0, "PAR1\x15"), "a Parquet file", "bloomery parquet add FILE" },
    { MAGIC(0, "SQLite format 3\0"), "an SQLite database",
      "sqlite3 FILE 'select ...'" },
    { MAGIC(0, "ARROW1\0\0"), "an Arrow file", NULL },
    { MAGIC(0, "Obj\x01"), "an Avro file", NULL },
    { MAGIC(0, "\x89HDF\r\n\x1a\n"), "an HDF5 file", NULL },
    { MAGIC(0, "%PDF-1."), "a PDF document", "pdftotext FILE -" },
    { MAGIC(0, "\xff\xfe\0\0"), "UTF-32 text",
      "iconv -f UTF-32 -t UTF-8 FILE" },
    { MAGIC(0, "\0\0\xfe\xff"), "UTF-32 text",
      "iconv -f UTF-32 -t UTF-8 FILE" },
    { MAGIC(0, "\xff\xfe"), "UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE" },
    { MAGIC(0, "\xfe\xff"), "UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE" },
};

/* Could more bytes make a file that is not a list of one that begins with
 * these? Pipes may give them one by one. */
static bool tells_little(const struct source *s, const void *bytes, size_t n)
{
    bool more = false;
    if (s->packed && unpacker_of(bytes, n, &more))
        return false;
    /* A list may begin with a mark, which its reader wants in one piece. */
    more |= n < 3 && memcmp(bytes, "\xef\xbb\xbf", n) == 0;
    for (size_t i = 0; i < sizeof no_lists / sizeof no_lists[0] && !more; i++)
        more = no_lists[i].at == 0 && n < no_lists[i].n &&
               memcmp(bytes, no_lists[i].bytes, n) == 0;
    return more;
}

/* Is it lines that begin with these n bytes? False, and why not. */
static bool is_list(struct source *s, const void *start, size_t n)
{
    const char *const bytes = start;
    bool more;
    const struct unpacker *const inner =
        s->packed ? unpacker_of(start, n, &more) : NULL;
    if (inner) {
        snprintf(s->error, sizeof s->error,
                 "compressed twice, with %s inside %s; use %s FILE | bloomery "
                 "...; --binary takes its bytes as they are",
                 inner->name, s->packed->name, s->packed->program);
        return false;
    }
    for (size_t i = 0; i < sizeof no_lists / sizeof no_lists[0]; i++) {
        if (n < no_lists[i].at + no_lists[i].n ||
            memcmp(bytes + no_lists[i].at, no_lists[i].bytes, no_lists[i].n) !=
                0)
            continue;
        const char *const use = no_lists[i].use;
        snprintf(
            s->error, sizeof s->error,
            "%s, not lines of text;%s%s%s --binary reads its bytes as they are",
            no_lists[i].what, use ? " use " : "", use ? use : "",
            use ? ";" : "");
        return false;
    }
    return true;
}

ptrdiff_t source_read(struct source *s, void *buf, size_t n)
{
    if (!s->known && !find_packing(s))
        return -1;
    ptrdiff_t got = read_either(s, buf, n);
    if (s->given == 0 && s->use == SOURCE_LINES) {
        ptrdiff_t more = got;
        while (more > 0 && (size_t)got < n &&
               tells_little(s, buf, (size_t)got)) {
            more = read_either(s, (char *)buf + got, n - (size_t)got);
            if (more < 0)
                return -1;
            got += more;
        }
        s->other = got > 0 && !is_list(s, buf, (size_t)got);
        if (s->other)
            return -1;
    }
    s->given += got > 0 ? (uint64_t)got : 0;
    return got;
}

bool source_part(struct source *s, uint64_t from, uint64_t nbytes)
{
    s->left = nbytes;
    if (from == 0)
        return true;
    s->use = SOURCE_RAW;
    s->known = true;
    return lseek(s->fd, (off_t)from, SEEK_SET) >= 0;
}

bool source_skip(struct source *s, uint64_t n)
{
    char buf[16384];
    while (n) {
        if (s->known && !s->packed && s->from == s->to &&
            (s->left == UINT64_MAX || n <= s->left) &&
            lseek(s->fd, (off_t)n, SEEK_CUR) >= 0) {
            s->done += n;
            s->left -= s->left == UINT64_MAX ? 0 : n;
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

size_t source_peek(const char *name, enum source_use use, void *buf, size_t n)
{
    struct stat st;
    const bool regular =
        strcmp(name, "-") != 0 && stat(name, &st) == 0 && S_ISREG(st.st_mode);
    struct source *const s = regular ? source_open(name, -1, use) : NULL;
    size_t len = 0;
    ptrdiff_t got = 1;
    while (s && len < n && got > 0) {
        got = source_read(s, (char *)buf + len, n - len);
        len += got > 0 ? (size_t)got : 0;
    }
    source_close(s);
    return len;
}
