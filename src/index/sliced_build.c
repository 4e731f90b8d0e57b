/*
 * sliced_build.c - a new version of an index
 *
 * A document's filters are made one by one, each an array of bits of its own,
 * which fits in a cache. They wait, by class and size, until there are enough
 * for a group, or until memory runs short: then the largest groups are turned
 * into rows, 64 columns and 64 rows at a time, and written. So memory is
 * bounded, whatever the number of documents; a document of more bytes than the
 * bound is written as soon as it is complete.
 *
 *     column of document 7    w0 w1 w2 ...         64 columns, 64 rows
 *     column of document 8    w0 w1 w2 ...    ->   transposed: a word of each
 *     ...                                          of 64 rows
 *
 * Blobs wait too, and become a segment when there are 8 MiB of them.
 *
 * The new version is written into a file that has no name yet, and takes its
 * place at the commit (format/replace.h). If the version has many groups of one
 * size, from many additions or little memory, it is compacted first: mapped as
 * it is, and written again.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/sized.h"
#include "core/status.h"
#include "format/filter_files.h"
#include "format/replace.h"
#include "index/bit_sliced.h"

#define BUILD_MEMORY (UINT64_C(256) << 20)
#define BUILD_BLOBS ((size_t)8 << 20)
#define BUILD_NAME_MOST 255 /* bytes of a setting's name */

/* A filter, and the document that it is of. */
typedef struct waiting_column {
    uint64_t *words;
    uint64_t number;
} waiting_column;

typedef struct waiting_group {
    uint32_t class_number;
    uint64_t m, terms;
    double expected; /* sum */
    waiting_column *columns;
    size_t n, room;
} waiting_group;

struct bly_index_builder {
    bly_mem mem;
    bly_target target;
    bly_index *old;
    bly_sliced_class classes[BLY_INDEX_CLASSES_MOST];
    uint32_t nclasses;
    uint64_t max_bytes;
    bool compact;
    bool over; /* failed or committed */
    pthread_mutex_t lock;
    bly_sliced_writer w;
    waiting_group *groups;
    size_t ngroups, groups_room;
    uint64_t bytes; /* of waiting columns */
    uint64_t ndocs;
    /* Of the segment that waits. */
    uint64_t first;
    uint64_t *ends; /* of blobs */
    size_t nends, ends_room;
    unsigned char *blobs;
    size_t nblobs, blobs_room;
    char path[];
};

typedef struct column_filter {
    uint64_t *words;
    uint64_t m, terms;
} column_filter;

struct bly_index_column {
    bly_mem mem;
    uint32_t nclasses;
    column_filter filter[];
};

static size_t column_words(uint64_t m)
{
    return (size_t)(m + 63) / 64;
}

/* ------------------------------------------------------------------ columns */

static size_t column_size(uint32_t nclasses)
{
    return sizeof(bly_index_column) + nclasses * sizeof(column_filter);
}

void bly_index_column_free(bly_index_column *c)
{
    if (!c)
        return;
    const bly_mem mem = c->mem;
    for (uint32_t i = 0; i < c->nclasses; i++)
        bly_mem_release(&mem, c->filter[i].words,
                        8 * column_words(c->filter[i].m));
    bly_mem_release(&mem, c, column_size(c->nclasses));
}

static bly_status column_fill(const bly_mem *mem, const bly_sliced_class *class,
                              const bly_index_terms *terms, column_filter *f)
{
    if (!terms->n)
        return BLY_OK;
    const double bits =
        (double)terms->n * bly_sliced_bits(class->fpr, class->k);
    if (bits > (double)(SLICED_ROWS_MOST / 2))
        return bly_fail(BLY_ERANGE, "%zu terms are too many for a document",
                        terms->n);
    /* The terms of a small document set bits that vary, and more ones make more
     * difference than fewer: 32 bits more keep the promise on average. */
    f->m = bly_sliced_rows(bits + 32);
    f->terms = terms->n;
    f->words = bly_mem_zalloc(mem, 8 * column_words(f->m));
    if (!f->words)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t i = 0; i < terms->n; i++) {
        uint64_t h = terms->hashes[i];
        for (uint32_t j = 0; j < class->k; j++) {
            const uint64_t row = bly_sliced_next(&h, f->m);
            f->words[row / 64] |= UINT64_C(1) << (row % 64);
        }
    }
    return BLY_OK;
}

