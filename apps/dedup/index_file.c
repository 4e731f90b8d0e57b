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
#include <stdlib.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/out_file.h"
#include "base/byte_order.h"

static const unsigned char magic[8] = {
    0x89, 'B', 'L', 'Y', 'D', 'I', '1', '\n'
};
#define MAGIC_BYTES sizeof magic
#define MAGIC_VERSION 6 /* where '1' or '2' stands */
#define ROW_HEAD 16
#define MAX_ID ((uint32_t)1 << 20)
#define MAX_ROW (ROW_HEAD + 4 * BLY_MAX_COMPONENTS + MAX_ID)

/* One document as bytes: their number. */
static size_t row_bytes(const struct dedup_docs *docs, uint32_t doc,
                        unsigned char *to)
{
    const unsigned k = docs->k;
    char buf[4200];
    const char *id;
    size_t n = dedup_id(docs, doc, buf, sizeof buf, &id);
    if (n > MAX_ID)
        n = MAX_ID;
    put_le(to, docs->hashes[doc], 8);
    put_le(to + 8, docs->nshingles[doc], 4);
    put_le(to + 12, n, 4);
    for (unsigned i = 0; i < k; i++)
        put_le(to + ROW_HEAD + 4 * i, docs->rows[(size_t)doc * k + i], 4);
    memcpy(to + ROW_HEAD + 4 * k, id, n);
    return ROW_HEAD + 4 * k + n;
}

#define WORDS_AT_ONCE 512

/* The set of a document as bytes: its size, and its hashes some at a time. */
static uint64_t put_set(struct out_file *o, const uint64_t *set, uint64_t sum)
{
    unsigned char bytes[8 * WORDS_AT_ONCE];
    size_t n = 1;
    for (uint64_t i = 0; i <= set[0]; i += n) {
        const uint64_t left = set[0] + 1 - i;
        n = i == 0 ? 1 : left < WORDS_AT_ONCE ? (size_t)left : WORDS_AT_ONCE;
        for (size_t j = 0; j < n; j++)
            put_le(bytes + 8 * j, set[i + j], 8);
        sum = dedup_chain(sum, bytes, 8 * n);
        out_put(o, bytes, 8 * n);
    }
    return sum;
}

bool dedup_save_index(struct dedup_job *job, const struct dedup_docs *docs,
                      const struct dedup_verdicts *verdicts,
                      struct dedup_sets *sets)
{
    const bool shingles = job->opt->with_shingles || sets->indexed;
    struct out_file o;
    unsigned char head[MAGIC_BYTES + BLY_SKETCH_HEAD + 8];
    if (shingles && docs->base && !sets->indexed)
        return dedup_fail(job,
                          "an index with shingles cannot continue one without");
    if (shingles && !dedup_need_sets(job, docs, verdicts, sets))
        return false;
    unsigned char *const row = malloc(MAX_ROW);
    if (!row)
        return dedup_fail(job, "out of memory");
    uint64_t count = 0;
    for (uint32_t i = 0; dedup_more(job, i, docs->n); i++)
        count += dedup_stays(docs, verdicts, i);
    memcpy(head, magic, MAGIC_BYTES);
    head[MAGIC_VERSION] = shingles ? '2' : '1';
    bly_sketch_spec_write(&job->opt->sketch, head + MAGIC_BYTES);
    put_le(head + MAGIC_BYTES + BLY_SKETCH_HEAD, count, 8);
    bool ok = out_open(&o, job->opt->save_index, job->opt->wait);
    if (ok)
        out_put(&o, head, sizeof head);
    uint64_t sum = count;
    for (uint32_t i = 0; ok && dedup_more(job, i, docs->n); i++) {
        if (!dedup_stays(docs, verdicts, i))
            continue;
        const size_t n = row_bytes(docs, i, row);
        sum = dedup_chain(sum, row, n);
        out_put(&o, row, n);
        if (shingles)
            sum = put_set(&o, sets->words + sets->at[i] - 1, sum);
    }
    put_le(head, sum, 8);
    if (ok)
        out_put(&o, head, 8);
    free(row);
    ok = out_close(&o, ok) && ok;
    return ok || dedup_fail(job, "%s", o.why);
}

/* --------------------------------------------------------------- reading */

#define PART_DOCS 64

/* An index being read: rows by parts, sets one by one. */
struct loading {
    struct dedup_job *job;
    FILE *f;
    struct dedup_docs *docs;
    struct dedup_sets *sets;
    struct dedup_part part;
    unsigned char *row; /* bytes of one */
    uint64_t sum;
};

