/*
 * digest_trace.c - requests to replay
 */
#include <math.h>
#include <stdlib.h>

#include "apps/digest/digest.h"
#include "base/random.h"
#include "base/search.h"

void digest_trace_free(struct digest_trace *t)
{
    free(t->document);
    free(t->proxy);
    *t = (struct digest_trace){ 0 };
}

static bool trace_room(struct digest_trace *t, uint64_t room)
{
    if (room > SIZE_MAX / sizeof *t->document)
        return false;
    uint32_t *const document =
        realloc(t->document, (size_t)room * sizeof *document);
    if (document)
        t->document = document;
    uint16_t *const proxy = realloc(t->proxy, (size_t)room * sizeof *proxy);
    if (proxy)
        t->proxy = proxy;
    if (!document || !proxy)
        return false;
    t->room = room;
    return true;
}

bool digest_trace_add(struct digest_trace *t, uint32_t document, unsigned proxy)
{
    if (t->n == t->room && !trace_room(t, t->room ? t->room * 2 : 1024))
        return false;
    t->document[t->n] = document;
    t->proxy[t->n++] = (uint16_t)proxy;
    if (document >= t->ndocuments)
        t->ndocuments = (uint64_t)document + 1;
    return true;
}

/* The first of n rising sums that is above x. */
static uint64_t sum_above(const double *sums, uint64_t n, double x)
{
    size_t at;
    LOWER_BOUND(at, n - 1, sums[at] <= x);
    return at;
}

bool digest_trace_zipf(struct digest_trace *t, unsigned nproxies,
                       uint64_t ndocuments, double zipf, uint64_t n,
                       uint64_t seed)
{
    double *const sums = ndocuments > SIZE_MAX / sizeof *sums
                             ? NULL
                             : malloc((size_t)ndocuments * sizeof *sums);
    double sum = 0;
    bool done = sums && trace_room(t, n);
    for (uint64_t i = 0; done && i < ndocuments; i++)
        sums[i] = sum += pow((double)i + 1, -zipf);
    for (uint64_t i = 0; done && i < n; i++) {
        const double x = random_share(&seed) * sum;
        const unsigned proxy = (unsigned)(random_next(&seed) % nproxies);
        done = digest_trace_add(t, (uint32_t)sum_above(sums, ndocuments, x),
                                proxy);
    }
    free(sums);
    t->ndocuments = ndocuments;
    return done;
}
