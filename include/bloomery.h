/*
 * bloomery.h - the Bloom-filter family, under one interface
 *
 * A filter answers "is this key in the set?" in a few bits a key. "No" is
 * certain; "maybe" is wrong with a small, chosen probability. Kinds differ in
 * what else they can do: remove, count, carry values, grow.
 *
 *     bly_filter *f;
 *     bly_spec spec = { .items = 1000000, .fpr = 0.01 };
 *     if (bly_new(&spec, &f))
 *         errx(2, "%s", bly_error());
 *     bly_add(f, "swordfish", 9);
 *     if (bly_has(f, "swordfish", 9))
 *         puts("maybe");
 *     bly_free(f);
 *
 * Failing. What can fail returns a bly_status; BLY_OK is 0. A call that fails
 * changes nothing (a batch says how far it came), and bly_error() then says
 * what was wrong and what would be right. The library never prints, exits,
 * aborts, or sets errno on purpose. A pointer that is NULL and must not be is
 * BLY_EINVAL; an array of no elements may be NULL.
 *
 * Threads. Any number of threads may read a filter at once; a writer must be
 * alone. With .shared, which kinds with the ability SHARE take, any number of
 * threads may add, increase, ask, count and get together; everything else
 * still needs the filter alone. Different filters are independent.
 *
 * Keys. A key is bytes, NUL and emptiness included; it is hashed once to 64
 * bits and a filter sees only the hash. Callers that have a good 64-bit hash
 * hand it over and skip that step. Two keys of one hash are one key.
 *
 * Batches are the fast path: they overlap the cache misses of many keys. The
 * answer of a batch is a bitmap, bit i % 64 of word i / 64 for key i, in
 * BLY_BITMAP_WORDS(n) words; bits past n are zero.
 */
#ifndef BLOOMERY_H
#define BLOOMERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default) /* all that is declared from here on */
#endif

#define BLY_VERSION_MAJOR 0
#define BLY_VERSION_MINOR 1
#define BLY_VERSION_PATCH 0

/* The version of the library that is running, "0.1.0". */
const char *bly_version(void);

/* What code runs on this processor, of what the library has several variants
 * of: the variant, "avx512" or "portable" for instance, of job i, whose name
 * *job becomes. NULL past the last. */
const char *bly_cpu_row(unsigned i, const char **job);

/* The bytes of memory that this process may use: the machine's, or what its
 * control group (a container's, for instance) allows if that is less. */
uint64_t bly_memory_limit(void);

/* ------------------------------------------------------------- statuses */

/* Every way a call can fail: name, then message. */
#define BLY_STATUSES(X)                                   \
    X(OK, "no error")                                     \
    X(EINVAL, "argument out of range")                    \
    X(ENOMEM, "out of memory")                            \
    X(ERANGE, "size or count past what can be held")      \
    X(EFORMAT, "not a filter, or damaged")                \
    X(EUNFIT, "filters differ in kind, shape or hash")    \
    X(ENOTSUP, "this kind has no such operation")         \
    X(EFULL, "the filter is full")                        \
    X(EABSENT, "the key is not in the filter")            \
    X(EREFUSED, "the key cannot be removed")              \
    X(EREADONLY, "the filter is mapped read-only")        \
    X(ESECRET, "the secret is missing or is another one") \
    X(EIO, "input or output failed")                      \
    X(EBUSY, "another process is changing the file")

typedef enum bly_status {
#define BLY_STATUS_ROW_(name, text) BLY_##name,
    BLY_STATUSES(BLY_STATUS_ROW_)
#undef BLY_STATUS_ROW_
        BLY_STATUS_COUNT_
} bly_status;

/* The message of a status, for example "out of memory". Never NULL. */
const char *bly_status_text(bly_status status);

/* What went wrong in the last call that failed in this thread, in one line
 * without a final dot or newline: names the argument or file, and says what
 * would be right. Valid until the next failing call of the thread; never
 * NULL. A call that succeeds does not clear it. */
const char *bly_error(void);

/* --------------------------------------------------------------- memory */

/* Where memory comes from. alloc may return any alignment of malloc's kind
 * and NULL when there is none; release gets the size that was asked for. Both
 * may be called by several threads at once where a builder or a shared filter
 * is used so, and must not throw. */
typedef struct bly_mem {
    void *(*alloc)(void *ctx, size_t nbytes);
    void (*release)(void *ctx, void *ptr, size_t nbytes);
    void *ctx;
} bly_mem;

/* ---------------------------------------------------------------- kinds */

/* A filter. It has one owner, who frees it. */
typedef struct bly_filter bly_filter;

typedef enum bly_param_type {
    BLY_UINT,  /* a whole number */
    BLY_REAL,  /* a double */
    BLY_CHOICE /* one of several words, stored as its number from 0 */
} bly_param_type;

/* A parameter of a kind: part of the shape of every filter of that kind. The
 * ones a caller may set are the kind's options. */
typedef struct bly_param {
    const char *name;
    bly_param_type type;
    bool settable;  /* an option: may be given in bly_spec.options */
    bool automatic; /* when not given, plan chooses; `def` is unused */
    bool planning;  /* steers plan and is not kept: no part of the shape */
    double def, min, max; /* default and range; for a choice, numbers */
    const char *const
        *choices; /* the words, NULL at the end; BLY_CHOICE only */
    const char *help;
} bly_param;

/* What a kind can do, one bit each: its number, the function of a kind that
 * does it, its word (bly_can_name()), its meaning (bly_can_help()). */
#define BLY_ABILITIES(X)                                                 \
    X(ADD, add, "add", "take keys one after another")                    \
    X(BUILD, build, "build", "be built at once from all its keys")       \
    X(HAS, has, "has", "say whether a key may be in it")                 \
    X(SHARE, add_shared, "share", "take keys from many threads at once") \
    X(REMOVE, remove, "remove", "take a key out again")                  \
    X(INCREASE, increase, "increase", "add a key several times at once") \
    X(COUNT, count, "count", "estimate how often a key was added")       \
    X(GET, get, "get", "give the value stored for a key")                \
    X(SET, set, "set", "change the value of a key")                      \
    X(MERGE, merge, "merge", "become the union with another")            \
    X(INTERSECT, intersect, "intersect",                                 \
      "become the intersection with another")                            \
    X(COMPARE, compare, "compare", "estimate union and intersection")    \
    X(FOLD, fold, "fold", "give a filter of half its memory")            \
    X(RESIZE, resize, "resize",                                          \
      "give one of another capacity without the keys")                   \
    X(CONVERT, convert, "convert", "give a filter of another kind")      \
    X(TICK, tick, "tick", "forget with time")

enum {
#define BLY_ABILITY_BIT_(NAME, slot, word, text) BLY_ABILITY_##NAME,
    BLY_ABILITIES(BLY_ABILITY_BIT_)
#undef BLY_ABILITY_BIT_
        BLY_ABILITY_COUNT_
};
#define BLY_CAN(NAME) (UINT32_C(1) << BLY_ABILITY_##NAME)

/* What is unusual about a kind, one bit each. */
#define BLY_SELF_SIZED 1u /* its options may replace items, fpr and bits */
#define BLY_LIKELY_NO 2u  /* its "no" may be wrong too, at a known rate */
#define BLY_ORDERED 4u    /* the same keys in another order make another one */
#define BLY_CODED 8u      /* made to be sent: coded from the beginning */
#define BLY_DIRECTED                                        \
    16u /* a merged filter is a neighbour: its keys are one \
           step away, and who merges whom matters */

typedef struct bly_kind_info {
    const char *name;    /* "blocked" */
    const char *summary; /* one line */
    uint32_t id;         /* on disk */
    uint32_t can;        /* BLY_CAN(ADD) | BLY_CAN(HAS) | ... */
    uint32_t traits;     /* BLY_SELF_SIZED | ... */
    const bly_param *params;
    size_t nparams;
} bly_kind_info;

/* The kind at index (0 is the default kind), of that name (NULL: the default
 * kind), or of a filter.
 * False, and *out unchanged, where there is none. */
bool bly_kind_at(size_t index, bly_kind_info *out);
bool bly_kind_named(const char *name, bly_kind_info *out);
void bly_kind_of(const bly_filter *f, bly_kind_info *out);

/* The word for ability number bit ("add", "has", ...), and what it means;
 * NULL past the last. */