bly_status bly_index_column_new(const bly_index_builder *b,
                                const bly_index_terms *terms,
                                bly_index_column **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!b || !terms)
        return bly_fail_null(b ? "terms" : "b");
    bly_index_column *const c =
        bly_mem_zalloc(&b->mem, column_size(b->nclasses));
    if (!c)
        return bly_fail(BLY_ENOMEM, "out of memory");
    c->mem = b->mem;
    c->nclasses = b->nclasses;
    bly_status st = BLY_OK;
    for (uint32_t i = 0; i < b->nclasses && !st; i++)
        st = terms[i].n && !terms[i].hashes
                 ? bly_fail_null("hashes")
                 : column_fill(&b->mem, &b->classes[i], &terms[i],
                               &c->filter[i]);
    if (st) {
        bly_index_column_free(c);
        return st;
    }
    *out = c;
    return BLY_OK;
}

/* -------------------------------------------------------------- transposing */

/* Turn 64 words by 64 bits: bit j of word i becomes bit i of word j. Squares of
 * 32 bits are exchanged across the diagonal, then squares of 16, and so on. */
static void transpose(uint64_t w[64])
{
    static const uint64_t low[6] = {
        UINT64_C(0x00000000ffffffff), UINT64_C(0x0000ffff0000ffff),
        UINT64_C(0x00ff00ff00ff00ff), UINT64_C(0x0f0f0f0f0f0f0f0f),
        UINT64_C(0x3333333333333333), UINT64_C(0x5555555555555555),
    };
    for (unsigned step = 0; step < 6; step++) {
        const unsigned n = 32 >> step;
        for (unsigned i = 0; i < 64; i = (i + n + 1) & ~n) {
            const uint64_t x = (w[i] >> n ^ w[i + n]) & low[step];
            w[i] ^= x << n;
            w[i + n] ^= x;
        }
    }
}

/* Rows that are put together at a time: a stripe of words of each column. */
typedef struct stripe {
    uint64_t *words; /* of row r from r * nacross on */
    size_t nacross;
} stripe;

/* The 64 rows from 64 * at on. */
static void stripe_fill(const stripe *s, const waiting_group *g, size_t at)
{
    uint64_t w[64];
    for (size_t i = 0; i < s->nacross; i++) {
        const size_t left = g->n - 64 * i, now = left < 64 ? left : 64;
        for (size_t j = 0; j < now; j++)
            w[j] = g->columns[64 * i + j].words[at];
        memset(w + now, 0, (64 - now) * sizeof w[0]);
        transpose(w);
        for (size_t j = 0; j < 64; j++)
            s->words[j * s->nacross + i] = bly_le64(w[j]);
    }
}

static bly_status put_rows(bly_sliced_writer *w, const waiting_group *g,
                           const stripe *s)
{
    const uint64_t stride = bly_sliced_stride(g->n);
    bly_status st = BLY_OK;
    uint64_t gathered = 0, ngathered = 0; /* bits of packed rows */
    for (uint64_t r = 0; r < g->m && !st; r++) {
        if (r % 64 == 0)
            stripe_fill(s, g, (size_t)(r / 64));
        const uint64_t *const row = s->words + r % 64 * s->nacross;
        if (g->n > 64) {
            st = bly_sliced_put(w, row, (size_t)(stride / 8));
            continue;
        }
        const uint64_t bits = bly_le64(row[0]);
        gathered |= bits << ngathered;
        ngathered += stride;
        if (ngathered < 64)
            continue;
        unsigned char word[8];
        bly_store64(word, gathered);
        st = bly_sliced_put(w, word, sizeof word);
        ngathered -= 64;
        gathered = ngathered ? bits >> (stride - ngathered) : 0;
    }
    /* Up to a whole word, and the word behind. */
    unsigned char last[16] = { 0 };
    const uint64_t bits = g->m * stride % 64;
    bly_store64(last, gathered);
    if (!st && bits && g->n > 64)
        st = bly_sliced_put(w, last + 8, (size_t)(8 - bits / 8));
    if (!st && bits && g->n <= 64)
        st = bly_sliced_put(w, last, 8);
    return st ? st : bly_sliced_put(w, last + 8, 8);
}

