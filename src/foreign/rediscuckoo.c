/*
 * rediscuckoo.c - a cuckoo filter of RedisBloom, as CF.SCANDUMP gives it
 *
 * A file is the header that SCANDUMP gives first, and behind it the tables in
 * their order:
 *
 *     offset  size
 *     0       8     items
 *     8       8     buckets of the first table, a power of two
 *     16      8     items deleted since the last compaction
 *     24      8     tables
 *     32      2     slots of a bucket
 *     34      2     moves before it grows
 *     36      2     growth: buckets of a table by those of the last; 0: none
 *     38      ...   the slots of each table, a byte each
 *
 * All numbers are little-endian. A slot holds a fingerprint, 0 where it is
 * empty: h = murmur64a(key, 0), fingerprint h mod 255 + 1, second hash h xor
 * (fingerprint * 0x5bd1e995), bucket = hash mod buckets. A new key goes into
 * the newest table that has an empty slot for it; where none has, others are
 * moved in the newest, and where that fails the filter grows.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define REDISCUCKOO_HEADER 38
#define REDISCUCKOO_VERSION 4
#define REDISCUCKOO_MIX UINT64_C(0x5bd1e995)
#define REDISCUCKOO_MAX_BUCKETS ((UINT64_C(1) << 56) - 1)

/* Tables at most: the server has a limit of its own; this bounds dumps. */
#define REDISCUCKOO_MAX_TABLES UINT64_C(65535) /* RedisBloom has 16 bits */

/* Bytes of a table that a cache holds: there is nothing to fetch. */
#define REDISCUCKOO_NEAR (UINT64_C(1) << 20)

typedef struct cuckoo_part {
    uint64_t buckets;
    unsigned char *slots; /* borrowed where it was opened */
} cuckoo_part;

/* f->own. The items are f->nadded, the tables f->nparts. */
typedef struct rediscuckoo {
    uint64_t buckets, deletes; /* buckets of the first */
    uint64_t ntables, room;    /* room: of tables */
    uint16_t size, moves, growth;
    cuckoo_part *tables; /* the oldest first */
} rediscuckoo;

enum {
    REDISCUCKOO_KEYS,
    REDISCUCKOO_SIZE,
    REDISCUCKOO_MOVES,
    REDISCUCKOO_GROWTH,
    REDISCUCKOO_NOPTIONS
};

static const char *const rediscuckoo_forms[] = { "bytes", "hex", NULL };
static const bly_param rediscuckoo_options[] = {
    [REDISCUCKOO_KEYS] = BLY_OPTION_CHOICE("keys", 0, rediscuckoo_forms,
                                           "what the text of a key means"),
    [REDISCUCKOO_SIZE] = BLY_OPTION_TEXT(
        "bucket-size", "2", "for a new one: slots of a bucket, 1 to 255"),
    [REDISCUCKOO_MOVES] =
        BLY_OPTION_TEXT("max-iterations", "20",
                        "for a new one: moves before it grows, 1 to "
                        "65535"),
    [REDISCUCKOO_GROWTH] =
        BLY_OPTION_TEXT("growth", "1",
                        "for a new one: the size of each next table, as a "
                        "multiple of the last; rounded up to a power of "
                        "two; 0: it does not grow"),
};

