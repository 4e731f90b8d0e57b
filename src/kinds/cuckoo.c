/*
 * cuckoo.c - a table of fingerprints that can move house
 *
 * A key is stored as a fingerprint of f bits, in one of two buckets of b slots
 * each. Either bucket follows from the other and the fingerprint, so that a
 * fingerprint can be moved without its key; where both are full, others are
 * moved out of the way.
 *
 *     hash h -> i1 = h * nb / 2^64
 *               fp = 1 + (top half of h * C) * (2^f - 1) / 2^32
 *               t  = 1 + 2 (mix(fp) * (nb/2) / 2^64)
 *               i2 = (t - i1) mod nb,  and i1 = (t - i2) mod nb
 *
 *     bucket i:  | fp | fp | 0 | fp |     b slots; 0 is an empty one
 *                  f bits each, packed; any f from 4 to 32
 *
 * nb is any even number and t is odd: of two buckets one is even and the other
 * odd, so they are never the same, which in small tables would cost a tenth of
 * the load. Fingerprints range evenly over 1 .. 2^f - 1. Mapping 0 to 1 instead
 * would make 1 twice as likely: 40.8 % instead of 39.8 % false positives at f
 * = 4.
 *
 * Rate. An absent key is a false positive where one of the n stored keys has
 * its fingerprint and started in one of its two buckets, wherever that one has
 * moved since:
 *
 *     1 - (1 - 2 / (nb (2^f - 1)))^n,  about 2 b load / 2^f
 *
 * So 1 % takes 10 bits a slot: one million keys take 263,158 buckets of four
 * at a load of 0.95, 10.53 bits a key, and the rate is 0.74 %.
 *
 * Adding searches breadth first from both buckets for one with room, and moves
 * along the shortest way. Nothing has moved when the search fails: the table
 * is full, no key is lost. A shortest way meets no bucket twice (from the
 * first meeting on there would be a shorter one), so no move undoes another.
 *
 * Copies. Every addition stores a copy and every removal takes one, so a key
 * that was added twice must be removed twice. Two buckets hold 2b copies; the
 * next is refused even in an empty table. With `unique` a key that seems to be
 * there is not stored again; since it may be another that looks like it, whose
 * only copy they would share, nothing can be removed then.
 *
 * Semi-sorting [1] (`semisort`, b = 4). The order of slots carries no
 * information: sorted by their low four bits, those make one of C(19,4) = 3876
 * multisets, which takes 12 bits instead of 16. One bit a slot is saved.
 *
 *     bucket i:  | code, 12 bits | the higher f - 4 bits of four slots |
 *
 * Growing (`grow` = s). A full table is followed by one s times as large with
 * fingerprints a bit longer, as a layer: rates p/2 + p/4 + ... stay below p.
 *
 * It cannot be resized or counted by: fingerprints do not know their keys, and
 * two buckets hold 2b copies at most.
 *
 * state[0] is the number of fingerprints stored in data.
 *
 * [1] Fan, Andersen, Kaminsky and Mitzenmacher, Cuckoo Filter: Practically
 *     Better Than Bloom, 2014
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/bits.h"
#include "core/status.h"
#include "kinds/filter.h"

#define CUCKOO_MIN_BITS 4
#define CUCKOO_MAX_BITS 32
#define CUCKOO_MAX_SLOTS 8
#define CUCKOO_MAX_BUCKETS (UINT64_C(1) << 40)
#define CUCKOO_MAX_MEMORY (UINT64_C(1) << 48) /* bits: 32 TiB */
#define CUCKOO_MAX_GROW 16

enum {
    CUCKOO_BUCKETS,
    CUCKOO_SLOTS,
    CUCKOO_BITS,
    CUCKOO_SEMISORT,
    CUCKOO_UNIQUE,
    CUCKOO_GROW
};

static const char *const cuckoo_switch[] = { "off", "on", NULL };

static const bly_param cuckoo_params[] = {
    [CUCKOO_BUCKETS] = { .name = "buckets",
                         .type = BLY_UINT,
                         .min = 2,
                         .max = (double)CUCKOO_MAX_BUCKETS,
                         .help = "buckets of the table, an even number" },
    [CUCKOO_SLOTS] = { .name = "bucket",
                       .type = BLY_UINT,
                       .settable = true,
                       .def = 4,
                       .min = 1,
                       .max = CUCKOO_MAX_SLOTS,
                       .help = "slots of a bucket: 1, 2, 4 or 8" },
    [CUCKOO_BITS] = { .name = "fingerprint",
                      .type = BLY_UINT,
                      .settable = true,
                      .automatic = true,
                      .min = CUCKOO_MIN_BITS,
                      .max = CUCKOO_MAX_BITS,
                      .help = "bits of a fingerprint" },
    [CUCKOO_SEMISORT] = { .name = "semisort",
                          .type = BLY_CHOICE,
                          .settable = true,
                          .max = 1,
                          .choices = cuckoo_switch,
                          .help = "one bit a slot less, for time" },
    [CUCKOO_UNIQUE] = { .name = "unique",
                        .type = BLY_CHOICE,
                        .settable = true,
                        .max = 1,
                        .choices = cuckoo_switch,
                        .help = "do not store again what seems to be there" },
    [CUCKOO_GROW] = { .name = "grow",
                      .type = BLY_UINT,
                      .settable = true,
                      .min = 0,
                      .max = CUCKOO_MAX_GROW,
                      .help = "0: full is full; else the next table is so "
                              "many times as large" },
};

/* ----------------------------------------------------------------- sizes */

static bool cuckoo_slots_ok(uint64_t b)
{
    return b == 1 || b == 2 || b == 4 || b == 8;
}

/* Bits of a bucket. */
static uint64_t cuckoo_width(uint64_t b, uint64_t f, uint64_t semisort)
{
    return b * f - (semisort ? 4 : 0);
}

