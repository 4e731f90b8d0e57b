/*
 * kind.h - what a kind of filter is: a table row
 *
 * A kind describes itself: its name, its parameters, and a function for each
 * thing it can do. A NULL function means that the kind lacks that ability, and
 * abilities are written down nowhere else. The command, the adapters, the laws
 * in tests/, the fuzzers and the bench walk the table at the end of this file.
 *
 * Adding a kind: src/kinds/NAME.c, one row X(NAME) in BLY_KINDS below,
 * tests/test_NAME.c for what is peculiar to it, docs/kinds/NAME.md.
 *
 * A filter is a shape and one block of memory:
 *
 *     bly_filter
 *     +------+-------+-------+-------+--------------+----------+
 *     | kind | extra | state | data -|-> nbytes     | shape    |
 *     +------+-------+-------+-------+--------------+----------+
 *                                    | layer[0..nlayers) -> filters
 *
 * shape   integers that plan() chose, in the order of the kind's params;
 *         constant, unless the filter is replaced by a larger one as it grows
 *         (bly_become()); checked by sane() on load
 * state   integers that change as keys are added (a clock, a generator); saved
 * data    the cells, little-endian wherever a word has an order (bits.h), so
 *         that a file holds the same bytes as memory and can be mapped on any
 *         machine; aligned for words, and on a cache line if there are
 *         BLY_ALIGNED_FROM bytes or more
 * layers  for kinds made of filters: each layer is a filter of its own
 *
 * Contracts that hold for every function below:
 *  - the caller (src/api) has checked the arguments, that f is not readonly
 *    and that the kind has the ability; pointers to results are never NULL,
 *    except fresh; bitmaps come zeroed;
 *  - hashes are 64-bit values of good quality; a kind that needs more bits
 *    derives them with bly_mix64() or a multiplication by an odd constant;
 *  - a function that fails has changed nothing, except that add() and
 *    increase() have taken the *ndone keys before the one that failed;
 *  - a function that only reads a filter (has, count, get, stat, describe,
 *    compare, and merge, intersect, fold, resize and convert as far as they
 *    read their source) is safe whatever bytes are in data, because a mapped
 *    file may be damaged. It may answer nonsense, but it may not read out of
 *    bounds or run for ever. sound() guards state and layers; check() guards
 *    everything else that writers rely on.
 *  - a kind makes filters with bly_filter_make() of filter.h.
 */
#ifndef BLY_KIND_H
#define BLY_KIND_H

#include <bloomery.h>

#include "core/memory.h"

typedef struct bly_shape {
    uint64_t nbytes;            /* size of data */
    uint64_t p[BLY_MAX_PARAMS]; /* in the order of the kind's params; unused
                                   ones 0 */
} bly_shape;

/* Parameters of type BLY_REAL are kept in p[] as their 64 bits. */
double bly_shape_real(const bly_shape *s, unsigned i);
void bly_shape_set_real(bly_shape *s, unsigned i, double value);

#define BLY_STATE_WORDS 8
#define BLY_MAX_LAYERS                                     \
    64 /* a doubling each: more keys than there are hashes \
        */

/* The fast paths for a single key: no bitmap, no ring, and so few instructions
 * that the processor starts on the next call while this one waits for memory.
 * The kind chooses them by shape and processor; bly_filter_ready() also takes
 * into account whether the filter is mapped, keyed or shared. So nothing has to
 * be tested on the way. */
typedef struct bly_ways {
    bool (*has)(const bly_filter *f, uint64_t h); /* never NULL */
    bly_status (*add)(bly_filter *f, uint64_t h); /* NULL: use a batch */
    /* The same for a key given as an integer, whose eight bytes are the key. */
    bool (*has_int)(const bly_filter *f, uint64_t key);
    bly_status (*add_int)(bly_filter *f, uint64_t key);
    /* Take one copy of a hash out: BLY_OK, or BLY_EABSENT without a word about
     * it. NULL: use a batch. */
    bly_status (*remove)(bly_filter *f, uint64_t h);
} bly_ways;

/* The part of the above that the kind chooses. */
typedef struct bly_one {
    bly_ways ways;
    bool folded;  /* given: integers are hashed by bly_int_folded() */
    uint64_t aid; /* one more value computed in advance; 0 where there are
                     layers */
} bly_one;