static uint64_t rediscuckoo_power(uint64_t n)
{
    uint64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* ------------------------------------------------------------------- making */

/* Buckets of table i: the first's times growth^i; 0 where there would be too
 * many. */
static uint64_t rediscuckoo_buckets(const rediscuckoo *c, uint64_t i)
{
    uint64_t buckets = c->buckets;
    for (; i > 0 && c->growth > 1; i--) {
        if (buckets > REDISCUCKOO_MAX_BUCKETS / c->growth)
            return 0;
        buckets *= c->growth;
    }
    return buckets;
}

/* May there be such a filter? */
static bool rediscuckoo_is_sane(const rediscuckoo *c)
{
    return c->ntables && c->ntables <= REDISCUCKOO_MAX_TABLES && c->buckets &&
           c->buckets <= REDISCUCKOO_MAX_BUCKETS &&
           (c->buckets & (c->buckets - 1)) == 0 && c->size >= 1 &&
           c->size <= 255 && c->moves >= 1 && c->growth <= 32768 &&
           (c->growth & (c->growth - 1)) == 0 &&
           (c->growth || c->ntables == 1) &&
           rediscuckoo_buckets(c, c->ntables - 1);
}

static void rediscuckoo_close(bly_foreign *f)
{
    rediscuckoo *const c = f->own;
    if (!c)
        return;
    for (uint64_t i = 0; c->tables && i < c->ntables && !bly_foreign_opened(f);
         i++)
        bly_mem_release(f->mem, c->tables[i].slots,
                        c->tables[i].buckets * c->size);
    bly_mem_release(f->mem, c->tables, c->room * sizeof *c->tables);
    bly_mem_release(f->mem, c, sizeof *c);
    f->own = NULL;
}

/* f->own by a shape of any origin, the tables without slots. */
static bly_status rediscuckoo_new(bly_foreign *f, const rediscuckoo *shape)
{
    rediscuckoo_close(f); /* of a plan that failed */
    if (!rediscuckoo_is_sane(shape))
        return bly_damaged("a cuckoo filter of RedisBloom that cannot be");
    const bly_status st = bly_foreign_own(f, sizeof *shape);
    if (st)
        return st;
    rediscuckoo *const c = f->own;
    *c = *shape;
    c->room = c->ntables;
    c->tables = bly_mem_zalloc(f->mem, c->room * sizeof *c->tables);
    if (!c->tables)
        return bly_fail(BLY_ENOMEM, "out of memory");
    uint64_t buckets = c->buckets;
    for (uint64_t i = 0; i < c->ntables; i++, buckets *= c->growth)
        c->tables[i].buckets = buckets;
    f->nparts = (uint32_t)c->ntables;
    return BLY_OK;
}

/* Empty slots for a table. */
static bly_status rediscuckoo_slots(bly_foreign *f, cuckoo_part *t)
{
    const rediscuckoo *const c = f->own;
    const uint64_t nbytes = t->buckets * c->size;
    t->slots =
        nbytes < SIZE_MAX ? bly_mem_zalloc(f->mem, (size_t)nbytes) : NULL;
    return t->slots
               ? BLY_OK
               : bly_fail(BLY_ENOMEM, "out of memory: %llu bytes for a table",
                          (unsigned long long)nbytes);
}

static bly_status rediscuckoo_fill(bly_foreign *f, const rediscuckoo *shape)
{
    bly_status st = rediscuckoo_new(f, shape);
    for (size_t i = 0; i < shape->ntables && !st; i++)
        st = rediscuckoo_slots(f, &((rediscuckoo *)f->own)->tables[i]);
    return st;
}

/* One more table. */
static bly_status rediscuckoo_grow(bly_foreign *f)
{
    rediscuckoo *const c = f->own;
    const uint64_t n = c->ntables;
    cuckoo_part next = { .buckets = rediscuckoo_buckets(c, n) };
    if (c->growth == 0)
        return bly_fail(BLY_EFULL, "full, and it does not grow");
    if (n == REDISCUCKOO_MAX_TABLES || !next.buckets)
        return bly_fail(BLY_ERANGE, "cannot grow any more");
    if (n == c->room) {
        cuckoo_part *const more =
            bly_mem_zalloc(f->mem, (n + 1) * sizeof *more);
        if (!more)
            return bly_fail(BLY_ENOMEM, "out of memory");
        memcpy(more, c->tables, n * sizeof *more);
        bly_mem_release(f->mem, c->tables, c->room * sizeof *more);
        c->tables = more;
        c->room = n + 1;
    }
    uint64_t held = next.buckets * c->size;
    for (uint64_t i = 0; i < n; i++)
        held += c->tables[i].buckets * c->size;
    bly_status st = bly_foreign_allowed(f, held);
    if (st || (st = rediscuckoo_slots(f, &next)))
        return st;
    c->tables[n] = next;
    f->nparts = (uint32_t)(c->ntables = n + 1);
    return BLY_OK;
}

static bly_status rediscuckoo_shape(const bly_foreign *f, rediscuckoo *out)
{
    uint64_t size, moves, growth;
    bly_status st = bly_foreign_number(f, REDISCUCKOO_SIZE, 1, 255, &size);
    if (!st)
        st = bly_foreign_number(f, REDISCUCKOO_MOVES, 1, 65535, &moves);
    if (!st)
        st = bly_foreign_number(f, REDISCUCKOO_GROWTH, 0, 32768, &growth);
    if (st)
        return st;
    out->size = (uint16_t)size;
    out->moves = (uint16_t)moves;
    out->growth = growth ? (uint16_t)rediscuckoo_power(growth) : 0;
    return BLY_OK;
}

static bly_status rediscuckoo_plan(bly_foreign *f, uint64_t items, double fpr)
{
    (void)fpr; /* one byte a fingerprint */
    rediscuckoo shape = { .ntables = 1 };
    bly_status st = rediscuckoo_shape(f, &shape);
    if (st)
        return st;
    if (items > REDISCUCKOO_MAX_BUCKETS / 2)
        return bly_fail(BLY_ERANGE, "a cuckoo filter of RedisBloom has fewer "
                                    "than 2^56 buckets");
    shape.buckets = rediscuckoo_power(items / shape.size);
    st = bly_foreign_allowed(f, shape.buckets * shape.size);
    return st ? st : rediscuckoo_fill(f, &shape);
}

static bly_status rediscuckoo_copy(const bly_foreign *f, bly_foreign *to)
{
    const rediscuckoo *const from = f->own;
    const bly_status st = rediscuckoo_fill(to, from);
    const rediscuckoo *const c = to->own;
    for (uint64_t i = 0; !st && i < c->ntables; i++)
        memcpy(c->tables[i].slots, from->tables[i].slots,
               (size_t)(c->tables[i].buckets * c->size));
    return st;
}

/* ----------------------------------------------------------------- the head */

static rediscuckoo rediscuckoo_read(bly_foreign *f, const unsigned char *from)
{
    f->nadded = bly_load64(from);
    return (rediscuckoo){ .buckets = bly_load64(from + 8),
                          .deletes = bly_load64(from + 16),
                          .ntables = bly_load64(from + 24),
                          .size = bly_load16(from + 32),
                          .moves = bly_load16(from + 34),
                          .growth = bly_load16(from + 36) };
}

static size_t rediscuckoo_head(const bly_foreign *f, unsigned char *to)
{
    const rediscuckoo *const c = f->own;
    if (!to)
        return REDISCUCKOO_HEADER;
    bly_store64(to, f->nadded);
    bly_store64(to + 8, c->buckets);
    bly_store64(to + 16, c->deletes);
    bly_store64(to + 24, c->ntables);
    bly_store16(to + 32, c->size);
    bly_store16(to + 34, c->moves);
    bly_store16(to + 36, c->growth);
    return REDISCUCKOO_HEADER;
}

/* Do n bytes hold all tables, and nothing else? */
static bool rediscuckoo_fits(const rediscuckoo *c, uint64_t n)
{
    uint64_t buckets = c->buckets;
    for (uint64_t i = 0; i < c->ntables; i++, buckets *= c->growth) {
        if (buckets > n / c->size)
            return false;
        n -= buckets * c->size;
    }
    return n == 0;
}

static bool rediscuckoo_recognise(const unsigned char *bytes, size_t n)
{
    bly_foreign f;
    if (n <= REDISCUCKOO_HEADER)
        return false;
    const rediscuckoo c = rediscuckoo_read(&f, bytes);
    return rediscuckoo_is_sane(&c) && f.nadded <= n &&
           rediscuckoo_fits(&c, n - REDISCUCKOO_HEADER);
}

static bly_status rediscuckoo_open(bly_foreign *f)
{
    if (f->more->nbytes <= REDISCUCKOO_HEADER)
        return bly_damaged("shorter than a cuckoo filter of RedisBloom");
    const rediscuckoo shape = rediscuckoo_read(f, f->more->bytes);
    if (!rediscuckoo_is_sane(&shape) ||
        !rediscuckoo_fits(&shape, f->more->nbytes - REDISCUCKOO_HEADER))
        return bly_damaged("a cuckoo filter of RedisBloom that cannot be, or "
                           "of another length than it says");
    const bly_status st = rediscuckoo_new(f, &shape);
    if (st)
        return st;
    const rediscuckoo *const c = f->own;
    /* Read alone: it was opened. */
    unsigned char *at =
        (unsigned char *)(uintptr_t)f->more->bytes + REDISCUCKOO_HEADER;
    for (uint64_t i = 0; i < c->ntables; i++) {
        c->tables[i].slots = at;
        at += c->tables[i].buckets * c->size;
    }
    return BLY_OK;
}

static bly_status rediscuckoo_start(bly_foreign *f, const unsigned char *head,
                                    size_t n)
{
    if (n != REDISCUCKOO_HEADER)
        return bly_damaged("the header of a cuckoo filter has 38 bytes");
    const rediscuckoo shape = rediscuckoo_read(f, head);
    return rediscuckoo_fill(f, &shape);
}

/* ------------------------------------------------------------------ records */

static bly_status rediscuckoo_store(const bly_foreign *f,
                                    const bly_foreign_record *to)
{
    const rediscuckoo *const c = f->own;
    to->put_uint(to->ctx, c->ntables);
    to->put_uint(to->ctx, c->buckets);
    to->put_uint(to->ctx, f->nadded);
    to->put_uint(to->ctx, c->deletes);
    to->put_uint(to->ctx, c->size);
    to->put_uint(to->ctx, c->moves);
    to->put_uint(to->ctx, c->growth);
    for (uint64_t i = 0; i < c->ntables; i++) {
        to->put_uint(to->ctx, c->tables[i].buckets);
        to->put_bytes(to->ctx, c->tables[i].slots,
                      (size_t)(c->tables[i].buckets * c->size));
    }
    return BLY_OK;
}

/* Versions before 4 have three numbers, the options are the rest, and all
 * tables are of one size. */
static bly_status rediscuckoo_restore(bly_foreign *f, unsigned version,
                                      const bly_foreign_record *from)
{
    rediscuckoo shape = { 0 };
    bly_status st = version > REDISCUCKOO_VERSION
                        ? bly_damaged("a cuckoo filter of version %u", version)
                        : rediscuckoo_shape(f, &shape);
    if (st)
        return st;
    shape.ntables = from->get_uint(from->ctx);
    shape.buckets = from->get_uint(from->ctx);
    f->nadded = from->get_uint(from->ctx);
    if (version >= 4) {
        shape.deletes = from->get_uint(from->ctx);
        const uint64_t size = from->get_uint(from->ctx);
        const uint64_t moves = from->get_uint(from->ctx);
        const uint64_t growth = from->get_uint(from->ctx);
        shape.size = size > UINT16_MAX ? 0 : (uint16_t)size;
        shape.moves = moves > UINT16_MAX ? 0 : (uint16_t)moves;
        shape.growth = growth > UINT16_MAX ? UINT16_MAX : (uint16_t)growth;
    } else if (shape.ntables > 1) {
        shape.growth = 1;
    }
    if (from->failed(from->ctx))
        return bly_damaged("a cuckoo filter that is cut short");
    /* Tables are taken as they come: none is made before its bytes are there;
     * what is asked for first is a few words a table. */
    st = rediscuckoo_new(f, &shape);
    for (uint64_t i = 0; !st && i < shape.ntables; i++) {
        cuckoo_part *const t = &((rediscuckoo *)f->own)->tables[i];
        size_t n = 0;
        const uint64_t buckets =
            version < 4 ? shape.buckets : from->get_uint(from->ctx);
        unsigned char *const slots =
            from->failed(from->ctx) ? NULL : from->get_bytes(from->ctx, &n);
        if (from->failed(from->ctx) || buckets != t->buckets ||
            n / shape.size != t->buckets || n % shape.size) {
            bly_mem_release(f->mem, slots, n);
            st = bly_damaged("a cuckoo filter with a table that cannot be");
        } else {
            t->slots = slots;
        }
    }
    return st;
}

/* --------------------------------------------------------------- describing */

static void rediscuckoo_part(const bly_foreign *f, size_t i,
                             bly_foreign_part *out)
{
    const rediscuckoo *const c = f->own;
    if (!c || i >= c->ntables) /* its size is not known yet */
        return;
    out->capacity = c->tables[i].buckets * c->size;
    out->nbits = out->capacity * 8;
    out->k = 2;
}

static void rediscuckoo_part_name(const bly_foreign *f, size_t i,
                                  char name[BLY_PART_NAME])
{
    if (f->nparts > 1)
        snprintf(name, BLY_PART_NAME, "table %zu", i + 1);
}

static bly_array rediscuckoo_array(const bly_foreign *f, size_t i)
{
    const rediscuckoo *const c = f->own;
    if (!c || i >= c->ntables)
        return (bly_array){ 0 };
    return (bly_array){ c->tables[i].slots, c->tables[i].buckets * c->size };
}

/* A stranger meets the slots of two buckets, and one in 255 that is taken is
 * its own. */
static double rediscuckoo_rate(const bly_foreign *f, size_t i)
{
    const rediscuckoo *const c = f->own;
    const bly_array a = rediscuckoo_array(f, i);
    uint64_t taken = 0;
    for (uint64_t j = 0; j < a.nbytes; j++)
        taken += a.at[j] != 0;
    return a.nbytes ? -expm1(2.0 * c->size * (double)taken / (double)a.nbytes *
                             log1p(-1 / 255.0))
                    : 0;
}

static void rediscuckoo_describe(const bly_foreign *f, bly_facts *out)
{
    const rediscuckoo *const c = f->own;
    if (!c)
        return;
    bly_fact_uint(out, "buckets", c->buckets);
    bly_fact_uint(out, "bucket_size", c->size);
    bly_fact_uint(out, "max_iterations", c->moves);
    bly_fact_uint(out, "growth", c->growth);
    bly_fact_uint(out, "deletes", c->deletes);
}

static void rediscuckoo_move(bly_foreign *f, size_t i, bly_mover *move,
                             void *ctx)
{
    if (i == 0) {
        bly_moved(&f->own, move, ctx);
        bly_moved(&((rediscuckoo *)f->own)->tables, move, ctx);
    }
    bly_moved(&((rediscuckoo *)f->own)->tables[i].slots, move, ctx);
}

/* -------------------------------------------------------------------- using */

static void rediscuckoo_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    key->h[0] = bly_murmur64a(key->bytes, key->len, 0);
}