const char *bly_can_name(unsigned bit);
const char *bly_can_help(unsigned bit);

/* --------------------------------------------------------------- making */

#define BLY_SECRET_BYTES 16

/* An option by name, its value as text: { "layout", "partitioned" }. Numbers
 * take suffixes as in bly_parse_count() and bly_parse_real(). */
typedef struct bly_option {
    const char *name;
    const char *value;
} bly_option;

/* What the caller wants. Zero in any field means "choose for me". Of items,
 * fpr and bits give two, or items alone, for a rate of 0.01; all three are an
 * error, since they would contradict each other. Some kinds are sized by
 * options of their own instead (BLY_SELF_SIZED). */
typedef struct bly_spec {
    const char *kind;            /* NULL: the default kind */
    uint64_t items;              /* capacity: how many keys will be added */
    double fpr;                  /* false positive rate at items, in (0,1) */
    uint64_t bits;               /* memory for the filter; of BLY_CODED kinds,
                                    what it may take when it is sent */
    uint64_t seed;               /* filters combine only if seeds agree; 0 is
                                    a seed like others, never random */
    const unsigned char *secret; /* BLY_SECRET_BYTES: keyed with SipHash-1-3,
                                    for keys that an adversary may choose.
                                    Never stored; excludes seed */
    bool shared;                 /* many threads may add at once */
    const bly_option *options;   /* of the kind */
    size_t noptions;
    uint64_t max_bytes; /* fail, or stop growing, rather than hold more */
    const char *spill;  /* builders only: a folder for the hashes of keys that
                           max_bytes do not hold; NULL: none */
    const bly_mem *mem; /* copied; its ctx must outlive the filter; NULL:
                           the system's, with huge pages where they pay */
} bly_spec;

/* One named value that plan chose or a filter knows of itself. */
typedef struct bly_fact {
    const char *name; /* "k", "layout", "rule_b_bits" */
    bly_param_type type;
    uint64_t uint;    /* BLY_UINT, and the number of a BLY_CHOICE */
    double real;      /* BLY_REAL, and a BLY_UINT once more */
    const char *word; /* BLY_CHOICE: the word; else NULL */
    bool param;       /* part of the shape; else derived from it */
} bly_fact;

#define BLY_MAX_PARAMS 16
#define BLY_MAX_FACTS 40

typedef struct bly_prediction {
    const char *kind;
    uint64_t items;      /* capacity; 0: none was given, and a kind that is
                            BLY_SELF_SIZED needs none */
    double fpr;          /* rate at capacity, by the kind's exact formula;
                            NAN where there is no such thing */
    uint64_t bits;       /* what the kind works on; of BLY_CODED kinds, what
                            it takes when it is sent */
    uint64_t bytes;      /* memory that takes */
    double bits_per_key; /* bits / items, or NAN */
    size_t nfacts;
    bly_fact facts[BLY_MAX_FACTS];
} bly_prediction;

/* Choose sizes for spec and predict what they give, without making anything.
 * Static kinds are planned like the others. */
bly_status bly_plan(const bly_spec *spec, bly_prediction *out);

/* Make an empty filter. *out is the caller's until bly_free(), or NULL. A kind
 * that must be built from all its keys at once is made by a bly_builder. */
bly_status bly_new(const bly_spec *spec, bly_filter **out);

/* Release f. NULL is allowed. */
void bly_free(bly_filter *f);

/* An independent, writable copy of f, from the same memory source. */
bly_status bly_clone(const bly_filter *f, bly_filter **out);

/* Make f what `from` is, and release `from`: for a filter that was made from f
 * and is to take its place. BLY_EINVAL where they come from different memory
 * sources, or are one. */
bly_status bly_become(bly_filter *f, bly_filter *from);

/* Let a memory source that defragments move what it gave for f: `move` gets a
 * pointer of its alloc and answers where these bytes are from now on, or NULL
 * where they stay. f itself may move: the result is where it is. */
bly_filter *bly_move(bly_filter *f, void *(*move)(void *ctx, void *at),
                     void *ctx);

/* --------------------------------------------------------------- hashing */

/* How a filter turns bytes into its 64-bit hash. */
typedef struct bly_hasher {
    uint32_t id;        /* BLY_HASH_XXH3 or BLY_HASH_SIPHASH13 */
    uint32_t reserved;  /* zero */
    uint64_t seed;      /* BLY_HASH_XXH3 */
    uint64_t secret[2]; /* BLY_HASH_SIPHASH13 */
} bly_hasher;

#define BLY_HASH_XXH3 1      /* 64 bits, with seed */
#define BLY_HASH_SIPHASH13 3 /* 128-bit secret, 64 bits out */

/* The hasher that a filter made from spec would have. */
bly_status bly_hasher_for(const bly_spec *spec, bly_hasher *out);

/* The hasher of f: bly_has(f, k, n) asks for bly_hash(bly_hasher_of(f), k, n).
 * NULL where f was opened blind. */
const bly_hasher *bly_hasher_of(const bly_filter *f);

/* A key: bytes that are borrowed for the call. */
typedef struct bly_bytes {
    const void *ptr;
    size_t len;
} bly_bytes;

/* Keys one behind the other in a buffer: key i is the bytes from offset i up to
 * offset i + 1, so that n keys have n + 1 offsets, none less than the one
 * before. Columns of strings are so in Arrow, with offsets of 32 or 64 bits;
 * the other pointer is NULL. Borrowed for the call. */
typedef struct bly_column {
    const void *bytes;
    const uint32_t *offsets;
    const uint64_t *wide_offsets;
} bly_column;

/* The hash of one key, of many, of a column, and of many integers. An integer
 * hashes as its 8 little-endian bytes do, only faster. */
uint64_t bly_hash(const bly_hasher *hs, const void *key, size_t len);
void bly_hash_keys(const bly_hasher *hs, const bly_bytes *keys, size_t n,
                   uint64_t *hashes);
void bly_hash_column(const bly_hasher *hs, const bly_column *keys, size_t n,
                     uint64_t *hashes);
void bly_hash_ints(const bly_hasher *hs, const uint64_t *ints, size_t n,
                   uint64_t *hashes);

/* ------------------------------------------------------------ using one */

#define BLY_BITMAP_WORDS(n) (((size_t)(n) + 63) / 64)

/* Add a key. Adding one that is there already is allowed. */
bly_status bly_add(bly_filter *f, const void *key, size_t len);

/* False only if the key was never added, or was removed or forgotten since.
 * Cannot fail: a kind without the ability says true, which is "maybe". */
bool bly_has(const bly_filter *f, const void *key, size_t len);

/* Take out a key that was added before. BLY_EABSENT proves that it is not in
 * the filter; BLY_EREFUSED says that it may be, but cannot be taken out
 * without harm to others. Removing a key that was never added but is a false
 * positive cannot be noticed and harms another key: do not. */
bly_status bly_remove(bly_filter *f, const void *key, size_t len);

/* The same for a key whose hash the caller has. */
bly_status bly_add_hash(bly_filter *f, uint64_t hash);
bool bly_has_hash(const bly_filter *f, uint64_t hash);

/* The same for n hashes, keys, keys of a column or integers at once. Input and
 * result arrays must not overlap.
 *
 * Adding stops at the first key that fails. *ndone, unless NULL, is the number
 * of keys that were added before it: n where the status is BLY_OK. fresh,
 * unless NULL, is a bitmap of those added that were not in the filter before,
 * as far as it can tell (a false positive counts as there already). */
bly_status bly_add_hashes(bly_filter *f, const uint64_t *hashes, size_t n,
                          uint64_t *fresh, size_t *ndone);
bly_status bly_add_keys(bly_filter *f, const bly_bytes *keys, size_t n,
                        uint64_t *fresh, size_t *ndone);
bly_status bly_add_column(bly_filter *f, const bly_column *keys, size_t n,
                          uint64_t *fresh, size_t *ndone);
bly_status bly_add_ints(bly_filter *f, const uint64_t *ints, size_t n,
                        uint64_t *fresh, size_t *ndone);
void bly_has_hashes(const bly_filter *f, const uint64_t *hashes, size_t n,
                    uint64_t *maybe);
void bly_has_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                  uint64_t *maybe);
void bly_has_column(const bly_filter *f, const bly_column *keys, size_t n,
                    uint64_t *maybe);
