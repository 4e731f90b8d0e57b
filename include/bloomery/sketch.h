/*
 * bloomery/sketch.h - sketches: heavy keys, distinct keys, similar texts
 * SPDX-License-Identifier: MIT
 *
 * Besides the filters of bloomery.h, the library has sketches. They find the
 * heaviest keys of a stream, count its distinct keys, and measure how alike
 * texts are, or how close vectors. What bloomery.h says about failure,
 * ownership, threads and cost holds here too.
 */
#ifndef BLOOMERY_SKETCH_H
#define BLOOMERY_SKETCH_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* --------------------------------------------------------- heaviest keys */

/* The heaviest keys of a stream, by name: the k keys with the largest total
 * weights, in memory that does not grow with the stream. Counts are at or below
 * the truth, hardly ever above it; those of keys that were heavy from early on
 * are exact. The same additions in the same order give the same list.
 *
 *     bly_topk *t;
 *     bly_topk_item top[10];
 *     if (bly_topk_new(&(bly_topk_spec){ .k = 10 }, &t))
 *         errx(2, "%s", bly_error());
 *     while (read_line(&line, &len))
 *         if (bly_topk_add(t, line, len, 1))
 *             errx(2, "%s", bly_error());
 *     const size_t n = bly_topk_list(t, top, 10);
 *
 * Counts are close together in the last places of the list. If these matter,
 * ask for more keys than you need (twice as many, say).
 *
 * Threads. A list has one user at a time. If several threads read the stream,
 * make one list per thread, all from the same spec, give each its share in
 * batches, and merge the lists at the end. Merging loses the weight that a key
 * had in parts where it was too light to be noticed. If all keys with the same
 * hash go to the same thread, nothing is lost. */
typedef struct bly_topk bly_topk;

/* Zero in any field but k means "choose for me". */
typedef struct bly_topk_spec {
    size_t k;                    /* keys on the list, 1 to 2^24 */
    uint64_t bytes;              /* for candidates, 64 or more; the list itself
                                    and its keys come in addition */
    double decay;                /* a candidate with count c loses one to
                                    another with probability decay^c; above 0,
                                    at most 1 */
    uint64_t seed;               /* of the hash and of the random choices */
    const unsigned char *secret; /* BLY_SECRET_BYTES, as in bly_spec */
    const bly_mem *mem;          /* as in bly_spec */
    bly_keying keying;           /* what the keys will be, saved with the
                                    list; they are hashed as they come */
} bly_topk_spec;

/* A key on a list; its bytes belong to the list and are valid until it
 * changes. */
typedef struct bly_topk_item { /* final */
    bly_bytes key;
    uint64_t count;
} bly_topk_item;

/* Make an empty list, which belongs to the caller until bly_topk_free(). */
static inline bly_status bly_topk_new(const bly_topk_spec *spec,
                                      bly_topk **out);

/* Release t. NULL is allowed. */
void bly_topk_free(bly_topk *t);

/* Add weight to a key; 0 changes nothing. BLY_ERANGE if the sum of all weights
 * would pass 2^64 - 1; BLY_ENOMEM if a key on the list cannot be copied. */
bly_status bly_topk_add(bly_topk *t, const void *key, size_t len,
                        uint64_t weight) BLY_MUST_CHECK;

/* The same for n keys. If weights is NULL, each weighs 1. Stops at the first
 * key that fails; *ndone, unless NULL, becomes the number of keys added. */
bly_status bly_topk_add_keys(bly_topk *t, const bly_bytes *keys,
                             const uint64_t *weights, size_t n,
                             size_t *ndone) BLY_MUST_CHECK;

/* List the n heaviest keys, or as many as there are, heaviest first; keys of
 * equal weight are in the order of their bytes. Returns their number. */
size_t bly_topk_list(const bly_topk *t, bly_topk_item *items, size_t n);

/* The count of one key; 0 for most keys that are not on the list. *listed,
 * unless NULL, becomes whether the key is on the list. */
uint64_t bly_topk_count(const bly_topk *t, const void *key, size_t len,
                        bool *listed);

/* The key that the last addition pushed off the list; false if there was
 * none. */
bool bly_topk_left(const bly_topk *t, bly_topk_item *out);

/* The sum of all weights, and how many keys are on the list. */
uint64_t bly_topk_total(const bly_topk *t);
size_t bly_topk_listed(const bly_topk *t);