static bly_status put_list(bly_sliced_writer *w, const waiting_group *g)
{
    bly_status st = BLY_OK;
    unsigned char entry[8] = { 0 };
    for (size_t i = 0; i < g->n && !st; i++) {
        bly_store32(entry,
                    (uint32_t)(g->columns[i].number - g->columns[0].number));
        st = bly_sliced_put(w, entry, 4);
    }
    memset(entry, 0, sizeof entry);
    return st || g->n % 2 == 0 ? st : bly_sliced_put(w, entry, 4);
}

/* ------------------------------------------------------------------ waiting */

static void group_release(bly_index_builder *b, waiting_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        bly_mem_release(&b->mem, g->columns[i].words, 8 * column_words(g->m));
    bly_mem_release(&b->mem, g->columns, g->room * sizeof g->columns[0]);
}

static uint64_t group_bytes(const waiting_group *g)
{
    return g->n * (8 * column_words(g->m) + sizeof g->columns[0]);
}

/* Write group number i, which is then no more. Its columns are in order, since
 * documents get their numbers when they are placed. */
static bly_status group_write(bly_index_builder *b, size_t i)
{
    waiting_group *const g = &b->groups[i];
    bly_block rows;
    bly_sliced_group out = {
        .class_number = g->class_number,
        .m = g->m,
        .ndocs = g->n,
        .first = g->columns[0].number,
        .span = g->columns[g->n - 1].number - g->columns[0].number + 1,
        .terms = g->terms,
        .expected = g->expected / (double)g->n,
    };
    stripe s = { .nacross = (g->n + 63) / 64 };
    bly_status st = bly_block_new(&b->mem, 64 * 8 * s.nacross, &rows);
    if (st)
        return st;
    s.words = (uint64_t *)(void *)rows.at;
    st = bly_sliced_part_begin(&b->w,
                               bly_sliced_row_bytes(out.m, out.ndocs) +
                                   bly_sliced_list_bytes(out.ndocs, out.span));
    if (!st)
        st = put_rows(&b->w, g, &s);
    if (!st && out.span != out.ndocs)
        st = put_list(&b->w, g);
    bly_block_free(&b->mem, &rows);
    if (!st)
        st = bly_sliced_part_end(&b->w, &out.part);
    if (!st)
        st = bly_sliced_group_add(&b->w, &out);
    if (st)
        return st;
    b->bytes -= group_bytes(g);
    group_release(b, g);
    *g = b->groups[--b->ngroups];
    return BLY_OK;
}

static bly_status groups_write(bly_index_builder *b, uint64_t most)
{
    bly_status st = BLY_OK;
    while (b->ngroups && b->bytes > most && !st) {
        size_t largest = 0;
        for (size_t i = 1; i < b->ngroups; i++)
            if (group_bytes(&b->groups[i]) > group_bytes(&b->groups[largest]))
                largest = i;
        st = group_write(b, largest);
    }
    return st;
}

static bly_status segment_write(bly_index_builder *b)
{
    if (!b->nends)
        return BLY_OK;
    bly_sliced_segment s = { .first = b->first, .ndocs = b->nends };
    unsigned char entry[8] = { 0 };
    bly_status st =
        bly_sliced_part_begin(&b->w, 8 * (b->nends + 1) + b->nblobs);
    for (size_t i = 0; i <= b->nends && !st; i++) {
        if (i)
            bly_store64(entry, b->ends[i - 1]);
        st = bly_sliced_put(&b->w, entry, sizeof entry);
    }
    if (!st)
        st = bly_sliced_put(&b->w, b->blobs, b->nblobs);
    if (!st)
        st = bly_sliced_part_end(&b->w, &s.part);
    if (!st)
        st = bly_sliced_segment_add(&b->w, &s);
    b->first += b->nends;
    b->nends = b->nblobs = 0;
    return st;
}