void bly_has_ints(const bly_filter *f, const uint64_t *ints, size_t n,
                  uint64_t *maybe);

/* What bloomery_inline.h needs to ask a blocked filter without a call. */
typedef struct bly_blocked {
    const uint64_t *words; /* blocks of eight, little-endian */
    uint64_t nblocks;
    uint64_t flip; /* the seed, as bly_int_hash() takes it */
    uint32_t k;
} bly_blocked;

/* A view of f, valid until f is freed; keys that are added later are seen
 * through it too. False, and *out unchanged, where f is not of the kind
 * "blocked", is shared by many writers, or is keyed. A mapped file that is
 * checked block by block is checked whole first: false where it is damaged, and
 * bly_damage() tells. */
bool bly_blocked_view(const bly_filter *f, bly_blocked *out);

/* Remove n hashes. each, unless NULL, gets the status of every one of them;
 * the result is BLY_OK if all were removed, else the first refusal. Those
 * that are refused do not keep the others from being removed. */
bly_status bly_remove_hashes(bly_filter *f, const uint64_t *hashes, size_t n,
                             bly_status *each);

/* Add hash i by[i] times. Stops like bly_add_hashes(). */
bly_status bly_increase_hashes(bly_filter *f, const uint64_t *hashes,
                               const uint64_t *by, size_t n, size_t *ndone);

/* How often each was added, an estimate that is never too low unless the
 * kind's page says otherwise. UINT64_MAX stands for "past the ceiling". */
bly_status bly_count_hashes(const bly_filter *f, const uint64_t *hashes,
                            size_t n, uint64_t *counts);

/* The values stored for n hashes; there is one where the bit of present is
 * set, and elsewhere 0. bly_set_hash() changes one: BLY_EABSENT where the key
 * is not known, BLY_ERANGE where the value does not fit, BLY_ENOTSUP where
 * this filter's values are fixed. A key that is not known but is a false
 * positive cannot be noticed, and another gets its value: do not set it. */
bly_status bly_get_hashes(const bly_filter *f, const uint64_t *hashes, size_t n,
                          uint64_t *values, uint64_t *present);
bly_status bly_set_hash(bly_filter *f, uint64_t hash, uint64_t value);

/* Tell a kind that forgets what time it is (seconds, from any origin that
 * the caller keeps to). The first tick sets the origin; a clock that goes
 * backwards changes nothing. Answers are as of the last tick, so a filter
 * that nobody ticks, a mapped one for instance, forgets nothing by time. */
bly_status bly_tick(bly_filter *f, uint64_t now);

/* -------------------------------------------------------------- building */

/* Makes a filter of any kind from all its keys, in as many threads as call
 * it. Where spec has items (or bits and fpr), kinds that add take the keys as
 * they come. Otherwise the hashes are kept, 8 bytes each, and the filter is
 * sized by the number of distinct ones: counted exactly up to a million,
 * estimated within 2 % above. Threads that add at once have filters of their
 * own where bits are all that adding sets, 256 MiB of them at most and none
 * under a bound; the result is the same for any number of threads.
 *
 * With spec->spill and a bound, max_bytes, hashes that would pass it go to a
 * temporary file in that folder, which has no name and is gone with the
 * builder; the filter is then made in several passes over it, and is the same
 * as without. BLY_EIO where the file cannot be written or read, BLY_ERANGE
 * where the bound is too low for the filter and one part of the keys beside it,
 * or, without a folder, for the hashes.
 */
typedef struct bly_builder bly_builder;

/* *out is the caller's until bly_builder_free(), or NULL. */
bly_status bly_builder_new(const bly_spec *spec, bly_builder **out);

/* The hasher to use for the keys. Valid as long as the builder. */
const bly_hasher *bly_builder_hasher(const bly_builder *b);

/* Take n more keys; they are borrowed for the call. values is given exactly
 * where the kind is built and has GET; a key that comes with two different ones
 * makes bly_builder_finish() fail with BLY_EINVAL. May be called by many
 * threads at once. After a failure it may only be freed, and finishing fails
 * too. */
bly_status bly_builder_add(bly_builder *b, const uint64_t *hashes,
                           const uint64_t *values, size_t n);

/* The filter of all keys taken, built with up to nthreads threads (0: as many
 * as there are processors). Once only; the builder then holds nothing, also
 * when the call fails, and still wants bly_builder_free(). */
bly_status bly_builder_finish(bly_builder *b, unsigned nthreads,
                              bly_filter **out);

/* After that: is the capacity an estimate of how many different keys there
 * were? It is right to 2 %. False where the caller said it, where there were up
 * to a million keys, and for kinds that look at every key. */
bool bly_builder_estimated(const bly_builder *b);

/* Release b and what it still holds. NULL is allowed. */
void bly_builder_free(bly_builder *b);

/* --------------------------------------------------------------- knowing */

typedef struct bly_stats {
    const char *kind;
    uint64_t capacity;      /* items it was planned for */
    uint64_t items_added;   /* additions that changed it; after a build or a
                               merge, the distinct keys: a hint, no more */
    double items_estimate;  /* distinct keys, from its contents; INFINITY if
                               saturated, NAN if it cannot tell */
    double items_sd;        /* standard deviation of that estimate */
    double fill;            /* share of cells in use, 0 to 1 */
    double fpr_now;         /* rate with its present contents */
    double fpr_at_capacity; /* rate that was planned */
    uint64_t bits;          /* as in bly_prediction, layers included */
    uint64_t bytes;         /* memory held */
    uint64_t seed;
    uint32_t hash_id;
    uint32_t layers;
    bool keyed, shared, mapped;
    bool coded;      /* bly_set_coded() */
    uint32_t format; /* version of the file that it was read from, or is mapped
                        from: 2 has a sum for each block; 0: from none */
    size_t nfacts;
    bly_fact facts[BLY_MAX_FACTS];
} bly_stats;

/* Everything f knows of itself. Reads all of it. */
void bly_stat(const bly_filter *f, bly_stats *out);

/* The same without reading the contents: items_estimate, items_sd, fill and
 * fpr_now are NAN. Takes no longer for a large filter than for a small one. */
void bly_peek(const bly_filter *f, bly_stats *out);

/* The filters that f is made of, from 0; NULL past the last. Borrowed until f
 * changes. */
const bly_filter *bly_layer(const bly_filter *f, uint32_t i);

/* -------------------------------------------------------------- combining */

/* Make dst the union, or the intersection, of dst and src, which must be two
 * filters that agree in kind, shape and hash, else BLY_EUNFIT. For kinds of
 * bits the union is exactly the filter of both sets; counting kinds add up,
 * never below the truth. An intersection holds every key of both sets, and
 * some more. */
bly_status bly_merge(bly_filter *dst, const bly_filter *src);
bly_status bly_intersect(bly_filter *dst, const bly_filter *src);

/* Whether two filters answer alike: same kind, shape, hash and contents. */
bool bly_equal(const bly_filter *a, const bly_filter *b);

typedef struct bly_likeness {
    double a, b, a_sd, b_sd; /* distinct keys of each */
    double both, both_sd;    /* of the union */
    double common;           /* of the intersection, never below zero */
    double common_sd;
    double jaccard;      /* common / both */
    double containment;  /* common / min(a, b) */
    double shared_cells; /* cells set in both / the lesser one's cells */
    double chance_cells; /* what disjoint sets of these sizes would give */
    double inner;        /* sum over keys of the count in a times that in b,
                            never too low; NAN unless the kind counts so */
} bly_likeness;

/* Estimate how much two filters of equal kind, shape and hash share. */
bly_status bly_compare(const bly_filter *a, const bly_filter *b,
                       bly_likeness *out);

/* A filter of the same keys in half the memory, where the kind of f can; its
 * rate is that of f with twice the keys in it. BLY_EINVAL where its size is
 * odd: plan with the option `folds`. *out as in bly_new(). */
bly_status bly_fold(const bly_filter *f, bly_filter **out);

/* A filter of spec's kind (ability CONVERT), or where spec names none or the
 * kind of f, of spec's capacity (RESIZE), made from f without the keys. The
 * hash is that of f; spec gives kind, items, fpr, bits, options. */
bly_status bly_convert(const bly_filter *f, const bly_spec *spec,
                       bly_filter **out);

