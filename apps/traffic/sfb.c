/*
 * sfb.c - Stochastic Fair Blue
 */
#include "apps/traffic/sfb.h"

#include <math.h>
#include <stdlib.h>

#include <bloomery.h>

#include "base/random.h"

struct bin {
    uint32_t packets;
    float probability;
};

/* One hash function and its bins. */
struct side {
    uint64_t seed;
    struct bin *bins; /* levels * bins */
};

struct sfb {
    struct sfb_spec spec;
    struct side sides[2];
    unsigned now;   /* the side that decides */
    uint64_t turns; /* how often sides have changed */
    double turned;  /* when they did */
    bool began;
    size_t length;
    double tokens, refilled; /* of the penalty rate */
    uint64_t chance;
    struct sfb_sum sum;
};

struct sfb_spec sfb_defaults(unsigned limit)
{
    return (struct sfb_spec){ .levels = 8,
                              .bins = 16,
                              .limit = limit,
                              .most = 25,
                              .target = 20,
                              .increment = 0.0005,
                              .decrement = 0.00005,
                              .rehash = 600,
                              .warmup = 60,
                              .penalty_rate = 10,
                              .penalty_burst = 20 };
}

struct sfb *sfb_new(const struct sfb_spec *spec)
{
    if (spec->levels < 1 || spec->levels > SFB_MOST_LEVELS || spec->bins < 2 ||
        spec->bins > SFB_MOST_BINS || spec->limit < 1 || spec->most < 1 ||
        !(spec->increment > 0) || !(spec->decrement >= 0) ||
        !(spec->rehash >= 0) || !(spec->warmup >= 0) ||
        !(spec->penalty_rate >= 0))
        return NULL;
    struct sfb *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->spec = *spec;
    s->chance = spec->seed;
    s->tokens = spec->penalty_burst;
    for (unsigned i = 0; i < 2; i++) {
        s->sides[i].seed = random_next(&s->chance);
        s->sides[i].bins =
            calloc((size_t)spec->levels * spec->bins, sizeof *s->sides[i].bins);
    }
    if (s->sides[0].bins && s->sides[1].bins)
        return s;
    sfb_free(s);
    return NULL;
}

void sfb_free(struct sfb *s)
{
    if (!s)
        return;
    free(s->sides[0].bins);
    free(s->sides[1].bins);
    free(s);
}

size_t sfb_length(const struct sfb *s)
{
    return s->length;
}

const struct sfb_sum *sfb_sum(const struct sfb *s)
{
    return &s->sum;
}

double sfb_unlucky(unsigned levels, unsigned bins, unsigned m)
{
    return pow(1 - pow(1 - 1. / bins, m), levels);
}

/* -------------------------------------------------------------------- bins */

static uint64_t flow_hash(const struct side *side, uint64_t flow)
{
    return bly_hash(&(bly_hasher){ .id = BLY_HASH_XXH3, .seed = side->seed },
                    &flow, sizeof flow);
}

/* The bin of a flow at a level: 64 bits of hash, stirred for each. */
static struct bin *bin_of(const struct sfb *s, const struct side *side,
                          uint64_t hash, unsigned level)
{
    const uint64_t h = random_next(&(uint64_t){ hash + level });
    return &side->bins[(size_t)level * s->spec.bins +
                       (size_t)((h >> 32) * s->spec.bins >> 32)];
}

struct seen {
    double probability; /* the least of its bins */
    uint32_t packets;   /* in the emptiest */
};

/* Blue: the probability of a bin rises while it is too full, and falls while
 * it is empty. */
static struct seen side_update(struct sfb *s, const struct side *side,
                               uint64_t hash)
{
    struct seen out = { 1, UINT32_MAX };
    for (unsigned l = 0; l < s->spec.levels; l++) {
        struct bin *const b = bin_of(s, side, hash, l);
        if (b->packets >= s->spec.target)
            b->probability =
                fminf(1, b->probability + (float)s->spec.increment);
        else if (b->packets == 0)
            b->probability =
                fmaxf(0, b->probability - (float)s->spec.decrement);
        out.probability = fmin(out.probability, (double)b->probability);
        out.packets = b->packets < out.packets ? b->packets : out.packets;
    }
    return out;
}

