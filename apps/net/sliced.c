/*
 * sliced.c - 64 filters of groups, read at once
 */
#include "apps/net/sliced.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define COUNT_MOST 255

bool sliced_new(struct sliced *s, uint64_t groups, double bits)
{
    const double n = ceil((double)(groups ? groups : 1) * bits);
    const double k = round(bits * 0.6931471805599453);
    memset(s, 0, sizeof *s);
    if (!(n >= 1 && n <= (double)SLICED_BITS))
        return false;
    s->nbits = (uint64_t)n;
    s->k = k < 1 ? 1 : k > SLICED_PROBES ? SLICED_PROBES : (unsigned)k;
    s->words = calloc(s->nbits, sizeof *s->words);
    s->counts = calloc(s->nbits, SLICED_FACES);
    if (s->words && s->counts)
        return true;
    sliced_free(s);
    return false;
}

void sliced_free(struct sliced *s)
{
    free(s->words);
    free(s->counts);
    memset(s, 0, sizeof *s);
}

/* Position i of k: a fresh number for each, scaled by its upper bits. */
static uint64_t sliced_at(const struct sliced *s, uint64_t hash, unsigned i)
{
    const uint64_t x = mix_fast(hash + (i + 1) * RANDOM_STEP);
    return (x >> 32) * s->nbits >> 32; /* nbits is at most 2^28 */
}

uint64_t sliced_faces(const struct sliced *s, uint64_t hash)
{
    uint64_t all = UINT64_MAX;
    for (unsigned i = 0; i < s->k; i++)
        all &= s->words[sliced_at(s, hash, i)];
    return all;
}

void sliced_join(struct sliced *s, uint64_t hash, unsigned face)
{
    for (unsigned i = 0; i < s->k; i++) {
        const uint64_t at = sliced_at(s, hash, i);
        uint8_t *const count = &s->counts[at * SLICED_FACES + face];
        if (*count < COUNT_MOST)
            ++*count;
        s->words[at] |= UINT64_C(1) << face;
    }
}

bool sliced_leave(struct sliced *s, uint64_t hash, unsigned face)
{
    if (!(sliced_faces(s, hash) >> face & 1))
        return false;
    for (unsigned i = 0; i < s->k; i++) {
        const uint64_t at = sliced_at(s, hash, i);
        uint8_t *const count = &s->counts[at * SLICED_FACES + face];
        /* A counter that was full no longer knows how many there are. */
        if (*count && *count < COUNT_MOST && --*count == 0)
            s->words[at] &= ~(UINT64_C(1) << face);
    }
    return true;
}

double sliced_rate(const struct sliced *s, double n)
{
    const double clear = pow(1 - 1 / (double)s->nbits, s->k * n);
    return pow(1 - clear, s->k);
}
