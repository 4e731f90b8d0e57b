/*
 * bf_filter.c - see bf_filter.h
 */
#include "adapters/redis/bf_filter.h"

#include <math.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "adapters/redis/siphash.h"

#define LN2_SQUARED 0.480453013918201
#define LN2 0.693147180559945
#define BF_MAX_BITS (UINT64_C(1) << 45)
#define BF_MAX_LINKS ((uint64_t)1 << 16)
#define BF_MAX_HASHES 1100 /* log2(1/e) of the least double is 1074 */

/* Of a sub-filter in a dump: the sum over all links is then a number, too. */
#define BF_MAX_CAPACITY (UINT64_C(1) << 46)
#define MURMUR64_SEED UINT64_C(0xc6a4a7935bd1e995)
#define MURMUR32_SEED 0x9747b28cu

/* -------------------------------------------------------------------- sizes */

static uint32_t redis_hashes(double bits_per_entry)
{
    return (uint32_t)ceil(LN2 * bits_per_entry);
}

static bool size_redis(double error, uint64_t capacity, bf_link *out)
{
    const double p = fabs(log(error)) / LN2_SQUARED;
    const double bits = (double)capacity * p;
    if (!(bits < (double)BF_MAX_BITS))
        return false;
    uint64_t n = (uint64_t)bits;
    n = n ? (n + 63) / 64 * 64 : 64;
    *out = (bf_link){ .capacity = capacity,
                      .error = error,
                      .bits_per_entry = p,
                      .bits = n,
                      .nbytes = n / 8,
                      .hashes = redis_hashes(p) };
    return true;
}

static bool size_valkey(double error, uint64_t capacity, bf_link *out)
{
    const double ln2 = log(2);
    const double n = ceil((double)capacity * log(error) / (-8.0 * (ln2 * ln2)));
    if (!(n < (double)BF_MAX_BITS / 8))
        return false;
    const double hashes = round(8 * n / (double)capacity * ln2);
    *out = (bf_link){ .capacity = capacity,
                      .error = error,
                      .bits = (uint64_t)n * 8,
                      .nbytes = (uint64_t)n,
                      .hashes = hashes < 1 ? 1 : (uint32_t)hashes };
    return out->nbytes > 0;
}

bool bf_size(bf_scheme scheme, double error, uint64_t capacity, bf_link *out)
{
    if (!(error > 0 && error < 1) || !capacity || capacity > BF_MAX_CAPACITY)
        return false;
    return scheme == BF_REDIS ? size_redis(error, capacity, out)
                              : size_valkey(error, capacity, out);
}

/* The sub-filter after l; BF_ADDED if there may be one. */
static bf_added next_size(bf_scheme scheme, uint32_t expansion,
                          double tightening, const bf_link *l, bf_link *out)
{
    const double error = l->error * (scheme == BF_REDIS ? 0.5 : tightening);
    if (error <= 0 || (scheme == BF_VALKEY && error < 2.2250738585072014e-308))
        return BF_NO_RATE;
    if (l->capacity > UINT64_MAX / expansion ||
        !bf_size(scheme, error, l->capacity * expansion, out))
        return BF_NO_MEMORY;
    return BF_ADDED;
}

/* ------------------------------------------------------------------- making */

uint64_t bf_bytes(const bf_filter *f)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < f->nlinks; i++)
        sum += f->links[i].nbytes;
    return sum;
}

uint64_t bf_capacity(const bf_filter *f)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < f->nlinks; i++)
        sum += f->links[i].capacity;
    return sum;
}

void bf_free(void *value)
{
    bf_filter *f = value;
    if (!f)
        return;
    for (uint64_t i = 0; f->links && i < f->nlinks; i++)
        memory_free(f->links[i].data);
    memory_free(f->links);
    memory_free(f);
}

/* One more sub-filter of the sizes of l. */
static bool bf_push(bf_filter *f, const bf_link *l)
{
    bf_link *more = memory_try((f->nlinks + 1) * sizeof *more);
    unsigned char *data = more ? memory_try(l->nbytes) : NULL;
    if (!data) {
        memory_free(more);
        return false;
    }
    if (f->nlinks)
        memcpy(more, f->links, (size_t)f->nlinks * sizeof *more);
    more[f->nlinks] = *l;
    more[f->nlinks].data = data;
    memory_free(f->links);
    f->links = more;
    f->nlinks++;
    return true;
}

