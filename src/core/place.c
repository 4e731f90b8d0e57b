/*
 * place.c - which of n members holds a key
 *
 * There are five rules behind one interface. Each is a row, with what it needs
 * to be made and how it chooses. A key is its 64-bit hash and a member is the
 * hash of its name, so the order of names does not matter, except for jump,
 * which numbers them.
 *
 *     ring        np = n * points places on the circle of 2^64, sorted. A table
 *                 of 2^b >= np entries says where the places of each of 2^b
 *                 equal arcs begin, so a search looks at about two places: two
 *                 cache lines, whatever n is.
 *     rendezvous  the largest of n hashes; with weights, of w / -ln(u) [2].
 *     jump        the last of the jumps that stays below n [3].
 *     table       M slots, M a prime of at least 100 n, which stays the same
 *                 while members come and go: with another M all keys move.
 *                 Each member has an order of all slots, and members take
 *                 free slots in turns [4].
 *     bounded     the ring, but members that have ceil((1 + c) m w / W) keys
 *                 are passed over [5].
 *
 * [1] Karger et al., Consistent Hashing and Random Trees, 1997
 * [2] Thaler and Ravishankar, 1998; weights: Schindelhauer and Schomaker, 2005
 * [3] Lamping and Veach, A Fast, Minimal Memory, Consistent Hash, 2014
 * [4] Eisenbud et al., Maglev, 2016
 * [5] Mirrokni, Thorup and Zadimoghaddam, 2018
 */
#include <math.h>
#include <string.h>

#include <bloomery/place.h>

#include "core/bits.h"
#include "core/memory.h"
#include "core/status.h"

#define PLACE_POINTS 128 /* deviation of loads 9 % */
#define PLACE_SLACK 0.25
#define PLACE_TABLE 100 /* slots per member: the largest load is 1 % over */

struct place_point {
    uint64_t at;
    uint32_t member;
};

struct place_rule {
    const char *name, *summary;
    bly_status (*make)(bly_place *p, const bly_place_spec *spec);
    uint32_t (*of)(const bly_place *p, uint64_t hash);
    size_t (*copies)(const bly_place *p, uint64_t hash, uint32_t *members,
                     size_t most);
};

struct bly_place {
    const struct place_rule *rule;
    const bly_mem *mem;
    size_t n;
    uint64_t *names;   /* hashes of them */
    uint32_t *weights; /* NULL: all alike */
    uint64_t weight;   /* of all */

    struct place_point *points;
    size_t npoints, narcs;
    uint32_t *arcs; /* the first point at or after the beginning of each */
    unsigned shift;

    uint32_t *slots;
    size_t nslots;

    uint64_t *loads, load; /* of bounded: keys of each, and of all */
    double slack;
};

/* ----------------------------------------------------------------- the ring */

static int place_point_order(const struct place_point *a,
                             const struct place_point *b)
{
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->member < b->member ? -1 : a->member > b->member;
}

/* Heap sort: in place, and no slower for an order that an adversary chose. */
static void place_sift(struct place_point *h, size_t i, size_t n)
{
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        c += c + 1 < n && place_point_order(&h[c], &h[c + 1]) < 0;
        if (place_point_order(&h[i], &h[c]) >= 0)
            return;
        const struct place_point t = h[i];
        h[i] = h[c];
        h[c] = t;
    }
}

static void place_sort(struct place_point *h, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        place_sift(h, i, n);
    while (n-- > 1) {
        const struct place_point t = h[0];
        h[0] = h[n];
        h[n] = t;
        place_sift(h, 0, n);
    }
}