/* A word is loaded from the byte in which its first bit lies, so seven bytes
 * follow the one with the last bit. */
static uint64_t cuckoo_nbytes(uint64_t nbits)
{
    return ((nbits - 1) / 8 + 8 + 7) / 8 * 8;
}

static uint64_t cuckoo_bits(const bly_shape *s)
{
    return s->p[CUCKOO_BUCKETS] * cuckoo_width(s->p[CUCKOO_SLOTS],
                                               s->p[CUCKOO_BITS],
                                               s->p[CUCKOO_SEMISORT]);
}

/* Bucket and fingerprint are taken from 64 bits. */
static bool cuckoo_hash_lasts(uint64_t nb, uint64_t f)
{
    return f <= 24 || nb <= UINT64_C(1) << (64 - f);
}

static bool cuckoo_sane(const bly_shape *s)
{
    const uint64_t nb = s->p[CUCKOO_BUCKETS], f = s->p[CUCKOO_BITS];
    return nb >= 2 && nb % 2 == 0 && nb <= CUCKOO_MAX_BUCKETS &&
           f >= CUCKOO_MIN_BITS && f <= CUCKOO_MAX_BITS &&
           cuckoo_slots_ok(s->p[CUCKOO_SLOTS]) && cuckoo_hash_lasts(nb, f) &&
           s->p[CUCKOO_SEMISORT] <= 1 &&
           (!s->p[CUCKOO_SEMISORT] || s->p[CUCKOO_SLOTS] == 4) &&
           s->p[CUCKOO_UNIQUE] <= 1 && s->p[CUCKOO_GROW] <= CUCKOO_MAX_GROW &&
           s->nbytes == cuckoo_nbytes(cuckoo_bits(s));
}

/* ---------------------------------------------------------------- loads */

/* The whole part of the square root. */
static uint64_t cuckoo_root(uint64_t x)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= x)
            root |= bit;
    return root;
}

/* How many keys a table of nb buckets is planned for. The search below fills
 * large ones of 1, 2, 4, 8 slots a bucket to 0.50, 0.88, 0.97 and 0.99; most
 * is what is asked of them. In small ones the load at which they are full
 * varies with the square root of their slots, and a few keys may by chance
 * have but few buckets between them: mean, sigma and few leave room for that.
 * Short fingerprints lead to few buckets, which costs load. 2b keys always
 * fit: two buckets are room enough for any of them. In whole numbers, since
 * the tables of a chain follow from it and must be the same on every
 * machine. */
static uint64_t cuckoo_room(uint64_t nb, uint64_t b, uint64_t f)
{
    static const struct {
        unsigned most, mean; /* thousandths of the slots */
        unsigned sigma;      /* tenths of their root */
        unsigned few;
    } loads[] = {
        [1] = { 400, 500, 40, 2 },
        [2] = { 840, 885, 35, 4 },
        [4] = { 950, 977, 13, 4 },
        [8] = { 970, 990, 8, 4 },
    };
    const uint64_t nslots = nb * b;
    const unsigned most = f == 4 ? 900 : f == 5 ? 940 : 1000;
    const uint64_t large =
        nslots * (most < loads[b].most ? most : loads[b].most) / 1000;
    const uint64_t mean = nslots * loads[b].mean / 1000;
    const uint64_t less =
        cuckoo_root(nslots) * loads[b].sigma / 10 + loads[b].few;
    const uint64_t small = mean > less ? mean - less : 0;
    const uint64_t room = small < large ? small : large;
    return room > 2 * b ? room : 2 * b;
}

/* The least even number of buckets with room for n keys. */
static uint64_t cuckoo_buckets_for(uint64_t n, uint64_t b, uint64_t f)
{
    uint64_t low = 0, high = 1; /* pairs of buckets: too few, enough */
    while (cuckoo_room(2 * high, b, f) < n) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        if (cuckoo_room(2 * mid, b, f) < n)
            low = mid;
        else
            high = mid;
    }
    return 2 * high;
}

/* Fingerprints shorter than this spoil the load: bucket = 2 with 4 bits is
 * full at 0.43, and 1 with 8 bits sometimes at 0.16. For 4 and 8 slots shorter
 * ones are only used where they are asked for. */
static uint64_t cuckoo_least_bits(uint64_t b)
{
    return b == 1 ? 12 : b == 2 ? 8 : 6;
}

static bly_shape cuckoo_shape(uint64_t nb, uint64_t f, const bly_shape *like)
{
    bly_shape s = *like;
    s.p[CUCKOO_BUCKETS] = nb;
    s.p[CUCKOO_BITS] = f;
    s.nbytes = cuckoo_nbytes(cuckoo_bits(&s));
    return s;
}

/* The rate of one table with n keys. */
static double cuckoo_table_rate(const bly_shape *s, double n)
{
    const double cells = (double)s->p[CUCKOO_BUCKETS] *
                         (double)((UINT64_C(1) << s->p[CUCKOO_BITS]) - 1);
    return -expm1(n * log1p(-2 / cells));
}

static uint64_t cuckoo_shape_room(const bly_shape *s)
{
    return cuckoo_room(s->p[CUCKOO_BUCKETS], s->p[CUCKOO_SLOTS],
                       s->p[CUCKOO_BITS]);
}

/* The shape of layer i, from 0, of a filter that grows: s^(i+1) times the room
 * of its first table and i + 1 bits more in a fingerprint. False where there
 * is none so large. */