bf_filter *bf_new(const bf_wish *w)
{
    bf_filter *f = memory_try(sizeof *f);
    bf_link first;
    if (!f)
        return NULL;
    f->scheme = w->scheme;
    f->expansion = w->expansion;
    f->options = BF_EXACT | BF_HASH64 | (w->expansion ? 0 : BF_NONSCALING);
    f->rate = w->rate;
    f->tightening = w->tightening;
    f->random_seed = w->random_seed;
    memcpy(f->seed, w->seed, sizeof f->seed);
    const bool halved = w->scheme == BF_REDIS && w->expansion;
    if (!bf_size(w->scheme, halved ? w->rate / 2 : w->rate, w->capacity,
                 &first) ||
        !bf_push(f, &first)) {
        bf_free(f);
        return NULL;
    }
    return f;
}

bf_filter *bf_blank(bf_scheme scheme, uint64_t nlinks)
{
    bf_filter *f =
        nlinks && nlinks <= BF_MAX_LINKS ? memory_try(sizeof *f) : NULL;
    if (!f)
        return NULL;
    f->scheme = scheme;
    f->links = memory_try(nlinks * sizeof *f->links);
    f->nlinks = nlinks;
    if (!f->links) {
        memory_free(f);
        return NULL;
    }
    return f;
}

bool bf_link_is_sane(const bf_filter *f, const bf_link *l)
{
    /* Dumps of the oldest versions end within a byte. */
    if (!(l->error > 0 && l->error < 1) || !l->nbytes ||
        l->nbytes > BF_MAX_BITS / 8 || l->bits > 8 * l->nbytes ||
        l->bits <= 8 * (l->nbytes - 1) || !l->hashes ||
        l->hashes > BF_MAX_HASHES || l->n2 > 63 || !l->capacity ||
        l->capacity > BF_MAX_CAPACITY || l->items > BF_MAX_CAPACITY)
        return false;
    if (f->scheme == BF_VALKEY)
        return true;
    return l->bits_per_entry > 0 && l->bits_per_entry < 0x1p20 &&
           l->hashes == redis_hashes(l->bits_per_entry) &&
           (!l->n2 || l->bits >= UINT64_C(1) << l->n2);
}

double bf_rate_now(const bf_filter *f)
{
    double right = 1;
    for (uint64_t i = 0; i < f->nlinks; i++) {
        const bf_link *l = &f->links[i];
        const double fill =
            -expm1(-(double)l->hashes * (double)l->items / (double)l->bits);
        right *= 1 - pow(fill, l->hashes);
    }
    return 1 - right;
}

bf_added bf_scales_to(const bf_wish *w, uint64_t to, uint64_t limit,
                      uint64_t *holds)
{
    bf_link l;
    uint64_t nbytes, n = 1;
    if (!bf_size(w->scheme, w->rate, w->capacity, &l))
        return BF_NO_MEMORY;
    nbytes = l.nbytes;
    for (*holds = l.capacity; *holds < to; n++) {
        const bf_added st =
            n == BF_MAX_LINKS
                ? BF_NO_LINK
                : next_size(w->scheme, w->expansion, w->tightening, &l, &l);
        if (st != BF_ADDED)
            return st;
        nbytes += l.nbytes;
        if (limit && nbytes > limit)
            return BF_NO_MEMORY;
        *holds += l.capacity;
    }
    return limit && nbytes > limit ? BF_NO_MEMORY : BF_ADDED;
}

/* ------------------------------------------------------------------ hashing */

/* Filters of old dumps: two hashes of 32 bits. */
static bool is_narrow(const bf_filter *f)
{
    return f->scheme == BF_REDIS && !(f->options & BF_HASH64);
}

void bf_hash_items(const bf_filter *f, const bytes *items, size_t n,
                   bf_hash *out)
{
    for (size_t i = 0; i < n; i++) {
        if (f->scheme == BF_VALKEY) {
            out[i].a = siphash13(f->seed, items[i].at, items[i].n);
            out[i].b = siphash13(f->seed + 16, items[i].at, items[i].n);
        } else if (is_narrow(f)) {
            const uint32_t a =
                bly_murmur2(items[i].at, items[i].n, MURMUR32_SEED);
            out[i].a = a;
            out[i].b = bly_murmur2(items[i].at, items[i].n, a);
        } else {
            out[i].a = bly_murmur64a(items[i].at, items[i].n, MURMUR64_SEED);
            out[i].b = bly_murmur64a(items[i].at, items[i].n, out[i].a);
        }
    }
}

