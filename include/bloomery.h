/*
 * bloomery.h - the Bloom-filter family, under one interface
 * SPDX-License-Identifier: MIT
 *
 * A filter answers "is this key in the set?" using a few bits per key. "No" is
 * certain; "maybe" is wrong with a small probability that you choose. Kinds
 * differ in what else they can do: remove, count, carry values, grow.
 *
 *     bly_filter *f;
 *     bly_spec spec = { .items = 1000000, .fpr = 0.01 };
 *     if (bly_new(&spec, &f))
 *         errx(2, "%s", bly_error());
 *     if (bly_add(f, "swordfish", 9))
 *         errx(2, "%s", bly_error());
 *     if (bly_has(f, "swordfish", 9))
 *         puts("maybe");
 *     bly_free(f);
 *
 * If all keys are there already, one call makes a filter of any kind from them:
 * bly_build_keys(), or bly_build_ints() for integers. If they come in batches,
 * perhaps from several threads, use a bly_builder.
 *
 * Failure. A function that can fail returns a bly_status; BLY_OK is 0. A call
 * that fails changes nothing, unless its comment says otherwise (a batch
 * reports how far it got), and bly_error() then says what was wrong and what
 * would be right. The library never prints, exits or aborts, and never sets
 * errno on purpose. A function that returns a status answers a NULL pointer
 * that is not allowed with BLY_EINVAL; other functions must not be given one.
 * An array of no elements may be NULL. The compiler warns if a program ignores
 * the status of a call that adds, combines or saves keys (BLY_MUST_CHECK).
 *
 * Ownership. An object that a call hands out through `**out` belongs to the
 * caller, who releases it with the free function of its type; if the call
 * fails, *out is NULL. A plain struct that `*out` points to is left as it was
 * if the call fails. Everything passed in is borrowed for the call and may be
 * released afterwards, unless the comment says otherwise. Names, words and help
 * texts are static strings.
 *
 * Threads. Any number of threads may read an object at once; a writer must be
 * alone. A call reads the objects that it takes as const and writes the others.
 * Different objects are independent. Kinds with the ability SHARE accept
 * .shared: any number of threads may then add, increase, ask, count and get at
 * the same time, while everything else still needs the filter alone.
 *
 * Cost. Adding, asking and removing take a few cache misses per key, however
 * large the filter is. Planning, and describing a filter without its contents
 * (bly_peek()), take constant time. A function that reads or copies all of a
 * filter says so.
 *
 * Versions. A later version may add fields at the end of a struct, unless the
 * struct is called final here. Programs need not be recompiled for that,
 * because the size of a struct travels with it: bly_new() is inline and passes
 * sizeof(bly_spec) to bly_new_sized(), which is what the library exports and
 * what bindings for other languages call. If the program is older than the
 * library, the fields it does not have count as zero, "choose for me". If it is
 * newer, the fields that the library does not know must be zero, otherwise the
 * call fails with BLY_EINVAL; in a result they become zero. A struct behind a
 * pointer that a function returns (bly_param_at(), bly_sketch_spec_of()) has
 * only the fields that the library knows.
 *
 * Keys. A key is a string of bytes, which may be empty or contain NUL. It is
 * hashed once, to 64 bits, and a filter sees only the hash. Callers that
 * already have a good 64-bit hash pass it and skip that step. Two keys with the
 * same hash are the same key. The text "7", the integer 7 and other bytes that
 * mean 7 have different hashes, so they are different keys. A filter can record
 * which of them it holds (bly_keying), and bly_has_as() and its relatives
 * convert a key to that type or fail.
 *
 * Listing. A filter cannot list its keys: it holds bits or fingerprints, from
 * which no key can be computed. Keep the keys elsewhere if you will need them,
 * to build a filter of another size for instance. What you can do is ask about
 * candidates, estimate how many keys there are (bly_stat()), and compare two
 * filters (bly_compare()). For the list of keys that two sides do not share,
 * see bloomery/reconcile.h.
 *
 * Expiry. Keys do not expire one by one. For "seen in the last hour", use the
 * kind "aging", which forgets keys after a window of time or of additions. Call
 * bly_tick() with the current time before you add or ask. Other kinds keep a
 * key until it is removed, if they can remove.
 *
 *     bly_option hour[] = { { "turn", "time" }, { "seconds", "3600" } };
 *     bly_spec spec = { .kind = "aging", .fpr = 0.01, .options = hour,
 *                       .noptions = 2, .items = 100000 };     keys in an hour
 *
 * Batches are the fast path: they overlap the cache misses of many keys. The
 * answer to a batch is a bitmap: bit i % 64 of word i / 64 for key i, in
 * BLY_BITMAP_WORDS(n) words; bits past n are zero.
 */
#ifndef BLOOMERY_H
#define BLOOMERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* These enclose the declarations of each header. They give the functions C
 * linkage and make them visible outside the shared library. */
#ifdef __cplusplus
#define BLY_BEGIN_DECLS \
    extern "C" {        \
    _Pragma("GCC visibility push(default)")
#define BLY_END_DECLS             \
    _Pragma("GCC visibility pop") \
    }
#else
#define BLY_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define BLY_END_DECLS _Pragma("GCC visibility pop")
#endif

/* BLY_SIZED(bly_status, bly_new, bly_spec, (parameters), (arguments)) defines
 * bly_new(), and declares the library function behind it, bly_new_sized(). That
 * one has one more parameter, the last: the size of the caller's bly_spec.
 * These definitions are at the end of each header. */
#define BLY_SIZED(type, name, object, params, args)                   \
    type name##_sized(BLY_LIST_ params, size_t size);                 \
    static inline type name params                                    \
    {                                                                 \
        BLY_PASS_##type name##_sized(BLY_LIST_ args, sizeof(object)); \
    }                                                                 \
    struct bly_filter /* for the semicolon */
#define BLY_LIST_(...) __VA_ARGS__
#define BLY_PASS_bly_status return
#define BLY_PASS_bool return
#define BLY_PASS_void (void)

/* The compiler warns where the result of such a call is not used: if the call
 * failed, keys are missing, and a filter without them says "no" to them. Where
 * that does not matter, write (void)!bly_add(...). */
#ifdef __GNUC__
#define BLY_MUST_CHECK __attribute__((warn_unused_result))
#else
#define BLY_MUST_CHECK
#endif

BLY_BEGIN_DECLS

#define BLY_VERSION_MAJOR 0
#define BLY_VERSION_MINOR 2
#define BLY_VERSION_PATCH 0

/* The version of the running library, such as "0.2.0". */
const char *bly_version(void);

/* The variant chosen for this processor, such as "avx512" or "portable". i
 * counts, from 0, the jobs for which the library has several variants; *job
 * becomes the name of job i. NULL past the last one. */
const char *bly_cpu_row(unsigned i, const char **job);

/* How many bytes of memory this process may use: the memory of the machine, or
 * the limit of its control group (that of a container, for instance) if that is
 * lower. Reads files of the kernel, so call it once and keep the answer. */
uint64_t bly_memory_limit(void);

/* ------------------------------------------------------------- statuses */

/* Every way a call can fail: name, then message. */
#define BLY_STATUSES(X)                                \
    X(OK, "no error")                                  \
    X(EINVAL, "argument out of range")                 \
    X(ENOMEM, "out of memory")                         \
    X(ERANGE, "size or count too large")               \
    X(EFORMAT, "not a filter, or damaged")             \
    X(EUNFIT, "filters differ in kind, shape or hash") \
    X(ENOTSUP, "this kind has no such operation")      \
    X(EFULL, "the filter is full")                     \
    X(EABSENT, "the key is not in the filter")         \
    X(EREFUSED, "the key cannot be removed")           \
    X(EREADONLY, "the filter is mapped read-only")     \
    X(ESECRET, "the secret is missing or wrong")       \
    X(EIO, "input or output failed")                   \
    X(EBUSY, "another process is changing the file")

typedef enum bly_status {
#define BLY_STATUS_ROW_(name, text) BLY_##name,
    BLY_STATUSES(BLY_STATUS_ROW_)
#undef BLY_STATUS_ROW_
        BLY_STATUS_COUNT_
} bly_status;

/* The message of a status, such as "out of memory". Never NULL. */
const char *bly_status_text(bly_status status);

/* What went wrong in the last call that failed in this thread. It is one line,
 * without a full stop or newline at its end, that names the argument or file
 * and says what would be right. Never NULL. Valid until the next call that
 * fails in this thread; a call that succeeds does not clear it. */
const char *bly_error(void);

/* --------------------------------------------------------------- memory */

/* Where memory comes from. alloc returns memory aligned as by malloc(), or NULL
 * if there is none left. zalloc does the same and returns zeros; it may be
 * NULL, and then the library calls alloc and clears the memory. Provide it if
 * you can get zeroed memory without writing to it. release is given the size
 * that was requested. None of them may throw. If several threads use a builder
 * or a shared filter, several threads may call these functions at once. */
typedef struct bly_mem { /* final */
    void *(*alloc)(void *ctx, size_t nbytes);
    void (*release)(void *ctx, void *ptr, size_t nbytes);
    void *ctx;
    void *(*zalloc)(void *ctx, size_t nbytes);
} bly_mem;

/* ---------------------------------------------------------------- kinds */

/* A filter. Its one owner frees it with bly_free(). */
typedef struct bly_filter bly_filter;

