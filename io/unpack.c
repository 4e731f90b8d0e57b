/*
 * unpack.c - gzip, zstd, xz and bzip2
 *
 *     1f 8b 08                       gzip
 *     28 b5 2f fd                    zstd
 *     5x 2a 4d 18                    zstd too: a frame to be skipped, which
 *                                    some tools write first
 *     fd 37 7a 58 5a 00              xz
 *     "BZh" 1..9 31 41 59 26 53 59   bzip2, and with 17 72 45 38 50 90 an empty
 *                                    one; "BZh9" alone may well be a key
 *
 * gzip and bzip2 need a fixed amount of memory. zstd and xz need as much as the
 * file says, up to 4 GiB, so both have a limit that admits all that the
 * programs make by themselves: zstd's own of 128 MiB (zstd --long=27), and 256
 * MiB for xz (xz -9 takes 65).
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#ifdef BLY_LZMA
#include <lzma.h>
#endif
#ifdef BLY_BZIP2
#include <bzlib.h>
#endif

#include "io/unpack.h"

/* zlib and libbz2 count in unsigned int. */
#define MOST_AT_ONCE ((size_t)1 << 30)

static unsigned at_once(size_t n)
{
    return (unsigned)(n < MOST_AT_ONCE ? n : MOST_AT_ONCE);
}

/* ------------------------------------------------------------------- gzip */

static void *gzip_open(void)
{
    z_stream *const z = calloc(1, sizeof *z);
    if (z && inflateInit2(z, 15 + 16) == Z_OK)
        return z;
    free(z);
    return NULL;
}

static enum unpacked gzip_run(void *state, struct unpack_io *io)
{
    z_stream *const z = state;
    const unsigned in = at_once(io->nin), out = at_once(io->nout);
    z->next_in = (unsigned char *)(uintptr_t)io->in; /* zlib does not write */
    z->avail_in = in;
    z->next_out = io->out;
    z->avail_out = out;
    const int rc = inflate(z, Z_NO_FLUSH);
    io->in += in - z->avail_in;
    io->nin -= in - z->avail_in;
    io->out += out - z->avail_out;
    io->nout -= out - z->avail_out;
    if (rc == Z_STREAM_END)
        return inflateReset(z) == Z_OK ? UNPACK_MEMBER : UNPACK_DAMAGED;
    return rc == Z_OK || rc == Z_BUF_ERROR ? UNPACK_ON
           : rc == Z_MEM_ERROR             ? UNPACK_MEMORY
                                           : UNPACK_DAMAGED;
}

static void gzip_close(void *state)
{
    inflateEnd(state);
    free(state);
}

/* ------------------------------------------------------------------- zstd */

static void *zstd_open(void)
{
    return ZSTD_createDStream();
}

static enum unpacked zstd_run(void *state, struct unpack_io *io)
{
    ZSTD_inBuffer in = { io->in, io->nin, 0 };
    ZSTD_outBuffer out = { io->out, io->nout, 0 };
    const size_t rc = ZSTD_decompressStream(state, &out, &in);
    io->in += in.pos;
    io->nin -= in.pos;
    io->out += out.pos;
    io->nout -= out.pos;
    if (!ZSTD_isError(rc))
        return rc ? UNPACK_ON : UNPACK_MEMBER;
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(rc);
    return code == ZSTD_error_memory_allocation               ? UNPACK_MEMORY
           : code == ZSTD_error_frameParameter_windowTooLarge ? UNPACK_LARGE
                                                              : UNPACK_DAMAGED;
}

static void zstd_close(void *state)
{
    ZSTD_freeDStream(state);
}

/* --------------------------------------------------------------------- xz */

#ifdef BLY_LZMA
#define XZ_WITHOUT NULL
#define XZ_MEMORY ((uint64_t)256 << 20)

static void *xz_open(void)
{
    static const lzma_stream none = LZMA_STREAM_INIT;
    lzma_stream *const s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = none;
    if (lzma_stream_decoder(s, XZ_MEMORY, 0) == LZMA_OK)
        return s;
    free(s);
    return NULL;
}

static enum unpacked xz_run(void *state, struct unpack_io *io)
{
    lzma_stream *const s = state;
    s->next_in = io->in;
    s->avail_in = io->nin;
    s->next_out = io->out;
    s->avail_out = io->nout;
    const lzma_ret rc = lzma_code(s, LZMA_RUN);
    io->in = s->next_in;
    io->nin = s->avail_in;
    io->out = s->next_out;
    io->nout = s->avail_out;
    if (rc == LZMA_STREAM_END)
        return lzma_stream_decoder(s, XZ_MEMORY, 0) == LZMA_OK ? UNPACK_MEMBER
                                                               : UNPACK_MEMORY;
    return rc == LZMA_OK || rc == LZMA_BUF_ERROR ? UNPACK_ON
           : rc == LZMA_MEM_ERROR                ? UNPACK_MEMORY
           : rc == LZMA_MEMLIMIT_ERROR           ? UNPACK_LARGE
                                                 : UNPACK_DAMAGED;
}

