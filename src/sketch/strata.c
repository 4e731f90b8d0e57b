/*
 * strata.c - about how much two sets differ
 *
 * Three quarters of all elements are in the first stratum, three quarters of
 * the rest in the second, and so on, by the trailing zeros of their hashes;
 * each stratum is the first 32 symbols of its elements (coded.c), whatever
 * their number. Two sets that differ in d elements differ in about 3/4 d / 4^i
 * of stratum i. From the last one down, strata are decoded until one has too
 * many differences for its symbols, and what was found above it is multiplied
 * up:
 *
 *     stratum    0    1    2    3 ...
 *     d = 400  300   75   19    5 ...      found from 2 on: 25, of 1/16 of
 *                  too many                all, so about 400
 *
 * 32 symbols decode 22 or so. The last stratum that could be decoded had 5 to
 * 22 differences, and all above it a third as many, so that the estimate has a
 * deviation of d / sqrt(7) to d / sqrt(29), 19 to 38 %. Strata of halves with
 * 40 symbols were better, 14 to 20 %, at 2.5 times the bytes; what is chosen by
 * an estimate does not need that.
 *
 * As bytes: a u8 with the number of strata, then the symbols of each (coded.c).
 */
#include "core/hash.h"
#include "core/memory.h"
#include "core/status.h"
#include "sketch/coded.h"

#define STRATA_LEVELS 12 /* for up to 4^12 differences and more */
#define STRATA_SYMBOLS 32
#define STRATA_GROUP 64 /* elements of a level that are put in at once */

struct bly_strata {
    coded_rules rules;
    bly_coding how; /* of the strata, with the secret below */
    unsigned char secret[BLY_SECRET_BYTES];
    bly_coded *levels[STRATA_LEVELS];
};

bly_status bly_strata_new(const bly_coding *how, bly_strata **out)
{
    coded_rules r;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    bly_status st = bly_coded_rules(how, &r);
    if (st)
        return st;
    bly_strata *const s = bly_mem_zalloc(&r.mem, sizeof *s);
    if (!s)
        return bly_fail(BLY_ENOMEM, "out of memory");
    s->rules = r;
    s->how = *how;
    s->how.hashes = 0;
    s->how.mem = &s->rules.mem;
    if (how->secret) {
        memcpy(s->secret, how->secret, sizeof s->secret);
        s->how.secret = s->secret;
    }
    for (unsigned i = 0; i < STRATA_LEVELS && !st; i++)
        st = bly_coded_new(&s->how, 0, STRATA_SYMBOLS, &s->levels[i]);
    if (st) {
        bly_strata_free(s);
        return st;
    }
    *out = s;
    return BLY_OK;
}

void bly_strata_free(bly_strata *s)
{
    if (!s)
        return;
    const bly_mem mem = s->rules.mem;
    for (unsigned i = 0; i < STRATA_LEVELS; i++)
        bly_coded_free(s->levels[i]);
    bly_mem_release(&mem, s, sizeof *s);
}

/* Elements of the strata from `least` on. */
static bly_status strata_put(bly_strata *s, const void *elements, size_t n,
                             unsigned least)
{
    if (!s)
        return bly_fail_null("s");
    if (!elements && n)
        return bly_fail_null("elements");
    const size_t width = s->rules.width;
    /* Some of each level at once: coded.c walks many side by side. */
    unsigned char some[STRATA_LEVELS][STRATA_GROUP * BLY_CODED_MOST];
    unsigned have[STRATA_LEVELS] = { 0 };
    uint64_t h[STRATA_GROUP];
    const unsigned char *at = elements;
    bly_status st = BLY_OK;
    for (size_t i = 0; i < n && !st; i++, at += width) {
        if (i % STRATA_GROUP == 0)
            bly_coded_hashes(&s->rules, at,
                             n - i < STRATA_GROUP ? n - i : STRATA_GROUP, h);
        /* The walks of coded.c start from the same hash: mix it. */
        const uint64_t mixed = bly_mix64(h[i % STRATA_GROUP]);
        const unsigned zeros = mixed ? (unsigned)__builtin_ctzll(mixed) : 64;
        const unsigned level =
            zeros / 2 < STRATA_LEVELS ? zeros / 2 : STRATA_LEVELS - 1;
        if (level < least)
            continue;
        memcpy(some[level] + have[level] * width, at, width);
        if (++have[level] == STRATA_GROUP) {
            st = bly_coded_add(s->levels[level], some[level], STRATA_GROUP);
            have[level] = 0;
        }
    }
    for (unsigned level = 0; level < STRATA_LEVELS && !st; level++)
        st = bly_coded_add(s->levels[level], some[level], have[level]);
    return st;
}

bly_status bly_strata_add(bly_strata *s, const void *elements, size_t n)
{
    return strata_put(s, elements, n, 0);
}

