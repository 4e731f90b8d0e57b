/*
 * topk_body.c - the heaviest keys as bytes
 *
 *     | cells: nlines * 64 | hash count length | hash count length | ... | keys
 *
 * All little-endian. Keys come in the order of the heap, so that a list that
 * was read goes on exactly as the one that was written: which of several
 * lightest keys leaves the list depends on that order. The one that left last
 * is forgotten.
 *
 * A hash is there for who opens a keyed list without its secret, and cannot
 * compute it; everyone else compares it.
 */
#include <string.h>

#include "core/bits.h"
#include "core/status.h"
#include "sketch/topk.h"

#define TOPK_ROW 24 /* bytes of hash, count and length */

static const topk_entry *entry_at(const bly_topk *t, uint32_t i)
{
    return &t->entries[t->heap[i]];
}

uint64_t bly_topk_body_bytes(const bly_topk *t)
{
    uint64_t n = t->nlines * BLY_LINE + (uint64_t)t->n * TOPK_ROW;
    for (uint32_t i = 0; i < t->n; i++)
        n += entry_at(t, i)->len;
    return n;
}

bool bly_topk_body_put(const bly_topk *t, bly_put *put, void *ctx)
{
    const unsigned char *const cells = t->block.at;
    const size_t ncells = (size_t)t->nlines * TOPK_LINE;
    unsigned char piece[64 * 8];
    /* Cells are words of this machine in memory. */
    for (size_t at = 0; at < ncells; at += 64) {
        const size_t n = ncells - at < 64 ? ncells - at : 64;
        for (size_t i = 0; i < n; i++) {
            uint64_t cell;
            memcpy(&cell, cells + 8 * (at + i), sizeof cell);
            bly_store64(piece + 8 * i, cell);
        }
        if (!put(ctx, piece, 8 * n))
            return false;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        const topk_entry *const e = entry_at(t, i);
        bly_store64(piece, e->hash);
        bly_store64(piece + 8, e->count);
        bly_store64(piece + 16, e->len);
        if (!put(ctx, piece, TOPK_ROW))
            return false;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        const topk_entry *const e = entry_at(t, i);
        if (e->len && !put(ctx, e->key, e->len))
            return false;
    }
    return true;
}

static bly_status topk_damaged(const char *why)
{
    return bly_fail(BLY_EFORMAT, "a damaged list of heaviest keys: %s", why);
}

/* The cells; no count may be above all weights together. */
static bly_status load_cells(bly_topk *t, const unsigned char *from)
{
    const size_t ncells = (size_t)t->nlines * TOPK_LINE;
    for (size_t i = 0; i < ncells; i++) {
        const uint64_t cell = bly_load64(from + 8 * i);
        const uint64_t count = cell & TOPK_COUNT_MAX;
        if (count > t->total || (cell && !count))
            return topk_damaged("counts that no stream gives");
        memcpy(t->block.at + 8 * i, &cell, sizeof cell);
    }
    return BLY_OK;
}

bly_status bly_topk_body_load(bly_topk *t, uint64_t nlisted,
                              const unsigned char *from, uint64_t nbytes)
{
    const uint64_t ncells = t->nlines * BLY_LINE;
    if (nlisted > t->k || nbytes < ncells ||
        (nbytes - ncells) / TOPK_ROW < nlisted)
        return topk_damaged("its sizes contradict each other");
    bly_status st = load_cells(t, from);
    const unsigned char *const rows = from + ncells;
    uint64_t at = ncells + nlisted * TOPK_ROW;
    for (uint64_t i = 0; i < nlisted && !st; i++) {
        const unsigned char *const row = rows + i * TOPK_ROW;
        const uint64_t len = bly_load64(row + 16);
        if (len > nbytes - at)
            return topk_damaged("its sizes contradict each other");
        st = bly_topk_restore(t, bly_load64(row), bly_load64(row + 8),
                              from + at, (size_t)len);
        at += len;
    }
    if (!st && at != nbytes)
        st = topk_damaged("its sizes contradict each other");
    return st;
}