/* Probe i of a hash, before it is taken modulo the bits. */
static inline uint64_t probe_value(const bf_filter *f, bf_hash h, uint32_t i)
{
    const uint64_t prime = UINT64_C(0xffffffffffffffc5);
    const uint64_t at = h.a + i * h.b;
    if (f->scheme == BF_VALKEY)
        return i == 0 ? h.a : i == 1 ? h.b : at >= prime ? at - prime : at;
    return at;
}

/* Where it falls. */
static uint64_t probe_bit(const bf_filter *f, const bf_link *l, bf_hash h,
                          uint32_t i)
{
    const uint64_t at = probe_value(f, h, i);
    return l->n2 ? at & ((UINT64_C(1) << l->n2) - 1) : at % l->bits;
}

static bool bit_is_set(const bf_link *l, uint64_t bit)
{
    return l->data[bit / 8] >> bit % 8 & 1;
}

static void set_bit(bf_link *l, uint64_t bit)
{
    l->data[bit / 8] |= (unsigned char)(1u << bit % 8);
}

/* ----------------------------------------------------------------- one item */

static bool link_has(const bf_filter *f, const bf_link *l, bf_hash h)
{
    for (uint32_t i = 0; i < l->hashes; i++)
        if (!bit_is_set(l, probe_bit(f, l, h, i)))
            return false;
    return true;
}

bool bf_has(const bf_filter *f, bf_hash h)
{
    for (uint64_t i = f->nlinks; i-- > 0;)
        if (link_has(f, &f->links[i], h))
            return true;
    return false;
}

/* Room for one more in the newest sub-filter; BF_ADDED if there is now. */
static bf_added bf_make_room(bf_filter *f, uint64_t limit)
{
    const bf_link *l = &f->links[f->nlinks - 1];
    bf_link next;
    if (l->items < l->capacity)
        return BF_ADDED;
    if (!f->expansion)
        return BF_FULL;
    if (f->nlinks == BF_MAX_LINKS)
        return BF_NO_LINK;
    const bf_added st =
        next_size(f->scheme, f->expansion, f->tightening, l, &next);
    if (st != BF_ADDED)
        return st;
    if (limit && bf_bytes(f) + next.nbytes > limit)
        return BF_NO_MEMORY;
    return bf_push(f, &next) ? BF_ADDED : BF_NO_MEMORY;
}

bf_added bf_add(bf_filter *f, bf_hash h, uint64_t limit)
{
    if (bf_has(f, h))
        return BF_THERE;
    const bf_added st = bf_make_room(f, limit);
    if (st != BF_ADDED)
        return st;
    bf_link *l = &f->links[f->nlinks - 1];
    for (uint32_t i = 0; i < l->hashes; i++)
        set_bit(l, probe_bit(f, l, h, i));
    l->items++;
    f->items++;
    return BF_ADDED;
}

/* --------------------------------------------------------------- many items */

/* Places in one sub-filter of the items that are on their way. Memory answers
 * some twenty requests at a time: a few items ahead are enough to keep it busy,
 * and more would wait in a cache that they fill. Those past the ones that are
 * kept are computed when they are needed. */
enum { KEPT = 16, RING = 32, ADD_AHEAD = 4, HAS_AHEAD = 12 };

typedef struct places {
    const bf_filter *f;
    const bf_link *l;
    uint64_t inverse; /* floor((2^64 - 1) / bits) */
    uint32_t kept;
    uint64_t bit[RING][KEPT]; /* of item i in row i % RING */
} places;

