/*
 * bloomery/sketch.h - sketches: what is heavy, how many, how alike
 *
 * Beside the filters of bloomery.h, which says what holds here too about
 * failure, ownership, threads and cost: the heaviest keys of a stream, the
 * number of different ones, and the likeness of texts.
 */
#ifndef BLOOMERY_SKETCH_H
#define BLOOMERY_SKETCH_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* --------------------------------------------------------- heaviest keys */

/* The heaviest keys of a stream, by name: the k keys with the largest total
 * weights, in memory that does not grow with the stream. Counts are at or below
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
 * If the last places matter, ask for more keys than you need (twice as many,
 * say): counts are close there.
 *
 * Threads. A list has one user at a time. For a stream that several threads
 * read, make one list per thread, all from the same spec, give each its share
 * in batches, and merge them at the end. Merging loses the weight of keys in
 * parts where they were too light to be noticed; if all keys with the same hash
 * go to the same thread, nothing is lost. */
typedef struct bly_topk bly_topk;

/* Zero in any field but k means "choose for me". */
typedef struct bly_topk_spec {
    size_t k;                    /* keys on the list, 1 to 2^24 */
    uint64_t bytes;              /* for candidates, 64 or more; the list itself
                                    and its keys come on top */
    double decay;                /* a candidate with count c loses one to
                                    another with probability decay^c; above 0,
                                    at most 1 */
    uint64_t seed;               /* of the hash and of the random choices */
    const unsigned char *secret; /* BLY_SECRET_BYTES, as in bly_spec */
    const bly_mem *mem;          /* as in bly_spec */
    bly_keying keying;           /* what the keys will be, which is saved with
                                    the list; they are hashed as they come */
} bly_topk_spec;

/* A key on a list; its bytes belong to the list and are valid until it
 * changes. */
typedef struct bly_topk_item { /* final */
    bly_bytes key;
    uint64_t count;
} bly_topk_item;

/* Make an empty list, which belongs to the caller until bly_topk_free(). */
BLY_SIZED(bly_status, bly_topk_new, bly_topk_spec,
          (const bly_topk_spec *spec, bly_topk **out), (spec, out));

/* Release t. NULL is allowed. */
void bly_topk_free(bly_topk *t);

/* Add weight to a key; 0 changes nothing. BLY_ERANGE if the sum of all weights
 * would pass 2^64 - 1; BLY_ENOMEM if a key on the list cannot be copied. */
bly_status bly_topk_add(bly_topk *t, const void *key, size_t len,
                        uint64_t weight);

/* The same for n keys; weights NULL: 1 each. Stops at the first key that
 * fails; *ndone, unless NULL, becomes the number of keys added. */
bly_status bly_topk_add_keys(bly_topk *t, const bly_bytes *keys,
                             const uint64_t *weights, size_t n, size_t *ndone);

/* The n heaviest keys, or as many as there are, heaviest first and those of
 * equal weight in the order of their bytes. Returns their number. */
size_t bly_topk_list(const bly_topk *t, bly_topk_item *items, size_t n);

/* The count of one key, which is 0 for most keys that are not on the list.
 * *listed, unless NULL, becomes whether the key is on it. */
uint64_t bly_topk_count(const bly_topk *t, const void *key, size_t len,
                        bool *listed);

/* The key that the last addition pushed off the list; false if there was
 * none. */
bool bly_topk_left(const bly_topk *t, bly_topk_item *out);

/* The sum of all weights, and how many keys are on the list. */
uint64_t bly_topk_total(const bly_topk *t);
size_t bly_topk_listed(const bly_topk *t);

/* What t was made from; secret and mem are NULL. And its hasher, which belongs
 * to t: NULL if it is keyed and was opened without its secret. */
BLY_SIZED(void, bly_topk_spec_of, bly_topk_spec,
          (const bly_topk *const t, bly_topk_spec *out), (t, out));
const bly_hasher *bly_topk_hasher(const bly_topk *t);

/* Make dst the list of both streams. Both must come from equal specs, apart
 * from mem, otherwise BLY_EUNFIT; a list cannot be merged with itself
 * (BLY_EINVAL). If it fails, dst is unchanged. */
bly_status bly_topk_merge(bly_topk *dst, const bly_topk *src);

/* --------------------------------------------------------- distinct keys */

