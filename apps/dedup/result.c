/*
 * result.c - what is found, as lists of ids
 *
 *     pairs      id TAB id TAB J     the lesser id first, lines sorted
 *     clusters   id TAB number       those that stand alone are left out
 *     removed    id TAB witness TAB J
 *
 * An id is the id field as it stands in the line, or FILE:LINE.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/dedup.h"
#include "apps/dedup/out_file.h"
#include "base/search.h"

/* The file that a document is a line of. */
static const struct input_file *file_of(const struct input *in, uint64_t line)
{
    size_t behind;
    LOWER_BOUND(behind, in->nfiles, in->files[behind].first <= line);
    return &in->files[behind ? behind - 1 : 0];
}

size_t dedup_id(const struct dedup_docs *docs, uint32_t doc, char *buf,
                size_t room, const char **at)
{
    const struct input *const in = docs->in;
    const uint64_t *const start = docs->id_start;
    if (start && start[doc + 1] > start[doc]) {
        *at = docs->ids + start[doc];
        return (size_t)(start[doc + 1] - start[doc]);
    }
    int n;
    *at = buf;
    if (doc < docs->base) {
        n = snprintf(buf, room, "index:%lu", (unsigned long)doc + 1);
    } else {
        const uint64_t line = doc - docs->base;
        const struct input_file *const f = file_of(in, line);
        n = in->whole ? snprintf(buf, room, "%s", f->name)
                      : snprintf(buf, room, "%s:%llu", f->name,
                                 (unsigned long long)(line - f->first + 1));
    }
    const size_t len = (size_t)n < room ? (size_t)n : room - 1;
    dedup_plain_id(buf, len);
    return len;
}

#define ID_ROOM 4200

static void put_id(struct out_file *o, const struct dedup_docs *docs,
                   uint32_t doc)
{
    char buf[ID_ROOM];
    const char *at;
    const size_t n = dedup_id(docs, doc, buf, sizeof buf, &at);
    out_put(o, at, n);
}

static bool close_list(struct dedup_job *job, struct out_file *o)
{
    return out_close(o, true) || dedup_fail(job, "%s", o->why);
}

static bool open_list(struct dedup_job *job, struct out_file *o,
                      const char *path)
{
    return out_open(o, path, job->opt->wait) || dedup_fail(job, "%s", o->why);
}

bool dedup_write_removed(struct dedup_job *job, const struct dedup_docs *docs,
                         const struct dedup_verdicts *verdicts)
{
    struct out_file o;
    if (!open_list(job, &o, job->opt->removed))
        return false;
    for (uint32_t i = docs->base; dedup_more(job, i, docs->n); i++) {
        if (verdicts->witness[i] == DEDUP_NONE)
            continue;
        put_id(&o, docs, i);
        out_put(&o, "\t", 1);
        put_id(&o, docs, verdicts->witness[i]);
        out_print(&o, "\t%.4f\n", verdicts->likeness[i]);
    }
    return close_list(job, &o);
}

bool dedup_write_clusters(struct dedup_job *job, const struct dedup_docs *docs,
                          const struct dedup_verdicts *verdicts)
{
    struct out_file o;
    const uint32_t *const cluster = verdicts->cluster;
    uint32_t *number, next = 0;
    if (!STORE_ZEROS(&job->store, number, docs->n))
        return dedup_no_room(job, "clusters");
    if (!open_list(job, &o, job->opt->clusters)) {
        store_release(&job->store, number);
        return false;
    }
    for (uint32_t i = 0; dedup_more(job, i, docs->n); i++)
        if (cluster[i] != i)
            number[cluster[i]] = 1; /* has another member */
    for (uint32_t i = 0; dedup_more(job, i, docs->n); i++) {
        const uint32_t c = cluster[i];
        if (number[c] == 0)
            continue;
        if (number[c] == 1) /* its first member to be written */
            number[c] = ++next + 1;
        put_id(&o, docs, i);
        out_print(&o, "\t%lu\n", (unsigned long)number[c] - 1);
    }
    store_release(&job->store, number);
    return close_list(job, &o);
}

/* ------------------------------------------------------------------- pairs */

/* Lines one after the other, each with its end; and where they begin. */
struct pair_lines {
    struct dedup_job *job;
    const struct dedup_docs *docs;
    char *text;
    uint64_t len, room;
    uint64_t *starts;
    uint64_t n, starts_room;
};

static int by_text(const void *x, const void *y, void *ctx)
{
    const struct pair_lines *const l = ctx;
    store_trim(&l->job->store);
    return strcmp(l->text + *(const uint64_t *)x,
                  l->text + *(const uint64_t *)y);
}

