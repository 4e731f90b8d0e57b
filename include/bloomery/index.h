/*
 * bloomery/index.h - filters side by side: which of many documents?
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. An index has a filter for each document, and answers a question about
 * all of them at once. Row r holds bit r of every filter, so a term costs a few
 * rows, however many documents there are:
 *
 *     bly_index_class class = { "words", 0.001 };
 *     bly_index_spec spec = { .classes = &class, .nclasses = 1 };
 *     bly_index_builder *b;
 *     if (bly_index_builder_new("logs.blx", &spec, &b))
 *         errx(2, "%s", bly_error());
 *     for (...) {
 *         bly_hash_keys(bly_index_builder_hasher(b), words, n, hashes);
 *         bly_index_terms terms = { hashes, n };
 *         if (bly_index_builder_add(b, &terms, name, strlen(name), NULL))
 *             errx(2, "%s", bly_error());
 *     }
 *     if (bly_index_builder_commit(b))
 *         errx(2, "%s", bly_error());
 *
 *     bly_index *x;
 *     if (bly_index_map("logs.blx", NULL, &x))
 *         errx(2, "%s", bly_error());
 *     uint64_t *maybe = malloc(8 * bly_index_words(x));
 *     bly_index_term term = { bly_hash(bly_index_hasher(x), "error", 5), 0 };
 *     if (bly_index_ask(x, &term, 1, maybe)) ...
 *
 * Terms are 64-bit hashes, by the one rule of bloomery.h, and belong to
 * classes. A class has its own rate: the share of documents without a term for
 * which the answer is "maybe". The library does not know what a term is, nor
 * what a document is: a document has a blob of bytes that the caller reads
 * back.
 *
 * Documents have numbers from 0 on. The numbers of an open index never change;
 * another version of the file may have others, because documents that were
 * dropped leave at a compaction. Answers about documents are bitmaps with a bit
 * for each number, in bly_index_words() words; bits of dropped documents, and
 * bits past the last one, are zero.
 */
#ifndef BLOOMERY_INDEX_H
#define BLOOMERY_INDEX_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* A class of terms. */
typedef struct bly_index_class { /* final */
    const char *name; /* at most 31 bytes; no two classes share one */
    double fpr;       /* for one term, 0 < fpr < 1 */
} bly_index_class;

#define BLY_INDEX_CLASSES_MOST 16
#define BLY_INDEX_BLOB_MOST (UINT64_C(1) << 30) /* bytes of a blob */

/* ---------------------------------------------------------------- planning */

/* What rates cost: bytes of index on the one side, documents that are opened in
 * vain on the other. Zero in any field means the default. */
typedef struct bly_index_wish {
    uint64_t documents; /* 0: 10,000 */
    double terms;       /* different terms of a document; 0: 75,000 */
    double asked;       /* independent terms of a question; 0: 1 */
    double questions;   /* asked as long as the index is kept; 0: 1000 */
    double opening;     /* seconds to open a document; 0: 0.001 */
    double byte;        /* seconds of opening that a byte of index is worth;
                           0: 1e-6, so that a megabyte is worth a second */
    double fpr;         /* of a term; 0: choose it */
} bly_index_wish;

typedef struct bly_index_plan {
    double fpr;      /* of one term */
    uint32_t k;      /* rows that a term reads in each group */
    double bits;     /* of the index, per term of a document */
    uint64_t nbytes; /* of all documents */
    double opened;   /* documents that a question opens in vain */
    double cost;     /* seconds, as weighed above: bytes and openings */
} bly_index_plan;

/* Choose the rate of a class that minimises the cost, unless wish->fpr gives
 * it. BLY_EINVAL for numbers out of range. */
static inline bly_status bly_index_plan_for(const bly_index_wish *wish,
                                            bly_index_plan *out);

/* ---------------------------------------------------------------- building */

/* Zero in any field means the default. */
typedef struct bly_index_spec {
    const bly_index_class *classes; /* copied; one at least */
    size_t nclasses;
    uint64_t seed; /* of the hasher; indexes with other seeds do not merge */
    uint64_t max_bytes; /* of memory while building; 0: 256 MiB */
    const bly_mem *mem; /* must outlive the builder; NULL: malloc and free */
    bly_wait *wait;     /* for the lock of the file, as in bly_access */
    void *wait_ctx;
} bly_index_spec;

typedef struct bly_index bly_index;

/* Makes a new version of an index file, beside the old one, which stays as it
 * is until bly_index_builder_commit() puts the new one in its place. The
 * builder holds the lock of the file: a second builder of the same path waits.
 * If the process dies, the old version remains. */