/* ----------------------------------------------------------------- files */

/* Whoever changes or replaces a file holds its lock. While a call waits for
 * another's, it asks this function whether to go on: at once, with ms 0, and
 * then every 50 ms or sooner, with the milliseconds that it has waited. Where
 * the answer is false, the call fails with BLY_EBUSY. So one function limits
 * the wait, tells the user of it, and ends it when a signal came. Without a
 * function a call waits for as long as it takes. */
typedef bool bly_wait(void *ctx, const char *path, uint64_t ms);

/* What bly_map() compares with its checksums, apart from headers. Files of more
 * than 64 MiB have a sum for each block of 64 KiB, unless they were written
 * before there were any (format version 1). */
typedef enum bly_checking {
    BLY_CHECK_BLOCKS, /* each block when a question first depends on it, where
                         the file has sums of blocks; else nothing */
    BLY_CHECK_ALL,    /* everything, before the call returns: bly_verify() */
    BLY_CHECK_NOTHING /* nothing: a damaged file gives wrong answers */
} bly_checking;

/* How to open. NULL, or zero in any field, means the default. */
typedef struct bly_access {
    const unsigned char *secret; /* of a keyed filter */
    bool blind;                  /* open a keyed filter without its secret:
                                    it can be described and combined; keys
                                    given as bytes are refused, or "maybe" */
    bool shared;                 /* as in bly_spec */
    uint64_t max_bytes;          /* as in bly_spec */
    const bly_mem *mem;          /* as in bly_spec */
    bly_wait *wait;              /* bly_update() only: for another's lock */
    void *wait_ctx;
    bly_checking checking; /* by bly_map(); others check everything */
} bly_access;

/* Whether f is written coded: in fewer bytes, near to what its contents are
 * worth (a classic filter of 1 % with half of its keys takes 11 % less, an
 * empty one a thousandth; a full one gains nothing). Answers and memory are the
 * same. What is read from a coded file is coded, a copy is as its original, and
 * bly_update() leaves it as it is. Writing and reading take a few ns a bit,
 * where others take as long as a copy. */
void bly_set_coded(bly_filter *f, bool coded);

/* What the contents of f are worth, in bits: m H(X/m) for X ones among m bits,
 * or for other kinds the entropy of single bytes. No coded payload is shorter
 * that knows nothing of the places; bly_written_bytes() adds headers and a
 * little for learning. Reads all of f. */
double bly_entropy(const bly_filter *f);

/* Write f in the .bly format, piece by piece. put returns false to stop, and
 * the call then fails with BLY_EIO. */
typedef bool bly_put(void *ctx, const void *bytes, size_t nbytes);
bly_status bly_write(const bly_filter *f, bly_put *put, void *ctx);

/* The number of bytes bly_write() will write, and a part of them: nbytes (or
 * as many as there are) from byte `from` on into buf; the number is returned.
 * f must not change from the first part to the last. Where f is coded, each
 * call codes it anew, so ask for large parts. */
uint64_t bly_written_bytes(const bly_filter *f);
size_t bly_write_part(const bly_filter *f, uint64_t from, void *buf,
                      size_t nbytes);

/* Rebuild a filter from bytes that anyone may have written: all of an array,
 * or what get hands over (as many bytes as it is asked for, fewer only at the
 * end; negative for failure). Whatever comes back with BLY_OK is safe to use:
 * there is no second validation step. */
bly_status bly_load(const void *bytes, size_t nbytes, const bly_access *how,
                    bly_filter **out);
typedef int64_t bly_get(void *ctx, void *buf, size_t nbytes);
bly_status bly_read(bly_get *get, void *ctx, const bly_access *how,
                    bly_filter **out);

/* Write f to path: a reader sees the old file or the new one, whole, whatever
 * happens. When the call returns BLY_OK the file is on disk. */
bly_status bly_save(const bly_filter *f, const char *path);

/* The same for bytes of any kind: what write() puts, from `what`. Where it
 * fails, path is as it was. wait may be NULL. */
typedef bly_status bly_writes(const void *what, bly_put *put, void *ctx);
bly_status bly_file_save(const char *path, bly_wait *wait, void *wait_ctx,
                         bly_writes *write, const void *what);

/* The same piece by piece, where the bytes come from somewhere else:
 *
 *     bly_draft *d;
 *     if (bly_draft_new(path, NULL, NULL, &d))
 *         errx(2, "%s", bly_error());
 *     bly_draft_put(d, bytes, nbytes);
 *     if (bly_draft_commit(d))
 *         errx(2, "%s", bly_error());
 *
 * This is the one way in which files are replaced; bly_save() and all the
 * others that take a path to write to go it too. Nothing is at path before the
 * commit, and a process that dies leaves the old file; what it leaves beside
 * it, a file called .NAME.00000?.tmp at most, is removed when the next one
 * writes to path. The lock of the old file is held from the beginning to the
 * end. A symbolic link is followed and stays. The new file gets the permission
 * bits of the old one, never its setuid, setgid and sticky bits or
 * capabilities; its owner and group where the caller may set them; its access
 * control list and its extended attributes (user.*), or the call fails, says
 * what cannot be kept, and changes nothing. A file that is new gets what the
 * umask and its folder give. Another hard link keeps the old contents. Pipes
 * and devices are written to as they are.
 *
 * put() is a bly_put, gathers small pieces, and returns false when a write has
 * failed; commit() then fails too and says why. Both commit() and abandon()
 * release d, which may be NULL. */
typedef struct bly_draft bly_draft;
bly_status bly_draft_new(const char *path, bly_wait *wait, void *wait_ctx,
                         bly_draft **out);
bool bly_draft_put(void *draft, const void *bytes, size_t nbytes);
bly_status bly_draft_commit(bly_draft *d);
void bly_draft_abandon(bly_draft *d);

/* A file in a folder, to write to and to read from, that has no name and is
 * gone when it is closed: for what does not fit into memory. The caller closes
 * it.
 */
bly_status bly_scratch_file(const char *folder, int *fd);

/* Make the folder that path names, unless something is there. What is saved in
 * it then outlives a power cut. */
bly_status bly_folder_make(const char *path);

/* Read the filter in path into memory, and check all of it. */
bly_status bly_open(const char *path, const bly_access *how, bly_filter **out);

/* Ask the filter in path where it lies, without reading it: what is asked for
 * is paged in. The header is checked; of the payload, what how->checking says.
 * By default a file of more than 64 MiB is compared with its checksums block by
 * block, when a question first depends on a block, and other files not at all
 * (bly_verify() does it at once). Of what depends on a damaged block the answer
 * is "maybe", or BLY_EFORMAT from calls that return a status, and bly_damage()
 * tells; a damaged payload that is not compared gives wrong answers. Neither
 * is ever a crash. Read-only. The file
 * must not be cut while it is mapped; bly_save() and bly_update() replace it
 * and never do that. A coded file cannot be asked where it lies: it is decoded
 * into memory, and checked, as by bly_open(); the filter is read-only all the
 * same. */
bly_status bly_map(const char *path, const bly_access *how, bly_filter **out);

/* Make dst the union, or the intersection, of dst and a filter that is read
 * once, from its beginning to its end: a file, which may be a pipe, or what get
 * hands over. Kinds that combine cell by cell take it in as it comes, coded or
 * not, so that no second filter is in memory.
 * What does not fit is refused as by bly_merge(), with dst as it was; where the
 * source turns out to be damaged, or cannot be read to its end, dst may have
 * changed and can only be freed. */
typedef enum bly_combination { BLY_UNION, BLY_INTERSECTION } bly_combination;
bly_status bly_combine_file(bly_filter *dst, bly_combination how,
                            const char *path);
bly_status bly_combine_read(bly_filter *dst, bly_combination how, bly_get *get,
                            void *ctx);

/* Compare the payload of a mapped filter with its checksum: reads all of it. */
bly_status bly_verify(const bly_filter *f);

/* Has a question met a damaged block of a mapped file? BLY_EFORMAT, and which
 * bytes of the file they are, if so; then a "maybe" may stand for "the file
 * does not tell". To be asked after bly_has() and its kin, which cannot fail:
 * after each batch, or at the end. Costs next to nothing. */
bly_status bly_damage(const bly_filter *f);

