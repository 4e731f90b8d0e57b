/*
 * filter.h - the life of a filter: make, release, copy, compare
 *
 * Knows the struct and the descriptor, but no particular kind. Kinds made of
 * filters use it for their layers, conversions for their results, and
 * src/format for the filters it reads.
 */
#ifndef BLY_FILTER_H
#define BLY_FILTER_H

#include <stdatomic.h>

#include "core/hash.h"
#include "core/block_sums.h"
#include "engine/rows.h"
#include "host/host.h"
#include "kinds/kind.h"

/* The properties of a filter apart from its shape. */
typedef struct bly_setting {
    uint64_t items;
    double fpr;
    bly_hasher hasher;
    uint64_t secret_check;
    bool shared, blind, coded, compact, former;
    bool roomy; /* leave room to become a filter of any kind */
    uint64_t max_bytes;
    const bly_mem *mem; /* copied */
} bly_setting;

/* The setting of f, for making a filter related to it: a layer or a result. */
bly_setting bly_setting_of(const bly_filter *f);

/* A filter without its body: data and state are NULL, whatever its kind and
 * shape->nbytes say. The caller must set them, by one of the next functions,
 * before doing anything else with the filter. For readers of files. */
bly_status bly_filter_shell(const bly_kind *kind, const bly_shape *shape,
                            const bly_setting *set, bly_filter **out);

/* Give a shell its body, zeroed: state and data; or only state, where the data
 * lies elsewhere: in `block`, which f then owns, or (NULL) in memory that the
 * caller has mapped. If the call fails, the block still belongs to the
 * caller. */
bly_status bly_filter_body(bly_filter *f);
bly_status bly_filter_body_for(bly_filter *f, const bly_block *block);

/* Data of this many bytes or more starts at a cache line. A smaller filter fits
 * into the first-level cache, where a key that touches two lines costs next to
 * nothing (kinds that rely on lines say so). */
#define BLY_ALIGNED_FROM 4096

/* Where the memory of f comes from. */
static inline const bly_mem *bly_filter_mem(const bly_filter *f)
{
    return f->memory == BLY_MEM_OWN ? &f->extra->outside->mem
                                    : bly_mem_numbered(f->memory);
}

/* Does f have an extra of its own? */
bool bly_filter_has_extra(const bly_filter *f);

/* The extra of f, for writing: made if f shares one so far. NULL, with a
 * message: no memory. */
bly_extra *bly_filter_extra(bly_filter *f);
bly_outside *bly_filter_outside(bly_filter *f);

/* Make aux, zeroed, in open() of a kind; NULL, with a message: no memory. And
 * release it, in close(). */
void *bly_filter_aux_new(bly_filter *f, size_t nbytes);
void bly_filter_aux_free(bly_filter *f, size_t nbytes);

/* Give f and its layers another hash. */
bly_status bly_filter_rehash(bly_filter *f, const bly_hasher *hasher,
                             uint64_t secret_check, bool blind);

/* The sums of blocks of a mapped file; NULL: none. */
static inline struct bly_sums *bly_filter_sums(const bly_filter *f)
{
#ifdef __wasm__ /* where nothing is mapped */
    (void)f;
    return NULL;
#else
    return f->extra->outside ? f->extra->outside->sums : NULL;
#endif
}

/* A whole copy of the shape of f. */
bly_shape bly_shape_of(const bly_filter *f);

/* The same kind, size and params? */
bool bly_same_shape(const bly_filter *a, const bly_filter *b);

/* A filter with zeroed data and no layers: start() and open() not yet called.
 * For readers of files, which fill it in; everyone else wants
 * bly_filter_make(). */
bly_status bly_filter_blank(const bly_kind *kind, const bly_shape *shape,
                            const bly_setting *set, bly_filter **out);

/* An empty filter, ready to use. */
bly_status bly_filter_make(const bly_kind *kind, const bly_shape *shape,
                           const bly_setting *set, bly_filter **out);

/* Choose f->ways. Called at the end of every function that makes a filter or
 * changes who may write to it. */
void bly_filter_ready(bly_filter *f);

/* A permanent copy of these ways, shared by all filters that have the same.
 * NULL: there is no place left, and filters use batches of one. */
const bly_ways *bly_ways_lasting(const bly_ways *ways);

/* Append a layer to f, which owns it from then on. BLY_EFULL at BLY_MAX_LAYERS;
 * a layer that cannot be appended is freed. Other threads may read f meanwhile,
 * if it has a layer already. */
bly_status bly_filter_push(bly_filter *f, bly_filter *layer);

/* A copy, layers included. The copy of a mapped filter may be written to, and
 * used in ways that rely on more than a map checks: bly_clone() of
 * format/mapped.c verifies the data first. */
bly_status bly_filter_copy(const bly_filter *f, bly_filter **out);
bly_status bly_filter_cloning(const bly_filter *f, bly_cloning **out);

/* Replace the metadata of f, a root, by these n bytes; 0: none. */
bly_status bly_filter_set_meta(bly_filter *f, bly_keying keying,
                               const unsigned char *at, size_t n);

