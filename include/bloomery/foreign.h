/*
 * bloomery/foreign.h - filters of other systems
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too.
 *
 * The formats, by the names that bly_foreign_spec takes. bly_format_at() says
 * what each of them can do, docs/formats.md how it is laid out.
 *
 *     guava            Guava BloomFilter.writeTo (Java)
 *     squid            Squid cache digest
 *     dcso             DCSO bloom (Go), flor (Python)
 *     bits-and-blooms  bits-and-blooms/bloom, once willf/bloom (Go)
 *     redisbloom       RedisBloom BF.SCANDUMP, BF.LOADCHUNK (Redis)
 *     git              git, changed paths in a commit-graph
 *     elf              ELF programs and libraries, .gnu.hash
 *     leveldb          LevelDB tables (.ldb, .sst)
 *     leveldb-filter   LevelDB, the block of filters of a table
 *     rocksdb          RocksDB tables (.sst)
 *     rocksdb-filter   RocksDB, the full filter of a table
 *     cassandra        Apache Cassandra 3.0 and later, Filter.db
 *     datasketches     Apache DataSketches bloom_filter (Java, C++, Go)
 *     bip37            Bitcoin, filterload messages (BIP 37)
 *     bip158           Bitcoin, basic block filters (BIP 158)
 *     sbbf             Parquet split-block Bloom filter, without the file
 *     parquet          Parquet files: DuckDB, Spark, Arrow, ...
 *     valkeybloom      valkey-bloom BF.LOAD (Valkey)
 *     rediscuckoo      RedisBloom CF.SCANDUMP, CF.LOADCHUNK (Redis)
 */
#ifndef BLOOMERY_FOREIGN_H
#define BLOOMERY_FOREIGN_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* MurmurHash2 (Austin Appleby, public domain): the 32-bit hash, and its 64-bit
 * form "A". RedisBloom and others place keys with them. They are good enough
 * for a filter, but not for keys that an adversary chooses. */
uint32_t bly_murmur2(const void *bytes, size_t len, uint32_t seed);
uint64_t bly_murmur64a(const void *bytes, size_t len, uint64_t seed);

/* Proxies, databases, and services in Java and Go keep filters in formats of
 * their own, each with its own hash. A filter in any of these formats can be
 * opened, described and asked; some formats can also be written from keys. Bits
 * cannot be converted from one format to another whose rules for positions
 * differ: that takes the keys.
 *
 *     bly_foreign *f;
 *     if (bly_foreign_open(NULL, bytes, nbytes, &f))
 *         errx(2, "%s", bly_error());
 *     if (bly_foreign_has(f, keys, n, bitmap, NULL))
 *         errx(2, "%s", bly_error());
 *     bly_foreign_free(f);
 *
 * A foreign filter may have several parts, each a filter of its own: one per
 * commit, per block of a table or per row group. A key may be in the filter if
 * it may be in one of its parts.
 *
 * Threads. Any number of threads may ask a filter at once. A filter that is
 * being added to or written has one user. */
typedef struct bly_foreign bly_foreign;

#define BLY_FORMAT_MAX_OPTIONS 8

/* What a format can do. Every format can be opened and described. */
#define BLY_FORMAT_KNOWN 1u /* can be recognised by its contents */
#define BLY_FORMAT_HAS 2u   /* can be asked for keys */
#define BLY_FORMAT_NEW 4u   /* can be made from keys */
#define BLY_FORMAT_ADD 8u   /* can take more keys: bly_foreign_edit() */
#define BLY_FORMAT_REMOVE 16u
#define BLY_FORMAT_COUNT 32u

typedef struct bly_format_info {
    const char *name;    /* "guava" */
    const char *systems; /* who writes it: "Guava BloomFilter.writeTo (Java)" */
    const char *summary; /* one line, without a full stop */
    uint64_t can;        /* BLY_FORMAT_... */
    const bly_param *options; /* for bly_param_at() */
    size_t noptions;
} bly_format_info;

/* Describe the format with this index, or with this name; false, with *out
 * unchanged, if there is none. */
static inline bool bly_format_at(size_t index, bly_format_info *out);
static inline bool bly_format_named(const char *name, bly_format_info *out);