/* Change the filter in path: take its lock, open it, let change() work on it,
 * save it if that returned BLY_OK, release the lock. Writers queue; readers
 * are not disturbed. change() must neither free f nor keep it; a failure of
 * its own is handed on, and the file stays as it was. */
typedef bly_status bly_change(bly_filter *f, void *ctx);
bly_status bly_update(const char *path, const bly_access *how,
                      bly_change *change, void *ctx);

/* ---------------------------------------------------------------- deltas */

/* What one version of a filter needs to become another one: the bits that
 * flipped, or the new version whole, coded in any case, whichever is shorter.
 * The receiver must have the very version that the delta starts from; with any
 * other the delta is refused and nothing changes.
 *
 *     bly_delta_save(old, new, "today.bld", NULL);    where it is published
 *     bly_delta_read(mine, get_today, &conn, NULL);   where it is followed
 *
 * Where keys go as well as come, keep a kind that can remove, and send that or
 * what bly_convert() makes of it. */

/* What identifies a version: a sum of kind, shape, hash, state and contents,
 * layers included. Equal for filters that bly_equal() calls equal, whatever
 * their capacity and counts, and with a chance of 2^-64 for others. It finds
 * mistakes and no forgers. Reads all of f. */
uint64_t bly_version_id(const bly_filter *f);

typedef struct bly_delta {
    uint64_t from, to;    /* version ids */
    const char *form;     /* "gaps" or "whole" */
    uint64_t bytes;       /* of the delta, all in all */
    uint64_t whole_bytes; /* of the new version as a file that is not coded; 0
                             where the delta alone is known */
    uint64_t bits;        /* of both versions; 0 where their shapes differ */
    uint64_t flips;       /* bits that differ */
    double entropy;       /* bits that no code can do without for these: the
                             sum of m H(d/m) over the arrays; NAN where shapes
                             differ */
} bly_delta;

/* Write what makes `to` of `from`, piece by piece, as bly_write() does; or to
 * path, as bly_save() does. *info unless NULL, says what was written. Two
 * filters of different hash, seed or secret are no versions of one:
 * BLY_EUNFIT. Kind and shape may differ. */
bly_status bly_delta_write(const bly_filter *from, const bly_filter *to,
                           bly_put *put, void *ctx, bly_delta *info);
bly_status bly_delta_save(const bly_filter *from, const bly_filter *to,
                          const char *path, bly_delta *info);

/* Make f the version that a delta leads to, its hints included, from bytes
 * that anyone may have written: an array, or what get hands over, as in
 * bly_load() and bly_read(). BLY_EUNFIT where f is not the version that it
 * starts from, BLY_EFORMAT where it is damaged; f has not changed then. f keeps
 * its secret and its memory source, and is shared or coded as before. */
bly_status bly_delta_apply(bly_filter *f, const void *bytes, size_t nbytes,
                           bly_delta *info);
bly_status bly_delta_read(bly_filter *f, bly_get *get, void *ctx,
                          bly_delta *info);

/* --------------------------------------------------------- heaviest keys */

/* The heaviest keys of a stream, by name: the k keys whose weights add up to
 * most, in memory that does not grow with the stream. Counts are at or below
 * the truth, hardly ever above; those of keys that were heavy from early on are
 * exact. The same additions in the same order give the same list.
 *
 *     bly_topk *t;
 *     bly_topk_item top[10];
 *     if (bly_topk_new(&(bly_topk_spec){ .k = 10 }, &t))
 *         errx(2, "%s", bly_error());
 *     while (read_line(&line, &len))
 *         bly_topk_add(t, line, len, 1);
 *     const size_t n = bly_topk_list(t, top, 10);
 *
 * Ask for more keys than are needed (twice as many, say) where the last places
 * matter: it is there that counts are close.
 *
 * Threads. A list has one user at a time. For a stream that several threads
 * read, make one list a thread, all from one spec, give each its share in
 * batches, and merge them in the end: what merging loses is what keys weigh in
 * parts where they are too light to be noticed. Where all keys of one hash can
 * be sent to one thread, nothing is lost. */
typedef struct bly_topk bly_topk;

/* Zero in any field but k means "choose for me". */
typedef struct bly_topk_spec {
    size_t k;                    /* keys on the list, 1 to 2^24 */
    uint64_t bytes;              /* for candidates, 64 or more; the list itself
                                    and its keys come on top */
    double decay;                /* chance that a candidate of count c loses one
                                    to another is decay^c; above 0, at most 1 */
    uint64_t seed;               /* of hash and chance */
    const unsigned char *secret; /* BLY_SECRET_BYTES, as in bly_spec */
    const bly_mem *mem;          /* as in bly_spec */
} bly_topk_spec;

/* A key of a list; its bytes are the list's until that changes. */
typedef struct bly_topk_item {
    bly_bytes key;
    uint64_t count;
} bly_topk_item;

/* *out is the caller's until bly_topk_free(), or NULL. */
bly_status bly_topk_new(const bly_topk_spec *spec, bly_topk **out);

/* Release t. NULL is allowed. */
void bly_topk_free(bly_topk *t);

/* Add weight to a key; 0 changes nothing. BLY_ERANGE where all weights together
 * would pass 2^64 - 1. */
bly_status bly_topk_add(bly_topk *t, const void *key, size_t len,
                        uint64_t weight);

/* The same for n keys; weights NULL: 1 each. Stops at the first that fails;
 * *ndone, unless NULL, is the number that were added. */
bly_status bly_topk_add_keys(bly_topk *t, const bly_bytes *keys,
                             const uint64_t *weights, size_t n, size_t *ndone);

/* The n heaviest keys, or as many as there are, heaviest first, equal ones by
 * their bytes; the number is returned. */
size_t bly_topk_list(const bly_topk *t, bly_topk_item *items, size_t n);

/* What t knows of one key, which is 0 for most that are not on the list.
 * *listed, unless NULL: whether it is. */
uint64_t bly_topk_count(const bly_topk *t, const void *key, size_t len,
                        bool *listed);

/* The key that was pushed off the list by the last key added; false where none
 * was. */
bool bly_topk_left(const bly_topk *t, bly_topk_item *out);

/* The sum of all weights. */
uint64_t bly_topk_total(const bly_topk *t);

/* Make dst the list of both streams. Both must come from equal specs, else
 * BLY_EUNFIT. */
bly_status bly_topk_merge(bly_topk *dst, const bly_topk *src);

/* --------------------------------------------------------- distinct keys */

/* How many different keys a stream has, in fixed memory: HyperLogLog. Works on
 * hashes, which must all come from one hasher (bly_hash() and its kin, or any
 * good 64-bit hash of the caller's).
 *
 * Threads. One writer; for several, make one a thread and merge them, which
 * gives exactly the sketch of all they saw. */
typedef struct bly_hll bly_hll;

/* An empty sketch of 2^precision bytes; precision is from 4 to 18, 0 for 14.
 * The deviation of its estimate is 1.04 / sqrt(2^precision): 0.8 % at 14. mem
 * as in bly_spec. *out is the caller's until bly_hll_free(), or NULL. */
bly_status bly_hll_new(unsigned precision, const bly_mem *mem, bly_hll **out);

/* Release s. NULL is allowed. */
void bly_hll_free(bly_hll *s);

unsigned bly_hll_precision(const bly_hll *s);

/* See n more hashes. Seeing one again changes nothing. */
void bly_hll_add(bly_hll *s, const uint64_t *hashes, size_t n);

/* Make dst the sketch of both streams. BLY_EUNFIT where their precisions
 * differ. */
bly_status bly_hll_merge(bly_hll *dst, const bly_hll *src);

/* The number of different hashes seen, and in *sd, unless NULL, the deviation
 * of that estimate. */
double bly_hll_estimate(const bly_hll *s, double *sd);

/* As bytes, the same on every machine: their number; writing them; and a
 * sketch from bytes that anyone may have written. */
size_t bly_hll_written_bytes(const bly_hll *s);
void bly_hll_write(const bly_hll *s, void *bytes);
bly_status bly_hll_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                        bly_hll **out);

/* ------------------------------------------------------ likeness of texts */