/* Copy the metadata of f to `to`, which was made from it. */
bly_status bly_filter_inherit(const bly_filter *f, bly_filter *to);

/* Make `bare` an alias of f without its metadata, to be read but never
 * freed. */
void bly_filter_bare(const bly_filter *f, bly_filter *bare, bly_extra *extra);

/* Is there a secret? The place of its check can hold something else. */
static inline bool bly_filter_keyed(const bly_filter *f)
{
    return f->extra->secret_check &&
           f->extra->hasher.id != BLY_HASH_ORDERED_TAILS;
}

/* Are integers hashed by bly_int_folded()? And by that or by XXH3, with
 * extra->turned? */
static inline bool bly_filter_folds(const bly_filter *f)
{
    return f->extra->hasher.id == BLY_HASH_FOLDED;
}

static inline bool bly_filter_hashes_ints(const bly_filter *f)
{
    return f->extra->hasher.id == BLY_HASH_XXH3 || bly_filter_folds(f);
}

/* What f says about its keys. */
static inline bly_keying bly_filter_keying(const bly_filter *f)
{
    return f->extra->meta ? f->extra->meta->keying
                          : (bly_keying){ BLY_KEYS_UNKNOWN, 0 };
}

/* The name of a type of keys; never NULL. */
const char *bly_key_type_word(bly_key_type type);

/* BLY_EUNFIT if a filter with keys described by a and by b would miss some of
 * them, whichever of the two it says. */
bly_status bly_keyings_fit(bly_keying a, bly_keying b);

/* Has nothing ever been added to f or to a layer of it? */
bool bly_filter_untouched(const bly_filter *f);

/* Does f hold nothing, and not say what its keys are? It goes with any keys. */
static inline bool bly_filter_silent(const bly_filter *f)
{
    return bly_filter_keying(f).type == BLY_KEYS_UNKNOWN &&
           bly_filter_untouched(f);
}

/* bly_free(), bly_become(), bly_equal() and bly_set_coded() of bloomery.h are
 * in filter.c too, and bly_move() of host/host.h. */

/* Does a key have the same hash in both? */
bool bly_same_hash(const bly_filter *a, const bly_filter *b);

/* All of src as one part; and merge() and intersect() for kinds that need no
 * more than to combine this part. */
bly_part bly_part_of(const bly_filter *src);
bly_status bly_merge_as_part(bly_filter *dst, const bly_filter *src);
bly_status bly_intersect_as_part(bly_filter *dst, const bly_filter *src);

/* Do a and b have the same kind, shape and hash, layers included? The message
 * says what differs. */
bly_status bly_filter_fits(const bly_filter *a, const bly_filter *b);

/* Memory held: data, layers, the structs. */
uint64_t bly_filter_bytes(const bly_filter *f);

/* Mark f and its layers as shared or not shared. */
void bly_filter_share(bly_filter *f, bool shared);

/* Report that key i depends on n > 0 bytes of the data from `at` on. Returns
 * false, and sets the key's bit in bad, if they are damaged. For reach() of a
 * kind. */
static inline bool bly_reach(const bly_filter *f, uint64_t at, uint64_t n,
                             size_t i, uint64_t *bad)
{
    const bool right = bly_sums_touch(bly_filter_sums(f), at, n);
    bad[i / 64] |= (uint64_t)!right << i % 64;
    return right;
}

/* Does f or one of its layers have blocks that were not yet compared with their
 * sums? */
static inline bool bly_filter_unread(const bly_filter *f)
{
    const struct bly_sums *const sums = bly_filter_sums(f);
    return sums && bly_sums_pending(sums);
}

/* has() for a filter f with unread blocks, of a kind with has(): the blocks on
 * which the answers depend are first compared with their sums. Where they are
 * damaged, the answer is "maybe". Bitmaps come zeroed. */
void bly_filter_has_unread(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *maybe);

/* Compare the blocks on which the answers for n hashes depend with their sums,
 * unless that has been done before. Sets the bits of bad, which comes zeroed,
 * for keys that cannot be answered. */
void bly_filter_reach(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *bad);

/* reach() for kinds whose answers come from their layers alone. */
void bly_reach_layers(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *bad);

/* The same for all of f and its layers: BLY_EFORMAT if it is damaged. */
bly_status bly_filter_settle(const bly_filter *f);

/* Is f of this kind, and may the caller query it by inline code of its own,
 * from what goes to out? That code hashes integers by XXH3 or by
 * bly_int_folded(), does not support sharing, and checks no blocks on the way;
 * so all blocks are checked now. */
bool bly_filter_viewed(const bly_filter *f, const bly_kind *kind,
                       const void *out);

/* The ways of a kind: has, has_int, add, add_int and remove, made from bodies
 * that take a hash and are always inlined. */
#define BLY_ONE_BODY static inline __attribute__((always_inline))

