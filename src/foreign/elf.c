/*
 * elf.c - the filter in front of the symbol table of a shared library
 *
 * A dynamic linker looks a name up in one library after another, and most have
 * not got it. The section .gnu.hash answers that with one word:
 *
 *     nbuckets, symoffset, nwords (a power of two), shift   4 bytes each
 *     nwords words of C bits, C = 64 or 32 as the file is
 *     nbuckets numbers: the first symbol of a bucket, 0 for none
 *     from symbol symoffset on a number each: its hash, the lowest bit set for
 *     the last of its bucket
 *
 *     h = 5381; for each byte: h = 33 h + byte (32 bits)
 *     word h / C mod nwords, bits h mod C and (h >> shift) mod C
 *
 * A blocked filter with k = 2. It is found as the linker finds it, by the
 * dynamic segment, so it does not matter whether there are section headers;
 * files without that segment are searched for the section. 32 and 64 bits,
 * both byte orders.
 */
#include <string.h>

#include "foreign/format.h"

#define ELF_HASH_HEAD 16
#define ELF_PT_LOAD 1
#define ELF_PT_DYNAMIC 2
#define ELF_DT_GNU_HASH 0x6ffffef5
#define ELF_SHT_GNU_HASH 0x6ffffff6

/* Words of .gnu.hash. */
enum { ELF_NBUCKETS, ELF_SYMOFFSET, ELF_NWORDS, ELF_SHIFT };

struct elf_file {
    const unsigned char *bytes;
    size_t n;
    bool wide, big; /* 64 bits; big-endian */
    uint64_t hash;  /* where .gnu.hash is in the file */
    uint32_t nbuckets, first, nwords, shift; /* that it begins with */
    uint64_t symbols;
};

/* --------------------------------------------------- numbers of the file */

/* Are there `size` bytes at `at`? */
static bool elf_within(const struct elf_file *e, uint64_t at, uint64_t size)
{
    return at <= e->n && size <= e->n - at;
}

static uint64_t elf_number(const struct elf_file *e, uint64_t at, unsigned size)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < size; i++)
        x = x << 8 | e->bytes[at + (e->big ? i : size - 1 - i)];
    return x;
}

/* A field whose place and size depend on the class. */
static uint64_t elf_field(const struct elf_file *e, uint64_t base,
                          unsigned narrow_at, unsigned wide_at)
{
    return elf_number(e, base + (e->wide ? wide_at : narrow_at),
                      e->wide ? 8 : 4);
}

static uint32_t elf_hash_word(const struct elf_file *e, uint64_t i)
{
    return (uint32_t)elf_number(e, e->hash + i * 4, 4);
}

/* ------------------------------------------------------------- finding it */

/* A table of the header: program headers or section headers. */
struct elf_table {
    uint64_t at, n, size;
};

static struct elf_table elf_table_of(const struct elf_file *e, bool sections)
{
    const uint64_t counts =
        sections ? (e->wide ? 58 : 46) : (e->wide ? 54 : 42);
    struct elf_table t = {
        .at = sections ? elf_field(e, 0, 32, 40) : elf_field(e, 0, 28, 32),
        .size = elf_number(e, counts, 2),
        .n = elf_number(e, counts + 2, 2),
    };
    const uint64_t least = sections ? (e->wide ? 64 : 40) : (e->wide ? 56 : 32);
    if (t.size < least || !elf_within(e, t.at, t.n * t.size))
        t.n = 0;
    return t;
}

/* Where in the file an address is that the linker sees. */
static bool elf_place(const struct elf_file *e, uint64_t address, uint64_t *out)
{
    const struct elf_table t = elf_table_of(e, false);
    for (uint64_t i = 0; i < t.n; i++) {
        const uint64_t h = t.at + i * t.size;
        const uint64_t at = elf_field(e, h, 8, 16);
        const uint64_t size = elf_field(e, h, 16, 32);
        if (elf_number(e, h, 4) != ELF_PT_LOAD || address < at ||
            address - at >= size)
            continue;
        const uint64_t offset = elf_field(e, h, 4, 8);
        if (offset > UINT64_MAX - (address - at))
            continue;
        *out = offset + (address - at);
        return true;
    }
    return false;
}

/* By the entry of the dynamic segment. */
static bool elf_by_segment(struct elf_file *e)
{
    const struct elf_table t = elf_table_of(e, false);
    const unsigned word = e->wide ? 8 : 4;
    for (uint64_t i = 0; i < t.n; i++) {
        const uint64_t h = t.at + i * t.size;
        if (elf_number(e, h, 4) != ELF_PT_DYNAMIC)
            continue;
        uint64_t at = elf_field(e, h, 4, 8);
        uint64_t left = elf_field(e, h, 16, 32);
        if (!elf_within(e, at, left))
            continue;
        for (; left >= 2 * word; at += 2 * word, left -= 2 * word) {
            const uint64_t tag = elf_number(e, at, word);
            if (tag == 0)
                break;
            if (tag == ELF_DT_GNU_HASH)
                return elf_place(e, elf_number(e, at + word, word), &e->hash);
        }
    }
    return false;
}

static bool elf_by_section(struct elf_file *e)
{
    const struct elf_table t = elf_table_of(e, true);
    for (uint64_t i = 0; i < t.n; i++) {
        const uint64_t h = t.at + i * t.size;
        if (elf_number(e, h + 4, 4) != ELF_SHT_GNU_HASH)
            continue;
        e->hash = elf_field(e, h, 16, 24);
        return true;
    }
    return false;
}

/* -------------------------------------------------------------- opening */