/* How much two texts have in common: cut them into shingles, n words or n
 * characters in a row, and compare the sets. J = |A and B| / |A or B|. A sketch
 * of a few hundred bytes estimates it; banding finds the pairs worth comparing
 * among many texts. docs/likeness.md has the definitions and the errors.
 *
 *     bly_shingler *cut;
 *     bly_sketch *s;
 *     bly_shingles x;
 *     const bly_sketch_spec spec = { .k = 128 };
 *     if (bly_shingler_new(&spec.shingling, NULL, &cut) ||
 *         bly_sketch_new(&spec, &s) || bly_shingle(cut, text, len, &x))
 *         errx(2, "%s", bly_error());
 *     bly_sketch_add(s, x.hashes, x.n);
 *
 * Threads. A shingler and a sketch that is added to have one user each; any
 * number of threads may compare sketches. */

/* A word is a run of ASCII letters, ASCII digits and bytes from 0x80 on; upper
 * case is folded in ASCII, and everything else separates words. */
typedef enum bly_unit {
    BLY_WORDS, /* n words in a row */
    BLY_CHARS  /* n bytes in a row, of the words joined by single blanks */
} bly_unit;

#define BLY_MAX_SHINGLE 1024

/* Zero in any field means the default. */
typedef struct bly_shingling {
    bly_unit unit;
    unsigned size; /* n, to BLY_MAX_SHINGLE; 0: 5 words or 10 characters */
    uint64_t seed; /* of the hash of a word; characters have none */
} bly_shingling;

/* What became of a text. The hashes are the shingler's, until it cuts another
 * text; the caller may sort them there. */
typedef struct bly_shingles {
    uint64_t *hashes; /* one a shingle, in the order of the text, repeated
                         ones too */
    size_t n;         /* a text of fewer than `size` units has one shingle,
                         one without words has none */
    uint64_t nwords;
    uint64_t text; /* hash of all words in their order: equal for texts that
                      differ in separators and ASCII case alone */
} bly_shingles;

typedef struct bly_shingler bly_shingler;

/* how NULL: the default. mem as in bly_spec. *out is the caller's until
 * bly_shingler_free(), or NULL. */
bly_status bly_shingler_new(const bly_shingling *how, const bly_mem *mem,
                            bly_shingler **out);

/* Release s. NULL is allowed. */
void bly_shingler_free(bly_shingler *s);

/* Cut a text of any bytes. Takes memory of the size of the largest text so
 * far, and 8 bytes a shingle. Where it fails, *out has no shingles. */
bly_status bly_shingle(bly_shingler *s, const void *text, size_t nbytes,
                       bly_shingles *out);

/* Sort n hashes in place and drop repeated ones: the number that is left. */
size_t bly_distinct(uint64_t *hashes, size_t n);

/* Exactly how much two sets share, both sorted and without repetition, as
 * bly_distinct() leaves them. J is both / either; the share of a in b is
 * both / na. Sets of nothing are like nothing: J of two of them is 0. */
typedef struct bly_overlap {
    uint64_t both, either;
    double jaccard;
} bly_overlap;
bly_overlap bly_overlap_of(const uint64_t *a, size_t na, const uint64_t *b,
                           size_t nb);

/* --------------------------------------------------- sketches of likeness */

/* k components for a set of shingles; two sets of likeness J agree in about
 * J k of them. The number on disk, then the word, then what it is. */
#define BLY_FAMILIES(X)                                                \
    X(FSS, "fss", "one pass for long texts, least error; the default") \
    X(OPH, "oph", "one permutation; fss is better for short texts")    \
    X(LINEAR32, "linear", "k maps a x + b mod 2^32, one minimum each") \
    X(LINEAR61, "linear61", "the same mod 2^61 - 1; thirty times slower")

typedef enum bly_family {
#define BLY_FAMILY_ROW_(name, word, help) BLY_##name,
    BLY_FAMILIES(BLY_FAMILY_ROW_)
#undef BLY_FAMILY_ROW_
        BLY_FAMILY_COUNT_
} bly_family;

/* The word of a family, "fss", and what it is; NULL past the last. */
const char *bly_family_name(unsigned family);
const char *bly_family_help(unsigned family);

#define BLY_MAX_COMPONENTS 512

/* What must agree for two sketches to be compared. Zero: the default. */
typedef struct bly_sketch_spec {
    bly_shingling shingling;
    bly_family family;
    unsigned k;         /* components, 1 to BLY_MAX_COMPONENTS; 0: 128 */
    const bly_mem *mem; /* as in bly_spec; need not agree */
} bly_sketch_spec;

/* Put the defaults in for zeros. BLY_EINVAL where something is out of range. */
bly_status bly_sketch_spec_check(bly_sketch_spec *spec);

/* BLY_OK where sketches of both can be compared; else BLY_EUNFIT, and
 * bly_error() names what differs. Both as bly_sketch_spec_check() leaves
 * them. */
bly_status bly_sketch_spec_fits(const bly_sketch_spec *a,
                                const bly_sketch_spec *b);

/* A spec as BLY_SKETCH_HEAD bytes, the same on every machine, for files that
 * hold many sketches; and from bytes that anyone may have written. */
#define BLY_SKETCH_HEAD 32
void bly_sketch_spec_write(const bly_sketch_spec *spec, void *bytes);
bly_status bly_sketch_spec_read(const void *bytes, size_t nbytes,
                                bly_sketch_spec *out);

typedef struct bly_sketch bly_sketch;

/* The sketch of no shingles. *out is the caller's until bly_sketch_free(), or
 * NULL. */
bly_status bly_sketch_new(const bly_sketch_spec *spec, bly_sketch **out);

/* Release s. NULL is allowed. */
void bly_sketch_free(bly_sketch *s);

/* With defaults filled in. */
const bly_sketch_spec *bly_sketch_spec_of(const bly_sketch *s);

/* Forget all shingles. */
void bly_sketch_clear(bly_sketch *s);

/* See n more shingles, in any order, repeated ones included; the sketch is the
 * same whether they come at once or in parts. BLY_EREADONLY where s has been
 * read from compact bytes. */
bly_status bly_sketch_add(bly_sketch *s, const uint64_t *hashes, size_t n);

/* Make dst the sketch of the union. BLY_EUNFIT where their specs differ,
 * BLY_EREADONLY where one has been read from compact bytes. */
bly_status bly_sketch_merge(bly_sketch *dst, const bly_sketch *src);

/* The k components of s, for comparing and banding; false, and out unchanged,
 * where s has seen no shingle or is compact. */
bool bly_sketch_components(const bly_sketch *s, uint32_t *out);

/* How many of k components agree. */
unsigned bly_components_equal(const uint32_t *a, const uint32_t *b, unsigned k);

/* An estimate of J with its deviation. */
typedef struct bly_resemblance {
    double jaccard;
    double sd;
    unsigned equal; /* components that agree */
    unsigned bits;  /* of each that were compared: 32, or fewer if compact */
} bly_resemblance;

/* The estimate from `equal` of k components that agree in `bits` bits. The
 * deviation is that of k independent components, which is above that of fss. */
bly_resemblance bly_resemblance_of(unsigned equal, unsigned k, unsigned bits);

/* BLY_EUNFIT where their specs differ. A sketch that has seen no shingle is
 * like nothing, not even like another. */
bly_status bly_sketch_compare(const bly_sketch *a, const bly_sketch *b,
                              bly_resemblance *out);

/* As bytes, the same on every machine. bits 0: all that there is, so that what
 * is loaded can be added to and merged; 1 to 32: that many of each component,
 * which can only be compared. A compact sketch has its own bits or fewer:
 * bly_sketch_bits() says how many, 0 where it is whole. */
unsigned bly_sketch_bits(const bly_sketch *s);
size_t bly_sketch_written_bytes(const bly_sketch *s, unsigned bits);
bly_status bly_sketch_write(const bly_sketch *s, unsigned bits, void *bytes);

/* A sketch from bytes that anyone may have written. */
bly_status bly_sketch_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                           bly_sketch **out);

/* --------------------------------------------------------------- banding */

/* Components in bands of r: two texts are a candidate pair if all r components
 * of some band agree. Pairs of likeness s are, with this probability:
 * 1 - (1 - s^rows)^bands. */
typedef struct bly_bands {
    unsigned bands, rows;
} bly_bands;
double bly_bands_chance(bly_bands b, double likeness);

/* The largest rows for which k / rows bands find a pair at the threshold with
 * probability `recall` at least (0: 0.995). BLY_EINVAL where k components
 * cannot do that. */
