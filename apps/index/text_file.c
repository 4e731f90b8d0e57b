/*
 * text_file.c - the text in a file, read from its beginning or from the middle
 *
 *     gzip    [header | deflate blocks | sum] [header | ...]
 *              member     ^ point               member
 *     zstd    [frame] [frame] [table, which unpacks to nothing]
 *     xz      [header | block | block | index | footer]
 *     bzip2   [header | block | block | sum]     blocks begin at any bit
 *
 * Of gzip this file steps from deflate block to deflate block, so that a point
 * can be taken between two of them. The entries of xz are read from the index
 * at its end before the text is read. A block of bzip2 is found by the 48 bits
 * it begins with, while the file is read: the decoder gives all text of a block
 * before it looks at the next one. To enter it, the bits from there on are
 * moved to the beginning of a byte, behind a header. Only the sum of the whole
 * stream is then wrong, which tells its end; each block has a sum of its own.
 *
 * What cannot be entered any nearer is read from the last entry before it; the
 * text on the way is dropped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>
#ifdef BLY_LZMA
#include <lzma.h>
#endif

#include "apps/index/text_file.h"
#include "base/grow.h"
#include "base/search.h"
#include "io/unpack.h"

#define PIECE_BYTES ((size_t)128 * 1024) /* compressed bytes read at a time */
#define WINDOW_BYTES ((size_t)32 * 1024)

enum text_way {
    WAY_PLAIN,
    WAY_ROW,  /* a row of unpack.h */
    WAY_GZIP, /* gzip, from block to block */
    WAY_RAW,  /* what is left of a member of gzip behind a point */
    WAY_BLOCK /* a block of xz, alone */
};

struct text_file {
    int fd;
    struct stat st;
    char error[160];
    const struct unpacker *packed; /* NULL: plain */
    bool known;
    enum text_way way;
    void *row;  /* state of the row */
    z_stream z; /* of gzip; set up if z_open */
    bool z_open;
    unsigned char *in;
    size_t from, to;
    uint64_t read_at; /* where in the file the next piece is read */
    uint64_t at;      /* bytes of text given so far */
    bool in_member, at_end, finished;

    /* Of bzip2. */
    bool is_bzip2;
    unsigned shift;      /* bits that `in` was moved by, 0 to 7 */
    bool moved;          /* entered at a block: see above */
    unsigned char carry; /* the byte before the next piece, if moved */
    uint64_t first_bit;  /* of the file, that `in` begins with */
    uint64_t window;     /* the last 64 bits that were looked at */
    size_t looked;       /* bytes of `in` that were */
    uint64_t block_bit;  /* of a block that the decoder is about to reach */
    uint64_t block_text; /* text before the last one that was reached */
    uint64_t end_bit;    /* of the end of the stream; 0: not seen */

    uint64_t points, last_point; /* distance, and text at the last one */
    struct text_entry *entries;
    size_t nentries, entries_room, entry; /* the one that was asked for last */
#ifdef BLY_LZMA
    lzma_stream xz;
    lzma_block xz_block;
    lzma_filter xz_filters[LZMA_FILTERS_MAX + 1];
    bool xz_open;
#endif
};

static bool text_fail(struct text_file *t, const char *what)
{
    snprintf(t->error, sizeof t->error, "%s", what);
    return false;
}

static bool text_damaged(struct text_file *t)
{
    snprintf(t->error, sizeof t->error, "the %s data is damaged",
             t->packed ? t->packed->name : "");
    return false;
}