/* The group that waits for columns of this class and size, and whose numbers
 * fit into a list. */
static bly_status waiting_for(bly_index_builder *b, uint32_t class_number,
                              uint64_t m, waiting_group **out)
{
    for (size_t i = 0; i < b->ngroups; i++) {
        *out = &b->groups[i];
        if ((*out)->class_number == class_number && (*out)->m == m &&
            b->ndocs - (*out)->columns[0].number < UINT32_MAX)
            return BLY_OK;
    }
    void *at = b->groups;
    const bly_status st = bly_sliced_grow(&b->mem, &at, &b->groups_room,
                                          b->ngroups + 1, sizeof b->groups[0]);
    b->groups = at;
    if (st)
        return st;
    *out = &b->groups[b->ngroups];
    **out = (waiting_group){ .class_number = class_number, .m = m };
    return BLY_OK;
}

/* Let one filter of the next document wait; the group then owns its words. */
static bly_status filter_place(bly_index_builder *b, uint32_t class_number,
                               column_filter *f)
{
    waiting_group *g = NULL;
    bly_status st = waiting_for(b, class_number, f->m, &g);
    if (st)
        return st;
    void *at = g->columns;
    st =
        bly_sliced_grow(&b->mem, &at, &g->room, g->n + 1, sizeof g->columns[0]);
    g->columns = at;
    if (st)
        return st;
    if (g == &b->groups[b->ngroups])
        b->ngroups++; /* it has a column now */
    g->columns[g->n++] = (waiting_column){ f->words, b->ndocs };
    g->terms += f->terms;
    g->expected += bly_sliced_rate(f->m, b->classes[class_number].k, f->terms);
    b->bytes += 8 * column_words(f->m) + sizeof g->columns[0];
    f->words = NULL;
    return BLY_OK;
}

static bly_status blob_place(bly_index_builder *b, const void *blob, size_t n)
{
    void *ends = b->ends, *blobs = b->blobs;
    bly_status st = bly_sliced_grow(&b->mem, &ends, &b->ends_room, b->nends + 1,
                                    sizeof b->ends[0]);
    b->ends = ends;
    if (!st)
        st = bly_sliced_grow(&b->mem, &blobs, &b->blobs_room, b->nblobs + n, 1);
    b->blobs = blobs;
    if (st)
        return st;
    if (n)
        memcpy(b->blobs + b->nblobs, blob, n);
    b->nblobs += n;
    b->ends[b->nends++] = b->nblobs;
    return b->nblobs >= BUILD_BLOBS ? segment_write(b) : BLY_OK;
}

static bly_status builder_over(void)
{
    return bly_fail(BLY_EINVAL, "the builder has failed or was committed");
}

static bly_status document_place(bly_index_builder *b, bly_index_column *c,
                                 const void *blob, size_t nblob,
                                 uint64_t *number)
{
    bly_status st = b->over ? builder_over() : BLY_OK;
    for (uint32_t i = 0; i < b->nclasses && !st; i++)
        if (c->filter[i].words)
            st = filter_place(b, i, &c->filter[i]);
    if (!st)
        st = blob_place(b, blob, nblob);
    if (!st) {
        if (number)
            *number = b->ndocs;
        b->ndocs++;
    }
    if (!st && b->bytes > b->max_bytes)
        st = groups_write(b, b->max_bytes / 2);
    b->over |= st != BLY_OK;
    return st;
}