/* The spec that t was made from, with secret and mem NULL; and the hasher of t,
 * which belongs to t. The hasher is NULL if t is keyed and was opened without
 * its secret. */
static inline void bly_topk_spec_of(const bly_topk *t, bly_topk_spec *out);
const bly_hasher *bly_topk_hasher(const bly_topk *t);

/* Make dst the list of both streams. Both lists must come from equal specs,
 * apart from mem, otherwise BLY_EUNFIT. A list cannot be merged with itself
 * (BLY_EINVAL). If the call fails, dst is unchanged. */
bly_status bly_topk_merge(bly_topk *dst, const bly_topk *src) BLY_MUST_CHECK;

/* --------------------------------------------------------- distinct keys */

/* How many distinct keys a stream has, in little memory: HyperLogLog. It works
 * on hashes, which must all come from the same hasher (bly_hash() and its
 * relatives, or any good 64-bit hash of your own).
 *
 * A sketch begins sparse: it takes some hundred bytes and is nearly exact. When
 * it has seen more than 3/32 of 2^precision distinct hashes (1,536 at precision
 * 14), it becomes dense: 2^precision registers of 6 bits. Its contents depend
 * on the hashes alone, not on their order or on how they came together.
 *
 * Threads. A sketch has one writer. For several, make one per thread and merge
 * them, which gives exactly the sketch of everything they saw. */
typedef struct bly_hll bly_hll;

/* Make an empty sketch, which belongs to the caller until bly_hll_free().
 * precision is from 4 to 18; 0 means 14. The standard deviation of the estimate
 * is at most 1.04 / sqrt(2^precision) of it: 0.8 % at 14, in 12 KiB. mem as in
 * bly_spec. */
bly_status bly_hll_new(unsigned precision, const bly_mem *mem, bly_hll **out);

/* Release s. NULL is allowed. */
void bly_hll_free(bly_hll *s);

/* Make a copy of s, from the same memory source. It belongs to the caller. */
bly_status bly_hll_copy(const bly_hll *s, bly_hll **out);

unsigned bly_hll_precision(const bly_hll *s);
bool bly_hll_sparse(const bly_hll *s);
size_t bly_hll_bytes(const bly_hll *s); /* of memory */

/* Where the hashes come from. It is saved with the sketch, because sketches of
 * different seeds or secrets cannot be merged. The default is bly_hash() with
 * seed 0. To set another, call bly_hll_set_hasher() before the first hash is
 * added; later it gives BLY_EINVAL. The result of bly_hll_hasher() belongs to
 * s; it is NULL if s is keyed and was opened without its secret. */
const bly_hasher *bly_hll_hasher(const bly_hll *s);
bly_status bly_hll_set_hasher(bly_hll *s, const bly_hasher *hasher);

/* The type of the keys, which is saved with the sketch too; unknown unless
 * set. */
bly_keying bly_hll_keying(const bly_hll *s);
void bly_hll_set_keying(bly_hll *s, bly_keying keying);

/* Add n more hashes. Adding one again changes nothing. BLY_ENOMEM if a sparse
 * sketch cannot grow: the hashes for which it had room are in, and adding all
 * of them again later does no harm. For a dense sketch the call cannot run out
 * of memory. */
bly_status bly_hll_add(bly_hll *s, const uint64_t *hashes,
                       size_t n) BLY_MUST_CHECK;

/* How many hashes were added, counting repeated ones and those of merged
 * sketches. */
uint64_t bly_hll_total(const bly_hll *s);

/* Make dst the sketch of both streams. BLY_EUNFIT if precisions, hashers or
 * types of keys differ. If the call fails, dst is unchanged. */
bly_status bly_hll_merge(bly_hll *dst, const bly_hll *src) BLY_MUST_CHECK;

/* An estimate of the number of distinct hashes. *sd, unless NULL, becomes its
 * standard deviation. Reads all of s. */
double bly_hll_estimate(const bly_hll *s, double *sd);

/* Estimate how many hashes n sketches have in common (at most
 * BLY_HLL_MAX_COMMON sketches), and how many hashes are in s but in none of n
 * others. *sd, unless NULL, becomes the standard deviation. Both come from the
 * sizes of unions, whose errors do not shrink with the result: if the deviation
 * is not far below the estimate, all you know is that the number is small.
 * BLY_EUNFIT as for bly_hll_merge(). */
#define BLY_HLL_MAX_COMMON 8
bly_status bly_hll_common(const bly_hll *const *sketches, size_t n,
                          double *estimate, double *sd);