/* Fields that most filters leave at zero. Filters that need none of them share
 * one extra of zeros; there is one for each hash that needs nothing but seed 0.
 * So it can be read without testing for NULL. To write to it, call
 * bly_filter_extra() first. */
typedef struct bly_extra {
    bly_hasher hasher;     /* zeros in secret where blind */
    uint64_t turned;       /* bly_hash_turned() of it */
    uint64_t secret_check; /* identifies the secret; 0 unless keyed */
    uint64_t max_bytes;    /* 0: no limit */
    void *aux;             /* the kind's own, by open() and close() */
    struct bly_meta *meta; /* what the owner says about the keys; NULL: nothing;
                              always NULL for layers */
    struct bly_outside *outside;
} bly_extra;

/* What a live filter (bloomery/live.h) shares with other processes, in its
 * mapped file; format/live.c makes it. */
typedef struct bly_living {
    _Atomic uint64_t *counts; /* additions: BLY_LIVE_COUNTS sums, one to a line;
                                 the number is their sum */
    /* Not 0: the filter was replaced by another generation, or its file was cut
     * off under this process, and what is added now may be lost. */
    const _Atomic uint64_t *moved, *lost;
    bly_status (*trouble)(const bly_filter *f); /* then: why adding failed */
    void (*leave)(struct bly_living *l);        /* f is being freed */
} bly_living;

/* Writers on different processors count in different lines. */
#define BLY_LIVE_COUNTS 64

/* Memory that is not the filter's own block: NULL where there is none. */
typedef struct bly_outside {
    bly_mem mem;     /* an allocator that bly_mem_number() has no number for */
    bly_block block; /* holds data; its base is NULL where the data is in the
                        body or in a mapped file */
    void *map;       /* for the root of a mapped file */
    size_t map_bytes;
    uint64_t
        payload_sum; /* of the data, where mapped: bly_verify() expects it */
    struct bly_sums *sums; /* used instead where the file has one sum per block
                              of the data; else NULL (core/block_sums.h) */
    const bly_ways *read;  /* with sums: for when all blocks are compared; of a
                              live filter: those of its kind */
    bly_living *living;    /* of a live filter */
} bly_outside;

/* Filters of 100 keys are wanted as often as filters of a billion, and there
 * may be millions of them. So the struct is as small as possible: it ends after
 * the params that its kind has. bly_shape_of() makes a whole shape of them.
 * Never assign `shape` or a filter as a whole: that would copy bytes behind the
 * end.
 *
 * The body is one block: the kind's words of state, followed by the data. Data
 * that is mapped, whether from a file or because it is large, lies outside the
 * body. */
struct bly_filter {
    const struct bly_kind *kind;
    const bly_ways *ways; /* shared by many filters: bly_filter_ready() */
    unsigned char *data;  /* shape.nbytes bytes */
    uint64_t *state;      /* the body: kind->nstate words, and data */
    bly_extra *extra;     /* never NULL */
    union {
        bly_filter **layer; /* where there are places */
        uint64_t aid;       /* from bly_one, where there are none */
    };
    uint64_t items;  /* capacity */
    double fpr;      /* rate at capacity, as planned; NAN: none */
    uint64_t nadded; /* atomic: additions that changed something */
    uint8_t nlayers;
    uint8_t format; /* version of the file that it came from; 0: none */
    uint8_t memory; /* bly_mem_number(); BLY_MEM_OWN: outside->mem */
    uint8_t room;   /* number of params that fit in shape */
    uint8_t places; /* in layer; all BLY_MAX_LAYERS in a shared filter that
                       grows, since the array cannot move under its readers */
    bool shared;
    bool readonly : 1, blind : 1;
    bool coded : 1;   /* written so: bly_set_coded() */
    bool compact : 1; /* written so: bly_set_compact() */
    bool former : 1;  /* in the older compact form, like the file it came
                         from */
    bool inside : 1;  /* data is in the body */
    bool written : 1; /* by the caller's own code, which need not say so */
    bool live : 1;    /* extra->outside->living; shared, unless read-only; ask
                         bly_filter_live() */
    bly_shape shape;  /* the last: cut off behind `room` params */
};

/* In WebAssembly no process has a file in common with another. */
static inline bool bly_filter_live(const bly_filter *f)
{
#ifdef __wasm__
    (void)f;
    return false;
#else
    return f->live;
#endif
}