bly_status bly_index_builder_place(bly_index_builder *b, bly_index_column *c,
                                   const void *blob, size_t nblob,
                                   uint64_t *number)
{
    bly_status st = BLY_OK;
    if (!b || !c || (nblob && !blob))
        st = bly_fail_null(!b ? "b" : !c ? "c" : "blob");
    else if (nblob > BLY_INDEX_BLOB_MOST)
        st = bly_fail(BLY_ERANGE, "%zu bytes are too many for a document",
                      nblob);
    else if (c->nclasses != b->nclasses)
        st = bly_fail(BLY_EUNFIT, "the column is of another builder");
    if (!st) {
        pthread_mutex_lock(&b->lock);
        st = document_place(b, c, blob, nblob, number);
        pthread_mutex_unlock(&b->lock);
    }
    bly_index_column_free(c);
    return st;
}

bly_status bly_index_builder_add(bly_index_builder *b,
                                 const bly_index_terms *terms, const void *blob,
                                 size_t nblob, uint64_t *number)
{
    bly_index_column *c;
    const bly_status st = bly_index_column_new(b, terms, &c);
    return st ? st : bly_index_builder_place(b, c, blob, nblob, number);
}

/* --------------------------------------------------------------- the builder
 */

static bly_status classes_take(bly_index_builder *b, const bly_index_spec *spec)
{
    if (!spec->classes || spec->nclasses < 1 ||
        spec->nclasses > BLY_INDEX_CLASSES_MOST)
        return bly_fail(BLY_EINVAL, "an index has 1 to %d classes of terms",
                        BLY_INDEX_CLASSES_MOST);
    for (size_t i = 0; i < spec->nclasses; i++) {
        const bly_index_class *const from = &spec->classes[i];
        bly_sliced_class *const to = &b->classes[i];
        const size_t n = from->name ? strlen(from->name) : 0;
        if (n < 1 || n >= SLICED_NAME)
            return bly_fail(BLY_EINVAL, "the name of a class has 1 to %d bytes",
                            SLICED_NAME - 1);
        if (!(from->fpr >= 1e-15 && from->fpr <= 0.9))
            return bly_fail(BLY_EINVAL,
                            "a rate of %g for class '%s': from 1e-15 to 0.9",
                            from->fpr, from->name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(b->classes[j].name, from->name) == 0)
                return bly_fail(BLY_EINVAL, "two classes are called '%s'",
                                from->name);
        memcpy(to->name, from->name, n);
        to->fpr = from->fpr;
        to->k = bly_sliced_k(from->fpr);
    }
    b->nclasses = (uint32_t)spec->nclasses;
    return BLY_OK;
}

static bly_status target_ready(bly_index_builder *b, const bly_index_spec *spec)
{
    const bly_status st =
        bly_target_open(b->path, spec ? spec->wait : NULL,
                        spec ? spec->wait_ctx : NULL, &b->target);
    if (!st && b->target.special)
        return bly_fail(BLY_EIO,
                        "%s: an index cannot be written there: not a regular "
                        "file",
                        b->path);
    return st;
}

static bly_status old_take(bly_index_builder *b)
{
    if (b->target.lock < 0)
        return bly_io_fail(b->path, "changed", ENOENT);
    if (b->target.no_lock)
        return bly_io_fail(b->path, "locked", b->target.no_lock);
    const bly_status st =
        bly_sliced_map(b->target.lock, (uint64_t)b->target.old.st_size, b->path,
                       &b->mem, &b->old);
    if (st)
        return st;
    memcpy(b->classes, b->old->classes,
           b->old->nclasses * sizeof b->classes[0]);
    b->nclasses = b->old->nclasses;
    b->w.hasher = b->old->hasher;
    return BLY_OK;
}

static bly_status meta_copy(bly_sliced_writer *w, const bly_index *x)
{
    const unsigned char *at = x->meta;
    uint64_t left = x->nmeta;
    bly_sliced_pair p;
    bly_status st = BLY_OK;
    while (!st && bly_sliced_pair_next(&at, &left, &p))
        st =
            bly_sliced_set(w, (const char *)p.name, p.nname, p.value, p.nvalue);
    return st;
}