bly_status bly_hll_only(const bly_hll *s, const bly_hll *const *others,
                        size_t n, double *estimate, double *sd);

/* A sketch as bytes, the same on every machine. bly_hll_written_bytes() says
 * how many; bly_hll_write() writes them to memory of the caller. bly_hll_load()
 * makes a new sketch, which belongs to the caller, from bytes that anyone may
 * have written; BLY_EFORMAT if they are not a sketch or are damaged. */
size_t bly_hll_written_bytes(const bly_hll *s);
void bly_hll_write(const bly_hll *s, void *bytes);
bly_status bly_hll_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                        bly_hll **out);

/* -------------------------------------------------------------- quantiles */

/* Where the values of a stream lie (its median, its 99th percentile), in a few
 * kilobytes: a t-digest. It keeps the least and the greatest value, exactly,
 * and between them some hundred means with their weights, which are finest at
 * both ends. Streams of up to some ten values are kept exactly, and so are
 * values that come often, with all of their weight.
 *
 *     bly_tdigest *t;
 *     if (bly_tdigest_new(NULL, &t))
 *         errx(2, "%s", bly_error());
 *     while ((n = read_values(values, 1000)))
 *         if (bly_tdigest_add(t, values, NULL, n))
 *             errx(2, "%s", bly_error());
 *     printf("p99: %g\n", bly_tdigest_quantile(t, 0.99));
 *
 * Accuracy is in ranks, not in values: bly_tdigest_deviation(). The same values
 * in the same order give the same bytes.
 *
 * Threads. A digest has one user at a time, also for questions, which begin by
 * merging what waits. After bly_tdigest_settle() any number of threads may ask
 * until something is added. For several writers, make one digest each and merge
 * them. */
typedef struct bly_tdigest bly_tdigest;

/* How fine means are. RedisBloom's scale keeps a fifth as many, and merges at
 * the same moments, for RedisBloom's answers: docs/redis.md has exceptions. */
enum { BLY_TDIGEST_FINE, BLY_TDIGEST_REDISBLOOM };

/* Zero in any field means "choose for me". */
typedef struct bly_tdigest_spec {
    double compression; /* 1 to 5 * 10^8; 0: 100. There are about three times as
                           many means, and a larger one errs less */
    uint32_t scale;     /* BLY_TDIGEST_FINE or BLY_TDIGEST_REDISBLOOM */
    const bly_mem *mem; /* as in bly_spec */
} bly_tdigest_spec;

/* Make an empty digest, which belongs to the caller until bly_tdigest_free().
 * spec NULL: the default. */
static inline bly_status bly_tdigest_new(const bly_tdigest_spec *spec,
                                         bly_tdigest **out);

/* Release t. NULL is allowed. */
void bly_tdigest_free(bly_tdigest *t);

/* Make a copy of t, from the same memory source; forget all values. */
bly_status bly_tdigest_copy(const bly_tdigest *t, bly_tdigest **out);
void bly_tdigest_clear(bly_tdigest *t);

/* Add n values; weights say how often each came, NULL: once. BLY_EINVAL if a
 * value is not a number or infinite, or a weight is 0; BLY_ERANGE if all
 * weights would pass 2^63 - 1. If the call fails, none was added. */
bly_status bly_tdigest_add(bly_tdigest *t, const double *values,
                           const uint64_t *weights, size_t n) BLY_MUST_CHECK;

/* Make dst the digest of both streams; its compression stays. dst may be src.
 * BLY_ERANGE as above. If the call fails, dst is unchanged. */
bly_status bly_tdigest_merge(bly_tdigest *dst,
                             const bly_tdigest *src) BLY_MUST_CHECK;

/* Merge what waits; questions do it, too. Cannot fail. */
void bly_tdigest_settle(bly_tdigest *t);

/* The value below which the share q of all weight lies, q from 0 (the least
 * value) to 1 (the greatest); the share that lies below a value, half of what
 * equals it included; the same as a weight; the mean of what lies between two
 * shares, low < high. NAN if the digest is empty, or the argument is out of
 * range or not a number. */
double bly_tdigest_quantile(bly_tdigest *t, double q);
double bly_tdigest_cdf(bly_tdigest *t, double value);
double bly_tdigest_rank(bly_tdigest *t, double value);
double bly_tdigest_trimmed_mean(bly_tdigest *t, double low, double high);