static bool elf_recognise(const unsigned char *bytes, size_t n)
{
    return n >= 52 && memcmp(bytes, "\177ELF", 4) == 0;
}

/* How many symbols it knows: up to the end of the last bucket's chain. */
static bly_status elf_count(struct elf_file *e, uint64_t buckets)
{
    const uint32_t nbuckets = e->nbuckets, first = e->first;
    uint64_t last = 0;
    for (uint32_t i = 0; i < nbuckets; i++) {
        const uint64_t symbol = elf_number(e, buckets + (uint64_t)i * 4, 4);
        last = symbol > last ? symbol : last;
    }
    e->symbols = 0;
    if (last == 0)
        return BLY_OK;
    if (last < first)
        return bly_damaged("a bucket of its .gnu.hash begins at symbol %llu, "
                           "but the first is %u",
                           (unsigned long long)last, first);
    const uint64_t chains = buckets + (uint64_t)nbuckets * 4;
    for (;; last++) {
        const uint64_t at = chains + (last - first) * 4;
        if (!elf_within(e, at, 4))
            return bly_damaged(
                "a chain of its .gnu.hash runs past the end of the file");
        if (elf_number(e, at, 4) & 1)
            break;
    }
    e->symbols = last - first + 1;
    return BLY_OK;
}

static bly_status elf_read(bly_foreign *f, struct elf_file *e)
{
    if (!elf_by_segment(e) && !elf_by_section(e))
        return bly_damaged("an ELF file without .gnu.hash: it offers no "
                           "symbols, or was linked with --hash-style=sysv");
    if (!elf_within(e, e->hash, ELF_HASH_HEAD))
        return bly_damaged("its .gnu.hash lies outside the file");
    const uint32_t nwords = e->nwords = elf_hash_word(e, ELF_NWORDS);
    const uint32_t shift = e->shift = elf_hash_word(e, ELF_SHIFT);
    e->nbuckets = elf_hash_word(e, ELF_NBUCKETS);
    e->first = elf_hash_word(e, ELF_SYMOFFSET);
    const uint64_t filter = (uint64_t)nwords * (e->wide ? 8 : 4);
    const uint64_t buckets = (uint64_t)e->nbuckets * 4;
    if (nwords == 0 || (nwords & (nwords - 1)) != 0 || shift > 31)
        return bly_damaged("its .gnu.hash has %u words, shifted by %u; only a "
                           "power of two, and at most 31, are possible",
                           nwords, shift);
    if (!elf_within(e, e->hash, ELF_HASH_HEAD + filter + buckets))
        return bly_damaged("its .gnu.hash runs past the end of the file");
    f->more->one.bytes = e->bytes + e->hash + ELF_HASH_HEAD;
    f->more->one.nbits = filter * 8;
    f->more->one.k = 2;
    f->more->one.order = !e->big   ? BLY_LSB_FIRST
                         : e->wide ? BLY_BE_WORDS
                                   : BLY_BE_WORDS32;
    const bly_status st = elf_count(e, e->hash + ELF_HASH_HEAD + filter);
    f->more->one.items = e->symbols;
    return st;
}

static bly_status elf_open(bly_foreign *f)
{
    if (!elf_recognise(f->more->bytes, f->more->nbytes))
        return bly_damaged("not an ELF file");
    const unsigned class = f->more->bytes[4], order = f->more->bytes[5];
    if (class < 1 || class > 2 || order < 1 || order > 2 ||
        (class == 2 && f->more->nbytes < 64))
        return bly_damaged("an ELF file of class %u and byte order %u; 1 and 2 "
                           "are known",
                           class, order);
    const bly_status st = bly_foreign_own(f, sizeof(struct elf_file));
    if (st)
        return st;
    struct elf_file *const e = f->own;
    *e = (struct elf_file){ .bytes = f->more->bytes,
                            .n = f->more->nbytes,
                            .wide = class == 2,
                            .big = order == 2 };
    return elf_read(f, e);
}

static void elf_describe(const bly_foreign *f, bly_facts *out)
{
    const struct elf_file *const e = f->own;
    bly_fact_uint(out, "word_bits", e->wide ? 64 : 32);
    bly_fact_word(out, "byte_order", e->big ? "big-endian" : "little-endian");
    bly_fact_uint(out, "machine", elf_number(e, 18, 2));
    bly_fact_uint(out, "buckets", e->nbuckets);
    bly_fact_uint(out, "first_symbol", e->first);
    bly_fact_uint(out, "shift", e->shift);
}

/* ----------------------------------------------------------------- asking */

static void elf_hash(const bly_foreign *f, bly_foreign_key *key)
{
    uint32_t h = 5381;
    (void)f;
    for (size_t i = 0; i < key->len; i++)
        h = h * 33 + key->bytes[i];
    key->h[0] = h;
}

static void elf_positions(const bly_foreign *f, const bly_foreign_part *p,
                          const bly_foreign_key *key, uint64_t *out)
{
    const struct elf_file *const e = f->own;
    const uint32_t h = (uint32_t)key->h[0], word_bits = e->wide ? 64 : 32;
    const uint64_t nwords = p->nbits / word_bits;
    const uint64_t word = h / word_bits % nwords * word_bits;
    out[0] = word + h % word_bits;
    out[1] = word + (h >> e->shift) % word_bits;
}

const bly_format bly_format_elf = {
    .name = "elf",
    .systems = "ELF programs and libraries, .gnu.hash",
    .summary = "which symbols a shared library may have",
    .recognise = elf_recognise,
    .open = elf_open,
    .describe = elf_describe,
    .hash = elf_hash,
    .positions = elf_positions,
};
