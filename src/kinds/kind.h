/*
 * kind.h - what a kind of filter is: a table row
 *
 * A kind describes itself: its name, its parameters, and a function for each
 * thing it can do. A NULL function is a thing it cannot do, and nowhere else
 * is a capability written down. The command, the adapters, the laws in
 * tests/, the fuzzers and the bench walk the table at the end of this file.
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
 *         constant, unless a filter becomes another one (bly_become()) as it
 *         grows; checked by sane() on load
 * state   integers that change as keys come (a clock, a generator); saved
 * data    the cells, little-endian wherever a word has an order (bits.h), so
 *         that a file is the memory and can be mapped on any machine; aligned
 *         for words, and from BLY_ALIGNED_FROM bytes on at a cache line
 * layers  of kinds made of filters: each a filter of its own
 *
 * Contracts that hold for every function below:
 *  - the caller (src/api) has checked arguments, readonly and capability, and
 *    pointers to results are never NULL, except fresh; bitmaps come zeroed;
 *  - hashes are 64-bit values of good quality; what a kind needs beyond, it
 *    derives with bly_mix64() or a multiplication by an odd constant;
 *  - a function that fails has changed nothing, except that add() and
 *    increase() have taken the *ndone keys before the one that failed;
 *  - what only reads a filter (has, count, get, stat, describe, compare, and
 *    the source of merge, intersect, fold, resize, convert) is safe for any
 *    bytes in data: a mapped file may be damaged. It may answer nonsense; it
 *    may not read outside or run for ever. sound() guards state and layers,
 *    check() the rest of what writers rely on.
 *  - a filter that a kind makes comes from bly_filter_make() in filter.h.
 */
#ifndef BLY_KIND_H
#define BLY_KIND_H

#include <bloomery.h>

#include "core/memory.h"

typedef struct bly_shape {
    uint64_t nbytes;            /* size of data */
    uint64_t p[BLY_MAX_PARAMS]; /* by the kind's params; unused ones 0 */
} bly_shape;

/* Parameters of type BLY_REAL are kept in p[] as their 64 bits. */
double bly_shape_real(const bly_shape *s, unsigned i);
void bly_shape_set_real(bly_shape *s, unsigned i, double value);

#define BLY_STATE_WORDS 8
#define BLY_MAX_LAYERS                                     \
    64 /* a doubling each: more keys than there are hashes \
        */

/* The short ways for one key: no bitmap, no ring, and so few instructions that
 * the processor begins with the next call while this one waits for memory. The
 * kind chooses them for shape and processor, and bly_filter_ready() for what
 * else a filter may be: mapped, keyed, shared. So nothing is asked on the way.
 */
typedef struct bly_ways {
    bool (*has)(const bly_filter *f, uint64_t h); /* never NULL */
    bly_status (*add)(bly_filter *f, uint64_t h); /* NULL: by a batch of one */
    /* The same of the integer whose eight bytes are the key. */
    bool (*has_int)(const bly_filter *f, uint64_t key);
    bly_status (*add_int)(bly_filter *f, uint64_t key);
} bly_ways;

/* What a kind chooses. */
typedef struct bly_one {
    bly_ways ways;
    uint64_t aid; /* what else it computes once; 0 where there are layers */
} bly_one;

/* What most filters do not have: those without it share one of zeros, which
 * there is for each hash that needs nothing but seed 0. So it is read without
 * asking, and written by bly_filter_extra(). */
typedef struct bly_extra {
    bly_hasher hasher;     /* zeros in secret where blind */
    uint64_t turned;       /* its seed, as bly_int_hash_turned() takes it */
    uint64_t secret_check; /* identifies the secret; 0 unless keyed */
    uint64_t max_bytes;    /* 0: no limit */
    void *aux;             /* the kind's own, by open() and close() */
    struct bly_meta *meta; /* what its owner says of its keys; NULL: nothing,
                              and of layers always */
    struct bly_outside *outside;
} bly_extra;