typedef enum bly_param_type {
    BLY_UINT,   /* a whole number */
    BLY_REAL,   /* a double */
    BLY_CHOICE, /* one of several words, stored as its number from 0 */
    BLY_TEXT    /* any text: options of foreign formats only */
} bly_param_type;

/* A parameter of a kind, which is part of the shape of every filter of that
 * kind; or an option of a foreign format. A parameter that the caller may set
 * is also called an option. */
typedef struct bly_param {
    const char *name;
    bly_param_type type;
    bool settable;  /* an option: may be given in bly_spec.options */
    bool automatic; /* if not given, the plan chooses it; `def` is unused */
    bool planning;  /* guides the plan and is not kept in the shape */
    double def, min, max; /* default and range; of a choice, as numbers */
    const char *def_text; /* the default of BLY_TEXT; NULL: none */
    /* The words, NULL at the end; BLY_CHOICE only. */
    const char *const *choices;
    const char *help;
} bly_param;

/* What a kind can do, one bit each. The columns: the name of the ability, the
 * internal function of a kind that provides it, its word (bly_can_name()) and
 * its meaning (bly_can_help()). */
#define BLY_ABILITIES(X)                                                 \
    X(ADD, add, "add", "take keys one at a time")                        \
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
    X(FOLD, fold, "fold", "fold into half the memory")                   \
    X(RESIZE, resize, "resize", "change capacity without the keys")      \
    X(CONVERT, convert, "convert", "turn into a filter of another kind") \
    X(TICK, tick, "tick", "forget with time")                            \
    X(DENY, deny, "deny", "be told which keys are not in it")            \
    X(RANGE, has_range, "range", "say whether any key lies in a range")  \
    X(RAW, raw, "raw", "give and take its bits without a header")

enum {
#define BLY_ABILITY_BIT_(NAME, slot, word, text) BLY_ABILITY_##NAME,
    BLY_ABILITIES(BLY_ABILITY_BIT_)
#undef BLY_ABILITY_BIT_
        BLY_ABILITY_COUNT_
};
#define BLY_CAN(NAME) (UINT32_C(1) << BLY_ABILITY_##NAME)

/* What is unusual about a kind, one bit each. */
#define BLY_SELF_SIZED 1u /* its options may replace items, fpr and bits */
#define BLY_LIKELY_NO                                                     \
    2u                 /* its "no" may be wrong too, at a known rate: the \
                          fact "missed_mean" of a plan or a filter */
#define BLY_ORDERED 4u /* the order of the keys changes the filter */
#define BLY_CODED 8u   /* made to be sent: coded from the start */
/* Merging treats the source as a neighbour whose keys are one step away, so it
 * matters which filter is merged into which. */
#define BLY_DIRECTED 16u

typedef struct bly_kind_info {
    const char *name;        /* "blocked" */
    const char *summary;     /* one line */
    uint32_t id;             /* on disk */
    uint32_t can;            /* BLY_CAN(ADD) | BLY_CAN(HAS) | ... */
    uint64_t traits;         /* BLY_SELF_SIZED | ... */
    const bly_param *params; /* for bly_param_at() */
    size_t nparams;
} bly_kind_info;

/* Parameter i, from 0, of a kind or a format. Use this instead of params[i]:
 * only the library knows how far apart the elements are. */
const bly_param *bly_param_at(const bly_param *params, size_t i);

/* Describe the kind with this index (0 is the default kind), the kind with this
 * name (NULL: the default kind), or the kind of a filter. False, with *out
 * unchanged, if there is no such kind. */
static inline bool bly_kind_at(size_t index, bly_kind_info *out);
static inline bool bly_kind_named(const char *name, bly_kind_info *out);
static inline void bly_kind_of(const bly_filter *f, bly_kind_info *out);

/* The word for ability number bit ("add", "has", ...), and its meaning. NULL
 * past the last one. */
const char *bly_can_name(unsigned bit);
const char *bly_can_help(unsigned bit);

/* ------------------------------------------------------- types of keys */

/* What the keys of a filter are. Stored in its file. */
typedef enum bly_key_type {
    BLY_KEYS_UNKNOWN, /* nobody has said */
    BLY_KEYS_TEXT,    /* text in any encoding: the lines of a file */
    BLY_KEYS_BYTES,   /* bytes that are not text: digests, packed structs */
    BLY_KEYS_INT64,   /* integers, the same as their 8 little-endian bytes; */
    BLY_KEYS_UINT64   /* those below 2^63 have the same hash in both types */
} bly_key_type;

/* How text was normalised before it was added, and must be normalised before it
 * is asked for: any of these, applied in this order. docs/format.md defines
 * them byte by byte, so that programs in all languages agree. */
#define BLY_KEYS_NO_CR 4u   /* cut one carriage return at the end */
#define BLY_KEYS_TRIMMED 2u /* cut blanks, tabs and line ends at both ends */
#define BLY_KEYS_FOLDED 1u  /* case of UTF-8: simple folding of Unicode 14 */

typedef struct bly_keying { /* final */
    bly_key_type type;
    uint32_t forms; /* BLY_KEYS_FOLDED | ...; 0 unless BLY_KEYS_TEXT */
} bly_keying;

/* The word for a type: "text", "bytes", "int64" or "uint64". NULL for
 * BLY_KEYS_UNKNOWN and for a number that is not a type. */
const char *bly_key_type_name(bly_key_type type);

/* --------------------------------------------------------------- making */

#define BLY_SECRET_BYTES 16

/* An option by name, with its value as text: { "layout", "partitioned" }.
 * Numbers may have suffixes, as in bly_parse_count() and bly_parse_real(). */
typedef struct bly_option { /* final */
    const char *name;
    const char *value;
} bly_option;

/* What the caller wants. Zero in any field means "choose for me". Give two of
 * items, fpr and bits, or items alone for a rate of 0.01. Giving all three is
 * an error, because they could contradict each other. Some kinds are sized by
 * options of their own instead (BLY_SELF_SIZED). Everything a spec points to is
 * copied, and may be released after the call. */
typedef struct bly_spec {
    const char *kind;            /* NULL: the default kind */
    uint64_t items;              /* capacity: how many keys will be added */
    double fpr;                  /* false positive rate at items, in (0,1) */
    uint64_t bits;               /* memory for the filter; for BLY_CODED kinds,
                                    its size when sent */
    uint64_t seed;               /* filters combine only if their seeds agree;
                                    0 is a seed like any other, not random */
    const unsigned char *secret; /* BLY_SECRET_BYTES: keyed with SipHash-1-3,
                                    for keys that an adversary may choose.
                                    Never stored; excludes seed */
    bool shared;                 /* many threads may add at once */
    const bly_option *options;   /* of the kind */
    size_t noptions;
    uint64_t max_bytes; /* fail, or stop growing, rather than use more */
    const char *spill;  /* builders only: folder for hashes that do not fit in
                           max_bytes, or in 4 MiB if that is 0; NULL: none */
    const bly_mem *mem; /* its ctx must outlive the filter; NULL: the system's
                           memory, with huge pages where they pay */
    bly_keying keying;  /* what the keys will be; recorded in the filter */
    uint32_t hash;      /* BLY_HASH_XXH3: for integers too, to combine with
                           filters of older versions; 0: choose */
    uint32_t reserved;  /* zero */
} bly_spec;

/* One named value that the plan chose or that a filter knows about itself. */
typedef struct bly_fact { /* final */
    const char *name;     /* "k", "layout", "rule_b_bits" */
    bly_param_type type;
    uint64_t uint;    /* BLY_UINT, and the number of a BLY_CHOICE */
    double real;      /* BLY_REAL, and the value of a BLY_UINT again */
    const char *word; /* BLY_CHOICE: the word; otherwise NULL */
    bool param;       /* part of the shape; otherwise derived from it */
} bly_fact;

#define BLY_MAX_PARAMS 16
#define BLY_MAX_FACTS 40 /* final */

typedef struct bly_prediction {
    const char *kind;
    uint64_t items;      /* capacity; 0: none was given, which a BLY_SELF_SIZED
                            kind allows */
    double fpr;          /* rate at capacity, by the exact formula of the kind;
                            NAN if it has no such rate */
    uint64_t bits;       /* that the filter works on; for BLY_CODED kinds,
                            its size when sent */
    uint64_t bytes;      /* of memory that the filter takes */
    double bits_per_key; /* bits / items, or NAN */
    size_t nfacts;
    bly_fact facts[BLY_MAX_FACTS];
} bly_prediction;

/* Choose sizes for spec and predict what they achieve, without making a filter.
 * Also works for static kinds. Fails as bly_new() does if the spec is wrong.
 * Uses next to no memory. */
static inline bly_status bly_plan(const bly_spec *spec, bly_prediction *out);

/* Make an empty filter, which belongs to the caller until bly_free().
 * BLY_EINVAL if the spec is wrong or contradicts itself, BLY_ERANGE past a
 * limit, BLY_ENOMEM. BLY_ENOTSUP for a kind that must be built from all its
 * keys at once: use bly_build_keys() or a bly_builder. Clears all of the
 * filter's memory. */
static inline bly_status bly_new(const bly_spec *spec, bly_filter **out);

/* Release f. NULL is allowed. No other thread may be using it. */
void bly_free(bly_filter *f);

/* Make an independent, writable copy of f, from the same memory source. Reads
 * all of f. A mapped filter is checked first; BLY_EFORMAT if it is damaged. */
bly_status bly_clone(const bly_filter *f, bly_filter **out);

