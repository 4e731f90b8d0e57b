/*
 * hll.c - bly_hll: a HyperLogLog sketch that is small while it knows little
 *
 * hyperloglog.c has the idea and the estimate. A sketch begins sparse, as a set
 * of entries, and becomes dense when those would take more than registers:
 *
 *     sparse   entry = | 26 bits of the hash | run of zeros + 1: 6 bits |
 *              in a table of 16 places, and twice as many when 3/4 are taken
 *     dense    2^p registers of 6 bits, without gaps: 12 KiB at p = 14
 *
 * An entry tells the register of every p up to 18, and its value: the first p
 * of its bits are the number of the register, the others begin the run. So
 * nothing is lost on the way from sparse to dense, and two sketches that have
 * seen the same hashes are equal, in whatever order and by whatever merges: of
 * entries with the same 26 bits the longest run stays, and how many different
 * ones there were decides the form.
 *
 * A sparse sketch is nearly exact, as if there were 2^26 bits that are set or
 * not: n keys hit 2^26 (1 - e^(-n/2^26)) of them, and of 1536, the most at p =
 * 14, two fall on one place once in 57 sketches.
 *
 * As bytes: "blyhll" 0 1, p and seven zeros, registers of a byte each, and the
 * XXH3 of all that as a little-endian word. Sparse: "blyhll" 0 2, and entries
 * of 4 bytes, ascending, in place of the registers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/status.h"
#include "sketch/hll.h"

#define HLL_DEFAULT_PRECISION 14
#define HLL_SLACK 1 /* a register is read with the byte behind it */
#define HLL_SINCE                                              \
    16 /* hashes per register, before the floor is found again \
        */
#define SPARSE_FIRST 16u
#define SPARSE_REST (64 - BLY_SPARSE_BITS)
#define SPARSE_MAX_VALUE (SPARSE_REST + 1)
#define SPARSE_MASK ((1u << BLY_SPARSE_VALUE_BITS) - 1)

/* ------------------------------------------------------- packed registers */

static inline unsigned register_get(const unsigned char *registers, size_t i)
{
    const size_t bit = 6 * i;
    return bly_load16(registers + bit / 8) >> bit % 8 & 63;
}

/* Let register i be at least value. */
static inline void register_raise(unsigned char *registers, size_t i,
                                  unsigned value)
{
    const size_t bit = 6 * i;
    unsigned char *const at = registers + bit / 8;
    const unsigned both = bly_load16(at), shift = bit % 8;
    if ((both >> shift & 63) < value)
        bly_store16(at, (uint16_t)((both & ~(63u << shift)) | value << shift));
}

/* Where no register is below `floor`, a shorter run is not looked at. */
static inline __attribute__((always_inline)) void
registers_raise(unsigned char *registers, unsigned p, unsigned floor,
                const uint64_t *hashes, size_t n)
{
    /* The guard bit ends a run of zeros at 64 - p. */
    const uint64_t guard = UINT64_C(1) << (p - 1), most = UINT64_MAX >> floor;
    for (size_t i = 0; i < n; i++) {
        const uint64_t rest = hashes[i] << p;
        if (rest <= most)
            register_raise(registers, (size_t)(hashes[i] >> (64 - p)),
                           (unsigned)__builtin_clzll(rest | guard) + 1);
    }
}

static unsigned registers_floor(const unsigned char *registers, unsigned p)
{
    unsigned least = 63;
    for (size_t i = 0; i < (size_t)1 << p && least; i++) {
        const unsigned value = register_get(registers, i);
        least = value < least ? value : least;
    }
    return least;
}

static unsigned char *registers_new(const bly_mem *mem, unsigned p)
{
    return bly_mem_zalloc(mem, bly_hll_dense_bytes(p) + HLL_SLACK);
}

/* ---------------------------------------------------------------- entries */

static uint32_t entry_of(uint64_t hash)
{
    const uint64_t guard = UINT64_C(1) << (BLY_SPARSE_BITS - 1);
    const unsigned value =
        (unsigned)__builtin_clzll(hash << BLY_SPARSE_BITS | guard) + 1;
    return (uint32_t)(hash >> SPARSE_REST) << BLY_SPARSE_VALUE_BITS | value;
}