/* How many different keys a stream has, in little memory: HyperLogLog. It works
 * on hashes, which must all come from the same hasher (bly_hash() and its
 * relatives, or any good 64-bit hash of the caller's).
 *
 * A sketch begins sparse: some hundred bytes, and nearly exact. When it has
 * seen more than 3/32 of 2^precision different hashes (1,536 at precision 14)
 * it becomes dense: 2^precision registers of 6 bits. What it is depends on the
 * hashes alone, not on their order or on how they came together.
 *
 * Threads. A sketch has one writer; for several, make one per thread and merge
 * them, which gives exactly the sketch of everything they saw. */
typedef struct bly_hll bly_hll;

/* An empty sketch; precision is from 4 to 18, 0 for 14. The standard deviation
 * of its estimate is at most 1.04 / sqrt(2^precision) of it: 0.8 % at 14, in 12
 * KiB. mem as in bly_spec. The sketch belongs to the caller until
 * bly_hll_free(). */
bly_status bly_hll_new(unsigned precision, const bly_mem *mem, bly_hll **out);

/* Release s. NULL is allowed. */
void bly_hll_free(bly_hll *s);

/* A copy of s, from the same memory, which belongs to the caller. */
bly_status bly_hll_copy(const bly_hll *s, bly_hll **out);

unsigned bly_hll_precision(const bly_hll *s);
bool bly_hll_sparse(const bly_hll *s);
size_t bly_hll_bytes(const bly_hll *s); /* of memory */

/* Where its hashes come from, which is saved with it: sketches of different
 * seeds or secrets are not merged. It is bly_hash() with seed 0 unless set,
 * which must be done before the first hash is added (BLY_EINVAL). The result
 * belongs to s; it is NULL if s is keyed and was opened without its secret. */
const bly_hasher *bly_hll_hasher(const bly_hll *s);
bly_status bly_hll_set_hasher(bly_hll *s, const bly_hasher *hasher);

/* What its keys are, likewise; unknown unless set. */
bly_keying bly_hll_keying(const bly_hll *s);
void bly_hll_set_keying(bly_hll *s, bly_keying keying);

/* Add n more hashes. Adding one again changes nothing. BLY_ENOMEM if a sparse
 * sketch cannot grow: those hashes for which it had room are in, and adding all
 * of them again later does no harm. A dense sketch takes all. */
bly_status bly_hll_add(bly_hll *s, const uint64_t *hashes, size_t n);

/* How many hashes were added, equal ones included, merged sketches too. */
uint64_t bly_hll_total(const bly_hll *s);

/* Make dst the sketch of both streams. BLY_EUNFIT if precisions, hashers or
 * keys differ. If it fails, dst is unchanged. */
bly_status bly_hll_merge(bly_hll *dst, const bly_hll *src);

/* An estimate of the number of different hashes. *sd, unless NULL, becomes its
 * standard deviation. Reads all of s. */
double bly_hll_estimate(const bly_hll *s, double *sd);

/* An estimate of how many hashes n sketches have in common, and of how many are
 * in s and in none of n others, with its standard deviation (NULL: not needed).
 * It comes from the sizes of unions, whose errors do not shrink with what is
 * left: if the deviation is not far below the estimate, nothing is known but
 * that it is small. BLY_EUNFIT as for bly_hll_merge(). */
#define BLY_HLL_MAX_COMMON 8
bly_status bly_hll_common(const bly_hll *const *sketches, size_t n,
                          double *estimate, double *sd);
bly_status bly_hll_only(const bly_hll *s, const bly_hll *const *others,
                        size_t n, double *estimate, double *sd);

/* A sketch as bytes, the same on every machine: how many there are; write them
 * to memory of the caller's; and a new sketch, which belongs to the caller,
 * from bytes that anyone may have written. BLY_EFORMAT if they are no sketch or
 * are damaged. */
size_t bly_hll_written_bytes(const bly_hll *s);
void bly_hll_write(const bly_hll *s, void *bytes);
bly_status bly_hll_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                        bly_hll **out);

/* ------------------------------------------------------ likeness of texts */

/* How much two texts have in common: cut them into shingles, which are n words
 * or n characters in a row, and compare the two sets: J = |A and B| / |A or B|.
 * A sketch of a few hundred bytes estimates J; banding finds the pairs worth
 * comparing among many texts. Definitions and errors are in docs/likeness.md.
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
 * Threads. A shingler has one user at a time, and so does a sketch that is
 * being added to; any number of threads may compare sketches. */

/* A word is a run of ASCII letters, ASCII digits and bytes from 0x80 up. ASCII
 * upper case is folded to lower case; everything else separates words. */
typedef enum bly_unit {
    BLY_WORDS, /* n words in a row */
    BLY_CHARS  /* n bytes in a row, of the words joined by single blanks */
} bly_unit;

#define BLY_MAX_SHINGLE 1024