/* Memory that is not the filter's own block: NULL where there is none. */
typedef struct bly_outside {
    bly_mem mem;     /* a source that bly_mem_number() has no number for */
    bly_block block; /* what holds data; its base is NULL where that is in the
                        body, or in a mapped file */
    void *map;       /* of the root of a mapped file */
    size_t map_bytes;
    uint64_t
        payload_sum; /* of the data, where mapped: bly_verify() expects it */
    struct bly_sums *sums; /* instead, where the file has one for each block
                              of the data; NULL elsewhere (core/sums.h) */
} bly_outside;

/* A filter of 100 keys is asked for as often as one of a billion, and there may
 * be millions of them: so the struct is as small as it can be, and ends with
 * the params that its kind has, of which bly_shape_of() makes a whole shape. An
 * assignment of `shape` or of a filter would copy what is not there.
 *
 * The body is one block: the words of state that the kind has, and the data
 * behind them. Data that is mapped, from a file or since it is large, lies
 * outside. */
struct bly_filter {
    const struct bly_kind *kind;
    const bly_ways *ways; /* shared by many filters: bly_filter_ready() */
    unsigned char *data;  /* shape.nbytes bytes */
    uint64_t *state;      /* the body: kind->nstate words, and data */
    bly_extra *extra;     /* never NULL */
    union {
        bly_filter **layer; /* where there are places */
        uint64_t aid;       /* of bly_one, where there are none */
    };
    uint64_t items;  /* capacity */
    double fpr;      /* rate at capacity, as planned; NAN: none */
    uint64_t nadded; /* atomic: additions that changed something */
    uint8_t nlayers;
    uint8_t format; /* version of the file that it came from; 0: none */
    uint8_t memory; /* bly_mem_number(); BLY_MEM_OWN: outside->mem */
    uint8_t room;   /* params that it has place for */
    uint8_t places; /* in layer; all of them where a filter that grows is
                       shared, since its readers are not asked */
    bool shared;
    bool readonly : 1, blind : 1;
    bool coded : 1;   /* written so: bly_set_coded() */
    bool compact : 1; /* written so: bly_set_compact() */
    bool former : 1;  /* and that as it once was, as the file it came from */
    bool inside : 1;  /* data is in the body */
    bly_shape shape;  /* the last: cut off behind `room` params */
};

/* What stands in the metadata of a file: entries, byte for byte, that
 * format/meta.h reads and makes, and what they say of the keys. */
typedef struct bly_meta {
    bly_keying keying;
    uint32_t nbytes;
    unsigned char at[];
} bly_meta;

struct bly_bitset; /* bitset.h */
struct bly_sums;   /* core/sums.h */

/* What plan() is asked: items is never 0, and of fpr and bits exactly one is
 * 0: choose that. BLY_SELF_SIZED kinds get all three as the
 * caller gave them, zeros included. opt holds the options by the number of
 * their param; where given[i] is false opt[i] holds the default, or 0 if that
 * is automatic. */
typedef struct bly_want {
    uint64_t items;
    double fpr;
    uint64_t bits;
    uint64_t max_value; /* of all keys, or 1 if that is 0; 0: not known */
    double mean;        /* additions per different key; 0: not known */
    const struct bly_grouping *groups; /* that keys stand in; NULL: none */
    uint64_t opt[BLY_MAX_PARAMS];
    bool given[BLY_MAX_PARAMS];
} bly_want;

double bly_want_real(const bly_want *w, unsigned i);

/* Groups of keys, as they were planned for: what becomes the data and the state
 * of the filter, and what else plan() and the builder have to know. */
typedef struct bly_grouping {
    bly_block table;
    uint64_t nbytes;
    uint64_t state[BLY_STATE_WORDS];
    bly_hasher hasher; /* aimed at the table */
    uint64_t others;   /* keys that are not in the set */
    double pass, bits; /* as the kind plans */
} bly_grouping;

/* Give w the value of kind's option `name`, as if a caller had; and that of a
 * param of a shape. For kinds made of others. BLY_EINVAL if there is none of
 * that name. */
struct bly_kind;
bly_status bly_want_set(const struct bly_kind *kind, bly_want *w,
                        const char *name, uint64_t value);