static bool cuckoo_layer_shape(const bly_shape *root, uint32_t i,
                               bly_shape *out)
{
    const uint64_t b = root->p[CUCKOO_SLOTS];
    uint64_t n = cuckoo_shape_room(root), f = root->p[CUCKOO_BITS];
    for (uint32_t j = 0; j <= i; j++) {
        n *= root->p[CUCKOO_GROW];
        f += f < CUCKOO_MAX_BITS;
        if (n > CUCKOO_MAX_BUCKETS)
            return false;
    }
    bly_shape like = *root;
    like.p[CUCKOO_GROW] = 0;
    *out = cuckoo_shape(cuckoo_buckets_for(n, b, f), f, &like);
    return cuckoo_sane(out);
}

static double cuckoo_rate(const bly_shape *s, double n)
{
    if (!s->p[CUCKOO_GROW])
        return cuckoo_table_rate(s, n);
    double none = 1, left = n;
    bly_shape table = *s;
    for (uint32_t i = 0;; i++) {
        const double room = (double)cuckoo_shape_room(&table);
        bly_shape next;
        const bool last = left <= room || i == BLY_MAX_LAYERS ||
                          !cuckoo_layer_shape(s, i, &next);
        none *= 1 - cuckoo_table_rate(&table, last ? left : room);
        if (last)
            return 1 - none;
        left -= room;
        table = next;
    }
}

static bly_status cuckoo_check_options(const bly_want *w)
{
    const uint64_t b = w->opt[CUCKOO_SLOTS], f = w->opt[CUCKOO_BITS];
    if (!cuckoo_slots_ok(b))
        return bly_fail(BLY_EINVAL, "a bucket has 1, 2, 4 or 8 slots, not %llu",
                        (unsigned long long)b);
    if (w->opt[CUCKOO_SEMISORT] && b != 4)
        return bly_fail(BLY_EINVAL, "semi-sorting needs buckets of 4 slots");
    if (w->bits > CUCKOO_MAX_MEMORY)
        return bly_fail(BLY_ERANGE, "a cuckoo filter has at most 2^48 bits");
    if (f && b < 4 && f < cuckoo_least_bits(b))
        return bly_fail(BLY_EINVAL,
                        "buckets of %llu need fingerprints of at least %llu "
                        "bits: shorter ones lead to too few buckets",
                        (unsigned long long)b,
                        (unsigned long long)cuckoo_least_bits(b));
    return BLY_OK;
}

/* The number of buckets for w with fingerprints of f bits; 0: none will do. */
static uint64_t cuckoo_fit(const bly_want *w, uint64_t f)
{
    const uint64_t b = w->opt[CUCKOO_SLOTS];
    const uint64_t least = cuckoo_buckets_for(w->items, b, f);
    uint64_t nb = least;
    if (w->bits) {
        nb = w->bits / cuckoo_width(b, f, w->opt[CUCKOO_SEMISORT]) / 2 * 2;
        nb = nb < CUCKOO_MAX_BUCKETS ? nb : CUCKOO_MAX_BUCKETS;
        if (!cuckoo_hash_lasts(nb, f)) /* the rest is left unused */
            nb = UINT64_C(1) << (64 - f);
    } else {
        /* 2 n / (nb F) = -ln(1 - p), to which the rate comes close. The first
         * of a chain keeps half the rate, as the others have the rest. */
        const double p = w->opt[CUCKOO_GROW] ? w->fpr / 2 : w->fpr;
        const double cells = (double)((UINT64_C(1) << f) - 1);
        const double want = 2 * (double)w->items / (cells * -log1p(-p));
        if (want > (double)CUCKOO_MAX_BUCKETS)
            return 0;
        if (want > (double)nb)
            nb = ((uint64_t)ceil(want) + 2) / 2 * 2;
    }
    return nb >= least && nb <= CUCKOO_MAX_BUCKETS && cuckoo_hash_lasts(nb, f)
               ? nb
               : 0;
}

static bly_status cuckoo_plan(const bly_want *w, bly_shape *out)
{
    const bly_status st = cuckoo_check_options(w);
    if (st)
        return st;
    const uint64_t only = w->opt[CUCKOO_BITS];
    const uint64_t from = only ? only : cuckoo_least_bits(w->opt[CUCKOO_SLOTS]);
    const uint64_t to = only ? only : CUCKOO_MAX_BITS;
    bly_shape like = { 0 };
    like.p[CUCKOO_SLOTS] = w->opt[CUCKOO_SLOTS];
    like.p[CUCKOO_SEMISORT] = w->opt[CUCKOO_SEMISORT];
    like.p[CUCKOO_UNIQUE] = w->opt[CUCKOO_UNIQUE];
    like.p[CUCKOO_GROW] = w->opt[CUCKOO_GROW];

    double best = INFINITY; /* bits where the rate is given, else the rate */
    for (uint64_t f = from; f <= to; f++) {
        const uint64_t nb = cuckoo_fit(w, f);
        if (!nb)
            continue;
        const bly_shape s = cuckoo_shape(nb, f, &like);
        const double cost = w->bits ? cuckoo_table_rate(&s, (double)w->items)
                                    : (double)cuckoo_bits(&s);
        if (cost < best) {
            best = cost;
            *out = s;
        }
    }
    if (best < INFINITY)
        return BLY_OK;
    if (w->bits)
        return bly_fail(BLY_EINVAL,
                        "%llu bits are too few for %llu fingerprints of %llu "
                        "bits or more",
                        (unsigned long long)w->bits,
                        (unsigned long long)w->items, (unsigned long long)from);
    return bly_fail(BLY_ERANGE,
                    "a cuckoo filter has fingerprints of at most 32 bits and "
                    "2^40 buckets, and takes both from 64 bits: ask for fewer "
                    "items or a higher rate");
}

static void cuckoo_describe(const bly_shape *s, const bly_want *w,
                            const bly_filter *f, bly_facts *out)
{
    const double nslots = (double)(s->p[CUCKOO_BUCKETS] * s->p[CUCKOO_SLOTS]);
    const double n = (double)(w ? w->items : f->items);
    bly_fact_real(out, "load_at_capacity", n / nslots);
    bly_fact_uint(out, "room", cuckoo_shape_room(s));
    if (s->p[CUCKOO_GROW]) /* p/2 + p/4 + ... */
        bly_fact_real(out, "fpr_bound",
                      2 * cuckoo_table_rate(s, (double)cuckoo_shape_room(s)));
}

