/*
 * sql.h - what the adapters for databases share
 *
 * One vocabulary in every engine: bly_agg() and its relatives. An adapter
 * translates its engine's values, memory and errors; what they mean is here.
 *
 * Functions that can fail return NULL, or what was wrong, which holds until the
 * next call of the thread; sql_status() then gives it a number.
 */
#ifndef BLY_ADAPTERS_SQL_H
#define BLY_ADAPTERS_SQL_H

#include <sys/stat.h>

#include <bloomery.h>
#include <bloomery/sketch.h>

bly_status sql_status(void);

/* That a filter of so many bytes cannot be a value. */
const char *sql_too_large(uint64_t nbytes);

/* What the library says of a call that an adapter made itself. */
const char *sql_told(bly_status st);

/* A key as an engine has it: an integer, text (UTF-8) or bytes. */
struct sql_key {
    bly_key_type type; /* BLY_KEYS_INT64, _UINT64, _TEXT or _BYTES */
    int64_t integer;   /* the bits of one without a sign */
    bly_bytes bytes;
};

/* What a filter is to be: a kind, and words NAME=VALUE with blanks or commas
 * between them: items, fpr, bits, seed, compact, or an option of the kind. Both
 * may be NULL. */
#define SQL_OPTIONS 16
struct sql_spec {
    bly_spec spec;
    char kind[40], text[512];
    bly_option options[SQL_OPTIONS];
    bool compact; /* written without a page for the header */
};
const char *sql_spec_read(struct sql_spec *s, const char *kind,
                          const char *options, const bly_mem *mem);

/* ------------------------------------------------------------------ asking */

/* May the key be in f? As f's own keys are; a key that has no form there is
 * an error. */
const char *sql_has(const bly_filter *f, const struct sql_key *key,
                    bool *maybe);

/* Are text and bytes asked as they are, by bly_has()? Not where keys are
 * numbers or folded, nor without their secret. After a yes, bly_damage() must
 * be looked at; what is damaged never says no. */
bool sql_is_plain(const bly_filter *f);

/* sql_has() of many keys of a type, in an array as bly_has_as() takes it. */
const char *sql_has_many(const bly_filter *f, bly_key_type type,
                         const void *keys, size_t n, uint64_t *maybe);
const char *sql_count(const bly_filter *f, const struct sql_key *key,
                      uint64_t *count);
const char *sql_get(const bly_filter *f, const struct sql_key *key,
                    uint64_t *value, bool *present);
const char *sql_add(bly_filter *f, const struct sql_key *key);

/* -------------------------------------------------------------- aggregates */

/* spec must have been read into place: it points into itself. What follows it
 * may be set, and all else begins as zeros. A filter comes out, or NULL if
 * there were no keys; a part, which holds its keys, may be ended again, also
 * after more of them came. */
struct sql_agg {
    struct sql_spec spec;
    bool partial;       /* a part of a group, which is given to another */
    bool unordered;     /* the order of the rows must not matter */
    uint64_t most;      /* bytes that a value of the engine can have; 0: any */
    const char *spill;  /* a folder for hashes of many rows; NULL: none */
    bool (*stop)(void); /* asked now and then in the end, which a yes makes
                           fail; NULL: it goes on */
    bool begun, held, sorted;
    bly_hasher hasher;
    uint64_t *list; /* hashes that the builder does not have yet */
    size_t n, room;
    bly_builder *builder;
};
const char *sql_agg_add(struct sql_agg *a, const struct sql_key *key);

/* Many keys of a type, in an array as bly_hash_as() takes it. */
const char *sql_agg_add_many(struct sql_agg *a, bly_key_type type,
                             const void *keys, size_t n);
const char *sql_agg_end(struct sql_agg *a, bly_filter **out);
void sql_agg_free(struct sql_agg *a);

/* Take the hashes of a part, its list. */
const char *sql_agg_take(struct sql_agg *a, bly_key_type type,
                         const uint64_t *hashes, size_t n);

/* Keys on their way to something that is made of their hashes. The first one
 * says what they are; one of another type is an error. */
#define SQL_BATCH 256
struct sql_keys {
    bly_keying keying;
    const bly_hasher *hasher;
    uint64_t hashes[SQL_BATCH];
    size_t n;
};

struct sql_hll {
    struct sql_keys keys;
    bly_hll *hll;
    const bly_mem *mem;
};
const char *sql_hll_add(struct sql_hll *a, const struct sql_key *key);
const char *sql_hll_end(struct sql_hll *a);

