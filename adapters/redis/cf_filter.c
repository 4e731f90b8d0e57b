/*
 * cf_filter.c - see cf_filter.h
 */
#include "adapters/redis/cf_filter.h"

#include <string.h>

#include <bloomery/foreign.h>

#define CF_MIX UINT64_C(0x5bd1e995)

/* Tables at most: each command checks cf-max-expansions; this bounds dumps. */
#define CF_MAX_TABLES (UINT64_C(1) << 17)

static uint64_t power_of_two(uint64_t n)
{
    uint64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* ------------------------------------------------------------------- making */

/* Buckets of table i; 0 where there would be too many. */
uint64_t cf_table_buckets(const cf_shape *s, uint64_t i)
{
    uint64_t buckets = s->buckets;
    for (; i > 0 && s->expansion > 1; i--) {
        if (buckets > CF_MAX_BUCKETS / s->expansion)
            return 0;
        buckets *= s->expansion;
    }
    return buckets;
}

uint64_t cf_table_bytes(const cf_filter *f, uint64_t i)
{
    return f->tables[i].buckets * f->s.bucket_size;
}

uint64_t cf_bytes(const cf_filter *f)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < f->s.ntables; i++)
        sum += cf_table_bytes(f, i);
    return sum;
}

void cf_free(void *value)
{
    cf_filter *f = value;
    if (!f)
        return;
    for (uint64_t i = 0; f->tables && i < f->s.ntables; i++)
        memory_free(f->tables[i].slots);
    memory_free(f->tables);
    memory_free(f);
}

/* One more table. */
static bool cf_grow(cf_filter *f)
{
    const uint64_t n = f->s.ntables;
    const uint64_t buckets = cf_table_buckets(&f->s, n);
    cf_table *more = n < CF_MAX_TABLES && buckets
                         ? memory_try((n + 1) * sizeof *more)
                         : NULL;
    if (!more)
        return false;
    unsigned char *slots = memory_try(buckets * f->s.bucket_size);
    if (!slots) {
        memory_free(more);
        return false;
    }
    if (n)
        memcpy(more, f->tables, (size_t)n * sizeof *more);
    more[n] = (cf_table){ buckets, slots };
    memory_free(f->tables);
    f->tables = more;
    f->s.ntables = n + 1;
    return true;
}

bool cf_is_sane(const cf_shape *s)
{
    return s->ntables && s->ntables <= CF_MAX_TABLES && s->buckets &&
           s->buckets <= CF_MAX_BUCKETS &&
           (s->buckets & (s->buckets - 1)) == 0 && s->bucket_size >= 1 &&
           s->bucket_size <= 255 && s->max_iterations >= 1 &&
           s->expansion <= 32768 && (s->expansion & (s->expansion - 1)) == 0 &&
           (s->expansion || s->ntables == 1) &&
           cf_table_buckets(s, s->ntables - 1);
}

cf_filter *cf_of_shape(const cf_shape *s)
{
    cf_filter *f = cf_is_sane(s) ? memory_try(sizeof *f) : NULL;
    if (!f)
        return NULL;
    f->s = *s;
    f->s.ntables = 0;
    while (f->s.ntables < s->ntables)
        if (!cf_grow(f)) {
            cf_free(f);
            return NULL;
        }
    return f;
}

cf_filter *cf_new(uint64_t capacity, uint16_t bucket_size,
                  uint16_t max_iterations, uint16_t expansion)
{
    const cf_shape s = {
        .buckets = power_of_two(capacity / bucket_size),
        .ntables = 1,
        .bucket_size = bucket_size,
        .max_iterations = max_iterations,
        .expansion =
            expansion ? (uint16_t)power_of_two(expansion) : (uint16_t)0,
    };
    return cf_of_shape(&s);
}

/* -------------------------------------------------------------------- using */

uint64_t cf_hash(bytes item)
{
    return bly_murmur64a(item.at, item.n, 0);
}

static unsigned char fingerprint_of(uint64_t hash)
{
    return (unsigned char)(hash % 255 + 1);
}

static uint64_t other_hash(uint64_t hash, unsigned char fingerprint)
{
    return hash ^ fingerprint * CF_MIX;
}

static unsigned char *bucket_at(const cf_filter *f, const cf_table *t,
                                uint64_t hash)
{
    return t->slots + (hash & (t->buckets - 1)) * f->s.bucket_size;
}

/* The first slot of a bucket that holds what; NULL if none does. */
static unsigned char *slot_of(const cf_filter *f, unsigned char *bucket,
                              unsigned char what)
{
    return memchr(bucket, what, f->s.bucket_size);
}

/* The first slot with what in either bucket of a table. */
static unsigned char *find_in(const cf_filter *f, const cf_table *t,
                              uint64_t hash, unsigned char fingerprint,
                              unsigned char what)
{
    unsigned char *slot = slot_of(f, bucket_at(f, t, hash), what);
    return slot ? slot
                : slot_of(f, bucket_at(f, t, other_hash(hash, fingerprint)),
                          what);
}