/* The metadata of a file: its entries, byte for byte, which format/meta.h reads
 * and writes, and what they say about the keys. */
typedef struct bly_meta {
    bly_keying keying;
    uint32_t nbytes;
    unsigned char at[];
} bly_meta;

struct bly_bitset; /* bitset.h */
struct bly_sums;   /* core/block_sums.h */

/* What plan() is asked for. items is never 0. Exactly one of fpr and bits is 0,
 * and plan() chooses it. BLY_SELF_SIZED kinds get all three as the caller gave
 * them, zeros included. opt[i] is the option that sets param i. Where given[i]
 * is false, opt[i] holds the default, or 0 if the default is automatic. */
typedef struct bly_want {
    uint64_t items;
    double fpr;
    uint64_t bits;
    uint64_t max_value; /* the largest value of any key, or 1 if that is 0; 0:
                           not known */
    double mean;        /* additions per different key; 0: not known */
    const struct bly_grouping *groups; /* of the keys; NULL: none */
    uint64_t opt[BLY_MAX_PARAMS];
    bool given[BLY_MAX_PARAMS];
} bly_want;

double bly_want_real(const bly_want *w, unsigned i);

/* The planned groups of keys: the table and state that the filter will take
 * over, and whatever else plan() and the builder have to know. */
typedef struct bly_grouping {
    bly_block table;
    uint64_t nbytes;
    uint64_t state[BLY_STATE_WORDS];
    bly_hasher hasher; /* aimed at the table */
    uint64_t others;   /* keys that are not in the set */
    double pass, bits; /* as the kind plans */
} bly_grouping;

/* Set the option `name` of a kind in w, as a caller would; and set a param in a
 * shape. For kinds made of other kinds. BLY_EINVAL if the kind has no param of
 * that name. */
struct bly_kind;
bly_status bly_want_set(const struct bly_kind *kind, bly_want *w,
                        const char *name, uint64_t value);
bly_status bly_shape_get(const struct bly_kind *kind, const bly_shape *s,
                         const char *name, uint64_t *out);

/* For descriptors. The first marks functions for threads and mapped files,
 * which WebAssembly does not have. The second marks functions that its small
 * module (bindings/wasm/lean/) leaves out: sets, folding, help, facts about
 * shapes. */
#ifdef __wasm__
#define BLY_SYSTEM(value) NULL
#else
#define BLY_SYSTEM(value) value
#endif
#ifdef BLY_LEAN
#define BLY_AMPLE(value) NULL
#else
#define BLY_AMPLE(value) value
#endif

/* A row of a table of params: name, type, and any further fields; and the list
 * of words for a choice. */
#define BLY_PARAM(name_, type_, ...)                  \
    {                                                 \
        .name = (name_), .type = (type_), __VA_ARGS__ \
    }
#define BLY_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Find a word among the choices of a param. `owner` is the name of a kind or a
 * format, and `sort` says which: "kind" or "format". BLY_EINVAL, with a message
 * that lists the choices, if the word is none of them. */
bly_status bly_read_choice(const bly_param *param, const char *sort,
                           const char *owner, const char *text, uint64_t *out);

/* Where a kind puts facts that follow from its shape or contents. */
typedef struct bly_facts {
    bly_fact *at;
    size_t n; /* of BLY_MAX_FACTS; what does not fit is dropped */
} bly_facts;

void bly_fact_uint(bly_facts *facts, const char *name, uint64_t value);
void bly_fact_real(bly_facts *facts, const char *name, double value);
void bly_fact_word(bly_facts *facts, const char *name, const char *word);

/* Part of the data of a filter that is to be combined with another: all of it,
 * or a piece while it is being read. The part begins at byte `at` of the data.
 * `at` and, except in the last part, nbytes are multiples of BLY_PART_UNIT,
 * which is a whole number of cells for any kind. One byte past the end may be
 * read. */
#define BLY_PART_UNIT 168 /* BLY_CELLS_UNIT */
typedef struct bly_part {
    const unsigned char *bytes; /* aligned for words */
    uint64_t at, nbytes;
    bool last;
    const bly_filter *src; /* owner of the bytes; may have no data itself */
} bly_part;

