/*
 * bloomery/place.h - which of n members holds a key
 *
 * Beside the filters of bloomery.h, which says what holds here too about
 * failure, ownership, threads and cost. Shards, caches and servers come and go;
 * a rule of this header moves few keys when they do, and everybody who has the
 * same list of names computes the same answer:
 *
 *     const bly_bytes names[] = { { "red", 3 }, { "green", 5 }, ... };
 *     bly_place *p;
 *     if (bly_place_new(&(bly_place_spec){ .names = names, .n = 3 }, &p))
 *         ...
 *     connect_to(names[bly_place_of(p, bly_hash(&hasher, key, len))]);
 *     bly_place_free(p);
 *
 * When one of n + 1 members goes or comes, 1/(n + 1) of all keys have to move,
 * and `hash % n` moves nearly all of them. The rules:
 *
 *     ring        points of members on a circle; the next one at or after the
 *                 key has it; standard deviation of loads 1/sqrt(points)
 *     rendezvous  the member with the largest hash of key and name; no memory,
 *                 perfectly even, time in proportion to n
 *     jump        buckets 0 to n - 1 by a formula; no memory, perfectly even;
 *                 members have numbers, and only the last can go
 *     table       a table of turns that members take; the fastest; a change
 *                 moves a little more than its share
 *     bounded     a ring that walks on past members which have their share and
 *                 `slack` of it; loads are counted, so it has to be told
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

/* Who there is, and by which rule. Zero in a field means "choose for me". */
typedef struct bly_place_spec { /* final */
    const char *rule;           /* one of the above; NULL: ring */
    const bly_bytes *names;     /* different ones; not needed after the call */
    size_t n;                   /* members, 1 at least */
    const uint32_t *weights;    /* from 1; NULL: all alike; not for jump */
    uint32_t points;            /* ring, bounded: per member; 0: 128 */
    uint32_t most;      /* table: members that there will be at most; while
                           it stays the same, few keys move; 0: the next
                           power of two */
    double slack;       /* bounded: above 0, up to 100; 0: 0.25 */
    uint64_t seed;      /* others place keys otherwise */
    const bly_mem *mem; /* must outlive the result; NULL: malloc, free */
} bly_place_spec;

/* BLY_EINVAL for what is out of range, two equal names or an unknown rule,
 * BLY_ENOTSUP for weights with jump, BLY_ENOMEM. *out is NULL after failure. */
bly_status bly_place_new(const bly_place_spec *spec, bly_place **out);
void bly_place_free(bly_place *p); /* NULL is allowed */

/* The member, as an index into names, that holds the key of this hash, which
 * must be as good as bly_hash(). Cannot fail. With `bounded`: the member that
 * the next bly_place_take() of this hash would choose. */
uint32_t bly_place_of(const bly_place *p, uint64_t hash);

/* The members for `most` copies of the key, all different, the first being that
 * of bly_place_of(): how many there are, which is most or all members. */
size_t bly_place_copies(const bly_place *p, uint64_t hash, uint32_t *members,
                        size_t most);

/* Of `bounded`: choose a member for a key and count it, or count one less.
 * BLY_ENOTSUP for other rules, BLY_EINVAL if the member has none. These change
 * p, so that nobody else may use it meanwhile. */
bly_status bly_place_take(bly_place *p, uint64_t hash, uint32_t *member);
bly_status bly_place_give(bly_place *p, uint32_t member);

/* Bytes of memory that it takes. */
size_t bly_place_bytes(const bly_place *p);

/* The rules in order, with one line about each; NULL past the last. */
const char *bly_place_rule(size_t i, const char **summary);

BLY_END_DECLS

#endif