static bly_status builder_begin(bly_index_builder *b)
{
    bly_status st = bly_target_begin(&b->target);
    b->w.classes = b->classes;
    b->w.nclasses = b->nclasses;
    if (!st)
        st = bly_sliced_writer_begin(&b->w, &b->mem, b->path, b->target.fd);
    if (!st && b->old)
        st = bly_sliced_copy(&b->w, b->old);
    if (!st && b->old)
        st = meta_copy(&b->w, b->old);
    b->first = b->ndocs = b->w.ndocs;
    return st;
}

static bly_status builder_new(const char *path, const bly_index_spec *spec,
                              bool old, bly_index_builder **out)
{
    const size_t npath = strlen(path) + 1;
    const bly_mem *const mem = spec && spec->mem ? spec->mem : &bly_mem_system;
    bly_index_builder *const b = bly_mem_zalloc(mem, sizeof *b + npath);
    if (!b)
        return bly_fail(BLY_ENOMEM, "out of memory");
    b->mem = *mem;
    memcpy(b->path, path, npath);
    b->max_bytes = spec && spec->max_bytes ? spec->max_bytes : BUILD_MEMORY;
    b->w.hasher =
        (bly_hasher){ .id = BLY_HASH_XXH3, .seed = spec ? spec->seed : 0 };
    b->target = (bly_target){ .lock = -1, .fd = -1, .dir = -1 };
    pthread_mutex_init(&b->lock, NULL);
    bly_status st = old ? BLY_OK : classes_take(b, spec);
    if (!st)
        st = target_ready(b, spec);
    if (!st && old)
        st = old_take(b);
    if (!st)
        st = builder_begin(b);
    if (st)
        bly_index_builder_free(b);
    else
        *out = b;
    return st;
}

bly_status bly_index_builder_new_sized(const char *path,
                                       const bly_index_spec *spec,
                                       bly_index_builder **out, size_t size)
{
    bly_index_spec own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!path)
        return bly_fail_null("path");
    spec = BLY_TAKE(spec, size, &own);
    return spec ? builder_new(path, spec, false, out) : BLY_EINVAL;
}