static bly_status place_ring_make(bly_place *p, const bly_place_spec *spec)
{
    const uint64_t each = spec->points ? spec->points : PLACE_POINTS;
    if (p->weight * each > UINT32_MAX / 2)
        return bly_fail(BLY_EINVAL,
                        "%llu points on a ring are too many; at most 2^31, "
                        "points times the sum of weights",
                        (unsigned long long)(p->weight * each));
    p->npoints = (size_t)(p->weight * each);
    p->shift = 64;
    for (p->narcs = 1; p->narcs < p->npoints; p->narcs *= 2)
        p->shift--;
    p->points = bly_mem_zalloc(p->mem, p->npoints * sizeof *p->points);
    p->arcs = bly_mem_zalloc(p->mem, p->narcs * sizeof *p->arcs);
    if (!p->points || !p->arcs)
        return bly_fail(BLY_ENOMEM, "no memory for %zu points", p->npoints);
    size_t at = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const uint64_t mine = each * (p->weights ? p->weights[i] : 1);
        for (uint64_t v = 0; v < mine; v++)
            p->points[at++] =
                (struct place_point){ bly_mix64(p->names[i] + v * BLY_POWERS_C),
                                      i };
    }
    place_sort(p->points, p->npoints);
    at = 0;
    for (size_t i = 0; i < p->narcs; i++) {
        const uint64_t start = i ? (uint64_t)i << p->shift : 0;
        while (at < p->npoints && p->points[at].at < start)
            at++;
        p->arcs[i] = (uint32_t)at;
    }
    return BLY_OK;
}

/* The first point at or after the hash. */
static inline size_t place_ring_point(const bly_place *p, uint64_t hash)
{
    size_t i = p->arcs[p->shift < 64 ? hash >> p->shift : 0];
    while (i < p->npoints && p->points[i].at < hash)
        i++;
    return i < p->npoints ? i : 0;
}

static uint32_t place_ring_of(const bly_place *p, uint64_t hash)
{
    return p->points[place_ring_point(p, hash)].member;
}

static bool place_among(const uint32_t *members, size_t n, uint32_t member)
{
    while (n-- > 0)
        if (members[n] == member)
            return true;
    return false;
}

/* Append the members of the points from the hash on to the n that are there
 * already. */
static size_t place_walk(const bly_place *p, uint64_t hash, uint32_t *members,
                         size_t n, size_t most)
{
    size_t at = place_ring_point(p, hash);
    for (size_t i = 0; i < p->npoints && n < most; i++) {
        const uint32_t m = p->points[at].member;
        if (!place_among(members, n, m))
            members[n++] = m;
        at = at + 1 < p->npoints ? at + 1 : 0;
    }
    return n;
}

static size_t place_ring_copies(const bly_place *p, uint64_t hash,
                                uint32_t *members, size_t most)
{
    return place_walk(p, hash, members, 0, most);
}

/* ------------------------------------------------------------ bounded loads */

static bly_status place_bounded_make(bly_place *p, const bly_place_spec *spec)
{
    p->slack = spec->slack > 0 ? spec->slack : PLACE_SLACK;
    p->loads = bly_mem_zalloc(p->mem, p->n * sizeof *p->loads);
    if (!p->loads)
        return bly_fail(BLY_ENOMEM, "no memory for %zu loads", p->n);
    return place_ring_make(p, spec);
}

/* May this member take one more key, when there is one more in all? Never false
 * for all members, since the limits add up to more than the keys. */
static bool place_room(const bly_place *p, uint32_t member)
{
    const double w = p->weights ? p->weights[member] : 1;
    const double share = (double)(p->load + 1) * w / (double)p->weight;
    return (double)p->loads[member] < ceil((1 + p->slack) * share);
}

static uint32_t place_bounded_of(const bly_place *p, uint64_t hash)
{
    size_t at = place_ring_point(p, hash);
    while (!place_room(p, p->points[at].member))
        at = at + 1 < p->npoints ? at + 1 : 0;
    return p->points[at].member;
}

static size_t place_bounded_copies(const bly_place *p, uint64_t hash,
                                   uint32_t *members, size_t most)
{
    if (!most)
        return 0;
    members[0] = place_bounded_of(p, hash);
    return place_walk(p, hash, members, 1, most);
}

/* --------------------------------------------------------------- rendezvous */

static bly_status place_nothing_make(bly_place *p, const bly_place_spec *spec)
{
    (void)p;
    (void)spec;
    return BLY_OK;
}

static inline uint64_t place_rendezvous_draw(const bly_place *p, uint64_t hash,
                                             size_t i)
{
    return bly_mix64(hash ^ p->names[i]);
}

/* w / -ln(u) of a uniform u, which is the largest for each member with
 * probability w / W. */
static double place_rendezvous_score(const bly_place *p, uint64_t hash,
                                     size_t i)
{
    const double u =
        ((double)(place_rendezvous_draw(p, hash, i) >> 11) + 0.5) * 0x1p-53;
    return p->weights[i] / -log(u);
}