/* Put the contents of `from` in the place of those of f, and release `from`:
 * for a filter that was made from f and takes its place. f keeps its address.
 * Takes constant time, apart from releasing memory.
 *
 * BLY_EINVAL if the two come from different memory sources or are the same
 * filter. BLY_EUNFIT if the kind of `from` has more parameters than f has room
 * for; a filter that was opened from a file, or read without a memory source of
 * its own, has room for those of any kind. After a failure both are unchanged,
 * and `from` still belongs to the caller. */
bly_status bly_become(bly_filter *f, bly_filter *from);

/* Set how many bytes f may hold from now on, like spec->max_bytes when it is
 * made; 0: no limit. A filter that already holds more keeps what it has and
 * does not grow. A clone has the same limit. */
void bly_limit(bly_filter *f, uint64_t max_bytes);

/* --------------------------------------------------------------- hashing */

/* How a filter turns bytes into its 64-bit hash. */
typedef struct bly_hasher { /* final */
    uint32_t id;            /* BLY_HASH_XXH3, ... */
    uint32_t reserved;      /* zero */
    uint64_t seed;          /* unused by BLY_HASH_SIPHASH13 */
    uint64_t secret[2];     /* BLY_HASH_SIPHASH13 */
} bly_hasher;

#define BLY_HASH_XXH3 1      /* 64 bits, with seed */
#define BLY_HASH_SIPHASH13 3 /* 128-bit secret, 64 bits out */

/* The hasher of filters whose spec says that their keys are integers. Eight
 * bytes, as a little-endian integer, are hashed by multiplications
 * (bly_int_folded()), which takes a third of the time; other keys by XXH3. */
#define BLY_HASH_FOLDED 8

/* The hashers of kinds with RANGE, which must know the order of their keys. The
 * hash is a bijection of 64 bits (docs/format.md), applied to the first eight
 * bytes of the key, most significant first, with zeros behind a shorter key. So
 * keys that agree in their first eight bytes are one key. For integer keys it
 * is applied to the integer; there, bytes that are not eight are hashed as
 * above. Such a filter has integer keys unless its spec says text or bytes. */
#define BLY_HASH_ORDERED_BYTES 4
#define BLY_HASH_ORDERED_INTS 5

/* The same for text whose keys all begin alike (bly_builder_beginning()): the
 * eight bytes behind that count. A key that begins otherwise gets a random
 * number, which is in the filter at the rate of single keys. */
#define BLY_HASH_ORDERED_TAILS 7

/* The hasher of filters whose keys come in groups (bly_builder_groups()): a key
 * is the name of its group, a tab, and its name within the group. Such a hasher
 * uses a table of the filter or builder that it belongs to, and is valid only
 * as long as that is. A key without a tab has the hash 0, and the answer for it
 * is "maybe". */
#define BLY_HASH_GROUPED 6

/* The hasher that a filter made from spec would have. BLY_EINVAL if spec has
 * both a seed and a secret, or a secret and a kind that keeps keys in order. */
static inline bly_status bly_hasher_for(const bly_spec *spec, bly_hasher *out);

/* The hasher of f: bly_has(f, k, n) asks for the hash
 * bly_hash(bly_hasher_of(f), k, n). It belongs to f and is valid as long as f
 * is, with one exception: of an empty filter whose type of keys is unknown, no
 * longer than until bly_add_as() or a merger says what its keys are. NULL if f
 * was opened blind. */
const bly_hasher *bly_hasher_of(const bly_filter *f);

/* A key: bytes, borrowed for the call. */
typedef struct bly_bytes { /* final */
    const void *ptr;
    size_t len;
} bly_bytes;

/* Keys one after another in a buffer. Key i is the bytes from offset i up to
 * offset i + 1, so n keys have n + 1 offsets, none less than the one before.
 * Arrow stores columns of strings in this way, with offsets of 32 or 64 bits:
 * set the one pointer, and leave the other NULL. Borrowed for the call. */
typedef struct bly_column { /* final */
    const void *bytes;
    const uint32_t *offsets;
    const uint64_t *wide_offsets;
} bly_column;

/* The hash of one key, of n keys, of n keys of a column, and of n integers. The
 * hash of an integer is that of its 8 little-endian bytes, by any hasher, but
 * is computed faster. The caller provides hashes[n]. */
uint64_t bly_hash(const bly_hasher *hs, const void *key, size_t len);
void bly_hash_keys(const bly_hasher *hs, const bly_bytes *keys, size_t n,
                   uint64_t *hashes);
void bly_hash_column(const bly_hasher *hs, const bly_column *keys, size_t n,
                     uint64_t *hashes);
void bly_hash_ints(const bly_hasher *hs, const uint64_t *ints, size_t n,
                   uint64_t *hashes);

/* Convert n keys of type `from` to the type that `to` names, and hash them.
 * `to` is what the filter holds (bly_keying_of()), or for a builder what its
 * spec says. `keys` is an array of bly_bytes for text and bytes, otherwise of
 * int64_t or uint64_t.
 *
 *     from      to text           to bytes      to int64, uint64
 *     text      normalised        as it is      parsed: decimal, blanks around
 *     bytes     as text           as they are   error
 *     int64,    as decimal text   error         the same, if it is in range
 *     uint64
 *
 * To BLY_KEYS_UNKNOWN everything is hashed as it is. BLY_EINVAL for a key that
 * cannot be converted; bly_error() says what would be right. BLY_ENOMEM is
 * possible for a key of more than 1 KiB that must be folded. The result is
 * never a hash that would give a wrong "no". *ndone, unless NULL, becomes the
 * number of keys before the one that failed. */
bly_status bly_hash_as(const bly_hasher *hs, bly_keying to, bly_key_type from,
                       const void *keys, size_t n, uint64_t *hashes,
                       size_t *ndone);

/* Cut and fold a text as `forms` says. The result is a part of `key` or of
 * `room`. Folding writes to `room`, which then must have BLY_KEY_ROOM(key.len)
 * bytes; without folding it is not used. */
#define BLY_KEY_ROOM(n) ((n) + (n) / 2) /* U+023A has 2 bytes, folded 3 */
bly_bytes bly_key_normalise(uint32_t forms, bly_bytes key, char *room);

/* ------------------------------------------------------------ using one */

#define BLY_BITMAP_WORDS(n) (((size_t)(n) + 63) / 64)

/* Add a key. Adding a key again is allowed. BLY_ENOTSUP for a kind that cannot
 * add, BLY_EFULL if there is no room left, BLY_EREADONLY for a mapped filter,
 * BLY_ESECRET for a filter opened blind. A kind that grows may also fail with
 * BLY_ENOMEM or BLY_ERANGE. */
bly_status bly_add(bly_filter *f, const void *key, size_t len) BLY_MUST_CHECK;

/* False only if the key was never added, or has since been removed or
 * forgotten. For a BLY_LIKELY_NO kind, this is likely but not certain. Cannot
 * fail: a filter of a kind that cannot be asked says true, "maybe". */
bool bly_has(const bly_filter *f, const void *key, size_t len);

/* Remove a key that was added before. BLY_EABSENT proves that it is not in the
 * filter. BLY_EREFUSED says that it may be, but that removing it would harm
 * other keys. Never remove a key that was not added: if it is a false positive,
 * the filter cannot tell, and loses another key instead. */
bly_status bly_remove(bly_filter *f, const void *key, size_t len);

/* The same for a key whose hash the caller already has. */
bly_status bly_add_hash(bly_filter *f, uint64_t hash) BLY_MUST_CHECK;
bool bly_has_hash(const bly_filter *f, uint64_t hash);

/* The same for an integer, with the conversions of bly_add_ints() and
 * bly_has_ints(). An integer in a register need not be written to memory
 * first. */
bly_status bly_add_int(bly_filter *f, uint64_t key) BLY_MUST_CHECK;
bool bly_has_int(const bly_filter *f, uint64_t key);

/* The same for n hashes, keys, keys of a column or integers at once. Input and
 * result arrays must not overlap.
 *
 * Adding stops at the first key that fails. *ndone, unless NULL, becomes the
 * number of keys added before it, which is n if the status is BLY_OK. fresh,
 * unless NULL, becomes a bitmap of the added keys that were not in the filter
 * before, as far as it can tell (a false positive counts as present).
 *
 * Hashes, keys and columns are taken as they are, whatever the filter says
 * about the type of its keys. Integers are integers: adding them to an empty
 * filter of unknown type makes its type uint64 (unless it is shared: give the
 * type in the spec), and in a filter of text they become decimal text. In a
 * filter of text, a number from 2^63 on could also stand for a negative one:
 * adding it fails with BLY_ERANGE, and asking for it answers "maybe". Use
 * bly_has_as() and its relatives, which are told the type. */
bly_status bly_add_hashes(bly_filter *f, const uint64_t *hashes, size_t n,
                          uint64_t *fresh, size_t *ndone) BLY_MUST_CHECK;
bly_status bly_add_keys(bly_filter *f, const bly_bytes *keys, size_t n,
                        uint64_t *fresh, size_t *ndone) BLY_MUST_CHECK;
bly_status bly_add_column(bly_filter *f, const bly_column *keys, size_t n,
                          uint64_t *fresh, size_t *ndone) BLY_MUST_CHECK;
bly_status bly_add_ints(bly_filter *f, const uint64_t *ints, size_t n,
                        uint64_t *fresh, size_t *ndone) BLY_MUST_CHECK;
void bly_has_hashes(const bly_filter *f, const uint64_t *hashes, size_t n,
                    uint64_t *maybe);
