/*
 * digest_cells.c - a counting filter at the positions of Squid's digests
 */
#include <stdlib.h>
#include <string.h>

#include "apps/digest/digest_cells.h"
#include "base/bytes.h"

#define CELLS_K 4
#define CELL_MOST 15
#define COUNT_AT 8 /* of the entries, in the head */

static bool put_bytes(void *ctx, const void *bytes, size_t n)
{
    return bytes_put(ctx, bytes, n);
}

bly_status cells_make(struct cells *c, const bly_foreign_spec *spec,
                      uint64_t capacity)
{
    bly_foreign_spec sized = *spec;
    struct bytes digest = { 0 };
    bly_foreign *f;
    sized.format = "squid";
    sized.items = capacity;
    bly_status st = bly_foreign_new(&sized, &f);
    if (st)
        return st;
    st = bly_foreign_write(f, put_bytes, &digest);
    bly_foreign_free(f);
    const size_t nmask = st ? 0 : digest.n - CELLS_HEAD;
    unsigned char *const cell = st ? NULL : calloc(nmask, 4);
    if (!st && !cell)
        st = BLY_ENOMEM;
    if (!st) {
        cells_free(c);
        *c = (struct cells){ .cell = cell,
                             .nbits = nmask * 8,
                             .capacity = capacity };
        memcpy(c->head, digest.at, CELLS_HEAD);
    }
    free(digest.at);
    return st;
}

void cells_free(struct cells *c)
{
    free(c->cell);
    *c = (struct cells){ 0 };
}

static uint64_t position(const struct cells *c, const unsigned char *key,
                         unsigned i)
{
    return get_be(key + 4 * (size_t)i, 4) % c->nbits;
}

static unsigned cell_get(const struct cells *c, uint64_t i)
{
    return c->cell[i / 2] >> (i % 2 * 4) & CELL_MOST;
}

static void cell_put(struct cells *c, uint64_t i, unsigned n)
{
    const unsigned shift = i % 2 * 4;
    c->cell[i / 2] =
        (unsigned char)((c->cell[i / 2] & ~(0xfU << shift)) | n << shift);
}

void cells_add(struct cells *c, const unsigned char key[CELLS_KEY])
{
    for (unsigned i = 0; i < CELLS_K; i++) {
        const uint64_t at = position(c, key, i);
        const unsigned n = cell_get(c, at);
        if (n == CELL_MOST)
            continue;
        cell_put(c, at, n + 1);
        c->stuck += n + 1 == CELL_MOST;
    }
    c->entries++;
}

bool cells_remove(struct cells *c, const unsigned char key[CELLS_KEY])
{
    for (unsigned i = 0; i < CELLS_K; i++)
        if (!cell_get(c, position(c, key, i))) {
            c->strays++;
            return false;
        }
    for (unsigned i = 0; i < CELLS_K; i++) {
        const uint64_t at = position(c, key, i);
        const unsigned n = cell_get(c, at);
        /* Two positions of a key may be one cell, which it has counted
         * twice, but a key that was never there has not. */
        if (n && n != CELL_MOST)
            cell_put(c, at, n - 1);
    }
    c->entries -= c->entries > 0;
    return true;
}

size_t cells_bytes(const struct cells *c)
{
    return CELLS_HEAD + (size_t)(c->nbits / 8);
}

void cells_digest(const struct cells *c, unsigned char *out)
{
    memcpy(out, c->head, CELLS_HEAD);
    put_be(out + COUNT_AT, c->entries < UINT32_MAX ? c->entries : UINT32_MAX,
           4);
    unsigned char *const mask = out + CELLS_HEAD;
    for (size_t i = 0; i < c->nbits / 8; i++) {
        unsigned bits = 0;
        for (unsigned j = 0; j < 4; j++) {
            const unsigned two = c->cell[4 * i + j];
            bits |= (unsigned)((two & 0xf) != 0) << (2 * j) |
                    (unsigned)(two >> 4 != 0) << (2 * j + 1);
        }
        mask[i] = (unsigned char)bits;
    }
}
