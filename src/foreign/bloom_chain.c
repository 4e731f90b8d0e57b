/*
 * bloom_chain.c - see bloom_chain.h
 */
#include "foreign/bloom_chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHAIN_LN2_SQUARED 0.480453013918201 /* RedisBloom's own */
#define CHAIN_LN2 0.693147180559945
#define CHAIN_MAX_BITS (UINT64_C(1) << 45)
#define CHAIN_MAX_HASHES 1100 /* log2(1/e) of the least double is 1074 */

/* Of a link: the sum over all links is then a number, too. */
#define CHAIN_MAX_CAPACITY (UINT64_C(1) << 46)

/* -------------------------------------------------------------------- sizes */

/* What RedisBloom computes from a rate. */
static double redis_bits_per_entry(double error)
{
    return fabs(log(error)) / CHAIN_LN2_SQUARED;
}

static uint64_t redis_hashes(double bits_per_entry)
{
    return (uint64_t)ceil(CHAIN_LN2 * bits_per_entry);
}

double bly_chain_bits_per_entry(const bly_chain_link *l)
{
    return l->odd ? bly_bits_real(l->inverse) : redis_bits_per_entry(l->error);
}

static bool size_redis(bly_chain_sizes *s)
{
    s->bits_per_entry = redis_bits_per_entry(s->error);
    const double bits = (double)s->capacity * s->bits_per_entry;
    if (!(bits < (double)CHAIN_MAX_BITS))
        return false;
    s->bits = (uint64_t)bits;
    s->bits = s->bits ? (s->bits + 63) / 64 * 64 : 64;
    s->hashes = redis_hashes(s->bits_per_entry);
    return true;
}

static bool size_valkey(bly_chain_sizes *s)
{
    const double ln2 = log(2);
    const double n =
        ceil((double)s->capacity * log(s->error) / (-8.0 * (ln2 * ln2)));
    if (!(n >= 1 && n < (double)CHAIN_MAX_BITS / 8))
        return false;
    const double hashes = round(8 * n / (double)s->capacity * ln2);
    s->bits = (uint64_t)n * 8;
    s->hashes = hashes < 1 ? 1 : (uint64_t)hashes;
    return true;
}

bool bly_chain_link_take(bool valkey, const bly_chain_sizes *s, uint64_t nbytes,
                         bly_chain_link *out)
{
    /* Dumps of the oldest versions end within a byte. */
    if (!(s->error > 0 && s->error < 1) || !nbytes ||
        nbytes > CHAIN_MAX_BITS / 8 || s->bits > 8 * nbytes ||
        s->bits <= 8 * (nbytes - 1) || !s->hashes ||
        s->hashes > CHAIN_MAX_HASHES || s->n2 > 63 || !s->capacity ||
        s->capacity > CHAIN_MAX_CAPACITY || s->items > CHAIN_MAX_CAPACITY)
        return false;
    if (!valkey && !(s->bits_per_entry > 0 && s->bits_per_entry < 0x1p20 &&
                     s->hashes == redis_hashes(s->bits_per_entry) &&
                     (!s->n2 || s->bits >= UINT64_C(1) << s->n2)))
        return false;
    /* The masks are for the compiler: they fit. */
    *out = (bly_chain_link){ .bits = s->bits & (2 * CHAIN_MAX_BITS - 1),
                             .hashes = s->hashes & 2047,
                             .n2 = s->n2 & 63,
                             .capacity = s->capacity,
                             .items = s->items,
                             .error = s->error };
    out->inverse = bly_modulus_of(bly_chain_range(out).n).inverse;
    out->odd = !valkey && s->bits_per_entry != redis_bits_per_entry(s->error);
    if (out->odd)
        out->inverse = bly_real_bits(s->bits_per_entry);
    return true;
}

/* A link for capacity and rate; false where it cannot be. */
static bool chain_size(bool valkey, double error, uint64_t capacity,
                       bly_chain_link *out)
{
    bly_chain_sizes s = { .capacity = capacity, .error = error };
    return error > 0 && error < 1 && capacity &&
           capacity <= CHAIN_MAX_CAPACITY &&
           (valkey ? size_valkey : size_redis)(&s) &&
           bly_chain_link_take(valkey, &s, s.bits / 8, out);
}

/* The link after l, which is number n from 0; the first has the rate `first`.
 * Rates of valkey-bloom are powers of the tightening, as where they are read
 * from a dump: a filter that was loaded grows as the one that was saved. */