void bly_has_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                  uint64_t *maybe);
void bly_has_column(const bly_filter *f, const bly_column *keys, size_t n,
                    uint64_t *maybe);
void bly_has_ints(const bly_filter *f, const uint64_t *ints, size_t n,
                  uint64_t *maybe);

/* Announce up to BLY_PREFETCH_MOST hashes that will be asked for or added next.
 * The call starts loading their memory and does not wait for it. A program that
 * has its keys in small batches announces the next batch and works on the
 * current one in the meantime:
 *
 *     bly_prefetch_hashes(f, batch[i + 1], n);
 *     bly_has_hashes(f, batch[i], n, maybe);
 *
 * Changes nothing and promises nothing; announcing hashes that are not used
 * after all does no harm. If n is larger, only the first BLY_PREFETCH_MOST are
 * announced. */
#define BLY_PREFETCH_MOST 512
void bly_prefetch_hashes(const bly_filter *f, const uint64_t *hashes, size_t n);

/* Add or ask for n keys of a type, which bly_hash_as() converts to the type
 * that the filter holds; fresh, ndone and maybe are as above. Adding to an
 * empty filter of unknown type gives it this type (unless it is shared), and
 * its hash if it was made by this process: that of BLY_HASH_FOLDED for
 * integers. BLY_ESECRET for a filter opened blind. If bly_has_as() fails,
 * maybe[] is "maybe" for all keys. */
bly_status bly_add_as(bly_filter *f, bly_key_type type, const void *keys,
                      size_t n, uint64_t *fresh, size_t *ndone) BLY_MUST_CHECK;
bly_status bly_has_as(const bly_filter *f, bly_key_type type, const void *keys,
                      size_t n, uint64_t *maybe);

/* Is there any key from a to b, both included? For kinds with RANGE. "No" is
 * certain. "Maybe" is wrong at the planned rate for ranges of up to the planned
 * length, and proportionally more often for longer ones (docs/kinds/range.md).
 *
 * The first two functions are for filters of integers. The integers are signed
 * if the filter says that its keys are (BLY_KEYS_INT64). The last function
 * takes keys of a type, as bly_has_as() does, in arrays of bly_bytes, int64_t
 * or uint64_t. Text and bytes are compared byte by byte, and a range includes
 * all keys that begin with b: the range from "ab" to "ab" holds all keys that
 * begin with ab.
 *
 * BLY_ENOTSUP for a kind that cannot do it. BLY_EINVAL for a range that ends
 * before it begins, and for ends that cannot be keys of the filter. After a
 * failure maybe[] is "maybe" for all ranges. */
bly_status bly_has_range(const bly_filter *f, uint64_t a, uint64_t b,
                         bool *maybe);
bly_status bly_has_ranges(const bly_filter *f, const uint64_t *a,
                          const uint64_t *b, size_t n, uint64_t *maybe);
bly_status bly_has_ranges_as(const bly_filter *f, bly_key_type type,
                             const void *a, const void *b, size_t n,
                             uint64_t *maybe);

/* What only some kinds can do takes keys in the same four ways: as hashes, as
 * byte strings, as integers, and as keys of a type. Byte strings are taken as
 * they are, and integers as bly_add_ints() takes them, except that a filter of
 * text refuses one from 2^63 on (BLY_ERANGE). Keys of a type are arrays of
 * bly_bytes, int64_t or uint64_t, which are converted as by bly_hash_as(); one
 * that cannot be converted is BLY_EINVAL. BLY_ENOTSUP for a kind that cannot do
 * it, BLY_EREADONLY for changing a mapped filter, BLY_ESECRET for a filter that
 * was opened blind, unless it is given hashes. */

/* Remove n keys. A key that fails does not keep the others from being removed.
 * The result is BLY_OK if all were removed, otherwise the first failure, which
 * may be any that bly_remove() has. each, unless NULL, receives the status of
 * every key. */
bly_status bly_remove_hashes(bly_filter *f, const uint64_t *hashes, size_t n,
                             bly_status *each);
bly_status bly_remove_keys(bly_filter *f, const bly_bytes *keys, size_t n,
                           bly_status *each);
bly_status bly_remove_ints(bly_filter *f, const uint64_t *ints, size_t n,
                           bly_status *each);
bly_status bly_remove_as(bly_filter *f, bly_key_type type, const void *keys,
                         size_t n, bly_status *each);

/* Add a key `by` times; add key i by[i] times. Stops at the first key that
 * fails, as bly_add_hashes() does; *ndone, unless NULL, becomes the number of
 * keys before it. */
bly_status bly_increase(bly_filter *f, const void *key, size_t len,
                        uint64_t by) BLY_MUST_CHECK;
bly_status bly_increase_hashes(bly_filter *f, const uint64_t *hashes,
                               const uint64_t *by, size_t n,
                               size_t *ndone) BLY_MUST_CHECK;
bly_status bly_increase_keys(bly_filter *f, const bly_bytes *keys,
                             const uint64_t *by, size_t n,
                             size_t *ndone) BLY_MUST_CHECK;
bly_status bly_increase_ints(bly_filter *f, const uint64_t *ints,
                             const uint64_t *by, size_t n,
                             size_t *ndone) BLY_MUST_CHECK;
bly_status bly_increase_as(bly_filter *f, bly_key_type type, const void *keys,
                           const uint64_t *by, size_t n,
                           size_t *ndone) BLY_MUST_CHECK;

/* How often each key was added: an estimate that is never too low, unless the
 * documentation of the kind says otherwise. UINT64_MAX stands for "past the
 * ceiling". If the call fails, the counts mean nothing. */
bly_status bly_count(const bly_filter *f, const void *key, size_t len,
                     uint64_t *count);
bly_status bly_count_hashes(const bly_filter *f, const uint64_t *hashes,
                            size_t n, uint64_t *counts);
bly_status bly_count_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                          uint64_t *counts);
bly_status bly_count_ints(const bly_filter *f, const uint64_t *ints, size_t n,
                          uint64_t *counts);
bly_status bly_count_as(const bly_filter *f, bly_key_type type,
                        const void *keys, size_t n, uint64_t *counts);

/* The value stored for a key; BLY_EABSENT if it has none. The values stored for
 * n keys: a key has a value if its bit in the bitmap `present` is set;
 * otherwise values[i] is 0. If the call fails, the values mean nothing.
 *
 * A key that was not added may seem to have a value, at the rate of false
 * positives. */
bly_status bly_get_value(const bly_filter *f, const void *key, size_t len,
                         uint64_t *value);
bly_status bly_get_hashes(const bly_filter *f, const uint64_t *hashes, size_t n,
                          uint64_t *values, uint64_t *present);
bly_status bly_get_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                        uint64_t *values, uint64_t *present);
bly_status bly_get_ints(const bly_filter *f, const uint64_t *ints, size_t n,
                        uint64_t *values, uint64_t *present);
bly_status bly_get_as(const bly_filter *f, bly_key_type type, const void *keys,
                      size_t n, uint64_t *values, uint64_t *present);

/* Change the value of a key. BLY_EABSENT if the key is not known, BLY_ERANGE if
 * the value does not fit, BLY_ENOTSUP if the values of this filter are fixed.
 * Never set the value of a key that was not added: if it is a false positive,
 * the filter cannot tell, and another key gets the value. */
bly_status bly_set_value(bly_filter *f, const void *key, size_t len,
                         uint64_t value) BLY_MUST_CHECK;
bly_status bly_set_hash(bly_filter *f, uint64_t hash,
                        uint64_t value) BLY_MUST_CHECK;

/* Set the current time of a filter that forgets, in seconds from any origin
 * that the caller sticks to. The first tick sets the origin. A clock that runs
 * backwards changes nothing. Answers are as of the last tick, so a filter that
 * is never ticked (a mapped one, for instance) forgets nothing with time.
 * BLY_ENOTSUP for a kind that does not forget. */
bly_status bly_tick(bly_filter *f, uint64_t now);

/* -------------------------------------------------------------- building */

/* Make a filter of any kind from n keys that are there already: byte strings as
 * they are, integers, or keys of a type, which are converted to what the spec
 * says that the filter holds (bly_hash_as()). The filter belongs to the caller.
 *
 *     bly_bytes words[] = { { "swordfish", 9 }, { "flounder", 8 } };
 *     bly_spec spec = { .kind = "fuse", .fpr = 0.001 };
 *     if (bly_build_keys(&spec, words, 2, &f))
 *         errx(2, "%s", bly_error());
 *
 * Without spec.items, the filter is sized for the number of different keys. If
 * the spec does not say what the keys are, bly_build_ints() makes a filter of
 * uint64 keys, and bly_build_as() one of `type`. values[i] belongs to key i; it
 * is NULL except for a kind that has a value for each key and is built
 * ("bloomier").
 *
 * Many keys are hashed and built into the filter by all processors. To choose
 * the number of threads, or if the keys do not all fit into memory, use a
 * builder, whose errors these calls have. */
static inline bly_status bly_build_keys(const bly_spec *spec,
                                        const bly_bytes *keys, size_t n,
                                        bly_filter **out) BLY_MUST_CHECK;
static inline bly_status bly_build_ints(const bly_spec *spec,
                                        const uint64_t *ints, size_t n,
                                        bly_filter **out) BLY_MUST_CHECK;
static inline bly_status bly_build_as(const bly_spec *spec, bly_key_type type,
                                      const void *keys, const uint64_t *values,
                                      size_t n,
                                      bly_filter **out) BLY_MUST_CHECK;