/* The standard deviation of the rank of a quantile, as a share of all: how far
 * the share that really lies below bly_tdigest_quantile(t, q) is from q. 0
 * where values are kept one by one. A rule of thumb and no bound: of values
 * that come often, but not so often that they are kept apart, the error can be
 * half as large again. docs/quantiles.md has measurements. */
double bly_tdigest_deviation(bly_tdigest *t, double q);

/* What a digest consists of. The arrays belong to t until it changes: nmerged
 * means in order, and after them nwaiting values that wait, whose weights are
 * there only if `weighted` is set and are 1 otherwise. */
typedef struct bly_tdigest_stats {
    double compression;
    double min, max; /* NAN if it is empty */
    double merged_weight, waiting_weight;
    uint64_t nmerged, nwaiting, ncompressions;
    uint64_t nbytes; /* of memory */
    const double *means, *weights;
    uint32_t scale;
    uint32_t weighted; /* 1 or 0 */
} bly_tdigest_stats;
static inline void bly_tdigest_stat(const bly_tdigest *t,
                                    bly_tdigest_stats *out);

/* Make a digest again from its parts, which anyone may have written; both
 * arrays have all weights, and totals are taken from them. BLY_EFORMAT if no
 * digest consists of these. mem as in bly_spec. */
static inline bly_status bly_tdigest_restore(const bly_tdigest_stats *stats,
                                             const bly_mem *mem,
                                             bly_tdigest **out);

/* ------------------------------------------------------ likeness of texts */

/* How much two texts have in common: cut them into shingles, which are n words
 * or n characters in a row, and compare the two sets: J = |A and B| / |A or B|.
 * A sketch of a few hundred bytes estimates J. Among many texts, banding finds
 * the pairs that are worth comparing. Definitions and errors are in
 * docs/likeness.md.
 *
 *     bly_shingler *cut;
 *     bly_sketch *s;
 *     bly_shingles x;
 *     const bly_sketch_spec spec = { .k = 128 };
 *     if (bly_shingler_new(&spec.shingling, NULL, &cut) ||
 *         bly_sketch_new(&spec, &s) || bly_shingle(cut, text, len, &x) ||
 *         bly_sketch_add(s, x.hashes, x.n))
 *         errx(2, "%s", bly_error());
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
    uint64_t seed; /* of the hash of a word; unused for characters */
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
 * largest text so far needed, plus 8 bytes per shingle. If the call fails (with
 * BLY_ENOMEM), *out has no shingles. */
static inline bly_status bly_shingle(bly_shingler *s, const void *text,
                                     size_t nbytes, bly_shingles *out);

/* Sort n hashes in place and drop repeated ones. Returns how many are left. */
size_t bly_distinct(uint64_t *hashes, size_t n);

/* Exactly how much two sets have in common. Both arrays must be sorted and
 * without repetition, as bly_distinct() leaves them. The share of a that is in
 * b is in_both / na. An empty set resembles nothing: J of two empty sets is
 * 0. */
typedef struct bly_overlap { /* final */
    uint64_t in_both, in_either;
    double jaccard;
} bly_overlap;
bly_overlap bly_overlap_of(const uint64_t *a, size_t na, const uint64_t *b,
                           size_t nb);

/* --------------------------------------------------- sketches of likeness */

/* A sketch represents a set of shingles by k components; two sets of likeness J
 * agree in about J k of them. The families of sketches, in the order of their
 * numbers on disk: name, word, description. */
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

/* What must agree for two sketches to be compared. Zero in any field means the
 * default. */
typedef struct bly_sketch_spec {
    bly_shingling shingling;
    bly_family family;
    unsigned k;         /* components, 1 to BLY_MAX_COMPONENTS; 0: 128 */
    const bly_mem *mem; /* as in bly_spec; need not agree */
} bly_sketch_spec;

/* Replace zeros by the defaults. BLY_EINVAL, with spec unchanged, if something
 * is out of range. */
static inline bly_status bly_sketch_spec_check(bly_sketch_spec *spec);

/* BLY_OK if sketches of these two specs can be compared; otherwise BLY_EUNFIT,
 * and bly_error() names what differs. Both specs must be as
 * bly_sketch_spec_check() leaves them. */
static inline bly_status bly_sketch_spec_fits(const bly_sketch_spec *a,
                                              const bly_sketch_spec *b);