static bool put_pair(struct pair_lines *l, uint32_t a, uint32_t b, double j)
{
    struct dedup_store *const s = &l->job->store;
    char abuf[ID_ROOM], bbuf[ID_ROOM];
    const char *ida, *idb;
    const size_t na = dedup_id(l->docs, a, abuf, sizeof abuf, &ida);
    const size_t nb = dedup_id(l->docs, b, bbuf, sizeof bbuf, &idb);
    const int c = memcmp(ida, idb, na < nb ? na : nb);
    if (c > 0 || (c == 0 && na > nb))
        return put_pair(l, b, a, j);
    const uint64_t most = na + nb + 64;
    if (!STORE_ROOM(s, l->starts, l->starts_room, l->n + 1) ||
        !STORE_ROOM(s, l->text, l->room, l->len + most))
        return dedup_no_room(l->job, "pairs");
    l->starts[l->n++] = l->len;
    l->len +=
        (uint64_t)snprintf(l->text + l->len, (size_t)most, "%.*s\t%.*s\t%.4f\n",
                           (int)na, ida, (int)nb, idb, j) +
        1;
    store_trim(s);
    return true;
}

/* Documents of equal text, as lists: one is its first, and next[] of each the
 * one after it. A pair of two firsts stands for all pairs of their lists. */
static bool put_lists(struct pair_lines *l, const uint32_t *next, uint32_t a,
                      uint32_t b, double j)
{
    for (uint32_t x = a; x != DEDUP_NONE; x = next[x])
        for (uint32_t y = b; y != DEDUP_NONE; y = next[y])
            if (!dedup_more(l->job, 0, 1) || !put_pair(l, x, y, j))
                return false;
    return true;
}

static bool list_equal(struct pair_lines *l, const struct dedup_order *order,
                       uint32_t **next)
{
    const size_t n = l->docs->n;
    if (!STORE(&l->job->store, *next, n))
        return dedup_no_room(l->job, "pairs");
    for (size_t i = 0; i < n; i++)
        (*next)[i] = DEDUP_NONE;
    for (uint32_t i = l->docs->base; i < n; i++)
        if (order->same[i] != i) {
            (*next)[i] = (*next)[order->same[i]];
            (*next)[order->same[i]] = i;
        }
    return true;
}

/* Every pair of equal texts. */
static bool put_equal(struct pair_lines *l, const struct dedup_order *order,
                      const uint32_t *next)
{
    bool ok = true;
    for (uint32_t i = 0; ok && dedup_more(l->job, i, l->docs->n); i++)
        for (uint32_t x = order->same[i] == i ? i : DEDUP_NONE;
             ok && x != DEDUP_NONE; x = next[x])
            for (uint32_t y = next[x]; ok && y != DEDUP_NONE; y = next[y])
                ok = dedup_more(l->job, 0, 1) && put_pair(l, x, y, 1);
    return ok;
}

bool dedup_list_pairs(struct dedup_job *job, const struct dedup_docs *docs,
                      const struct dedup_order *order,
                      const struct dedup_pairs *pairs, dedup_line *put,
                      void *ctx)
{
    struct pair_lines l = { .job = job, .docs = docs };
    const bool all = job->opt->all_pairs;
    uint32_t *next = NULL;
    bool ok = !all || list_equal(&l, order, &next);
    for (size_t i = 0; ok && i < pairs->n; i++) {
        const struct dedup_pair *const p = &pairs->at[i];
        if (p->likeness >= dedup_alike(job->opt))
            ok = all ? put_lists(&l, next, p->a, p->b, p->likeness)
                     : put_pair(&l, p->a, p->b, p->likeness);
    }
    if (all)
        ok = ok && put_equal(&l, order, next);
    else
        for (uint32_t i = docs->base; ok && dedup_more(job, i, docs->n); i++)
            if (order->same[i] != i)
                ok = put_pair(&l, order->same[i], i, 1);
    if (ok && l.n)
        qsort_r(l.starts, (size_t)l.n, sizeof *l.starts, by_text, &l);
    for (uint64_t i = 0; ok && i < l.n; i++) {
        ok = put(ctx, l.text + l.starts[i], strlen(l.text + l.starts[i]));
        store_trim(&job->store);
    }
    store_release(&job->store, l.text);
    store_release(&job->store, l.starts);
    store_release(&job->store, next);
    return ok;
}

static bool put_pair_line(void *ctx, const char *line, size_t n)
{
    out_put(ctx, line, n); /* close_list() tells what went wrong */
    return true;
}

bool dedup_write_pairs(struct dedup_job *job, const struct dedup_docs *docs,
                       const struct dedup_order *order,
                       const struct dedup_pairs *pairs)
{
    struct out_file o;
    if (!open_list(job, &o, job->opt->pairs))
        return false;
    if (dedup_list_pairs(job, docs, order, pairs, put_pair_line, &o))
        return close_list(job, &o);
    out_close(&o, false);
    return false;
}