static void side_count(struct sfb *s, const struct side *side, uint64_t hash,
                       int by)
{
    for (unsigned l = 0; l < s->spec.levels; l++) {
        struct bin *const b = bin_of(s, side, hash, l);
        if (by > 0)
            b->packets++;
        else if (b->packets)
            b->packets--;
    }
}

double sfb_probability(const struct sfb *s, uint64_t flow)
{
    const struct side *const side = &s->sides[s->now];
    const uint64_t hash = flow_hash(side, flow);
    double least = 1;
    for (unsigned l = 0; l < s->spec.levels; l++)
        least = fmin(least, (double)bin_of(s, side, hash, l)->probability);
    return least;
}

/* ------------------------------------------------------------- moving hash */

/* The side that was warmed up takes over, and the other one gets a new seed.
 * Packets in the queue keep their places by their tickets: those of the side
 * that is made anew are no longer counted there. */
static void sides_turn(struct sfb *s, double now)
{
    if (!s->began) {
        s->began = true;
        s->turned = s->refilled = now;
    }
    if (!(s->spec.rehash > 0) || now - s->turned < s->spec.rehash)
        return;
    struct side *const old = &s->sides[s->now];
    for (size_t i = 0; i < (size_t)s->spec.levels * s->spec.bins; i++)
        old->bins[i] = (struct bin){ 0, 0 };
    old->seed = random_next(&s->chance);
    s->now ^= 1;
    s->turns++;
    s->turned = now;
    s->sum.rehashes++;
}

static bool warm(const struct sfb *s, double now)
{
    return s->spec.rehash > 0 &&
           now - s->turned >= s->spec.rehash - s->spec.warmup;
}

/* ----------------------------------------------------------------- packets */

static bool penalty_passes(struct sfb *s, double now)
{
    const double refill = fmax(0, now - s->refilled) * s->spec.penalty_rate;
    s->tokens = fmin(s->spec.penalty_burst, s->tokens + refill);
    s->refilled = now;
    if (s->tokens < 1)
        return false;
    s->tokens -= 1;
    return true;
}

static enum sfb_verdict decide(struct sfb *s, const struct seen *seen,
                               double now)
{
    if (s->length >= s->spec.limit)
        return SFB_FULL;
    if (seen->probability >= 1)
        return penalty_passes(s, now) ? SFB_TAKEN : SFB_PENALTY;
    if (seen->packets >= s->spec.most)
        return SFB_BIN;
    return random_share(&s->chance) < seen->probability ? SFB_EARLY : SFB_TAKEN;
}

enum sfb_verdict sfb_arrive(struct sfb *s, uint64_t flow, double now,
                            struct sfb_ticket *ticket)
{
    uint64_t *const counts[] = { &s->sum.taken, &s->sum.early, &s->sum.penalty,
                                 &s->sum.bin, &s->sum.full };
    sides_turn(s, now);
    for (unsigned i = 0; i < 2; i++)
        ticket->hash[i] = flow_hash(&s->sides[i], flow);
    ticket->turns = s->turns;
    const struct seen seen =
        side_update(s, &s->sides[s->now], ticket->hash[s->now]);
    if (warm(s, now))
        side_update(s, &s->sides[!s->now], ticket->hash[!s->now]);
    const enum sfb_verdict verdict = decide(s, &seen, now);
    ++*counts[verdict];
    if (verdict != SFB_TAKEN)
        return verdict;
    for (unsigned i = 0; i < 2; i++)
        side_count(s, &s->sides[i], ticket->hash[i], 1);
    s->length++;
    return verdict;
}

void sfb_leave(struct sfb *s, const struct sfb_ticket *ticket)
{
    s->length -= s->length > 0;
    /* One turn since it came: the side that decided then has been made anew.
     * Two: so has the other. */
    const uint64_t turned = s->turns - ticket->turns;
    for (unsigned i = 0; i < 2; i++)
        if (turned == 0 || (turned == 1 && i == s->now))
            side_count(s, &s->sides[i], ticket->hash[i], -1);
}