static bly_status chain_next(const bly_foreign *f, const bly_chain_link *l,
                             double first, size_t n, bly_chain_link *out)
{
    const bool valkey = bly_chain_is_valkey(f);
    const double error =
        valkey ? first * pow(bly_chain_rules_of(f)->tightening, (double)(n + 1))
               : l->error * 0.5;
    if (!(error >= (valkey ? 0x1p-1022 : 0x1p-1074)))
        return bly_fail(BLY_EFULL, "cannot grow any more: the rate of the next "
                                   "filter would be zero");
    if (l->capacity > UINT64_MAX / f->growth ||
        !chain_size(valkey, error, l->capacity * f->growth, out))
        return bly_fail(BLY_ERANGE, "cannot grow any more: the next filter "
                                    "would have more than 2^45 bits");
    return BLY_OK;
}

/* ------------------------------------------------------------------- making */

static size_t chain_own_bytes(bool valkey, size_t nlinks)
{
    return nlinks * sizeof(bly_chain_link) +
           (valkey ? sizeof(bly_chain_rules) : 0);
}

bly_status bly_chain_new(bly_foreign *f, bool valkey, uint64_t nlinks)
{
    bly_chain_close(f); /* of a plan that failed */
    f->nparts = 0;      /* until they can be used */
    f->flags = valkey ? BLY_CHAIN_VALKEY : 0;
    if (nlinks > BLY_CHAIN_MAX_LINKS)
        return bly_damaged("a chain of more than 65536 filters");
    const size_t nbytes = chain_own_bytes(valkey, (size_t)nlinks);
    if (nbytes) {
        f->own = bly_mem_zalloc(f->mem, nbytes);
        if (!f->own)
            return bly_fail(BLY_ENOMEM, "out of memory");
    }
    f->nparts = (uint32_t)nlinks;
    return BLY_OK;
}

static size_t chain_lead(const bly_foreign *f, size_t nbytes)
{
    return bly_chain_is_valkey(f) && nbytes >= BLY_CHAIN_LARGE ? BLY_CHAIN_LEAD
                                                               : 0;
}

unsigned char *bly_chain_array_new(const bly_foreign *f, size_t nbytes)
{
    const size_t lead = chain_lead(f, nbytes);
    unsigned char *const at =
        nbytes > SIZE_MAX - lead ? NULL : bly_mem_zalloc(f->mem, lead + nbytes);
    return at ? at + lead : NULL;
}

void bly_chain_array_free(const bly_foreign *f, unsigned char *data,
                          size_t nbytes)
{
    if (data)
        bly_mem_release(f->mem, data - chain_lead(f, nbytes),
                        chain_lead(f, nbytes) + nbytes);
}

void bly_chain_close(bly_foreign *f)
{
    if (!f->own)
        return;
    bly_chain_link *const links = bly_chain_links(f);
    for (size_t i = 0; i < f->nparts && !bly_foreign_opened(f); i++)
        bly_chain_array_free(f, links[i].data,
                             (size_t)bly_chain_nbytes(&links[i]));
    bly_mem_release(f->mem, links,
                    chain_own_bytes(bly_chain_is_valkey(f), f->nparts));
    f->own = NULL;
}

/* What each system counts besides the bits, for so many links: its structures,
 * and valkey-bloom's array of pointers, which has room for 1, 4, 8, 16, ... */
static uint64_t chain_besides(bool valkey, size_t nlinks)
{
    size_t room = nlinks > 1 ? 4 : 1;
    while (room < nlinks)
        room *= 2;
    return valkey ? 48 + 8 * room + 208 * nlinks : 32 + 64 * nlinks;
}

static uint64_t chain_bytes(const bly_foreign *f, size_t nlinks)
{
    uint64_t sum = chain_besides(bly_chain_is_valkey(f), nlinks);
    for (size_t i = 0; i < f->nparts; i++)
        sum += bly_chain_nbytes(&bly_chain_links(f)[i]);
    return sum;
}

uint64_t bly_chain_counted(const bly_foreign *f, size_t nparts)
{
    uint64_t later = 0;
    for (size_t i = nparts; i < f->nparts; i++)
        later += bly_chain_nbytes(&bly_chain_links(f)[i]);
    return f->own && nparts ? chain_bytes(f, nparts) - later : 0;
}

