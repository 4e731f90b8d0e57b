/*
 * column_levels.c - which values of a page are there at all
 *
 * A value is there where its definition level is the highest. The levels are a
 * stream of runs, in two forms:
 *
 *     header 2 n        n times one level, in whole bytes
 *     header 2 n + 1    8 n levels of as many bits as the highest one needs,
 *                       the low bits of bytes first
 *
 * A filter does not care which rows have a value, so that counting is all; and
 * nested columns are like flat ones.
 */
#include "apps/parquet/parquet_job.h"
#include "base/byte_order.h"

struct stream {
    const unsigned char *at, *end;
};

static bool stream_varint(struct stream *s, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 35 && s->at < s->end; shift += 7) {
        const unsigned b = *s->at++;
        *out |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return true;
    }
    return false;
}

/* How many of n packed levels of one bit are set. */
static uint64_t ones_count(const unsigned char *at, uint64_t n)
{
    uint64_t ones = 0;
    for (uint64_t i = 0; i < n / 8; i++)
        ones += (uint64_t)__builtin_popcount(at[i]);
    if (n % 8)
        ones += (uint64_t)__builtin_popcount(at[n / 8] & ((1u << n % 8) - 1));
    return ones;
}

/* How many of n packed levels are max. */
static uint64_t packed_count(const unsigned char *at, uint64_t n, unsigned bits,
                             uint32_t max)
{
    if (bits == 1)
        return ones_count(at, n);
    uint64_t found = 0, held = 0;
    unsigned nheld = 0;
    for (uint64_t i = 0; i < n; i++) {
        while (nheld < bits) {
            held |= (uint64_t)*at++ << nheld;
            nheld += 8;
        }
        found += (held & (((uint64_t)1 << bits) - 1)) == max;
        held >>= bits;
        nheld -= bits;
    }
    return found;
}

bool levels_count(const unsigned char *bytes, size_t nbytes, uint64_t n,
                  uint32_t max, uint64_t *out)
{
    struct stream s = { bytes, bytes + nbytes };
    const unsigned bits = 32 - (unsigned)__builtin_clz(max);
    *out = 0;
    while (n) {
        uint64_t head;
        if (!stream_varint(&s, &head))
            return false;
        const uint64_t left = (uint64_t)(s.end - s.at);
        uint64_t run = head >> 1;
        if (head & 1) {
            /* A group of 8 takes `bits` bytes. The last may be cut short. */
            const uint64_t held = run > left / bits ? left * 8 / bits : run * 8;
            const uint64_t take = held < n ? held : n;
            if (run == 0 || held == 0)
                return false;
            *out += packed_count(s.at, take, bits, max);
            s.at += run > left / bits ? left : run * bits;
            n -= take;
        } else {
            const unsigned width = (bits + 7) / 8;
            if (run == 0 || left < width)
                return false;
            const uint64_t level = get_le(s.at, width);
            s.at += width;
            run = run < n ? run : n;
            *out += level == max ? run : 0;
            n -= run;
        }
    }
    return true;
}
