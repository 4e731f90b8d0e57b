/*
 * spie_file.c - digest tables in a file
 *
 *     8  "BLYDIG2\n"
 *     4  number of tables        4  length of the router's name, which follows
 *     then of each table
 *     8  start    8  end    8  packets    8  bytes
 *     8  length of the filter, which follows as a .bly file
 *     8  entries of the side table, which follow:
 *        8  hash    1  change    1  length    the packet as it came
 *     8  XXH3 of all that stands before
 *
 * BLYDIG1 knew packets by their checksums of UDP and TCP too, which the next
 * network card may change: it could say "no" of a packet that had passed.
 *
 * Numbers are little-endian; times are nanoseconds since 1970, in two's
 * complement. What a file says is believed only if the sum is right, and not
 * even then: each length must fit, hashes must ascend, and the filter is loaded
 * as any other.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/spie.h"
#include "base/byte_order.h"
#include "base/grow.h"
#include "base/search.h"

static const unsigned char magic[8] = "BLYDIG2\n";
static const unsigned char magic_1[8] = "BLYDIG1\n";
#define TABLE_HEAD 48
#define SIDE 10 /* bytes of an entry, and the packet */
#define LEAST_BITS 64

bly_status spie_table_make(uint64_t seed, const uint64_t *hashes, size_t n,
                           uint64_t nbits, bly_filter **out)
{
    const bly_spec spec = { .kind = "classic",
                            .items = n ? n : 1,
                            .bits = nbits > LEAST_BITS ? nbits : LEAST_BITS,
                            .seed = seed };
    *out = NULL;
    bly_status st = bly_new(&spec, out);
    if (!st)
        st = bly_add_hashes(*out, hashes, n, NULL, NULL);
    if (st) {
        bly_free(*out);
        *out = NULL;
    } else {
        bly_set_compact(*out, true); /* no pages to map: 0.5 % is little */
    }
    return st;
}

/* ------------------------------------------------------------------- tables */

static void table_free(struct spie_table *t)
{
    bly_free(t->filter);
    free(t->sides);
}

bool spie_file_add(struct spie_file *f, const struct spie_table *t)
{
    if (!GROW(&f->tables, &f->room, f->ntables + 1))
        return false;
    f->tables[f->ntables++] = *t;
    return true;
}

void spie_file_drop(struct spie_file *f)
{
    table_free(&f->tables[0]);
    f->ntables--;
    memmove(f->tables, f->tables + 1, f->ntables * sizeof *f->tables);
}

void spie_file_free(struct spie_file *f)
{
    for (size_t i = 0; i < f->ntables; i++)
        table_free(&f->tables[i]);
    free(f->tables);
    *f = (struct spie_file){ 0 };
}

/* ------------------------------------------------------------------ writing */

struct filled {
    unsigned char *at;
    size_t n;
};

static void put_number(struct filled *out, uint64_t x, unsigned nbytes)
{
    put_le(out->at + out->n, x, nbytes);
    out->n += nbytes;
}

static bool put_bytes(void *ctx, const void *bytes, size_t n)
{
    struct filled *const out = ctx;
    memcpy(out->at + out->n, bytes, n);
    out->n += n;
    return true;
}

static uint64_t sum_of(const unsigned char *at, size_t n)
{
    return bly_hash(&(bly_hasher){ .id = BLY_HASH_XXH3 }, at, n);
}

unsigned char *spie_file_bytes(const struct spie_file *f, size_t *n)
{
    const size_t name = strlen(f->router);
    size_t all = sizeof magic + 8 + name + 8;
    for (size_t i = 0; i < f->ntables; i++) {
        const struct spie_table *const t = &f->tables[i];
        all += TABLE_HEAD + bly_written_bytes(t->filter);
        for (size_t k = 0; k < t->nsides; k++)
            all += SIDE + t->sides[k].before.len;
    }
    struct filled out = { malloc(all), 0 };
    if (!out.at)
        return NULL;
    put_bytes(&out, magic, sizeof magic);
    put_number(&out, f->ntables, 4);
    put_number(&out, name, 4);
    put_bytes(&out, f->router, name);
    for (size_t i = 0; i < f->ntables; i++) {
        const struct spie_table *const t = &f->tables[i];
        put_number(&out, (uint64_t)t->start, 8);
        put_number(&out, (uint64_t)t->end, 8);
        put_number(&out, t->packets, 8);
        put_number(&out, t->bytes, 8);
        put_number(&out, bly_written_bytes(t->filter), 8);
        put_number(&out, t->nsides, 8);
        if (bly_write(t->filter, put_bytes, &out)) {
            free(out.at);
            return NULL;
        }
        for (size_t k = 0; k < t->nsides; k++) {
            put_number(&out, t->sides[k].hash, 8);
            put_number(&out, t->sides[k].change, 1);
            put_number(&out, t->sides[k].before.len, 1);
            put_bytes(&out, t->sides[k].before.at, t->sides[k].before.len);
        }
    }
    put_number(&out, sum_of(out.at, out.n), 8);
    *n = out.n;
    return out.at;
}

/* ------------------------------------------------------------------ reading */