/* Zero in any field means the default. */
typedef struct bly_shingling { /* final */
    bly_unit unit;
    unsigned size; /* n, to BLY_MAX_SHINGLE; 0: 5 words or 10 characters */
    uint64_t seed; /* of the hash of a word; characters have none */
} bly_shingling;

/* The shingles of a text. The hashes belong to the shingler and are valid until
 * it cuts another text or is freed; the caller may sort them in place. */
typedef struct bly_shingles {
    uint64_t *hashes; /* one per shingle, in the order of the text, repeated
                         ones included */
    size_t n;         /* a text of fewer than `size` units has one shingle,
                         a text without words has none */
    uint64_t nwords;
    uint64_t text; /* hash of all words in their order: equal for texts that
                      differ only in separators and ASCII case */
} bly_shingles;

typedef struct bly_shingler bly_shingler;

/* Make a shingler, which belongs to the caller until bly_shingler_free(). how
 * NULL: the default. mem as in bly_spec. */
bly_status bly_shingler_new(const bly_shingling *how, const bly_mem *mem,
                            bly_shingler **out);

/* Release s. NULL is allowed. */
void bly_shingler_free(bly_shingler *s);

/* Cut a text, which may be any bytes. The shingler keeps as much memory as the
 * largest text so far takes, and 8 bytes per shingle. If it fails (with
 * BLY_ENOMEM), *out has no shingles. */
BLY_SIZED(bly_status, bly_shingle, bly_shingles,
          (bly_shingler *const s, const void *text, size_t nbytes,
           bly_shingles *out),
          (s, text, nbytes, out));

/* Sort n hashes in place and drop repeated ones. Returns how many are left. */
size_t bly_distinct(uint64_t *hashes, size_t n);

/* Exactly how much two sets have in common. Both must be sorted and without
 * repetition, as bly_distinct() leaves them. The share of a that is in b is
 * in_both / na. An empty set resembles nothing: J of two empty sets is 0. */
typedef struct bly_overlap { /* final */
    uint64_t in_both, in_either;
    double jaccard;
} bly_overlap;
bly_overlap bly_overlap_of(const uint64_t *a, size_t na, const uint64_t *b,
                           size_t nb);

/* --------------------------------------------------- sketches of likeness */

/* A sketch has k components for a set of shingles; two sets of likeness J agree
 * in about J k of them. The families in the order of their numbers on disk:
 * name, word, description. */
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

/* The word of a family, such as "fss", and its description. NULL past the last
 * one. */
const char *bly_family_name(unsigned family);
const char *bly_family_help(unsigned family);

/* The family with this word. BLY_EINVAL if there is none. */
bly_status bly_family_named(const char *word, bly_family *out);

#define BLY_MAX_COMPONENTS 512

/* What must agree for two sketches to be compared. Zero: the default. */
typedef struct bly_sketch_spec {
    bly_shingling shingling;
    bly_family family;
    unsigned k;         /* components, 1 to BLY_MAX_COMPONENTS; 0: 128 */
    const bly_mem *mem; /* as in bly_spec; need not agree */
} bly_sketch_spec;

/* Replace zeros by the defaults. BLY_EINVAL, with spec unchanged, if something
 * is out of range. */
BLY_SIZED(bly_status, bly_sketch_spec_check, bly_sketch_spec,
          (bly_sketch_spec *const spec), (spec));

/* BLY_OK if sketches of both specs can be compared; otherwise BLY_EUNFIT, and
 * bly_error() names what differs. Both specs must be as bly_sketch_spec_check()
 * leaves them. */
BLY_SIZED(bly_status, bly_sketch_spec_fits, bly_sketch_spec,
          (const bly_sketch_spec *a, const bly_sketch_spec *b), (a, b));

/* A spec as BLY_SKETCH_HEAD bytes, the same on every machine, for files that
 * hold many sketches; and a spec from bytes that anyone may have written, or
 * BLY_EFORMAT. */
#define BLY_SKETCH_HEAD 32
BLY_SIZED(void, bly_sketch_spec_write, bly_sketch_spec,
          (const bly_sketch_spec *spec, void *bytes), (spec, bytes));
BLY_SIZED(bly_status, bly_sketch_spec_read, bly_sketch_spec,
          (const void *bytes, size_t nbytes, bly_sketch_spec *out),
          (bytes, nbytes, out));

typedef struct bly_sketch bly_sketch;

/* Make the sketch of no shingles, which belongs to the caller until
 * bly_sketch_free(). */
BLY_SIZED(bly_status, bly_sketch_new, bly_sketch_spec,
          (const bly_sketch_spec *spec, bly_sketch **out), (spec, out));