bly_status bly_shape_get(const struct bly_kind *kind, const bly_shape *s,
                         const char *name, uint64_t *out);

/* For descriptors: what serves several threads and mapped files, of which
 * WebAssembly has none; and what its module of few bytes does without: sets,
 * folding, help, what follows from a shape (bindings/wasm/lean/). */
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

/* A row of a table of params: name, type, and what else there is to say; and
 * the words of a choice. */
#define BLY_PARAM(name_, type_, ...)                  \
    {                                                 \
        .name = (name_), .type = (type_), __VA_ARGS__ \
    }
#define BLY_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* The number of a word among the choices of a param of owner, which is of the
 * sort "kind" or "format"; BLY_EINVAL, with all of them, if it is none. */
bly_status bly_read_choice(const bly_param *param, const char *sort,
                           const char *owner, const char *text, uint64_t *out);

/* Where a kind tells what follows from its shape or contents. */
typedef struct bly_facts {
    bly_fact *at;
    size_t n; /* of BLY_MAX_FACTS; what does not fit is dropped */
} bly_facts;

void bly_fact_uint(bly_facts *facts, const char *name, uint64_t value);
void bly_fact_real(bly_facts *facts, const char *name, double value);
void bly_fact_word(bly_facts *facts, const char *name, const char *word);

/* Part of the data of a filter that fits another: all, or a piece of what is
 * being read. `at` is where it begins there, a multiple of BLY_PART_UNIT, which
 * is whole cells of any kind; so is nbytes but for the last part. A byte more
 * than that can be read. */
#define BLY_PART_UNIT 168 /* BLY_CELLS_UNIT */
typedef struct bly_part {
    const unsigned char *bytes; /* aligned for words */
    uint64_t at, nbytes;
    bool last;
    const bly_filter *src; /* whose it is; may be without data */
} bly_part;