/* A builder makes a filter of any kind from all its keys, which come in
 * batches. Any number of threads may give it keys at once.
 *
 *     bly_builder *b;
 *     bly_spec spec = { .kind = "ribbon", .fpr = 0.001 };
 *     if (bly_builder_new(&spec, &b))
 *         errx(2, "%s", bly_error());
 *     while ((n = next_batch(keys)))                  an array of bly_bytes
 *         if (bly_builder_add_keys(b, keys, NULL, n))
 *             errx(2, "%s", bly_error());
 *     if (bly_builder_finish(b, 0, &f))
 *         errx(2, "%s", bly_error());
 *     bly_builder_free(b);
 *
 * If spec gives items (or bits and fpr), a kind that adds takes the keys as
 * they come. Otherwise the builder keeps the hashes, 8 bytes each, and sizes
 * the filter by the number of distinct ones: counted exactly up to a million,
 * estimated to within 2 % above that. If adding only sets bits, threads that
 * add at the same time get filters of their own, which take at most 256 MiB
 * together; with a bound (max_bytes) there are none. The result is the same for
 * any number of threads.
 *
 * With spec->spill, hashes that do not fit in max_bytes go to a temporary file
 * in that folder. The file has no name and disappears with the builder; the
 * resulting filter is the same. Kinds that add may leave max_bytes 0: the bound
 * is then 4 MiB for the hashes, and the filter has none (kinds that remove but
 * do not count have none at all, and use no folder). Other kinds need
 * max_bytes, otherwise BLY_EINVAL. BLY_EIO if the file cannot be written or
 * read. BLY_ERANGE if the bound is too low to hold the filter and one part of
 * the keys or, without a folder, the hashes. */
typedef struct bly_builder bly_builder;

/* Make a builder, which belongs to the caller until bly_builder_free(). If the
 * spec is wrong, this fails as bly_plan() does, before any key is taken. */
static inline bly_status bly_builder_new(const bly_spec *spec,
                                         bly_builder **out);

/* The hasher to use for the keys. Valid as long as the builder is. */
const bly_hasher *bly_builder_hasher(const bly_builder *b);

/* Take n more keys. If the kind has BUILD and GET, it needs a value for each
 * key; otherwise values must be NULL. If a key comes with two different values,
 * bly_builder_finish() fails with BLY_EINVAL. Many threads may call this at
 * once. After a failure the builder can only be freed; finishing it fails
 * too. */
bly_status bly_builder_add(bly_builder *b, const uint64_t *hashes,
                           const uint64_t *values, size_t n) BLY_MUST_CHECK;

/* The same for keys that are not hashed yet: byte strings as they are,
 * integers, and keys of a type, which are converted to what the spec says that
 * the filter holds. (bly_builder_add() takes hashes, of bly_builder_hasher().)
 */
bly_status bly_builder_add_keys(bly_builder *b, const bly_bytes *keys,
                                const uint64_t *values,
                                size_t n) BLY_MUST_CHECK;
bly_status bly_builder_add_ints(bly_builder *b, const uint64_t *ints,
                                const uint64_t *values,
                                size_t n) BLY_MUST_CHECK;
bly_status bly_builder_add_as(bly_builder *b, bly_key_type type,
                              const void *keys, const uint64_t *values,
                              size_t n) BLY_MUST_CHECK;

/* Tell the builder, for a kind with DENY, which keys are not in the set: the
 * filter will say no to each of them. All keys of the set must have been added
 * before the first call, because that call builds a first filter of them. A key
 * of the set that is denied stays in the set. There may be any number of denied
 * keys, since only those that the filter would take for keys of the set are
 * kept. When you make the builder, say with the kind's option how many will
 * come. Many threads may call this at once. */
bly_status bly_builder_deny(bly_builder *b, const uint64_t *hashes, size_t n);

/* Which of n hashes belong to keys of the set, exactly: sets their bits in the
 * bitmap `in`, of BLY_BITMAP_WORDS(n) words, and clears the others. This is for
 * callers to whom denying a key that was added is a mistake: ask before or
 * after denying it. For kinds with DENY; all keys of the set must have been
 * added. Many threads may call this at once. */
bly_status bly_builder_members(bly_builder *b, const uint64_t *hashes, size_t n,
                               uint64_t *in);

/* A group of keys of a known universe. */
typedef struct bly_group { /* final */
    bly_bytes name;        /* without a tab; borrowed for the call */
    uint64_t members;      /* how many of its keys will be added */
    uint64_t others;       /* how many will be denied */
} bly_group;

/* Announce the groups that the keys come in, for a kind with DENY. If the share
 * of members differs between groups, a filter planned group by group takes
 * fewer bits. From then on a key is a group, a tab, and a name within the group
 * (BLY_HASH_GROUPED), and keys must be asked for in that form too. Call this
 * once, before the hasher is used. Missing groups and wrong numbers cost bits,
 * never a wrong answer. BLY_EINVAL for a keyed filter, and if the spec gives
 * bits. */
bly_status bly_builder_groups(bly_builder *b, const bly_group *groups,
                              size_t n);

/* Announce that all keys begin with this text, for a kind with RANGE whose keys
 * are text or bytes (BLY_HASH_ORDERED_TAILS). Of a key such a filter keeps no
 * more than eight bytes, and these are now the ones behind the beginning: keys
 * with a long one in common would otherwise be one key. Call this once, before
 * the hasher is used; an empty text changes nothing. A key that is added and
 * begins otherwise is not found later. Filters combine only if their beginnings
 * agree. BLY_ERANGE for more than 65535 bytes. */
bly_status bly_builder_beginning(bly_builder *b, const void *text, size_t len);

/* Make the filter of all the keys taken, using up to nthreads threads (0: one
 * per processor). Call it once, when no thread adds keys any more. Afterwards
 * the builder holds nothing, even if the call failed, but it must still be
 * freed. */
bly_status bly_builder_finish(bly_builder *b, unsigned nthreads,
                              bly_filter **out) BLY_MUST_CHECK;

/* After bly_builder_finish(): is the capacity an estimate of the number of
 * distinct keys? If so, it is right to within 2 %. False if the caller gave the
 * capacity, if there were at most a million keys, and for kinds that look at
 * every key. */
bool bly_builder_estimated(const bly_builder *b);

/* Release b and whatever it still holds. NULL is allowed. */
void bly_builder_free(bly_builder *b);

/* --------------------------------------------------------------- knowing */

typedef struct bly_stats {
    const char *kind;
    uint64_t capacity;      /* number of keys it was planned for */
    uint64_t items_added;   /* additions that changed it; after a build or a
                               merge, the distinct keys: only a hint */
    double items_estimate;  /* distinct keys, from its contents; INFINITY if
                               saturated, NAN if it cannot tell */
    double items_sd;        /* standard deviation of that estimate */
    double fill;            /* share of cells in use, 0 to 1 */
    double fpr_now;         /* rate with its present contents */
    double fpr_at_capacity; /* rate that was planned */
    uint64_t bits;          /* as in bly_prediction, including layers */
    uint64_t bytes;         /* of memory held */
    uint64_t seed;
    uint32_t hash_id;
    uint32_t layers;
    bool keyed, shared, mapped;
    bool coded;      /* bly_set_coded() */
    uint32_t format; /* version of the file it was read or mapped from (2 has
                        a checksum per block); 0: not from a file */
    size_t nfacts;
    bly_fact facts[BLY_MAX_FACTS];
    bool compact;              /* bly_set_compact() */
    unsigned char reserved[7]; /* zero */
} bly_stats;

/* Everything f knows about itself. Reads all of f. Cannot fail. */
static inline void bly_stat(const bly_filter *f, bly_stats *out);

/* The same without reading the contents: items_estimate, items_sd, fill and
 * fpr_now are NAN. Takes no longer for a large filter than for a small one. */
static inline void bly_peek(const bly_filter *f, bly_stats *out);

/* ---------------------------------------------------------------- metadata */

/* Metadata is what the owner of a filter says about it: the type of its keys, a
 * note, and pairs of a name and a value, at most 3696 bytes in all. It is
 * written with the filter and inherited by whatever is made from it: clones,
 * conversions, folds. A union or intersection keeps the metadata of its
 * destination; an empty destination that does not know the type of its keys
 * takes over that of the source. One that holds keys of unknown type combines
 * only with its like and with bytes, since queries of another type would miss
 * keys: state the type first, with bly_set_keying(). bly_equal() and
 * bly_version_id() ignore metadata, and a delta does not carry it.
 *
 * Setting fails with BLY_EREADONLY for a mapped filter, with BLY_ERANGE if
 * there is too much of it, and with BLY_EINVAL for text that is not one line of
 * UTF-8 without control characters. Everything returned here belongs to f, is
 * not terminated by NUL, and is valid until the metadata of f change. */
#define BLY_NOTE_MOST 1024 /* bytes of a note, and of a value */
#define BLY_NAME_MOST 64   /* letters, digits, '.', '-' and '_' in a name */

/* What the keys are. Setting this touches neither the keys nor the hash, so set
 * what is true. */
bly_keying bly_keying_of(const bly_filter *f);
bly_status bly_set_keying(bly_filter *f, bly_keying keying);

/* The note; of length 0 if there is none. Setting it to NULL or "" removes
 * it. */
bly_bytes bly_note_of(const bly_filter *f);
bly_status bly_set_note(bly_filter *f, const char *note);

/* Get pair i, from 0, in the order of names; false past the last one. Get the
 * value of a name; false if there is none. Set the value of a name; NULL
 * removes the pair. */