/* Write a spec as BLY_SKETCH_HEAD bytes, the same on every machine, for files
 * that hold many sketches; and read one from bytes that anyone may have
 * written, or fail with BLY_EFORMAT. */
#define BLY_SKETCH_HEAD 32
static inline void bly_sketch_spec_write(const bly_sketch_spec *spec,
                                         void *bytes);
static inline bly_status bly_sketch_spec_read(const void *bytes, size_t nbytes,
                                              bly_sketch_spec *out);

typedef struct bly_sketch bly_sketch;

/* Make the sketch of no shingles, which belongs to the caller until
 * bly_sketch_free(). */
static inline bly_status bly_sketch_new(const bly_sketch_spec *spec,
                                        bly_sketch **out);

/* Release s. NULL is allowed. */
void bly_sketch_free(bly_sketch *s);

/* The spec of s, with the defaults filled in. It belongs to s. */
const bly_sketch_spec *bly_sketch_spec_of(const bly_sketch *s);

/* Forget all shingles. */
void bly_sketch_clear(bly_sketch *s);

/* Add n more shingles, in any order, repeated ones included; the sketch is the
 * same whether they come all at once or in parts. BLY_EREADONLY if s was read
 * from compact bytes. */
bly_status bly_sketch_add(bly_sketch *s, const uint64_t *hashes,
                          size_t n) BLY_MUST_CHECK;

/* Make dst the sketch of the union of both sets. BLY_EUNFIT if their specs
 * differ, BLY_EREADONLY if one was read from compact bytes. */
bly_status bly_sketch_merge(bly_sketch *dst,
                            const bly_sketch *src) BLY_MUST_CHECK;

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
    unsigned bits;  /* compared per component: 32, fewer if compact */
} bly_resemblance;

/* The estimate if `equal` of k components agree in `bits` bits. The deviation
 * is that of k independent components; sketches of family fss have a smaller
 * one. */
bly_resemblance bly_resemblance_of(unsigned equal, unsigned k, unsigned bits);

/* Estimate the likeness of two sketches. BLY_EUNFIT if their specs differ. The
 * deviation is as above, and larger for oph sketches of few shingles. A sketch
 * without shingles resembles nothing, not even another such sketch. */
bly_status bly_sketch_compare(const bly_sketch *a, const bly_sketch *b,
                              bly_resemblance *out);

/* A sketch as bytes, the same on every machine, in memory of the caller. With
 * bits 0 everything is written, so that the sketch can be added to and merged
 * after loading. With bits 1 to 32, that many bits of each component are
 * written, and the loaded sketch is compact: it can only be compared. A compact
 * sketch can be written with the bits that it has or fewer, otherwise
 * BLY_EINVAL. bly_sketch_bits() says how many it has; 0 if it is whole. */
unsigned bly_sketch_bits(const bly_sketch *s);
size_t bly_sketch_written_bytes(const bly_sketch *s, unsigned bits);
bly_status bly_sketch_write(const bly_sketch *s, unsigned bits, void *bytes);

/* Make a new sketch, which belongs to the caller, from bytes that anyone may
 * have written. BLY_EFORMAT if they are not a sketch or are damaged. mem as in
 * bly_spec. */
bly_status bly_sketch_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                           bly_sketch **out);

/* --------------------------------------------------------------- banding */

/* Components are cut into bands of `rows` each. Two texts are a candidate pair
 * if they agree in all components of some band. The chance of this for a pair
 * of likeness s is 1 - (1 - s^rows)^bands. */
typedef struct bly_bands { /* final */
    unsigned bands, rows;
} bly_bands;
double bly_bands_chance(bly_bands b, double likeness);

/* Choose the largest number of rows for which k / rows bands find a pair at the
 * threshold with a probability of at least `recall` (0: 0.995). BLY_EINVAL if k
 * components cannot do that. */
bly_status bly_bands_choose(unsigned k, double threshold, double recall,
                            bly_bands *out);

/* Choose the bands that minimise the total error: the area of candidates below
 * the threshold plus that of missed pairs above it. They miss many pairs at the
 * threshold itself, and are here for comparison. */
bly_status bly_bands_balance(unsigned k, double threshold, bly_bands *out);

/* The keys of all bands, from b.bands * b.rows components. Texts that have a
 * key in common are candidates. `keys` has room for b.bands. */
void bly_bands_keys(bly_bands b, const uint32_t *components, uint64_t *keys);

/* --------------------------------------------- hashing that keeps likeness */