/* Does member a come before b for this key? */
static bool place_rendezvous_before(const bly_place *p, uint64_t hash,
                                    uint32_t a, uint32_t b)
{
    if (p->weights)
        return place_rendezvous_score(p, hash, a) >
               place_rendezvous_score(p, hash, b);
    return place_rendezvous_draw(p, hash, a) >
           place_rendezvous_draw(p, hash, b);
}

static uint32_t place_rendezvous_of(const bly_place *p, uint64_t hash)
{
    uint32_t best = 0;
    if (p->weights) {
        double most = -1;
        for (uint32_t i = 0; i < p->n; i++) {
            const double score = place_rendezvous_score(p, hash, i);
            if (score > most) {
                most = score;
                best = i;
            }
        }
        return best;
    }
    uint64_t most = place_rendezvous_draw(p, hash, 0);
    for (uint32_t i = 1; i < p->n; i++) {
        const uint64_t draw = place_rendezvous_draw(p, hash, i);
        best = draw > most ? i : best;
        most = draw > most ? draw : most;
    }
    return best;
}

static size_t place_rendezvous_copies(const bly_place *p, uint64_t hash,
                                      uint32_t *members, size_t most)
{
    size_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        size_t at = n;
        while (at > 0 && place_rendezvous_before(p, hash, i, members[at - 1]))
            at--;
        if (at == most)
            continue;
        n += n < most;
        memmove(members + at + 1, members + at,
                (n - at - 1) * sizeof members[0]);
        members[at] = i;
    }
    return n;
}

/* --------------------------------------------------------------------- jump */

static uint32_t place_jump_of(const bly_place *p, uint64_t hash)
{
    int64_t at = -1;
    double next = 0;
    do {
        at = (int64_t)next;
        hash = hash * UINT64_C(2862933555777941757) + 1;
        next = (double)(at + 1) * (0x1p31 / (double)((hash >> 33) + 1));
    } while (next < (double)p->n);
    return (uint32_t)at;
}

/* Further copies: apply the rule to other hashes of the key, until a member is
 * new. If a hundred hashes find none, take the next by number. */
static size_t place_again_copies(const bly_place *p, uint64_t hash,
                                 uint32_t *members, size_t most)
{
    size_t n = 0;
    unsigned tries = 0;
    most = most < p->n ? most : p->n;
    for (uint64_t i = 0; n < most; i++) {
        uint32_t m =
            p->rule->of(p, i ? bly_mix64(hash + i * BLY_POWERS_C) : hash);
        if (tries == 100)
            while (place_among(members, n, m))
                m = m + 1 < p->n ? m + 1 : 0;
        if (place_among(members, n, m)) {
            tries++;
        } else {
            members[n++] = m;
            tries = 0;
        }
    }
    return n;
}

/* -------------------------------------------------------------------- table */

static bool place_prime(uint64_t x)
{
    for (uint64_t d = 2; d * d <= x; d++)
        if (x % d == 0)
            return false;
    return true;
}

static bly_status place_table_make(bly_place *p, const bly_place_spec *spec)
{
    struct turn {
        uint32_t at, step;
    };
    uint64_t most = spec->most;
    if (!most)
        for (most = 1; most < p->n; most *= 2)
            ;
    uint64_t m = PLACE_TABLE * most;
    while (!place_prime(m))
        m++;
    p->nslots = (size_t)m;
    p->slots = bly_mem_zalloc(p->mem, p->nslots * sizeof *p->slots);
    struct turn *const turns = bly_mem_zalloc(p->mem, p->n * sizeof *turns);
    if (!p->slots || !turns) {
        if (turns)
            bly_mem_release(p->mem, turns, p->n * sizeof *turns);
        return bly_fail(BLY_ENOMEM, "no memory for a table of %zu slots",
                        p->nslots);
    }
    for (size_t i = 0; i < p->n; i++)
        turns[i] = (struct turn){
            (uint32_t)bly_scale(p->names[i], m),
            (uint32_t)bly_scale(bly_mix64(p->names[i]), m - 1) + 1,
        };
    for (size_t i = 0; i < p->nslots; i++)
        p->slots[i] = UINT32_MAX;
    size_t taken = 0;
    while (taken < p->nslots)
        for (uint32_t i = 0; i < p->n; i++)
            for (uint32_t w = p->weights ? p->weights[i] : 1;
                 w > 0 && taken < p->nslots; w--) {
                /* The step and a prime have no common divisor, so every slot is
                 * reached. */
                while (p->slots[turns[i].at] != UINT32_MAX)
                    turns[i].at =
                        (uint32_t)(((uint64_t)turns[i].at + turns[i].step) % m);
                p->slots[turns[i].at] = i;
                taken++;
            }
    bly_mem_release(p->mem, turns, p->n * sizeof *turns);
    return BLY_OK;
}