/* Release s. NULL is allowed. */
void bly_sketch_free(bly_sketch *s);

/* The spec of s, with the defaults filled in. It belongs to s. */
const bly_sketch_spec *bly_sketch_spec_of(const bly_sketch *s);

/* Forget all shingles. */
void bly_sketch_clear(bly_sketch *s);

/* Add n more shingles, in any order, repeated ones included; the sketch is the
 * same whether they come all at once or in parts. BLY_EREADONLY if s was read
 * from compact bytes. */
bly_status bly_sketch_add(bly_sketch *s, const uint64_t *hashes, size_t n);

/* Make dst the sketch of the union. BLY_EUNFIT if their specs differ,
 * BLY_EREADONLY if one was read from compact bytes. */
bly_status bly_sketch_merge(bly_sketch *dst, const bly_sketch *src);

/* The k components of s, for comparing and banding; false, with out unchanged,
 * if s has no shingles or is compact. */
bool bly_sketch_components(const bly_sketch *s, uint32_t *out);

/* How many of k components agree. */
unsigned bly_components_equal(const uint32_t *a, const uint32_t *b, unsigned k);

/* An estimate of J with its standard deviation. */
typedef struct bly_resemblance { /* final */
    double jaccard;
    double sd;
    unsigned equal; /* components that agree */
    unsigned bits;  /* compared of each: 32, or fewer if compact */
} bly_resemblance;

/* The estimate if `equal` of k components agree in `bits` bits. The deviation
 * is that of k independent components, which is above that of fss. */
bly_resemblance bly_resemblance_of(unsigned equal, unsigned k, unsigned bits);

/* Estimate the likeness of two sketches. BLY_EUNFIT if their specs differ. The
 * deviation is as above, and larger for oph sketches of few shingles. A sketch
 * without shingles resembles nothing, not even another such sketch. */
bly_status bly_sketch_compare(const bly_sketch *a, const bly_sketch *b,
                              bly_resemblance *out);

/* A sketch as bytes, the same on every machine, in memory of the caller's. bits
 * 0 writes everything, so that the sketch can be added to and merged when it is
 * loaded; 1 to 32 write that many bits of each component, which can only be
 * compared. A compact sketch can be written with the bits that it has or fewer,
 * otherwise BLY_EINVAL; bly_sketch_bits() says how many it has, 0 if it is
 * whole. */
unsigned bly_sketch_bits(const bly_sketch *s);
size_t bly_sketch_written_bytes(const bly_sketch *s, unsigned bits);
bly_status bly_sketch_write(const bly_sketch *s, unsigned bits, void *bytes);

/* A new sketch, which belongs to the caller, from bytes that anyone may have
 * written. BLY_EFORMAT if they are no sketch or are damaged. mem as in
 * bly_spec. */
bly_status bly_sketch_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                           bly_sketch **out);

/* --------------------------------------------------------------- banding */

/* Components in bands of r rows: two texts are a candidate pair if all r
 * components of some band agree. The chance that a pair of likeness s becomes
 * one is 1 - (1 - s^rows)^bands. */
typedef struct bly_bands { /* final */
    unsigned bands, rows;
} bly_bands;
double bly_bands_chance(bly_bands b, double likeness);

/* The largest number of rows for which k / rows bands find a pair at the
 * threshold with a probability of at least `recall` (0: 0.995). BLY_EINVAL if k
 * components cannot do that. */
bly_status bly_bands_choose(unsigned k, double threshold, double recall,
                            bly_bands *out);

/* The bands that minimise the total error: the area of candidates below the
 * threshold plus that of missed pairs above it. They miss many pairs at the
 * threshold itself, and are here for comparison. */
bly_status bly_bands_balance(unsigned k, double threshold, bly_bands *out);

/* The keys of all bands, from b.bands * b.rows components: texts that have one
 * in common are candidates. keys has room for b.bands. */
void bly_bands_keys(bly_bands b, const uint32_t *components, uint64_t *keys);

/* --------------------------------------------- hashing that keeps likeness */

/* Sign hashing (SimHash). Each hash votes with its weight (NULL: 1 each) for
 * those of its 64 bits that are one and against those that are zero; bits that
 * are not voted down are set. Sets at an angle theta differ in 64 theta / pi
 * bits on average; for weights of 1, cos theta = |A and B| / sqrt(|A| |B|).
 * Hashes must be distinct. */
uint64_t bly_simhash(const uint64_t *hashes, const double *weights, size_t n);
unsigned bly_hamming(uint64_t a, uint64_t b); /* bits that differ */
double bly_simhash_angle(uint64_t a, uint64_t b);