/* ---------------------------------------------------------------- buckets */

/* What the loops need of a table. A bucket is read as nwords words of a few
 * whole slots each; ones has the lowest bit of each of these slots set, and
 * highs the highest. */
typedef struct cuckoo_table {
    unsigned char *data;
    uint64_t nb, nprints; /* 2^f - 1 */
    uint64_t ones, highs;
    unsigned b, f;
    unsigned width;     /* bits of a bucket */
    unsigned word_bits; /* bits of a word's slots */
    unsigned nwords;    /* words of a bucket */
    bool sorted;
} cuckoo_table;

/* Do n slots of f bits, at any multiple of their bits, lie in the 8 bytes that
 * begin with the byte of their first bit? */
static bool cuckoo_one_word(unsigned n, unsigned f)
{
    const unsigned bits = n * f, odd = bits & (0u - bits);
    return bits + 8 - (odd < 8 ? odd : 8) <= 64;
}

static cuckoo_table cuckoo_table_of(const bly_filter *f)
{
    const uint64_t *p = f->shape.p;
    cuckoo_table t = {
        .data = f->data,
        .nb = p[CUCKOO_BUCKETS],
        .nprints = (UINT64_C(1) << p[CUCKOO_BITS]) - 1,
        .b = (unsigned)p[CUCKOO_SLOTS],
        .f = (unsigned)p[CUCKOO_BITS],
        .width = (unsigned)cuckoo_width(p[CUCKOO_SLOTS], p[CUCKOO_BITS],
                                        p[CUCKOO_SEMISORT]),
        .sorted = p[CUCKOO_SEMISORT] != 0,
    };
    unsigned n = t.b;
    while (!cuckoo_one_word(n, t.f))
        n /= 2;
    t.nwords = t.b / n;
    t.word_bits = n * t.f;
    for (unsigned j = 0; j < n; j++)
        t.ones |= UINT64_C(1) << j * t.f;
    t.highs = t.ones << (t.f - 1);
    return t;
}

static inline uint64_t cuckoo_load(const unsigned char *data, uint64_t bit)
{
    uint64_t word;
    memcpy(&word, data + (bit >> 3), sizeof word);
    return bly_le64(word) >> (bit & 7);
}

/* Bits `bit` to `bit + n - 1`; n at most 57. */
static inline void cuckoo_store(unsigned char *data, uint64_t bit, unsigned n,
                                uint64_t value)
{
    const uint64_t mask = ((UINT64_C(1) << n) - 1) << (bit & 7);
    uint64_t word;
    memcpy(&word, data + (bit >> 3), sizeof word);
    word = bly_le64((bly_le64(word) & ~mask) | value << (bit & 7));
    memcpy(data + (bit >> 3), &word, sizeof word);
}

/* Four sorted nibbles by their code, the largest lowest; codes from 3876 on,
 * which only a damaged table has, are four zeros. Every filter makes sure of
 * it when it is opened. */
#define CUCKOO_CODES 3876
static uint16_t cuckoo_nibbles[4096];
static pthread_once_t cuckoo_nibbles_once = PTHREAD_ONCE_INIT;

/* The multisets a >= b >= c >= d in order: those before this one are counted
 * by the combinatorial number system. */
static inline unsigned cuckoo_code(unsigned a, unsigned b, unsigned c,
                                   unsigned d)
{
    return (a + 3) * (a + 2) * (a + 1) * a / 24 + (b + 2) * (b + 1) * b / 6 +
           (c + 1) * c / 2 + d;
}

static void cuckoo_nibbles_fill(void)
{
    for (unsigned a = 0; a < 16; a++)
        for (unsigned b = 0; b <= a; b++)
            for (unsigned c = 0; c <= b; c++)
                for (unsigned d = 0; d <= c; d++)
                    cuckoo_nibbles[cuckoo_code(a, b, c, d)] =
                        (uint16_t)(a | b << 4 | c << 8 | d << 12);
}

static bly_status cuckoo_open(bly_filter *f)
{
    (void)f;
    pthread_once(&cuckoo_nibbles_once, cuckoo_nibbles_fill);
    return BLY_OK;
}

static inline void cuckoo_read_sorted(const cuckoo_table *t, uint64_t i,
                                      uint32_t *s)
{
    const uint64_t bit = i * t->width;
    const unsigned high = t->f - 4;
    const uint64_t mask = (UINT64_C(1) << high) - 1;
    uint64_t w = cuckoo_load(t->data, bit);
    const unsigned low = cuckoo_nibbles[w & 0xfff];
    if (t->width <= 60) { /* a multiple of 4: one word holds it */
        w >>= 12;
        for (unsigned j = 0; j < 4; j++, w >>= high)
            s[j] = (uint32_t)((w & mask) << 4 | (low >> 4 * j & 15));
        return;
    }
    for (unsigned j = 0; j < 4; j++)
        s[j] =
            (uint32_t)((cuckoo_load(t->data, bit + 12 + j * high) & mask) << 4 |
                       (low >> 4 * j & 15));
}

/* Largest low nibble first, then largest of the rest: one order for any four
 * fingerprints. */
static inline uint32_t cuckoo_rank(uint32_t fp)
{
    return fp << 28 | fp >> 4;
}

