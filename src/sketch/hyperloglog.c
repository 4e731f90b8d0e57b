/*
 * hyperloglog.c - how many distinct hashes there were, in fixed memory
 *
 * The top p bits of a hash choose a register; the register keeps the longest
 * run of zeros, plus one, seen at the head of the other 64 - p bits. A run of
 * r - 1 zeros takes about 2^r hashes to come up, so the registers together
 * tell how many there were, and a hash that comes again changes nothing.
 *
 *     h = | p bits: register | 0 0 0 1 ...  -> value 4 |
 *
 * The estimate is Ertl's, which needs no tables of corrections and is
 * unbiased from the first hash to the last [2]: with C[v] registers of value
 * v, m = 2^p and q = 64 - p,
 *
 *     z = m tau(1 - C[q+1]/m) ; for v = q .. 1: z = (z + C[v]) / 2
 *     z = z + m sigma(C[0]/m) ; estimate = m^2 / (2 ln 2 z)
 *
 * Its deviation is 1.04/sqrt(m) of it; below m hashes less, since registers
 * that were never hit tell more: sqrt(m (e^t - 1 - t)), t = n/m, as if they
 * were bits [3]. Precision 14 takes 16 KiB and errs by 0.8 %.
 *
 * As bytes: "blyhll" 0 1, p and seven zeros, the registers, and the XXH3 of all
 * that as a little-endian word.
 *
 * [1] Flajolet, Fusy, Gandouet and Meunier, HyperLogLog, 2007
 * [2] Ertl, New cardinality estimation algorithms for HyperLogLog sketches,
 *     2017
 * [3] Whang, Vander-Zanden and Taylor, A linear-time probabilistic counting
 *     algorithm for database applications, 1990
 */
#include <math.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/status.h"
#include "sketch/hyperloglog.h"

void bly_registers_add(uint8_t *registers, unsigned p, const uint64_t *hashes,
                       size_t n)
{
    /* The guard bit ends a run of zeros at q. */
    const uint64_t guard = UINT64_C(1) << (p - 1);
    for (size_t i = 0; i < n; i++) {
        const uint64_t rest = hashes[i] << p | guard;
        const uint8_t value = (uint8_t)(__builtin_clzll(rest) + 1);
        uint8_t *at = &registers[hashes[i] >> (64 - p)];
        if (*at < value)
            *at = value;
    }
}

void bly_registers_merge(uint8_t *dst, const uint8_t *src, unsigned p)
{
    for (size_t i = 0; i < (size_t)1 << p; i++)
        dst[i] = dst[i] < src[i] ? src[i] : dst[i];
}

/* x + sum over i of x^(2^i) 2^(i-1), for the registers that were never hit. */
static double hll_sigma(double x)
{
    double y = 1, z = x, last;
    if (x >= 1)
        return INFINITY;
    do {
        last = z;
        x *= x;
        z += x * y;
        y += y;
    } while (z != last);
    return z;
}

/* (1 - x - sum over i of (1 - x^(2^-i))^2 2^-i) / 3, for those at the top. */
static double hll_tau(double x)
{
    double y = 1, z = 1 - x, last;
    if (x <= 0 || x >= 1)
        return 0;
    do {
        last = z;
        x = sqrt(x);
        y /= 2;
        z -= (1 - x) * (1 - x) * y;
    } while (z != last);
    return z / 3;
}

double bly_registers_estimate(const uint8_t *registers, unsigned p)
{
    const size_t nregisters = (size_t)1 << p;
    const double m = (double)nregisters;
    const unsigned q = 64 - p;
    double count[64 - BLY_REGISTERS_MIN_BITS + 2] = { 0 };
    for (size_t i = 0; i < nregisters; i++)
        count[registers[i] <= q + 1 ? registers[i] : q + 1]++;
    double z = m * hll_tau(1 - count[q + 1] / m);
    for (unsigned v = q; v >= 1; v--)
        z = (z + count[v]) / 2;
    z += m * hll_sigma(count[0] / m);
    return m * m / (2 * log(2) * z);
}

/* --------------------------------------------------------- bly_hll itself */