static uint32_t place_table_of(const bly_place *p, uint64_t hash)
{
    return p->slots[bly_scale(hash, p->nslots)];
}

/* ---------------------------------------------------------------- interface */

static const struct place_rule place_rules[] = {
    { "ring", "points of members on a circle; the next one has the key",
      place_ring_make, place_ring_of, place_ring_copies },
    { "rendezvous", "the largest hash of key and member; O(n), no memory",
      place_nothing_make, place_rendezvous_of, place_rendezvous_copies },
    { "jump", "numbered buckets by a formula; only the last can go",
      place_nothing_make, place_jump_of, place_again_copies },
    { "table", "a table of turns that members take; one memory access",
      place_table_make, place_table_of, place_again_copies },
    { "bounded", "a ring that walks on past members with their share and more",
      place_bounded_make, place_bounded_of, place_bounded_copies },
};
#define PLACE_NRULES (sizeof place_rules / sizeof place_rules[0])

const char *bly_place_rule(size_t i, const char **summary)
{
    if (i >= PLACE_NRULES)
        return NULL;
    if (summary)
        *summary = place_rules[i].summary;
    return place_rules[i].name;
}

static const struct place_rule *place_rule_named(const char *name)
{
    for (size_t i = 0; i < PLACE_NRULES; i++)
        if (strcmp(place_rules[i].name, name) == 0)
            return &place_rules[i];
    return NULL;
}

static bly_status place_check(const bly_place_spec *spec,
                              const struct place_rule **rule)
{
    if (!spec || !spec->names)
        return bly_fail_null("spec or spec->names");
    if (!spec->n || spec->n > BLY_PLACE_MOST)
        return bly_fail(BLY_EINVAL,
                        "members are from 1 to %d, with a name "
                        "each",
                        BLY_PLACE_MOST);
    *rule = place_rule_named(spec->rule ? spec->rule : "ring");
    if (!*rule)
        return bly_fail(BLY_EINVAL,
                        "there is no rule '%s'; expected ring, rendezvous, "
                        "jump, table or bounded",
                        spec->rule);
    if (spec->points > BLY_PLACE_MOST_POINTS)
        return bly_fail(BLY_EINVAL, "points per member are from 1 to %d",
                        BLY_PLACE_MOST_POINTS);
    if (spec->most > BLY_PLACE_MOST || (spec->most && spec->most < spec->n))
        return bly_fail(BLY_EINVAL,
                        "there will be at least as many members as there are, "
                        "and at most %d",
                        BLY_PLACE_MOST);
    if (!(spec->slack >= 0 && spec->slack <= 100))
        return bly_fail(BLY_EINVAL, "slack is above 0 and at most 100");
    if (spec->weights && (*rule)->of == place_jump_of)
        return bly_fail(
            BLY_ENOTSUP,
            "jump has no weights; use ring, rendezvous, table or bounded");
    for (size_t i = 0; spec->weights && i < spec->n; i++)
        if (!spec->weights[i] || spec->weights[i] > BLY_PLACE_MOST_WEIGHT)
            return bly_fail(BLY_EINVAL, "weights are from 1 to %d",
                            BLY_PLACE_MOST_WEIGHT);
    return BLY_OK;
}

/* The hashes of names; two equal ones are refused, which the sorted copy
 * shows. */