static unsigned char rediscuckoo_print(uint64_t hash)
{
    return (unsigned char)(hash % 255 + 1);
}

static uint64_t rediscuckoo_other(uint64_t hash, unsigned char print)
{
    return hash ^ print * REDISCUCKOO_MIX;
}

static unsigned char *rediscuckoo_bucket(const rediscuckoo *c,
                                         const cuckoo_part *t, uint64_t hash)
{
    return t->slots + (hash & (t->buckets - 1)) * c->size;
}

/* The newest table is what most keys are looked for in first. */
static void rediscuckoo_note(const bly_foreign *f, bly_foreign_note *out)
{
    const rediscuckoo *const c = f->own;
    if (!c || !c->ntables)
        return;
    const cuckoo_part *const t = &c->tables[c->ntables - 1];
    out->array = t->slots;
    out->range = t->buckets;
    out->inverse = c->size;
    out->nplaces = t->buckets * c->size > REDISCUCKOO_NEAR ? 2 : 0;
}

static void rediscuckoo_expect(const bly_foreign_note *note, bly_bytes key)
{
    const uint64_t hash = bly_murmur64a(key.ptr, key.len, 0);
    const uint64_t other = rediscuckoo_other(hash, rediscuckoo_print(hash));
    const uint64_t last = note->range - 1;
    __builtin_prefetch(note->array + (hash & last) * note->inverse);
    __builtin_prefetch(note->array + (other & last) * note->inverse);
}