#define HLL_DEFAULT_PRECISION 14

struct bly_hll {
    bly_mem mem;
    unsigned p;
    uint8_t registers[];
};

static size_t hll_struct_bytes(unsigned p)
{
    return sizeof(bly_hll) + ((size_t)1 << p);
}

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
    bly_hll *s = bly_mem_zalloc(mem, hll_struct_bytes(p));
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    s->mem = *mem;
    s->p = p;
    *out = s;
    return BLY_OK;
}

void bly_hll_free(bly_hll *s)
{
    if (!s)
        return;
    const bly_mem mem = s->mem;
    bly_mem_release(&mem, s, hll_struct_bytes(s->p));
}

unsigned bly_hll_precision(const bly_hll *s)
{
    return s->p;
}

void bly_hll_add(bly_hll *s, const uint64_t *hashes, size_t n)
{
    bly_registers_add(s->registers, s->p, hashes, n);
}

bly_status bly_hll_merge(bly_hll *dst, const bly_hll *src)
{
    if (!dst || !src)
        return bly_fail_null("dst or src");
    if (dst->p != src->p)
        return bly_fail(BLY_EUNFIT,
                        "sketches of precision %u and %u do not merge", dst->p,
                        src->p);
    bly_registers_merge(dst->registers, src->registers, dst->p);
    return BLY_OK;
}

double bly_hll_estimate(const bly_hll *s, double *sd)
{
    const double m = ldexp(1, (int)s->p);
    const double n = bly_registers_estimate(s->registers, s->p);
    const double t = n / m;
    if (sd)
        *sd = fmin(1.04 / sqrt(m) * n, sqrt(m * (expm1(t) - t)));
    return n;
}

/* ------------------------------------------------------------------- bytes */

#define HLL_HEAD 16
static const unsigned char hll_magic[8] = {
    'b', 'l', 'y', 'h', 'l', 'l', 0, 1
};

size_t bly_hll_written_bytes(const bly_hll *s)
{
    return HLL_HEAD + ((size_t)1 << s->p) + sizeof(uint64_t);
}

void bly_hll_write(const bly_hll *s, void *bytes)
{
    unsigned char *const at = bytes;
    const size_t body = bly_hll_written_bytes(s) - sizeof(uint64_t);
    memset(at, 0, HLL_HEAD);
    memcpy(at, hll_magic, sizeof hll_magic);
    at[sizeof hll_magic] = (unsigned char)s->p;
    memcpy(at + HLL_HEAD, s->registers, (size_t)1 << s->p);
    bly_store64(at + body, bly_checksum(at, body));
}

bly_status bly_hll_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                        bly_hll **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
    const unsigned char *const at = bytes;
    static const unsigned char zeros[7] = { 0 };
    if (nbytes < HLL_HEAD || memcmp(at, hll_magic, sizeof hll_magic) != 0)
        return bly_fail(BLY_EFORMAT, "not a hyperloglog sketch");
    const unsigned p = at[sizeof hll_magic];
    if (p < BLY_REGISTERS_MIN_BITS || p > BLY_REGISTERS_MAX_BITS ||
        memcmp(at + sizeof hll_magic + 1, zeros, sizeof zeros) != 0 ||
        nbytes != HLL_HEAD + ((size_t)1 << p) + 8)
        return bly_fail(BLY_EFORMAT, "a damaged hyperloglog sketch: its sizes "
                                     "contradict each other");
    if (bly_load64(at + nbytes - 8) != bly_checksum(at, nbytes - 8))
        return bly_fail(BLY_EFORMAT, "a damaged hyperloglog sketch: its "
                                     "checksum is wrong");
    for (size_t i = HLL_HEAD; i < nbytes - 8; i++)
        if (at[i] > 64 - p + 1)
            return bly_fail(BLY_EFORMAT, "a damaged hyperloglog sketch: a "
                                         "register past its ceiling");
    bly_hll *s;
    const bly_status st = bly_hll_new(p, mem, &s);
    if (st)
        return st;
    memcpy(s->registers, at + HLL_HEAD, (size_t)1 << p);
    *out = s;
    return BLY_OK;
}