static void cuckoo_write_sorted(const cuckoo_table *t, uint64_t i,
                                const uint32_t *from)
{
    const unsigned high = t->f - 4;
    uint64_t bit = i * t->width;
    uint32_t s[4];
    for (unsigned j = 0; j < 4; j++) {
        unsigned at = j;
        for (; at && cuckoo_rank(s[at - 1]) < cuckoo_rank(from[j]); at--)
            s[at] = s[at - 1];
        s[at] = from[j];
    }
    cuckoo_store(t->data, bit, 12,
                 cuckoo_code(s[0] & 15, s[1] & 15, s[2] & 15, s[3] & 15));
    bit += 12;
    if (high)
        for (unsigned j = 0; j < 4; j++, bit += high)
            cuckoo_store(t->data, bit, high, s[j] >> 4);
}

static inline void cuckoo_read(const cuckoo_table *t, uint64_t i, uint32_t *s)
{
    if (t->sorted) {
        cuckoo_read_sorted(t, i, s);
        return;
    }
    uint64_t bit = i * t->width;
    for (unsigned j = 0; j < t->b; j++, bit += t->f)
        s[j] = (uint32_t)(cuckoo_load(t->data, bit) & t->nprints);
}

/* Put fp into slot j, as cuckoo_read() numbers them. */
static inline void cuckoo_replace(const cuckoo_table *t, uint64_t i, unsigned j,
                                  uint32_t fp)
{
    if (t->sorted) {
        uint32_t s[4];
        cuckoo_read_sorted(t, i, s);
        s[j] = fp;
        cuckoo_write_sorted(t, i, s);
    } else {
        cuckoo_store(t->data, i * t->width + j * t->f, t->f, fp);
    }
}

/* Where bucket i has fp: the bit of the slot, or the slot if it is sorted,
 * plus 1; 0: nowhere. fp may be 0, an empty slot.
 *
 * A slot of x is zero where w has fp. Taking 1 from it borrows, which sets its
 * highest bit; a slot above may borrow falsely, but never the lowest match. */
static inline __attribute__((always_inline)) uint64_t
cuckoo_find(const cuckoo_table *t, uint64_t i, uint32_t fp, bool sorted,
            bool single)
{
    if (sorted) {
        uint32_t s[4];
        cuckoo_read_sorted(t, i, s);
        for (unsigned j = 0; j < 4; j++)
            if (s[j] == fp)
                return j + 1;
        return 0;
    }
    uint64_t bit = i * t->width;
    const unsigned nwords = single ? 1 : t->nwords;
    for (unsigned w = 0; w < nwords; w++, bit += t->word_bits) {
        const uint64_t x = cuckoo_load(t->data, bit) ^ fp * t->ones;
        const uint64_t hit = (x - t->ones) & ~x & t->highs;
        if (hit)
            return bit + (unsigned)__builtin_ctzll(hit) - t->f + 2;
    }
    return 0;
}

/* Whether bucket i has fp. Without a branch: which bucket it is in is a coin
 * flip. */
static inline __attribute__((always_inline)) bool
cuckoo_match(const cuckoo_table *t, uint64_t i, uint32_t fp, bool sorted,
             bool single)
{
    if (sorted) {
        uint32_t s[4];
        cuckoo_read_sorted(t, i, s);
        return (int)(s[0] == fp) | (int)(s[1] == fp) | (int)(s[2] == fp) |
               (int)(s[3] == fp);
    }
    uint64_t bit = i * t->width, hits = 0;
    const unsigned nwords = single ? 1 : t->nwords;
    for (unsigned w = 0; w < nwords; w++, bit += t->word_bits) {
        const uint64_t x = cuckoo_load(t->data, bit) ^ fp * t->ones;
        hits |= (x - t->ones) & ~x & t->highs;
    }
    return hits != 0;
}

/* Replace one `old` in bucket i, if there is one. */
static inline bool cuckoo_exchange(const cuckoo_table *t, uint64_t i,
                                   uint32_t old, uint32_t fp)
{
    const uint64_t at = cuckoo_find(t, i, old, t->sorted, t->nwords == 1);
    if (!at)
        return false;
    if (t->sorted)
        cuckoo_replace(t, i, (unsigned)at - 1, fp);
    else
        cuckoo_store(t->data, at - 1, t->f, fp);
    return true;
}

/* ------------------------------------------------------------------- keys */

typedef struct cuckoo_key {
    uint64_t i1, i2;
    uint32_t fp;
} cuckoo_key;

static inline uint64_t cuckoo_other(const cuckoo_table *t, uint64_t i,
                                    uint32_t fp)
{
    const uint64_t sum = 1 + 2 * bly_scale(bly_mix64(fp), t->nb / 2);
    return sum >= i ? sum - i : sum + t->nb - i;
}

/* The bucket comes from the top bits of the hash; the product brings the low
 * ones up for the fingerprint. */
static inline cuckoo_key cuckoo_locate(const cuckoo_table *t, uint64_t h)
{
    const uint64_t g = h * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    cuckoo_key key = { .i1 = bly_scale(h, t->nb),
                       .fp = (uint32_t)(1 + (g * t->nprints >> 32)) };
    key.i2 = cuckoo_other(t, key.i1, key.fp);
    return key;
}

static inline const unsigned char *cuckoo_at(const cuckoo_table *t, uint64_t i)
{
    return t->data + (i * t->width >> 3);
}

/* Keys are located once and wait in a ring, while their buckets come: into L2
 * early, for which a processor has many slots, and into L1 shortly before use,
 * for which it has few. */
#define CUCKOO_RING 128
#define CUCKOO_FAR 96
#define CUCKOO_NEAR 10
#define CUCKOO_CACHED (256 << 10) /* gains nothing from that: fits any L2 */

typedef struct cuckoo_stream {
    const uint64_t *h;
    size_t n;
    bool ahead;
    cuckoo_key ring[CUCKOO_RING];
} cuckoo_stream;

