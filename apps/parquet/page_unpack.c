/*
 * page_unpack.c - pages, decompressed
 *
 * A row a codec. A page says how long it is in full, and memory is given for
 * that before a byte is seen; so the claim is held against the most that the
 * codec can make of what is there.
 */
#include <string.h>

#include <zlib.h>
#include <zstd.h>
#ifdef BLY_SNAPPY
#include <snappy-c.h>
#endif

#include "apps/parquet/parquet_job.h"

static bool unpack_copy(const unsigned char *bytes, size_t n, unsigned char *to,
                        size_t nplain)
{
    if (n != nplain)
        return false;
    if (n)
        memcpy(to, bytes, n);
    return true;
}

#ifdef BLY_SNAPPY
static bool unpack_snappy(const unsigned char *bytes, size_t n,
                          unsigned char *to, size_t nplain)
{
    size_t length;
    if (snappy_uncompressed_length((const char *)bytes, n, &length) !=
            SNAPPY_OK ||
        length != nplain)
        return false;
    return snappy_uncompress((const char *)bytes, n, (char *)to, &length) ==
           SNAPPY_OK;
}
#endif

/* One member behind another is one page. */
static bool unpack_gzip(const unsigned char *bytes, size_t n, unsigned char *to,
                        size_t nplain)
{
    z_stream z = { .next_in = (unsigned char *)(uintptr_t)bytes,
                   .avail_in = (uInt)n,
                   .next_out = to,
                   .avail_out = (uInt)nplain };
    if (inflateInit2(&z, 15 + 32) != Z_OK) /* gzip or zlib, by its header */
        return false;
    int st;
    do {
        st = inflate(&z, Z_FINISH);
    } while (st == Z_STREAM_END && z.avail_in && inflateReset(&z) == Z_OK);
    inflateEnd(&z);
    return st == Z_STREAM_END && z.avail_out == 0;
}

static bool unpack_zstd(const unsigned char *bytes, size_t n, unsigned char *to,
                        size_t nplain)
{
    return ZSTD_decompress(to, nplain, bytes, n) == nplain;
}

static const struct {
    bool (*unpack)(const unsigned char *bytes, size_t n, unsigned char *to,
                   size_t nplain);
    uint32_t most; /* what a byte may become */
} codecs[] = {
    [BLY_PARQUET_UNCOMPRESSED] = { unpack_copy, 1 },
#ifdef BLY_SNAPPY
    /* 64 bytes from an element of 3. */
    [BLY_PARQUET_SNAPPY] = { unpack_snappy, 22 },
#endif
    /* 258 bytes from two bits. */
    [BLY_PARQUET_GZIP] = { unpack_gzip, 1032 },
    /* A block of 128 KiB from a header of 3 bytes and the one it repeats. */
    [BLY_PARQUET_ZSTD] = { unpack_zstd, 32768 },
};

bool unpack_knows(uint32_t codec, const char **why)
{
    if (codec < sizeof codecs / sizeof *codecs && codecs[codec].unpack)
        return true;
    *why = codec == BLY_PARQUET_SNAPPY
               ? "this bloomery was built without snappy (libsnappy-dev)"
               : "UNCOMPRESSED, SNAPPY, GZIP and ZSTD are";
    return false;
}

bool unpack(uint32_t codec, const unsigned char *bytes, size_t n,
            unsigned char *to, size_t nplain)
{
    return codecs[codec].unpack(bytes, n, to, nplain);
}

uint64_t unpack_most(uint32_t codec, uint64_t n)
{
    return n * codecs[codec].most + 64;
}