/* One more link, of the sizes of l. */
static bly_status chain_push(bly_foreign *f, const bly_chain_link *l)
{
    const size_t n = f->nparts;
    const bool valkey = bly_chain_is_valkey(f);
    const uint64_t nbytes = bly_chain_nbytes(l);
    const bly_status st =
        bly_foreign_allowed(f, chain_bytes(f, n + 1) + nbytes);
    if (st)
        return st;
    bly_chain_link *const more =
        bly_mem_zalloc(f->mem, chain_own_bytes(valkey, n + 1));
    /* More than an address has bits for is no memory either. */
    unsigned char *const data = more && (size_t)nbytes == nbytes
                                    ? bly_chain_array_new(f, (size_t)nbytes)
                                    : NULL;
    if (!data) {
        bly_mem_release(f->mem, more, chain_own_bytes(valkey, n + 1));
        return bly_fail(BLY_ENOMEM, "out of memory: %llu bytes for a filter",
                        (unsigned long long)nbytes);
    }
    if (f->own) {
        memcpy(more, f->own, n * sizeof *more);
        if (valkey)
            memcpy(more + n + 1, bly_chain_rules_of(f),
                   sizeof(bly_chain_rules));
        bly_mem_release(f->mem, f->own, chain_own_bytes(valkey, n));
    }
    more[n] = *l;
    more[n].data = data;
    f->own = more;
    f->nparts++;
    return BLY_OK;
}

const char *const bly_chain_forms[] = { "bytes", "hex", NULL };
const char *const bly_chain_scaling[] = { "yes", "no", NULL };

bly_status bly_chain_options(bly_foreign *f)
{
    uint64_t x;
    const bly_status st =
        bly_foreign_number(f, BLY_CHAIN_GROWTH, 1, UINT32_MAX, &x);
    if (st)
        return st;
    f->growth =
        strcmp(f->more->option[BLY_CHAIN_SCALING], "no") == 0 ? 0 : (uint32_t)x;
    return BLY_OK;
}

/* A chain that scales by RedisBloom's rules begins with half the rate, so that
 * the rates of all links add up to what was asked. */
static bly_status chain_first(const bly_foreign *f, uint64_t items, double fpr,
                              bly_chain_link *out)
{
    const bool valkey = bly_chain_is_valkey(f);
    return chain_size(valkey, !valkey && f->growth ? fpr / 2 : fpr, items, out)
               ? BLY_OK
               : bly_fail(BLY_ERANGE,
                          "such a filter has at most 2^45 bits, 2^46 items, "
                          "and a rate that is a number above zero");
}

bly_status bly_chain_begin(bly_foreign *f, uint64_t items, double fpr)
{
    bly_chain_link first;
    const bly_status st = chain_first(f, items, fpr, &first);
    return st ? st : chain_push(f, &first);
}

bly_status bly_chain_scales(bly_foreign *f, uint64_t to, uint64_t *holds)
{
    const uint64_t most = bly_foreign_most(f);
    bly_chain_link l;
    uint64_t nbytes = 0;
    bly_status st = chain_first(f, f->more->items, f->more->fpr, &l);
    const double first = st ? 0 : l.error;
    for (size_t n = 1; !st; n++) {
        nbytes += bly_chain_nbytes(&l);
        const bool over =
            most && nbytes + chain_besides(bly_chain_is_valkey(f), n) > most;
        if (!over || n == 1)
            *holds += l.capacity;
        if (over)
            return bly_fail(BLY_ERANGE, "it would take more than %llu bytes",
                            (unsigned long long)most);
        if (*holds >= to)
            break;
        st = !f->growth || n == BLY_CHAIN_MAX_LINKS
                 ? bly_fail(BLY_EFULL, "it does not grow so far")
                 : chain_next(f, &l, first, n - 1, &l);
    }
    return st;
}

bly_status bly_chain_copy(const bly_foreign *f, bly_foreign *to)
{
    const bly_chain_link *const from = bly_chain_links(f);
    bly_status st = bly_chain_new(to, bly_chain_is_valkey(f), f->nparts);
    if (st)
        return st;
    to->growth = f->growth;
    to->flags = f->flags;
    for (size_t i = 0; i < f->nparts; i++) {
        bly_chain_link *const l = &bly_chain_links(to)[i];
        const size_t n = (size_t)bly_chain_nbytes(&from[i]);
        *l = from[i];
        l->data = st ? NULL : bly_chain_array_new(to, n);
        if (l->data)
            memcpy(l->data, from[i].data, n);
        else if (!st)
            st = bly_fail(BLY_ENOMEM, "out of memory");
    }
    if (bly_chain_is_valkey(f))
        *bly_chain_rules_of(to) = *bly_chain_rules_of(f);
    return st;
}