bool bly_pair_at(const bly_filter *f, size_t i, bly_bytes *name,
                 bly_bytes *value);
bool bly_pair_of(const bly_filter *f, const char *name, bly_bytes *value);
bly_status bly_set_pair(bly_filter *f, const char *name, const char *value);

/* Replace all metadata of f by those of another filter. */
bly_status bly_copy_meta(bly_filter *f, const bly_filter *from);

/* How many metadata entries were written by a newer bloomery and are unknown to
 * this one. They are kept. */
size_t bly_meta_unknown(const bly_filter *f);

/* -------------------------------------------------------------------- raw */

/* The bits of a filter and nothing else, for kinds with the ability RAW: for a
 * packet that has 32 bytes to spare and a receiver that knows the rest. Bit j
 * is bit j % 8 of byte j / 8; docs/small.md says what the bits mean.
 *
 *     unsigned char packet[32];
 *     st = bly_raw_get(f, packet, sizeof packet);     the sender
 *     st = bly_new(&spec, &g);                        the receiver: the same
 *     st = bly_raw_set(g, packet, sizeof packet);     kind and parameters
 *
 * bly_raw_bytes() is the number of bytes, or 0 for a kind without this form.
 * nbytes must be exactly that, otherwise BLY_EINVAL.
 *
 * bly_raw_set() replaces the contents of f, even by bits that no set of keys
 * would give. The number of additions becomes what the contents suggest.
 * BLY_EFORMAT, with f unchanged, if bits past the last one are set.
 * BLY_EREADONLY for a mapped filter. No other thread may use f during the call,
 * even if it is shared. */
uint64_t bly_raw_bytes(const bly_filter *f);
bly_status bly_raw_get(const bly_filter *f, void *bits, size_t nbytes);
bly_status bly_raw_set(bly_filter *f, const void *bits, size_t nbytes);

/* ------------------------------------------------------------------ cells */

/* The cells of f as they are in memory and in the payload of its file, for
 * programs that draw them. *nbytes becomes their size. They belong to f and are
 * valid until f changes. docs/kinds says what they mean. Layers have cells of
 * their own. */
const void *bly_cells(const bly_filter *f, uint64_t *nbytes);

/* The same for writing, for programs that fill them elsewhere, on a GPU for
 * instance. bly_cells_close() ends that: it reads all of f and derives the
 * number of additions, and whatever else f knows, from the contents. Until then
 * f may only be closed or freed. For kinds with RAW, and for count-min sketches
 * with plain update; BLY_ENOTSUP for others, BLY_EREADONLY for a mapped filter.
 * BLY_EFORMAT from bly_cells_close() if no keys give such contents: f can then
 * only be freed. Pages of a new filter that are not written take no memory. */
bly_status bly_cells_open(bly_filter *f, void **cells, uint64_t *nbytes);
bly_status bly_cells_close(bly_filter *f);

/* ------------------------------------------------------------------ layers */

/* Layer i, from 0, of a filter that consists of several; NULL past the last
 * one. It belongs to f and is valid until f changes. */
const bly_filter *bly_layer(const bly_filter *f, uint32_t i);

/* -------------------------------------------------------------- combining */

/* Make dst the union, or the intersection, of dst and src. They must be two
 * different filters (else BLY_EINVAL) that agree in kind, shape and hash, and
 * in the type of their keys if both state it (else BLY_EUNFIT). BLY_ENOTSUP for
 * a kind that cannot do it, BLY_EREADONLY if dst is mapped. Reads all of src.
 *
 * For kinds made of bits, the union is exactly the filter of both sets.
 * Counting kinds add their counts, which are never below the truth. An
 * intersection holds every key that is in both sets, and some more. */
bly_status bly_merge(bly_filter *dst, const bly_filter *src) BLY_MUST_CHECK;
bly_status bly_intersect(bly_filter *dst, const bly_filter *src);

/* Do two filters give the same answers to hashes? They do if kind, shape, hash
 * and contents are equal. Reads all of both. */
bool bly_equal(const bly_filter *a, const bly_filter *b);

/* How much two sets have in common. Here and in bloomery/sketch.h, in_both is
 * the number of keys in the intersection and in_either the number in the union;
 * jaccard is in_both / in_either, also called J or the likeness of the sets. */
typedef struct bly_likeness {
    double a, b, a_sd, b_sd; /* distinct keys in each filter */
    double in_either, in_either_sd;
    double in_both, in_both_sd; /* never below zero */
    double jaccard;
    double containment;  /* in_both / min(a, b) */
    double shared_cells; /* cells set in both / cells set in the lesser one */
    double chance_cells; /* the same, expected of disjoint sets this large */
    double inner;        /* sum over keys of (count in a) * (count in b),
                            never too low; NAN unless the kind counts */
} bly_likeness;

/* Estimate how much two filters have in common. They must agree in kind, shape
 * and hash, otherwise BLY_EUNFIT; BLY_ENOTSUP for a kind that cannot be
 * compared. Reads all of both. */
static inline bly_status bly_compare(const bly_filter *a, const bly_filter *b,
                                     bly_likeness *out);

/* Make a filter of the same keys in half the memory. Its rate is that of f with
 * twice as many keys. For kinds that can fold. BLY_EINVAL if the size of f is
 * odd: plan it with the option `folds`. The new filter belongs to the caller; f
 * is unchanged. */
bly_status bly_fold(const bly_filter *f, bly_filter **out);

/* Make a new filter from f without having its keys. If spec names another kind,
 * the new filter is of that kind (ability CONVERT). If it names no kind, or
 * that of f, the new filter is of the same kind with another capacity (RESIZE).
 * The hash is that of f; spec gives kind, items, fpr, bits and options.
 * BLY_ENOTSUP if the kind of f cannot do this. The new filter belongs to the
 * caller; f is unchanged. */
static inline bly_status bly_convert(const bly_filter *f, const bly_spec *spec,
                                     bly_filter **out);

/* ----------------------------------------------------------------- files */

/* A call that changes or replaces a file holds its lock. While it waits for a
 * lock that another process holds, it asks this function whether to go on
 * waiting: at once, with ms 0, and then at least every 50 ms, with the
 * milliseconds waited so far. If the function returns false, the call fails
 * with BLY_EBUSY. So one function can limit the wait, tell the user about it,
 * and end it on a signal. Without a function, a call waits as long as it
 * takes. */
typedef bool bly_wait(void *ctx, const char *path, uint64_t ms);

/* Describe in out, with a NUL behind it, the process that holds the lock of a
 * file, such as "process 1234 (rsync)". Anybody who may read a file can hold
 * its lock, so a wait should have a limit, and a message should name the
 * holder. The length, less than nbytes; 0 and an empty text if nobody is known
 * to hold it, as on systems other than Linux. */
size_t bly_lock_holder(const char *path, char *out, size_t nbytes);

/* What bly_map() compares with its checksums, apart from headers, which are
 * always checked. A file of more than 4 MiB has a checksum for each block of
 * 64 KiB, unless it was written before the format had them (version 1). */
typedef enum bly_checking {
    BLY_CHECK_BLOCKS, /* each block when a question first depends on it, if
                         the file has block checksums; otherwise everything */
    BLY_CHECK_ALL,    /* everything, as bly_verify(), before the call returns */
    BLY_CHECK_NOTHING /* nothing: a damaged file gives wrong answers */
} bly_checking;

/* How to open a file. NULL, or zero in any field, means the default. */
typedef struct bly_access {
    const unsigned char *secret; /* of a keyed filter */
    bool blind;                  /* open a keyed filter without its secret:
                                    it can be described and combined, but
                                    cannot add keys given as bytes, and
                                    answers "maybe" for them */
    bool shared;                 /* as in bly_spec */
    bly_checking checking;       /* for bly_map(); others check everything */
    uint64_t max_bytes;          /* as in bly_spec */
    const bly_mem *mem;          /* as in bly_spec */
    bly_wait *wait;              /* for the lock; bly_update() only */
    void *wait_ctx;
    bool reading;              /* for bly_share(): only to ask, never to add */
    unsigned char reserved[7]; /* zero */
} bly_access;

/* Choose whether f is written coded: in fewer bytes, close to the information
 * in its contents. A classic filter for 1 % that holds half of its keys takes
 * 11 % less, an empty one a thousandth; a full one gains nothing. Answers and
 * memory stay the same. Writing and reading then take a few ns per bit instead
 * of the time of a copy. A filter read from a coded file is coded, a copy is
 * coded if its original is, and bly_update() keeps a file coded. */
void bly_set_coded(bly_filter *f, bool coded);

/* Choose whether f is written in the compact form, for filters that are kept in
 * rows or sent in packets: with a header of some 40 bytes instead of a page,
 * and 8 bytes of checksum (docs/small.md). It may be coded or not. A compact
 * file cannot be mapped in place. A filter read from a compact file is compact,
 * a copy is compact if its original is, and bly_update() keeps a file
 * compact. */
void bly_set_compact(bly_filter *f, bool compact);

/* The information in the contents of f, in bits: m H(X/m) for X ones among m
 * bits or, for other kinds, the entropy of single bytes. No code that ignores
 * positions makes a shorter payload. bly_written_bytes() of a coded filter adds
 * the headers and a little that the code needs for learning. Reads all of f. */
double bly_entropy(const bly_filter *f);

/* Write f in the .bly format, piece by piece. put() may use the bytes it is
 * given only during its call. It returns false to stop; the call then fails
 * with BLY_EIO, and what was put before is incomplete. */
