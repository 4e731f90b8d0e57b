/*
 * doc_index.h - which documents of a folder have which words, and how often
 *
 * All regular files below a folder, plain or packed (gzip, zstd), are read;
 * links are not followed, and what leads out of the folder, or has bytes of
 * zero near its beginning, is left out. Names are bytes, whatever they are. An
 * index does not change; when the folder does, another one is made.
 */
#ifndef BLY_DOC_INDEX_H
#define BLY_DOC_INDEX_H

#include "apps/net/gossip/gossip_rank.h"
#include "io/html/html.h"

#define DOC_MOST 1000000 /* documents of a folder */
#define DOC_BYTES                                                \
    ((size_t)16 << 20) /* of a document, unpacked: no more of it \
                          is read */
#define DOC_LEAST_WORD 2

struct doc_posting {
    uint64_t word;
    uint32_t doc, count;
};

struct doc_entry {
    char *path; /* below the folder */
    uint32_t words;
};

struct doc_index {
    char *folder; /* without links in it */
    struct html_wish pages;
    struct doc_entry *docs;
    size_t ndocs, room_docs;
    struct doc_posting *postings; /* by word and document */
    size_t npostings, room_postings;
    size_t nwords, left_out;
    uint64_t state; /* of the folder: names, sizes and times of its files */
};

/* Read a folder, and of web pages what is seen of them; NULL, with the reason
 * printed. `unless` is the state of one
 * that is there already: where it is the same, *same is set, and there is no
 * index. */
struct doc_index *doc_index_read(const char *folder,
                                 const struct html_wish *pages,
                                 const uint64_t *unless, bool *same);
void doc_index_free(struct doc_index *x);

/* For those who have the words: documents one by one, then the end. */
struct doc_index *doc_index_new(const char *folder);
bool doc_index_add(struct doc_index *x, const char *path, const uint64_t *words,
                   const uint32_t *counts, size_t n);
void doc_index_end(struct doc_index *x);

/* All different words, x->nwords of them; NULL: no memory. */
uint64_t *doc_index_words(const struct doc_index *x);

/* In how many documents is it? */
size_t doc_index_with(const struct doc_index *x, uint64_t word);

/* The best documents for a query, at most q->k and q->k of room, best first;
 * paths are the index's. */
size_t doc_index_find(const struct doc_index *x, const struct query *q,
                      struct found *best);

/* A line of the document with the words of the query, if it is still there;
 * room has FOUND_CONTEXT bytes. False: it cannot be read any more. */
bool doc_context(const struct doc_index *x, const struct query *q,
                 const char *path, char *room, size_t *n);

#endif
