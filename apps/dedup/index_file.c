/*
 * index_file.c - what is kept of documents that stayed, for later corpora
 *
 *     8 bytes   89 'B' 'L' 'Y' 'D' 'I', '1' or with shingles '2', '\n'
 *     32        the sketch: unit, size, family, k, seed (bly_sketch_spec_write)
 *     8         number of documents
 *
 *     8         of each document: hash of its words
 *     4         shingles, repeated ones included
 *     4         bytes of its id, 0 where it has none
 *     4 k       components
 *               id
 *     8         with shingles: how many different ones
 *     8 each    and their hashes, ascending
 *
 *     8         checksum
 *
 * Little-endian. The checksum is the XXH3 of all documents, each with the one
 * before it as seed, the first with the number of documents.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/out_file.h"

static const unsigned char magic[8] = {
    0x89, 'B', 'L', 'Y', 'D', 'I', '1', '\n'
};
#define MAGIC_BYTES sizeof magic
#define MAGIC_VERSION 6 /* where '1' or '2' stands */
#define ROW_HEAD 16
#define MAX_ID ((uint32_t)1 << 20)

static void put_le(unsigned char *to, uint64_t v, unsigned nbytes)
{
    for (unsigned i = 0; i < nbytes; i++)
        to[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t get_le(const unsigned char *from, unsigned nbytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < nbytes; i++)
        v |= (uint64_t)from[i] << 8 * i;
    return v;
}

static uint64_t chain(uint64_t sum, const void *bytes, size_t n)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = sum };
    return bly_hash(&h, bytes, n);
}

static bool goes_in(const struct dedup *d, uint32_t doc)
{
    return d->states[doc] == DOC_TEXT && d->witness[doc] == DEDUP_NONE;
}

/* One document as bytes: their number. */
static size_t row_bytes(const struct dedup *d, uint32_t doc, unsigned char *to)
{
    const unsigned k = d->opt->sketch.k;
    char buf[4200];
    const char *id;
    size_t n = dedup_id(d, doc, buf, sizeof buf, &id);
    if (n > MAX_ID)
        n = MAX_ID;
    put_le(to, d->hashes[doc], 8);
    put_le(to + 8, d->nshingles[doc], 4);
    put_le(to + 12, n, 4);
    for (unsigned i = 0; i < k; i++)
        put_le(to + ROW_HEAD + 4 * i, d->rows[(size_t)doc * k + i], 4);
    memcpy(to + ROW_HEAD + 4 * k, id, n);
    return ROW_HEAD + 4 * k + n;
}

#define WORDS_AT_ONCE 512

/* The set of a document as bytes: its size, and its hashes some at a time. */
static uint64_t put_set(const struct dedup *d, struct out_file *o, uint32_t doc,
                        uint64_t sum)
{
    const uint64_t *const set = d->set_words + d->set_at[doc] - 1;
    unsigned char bytes[8 * WORDS_AT_ONCE];
    size_t n = 1;
    for (uint64_t i = 0; i <= set[0]; i += n) {
        const uint64_t left = set[0] + 1 - i;
        n = i == 0 ? 1 : left < WORDS_AT_ONCE ? (size_t)left : WORDS_AT_ONCE;
        for (size_t j = 0; j < n; j++)
            put_le(bytes + 8 * j, set[i + j], 8);
        sum = chain(sum, bytes, 8 * n);
        out_put(o, bytes, 8 * n);
    }
    return sum;
}

static bool sets_for_index(struct dedup *d)
{
    if (d->base && !d->index_has_sets)
        return dedup_fail(d, "an index with shingles cannot go on from one "
                             "without");
    return dedup_need_sets(d, goes_in);
}

bool dedup_save_index(struct dedup *d, const char *path, bool shingles)
{
    struct out_file o;
    unsigned char head[MAGIC_BYTES + BLY_SKETCH_HEAD + 8];
    unsigned char *const row =
        malloc(ROW_HEAD + 4 * BLY_MAX_COMPONENTS + MAX_ID);
    if (!row)
        return dedup_fail(d, "out of memory");
    if (shingles && !sets_for_index(d)) {
        free(row);
        return false;
    }
    uint64_t count = 0;
    for (uint32_t i = 0; dedup_more(d, i); i++)
        count += goes_in(d, i);
    memcpy(head, magic, MAGIC_BYTES);
    head[MAGIC_VERSION] = shingles ? '2' : '1';
    bly_sketch_spec_write(&d->opt->sketch, head + MAGIC_BYTES);
    put_le(head + MAGIC_BYTES + BLY_SKETCH_HEAD, count, 8);
    bool ok = out_open(&o, path, d->opt->wait);
    if (ok)
        out_put(&o, head, sizeof head);
    uint64_t sum = count;
    for (uint32_t i = 0; ok && dedup_more(d, i); i++) {
        if (!goes_in(d, i))
            continue;
        const size_t n = row_bytes(d, i, row);
        sum = chain(sum, row, n);
        out_put(&o, row, n);
        if (shingles)
            sum = put_set(d, &o, i, sum);
    }
    put_le(head, sum, 8);
    if (ok)
        out_put(&o, head, 8);
    free(row);
    ok = out_close(&o, ok) && ok;
    return ok || dedup_fail(d, "%s", o.why);
}

