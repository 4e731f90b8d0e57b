/*
 * bloomery/place.h - which of n members holds a key
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. Shards, caches and servers come and go. The rules of this header move
 * few keys when they do, and everyone who has the same list of names computes
 * the same answer:
 *
 *     const bly_bytes names[] = { { "red", 3 }, { "green", 5 }, ... };
 *     bly_place *p;
 *     if (bly_place_new(&(bly_place_spec){ .names = names, .n = 3 }, &p))
 *         ...
 *     connect_to(names[bly_place_of(p, bly_hash(&hasher, key, len))]);
 *     bly_place_free(p);
 *
 * When a member leaves n + 1 members, or joins n, 1/(n + 1) of all keys have to
 * move; `hash % n` moves nearly all of them. The rules:
 *
 *     ring        members have points on a circle; the first one at or after
 *                 the key has it; standard deviation of loads 1/sqrt(points)
 *     rendezvous  the member with the largest hash of key and name; no memory,
 *                 perfectly even, time in proportion to n
 *     jump        buckets 0 to n - 1 by a formula; no memory, perfectly even;
 *                 members have numbers, and only the last can leave
 *     table       a table that members fill in turns; the fastest; a change
 *                 moves a little more than its share
 *     bounded     a ring that passes over members that have their share plus
 *                 `slack` of it; it counts loads: use bly_place_take()
 *
 * `bloomery ring place` measures all of them on your keys.
 */
#ifndef BLOOMERY_PLACE_H
#define BLOOMERY_PLACE_H

#include <bloomery.h>

BLY_BEGIN_DECLS

typedef struct bly_place bly_place;

#define BLY_PLACE_MOST 1000000       /* members */
#define BLY_PLACE_MOST_POINTS 100000 /* per member, of a ring */
#define BLY_PLACE_MOST_WEIGHT 1000

/* The members, and the rule. Zero in any field means "choose for me". */
typedef struct bly_place_spec { /* final */
    const char *rule;           /* one of the above; NULL: ring */
    const bly_bytes *names;     /* distinct; not needed after the call */
    size_t n;                   /* number of members, at least 1 */
    const uint32_t *weights;    /* from 1; NULL: all equal; not for jump */
    uint32_t points;            /* ring, bounded: per member; 0: 128 */
    uint32_t most;              /* table: the most members there will ever be;
                                   while it stays the same, few keys move;
                                   0: the next power of two */
    double slack;               /* bounded: above 0, up to 100; 0: 0.25 */
    uint64_t seed;              /* another seed places keys differently */
    const bly_mem *mem; /* must outlive the result; NULL: malloc, free */
} bly_place_spec;

/* Make the rule ready for use. The result belongs to the caller until
 * bly_place_free(). BLY_EINVAL for a number out of range, two equal names or an
 * unknown rule, BLY_ENOTSUP for weights with jump, BLY_ENOMEM. *out is NULL
 * after a failure. */
bly_status bly_place_new(const bly_place_spec *spec, bly_place **out);
void bly_place_free(bly_place *p); /* NULL is allowed */

/* The member that holds the key with this hash, as an index into names. The
 * hash must be as good as bly_hash(). Cannot fail. With `bounded`, this is the
 * member that the next bly_place_take() of this hash would choose. */
uint32_t bly_place_of(const bly_place *p, uint64_t hash);

/* The members for `most` copies of a key, all different, the first being that
 * of bly_place_of(). Returns how many there are: `most`, or all members if they
 * are fewer. */
size_t bly_place_copies(const bly_place *p, uint64_t hash, uint32_t *members,
                        size_t most);

/* For `bounded` only: bly_place_take() chooses a member for a key and counts
 * the key; bly_place_give() counts one key less. BLY_ENOTSUP for other rules,
 * BLY_EINVAL if the member has no key. Both change p, so no other thread may
 * use it in the meantime. */
bly_status bly_place_take(bly_place *p, uint64_t hash, uint32_t *member);
bly_status bly_place_give(bly_place *p, uint32_t member);

/* Bytes of memory that p takes. */
size_t bly_place_bytes(const bly_place *p);

/* The name of rule i, from 0; *summary becomes one line about it. NULL past the
 * last rule. */
const char *bly_place_rule(size_t i, const char **summary);

BLY_END_DECLS

#endif