struct sql_minhash {
    struct sql_keys keys;
    bly_sketch *sketch;
    const bly_mem *mem;
};
const char *sql_minhash_add(struct sql_minhash *a, const struct sql_key *key);
const char *sql_minhash_end(struct sql_minhash *a);

/* Keys as text: the list is for reading. It is made with the first, of k. */
const char *sql_topk_add(bly_topk **t, int64_t k, const bly_mem *mem,
                         const struct sql_key *key);

/* ------------------------------------------------------------------ telling */

/* JSON, by malloc(), which the caller frees: of bytes that are a filter or a
 * sketch, of a filter, of a file with either, and of a plan. Limits as below.
 */
const char *sql_info(const void *bytes, size_t nbytes, const bly_access *limits,
                     char **out);
const char *sql_info_filter(const bly_filter *f, char **out);
const char *sql_info_file(const char *path, const bly_access *limits,
                          char **out);
const char *sql_plan(uint64_t items, const double *fpr, const char *kind,
                     char **out); /* fpr NULL: 1 % */
const char *sql_topk(const bly_topk *t, char **out);

/* How alike two sketches, or two filters, are. */
const char *sql_likeness(bly_bytes a, bly_bytes b, const bly_access *limits,
                         double *out);

/* ------------------------------------------------------------------- values */

/* A filter or a sketch, from bytes or a file that anyone may have written. A
 * coded one may take a thousand times its bytes, so every engine says how much
 * memory there is: of `limits`, NULL allowed, mem and max_bytes count. */
struct sql_value {
    bly_filter *filter; /* NULL: a sketch */
    bly_stored sketch;
};
const char *sql_value_load(const void *bytes, size_t nbytes,
                           const bly_access *limits, struct sql_value *out);
const char *sql_value_open(const char *path, const bly_access *limits,
                           struct sql_value *out);
void sql_value_free(struct sql_value *v);

/* dst becomes the union of both; and that with a value that is bytes, which it
 * is if it was nothing yet. */
const char *sql_value_merge(struct sql_value *dst, const struct sql_value *src);
const char *sql_value_unite(struct sql_value *dst, bly_bytes bytes,
                            const bly_access *limits);

/* What bly_has() says of a sketch. */
#define SQL_SKETCH_ASKED \
    "a sketch cannot be asked for keys; bly_info() tells what it knows"

/* How many bytes it is, and these. */
uint64_t sql_value_bytes(const struct sql_value *v);
const char *sql_value_write(const struct sql_value *v, void *to, size_t nbytes);

/* The same, with memory by malloc(). */
const char *sql_value_copy(const struct sql_value *v, void **out,
                           size_t *nbytes);

/* The same where the value is not needed any more: a filter is freed while its
 * bytes are made, also if that fails, and takes half the memory. */
const char *sql_value_turn(struct sql_value *v, void **out, size_t *nbytes);

/* To a file, as a whole or not at all; wait as for bly_file_save(). */
const char *sql_value_save(const struct sql_value *v, const char *path,
                           bly_wait *wait);

const char *sql_value_info(const struct sql_value *v, char **out);
const char *sql_value_likeness(const struct sql_value *a,
                               const struct sql_value *b, double *out);

/* A file that is mapped, in a list of an engine's, which begins as NULL and of
 * which one thread at a time has the use. */
struct sql_file {
    struct sql_file *next;
    unsigned users;
    bool replaced; /* no longer in the list: freed with its last user */
    struct stat st;
    bly_filter *f; /* opened blind */
    char path[];
};
const char *sql_file_open(struct sql_file **files, const char *path,
                          const bly_access *limits, struct sql_file **out);
void sql_file_close(struct sql_file *file);

/* What is wrong with a path that is a pipe, at which opening would wait for
 * whoever is at its other end, for ever if nobody is. All functions here that
 * take a path look first. */
const char *sql_no_pipe(const char *path);
void sql_file_forget(struct sql_file **files, struct sql_file *file);
void sql_files_end(struct sql_file **files);

/* Is this the filter of the row before? The bytes of its header, with the sums
 * of all that follows, tell; of one with layers, or coded, all bytes do. */
struct sql_same {
    size_t nbytes, nkept;
    unsigned char *kept;
    const bly_mem *mem;
};

/* False: no memory. mem as in bly_spec. */
bool sql_same_begin(struct sql_same *s, bly_bytes bytes, const bly_mem *mem);
bool sql_same_is(const struct sql_same *s, bly_bytes bytes);
void sql_same_end(struct sql_same *s);

#endif