/* The register that an entry raises, of 2^p. */
static void entry_raise(unsigned char *registers, unsigned p, uint32_t entry)
{
    const unsigned rest = BLY_SPARSE_BITS - p;
    const uint32_t place = entry >> BLY_SPARSE_VALUE_BITS;
    const uint32_t low = place & ((UINT32_C(1) << rest) - 1);
    const unsigned value = low ? rest - (31u - (unsigned)__builtin_clz(low))
                               : rest + (entry & SPARSE_MASK);
    register_raise(registers, place >> rest, value);
}

/* The slot of an entry's place, or the free one where it would be. */
static inline uint32_t *slot_of(uint32_t *slots, uint32_t nslots,
                                uint32_t entry)
{
    const uint32_t place = entry >> BLY_SPARSE_VALUE_BITS;
    uint32_t at = (place * UINT32_C(0x9e3779b1)) & (nslots - 1);
    while (slots[at] && slots[at] >> BLY_SPARSE_VALUE_BITS != place)
        at = (at + 1) & (nslots - 1);
    return &slots[at];
}

static void slots_free(bly_hll *s)
{
    if (s->slots)
        bly_mem_release(&s->mem, s->slots, s->nslots * sizeof *s->slots);
    s->slots = NULL;
    s->nslots = s->count = 0;
}

static bly_status become_dense(bly_hll *s)
{
    unsigned char *const registers = registers_new(&s->mem, s->p);
    if (!registers)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->slots[i])
            entry_raise(registers, s->p, s->slots[i]);
    slots_free(s);
    s->registers = registers;
    return BLY_OK;
}

/* Room for one entry more, sparse or dense. */
static bly_status hll_make_room(bly_hll *s)
{
    if (s->count >= bly_sparse_limit(s->p))
        return become_dense(s);
    if (s->nslots && s->count < s->nslots / 4 * 3)
        return BLY_OK;
    const uint32_t nslots = s->nslots ? 2 * s->nslots : SPARSE_FIRST;
    uint32_t *const slots = bly_mem_zalloc(&s->mem, nslots * sizeof *slots);
    if (!slots)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->slots[i])
            *slot_of(slots, nslots, s->slots[i]) = s->slots[i];
    const uint32_t count = s->count;
    slots_free(s);
    s->slots = slots;
    s->nslots = nslots;
    s->count = count;
    return BLY_OK;
}

/* Add an entry to a sketch of either form. */
static bly_status entry_add(bly_hll *s, uint32_t entry)
{
    uint32_t *at = s->nslots ? slot_of(s->slots, s->nslots, entry) : NULL;
    if (!s->registers && !(at && *at)) {
        const uint32_t nslots = s->nslots;
        const bly_status st = hll_make_room(s);
        if (st)
            return st;
        if (!s->registers && s->nslots != nslots)
            at = slot_of(s->slots, s->nslots, entry);
    }
    if (s->registers) {
        entry_raise(s->registers, s->p, entry);
        return BLY_OK;
    }
    s->count += !*at;
    if (*at < entry) /* of the same place: the longer run */
        *at = entry;
    return BLY_OK;
}

/* ----------------------------------------------------------------- making */

bly_status bly_hll_new(unsigned precision, const bly_mem *mem, bly_hll **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    const unsigned p = precision ? precision : HLL_DEFAULT_PRECISION;
    if (p < BLY_REGISTERS_MIN_BITS || p > BLY_REGISTERS_MAX_BITS)
        return bly_fail(BLY_EINVAL, "precision is from %d to %d, not %u",
                        BLY_REGISTERS_MIN_BITS, BLY_REGISTERS_MAX_BITS, p);
    if (!mem)
        mem = &bly_mem_system;
    bly_hll *const s = bly_mem_zalloc(mem, sizeof *s);
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    s->mem = *mem;
    s->p = p;
    s->origin = bly_origin_of(0, NULL);
    *out = s;
    return BLY_OK;
}

void bly_hll_free(bly_hll *s)
{
    if (!s)
        return;
    slots_free(s);
    if (s->registers)
        bly_mem_release(&s->mem, s->registers,
                        bly_hll_dense_bytes(s->p) + HLL_SLACK);
    bly_origin_forget(&s->origin);
    const bly_mem mem = s->mem;
    bly_mem_release(&mem, s, sizeof *s);
}