static void places_of(const bf_filter *f, const bf_link *l, places *p)
{
    p->f = f;
    p->l = l;
    p->inverse = UINT64_MAX / l->bits;
    p->kept = l->hashes < KEPT ? l->hashes : KEPT;
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide_product;

/* x mod d without a division. The quotient by the inverse is at most two too
 * small: x / 2^64 < 1 times what the inverse lacks of 2^64 / d, below 2. */
static inline uint64_t modulo(uint64_t x, uint64_t d, uint64_t inverse)
{
    x -= (uint64_t)((wide_product)x * inverse >> 64) * d;
    while (x >= d)
        x -= d;
    return x;
}
#else
static inline uint64_t modulo(uint64_t x, uint64_t d, uint64_t inverse)
{
    (void)inverse;
    return x % d;
}
#endif

/* Compute places [from, to) of item i, and fetch them. */
static inline void places_fetch(places *p, size_t i, bf_hash h, uint32_t from,
                                uint32_t to)
{
    const bf_link *l = p->l;
    for (uint32_t k = from; k < to; k++) {
        const uint64_t at = probe_value(p->f, h, k);
        uint64_t *const bit = &p->bit[i % RING][k];
        *bit = l->n2 ? at & ((UINT64_C(1) << l->n2) - 1)
                     : modulo(at, l->bits, p->inverse);
        __builtin_prefetch(l->data + *bit / 8);
    }
}

/* Are the bits of places [from, to) of item i set? */
static inline bool places_set(const places *p, size_t i, uint32_t from,
                              uint32_t to)
{
    for (uint32_t k = from; k < to; k++)
        if (!bit_is_set(p->l, p->bit[i % RING][k]))
            return false;
    return true;
}

/* Past the kept ones. */
static bool rest_set(const places *p, bf_hash h)
{
    for (uint32_t k = KEPT; k < p->l->hashes; k++)
        if (!bit_is_set(p->l, probe_bit(p->f, p->l, h, k)))
            return false;
    return true;
}

/* Which of those that are not found yet one sub-filter has. In a full one half
 * of the bits are set, and an item that is not there falls at its first two
 * three times in four; in one that is less than half full it falls at its first
 * seven times in ten. What is left is fetched for the rest alone. */
static void link_has_batch(places *p, const bf_hash *h, size_t n, bool *found)
{
    const uint32_t some = p->l->items < p->l->capacity / 2 ? 1 : 2;
    const uint32_t first = p->kept < some ? p->kept : some;
    bool left[BF_BATCH];
    for (size_t i = 0; i < n + 2 * HAS_AHEAD; i++) {
        if (i < n && !found[i])
            places_fetch(p, i, h[i], 0, first);
        const size_t j = i - HAS_AHEAD, k = j - HAS_AHEAD; /* or far above n */
        if (j < n) {
            left[j] = !found[j] && places_set(p, j, 0, first);
            if (left[j])
                places_fetch(p, j, h[j], first, p->kept);
        }
        if (k < n && left[k])
            found[k] = places_set(p, k, first, p->kept) && rest_set(p, h[k]);
    }
}

void bf_has_batch(const bf_filter *f, const bf_hash *h, size_t n, bool *found)
{
    places p;
    memset(found, 0, n * sizeof *found);
    for (uint64_t i = f->nlinks; i-- > 0;) {
        places_of(f, &f->links[i], &p);
        link_has_batch(&p, h, n, found);
    }
}

size_t bf_add_batch(bf_filter *f, const bf_hash *h, size_t n, uint64_t limit,
                    bf_added *what)
{
    bool found[BF_BATCH] = { false };
    places p;
    for (uint64_t i = f->nlinks - 1; i-- > 0;) {
        places_of(f, &f->links[i], &p);
        link_has_batch(&p, h, n, found);
    }
    const uint64_t nlinks = f->nlinks;
    bf_link *l = &f->links[nlinks - 1];
    places_of(f, l, &p);
    for (size_t ahead = 0, i; ahead < n + ADD_AHEAD; ahead++) {
        if (ahead < n && !found[ahead])
            places_fetch(&p, ahead, h[ahead], 0, p.kept);
        if (ahead < ADD_AHEAD)
            continue;
        i = ahead - ADD_AHEAD;
        what[i] = BF_THERE;
        if (found[i] || (places_set(&p, i, 0, p.kept) && rest_set(&p, h[i])))
            continue;
        what[i] = bf_make_room(f, limit);
        if (f->nlinks != nlinks) { /* the places are of the one before */
            what[i] = bf_add(f, h[i], limit);
            return i + 1;
        }
        if (what[i] != BF_ADDED)
            continue;
        for (uint32_t k = 0; k < p.kept; k++)
            set_bit(l, p.bit[i % RING][k]);
        for (uint32_t k = KEPT; k < l->hashes; k++)
            set_bit(l, probe_bit(f, l, h[i], k));
        l->items++;
        f->items++;
    }
    return n;
}

static array_part bf_part(const void *value, uint64_t i)
{
    const bf_link *l = &((const bf_filter *)value)->links[i];
    return (array_part){ l->data, l->nbytes };
}

size_t bf_chunk(const bf_filter *f, uint64_t offset, size_t most,
                unsigned char **at)
{
    return array_chunk(f, f->nlinks, bf_part, offset, most, at);
}