/* Sign hashing (SimHash). Each hash votes with its weight (weights NULL: 1
 * each), for those of its 64 bits that are one and against those that are zero.
 * A bit of the result is set unless it was voted down. Hashes must be distinct.
 *
 * Sets at an angle theta differ in 64 theta / pi bits on average. For weights
 * of 1, cos theta = |A and B| / sqrt(|A| |B|). */
uint64_t bly_simhash(const uint64_t *hashes, const double *weights, size_t n);
unsigned bly_hamming(uint64_t a, uint64_t b); /* bits that differ */
double bly_simhash_angle(uint64_t a, uint64_t b);

/* A sample of r of nbits bits (bit j is bit j % 8 of byte j / 8), chosen by
 * seed, as one number. r is at most 64, and nbits is not 0. Two arrays that
 * differ in d bits agree in the whole sample with probability (1 -
 * d/nbits)^r. */
uint64_t bly_sample_bits(const void *bits, uint64_t nbits, uint64_t seed,
                         unsigned r);

/* ----------------------------------------------------- sketches of vectors */

/* On which side of each of nbits random planes through the origin does a vector
 * lie? Two vectors at an angle theta are on different sides of a plane with
 * probability theta / pi, whatever their lengths, so two sketches differ in
 * nbits theta / pi bits on average. docs/vectors.md shows how far off that is;
 * bloomery/vectors.h finds the neighbours among many vectors.
 *
 *     bly_planes *p;
 *     uint64_t sides[2][4]; // 256 bits each
 *     const bly_planes_spec spec = { .dims = 768, .nbits = 256 };
 *     const bly_vectors two = { .at = embeddings, .n = 2, .dims = 768 };
 *     if (bly_planes_new(&spec, &p) || bly_planes_sides(p, &two, sides[0], 0))
 *         errx(2, "%s", bly_error());
 *     bly_angle a = bly_angle_of(bly_sides_differ(sides[0], sides[1], 256),
 *                                256);
 *
 * The directions of the planes are normally distributed in each coordinate, so
 * that none is preferred. They follow from the seed alone: sketches are the
 * same on every machine. A sketch does not depend on how many bits there are
 * besides: the first 256 of 1024 are those of 256.
 *
 * Threads. Any number of threads may use the same planes at once. */

/* Vectors in memory of the caller, one after another. */
typedef struct bly_vectors { /* final */
    const void *at;          /* float, or double */
    size_t n;
    size_t dims;   /* coordinates of each */
    size_t stride; /* bytes from one vector to the next, a multiple of a
                      coordinate's; 0: nothing between them */
    bool doubles;  /* coordinates are double */
} bly_vectors;

/* A vector of which only some coordinates are there; the others are 0. Without
 * values it is the set of these places: 1 each. Values are divided by the
 * largest; those that are more than 10^30 times smaller count as 0. */
typedef struct bly_sparse { /* final */
    const uint64_t *places; /* different ones; any numbers, hashes too */
    const double *values;   /* NULL: 1 each */
    size_t n;
} bly_sparse;

/* Zero in any field means the default. */
typedef struct bly_planes_spec {
    uint64_t dims;     /* coordinates of dense vectors, to 65,536; 0: sparse
                          vectors alone */
    uint32_t nbits;    /* 64 to 4096, a multiple of 64; 0: 256 */
    uint32_t reserved; /* zero */
    uint64_t seed;
    const bly_mem *mem; /* as in bly_spec */
} bly_planes_spec;

#define BLY_PLANES_MOST_DIMS 65536
#define BLY_PLANES_MOST_BITS 4096

typedef struct bly_planes bly_planes;

/* Make planes, which belong to the caller until bly_planes_free(). They take 4
 * bytes per coordinate and bit: 0.8 MB for 768 coordinates and 256 bits. */
static inline bly_status bly_planes_new(const bly_planes_spec *spec,
                                        bly_planes **out);

/* Release p. NULL is allowed. */
void bly_planes_free(bly_planes *p);

/* The spec that p was made from, with the defaults filled in and mem NULL. */
static inline void bly_planes_spec_of(const bly_planes *p,
                                      bly_planes_spec *out);

/* Sketch vectors: nbits / 64 words for each. A vector that lies in a plane
 * counts as being on its positive side. BLY_EINVAL for other dimensions than
 * those of p, and for a vector that has no direction: one of zeros alone, or
 * with a coordinate that is infinite or not a number. It stops there; *ndone,
 * unless NULL, becomes the number of vectors whose sketches are complete. */