static inline void cuckoo_enter(cuckoo_stream *q, const cuckoo_table *t,
                                size_t i)
{
    const cuckoo_key key = cuckoo_locate(t, q->h[i]);
    q->ring[i % CUCKOO_RING] = key;
    if (q->ahead) {
        __builtin_prefetch(cuckoo_at(t, key.i1), 0, 2);
        __builtin_prefetch(cuckoo_at(t, key.i2), 0, 2);
    }
}

static inline void cuckoo_stream_open(cuckoo_stream *q, const cuckoo_table *t,
                                      const uint64_t *h, size_t n,
                                      uint64_t nbytes)
{
    q->h = h;
    q->n = n;
    q->ahead = nbytes > CUCKOO_CACHED;
    for (size_t i = 0; i < n && i < CUCKOO_FAR; i++)
        cuckoo_enter(q, t, i);
}

/* Key number i; to be asked for one after another. */
static inline cuckoo_key cuckoo_next(cuckoo_stream *q, const cuckoo_table *t,
                                     size_t i)
{
    if (i + CUCKOO_FAR < q->n)
        cuckoo_enter(q, t, i + CUCKOO_FAR);
    if (q->ahead && i + CUCKOO_NEAR < q->n) {
        const cuckoo_key *near = &q->ring[(i + CUCKOO_NEAR) % CUCKOO_RING];
        __builtin_prefetch(cuckoo_at(t, near->i1));
        __builtin_prefetch(cuckoo_at(t, near->i2));
    }
    return q->ring[i % CUCKOO_RING];
}

/* Both buckets in any case: a branch that is taken by half of the keys costs
 * more than a word that is there already. */
static inline __attribute__((always_inline)) bool
cuckoo_has_key(const cuckoo_table *t, cuckoo_key key, bool sorted, bool single)
{
    const bool in1 = cuckoo_match(t, key.i1, key.fp, sorted, single);
    const bool in2 = cuckoo_match(t, key.i2, key.fp, sorted, single);
    return (int)in1 | (int)in2;
}

static inline __attribute__((always_inline)) void
cuckoo_has_body(const bly_filter *f, const uint64_t *h, size_t n,
                uint64_t *maybe, bool sorted, bool single)
{
    const cuckoo_table t = cuckoo_table_of(f);
    cuckoo_stream q;
    cuckoo_stream_open(&q, &t, h, n, f->shape.nbytes);
    for (size_t from = 0; from < n; from += 64) {
        const size_t to = n - from < 64 ? n : from + 64;
        uint64_t bits = 0;
        for (size_t i = from; i < to; i++)
            bits |= (uint64_t)cuckoo_has_key(&t, cuckoo_next(&q, &t, i), sorted,
                                             single)
                    << (i - from);
        maybe[from / 64] |= bits;
    }
}

static void cuckoo_has(const bly_filter *f, const uint64_t *h, size_t n,
                       uint64_t *maybe)
{
    if (f->shape.p[CUCKOO_SEMISORT])
        cuckoo_has_body(f, h, n, maybe, true, true);
    else if (cuckoo_table_of(f).nwords == 1)
        cuckoo_has_body(f, h, n, maybe, false, true);
    else
        cuckoo_has_body(f, h, n, maybe, false, false);
    for (uint32_t i = 0; i < f->nlayers; i++)
        cuckoo_has(f->layer[i], h, n, maybe);
}

static bool cuckoo_has_one(const bly_filter *f, uint64_t h)
{
    const cuckoo_table t = cuckoo_table_of(f);
    return cuckoo_has_key(&t, cuckoo_locate(&t, h), t.sorted, t.nwords == 1);
}

/* ----------------------------------------------------------------- adding */

/* Buckets looked at before a table is full. 500 fill a large table of four
 * slots a bucket to 0.96, 2000 to 0.97, and no number to more than 0.98. */
#define CUCKOO_SEARCH 2000

typedef struct cuckoo_step {
    uint64_t bucket;
    uint32_t parent; /* the step that led here */
    uint32_t slot;   /* by which of its slots */
} cuckoo_step;

/* Move everyone on the way to step `at`, which has room, one step on, and put
 * fp where the first of them was. Steps 0 and 1 are the two buckets of fp. */
static void cuckoo_move(const cuckoo_table *t, const cuckoo_step *way,
                        uint32_t at, uint32_t fp)
{
    uint32_t s[CUCKOO_MAX_SLOTS];
    bool first = true;
    unsigned slot = 0;
    while (at >= 2) {
        const cuckoo_step *step = &way[at];
        cuckoo_read(t, way[step->parent].bucket, s);
        if (first)
            cuckoo_exchange(t, step->bucket, 0, s[step->slot]);
        else
            cuckoo_replace(t, step->bucket, slot, s[step->slot]);
        first = false;
        slot = step->slot;
        at = step->parent;
    }
    cuckoo_replace(t, way[at].bucket, slot, fp);
}

/* Both buckets of key are full: make room. False, and nothing has changed,
 * where there is none. */
static bool cuckoo_make_room(const cuckoo_table *t, cuckoo_key key)
{
    cuckoo_step way[CUCKOO_SEARCH];
    uint32_t n = 2;
    way[0] = (cuckoo_step){ key.i1, 0, 0 };
    way[1] = (cuckoo_step){ key.i2, 0, 0 };
    for (uint32_t at = 0; at < n; at++) {
        uint32_t s[CUCKOO_MAX_SLOTS];
        cuckoo_read(t, way[at].bucket, s);
        for (uint32_t j = 0; j < t->b; j++) {
            if (!s[j]) {
                cuckoo_move(t, way, at, key.fp);
                return true;
            }
        }
        for (uint32_t j = 0; j < t->b && n < CUCKOO_SEARCH; j++) {
            const uint64_t to = cuckoo_other(t, way[at].bucket, s[j]);
            __builtin_prefetch(cuckoo_at(t, to));
            way[n++] = (cuckoo_step){ to, at, j };
        }
    }
    return false;
}