/* The first slot of a bucket with `what`, or NULL: there are two, mostly, and a
 * call of memchr() takes longer than they do. */
static inline unsigned char *rediscuckoo_slot(unsigned char *bucket,
                                              unsigned size, unsigned char what)
{
    for (unsigned i = 0; i < size; i++)
        if (bucket[i] == what)
            return bucket + i;
    return NULL;
}

/* The first slot with `what` in either bucket of a table. */
static unsigned char *rediscuckoo_find_in(const rediscuckoo *c,
                                          const cuckoo_part *t, uint64_t hash,
                                          unsigned char print,
                                          unsigned char what)
{
    unsigned char *const other =
        rediscuckoo_bucket(c, t, rediscuckoo_other(hash, print));
    __builtin_prefetch(other);
    unsigned char *const slot =
        rediscuckoo_slot(rediscuckoo_bucket(c, t, hash), c->size, what);
    return slot ? slot : rediscuckoo_slot(other, c->size, what);
}

static unsigned char *rediscuckoo_find(const rediscuckoo *c, uint64_t hash,
                                       unsigned char what)
{
    unsigned char *slot = NULL;
    for (uint64_t i = c->ntables; i-- > 0 && !slot;)
        slot = rediscuckoo_find_in(c, &c->tables[i], hash,
                                   rediscuckoo_print(hash), what);
    return slot;
}

