/*
 * overflow.c - the large counts of an array of small counters, by position
 *
 * The places in use are those of linear probing with sorted keys: the i-th
 * smallest stands in its home, or right behind the one before it, whichever is
 * further. Adding moves those behind it by one, up to the next free place;
 * dropping moves those back that are not in their homes.
 */
#include "core/overflow.h"

#include <string.h>

#define OVERFLOW_MAX_PLACES (UINT64_C(1) << 48)

bool bly_overflow_places_ok(uint64_t places)
{
    uint64_t size = 0;
    while (size < places && size < OVERFLOW_MAX_PLACES)
        size = bly_overflow_next(size);
    return size == places;
}

/* Bytes of the counts, and bits of a key: position + 1. */
static uint64_t counts_bytes(uint64_t places)
{
    return (places * 4 + 7) / 8 * 8;
}

uint64_t bly_overflow_bits(uint64_t places, uint64_t range)
{
    return places * (32 + bly_field_width(range));
}

uint64_t bly_overflow_nbytes(uint64_t places, uint64_t range)
{
    if (!places)
        return 0;
    const uint64_t bits = places * bly_field_width(range);
    return counts_bytes(places) + (bits + 63) / 64 * 8 + BLY_FIELD_SLACK;
}

bly_overflow bly_overflow_of(unsigned char *at, uint64_t places, uint64_t range)
{
    const uint64_t homes = bly_overflow_homes(places);
    return (bly_overflow){
        .counts = at,
        .keys = at + counts_bytes(places),
        .places = places,
        .homes = homes,
        .range = range,
        .step = UINT64_MAX / range * homes,
        .width = bly_field_width(range),
    };
}

static uint64_t home_of(const bly_overflow *t, uint64_t position)
{
    return bly_scale(position, t->step);
}

static uint64_t key_at(const bly_overflow *t, uint64_t i)
{
    return bly_field_get(t->keys, i * t->width, t->width);
}

static void put_key(bly_overflow *t, uint64_t i, uint64_t key)
{
    bly_field_put_exact(t->keys, i * t->width, t->width, key);
}

/* The place of a position, or the one where it belongs: the first that is free
 * or has a greater one. `places` if there is none. */
static uint64_t place_of(const bly_overflow *t, uint64_t position)
{
    uint64_t i = home_of(t, position);
    for (; i < t->places; i++) {
        const uint64_t key = key_at(t, i);
        if (!key || key > position)
            break;
    }
    return i;
}

uint32_t bly_overflow_get(const bly_overflow *t, uint64_t position)
{
    if (!t->places)
        return 0;
    const uint64_t i = place_of(t, position);
    return i < t->places && key_at(t, i) == position + 1
               ? bly_load32(t->counts + 4 * i)
               : 0;
}

bool bly_overflow_put(bly_overflow *t, uint64_t position, uint32_t count,
                      uint64_t *n)
{
    if (!t->places)
        return false;
    const uint64_t i = place_of(t, position);
    uint64_t end = i;
    if (i < t->places && key_at(t, i) == position + 1) {
        bly_store32(t->counts + 4 * i, count);
        return true;
    }
    while (end < t->places && key_at(t, end))
        end++;
    if (end == t->places || *n >= bly_overflow_most(t->places))
        return false;
    memmove(t->counts + 4 * (i + 1), t->counts + 4 * i, 4 * (size_t)(end - i));
    for (uint64_t j = end; j > i; j--)
        put_key(t, j, key_at(t, j - 1));
    bly_store32(t->counts + 4 * i, count);
    put_key(t, i, position + 1);
    ++*n;
    return true;
}

void bly_overflow_drop(bly_overflow *t, uint64_t position, uint64_t *n)
{
    uint64_t i = t->places ? place_of(t, position) : 0;
    if (i >= t->places || key_at(t, i) != position + 1)
        return;
    for (; i + 1 < t->places; i++) {
        const uint64_t next = key_at(t, i + 1);
        if (!next || home_of(t, next - 1) > i)
            break;
        put_key(t, i, next);
        memmove(t->counts + 4 * i, t->counts + 4 * (i + 1), 4);
    }
    put_key(t, i, 0);
    bly_store32(t->counts + 4 * i, 0);
    --*n;
}

bool bly_overflow_walk(const bly_overflow *t, uint64_t *i, uint64_t *position,
                       uint32_t *count)
{
    for (; *i < t->places; ++*i) {
        const uint64_t key = key_at(t, *i);
        /* Only a damaged table has a position that is out of range. */
        if (key && key <= t->range) {
            *position = key - 1;
            *count = bly_load32(t->counts + 4 * *i);
            ++*i;
            return true;
        }
    }
    return false;
}

/* Is what lies behind the last of nbits clear, up to nbytes? */
static bool rest_clear(const unsigned char *at, uint64_t nbits, uint64_t nbytes)
{
    uint64_t i = nbits / 8;
    if (nbits % 8 && at[i++] >> nbits % 8)
        return false;
    for (; i < nbytes; i++)
        if (at[i])
            return false;
    return true;
}

bool bly_overflow_check(const bly_overflow *t, uint64_t n)
{
    uint64_t found = 0, last = 0;
    for (uint64_t i = 0; i < t->places; i++) {
        const uint64_t key = key_at(t, i);
        const uint32_t count = bly_load32(t->counts + 4 * i);
        if (!key && !count)
            continue;
        if (!key || !count || key <= last || key > t->range ||
            home_of(t, key - 1) > i ||
            (home_of(t, key - 1) < i && (!i || !key_at(t, i - 1))))
            return false;
        last = key;
        found++;
    }
    const uint64_t bytes = bly_overflow_nbytes(t->places, t->range);
    const uint64_t before = counts_bytes(t->places);
    return found == n && n <= bly_overflow_most(t->places) &&
           rest_clear(t->counts, t->places * 32, before) &&
           (!bytes ||
            rest_clear(t->keys, t->places * t->width, bytes - before));
}