struct text_file *text_file_open(const char *name, uint64_t points)
{
    struct text_file *const t = calloc(1, sizeof *t);
    if (!t || !(t->in = malloc(PIECE_BYTES))) {
        free(t);
        errno = ENOMEM;
        return NULL;
    }
    t->points = points;
    /* A pipe that nobody writes to must not stop a walk through folders. */
    t->fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = errno;
    if (t->fd >= 0 && fstat(t->fd, &t->st) != 0) {
        error = errno;
        close(t->fd);
        t->fd = -1;
    } else if (t->fd >= 0 && !S_ISREG(t->st.st_mode)) {
        error = S_ISDIR(t->st.st_mode) ? EISDIR : EINVAL;
        close(t->fd);
        t->fd = -1;
    }
    if (t->fd < 0) {
        free(t->in);
        free(t);
        errno = error;
        return NULL;
    }
    posix_fadvise(t->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return t;
}

static void decoders_close(struct text_file *t)
{
    if (t->row)
        t->packed->close(t->row);
    t->row = NULL;
    if (t->z_open)
        inflateEnd(&t->z);
    t->z_open = false;
#ifdef BLY_LZMA
    if (t->xz_open) {
        lzma_end(&t->xz);
        for (size_t i = 0; t->xz_filters[i].id != LZMA_VLI_UNKNOWN; i++)
            free(t->xz_filters[i].options);
    }
    t->xz_open = false;
#endif
}

void text_file_close(struct text_file *t)
{
    if (!t)
        return;
    decoders_close(t);
    for (size_t i = 0; i < t->nentries; i++)
        free((void *)(uintptr_t)t->entries[i].window);
    free(t->entries);
    close(t->fd);
    free(t->in);
    free(t);
}

const char *text_file_error(const struct text_file *t)
{
    return t->error;
}

const struct stat *text_file_stat(const struct text_file *t)
{
    return &t->st;
}

bool text_file_unchanged(const struct text_file *t)
{
    struct stat st;
    return fstat(t->fd, &st) == 0 && st.st_size == t->st.st_size &&
           st.st_mtim.tv_sec == t->st.st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == t->st.st_mtim.tv_nsec &&
           st.st_ctim.tv_sec == t->st.st_ctim.tv_sec &&
           st.st_ctim.tv_nsec == t->st.st_ctim.tv_nsec;
}

const char *text_file_packing(const struct text_file *t)
{
    return t->packed ? t->packed->name : NULL;
}

uint64_t text_file_done(const struct text_file *t)
{
    return t->read_at;
}

/* ----------------------------------------------------------------- entries */

static bool entry_put(struct text_file *t, const struct text_entry *e)
{
    if (!GROW(&t->entries, &t->entries_room, t->nentries + 1))
        return text_fail(t, strerror(ENOMEM));
    t->entries[t->nentries++] = *e;
    return true;
}

const struct text_entry *text_file_entry_before(struct text_file *t,
                                                uint64_t at)
{
    if (!t->nentries)
        return NULL;
    while (t->entry + 1 < t->nentries && t->entries[t->entry + 1].text <= at) {
        /* Nobody comes back to this one. */
        free((void *)(uintptr_t)t->entries[t->entry].window);
        t->entries[t->entry].window = NULL;
        t->entry++;
    }
    return &t->entries[t->entry];
}

/* Between two blocks of deflate: is a point due? */
static bool point_take(struct text_file *t)
{
    if (!t->points || t->at - t->last_point < t->points)
        return true;
    unsigned char window[WINDOW_BYTES];
    uInt n = 0;
    if (inflateGetDictionary(&t->z, window, &n) != Z_OK)
        return true;
    const size_t room = ZSTD_compressBound(n);
    unsigned char *const packed = malloc(room);
    if (!packed)
        return text_fail(t, strerror(ENOMEM));
    const size_t size = ZSTD_compress(packed, room, window, n, 9);
    if (ZSTD_isError(size)) {
        free(packed);
        return true;
    }
    const struct text_entry e = {
        .kind = ENTRY_POINT,
        .bits = (unsigned)t->z.data_type & 7,
        .packed = t->read_at - (t->to - t->from),
        .text = t->at,
        .window = packed,
        .nwindow = size,
    };
    t->last_point = t->at;
    if (entry_put(t, &e))
        return true;
    free(packed);
    return false;
}

#ifdef BLY_LZMA
/* The blocks of an xz file, from the indexes at the ends of its streams. What
 * is wrong with them shows when the text is read. */
static bool xz_blocks(struct text_file *t)
{
    lzma_stream s = LZMA_STREAM_INIT;
    lzma_index *index = NULL;
    unsigned char buf[16384];
    uint64_t at = 0;
    lzma_ret rc = lzma_file_info_decoder(&s, &index, (uint64_t)64 << 20,
                                         (uint64_t)t->st.st_size);
    while (rc == LZMA_OK) {
        if (s.avail_in == 0) {
            const ssize_t got = pread(t->fd, buf, sizeof buf, (off_t)at);
            if (got <= 0)
                break;
            at += (uint64_t)got;
            s.next_in = buf;
            s.avail_in = (size_t)got;
        }
        rc = lzma_code(&s, LZMA_RUN);
        if (rc == LZMA_SEEK_NEEDED) {
            at = s.seek_pos;
            s.avail_in = 0;
            rc = LZMA_OK;
        }
    }
    bool ok = true;
    if (rc == LZMA_STREAM_END) {
        lzma_index_iter i;
        lzma_index_iter_init(&i, index);
        while (ok &&
               !lzma_index_iter_next(&i, LZMA_INDEX_ITER_NONEMPTY_BLOCK)) {
            const struct text_entry e = {
                .kind = ENTRY_XZ,
                .bits = (unsigned)i.stream.flags->check,
                .packed = i.block.compressed_file_offset,
                .text = i.block.uncompressed_file_offset,
            };
            if (e.text)
                ok = entry_put(t, &e);
        }
        lzma_index_end(index, NULL);
    }
    lzma_end(&s);
    return ok;
}
#endif

/* ------------------------------------------------------------------ pieces */

/* Move the bits of n new bytes, with those left over from before; the number of
 * bytes. At the end of the file, the last bits come as one byte. */
static size_t bits_move(struct text_file *t, size_t n)
{
    t->first_bit = (t->read_at - n) * 8 - 8 + t->shift;
    if (!n && !t->at_end) {
        t->in[0] = (unsigned char)(t->carry << t->shift);
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned char next = t->in[i];
        t->in[i] =
            (unsigned char)(t->carry << t->shift | next >> (8 - t->shift));
        t->carry = next;
    }
    return n;
}

/* Compressed bytes, once those there are used up. False for an error. */
static bool text_refill(struct text_file *t)
{
    if (t->from < t->to || t->at_end)
        return true;
    ssize_t got;
    do
        got = pread(t->fd, t->in, PIECE_BYTES, (off_t)t->read_at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return text_fail(t, strerror(errno));
    t->from = t->looked = 0;
    t->read_at += (uint64_t)got;
    t->first_bit = (t->read_at - (uint64_t)got) * 8;
    t->to = t->moved ? bits_move(t, (size_t)got) : (size_t)got;
    t->at_end = got == 0;
    return true;
}

/* The bytes at `at` of the file come next. */
static void text_place(struct text_file *t, uint64_t at)
{
    t->read_at = at;
    t->from = t->to = t->looked = 0;
    t->at_end = t->finished = t->in_member = false;
    t->moved = false;
    t->window = t->block_bit = t->end_bit = 0;
}

/* How is it packed? */
static bool text_know(struct text_file *t)
{
    bool more;
    if (t->known)
        return true;
    text_place(t, 0);
    if (!text_refill(t))
        return false;
    t->packed = unpacker_of(t->in, t->to, &more);
    for (size_t i = 0; more && !t->packed && unpacker_at(i); i++) {
        const struct unpacker *const u = unpacker_at(i);
        if (t->to >= u->sure && memcmp(t->in, u->magic, u->sure) == 0)
            t->packed = u;
    }
    text_place(t, 0);
    t->known = true;
    if (!t->packed)
        return true;
    if (t->packed->library) {
        snprintf(t->error, sizeof t->error,
                 "compressed with %s, and this bloomery was built without %s",
                 t->packed->name, t->packed->library);
        return false;
    }
    const struct text_entry e = { .kind = ENTRY_MEMBER };
    if (!entry_put(t, &e))
        return false;
    t->is_bzip2 = strcmp(t->packed->name, "bzip2") == 0;
#ifdef BLY_LZMA
    if (strcmp(t->packed->name, "xz") == 0)
        return xz_blocks(t);
#endif
    return true;
}

/* ---------------------------------------------------------------- decoders */

static bool is_gzip(const struct text_file *t)
{
    return t->packed && strcmp(t->packed->name, "gzip") == 0;
}

/* Begin with a member at byte `at` of the file. */
static bool member_begin(struct text_file *t, uint64_t at)
{
    decoders_close(t);
    text_place(t, at);
    if (!t->packed) {
        t->way = WAY_PLAIN;
        return true;
    }
    if (is_gzip(t)) {
        t->way = WAY_GZIP;
        memset(&t->z, 0, sizeof t->z);
        t->z_open = inflateInit2(&t->z, 15 + 16) == Z_OK;
        return t->z_open || text_fail(t, strerror(ENOMEM));
    }
    t->way = WAY_ROW;
    t->row = t->packed->open();
    return t->row || text_fail(t, strerror(ENOMEM));
}

/* Begin at a point of gzip. */
static bool point_begin(struct text_file *t, const struct text_entry *e)
{
    unsigned char window[WINDOW_BYTES], byte = 0;
    decoders_close(t);
    const size_t n =
        ZSTD_decompress(window, sizeof window, e->window, e->nwindow);
    if (!is_gzip(t) || ZSTD_isError(n) || e->bits > 7 ||
        (e->bits && (e->packed == 0 ||
                     pread(t->fd, &byte, 1, (off_t)(e->packed - 1)) != 1)))
        return text_damaged(t);
    text_place(t, e->packed);
    memset(&t->z, 0, sizeof t->z);
    if (inflateInit2(&t->z, -15) != Z_OK)
        return text_fail(t, strerror(ENOMEM));
    t->z_open = true;
    t->way = WAY_RAW;
    t->in_member = true;
    if ((e->bits &&
         inflatePrime(&t->z, (int)e->bits, byte >> (8 - e->bits)) != Z_OK) ||
        inflateSetDictionary(&t->z, window, (uInt)n) != Z_OK)
        return text_damaged(t);
    return true;
}

#ifdef BLY_LZMA
#define XZ_BLOCK_MEMORY ((uint64_t)256 << 20)

/* Begin at a block of xz. */
static bool block_begin(struct text_file *t, const struct text_entry *e)
{
    unsigned char header[LZMA_BLOCK_HEADER_SIZE_MAX];
    decoders_close(t);
    text_place(t, e->packed);
    if (pread(t->fd, header, 1, (off_t)e->packed) != 1 || header[0] == 0)
        return text_damaged(t);
    t->xz_block = (lzma_block){ .version = 1,
                                .check = (lzma_check)e->bits,
                                .filters = t->xz_filters };
    t->xz_block.header_size = lzma_block_header_size_decode(header[0]);
    const size_t n = t->xz_block.header_size;
    if (pread(t->fd, header, n, (off_t)e->packed) != (ssize_t)n)
        return text_damaged(t);
    t->xz_filters[0].id = LZMA_VLI_UNKNOWN;
    if (lzma_block_header_decode(&t->xz_block, NULL, header) != LZMA_OK)
        return text_damaged(t);
    t->xz = (lzma_stream)LZMA_STREAM_INIT;
    t->xz_open = true;
    if (lzma_raw_decoder_memusage(t->xz_filters) > XZ_BLOCK_MEMORY)
        return text_fail(t, "the xz data needs more memory than a file may "
                            "use");
    if (lzma_block_decoder(&t->xz, &t->xz_block) != LZMA_OK)
        return text_fail(t, strerror(ENOMEM));
    text_place(t, e->packed + n);
    t->way = WAY_BLOCK;
    t->in_member = true;
    return true;
}
#endif

/* Zeros behind a member, where there may be some. */
static bool padding_skip(struct text_file *t)
{
    do {
        while (t->from < t->to && t->in[t->from] == 0)
            t->from++;
        if (!text_refill(t))
            return false;
    } while (t->from < t->to && t->in[t->from] == 0);
    return true;
}

/* ------------------------------------------------------------------ bzip2 */

#define BZIP2_BLOCK UINT64_C(0x314159265359)
#define BZIP2_END UINT64_C(0x177245385090)
#define BZIP2_MARK 48 /* bits of these */
#define BZIP2_SUM 32  /* bits that follow the end of a stream */

/* Look on for the beginning of a block, or the end of the stream. How many
 * bytes of `in` the decoder may have: up to where that was found, or all. */
static size_t bzip2_look(struct text_file *t)
{
    const uint64_t mask = (UINT64_C(1) << BZIP2_MARK) - 1;
    while (!t->block_bit && t->looked < t->to) {
        const uint64_t w = t->window = t->window << 8 | t->in[t->looked++];
        const uint64_t behind = t->first_bit + 8 * (uint64_t)t->looked;
        for (unsigned i = 8; i--;) {
            const uint64_t bits = w >> i & mask;
            if (bits == BZIP2_BLOCK)
                t->block_bit = behind - i - BZIP2_MARK;
            else if (bits == BZIP2_END)
                t->end_bit = behind - i - BZIP2_MARK;
        }
    }
    return t->looked;
}

/* Begin at a block of bzip2, with a header of the largest size. */
static bool bzip2_begin(struct text_file *t, const struct text_entry *e)
{
    static const unsigned char header[] = { 'B', 'Z', 'h', '9' };
    struct unpack_io io = { .in = header, .nin = sizeof header };
    unsigned char none;
    decoders_close(t);
    text_place(t, e->packed / 8 + 1);
    if (!t->is_bzip2 || e->packed / 8 >= (uint64_t)t->st.st_size ||
        pread(t->fd, &t->carry, 1, (off_t)(e->packed / 8)) != 1)
        return text_damaged(t);
    t->moved = true;
    t->shift = (unsigned)(e->packed % 8);
    t->way = WAY_ROW;
    t->row = t->packed->open();
    if (!t->row)
        return text_fail(t, strerror(ENOMEM));
    io.out = &none;
    t->in_member = true;
    return (t->packed->run(t->row, &io) == UNPACK_ON && io.nin == 0) ||
           text_damaged(t);
}

/* The stream that was entered in its middle has ended, or the decoder found
 * fault with its sum: go on behind it. False: it is damaged. */
static bool bzip2_end(struct text_file *t)
{
    const uint64_t next = (t->end_bit + BZIP2_MARK + BZIP2_SUM + 7) / 8;
    if (!t->moved || !t->end_bit || next > (uint64_t)t->st.st_size)
        return text_damaged(t);
    return member_begin(t, next);
}

/* A member has ended: what comes behind it? */
static bool member_end(struct text_file *t)
{
    t->in_member = false;
    if (t->packed->padded && !padding_skip(t))
        return false;
    if (!text_refill(t))
        return false;
    if (t->from == t->to)
        return true;
    t->block_text = t->at;
    const struct text_entry e = { .kind = ENTRY_MEMBER,
                                  .packed = t->read_at - (t->to - t->from),
                                  .text = t->at };
    return entry_put(t, &e);
}

static unsigned zlib_many(size_t n)
{
    return (unsigned)(n < (size_t)1 << 30 ? n : (size_t)1 << 30);
}

/* One step of gzip; the text it gave, or -1. */
static ptrdiff_t gzip_step(struct text_file *t, unsigned char *buf, size_t n)
{
    t->z.next_in = t->in + t->from;
    t->z.avail_in = zlib_many(t->to - t->from);
    t->z.next_out = buf;
    t->z.avail_out = zlib_many(n);
    const unsigned in = t->z.avail_in, out = t->z.avail_out;
    const int rc =
        inflate(&t->z, t->points && t->way == WAY_GZIP ? Z_BLOCK : Z_NO_FLUSH);
    t->from += in - t->z.avail_in;
    const unsigned got = out - t->z.avail_out;
    t->at += got;
    t->in_member = true;
    if (rc == Z_MEM_ERROR)
        return text_fail(t, strerror(ENOMEM)) - 1;
    if (rc == Z_STREAM_END) {
        if (t->way == WAY_RAW) { /* the sums, which are of the whole member */
            for (unsigned left = 8; left;) {
                if (!text_refill(t))
                    return -1;
                if (t->from == t->to)
                    return text_fail(t, "the gzip data ends too early") - 1;
                const size_t step =
                    t->to - t->from < left ? t->to - t->from : left;
                t->from += step;
                left -= (unsigned)step;
            }
            t->way = WAY_GZIP;
            inflateEnd(&t->z);
            memset(&t->z, 0, sizeof t->z);
            t->z_open = inflateInit2(&t->z, 15 + 16) == Z_OK;
            if (!t->z_open)
                return text_fail(t, strerror(ENOMEM)) - 1;
        } else if (inflateReset(&t->z) != Z_OK) {
            return text_damaged(t) - 1;
        }
        t->last_point = t->at;
        return member_end(t) ? (ptrdiff_t)got : -1;
    }
    if (rc != Z_OK && rc != Z_BUF_ERROR)
        return text_damaged(t) - 1;
    if (t->points && t->way == WAY_GZIP && (t->z.data_type & 128) &&
        !(t->z.data_type & 64) && !point_take(t))
        return -1;
    return (ptrdiff_t)got;
}

static ptrdiff_t row_step(struct text_file *t, unsigned char *buf, size_t n)
{
    const size_t to = t->is_bzip2 ? bzip2_look(t) : t->to;
    struct unpack_io io = {
        .in = t->in + t->from, .nin = to - t->from, .out = buf, .nout = n
    };
    const enum unpacked how = t->packed->run(t->row, &io);
    bool stuck = io.nin == to - t->from && io.nout == n;
    t->from = to - io.nin;
    t->at += n - io.nout;
    t->in_member = how == UNPACK_ON;
    if (t->block_bit && how == UNPACK_ON && io.nin == 0 && io.nout) {
        /* All text before the block has been given, and if there is none since
         * the last one, this is the first of its stream, or no block. */
        const struct text_entry e = { .kind = ENTRY_BZIP2,
                                      .packed = t->block_bit,
                                      .text = t->at };
        t->block_bit = 0;
        stuck = false;
        if (t->at > t->block_text && !t->moved && !entry_put(t, &e))
            return -1;
        t->block_text = t->at;
    }
    if (t->moved && (how == UNPACK_DAMAGED || how == UNPACK_MEMBER))
        return bzip2_end(t) ? (ptrdiff_t)(n - io.nout) : -1;
    if (how == UNPACK_MEMORY)
        return text_fail(t, strerror(ENOMEM)) - 1;
    if (how == UNPACK_LARGE) {
        snprintf(t->error, sizeof t->error,
                 "the %s data needs more memory than a file may use",
                 t->packed->name);
        return -1;
    }
    if (how != UNPACK_ON && how != UNPACK_MEMBER)
        return text_damaged(t) - 1;
    if (how == UNPACK_MEMBER && strcmp(t->packed->name, "xz") != 0) {
        if (!member_end(t))
            return -1;
    } else if (how == UNPACK_MEMBER && !padding_skip(t)) {
        return -1; /* the blocks of xz are known */
    }
    if (stuck && t->in_member && t->from < t->to)
        return text_damaged(t) - 1;
    return (ptrdiff_t)(n - io.nout);
}

#ifdef BLY_LZMA
/* The block that byte `at` of the text is in, or NULL. */
static const struct text_entry *xz_entry(const struct text_file *t, uint64_t at)
{
    size_t i = 0;
    LOWER_BOUND(i, t->nentries, t->entries[i].text <= at);
    return i && t->entries[i - 1].kind == ENTRY_XZ ? &t->entries[i - 1] : NULL;
}

static ptrdiff_t block_step(struct text_file *t, unsigned char *buf, size_t n)
{
    t->xz.next_in = t->in + t->from;
    t->xz.avail_in = t->to - t->from;
    t->xz.next_out = buf;
    t->xz.avail_out = n;
    const lzma_ret rc = lzma_code(&t->xz, LZMA_RUN);
    t->from = t->to - t->xz.avail_in;
    const size_t got = n - t->xz.avail_out;
    t->at += got;
    if (rc == LZMA_STREAM_END) {
        const struct text_entry *const next = xz_entry(t, t->at);
        t->in_member = false;
        t->finished = !next || next->text != t->at;
        return t->finished || block_begin(t, next) ? (ptrdiff_t)got : -1;
    }
    if (rc != LZMA_OK && rc != LZMA_BUF_ERROR)
        return text_damaged(t) - 1;
    return (ptrdiff_t)got;
}
#endif

static ptrdiff_t plain_step(struct text_file *t, unsigned char *buf, size_t n)
{
    ssize_t got;
    do
        got = pread(t->fd, buf, n, (off_t)t->at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return text_fail(t, strerror(errno)) - 1;
    t->at += (uint64_t)got;
    t->read_at = t->at;
    return got;
}

ptrdiff_t text_file_read(struct text_file *t, void *buf, size_t n)
{
    if (!t->known && !text_know(t))
        return -1;
    if (t->packed && !t->row && !t->z_open && t->way == WAY_PLAIN &&
        !member_begin(t, 0))
        return -1;
    if (!t->packed)
        return plain_step(t, buf, n);
    while (!t->finished) {
        if (!text_refill(t))
            return -1;
        const bool had = t->from < t->to;
        if (!had && !t->in_member) {
            t->finished = true;
            break;
        }
        ptrdiff_t got;
        if (t->way == WAY_ROW)
            got = row_step(t, buf, n);
#ifdef BLY_LZMA
        else if (t->way == WAY_BLOCK)
            got = block_step(t, buf, n);
#endif
        else
            got = gzip_step(t, buf, n);
        if (got)
            return got;
        if (!had && t->in_member) {
            snprintf(t->error, sizeof t->error, "the %s data ends too early",
                     t->packed->name);
            return -1;
        }
    }
    return 0;
}

/* Text that nobody wants. */
static bool text_drop(struct text_file *t, uint64_t n)
{
    char buf[65536];
    while (n) {
        const ptrdiff_t got =
            text_file_read(t, buf, n < sizeof buf ? (size_t)n : sizeof buf);
        if (got < 0)
            return false;
        if (got == 0)
            return text_fail(t, "ends too early");
        n -= (uint64_t)got;
    }
    return true;
}

bool text_file_go(struct text_file *t, const struct text_entry *e, uint64_t at)
{
    if (!t->known && !text_know(t))
        return false;
    if (!t->packed) {
        t->at = at;
        return true;
    }
#ifdef BLY_LZMA
    if (strcmp(t->packed->name, "xz") == 0)
        e = xz_entry(t, at);
#endif
    const uint64_t from = e ? e->text : 0;
    if (from > at || (e && e->kind >= ENTRY_KINDS))
        return text_fail(t, "the index does not fit it");
    const bool begun = t->row || t->z_open || t->way == WAY_BLOCK;
    if (!begun || t->finished || t->at > at || t->at < from) {
        bool ok;
        if (e && e->kind == ENTRY_POINT)
            ok = point_begin(t, e);
        else if (e && e->kind == ENTRY_BZIP2)
            ok = bzip2_begin(t, e);
#ifdef BLY_LZMA
        else if (e && e->kind == ENTRY_XZ && strcmp(t->packed->name, "xz") == 0)
            ok = block_begin(t, e);
#endif
        else
            ok = member_begin(t, e ? e->packed : 0);
        if (!ok)
            return false;
        t->at = from;
    }
    return text_drop(t, at - t->at);
}