struct rest {
    const unsigned char *at;
    size_t n;
};

static const unsigned char *rest_take(struct rest *r, uint64_t n)
{
    const unsigned char *const at = r->at;
    if (n > r->n)
        return NULL;
    r->at += n;
    r->n -= (size_t)n;
    return at;
}

static const char *sides_parse(struct rest *r, struct spie_table *t,
                               uint64_t nsides)
{
    if (nsides > r->n / SIDE)
        return "cut short";
    t->sides = malloc((nsides ? nsides : 1) * sizeof *t->sides);
    if (!t->sides)
        return "out of memory";
    for (t->nsides = 0; t->nsides < nsides; t->nsides++) {
        const unsigned char *const at = rest_take(r, SIDE);
        const unsigned char *const packet = at ? rest_take(r, at[9]) : NULL;
        struct spie_side *const s = &t->sides[t->nsides];
        if (!packet)
            return "cut short";
        *s = (struct spie_side){ get_le(at, 8),
                                 (enum spie_change)at[8],
                                 { at[9], { 0 } } };
        if (at[8] < SPIE_NAT || at[8] > SPIE_FRAGMENT || at[9] > SPIE_BYTES ||
            (t->nsides && s->hash < s[-1].hash))
            return "a side table that cannot be";
        memcpy(s->before.at, packet, at[9]);
    }
    return NULL;
}

static const char *table_parse(struct rest *r, struct spie_table *t)
{
    const unsigned char *const head = rest_take(r, TABLE_HEAD);
    if (!head)
        return "cut short";
    *t = (struct spie_table){ .start = (int64_t)get_le(head, 8),
                              .end = (int64_t)get_le(head + 8, 8),
                              .packets = get_le(head + 16, 8),
                              .bytes = get_le(head + 24, 8) };
    const uint64_t nfilter = get_le(head + 32, 8);
    const unsigned char *const filter = rest_take(r, nfilter);
    if (!filter)
        return "cut short";
    if (t->start > t->end)
        return "a table that ends before it begins";
    /* The filters here are never coded, so none takes more than its bytes. One
     * that was made to look small would take a thousand times as much. */
    const bly_access how = { .max_bytes = nfilter };
    if (bly_load(filter, (size_t)nfilter, &how, &t->filter))
        return bly_error();
    return sides_parse(r, t, get_le(head + 40, 8));
}

const char *spie_file_parse(const unsigned char *at, size_t n,
                            struct spie_file *out)
{
    struct spie_file f = { 0 };
    if (n >= sizeof magic_1 && memcmp(at, magic_1, sizeof magic_1) == 0)
        return "tables of an older bloomery, which lose packets whose checksum "
               "a network card changes; make them again from the capture";
    if (n < sizeof magic + 16 || memcmp(at, magic, sizeof magic) != 0)
        return "not digest tables; expected a file of bloomery traffic digest";
    if (get_le(at + n - 8, 8) != sum_of(at, n - 8))
        return "its checksum is wrong: damaged, or cut short";
    struct rest r = { at + sizeof magic, n - sizeof magic - 8 };
    const unsigned char *const head = rest_take(&r, 8);
    const size_t ntables = (size_t)get_le(head, 4);
    const size_t name = (size_t)get_le(head + 4, 4);
    const unsigned char *const text = rest_take(&r, name);
    if (!text || name >= SPIE_NAME || memchr(text, 0, name))
        return "a router's name that cannot be";
    memcpy(f.router, text, name);
    const char *why = NULL;
    for (size_t i = 0; i < ntables && !why; i++) {
        struct spie_table t = { 0 };
        why = table_parse(&r, &t);
        if (!why && !spie_file_add(&f, &t))
            why = "out of memory";
        if (why)
            table_free(&t);
    }
    if (!why && r.n)
        why = "bytes behind its end";
    if (why) {
        spie_file_free(&f);
        return why;
    }
    *out = f;
    return NULL;
}

/* ------------------------------------------------------------------- asking */

static const struct spie_side *side_find(const struct spie_table *t,
                                         uint64_t hash)
{
    size_t low;
    LOWER_BOUND(low, t->nsides, t->sides[low].hash < hash);
    return low < t->nsides && t->sides[low].hash == hash ? &t->sides[low]
                                                         : NULL;
}

enum spie_answer spie_ask(const struct spie_file *f, int64_t from, int64_t to,
                          const struct spie_packet *p, struct spie_packet *was,
                          enum spie_change *change)
{
    enum spie_answer answer = SPIE_SILENT;
    for (size_t i = 0; i < f->ntables; i++) {
        const struct spie_table *const t = &f->tables[i];
        if (t->end < from || t->start > to)
            continue;
        const uint64_t hash = bly_hash(bly_hasher_of(t->filter), p->at, p->len);
        const struct spie_side *const side = side_find(t, hash);
        if (side) {
            *was = side->before;
            *change = side->change;
            return SPIE_CHANGED;
        }
        if (bly_has_hash(t->filter, hash))
            answer = SPIE_MAYBE;
        else if (answer == SPIE_SILENT)
            answer = SPIE_NO;
    }
    return answer;
}
