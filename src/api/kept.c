/*
 * kept.c - the hashes that a builder keeps until it has them all
 *
 * The file holds whole chunks, all of them full but the last: hashes, then
 * values where there are any.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "api/kept.h"
#include "core/bits.h"
#include "core/status.h"
#include "format/replace.h"

static size_t key_bytes(const bly_kept *k)
{
    return sizeof(uint64_t) * (k->valued ? 2 : 1);
}

static size_t chunk_bytes(const bly_kept *k)
{
    return sizeof(bly_chunk) + BLY_CHUNK_KEYS * key_bytes(k);
}

/* Addresses for half a billion keys, taken in steps of some chunks. */
#define ROW_BYTES (UINT64_C(1) << 32)
#define CHUNK_HASHES (BLY_CHUNK_KEYS * sizeof(uint64_t))
#define STEP_CHUNKS (4 * BLY_BLOCK_STEP / CHUNK_HASHES)

bly_status bly_kept_open(const bly_mem *mem, bool valued, uint64_t max_bytes,
                         const char *folder, bly_kept *out)
{
    *out = (bly_kept){
        .mem = *mem, .valued = valued, .max_bytes = max_bytes, .fd = -1
    };
    if (!folder)
        return BLY_OK;
    const size_t nbytes = strlen(folder) + 1;
    out->folder = mem->alloc(mem->ctx, nbytes);
    if (!out->folder)
        return bly_fail(BLY_ENOMEM, "out of memory");
    memcpy(out->folder, folder, nbytes);
    return BLY_OK;
}

/* A place for hashes behind those of the chunks so far, or NULL. Not with a
 * bound, since then chunks come and go. */
static uint64_t *row_next(bly_kept *k)
{
    if (k->max_bytes || k->valued || k->nrow < k->nchunks ||
        k->nrow >= ROW_BYTES / CHUNK_HASHES)
        return NULL;
    if (!k->row.at && !bly_block_reserve(&k->mem, (size_t)ROW_BYTES, &k->row))
        return NULL;
    const size_t at = k->nrow * CHUNK_HASHES;
    if (k->nrow % STEP_CHUNKS == 0 &&
        !bly_block_grow(&k->row, at, at + STEP_CHUNKS * CHUNK_HASHES))
        return NULL;
    k->nrow++;
    return (uint64_t *)(void *)(k->row.at + at);
}

static bly_chunk *chunk_new(bly_kept *k)
{
    uint64_t *const place = row_next(k);
    bly_chunk *c = k->mem.alloc(k->mem.ctx, place ? sizeof *c : chunk_bytes(k));
    if (c) {
        c->next = NULL;
        c->n = 0;
        c->in_row = place != NULL;
        c->hashes = place ? place : (uint64_t *)(void *)(c + 1);
        c->values = k->valued ? c->hashes + BLY_CHUNK_KEYS : NULL;
    }
    return c;
}

/* Take the first chunk off the list. */
static bly_chunk *chunk_pop(bly_kept *k)
{
    bly_chunk *c = k->first;
    k->first = c->next;
    if (!k->first)
        k->last = NULL;
    k->nchunks--;
    return c;
}

static void chunk_free(bly_kept *k, bly_chunk *c)
{
    if (c->in_row)
        bly_block_drop(c->hashes, CHUNK_HASHES);
    bly_mem_release(&k->mem, c, c->in_row ? sizeof *c : chunk_bytes(k));
}

void bly_kept_close(bly_kept *k)
{
    while (k->first)
        chunk_free(k, chunk_pop(k));
    if (k->fd >= 0)
        close(k->fd);
    if (k->folder)
        bly_mem_release(&k->mem, k->folder, strlen(k->folder) + 1);
    bly_block_free(&k->mem, &k->row);
    k->folder = NULL;
    k->fd = -1;
    k->nrow = 0;
    k->nkeys = k->spilled = 0;
}

/* --------------------------------------------------------------- the file */

static bly_status file_fail(const bly_kept *k, const char *done, int err)
{
    char name[512];
    snprintf(name, sizeof name, "a temporary file in %s", k->folder);
    return bly_io_fail(name, done, err);
}

/* Where key number i of the file begins; i is the first of a chunk. */
static off_t file_offset(const bly_kept *k, uint64_t i)
{
    return (off_t)(i * key_bytes(k));
}