static bool rediscuckoo_has(const rediscuckoo *c, uint64_t hash)
{
    return rediscuckoo_find(c, hash, rediscuckoo_print(hash)) != NULL;
}

static bool rediscuckoo_test(const bly_foreign *f, size_t i,
                             const bly_foreign_key *key)
{
    const rediscuckoo *const c = f->own;
    const unsigned char print = rediscuckoo_print(key->h[0]);
    return rediscuckoo_find_in(c, &c->tables[i], key->h[0], print, print) !=
           NULL;
}

/* Fetch the buckets of a key that is looked at AHEAD keys later, in the newest
 * tables; those of more would not be there for long enough. */
enum { REDISCUCKOO_AHEAD = 8, REDISCUCKOO_FETCHED = 8 };

static inline void rediscuckoo_fetch(const rediscuckoo *c, uint64_t hash)
{
    const uint64_t other = rediscuckoo_other(hash, rediscuckoo_print(hash));
    const uint64_t end =
        c->ntables > REDISCUCKOO_FETCHED ? c->ntables - REDISCUCKOO_FETCHED : 0;
    for (uint64_t i = c->ntables; i-- > end;) {
        __builtin_prefetch(rediscuckoo_bucket(c, &c->tables[i], hash));
        __builtin_prefetch(rediscuckoo_bucket(c, &c->tables[i], other));
    }
}