bly_status bly_bands_choose(unsigned k, double threshold, double recall,
                            bly_bands *out);

/* What makes the areas least that a step at the threshold would not have:
 * candidates below it and pairs missed above. It misses many pairs at the
 * threshold itself, and is here for comparison. */
bly_status bly_bands_balance(unsigned k, double threshold, bly_bands *out);

/* The keys of all bands: texts that share one are candidates. Of b.bands *
 * b.rows components. */
void bly_bands_keys(bly_bands b, const uint32_t *components, uint64_t *keys);

/* --------------------------------------------- hashing that keeps likeness */

/* Sign hashing (SimHash). Each hash votes with its weight (NULL: 1 each) for
 * the ones among its 64 bits and against the zeros; bits that are not voted
 * down are set. Sets at an angle theta differ in 64 theta / pi bits, where for
 * sets of weight 1 cos theta = |A and B| / sqrt(|A| |B|). Hashes must be
 * distinct. */
uint64_t bly_simhash(const uint64_t *hashes, const double *weights, size_t n);
unsigned bly_hamming(uint64_t a, uint64_t b); /* bits that differ */
double bly_simhash_angle(uint64_t a, uint64_t b);

/* r of nbits bits (bit j is bit j % 8 of byte j / 8), drawn by seed, as one
 * number; r is 64 at most and nbits not 0. Two arrays that differ in d bits
 * agree in all r with probability (1 - d/nbits)^r. */
uint64_t bly_sample_bits(const void *bits, uint64_t nbits, uint64_t seed,
                         unsigned r);

/* -------------------------------------------- filters of other systems */

/* MurmurHash2 (Austin Appleby, public domain) of 32 bits, and its 64-bit form
 * "A": what RedisBloom and others place keys with. Good enough for a filter,
 * but not for keys that an adversary chooses. */
uint32_t bly_murmur2(const void *bytes, size_t len, uint32_t seed);
uint64_t bly_murmur64a(const void *bytes, size_t len, uint64_t seed);

/* Proxies, databases, Java and Go services keep filters in formats of their
 * own, each with its own hash. A format is opened, described and asked; some
 * are written from keys. Bits never go from one format to another where the
 * rules for positions differ: that takes the keys.
 *
 *     bly_foreign *f;
 *     if (bly_foreign_open(NULL, bytes, nbytes, &f))
 *         errx(2, "%s", bly_error());
 *     bly_foreign_has(f, keys, n, bitmap);
 *     bly_foreign_free(f);
 *
 * A foreign filter may have several parts, each a filter for itself: one a
 * commit, a block of a table, a group of rows. A key may be in it if it may be
 * in one of them. */
typedef struct bly_foreign bly_foreign;

/* An option of a format; its value is text. */
typedef struct bly_format_option {
    const char *name;
    const char *def;            /* NULL: none */
    const char *const *choices; /* NULL at the end; NULL: any text */
    const char *help;
} bly_format_option;

#define BLY_FORMAT_MAX_OPTIONS 8

/* What a format can do. Every one can be opened and described. */
#define BLY_FORMAT_KNOWN 1u /* is recognised by its content */
#define BLY_FORMAT_HAS 2u   /* can be asked for keys */
#define BLY_FORMAT_NEW 4u   /* can be made from keys */

typedef struct bly_format_info {
    const char *name;    /* "guava" */
    const char *systems; /* whose it is: "Guava BloomFilter.writeTo (Java)" */
    const char *summary; /* one line, without a dot */
    uint32_t can;        /* BLY_FORMAT_... */
    const bly_format_option *options;
    size_t noptions;
} bly_format_info;

/* The format of a row, false past the last, or of a name. */
bool bly_format_at(size_t index, bly_format_info *out);
bool bly_format_named(const char *name, bly_format_info *out);

/* The first format that recognises these bytes by their content, damaged or
 * not; false where none does. */
bool bly_format_of(const void *bytes, size_t nbytes, bly_format_info *out);

typedef struct bly_foreign_spec {
    const char *format; /* NULL: by its content; bly_foreign_new() wants one */
    const bly_option *options; /* of the format */
    size_t noptions;
    uint64_t items;     /* new ones: capacity; 0: as many as are added */
    double fpr;         /* new ones: 0: 0.01 */
    uint64_t max_bytes; /* hold no more than this; 0: no limit. An opened one
                           never holds more than a few times its file */
    const bly_mem *mem; /* as in bly_spec */
} bly_foreign_spec;

/* Open what bytes hold. They are borrowed until bly_foreign_free(). spec may be
 * NULL. BLY_EFORMAT where they are of no format, or damaged; BLY_EINVAL where
 * they could be of several, or an option is missing or wrong. */
bly_status bly_foreign_open(const bly_foreign_spec *spec, const void *bytes,
                            size_t nbytes, bly_foreign **out);

/* Make an empty one. Keys are kept as hashes until bly_foreign_write() where
 * items is 0; it can be asked only where it is not, or after that. */
bly_status bly_foreign_new(const bly_foreign_spec *spec, bly_foreign **out);

/* A new one with the bits of an opened one, where hash and positions agree and
 * only the form differs. BLY_EUNFIT, and said why, where that takes the keys.
 */
bly_status bly_foreign_repack(const bly_foreign_spec *spec,
                              const bly_foreign *from, bly_foreign **out);

/* Release f. NULL is allowed. */
void bly_foreign_free(bly_foreign *f);

#define BLY_PART_NAME 128 /* bytes of the name of a part */

/* What a format, or one part of it, tells of itself. */
typedef struct bly_foreign_stats {
    const char *format;
    char name[BLY_PART_NAME]; /* of the part; "" where there is one only */
    size_t nparts;
    uint64_t bits;         /* of the array */
    uint64_t ones;         /* of them set */
    uint32_t k;            /* probes; 0 where parts differ */
    uint64_t items;        /* as it says itself; UINT64_MAX: it does not */
    uint64_t capacity;     /* 0: it does not say */
    double fpr_planned;    /* NAN: it does not say */
    double items_estimate; /* by its bits; NAN: they do not tell */
    double fpr_now;        /* by its bits; of several parts the mean */
    double fill;
    bly_fact facts[BLY_MAX_FACTS];
    size_t nfacts;
} bly_foreign_stats;

/* Of part i, or of all together for BLY_WHOLE. */
#define BLY_WHOLE SIZE_MAX
void bly_foreign_stat(const bly_foreign *f, size_t part,
                      bly_foreign_stats *out);

/* The name of its format; how many parts it has, and the name of one. Bits are
 * not counted for these. */
const char *bly_foreign_format(const bly_foreign *f);
size_t bly_foreign_nparts(const bly_foreign *f);
void bly_foreign_part_name(const bly_foreign *f, size_t part,
                           char name[BLY_PART_NAME]);

/* Which of n keys may be in it, as a bitmap; keys are text, in the form that
 * the format's option `keys` names (bytes as they are, numbers, hexadecimal).
 * Where one is not of that form the call fails: *nbad, unless NULL, is its
 * number, and the bitmap means nothing. */
bly_status bly_foreign_has(const bly_foreign *f, const bly_bytes *keys,
                           size_t n, uint64_t *bitmap, size_t *nbad);

/* In which parts one key may be: a bitmap of nparts. */
bly_status bly_foreign_where(const bly_foreign *f, bly_bytes key,
                             uint64_t *bitmap);

/* Add keys to one that was made. *ndone, unless NULL, is how many were taken.
 * Only one thread at a time. */
bly_status bly_foreign_add(bly_foreign *f, const bly_bytes *keys, size_t n,
                           size_t *ndone);

/* Write it piece by piece, as bly_write() does. The first call fixes its size
 * where items was 0. */
bly_status bly_foreign_write(bly_foreign *f, bly_put *put, void *ctx);

/* The same to path, atomically, as bly_save() does. */
bly_status bly_foreign_save(bly_foreign *f, const char *path);

/* --------------------------------------------------------- Parquet files */

