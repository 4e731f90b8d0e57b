/*
 * prints.h - static filters of fingerprints: what xor and fuse share
 *
 * Cells of 2 to 32 bits; the XOR of the cells of a key is its fingerprint,
 * the high bits of g C (peel.h). One in 2^bits other keys agrees by chance. The
 * two kinds differ only in the layout of slots.
 */
#ifndef BLY_PRINTS_H
#define BLY_PRINTS_H

#include "kinds/peeled.h"

/* The params of both kinds begin like this; fuse has two more, xor one. The
 * arity is at least 3 in fuse filters, which tells the two kinds apart. */
enum {
    PRINTS_BITS,
    PRINTS_SHARDS,
    PRINTS_SEGMENT,
    PRINTS_WINDOWS,
    PRINTS_ARITY,
    FUSE_MIXING,
    XOR_MIXING = PRINTS_ARITY,
};

/* How a hash becomes the word from which slots and fingerprint are taken
 * (bly_peel_word()). Files from before the choice existed have the first. */
enum { PRINTS_FULL, PRINTS_LIGHT };

#define BLY_PRINTS_MIXING                                                   \
    BLY_PARAM("mixing", BLY_CHOICE, .settable = true, .max = PRINTS_LIGHT,  \
              .def = PRINTS_LIGHT, .choices = BLY_WORDS("full", "light"),   \
              .help = "how hashes become slots: full as it was first, and " \
                      "for hashes of your own that are not spread over 64 " \
                      "bits")

#define BLY_PRINTS_PARAMS                                                      \
    [PRINTS_BITS] = BLY_PARAM("bits", BLY_UINT, .settable = true,              \
                              .automatic = true, .min = 2, .max = 32,          \
                              .help = "bits of a fingerprint; 8, 16 and 32 "   \
                                      "are the fastest"),                      \
    [PRINTS_SHARDS] = BLY_PARAM("shards", BLY_UINT, .settable = true,          \
                                .automatic = true, .min = 1, .max = 0x1p32,    \
                                .help = "parts that are built one by one"),    \
    [PRINTS_SEGMENT] = BLY_PARAM("segment", BLY_UINT, .min = 1, .max = 0x1p32, \
                                 .help = "slots of a segment"),                \
    [PRINTS_WINDOWS] =                                                         \
        BLY_PARAM("windows", BLY_UINT, .min = 1, .max = 0x1p32,                \
                  .help = "segments of a shard where keys may begin")

/* A shape for w; arity 0 for a xor filter. */
bly_status bly_prints_plan(const char *kind, const bly_want *w, uint64_t arity,
                           uint64_t mixing, bly_shape *out);
/* sane(), for a shape whose arity (for xor: whose mixing) has been checked. */
bool bly_prints_sane(const bly_shape *s);

/* Functions of the descriptors. */
double bly_prints_rate(const bly_shape *s, double n);
uint64_t bly_prints_bits(const bly_shape *s);
void bly_prints_describe(const bly_shape *s, const bly_want *w,
                         const bly_filter *f, bly_facts *out);
bool bly_prints_check(const bly_filter *f);
void bly_prints_stat(const bly_filter *f, bly_stats *out);
bly_status bly_prints_build(bly_filter *f, uint64_t *h, uint64_t *values,
                            size_t n, unsigned nthreads);
uint64_t bly_prints_shards(const bly_shape *s);
uint64_t bly_prints_shard_bytes(const bly_shape *s, uint64_t n);
bly_status bly_prints_build_part(bly_filter *f, uint64_t first,
                                 uint64_t nshards, uint64_t *h,
                                 uint64_t *values, size_t n, unsigned nthreads);
void bly_prints_reach(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *bad);
void bly_prints_fetch(const bly_filter *f, const uint64_t *h, size_t n);
void bly_prints_one(const bly_filter *f, bly_one *out);
void bly_prints_has(const bly_filter *f, const uint64_t *h, size_t n,
                    uint64_t *maybe);

/* What the descriptors of both kinds have in common: all but the kind's names,
 * its params, and plan() and sane(). */
#define BLY_PRINTS_MEMBERS                                              \
    .nstate = BLY_PEELED_STATE + 1, .rate = bly_prints_rate,            \
    .bits = bly_prints_bits, .describe = bly_prints_describe,           \
    .sound = bly_peeled_sound, .check = bly_prints_check,               \
    .reach = BLY_SYSTEM(bly_prints_reach), .stat = bly_prints_stat,     \
    .one = bly_prints_one, .has = bly_prints_has,                       \
    .fetch = BLY_SYSTEM(bly_prints_fetch), .build = bly_prints_build,   \
    .shards = bly_prints_shards, .shard_bytes = bly_prints_shard_bytes, \
    .build_part = bly_prints_build_part

/* The view of f, if it is of this kind. An empty filter answers "no" without
 * reading cells, and has no view. */
bool bly_prints_view(const bly_filter *f, const bly_kind *kind,
                     bly_view_fuse *out);

#endif