typedef struct bly_kind {
    uint32_t id; /* on disk: never changed, never reused */
    const char *name, *summary;
    const bly_param *params;
    uint32_t nparams;
    uint32_t traits; /* BLY_SELF_SIZED, ... */
    uint8_t nstate;  /* words of state, at most BLY_STATE_WORDS; a file with
                        another number is refused */
    bool lines;      /* data starts at a cache line, however small it is */

    /* -- shapes ------------------------------------------------------- */

    /* Choose a shape. Must honour every option in w. */
    bly_status (*plan)(const bly_want *w, bly_shape *out);

    /* Could plan() have made this shape, nbytes included? The shape may come
     * from an untrusted file, so this must not overflow. */
    bool (*sane)(const bly_shape *s);

    /* The false positive rate with n keys in it, by the exact formula. */
    double (*rate)(const bly_shape *s, double n);

    /* The number of bits in the kind's cells, where that is not 8 * nbytes. The
     * memory that plan() promises counts these bits. Where nbytes is 0, the
     * cells are in the layers that start() makes. NULL: 8 * nbytes. */
    uint64_t (*bits)(const bly_shape *s);

    /* Further facts: about a shape planned for w (f is NULL), or about a filter
     * (info; w is NULL). NULL: none. */
    void (*describe)(const bly_shape *s, const bly_want *w, const bly_filter *f,
                     bly_facts *out);

    /* -- a filter's life ------------------------------------------------ */

    /* Finish a new filter whose data is zero: set state, add layers. NULL:
     * zeros are an empty filter. */
    bly_status (*start)(bly_filter *f);

    /* After a load or a map, with sane shapes: could the kind have left state,
     * layers and counts like this? Reads no data. NULL: the kind has no state
     * and no layers. */
    bool (*sound)(const bly_filter *f);

    /* After a load whose checksum is right: could the kind have left this data?
     * NULL: any bytes will do. */
    bool (*check)(const bly_filter *f);

    /* Make aux, at the end of new, load, map and clone; release it, before the
     * filter is freed. NULL: no aux. */
    bly_status (*open)(bly_filter *f);
    void (*close)(bly_filter *f);
    size_t aux_bytes; /* size of aux, where there is one */

    /* Tell the hasher of f where its table is, whenever the data may have
     * moved. NULL: the hasher has no table. */
    void (*aim)(bly_filter *f);

    /* A mapped file may be checked block by block, as queries reach them. For
     * each of n hashes, report the bytes of the data that decide what has(),
     * count() and get() answer: by bly_reach() of filter.h, and for layers by
     * bly_filter_reach(). Bytes that lead to further bytes are read only after
     * they have been reported and found intact. Each key for which some bytes
     * are damaged gets its bit in bad. Reporting more bytes than are read is
     * allowed, fewer is not. NULL: an answer may depend on all bytes of f and
     * its layers. */
    void (*reach)(const bly_filter *f, const uint64_t *h, size_t n,
                  uint64_t *bad);

    /* Where the data is one array of bits: that array, for the functions of
     * bitset.h. NULL elsewhere. It also decides how the data is coded in files
     * (docs/format.md), so a kind must have it from the start or never. */
    struct bly_bitset (*bitset)(const bly_filter *f);

    /* Fill in items_estimate, items_sd, fill and fpr_now; may add facts that
     * follow only from the contents. */
    void (*stat)(const bly_filter *f, bly_stats *out);

    /* For kinds that can take keys from many threads at once: can a filter of
     * this shape? NULL: yes. */
    bool (*shares)(const bly_shape *s);

    /* Bring state and data of a shared filter whose writers were killed at any
     * instruction, or are still at work while it was copied, to what check()
     * accepts. Nothing that was added may be lost. NULL: there is nothing to
     * do. */
    void (*mend)(bly_filter *f);

    /* For kinds with remove(): the reason why a filter of this shape removes
     * nothing, so that remove() refuses every key that is there. It returns
     * NULL, or is NULL, where keys can be removed. */
    const char *(*keeps)(const bly_shape *s);

    /* The number n of sites into which the memory is divided: a key with hash h
     * touches only site h * n / 2^64 in add(). So threads whose keys have
     * different sites need no atomic operations. NULL: keys cannot be
     * separated. */
    uint64_t (*sites)(const bly_shape *s);

    /* add() or add_shared(), and has(), for integers, which bly_int_hash() or
     * bly_int_folded() hashes with the filter's seed. For kinds so fast that a
     * separate pass of hashing would show. NULL: the integers are hashed first.
     */
    bly_status (*add_ints)(bly_filter *f, const uint64_t *ints, size_t n,
                           uint64_t *fresh, size_t *ndone);
    void (*has_ints)(const bly_filter *f, const uint64_t *ints, size_t n,
                     uint64_t *maybe);

    /* Prefetch the memory that has() and add() of n hashes look at first,
     * without waiting for it; they will be called later. NULL: it cannot be
     * known in advance. */
    void (*fetch)(const bly_filter *f, const uint64_t *h, size_t n);

    /* Choose functions that do for one hash what has(), add() (or add_shared(),
     * where f is shared) and remove() do, and likewise for one integer, hashed
     * with turned. Set aid if they need it. Leave fields without a fast path as
     * they are. NULL: there is no fast path. */
    void (*one)(const bly_filter *f, bly_one *out);

    /* -- abilities: BLY_ABILITIES in bloomery.h ------------------------- */

    bly_status (*add)(bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *fresh, size_t *ndone);
    bly_status (*add_shared)(bly_filter *f, const uint64_t *h, size_t n,
                             uint64_t *fresh, size_t *ndone);
    void (*has)(const bly_filter *f, const uint64_t *h, size_t n,
                uint64_t *maybe);
    void (*remove)(bly_filter *f, const uint64_t *h, size_t n,
                   bly_status *each);
    bly_status (*increase)(bly_filter *f, const uint64_t *h, const uint64_t *by,
                           size_t n, size_t *ndone);
    void (*count)(const bly_filter *f, const uint64_t *h, size_t n,
                  uint64_t *counts);
    void (*get)(const bly_filter *f, const uint64_t *h, size_t n,
                uint64_t *values, uint64_t *present);
    bly_status (*set)(bly_filter *f, uint64_t h, uint64_t value);

    /* Static kinds: fill f, planned for f->items keys, from n hashes in any
     * order, which may repeat. At most f->items of them are distinct; build()
     * sets f->items to their number. values is parallel to h, or NULL; a hash
     * with two different values is BLY_EINVAL. Both arrays are scratch
     * (bly_hashes_unique() in core/sort.h sorts them). */
    bly_status (*build)(bly_filter *f, uint64_t *h, uint64_t *values, size_t n,
                        unsigned nthreads);

    /* Static kinds that learn, after build(), of keys that are not in the set.
     * h holds those for which has() still answers "maybe"; keys may repeat, and
     * keys of the set may be among them. h is scratch, as above. Called once,
     * with n = 0 where no such keys are known. NULL: nothing to learn. */
    bly_status (*deny)(bly_filter *f, uint64_t *h, size_t n, unsigned nthreads);

    /* Between build() and deny(): which of n hashes belong to keys of the set,
     * exactly. Never NULL if deny() is not. */
    void (*members)(const bly_filter *f, const uint64_t *h, size_t n,
                    uint64_t *in);

    /* Plan for n groups of keys: make the table and hasher of out. The table
     * belongs to the caller. Only for kinds with deny(). NULL: keys have no
     * groups. */
    bly_status (*group)(const bly_want *w, uint64_t seed,
                        const bly_group *groups, size_t n, const bly_mem *mem,
                        bly_grouping *out);

    /* Static kinds in which keys fall into shards can be built from more keys
     * than memory holds. Hash h belongs to the shard that is h scaled to
     * shards(). build_part() does the work of build() for the shards from first
     * to first + nshards - 1, from exactly the keys of these; it is called for
     * each shard once, in order. shard_bytes() is the memory that a shard of n
     * keys takes, per thread. All three NULL: all keys at once. */
    uint64_t (*shards)(const bly_shape *s);
    uint64_t (*shard_bytes)(const bly_shape *s, uint64_t n);
    bly_status (*build_part)(bly_filter *f, uint64_t first, uint64_t nshards,
                             uint64_t *h, uint64_t *values, size_t n,
                             unsigned nthreads);

    /* Do filters of these two shapes combine, in the functions below? NULL:
     * only if they are the same. */
    bool (*akin)(const bly_shape *a, const bly_shape *b);

    /* Combine two filters that agree in kind and hash and whose shapes
     * combine. */
    bly_status (*merge)(bly_filter *dst, const bly_filter *src);
    bly_status (*intersect)(bly_filter *dst, const bly_filter *src);
    bly_status (*compare)(const bly_filter *a, const bly_filter *b,
                          bly_likeness *out);

    /* The same for kinds that combine cell by cell: called for one part of the
     * source's data after another, from the first byte to the last. Counts and
     * state of dst are brought up to date with the last part. If a part fails,
     * dst can only be freed. NULL: whole filters only. */
    bly_status (*merge_part)(bly_filter *dst, const bly_part *p);
    bly_status (*intersect_part)(bly_filter *dst, const bly_part *p);

    /* Make a new filter from this one, without the keys. w is what the caller
     * wants, in the terms of plan() of `to`; any of items, fpr and bits may be
     * 0. For resize, `to` is the kind of f. */
    bly_status (*fold)(const bly_filter *f, bly_filter **out);
    bly_status (*resize)(const bly_filter *f, const struct bly_kind *to,
                         const bly_want *w, bly_filter **out);
    bly_status (*convert)(const bly_filter *f, const struct bly_kind *to,
                          const bly_want *w, bly_filter **out);
    bly_status (*tick)(bly_filter *f, uint64_t now);

    /* Is there a key whose order (bly_order() of core/hash.h) lies from a[i] to
     * b[i], where a[i] <= b[i]? The blocks that are read may not have been
     * checked yet (bly_reach()); where they are damaged the answer is "maybe".
     * The hashes that such a kind gets are bly_mix64() of the order of a key,
     * which are as good as any other; bly_unmix64() gives the order back. */
    void (*has_range)(const bly_filter *f, const uint64_t *a, const uint64_t *b,
                      size_t n, uint64_t *maybe);

    /* For kinds whose data is bits, with no requirement beyond check(), no
     * state and no layers: how many of the bits are in use. These come first;
     * the bits behind them are 0. */
    uint64_t (*raw)(const bly_shape *s);

    /* For kinds without raw() whose cells a program may write itself
     * (bly_cells_open()): derive the state of f from its cells. False: it does
     * not follow from them. */
    bool (*restate)(bly_filter *f);
} bly_kind;