bly_status bly_planes_sides(const bly_planes *p, const bly_vectors *vectors,
                            uint64_t *sides, size_t *ndone) BLY_MUST_CHECK;

/* The same for one sparse vector. A dense vector has the same sketch if its
 * places are listed in ascending order and its numbers are floats. */
bly_status bly_planes_sides_sparse(const bly_planes *p,
                                   const bly_sparse *vector,
                                   uint64_t *sides) BLY_MUST_CHECK;

/* In how many bits two sketches differ. */
unsigned bly_sides_differ(const uint64_t *a, const uint64_t *b, unsigned nbits);

/* An estimate of the angle, in radians, and of its cosine, with their standard
 * deviations: pi sqrt(q (1 - q) / nbits) for the angle, where q = theta / pi.
 * All four are NAN if nbits is 0 or fewer than differ. */
typedef struct bly_angle { /* final */
    double angle, sd;
    double cosine, cosine_sd;
} bly_angle;
bly_angle bly_angle_of(unsigned differ, unsigned nbits);

/* ------------------------------------------------------ sketches in files */

/* Sketches are saved as .bly files, like filters, and can be read on every
 * machine. A bly_stored holds a sketch of any type: for files whose type is not
 * known in advance, and for memory that others own (a row of a database). The
 * types, in the order of their numbers on disk: name, word, description. */
#define BLY_STORED_TYPES(X)                                    \
    X(HLL, "hyperloglog", "how many different keys there are") \
    X(TOPK, "topk", "the heaviest keys")                       \
    X(LIKENESS, "minhash", "how alike texts are")              \
    X(TDIGEST, "tdigest", "where the values of a stream lie")

typedef enum bly_stored_type {
    BLY_STORED_NONE,
#define BLY_STORED_ROW_(name, word, help) BLY_STORED_##name,
    BLY_STORED_TYPES(BLY_STORED_ROW_)
#undef BLY_STORED_ROW_
        BLY_STORED_COUNT_
} bly_stored_type;

typedef struct bly_stored { /* final */
    bly_stored_type type;
    bly_hll *hll; /* the one of this type is set; the others are NULL */
    bly_topk *topk;
    bly_sketch *likeness;
    bly_tdigest *tdigest;
    void *reserved[3]; /* NULL: for types to come */
} bly_stored;

/* The word of a type, such as "topk", and its description. NULL if there is no
 * such type. */
const char *bly_stored_name(bly_stored_type type);
const char *bly_stored_help(bly_stored_type type);

/* Which type of sketch do the first bytes of a file, 72 or more, announce?
 * BLY_STORED_NONE if it is something else, a filter for instance. The file may
 * still be damaged. */
#define BLY_STORED_PEEK 72
bly_stored_type bly_stored_peek(const void *bytes, size_t nbytes);

/* Write s in the .bly format, as bly_write() does; and the number of bytes that
 * this will take. */
bly_status bly_stored_write(const bly_stored *s, bly_put *put,
                            void *ctx) BLY_MUST_CHECK;
uint64_t bly_stored_bytes(const bly_stored *s);

/* Write s to a file, which is replaced as a whole, as by bly_save(). */
bly_status bly_stored_save(const bly_stored *s,
                           const char *path) BLY_MUST_CHECK;

/* Make a new sketch, which belongs to the caller until bly_stored_free(), from
 * bytes or a file that anyone may have written. BLY_EFORMAT if it is not a
 * sketch or is damaged. Of `how` (NULL: the default), the fields secret, blind,
 * max_bytes and mem are used. A keyed sketch that was opened blind can be
 * described and merged, but takes no keys. If the call fails, *out is of type
 * BLY_STORED_NONE. */
static inline bly_status bly_stored_load(const void *bytes, size_t nbytes,
                                         const bly_access *how,
                                         bly_stored *out);
static inline bly_status
bly_stored_open(const char *path, const bly_access *how, bly_stored *out);

/* Release the sketch. BLY_STORED_NONE is allowed. */
void bly_stored_free(bly_stored *s);

/* Merge as bly_hll_merge(), bly_topk_merge() and their like do.
 * BLY_EUNFIT if the types differ. */
bly_status bly_stored_merge(bly_stored *dst,
                            const bly_stored *src) BLY_MUST_CHECK;