/* The keys that come first. */
static void rediscuckoo_fetch_first(const rediscuckoo *c,
                                    const bly_foreign_key *keys, size_t n)
{
    for (size_t i = 0; i < REDISCUCKOO_AHEAD && i < n && n > 1; i++)
        rediscuckoo_fetch(c, keys[i].h[0]);
}

static void rediscuckoo_ask(const bly_foreign *f, const bly_foreign_key *keys,
                            size_t n, uint64_t *bitmap)
{
    const rediscuckoo *const c = f->own;
    rediscuckoo_fetch_first(c, keys, n);
    for (size_t i = 0; i < n; i++) {
        if (i + REDISCUCKOO_AHEAD < n)
            rediscuckoo_fetch(c, keys[i + REDISCUCKOO_AHEAD].h[0]);
        bitmap[i / 64] |= (uint64_t)rediscuckoo_has(c, keys[i].h[0]) << i % 64;
    }
}

static uint64_t rediscuckoo_count(const bly_foreign *f,
                                  const bly_foreign_key *key)
{
    const rediscuckoo *const c = f->own;
    const unsigned char print = rediscuckoo_print(key->h[0]);
    const uint64_t hashes[] = { key->h[0],
                                rediscuckoo_other(key->h[0], print) };
    uint64_t n = 0;
    for (uint64_t i = 0; i < 2 * c->ntables; i++) {
        const unsigned char *const bucket =
            rediscuckoo_bucket(c, &c->tables[i / 2], hashes[i % 2]);
        for (unsigned s = 0; s < c->size; s++)
            n += bucket[s] == print;
    }
    return n;
}