/* The table. The first row is the default kind. A build that must be small may
 * define a shorter one. */
#ifndef BLY_KINDS
#define BLY_KINDS(X) \
    X(blocked)       \
    X(classic)       \
    X(compressed)    \
    X(counting)      \
    X(vicounting)    \
    X(spectral)      \
    X(cuckoo)        \
    X(quotient)      \
    X(countmin)      \
    X(spacecode)     \
    X(scalable)      \
    X(elastic)       \
    X(attenuated)    \
    X(aging)         \
    X(deletable)     \
    X(floom)         \
    X(generalized)   \
    X(xor)           \
    X(fuse)          \
    X(bloomier)      \
    X(ribbon)        \
    X(exact)         \
    X(range)

#endif
#define BLY_KIND_DECLARE_(name) extern const bly_kind bly_kind_##name;
BLY_KINDS(BLY_KIND_DECLARE_)
#undef BLY_KIND_DECLARE_

/* The kind in a row, with an id, or with a name (NULL: the default); NULL if
 * there is none. */
const bly_kind *bly_kind_row(size_t i);
const bly_kind *bly_kind_by_id(uint32_t id);
const bly_kind *bly_kind_by_name(const char *name);

/* The abilities of a kind as bits. */
uint32_t bly_kind_can(const bly_kind *kind);

/* Whether filters of this kind and shape can be shared by many writers. */
bool bly_shape_shares(const bly_kind *kind, const bly_shape *s);

/* The number of params that a filter keeps: all but those at the end that only
 * guide the plan. */
unsigned bly_kind_room(const bly_kind *kind);

/* The largest such number of any kind. */
unsigned bly_kinds_room(void);

/* Copy a shape. s may be that of a filter, and so cut off at the end. */
bly_shape bly_shape_copy(const bly_kind *kind, const bly_shape *s);

/* Bits of a shape, by kind->bits where there is one. */
uint64_t bly_shape_bits(const bly_kind *kind, const bly_shape *s);

/* The rate of a filter with n keys, for kinds that have a rate. It includes
 * what no kind can avoid: a key with the same 64-bit hash as another is taken
 * for it. */
double bly_shape_rate(const bly_kind *kind, const bly_shape *s, double n);

#endif
