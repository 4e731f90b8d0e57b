/*
 * multistage.c - who sends much?
 */
#include "apps/traffic/multistage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>
#include <bloomery/inline.h>

#include "base/random.h"

struct multistage {
    struct multistage_spec spec;
    bly_hasher hasher;
    uint64_t *counters;
    struct flow *flows;
    size_t nflows;
    uint32_t *slots; /* numbers of flows, from 1 on; 0: free */
    size_t mask;
    uint64_t dropped;
};

static uint64_t ncounters(const struct multistage_spec *s)
{
    return s->stages * s->counters;
}

struct multistage *multistage_new(const struct multistage_spec *spec)
{
    struct multistage *const m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    size_t room = 16;
    while (room < 2 * spec->entries && room < SIZE_MAX / 64)
        room *= 2;
    m->spec = *spec;
    m->hasher = (bly_hasher){ .id = BLY_HASH_XXH3, .seed = spec->seed };
    m->mask = room - 1;
    m->slots = calloc(room, sizeof *m->slots);
    m->flows = calloc((size_t)spec->entries, sizeof *m->flows);
    m->counters = calloc((size_t)ncounters(spec), sizeof *m->counters);
    if (m->slots && m->flows && m->counters)
        return m;
    multistage_free(m);
    return NULL;
}

void multistage_free(struct multistage *m)
{
    if (!m)
        return;
    free(m->slots);
    free(m->flows);
    free(m->counters);
    free(m);
}

uint64_t multistage_bytes(const struct multistage *m)
{
    return sizeof *m + (m->mask + 1) * sizeof *m->slots +
           m->spec.entries * sizeof *m->flows +
           ncounters(&m->spec) * sizeof *m->counters;
}

uint64_t multistage_dropped(const struct multistage *m)
{
    return m->dropped;
}

/* ------------------------------------------------------------- flow memory */

/* The slot of a flow, or the free one where it would be. */
static uint32_t *slot_of(struct multistage *m, const struct flow_key *key,
                         uint64_t hash)
{
    for (size_t at = hash & m->mask;; at = (at + 1) & m->mask) {
        uint32_t *const slot = &m->slots[at];
        if (!*slot)
            return slot;
        const struct flow *const f = &m->flows[*slot - 1];
        if (f->hash == hash && f->key.len == key->len &&
            memcmp(f->key.at, key->at, key->len) == 0)
            return slot;
    }
}

static void flow_enter(struct multistage *m, uint32_t *slot,
                       const struct flow_key *key, uint64_t hash,
                       uint64_t bytes, uint64_t before)
{
    if (m->nflows == m->spec.entries) {
        m->dropped++;
        return;
    }
    m->flows[m->nflows++] = (struct flow){ .key = *key,
                                           .fresh = true,
                                           .hash = hash,
                                           .bytes = bytes,
                                           .packets = 1,
                                           .before = before };
    *slot = (uint32_t)m->nflows;
}

/* ------------------------------------------------------------------ stages */

/* The counter of a hash in stage i. */
static uint64_t *counter_of(struct multistage *m, uint64_t hash, unsigned i)
{
    const uint64_t x = mix_fast(hash + (i + 1) * RANDOM_STEP);
    return m->spec.shared ? &m->counters[bly_mulhi(x, ncounters(&m->spec))]
                          : &m->counters[i * m->spec.counters +
                                         bly_mulhi(x, m->spec.counters)];
}

/* Each stage lets through what its counter has reached its share with. What a
 * flow sent before it passed was stopped by some stage, and none stopped more
 * than its share. */
static bool serial_passes(struct multistage *m, uint64_t hash, uint64_t bytes,
                          uint64_t *before)
{
    const uint64_t share =
        (m->spec.threshold + m->spec.stages - 1) / m->spec.stages;
    *before = m->spec.threshold - 1;
    for (unsigned i = 0; i < m->spec.stages; i++) {
        uint64_t *const c = counter_of(m, hash, i);
        *c += bytes;
        if (*c < share)
            return false;
    }
    return true;
}