typedef struct bly_kind {
    uint32_t id; /* on disk: never changed, never reused */
    const char *name, *summary;
    const bly_param *params;
    uint32_t nparams;
    uint32_t traits; /* BLY_SELF_SIZED, ... */
    uint8_t nstate;  /* words of state, at most BLY_STATE_WORDS; a file with
                        others is refused */
    bool lines;      /* data starts at a cache line, however small it is */

    /* -- shapes ------------------------------------------------------- */

    /* Choose a shape. Must honour every option in w. */
    bly_status (*plan)(const bly_want *w, bly_shape *out);

    /* Could plan() have made this shape, nbytes included? Sees bytes from
     * outside; must not overflow. */
    bool (*sane)(const bly_shape *s);

    /* The false positive rate with n keys in it, by the exact formula. */
    double (*rate)(const bly_shape *s, double n);

    /* Cells, in bits, that the kind works on, where that is not 8 nbytes;
     * plan's memory promise is about them. Where nbytes is 0 they are in the
     * layers that start() makes. NULL: 8 * nbytes. */
    uint64_t (*bits)(const bly_shape *s);

    /* What else follows: from a shape for w (plan; f is NULL), or for a filter
     * (info; w is NULL). NULL: nothing. */
    void (*describe)(const bly_shape *s, const bly_want *w, const bly_filter *f,
                     bly_facts *out);

    /* -- a filter's life ------------------------------------------------ */

    /* Finish a new filter whose data is zero: set state, add layers. NULL:
     * zeros are an empty filter. */
    bly_status (*start)(bly_filter *f);

    /* After a load or a map of sane shapes: are state, layers and counts such
     * as the kind leaves them? Reads no data. NULL: no state, no layers. */
    bool (*sound)(const bly_filter *f);

    /* After a load with the checksum right: is the data such as the kind
     * leaves it? NULL: any bytes are. */
    bool (*check)(const bly_filter *f);

    /* Make and release aux, at the end of new, load, map and clone, and before
     * the filter goes. NULL: no aux. */
    bly_status (*open)(bly_filter *f);
    void (*close)(bly_filter *f);
    size_t aux_bytes; /* of it, where there is one */

    /* Let f->hasher know where its table is, whenever the data may have moved.
     * NULL: it has none. */
    void (*aim)(bly_filter *f);

    /* A mapped file may be checked as it is asked: tell, by bly_reach() of
     * filter.h, which bytes of the data decide what has(), count() and get()
     * say of each of n hashes; for layers, by bly_filter_reach(). Bytes that
     * lead to others are read after they were told of, and only if they are
     * right. A bit of bad is set for each key of which some are not. More may
     * be told than is read, never less. NULL: any bytes of it and its layers.
     */
    void (*reach)(const bly_filter *f, const uint64_t *h, size_t n,
                  uint64_t *bad);

    /* Where the data is one array of bits: that array, for the functions of
     * bitset.h. NULL elsewhere. It also decides how the data is coded in files
     * (docs/format.md), so a kind has it from the beginning or never. */
    struct bly_bitset (*bitset)(const bly_filter *f);

    /* Fill in items_estimate, items_sd, fill and fpr_now; may add facts that
     * only the contents tell. */
    void (*stat)(const bly_filter *f, bly_stats *out);

    /* Can a filter of this shape take keys from many threads at once, as its
     * kind can in general? NULL: yes. */
    bool (*shares)(const bly_shape *s);

    /* Why nothing can be removed from a filter of this shape, though its kind
     * can in general: its remove() refuses all keys that are there. NULL: that
     * is not so. */
    const char *(*keeps)(const bly_shape *s);

    /* Copy to out those of n keys that are of a part, from 0 to nparts - 1; how
     * many. Keys of different parts touch different memory in add(), so that
     * a thread for each part needs no atomic operations. NULL: keys do not lie
     * apart. */
    size_t (*pick)(const bly_filter *f, unsigned part, unsigned nparts,
                   const uint64_t *h, size_t n, uint64_t *out);

    /* add() or add_shared(), and has(), of integers that bly_int_hash() makes
     * into hashes with the filter's seed: for kinds that are so fast that a
     * pass of hashing would show. NULL: they are hashed first. */
    bly_status (*add_ints)(bly_filter *f, const uint64_t *ints, size_t n,
                           uint64_t *fresh, size_t *ndone);
    void (*has_ints)(const bly_filter *f, const uint64_t *ints, size_t n,
                     uint64_t *maybe);

    /* Send for the memory that has() and add() of n hashes look at first, and
     * do not wait for it: they will be called later. NULL: nothing can be
     * known so early. */
    void (*fetch)(const bly_filter *f, const uint64_t *h, size_t n);

    /* Choose what does for one hash the same as has() and add() or, where f is
     * shared, add_shared(); for one integer, hashed with turned, likewise; and
     * aid where that needs it. What has no short way is left as it is. NULL:
     * nothing has. */
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
     * order, which may repeat; their distinct number is at most f->items, and
     * is what build() leaves there. values is parallel to h, or NULL; a hash
     * with two different ones is BLY_EINVAL. Both arrays are scratch
     * (bly_hashes_unique() in core/sort.h sorts them). */
    bly_status (*build)(bly_filter *f, uint64_t *h, uint64_t *values, size_t n,
                        unsigned nthreads);

    /* Static kinds that are told, after build(), of keys that are not in the
     * set: h are those of which has() says "maybe" so far, any number of times,
     * and keys that are in the set may be among them. Scratch, as above. Called
     * once, with none where none are known. NULL: nothing to learn. */
    bly_status (*deny)(bly_filter *f, uint64_t *h, size_t n, unsigned nthreads);

    /* Between build() and deny(): which of n hashes are of keys of the set,
     * exactly. With deny(), never NULL. */
    void (*members)(const bly_filter *f, const uint64_t *h, size_t n,
                    uint64_t *in);

    /* Plan for n groups of keys: table and hasher of out. The table belongs to
     * the caller. With deny(); NULL: keys do not stand in groups. */
    bly_status (*group)(const bly_want *w, uint64_t seed,
                        const bly_group *groups, size_t n, const bly_mem *mem,
                        bly_grouping *out);

    /* Static kinds in which keys fall into shards, h into number h scaled to
     * shards(), can be built from more keys than memory holds: build_part()
     * does what build() does for the shards from first to first + nshards - 1,
     * from the keys of these and no others; each shard once, in order.
     * shard_bytes() is the memory this takes for a shard of n keys, once for
     * each thread. NULL, all three: all keys at once. */
    uint64_t (*shards)(const bly_shape *s);
    uint64_t (*shard_bytes)(const bly_shape *s, uint64_t n);
    bly_status (*build_part)(bly_filter *f, uint64_t first, uint64_t nshards,
                             uint64_t *h, uint64_t *values, size_t n,
                             unsigned nthreads);

    /* Do filters of these two shapes combine, in the functions below? NULL:
     * only if they are the same. */
    bool (*akin)(const bly_shape *a, const bly_shape *b);

    /* Two filters that agree in kind and hash, and whose shapes combine. */
    bly_status (*merge)(bly_filter *dst, const bly_filter *src);
    bly_status (*intersect)(bly_filter *dst, const bly_filter *src);
    bly_status (*compare)(const bly_filter *a, const bly_filter *b,
                          bly_likeness *out);

    /* The same where it works cell by cell, for one part of the source's data
     * after another, from the first byte to the last one. dst is brought up to
     * date with the last. A part that fails leaves a dst that can only be
     * freed. NULL: whole filters only. */
    bly_status (*merge_part)(bly_filter *dst, const bly_part *p);
    bly_status (*intersect_part)(bly_filter *dst, const bly_part *p);

    /* A new filter from this one, without the keys. w is what the caller
     * wants of it, read as by plan() of `to`; of items, fpr and bits any may
     * be 0. resize: `to` is the kind of f. */
    bly_status (*fold)(const bly_filter *f, bly_filter **out);
    bly_status (*resize)(const bly_filter *f, const struct bly_kind *to,
                         const bly_want *w, bly_filter **out);
    bly_status (*convert)(const bly_filter *f, const struct bly_kind *to,
                          const bly_want *w, bly_filter **out);
    bly_status (*tick)(bly_filter *f, uint64_t now);

    /* Is there a key whose order (bly_order() of core/hash.h) is from a[i] to
     * b[i], which is not less? What is asked may be unread (bly_reach()); of
     * damaged bytes the answer is "maybe". Such a kind gets hashes that are
     * bly_mix64() of the order of a key, as good as any other; bly_unmix64()
     * gives it back. */
    void (*has_range)(const bly_filter *f, const uint64_t *a, const uint64_t *b,
                      size_t n, uint64_t *maybe);

    /* Where the data is bits and check() all that is asked of them, and there
     * is neither state nor a layer: how many of them are in use. They are the
     * first, and those behind them are 0. */
    uint64_t (*raw)(const bly_shape *s);
} bly_kind;

