/*
 * fuzz_parquet.c - Parquet files that anyone may have written, read column by
 * column
 *
 * The input is a file. If it has no footer that can be found, it is made one:
 * its last bytes are taken for the footer, so that most changes meet a byte
 * that matters. Every column of it is given filters, and what is then written
 * is a file again, with filters that can be asked. Pages are read by their
 * codecs and encodings; whatever they claim, no more memory is taken than they
 * hold.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "apps/parquet/column_chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct written {
    uint8_t *at;
    size_t n, room;
};

static bool put_written(void *ctx, const void *bytes, size_t n)
{
    struct written *const w = ctx;
    if (n > w->room - w->n) {
        w->room = (w->n + n) * 2;
        w->at = realloc(w->at, w->room);
        assert(w->at);
    }
    if (n)
        memcpy(w->at + w->n, bytes, n);
    w->n += n;
    return true;
}

static void ask(const uint8_t *bytes, size_t n)
{
    const bly_foreign_spec spec = { .format = "parquet" };
    bly_parquet *p;
    bly_foreign *f;
    assert(bly_parquet_open(bytes, n, NULL, &p) == BLY_OK);
    bly_parquet_free(p);
    if (bly_foreign_open(&spec, bytes, n, &f))
        return; /* an old filter, of another column, may be damaged */
    const bly_bytes keys[] = { { "1", 1 }, { "2020-01-01", 10 }, { "", 0 } };
    uint64_t bitmap[1];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        bly_foreign_has(f, &keys[i], 1, bitmap, NULL);
    bly_foreign_free(f);
}

/* Give every column filters; write what came of it. */
static void use(bly_parquet *p)
{
    struct parquet_error error;
    bly_parquet_shape shape;
    bly_parquet_stat(p, &shape);
    for (size_t i = 0; i < shape.ncolumns; i++) {
        struct column_chunk c = { .file = p, .number = i, .error = &error };
        bly_parquet_column_at(p, i, &c.column);
        for (c.group = 0; c.group < shape.ngroups; c.group++) {
            bly_parquet_filter filter;
            bly_parquet_chunk_at(p, c.group, i, &c.is);
            (void)chunk_filter(&c, 0.01, &filter); /* it may be damaged */
        }
        chunk_free(&c);
    }
    struct written w = { 0 };
    assert(bly_parquet_write(p, put_written, &w) == BLY_OK);
    ask(w.at, w.n);
    free(w.at);
}

static void try_bytes(const uint8_t *bytes, size_t n)
{
    bly_parquet *p;
    if (bly_parquet_open(bytes, n, NULL, &p))
        return;
    use(p);
    bly_parquet_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_bytes(data, size);
    if (size < 16 || memcmp(data, "PAR1", 4) != 0)
        return 0;
    /* Data, footer, and the length of the footer as the last two bytes. */
    const size_t nfooter = data[size - 2] | (size_t)data[size - 1] << 8;
    const size_t n = size - 2;
    if (nfooter > n - 4)
        return 0;
    uint8_t *const copy = malloc(n + 8);
    assert(copy);
    memcpy(copy, data, n);
    for (int i = 0; i < 4; i++)
        copy[n + (size_t)i] = (uint8_t)(nfooter >> 8 * i);
    memcpy(copy + n + 4, "PAR1", 4);
    try_bytes(copy, n + 8);
    free(copy);
    return 0;
}