bly_status bly_hll_copy(const bly_hll *s, bly_hll **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!s)
        return bly_fail_null("s");
    const size_t nslots = s->nslots * sizeof *s->slots;
    const size_t nregisters = bly_hll_dense_bytes(s->p) + HLL_SLACK;
    bly_hll *const copy = bly_mem_zalloc(&s->mem, sizeof *copy);
    if (!copy)
        return bly_fail(BLY_ENOMEM, "out of memory");
    *copy = *s;
    copy->slots = s->slots ? bly_mem_zalloc(&s->mem, nslots) : NULL;
    copy->registers = s->registers ? bly_mem_zalloc(&s->mem, nregisters) : NULL;
    if (!copy->slots != !s->slots || !copy->registers != !s->registers) {
        bly_hll_free(copy);
        return bly_fail(BLY_ENOMEM, "out of memory");
    }
    if (s->slots)
        memcpy(copy->slots, s->slots, nslots);
    if (s->registers)
        memcpy(copy->registers, s->registers, nregisters);
    *out = copy;
    return BLY_OK;
}

unsigned bly_hll_precision(const bly_hll *s)
{
    return s->p;
}

bool bly_hll_sparse(const bly_hll *s)
{
    return !s->registers;
}

size_t bly_hll_bytes(const bly_hll *s)
{
    return sizeof *s + s->nslots * sizeof *s->slots +
           (s->registers ? bly_hll_dense_bytes(s->p) + HLL_SLACK : 0);
}

uint64_t bly_hll_total(const bly_hll *s)
{
    return s->total;
}

const bly_hasher *bly_hll_hasher(const bly_hll *s)
{
    return s->origin.blind ? NULL : &s->origin.hasher;
}

static bool is_empty(const bly_hll *s)
{
    if (!s->registers)
        return s->count == 0;
    for (size_t i = 0; i < bly_hll_dense_bytes(s->p); i++)
        if (s->registers[i])
            return false;
    return true;
}

bly_status bly_hll_set_hasher(bly_hll *s, const bly_hasher *hasher)
{
    if (!s || !hasher)
        return bly_fail_null("s or hasher");
    if (hasher->id != BLY_HASH_XXH3 && hasher->id != BLY_HASH_SIPHASH13)
        return bly_fail(BLY_EINVAL, "a hasher of number %u, which is unknown",
                        (unsigned)hasher->id);
    if (!is_empty(s))
        return bly_fail(BLY_EINVAL,
                        "a sketch that has hashes already: say where they "
                        "come from before adding the first");
    s->origin.hasher = *hasher;
    s->origin.blind = false;
    s->origin.secret_check =
        hasher->id == BLY_HASH_SIPHASH13 ? bly_secret_check(hasher->secret) : 0;
    return BLY_OK;
}

bly_keying bly_hll_keying(const bly_hll *s)
{
    return s->origin.keying;
}

void bly_hll_set_keying(bly_hll *s, bly_keying keying)
{
    s->origin.keying = keying;
}

/* ------------------------------------------------------ adding and merging */

/* With many hashes per register, few of them matter. */
static void dense_add(bly_hll *s, const uint64_t *hashes, size_t n)
{
    if (s->floor)
        registers_raise(s->registers, s->p, s->floor, hashes, n);
    else
        registers_raise(s->registers, s->p, 0, hashes, n);
    s->since += n;
    if (s->since >> s->p >= HLL_SINCE) {
        /* Below 4, too many pass for the processor to foresee which. */
        const unsigned floor = registers_floor(s->registers, s->p);
        s->floor = floor < 4 ? 0 : floor;
        s->since = 0;
    }
}

bly_status bly_hll_add(bly_hll *s, const uint64_t *hashes, size_t n)
{
    if (!s || (!hashes && n))
        return bly_fail_null("s or hashes");
    for (size_t i = 0; i < n; i++) {
        if (s->registers) {
            dense_add(s, hashes + i, n - i);
            break;
        }
        const bly_status st = entry_add(s, entry_of(hashes[i]));
        if (st)
            return st;
    }
    s->total = s->total < UINT64_MAX - n ? s->total + n : UINT64_MAX;
    return BLY_OK;
}

