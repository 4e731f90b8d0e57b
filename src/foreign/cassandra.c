/*
 * cassandra.c - Filter.db of Apache Cassandra's tables
 *
 *     offset  size
 *     0       4     k, big-endian
 *     4       4     n, the number of 64-bit words, big-endian
 *     8       8n    the bits
 *
 * Versions ma to me of a table (3.x) have big-endian words; na and later (4.0),
 * oa and da have bytes, least significant bit first. The version stands in the
 * file's name ("nb-1-big-Filter.db") and not in the file, and bits look alike
 * in either order. Who does not give it is told "no" only where both orders
 * say so: that is never wrong, and "maybe" is wrong twice as often.
 *
 * A partition key is hashed with MurmurHash3 (128 bits; the last bytes as
 * signed numbers, a slip that was kept). Position i is |(h2 + i h1) rem m|,
 * with signed numbers.
 */
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define CASSANDRA_HEADER 8
#define CASSANDRA_MAX_K 64 /* its own sizes end at 20 */

enum { CASSANDRA_KEYS, CASSANDRA_VERSION, CASSANDRA_NOPTIONS };

static const char *const cassandra_forms[] = { "bytes", "hex", "int32be",
                                               "int64be", NULL };
static const char *const cassandra_versions[] = { "any", "ma", "mb", "mc",
                                                  "md",  "me", "na", "nb",
                                                  "nc",  "oa", "da", NULL };
static const bly_param cassandra_options[] = {
    [CASSANDRA_KEYS] =
        BLY_OPTION_CHOICE("keys", 0, cassandra_forms,
                          "the type of the partition key: text or ascii "
                          "(bytes), int (int32be), bigint or timestamp "
                          "(int64be), blob, uuid and all others (hex)"),
    [CASSANDRA_VERSION] =
        BLY_OPTION_CHOICE("version", 0, cassandra_versions,
                          "the version of the table, with which its name "
                          "begins: nb of nb-1-big-Filter.db"),
};

/* The size that its header gives, 0 where that is no header; and *k. */
static uint64_t cassandra_size(const unsigned char *bytes, size_t n,
                               uint32_t *k)
{
    if (n < CASSANDRA_HEADER)
        return 0;
    const uint32_t nwords = bly_load_be32(bytes + 4);
    *k = bly_load_be32(bytes);
    if (*k < 1 || *k > CASSANDRA_MAX_K || nwords < 1 || nwords > INT32_MAX)
        return 0;
    return CASSANDRA_HEADER + (uint64_t)nwords * 8;
}

static bool cassandra_recognise(const unsigned char *bytes, size_t n)
{
    uint32_t k;
    return n > 0 && cassandra_size(bytes, n, &k) == n;
}

static bool cassandra_is_old(const bly_foreign *f)
{
    return f->more->option[CASSANDRA_VERSION][0] == 'm';
}

static bool cassandra_is_any(const bly_foreign *f)
{
    return strcmp(f->more->option[CASSANDRA_VERSION], "any") == 0;
}

static bly_status cassandra_open(bly_foreign *f)
{
    uint32_t k;
    const uint64_t size = cassandra_size(f->more->bytes, f->more->nbytes, &k);
    if (size == 0)
        return bly_damaged(
            "not a Filter.db: it begins with the number of hash functions, 1 "
            "to %d, and the number of words, big-endian",
            CASSANDRA_MAX_K);
    if (size != f->more->nbytes)
        return bly_damaged("its header implies %llu bytes, but it has %zu",
                           (unsigned long long)size, f->more->nbytes);
    f->more->one.bytes = f->more->bytes + CASSANDRA_HEADER;
    f->more->one.nbits = (size - CASSANDRA_HEADER) * 8;
    f->more->one.k = k;
    f->more->one.order = cassandra_is_old(f) ? BLY_BE_WORDS : BLY_LSB_FIRST;
    return BLY_OK;
}

static void cassandra_describe(const bly_foreign *f, bly_facts *out)
{
    bly_fact_word(out, "version", f->more->option[CASSANDRA_VERSION]);
    bly_fact_word(out, "byte_order",
                  cassandra_is_any(f)   ? "unknown, both are asked"
                  : cassandra_is_old(f) ? "big-endian words"
                                        : "bytes");
    bly_fact_word(out, "keys", f->more->option[CASSANDRA_KEYS]);
}

static void cassandra_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    bly_murmur3_128(key->bytes, key->len, 0, true, key->h);
}

static void cassandra_positions(const bly_foreign *f, const bly_foreign_part *p,
                                const bly_foreign_key *key, uint64_t *out)
{
    uint64_t base = key->h[1];
    (void)f;
    for (uint32_t i = 0; i < p->k; i++, base += key->h[0]) {
        const int64_t rem = (int64_t)base % (int64_t)p->nbits;
        out[i] = (uint64_t)(rem < 0 ? -rem : rem);
    }
}

static bool cassandra_test(const bly_foreign *f, size_t part,
                           const bly_foreign_key *key)
{
    bly_foreign_part p = f->more->one;
    uint64_t at[CASSANDRA_MAX_K];
    bool first = true, other = cassandra_is_any(f);
    (void)part;
    cassandra_positions(f, &p, key, at);
    for (uint32_t i = 0; i < p.k; i++)
        first &= bly_part_bit(&p, at[i]);
    p.order = BLY_BE_WORDS;
    for (uint32_t i = 0; i < p.k; i++)
        other &= bly_part_bit(&p, at[i]);
    return first || other;
}

const bly_format bly_format_cassandra = {
    .name = "cassandra",
    .systems = "Apache Cassandra 3.0 and later, Filter.db",
    .summary = "which partitions a table may have",
    .options = cassandra_options,
    .noptions = CASSANDRA_NOPTIONS,
    .recognise = cassandra_recognise,
    .open = cassandra_open,
    .describe = cassandra_describe,
    .hash = cassandra_hash,
    .positions = cassandra_positions,
    .test = cassandra_test,
};