/* --------------------------------------------------------------- describing */

void bly_chain_part(const bly_foreign *f, size_t i, bly_foreign_part *out)
{
    if (!f->own || i >= f->nparts) /* its size is not known yet */
        return;
    const bly_chain_link *const l = &bly_chain_links(f)[i];
    out->bytes = l->data;
    out->nbits = bly_chain_range(l).n;
    out->k = l->hashes;
    out->items = l->items;
    out->capacity = l->capacity;
    out->fpr_planned = l->error;
}

void bly_chain_name(const bly_foreign *f, size_t i, char name[BLY_PART_NAME])
{
    if (f->nparts > 1)
        snprintf(name, BLY_PART_NAME, "filter %zu", i + 1);
}

bly_array bly_chain_array(const bly_foreign *f, size_t i)
{
    if (!f->own || i >= f->nparts)
        return (bly_array){ 0 };
    const bly_chain_link *const l = &bly_chain_links(f)[i];
    return (bly_array){ l->data, bly_chain_nbytes(l) };
}

void bly_chain_move(bly_foreign *f, size_t i, bly_mover *move, void *ctx)
{
    if (i == 0)
        bly_moved(&f->own, move, ctx);
    bly_chain_link *const l = &bly_chain_links(f)[i];
    const size_t lead = chain_lead(f, (size_t)bly_chain_nbytes(l));
    unsigned char *at = l->data ? l->data - lead : NULL;
    bly_moved(&at, move, ctx);
    if (at)
        l->data = at + lead;
}

double bly_chain_rate(const bly_foreign *f)
{
    double right = 1;
    for (size_t i = 0; i < f->nparts; i++) {
        const bly_chain_link *const l = &bly_chain_links(f)[i];
        const double fill =
            -expm1(-(double)l->hashes * (double)l->items / (double)l->bits);
        right *= 1 - pow(fill, l->hashes);
    }
    return 1 - right;
}

/* ------------------------------------------------------------------ one key */

/* The probes of a key in a link, one after another: (a + i b mod 2^64) mod m.
 * Steps are added to the place and not to the hash, so that there are two
 * products for a link and none for a probe: where the sum of the hashes passes
 * 2^64, the step is one by b - 2^64. */
typedef struct chain_walk {
    uint64_t a, b, m;
    uint64_t place;         /* a mod m */
    uint64_t step, wrapped; /* b and b - 2^64, mod m */
} chain_walk;

#define CHAIN_INLINE static inline __attribute__((always_inline))

CHAIN_INLINE chain_walk walk_of(const bly_chain_link *l, const uint64_t *h)
{
    const bly_modulus range = bly_chain_range(l);
    const uint64_t m = range.n;
    const uint64_t over = -(range.inverse * m); /* 2^64 mod m, m for 0 */
    const uint64_t step = bly_mod(h[1], range);
    return (chain_walk){ .a = h[0],
                         .b = h[1],
                         .m = m,
                         .place = bly_mod(h[0], range),
                         .step = step,
                         .wrapped =
                             step >= over ? step - over : step + (m - over) };
}

CHAIN_INLINE void walk_on(chain_walk *w)
{
    w->a += w->b;
    const uint64_t to = w->place + (w->a < w->b ? w->wrapped : w->step);
    w->place = to >= w->m ? to - w->m : to;
}

/* Where probe i is, to which w has walked. Those of valkey-bloom are a, b, and
 * then the sums modulo a prime below 2^64, which hardly any is above. */
CHAIN_INLINE uint64_t walk_place(const chain_walk *w, bool valkey, uint32_t i)
{
    const uint64_t prime = UINT64_C(0xffffffffffffffc5);
    if (valkey && i == 1)
        return w->step;
    if (valkey && i > 1 && __builtin_expect(w->a >= prime, false))
        return (w->a - prime) % w->m;
    return w->place;
}

static inline bool chain_bit(const bly_chain_link *l, uint64_t bit)
{
    return l->data[bit / 8] >> bit % 8 & 1;
}

static inline void chain_bit_set(bly_chain_link *l, uint64_t bit)
{
    l->data[bit / 8] |= (unsigned char)(1u << bit % 8);
}