/* Describe the first format that recognises these bytes by their contents,
 * damaged or not; false if none does. */
static inline bool bly_format_of(const void *bytes, size_t nbytes,
                                 bly_format_info *out);

typedef struct bly_foreign_spec {
    const char *format;        /* NULL: find out; bly_foreign_new() needs it */
    const bly_option *options; /* of the format */
    size_t noptions;
    uint64_t items;     /* capacity of a new filter; 0: as many as are added */
    double fpr;         /* rate of a new filter; 0: 0.01 */
    uint64_t max_bytes; /* hold no more than this; 0: no limit. An opened filter
                           never holds more than a few times its file */
    const bly_mem *mem; /* as in bly_spec */
} bly_foreign_spec;

/* Open the filter in bytes. The filter belongs to the caller and borrows the
 * bytes until bly_foreign_free(). spec may be NULL. BLY_EFORMAT if the bytes
 * have no known format or are damaged. BLY_EINVAL if they could have several
 * formats, or if an option is missing or wrong. */
static inline bly_status bly_foreign_open(const bly_foreign_spec *spec,
                                          const void *bytes, size_t nbytes,
                                          bly_foreign **out);

/* Make an empty filter, which belongs to the caller. If items is 0, keys are
 * kept as hashes until bly_foreign_write(), and the filter can be asked only
 * after that. BLY_ENOTSUP for a format that cannot be written. */
static inline bly_status bly_foreign_new(const bly_foreign_spec *spec,
                                         bly_foreign **out);

/* Make a new filter with the bits of an opened one, if hash and positions agree
 * and only the encoding differs. Otherwise the keys would be needed:
 * BLY_EUNFIT, with the reason in bly_error(). The new filter belongs to the
 * caller and does not need `from` any more. */
static inline bly_status bly_foreign_repack(const bly_foreign_spec *spec,
                                            const bly_foreign *from,
                                            bly_foreign **out);

/* Release f. NULL is allowed. */
void bly_foreign_free(bly_foreign *f);

#define BLY_PART_NAME 128 /* bytes of the name of a part */

/* What a foreign filter, or one part of it, says about itself. */
typedef struct bly_foreign_stats {
    const char *format;
    char name[BLY_PART_NAME]; /* of the part; "" if there is only one */
    size_t nparts;
    uint64_t bits;         /* in the array */
    uint64_t ones;         /* bits that are set */
    uint32_t k;            /* probes per key; 0 if parts differ */
    uint64_t items;        /* according to the file; UINT64_MAX: not stated */
    uint64_t capacity;     /* 0: not stated */
    double fpr_planned;    /* NAN: not stated */
    double items_estimate; /* from its bits; NAN: unknown */
    double fpr_now;        /* from its bits; for several parts, the mean */
    double fill;
    bly_fact facts[BLY_MAX_FACTS];
    size_t nfacts;
} bly_foreign_stats;

/* Describe one part, or, for BLY_WHOLE, all of them together. Counts the
 * bits. */
#define BLY_WHOLE SIZE_MAX
static inline void bly_foreign_stat(const bly_foreign *f, size_t part,
                                    bly_foreign_stats *out);

/* The name of the format, the number of parts, and the name of a part. These do
 * not count bits. */
const char *bly_foreign_format(const bly_foreign *f);
size_t bly_foreign_nparts(const bly_foreign *f);
void bly_foreign_part_name(const bly_foreign *f, size_t part,
                           char name[BLY_PART_NAME]);

/* Which of n keys may be in the filter, as a bitmap. Keys are text, in the form
 * that the option `keys` of the format names (bytes as they are, numbers,
 * hexadecimal). If a key does not have that form, the call fails. *nbad, unless
 * NULL, then becomes the index of that key, and the bitmap means nothing. */
bly_status bly_foreign_has(const bly_foreign *f, const bly_bytes *keys,
                           size_t n, uint64_t *bitmap, size_t *nbad);

/* Which parts a key may be in, as a bitmap of nparts bits. Fails as
 * bly_foreign_has() does. */
bly_status bly_foreign_where(const bly_foreign *f, bly_bytes key,
                             uint64_t *bitmap);