typedef struct bly_index_builder bly_index_builder;

/* Begin a new index at path, without what may be there. */
static inline bly_status bly_index_builder_new(const char *path,
                                               const bly_index_spec *spec,
                                               bly_index_builder **out);

/* Begin a new version of the index at path, with all that it has. spec may be
 * NULL; classes and seed are those of the file. BLY_EFORMAT if the file is
 * damaged in what the new version depends on. */
static inline bly_status bly_index_builder_open(const char *path,
                                                const bly_index_spec *spec,
                                                bly_index_builder **out);

/* The version that is being replaced, or NULL for a new index. Valid as long as
 * the builder is. */
const bly_index *bly_index_builder_old(const bly_index_builder *b);

const bly_hasher *bly_index_builder_hasher(const bly_index_builder *b);

/* The terms of a document in one class, as hashes. A term that is given twice
 * costs space, so give each once. Borrowed for the call. */
typedef struct bly_index_terms { /* final */
    const uint64_t *hashes;
    size_t n;
} bly_index_terms;

/* Add a document, with one bly_index_terms for each class in terms[]. The blob
 * is kept as it is. Any number of threads may call this at once; documents are
 * then numbered in the order in which the calls happen to finish, and *number,
 * unless NULL, becomes the number. After an error the builder can only be
 * freed. */
bly_status bly_index_builder_add(bly_index_builder *b,
                                 const bly_index_terms *terms, const void *blob,
                                 size_t nblob, uint64_t *number) BLY_MUST_CHECK;

/* The same in two steps, so that many threads can do most of the work at once
 * and the order of documents is the caller's all the same: make the filters of
 * a document, then put them into the index, which takes no longer than copying
 * them. Placing releases the column, also if it fails. */
typedef struct bly_index_column bly_index_column;
bly_status bly_index_column_new(const bly_index_builder *b,
                                const bly_index_terms *terms,
                                bly_index_column **out);
void bly_index_column_free(bly_index_column *c);
bly_status bly_index_builder_place(bly_index_builder *b, bly_index_column *c,
                                   const void *blob, size_t nblob,
                                   uint64_t *number) BLY_MUST_CHECK;

/* Drop document `number` of the new version; BLY_EINVAL if there is none. Its
 * bytes stay until the index is compacted. */
bly_status bly_index_builder_drop(bly_index_builder *b, uint64_t number);

/* Append all documents of another index, except dropped ones where they can be
 * left out cheaply. Document i becomes *first + i, where first may be NULL.
 * BLY_EUNFIT if classes, rates or seeds differ; BLY_EFORMAT if the other index
 * is damaged. */
bly_status bly_index_builder_merge(bly_index_builder *b, const bly_index *other,
                                   uint64_t *first) BLY_MUST_CHECK;

/* Keep a value under a name, for the caller's own settings; a length of 0
 * removes it. At most 64 KiB in all. */
bly_status bly_index_builder_set(bly_index_builder *b, const char *name,
                                 const void *value, size_t len);

/* Merge segments into one at the commit, and leave dropped documents out; those
 * that remain get new numbers, in the same order. */
void bly_index_builder_compact(bly_index_builder *b);

/* Would a compaction pay? True for many segments, or many dropped documents. */
bool bly_index_wants_compaction(const bly_index *x);

/* Write all, make it last, and put it in the place of the file. Whether it
 * succeeds or fails, the builder can then only be freed. */
bly_status bly_index_builder_commit(bly_index_builder *b) BLY_MUST_CHECK;

/* Release b, and drop all that was not committed. NULL is allowed. */
void bly_index_builder_free(bly_index_builder *b);

/* ------------------------------------------------------------------ asking */

/* Open an index file. It is mapped, and a question reads only the pages of its
 * rows. The directory is compared with its checksum now, everything else
 * before the first answer that depends on it. Of *how only secret (which must
 * be NULL), wait and mem are looked at; how may be NULL. */
static inline bly_status bly_index_map(const char *path, const bly_access *how,
                                       bly_index **out);

/* The same from bytes that anyone may have written, and that must outlive the
 * index. Whatever comes back with BLY_OK is safe to use. */
bly_status bly_index_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                          bly_index **out);

/* Release x. NULL is allowed. */
void bly_index_free(bly_index *x);

const bly_hasher *bly_index_hasher(const bly_index *x);
uint64_t bly_index_documents(const bly_index *x); /* dropped ones included */

