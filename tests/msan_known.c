/*
 * msan_known.c - what other libraries have written, for the memory sanitizer
 *
 * The sanitizer sees every write of code that was compiled with it, and knows
 * what most functions of libc write. What zlib and its kin write, it takes for
 * memory that nobody has written. All programs of `make msan` are linked with
 * this file. Its functions come before those of the same name in the libraries,
 * call them, and mark what they gave.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sanitizer/msan_interface.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>
#ifdef BLY_LZMA
#include <lzma.h>
#endif
#ifdef BLY_BZIP2
#include <bzlib.h>
#endif
#ifdef BLY_SNAPPY
#include <snappy-c.h>
#endif

/* The library's own function of the type of this one. ISO C does not know that
 * dlsym() finds functions; POSIX does. */
#define REAL(name)              \
    union {                     \
        void *at;               \
        __typeof__(name) *call; \
    } real = { .at = dlsym(RTLD_NEXT, #name) }

#define KNOWN(at, nbytes) __msan_unpoison(at, nbytes)
#define KNOWN_FROM(begin, end) \
    KNOWN(begin, (size_t)((const char *)(end) - (const char *)(begin)))

/* Until glibc 2.33 these had other names, which the sanitizer of clang 14
 * knows.
 */
#define ON_FILE(name, parameters, arguments)    \
    int name parameters                         \
    {                                           \
        REAL(name);                             \
        const int result = real.call arguments; \
        if (!result)                            \
            KNOWN(to, sizeof *to);              \
        return result;                          \
    }

ON_FILE(stat, (const char *path, struct stat *to), (path, to))
ON_FILE(lstat, (const char *path, struct stat *to), (path, to))
ON_FILE(fstat, (int fd, struct stat *to), (fd, to))
ON_FILE(fstatat, (int folder, const char *path, struct stat *to, int flags),
        (folder, path, to, flags))
/* What they are called with _FILE_OFFSET_BITS=64. */
ON_FILE(stat64, (const char *path, struct stat64 *to), (path, to))
ON_FILE(lstat64, (const char *path, struct stat64 *to), (path, to))
ON_FILE(fstat64, (int fd, struct stat64 *to), (fd, to))
ON_FILE(fstatat64, (int folder, const char *path, struct stat64 *to, int flags),
        (folder, path, to, flags))

/* A call on a stream s, whose output moves next_out on. */
#define ON_STREAM(name, parameters, arguments)  \
    int name parameters                         \
    {                                           \
        REAL(name);                             \
        void *const out = s->next_out;          \
        const int result = real.call arguments; \
        KNOWN(s, sizeof *s);                    \
        if (out)                                \
            KNOWN_FROM(out, s->next_out);       \
        return result;                          \
    }

ON_STREAM(inflate, (z_stream * s, int flush), (s, flush))
ON_STREAM(deflate, (z_stream * s, int flush), (s, flush))
ON_STREAM(inflateReset, (z_stream * s), (s))
ON_STREAM(inflateInit2_, (z_stream * s, int bits, const char *version, int n),
          (s, bits, version, n))
ON_STREAM(deflateInit2_,
          (z_stream * s, int level, int how, int bits, int memory, int plan,
           const char *version, int n),
          (s, level, how, bits, memory, plan, version, n))

size_t ZSTD_decompressStream(ZSTD_DStream *s, ZSTD_outBuffer *out,
                             ZSTD_inBuffer *in)
{
    REAL(ZSTD_decompressStream);
    const size_t before = out->pos, result = real.call(s, out, in);
    KNOWN(out, sizeof *out);
    KNOWN(in, sizeof *in);
    KNOWN((char *)out->dst + before, out->pos - before);
    return result;
}

size_t ZSTD_decompress(void *to, size_t room, const void *from, size_t n)
{
    REAL(ZSTD_decompress);
    const size_t result = real.call(to, room, from, n);
    if (result <= room) /* not an error */
        KNOWN(to, result);
    return result;
}

#ifdef BLY_LZMA
lzma_ret lzma_code(lzma_stream *s, lzma_action action)
{
    REAL(lzma_code);
    uint8_t *const out = s->next_out;
    const lzma_ret result = real.call(s, action);
    KNOWN(s, sizeof *s);
    KNOWN_FROM(out, s->next_out);
    return result;
}

lzma_ret lzma_stream_decoder(lzma_stream *s, uint64_t memory, uint32_t flags)
{
    REAL(lzma_stream_decoder);
    const lzma_ret result = real.call(s, memory, flags);
    KNOWN(s, sizeof *s);
    return result;
}
#endif

#ifdef BLY_BZIP2
ON_STREAM(BZ2_bzDecompress, (bz_stream * s), (s))
ON_STREAM(BZ2_bzDecompressInit, (bz_stream * s, int verbose, int small),
          (s, verbose, small))
#endif

#ifdef BLY_SNAPPY
snappy_status snappy_uncompress(const char *from, size_t n, char *to,
                                size_t *nto)
{
    REAL(snappy_uncompress);
    const snappy_status result = real.call(from, n, to, nto);
    KNOWN(nto, sizeof *nto);
    if (result == SNAPPY_OK)
        KNOWN(to, *nto);
    return result;
}

snappy_status snappy_uncompressed_length(const char *from, size_t n,
                                         size_t *result)
{
    REAL(snappy_uncompressed_length);
    const snappy_status status = real.call(from, n, result);
    KNOWN(result, sizeof *result);
    return status;
}
#endif