bly_status bly_index_builder_open_sized(const char *path,
                                        const bly_index_spec *spec,
                                        bly_index_builder **out, size_t size)
{
    bly_index_spec own;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!path)
        return bly_fail_null("path");
    if (spec && !(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    return builder_new(path, spec, true, out);
}

const bly_index *bly_index_builder_old(const bly_index_builder *b)
{
    return b->old;
}

const bly_hasher *bly_index_builder_hasher(const bly_index_builder *b)
{
    return &b->w.hasher;
}

bly_status bly_index_builder_drop(bly_index_builder *b, uint64_t number)
{
    if (!b)
        return bly_fail_null("b");
    pthread_mutex_lock(&b->lock);
    const bly_status st =
        b->over ? builder_over()
        : number >= b->ndocs
            ? bly_fail(BLY_EINVAL, "there is no document %llu, only %llu",
                       (unsigned long long)number, (unsigned long long)b->ndocs)
            : bly_sliced_drop(&b->w, number);
    pthread_mutex_unlock(&b->lock);
    return st;
}

static bly_status merge_fits(const bly_index_builder *b, const bly_index *x)
{
    bool same =
        b->nclasses == x->nclasses && b->w.hasher.seed == x->hasher.seed;
    for (uint32_t i = 0; i < b->nclasses && same; i++)
        same = strcmp(b->classes[i].name, x->classes[i].name) == 0 &&
               b->classes[i].k == x->classes[i].k &&
               !(b->classes[i].fpr < x->classes[i].fpr) &&
               !(b->classes[i].fpr > x->classes[i].fpr);
    return same ? BLY_OK
                : bly_fail(BLY_EUNFIT,
                           "indexes merge only if they have the same classes "
                           "of terms, with the same rates, and one seed");
}

bly_status bly_index_builder_merge(bly_index_builder *b, const bly_index *other,
                                   uint64_t *first)
{
    if (!b || !other)
        return bly_fail_null(b ? "other" : "b");
    bly_status st = merge_fits(b, other);
    if (st)
        return st;
    pthread_mutex_lock(&b->lock);
    st = b->over ? builder_over() : segment_write(b);
    if (!st && first)
        *first = b->ndocs;
    if (!st)
        st = bly_sliced_copy(&b->w, other);
    if (!st)
        b->first = b->ndocs = b->w.ndocs;
    b->over |= st != BLY_OK;
    pthread_mutex_unlock(&b->lock);
    return st;
}

bly_status bly_index_builder_set(bly_index_builder *b, const char *name,
                                 const void *value, size_t len)
{
    if (!b || !name || (len && !value))
        return bly_fail_null(!b ? "b" : !name ? "name" : "value");
    const size_t n = strlen(name);
    if (n < 1 || n > BUILD_NAME_MOST)
        return bly_fail(BLY_EINVAL, "the name of a setting has 1 to %d bytes",
                        BUILD_NAME_MOST);
    pthread_mutex_lock(&b->lock);
    const bly_status st = bly_sliced_set(&b->w, name, n, value, len);
    pthread_mutex_unlock(&b->lock);
    return st;
}

void bly_index_builder_compact(bly_index_builder *b)
{
    b->compact = true;
}

/* ------------------------------------------------------------------- commit */

/* Map what was written, drop it, and write its live documents again. */
static bly_status builder_compact(bly_index_builder *b)
{
    bly_index *x;
    bly_status st = bly_sliced_map(b->target.fd, b->w.at, b->path, &b->mem, &x);
    if (st)
        return st;
    if (!b->compact && !bly_index_wants_compaction(x)) {
        bly_index_free(x);
        return BLY_OK;
    }
    /* Damaged rows cannot be put beside others. They stay as they are, unless
     * the caller wants them to go. */
    st = bly_index_verify(x);
    if (st) {
        bly_index_free(x);
        return b->compact ? bly_named_fail(st, b->path) : BLY_OK;
    }
    bly_sliced_writer w = { .hasher = b->w.hasher,
                            .classes = b->classes,
                            .nclasses = b->nclasses };
    bly_target_next(&b->target);
    st = bly_target_begin(&b->target);
    if (!st)
        st = bly_sliced_writer_begin(&w, &b->mem, b->path, b->target.fd);
    if (!st)
        st = bly_sliced_compact(&w, x);
    if (!st)
        st = meta_copy(&w, x);
    if (!st)
        st = bly_sliced_finish(&w);
    bly_sliced_writer_free(&w);
    bly_index_free(x);
    return st;
}

bly_status bly_index_builder_commit(bly_index_builder *b)
{
    if (!b)
        return bly_fail_null("b");
    pthread_mutex_lock(&b->lock);
    bly_status st = b->over ? builder_over() : segment_write(b);
    if (!st)
        st = groups_write(b, 0);
    if (!st)
        st = bly_sliced_finish(&b->w);
    if (!st)
        st = builder_compact(b);
    if (!st)
        st = bly_target_commit(&b->target);
    b->over = true;
    pthread_mutex_unlock(&b->lock);
    return st;
}

void bly_index_builder_free(bly_index_builder *b)
{
    if (!b)
        return;
    const bly_mem mem = b->mem;
    for (size_t i = 0; i < b->ngroups; i++)
        group_release(b, &b->groups[i]);
    bly_mem_release(&mem, b->groups, b->groups_room * sizeof b->groups[0]);
    bly_mem_release(&mem, b->ends, b->ends_room * sizeof b->ends[0]);
    bly_mem_release(&mem, b->blobs, b->blobs_room);
    bly_sliced_writer_free(&b->w);
    bly_index_free(b->old);
    bly_target_close(&b->target);
    pthread_mutex_destroy(&b->lock);
    bly_mem_release(&mem, b, sizeof *b + strlen(b->path) + 1);
}