/* Add keys to a filter that was made or is being edited; BLY_EREADONLY for one
 * that was only opened. Stops at the first key that fails; *ndone, unless NULL,
 * becomes the number added. fresh, unless NULL, becomes a bitmap of the keys
 * that were not there before, as far as the filter can tell; while its size is
 * not known, all keys count as new. Filters that grow do so within their limit:
 * BLY_ENOMEM, BLY_ERANGE past the limit, BLY_EFULL where their own rules
 * end. */
bly_status bly_foreign_add(bly_foreign *f, const bly_bytes *keys, size_t n,
                           uint64_t *fresh, size_t *ndone) BLY_MUST_CHECK;

/* The same, but only for keys that are not there: a filter that holds a key as
 * often as it was added does not get the key twice. */
bly_status bly_foreign_add_new(bly_foreign *f, const bly_bytes *keys, size_t n,
                               uint64_t *fresh, size_t *ndone) BLY_MUST_CHECK;

/* Write the filter piece by piece, as bly_write() does. If items was 0, the
 * first call fixes its size. */
bly_status bly_foreign_write(bly_foreign *f, bly_put *put,
                             void *ctx) BLY_MUST_CHECK;

/* Write it to path, atomically, as bly_save() does. */
bly_status bly_foreign_save(bly_foreign *f, const char *path) BLY_MUST_CHECK;

/* ------------------------------------ filters of other systems that change */

/* Some formats belong to filters that live on in a server (BLY_FORMAT_ADD). A
 * filter of such a format, whether it was made, edited, started or restored,
 * behaves as it would there, to the last bit: it takes keys and grows, removes
 * keys if it can, and is saved and loaded in pieces. A call that fails changes
 * nothing. Any number of threads may ask; a writer must be alone. */

/* Make a filter that can change from bytes, which are not needed afterwards.
 * Fails as bly_foreign_open() does, and with BLY_ENOTSUP for a format that
 * cannot change. */
static inline bly_status bly_foreign_edit(const bly_foreign_spec *spec,
                                          const void *bytes, size_t nbytes,
                                          bly_foreign **out);

/* Change the foreign filter in path, as bly_update() changes one of ours. how
 * may be NULL; only its wait is used. */
typedef bly_status bly_foreign_change(bly_foreign *f, void *ctx);
static inline bly_status bly_foreign_update(const char *path,
                                            const bly_access *how,
                                            const bly_foreign_spec *spec,
                                            bly_foreign_change *change,
                                            void *ctx) BLY_MUST_CHECK;

/* For a caller that knows which key it will ask f for, or add to it, and has
 * something else to do first: bly_foreign_expect() loads the memory for that
 * key in the meantime. A note says where f has its array, and does not refer to
 * f itself: after f has changed or gone, the note is useless but harmless. For
 * formats and sizes that gain nothing, the note is empty. */
typedef struct bly_foreign_note {
    const unsigned char *array;
    uint64_t range, inverse;
    uint32_t nplaces; /* of a key; 0: the note is empty */
    uint32_t row;
} bly_foreign_note;
void bly_foreign_note_take(const bly_foreign *f, bly_foreign_note *out);
void bly_foreign_expect(const bly_foreign_note *note, bly_bytes key);

/* Where the memory of f comes from. */
const bly_mem *bly_foreign_memory(const bly_foreign *f);

/* Make a copy, which belongs to the caller. */
bly_status bly_foreign_copy(const bly_foreign *f, bly_foreign **out);

/* Remove one occurrence of a key. BLY_EABSENT if it is not in the filter.
 * Removing a key that was never added may remove another one. */
bly_status bly_foreign_remove(bly_foreign *f, bly_bytes key);

/* How often each of n keys may be in the filter. */
bly_status bly_foreign_count(const bly_foreign *f, const bly_bytes *keys,
                             size_t n, uint64_t *counts);

/* Add by[i] to the count of each of n keys (by NULL: 1); now[i] becomes the new
 * count. For "rediscms" and "redistopk", the sketches of CMS.* and TOPK.*, with
 * the arithmetic of RedisBloom. They have no file format, and can only be made
 * and restored. If the call fails, keys before the one that failed have been
 * raised; bly_foreign_increase_each() says which. */