/* All counters of a flow hold at least what it sent. So the least of them
 * bounds that, and no counter needs to be raised past the least and this
 * packet; one whose flow gets an entry raises none. */
static bool parallel_passes(struct multistage *m, uint64_t hash, uint64_t bytes,
                            bool known, uint64_t *before)
{
    uint64_t *at[MULTISTAGE_MOST];
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < m->spec.stages; i++) {
        at[i] = counter_of(m, hash, i);
        least = *at[i] < least ? *at[i] : least;
    }
    const bool passes = least + bytes >= m->spec.threshold;
    *before = least;
    if (m->spec.plain) {
        /* In a shared array two stages may have one counter: it counts once. */
        uint64_t was[MULTISTAGE_MOST];
        for (unsigned i = 0; i < m->spec.stages; i++)
            was[i] = *at[i];
        for (unsigned i = 0; i < m->spec.stages; i++)
            *at[i] = was[i] + bytes;
    } else if (!passes || known) {
        for (unsigned i = 0; i < m->spec.stages; i++)
            if (*at[i] < least + bytes)
                *at[i] = least + bytes;
    }
    return passes;
}

struct flow *multistage_packet(struct multistage *m, const struct flow_key *key,
                               uint64_t bytes)
{
    const uint64_t hash = bly_hash(&m->hasher, key->at, key->len);
    uint32_t *const slot = slot_of(m, key, hash);
    uint64_t before;
    if (*slot) {
        struct flow *const f = &m->flows[*slot - 1];
        f->bytes += bytes;
        f->packets++;
        if (!m->spec.unshielded)
            return f;
    }
    const bool passes =
        m->spec.serial ? serial_passes(m, hash, bytes, &before)
                       : parallel_passes(m, hash, bytes, *slot != 0, &before);
    if (passes && !*slot)
        flow_enter(m, slot, key, hash, bytes, before);
    return *slot ? &m->flows[*slot - 1] : NULL;
}

/* --------------------------------------------------------------- intervals */

static void tell_large(struct multistage *m)
{
    for (size_t i = 0; i < m->nflows; i++) {
        struct flow *const f = &m->flows[i];
        f->large = f->bytes + f->before >= m->spec.threshold;
    }
}

/* Large ones first, and of these the largest. */
static int by_size(const void *a, const void *b)
{
    const struct flow *const x = a, *const y = b;
    if (x->large != y->large)
        return x->large ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->key.len != y->key.len)
        return x->key.len < y->key.len ? -1 : 1;
    return memcmp(x->key.at, y->key.at, x->key.len);
}

/* The slots again, after flows have moved. */
static void slots_fill(struct multistage *m)
{
    memset(m->slots, 0, (m->mask + 1) * sizeof *m->slots);
    for (size_t i = 0; i < m->nflows; i++) {
        struct flow *const f = &m->flows[i];
        *slot_of(m, &f->key, f->hash) = (uint32_t)(i + 1);
    }
}

size_t multistage_flows(struct multistage *m, const struct flow **flows)
{
    size_t n = 0;
    tell_large(m);
    qsort(m->flows, m->nflows, sizeof *m->flows, by_size);
    slots_fill(m);
    while (n < m->nflows && m->flows[n].large)
        n++;
    *flows = m->flows;
    return n;
}

void multistage_turn(struct multistage *m)
{
    size_t kept = 0;
    tell_large(m);
    for (size_t i = 0; i < m->nflows; i++)
        if (m->flows[i].fresh || m->flows[i].large) {
            const struct flow *const f = &m->flows[i];
            m->flows[kept++] = (struct flow){ .key = f->key, .hash = f->hash };
        }
    m->nflows = kept;
    slots_fill(m);
    memset(m->counters, 0, ncounters(&m->spec) * sizeof *m->counters);
}

double multistage_bound(const struct multistage_spec *spec, double bytes,
                        double n)
{
    const double b = (double)spec->counters;
    const double g = (double)spec->threshold * b / bytes; /* stage strength */
    if (g <= 1 || g * n <= b)
        return n;
    const double small = n * pow(n / (g * n - b), spec->stages);
    return fmin(n, fmax(b / (g - 1), small) + small);
}