/* Append the chunks in memory to the file, and release them. The last may be
 * incomplete if no more keys will come. */
static bly_status spill_chunks(bly_kept *k)
{
    if (k->fd < 0) {
        k->fd = bly_scratch_open(k->folder);
        if (k->fd < 0)
            return file_fail(k, "made", errno);
    }
    while (k->first) {
        const bly_chunk *c = k->first;
        int err = bly_fd_write(k->fd, c->hashes, c->n * sizeof *c->hashes);
        if (!err && c->values)
            err = bly_fd_write(k->fd, c->values, c->n * sizeof *c->values);
        if (err)
            return file_fail(k, "written", err);
        k->spilled += c->n;
        chunk_free(k, chunk_pop(k));
    }
    return BLY_OK;
}

static bly_status file_read(const bly_kept *k, off_t at, void *to, size_t n)
{
    unsigned char *p = to;
    while (n) {
        const ssize_t got = pread(k->fd, p, n, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return file_fail(k, "read", got ? errno : EIO);
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return BLY_OK;
}

/* ----------------------------------------------------------------- taking */

static bly_status no_room(const bly_kept *k)
{
    return bly_fail(
        BLY_ERANGE,
        "the bound of %llu bytes has no room for the hashes of more than %llu "
        "keys: raise it, or name a folder to spill to",
        (unsigned long long)k->max_bytes, (unsigned long long)k->nkeys);
}

/* Make room for at least one more key in the last chunk. */
static bly_status make_room(bly_kept *k)
{
    if (k->last && k->last->n < BLY_CHUNK_KEYS)
        return BLY_OK;
    if (k->max_bytes && k->nchunks &&
        (k->nchunks + 1) * (uint64_t)chunk_bytes(k) > k->max_bytes) {
        const bly_status st = k->folder ? spill_chunks(k) : no_room(k);
        if (st)
            return st;
    }
    bly_chunk *c = chunk_new(k);
    if (!c)
        return bly_fail(BLY_ENOMEM, "out of memory after %llu keys",
                        (unsigned long long)k->nkeys);
    if (k->last)
        k->last->next = c;
    else
        k->first = c;
    k->last = c;
    k->nchunks++;
    return BLY_OK;
}

bly_status bly_kept_reserve(bly_kept *k, size_t n, bly_kept_place *out)
{
    *out = (bly_kept_place){ 0 };
    const bly_status st = make_room(k);
    if (st)
        return st;
    bly_chunk *c = k->last;
    const size_t room = BLY_CHUNK_KEYS - c->n;
    out->hashes = c->hashes + c->n;
    out->values = c->values ? c->values + c->n : NULL;
    out->n = n < room ? n : room;
    c->n += out->n;
    k->nkeys += out->n;
    return BLY_OK;
}

void bly_kept_put(const bly_kept_place *at, const uint64_t *hashes,
                  const uint64_t *values)
{
    memcpy(at->hashes, hashes, at->n * sizeof *hashes);
    if (values)
        memcpy(at->values, values, at->n * sizeof *values);
}

uint64_t bly_kept_bytes(const bly_kept *k)
{
    return (k->nkeys - k->spilled) * key_bytes(k);
}

bly_status bly_kept_seal(bly_kept *k, bool spare)
{
    const bool many = spare && bly_kept_bytes(k) > k->max_bytes / 8;
    return k->fd >= 0 || (k->folder && many) ? spill_chunks(k) : BLY_OK;
}

/* ---------------------------------------------------------------- reading */

/* The next chunk of the file. */
static const bly_chunk *next_spilled(bly_kept *k, bly_kept_walk *w)
{
    if (!w->buffer)
        w->buffer = chunk_new(k);
    if (!w->buffer) {
        w->st = bly_fail(BLY_ENOMEM, "out of memory");
        return NULL;
    }
    bly_chunk *c = w->buffer;
    const uint64_t left = k->spilled - w->read;
    const off_t at = file_offset(k, w->read);
    c->n = left < BLY_CHUNK_KEYS ? (size_t)left : BLY_CHUNK_KEYS;
    w->st = file_read(k, at, c->hashes, c->n * 8);
    if (!w->st && c->values)
        w->st = file_read(k, at + (off_t)(c->n * 8), c->values, c->n * 8);
    w->read += c->n;
    return w->st ? NULL : c;
}

const bly_chunk *bly_kept_next(bly_kept *k, bly_kept_walk *w)
{
    if (w->st)
        return NULL;
    if (w->read < k->spilled)
        return next_spilled(k, w);
    const bly_chunk *c = w->begun ? w->next : k->first;
    w->begun = true;
    if (c)
        w->next = c->next;
    return c;
}

void bly_kept_end(bly_kept *k, bly_kept_walk *w)
{
    if (w->buffer)
        chunk_free(k, w->buffer);
    w->buffer = NULL;
}

/* -------------------------------------------------------------- gathering */

static bly_status joined_new(bly_kept *k, uint64_t n, bly_joined *out)
{
    *out = (bly_joined){ 0 };
    if (n >= SIZE_MAX / key_bytes(k))
        return bly_fail(BLY_ERANGE,
                        "%llu keys at once are more than this machine can "
                        "address",
                        (unsigned long long)n);
    out->nbytes = ((size_t)n + 1) * key_bytes(k);
    out->h = k->mem.alloc(k->mem.ctx, out->nbytes);
    if (!out->h)
        return bly_fail(BLY_ENOMEM,
                        "out of memory: %zu bytes to build from %llu keys at "
                        "once",
                        out->nbytes, (unsigned long long)n);
    if (k->valued)
        out->values = out->h + n;
    return BLY_OK;
}

void bly_joined_free(const bly_kept *k, bly_joined *keys)
{
    if (keys->row.at)
        bly_block_free(&k->mem, &keys->row);
    else
        bly_mem_release(&k->mem, keys->h, keys->nbytes);
    *keys = (bly_joined){ 0 };
}

/* Take the row, which holds all keys. */
static void join_row(bly_kept *k, bly_joined *out)
{
    *out = (bly_joined){ .h = (uint64_t *)(void *)k->row.at,
                         .n = (size_t)k->nkeys,
                         .row = k->row };
    while (k->first) {
        bly_chunk *c = chunk_pop(k);
        bly_mem_release(&k->mem, c, sizeof *c);
    }
    k->row = (bly_block){ 0 };
    k->nrow = 0;
}

bly_status bly_kept_join(bly_kept *k, bly_joined *out)
{
    if (k->spilled)
        return bly_kept_gather(k, 1, 0, 1, k->nkeys, out);
    if (k->nrow && k->nrow == k->nchunks) {
        join_row(k, out);
        return BLY_OK;
    }
    const bly_status st = joined_new(k, k->nkeys, out);
    if (st)
        return st;
    while (k->first) {
        bly_chunk *c = chunk_pop(k);
        memcpy(out->h + out->n, c->hashes, c->n * sizeof *out->h);
        if (k->valued)
            memcpy(out->values + out->n, c->values, c->n * sizeof *out->h);
        out->n += c->n;
        chunk_free(k, c);
    }
    return BLY_OK;
}

bly_status bly_kept_count(bly_kept *k, uint64_t total, uint64_t *counts)
{
    bly_kept_walk w = { 0 };
    const bly_chunk *c;
    memset(counts, 0, (size_t)total * sizeof *counts);
    while ((c = bly_kept_next(k, &w)))
        for (size_t i = 0; i < c->n; i++)
            counts[bly_scale(c->hashes[i], total)]++;
    bly_kept_end(k, &w);
    return w.st;
}

bly_status bly_kept_gather(bly_kept *k, uint64_t total, uint64_t first,
                           uint64_t nparts, uint64_t n, bly_joined *out)
{
    bly_kept_walk w = { 0 };
    const bly_chunk *c;
    w.st = joined_new(k, n, out);
    while ((c = bly_kept_next(k, &w)))
        for (size_t i = 0; i < c->n; i++) {
            if (bly_scale(c->hashes[i], total) - first >= nparts)
                continue;
            out->h[out->n] = c->hashes[i];
            if (k->valued)
                out->values[out->n] = c->values[i];
            out->n++;
        }
    bly_kept_end(k, &w);
    if (w.st)
        bly_joined_free(k, out);
    return w.st;
}