/* A Parquet file is groups of rows; a group is a chunk a column, a chunk pages
 * of values. What lies where is told by its footer, and so is the filter of a
 * chunk, where it has one. Asking those is the format "parquet" above. Here are
 * the columns, the pages as they lie in the file, and filters for chunks that
 * have none: the data stay as they are, filters and a footer that knows of them
 * come behind.
 *
 *     bly_parquet *p;
 *     bly_parquet_open(bytes, nbytes, NULL, &p);
 *     bly_parquet_filter_begin(p, group, column, nvalues, 0.01);
 *     bly_parquet_filter_add(p, values, n);
 *     bly_parquet_filter_end(p, NULL);
 *     bly_parquet_write(p, put, ctx);
 *     bly_parquet_free(p);
 */
typedef struct bly_parquet bly_parquet;

typedef enum bly_parquet_type {
    BLY_PARQUET_BOOLEAN,
    BLY_PARQUET_INT32,
    BLY_PARQUET_INT64,
    BLY_PARQUET_INT96,
    BLY_PARQUET_FLOAT,
    BLY_PARQUET_DOUBLE,
    BLY_PARQUET_BYTE_ARRAY,
    BLY_PARQUET_FIXED
} bly_parquet_type;

/* What the values of a column stand for. */
typedef enum bly_parquet_meaning {
    BLY_PARQUET_PLAIN, /* for themselves */
    BLY_PARQUET_STRING,
    BLY_PARQUET_ENUM,
    BLY_PARQUET_JSON,
    BLY_PARQUET_BSON,
    BLY_PARQUET_INTEGER,   /* of `bits` */
    BLY_PARQUET_DECIMAL,   /* with `scale` digits behind the point */
    BLY_PARQUET_DATE,      /* days since 1970 */
    BLY_PARQUET_TIME,      /* 10^-digits seconds since midnight */
    BLY_PARQUET_TIMESTAMP, /* 10^-digits seconds since 1970 */
    BLY_PARQUET_UUID,
    BLY_PARQUET_FLOAT16,
    BLY_PARQUET_INTERVAL,
    BLY_PARQUET_OTHER /* something this library does not know */
} bly_parquet_meaning;

typedef struct bly_parquet_column {
    const char *name; /* with a dot between the parts of its path */
    bly_parquet_type type;
    uint32_t width; /* bytes of a value; 0 where they differ */
    bly_parquet_meaning meaning;
    uint32_t bits;      /* of an integer */
    bool is_unsigned;   /* integer */
    uint32_t digits;    /* of a time: 3, 6 or 9 behind the second */
    int32_t scale;      /* of a decimal */
    uint32_t precision; /* of a decimal */
    uint32_t max_def;   /* of its definition levels, */
    uint32_t max_rep;   /* and its repetition levels */
} bly_parquet_column;

/* "INT64 timestamp in microseconds", into room bytes. */
void bly_parquet_type_name(const bly_parquet_column *c, char *out, size_t room);

typedef struct bly_parquet_chunk {
    uint64_t nvalues;      /* nulls included */
    uint32_t codec;        /* see bly_parquet_codec_name() */
    uint64_t at, nbytes;   /* its pages in the file */
    uint64_t filter_at;    /* 0: it has none */
    uint64_t filter_bytes; /* with its header; 0: the footer does not tell */
    bool encrypted;        /* neither pages nor filter can be read */
    bool elsewhere;        /* its pages are in another file */
} bly_parquet_chunk;

typedef struct bly_parquet_shape {
    uint64_t nrows;
    size_t ngroups, ncolumns;
    uint64_t footer_at; /* the data end there */
    uint64_t footer_bytes;
    const char *created_by; /* "" where it does not tell */
    bool is_signed;         /* footer and all: it must not be changed */
} bly_parquet_shape;

/* Read a footer. bytes are the whole file and are borrowed until
 * bly_parquet_free(); mem as in bly_spec, or NULL. BLY_EFORMAT where they are
 * no Parquet file, damaged, or encrypted. */
bly_status bly_parquet_open(const void *bytes, size_t nbytes,
                            const bly_mem *mem, bly_parquet **out);
void bly_parquet_free(bly_parquet *p);
void bly_parquet_stat(const bly_parquet *p, bly_parquet_shape *out);

/* Column and chunk of numbers within the shape. */
void bly_parquet_column_at(const bly_parquet *p, size_t column,
                           bly_parquet_column *out);
void bly_parquet_chunk_at(const bly_parquet *p, size_t group, size_t column,
                          bly_parquet_chunk *out);
uint64_t bly_parquet_group_rows(const bly_parquet *p, size_t group);

/* The number of the column of a name; BLY_EINVAL where there is none, or
 * several. */
bly_status bly_parquet_column_named(const bly_parquet *p, const char *name,
                                    size_t *out);

/* Pages, codecs and encodings are numbered as in the format; a number that it
 * does not have is "unknown". */
enum {
    BLY_PARQUET_DATA_PAGE = 0,
    BLY_PARQUET_INDEX_PAGE = 1,
    BLY_PARQUET_DICTIONARY_PAGE = 2,
    BLY_PARQUET_DATA_PAGE_V2 = 3
};
enum {
    BLY_PARQUET_UNCOMPRESSED = 0,
    BLY_PARQUET_SNAPPY = 1,
    BLY_PARQUET_GZIP = 2,
    BLY_PARQUET_ZSTD = 6
};
enum {
    BLY_PARQUET_PLAIN_VALUES = 0,
    BLY_PARQUET_PLAIN_DICTIONARY = 2,
    BLY_PARQUET_RLE = 3,
    BLY_PARQUET_DELTA_BINARY_PACKED = 5,
    BLY_PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
    BLY_PARQUET_DELTA_BYTE_ARRAY = 7,
    BLY_PARQUET_RLE_DICTIONARY = 8,
    BLY_PARQUET_BYTE_STREAM_SPLIT = 9
};
const char *bly_parquet_codec_name(uint32_t codec);
const char *bly_parquet_encoding_name(uint32_t encoding);

typedef struct bly_parquet_page {
    uint32_t kind; /* BLY_PARQUET_..._PAGE */
    uint32_t nvalues;
    uint32_t encoding;
    uint32_t def_encoding, rep_encoding; /* DATA_PAGE */
    uint32_t def_bytes, rep_bytes; /* DATA_PAGE_V2: levels, never compressed */
    bool compressed;               /* what follows the levels is */
    uint32_t nplain;               /* bytes, with nothing compressed */
    bool has_crc;
    uint32_t crc; /* CRC-32 of bytes */
    const unsigned char *bytes;
    size_t nbytes;
} bly_parquet_page;

/* The page at byte *at of a chunk, 0 being the first; *at becomes that of the
 * next, or the chunk's nbytes. */
bly_status bly_parquet_page_next(const bly_parquet *p, size_t group,
                                 size_t column, uint64_t *at,
                                 bly_parquet_page *out);

/* What was made of a filter. */
typedef struct bly_parquet_filter {
    uint64_t nbytes; /* of its blocks */
    double fpr;      /* by its bits */
    double values;   /* different ones, by its bits */
} bly_parquet_filter;

/* Begin the filter of a chunk, for at most nvalues different values and a rate
 * fpr; add all its values, each in its PLAIN encoding (without the length, for
 * byte arrays), in any number of calls: as bytes, or n of `width` bytes one
 * after another; and end it: it is folded to the least power of two of bytes
 * that keeps the rate. One at a time, each chunk once. What a chunk had before
 * is not asked any more. end() fills *out unless NULL. */
bly_status bly_parquet_filter_begin(bly_parquet *p, size_t group, size_t column,
                                    uint64_t nvalues, double fpr);
void bly_parquet_filter_add(bly_parquet *p, const bly_bytes *values, size_t n);
void bly_parquet_filter_add_fixed(bly_parquet *p, const void *values,
                                  size_t width, size_t n);
bly_status bly_parquet_filter_end(bly_parquet *p, bly_parquet_filter *out);

/* The file with the filters that were made: data as they were, filters, footer.
 * What the footer holds that this library does not know stays in it. */
bly_status bly_parquet_write(const bly_parquet *p, bly_put *put, void *ctx);

/* --------------------------------------------------------------- numbers */

/* Read all of text as a count ("10M", "1e6", "64MiB" is 67108864) or as a
 * real number ("0.001", "1%"). k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti
 * of 1024; a final B is allowed. False, and *out unchanged, for anything
 * else: counts must be whole and below 2^64. */
bool bly_parse_count(const char *text, uint64_t *out);
bool bly_parse_real(const char *text, double *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
