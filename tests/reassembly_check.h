/*
 * reassembly_check.h - does TCP put in order lose anything?
 *
 * Any bytes are segments of four flows, forged ones among them: beginnings and
 * ends anywhere, several versions of the same bytes, segments far ahead and far
 * behind. Whatever they do to each other, all that lies in one segment must be
 * handed over, here each two bytes side by side.
 */
#ifndef BLY_TESTS_REASSEMBLY_CHECK_H
#define BLY_TESTS_REASSEMBLY_CHECK_H

#include <stdlib.h>
#include <string.h>

#include "apps/traffic/reassembly.h"
#include "base/random.h"

#define CHECK_FLOWS 4
#define CHECK_SEGMENT 64
/* A bit for each two bytes. */
struct reassembly_pairs {
    unsigned char sent[CHECK_FLOWS][8192], got[CHECK_FLOWS][8192];
};

static inline void pair_set(unsigned char *bits, const unsigned char *at)
{
    bits[at[0] << 5 | at[1] >> 3] |= (unsigned char)(1 << (at[1] & 7));
}

static inline bool pairs_take(void *ctx, const struct flow_key *key,
                              const unsigned char *at, size_t seen, size_t n,
                              uint64_t base)
{
    struct reassembly_pairs *const p = ctx;
    (void)base;
    for (size_t i = seen ? seen : 1; i < n; i++)
        pair_set(p->got[key->at[0]], at + i - 1);
    return true;
}

/* The byte with this number, in one of four versions. */
static inline unsigned char pair_byte(uint32_t sequence, unsigned version)
{
    const uint64_t x = ((uint64_t)sequence * 4 + version) * RANDOM_STEP;
    return (unsigned char)((x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 56);
}

/* Four bytes are a segment: flags and flow, where it is, how long. */
static inline struct segment pair_segment(const unsigned char *op,
                                          uint32_t *next, unsigned char *text)
{
    const unsigned flow = op[0] >> 3 & 3, far = op[0] >> 5 & 3;
    const uint32_t by = (uint32_t)op[1] << 8 | op[2];
    struct segment s = { .key = { 1, { (unsigned char)flow } },
                         .syn = op[0] & 1,
                         .fin = (op[0] & 6) == 2,
                         .rst = (op[0] & 6) == 4,
                         .at = text,
                         .wire = op[3] & 31 };
    /* Most follow each other, or nearly so. */
    s.sequence = far == 0   ? next[flow] + by % 8 * 16 - by % 3 * 16
                 : far == 1 ? next[flow]
                 : far == 2 ? by
                            : by << 16;
    s.n = op[0] & 0x80 ? s.wire / 2 : s.wire;
    for (size_t i = 0; i < s.n; i++)
        text[i] = pair_byte(s.sequence + (uint32_t)i, op[3] >> 6);
    if (far < 2)
        next[flow] = s.sequence + (uint32_t)s.wire;
    if (s.syn) /* which has a number of its own */
        s.sequence--;
    return s;
}

/* NULL, or what is wrong. */
static inline const char *reassembly_check(const unsigned char *data, size_t n)
{
    struct reassembly_pairs *const p = calloc(1, sizeof *p);
    const uint64_t memory = n && data[0] & 1 ? 3000 : 1 << 20;
    struct reassembly *const r = reassembly_new(&(struct reassembly_spec){
        .keeps = 1, .memory = memory, .take = pairs_take, .ctx = p });
    const char *wrong = p && r ? NULL : "no memory";
    uint32_t next[CHECK_FLOWS] = { 0 };
    for (size_t i = 1; i + 4 <= n && !wrong; i += 4) {
        unsigned char text[CHECK_SEGMENT] = { 0 };
        const struct segment s = pair_segment(data + i, next, text);
        for (size_t k = 1; k < s.n; k++)
            pair_set(p->sent[s.key.at[0]], text + k - 1);
        if (!reassembly_add(r, &s))
            wrong = "no memory";
        else if (reassembly_sum(r)->most > memory + 5000)
            wrong = "too much memory";
    }
    if (!wrong && !reassembly_end(r))
        wrong = "no memory";
    for (size_t f = 0; f < CHECK_FLOWS && !wrong; f++)
        for (size_t i = 0; i < sizeof p->sent[f]; i++)
            if (p->sent[f][i] & ~p->got[f][i])
                wrong = "bytes were never handed over";
    reassembly_free(r);
    free(p);
    return wrong;
}

#endif