/* Push others about in the newest table until one finds an empty slot; false,
 * and all is as it was, where none does. */
static bool rediscuckoo_kick(const rediscuckoo *c, uint64_t hash)
{
    const cuckoo_part *const t = &c->tables[c->ntables - 1];
    const unsigned size = c->size;
    unsigned char print = rediscuckoo_print(hash), swapped;
    uint64_t i = hash & (t->buckets - 1);
    unsigned victim = 0, n = 0;
    for (; n < c->moves; n++) {
        unsigned char *const slot = t->slots + i * size + victim;
        swapped = *slot;
        *slot = print;
        print = swapped;
        i = rediscuckoo_other(i, print) & (t->buckets - 1);
        unsigned char *const empty =
            rediscuckoo_slot(t->slots + i * size, size, 0);
        if (empty) {
            *empty = print;
            return true;
        }
        victim = (victim + 1) % size;
    }
    while (n-- > 0) { /* the same way back */
        victim = (victim + size - 1) % size;
        i = rediscuckoo_other(i, print) & (t->buckets - 1);
        unsigned char *const slot = t->slots + i * size + victim;
        swapped = *slot;
        *slot = print;
        print = swapped;
    }
    return false;
}

static bly_status rediscuckoo_put(bly_foreign *f, uint64_t hash)
{
    rediscuckoo *const c = f->own;
    for (;;) {
        unsigned char *const empty = rediscuckoo_find(c, hash, 0);
        if (empty)
            *empty = rediscuckoo_print(hash);
        if (empty || rediscuckoo_kick(c, hash)) {
            f->nadded++;
            f->nchanges++;
            return BLY_OK;
        }
        const bly_status st = rediscuckoo_grow(f);
        if (st)
            return st;
    }
}

static bly_status rediscuckoo_add(bly_foreign *f, const bly_foreign_key *keys,
                                  size_t n, bool again, uint64_t *fresh,
                                  size_t *ndone)
{
    bly_status st = BLY_OK;
    rediscuckoo_fetch_first(f->own, keys, n);
    for (*ndone = 0; *ndone < n && !st; *ndone += !st) {
        const uint64_t h = keys[*ndone].h[0];
        if (*ndone + REDISCUCKOO_AHEAD < n)
            rediscuckoo_fetch(f->own, keys[*ndone + REDISCUCKOO_AHEAD].h[0]);
        const bool is_new = (again && !fresh) || !rediscuckoo_has(f->own, h);
        if (is_new || again)
            st = rediscuckoo_put(f, h);
        if (!st && fresh)
            fresh[*ndone / 64] |= (uint64_t)is_new << *ndone % 64;
    }
    return st;
}

/* --------------------------------------------------------------- compaction */

/* Move one fingerprint of bucket i into the oldest table before `last` that
 * has room. */