bly_status bly_hll_fits(const bly_hll *a, const bly_hll *b)
{
    if (a->p != b->p)
        return bly_fail(BLY_EUNFIT,
                        "sketches of precision %u and %u do not go together: "
                        "make both with the same",
                        a->p, b->p);
    return bly_origins_fit(&a->origin, is_empty(a), &b->origin, is_empty(b));
}

/* Make the dense dst the sketch of both. */
static void registers_merge(bly_hll *dst, const bly_hll *src)
{
    for (uint32_t i = 0; i < src->nslots; i++)
        if (src->slots[i])
            entry_raise(dst->registers, dst->p, src->slots[i]);
    for (size_t i = 0; src->registers && i < (size_t)1 << dst->p; i++)
        register_raise(dst->registers, i, register_get(src->registers, i));
}

bly_status bly_hll_merge(bly_hll *dst, const bly_hll *src)
{
    if (!dst || !src)
        return bly_fail_null("dst or src");
    bly_status st = bly_hll_fits(dst, src);
    if (st || dst == src)
        return st;
    if (!dst->registers && !src->registers) {
        /* The union may be dense or not, and growing may fail: in a copy. */
        bly_hll *both;
        st = bly_hll_copy(dst, &both);
        for (uint32_t i = 0; i < src->nslots && !st; i++)
            if (src->slots[i])
                st = entry_add(both, src->slots[i]);
        if (!st) {
            const bly_hll was = *dst;
            *dst = *both;
            *both = was;
        }
        bly_hll_free(both);
    } else {
        st = dst->registers ? BLY_OK : become_dense(dst);
        if (!st)
            registers_merge(dst, src);
    }
    if (st)
        return st;
    dst->origin.keying = bly_origins_keying(&dst->origin, &src->origin);
    dst->total = src->total < UINT64_MAX - dst->total ? dst->total + src->total
                                                      : UINT64_MAX;
    return BLY_OK;
}

double bly_hll_estimate(const bly_hll *s, double *sd)
{
    double n, deviation;
    if (s->registers) {
        uint32_t count[64] = { 0 };
        for (size_t i = 0; i < (size_t)1 << s->p; i++)
            count[register_get(s->registers, i)]++;
        n = bly_values_estimate(count, s->p);
        deviation = bly_values_deviation(n, s->p);
    } else {
        const double m = ldexp(1, BLY_SPARSE_BITS);
        n = -m * log1p(-(double)s->count / m);
        deviation = bly_values_deviation(n, BLY_SPARSE_BITS);
    }
    if (sd)
        *sd = deviation;
    return n;
}

/* ------------------------------------------------------------------- bytes */

static int entry_order(const void *a, const void *b)
{
    const uint32_t x = bly_load32(a), y = bly_load32(b);
    return x < y ? -1 : x > y;
}

size_t bly_hll_body_bytes(const bly_hll *s)
{
    return s->registers ? bly_hll_dense_bytes(s->p)
                        : s->count * sizeof(uint32_t);
}

void bly_hll_body_write(const bly_hll *s, unsigned char *to)
{
    if (s->registers) {
        memcpy(to, s->registers, bly_hll_dense_bytes(s->p));
        return;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->slots[i])
            bly_store32(to + 4 * n++, s->slots[i]);
    if (n)
        qsort(to, n, sizeof(uint32_t), entry_order);
}

static bly_status hll_damaged(const char *why)
{
    return bly_fail(BLY_EFORMAT, "a damaged hyperloglog sketch: %s", why);
}

/* Could hashes have made these n entries? */
static bool entries_sound(const unsigned char *from, size_t n)
{
    uint32_t least = 0; /* of the next place */
    for (size_t i = 0; i < n; i++) {
        const uint32_t entry = bly_load32(from + 4 * i);
        const uint32_t value = entry & SPARSE_MASK;
        if (value < 1 || value > SPARSE_MAX_VALUE ||
            entry >> BLY_SPARSE_VALUE_BITS < least)
            return false;
        least = (entry >> BLY_SPARSE_VALUE_BITS) + 1;
    }
    return true;
}

