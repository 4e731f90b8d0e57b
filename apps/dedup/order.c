/*
 * order.c - who comes first, and which texts are equal
 *
 * Documents of an index come before all others. Then the value that a priority
 * gives: the length of the text, a field, or none, and then the input's order.
 */
#include <math.h>
#include <string.h>

#include "apps/dedup/dedup.h"

/* A number whose order is that of -v: the largest v comes first. */
static uint64_t descending(double v)
{
    uint64_t bits;
    v = v == 0 ? 0 : v; /* there are two zeros */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? bits : bits ^ UINT64_C(0x7fffffffffffffff);
}

struct ranking {
    struct dedup *d;
    uint32_t n;
};

static bool take_rank(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct ranking *const r = ctx;
    for (size_t i = 0; i < n; i++)
        r->d->order[r->n++] = keys[i].doc;
    store_trim(&r->d->store);
    return true;
}

static bool rank_values(struct dedup *d)
{
    struct sorter s = { .folder = d->opt->folder,
                        .memory = d->opt->memory / 2 };
    struct ranking r = { .d = d };
    bool ok = true, told;
    for (uint32_t i = 0; ok && dedup_more(d, i); i++) {
        const double v = d->opt->ascending ? -d->values[i] : d->values[i];
        ok = sorter_add(&s, i < d->base ? 0 : descending(v), i);
    }
    ok = ok && sorter_each(&s, 1, take_rank, &r, &told);
    if (!ok)
        dedup_no_room(d, "sorting by priority");
    sorter_free(&s);
    return ok;
}

bool dedup_rank(struct dedup *d)
{
    struct store *const s = &d->store;
    if (!STORE(s, d->order, d->n) || !STORE(s, d->rank, d->n) ||
        !STORE(s, d->same, d->n) || !STORE(s, d->witness, d->n) ||
        !STORE(s, d->cluster, d->n) || !STORE(s, d->likeness, d->n))
        return dedup_no_room(d, "documents");
    for (uint32_t i = 0; dedup_more(d, i); i++)
        d->order[i] = i;
    if (d->values && !rank_values(d))
        return false;
    for (uint32_t i = 0; dedup_more(d, i); i++)
        d->rank[d->order[i]] = i;
    return true;
}

/* Keys are hashes of texts, documents are ranks. */
struct collapsing {
    struct dedup *d;
    bool some;
    uint64_t hash;  /* of the texts at hand */
    uint32_t first; /* of them by rank */
};

static bool take_equal(void *ctx, const struct dedup_key *keys, size_t n)
{
    struct collapsing *const c = ctx;
    struct dedup *const d = c->d;
    for (size_t i = 0; i < n; i++) {
        const uint32_t doc = d->order[keys[i].doc];
        if (!c->some || keys[i].key != c->hash) {
            c->some = true;
            c->hash = keys[i].key;
            c->first = doc;
        } else if (doc >= d->base) {
            d->same[doc] = c->first;
            d->report.equal++;
        }
        store_trim(&d->store);
    }
    return true;
}

/* Of documents with equal texts the first by priority stands for all. */
bool dedup_collapse(struct dedup *d)
{
    const double start = dedup_seconds();
    struct sorter s = { .folder = d->opt->folder,
                        .memory = d->opt->memory / 2,
                        .hashes = true };
    struct collapsing c = { .d = d };
    bool ok = true, told;
    for (uint32_t i = 0; ok && dedup_more(d, i); i++) {
        const uint32_t doc = d->order[i];
        d->same[doc] = doc;
        if (d->states[doc] == DOC_TEXT)
            ok = sorter_add(&s, d->hashes[doc], i);
    }
    ok = ok && sorter_each(&s, 1, take_equal, &c, &told);
    if (!ok)
        dedup_no_room(d, "sorting");
    sorter_free(&s);
    d->report.seconds[1] += dedup_seconds() - start;
    return ok;
}
