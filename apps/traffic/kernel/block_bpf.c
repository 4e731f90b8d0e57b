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
 * dropped if it is not there. Whatever cannot be read passes.
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

ALWAYS int listed_four(const struct xdp_list *list, uint32_t address)
{
    for (unsigned i = 0; i < 33; i++) {
        if (i >= list->nfour)
            break;
        const unsigned bits = list->four[i] & 63;
        const uint64_t kept = ~UINT64_C(0) << (32 - bits & 63);
        const uint64_t key = (uint64_t)bits << 32 | (address & (uint32_t)kept);
        if (maybe(list, bly_int_hash_turned(key, list->turned)))
            return (int)bits;
    }
    return -1;
}

ALWAYS uint64_t folded(uint64_t a, uint64_t b)
{
    return a * b ^ bly_mulhi(a, b);
}

/* XXH3 of seventeen bytes: the address and the number of bits. first and last
 * are the halves of the address, least significant byte first. */
ALWAYS uint64_t hash_six(const struct xdp_list *list, uint64_t first,
                         uint64_t last, unsigned bits)
{
    const uint64_t later = first >> 8 | last << 56;
    const uint64_t end = last >> 8 | (uint64_t)bits << 56;
    uint64_t h = UINT64_C(17) * UINT64_C(0x9e3779b185ebca87);
    h += folded(first ^ list->mixed[0], last ^ list->mixed[1]);
    h += folded(later ^ list->mixed[2], end ^ list->mixed[3]);
    h ^= h >> 37;
    h *= UINT64_C(0x165667919e3779f9);
    return h ^ h >> 32;
}

/* The first `bits` of 64, as a mask. */
ALWAYS uint64_t first_bits(int bits)
{
    return bits <= 0 ? 0 : bits >= 64 ? ~UINT64_C(0) : ~(~UINT64_C(0) >> bits);
}

ALWAYS int listed_six(const struct xdp_list *list, uint64_t high, uint64_t low)
{
    for (unsigned i = 0; i < 129; i++) {
        if (i >= list->nsix)
            break;
        const int bits = list->six[i];
        const uint64_t first = __builtin_bswap64(high & first_bits(bits));
        const uint64_t last = __builtin_bswap64(low & first_bits(bits - 64));
        if (maybe(list, hash_six(list, first, last, (unsigned)bits)))
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
        bits = listed_four(list, big4(at + 12));
        if (bits < 0)
            return count(XDP_PASSED, bytes, PACKET_PASS);
        if (list->allowed[0] && allowed_four(at + 12))
            return count(XDP_ALLOWED, bytes, PACKET_PASS);
        return count(XDP_FOUR + (uint32_t)bits, bytes, PACKET_DROP);
    }
    if (type == 0x86dd) {
        if (at + 40 > end || at[0] >> 4 != 6)
            return count(XDP_OTHER, bytes, PACKET_PASS);
        bits = listed_six(list, big8(at + 8), big8(at + 16));
        if (bits < 0)
            return count(XDP_PASSED, bytes, PACKET_PASS);
        if (list->allowed[1] && allowed_six(at + 8))
            return count(XDP_ALLOWED, bytes, PACKET_PASS);
        return count(XDP_SIX + (uint32_t)bits, bytes, PACKET_DROP);
    }
    return count(XDP_OTHER, bytes, PACKET_PASS);
}
