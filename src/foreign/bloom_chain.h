/*
 * bloom_chain.h - the Bloom filters of RedisBloom and of valkey-bloom, bit for
 * bit
 *
 * A filter is a chain of links, the oldest first; a full one is followed by a
 * larger one with a lower rate. The two systems differ in sizes, rates and
 * hashing, and a filter keeps to the rules of its own for life:
 *
 *     RedisBloom     bits = c |ln e| / ln^2 2, rounded up to 64; the first rate
 *                    is half of what was asked, each next half of the last;
 *                    probe i at (a + i b) mod bits
 *     valkey-bloom   whole bytes; the first rate is what was asked, each next
 *                    the last times a tightening; probes 0 and 1 are a and b
 *
 * A key is hashed once into two words, and every link derives its probes from
 * these; so a batch is hashed first, fetched ahead, then touched.
 *
 * Here are the functions of the rows (format.h) of both; what differs between
 * them on disk is in redisbloom.c and valkeybloom.c.
 */
#ifndef BLY_FOREIGN_BLOOM_CHAIN_H
#define BLY_FOREIGN_BLOOM_CHAIN_H

#include "core/bits.h"
#include "foreign/format.h"

#define BLY_CHAIN_MAX_LINKS ((uint64_t)1 << 16)

/* Bytes of a link that a cache holds: there is nothing to fetch. */
#define BLY_CHAIN_NEAR ((uint64_t)1 << 20)

/* The options that chains of both begin with. */
enum {
    BLY_CHAIN_KEYS,
    BLY_CHAIN_SCALING,
    BLY_CHAIN_GROWTH,
    BLY_CHAIN_NOPTIONS
};
extern const char *const bly_chain_forms[], *const bly_chain_scaling[];

#define BLY_CHAIN_OPTIONS                                                 \
    [BLY_CHAIN_KEYS] = BLY_OPTION_CHOICE("keys", 0, bly_chain_forms,      \
                                         "what the text of a key means"), \
    [BLY_CHAIN_SCALING] =                                                 \
        BLY_OPTION_CHOICE("scaling", 0, bly_chain_scaling,                \
                          "for a new one: may grow past its capacity"),   \
    [BLY_CHAIN_GROWTH] = BLY_OPTION_TEXT(                                 \
        "growth", "2",                                                    \
        "for a new one that scales: the capacity of each next filter, "   \
        "as a multiple of the last")

/* What is said of a link, by whoever. */
typedef struct bly_chain_sizes {
    uint64_t capacity, items;
    double error;          /* its rate */
    double bits_per_entry; /* RedisBloom's */
    uint64_t bits, hashes;
    uint64_t n2; /* RedisBloom's old filters: positions below 2^n2; else 0 */
} bly_chain_sizes;

/* The same where it can be, and its array: 48 bytes, as an allocator gives. */
typedef struct bly_chain_link {
    uint64_t bits : 46, hashes : 11, n2 : 6;
    uint64_t odd : 1; /* its bits per entry do not follow from its rate */
    uint64_t capacity, items;
    double error;
    uint64_t inverse;    /* of the number of positions: bly_chain_range(); of an
                            odd one the bits per entry */
    unsigned char *data; /* borrowed where it was opened */
} bly_chain_link;

static inline uint64_t bly_chain_nbytes(const bly_chain_link *l)
{
    return l->bits / 8 + (l->bits % 8 != 0);
}

/* The number of positions: bits, or 2^n2. */
static inline bly_modulus bly_chain_range(const bly_chain_link *l)
{
    const uint64_t n = l->n2 ? UINT64_C(1) << l->n2 : l->bits;
    return (bly_modulus){ n, l->odd ? UINT64_MAX / n : l->inverse };
}

/* RedisBloom's, of its own links. */
double bly_chain_bits_per_entry(const bly_chain_link *l);

/* What a chain of valkey-bloom has besides. */
typedef struct bly_chain_rules {
    double tightening; /* of the rate, from link to link; RedisBloom's is 0.5 */
    uint64_t seed[4];
} bly_chain_rules;

/* A chain: f->own is its links, f->nparts of them, and behind these the rules
 * of valkey-bloom's; NULL is one of which nothing is known yet. f->growth 0: it
 * does not scale. The items of all links together are f->nadded. */
enum {
    BLY_CHAIN_OPTION_BITS = 15, /* of f->flags: RedisBloom's options */
    BLY_CHAIN_VALKEY = 16,      /* by the rules of valkey-bloom */
    BLY_CHAIN_RANDOM_SEED = 32  /* valkey-bloom's */
};

static inline bool bly_chain_is_valkey(const bly_foreign *f)
{
    return f->flags & BLY_CHAIN_VALKEY;
}

static inline bly_chain_link *bly_chain_links(const bly_foreign *f)
{
    return f->own;
}

static inline bly_chain_rules *bly_chain_rules_of(const bly_foreign *f)
{
    return (bly_chain_rules *)(void *)(bly_chain_links(f) + f->nparts);
}

/* The array of a link of f, zeroed; NULL without memory. In front of a large
 * one of valkey-bloom's there is room for what its records have there, so that
 * head and array are stored at once, without a copy of both. */
#define BLY_CHAIN_LEAD ((size_t)64) /* keeps the array aligned */
#define BLY_CHAIN_LARGE ((size_t)4096)
unsigned char *bly_chain_array_new(const bly_foreign *f, size_t nbytes);
void bly_chain_array_free(const bly_foreign *f, unsigned char *data,
                          size_t nbytes);

/* f->own: a chain of nlinks links, to be filled in. */
bly_status bly_chain_new(bly_foreign *f, bool valkey, uint64_t nlinks);

/* May there be such a link, in so many bytes? Then it is made, all but data. */
bool bly_chain_link_take(bool valkey, const bly_chain_sizes *sizes,
                         uint64_t nbytes, bly_chain_link *out);

/* Growth as the options say. */
bly_status bly_chain_options(bly_foreign *f);

/* The first link of a new chain. */
bly_status bly_chain_begin(bly_foreign *f, uint64_t items, double fpr);

/* The chain's rate by the items it says it has: a key that is not there passes
 * where one link lets it. */
double bly_chain_rate(const bly_foreign *f);

/* ---------------------------------------------------- functions of the rows */

void bly_chain_close(bly_foreign *f);
void bly_chain_part(const bly_foreign *f, size_t i, bly_foreign_part *out);
void bly_chain_name(const bly_foreign *f, size_t i, char name[BLY_PART_NAME]);
bool bly_chain_test(const bly_foreign *f, size_t i, const bly_foreign_key *key);
void bly_chain_ask(const bly_foreign *f, const bly_foreign_key *keys, size_t n,
                   uint64_t *bitmap);
bly_status bly_chain_add(bly_foreign *f, const bly_foreign_key *keys, size_t n,
                         bool again, uint64_t *fresh, size_t *ndone);
bly_status bly_chain_copy(const bly_foreign *f, bly_foreign *to);
bly_array bly_chain_array(const bly_foreign *f, size_t i);
void bly_chain_move(bly_foreign *f, size_t i, bly_mover *move, void *ctx);
uint64_t bly_chain_counted(const bly_foreign *f, size_t nparts);
bly_status bly_chain_scales(bly_foreign *f, uint64_t to, uint64_t *holds);

#endif
