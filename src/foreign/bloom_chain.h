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

typedef struct bly_chain_link {
    uint64_t capacity, items;
    double error;          /* rate of this link */
    double bits_per_entry; /* RedisBloom's */
    uint64_t bits;
    uint64_t inverse;    /* of the number of positions: bly_chain_range() */
    unsigned char *data; /* borrowed where it was opened */
    uint32_t hashes;
    uint8_t n2; /* RedisBloom's old filters: positions below 2^n2; else 0 */
} bly_chain_link;

static inline uint64_t bly_chain_nbytes(const bly_chain_link *l)
{
    return l->bits / 8 + (l->bits % 8 != 0);
}

/* The number of positions: bits, or 2^n2. */
static inline bly_modulus bly_chain_range(const bly_chain_link *l)
{
    return (bly_modulus){ l->n2 ? UINT64_C(1) << l->n2 : l->bits, l->inverse };
}

/* What a chain of valkey-bloom has besides. */
typedef struct bly_chain_valkey {
    double tightening; /* of the rate, from link to link; RedisBloom's is 0.5 */
    uint64_t seed[4];
} bly_chain_valkey;

/* f->own. The items of all links together are f->nadded. */
typedef struct bly_chain {
    bly_chain_link *links;
    size_t nlinks;            /* f->nparts */
    bly_chain_valkey *valkey; /* behind it; NULL: RedisBloom's rules */
    uint32_t growth;          /* 0: does not scale */
    uint8_t options;          /* RedisBloom's */
    bool random_seed;         /* valkey-bloom's */
} bly_chain;

/* f->own: a chain of nlinks links, to be filled in. */
bly_status bly_chain_new(bly_foreign *f, bool valkey, uint64_t nlinks);

/* May there be such a link, in so many bytes? Then its inverse is set, too. */
bool bly_chain_link_take(const bly_chain *c, bly_chain_link *l,
                         uint64_t nbytes);

/* Growth as the options say. */
bly_status bly_chain_options(bly_foreign *f);

/* The first link of a new chain. */
bly_status bly_chain_begin(bly_foreign *f, uint64_t items, double fpr);

/* k of RedisBloom's. */
uint32_t bly_chain_hashes(double bits_per_entry);

/* The chain's rate by the items it says it has: a key that is not there passes
 * where one link lets it. */
double bly_chain_rate(const bly_chain *c);

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
uint64_t bly_chain_counted(const bly_foreign *f);
bly_status bly_chain_scales(bly_foreign *f, uint64_t to, uint64_t *holds);

#endif