/* A set of shingles: ascending, or it is no set. */
static bool load_set(struct loading *l)
{
    struct dedup_sets *const sets = l->sets;
    unsigned char bytes[8 * WORDS_AT_ONCE];
    uint64_t left = 1, before = 0; /* the size first */
    for (bool size = true; left; size = false) {
        const size_t n = left < WORDS_AT_ONCE ? (size_t)left : WORDS_AT_ONCE;
        if (fread(bytes, 8, n, l->f) != n)
            return false;
        l->sum = dedup_chain(l->sum, bytes, 8 * n);
        if (!dedup_set_room(sets, l->job->opt->folder, n))
            return dedup_no_room(l->job, "the shingles of an index");
        for (size_t j = 0; j < n; j++) {
            const uint64_t x = get_le(bytes + 8 * j, 8);
            if (!size && x <= before && before)
                return false;
            before = size ? 0 : x;
            sets->words[sets->len++] = x;
            left = size ? x : left - 1;
        }
    }
    store_trim(&sets->store);
    return true;
}

static bool append_rows(struct loading *l)
{
    const bool ok = l->part.n == 0 || dedup_append(l->job, &l->part, l->docs);
    l->part.n = l->part.ids_len = 0;
    return ok;
}

static bool load_row(struct loading *l)
{
    struct dedup_part *const p = &l->part;
    const unsigned k = l->docs->k;
    const size_t fixed = ROW_HEAD + 4 * k, at = p->n;
    if (fread(l->row, 1, fixed, l->f) != fixed)
        return false;
    const uint32_t nid = (uint32_t)get_le(l->row + 12, 4);
    if (nid > MAX_ID || fread(l->row + fixed, 1, nid, l->f) != nid)
        return false;
    l->sum = dedup_chain(l->sum, l->row, fixed + nid);
    if (!dedup_part_id(p, l->row + fixed, nid))
        return dedup_fail(l->job, "out of memory");
    p->hashes[at] = get_le(l->row, 8);
    p->nshingles[at] = (uint32_t)get_le(l->row + 8, 4);
    p->states[at] = DOC_TEXT;
    p->values[at] = 0;
    for (unsigned i = 0; i < k; i++)
        p->rows[at * k + i] = (uint32_t)get_le(l->row + ROW_HEAD + 4 * i, 4);
    p->id_end[at] = p->ids_len;
    return (++p->n < PART_DOCS || append_rows(l)) &&
           (!l->sets->indexed || load_set(l));
}

static bool load_rows(struct loading *l)
{
    struct dedup_job *const job = l->job;
    unsigned char head[MAGIC_BYTES + BLY_SKETCH_HEAD + 8];
    bly_sketch_spec spec;
    if (fread(head, 1, sizeof head, l->f) != sizeof head)
        return dedup_fail(job, "not an index of --save-index");
    l->sets->indexed = head[MAGIC_VERSION] == '2';
    head[MAGIC_VERSION] -= l->sets->indexed;
    if (memcmp(head, magic, MAGIC_BYTES) != 0)
        return dedup_fail(job, "not an index of --save-index");
    if (bly_sketch_spec_read(head + MAGIC_BYTES, BLY_SKETCH_HEAD, &spec) ||
        bly_sketch_spec_fits(&job->opt->sketch, &spec))
        return dedup_fail(job, "%s", bly_error());
    const uint64_t count = get_le(head + MAGIC_BYTES + BLY_SKETCH_HEAD, 8);
    if (!dedup_part_room(&l->part, l->docs->k, PART_DOCS))
        return dedup_fail(job, "out of memory");
    bool ok = true;
    l->sum = count;
    for (uint64_t i = 0; ok && i < count; i++)
        ok = load_row(l);
    return (ok && append_rows(l) && fread(head, 1, 9, l->f) == 8 &&
            get_le(head, 8) == l->sum) ||
           dedup_fail(job, "the index is damaged or ends too early");
}

bool dedup_load_index(struct dedup_job *job, struct dedup_docs *docs,
                      struct dedup_sets *sets)
{
    const char *const path = job->opt->against;
    FILE *const f = fopen(path, "rb");
    if (!f)
        return dedup_fail(job, "%s: %s", path, strerror(errno));
    struct loading l = { job, f, docs, sets, .row = malloc(MAX_ROW) };
    const bool ok = l.row ? load_rows(&l) : dedup_fail(job, "out of memory");
    dedup_part_free(&l.part);
    free(l.row);
    fclose(f);
    if (!ok) {
        char why[sizeof job->error];
        snprintf(why, sizeof why, "%s", job->error);
        snprintf(job->error, sizeof job->error, "%s: %.400s", path, why);
        return false;
    }
    docs->base = (uint32_t)docs->n;
    return true;
}