bly_status bly_hll_body_load(unsigned p, bool sparse, const unsigned char *from,
                             size_t nbytes, const bly_mem *mem, bly_hll **out)
{
    const size_t n = nbytes / 4;
    bly_hll *s;
    *out = NULL;
    if (sparse ? nbytes % 4 || n > bly_sparse_limit(p)
               : nbytes != bly_hll_dense_bytes(p))
        return hll_damaged("its sizes contradict each other");
    if (sparse && !entries_sound(from, n))
        return hll_damaged("entries that no hash makes");
    bly_status st = bly_hll_new(p, mem, &s);
    for (size_t i = 0; sparse && i < n && !st; i++)
        st = entry_add(s, bly_load32(from + 4 * i));
    if (!st && !sparse && !s->registers)
        st = become_dense(s);
    if (!st && !sparse) {
        memcpy(s->registers, from, nbytes);
        for (size_t i = 0; i < (size_t)1 << p && !st; i++)
            if (register_get(s->registers, i) > 64 - p + 1)
                st = hll_damaged("a register past its ceiling");
    }
    if (st) {
        bly_hll_free(s);
        return st;
    }
    *out = s;
    return BLY_OK;
}

#define HLL_HEAD 16
#define HLL_SUM sizeof(uint64_t)
static const unsigned char hll_magic[7] = { 'b', 'l', 'y', 'h', 'l', 'l', 0 };
enum { HLL_BYTES = 1, HLL_SPARSE = 2 };

size_t bly_hll_written_bytes(const bly_hll *s)
{
    return HLL_HEAD + HLL_SUM +
           (s->registers ? (size_t)1 << s->p : bly_hll_body_bytes(s));
}

void bly_hll_write(const bly_hll *s, void *bytes)
{
    unsigned char *const at = bytes, *const body = at + HLL_HEAD;
    const size_t end = bly_hll_written_bytes(s) - HLL_SUM;
    memset(at, 0, HLL_HEAD);
    memcpy(at, hll_magic, sizeof hll_magic);
    at[7] = s->registers ? HLL_BYTES : HLL_SPARSE;
    at[8] = (unsigned char)s->p;
    if (!s->registers)
        bly_hll_body_write(s, body);
    for (size_t i = 0; s->registers && i < (size_t)1 << s->p; i++)
        body[i] = (unsigned char)register_get(s->registers, i);
    bly_store64(at + end, bly_checksum(at, end));
}

bly_status bly_hll_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                        bly_hll **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
    const unsigned char *const at = bytes, *const body = at + HLL_HEAD;
    static const unsigned char zeros[7] = { 0 };
    if (nbytes < HLL_HEAD || memcmp(at, hll_magic, sizeof hll_magic) != 0 ||
        at[7] < HLL_BYTES || at[7] > HLL_SPARSE)
        return bly_fail(BLY_EFORMAT, "not a hyperloglog sketch");
    const unsigned p = at[8];
    const size_t end = nbytes - HLL_SUM, nbody = end - HLL_HEAD;
    if (p < BLY_REGISTERS_MIN_BITS || p > BLY_REGISTERS_MAX_BITS ||
        memcmp(at + 9, zeros, sizeof zeros) != 0 ||
        nbytes < HLL_HEAD + HLL_SUM ||
        (at[7] == HLL_BYTES && nbody != (size_t)1 << p))
        return hll_damaged("its sizes contradict each other");
    if (bly_load64(at + end) != bly_checksum(at, end))
        return hll_damaged("its checksum is wrong");
    if (at[7] == HLL_SPARSE)
        return bly_hll_body_load(p, true, body, nbody, mem, out);
    for (size_t i = 0; i < nbody; i++)
        if (body[i] > 64 - p + 1)
            return hll_damaged("a register past its ceiling");
    bly_hll *s;
    bly_status st = bly_hll_new(p, mem, &s);
    if (!st && !s->registers)
        st = become_dense(s);
    if (st) {
        bly_hll_free(s);
        return st;
    }
    for (size_t i = 0; i < nbody; i++)
        register_raise(s->registers, i, body[i]);
    *out = s;
    return BLY_OK;
}
