/*
 * block_bpf.c - drop packets from listed addresses, inside of the kernel
 *
 * A program for XDP, compiled for the kernel's machine (clang -target bpf) and
 * carried by the command as numbers. It asks the same bytes as everyone else,
 * with the same functions of bloomery/inline.h; they lie in an array map, one
 * element per block, so that a question is one cache line here too.
 *
 * The source address is asked for with each length that occurs, longest first.
 * A hit is looked up in the trie of those who are allowed, which is exact, and
 * dropped if it is not there. Whatever cannot be read passes. With `only` it is
 * the other way round: hits pass, and all others are looked up and dropped.
 */
#include <bloomery/inline.h>

#include "apps/traffic/xdp_layout.h"

#define PACKET_DROP 1
#define PACKET_PASS 2
#define TAGS 4 /* of VLANs, at most */

/* What the kernel hands over: places as 32 bits, whatever they are. */
struct xdp_packet {
    uint32_t data, data_end, meta, from, queue, to;
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static uint64_t (*const jiffies)(void) = (void *)118;

/* An instruction of its own, so that the compiler does not make one number from
 * another. */
#define THE_MAP(i)                                                        \
    ({                                                                    \
        void *map_;                                                       \
        __asm__ volatile("%0 = %1 ll" : "=r"(map_) : "i"(XDP_MAP + (i))); \
        map_;                                                             \
    })

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS int count(uint32_t number, uint64_t bytes, int verdict)
{
    struct xdp_counter *const c = map_lookup(THE_MAP(XDP_COUNTERS), &number);
    if (c) {
        c->packets++;
        c->bytes += bytes;
    }
    return verdict;
}

/* Numbers of the network, in one load: whether it may be one that is not
 * aligned the kernel decides, and on machines where it may it is. */
typedef uint16_t __attribute__((may_alias)) u16;
typedef uint32_t __attribute__((may_alias)) u32;
typedef uint64_t __attribute__((may_alias)) u64;

ALWAYS unsigned big2(const unsigned char *at)
{
    return __builtin_bswap16(*(const u16 *)at);
}

ALWAYS uint32_t big4(const unsigned char *at)
{
    return __builtin_bswap32(*(const u32 *)at);
}

ALWAYS uint64_t big8(const unsigned char *at)
{
    return __builtin_bswap64(*(const u64 *)at);
}

/* ------------------------------------------------------------------- asking */

/* Are the bits of this hash set? A block that is not there cannot say no. */
ALWAYS int maybe(const struct xdp_list *list, uint64_t hash)
{
    /* bly_mulhi(), for fewer than 2^32 blocks. */
    const uint64_t n = list->nblocks;
    const uint32_t number =
        (uint32_t)(((hash >> 32) * n + ((uint32_t)hash * n >> 32)) >> 32);
    const uint64_t *const block = map_lookup(THE_MAP(XDP_BLOCKS), &number);
    if (!block)
        return 1;
    const uint64_t g = bly_lines_spread(hash, BLY_LINES_C1);
    /* Half of the words are enough for fifteen of sixteen others. */
    uint64_t all = 1;
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        all &= block[i] >> (g >> 6 * i & 63);
    if (!all)
        return 0;
#pragma unroll
    for (unsigned i = 4; i < 8; i++)
        all &= block[i] >> (g >> 6 * i & 63);
    return all != 0;
}

/* Has this tick come? */
ALWAYS int over(const struct xdp_list *list, uint32_t end)
{
    return (int32_t)(end - (uint32_t)(jiffies() >> (list->shift & 15))) <= 0;
}

enum { NOTHING, LISTED, RELEASED };

/* What a line says of a print. */
ALWAYS int line_says(const struct xdp_list *list, const struct xdp_line *line,
                     uint32_t number, uint32_t print, uint64_t bytes)
{
    uint32_t place = number * 8;
    uint32_t end = 0;
    /* The places are compared one by one, and what is next is the same for
     * each: the kernel follows every branch, and this keeps them few. */
    if (line->print[0] == print)
        end = line->ends[0];
    else if (line->print[1] == print)
        place += 1, end = line->ends[1];
    else if (line->print[2] == print)
        place += 2, end = line->ends[2];
    else if (line->print[3] == print)
        place += 3, end = line->ends[3];
    else if (line->print[4] == print)
        place += 4, end = line->ends[4];
    else if (line->print[5] == print)
        place += 5, end = line->ends[5];
    else if (line->print[6] == print)
        place += 6, end = line->ends[6];
    else
        return NOTHING;
    if (end == XDP_RELEASED)
        return RELEASED;
    if (end != XDP_NEVER && over(list, end))
        return NOTHING;
    struct xdp_hits *const hits = map_lookup(THE_MAP(XDP_HITS), &place);
    if (hits) {
        hits->packets++;
        hits->bytes += (uint32_t)bytes;
    }
    return LISTED;
}

ALWAYS int live(const struct xdp_list *list, uint64_t hash, uint64_t bytes)
{
    const uint32_t print = XDP_PRINT(hash);
    uint32_t number = (uint32_t)hash & (list->nlines - 1);
    const struct xdp_line *line = map_lookup(THE_MAP(XDP_LIVE), &number);
    if (!line)
        return NOTHING;
    const int says = line_says(list, line, number, print, bytes);
    if (says != NOTHING || !line->more)
        return says;
    number = (number ^ XDP_OTHER_LINE(print)) & (list->nlines - 1);
    line = map_lookup(THE_MAP(XDP_LIVE), &number);
    return line ? line_says(list, line, number, print, bytes) : NOTHING;
}

ALWAYS int base_over(const struct xdp_list *list)
{
    return list->base_ends && over(list, list->base_ends);
}

ALWAYS int listed_four(const struct xdp_list *list, uint32_t address,
                       uint64_t bytes)
{
    for (unsigned i = 0; i < 33; i++) {
        if (i >= list->nfour)
            break;
        const unsigned bits = list->four[i] & 63;
        const uint64_t kept = ~UINT64_C(0) << (32 - bits & 63);
        const uint32_t first = address & (uint32_t)kept;
        if (list->four_in[i] & XDP_IN_LIVE) {
            const int says =
                live(list, xdp_hash_four(&list->live, first, bits), bytes);
            if (says == LISTED)
                return (int)bits;
            if (says == RELEASED)
                continue;
        }
        if (list->four_in[i] & XDP_IN_BASE &&
            maybe(list, xdp_hash_four(&list->base, first, bits)) &&
            !base_over(list))
            return (int)bits;
    }
    return -1;
}

/* The first `bits` of 64, as a mask. */
ALWAYS uint64_t first_bits(int bits)
{
    return bits <= 0 ? 0 : bits >= 64 ? ~UINT64_C(0) : ~(~UINT64_C(0) >> bits);
}

ALWAYS int listed_six(const struct xdp_list *list, uint64_t high, uint64_t low,
                      uint64_t bytes)
{
    for (unsigned i = 0; i < 129; i++) {
        if (i >= list->nsix)
            break;
        const int bits = list->six[i];
        const uint64_t first = __builtin_bswap64(high & first_bits(bits));
        const uint64_t last = __builtin_bswap64(low & first_bits(bits - 64));
        if (list->six_in[i] & XDP_IN_LIVE) {
            const int says = live(
                list, xdp_hash_six(&list->live, first, last, (unsigned)bits),
                bytes);
            if (says == LISTED)
                return bits;
            if (says == RELEASED)
                continue;
        }
        if (list->six_in[i] & XDP_IN_BASE &&
            maybe(list,
                  xdp_hash_six(&list->base, first, last, (unsigned)bits)) &&
            !base_over(list))
            return bits;
    }
    return -1;
}

/* Exact, by the tries. */
ALWAYS int allowed_four(const unsigned char *at)
{
    struct xdp_allowed who = { .bits = 32 };
    *(u32 *)who.at = *(const u32 *)at;
    return map_lookup(THE_MAP(XDP_ALLOW4), &who) != 0;
}

ALWAYS int allowed_six(const unsigned char *at)
{
    struct xdp_allowed who = { .bits = 128 };
    for (unsigned i = 0; i < 4; i++)
        ((u32 *)who.at)[i] = ((const u32 *)at)[i];
    return map_lookup(THE_MAP(XDP_ALLOW6), &who) != 0;
}

/* Neighbours that ask for an address and answer, and routers that announce
 * themselves: without these there is no IPv6 on a link, as without ARP, which
 * is no IP, there is no IPv4. Routers do not forward them (hop limit 255). */
ALWAYS int is_discovery(const unsigned char *at, const unsigned char *end)
{
    return at + 41 <= end && at[6] == 58 && at[7] == 255 && at[40] >= 133 &&
           at[40] <= 137;
}

/* ------------------------------------------------------------------ packets */

__attribute__((section("xdp"), used)) int block(struct xdp_packet *packet)
{
    const unsigned char *at = (const void *)(uintptr_t)packet->data;
    const unsigned char *const end = (const void *)(uintptr_t)packet->data_end;
    const uint64_t bytes = (uint64_t)(end - at);
    const struct xdp_list *const list = THE_MAP(XDP_LIST);
    int bits;
    if (at + 14 > end)
        return count(XDP_OTHER, bytes, PACKET_PASS);
    unsigned type = big2(at + 12);
    at += 14;
    /* The verifier wants every access compared with the end of the packet,
     * on every path. */
#pragma unroll
    for (unsigned i = 0; i < TAGS; i++) {
        if (type != 0x8100 && type != 0x88a8 && type != 0x9100)
            break;
        if (at + 4 > end)
            return count(XDP_OTHER, bytes, PACKET_PASS);
        type = big2(at + 2);
        at += 4;
    }
    if (type == 0x0800) {
        if (at + 20 > end || at[0] >> 4 != 4)
            return count(XDP_OTHER, bytes, PACKET_PASS);
        bits = listed_four(list, big4(at + 12), bytes);
        if ((bits < 0) == !list->only)
            return count(bits < 0 ? XDP_PASSED : XDP_FOUR + (uint32_t)bits,
                         bytes, PACKET_PASS);
        if (list->allowed[0] && allowed_four(at + 12))
            return count(XDP_ALLOWED, bytes, PACKET_PASS);
        return count(bits < 0 ? XDP_UNLISTED : XDP_FOUR + (uint32_t)bits, bytes,
                     PACKET_DROP);
    }
    if (type == 0x86dd) {
        if (at + 40 > end || at[0] >> 4 != 6)
            return count(XDP_OTHER, bytes, PACKET_PASS);
        bits = listed_six(list, big8(at + 8), big8(at + 16), bytes);
        if ((bits < 0) == !list->only)
            return count(bits < 0 ? XDP_PASSED : XDP_SIX + (uint32_t)bits,
                         bytes, PACKET_PASS);
        if (list->only && is_discovery(at, end))
            return count(XDP_ALLOWED, bytes, PACKET_PASS);
        if (list->allowed[1] && allowed_six(at + 8))
            return count(XDP_ALLOWED, bytes, PACKET_PASS);
        return count(bits < 0 ? XDP_UNLISTED : XDP_SIX + (uint32_t)bits, bytes,
                     PACKET_DROP);
    }
    return count(XDP_OTHER, bytes, PACKET_PASS);
}