static bly_status place_names(bly_place *p, const bly_place_spec *spec)
{
    const bly_hasher hasher = { .id = BLY_HASH_XXH3, .seed = spec->seed };
    bly_status st = BLY_OK;
    struct place_point *const sorted =
        bly_mem_zalloc(p->mem, p->n * sizeof *sorted);
    p->names = bly_mem_zalloc(p->mem, p->n * sizeof *p->names);
    if (spec->weights)
        p->weights = bly_mem_zalloc(p->mem, p->n * sizeof *p->weights);
    if (!sorted || !p->names || (spec->weights && !p->weights))
        st = bly_fail(BLY_ENOMEM, "no memory for %zu members", p->n);
    for (uint32_t i = 0; !st && i < p->n; i++) {
        p->names[i] = bly_hash(&hasher, spec->names[i].ptr, spec->names[i].len);
        sorted[i] = (struct place_point){ p->names[i], i };
        if (p->weights)
            p->weights[i] = spec->weights[i];
        p->weight += p->weights ? p->weights[i] : 1;
    }
    if (!st)
        place_sort(sorted, p->n);
    for (size_t i = 1; !st && i < p->n; i++)
        if (sorted[i - 1].at == sorted[i].at)
            st = bly_fail(BLY_EINVAL, "members %u and %u have the same name",
                          (unsigned)sorted[i - 1].member,
                          (unsigned)sorted[i].member);
    if (sorted)
        bly_mem_release(p->mem, sorted, p->n * sizeof *sorted);
    return st;
}

bly_status bly_place_new(const bly_place_spec *spec, bly_place **out)
{
    const struct place_rule *rule = NULL;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    bly_status st = place_check(spec, &rule);
    if (st)
        return st;
    const bly_mem *const mem = spec->mem ? spec->mem : &bly_mem_system;
    bly_place *const p = bly_mem_zalloc(mem, sizeof *p);
    if (!p)
        return bly_fail(BLY_ENOMEM, "no memory for members");
    p->rule = rule;
    p->mem = mem;
    p->n = spec->n;
    st = place_names(p, spec);
    if (!st)
        st = rule->make(p, spec);
    if (st)
        bly_place_free(p);
    else
        *out = p;
    return st;
}

#define PLACE_PARTS(X)    \
    X(names, p->n)        \
    X(weights, p->n)      \
    X(points, p->npoints) \
    X(arcs, p->narcs)     \
    X(slots, p->nslots)   \
    X(loads, p->n)

void bly_place_free(bly_place *p)
{
    if (!p)
        return;
#define PLACE_FREE_(part, count) \
    if (p->part)                 \
        bly_mem_release(p->mem, p->part, (count) * sizeof *p->part);
    PLACE_PARTS(PLACE_FREE_)
#undef PLACE_FREE_
    bly_mem_release(p->mem, p, sizeof *p);
}

size_t bly_place_bytes(const bly_place *p)
{
    size_t nbytes = sizeof *p;
#define PLACE_ADD_(part, count) \
    nbytes += p->part ? (count) * sizeof *p->part : 0;
    PLACE_PARTS(PLACE_ADD_)
#undef PLACE_ADD_
    return nbytes;
}

uint32_t bly_place_of(const bly_place *p, uint64_t hash)
{
    return p->rule->of(p, hash);
}

size_t bly_place_copies(const bly_place *p, uint64_t hash, uint32_t *members,
                        size_t most)
{
    return p->rule->copies(p, hash, members, most);
}

/* Only `bounded` counts. */
static bly_status place_counts(const bly_place *p)
{
    return p->loads
               ? BLY_OK
               : bly_fail(BLY_ENOTSUP, "%s does not count loads; use bounded",
                          p->rule->name);
}

bly_status bly_place_take(bly_place *p, uint64_t hash, uint32_t *member)
{
    if (!p || !member)
        return bly_fail_null("p or member");
    const bly_status st = place_counts(p);
    if (st)
        return st;
    *member = place_bounded_of(p, hash);
    p->loads[*member]++;
    p->load++;
    return BLY_OK;
}

bly_status bly_place_give(bly_place *p, uint32_t member)
{
    if (!p)
        return bly_fail_null("p");
    const bly_status st = place_counts(p);
    if (st)
        return st;
    if (member >= p->n || !p->loads[member])
        return bly_fail(BLY_EINVAL, "member %u has no key", (unsigned)member);
    p->loads[member]--;
    p->load--;
    return BLY_OK;
}