/* The table. The first row is the default kind. A build that has few bytes to
 * spend may give a shorter one. */
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

/* The kind of a row, of an id, of a name (NULL: the default); else NULL. */
const bly_kind *bly_kind_row(size_t i);
const bly_kind *bly_kind_by_id(uint32_t id);
const bly_kind *bly_kind_by_name(const char *name);

/* The abilities of a kind as bits. */
uint32_t bly_kind_can(const bly_kind *kind);

/* Whether filters of this kind and shape can be shared by many writers. */
bool bly_shape_shares(const bly_kind *kind, const bly_shape *s);

/* Params of a filter, without those at the end that only guide the plan and are
 * never kept. */
unsigned bly_kind_room(const bly_kind *kind);

/* The most of these that any kind has. */
unsigned bly_kinds_room(void);

/* A whole shape from one that may be a filter's, and so be cut off. */
bly_shape bly_shape_copy(const bly_kind *kind, const bly_shape *s);

/* Bits of a shape, by kind->bits where there is one. */
uint64_t bly_shape_bits(const bly_kind *kind, const bly_shape *s);

/* The rate of a filter with n keys, of a kind that has one: whatever the kind,
 * a key whose hash is that of another is taken for it. */
double bly_shape_rate(const bly_kind *kind, const bly_shape *s, double n);

#endif
