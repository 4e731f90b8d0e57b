/*
 * held.c - rows in memory, found by their keys
 *
 * Rows lie one behind the other in segments, so that nothing moves and what is
 * taken is known to the byte. When all are there, a table of pointers is made,
 * with a place for the first row of each key; the others of that key hang
 * behind it in the order in which they came.
 *
 *     table     | a |   | b |   |
 *                 |       |
 *     segment   [ a 1 ][ b 1 ][ a 2 ][ a 3 ]
 *                  `------------^  `----^
 */
#include <stdlib.h>
#include <string.h>

#include "apps/join/held.h"
#include "base/lookup.h"

#define SEGMENT_BYTES ((size_t)256 * 1024)

struct held_segment {
    struct held_segment *next;
    size_t used, room;
    _Alignas(16) char at[];
};

static size_t row_bytes(size_t nkey, size_t nrest)
{
    const size_t n = sizeof(struct held_row) + nkey + nrest;
    return (n + 7) & ~(size_t)7;
}

bool held_fits(const struct held *h, size_t nkey, size_t nrest)
{
    /* Two places in the table for each row. */
    const uint64_t more = row_bytes(nkey, nrest) + 2 * sizeof *h->table;
    return h->n == 0 || h->bytes + more <= h->memory;
}

static struct held_row *segment_take(struct held *h, size_t nbytes)
{
    struct held_segment *s = h->segment;
    if (!s || s->room - s->used < nbytes) {
        const size_t room = nbytes > SEGMENT_BYTES ? nbytes : SEGMENT_BYTES;
        s = malloc(sizeof *s + room);
        if (!s)
            return NULL;
        *s = (struct held_segment){ .room = room };
        if (h->segment)
            h->segment->next = s;
        else
            h->first = s;
        h->segment = s;
    }
    void *const row = s->at + s->used;
    s->used += nbytes;
    return row;
}

bool held_add(struct held *h, uint64_t hash, bly_bytes key, bly_bytes rest)
{
    const size_t nbytes = row_bytes(key.len, rest.len);
    struct held_row *const row = segment_take(h, nbytes);
    if (!row)
        return false;
    *row = (struct held_row){ .hash = hash,
                              .nkey = (uint32_t)key.len,
                              .nrest = (uint32_t)rest.len };
    if (key.len)
        memcpy(row->bytes, key.ptr, key.len);
    if (rest.len)
        memcpy(row->bytes + key.len, rest.ptr, rest.len);
    h->bytes += nbytes + 2 * sizeof *h->table;
    h->n++;
    return true;
}

static struct held_row *segment_row(struct held_segment *s, size_t at)
{
    return (struct held_row *)(void *)(s->at + at);
}

bool held_each(const struct held *h, held_fn *each, void *ctx)
{
    for (struct held_segment *s = h->first; s; s = s->next)
        for (size_t at = 0; at < s->used;) {
            const struct held_row *const row = segment_row(s, at);
            if (!each(ctx, row))
                return false;
            at += row_bytes(row->nkey, row->nrest);
        }
    return true;
}

/* The place of a key in the table, which may be free. */
static struct held_row **place_of(const struct held *h, uint64_t hash,
                                  const void *key, size_t nkey)
{
    /* Not by the filter's hash, for which anybody can make colliding keys. */
    size_t at = (size_t)table_hash(key, nkey) & h->mask;
    for (; h->table[at]; at = (at + 1) & h->mask) {
        const struct held_row *const row = h->table[at];
        if (row->hash == hash && row->nkey == nkey &&
            (nkey == 0 || memcmp(row->bytes, key, nkey) == 0))
            break;
    }
    return &h->table[at];
}

bool held_index(struct held *h)
{
    size_t n = 16;
    while (n / 2 < h->n && n < SIZE_MAX / sizeof *h->table / 4)
        n *= 2;
    h->table = calloc(n, sizeof *h->table);
    if (!h->table)
        return false;
    h->mask = n - 1;
    for (struct held_segment *s = h->first; s; s = s->next)
        for (size_t at = 0; at < s->used;) {
            struct held_row *const row = segment_row(s, at);
            struct held_row **const place =
                place_of(h, row->hash, row->bytes, row->nkey);
            if (*place) {
                (*place)->last->next = row;
                (*place)->last = row;
            } else {
                row->last = row;
                *place = row;
            }
            at += row_bytes(row->nkey, row->nrest);
        }
    return true;
}

struct held_row *held_find(const struct held *h, uint64_t hash, bly_bytes key)
{
    return *place_of(h, hash, key.ptr, key.len);
}

uint64_t held_unmatched(const struct held *h)
{
    uint64_t n = 0;
    for (size_t i = 0; i <= h->mask; i++)
        for (const struct held_row *row = h->table[i];
             row && !h->table[i]->matched; row = row->next)
            n++;
    return n;
}

void held_clear(struct held *h)
{
    for (struct held_segment *s = h->first, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    free(h->table);
    *h = (struct held){ .memory = h->memory };
}