static void xz_close(void *state)
{
    lzma_end(state);
    free(state);
}
#else
#define XZ_WITHOUT "liblzma"
#define xz_open NULL
#define xz_run NULL
#define xz_close NULL
#endif

/* ------------------------------------------------------------------ bzip2 */

#ifdef BLY_BZIP2
#define BZIP2_WITHOUT NULL

static void *bzip2_open(void)
{
    bz_stream *const b = calloc(1, sizeof *b);
    if (b && BZ2_bzDecompressInit(b, 0, 0) == BZ_OK)
        return b;
    free(b);
    return NULL;
}

static enum unpacked bzip2_run(void *state, struct unpack_io *io)
{
    bz_stream *const b = state;
    const unsigned in = at_once(io->nin), out = at_once(io->nout);
    b->next_in = (char *)(uintptr_t)io->in; /* libbz2 does not write */
    b->avail_in = in;
    b->next_out = (char *)io->out;
    b->avail_out = out;
    const int rc = BZ2_bzDecompress(b);
    io->in += in - b->avail_in;
    io->nin -= in - b->avail_in;
    io->out += out - b->avail_out;
    io->nout -= out - b->avail_out;
    if (rc == BZ_STREAM_END) {
        /* It cannot be set back, only made again. */
        BZ2_bzDecompressEnd(b);
        memset(b, 0, sizeof *b);
        return BZ2_bzDecompressInit(b, 0, 0) == BZ_OK ? UNPACK_MEMBER
                                                      : UNPACK_MEMORY;
    }
    return rc == BZ_OK          ? UNPACK_ON
           : rc == BZ_MEM_ERROR ? UNPACK_MEMORY
                                : UNPACK_DAMAGED;
}

static void bzip2_close(void *state)
{
    BZ2_bzDecompressEnd(state);
    free(state);
}
#else
#define BZIP2_WITHOUT "libbz2"
#define bzip2_open NULL
#define bzip2_run NULL
#define bzip2_close NULL
#endif

/* ------------------------------------------------------------------ table */

#define ZSTD_ROW                                                        \
    .name = "zstd", .program = "zstd -dc --long=31", .open = zstd_open, \
    .run = zstd_run, .close = zstd_close
#define BZIP2_ROW                                                      \
    .name = "bzip2", .program = "bzip2 -dc", .library = BZIP2_WITHOUT, \
    .open = bzip2_open, .run = bzip2_run, .close = bzip2_close

static const struct unpacker unpackers[] = {
    {
        .name = "gzip",
        .program = "gzip -dc",
        .magic = { 0x1f, 0x8b, 0x08 },
        .nmagic = 3,
        .sure = 2,
        .padded = true, /* tapes, and some writers */
        .open = gzip_open,
        .run = gzip_run,
        .close = gzip_close,
    },
    {
        ZSTD_ROW,
        .magic = { 0x28, 0xb5, 0x2f, 0xfd },
        .nmagic = 4,
        .sure = 2,
    },
    {
        ZSTD_ROW,
        .magic = { 0x50, 0x2a, 0x4d, 0x18 },
        .loose = { 0x0f },
        .nmagic = 4,
        .sure = 4,
    },
    {
        .name = "xz",
        .program = "xz -dc",
        .library = XZ_WITHOUT,
        .magic = { 0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00 },
        .nmagic = 6,
        .sure = 2,
        .padded = true, /* as the format has it */
        .open = xz_open,
        .run = xz_run,
        .close = xz_close,
    },
    {
        BZIP2_ROW,
        .magic = { 'B', 'Z', 'h', '0', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59 },
        .loose = { 0, 0, 0, 0x0f },
        .nmagic = 10,
        .sure = 5,
    },
    {
        BZIP2_ROW,
        .magic = { 'B', 'Z', 'h', '0', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90 },
        .loose = { 0, 0, 0, 0x0f },
        .nmagic = 10,
        .sure = 5,
    },
};
#define NUNPACKERS (sizeof unpackers / sizeof unpackers[0])

const struct unpacker *unpacker_at(size_t i)
{
    return i < NUNPACKERS ? &unpackers[i] : NULL;
}

const struct unpacker *unpacker_of(const unsigned char *bytes, size_t n,
                                   bool *more)
{
    *more = false;
    for (const struct unpacker *u = unpackers; u < unpackers + NUNPACKERS;
         u++) {
        const size_t known = n < u->nmagic ? n : u->nmagic;
        size_t i = 0;
        while (i < known &&
               ((bytes[i] ^ u->magic[i]) & ~(unsigned)u->loose[i]) == 0)
            i++;
        if (i == u->nmagic)
            return u;
        *more |= i == n;
    }
    return NULL;
}