/* Is a link less than half full? A key that is not there then falls at its
 * first place, seven times in ten and more. */
CHAIN_INLINE bool link_is_light(const bly_chain_link *l)
{
    return l->items < l->capacity / 2;
}

/* The bit of probe i, from which w walks on; what is above it is anything. */
CHAIN_INLINE unsigned link_bit(const bly_chain_link *l, chain_walk *w,
                               bool valkey, uint32_t i)
{
    const uint64_t bit = walk_place(w, valkey, i);
    walk_on(w);
    return (unsigned)l->data[bit / 8] >> bit % 8;
}

/* Do all places have their bits set? In a link that is full half of the bits
 * are, and four are looked at together: a key that is not there falls at one of
 * these fifteen times in sixteen, so that the processor guesses right. */
CHAIN_INLINE bool link_has_by(const bly_chain_link *l, const uint64_t *h,
                              bool valkey)
{
    if (link_is_light(l) && !chain_bit(l, bly_mod(h[0], bly_chain_range(l))))
        return false;
    chain_walk w = walk_of(l, h);
    uint32_t i = 0;
    if (l->hashes >= 4) {
        unsigned all = link_bit(l, &w, valkey, 0);
        all &= link_bit(l, &w, valkey, 1);
        all &= link_bit(l, &w, valkey, 2);
        all &= link_bit(l, &w, valkey, 3);
        if (!(all & 1))
            return false;
        i = 4;
    }
    for (; i < l->hashes; i++, walk_on(&w))
        if (!chain_bit(l, walk_place(&w, valkey, i)))
            return false;
    return true;
}

static bool link_has(const bly_foreign *f, size_t i, const uint64_t *h)
{
    const bly_chain_link *const l = &bly_chain_links(f)[i];
    return bly_chain_is_valkey(f) ? link_has_by(l, h, true)
                                  : link_has_by(l, h, false);
}

bool bly_chain_test(const bly_foreign *f, size_t i, const bly_foreign_key *key)
{
    return link_has(f, i, key->h);
}

/* Room for one more in the newest link. */
static bly_status chain_make_room(bly_foreign *f)
{
    const bly_chain_link *const links = bly_chain_links(f);
    const bly_chain_link *const l = &links[f->nparts - 1];
    bly_chain_link next;
    if (l->items < l->capacity)
        return BLY_OK;
    if (!f->growth)
        return bly_fail(BLY_EFULL,
                        "full: it holds its capacity of %llu items, "
                        "and does not scale",
                        (unsigned long long)l->capacity);
    if (f->nparts == BLY_CHAIN_MAX_LINKS)
        return bly_fail(BLY_EFULL, "full: a chain of 65536 filters, which is "
                                   "the most there may be");
    const bly_status st =
        chain_next(f, l, links[0].error, f->nparts - 1, &next);
    return st ? st : chain_push(f, &next);
}

/* A key that is not there goes into the newest link. */
CHAIN_INLINE void link_put_by(bly_chain_link *l, const uint64_t *h, bool valkey)
{
    chain_walk w = walk_of(l, h);
    for (uint32_t i = 0; i < l->hashes; i++, walk_on(&w))
        chain_bit_set(l, walk_place(&w, valkey, i));
}

static void chain_count(bly_foreign *f, bly_chain_link *l)
{
    l->items++;
    f->nadded++;
    f->nchanges++;
}

static void chain_put(bly_foreign *f, const uint64_t *h)
{
    bly_chain_link *const l = &bly_chain_links(f)[f->nparts - 1];
    if (bly_chain_is_valkey(f))
        link_put_by(l, h, true);
    else
        link_put_by(l, h, false);
    chain_count(f, l);
}

/* ---------------------------------------------------------------- many keys */

/* Places in one link of the keys that are on their way. Of a key with more
 * places than are kept the rest is computed when it is needed. Lines of a link
 * that no cache holds go into the second level: the first has room for some
 * twenty requests, and each would wait there for as long as memory takes, so
 * that two lines came in the time of one. From a cache they come soon, and a
 * few keys ahead are enough. */
enum { KEPT = 16, RING = 32, AHEAD = 12, ADD_AHEAD = 4 };

#define CHAIN_FAR ((uint64_t)16 << 20) /* bytes */