/* Change the sketch in a file as bly_update() changes a filter: under its lock,
 * and as a whole or not at all. If there is no file, one is first made of what
 * `first` holds; if `first` is NULL, a missing file is an error. */
typedef bly_status bly_stored_change(bly_stored *s, void *ctx);
static inline bly_status bly_stored_update(const char *path,
                                           const bly_access *how,
                                           const bly_stored *first,
                                           bly_stored_change *change,
                                           void *ctx) BLY_MUST_CHECK;

/* Save and open for a type that is known. mem as in bly_spec. Open a keyed
 * sketch with bly_stored_open(), which takes its secret. */
bly_status bly_hll_save(const bly_hll *s, const char *path) BLY_MUST_CHECK;
bly_status bly_hll_open(const char *path, const bly_mem *mem, bly_hll **out);
bly_status bly_topk_save(const bly_topk *t, const char *path) BLY_MUST_CHECK;
bly_status bly_topk_open(const char *path, const bly_mem *mem, bly_topk **out);
bly_status bly_sketch_save(const bly_sketch *s,
                           const char *path) BLY_MUST_CHECK;
bly_status bly_sketch_open(const char *path, const bly_mem *mem,
                           bly_sketch **out);
bly_status bly_tdigest_save(const bly_tdigest *t,
                            const char *path) BLY_MUST_CHECK;
bly_status bly_tdigest_open(const char *path, const bly_mem *mem,
                            bly_tdigest **out);

/* ------------------------------------------------- sizes of structs */

/* What is declared `static inline` above: each function passes the size of a
 * struct, as "Versions" says, to the function of the library whose name ends in
 * _sized. */
BLY_SIZED(bly_status, bly_topk_new, bly_topk_spec,
          (const bly_topk_spec *spec, bly_topk **out), (spec, out));
BLY_SIZED(void, bly_topk_spec_of, bly_topk_spec,
          (const bly_topk *const t, bly_topk_spec *out), (t, out));
BLY_SIZED(bly_status, bly_tdigest_new, bly_tdigest_spec,
          (const bly_tdigest_spec *spec, bly_tdigest **out), (spec, out));
BLY_SIZED(void, bly_tdigest_stat, bly_tdigest_stats,
          (const bly_tdigest *t, bly_tdigest_stats *out), (t, out));
BLY_SIZED(bly_status, bly_tdigest_restore, bly_tdigest_stats,
          (const bly_tdigest_stats *stats, const bly_mem *mem,
           bly_tdigest **out),
          (stats, mem, out));
BLY_SIZED(bly_status, bly_shingle, bly_shingles,
          (bly_shingler *const s, const void *text, size_t nbytes,
           bly_shingles *out),
          (s, text, nbytes, out));
BLY_SIZED(bly_status, bly_sketch_spec_check, bly_sketch_spec,
          (bly_sketch_spec *const spec), (spec));
BLY_SIZED(bly_status, bly_sketch_spec_fits, bly_sketch_spec,
          (const bly_sketch_spec *a, const bly_sketch_spec *b), (a, b));
BLY_SIZED(void, bly_sketch_spec_write, bly_sketch_spec,
          (const bly_sketch_spec *spec, void *bytes), (spec, bytes));
BLY_SIZED(bly_status, bly_sketch_spec_read, bly_sketch_spec,
          (const void *bytes, size_t nbytes, bly_sketch_spec *out),
          (bytes, nbytes, out));
BLY_SIZED(bly_status, bly_sketch_new, bly_sketch_spec,
          (const bly_sketch_spec *spec, bly_sketch **out), (spec, out));
BLY_SIZED(bly_status, bly_planes_new, bly_planes_spec,
          (const bly_planes_spec *spec, bly_planes **out), (spec, out));
BLY_SIZED(void, bly_planes_spec_of, bly_planes_spec,
          (const bly_planes *const p, bly_planes_spec *out), (p, out));
BLY_SIZED(bly_status, bly_stored_load, bly_access,
          (const void *bytes, size_t nbytes, const bly_access *how,
           bly_stored *out),
          (bytes, nbytes, how, out));
BLY_SIZED(bly_status, bly_stored_open, bly_access,
          (const char *path, const bly_access *how, bly_stored *out),
          (path, how, out));
BLY_SIZED(bly_status, bly_stored_update, bly_access,
          (const char *path, const bly_access *how, const bly_stored *first,
           bly_stored_change *change, void *ctx),
          (path, how, first, change, ctx));

BLY_END_DECLS
#endif