/* A sample of r of nbits bits (bit j is bit j % 8 of byte j / 8), drawn by
 * seed, as one number. r is at most 64, and nbits is not 0. Two arrays that
 * differ in d bits agree in all r with probability (1 - d/nbits)^r. */
uint64_t bly_sample_bits(const void *bits, uint64_t nbits, uint64_t seed,
                         unsigned r);

/* ------------------------------------------------------ sketches in files */

/* Sketches are saved as .bly files, like filters, and read on every machine. A
 * bly_stored is a sketch of any type: for files of which it is not known before
 * what they hold, and for memory that others own (a row of a database). The
 * types in the order of their numbers on disk: name, word, description. */
#define BLY_STORED_TYPES(X)                                    \
    X(HLL, "hyperloglog", "how many different keys there are") \
    X(TOPK, "topk", "the heaviest keys")                       \
    X(LIKENESS, "minhash", "how alike texts are")

typedef enum bly_stored_type {
    BLY_STORED_NONE,
#define BLY_STORED_ROW_(name, word, help) BLY_STORED_##name,
    BLY_STORED_TYPES(BLY_STORED_ROW_)
#undef BLY_STORED_ROW_
        BLY_STORED_COUNT_
} bly_stored_type;

typedef struct bly_stored { /* final */
    bly_stored_type type;
    bly_hll *hll; /* that of its type; the others are NULL */
    bly_topk *topk;
    bly_sketch *likeness;
    void *reserved[4]; /* NULL: for types to come */
} bly_stored;

/* The word of a type, such as "topk", and its description. NULL if there is no
 * such type. */
const char *bly_stored_name(bly_stored_type type);
const char *bly_stored_help(bly_stored_type type);

/* Which type of sketch do these first bytes of a file, 72 or more, announce?
 * BLY_STORED_NONE: it is something else, a filter for instance. The file may
 * still be damaged. */
#define BLY_STORED_PEEK 72
bly_stored_type bly_stored_peek(const void *bytes, size_t nbytes);

/* Write s in the .bly format as bly_write() does; and how many bytes that will
 * be. */
bly_status bly_stored_write(const bly_stored *s, bly_put *put, void *ctx);
uint64_t bly_stored_bytes(const bly_stored *s);

/* Write s to a file, which is replaced as a whole as by bly_save(). */
bly_status bly_stored_save(const bly_stored *s, const char *path);

/* A new sketch, which belongs to the caller until bly_stored_free(), from bytes
 * or a file that anyone may have written. BLY_EFORMAT if that is no sketch or
 * is damaged. Of `how` (NULL: the default), secret, blind, max_bytes and mem
 * count: a keyed sketch that was opened blind can be described and merged, and
 * takes no keys. If it fails, *out is of no type. */
BLY_SIZED(bly_status, bly_stored_load, bly_access,
          (const void *bytes, size_t nbytes, const bly_access *how,
           bly_stored *out),
          (bytes, nbytes, how, out));
BLY_SIZED(bly_status, bly_stored_open, bly_access,
          (const char *path, const bly_access *how, bly_stored *out),
          (path, how, out));

/* Release the sketch. One of no type is allowed. */
void bly_stored_free(bly_stored *s);

/* Merge as bly_hll_merge(), bly_topk_merge() and bly_sketch_merge() do.
 * BLY_EUNFIT if the types differ. */
bly_status bly_stored_merge(bly_stored *dst, const bly_stored *src);

/* Change the sketch in a file as bly_update() changes a filter: under its lock,
 * as a whole or not at all. If there is no file, one is made first of what
 * `first` holds; NULL: that is an error. */
typedef bly_status bly_stored_change(bly_stored *s, void *ctx);
BLY_SIZED(bly_status, bly_stored_update, bly_access,
          (const char *path, const bly_access *how, const bly_stored *first,
           bly_stored_change *change, void *ctx),
          (path, how, first, change, ctx));

/* The same for a type that is known. mem as in bly_spec. A keyed sketch is
 * opened by bly_stored_open(), which takes its secret. */
bly_status bly_hll_save(const bly_hll *s, const char *path);
bly_status bly_hll_open(const char *path, const bly_mem *mem, bly_hll **out);
bly_status bly_topk_save(const bly_topk *t, const char *path);
bly_status bly_topk_open(const char *path, const bly_mem *mem, bly_topk **out);
bly_status bly_sketch_save(const bly_sketch *s, const char *path);
bly_status bly_sketch_open(const char *path, const bly_mem *mem,
                           bly_sketch **out);

BLY_END_DECLS
#endif