/* --------------------------------------------------------------- reading */

static bool append_id(struct dedup *d, const unsigned char *id, uint32_t n)
{
    if (d->ids_len + n > d->ids_room) {
        const uint64_t room = (d->ids_len + n) * 2;
        if (!STORE(&d->store, d->ids, room))
            return dedup_no_room(d, "ids");
        d->ids_room = room;
    }
    if (n) { /* else there may be no room yet */
        memcpy(d->ids + d->ids_len, id, n);
        dedup_plain_id(d->ids + d->ids_len, n);
    }
    d->ids_len += n;
    d->id_start[d->n + 1] = d->ids_len;
    return true;
}

/* A set of shingles: ascending, or it is no set. */
static bool load_set(struct dedup *d, FILE *f, uint64_t *sum)
{
    unsigned char bytes[8 * WORDS_AT_ONCE];
    uint64_t left = 1, before = 0; /* the size first */
    for (bool size = true; left; size = false) {
        const size_t n = left < WORDS_AT_ONCE ? (size_t)left : WORDS_AT_ONCE;
        if (fread(bytes, 8, n, f) != n)
            return false;
        *sum = chain(*sum, bytes, 8 * n);
        if (!dedup_set_room(d, n))
            return dedup_no_room(d, "the shingles of an index");
        for (size_t j = 0; j < n; j++) {
            const uint64_t x = get_le(bytes + 8 * j, 8);
            if (!size && x <= before && before)
                return false;
            before = size ? 0 : x;
            d->set_words[d->sets_len++] = x;
            left = size ? x : left - 1;
        }
    }
    store_trim(&d->sets);
    return true;
}

static bool load_row(struct dedup *d, FILE *f, unsigned char *row,
                     uint64_t *sum)
{
    const unsigned k = d->opt->sketch.k;
    const size_t fixed = ROW_HEAD + 4 * k;
    if (fread(row, 1, fixed, f) != fixed)
        return false;
    const uint32_t nid = (uint32_t)get_le(row + 12, 4);
    if (nid > MAX_ID || fread(row + fixed, 1, nid, f) != nid)
        return false;
    *sum = chain(*sum, row, fixed + nid);
    if (!dedup_room(d, 1))
        return false;
    d->hashes[d->n] = get_le(row, 8);
    d->nshingles[d->n] = (uint32_t)get_le(row + 8, 4);
    d->states[d->n] = DOC_TEXT;
    if (d->values)
        d->values[d->n] = 0;
    for (unsigned i = 0; i < k; i++)
        d->rows[(size_t)d->n * k + i] =
            (uint32_t)get_le(row + ROW_HEAD + 4 * i, 4);
    if (d->id_start && !append_id(d, row + fixed, nid))
        return false;
    d->n++;
    store_trim(&d->store);
    return !d->index_has_sets || load_set(d, f, sum);
}

static bool load_rows(struct dedup *d, FILE *f)
{
    unsigned char head[MAGIC_BYTES + BLY_SKETCH_HEAD + 8];
    bly_sketch_spec spec;
    if (fread(head, 1, sizeof head, f) != sizeof head)
        return dedup_fail(d, "not an index of --save-index");
    d->index_has_sets = head[MAGIC_VERSION] == '2';
    head[MAGIC_VERSION] -= d->index_has_sets;
    if (memcmp(head, magic, MAGIC_BYTES) != 0)
        return dedup_fail(d, "not an index of --save-index");
    if (bly_sketch_spec_read(head + MAGIC_BYTES, BLY_SKETCH_HEAD, &spec) ||
        bly_sketch_spec_fits(&d->opt->sketch, &spec))
        return dedup_fail(d, "%s", bly_error());
    const uint64_t count = get_le(head + MAGIC_BYTES + BLY_SKETCH_HEAD, 8);
    unsigned char *const row =
        malloc(ROW_HEAD + 4 * BLY_MAX_COMPONENTS + MAX_ID);
    bool ok = row && dedup_room(d, 1);
    if (!row)
        dedup_fail(d, "out of memory");
    if (ok && d->id_start)
        d->id_start[0] = 0;
    uint64_t sum = count;
    for (uint64_t i = 0; ok && i < count; i++)
        ok = load_row(d, f, row, &sum);
    ok = ok && fread(head, 1, 9, f) == 8 && get_le(head, 8) == sum;
    free(row);
    return ok || dedup_fail(d, "the index is damaged or ends too early");
}

bool dedup_load_index(struct dedup *d, const char *path)
{
    FILE *const f = fopen(path, "rb");
    if (!f)
        return dedup_fail(d, "%s: %s", path, strerror(errno));
    const bool ok = load_rows(d, f);
    fclose(f);
    if (!ok) {
        char why[sizeof d->error];
        snprintf(why, sizeof why, "%s", d->error);
        snprintf(d->error, sizeof d->error, "%s: %.400s", path, why);
        return false;
    }
    d->base = (uint32_t)d->n;
    d->report.indexed = d->n;
    return true;
}
