/*
 * order.c - who comes first, and which texts are equal
 *
 * Documents of an index come before all others. Then the value that a priority
 * gives: the length of the text, a field, or none, and then the input's order.
 */
#include <math.h>
#include <stdlib.h>

#include "apps/dedup/dedup.h"

struct ranked {
    double value;
    uint32_t doc;
};

static int by_value(const void *x, const void *y)
{
    const struct ranked *const p = x, *const q = y;
    if (p->value != q->value)
        return p->value > q->value ? -1 : 1;
    return (p->doc > q->doc) - (p->doc < q->doc);
}

static bool rank_values(struct dedup *d)
{
    struct ranked *const r = malloc(((size_t)d->n + 1) * sizeof *r);
    if (!r)
        return dedup_fail(d, "out of memory");
    for (uint32_t i = 0; i < d->n; i++) {
        const double v = d->opt->ascending ? -d->values[i] : d->values[i];
        r[i] = (struct ranked){ i < d->base ? INFINITY : v, i };
    }
    qsort(r, (size_t)d->n, sizeof *r, by_value);
    for (uint32_t i = 0; i < d->n; i++)
        d->order[i] = r[i].doc;
    free(r);
    return true;
}

bool dedup_rank(struct dedup *d)
{
    const size_t n = (size_t)d->n + 1;
    d->order = malloc(n * sizeof *d->order);
    d->rank = malloc(n * sizeof *d->rank);
    d->same = malloc(n * sizeof *d->same);
    d->witness = malloc(n * sizeof *d->witness);
    d->cluster = malloc(n * sizeof *d->cluster);
    d->likeness = malloc(n * sizeof *d->likeness);
    if (!d->order || !d->rank || !d->same || !d->witness || !d->cluster ||
        !d->likeness)
        return dedup_fail(d, "out of memory for %llu documents",
                          (unsigned long long)d->n);
    for (uint32_t i = 0; i < d->n; i++)
        d->order[i] = i;
    if (d->values && !rank_values(d))
        return false;
    for (uint32_t i = 0; i < d->n; i++)
        d->rank[d->order[i]] = i;
    return true;
}

/* Of documents with equal texts the first by priority stands for all. */
bool dedup_collapse(struct dedup *d)
{
    const double start = dedup_seconds();
    struct dedup_key *const keys = malloc(((size_t)d->n + 1) * sizeof *keys);
    struct dedup_key *const temp = malloc(((size_t)d->n + 1) * sizeof *keys);
    size_t n = 0;
    bool ok = keys && temp;
    for (uint32_t i = 0; ok && i < d->n; i++) {
        const uint32_t doc = d->order[i];
        d->same[doc] = doc;
        if (d->states[doc] == DOC_TEXT)
            keys[n++] = (struct dedup_key){ d->hashes[doc], doc };
    }
    if (ok)
        dedup_sort(keys, temp, n);
    for (size_t i = 1; ok && i < n; i++)
        if (keys[i].key == keys[i - 1].key && keys[i].doc >= d->base) {
            d->same[keys[i].doc] = d->same[keys[i - 1].doc];
            d->report.equal++;
        }
    free(keys);
    free(temp);
    d->report.seconds[1] += dedup_seconds() - start;
    return ok || dedup_fail(d, "out of memory");
}