typedef struct chain_places {
    const bly_chain_link *l;
    bool valkey, far;
    uint32_t kept;
    uint64_t bit[RING][KEPT]; /* of key i in row i % RING */
} chain_places;

static void places_of(const bly_foreign *f, const bly_chain_link *l,
                      chain_places *p)
{
    p->l = l;
    p->valkey = bly_chain_is_valkey(f);
    p->far = l->bits > 8 * CHAIN_FAR;
    p->kept = l->hashes < KEPT ? l->hashes : KEPT;
}

/* Compute places [from, to) of key i, and fetch them. Each by itself and not by
 * steps: memory is asked for the next one sooner. */
CHAIN_INLINE void places_fetch(chain_places *p, size_t i, const uint64_t *h,
                               uint32_t from, uint32_t to)
{
    const uint64_t prime = UINT64_C(0xffffffffffffffc5); /* as walk_place() */
    const bly_modulus range = bly_chain_range(p->l);
    for (uint32_t k = from; k < to; k++) {
        uint64_t at = h[0] + k * h[1];
        if (p->valkey)
            at = k < 2 ? h[k] : at >= prime ? at - prime : at;
        at = bly_mod(at, range);
        p->bit[i % RING][k] = at;
        if (p->far)
            __builtin_prefetch(p->l->data + at / 8, 0, 2);
        else
            __builtin_prefetch(p->l->data + at / 8);
    }
}

/* Are the bits of places [from, to) of key i set? */
static inline bool places_are_set(const chain_places *p, size_t i,
                                  uint32_t from, uint32_t to)
{
    for (uint32_t k = from; k < to; k++)
        if (!chain_bit(p->l, p->bit[i % RING][k]))
            return false;
    return true;
}

/* And those past them, where there are so many. */
static bool places_rest_set(const chain_places *p, const uint64_t *h)
{
    return p->l->hashes <= KEPT || (p->valkey ? link_has_by(p->l, h, true)
                                              : link_has_by(p->l, h, false));
}

/* Does a link before the one at `end` have the key? A single key asks for all
 * places of a link that is far at once: it would wait for each in turn. */
static bool links_have(const bly_foreign *f, size_t end, const uint64_t *h)
{
    for (size_t i = end; i-- > 0;) {
        const bly_chain_link *const l = &bly_chain_links(f)[i];
        if (l->bits <= 8 * BLY_CHAIN_NEAR) {
            if (link_has(f, i, h))
                return true;
            continue;
        }
        chain_places p;
        places_of(f, l, &p);
        p.far = false; /* it is waited for at once */
        places_fetch(&p, 0, h, 0, p.kept);
        if (places_are_set(&p, 0, 0, p.kept) && places_rest_set(&p, h))
            return true;
    }
    return false;
}

/* Which of those that are not found yet one link has. In a full one half of the
 * bits are set, and a key that is not there falls at its first two three times
 * in four; in one that is less than half full it falls at its first seven times
 * in ten. What is left is fetched for the rest alone. */
static void far_ask(chain_places *p, const bly_foreign_key *keys, size_t n,
                    bool *found)
{
    const uint32_t some = link_is_light(p->l) ? 1 : 2;
    const uint32_t first = p->kept < some ? p->kept : some;
    bool left[BLY_CROWD];
    for (size_t i = 0; i < n + 2 * AHEAD; i++) {
        if (i < n && !found[i])
            places_fetch(p, i, keys[i].h, 0, first);
        const size_t j = i - AHEAD, k = j - AHEAD; /* or far above n */
        if (j < n) {
            left[j] = !found[j] && places_are_set(p, j, 0, first);
            if (left[j])
                places_fetch(p, j, keys[j].h, first, p->kept);
        }
        if (k < n && left[k])
            found[k] = places_are_set(p, k, first, p->kept) &&
                       places_rest_set(p, keys[k].h);
    }
}

/* The same of one that is in a cache: keys one after another, of which the
 * processor works on several at a time. */
static void near_ask(bool valkey, const bly_chain_link *l,
                     const bly_foreign_key *keys, size_t n, bool *found)
{
    for (size_t i = 0; i < n && !valkey; i++)
        if (!found[i])
            found[i] = link_has_by(l, keys[i].h, false);
    for (size_t i = 0; i < n && valkey; i++)
        if (!found[i])
            found[i] = link_has_by(l, keys[i].h, true);
}

/* Which of those that are not found yet are in the links from `begin` on,
 * before the one at `end`. */