bly_status bly_foreign_increase(bly_foreign *f, const bly_bytes *keys,
                                const uint64_t *by, size_t n,
                                uint64_t *now) BLY_MUST_CHECK;

/* The same, one by one. each() is told the index of a key, its new count, and
 * which key it has pushed off the list (ptr NULL: none), whose bytes are valid
 * until each() returns. each() must not change f. If the call fails, the keys
 * that each() was told about have been raised. */
typedef void bly_foreign_raised(void *ctx, size_t i, uint64_t now,
                                bly_bytes left);
bly_status bly_foreign_increase_each(bly_foreign *f, const bly_bytes *keys,
                                     const uint64_t *by, size_t n,
                                     bly_foreign_raised *each,
                                     void *ctx) BLY_MUST_CHECK;

/* Make f the weighted sum of n sketches; f may be one of them. BLY_EUNFIT if
 * their dimensions differ, BLY_ERANGE if a sum does not fit into a counter. */
bly_status bly_foreign_sum(bly_foreign *f, const bly_foreign *const *from,
                           const int64_t *weights, size_t n) BLY_MUST_CHECK;

/* The key that the last increase pushed off the list of f, valid until the next
 * increase; false if there was none. */
bool bly_foreign_left(const bly_foreign *f, bly_bytes *out);

/* List the keys, heaviest first, if there is room for all of them. Returns how
 * many there are. The keys belong to f and are valid until it changes. */
typedef struct bly_foreign_item {
    bly_bytes key;
    uint64_t count;
} bly_foreign_item;
size_t bly_foreign_list(const bly_foreign *f, bly_foreign_item *items,
                        size_t room);

/* Use fewer parts, if a filter has more than its items need. */
bly_status bly_foreign_compact(bly_foreign *f);

/* A number that differs whenever f has changed since the last call: while it
 * stays the same, there is nothing new to save or announce. It does not notice
 * what is written to the memory that bly_foreign_chunk() gives. */
uint64_t bly_foreign_changes(const bly_foreign *f);

/* Set how many bytes f may hold from now on; 0: no limit. A filter that already
 * holds more does not grow. */
void bly_foreign_limit(bly_foreign *f, uint64_t max_bytes);

/* How many items, up to `to`, a filter made from spec could hold after growing
 * within spec->max_bytes. If that is fewer than `to`, *holds is still set, and
 * the call fails as bly_foreign_add() would. */
static inline bly_status bly_foreign_scales(const bly_foreign_spec *spec,
                                            uint64_t to, uint64_t *holds);

/* The sizes of a part, or of all parts together (BLY_WHOLE; k and fpr_planned
 * are then those of the last part). Does not count bits. */
typedef struct bly_foreign_sizes {
    size_t nparts;
    uint64_t nbytes; /* of its arrays */
    uint32_t k;
    uint64_t bits, items, capacity;
    double fpr_planned;
    uint64_t counted; /* bytes as its own system counts them, with structures:
                         of the whole filter, to which limits apply, or what
                         it grew by when it got this part */
} bly_foreign_sizes;
static inline void bly_foreign_size(const bly_foreign *f, size_t part,
                                    bly_foreign_sizes *out);

/* Get one of the facts of bly_foreign_stats by name; false if f has none of
 * that name. */
bool bly_foreign_fact(const bly_foreign *f, const char *name, bly_fact *out);

/* In pieces: the file of such a filter is a head and the bytes of its arrays.
 *
 * Returns the length of the head, and writes it to `to` if there is room for
 * it; 0 for a format that has none. */
size_t bly_foreign_head(const bly_foreign *f, void *to, size_t room);

/* Make a filter with this head and empty arrays. Fails as bly_foreign_edit()
 * does. */
static inline bly_status bly_foreign_start(const bly_foreign_spec *spec,
                                           const void *head, size_t nhead,
                                           bly_foreign **out);

/* Get the bytes of the arrays from `offset` on: *at becomes their address, and
 * the result is their number, at most `most` and up to the end of one array; 0
 * past the last array. A caller that may change f may write to them. */
size_t bly_foreign_chunk(const bly_foreign *f, uint64_t offset, size_t most,
                         unsigned char **at);