static bool rediscuckoo_move_down(const rediscuckoo *c, uint64_t last,
                                  uint64_t i, unsigned char print)
{
    for (uint64_t t = 0; t < last; t++) {
        unsigned char *const empty =
            rediscuckoo_find_in(c, &c->tables[t], i, print, 0);
        if (empty) {
            *empty = print;
            return true;
        }
    }
    return false;
}

/* Is table t empty now? */
static bool rediscuckoo_empty(bly_foreign *f, uint64_t t)
{
    const rediscuckoo *const c = f->own;
    const cuckoo_part *const from = &c->tables[t];
    bool emptied = true;
    for (uint64_t i = 0; i < from->buckets; i++)
        for (unsigned s = 0; s < c->size; s++) {
            unsigned char *const slot = from->slots + i * c->size + s;
            if (*slot && rediscuckoo_move_down(c, t, i, *slot)) {
                *slot = 0;
                f->nchanges++;
            }
            emptied = emptied && !*slot;
        }
    return emptied;
}

/* Move fingerprints into older tables and free the newest that is empty. all:
 * go on past a table that cannot be emptied. */
static void rediscuckoo_squeeze(bly_foreign *f, bool all)
{
    rediscuckoo *const c = f->own;
    for (uint64_t t = c->ntables - 1; t > 0; t--) {
        const bool emptied = rediscuckoo_empty(f, t);
        if (emptied && t == c->ntables - 1) {
            bly_mem_release(f->mem, c->tables[t].slots,
                            c->tables[t].buckets * c->size);
            f->nparts = (uint32_t)--c->ntables;
            f->nchanges++;
        }
        if (!emptied && !all)
            break;
    }
    f->nchanges += c->deletes != 0;
    c->deletes = 0;
}

static void rediscuckoo_compact(bly_foreign *f)
{
    rediscuckoo_squeeze(f, true);
}

static bly_status rediscuckoo_remove(bly_foreign *f, const bly_foreign_key *key)
{
    rediscuckoo *const c = f->own;
    unsigned char *const slot =
        rediscuckoo_find(c, key->h[0], rediscuckoo_print(key->h[0]));
    if (!slot)
        return bly_fail(BLY_EABSENT, "the key is not in the filter");
    *slot = 0;
    f->nadded -= f->nadded > 0; /* a dump may have said less than it holds */
    c->deletes++;
    f->nchanges++;
    if (c->ntables > 1 && c->deletes * 10 > f->nadded)
        rediscuckoo_squeeze(f, false);
    return BLY_OK;
}

const bly_format bly_format_rediscuckoo = {
    .name = "rediscuckoo",
    .systems = "RedisBloom CF.SCANDUMP, CF.LOADCHUNK (Redis)",
    .summary = "header and chunks of a cuckoo filter in Redis",
    .options = rediscuckoo_options,
    .noptions = REDISCUCKOO_NOPTIONS,
    .recognise = rediscuckoo_recognise,
    .open = rediscuckoo_open,
    .close = rediscuckoo_close,
    .part = rediscuckoo_part,
    .part_name = rediscuckoo_part_name,
    .describe = rediscuckoo_describe,
    .hash = rediscuckoo_hash,
    .note = rediscuckoo_note,
    .expect = rediscuckoo_expect,
    .test = rediscuckoo_test,
    .plan = rediscuckoo_plan,
    .nhash = 1,
    .add = rediscuckoo_add,
    .ask = rediscuckoo_ask,
    .rate_of = rediscuckoo_rate,
    .remove = rediscuckoo_remove,
    .count = rediscuckoo_count,
    .compact = rediscuckoo_compact,
    .copy = rediscuckoo_copy,
    .array = rediscuckoo_array,
    .move = rediscuckoo_move,
    .head = rediscuckoo_head,
    .start = rediscuckoo_start,
    .store = rediscuckoo_store,
    .restore = rediscuckoo_restore,
};