#define BLY_ONE_HAS_FOR(target, name, body)                                   \
    target __attribute__((aligned(64))) static bool name(const bly_filter *f, \
                                                         uint64_t h)          \
    {                                                                         \
        return body(f, h);                                                    \
    }                                                                         \
    target __attribute__((aligned(64))) static bool name##_int(               \
        const bly_filter *f, uint64_t key)                                    \
    {                                                                         \
        return body(f, bly_int_hash_turned(key, f->extra->turned));           \
    }                                                                         \
    target __attribute__((aligned(64))) static bool name##_folded(            \
        const bly_filter *f, uint64_t key)                                    \
    {                                                                         \
        return body(f, bly_int_folded(key, f->extra->turned));                \
    }
#define BLY_ONE_ADD_FOR(target, name, body)                                   \
    target __attribute__((aligned(64))) static bly_status name(bly_filter *f, \
                                                               uint64_t h)    \
    {                                                                         \
        return body(f, h);                                                    \
    }                                                                         \
    target __attribute__((aligned(64))) static bly_status name##_int(         \
        bly_filter *f, uint64_t key)                                          \
    {                                                                         \
        return body(f, bly_int_hash_turned(key, f->extra->turned));           \
    }                                                                         \
    target __attribute__((aligned(64))) static bly_status name##_folded(      \
        bly_filter *f, uint64_t key)                                          \
    {                                                                         \
        return body(f, bly_int_folded(key, f->extra->turned));                \
    }
#define BLY_ONE_SET_HAS_FOR(one, name) \
    ((void)((one)->ways.has = name,    \
            (one)->ways.has_int = (one)->folded ? name##_folded : name##_int))
#define BLY_ONE_SET_ADD_FOR(one, name) \
    ((void)((one)->ways.add = name,    \
            (one)->ways.add_int = (one)->folded ? name##_folded : name##_int))

#define BLY_ONE_REMOVE_FOR(target, name, body)                                \
    target __attribute__((aligned(64))) static bly_status name(bly_filter *f, \
                                                               uint64_t h)    \
    {                                                                         \
        return body(f, h);                                                    \
    }

/* The same in two variants: for any processor, and for BLY_TARGET_BMI, which
 * takes a tenth fewer instructions. */
#define BLY_ONE_HAS(name, body)   \
    BLY_ONE_HAS_FOR(, name, body) \
    BLY_ONE_HAS_FOR(BLY_TARGET_BMI, name##_bmi, body)
#define BLY_ONE_ADD(name, body)   \
    BLY_ONE_ADD_FOR(, name, body) \
    BLY_ONE_ADD_FOR(BLY_TARGET_BMI, name##_bmi, body)
#define BLY_ONE_REMOVE(name, body)   \
    BLY_ONE_REMOVE_FOR(, name, body) \
    BLY_ONE_REMOVE_FOR(BLY_TARGET_BMI, name##_bmi, body)
#define BLY_ONE_SET_HAS(one, name)                             \
    (bly_row_runs_bmi() ? BLY_ONE_SET_HAS_FOR(one, name##_bmi) \
                        : BLY_ONE_SET_HAS_FOR(one, name))
#define BLY_ONE_SET_ADD(one, name)                             \
    (bly_row_runs_bmi() ? BLY_ONE_SET_ADD_FOR(one, name##_bmi) \
                        : BLY_ONE_SET_ADD_FOR(one, name))
#define BLY_ONE_SET_REMOVE(one, name) \
    ((void)((one)->ways.remove = bly_row_runs_bmi() ? name##_bmi : name))

/* One removal from a filter that is not shared, in which every key that is
 * there has been counted, unless a file said otherwise. */
static inline void bly_filter_removed_one(bly_filter *f)
{
    f->nadded -= f->nadded != 0;
}

/* Additions that changed something. */
static inline uint64_t bly_filter_nadded(const bly_filter *f)
{
    return atomic_load_explicit((const _Atomic uint64_t *)&f->nadded,
                                memory_order_relaxed);
}

/* The same, of any filter: those of a live one are counted by many
 * processes. */
uint64_t bly_filter_additions(const bly_filter *f);

/* Is what was just added to f, if it is live, where others see it? If not, the
 * status says why: bloomery/live.h. */
static inline bly_status bly_filter_still(const bly_filter *f)
{
    if (!bly_filter_live(f))
        return BLY_OK;
    /* The bits first, then this look: whoever replaces the filter sets the mark
     * first and then takes over the bits. */
    bly_fence();
    const bly_living *const l = f->extra->outside->living;
    return atomic_load_explicit(l->moved, memory_order_acquire) |
                   atomic_load_explicit(l->lost, memory_order_acquire)
               ? l->trouble(f)
               : BLY_OK;
}

/* BLY_ENOTSUP for a live filter, which other processes are using: `what`
 * needs it alone. */
bly_status bly_filter_alone(const bly_filter *f, const char *what);

/* Add n additions that changed something to the count, or subtract n
 * removals. */
void bly_filter_added(bly_filter *f, uint64_t n);
void bly_filter_removed(bly_filter *f, uint64_t n);

/* Limit the count of additions to n, after an intersection. */
void bly_filter_at_most(bly_filter *f, uint64_t n);

#endif
