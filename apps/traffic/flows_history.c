/*
 * flows_history.c - what the largest flows have sent over time
 */
#include "apps/traffic/flows_history.h"

#include <stdlib.h>
#include <string.h>

static bool same_flow(const struct flow_key *a, const struct flow_key *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static size_t row_find(const struct history_row *rows, size_t n,
                       const struct flow_key *key)
{
    size_t i = 0;
    while (i < n && !same_flow(&rows[i].key, key))
        i++;
    return i;
}

uint64_t history_bytes(const struct history_span *s, const struct flow_key *key)
{
    const size_t i = row_find(s->rows, s->n, key);
    return i < s->n ? s->rows[i].bytes : 0;
}

/* Add to the row of a flow and keep the order; a new flow takes the place of
 * the least, if that is less. */
static void rows_add(struct history_row *rows, size_t *n, size_t room,
                     const struct history_row *add)
{
    struct history_row row = *add;
    size_t i = row_find(rows, *n, &row.key);
    if (i < *n) {
        row.bytes += rows[i].bytes;
    } else if (*n < room) {
        i = (*n)++;
    } else {
        i = *n - 1;
        if (rows[i].bytes >= row.bytes)
            return;
    }
    for (; i && rows[i - 1].bytes < row.bytes; i--)
        rows[i] = rows[i - 1];
    rows[i] = row;
}

static void span_add(struct history_span *to, const struct history_span *from)
{
    for (size_t i = 0; i < from->n; i++)
        rows_add(to->rows, &to->n, HISTORY_ROWS, &from->rows[i]);
    to->all += from->all;
}

static void spans_halve(struct flows_history *h)
{
    const size_t n = h->n;
    h->n = (n + 1) / 2;
    for (size_t i = 0; i < h->n; i++) {
        struct history_span two = h->spans[2 * i];
        if (2 * i + 1 < n)
            span_add(&two, &h->spans[2 * i + 1]);
        h->spans[i] = two;
    }
    h->width *= 2;
}

void history_add(struct flows_history *h, int64_t begin, int64_t width,
                 const struct flow *flows, size_t n, uint64_t all)
{
    if (!h->n) {
        h->begin = begin;
        h->width = width;
    }
    while ((begin - h->begin) / h->width >= HISTORY_SPANS)
        spans_halve(h);
    const size_t at = (size_t)((begin - h->begin) / h->width);
    for (; h->n <= at; h->n++)
        h->spans[h->n] = (struct history_span){ .n = 0 };
    struct history_span *const s = &h->spans[at];
    s->all += all;
    /* All of them: one that is not among the largest of this interval may be
     * in a span of several. Behind the rows there are, the rest is smaller. */
    for (size_t i = 0; i < n; i++) {
        const struct history_row row = { flows[i].key, flows[i].bytes };
        rows_add(s->rows, &s->n, HISTORY_ROWS, &row);
    }
}

size_t history_top(const struct flows_history *h, struct history_row *top,
                   size_t most)
{
    size_t n = 0, rows = 0;
    for (size_t i = 0; i < h->n; i++)
        rows += h->spans[i].n;
    struct history_row *const all = malloc((rows + 1) * sizeof *all);
    for (size_t i = 0; all && i < h->n; i++)
        for (size_t j = 0; j < h->spans[i].n; j++)
            rows_add(all, &n, rows, &h->spans[i].rows[j]);
    n = n < most ? n : most;
    if (n)
        memcpy(top, all, n * sizeof *top);
    free(all);
    return n;
}