/* Words of a bitmap of all documents. */
static inline size_t bly_index_words(const bly_index *x)
{
    return (size_t)(bly_index_documents(x) + 63) / 64;
}

/* The documents that were not dropped, as a bitmap. */
void bly_index_live(const bly_index *x, uint64_t *live);

/* The class of that name, or -1. */
int bly_index_class_named(const bly_index *x, const char *name);

typedef struct bly_index_term { /* final */
    uint64_t hash;
    uint64_t class_number;
} bly_index_term;

/* Which documents may have all n terms? Without terms, all. A clear bit is
 * certain. What is damaged answers "maybe"; bly_index_damage() then says so.
 * BLY_EINVAL for a class that does not exist, BLY_ENOMEM. */
bly_status bly_index_ask(const bly_index *x, const bly_index_term *terms,
                         size_t n, uint64_t *maybe);

/* Each of n terms of one class on its own: the bitmap of term i begins at
 * maybe + i * bly_index_words(x). */
bly_status bly_index_ask_each(const bly_index *x, unsigned class_number,
                              const uint64_t *hashes, size_t n,
                              uint64_t *maybe);

/* How many of n terms of one class each document may have: counts[] has an
 * entry per document, 0 for dropped ones. */
bly_status bly_index_coverage(const bly_index *x, unsigned class_number,
                              const uint64_t *hashes, size_t n,
                              uint32_t *counts);

/* How many documents a question with these terms is expected to open in vain,
 * if the terms occur independently in other documents or not at all. */
double bly_index_expected(const bly_index *x, const bly_index_term *terms,
                          size_t n);

/* The blob of a document, which belongs to x. BLY_EINVAL if there is no such
 * document, BLY_EFORMAT if it is damaged. */
bly_status bly_index_document(const bly_index *x, uint64_t number,
                              bly_bytes *blob);

/* A value that was set; ptr is NULL if there is none. It belongs to x. */
bly_bytes bly_index_get(const bly_index *x, const char *name);

/* BLY_EFORMAT, with a message, once a damaged part was met. */
bly_status bly_index_damage(const bly_index *x);

/* Compare everything with its checksums. Reads all of the file. */
bly_status bly_index_verify(const bly_index *x);

/* ------------------------------------------------------------- description */

typedef struct bly_index_stats {
    uint64_t documents; /* dropped ones included */
    uint64_t dropped;
    uint32_t segments, groups, classes;
    uint32_t reserved;   /* zero */
    uint64_t nbytes;     /* of the file */
    uint64_t row_bytes;  /* of which rows */
    uint64_t blob_bytes; /* of which blobs of documents */
    uint64_t seed;
} bly_index_stats;

static inline void bly_index_stat(const bly_index *x, bly_index_stats *out);

typedef struct bly_index_class_stats {
    char name[32];
    double fpr;      /* as asked for */
    double expected; /* as the sizes of documents and filters predict */
    uint32_t k;      /* rows per term and group */
    uint32_t groups;
    uint64_t terms; /* of all documents, as they were given */
    uint64_t row_bytes;
} bly_index_class_stats;

/* Class i; false past the last one. */
static inline bool bly_index_class_at(const bly_index *x, size_t i,
                                      bly_index_class_stats *out);

BLY_SIZED(bly_status, bly_index_builder_new, bly_index_spec,
          (const char *path, const bly_index_spec *spec,
           bly_index_builder **out),
          (path, spec, out));
BLY_SIZED(bly_status, bly_index_builder_open, bly_index_spec,
          (const char *path, const bly_index_spec *spec,
           bly_index_builder **out),
          (path, spec, out));
BLY_SIZED(bly_status, bly_index_map, bly_access,
          (const char *path, const bly_access *how, bly_index **out),
          (path, how, out));
BLY_SIZED(void, bly_index_stat, bly_index_stats,
          (const bly_index *x, bly_index_stats *out), (x, out));
BLY_SIZED(bool, bly_index_class_at, bly_index_class_stats,
          (const bly_index *x, size_t i, bly_index_class_stats *out),
          (x, i, out));
bly_status bly_index_plan_for_sized(const bly_index_wish *wish,
                                    size_t wish_size, bly_index_plan *out,
                                    size_t size);
static inline bly_status bly_index_plan_for(const bly_index_wish *wish,
                                            bly_index_plan *out)
{
    return bly_index_plan_for_sized(wish, sizeof(bly_index_wish), out,
                                    sizeof(bly_index_plan));
}

BLY_END_DECLS
#endif