/* In a record: the numbers and strings that the original system itself stores
 * for such a filter, one after another, whatever their encoding (RDB files of
 * Redis). */
typedef struct bly_foreign_record { /* final */
    void (*put_uint)(void *ctx, uint64_t x);
    void (*put_real)(void *ctx, double x);
    void (*put_bytes)(void *ctx, const void *bytes, size_t n);

    /* For restoring. get_bytes() returns memory from the allocator of spec. */
    uint64_t (*get_uint)(void *ctx);
    double (*get_real)(void *ctx);
    void *(*get_bytes)(void *ctx, size_t *n);
    bool (*failed)(void *ctx); /* has one of these failed? */
    const bly_mem *mem; /* for storing: memory for what is assembled first */
    void *ctx;
} bly_foreign_record;

/* Store f in a record; restore a filter from a record of that version.
 * BLY_EFORMAT if the record is damaged, or its version is not known. */
bly_status bly_foreign_store(const bly_foreign *f,
                             const bly_foreign_record *to);
static inline bly_status bly_foreign_restore(const bly_foreign_spec *spec,
                                             unsigned version,
                                             const bly_foreign_record *from,
                                             bly_foreign **out);

/* ------------------------------------------------- sizes of structs */

/* What is declared `static inline` above: each function passes the size of a
 * struct, as "Versions" says, to the function of the library whose name ends in
 * _sized. */
BLY_SIZED(bool, bly_format_at, bly_format_info,
          (size_t index, bly_format_info *out), (index, out));
BLY_SIZED(bool, bly_format_named, bly_format_info,
          (const char *name, bly_format_info *out), (name, out));
BLY_SIZED(bool, bly_format_of, bly_format_info,
          (const void *bytes, size_t nbytes, bly_format_info *out),
          (bytes, nbytes, out));
BLY_SIZED(bly_status, bly_foreign_open, bly_foreign_spec,
          (const bly_foreign_spec *spec, const void *bytes, size_t nbytes,
           bly_foreign **out),
          (spec, bytes, nbytes, out));
BLY_SIZED(bly_status, bly_foreign_new, bly_foreign_spec,
          (const bly_foreign_spec *spec, bly_foreign **out), (spec, out));
BLY_SIZED(bly_status, bly_foreign_repack, bly_foreign_spec,
          (const bly_foreign_spec *spec, const bly_foreign *from,
           bly_foreign **out),
          (spec, from, out));
BLY_SIZED(void, bly_foreign_stat, bly_foreign_stats,
          (const bly_foreign *f, size_t part, bly_foreign_stats *out),
          (f, part, out));
BLY_SIZED(bly_status, bly_foreign_edit, bly_foreign_spec,
          (const bly_foreign_spec *spec, const void *bytes, size_t nbytes,
           bly_foreign **out),
          (spec, bytes, nbytes, out));
BLY_SIZED(bly_status, bly_foreign_scales, bly_foreign_spec,
          (const bly_foreign_spec *spec, uint64_t to, uint64_t *holds),
          (spec, to, holds));
BLY_SIZED(void, bly_foreign_size, bly_foreign_sizes,
          (const bly_foreign *f, size_t part, bly_foreign_sizes *out),
          (f, part, out));
BLY_SIZED(bly_status, bly_foreign_start, bly_foreign_spec,
          (const bly_foreign_spec *spec, const void *head, size_t nhead,
           bly_foreign **out),
          (spec, head, nhead, out));
BLY_SIZED(bly_status, bly_foreign_restore, bly_foreign_spec,
          (const bly_foreign_spec *spec, unsigned version,
           const bly_foreign_record *from, bly_foreign **out),
          (spec, version, from, out));
bly_status bly_foreign_update_sized(const char *path, const bly_access *how,
                                    size_t how_size,
                                    const bly_foreign_spec *spec,
                                    size_t spec_size,
                                    bly_foreign_change *change, void *ctx);
static inline bly_status bly_foreign_update(const char *path,
                                            const bly_access *how,
                                            const bly_foreign_spec *spec,
                                            bly_foreign_change *change,
                                            void *ctx)
{
    return bly_foreign_update_sized(path, how, sizeof *how, spec, sizeof *spec,
                                    change, ctx);
}

BLY_END_DECLS
#endif