typedef bool bly_put(void *ctx, const void *bytes, size_t nbytes);
bly_status bly_write(const bly_filter *f, bly_put *put,
                     void *ctx) BLY_MUST_CHECK;

/* The same, and free f, even if put() stops. The memory of a large filter goes
 * back to the system while it is written, so that the filter and the bytes made
 * from it need not be in memory in full at the same time. */
bly_status bly_write_away(bly_filter *f, bly_put *put,
                          void *ctx) BLY_MUST_CHECK;

/* The number of bytes that bly_write() will write; and a part of them.
 * bly_write_part() writes nbytes, or as many as there are, starting at byte
 * `from`, into buf, and returns the number written. f must not change between
 * the first part and the last. If f is coded, each call codes it again, so ask
 * for large parts. */
uint64_t bly_written_bytes(const bly_filter *f);
size_t bly_write_part(const bly_filter *f, uint64_t from, void *buf,
                      size_t nbytes);

/* Rebuild a filter from bytes that anyone may have written: an array, or
 * whatever get() delivers. get() returns as many bytes as it is asked for,
 * fewer only at the end, and a negative number for failure. Any filter returned
 * with BLY_OK is safe to use: there is no second validation step. The filter is
 * a copy and belongs to the caller.
 *
 * BLY_EFORMAT if the bytes are not a filter or are damaged, BLY_ESECRET if the
 * secret is missing or wrong, BLY_ERANGE past how->max_bytes, BLY_EIO if get()
 * fails. */
static inline bly_status bly_load(const void *bytes, size_t nbytes,
                                  const bly_access *how, bly_filter **out);
typedef int64_t bly_get(void *ctx, void *buf, size_t nbytes);
static inline bly_status bly_read(bly_get *get, void *ctx,
                                  const bly_access *how, bly_filter **out);

/* For programs that keep keyed filters on behalf of others.
 *
 * bly_secret_check_of() gives a check value that tells the secret of f from
 * other secrets but does not reveal it; 0 if f is not keyed. bly_unlock() gives
 * a filter that was opened blind its secret; BLY_ESECRET if the secret is
 * another one, or f is not keyed. bly_set_blind() turns a new, empty filter
 * without a seed into a blind one, keyed with the secret that has this check
 * value. It takes hashes. */
uint64_t bly_secret_check_of(const bly_filter *f);
bly_status bly_unlock(bly_filter *f, const unsigned char *secret);
bly_status bly_set_blind(bly_filter *f, uint64_t secret_check);

/* Write f to path. Whatever happens, a reader sees the whole old file or the
 * whole new one. If the call returns BLY_OK, the file is on disk; if it fails,
 * path is as it was. */
bly_status bly_save(const bly_filter *f, const char *path) BLY_MUST_CHECK;

/* The same for any bytes: those that write() puts when it is called with
 * `what`. If write() fails, so does the call, and path is as it was. wait may
 * be NULL. */
typedef bly_status bly_writes(const void *what, bly_put *put, void *ctx);
bly_status bly_file_save(const char *path, bly_wait *wait, void *wait_ctx,
                         bly_writes *write, const void *what) BLY_MUST_CHECK;

/* The same piece by piece, for bytes that come from somewhere else:
 *
 *     bly_draft *d;
 *     if (bly_draft_new(path, NULL, NULL, &d))
 *         errx(2, "%s", bly_error());
 *     bly_draft_put(d, bytes, nbytes);
 *     if (bly_draft_commit(d))
 *         errx(2, "%s", bly_error());
 *
 * bly_save() and all other functions that write to a path use this mechanism
 * too. Nothing changes at path before the commit, and a process that dies
 * leaves the old file. At most it also leaves a file called .NAME.00000?.tmp
 * beside it, which the next writer of path removes. The lock of the old file is
 * held from the beginning to the end. A symbolic link is followed and stays.
 *
 * The new file gets the permission bits of the old one, but never its setuid,
 * setgid and sticky bits or its capabilities. It gets the owner and group of
 * the old one, if the caller may set them, and its access control list and
 * extended attributes (user.*). If one of these last two cannot be kept, the
 * call fails, says which, and changes nothing. A file that did not exist gets
 * what the umask and its folder give it. Another hard link to the old file
 * keeps the old contents. Pipes and devices are written to directly.
 *
 * bly_draft_put() is a bly_put. It gathers small pieces, and returns false if a
 * write has failed; bly_draft_commit() then fails too and says why. d is
 * released by bly_draft_commit(), even if that fails, and by
 * bly_draft_abandon(); both allow NULL. A draft has one user at a time. */
typedef struct bly_draft bly_draft;
bly_status bly_draft_new(const char *path, bly_wait *wait, void *wait_ctx,
                         bly_draft **out);
bool bly_draft_put(void *draft, const void *bytes, size_t nbytes);
bly_status bly_draft_commit(bly_draft *d) BLY_MUST_CHECK;
void bly_draft_abandon(bly_draft *d);

/* bly_draft_new() for a name in an open folder, so that nobody can lead the
 * writer elsewhere by swapping folders and links. If the name is a symbolic
 * link, or anything else that is not a file, it fails. */
bly_status bly_draft_new_in(int folder, const char *name, bly_wait *wait,
                            void *wait_ctx, bly_draft **out);

/* Put nbytes zero bytes, which take no room on disk where the file system has
 * sparse files. */
bool bly_draft_skip(bly_draft *d, uint64_t nbytes);

/* bly_draft_commit(), but only in the place of a file that has not changed
 * since the caller read it; a file that has is left alone, and the call fails
 * with BLY_EBUSY. Where the file system can exchange two names (Linux, most
 * local disks) not even a change at the last moment is lost: what the draft
 * displaced is looked at again before it goes, and put back if need be.
 * Elsewhere, the last look is just before the rename. Each function may be
 * NULL. */
typedef struct bly_swap { /* final */
    /* Is this the file that the caller read? old is open for reading; -1: there
     * is no file. moved: it has been renamed meanwhile, which changes its
     * ctime. */
    bool (*same)(void *ctx, int old, bool moved);
    /* Change the rights and times of the draft, which has the rights of the old
     * file by then. False: give up; errno says why. */
    bool (*finish)(void *ctx, int draft);
    void *ctx;
} bly_swap;
bly_status bly_draft_swap(bly_draft *d, const bly_swap *how) BLY_MUST_CHECK;

/* Make a file in a folder, open for reading and writing, that has no name and
 * disappears when it is closed: for data that do not fit into memory. The
 * caller closes *fd, which is -1 if the call fails. */
bly_status bly_scratch_file(const char *folder, int *fd);

/* Make the folder that path names, unless something is already there. When the
 * call returns, the folder is on disk, so that files saved in it survive a
 * power cut. */
bly_status bly_folder_make(const char *path);

/* Read the filter in path into memory, and check all of it. Fails as bly_read()
 * does, and with BLY_EIO if the file cannot be read. */
static inline bly_status bly_open(const char *path, const bly_access *how,
                                  bly_filter **out);

/* Use the filter in path without reading it into memory: the pages that
 * questions need are loaded when they are first touched. The filter is
 * read-only.
 *
 * The header is always checked, the payload as how->checking says. By default,
 * a file of more than 4 MiB is compared with its checksums block by block,
 * each when a question first depends on it; a smaller file is compared at once,
 * which takes less than a millisecond. bly_verify() checks all of any file. If
 * an answer depends on a damaged block, it is "maybe", or BLY_EFORMAT from a
 * call that returns a status, and bly_damage() reports it. With
 * BLY_CHECK_NOTHING, damage gives wrong answers. Neither ever leads to a crash.
 *
 * The file must not be truncated while it is mapped; bly_save() and
 * bly_update() replace it and never do that. A coded or compact file cannot be
 * used in place: it is decoded into memory and checked, as by bly_open(), and
 * the filter is read-only all the same. */
static inline bly_status bly_map(const char *path, const bly_access *how,
                                 bly_filter **out);

/* Make dst the union, or the intersection, of dst and a filter that is read
 * once, from start to end: from a file, which may be a pipe, or from get().
 * Kinds that combine cell by cell take it in as it arrives, coded or not, so
 * that there is never a second filter in memory. A filter that does not fit is
 * refused as by bly_merge(), with dst unchanged. If the source turns out to be
 * damaged, or cannot be read to its end, dst may have changed and can only be
 * freed. */
typedef enum bly_combination { BLY_UNION, BLY_INTERSECTION } bly_combination;
bly_status bly_combine_file(bly_filter *dst, bly_combination how,
                            const char *path) BLY_MUST_CHECK;
bly_status bly_combine_read(bly_filter *dst, bly_combination how, bly_get *get,
                            void *ctx) BLY_MUST_CHECK;

/* Compare all of the payload of a mapped filter with its checksum; BLY_EFORMAT
 * if it is damaged. Other filters were checked when they were read, and give
 * BLY_OK at once. */
bly_status bly_verify(const bly_filter *f);

/* Has a question met a damaged block of a mapped file? If so, BLY_EFORMAT, and
 * bly_error() says which bytes of the file; a "maybe" may then mean "the file
 * cannot tell". Call this after bly_has() and its relatives, which cannot
 * report failure: after each batch, or at the end. Costs next to nothing. */
bly_status bly_damage(const bly_filter *f);

/* Change the filter in path: take its lock, open it, let change() work on it,
 * save it if change() returned BLY_OK, and release the lock. Writers queue;
 * readers are not disturbed. change() must neither free f nor keep it; if it
 * fails, its status is returned and the file stays as it was. Reads and writes
 * the whole file. */