/* Are both buckets full of this one fingerprint? */
static bool cuckoo_all_copies(const cuckoo_table *t, cuckoo_key key)
{
    uint32_t s[2 * CUCKOO_MAX_SLOTS];
    cuckoo_read(t, key.i1, s);
    cuckoo_read(t, key.i2, s + t->b);
    for (unsigned j = 0; j < 2 * t->b; j++)
        if (s[j] != key.fp)
            return false;
    return true;
}

static inline bool cuckoo_place(const cuckoo_table *t, cuckoo_key key)
{
    return cuckoo_exchange(t, key.i1, 0, key.fp) ||
           cuckoo_exchange(t, key.i2, 0, key.fp) || cuckoo_make_room(t, key);
}

typedef enum cuckoo_stop {
    CUCKOO_DONE,
    CUCKOO_NO_ROOM,
    CUCKOO_TOO_MANY_COPIES
} cuckoo_stop;

/* Add keys to `table`, which is f or one of its layers, until one fails. */
static cuckoo_stop cuckoo_fill(bly_filter *f, bly_filter *table,
                               const uint64_t *h, size_t n, size_t from,
                               uint64_t *fresh, size_t *ndone)
{
    const cuckoo_table t = cuckoo_table_of(table);
    const bool unique = f->shape.p[CUCKOO_UNIQUE] != 0;
    cuckoo_stream q;
    uint64_t nstored = 0;
    cuckoo_stop stop = CUCKOO_DONE;
    size_t i = 0;
    cuckoo_stream_open(&q, &t, h + from, n, table->shape.nbytes);
    for (; i < n; i++) {
        const cuckoo_key key = cuckoo_next(&q, &t, i);
        bool known = false;
        if (fresh || unique) {
            known = cuckoo_has_key(&t, key, t.sorted, t.nwords == 1);
            if (!known && f != table)
                known = cuckoo_has_one(f, q.h[i]);
            for (uint32_t l = 0; l < f->nlayers && !known; l++)
                if (f->layer[l] != table)
                    known = cuckoo_has_one(f->layer[l], q.h[i]);
        }
        if (!(known && unique)) {
            if (!cuckoo_place(&t, key)) {
                stop = cuckoo_all_copies(&t, key) ? CUCKOO_TOO_MANY_COPIES
                                                  : CUCKOO_NO_ROOM;
                break;
            }
            nstored++;
        }
        if (fresh && !known)
            fresh[(from + i) / 64] |= UINT64_C(1) << (from + i) % 64;
    }
    table->state[0] += nstored;
    if (table != f)
        bly_filter_added(table, nstored);
    bly_filter_added(f, nstored);
    *ndone = from + i;
    return stop;
}

/* One table more. */
static bly_status cuckoo_grow(bly_filter *f)
{
    bly_shape s;
    bly_filter *layer;
    bly_setting set = bly_setting_of(f);
    if (f->nlayers == BLY_MAX_LAYERS ||
        !cuckoo_layer_shape(&f->shape, f->nlayers, &s))
        return bly_fail(BLY_EFULL, "the filter is full, and cannot grow any "
                                   "more");
    if (f->max_bytes &&
        bly_filter_bytes(f) + sizeof *f + s.nbytes > f->max_bytes)
        return bly_fail(BLY_EFULL,
                        "the filter is full, and growing would take it past "
                        "its limit of %llu bytes",
                        (unsigned long long)f->max_bytes);
    set.items = cuckoo_shape_room(&s);
    set.fpr = cuckoo_table_rate(&s, (double)set.items);
    const bly_status st = bly_filter_make(f->kind, &s, &set, &layer);
    return st ? st : bly_filter_push(f, layer);
}

static bly_filter *cuckoo_part(bly_filter *f, uint32_t i)
{
    return i ? f->layer[i - 1] : f;
}

static bly_status cuckoo_add(bly_filter *f, const uint64_t *h, size_t n,
                             uint64_t *fresh, size_t *ndone)
{
    const bool grows = f->shape.p[CUCKOO_GROW] != 0;
    bool skip = false; /* the tables before `part` refused the next key */
    uint32_t part = 0;
    *ndone = 0;
    while (*ndone < n) {
        size_t np = n - *ndone;
        if (grows) {
            /* The first table with room; removals may have made some. */
            uint64_t room = 0;
            for (part = skip ? part + 1 : 0; part <= f->nlayers; part++) {
                const bly_filter *t = cuckoo_part(f, part);
                const uint64_t all = cuckoo_shape_room(&t->shape);
                room = all > t->state[0] ? all - t->state[0] : 0;
                if (room)
                    break;
            }
            if (!room) {
                const bly_status st = cuckoo_grow(f);
                if (st)
                    return st;
                room = 1;
            }
            np = skip ? 1 : np < room ? np : (size_t)room;
        }
        const size_t before = *ndone;
        const cuckoo_stop stop =
            cuckoo_fill(f, cuckoo_part(f, part), h, np, before, fresh, ndone);
        if (stop == CUCKOO_TOO_MANY_COPIES)
            return bly_fail(BLY_EFULL,
                            "%u copies of a key are all that a cuckoo filter "
                            "holds: use option unique, or a kind that counts",
                            2 * (unsigned)f->shape.p[CUCKOO_SLOTS]);
        if (stop == CUCKOO_NO_ROOM && !grows)
            return bly_fail(BLY_EFULL,
                            "the filter is full with %llu fingerprints; it "
                            "was planned for %llu (build it larger, or with "
                            "option grow)",
                            (unsigned long long)f->state[0],
                            (unsigned long long)f->items);
        skip = stop == CUCKOO_NO_ROOM;
    }
    return BLY_OK;
}