static unsigned char *find_newest(const cf_filter *f, uint64_t hash,
                                  unsigned char what)
{
    unsigned char *slot = NULL;
    for (uint64_t i = f->s.ntables; i-- > 0 && !slot;)
        slot = find_in(f, &f->tables[i], hash, fingerprint_of(hash), what);
    return slot;
}

bool cf_has(const cf_filter *f, uint64_t hash)
{
    return find_newest(f, hash, fingerprint_of(hash)) != NULL;
}

static uint64_t count_in(const cf_filter *f, const unsigned char *bucket,
                         unsigned char fingerprint)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < f->s.bucket_size; i++)
        n += bucket[i] == fingerprint;
    return n;
}

uint64_t cf_count(const cf_filter *f, uint64_t hash)
{
    const unsigned char fingerprint = fingerprint_of(hash);
    uint64_t n = 0;
    for (uint64_t i = 0; i < f->s.ntables; i++) {
        const cf_table *t = &f->tables[i];
        n += count_in(f, bucket_at(f, t, hash), fingerprint) +
             count_in(f, bucket_at(f, t, other_hash(hash, fingerprint)),
                      fingerprint);
    }
    return n;
}

/* Push others about in the newest table until one finds an empty slot; false,
 * and all is as it was, where none does. */
static bool cf_kick(cf_filter *f, uint64_t hash)
{
    const cf_table *t = &f->tables[f->s.ntables - 1];
    const unsigned size = f->s.bucket_size;
    unsigned char fingerprint = fingerprint_of(hash), swapped;
    uint64_t i = hash & (t->buckets - 1);
    unsigned victim = 0, n = 0;
    for (; n < f->s.max_iterations; n++) {
        unsigned char *slot = t->slots + i * size + victim;
        swapped = *slot;
        *slot = fingerprint;
        fingerprint = swapped;
        i = other_hash(i, fingerprint) & (t->buckets - 1);
        unsigned char *empty = slot_of(f, t->slots + i * size, 0);
        if (empty) {
            *empty = fingerprint;
            return true;
        }
        victim = (victim + 1) % size;
    }
    while (n-- > 0) { /* the same way back */
        victim = (victim + size - 1) % size;
        i = other_hash(i, fingerprint) & (t->buckets - 1);
        unsigned char *slot = t->slots + i * size + victim;
        swapped = *slot;
        *slot = fingerprint;
        fingerprint = swapped;
    }
    return false;
}

cf_added cf_add(cf_filter *f, uint64_t hash, bool unique)
{
    if (unique && cf_has(f, hash))
        return CF_THERE;
    for (;;) {
        unsigned char *empty = find_newest(f, hash, 0);
        if (empty)
            *empty = fingerprint_of(hash);
        if (empty || cf_kick(f, hash)) {
            f->s.items++;
            return CF_ADDED;
        }
        if (f->s.expansion == 0)
            return CF_FULL;
        if (!cf_grow(f))
            return CF_NO_MEMORY;
    }
}

bool cf_remove(cf_filter *f, uint64_t hash)
{
    unsigned char *slot = find_newest(f, hash, fingerprint_of(hash));
    if (!slot)
        return false;
    *slot = 0;
    f->s.items -= f->s.items > 0; /* a dump may have said less than it holds */
    f->s.deletes++;
    if (f->s.ntables > 1 && f->s.deletes * 10 > f->s.items)
        cf_compact(f, false);
    return true;
}

/* --------------------------------------------------------------- compaction */

/* Move one fingerprint of bucket i into the oldest table before `last` that
 * has room. */
static bool move_down(cf_filter *f, uint64_t last, uint64_t i,
                      unsigned char fingerprint)
{
    for (uint64_t t = 0; t < last; t++) {
        unsigned char *empty = find_in(f, &f->tables[t], i, fingerprint, 0);
        if (empty) {
            *empty = fingerprint;
            return true;
        }
    }
    return false;
}

/* Is table t empty now? */
static bool cf_empty_table(cf_filter *f, uint64_t t)
{
    const cf_table *from = &f->tables[t];
    bool emptied = true;
    for (uint64_t i = 0; i < from->buckets; i++)
        for (unsigned s = 0; s < f->s.bucket_size; s++) {
            unsigned char *slot = from->slots + i * f->s.bucket_size + s;
            if (*slot && move_down(f, t, i, *slot))
                *slot = 0;
            emptied = emptied && !*slot;
        }
    return emptied;
}

void cf_compact(cf_filter *f, bool all)
{
    for (uint64_t t = f->s.ntables - 1; t > 0; t--) {
        const bool emptied = cf_empty_table(f, t);
        if (emptied && t == f->s.ntables - 1) {
            memory_free(f->tables[t].slots);
            f->s.ntables--;
        }
        if (!emptied && !all)
            break;
    }
    f->s.deletes = 0;
}

/* ------------------------------------------------------------------- chunks */

static array_part cf_part(const void *value, uint64_t i)
{
    const cf_filter *f = value;
    return (array_part){ f->tables[i].slots, cf_table_bytes(f, i) };
}

size_t cf_chunk(const cf_filter *f, uint64_t offset, size_t most,
                unsigned char **at)
{
    return array_chunk(f, f->s.ntables, cf_part, offset, most, at);
}