static void links_ask(const bly_foreign *f, size_t begin, size_t end,
                      const bly_foreign_key *keys, size_t n, chain_places *p,
                      bool *found)
{
    for (size_t i = end; i-- > begin;) {
        const bly_chain_link *const l = &bly_chain_links(f)[i];
        if (l->bits <= 8 * BLY_CHAIN_NEAR) {
            near_ask(bly_chain_is_valkey(f), l, keys, n, found);
            continue;
        }
        places_of(f, l, p);
        far_ask(p, keys, n, found);
    }
}

static __attribute__((noinline)) void
chain_ask_many(const bly_foreign *f, const bly_foreign_key *keys, size_t n,
               uint64_t *bitmap)
{
    bool found[BLY_CROWD] = { false };
    chain_places p;
    links_ask(f, 0, f->nparts, keys, n, &p, found);
    for (size_t i = 0; i < n; i++)
        bitmap[i / 64] |= (uint64_t)found[i] << i % 64;
}

void bly_chain_ask(const bly_foreign *f, const bly_foreign_key *keys, size_t n,
                   uint64_t *bitmap)
{
    if (n == 1)
        *bitmap |= links_have(f, f->nparts, keys->h);
    else
        chain_ask_many(f, keys, n, bitmap);
}

/* Add several, up to one that fails, or with which the chain grows: the places
 * of those behind it are of the link before. found: which of them older links
 * have. *ndone: how many. */
static bly_status chain_add_some(bly_foreign *f, const bly_foreign_key *keys,
                                 size_t n, const bool *found, bool *fresh,
                                 size_t *ndone)
{
    const size_t nlinks = f->nparts;
    bly_chain_link *const l = &bly_chain_links(f)[nlinks - 1];
    chain_places p;
    *ndone = 0;
    places_of(f, l, &p);
    p.far &= n > 1;
    const size_t most = p.far ? AHEAD : ADD_AHEAD;
    for (size_t ahead = 0; ahead < n + most; ahead++) {
        if (ahead < n && !found[ahead])
            places_fetch(&p, ahead, keys[ahead].h, 0, p.kept);
        if (ahead < most)
            continue;
        const size_t i = ahead - most;
        const uint64_t *const h = keys[i].h;
        fresh[i] = !found[i] && !(places_are_set(&p, i, 0, p.kept) &&
                                  places_rest_set(&p, h));
        const bly_status st = fresh[i] ? chain_make_room(f) : BLY_OK;
        if (st)
            return st;
        *ndone = i + 1;
        if (f->nparts != nlinks) {
            chain_put(f, h);
            return BLY_OK;
        }
        if (fresh[i] && l->hashes > KEPT) {
            chain_put(f, h);
        } else if (fresh[i]) {
            for (uint32_t k = 0; k < p.kept; k++)
                chain_bit_set(l, p.bit[i % RING][k]);
            chain_count(f, l);
        }
    }
    return BLY_OK;
}

static __attribute__((noinline)) bly_status
chain_add_many(bly_foreign *f, const bly_foreign_key *keys, size_t n,
               uint64_t *fresh, size_t *ndone)
{
    bool novel[BLY_CROWD], found[BLY_CROWD] = { false };
    bly_status st = BLY_OK;
    size_t some, nasked = 0; /* links that were asked for all that are left */
    for (*ndone = 0; *ndone < n && !st;) {
        chain_places p;
        links_ask(f, nasked, f->nparts - 1, keys + *ndone, n - *ndone, &p,
                  found + *ndone);
        nasked = f->nparts - 1;
        st = chain_add_some(f, keys + *ndone, n - *ndone, found + *ndone, novel,
                            &some);
        for (size_t i = 0; i < some && fresh; i++)
            fresh[(*ndone + i) / 64] |= (uint64_t)novel[i] << (*ndone + i) % 64;
        *ndone += some;
    }
    return st;
}

bly_status bly_chain_add(bly_foreign *f, const bly_foreign_key *keys, size_t n,
                         bool again, uint64_t *fresh, size_t *ndone)
{
    (void)again; /* bits that are set are set */
    if (n != 1)
        return chain_add_many(f, keys, n, fresh, ndone);
    const bool found = links_have(f, f->nparts - 1, keys->h);
    bool novel;
    const bly_status st = chain_add_some(f, keys, 1, &found, &novel, ndone);
    if (fresh)
        *fresh |= !st && novel;
    return st;
}
