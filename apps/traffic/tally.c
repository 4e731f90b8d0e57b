/*
 * tally.c - packets and bytes of every flow, in sketches
 */
#include "apps/traffic/tally.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

static const char *const tally_names[] = { "countmin", "spectral",
                                           "spacecode" };

const char *tally_name(enum tally_kind kind)
{
    return tally_names[kind];
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

bly_status tally_new(const struct tally_spec *spec, struct tally *t)
{
    char number[32];
    bly_option options[2];
    bly_spec s = { .kind = tally_names[spec->kind],
                   .seed = spec->seed,
                   .options = options };
    const uint64_t flows = spec->flows ? spec->flows : 1;
    const uint64_t mean = ceil_div(spec->packets, flows);
    *t = (struct tally){ .step = 1, .chance = spec->seed };
    switch (spec->kind) {
    case TALLY_COUNTMIN:
        snprintf(number, sizeof number, "%.17g", spec->error);
        options[0] = (bly_option){ "error", number };
        /* A flow raises only its least counters: the bound is the same, and
         * most counts are much nearer. */
        options[1] = (bly_option){ "update", "conservative" };
        s.noptions = 2;
        break;
    case TALLY_SPECTRAL:
        s.items = flows;
        s.fpr = spec->error;
        break;
    case TALLY_SPACECODE:
    default:
        snprintf(number, sizeof number, "%llu",
                 (unsigned long long)(mean ? mean : 1));
        options[0] = (bly_option){ "mean", number };
        s.noptions = 1;
        s.items = flows;
        /* Bytes are counted in steps of a mean packet, so that counts of
         * both sketches are about as large. */
        if (spec->packets)
            t->step = ceil_div(spec->bytes, spec->packets);
        t->step += t->step == 0;
        break;
    }
    bly_status st = bly_new(&s, &t->packets);
    if (!st)
        st = bly_new(&s, &t->bytes);
    if (!st)
        st = bly_hasher_for(&s, &t->hasher);
    if (st)
        tally_free(t);
    return st;
}

void tally_free(struct tally *t)
{
    bly_free(t->packets);
    bly_free(t->bytes);
    t->packets = t->bytes = NULL;
}

static uint64_t next_chance(uint64_t *state)
{
    uint64_t x = *state += RANDOM_STEP;
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

bly_status tally_packet(struct tally *t, uint64_t hash, uint64_t bytes)
{
    t->hashes[t->n] = hash;
    t->sizes[t->n++] = bytes;
    return t->n == TALLY_BATCH ? tally_flush(t) : BLY_OK;
}

bly_status tally_flush(struct tally *t)
{
    static const uint64_t ones[TALLY_BATCH] = {
#define ONE8 1, 1, 1, 1, 1, 1, 1, 1
#define ONE64 ONE8, ONE8, ONE8, ONE8, ONE8, ONE8, ONE8, ONE8
        ONE64, ONE64, ONE64, ONE64
    };
    _Static_assert(TALLY_BATCH == 4 * 64, "a one for each");
    /* A part of a step is one with the chance of that part, so that the sum is
     * right on average. */
    for (size_t i = 0; i < t->n && t->step > 1; i++)
        t->sizes[i] =
            (t->sizes[i] + next_chance(&t->chance) % t->step) / t->step;
    bly_status st =
        bly_increase_hashes(t->packets, t->hashes, ones, t->n, NULL);
    if (!st)
        st = bly_increase_hashes(t->bytes, t->hashes, t->sizes, t->n, NULL);
    t->n = 0;
    return st;
}

bly_status tally_get(const struct tally *t, uint64_t hash, uint64_t *packets,
                     uint64_t *bytes)
{
    bly_status st = bly_count_hashes(t->packets, &hash, 1, packets);
    if (!st)
        st = bly_count_hashes(t->bytes, &hash, 1, bytes);
    if (!st && t->step > 1)
        *bytes = *bytes > UINT64_MAX / t->step ? UINT64_MAX : *bytes * t->step;
    return st;
}
