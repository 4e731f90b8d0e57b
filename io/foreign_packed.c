/*
 * foreign_packed.c - a filter of another system in a compressed file
 *
 * A few KiB of zstd may be gigabytes of zeros, so nothing is kept before it is
 * known to be a filter. A file is read twice: the first time what comes out is
 * counted, and only its two ends stay, which is where formats tell what they
 * are. These, with nothing between them, are shown to the formats:
 *
 *     | head | ............ pages that were never written ............ | tail |
 *
 * Only where one of them knows it, it is read again, into exactly as many
 * bytes. (Of a format that was named, FREE_BYTES are read whatever they are: a
 * file may be right that is not recognised, and the format tells best what is
 * wrong.) A pipe cannot be read twice; its format was named, and it is read at
 * once. In both ways half of the memory is the most.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "io/foreign_files.h"
#include "report/say.h"

/* A chain of RedisBloom's filters lists them first, 53 bytes each; all other
 * formats tell in fewer than a hundred. */
#define HEAD_BYTES ((size_t)1 << 20)
#define TAIL_BYTES ((size_t)64 << 10)
#define FREE_BYTES ((size_t)16 << 20)

/* What came out: nbytes, of which nhead and ntail are here. */
struct picture {
    size_t nbytes, nhead, ntail;
    unsigned char head[HEAD_BYTES];
    unsigned char tail[2 * TAIL_BYTES]; /* one that is full, one behind it */
};

size_t half_of_memory(void)
{
    const uint64_t half = bly_memory_limit() / 2;
    return half < SIZE_MAX ? (size_t)half : SIZE_MAX;
}

static int too_large(const char *path)
{
    return fail("%s: unpacked, it takes more than half of the memory; unpack "
                "it to a file first",
                path);
}

static void picture_add(struct picture *p, const unsigned char *bytes, size_t n)
{
    const size_t fits = HEAD_BYTES - p->nhead;
    const size_t more = n < fits ? n : fits;
    memcpy(p->head + p->nhead, bytes, more);
    p->nhead += more;
    p->nbytes += n;
    if (p->ntail + n > sizeof p->tail) { /* n is TAIL_BYTES at most */
        p->ntail -= TAIL_BYTES;
        memmove(p->tail, p->tail + TAIL_BYTES, p->ntail);
    }
    memcpy(p->tail + p->ntail, bytes, n);
    p->ntail += n;
}

static int picture_read(const char *path, struct picture *p)
{
    unsigned char piece[TAIL_BYTES];
    const size_t most = half_of_memory();
    ptrdiff_t n = 0;
    int status = YES;
    struct source *const s = source_open(path, -1, SOURCE_ANY);
    if (!s)
        return fail_path(path, errno);
    while (status == YES && (n = source_read(s, piece, sizeof piece)) > 0) {
        picture_add(p, piece, (size_t)n);
        if (p->nbytes > most)
            status = too_large(path);
    }
    if (n < 0)
        status = fail("%s: %s", path, source_error(s));
    source_close(s);
    return status;
}

/* Does any format know it by its ends? */
static bool picture_known(const struct picture *p)
{
    bly_format_info info;
    if (p->nbytes <= p->nhead)
        return bly_format_of(p->head, p->nbytes, &info);
    unsigned char *const all =
        mmap(NULL, p->nbytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return false;
    memcpy(all, p->head, p->nhead);
    memcpy(all + p->nbytes - p->ntail, p->tail, p->ntail);
    const bool known = bly_format_of(all, p->nbytes, &info);
    munmap(all, p->nbytes);
    return known;
}

/* All of it again, into p->nbytes. */
static int picture_fill(const char *path, const struct picture *p,
                        struct foreign_file *file)
{
    struct source *const s = source_open(path, -1, SOURCE_ANY);
    if (!s)
        return fail_path(path, errno);
    unsigned char *const bytes = malloc(p->nbytes + 1);
    size_t have = 0;
    ptrdiff_t n = 0;
    /* One byte more, to see that there is none. */
    while (bytes && have <= p->nbytes &&
           (n = source_read(s, bytes + have, p->nbytes + 1 - have)) > 0)
        have += (size_t)n;
    file->bytes = bytes;
    file->nbytes = have;
    const int status = !bytes ? fail("out of memory")
                       : n < 0 || have != p->nbytes
                           ? fail("%s: changed while it was read", path)
                           : YES;
    source_close(s);
    return status;
}

/* Nobody's, as far as can be seen: what is it, then? */
static int fail_unknown(const char *path, const char *packed,
                        const struct picture *p)
{
    if (is_bly(p->head, p->nhead))
        return fail("%s: a .bly filter compressed with %s; unpack it first "
                    "(bloomery compress makes a small one that can be queried)",
                    path, packed);
    return fail("%s: compressed with %s, and its contents are not a filter of "
                "a known format; see bloomery formats",
                path, packed);
}

static bool must_be_known(const char *format, size_t nbytes)
{
    bly_format_info info;
    return !format || (nbytes > FREE_BYTES && bly_format_named(format, &info) &&
                       (info.can & BLY_FORMAT_KNOWN));
}

int foreign_unpack(const char *path, const char *packed, const char *format,
                   struct foreign_file *file)
{
    struct picture *const p = calloc(1, sizeof *p);
    if (!p)
        return fail("out of memory");
    int status = picture_read(path, p);
    if (status == YES && must_be_known(format, p->nbytes) && !picture_known(p))
        status = fail_unknown(path, packed, p);
    if (status == YES)
        status = picture_fill(path, p, file);
    free(p);
    return status;
}

int foreign_read(const char *path, struct foreign_file *file)
{
    struct source *const s = source_open(path, -1, SOURCE_ANY);
    if (!s)
        return fail_path(path, errno);
    const size_t most = half_of_memory();
    struct block b = { 0 };
    char piece[65536];
    ptrdiff_t n = 0;
    int status = YES;
    while (status == YES && (n = source_read(s, piece, sizeof piece)) > 0) {
        if (b.len > most)
            status = too_large(path);
        else if (!block_put(&b, piece, (size_t)n))
            status = fail("out of memory");
    }
    if (n < 0)
        status = fail("%s: %s", path, source_error(s));
    source_close(s);
    file->bytes = b.at;
    file->nbytes = b.len;
    return status;
}