static bool cuckoo_take(bly_filter *table, uint64_t h)
{
    const cuckoo_table t = cuckoo_table_of(table);
    const cuckoo_key key = cuckoo_locate(&t, h);
    if (!cuckoo_exchange(&t, key.i1, key.fp, 0) &&
        !cuckoo_exchange(&t, key.i2, key.fp, 0))
        return false;
    table->state[0]--;
    return true;
}

/* A copy that stands for all keys of its fingerprint cannot be taken out. */
static void cuckoo_refuse(const bly_filter *f, const uint64_t *h, size_t n,
                          bly_status *each)
{
    for (size_t i = 0; i < n; i++) {
        bool in = cuckoo_has_one(f, h[i]);
        for (uint32_t l = 0; l < f->nlayers && !in; l++)
            in = cuckoo_has_one(f->layer[l], h[i]);
        each[i] = in ? BLY_EREFUSED : BLY_EABSENT;
    }
}

static void cuckoo_remove(bly_filter *f, const uint64_t *h, size_t n,
                          bly_status *each)
{
    const cuckoo_table t = cuckoo_table_of(f);
    cuckoo_stream q;
    if (f->shape.p[CUCKOO_UNIQUE]) {
        cuckoo_refuse(f, h, n, each);
        return;
    }
    cuckoo_stream_open(&q, &t, h, n, f->shape.nbytes);
    for (size_t i = 0; i < n; i++) {
        const cuckoo_key key = cuckoo_next(&q, &t, i);
        bool taken = cuckoo_exchange(&t, key.i1, key.fp, 0) ||
                     cuckoo_exchange(&t, key.i2, key.fp, 0);
        f->state[0] -= taken;
        for (uint32_t l = 0; l < f->nlayers && !taken; l++)
            taken = cuckoo_take(f->layer[l], h[i]);
        each[i] = taken ? BLY_OK : BLY_EABSENT;
    }
}

/* ---------------------------------------------------------------- knowing */

static uint64_t cuckoo_nslots(const bly_filter *f)
{
    return f->shape.p[CUCKOO_BUCKETS] * f->shape.p[CUCKOO_SLOTS];
}

static bool cuckoo_sound(const bly_filter *f)
{
    for (int i = 1; i < BLY_STATE_WORDS; i++)
        if (f->state[i])
            return false;
    if (f->nlayers && !f->shape.p[CUCKOO_GROW])
        return false;
    for (uint32_t i = 0; i < f->nlayers; i++) {
        const bly_filter *layer = f->layer[i];
        bly_shape s;
        if (layer->kind != f->kind || !cuckoo_layer_shape(&f->shape, i, &s) ||
            memcmp(layer->shape.p, s.p, sizeof s.p) != 0)
            return false;
    }
    return f->state[0] <= cuckoo_nslots(f);
}

/* As many fingerprints as the state says, buckets in the one order that is
 * written, and nothing behind the last. */
static bool cuckoo_check(const bly_filter *f)
{
    const cuckoo_table t = cuckoo_table_of(f);
    uint64_t nstored = 0;
    pthread_once(&cuckoo_nibbles_once, cuckoo_nibbles_fill);
    for (uint64_t i = 0; i < t.nb; i++) {
        uint32_t s[CUCKOO_MAX_SLOTS];
        cuckoo_read(&t, i, s);
        for (unsigned j = 0; j < t.b; j++)
            nstored += s[j] != 0;
        if (!t.sorted)
            continue;
        if ((cuckoo_load(t.data, i * t.width) & 0xfff) >= CUCKOO_CODES)
            return false;
        for (unsigned j = 1; j < 4; j++)
            if (cuckoo_rank(s[j - 1]) < cuckoo_rank(s[j]))
                return false;
    }
    return nstored == f->state[0] &&
           bly_bits_tail_clear((const uint64_t *)(const void *)f->data,
                               cuckoo_bits(&f->shape),
                               (size_t)(f->shape.nbytes / 8));
}

/* The keys of one table: a fingerprint each; or, where copies are not stored,
 * those of which this many of its cells (pair of buckets, fingerprint) tell. */
static double cuckoo_keys(const bly_filter *f)
{
    const double n = (double)f->state[0];
    const double cells = (double)f->shape.p[CUCKOO_BUCKETS] / 2 *
                         (double)((UINT64_C(1) << f->shape.p[CUCKOO_BITS]) - 1);
    return f->shape.p[CUCKOO_UNIQUE] && n < cells ? -cells * log1p(-n / cells)
                                                  : n;
}

static void cuckoo_stat(const bly_filter *f, bly_stats *out)
{
    double nkeys = 0, nstored = 0, nslots = 0, none = 1;
    for (uint32_t i = 0; i <= f->nlayers; i++) {
        const bly_filter *t = i ? f->layer[i - 1] : f;
        nkeys += cuckoo_keys(t);
        nstored += (double)t->state[0];
        nslots += (double)cuckoo_nslots(t);
        none *= 1 - cuckoo_table_rate(&t->shape, (double)t->state[0]);
    }
    out->items_estimate = nkeys;
    out->items_sd = sqrt(fmax(0, nkeys - nstored));
    out->fill = nstored / nslots;
    out->fpr_now = 1 - none;
}

const bly_kind bly_kind_cuckoo = {
    .id = 8, /* on disk: never changed, never reused */
    .name = "cuckoo",
    .summary = "fingerprints in two possible buckets; few bits, and removal",
    .params = cuckoo_params,
    .nparams = sizeof cuckoo_params / sizeof cuckoo_params[0],
    .plan = cuckoo_plan,
    .sane = cuckoo_sane,
    .rate = cuckoo_rate,
    .bits = cuckoo_bits,
    .describe = cuckoo_describe,
    .sound = cuckoo_sound,
    .check = cuckoo_check,
    .open = cuckoo_open,
    .stat = cuckoo_stat,
    .add = cuckoo_add,
    .has = cuckoo_has,
    .remove = cuckoo_remove,
};
