/*
 * swap_state.c - the index of a Squid's disk cache
 *
 * Records of 72 bytes, as x86-64 and aarch64 write them, numbers
 * little-endian:
 *
 *     offset  size
 *     0       1     1 added, 2 deleted; 3 the first one
 *     4       4     first one: version, 2; else the number of the file
 *     8       4     first one: size of a record, 72
 *     52      16    MD5 key
 *
 * An object that was added, deleted and added again is in the cache: what
 * came last counts. So all records are kept, and sorted by key in the end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "apps/digest/digest.h"
#include "base/byte_order.h"
#include "base/grow.h"

struct digest_swap_entry {
    unsigned char key[16];
    uint64_t when; /* its number, and in the lowest bit: is it there? */
};

bool digest_is_swap(const unsigned char *bytes, size_t n)
{
    return n >= 12 && bytes[0] == DIGEST_SWAP_START &&
           get_le(bytes + 4, 4) == 2 &&
           get_le(bytes + 8, 4) == DIGEST_SWAP_RECORD;
}

static bool swap_fail(struct digest_swap *s, const char *why)
{
    snprintf(s->error, sizeof s->error, "record %llu: %s",
             (unsigned long long)s->nrecords + 1, why);
    return false;
}

static bool swap_record(struct digest_swap *s)
{
    const unsigned char *const r = s->part;
    if (!s->started) {
        if (!digest_is_swap(r, sizeof s->part))
            return swap_fail(s, "not the beginning of a swap.state of version "
                                "2 with records of 72 bytes");
        s->started = true;
    } else if (r[0] == DIGEST_SWAP_ADDED || r[0] == DIGEST_SWAP_DELETED) {
        if (!GROW(&s->entries, &s->room, s->n + 1))
            return swap_fail(s, "out of memory");
        memcpy(s->entries[s->n].key, r + DIGEST_SWAP_KEY, 16);
        s->entries[s->n++].when =
            s->nrecords << 1 | (r[0] == DIGEST_SWAP_ADDED);
    } else if (r[0] != DIGEST_SWAP_NONE && r[0] != DIGEST_SWAP_START) {
        return swap_fail(s, "neither added nor deleted");
    }
    s->nrecords++;
    return true;
}

bool digest_swap_add(struct digest_swap *s, const void *bytes, size_t n)
{
    const unsigned char *from = bytes;
    while (n > 0) {
        const size_t lacks = sizeof s->part - s->npart;
        const size_t take = n < lacks ? n : lacks;
        memcpy(s->part + s->npart, from, take);
        s->npart += take;
        from += take;
        n -= take;
        if (s->npart == sizeof s->part) {
            if (!swap_record(s))
                return false;
            s->npart = 0;
        }
    }
    return true;
}

static int swap_order(const void *a, const void *b)
{
    const struct digest_swap_entry *const x = a, *const y = b;
    const int keys = memcmp(x->key, y->key, sizeof x->key);
    return keys ? keys : x->when < y->when ? -1 : x->when > y->when;
}

bool digest_swap_end(struct digest_swap *s,
                     bool (*each)(void *ctx, bly_bytes key), void *ctx)
{
    if (s->n)
        qsort(s->entries, s->n, sizeof *s->entries, swap_order);
    for (size_t i = 0; i < s->n; i++) {
        const struct digest_swap_entry *const e = &s->entries[i];
        const bool last = i + 1 == s->n || memcmp(e->key, e[1].key, 16) != 0;
        if (!last || !(e->when & 1))
            continue;
        char digits[33];
        for (unsigned j = 0; j < 16; j++)
            snprintf(digits + 2 * j, 3, "%02x", e->key[j]);
        if (!each(ctx, (bly_bytes){ digits, 32 }))
            return false;
    }
    return true;
}

void digest_swap_free(struct digest_swap *s)
{
    free(s->entries);
    *s = (struct digest_swap){ 0 };
}