typedef bly_status bly_change(bly_filter *f, void *ctx);
static inline bly_status bly_update(const char *path, const bly_access *how,
                                    bly_change *change,
                                    void *ctx) BLY_MUST_CHECK;

/* The same over a long time, saving a version now and then: for a program that
 * runs for days and may be killed at any moment.
 *
 *     bly_keeper *k;
 *     if (bly_keeper_new("seen.bly", NULL, empty, &k))
 *         errx(2, "%s", bly_error());
 *     if (bly_add(bly_keeper_filter(k), "swordfish", 9) ||
 *         bly_keeper_save(k))
 *         warnx("%s", bly_error());
 *     bly_keeper_free(k);
 *
 * A keeper holds the lock of the file from the beginning to the end, across all
 * the versions it saves. So two keepers, or a keeper and bly_update(), never
 * work on one file at once. how->wait is asked as in bly_update().
 *
 * If there is no file, `first` is written there. If several processes do this
 * at once, one succeeds and the others wait for it. Without `first`, a missing
 * file is BLY_EIO.
 *
 * The filter belongs to the keeper. The caller may change it in any way, but
 * must not free it. Changes that were not saved are lost when the keeper is
 * freed or the process dies. If saving fails, the file holds the previous
 * version, and the keeper can still be used. */
typedef struct bly_keeper bly_keeper;
static inline bly_status bly_keeper_new(const char *path, const bly_access *how,
                                        const bly_filter *first,
                                        bly_keeper **out);
bly_filter *bly_keeper_filter(bly_keeper *k);
bly_status bly_keeper_save(bly_keeper *k) BLY_MUST_CHECK;
void bly_keeper_free(bly_keeper *k);

/* ---------------------------------------------------------------- deltas */

/* A delta updates one version of a filter to another. It holds the bits that
 * flipped or the whole new version, whichever is shorter; both are coded. The
 * receiver must have exactly the version that the delta starts from; otherwise
 * the delta is refused and nothing changes.
 *
 *     st = bly_delta_save(old, new, "today.bld", NULL);    the publisher
 *     st = bly_delta_read(mine, get_today, &conn, NULL);   the subscriber
 *
 * If keys leave the set as well as join it, keep a filter of a kind that can
 * remove, and send that filter or what bly_convert() makes of it. */

/* The id of a version: a checksum of kind, shape, hash, state and contents,
 * including layers. Filters that bly_equal() calls equal have the same id,
 * whatever their capacities and counts; others have the same id with a chance
 * of 2^-64. It detects mistakes, not forgeries. Reads all of f. */
uint64_t bly_version_id(const bly_filter *f);

typedef struct bly_delta {
    uint64_t from, to;    /* version ids */
    const char *form;     /* "gaps" or "whole" */
    uint64_t bytes;       /* of the whole delta */
    uint64_t whole_bytes; /* of the new version as an uncoded file; 0 if only
                             the delta is known */
    uint64_t bits;        /* of both versions; 0 if their shapes differ */
    uint64_t flips;       /* bits that differ */
    double entropy;       /* bits that any code needs for the flips: the sum of
                             m H(d/m) over the arrays; NAN if shapes differ */
} bly_delta;

/* Write the delta that turns `from` into `to`: piece by piece, as bly_write()
 * does, or to path, as bly_save() does. *info, unless NULL, describes what was
 * written. BLY_EUNFIT if the filters differ in hash, seed or secret, and so are
 * not versions of the same filter; kind and shape may differ. Reads all of both
 * filters. */
static inline bly_status bly_delta_write(const bly_filter *from,
                                         const bly_filter *to, bly_put *put,
                                         void *ctx,
                                         bly_delta *info) BLY_MUST_CHECK;
static inline bly_status bly_delta_save(const bly_filter *from,
                                        const bly_filter *to, const char *path,
                                        bly_delta *info) BLY_MUST_CHECK;

/* Update f to the version that a delta leads to, including its hints. The bytes
 * may have been written by anyone: an array, or what get() delivers, as in
 * bly_load() and bly_read(). f keeps its secret and its memory source, and is
 * shared or coded as before. BLY_EUNFIT if f is not the version that the delta
 * starts from, or cannot become a filter of another kind (bly_become()).
 * BLY_EFORMAT if the delta is damaged. After these failures f is unchanged. */
static inline bly_status bly_delta_apply(bly_filter *f, const void *bytes,
                                         size_t nbytes,
                                         bly_delta *info) BLY_MUST_CHECK;
static inline bly_status bly_delta_read(bly_filter *f, bly_get *get, void *ctx,
                                        bly_delta *info) BLY_MUST_CHECK;

/* --------------------------------------------------------------- numbers */

/* Read the whole text as a count ("10M", "1e6", "64MiB" is 67108864) or as a
 * real number ("0.001", "1%"). k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti
 * are powers of 1024; a final B is allowed. Counts must be whole and below
 * 2^64. False, with *out unchanged, for anything else. */
bool bly_parse_count(const char *text, uint64_t *out);
bool bly_parse_real(const char *text, double *out);

/* ------------------------------------------------- sizes of structs */

/* What is declared `static inline` above: each function passes the size of a
 * struct, as "Versions" says, to the function of the library whose name ends in
 * _sized. */
BLY_SIZED(bool, bly_kind_at, bly_kind_info, (size_t index, bly_kind_info *out),
          (index, out));
BLY_SIZED(bool, bly_kind_named, bly_kind_info,
          (const char *name, bly_kind_info *out), (name, out));
BLY_SIZED(void, bly_kind_of, bly_kind_info,
          (const bly_filter *f, bly_kind_info *out), (f, out));
BLY_SIZED(bly_status, bly_new, bly_spec,
          (const bly_spec *spec, bly_filter **out), (spec, out));
BLY_SIZED(bly_status, bly_hasher_for, bly_spec,
          (const bly_spec *spec, bly_hasher *out), (spec, out));
BLY_SIZED(bly_status, bly_build_keys, bly_spec,
          (const bly_spec *spec, const bly_bytes *keys, size_t n,
           bly_filter **out),
          (spec, keys, n, out));
BLY_SIZED(bly_status, bly_build_ints, bly_spec,
          (const bly_spec *spec, const uint64_t *ints, size_t n,
           bly_filter **out),
          (spec, ints, n, out));
BLY_SIZED(bly_status, bly_build_as, bly_spec,
          (const bly_spec *spec, bly_key_type type, const void *keys,
           const uint64_t *values, size_t n, bly_filter **out),
          (spec, type, keys, values, n, out));
BLY_SIZED(bly_status, bly_builder_new, bly_spec,
          (const bly_spec *spec, bly_builder **out), (spec, out));
BLY_SIZED(void, bly_stat, bly_stats, (const bly_filter *f, bly_stats *out),
          (f, out));
BLY_SIZED(void, bly_peek, bly_stats, (const bly_filter *f, bly_stats *out),
          (f, out));
BLY_SIZED(bly_status, bly_compare, bly_likeness,
          (const bly_filter *a, const bly_filter *b, bly_likeness *out),
          (a, b, out));
BLY_SIZED(bly_status, bly_convert, bly_spec,
          (const bly_filter *f, const bly_spec *spec, bly_filter **out),
          (f, spec, out));
BLY_SIZED(bly_status, bly_load, bly_access,
          (const void *bytes, size_t nbytes, const bly_access *how,
           bly_filter **out),
          (bytes, nbytes, how, out));
BLY_SIZED(bly_status, bly_read, bly_access,
          (bly_get *const get, void *ctx, const bly_access *how,
           bly_filter **out),
          (get, ctx, how, out));
BLY_SIZED(bly_status, bly_open, bly_access,
          (const char *path, const bly_access *how, bly_filter **out),
          (path, how, out));
BLY_SIZED(bly_status, bly_map, bly_access,
          (const char *path, const bly_access *how, bly_filter **out),
          (path, how, out));
BLY_SIZED(bly_status, bly_update, bly_access,
          (const char *path, const bly_access *how, bly_change *change,
           void *ctx),
          (path, how, change, ctx));
BLY_SIZED(bly_status, bly_keeper_new, bly_access,
          (const char *path, const bly_access *how, const bly_filter *first,
           bly_keeper **out),
          (path, how, first, out));
BLY_SIZED(bly_status, bly_delta_write, bly_delta,
          (const bly_filter *from, const bly_filter *to, bly_put *put,
           void *ctx, bly_delta *info),
          (from, to, put, ctx, info));
BLY_SIZED(bly_status, bly_delta_save, bly_delta,
          (const bly_filter *from, const bly_filter *to, const char *path,
           bly_delta *info),
          (from, to, path, info));
BLY_SIZED(bly_status, bly_delta_apply, bly_delta,
          (bly_filter *const f, const void *bytes, size_t nbytes,
           bly_delta *info),
          (f, bytes, nbytes, info));
BLY_SIZED(bly_status, bly_delta_read, bly_delta,
          (bly_filter *const f, bly_get *get, void *ctx, bly_delta *info),
          (f, get, ctx, info));
bly_status bly_plan_sized(const bly_spec *spec, size_t spec_size,
                          bly_prediction *out, size_t out_size);
static inline bly_status bly_plan(const bly_spec *spec, bly_prediction *out)
{
    return bly_plan_sized(spec, sizeof *spec, out, sizeof *out);
}

BLY_END_DECLS
#endif