bly_status bly_strata_add_coded(bly_strata *s, const bly_coded *all,
                                const void *elements, size_t n)
{
    if (!s)
        return bly_fail_null("s");
    if (!all)
        return bly_fail_null("all");
    if (!bly_coded_alike(&s->rules, &all->rules) || all->from ||
        all->to < STRATA_SYMBOLS || all->items != n)
        return bly_fail(BLY_EUNFIT,
                        "these are not symbols 0 to %d of the %llu elements, "
                        "without end and made in the same way",
                        STRATA_SYMBOLS, (unsigned long long)n);
    for (unsigned i = 0; i < STRATA_LEVELS; i++)
        if (s->levels[i]->items)
            return bly_fail(BLY_EUNFIT, "these strata have elements already");
    const bly_status st = strata_put(s, elements, n, 1);
    if (st)
        return st;
    /* What no other stratum has is in the first. */
    bly_coded *const first = s->levels[0];
    const size_t nwords = STRATA_SYMBOLS * s->rules.stride;
    uint64_t rest = n;
    for (size_t w = 0; w < nwords; w++) {
        const bool counts = w % s->rules.stride == 0;
        uint64_t sum = all->cells[w];
        for (unsigned i = 1; i < STRATA_LEVELS; i++)
            sum = counts ? sum - s->levels[i]->cells[w]
                         : sum ^ s->levels[i]->cells[w];
        first->cells[w] = sum;
    }
    for (unsigned i = 1; i < STRATA_LEVELS; i++)
        rest -= s->levels[i]->items;
    first->items = rest;
    return BLY_OK;
}

size_t bly_strata_room(const bly_strata *s)
{
    return s ? 1 + STRATA_LEVELS *
                       (4 + bly_coded_room(s->levels[0], STRATA_SYMBOLS))
             : 0;
}

size_t bly_strata_write(const bly_strata *s, void *bytes)
{
    unsigned char *at = bytes;
    if (!s || !bytes)
        return 0;
    *at++ = STRATA_LEVELS;
    for (unsigned i = 0; i < STRATA_LEVELS; i++) {
        const size_t n =
            bly_coded_write(s->levels[i], 0, STRATA_SYMBOLS, at + 4);
        bly_store32(at, (uint32_t)n);
        at += 4 + n;
    }
    return (size_t)(at - (unsigned char *)bytes);
}

/* What differs in one stratum: BLY_OK with the number and whether that is all
 * of them. */
static bly_status stratum_count(const bly_strata *s, unsigned i,
                                const unsigned char *bytes, size_t nbytes,
                                uint64_t *found, bool *all)
{
    bly_differ *d;
    bly_status st = bly_differ_new(&s->how, &d);
    if (!st)
        st = bly_differ_take(d, s->levels[i], bytes, nbytes);
    if (!st && bly_differ_symbols(d) != STRATA_SYMBOLS)
        st =
            bly_fail(BLY_EFORMAT, "a stratum has %d symbols, not %llu",
                     STRATA_SYMBOLS, (unsigned long long)bly_differ_symbols(d));
    *all = !st && bly_differ_done(d);
    *found = st ? 0
                : bly_differ_elements(d, BLY_MINE, NULL) +
                      bly_differ_elements(d, BLY_THEIRS, NULL);
    if (!st || d)
        bly_differ_free(d);
    return st;
}

bly_status bly_strata_estimate(const bly_strata *mine, const void *bytes,
                               size_t nbytes, uint64_t *differences)
{
    const unsigned char *from[STRATA_LEVELS];
    size_t len[STRATA_LEVELS];
    if (!mine)
        return bly_fail_null("mine");
    if (!bytes)
        return bly_fail_null("bytes");
    if (!differences)
        return bly_fail_null("differences");
    const unsigned char *at = bytes, *const end = at + nbytes;
    bool whole = nbytes && *at++ == STRATA_LEVELS;
    for (unsigned i = 0; i < STRATA_LEVELS && whole; i++) {
        whole = end - at >= 4 && bly_load32(at) <= (size_t)(end - at) - 4;
        if (!whole)
            break;
        len[i] = bly_load32(at);
        from[i] = at + 4;
        at += 4 + len[i];
    }
    if (!whole || at != end)
        return bly_fail(BLY_EFORMAT, "not strata of a set, or cut off");
    uint64_t sum = 0;
    for (unsigned i = STRATA_LEVELS; i--;) {
        uint64_t found;
        bool all;
        const bly_status st =
            stratum_count(mine, i, from[i], len[i], &found, &all);
        if (st)
            return st;
        if (!all) {
            /* At least as many as its symbols, and what they found above. */
            *differences = (sum ? sum : STRATA_SYMBOLS) << 2 * (i + 1);
            return BLY_OK;
        }
        sum += found;
    }
    *differences = sum;
    return BLY_OK;
}
