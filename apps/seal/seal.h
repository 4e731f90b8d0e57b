/*
 * seal.h - an archive that can be searched by somebody who cannot read it
 *
 * A folder holds sealed documents and one index of them:
 *
 *     archive/index                                   filters, one for each
 *     archive/f3b0...c1.sealed                        a document, encrypted
 *
 *     zindex.c   the filters        word_set.c words that were seen
 *     sealed.c   the documents      index.c    the file of filters
 *     seal_key.c the secret         seal_verbs.c  init add trapdoor search
 *     open.c     the verb open      seal_rm.c  rm, and versions that are
 * replaced
 */
#ifndef BLY_SEAL_H
#define BLY_SEAL_H

#include "apps/seal/seal_args.h"
#include "apps/seal/zindex.h"
#include "base/lookup.h"
#include "io/input.h"
#include "io/html/html_words.h"
#include "io/text_words.h"
#include "report/words.h"
#include "wire/secure.h"

/* Make a folder for its owner alone, unless something has that name; it lasts.
 * False, with the reason printed. */
bool private_folder(const char *path);

/* One process at a time changes an archive. The descriptor holds the lock;
 * negative, with the reason printed. */
int archive_lock(const char *folder);

/* ------------------------------------------------------------------ secrets */

#define KEY_ID_BYTES 8
#define SEAL_KEY_BYTES 32 /* of each */

/* What is made of the secret in a key file, in memory that is locked. */
struct seal_keys {
    unsigned char master[SEAL_KEY_BYTES];
    unsigned char stream[SEAL_KEY_BYTES]; /* seals documents */
    unsigned char words[SEAL_KEY_BYTES];  /* makes trapdoors */
    unsigned char index[SEAL_KEY_BYTES];  /* proves the rate of an archive */
    unsigned char id[KEY_ID_BYTES]; /* tells keys apart, and nothing else */
};

/* Make a new secret in a new file; read the one in a file. False, with the
 * reason printed. keys_close() wipes. */
bool keys_make(const char *path);
bool keys_open(const char *path, struct seal_keys *k);
void keys_close(struct seal_keys *k);

/* -------------------------------------------------------------------- words */

/* The PRF of archives, BLAKE2b with a key; the trapdoor of a word by it, with a
 * secret of TRAPDOOR_BYTES. */
zindex_prf seal_prf;
void seal_trapdoor_of(const unsigned char *secret, const void *word, size_t len,
                      unsigned char out[TRAPDOOR_BYTES]);

/* Add n words that nobody can ask for to a filter. */
void seal_blind(unsigned char *bits, uint64_t m, unsigned r, uint64_t n);

/* A set of words, by 64 bits of their trapdoors. */
struct word_set {
    uint64_t *at;
    size_t n, room;
    struct lookup by_word;
};
bool word_set_add(struct word_set *s, uint64_t x,
                  bool *fresh); /* false: memory */
void word_set_free(struct word_set *s);

/* ---------------------------------------------------------------- documents */

#define ID_TEXT (2 * DOCUMENT_ID_BYTES + 1)
void id_text(const unsigned char *id, char out[ID_TEXT]);
bool id_read(const char *text, unsigned char id[DOCUMENT_ID_BYTES]);

/* A document's filter, as the index holds it. */
struct entry {
    unsigned char id[DOCUMENT_ID_BYTES];
    uint64_t m;
    unsigned char *bits; /* (m + 7) / 8 bytes */
    uint64_t number;     /* counted from 1 as they were added */
};

/* Seal the document in path into folder and make its filter, for r probes, of
 * what is seen of it if it is a page;
 * entry->number is given. False, with the reason printed; entry->bits is the
 * caller's. */
bool document_seal(const struct seal_keys *k, const char *folder,
                   const char *path, const struct html_wish *pages, unsigned r,
                   struct entry *entry);

/* The name that a file gets: its path, as far as it leads down. The caller
 * frees it; NULL: no memory. */
char *stored_name(const char *path);

/* What a document begins with. */
struct document_head {
    bly_bytes name;
    uint64_t number, bytes; /* 0: sealed without one; of its text */
};

/* Open a sealed document: hand on its head, and then its text, piece by piece.
 * False, with the reason printed, if it is not what was sealed: what was handed
 * on until then must not be used. False without a word if one of the functions
 * returned false. */
struct opened {
    bool (*head)(void *ctx, const struct document_head *head);
    bool (*text)(void *ctx, const char *text, size_t n);
    void *ctx;
};
bool document_open(const struct seal_keys *k, const char *folder,
                   const unsigned char *id, const struct opened *to);

/* -------------------------------------------------------------------- index */

#define INDEX_PROOF_BYTES 8

struct sealed_index {
    unsigned char key_id[KEY_ID_BYTES];
    unsigned char proof[INDEX_PROOF_BYTES]; /* of r and fpr */
    unsigned version, r;
    double fpr;
    uint64_t removed; /* that were there before */
    struct entry *entries;
    size_t n, room;
};

/* What proves that whoever has the key chose r and fpr. */
void index_prove(const struct sealed_index *x, const struct seal_keys *k,
                 unsigned char proof[INDEX_PROOF_BYTES]);

/* Read the index of an archive; *found is false, and it is empty, where there
 * is none yet. False, with the reason printed. */
bool index_open(const char *folder, struct sealed_index *x, bool *found);
bool index_put(struct sealed_index *x, const struct entry *e); /* takes bits */
int index_save(const char *folder, const struct sealed_index *x);

/* Drop those of the first n that are marked, and append their ids to gone. */
struct sealed_ids {
    struct sealed_id {
        unsigned char id[DOCUMENT_ID_BYTES];
    } * at;
    size_t n, room;
};
bool index_drop(struct sealed_index *x, const bool *drops, size_t n,
                struct sealed_ids *gone);

/* Remove documents that the index, as it is on disk, does not have. */
void documents_remove(const char *folder, const struct sealed_ids *gone);

/* Which of the first n have the name of a file that is added? */
bool older_versions(const struct seal_keys *k, const char *folder,
                    const struct list *files, const struct sealed_index *x,
                    size_t n, bool *drops);
void index_free(struct sealed_index *x);

#endif
